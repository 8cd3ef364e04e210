package wasm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/wasmtest"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
	"github.com/parley-tools/parley/manifest/sections"
)

// baseManifest is a valid manifest that the lines of testdata/hostile/manifests.txt modify.
const baseManifest = `{"manifest":1,"name":"poison","version":"1.0.0","kind":"parley/1","docs":{"brief":"A plugin","standard":"Text","full":"More text"},
	"keywords":["word"],"groups":[{"name":"group","docs":{"brief":"A group"}}],"exit_codes":[{"code":10,"name":"ten","meaning":"Ten","suggestion":"Try again"}],
	"tutorial":[{"say":"Hello","run":"parley poison call"}],"capabilities":{"env":[{"name":"LANG","why":"To know"}]},
	"tools":[{"name":"call","group":"group","docs":{"brief":"A tool","standard":"Text of the tool","full":"More text"},"effect":"read",
		"params":{"type":"object","properties":{"p":{"type":"string","description":"A parameter","enum":["a","b"]}}},"returns":{"type":"object","description":"What comes back"},
		"examples":[{"title":"Call it","kind":"minimal","params":{"p":"a"}}],"exit_codes":["ten"],"aliases":["alias"],"keywords":["key"],"tasks":["do it"],
		"when":"Now","when_not":"Later","related":[{"tool":"poison.other","why":"Because"}],"limitations":["Few"],"since":"1.0.0",
		"deprecated":{"since":"1.0.0","message":"Old","use":"poison.other"}}]}`

// hostileManifest returns the manifest of a line: "raw: TEXT", or changes "/POINTER = JSON" to baseManifest,
// separated by semicolons.
func hostileManifest(t testing.TB, line string) []byte {
	t.Helper()
	if text, ok := strings.CutPrefix(line, "raw:"); ok {
		return wasmtest.Expand(t, strings.ReplaceAll(strings.TrimSpace(text), `"`, `\"`))
	}
	var doc any
	if err := json.Unmarshal([]byte(baseManifest), &doc); err != nil {
		t.Fatal(err)
	}
	for change := range strings.SplitSeq(line, " ; ") {
		pointer, value, ok := strings.Cut(change, " = ")
		if !ok {
			t.Fatalf("%s: no change", change)
		}
		// Escapes are JSON's here; only repetitions are expanded before.
		doc = setPointer(t, doc, strings.Split(pointer, "/")[1:], json.RawMessage(wasmtest.Repeat(t, value)))
	}
	data, err := manifest.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func setPointer(t testing.TB, doc any, path []string, value any) any {
	t.Helper()
	if len(path) == 0 {
		return value
	}
	switch doc := doc.(type) {
	case map[string]any:
		doc[path[0]] = setPointer(t, doc[path[0]], path[1:], value)
		return doc
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i > len(doc) {
			t.Fatal(path)
		}
		if i == len(doc) {
			doc = append(doc, nil)
		}
		doc[i] = setPointer(t, doc[i], path[1:], value)
		return doc
	case nil:
		return map[string]any{path[0]: setPointer(t, nil, path[1:], value)}
	}
	t.Fatalf("nothing is at %q", path)
	return nil
}

// TestHostileManifests installs plugins whose only hostile part is the manifest. It shows what is accepted in all
// ways in which a host shows it, and checks that no text has terminal control or hidden characters. PARLEY_HAMMER=1
// uses all manifests instead of a sample.
func TestHostileManifests(t *testing.T) {
	skipWithRace(t)
	lines := sample(wasmtest.Lines(t, "manifests.txt"), 4,
		func(l wasmtest.Line) string { return l.Section + " " + l.Fields[1] })
	for _, l := range lines {
		source, end, says := l.Fields[0], l.Fields[1], l.Fields[2]
		t.Run(fmt.Sprintf("%s:%d:%.40s", l.Section, l.Number, source), func(t *testing.T) {
			path := writePlugin(t, source)
			start := time.Now()
			c, err := store.ReadCandidate(path, "0.1.0")
			if elapsed := time.Since(start); elapsed > busyFactor*time.Second {
				t.Errorf("it took %v", elapsed)
			}
			if err != nil {
				e := host.AsError(err)
				wasmtest.CheckAllDisplayed(t, "the error", e.Object())
				if string(e.Code) != end || !strings.Contains(e.Message, says) && !strings.Contains(fmt.Sprint(e.Details),
					says) {
					t.Errorf("refused as %s %.500q, want %s and %q", e.Code, e.Message, end, says)
				}
				if data := guest.Marshal(e.Object()); len(data) > 64<<10 {
					t.Errorf("the error has %d bytes", len(data))
				}
				return
			}
			if end != "ok" {
				t.Fatalf("accepted, want %s", end)
			}
			if shown := renderAll(t, c); !strings.Contains(shown, says) {
				t.Errorf("%.2000q\nis shown without %q", shown, says)
			}
		})
	}
}

// writePlugin writes the file of a plugin: the smallest module with a hostile manifest or, for "module: KIND", a
// module with baseManifest embedded in an invalid way.
func writePlugin(t testing.TB, source string) (path string) {
	t.Helper()
	wasm := readFile(t, filepath.Join(guestDir, "smallest.wasm"))
	path = filepath.Join(t.TempDir(), "poison.wasm")
	kind, special := strings.CutPrefix(source, "module: ")
	data := []byte(baseManifest)
	if !special {
		data = hostileManifest(t, source)
	}
	named := append([]byte("\x0f"+sections.Name), data...)
	var err error
	switch kind {
	case "twice":
		wasm = append(append(wasm, section(0, named)...), section(0, named)...)
	case "last": // only a complete scan finds it
		wasm = append(wasm, section(0, named)...)
	case "beside differs":
		err = os.WriteFile(strings.TrimSuffix(path, ".wasm")+".manifest.json", bytes.Replace(data, []byte(`"read"`),
			[]byte(`"write"`), 1), 0o600)
		wasm = append(wasm, section(0, named)...)
	case "longer than the file":
		wasm = append(append(wasm, 0, 0xff, 0xff, 0xff, 0xff, 0x0f), named...)
	case "name longer than the section":
		wasm = append(wasm, section(0, append([]byte{0xff, 0x7f}, named[1:]...))...)
	case "length of ten bytes":
		wasm = append(append(wasm, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0), named...)
	case "in a name of another":
		wasm = append(wasm, section(0, append([]byte("\x10"+sections.Name+"\x00"), data...))...)
	case "empty":
		wasm = append(wasm, section(0, named[:16])...)
	case "a hundred thousand sections before it":
		wasm = append(append(wasm, bytes.Repeat(section(0, []byte("\x01x")), 100_000)...), section(0, named)...)
	case "257 megabytes in one":
		path += ".gz"
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		zeros := make([]byte, 1<<20)
		for range 1<<8 + 1 {
			_, err = z.Write(zeros)
		}
		_ = z.Close()
		wasm = b.Bytes()
	default:
		if special {
			t.Fatalf("%s: no such module", source)
		}
		wasm, err = sections.WriteManifest(wasm, data)
	}
	if err == nil {
		err = os.WriteFile(path, wasm, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// renderAll returns all that a host shows of a plugin, and checks each text.
func renderAll(t testing.TB, c *store.Candidate) string {
	t.Helper()
	ctx := context.Background()
	e := New(Config{})
	defer e.Close(ctx)
	p := e.Provider(c.Source())
	catalog, err := host.NewCatalog(p)
	if err != nil {
		t.Fatal(err)
	}
	h, err := hostcall.New(hostcall.Config{Catalog: catalog, Policy: host.DenyAll{}})
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	show := func(what string, v any, err error) {
		t.Helper()
		if err != nil {
			wasmtest.CheckAllDisplayed(t, what, host.AsError(err).Object())
			return
		}
		// Examples and enum values are kept as they are. In JSON, hidden characters in them are visible.
		text, err := manifest.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		wasmtest.CheckDisplayed(t, what, string(text))
		all.Write(append(text, '\n'))
	}
	show("the list", p.Info(), nil)
	groups, err := p.Groups()
	show("the groups", groups, err)
	for _, g := range append(groups, host.GroupLine{}) {
		lines, err := p.Lines(g.Name)
		show("the lines", lines, err)
	}
	names, err := p.Names()
	show("the names", names, err)
	for _, name := range names[:min(3, len(names))] {
		for tier := manifest.Tier1; tier <= manifest.Tier3; tier++ {
			docs, err := h.Describe(ctx, caller.Principal{Name: "cli"}, c.Manifest.Name+"."+name, tier)
			show("the description", docs, err)
			text := manifest.Describe(c.Manifest, c.Manifest.Tool(name), tier).Text()
			wasmtest.CheckDisplayed(t, "the text of a description", text)
			all.WriteString(text)
		}
	}
	for _, detail := range []string{"names", "signatures", "full"} {
		found, notes, err := h.SearchDetailed(ctx, caller.Principal{Name: "cli"}, search.Query{Text: "call a tool do it"},
			detail,
			nil)
		show("what is found", found, err)
		show("notes of a search", notes, nil)
	}
	show("the lint", lint.Check(c.Manifest, lint.Neighbors{}), nil)
	_, err = catalog.Find(c.Manifest.Name + ".cal")
	show("the nearest", nil, err)
	return all.String()
}
