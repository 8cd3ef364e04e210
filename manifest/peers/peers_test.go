package peers

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

func TestNameTails(t *testing.T) {
	prefixes := []string{"browser", "mcp", "agent"}
	for name, want := range map[string][]string{
		"click":                    {"click"},
		"browser_click":            {"browserclick", "click"},
		"browserClick":             {"browserclick", "click"},
		"BROWSER-CLICK":            {"browserclick", "click"},
		"agent-browser click":      {"agentbrowserclick", "browserclick", "click"},
		"mcp__some__browser_click": {"mcpsomebrowserclick", "somebrowserclick", "browserclick", "click"},
		"some/double_click":        {"somedoubleclick", "doubleclick"},
		"some.browser:click":       {"somebrowserclick", "browserclick", "click"},
		"double_click":             {"doubleclick"},
		"some_browser_click":       {"somebrowserclick"},
		"browser_":                 {"browser"},
		"":                         {""},
	} {
		if got := NameTails(name, prefixes); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestRules(t *testing.T) {
	const params = `{"properties": {"device": {"type": "string", "x-aliases": ["viewport"]}, "count": {"type": "integer"}}}`
	for _, c := range []struct{ rule, given, want string }{
		{`{"from": {"double": true}, "to": {"count": 2}}`, `{"double": true, "x": 1}`, `{"count":2,"x":1}`},
		{`{"from": {"double": true}, "to": {"count": 2}}`, `{"double": "true"}`, `{"count":2}`},
		{`{"from": {"double": true}, "to": {"count": 2}}`, `{"double": ["true"]}`, `{"count":2}`},
		{`{"from": {"dblClick": true}, "to": {"count": 2}}`, `{"dbl_click": true}`, `{"count":2}`},
		{`{"from": {"double": true}, "to": {"count": 2}}`, `{"double": false}`, ``},
		{`{"from": {"double": true}, "to": {"count": 2}}`, `{"double": ["true", "true"]}`, ``},
		{`{"from": {"double": true}, "to": {"count": 2}}`, `{"double": true, "count": 1}`, ``},
		{`{"from": {"double": true}, "to": {"count": 2}}`, `{}`, ``},
		{`{"to": {"count": 2}}`, `{}`, `{"count":2}`},
		{`{"from": {"double": true}, "to": {"count": 2}}`, `{"double": true, "count": 2}`, `{"count":2}`},
		{`{"from": {"double": false}, "to": {"count": null}}`, `{"double": false}`, `{}`},
		{`{"from": {"double": false}, "to": {"count": null}}`, `{"double": false, "count": 2}`, ``},
		{`{"from": {"tall": "$"}, "to": {"big": "$tall"}}`, `{"tall": false}`, `{"big":false}`},
		{`{"from": {"big": false}, "to": {"small": false}}`, `{"big": false, "small": true}`, ``},
		{`{"from": {"big": false}, "to": {"small": false}}`, `{"big": false}`, `{"small":false}`},
		{`{"from": {"x": "$", "y": "$"}, "to": {"at": ["$x", "$y"]}}`, `{"x": 1, "y": "2"}`, `{"at":[1,"2"]}`},
		{`{"from": {"x": "$", "y": "$"}, "to": {"at": ["$x", "$y"]}}`, `{"x": 1}`, ``},
		{`{"from": {"x": "$"}, "to": {"at": "$x"}}`, `{"x": null}`, ``},
		{`{"from": {"x": "$"}, "to": {"at": {"in": "-${x}px"}}}`, `{"x": 1}`, `{"at":{"in":"-1px"}}`},
		{`{"from": {"device": {"w": "$", "h": "$"}}, "to": {"device": "${w}x${h}"}}`, `{"viewport": {"w": 1, "h": 2}}`,
			`{"device":"1x2"}`},
		{`{"from": {"device": {"w": "$", "h": "$"}}, "to": {"device": "${w}x${h}"}}`, `{"device": {"w": 1, "h": 2, "z": 3}}`, ``},
		{`{"from": {"device": {"w": "$", "h": "$"}}, "to": {"device": "${w}x${h}"}}`, `{"device": "1x2"}`, ``},
		{`{"from": {"args": [{"uid": "$element"}]}, "to": {"element": "$element"}}`, `{"args": [{"uid": "a"}]}`,
			`{"element":"a"}`},
		{`{"from": {"args": [{"uid": "$element"}]}, "to": {"element": "$element"}}`, `{"args": [{"uid": "a"}, {"uid": "b"}]}`,
			``},
		{`{"from": {"url": "~^[a-z.]+$"}, "to": {"url": "https://${url}"}}`, `{"url": "a.test"}`, `{"url":"https://a.test"}`},
		{`{"from": {"url": "~^[a-z.]+$"}, "to": {"url": "https://${url}"}}`, `{"url": "https://a.test"}`, ``},
		{`{"from": {"p": "~^(?P<k>[a-z]+)=(?P<v>.*)$"}, "to": {"values": {"${k}": "$v"}}}`, `{"p": "a=1=2"}`,
			`{"values":{"a":"1=2"}}`},
	} {
		var r Rule
		if err := json.Unmarshal([]byte(c.rule), &r); err != nil {
			t.Fatal(err)
		}
		given, err := jsontext.Decode([]byte(c.given), jsontext.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, _, ok := r.Apply(given.(map[string]any), json.RawMessage(params))
		if text := string(jsontext.Marshal(got)); ok != (c.want != "") || ok && text != c.want {
			t.Errorf("%s with %s: %s, want %s", c.rule, c.given, text, c.want)
		}
	}
	// A value within a parameter that goes away is not dropped; one that no place holds is.
	parts := Rule{From: map[string]any{"list": []any{map[string]any{"k": "$", "v": "$"}}, "of": "$", "in": "$"},
		To: map[string]any{"k": "$k", "in": "$in", "w": "${v}"}}
	list := []any{map[string]any{"k": "1", "v": "2"}}
	_, moved, _ := parts.Apply(map[string]any{"list": list, "of": "x", "in": "y"}, nil)
	places := []schema.Change{{From: "/in", To: "/in", How: schema.Renamed},
		{From: "/list", To: "/k", How: schema.Renamed},
		{From: "/list", To: "/w", How: schema.Renamed}, {From: "/of", How: schema.Dropped}}
	if !slices.Equal(moved, places) {
		t.Errorf("%v, want %v", moved, places)
	}
	only := Rule{From: map[string]any{"element": "$", "ref": "$"}, To: map[string]any{"ref": "$ref"}}
	_, moved, _ = only.Apply(map[string]any{"element": "Save", "ref": "e1"}, nil)
	places = []schema.Change{{From: "/element", How: schema.Dropped}, {From: "/ref", To: "/ref", How: schema.Renamed}}
	if !slices.Equal(moved, places) {
		t.Errorf("%v, want %v", moved, places)
	}
	r := Rule{From: map[string]any{"a": "$", "b": "$", "c": true}, To: map[string]any{"x": "$a", "y": "${b}!"}}
	_, changes, _ := r.Apply(map[string]any{"a": "1", "b": "2", "c": true}, nil)
	want := []schema.Change{{From: "/a", To: "/x", How: schema.Renamed}, {From: "/b", To: "/y", How: schema.Renamed},
		{From: "/c", How: schema.Dropped}}
	if !slices.Equal(changes, want) {
		t.Errorf("%v, want %v", changes, want)
	}
}

func TestWords(t *testing.T) {
	r := Rule{Words: []string{"element", "value?", "more...?"}}
	for _, c := range []struct {
		given string
		words []any
		want  string
	}{
		{`{}`, []any{"a"}, `{"element":"a"}`},
		{`{}`, []any{"a", "b", "c", "d"}, `{"element":"a","more":["c","d"],"value":"b"}`},
		{`{"x":1}`, nil, `{"x":1}`},
		{`{"element":"b"}`, []any{"a"}, ``},
	} {
		var given map[string]any
		_ = json.Unmarshal([]byte(c.given), &given)
		got, ok := r.WithWords(given, c.words)
		if text := string(jsontext.Marshal(got)); ok != (c.want != "") || ok && text != c.want {
			t.Errorf("%s and %v: %s %v, want %s", c.given, c.words, text, ok, c.want)
		}
	}
	if _, ok := (&Rule{Words: []string{"a", "b"}}).WithWords(map[string]any{}, []any{"1"}); ok {
		t.Error("a word is missing")
	}
	if _, ok := (&Rule{Words: []string{"a"}}).WithWords(map[string]any{}, []any{"1", "2"}); ok {
		t.Error("a word too many")
	}
}
