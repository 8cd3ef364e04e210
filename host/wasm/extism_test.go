package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
)

// extismGuest returns the guest in C, with a manifest of what it lists.
func extismGuest(t testing.TB, e *Engine) *Provider {
	t.Helper()
	wasm := readFile(t, filepath.Join(guestDir, "extism.wasm"))
	base := &manifest.Manifest{Name: "kernel", Version: "1.0.0", Kind: manifest.KindExtism,
		Docs: manifest.Docs{Brief: "Try the kernel"}, Tools: []manifest.Tool{{Name: "list"}}}
	result, err := e.Provider(sourceOf(wasm, base)).Invoke(t.Context(), &host.Request{})
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Tools []struct{ Name, Description string }
	}
	if err := json.Unmarshal(result.Data, &list); err != nil || len(list.Tools) != 21 {
		t.Fatalf("%s, %v", result.Data, err)
	}
	base.Tools = nil
	for _, l := range list.Tools {
		tool := manifest.Tool{Name: l.Name, Effect: manifest.EffectRead, Params: json.RawMessage(`{"type":"object"}`)}
		tool.Docs.Brief = l.Description
		base.Tools = append(base.Tools, tool)
	}
	return e.Provider(sourceOf(wasm, base))
}

// TestExtism calls each tool of the guest, in this process and in a runner.
func TestExtism(t *testing.T) {
	p := extismGuest(t, testEngine(t))
	for _, isolated := range []bool{false, true} {
		t.Run(fmt.Sprintf("isolated %t", isolated), func(t *testing.T) {
			if isolated {
				skipWithoutRunners(t)
			}
			testExtism(t, func(tool, params string, asked *host.Request) (*job.Result, *host.Error) {
				r := requestFor(t, p, tool, params)
				r.Settings = json.RawMessage(`{"word":"Moin","n":[1]}`)
				if asked != nil {
					r.Ask = asked.Ask
				}
				r.Limits.Timeout, r.Limits.HostCalls = 2*time.Second, 50
				if isolated {
					r.Isolate = isolateProcess
				}
				return invokeRequest(t, p, r)
			})
		})
	}
}

func testExtism(t *testing.T, call func(tool, params string, asked *host.Request) (*job.Result, *host.Error)) {
	for _, c := range []struct{ tool, data string }{
		{"text", `"first\nsecond"`}, {"structured", `{"n":1}`}, {"config", `"Moin"`}, {"variables", `"kept"`},
		{"log", `"logged"`}, {"variables", `"kept"`}, // a variable is of one call
	} {
		if result, err := call(c.tool, "{}", nil); err != nil || string(result.Data) != c.data || result.Content != nil {
			t.Errorf("%s: %+v, %v", c.tool, result, err)
		}
	}
	result, err := call("blocks", "{}", nil)
	if got := ""; err == nil {
		if got = string(guest.Marshal(result.Content)); string(result.Data) != `""` || got != `[{"type":"image","data":"aGk=",`+
			`"mime":"image/png"},{"type":"resource","text":"T","mime":"text/plain","uri":"a:b"},{"type":"link","text":"N",`+
			`"uri":"c:d"}]` {
			t.Errorf("%s with %s", result.Data, got)
		}
	} else {
		t.Error(err)
	}
	for _, c := range []struct {
		tool    string
		code    host.Code
		message string
	}{
		{"refuse", host.ToolFailed, "I will not"}, {"fail", host.ToolFailed, "it failed"},
		{"user", host.Denied, "called kv_read, a function of another program than Parley"},
		{"stale", host.Trapped, "used 1 bytes at 16 of the host's memory, where it has no block of this size"},
		{"beyond", host.Trapped, "used 8 bytes at 17"}, {"null", host.Trapped, "used 1 bytes at 0"},
		{"huge", host.LimitExceeded, "asked for 1099511627776 bytes"}, {"many", host.LimitExceeded, "more than 64 MiB"},
		{"no-block", host.Trapped, "used the address 17 of the host's memory, which is not the start of a block"},
		{"long", host.LimitExceeded, "returned 2097152 bytes, the limit is 1048576"},
		{"no-json", host.InvalidResult, "did not return JSON"}, {"input", host.Trapped, "read 8 bytes at "},
		{"spin", host.Timeout, "did not end within 2s"},
	} {
		if _, err := call(c.tool, "{}", nil); err == nil || err.Code != c.code || !strings.Contains(err.Message, c.message) {
			t.Errorf("%s: %+v, expected %s with %q", c.tool, err, c.code, c.message)
		}
	}

	// HTTP requests are those of any guest, with the body as it is.
	var sent outbound.Request
	web := &host.Request{}
	serving(web).HTTP = func(_ context.Context, q *outbound.Request) (*outbound.Response, error) {
		if sent = *q; strings.Contains(q.URL, "elsewhere") {
			return nil, &host.Error{Code: host.Denied, Message: "not granted"}
		}
		return &outbound.Response{Status: 201, Headers: [][2]string{{"X-Test", "yes"}},
			Body: []byte("body of " + q.Method)}, nil
	}
	result, err = call("http", `{"method":"POST","url":"http://a.test/b"}`, web)
	if err != nil || string(result.Data) != `"body of POST"` || string(sent.Body) != "posted" ||
		sent.URL != "http://a.test/b" {
		t.Errorf("%+v, %v, sent %+v", result, err, sent)
	}
	if _, err = call("requests", "{}", web); err == nil ||
		!strings.Contains(err.Message, "more than 50 requests") {
		t.Errorf("requests without end: %+v", err)
	}
	if _, err = call("http", `{"method":"GET","url":"http://elsewhere.test/"}`, web); err == nil ||
		err.Code != host.Denied ||
		!strings.Contains(err.Message, "not granted") {
		t.Errorf("a denied request: %+v", err)
	}
}

// TestExtismModules refuses modules that are not what the kind says.
func TestExtismModules(t *testing.T) {
	extism, echo := readFile(t, filepath.Join(guestDir, "extism.wasm")), readFile(t, filepath.Join(guestDir, "echo.wasm"))
	of := func(kind string) *manifest.Manifest {
		return &manifest.Manifest{Name: "guest", Version: "1.0.0", Kind: kind}
	}
	err := module.Check(extism, of(manifest.KindExtism))
	if err != nil || !store.IsExtism(extism) || store.IsExtism(echo) {
		t.Error(err)
	}
	wrong := bytes.ReplaceAll(extism, []byte("load_u64"), []byte("load_i64"))
	unlisted := bytes.ReplaceAll(extism, []byte("list_tools"), []byte("list_tubes"))
	for _, c := range []struct {
		wasm []byte
		kind string
		want string
	}{
		{extism, manifest.KindParley,
			`so it is an Extism plugin; set "kind": "extism", or let parley plugin wrap write its manifest`},
		{echo, manifest.KindExtism, "only plugins of kind parley/1 may import"},
		{wrong, manifest.KindExtism, "which does not exist"},
		{unlisted, manifest.KindExtism, "it exports neither describe and call nor list_tools and call_tool"},
	} {
		if err := module.Check(c.wasm, of(c.kind)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
}

// FuzzExtismKernel calls functions of the kernel with any numbers, as a guest can. Only the guest may end by it, and
// the kernel holds no more than it may.
func FuzzExtismKernel(f *testing.F) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(module.ExtismFunctions)) {
		if name != "http_request" { // which asks the host
			names = append(names, name)
		}
	}
	f.Add([]byte{0, 16, 0, 5, 16, 9, 7, 20, 3, 16, 16})
	f.Add(bytes.Repeat([]byte{0, 255, 1}, 50))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := fuzzCall()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c.Control.Begin(ctx)
		k := guest.NewExtismKernel(c, []byte("an input of the guest"))
		for ; len(data) >= 3; data = data[3:] {
			name := names[int(data[0])%len(names)]
			stack := []uint64{uint64(data[1]), uint64(data[2])}
			if data[1] >= 250 {
				stack[0] = ^uint64(0) - uint64(data[1]-250)
			}
			if data[2] >= 250 {
				stack[1] = uint64(1) << (data[2] - 190)
			}
			func() {
				defer func() {
					var halt world.GuestHalt
					if v := recover(); v != nil {
						if err, ok := v.(error); !ok || !errors.As(err, &halt) {
							panic(v)
						}
					}
				}()
				k.Serve(name, stack)
			}()
			held := 0
			for i, b := range k.Blocks {
				if held += len(b.Data); i > 0 && b.At < k.Blocks[i-1].At+uint64(len(k.Blocks[i-1].Data)) {
					t.Fatalf("the blocks at %d and %d overlap", k.Blocks[i-1].At, b.At)
				}
			}
			if held > guest.MaxExtismMemory {
				t.Fatalf("%d bytes are held", held)
			}
		}
	})
}
