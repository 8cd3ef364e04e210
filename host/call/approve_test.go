package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
)

// approver gives the same answer to every question.
type approver struct {
	answer approval.Reply
	err    error
	asked  []*approval.Approval
}

func (a *approver) Approve(_ context.Context, q *approval.Approval) (approval.Reply, error) {
	q.ID, q.Expires = "a1", time.Now()
	a.asked = append(a.asked, q)
	return a.answer, a.err
}

// yesOrNo are the answers of a person at a terminal.
var yesOrNo = map[bool]approval.Reply{true: {Answer: approval.Once, By: approval.ByTerminal},
	false: {Answer: approval.Deny, By: approval.ByTerminal}}

// confirmAll is a policy that requires confirmation of every call.
var confirmAll = policy(func(host.Ask) (host.Decision, error) {
	return host.Decision{Verdict: host.Confirm, Reason: "it is destructive"}, nil
})

// TestConfirm checks the outcome of each answer to a question, and its record.
func TestConfirm(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer approval.Reply
		err    error
		code   host.Code
		text   string
		by     string
	}{
		{name: "yes", answer: approval.Reply{Answer: approval.Once, By: approval.ByTerminal}, by: "terminal"},
		{name: "yes over MCP", answer: approval.Reply{Answer: approval.Once, By: approval.ByMCP}, by: "mcp"},
		{name: "no", answer: approval.Reply{Answer: approval.Deny, By: approval.ByTerminal}, code: host.Denied,
			text: "shop.echo was not confirmed; nothing was run", by: "terminal"},
		{name: "no, with a word", answer: approval.Reply{Answer: approval.Deny, By: approval.ByTerminal, Word: "not today"},
			code: host.Denied, text: "shop.echo was not confirmed (not today); nothing was run", by: "terminal"},
		{name: "no answer", answer: approval.Reply{Nobody: "nobody answered within 1s"}, code: host.Denied,
			text: "shop.echo requires confirmation (it is destructive), and nobody answered within 1s; nothing was run; " +
				"approval a1 is open until ", by: "policy"},
		{name: "nobody to ask", err: approval.NoApproverError("the line is dead"), code: host.Denied,
			text: "shop.echo requires confirmation (it is destructive), and the line is dead; nothing was run", by: "policy"},
		{name: "broken", answer: approval.Reply{Answer: approval.Once}, err: host.Errorf(host.Unavailable, "no line"),
			code: host.Unavailable, text: "no line"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, rec, person := newFake(t, shop, nil), &recorder{}, &approver{answer: tc.answer, err: tc.err}
			audit := &auditor{}
			h := newHost(t, call.Config{Policy: confirmAll, Approver: person, Recorder: rec, Audit: audit}, f)
			a := makeCall(t, h, "shop.echo", `{"b":1,"a":"<>"}`)
			if tc.code == "" && a.Err != nil {
				t.Fatal(a.Err)
			}
			if tc.code != "" && !strings.Contains(failsWith(t, a, tc.code).Message, tc.text) {
				t.Errorf("got %q, expected %q", a.Err.Message, tc.text)
			}
			if ran := len(f.requests()); (ran == 1) != (tc.code == "") {
				t.Errorf("the tool ran %d times", ran)
			}
			q := person.asked[0]
			if begin := audit.all()[0]; tc.code == "" && (begin.Op != "begin" || begin.Approval != "a1") {
				t.Errorf("the audit begins with %q, approval %q", begin.Op, begin.Approval)
			}
			if e := rec.last(t); e.By != tc.by || e.Approval != "a1" || a.Approval != "a1" {
				t.Errorf("recorded by %q approval %q, answered %q, expected by %q", e.By, e.Approval, a.Approval, tc.by)
			}
			waits := tc.answer.Nobody != "" || tc.err != nil && tc.by == "policy"
			if waits != (a.Err != nil && a.Err.Approval == "a1") {
				t.Errorf("waits for %+v", a.Err)
			} else if waits && (len(a.Err.Steps) < 2 || a.Err.Steps[0].Op != step.OpApprovalsAllow ||
				a.Err.Steps[1].Op != step.OpCall || a.Err.Steps[1].Tool != "shop.echo") {
				t.Errorf("the steps are %+v", a.Err.Steps)
			}
			if q.Kind != approval.ForCall || q.Reason != "it is destructive" || q.Principal != "cli" || q.Tool != "shop.echo" ||
				q.Rights != nil || q.Key != "user/" {
				t.Errorf("the question is %+v", q)
			}
		})
	}
	t.Run("without an approver", func(t *testing.T) {
		rec := &recorder{}
		h := newHost(t, call.Config{Policy: confirmAll, Recorder: rec}, newFake(t, shop, nil))
		e := failsWith(t, makeCall(t, h, "shop.echo", "{}"), host.Denied)
		if !strings.Contains(e.Message, "there is nobody to ask") || !hasStep(e.Steps, "policy explain shop.echo") {
			t.Errorf("%s, %v", e.Message, e.Steps)
		}
		if rec.last(t).By != "policy" {
			t.Errorf("recorded %+v", rec.last(t))
		}
	})
}

// TestByPolicy checks that a call without a question is recorded as decided by the policy, and one that the
// policy did not evaluate as decided by nobody.
func TestByPolicy(t *testing.T) {
	rec, verdict := &recorder{}, host.Allow
	h := newHost(t, call.Config{Recorder: rec, Policy: policy(func(host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: verdict}, nil
	})}, newFake(t, shop, nil))
	for _, v := range []host.Verdict{host.Allow, host.Deny} {
		verdict = v
		makeCall(t, h, "shop.echo", "{}")
		if e := rec.last(t); e.By != "policy" || e.Approval != "" {
			t.Errorf("%v: by %q, approval %q", v, e.By, e.Approval)
		}
	}
	makeCall(t, h, "shop.add", "{}")
	if e := rec.last(t); e.By != "" {
		t.Errorf("invalid parameters: by %q", e.By)
	}
}

// TestConfirmedIsWhatRuns checks that the tool gets exactly the parameters that were confirmed, even if the
// approver modifies its copy.
func TestConfirmedIsWhatRuns(t *testing.T) {
	f := newFake(t, shop, nil)
	var confirmed string
	h := newHost(t, call.Config{Policy: confirmAll,
		Approver: approval.ApproverFunc(func(_ context.Context, q *approval.Approval) (approval.Reply, error) {
			confirmed = string(q.Exact)
			copy(q.Exact, `{"title":"other"`)
			return approval.Reply{Answer: approval.Once}, nil
		})}, f)
	for tool, params := range map[string]string{
		"add": `{ "count":"4", "title":"<tea> \u00e9" }`, "echo": `{"b":1.50,"a":{"z":null}}`, "order.cancel": `{"id":7}`,
	} {
		if a := makeCall(t, h, "shop."+tool, params); a.Err != nil {
			t.Fatal(a.Err)
		}
		requests := f.requests()
		if ran := string(requests[len(requests)-1].Params); ran != confirmed || strings.Contains(ran, "other") {
			t.Errorf("%s: confirmed %s, ran %s", tool, confirmed, ran)
		}
	}
}

// TestInterruptedWhileAsking checks that Ctrl-C during a question is an interruption, not a failure.
func TestInterruptedWhileAsking(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := newHost(t, call.Config{
		Policy: confirmAll,
		Approver: approval.ApproverFunc(func(ctx context.Context, _ *approval.Approval) (approval.Reply, error) {
			cancel()
			<-ctx.Done()
			return approval.Reply{}, ctx.Err()
		}),
	}, newFake(t, shop, nil))
	ended, _ := h.Call(ctx, host.Call{Name: "shop.echo", Principal: cli})
	failsWith(t, ended, host.Interrupted)
}

// TestWaitingDoesNotCount checks that the time that a person takes to approve a plugin's call does not count as that of
// the plugin, and that the rest does.
func TestWaitingDoesNotCount(t *testing.T) {
	const timeout = 300 * time.Millisecond
	for _, waitsBy := range []string{"asking", "itself"} {
		outer := func(ctx context.Context, r *host.Request) (*job.Result, error) {
			if waitsBy == "itself" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return callTool(ctx, r, "shop.echo", json.RawMessage(`{}`), "")
		}
		h := newHost(t, call.Config{
			Policy: policy(func(a host.Ask) (host.Decision, error) {
				d := host.Decision{Verdict: host.Allow, Reason: "a rule", Grant: grant.Grant{Tools: []string{"shop.*"}}}
				if a.Plugin == "shop" {
					d.Verdict = host.Confirm
				}
				return d, nil
			}),
			Approver: approval.ApproverFunc(func(ctx context.Context, _ *approval.Approval) (approval.Reply, error) {
				select {
				case <-time.After(2 * timeout):
					return yesOrNo[true], nil
				case <-ctx.Done():
					return approval.Reply{}, ctx.Err()
				}
			}),
		}, newFake(t, outerNamed("first"), map[string]handler{"echo": outer}), newFake(t, shop, nil))
		a, _ := h.Call(t.Context(), host.Call{Name: "first.echo", Principal: cli, Options: job.Options{Timeout: timeout}})
		if waitsBy == "asking" && a.Err != nil {
			t.Errorf("while a person was asked: %v", a.Err)
		} else if waitsBy == "itself" {
			failsWith(t, a, host.Timeout)
		}
	}
}

// TestNestedVerdicts checks each combination of verdicts for the caller and for the plugin that calls on its behalf,
// with each effect: the stricter verdict applies, and a question names the caller that it is about and the parameters
// that run.
func TestNestedVerdicts(t *testing.T) {
	verdicts := map[string]host.Verdict{"allow": host.Allow, "confirm": host.Confirm, "deny": host.Deny}
	strictness := []string{"allow", "confirm", "deny"}
	tools := map[string]string{"echo": "read", "add": "write", "order.cancel": "destructive"}
	params := map[string]string{"echo": `{}`, "add": `{"title":"tea"}`, "order.cancel": `{"id":7}`}
	for _, outer := range []struct {
		caller string
	}{{"cli"}, {"mcp:claude"}, {"mcp-http:claude"}} {
		for _, byOuter := range strictness {
			for _, byPlugin := range strictness {
				for tool, effect := range tools {
					for _, yes := range []bool{true, false} {
						name := fmt.Sprintf("%s %s, plugin %s, %s, answer %v",
							outer.caller, byOuter, byPlugin, effect, yes)
						t.Run(name, func(t *testing.T) {
							rules := policy(func(a host.Ask) (host.Decision, error) {
								if a.Plugin == "first" {
									return host.Decision{Verdict: host.Allow, Grant: grant.Grant{Tools: []string{"shop.*"}}}, nil
								}
								if a.Effect != effect || a.Plugin+"."+a.Tool != "shop."+tool {
									t.Errorf("asked about %+v", a)
								}
								verdict := byPlugin
								if a.Principal.Name == outer.caller {
									verdict = byOuter
								}
								return host.Decision{Verdict: verdicts[verdict], Reason: verdict + " " + a.Principal.Name}, nil
							})
							inner, person := newFake(t, shop, nil), &approver{answer: yesOrNo[yes]}
							h := newHost(t, call.Config{Policy: rules, Approver: person},
								newFake(t, outerNamed("first"), map[string]handler{
									"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
										return callTool(ctx, r, "shop."+tool, json.RawMessage(params[tool]), "")
									}}), inner)
							a, _ := h.Call(t.Context(), host.Call{Name: "first.echo", Principal: caller.Principal{Name: outer.caller}})

							stricter := max(slices.Index(strictness, byOuter), slices.Index(strictness, byPlugin))
							asked, runs := stricter == 1, stricter == 0 || stricter == 1 && yes
							if len(person.asked) > 0 != asked || (len(inner.requests()) == 1) != runs || (a.Err == nil) != runs {
								t.Fatalf("asked %d times, ran %d times: %v", len(person.asked), len(inner.requests()), a.Err)
							}
							if !asked {
								return
							}
							about := outer.caller
							if byPlugin == "confirm" {
								about = "plugin:first"
							}
							q := person.asked[0]
							if q.Principal != about || q.Reason != "confirm "+about || q.Within != a.CallID {
								t.Errorf("the question is %+v", q)
							}
							if runs && string(q.Exact) != string(inner.requests()[0].Params) {
								t.Errorf("confirmed %s, ran %s", q.Params, inner.requests()[0].Params)
							}
						})
					}
				}
			}
		}
	}
}

// needing returns a policy that reports the rights in missing, except those that are allowed for the call.
func needing(missing []grant.Denial, allowable bool, verdict host.Verdict) policy {
	return func(a host.Ask) (host.Decision, error) {
		d := host.Decision{Verdict: verdict, Reason: "it is destructive", Allowable: allowable,
			Grant: grant.Grant{Tools: []string{"shop.*"}}}
		if a.Plugin != "shop" || a.Principal.Name != "cli" && !strings.HasPrefix(a.Principal.Name, "mcp") &&
			a.Principal.Name != "plugin:first" {
			d.Verdict = host.Allow
			return d, nil
		}
		for _, m := range missing {
			if slices.Contains(a.Allowed, m.Right) {
				d.Grant.Clock = true
				continue
			}
			d.Missing = append(d.Missing, m)
			d.Steps = append(d.Steps, step.Operator(step.OpPolicyGrant, a.Plugin, m.Right))
		}
		return d, nil
	}
}

// TestMissingRight checks that a missing right becomes an approval, whoever calls, that yes applies to one call, and
// that an error names the right to ask for.
func TestMissingRight(t *testing.T) {
	clock := []grant.Denial{{Right: "clock", Why: "the time"}}
	both := append(clock, grant.Denial{Right: "random"})
	yes := approval.Reply{Answer: approval.Once, By: approval.ByTerminal}
	for _, tc := range []struct {
		name     string
		call     host.Call
		missing  []grant.Denial
		never    bool // no grant can give it
		confirm  bool // the policy also requires confirmation
		denied   bool // the policy denies the call
		answer   approval.Reply
		err      error
		asked    bool
		fails    bool
		text, by string
	}{
		{name: "yes", call: host.Call{Principal: cli}, missing: clock, answer: yes, asked: true, by: "terminal"},
		{name: "yes to both", call: host.Call{Principal: cli}, missing: both, answer: yes, asked: true, by: "terminal"},
		{name: "yes to one of two", call: host.Call{Principal: cli}, missing: both,
			answer: approval.Reply{Answer: approval.Once, By: approval.ByTerminal, Rights: []string{"clock"}}, asked: true,
			fails: true, text: "shop needs rights that are not granted: random; nothing was run", by: "policy"},
		{name: "no", call: host.Call{Principal: cli}, missing: clock, asked: true, fails: true,
			answer: approval.Reply{Answer: approval.Deny, By: approval.ByTerminal}, by: "terminal",
			text: "were not allowed: clock; nothing was run"},
		{name: "no terminal", call: host.Call{Principal: cli}, missing: clock, err: approval.NoApproverError("no terminal"),
			asked: true,
			fails: true, text: "shop needs rights that are not granted: clock; nothing was run", by: "policy"},
		{name: "one question with the confirmation", call: host.Call{Principal: cli}, missing: clock, confirm: true,
			answer: yes, asked: true, by: "terminal"},
		{name: "denied by a rule", call: host.Call{Principal: cli}, missing: clock, denied: true, answer: yes,
			fails: true, text: "cli may not call shop.echo", by: "policy"},
		{name: "beyond any grant", call: host.Call{Principal: cli}, missing: clock, never: true, answer: yes, fails: true,
			text: "not granted: clock; nothing was run", by: "policy"},
		{name: "dry run", call: host.Call{Principal: cli, Options: job.Options{DryRun: true}}, missing: clock, answer: yes,
			fails: true, text: "not granted: clock; nothing was run", by: "policy"},
		{name: "over MCP", call: host.Call{Principal: caller.Principal{Name: "mcp:claude"}}, missing: clock, answer: yes,
			asked: true, by: "terminal"},
		{name: "over MCP, nobody answers", call: host.Call{Principal: caller.Principal{Name: "mcp:claude"}}, missing: clock,
			asked: true, fails: true, by: "policy",
			text: "shop needs rights that are not granted: clock; ask the operator to grant them to shop; nothing was run"},
		{name: "over the network", call: host.Call{Principal: caller.Principal{Name: "mcp-http:claude"}}, missing: clock,
			asked: true, fails: true, text: "ask the operator to grant them to shop", by: "policy"},
		{name: "a plugin for the operator", call: host.Call{Name: "first.echo", Principal: cli}, missing: clock, answer: yes,
			asked: true, by: "policy"},
		{name: "a plugin for an MCP client", call: host.Call{Name: "first.echo",
			Principal: caller.Principal{Name: "mcp:claude"}}, missing: clock,
			answer: yes, asked: true, by: "policy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.call.Name == "" {
				tc.call.Name = "shop.echo"
			}
			verdict := host.Allow
			if tc.confirm {
				verdict = host.Confirm
			} else if tc.denied {
				verdict = host.Deny
			}
			f, rec, person := newFake(t, shop, nil), &recorder{}, &approver{answer: tc.answer, err: tc.err}
			h := newHost(t, call.Config{Policy: needing(tc.missing, !tc.never, verdict), Approver: person, Recorder: rec},
				newFake(t, outerNamed("first"), map[string]handler{"echo": callOther("shop.echo")}), f)
			a, _ := h.Call(t.Context(), tc.call)
			if tc.fails {
				e := failsWith(t, a, host.Denied)
				if !strings.Contains(e.Message, tc.text) || !tc.denied && len(e.Denied) == 0 {
					t.Errorf("got %q, denied %v, expected %q", e.Message, e.Denied, tc.text)
				}
				if len(f.requests()) > 0 {
					t.Error("the tool ran")
				}
			} else if a.Err != nil || len(f.requests()) != 1 || !f.requests()[0].Grant.Clock {
				t.Errorf("%v; ran with %+v", a.Err, f.requests())
			}
			if len(person.asked) > 0 != tc.asked {
				t.Fatalf("asked %d times", len(person.asked))
			}
			if e := rec.last(t); e.By != tc.by {
				t.Errorf("recorded by %q", e.By)
			}
			if !tc.asked {
				return
			}
			q := person.asked[0]
			if q.Kind != approval.ForRight || fmt.Sprint(q.Rights) != fmt.Sprint(tc.missing) ||
				(q.Reason != "") != tc.confirm {
				t.Errorf("the question is %+v", q)
			}
			if len(person.asked) > 1 {
				t.Errorf("asked %d times", len(person.asked))
			}
			if tc.fails {
				return
			}
			person.answer = approval.Reply{} // the next call does not have the right
			a, _ = h.Call(t.Context(), tc.call)
			failsWith(t, a, host.Denied)
		})
	}
}

// TestPolicyChangedWhileAsking checks that a call does not run if, after the answer, the policy requires more than the
// question asked for.
func TestPolicyChangedWhileAsking(t *testing.T) {
	clock := []grant.Denial{{Right: "clock"}}
	for name, after := range map[string]policy{
		"denied":          func(host.Ask) (host.Decision, error) { return host.Decision{}, nil },
		"another right":   needing(append(clock, grant.Denial{Right: "random"}), true, host.Allow),
		"to be confirmed": needing(clock, true, host.Confirm),
		"cannot be decided": func(host.Ask) (host.Decision, error) {
			return host.Decision{}, host.Errorf(host.Denied, "broken")
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules := needing(clock, true, host.Allow)
			f := newFake(t, shop, nil)
			h := newHost(t, call.Config{
				Policy: policy(func(a host.Ask) (host.Decision, error) { return rules(a) }),
				Approver: approval.ApproverFunc(func(context.Context, *approval.Approval) (approval.Reply, error) {
					rules = after
					return approval.Reply{Answer: approval.Once, By: approval.ByTerminal}, nil
				}),
			}, f)
			a := makeCall(t, h, "shop.echo", "{}")
			failsWith(t, a, host.Denied)
			if len(f.requests()) > 0 || !errors.Is(a.Err, host.Denied) {
				t.Errorf("the tool ran: %v", a.Err)
			}
		})
	}
}

// confirming is a provider that wants some calls to be confirmed.
type confirming struct{ *fake }

func (c confirming) Features() host.Features {
	return host.Features{NeedsConfirmation: c.needsConfirmation}
}

func (confirming) needsConfirmation(r *job.Job) string {
	if r.Tool == "add" && strings.Contains(string(r.Params), "login") {
		return "it is of session " + r.Session.Name
	}
	return ""
}

// TestProviderNeedsConfirmation checks that a provider can want a call to be confirmed that the policy allows, except a
// call of the command line itself.
func TestProviderNeedsConfirmation(t *testing.T) {
	for _, c := range []struct {
		caller string
		params string
		asks   bool
	}{
		{"mcp:some", `{"title":"login"}`, true},
		{"mcp:some", `{"title":"tea"}`, false},
		{"cli", `{"title":"login"}`, false},
		{"mcp-http:some", `{"title":"login"}`, true},
	} {
		f := newFake(t, shop, nil)
		asked := ""
		ask := func(_ context.Context, q *approval.Approval) (approval.Reply, error) {
			asked = q.Reason
			return approval.Reply{}, nil
		}
		h := newHost(t, call.Config{Approver: approval.ApproverFunc(ask)}, confirming{f})
		_, err := h.Call(t.Context(), host.Call{Name: "shop.add", Principal: caller.Principal{Name: c.caller,
			Session: caller.Session{Name: "work"}},
			Params: []byte(c.params)})
		denied, rightReason := errors.Is(err, host.Denied), asked == "it is of session work"
		if denied != c.asks || rightReason != c.asks || (len(f.requests()) == 0) != c.asks {
			t.Errorf("%+v: %v, asked %q", c, err, asked)
		}
	}
}
