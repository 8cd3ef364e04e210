package tenant

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// setup is what a session has set up for its present and later pages, frames and popups. It ends with the session.
type setup struct {
	Scripts []api.PageScript             // run at the start of each document
	Rules   []*RouteRule                 // for requests
	Headers map[string]map[string]string // request headers, by the origins that get them
	Refused map[string]string            // why the latest certificates or logins were refused, by origin
	Uploads string                       // the folder of files that pages of the session may get; "" if there is none yet
}

// setups are the set-ups of all sessions. Their methods are called with the mux locked.
type setups struct {
	mux       *mux.Mux
	BySession map[string]*setup
	applied   map[*target.Target]*applied
	Dir       string      // for the folders of uploads
	folders   int         // number of folders so far
	Operator  OriginRules // nil: the operator has no files
	Logins    bool        // the keeper answers servers that ask for a login
	asks      bool        // pages ask about certificates, because the operator's files have rules for them
}

func newSetups(m *mux.Mux) *setups {
	return &setups{mux: m, BySession: map[string]*setup{}, applied: map[*target.Target]*applied{}}
}

// end ends the set-ups of sessions.
func (ss *setups) end(ends func(session string) bool) {
	for session, s := range ss.BySession {
		if !ends(session) {
			continue
		}
		delete(ss.BySession, session)
		if s.Uploads != "" {
			go os.RemoveAll(s.Uploads)
		}
	}
}

// Of returns the set-up of a session, which it creates if necessary.
func (ss *setups) Of(session string) *setup {
	s := ss.BySession[session]
	if s == nil {
		s = &setup{Refused: map[string]string{}}
		ss.BySession[session] = s
	}
	return s
}

// applied is the part of its session's set-up that a target has.
type applied struct {
	worlds map[string]bool // worlds of its scripts
	trusts bool            // it asks about certificates
	asked  string          // the last request for which a server has asked for a login
}

// apply applies the set-up of its session to a target. A new target gets it before it runs. apply does not change
// pages of an attached browser that nobody has given to a session.
func (ss *setups) apply(t *target.Target) {
	if t.Owner == "" || t.Session == "" || !target.HasPage(t.Kind) || t.Hidden {
		return
	}
	s := cmp.Or(ss.BySession[t.Owner], &setup{})
	a := ss.applied[t]
	if a == nil {
		a = &applied{worlds: map[string]bool{}}
		ss.applied[t] = a
	}
	for _, script := range s.Scripts {
		if a.worlds[script.World()] {
			continue
		}
		a.worlds[script.World()] = true
		t.Preparing++
		target.Post(ss.mux, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: script.Program(), WorldName: script.World(), RunImmediately: new(true),
		}, func(mux.Reply) {
			t.Preparing--
			ss.mux.Broadcast()
		})
	}
	if ss.asks && !a.trusts && t.Kind == "page" {
		a.trusts = true
		ss.askAboutCertificates(t, maxTries)
	}
	if (ss.Logins || ss.Routes(t)) && !fetches(t) {
		target.Post(ss.mux, t, fetch.Enable, fetch.EnableParams{Patterns: patternsOf(s), HandleAuthRequests: new(true)}, nil)
	}
}

// forget forgets what was applied to a target, because its session has ended.
func (ss *setups) forget(t *target.Target) { delete(ss.applied, t) }

// Routes reports whether the session of a target has rules for its requests.
func (ss *setups) Routes(t *target.Target) bool {
	s := ss.BySession[t.Owner]
	return s != nil && len(s.Rules)+len(s.Headers) > 0
}

// fetches reports whether a caller pauses the requests of a target itself.
func fetches(t *target.Target) bool { return t.Domains["Fetch"] != nil && t.Domains["Fetch"].ByCaller }

// fulfillEmpty answers a paused request with an empty document.
func (ss *setups) fulfillEmpty(t *target.Target, params json.RawMessage) {
	target.Post(ss.mux, t, fetch.FulfillRequest, fetch.FulfillRequestParams{
		RequestID: fetch.RequestID(scan.Text(params, "requestId")), ResponseCode: 200,
		ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html"}}}, nil)
}

// Reapply applies the set-up of its session to a target again, after a caller has paused its requests.
func (ow *Owners) Reapply(t *target.Target) {
	ow.mux.Lock()
	defer ow.mux.Unlock()
	ow.Setups.apply(t)
}

// ApplyToAll applies the set-up of a session to all its targets. The mux is locked.
func (ow *Owners) ApplyToAll(session string) {
	for _, t := range ow.tracker.All {
		if t.Owner == session {
			ow.Setups.apply(t)
		}
	}
}

// maxUploads limits the files that a session uploads. They have to stay, because Chrome reads a file when it is sent.
const maxUploads = 200

// UploadFolder returns the folder for uploads of a session, which it creates if necessary.
func (ss *setups) UploadFolder(session string) (string, *api.Error) {
	set := ss.Of(session)
	if set.Uploads == "" {
		ss.folders++
		dir := filepath.Join(ss.Dir, strconv.Itoa(ss.folders))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", api.RunDirError(err)
		}
		set.Uploads = dir
	}
	files, err := os.ReadDir(set.Uploads)
	if err != nil {
		return "", api.RunDirError(err)
	}
	if len(files) >= maxUploads {
		return "", api.Errorf(api.CodeLimitExceeded, "a session uploads at most %d files; close it, and open it again",
			maxUploads)
	}
	return set.Uploads, nil
}

// Link gives a download the name that the page gave it, in the folder for uploads.
func (ss *setups) Link(session, file, name string) (string, *api.Error) {
	dir, failed := ss.UploadFolder(session)
	if failed != nil {
		return "", failed
	}
	own, err := os.MkdirTemp(dir, "")
	if err != nil {
		return "", api.RunDirError(err)
	}
	path := filepath.Join(own, cmp.Or(name, filepath.Base(file)))
	if err := os.Link(file, path); err != nil {
		return "", api.RunDirError(err)
	}
	return path, nil
}

// RouteRule is a rule of a session, with the number of requests that it has matched.
type RouteRule struct {
	api.RouteRule
	Requests int
}

// patternsOf returns the patterns of the requests that Chrome pauses for a set-up: all requests to servers, and those
// that match its rules. Requests are paused because only then Chrome lets the keeper answer a server that asks for a
// login. Otherwise it asks a person, and the page takes no input until there is an answer.
func patternsOf(s *setup) []*fetch.RequestPattern {
	all := []*fetch.RequestPattern{{URLPattern: "http://*"}, {URLPattern: "https://*"}}
	for _, r := range s.Rules {
		kind := network.ResourceType(r.Type)
		all = append(all, &fetch.RequestPattern{URLPattern: r.URL, ResourceType: kind})
		if !strings.Contains(r.URL, "?") {
			all = append(all, &fetch.RequestPattern{URLPattern: r.URL + `\?*`, ResourceType: kind})
		}
	}
	return all
}

// headersOf returns the headers of a paused request together with those for its origin, or nil if the origin gets
// none.
func (s *setup) headersOf(params json.RawMessage) []*fetch.HeaderEntry {
	more := s.Headers[api.OriginOf(scan.Text(params, "request", "url"))]
	if len(more) == 0 {
		return nil
	}
	own := map[string]string{}
	_ = json.Unmarshal(scan.Field(params, "request", "headers"), &own)
	for name := range more {
		maps.DeleteFunc(own, func(present, _ string) bool { return strings.EqualFold(present, name) })
	}
	maps.Copy(own, more)
	return entries(own)
}

// entries converts headers to the protocol's form.
func entries(headers map[string]string) (all []*fetch.HeaderEntry) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		all = append(all, &fetch.HeaderEntry{Name: name, Value: headers[name]})
	}
	return all
}

// onPaused answers a request that was paused for the rules of its session. The first matching rule decides.
func (ss *setups) onPaused(t *target.Target, params json.RawMessage) {
	id := fetch.RequestID(scan.Text(params, "requestId"))
	method, url := scan.Text(params, "request", "method"), scan.Text(params, "request", "url")
	resource := scan.Text(params, "resourceType")
	rule := &RouteRule{} // a rule without an action lets the request continue
	var headers []*fetch.HeaderEntry
	if set := ss.BySession[t.Owner]; set != nil {
		headers = set.headersOf(params)
		for _, r := range slices.Backward(set.Rules) {
			if r.matches(method, url, resource) {
				rule = r
			}
		}
	}
	rule.Requests++
	if rule.DelayMS == 0 {
		ss.answerPaused(t, id, rule, headers)
		return
	}
	time.AfterFunc(time.Duration(rule.DelayMS)*time.Millisecond, func() {
		ss.mux.Lock()
		defer ss.mux.Unlock()
		if !t.Closed {
			ss.answerPaused(t, id, rule, headers)
		}
	})
}

// answerPaused applies a rule to a paused request. A request that continues gets headers, if there are any.
func (ss *setups) answerPaused(t *target.Target, id fetch.RequestID, r *RouteRule, headers []*fetch.HeaderEntry) {
	switch r.Action {
	case api.RouteBlock:
		target.Post(ss.mux, t, fetch.FailRequest, fetch.FailRequestParams{RequestID: id,
			ErrorReason: network.ErrorReasonBlockedByClient}, nil)
	case api.RouteMock:
		p := fetch.FulfillRequestParams{RequestID: id, ResponseCode: 200, Body: append([]byte(r.Body), r.Binary...),
			ResponseHeaders: entries(r.Headers)}
		if r.Status != 0 {
			p.ResponseCode = int64(r.Status)
		}
		target.Post(ss.mux, t, fetch.FulfillRequest, p, nil)
	default:
		target.Post(ss.mux, t, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: id, Headers: headers}, nil)
	}
}

func (r *RouteRule) matches(method, url, resource string) bool {
	return (r.Method == "" || strings.EqualFold(r.Method, method)) && (r.Type == "" || r.Type == resource) &&
		matchesRule(r.URL, url)
}

// matchesRule reports whether a URL matches the pattern of a rule. A pattern without "?" also matches URLs with a
// query added.
func matchesRule(pattern, url string) bool {
	path, _, _ := strings.Cut(url, "?")
	return matchesURL(pattern, url) || !strings.Contains(pattern, "?") && matchesURL(pattern, path)
}

// matchesURL reports whether a URL matches a pattern, by Chrome's rules. The time is at most proportional to the
// product of their lengths.
func matchesURL(pattern, url string) bool {
	star, retry := -1, 0
	at, in := 0, 0
	for in < len(url) {
		switch {
		case at < len(pattern) && pattern[at] == '*':
			star, retry = at, in
			at++
			continue
		case at < len(pattern) && pattern[at] == '?':
			at, in = at+1, in+1
			continue
		case at+1 < len(pattern) && pattern[at] == '\\' && pattern[at+1] == url[in]:
			at, in = at+2, in+1
			continue
		case at < len(pattern) && pattern[at] == url[in] && pattern[at] != '\\':
			at, in = at+1, in+1
			continue
		}
		if star < 0 {
			return false
		}
		retry++
		at, in = star+1, retry
	}
	return strings.Trim(pattern[at:], "*") == ""
}
