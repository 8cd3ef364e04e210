package keeper

import (
	"encoding/json"
	"slices"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"
)

// Each target belongs to the caller who opened it, and so does what comes of it: pop-ups, frames, workers. A plugin's are those of its browser
// context, whoever opened them there.

// adopt says to whom a target belongs, once it is known where it comes from. The engine is locked.
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

// guessOwner says whose a new target is taken to be that comes from nowhere in our own browser: of who waits for one, else of whose page has just asked for one, as by
// a click with Ctrl, which leaves no opener. What nobody asked for is the person's. The engine is locked.
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
		if p.method == cdptarget.CommandCreateTarget && p.by != "" && !(Caller{Name: p.by}).isPlugin() && (first == nil || p.id < first.id) {
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

// requestedPage is a page that another one has asked for.
type requestedPage struct {
	url, owner string
	at         time.Time
}

const (
	requestedPageTTL  = 10 * time.Second
	maxRequestedPages = 16
)

// onNavigationRequested remembers that a page has asked for another one. The engine is locked.
func (e *engine) onNavigationRequested(t *target, params json.RawMessage) {
	var p page.EventFrameRequestedNavigation
	if json.Unmarshal(params, &p) != nil || p.Disposition != page.ClientNavigationDispositionNewTab && p.Disposition != page.ClientNavigationDispositionNewWindow {
		return
	}
	if len(e.requestedPages) == maxRequestedPages {
		e.requestedPages = append(e.requestedPages[:0], e.requestedPages[1:]...)
	}
	e.requestedPages = append(e.requestedPages, requestedPage{p.URL, t.owner, time.Now()})
}

// assign makes a new target the caller's who asked for it. Of several asked for at once some may be too many. The engine is locked.
func (e *engine) assign(t *target, by Caller) {
	if t.owner == "" || t.ownerTentative {
		t.owner, t.ownerTentative = by.Name, false
		e.enforcePageLimit(t)
	}
}

// claim gives a page that nobody opened to the first who uses it. Those of a browser that others run stay theirs. The engine is locked.
func (e *engine) claim(by Caller, t *target) {
	if root := t.root(); root != nil && root.owner == "" && !e.external && root.kind == "page" {
		e.takeOver(by, root)
	}
}

// takeOver makes a page that was nobody's a caller's, with what is kept of it. The engine is locked.
func (e *engine) takeOver(by Caller, t *target) {
	t.owner = by.Name
	e.events.reassign(by.Name, func(r *record) bool { return r.target == t.id && r.owner == "" })
}

// currentOf is the target that a caller means who names none, nil if he has none. The engine is locked.
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

// canUse reports whether a caller may use a target: one that is his, and shows nothing of the browser's own, as the viewer of a PDF does, which is an extension
// within the page. His own pages that stray there are closed, see keepWithin. The engine is locked.
func (e *engine) canUse(by Caller, t *target) bool {
	return by.canSee(t.owner) && (by.isCommandLine() || t.kind == "page" && t.owner != "" || isFromWeb(t.url))
}

// newestPage is the page that was opened last of those that a caller may use. For the person a plugin's pages do not count: who names no target
// does not mean them. The engine is locked.
func (e *engine) newestPage(by Caller) (found *target) {
	for _, t := range e.order {
		if t.kind == "page" && t.evictErr == nil && e.canUse(by, t) && !(by.isCommandLine() && e.ownedByPlugin(t)) {
			found = t
		}
	}
	return found
}

func (e *engine) ownedByPlugin(t *target) bool { return Caller{Name: t.owner}.isPlugin() }

// setCurrent is called with the engine locked.
func (e *engine) setCurrent(by Caller, t *target) {
	if by.isCommandLine() {
		e.current = t
	} else {
		e.callerCurrent[by.Name] = t
	}
}

// visibleTo answers the targets that a caller may use, the oldest first. The engine is locked.
func (e *engine) visibleTo(by Caller) []*target {
	all := make([]*target, 0, len(e.order))
	for _, t := range e.order {
		if e.canUse(by, t) {
			all = append(all, t)
		}
	}
	return all
}

// ownerOf says whom an event concerns: the owner of its session's target, or of the target that it tells of. The engine is locked.
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
	for _, told := range []*target{e.targets[p.Info.ID], e.targets[p.ID], e.sessions[p.Session], e.targets[p.Info.Opener]} {
		if told != nil {
			return told.owner
		}
	}
	return ""
}

// ownerOfDownload is the owner of the page that has begun a download; where that is not known it is the person's. The engine is locked.
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

const maxDownloads = 1024 // under way; of more it is not known whose they are
