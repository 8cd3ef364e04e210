package keeper

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/manifest"
)

// beginTimeout is how long a call waits for the navigation that it may have caused to begin. Chrome reports one that a
// script or an input event causes about when it returns from the command.
const beginTimeout = 150 * time.Millisecond

// pageWait waits for what a command does to its page. Nil waits for nothing.
type pageWait struct {
	e        *engine
	page     *target
	kind     string // WaitLoad or WaitIdle
	onDialog string
	commits  int // of the page before the command
}

// newPageWait prepares to wait after a command to a target. The caller calls close.
func (e *engine) newPageWait(t *target, kind, onDialog string) *pageWait {
	e.mux.Lock()
	defer e.mux.Unlock()
	root := t.root()
	if kind == "" || kind == api.WaitNone || root.kind != "page" {
		return nil
	}
	if kind == api.WaitIdle {
		e.domains.enable(root, lifecycle)
		root.idleWaits++
	}
	return &pageWait{e, root, kind, onDialog, root.commits}
}

func (w *pageWait) close() {
	if w == nil || w.kind != api.WaitIdle {
		return
	}
	w.e.mux.Lock()
	defer w.e.mux.Unlock()
	if w.e.mux.Err() == nil {
		w.page.idleWaits--
		w.e.domains.disable(w.page, lifecycle)
	}
}

// after waits for the page once a caller's command has returned a result.
func (w *pageWait) after(ctx context.Context, method string, result json.RawMessage) (err *api.Error) {
	if w == nil {
		return nil
	}
	defer func() {
		if err != nil && err.Code == api.CodeTimeout {
			err.Target = w.page.ID
		}
	}()
	const what = "for the page to load (the command has run, and the page stays open)"
	if method == page.CommandNavigate {
		var nav page.NavigateResult
		if json.Unmarshal(result, &nav) != nil || nav.ErrorText != "" || nav.LoaderID == "" {
			return nil // it failed, or stays in the current document
		}
		return w.await(ctx, what, func() bool { return w.page.hasLoader(string(nav.LoaderID)) })
	}
	began := func() bool { return w.page.commits > w.commits || w.page.pendingURL != "" }
	if method != page.CommandReload {
		soon, cancel := context.WithTimeout(ctx, beginTimeout)
		defer cancel()
		w.e.mux.Wait(soon, "for a navigation", func() (bool, *api.Error) { return began() || w.page.closed, nil })
	}
	w.e.mux.Lock()
	begun := began()
	w.e.mux.Unlock()
	if !begun && method != page.CommandReload {
		return nil
	}
	ended := func() bool { // a download, for example, ends a navigation without a new document
		return method != page.CommandReload && w.page.commits == w.commits && w.page.pendingURL == ""
	}
	return w.await(ctx, what, func() bool { return w.page.commits > w.commits || ended() })
}

// await waits until committed returns true and the newest document is there. what names it in the error.
func (w *pageWait) await(ctx context.Context, what string, committed func() bool) *api.Error {
	if w == nil {
		return nil
	}
	t := w.page
	err := w.e.mux.Wait(ctx, what, func() (bool, *api.Error) {
		if ok, err := w.e.showable(t, w.onDialog); !ok || err != nil {
			return false, err
		}
		return committed() && t.loaded && (w.kind != api.WaitIdle || t.idle), nil
	})
	if err != nil && err.Code == api.CodeTimeout {
		if diagnosis := w.e.sender.unstick(t); diagnosis != "" {
			err.Message += "; " + diagnosis
		}
	}
	return err
}

// showable reports whether a page can go on loading, or why it never will. A dialog that blocks it is answered if
// OnDialog says so. The engine is locked.
func (e *engine) showable(t *target, onDialog string) (bool, *api.Error) {
	switch {
	case t.closed:
		return false, closedTarget(t)
	case t.crashed:
		return false, crashedTarget(t)
	case t.dialog == nil:
		return true, nil
	case api.AnswersDialogs(onDialog):
		e.sender.answerDialog(t, onDialog)
		return false, nil
	}
	return false, blockedTarget(t, t.dialog)
}

// navigate navigates a page to a URL and waits for its load event.
func (e *engine) navigate(ctx context.Context, t *target, q api.OpenRequest) *api.Error {
	w := e.newPageWait(t, cmp.Or(q.Wait, api.WaitLoad), q.OnDialog)
	defer w.close()
	nav, err := execute(ctx, e.sender, t, page.Navigate, page.NavigateParams{URL: q.URL},
		callOptions{onDialog: q.OnDialog})
	if err != nil {
		return err
	}
	if nav.ErrorText != "" {
		err := api.Errorf(api.CodeNavigationFailed, "cannot open %s: %s", manifest.Clip(q.URL, 200), nav.ErrorText)
		err.Target = t.ID
		return err
	}
	if nav.LoaderID == "" {
		return nil // a navigation within the current document
	}
	return w.await(ctx, "for "+manifest.Clip(q.URL, 200)+" to load (the page stays open)", func() bool {
		return t.hasLoader(string(nav.LoaderID))
	})
}
