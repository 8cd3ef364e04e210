package wasm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/internal/deadline"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
)

// Away finds places for calls on other machines. It is safe for concurrent use.
type Away interface {
	// Reserve returns a slot on a machine that can run the call. The machine holds the slot until it is closed. Reserve
	// waits for a slot until ctx ends, except for inner calls, and then returns a busy error. A nil slot without an
	// error means that no machine of the pool can run the call, for the given reason; the call then runs here.
	Reserve(ctx context.Context, e Errand) (at Slot, reason string, err error)
}

// Errand is what is needed to find a place for a call.
type Errand struct {
	Plugin  string // its name, for messages
	Digest  string
	Engine  string // digest of the engine of a plugin of kind script; "" for others
	Pool    string
	Caller  string // the caller; callers take turns
	Inner   bool   // a plugin makes the call
	Isolate string // as in [job.Job]
	Again   bool   // the call was lost on another machine
}

// Slot is a place for one call on another machine: a connection to the process that runs it. Read and Write fail with
// [io.ErrUnexpectedEOF] once that process is gone.
type Slot interface {
	io.ReadWriter
	// Lost says what happened to the machine, such as "the worker w1 is gone".
	Lost() string
	// Close ends the call if it has not ended yet.
	Close()
}

// StaysHere reports whether a right ties a call to this machine: a folder, a variable, a secret that the guest may
// read, or the browser.
func StaysHere(right string) bool {
	return slices.ContainsFunc([]string{"fs:", "env:", "secret:read:", "browser:"}, func(prefix string) bool {
		return strings.HasPrefix(right, prefix)
	})
}

// staying returns the names of a grant's rights that tie a call to this machine.
func staying(g grant.Grant) []string { return lists.Filter(g.Names(), StaysHere) }

// awayTries bounds how often a call is sent to other machines. The call's deadline may end it earlier.
const awayTries = 100

// goesAway reports whether a call runs on another machine if there is a place. why says why a call with a pool does
// not.
func (p *Provider) goesAway(r *host.Request) (goes bool, why string) {
	if p.engine.cfg.Away == nil || r.Pool == "" || p.info.Digest == "" {
		return false, ""
	}
	if stays := staying(r.Grant); len(stays) > 0 {
		return false, "its rights keep it on this machine: " + strings.Join(stays, ", ")
	}
	if r.Isolate == isolateNone {
		return false, "isolate is none"
	}
	return true, ""
}

// runAway runs a job on another machine. ran is false if none can run it, for the reason given.
func (p *Provider) runAway(ctx context.Context, j *guest.Job) (result *job.Result, ran bool, why string, err error) {
	r, engine := j.Request, ""
	on, err := p.runsOn()
	if err != nil {
		return nil, true, "", err
	}
	if on != p {
		engine = on.info.Digest
	}
	result, err = runAtPlace(ctx, j, func(ctx context.Context, try int) (place, error) {
		at, reason, err := p.engine.cfg.Away.Reserve(ctx, Errand{Plugin: p.info.Name, Digest: p.info.Digest, Engine: engine,
			Pool: r.Pool, Caller: r.Caller, Inner: r.Inner(), Isolate: r.Isolate, Again: try > 0})
		if err == nil && at == nil {
			why, err = reason, errNoRunner
		}
		return &awaySlot{Slot: at, terms: terms(j, p.info.Digest), last: try == awayTries}, err
	})
	return result, why == "", why, err
}

// awaySlot is a [place] on another machine.
type awaySlot struct {
	Slot
	terms wire.Terms
	last  bool
}

func (s *awaySlot) run(a *remoteCall) (*job.Result, error) {
	a.conn = wire.NewConn(bufio.NewReader(s), s)
	stop := context.AfterFunc(a.control.Ctx, s.Close)
	defer stop()
	result, err := a.send(s.terms)
	a.Request.Usage(a.cpu, 0)
	return result, err
}

func (s *awaySlot) lost(a *remoteCall) error {
	return host.Errorf(host.Trapped, "%s, which ran %s", s.Lost(), a.ToolName())
}

// again implements [place]. A call is not at fault if its machine is lost.
func (s *awaySlot) again(a *remoteCall, _ int) bool { return !s.last && (!a.begun || a.repeatable()) }

func (s *awaySlot) release(bool) { s.Close() }

// Service says how this machine runs a call of another host.
type Service struct {
	// Find returns the plugin with a digest.
	Find    func(ctx context.Context, digest string) (*Provider, error)
	Isolate string // as in [job.Job]
	Scope   string // distinguishes the sessions of the other host from those of others
	// Shorten shortens the paths of this machine in errors and warnings.
	Shorten func(text string) string
}

// Serve runs a call of another host, which it reads from a connection, and sends the outcome. The call ends when the
// connection does. If the connection or Find fails, Serve returns the error; it has then run nothing, and sent no
// outcome.
func (s *Service) Serve(ctx context.Context, stream io.ReadWriter) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn := wire.NewConn(bufio.NewReader(stream), stream)
	var w wire.Call
	var kind wire.Kind
	var body []byte
	hello, err := conn.ReceiveHello()
	if err == nil {
		err = conn.SendHello(hello)
	}
	if err == nil {
		kind, body, err = conn.Receive(maxStart)
	}
	if err == nil && (kind != wire.KindCall || json.Unmarshal(body, &w) != nil) {
		err = errors.New("the other host sent no call")
	}
	if err != nil {
		return err
	}
	ctx, cancel = deadline.With(ctx, w.Left)
	defer cancel()
	from := &asker{conn: conn, replies: make(chan []byte), gone: cancel}
	go from.forward(ctx)
	p, err := s.Find(ctx, w.Code)
	if err != nil {
		return err
	}
	result, err := s.run(ctx, p, from, &w)
	return conn.SendJSON(wire.KindDone, s.outcome(result, err))
}

func (s *Service) outcome(result *job.Result, err error) wire.Outcome {
	o := outcome(result, err)
	o.Err = json.RawMessage(s.Shorten(string(o.Err)))
	for i, text := range o.Warnings {
		o.Warnings[i] = s.Shorten(text)
	}
	return o
}

// forward forwards replies until the call or the connection ends. The call ends with the connection.
func (s *asker) forward(ctx context.Context) {
	defer s.gone()
	for {
		kind, body, err := s.conn.Receive(maxReply)
		if err != nil || kind != wire.KindReply {
			return
		}
		select {
		case s.replies <- body:
		case <-ctx.Done():
			return
		}
	}
}

// run runs the call that another host has sent.
func (s *Service) run(ctx context.Context, p *Provider, from *asker, w *wire.Call) (*job.Result, error) {
	grant, err := w.Grant()
	if stays := staying(grant); err != nil || len(stays) > 0 {
		return nil, host.Errorf(host.Internal, "the call has rights that are tied to another machine: %q, %v", stays, err)
	}
	m, err := p.loadParts().manifest()
	if err != nil {
		return nil, err
	}
	r := from.request(w, m, grant)
	if r.Isolate, r.Session = s.Isolate, (caller.Session{Name: s.Scope + w.Session}); r.Def == nil {
		return nil, host.Errorf(host.Internal, "%s has no tool %s", m.Name, manifest.CleanLine(w.Tool))
	}
	if err := p.prepareFor(ctx, r); err != nil {
		return nil, err
	}
	j, err := p.job(r)
	if err != nil {
		return nil, err
	}
	j.Session, j.Serve = w.Session, from.ask
	from.send(wire.KindBegun, nil)
	return p.runHere(ctx, j)
}
