package wasm

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/manifest"
)

// TestCheckInterface checks modules that do not match the interface of their kind.
func TestCheckInterface(t *testing.T) {
	m, err := manifest.Parse(manifestFor("text", "1.0.0"), "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	memory, start := export("memory", 2), export("_start", 0)
	command := func(exports ...[]byte) []byte { return testModule([]string{"->"}, []int{0}, [][]byte{{1}}, exports...) }
	for _, c := range []struct {
		name, says string
		wasm       []byte
	}{
		{"a command", "", command(start, memory)},
		{"a WASI function", "", importing("wasi_snapshot_preview1", "proc_exit", "i32->")},
		{"a function that WASI does not have", "which does not exist", importing("wasi_snapshot_preview1", "exit", "i32->")},
		{"a function of another type", "expected (i32->)", importing("wasi_snapshot_preview1", "proc_exit", "i64->")},
		{"a function of the host", "only plugins of kind parley/1", importing("parley", "host", "i32,i32->")},
		{"an unknown module", "wasi_snapshot_preview1; build it without what needs other", importing("other", "f", "->")},
		{"no memory", "does not export", command(start)},
		{"no start", "does not export", command(memory)},
		{"a function named memory", "memory must be a memory", command(start, export("memory", 0))},
		{"a memory named start", "_start must be a function", command(memory, export("_start", 2))},
		{"a start with a result", "has type (->i32)",
			testModule([]string{"->i32"}, []int{0}, [][]byte{{0x41, 1}}, start, memory)},
	} {
		err := module.Check(c.wasm, m)
		if c.says == "" && err == nil {
			continue
		}
		if c.says == "" || !errors.Is(err, host.InvalidPlugin) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

// importing returns a command that imports one function and calls nothing.
func importing(from, name, typ string) []byte {
	params, results, _ := strings.Cut(typ, "->")
	imported := append(append([]byte{0x60}, valueTypes(params)...), valueTypes(results)...)
	text := func(s string) []byte { return append(unsignedLEB(len(s)), s...) }
	return wholeModule(
		section(1, vector([][]byte{imported, {0x60, 0, 0}})),
		section(2, append(append(append([]byte{1}, text(from)...), text(name)...), 0, 0)),
		section(3, []byte{1, 1}), section(5, []byte{1, 0, 1}),
		section(7, vector([][]byte{append(append(text("_start"), 0), 1), export("memory", 2)})),
		section(10, []byte{1, 2, 0, 0x0b}))
}
