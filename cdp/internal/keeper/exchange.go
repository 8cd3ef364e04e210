package keeper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// callOptions are the options of one command.
type callOptions struct {
	by       api.Caller
	maxBytes int64
	onDialog string
	pieces   bool
	onSent   func(*mux.Pending) // is called with the engine locked
}

// sender sends commands to targets, with the reason where one cannot be sent or does not return.
type sender struct{ mux *mux.Mux }

// execute sends one of the engine's own commands, built from the protocol's generated types, and waits for its result.
// It decodes the result with encoding/json, which tolerates new fields of later browsers and invalid text of pages; the
// generated types' own decoders are strict.
func execute[P, R any](
	ctx context.Context, s *sender, t *target, c cdp.Command[P, R], params P, o callOptions,
) (result R, err *api.Error) {
	raw, err := s.do(ctx, t, c.Method, scan.Marshal(params), o)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, api.Errorf(api.CodeProtocolError, "the result of %s cannot be read: %v", c.Method, err)
	}
	return result, nil
}

// postCommand sends a command of the protocol's generated types without waiting for its reply; after may be nil. The
// mux is locked.
func postCommand[P, R any](m *mux.Mux, t *target, c cdp.Command[P, R], params P, after func(mux.Reply)) {
	m.Post(t.at(), c.Method, scan.Marshal(params), after)
}

// do sends one command to a target (nil: the browser) and waits for its reply, the end of the target or of ctx.
func (s *sender) do(
	ctx context.Context, t *target, method string, params json.RawMessage, o callOptions,
) (json.RawMessage, *api.Error) {
	r := s.exchange(ctx, t, method, params, o)
	return r.Result, r.Err
}

// Between two documents a page is not active for a moment. Chrome refuses a command then and has not run it.
const (
	inactive      = "Not attached to an active page"
	inactivePause = 20 * time.Millisecond
	inactiveTries = 50
)

// exchange is do for a caller that accepts a large result in pieces. It sends a command again that found the page
// between two documents.
func (s *sender) exchange(
	ctx context.Context, t *target, method string, params json.RawMessage, o callOptions,
) mux.Reply {
	for try := 1; ; try++ {
		r := s.exchangeOnce(ctx, t, method, params, o)
		if r.Err == nil || r.Err.Chrome == nil || r.Err.Chrome.Message != inactive || try == inactiveTries {
			return r
		}
		select {
		case <-ctx.Done():
			return r
		case <-time.After(inactivePause):
		}
	}
}

func (s *sender) exchangeOnce(
	ctx context.Context, t *target, method string, params json.RawMessage, o callOptions,
) mux.Reply {
	started := time.Now()
	s.mux.Lock()
	// A dialog that an earlier call left open is not this call's to answer: OnDialog is about its own.
	if err := s.checkSendable(t, method); err != nil {
		s.mux.Unlock()
		return mux.Reply{Err: err}
	}
	p := &mux.Pending{Method: method, By: o.by, To: t.at(), MaxBytes: o.maxBytes, OnDialog: o.onDialog, Pieces: o.pieces}
	err := s.mux.Send(p, params)
	if err == nil && o.onSent != nil {
		o.onSent(p)
	}
	s.mux.Unlock()
	if err != nil {
		return mux.Reply{Err: err}
	}
	select {
	case r := <-p.Done:
		return r
	case <-ctx.Done():
	}
	s.mux.Lock()
	if method == cdptarget.CommandCreateTarget {
		p.After = s.closeCreated
	} else {
		s.mux.Forget(p)
	}
	s.mux.Unlock()
	select {
	case r := <-p.Done: // it arrived at the same moment
		return r
	default:
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		go s.unstick(t)
		return mux.Reply{Err: api.ContextError(ctx, method)}
	}
	failure := api.Errorf(api.CodeTimeout, "%s did not return within %s", method,
		time.Since(started).Round(10*time.Millisecond))
	if diagnosis := s.unstick(t); diagnosis != "" {
		failure.Message += "; " + diagnosis
	}
	if t != nil {
		failure.Target = t.ID
	}
	return mux.Reply{Err: failure}
}

// closeCreated closes a new target whose creator no longer waits: it would belong to no caller. The engine is
// locked.
func (s *sender) closeCreated(r mux.Reply) {
	var made cdptarget.CreateTargetResult
	if json.Unmarshal(r.Result, &made) == nil && made.TargetID != "" {
		s.postClose(made.TargetID)
	}
}

// postClose closes a target without waiting for it. The engine is locked.
func (s *sender) postClose(id cdptarget.ID) {
	postCommand(s.mux, nil, cdptarget.CloseTarget, cdptarget.CloseTargetParams{TargetID: id}, nil)
}

// awaitDisconnect waits until the browser has exited after Browser.close, so that the next call does not meet a
// dying one.
func (s *sender) awaitDisconnect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	select {
	case <-s.mux.Done:
	case <-ctx.Done():
	}
}

// exchangeAll sends commands to a target directly after each other, and waits for all replies. It returns the first
// error.
func (s *sender) exchangeAll(ctx context.Context, t *target, commands []*mux.Pending, params []json.RawMessage) (
	failed *api.Error,
) {
	s.mux.Lock()
	sent := 0
	for i, p := range commands {
		p.To = t.at()
		if failed = s.checkSendable(t, p.Method); failed == nil {
			failed = s.mux.Send(p, params[i])
		}
		if failed != nil {
			break
		}
		sent++
	}
	s.mux.Unlock()
	for _, p := range commands[:sent] {
		select {
		case r := <-p.Done:
			failed = cmp.Or(failed, r.Err)
		case <-ctx.Done():
			s.mux.Lock()
			s.mux.Forget(commands[:sent]...)
			s.mux.Unlock()
			late := api.ContextError(ctx, "sending input")
			if diagnosis := s.unstick(t); diagnosis != "" {
				late.Message += "; " + diagnosis
			}
			late.Target = t.ID
			return late
		}
	}
	return failed
}
