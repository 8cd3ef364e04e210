package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/internal/deadline"
	"github.com/parley-tools/parley/internal/slots"
	"github.com/parley-tools/parley/internal/wire"
)

// Front sends calls to workers. It is the [wasm.Away] of a host.
type Front struct {
	conn *nats.Conn
	name string

	mu    sync.Mutex
	pools map[string]*pool
	calls map[string]*slot // in progress, by their ids
	pings map[string]*peer // workers that have calls, by the ids under which they answer pings
}

// pool is what a front knows of the workers of a pool, and its calls that wait for one. The front's mutex guards it.
type pool struct {
	workers map[string]*peer // by their addresses
	queue   slots.Queue
	direct  time.Time // until then the queue group is not used: a worker of it is silent
	gone    time.Time // since when no worker of it has answered; zero while one answers
}

// peer is a worker as a front sees it.
type peer struct {
	Status
	busy   bool      // it said so, and has announced no slot since
	silent time.Time // until then it gets no offers
	calls  map[string]*slot
	pings  string    // the id under which it answers pings, while it has calls
	heard  time.Time // when it last did
}

// slot is a call on a worker. It implements [wasm.Slot].
type slot struct {
	*stream
	front  *Front
	worker *peer
	id     string

	accepted time.Time
	again    bool // the call was lost before
}

// Front connects a front. The server may be away; calls wait for it.
func (c *Config) Front(log *slog.Logger) (*Front, error) {
	f := &Front{name: c.Name, pools: map[string]*pool{}, calls: map[string]*slot{},
		pings: map[string]*peer{}}
	conn, err := c.connect("front."+c.Name, log, f.loseAll, askAll, func() {})
	if err != nil {
		return nil, err
	}
	f.conn = conn
	_, err = conn.Subscribe(f.subject("*"), f.receive)
	if err == nil {
		_, err = conn.Subscribe(poolSubject+"*.*", f.hear)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	askAll(conn) // those who have announced themselves before this front heard it
	return f, nil
}

// subject is where messages of a call reach the front. The answers to pings come the same way, so that they come after
// what was sent before them.
func (f *Front) subject(id string) string { return frontSubject + f.name + ".call." + id }

// Conn returns the connection to the server.
func (f *Front) Conn() *nats.Conn { return f.conn }

// Close ends all calls on workers.
func (f *Front) Close() {
	f.loseAll()
	f.conn.Close()
}

// askAll has all workers announce themselves.
func askAll(conn *nats.Conn) { _ = conn.Publish(workersSubject, nil) }

// seeker is a call that looks for a slot. Until it is the first one of the queue, and while all workers are busy, it
// does nothing: a worker that announces a slot wakes the first one, and so does the end of the one before it.
type seeker struct {
	*Front
	wasm.Errand
	pool   *pool
	turn   *slots.Turn // nil for an inner call, which does not wait
	since  time.Time
	unfits map[string]string // why workers cannot run it, by their addresses
}

// Reserve implements [wasm.Away].
func (f *Front) Reserve(ctx context.Context, e wasm.Errand) (wasm.Slot, string, error) {
	c := &seeker{Front: f, Errand: e, since: time.Now(), unfits: map[string]string{}}
	f.mu.Lock()
	c.pool = f.pool(e.Pool)
	if !e.Inner {
		c.turn = c.pool.queue.Join(e.Caller)
		defer func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			c.pool.queue.Leave(c.turn)
		}()
	}
	f.mu.Unlock()
	return c.seek(ctx)
}

// pool returns what is known of a pool. The front is locked.
func (f *Front) pool(name string) *pool {
	p := f.pools[name]
	if p == nil {
		p = &pool{workers: map[string]*peer{}}
		f.pools[name] = p
	}
	return p
}

const forever time.Duration = math.MaxInt64

// seek offers the call to workers until one accepts it.
func (c *seeker) seek(ctx context.Context) (wasm.Slot, string, error) {
	for ok := c.turn == nil || c.wait(ctx, forever); ok && ctx.Err() == nil; {
		at, to, reason := c.choose()
		if reason != "" {
			return nil, reason, nil
		}
		if at == "" {
			ok = c.wait(ctx, askEvery)
			continue
		}
		s, v, err := c.offer(ctx, at, to)
		switch {
		case s != nil && ctx.Err() == nil:
			return s, "", nil
		case s != nil:
			s.Close()
		case err == nil && v.Verdict == unfit:
			c.unfits[v.address()] = v.Why
		case err == nil:
		case errors.Is(err, nats.ErrTimeout), to != nil && errors.Is(err, nats.ErrNoResponders):
			askAll(c.conn) // a worker that is only slow announces itself again
		default:
			ok = c.wait(ctx, pingEvery)
		}
	}
	return nil, "", c.full(ctx)
}

// wait waits until the call is woken as the first one of the queue, and reports whether it goes on. It does not if it
// must not wait, has ended, or waits in vain. If it is not woken in time, only workers that then announce themselves
// count.
func (c *seeker) wait(ctx context.Context, most time.Duration) bool {
	over := time.After(most)
	for isFirst := false; c.turn != nil && !c.isGone(); {
		if isFirst {
			return true
		}
		select {
		case <-c.turn.Woken:
			c.mu.Lock()
			isFirst = c.pool.queue.Place(c.turn) == 1
			c.mu.Unlock()
		case <-over:
			c.mu.Lock()
			clear(c.pool.workers)
			c.pool.queue.WakeAll() // who waits in vain does not stay behind a lost call that goes on
			c.mu.Unlock()
			askAll(c.conn)
			isFirst = true
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// isGone reports whether the call waits in vain, because no worker of its pool has answered for that long. A lost call
// waits until its deadline, because a part of it was run.
func (c *seeker) isGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.Again && !c.pool.gone.IsZero() && min(time.Since(c.pool.gone), time.Since(c.since)) > patience
}

// choose returns the subject of the next offer: the queue group's, or that of a worker that may have a slot. It returns
// "" if all are busy, and a reason if none can run the call.
func (c *seeker) choose() (subject string, to *peer, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, waits, grouped := time.Now(), 0, len(c.unfits) == 0
	for address, w := range c.pool.workers {
		switch {
		case c.unfits[address] != "":
			reason = c.unfits[address]
		case now.Before(w.silent):
			grouped = false // the group would pick it, too
			waits++
		case w.busy:
			waits++
		default:
			to = w
		}
	}
	switch {
	case grouped && !now.Before(c.pool.direct) && (to != nil || waits == 0):
		return offerSubject + c.Pool, nil, ""
	case to != nil:
		return workerSubject + to.address() + ".offer", to, ""
	case waits > 0:
		return "", nil, ""
	}
	return "", nil, reason
}

// offer offers a call. The slot is nil unless the worker has accepted it.
func (c *seeker) offer(ctx context.Context, subject string, to *peer) (*slot, *verdict, error) {
	f, p := c.Front, c.pool
	until, _ := ctx.Deadline()
	s := &slot{front: f, id: rand.Text(), again: c.Again}
	s.stream = newStream(f.conn, "", f.subject(s.id))
	f.mu.Lock()
	f.calls[s.id] = s // before the worker can send anything
	f.mu.Unlock()
	m, err := f.conn.Request(subject, encode(offer{Wire: wire.Version, Call: s.id, Digest: c.Digest,
		Engine: c.Engine, Isolate: c.Isolate, Left: time.Until(until)}), offerPatience)
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := verdict{}, false
	if err == nil {
		v, ok = decode[verdict](m)
		if !ok || v.Pool != c.Pool || !isAddress(&v.Status) || to != nil && v.address() != to.address() {
			err = errors.New("invalid reply to an offer")
		}
	}
	if err == nil && v.Verdict == accepted {
		w := p.worker(&v.Status)
		s.worker, s.to, s.accepted = w, workerSubject+w.address()+".call."+s.id, time.Now()
		if w.calls[s.id] = s; w.pings == "" {
			w.pings, w.heard = rand.Text(), time.Now()
			f.pings[w.pings] = w
			go f.watch(w)
		}
		return s, &v, nil
	}
	delete(f.calls, s.id)
	switch {
	case err == nil && v.Draining:
		delete(p.workers, v.address())
	case err == nil && v.Verdict == busy:
		w := p.worker(&v.Status)
		w.busy = v.Turn >= w.Turn // else it has announced a slot since
	case err == nil:
		p.worker(&v.Status)
	case to != nil && (errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout)):
		delete(p.workers, to.address()) // until it announces itself
	case errors.Is(err, nats.ErrTimeout):
		p.direct = time.Now().Add(suspicion)
	}
	if err != nil && len(p.workers) == 0 && p.gone.IsZero() {
		p.gone = time.Now()
	}
	return nil, &v, err
}

// isAddress reports whether a worker has named itself by words.
func isAddress(s *Status) bool { return isWord(s.Worker) && isWord(s.Instance) && isWord(s.Pool) }

// full returns the error of a call that got no slot: busy, or unavailable if nobody answers.
func (c *seeker) full(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	what, gone := "all slots of the pool "+c.Pool+" were taken", "no worker of the pool "+c.Pool+" answers"
	if c.conn.IsClosed() {
		gone = "the fleet refuses the key of this front"
	} else if !c.conn.IsConnected() {
		gone = "the server of the fleet cannot be reached"
	}
	place := 0
	if c.turn != nil {
		place = c.pool.queue.Place(c.turn)
	}
	switch {
	case ctx.Err() != nil && !deadline.Exceeded(ctx):
		return &host.Error{Code: host.Interrupted, Cause: ctx.Err(), Message: "the call was interrupted before it began"}
	case len(c.pool.workers) == 0 && !c.pool.gone.IsZero():
		return &host.Error{Code: host.Unavailable, Place: place, Message: gone + "; nothing was run",
			Next: []string{"parleyd fleet status"}}
	case c.turn == nil:
		return host.Errorf(host.Busy, "%s; nothing was run; try again when a call has ended", what)
	}
	return &host.Error{Code: host.Busy, Place: place, Message: fmt.Sprintf("%s until the deadline of this call, "+
		"which was number %d of %d in the line; nothing was run", what, place, c.pool.queue.Len())}
}

// hear keeps what a worker announces, and has the first call of the line look again if the worker has a slot. Only the
// worker itself can announce something under its name.
func (f *Front) hear(m *nats.Msg) {
	s, ok := decode[Status](m)
	if !ok || !isAddress(&s) || m.Subject != poolSubject+s.Pool+"."+s.Worker {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pool(s.Pool)
	w := p.worker(&s)
	switch {
	case s.Draining:
		delete(p.workers, s.address())
	case s.Turn >= w.Turn:
		w.Status, w.busy = s, s.Free == 0
		p.queue.Wake()
	}
}

// worker returns what is known of a worker that has said something. Its status counts once it has announced it. The
// front is locked.
func (p *pool) worker(s *Status) *peer {
	w := p.workers[s.address()]
	p.gone = time.Time{}
	if w == nil {
		w = &peer{Status: Status{Worker: s.Worker, Instance: s.Instance}, calls: map[string]*slot{}}
		p.workers[s.address()] = w
	}
	return w
}

// receive takes a message of a call, or the answer to a ping.
func (f *Front) receive(m *nats.Msg) {
	id := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.calls[id]; s != nil {
		s.receive(m)
		if s.worker != nil && !isNobody(m) { // on a slow network, the answer to a ping comes long after what was before it
			s.worker.heard = time.Now()
		}
		return
	}
	w := f.pings[id]
	switch {
	case w == nil:
	case isNobody(m):
		f.lose(w.calls, "it is gone")
	default:
		unknown, _ := decode[[]string](m)
		w.heard = time.Now()
		for _, id := range unknown {
			if s := w.calls[id]; s != nil {
				s.end("it does not know the call any more")
			}
		}
	}
}

// watch asks a worker for signs of life as long as it has calls of this front.
func (f *Front) watch(w *peer) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		f.mu.Lock()
		if len(w.calls) == 0 {
			delete(f.pings, w.pings)
			w.pings = ""
			f.mu.Unlock()
			return
		}
		if time.Since(w.heard) > signPatience {
			f.lose(w.calls, fmt.Sprintf("no sign of life for %s", signPatience))
		}
		for _, s := range w.calls {
			if time.Since(s.accepted) > beginPatience && !s.hasBegun() {
				s.end("it accepted the call but did not begin it")
			}
		}
		asked := encode(slices.Collect(maps.Keys(w.calls)))
		to, id := workerSubject+w.address()+".ping", w.pings
		f.mu.Unlock()
		_ = f.conn.PublishRequest(to, f.subject(id), asked)
		<-tick.C
	}
}

// lose ends calls whose workers do not run them any more. The front is locked.
func (f *Front) lose(calls map[string]*slot, cause string) {
	for _, s := range calls {
		s.end(cause)
	}
}

// loseAll ends all calls: what was under way when the connection broke may be lost.
func (f *Front) loseAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose(f.calls, "the connection to the fleet was lost")
	for _, p := range f.pools {
		clear(p.workers)
	}
}

// Lost implements [wasm.Slot]. A worker that loses calls gets no offers for a while, one whose call was cut here does.
func (s *slot) Lost() string {
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	switch cause := s.reason(); {
	case cause == endedHere, cause == refusedByOther, cause == endedByOther && !s.again:
	default:
		s.worker.silent = time.Now().Add(suspicion)
	}
	return "the worker " + s.worker.Worker + " was lost: " + s.reason()
}

// Close implements [wasm.Slot]. What the worker sends after it is not read.
func (s *slot) Close() {
	s.front.mu.Lock()
	delete(s.front.calls, s.id)
	delete(s.worker.calls, s.id)
	s.front.mu.Unlock()
	s.end(endedHere)
	s.finish(0)
}
