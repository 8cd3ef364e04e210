package wasm

import "strings"

// Builders of modules that are too large to be committed as source.

// module returns a module with functions of the given types, by index, and with one page of memory. The bodies have
// neither locals nor their end instruction.
func testModule(types []string, functions []int, bodies [][]byte, exports ...[]byte) []byte {
	var typeList [][]byte
	for _, t := range types {
		from, to, _ := strings.Cut(t, "->")
		typeList = append(typeList, append(append([]byte{0x60}, valueTypes(from)...), valueTypes(to)...))
	}
	var functionList, code [][]byte
	for i, f := range functions {
		functionList = append(functionList, unsignedLEB(f))
		body := append(append([]byte{0}, bodies[i]...), 0x0b)
		code = append(code, append(unsignedLEB(len(body)), body...))
	}
	return wholeModule(section(1, vector(typeList)), section(3, vector(functionList)), section(5, []byte{1, 0, 1}),
		section(7, vector(exports)), section(10, vector(code)))
}

func wholeModule(sections ...[]byte) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range sections {
		out = append(out, s...)
	}
	return out
}

func section(id byte, content []byte) []byte {
	return append(append([]byte{id}, unsignedLEB(len(content))...), content...)
}

func vector(items [][]byte) []byte {
	out := unsignedLEB(len(items))
	for _, item := range items {
		out = append(out, item...)
	}
	return out
}

func valueTypes(list string) []byte {
	if list == "" {
		return []byte{0}
	}
	names := strings.Split(list, ",")
	out := unsignedLEB(len(names))
	for _, name := range names {
		out = append(out, map[string]byte{"i32": 0x7f, "i64": 0x7e, "f32": 0x7d, "f64": 0x7c, "v128": 0x7b}[name])
	}
	return out
}

// export returns an export of index 0 of its kind: a function (0), a table, a memory or a global.
func export(name string, kind byte) []byte {
	return append(append(unsignedLEB(len(name)), name...), kind, 0)
}

func repeated[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// ifBlocks returns n conditional blocks in a row.
func ifBlocks(n int) []byte {
	var out []byte
	for range n {
		out = append(out, 0x41, 1, 0x04, 0x40, 0x01, 0x0b) // i32.const 1, if, nop, end
	}
	return out
}
