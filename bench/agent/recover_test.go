package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/testhome"
)

// sampled is the number of tools of each plugin with which a class of mistakes is tried, without PARLEY_HAMMER.
const sampled = 5

// TestMistakesAreRecovered checks that the information in an error is enough: if a mistake reveals what was
// meant, the second call is that one in 97 of 100 cases, and no suggestion has a value that was not given: the others
// are calls too large for the bound of an error. It makes a sample of each class with each plugin. With PARLEY_HAMMER
// set it makes all of them, which are the figures in docs/mcp.md.
func TestMistakesAreRecovered(t *testing.T) {
	home := testhome.New(t)
	all, err := planAll(t.Context(), binary(t), home)
	if err != nil {
		t.Fatal(err)
	}
	planned, whole := all, os.Getenv("PARLEY_HAMMER") != ""
	if !whole {
		planned = sample(all, sampled)
	}
	counts, err := makeAll(t.Context(), binary(t), home, planned)
	if err != nil {
		t.Fatal(err)
	}
	total := map[string]int{} // by class: all that can be made
	for _, p := range all {
		for _, m := range p.wrong {
			total[m.class] += len(frontendsOf(p.tool))
		}
	}
	for _, class := range slices.Sorted(maps.Keys(total)) {
		o := counts.of(class)
		t.Logf("%-45s %5d made, %5d accepted, %5d of %5d meant, %5d templates", class, o.made, o.accepted, o.meant,
			o.recoverable, o.templates)
		if o.made == 0 {
			t.Errorf("%s: not one of %d was made", class, total[class])
		}
		if len(o.lost) > max(2, o.recoverable/9) {
			t.Errorf("%s: %d of %d are not recovered, such as %.2000s", class, len(o.lost), o.recoverable, o.lost[0])
		}
		if len(o.wrong) > 0 {
			t.Errorf("%s: %d have a value that was not given, such as %.2000s", class, len(o.wrong), o.wrong[0])
		}
	}
	if sum := counts.sum(); sum.share(sum.meant) < 0.97 {
		t.Errorf("the second call is the intended one in %.4f of the cases, such as %.2000s", sum.share(sum.meant),
			sum.lost[0])
	}
	if whole {
		current(t, mistakesSection, counts.String())
		if page, err := os.ReadFile("../../" + readme); err != nil || !strings.Contains(string(page), counts.short()) {
			t.Errorf("README.md does not show\n%s%v; %s", counts.short(), err, rerun)
		}
		return
	}
	made := 0
	for _, n := range total {
		made += n
	}
	head := fmt.Sprintf("%d mistakes of %d kinds", made, len(total))
	if shown, _, _ := strings.Cut(figures(t, mistakesSection), ","); !same(shown, head) {
		t.Errorf("docs/mcp.md shows\n%s\nmeasured are %s; %s", shown, head, rerun)
	}
}

// TestMistakesInTheBrowser makes some mistakes in a real browser: the call that the error suggests has the intended
// effect.
func TestMistakesInTheBrowser(t *testing.T) {
	needBrowser(t)
	url, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	home := testhome.New(t)
	t.Cleanup(func() { must(t, home, "cdp", "close", "--all") })
	c := &client{binary: binary(t), home: home}
	if _, err := c.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.close() })
	for _, m := range []struct{ tool, wrong, want string }{
		{"cdp.open", `{"ulr":"` + url + `"}`, `"title":"Harbour"`},
		{"cdp.open", `{"params":{"url":"` + url + `"}}`, `"title":"Harbour"`},
		{"cdp.Runtime.evaluate", `{"expresion":"document.title","returnByValue":"yes"}`, `Harbour`},
		{"cdp.Page.captureScreenshot", `{"format":"PNG"}`, ``},
		{"cdp.Page.captureScreenshot", `{"format":"jpg","quality":"50"}`, ``},
		{"cdp.Emulation.setGeolocationOverride", `{"lat":1,"lng":2,"accuracy":3}`, `{}`},
		{"cdp.Page.navigate", `{"url":["` + url + `"]}`, `frameId`}, // last, because it does not wait for the page
	} {
		a, err := c.call(t.Context(), m.tool, json.RawMessage(m.wrong))
		if err != nil || !a.failed {
			t.Errorf("%s %s: %v, %s", m.tool, m.wrong, err, a.text)
			continue
		}
		params, ok := suggested(a.err)
		if !ok {
			t.Errorf("%s %s: the error suggests no call: %s", m.tool, m.wrong, a.text)
			continue
		}
		if a, err = c.call(t.Context(), m.tool, params); err != nil || a.failed || !strings.Contains(a.text, m.want) {
			t.Errorf("%s %s, then %s: %v, %s", m.tool, m.wrong, params, err, a.text)
		}
	}
}
