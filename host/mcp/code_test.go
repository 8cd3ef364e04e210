package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// engine is a plugin that returns the program that it is given.
const engine = `{"manifest":1,"name":"js","version":"1.0.0","kind":"parley/1","docs":{"brief":"Run programs"},"tools":[
	{"name":"run","docs":{"brief":"Run a program"},"effect":"read","params":{"type":"object","required":["source"],
	"properties":{"source":{"type":"string"},"inputs":{"type":"object"}}}}]}`

func newCodeFixture(t *testing.T) *fixture {
	t.Helper()
	plugins := make([]host.Provider, 0, 2)
	for _, m := range []string{shop, engine} {
		f, err := newFake(m)
		if err != nil {
			t.Fatal(err)
		}
		plugins = append(plugins, f)
	}
	s, err := newServer(mcp.Code, hostcall.Config{Policy: defaultPolicy, Sessions: &session.Store{Dir: t.TempDir()}}, nil,
		plugins...)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{Server: s}
}

// TestCodeMode lists two tools within 170 tokens. They search several times in one call, and run programs.
func TestCodeMode(t *testing.T) {
	f := newCodeFixture(t)
	list := stdioResult(t, f.Server, "tools/list")
	if n := manifest.Tokens(list); n > 170 || strings.Count(list, `"inputSchema"`) != 2 ||
		!strings.Contains(list, `"search_tools"`) || !strings.Contains(list, `"run_code"`) {
		t.Errorf("%d tokens: %s", n, list)
	}
	s := newCodeFixture(t).stdio(t, client{})
	if text := s.InitializeResult().Instructions; manifest.Tokens(text) > 100 || !strings.Contains(text, "run_code") {
		t.Errorf("instructions: %s", text)
	}
	for _, c := range []struct{ name, arguments, want string }{
		{"run_code", `{"source":"return 1"}`, `{"source":"return 1"}`},
		{"call_tool", `{"name":"js.run","arguments":{"source":"return 1"}}`, `{"source":"return 1"}`},
	} {
		if r, text := call(t, s, c.name, c.arguments); r.IsError || text != c.want {
			t.Errorf("%s %s: %s", c.name, c.arguments, allText(r))
		}
	}
	for _, c := range []struct {
		queries []string
		want    []string // in this order
		not     string
	}{
		{[]string{"add an item", "cancel an order"},
			[]string{"// add an item\ntools.shop.add(p: {title: string, count", "// cancel an order\ntools.shop.order.cancel(",
				"DESTRUCTIVE: "}, "/**"},
		{[]string{"add an item", "add an item"}, []string{"tools.shop.add("}, "tools.shop.add(p: {title: string}"},
		{[]string{"shop.add"},
			[]string{"/**\n * ", "@param p.title", "@example await tools.shop.add({", " */\ntools.shop.add("},
			"//"},
		{[]string{"tools.shop.add"}, []string{"/**"}, "//"},
		{[]string{"shop.add tier 3"}, []string{"/**", "@param p.title", " */\ntools.shop.add("}, "tier 3"},
		{[]string{"shop__add"}, []string{"/**"}, "//"},
	} {
		arguments, _ := json.Marshal(map[string][]string{"queries": c.queries})
		r, text := call(t, s, "search_tools", string(arguments))
		rest := text
		for _, part := range c.want {
			_, after, found := strings.Cut(rest, part)
			if rest = after; !found || r.IsError {
				t.Fatalf("%v: no %q in\n%s", c.queries, part, allText(r))
			}
		}
		if strings.Contains(text, c.not) {
			t.Errorf("%v: %q in\n%s", c.queries, c.not, text)
		}
	}
	// Mistakes are corrected as those of other modes are.
	r, text := call(t, s, "search_tools", `{"query":"add an item"}`)
	if !r.IsError || !strings.Contains(text, `"next":[{"tool":"search_tools","arguments":{"queries":["add an item"]}}]`) {
		t.Errorf("another name: %s", text)
	}
	if r, text = call(t, s, "describe_tool", `{"name":"shop.add","again":true}`); r.IsError {
		t.Errorf("again: %s", text)
	}
	if r, text = call(t, s, "run_code", `{"source":"return 1","options":{"timeout":"soon"}}`); !r.IsError ||
		!strings.Contains(text, "invalid_args") {
		t.Errorf("an invalid timeout: %s", text)
	}
	if r, text = call(t, s, "run_code", `{"code":"return 1"}`); !r.IsError || !strings.Contains(text,
		`"next":[{"tool":"run_code","arguments":{"source":"return 1"}}]`) {
		t.Errorf("another name: %s", text)
	}
}

// TestCodeSteps renders steps as searches and programs.
func TestCodeSteps(t *testing.T) {
	f := newCodeFixture(t)
	tea := step.Call("shop.add", json.RawMessage(`{"title": "tea"}`))
	for _, c := range []struct {
		step step.Step
		want string
	}{
		{tea, `{"tool":"run_code","arguments":{"source":"return await tools.shop.add({\"title\":\"tea\"})"}}`},
		{tea.At(step.Place{Target: "a"}),
			`{"tool":"run_code","arguments":{"source":"return await tools.shop.add({\"title\":\"tea\"}, {\"target\":\"a\"})"}}`},
		{step.Describe("shop.add", 3), `{"tool":"search_tools","arguments":{"queries":["shop.add tier 3"]}}`},
		{step.Describe("shop.add", 2), `{"tool":"search_tools","arguments":{"queries":["shop.add"]}}`},
		{step.Describe("js.run", 2), ""},
		{step.Step{Op: step.OpCall, Tool: "js.run", Params: json.RawMessage(`{"source":"return 1"}`),
			Options: step.Options{Timeout: 8 * time.Second}},
			`{"tool":"run_code","arguments":{"options":{"timeout":"8s"},"source":"return 1"}}`},
		{step.Search("sell tea"), `{"tool":"search_tools","arguments":{"queries":["sell tea"]}}`},
		{step.List("shop.order"), `{"tool":"search_tools","arguments":{"queries":["shop order"]}}`},
		{step.Step{Op: step.OpListen, Tool: "shop", Query: "order.*"},
			`{"tool":"run_code","arguments":{"source":"return await tools.shop.events({\"match\":[\"order.*\"]})"}}`},
		{step.Operator(step.OpDoctor), ""},
	} {
		if got, err := f.Next(c.step); err != nil || got != c.want {
			t.Errorf("%s\n got %s, %v\nwant %s", c.step, got, err, c.want)
		}
	}
}
