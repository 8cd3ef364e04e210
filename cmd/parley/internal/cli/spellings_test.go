package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/mcp/envelope"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/sample"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/peers"
)

// TestListedNames finds each tool on the command line by the name that MCP lists for it.
func TestListedNames(t *testing.T) {
	h, cut := shippedHost(t), 0
	for _, provider := range h.Catalog().Providers() {
		names, _ := provider.Names()
		for _, name := range names {
			qualified := provider.Info().Name + "." + name
			listed := envelope.ListedName(qualified)
			if at, _, err := command.Find(h.Catalog(), []string{listed}, false); err != nil || at.Name() != qualified {
				t.Errorf("%s finds %s, want %s: %v", listed, at.Name(), qualified, err)
			}
			if listed != strings.ReplaceAll(qualified, ".", "__") {
				cut++
			}
		}
	}
	if cut == 0 {
		t.Error("no name was cut")
	}
}

// TestNamesInOtherForms checks that the name of a tool in another form means that tool or, where a manifest says
// otherwise or several tools have such a name, none.
func TestNamesInOtherForms(t *testing.T) {
	h, forms, found := shippedHost(t), 0, 0
	few, some := sample.OneIn(t, 40), sample.OneIn(t, 8)
	for _, provider := range h.Catalog().Providers() {
		plugin := provider.Info().Name
		names, _ := provider.Names()
		sampled := some
		if len(names) > 100 {
			sampled = few
		}
		for _, name := range names {
			if tool, err := provider.Tool(name); err != nil || tool == nil || !sampled() {
				continue
			}
			flat := strings.ReplaceAll(name, ".", "_")
			for _, form := range []string{"mcp__parley__" + plugin + "__" + flat, plugin + "/" + name, plugin + ":" + name,
				plugin + "_" + flat, plugin + "-" + flat, "parley_" + plugin + "_" + flat, "functions." + plugin + "." + name,
				plugin + "." + name + "s", plugin + "." + strings.TrimSuffix(name, "s"), strings.ToUpper(plugin + "." + name)} {
				if at, err := h.Catalog().Find(form); err == nil && at.Tool != nil {
					continue // the name of another tool
				}
				forms++
				all, _ := h.Names().Meant(form, map[string]any{}, nil)
				if len(all) == 0 {
					continue
				}
				found++
				if own := plugin + "." + name; all[0].Tool != own && plugin == "cdp" {
					t.Errorf("%s means %s, want %s", form, all[0].Tool, own)
				}
			}
		}
	}
	if t.Logf("%d of %d", found, forms); found < forms*8/10 {
		t.Errorf("only %d of %d names are found", found, forms)
	}
}

// TestLinesInOtherForms types an example of every tool with texts as parameters in other forms. No other call is
// offered, and few are lost.
func TestLinesInOtherForms(t *testing.T) {
	home, lines, found := testhome.New(t), 0, 0
	for _, provider := range shippedHost(t).Catalog().Providers() {
		plugin := provider.Info().Name
		names, _ := provider.Names()
		for n, name := range names {
			tool, err := provider.Tool(name)
			if err != nil || tool == nil || len(names) > 100 && n%40 != 0 {
				continue
			}
			params := plainExample(tool)
			if len(params) == 0 {
				continue
			}
			var pairs, colons, fields, options []string
			for _, key := range slices.Sorted(maps.Keys(params)) {
				value := params[key].(string)
				pairs, colons = append(pairs, key+"="+value), append(colons, "--param", key+": "+value)
				fields, options = append(fields, "-f", key+"="+value), append(options, "--"+key, value)
			}
			raw := string(jsontext.Marshal(params))
			own := []string{plugin, name}
			for form, line := range map[string][]string{
				"pairs":          append(own, "--params", strings.Join(pairs, ",")),
				"colons":         append(own, colons...),
				"fields":         append(own, fields...),
				"quoted":         append(own, "--params", "'"+raw+"'"),
				"quoted twice":   append(own, "--params", string(jsontext.Marshal(raw))),
				"a lead":         append([]string{"parley"}, append(own, "--params", raw)...),
				"two leads":      {"tool", "call", plugin + "." + name, "--params", raw},
				"a bare object":  {"tools/call", plugin + "." + name, raw},
				"the tool first": append([]string{name, plugin}, options...),
			} {
				lines++
				next := meantBy(t, home, slices.Clone(line)...)
				if next == nil || next.Op != step.OpCall {
					continue
				}
				var got map[string]any
				_ = json.Unmarshal(next.Params, &got)
				if next.Tool != plugin+"."+name || !reflect.DeepEqual(got, params) {
					t.Errorf("%s: %q means %s %s", form, line, next.Tool, next.Params)
				}
				found++
			}
		}
	}
	if t.Logf("%d of %d", found, lines); found < lines*7/10 || lines < 100 {
		t.Errorf("only %d of %d lines are understood", found, lines)
	}
}

// plainExample returns the parameters of an example of a tool, nil if one is no plain text.
func plainExample(tool *manifest.Tool) map[string]any {
	for _, e := range tool.Examples {
		var params map[string]any
		if json.Unmarshal(e.Params, &params) != nil {
			continue
		}
		for _, value := range params {
			if text, isText := value.(string); !isText || strings.ContainsAny(text, ",=:'\"\\@") || text == "" {
				params = nil
			}
		}
		if len(params) > 0 {
			return params
		}
	}
	return nil
}

// TestWordsThatMeanMore checks of every name in the manifests that begins with a tool's own that the rest of it is not
// accepted as a value.
func TestWordsThatMeanMore(t *testing.T) {
	home, tried := testhome.New(t), 0
	for _, provider := range shippedHost(t).Catalog().Providers() {
		m, err := provider.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		table := peers.Read(m.Peers)
		for key, rules := range table.Names {
			for name := range strings.SplitSeq(key, "|") {
				first, rest, _ := strings.Cut(name, "_")
				tool, err := provider.Tool(first)
				if err != nil || tool == nil || len(tool.Positional) == 0 || rest == "" {
					continue
				}
				tried++
				a := newFront(&command.Streams{Env: func(string) string { return home }}, nil)
				f := &front{App: a, offered: map[string]*parsedLine{}}
				p, ok := f.parse([]string{m.Name, first, rest})
				a.Close()
				if !ok || p.call.Tool == "" {
					continue
				}
				var got map[string]any
				_ = json.Unmarshal(p.call.Params, &got)
				isSame := rules[0].Tool == first && len(rules[0].Words) == 0
				for name, value := range rules[0].To {
					isSame = isSame && fmt.Sprint(got[name]) == fmt.Sprint(value)
				}
				if needsWords := len(rules[0].Words) > 0 && !strings.HasSuffix(rules[0].Words[0], "?"); !isSame && !needsWords {
					t.Errorf("%s %s %s is accepted as %s", m.Name, first, rest, p.call.Params)
				}
			}
		}
	}
	for _, line := range [][]string{
		{"page", "wait", "2000"}, {"page", "press", "Tab", "3"}, {"page", "cookies", "delete", "sid"},
	} {
		if tried++; meantBy(t, home, line...) != nil && line[1] != "press" {
			t.Errorf("%q: a call is offered", line)
		}
	}
	if tried < 8 {
		t.Errorf("only %d names", tried)
	}
}

// TestURLsOfEveryTool checks that a URL without its scheme is refused before a call, also in a step of another tool,
// and that the call with the scheme is offered.
func TestURLsOfEveryTool(t *testing.T) {
	h, tried := shippedHost(t), 0
	for _, provider := range h.Catalog().Providers() {
		names, _ := provider.Names()
		for _, name := range names {
			tool, err := provider.Tool(name)
			if err != nil || tool == nil || !slices.Contains(tool.URL, "/url") {
				continue
			}
			e := advice.CheckCall(h.Names(), host.Call{Name: provider.Info().Name + "." + name, Params: []byte(`{"url":"one.example/a"}`)})
			if e != nil && e.Code == host.InvalidArgs { // more is required
				continue
			}
			tried++
			if e == nil || e.Code != host.InvalidURL || e.Retry == nil ||
				!strings.Contains(string(e.Corrected), `"https://one.example/a"`) {
				t.Errorf("%s: %v", name, e)
			}
		}
	}
	e := advice.CheckCall(h.Names(), host.Call{Name: "page.do", Params: []byte(`{"steps":[["open","one.example"],["text"]]}`)})
	if e == nil || !strings.Contains(string(e.Corrected), `"https://one.example"`) || tried < 2 {
		t.Errorf("a step: %v; %d tools", e, tried)
	}
}
