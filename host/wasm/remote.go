package wasm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// frameOverhead is the size of a frame in addition to a result or a request: an error with details, and JSON escapes.
const frameOverhead = 1 << 20

// place is where one call can run: a runner, or a slot on another machine.
type place interface {
	// run runs a call. If the place is gone, it returns the connection's error; see isGone.
	run(a *remoteCall) (*job.Result, error)
	// lost returns why the place is gone, as an error. An error other than trapped ends a call that has begun.
	lost(a *remoteCall) error
	// again reports whether another place may run a call that was lost here. begun is the number of places that have
	// begun it.
	again(a *remoteCall, begun int) bool
	// release gives the place back. If it is reusable, it may serve other calls.
	release(reusable bool)
}

// runAtPlace runs a job at a place that find returns. If the place is lost and the call can run again, it tries
// another place. try counts from 0.
func runAtPlace(ctx context.Context, j *guest.Job, find func(ctx context.Context, try int) (place, error),
) (*job.Result, error) {
	var unplaced error // why there was no place in time; it replaces the error of the deadline
	var lost *host.Error
	k := j.Control()
	result, err := k.Within(ctx, func() (*job.Result, error) {
		for try, begun := 0, 0; ; try++ {
			at, err := find(k.Ctx, try)
			if err != nil {
				if e := host.AsError(err); e.Code == host.Busy || e.Code == host.Unavailable {
					if unplaced = e; lost != nil { // then something was run
						lost.Place, unplaced = e.Place, lost
					}
				}
				return nil, err
			}
			a := &remoteCall{Job: j, control: k}
			result, err := at.run(a)
			if isGone(err) {
				err = at.lost(a)
				if a.begun {
					begun, lost = begun+1, host.AsError(err)
				}
				if (!a.begun || errors.Is(err, host.Trapped)) && at.again(a, begun) && k.Ctx.Err() == nil {
					at.release(false)
					k.HostCalls = 0
					continue
				}
			}
			at.release(a.done && !endsRunner(err) && k.Ctx.Err() == nil)
			return result, a.awaitDeadline(err)
		}
	})
	return result, cmp.Or(unplaced, err)
}

// remoteCall is the host's side of a call that runs in another process. That process may be compromised, so everything
// that it sends is bounded and cleaned here.
type remoteCall struct {
	*guest.Job
	control *world.Control
	conn    *wire.Conn

	begun bool          // the guest may have run
	cpu   time.Duration // CPU time that the guest has used, according to its process
	done  bool          // the outcome has arrived
	acted bool          // the guest may have changed something beyond its instance, as far as this side sees it

	logged int
}

// awaitDeadline returns the error of a call that another process ran. The clock of this process decides whether it
// ended in time; the other process's clock may be slightly ahead. A guest may also have exceeded its running time
// before the deadline.
func (a *remoteCall) awaitDeadline(err error) error {
	const ahead = time.Second
	if e := (*host.Error)(nil); errors.As(err, &e) && e.Code == host.Timeout && e.Tool == nil &&
		untilEnd(a.control.Ctx) < ahead {
		<-a.control.Ctx.Done()
	}
	return err
}

// untilEnd returns the time until the deadline of a call.
func untilEnd(ctx context.Context) time.Duration {
	at, _ := ctx.Deadline()
	return time.Until(at)
}

// terms returns the terms of a runner for the job.
func terms(j *guest.Job, code string) wire.Terms {
	return wire.Terms{Code: code, Rights: wire.RightsOf(j.Request.Grant), Limits: j.Request.Limits}
}

// message returns the job in the form of the wire. left is the time until its deadline.
func message(j *guest.Job, terms wire.Terms, left time.Duration) wire.Call {
	r := j.Request
	return wire.Call{Terms: terms, Tool: r.Tool, Params: guest.JSONOr(r.Params, "{}"), Caller: r.Caller,
		Session: j.Session, CallID: r.CallID, Left: left, Options: r.Options, Settings: r.Settings, Wants: r.Wants}
}

// send sends the call, and serves requests until the outcome arrives. If the call is the first on the connection,
// send exchanges a hello before. A connection error means that the process has ended; see isGone.
func (a *remoteCall) send(terms wire.Terms) (*job.Result, error) {
	body, err := manifest.Marshal(message(a.Job, terms, untilEnd(a.control.Ctx)))
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "the parameters are not valid JSON: %v", err)
	}
	if !a.conn.Greeted {
		if err := a.conn.QueueHello(wire.Hello{Host: a.Host}); err != nil {
			return nil, err
		}
	}
	if err := a.conn.Send(wire.KindCall, body); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	if !a.conn.Greeted {
		_, err := a.conn.ReceiveHello()
		if isGone(err) {
			return nil, err
		}
		if err != nil {
			return nil, host.Errorf(host.Trapped, "the process of %s: %s", a.Manifest.Name, world.Line(err.Error(), 200))
		}
	}
	for {
		kind, body, err := a.conn.Receive(maxFrame(a.Job))
		switch {
		case isGone(err):
			return nil, err
		case err != nil:
			return nil, host.Errorf(host.Trapped, "the process of %s sent %v", a.ToolName(), err)
		case kind == wire.KindDone:
			a.done = true
			return a.decodeOutcome(body)
		}
		if err := a.handle(kind, body); err != nil {
			return nil, err
		}
	}
}

// maxFrame bounds a frame from the process of a call. A byte of guest text may take six bytes in JSON.
func maxFrame(j *guest.Job) int { return max(6*j.Limits.Output, world.MaxHostRequest) + frameOverhead }

// isGone reports whether an error of a connection means that the process at the other end has ended.
func isGone(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, os.ErrClosed, net.ErrClosed, syscall.ECONNRESET,
		syscall.EPIPE}, func(gone error) bool { return errors.Is(err, gone) })
}

// handle processes one frame. It enforces the same limits as the process itself.
func (a *remoteCall) handle(kind wire.Kind, body []byte) error {
	switch kind {
	case wire.KindBegun:
		a.begun = true
	case wire.KindAsk:
		if err := a.control.CountHostCall(); err != nil {
			return err
		}
		function, argument, _ := bytes.Cut(body, []byte("\n"))
		a.acted = a.acted || string(function) != job.AskSecret
		if err := a.conn.Send(wire.KindReply, a.Serve(a.control.Ctx, string(function), argument)); err != nil {
			return io.ErrUnexpectedEOF
		}
	case wire.KindEvent:
		return a.event(body)
	default:
		return host.Errorf(host.Trapped, "the process of %s sent a frame of unknown kind", a.ToolName())
	}
	return nil
}

// event records or forwards what happened during the call.
func (a *remoteCall) event(body []byte) error {
	var e job.Event
	if json.Unmarshal(body, &e) != nil {
		return host.Errorf(host.Trapped, "the process of %s sent an invalid event", a.ToolName())
	}
	if e.Kind == job.EventLog || e.Kind == job.EventProgress {
		// The guest may use the limit twice: for its log and for stderr.
		if a.logged += len(body); a.logged > 2*(a.Limits.Log+frameOverhead) {
			return host.Errorf(host.LimitExceeded, "%s logged more than %d bytes in one call", a.ToolName(), a.Limits.Log)
		}
		e.Message = world.Line(e.Message, 2*world.MaxMessage) // the process has truncated it already
	}
	switch e.Kind {
	case job.EventDenied:
		a.Request.Deny(world.Line(e.Right, 4<<10), world.Line(e.Why, world.MaxMessage))
	case job.EventUse:
		a.acted = a.acted || !strings.HasPrefix(e.Right, "fs:read:")
		a.Request.RecordUse(world.Truncate(e.Right, 8<<10))
	case job.EventLog:
		a.Request.Log(min(max(e.Level, 0), 3), e.Message)
	case job.EventProgress:
		a.Request.Progress(e.Done, e.Total, e.Message)
	case job.EventUsage:
		a.cpu += max(e.CPU, 0)
		a.Request.Usage(0, min(max(e.Peak, 0), int64(a.Limits.Pages)*world.PageBytes))
	}
	return nil
}

// repeatable reports whether the call can run again although its guest may have run. It can if its tool is
// idempotent, if its tool has the effect read and therefore only rights to read, or if it has not used a right to
// change anything. The effect read is not enough for a guest that can call tools as its caller, because such calls
// are not narrowed to it.
func (a *remoteCall) repeatable() bool {
	def := a.Request.Def
	acted := a.acted
	if a.Request.Acted != nil {
		acted = a.Request.Acted()
	}
	return !acted || def != nil && (def.Idempotent || def.Effect == manifest.EffectRead && !a.Request.Grant.Caller)
}

func (a *remoteCall) decodeOutcome(body []byte) (*job.Result, error) {
	var o wire.Outcome
	var e *host.Error
	err := jsontext.Unmarshal(body, &o)
	if err == nil {
		e, err = o.Failure()
	}
	switch {
	case err != nil:
		return nil, host.Errorf(host.Trapped, "the process of %s sent an invalid outcome: %s", a.ToolName(),
			world.Line(err.Error(), 200))
	case e != nil:
		if e.Code == host.ConfigError { // an error about a granted folder
			e.Steps = []step.Step{step.Operator(step.OpPolicyExplain, a.Manifest.Name)}
		}
		return nil, e
	}
	if err := a.CheckContent(o.Content); err != nil {
		return nil, err
	}
	return &job.Result{Data: guest.JSONOr(o.Data, "null"), Content: o.Content,
		Warnings: world.CleanWarnings(o.Warnings)}, nil
}
