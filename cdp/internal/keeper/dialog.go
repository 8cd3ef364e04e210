package keeper

import (
	"encoding/json"
	"strings"

	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/manifest"
)

func (tr *tracker) onDialogEvent(t *target, method string, params json.RawMessage) {
	if method == page.JavascriptDialogClosed.Method {
		t.dialog = nil
		tr.mux.Broadcast()
		return
	}
	d := &api.Dialog{}
	if json.Unmarshal(params, d) != nil {
		return
	}
	t.dialog = d
	calls := tr.mux.Waiting(func(to *mux.Address) bool { return tr.of(to).root() == t })
	// The first has opened it: the page runs one call after the other, and those behind it have not begun.
	if len(calls) > 0 && api.AnswersDialogs(calls[0].OnDialog) {
		tr.sender.answerDialog(t, calls[0].OnDialog) // the calls behind it go on when it is closed
	} else {
		for _, p := range calls {
			if !endsDialog(d, p.Method) {
				tr.mux.Finish(p, mux.Reply{Err: blockedTarget(t, d)})
			}
		}
	}
	tr.mux.Broadcast()
}

// answerDialog closes the open dialog of a page. The engine is locked.
func (s *sender) answerDialog(t *target, how string) {
	answer := page.HandleJavaScriptDialogParams{Accept: api.AcceptsDialogs(how)}
	if _, text, given := strings.Cut(how, "="); given {
		answer.PromptText = text
	} else if t.dialog != nil && answer.Accept {
		answer.PromptText = t.dialog.Default // the preset text, as when a person presses OK
	}
	postCommand(s.mux, t, page.HandleJavaScriptDialog, answer, nil)
}

func blockedTarget(t *target, d *api.Dialog) *api.Error {
	way := `{"accept":true}, or reload or close the page`
	if d.Type == api.BeforeUnload {
		way = `{"accept":true}, which leaves the page, or {"accept":false}, which stays`
	}
	e := api.Errorf(api.CodeBusy, "a JavaScript dialog is open and blocks the page: %s %q; "+
		"close it with Page.handleJavaScriptDialog %s",
		d.Type, manifest.Clip(d.Message, 300), way)
	e.Target, e.Dialog = t.ID, d
	return e
}

// endsDialog reports whether a command ends a dialog. While a beforeunload dialog is open, Chrome accepts
// navigations and reloads but does not run them.
func endsDialog(d *api.Dialog, method string) bool {
	return method == page.CommandHandleJavaScriptDialog || revives(method) && d.Type != api.BeforeUnload
}
