package instrument

import (
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// maxDescribed bounds the text of [Describe] in bytes, roughly.
const maxDescribed = 1 << 20

// Describe returns what a module reveals about the toolchain that built it. Each line is "section NAME" for a custom
// section, "producer NAME VERSION", "import MODULE.NAME KIND", with the type of a function as its kind, or "export
// NAME". It also reads modules that [Rewrite] refuses, and leaves out what it cannot read.
func Describe(wasm []byte) string {
	var b strings.Builder
	var types []FuncType
	for s := range sectionsOf(wasm) {
		r := &s.reader
		each := func(read func() string) {
			for range r.count("items", 1, maxDescribed) {
				if line := read(); r.err == nil && b.Len() < maxDescribed && line != "" {
					b.WriteString(manifest.CleanLine(line) + "\n")
				}
			}
		}
		switch s.id {
		case secCustom:
			name := r.name()
			b.WriteString(manifest.CleanLine("section "+name) + "\n")
			if name == "producers" {
				each(func() string {
					r.name() // language, processed-by or sdk
					each(func() string { return "producer " + r.name() + " " + r.name() })
					return ""
				})
			}
		case secType:
			d := decoder{reader: *r}
			d.readTypes()
			types = d.has.types
		case secImport:
			each(func() string { return "import " + r.name() + "." + r.name() + " " + r.importKind(types) })
		case secExport:
			each(func() string {
				name := r.name()
				r.skip(1)
				r.u32()
				return "export " + name
			})
		}
	}
	return b.String()
}

// importKind reads the kind of an import and what follows it.
func (r *reader) importKind(types []FuncType) string {
	kind := r.byte()
	if kind != KindFunc && kind != KindMemory {
		r.skip(1) // the type of elements or values
	}
	switch kind {
	case KindFunc, kindTag:
		if i := int(r.u32()); kind == KindFunc && i < len(types) {
			return string(types[i])
		}
	case KindTable, KindMemory:
		if flag, _, _ := r.limits(); flag&2 != 0 {
			return "shared memory"
		}
	case KindGlobal:
		r.skip(1)
	}
	return KindNames[min(kind, kindTag)]
}
