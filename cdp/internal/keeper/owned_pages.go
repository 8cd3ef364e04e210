package keeper

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/manifest"
)

// maxPages limits the pages of each session, including popups. Those that the person opens do not count.
const maxPages = 32

// checkPageLimit returns an error if the caller may not open another page. The engine is locked.
func (ow *owners) checkPageLimit(by api.Caller) *api.Error {
	if by.IsCommandLine() || ow.countPages(by.SessionKey()) < maxPages {
		return nil
	}
	return api.Errorf(api.CodeLimitExceeded, "%s has %d pages open in this browser, which is the limit: "+
		"close one first, by cdp.close with its target", manifest.Clip(by.Name, 80), maxPages)
}

func (ow *owners) countPages(owner string) (n int) {
	for _, t := range ow.tracker.order {
		if t.kind == "page" && t.owner == owner && !t.origin.person && t.evictErr == nil {
			n++
		}
	}
	return n
}

// enforcePageLimit closes a page that was opened without a request, such as a popup, if its owner has too many. The
// engine is locked.
func (ow *owners) enforcePageLimit(t *target) {
	if t.kind != "page" || t.owner == "" || ow.countPages(t.owner) <= maxPages {
		return
	}
	ow.evict(t, api.Errorf(api.CodeLimitExceeded, "the page was closed: %s has %d pages open, which is the limit",
		api.DisplayName(t.owner), maxPages))
}

// evict closes a page that its owner may not have. The engine is locked.
func (ow *owners) evict(t *target, why *api.Error) {
	t.evictErr = why
	t.evictErr.Target = t.ID
	ow.mux.FailPending(t.at(), t.evictErr)
	ow.sender.postClose(cdptarget.ID(t.ID))
}

// newPage creates a blank page for a caller in a browser context. An empty in means the default context.
func (ow *owners) newPage(ctx context.Context, by api.Caller, in cdp.BrowserContextID) (t *target, err *api.Error) {
	ow.mux.Lock()
	err = ow.checkPageLimit(by)
	ow.mux.Unlock()
	if err != nil {
		return nil, err
	}
	params := cdptarget.CreateTargetParams{URL: api.BlankURL, BrowserContextID: in}
	return ow.tracker.createPage(ctx, params, callOptions{by: by}, func(t *target) { ow.assign(t, by) })
}

// onURL closes a page that the person did not open and that shows a URL reserved for the person, and any page that
// shows a forbidden origin. No parameter allows such a URL, and Chrome does not let a page navigate to the former; this
// is the second line of defense. The engine is locked.
func (ow *owners) onURL(t *target, url string) {
	if t.owner == "" || t.kind != "page" || t.evictErr != nil {
		return
	}
	switch {
	case ow.isForbidden(url):
		ow.evict(t, api.Errorf(api.CodeDenied, "the page was closed because it showed %s, which no session may use",
			manifest.Clip(url, 100)))
	case !t.origin.person && !api.MayShow(url):
		ow.evict(t, api.Errorf(api.CodeDenied,
			"the page was closed because it showed %s: %s may only open http and https pages",
			manifest.Clip(url, 100), api.DisplayName(t.owner)))
	}
}
