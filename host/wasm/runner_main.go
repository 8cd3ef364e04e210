package wasm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
)

// RunnerJob is the value of PARLEY_CHILD that turns a program into the process in which guests run. Its main must then
// call [RunnerMain] before anything else.
const RunnerJob = "runner"

// Exit codes of the process in which guests run.
const (
	runnerOK = iota
	_        // the Go runtime's exit codes of a crash are 1 and 2
	_
	runnerMisused
	runnerOrphan
)

const (
	maxStart = 64 << 20
	maxReply = 1 << 30 // of the host, which the process trusts
)

// start is what a process that runs guests must know before its first call. Only who starts it sends it, over a pipe of
// their own: it names folders of this machine and has the values of variables, and neither belongs into a call, which
// another machine might run.
type start struct {
	wire.Terms
	Slot     string             `json:"slot"` // folder of the compiled code
	Host     string             `json:"host"`
	Defaults host.Limits        `json:"defaults"` // the engine's defaults
	Manifest *manifest.Manifest `json:"manifest"` // with the tools that may be called
	Grant    host.Grant         `json:"grant"`
	Guard    *host.FileGuard    `json:"guard,omitempty"`
	CPU      time.Duration      `json:"cpu"` // that the guest may use
}

// RunnerMain runs guests and returns the exit code of the process. It opens the compiled code, gives up every right
// that its guests do not need, and only then reads a call. It serves one call from stdin and ends when its parent is
// gone.
func RunnerMain() int {
	conn := wire.NewConn(bufio.NewReader(os.Stdin), os.Stdout)
	kind, body, err := conn.Receive(maxStart)
	var s start
	if err != nil || kind != wire.KindStart || json.Unmarshal(body, &s) != nil || s.Manifest == nil {
		fmt.Fprintln(os.Stderr, "parley starts the process of a plugin itself; it cannot be started by hand")
		return runnerMisused
	}
	r := newRunner(&s)
	if err := r.connection(conn).serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return runnerMisused
	}
	return runnerOK
}

// runner runs the guests of one process.
type runner struct {
	start
	engine  *Engine
	plugin  *compiledPlugin
	failure error // why no guest can run
	missing []string
}

// newRunner opens the compiled code and locks the process down.
func newRunner(s *start) *runner {
	r := &runner{start: *s, engine: New(Config{HostVersion: s.Host, Limits: s.Defaults})}
	code := slot{s.Slot, s.Code}
	sums, err := code.read()
	if err != nil {
		r.failure = host.Errorf(host.Unavailable, "the compiled code of %s is missing or damaged (%v); call the tool again",
			s.Manifest.Name, err)
		return r
	}
	if r.plugin, err = openSlot(code, sums); err != nil {
		r.failure = host.Errorf(host.Unavailable, "the compiled code of %s cannot be opened (%v); call the tool again",
			s.Manifest.Name, err)
		return r
	}
	bounds := limitsOf(s.Defaults, s.Manifest, &host.Request{Job: host.Job{Limits: s.Limits}})
	r.missing = lockDown(bounds, s.Grant.FS, sums.Code.Size, 1, s.CPU+time.Second)
	return r
}

// hostConn is a connection to the host. It serves host functions by asking it.
type hostConn struct {
	*runner
	conn    *wire.Conn
	calls   chan []byte
	replies chan []byte
	busy    atomic.Bool // a call is in progress
}

func (r *runner) connection(conn *wire.Conn) *hostConn {
	return &hostConn{runner: r, conn: conn, calls: make(chan []byte), replies: make(chan []byte)}
}

// serve runs one call. An error means that the other side is not a host of this version.
func (h *hostConn) serve() error {
	if _, err := h.conn.ReceiveHello(); err != nil {
		return err
	}
	if err := h.conn.SendHello(wire.Hello{Host: h.Host, Missing: h.missing}); err != nil {
		return err
	}
	go h.read()
	h.run(<-h.calls)
	return nil
}

// read forwards calls and replies. If the host is gone, nobody waits for the call: the process ends.
func (h *hostConn) read() {
	for {
		kind, body, err := h.conn.Receive(maxReply)
		switch {
		case err == nil && kind == wire.KindCall && h.busy.CompareAndSwap(false, true):
			h.calls <- body
		case err == nil && kind == wire.KindReply && h.busy.Load():
			h.replies <- body
		default:
			os.Exit(runnerOrphan)
		}
	}
}

// run runs one call and sends its outcome.
func (h *hostConn) run(body []byte) {
	result, err := h.runCall(body)
	o := wire.Outcome{}
	if err != nil {
		o.Err = wire.ErrorOf(asHostError(err))
	} else {
		o.Data, o.Content, o.Warnings = result.Data, result.Content, result.Warnings
	}
	h.send(wire.KindDone, marshal(o))
}

func (h *hostConn) runCall(body []byte) (*host.Result, error) {
	var w wire.Call
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	switch {
	case !reflect.DeepEqual(w.Terms, h.Terms):
		return nil, host.Errorf(host.Internal, "the process of %s was started for other code, rights or limits",
			h.Manifest.Name)
	case h.failure != nil:
		return nil, h.failure
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.Left)
	defer cancel()
	r := &host.Request{
		Job: host.Job{
			Tool: w.Tool, Params: w.Params, Caller: w.Caller, CallID: w.CallID, Grant: h.Grant, Limits: h.Limits,
			Options: w.Options, Settings: w.Settings, Wants: w.Wants,
		},
		Def: h.Manifest.Tool(w.Tool), Guard: h.Guard, Events: h.event,
	}
	c := newCall(h.engine, h.plugin, h.Manifest, r)
	c.session, c.serve = w.Session, h.ask
	h.send(wire.KindBegun, nil)
	return c.run(ctx)
}

// event sends an event of a call; it is what [host.Request].Events requires.
func (h *hostConn) event(e host.JobEvent) error {
	h.send(wire.KindEvent, marshal(e))
	return nil
}

func (h *hostConn) send(kind wire.Kind, body []byte) {
	if h.conn.Send(kind, body) != nil {
		os.Exit(runnerOrphan)
	}
}

// ask serves a function of the host for the guest: it asks the host. The reply is that of [serveGuest].
func (h *hostConn) ask(ctx context.Context, function string, request []byte) []byte {
	h.send(wire.KindAsk, append([]byte(function+"\n"), request...))
	select {
	case body := <-h.replies:
		return body
	case <-ctx.Done():
		return nil // the guest is stopped before it could read this
	}
}
