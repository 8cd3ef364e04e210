// Package event stores what happens in a browser, and passes it on to streams. Each session has a journal of its own.
package event

import (
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/cdp"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// Events stores what happens in the browser, for each session what happens in its pages, and passes it on to streams.
type Events struct {
	mux     *mux.Mux
	sender  *target.Sender
	domains *target.Domains
	Tracker *target.Tracker

	Journals   *Journals
	activities map[*target.Target]*activity
	listeners  map[*Listener]bool
	awaited    atomic.Int32 // calls of AwaitRecords
	Downloads  downloads
}

// New returns the events of the targets of a tracker, and where they are stored.
func New(tr *target.Tracker, stored *Journals) *Events {
	return &Events{
		mux: tr.Mux, sender: tr.Sender, domains: tr.Domains, Tracker: tr, Journals: stored,
		activities: map[*target.Target]*activity{}, listeners: map[*Listener]bool{},
		Downloads: downloads{folders: map[cdp.BrowserContextID]*downloadFolder{}},
	}
}

// OnEvent publishes an event of a target, nil for the browser. The mux is locked.
func (ev *Events) OnEvent(r *Record, t *target.Target) {
	r.t, r.replayed = now(), t.DomainState(r.Method).Enabling
	ev.publish(r, t)
}

func now() int64 { return time.Now().UnixMilli() }

// OnLoss counts an event that was too large to be read.
func (ev *Events) OnLoss(method string) {
	ev.Journals.skip()
	for l := range ev.listeners {
		l.recordLoss(method, ev.Journals.of(l.by.SessionKey()).lastSeq)
	}
}

// OnEnd ends all streams.
func (ev *Events) OnEnd() {
	for l := range ev.listeners {
		l.Finish("closed")
	}
}

// OnSession enables the domains of streams in a new session.
func (ev *Events) OnSession(t *target.Target) {
	for l := range ev.listeners {
		if l.covers(t) {
			for _, d := range l.domains {
				ev.domains.Enable(t, d)
			}
		}
	}
}

// OnSessionEnd forgets what the recorder knew of a target.
func (ev *Events) OnSessionEnd(t *target.Target) { delete(ev.activities, t) }

// OnForgotten ends the streams of a target that is closed.
func (ev *Events) OnForgotten(t *target.Target) {
	delete(ev.activities, t)
	for l := range ev.listeners {
		if l.scope == t {
			l.Finish("closed")
		}
	}
}

// WantsSession reports whether a stream of all pages covers a page that has no session yet.
func (ev *Events) WantsSession(t *target.Target) bool {
	for l := range ev.listeners {
		if l.wantsAllPages() && l.needsAttach(t) {
			return true
		}
	}
	return false
}

// IsPrivate reports whether only the person may hear of a target: it belongs to a page of theirs that shows what only
// they may open.
func IsPrivate(t *target.Target) bool {
	top := t.Root()
	return top != nil && top.Origin.Person && top.Kind == "page" && !api.MayShow(top.URL)
}
