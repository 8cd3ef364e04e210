package tenant

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/manifest"
)

// maxPages limits the pages of each session, including popups. Those that the person opens do not count.
const maxPages = 32

// checkPageLimit returns an error if the caller may not open another page. The mux is locked.
func (ow *Owners) checkPageLimit(by api.Caller) *api.Error {
	if by.IsCommandLine() || ow.countPages(by.SessionKey()) < maxPages {
		return nil
	}
	return api.Errorf(api.CodeLimitExceeded, "%s has %d pages open in this browser, which is the limit: "+
		"close one first, by cdp.close with its target", manifest.Clip(by.Name, 80), maxPages)
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
	ow.mux.Lock()
	err = ow.checkPageLimit(by)
	ow.mux.Unlock()
	if err != nil {
		return nil, err
	}
	params := cdptarget.CreateTargetParams{URL: api.BlankURL, BrowserContextID: in}
	return ow.tracker.CreatePage(ctx, params, target.CallOptions{By: by}, func(t *target.Target) { ow.assign(t, by) })
}

// onURL closes a page that the person did not open and that shows a URL reserved for the person, and any page that
// shows a forbidden origin. No parameter allows such a URL, and Chrome does not let a page navigate to the former; this
// is the second line of defense. The mux is locked.
func (ow *Owners) onURL(t *target.Target, url string) {
	if t.Owner == "" || t.Kind != "page" || t.EvictErr != nil {
		return
	}
	switch {
	case ow.isForbidden(url):
		ow.evict(t, api.Errorf(api.CodeDenied, "the page was closed because it showed %s, which no session may use",
			manifest.Clip(url, 100)))
	case !t.Origin.Person && !api.MayShow(url):
		ow.evict(t, api.Errorf(api.CodeDenied,
			"the page was closed because it showed %s: %s may only open http and https pages",
			manifest.Clip(url, 100), api.DisplayName(t.Owner)))
	}
}
