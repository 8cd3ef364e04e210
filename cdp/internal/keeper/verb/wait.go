package verb

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/manifest"
)

// beginTimeout is how long a call waits for the navigation that it may have caused to begin. Chrome reports one that a
// script or an input event causes about when it returns from the command.
const beginTimeout = 150 * time.Millisecond

// pageWait waits for what a command does to its page. Nil waits for nothing.
type pageWait struct {
	e        *Verbs
	page     *target.Target
	kind     string // WaitLoad or WaitIdle
	onDialog string
	commits  int // of the page before the command
}

// newPageWait prepares to wait after a command to a target. The caller calls close.
func (e *Verbs) newPageWait(t *target.Target, kind, onDialog string) *pageWait {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	root := t.Root()
	if kind == "" || kind == api.WaitNone || root.Kind != "page" {
		return nil
	}
	if kind == api.WaitIdle {
		e.domains.Enable(root, target.Lifecycle)
		root.IdleWaits++
	}
	return &pageWait{e, root, kind, onDialog, root.Commits}
}

func (w *pageWait) close() {
	if w == nil || w.kind != api.WaitIdle {
		return
	}
	w.e.Mux.Lock()
	defer w.e.Mux.Unlock()
	if w.e.Mux.Err() == nil {
		w.page.IdleWaits--
		w.e.domains.Disable(w.page, target.Lifecycle)
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
		return w.await(ctx, what, func() bool { return w.page.HasLoader(string(nav.LoaderID)) })
	}
	began := func() bool { return w.page.Commits > w.commits || w.page.PendingURL != "" }
	if method != page.CommandReload {
		soon, cancel := context.WithTimeout(ctx, beginTimeout)
		defer cancel()
		w.e.Mux.Wait(soon, "for a navigation", func() (bool, *api.Error) { return began() || w.page.Closed, nil })
	}
	w.e.Mux.Lock()
	begun := began()
	w.e.Mux.Unlock()
	if !begun && method != page.CommandReload {
		return nil
	}
	ended := func() bool { // a download, for example, ends a navigation without a new document
		return method != page.CommandReload && w.page.Commits == w.commits && w.page.PendingURL == ""
	}
	return w.await(ctx, what, func() bool { return w.page.Commits > w.commits || ended() })
}

// await waits until committed returns true and the newest document is there. what names it in the error.
func (w *pageWait) await(ctx context.Context, what string, committed func() bool) *api.Error {
	if w == nil {
		return nil
	}
	t := w.page
	err := w.e.Mux.Wait(ctx, what, func() (bool, *api.Error) {
		if ok, err := w.e.showable(t, w.onDialog); !ok || err != nil {
			return false, err
		}
		return committed() && t.Loaded && (w.kind != api.WaitIdle || t.Idle), nil
	})
	if err != nil && err.Code == api.CodeTimeout {
		if diagnosis := w.e.sender.Unstick(t); diagnosis != "" {
			err.Message += "; " + diagnosis
		}
	}
	return err
}

// showable reports whether a page can go on loading, or why it never will. A dialog that blocks it is answered if
// OnDialog says so. The mux is locked.
func (e *Verbs) showable(t *target.Target, onDialog string) (bool, *api.Error) {
	switch {
	case t.Closed:
		return false, target.ClosedTarget(t)
	case t.Crashed:
		return false, target.CrashedTarget(t)
	case t.Dialog == nil:
		return true, nil
	case api.AnswersDialogs(onDialog):
		e.sender.AnswerDialog(t, onDialog)
		return false, nil
	}
	return false, target.BlockedTarget(t, t.Dialog)
}

// navigate navigates a page to a URL and waits for its load event.
func (e *Verbs) navigate(ctx context.Context, t *target.Target, q api.OpenRequest) *api.Error {
	w := e.newPageWait(t, cmp.Or(q.Wait, api.WaitLoad), q.OnDialog)
	defer w.close()
	nav, err := target.Execute(ctx, e.sender, t, page.Navigate, page.NavigateParams{URL: q.URL},
		target.CallOptions{OnDialog: q.OnDialog})
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
		return t.HasLoader(string(nav.LoaderID))
	})
}
