// Package tenant knows what belongs to which session: targets, browser contexts, and what a session has set up for
// its pages. It limits each caller to what belongs to its session, and a plugin's pages to what the plugin was
// granted.
package tenant

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	cdptarget "github.com/chromedp/cdproto/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/manifest"
)

// Each target belongs to the session in which it was opened, together with its popups, frames and workers. Everything
// in a browser context belongs to the session of that context, whoever opened it there.

// Owners knows to which session each target, event and download belongs, and which target is the current one of each.
type Owners struct {
	mux     *mux.Mux
	sender  *target.Sender
	tracker *target.Tracker
	events  *event.Events

	// HiddenURL is the URL at which the keeper's own pages begin. It cannot be guessed: a page of another caller with
	// this URL would be hidden, too.
	HiddenURL string
	// contextOwners maps ids of browser contexts to their sessions. createdContexts has the contexts that sessions
	// created by their own commands.
	contextOwners, createdContexts map[string]string

	current        map[string]*target.Target // by session
	domainOwners   map[string]string         // by domain, the session that last used a domain of the browser itself
	requestedPages []requestedPage           // pages that other pages have requested, the newest last

	Setups *setups
}

// New returns the owners of the targets whose events ev stores, and the scopes of sessions.
func New(ev *event.Events) (*Owners, *Tenancy) {
	tr := ev.Tracker
	ow := &Owners{
		mux: tr.Mux, sender: tr.Sender, tracker: tr, events: ev,
		HiddenURL:     api.BlankURL + "#" + rand.Text(),
		contextOwners: map[string]string{}, createdContexts: map[string]string{},
		current:      map[string]*target.Target{},
		domainOwners: map[string]string{},
		Setups:       newSetups(tr.Mux),
	}
	tr.Observe(follower{ow})
	return ow, &Tenancy{mux: ow.mux, sender: ow.sender, tracker: tr, events: ev, owners: ow,
		scopes: map[string]*Scope{}, scopeLock: make(chan struct{}, 1)}
}

// adopt assigns a target to the session of its context, or of the target that opened it. The mux is locked.
func (ow *Owners) adopt(t, from *target.Target) {
	if owner := ow.contextOwners[t.Context]; owner != "" {
		t.Owner, t.OwnerTentative = owner, false
	} else if from != nil && (t.Owner == "" || t.OwnerTentative) {
		t.Owner, t.OwnerTentative = from.Owner, false
	}
	if from != nil && from.Owner == t.Owner {
		t.Origin = from.Origin
	}
}

// guessOwner sets the origin of a new target without an opener. It takes the origin of the first command under way
// that creates a target in its session, or of the page that has just requested its URL. The latter happens on a
// Ctrl-click, for example. A target without a session, in our own browser, gets a tentative owner: the owner of that
// page, or else the person. The mux is locked.
func (ow *Owners) guessOwner(t *target.Target) {
	if t.Owner == "" {
		if !ow.tracker.Started {
			return
		}
		t.Owner, t.Origin, t.OwnerTentative = api.DefaultSession, originOf(api.CommandLine), true
	}
	if t.Kind != "page" {
		return
	}
	if p := ow.creating(t.Owner); p != nil {
		t.Origin = originOf(p.By)
		return
	}
	for i, a := range ow.requestedPages {
		if a.url == t.URL && a.context == t.Context && time.Since(a.at) < requestedPageTTL {
			t.Owner, t.Origin, t.Opener = a.owner, a.origin, a.opener
			ow.requestedPages = slices.Delete(ow.requestedPages, i, i+1)
			return
		}
	}
}

// creating returns the first command under way that creates a target for a session. The mux is locked.
func (ow *Owners) creating(session string) *mux.Pending {
	for _, p := range ow.mux.Waiting(func(*mux.Address) bool { return true }) {
		if p.Method == cdptarget.CommandCreateTarget && p.By.Name != "" && p.By.SessionKey() == session {
			return p
		}
	}
	return nil
}

// originOf returns the origin of the pages that a caller opens.
func originOf(c api.Caller) target.Origin {
	return target.Origin{Person: c.IsCommandLine(), Connection: c.Connection}
}

// requestedPage is a page that another page has requested.
type requestedPage struct {
	url, owner, context, opener string
	origin                      target.Origin
	at                          time.Time
}

const (
	requestedPageTTL  = 10 * time.Second
	maxRequestedPages = 16
)

// assign makes the session of the caller that requested a new target its owner. Concurrent requests may exceed the
// page limit, so assign enforces it again. The mux is locked.
func (ow *Owners) assign(t *target.Target, by api.Caller) {
	if t.Owner == "" || t.OwnerTentative {
		t.Owner, t.OwnerTentative = by.SessionKey(), false
	}
	if t.Owner == by.SessionKey() {
		t.Origin = originOf(by)
		ow.enforcePageLimit(t)
		ow.Setups.apply(t)
	}
}

// Claim gives a page without an owner to the first session that uses it. Pages of an external browser stay without
// an owner. The mux is locked.
func (ow *Owners) Claim(by api.Caller, t *target.Target) {
	if root := t.Root(); root != nil && root.Owner == "" && !ow.tracker.External && root.Kind == "page" {
		ow.TakeOver(by, root)
	}
}

// TakeSpare gives the browser's initial page to a caller, if nobody uses it yet. It returns nil if there is none.
func (ow *Owners) TakeSpare(by api.Caller) *target.Target {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	t := ow.tracker.SparePage
	ow.tracker.SparePage = nil
	if t == nil || t.Closed || t.Crashed || t.Dialog != nil || t.Owner != "" && !by.CanSee(t.Owner) {
		return nil
	}
	ow.TakeOver(by, t)
	return t
}

// GiveBack makes a page the spare one again.
func (ow *Owners) GiveBack(t *target.Target) {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	ow.tracker.SparePage, t.Owner, t.Origin = t, "", target.Origin{}
}

// TakeOver makes a caller's session the owner of a page that had none, and of its stored events. A page that is in use
// is not spare. The mux is locked.
func (ow *Owners) TakeOver(by api.Caller, t *target.Target) {
	t.Owner, t.Origin = by.SessionKey(), originOf(by)
	if ow.tracker.SparePage == t {
		ow.tracker.SparePage = nil
	}
	ow.Setups.apply(t)
	ow.events.Journals.Reassign(t.Owner, func(r *event.Record) bool {
		return r.Target == t.ID && r.Owner == api.DefaultSession
	})
}

// CurrentOf returns the default target of the caller's session, or nil. The mux is locked.
func (ow *Owners) CurrentOf(by api.Caller) *target.Target {
	if by.Anonymous {
		return nil
	}
	if t := ow.current[by.SessionKey()]; t != nil && t.EvictErr == nil && ow.CanUse(by, t) {
		return t
	}
	return ow.newestPage(by)
}

// CanUse reports whether a caller may use a target. The target must belong to the caller's session. It must not show
// content of the browser itself either, such as the PDF viewer, which is an extension in a frame. A page that goes
// there is closed by OnURL, unless a person opened it in a session that they share. The mux is locked.
func (ow *Owners) CanUse(by api.Caller, t *target.Target) bool {
	switch {
	case !by.CanSee(t.Owner):
		return false
	case by.IsCommandLine():
		return true
	case t.Kind == "page":
		return !t.Origin.Person || api.MayShow(t.URL)
	}
	return api.IsFromWeb(t.URL)
}

// newestPage returns the newest page that a caller may use. The mux is locked.
func (ow *Owners) newestPage(by api.Caller) *target.Target {
	for _, t := range slices.Backward(ow.tracker.All) {
		if t.Kind == "page" && t.EvictErr == nil && ow.CanUse(by, t) {
			return t
		}
	}
	return nil
}

// SetCurrent makes t the default target of the caller's session.
func (ow *Owners) SetCurrent(by api.Caller, t *target.Target) {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	ow.current[by.SessionKey()] = t
}

// visibleTo returns the targets that a caller may use, the oldest first. The mux is locked.
func (ow *Owners) visibleTo(by api.Caller) []*target.Target {
	return slices.DeleteFunc(slices.Clone(ow.tracker.All), func(t *target.Target) bool { return !ow.CanUse(by, t) })
}

// ownerOf returns the owner of an event: the owner of the target that the event reports, or else of the target in
// whose session it arrived. The session of a page can report targets of others, too. The mux is locked.
func (ow *Owners) ownerOf(t *target.Target, method string, params json.RawMessage) string {
	if reportsTarget(method) {
		if owner, known := ow.ownerOfReported(params); known || t == nil {
			return owner
		}
	}
	if t != nil {
		return t.Owner
	}
	switch method {
	case cdpbrowser.DownloadWillBegin.Method, cdpbrowser.DownloadProgress.Method:
		return ow.events.OwnerOfDownload(params)
	}
	return ow.domainOwners[api.DomainOf(method)]
}

// reportsTarget reports whether an event is about another target than the one in whose session it arrived.
func reportsTarget(method string) bool {
	return slices.Contains([]string{cdptarget.TargetCreated.Method, cdptarget.TargetInfoChanged.Method,
		cdptarget.AttachedToTarget.Method, cdptarget.TargetDestroyed.Method, cdptarget.TargetCrashed.Method,
		cdptarget.DetachedFromTarget.Method}, method)
}

// reportedBy returns the target that an event is about. This keeps events about the person's files from agents in a
// session that the person shares.
func (ow *Owners) reportedBy(t *target.Target, method string, params json.RawMessage) *target.Target {
	if reportsTarget(method) {
		return ow.tracker.ByID[cmp.Or(scan.Text(params, "targetInfo", "targetId"), scan.Text(params, "targetId"))]
	}
	return t
}

// ownerOfReported returns the owner of the target that an event reports. The mux is locked.
func (ow *Owners) ownerOfReported(params json.RawMessage) (owner string, known bool) {
	info := scan.Field(params, "targetInfo")
	reported := ow.tracker.ByID[scan.Text(info, "targetId")]
	if reported != nil && reported.Hidden {
		return api.Disowned, true
	}
	if owner := ow.contextOwners[scan.Text(info, "browserContextId")]; owner != "" {
		return owner, true
	}
	reported = cmp.Or(reported, ow.tracker.ByID[scan.Text(params, "targetId")],
		ow.tracker.Sessions[scan.Text(params, "sessionId")], ow.tracker.ByID[scan.Text(info, "openerId")])
	if reported == nil {
		return "", false
	}
	return reported.Owner, true
}

// ListTargets returns the targets that a caller may use, the oldest first. With all it returns the targets of all
// sessions.
func (ow *Owners) ListTargets(by api.Caller, all bool) []api.Target {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	seen := ow.visibleTo(by)
	if all {
		seen = ow.tracker.All
	}
	current := ow.CurrentOf(by)
	list := make([]api.Target, 0, len(seen))
	for i, t := range seen {
		one := api.Target{Index: i, ID: t.ID, Type: t.Kind, URL: t.URL, Title: t.Title, Current: t == current,
			Attached: t.Session != "", Crashed: t.Crashed, Opener: t.Opener, Since: t.Appeared,
			Dialog: t.Dialog}
		if t.Parent != nil {
			one.Parent = t.Parent.ID
		}
		if t.Owner != by.SessionKey() {
			one.Owner = strings.TrimPrefix(t.Owner, "user/")
		}
		list = append(list, one)
	}
	return list
}

// Resolve returns the target that a caller's selector names. For targets that the caller may not use it returns the
// same error as for missing ones. The person at the command line can name any target by its id.
func (ow *Owners) Resolve(by api.Caller, selector string) (*target.Target, *api.Error) {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	if ow.mux.Err() != nil {
		return nil, ow.mux.Err()
	}
	if selector == "" {
		if t := ow.CurrentOf(by); t != nil {
			return t, nil
		}
		if by.Anonymous {
			return nil, api.Errorf(api.CodeNotFound,
				"a client without a session has no current page: name one as target, by its id")
		}
		e := api.Errorf(api.CodeNotFound, "this session has no page in the browser; open one first")
		switch {
		case by.IsPerson():
			e.Message = "the browser has no page; open one first"
		case by.IsCommandLine():
			e.Message = "session " + api.DisplayName(by.SessionKey()) + " has no page in this browser; open one first"
		}
		e.NoPage = true
		return nil, e
	}
	all := ow.visibleTo(by)
	if t := ow.tracker.ByID[selector]; t != nil && (ow.CanUse(by, t) || by.IsCommandLine()) {
		return t, nil
	}
	if n, err := strconv.Atoi(selector); err == nil && len(selector) < 4 {
		if n < 0 || n >= len(all) {
			return nil, api.Errorf(api.CodeNotFound, "there is no target %d; there are %d, numbered from 0", n, len(all))
		}
		return all[n], nil
	}
	for _, match := range []func(*target.Target) bool{
		func(t *target.Target) bool {
			return len(selector) >= 4 && strings.HasPrefix(t.ID, strings.ToUpper(selector))
		},
		func(t *target.Target) bool { return t.Kind == "page" && strings.Contains(t.URL, selector) },
		func(t *target.Target) bool { return strings.Contains(t.URL, selector) },
	} {
		found := slices.DeleteFunc(slices.Clone(all), func(t *target.Target) bool { return !match(t) })
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			var names []string
			for _, t := range found[:min(len(found), 5)] {
				names = append(names, t.ID+" "+manifest.Clip(t.URL, 60))
			}
			return nil, api.Errorf(api.CodeNotFound, "%q matches %d targets: %s; use an id",
				manifest.Clip(selector, 80), len(found), strings.Join(names, ", "))
		}
	}
	return nil, api.Errorf(api.CodeNotFound, "no target matches %q by id, index or URL; there are %d targets",
		manifest.Clip(selector, 80), len(all))
}

// StoredEvents returns the stored events that a caller may see.
func (ow *Owners) StoredEvents(by api.Caller, q api.EventsRequest) (api.Events, *api.Error) {
	return ow.events.Stored(by, q, func(selector string) (*target.Target, *api.Error) { return ow.Resolve(by, selector) })
}

// checkIDs rejects target and session ids that do not belong to the caller, with the same error whether they exist
// or not. The mux is locked.
func (ow *Owners) checkIDs(by api.Caller, params map[string]json.RawMessage) *api.Error {
	for _, kind := range []struct {
		name string
		find func(id string) *target.Target
	}{
		{"targetId", func(id string) *target.Target { return ow.tracker.ByID[id] }},
		{"sessionId", func(id string) *target.Target { return ow.tracker.SessionOf(id) }},
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
		if t == nil || !ow.CanUse(by, t) {
			return api.Errorf(api.CodeNotFound, "%s has no target with the %s %q",
				manifest.Clip(by.Name, 80), kind.name, manifest.Clip(id, 80))
		}
	}
	return nil
}

// OnBrowserCommand records what a caller's command to the browser itself has created, and who receives its events.
func (ow *Owners) OnBrowserCommand(by api.Caller, q api.CallRequest, result json.RawMessage) {
	var about struct {
		Target  string `json:"targetId"`
		Context string `json:"browserContextId"`
	}
	ow.mux.Lock()
	defer ow.mux.Unlock()
	switch q.Method {
	case cdptarget.CommandCreateTarget:
		if json.Unmarshal(result, &about) == nil && ow.tracker.ByID[about.Target] != nil {
			ow.assign(ow.tracker.ByID[about.Target], by)
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

// ownsContext reports whether a browser context belongs to a caller's session. The default context belongs to the
// person. The mux is locked.
func (ow *Owners) ownsContext(by api.Caller, id string) bool {
	owner, known := ow.contextOwners[id]
	if !known && !ow.tracker.External {
		owner = api.DefaultSession
	}
	return by.CanSee(owner)
}

// Locate returns the target that a caller's selector names, and the frame in it. The frame is the target's own id,
// unless the selector is the id of a frame inside the target.
func (ow *Owners) Locate(by api.Caller, selector string) (t *target.Target, frame string, err *api.Error) {
	ow.mux.Lock()
	f := ow.tracker.Frames[selector]
	inside := f != nil && ow.tracker.ByID[selector] == nil && f.In != nil &&
		(ow.CanUse(by, f.In) || by.IsCommandLine())
	if inside {
		t = f.In
	}
	ow.mux.Unlock()
	if inside {
		return t, selector, nil
	}
	if t, err = ow.Resolve(by, selector); err != nil {
		return nil, "", err
	}
	return t, t.ID, nil
}

// maxPages limits the pages of each session, including popups. Pages that the person opens do not count.
const maxPages = 32

// checkPageLimit returns an error if the caller may not open another page. The mux is locked.
func (ow *Owners) checkPageLimit(by api.Caller) *api.Error {
	if by.IsCommandLine() || ow.countPages(by.SessionKey()) < maxPages {
		return nil
	}
	return api.Errorf(api.CodeLimitExceeded, "%s has %d pages open in this browser, which is the limit: "+
		"close one first, by page.tabs with the action close", manifest.Clip(by.Name, 80), maxPages)
}

func (ow *Owners) countPages(owner string) (n int) {
	for _, t := range ow.tracker.All {
		if t.Kind == "page" && t.Owner == owner && !t.Origin.Person && t.EvictErr == nil {
			n++
		}
	}
	return n
}

// enforcePageLimit closes a page that was opened without a request, such as a popup, if its owner has too many. The
// mux is locked.
func (ow *Owners) enforcePageLimit(t *target.Target) {
	if t.Kind != "page" || t.Owner == "" || ow.countPages(t.Owner) <= maxPages {
		return
	}
	ow.evict(t, api.Errorf(api.CodeLimitExceeded, "the page was closed: %s has %d pages open, which is the limit",
		api.DisplayName(t.Owner), maxPages))
}

// evict closes a page that its owner may not have. The mux is locked.
func (ow *Owners) evict(t *target.Target, why *api.Error) {
	t.EvictErr = why
	t.EvictErr.Target = t.ID
	ow.mux.FailPending(t.At(), t.EvictErr)
	ow.sender.PostClose(t.ID)
}

// NewPage creates a blank page for a caller in a browser context. An empty in means the default context.
func (ow *Owners) NewPage(ctx context.Context, by api.Caller, in cdp.BrowserContextID) (
	t *target.Target, err *api.Error,
) {
	if err = mux.Locked(ow.mux, func() *api.Error { return ow.checkPageLimit(by) }); err != nil {
		return nil, err
	}
	params := cdptarget.CreateTargetParams{URL: api.BlankURL, BrowserContextID: in}
	return ow.tracker.CreatePage(ctx, params, target.CallOptions{By: by}, func(t *target.Target) { ow.assign(t, by) })
}

// onURL closes a page that shows a URL reserved for the person and that the person did not open. No parameter allows
// such a URL, and Chrome does not let a page navigate there, so this is a second line of defense. The mux is locked.
func (ow *Owners) onURL(t *target.Target, url string) {
	if t.Owner == "" || t.Kind != "page" || t.EvictErr != nil || t.Origin.Person || api.MayShow(url) {
		return
	}
	ow.evict(t, api.Errorf(api.CodeDenied,
		"the page was closed because it showed %s: %s may only open http and https pages",
		manifest.Clip(url, 100), api.DisplayName(t.Owner)))
}
