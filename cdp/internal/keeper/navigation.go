package keeper

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// onLifecycle tracks whether the newest document's network is idle.
func (tr *tracker) onLifecycle(t *target, params json.RawMessage) {
	var p page.EventLifecycleEvent
	if json.Unmarshal(params, &p) == nil && string(p.FrameID) == t.ID && p.Name == "networkIdle" &&
		len(t.loaders) > 0 && t.loaders[len(t.loaders)-1] == string(p.LoaderID) {
		t.idle = true
		tr.mux.Broadcast()
	}
}

func (tr *tracker) onNavigated(t *target, method string, params json.RawMessage) {
	if method == page.LoadEventFired.Method {
		t.loaded = true
		tr.mux.Broadcast()
		return
	}
	var p struct {
		Frame struct {
			Parent string `json:"parentId"`
			Loader string `json:"loaderId"`
			URL    string `json:"url"`
		} `json:"frame"`
		Type page.NavigationType `json:"type"`
	}
	if json.Unmarshal(params, &p) != nil || p.Frame.Parent != "" {
		return
	}
	tr.observer.onURL(t, p.Frame.URL)
	if t == tr.sparePage && p.Frame.URL != api.BlankURL && !strings.HasPrefix(p.Frame.URL, "chrome-error:") {
		tr.sparePage = nil // a caller has navigated it
	}
	if len(t.loaders) == 8 {
		t.loaders = append(t.loaders[:0], t.loaders[1:]...)
	}
	t.loaders = append(t.loaders, p.Frame.Loader)
	t.commits++
	// A page from the back/forward cache is as it was left: no load event follows.
	restored := p.Type == page.NavigationTypeBackForwardCacheRestore
	t.loaded, t.idle, t.crashed, t.dialog, t.pendingURL = restored, restored, false, nil, ""
	if t.needsReenable {
		t.needsReenable = false
		tr.domains.reenableDomains(t)
	}
	tr.mux.Broadcast()
}

// awaitBlank waits until a new page has loaded its blank document, because the end of that navigation would abort
// the next one. The title shows it; in a browser whose blank page has no title, awaitBlank times out, and nothing
// else is lost. It also waits for the scripts of the session: Chrome's browser process navigates, its renderer process
// adds scripts, and one that is added too late does not run at the start of the next document.
func (tr *tracker) awaitBlank(ctx context.Context, t *target) {
	ctx, cancel := context.WithTimeout(ctx, awaitBlankTimeout)
	defer cancel()
	tr.mux.Wait(ctx, "for the blank page", func() (bool, *api.Error) {
		return t.title != "" && t.preparing == 0 || t.closed || t.crashed, nil
	})
}

const awaitBlankTimeout = 5 * time.Second

// documentStatus returns the HTTP status of the document that a page shows, 0 if it is unknown.
func (tr *tracker) documentStatus(t *target) int {
	tr.mux.Lock()
	defer tr.mux.Unlock()
	if n := len(t.loaders); n > 0 && t.document.loader == t.loaders[n-1] {
		return t.document.status
	}
	return 0
}

// pageInfo queries the browser, not the page, so it works however busy the page is.
func (tr *tracker) pageInfo(ctx context.Context, t *target) (api.Page, *api.Error) {
	params := cdptarget.GetTargetInfoParams{TargetID: cdptarget.ID(t.ID)}
	result, err := execute(ctx, tr.sender, nil, cdptarget.GetTargetInfo, params, callOptions{})
	if err != nil {
		return api.Page{}, err
	}
	p := api.Page{Browser: tr.name, Target: t.ID}
	if info := result.TargetInfo; info != nil {
		p.URL, p.Title = info.URL, info.Title
	}
	return p, nil
}

// createPage creates a page and waits until it is tracked; it then calls created, unless nil, with the engine locked.
func (tr *tracker) createPage(ctx context.Context, params cdptarget.CreateTargetParams, o callOptions,
	created func(*target),
) (t *target, err *api.Error) {
	made, err := execute(ctx, tr.sender, nil, cdptarget.CreateTarget, params, o)
	if err != nil {
		return nil, err
	}
	err = tr.mux.Wait(ctx, "for the new page", func() (bool, *api.Error) {
		if t = tr.targets[string(made.TargetID)]; t != nil && created != nil {
			created(t)
		}
		return t != nil, nil
	})
	if err != nil {
		tr.mux.Lock()
		tr.sender.postClose(made.TargetID)
		tr.mux.Unlock()
	}
	return t, err
}
