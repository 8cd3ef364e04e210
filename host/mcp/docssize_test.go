package mcp_test

import (
	"encoding/json"
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
	r, _ := call(t, s, "call_tool", `{"name":"shop.order.list","arguments":{}}`)
	check("first use", r.Content[len(r.Content)-1].(*sdk.TextContent).Text)
	_, _ = call(t, s, "call_tool", `{"name":"shop.order.list","arguments":{}}`)
	if n := f.rec.last().DocsTokens; n != 0 {
		t.Errorf("the second use: recorded %d tokens", n)
	}
	for _, tier := range []string{"1", "2", "3"} {
		_, text := call(t, s, "describe_tool", `{"name":"shop.add","tier":`+tier+`}`)
		check("tier "+tier, text)
	}
	modern := f.stdio(t, client{revision: "2026-07-28"})
	_, text := call(t, modern, "call_tool", `{"name":"shop.order.cancel","arguments":{}}`)
	var failed struct{ Docs json.RawMessage }
	if err := json.Unmarshal([]byte(text), &failed); err != nil {
		t.Fatal(err)
	}
	check("an error", string(failed.Docs))
	_, text = call(t, s, "search_tools", `{"query":"list orders","limit":1,"detail":"full"}`)
	var found struct{ Docs []json.RawMessage }
	if err := json.Unmarshal([]byte(text), &found); err != nil || len(found.Docs) != 1 {
		t.Fatal(err, text)
	}
	check("a search", string(found.Docs[0]))
	read, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "parley://docs/shop/add?tier=3"})
	if err != nil {
		t.Fatal(err)
	}
	check("a resource", read.Contents[0].Text)
}
