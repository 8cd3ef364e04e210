package event

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

// A page that navigates before it has enabled a stream's domains would report no events.
func TestListenWaitsUntilDomainsAreEnabled(t *testing.T) {
	for _, c := range []struct {
		name  string
		tells func(f *muxtest.Browser, q muxtest.Command)
		wait  time.Duration
	}{
		{"an answer", func(f *muxtest.Browser, q muxtest.Command) { f.Answer(q, `{}`) }, 0},
		{"a dialog", func(f *muxtest.Browser, _ muxtest.Command) { f.Event("Page.javascriptDialogOpening") }, 0},
		{"a crash", func(f *muxtest.Browser, _ muxtest.Command) { f.Event("Target.targetCrashed") }, 0},
		{"nothing", func(*muxtest.Browser, muxtest.Command) {}, enableTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			withEvents(t, func(ev *Events, f *muxtest.Browser) {
				l, err := ev.Listen(api.Caller{Name: "of T"},
					api.ListenRequest{Patterns: []string{"DOM.*", "DOM.documentUpdated"}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				q, began, waited := <-f.Sent, time.Now(), make(chan time.Duration, 1)
				go func() {
					ev.AwaitEnabled(context.Background(), l)
					waited <- time.Since(began)
				}()
				synctest.Wait()
				if len(waited) > 0 {
					t.Fatal("the stream begins before the page has responded")
				}
				c.tells(f, q)
				if took := <-waited; q.Method != "DOM.enable" || took != c.wait {
					t.Errorf("after %s the stream begins in %s, want %s", q.Method, took, c.wait)
				}
			})
		})
	}
}

// TestDroppedEventsAreCountedOnce reads the stored events in pages. Each page counts the dropped events of its own
// range.
func TestDroppedEventsAreCountedOnce(t *testing.T) {
	withEvents(t, func(ev *Events, f *muxtest.Browser) {
		ev.Journals = newJournals(30, 100_000)
		for _, stored := range []bool{true, false, true, true, false, false, true} {
			if stored {
				ev.Journals.add(&Record{Method: "A.b"})
			} else {
				ev.Journals.skip()
			}
		}
		var since, dropped int64
		var read int
		for range 5 {
			page, err := ev.Stored(api.CommandLine, api.EventsRequest{Since: since, Limit: 1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			since, dropped, read = page.LastSeq, dropped+page.Dropped, read+len(page.Events)
		}
		if since != 7 || dropped != 3 || read != 4 {
			t.Errorf("%d read and %d dropped up to %d", read, dropped, since)
		}
	})
}
