package instrument

import (
	"strconv"
	"strings"
)

// ExportGlobals returns an instrumented module that also exports its mutable globals, and the names of these exports in
// the order of the globals. An instance of it shows all of its state. module must be the output of [Rewrite], and
// [Module].Imageable.
func ExportGlobals(module []byte) (out []byte, names []string) {
	var globals []uint32
	eachSection(module, func(id byte, content reader, whole []byte) {
		switch id {
		case secGlobal:
			globals = mutableGlobals(content)
		case secExport:
			n := int(content.u32())
			body := content.data[content.pos:content.end]
			prefix := unusedPrefix(content, n)
			section := append(appendU32(nil, uint32(n+len(globals))), body...)
			for _, g := range globals {
				names = append(names, prefix+strconv.Itoa(int(g)))
				section = appendU32(append(appendName(section, names[len(names)-1]), KindGlobal), g)
			}
			out = appendSection(out, id, section)
			return
		}
		out = append(out, whole...)
	})
	return out, names
}

// Imaged returns a module for instances that begin where another instance is: its mutable globals have the values
// given, in their order, as [ExportGlobals] names them; its memory begins with the given number of pages, and no data
// is copied into it. module must be the output of [Rewrite] or [Stub], and [Module].Imageable.
func Imaged(module []byte, globals []uint64, pages uint32) []byte {
	var out []byte
	eachSection(module, func(id byte, content reader, whole []byte) {
		switch id {
		case secMemory:
			content.u32() // there is one memory, with a maximum
			content.byte()
			content.u32()
			section := append(appendU32(nil, 1), 1)
			out = appendSection(out, id, append(appendU32(section, pages), content.data[content.pos:content.end]...))
		case secGlobal:
			out = appendSection(out, id, replaceGlobals(content, globals))
		case secData, secDataCount:
		default:
			out = append(out, whole...)
		}
	})
	return out
}

// eachSection calls visit with each section: its id, its content, and the whole with id and size. The first call has
// the module's header as a whole, with the id of custom sections, which instrumented modules do not have.
func eachSection(module []byte, visit func(id byte, content reader, whole []byte)) {
	visit(secCustom, reader{}, module[:8])
	r := reader{data: module, pos: 8, end: len(module)}
	for r.remaining() > 0 && r.err == nil {
		at := r.pos
		id := r.byte()
		size := int(r.u32())
		content := reader{data: module, pos: r.pos, end: r.pos + size}
		r.pos += size
		visit(id, content, module[at:r.pos])
	}
}

func appendSection(out []byte, id byte, content []byte) []byte {
	return append(appendU32(append(out, id), uint32(len(content))), content...)
}

// mutableGlobals returns the indices of the mutable globals.
func mutableGlobals(r reader) (indices []uint32) {
	for i := range r.u32() {
		r.byte()
		if r.byte() == 1 {
			indices = append(indices, i)
		}
		skipConstant(&r)
	}
	return indices
}

// replaceGlobals returns the section with other initial values of its mutable globals.
func replaceGlobals(r reader, values []uint64) []byte {
	n := r.u32()
	out := appendU32(nil, n)
	for range n {
		at := r.pos
		kind, mutable := r.byte(), r.byte()
		from := r.pos
		skipConstant(&r)
		if mutable == 0 {
			out = append(out, r.data[at:r.pos]...)
			continue
		}
		out = append(out, r.data[at:from]...)
		v := values[0]
		values = values[1:]
		switch kind {
		case typeI32:
			out = appendS32(append(out, 0x41), int32(uint32(v)))
		case typeI64:
			out = appendS64(append(out, 0x42), int64(v))
		case typeF32:
			out = append(out, 0x43, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		case typeF64:
			out = append(out, 0x44)
			for shift := 0; shift < 64; shift += 8 {
				out = append(out, byte(v>>shift))
			}
		}
		out = append(out, opEnd)
	}
	return out
}

// skipConstant skips a constant expression.
func skipConstant(r *reader) {
	for {
		switch r.byte() {
		case opEnd:
			return
		case 0x41, 0x42: // i32.const, i64.const
			r.signed(64)
		case 0x43:
			r.skip(4)
		case 0x44:
			r.skip(8)
		case 0x23, 0xd2: // global.get, ref.func
			r.u32()
		case 0xd0:
			r.byte()
		case 0xfd: // v128.const
			r.skip(17)
		}
		if r.err != nil {
			return
		}
	}
}

// unusedPrefix returns a beginning that none of the names of n exports has.
func unusedPrefix(r reader, n int) string {
	prefix := "global "
	for range n {
		for name := r.name(); strings.HasPrefix(name, prefix); {
			prefix += " "
		}
		r.byte()
		r.u32()
	}
	return prefix
}
