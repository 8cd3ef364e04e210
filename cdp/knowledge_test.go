package cdp

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// leastReviewed is how many tools say when to use them and which others belong to them.
const leastReviewed = 200

// TestWhen checks that the tools which agents use most say when to choose them, and that the tools which these texts
// name exist.
func TestWhen(t *testing.T) {
	p := New(Config{})
	named := regexp.MustCompile(`\b(?:cdp\.)?[A-Z]\w*\.[a-z]\w*|\bcdp\.[a-z]\w*`)
	reviewed := 0
	for _, name := range names(t, p) {
		tool := toolOf(t, p, name)
		if tool.When == "" && tool.WhenNot != "" {
			t.Errorf("%s says only when not to use it", name)
		}
		texts := tool.When + " " + tool.WhenNot
		for _, r := range tool.Related {
			if texts += " " + r.Tool; r.Why == "" || r.Tool == Name+"."+name {
				t.Errorf("%s: related: %+v", name, r)
			}
		}
		for _, other := range named.FindAllString(texts, -1) {
			local := strings.TrimPrefix(other, Name+".")
			if e, err := p.Entry(local); err == nil && e != nil && e.Kind == "event" {
				continue
			}
			if found, err := p.Tool(local); err != nil || found == nil {
				t.Errorf("%s names %s, which does not exist", name, other)
			}
		}
		if tool.When != "" && len(tool.Related) > 0 {
			reviewed++
		}
	}
	if reviewed < leastReviewed {
		t.Errorf("%d tools say when to use them, expected at least %d", reviewed, leastReviewed)
	}
}

// leastRelated is how many commands name another one, those that undo them among these.
const leastRelated = 340

func TestRelated(t *testing.T) {
	p, related := New(Config{}), 0
	for _, name := range names(t, p) {
		if len(toolOf(t, p, name).Related) > 0 {
			related++
		}
	}
	if related < leastRelated {
		t.Errorf("%d tools name related ones, expected at least %d", related, leastRelated)
	}
	for name, want := range map[string]string{"DOMStorage.enable": "cdp.DOMStorage.disable",
		"PWA.uninstall": "cdp.PWA.install", "Tethering.unbind": "cdp.Tethering.bind"} {
		if r := toolOf(t, p, name).Related; len(r) != 1 || r[0].Tool != want || r[0].Why == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestEveryParameterIsInAnExample checks that every parameter which is not deprecated is in an example of its tool.
func TestEveryParameterIsInAnExample(t *testing.T) {
	p := New(Config{})
	for _, name := range names(t, p) {
		tool := toolOf(t, p, name)
		shown := map[string]json.RawMessage{}
		for _, e := range tool.Examples {
			if err := json.Unmarshal(e.Params, &shown); err != nil {
				t.Errorf("%s, %s: %v", name, e.Title, err)
			}
		}
		deprecated := map[string]bool{}
		if c, ok := p.protocol.Command(name); ok {
			for _, q := range c.Params {
				deprecated[q.Name] = q.Deprecated
			}
		}
		for _, q := range manifest.Params(tool.Params) {
			if shown[q.Name] == nil && !deprecated[q.Name] {
				t.Errorf("%s: no example has %s", name, q.Name)
			}
		}
	}
}

func names(t *testing.T, p *Provider) []string {
	t.Helper()
	list, err := p.Names()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func toolOf(t *testing.T, p *Provider, name string) *manifest.Tool {
	t.Helper()
	tool, err := p.Tool(name)
	if err != nil || tool == nil {
		t.Fatalf("%s: %v, %v", name, tool, err)
	}
	return tool
}
