package mux

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

// heard collects what a mux passes on.
type heard []string

func (h *heard) OnEvent(session, method string, params json.RawMessage) {
	*h = append(*h, session+" "+method+" "+string(params))
}
func (h *heard) OnLoss(method string) { *h = append(*h, "lost "+method) }
func (h *heard) OnEnd()               { *h = append(*h, "end") }

// withMux runs a test against a mux whose browser is the test.
func withMux(t *testing.T, test func(m *Mux, f *muxtest.Browser, h *heard)) {
	synctest.Test(t, func(*testing.T) {
		f, h := muxtest.New(), &heard{}
		m := New(f, 1000)
		m.Observe(h)
		go m.Read()
		test(m, f, h)
		m.Close()
	})
}

// send sends a command, and returns it as the browser receives it.
func send(t *testing.T, m *Mux, f *muxtest.Browser, p *Pending, params string) muxtest.Command {
	t.Helper()
	m.Lock()
	defer m.Unlock()
	if err := m.Send(p, json.RawMessage(params)); err != nil {
		t.Fatal(err)
	}
	return <-f.Sent
}

func TestRepliesReachTheirCommands(t *testing.T) {
	withMux(t, func(m *Mux, f *muxtest.Browser, _ *heard) {
		page := &Address{"T", "S"}
		first, second := &Pending{Method: "A.one", To: page}, &Pending{Method: "A.two"}
		one, two := send(t, m, f, first, `{"a":1}`), send(t, m, f, second, "")
		if one.Session != "S" || string(one.Params) != `{"a":1}` || two.Session != "" || one.ID == two.ID {
			t.Errorf("the browser received %+v and %+v", one, two)
		}
		f.Answer(two, `{"two":2}`)
		f.Messages <- fmt.Sprintf(`{"id":%d,"error":{"code":-32000,"message":"no"}}`, one.ID)
		if r := <-second.Done; r.Err != nil || string(r.Result) != `{"two":2}` {
			t.Errorf("%s, %v", r.Result, r.Err)
		}
		if r := <-first.Done; r.Err == nil || r.Err.Code != api.CodeProtocolError || r.Err.Target != "T" {
			t.Errorf("%+v", r.Err)
		}
	})
}

// Each command ends exactly once, whatever happens first.
func TestEveryCommandEnds(t *testing.T) {
	page, other := &Address{"T", "S"}, &Address{"T", "S"}
	why := api.Errorf(api.CodeTargetCrashed, "gone")
	for name, tt := range map[string]struct {
		happens func(m *Mux, f *muxtest.Browser, q muxtest.Command)
		code    string
	}{
		"its target ends": {func(m *Mux, _ *muxtest.Browser, _ muxtest.Command) { m.FailPending(page, why) },
			api.CodeTargetCrashed},
		"the connection ends":  {func(_ *Mux, f *muxtest.Browser, _ muxtest.Command) { f.Close() }, api.CodeChromeConnection},
		"another session ends": {func(m *Mux, _ *muxtest.Browser, _ muxtest.Command) { m.FailPending(other, why) }, ""},
		"its result is too large": {func(_ *Mux, f *muxtest.Browser, q muxtest.Command) {
			f.Answer(q, `"`+strings.Repeat("x", 200)+`"`)
		}, api.CodeLimitExceeded},
		"its reply could not be read": {func(m *Mux, _ *muxtest.Browser, q muxtest.Command) {
			m.Unlock()
			defer m.Lock()
			m.Handle(browser.Message{Data: fmt.Appendf(nil, `{"id":%d,"resu`, q.ID), Size: 5000})
		}, api.CodeLimitExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := muxtest.New()
				m := New(f, 1000)
				m.Observe(&heard{})
				go m.Read()
				p := &Pending{Method: "A.b", To: page, MaxBytes: 100}
				q := send(t, m, f, p, "")
				m.Lock()
				tt.happens(m, f, q)
				m.Unlock()
				synctest.Wait()
				if tt.code == "" {
					f.Answer(q, "{}")
				}
				r := <-p.Done
				if tt.code == "" && r.Err != nil || tt.code != "" && (r.Err == nil || r.Err.Code != tt.code) {
					t.Errorf("%+v, want %q", r.Err, tt.code)
				}
				f.Messages <- fmt.Sprintf(`{"id":%d,"result":{}}`, q.ID)
				synctest.Wait()
				if len(p.Done) > 0 || len(m.Waiting(func(*Address) bool { return true })) > 0 {
					t.Error("it ends twice, or is still waited for")
				}
				if tt.code != api.CodeChromeConnection {
					m.Close()
				}
			})
		})
	}
}

func TestObserverHearsTheRest(t *testing.T) {
	withMux(t, func(m *Mux, f *muxtest.Browser, h *heard) {
		f.Messages <- `{"method":"A.happened","params":{"x":1},"sessionId":"S"}`
		f.Messages <- `{"method":"A.happened"`
		f.Messages <- `{"id":99,"result":{}}`
		synctest.Wait()
		m.Handle(browser.Message{Data: []byte(`{"method":"A.large","par`), Size: 5000})
		f.Close()
		synctest.Wait()
		f.Closed = make(chan struct{}) // for withMux
		if want := []string{`S A.happened {"x":1}`, "lost A.large", "end"}; !slices.Equal(*h, want) {
			t.Errorf("%q, want %q", *h, want)
		}
		if err := m.Send(&Pending{Method: "A.b"}, nil); err == nil || err.Code != api.CodeChromeConnection {
			t.Errorf("a command after the end: %v", err)
		}
	})
}

func TestWaitLooksAgain(t *testing.T) {
	withMux(t, func(m *Mux, f *muxtest.Browser, _ *heard) {
		state, ended := 0, make(chan *api.Error, 1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		go func() {
			ended <- m.Wait(ctx, "for two", func() (bool, *api.Error) { return state == 2, nil })
		}()
		for state < 2 {
			synctest.Wait()
			if len(ended) > 0 {
				t.Fatal("it did not wait")
			}
			m.Lock()
			state++
			m.Broadcast()
			m.Unlock()
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := m.Wait(ctx, "for ever", func() (bool, *api.Error) { return false, nil }); err == nil ||
			err.Code != api.CodeTimeout || !strings.Contains(err.Message, "for ever") {
			t.Errorf("%v", err)
		}
	})
}

// A command in the order of sending is found by its address, and forgotten ones get no reply.
func TestWaiting(t *testing.T) {
	withMux(t, func(m *Mux, f *muxtest.Browser, _ *heard) {
		page := &Address{"T", "S"}
		var sent []*Pending
		for i := range 5 {
			p := &Pending{Method: fmt.Sprint("A.", i), To: page}
			if i == 2 {
				p.To = nil
			}
			q := send(t, m, f, p, "")
			sent = append(sent, p)
			if i == 4 {
				m.Lock()
				m.Forget(p)
				m.Unlock()
				f.Answer(q, "{}")
			}
		}
		synctest.Wait()
		m.Lock()
		defer m.Unlock()
		got := m.Waiting(func(to *Address) bool { return to == page })
		if !slices.Equal(got, []*Pending{sent[0], sent[1], sent[3]}) || len(sent[4].Done) > 0 {
			t.Errorf("%d wait, %d replies for the forgotten one", len(got), len(sent[4].Done))
		}
		m.Post(&Address{ID: "T"}, "A.gone", nil, nil) // its session has ended
		if len(f.Sent) > 0 {
			t.Error("a command was sent to no session")
		}
	})
}
