package schemafacts

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
)

// CheckTiers checks that the second tier of a tool's documentation shows or counts each property, value of an enum,
// format and description of its parameters, in each form that it has, and that the third tier shows all of them. If
// texts are clipped, the second tier must have at least the beginning of each description.
func CheckTiers(t testing.TB, tool *manifest.Tool, two, three *manifest.ToolDocs, areClipped bool) {
	t.Helper()
	facts := Of(tool.Params, 3)
	raw, err := json.Marshal(two)
	if err != nil {
		t.Fatal(err)
	}
	var again manifest.ToolDocs
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	text, program := two.Text(), two.TypeScript(tool)
	isMore := map[string]bool{}
	for _, name := range two.MoreParameters {
		isMore[name] = true
		if !strings.Contains(text, name) || !strings.Contains(string(raw), name) || !strings.Contains(program, name) {
			t.Errorf("%s: a door does not name %s", two.Name, name)
		}
	}
	for i := range two.Parameters {
		p := &two.Parameters[i]
		shown := p.TypeText()
		if !strings.Contains(text, ": "+shown) {
			t.Errorf("%s: the text does not have the type of %s: %s", two.Name, p.Name, shown)
		}
		descriptions := 0
		for _, f := range facts {
			top, _, nested := strings.Cut(strings.ReplaceAll(f.Path, "[", ".["), ".")
			if top != p.Name {
				continue
			}
			isCut := strings.Contains(shown, "… ") && p.More > 0
			switch {
			case f.Kind == "description" && !nested:
				said := manifest.CleanLine(f.Value)
				if areClipped {
					said = said[:min(len(said), 12)]
				}
				isShown := strings.Contains(text, said) || areClipped && p.More > 0
				if !isShown || again.Parameters[i].Description != p.Description {
					t.Errorf("%s: %s is not described", two.Name, f.Path)
				}
			case f.Kind == "bound":
			case f.Kind == "description":
				if strings.Contains(shown, f.Name) {
					descriptions++
				}
			case f.Kind == "name" && !nested:
			case !strings.Contains(shown, f.Value) && !isCut:
				t.Errorf("%s: neither shows nor counts %s %s of %s: %s", two.Name, f.Kind, f.Value, f.Path, shown)
			}
		}
		if strings.HasPrefix(two.Name, "random") && p.More < min(descriptions, 1) {
			t.Errorf("%s: %s has %d descriptions of fields and counts %d", two.Name, p.Name, descriptions, p.More)
		}
	}
	signature := manifest.TypedSignature(two.Name, tool)
	for _, f := range Missing(signature, facts, false) {
		if f.Kind != "description" && f.Kind != "bound" {
			t.Errorf("%s: the signature neither shows nor counts %s %s: %s", two.Name, f.Kind, f.Path, signature)
		}
	}
	checkWhole(t, three, three.Parameters, facts)
	checkWhole(t, three, three.Returns, Of(tool.Returns, 3))
	program = strings.ReplaceAll(three.TypeScript(tool), "* /", "*/")
	for _, f := range facts {
		if !strings.Contains(program, strings.Trim(f.Value, `"`)) && !strings.Contains(program, "{…}") {
			t.Errorf("%s: tier 3 as TypeScript does not show %s %s of %s", three.Name, f.Kind, f.Value, f.Path)
		}
	}
}

// checkWhole checks that the third tier shows each fact in the line of its property.
func checkWhole(t testing.TB, d *manifest.ToolDocs, params []manifest.Param, facts []Fact) {
	t.Helper()
	lines, types := map[string]string{}, map[string]string{}
	for _, p := range manifest.WithFields(params) {
		lines[p.Name] += p.Text() + "\n"
		types[p.Name] += p.TypeText()
	}
	text := d.Text()
	for _, f := range facts {
		if part := lines[partOf(f.Path)]; strings.Contains(part, f.Value) && f.Kind != "name" {
			continue // it is a part of a type on one line
		}
		path := f.Path
		for range 8 { // the type may be described where it first occurred
			if _, ok := lines[path]; ok {
				break
			}
			path = elsewhere(path, types)
		}
		line, ok := lines[path]
		if !ok {
			line, ok = lines[partOf(path)]
		}
		if !ok || !strings.Contains(line, f.Value) || !strings.Contains(text, line[:strings.IndexByte(line, '\n')]) {
			t.Errorf("%s: tier 3 does not show %s %s of %s (%s): %s", d.Name, f.Kind, f.Value, f.Path, path, line)
		}
	}
}

// nameless matches the end of a path that leads to a part of a type without a name.
var nameless = lazy.Pattern(`(\[\d*\]|\.\*|\(case \d+\))+$`)

// partOf returns the path of the property that contains a value.
func partOf(path string) string { return nameless().ReplaceAllString(path, "") }

// elsewhere returns the path of the same field at the place where its type is described: "b.x" becomes "a.x" if b is
// {… as a}.
func elsewhere(path string, types map[string]string) string {
	for at := len(path); at > 0; at-- {
		_, as, ok := strings.Cut(types[path[:at]], "{… as ")
		if !ok || at == len(path) {
			continue
		}
		rest := path[at:]
		for strings.HasPrefix(rest, "[") {
			rest = rest[strings.IndexByte(rest, ']')+1:]
		}
		return as[:strings.IndexByte(as, '}')] + strings.TrimPrefix(rest, ".*")
	}
	return path
}

// Missing returns the facts that a text lacks. If isWhole is not set, a fact that the text counts is not missing.
func Missing(text string, facts []Fact, isWhole bool) (missing []Fact) {
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	text = words(text)
	for _, f := range facts {
		if !strings.Contains(text, words(f.Value)) && (isWhole || !strings.Contains(text, "… ")) {
			missing = append(missing, f)
		}
	}
	return missing
}
