package keeper

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/manifest"
)

// maxPages limits the pages of each caller except the command line, including popups.
const maxPages = 32

// checkPageLimit returns an error if the caller may not open another page. The engine is locked.
func (ow *owners) checkPageLimit(by Caller) *Error {
	if by.isCommandLine() || ow.countPages(by.Name) < maxPages {
		return nil
	}
	return errf(CodeLimitExceeded, "%s has %d pages open in this browser, which is the limit: "+
		"close one first, by cdp.close with its target", manifest.Clip(by.Name, 80), maxPages)
}

func (ow *owners) countPages(owner string) (n int) {
	for _, t := range ow.order {
		if t.kind == "page" && t.owner == owner && t.evictErr == nil {
			n++
		}
	}
	return n
}

// enforcePageLimit closes a page that was opened without a request, such as a popup, if its owner has too many. The
// engine is locked.
func (ow *owners) enforcePageLimit(t *target) {
	by := Caller{Name: t.owner}
	if t.kind != "page" || t.owner == "" || by.isCommandLine() || ow.countPages(t.owner) <= maxPages {
		return
	}
	ow.evict(t, errf(CodeLimitExceeded, "the page was closed: %s has %d pages open, which is the limit",
		manifest.Clip(t.owner, 80), maxPages))
}

// evict closes a page that its owner may not have. The engine is locked.
func (ow *owners) evict(t *target, why *Error) {
	t.evictErr = why
	t.evictErr.Target = t.id
	ow.failPending(t, t.evictErr)
	ow.postClose(cdptarget.ID(t.id))
}

// newPage creates a blank page for a caller in a browser context. An empty in means the default context.
func (ow *owners) newPage(ctx context.Context, by Caller, in cdp.BrowserContextID) (t *target, err *Error) {
	ow.mu.Lock()
	err = ow.checkPageLimit(by)
	ow.mu.Unlock()
	if err != nil {
		return nil, err
	}
	params := cdptarget.CreateTargetParams{URL: blankURL, BrowserContextID: in}
	made, err := execute(ctx, ow.tracker, nil, cdptarget.CreateTarget, params, callOptions{by: by.Name})
	if err != nil {
		return nil, err
	}
	err = ow.wait(ctx, "for the new page", func() (bool, *Error) {
		if t = ow.targets[string(made.TargetID)]; t != nil {
			ow.assign(t, by)
		}
		return t != nil, nil
	})
	if err != nil {
		ow.mu.Lock()
		ow.postClose(made.TargetID)
		ow.mu.Unlock()
	}
	return t, err
}

// onURL closes a page of any caller except the command line that shows a URL reserved for the command line. No
// parameter allows such a URL, and Chrome does not let a page navigate there; this is the second line of defense.
// The engine is locked.
func (ow *owners) onURL(t *target, url string) {
	if t.owner == "" || t.owner == commandLine.Name || t.kind != "page" || t.evictErr != nil || mayShow(url) {
		return
	}
	ow.evict(t, errf(CodeDenied, "the page was closed because it showed %s: %s may only open http and https pages",
		manifest.Clip(url, 100), manifest.Clip(t.owner, 80)))
}
