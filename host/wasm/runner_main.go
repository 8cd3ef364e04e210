package wasm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/wasm/internal/cache"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/deadline"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
)

// RunnerJob is the value of PARLEY_CHILD that turns a program into a runner of guests. Its main must then call
// [RunnerMain] before anything else.
const RunnerJob = "runner"

// Exit codes of a runner.
const (
	runnerOK = iota
	_        // the Go runtime's exit codes of a crash are 1 and 2
	_
	runnerMisused
	runnerOrphan
)

const (
	maxStart = 64 << 20
	maxReply = 1 << 30 // size of a reply from the host, which the process trusts
)

// start is what a process that runs guests must know before its first call. Only the process that starts it sends it,
// over a pipe between the two. It contains names of folders of this machine and values of variables. Neither belongs
// in a call, which may run on another machine.
type start struct {
	wire.Terms
	Slot     string             `json:"slot"` // folder of the compiled code
	Host     string             `json:"host"`
	Defaults grant.Limits       `json:"defaults"` // the engine's defaults
	Manifest *manifest.Manifest `json:"manifest"` // with the tools that may be called
	// Text is the script of a plugin of kind script; nil for others.
	Text     *sections.SourceFile `json:"text,omitempty"`
	Grant    grant.Grant          `json:"grant"`
	Guard    *protect.Guard       `json:"guard,omitempty"`
	CPU      time.Duration        `json:"cpu,omitempty"` // CPU time for the guest, if the process serves only one call
	Resident *resident            `json:"resident,omitempty"`
}

// resident is what a process that serves several calls must know.
type resident struct {
	Socket string        `json:"socket"` // the socket on which it listens
	Lock   string        `json:"lock"`   // a file that is locked while another process uses this one
	Watch  []string      `json:"watch"`  // files: the process ends when one changes
	Idle   time.Duration `json:"idle"`   // idle time after which it ends
}

// RunnerMain runs guests and returns the exit code of the process. It opens the compiled code, gives up every right
// that its guests do not need, and only then reports that it can be called. It serves one call of the process that
// started it, over the socket that is its stdin. A shared runner also serves calls of other processes. The process
// ends when nobody waits for its call any more.
func RunnerMain() int {
	var s start
	var conn *wire.Conn
	var kind wire.Kind
	var body []byte
	socket, err := net.FileConn(os.Stdin)
	if err == nil {
		_ = os.Stdin.Close() // the connection uses another descriptor of the socket
		conn = wire.NewConn(bufio.NewReader(socket), socket)
		_, err = conn.ReceiveHello()
	}
	if err == nil {
		kind, body, err = conn.Receive(maxStart)
	}
	if err != nil || kind != wire.KindStart || json.Unmarshal(body, &s) != nil || s.Manifest == nil {
		fmt.Fprintln(os.Stderr, "parley starts the process of a plugin itself; it cannot be started by hand")
		return runnerMisused
	}
	serve := (*runner).serveOne
	if s.Resident != nil {
		serve, err = reside(s.Resident)
	}
	var r *runner
	if err == nil {
		r, err = newRunner(&s)
	}
	if err != nil {
		_ = conn.SendJSON(wire.KindDone, wire.Failed(host.AsError(err)))
		return runnerMisused
	}
	if conn.SendHello(wire.Hello{Host: s.Host}) != nil {
		return runnerOrphan
	}
	h := r.connection(conn)
	if s.Resident != nil {
		h.close = func() { _ = socket.Close() }
	}
	go h.read()
	return serve(r)
}

// serveOne serves one call.
func (r *runner) serveOne() int {
	call := <-r.calls
	call.from.run(call.body)
	return runnerOK
}

// runner runs the guests of one process, one at a time.
type runner struct {
	start
	plugin *compiledPlugin
	limits world.Limits // limits of a call without options

	calls chan receivedCall
	busy  atomic.Bool // a call is in progress

	ready        *guest.Call // an instance for the next call; nil if there is none
	unpreparable bool        // before its first call, the guest does something that depends on the call
	unwarmable   bool        // no example can run before a call
	// warming ends the example that runs before the next call; nil if none does.
	warming atomic.Pointer[context.CancelFunc]
}

type receivedCall struct {
	from *hostConn
	body []byte
}

// newRunner opens the compiled code and locks the process down. It returns an error if no guest can run.
func newRunner(s *start) (*runner, error) {
	r := &runner{start: *s, calls: make(chan receivedCall)}
	r.limits = world.LimitsOf(s.Defaults, s.Manifest, &host.Request{Job: job.Job{Limits: s.Limits}})
	code := cache.Slot{Dir: s.Slot, Key: s.Code}
	sums, err := code.Read()
	if err == nil {
		r.plugin, err = openSlot(code, sums)
	}
	if err != nil {
		return nil, host.Errorf(host.Unavailable, "the compiled code of %s is missing or damaged (%v); call the tool again",
			s.Manifest.Name, err)
	}
	cpu, instances := time.Duration(0), residentInstances
	if s.Resident == nil {
		cpu, instances = s.CPU+time.Second, 1
	}
	if missing := lockDown(r.limits, s.Grant.FS, sums.Code.Size, instances, cpu); len(missing) > 0 {
		return nil, notIsolated(s.Manifest.Name, missing)
	}
	return r, nil
}

// residentInstances is how many instances of a resident process can have memory at the same time: the call's, the
// next call's, and the previous call's while the system reclaims its memory.
const residentInstances = 3

// hostConn is a connection to the host.
type hostConn struct {
	*runner
	asker
	close   func()      // nil: the process ends with the connection
	calling atomic.Bool // the call in progress came over this connection
}

func (r *runner) connection(conn *wire.Conn) *hostConn {
	h := &hostConn{runner: r}
	h.asker = asker{conn: conn, replies: make(chan []byte), gone: func() {
		if h.calling.Load() {
			os.Exit(runnerOrphan)
		}
	}}
	return h
}

// read forwards calls and replies until the connection ends. If a call of the connection is then in progress, the
// process ends, because nobody waits for that call.
func (h *hostConn) read() {
	for {
		kind, body, err := h.conn.Receive(maxReply)
		switch {
		case err == nil && kind == wire.KindReply && h.calling.Load():
			h.replies <- body
			continue
		case err == nil && kind == wire.KindCall && h.busy.CompareAndSwap(false, true):
			h.calling.Store(true)
			if stop := h.warming.Load(); stop != nil {
				time.AfterFunc(warmGrace, *stop)
			}
			h.calls <- receivedCall{h, body}
			continue
		case h.calling.Load() || h.close == nil:
			os.Exit(runnerOrphan)
		}
		h.close()
		return
	}
}

// run runs one call and sends its outcome. It reports whether the process can run another.
func (h *hostConn) run(body []byte) (again bool) {
	c, result, err := h.runCall(body)
	h.calling.Store(false)
	h.busy.Store(false)
	h.send(wire.KindDone, guest.Marshal(outcome(result, err)))
	if c != nil {
		c.Close() // once the outcome is sent
	}
	return !endsRunner(err)
}

// endsRunner reports whether the outcome of a call ends its runner. Any failure may have left a changed state.
func endsRunner(err error) bool {
	if err == nil {
		return false
	}
	switch host.AsError(err).Code {
	case host.Trapped, host.Timeout, host.Interrupted, host.LimitExceeded, host.Internal, host.Unavailable:
		return true
	}
	return false
}

func (h *hostConn) runCall(body []byte) (*guest.Call, *job.Result, error) {
	var w wire.Call
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, nil, err
	}
	if !reflect.DeepEqual(w.Terms, h.Terms) {
		return nil, nil, host.Errorf(host.Internal, "the process of %s was started for other code, rights or limits",
			h.Manifest.Name)
	}
	ctx, cancel := deadline.With(context.Background(), w.Left)
	defer cancel()
	j := h.job(&w)
	c := h.ready
	if h.ready = nil; c != nil {
		c.Take(j)
	} else {
		c = guest.New(h.plugin.code, j)
	}
	h.send(wire.KindBegun, nil)
	before, _ := cpuTimeOf(0)
	result, err := c.Run(ctx)
	used, _ := cpuTimeOf(0)
	j.Request.Usage(used-before, 0)
	return c, result, err
}

// job returns the job of a call. Its requests to the host and its events go back over the connection.
func (h *hostConn) job(w *wire.Call) *guest.Job {
	r := h.request(w, h.Manifest, h.Grant)
	r.Guard = h.Guard
	return &guest.Job{Request: r, Manifest: h.Manifest, Text: h.Text, Session: w.Session, Host: h.Host,
		Limits: world.LimitsOf(h.Defaults, h.Manifest, r), Serve: h.ask}
}

// outcome returns the outcome of a call in the form of the wire.
func outcome(result *job.Result, err error) wire.Outcome {
	if err != nil {
		return wire.Failed(host.AsError(err))
	}
	return wire.Outcome{Data: result.Data, Content: result.Content, Warnings: result.Warnings}
}

// asker runs functions of the host for a guest by asking the host over a connection.
type asker struct {
	conn    *wire.Conn
	replies chan []byte
	gone    func() // called when the connection has ended
}

// request returns the request of a call. Its events go back over the connection.
func (s *asker) request(w *wire.Call, m *manifest.Manifest, grant grant.Grant) *host.Request {
	return &host.Request{
		Job: job.Job{
			Tool: w.Tool, Params: w.Params, Caller: w.Caller, CallID: w.CallID, Grant: grant, Limits: w.Limits,
			Options: w.Options, Settings: w.Settings, Wants: w.Wants,
		},
		Def: m.Tool(w.Tool), Events: s.event,
	}
}

// event sends an event of a call; it is what [host.Request].Events requires.
func (s *asker) event(e job.Event) error {
	s.send(wire.KindEvent, guest.Marshal(e))
	return nil
}

func (s *asker) send(kind wire.Kind, body []byte) {
	if s.conn.Send(kind, body) != nil {
		s.gone()
	}
}

// ask runs a function of the host for the guest. The reply is as from [guest.ServeGuest]. During that time only the
// host's clock counts, because the host knows how much of it a person takes.
func (s *asker) ask(ctx context.Context, function string, request []byte) []byte {
	defer deadline.Suspend(ctx)()
	s.send(wire.KindAsk, append([]byte(function+"\n"), request...))
	select {
	case body := <-s.replies:
		return body
	case <-ctx.Done():
		return nil // the guest is stopped before it could read this
	}
}

// Bounds of preparing an instance before a call begins: the total time, and how long a call waits for the end of an
// example.
const (
	prepareTimeout = time.Second
	warmGrace      = 20 * time.Millisecond
)

// prepare creates the instance for the next call in advance, unless the instance depends on the call: commands get
// the call's arguments, and granted folders may be replaced before the call. If the manifest allows warm instances,
// it runs an example in the instance.
func (r *runner) prepare() {
	program := r.Manifest.Kind == manifest.KindWASI || r.Manifest.Kind == manifest.KindExtism
	if program || r.ready != nil || r.unpreparable || len(r.Grant.FS) > 0 || r.plugin.code.StartPages() > r.limits.Pages {
		return
	}
	if i := r.plugin.code.Image; !r.unwarmable && (i == nil || !i.Warm) {
		if def, example := guest.WarmingExample(r.Manifest); example != nil {
			r.ready = r.newInstance(def, example)
		}
		r.unwarmable = r.ready == nil
	}
	if r.ready == nil {
		r.ready = r.newInstance(nil, nil)
		r.unpreparable = r.ready == nil
	}
}

// newInstance creates an instance, and runs example in it unless that is nil. It returns nil if the guest did
// anything that a call that uses the instance would lack: if it asked the host, logged, printed or failed. It also
// returns nil if a call had to wait for it.
func (r *runner) newInstance(def *manifest.Tool, example *manifest.Example) *guest.Call {
	asked := false
	request := &host.Request{
		Job:    job.Job{Grant: r.Grant, Limits: r.Limits, Wants: job.Wants{Log: true, Progress: true}},
		Events: func(job.Event) error { asked = true; return nil },
	}
	j := &guest.Job{Request: request, Manifest: r.Manifest, Host: r.Host, Limits: r.limits}
	j.Serve = func(context.Context, string, []byte) []byte { asked = true; return nil }
	c := guest.New(r.plugin.code, j)
	ctx, cancel := context.WithTimeout(context.Background(), prepareTimeout)
	defer cancel()
	c.Control.Begin(ctx)
	c.Enter()
	err := c.Initialize()
	if err == nil && example != nil {
		request.Tool, request.Params, request.Def, c.Prepared = def.Name, example.Params, def, true
		r.warming.Store(&cancel)
		_, err = c.RunReactor()
		r.warming.Store(nil)
	}
	if err != nil || asked || c.Control.Fatal != nil || c.Streams.Stderr.Total+c.Streams.Stdout.Total > 0 {
		c.Close()
		return nil
	}
	c.Prepared = true
	c.Initialized = time.Since(c.Clock.Started)
	return c
}

const (
	maxRunners     = 8
	runnerIdle     = time.Minute
	maxRunnerAge   = 10 * time.Minute
	maxRunnerCalls = 1000
)

// errNoRunner means that a runner is impossible, because the compiled code is not in a folder.
var errNoRunner = errors.New("no runner")

// RunnerInfo is a shared runner: a process that runs the guests of one plugin for one caller and session.
type RunnerInfo struct {
	Name    string    `json:"name"`
	PID     int       `json:"pid"` // 0 if it has ended
	Plugin  string    `json:"plugin"`
	Caller  string    `json:"caller"`
	Session string    `json:"session,omitempty"`
	Started time.Time `json:"started"`
	Used    time.Time `json:"used"` // when its last call ended
	Busy    bool      `json:"busy"`
}

// identity returns a text that distinguishes this build of the plugin from all others.
func (p *Provider) identity(m *manifest.Manifest) string {
	if p.info.Digest == "" {
		return cache.Key("manifest", guest.Marshal(m))
	}
	return p.info.Name + " " + p.info.Digest
}
