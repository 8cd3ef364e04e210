package keeper

import (
	"time"

	"github.com/chromedp/cdproto/cdp"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
)

// events stores what happens in the browser, for each session what happens in its pages, and passes it on to streams.
type events struct {
	mux     *mux.Mux
	sender  *sender
	domains *enabler
	tracker *tracker

	journals   *journals
	activities map[*target]*activity
	listeners  map[*listener]bool
	downloads  downloads
}

func newEvents(tr *tracker, stored *journals) *events {
	return &events{
		mux: tr.mux, sender: tr.sender, domains: tr.domains, tracker: tr, journals: stored,
		activities: map[*target]*activity{}, listeners: map[*listener]bool{},
		downloads: downloads{folders: map[cdp.BrowserContextID]*downloadFolder{}, owners: downloadOwners{}},
	}
}

// onEvent publishes an event of a target, nil for the browser. The mux is locked.
func (ev *events) onEvent(r *record, t *target) {
	r.t, r.replayed = now(), t.domainState(r.method).enabling
	ev.publish(r, t)
}

func now() int64 { return time.Now().UnixMilli() }

// onLoss counts an event that was too large to be read.
func (ev *events) onLoss(method string) {
	ev.journals.skip()
	for l := range ev.listeners {
		l.recordLoss(method, ev.journals.of(l.by.SessionKey()).lastSeq)
	}
}

// onEnd ends all streams.
func (ev *events) onEnd() {
	for l := range ev.listeners {
		l.finish("closed")
	}
}

// onSession enables the domains of streams in a new session.
func (ev *events) onSession(t *target) {
	for l := range ev.listeners {
		if l.covers(t) {
			for _, d := range l.domains {
				ev.domains.enable(t, d)
			}
		}
	}
}

// onSessionEnd forgets what the recorder knew of a target.
func (ev *events) onSessionEnd(t *target) { delete(ev.activities, t) }

// onForgotten ends the streams of a target that is closed.
func (ev *events) onForgotten(t *target) {
	delete(ev.activities, t)
	for l := range ev.listeners {
		if l.scope == t {
			l.finish("closed")
		}
	}
}

// wantsSession reports whether a stream of all pages covers a page that has no session yet.
func (ev *events) wantsSession(t *target) bool {
	for l := range ev.listeners {
		if l.wantsAllPages() && l.needsAttach(t) {
			return true
		}
	}
	return false
}

// isPrivate reports whether only the person may hear of a target: it belongs to a page of theirs that shows what only
// they may open.
func isPrivate(t *target) bool {
	top := t.root()
	return top != nil && top.origin.person && top.kind == "page" && !api.MayShow(top.url)
}
