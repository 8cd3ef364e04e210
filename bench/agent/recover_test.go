package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestEveryMistakeIsRecovered holds that what an error says is enough: of each class of mistakes, with each tool, the second call succeeds
// in 95 of 100 cases.
func TestEveryMistakeIsRecovered(t *testing.T) {
	counts, err := fumbleAll(t.Context(), binary(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, class := range slices.Sorted(maps.Keys(counts)) {
		o := counts[class]
		t.Logf("%-45s %5d made, %5d mended, %5d at the second call", class, o.made, o.mended, o.second)
		if o.made > o.mended && o.share() < 0.95 {
			t.Errorf("%s: %d of %d are lost, such as %.2000s", class, len(o.lost), o.made-o.mended, o.lost[0])
		}
	}
	current(t, mistakesSection, counts.String())
}

// TestMistakesInTheBrowser makes some mistakes for real: the call that the error says does what was wanted.
func TestMistakesInTheBrowser(t *testing.T) {
	needBrowser(t)
	url, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	home := t.TempDir()
	t.Cleanup(func() { closeBrowser(binary(t), home) })
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
		{"cdp.Page.captureScreenshot", `{"format":"jpeg","quality":50.5}`, ``},
		{"cdp.Emulation.setGeolocationOverride", `{"latitude":"north"}`, `{}`},
		{"cdp.Page.navigate", `{"url":["` + url + `"]}`, `frameId`}, // last, for it does not wait for the page
	} {
		a, err := c.call(t.Context(), m.tool, json.RawMessage(m.wrong))
		if err != nil || !a.failed {
			t.Errorf("%s %s: %v, %s", m.tool, m.wrong, err, a.text)
			continue
		}
		params, ok := heed(a.err)
		if !ok {
			t.Errorf("%s %s: nothing to go by: %s", m.tool, m.wrong, a.text)
			continue
		}
		if a, err = c.call(t.Context(), m.tool, params); err != nil || a.failed || !strings.Contains(a.text, m.want) {
			t.Errorf("%s %s, then %s: %v, %s", m.tool, m.wrong, params, err, a.text)
		}
	}
}
