package instrument

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// ExportGlobals returns an instrumented module that also exports its mutable globals, and the names of these exports in
// the order of the globals. An instance of it shows all of its state. module must be the output of [Rewrite], and
// [Module].Imageable.
func ExportGlobals(module []byte) (out []byte, names []string) {
	var globals []uint32
	out = slices.Clone(module[:headerBytes])
	for s := range sectionsOf(module) {
		switch s.id {
		case secGlobal:
			globals = mutableGlobals(s.reader)
		case secExport:
			n := int(s.u32())
			body := s.data[s.pos:s.end]
			prefix := unusedPrefix(s.reader, n)
			section := append(appendU32(nil, uint32(n+len(globals))), body...)
			for _, g := range globals {
				names = append(names, prefix+strconv.Itoa(int(g)))
				section = appendU32(append(appendName(section, names[len(names)-1]), KindGlobal), g)
			}
			out = appendSection(out, s.id, section)
			continue
		}
		out = append(out, s.whole...)
	}
	return out, names
}

// Imaged returns a module whose instances begin in the state of another instance. Its mutable globals have the given
// values, in the order of the names from [ExportGlobals]; its memory begins with the given number of pages, and no
// data is copied into it. module must be the output of [Rewrite] or [Stub], and [Module].Imageable.
func Imaged(module []byte, globals []uint64, pages uint32) []byte {
	out := slices.Clone(module[:headerBytes])
	for s := range sectionsOf(module) {
		switch s.id {
		case secMemory:
			s.u32() // there is one memory, with a maximum
			s.byte()
			s.u32()
			section := append(appendU32(nil, 1), 1)
			out = appendSection(out, s.id, append(appendU32(section, pages), s.data[s.pos:s.end]...))
		case secGlobal:
			out = appendSection(out, s.id, replaceGlobals(s.reader, globals))
		case secData, secDataCount:
		default:
			out = append(out, s.whole...)
		}
	}
	return out
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
			out = binary.LittleEndian.AppendUint32(append(out, 0x43), uint32(v))
		case typeF64:
			out = binary.LittleEndian.AppendUint64(append(out, 0x44), v)
		}
		out = append(out, opEnd)
	}
	return out
}

// skipConstant skips a constant expression.
func skipConstant(r *reader) {
	for {
		switch op := r.byte(); op {
		case opEnd:
			return
		case opI32, opI64, opF32, opF64:
			r.number(op)
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

// unusedPrefix returns a prefix that no name of the n exports has.
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
