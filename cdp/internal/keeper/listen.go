package keeper

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/manifest"
)

// domainsOf returns the domains to enable for patterns. Target events need none.
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
		case "Target", "Browser", "Inspector", "SystemInfo", "Tracing", "Tethering":
		default:
			if api.ListenEnables(name) {
				add(name)
			}
		}
		if p == lifecycle {
			add(lifecycle)
		}
	}
	return domains
}

const (
	maxWaiting      = 4096
	maxWaitingBytes = 8 << 20
)

// listener is one stream. The engine offers events and the client's writer takes them from a bounded queue between
// them. Events that do not fit are dropped and counted.
type listener struct {
	patterns []string
	url      string
	status   func(int) bool // nil: any
	until    string
	max      int
	by       api.Caller
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
func (ev *events) listen(by api.Caller, q api.ListenRequest, scope *target, wake func()) (*listener, *api.Error) {
	status, err := parseStatus(q.Status)
	if err != nil {
		return nil, err
	}
	l := &listener{
		by: by, patterns: q.Patterns, url: q.URL, status: status, until: q.Until, max: q.Max, scope: scope, wake: wake,
		done: make(chan struct{}),
	}
	all := q.Patterns
	if q.Until != "" {
		all = append(append([]string(nil), q.Patterns...), q.Until)
	}
	if err := api.CheckPatterns(all...); err != nil {
		return nil, err
	}
	l.domains = domainsOf(all)
	ev.mux.Lock()
	defer ev.mux.Unlock()
	if ev.mux.Err() != nil {
		return nil, ev.mux.Err()
	}
	if scope != nil && scope.closed {
		return nil, closedTarget(scope)
	}
	ev.listeners[l] = true
	recorded := map[*target][]string{}
	for _, t := range ev.tracker.order {
		if !l.covers(t) {
			continue
		}
		for _, d := range l.domains {
			if t.Session != "" && ev.domains.enable(t, d) {
				recorded[t] = append(recorded[t], d)
			}
		}
	}
	ev.replay(l, recorded)
	return l, nil
}

// attachPagesTimeout bounds how long a stream waits for the pages of an external browser before it begins. A
// sleeping or busy page joins the stream when it can.
const attachPagesTimeout = 2 * time.Second

// attachPages attaches to the pages of an external browser that a stream of all pages covers and no caller has
// used yet.
func (ev *events) attachPages(ctx context.Context, l *listener) {
	if !ev.tracker.external || !l.wantsAllPages() {
		return
	}
	var attaching []*target
	ev.mux.Lock()
	for _, t := range ev.tracker.order {
		if l.needsAttach(t) {
			attaching = append(attaching, t)
			ev.tracker.attachAsync(t)
		}
	}
	ev.mux.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attachPagesTimeout)
	defer cancel()
	_ = ev.mux.Wait(ctx, "for the pages to be attached", func() (bool, *api.Error) {
		return !slices.ContainsFunc(attaching, func(t *target) bool { return t.attaching }), nil
	})
}

// wantsAllPages reports whether the stream covers page events of every page.
func (l *listener) wantsAllPages() bool {
	return l.scope == nil && slices.ContainsFunc(append([]string{l.until}, l.patterns...), func(pattern string) bool {
		return pattern != "" && !api.IsBrowserDomain(api.DomainOf(pattern))
	})
}

// needsAttach reports whether a stream of all pages covers a page that has no session yet.
func (l *listener) needsAttach(t *target) bool {
	return t.kind == "page" && t.Session == "" && !t.attaching && l.covers(t)
}

// awaitEnabled waits until the domains of a stream are enabled wherever that is possible: a page that navigates
// earlier would not report it. It does not wait longer than enableTimeout for a busy or blocked page.
func (ev *events) awaitEnabled(ctx context.Context, l *listener) {
	ctx, cancel := context.WithTimeout(ctx, enableTimeout)
	defer cancel()
	ev.mux.Wait(ctx, "for the events to come", func() (bool, *api.Error) {
		for _, t := range ev.tracker.order {
			if t.Session == "" || t.closed || t.crashed || t.root().dialog != nil || !l.covers(t) {
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
func (ev *events) unlisten(l *listener) {
	ev.mux.Lock()
	defer ev.mux.Unlock()
	if !ev.listeners[l] {
		return
	}
	delete(ev.listeners, l)
	if ev.mux.Err() != nil {
		return
	}
	for _, t := range ev.tracker.order {
		if t.Session != "" && l.covers(t) {
			for _, d := range l.domains {
				ev.domains.disable(t, d)
			}
		}
	}
}

func (l *listener) covers(t *target) bool {
	return l.hears(t.owner) && (l.scope == nil || t.within(l.scope))
}

// hears reports whether the stream may have events of a session: that of its caller, or that of the target that a
// person has named.
func (l *listener) hears(session string) bool {
	return l.by.CanSee(session) || l.scope != nil && l.by.IsCommandLine()
}

// wants reports whether the stream covers an event.
func (l *listener) wants(r *record, t *target) bool {
	return l.hears(r.owner) && (!r.private || l.by.ActsForPerson()) && (l.scope == nil || t != nil && t.within(l.scope)) &&
		(l.endsWith(r) || r.has(l.url, l.status) && api.Matches(l.patterns, r.method))
}

func (l *listener) endsWith(r *record) bool {
	return l.until != "" && api.Matches([]string{l.until}, r.method)
}

// offer queues an event that the stream covers. It never waits.
func (l *listener) offer(r *record) {
	ends := l.endsWith(r)
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
	if !api.Matches(l.patterns, method) {
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

// defaultLimit is the number of stored events that are read at a time.
const defaultLimit = 1000

// stored returns the stored events that a caller may see. find returns the target that a selector names.
func (ev *events) stored(
	by api.Caller, q api.EventsRequest, find func(selector string) (*target, *api.Error),
) (api.Events, *api.Error) {
	if err := api.CheckPatterns(q.Patterns...); err != nil {
		return api.Events{}, err
	}
	status, err := parseStatus(q.Status)
	if err != nil {
		return api.Events{}, err
	}
	var only *target
	if q.Target != "" && q.Target != api.BrowserTarget {
		if only, err = find(q.Target); err != nil {
			return api.Events{}, err
		}
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	named := map[string]bool{}
	for _, p := range q.Patterns {
		named[api.DomainOf(p)] = true
	}
	ev.mux.Lock()
	defer ev.mux.Unlock() // reassign changes the numbers of records
	session := by.SessionKey()
	if only != nil && only.owner != "" {
		session = only.owner // the caller's, or that of a page that a person has named
	}
	records, last := ev.journals.since(session, q.Since)
	if q.Since < 0 || q.Since > last { // of a browser before this one
		q.Since = 0
		records, last = ev.journals.since(session, 0)
	}
	out := api.Events{Events: []json.RawMessage{}, Dropped: last - q.Since - int64(len(records)), LastSeq: last}
	if q.Newest {
		slices.Reverse(records)
	}
	for i, r := range records {
		switch {
		case r.quiet && !named[api.DomainOf(r.method)]:
		case r.private && !by.ActsForPerson():
		case len(q.Patterns) > 0 && !api.Matches(q.Patterns, r.method):
		case only != nil && r.target != only.ID:
		case q.Target == api.BrowserTarget && r.target != api.BrowserTarget:
		case !r.has(q.URL, status):
		case len(out.Events) < q.Limit:
			out.Events = append(out.Events, r.line(ev.tracker.name))
		case q.Newest: // the older ones are not read
			return out, nil
		default:
			// A next request with this Since finds r, and the losses after it.
			out.LastSeq = r.seq - 1
			out.Dropped -= last - out.LastSeq - int64(len(records)-i)
			return out, nil
		}
	}
	return out, nil
}

// has reports whether an event is about a URL that contains url, and has a status that matches.
func (r *record) has(url string, status func(int) bool) bool {
	return strings.Contains(r.url, url) && (status == nil || status(r.status))
}

// parseStatus returns a filter for HTTP statuses, nil for all events.
func parseStatus(s string) (func(status int) bool, *api.Error) {
	code, err := strconv.Atoi(s)
	switch {
	case s == "":
		return nil, nil
	case s == "failed":
		return func(status int) bool { return status == noResponse || status >= 400 }, nil
	case len(s) == 3 && s[0] >= '1' && s[0] <= '5' && strings.EqualFold(s[1:], "xx"):
		return func(status int) bool { return status/100 == int(s[0]-'0') }, nil
	case err == nil && code >= 100 && code <= 599:
		return func(status int) bool { return status == code }, nil
	}
	return nil, api.Errorf(api.CodeInvalidArgs,
		"%q is not a status: expected a number such as 404, a class such as 4xx, or failed", manifest.Clip(s, 40))
}
