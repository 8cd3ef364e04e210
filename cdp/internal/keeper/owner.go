package keeper

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/manifest"
)

// Each target belongs to the session in which it was opened, together with everything that comes of it: popups, frames
// and workers. Everything in a browser context belongs to the session of that context, whoever opened it there.

// owners knows to which session each target, event and download belongs, and which target is the current one of each.
type owners struct {
	mux     *mux.Mux
	sender  *sender
	domains *enabler
	tracker *tracker
	events  *events

	// hiddenURL is where the engine's own pages begin. It cannot be guessed: whatever else had it would be hidden, too.
	hiddenURL string
	// forbidden are origins whose pages no session may use.
	forbidden []string
	// contextOwners has the sessions of browser contexts by their ids, createdContexts those that a session created by a
	// command of its own.
	contextOwners, createdContexts map[string]string

	current        map[string]*target // by session
	domainOwners   map[string]string  // the session that used a domain of the browser itself last, by domain
	requestedPages []requestedPage    // by pages, the newest last

	setups *setups
}

func newOwners(ev *events, forbidden []string) *owners {
	tr := ev.tracker
	ow := &owners{
		mux: tr.mux, sender: tr.sender, domains: tr.domains, tracker: tr, events: ev, forbidden: forbidden,
		hiddenURL:     api.BlankURL + "#" + rand.Text(),
		contextOwners: map[string]string{}, createdContexts: map[string]string{},
		current:      map[string]*target{},
		domainOwners: map[string]string{},
		setups:       newSetups(tr.mux),
	}
	tr.observer = ow
	return ow
}

// onTarget implements [observer].
func (ow *owners) onTarget(t *target, context string, via *target, fresh bool) {
	if context != "" {
		t.context = context
	}
	if fresh && t.url == ow.hiddenURL {
		t.hidden, t.owner = true, api.Disowned
	}
	if t.hidden {
		return
	}
	from := ow.tracker.targets[t.opener]
	if from == nil {
		from = via
	}
	ow.adopt(t, from)
	if fresh && (from == nil || from.owner != t.owner) {
		ow.guessOwner(t)
	}
	ow.onURL(t, t.url)
	if fresh {
		ow.enforcePageLimit(t)
		t.appeared = ow.events.journals.lastSeqOf(t.owner)
	}
}

// onSession implements [observer].
func (ow *owners) onSession(t *target) {
	ow.events.onSession(t)
	ow.setups.apply(t)
}

// onSessionEnd implements [observer].
func (ow *owners) onSessionEnd(t *target) {
	ow.events.onSessionEnd(t)
	ow.setups.forget(t)
}

// onForgotten implements [observer].
func (ow *owners) onForgotten(t *target) {
	ow.onSessionEnd(t)
	ow.events.onForgotten(t)
	maps.DeleteFunc(ow.current, func(_ string, current *target) bool { return current == t })
}

// wantsSession implements [observer].
func (ow *owners) wantsSession(t *target) bool { return ow.events.wantsSession(t) }

// onPaused implements [observer]. The keeper answers the requests of hidden pages, and those that a session has rules
// for.
func (ow *owners) onPaused(t *target, params json.RawMessage) bool {
	switch {
	case t.hidden:
		ow.setups.fulfillEmpty(t, params)
	case ow.setups.routes(t):
		ow.setups.onPaused(t, params)
	default:
		return false
	}
	return true
}

// onEvent implements [observer].
func (ow *owners) onEvent(t, of *target, method string, params json.RawMessage) {
	if t != nil && t.hidden {
		return
	}
	r := &record{target: api.BrowserTarget, method: method, params: params, owner: ow.ownerOf(of, method, params),
		private: isPrivate(ow.reportedBy(of, method, params))}
	if of != nil {
		r.target = of.ID
	}
	ow.events.onEvent(r, t)
}

// onContexts implements [observer].
func (ow *owners) onContexts(t *target) { ow.events.repeatContexts(t) }

// onLoss implements [observer].
func (ow *owners) onLoss(method string) { ow.events.onLoss(method) }

// onEnd implements [observer].
func (ow *owners) onEnd() { ow.events.onEnd() }

// adopt makes a target belong to the session of its context, or of the target that opened it. The engine is locked.
func (ow *owners) adopt(t, from *target) {
	if owner := ow.contextOwners[t.context]; owner != "" {
		t.owner, t.ownerTentative = owner, false
	} else if from != nil && (t.owner == "" || t.ownerTentative) {
		t.owner, t.ownerTentative = from.owner, false
	}
	if from != nil && from.owner == t.owner {
		t.origin = from.origin
	}
}

// guessOwner sets the origin of a new target that no other one has opened: that of the first command under way that
// creates one in its session, or of the page that has just requested its URL, as by a Ctrl-click, which leaves no
// opener. Without a session, in our own browser, it gets a tentative one: that of the page, else the person's. The
// engine is locked.
func (ow *owners) guessOwner(t *target) {
	if t.owner == "" {
		if !ow.tracker.started {
			return
		}
		t.owner, t.origin, t.ownerTentative = api.DefaultSession, originOf(api.CommandLine), true
	}
	if t.kind != "page" {
		return
	}
	if p := ow.creating(t.owner); p != nil {
		t.origin = originOf(p.By)
		return
	}
	for i, a := range ow.requestedPages {
		if a.url == t.url && a.context == t.context && time.Since(a.at) < requestedPageTTL {
			t.owner, t.origin = a.owner, a.origin
			ow.requestedPages = slices.Delete(ow.requestedPages, i, i+1)
			return
		}
	}
}

// creating returns the first command under way that creates a target for a session. The engine is locked.
func (ow *owners) creating(session string) *mux.Pending {
	for _, p := range ow.mux.Waiting(func(*mux.Address) bool { return true }) {
		if p.Method == cdptarget.CommandCreateTarget && p.By.Name != "" && p.By.SessionKey() == session {
			return p
		}
	}
	return nil
}

func originOf(c api.Caller) origin { return origin{c.ActsForPerson(), c.Connection} }

// requestedPage is a page that another page has requested.
type requestedPage struct {
	url, owner, context string
	origin              origin
	at                  time.Time
}

const (
	requestedPageTTL  = 10 * time.Second
	maxRequestedPages = 16
)

// onNavigationRequested records that a page has requested another one. The engine is locked.
func (ow *owners) onNavigationRequested(t *target, params json.RawMessage) {
	var p page.EventFrameRequestedNavigation
	if json.Unmarshal(params, &p) != nil ||
		p.Disposition != page.ClientNavigationDispositionNewTab &&
			p.Disposition != page.ClientNavigationDispositionNewWindow {
		return
	}
	if len(ow.requestedPages) == maxRequestedPages {
		ow.requestedPages = append(ow.requestedPages[:0], ow.requestedPages[1:]...)
	}
	ow.requestedPages = append(ow.requestedPages, requestedPage{p.URL, t.owner, t.context, t.origin, time.Now()})
}

// assign makes the session of the caller that requested a new target its owner. Concurrent requests may exceed the page
// limit, so it is enforced again. The engine is locked.
func (ow *owners) assign(t *target, by api.Caller) {
	if t.owner == "" || t.ownerTentative {
		t.owner, t.ownerTentative = by.SessionKey(), false
	}
	if t.owner == by.SessionKey() {
		t.origin = originOf(by)
		ow.enforcePageLimit(t)
		ow.setups.apply(t)
	}
}

// claim gives a page without an owner to the first session that uses it. Pages of an external browser stay without
// an owner. The engine is locked.
func (ow *owners) claim(by api.Caller, t *target) {
	if root := t.root(); root != nil && root.owner == "" && !ow.tracker.external && root.kind == "page" {
		ow.takeOver(by, root)
	}
}

// takeSpare gives the browser's initial page to a caller, if nobody uses it yet. It returns nil if there is none.
func (ow *owners) takeSpare(by api.Caller) *target {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	t := ow.tracker.sparePage
	ow.tracker.sparePage = nil
	if t == nil || t.closed || t.crashed || t.dialog != nil || t.owner != "" && !by.CanSee(t.owner) {
		return nil
	}
	ow.takeOver(by, t)
	return t
}

// giveBack makes a page the spare one again. The mux is locked.
func (ow *owners) giveBack(t *target) { ow.tracker.sparePage, t.owner, t.origin = t, "", origin{} }

// takeOver makes a caller's session the owner of a page that had none, and of its stored events. A page that is in use
// is not spare. The engine is locked.
func (ow *owners) takeOver(by api.Caller, t *target) {
	t.owner, t.origin = by.SessionKey(), originOf(by)
	if ow.tracker.sparePage == t {
		ow.tracker.sparePage = nil
	}
	ow.setups.apply(t)
	ow.events.journals.reassign(t.owner, func(r *record) bool { return r.target == t.ID && r.owner == api.DefaultSession })
}

// currentOf returns the default target of the caller's session, or nil. The engine is locked.
func (ow *owners) currentOf(by api.Caller) *target {
	if by.Anonymous {
		return nil
	}
	if t := ow.current[by.SessionKey()]; t != nil && t.evictErr == nil && ow.canUse(by, t) {
		return t
	}
	return ow.newestPage(by)
}

// canUse reports whether a caller may use a target. The target must belong to the caller's session. It must not show
// content of the browser itself either, such as the PDF viewer, an extension in a frame of the page; a page that goes
// there is closed by onURL, unless a person opened it in a session that they share. The engine is locked.
func (ow *owners) canUse(by api.Caller, t *target) bool {
	switch {
	case !by.CanSee(t.owner) || ow.isForbidden(t.url):
		return false
	case by.ActsForPerson():
		return true
	case t.kind == "page":
		return !t.origin.person || api.MayShow(t.url)
	}
	return api.IsFromWeb(t.url)
}

// isForbidden reports whether no session may use a page at a URL.
func (ow *owners) isForbidden(url string) bool {
	return slices.ContainsFunc(ow.forbidden, func(origin string) bool { return api.SameOrigin(url, origin) })
}

// checkURL rejects a forbidden URL.
func (ow *owners) checkURL(what, url string) *api.Error {
	if !ow.isForbidden(url) {
		return nil
	}
	return api.Errorf(api.CodeDenied, "%s cannot use %s, which no session may use", what, manifest.Clip(url, 100))
}

// newestPage returns the newest page that a caller may use. The engine is locked.
func (ow *owners) newestPage(by api.Caller) (found *target) {
	for _, t := range ow.tracker.order {
		if t.kind == "page" && t.evictErr == nil && ow.canUse(by, t) {
			found = t
		}
	}
	return found
}

// setCurrent makes t the default target of the caller's session. The engine is locked.
func (ow *owners) setCurrent(by api.Caller, t *target) { ow.current[by.SessionKey()] = t }

// visibleTo returns the targets that a caller may use, the oldest first. The engine is locked.
func (ow *owners) visibleTo(by api.Caller) []*target {
	all := make([]*target, 0, len(ow.tracker.order))
	for _, t := range ow.tracker.order {
		if ow.canUse(by, t) {
			all = append(all, t)
		}
	}
	return all
}

// ownerOf returns the owner of an event: that of the target that it reports, else that of its session's target. A
// page's session can report the targets of others, too. The engine is locked.
func (ow *owners) ownerOf(t *target, method string, params json.RawMessage) string {
	if reportsTarget(method) {
		if owner, known := ow.ownerOfReported(params); known || t == nil {
			return owner
		}
	}
	if t != nil {
		return t.owner
	}
	switch method {
	case cdpbrowser.DownloadWillBegin.Method, cdpbrowser.DownloadProgress.Method:
		return ow.events.ownerOfDownload(params)
	}
	return ow.domainOwners[api.DomainOf(method)]
}

// reportsTarget reports whether an event is about another target than the one in whose session it arrives.
func reportsTarget(method string) bool {
	switch method {
	case cdptarget.TargetCreated.Method, cdptarget.TargetInfoChanged.Method, cdptarget.AttachedToTarget.Method,
		cdptarget.TargetDestroyed.Method, cdptarget.TargetCrashed.Method, cdptarget.DetachedFromTarget.Method:
		return true
	}
	return false
}

// reportedBy returns the target that an event is about: agents in a session that a person shares do not hear of the
// person's files.
func (ow *owners) reportedBy(t *target, method string, params json.RawMessage) *target {
	var p struct {
		Info targetInfo `json:"targetInfo"`
		ID   string     `json:"targetId"`
	}
	if reportsTarget(method) && json.Unmarshal(params, &p) == nil {
		return ow.tracker.targets[cmp.Or(p.Info.ID, p.ID)]
	}
	return t
}

// ownerOfReported returns the owner of the target that an event reports. The engine is locked.
func (ow *owners) ownerOfReported(params json.RawMessage) (owner string, known bool) {
	var p struct {
		Info    targetInfo `json:"targetInfo"`
		ID      string     `json:"targetId"`
		Session string     `json:"sessionId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return "", false
	}
	if reported := ow.tracker.targets[p.Info.ID]; reported != nil && reported.hidden {
		return api.Disowned, true
	}
	if owner := ow.contextOwners[p.Info.Context]; owner != "" {
		return owner, true
	}
	reported := []*target{ow.tracker.targets[p.Info.ID], ow.tracker.targets[p.ID], ow.tracker.sessions[p.Session],
		ow.tracker.targets[p.Info.Opener]}
	for _, found := range reported {
		if found != nil {
			return found.owner, true
		}
	}
	return "", false
}

// listTargets returns the targets that a caller may use, the oldest first; with all those of all sessions.
func (ow *owners) listTargets(by api.Caller, all bool) []api.Target {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	seen := ow.visibleTo(by)
	if all {
		seen = slices.DeleteFunc(slices.Clone(ow.tracker.order), func(t *target) bool { return ow.isForbidden(t.url) })
	}
	current := ow.currentOf(by)
	list := make([]api.Target, 0, len(seen))
	for i, t := range seen {
		one := api.Target{Index: i, ID: t.ID, Type: t.kind, URL: t.url, Title: t.title, Current: t == current,
			Attached: t.Session != "", Crashed: t.crashed, Opener: t.opener, Since: t.appeared,
			Dialog: t.dialog}
		if t.parent != nil {
			one.Parent = t.parent.ID
		}
		if t.owner != by.SessionKey() {
			one.Owner = strings.TrimPrefix(t.owner, "user/")
		}
		list = append(list, one)
	}
	return list
}

// resolve returns the target that a caller's selector names. For targets that the caller may not use it returns the
// same error as for missing ones. The person at the command line can name any target by its id.
func (ow *owners) resolve(by api.Caller, selector string) (*target, *api.Error) {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	if ow.mux.Err() != nil {
		return nil, ow.mux.Err()
	}
	if selector == "" {
		if t := ow.currentOf(by); t != nil {
			return t, nil
		}
		if by.Anonymous {
			return nil, api.Errorf(api.CodeNotFound,
				"a client without a session has no current page: name one as target, by its id")
		}
		e := api.Errorf(api.CodeNotFound, "this session has no page in the browser; open one first")
		switch {
		case by.IsPerson() || by.ForPerson:
			e.Message = "the browser has no page; open one first"
		case by.IsCommandLine():
			e.Message = "session " + api.DisplayName(by.SessionKey()) + " has no page in this browser; open one first"
		}
		e.NoPage = true
		return nil, e
	}
	all := ow.visibleTo(by)
	if t := ow.tracker.targets[selector]; t != nil && (ow.canUse(by, t) || by.IsCommandLine() && !ow.isForbidden(t.url)) {
		return t, nil
	}
	if n, err := strconv.Atoi(selector); err == nil && len(selector) < 4 {
		if n < 0 || n >= len(all) {
			return nil, api.Errorf(api.CodeNotFound, "there is no target %d; there are %d, numbered from 0", n, len(all))
		}
		return all[n], nil
	}
	for _, match := range []func(*target) bool{
		func(t *target) bool { return len(selector) >= 4 && strings.HasPrefix(t.ID, strings.ToUpper(selector)) },
		func(t *target) bool { return t.kind == "page" && strings.Contains(t.url, selector) },
		func(t *target) bool { return strings.Contains(t.url, selector) },
	} {
		var found []*target
		for _, t := range all {
			if match(t) {
				found = append(found, t)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			var names []string
			for _, t := range found[:min(len(found), 5)] {
				names = append(names, t.ID+" "+manifest.Clip(t.url, 60))
			}
			return nil, api.Errorf(api.CodeNotFound, "%q matches %d targets: %s; use an id",
				manifest.Clip(selector, 80), len(found), strings.Join(names, ", "))
		}
	}
	return nil, api.Errorf(api.CodeNotFound, "no target matches %q by id, index or URL; there are %d targets",
		manifest.Clip(selector, 80), len(all))
}

// storedEvents returns the stored events that a caller may see.
func (ow *owners) storedEvents(by api.Caller, q api.EventsRequest) (api.Events, *api.Error) {
	return ow.events.stored(by, q, func(selector string) (*target, *api.Error) { return ow.resolve(by, selector) })
}

// checkIDs rejects target and session ids that do not belong to the caller, with the same error whether they exist
// or not. The engine is locked.
func (ow *owners) checkIDs(by api.Caller, params map[string]json.RawMessage) *api.Error {
	for _, kind := range []struct {
		name string
		find func(id string) *target
	}{
		{"targetId", func(id string) *target { return ow.tracker.targets[id] }},
		{"sessionId", func(id string) *target { return ow.tracker.sessionOf(id) }},
	} {
		raw, named := params[kind.name]
		if !named {
			continue
		}
		var id string
		if err := json.Unmarshal(raw, &id); err != nil {
			return api.Errorf(api.CodeInvalidArgs, "/%s is not a string", kind.name)
		}
		t := kind.find(id)
		if t == nil && by.IsPerson() {
			continue // for example a tab, which the keeper does not track
		}
		if t == nil || !ow.canUse(by, t) {
			return api.Errorf(api.CodeNotFound, "%s has no target with the %s %q",
				manifest.Clip(by.Name, 80), kind.name, manifest.Clip(id, 80))
		}
	}
	return nil
}

// onBrowserCommand records what a caller's command to the browser itself has created, and whose its events are.
func (ow *owners) onBrowserCommand(by api.Caller, q api.CallRequest, result json.RawMessage) {
	var about struct {
		Target  string `json:"targetId"`
		Context string `json:"browserContextId"`
	}
	ow.mux.Lock()
	defer ow.mux.Unlock()
	switch q.Method {
	case cdptarget.CommandCreateTarget:
		if json.Unmarshal(result, &about) == nil && ow.tracker.targets[about.Target] != nil {
			ow.assign(ow.tracker.targets[about.Target], by)
		}
	case cdptarget.CommandCreateBrowserContext:
		if json.Unmarshal(result, &about) == nil && about.Context != "" {
			ow.contextOwners[about.Context], ow.createdContexts[about.Context] = by.SessionKey(), by.SessionKey()
		}
	case cdptarget.CommandDisposeBrowserContext:
		if json.Unmarshal(q.Params, &about) == nil {
			delete(ow.createdContexts, about.Context)
		}
	}
	if domain := api.DomainOf(q.Method); domain != "Target" && domain != "Browser" {
		ow.domainOwners[domain] = by.SessionKey()
	}
}

// ownsContext reports whether a browser context is that of a caller's session. The default context is the person's. The
// engine is locked.
func (ow *owners) ownsContext(by api.Caller, id string) bool {
	owner, known := ow.contextOwners[id]
	if !known && !ow.tracker.external {
		owner = api.DefaultSession
	}
	return by.CanSee(owner)
}

// locate returns the target that a caller's selector names, and the frame in it, which is the target's own id unless
// the selector is the id of a frame inside.
func (ow *owners) locate(by api.Caller, selector string) (t *target, frame string, err *api.Error) {
	ow.mux.Lock()
	f := ow.tracker.frames[selector]
	inside := f != nil && ow.tracker.targets[selector] == nil && f.in != nil && !ow.isForbidden(f.url) &&
		(ow.canUse(by, f.in) || by.IsCommandLine() && !ow.isForbidden(f.in.url))
	if inside {
		t = f.in
	}
	ow.mux.Unlock()
	if inside {
		return t, selector, nil
	}
	if t, err = ow.resolve(by, selector); err != nil {
		return nil, "", err
	}
	return t, t.ID, nil
}
