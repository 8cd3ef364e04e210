package target

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// onLifecycle tracks whether the newest document's network is idle, and reports whether it has become so.
func (t *Target) onLifecycle(params json.RawMessage) bool {
	n := len(t.loaders)
	if n == 0 || scan.Text(params, "name") != "networkIdle" || scan.Text(params, "frameId") != t.ID ||
		scan.Text(params, "loaderId") != t.loaders[n-1] {
		return false
	}
	t.Idle = true
	return true
}

// onNavigated follows a new document, and reports whether it is the page's own.
func (tr *Tracker) onNavigated(t *Target, params json.RawMessage) bool {
	frame := scan.Field(params, "frame")
	if frame == nil || scan.Text(frame, "parentId") != "" {
		return false
	}
	url := scan.Text(frame, "url")
	tr.observer.OnURL(t, url)
	if t == tr.SparePage && url != api.BlankURL && !strings.HasPrefix(url, "chrome-error:") {
		tr.SparePage = nil // a caller has navigated it
	}
	if len(t.loaders) == 8 {
		t.loaders = slices.Delete(t.loaders, 0, 1)
	}
	t.loaders = append(t.loaders, scan.Text(frame, "loaderId"))
	t.Commits++
	// A page from the back/forward cache is as it was left: no load event follows.
	restored := scan.Text(params, "type") == string(page.NavigationTypeBackForwardCacheRestore)
	t.Loaded, t.Idle, t.Crashed, t.Dialog, t.PendingURL = restored, restored, false, nil, ""
	if t.needsReenable {
		t.needsReenable = false
		tr.Domains.reenableDomains(t)
	}
	return true
}

// AwaitBlank waits until a new page has loaded its blank document, because the end of that navigation would abort
// the next one. The title shows it; in a browser whose blank page has no title, AwaitBlank times out, and nothing
// else is lost. It also waits for the scripts of the session: Chrome's browser process navigates, its renderer process
// adds scripts, and one that is added too late does not run at the start of the next document.
func (tr *Tracker) AwaitBlank(ctx context.Context, t *Target) {
	ctx, cancel := context.WithTimeout(ctx, awaitBlankTimeout)
	defer cancel()
	tr.Mux.Wait(ctx, "for the blank page", func() (bool, *api.Error) {
		return t.Title != "" && t.Preparing == 0 || t.Closed || t.Crashed, nil
	})
}

const awaitBlankTimeout = 5 * time.Second

// DocumentStatus returns the HTTP status of the document that a page shows, 0 if it is unknown.
func (tr *Tracker) DocumentStatus(t *Target) int {
	tr.Mux.Lock()
	defer tr.Mux.Unlock()
	if n := len(t.loaders); n > 0 && t.document.loader == t.loaders[n-1] {
		return t.document.status
	}
	return 0
}

// PageInfo queries the browser, not the page, so it works however busy the page is.
func (tr *Tracker) PageInfo(ctx context.Context, t *Target) (api.Page, *api.Error) {
	params := cdptarget.GetTargetInfoParams{TargetID: cdptarget.ID(t.ID)}
	result, err := Execute(ctx, tr.Sender, nil, cdptarget.GetTargetInfo, params)
	if err != nil {
		return api.Page{}, err
	}
	p := api.Page{Browser: tr.Name, Target: t.ID}
	if info := result.TargetInfo; info != nil {
		p.URL, p.Title = info.URL, info.Title
	}
	return p, nil
}

// CreatePage creates a page and waits until it is tracked; it then calls created, unless nil, with the mux locked.
func (tr *Tracker) CreatePage(ctx context.Context, params cdptarget.CreateTargetParams, o CallOptions,
	created func(*Target),
) (t *Target, err *api.Error) {
	made, err := Execute(ctx, tr.Sender, nil, cdptarget.CreateTarget, params, o)
	if err != nil {
		return nil, err
	}
	err = tr.Mux.Wait(ctx, "for the new page", func() (bool, *api.Error) {
		if t = tr.ByID[string(made.TargetID)]; t != nil && created != nil {
			created(t)
		}
		return t != nil, nil
	})
	if err != nil {
		tr.Mux.Lock()
		tr.Sender.PostClose(string(made.TargetID))
		tr.Mux.Unlock()
	}
	return t, err
}
