package parley_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
)

// A program that installs a plugin and calls it. Its main begins with [parley.Child].
func Example() {
	home, _ := os.MkdirTemp("", "parley")
	defer os.RemoveAll(home)
	p, err := parley.Open(context.Background(), parley.Config{Home: home})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Install(context.Background(), "testdata/wasm/echo.wasm"); err != nil {
		log.Fatal(err)
	}
	answer, err := p.Call(context.Background(), "echo.echo", map[string]any{"name": "Ada"})
	fmt.Println(string(answer.Data), err)
	// Output: {"name":"Ada"} <nil>
}

func ExampleParley_Call_errors() {
	home, _ := os.MkdirTemp("", "parley")
	defer os.RemoveAll(home)
	p := parley.New(parley.Config{Home: home})
	defer p.Close()
	answer, err := p.Call(context.Background(), "text.hash", map[string]any{"txt": "hello"})
	var e *host.Error
	if errors.Is(err, host.InvalidArgs) && errors.As(err, &e) {
		fmt.Println(e.Details[1].Suggestion)
		fmt.Println(string(e.Corrected))
		fmt.Println(answer.Steps[0])
	}
	// Output:
	// rename txt to text
	// {"text":"hello"}
	// call text.hash {"text":"hello"}
}

func ExampleParley_Describe() {
	home, _ := os.MkdirTemp("", "parley")
	defer os.RemoveAll(home)
	p := parley.New(parley.Config{Home: home})
	docs, err := p.Describe(context.Background(), "text.hash", 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(docs.Text())
	// Output: text.hash(text: string /* Text to hash */): Compute a digest of text: SHA-2, SHA-1 or MD5 [read]
}

func ExampleParley_Search() {
	home, _ := os.MkdirTemp("", "parley")
	defer os.RemoveAll(home)
	p := parley.New(parley.Config{Home: home})
	found, err := p.Search(context.Background(), "checksum of a text")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Results[0].Name, found.Results[0].Confidence)
	// Output: text.hash high
}

func ExampleParley_List() {
	home, _ := os.MkdirTemp("", "parley")
	defer os.RemoveAll(home)
	p := parley.New(parley.Config{Home: home})
	plugins, err := p.List()
	if err != nil {
		log.Fatal(err)
	}
	for _, info := range plugins {
		fmt.Println(info.Name)
	}
	// Output:
	// cdp
	// page
	// js
	// json
	// text
}

// An MCP endpoint beside another route in one mux. Clients send the token.
func ExampleParley_MCP() {
	home, _ := os.MkdirTemp("", "parley")
	defer os.RemoveAll(home)
	p := parley.New(parley.Config{Home: home})
	defer p.Close()
	server, err := p.MCP(mcp.Config{Mode: mcp.Minimal})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := server.Handler(mcp.Minimal, mcp.HTTPConfig{Tokens: []string{"a token of at least 16 bytes"}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	web := httptest.NewServer(mux)
	defer web.Close()
	for _, path := range []string{"/health", "/mcp"} {
		response, err := http.Post(web.URL+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
		fmt.Println(path, response.StatusCode)
	}
	// Output:
	// /health 200
	// /mcp 401
}
