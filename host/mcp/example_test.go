package mcp_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/manifest"
)

// readOnly is a policy that allows tools that only read.
type readOnly struct{}

func (readOnly) Decide(_ context.Context, a host.Ask) (host.Decision, error) {
	if a.Effect == manifest.EffectRead {
		return host.Decision{Verdict: host.Allow}, nil
	}
	return host.Decision{Verdict: host.Deny, Reason: "only reading is allowed"}, nil
}

// The tools of a host at a path of a mux, beside another route.
func ExampleServer_Handler() {
	catalog, err := host.NewCatalog() // takes the providers of the tools
	if err != nil {
		log.Fatal(err)
	}
	h, err := hostcall.New(hostcall.Config{Catalog: catalog, Policy: readOnly{}, Approver: mcp.Approver{}})
	if err != nil {
		log.Fatal(err)
	}
	server, err := mcp.New(mcp.Config{Host: h, Version: "1.0.0", Mode: mcp.Minimal})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := server.Handler(mcp.Minimal, mcp.HTTPConfig{Tokens: []string{"correct-horse-battery"}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/tools", handler)
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})

	listening := httptest.NewServer(mux)
	defer listening.Close()
	for _, token := range []string{"guessed", "correct-horse-battery"} {
		r, err := http.NewRequest(http.MethodPost, listening.URL+"/tools", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
				`"capabilities":{},"clientInfo":{"name":"example","version":"1"}}}`))
		if err != nil {
			log.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		_ = response.Body.Close()
		fmt.Println(response.Status)
	}
	// Output:
	// 401 Unauthorized
	// 200 OK
}
