package wasm

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/cache"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/wasmtest"
	"github.com/parley-tools/parley/manifest"
)

// fuzzPaths are the paths that statements choose from.
var fuzzPaths = []string{".", "..", "file", "dir", "dir/deep", "in-file", "in-dir", "out-file", "out-dir", "up",
	"up/secret", "self", "self/file", "loop",
	"new", "new/new", "dir/new", "pipe", "socket", "../outside/secret", "/", "", "root/etc", "~00", "~ff", "dir/../file",
	"file/", "chain55", "in.json", "out.json", "dangling"}

// fuzzScript turns bytes into statements of wasi.c: one byte chooses the function, further bytes its arguments.
func fuzzScript(data []byte) string {
	names := slices.Sorted(maps.Keys(module.WasiFunctions))
	names = slices.DeleteFunc(names, func(n string) bool { return n == "proc_exit" })
	next := func() byte {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return b
	}
	var script strings.Builder
	for n := 0; len(data) > 0 && n < 50; n++ {
		name := names[int(next())%len(names)]
		params, _, _ := strings.Cut(string(module.WasiFunctions[name]), "->")
		script.WriteString(name)
		for remaining := strings.Count(params, ",") + 1; remaining > 0 && params != ""; remaining-- {
			script.WriteByte(' ')
			b := next()
			switch {
			case b < 64:
				fmt.Fprint(&script, b%8)
			case b < 112 && remaining >= 2:
				fmt.Fprintf(&script, "'%s'", fuzzPaths[int(next())%len(fuzzPaths)])
				remaining--
			case b < 128 && remaining >= 2:
				fmt.Fprintf(&script, "<%d*%d>", int(next())*int(next())*8, next()%8)
				remaining--
			case b < 160:
				script.WriteByte('@')
			case b < 192:
				script.WriteByte('$')
			case b < 208:
				script.WriteByte('^')
			case b < 232:
				fmt.Fprint(&script, 1<<(b%8))
			default:
				var number [8]byte
				for i := range number {
					number[i] = next()
				}
				fmt.Fprint(&script, int64(binary.LittleEndian.Uint64(number[:])))
			}
		}
		script.WriteByte(';')
	}
	return script.String()
}

// FuzzWASI checks that a call ends in time with any calls of WASI functions, and that nothing outside its folders
// is read or changed.
func FuzzWASI(f *testing.F) {
	m := wasmtest.Scripted(f)
	m.Tools[0].WASI.Files = []manifest.WASIFile{{Path: "/in.json", From: "{script}"}}
	m.Tools[0].WASI.Output = "file:/out.json"
	p := testEngine(f).Provider(sourceOf(wasmtest.Hostile(f, "wasi.wasm"), m))
	inside, outside := tree(f)
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("not yours"), 0o600); err != nil {
		f.Fatal(err)
	}
	before := snapshot(f, outside)
	for i := range 64 {
		f.Add([]byte(strings.Repeat(string([]byte{byte(i), 4, 64, byte(i), 130, 1, 66, 216, 130, 170}), 3)))
	}
	runs := 0
	f.Fuzz(func(t *testing.T, data []byte) {
		script := fuzzScript(data)
		r := requestFor(t, p, "run", string(guest.Marshal(map[string]string{"script": script})))
		r.Options.Timeout = time.Second
		r.Grant.FS = []grant.FS{{Path: "/data", Source: inside, Mode: []string{"ro", "rw"}[len(data)%2]}}
		on(r, job.EventLog, func(e job.Event) { wasmtest.CheckDisplayed(t, "the log", e.Message) })
		start := time.Now()
		result, err := invokeRequest(t, p, r)
		if elapsed := time.Since(start); elapsed > 10*time.Second {
			t.Errorf("%s\nended after %v", script, elapsed)
		}
		if err != nil {
			wasmtest.CheckAllDisplayed(t, "the error", err.Object())
		} else if strings.Contains(string(result.Data), "not yours") {
			t.Errorf("%s\nreads a file outside", script)
		}
		if changes := changesIn(before, snapshot(t, outside)); changes != "" {
			t.Errorf("%s\nchanged files outside:\n%s", script, changes)
		}
		if runs++; runs%1000 == 0 {
			emptied(t, inside)
		}
	})
}

// emptied removes the files that many runs have created.
func emptied(t testing.TB, dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			_ = os.Truncate(path, 0)
		}
		return nil
	})
	for _, name := range []string{"new", "hard", "moved"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// FuzzStderr checks that each byte of stderr is forwarded, counted as dropped, or removed as hidden, however the
// guest splits its output.
func FuzzStderr(f *testing.F) {
	f.Add([]byte("one\ntwo\n\nthree"), uint8(3))
	f.Add([]byte("\x1b[2J\xff\xfe\n\u202e\n"), uint8(1))
	f.Add([]byte(strings.Repeat("x", 5000)+"\n"+strings.Repeat("\n", 100)), uint8(200))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		c := fuzzCall()
		c.Control.Ctx, c.Control.Deadline = t.Context(), time.Now().Add(time.Hour)
		c.Control.Limits.Log = 1000
		var lines []string
		on(c.Request, job.EventLog, func(e job.Event) { lines = append(lines, e.Message) })
		c.Capture(&world.Capture{Control: c.Control})
		for rest := data; len(rest) > 0; {
			n := min(len(rest), int(size)+1)
			if wrote, err := c.Streams.Stderr.Write(rest[:n]); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
			rest = rest[n:]
		}
		c.Streams.Stderr.Flush()
		total := 0
		for _, line := range lines {
			total += len(line)
			if strings.IndexFunc(line, manifest.Hidden) >= 0 || !utf8.ValidString(line) || strings.Contains(line, "\n") {
				t.Errorf("%q", line)
			}
		}
		if c.Streams.Stderr.Total != len(data) || c.Streams.Stderr.Forwarded+c.Streams.Stderr.Dropped > len(data) ||
			c.Streams.Stderr.Dropped > 0 != strings.Contains(strings.Join(lines, "\n"), "more bytes on stderr are not shown") {
			t.Errorf("of %d bytes %d were forwarded and %d dropped", len(data), c.Streams.Stderr.Forwarded,
				c.Streams.Stderr.Dropped)
		}
		if total > 4*(c.Control.Limits.Log+world.StderrExcerpt)+1000 {
			t.Errorf("%d bytes were passed on", total)
		}
		head, tail := c.Streams.Stderr.Excerpts()
		if len(head) > world.StderrExcerpt || len(tail) > world.StderrExcerpt || !strings.HasPrefix(string(data), head) {
			t.Errorf("%d and %d bytes are kept", len(head), len(tail))
		}
	})
}

// FuzzStub checks that the engine accepts the stub of an instrumented module, with the same imports, exports and
// types.
func FuzzStub(f *testing.F) {
	for _, a := range loadAttacks(f) {
		if strings.HasSuffix(a.Source, ".wasm") || strings.HasPrefix(a.Source, "hex:") {
			f.Add(wasmtest.Hostile(f, a.Source))
		}
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := instrument.Rewrite(wasm, instrument.Config{MaxPages: world.MaxPages, Guards: module.WasiGuards()})
		if err != nil {
			return
		}
		again, err := instrument.Rewrite(instrument.Stub(m.Wasm), instrument.Config{MaxPages: world.MaxPages, Plain: true})
		if err != nil {
			t.Fatalf("the stub of %x is refused: %v", wasm, err)
		}
		whole, err := instrument.Rewrite(m.Wasm, instrument.Config{MaxPages: world.MaxPages, Plain: true})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(again.Imports, again.Exports, again.MemoryMin, again.MemoryMax,
			again.HasStart) != fmt.Sprint(whole.Imports, whole.Exports, whole.MemoryMin, whole.MemoryMax, whole.HasStart) {
			t.Errorf("%x: the stub is a different module", wasm)
		}
	})
}

// FuzzCandidate checks that any file is a plugin, or refused with a reason that can be displayed.
func FuzzCandidate(f *testing.F) {
	for _, kind := range []string{"twice", "last", "name longer than the section", "empty"} {
		f.Add(readFile(f, writePlugin(f, "module: "+kind)), false)
	}
	f.Add(readFile(f, writePlugin(f, "/x-note = 1")), true)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, packed bool) {
		path := filepath.Join(dir, "x.wasm")
		if packed {
			path += ".gz"
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := store.ReadCandidate(path, "0.1.0")
		if err == nil {
			renderAll(t, c)
			return
		}
		wasmtest.CheckAllDisplayed(t, "the error", host.AsError(err).Object())
	})
}

// FuzzChecksums checks that any content of the cache is a valid slot or is refused.
func FuzzChecksums(f *testing.F) {
	f.Add([]byte(`{"key":"k","module":{},"stub":{"name":"stub.wasm","sha256":"x"},"code":{"name":"code","sha256":"y"}}`),
		[]byte("stub"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, sums, stub []byte) {
		for name, data := range map[string][]byte{cache.ChecksumsName: sums, cache.StubName: stub, "code": []byte("code")} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := cache.Slot{Dir: dir, Key: "k"}
		got, err := s.Read()
		if err == nil && (got.Key != "k" || string(got.Module.Wasm) != string(stub)) {
			t.Errorf("%+v", got)
		}
	})
}
