package target

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	cdptarget "github.com/chromedp/cdproto/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/manifest"
)

// CallOptions are the options of one command.
type CallOptions struct {
	By       api.Caller
	MaxBytes int64
	OnDialog string
	Pieces   bool
	onSent   func(*mux.Pending) // called with the mux locked
}

// Sender sends commands to targets. It reports why a command cannot be sent or does not return.
type Sender struct {
	Mux     *mux.Mux
	targets map[string]*Target // by id
}

// Execute sends one of the keeper's own commands, built from the protocol's generated types, and waits for its result.
// It decodes the result with encoding/json, which tolerates new fields of later browsers and invalid text of pages; the
// generated types' own decoders are strict.
func Execute[P, R any](
	ctx context.Context, s *Sender, t *Target, c cdp.Command[P, R], params P, o ...CallOptions,
) (result R, err *api.Error) {
	raw, err := s.Do(ctx, t, c.Method, scan.Marshal(params), o...)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, api.Errorf(api.CodeProtocolError, "the result of %s cannot be read: %v", c.Method, err)
	}
	return result, nil
}

// Post sends a command of the protocol's generated types without waiting for its reply; after may be nil. The
// mux is locked.
func Post[P, R any](m *mux.Mux, t *Target, c cdp.Command[P, R], params P, after func(mux.Reply)) {
	m.Post(t.At(), c.Method, scan.Marshal(params), after)
}

// Do sends one command to a target (nil: the browser) and waits for its reply, the end of the target or of ctx. It
// takes at most one set of options.
func (s *Sender) Do(
	ctx context.Context, t *Target, method string, params json.RawMessage, o ...CallOptions,
) (json.RawMessage, *api.Error) {
	r := s.exchange(ctx, t, method, params, append(o, CallOptions{})[0])
	return r.Result, r.Err
}

// Between two documents a page is not active for a moment. Chrome then refuses a command without running it.
const (
	inactive      = "Not attached to an active page"
	inactivePause = 20 * time.Millisecond
	inactiveTries = 50
)

// exchange is [Sender.Do] for a caller that accepts a large result in pieces. It repeats a command that found the
// page between two documents.
func (s *Sender) exchange(
	ctx context.Context, t *Target, method string, params json.RawMessage, o CallOptions,
) mux.Reply {
	for try := 1; ; try++ {
		r := s.exchangeOnce(ctx, t, method, params, o)
		if r.Err == nil || r.Err.Chrome == nil || r.Err.Chrome.Message != inactive || try == inactiveTries {
			return r
		}
		select {
		case <-ctx.Done():
			return mux.Reply{Err: unsent(ctx, method)}
		case <-time.After(inactivePause):
		}
	}
}

func (s *Sender) exchangeOnce(
	ctx context.Context, t *Target, method string, params json.RawMessage, o CallOptions,
) mux.Reply {
	if ctx.Err() != nil {
		return mux.Reply{Err: unsent(ctx, method)}
	}
	started := time.Now()
	s.Mux.Lock()
	// A dialog that an earlier call left open is not for this call to answer: OnDialog applies to dialogs of its own.
	if err := s.checkSendable(t, method); err != nil {
		s.Mux.Unlock()
		return mux.Reply{Err: err}
	}
	p := &mux.Pending{Method: method, By: o.By, To: t.At(), MaxBytes: o.MaxBytes, OnDialog: o.OnDialog, Pieces: o.Pieces}
	err := s.Mux.Send(p, params)
	if err == nil && o.onSent != nil {
		o.onSent(p)
	}
	s.Mux.Unlock()
	if err != nil {
		return mux.Reply{Err: err}
	}
	return s.await(ctx, t, p, started)
}

// unsent returns the error of a command that was not sent because its caller's time was over.
func unsent(ctx context.Context, method string) *api.Error {
	err := api.ContextError(ctx, method)
	err.Message += " before it was sent"
	return err
}

// await waits for the reply to a command. It probes the target before the time is up, so that the error can say
// whether the target is busy with a script.
func (s *Sender) await(ctx context.Context, t *Target, p *mux.Pending, started time.Time) mux.Reply {
	var early <-chan time.Time
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		early = time.After(max(left-ProbeTimeout, left/2))
	}
	var sent *probe
	select {
	case r := <-p.Done:
		return r
	case <-ctx.Done():
	case <-early:
		sent = s.probe(t)
		defer sent.forget()
	}
	select {
	case r := <-p.Done:
		return r
	case <-ctx.Done():
	}
	s.Mux.Lock()
	if p.Method == cdptarget.CommandCreateTarget {
		p.After = s.closeCreated
	} else {
		s.Mux.Forget(p)
	}
	s.Mux.Unlock()
	select {
	case r := <-p.Done: // it arrived at the same moment
		return r
	default:
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		go s.Unstick(t, nil)
		return mux.Reply{Err: api.ContextError(ctx, p.Method)}
	}
	failure := api.Errorf(api.CodeTimeout, "%s did not return within %s", p.Method,
		time.Since(started).Round(10*time.Millisecond))
	if diagnosis := s.Unstick(t, sent); diagnosis != "" {
		failure.Message += "; " + diagnosis
	}
	if t != nil {
		failure.Target = t.ID
	}
	return mux.Reply{Err: failure}
}

// closeCreated closes a new target whose creator no longer waits, because it would belong to no caller. The mux is
// locked.
func (s *Sender) closeCreated(r mux.Reply) {
	if id := scan.Text(r.Result, "targetId"); id != "" {
		s.PostClose(id)
	}
}

// Chrome loses the close of a page that is just replacing its frame, as at the end of a reload. So a close is sent
// repeatedly.
const (
	closePause = time.Second
	closeTries = 30
)

// PostClose closes a page without waiting for it. It repeats the command until the page is gone, or stays because its
// beforeunload dialog was dismissed. The mux is locked.
func (s *Sender) PostClose(id string) {
	post := func() {
		Post(s.Mux, nil, cdptarget.CloseTarget, cdptarget.CloseTargetParams{TargetID: cdptarget.ID(id)}, nil)
	}
	stays := 0
	if t := s.targets[id]; t != nil {
		stays = t.stays
	}
	var again func(tries int)
	again = func(tries int) {
		time.AfterFunc(closePause, func() {
			s.Mux.Lock()
			defer s.Mux.Unlock()
			t := s.targets[id]
			// Dialogs are reported only to a session.
			if t == nil || t.Session == "" || t.stays != stays || s.Mux.Err() != nil || tries == 0 {
				return
			}
			if t.Dialog == nil || t.Dialog.Type != api.BeforeUnload {
				post()
			}
			again(tries - 1)
		})
	}
	post()
	again(closeTries)
}

// awaitDisconnect waits until the browser has exited after Browser.close, so that the next call does not find a
// browser that is exiting.
func (s *Sender) awaitDisconnect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	select {
	case <-s.Mux.Done:
	case <-ctx.Done():
	}
}

// ExchangeAll sends commands to a target directly after each other, and waits for all replies. It returns the first
// error, the number of commands sent, and the number of these that have returned.
func (s *Sender) ExchangeAll(ctx context.Context, t *Target, commands []*mux.Pending, params []json.RawMessage) (
	sent, returned int, failed *api.Error,
) {
	if ctx.Err() != nil {
		return 0, 0, unsent(ctx, "the input")
	}
	started := time.Now()
	s.Mux.Lock()
	for i, p := range commands {
		p.To = t.At()
		if failed = s.checkSendable(t, p.Method); failed == nil {
			failed = s.Mux.Send(p, params[i])
		}
		if failed != nil {
			break
		}
		sent++
	}
	s.Mux.Unlock()
	for _, p := range commands[:sent] {
		err := s.await(ctx, t, p, started).Err
		failed = cmp.Or(failed, err)
		if err != nil && ctx.Err() != nil { // nobody waits for the other commands
			s.Mux.Lock()
			s.Mux.Forget(commands[returned:sent]...)
			s.Mux.Unlock()
			break
		}
		returned++
	}
	return sent, returned, failed
}

// closeTimeout bounds the wait for a browser that a caller has closed.
const closeTimeout = 3 * time.Second

// The rest of this file handles what keeps a call from being sent or from returning, such as dialogs.

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

// ClosedTarget returns the error of a command for a closed target.
func ClosedTarget(t *Target) *api.Error {
	return &api.Error{Code: api.CodeNotFound, Target: t.ID,
		Message: fmt.Sprintf("target %s (%s) was closed", t.ID, manifest.Clip(t.URL, 80))}
}

// CrashedTarget returns the error of a command for a crashed target.
func CrashedTarget(t *Target) *api.Error {
	return &api.Error{Code: api.CodeTargetCrashed, Target: t.ID, Message: fmt.Sprintf(
		"the renderer of target %s (%s) has crashed; a reload or another URL revives it", t.ID,
		manifest.Clip(t.URL, 80))}
}

// revives reports whether a command revives a crashed target.
func revives(method string) bool {
	return method == page.CommandNavigate || method == page.CommandReload || method == page.CommandClose
}

// Unstick checks whether a target whose call timed out is busy with a script. If so, it terminates the script. It
// returns a description of what it found, or "". A target that only waits, for example for a promise, responds to the
// probe and is left alone. sent is a probe that was sent before; with nil, Unstick sends one.
func (s *Sender) Unstick(t *Target, sent *probe) string {
	if sent == nil {
		sent = s.probe(t)
		defer sent.forget()
	}
	switch {
	case sent.err != nil:
		return "the browser has stopped reading"
	case sent.pending == nil:
		return ""
	}
	select {
	case <-sent.pending.Done:
		return ""
	case <-time.After(time.Until(sent.at.Add(ProbeTimeout))):
	}
	s.Mux.Lock()
	pendingURL, ended := t.Root().PendingURL, s.Mux.Err() != nil || t.Closed || t.Crashed || t.Root().Dialog != nil
	if pendingURL == "" && !sent.leaving && !ended {
		Post(s.Mux, t, runtime.TerminateExecution, cdp.Empty{}, nil)
	}
	s.Mux.Unlock()
	switch { // messages now reach the new page, whose script must not be terminated
	case pendingURL != "":
		return "a navigation to " + manifest.Clip(pendingURL, 200) + " is under way, and its server has not responded"
	case sent.leaving, ended:
		return ""
	}
	select {
	case <-sent.pending.Done:
		return "the page was busy with a script that did not end, which was stopped"
	case <-time.After(TerminateTimeout):
		return "the page does not respond, and its script could not be stopped; reload or close the page"
	}
}

// probe is a command to which an idle target responds at once.
type probe struct {
	pending *mux.Pending // nil: the target responds to nothing, whatever its scripts do
	at      time.Time
	leaving bool // the target was being left for another document
	err     *api.Error
	forget  func()
}

// probe sends a probe.
func (s *Sender) probe(t *Target) *probe {
	sent := &probe{at: time.Now(), forget: func() {}}
	if t == nil {
		return sent
	}
	s.Mux.Lock()
	defer s.Mux.Unlock()
	sent.leaving = t.Root().PendingURL != ""
	if s.Mux.Err() != nil || t.Closed || t.Crashed || t.Session == "" || t.Root().Dialog != nil {
		return sent
	}
	p := &mux.Pending{Method: runtime.CommandEvaluate, To: t.At()}
	sent.err = s.Mux.Send(p, scan.Marshal(runtime.EvaluateParams{Expression: "0", Silent: new(true)}))
	sent.pending, sent.forget = p, func() {
		s.Mux.Lock()
		s.Mux.Forget(p)
		s.Mux.Unlock()
	}
	return sent
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
	// The first call has opened the dialog: the page runs one call after the other, and the later ones have not begun.
	if len(calls) > 0 && api.AnswersDialogs(calls[0].OnDialog) {
		tr.Sender.AnswerDialog(t, calls[0].OnDialog) // the later calls continue when it is closed
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

// EndDialog dismisses the open dialog of a page that is about to be left, and ends the script that shows it, because
// that script may open more dialogs. Chrome cannot terminate a script that does nothing but open dialogs; with force,
// EndDialog ends the process of the page. The mux is locked.
func (s *Sender) EndDialog(t *Target, force bool) {
	end := runtime.TerminateExecution
	if force {
		end = page.Crash
	}
	Post(s.Mux, t, end, cdp.Empty{}, nil)
	s.AnswerDialog(t, "dismiss")
}

// BlockedTarget returns the error of a call that a dialog of a target blocks.
func BlockedTarget(t *Target, d *api.Dialog) *api.Error {
	way := "accept or dismiss it, or reload or close the page"
	if d.Type == api.BeforeUnload {
		way = "accept it to leave the page, or dismiss it to stay"
	}
	return &api.Error{Code: api.CodeBusy, Target: t.ID, Dialog: d, Message: fmt.Sprintf(
		"a JavaScript dialog is open and blocks the page: %s %q; %s", d.Type, manifest.Clip(d.Message, 300), way)}
}

// endsDialog reports whether a command ends a dialog. While a beforeunload dialog is open, Chrome accepts
// navigations and reloads but does not run them.
func endsDialog(d *api.Dialog, method string) bool {
	return method == page.CommandHandleJavaScriptDialog || revives(method) && d.Type != api.BeforeUnload
}
