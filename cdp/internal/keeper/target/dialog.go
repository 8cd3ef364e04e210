package target

import (
	"encoding/json"
	"strings"

	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/manifest"
)

func (tr *Tracker) onDialog(t *Target, params json.RawMessage) {
	d := &api.Dialog{}
	if json.Unmarshal(params, d) != nil {
		return
	}
	t.Dialog = d
	calls := tr.Mux.Waiting(func(to *mux.Address) bool { return tr.of(to).Root() == t })
	// The first has opened it: the page runs one call after the other, and those behind it have not begun.
	if len(calls) > 0 && api.AnswersDialogs(calls[0].OnDialog) {
		tr.Sender.AnswerDialog(t, calls[0].OnDialog) // the calls behind it go on when it is closed
	} else {
		for _, p := range calls {
			if !endsDialog(d, p.Method) {
				tr.Mux.Finish(p, mux.Reply{Err: BlockedTarget(t, d)})
			}
		}
	}
}

// AnswerDialog closes the open dialog of a page. The mux is locked.
func (s *Sender) AnswerDialog(t *Target, how string) {
	answer := page.HandleJavaScriptDialogParams{Accept: api.AcceptsDialogs(how)}
	if _, text, given := strings.Cut(how, "="); given {
		answer.PromptText = text
	} else if t.Dialog != nil && answer.Accept {
		answer.PromptText = t.Dialog.Default // the preset text, as when a person presses OK
	}
	Post(s.Mux, t, page.HandleJavaScriptDialog, answer, nil)
}

// BlockedTarget returns the error of what a dialog of a target blocks.
func BlockedTarget(t *Target, d *api.Dialog) *api.Error {
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
