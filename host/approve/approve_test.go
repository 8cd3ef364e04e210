package approve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/approve"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/manifest"
)

// call is a call that requires an approval.
func call() *approval.Approval {
	return &approval.Approval{ID: approval.NewID(), Kind: approval.ForCall, Principal: "mcp:claude", Session: "s1",
		Key: "user/s1", Tool: "shop.cancel", Effect: "destructive", Reason: "it is destructive", Digest: "sha256:1",
		Params: json.RawMessage(`{"id":7}`), Exact: json.RawMessage(`{"id":7}`)}
}

// absent is nobody at hand, who is asked for no time.
var absent = approval.ApproverFunc(func(context.Context, *approval.Approval) (approval.Reply, error) {
	return approval.Reply{}, approval.NoApproverError("nobody is here")
})

// newApprover returns an approver with nobody at hand, whose clock is now.
func newApprover(t *testing.T) (p *approve.Approver, now *atomic.Int64) {
	now = &atomic.Int64{}
	now.Store(1_800_000_000)
	clock := func() time.Time { return time.Unix(now.Load(), 0) }
	return &approve.Approver{Store: &approve.Store{Dir: filepath.Join(t.TempDir(), "approvals"), Now: clock},
		AtHand: absent}, now
}

// ask asks for an approval that nobody has to answer at once.
func ask(t *testing.T, p *approve.Approver, a *approval.Approval) approval.Reply {
	t.Helper()
	reply, err := p.Approve(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// TestLaterAnswers checks what an answer that comes after the call has ended is valid for: the same call, made again.
func TestLaterAnswers(t *testing.T) {
	const minute = 60
	for _, tc := range []struct {
		name   string
		answer approval.Answer
		again  func(a *approval.Approval, now *atomic.Int64) // changes the call that comes after
		times  int                                           // how many of three calls the answer decides
	}{
		{name: "once", answer: "once", times: 1},
		{name: "denied once", answer: "deny", times: 1},
		{name: "always, which the policy knows", answer: "always"},
		{name: "for the session", answer: "session", times: 3},
		{"within 15 minutes", "once", func(_ *approval.Approval, now *atomic.Int64) { now.Add(15 * minute) }, 1},
		{"after 15 minutes", "once", func(_ *approval.Approval, now *atomic.Int64) { now.Add(15*minute + 1) }, 0},
		{"other parameters", "once", func(a *approval.Approval, _ *atomic.Int64) { a.Exact = []byte(`{"id":8}`) }, 0},
		{"other parameters in the session", "session",
			func(a *approval.Approval, _ *atomic.Int64) { a.Exact = []byte(`{"id":8}`) }, 3},
		{"another build", "session", func(a *approval.Approval, _ *atomic.Int64) { a.Digest = "sha256:2" }, 0},
		{"another tool", "session", func(a *approval.Approval, _ *atomic.Int64) { a.Tool = "shop.add" }, 0},
		{"another caller", "session", func(a *approval.Approval, _ *atomic.Int64) { a.Principal = "mcp:other" }, 0},
		{"another session", "session", func(a *approval.Approval, _ *atomic.Int64) { a.Key = "user/s2" }, 0},
		{"a session of the same name of another owner", "once",
			func(a *approval.Approval, _ *atomic.Int64) { a.Key = "token:1/s1" }, 0},
		{"a right more", "once",
			func(a *approval.Approval, _ *atomic.Int64) { a.Rights = []grant.Denial{{Right: "clock"}} }, 0},
		{"another kind", "once", func(a *approval.Approval, _ *atomic.Int64) { a.Kind = approval.ForRight }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, now := newApprover(t)
			first := call()
			if reply := ask(t, p, first); reply.Answer != "" || reply.Nobody != "nobody is here" {
				t.Fatalf("the first call got %+v", reply)
			}
			given := approval.Reply{Answer: tc.answer, By: approval.ByTerminal, Word: "a\x1b[31m\nword"}
			answered, err := p.Store.Answer(first.ID, given)
			if err != nil || answered.Answered.Word != manifest.CleanLine(given.Word) {
				t.Fatalf("%+v %v", answered, err)
			}
			decided := 0
			for range 3 {
				again := call()
				if tc.again != nil {
					tc.again(again, now)
				}
				if reply := ask(t, p, again); reply.Answer == tc.answer && reply.By == approval.ByTerminal {
					decided++
				} else if reply.Answer != "" {
					t.Errorf("got %+v", reply)
				}
			}
			if decided != tc.times {
				t.Errorf("it decided %d calls, expected %d", decided, tc.times)
			}
		})
	}
}

// TestAnswer checks which answers are accepted.
func TestAnswer(t *testing.T) {
	right := func(rights ...string) *approval.Approval {
		a := call()
		a.Kind = approval.ForRight
		for _, r := range rights {
			a.Rights = append(a.Rights, grant.Denial{Right: r})
		}
		return a
	}
	change := &approval.Approval{ID: approval.NewID(), Kind: approval.ForChange, Principal: "cli", Tool: "policy grant"}
	noSession := call()
	noSession.Session = ""
	once := func(by string) approval.Reply { return approval.Reply{Answer: approval.Once, By: by} }
	for _, tc := range []struct {
		name  string
		about *approval.Approval
		reply approval.Reply
		code  host.Code
	}{
		{"a call", call(), once(approval.ByTerminal), host.OK},
		{"a call by the client", call(), once(approval.ByMCP), host.OK},
		{"a right", right("clock"), once(approval.ByTerminal), host.OK},
		{"a right by the client", right("clock"), once(approval.ByMCP), host.Denied},
		{"a right denied by the client", right("clock"), approval.Reply{Answer: approval.Deny, By: approval.ByMCP}, host.OK},
		{"a change by the client", change, once(approval.ByMCP), host.Denied},
		{"always by the client", call(), approval.Reply{Answer: approval.Always, By: approval.ByMCP}, host.Denied},
		{"without a folder", right("fs:ro:PATH=/data"), once(approval.ByTerminal), host.InvalidArgs},
		{"with a folder", right("fs:ro:PATH=/data"), approval.Reply{Answer: approval.Once, By: approval.ByTerminal,
			Rights: []string{"fs:ro:/srv=/data"}}, host.OK},
		{"denied without a folder", right("fs:ro:PATH=/data"), approval.Reply{Answer: approval.Deny}, host.OK},
		{"without a session", noSession, approval.Reply{Answer: approval.Session}, host.InvalidArgs},
		{"a change for a session", change, approval.Reply{Answer: approval.Session}, host.InvalidArgs},
		{"no answer", call(), approval.Reply{}, host.InvalidArgs},
		{"another word", call(), approval.Reply{Answer: "maybe"}, host.InvalidArgs},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, _ := newApprover(t)
			ask(t, p, tc.about)
			_, err := p.Store.Answer(tc.about.ID, tc.reply)
			a, found := p.Store.Find(tc.about.ID)
			isOpen := found == nil && a.State == approval.Open
			if tc.code == host.OK && (err != nil || isOpen) || tc.code != host.OK && (!errors.Is(err, tc.code) || !isOpen) {
				t.Errorf("%v; it is %s", err, a.State)
			}
		})
	}
}

// TestExpiry checks that an open approval expires, that expired is not denied, and that what is over is removed.
func TestExpiry(t *testing.T) {
	p, now := newApprover(t)
	first := call()
	ask(t, p, first)
	now.Add(24*3600 + 1)
	if a, err := p.Store.Find(first.ID); err != nil || a.State != approval.Expired {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := p.Store.Answer(first.ID, approval.Reply{Answer: approval.Once}); !errors.Is(err, host.Denied) ||
		!strings.Contains(err.Error(), "has expired") {
		t.Error(err)
	}
	second := call()
	if reply := ask(t, p, second); reply.Answer != "" || second.ID == first.ID {
		t.Errorf("the next call got %+v of %s", reply, second.ID)
	}
	now.Add(24*3600 + 1)
	ask(t, p, call())
	all, err := p.Store.List()
	if err != nil || len(all) != 2 || all[0].ID != second.ID {
		t.Errorf("%+v %v", all, err)
	}
}

// TestEndSession checks that with a session its open approvals end, and what was allowed for its duration.
func TestEndSession(t *testing.T) {
	p, _ := newApprover(t)
	open, other, lasting := call(), call(), call()
	open.Exact, other.Session, other.Key, lasting.Tool = []byte("{}"), "s2", "user/s2", "shop.add"
	for _, a := range []*approval.Approval{open, other, lasting} {
		ask(t, p, a)
	}
	if _, err := p.Store.Answer(lasting.ID, approval.Reply{Answer: approval.Session}); err != nil {
		t.Fatal(err)
	}
	if err := p.Store.EndSession("s1"); err != nil {
		t.Fatal(err)
	}
	for a, state := range map[*approval.Approval]approval.State{open: approval.Expired, lasting: approval.Expired,
		other: approval.Open} {
		if now, err := p.Store.Find(a.ID); err != nil || now.State != state {
			t.Errorf("%s is %s, expected %s: %v", a.Tool, now.State, state, err)
		}
	}
	again := call()
	again.Tool = "shop.add"
	if reply := ask(t, p, again); reply.Answer != "" {
		t.Errorf("after the session: %+v", reply)
	}
}

// TestBounds checks that a caller has at most 20 open approvals, and that the same call does not ask twice.
func TestBounds(t *testing.T) {
	p, _ := newApprover(t)
	for i := range 200 {
		a := call()
		a.Exact = fmt.Appendf(nil, `{"id":%d}`, i)
		_, err := p.Approve(t.Context(), a)
		if i < 20 && err != nil || i >= 20 && !errors.Is(err, host.Busy) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	same := call()
	same.Exact = []byte(`{"id":3}`)
	ask(t, p, same)
	other := call()
	other.Principal = "mcp:other"
	ask(t, p, other)
	if all, err := p.Store.List(); err != nil || len(all) != 21 {
		t.Errorf("%d approvals, %v", len(all), err)
	}
}

// TestHostileTexts checks that an approval is bounded and plain, whatever is in the parameters and reasons.
func TestHostileTexts(t *testing.T) {
	p, _ := newApprover(t)
	a := call()
	html := "<b>\x1b[2J\u202e" + strings.Repeat("x", 10<<20)
	long, err := json.Marshal(map[string]string{"html": html, "to": "eve"})
	if err != nil {
		t.Fatal(err)
	}
	a.Params, a.Exact, a.Reason = long, long, "a\x1b]0;title\x07\u202e"+strings.Repeat("y", 1<<20)
	a.Rights = []grant.Denial{{Right: "clock", Why: strings.Repeat("z\x1b", 1<<20)}}
	ask(t, p, a)
	kept, err := p.Store.Find(a.ID)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(kept)
	var shown map[string]string
	err = json.Unmarshal(kept.Params, &shown)
	if err != nil || !strings.HasSuffix(shown["html"], "xx…") || shown["to"] != "eve" {
		t.Errorf("the parameters are %.80s", kept.Params)
	}
	plain := kept.Reason + kept.Rights[0].Why + string(kept.Params)
	if len(text) > 64<<10 || manifest.Clean(plain) != plain {
		t.Errorf("%d bytes: %.200q", len(text), plain)
	}
	if reply := ask(t, p, call()); reply.Answer != "" {
		t.Error(reply)
	}
}

// TestRightsAfterwards opens an approval that no call waits for. The same call finds the answer, whatever the rights,
// and uses it one time; no other call does.
func TestRightsAfterwards(t *testing.T) {
	p, now := newApprover(t)
	right := func(exact string, rights ...string) *approval.Approval {
		a := call()
		a.Kind, a.Exact = approval.ForRight, json.RawMessage(exact)
		for _, r := range rights {
			a.Rights = append(a.Rights, grant.Denial{Right: r})
		}
		return a
	}
	known := func(exact string) string {
		t.Helper()
		a := right(exact)
		reply, err := p.Known(a)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Answer == "" {
			return ""
		}
		return fmt.Sprint(reply.Answer, a.Rights)
	}
	first, second := right("1", "clock", "random"), right("1", "clock", "random")
	if err := errors.Join(p.Open(first), p.Open(second)); err != nil || first.ID != second.ID {
		t.Fatal(err, first.ID, second.ID)
	}
	if got := known("1"); got != "" {
		t.Errorf("an open approval has the answer %s", got)
	}
	if _, err := p.Store.Answer(first.ID, approval.Reply{Answer: approval.Once, By: approval.ByTerminal}); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"2", ""}, {"1", "once[{clock } {random }]"}, {"1", ""}} {
		if got := known(c[0]); got != c[1] {
			t.Errorf("a call with %s knows %s, want %s", c[0], got, c[1])
		}
	}
	third := right("1", "clock")
	if err := p.Open(third); err != nil {
		t.Fatal(err)
	}
	_, err := p.Store.Answer(third.ID, approval.Reply{Answer: approval.Session, By: approval.ByTerminal})
	if got := known("3"); err != nil || got != "session[{clock }]" {
		t.Errorf("another call of the session knows %s, %v", got, err)
	}
	if now.Add(24 * 3600); known("3") != "session[{clock }]" {
		t.Error("an answer for the session ends before it")
	}
	if all, _ := p.Store.List(); len(all) != 2 {
		t.Errorf("%d approvals are kept", len(all))
	}
}

// TestFirstAnswerCounts checks that of many answers at once exactly one counts, between stores as between processes.
func TestFirstAnswerCounts(t *testing.T) {
	p, _ := newApprover(t)
	a := call()
	ask(t, p, a)
	var counted atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			other := &approve.Store{Dir: p.Store.Dir, Now: p.Store.Now}
			answer := approval.Once
			if i%2 == 0 {
				answer = approval.Deny
			}
			if _, err := other.Answer(a.ID, approval.Reply{Answer: answer, By: approval.ByTerminal}); err == nil {
				counted.Add(1)
			} else if !errors.Is(err, host.AlreadyExists) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if counted.Load() != 1 {
		t.Errorf("%d answers counted", counted.Load())
	}
}

// TestWaiting checks calls that wait: several that are the same, of which an answer lets one run, a person at hand who
// is no longer asked when somebody else has answered, and the end of the wait.
func TestWaiting(t *testing.T) {
	p, _ := newApprover(t)
	asked, left := make(chan string, 4), make(chan string, 4)
	p.AtHand = approval.ApproverFunc(func(ctx context.Context, a *approval.Approval) (approval.Reply, error) {
		asked <- a.ID
		<-ctx.Done()
		left <- a.ID
		return approval.Reply{}, approval.NoApproverError("the question was closed")
	})
	p.Patience = func(context.Context, *approval.Approval) time.Duration { return time.Minute }
	replies := make(chan approval.Reply, 2)
	for range 2 {
		go func() {
			reply, err := p.Approve(context.WithoutCancel(t.Context()), call())
			if err != nil {
				t.Error(err)
			}
			replies <- reply
		}()
	}
	first := <-asked
	if other := <-asked; other != first {
		t.Errorf("the same call is about %s and %s", first, other)
	}
	answer := func(id string, answer approval.Answer, questions int) {
		if _, err := p.Store.Answer(id, approval.Reply{Answer: answer, By: approval.ByTerminal}); err != nil {
			t.Error(err)
		}
		for range questions {
			if got := <-left; got != id {
				t.Errorf("the question of %s was closed, expected %s", got, id)
			}
		}
	}
	answer(first, approval.Once, 2)
	if reply := <-replies; reply.Answer != approval.Once {
		t.Errorf("got %+v", reply)
	}
	second := <-asked // the other call asks again: what is allowed once lets one call run
	if second == first {
		t.Error("an answer was used twice")
	}
	answer(second, approval.Deny, 1)
	if reply := <-replies; reply.Answer != approval.Deny {
		t.Errorf("got %+v", reply)
	}

	p.Patience = func(context.Context, *approval.Approval) time.Duration { return time.Millisecond }
	if reply := ask(t, p, call()); reply.Answer != "" || reply.Nobody != "nobody answered within 1ms" {
		t.Errorf("got %+v", reply)
	}
	third := <-asked
	answer(third, approval.Once, 1) // the question outlives the call
	if reply := ask(t, p, call()); reply.Answer != approval.Once {
		t.Errorf("the call made again got %+v", reply)
	}
}

// TestInterrupted checks that a call that is interrupted while the person at hand is asked ends the question.
func TestInterrupted(t *testing.T) {
	p, _ := newApprover(t)
	ctx, cancel := context.WithCancel(t.Context())
	closed := false
	p.AtHand = approval.ApproverFunc(func(ctx context.Context, _ *approval.Approval) (approval.Reply, error) {
		cancel()
		<-ctx.Done()
		closed = true
		return approval.Reply{}, ctx.Err()
	})
	if _, err := p.Approve(ctx, call()); !errors.Is(err, context.Canceled) || !closed {
		t.Errorf("%v, the question was closed: %t", err, closed)
	}
}

// TestBrokenFolder checks that the person at hand can answer although approvals cannot be kept, and that nothing is
// allowed without one.
func TestBrokenFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &approve.Approver{Store: &approve.Store{Dir: filepath.Join(file, "approvals")}, AtHand: absent}
	if _, err := p.Approve(t.Context(), call()); !errors.Is(err, host.Unavailable) {
		t.Error(err)
	}
	p.AtHand = approval.ApproverFunc(func(context.Context, *approval.Approval) (approval.Reply, error) {
		return approval.Reply{Answer: approval.Once, By: approval.ByTerminal}, nil
	})
	if reply := ask(t, p, call()); reply.Answer != approval.Once {
		t.Errorf("got %+v", reply)
	}
}

// FuzzStored checks that a damaged file is no approval, and never an answer.
func FuzzStored(f *testing.F) {
	for _, data := range []string{"", "{}", "null", `{"id":"a1","state":"open"}`, `{"id":"a1","state":"allowed"}`,
		`{"id":"a1","state":"allowed","answered":{"answer":"once"},"request":"x","subject":"y"}`} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, _ := newApprover(t)
		if err := os.MkdirAll(p.Store.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.Store.Dir, "a1.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if reply := ask(t, p, call()); reply.Answer != "" {
			t.Errorf("%q answers %+v", data, reply)
		}
	})
}
