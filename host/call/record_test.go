package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
)

// wall is an egress that denies everything.
type wall struct{}

func (wall) Send(context.Context, *outbound.Request, outbound.Rights) (*outbound.Response, error) {
	return nil, &host.Error{Code: host.Denied, Message: "no",
		Denied: []grant.Denial{{Right: "http:GET:https://evil.example"}}}
}

func (wall) Dial(context.Context, string, []grant.HTTP) (net.Conn, error) { return nil, nil }

// TestEventsSayWhatWasRefused checks that denials are recorded even if the call then succeeds, and that denied
// rights are not recorded as used.
func TestEventsSayWhatWasRefused(t *testing.T) {
	greedy := func(ctx context.Context, r *host.Request) (*job.Result, error) {
		for range 2 {
			_, _ = readSecret(ctx, r, "KEY")
			_, _ = sendHTTP(ctx, r, "GET", "https://evil.example")
			_ = r.Deny("fs:ro:/data", "it is not granted")
			_, _ = callTool(ctx, r, "third.echo", json.RawMessage(`{}`), "")
			_, _ = callTool(ctx, r, "second.echo", json.RawMessage(`{}`), "")
		}
		return &job.Result{Data: json.RawMessage(`{}`)}, nil
	}
	rec := &recorder{}
	h := newHost(t,
		call.Config{Recorder: rec, Egress: wall{}, Policy: holding(map[string][]string{"first": {"second.echo"}})},
		newFake(t, shopNamed("first"), map[string]handler{"echo": greedy}), newFake(t, shopNamed("second"), nil),
		newFake(t, shopNamed("third"), nil))
	if a := makeCall(t, h, "first.echo", `{}`); a.Err != nil {
		t.Fatal(a.Err)
	}
	events := rec.all()
	outer := events[len(events)-1]
	if want := []string{"secret:read:KEY", "http:GET:https://evil.example", "fs:ro:/data",
		"tool:third.echo"}; !slices.Equal(outer.Refused, want) {
		t.Errorf("refused %q, want %q", outer.Refused, want)
	}
	if want := []string{"tool:second.echo"}; !slices.Equal(outer.Uses, want) {
		t.Errorf("uses %q, want %q", outer.Uses, want)
	}
	for _, e := range events[:len(events)-1] {
		if e.Within != outer.CallID || e.Caller != "plugin:first" {
			t.Errorf("%s by %s within %q, want %q", e.Tool, e.Caller, e.Within, outer.CallID)
		}
	}
	if len(events) != 3 || events[0].Count != 2 || outer.Within != "" || outer.DryRun {
		t.Errorf("%d events, the last %+v", len(events), outer)
	}
}

func TestEventsOfDryRuns(t *testing.T) {
	rec := &recorder{}
	h := newHost(t, call.Config{Recorder: rec}, newFake(t, shop, nil))
	h.Call(t.Context(), host.Call{Name: "shop.echo", Principal: cli, Options: job.Options{DryRun: true}})
	if events := rec.all(); len(events) != 1 || !events[0].DryRun {
		t.Errorf("%+v", events)
	}
}

// TestEventsHaveMembersOfEnums checks that events name the words of a schema that a caller used, of one that is
// refused, too, and no other value. What is built in is identified by its version.
func TestEventsHaveMembersOfEnums(t *testing.T) {
	rec := &recorder{}
	h := newHost(t, call.Config{Recorder: rec}, newFake(t, shop, nil))
	for _, c := range []struct{ params, want string }{
		{`{"title":"tea","size":"small","tags":["small"]}`, "small"},
		{`{"size":"large","count":0}`, "large"},
		{`{"title":"tea","size":"huge"}`, ""},
	} {
		makeCall(t, h, "shop.add", c.params)
		events := rec.all()
		got := events[len(events)-1].Members
		if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || !slices.Equal(got["size"], []string{c.want})) {
			t.Errorf("%s: members %v, want %q", c.params, got, c.want)
		}
	}
	builtin := newFake(t, shopNamed("builtin"), nil)
	builtin.info.Kind, builtin.info.Version, builtin.info.Digest = manifest.KindBuiltin, "7", ""
	h = newHost(t, call.Config{Recorder: rec}, builtin)
	makeCall(t, h, "builtin.echo", `{}`)
	if _, err := h.Describe(t.Context(), cli, "builtin.echo", 2); err != nil {
		t.Fatal(err)
	}
	for _, e := range rec.all()[3:] {
		if e.Digest != "7" {
			t.Errorf("%s has the digest %q, want the version", e.Op, e.Digest)
		}
	}
}

// TestPollsAreOneRecord checks that the calls of a plugin that do the same are one record each, with their number, and
// leave nothing in the session; what differs, by more than numbers where it only reads, or acts on something else, is a
// record of its own.
func TestPollsAreOneRecord(t *testing.T) {
	var polls atomic.Int32
	outer := func(ctx context.Context, r *host.Request) (*job.Result, error) {
		for i := range 50 {
			_, _ = callTool(ctx, r, "second.echo", json.RawMessage(fmt.Sprintf(`{"text":"a1 \"2","n":%d}`, 100-i)), "")
			_, _ = callTool(ctx, r, "second.add", json.RawMessage(fmt.Sprintf(`{"title":"x","count":%d}`, 1+i/25)), "")
		}
		_, _ = callTool(ctx, r, "second.echo", json.RawMessage(`{"text":"a2 \"2","n":7}`), "")
		_, _ = callTool(ctx, r, "second.echo", json.RawMessage(`{"text":"a2 \"2","n":7}`), "")
		return &job.Result{Data: json.RawMessage(`{"id":1}`)}, nil
	}
	inner := map[string]handler{"echo": func(context.Context, *host.Request) (*job.Result, error) {
		if polls.Add(1) <= 40 {
			return nil, &host.Error{Code: host.NotFound, Message: "not yet"}
		}
		subject := ""
		if polls.Load() == 52 { // acts on something else than the call before
			subject = "button"
		}
		return &job.Result{Data: json.RawMessage(`{}`), Subject: subject}, nil
	}}
	rec, sessions := &recorder{}, &session.Store{Dir: t.TempDir()}
	h := newHost(t, call.Config{Recorder: rec, Sessions: sessions,
		Policy: holding(map[string][]string{"first": {"second.echo", "second.add"}})},
		newFake(t, shopNamed("first"), map[string]handler{"add": outer}), newFake(t, shopNamed("second"), inner))
	a, _ := h.Call(t.Context(), host.Call{Name: "first.add", Principal: cliIn("s"),
		Params: json.RawMessage(`{"title":"x"}`)})
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	var got []string
	for _, e := range rec.all() {
		code := host.OK
		if e.Err != nil {
			code = e.Err.Code
			if strings.Contains(e.Err.Message, "the same error") || len(e.Err.Earlier) > 0 {
				t.Errorf("%s counts in the session: %v", e.Tool, e.Err)
			}
		}
		got = append(got, fmt.Sprintf("%s %s x%d", e.Tool, code, e.Count))
	}
	if want := []string{"second.echo not_found x40", "second.add ok x25", "second.add ok x25", "second.echo ok x10",
		"second.echo ok x0", "second.echo ok x0", "first.add ok x0"}; !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// TestConfirmedCallsAreRecordsOfTheirOwn checks that each call of a plugin about which a person was asked is a record
// of its own, with the question.
func TestConfirmedCallsAreRecordsOfTheirOwn(t *testing.T) {
	outer := func(ctx context.Context, r *host.Request) (*job.Result, error) {
		for range 3 {
			if _, err := callTool(ctx, r, "second.echo", json.RawMessage(`{"text":"a"}`), ""); err != nil {
				t.Error(err)
			}
		}
		return &job.Result{Data: json.RawMessage(`{}`)}, nil
	}
	rec := &recorder{}
	h := newHost(t, call.Config{Recorder: rec,
		Approver: approval.ApproverFunc(func(context.Context, *approval.Approval) (approval.Reply, error) {
			return approval.Reply{Answer: approval.Once, By: approval.ByTerminal}, nil
		}),
		Policy: policy(func(a host.Ask) (host.Decision, error) {
			d := host.Decision{Verdict: host.Allow, Grant: grant.Grant{Tools: []string{"second.*"}}}
			if a.Plugin == "second" {
				d.Verdict, d.Reason = host.Confirm, "a rule"
			}
			return d, nil
		})}, newFake(t, shopNamed("first"), map[string]handler{"echo": outer}), newFake(t, shopNamed("second"), nil))
	if a := makeCall(t, h, "first.echo", `{}`); a.Err != nil {
		t.Fatal(a.Err)
	}
	questions := map[string]bool{}
	for _, e := range rec.all()[:3] {
		if questions[e.Approval] = true; e.Approval == "" || e.Count > 1 || e.Tool != "second.echo" {
			t.Errorf("%s, %d times, answers the question %q", e.Tool, e.Count, e.Approval)
		}
	}
	if len(questions) != 3 || len(rec.all()) != 4 {
		t.Errorf("%d records of %d questions", len(rec.all()), len(questions))
	}
}

// TestFewCallsAreHeldBack checks that a plugin whose calls all differ, or are large, has few that are not recorded
// before it ends, and that each is recorded once.
func TestFewCallsAreHeldBack(t *testing.T) {
	for name, params := range map[string]string{
		"different": `{"text":"NAME"}`, "large": `{"text":"NAME` + strings.Repeat("x", 20_000) + `"}`,
	} {
		const calls, mayWait = 150, 100
		rec, before := &recorder{}, 0
		outer := func(ctx context.Context, r *host.Request) (*job.Result, error) {
			for i := range calls {
				text := strings.Replace(params, "NAME", strings.Repeat("a", 1+i), 1)
				if _, err := callTool(ctx, r, "second.echo", json.RawMessage(text), ""); err != nil {
					t.Error(err)
				}
			}
			before = len(rec.all())
			return &job.Result{Data: json.RawMessage(`{}`)}, nil
		}
		h := newHost(t, call.Config{Recorder: rec, Policy: holding(map[string][]string{"first": {"second.echo"}})},
			newFake(t, shopNamed("first"), map[string]handler{"echo": outer}), newFake(t, shopNamed("second"), nil))
		if a := makeCall(t, h, "first.echo", `{}`); a.Err != nil {
			t.Fatal(a.Err)
		}
		if before < calls-mayWait || name == "large" && before != calls {
			t.Errorf("%s: %d of %d calls are held back", name, calls-before, calls)
		}
		if all := rec.all(); len(all) != calls+1 {
			t.Errorf("%s: %d records of %d calls", name, len(all), calls+1)
		}
	}
}
