package tenant

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// follower passes changes of targets on to owners, set-ups and the recorder.
type follower struct{ owners *Owners }

// OnTarget implements [target.Observer].
func (f follower) OnTarget(t *target.Target, context string, via *target.Target, fresh bool) {
	if context != "" {
		t.Context = context
	}
	if fresh && t.URL == f.owners.HiddenURL {
		t.Hidden, t.Owner = true, api.Disowned
	}
	if t.Hidden {
		return
	}
	from := f.owners.tracker.ByID[t.Opener]
	if from == nil {
		from = via
	}
	f.owners.adopt(t, from)
	if fresh && (from == nil || from.Owner != t.Owner) {
		f.owners.guessOwner(t)
	}
	f.owners.onURL(t, t.URL)
	if fresh {
		f.owners.enforcePageLimit(t)
		t.Appeared = f.owners.events.Journals.LastSeqOf(t.Owner)
	}
}

// OnSession implements [target.Observer].
func (f follower) OnSession(t *target.Target) {
	f.owners.events.OnSession(t)
	f.owners.Setups.apply(t)
}

// OnSessionEnd implements [target.Observer].
func (f follower) OnSessionEnd(t *target.Target) {
	f.owners.events.OnSessionEnd(t)
	f.owners.Setups.forget(t)
}

// OnForgotten implements [target.Observer].
func (f follower) OnForgotten(t *target.Target) {
	f.OnSessionEnd(t)
	f.owners.events.OnForgotten(t)
	maps.DeleteFunc(f.owners.current, func(_ string, current *target.Target) bool { return current == t })
}

// WantsSession implements [target.Observer].
func (f follower) WantsSession(t *target.Target) bool { return f.owners.events.WantsSession(t) }

// OnPaused implements [target.Observer]. The keeper answers the requests of hidden pages, and requests for which a
// session has rules. For certificates and logins it reads the operator's files.
func (f follower) OnPaused(t *target.Target, params json.RawMessage) bool {
	ss := f.owners.Setups
	switch {
	case t.Hidden:
		ss.fulfillEmpty(t, params)
	case ss.applied[t] == nil:
		return false
	case scan.Field(params, "requestURL") != nil:
		if !ss.applied[t].trusts {
			return false
		}
		ss.onCertificate(t, params)
	case fetches(t):
		return false
	case scan.Field(params, "authChallenge") != nil:
		ss.onLogin(t, params)
	default:
		ss.onPaused(t, params)
	}
	return true
}

// OnEvent implements [target.Observer].
func (f follower) OnEvent(t, of *target.Target, method string, params json.RawMessage) {
	if t != nil && t.Hidden {
		return
	}
	r := &event.Record{Target: api.BrowserTarget, Method: method, Params: params,
		Owner:   f.owners.ownerOf(of, method, params),
		Private: f.owners.reportedBy(of, method, params).IsPrivate()}
	if of != nil {
		r.Target = of.ID
	}
	f.owners.events.OnEvent(r, t)
}

// OnContexts implements [target.Observer].
func (f follower) OnContexts(t *target.Target) { f.owners.events.RepeatContexts(t) }

// OnLoss implements [target.Observer].
func (f follower) OnLoss(method string) { f.owners.events.OnLoss(method) }

// OnEnd implements [target.Observer].
func (f follower) OnEnd() { f.owners.events.OnEnd() }

// OnURL implements [target.Observer].
func (f follower) OnURL(t *target.Target, url string) { f.owners.onURL(t, url) }

// OnNavigationRequested records that a page has requested a navigation to another page. The mux is locked.
func (f follower) OnNavigationRequested(t *target.Target, params json.RawMessage) {
	switch page.ClientNavigationDisposition(scan.Text(params, "disposition")) {
	case page.ClientNavigationDispositionNewTab, page.ClientNavigationDispositionNewWindow:
		if len(f.owners.requestedPages) == maxRequestedPages {
			f.owners.requestedPages = slices.Delete(f.owners.requestedPages, 0, 1)
		}
		f.owners.requestedPages = append(f.owners.requestedPages,
			requestedPage{scan.Text(params, "url"), t.Owner, t.Context, t.Root().ID, t.Origin, time.Now()})
	}
}
