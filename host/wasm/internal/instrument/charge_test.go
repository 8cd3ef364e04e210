package instrument_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

// countYields runs the export "f" of a module, which may import h.h of type () -> (). It returns the number of
// yields and of calls of h.
func countYields(t *testing.T, wasm []byte, cfg instrument.Config) (yields, calls int) {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	count := func(n *int) api.GoFunc { return func(context.Context, []uint64) { *n++ } }
	for module, n := range map[string]*int{instrument.YieldModule: &yields, "h": &calls} {
		name := map[string]string{instrument.YieldModule: instrument.YieldName, "h": "h"}[module]
		if _, err := r.NewHostModuleBuilder(module).NewFunctionBuilder().WithGoFunction(count(n), nil,
			nil).Export(name).Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	m, err := r.Instantiate(ctx, rewrite(t, wasm, cfg))
	if err != nil {
		t.Fatal(err)
	}
	yields, calls = 0, 0
	if _, err := m.ExportedFunction("f").Call(ctx); err != nil {
		t.Fatal(err)
	}
	return yields, calls
}

// moduleWithBody returns a module with memory 0, an import h.h, a table with the import and function 2, a passive data
// segment, and two functions with two locals each. Function 1 is exported as f, function 2 does nothing.
func moduleWithBody(data int, body ...byte) []byte { return moduleWithCallee(data, nil, body...) }

// moduleWithCallee is like moduleWithBody, with a body for function 2.
func moduleWithCallee(data int, callee []byte, body ...byte) []byte {
	bodies := [][]byte{body, callee}
	for i, b := range bodies {
		b = slices.Concat([]byte{1, 2, 0x7f}, b, []byte{0x0b})
		bodies[i] = append(leb(len(b)), b...)
	}
	return module([]byte{1, 1, 0x60, 0, 0}, []byte("\x02\x01\x01h\x01h\x00\x00"), []byte{3, 2, 0, 0},
		[]byte{4, 1, 0x70, 0, 2}, []byte{5, 1, 0, 100},
		[]byte("\x07\x01\x01f\x00\x01"), []byte{9, 1, 0, 0x41, 0, 0x0b, 2, 0, 2}, []byte{12, 1},
		list(10, bodies),
		append(append([]byte{11, 1, 1}, leb(data)...), make([]byte, data)...))
}

// timesMillion returns a loop that runs body a million times.
func timesMillion(body ...byte) []byte { return slices.Insert(countToMillion(), 4, body...) }

// bulk returns a memory.fill (11) or memory.copy (10) of n bytes from one address to another.
func bulk(op byte, to, from, n int) []byte {
	code := slices.Concat([]byte{0x41}, sleb(to), []byte{0x41}, sleb(from), []byte{0x41}, sleb(n), []byte{0xfc, op, 0})
	if op == 10 {
		code = append(code, 0)
	}
	return code
}

// countToMillion returns a loop that counts to 1,000,000 in local 0, with more code after the branch back.
func countToMillion(behind ...byte) []byte {
	loop := []byte{0x02, 0x40, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6a, 0x22, 0, 0x41, 0xc0, 0x84, 0x3d, 0x49, 0x0d, 0}
	return append(append(loop, behind...), 0x0b, 0x0b)
}

// repeated1000Times returns a loop that runs body 1,000 times.
func repeated1000Times(body ...byte) []byte {
	loop := append([]byte{0x03, 0x40}, body...)
	return append(loop, 0x20, 0, 0x41, 1, 0x6a, 0x22, 0, 0x41, 0xe8, 0x07, 0x49, 0x0d, 0, 0x0b)
}

// recursiveBody returns the body of a small function that calls itself to a depth of 30,000, counting in memory.
// With behindElse, the call is in an else, next to a call that is never made.
func recursiveBody(behindElse bool) []byte {
	load := []byte{0x41, 0, 0x28, 2, 0}                                          // i32.const 0, i32.load
	count := append(append([]byte{0x41, 0}, load...), 0x41, 1, 0x6a, 0x36, 2, 0) // i32.const 1, i32.add, i32.store
	// i32.const 30000, i32.lt_u, if, call, end
	recurse := append(load, 0x41, 0xb0, 0xea, 0x01, 0x49, 0x04, 0x40, 0x10, 1, 0x0b)
	if behindElse {
		// i32.eqz, if, call, else, .., end
		recurse = slices.Concat(load, []byte{0x45, 0x04, 0x40, 0x10, 1, 0x05}, recurse, []byte{0x0b})
	}
	return slices.Concat(count, recurse)
}

// dispatchLoop returns a body in the form in which Go compiles each function: a loop that branches to the end of
// one of two blocks by local 0. After the first block comes nearly a stretch of instructions and a jump to the second,
// after that back, which leads to the first, 20,000 times.
func dispatchLoop(back ...byte) []byte {
	load := []byte{0x41, 0, 0x28, 2, 0}
	return slices.Concat(
		// loop, block, block, local.get 0, br_table, end
		[]byte{0x03, 0x40, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 2, 0, 1, 1, 0x0b},
		[]byte{0x41, 0}, load, []byte{0x41, 1, 0x6a, 0x36, 2, 0}, bytes.Repeat([]byte{0x01}, 900), // memory[0]++, nop
		[]byte{0x41, 1, 0x21, 0, 0x0c, 1, 0x0b}, // i32.const 1, local.set 0, br 1, end
		// i32.const 20000, i32.lt_u, if, .., end, end
		load, []byte{0x41, 0xa0, 0x9c, 0x01, 0x49, 0x04, 0x40}, back, []byte{0x0b, 0x0b})
}

// skippedSegmentCharges returns megabytes of straight code. Each position where a new segment begins is in a block
// that is skipped.
func skippedSegmentCharges() []byte {
	const period, first = (1<<14 + 1) * 16, 40 // bytes of a segment; how far its end is beyond the beginning of a block
	block := slices.Concat([]byte{0x02, 0x40, 0x0c, 0}, bytes.Repeat([]byte{0x01}, 64), []byte{0x0b})
	body := bytes.Repeat([]byte{0x01}, period-first)
	for range 14 {
		body = append(append(body, block...), bytes.Repeat([]byte{0x01}, period-len(block))...)
	}
	return body
}

// TestYieldsWithoutGuestLoops checks that slow code without loops yields often enough: calls of the host
// by any path, long segments of code, copies of data segments.
func TestYieldsWithoutGuestLoops(t *testing.T) {
	heavy := instrument.Config{Guards: map[string]instrument.Guard{"h.h": {Type: "->", Heavy: true}}}
	tests := []struct {
		name         string
		wasm         []byte
		cfg          instrument.Config
		calls, least int
	}{
		{"calls of the host", moduleWithBody(1, repeated1000Times(0x10, 0)...), instrument.Config{}, 1000, 15},
		{"calls through a table", moduleWithBody(1, repeated1000Times(0x41, 0, 0x11, 0, 0)...), instrument.Config{}, 1000,
			15},
		{"calls without a loop", moduleWithBody(1, bytes.Repeat([]byte{0x10, 0}, 1000)...), instrument.Config{}, 1000, 15},
		{"calls that take long", moduleWithBody(1, repeated1000Times(0x10, 0)...), heavy, 1000, 1000},
		{"code without a loop", moduleWithBody(1, bytes.Repeat([]byte{0x01}, 4<<20-100)...), instrument.Config{}, 0, 3},
		{"code whose charges are jumped over", moduleWithBody(1, skippedSegmentCharges()...), instrument.Config{}, 0, 3},
		{"recursion of a small function", moduleWithBody(1, recursiveBody(false)...), instrument.Config{}, 0, 2},
		{"recursion behind an else", moduleWithBody(1, recursiveBody(true)...), instrument.Config{}, 0, 2},
		{"a jump back", moduleWithBody(1, dispatchLoop(0x41, 0, 0x21, 0, 0x0c, 1)...), instrument.Config{}, 0, 15},
		{"a jump back to a number that is computed", moduleWithBody(1, dispatchLoop(0x41, 0, 0x45, 0x45, 0x21, 0, 0x0c,
			1)...), instrument.Config{}, 0, 15},
		{"a jump back on a condition", moduleWithBody(1, dispatchLoop(0x41, 0, 0x21, 0, 0x41, 1, 0x0d, 1)...),
			instrument.Config{}, 0, 15},
		{"a jump back by a table", moduleWithBody(1, dispatchLoop(0x41, 0, 0x21, 0, 0x41, 1, 0x0e, 1, 0, 1)...),
			instrument.Config{}, 0, 15},
		{"a jump back after another variable was set", moduleWithBody(1, dispatchLoop(0x41, 0, 0x21, 0, 0x41, 1, 0x21, 1,
			0x0c, 1)...), instrument.Config{}, 0, 15},
		// i32.const 0, if, call, end
		{"a loop around a call that is not made",
			moduleWithCallee(1, bytes.Repeat([]byte{0x01}, 200), timesMillion(0x41, 0, 0x04, 0x40, 0x10, 2, 0x0b)...),
			instrument.Config{}, 0, 15},
		{"a loop that does more than call",
			moduleWithCallee(1, bytes.Repeat([]byte{0x01}, 200),
				repeated1000Times(append(bytes.Repeat([]byte{0x01}, 100_000), 0x10, 2)...)...), instrument.Config{}, 0, 80},
		{"a loop that calls and does a stretch of other work",
			moduleWithCallee(1, bytes.Repeat([]byte{0x01}, 200), timesMillion(append(bytes.Repeat([]byte{0x01}, 900), 0x10,
				2)...)...), instrument.Config{}, 0, 800},
		{"a loop of a few instructions", moduleWithBody(1, countToMillion()...), instrument.Config{}, 0, 15},
		// br 1, call f
		{"a loop that skips a call", moduleWithBody(1, countToMillion(0x0c, 1, 0x10, 1)...), instrument.Config{}, 0, 15},
		{"a loop that calls what others pay for", moduleWithBody(1, timesMillion(0x10, 2)...), instrument.Config{}, 0, 15},
		{"a loop that calls what others pay for through a table",
			moduleWithBody(1, timesMillion(0x41, 1, 0x11, 0, 0)...), instrument.Config{}, 0, 15},
		{"a loop that calls a small function of some weight",
			moduleWithCallee(1, bytes.Repeat([]byte{0x01}, 120), timesMillion(0x10, 2)...), instrument.Config{}, 0, 150},
		{"a loop that calls it through a table",
			moduleWithCallee(1, bytes.Repeat([]byte{0x01}, 120), timesMillion(0x41, 1, 0x11, 0, 0)...), instrument.Config{}, 0,
			150},
		{"a loop that calls a large function",
			moduleWithCallee(1, bytes.Repeat([]byte{0x01}, 200), timesMillion(0x10, 2)...), instrument.Config{}, 0, 180},
		{"a loop that calls a function with a loop",
			moduleWithCallee(1, repeated1000Times(), repeated1000Times(0x10, 2)...), instrument.Config{}, 0, 15},
		{"memory.grow", moduleWithBody(1, repeated1000Times(0x41, 0, 0x40, 0, 0x1a)...), instrument.Config{}, 0, 1000},
		{"table.fill", moduleWithBody(1, repeated1000Times(0x41, 0, 0xd0, 0x70, 0x41, 0, 0xfc, 17, 0)...),
			instrument.Config{}, 0, 100},
		{"table.grow", moduleWithBody(1, repeated1000Times(0xd0, 0x70, 0x41, 0, 0xfc, 15, 0, 0x1a)...),
			instrument.Config{}, 0, 100},
		{"table.copy", moduleWithBody(1, repeated1000Times(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 14, 0, 0)...),
			instrument.Config{}, 0, 100},
		{"table.init", moduleWithBody(1, repeated1000Times(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 12, 0, 0)...),
			instrument.Config{}, 0, 100},
		{"memory.fill, small", moduleWithBody(1, timesMillion(bulk(11, 0, 0, 1<<10)...)...), instrument.Config{}, 0, 80},
		{"memory.copy, small", moduleWithBody(1, timesMillion(bulk(10, 0, 1, 1<<10)...)...), instrument.Config{}, 0, 80},
		{"memory.fill, 64 KiB", moduleWithBody(1, repeated1000Times(bulk(11, 0, 0, 1<<16)...)...), instrument.Config{}, 0, 3},
		{"memory.fill, 1 MiB", moduleWithBody(1, repeated1000Times(bulk(11, 0, 0, 1<<20)...)...), instrument.Config{}, 0, 50},
		{"memory.copy, 1 MiB", moduleWithBody(1, repeated1000Times(bulk(10, 0, 9, 1<<20)...)...), instrument.Config{}, 0, 50},
		{"memory.fill, 2 MiB", moduleWithBody(1, repeated1000Times(bulk(11, 0, 0, 2<<20)...)...), instrument.Config{}, 0, 50},
		{"memory.copy down, 2 MiB", moduleWithBody(1, repeated1000Times(bulk(10, 0, 9, 2<<20)...)...), instrument.Config{},
			0, 50},
		{"memory.copy up, 2 MiB", moduleWithBody(1, repeated1000Times(bulk(10, 9, 0, 2<<20)...)...), instrument.Config{},
			0, 50},
		{"memory accesses", moduleWithBody(1, timesMillion(bytes.Repeat([]byte{0x41, 0, 0x28, 2, 0, 0x1a}, 10)...)...),
			instrument.Config{}, 0, 200},
		{"memory.init", moduleWithBody(4<<20, repeated1000Times(0x41, 0, 0x41, 0, 0x41, 0x80, 0x80, 0x80, 0x02, 0xfc, 8, 0,
			0)...), instrument.Config{}, 0, 1000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			yields, calls := countYields(t, tt.wasm, tt.cfg)
			if calls != tt.calls || yields < tt.least {
				t.Errorf("%d calls and %d yields, want %d and at least %d", calls, yields, tt.calls, tt.least)
			}
		})
	}
	wasm := moduleWithBody(4<<20+1, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 0, 0)
	if _, err := instrument.Rewrite(wasm, instrument.Config{MaxPages: 1000}); err == nil ||
		!strings.Contains(err.Error(), "copied by instructions") {
		t.Errorf("%v, want a data segment refused that cannot be copied at once", err)
	}
}

// switchOf returns a switch of which an arm of no code is taken. Each of 64 others has 2,000 instructions. Each arm
// ends with a branch to the end of the switch.
func switchOf() []byte {
	const arms = 64
	code := append(bytes.Repeat([]byte{0x02, 0x40}, arms+1), 0x41, 0, 0x0e, arms) // i32.const 0, br_table
	for label := range byte(arms + 1) {
		code = append(code, label)
	}
	code = append(code, 0x0b)
	for outer := arms - 1; outer >= 0; outer-- {
		code = append(append(code, 0x0c, byte(outer)), bytes.Repeat([]byte{0x01}, 2000)...)
		code = append(code, 0x0b)
	}
	return code
}

// TestShortPathsAreCheap: code that is passed by is not charged, whatever its length.
func TestShortPathsAreCheap(t *testing.T) {
	long := bytes.Repeat([]byte{0x01}, 100_000)
	for _, tt := range []struct {
		name string
		body []byte
		most int
	}{
		{"a switch in a loop", timesMillion(switchOf()...), 150},
		// local.get 0, i32.const 2000000, i32.eq, if
		{"an if in a loop", timesMillion(slices.Concat([]byte{0x20, 0, 0x41, 0x80, 0x89, 0x7a, 0x46, 0x04, 0x40}, long,
			[]byte{0x0b})...), 1200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if yields, _ := countYields(t, moduleWithBody(1, tt.body...), instrument.Config{}); yields > tt.most {
				t.Errorf("%d yields, want at most %d", yields, tt.most)
			}
		})
	}
	calls := repeated1000Times(bytes.Repeat([]byte{0x10, 2}, 100)...)
	yields, _ := countYields(t, moduleWithCallee(1, switchOf(), calls...), instrument.Config{})
	if yields > 150 {
		t.Errorf("100,000 calls of a function with a switch: %d yields, want at most 150", yields)
	}
}

// TestUnrollingIsBounded checks that a module with many loops does not grow with each of them.
func TestUnrollingIsBounded(t *testing.T) {
	loop := slices.Insert(countToMillion(), 4, bytes.Repeat([]byte{0x01}, 40)...)
	wasm := moduleWithBody(1, bytes.Repeat(loop, 20_000)...)
	if grown := float64(len(rewrite(t, wasm, instrument.Config{}))) / float64(len(wasm)); grown > 2 {
		t.Errorf("the module grows %.1f times, want at most 2", grown)
	}
}

// TestGuards: an argument up to the maximum reaches the host, a larger one is an immediate error. Arguments are
// compared as unsigned numbers. The function is called directly and through a table.
func TestGuards(t *testing.T) {
	edges := []uint32{0, 1, 16, 17, 0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff}
	const errno = 28
	wasm := module([]byte{1, 2, 0x60, 2, 0x7f, 0x7f, 1, 0x7f, 0x60, 1, 0x7f, 1, 0x7f},
		[]byte("\x02\x01\x01h\x01h\x00\x00"), []byte{3, 2, 1, 1}, []byte{4, 1, 0x70, 0, 1},
		[]byte("\x07\x02\x01f\x00\x01\x01g\x00\x02"), []byte{9, 1, 0, 0x41, 0, 0x0b, 1, 0},
		list(10, [][]byte{
			{8, 0, 0x41, 0x7f, 0x20, 0, 0x10, 0, 0x0b},              // h(-1, x)
			{11, 0, 0x41, 0x7f, 0x20, 0, 0x41, 0, 0x11, 0, 0, 0x0b}, // table[0](-1, x)
		}))
	for _, limit := range edges {
		reached := 0
		call := guardedCalls(t, wasm, instrument.Guard{Type: "i32,i32->i32", Params: []int{1}, Max: limit, Errno: errno},
			&reached)
		for _, arg := range edges {
			for _, export := range []string{"f", "g"} {
				reached = 0
				got := call(export, arg)
				if want := arg <= limit; want != (reached == 1) || want != (got == arg) || !want && got != errno {
					t.Errorf("limit %#x: %s(%#x) = %#x, reached %d times", limit, export, arg, got, reached)
				}
			}
		}
	}
	// A guard for a function of another type has no effect.
	reached := 0
	call := guardedCalls(t, wasm, instrument.Guard{Type: "i32->i32", Params: []int{0}, Max: 0, Errno: errno}, &reached)
	if got := call("f", 5); got != 5 || reached != 1 {
		t.Errorf("a guard of another type: %d, reached %d times", got, reached)
	}
}

// guardedCalls instantiates a module whose import h.h returns its second argument and counts.
func guardedCalls(t *testing.T, wasm []byte, g instrument.Guard, reached *int) func(name string, arg uint32) uint32 {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { r.Close(ctx) })
	_, err := r.NewHostModuleBuilder(instrument.YieldModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(context.Context, []uint64) {}), nil, nil).Export(instrument.YieldName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	host := func(_ context.Context, stack []uint64) { *reached++; stack[0] = stack[1] }
	i32 := api.ValueTypeI32
	if _, err := r.NewHostModuleBuilder("h").NewFunctionBuilder().WithGoFunction(api.GoFunc(host),
		[]api.ValueType{i32, i32}, []api.ValueType{i32}).Export("h").Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(ctx, rewrite(t, wasm, instrument.Config{Guards: map[string]instrument.Guard{"h.h": g}}))
	if err != nil {
		t.Fatal(err)
	}
	return func(name string, arg uint32) uint32 {
		t.Helper()
		out, err := m.ExportedFunction(name).Call(ctx, uint64(arg))
		if err != nil {
			t.Fatal(err)
		}
		return uint32(out[0])
	}
}

// TestBulkRanges: a range that ends with the memory is written completely, with any length. If a range ends a byte
// later, or beyond 2^32, nothing is written.
func TestBulkRanges(t *testing.T) {
	const size = 100 << 16
	for _, tt := range []struct {
		name        string
		op          byte
		to, from, n uint32
		traps       bool
	}{
		{"fill, small, at the end", 11, size - 7, 1, 7, false},
		{"fill, small, beyond", 11, size - 7, 1, 8, true},
		{"fill, medium, at the end", 11, size - 5000, 1, 5000, false},
		{"fill, medium, beyond", 11, size - 5000, 1, 5001, true},
		{"fill, large, at the end", 11, size - 3<<20, 1, 3 << 20, false},
		{"fill, large, beyond", 11, size - 3<<20, 1, 3<<20 + 1, true},
		{"fill all", 11, 0, 1, size, false},
		{"fill, 0x7fffffff", 11, 0, 1, 0x7fffffff, true},
		{"fill, 0x80000000", 11, 0, 1, 0x80000000, true},
		{"fill, 0xffffffff", 11, 0, 1, 0xffffffff, true},
		{"fill, beyond 2^32", 11, 0xffffffff, 1, 2<<20 + 1, true},
		{"copy, large, to the end", 10, size - 3<<20, 0, 3 << 20, false},
		{"copy, large, beyond", 10, size - 3<<20, 0, 3<<20 + 1, true},
		{"copy, large, from the end", 10, 0, size - 3<<20, 3 << 20, false},
		{"copy, large, from beyond", 10, 0, size - 3<<20, 3<<20 + 1, true},
		{"copy, large, from beyond 2^32", 10, 0, 0xffffffff, 2<<20 + 1, true},
		{"copy, large, to beyond 2^32", 10, 0xffffffff, 0, 2<<20 + 1, true},
		{"copy, 0x80000000", 10, 0, 0, 0x80000000, true},
		{"copy, 0xffffffff", 10, 1, 0, 0xffffffff, true},
		{"copy over itself, up", 10, 1000, 0, 4<<20 + 5, false},
		{"copy over itself, down", 10, 0, 1000, 4<<20 + 5, false},
		{"copy over itself, up by more than a chunk", 10, 1<<20 + 1, 0, 3<<20 + 5, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.Background()
			run := func(wasm []byte) ([]byte, error) {
				r := wazero.NewRuntime(ctx)
				defer r.Close(ctx)
				nothing := api.GoFunc(func(context.Context, []uint64) {})
				for module, name := range map[string]string{instrument.YieldModule: instrument.YieldName, "h": "h"} {
					if _, err := r.NewHostModuleBuilder(module).NewFunctionBuilder().WithGoFunction(nothing, nil, nil).Export(name).
						Instantiate(ctx); err != nil {
						t.Fatal(err)
					}
				}
				m, err := r.Instantiate(ctx, wasm)
				if err != nil {
					t.Fatal(err)
				}
				memory, _ := m.Memory().Read(0, size)
				for i := range memory {
					memory[i] = byte(i%251) + 2
				}
				_, err = m.ExportedFunction("f").Call(ctx)
				return slices.Clone(memory), err
			}
			body := bulk(tt.op, int(int32(tt.to)), int(int32(tt.from)), int(int32(tt.n)))
			wasm := moduleWithBody(1, body...)
			want, wantErr := run(wasm)
			got, err := run(rewrite(t, wasm, instrument.Config{}))
			if !bytes.Equal(got, want) || (err != nil) != tt.traps || (wantErr != nil) != tt.traps {
				t.Errorf("the memory equals that without metering: %v; error %v, without metering %v", bytes.Equal(got, want), err,
					wantErr)
			}
		})
	}
}
