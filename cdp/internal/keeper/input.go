package keeper

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/chromedp/cdproto/input"

	"github.com/parley-tools/parley/manifest"
)

// InputRequest sends input events to a page, one directly after the other.
type InputRequest struct {
	Target string `json:"target,omitempty"` // as in CallRequest
	// Events have the parameters of the command that their type belongs to; see inputCommand. A [Drag] stands alone.
	Events    []json.RawMessage `json:"events"`
	OnDialog  string            `json:"on_dialog,omitempty"`
	Wait      string            `json:"wait,omitempty"` // as in CallRequest
	TimeoutMS int64             `json:"timeout_ms,omitempty"`
}

// InputSent is the result of an InputRequest.
type InputSent struct {
	Target string `json:"target"`
	Events int    `json:"events"`
	// Dragged says that the page left a [Drag] to the browser, which has dropped what was dragged.
	Dragged bool `json:"dragged,omitempty"`
}

// Drag is an event that presses the mouse at a point, moves it to another one and releases it there. Where the page
// leaves the drag to the browser, as it does that of a draggable element, the browser drops the data as trusted events.
type Drag struct {
	Type string  `json:"type"` // "drag"
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	ToX  float64 `json:"toX"`
	ToY  float64 `json:"toY"`
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
	var drag *Drag
	if len(q.Events) == 1 && text(q.Events[0], "type") == "drag" {
		if err := json.Unmarshal(q.Events[0], &drag); err != nil {
			return InputSent{}, errf(CodeInvalidArgs, "the drag is malformed: %v", err)
		}
		q.Events = nil
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
		if kind == "drag" {
			return InputSent{}, errf(CodeInvalidArgs, "event %d is a drag, which must be the only event", i)
		}
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
	sent := InputSent{Target: t.id, Events: len(q.Events)}
	if drag != nil {
		sent.Events = 1
		if sent.Dragged, err = e.drag(ctx, t, drag, callOptions{by: by, onDialog: q.OnDialog}); err != nil {
			return InputSent{}, err
		}
	} else if err := e.exchangeAll(ctx, t, commands, params); err != nil {
		return InputSent{}, err
	}
	if err := w.after(ctx, input.CommandDispatchMouseEvent, nil); err != nil {
		return InputSent{}, err
	}
	return sent, nil
}

// interceptTimeout is how long a drag of the browser may take to begin after the mouse has moved. Chrome reports it at
// about the time at which the moves return.
const interceptTimeout = 300 * time.Millisecond

// drag serves a [Drag], and reports whether the browser dragged. Chrome hands over what is dragged
// (Input.setInterceptDrags) instead of asking the desktop, which a headless browser does not have.
func (e *engine) drag(ctx context.Context, t *target, d *Drag, o callOptions) (dragged bool, err *Error) {
	const moved = input.DispatchMouseEventTypeMouseMoved
	page := t.root()
	e.mu.Lock()
	page.dragData = nil
	e.mu.Unlock()
	intercept := func(ctx context.Context, on bool) *Error {
		_, err := execute(ctx, e.sender, page, input.SetInterceptDrags, input.SetInterceptDragsParams{Enabled: on}, o)
		return err
	}
	if err := intercept(ctx, true); err != nil {
		return false, err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		intercept(ending, false)
	}()
	mouse := func(kind input.DispatchMouseEventType, part float64, buttons int64) *Error {
		p := input.DispatchMouseEventParams{Type: kind, Buttons: buttons,
			X: d.X + part*(d.ToX-d.X), Y: d.Y + part*(d.ToY-d.Y)}
		if kind != moved || buttons != 0 {
			p.Button, p.ClickCount = input.MouseButtonLeft, 1
		}
		_, err := execute(ctx, e.sender, t, input.DispatchMouseEvent, p, o)
		return err
	}
	if err := cmp.Or(mouse(moved, 0, 0), mouse(input.DispatchMouseEventTypeMousePressed, 0, 1)); err != nil {
		return false, err
	}
	for _, part := range []float64{0.1, 0.5, 0.9, 1} {
		if err := mouse(moved, part, 1); err != nil {
			return false, err
		}
	}
	if data := e.interceptedDrag(ctx, page); data != nil {
		for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter,
			input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
			params := mustJSON(map[string]any{"type": kind, "x": d.ToX, "y": d.ToY, "data": data})
			if _, err := e.do(ctx, t, input.CommandDispatchDragEvent, params, o); err != nil {
				return true, err
			}
		}
		dragged = true
	}
	return dragged, mouse(input.DispatchMouseEventTypeMouseReleased, 1, 0)
}

// interceptedDrag returns what is being dragged in a page, nil if the browser drags nothing.
func (e *engine) interceptedDrag(ctx context.Context, page *target) (data json.RawMessage) {
	ctx, cancel := context.WithTimeout(ctx, interceptTimeout)
	defer cancel()
	e.wait(ctx, "for a drag", func() (bool, *Error) {
		data = page.dragData
		return data != nil, nil
	})
	return data
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
