package call_test

import (
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
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/host/providertest"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
)

// everyEdit has an edit of each field of the tool shop.add.
var everyEdit = []overlay.Edit{
	{Tool: "add", Field: overlay.Brief, Value: "Add goods"},
	{Tool: "add", Field: overlay.Standard, Value: "Puts goods on sale."},
	{Tool: "add", Field: overlay.Full, Value: "All about it."},
	{Tool: "add", Field: overlay.When, Value: "you have goods"},
	{Tool: "add", Field: overlay.WhenNot, Value: "to say it again: echo"},
	{Tool: "add", Field: overlay.Alias, Value: "insert"},
	{Tool: "add", Field: overlay.Keyword, Value: "merchandise"},
	{Tool: "add", Field: overlay.Task, Value: "stock the shelves"},
	{Tool: "add", Field: overlay.Phrase, Value: "put wares out"},
	{Tool: "add", Field: overlay.Need, Value: "shop.echo"},
	{Tool: "add", Field: overlay.Example, Example: &manifest.Example{Title: "Two",
		Params: json.RawMessage(`{"title":"x"}`)}},
	{Tool: "order.list", Field: overlay.Deprecated, Value: "It will go."},
	{Tool: "add", Field: overlay.Param, Param: "count", Value: "Pieces."},
	{Tool: "add", Field: overlay.ParamAlias, Param: "title", Value: "label"},
	{Tool: "add", Field: overlay.From, Param: "title", Value: "shop.order.list/title"},
	{Tool: "add", Field: overlay.Rare, Param: "price"},
}

func TestEveryFieldIsTested(t *testing.T) {
	for _, field := range overlay.Fields() {
		if !slices.ContainsFunc(everyEdit, func(e overlay.Edit) bool { return e.Field == field }) {
			t.Errorf("no test edits %s", field)
		}
	}
}

// TestOverlay checks that edits are in the documentation, in search and in corrections, and that nothing else changes:
// neither the plugin's own manifest nor what its schema accepts.
func TestOverlay(t *testing.T) {
	for _, builtin := range []bool{false, true} {
		base := newFake(t, shop, nil)
		if builtin { // it says itself what comes before a tool
			base.builtin()
			base.features.Flow = func(string) *manifest.Flow { return nil }
		}
		base.manifest.Tool("order.list").Deprecated = &manifest.Deprecated{Use: "order.show"}
		before, _ := json.Marshal(base.manifest)
		store := &overlay.Store{Dir: filepath.Join(t.TempDir(), "docs")}
		change := overlay.Change{Provider: base, From: &overlay.Overlay{}, To: &overlay.Overlay{Edits: everyEdit}}
		if err := store.Save(change); err != nil {
			t.Fatal(err)
		}
		wrapped := store.Wrap([]host.Provider{base})[0]
		if host.Base(wrapped) != host.Provider(base) || !wrapped.Features().Overlaid {
			t.Fatal("the plugin has no overlay")
		}
		h := newHost(t, call.Config{Sessions: &session.Store{Dir: t.TempDir()}}, wrapped)
		text := func(tier int) string {
			d, err := h.Describe(t.Context(), cli, "shop.add", tier)
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := json.Marshal(d)
			return d.Text() + string(raw)
		}
		second, third := text(2), text(3)
		for _, want := range []string{"Add goods", "Puts goods on sale.", "When: you have goods", "Not when: to say it again",
			"Needs: shop.echo", `{"title":"x"}`, "Pieces.", "get title: shop.order.list", "also: price"} {
			if !strings.Contains(second, want) {
				t.Errorf("tier 2 has no %q:\n%s", want, second)
			}
		}
		for _, want := range []string{"All about it.", `"insert"`, "merchandise", "stock the shelves", "price?: number"} {
			if !strings.Contains(third, want) {
				t.Errorf("tier 3 has no %q:\n%s", want, third)
			}
		}
		if d, err := h.Describe(t.Context(), cli, "shop.order.list", 1); err != nil ||
			d.DeprecationMessage != "DEPRECATED: It will go." {
			t.Errorf("the deprecation is %+v, %v", d, err)
		}
		lines, err := wrapped.Lines("")
		if err != nil || lines[0].Brief != "Add goods" {
			t.Errorf("lines %+v, %v", lines, err)
		}
		var score float64
		for _, query := range []string{"insert", "merchandise", "stock the shelves", "put wares out"} {
			found, _, err := h.Search(t.Context(), cli, search.Query{Text: query})
			if err != nil || len(found.Results) == 0 || found.Results[0].Name != "shop.add" {
				t.Fatalf("search %q: %+v, %v", query, found, err)
			}
			hit := found.Results[0]
			if query == "put wares out" && (hit.Why != `task "put wares out"` || hit.Score >= score) {
				t.Errorf("a phrase that is not the author's counts as much as a task of the author, %v: %+v", score, hit)
			}
			score = hit.Score
		}
		a := makeCall(t, h, "shop.add", `{"label":"tea"}`)
		if e := failsWith(t, a, host.InvalidArgs); string(e.Corrected) != `{"title":"tea"}` {
			t.Errorf("the alias of a parameter is corrected to %s", e.Corrected)
		}
		if a := makeCall(t, h, "shop.add", `{"title":"tea"}`); a.Err != nil {
			t.Error(a.Err)
		}
		if after, _ := json.Marshal(base.manifest); string(after) != string(before) {
			t.Error("an overlay changed the manifest of the plugin")
		}
	}
}

// TestOverlaidProvider holds a plugin with an overlay to what every provider promises.
func TestOverlaidProvider(t *testing.T) {
	edits := &overlay.Overlay{Edits: everyEdit}
	p := overlay.Wrap(newFake(t, shop, nil), func() (*overlay.Overlay, error) { return edits, nil }, nil)
	providertest.Run(t, p, providertest.Options{})
}

// TestOverlayOfAnotherBuild checks that edits hold for one build: with another they are dropped, once, with a notice.
func TestOverlayOfAnotherBuild(t *testing.T) {
	base := newFake(t, shop, nil)
	var notices []string
	store := &overlay.Store{Dir: filepath.Join(t.TempDir(), "docs"),
		Notice: func(s string) { notices = append(notices, s) }}
	change := overlay.Change{Provider: base, From: &overlay.Overlay{}, To: &overlay.Overlay{Edits: everyEdit[:1]}}
	if err := store.Save(change); err != nil {
		t.Fatal(err)
	}
	next := newFake(t, shop, nil)
	next.info.Digest = "sha256:another"
	for range 2 {
		if got := store.Wrap([]host.Provider{next})[0]; got != host.Provider(next) {
			t.Error("another build has the edits")
		}
	}
	if len(notices) != 1 || !strings.Contains(notices[0], "the edits of shop are for another build") {
		t.Errorf("notices %q", notices)
	}
	// A file that cannot be read is an error that names it, and no search without it.
	path := filepath.Join(store.Dir, "shop@another.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.Wrap([]host.Provider{next})[0].Tool("add")
	if err == nil || host.AsError(err).Code != host.ConfigError ||
		!strings.Contains(strings.Join(host.AsError(err).Next, " "), path) {
		t.Errorf("a damaged file: %v", err)
	}
}

// TestOverlaysAreSavedTogether checks that overlays of several plugins are written all or not at all, that none
// replaces one that it did not see, and that without edits nothing remains.
func TestOverlaysAreSavedTogether(t *testing.T) {
	shopInfo, depot := newFake(t, shop, nil), newFake(t, strings.Replace(shop, `"shop"`, `"depot"`, 1), nil)
	store := &overlay.Store{Dir: filepath.Join(t.TempDir(), "docs")}
	none, one, two := &overlay.Overlay{}, &overlay.Overlay{Edits: everyEdit[:1]}, &overlay.Overlay{Edits: everyEdit[:2]}
	edits := func() string {
		var counts []string
		for _, p := range []host.Provider{shopInfo, depot} {
			o, err := store.Load(p.Info())
			if err != nil {
				t.Fatal(err)
			}
			counts = append(counts, fmt.Sprint(len(o.Edits)))
		}
		return strings.Join(counts, " ")
	}
	segment := filepath.Join(store.Dir, "depot@depot.segment")
	for _, c := range []struct {
		name    string
		changes []overlay.Change
		block   bool
		fails   error
		want    string
	}{
		{"both", []overlay.Change{{Provider: shopInfo, From: none, To: one}, {Provider: depot, From: none, To: one}},
			false, nil, "1 1"},
		{"one that has changed", []overlay.Change{{Provider: shopInfo, From: one, To: two}, {Provider: depot, From: none,
			To: two}}, false, host.Busy, "1 1"},
		{"removed", []overlay.Change{{Provider: shopInfo, From: one, To: none}, {Provider: depot, From: one, To: none}},
			false, nil, "0 0"},
		{"the second cannot be written", []overlay.Change{{Provider: shopInfo, From: none, To: one}, {Provider: depot,
			From: none, To: one}}, true,
			fs.ErrExist, "0 0"},
	} {
		if c.block { // a file cannot replace a folder
			if err := os.MkdirAll(filepath.Join(segment, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		err := store.Save(c.changes...)
		if (err != nil) != (c.fails != nil) || c.fails == host.Busy && !errors.Is(err, host.Busy) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := edits(); got != c.want {
			t.Errorf("%s: there are %s edits, want %s", c.name, got, c.want)
		}
	}
	files, err := filepath.Glob(filepath.Join(store.Dir, "*.json"))
	if err != nil || len(files) > 0 {
		t.Errorf("without edits there are %v, %v", files, err)
	}
}

func TestMergeEdits(t *testing.T) {
	o := (&overlay.Overlay{Edits: everyEdit}).Merge([]overlay.Edit{
		{Tool: "ADD", Field: overlay.Brief, Value: "Other"}, {Tool: "add", Field: overlay.Alias, Value: "more"},
		{Tool: "add", Field: overlay.Alias, Value: "insert"},
	})
	if len(o.Edits) != len(everyEdit)+1 {
		t.Errorf("%d edits, want one more than %d: a text is replaced, an alias is added once", len(o.Edits), len(everyEdit))
	}
}
