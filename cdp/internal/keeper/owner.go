package keeper

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/manifest"
)

// Each target belongs to the caller that opened it, together with everything that comes of it: popups, frames and
// workers. Everything in a plugin's browser context belongs to the plugin, whoever opened it there.

// owners knows to which caller each target, event and download belongs, and which target is the current one of each.
type owners struct {
	*tracker

	contextOwners  map[string]string  // plugin names by the id of their browser context
	current        *target            // of the command line
	callerCurrent  map[string]*target // of the other callers, by name
	requestedPages []requestedPage    // by pages, the newest last
	downloadOwners map[string]string  // of downloads under way, by download id
}

func newOwners(tr *tracker) *owners {
	ow := &owners{
		tracker:        tr,
		contextOwners:  map[string]string{},
		callerCurrent:  map[string]*target{},
		downloadOwners: map[string]string{},
	}
	tr.ownership = ow
	return ow
}

// onTarget implements [ownership].
func (ow *owners) onTarget(t *target, context string, via *target, fresh bool) {
	ow.adopt(t, context, via)
	if fresh {
		ow.guessOwner(t)
	}
	ow.onURL(t, t.url)
	if fresh {
		ow.enforcePageLimit(t)
	}
	if ow.current == nil && t.kind == "page" && !ow.ownedByPlugin(t) {
		ow.current = t
	}
}

// onForgotten implements [ownership].
func (ow *owners) onForgotten(t *target) {
	if ow.current == t {
		ow.current = ow.newestPage(commandLine)
	}
	maps.DeleteFunc(ow.callerCurrent, func(_ string, current *target) bool { return current == t })
}

// adopt sets the owner of a target once its origin is known. The engine is locked.
func (ow *owners) adopt(t *target, context string, via *target) {
	if owner := ow.contextOwners[context]; owner != "" {
		t.owner, t.ownerTentative = owner, false
	}
	if t.owner != "" && !t.ownerTentative {
		return
	}
	if opener := ow.targets[t.opener]; opener != nil {
		t.owner, t.ownerTentative = opener.owner, false
	} else if via != nil {
		t.owner, t.ownerTentative = via.owner, false
	}
}

// guessOwner sets the tentative owner of a new target of unknown origin in our own browser. That is the caller that
// waits for a new target, else the owner of the page that has just requested its URL, as by a Ctrl-click, which
// leaves no opener, else the command line. The engine is locked.
func (ow *owners) guessOwner(t *target) {
	if t.owner != "" || !ow.started {
		return
	}
	t.owner, t.ownerTentative = commandLine.Name, true
	if t.kind != "page" {
		return
	}
	var first *pending
	for _, p := range ow.pending {
		creates := p.method == cdptarget.CommandCreateTarget && p.by != "" && !(Caller{Name: p.by}).isPlugin()
		if creates && (first == nil || p.id < first.id) {
			first = p
		}
	}
	if first != nil {
		t.owner = first.by
		return
	}
	for i, a := range ow.requestedPages {
		if a.url == t.url && time.Since(a.at) < requestedPageTTL {
			t.owner = a.owner
			ow.requestedPages = slices.Delete(ow.requestedPages, i, i+1)
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
	ow.requestedPages = append(ow.requestedPages, requestedPage{p.URL, t.owner, time.Now()})
}

// assign makes the caller that requested a new target its owner. Concurrent requests may exceed the page limit, so
// it is enforced again. The engine is locked.
func (ow *owners) assign(t *target, by Caller) {
	if t.owner == "" || t.ownerTentative {
		t.owner, t.ownerTentative = by.Name, false
		ow.enforcePageLimit(t)
	}
}

// claim gives a page without an owner to the first caller that uses it. Pages of an external browser stay without
// an owner. The engine is locked.
func (ow *owners) claim(by Caller, t *target) {
	if root := t.root(); root != nil && root.owner == "" && !ow.external && root.kind == "page" {
		ow.takeOver(by, root)
	}
}

// takeOver makes a caller the owner of a page that had none, and of its stored events. The engine is locked.
func (ow *owners) takeOver(by Caller, t *target) {
	t.owner = by.Name
	ow.events.reassign(by.Name, func(r *record) bool { return r.target == t.id && r.owner == "" })
}

// currentOf returns the caller's default target, or nil. The engine is locked.
func (ow *owners) currentOf(by Caller) *target {
	if by.isCommandLine() {
		return ow.current
	}
	if t := ow.callerCurrent[by.Name]; t != nil && t.evictErr == nil {
		return t
	}
	if ow.current != nil && ow.canUse(by, ow.current) {
		return ow.current
	}
	return ow.newestPage(by)
}

// canUse reports whether a caller may use a target. The target must belong to the caller. It must not show content
// of the browser itself either, such as the PDF viewer, an extension in a frame of the page; a caller's page that
// goes there is closed by onURL. The engine is locked.
func (ow *owners) canUse(by Caller, t *target) bool {
	return by.canSee(t.owner) && (by.isCommandLine() || t.kind == "page" && t.owner != "" || isFromWeb(t.url))
}

// newestPage returns the newest page that a caller may use. For the command line, pages of plugins do not count,
// because a call without a target never means them. The engine is locked.
func (ow *owners) newestPage(by Caller) (found *target) {
	for _, t := range ow.order {
		if t.kind == "page" && t.evictErr == nil && ow.canUse(by, t) && !(by.isCommandLine() && ow.ownedByPlugin(t)) {
			found = t
		}
	}
	return found
}

func (ow *owners) ownedByPlugin(t *target) bool { return Caller{Name: t.owner}.isPlugin() }

// setCurrent makes t the caller's default target. The engine is locked.
func (ow *owners) setCurrent(by Caller, t *target) {
	if by.isCommandLine() {
		ow.current = t
	} else {
		ow.callerCurrent[by.Name] = t
	}
}

// visibleTo returns the targets that a caller may use, the oldest first. The engine is locked.
func (ow *owners) visibleTo(by Caller) []*target {
	all := make([]*target, 0, len(ow.order))
	for _, t := range ow.order {
		if ow.canUse(by, t) {
			all = append(all, t)
		}
	}
	return all
}

// ownerOf returns the owner of an event: the owner of its session's target, or of the target that the event
// reports. The engine is locked.
func (ow *owners) ownerOf(t *target, method string, params json.RawMessage) string {
	if t != nil {
		return t.owner
	}
	switch method {
	case cdpbrowser.DownloadWillBegin.Method, cdpbrowser.DownloadProgress.Method:
		return ow.ownerOfDownload(params)
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
	if owner := ow.contextOwners[p.Info.Context]; owner != "" {
		return owner
	}
	reported := []*target{ow.targets[p.Info.ID], ow.targets[p.ID], ow.sessions[p.Session], ow.targets[p.Info.Opener]}
	for _, found := range reported {
		if found != nil {
			return found.owner
		}
	}
	return ""
}

// ownerOfDownload returns the owner of the page that began a download, or the command line if that is unknown. The
// engine is locked.
func (ow *owners) ownerOfDownload(params json.RawMessage) string {
	var p struct {
		Frame string `json:"frameId"`
		ID    string `json:"guid"`
		State string `json:"state"`
	}
	if json.Unmarshal(params, &p) != nil || ow.external {
		return ""
	}
	if t := ow.targets[p.Frame]; t != nil && len(ow.downloadOwners) < maxDownloads {
		ow.downloadOwners[p.ID] = t.owner
	}
	owner, known := ow.downloadOwners[p.ID]
	if p.State != "" && p.State != "inProgress" {
		delete(ow.downloadOwners, p.ID)
	}
	if !known {
		return commandLine.Name
	}
	return owner
}

const maxDownloads = 1024 // under way; further ones count as the command line's

// listTargets returns the targets that a caller may use, the oldest first.
func (ow *owners) listTargets(by Caller) []Target {
	ow.mu.Lock()
	defer ow.mu.Unlock()
	seen := ow.visibleTo(by)
	current := ow.currentOf(by)
	all := make([]Target, 0, len(seen))
	for i, t := range seen {
		one := Target{Index: i, ID: t.id, Type: t.kind, URL: t.url, Title: t.title, Current: t == current,
			Attached: t.session != "", Crashed: t.crashed, Opener: t.opener, Dialog: t.dialog}
		if t.parent != nil {
			one.Parent = t.parent.id
		}
		if t.owner != by.Name {
			one.Owner = t.owner
		}
		all = append(all, one)
	}
	return all
}

// resolve returns the target that a caller's selector names. For targets that the caller may not use it returns the
// same error as for missing ones.
func (ow *owners) resolve(by Caller, selector string) (*target, *Error) {
	ow.mu.Lock()
	defer ow.mu.Unlock()
	if ow.closeErr != nil {
		return nil, ow.closeErr
	}
	if selector == "" {
		if t := ow.currentOf(by); t != nil {
			return t, nil
		}
		if by.isCommandLine() {
			return nil, errf(CodeNotFound, "the browser has no page; open one first")
		}
		return nil, errf(CodeNotFound, "%s has no page in this browser; open one first", manifest.Clip(by.Name, 80))
	}
	all := ow.visibleTo(by)
	if t := ow.targets[selector]; t != nil && ow.canUse(by, t) {
		return t, nil
	}
	if n, err := strconv.Atoi(selector); err == nil && len(selector) < 4 {
		if n < 0 || n >= len(all) {
			return nil, errf(CodeNotFound, "there is no target %d; there are %d, numbered from 0", n, len(all))
		}
		return all[n], nil
	}
	for _, match := range []func(*target) bool{
		func(t *target) bool { return len(selector) >= 4 && strings.HasPrefix(t.id, strings.ToUpper(selector)) },
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
				names = append(names, t.id+" "+manifest.Clip(t.url, 60))
			}
			return nil, errf(CodeNotFound, "%q matches %d targets: %s; use an id",
				manifest.Clip(selector, 80), len(found), strings.Join(names, ", "))
		}
	}
	return nil, errf(CodeNotFound, "no target matches %q by id, index or URL; there are %d targets",
		manifest.Clip(selector, 80), len(all))
}

// checkIDs rejects target and session ids that do not belong to the caller, with the same error whether they exist
// or not. The engine is locked.
func (ow *owners) checkIDs(by Caller, params map[string]json.RawMessage) *Error {
	for _, kind := range []struct {
		name string
		find func(id string) *target
	}{
		{"targetId", func(id string) *target { return ow.targets[id] }},
		{"sessionId", func(id string) *target { return ow.sessionOf(id) }},
	} {
		raw, named := params[kind.name]
		if !named {
			continue
		}
		var id string
		if err := json.Unmarshal(raw, &id); err != nil {
			return errf(CodeInvalidArgs, "/%s is not a string", kind.name)
		}
		t := kind.find(id)
		if t == nil && !by.isPlugin() {
			continue // for example a tab, which the keeper does not track
		}
		if t == nil || !ow.canUse(by, t) {
			return errf(CodeNotFound, "%s has no target with the %s %q",
				manifest.Clip(by.Name, 80), kind.name, manifest.Clip(id, 80))
		}
	}
	return nil
}

// assignCreated makes the caller the owner of the target that its command created.
func (ow *owners) assignCreated(by Caller, result json.RawMessage) {
	var made struct {
		ID string `json:"targetId"`
	}
	if json.Unmarshal(result, &made) != nil {
		return
	}
	ow.mu.Lock()
	defer ow.mu.Unlock()
	if t := ow.targets[made.ID]; t != nil {
		ow.assign(t, by)
	}
}
