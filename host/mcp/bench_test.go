package mcp_test

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
)

// BenchmarkCall compares a call over stdio, and over HTTP on both revisions, with the same call in process.
func BenchmarkCall(b *testing.B) {
	b.Run("in process", func(b *testing.B) {
		f, err := newFake(shop)
		if err != nil {
			b.Fatal(err)
		}
		catalog, err := host.NewCatalog(f)
		if err != nil {
			b.Fatal(err)
		}
		h := host.New(host.Config{Catalog: catalog, Policy: lenient, Sessions: &host.Sessions{Dir: b.TempDir()}})
		for b.Loop() {
			if a := h.Call(b.Context(), host.Call{Name: "shop.echo", Params: json.RawMessage(`{"a":"b"}`), Caller: "mcp:c", Session: "s"}); a.Err != nil {
				b.Fatal(a.Err)
			}
		}
	})
	over := func(connect func(f *fixture) *sdk.ClientSession) func(*testing.B) {
		return func(b *testing.B) {
			s := connect(newFixture(b, mcp.Minimal, lenient))
			for b.Loop() {
				r, err := s.CallTool(b.Context(), &sdk.CallToolParams{Name: "call_tool", Arguments: json.RawMessage(`{"name":"shop.echo","arguments":{"a":"b"}}`)})
				if err != nil || r.IsError {
					b.Fatal(err, first(r))
				}
			}
		}
	}
	b.Run("stdio", over(func(f *fixture) *sdk.ClientSession { return f.stdio(b, client{}) }))
	for _, revision := range revisions {
		b.Run("http "+revision, over(func(f *fixture) *sdk.ClientSession {
			return client{revision: revision}.http(b, f.listen(b, mcp.HTTPConfig{}))
		}))
	}
}
