// Package wasmtest builds WebAssembly modules for tests. It has the attacks of testdata/hostile: what they run, and
// how they must end.
package wasmtest

import "strings"

// Functions returns a module with functions of the given types, by index, and with one page of memory. The bodies are
// given without locals and end instruction.
func Functions(types []string, functions []int, bodies [][]byte, exports ...[]byte) []byte {
	var typeList [][]byte
	for _, t := range types {
		from, to, _ := strings.Cut(t, "->")
		typeList = append(typeList, append(append([]byte{0x60}, ValueTypes(from)...), ValueTypes(to)...))
	}
	var functionList, code [][]byte
	for i, f := range functions {
		functionList = append(functionList, Unsigned(f))
		body := append(append([]byte{0}, bodies[i]...), 0x0b)
		code = append(code, append(Unsigned(len(body)), body...))
	}
	return Module(Section(1, Vector(typeList)), Section(3, Vector(functionList)), Section(5, []byte{1, 0, 1}),
		Section(7, Vector(exports)), Section(10, Vector(code)))
}

// Module returns a module that consists of sections.
func Module(sections ...[]byte) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range sections {
		out = append(out, s...)
	}
	return out
}

// Section returns a section of a module.
func Section(id byte, content []byte) []byte {
	return append(append([]byte{id}, Unsigned(len(content))...), content...)
}

// Vector returns items preceded by their number.
func Vector(items [][]byte) []byte {
	out := Unsigned(len(items))
	for _, item := range items {
		out = append(out, item...)
	}
	return out
}

// ValueTypes returns a vector of types, given as i32,i64.
func ValueTypes(list string) []byte {
	if list == "" {
		return []byte{0}
	}
	names := strings.Split(list, ",")
	out := Unsigned(len(names))
	for _, name := range names {
		out = append(out, map[string]byte{"i32": 0x7f, "i64": 0x7e, "f32": 0x7d, "f64": 0x7c, "v128": 0x7b}[name])
	}
	return out
}

// Export returns an export of the item with index 0 of its kind: a function (0), a table, a memory or a global.
func Export(name string, kind byte) []byte {
	return append(append(Unsigned(len(name)), name...), kind, 0)
}

// Repeated returns a value n times.
func Repeated[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// IfBlocks returns n conditional blocks in a row.
func IfBlocks(n int) []byte {
	var out []byte
	for range n {
		out = append(out, 0x41, 1, 0x04, 0x40, 0x01, 0x0b) // i32.const 1, if, nop, end
	}
	return out
}

// Unrolled returns a command of n memory.fill operations over its whole memory, without a loop.
func Unrolled(n, pages int) []byte {
	var body []byte
	for range n {
		body = append(body, 0x41, 0, 0x41, 1, 0x41)
		body = append(body, Signed(pages<<16)...)
		body = append(body, 0xfc, 11, 0)
	}
	body = append([]byte{0}, append(body, 0x0b)...)
	return Module(Section(1, []byte{1, 0x60, 0, 0}), Section(3, []byte{1, 0}),
		Section(5, append([]byte{1, 0}, Unsigned(pages)...)),
		Section(7, []byte("\x02\x06memory\x02\x00\x06_start\x00\x00")),
		Section(10, append(append([]byte{1}, Unsigned(len(body))...), body...)))
}

// Unsigned returns a number in LEB128.
func Unsigned(n int) []byte {
	var out []byte
	for n >= 0x80 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(out, byte(n))
}

// Signed returns a number in signed LEB128. It is not negative.
func Signed(n int) []byte {
	var out []byte
	for n >= 0x40 {
		out = append(out, byte(n)&0x7f|0x80)
		n >>= 7
	}
	return append(out, byte(n))
}
