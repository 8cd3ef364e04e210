package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	cdptarget "github.com/chromedp/cdproto/target"
)

// callOptions are the options of one command.
type callOptions struct {
	by       Caller
	maxBytes int64
	onDialog string
	pieces   bool
}

// execute sends one of the engine's own commands, built from the protocol's generated types, and waits for its result.
// It decodes the result with encoding/json, which tolerates new fields of later browsers and invalid text of pages; the
// generated types' own decoders are strict.
func execute[P, R any](
	ctx context.Context, tr *tracker, t *target, c cdp.Command[P, R], params P, o callOptions,
) (result R, err *Error) {
	raw, err := tr.do(ctx, t, c.Method, mustJSON(params), o)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, errf(CodeProtocolError, "the result of %s cannot be read: %v", c.Method, err)
	}
	return result, nil
}

// do sends one command to a target (nil: the browser) and waits for its reply, the end of the target or of ctx.
func (tr *tracker) do(
	ctx context.Context, t *target, method string, params json.RawMessage, o callOptions,
) (json.RawMessage, *Error) {
	r := tr.exchange(ctx, t, method, params, o)
	return r.result, r.err
}

// exchange is do for a caller that accepts a large result in pieces.
func (tr *tracker) exchange(
	ctx context.Context, t *target, method string, params json.RawMessage, o callOptions,
) reply {
	started := time.Now()
	tr.mu.Lock()
	// A dialog that an earlier call left open is not this call's to answer: OnDialog is about its own.
	if err := tr.checkSendable(t, method); err != nil {
		tr.mu.Unlock()
		return reply{err: err}
	}
	p := &pending{method: method, by: o.by, target: t, maxBytes: o.maxBytes, onDialog: o.onDialog, pieces: o.pieces}
	err := tr.send(p, params)
	if err == nil && t != nil && o.by.Name != "" {
		tr.keepEnabled(t, p)
	}
	tr.mu.Unlock()
	if err != nil {
		return reply{err: err}
	}
	select {
	case r := <-p.done:
		return r
	case <-ctx.Done():
	}
	tr.mu.Lock()
	if method == cdptarget.CommandCreateTarget {
		p.after = tr.closeCreated
	} else {
		delete(tr.pending, p.id)
	}
	tr.mu.Unlock()
	select {
	case r := <-p.done: // it arrived at the same moment
		return r
	default:
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		go tr.unstick(t)
		return reply{err: contextError(ctx, method)}
	}
	failure := errf(CodeTimeout, "%s did not return within %s", method, time.Since(started).Round(10*time.Millisecond))
	if diagnosis := tr.unstick(t); diagnosis != "" {
		failure.Message += "; " + diagnosis
	}
	if t != nil {
		failure.Target = t.id
	}
	return reply{err: failure}
}

// closeCreated closes a new target whose creator no longer waits: it would belong to no caller. The engine is
// locked.
func (tr *tracker) closeCreated(r reply) {
	var made cdptarget.CreateTargetResult
	if json.Unmarshal(r.result, &made) == nil && made.TargetID != "" {
		tr.postClose(made.TargetID)
	}
}

// postClose closes a target without waiting for it. The engine is locked.
func (tr *tracker) postClose(id cdptarget.ID) {
	postCommand(tr.mux, nil, cdptarget.CloseTarget, cdptarget.CloseTargetParams{TargetID: id}, nil)
}

// exchangeForCaller is exchange for a caller's own command, which may change the state that the engine tracks.
func (tr *tracker) exchangeForCaller(ctx context.Context, t *target, q CallRequest, o callOptions) reply {
	r := tr.exchange(ctx, t, q.Method, q.Params, o)
	if r.err == nil {
		tr.mu.Lock()
		if t != nil {
			tr.trackDomain(t, q.Method, q.Params)
		}
		tr.restoreTracking(t, q.Method)
		if q.Method == cdpbrowser.CommandSetDownloadBehavior {
			tr.downloads.releaseDownloads(q.Params)
		}
		tr.mu.Unlock()
		if q.Method == cdpbrowser.CommandClose {
			tr.awaitDisconnect(ctx)
		}
	}
	return r
}

// awaitDisconnect waits until the browser has exited after Browser.close, so that the next call does not meet a
// dying one.
func (tr *tracker) awaitDisconnect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	select {
	case <-tr.done:
	case <-ctx.Done():
	}
}
