package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/manifest"
)

// TestDocsTokens checks that records count documentation in the form in which it was sent to the client.
func TestDocsTokens(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork)
	s := f.stdio(t, client{revision: "2025-11-25"})
	check := func(name, sent string) {
		t.Helper()
		if got, want := f.rec.last().DocsTokens, manifest.Tokens(sent); got != want || got == 0 {
			t.Errorf("%s: recorded %d tokens, sent %d: %s", name, got, want, sent)
		}
	}
	_, _ = call(t, s, "call_tool", `{"name":"shop.order.list","arguments":{}}`)
	if n := f.rec.last().DocsTokens; n != 0 {
		t.Errorf("a success: recorded %d tokens", n)
	}
	for _, tier := range []string{"1", "2", "3"} {
		_, text := call(t, s, "describe_tool", `{"name":"shop.add","tier":`+tier+`}`)
		check("tier "+tier, text)
	}
	modern := f.stdio(t, client{revision: "2026-07-28"})
	_, text := call(t, modern, "call_tool", `{"name":"shop.order.cancel","arguments":{}}`)
	var failed struct{ Docs string }
	if err := json.Unmarshal([]byte(text), &failed); err != nil {
		t.Fatal(err)
	}
	check("an error", failed.Docs)
	_, text = call(t, s, "search_tools", `{"query":"list orders","limit":1,"detail":"full"}`)
	docs, _, _ := strings.Cut(text, "\nFound by ")
	check("a search", docs)
	_, text = call(t, s, "describe_tool", `{"name":"shop.add","format":"json"}`)
	check("JSON", text)
	_, text = call(t, s, "describe_tool", `{"name":"shop.add","max_tokens":40}`)
	check("a limit", text)
	if n := manifest.Tokens(text); n > 40 {
		t.Errorf("%d tokens with a limit of 40", n)
	}
	read, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "parley://docs/shop/add?tier=3"})
	if err != nil {
		t.Fatal(err)
	}
	check("a resource", read.Contents[0].Text)
}

// TestDescribedAgain describes a tool again. Within 20 calls of a session the answer is a line that says how to get the
// whole text; anything else is answered whole: another tier or form, a call that asks for it again, another session, a
// and calls that cannot be related to each other. Records count what was sent.
func TestDescribedAgain(t *testing.T) {
	forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		s := connect(client{})
		related := !strings.HasSuffix(t.Name(), "http_2026-07-28")
		sent := map[string]string{}
		describe := func(s *sdk.ClientSession, arguments string, whole bool) {
			t.Helper()
			_, text := call(t, s, "describe_tool", arguments)
			isWhole := !strings.HasPrefix(strings.Trim(text, `{"`), "unchanged")
			if isWhole != whole && related || !isWhole && (!related || manifest.Tokens(text) > 10) {
				t.Errorf("%s is answered by %s", arguments, text)
			}
			if got, want := f.rec.last().DocsTokens, manifest.Tokens(text); got != want {
				t.Errorf("%s: recorded %d tokens, sent %d: %s", arguments, got, want, text)
			}
			if plain := strings.ReplaceAll(arguments, `,"again":true`, ""); isWhole && sent[plain] == "" {
				sent[plain] = text
			} else if isWhole && sent[plain] != text {
				t.Errorf("%s is answered by %s, first by %s", arguments, text, sent[plain])
			}
		}
		all := []string{`{"name":"shop.add"}`, `{"name":"shop.add","tier":3}`, `{"name":"shop.add","format":"json"}`,
			`{"name":"shop.echo"}`}
		for _, arguments := range all {
			describe(s, arguments, true)
		}
		for _, arguments := range all {
			describe(s, arguments, false)
			describe(s, strings.TrimSuffix(arguments, "}")+`,"again":true}`, true)
		}
		describe(s, `{"name":"shop__add","tier":"2"}`, false) // by another spelling
		if strings.Contains(t.Name(), "http") {               // a process serves one client on stdio
			describe(connect(client{}), all[0], true)
		}
		describe(s, `{"name":"shop.text"}`, true)
		for range 19 {
			_, _ = call(t, s, "call_tool", `{"name":"shop.echo"}`)
		}
		describe(s, `{"name":"shop.text"}`, false) // the 20th call since
		describe(s, `{"name":"shop.text"}`, true)
		_, _ = call(t, s, "search_tools", `{"query":"shop.echo"}`)
		describe(s, `{"name":"shop.echo"}`, false) // the search has sent it
		for i := range 2 {
			r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "describe_tool", Meta: sdk.Meta{mcp.SessionKey: "s"},
				Arguments: json.RawMessage(`{"name":"shop.large"}`)})
			if err != nil || strings.Contains(firstText(r), "unchanged") != (i == 1) {
				t.Errorf("call %d of a named session: %s, %v", i+1, firstText(r), err)
			}
		}
	})
}

// TestDescribeLists describes a plugin and a group, which lists them, and misspelt names, which lead to the
// documentation of the tool and the list of the group.
func TestDescribeLists(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork)
	s := f.stdio(t, client{})
	const order = "shop.order.list  List orders\nshop.order.cancel  Cancel an order\n" +
		"shop.order.slow  Wait until it is over\nshop.order.steps  Take three steps\n" +
		"shop.order.nested  Cancel by another tool"
	for arguments, want := range map[string]string{
		`{"name":"shop.order"}`:                 order,
		`{"name":"shop__order"}`:                order,
		`{"name":"shop.order","max_tokens":12}`: "shop.order.list  List orders\n(4 more of 5: search_tools finds them)",
	} {
		if _, text := call(t, s, "describe_tool", arguments); text != want {
			t.Errorf("%s is answered by\n%s\ninstead of\n%s", arguments, text, want)
		}
	}
	if _, text := call(t, s, "describe_tool", `{"name":"shop"}`); !strings.HasPrefix(text,
		"1 group of shop with their number of tools: order 5\nshop.") || !strings.Contains(text, "\nshop.add  ") {
		t.Errorf("the plugin is listed as %s", text)
	}
	for misspelt, meant := range map[string]string{
		"shop.ad": "shop.add", "shop.ordre": "shop.order", "shp.add": "shop.add",
	} {
		_, text := call(t, s, "describe_tool", `{"name":"`+misspelt+`"}`)
		if !strings.Contains(text, `"next":[{"tool":"describe_tool","arguments":{"name":"`+meant+`"}}`) {
			t.Errorf("%s leads to %s", misspelt, text)
		}
	}
}
