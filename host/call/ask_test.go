package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
)

// TestAskHTTP checks what a guest gets for a response and for an error, and which rights are reported as denied.
func TestAskHTTP(t *testing.T) {
	for _, tt := range []struct {
		name     string
		response *outbound.Response
		err      error
		want     string
		denied   string
	}{
		{"text", &outbound.Response{Status: 200, Headers: [][2]string{{"set-cookie", "b=1"}, {"set-cookie", "a=2"}},
			Body: []byte("<ü>")}, nil,
			`{"status":200,"headers":[["set-cookie","b=1"],["set-cookie","a=2"]],"body":"<ü>"}`, ""},
		{"bytes", &outbound.Response{Status: 404, Body: []byte{0xff, 0}}, nil,
			`{"status":404,"headers":[],"body_base64":"/wA="}`, ""},
		{"nothing", &outbound.Response{Status: 204}, nil, `{"status":204,"headers":[],"body":""}`, ""},
		{"a header that is not UTF-8", &outbound.Response{Status: 200, Headers: [][2]string{{"x", "\xe9"}}}, nil,
			`{"status":200,"headers":[["x","` + "\ufffd" + `"]],"body":""}`, ""},
		{"denied", nil, &host.Error{Code: host.Denied, Message: "m", Denied: []grant.Denial{{Right: "http:GET:http://b.test",
			Why: "http://a.test redirected there"}}},
			"m", "http:GET:http://b.test"},
		{"unavailable", nil, host.Errorf(host.Unavailable, "down"), "down", ""},
		{"an error of another package", nil, io.EOF, "EOF", ""},
	} {
		denied := ""
		f := call.Functions{
			HTTP:   func(context.Context, *outbound.Request) (*outbound.Response, error) { return tt.response, tt.err },
			Denied: func(right, _ string) { denied += right },
		}
		result, err := f.Ask(t.Context(), job.AskHTTP, json.RawMessage(`{"url":"http://a.test/"}`))
		got := ""
		if err != nil {
			got = host.AsError(err).Message
		} else {
			got = string(result.Data)
		}
		if got != tt.want || denied != tt.denied {
			t.Errorf("%s: %s, denied %q, want %s", tt.name, got, denied, tt.want)
		}
	}
}

// TestAskNothing checks that a host without functions denies what guests may ask for in the grammar of grants, reports
// an invalid URL as such, and does not repeat secrets in a URL.
func TestAskNothing(t *testing.T) {
	denied := 0
	f := call.Functions{Denied: func(string, string) { denied++ }}
	for _, tt := range []struct{ function, argument, want string }{
		{job.AskHTTP, `{"url":"https://A.test:443/path?key"}`, "not granted: http:GET:https://a.test"},
		{job.AskHTTP, `{"method":"post","url":"http://127.0.0.1:8080"}`, "not granted: http:POST:http://127.0.0.1:8080"},
		{job.AskHTTP, `{"url":"https://user:key@a.test/"}`, string(host.InvalidURL)},
		{job.AskHTTP, `{"url":"file:///key"}`, string(host.InvalidURL)},
		{job.AskHTTP, `{"url":"http://a.test","x":1}`, string(host.InvalidArgs)},
		{job.AskTool, `{"tool":"cdp__open"}`, "not granted: tool:cdp.open"},
		{job.AskTool, `{"tool":1}`, string(host.InvalidArgs)},
		{job.AskTool, `{"tool":"a.b","options":{"key":1}}`, string(host.InvalidArgs)},
		{job.AskTool, `{"tool":"a.b","parms":{}}`, `unknown field "parms"`},
		{job.AskTool, `{"tool":"a.b"}}`, string(host.InvalidArgs)},
		{job.AskTool, `{"tool":"cdp.open","params":null}`, "not granted: tool:cdp.open"},
		{job.AskTools, `{"pending":[{"id":1,"tool":"a.b","option":{}}]}`, `unknown field "option"`},
		{job.AskSecret, `{"name":"TOKEN"}`, "not granted: secret:read:TOKEN"},
		{job.AskSecret, `[]`, string(host.InvalidArgs)},
		{job.AskSecret, `{"nam":"TOKEN"}`, `unknown field "nam"`},
		{job.AskMayCall, `{"tool":"Page.enable"}`, string(host.NotFound)},
		{job.AskBoundSecret, `{"name":"TOKEN"}`, string(host.NotFound)},
		{job.AskScript, `{"name":"page"}`, string(host.NotFound)},
		{job.AskLast, `{}`, string(host.NotFound)},
		{"other", `{}`, string(host.NotFound)},
	} {
		_, err := f.Ask(t.Context(), tt.function, json.RawMessage(tt.argument))
		got := fmt.Sprint(host.AsError(err).Code, " ", host.AsError(err).Message)
		if err == nil || !strings.Contains(got, tt.want) ||
			strings.Contains(got, "key") && host.AsError(err).Code != host.InvalidArgs {
			t.Errorf("%s %s: %s, want %s", tt.function, tt.argument, got, tt.want)
		}
	}
	if denied != 5 {
		t.Errorf("%d denials were reported", denied)
	}
}

// TestDenialsAreBounded: the answer to a call lists each denial once and 100 at most, whether it fails or succeeds.
func TestDenialsAreBounded(t *testing.T) {
	const limit = 100
	for _, tt := range []struct{ different, want int }{{0, 0}, {1, 1}, {limit, limit}, {limit + 1, limit},
		{10 * limit, limit}} {
		for _, failure := range []error{nil, errors.New("failed")} {
			f := newFake(t, shop, map[string]handler{"echo": func(_ context.Context, r *host.Request) (*job.Result, error) {
				for i := range tt.different {
					for range 2 {
						r.Deny(fmt.Sprint("right ", i), "why")
					}
				}
				return &job.Result{Data: r.Params}, failure
			}})
			a, _ := newHost(t, call.Config{}, f).Call(t.Context(), host.Call{Name: "shop.echo", Principal: cli})
			got := len(a.Warnings)
			if failure != nil {
				got = len(a.Err.Denied)
			}
			if got != tt.want {
				t.Errorf("%d denials, %v: the answer has %d", tt.different, failure, got)
			}
		}
	}
}

// TestDropped checks that a request without a host drops events, and that nothing may be called.
func TestDropped(t *testing.T) {
	r := &host.Request{Job: job.Job{Wants: job.Wants{Log: true, Progress: true, Output: true}}}
	r.Log(1, "line")
	r.Progress(1, 2, "half")
	r.Started()
	r.RecordUse("fs:read:/x")
	if _, err := io.WriteString(r.Output(), "text"); err != nil || r.Emit(json.RawMessage("1")) != nil {
		t.Error("an event fails")
	}
	if mayCall(t.Context(), r, "tool") || !isLast(t.Context(), r, json.RawMessage("1")) {
		t.Error("a host that cannot be asked allows a call, or lets a stream go on")
	}
	if _, err := boundSecret(t.Context(), r, "KEY"); host.AsError(err).Code != host.Unavailable {
		t.Error(err)
	}
}
