package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/session"
)

// in makes a call in a session that fails, and one whose result is stored.
func (a agent) in(of caller.Session) (callID string) {
	a.t.Helper()
	_, _ = a.h.Call(a.t.Context(), host.Call{
		Name: "shop.add", Params: json.RawMessage(`[]`), Principal: caller.Principal{Name: "cli", Session: of},
	})
	answer, _ := a.h.Call(a.t.Context(), host.Call{
		Name: "shop.echo", Params: json.RawMessage(`{"text":"a long text"}`),
		Principal: caller.Principal{Name: "cli", Session: of},
		Options:   job.Options{MaxBytes: 5},
	})
	if answer.Err != nil || !answer.Cut {
		a.t.Fatalf("%s, %v", answer.Data, answer.Err)
	}
	return answer.CallID
}

// TestListOfSessions checks that the list has each session with what it was shown and its results, and no other, and
// that a session that was ended leaves nothing, also of the plugins that acted on its behalf.
func TestListOfSessions(t *testing.T) {
	now := time.Now()
	dir := t.TempDir()
	sessions := &session.Store{Dir: dir, Now: func() time.Time { return now }}
	if all := sessions.List(); len(all) != 0 {
		t.Errorf("without sessions: %+v", all)
	}
	a := newAgent(t, sessions)
	of := []caller.Session{
		{}, {Name: "research"}, {Name: "other"}, {Owner: "token:1", Name: "research"},
		{Owner: "plugin:p", Name: "x", Within: []string{"user/research"}},
		{Owner: "plugin:p", Name: "y", Within: []string{"user/other"}},
		{Owner: "plugin:p", Name: "z", Within: []string{"plugin:p/x", "user/research"}},
	}
	results := map[string]string{}
	for _, s := range of {
		results[s.Key()] = a.in(s)
	}
	for i, name := range []string{"s-research.json", "s-other.json"} {
		at := now.Add(-time.Duration(i+1) * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "h-0.json"), []byte(`{"tiers":{"a.b":[2]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := func() string {
		var keys []string
		for _, s := range sessions.List() {
			keys = append(keys, s.Session.Key())
			if len(s.Results) != 1 || s.Results[0].CallID != results[s.Session.Key()] || s.Results[0].Bytes < 10 ||
				s.Results[0].Time.IsZero() || s.Used.IsZero() {
				t.Errorf("the results of %+v are %+v", s.Session, s.Results)
			}
			shown := fmt.Sprint(s.Shown)
			if want := map[bool]string{true: "[]", false: "[{shop.add [2]}]"}[s.Session.Name == ""]; shown != want {
				t.Errorf("%+v has been shown %s, want %s", s.Session, shown, want)
			}
		}
		return strings.Join(keys, " ")
	}
	for _, s := range of {
		if !strings.Contains(" "+keys()+" ", " "+s.Key()+" ") {
			t.Errorf("the list has no %s: %s", s.Key(), keys())
		}
		if s.Within != nil {
			continue
		}
		if got := caller.SessionOf(s.Key()); !reflect.DeepEqual(got, s) {
			t.Errorf("the key %s is that of %+v", s.Key(), got)
		}
	}
	if n := len(sessions.List()); n != len(of) {
		t.Errorf("the list has %d sessions: %s", n, keys())
	}

	ended := newFake(t, shop, nil)
	e := &ender{fake: ended}
	h := newHost(t, call.Config{Sessions: sessions}, e)
	var events []host.Event
	defer h.Subscribe(func(e host.Event) { events = append(events, e) })()
	if err := h.EndSession(t.Context(), of[1]); err != nil {
		t.Fatal(err)
	}
	if left := " " + keys() + " "; strings.Contains(left, " user/research ") || strings.Contains(left, "plugin:p/x") ||
		strings.Contains(left, "plugin:p/z") ||
		!strings.Contains(left, " token:1/research ") || !strings.Contains(left, "plugin:p/y") {
		t.Errorf("after the end of user/research: %s", left)
	}
	if len(e.ended) != 1 || !reflect.DeepEqual(e.ended[0], of[1]) || len(events) != 1 || events[0].Op != "session_end" ||
		events[0].Session != "research" {
		t.Errorf("the end of %+v was told as %+v and %+v", of[1], e.ended, events)
	}
	if _, err := sessions.Result(of[1], results["user/research"]); err == nil {
		t.Error("a result of the session that was ended is stored")
	}
	now = now.Add(25 * time.Hour)
	if all := sessions.List(); len(all) != 0 {
		t.Errorf("after a day: %+v", all)
	}
}

// ender is a plugin that hears which sessions end.
type ender struct {
	*fake
	ended []caller.Session
}

func (e *ender) EndSession(_ context.Context, of caller.Session) error {
	e.ended = append(e.ended, of)
	return nil
}

func (e *ender) EndConnection(string) {}
