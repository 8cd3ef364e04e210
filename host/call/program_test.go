package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

// engineNamed is a shipped plugin whose program calls a tool.
func engineNamed(t *testing.T, name, tool string) *fake {
	p := newFake(t, shopNamed(name), map[string]handler{"echo": callOther(tool)})
	p.info.Owner = host.OwnerShipped
	p.manifest.Capabilities.Caller = &manifest.PlainCapability{}
	return p
}

// asked is what the policy was asked about one tool, in order.
func asked(all []host.Ask, plugin string) (found []string) {
	for _, a := range all {
		if a.Plugin == plugin {
			found = append(found, fmt.Sprintf("%s bound=%t behind=%t held=%v", a.Principal.Name, a.Principal.Bound, a.OnBehalf,
				a.Principal.Tools))
		}
	}
	return found
}

// TestProgramsCallAsTheirCaller: whoever runs a program, the policy sees each of its calls as one of that caller, and
// is asked whether it denies the engine the tool by name. A plugin that is not shipped, or was not granted the
// capability, calls as itself.
func TestProgramsCallAsTheirCaller(t *testing.T) {
	const asEngine = "plugin:js bound=false behind=true held=[]"
	granted := grant.Grant{Caller: true, Tools: []string{"target.echo"}}
	for _, tc := range []struct {
		name  string
		owner string
		grant grant.Grant
		call  host.Call
		want  []string
	}{
		{"the command line", host.OwnerShipped, granted, host.Call{Principal: cli},
			[]string{"cli bound=false behind=false held=[]", asEngine}},
		{"a client over the network", host.OwnerShipped, granted, host.Call{Principal: caller.Principal{Name: "mcp-http:a"}},
			[]string{"mcp-http:a bound=false behind=false held=[]", asEngine}},
		{"an unsigned plugin", host.OwnerUnsigned, granted, host.Call{Principal: cli},
			[]string{"plugin:js bound=false behind=false held=[target.echo]",
				"cli bound=false behind=false held=[]"}},
		{"without the right", host.OwnerShipped, grant.Grant{Tools: granted.Tools}, host.Call{Principal: cli},
			[]string{"plugin:js bound=false behind=false held=[target.echo]",
				"cli bound=false behind=true held=[]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var all []host.Ask
			engine := engineNamed(t, "js", "target.echo")
			engine.info.Owner = tc.owner
			records := &recorder{}
			h := newHost(t, call.Config{Recorder: records, Policy: policy(func(a host.Ask) (host.Decision, error) {
				all = append(all, a)
				d := host.Decision{Verdict: host.Allow}
				if a.Plugin == "js" {
					d.Grant = tc.grant
				}
				return d, nil
			})}, engine, newFake(t, shopNamed("target"), nil))
			tc.call.Name = "js.echo"
			if _, err := h.Call(t.Context(), tc.call); err != nil {
				t.Fatal(err)
			}
			if got := asked(all, "target"); !slices.Equal(got, tc.want) {
				t.Errorf("the policy was asked %q", got)
			}
			inner, outer := records.all()[0], records.all()[1]
			caller, _, _ := strings.Cut(tc.want[0], " ")
			if inner.Caller != caller || inner.Within != outer.CallID || inner.Tool != "target.echo" {
				t.Errorf("recorded %s by %s within %q", inner.Tool, inner.Caller, inner.Within)
			}
		})
	}
}

// TestProgramsOfPluginsHaveTheRightsOfAll: a program that a plugin runs has no right that the plugin, or its own
// caller, does not have, and it is narrowed to the effect of the plugin's tool.
func TestProgramsOfPluginsHaveTheRightsOfAll(t *testing.T) {
	for _, tc := range []struct {
		name   string
		held   []string
		outer  func(string) string
		denied string // a caller whom the policy denies the tool
		want   host.Code
	}{
		{"all", []string{"js.echo", "target.order.cancel"}, outerNamed, "", ""},
		{"not held by the plugin", []string{"js.echo"}, outerNamed, "", host.Denied},
		{"denied to its caller", []string{"js.echo", "target.order.cancel"}, outerNamed, "cli", host.Denied},
		{"denied to the engine", []string{"js.echo", "target.order.cancel"}, outerNamed, "plugin:js", host.Denied},
		{"more than the effect of the plugin's tool", []string{"js.echo", "target.order.cancel"}, shopNamed, "", host.Denied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			engine := newFake(t, shopNamed("js"), map[string]handler{
				"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
					return callTool(ctx, r, "target.order.cancel", json.RawMessage(`{"id":1}`), "")
				}})
			engine.info.Owner = host.OwnerShipped
			engine.manifest.Capabilities.Caller = &manifest.PlainCapability{}
			ran := false
			h := newHost(t, call.Config{Policy: policy(func(a host.Ask) (host.Decision, error) {
				d := host.Decision{Verdict: host.Allow}
				switch {
				case a.Plugin == "js":
					d.Grant.Caller = true
				case a.Plugin == "outer":
					d.Grant.Tools = tc.held
				case a.Principal.Name == tc.denied, a.Principal.Name == "plugin:outer" &&
					!slices.Contains(a.Principal.Tools, a.Plugin+"."+a.Tool):
					d.Verdict, d.Reason = host.Deny, "not for "+a.Principal.Name
				}
				return d, nil
			})}, engine,
				newFake(t, tc.outer("outer"), map[string]handler{"echo": callOther("js.echo")}),
				newFake(t, shopNamed("target"), map[string]handler{
					"order.cancel": func(context.Context, *host.Request) (*job.Result, error) {
						ran = true
						return &job.Result{Data: json.RawMessage(`{}`)}, nil
					}}))
			a := makeCall(t, h, "outer.echo", `{}`)
			if ran != (tc.want == "") {
				t.Errorf("it ran: %t, %v", ran, a.Err)
			}
			if tc.want != "" {
				failsWith(t, a, tc.want)
			}
		})
	}
}

// TestProgramsDoNotRunPrograms: neither directly nor by way of another plugin.
func TestProgramsDoNotRunPrograms(t *testing.T) {
	for _, first := range []string{"js.echo", "between.echo"} {
		calls := 0
		engine := engineNamed(t, "js", first)
		next := engine.handlers["echo"]
		engine.handlers["echo"] = func(ctx context.Context, r *host.Request) (*job.Result, error) {
			calls++
			return next(ctx, r)
		}
		h := newHost(t, call.Config{Policy: policy(func(host.Ask) (host.Decision, error) {
			return host.Decision{Verdict: host.Allow, Grant: grant.Grant{Caller: true, Tools: []string{"js.echo"}}}, nil
		})}, engine, newFake(t, shopNamed("between"), map[string]handler{"echo": callOther("js.echo")}))
		a := makeCall(t, h, "js.echo", `{}`)
		if e := failsWith(t, a, host.Denied); calls != 1 || !strings.Contains(e.Message, "cannot run another program") {
			t.Errorf("by %s: %d programs ran: %s", first, calls, e.Message)
		}
	}
}

// TestPendingCalls: calls for which a guest waits run at once, in bounds, and each has an outcome of its own.
func TestPendingCalls(t *testing.T) {
	var running atomic.Int32
	var once sync.Once
	together := make(chan struct{})
	target := newFake(t, shopNamed("target"), map[string]handler{
		"echo": func(ctx context.Context, _ *host.Request) (*job.Result, error) {
			n := running.Add(1)
			defer running.Add(-1)
			if n == 16 {
				once.Do(func() { close(together) })
			} else if n > 16 {
				t.Errorf("%d calls run at once", n)
			}
			select {
			case <-together: // sixteen run
			case <-time.After(20 * time.Second):
				t.Error("the calls do not run at once")
			}
			return &job.Result{Data: json.RawMessage(`{}`)}, nil
		}})
	var answers struct {
		Answers []struct {
			ID    int
			OK    bool
			Error *host.ErrorObject
		}
	}
	pending := []map[string]any{{"id": 0, "tool": "target.missing"}}
	for i := range 210 {
		pending = append(pending, map[string]any{"id": i + 1, "tool": "target.echo"})
	}
	engine := newFake(t, shopNamed("js"), map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			result, err := ask(ctx, r, job.AskTools, map[string]any{"pending": pending})
			if err != nil {
				return nil, err
			}
			return &job.Result{Data: json.RawMessage(`{}`)}, json.Unmarshal(result.Data, &answers)
		}})
	engine.info.Owner = host.OwnerShipped
	h := newHost(t, call.Config{Policy: policy(func(host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Allow, Grant: grant.Grant{Caller: true}}, nil
	})}, engine, target)
	if a := makeCall(t, h, "js.echo", `{}`); a.Err != nil {
		t.Fatal(a.Err)
	}
	failures := map[string]int{}
	for i, a := range answers.Answers {
		if a.ID != i {
			t.Fatalf("answer %d has the id %d", i, a.ID)
		}
		if !a.OK {
			failures[string(a.Error.Code)]++
		}
	}
	if len(answers.Answers) != 211 || failures["not_found"] != 1 || failures["limit_exceeded"] != 11 {
		t.Errorf("%d answers, failures %v", len(answers.Answers), failures)
	}
}
