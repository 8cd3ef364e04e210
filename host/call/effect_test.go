package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// TestReadToolPostsNothing checks that a tool with the effect read, which a remote client may call, cannot send
// a POST.
func TestReadToolPostsNothing(t *testing.T) {
	granted := grant.Grant{HTTP: []grant.HTTP{{URL: "https://api.example.com", Methods: []string{"GET", "POST"}}},
		FS: []grant.FS{{Path: "/data", Source: "/srv", Mode: "rw"}}}
	sent := func(effect, method string) ([]string, *host.Error, grant.Grant) {
		out := &mirror{}
		text := strings.Replace(shop, `"Say it again"}, "effect": "read"`, `"Say it again"}, "effect": "`+effect+`"`, 1)
		var mode grant.Grant
		h := newHost(t, call.Config{Egress: out, Policy: policy(func(host.Ask) (host.Decision, error) {
			return host.Decision{Verdict: host.Allow, Grant: granted}, nil
		})}, newFake(t, text, map[string]handler{
			"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				mode = r.Grant
				_, err := sendHTTP(ctx, r, method, "https://api.example.com/x")
				return &job.Result{Data: json.RawMessage(`{}`)}, err
			}}))
		a, _ := h.Call(t.Context(), host.Call{Name: "shop.echo", Principal: caller.Principal{Name: "mcp-http:far"}})
		return out.methods, a.Err, mode
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "post"} {
		methods, err, grant := sent("read", method)
		if err == nil || err.Code != host.Denied || len(methods) > 0 {
			t.Errorf("a read tool sent %s: %v, %v", method, methods, err)
		} else if !strings.Contains(err.Message, "declare the effect write") {
			t.Errorf("%s: %v", method, err)
		}
		if grant.FS[0].Mode != "ro" || strings.Join(grant.HTTP[0].Methods, ",") != "GET" {
			t.Errorf("a read tool was granted %v", grant.Names())
		}
	}
	if methods, err, _ := sent("read", "GET"); err != nil || len(methods) != 1 {
		t.Errorf("GET: %v, %v", methods, err)
	}
	if methods, err, grant := sent("write", "POST"); err != nil || len(methods) != 1 || grant.FS[0].Mode != "rw" {
		t.Errorf("a write tool: %v, %v", methods, err)
	}
}

// TestInnerCallsKeepTheEffect checks that a tool cannot call one with a worse effect than its own.
func TestInnerCallsKeepTheEffect(t *testing.T) {
	for _, c := range []struct {
		own, tool string
		may       bool
	}{
		{"read", "shop.echo", true}, {"read", "shop.add", false}, {"read", "shop.order.cancel", false},
		{"write", "shop.add", true}, {"write", "shop.order.cancel", false}, {"destructive", "shop.order.cancel", true},
	} {
		outer := strings.Replace(outerNamed("outer"), `"effect": "destructive", "params": {"type": "object"}, "tasks"`,
			`"effect": "`+c.own+`", "params": {"type": "object"}, "tasks"`, 1)
		inner := newFake(t, shop, nil)
		h := newHost(t, call.Config{}, inner, newFake(t, outer, map[string]handler{
			"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				return callTool(ctx, r, c.tool, json.RawMessage(map[bool]string{true: `{"title":"tea"}`,
					false: `{"id":1}`}[c.tool == "shop.add"]), "")
			}}))
		a := makeCall(t, h, "outer.echo", `{}`)
		if ran := len(inner.requests()) == 1; ran != c.may {
			t.Errorf("a %s tool called %s: %v, %v", c.own, c.tool, ran, a.Err)
		}
		if !c.may && (a.Err == nil || a.Err.Code != host.Denied || !strings.Contains(a.Err.Message, "declare the effect")) {
			t.Errorf("%s: %v", c.tool, a.Err)
		}
	}
}

// TestInnerExitCodeByName checks that the declared exit code of an inner tool becomes the outer tool's of the same
// name, or 1, whatever its number means in the outer plugin. A failure of the outer tool itself keeps its code.
func TestInnerExitCodeByName(t *testing.T) {
	fail := func(exit int, name, message string) *host.Error {
		return &host.Error{Code: host.Code(name), Exit: exit, Message: message, Tool: &host.ToolError{Exit: exit, Name: name}}
	}
	for _, c := range []struct {
		codes, message, wantCode string
		wantExit                 int
	}{
		{`{"code":10,"name":"ambiguous","meaning":"m","suggestion":"use a ref"}`, "step 1: none left (use a ref)",
			"tool_failed", 1},
		{`{"code":10,"name":"ambiguous","meaning":"m"},{"code":20,"name":"sold_out","meaning":"m"}`, "none left",
			"sold_out", 20},
		{`{"code":10,"name":"sold_out","meaning":"m"}`, "none left", "sold_out", 10},
		{`{"code":10,"name":"ambiguous","meaning":"m"}`, "two match", "ambiguous", 10},
	} {
		own := `{"code": 10, "name": "sold_out", "meaning": "There is none left"}`
		outer := strings.Replace(strings.Replace(outerNamed("outer"), own, c.codes, 1), `"exit_codes": ["sold_out"], `, "", 1)
		inner := newFake(t, shop, map[string]handler{"echo": func(context.Context, *host.Request) (*job.Result, error) {
			return nil, fail(10, "sold_out", "none left")
		}})
		h := newHost(t, call.Config{}, inner, newFake(t, outer, map[string]handler{
			"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				if _, err := callTool(ctx, r, "shop.echo", nil, ""); err == nil {
					t.Error("the inner call did not fail")
				}
				return nil, fail(10, "ambiguous", c.message)
			}}))
		e := makeCall(t, h, "outer.echo", `{}`).Err
		if e == nil || string(e.Code) != c.wantCode || e.ExitCode() != c.wantExit || e.Tool == nil ||
			c.wantCode != "ambiguous" && (e.Tool.Name != "sold_out" || strings.Contains(e.Message, "use a ref")) {
			t.Errorf("%s, %q: %+v %+v", c.codes, c.message, e, e.Tool)
		}
	}
}

// TestInnerError checks that a plugin that passes on the error of a call names that call, in each form in which a guest
// can do so, and that its own exit code does not say that it was refused.
func TestInnerError(t *testing.T) {
	sold := func(context.Context, *host.Request) (*job.Result, error) {
		return nil, &host.Error{Code: "sold_out", Exit: 10, Message: "none left",
			Tool: &host.ToolError{Exit: 10, Name: "sold_out", Details: json.RawMessage(`{"left":0}`)}}
	}
	for _, c := range []struct {
		tool, params string
		code         host.Code
		exit         int
		details      string
	}{
		{"shop.add", `{"titel":1}`, host.InvalidArgs, 1, "/titel"},
		{"shop.gone", `{}`, host.NotFound, 1, ""},
		{"none.at", `{}`, host.NotFound, 1, ""},
		{"shop.echo", `{}`, "sold_out", 10, `"left":0`},
		{"shop.order.cancel", `{"id":1}`, host.ChromeConnection, 101, ""},
	} {
		for _, form := range []struct {
			name    string
			exit    func(inner *host.Error) int
			message string
		}{
			{"the exit code and the message, as sdk/go", (*host.Error).ExitCode, "%s"},
			{"the exit code alone", (*host.Error).ExitCode, "it did not work: %.0s"},
			{"the message with 1, as sdk/rust", func(*host.Error) int { return 1 }, "%s"},
			{"the message in another", func(*host.Error) int { return 1 }, "ToolError: %s (plugin.js:3)"},
		} {
			inner := newFake(t, shop, map[string]handler{"echo": sold,
				"order.cancel": func(context.Context, *host.Request) (*job.Result, error) {
					return nil, host.Errorf(host.ChromeConnection, "no browser is open")
				}})
			h := newHost(t, call.Config{}, inner, newFake(t, outerNamed("outer"), map[string]handler{
				"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
					_, err := callTool(ctx, r, c.tool, json.RawMessage(c.params), "")
					e := host.AsError(err)
					own := &host.Error{Code: host.ToolFailed, Message: fmt.Sprintf(form.message, e.Message),
						Tool: &host.ToolError{Exit: form.exit(e)}}
					if own.Tool.Exit == 10 { // which the plugin declares
						own.Code, own.Exit, own.Tool.Name = "sold_out", 10, "sold_out"
					}
					return nil, own
				}}))
			e := makeCall(t, h, "outer.echo", `{}`).Err
			if c.exit == 10 && strings.Contains(form.name, "alone") {
				continue // nothing tells it from the plugin's own failure
			}
			want := c.exit
			if want > 79 && strings.HasPrefix(form.name, "the message") {
				want = 1
			}
			if e == nil || e.Tool == nil || e.Tool.Inner == nil {
				t.Fatalf("%s, %s: %+v", c.tool, form.name, e)
			}
			if i := e.Tool.Inner; e.ExitCode() != want || i.Tool != c.tool || i.Code != c.code || i.Message == "" ||
				!strings.Contains(string(i.Details), c.details) || e.Docs != nil {
				t.Errorf("%s, %s: %+v, inner %+v, exit %d; want %d", c.tool, form.name, e, i, e.ExitCode(), want)
			}
			if object := jsontext.Marshal(e.Object()); len(object) > 900 {
				t.Errorf("%s, %s: %d bytes: %s", c.tool, form.name, len(object), object)
			}
		}
	}
}
