package keeper

import (
	"encoding/json"
	"slices"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"
)

// Each target belongs to the caller that opened it, together with everything that comes of it: popups, frames and
// workers. Everything in a plugin's browser context belongs to the plugin, whoever opened it there.

// adopt sets the owner of a target once its origin is known. The engine is locked.
func (e *engine) adopt(t *target, context string, via *target) {
	if owner := e.contextOwners[context]; owner != "" {
		t.owner, t.ownerTentative = owner, false
	}
	if t.owner != "" && !t.ownerTentative {
		return
	}
	if opener := e.targets[t.opener]; opener != nil {
		t.owner, t.ownerTentative = opener.owner, false
	} else if via != nil {
		t.owner, t.ownerTentative = via.owner, false
	}
}

// guessOwner sets the tentative owner of a new target of unknown origin in our own browser. That is the caller that
// waits for a new target, else the owner of the page that has just requested its URL, as by a Ctrl-click, which
// leaves no opener, else the command line. The engine is locked.
func (e *engine) guessOwner(t *target) {
	if t.owner != "" || !e.started {
		return
	}
	t.owner, t.ownerTentative = commandLine.Name, true
	if t.kind != "page" {
		return
	}
	var first *pending
	for _, p := range e.pending {
		creates := p.method == cdptarget.CommandCreateTarget && p.by != "" && !(Caller{Name: p.by}).isPlugin()
		if creates && (first == nil || p.id < first.id) {
			first = p
		}
	}
	if first != nil {
		t.owner = first.by
		return
	}
	for i, a := range e.requestedPages {
		if a.url == t.url && time.Since(a.at) < requestedPageTTL {
			t.owner = a.owner
			e.requestedPages = slices.Delete(e.requestedPages, i, i+1)
			return
		}
	}
}

// requestedPage is a page that another page has requested.
type requestedPage struct {
	url, owner string
	at         time.Time
}

const (
	requestedPageTTL  = 10 * time.Second
	maxRequestedPages = 16
)

// onNavigationRequested records that a page has requested another one. The engine is locked.
func (e *engine) onNavigationRequested(t *target, params json.RawMessage) {
	var p page.EventFrameRequestedNavigation
	if json.Unmarshal(params, &p) != nil ||
		p.Disposition != page.ClientNavigationDispositionNewTab &&
			p.Disposition != page.ClientNavigationDispositionNewWindow {
		return
	}
	if len(e.requestedPages) == maxRequestedPages {
		e.requestedPages = append(e.requestedPages[:0], e.requestedPages[1:]...)
	}
	e.requestedPages = append(e.requestedPages, requestedPage{p.URL, t.owner, time.Now()})
}

// assign makes the caller that requested a new target its owner. Concurrent requests may exceed the page limit, so
// it is enforced again. The engine is locked.
func (e *engine) assign(t *target, by Caller) {
	if t.owner == "" || t.ownerTentative {
		t.owner, t.ownerTentative = by.Name, false
		e.enforcePageLimit(t)
	}
}

// claim gives a page without an owner to the first caller that uses it. Pages of an external browser stay without
// an owner. The engine is locked.
func (e *engine) claim(by Caller, t *target) {
	if root := t.root(); root != nil && root.owner == "" && !e.external && root.kind == "page" {
		e.takeOver(by, root)
	}
}

// takeOver makes a caller the owner of a page that had none, and of its stored events. The engine is locked.
func (e *engine) takeOver(by Caller, t *target) {
	t.owner = by.Name
	e.events.reassign(by.Name, func(r *record) bool { return r.target == t.id && r.owner == "" })
}

// currentOf returns the caller's default target, or nil. The engine is locked.
func (e *engine) currentOf(by Caller) *target {
	if by.isCommandLine() {
		return e.current
	}
	if t := e.callerCurrent[by.Name]; t != nil && t.evictErr == nil {
		return t
	}
	if e.current != nil && e.canUse(by, e.current) {
		return e.current
	}
	return e.newestPage(by)
}

// canUse reports whether a caller may use a target. The target must belong to the caller. It must not show content
// of the browser itself either, such as the PDF viewer, an extension in a frame of the page; a caller's page that
// goes there is closed by enforceURL. The engine is locked.
func (e *engine) canUse(by Caller, t *target) bool {
	return by.canSee(t.owner) && (by.isCommandLine() || t.kind == "page" && t.owner != "" || isFromWeb(t.url))
}

// newestPage returns the newest page that a caller may use. For the command line, pages of plugins do not count,
// because a call without a target never means them. The engine is locked.
func (e *engine) newestPage(by Caller) (found *target) {
	for _, t := range e.order {
		if t.kind == "page" && t.evictErr == nil && e.canUse(by, t) && !(by.isCommandLine() && e.ownedByPlugin(t)) {
			found = t
		}
	}
	return found
}

func (e *engine) ownedByPlugin(t *target) bool { return Caller{Name: t.owner}.isPlugin() }

// setCurrent makes t the caller's default target. The engine is locked.
func (e *engine) setCurrent(by Caller, t *target) {
	if by.isCommandLine() {
		e.current = t
	} else {
		e.callerCurrent[by.Name] = t
	}
}

// visibleTo returns the targets that a caller may use, the oldest first. The engine is locked.
func (e *engine) visibleTo(by Caller) []*target {
	all := make([]*target, 0, len(e.order))
	for _, t := range e.order {
		if e.canUse(by, t) {
			all = append(all, t)
		}
	}
	return all
}

// ownerOf returns the owner of an event: the owner of its session's target, or of the target that the event
// reports. The engine is locked.
func (e *engine) ownerOf(t *target, method string, params json.RawMessage) string {
	if t != nil {
		return t.owner
	}
	switch method {
	case cdpbrowser.DownloadWillBegin.Method, cdpbrowser.DownloadProgress.Method:
		return e.ownerOfDownload(params)
	case cdptarget.TargetCreated.Method, cdptarget.TargetInfoChanged.Method, cdptarget.AttachedToTarget.Method,
		cdptarget.TargetDestroyed.Method, cdptarget.TargetCrashed.Method, cdptarget.DetachedFromTarget.Method:
	default:
		return ""
	}
	var p struct {
		Info    targetInfo `json:"targetInfo"`
		ID      string     `json:"targetId"`
		Session string     `json:"sessionId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	if owner := e.contextOwners[p.Info.Context]; owner != "" {
		return owner
	}
	reported := []*target{e.targets[p.Info.ID], e.targets[p.ID], e.sessions[p.Session], e.targets[p.Info.Opener]}
	for _, found := range reported {
		if found != nil {
			return found.owner
		}
	}
	return ""
}

// ownerOfDownload returns the owner of the page that began a download, or the command line if that is unknown. The
// engine is locked.
func (e *engine) ownerOfDownload(params json.RawMessage) string {
	var p struct {
		Frame string `json:"frameId"`
		ID    string `json:"guid"`
		State string `json:"state"`
	}
	if json.Unmarshal(params, &p) != nil || e.external {
		return ""
	}
	if t := e.targets[p.Frame]; t != nil && len(e.downloadOwners) < maxDownloads {
		e.downloadOwners[p.ID] = t.owner
	}
	owner, known := e.downloadOwners[p.ID]
	if p.State != "" && p.State != "inProgress" {
		delete(e.downloadOwners, p.ID)
	}
	if !known {
		return commandLine.Name
	}
	return owner
}

const maxDownloads = 1024 // under way; further ones count as the command line's
