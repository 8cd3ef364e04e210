package lint

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// document is manifest/RULES.md.
func document(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../RULES.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// blocks returns the fenced blocks of a text with a kind: base, bad or good.
func blocks(text, kind string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?s)```json "+kind+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// merge applies a fragment to a manifest: objects are merged, null removes, and the tools of a list are merged with the
// first tool of the manifest one by one, and any other value replaces.
func merge(base, fragment any) any {
	object, ok := fragment.(map[string]any)
	if !ok {
		return fragment
	}
	merged := map[string]any{}
	if old, ok := base.(map[string]any); ok {
		for k, v := range old {
			merged[k] = v
		}
	}
	for k, v := range object {
		list, isList := v.([]any)
		switch {
		case v == nil:
			delete(merged, k)
		case k == "tools" && isList && merged["tools"] != nil: // not those of capabilities
			first := merged["tools"].([]any)[0]
			var tools []any
			for _, tool := range list {
				tools = append(tools, merge(first, tool))
			}
			merged[k] = tools
		default:
			merged[k] = merge(merged[k], v)
		}
	}
	return merged
}

// example parses the base manifest of RULES.md with a fragment merged into it.
func example(t *testing.T, fragment string) *manifest.Manifest {
	t.Helper()
	var base, change any
	if err := json.Unmarshal([]byte(blocks(document(t), "base")[0]), &base); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(fragment), &change); err != nil {
		t.Fatalf("%v in %s", err, fragment)
	}
	data, err := json.Marshal(merge(base, change))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(data, "0.1.0")
	if err != nil {
		t.Fatalf("%v in %s", err, fragment)
	}
	return m
}

// neighbors are the plugins that RULES.md names, and a search that ranks phrases by shared words.
func neighbors(m *manifest.Manifest) Neighbors {
	plugins := []Plugin{
		{Name: "text", Shipped: true, Owned: true, Tools: []*manifest.Tool{{
			Name: "hash", Docs: manifest.Docs{Brief: "Hash a text"}, Aliases: []string{"digest"},
			Tasks: []string{"checksum of a text"}, Returns: []byte(`{"type":"object","properties":{"hex":{"type":"string"}}}`)}}},
		{Name: "cdp", Shipped: true, Owned: true, Tools: []*manifest.Tool{
			{Name: "Page.captureScreenshot", Tasks: []string{"take a picture of a page"}}, {Name: "Network.getCookies"}}},
	}
	search := func(query string, with bool) []Hit {
		type ranked struct {
			name  string
			score float64
		}
		var list []ranked
		add := func(name string, phrases ...string) {
			r := ranked{name: name}
			for _, p := range append(phrases, name) {
				r.score = max(r.score, overlap(contentWords(query), contentWords(p)))
			}
			if r.score > 0 {
				list = append(list, r)
			}
		}
		if with {
			for _, t := range m.Tools {
				add(m.Name+"."+t.Name, append(append(slices.Clone(t.Aliases), t.Tasks...), t.Keywords...)...)
			}
		}
		for _, p := range plugins {
			for _, t := range p.Tools {
				add(p.Name+"."+t.Name, append(slices.Clone(t.Aliases), t.Tasks...)...)
			}
		}
		slices.SortStableFunc(list, func(a, b ranked) int {
			switch {
			case a.score > b.score:
				return -1
			case a.score < b.score:
				return 1
			}
			return 0
		})
		return lists.Map(list, func(r ranked) Hit { return Hit{r.name, r.score >= 0.6} })
	}
	return Neighbors{Plugins: plugins, Search: search}
}

func names(found []Finding) []string {
	var list []string
	for _, f := range found {
		if !slices.Contains(list, f.Rule) {
			list = append(list, f.Rule)
		}
	}
	return list
}

// TestRulesAreDocumented checks that RULES.md has each rule in order, with its severity, and runs its examples:
// the bad one breaks this rule, the good one no rule.
func TestRulesAreDocumented(t *testing.T) {
	if len(rules) > 30 {
		t.Errorf("%d rules, expected at most 30, because authors read all of them", len(rules))
	}
	text := document(t)
	if found := Check(example(t, `{}`), neighbors(example(t, `{}`))); len(found) > 0 {
		t.Errorf("the base breaks rules: %v", found)
	}
	headings := regexp.MustCompile("(?m)^### `([a-z-]+)` \\((error|warning)\\)\n").FindAllStringSubmatchIndex(text, -1)
	if len(headings) != len(rules) {
		t.Errorf("RULES.md has %d rules, the code %d", len(headings), len(rules))
	}
	for i, h := range headings {
		name, severity := text[h[2]:h[3]], text[h[4]:h[5]]
		if i >= len(rules) || rules[i].Name != name || string(rules[i].Severity) != severity {
			t.Fatalf("rule %d is documented as %s (%s)", i, name, severity)
		}
		end := len(text)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		section := text[h[1]:end]
		t.Run(name, func(t *testing.T) {
			bad, good := blocks(section, "bad"), blocks(section, "good")
			if len(bad) == 0 || len(good) == 0 {
				t.Fatal("the rule does not have a good and a bad example")
			}
			for _, fragment := range bad {
				m := example(t, fragment)
				found := Check(m, neighbors(m))
				if !slices.Contains(names(found), name) {
					t.Errorf("the bad example breaks %v:\n%s", names(found), fragment)
				}
				for _, f := range found {
					if f.Rule == name && (f.Severity != rules[i].Severity || f.Message == "") {
						t.Errorf("got %v", f)
					}
				}
			}
			for _, fragment := range good {
				m := example(t, fragment)
				if found := Check(m, neighbors(m)); len(found) > 0 {
					t.Errorf("the good example breaks %v:\n%s", found, fragment)
				}
			}
		})
	}
}

// TestRequirementsAreCovered checks the table of RULES.md: each row is answered, and each rule that it names exists.
func TestRequirementsAreCovered(t *testing.T) {
	text := document(t)
	want := []string{"I1", "I2", "I4", "L1 to L4"}
	for i := 1; i <= 20; i++ {
		want = append(want, fmt.Sprintf("H%d", i))
	}
	for _, row := range want {
		m := regexp.MustCompile(`(?m)^\| ` + row + ` \|.*\| (.*) \|$`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("row %s is missing", row)
			continue
		}
		for _, name := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(m[1], -1) {
			known := slices.ContainsFunc(rules, func(r Rule) bool { return r.Name == name[1] })
			if !known && name[1] != "required" && name[1] != "deprecated" {
				t.Errorf("row %s names %q, which is not a rule", row, name[1])
			}
		}
	}
}
