package wasm

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/internal/wasmtest"
)

// Addresses in the memory of a module of allCalls, which has 32 pages.
const (
	vectorAt  = 0       // of the output
	resultsAt = 64      // one byte for each call
	shortAt   = 1 << 10 // a name of one byte
	longAt    = shortAt + 1
	replyAt   = 8 << 10
	zerosAt   = 16 << 10 // up to the end
)

// wasiCall is a call of a WASI function that returns an error number.
type wasiCall struct {
	function string
	args     []int
}

// allCalls returns a command that makes calls and writes a byte for each to stdout: its error number. At longAt it
// has a path whose first maxPath bytes lead to x; with one byte more it leads to xx.
func allCalls(calls []wasiCall) []byte {
	text := func(s string) []byte { return append(unsignedLEB(len(s)), s...) }
	constant := func(typ string, n int) []byte {
		return append([]byte{map[string]byte{"i32": 0x41, "i64": 0x42}[typ]}, signedLEB(n)...)
	}
	var types, imports [][]byte
	body := []byte{0}
	for i, c := range append(calls, wasiCall{"fd_write", []int{1, vectorAt, 1, replyAt}}) {
		params, results, _ := strings.Cut(string(module.WasiFunctions[c.function]), "->")
		types = append(types, slices.Concat([]byte{0x60}, valueTypes(params), valueTypes(results)))
		imports = append(imports, slices.Concat(text(module.WasiModule), text(c.function), []byte{0}, unsignedLEB(i)))
		body = append(body, constant("i32", resultsAt+i)...)
		for j, typ := range strings.Split(params, ",") {
			body = append(body, constant(typ, c.args[j])...)
		}
		body = slices.Concat(body, []byte{0x10}, unsignedLEB(i), []byte{0x3a, 0, 0}) // call it, i32.store8
	}
	body = append(body, 0x0b)
	start := len(imports) // as a type and as a function
	data := func(at int, content string) []byte {
		return slices.Concat([]byte{0}, constant("i32", at), []byte{0x0b}, text(content))
	}
	vectorOfResults := string([]byte{resultsAt, 0, 0, 0, byte(len(calls)), 0, 0, 0})
	return wholeModule(
		section(1, vector(append(types, []byte{0x60, 0, 0}))),
		section(2, vector(imports)),
		section(3, vector([][]byte{unsignedLEB(start)})), section(5, []byte{1, 0, 32}),
		section(7, vector([][]byte{slices.Concat(text("_start"), []byte{0}, unsignedLEB(start)), export("memory", 2)})),
		section(10, vector([][]byte{append(unsignedLEB(len(body)), body...)})),
		section(11, vector([][]byte{data(vectorAt, vectorOfResults),
			data(shortAt, "y."+strings.Repeat("/", module.MaxPath-2)+"xx")})))
}

// TestArgumentLimits calls each WASI function that has a limit with the largest argument that is allowed, and with one
// more.
func TestArgumentLimits(t *testing.T) {
	const (
		noent, notsup, perm = 44, 58, 63

		dir = 3  // the descriptor of the folder
		n   = -1 // stands for the argument
	)
	tests := []struct {
		wasiCall
		limit   int
		allowed byte // the result with the largest argument
		refused byte
	}{
		{wasiCall{"fd_renumber", []int{0, n}}, module.MaxDescriptor, notsup, module.ErrnoBadf},
		{wasiCall{"fd_read", []int{0, zerosAt, n, replyAt}}, module.MaxVectors, 0, module.ErrnoInval},
		{wasiCall{"fd_pread", []int{0, zerosAt, n, 0, replyAt}}, module.MaxVectors, 0, module.ErrnoInval},
		{wasiCall{"fd_write", []int{1, zerosAt, n, replyAt}}, module.MaxVectors, 0, module.ErrnoInval},
		{wasiCall{"fd_pwrite", []int{1, zerosAt, n, 0, replyAt}}, module.MaxVectors, 0, module.ErrnoInval},
		{wasiCall{"poll_oneoff", []int{zerosAt, 1 << 20, n, replyAt}}, module.MaxVectors, 0, module.ErrnoInval},
		{wasiCall{"path_remove_directory", []int{dir, longAt, n}}, module.MaxPath, noent, module.ErrnoNametoolong},
		{wasiCall{"path_unlink_file", []int{dir, longAt, n}}, module.MaxPath, noent, module.ErrnoNametoolong},
		{wasiCall{"path_readlink", []int{dir, longAt, n, zerosAt, 100, replyAt}}, module.MaxPath, noent,
			module.ErrnoNametoolong},
		{wasiCall{"path_open", []int{dir, 0, longAt, n, 0, 2, 0, 0, replyAt}}, module.MaxPath, noent,
			module.ErrnoNametoolong},
		{wasiCall{"path_filestat_get", []int{dir, 0, longAt, n, replyAt}}, module.MaxPath, noent, module.ErrnoNametoolong},
		{wasiCall{"path_filestat_set_times", []int{dir, 0, longAt, n, 0, 0, 5}}, module.MaxPath, noent,
			module.ErrnoNametoolong},
		{wasiCall{"path_link", []int{dir, 0, longAt, n, dir, shortAt, 1}}, module.MaxPath, noent, module.ErrnoNametoolong},
		{wasiCall{"path_link", []int{dir, 0, shortAt, 1, dir, longAt, n}}, module.MaxPath, noent, module.ErrnoNametoolong},
		{wasiCall{"path_rename", []int{dir, longAt, n, dir, shortAt, 1}}, module.MaxPath, noent, module.ErrnoNametoolong},
		{wasiCall{"path_rename", []int{dir, shortAt, 1, dir, longAt, n}}, module.MaxPath, noent, module.ErrnoNametoolong},
		{wasiCall{"path_symlink", []int{longAt, n, dir, shortAt, 1}}, module.MaxPath, perm, module.ErrnoNametoolong},
		{wasiCall{"path_symlink", []int{shortAt, 1, dir, longAt, n}}, module.MaxPath, perm, module.ErrnoNametoolong},
		{wasiCall{"path_create_directory", []int{dir, longAt, n}}, module.MaxPath, 0, module.ErrnoNametoolong},
		{wasiCall{"fd_readdir", []int{dir, zerosAt, n, 0, replyAt}}, module.MaxEntries, 0, module.ErrnoInval},
	}
	var calls []wasiCall
	var want []byte
	for _, tt := range tests {
		for _, given := range []int{tt.limit, tt.limit + 1} {
			args := slices.Clone(tt.args)
			args[slices.Index(args, n)] = given
			calls = append(calls, wasiCall{tt.function, args})
		}
		want = append(want, tt.allowed, tt.refused)
	}
	e := New(Config{}) // compiles in this process, which takes milliseconds for such a module
	defer e.Close(context.Background())
	p := e.Provider(sourceOf(allCalls(calls), wasmtest.Command(t, "guest")))
	r := requestFor(t, p, "run", "{}")
	r.Grant.FS = []grant.FS{{Path: "/data", Source: t.TempDir(), Mode: "rw"}}
	result, err := invokeRequest(t, p, r)
	if err != nil {
		t.Fatal(err)
	}
	var results string
	if err := json.Unmarshal(result.Data, &results); err != nil || len(results) != len(want) {
		t.Fatalf("%q, %v", results, err)
	}
	for i, c := range calls {
		if results[i] != want[i] {
			t.Errorf("%s %v: error number %d, want %d", c.function, c.args, results[i], want[i])
		}
	}
}
