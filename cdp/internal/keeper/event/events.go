// Package event stores what happens in a browser, and passes it on to streams. Each session has a journal of its own.
package event

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/manifest"
)

// Events stores what happens in the pages of each session, and passes it on to streams.
type Events struct {
	mux     *mux.Mux
	sender  *target.Sender
	domains *target.Domains
	Tracker *target.Tracker

	Journals   *Journals
	activities map[*target.Target]*activity
	listeners  map[*Listener]bool
	awaited    atomic.Int32 // calls of AwaitRecords
	Downloads  downloads
}

// New returns the events of a tracker's targets. It stores at most maxCount events and maxBytes bytes.
func New(tr *target.Tracker, maxCount, maxBytes int) *Events {
	return &Events{
		mux: tr.Mux, sender: tr.Sender, domains: tr.Domains, Tracker: tr, Journals: newJournals(maxCount, maxBytes),
		activities: map[*target.Target]*activity{}, listeners: map[*Listener]bool{},
		Downloads: downloads{folders: map[cdp.BrowserContextID]*downloadFolder{}},
	}
}

// OnEvent publishes an event of a target, nil for the browser. The mux is locked.
func (ev *Events) OnEvent(r *Record, t *target.Target) {
	r.t, r.replayed = now(), t.DomainState(r.Method).Enabling
	ev.publish(r, t)
}

func now() int64 { return time.Now().UnixMilli() }

// OnLoss counts an event that was too large to be read.
func (ev *Events) OnLoss(method string) {
	ev.Journals.skip()
	for l := range ev.listeners {
		l.recordLoss(method, ev.Journals.of(l.by.SessionKey()).lastSeq)
	}
}

// OnEnd ends all streams.
func (ev *Events) OnEnd() {
	for l := range ev.listeners {
		l.Finish("closed")
	}
}

// OnSession enables the domains of streams in a new session.
func (ev *Events) OnSession(t *target.Target) {
	for l := range ev.listeners {
		if l.covers(t) {
			for _, d := range l.domains {
				ev.domains.Enable(t, d)
			}
		}
	}
}

// OnSessionEnd forgets what the recorder knew of a target.
func (ev *Events) OnSessionEnd(t *target.Target) { delete(ev.activities, t) }

// OnForgotten ends the streams of a target that is closed.
func (ev *Events) OnForgotten(t *target.Target) {
	delete(ev.activities, t)
	for l := range ev.listeners {
		if l.scope == t {
			l.Finish("closed")
		}
	}
}

// WantsSession reports whether a stream of all pages covers a page that has no session yet.
func (ev *Events) WantsSession(t *target.Target) bool {
	for l := range ev.listeners {
		if l.wantsAllPages() && l.needsAttach(t) {
			return true
		}
	}
	return false
}

// domainsOf returns the domains to enable for patterns. Target events need none.
func domainsOf(patterns []string) (domains []string) {
	for _, p := range patterns {
		name, _, ok := strings.Cut(p, ".")
		if !ok || strings.ContainsAny(name, "*?[") {
			continue
		}
		switch name {
		case "Target", "Browser", "Inspector", "SystemInfo", "Tracing", "Tethering":
		default:
			if api.ListenEnables(name) && !slices.Contains(domains, name) {
				domains = append(domains, name)
			}
		}
		if p == target.Lifecycle && !slices.Contains(domains, p) {
			domains = append(domains, p)
		}
	}
	return domains
}

const (
	maxWaiting      = 4096
	maxWaitingBytes = 8 << 20
)

// Listener is one stream. The recorder offers events, and the goroutine that serves the client takes them; a bounded
// queue lies between them. Events that do not fit are dropped and counted.
type Listener struct {
	patterns []string
	url      string
	status   func(int) bool // nil: any
	until    string
	max      int
	by       api.Caller
	scope    *target.Target // nil: all targets
	domains  []string

	mu       sync.Mutex
	changed  sync.Cond // signals changes of the queue or end
	queue    []queued
	bytes    int
	accepted int
	end      string
}

// queued is an event, or a count of dropped ones.
type queued struct {
	event   *Record
	lastSeq int64
	dropped int64
}

// Listen registers a stream and enables the domains that it needs.
func (ev *Events) Listen(by api.Caller, q api.ListenRequest, scope *target.Target) (*Listener, *api.Error) {
	status, err := parseStatus(q.Status)
	if err != nil {
		return nil, err
	}
	l := &Listener{
		by: by, patterns: q.Patterns, url: q.URL, status: status, until: q.Until, max: q.Max, scope: scope,
	}
	l.changed.L = &l.mu
	all := slices.Clone(q.Patterns)
	if q.Until != "" {
		all = append(all, q.Until)
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
	if scope != nil && scope.Closed {
		return nil, target.ClosedTarget(scope)
	}
	ev.listeners[l] = true
	recorded := map[*target.Target][]string{}
	for _, t := range ev.Tracker.All {
		if !l.covers(t) {
			continue
		}
		for _, d := range l.domains {
			if t.Session != "" && ev.domains.Enable(t, d) {
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

// AttachPages attaches to the pages of an external browser that a stream of all pages covers and no caller has
// used yet.
func (ev *Events) AttachPages(ctx context.Context, l *Listener) {
	if !ev.Tracker.External || !l.wantsAllPages() {
		return
	}
	var attaching []*target.Target
	ev.mux.Lock()
	for _, t := range ev.Tracker.All {
		if l.needsAttach(t) {
			attaching = append(attaching, t)
			ev.Tracker.AttachAsync(t)
		}
	}
	ev.mux.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attachPagesTimeout)
	defer cancel()
	_ = ev.mux.Wait(ctx, "for the pages to be attached", func() (bool, *api.Error) {
		return !slices.ContainsFunc(attaching, func(t *target.Target) bool { return t.Attaching }), nil
	})
}

// wantsAllPages reports whether the stream covers page events of every page.
func (l *Listener) wantsAllPages() bool {
	return l.scope == nil && slices.ContainsFunc(append([]string{l.until}, l.patterns...), func(pattern string) bool {
		return pattern != "" && !api.IsBrowserDomain(api.DomainOf(pattern))
	})
}

// needsAttach reports whether a stream of all pages covers a page that has no session yet.
func (l *Listener) needsAttach(t *target.Target) bool {
	return t.Kind == "page" && t.Session == "" && !t.Attaching && l.covers(t)
}

// AwaitEnabled waits until the domains of a stream are enabled wherever that is possible: a page that navigates
// earlier would not report it. It does not wait longer than enableTimeout for a busy or blocked page.
func (ev *Events) AwaitEnabled(ctx context.Context, l *Listener) {
	ctx, cancel := context.WithTimeout(ctx, enableTimeout)
	defer cancel()
	ev.mux.Wait(ctx, "for the events to come", func() (bool, *api.Error) {
		for _, t := range ev.Tracker.All {
			if t.Session == "" || t.Closed || t.Crashed || t.Root().Dialog != nil || !l.covers(t) {
				continue
			}
			for _, d := range l.domains {
				if t.Domain(d).Enabling {
					return false, nil
				}
			}
		}
		return true, nil
	})
}

// enableTimeout bounds the wait of AwaitEnabled.
const enableTimeout = time.Second

// Unlisten removes a stream and disables the domains that only it needed.
func (ev *Events) Unlisten(l *Listener) {
	ev.mux.Lock()
	defer ev.mux.Unlock()
	if !ev.listeners[l] {
		return
	}
	delete(ev.listeners, l)
	if ev.mux.Err() != nil {
		return
	}
	for _, t := range ev.Tracker.All {
		if t.Session != "" && l.covers(t) {
			for _, d := range l.domains {
				ev.domains.Disable(t, d)
			}
		}
	}
}

func (l *Listener) covers(t *target.Target) bool {
	return l.hears(t.Owner) && (l.scope == nil || t.Within(l.scope))
}

// hears reports whether the stream may have events of a session: its caller's session, or the session of the target
// that a person has named.
func (l *Listener) hears(session string) bool {
	return l.by.CanSee(session) || l.scope != nil && l.by.IsCommandLine()
}

// wants reports whether the stream covers an event.
func (l *Listener) wants(r *Record, t *target.Target) bool {
	return l.hears(r.Owner) && (!r.Private || l.by.IsCommandLine()) && (l.scope == nil || t != nil && t.Within(l.scope)) &&
		(l.endsWith(r) || r.has(l.url, l.status) && api.Matches(l.patterns, r.Method))
}

func (l *Listener) endsWith(r *Record) bool {
	return l.until != "" && api.Matches([]string{l.until}, r.Method)
}

// offer queues an event that the stream covers. It never waits.
func (l *Listener) offer(r *Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ends := l.endsWith(r)
	switch {
	case l.end != "":
		return
	case !ends && (len(l.queue) >= maxWaiting || l.bytes+r.size() > maxWaitingBytes):
		l.countDropped(r.seq)
	default:
		l.queue = append(l.queue, queued{event: r})
		l.bytes += r.size()
		l.accepted++
	}
	switch {
	case ends:
		l.end = "until"
	case l.max > 0 && l.accepted >= l.max:
		l.end = "max"
	}
	l.changed.Signal()
}

// recordLoss counts an event that was too large to be read.
func (l *Listener) recordLoss(method string, seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == "" && api.Matches(l.patterns, method) {
		l.countDropped(seq)
		l.changed.Signal()
	}
}

func (l *Listener) countDropped(seq int64) {
	if n := len(l.queue); n > 0 && l.queue[n-1].event == nil {
		l.queue[n-1].lastSeq = seq
		l.queue[n-1].dropped++
		return
	}
	l.queue = append(l.queue, queued{lastSeq: seq, dropped: 1})
}

// Finish ends the stream. Queued events are still delivered.
func (l *Listener) Finish(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = cmp.Or(l.end, why)
	l.changed.Signal()
}

// batchBytes is about how much of the queue is taken at once.
const batchBytes = 64 << 10

// Next waits for events, and returns some from the beginning of the queue as lines. When the stream has ended and the
// queue is empty, it returns the reason of the end.
func (l *Listener) Next(browser string) (lines [][]byte, end string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && l.end == "" {
		l.changed.Wait()
	}
	for size := 0; len(l.queue) > 0 && size < batchBytes; size += len(lines[len(lines)-1]) {
		next := l.queue[0]
		l.queue[0] = queued{}
		l.queue = l.queue[1:]
		if next.event != nil {
			l.bytes -= next.event.size()
			lines = append(lines, next.event.line(browser))
			continue
		}
		lines = append(lines, fmt.Appendf(nil, `{"seq":%d,"dropped":%d}`, next.lastSeq, next.dropped))
	}
	return lines, l.end
}

// Recorded is a stored event in the form that higher packages read.
type Recorded struct {
	Seq                 int64
	Time                int64  // in milliseconds since the Unix epoch
	Target, Method, URL string // URL is the request's URL, or else the page's
	Params              json.RawMessage
}

// Records returns the stored events of a session after a number that a caller may see, the oldest first, and the number
// of the session's newest event.
func (ev *Events) Records(by api.Caller, session string, since int64, methods []string) (found []Recorded, last int64) {
	ev.mux.Lock()
	defer ev.mux.Unlock()
	records, last := ev.Journals.since(session, since)
	for _, r := range records {
		if slices.Contains(methods, r.Method) && (!r.Private || by.IsCommandLine()) {
			found = append(found, Recorded{r.seq, r.t, r.Target, r.Method, r.url, r.Params})
		}
	}
	return found, last
}

// AwaitRecords calls ready again after each stored event, until it returns true. It returns an error when the
// connection or ctx ends. ready is called without the mux locked.
func (ev *Events) AwaitRecords(ctx context.Context, ready func() bool) *api.Error {
	ev.awaited.Add(1)
	defer ev.awaited.Add(-1)
	for {
		changed, err := ev.mux.Changed()
		if err != nil || ready() {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return api.ContextError(ctx, "waiting for the page")
		}
	}
}

// defaultLimit is the number of stored events that are read at a time.
const defaultLimit = 1000

// Stored returns the stored events that a caller may see. find returns the target that a selector names.
func (ev *Events) Stored(
	by api.Caller, q api.EventsRequest, find func(selector string) (*target.Target, *api.Error),
) (api.Events, *api.Error) {
	if err := api.CheckPatterns(q.Patterns...); err != nil {
		return api.Events{}, err
	}
	status, err := parseStatus(q.Status)
	if err != nil {
		return api.Events{}, err
	}
	var only *target.Target
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
	if only != nil && only.Owner != "" {
		session = only.Owner // the caller's session, or the session of a page that a person has named
	}
	records, last := ev.Journals.since(session, q.Since)
	if q.Since < 0 || q.Since > last { // the number comes from an earlier browser
		q.Since = 0
		records, last = ev.Journals.since(session, 0)
	}
	out := api.Events{Events: []json.RawMessage{}, Dropped: last - q.Since - int64(len(records)), LastSeq: last}
	if q.Newest {
		slices.Reverse(records)
	}
	for i, r := range records {
		switch {
		case r.quiet && !named[api.DomainOf(r.Method)]:
		case r.Private && !by.IsCommandLine():
		case len(q.Patterns) > 0 && !api.Matches(q.Patterns, r.Method):
		case only != nil && r.Target != only.ID:
		case q.Target == api.BrowserTarget && r.Target != api.BrowserTarget:
		case !r.has(q.URL, status):
		case len(out.Events) < q.Limit:
			out.Events = append(out.Events, r.line(ev.Tracker.Name))
		case q.Newest: // the older ones are not returned
			return out, nil
		default:
			// The next request with this Since returns r, and the losses after it.
			out.LastSeq = r.seq - 1
			out.Dropped -= last - out.LastSeq - int64(len(records)-i)
			return out, nil
		}
	}
	return out, nil
}

// has reports whether an event's URL contains url and its status matches.
func (r *Record) has(url string, status func(int) bool) bool {
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
