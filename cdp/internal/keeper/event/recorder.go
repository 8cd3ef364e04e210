package event

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// The recorder enables Network, Runtime and Log in every session of the browser before the target runs, so that its
// requests, console messages and exceptions are stored without a call. A page notices little of it. Measured with
// Chromium 148:
//
//   - Network: a page's requests and responses are unchanged. Chrome keeps bodies for Network.getResponseBody; by
//     default up to 100 MB a page, here bodyBytes. The newest ones stay when a caller enables the domain again.
//   - Runtime: console.log takes 65 to 100 µs instead of 25 µs, and console.table of 500 rows 20 ms instead of 0.3 ms,
//     which a page can measure. A getter of an error's name is read twice instead of once when the error is logged;
//     getters of other objects, stacks and proxies are not read in either case. Each logged object stays in memory,
//     6 MB for 50,000 small ones, so the recorder releases them, see loggedObjects.
//   - Log: no difference was found.
//
// In an external browser the same happens from the first use of a page.

const (
	maxRequests   = 1000 // requests under way in a target whose URLs are remembered
	maxURL        = 2048 // bytes of a URL in a record
	loggedObjects = 1000 // console messages after which the page may free the objects that it logged
)

// kindOf returns the kind of an event, which decides the ring that stores it.
func kindOf(method string) int {
	switch method {
	case network.RequestWillBeSent.Method, network.ResponseReceived.Method, network.LoadingFailed.Method,
		network.WebSocketCreated.Method, network.WebSocketHandshakeResponseReceived.Method,
		network.WebSocketFrameError.Method, network.WebSocketClosed.Method,
		cdpbrowser.DownloadWillBegin.Method, cdpbrowser.DownloadProgress.Method:
		return requests
	case runtime.ConsoleAPICalled.Method, runtime.ExceptionThrown.Method, log.EntryAdded.Method:
		return messages
	}
	return others
}

// IsRecorded reports whether the recorder stores an event of a domain that it alone has enabled.
func IsRecorded(method string) bool {
	return kindOf(method) != others || method == network.LoadingFinished.Method
}

// publish stores an event and offers it to the streams. t is the target in whose session it arrived; nil means none.
func (ev *Events) publish(r *Record, t *target.Target) {
	domain := api.DomainOf(r.Method)
	if t != nil && ev.track(r, t) {
		return
	}
	if r.Method == target.Lifecycle && t != nil && t.OnlyAwaited() {
		return
	}
	passing := false
	switch r.Method {
	case pageDownloadBegins, cdpbrowser.DownloadWillBegin.Method, cdpbrowser.DownloadProgress.Method:
		passing = ev.trackDownload(r, t)
	}
	alone := t != nil && t.OnlyRecorded(domain)
	d := t.DomainState(r.Method)
	r.quiet = d.Quiet()
	if alone && !IsRecorded(r.Method) || r.quiet && !d.Kept || r.Owner == api.Disowned {
		return
	}
	if passing && !ev.isHeard(r, t) {
		return
	}
	asItIs := r.Params
	r.Params = redact(r.Method, asItIs)
	ev.Journals.add(r)
	if ev.awaited.Load() > 0 {
		ev.mux.Broadcast()
	}
	for l := range ev.listeners {
		if !alone && !r.quiet && l.wants(r, t) {
			sent := new(*r)
			sent.Params = asItIs
			l.offer(sent)
		}
	}
	if t != nil && alone && r.Method == runtime.ConsoleAPICalled.Method {
		ev.releaseLogged(t, asItIs)
	}
}

// isHeard reports whether a stream covers an event.
func (ev *Events) isHeard(r *Record, t *target.Target) bool {
	for l := range ev.listeners {
		if l.wants(r, t) {
			return true
		}
	}
	return false
}

// releaseLogged lets a page free the objects that it has logged. Chrome keeps them for the recorder until then.
func (ev *Events) releaseLogged(t *target.Target, params json.RawMessage) {
	if !bytes.Contains(params, []byte(`"objectId"`)) {
		return
	}
	a := ev.activityOf(t)
	if a.logged++; a.logged >= loggedObjects {
		a.logged = 0
		target.Post(ev.mux, t, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: "console"}, nil)
	}
}

// activity is what the recorder knows of a target, by its events.
type activity struct {
	requests map[string]string // URLs of the requests under way, by id
	since    int64             // the order of the last event before the current document
	logged   int               // objects logged since the last release
	sockets  []*socket         // the newest last
}

// socket is a WebSocket with the last messages that went through it.
type socket struct {
	id     string
	frames []Frame
}

// Frame is a message of a WebSocket.
type Frame struct {
	Sent   bool
	Time   float64 // in seconds, on the browser's clock
	Opcode int     // 1 for text; other data is in Base64
	Data   string  // at most MaxFrame bytes
}

// MaxFrames is how many messages are kept for each of the newest sockets of a target, and MaxFrame how many bytes of
// each.
const MaxFrames, MaxFrame = 20, 1024

const maxSockets = 20

// addFrame keeps a message of a WebSocket.
func (a *activity) addFrame(id string, sent bool, params json.RawMessage) {
	at := slices.IndexFunc(a.sockets, func(s *socket) bool { return s.id == id })
	if at < 0 {
		a.sockets = append(a.sockets[max(0, len(a.sockets)-maxSockets+1):], &socket{id: id})
		at = len(a.sockets) - 1
	}
	var p struct {
		Timestamp float64
		Response  struct {
			Opcode int
			Data   string `json:"payloadData"`
		}
	}
	_ = json.Unmarshal(params, &p)
	s, data := a.sockets[at], p.Response.Data
	if len(data) > MaxFrame {
		data = strings.ToValidUTF8(data[:MaxFrame], "") + "…"
	}
	s.frames = append(s.frames[max(0, len(s.frames)-MaxFrames+1):], Frame{sent, p.Timestamp, p.Response.Opcode,
		strings.Clone(data)})
}

// Frames returns the last messages of a WebSocket of a target, the oldest first.
func (ev *Events) Frames(targetID, id string) []Frame {
	ev.mux.Lock()
	defer ev.mux.Unlock()
	if a := ev.activities[ev.Tracker.ByID[targetID]]; a != nil {
		for _, s := range a.sockets {
			if s.id == id {
				return slices.Clone(s.frames)
			}
		}
	}
	return nil
}

// activityOf returns the activity of a target.
func (ev *Events) activityOf(t *target.Target) *activity {
	a := ev.activities[t]
	if a == nil {
		a = &activity{}
		ev.activities[t] = a
	}
	return a
}

// track updates the activity by an event, and adds to the record what the event itself lacks. It returns true for an
// event that Chrome repeats although it is stored.
func (ev *Events) track(r *Record, t *target.Target) (repeated bool) {
	r.url = clipURL(t.Root().URL)
	if r.Method == runtime.ExecutionContextsCleared.Method {
		ev.activityOf(t).since = ev.Journals.lastOrder
	}
	if strings.HasPrefix(r.Method, "Network.") {
		ev.trackRequest(r, t)
	}
	return t.DomainState(r.Method).Repeating &&
		(kindOf(r.Method) == messages || r.Method == runtime.ExecutionContextCreated.Method)
}

// trackRequest follows a request from its URL to its end.
func (ev *Events) trackRequest(r *Record, t *target.Target) {
	id := scan.Text(r.Params, "requestId")
	switch r.Method {
	case network.RequestWillBeSent.Method:
		r.url = clipURL(scan.Text(r.Params, "request", "url"))
		r.status = scan.Number(r.Params, "redirectResponse", "status")
		ev.activityOf(t).addRequest(id, r.url)
	case network.WebSocketCreated.Method:
		r.url = clipURL(scan.Text(r.Params, "url"))
		ev.activityOf(t).addRequest(id, r.url)
	case network.ResponseReceived.Method:
		r.url, r.status = clipURL(scan.Text(r.Params, "response", "url")), scan.Number(r.Params, "response", "status")
	case network.WebSocketFrameSent.Method, network.WebSocketFrameReceived.Method:
		ev.activityOf(t).addFrame(id, r.Method == network.WebSocketFrameSent.Method, r.Params)
		fallthrough
	default:
		if id != "" {
			ev.findRequest(id, r, t)
		}
	}
	switch r.Method {
	case network.WebSocketHandshakeResponseReceived.Method:
		r.status = scan.Number(r.Params, "response", "status")
	case network.LoadingFailed.Method, network.WebSocketFrameError.Method:
		r.status = noResponse
	}
	switch r.Method {
	case network.LoadingFailed.Method, network.LoadingFinished.Method, network.WebSocketClosed.Method:
		for of := t; of != nil; of = of.Parent {
			if a := ev.activities[of]; a != nil {
				delete(a.requests, id)
			}
		}
	}
}

func (a *activity) addRequest(id, url string) {
	if len(a.requests) >= maxRequests || a.requests == nil { // most of them will never end
		a.requests = map[string]string{}
	}
	a.requests[id] = url
}

// findRequest sets the URL of a record about a request. A frame's request may have begun in its page.
func (ev *Events) findRequest(id string, r *Record, t *target.Target) {
	r.url, r.ofURL = "", IsRecorded(r.Method)
	for of := t; of != nil && r.url == ""; of = of.Parent {
		if a := ev.activities[of]; a != nil { // a closed page has none
			r.url = a.requests[id]
		}
	}
}

// clipURL limits what a record holds of a URL.
func clipURL(url string) string {
	limit := maxURL
	if strings.HasPrefix(url, "data:") {
		limit = maxDataURL
	}
	if len(url) > limit {
		return strings.Clone(url[:limit])
	}
	return url
}

// replay offers a new stream what Chrome has already reported of domains that were enabled for the recorder alone, as
// Chrome does for a domain that it has just enabled. enabled are these domains by target. The mux is locked.
func (ev *Events) replay(l *Listener, enabled map[*target.Target][]string) {
	byID := map[string]*target.Target{}
	for t := range enabled {
		byID[t.ID] = t
	}
	session := l.by.SessionKey()
	if l.scope != nil && l.scope.Owner != "" {
		session = l.scope.Owner
	}
	records, _ := ev.Journals.since(session, 0)
	for _, r := range records {
		t := byID[r.Target]
		if t == nil || r.order <= ev.activityOf(t).since || kindOf(r.Method) != messages ||
			!slices.Contains(enabled[t], api.DomainOf(r.Method)) || !l.wants(r, t) {
			continue
		}
		again := new(*r)
		again.replayed = true
		l.offer(again)
	}
	for t, domains := range enabled {
		if slices.Contains(domains, "Runtime") {
			ev.RepeatContexts(t)
		}
	}
}

// RepeatContexts reports the contexts of a target that the recorder knows to callers who have just enabled Runtime.
func (ev *Events) RepeatContexts(t *target.Target) {
	for _, c := range slices.Clone(t.Contexts) {
		ev.publish(&Record{
			t: now(), Target: t.ID, Owner: t.Owner, Private: t.IsPrivate(), Method: runtime.ExecutionContextCreated.Method,
			Params: c.Created, replayed: true,
		}, t)
	}
}

// redacted replaces a value that a record must not have.
const redacted = `"[redacted]"`

// maxDataURL is how much a record keeps of a data: URL, which is a body.
const maxDataURL = 100

// redact returns a copy of an event's parameters without cookies, credentials and bodies. Streams get the event as it
// is, because their callers have asked for it.
func redact(method string, params json.RawMessage) json.RawMessage {
	switch api.DomainOf(method) {
	case "Network", "Fetch", "Audits":
	default:
		return bytes.Clone(params)
	}
	if len(params) == 0 {
		return nil
	}
	data := method == "Network.eventSourceMessageReceived" || strings.HasPrefix(method, "Network.direct")
	return bytes.Clone(redactValue(make([]byte, 0, len(params)), params, data)) // as small as possible
}

// redactValue appends a value to b. data is set where members called data are bodies, too.
func redactValue(b, value []byte, data bool) []byte {
	switch {
	case len(value) > 0 && value[0] == '{':
		return redactObject(b, value, data)
	case len(value) > 0 && value[0] == '[':
		b = append(b, '[')
		begin := len(b)
		scan.EachElement(value, func(element []byte) {
			if len(b) > begin {
				b = append(b, ',')
			}
			b = redactValue(b, element, data)
		})
		return append(b, ']')
	}
	return append(b, value...)
}

func redactObject(b, object []byte, data bool) []byte {
	pair := false // the object is the name and value of a header
	if name := scan.Field(object, "name"); len(name) > 2 {
		pair = isSecretHeader(name[1 : len(name)-1])
	}
	b = append(b, '{')
	begin := len(b)
	scan.EachField(object, func(key, value []byte) error {
		if isBody(string(key)) || data && string(key) == "data" {
			return nil
		}
		if len(b) > begin {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), key...), `":`...)
		switch {
		case isSecretHeader(key) || pair && string(key) == "value":
			b = append(b, redacted...)
		case bytes.HasPrefix(value, []byte(`"data:`)):
			b = appendClipped(b, value)
		default:
			b = redactValue(b, value, data)
		}
		return nil
	})
	return append(b, '}')
}

func isSecretHeader(name []byte) bool {
	return slices.ContainsFunc([]string{"cookie", "set-cookie", "authorization", "proxy-authorization"},
		func(secret string) bool { return len(name) == len(secret) && strings.EqualFold(string(name), secret) })
}

// isBody reports whether a member is a body, or repeats headers or cookies in a form of its own.
func isBody(key string) bool {
	return slices.Contains([]string{"postData", "postDataEntries", "payloadData", "headersText", "requestHeadersText",
		"associatedCookies", "blockedCookies", "exemptedCookies", "cookieLine", "rawCookieLine"}, key)
}

// appendClipped appends the beginning of a JSON string.
func appendClipped(b, value []byte) []byte {
	if len(value) <= maxDataURL {
		return append(b, value...)
	}
	end := maxDataURL
	for !utf8.RuneStart(value[end]) && end > 0 {
		end--
	}
	if escape := bytes.IndexByte(value[:end], '\\'); escape >= 0 {
		end = escape
	}
	return append(append(b, value[:end]...), `…"`...)
}
