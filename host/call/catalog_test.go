package call_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/manifest"
)

func named(t *testing.T, name string) *fake {
	t.Helper()
	return newFake(t, strings.Replace(shop, `"shop"`, `"`+name+`"`, 1), nil)
}

func TestCatalog(t *testing.T) {
	c := catalogOf(t, named(t, "zoo"), named(t, "ape"), named(t, "shop").builtin())
	var order []string
	for _, p := range c.Providers() {
		order = append(order, p.Info().Name)
	}
	if !slices.Equal(order, []string{"shop", "ape", "zoo"}) {
		t.Errorf("order %q, expected built-in plugins first, then by name", order)
	}
	c.Providers()[0] = nil
	if c.Providers()[0] == nil {
		t.Error("a change of the returned list changes the catalog")
	}
	if p, ok := c.Provider("ZOO"); !ok || p.Info().Name != "zoo" {
		t.Error("a plugin is not found in another case")
	}
	_, err := host.NewCatalog(named(t, "ape"), named(t, "APE"))
	if err == nil || host.AsError(err).Code != host.AlreadyExists {
		t.Errorf("two of one name: %v", err)
	}
	if _, err := host.NewCatalog(); err != nil {
		t.Errorf("no plugins: %v", err)
	}
}

// terms is a fake that documents an event and a type.
type terms struct{ *fake }

func (g terms) Features() host.Features { return host.Features{Events: g.events, Entry: g.entry} }

func (g terms) events(string) ([]host.EventLine, error) {
	return []host.EventLine{{Name: "order.placed", Brief: "Somebody ordered"}}, nil
}

func (g terms) entry(name string) (*host.Entry, error) {
	switch strings.ToLower(name) {
	case "order.placed":
		return &host.Entry{Kind: "event", Tool: manifest.Tool{Name: "order.placed", Group: "order",
			Docs: manifest.Docs{Brief: "Somebody ordered"}, Params: []byte(`{"properties":{"id":{"type":"integer"}}}`)}}, nil
	case "order.money":
		return &host.Entry{Kind: "type", Tool: manifest.Tool{Name: "order.Money", Group: "order",
			Docs: manifest.Docs{Brief: "An amount"}, Params: []byte(`{"properties":{"cents":{"type":"integer"}}}`)}}, nil
	}
	return nil, nil
}

func TestFind(t *testing.T) {
	c := catalogOf(t, terms{newFake(t, shop, nil)})
	for _, f := range []struct{ name, found, what string }{
		{"shop", "shop", "plugin"}, {"Shop", "shop", "plugin"}, {"shop.", "shop", "plugin"},
		{"shop.order", "shop.order", "group"}, {"shop__ORDER", "shop.order", "group"},
		{"shop.order.list", "shop.order.list", "tool"}, {"SHOP__order__LIST", "shop.order.list", "tool"},
		{"shop.order.PLACED", "shop.order.placed", "event"}, {"shop.order.money", "shop.order.Money", "type"},
	} {
		a, err := c.Find(f.name)
		what := "plugin"
		switch {
		case a.Tool != nil:
			what = "tool"
		case a.Entry != nil:
			what = a.Entry.Kind
		case a.Group != "":
			what = "group"
		}
		if err != nil || a.Name() != f.found || what != f.what || a.Plugin != "shop" || a.Provider == nil {
			t.Errorf("%s: got the %s %s, %v", f.name, what, a.Name(), err)
		}
	}
	h := newHost(t, call.Config{}, terms{newFake(t, shop, nil)})
	e := failsWith(t, makeCall(t, h, "shop.order.placed", "{}"), host.InvalidArgs)
	if e.Message != "shop.order.placed is an event and cannot be called" {
		t.Error(e.Message)
	}
}

func TestHostDescribe(t *testing.T) {
	rec := &recorder{}
	f := terms{newFake(t, shop, nil)}
	h := newHost(t, call.Config{Recorder: rec}, f)
	for tier := 1; tier <= 3; tier++ {
		d, err := h.Describe(t.Context(), cli, "shop__add", tier)
		if err != nil || d.Name != "shop.add" || d.Tier != tier || len(d.Next) == 0 {
			t.Errorf("tier %d: %+v, %v", tier, d, err)
			continue
		}
		if hasMore := hasStep(d.Next, "describe shop.add tier 3"); hasMore != (tier == 2) {
			t.Errorf("tier %d: next %q", tier, d.Next)
		}
	}
	related := `"related": [{"tool": "echo", "why": "says it"}, {"tool": "till.pay", "why": "takes the money"}], "name": "add"`
	other := newHost(t, call.Config{}, newFake(t, strings.Replace(shop, `"name": "add"`, related, 1), nil))
	if d, err := other.Describe(t.Context(), cli, "shop.add", 3); err != nil || len(d.Related) != 2 ||
		d.Related[0].Why != "says it" || d.Related[1].Why != "takes the money (not installed)" {
		t.Errorf("related: %+v, %v", d, err)
	}
	d, err := h.Describe(t.Context(), cli, "shop.order.placed", 2)
	if err != nil || d.Kind != "event" || !hasStep(d.Next, "listen shop order.placed") {
		t.Errorf("an event: %+v, %v", d, err)
	}
	if d, err := h.Describe(t.Context(), cli, "shop.order.money", 2); err != nil || d.Kind != "type" ||
		len(d.Parameters) != 1 {
		t.Errorf("a type: %+v, %v", d, err)
	}
	for name, code := range map[string]host.Code{"shop": host.InvalidArgs, "shop.order": host.InvalidArgs,
		"shop.nothing": host.NotFound, "nothing": host.NotFound} {
		d, err := h.Describe(t.Context(), cli, name, 2)
		if d != nil || err == nil || host.AsError(err).Code != code || len(host.AsError(err).Steps) == 0 {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	for _, tier := range []int{-1, 0, 4} {
		if _, err := h.Describe(t.Context(), cli, "shop.add", tier); err == nil ||
			host.AsError(err).Code != host.InvalidArgs {
			t.Errorf("tier %d: %v", tier, err)
		}
	}
	if n := len(rec.all()); n != 12 {
		t.Errorf("%d events for 12 descriptions", n)
	}
	if len(f.requests()) > 0 {
		t.Error("Describe ran a tool")
	}
}

// projecting is a fake that builds the documentation of its tools itself.
type projecting struct{ *fake }

func (p projecting) Features() host.Features { return host.Features{Describe: p.describe} }

func (p projecting) describe(tool *manifest.Tool, tier int) *manifest.ToolDocs {
	d := manifest.Describe(p.manifest, tool, tier)
	d.Brief = "its own words"
	return d
}

func TestHostDescribeByProvider(t *testing.T) {
	h := newHost(t, call.Config{}, projecting{newFake(t, shop, nil)})
	if d, err := h.Describe(t.Context(), cli, "shop.add", 2); err != nil || d.Brief != "its own words" {
		t.Errorf("%+v, %v", d, err)
	}
	if e := failsWith(t, makeCall(t, h, "shop.add", "{}"), host.InvalidArgs); e.Docs.Brief != "its own words" {
		t.Errorf("%+v", e.Docs)
	}
}

func TestSearch(t *testing.T) {
	zoo := strings.NewReplacer(`"shop"`, `"zoo"`, "Add an article", "Feed an animal", "sell something new",
		"give food to the lions", `"name": "add"`, `"name": "feed"`).Replace(shop)
	f, z := newFake(t, shop, nil), newFake(t, zoo, nil)
	h := newHost(t, call.Config{}, f, z, unindexed{named(t, "broken")})
	find := func(q search.Query) (*search.Data, string, bool) {
		t.Helper()
		data, weak, err := h.Search(t.Context(), cli, q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		var found []string
		for _, r := range data.Results {
			found = append(found, r.Name)
			if r.Why == "" || r.Confidence != "high" && r.Confidence != "medium" && r.Confidence != "low" || r.Brief == "" {
				t.Errorf("%+v: %+v", q, r)
			}
		}
		if data.Total < len(data.Results) || data.Results == nil {
			t.Errorf("%+v: total %d of %d", q, data.Total, len(data.Results))
		}
		return data, strings.Join(found, " "), weak
	}
	for text, first := range map[string]string{"feed": "zoo.feed", "give food to the lions": "zoo.feed",
		"sell something": "shop.add", "zoo.order.list": "zoo.order.list",
		"canel an order": "shop.order.cancel zoo.order.cancel"} {
		if _, got, _ := find(search.Query{Text: text}); !strings.HasPrefix(got, first) {
			t.Errorf("%q found %s, expected %s first", text, got, first)
		}
	}
	if _, got, _ := find(search.Query{Text: "order", Plugin: "ZOO"}); strings.Contains(got, "shop.") || got == "" {
		t.Errorf("in zoo: %s", got)
	}
	if _, got, _ := find(search.Query{Text: "order",
		Effect: "destructive"}); got != "shop.order.cancel zoo.order.cancel" {
		t.Errorf("destructive: %s", got)
	}
	if _, got, _ := find(search.Query{Text: "list", Group: "order"}); got == "" || strings.Contains(got, "echo") {
		t.Errorf("in the group order: %s", got)
	}
	if data, got, _ := find(search.Query{Text: "order", Limit: 1}); len(data.Results) != 1 || data.Total < 2 {
		t.Errorf("one of several: %s of %d", got, data.Total)
	}
	if _, got, weak := find(search.Query{Text: "quantum chromodynamics"}); !weak && got != "" {
		t.Errorf("nothing matches, and there is no warning: %s", got)
	}
	for _, odd := range []string{"", " ", "\x00", "\xff", "\u202e", strings.Repeat("order ", 10000),
		strings.Repeat("x", 100000), "-- '\"; drop"} {
		if data, _, _ := find(search.Query{Text: odd}); strings.ContainsAny(data.Query, "\x00\u202e") {
			t.Errorf("%q is shown as %q", odd, data.Query)
		}
	}
	if _, _, err := h.Search(t.Context(), cli, search.Query{Text: "a", Plugin: "sop"}); err == nil ||
		host.AsError(err).Code != host.NotFound || names(host.AsError(err).DidYouMean) != "shop" {
		t.Errorf("an unknown plugin: %v", err)
	}
	if data, got, _ := find(search.Query{Text: "\x1b[31mfe\x00ed\x1b[0m"}); !strings.HasPrefix(got, "zoo.feed") ||
		data.Query != "feed" {
		t.Errorf("%q found %s", data.Query, got)
	}
	for _, c := range [][3]string{{"oder", "", "broken.order shop.order zoo.order"}, {"zoo.oder", "zoo", "zoo.order"},
		{"food", "", ""}} {
		_, _, err := h.Search(t.Context(), cli, search.Query{Text: "list", Group: c[0], Plugin: c[1]})
		if e := host.AsError(err); err == nil || e.Code != host.NotFound || names(e.DidYouMean) != c[2] {
			t.Errorf("an unknown group %s: %v", c[0], err)
		}
	}
	if len(f.requests())+len(z.requests()) > 0 {
		t.Error("Search ran a tool")
	}
	if err := segment.Check([]byte("nothing")); err == nil {
		t.Error("a damaged segment is usable")
	}
}

// TestMeant checks what an unknown name leads to: names that it resembles, in all plugins and by their bare names, or
// the documentation of what a search for it finds.
func TestMeant(t *testing.T) {
	h := newHost(t, call.Config{}, terms{newFake(t, shop, nil)})
	for name, want := range map[string][2]string{
		"order.cancel":  {"shop.order.cancel 0", "describe shop.order.cancel"},
		"order__cancel": {"shop.order.cancel 0", "describe shop.order.cancel"},
		"cancel":        {"shop.order.cancel 0", "describe shop.order.cancel"},
		"order":         {"shop.order 0", "list shop.order"}, "ordre": {"", "list"},
		"shpo": {"shop 1", "list shop"}, "shpo.order.cancel": {"shop.order.cancel 1", "describe shop.order.cancel"},
		"shpo.zzqqxv": {"shop 1", "list shop"}, " shop.ad ": {"shop.add 1", "describe shop.add"}, "ad": {"", "list"},
		"shop.order.plced":    {"shop.order.placed 1", "describe shop.order.placed"},
		"shop.sell_something": {"", "describe shop.add"}, "sell something new": {"", "list"}, "sell.nope": {"", "list"},
		"shop.order.abort": {"", "describe shop.order.cancel"}, "zzqqxv": {"", "list"}, "shop.zzqqxv": {"", "list shop"},
	} {
		_, err := h.Catalog().Find(name)
		e := host.AsError(err)
		var near []string
		for _, n := range e.DidYouMean {
			near = append(near, fmt.Sprint(n.Name, " ", n.Distance))
		}
		if err == nil || e.Code != host.NotFound || strings.Join(near, ", ") != want[0] || e.Steps[0].String() != want[1] {
			t.Errorf("%q: %v, did you mean %v, next %v; expected %q", name, err, near, e.Steps, want)
		}
	}
	_, err := h.Catalog().Find("order.cancel")
	if e := host.AsError(err); !hasStep(e.Steps, "search order.cancel") {
		t.Errorf("%+v", e)
	}
}

// TestSearchDocIsClean checks that phrases of a plugin, which hits show, show their control characters.
func TestSearchDocIsClean(t *testing.T) {
	d := segment.DocOf(&manifest.Tool{Name: "add", Aliases: []string{"snap\x1b[2J\u202eper\nzap"},
		Keywords: []string{"key\x07word"}, Tasks: []string{"see the \x1b[31mmoon"}})
	if got := strings.Join(slices.Concat(d.Aliases, d.Keywords, d.Tasks),
		"|"); got != `snap\u001b[2J\u202eper zap|key\u0007word|see the \u001b[31mmoon` {
		t.Errorf("%q", got)
	}
}

func TestGrantNames(t *testing.T) {
	if got := (grant.Grant{}).Names(); got == nil || len(got) != 0 {
		t.Errorf("nothing: %#v, expected an empty list, which is [] in JSON", got)
	}
	g := grant.Grant{
		FS: []grant.FS{{Path: "/data", Source: "/srv/data", Mode: "ro"},
			{Path: "/out", Source: "/tmp/out", Mode: "rw"}},
		HTTP: []grant.HTTP{{URL: "https://api.example.com", Methods: []string{"GET", "POST"}},
			{URL: "https://example.com"}},
		Env: map[string]string{"TZ": "UTC", "LANG": "C"}, Tools: []string{"cdp.Page.*"},
		Secrets: []grant.Secret{{Name: "A"}, {Name: "B", Read: true}}, Browser: true, Clock: true, Random: true,
	}
	want := "fs:ro:/srv/data=/data fs:rw:/tmp/out=/out http:GET,POST:https://api.example.com " +
		"http:GET:https://example.com tool:cdp.Page.* env:LANG env:TZ secret:A secret:read:B browser:session clock random"
	if got := strings.Join(g.Names(), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAsked(t *testing.T) {
	if got := grant.Requested(manifest.Capabilities{}); len(got) != 0 {
		t.Errorf("nothing: %+v", got)
	}
	bad := "why\x1b[31m\n\u202enot"
	got := grant.Requested(manifest.Capabilities{
		FS: []manifest.FSCapability{{Path: "/data", Mode: "rw", Why: bad}},
		HTTP: []manifest.HTTPCapability{{URL: "https://example.com"},
			{URL: "https://example.com", Methods: []string{"PUT"}}},
		Secrets: []manifest.SecretCapability{{Name: "A"}, {Name: "B", Read: true}},
		Env:     []manifest.NamedCapability{{Name: "LANG"}}, Tools: []manifest.NamedCapability{{Name: "cdp.*\u200b"}},
		Browser: &manifest.BrowserCapability{Context: "session"},
		Clock:   &manifest.PlainCapability{Why: bad}, Random: &manifest.PlainCapability{},
	})
	var rights []string
	for _, d := range got {
		rights = append(rights, d.Right)
	}
	want := "fs:rw:PATH=/data http:GET:https://example.com http:PUT:https://example.com " +
		`secret:A secret:read:B env:LANG tool:cdp.*\u200b browser:session clock random`
	if strings.Join(rights, " ") != want || got[0].Why != got[8].Why || got[8].Why != `why\u001b[31m \u202enot` {
		t.Errorf("got %+v\nwant %s", got, want)
	}
}

// counting is a fake that counts how often it describes.
type counting struct {
	*fake
	built *atomic.Int32
}

func (c counting) Features() host.Features { return host.Features{Describe: c.describe} }

func (c counting) describe(tool *manifest.Tool, tier int) *manifest.ToolDocs {
	c.built.Add(1)
	return manifest.Describe(c.manifest, tool, tier)
}

// TestDescribeIsCached checks that a tier is built on first use, once.
func TestDescribeIsCached(t *testing.T) {
	var built atomic.Int32
	h := newHost(t, call.Config{}, counting{newFake(t, shop, nil), &built})
	describe := func(name string, tier int) string {
		d, err := h.Describe(t.Context(), cli, name, tier)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(d)
		return string(raw)
	}
	if built.Load() != 0 {
		t.Error("a tier was built before its first use")
	}
	first := describe("shop.add", 2)
	for range 3 {
		if again := describe("SHOP__add", 2); again != first {
			t.Errorf("got %s, and first %s", again, first)
		}
	}
	failsWith(t, makeCall(t, h, "shop.add", "{}"), host.InvalidArgs)
	if n := built.Load(); n != 1 {
		t.Errorf("tier 2 was built %d times", n)
	}
	describe("shop.add", 3)
	describe("shop.echo", 2)
	if n := built.Load(); n != 3 {
		t.Errorf("three descriptions read the tool %d times", n)
	}
}

// TestEqualHits checks the order of hits that match equally well: those that the operator prefers, the built-in
// plugins, the shipped ones, the signed ones, and others.
func TestEqualHits(t *testing.T) {
	var providers []host.Provider
	const text = `{"manifest":1,"name":"NAME","version":"1.0.0","kind":"wasi","docs":{"brief":"Sell"},
		"tools":[{"name":"sell","docs":{"brief":"Sell tea"},"effect":"read","params":{"type":"object"}}]}`
	owners := map[string]string{"cdp": "", "page": "", "zeta": host.OwnerShipped, "beta": "key", "alpha": "", "mine": ""}
	for name, owner := range owners {
		f := newFake(t, strings.ReplaceAll(text, "NAME", name), nil)
		if f.info.Owner = owner; name == "cdp" || name == "page" {
			f.builtin()
		}
		providers = append(providers, f)
	}
	for _, c := range []struct{ prefer, want string }{
		{"", "page cdp zeta beta alpha mine"},
		{"Mine alpha unknown", "mine alpha page cdp zeta beta"},
	} {
		h := newHost(t, call.Config{Prefer: strings.Fields(c.prefer)}, providers...)
		data, _, err := h.Search(t.Context(), cli, search.Query{Text: "sell tea"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range data.Results {
			got = append(got, strings.TrimSuffix(r.Name, ".sell"))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("preferring %q: %s, expected %s", c.prefer, text, c.want)
		}
	}
}
