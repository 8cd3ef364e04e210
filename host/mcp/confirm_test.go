package mcp_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
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
			if e := f.rec.last(); by != "" && (e.By != by || e.Question == "") {
				t.Errorf("%s: recorded by %q, question %q", reply, e.By, e.Question)
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
		if asked.By != "" || asked.Question == "" || asked.Err == nil || asked.CallID == answered.CallID {
			t.Errorf("%s: the first call is recorded as %+v", action, asked)
		}
		if answered.By != "mcp" || answered.Question != asked.Question || (answered.Err == nil) != (action == "accept") {
			t.Errorf("%s: the second call is recorded as %+v, the first as %+v", action, answered, asked)
		}
	}
}

// TestConfirmationExpires checks that a reply is valid for five minutes, with a clock that the test sets.
func TestConfirmationExpires(t *testing.T) {
	for later, valid := range map[time.Duration]bool{5 * time.Minute: true, 5*time.Minute + time.Second: false} {
		f := newFixture(t, mcp.Minimal, trustNetwork)
		now := time.Unix(1_800_000_000, 0)
		f.SetClock(func() time.Time { return now })
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

// TestTicketOfAnother checks that a ticket is valid only for the client, the session and the token to which it was
// issued.
func TestTicketOfAnother(t *testing.T) {
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
	raw, err := base64.RawURLEncoding.DecodeString(asked.RequestState)
	parts := strings.Split(string(raw), ".")
	if err != nil || len(parts) != 3 {
		t.Fatalf("the ticket is %q, %v", raw, err)
	}
	for i, other := range []string{"q0", "9999999999", strings.Repeat("0", len(parts[2]))} {
		forged := slices.Clone(parts)
		forged[i] = other
		state := base64.RawURLEncoding.EncodeToString([]byte(strings.Join(forged, ".")))
		if r, err := send("First", one, "s1", `{"id":1}`, state); err == nil || f.shop.callLog() != "" {
			t.Errorf("the ticket %q: %+v %v, ran %q", forged, r, err, f.shop.callLog())
		}
	}
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
	d := host.Decision{Verdict: host.Allow, Allowable: true, Grant: host.Grant{Clock: len(a.Allowed) > 0}}
	if !d.Grant.Clock && a.Tool != "order.nested" {
		d.Missing = []host.Denial{{Right: "clock", Why: "the time of the order"}}
		d.Steps = []host.Step{host.OperatorStep(host.OpPolicyGrant, "shop", "clock")}
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
				Denied []host.Denial
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
