package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// TestOnlyAcceptIsYes checks each reply that a client can send, and who decided according to the record.
func TestOnlyAcceptIsYes(t *testing.T) {
	const cancel = `{"name":"shop.order.cancel","arguments":{"id":7}}`
	for reply, by := range map[string]string{
		"accept": "mcp", "decline": "mcp", "cancel": "mcp", "Accept": "", "yes": "", "accepted": "", "none": "policy",
	} {
		forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
			c := client{answer: reply}
			if reply == "none" {
				c.answer = ""
			}
			// A reply that the protocol does not define may cause a protocol error instead of an error of the call.
			r, err := connect(c).CallTool(t.Context(),
				&sdk.CallToolParams{Name: "call_tool", Arguments: json.RawMessage(cancel)})
			if ran := f.shop.callLog() != ""; ran != (reply == "accept") || ran == (err != nil || r.IsError) {
				t.Fatalf("%s: ran %v, %v %v", reply, ran, r, err)
			}
			if e := f.rec.last(); by != "" && (e.By != by || e.Approval == "") {
				t.Errorf("%s: recorded by %q, question %q", reply, e.By, e.Approval)
			}
		})
	}
}

// TestQuestionOutlivesTheCall checks that in a revision that sends the reply with a second call, the records of both
// calls name the same question.
func TestQuestionOutlivesTheCall(t *testing.T) {
	for _, action := range []string{"accept", "decline"} {
		f := newFixture(t, mcp.Minimal, trustNetwork)
		s := f.stdio(t, client{revision: "2026-07-28", answer: action})
		_, _ = call(t, s, "call_tool", `{"name":"shop.order.cancel","arguments":{"id":7}}`)
		f.rec.mu.Lock()
		var asked, answered host.Event
		if len(f.rec.events) == 2 {
			asked, answered = f.rec.events[0], f.rec.events[1]
		}
		f.rec.mu.Unlock()
		if asked.By != "" || asked.Approval == "" || asked.Err == nil || asked.CallID == answered.CallID {
			t.Errorf("%s: the first call is recorded as %+v", action, asked)
		}
		if answered.By != "mcp" || answered.Approval != asked.Approval || (answered.Err == nil) != (action == "accept") {
			t.Errorf("%s: the second call is recorded as %+v, the first as %+v", action, answered, asked)
		}
	}
}

// TestConfirmationExpires checks that a reply is valid as long as the approval is open, with a clock of the test.
func TestConfirmationExpires(t *testing.T) {
	for later, valid := range map[time.Duration]bool{24 * time.Hour: true, 24*time.Hour + time.Second: false} {
		f := newFixture(t, mcp.Minimal, trustNetwork)
		now := time.Unix(1_800_000_000, 0)
		f.approver.Store.Now = func() time.Time { return now }
		o := client{revision: "2026-07-28", answer: "accept"}.options()
		o.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
		s, err := sdk.NewClient(&sdk.Implementation{Name: "Test Client", Version: "1"}, o).
			Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: f.listen(t, mcp.HTTPConfig{}), MaxRetries: -1},
				&sdk.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
		if err != nil {
			t.Fatal(err)
		}
		p := &sdk.CallToolParams{Name: "shop__order__cancel", Arguments: json.RawMessage(`{"id":1}`)}
		asked, err := s.CallTool(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(later)
		p.RequestState = asked.RequestState
		p.InputResponses = sdk.InputResponseMap{"confirm": &sdk.ElicitResult{Action: "accept"}}
		_, err = s.CallTool(t.Context(), p)
		if (err == nil) != valid || (f.shop.callLog() != "") != valid {
			t.Errorf("after %s: ran %q, %v", later, f.shop.callLog(), err)
		}
		_ = s.Close()
	}
}

// TestReplyOfAnother checks that a reply is valid only for the client, the session and the token to which it was
// issued.
func TestReplyOfAnother(t *testing.T) {
	f := newFixture(t, mcp.Minimal, func(host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Confirm, Reason: "all is"}, nil
	})
	const one, two = "token-of-the-first", "token-of-the-second"
	url := f.listen(t, mcp.HTTPConfig{Tokens: []string{one, two}})
	tool := "shop__order__cancel"
	send := func(name, token, session, arguments, state string) (*sdk.CallToolResult, error) {
		o := client{revision: "2026-07-28", answer: "accept"}.options()
		o.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
		s, err := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, o).Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1, HTTPClient: &http.Client{Transport: bearer{token}}},
			&sdk.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		p := &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments), RequestState: state}
		if session != "" {
			p.Meta = sdk.Meta{mcp.SessionKey: session}
		}
		if state != "" {
			p.InputResponses = sdk.InputResponseMap{"confirm": &sdk.ElicitResult{Action: "accept"}}
		}
		return s.CallTool(t.Context(), p)
	}
	asked, err := send("First", one, "s1", `{"id":1}`, "")
	if err != nil || !asked.NeedsInput() {
		t.Fatalf("%+v %v", asked, err)
	}
	for _, tt := range []struct{ what, name, token, session, arguments string }{
		{"client", "Second", one, "s1", `{"id":1}`},
		{"token", "First", two, "s1", `{"id":1}`},
		{"session", "First", one, "s2", `{"id":1}`},
		{"missing session", "First", one, "", `{"id":1}`},
		{"parameters", "First", one, "s1", `{"id":2}`},
	} {
		r, err := send(tt.name, tt.token, tt.session, tt.arguments, asked.RequestState)
		if err == nil || !strings.Contains(err.Error(), "belongs to another call") || f.shop.callLog() != "" {
			t.Errorf("another %s: %+v %v, ran %q", tt.what, r, err, f.shop.callLog())
		}
	}
	tool = "shop__echo"
	if r, err := send("First", one, "s1", `{"id":1}`, asked.RequestState); err == nil || f.shop.callLog() != "" {
		t.Errorf("another tool: %+v %v, ran %q", r, err, f.shop.callLog())
	}
	tool = "shop__order__cancel"
	if r, err := send("First", one, "s1", `{"id":1}`, asked.RequestState); err != nil || r.IsError {
		t.Errorf("its own reply: %+v %v", r, err)
	}
	if _, err := send("First", one, "s1", `{"id":1}`, asked.RequestState); err == nil {
		t.Error("a reply was accepted twice")
	}
}

// TestQuestionIsPlain checks that a question is one short line, whatever it contains.
func TestQuestionIsPlain(t *testing.T) {
	hostile := policy(func(host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Confirm, Reason: "it is\x1b[31m red\nand\u202e more"}, nil
	})
	for _, long := range []int{1, 10_000} {
		f := newFixture(t, mcp.Minimal, hostile)
		var asked []string
		s := f.stdio(t, client{revision: "2025-11-25", answer: "accept", asked: &asked})
		params, _ := json.Marshal(map[string]string{"a": "b\x1b[2J\n" + strings.Repeat("x", long)})
		if r, text := call(t, s, "shop__echo", string(params)); r.IsError || len(asked) != 1 {
			t.Fatalf("%s, asked %q", text, asked)
		}
		if q := asked[0]; manifest.CleanLine(q) != q || len(q) > 600 || !strings.Contains(q, "shop.echo") {
			t.Errorf("asked %d bytes: %q", len(q), q)
		}
	}
}

// lacksClock is a policy that allows everything except the wall clock.
var lacksClock = policy(func(a host.Ask) (host.Decision, error) {
	d := host.Decision{Verdict: host.Allow, Allowable: true, Grant: grant.Grant{Clock: len(a.Allowed) > 0}}
	if !d.Grant.Clock && a.Tool != "order.nested" {
		d.Missing = []grant.Denial{{Right: "clock", Why: "the time of the order"}}
		d.Steps = []step.Step{step.Operator(step.OpPolicyGrant, "shop", "clock")}
	}
	d.Grant.Tools = []string{"shop.*"}
	return d, nil
})

// TestMissingRight checks that a client is never asked for a right. The error says, in text and as data, what to ask
// the operator for.
func TestMissingRight(t *testing.T) {
	for _, arguments := range []string{
		`{"name":"shop.order.cancel","arguments":{"id":7}}`, `{"name":"shop.order.nested"}`,
	} {
		forEachWire(t, mcp.Minimal, lacksClock, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
			var asked []string
			s := connect(client{answer: "accept", asked: &asked})
			r, text := call(t, s, "call_tool", arguments)
			var e struct {
				failure
				Denied []grant.Denial
			}
			if err := json.Unmarshal([]byte(text), &e); err != nil || !r.IsError {
				t.Fatalf("%v: %s", err, text)
			}
			const told = "clock; ask the operator to grant them to shop; nothing was run"
			if e.ExitCode != 82 || !strings.Contains(e.Message, told) ||
				fmt.Sprint(e.Denied) != "[{clock the time of the order}]" {
				t.Errorf("%+v", e)
			}
			if len(asked) > 0 || strings.Contains(f.shop.callLog(), "cancel") {
				t.Errorf("asked %q, ran %s", asked, f.shop.callLog())
			}
			for _, shell := range []string{"parley ", "--", "policy grant", "'"} {
				if strings.Contains(text, shell) {
					t.Errorf("%q in %s", shell, text)
				}
			}
			if e := f.rec.last(); e.By != "policy" {
				t.Errorf("recorded by %q", e.By)
			}
		})
	}
}

// answerOpen answers the one open approval of a fixture once it is there, and returns it.
func answerOpen(t *testing.T, f *fixture, reply approval.Reply) (a approval.Approval) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(5 * time.Millisecond) {
		all, err := f.approver.Store.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			if a.State == approval.Open {
				if a, err = f.approver.Store.Answer(a.ID, reply); err != nil {
					t.Fatal(err)
				}
				return a
			}
		}
	}
	t.Fatal("no approval is open")
	return a
}

// TestAnsweredElsewhere checks a call whose client cannot ask, and one whose client is still asking, when somebody else
// answers: the call goes on, and the client is no longer asked.
func TestAnsweredElsewhere(t *testing.T) {
	for _, answer := range []approval.Answer{approval.Once, approval.Deny} {
		forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
			f.approver.Patience = mcp.Patience(time.Minute)
			s := connect(client{})
			answered := make(chan approval.Approval, 1)
			go func() {
				answered <- answerOpen(t, f, approval.Reply{Answer: answer, By: approval.ByTerminal, Word: "ask Ada"})
			}()
			r, text := call(t, s, "call_tool", `{"name":"shop.order.cancel","arguments":{"id":7}}`)
			a := <-answered
			if a.Kind != approval.ForCall || !strings.Contains(a.Principal, "Test-Client") || a.Tool != "shop.order.cancel" ||
				string(a.Params) != `{"id":7}` || a.Reason != "it is destructive" || a.Effect != "destructive" {
				t.Errorf("the approval is %+v", a)
			}
			if answer == approval.Once && (r.IsError || text != `{"id":7}`) ||
				answer == approval.Deny && (!r.IsError || !strings.Contains(text, "was not confirmed (ask Ada)")) {
				t.Errorf("%s: %s", answer, text)
			}
			if e := f.rec.last(); e.By != "terminal" || e.Approval != a.ID {
				t.Errorf("recorded by %q, approval %q", e.By, e.Approval)
			}
		})
	}
}

// TestAnsweredLater checks that a call which nobody allows in time ends in 82 with the approval and the call to make
// again, without shell words, and that this call runs once a person has allowed it, one time. A right is asked for in
// the same way.
func TestAnsweredLater(t *testing.T) {
	for _, p := range []policy{trustNetwork, lacksClock} {
		forEachWire(t, mcp.Minimal, p, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
			f.approver.Patience = mcp.Patience(time.Millisecond)
			s := connect(client{})
			const cancel = `{"name":"shop.order.cancel","arguments":{"id":7}}`
			r, text := call(t, s, "call_tool", cancel)
			var e struct {
				Approval string
				ExitCode int `json:"exit_code"`
				Next     []struct {
					Tool      string
					Arguments json.RawMessage
				}
			}
			if err := json.Unmarshal([]byte(text), &e); err != nil || !r.IsError || e.ExitCode != 82 || e.Approval == "" {
				t.Fatalf("%v: %s", err, text)
			}
			if len(e.Next) == 0 || e.Next[0].Tool != "call_tool" || string(e.Next[0].Arguments) != cancel ||
				strings.Contains(text, "parley ") {
				t.Errorf("next is %s", text)
			}
			if a := answerOpen(t, f, approval.Reply{Answer: approval.Once, By: approval.ByTerminal}); a.ID != e.Approval {
				t.Errorf("the approval is %s, expected %s", a.ID, e.Approval)
			}
			if r, text := call(t, s, "call_tool", cancel); r.IsError || text != `{"id":7}` {
				t.Errorf("allowed: %s", text)
			}
			if r, text := call(t, s, "call_tool", cancel); !r.IsError || strings.Contains(text, e.Approval) {
				t.Errorf("once more: %s", text)
			}
		})
	}
}

// TestLongCallWaits checks that a call which is too long to be a step is not answered with a step that leads elsewhere:
// the message says to make it again.
func TestLongCallWaits(t *testing.T) {
	f := newFixture(t, mcp.Minimal, policy(func(host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Confirm, Reason: "it is asked about"}, nil
	}))
	f.approver.Patience = mcp.Patience(time.Millisecond)
	s := f.stdio(t, client{revision: "2025-11-25"})
	for long, step := range map[int]string{10: `"name":"shop.echo"`, 1000: `"next":[]`} {
		r, text := call(t, s, "shop__echo", `{"a":"`+strings.Repeat("x", long)+`"}`)
		if !r.IsError || !strings.Contains(text, `"approval":"a`) || !strings.Contains(text, "call again once") ||
			!strings.Contains(text, step) || strings.Contains(text, "describe_tool") {
			t.Errorf("%d bytes: %s", long, text)
		}
	}
}

// TestLateReply checks that the person at a client can reply after the call has ended, and that the call made again
// then runs, without a second question.
func TestLateReply(t *testing.T) {
	for _, wire := range []string{"stdio", "http"} {
		f := newFixture(t, mcp.Minimal, trustNetwork)
		f.approver.Patience = mcp.Patience(time.Millisecond)
		replies, asked := make(chan struct{}), []string{}
		c := client{revision: "2025-11-25", answer: "accept", asked: &asked, replies: replies}
		s := f.stdio(t, c)
		if wire == "http" {
			s = c.connect(t, &sdk.StreamableClientTransport{Endpoint: f.listen(t, mcp.HTTPConfig{})})
		}
		const cancel = `{"name":"shop.order.cancel","arguments":{"id":7}}`
		for range 2 { // the same approval is asked about once
			if e := fails(t, s, "call_tool", cancel, "denied"); !strings.Contains(e.Message, "nobody answered within 1ms") {
				t.Errorf("%s: %s", wire, e.Message)
			}
		}
		close(replies)
		for began := time.Now(); f.shop.callLog() == "" && time.Since(began) < 20*time.Second; {
			call(t, s, "call_tool", cancel)
		}
		if f.shop.callLog() == "" || len(asked) != 1 {
			t.Errorf("%s: ran %q, asked %q", wire, f.shop.callLog(), asked)
		}
	}
}
