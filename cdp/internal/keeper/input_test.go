package keeper

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
)

// An act whose input the browser never answers ends at its deadline, says what was sent, and leaves the page to the
// next act. A page that does not respond at all is first asked to stop its script.
func TestUnansweredInputEnds(t *testing.T) {
	const limit = time.Second
	for _, c := range []struct {
		name  string
		mute  func(method string, n int32) bool // whether the n-th command is not answered
		after time.Duration                     // the deadline
		words []string
	}{
		{"no event", func(method string, _ int32) bool { return strings.HasPrefix(method, "Input.") }, 0,
			[]string{"Input.dispatchMouseEvent did not return within 1s", "3 were sent and 0 returned"}},
		{"not all events", func(method string, n int32) bool { return strings.HasPrefix(method, "Input.") && n > 1 }, 0,
			[]string{"Input.dispatchMouseEvent did not return within 1s", "3 were sent and 1 returned"}},
		{"nothing", func(string, int32) bool { return true }, target.ProbeTimeout/2 + target.TerminateTimeout,
			[]string{"does not respond", "3 were sent and 0 returned"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := muxtest.New()
				e := verb.New(f, verb.Options{Name: "test", MaxMessage: 1 << 20, RingEvents: 300, RingBytes: 1 << 20})
				go e.Mux.Read()
				defer func() { f.Close(); <-e.Mux.Done }()
				f.Event("attached")
				synctest.Wait()
				var hung atomic.Bool
				hung.Store(true)
				go func() {
					var events int32
					for {
						select {
						case q := <-f.Sent:
							if strings.HasPrefix(q.Method, "Input.") {
								events++
							}
							if !hung.Load() || !c.mute(q.Method, events) {
								f.Answer(q, `{}`)
							}
						case <-f.Closed:
							return
						}
					}
				}()
				pages := page.New(e, page.Verbs{"press": page.Act(func(v *page.Visit, _ struct{}) (struct{}, *api.Error) {
					at := func(kind string) page.Object { return page.Object{"type": kind, "x": 1, "y": 1} }
					err := v.Input(at("mouseMoved"), at("mousePressed"), at("mouseReleased"))
					if err != nil { // what an act does next takes no time
						began := time.Now()
						_ = v.Command("Runtime.evaluate", page.Object{"expression": "1"}, nil)
						if took := time.Since(began); took > 0 {
							t.Errorf("a command after the deadline takes %s", took)
						}
					}
					return struct{}{}, err
				})})
				press := func() *api.Error {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					_, err := pages.Run(ctx, api.CommandLine, "page.press", json.RawMessage(`{"params":{}}`))
					return err
				}
				began := time.Now()
				err := press()
				if took := time.Since(began); took != limit+c.after {
					t.Errorf("it ends after %s, want %s", took, limit+c.after)
				}
				if err == nil || err.Code != api.CodeTimeout {
					t.Fatalf("the error is %v, want %s", err, api.CodeTimeout)
				}
				for _, word := range c.words {
					if !strings.Contains(err.Message, word) {
						t.Errorf("%q does not say %q", err.Message, word)
					}
				}
				hung.Store(false)
				if err := press(); err != nil {
					t.Errorf("the next act on the page: %v", err)
				}
			})
		})
	}
}
