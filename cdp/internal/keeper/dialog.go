package keeper

import (
	"encoding/json"
	"strings"

	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/manifest"
)

func (s *sender) onDialogEvent(t *target, method string, params json.RawMessage) {
	if method == page.JavascriptDialogClosed.Method {
		t.dialog = nil
		s.mux.broadcast()
		return
	}
	d := &api.Dialog{}
	if json.Unmarshal(params, d) != nil {
		return
	}
	t.dialog = d
	var blocked []*pending
	for _, p := range s.mux.pending {
		if p.target != nil && p.target.root() == t && !endsDialog(d, p.method) {
			blocked = append(blocked, p)
		}
	}
	if owner := dialogOwner(s.mux.pending, t); owner != nil && api.AnswersDialogs(owner.onDialog) {
		s.answerDialog(t, owner.onDialog) // the calls behind it go on when it is closed
	} else {
		for _, p := range blocked {
			s.mux.finish(p, reply{err: blockedTarget(t, d)})
		}
	}
	s.mux.broadcast()
}

// dialogOwner returns the call that opened a dialog of a page: the one that was sent first. The page runs one call
// after the other, and those behind it have not begun.
func dialogOwner(calls map[int64]*pending, t *target) (owner *pending) {
	for _, p := range calls {
		if p.target != nil && p.target.root() == t && (owner == nil || p.id < owner.id) {
			owner = p
		}
	}
	return owner
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
	e.Target, e.Dialog = t.id, d
	return e
}

// endsDialog reports whether a command ends a dialog. While a beforeunload dialog is open, Chrome accepts
// navigations and reloads but does not run them.
func endsDialog(d *api.Dialog, method string) bool {
	return method == page.CommandHandleJavaScriptDialog || revives(method) && d.Type != api.BeforeUnload
}
