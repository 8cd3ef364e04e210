package keeper

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
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

// recordedDomains are enabled by the recorder.
var recordedDomains = []string{"Network", "Runtime", "Log"}

const (
	bodyBytes    = 8 << 20 // of the bodies that Chrome keeps for a target
	maxBodyBytes = 4 << 20 // of one of them

	maxRequests   = 1000 // under way in a target, whose URLs are known
	maxContexts   = 256  // of a target that are repeated to callers
	maxURL        = 2048 // bytes of a URL in a record
	loggedObjects = 1000 // in console messages, after which the page may free them
)

// startRecording enables the recorder's domains in a new session. The engine is locked.
func (tr *tracker) startRecording(t *target) {
	for _, name := range recordedDomains {
		d := t.domain(name)
		d.recording, d.enabling = true, true
		tr.domains.setDomain(t, name, true, func(mux.Reply) {
			d.enabling = false
			tr.mux.Broadcast()
		})
	}
}

// onlyRecorded reports whether a domain is enabled for the recorder alone. Its events reach no stream then.
func (t *target) onlyRecorded(domain string) bool {
	d := t.domains[domain]
	return d != nil && d.recording && d.listeners == 0 && !d.byCaller
}

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

// isRecorded reports whether the recorder stores an event of a domain that it alone has enabled.
func isRecorded(method string) bool {
	return kindOf(method) != others || method == network.LoadingFinished.Method
}

// publish stores an event and offers it to the streams. t is the target in whose session it arrived; nil means none.
func (tr *tracker) publish(r *record, t *target) {
	domain := api.DomainOf(r.method)
	if t != nil && t.track(r, tr.events.lastOrder) {
		return
	}
	if r.method == lifecycle && t != nil && t.onlyAwaited() {
		return
	}
	passing := false
	switch r.method {
	case pageDownloadBegins, cdpbrowser.DownloadWillBegin.Method, cdpbrowser.DownloadProgress.Method:
		passing = tr.trackDownload(r, t)
	}
	alone := t != nil && t.onlyRecorded(domain)
	d := t.domainState(r.method)
	r.quiet = d.quiet()
	if alone && !isRecorded(r.method) || r.quiet && !d.kept || r.owner == Disowned {
		return
	}
	if passing && !tr.isHeard(r, t) {
		return
	}
	asItIs := r.params
	r.params = redact(r.method, asItIs)
	tr.events.add(r)
	for l := range tr.listeners {
		if !alone && !r.quiet && l.wants(r, t) {
			sent := new(*r)
			sent.params = asItIs
			l.offer(sent)
		}
	}
	if t != nil && alone && r.method == runtime.ConsoleAPICalled.Method {
		tr.releaseLogged(t, asItIs)
	}
}

// isHeard reports whether a stream covers an event.
func (tr *tracker) isHeard(r *record, t *target) bool {
	for l := range tr.listeners {
		if l.wants(r, t) {
			return true
		}
	}
	return false
}

// releaseLogged lets a page free the objects that it has logged. Chrome keeps them for the recorder until then.
func (tr *tracker) releaseLogged(t *target, params json.RawMessage) {
	if !bytes.Contains(params, []byte(`"objectId"`)) {
		return
	}
	if t.logged++; t.logged >= loggedObjects {
		t.logged = 0
		postCommand(tr.mux, t, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: "console"}, nil)
	}
}

// activity is what the recorder knows of a target, by its events.
type activity struct {
	requests map[string]string // URLs of the requests under way, by id
	contexts []scriptContext   // for scripts
	since    int64             // the order of the last event before the document
	document mainResponse
	logged   int // objects logged since the last release
}

// scriptContext is a context for scripts, with the event that reported it.
type scriptContext struct {
	id      int64
	created json.RawMessage
}

// mainResponse is the response for the document of the main frame.
type mainResponse struct {
	loader string
	status int
}

// track updates the activity by an event, and adds to the record what the event itself lacks. It returns true for
// history that Chrome repeats although it is stored. last is the order of the previous event.
func (t *target) track(r *record, last int64) (repeated bool) {
	d := t.domains[api.DomainOf(r.method)]
	repeated = d != nil && d.repeating
	r.url = clipURL(t.root().url)
	switch r.method {
	case runtime.ExecutionContextCreated.Method:
		t.addContext(r.params)
	case runtime.ExecutionContextDestroyed.Method:
		id, _ := strconv.ParseInt(string(scan.Field(r.params, "executionContextId")), 10, 64)
		t.contexts = slices.DeleteFunc(t.contexts, func(c scriptContext) bool { return c.id == id })
	case runtime.ExecutionContextsCleared.Method:
		t.contexts, t.since = nil, last
	default:
		if strings.HasPrefix(r.method, "Network.") {
			t.trackRequest(r)
		}
	}
	return repeated && (kindOf(r.method) == messages || r.method == runtime.ExecutionContextCreated.Method)
}

func (t *target) addContext(params json.RawMessage) {
	id, err := strconv.ParseInt(string(scan.Field(params, "context", "id")), 10, 64)
	if err != nil {
		return
	}
	t.contexts = slices.DeleteFunc(t.contexts, func(c scriptContext) bool { return c.id == id })
	if len(t.contexts) < maxContexts {
		t.contexts = append(t.contexts, scriptContext{id, bytes.Clone(params)})
	}
}

// trackRequest follows a request from its URL to its end.
func (t *target) trackRequest(r *record) {
	id := scan.Text(r.params, "requestId")
	switch r.method {
	case network.RequestWillBeSent.Method:
		r.url, r.status = clipURL(scan.Text(r.params, "request", "url")), scan.Number(r.params, "redirectResponse", "status")
		t.addRequest(id, r.url)
	case network.WebSocketCreated.Method:
		r.url = clipURL(scan.Text(r.params, "url"))
		t.addRequest(id, r.url)
	case network.ResponseReceived.Method:
		r.url, r.status = clipURL(scan.Text(r.params, "response", "url")), scan.Number(r.params, "response", "status")
		if scan.Text(r.params, "type") == string(network.ResourceTypeDocument) && scan.Text(r.params, "frameId") == t.ID {
			t.document = mainResponse{scan.Text(r.params, "loaderId"), r.status}
		}
	case network.WebSocketHandshakeResponseReceived.Method:
		r.status = scan.Number(r.params, "response", "status")
		t.findRequest(id, r)
	case network.LoadingFailed.Method, network.WebSocketFrameError.Method:
		r.status = noResponse
		t.findRequest(id, r)
	default:
		if id != "" {
			t.findRequest(id, r)
		}
	}
	switch r.method {
	case network.LoadingFailed.Method, network.LoadingFinished.Method, network.WebSocketClosed.Method:
		for of := t; of != nil; of = of.parent {
			delete(of.requests, id)
		}
	}
}

func (t *target) addRequest(id, url string) {
	if len(t.requests) >= maxRequests || t.requests == nil { // most of them will never end
		t.requests = map[string]string{}
	}
	t.requests[id] = url
}

// findRequest sets the URL of a record about a request. A frame's request may have begun in its page.
func (t *target) findRequest(id string, r *record) {
	r.url, r.ofURL = "", isRecorded(r.method)
	for of := t; of != nil && r.url == ""; of = of.parent {
		r.url = of.requests[id]
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
// Chrome does for a domain that it has just enabled. enabled are these domains by target. The engine is locked.
func (ow *owners) replay(l *listener, enabled map[*target][]string) {
	byID := map[string]*target{}
	for t := range enabled {
		byID[t.ID] = t
	}
	session := l.by.SessionKey()
	if l.scope != nil && l.scope.owner != "" {
		session = l.scope.owner
	}
	records, _ := ow.tracker.events.since(session, 0)
	for _, r := range records {
		t := byID[r.target]
		if t == nil || r.order <= t.since || kindOf(r.method) != messages ||
			!slices.Contains(enabled[t], api.DomainOf(r.method)) || !l.wants(r, t) {
			continue
		}
		again := new(*r)
		again.replayed = true
		l.offer(again)
	}
	for t, domains := range enabled {
		if slices.Contains(domains, "Runtime") {
			ow.tracker.repeatContexts(t)
		}
	}
}

// repeatContexts reports the contexts of a target that the recorder knows to those who have just enabled Runtime.
func (tr *tracker) repeatContexts(t *target) {
	for _, c := range slices.Clone(t.contexts) {
		tr.publish(&record{
			t: now(), target: t.ID, owner: tr.ownership.ownerOf(t, runtime.ExecutionContextCreated.Method, nil),
			private: tr.ownership.isPrivate(t, runtime.ExecutionContextCreated.Method, nil),
			method:  runtime.ExecutionContextCreated.Method, params: c.created, replayed: true,
		}, t)
	}
}
