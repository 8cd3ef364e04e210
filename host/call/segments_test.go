package call_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/segment"
)

// opened is a fake that counts how often its segment is opened.
type opened struct {
	*fake
	times *atomic.Int32
}

func (o opened) Segment() ([]byte, error) {
	o.times.Add(1)
	if built, ok := crowdSegments.Load(o.info.Digest); ok {
		return built.([]byte), nil
	}
	built, err := o.fake.Segment()
	crowdSegments.Store(o.info.Digest, built)
	return built, err
}

// crowdSegments are built once: digest -> []byte.
var crowdSegments sync.Map

// crowd returns n plugins, with the builds of those that builds names.
func crowd(t testing.TB, n int, builds map[int]string) (list []host.Provider, times *atomic.Int32) {
	t.Helper()
	times = &atomic.Int32{}
	for i := range n {
		build := builds[i]
		text := strings.ReplaceAll(shop, `"name": "shop"`, fmt.Sprintf(`"name": "shop%02d"`, i))
		f := newFake(t, strings.ReplaceAll(text, "Say it again", fmt.Sprintf("Say it again %s in voice %d", build, i)), nil)
		f.info.Digest = fmt.Sprintf("sha256:%d%s", i, build)
		list = append(list, opened{f, times})
	}
	return list, times
}

// keeping returns a host that stores its search index in a folder.
func keeping(t testing.TB, dir string, providers ...host.Provider) *call.Host {
	h := newHost(t, call.Config{}, providers...)
	h.Catalog().KeepSearchIn(dir)
	return h
}

// found returns the results of some searches as JSON.
func found(t testing.TB, h *call.Host) string {
	t.Helper()
	var out strings.Builder
	for _, q := range []search.Query{
		{Text: "sell something new", Explain: true}, {Text: "voice 7"}, {Text: "shop11 cancel", Limit: 50}, {Text: "loudly"},
		{Text: "say agian", Explain: true}, {Text: "orders", Effect: "destructive"}, {Text: "repeat words", Plugin: "shop03"},
	} {
		data, _, err := h.Search(t.Context(), cli, q)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(raw, '\n'))
	}
	return out.String()
}

// TestMergedSegment checks that a search with the merged index finds the same as a search of each plugin, whatever
// happens to the file and the plugins, and that only changed plugins are opened.
func TestMergedSegment(t *testing.T) {
	const many = 40
	dir := filepath.Join(t.TempDir(), "cache", "search")
	file := filepath.Join(dir, "merged")
	wanted := map[string]string{}
	expected := func(t *testing.T, n int, builds map[int]string) string {
		key := fmt.Sprint(n, builds)
		if wanted[key] == "" {
			plain, _ := crowd(t, n, builds)
			wanted[key] = found(t, newHost(t, call.Config{}, plain...))
		}
		return wanted[key]
	}
	// search compares with a host without a stored index, and returns how many segments were opened, except that of the
	// search in one plugin.
	look := func(t *testing.T, n int, builds map[int]string) int {
		t.Helper()
		list, times := crowd(t, n, builds)
		if got, want := found(t, keeping(t, dir, list...)), expected(t, n, builds); got != want {
			t.Errorf("got %s\nexpected %s", got, want)
		}
		return int(times.Load()) - 1
	}
	read := func(t *testing.T) string {
		t.Helper()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}

	if n := look(t, 10, nil); n != 9 {
		t.Errorf("%d of ten plugins were opened besides the one that was searched", n)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a merged index of only ten plugins was stored")
	}
	if n := look(t, many, nil); n != many {
		t.Errorf("%d segments were merged, expected %d", n, many)
	}
	whole := read(t)
	if n := look(t, many, nil); n != 0 {
		t.Errorf("%d segments were opened that are in the merged one", n)
	}
	if n := look(t, many+2, map[int]string{7: "loudly"}); n != 3 {
		t.Errorf("one new version and two new plugins: %d segments were opened", n)
	}
	if n := look(t, many-9, nil); n != 0 || read(t) != whole {
		t.Errorf("after removing nine plugins: %d segments were opened, or the file was changed", n)
	}
	if n := look(t, many+30, nil); n != 30 || read(t) == whole {
		t.Errorf("thirty new plugins: %d segments were opened, or the file was not rebuilt", n)
	}
	if n := look(t, many, nil); n != 0 || read(t) != whole {
		t.Errorf("after removing thirty plugins: %d segments were opened, or the file differs from the first", n)
	}

	for name, spoil := range map[string]func() error{
		"cut":             func() error { return os.Truncate(file, int64(len(whole)/2)) },
		"emptied":         func() error { return os.Truncate(file, 0) },
		"changed":         func() error { return os.WriteFile(file, []byte(whole[:500]+"\xff"+whole[501:]), 0o600) },
		"another version": func() error { return os.WriteFile(file, []byte(whole[:8]+"\x03"+whole[9:]), 0o600) },
		"a segment of one": func() error {
			return os.WriteFile(file, segment.Build(segment.Plugin{Name: "shop01"}, nil), 0o600)
		},
		"gone": func() error { return os.Remove(file) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			if n := look(t, many, nil); n != many {
				t.Errorf("%d segments were opened, expected %d", n, many)
			}
			if read(t) != whole {
				t.Error("the file was not repaired")
			}
		})
	}
	t.Run("writable by others", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("modes of Unix")
		}
		if err := os.Chmod(file, 0o622); err != nil {
			t.Fatal(err)
		}
		if n := look(t, many, nil); n != many {
			t.Errorf("the file was used: %d segments were opened", n)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file was not replaced: %v %v", info.Mode(), err)
		}
	})
	t.Run("the folder cannot be used", func(t *testing.T) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if n := look(t, many, nil); n != many-1 {
			t.Errorf("%d segments were opened besides the one that was searched", n)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("concurrent searches", func(t *testing.T) {
		var all sync.WaitGroup
		for i := range 8 {
			list, _ := crowd(t, many+i%2*30, nil)
			h, want := keeping(t, dir, list...), expected(t, many+i%2*30, nil)
			all.Go(func() {
				if found(t, h) != want {
					t.Error("a concurrent search found something else")
				}
			})
		}
		all.Wait()
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 || left[0].Name() != "merged" {
			t.Errorf("left behind: %v %v", left, err)
		}
		if n := look(t, many, nil); n != 0 {
			t.Errorf("the file is incomplete: %d segments were opened", n)
		}
	})
	t.Run("a plugin without an index", func(t *testing.T) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			list, _ := crowd(t, many, nil)
			list = append(list, silent{newFake(t, strings.ReplaceAll(shop, `"name": "shop"`, `"name": "broken"`), nil)})
			h := keeping(t, dir, list...)
			data, _, err := h.Search(t.Context(), cli, search.Query{Text: "voice 7"})
			if err != nil || len(data.Results) == 0 || data.Results[0].Name != "shop07.echo" {
				t.Errorf("got %+v, %v", data, err)
			}
		}
	})
}

// silent has no segment.
type silent struct{ *fake }

func (s silent) Info() host.Info {
	info := s.fake.Info()
	info.Digest = "sha256:broken"
	return info
}

func (silent) Segment() ([]byte, error) {
	return nil, host.Errorf(host.Unavailable, "no segment")
}
