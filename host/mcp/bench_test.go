package mcp_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/session"
)

// BenchmarkCall compares a call over stdio, and over HTTP on both revisions, with the same call in process. `make
// bench` prints its medians.
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
		h, _ := hostcall.New(hostcall.Config{Catalog: catalog, Policy: trustNetwork,
			Sessions: &session.Store{Dir: b.TempDir()}})
		median(b, func() error {
			if a, _ := h.Call(b.Context(), host.Call{Name: "shop.echo", Params: json.RawMessage(`{"a":"b"}`),
				Principal: caller.Principal{Name: "mcp:c", Session: caller.Session{Name: "s"}}}); a.Err != nil {
				return a.Err
			}
			return nil
		})
	})
	over := func(connect func(f *fixture) *sdk.ClientSession) func(*testing.B) {
		return func(b *testing.B) {
			s := connect(newFixture(b, mcp.Minimal, trustNetwork))
			median(b, func() error {
				r, err := s.CallTool(b.Context(), &sdk.CallToolParams{Name: "call_tool",
					Arguments: json.RawMessage(`{"name":"shop.echo","arguments":{"a":"b"}}`)})
				if err == nil && r.IsError {
					err = errors.New(firstText(r))
				}
				return err
			})
		}
	}
	b.Run("stdio", over(func(f *fixture) *sdk.ClientSession { return f.stdio(b, client{}) }))
	for _, revision := range revisions {
		b.Run("http "+revision, over(func(f *fixture) *sdk.ClientSession {
			return client{revision: revision}.http(b, f.listen(b, mcp.HTTPConfig{}))
		}))
	}
}

// median runs a call again and again and reports its median in microseconds.
func median(b *testing.B, call func() error) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "us-p50")
}
