package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
)

// approver gives the same answer to every question.
type approver struct {
	answer host.Approval
	err    error
	asked  []*host.Question
}

func (a *approver) Approve(_ context.Context, q *host.Question) (host.Approval, error) {
	a.asked = append(a.asked, q)
	return a.answer, a.err
}

// confirmAll is a policy that requires confirmation of every call.
var confirmAll = policy(func(host.Ask) (host.Decision, error) {
	return host.Decision{Verdict: host.Confirm, Reason: "it is destructive"}, nil
})

// TestConfirm checks the outcome of each answer to a question, and its record.
func TestConfirm(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer host.Approval
		err    error
		code   host.Code
		text   string
		by     string
	}{
		{name: "yes", answer: host.Approval{Yes: true, By: host.ByTerminal}, by: "terminal"},
		{name: "yes over MCP", answer: host.Approval{Yes: true, By: host.ByMCP}, by: "mcp"},
		{name: "no", answer: host.Approval{By: host.ByTerminal}, code: host.Denied,
			text: "shop.echo was not confirmed; nothing was run", by: "terminal"},
		{name: "no answer", code: host.Denied, text: "was not confirmed"},
		{name: "nobody to ask", err: host.NoApproverError("the line is dead"), code: host.Denied,
			text: "shop.echo requires confirmation (it is destructive), and the line is dead; nothing was run", by: "policy"},
		{name: "broken", answer: host.Approval{Yes: true}, err: host.Errorf(host.Unavailable, "no line"),
			code: host.Unavailable, text: "no line"},
		{name: "yes to an earlier question", answer: host.Approval{Yes: true, By: host.ByMCP, Question: "q1"}, by: "mcp"},
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
			id := q.ID
			if tc.answer.Question != "" {
				id = tc.answer.Question
			}
			if begin := audit.all()[0]; tc.code == "" && (begin.Op != "begin" || begin.Question != id) {
				t.Errorf("the audit begins with %q, question %q", begin.Op, begin.Question)
			}
			if e := rec.last(t); e.By != tc.by || e.Question != id || a.Question != id {
				t.Errorf("recorded by %q question %q, answered %q, expected %q and %q", e.By, e.Question, a.Question, tc.by, id)
			}
			if q.Kind != host.AskConfirm || q.Reason != "it is destructive" || q.Ask.Principal.Name != "cli" ||
				q.Rights != nil ||
				!strings.HasPrefix(q.ID, "q") {
				t.Errorf("the question is %+v", q)
			}
		})
	}
	t.Run("without an approver", func(t *testing.T) {
		rec := &recorder{}
		h := newHost(t, call.Config{Policy: confirmAll, Recorder: rec}, newFake(t, shop, nil))
		e := failsWith(t, makeCall(t, h, "shop.echo", "{}"), host.Denied)
		if !strings.Contains(e.Message, "nobody can be asked") || !hasStep(e.Steps, "policy explain shop.echo") {
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
		if e := rec.last(t); e.By != "policy" || e.Question != "" {
			t.Errorf("%v: by %q, question %q", v, e.By, e.Question)
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
		Approver: host.ApproverFunc(func(_ context.Context, q *host.Question) (host.Approval, error) {
			confirmed = string(q.Params)
			copy(q.Params, `{"title":"other"`)
			return host.Approval{Yes: true}, nil
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
		Approver: host.ApproverFunc(func(ctx context.Context, _ *host.Question) (host.Approval, error) {
			cancel()
			<-ctx.Done()
			return host.Approval{}, ctx.Err()
		}),
	}, newFake(t, shop, nil))
	ended, _ := h.Call(ctx, host.Call{Name: "shop.echo", Principal: cli})
	failsWith(t, ended, host.Interrupted)
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
									return host.Decision{Verdict: host.Allow, Grant: host.Grant{Tools: []string{"shop.*"}}}, nil
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
							inner, person := newFake(t, shop, nil), &approver{answer: host.Approval{Yes: yes, By: host.ByTerminal}}
							h := newHost(t, call.Config{Policy: rules, Approver: person},
								newFake(t, outerNamed("first"), map[string]handler{
									"echo": func(ctx context.Context, r *host.Request) (*host.Result, error) {
										return callTool(ctx, r, "shop."+tool, json.RawMessage(params[tool]), "")
									}}), inner)
							a, _ := h.Call(t.Context(), host.Call{Name: "first.echo", Principal: host.Principal{Name: outer.caller}})

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
							if q.Ask.Principal.Name != about || q.Reason != "confirm "+about || q.Within != a.CallID {
								t.Errorf("the question is %+v", q)
							}
							if runs && string(q.Params) != string(inner.requests()[0].Params) {
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
func needing(missing []host.Denial, allowable bool, verdict host.Verdict) policy {
	return func(a host.Ask) (host.Decision, error) {
		d := host.Decision{Verdict: verdict, Reason: "it is destructive", Allowable: allowable,
			Grant: host.Grant{Tools: []string{"shop.*"}}}
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
			d.Steps = append(d.Steps, host.OperatorStep(host.OpPolicyGrant, a.Plugin, m.Right))
		}
		return d, nil
	}
}

// TestMissingRight checks that a missing right becomes a question for the person who runs the program and for
// nobody else, that yes applies to one call, and that other callers get an error with the right to ask for.
func TestMissingRight(t *testing.T) {
	clock := []host.Denial{{Right: "clock", Why: "the time"}}
	both := append(clock, host.Denial{Right: "random"})
	yes := host.Approval{Yes: true, By: host.ByTerminal}
	for _, tc := range []struct {
		name     string
		call     host.Call
		missing  []host.Denial
		never    bool // no grant can give it
		confirm  bool // the policy also requires confirmation
		denied   bool // the policy denies the call
		answer   host.Approval
		err      error
		asked    bool
		fails    bool
		text, by string
	}{
		{name: "yes", call: host.Call{Principal: cli}, missing: clock, answer: yes, asked: true, by: "terminal"},
		{name: "yes to both", call: host.Call{Principal: cli}, missing: both, answer: yes, asked: true, by: "terminal"},
		{name: "yes to one of two", call: host.Call{Principal: cli}, missing: both,
			answer: host.Approval{Yes: true, By: host.ByTerminal, Rights: []string{"clock"}}, asked: true, fails: true,
			text: "shop needs rights that are not granted: random; nothing was run", by: "policy"},
		{name: "no", call: host.Call{Principal: cli}, missing: clock, answer: host.Approval{By: host.ByTerminal}, asked: true,
			fails: true, text: "were not allowed for this call: clock; nothing was run", by: "terminal"},
		{name: "no terminal", call: host.Call{Principal: cli}, missing: clock, err: host.NoApproverError("no terminal"),
			asked: true,
			fails: true, text: "shop needs rights that are not granted: clock; nothing was run", by: "policy"},
		{name: "one question with the confirmation", call: host.Call{Principal: cli}, missing: clock, confirm: true,
			answer: yes, asked: true, by: "terminal"},
		{name: "denied by a rule", call: host.Call{Principal: cli}, missing: clock, denied: true, answer: yes,
			fails: true, text: "cli may not call shop.echo", by: "policy"},
		{name: "beyond any grant", call: host.Call{Principal: cli}, missing: clock, never: true, answer: yes, fails: true,
			text: "not granted: clock; nothing was run", by: "policy"},
		{name: "dry run", call: host.Call{Principal: cli, Options: host.Options{DryRun: true}}, missing: clock, answer: yes,
			fails: true, text: "not granted: clock; nothing was run", by: "policy"},
		{name: "over MCP", call: host.Call{Principal: host.Principal{Name: "mcp:claude"}}, missing: clock, answer: yes,
			fails: true,
			text:  "shop needs rights that are not granted: clock; ask the operator to grant them to shop; nothing was run",
			by:    "policy"},
		{name: "over the network", call: host.Call{Principal: host.Principal{Name: "mcp-http:claude"}}, missing: clock,
			answer: yes, fails: true,
			text: "ask the operator to grant them to shop", by: "policy"},
		{name: "a plugin for the operator", call: host.Call{Name: "first.echo", Principal: cli}, missing: clock, answer: yes,
			asked: true, by: "policy"},
		{name: "a plugin for an MCP client", call: host.Call{Name: "first.echo",
			Principal: host.Principal{Name: "mcp:claude"}}, missing: clock,
			answer: yes, fails: true, text: "ask the operator", by: "policy"},
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
			if q.Kind != host.AskRight || fmt.Sprint(q.Rights) != fmt.Sprint(tc.missing) ||
				(q.Reason != "") != tc.confirm {
				t.Errorf("the question is %+v", q)
			}
			if len(person.asked) > 1 {
				t.Errorf("asked %d times", len(person.asked))
			}
			if tc.fails {
				return
			}
			person.answer = host.Approval{} // the next call does not have the right
			a, _ = h.Call(t.Context(), tc.call)
			failsWith(t, a, host.Denied)
		})
	}
}

// TestPolicyChangedWhileAsking checks that a call does not run if, after the answer, the policy requires more than the
// question asked for.
func TestPolicyChangedWhileAsking(t *testing.T) {
	clock := []host.Denial{{Right: "clock"}}
	for name, after := range map[string]policy{
		"denied":          func(host.Ask) (host.Decision, error) { return host.Decision{}, nil },
		"another right":   needing(append(clock, host.Denial{Right: "random"}), true, host.Allow),
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
				Approver: host.ApproverFunc(func(context.Context, *host.Question) (host.Approval, error) {
					rules = after
					return host.Approval{Yes: true, By: host.ByTerminal}, nil
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

func (confirming) needsConfirmation(r *host.Job) string {
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
		ask := func(_ context.Context, q *host.Question) (host.Approval, error) {
			asked = q.Reason
			return host.Approval{}, nil
		}
		h := newHost(t, call.Config{Approver: host.ApproverFunc(ask)}, confirming{f})
		_, err := h.Call(t.Context(), host.Call{Name: "shop.add", Principal: host.Principal{Name: c.caller,
			Session: host.Session{Name: "work"}},
			Params: []byte(c.params)})
		denied, rightReason := errors.Is(err, host.Denied), asked == "it is of session work"
		if denied != c.asks || rightReason != c.asks || (len(f.requests()) == 0) != c.asks {
			t.Errorf("%+v: %v, asked %q", c, err, asked)
		}
	}
}
