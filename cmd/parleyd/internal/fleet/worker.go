package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/internal/wire"
)

// Worker runs calls of fronts.
type Worker struct {
	conn    *nats.Conn
	group   *nats.Subscription
	library *library
	serve   func(*task) error        // is serveCall, but for tests
	shorten func(text string) string // shortens the paths in what fronts hear
	log     *slog.Logger

	mu      sync.Mutex
	status  Status
	refused map[string]refusal // by digest
	calls   map[string]*task
	idle    sync.WaitGroup
	drained chan struct{} // closed when it drains
}

// refusal is why a worker does not run a build.
type refusal struct {
	why   string
	until time.Time // then it looks again
}

// How long a worker does not look again for a build that it has refused, and for one that the server did not send.
const refusalTime, fetchPause = 10 * time.Second, time.Second

// task is a call that has a slot of a worker.
type task struct {
	*stream
	*offer
	front string
	begun bool
	timer *time.Timer // ends a reservation, and later a call whose front is silent
}

// WorkerConfig says what a worker runs.
type WorkerConfig struct {
	// Pool is the name of the pool that it is part of.
	Pool string `toml:"pool"`
	// Slots is how many calls it runs at a time.
	Slots int `toml:"slots"`
	// Trust has the public keys of signers, and the digests of builds that it runs without a signature.
	Trust []string `toml:"trust"`
}

// maxSlots bounds the slots of a worker, each of which may be a process.
const maxSlots = 1000

// Check reports the faults of the values.
func (c *WorkerConfig) Check(expected func(key, given, expected string)) {
	if !isWord(c.Pool) {
		expected("worker.pool", c.Pool, "a name of letters, digits, - and _")
	}
	if c.Slots < 1 || c.Slots > maxSlots {
		expected("worker.slots", strconv.Itoa(c.Slots), fmt.Sprintf("a number from 1 to %d", maxSlots))
	}
	for _, entry := range c.Trust {
		if _, err := signature.ParseKey(entry); err != nil && !strings.HasPrefix(entry, "sha256:") {
			expected("worker.trust", entry, "the public key of a signer, or a digest sha256:..")
		}
	}
}

// Worker connects a worker, which runs calls until it drains. The folders of a host keep its compiled code.
func (c *Config) Worker(of WorkerConfig, dirs parley.Dirs, log *slog.Logger) (*Worker, error) {
	w := &Worker{library: newLibrary(dirs, of, log), log: log, shorten: protect.PathShortener(dirs.Private()),
		calls: map[string]*task{}, refused: map[string]refusal{}, drained: make(chan struct{}),
		status: Status{Worker: c.Name, Instance: rand.Text()[:12], Pool: of.Pool, Slots: of.Slots, Free: of.Slots,
			Lacks: strings.Join(wasm.MissingIsolation(false), "; "), Host: parley.Version, Wire: wire.Version}}
	w.serve = w.serveCall
	conn, err := c.connect("worker."+c.Name, log, w.loseAll, w.announce, w.Drain)
	if err != nil {
		return nil, err
	}
	w.conn = conn
	published, err := catalog.Of(conn)
	if err == nil {
		w.library.fetch = published.Fetch
		err = w.subscribe()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	w.announce(conn) // it may have been connected before it heard anything
	return w, nil
}

func (w *Worker) subscribe() error {
	address := workerSubject + w.status.address()
	for subject, handle := range map[string]nats.MsgHandler{
		address + ".call.*": w.receive, address + ".ping": w.answer, address + ".offer": w.consider,
		workerSubject + w.status.Worker + ".drain": func(m *nats.Msg) {
			if strings.HasPrefix(m.Reply, operatorReplies) {
				_ = m.Respond(encode(w.now()))
				w.Drain()
			}
		},
		workersSubject: func(m *nats.Msg) {
			if m.Reply == "" {
				w.announce(w.conn)
			} else {
				_ = m.Respond(encode(w.now()))
			}
		},
	} {
		if _, err := w.conn.Subscribe(subject, handle); err != nil {
			return err
		}
	}
	var err error
	w.group, err = w.conn.QueueSubscribe(offerSubject+w.status.Pool, workerGroup, w.consider)
	return err
}

// now returns the status, as something that the worker says now.
func (w *Worker) now() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status.Turn++
	return w.status
}

func (w *Worker) announce(conn *nats.Conn) {
	_ = conn.Publish(poolSubject+w.status.Pool+"."+w.status.Worker, encode(w.now()))
}

// frontOf returns the name of the front that a message is from, "" for one of anybody else.
func frontOf(m *nats.Msg) string {
	name, _, is := strings.Cut(strings.TrimPrefix(m.Reply, frontSubject), ".")
	if !is || !isWord(name) || !strings.HasPrefix(m.Reply, frontSubject) {
		return ""
	}
	return name
}

// consider answers an offer, and reserves a slot for it.
func (w *Worker) consider(m *nats.Msg) {
	o, ok := decode[offer](m)
	front := frontOf(m)
	if !ok || front == "" {
		return
	}
	v := verdict{Verdict: accepted}
	w.mu.Lock()
	switch {
	case o.Wire != wire.Version:
		v.Verdict, v.Why = unfit, "its workers speak another version of the wire"
	case o.Isolate != "" && w.status.Lacks != "":
		v.Verdict, v.Why = unfit, "its workers cannot isolate a plugin: "+w.status.Lacks
	case time.Now().Before(w.refused[o.Digest].until):
		v.Verdict, v.Why = unfit, w.refused[o.Digest].why
	case w.status.Draining || w.status.Free == 0:
		v.Verdict = busy
	default:
		w.reserve(&o, front)
	}
	w.status.Turn++
	v.Status = w.status
	w.mu.Unlock()
	_ = m.Respond(encode(v))
}

// reserve takes a slot for a call. The worker is locked.
func (w *Worker) reserve(o *offer, front string) {
	subject := frontSubject + front + ".call." + o.Call
	j := &task{offer: o, front: front,
		stream: newStream(w.conn, subject, workerSubject+w.status.address()+".call."+o.Call)}
	j.timer = time.AfterFunc(reservation, func() { w.release(o.Call) })
	w.calls[o.Call] = j
	w.status.Free--
	w.idle.Add(1)
}

// receive takes a message of a call. The first one begins it.
func (w *Worker) receive(m *nats.Msg) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.calls[m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]]
	if j == nil || m.Reply != j.to && !isNobody(m) {
		return
	}
	first := j.receive(m)
	switch {
	case !first && !j.begun:
		j.timer.Reset(0) // the call has ended before it began
	case first && j.timer.Stop():
		j.begun, j.timer = true, time.AfterFunc(signPatience, func() { j.end("its front is silent") })
		go w.run(j)
	case j.begun && !isNobody(m):
		j.timer.Reset(signPatience)
	}
}

// run runs a call.
func (w *Worker) run(j *task) {
	defer w.release(j.Call)
	err := w.serve(j)
	if err == nil {
		return
	}
	cause := j.reason()
	if refused, ok := errors.AsType[*host.Error](err); ok && cause == "" { // the connection holds
		pause := refusalTime
		if refused.Code == host.Unavailable {
			pause = fetchPause
		}
		cause = refused.Message
		w.mu.Lock()
		w.refused[j.Digest] = refusal{w.shorten(cause), time.Now().Add(pause)}
		w.mu.Unlock()
		j.finish(refuseBit)
	}
	w.log.Info("a call has ended without an answer", "front", j.front, "call", j.Call, "cause", cause)
}

func (w *Worker) serveCall(j *task) error {
	service := wasm.Service{Isolate: j.Isolate, Scope: j.front + " ", Shorten: w.shorten,
		Find: func(ctx context.Context, digest string) (*wasm.Provider, error) {
			return w.library.find(ctx, digest, j.Engine)
		}}
	return service.Serve(context.Background(), j)
}

// release gives the slot of a call back.
func (w *Worker) release(id string) {
	w.mu.Lock()
	j := w.calls[id]
	if j == nil {
		w.mu.Unlock()
		return
	}
	delete(w.calls, id)
	j.timer.Stop()
	j.end(endedHere)
	w.status.Free++
	tell := w.status.Free == 1 && !w.status.Draining // those who heard that all were taken wait for it
	w.mu.Unlock()
	w.idle.Done()
	if tell {
		w.announce(w.conn)
	}
}

// answer answers a front that asks for a sign of life of its calls, with those that this worker does not run.
func (w *Worker) answer(m *nats.Msg) {
	asked, _ := decode[[]string](m)
	front, unknown := frontOf(m), []string{}
	if front == "" {
		return
	}
	w.mu.Lock()
	for _, id := range asked {
		j := w.calls[id]
		switch {
		case j == nil || j.front != front:
			unknown = append(unknown, id)
		case j.begun:
			j.timer.Reset(signPatience)
		}
	}
	w.mu.Unlock()
	_ = m.Respond(encode(unknown))
}

// loseAll ends all calls: what was under way when the connection broke may be lost.
func (w *Worker) loseAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.calls {
		j.end("the connection to the fleet was lost")
	}
}

// Drain ends the worker once the calls that it has are done. It takes no more.
func (w *Worker) Drain() {
	w.mu.Lock()
	first := !w.status.Draining
	w.status.Draining = true
	w.mu.Unlock()
	if first {
		_ = w.group.Unsubscribe() // a front that waits for a reply asks another worker
		w.announce(w.conn)
		close(w.drained)
	}
}

// Wait waits until the worker drains and its calls have ended. Those that have not when ctx ends are cut. The error is
// that of a fleet that refuses the worker.
func (w *Worker) Wait(ctx context.Context) error {
	<-w.drained
	idle := make(chan struct{})
	go func() {
		w.idle.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		w.loseAll()
	}
	if w.conn.IsClosed() {
		return host.Errorf(host.ConfigError, "the fleet refuses this worker; %s", expectedKey)
	}
	_ = w.conn.Flush()
	w.conn.Close()
	ended, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return w.library.engine.Close(ended)
}

// closeTime bounds how long the end of a worker takes after that of its calls.
const closeTime = 5 * time.Second
