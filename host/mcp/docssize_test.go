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
