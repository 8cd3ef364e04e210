package store

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// manifestsOfTree returns the manifests of the shipped plugins and of the examples, by file.
func manifestsOfTree(t testing.TB) map[string][]byte {
	all := map[string][]byte{}
	for _, pattern := range []string{"../../../plugins/*/manifest.json", "../../../sdk/example.manifest.json",
		"../../../testdata/*/*.manifest.json"} {
		paths, err := filepath.Glob(pattern)
		must(t, err)
		for _, path := range paths {
			all[path] = readFile(t, path)
		}
	}
	if len(all) < 5 {
		t.Fatalf("found %d manifests", len(all))
	}
	return all
}

// indexOfManifest returns the index of a manifest's tools as it is written and read again.
func indexOfManifest(t testing.TB, m *manifest.Manifest, data []byte) *index {
	encoded, err := encodeTools(m, data)
	must(t, err)
	x, err := decodeTools(encoded)
	must(t, err)
	x.read = func(offset, size int64) ([]byte, error) { return data[offset : offset+size], nil }
	return x
}

// TestToolsIndexed checks that the index of a manifest says what the manifest says.
func TestToolsIndexed(t *testing.T) {
	for path, data := range manifestsOfTree(t) {
		m, err := manifest.Parse(data, "0.1.0")
		if err != nil {
			continue // one that is refused on purpose
		}
		x, want := indexOfManifest(t, m, data), DiscoveryOf(m)
		if !reflect.DeepEqual(x.Groups(), want.Groups()) || !slices.Equal(x.Names(), want.Names()) {
			t.Errorf("%s: groups or names differ", path)
		}
		for _, group := range append(want.Groups(), host.GroupLine{}) {
			if !reflect.DeepEqual(x.Lines(group.Name), want.Lines(group.Name)) {
				t.Errorf("%s: lines of %q: %v, expected %v", path, group.Name, x.Lines(group.Name), want.Lines(group.Name))
			}
		}
		for _, name := range want.Names() {
			got, err := x.Tool(strings.ToUpper(name))
			expected, _ := want.Tool(name)
			if err != nil || !reflect.DeepEqual(got, expected) {
				t.Errorf("%s: %s differs, %v", path, name, err)
			}
		}
		head, _ := json.Marshal(x.head)
		m.Tools = nil
		expected, _ := json.Marshal(m)
		if !bytes.Equal(head, expected) {
			t.Errorf("%s: the head is %s\nexpected %s", path, head, expected)
		}
	}
}

// TestIndexIsVerified changes what is on disk: what is read is what was installed, or refused.
func TestIndexIsVerified(t *testing.T) {
	s := Open(t.TempDir(), nil)
	entry, _ := install(t, s, "text", "1.0.0")
	dir := s.pluginDir(entry)
	toolsPath, manifestPath := filepath.Join(dir, toolsName), filepath.Join(dir, manifestName)
	index, manifestJSON := readFile(t, toolsPath), readFile(t, manifestPath)
	discover := func(e Entry) (*Discovery, error) { return s.Source(e).Discover(nil) }
	name := must2(discover(entry))(t).Names()[0]

	t.Run("an index is used", func(t *testing.T) {
		d := must2(discover(entry))(t)
		if tool, err := d.Tool(name); err != nil || tool == nil || len(d.Head.Tools) > 0 {
			t.Errorf("%v, %v; the head has %d tools", tool, err, len(d.Head.Tools))
		}
	})
	edited := bytes.Replace(index, []byte("\tread\t"), []byte("\twrite\t"), 1)
	for what, changed := range map[string][]byte{"changed": edited, "missing": nil, "cut": index[:len(index)/2]} {
		t.Run("an index that is "+what, func(t *testing.T) {
			if changed == nil {
				must(t, os.Remove(toolsPath))
			} else {
				put(t, toolsPath, changed)
			}
			defer put(t, toolsPath, index)
			d := must2(discover(entry))(t)
			if tool, err := d.Tool(name); err != nil || tool == nil || tool.Effect != "read" || len(d.Head.Tools) == 0 {
				t.Errorf("%+v, %v; expected the manifest's", tool, err)
			}
		})
	}
	t.Run("a lock file of an earlier version", func(t *testing.T) {
		old := entry
		old.ToolsSHA256 = ""
		if d := must2(discover(old))(t); len(d.Head.Tools) == 0 {
			t.Error("expected the whole manifest")
		}
	})
	t.Run("a tool that is changed in the manifest", func(t *testing.T) {
		put(t, manifestPath, bytes.Replace(manifestJSON, []byte(`"read"`), []byte(`"xxxx"`), 1))
		defer put(t, manifestPath, manifestJSON)
		must(t, os.Chtimes(toolsPath, time.Now(), time.Now().Add(-time.Minute)))
		_, err := discover(entry)
		wantError(t, "list", err, host.Integrity, "How the manifest differs")
		must(t, os.Chtimes(manifestPath, time.Now(), time.Now().Add(-time.Hour)))
		tool, err := must2(discover(entry))(t).Tool(name)
		wantError(t, "tool", err, host.Integrity, "How the manifest differs")
		if tool != nil {
			t.Errorf("got %+v", tool)
		}
	})
}

func FuzzTools(f *testing.F) {
	for path, data := range manifestsOfTree(f) {
		if m, err := manifest.Parse(data, "0.1.0"); err == nil && strings.Contains(path, "text") {
			encoded, err := encodeTools(m, data)
			must(f, err)
			f.Add(encoded)
		}
	}
	f.Add([]byte(toolsMagic + "\n5\n{}\na\tb\t1\t2\t3\tread\td\ta()\tbrief\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := decodeTools(data)
		if err != nil {
			return
		}
		x.read = func(offset, size int64) ([]byte, error) { return nil, os.ErrNotExist }
		x.whole = func() (*manifest.Manifest, error) { return nil, os.ErrNotExist }
		_ = x.Groups()
		for _, name := range x.Names() {
			if _, err := x.Tool(name); err == nil {
				t.Errorf("%q was read from nothing", name)
			}
		}
	})
}

// must2 returns a value, or ends the test with an error.
func must2[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return value
	}
}
