package wasm

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/wasmtest"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
)

// packed returns a tar with entries. A regular file is its name and its content.
func packed(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := h.Uname // an unused field holds the content
		h.Uname, h.Size = "", int64(len(content))
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		must(t, w.WriteHeader(&h))
		_, err := w.Write([]byte(content))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func file(name, content string) tar.Header {
	return tar.Header{Name: name, Uname: content, Mode: 0o644}
}

// withAssets returns a plugin that brings files below a path.
func withAssets(t testing.TB, e *Engine, wasm []byte, m *manifest.Manifest, path string, data []byte) *Provider {
	t.Helper()
	m.Assets = &manifest.Assets{Path: path}
	whole, err := sections.WriteAssets(wasm, data)
	must(t, err)
	return e.Provider(sourceOf(whole, m))
}

// assetsGuest returns the guest assets of testdata with files below /lib.
func assetsGuest(t testing.TB, e *Engine, data []byte) *Provider {
	t.Helper()
	return withAssets(t, e, readFile(t, filepath.Join(guestDir, "assets.wasm")),
		loadManifest(t, readFile(t, filepath.Join(guestDir, "assets.manifest.json"))), "/lib", data)
}

// TestAssets reads assets in this process, in a process for the call and in a runner, before the first call and in it.
// They cannot be changed, and nothing beside them is visible.
func TestAssets(t *testing.T) {
	data := packed(t, file("./greeting", "hello from the plugin"), tar.Header{Name: "empty/", Typeflag: tar.TypeDir},
		file("deep/er/file", "content"))
	for _, isolate := range []string{isolateNone, isolateCall, isolateProcess} {
		t.Run(isolate, func(t *testing.T) {
			if isolate != isolateNone {
				skipWithoutRunners(t)
			}
			e := runnerEngine(t)
			p := assetsGuest(t, e, data)
			for range 2 { // compiled, then from the cache
				for _, tt := range []struct{ tool, path, want string }{
					{"greet", "", "hello from the plugin"},
					{"read", "/lib/deep/er/file", "content"},
					{"read", "/lib/deep/../deep/./er/file", "content"},
					{"read", "/lib/missing", "No such file"},
					{"read", "/lib/deep", "Is a directory"},
					{"read", "/lib/../etc/passwd", "Operation not permitted"},
					{"read", "/etc/passwd", "Capabilities insufficient"},
					{"list", "/lib", "deep empty greeting "},
					{"list", "/lib/empty", ""},
					{"list", "/lib/greeting", "Not a directory"},
					{"write", "/lib/greeting", "Read-only"},
					{"write", "/lib/new", "Read-only"},
					{"remove", "/lib/greeting", "Read-only"},
				} {
					r := requestFor(t, p, tt.tool, fmt.Sprintf(`{"path":%q}`, tt.path))
					r.Isolate = isolate
					on(r, job.EventUse, func(e job.Event) { t.Errorf("%+v: recorded %s", tt, e.Right) })
					result, err := invokeRequest(t, p, r)
					if err != nil {
						t.Fatalf("%+v: %v", tt, err)
					}
					var got struct{ Text string }
					must(t, json.Unmarshal(result.Data, &got))
					if got.Text != tt.want && (tt.want == "" || tt.tool == "list" || !strings.HasPrefix(got.Text, tt.want)) {
						t.Errorf("%+v: %q", tt, got.Text)
					}
				}
				p = assetsGuest(t, e, data)
			}
		})
	}
}

// TestAssetsOfPrograms reads assets in a plugin of kind wasi, beside a granted folder.
func TestAssetsOfPrograms(t *testing.T) {
	p := withAssets(t, testEngine(t), readFile(t, "testdata/probe.wasm"), wasmtest.Command(t, "probe"),
		"/usr/lib", packed(t, file("a/b", "asset")))
	inside, _ := tree(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"read", "/usr/lib/a/b"}, "asset"}, {[]string{"read", "/data/file"}, "content"},
		{[]string{"write", "/data/new", "x"}, "ok"}, {[]string{"write", "/usr/lib/a/b", "x"}, "errno Read-only"},
		{[]string{"create", "/usr/lib/c"}, "errno Read-only"}, {[]string{"trunc", "/usr/lib/a/b"}, "errno Read-only"},
		{[]string{"truncate", "/usr/lib/a/b"}, "errno"}, {[]string{"mkdir", "/usr/lib/d"}, "errno Read-only"},
		{[]string{"rmdir", "/usr/lib/a"}, "errno Read-only"}, {[]string{"unlink", "/usr/lib/a/b"}, "errno Read-only"},
		{[]string{"rename", "/usr/lib/a/b", "/data/b"}, "errno"}, {[]string{"rename", "/data/new", "/usr/lib/b"}, "errno"},
		{[]string{"read", "/usr/lib/a/b"}, "asset"},
	} {
		r := requestFor(t, p, "run", argParams(tt.args...))
		r.Grant.FS = []grant.FS{{Source: inside, Path: "/data", Mode: "rw"}}
		result, err := invokeRequest(t, p, r)
		if err != nil || !strings.Contains(string(result.Data), tt.want) {
			t.Errorf("%v: %v, %v", tt.args, result, err)
		}
	}
}

// TestAssetsAreDamaged changes the cached copy of the assets, which is then made again.
func TestAssetsAreDamaged(t *testing.T) {
	e := testEngine(t)
	e.cfg.CacheDir = t.TempDir()
	data := packed(t, file("greeting", "hello from the plugin"))
	greet := func() string {
		p := assetsGuest(t, e, data)
		result, err := invokeRequest(t, p, requestFor(t, p, "greet", `{}`))
		if err != nil {
			t.Fatal(err)
		}
		return string(result.Data)
	}
	want := greet()
	found, _ := filepath.Glob(filepath.Join(e.cfg.CacheDir, "*", world.AssetsName))
	if len(found) != 1 {
		t.Fatalf("cached: %v", found)
	}
	changed := bytes.Replace(readFile(t, found[0]), []byte("hello"), []byte("HELLO"), 1)
	must(t, os.WriteFile(found[0], changed, 0o600))
	if got := greet(); got != want || !strings.Contains(got, "hello") {
		t.Error(got)
	}
}

// TestHostileAssets checks which tars are refused when a plugin is installed, and why.
func TestHostileAssets(t *testing.T) {
	m := loadManifest(t, readFile(t, filepath.Join(guestDir, "assets.manifest.json")))
	built := readFile(t, filepath.Join(guestDir, "assets.wasm"))
	long := strings.Repeat("x", 256)
	many := make([]tar.Header, world.MaxAssetNodes)
	for i := range many {
		many[i] = tar.Header{Name: fmt.Sprint(i) + "/", Typeflag: tar.TypeDir}
	}
	holes := tar.Header{Name: "holes", Typeflag: tar.TypeReg, PAXRecords: map[string]string{"comment": "x"}}
	for name, tt := range map[string]struct {
		data []byte
		want string // "" if it is accepted
	}{
		"ordinary":          {packed(t, file("a/b", "x"), tar.Header{Name: "a/", Typeflag: tar.TypeDir}), ""},
		"the root":          {packed(t, tar.Header{Name: "./", Typeflag: tar.TypeDir}, file("./a", "")), ""},
		"empty":             {packed(t), ""},
		"a long name":       {packed(t, file(strings.Repeat("y", 200)+"/"+strings.Repeat("z", 200), "x")), ""},
		"a comment":         {packed(t, holes), ""},
		"no tar":            {[]byte(strings.Repeat("x", 2000)), "not a valid tar"},
		"truncated":         {packed(t, file("a", strings.Repeat("x", 5000)))[:2000], "truncated"},
		"a link":            {packed(t, tar.Header{Name: "a", Linkname: "/etc", Typeflag: tar.TypeSymlink}), "neither"},
		"a hard link":       {packed(t, tar.Header{Name: "a", Linkname: "b", Typeflag: tar.TypeLink}), "neither"},
		"a device":          {packed(t, tar.Header{Name: "a", Typeflag: tar.TypeChar, Devmajor: 1}), "neither"},
		"a pipe":            {packed(t, tar.Header{Name: "a", Typeflag: tar.TypeFifo}), "neither"},
		"absolute":          {packed(t, file("/etc/passwd", "x")), "is absolute"},
		"outside":           {packed(t, file("a/../../b", "x")), "leads out"},
		"a backslash":       {packed(t, file(`a\b`, "x")), "backslash"},
		"not UTF-8":         {packed(t, file("a\xff", "x")), "not UTF-8"},
		"twice":             {packed(t, file("a", "x"), file("./a", "y")), "is there twice"},
		"a file, a folder":  {packed(t, file("a", "x"), file("a/b", "y")), "both a file and a folder"},
		"a folder, a file":  {packed(t, file("a/b", "y"), file("a", "x")), "is there twice"},
		"no name":           {packed(t, file(".", "x")), "has no name"},
		"a long element":    {packed(t, file(long, "x")), "more than 255 bytes"},
		"deep":              {packed(t, file(strings.Repeat("d/", 40)+"a", "x")), "more than 32 elements"},
		"many":              {packed(t, many...), "more than 20000"},
		"huge":              {make([]byte, world.MaxAssetBytes+1), "at most"},
		"a sparse old file": {sparse(t), "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			whole, err := sections.WriteAssets(built, tt.data)
			must(t, err)
			err = module.Check(whole, m)
			switch known := (*host.Error)(nil); {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!errors.As(err, &known) || known.Code != host.InvalidPlugin ||
				!strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	err := module.Check(built, m)
	if !errors.Is(err, host.InvalidPlugin) || !strings.Contains(err.Error(), "no section parley.assets") {
		t.Errorf("without assets: %v", err)
	}
	const name = "parley.assets"
	custom := section(0, slices.Concat(unsignedLEB(len(name)), []byte(name), packed(t)))
	twice := slices.Concat(built, custom, custom)
	if err := module.Check(twice, m); !errors.Is(err, host.InvalidPlugin) ||
		!strings.Contains(err.Error(), "two sections") {
		t.Errorf("two sections: %v", err)
	}
}

// sparse returns a tar with a file of GNU's old format for holes.
func sparse(t testing.TB) []byte {
	data := packed(t, tar.Header{Name: "a", Format: tar.FormatGNU})
	data[156] = tar.TypeGNUSparse
	copy(data[483:], "00000000010\x00")
	copy(data[148:156], "        ")
	sum := 0
	for _, b := range data[:512] {
		sum += int(b)
	}
	copy(data[148:], fmt.Sprintf("%06o\x00 ", sum))
	return data
}

// FuzzAssets checks that any tar is refused or becomes a tree within the bounds, whose files are parts of the tar.
func FuzzAssets(f *testing.F) {
	f.Add(packed(f, file("a/b", "x"), tar.Header{Name: "c/", Typeflag: tar.TypeDir}))
	f.Add(packed(f, file(strings.Repeat("y", 200)+"/"+strings.Repeat("z", 200), "x")))
	f.Add(packed(f, tar.Header{Name: "a", Linkname: "b", Typeflag: tar.TypeSymlink}))
	f.Add(sparse(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := world.ParseAssets(data)
		if err != nil {
			return
		}
		bytes, nodes := 0, 0
		var walk func(n *world.MemNode, depth int)
		walk = func(n *world.MemNode, depth int) {
			nodes++
			bytes += len(n.Data)
			if depth > world.MaxAssetDepth || len(n.Names) != len(n.Children) || n.Dir == n.ReadOnly {
				t.Errorf("at depth %d: %+v", depth, n)
			}
			for name, child := range n.Children {
				if !fs.ValidPath(name) || strings.Contains(name, "/") || name == "." {
					t.Errorf("the name %q", name)
				}
				walk(child, depth+1)
			}
		}
		walk(root, 0)
		if bytes > len(data) || nodes > world.MaxAssetNodes {
			t.Errorf("%d files of %d bytes from %d bytes", nodes, bytes, len(data))
		}
	})
}
