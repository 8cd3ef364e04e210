package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
)

// keeper keeps approvals of calls with the same parameters, and their answers.
type keeper struct{ kept []*approval.Approval }

func (*keeper) Approve(context.Context, *approval.Approval) (approval.Reply, error) {
	panic("a person is asked while nothing waits")
}

func (k *keeper) same(a *approval.Approval) *approval.Approval {
	for _, other := range slices.Backward(k.kept) {
		if other.Kind == a.Kind && other.Tool == a.Tool && string(other.Exact) == string(a.Exact) &&
			(a.Rights == nil || fmt.Sprint(a.Rights) == fmt.Sprint(other.Rights)) {
			return other
		}
	}
	return nil
}

func (k *keeper) Open(a *approval.Approval) error {
	if other := k.same(a); other != nil && other.Answered == nil {
		a.ID = other.ID
		return nil
	}
	k.kept = append(k.kept, a)
	return nil
}

func (k *keeper) Known(a *approval.Approval) (reply approval.Reply, err error) {
	if other := k.same(a); other != nil && other.Answered != nil {
		reply, a.ID, a.Rights = *other.Answered, other.ID, other.Rights
		other.Exact = nil // it counts once
	}
	return reply, nil
}

func (k *keeper) find(id string) *approval.Approval {
	at := slices.IndexFunc(k.kept, func(a *approval.Approval) bool { return a.ID == id })
	if at < 0 {
		return &approval.Approval{}
	}
	return k.kept[at]
}

// TestAskAfterwards denies a call rights that it can begin without. Those that a person can allow become an approval,
// and its answer is for the same call, made again.
func TestAskAfterwards(t *testing.T) {
	const api, cdn = "http:GET:https://api.test", "http:GET:https://cdn.test"
	text := strings.Replace(shop, `"clock": {}`, `"http": [{"url": "https://api.test", "optional": true},
		{"url": "https://cdn.test", "optional": true}]`, 1)
	grants := func(ask host.Ask) (d host.Decision, err error) {
		d.Verdict = host.Allow
		for _, right := range []string{api, cdn} { // what the manifest requests: others have no effect
			if slices.Contains(ask.Allowed, right) {
				d.Grant.HTTP = append(d.Grant.HTTP, grant.HTTP{URL: strings.TrimPrefix(right, "http:GET:")})
			}
		}
		return d, nil
	}
	uses := func(rights ...string) handler {
		return func(_ context.Context, r *host.Request) (*job.Result, error) {
			for _, right := range rights {
				if !slices.Contains(r.Grant.Names(), right) {
					return nil, &host.Error{Code: host.Denied, Message: "not granted: " + right,
						Denied: []grant.Denial{{Right: right, Why: "no grant"}}}
				}
			}
			return &job.Result{Data: json.RawMessage(`{}`)}, nil
		}
	}
	f := newFake(t, text, map[string]handler{"echo": uses(api, cdn), "add": uses("http:GET:https://evil.test")})
	people := &keeper{}
	h := newHost(t, call.Config{Policy: policy(grants), Approver: people}, f)
	claude := caller.Principal{Name: "mcp:claude", Session: caller.Session{Name: "s1"}}
	run := func(tool, params string) *host.Answer {
		a, _ := h.Call(t.Context(), host.Call{Name: "shop." + tool, Params: json.RawMessage(params), Principal: claude})
		return a
	}
	refused := func(a *host.Answer, rights ...string) *approval.Approval {
		t.Helper()
		e := failsWith(t, a, host.Denied)
		open := people.find(e.Approval)
		if open.Kind != approval.ForRight || open.Tool != "shop.echo" || open.Reason == "" || a.Approval != e.Approval {
			t.Fatalf("%s: %+v", e.Message, open)
		}
		if got := fmt.Sprint(open.Rights); got != fmt.Sprint(denials(rights...)) && len(rights) > 0 {
			t.Errorf("it asks for %s, want %q", got, rights)
		}
		if !strings.Contains(e.Message, "call again once a person has allowed it") || !slices.ContainsFunc(e.Steps,
			func(s step.Step) bool { return s.Op == step.OpCall && s.Tool == "shop.echo" }) {
			t.Errorf("%s, %v", e.Message, e.Steps)
		}
		return open
	}
	answer := func(id string, as approval.Reply) { people.find(id).Answered = &as }
	once := approval.Reply{Answer: approval.Once, By: approval.ByTerminal}

	first := refused(run("echo", `{"a":1}`), api)
	if again := refused(run("echo", `{"a":1}`)); again.ID != first.ID {
		t.Error("the same call opens a second approval")
	}
	answer(first.ID, once)
	if other := refused(run("echo", `{"a":2}`)); other.ID == first.ID {
		t.Error("an answer counts for other parameters")
	}
	second := refused(run("echo", `{"a":1}`), api, cdn) // all that the call lacks, as an answer counts one time
	answer(second.ID, once)
	if a := run("echo", `{"a":1}`); a.Err != nil || a.Approval != second.ID {
		t.Errorf("%v, approval %s", a.Err, a.Approval)
	}
	third := refused(run("echo", `{"a":1}`), api)
	answer(third.ID, approval.Reply{Answer: approval.Deny, Word: "use the cache"})
	e := failsWith(t, run("echo", `{"a":1}`), host.Denied)
	if e.Approval != "" || !strings.Contains(e.Message, "a person has not allowed "+api+" (use the cache)") {
		t.Errorf("after a denial: %s, approval %q", e.Message, e.Approval)
	}
	if e := failsWith(t, run("add", `{"title":"tea"}`), host.Denied); e.Approval != "" {
		t.Errorf("no grant gives what the manifest does not request: %s", e.Message)
	}
}

// denials are those of rights, without a reason of the policy.
func denials(rights ...string) (all []grant.Denial) {
	for _, right := range rights {
		all = append(all, grant.Denial{Right: right, Why: "no grant"})
	}
	return all
}
