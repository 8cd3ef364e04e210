package wasm

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/cache"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest/sections"
)

// TestHashedBytesRun replaces the wasm of a plugin after it was hashed and before it is compiled. The bytes that
// were hashed run; the next reader refuses the file.
func TestHashedBytesRun(t *testing.T) {
	s := store.Open(t.TempDir(), nil)
	entry, _, err := s.Install(readCandidateFrom(t, writeEmbeddedPlugin(t, emptyCommand, "swap", "1.0.0")), false)
	if err != nil {
		t.Fatal(err)
	}
	trap := readFile(t, writeEmbeddedPlugin(t, trapCommand, "swap", "1.0.0"))
	path := s.Source(entry).File
	source := s.Source(entry)
	hashed, reads := source.Wasm, 0
	source.Wasm = func() ([]byte, error) {
		data, err := hashed()
		put(t, path, trap)
		reads++
		return data, err
	}
	e := New(Config{HostVersion: "0.1.0"}) // without a cache, so that it is compiled now
	defer e.Close(context.Background())
	if _, err := invoke(t, e.Provider(source), "run", `{}`); err != nil {
		t.Errorf("the hashed wasm did not run: %v", err)
	}
	if reads != 1 || !bytes.Equal(readFile(t, path), trap) {
		t.Fatalf("the file was read %d times, or was not replaced", reads)
	}
	_, failed := invoke(t, e.Provider(s.Source(entry)), "run", `{}`)
	if failed == nil || failed.Code != host.Integrity {
		t.Errorf("the replaced file returns %v", failed)
	}
	// Running the other module would have been detected.
	c := readCandidateFrom(t, writeEmbeddedPlugin(t, trapCommand, "swap", "1.0.0"))
	if _, failed := invoke(t, e.Provider(c.Source()), "run", `{}`); failed == nil || failed.Code != host.Trapped {
		t.Errorf("the other module returns %v", failed)
	}
}

// TestUnchangedFileIsNotRead calls an installed plugin with an engine for each call. Its file is read again if it may
// have changed while it was read, and else only after it has changed, even if size and modification time are the same.
func TestUnchangedFileIsNotRead(t *testing.T) {
	s := store.Open(t.TempDir(), nil)
	entry, _, err := s.Install(readCandidateFrom(t, writeEmbeddedPlugin(t, emptyCommand, "still", "1.0.0")), false)
	if err != nil {
		t.Fatal(err)
	}
	kept, reads := t.TempDir(), 0
	call := func(want int) error {
		t.Helper()
		reads = 0
		source := s.Source(entry)
		read := source.Wasm
		source.Wasm = func() ([]byte, error) { reads++; return read() }
		e := New(Config{HostVersion: "0.1.0", CacheDir: kept})
		defer e.Close(context.Background())
		_, failed := invoke(t, e.Provider(source), "run", `{}`)
		if reads != want {
			t.Errorf("the file was read %d times, expected %d", reads, want)
		}
		if failed != nil {
			return failed
		}
		return nil
	}
	path := s.Source(entry).File
	setChecked := func(after time.Duration) { // as if the file had been read this long after its last change
		records, _ := filepath.Glob(filepath.Join(kept, "*", cache.InstalledName))
		for _, record := range records {
			var f cache.Installed
			if err := json.Unmarshal(readFile(t, record), &f); err != nil || f.Name != path {
				t.Fatalf("%+v, %v", f, err)
			}
			f.Checked = f.Changed.Add(after)
			put(t, record, guest.Marshal(f))
		}
	}
	for _, c := range []struct {
		reads   int
		checked time.Duration
	}{{1, 0}, {1, cache.SettleTime / 2}, {1, 2 * cache.SettleTime}, {0, 2 * cache.SettleTime}, {0, cache.SettleTime},
		{1, 2 * cache.SettleTime}} {
		if err := call(c.reads); err != nil {
			t.Fatal(err)
		}
		setChecked(c.checked)
	}
	whole := readFile(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(whole)
	changed[len(changed)-1] ^= 1
	put(t, path, changed)
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		wantError(t, "changed", call(1), host.Integrity, "does not match")
		setChecked(2 * cache.SettleTime)
	}
	put(t, path, whole)
	if err := call(1); err != nil {
		t.Error(err)
	}
}

// emptyCommand is (module (memory (export "memory") 1) (func (export "_start"))).
var emptyCommand, _ = hex.DecodeString(
	"0061736d01000000010401600000030201000503010001071302066d656" +
		"d6f72790200065f737461727400000a040102000b")

func manifestFor(name, version string) []byte {
	return fmt.Appendf(nil, `{"manifest":1,"name":%q,"version":%q,"kind":"wasi","docs":{"brief":"Plugin %s"},
		"tools":[{"name":"run","docs":{"brief":"Run it"},"effect":"read","params":{"type":"object","properties":{}}}]}`, name, version, name)
}

func wantError(t *testing.T, what string, err error, code host.Code, text string) {
	t.Helper()
	var e *host.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Message, text) {
		t.Errorf("%s: got %v, want %s with %q", what, err, code, text)
	}
}

func put(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// trapCommand is emptyCommand with one instruction, unreachable.
var trapCommand, _ = hex.DecodeString(
	"0061736d01000000010401600000030201000503010001071302066d656" +
		"d6f72790200065f737461727400000a05010300000b")

// writeEmbeddedPlugin writes a plugin file with the manifest of manifestFor embedded, in a folder of its own.
func writeEmbeddedPlugin(t testing.TB, code []byte, name, version string) string {
	t.Helper()
	whole, err := sections.WriteManifest(code, manifestFor(name, version))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".wasm")
	put(t, path, whole)
	return path
}

func readCandidateFrom(t testing.TB, path string) *store.Candidate {
	t.Helper()
	c, err := store.ReadCandidate(path, "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	return c
}
