package keeper

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/chromedp/cdproto/input"

	"github.com/parley-tools/parley/manifest"
)

// InputRequest sends input events to a page, one directly after the other.
type InputRequest struct {
	Target string `json:"target,omitempty"` // as in CallRequest
	// Events have the parameters of the command that their type belongs to; see inputCommand.
	Events    []json.RawMessage `json:"events"`
	OnDialog  string            `json:"on_dialog,omitempty"`
	Wait      string            `json:"wait,omitempty"` // as in CallRequest
	TimeoutMS int64             `json:"timeout_ms,omitempty"`
}

// InputSent is the result of an InputRequest.
type InputSent struct {
	Target string `json:"target"`
	Events int    `json:"events"`
}

// inputCommand returns the command that sends an event of a type, "" if there is none.
func inputCommand(kind string) string {
	switch kind {
	case "mousePressed", "mouseReleased", "mouseMoved", "mouseWheel":
		return input.CommandDispatchMouseEvent
	case "keyDown", "keyUp", "rawKeyDown", "char":
		return input.CommandDispatchKeyEvent
	case "touchStart", "touchEnd", "touchMove", "touchCancel":
		return input.CommandDispatchTouchEvent
	case "insertText":
		return input.CommandInsertText
	}
	return ""
}

// sendInput serves an InputRequest. All events are sent before the first one is answered, so that nothing else gets
// between them.
func (e *engine) sendInput(ctx context.Context, by Caller, q InputRequest) (InputSent, *Error) {
	if err := cmp.Or(checkOnDialog(q.OnDialog), checkWait(q.Wait)); err != nil {
		return InputSent{}, err
	}
	commands := make([]*pending, len(q.Events))
	params := make([]json.RawMessage, len(q.Events))
	for i, event := range q.Events {
		all := map[string]json.RawMessage{}
		if err := json.Unmarshal(event, &all); err != nil {
			return InputSent{}, errf(CodeInvalidArgs, "event %d is not an object", i)
		}
		kind := text(event, "type")
		method := inputCommand(kind)
		if method == "" {
			return InputSent{}, errf(CodeInvalidArgs, "event %d has the unknown type %q", i, manifest.Clip(kind, 40))
		}
		if method == input.CommandInsertText {
			delete(all, "type")
		}
		commands[i] = &pending{method: method, by: by, onDialog: q.OnDialog}
		params[i] = mustJSON(all)
	}
	if by.hasContext() {
		_, release, err := e.enterScope(ctx, by)
		if err != nil {
			return InputSent{}, err
		}
		defer release()
	}
	t, err := e.resolve(by, q.Target)
	if err != nil {
		return InputSent{}, err
	}
	e.mu.Lock()
	e.countCall(by)
	e.claim(by, t)
	e.mu.Unlock()
	if !hasPage(t.kind) {
		return InputSent{}, errf(CodeInvalidArgs, "target %s is a %s, which takes no input", t.id, t.kind)
	}
	if err := e.attach(ctx, t, ""); err != nil {
		return InputSent{}, err
	}
	w := e.newPageWait(t, q.Wait, q.OnDialog)
	defer w.close()
	if err := e.exchangeAll(ctx, t, commands, params); err != nil {
		return InputSent{}, err
	}
	if err := w.after(ctx, input.CommandDispatchMouseEvent, nil); err != nil {
		return InputSent{}, err
	}
	return InputSent{t.id, len(q.Events)}, nil
}

// exchangeAll sends commands to a target directly after each other, and waits for all replies. It returns the first
// error.
func (s *sender) exchangeAll(ctx context.Context, t *target, commands []*pending, params []json.RawMessage) (
	failed *Error,
) {
	s.mu.Lock()
	sent := 0
	for i, p := range commands {
		p.target = t
		if failed = s.checkSendable(t, p.method); failed == nil {
			failed = s.send(p, params[i])
		}
		if failed != nil {
			break
		}
		sent++
	}
	s.mu.Unlock()
	for _, p := range commands[:sent] {
		select {
		case r := <-p.done:
			failed = cmp.Or(failed, r.err)
		case <-ctx.Done():
			s.mu.Lock()
			for _, p := range commands[:sent] {
				delete(s.pending, p.id)
			}
			s.mu.Unlock()
			late := contextError(ctx, "sending input")
			if diagnosis := s.unstick(t); diagnosis != "" {
				late.Message += "; " + diagnosis
			}
			late.Target = t.id
			return late
		}
	}
	return failed
}
