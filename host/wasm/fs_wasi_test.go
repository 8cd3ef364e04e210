package wasm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/internal/wasmtest"
)

// TestWASI runs the programs of testdata/wasi, each of which checks one behavior of WASI preview 1 in a folder of its
// own and fails with the line of the check.
func TestWASI(t *testing.T) {
	programs, err := filepath.Glob("testdata/wasi/*.wasm")
	if err != nil || len(programs) < 30 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	e := testEngine(t)
	for _, program := range programs {
		name := strings.TrimSuffix(filepath.Base(program), ".wasm")
		t.Run(name, func(t *testing.T) {
			p := e.Provider(sourceOf(readFile(t, program), wasmtest.Command(t, "guest")))
			r := requestFor(t, p, "run", `{}`)
			r.Grant = grant.Grant{FS: []grant.FS{{Path: "/", Source: linkedFolder(t), Mode: "rw"}}}
			if _, err := invokeRequest(t, p, r); err != nil {
				t.Errorf("%s.c:%s", name, err.Message)
			}
			switch name { // programs that require other system calls also run isolated, where few are allowed
			case "fd_flags_set", "fd_readdir", "path_rename", "readlink", "unstable":
				r.Grant.FS[0].Source = linkedFolder(t)
				if _, err := invokeIsolated(t, p, r); err != nil {
					t.Errorf("isolated: %s.c:%s", name, err.Message)
				}
			}
		})
	}
}

// linkedFolder returns a folder with symbolic links, which guests cannot create.
func linkedFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	if err := os.Mkdir(at("dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"to-file": "file", "to-dir": "dir", "dangling": "none", "loop": "loop", "dir/up": "../file",
		"absolute": at("file"), "out": "../", "out-dangling": "none/../../x", "dir/out": "../../x",
		"round": "dir/../../" + filepath.Base(dir) + "/file",
	} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Skipf("symbolic links are not supported: %v", err)
		}
	}
	return dir
}
