package instrument_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

// hammer is set by PARLEY_HAMMER: tests then run everything instead of a sample.
var hammer = os.Getenv("PARLEY_HAMMER") != ""

// module returns a module of sections, each an id and its content.
func module(sections ...[]byte) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range sections {
		out = append(out, s[0])
		out = append(out, leb(len(s)-1)...)
		out = append(out, s[1:]...)
	}
	return out
}

func leb(n int) []byte {
	var out []byte
	for n >= 0x80 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(out, byte(n))
}

var huge = []byte{0xff, 0xff, 0xff, 0xff, 0x0f}

func concat(head []byte, tail ...byte) []byte { return append(bytes.Clone(head), tail...) }

// code returns a module with one function of type () -> () and the given body.
func code(body ...byte) []byte {
	body = append([]byte{0}, body...)
	body = append(leb(len(body)), body...)
	return module([]byte{1, 1, 0x60, 0, 0}, []byte{3, 1, 0}, append([]byte{10, 1}, body...))
}

// TestRefused checks that files that crash or stall wazero v1.12.0, and invalid files, are refused.
func TestRefused(t *testing.T) {
	nested := func(op byte, n int) []byte {
		return code(append(bytes.Repeat([]byte{op, 0x40}, n), bytes.Repeat([]byte{0x0b}, n+1)...)...)
	}
	tests := []struct {
		name string
		wasm []byte
		says string
	}{
		{"empty", nil, "empty"},
		{"text", []byte("hello, world"), "begins with"},
		{"truncated header", []byte("\x00asm"), "header"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), "component"},
		{"section beyond the end", []byte("\x00asm\x01\x00\x00\x00\x01\x7f"), "127 bytes is declared but only 0 are left"},
		{"section that a whole file would fill", []byte("\x00asm\x01\x00\x00\x00\x01\x05\x00\x00"),
			"a section of 5 bytes is declared but only 2 are left"},
		{"a length of 33 bits", module([]byte{1, 0x81, 0x80, 0x80, 0x80, 0x10}), "too large for 32 bits"},
		{"types that do not follow", module([]byte{1, 5, 0x60, 0, 0}), "5 types are declared but only 3 bytes are left"},
		{"section twice", module([]byte{1, 0}, []byte{1, 0}), "twice"},
		{"sections out of order", module([]byte{3, 0}, []byte{1, 0}), "too late"},
		{"unknown section", module([]byte{14, 0}), "section 14 is not accepted"},
		{"extra bytes", module([]byte{1, 0, 0}), "extra bytes"},
		{"types", module(concat([]byte{1}, huge...)), "types are declared"},
		{"imports", module(concat([]byte{2}, huge...)), "imports are declared"},
		{"functions", module(concat([]byte{3}, huge...)), "functions are declared"},
		{"many functions", module([]byte{3, 0xff, 0xff, 3}), "only"},
		{"tables", module(concat([]byte{4}, huge...)), "tables are declared"},
		{"table size", module(concat([]byte{4, 1, 0x70, 0}, 0xff, 0xff, 0xff, 0x3f)), "entries"},
		{"memory", module([]byte{5, 1, 0, 0x81, 0x80, 0x04}), "4097 MiB of memory"},
		{"shared memory", module([]byte{5, 1, 3, 1, 1}), "the module uses threads"},
		{"two memories", module([]byte{5, 2, 0, 1, 0, 1}), "memories"},
		{"globals", module(concat([]byte{6}, huge...)), "globals are declared"},
		{"exports", module(concat([]byte{7}, huge...)), "exports are declared"},
		{"elements", module(concat([]byte{9}, huge...)), "element segments are declared"},
		{"elements of a segment", module([]byte{4, 1, 0x70, 0, 1}, concat([]byte{9, 1, 0, 0x41, 0, 0x0b}, huge...)),
			"elements are declared"},
		{"data segments", module(concat([]byte{11}, huge...)), "data segments are declared"},
		{"data count", module(concat([]byte{12}, huge...)), "data segments are declared"},
		{"data length", module([]byte{5, 1, 0, 1}, concat([]byte{11, 1, 1}, huge...)), "bytes of data"},
		{"bodies", module(concat([]byte{10}, huge...)), "function bodies"},
		{"bodies missing", module([]byte{1, 1, 0x60, 0, 0}, []byte{3, 1, 0}), "code section is missing"},
		{"locals", module([]byte{1, 1, 0x60, 0, 0}, []byte{3, 1, 0}, concat([]byte{10, 1, 8, 1}, append(bytes.Clone(huge),
			0x7f, 0x0b)...)), "locals"},
		{"a function that is too large", code(bytes.Repeat([]byte{0x01}, 4<<20)...), "too large to compile"},
		{"locals of a group", functions(1, 50_001), "a function has more than 50000 locals"},
		{"locals of a function", module([]byte{1, 1, 0x60, 0, 0}, []byte{3, 1, 0},
			[]byte{10, 1, 9, 2, 0xd0, 0x86, 0x03, 0x7f, 0xb9, 0x17, 0x7f, 0x0b}), "more than 50000 locals"},
		{"locals of all functions", functions(84, 50_000), "all functions together have more than 4194304 locals"},
		{"parameters of all types", types(1049, 1000), "the types have more than 1048576 parameters and results in total"},
		{"results of all types", types(1049, -1000), "the types have more than 1048576 parameters and results in total"},
		{"a branch out of the function", code(0x0c, 1, 0x0b), "label 1 does not exist, there are 1"},
		{"a branch out of a block", code(0x02, 0x40, 0x0c, 2, 0x0b, 0x0b), "label 2 does not exist, there are 2"},
		{"an alignment", code(0x41, 0, 0x28, 16, 0, 0x1a, 0x0b), "an alignment of 2^16"},
		{"parameters", module([]byte{1, 1, 0x60, 0xff, 0xff, 3}), "parameters are declared"},
		{"name that is not UTF-8", module([]byte{2, 1, 1, 0xff, 0, 0, 0}), "UTF-8"},
		{"imported memory", module([]byte{2, 1, 1, 'e', 1, 'm', 2, 0, 1}), "a memory, e.m"},
		{"nested loops", nested(0x03, 129), "loops are nested"},
		{"nested blocks", nested(0x02, 10_001), "blocks are nested"},
		{"code behind the end", code(0x0b, 0x0b), "follow the end"},
		{"no end", code(0x01, 0x01), "unexpected end"},
		{"else without if", code(0x05, 0x0b), "else without if"},
		{"labels", code(append([]byte{0x0e}, append(bytes.Clone(huge), 0x0b)...)...), "labels are declared"},
		{"tail call", code(0x12, 0, 0x0b), "0x12 is not accepted: the module uses tail calls"},
		{"atomics", code(0xfe, 0, 0, 0x0b), "0xfe"},
		{"relaxed SIMD", code(0xfd, 0x80, 0x02, 0x0b), "vector instruction 256"},
		{"a vector instruction in another encoding", code(0xfd, 0x8c, 0x00, 0x0b), "vector instruction"},
		{"number of too many bits", code(0x41, 0x80, 0x80, 0x80, 0x80, 0x70, 0x1a, 0x0b), "too large for 32 bits"},
		{"a long constant", module(concat(append([]byte{6, 1, 0x7f, 0, 0x41, 1}, bytes.Repeat([]byte{0x41, 1, 0x6a},
			32)...), 0x0b)), "more than 64 instructions"},
		{"an empty constant", module([]byte{6, 1, 0x7f, 0, 0x0b, 0}), "is empty"},
		{"a constant that divides", module([]byte{6, 1, 0x7f, 0, 0x41, 1, 0x41, 1, 0x6d, 0x0b}), "0x6d is not constant"},
		{"a constant that can change", module([]byte{6, 2, 0x7f, 1, 0x41, 1, 0x0b, 0x7f, 0, 0x23, 0, 0x0b}),
			"reads global 0, which is mutable"},
		{"shared limits of a table", module([]byte{4, 1, 0x70, 3, 1, 1}), "limits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := instrument.Rewrite(tt.wasm, instrument.Config{MaxPages: 1 << 16})
			var e *instrument.Error
			if !errors.As(err, &e) {
				t.Fatalf("%v, want an *Error", err)
			}
			if !strings.Contains(e.Error(), tt.says) {
				t.Errorf("%q does not say %q", e, tt.says)
			}
		})
	}
}

// functions returns a module with n functions, each with a number of locals in one group.
func functions(n, locals int) []byte {
	indices, bodies := make([]byte, n), make([][]byte, n)
	for i := range bodies {
		body := append(append([]byte{1}, leb(locals)...), 0x7f, 0x0b)
		bodies[i] = append(leb(len(body)), body...)
	}
	return module([]byte{1, 1, 0x60, 0, 0}, append(append([]byte{3}, leb(n)...), indices...), list(10, bodies))
}

// types returns a module with n types that have a number of parameters each, or of results if it is negative.
func types(n, parameters int) []byte {
	all := make([][]byte, n)
	for i := range all {
		words := append(leb(max(parameters, -parameters)), bytes.Repeat([]byte{0x7f}, max(parameters, -parameters))...)
		if all[i] = append(append([]byte{0x60}, words...), 0); parameters < 0 {
			all[i] = append([]byte{0x60, 0}, words...)
		}
	}
	return module(list(1, all))
}

// TestAtTheLimits checks that a module of exactly the size of a limit is accepted.
func TestAtTheLimits(t *testing.T) {
	for name, wasm := range map[string][]byte{
		"a function of 4 MiB":          code(append(bytes.Repeat([]byte{0x01}, 4<<20-2), 0x0b)...),
		"50,000 locals":                functions(1, 50_000),
		"2^20 parameters of all types": types(1048, 1000),
	} {
		if _, err := instrument.Rewrite(wasm, instrument.Config{MaxPages: 1}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// More is accepted only where a limit is raised, and the error has what that takes.
	table := module([]byte{4, 1, 0x70, 0, 0x81, 0x80, 0x10})
	for _, tt := range []struct {
		name  string
		wasm  []byte
		needs int
		raise instrument.Limits
	}{
		{instrument.LimitFunctions, functions(300_000, 15), 300_000, instrument.Limits{Functions: 300_000}},
		{instrument.LimitTableEntries, table, 1<<18 + 1, instrument.Limits{TableEntries: 1<<18 + 1}},
	} {
		var e *instrument.Error
		if _, err := instrument.Rewrite(tt.wasm, instrument.Config{}); !errors.As(err, &e) || e.Limit != tt.name ||
			e.Needs != tt.needs {
			t.Errorf("%s: %v, limit %+v", tt.name, err, e)
		}
		if _, err := instrument.Rewrite(tt.wasm, instrument.Config{Limits: tt.raise}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := instrument.Rewrite(make([]byte, 128<<20+1), instrument.Config{}); err == nil ||
		!strings.Contains(err.Error(), "at most 134217728 are accepted") {
		t.Errorf("a file of more than 128 MiB: %v", err)
	}
}

// TestGrowthIsBounded checks that a memory and a table grow up to their limit, whatever maximum a module declares.
func TestGrowthIsBounded(t *testing.T) {
	const pages, entries, moreEntries = 10, 1 << 18, 1 << 19
	for name, maximum := range map[string][]byte{"none": nil, "below": {3}, "above": {0x80, 0x80, 0x04}} { // 65536
		memory, table, limit := []byte{5, 1, 0, 1}, []byte{4, 1, 0x70, 0, 1}, uint32(pages)
		if maximum != nil {
			memory, table = concat([]byte{5, 1, 1, 1}, maximum...), concat([]byte{4, 1, 0x70, 1, 1}, maximum...)
		}
		switch name {
		case "below":
			limit = 3
		case "above":
			table = append([]byte{4, 1, 0x70, 1, 1}, leb(moreEntries)...)
		}
		wasm := module([]byte{1, 1, 0x60, 1, 0x7f, 1, 0x7f}, []byte{3, 2, 0, 0}, table, memory,
			[]byte("\x07\x02\x01m\x00\x00\x01t\x00\x01"), list(10, [][]byte{
				{6, 0, 0x20, 0, 0x40, 0, 0x0b},                 // memory.grow
				{9, 0, 0xd0, 0x70, 0x20, 0, 0xfc, 15, 0, 0x0b}, // table.grow
			}))
		m, err := instrument.Rewrite(wasm, instrument.Config{MaxPages: pages})
		if err != nil {
			t.Fatal(err)
		}
		if m.MemoryMin != 1 || m.MemoryMax != limit {
			t.Errorf("maximum %s: the memory has %d to %d pages", name, m.MemoryMin, m.MemoryMax)
		}
		instance := compile(t, m.Wasm, wazero.NewRuntimeConfigInterpreter()).instance(t)
		grow := func(export string, by uint32) int32 {
			out, err := instance.ExportedFunction(export).Call(context.Background(), uint64(by))
			if err != nil {
				t.Fatal(err)
			}
			return int32(uint32(out[0]))
		}
		most := uint32(entries)
		if name == "below" {
			most = 3
		}
		if grow("m", limit) != -1 || grow("m", limit-1) != 1 || grow("m", 1) != -1 {
			t.Errorf("maximum %s: the memory grew to more or less than %d pages", name, limit)
		}
		if grow("t", most) != -1 || grow("t", most-1) != 1 || grow("t", 1) != -1 {
			t.Errorf("maximum %s: the table grew to more or less than %d entries", name, most)
		}
	}
}

// TestAddedIndicesAreUnreachable checks that a guest cannot use an index that is only valid after the additions.
func TestAddedIndicesAreUnreachable(t *testing.T) {
	looping := []byte{0x03, 0x40, 0x0b} // adds a local to the function
	tests := map[string][]byte{
		"local":        append(bytes.Clone(looping), 0x20, 0, 0x1a, 0x0b),
		"set local":    append(bytes.Clone(looping), 0x41, 0, 0x21, 0, 0x0b),
		"global":       {0x23, 0, 0x1a, 0x0b},
		"set global":   {0x41, 0, 0x24, 0, 0x0b},
		"tick":         {0x41, 0, 0x10, 2, 0x0b},
		"yield":        {0x10, 1, 0x0b},
		"reference":    {0xd2, 1, 0x1a, 0x0b},
		"block type":   {0x02, 1, 0x0b, 0x0b},
		"indirect":     {0x41, 0, 0x11, 1, 0, 0x0b},
		"table":        {0x41, 0, 0x25, 0, 0x1a, 0x0b},
		"drop of data": {0xfc, 9, 0, 0x0b},
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := instrument.Rewrite(code(body...), instrument.Config{MaxPages: 1}); err == nil ||
				!strings.Contains(err.Error(), "does not exist") {
				t.Errorf("%v, want an index that does not exist", err)
			}
		})
	}
	t.Run("export", func(t *testing.T) {
		wasm := module([]byte{7, 1, 1, 'g', 3, 0})
		if _, err := instrument.Rewrite(wasm, instrument.Config{MaxPages: 1}); err == nil {
			t.Error("the counter can be exported")
		}
	})
}

// TestSameResults runs programs in three languages with and without metering. PARLEY_HAMMER=1 adds a plugin in Go,
// which takes long to compile.
func TestSameResults(t *testing.T) {
	all := programs()
	for _, k := range more {
		all = append(all, program{language: "C", name: k.name, wasm: fromFile("testdata/kernels-c.wasm"),
			run: kernel(k.name, k.arg)})
	}
	first := map[string]string{}
	cache := wazero.NewCompilationCache() // for modules with more than one program
	defer cache.Close(context.Background())
	config := wazero.NewRuntimeConfig().WithCompilationCache(cache)
	for _, p := range all {
		if p.language == "Go" && p.name == "JSON call" && !hammer {
			continue
		}
		wasm, err := p.wasm()
		if err != nil {
			t.Fatal(err)
		}
		metered := compile(t, rewrite(t, wasm, instrument.Config{}), config)
		var results []string
		for _, form := range []*compiled{compile(t, wasm, config),
			compile(t, rewrite(t, wasm, instrument.Config{Plain: true}), config), metered} {
			result, err := p.run(form.instance(t))
			if err != nil {
				t.Fatalf("%s, %s: %v", p.language, p.name, err)
			}
			results = append(results, result)
		}
		if results[1] != results[0] || results[2] != results[0] {
			t.Errorf("%s, %s: %s plain, %s gated, %s metered", p.language, p.name, results[0], results[1], results[2])
		}
		if *metered.yields == 0 {
			t.Errorf("%s, %s never yielded", p.language, p.name)
		}
		if p.name == "JSON call" {
			continue // each language has a tool of its own
		}
		if want, ok := first[p.name]; ok && want != results[0] {
			t.Errorf("%s returns %s in %s, and %s in C", p.name, results[0], p.language, want)
		} else if !ok {
			first[p.name] = results[0]
		}
	}
}

// FuzzRewrite checks that no input panics and that output can be decoded again. If wazero refuses the original it
// must refuse the output: instrumentation must not make a module valid. Custom sections are dropped, so they may be
// invalid.
func FuzzRewrite(f *testing.F) {
	kernels, err := os.ReadFile("testdata/kernels-c.wasm")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(kernels)
	f.Add(code(0x03, 0x40, 0x0c, 0, 0x0b, 0x0b))
	f.Add(code(0xfd, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0x1a, 0x0b))
	f.Add(module([]byte{4, 1, 0x70, 0, 1}, []byte{5, 1, 1, 1, 2}, []byte{6, 1, 0x7f, 1, 0x41, 0, 0x0b}, []byte{9, 0},
		[]byte{11, 0}))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := instrument.Rewrite(wasm, instrument.Config{MaxPages: 16})
		if err != nil {
			var e *instrument.Error
			if !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if _, err := instrument.Rewrite(m.Wasm, instrument.Config{MaxPages: 16}); err != nil {
			t.Fatalf("the output is refused: %v", err)
		}
		if len(wasm) > 1<<12 {
			return
		}
		gated, err := instrument.Rewrite(wasm, instrument.Config{MaxPages: 16, Plain: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
		defer r.Close(ctx)
		_, before := r.CompileModule(ctx, gated.Wasm)
		_, after := r.CompileModule(ctx, m.Wasm)
		if (before == nil) != (after == nil) {
			t.Fatalf("wazero returns %v for the module, and %v for the metered one", before, after)
		}
	})
}

// TestMergedData checks that merging data segments does not change memory, whatever their order and overlap.
func TestMergedData(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + random.IntN(20)
		section := append([]byte{11}, leb(n)...)
		at := 0
		for range n {
			switch random.IntN(4) {
			case 0:
				at = random.IntN(60_000) // anywhere
			case 1:
				at += random.IntN(100) // a gap, small or too large
			}
			size := random.IntN(50)
			section = append(section, 0, 0x41)
			section = append(section, byte(at)|0x80, byte(at>>7)|0x80, byte(at>>14)&0x3f, 0x0b)
			section = append(section, leb(size)...)
			for range size {
				section = append(section, byte(1+random.IntN(255)))
			}
			at += size
		}
		wasm := module([]byte{5, 1, 0, 1}, []byte("\x07\x01\x06memory\x02\x00"), section)
		var contents [2][]byte
		for i, cfg := range []instrument.Config{{Plain: true}, {}} {
			out := rewrite(t, wasm, cfg)
			m := compile(t, out, wazero.NewRuntimeConfigInterpreter()).instance(t)
			data, _ := m.Memory().Read(0, m.Memory().Size())
			contents[i] = bytes.Clone(data)
		}
		if !bytes.Equal(contents[0], contents[1]) {
			t.Fatalf("memory differs for %x", wasm)
		}
	}
}

// TestMergedDataCases tests segments whose merging could change the memory, and segments far apart.
func TestMergedDataCases(t *testing.T) {
	segment := func(offset []byte, data string) []byte {
		return append(append(append([]byte{0}, offset...), 0x0b), text(data)...)
	}
	at := func(n int) []byte { return append([]byte{0x41}, sleb(n)...) }
	for name, segments := range map[string][][]byte{
		"an earlier one in the gap": {segment(at(8), "xx"), segment(at(0), "aa"), segment(at(12), "bb")},
		"an earlier one at the end": {segment(at(10), "xxxx"), segment(at(0), "aa"), segment(at(12), "bb")},
		"one after the other":       {segment(at(0), "aa"), segment(at(2), "bb"), segment(at(40), "cc")},
		"far apart":                 {segment(at(0), "aa"), segment(at(60_000), "bb")},
		"as far as they are merged": {segment(at(0), "aa"), segment(at(66), "bb")},
		"one byte farther":          {segment(at(0), "aa"), segment(at(67), "bb")},
	} {
		wasm := module([]byte{5, 1, 0, 1}, []byte("\x07\x01\x06memory\x02\x00"),
			list(11, segments))
		var contents [2][]byte
		for i, cfg := range []instrument.Config{{Plain: true}, {}} {
			out := rewrite(t, wasm, cfg)
			if len(out) > 1000 {
				t.Errorf("%s: the module grows to %d bytes", name, len(out))
			}
			m := compile(t, out, wazero.NewRuntimeConfigInterpreter()).instance(t)
			data, _ := m.Memory().Read(0, m.Memory().Size())
			contents[i] = bytes.Clone(data)
		}
		if !bytes.Equal(contents[0], contents[1]) {
			t.Errorf("%s: memory differs: %q, want %q", name, contents[1][:80], contents[0][:80])
		}
	}
}
