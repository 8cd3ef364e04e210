package target

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/manifest"
)

// This file handles what keeps a call from being sent or from returning, dialogs among it.

// checkSendable returns the reason why a call cannot be sent now, or nil.
func (s *Sender) checkSendable(t *Target, method string) *api.Error {
	switch {
	case s.Mux.Err() != nil:
		return s.Mux.Err()
	case t == nil:
		return nil
	case t.EvictErr != nil:
		return t.EvictErr
	case t.Closed:
		return ClosedTarget(t)
	case t.Crashed && !revives(method):
		return CrashedTarget(t)
	case t.Session == "":
		return api.Errorf(api.CodeNotFound, "target %s (%s) is no longer attached; try again", t.ID, manifest.Clip(t.URL, 80))
	}
	if d := t.Root().Dialog; d != nil && !endsDialog(d, method) {
		return BlockedTarget(t, d)
	}
	return nil
}

// ClosedTarget returns the error of what a closed target cannot do.
func ClosedTarget(t *Target) *api.Error {
	return &api.Error{Code: api.CodeNotFound, Target: t.ID,
		Message: fmt.Sprintf("target %s (%s) was closed", t.ID, manifest.Clip(t.URL, 80))}
}

// CrashedTarget returns the error of what a crashed target cannot do.
func CrashedTarget(t *Target) *api.Error {
	return &api.Error{Code: api.CodeTargetCrashed, Target: t.ID, Message: fmt.Sprintf(
		"the renderer of target %s (%s) has crashed; Page.reload or Page.navigate revives it", t.ID,
		manifest.Clip(t.URL, 80))}
}

// revives reports whether a command revives a crashed target.
func revives(method string) bool {
	return method == page.CommandNavigate || method == page.CommandReload || method == page.CommandClose
}

// Unstick checks whether a target whose call timed out is busy with a script. If so, it terminates the script. It
// returns a description of what it found, or "". A target that only waits, for example for a promise, responds to
// the probe and is left alone.
func (s *Sender) Unstick(t *Target) string {
	if t == nil {
		return ""
	}
	s.Mux.Lock()
	unresponsive := s.Mux.Err() != nil || t.Closed || t.Crashed || t.Session == "" || t.Root().Dialog != nil
	s.Mux.Unlock()
	if unresponsive {
		return ""
	}
	responded, forget, err := s.probe(t)
	defer forget()
	if err != nil {
		return "the browser has stopped reading"
	}
	select {
	case <-responded:
		return ""
	case <-time.After(ProbeTimeout):
	}
	s.Mux.Lock()
	pendingURL := t.Root().PendingURL
	if pendingURL == "" {
		Post(s.Mux, t, runtime.TerminateExecution, cdp.Empty{}, nil)
	}
	s.Mux.Unlock()
	if pendingURL != "" { // messages now reach the new page, whose script must not be terminated
		return "a navigation to " + manifest.Clip(pendingURL, 200) + " is under way, and its server has not responded"
	}
	select {
	case <-responded:
		return "the page was busy with a script that did not end, which was stopped"
	case <-time.After(TerminateTimeout):
		return "the page does not respond, and its script could not be stopped; Page.reload may help, or close the page"
	}
}

// probe sends a command to which an idle target responds at once.
func (s *Sender) probe(t *Target) (responded <-chan mux.Reply, forget func(), err *api.Error) {
	s.Mux.Lock()
	defer s.Mux.Unlock()
	p := &mux.Pending{Method: runtime.CommandEvaluate, To: t.At()}
	err = s.Mux.Send(p, scan.Marshal(runtime.EvaluateParams{Expression: "0", Silent: new(true)}))
	return p.Done, func() {
		s.Mux.Lock()
		s.Mux.Forget(p)
		s.Mux.Unlock()
	}, err
}

const (
	// ProbeTimeout leaves a page on a slow machine enough time to respond, so that its script is not terminated.
	ProbeTimeout     = time.Second
	TerminateTimeout = 2 * time.Second // for a script to terminate
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
		return
	}
	for _, p := range calls {
		if !endsDialog(d, p.Method) {
			tr.Mux.Finish(p, mux.Reply{Err: BlockedTarget(t, d)})
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
	return &api.Error{Code: api.CodeBusy, Target: t.ID, Dialog: d, Message: fmt.Sprintf(
		"a JavaScript dialog is open and blocks the page: %s %q; close it with Page.handleJavaScriptDialog %s", d.Type,
		manifest.Clip(d.Message, 300), way)}
}

// endsDialog reports whether a command ends a dialog. While a beforeunload dialog is open, Chrome accepts
// navigations and reloads but does not run them.
func endsDialog(d *api.Dialog, method string) bool {
	return method == page.CommandHandleJavaScriptDialog || revives(method) && d.Type != api.BeforeUnload
}
