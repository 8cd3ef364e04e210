package instrument

import (
	"encoding/binary"
	"fmt"
	"iter"
	"unicode/utf8"
)

// reader reads the primitives of the binary format. The first error sticks: later reads return zeros, and loops
// over counts end because a count never exceeds the remaining bytes.
type reader struct {
	data    []byte
	pos     int
	end     int // end of the section or body being read
	section string
	err     *Error
}

func (r *reader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Section: r.section, Offset: at, Message: fmt.Sprintf(format, args...)}
	}
	r.pos = r.end
}

// refuse fails because the module uses a feature of WebAssembly that is not supported. The zero feature means that
// the feature is unknown.
func (r *reader) refuse(at int, f feature, format string, args ...any) {
	if r.err != nil {
		return
	}
	r.fail(at, format+" is not accepted", args...)
	r.err.Fix = "build for WebAssembly 2.0"
	if f != (feature{}) {
		r.err.Message += ": the module uses " + f.name
		r.err.Fix = f.without
	}
}

func (r *reader) remaining() int { return r.end - r.pos }

func (r *reader) byte() byte {
	if r.pos >= r.end {
		r.fail(r.pos, "unexpected end of the bytes")
		return 0
	}
	b := r.data[r.pos]
	r.pos++
	return b
}

func (r *reader) skip(n int) {
	if n > r.remaining() {
		r.fail(r.pos, "%d bytes are needed but only %d are left", n, r.remaining())
		return
	}
	r.pos += n
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *reader) u32() uint32 {
	if r.pos < r.end && r.data[r.pos] < 0x80 {
		r.pos++
		return uint32(r.data[r.pos-1])
	}
	at := r.pos
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		if shift == 28 && b > 0x0f {
			r.fail(at, "a number is too large for 32 bits")
			return 0
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	return 0
}

// signed reads a signed LEB128 number of the given width.
func (r *reader) signed(bits int) int64 {
	at := r.pos
	var v int64
	for shift := 0; ; shift += 7 {
		b := r.byte()
		v |= int64(b&0x7f) << shift
		if rest := bits - shift; rest <= 7 {
			// In the last byte, the bits above the width must repeat the sign.
			sign := int8(b<<1) >> rest // the sign bit and everything above it
			if b >= 0x80 || (sign != 0 && sign != -1) {
				r.fail(at, "a number is too large for %d bits", bits)
				return 0
			}
		}
		if b < 0x80 {
			if shift+7 < 64 && b&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
		if r.err != nil {
			return 0
		}
	}
}

// count reads the length of a vector whose elements take at least size bytes each.
func (r *reader) count(what string, size, limit int) int {
	at := r.pos
	n := int(r.u32())
	switch {
	case n > limit:
		r.fail(at, "%d %s are declared, at most %d are accepted", n, what, limit)
		return 0
	case n > r.remaining()/size:
		r.fail(at, "%d %s are declared but only %d bytes are left", n, what, r.remaining())
		return 0
	}
	return n
}

func (r *reader) name() string {
	at := r.pos
	n := r.count("bytes of a name", 1, maxName)
	s := string(r.data[r.pos : r.pos+n])
	r.pos += n
	if !utf8.ValidString(s) {
		r.fail(at, "a name is not UTF-8")
	}
	return s
}

func (r *reader) index(what string, n int) uint32 {
	at := r.pos
	i := r.u32()
	if int64(i) >= int64(n) && r.err == nil {
		r.fail(at, "%s %d does not exist, there are %d", what, i, n)
		return 0
	}
	return i
}

func (r *reader) zero(what string) {
	at := r.pos
	if b := r.byte(); b != 0 && r.err == nil {
		r.fail(at, "%s must be 0 but is %d", what, b)
	}
}

// valueType reads a value type: a number, a vector or a reference.
func (r *reader) valueType() byte {
	at := r.pos
	switch b := r.byte(); b {
	case typeI32, typeI64, typeF32, typeF64, typeV128, typeFunc, typeExtern:
		return b
	default:
		if r.err == nil {
			r.refuse(at, typeFeatures[b], "value type 0x%02x", b)
		}
		return 0
	}
}

func (r *reader) refType() byte {
	at := r.pos
	b := r.byte()
	if b != typeFunc && b != typeExtern && r.err == nil {
		r.refuse(at, typeFeatures[b], "reference type 0x%02x", b)
	}
	return b
}

// number reads the number of a constant instruction.
func (r *reader) number(op byte) {
	switch op {
	case opI32:
		r.signed(32)
	case opI64:
		r.signed(64)
	case opF32:
		r.skip(4)
	case opF64:
		r.skip(8)
	}
}

// headerBytes is the size of what precedes the sections of a module.
const headerBytes = 8

// section is a section, or a subsection of a custom one. The reader has its content.
type section struct {
	reader
	id    byte
	whole []byte // including its id and size
}

// sectionsOf yields the sections of a module. It ends at a section that is cut off.
func sectionsOf(module []byte) iter.Seq[section] {
	return sectionsIn(reader{data: module, pos: min(headerBytes, len(module)), end: len(module)})
}

// sectionsIn yields the unread bytes of a reader as sections.
func sectionsIn(r reader) iter.Seq[section] {
	return func(yield func(section) bool) {
		for r.remaining() > 0 {
			at := r.pos
			id, size := r.byte(), int(r.u32())
			content := reader{data: r.data, pos: r.pos, end: r.pos + size}
			if r.skip(size); r.err != nil || !yield(section{content, id, r.data[at:r.pos]}) {
				return
			}
		}
	}
}

// limits reads the limits of a table or a memory. most is 0 if there is no maximum.
func (r *reader) limits() (flag byte, size, most uint32) {
	flag, size = r.byte(), r.u32()
	if flag&1 != 0 {
		most = r.u32()
	}
	return flag, size, most
}

const (
	typeI32    = 0x7f
	typeI64    = 0x7e
	typeF32    = 0x7d
	typeF64    = 0x7c
	typeV128   = 0x7b
	typeFunc   = 0x70
	typeExtern = 0x6f
)

func appendU32(b []byte, v uint32) []byte { return binary.AppendUvarint(b, uint64(v)) }

// appendS32 writes a signed LEB128 number, as i32.const has it.
func appendS32(b []byte, v int32) []byte { return appendS64(b, int64(v)) }

// appendS64 writes a signed LEB128 number, as i64.const has it.
func appendS64(b []byte, v int64) []byte {
	for {
		c := byte(v) & 0x7f
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// putPadded writes v, less than 1<<20 in magnitude, as a signed LEB128 number of exactly three bytes. The number
// can thus be filled in after the code around it is written.
func putPadded(b []byte, v int) {
	b[0] = byte(v)&0x7f | 0x80
	b[1] = byte(v>>7)&0x7f | 0x80
	b[2] = byte(v>>14) & 0x7f
}

func appendName(b []byte, s string) []byte {
	b = appendU32(b, uint32(len(s)))
	return append(b, s...)
}
