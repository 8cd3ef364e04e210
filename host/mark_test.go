package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// TestMarked checks that Mark marks each fault and shortens values without one.
func TestMarked(t *testing.T) {
	h := newHost(t, host.Config{}, newFake(t, shop, nil))
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		name, params, want string
	}{
		{"a wrong item", `{"title":"tea","tags":["a",3,"c"]}`, `{
  "tags": [
    "a",
    3, // ✗ /tags/1: expected string, got number 3
    "c"
  ],
  "title": "tea"
}`},
		{"a missing one", `{}`, `{
  // ✗ /title: expected string of at least 1 character, got nothing
}`},
		{"a nested wrong value", `{"title":"tea","extra":{"depth":"x","a/b":1}}`, `{
  "extra": {
    "a/b": 1,
    "depth": "x" // ✗ /extra/depth: expected integer, got string "x"
  },
  "title": "tea"
}`},
		{"no object", `[1]`, `[1] // ✗ parameters: expected object, got array[1]`},
		{"valid values are shortened", `{"title":"` + long + `","count":0}`, `{
  "count": 0, // ✗ /count: expected integer >= 1 and <= 99, got number 0
  "title": "` + long[:59] + `…
}`},
		{"hidden characters", `{"title":"a\u202eb","price":"\u001b[2J"}`, `{
  "price": "\u001b[2J", // ✗ /price: expected number, got string "\u001b[2J"
  "title": "a\u202eb"
}`},
		{"no JSON", "{\n \"title\": tea}", `"title": // ✗ line 2, column 11: `},
	} {
		e := failsWith(t, call(t, h, "shop.add", c.params), host.InvalidArgs)
		if e.Object().Marked != e.Marked {
			t.Errorf("%s: the mark does not leave the host", c.name)
		}
		if c.name == "no JSON" && strings.HasPrefix(e.Marked, c.want) {
			continue
		}
		if e.Marked != c.want {
			t.Errorf("%s:\n%s\nexpected\n%s\n%+v", c.name, e.Marked, c.want, e.Details)
		}
	}
	many := `{"title":"tea","tags":[` + strings.Repeat(`"a",`, 500) + `1` + strings.Repeat(`,2`, 3000) + `]}`
	if e := failsWith(t, call(t, h, "shop.add", many), host.InvalidArgs); len(e.Marked) > 5<<10 ||
		!strings.Contains(e.Marked, "… 500 more") {
		t.Errorf("%d bytes: %.300s", len(e.Marked), e.Marked)
	}
}

// TestEarlierErrors checks that an error names the earlier ones of the session with the tool, without values.
func TestEarlierErrors(t *testing.T) {
	h := newHost(t, host.Config{Sessions: &host.Sessions{Dir: t.TempDir()}}, newFake(t, shop, nil))
	fail := func(session, params string) string {
		a, _ := h.Call(t.Context(),
			host.Call{Name: "shop.add", Params: json.RawMessage(params), Caller: "cli", Session: host.Session{Name: session}})
		return strings.Join(failsWith(t, a, host.InvalidArgs).Object().Earlier, "; ")
	}
	for _, c := range [][2]string{
		{`{}`, ""},
		{`{"title":"tea","count":0}`, "/title: expected string of at least 1 character"},
		{`{}`, "/title: expected string of at least 1 character; /count: expected integer >= 1 and <= 99"},
		{`{}`, "/count: expected integer >= 1 and <= 99; /title: expected string of at least 1 character"},
	} {
		if got := fail("s", c[0]); got != c[1] {
			t.Errorf("%s: earlier %q, expected %q", c[0], got, c[1])
		}
	}
	// The third time says so, and has all documentation again.
	repeat := func() *host.Error {
		a, _ := h.Call(t.Context(), host.Call{Name: "shop.add", Params: json.RawMessage(`{"title":"tea","count":0}`),
			Caller: "cli", Session: host.Session{Name: "again"}})
		return failsWith(t, a, host.InvalidArgs)
	}
	for i, want := range []int{manifest.Tier2, manifest.Tier3, manifest.Tier3, 0} {
		e := repeat()
		said := strings.Contains(e.Message, fmt.Sprintf("the same error for the %dth time", i+1)) ||
			i == 2 && strings.Contains(e.Message, "the same error for the 3rd time in this session")
		tier := 0
		if e.Docs != nil {
			tier = e.Docs.Tier
		}
		if tier != want || said != (i >= 2) {
			t.Errorf("failure %d: %s, tier %d, want %d", i+1, e.Message, tier, want)
		}
	}
	if got := fail("other", `{}`) + fail("", `{}`) + fail("", `{}`); got != "" {
		t.Errorf("of another session, or without a session: %q", got)
	}
}

// TestTeach checks that the first use of a tool in a session adds tier 2 once, with Call.DocsOnFirstUse.
func TestTeach(t *testing.T) {
	h := newHost(t, host.Config{Sessions: &host.Sessions{Dir: t.TempDir()}}, newFake(t, shop, nil))
	use := func(session string, teach bool) int {
		a, _ := h.Call(t.Context(), host.Call{Name: "shop.echo", Caller: "cli",
			Session: host.Session{Name: session}, DocsOnFirstUse: teach})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		if a.Docs != nil {
			return a.Docs.Tier
		}
		return 0
	}
	if got := []int{use("s", false), use("s", true), use("s", true), use("", true)}; got[0] != 0 || got[1] != 2 ||
		got[2] != 0 || got[3] != 0 {
		t.Errorf("tiers %v", got)
	}
	if _, err := h.Describe(t.Context(), "cli", host.Session{Name: "d"}, "shop.echo", 3); err != nil {
		t.Fatal(err)
	}
	if got := use("d", true); got != 0 {
		t.Errorf("after tier 3 was shown: tier %d", got)
	}
}
