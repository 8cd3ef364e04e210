package call_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
)

// TestEarlierErrors checks that an error names the earlier ones of the session with the tool, without values.
func TestEarlierErrors(t *testing.T) {
	h := newHost(t, call.Config{Sessions: &session.Store{Dir: t.TempDir()}}, newFake(t, shop, nil))
	fail := func(session, params string) string {
		a, _ := h.Call(t.Context(),
			host.Call{Name: "shop.add", Params: json.RawMessage(params), Principal: cliIn(session)})
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
			Principal: cliIn("again")})
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
	h := newHost(t, call.Config{Sessions: &session.Store{Dir: t.TempDir()}}, newFake(t, shop, nil))
	use := func(session string, teach bool) int {
		a, _ := h.Call(t.Context(), host.Call{Name: "shop.echo", Principal: cliIn(session), DocsOnFirstUse: teach})
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
	if _, err := h.Describe(t.Context(), cliIn("d"), "shop.echo", 3); err != nil {
		t.Fatal(err)
	}
	if got := use("d", true); got != 0 {
		t.Errorf("after tier 3 was shown: tier %d", got)
	}
}
