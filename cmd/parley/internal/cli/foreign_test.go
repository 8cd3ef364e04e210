package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/testhome"
)

// foreignManifest is that of a plugin to pack or build.
const foreignManifest = `{"manifest":1,"name":"m","version":"1.0.0","kind":"parley/1","docs":{"brief":"Brief"},
"tools":[{"name":"run","docs":{"brief":"Run"},"params":{"type":"object"},"effect":"read"}]}`

// TestForeignModules gives the module of every toolchain in testdata/foreign, and files that are no modules, to every
// command that takes a module: each says what the file is and what to do.
func TestForeignModules(t *testing.T) {
	home, dir := testhome.New(t), t.TempDir()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "testdata", "foreign", "*.wasm"))
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for name, content := range map[string]string{
		"lfs.wasm":    "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 1\n",
		"utf16.wasm":  "\xff\xfe(\x00m\x00o\x00d\x00u\x00l\x00e\x00)\x00",
		"text.wat":    "(module)",
		"packed.wasm": "\x1f\x8b\x08\x00\x00\x00\x00\x00",
		"zip.wasm":    "PK\x03\x04\x14\x00\x00\x00",
		"elf.wasm":    "\x7fELF\x02\x01\x01\x00",
		"page.wasm":   "<!DOCTYPE html>",
		"glue.mjs":    "import { a } from './b.js'",
		"core.wasm":   "\x00asm\x0d\x00\x01\x00",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	described, out := filepath.Join(dir, "m.json"), filepath.Join(dir, "out")
	if err := os.WriteFile(described, []byte(foreignManifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		_, err := store.ReadCandidate(file, "0.1.0")
		if err == nil {
			t.Errorf("%s is accepted", file)
			continue
		}
		// The rule in the middle depends on the kind of the plugin.
		said := err.Error()[strings.Index(err.Error(), ": ")+2:]
		first, rest, ok := strings.Cut(said, "; ")
		advice := rest[strings.LastIndex(rest, "; ")+1:]
		if !ok || len(advice) < 10 || !strings.HasPrefix(first, "built by ") &&
			!strings.HasPrefix(first, "not a wasm module: this is ") {
			t.Errorf("%s: %v", file, err)
		}
		for _, args := range [][]string{
			{"plugin", "check", file}, {"plugin", "install", file}, {"plugin", "wrap", file, "--out", out},
			{"plugin", "pack", file, "--manifest", described, "--out", out}, {"m", "--load", file}, {"x.y", "--load", file},
			{"mcp", "--load", file}, {"batch", described, "--load", file},
		} {
			_, errs, code := runIn(home, args...)
			if code != 86 || !strings.Contains(errs, first) || !strings.Contains(errs, advice) {
				t.Errorf("parley %s: %d %s, want %q and %q", strings.Join(args, " "), code, errs, first, advice)
			}
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: something was written", file)
		}
	}
}

// runIn runs a command line.
func runIn(home string, args ...string) (out, errs string, code int) {
	var o, e strings.Builder
	env := func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }
	code = Main(args, &command.Streams{In: strings.NewReader(""), Out: &o, Err: &e, Env: env})
	return o.String(), e.String(), code
}

// TestForeignSource builds a plugin whose source imports what only JavaScript has.
func TestForeignSource(t *testing.T) {
	if _, err := exec.LookPath("clang"); err != nil && os.Getenv("CI") == "" {
		t.Skip("clang is missing")
	}
	home, dir := testhome.New(t), t.TempDir()
	for name, content := range map[string]string{"manifest.json": foreignManifest, "m.c": `
__attribute__((import_module("wbg"), import_name("__wbindgen_throw"))) void fail(int at, int size);
__attribute__((export_name("parley_alloc"))) int take(int size) { fail(0, size); return 0; }
__attribute__((export_name("parley_call"))) long long call(int at, int size) { return at + size; }
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"plugin", "build", dir}, {"plugin", "dev", dir, "--once"}} {
		_, errs, code := runIn(home, args...)
		if code != 86 || !strings.Contains(errs, "m: built by wasm-bindgen") {
			t.Errorf("parley %s: %d %s", strings.Join(args, " "), code, errs)
		}
	}
}
