package call_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// callOther returns a handler that calls another tool and returns its result.
func callOther(tool string) handler {
	return func(ctx context.Context, r *host.Request) (*job.Result, error) {
		return callTool(ctx, r, tool, json.RawMessage(`{}`), "")
	}
}

func shopNamed(name string) string {
	// Ten thousand calls of one another take seconds on a busy machine.
	patient := strings.Replace(shop, `"timeout_ms": 5000`, `"timeout_ms": 60000`, 1)
	return strings.Replace(patient, `"name": "shop"`, `"name": "`+name+`"`, 1)
}

// outerNamed is shopNamed with an echo whose effect allows it to call any tool.
func outerNamed(name string) string {
	const echo = `"Say it again"}, "effect": "`
	return strings.Replace(shopNamed(name), echo+`read"`, echo+`destructive"`, 1)
}

// holding returns a policy that allows plugins to call the tools that the table grants them.
func holding(held map[string][]string) policy {
	return func(a host.Ask) (host.Decision, error) {
		d := host.Decision{Verdict: host.Allow, Grant: grant.Grant{Tools: held[a.Plugin]}}
		if strings.HasPrefix(a.Principal.Name, "plugin:") && !slices.Contains(a.Principal.Tools, a.Plugin+"."+a.Tool) {
			d.Verdict, d.Reason = host.Deny, "not held"
		}
		return d, nil
	}
}

func TestNestedCallsIntersectRights(t *testing.T) {
	for _, tc := range []struct {
		name string
		held map[string][]string
		want host.Code
	}{
		{"rights to all", map[string][]string{"first": {"second.echo", "third.echo"}, "second": {"third.echo"}},
			""},
		{"rights of the second only", map[string][]string{"first": {"second.echo"}, "second": {"third.echo"}},
			host.Denied},
		{"rights of the first only", map[string][]string{"first": {"second.echo", "third.echo"}}, host.Denied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHost(t, call.Config{Policy: holding(tc.held)},
				newFake(t, shopNamed("first"), map[string]handler{"echo": callOther("second.echo")}),
				newFake(t, shopNamed("second"), map[string]handler{"echo": callOther("third.echo")}),
				newFake(t, shopNamed("third"), nil))
			a := makeCall(t, h, "first.echo", `{}`)
			if tc.want != "" {
				failsWith(t, a, tc.want)
			} else if a.Err != nil {
				t.Fatal(a.Err)
			}
		})
	}
}

func TestCallsOfCallsAreBounded(t *testing.T) {
	made := 0
	h := newHost(t, call.Config{},
		newFake(t, shopNamed("first"),
			map[string]handler{"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				for {
					if _, err := callTool(ctx, r, "second.echo", nil, ""); err != nil {
						return nil, err
					}
					made++
				}
			}}),
		newFake(t, shopNamed("second"), nil))
	failsWith(t, makeCall(t, h, "first.echo", `{}`), host.LimitExceeded)
	if made != 10_000 {
		t.Errorf("%d calls were made before it ended", made)
	}
}

// TestCallsOfCallsAreCountedTogether: the limit applies to all calls that the outermost one causes, at any depth.
func TestCallsOfCallsAreCountedTogether(t *testing.T) {
	made := 0
	calling := func(name string) handler {
		return func(ctx context.Context, r *host.Request) (*job.Result, error) {
			for range 120 {
				if _, err := callTool(ctx, r, name, nil, ""); err != nil {
					return nil, err
				}
				made++
			}
			return &job.Result{Data: json.RawMessage(`{}`)}, nil
		}
	}
	h := newHost(t, call.Config{}, newFake(t, shopNamed("first"), map[string]handler{"echo": calling("second.echo")}),
		newFake(t, shopNamed("second"), map[string]handler{"echo": calling("third.echo")}),
		newFake(t, shopNamed("third"), nil))
	failsWith(t, makeCall(t, h, "first.echo", `{}`), host.LimitExceeded)
	if made > 10_000 || made < 9_800 {
		t.Errorf("%d calls were made before it ended", made)
	}
}

// TestIsolationExtends checks that an isolated call is isolated after a question, and so are the calls that it makes.
func TestIsolationExtends(t *testing.T) {
	inner := newFake(t, shopNamed("second"), nil)
	outer := newFake(t, shopNamed("first"), map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			return callTool(ctx, r, "second.echo", nil, "")
		}})
	confirmed := policy(func(host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Confirm, Reason: "why not", Grant: grant.Grant{Tools: []string{"*"}}}, nil
	})
	h := newHost(t, call.Config{Policy: confirmed, Approver: &approver{answer: yesOrNo[true]}}, outer, inner)
	for _, isolate := range []string{"process", "call", ""} {
		a, _ := h.Call(t.Context(), host.Call{Name: "first.echo", Principal: cli, Options: job.Options{Isolate: isolate}})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		for _, f := range []*fake{outer, inner} {
			requests := f.requests()
			if got := requests[len(requests)-1].Isolate; got != isolate {
				t.Errorf("isolate %q: %s was called with %q", isolate, f.info.Name, got)
			}
		}
	}
}

// TestIsolationIsNotWeakened checks that a call cannot ask for less isolation than the policy.
func TestIsolationIsNotWeakened(t *testing.T) {
	f := newFake(t, shopNamed("shop"), nil)
	h := newHost(t, call.Config{Policy: policy(func(host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Allow, Isolate: "call"}, nil
	})}, f)
	for _, isolate := range []string{"", "none", "process", "call"} {
		a, _ := h.Call(t.Context(), host.Call{Name: "shop.echo", Principal: cli, Options: job.Options{Isolate: isolate}})
		requests := f.requests()
		if a.Err != nil || requests[len(requests)-1].Isolate != "call" {
			t.Errorf("isolate %q: %v", isolate, a.Err)
		}
	}
}

// TestCrashesNameEffects checks that the error of a crash says what the call may have changed before.
func TestCrashesNameEffects(t *testing.T) {
	h := newHost(t, call.Config{}, newFake(t, shopNamed("shop"), map[string]handler{
		"echo": func(_ context.Context, r *host.Request) (*job.Result, error) {
			for _, use := range []string{"fs:read:/a", "fs:write:/b", "http:GET:https://a.test", "http:POST:https://a.test",
				"secret:KEY", "tool:shop.echo", "tool:gone.tool"} {
				r.RecordUse(use)
			}
			return nil, host.Errorf(host.Trapped, "gone")
		}}))
	a, _ := h.Call(t.Context(), host.Call{Name: "shop.echo", Principal: cli})
	want := []string{"fs:write:/b", "http:POST:https://a.test", "tool:gone.tool"}
	if a.Err == nil || !slices.Equal(a.Err.Object().Effects, want) {
		t.Errorf("%+v", a.Err)
	}
}

// TestFilesAreGuarded checks that a call which can open files, by its own grant or its caller's, gets the guard of the
// host's own files.
func TestFilesAreGuarded(t *testing.T) {
	folder := []grant.FS{{Path: "/data", Source: t.TempDir(), Mode: "ro"}}
	for _, holder := range []string{"", "first", "second"} {
		inner := newFake(t, shopNamed("second"), nil)
		h := newHost(t, call.Config{
			Own: &protect.Files{Folders: []protect.Folder{{Name: "config", Path: t.TempDir()}}},
			Policy: policy(func(a host.Ask) (host.Decision, error) {
				d := host.Decision{Verdict: host.Allow, Grant: grant.Grant{Tools: []string{"*"}}}
				if a.Plugin == holder {
					d.Grant.FS = folder
				}
				return d, nil
			})},
			newFake(t, shopNamed("first"), map[string]handler{"echo": func(ctx context.Context, r *host.Request) (*job.Result,
				error) {
				if (r.Guard != nil) != (holder == "first") {
					t.Errorf("%s has a folder, the outer call is guarded: %v", holder, r.Guard != nil)
				}
				return callTool(ctx, r, "second.echo", nil, "")
			}}), inner)
		if a := makeCall(t, h, "first.echo", `{}`); a.Err != nil {
			t.Fatal(a.Err)
		}
		if got := inner.requests()[0].Guard != nil; got != (holder != "") {
			t.Errorf("%s has a folder, the inner call is guarded: %v", holder, got)
		}
	}
}

// TestPluginsReportNoCodesOfTheHost checks that a plugin cannot make its failure look like the host's. An exit code
// that it declares as not_found is no such failure.
func TestPluginsReportNoCodesOfTheHost(t *testing.T) {
	for _, c := range []struct {
		code, want host.Code
		declared   int
	}{
		{host.Denied, host.ToolFailed, 0}, {host.Timeout, host.ToolFailed, 0}, {host.InvalidArgs, host.ToolFailed, 0},
		{host.NotFound, host.ToolFailed, 0}, {host.OK, host.ToolFailed, 0}, {host.Internal, host.ToolFailed, 0},
		{host.Denied, host.ToolFailed, 12}, {host.NotFound, host.NotFound, 12},
	} {
		h := newHost(t, call.Config{}, newFake(t, shop, map[string]handler{
			"echo": func(context.Context, *host.Request) (*job.Result, error) {
				return nil, &host.Error{Code: c.code, Exit: c.declared, Message: "so it says",
					Tool: &host.ToolError{Exit: 3, Name: string(c.code)}}
			}}))
		if a := makeCall(t, h, "shop.echo", `{}`); a.Err == nil || a.Err.Code != c.want {
			t.Errorf("%s, declared as %d: %+v", c.code, c.declared, a.Err)
		}
	}
}

// TestPolicyFails checks that a call is denied if the policy fails for one of the callers, whatever decision
// it returns with the error.
func TestPolicyFails(t *testing.T) {
	for _, failing := range []string{"cli", "plugin:first", ""} {
		inner := newFake(t, shopNamed("second"), nil)
		h := newHost(t, call.Config{Policy: policy(func(a host.Ask) (host.Decision, error) {
			d := host.Decision{Verdict: host.Allow, Grant: grant.Grant{Tools: []string{"*"}}}
			if a.Plugin == "second" && a.Principal.Name == failing {
				return d, host.Errorf(host.ConfigError, "the policy cannot be read")
			}
			return d, nil
		})}, newFake(t, shopNamed("first"), map[string]handler{
			"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				return callTool(ctx, r, "second.echo", nil, "")
			}}), inner)
		a, _ := h.Call(t.Context(), host.Call{Name: "first.echo", Principal: cli})
		fails := failing == "cli" || failing == "plugin:first"
		if (a.Err != nil) != fails || (len(inner.requests()) == 0) != fails {
			t.Errorf("%q fails: %v, the tool ran %d times", failing, a.Err, len(inner.requests()))
		}
	}
}

// TestPolicyInput checks what the policy gets about each of the callers of a nested call, and about the tool; and what
// the tool gets about its caller.
func TestPolicyInput(t *testing.T) {
	for n := range 1 << 3 {
		bound, shipped, builtin := n&1 != 0, n&2 != 0, n&4 != 0
		inner := newFake(t, shopNamed("second"), nil)
		owner := "sha256:second"
		if builtin {
			inner, owner = inner.builtin(), host.OwnerShipped
		} else if bound {
			inner.info.Owner, inner.info.ReplacedOwner, owner = "RWkey", "sha256:old", "RWkey"
		}
		outer := newFake(t, shopNamed("first"), map[string]handler{
			"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				return callTool(ctx, r, "second.echo", nil, "")
			}})
		if shipped {
			outer.info.Owner = host.OwnerShipped
		}
		var asked []host.Ask
		held := []string{"second.echo"}
		h := newHost(t, call.Config{Policy: policy(func(a host.Ask) (host.Decision, error) {
			if a.Plugin == "second" {
				asked = append(asked, a)
			}
			return host.Decision{Verdict: host.Allow, Grant: grant.Grant{Tools: held}}, nil
		})}, outer, inner)
		a, _ := h.Call(t.Context(), host.Call{Name: "first.echo", Principal: caller.Principal{Name: "mcp-http:c",
			Bound: bound}})
		if a.Err != nil || len(asked) != 2 {
			t.Fatalf("%v, asked %+v", a.Err, asked)
		}
		about := host.Ask{Plugin: "second", Tool: "echo", Effect: "read", Outside: builtin, Owner: owner,
			ReplacedOwner: inner.info.ReplacedOwner}
		byPlugin, byOuter := about, about
		byPlugin.Principal.Name, byPlugin.Trusted, byPlugin.Principal.Tools = "plugin:first", shipped, held
		byPlugin.Digest, byPlugin.Capabilities = inner.info.Digest, asked[0].Capabilities
		byOuter.Principal.Name, byOuter.Principal.Bound, byOuter.OnBehalf = "mcp-http:c", bound, shipped
		for i, want := range []host.Ask{byPlugin, byOuter} {
			asked[i].Principal.Session = caller.Session{}
			if !reflect.DeepEqual(asked[i], want) {
				t.Errorf("bound %v, shipped %v, built in %v: asked\n%+v, want\n%+v", bound, shipped, builtin,
					asked[i], want)
			}
		}
	}
}

// secrets is a store of secrets, and mirror an egress that returns what it was sent.
type secrets map[string]string

func (s secrets) Secret(_ context.Context, name string) (string, error) {
	if v, ok := s[name]; ok {
		return v, nil
	}
	return "", host.Errorf(host.ConfigError, "secret %s has no value", name)
}

type mirror struct{ sent, methods []string }

func (m *mirror) Send(ctx context.Context, r *outbound.Request, o outbound.Rights) (*outbound.Response, error) {
	m.methods = append(m.methods, r.Method)
	var lines []string
	for _, s := range o.Secrets {
		if s.URL == "" {
			continue
		}
		value, err := o.Value(ctx, s.Name)
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.ReplaceAll(s.Header, "{secret}", value))
	}
	o.OnRequest(r.Method, "https://api.example.com")
	m.sent = append(m.sent, lines...)
	all := strings.Join(lines, "; ")
	if r.URL == "fail" {
		return nil, host.Errorf(host.Unavailable, "the server said %s", all)
	}
	return &outbound.Response{Status: 200, Headers: [][2]string{{"x-echo", all}}, Body: []byte(all)}, nil
}

func (*mirror) Dial(context.Context, string, []grant.HTTP) (net.Conn, error) {
	return nil, errors.New("not here")
}

const token = `s3cret/"<va lue>&"`

// secretive is a policy that grants one secret for sending and one for reading.
var secretive = policy(func(host.Ask) (host.Decision, error) {
	return host.Decision{Verdict: host.Allow, Grant: grant.Grant{Secrets: []grant.Secret{
		{Name: "TOKEN", URL: "https://api.example.com", Header: "Authorization: Bearer {secret}"}, {Name: "KEY", Read: true},
	}}}, nil
})

// TestRequestCarriesItsSecrets calls tools of kind http: a request carries the secrets that its tool names.
func TestRequestCarriesItsSecrets(t *testing.T) {
	for bound, want := range map[string]string{``: "[Authorization: Bearer v]",
		`, "secrets": ["TOKEN"]`: "[Authorization: Bearer v]", `, "secrets": []`: "[]"} {
		out := &mirror{}
		h := newHost(t, call.Config{Policy: secretive, Secrets: secrets{"TOKEN": "v"}, Egress: out},
			newFake(t, `{"manifest": 1, "name": "api", "version": "1.0.0", "kind": "http", "docs": {"brief": "An API"},
				"http": {"base": "https://api.example.com"}, "capabilities": {"secrets": [{"name": "TOKEN",
				"url": "https://api.example.com", "header": "Authorization: Bearer {secret}", "optional": true}]},
				"tools": [{"name": "list", "docs": {"brief": "List all"}, "effect": "read", "params": {"type": "object"},
				"http": {"method": "GET", "path": "/"`+bound+`}}]}`, map[string]handler{
				"list": func(ctx context.Context, r *host.Request) (*job.Result, error) {
					_, err := sendHTTP(ctx, r, "GET", "https://api.example.com/")
					return &job.Result{Data: json.RawMessage(`{}`)}, err
				}}))
		if a := makeCall(t, h, "api.list", `{}`); a.Err != nil {
			t.Error(a.Err)
		}
		if got := fmt.Sprint(out.sent); got != want {
			t.Errorf("with %q: sent %s, expected %s", bound, got, want)
		}
	}
}

func TestSecretsAreSentAndNeverSeen(t *testing.T) {
	out, rec := &mirror{}, &recorder{}
	var guest string
	h := newHost(t, call.Config{Policy: secretive, Secrets: secrets{"TOKEN": token}, Egress: out, Recorder: rec},
		newFake(t, shop, map[string]handler{
			"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				answer, err := sendHTTP(ctx, r, "GET", "https://api.example.com/")
				if err != nil {
					return nil, err
				}
				guest = string(answer.Body) + answer.Headers[0][1]
				return &job.Result{Data: json.RawMessage(`{}`)}, nil
			},
			"order.list": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				_, err := sendHTTP(ctx, r, "GET", "fail")
				return nil, err
			},
		}))
	if a := makeCall(t, h, "shop.echo", `{}`); a.Err != nil {
		t.Fatal(a.Err)
	}
	if !slices.Equal(out.sent, []string{"Authorization: Bearer " + token}) {
		t.Errorf("sent %q", out.sent)
	}
	if strings.Contains(guest, "s3cret") || !strings.Contains(guest, "[secret TOKEN]") {
		t.Errorf("the guest got %q", guest)
	}
	if e := rec.last(t); !slices.Equal(e.Uses, []string{"secret:TOKEN", "http:GET:https://api.example.com"}) {
		t.Errorf("uses %q", e.Uses)
	}
	if e := failsWith(t, makeCall(t, h, "shop.order.list", `{}`), host.Unavailable); strings.Contains(e.Message,
		"s3cret") {
		t.Errorf("the error says %q", e.Message)
	}
}

// neverReflected are secrets whose binding refuses answers that contain them.
type neverReflected struct{ secrets }

func (neverReflected) RefusesReflection(string) bool { return true }

// TestReflectedSecretFails checks that responses and results that contain a secret are errors if
// the binding of the secret refuses reflection.
func TestReflectedSecretFails(t *testing.T) {
	out, rec := &mirror{}, &recorder{}
	h := newHost(t, call.Config{Policy: secretive, Secrets: neverReflected{secrets{"TOKEN": token, "KEY": token}},
		Egress: out, Recorder: rec},
		newFake(t, shop, map[string]handler{
			"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				answer, err := sendHTTP(ctx, r, "GET", "https://api.example.com/")
				if err == nil {
					t.Errorf("the guest received %q", answer.Body)
				}
				return nil, err
			},
			"order.list": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				key, err := readSecret(ctx, r, "KEY")
				if err != nil {
					t.Error(err)
				}
				data, _ := json.Marshal(map[string]string{"a": base64.StdEncoding.EncodeToString([]byte("x" + key))})
				return &job.Result{Data: data}, nil
			},
		}))
	for _, tool := range []string{"shop.echo", "shop.order.list"} {
		a := makeCall(t, h, tool, `{}`)
		e := failsWith(t, a, host.Denied)
		if !strings.Contains(e.Message, "reflect") || len(e.Denied) == 0 || a.Data != nil {
			t.Errorf("%s: %+v, data %s", tool, e, a.Data)
		}
		if envelope, _ := json.Marshal(a); strings.Contains(string(envelope), "s3cret") {
			t.Errorf("%s: %s", tool, envelope)
		}
	}
}

func TestSecretsThatAreReadStayInTheCall(t *testing.T) {
	for _, tc := range []struct{ name, form string }{
		{"plain", token},
		{"within a text", "x" + token + "y"},
		{"query", url.QueryEscape(token)},
		{"path", url.PathEscape(token)},
		{"hex", hex.EncodeToString([]byte("-" + token))},
		{"base64", base64.StdEncoding.EncodeToString([]byte(token))},
		{"base64, shifted by one byte", base64.StdEncoding.EncodeToString([]byte("u" + token + "!"))},
		{"query, lower case", strings.ToLower(url.QueryEscape(token))},
		{"JSON, < and > unescaped", strings.Trim(string(jsontext.Marshal(token)), `"`)},
		{"HTML", html.EscapeString(token)},
		{"HTML of Python", strings.ReplaceAll(html.EscapeString(token), "&#34;", "&quot;")},
		{"base64, shifted by two bytes", base64.URLEncoding.EncodeToString([]byte("u:" + token))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rec := &recorder{}
			var lines []string
			h := newHost(t, call.Config{Policy: secretive, Secrets: secrets{"KEY": token}, Recorder: rec},
				newFake(t, shop, map[string]handler{
					"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
						key, err := readSecret(ctx, r, "KEY")
						if err != nil || key != token {
							t.Errorf("read %q, %v", key, err)
						}
						r.Log(1, "log "+tc.form)
						r.Progress(1, 2, "progress "+tc.form)
						data, _ := json.Marshal(map[string]any{tc.form: []string{tc.form}})
						if string(r.Params) == `{"fail":true}` {
							return nil, &host.Error{Code: host.ToolFailed, Message: "failed with " + tc.form, Tool: &host.ToolError{Exit: 1,
								Details: data}}
						}
						return &job.Result{Data: data, Warnings: []string{"warning " + tc.form}}, nil
					}}))
			for _, params := range []string{`{}`, `{"fail":true}`} {
				a, _ := h.Call(t.Context(), host.Call{Name: "shop.echo", Params: json.RawMessage(params), Principal: cli,
					Sink: messages(&lines)})
				envelope, _ := json.Marshal(a)
				lines = append(lines, string(envelope), string(rec.last(t).Result))
			}
			for _, s := range lines {
				if core := tc.form[len(tc.form)/3 : len(tc.form)*2/3]; strings.Contains(s, core) {
					t.Errorf("%q contains %q", s, core)
				}
			}
		})
	}
}

// Secrets of several lines are redacted, although a log splits texts into lines and a message joins them.
func TestSecretsOfManyLinesStayInTheCall(t *testing.T) {
	const key = "-----BEGIN KEY-----\nMIIBVwIBADANBgkqhki\n\tG9w0BAQEFAASCAT8wgg\n-----END KEY-----\n"
	var lines []string
	h := newHost(t, call.Config{Policy: secretive, Secrets: secrets{"KEY": key}}, newFake(t, shop, map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			_, err := readSecret(ctx, r, "KEY")
			for line := range strings.Lines(key) {
				r.Log(1, manifest.CleanLine(line))
			}
			r.Log(1, manifest.CleanLine(key))
			return &job.Result{Data: json.RawMessage(`{}`), Warnings: []string{manifest.CleanLine("it is " + key)}}, err
		}}))
	a, _ := h.Call(t.Context(),
		host.Call{Name: "shop.echo", Principal: cli, Sink: messages(&lines)})
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	for _, s := range append(lines, a.Warnings...) {
		if !strings.Contains(s, "[secret KEY]") || strings.Contains(s, "MIIB") || strings.Contains(s, "G9w0") {
			t.Errorf("said %q", s)
		}
	}
}

func TestSecretsOfOuterCallsStayOutOfRecords(t *testing.T) {
	for name, isCaller := range map[string]bool{"as the plugin": false, "as its caller": true} {
		t.Run(name, func(t *testing.T) { checkSecretsOfOuterCalls(t, isCaller) })
	}
}

// checkSecretsOfOuterCalls has a plugin call others with a secret. It calls them as itself, or as its own caller.
func checkSecretsOfOuterCalls(t *testing.T, isCaller bool) {
	rec, dir := &recorder{}, t.TempDir()
	granting := policy(func(a host.Ask) (host.Decision, error) {
		d, err := secretive(a)
		d.Grant.Caller = isCaller && a.Plugin == "first"
		return d, err
	})
	first := newFake(t, shopNamed("first"),
		map[string]handler{"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			key, _ := readSecret(ctx, r, "KEY")
			params, _ := json.Marshal(map[string]string{"key": key})
			answer, err := callTool(ctx, r, "second.echo", params, "")
			if err != nil || !strings.Contains(string(answer.Data), "s3cret") {
				t.Errorf("the first got %s, %v", answer.Data, err)
			}
			long, _ := json.Marshal(map[string]string{"key": key, "more": strings.Repeat("x", 1000)})
			if cut, err := callTool(ctx, r, "second.echo", long, `{"max_bytes":100}`); err != nil ||
				!strings.Contains(string(cut.Data), "parley://result/") {
				t.Errorf("a truncated result: %s, %v", cut.Data, err)
			}
			if _, err := callTool(ctx, r, "second."+key, nil, ""); err == nil {
				t.Error("a tool with the name of a secret was found")
			}
			if _, err := callTool(ctx, r, "second.order.list", params, ""); err == nil ||
				!strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the first got the error %v", err)
			}
			return &job.Result{Data: json.RawMessage(`{}`)}, nil
		}})
	first.info.Owner = host.OwnerShipped
	h := newHost(t,
		call.Config{Policy: granting, Secrets: secrets{"KEY": token}, Recorder: rec, Sessions: &session.Store{Dir: dir}},
		first, newFake(t, shopNamed("second"), map[string]handler{
			"echo": func(_ context.Context, r *host.Request) (*job.Result, error) {
				r.RecordUse("fs:read:/srv/" + string(r.Params))
				return &job.Result{Data: r.Params, Subject: string(r.Params)}, nil
			},
			"order.list": func(_ context.Context, r *host.Request) (*job.Result, error) {
				return nil, &host.Error{Code: host.InvalidArgs, Message: "it is " + token, Subject: token,
					Details: []host.Detail{{Parameter: "/" + token, Expected: "no " + token}}}
			},
		}))
	c := host.Call{Name: "first.echo", Principal: cliIn("s")}
	if a, _ := h.Call(t.Context(), c); a.Err != nil {
		t.Fatal(a.Err)
	}
	var files []string
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		files = append(files, path)
		return err
	})
	for _, f := range files {
		if data, _ := os.ReadFile(f); bytes.Contains(data, []byte("s3cret")) {
			t.Errorf("the session stores %s", data)
		}
	}
	if len(files) < 3 { // the folder, the session, the result
		t.Errorf("the session has the files %q", files)
	}
	for _, e := range rec.all() {
		kept := fmt.Sprintf("%s %s %s %q %q %q", e.Tool, e.Params, e.Result, e.Uses, e.Refused, e.Subject)
		if e.Err != nil {
			kept += fmt.Sprintf("%+v", e.Err.Object())
		}
		if strings.Contains(kept, "s3cret") {
			t.Errorf("%s: %s", e.CallID, kept)
		}
	}
}

func TestSecretsThatAreNotGranted(t *testing.T) {
	h := newHost(t, call.Config{Policy: secretive, Secrets: secrets{"TOKEN": token, "OTHER": token}},
		newFake(t, shop, map[string]handler{
			"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				for _, name := range []string{"TOKEN", "OTHER", ""} {
					if value, err := readSecret(ctx, r, name); host.AsError(err).Code != host.Denied {
						t.Errorf("%s: %q, %v", name, value, err)
					}
				}
				return &job.Result{Data: json.RawMessage(`{}`)}, nil
			}}))
	if a := makeCall(t, h, "shop.echo", `{}`); a.Err != nil {
		t.Fatal(a.Err)
	}
}

func TestSettings(t *testing.T) {
	text := strings.Replace(shop, `"limits"`,
		`"settings": {"type":"object","required":["org"],"additionalProperties":false,
		"properties":{"org":{"type":"string"},"pages":{"type":"integer","default":5}}}, "limits"`, 1)
	for _, tc := range []struct{ given, want, parameter string }{
		{`{"org":"abc"}`, `{"org":"abc","pages":5}`, ""},
		{``, "", "/org"},
		{`{"org":3}`, "", "/org"},
		{`{"org":"abc","typo":1}`, "", "/typo"},
	} {
		p := newFake(t, text, nil)
		h := newHost(t, call.Config{Policy: policy(func(host.Ask) (host.Decision, error) {
			return host.Decision{Verdict: host.Allow, Settings: json.RawMessage(tc.given),
				SettingsIn: "[plugin.shop.settings] in /etc/policy.toml"}, nil
		})}, p)
		a := makeCall(t, h, "shop.echo", `{}`)
		if tc.parameter == "" {
			if a.Err != nil || string(p.requests()[0].Settings) != tc.want {
				t.Errorf("%s: %v, %s", tc.given, a.Err, p.requests()[0].Settings)
			}
			continue
		}
		e := failsWith(t, a, host.Denied)
		if len(p.requests()) > 0 || e.Details[0].Parameter != tc.parameter ||
			!strings.Contains(e.Message, "[plugin.shop.settings] in /etc/policy.toml") {
			t.Errorf("%s: %+v", tc.given, e)
		}
	}
}

// auditor returns err from Begin.
type auditor struct {
	recorder
	err error
}

func (a *auditor) Begin(e host.Event) error {
	if a.err == nil {
		a.Record(e)
	}
	return a.err
}

func TestAudit(t *testing.T) {
	a := &auditor{}
	p := newFake(t, shop, nil)
	h := newHost(t, call.Config{Audit: a, Policy: policy(func(host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Allow, Grant: grant.Grant{Clock: true}}, nil
	})}, p)
	if answer := makeCall(t, h, "shop.echo", `{}`); answer.Err != nil {
		t.Fatal(answer.Err)
	}
	events := a.all()
	if len(events) != 2 || events[0].Op != "begin" || events[1].Op != "call" || events[0].CallID != events[1].CallID ||
		!slices.Equal(events[1].Rights, []string{"clock"}) {
		t.Errorf("%+v", events)
	}
	a.err = host.Errorf(host.Unavailable, "the log cannot be written")
	failsWith(t, makeCall(t, h, "shop.echo", `{}`), host.Unavailable)
	if len(p.requests()) != 1 {
		t.Error("a call ran although it could not be recorded")
	}
}

func TestBuiltinsAreNotIsolated(t *testing.T) {
	p := newFake(t, shop, nil)
	h := newHost(t, call.Config{}, p, newFake(t, shopNamed("inner"), nil).builtin())
	for name, code := range map[string]host.Code{"shop.echo": "", "inner.echo": host.InvalidArgs} {
		a, _ := h.Call(t.Context(), host.Call{Name: name, Principal: cli, Options: job.Options{Isolate: "process"}})
		if code != "" {
			failsWith(t, a, code)
		} else if a.Err != nil || p.requests()[0].Isolate != "process" {
			t.Errorf("%v, %q", a.Err, p.requests()[0].Isolate)
		}
	}
}

// TestResultsOfManyValues checks that a result that would take gigabytes to validate is refused, and a long text
// is not.
func TestResultsOfManyValues(t *testing.T) {
	for name, tc := range map[string]struct {
		data string
		code host.Code
	}{
		"many": {"[" + strings.Repeat("1,", 2<<20) + "1]", host.LimitExceeded},
		"long": {`"` + strings.Repeat("x", 8<<20) + `"`, ""},
	} {
		h := newHost(t, call.Config{},
			newFake(t, shop, map[string]handler{"echo": func(context.Context, *host.Request) (*job.Result, error) {
				return &job.Result{Data: json.RawMessage(tc.data)}, nil
			}}))
		if a := makeCall(t, h, "shop.echo", `{}`); tc.code != "" {
			failsWith(t, a, tc.code)
		} else if a.Err != nil {
			t.Errorf("%s: %v", name, a.Err)
		}
	}
}

func TestProviderGetsGrantsOfCallers(t *testing.T) {
	held := map[string]grant.Grant{
		"first": {HTTP: []grant.HTTP{{URL: "http://127.0.0.1:1", Methods: []string{"GET"}}}},
		"second": {HTTP: []grant.HTTP{{URL: "http://127.0.0.1:2", Methods: []string{"GET"}}},
			FS: []grant.FS{{Path: "/d", Source: "/srv", Mode: "ro"}}},
		"third": {Clock: true},
	}
	told, digests := map[string]grant.Grant{}, map[string]string{}
	note := func(name string, then handler) handler {
		return func(ctx context.Context, r *host.Request) (*job.Result, error) {
			told[name] = r.CallerGrant
			if r.Session.Plugin != nil {
				digests[name] = r.Session.Plugin.Digest
			}
			return then(ctx, r)
		}
	}
	p := policy(func(a host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Allow, Grant: held[a.Plugin]}, nil
	})
	first := newFake(t, shopNamed("first"), map[string]handler{"echo": note("first", callOther("second.echo"))})
	second := newFake(t, shopNamed("second"), map[string]handler{"echo": note("second", callOther("third.echo"))})
	first.info.Digest, second.info.Digest = "sha256:1", "sha256:2"
	h := newHost(t, call.Config{Policy: p}, first, second,
		newFake(t, shopNamed("third"),
			map[string]handler{"echo": note("third", func(context.Context, *host.Request) (*job.Result, error) {
				return &job.Result{Data: json.RawMessage(`{}`)}, nil
			})}))
	if a := makeCall(t, h, "first.echo", `{}`); a.Err != nil {
		t.Fatal(a.Err)
	}
	want := map[string]grant.Grant{"first": {}, "second": held["first"], "third": held["second"]}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("the providers got %+v, want %+v", told, want)
	}
	if want := map[string]string{"second": "sha256:1", "third": "sha256:2"}; !reflect.DeepEqual(digests,
		want) {
		t.Errorf("the providers got the versions %v, want %v", digests, want)
	}
}

// held is a store whose secrets the host knows before they are used.
type held struct{ secrets }

func (h held) HeldSecrets(context.Context) map[string]string { return h.secrets }

// TestHeldSecretsAreInNoRecord: callers give the value of a secret to tools that no grant binds to it, in every place
// that a caller can write in. The value is in no record, whatever the call does, and the tool gets it as given.
func TestHeldSecretsAreInNoRecord(t *testing.T) {
	const value = "held-7f3a9c51e2-12345678"
	rec := &recorder{}
	echo := func(ctx context.Context, r *host.Request) (*job.Result, error) {
		if !strings.Contains(string(r.Params), value) && !strings.Contains(string(r.Params), "90817263") {
			t.Errorf("the tool got %s", r.Params)
		}
		r.RecordUse("fs:read:/srv/" + value)
		_, _ = callTool(ctx, r, "shop."+value, json.RawMessage(`{"`+value+`":"`+value+`"}`), "")
		if strings.Contains(string(r.Params), "fail") {
			return nil, &host.Error{Code: host.ToolFailed, Message: value, Details: []host.Detail{{Provided: value}},
				Tool: &host.ToolError{Exit: 3, Name: value, Details: jsontext.Marshal(value)}}
		}
		return &job.Result{Data: r.Params}, nil
	}
	source, dir := held{secrets{"KEY": value, "PIN": "90817263"}}, t.TempDir()
	sessions := &session.Store{Dir: dir, Redact: (&redact.Redactor{Source: source}).Held}
	h := newHost(t, call.Config{Recorder: rec, Secrets: source, Sessions: sessions},
		newFake(t, shop, map[string]handler{"echo": echo}))
	for _, c := range [][2]string{
		{"shop.echo", `{"a":"` + value + `"}`}, {"shop.echo", `{"a":"fail ` + value + `"}`}, {"shop.echo", `{"a":90817263}`},
		{"shop.echo", `{"` + value + `":"` + value + `"}`}, {"shop.add", `{"sku":"` + value + `","count":"` + value + `"}`},
		{"shop.add", `{"sku":"` + value}, {"shop." + value, `{}`}, {value, `{}`},
	} {
		a, _ := h.Call(t.Context(), host.Call{Name: c[0], Params: json.RawMessage(c[1]), Principal: cli})
		if c[1] == `{"a":"`+value+`"}` && !strings.Contains(string(a.Data), value) {
			t.Errorf("the caller got %s, expected the value as given", a.Data)
		}
	}
	for _, name := range []string{"s", value, "x-" + value, strings.ToUpper(value), hex.EncodeToString([]byte(value)),
		"90817263"} {
		for _, params := range []string{`{"sku":"` + value + `","n":1}`, `{"` + value + `":"a"}`, `{"sku":90817263,"n":1}`} {
			_, _ = h.Call(t.Context(), host.Call{Name: "shop.add", Params: json.RawMessage(params), Principal: cliIn(name)})
			_, _ = h.Call(t.Context(), host.Call{Name: "shop.echo", Params: json.RawMessage(params), Principal: cliIn(name),
				Options: job.Options{MaxBytes: 1}})
		}
		_, _ = h.Describe(t.Context(), cliIn(name), "shop.echo", 0)
	}
	stored := 0
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		text, _ := os.ReadFile(path)
		if text = append(text, e.Name()...); filepath.Base(filepath.Dir(path)) == "results" {
			text = []byte(e.Name()) // results are the caller's
		}
		if stored++; regexp.MustCompile(`(?i)7f3a9c51e2|90817263|3766336139633531`).Match(text) {
			t.Errorf("%s has the value: %s", path, text)
		}
		return err
	})
	if stored < 4 {
		t.Errorf("%d files are stored of sessions", stored)
	}
	_, _, _ = h.Search(t.Context(), cli, search.Query{Text: "sell " + value})
	_, _ = h.Describe(t.Context(), cli, "shop."+value, 0)
	if len(rec.events) < 10 {
		t.Fatalf("%d records", len(rec.events))
	}
	for _, e := range rec.events {
		if text := fmt.Sprintf("%+v %s %s %+v", e, e.Params, e.Result, e.Err); strings.Contains(text, "7f3a9c51e2") ||
			strings.Contains(text, "90817263") {
			t.Errorf("a record has the value: %s", text)
		}
	}
}

// TestCanary: a guest that read a secret puts it wherever it can. The value is not in anything that leaves the call or
// is stored, nor in what the guest gets from a server.
func TestCanary(t *testing.T) {
	const canary = "canary-7f3a9c51e2"
	rec, out, dir := &recorder{}, &mirror{}, t.TempDir()
	sessions := &session.Store{Dir: dir}
	both := policy(func(host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Allow, Grant: grant.Grant{Tools: []string{"*"}, Secrets: []grant.Secret{
			{Name: "KEY", Read: true}, {Name: "TOKEN", URL: "https://api.example.com", Header: "X: {secret}"}}}}, nil
	})
	var seen []string // by the guest
	h := newHost(t, call.Config{Policy: both, Secrets: secrets{"KEY": canary, "TOKEN": "token-" + canary[7:]}, Egress: out,
		Recorder: rec, Sessions: sessions}, newFake(t, shop, map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			key, err := readSecret(ctx, r, "KEY")
			if err != nil || key != canary {
				t.Fatalf("the guest read %q, %v", key, err)
			}
			for _, url := range []string{"https://api.example.com/", "fail"} {
				answer, err := sendHTTP(ctx, r, "GET", url)
				seen = append(seen, fmt.Sprintf("%+v %v", answer, err))
			}
			r.Log(2, "log "+key)
			r.Progress(1, 2, "progress "+key)
			r.RecordUse("fs:read:/srv/" + key)
			_, _ = readSecret(ctx, r, key)
			_, _ = callTool(ctx, r, "shop."+key, json.RawMessage(`{"`+key+`":"`+key+`"}`), "")
			data, _ := json.Marshal(map[string]any{key: []string{key, strings.Repeat("x", 1000), key}})
			switch string(r.Params) {
			case `{"a":"fail"}`:
				return nil, &host.Error{Code: host.ToolFailed, Message: key,
					Tool:    &host.ToolError{Exit: 3, Name: key, Details: data},
					Details: []host.Detail{{Parameter: "/" + key, Provided: key, Expected: key}},
					Denied:  []grant.Denial{{Right: "fs:ro:/" + key, Why: key}}, Steps: []step.Step{step.Search(key)}}
			case `{"a":"own"}`:
				return nil, &host.Error{Code: host.InvalidArgs, Message: "it is " + key, Subject: "button " + key}
			case `{"a":"junk"}`:
				return &job.Result{Data: json.RawMessage(`{"` + key)}, nil
			}
			return &job.Result{Data: data, Warnings: []string{key}, Content: []job.Content{{Type: "text", Text: key}},
				Subject: "button " + key}, nil
		}}))
	seek := func(where, text string) {
		t.Helper()
		if strings.Contains(text, canary[7:]) {
			t.Errorf("%s: %s", where, text)
		}
	}
	for _, params := range []string{`{"a":"ok"}`, `{"a":"fail"}`, `{"a":"own"}`, `{"a":"junk"}`, `{"a":"cut"}`} {
		var said []string
		o := job.Options{}
		if strings.Contains(params, "cut") {
			o.MaxBytes = 500
		}
		a, _ := h.Call(t.Context(), host.Call{Name: "shop.echo", Params: json.RawMessage(params), Principal: cliIn("s"),
			Options: o, Sink: messages(&said)})
		if len(said) != 2 {
			t.Errorf("%s: %d lines of log and progress", params, len(said))
		}
		seek(params+" log and progress", fmt.Sprint(said))
		envelope, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		seek(params+" answer", string(envelope)+fmt.Sprintf("%+v %+v", a.Content, a.Steps))
		if a.Err != nil {
			object, _ := json.Marshal(a.Err.Object())
			seek(params+" error", a.Err.Error()+string(object)+fmt.Sprintf("%+v", a.Err.Details))
		}
		if a.Cut {
			whole, err := sessions.Result(caller.Session{Name: "s"}, a.CallID)
			if err != nil || len(whole) < 1000 {
				t.Errorf("the whole result: %d bytes, %v", len(whole), err)
			}
			seek("whole result", string(whole))
		} else if o.MaxBytes > 0 {
			t.Error("the result was not cut")
		}
	}
	subjects := 0
	for _, e := range rec.all() {
		kept := fmt.Sprintf("%s %s %s %q %q %q %q", e.Tool, e.Params, e.Result, e.Uses, e.Refused, e.Changes, e.Subject)
		subjects += strings.Count(e.Subject, "button ")
		if e.Err != nil {
			kept += fmt.Sprintf("%+v %v", e.Err.Object(), e.Err.Denied)
		}
		seek("record of "+e.CallID, kept)
	}
	if subjects != 3 { // ok, own, cut
		t.Errorf("%d records have a subject", subjects)
	}
	seek("what the guest got", fmt.Sprint(seen))
	stored := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, err := os.ReadFile(path)
			stored++
			seek(path, string(data))
			return err
		}
		return err
	})
	if err != nil || stored == 0 {
		t.Errorf("%d files of the session, %v", stored, err)
	}
}

// TestSessionOfInnerCalls checks in whose session the tools run that a plugin calls: in that of its caller if it may,
// otherwise in one of its own, which is another one for each session of a caller and for each plugin.
func TestSessionOfInnerCalls(t *testing.T) {
	inner := func(plugin string, browser bool, who caller.Session) caller.Session {
		last := newFake(t, shopNamed("last"), nil)
		h := newHost(t, call.Config{Policy: policy(func(a host.Ask) (host.Decision, error) {
			g := grant.Grant{Tools: []string{"last.echo"}, Browser: browser && a.Plugin == plugin}
			return host.Decision{Verdict: host.Allow, Grant: g}, nil
		})}, last, newFake(t, outerNamed(plugin), map[string]handler{"echo": callOther("last.echo")}))
		if a, _ := h.Call(t.Context(), host.Call{Name: plugin + ".echo", Principal: caller.Principal{Name: "cli",
			Session: who}}); a.Err != nil {
			t.Fatal(a.Err)
		}
		return last.requests()[0].Session
	}
	callers := []caller.Session{
		{}, {Name: "a", Connection: "c"}, {Name: "b"}, {Owner: "token:1", Name: "a"}, {Owner: "token:2", Temporary: true},
		{Owner: "plugin:outer", Name: "1", Within: []string{"user/a"}},
	}
	seen := map[string]bool{}
	for _, caller := range callers {
		if got := inner("first", true, caller); !reflect.DeepEqual(got, caller) {
			t.Errorf("a plugin that may act in the session %+v acts in %+v", caller, got)
		}
		within := append([]string{caller.Key()}, caller.Within...)
		for _, plugin := range []string{"first", "second"} {
			got := inner(plugin, false, caller)
			if got.Owner != "plugin:"+plugin || !slices.Equal(got.Within, within) || got.Connection != caller.Connection ||
				got.Temporary != caller.Temporary || got.Plugin == nil || seen[got.Key()] {
				t.Errorf("%s, called in %+v, acts in %+v", plugin, caller, got)
			}
			seen[got.Key()] = true
			if again := inner(plugin, false, caller); again.Key() != got.Key() {
				t.Errorf("%s, called in %+v again, acts in %s and then in %s", plugin, caller, got, again)
			}
		}
	}
}

// TestMayCall asks, in a call, whether its caller may call other tools: without a person, and for each caller on whose
// behalf it is made.
func TestMayCall(t *testing.T) {
	asks := func(tools ...string) handler {
		return func(ctx context.Context, r *host.Request) (*job.Result, error) {
			may := map[string]bool{}
			for _, tool := range tools {
				may[tool] = mayCall(ctx, r, tool)
			}
			data, err := json.Marshal(may)
			return &job.Result{Data: data}, err
		}
	}
	inner := newFake(t, shopNamed("inner"),
		map[string]handler{"echo": asks("order.list", "order.slow", "order.cancel", "add", "no.such", "order")})
	rules := func(a host.Ask) (host.Decision, error) {
		held := grant.Grant{Tools: []string{"inner.echo", "inner.order.list"}}
		d := host.Decision{Verdict: host.Allow, Grant: held}
		switch {
		case a.Principal.Name == "plugin:outer" && !slices.Contains(a.Principal.Tools, a.Plugin+"."+a.Tool),
			a.Principal.Name == "mcp:strict" && a.Tool == "order.list":
			d.Verdict = host.Deny
		case a.Tool == "order.slow":
			d.Verdict = host.Confirm
		case a.Tool == "add":
			d.Missing, d.Allowable = []grant.Denial{{Right: "clock"}}, true
		}
		return d, nil
	}
	approve := approval.ApproverFunc(func(context.Context, *approval.Approval) (approval.Reply, error) {
		t.Error("a person was asked")
		return approval.Reply{Answer: approval.Once}, nil
	})
	h := newHost(t, call.Config{Policy: policy(rules), Approver: approve}, inner,
		newFake(t, outerNamed("outer"), map[string]handler{"echo": callOther("inner.echo"),
			"order.list": callOther("inner.echo")}))
	for _, tc := range []struct {
		name, tool, caller, allowed string
	}{
		{"the caller itself", "inner.echo", "cli", "order.list order.cancel"},
		{"a caller with a rule", "inner.echo", "mcp:strict", "order.cancel"},
		{"a plugin that holds one", "outer.echo", "cli", "order.list"},
		{"a plugin on behalf of a caller with a rule", "outer.echo", "mcp:strict", ""},
		{"a plugin's tool that reads", "outer.order.list", "cli", "order.list"},
	} {
		a, err := h.Call(t.Context(), host.Call{Name: tc.tool, Principal: caller.Principal{Name: tc.caller}})
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		var may map[string]bool
		if err := json.Unmarshal(a.Data, &may); err != nil {
			t.Fatal(err)
		}
		for tool, got := range may {
			if want := slices.Contains(strings.Fields(tc.allowed), tool); got != want {
				t.Errorf("%s may call %s: %t, want %t", tc.name, tool, got, want)
			}
		}
	}
}

// TestMayCallHoldsTheEffect makes a call of a plugin that may call anything in a tool that reads, and in one that
// writes.
func TestMayCallHoldsTheEffect(t *testing.T) {
	var may bool
	inner := newFake(t, shopNamed("inner"), map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			may = mayCall(ctx, r, "order.cancel")
			return &job.Result{Data: json.RawMessage("{}")}, nil
		}})
	held := map[string][]string{"outer": {"inner.echo", "inner.order.cancel"}}
	h := newHost(t, call.Config{Policy: holding(held)}, inner,
		newFake(t, outerNamed("outer"), map[string]handler{"echo": callOther("inner.echo"),
			"order.list": callOther("inner.echo")}))
	for tool, want := range map[string]bool{"outer.echo": true, "outer.order.list": false} {
		if a := makeCall(t, h, tool, `{}`); a.Err != nil || may != want {
			t.Errorf("%s may call a destructive tool: %t, want %t; %v", tool, may, want, a.Err)
		}
	}
}

// boundSecrets binds every secret but UNBOUND to an origin.
type boundSecrets struct{ secrets }

func (boundSecrets) SecretOrigins(name string) ([]string, error) {
	if name == "UNBOUND" {
		return nil, nil
	}
	return []string{"https://a.test"}, nil
}

// TestBoundSecrets checks who can have a secret typed into a page, and that later answers do not show it.
func TestBoundSecrets(t *testing.T) {
	browser := newFake(t, shopNamed("browser"), map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			secret, err := boundSecret(ctx, r, string(r.Params[9:len(r.Params)-2]))
			if err == nil && (secret.Value != token || len(secret.Origins) != 1) {
				t.Errorf("%+v", secret)
			}
			return &job.Result{Data: json.RawMessage(`{}`)}, err
		},
		"add": func(context.Context, *host.Request) (*job.Result, error) {
			return &job.Result{Data: jsontext.Marshal(map[string]any{"page": token})}, nil
		}})
	browser.info.Kind = manifest.KindBuiltin
	who := newFake(t, shopNamed("caller"), map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			if _, err := boundSecret(ctx, r, "GRANTED"); host.AsError(err).Code != host.NotFound {
				t.Errorf("a plugin gets the values of bound secrets: %v", err)
			}
			return callTool(ctx, r, "browser.echo", r.Params, "")
		}})
	rules := policy(func(a host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Allow, Grant: grant.Grant{Tools: []string{"*"},
			Secrets: []grant.Secret{{Name: "GRANTED"}}}}, nil
	})
	store := boundSecrets{secrets{"GRANTED": token, "OTHER": token, "UNBOUND": token}}
	rec := &recorder{}
	h := newHost(t, call.Config{Policy: rules, Secrets: store, Recorder: rec}, browser, who)
	for _, c := range []struct{ tool, secret, want string }{
		{"browser.echo", "UNBOUND", "binds secret UNBOUND to no origin"},
		{"browser.echo", "NOWHERE", "secret NOWHERE has no value"},
		{"caller.echo", "OTHER", "not granted: secret:OTHER"},
		{"caller.echo", "UNBOUND", "not granted: secret:UNBOUND"},
	} {
		params := []byte(`{"name":"` + c.secret + `"}`)
		_, err := h.Call(t.Context(), host.Call{Name: c.tool, Principal: caller.Principal{Name: "mcp:some"}, Params: params})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v", c.tool, c.secret, err)
		}
	}
	page := func() string {
		a, err := h.Call(t.Context(), host.Call{Name: "browser.add", Principal: caller.Principal{Name: "mcp:some"},
			Params: []byte(`{"title":"a"}`)})
		if err != nil {
			t.Fatal(err)
		}
		return string(a.Data) + string(rec.last(t).Result)
	}
	if !strings.Contains(page(), string(jsontext.Marshal(token))) {
		t.Error("what no call has used is redacted: ", page())
	}
	for _, tool := range []string{"caller.echo", "browser.echo"} {
		_, err := h.Call(t.Context(), host.Call{Name: tool, Principal: caller.Principal{Name: "mcp:some"},
			Params: []byte(`{"name":"GRANTED"}`)})
		if err != nil || !slices.Contains(rec.last(t).Uses, "secret:GRANTED") && tool == "browser.echo" {
			t.Errorf("%s: %v, uses %q", tool, err, rec.last(t).Uses)
		}
	}
	got := page()
	if !strings.Contains(got, "[secret GRANTED]") || strings.Contains(got, string(jsontext.Marshal(token))) {
		t.Errorf("a later answer has %s", got)
	}
}

// messages returns a sink that adds the messages of log and progress to a list.
func messages(to *[]string) host.Sink {
	return host.Sink{Wants: job.Wants{Log: true, Progress: true}, Event: func(e job.Event) error {
		*to = append(*to, e.Message)
		return nil
	}}
}
