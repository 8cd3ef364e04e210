package verb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/manifest"
)

// inputCommands are the commands that send input events, with the types of their events.
var inputCommands = []struct{ method, types string }{
	{input.CommandDispatchMouseEvent, "mousePressed mouseReleased mouseMoved mouseWheel"},
	{input.CommandDispatchKeyEvent, "keyDown keyUp rawKeyDown char"},
	{input.CommandDispatchTouchEvent, "touchStart touchEnd touchMove touchCancel"},
	{input.CommandInsertText, "insertText"},
}

// SendInput sends input events. All are sent before the reply to the first one arrives, so that nothing else gets
// between them.
func (e *Verbs) SendInput(ctx context.Context, by api.Caller, o api.VerbOptions, q api.InputRequest) (
	api.InputSent, *api.Error,
) {
	if err := cmp.Or(api.CheckOnDialog(o.OnDialog), api.CheckWait(o.Wait)); err != nil {
		return api.InputSent{}, err
	}
	var drag *api.Drag
	if len(q.Events) == 1 && scan.Text(q.Events[0], "type") == "drag" {
		if err := json.Unmarshal(q.Events[0], &drag); err != nil {
			return api.InputSent{}, api.Errorf(api.CodeInvalidArgs, "the drag is malformed: %v", err)
		}
		q.Events = nil
	}
	commands := make([]*mux.Pending, len(q.Events))
	params := make([]json.RawMessage, len(q.Events))
	for i, event := range q.Events {
		all := map[string]json.RawMessage{}
		if err := json.Unmarshal(event, &all); err != nil {
			return api.InputSent{}, api.Errorf(api.CodeInvalidArgs, "event %d is not an object", i)
		}
		kind := scan.Text(event, "type")
		method := ""
		for _, c := range inputCommands {
			if slices.Contains(strings.Fields(c.types), kind) {
				method = c.method
			}
		}
		if kind == "drag" {
			return api.InputSent{}, api.Errorf(api.CodeInvalidArgs, "event %d is a drag, which must be the only event", i)
		}
		if method == "" {
			return api.InputSent{}, api.Errorf(api.CodeInvalidArgs, "event %d has the unknown type %q", i,
				manifest.Clip(kind, 40))
		}
		if method == input.CommandInsertText {
			delete(all, "type")
		}
		commands[i] = &mux.Pending{Method: method, By: by, OnDialog: o.OnDialog}
		params[i] = scan.Marshal(all)
	}
	t, err := e.Owners.Resolve(by, o.Target)
	if err != nil {
		return api.InputSent{}, err
	}
	if err := e.Claim(by, t, "takes no input"); err != nil {
		return api.InputSent{}, err
	}
	if err := e.Tracker.Attach(ctx, t, ""); err != nil {
		return api.InputSent{}, err
	}
	w := e.newPageWait(t, o.Wait, o.OnDialog)
	defer w.close()
	sent := api.InputSent{Target: t.ID, Events: len(q.Events)}
	if drag != nil {
		sent.Events = 1
		sent.Dragged, err = dragMouse(e, ctx, t, drag, q.Aim, target.CallOptions{By: by, OnDialog: o.OnDialog})
		if err != nil {
			return api.InputSent{}, err
		}
	} else if all, returned, err := e.sender.ExchangeAll(ctx, t, commands, params); err != nil {
		if err.Code == api.CodeTimeout && all > 0 {
			err.Message += fmt.Sprintf("; of %d events, %d were sent and %d returned: the page may still act on the others",
				len(commands), all, returned)
		}
		return api.InputSent{}, err
	}
	if err := w.after(ctx, input.CommandDispatchMouseEvent, nil); err != nil {
		return api.InputSent{}, err
	}
	return sent, nil
}

// moveLength is how far the mouse moves at a time, in pixels, unless the distance is long, so that the page notices
// each item on the way.
const moveLength = 12.0

// interceptTimeout is how long a drag may take to begin in the browser after the mouse has moved. Chrome reports it
// at about the time at which the moves return.
const interceptTimeout = 300 * time.Millisecond

// dragMouse serves a [Drag], and reports whether the browser did the drag. Chrome hands over the dragged data
// (Input.setInterceptDrags) instead of asking the desktop, which a headless browser does not have.
func dragMouse(
	e *Verbs, ctx context.Context, t *target.Target, d *api.Drag, aim func(api.Drag) api.Drag, o target.CallOptions,
) (dragged bool, err *api.Error) {
	const moved = input.DispatchMouseEventTypeMouseMoved
	page, data := t.Root(), json.RawMessage(nil) // data is what the browser drags
	e.Mux.Lock()
	page.DragData = nil
	e.Mux.Unlock()
	intercept := func(ctx context.Context, on bool) *api.Error {
		_, err := target.Execute(ctx, e.sender, page, input.SetInterceptDrags, input.SetInterceptDragsParams{Enabled: on}, o)
		return err
	}
	if err := intercept(ctx, true); err != nil {
		return false, err
	}
	mouse := func(ctx context.Context, kind input.DispatchMouseEventType, part float64, buttons int64) *api.Error {
		p := input.DispatchMouseEventParams{Type: kind, Buttons: buttons,
			X: d.X + part*(d.ToX-d.X), Y: d.Y + part*(d.ToY-d.Y)}
		if kind != moved || buttons != 0 {
			p.Button, p.ClickCount = input.MouseButtonLeft, 1
		}
		_, err := target.Execute(ctx, e.sender, t, input.DispatchMouseEvent, p, o)
		return err
	}
	drop := func(ctx context.Context, kind input.DispatchDragEventType, part float64) *api.Error {
		params := scan.Marshal(map[string]any{"type": kind, "data": data,
			"x": d.X + part*(d.ToX-d.X), "y": d.Y + part*(d.ToY-d.Y)})
		_, err := e.sender.Do(ctx, t, input.CommandDispatchDragEvent, params, o)
		return err
	}
	isHeld := false
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if isHeld && data != nil { // otherwise the page would take the next move for a part of this drag
			drop(ending, input.DispatchDragEventTypeDragCancel, 1)
		}
		if isHeld { // otherwise the next click would begin with the button down
			mouse(ending, input.DispatchMouseEventTypeMouseReleased, 1, 0)
		}
		intercept(ending, false)
	}()
	if err := mouse(ctx, moved, 0, 0); err != nil {
		return false, err
	}
	isHeld = true
	if err := mouse(ctx, input.DispatchMouseEventTypeMousePressed, 0, 1); err != nil {
		return false, err
	}
	if err := rest(ctx, d.Hold, func() *api.Error { return nil }); err != nil {
		return false, err
	}
	steps := min(max(4, math.Ceil(math.Hypot(d.ToX-d.X, d.ToY-d.Y)/moveLength)), 25)
	for step := 1.0; step <= steps; step++ {
		if err := mouse(ctx, moved, step/steps, 1); err != nil {
			return false, err
		}
		if aim != nil && step == 1 {
			*d = aim(*d)
		}
	}
	if data = interceptedDrag(e, ctx, page); data != nil {
		err = dropData(ctx, d.Hold, drop)
	} else {
		over := func() *api.Error { return mouse(ctx, moved, 1, 1) }
		err = cmp.Or(over(), rest(ctx, d.Hold, over)) // some pages check again when they have moved an item
	}
	if err != nil {
		return data != nil, err
	}
	isHeld = false
	return data != nil, mouse(ctx, input.DispatchMouseEventTypeMouseReleased, 1, 0)
}

// dropData moves the browser's drag over a page and drops it. send sends an event for a position given as a fraction
// of the way.
func dropData(
	ctx context.Context, hold float64, send func(context.Context, input.DispatchDragEventType, float64) *api.Error,
) *api.Error {
	over := func() *api.Error { return send(ctx, input.DispatchDragEventTypeDragOver, 1) }
	for _, part := range []float64{0.5, 1} {
		if part < 1 && hold == 0 {
			continue
		}
		for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter,
			input.DispatchDragEventTypeDragOver} {
			if err := send(ctx, kind, part); err != nil {
				return err
			}
		}
	}
	if err := rest(ctx, hold, over); err != nil {
		return err
	}
	return send(ctx, input.DispatchDragEventTypeDrop, 1)
}

// rest repeats an event for some milliseconds, as a mouse does that is held still.
func rest(ctx context.Context, hold float64, repeat func() *api.Error) *api.Error {
	for until := time.Now().Add(time.Duration(hold) * time.Millisecond); time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return nil // the next event returns this error
		case <-time.After(50 * time.Millisecond):
		}
		if err := repeat(); err != nil {
			return err
		}
	}
	return nil
}

// interceptedDrag returns the data that is being dragged in a page, nil if the browser drags nothing.
func interceptedDrag(e *Verbs, ctx context.Context, page *target.Target) (data json.RawMessage) {
	ctx, cancel := context.WithTimeout(ctx, interceptTimeout)
	defer cancel()
	e.Mux.Wait(ctx, "for a drag", func() (bool, *api.Error) {
		data = page.DragData
		return data != nil, nil
	})
	return data
}
