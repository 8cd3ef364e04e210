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

// moduleWithBody returns a module with memory 0, an import h.h, a table with the import, a passive data segment,
// and two functions with one local each. Function 1 is exported as f, function 2 does nothing.
func moduleWithBody(data int, body ...byte) []byte {
	body = append(append([]byte{1, 1, 0x7f}, body...), 0x0b)
	body = append(leb(len(body)), body...)
	return module([]byte{1, 1, 0x60, 0, 0}, []byte("\x02\x01\x01h\x01h\x00\x00"), []byte{3, 2, 0, 0},
		[]byte{4, 1, 0x70, 0, 1}, []byte{5, 1, 0, 100},
		[]byte("\x07\x01\x01f\x00\x01"), []byte{9, 1, 0, 0x41, 0, 0x0b, 1, 0}, []byte{12, 1},
		append(append([]byte{10, 2}, body...), 4, 1, 1, 0x7f, 0x0b),
		append(append([]byte{11, 1, 1}, leb(data)...), make([]byte, data)...))
}

// millionCalls is a loop that calls function 2 a million times.
var millionCalls = slices.Insert(countToMillion(), 4, 0x10, 2)

// countToMillion returns a loop that counts to 1,000,000 in local 0, with behind after the branch back.
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
// one of two blocks by local 0. After the first block come a thousand instructions and a jump to the second, after
// that back, which leads to the first, 20,000 times.
func dispatchLoop(back ...byte) []byte {
	load := []byte{0x41, 0, 0x28, 2, 0}
	return slices.Concat(
		// loop, block, block, local.get 0, br_table, end
		[]byte{0x03, 0x40, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 2, 0, 1, 1, 0x0b},
		[]byte{0x41, 0}, load, []byte{0x41, 1, 0x6a, 0x36, 2, 0}, bytes.Repeat([]byte{0x01}, 1000), // memory[0]++, nop
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

// TestYieldsWithoutGuestLoops checks that code without loops that takes long yields often enough: calls of the host
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
		{"a loop of a few instructions", moduleWithBody(1, countToMillion()...), instrument.Config{}, 0, 15},
		// br 1, call f
		{"a loop that passes a call by", moduleWithBody(1, countToMillion(0x0c, 1, 0x10, 1)...), instrument.Config{}, 0, 15},
		{"a loop that calls what others pay for", moduleWithBody(1, millionCalls...), instrument.Config{}, 0, 15},
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

// TestUnrollingIsBounded checks that a module full of loops does not grow by each of them.
func TestUnrollingIsBounded(t *testing.T) {
	loop := slices.Insert(countToMillion(), 4, bytes.Repeat([]byte{0x01}, 40)...)
	wasm := moduleWithBody(1, bytes.Repeat(loop, 20_000)...)
	if grown := float64(len(rewrite(t, wasm, instrument.Config{}))) / float64(len(wasm)); grown > 2 {
		t.Errorf("it grows %.1f times, want 2 at most", grown)
	}
}
