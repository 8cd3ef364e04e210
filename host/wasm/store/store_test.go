package store

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/internal/durable/durabletest"
	"github.com/parley-tools/parley/manifest/sections"
	"github.com/parley-tools/parley/manifest/spelling"
)

// emptyCommand is (module (memory (export "memory") 1) (func (export "_start"))).
var emptyCommand, _ = hex.DecodeString(
	"0061736d01000000010401600000030201000503010001071302066d656" +
		"d6f72790200065f737461727400000a040102000b")

func manifestFor(name, version string) []byte {
	return fmt.Appendf(nil, `{"manifest":1,"name":%q,"version":%q,"kind":"wasi","docs":{"brief":"Plugin %s"},
		"tools":[{"name":"run","docs":{"brief":"Run it"},"effect":"read","params":{"type":"object","properties":{}}}]}`, name, version, name)
}

// moduleFor returns a command of about size bytes with its manifest embedded.
func moduleFor(t testing.TB, name, version string, size int) []byte {
	t.Helper()
	padding := append([]byte{3, 'p', 'a', 'd'}, bytes.Repeat([]byte(version[len(version)-1:]), size)...)
	body := []byte{byte(len(padding)&0x7f | 0x80), byte(len(padding)>>7&0x7f | 0x80), byte(len(padding) >> 14 & 0x7f)}
	wasm, err := sections.WriteManifest(append(append(append(bytes.Clone(emptyCommand), 0), body...), padding...),
		manifestFor(name, version))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func candidate(t testing.TB, name, version string) *Candidate {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".wasm")
	put(t, path, moduleFor(t, name, version, 50_000))
	c, err := ReadCandidate(path, "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestInstallListRemove(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "data", "plugins"), nil)
	if entries, err := s.List(); err != nil || len(entries) != 0 {
		t.Fatalf("an empty store lists %v, %v", entries, err)
	}
	for _, name := range []string{"zeta", "Alpha", "mid"} {
		c := candidate(t, name, "1.0.0")
		now, before, err := s.Install(c, false)
		if err != nil || before != nil {
			t.Fatalf("install: %v, %v", before, err)
		}
		if now.Name != name || now.Version != "1.0.0" || now.Kind != "wasi" || now.Tools != 1 || now.Brief != "Plugin "+
			name ||
			now.Digest != c.Digest || now.WasmSize != int64(len(c.Wasm)) || now.Source != c.Path ||
			time.Since(now.InstalledAt) > time.Hour {
			t.Errorf("entry %+v", now)
		}
		for file, want := range map[string][]byte{"plugin.wasm": c.Wasm, "manifest.json": c.ManifestJSON} {
			got, err := os.ReadFile(filepath.Join(s.Dir, name, strings.TrimPrefix(c.Digest, "sha256:"), file))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs: %v", file, err)
			}
		}
		checkSource(t, s.Source(now), c)
	}
	if got := names(t, s); got != "Alpha mid zeta" {
		t.Errorf("list: %s", got)
	}
	gone, err := s.Remove("ALPHA")
	if err != nil || gone.Name != "Alpha" {
		t.Errorf("remove: %+v, %v", gone, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "Alpha")); !os.IsNotExist(err) {
		t.Errorf("its files still exist: %v", err)
	}
	if got := names(t, s); got != "mid zeta" {
		t.Errorf("list: %s", got)
	}
	for _, name := range []string{"mid", "zeta"} {
		if _, err := s.Remove(name); err != nil {
			t.Error(err)
		}
	}
	if got := names(t, s); got != "" {
		t.Errorf("list: %s", got)
	}
}

func TestRemoveMissing(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "plugins"), nil)
	wantError(t, "empty store", second(s.Remove("text")), host.NotFound, `no plugin "text" is installed`)
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Error("Remove created the folder")
	}
	install(t, s, "text", "1.0.0")
	err := second(s.Remove("texd"))
	wantError(t, "typo", err, host.NotFound, `no plugin "texd" is installed`)
	if got := host.AsError(err).DidYouMean; len(got) != 1 || got[0] != (spelling.Near{Name: "text", Distance: 1}) {
		t.Errorf("did you mean %v", got)
	}
	wantError(t, "find", second(s.Find("texd")), host.NotFound, "texd")
	wantError(t, "path", second(s.Remove("../..")), host.NotFound, "../..")
}

func TestUpgradeReplaces(t *testing.T) {
	s := Open(t.TempDir(), nil)
	old, _ := install(t, s, "text", "1.0.0")
	source := s.Source(old)
	now, before := install(t, s, "Text", "2.0.0")
	if before == nil || before.Version != "1.0.0" || now.Version != "2.0.0" || names(t, s) != "Text" {
		t.Errorf("now %+v, before %+v", now, before)
	}
	if _, err := source.Wasm(); err != nil {
		t.Errorf("a call in progress ends with: %v", err)
	}
	late := s.Source(old)
	install(t, s, "other", "1.0.0") // the next change removes the old version
	_, err := late.Manifest()
	wantError(t, "late", err, host.Unavailable, "was replaced or removed while it was used; run it again")
	if remaining := digestDirs(t, s.Dir); len(remaining) != 2 {
		t.Errorf("folders %v", remaining)
	}
}

func TestReinstallIsNoOp(t *testing.T) {
	s := Open(t.TempDir(), nil)
	c := candidate(t, "text", "1.0.0")
	first, _, err := s.Install(c, false)
	if err != nil {
		t.Fatal(err)
	}
	lock := content(t, s.LockPath())
	c.Path = "/elsewhere.wasm"
	again, before, err := s.Install(c, false)
	if err != nil || before == nil || *before != first || again != first {
		t.Errorf("again %+v, before %+v, %v", again, before, err)
	}
	if got := content(t, s.LockPath()); got != lock {
		t.Errorf("the lock changed to %s", got)
	}
}

func TestReservedNames(t *testing.T) {
	s := Open(t.TempDir(), nil)
	for _, name := range []string{"cdp", "CDP", "plugin", "serve"} {
		path := filepath.Join(t.TempDir(), "x.wasm")
		put(t, path, moduleFor(t, name, "1.0.0", 10))
		_, err := ReadCandidate(path, "0.1.0")
		wantError(t, name, err, host.AlreadyExists, `cannot be named "`+name+`"`)
	}
	c := candidate(t, "text", "1.0.0")
	c.Manifest.Name = "../evil"
	_, _, err := s.Install(c, false)
	wantError(t, "path", err, host.InvalidPlugin, "not a valid plugin name")
}

func TestDamagedLock(t *testing.T) {
	good := `{"name":"text","digest":"sha256:` + strings.Repeat("a", 64) + `"}`
	tests := map[string]string{
		"empty":             ``,
		"cut":               `{"version":1,"plugins":[{"name":`,
		"text":              `hello`,
		"a newer version":   `{"version":2,"plugins":[]}`,
		"a path for a name": `{"version":1,"plugins":[{"name":"../x","digest":"sha256:` + strings.Repeat("a", 64) + `"}]}`,
		"a path for digest": `{"version":1,"plugins":[{"name":"x","digest":"sha256:../../../../x"}]}`,
		"no digest":         `{"version":1,"plugins":[{"name":"x"}]}`,
		"twice":             `{"version":1,"plugins":[` + good + `,` + strings.Replace(good, "text", "TEXT", 1) + `]}`,
		"NUL bytes":         strings.Repeat("\x00", 100),
	}
	for name, lock := range tests {
		s := Open(t.TempDir(), nil)
		entry, _ := install(t, s, "text", "1.0.0")
		put(t, s.LockPath(), []byte(lock))
		_, err := s.List()
		wantError(t, name, err, host.ConfigError, s.LockPath())
		_, _, err = s.Install(candidate(t, "other", "1.0.0"), false)
		wantError(t, name, err, host.ConfigError, s.LockPath())
		wantError(t, name, second(s.Remove("text")), host.ConfigError, s.LockPath())
		if got := content(t, s.LockPath()); got != lock {
			t.Errorf("%s: the lock became %q", name, got)
		}
		// The advice in the error works.
		if _, err := ReadCandidate(s.pluginDir(entry), "0.1.0"); err != nil {
			t.Errorf("%s: the folder of a plugin cannot be installed again: %v", name, err)
		}
	}
}

func FuzzLock(f *testing.F) {
	f.Add([]byte(`{"version":1,"plugins":[]}`))
	f.Add([]byte(`{"version":1,"plugins":[{"name":"text","digest":"sha256:` + strings.Repeat("a", 64) +
		`","installed_at":"2026-07-01T00:00:00Z"}]}`))
	whole, err := EncodeEntries([]Entry{
		NewEntry(candidate(f, "text", "1.0.0")),
		{Name: "b", Digest: "sha256:" + strings.Repeat("b", 64), Brief: `<ä> "quoted" \\ …`, Source: "C:\\x", Tools: 12,
			WasmSize: -1, Signer: "RWS16PaZ"},
	})
	if err != nil {
		f.Fatal(err)
	}
	if lines, ok := decodeLines(string(whole)); !ok || len(lines) != 2 {
		f.Errorf("decodeLines does not accept the output of EncodeEntries: %+v", lines)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, data []byte) {
		if lines, ok := decodeLines(string(data)); ok {
			var l lockFile
			if err := json.Unmarshal(data, &l); err != nil || l.Version != lockVersion ||
				!reflect.DeepEqual(lines, l.Plugins) {
				t.Fatalf("%q: by line %+v, by encoding/json %+v, %v", data, lines, l, err)
			}
		}
		entries, err := DecodeEntries(string(data))
		if err != nil {
			return
		}
		encoded, err := EncodeEntries(entries)
		if err != nil {
			return // a time that RFC 3339 cannot represent
		}
		again, err := DecodeEntries(string(encoded))
		if err != nil || len(again) != len(entries) {
			t.Fatalf("%q: written as %q, read as %v, %v", data, encoded, again, err)
		}
		for _, e := range entries {
			if dir := filepath.Join("plugins", e.Name, hexOf(e.Digest)); filepath.Dir(filepath.Dir(dir)) != "plugins" {
				t.Fatalf("%q leads to %s", data, dir)
			}
		}
	})
}

func TestModifiedFilesAreRefused(t *testing.T) {
	other := candidate(t, "text", "6.6.6")
	tests := []struct {
		name     string
		file     string
		data     []byte // nil removes it
		manifest host.Code
		wasm     host.Code
		text     string
	}{
		{"another manifest", manifestName, other.ManifestJSON, host.Integrity, host.Integrity,
			"is not the one that was installed"},
		{"an empty manifest", manifestName, []byte{}, host.Integrity, host.Integrity, "is not the one that was " +
			"installed"},
		{"no manifest", manifestName, nil, host.InvalidPlugin, host.InvalidPlugin, "is missing"},
		{"another wasm", wasmName, other.Wasm, "", host.Integrity, "is not the one that was installed"},
		{"no wasm", wasmName, nil, "", host.InvalidPlugin, "is missing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Open(t.TempDir(), nil)
			c := candidate(t, "text", "1.0.0")
			entry, _, err := s.Install(c, false)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(s.pluginDir(entry), tt.file)
			if tt.data == nil {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				put(t, path, tt.data)
			}
			source := s.Source(entry)
			for part, want := range map[string]host.Code{"manifest": tt.manifest, "wasm": tt.wasm} {
				var err error
				if part == "manifest" {
					_, err = source.Manifest()
				} else {
					_, err = source.Wasm()
				}
				if want == "" {
					if err != nil {
						t.Errorf("%s: %v", part, err)
					}
					continue
				}
				wantError(t, part, err, want, tt.text)
				if got, want := fmt.Sprint(host.AsError(err).Steps), "[plugin install "+c.Path+"]"; got != want {
					t.Errorf("%s: steps %s, want %s", part, got, want)
				}
			}
			// Installing it again repairs it.
			if _, before, err := s.Install(c, false); err != nil || before == nil || before.Digest != c.Digest {
				t.Fatalf("again: %v, %v", before, err)
			}
			checkSource(t, s.Source(entry), c)
		})
	}
}

// TestForgedLockRunsNothing: someone who edits a manifest and its hash in the lock file can show it but cannot run
// the plugin under it.
func TestForgedLockRunsNothing(t *testing.T) {
	s := Open(t.TempDir(), nil)
	entry, _ := install(t, s, "text", "1.0.0")
	forged := NewEntry(candidate(t, "text", "6.6.6"))
	put(t, filepath.Join(s.pluginDir(entry), manifestName), candidate(t, "text", "6.6.6").ManifestJSON)
	entry.ManifestSHA256 = forged.ManifestSHA256
	_, err := s.Source(entry).Wasm()
	wantError(t, "wasm", err, host.Integrity, entry.Digest)
}

func TestSegmentIsRebuilt(t *testing.T) {
	var logged []string
	s := Open(t.TempDir(), func(line string) { logged = append(logged, line) })
	c := candidate(t, "text", "1.0.0")
	entry, _, err := s.Install(c, false)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.pluginDir(entry), segmentName)
	whole := content(t, path)
	for name, damaged := range map[string]string{
		"empty": "", "text": "hello", "cut": whole[:len(whole)-1], "no digest": whole[len(entry.Digest)+1:],
		"another plugin's": strings.Replace(whole, entry.Digest, candidate(t, "other", "1.0.0").Digest, 1),
		"a bit":            whole[:len(whole)-5] + string(whole[len(whole)-5]^1) + whole[len(whole)-4:],
		"gone":             "gone",
	} {
		put(t, path, []byte(damaged))
		if name == "gone" {
			os.Remove(path)
		}
		logged = nil
		checkSource(t, s.Source(entry), c)
		if len(logged) != 1 || !strings.Contains(logged[0], path+": rebuilt: ") {
			t.Errorf("%s: logged %q", name, logged)
		}
		if content(t, path) != whole {
			t.Errorf("%s: the segment was not saved", name)
		}
	}
	logged = nil
	checkSource(t, s.Source(entry), c)
	if len(logged) != 0 {
		t.Errorf("logged %q for a valid segment", logged)
	}
	// While the store is being changed, the segment is rebuilt but not saved.
	put(t, path, nil)
	unlock, err := s.Lock(0)
	if err != nil {
		t.Fatal(err)
	}
	checkSource(t, s.Source(entry), c)
	unlock()
	if content(t, path) != "" {
		t.Error("the segment was saved while another process held the lock")
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	var logged []string
	s := Open(t.TempDir(), func(line string) { logged = append(logged, line) })
	install(t, s, "text", "1.0.0")
	hash := strings.Repeat("0", 64)
	leftovers := []string{filepath.Join("text", hash), filepath.Join("killed", hash), lockName + TempSuffix,
		filepath.Join(approvedDir, hash+"-"+hash+approvedSuffix+TempSuffix)}
	foreign := []string{"README", filepath.Join("text", "notes"), filepath.Join("mine", "file")}
	for _, dir := range leftovers[:2] {
		put(t, filepath.Join(s.Dir, dir, wasmName+TempSuffix), []byte("half"))
	}
	for _, file := range leftovers[2:] {
		put(t, filepath.Join(s.Dir, file), []byte("half"))
	}
	for _, f := range foreign {
		put(t, filepath.Join(s.Dir, f), []byte("mine"))
	}
	logged = nil
	if got := names(t, s); got != "text" {
		t.Errorf("list: %s", got)
	}
	for _, path := range leftovers {
		if want := filepath.Join(s.Dir, path) + ": ignored"; !strings.Contains(strings.Join(logged, "\n"), want) {
			t.Errorf("logged %q, want %q", logged, want)
		}
	}
	install(t, s, "other", "1.0.0")
	for _, path := range append(leftovers, "killed") {
		if _, err := os.Lstat(filepath.Join(s.Dir, path)); !os.IsNotExist(err) {
			t.Errorf("%s still exists", path)
		}
	}
	for _, path := range foreign {
		if _, err := os.Lstat(filepath.Join(s.Dir, path)); err != nil {
			t.Errorf("%s was removed, but is not Parley's", path)
		}
	}
}

func TestBusy(t *testing.T) {
	s := Open(t.TempDir(), nil)
	install(t, s, "text", "1.0.0")
	unlock, err := s.Lock(0)
	if err != nil {
		t.Fatal(err)
	}
	s.Wait = 50 * time.Millisecond
	_, _, err = s.Install(candidate(t, "other", "1.0.0"), false)
	wantError(t, "install", err, host.Busy, "another install or remove")
	wantError(t, "remove", second(s.Remove("text")), host.Busy, "nothing was changed")
	if got := names(t, s); got != "text" {
		t.Errorf("list: %s", got)
	}
	unlock()
	install(t, s, "other", "1.0.0")
}

func TestConcurrentChanges(t *testing.T) {
	s := Open(t.TempDir(), nil)
	candidates := make([]*Candidate, 12)
	for i := range candidates {
		candidates[i] = candidate(t, fmt.Sprintf("p%02d", i), "1.0.0")
	}
	var wg sync.WaitGroup
	for i, c := range candidates {
		wg.Go(func() {
			if _, _, err := s.Install(c, false); err != nil {
				t.Errorf("install %d: %v", i, err)
			}
			if i%3 == 0 {
				if _, err := s.Remove(c.Manifest.Name); err != nil {
					t.Errorf("remove %d: %v", i, err)
				}
			}
			if _, err := s.List(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := names(t, s); got != "p01 p02 p04 p05 p07 p08 p10 p11" {
		t.Errorf("list: %s", got)
	}
}

// TestStoreChild is the process that TestKill kills. It changes a store forever.
func TestStoreChild(t *testing.T) {
	dir := os.Getenv("PARLEY_TEST_STORE")
	if dir == "" {
		return
	}
	s := Open(dir, nil)
	a, b := candidate(t, "text", "1.0.0"), candidate(t, "text", "2.0.0")
	fmt.Println("ready")
	for i := 0; ; i++ {
		for _, c := range []*Candidate{a, b} {
			if _, _, err := s.Install(c, true); err != nil {
				t.Fatal(err)
			}
		}
		if i%2 == 1 {
			if _, err := s.Remove("text"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestKill(t *testing.T) {
	rounds := 8
	if hammer {
		rounds = 30
	}
	dir := t.TempDir()
	s := Open(dir, nil)
	keep := candidate(t, "keep", "1.0.0")
	if _, _, err := s.Install(keep, false); err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		child := exec.Command(os.Args[0], "-test.run=^TestStoreChild$", "-test.timeout=60s")
		child.Env = append(os.Environ(), "PARLEY_TEST_STORE="+dir, "TMPDIR="+t.TempDir()) // it cannot remove its own
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			child.Process.Kill()
			child.Wait()
			t.Fatalf("the child printed %q, %v", line, err)
		}
		for until := time.Now().Add(rand.N(40 * time.Millisecond)); time.Now().Before(until); {
			if _, err := s.List(); err != nil { // readers require no lock
				t.Fatalf("round %d, while the child runs: %v", round, err)
			}
		}
		child.Process.Kill()
		child.Wait()

		entries, err := s.List()
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for _, e := range entries {
			source := s.Source(e)
			m, err := source.Manifest()
			if err != nil || m.Name != e.Name || m.Version != e.Version {
				t.Fatalf("round %d: %+v has the manifest %+v, %v", round, e, m, err)
			}
			if _, err := source.Wasm(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if seg, err := source.Segment(); err != nil || segment.Check(seg) != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if at := indexOf(entries, "keep"); at < 0 || len(entries) > 2 {
			t.Fatalf("round %d: %+v", round, entries)
		}
	}
	install(t, s, "last", "1.0.0")
	entries, _ := s.List()
	if dirs := digestDirs(t, dir); len(dirs) != len(entries) {
		t.Errorf("left behind: %v for %d plugins", dirs, len(entries))
	}
	var temps []string
	filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
		if strings.HasSuffix(path, TempSuffix) {
			temps = append(temps, path)
		}
		return nil
	})
	if len(temps) > 0 {
		t.Errorf("left behind: %v", temps)
	}
}

// TestCannotWrite uses a file in place of the folder.
func TestCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, nil)
	s := Open(filepath.Join(file, "plugins"), nil)
	_, _, err := s.Install(candidate(t, "text", "1.0.0"), false)
	wantError(t, "install", err, host.Unavailable, "not a directory")
	wantError(t, "install", err, host.Unavailable, file)
}

func TestReadCandidate(t *testing.T) {
	const version = "0.1.0"
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	with := moduleFor(t, "text", "1.0.0", 100)
	zipped := func(data []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(data)
		z.Close()
		return b.Bytes()
	}
	spaced := func(doc []byte) []byte {
		var b bytes.Buffer
		json.Indent(&b, doc, "", "    ")
		return b.Bytes()
	}
	for name, data := range map[string][]byte{
		"good.wasm": with, "good.wasm.gz": zipped(with),
		"beside.wasm": emptyCommand, "beside.manifest.json": manifestFor("text", "1.0.0"),
		"both.wasm": with, "both.manifest.json": spaced(manifestFor("text", "1.0.0")),
		"differ.wasm": with, "differ.manifest.json": manifestFor("text", "2.0.0"),
		"one/x.wasm": with, "one/README": nil,
		"pair/plugin.wasm": with, "pair/plugin.wasm.gz": zipped(with), "gz/plugin.wasm.gz": zipped(with),
		"installed/plugin.wasm": emptyCommand, "installed/manifest.json": manifestFor("text", "1.0.0"),
		"installed/segment": nil,
		"two/a.wasm":        with, "two/b.wasm": with, "none/main.go": []byte("package main"),
		"empty.wasm": nil, "text.wasm": []byte("hello, I am text"), "half.wasm": []byte("\x00asm\x01"),
		"cut.wasm":       with[:len(with)-10],
		"component.wasm": []byte("\x00asm\x0d\x00\x01\x00"), "bare.wasm": emptyCommand, "zipped.wasm": zipped(with),
		"bad.wasm.gz":         []byte("hello"),
		"cut.wasm.gz":         zipped(with)[:60],
		"start.wasm":          hasStart,
		"start.manifest.json": manifestFor("text", "1.0.0"),
		"json.wasm":           emptyCommand, "json.manifest.json": []byte(`{"manifest":1,`),
		"fields.wasm": emptyCommand, "fields.manifest.json": bytes.Replace(manifestFor("text", "1.0.0"), []byte(`"kind"`),
			[]byte(`"kid":1,"kind"`), 1),
		"other.json": []byte(`{"a":1}`), "other.yaml": []byte("a: 1"), "api.yaml": []byte("openapi: 3.0.0"),
		"kind.json": []byte(`{"manifest":1,"kind":"wasm"}`), "coded.json": []byte(`{"manifest":1,"kind":"wasi"}`),
		"newer.wasm": emptyCommand, "newer.manifest.json": bytes.Replace(manifestFor("text", "1.0.0"), []byte(`"kind"`),
			[]byte(`"min_host":"9.0.0","kind"`), 1),
		"schema.wasm": emptyCommand, "schema.manifest.json": bytes.Replace(manifestFor("text", "1.0.0"),
			[]byte(`"properties":{}`), []byte(`"properties":{"a":{"type":"strin"}}`), 1),
	} {
		put(t, at(name), data)
	}
	for _, good := range []string{"good.wasm", "good.wasm.gz", "beside.wasm", "both.wasm", "one", "pair", "gz",
		"installed"} {
		c, err := ReadCandidate(at(good), version)
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		if c.Manifest.Name != "text" || c.Digest != Digest(c.Wasm, c.ManifestJSON) || !filepath.IsAbs(c.Path) ||
			!bytes.HasPrefix(c.Wasm, []byte("\x00asm")) {
			t.Errorf("%s: %+v", good, c)
		}
		checkSource(t, c.Source(), c)
	}
	tests := []struct {
		path string
		code host.Code
		text string
	}{
		{"missing.wasm", host.InvalidArgs, "does not exist; expected a plugin file (FILE.wasm) or a folder"},
		{"good.wasm/x.wasm", host.InvalidArgs, "does not exist"},
		{"none", host.InvalidPlugin, "contains no plugin"},
		{"two", host.InvalidPlugin, "contains 2 wasm files (a.wasm, b.wasm)"},
		{"empty.wasm", host.InvalidPlugin, "the file is empty"},
		{"text.wasm", host.InvalidPlugin, `it begins with "hello, I"`},
		{"half.wasm", host.InvalidPlugin, "ends within the header"},
		{"cut.wasm", host.InvalidPlugin, "it declares 104 bytes and has 94"},
		{"component.wasm", host.InvalidPlugin, "this is a component"},
		{"bare.wasm", host.InvalidPlugin, "contains no manifest, and there is none beside it in"},
		{"zipped.wasm", host.InvalidPlugin, "gunzip"},
		{"bad.wasm.gz", host.InvalidPlugin, "not a gzip file"},
		{"cut.wasm.gz", host.InvalidPlugin, "the gzip file is damaged"},
		{"differ.wasm", host.InvalidPlugin, "is a different one"},
		{"json.wasm", host.InvalidPlugin, "json.manifest.json is refused"},
		{"fields.wasm", host.InvalidPlugin, "/kid"},
		{"newer.wasm", host.InvalidPlugin, "needs host >= 9.0.0"},
		{"other.json", host.InvalidPlugin, "is not a manifest; expected a JSON object"},
		{"other.yaml", host.InvalidPlugin, "is not a manifest; expected a JSON object"},
		{"api.yaml", host.InvalidPlugin, "from an OpenAPI document, make one"},
		{"kind.json", host.InvalidPlugin, `/kind is "wasm"; expected http`},
		{"coded.json", host.InvalidPlugin, "whose code is in another file"},
		{"schema.wasm", host.InvalidPlugin, "/tools/0/params"},
	}
	for _, tt := range tests {
		_, err := ReadCandidate(at(tt.path), version)
		wantError(t, tt.path, err, tt.code, tt.text)
		// the file itself, or the manifest beside it
		wantError(t, tt.path, err, tt.code, at(strings.TrimSuffix(tt.path, ".wasm")))
	}
	if _, err := ReadCandidateFile(at("good.wasm"), version); err != nil {
		t.Error(err)
	}
	_, err := ReadCandidateFile(at("one"), version)
	wantError(t, "a folder as a file", err, host.InvalidArgs, "is a folder; expected a plugin file")
	_, err = ReadCandidateFile(at("missing.wasm"), version)
	wantError(t, "missing", err, host.InvalidArgs, "does not exist")
	_, err = ReadCandidate("", version)
	wantError(t, "no path", err, host.InvalidArgs, `"" does not exist`)

	_, err = ReadCandidate(at("start.wasm"), version)
	wantError(t, "start.wasm", err, host.InvalidPlugin, "does not export the function _start")

	// Unpacking stops at the limit: it does not see that the end is damaged.
	var bomb bytes.Buffer
	z, _ := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	for range maxWasm>>20 + 2 {
		z.Write(make([]byte, 1<<20))
	}
	z.Flush()
	put(t, at("bomb.wasm.gz"), bomb.Bytes())
	_, err = ReadCandidate(at("bomb.wasm.gz"), version)
	wantError(t, "bomb.wasm.gz", err, host.InvalidPlugin, "larger than 256 MiB")

	// Larger than the limit, without using disk space.
	put(t, at("huge.wasm"), nil)
	if err := os.Truncate(at("huge.wasm"), maxWasm+1); err != nil {
		t.Skip(err)
	}
	_, err = ReadCandidate(at("huge.wasm"), version)
	wantError(t, "huge", err, host.InvalidPlugin, "the limit is 256 MiB")
	if os.Getuid() != 0 && runtime.GOOS != "windows" {
		os.Chmod(at("good.wasm"), 0)
		_, err = ReadCandidate(at("good.wasm"), version)
		wantError(t, "unreadable", err, host.Unavailable, "permission denied")
	}
}

func TestDigest(t *testing.T) {
	// The digest must never change, because policies contain digests: sha256(8 bytes 1, "c", 8 bytes 2, "ab").
	if got, want := Digest([]byte("ab"), []byte("c")),
		"sha256:cafc4f78a165dc256baba778a2cd0c472dc60fafc917d43d6a0277d16da97f49"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if Digest([]byte("ab"), []byte("c")) == Digest([]byte("a"), []byte("bc")) ||
		Digest([]byte("a"), nil) == Digest(nil,
			[]byte("a")) {
		t.Error("two contents have the same digest")
	}
}

// BenchmarkList measures discovery with 1,000 installed plugins.
func BenchmarkList(b *testing.B) {
	s := Open(b.TempDir(), nil)
	c := candidate(b, "text", "1.0.0")
	var entries []Entry
	for i := range 1000 {
		e := NewEntry(c)
		e.Name = fmt.Sprintf("plugin-%04d", i)
		entries = append(entries, e)
	}
	data, err := EncodeEntries(entries)
	if err != nil {
		b.Fatal(err)
	}
	put(b, s.LockPath(), data)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if got, err := s.List(); err != nil || len(got) != 1000 {
			b.Fatal(len(got), err)
		}
	}
}

func checkSource(t *testing.T, source Source, c *Candidate) {
	t.Helper()
	m, err := source.Manifest()
	if err != nil || m.Name != c.Manifest.Name || m.Version != c.Manifest.Version {
		t.Errorf("manifest: %+v, %v", m, err)
	}
	if wasm, err := source.Wasm(); err != nil || !bytes.Equal(wasm, c.Wasm) {
		t.Errorf("wasm: %d bytes, %v", len(wasm), err)
	}
	if seg, err := source.Segment(); err != nil || !bytes.Equal(seg, segment.Of(c.Manifest)) {
		t.Errorf("segment: %d bytes, %v", len(seg), err)
	}
	if source.Info.Name != c.Manifest.Name || source.Info.Digest != c.Digest ||
		source.Info.Tools != len(c.Manifest.Tools) {
		t.Errorf("info: %+v", source.Info)
	}
}

func wantError(t *testing.T, what string, err error, code host.Code, text string) {
	t.Helper()
	var e *host.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Message, text) {
		t.Errorf("%s: got %v, want %s with %q", what, err, code, text)
	}
}

func install(t *testing.T, s *Store, name, version string) (Entry, *Entry) {
	t.Helper()
	now, before, err := s.Install(candidate(t, name, version), false)
	if err != nil {
		t.Fatal(err)
	}
	return now, before
}

func names(t *testing.T, s *Store) string {
	t.Helper()
	entries, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name)
	}
	return strings.Join(all, " ")
}

func digestDirs(t *testing.T, dir string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(dir, "*", strings.Repeat("[0-9a-f]", 64)))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
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

func second[T any](_ T, err error) error { return err }

// TestStoreIsFlushed checks that files are flushed before the lock file names them.
func TestStoreIsFlushed(t *testing.T) {
	dir := t.TempDir()
	disk := durabletest.Watch(t)
	path := filepath.Join(dir, "a", "b", "file")
	if err := makeDir(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(disk.Took(dir)); got != "[. a]" {
		t.Errorf("folders: flushed %s", got)
	}
	disk.OnFlush = func(flushed string) {
		if _, err := os.Stat(path); (err == nil) != (flushed == filepath.Dir(path)) {
			t.Errorf("%s was flushed while the file exists: %v", flushed, err == nil)
		}
	}
	if err := writeFile(path, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got := disk.Took(dir); len(got) != 2 || got[1] != filepath.Join("a", "b") {
		t.Errorf("file: flushed %q", got)
	}
}

// hasStart is a module that exports its memory and has a function of no parameters.
var hasStart = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01`\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01" +
	"\x07\x0a\x01\x06memory\x02\x00\x0a\x05\x01\x03\x00\x01\x0b")

// hammer is set by PARLEY_HAMMER: tests then run everything instead of a sample.
var hammer = os.Getenv("PARLEY_HAMMER") != ""

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}
