package target

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

// CallOptions are the options of one command.
type CallOptions struct {
	By       api.Caller
	MaxBytes int64
	OnDialog string
	Pieces   bool
	onSent   func(*mux.Pending) // is called with the mux locked
}

// Sender sends commands to targets, with the reason where one cannot be sent or does not return.
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

// Between two documents a page is not active for a moment. Chrome refuses a command then and has not run it.
const (
	inactive      = "Not attached to an active page"
	inactivePause = 20 * time.Millisecond
	inactiveTries = 50
)

// exchange is do for a caller that accepts a large result in pieces. It sends a command again that found the page
// between two documents.
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
			return r
		case <-time.After(inactivePause):
		}
	}
}

func (s *Sender) exchangeOnce(
	ctx context.Context, t *Target, method string, params json.RawMessage, o CallOptions,
) mux.Reply {
	started := time.Now()
	s.Mux.Lock()
	// A dialog that an earlier call left open is not this call's to answer: OnDialog is about its own.
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

// await waits for the reply to a command.
func (s *Sender) await(ctx context.Context, t *Target, p *mux.Pending, started time.Time) mux.Reply {
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
		go s.Unstick(t)
		return mux.Reply{Err: api.ContextError(ctx, p.Method)}
	}
	failure := api.Errorf(api.CodeTimeout, "%s did not return within %s", p.Method,
		time.Since(started).Round(10*time.Millisecond))
	if diagnosis := s.Unstick(t); diagnosis != "" {
		failure.Message += "; " + diagnosis
	}
	if t != nil {
		failure.Target = t.ID
	}
	return mux.Reply{Err: failure}
}

// closeCreated closes a new target whose creator no longer waits: it would belong to no caller. The mux is
// locked.
func (s *Sender) closeCreated(r mux.Reply) {
	if id := scan.Text(r.Result, "targetId"); id != "" {
		s.PostClose(id)
	}
}

// Chrome loses a close of a page that just replaces its frame, as the end of a reload does. So a close is sent again.
const (
	closePause = time.Second
	closeTries = 30
)

// PostClose closes a page without waiting for it: it asks until the page is gone, or stays because its beforeunload
// dialog was dismissed. The mux is locked.
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
			// Without a session nobody hears of dialogs.
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

// awaitDisconnect waits until the browser has exited after Browser.close, so that the next call does not meet a
// dying one.
func (s *Sender) awaitDisconnect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	select {
	case <-s.Mux.Done:
	case <-ctx.Done():
	}
}

// ExchangeAll sends commands to a target directly after each other, and waits for all replies. It returns the first
// error.
func (s *Sender) ExchangeAll(ctx context.Context, t *Target, commands []*mux.Pending, params []json.RawMessage) (
	failed *api.Error,
) {
	started := time.Now()
	s.Mux.Lock()
	sent := 0
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
	for i, p := range commands[:sent] {
		failed = cmp.Or(failed, s.await(ctx, t, p, started).Err)
		if ctx.Err() != nil {
			s.Mux.Lock()
			s.Mux.Forget(commands[i:sent]...)
			s.Mux.Unlock()
			break
		}
	}
	return failed
}

// closeTimeout bounds the wait for a browser that a caller has closed.
const closeTimeout = 3 * time.Second
