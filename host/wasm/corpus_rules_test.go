package wasm

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// rules build those hostile modules that are too large, or too broken, to be kept. Each takes one number.
var rules = map[string]func(n int) []byte{
	// Compile bombs.
	"loops":    func(n int) []byte { return commandOf(nested(n, 0x03)) },
	"blocks":   func(n int) []byte { return commandOf(nested(n, 0x02)) },
	"nops":     func(n int) []byte { return commandOf(bytes.Repeat([]byte{1}, n)) },
	"ifs":      func(n int) []byte { return commandOf(ifBlocks(n)) },
	"ifs-many": func(n int) []byte { return commandOf(repeated(n, ifBlocks(10_000))...) },
	"adds": func(n int) []byte {
		return commandOf(append(append([]byte{0x41, 0}, bytes.Repeat([]byte{0x41, 1, 0x6a}, n)...), 0x1a))
	},
	"consts-kept": func(n int) []byte { // all alive at once
		return commandOf(append(bytes.Repeat([]byte{0x41, 1}, n), bytes.Repeat([]byte{0x1a}, n)...))
	},
	"branches": func(n int) []byte { // a table of n labels, ten times, in n blocks
		table := append([]byte{0x41, 0, 0x0e}, unsignedLEB(n)...)
		for i := range n + 1 {
			table = append(table, unsignedLEB(min(i, n-1))...)
		}
		body := bytes.Repeat([]byte{0x02, 0x40}, n)
		body = append(body, bytes.Repeat(table, 10)...)
		return commandOf(append(body, bytes.Repeat([]byte{0x0b}, n)...))
	},
	"functions": func(n int) []byte { return commandOf(repeated(n, []byte{1})...) },
	"functions-calling": func(n int) []byte { // each calls all: only the first is the entry
		var body []byte
		for i := range n {
			body = append(append(body, 0x10), unsignedLEB(i)...)
		}
		return commandOf(repeated(n, body)...)
	},
	"locals":      func(n int) []byte { return withLocals(1, n) },
	"locals-many": func(n int) []byte { return withLocals(n, 50_000) },
	"params":      func(n int) []byte { return manyParams(n) },
	"results-kept": func(n int) []byte { // a function of 1,000 results is called n times, and they are dropped
		results := strings.TrimSuffix(strings.Repeat("i64,", 1000), ",")
		give := bytes.Repeat([]byte{0x42, 1}, 1000)
		take := bytes.Repeat(append([]byte{0x10, 1}, bytes.Repeat([]byte{0x1a}, 1000)...), n)
		return module([]string{"->", "->" + results}, []int{0, 1}, [][]byte{take, give}, export("_start", 0), export("memory", 2))
	},

	// What declares more than it has.
	"exports": func(n int) []byte {
		names := [][]byte{export("_start", 0), export("memory", 2)}
		for i := range n {
			names = append(names, export(fmt.Sprint("e", i), 0))
		}
		return module([]string{"->"}, []int{0}, [][]byte{{1}}, names...)
	},
	"name-bytes": func(n int) []byte {
		return module([]string{"->"}, []int{0}, [][]byte{{1}}, export("_start", 0), export("memory", 2), export(strings.Repeat("x", n), 0))
	},
	"custom-sections": func(n int) []byte {
		return append(commandOf([]byte{1}), bytes.Repeat(section(0, []byte("\x01x")), n)...)
	},
	"custom-large": func(n int) []byte {
		return append(commandOf([]byte{1}), section(0, append([]byte("\x01x"), make([]byte, n)...))...)
	},
	"data-segments": func(n int) []byte {
		return append(commandOf([]byte{1}), section(11, vector(repeated(n, []byte{0, 0x41, 0, 0x0b, 0})))...)
	},
	"cut": func(n int) []byte { whole := commandOf([]byte{1}, []byte{1}); return whole[:len(whole)-n] },
}

// commandOf is a command with so many functions of no arguments, the first of which is the entry.
func commandOf(bodies ...[]byte) []byte {
	return module([]string{"->"}, repeated(len(bodies), 0), bodies, export("_start", 0), export("memory", 2))
}

func nested(n int, op byte) []byte {
	return append(bytes.Repeat([]byte{op, 0x40}, n), bytes.Repeat([]byte{0x0b}, n)...)
}

func withLocals(functions, n int) []byte {
	body := append(append([]byte{1}, unsignedLEB(n)...), 0x7e, 0x0b)
	code := vector(repeated(functions, append(unsignedLEB(len(body)), body...)))
	return wholeModule(section(1, []byte{1, 0x60, 0, 0}), section(3, vector(repeated(functions, []byte{0}))), section(5, []byte{1, 0, 1}),
		section(7, vector([][]byte{export("_start", 0), export("memory", 2)})), section(10, code))
}

func manyParams(n int) []byte {
	types := strings.TrimSuffix(strings.Repeat("i64,", n), ",")
	call := append(bytes.Repeat([]byte{0x42, 1}, n), 0x10, 1)
	return module([]string{"->", types + "->"}, []int{0, 1}, [][]byte{call, {}}, export("_start", 0), export("memory", 2))
}

// answering is a guest of kind parley/1 whose response is the text.
func answering(text []byte) []byte {
	pages := len(text)>>16 + 2
	offset := 1 << 10
	packed := append([]byte{0x42}, signedLEB64(int64(offset)<<32|int64(len(text)))...)
	code := vector([][]byte{{4, 0, 0x41, 16, 0x0b}, append(unsignedLEB(len(packed)+2), append(append([]byte{0}, packed...), 0x0b)...)})
	return wholeModule(section(1, []byte{2, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 2, 0x7f, 0x7f, 1, 0x7e}), section(3, []byte{2, 0, 1}),
		section(5, append([]byte{1, 0}, unsignedLEB(pages)...)),
		section(7, vector([][]byte{export("memory", 2), append(export("parley_alloc", 0)[:14], 0), append(export("parley_call", 0)[:13], 1)})),
		section(10, code),
		section(11, append(append([]byte{1, 0, 0x41}, signedLEB(offset)...), append([]byte{0x0b}, append(unsignedLEB(len(text)), text...)...)...)))
}

func signedLEB64(n int64) []byte {
	var out []byte
	for n >= 0x40 {
		out = append(out, byte(n)&0x7f|0x80)
		n >>= 7
	}
	return append(out, byte(n))
}

// hostileModule makes the module that a case of the corpus names: a file, RULE(NUMBER), hex:BYTES, or answer:TEXT in the syntax of Go, where
// {N*TEXT} stands for N times TEXT.
func hostileModule(t testing.TB, source string) []byte {
	t.Helper()
	if digits, ok := strings.CutPrefix(source, "hex:"); ok {
		data, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		return append([]byte("\x00asm\x01\x00\x00\x00"), data...)
	}
	if text, ok := strings.CutPrefix(source, "answer:"); ok {
		return answering(expand(t, text))
	}
	if name, rest, ok := strings.Cut(source, "("); ok {
		n, err := strconv.Atoi(strings.TrimSuffix(rest, ")"))
		if rules[name] == nil || err != nil {
			t.Fatalf("%s: no such rule", source)
		}
		return rules[name](n)
	}
	return readFile(t, hostileDir+"/"+source)
}

// expand reads a text of the table.
func expand(t testing.TB, text string) []byte {
	t.Helper()
	for {
		before, rest, ok := strings.Cut(text, "{{")
		if !ok {
			break
		}
		inner, after, _ := strings.Cut(rest, "}}")
		count, what, _ := strings.Cut(inner, "*")
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		text = before + strings.Repeat(what, n) + after
	}
	out, err := strconv.Unquote(`"` + text + `"`)
	if err != nil {
		t.Fatalf("%.100s: %v", text, err)
	}
	return []byte(out)
}
