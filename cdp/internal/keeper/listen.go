package keeper

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/manifest"
)

// domainsOf returns the domains to enable for patterns. Target events need none. Fetch is left to the caller,
// because enabling it pauses every request until it is continued.
func domainsOf(patterns []string) (domains []string) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			domains = append(domains, name)
		}
	}
	for _, p := range patterns {
		name, _, ok := strings.Cut(p, ".")
		if !ok || strings.ContainsAny(name, "*?[") {
			continue
		}
		switch name {
		case "Target", "Browser", "Inspector", "SystemInfo", "Tracing", "Tethering", "Fetch":
		default:
			add(name)
		}
		if p == lifecycle {
			add(lifecycle)
		}
	}
	return domains
}

func checkPatterns(patterns ...string) *Error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return errf(CodeInvalidArgs, "%q is not the name of an event or a pattern such as Network.*", manifest.Clip(p, 80))
		}
	}
	return nil
}

// Matches reports whether an event's name matches one of the patterns, such as Network.*.
func Matches(patterns []string, method string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, method); ok {
			return true
		}
	}
	return false
}

const (
	maxWaiting      = 4096
	maxWaitingBytes = 8 << 20
)

// listener is one stream. The engine offers events and the client's writer takes them from a bounded queue between
// them. Events that do not fit are dropped and counted.
type listener struct {
	patterns []string
	until    string
	max      int
	by       Caller
	scope    *target // nil: all targets
	domains  []string
	wake     func()

	mu       sync.Mutex
	queue    []queued
	bytes    int
	accepted int
	end      string
	done     chan struct{} // closed when the stream ends
}

// queued is an event, or a count of dropped ones.
type queued struct {
	event   *record
	lastSeq int64
	dropped int64
}

// listen registers a stream and enables the domains that it needs.
func (ow *owners) listen(by Caller, q ListenRequest, scope *target, wake func()) (*listener, *Error) {
	l := &listener{
		by: by, patterns: q.Patterns, until: q.Until, max: q.Max, scope: scope, wake: wake, done: make(chan struct{}),
	}
	all := q.Patterns
	if q.Until != "" {
		all = append(append([]string(nil), q.Patterns...), q.Until)
	}
	if err := checkPatterns(all...); err != nil {
		return nil, err
	}
	l.domains = domainsOf(all)
	ow.mu.Lock()
	defer ow.mu.Unlock()
	if ow.closeErr != nil {
		return nil, ow.closeErr
	}
	if scope != nil && scope.closed {
		return nil, closedTarget(scope)
	}
	ow.listeners[l] = true
	for _, t := range ow.order {
		if t.session != "" && l.covers(t) {
			for _, d := range l.domains {
				ow.enable(t, d)
			}
		}
	}
	return l, nil
}

// attachPagesTimeout bounds how long a stream waits for the pages of an external browser before it begins. A
// sleeping or busy page joins the stream when it can.
const attachPagesTimeout = 2 * time.Second

// attachPages attaches to the pages of an external browser that a stream of all pages covers and no caller has
// used yet.
func (ow *owners) attachPages(ctx context.Context, l *listener) {
	if !ow.external || !l.wantsAllPages() {
		return
	}
	var attaching []*target
	ow.mu.Lock()
	for _, t := range ow.order {
		if l.needsAttach(t) {
			attaching = append(attaching, t)
			ow.attachAsync(t)
		}
	}
	ow.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attachPagesTimeout)
	defer cancel()
	_ = ow.wait(ctx, "for the pages to be attached", func() (bool, *Error) {
		return !slices.ContainsFunc(attaching, func(t *target) bool { return t.attaching }), nil
	})
}

// wantsAllPages reports whether the stream covers page events of every page.
func (l *listener) wantsAllPages() bool {
	return l.scope == nil && slices.ContainsFunc(append([]string{l.until}, l.patterns...), func(pattern string) bool {
		return pattern != "" && !isBrowserDomain(domainOf(pattern))
	})
}

// needsAttach reports whether a stream of all pages covers a page that has no session yet.
func (l *listener) needsAttach(t *target) bool {
	return t.kind == "page" && t.session == "" && !t.attaching && l.covers(t)
}

// awaitEnabled waits until the domains of a stream are enabled wherever that is possible: a page that navigates
// earlier would not report it. It does not wait longer than enableTimeout for a busy or blocked page.
func (ow *owners) awaitEnabled(ctx context.Context, l *listener) {
	ctx, cancel := context.WithTimeout(ctx, enableTimeout)
	defer cancel()
	ow.wait(ctx, "for the events to come", func() (bool, *Error) {
		for _, t := range ow.order {
			if t.session == "" || t.closed || t.crashed || t.root().dialog != nil || !l.covers(t) {
				continue
			}
			for _, d := range l.domains {
				if t.domain(d).enabling {
					return false, nil
				}
			}
		}
		return true, nil
	})
}

const enableTimeout = time.Second

// unlisten removes a stream and disables the domains that only it needed.
func (ow *owners) unlisten(l *listener) {
	ow.mu.Lock()
	defer ow.mu.Unlock()
	if !ow.listeners[l] {
		return
	}
	delete(ow.listeners, l)
	if ow.closeErr != nil {
		return
	}
	for _, t := range ow.order {
		if t.session != "" && l.covers(t) {
			for _, d := range l.domains {
				ow.disable(t, d)
			}
		}
	}
}

func (l *listener) covers(t *target) bool {
	return l.by.canSee(t.owner) && (l.scope == nil || t.within(l.scope))
}

// offer queues an event that the stream covers. It never waits.
func (l *listener) offer(r *record, t *target) {
	if !l.by.canSee(r.owner) || l.scope != nil && (t == nil || !t.within(l.scope)) {
		return
	}
	matches := Matches(l.patterns, r.method)
	ends := l.until != "" && Matches([]string{l.until}, r.method)
	if !matches && !ends {
		return
	}
	l.mu.Lock()
	if l.end != "" {
		l.mu.Unlock()
		return
	}
	if !ends && (len(l.queue) >= maxWaiting || l.bytes+r.size() > maxWaitingBytes) {
		l.countDropped(r.seq)
	} else {
		l.queue = append(l.queue, queued{event: r})
		l.bytes += r.size()
		l.accepted++
	}
	switch {
	case ends:
		l.endLocked("until")
	case l.max > 0 && l.accepted >= l.max:
		l.endLocked("max")
	}
	l.mu.Unlock()
	l.wake()
}

// recordLoss counts an event that was too large to be read.
func (l *listener) recordLoss(method string, seq int64) {
	if !Matches(l.patterns, method) {
		return
	}
	l.mu.Lock()
	if l.end == "" {
		l.countDropped(seq)
	}
	l.mu.Unlock()
	l.wake()
}

func (l *listener) countDropped(seq int64) {
	if n := len(l.queue); n > 0 && l.queue[n-1].event == nil {
		l.queue[n-1].lastSeq = seq
		l.queue[n-1].dropped++
		return
	}
	l.queue = append(l.queue, queued{lastSeq: seq, dropped: 1})
}

// finish ends the stream. Queued events are still delivered.
func (l *listener) finish(why string) {
	l.mu.Lock()
	l.endLocked(why)
	l.mu.Unlock()
	l.wake()
}

func (l *listener) endLocked(why string) {
	if l.end == "" {
		l.end = why
		close(l.done)
	}
}

// next returns the next line, or the reason of the end when the queue is empty.
func (l *listener) next(browser string) (line []byte, end string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil, l.end
	}
	next := l.queue[0]
	l.queue[0] = queued{}
	l.queue = l.queue[1:]
	if next.event == nil {
		line = strconv.AppendInt([]byte(`{"seq":`), next.lastSeq, 10)
		line = strconv.AppendInt(append(line, `,"dropped":`...), next.dropped, 10)
		return append(line, '}'), ""
	}
	l.bytes -= next.event.size()
	return next.event.line(browser), ""
}

// storedEvents returns the events of the ring that a caller may see.
func (ow *owners) storedEvents(by Caller, q EventsRequest) (Events, *Error) {
	if err := checkPatterns(q.Patterns...); err != nil {
		return Events{}, err
	}
	var only *target
	if q.Target != "" && q.Target != BrowserTarget {
		var err *Error
		if only, err = ow.resolve(by, q.Target); err != nil {
			return Events{}, err
		}
	}
	if q.Limit <= 0 {
		q.Limit = 1000
	}
	ow.mu.Lock()
	records, dropped := ow.events.since(q.Since)
	last := ow.events.lastSeq
	ow.mu.Unlock()
	out := Events{Events: []json.RawMessage{}, Dropped: dropped, LastSeq: last}
	for i, r := range records {
		switch {
		case !by.canSee(r.owner):
		case len(q.Patterns) > 0 && !Matches(q.Patterns, r.method):
		case only != nil && r.target != only.id:
		case q.Target == BrowserTarget && r.target != BrowserTarget:
		case len(out.Events) == q.Limit:
			out.LastSeq = r.seq - 1                                   // a next request with this Since finds r,
			out.Dropped -= last - out.LastSeq - int64(len(records)-i) // and the losses after it
			return out, nil
		default:
			out.Events = append(out.Events, r.line(ow.name))
		}
	}
	return out, nil
}
