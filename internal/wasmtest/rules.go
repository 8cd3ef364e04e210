package wasmtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// rules build hostile modules that are too large, or too malformed, to be committed. Each takes one number.
var rules = map[string]func(n int) []byte{
	// Modules that take long to compile.
	"loops":    func(n int) []byte { return commandOf(Nested(n, 0x03)) },
	"blocks":   func(n int) []byte { return commandOf(Nested(n, 0x02)) },
	"nops":     func(n int) []byte { return commandOf(bytes.Repeat([]byte{1}, n)) },
	"ifs":      func(n int) []byte { return commandOf(IfBlocks(n)) },
	"ifs-many": func(n int) []byte { return commandOf(Repeated(n, IfBlocks(10_000))...) },
	"adds": func(n int) []byte {
		return commandOf(append(append([]byte{0x41, 0}, bytes.Repeat([]byte{0x41, 1, 0x6a}, n)...), 0x1a))
	},
	"consts-kept": func(n int) []byte { // all live at once
		return commandOf(append(bytes.Repeat([]byte{0x41, 1}, n), bytes.Repeat([]byte{0x1a}, n)...))
	},
	"branches": func(n int) []byte { // ten tables of n labels in n blocks
		table := append([]byte{0x41, 0, 0x0e}, Unsigned(n)...)
		for i := range n + 1 {
			table = append(table, Unsigned(min(i, n-1))...)
		}
		body := bytes.Repeat([]byte{0x02, 0x40}, n)
		body = append(body, bytes.Repeat(table, 10)...)
		return commandOf(append(body, bytes.Repeat([]byte{0x0b}, n)...))
	},
	"functions": func(n int) []byte { return commandOf(Repeated(n, []byte{1})...) },
	"functions-calling": func(n int) []byte { // each calls all others; only the first is the entry
		var body []byte
		for i := range n {
			body = append(append(body, 0x10), Unsigned(i)...)
		}
		return commandOf(Repeated(n, body)...)
	},
	"locals":      func(n int) []byte { return withLocals(1, n) },
	"locals-many": func(n int) []byte { return withLocals(n, 50_000) },
	"params":      func(n int) []byte { return manyParams(n) },
	"results-kept": func(n int) []byte { // n calls of a function with 1,000 results, which are dropped
		results := strings.TrimSuffix(strings.Repeat("i64,", 1000), ",")
		give := bytes.Repeat([]byte{0x42, 1}, 1000)
		take := bytes.Repeat(append([]byte{0x10, 1}, bytes.Repeat([]byte{0x1a}, 1000)...), n)
		return Functions([]string{"->", "->" + results}, []int{0, 1}, [][]byte{take, give}, Export("_start", 0),
			Export("memory", 2))
	},

	// Code that runs long without a loop to count.
	"fills":  func(n int) []byte { return Unrolled(n, 1000) },
	"chase":  pointerChase,
	"copies": func(n int) []byte { return commandIn(2048, endlessLoop(scatteredCopies(n))) },
	"init-large": func(n int) []byte { // copies a data segment of n bytes forever
		body := append(append([]byte{0x41, 0, 0x41, 0, 0x41}, Signed(n)...), 0xfc, 8, 0, 0)
		return commandIn(n>>16+1, endlessLoop(body), Section(12, []byte{1}),
			Section(11, append(append([]byte{1, 1}, Unsigned(n)...), make([]byte, n)...)))
	},

	// All exit codes.
	"exit": func(n int) []byte {
		body := append(append([]byte{0, 0x41}, Signed(n)...), 0x10, 0, 0x0b)
		return Module(Section(1, []byte{2, 0x60, 1, 0x7f, 0, 0x60, 0, 0}),
			Section(2, []byte("\x01\x16wasi_snapshot_preview1\x09proc_exit\x00\x00")), Section(3, []byte{1, 1}),
			Section(5, []byte{1, 0, 1}),
			Section(7, Vector([][]byte{append(Export("_start", 0)[:8], 1), Export("memory", 2)})),
			Section(10, append([]byte{1}, append(Unsigned(len(body)), body...)...)))
	},

	// Modules that declare more than they have, or have more than any program needs.
	"exports-twice": func(n int) []byte {
		return Functions([]string{"->"}, []int{0}, [][]byte{{1}}, append([][]byte{Export("_start", 0), Export("memory", 2)},
			Repeated(n, Export("again", 0))...)...)
	},
	"types": func(n int) []byte {
		return Module(Section(1, Vector(Repeated(n, []byte{0x60, 0, 0}))), Section(3, []byte{1, 0}),
			Section(5, []byte{1, 0, 1}),
			Section(7, Vector([][]byte{Export("_start", 0), Export("memory", 2)})), Section(10, []byte{1, 2, 0, 0x0b}))
	},
	"globals": func(n int) []byte {
		return Module(Section(1, []byte{1, 0x60, 0, 0}), Section(3, []byte{1, 0}), Section(5, []byte{1, 0, 1}),
			Section(6, Vector(Repeated(n, []byte{0x7e, 1, 0x42, 0, 0x0b}))),
			Section(7, Vector([][]byte{Export("_start", 0), Export("memory", 2)})), Section(10, []byte{1, 2, 0, 0x0b}))
	},
	"elements": func(n int) []byte { // n segments, each as long as the table
		one := append(append([]byte{0, 0x41, 0, 0x0b}, Unsigned(10_000)...), make([]byte, 10_000)...)
		return withElements(10_000, Vector(Repeated(n, one)))
	},
	"elements-passive": func(n int) []byte {
		return withElements(1, append(append([]byte{1, 1, 0}, Unsigned(n)...), make([]byte, n)...))
	},
	"data-large": func(n int) []byte {
		return commandIn(n>>16+1, nil, Section(11, append(append([]byte{1, 0, 0x41, 0, 0x0b}, Unsigned(n)...),
			make([]byte, n)...)))
	},
	"local-groups": func(n int) []byte { // each without locals
		body := append(append(Unsigned(n), bytes.Repeat([]byte{0, 0x7e}, n)...), 0x0b)
		return Module(Section(1, []byte{1, 0x60, 0, 0}), Section(3, []byte{1, 0}), Section(5, []byte{1, 0, 1}),
			Section(7, Vector([][]byte{Export("_start", 0), Export("memory", 2)})),
			Section(10, append([]byte{1}, append(Unsigned(len(body)), body...)...)))
	},
	"exports": func(n int) []byte {
		names := [][]byte{Export("_start", 0), Export("memory", 2)}
		for i := range n {
			names = append(names, Export(fmt.Sprint("e", i), 0))
		}
		return Functions([]string{"->"}, []int{0}, [][]byte{{1}}, names...)
	},
	"name-bytes": func(n int) []byte {
		return Functions([]string{"->"}, []int{0}, [][]byte{{1}}, Export("_start", 0), Export("memory", 2),
			Export(strings.Repeat("x", n), 0))
	},
	"custom-sections": func(n int) []byte {
		return append(commandOf([]byte{1}), bytes.Repeat(Section(0, []byte("\x01x")), n)...)
	},
	"custom-large": func(n int) []byte {
		return append(commandOf([]byte{1}), Section(0, append([]byte("\x01x"), make([]byte, n)...))...)
	},
	"data-segments": func(n int) []byte {
		return append(commandOf([]byte{1}), Section(11, Vector(Repeated(n, []byte{0, 0x41, 0, 0x0b, 0})))...)
	},
	"cut": func(n int) []byte { whole := commandOf([]byte{1}, []byte{1}); return whole[:len(whole)-n] },
}

// commandIn returns a command of one function with one i32 local and the given number of memory pages. more are
// further sections; the code section goes where the format requires it.
func commandIn(pages int, body []byte, more ...[]byte) []byte {
	code := append(append([]byte{1, 1, 0x7f}, body...), 0x0b)
	sections := [][]byte{Section(1, []byte{1, 0x60, 0, 0}), Section(3, []byte{1, 0}),
		Section(5, append([]byte{1, 0}, Unsigned(pages)...)),
		Section(7, Vector([][]byte{Export("_start", 0), Export("memory", 2)})),
		Section(10, append([]byte{1}, append(Unsigned(len(code)), code...)...))}
	rank := map[byte]int{12: 1, 10: 2, 11: 3}
	sections = append(sections, more...)
	slices.SortStableFunc(sections, func(a, b []byte) int { return rank[a[0]] - rank[b[0]] })
	return Module(sections...)
}

func endlessLoop(body []byte) []byte {
	return append(append([]byte{0x03, 0x40}, body...), 0x0c, 0, 0x0b)
}

// pointerChase repeatedly follows n pointers without a loop, each to another cache line of 128 MiB.
func pointerChase(n int) []byte {
	number := func(b []byte, v int) []byte { return append(append(b, 0x41), Signed(v)...) }
	// each cache line contains a multiple of 64 from a random number generator
	b := []byte{0x03, 0x40, 0x20, 0, 0x20, 0}
	b = append(number(b, 1103515245), 0x6c)
	b = append(number(b, 12345*64), 0x6a)
	b = append(number(b, 0x7ffffc0), 0x71, 0x36, 2, 0)
	b = append(number(append(b, 0x20, 0), 64), 0x6a, 0x22, 0)
	b = append(number(b, 128<<20), 0x49, 0x0d, 0, 0x0b, 0x41, 0, 0x21, 0)
	return commandIn(2048, append(b, endlessLoop(bytes.Repeat([]byte{0x20, 0, 0x28, 2, 0, 0x21, 0}, n))...))
}

// scatteredCopies copies kilobytes between addresses spread over 128 MiB.
func scatteredCopies(n int) []byte {
	var b []byte
	x := uint32(1)
	for range n {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b = append(append(b, 0x41), Signed(int(x&0x7fff000))...)
		b = append(append(b, 0x41), Signed(int(x>>5&0x7fff000))...)
		b = append(b, 0x41, 0x80, 8, 0xfc, 10, 0, 0)
	}
	return b
}

func withElements(size int, elements []byte) []byte {
	return Module(Section(1, []byte{1, 0x60, 0, 0}), Section(3, []byte{1, 0}),
		Section(4, append([]byte{1, 0x70, 0}, Unsigned(size)...)),
		Section(5, []byte{1, 0, 1}), Section(7, Vector([][]byte{Export("_start", 0), Export("memory", 2)})),
		Section(9, elements), Section(10, []byte{1, 2, 0, 0x0b}))
}

// commandOf returns a command with these functions, which have no parameters. The first one is the entry.
func commandOf(bodies ...[]byte) []byte {
	return Functions([]string{"->"}, Repeated(len(bodies), 0), bodies, Export("_start", 0), Export("memory", 2))
}

// Nested returns n nested blocks, each opened by the instruction op.
func Nested(n int, op byte) []byte {
	return append(bytes.Repeat([]byte{op, 0x40}, n), bytes.Repeat([]byte{0x0b}, n)...)
}

func withLocals(functions, n int) []byte {
	body := append(append([]byte{1}, Unsigned(n)...), 0x7e, 0x0b)
	code := Vector(Repeated(functions, append(Unsigned(len(body)), body...)))
	return Module(Section(1, []byte{1, 0x60, 0, 0}), Section(3, Vector(Repeated(functions, []byte{0}))),
		Section(5, []byte{1, 0, 1}),
		Section(7, Vector([][]byte{Export("_start", 0), Export("memory", 2)})), Section(10, code))
}

func manyParams(n int) []byte {
	types := strings.TrimSuffix(strings.Repeat("i64,", n), ",")
	call := append(bytes.Repeat([]byte{0x42, 1}, n), 0x10, 1)
	return Functions([]string{"->", types + "->"}, []int{0, 1}, [][]byte{call, {}}, Export("_start", 0),
		Export("memory", 2))
}

// Responding returns a guest of kind parley/1 that always returns text. Requests may have up to room bytes.
func Responding(text []byte, room int) []byte {
	const offset = 1 << 10
	behind := (offset+len(text))>>16<<16 + 1<<16
	pages := (behind+room)>>16 + 1
	packed := append([]byte{0x42}, signedLEB64(int64(offset)<<32|int64(len(text)))...)
	alloc := append(append([]byte{0, 0x41}, Signed(behind)...), 0x0b)
	code := Vector([][]byte{append(Unsigned(len(alloc)), alloc...), append(Unsigned(len(packed)+2),
		append(append([]byte{0}, packed...), 0x0b)...)})
	return Module(Section(1, []byte{2, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 2, 0x7f, 0x7f, 1, 0x7e}),
		Section(3, []byte{2, 0, 1}),
		Section(5, append([]byte{1, 0}, Unsigned(pages)...)),
		Section(7, Vector([][]byte{Export("memory", 2), append(Export("parley_alloc", 0)[:14], 0),
			append(Export("parley_call", 0)[:13], 1)})),
		Section(10, code),
		Section(11, append(append([]byte{1, 0, 0x41}, Signed(offset)...),
			append([]byte{0x0b}, append(Unsigned(len(text)), text...)...)...)))
}

// returnPacked returns a guest of kind parley/1 whose parley_call returns a fixed number.
func returnPacked(packed uint64) []byte {
	body := append(append([]byte{0, 0x42}, signedLEB64(int64(packed))...), 0x0b)
	code := Vector([][]byte{{4, 0, 0x41, 16, 0x0b}, append(Unsigned(len(body)), body...)})
	return Module(Section(1, []byte{2, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 2, 0x7f, 0x7f, 1, 0x7e}),
		Section(3, []byte{2, 0, 1}), Section(5, []byte{1, 0, 1}),
		Section(7, Vector([][]byte{Export("memory", 2), append(Export("parley_alloc", 0)[:14], 0),
			append(Export("parley_call", 0)[:13], 1)})), Section(10, code))
}

func signedLEB64(n int64) []byte {
	var out []byte
	for n >= 0x40 || n < -0x40 {
		out = append(out, byte(n)&0x7f|0x80)
		n >>= 7
	}
	return append(out, byte(n)&0x7f)
}
