package keeper

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/manifest"
)

// State is what the browser context of a session stores for some origins.
type State struct {
	Cookies []Cookie `json:"cookies"`
	// Local and Session have the entries of localStorage and sessionStorage by origin, each as [[key,value],...]. They
	// stay as Chrome wrote them, because their texts need not be valid Unicode.
	Local   map[string]json.RawMessage `json:"local_storage,omitempty"`
	Session map[string]json.RawMessage `json:"session_storage,omitempty"`
}

// Cookie is a cookie with the fields that setting it again requires.
type Cookie struct {
	Name      string        `json:"name"`
	Value     string        `json:"value"`
	Domain    string        `json:"domain"` // with a dot at its beginning, unless it is for that host only
	Path      string        `json:"path"`
	Expires   float64       `json:"expires"` // in seconds since 1970; negative for a session cookie
	HTTPOnly  bool          `json:"httpOnly,omitempty"`
	Secure    bool          `json:"secure,omitempty"`
	SameSite  string        `json:"sameSite,omitempty"`
	Priority  string        `json:"priority,omitempty"`
	Partition *partitionKey `json:"partitionKey,omitempty"`
}

type partitionKey struct {
	Site     string `json:"topLevelSite"`
	Ancestor bool   `json:"hasCrossSiteAncestor"`
}

// StateLoaded counts what was loaded. Left are the origins whose sessionStorage was not, because the session's current
// page is not one of theirs.
type StateLoaded struct {
	Cookies int      `json:"cookies"`
	Items   int      `json:"items"`
	Left    []string `json:"left,omitempty"`
}

// MaxState is the size limit of a state as JSON, in bytes.
const MaxState = 16 << 20

type stateRequest struct {
	Origins   []string `json:"origins"`
	State     *State   `json:"state,omitempty"` // to load
	TimeoutMS int64    `json:"timeout_ms,omitempty"`
}

// saveState returns what the session's context stores for origins, which are in canonical spelling.
func (e *engine) saveState(ctx context.Context, by Caller, origins []string) (State, *Error) {
	in, release, err := e.stateContext(ctx, by, origins)
	if err != nil {
		return State{}, err
	}
	defer release()
	all, err := e.cookies(ctx, in)
	if err != nil {
		return State{}, err
	}
	saved := State{Cookies: cookiesOf(all, origins), Local: map[string]json.RawMessage{},
		Session: map[string]json.RawMessage{}}
	read := func(t *target, origin, storage string, into map[string]json.RawMessage) *Error {
		text, err := callInFrame[string](ctx, e.sender, t, t.id, readStorage(), origin, storage)
		if err == nil && text != "" && text != "[]" {
			into[origin] = json.RawMessage(text)
		}
		return err
	}
	err = e.visitOrigins(ctx, in, origins, func(t *target, origin string) *Error {
		return read(t, origin, "localStorage", saved.Local)
	})
	if err != nil {
		return State{}, err
	}
	if t, origin := e.currentPageOf(by, origins); t != nil {
		if err := read(t, origin, "sessionStorage", saved.Session); err != nil {
			return State{}, err
		}
	}
	return saved, saved.checkSize()
}

func (s State) checkSize() *Error {
	if len(mustJSON(s)) > MaxState {
		return &Error{Code: CodeLimitExceeded, Message: "these origins store more than 16 MiB; name fewer origins"}
	}
	return nil
}

// loadState makes the session's context store for origins what a state has for them, and nothing else: a login that is
// half of one user and half of another would be neither. sessionStorage is that of the current page, and stays if the
// state has none: it may have been saved without that page.
func (e *engine) loadState(ctx context.Context, by Caller, origins []string, state State) (StateLoaded, *Error) {
	in, release, err := e.stateContext(ctx, by, origins)
	if err != nil {
		return StateLoaded{}, err
	}
	defer release()
	var done StateLoaded
	present, err := e.cookies(ctx, in)
	if err != nil {
		return done, err
	}
	now := time.Now()
	var cookies []map[string]any
	set := map[string]bool{}
	for _, c := range cookiesOf(state.Cookies, origins) {
		if !c.expired(now) { // setting an expired cookie deletes one
			cookies = append(cookies, c.param())
			set[c.key()] = true
		}
	}
	done.Cookies = len(cookies)
	for _, c := range cookiesOf(present, origins) {
		if !set[c.key()] {
			c.Value, c.Expires = "", 1
			cookies = append(cookies, c.param())
		}
	}
	if len(cookies) > 0 {
		params := map[string]any{"cookies": cookies}
		if in != "" {
			params["browserContextId"] = in
		}
		if _, err := e.do(ctx, nil, "Storage.setCookies", mustJSON(params), callOptions{}); err != nil {
			return done, err
		}
	}
	write := func(t *target, origin, storage string, items json.RawMessage) (bool, *Error) {
		if items == nil {
			items = json.RawMessage("[]")
		}
		n, err := callInFrame[int](ctx, e.sender, t, t.id, writeStorage(), origin, storage, string(items))
		done.Items += max(0, n)
		return n >= 0, err
	}
	err = e.visitOrigins(ctx, in, origins, func(t *target, origin string) *Error {
		_, err := write(t, origin, "localStorage", state.Local[origin])
		return err
	})
	if err != nil {
		return done, err
	}
	for _, origin := range origins {
		items := state.Session[origin]
		if items == nil {
			continue
		}
		loaded := false
		if t, _ := e.currentPageOf(by, []string{origin}); t != nil {
			if loaded, err = write(t, origin, "sessionStorage", items); err != nil {
				return done, err
			}
		}
		if !loaded {
			done.Left = append(done.Left, origin)
		}
	}
	return done, nil
}

// readStorage is the function of JavaScript that returns the entries of a storage. As writeStorage, it compares the
// origin in the same turn as it reads or writes: the page may have moved on. Nothing that they use before that can be
// replaced by a page.
func readStorage() string {
	return `function(origin, storage) {
	if (location.origin !== origin) return "";
	const from = window[storage], all = [];
	for (let i = 0; i < from.length; i++) all.push([from.key(i), from.getItem(from.key(i))]);
	return JSON.stringify(all);
}`
}

// writeStorage is the function that replaces the entries of a storage.
func writeStorage() string {
	return `function(origin, storage, items) {
	if (location.origin !== origin) return -1;
	const all = JSON.parse(items);
	window[storage].clear();
	for (const [key, value] of all) window[storage].setItem(key, value);
	return all.length;
}`
}

// stateContext returns the browser context of the caller's session, "" for the default one. The caller calls release.
func (e *engine) stateContext(ctx context.Context, by Caller, origins []string) (
	in cdp.BrowserContextID, release func(), err *Error,
) {
	e.mu.Lock()
	e.countCall(by)
	e.mu.Unlock()
	for _, origin := range origins {
		if u, failed := url.Parse(origin); failed != nil || !isWebURL(origin) || u.Scheme+"://"+u.Host != origin {
			return "", nil, errf(CodeInvalidArgs, "%q is not an origin", manifest.Clip(origin, 100))
		}
		if err := e.checkURL("state", origin); err != nil {
			return "", nil, err
		}
	}
	if !by.hasContext() {
		return "", func() {}, nil
	}
	s, release, err := e.enterScope(ctx, by)
	if err != nil {
		return "", nil, err
	}
	return s.context, release, nil
}

// cookies returns all cookies of a browser context.
func (e *engine) cookies(ctx context.Context, in cdp.BrowserContextID) ([]Cookie, *Error) {
	params := map[string]any{}
	if in != "" {
		params["browserContextId"] = in
	}
	raw, err := e.do(ctx, nil, "Storage.getCookies", mustJSON(params), callOptions{})
	if err != nil {
		return nil, err
	}
	var all struct {
		Cookies []Cookie `json:"cookies"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, errf(CodeProtocolError, "the cookies cannot be read: %v", err)
	}
	return all.Cookies, nil
}

// cookiesOf returns the cookies that would be sent to one of the origins.
func cookiesOf(all []Cookie, origins []string) []Cookie {
	found := []Cookie{}
	for _, c := range all {
		sent := func(origin string) bool { return c.sentTo(origin, origins) }
		if slices.ContainsFunc(origins, sent) {
			found = append(found, c)
		}
	}
	return found
}

// expired reports whether no browser has the cookie any more.
func (c Cookie) expired(now time.Time) bool {
	return c.Expires >= 0 && c.Expires <= float64(now.Unix())
}

// key identifies the cookie in a browser context: setting another one with the same key replaces it.
func (c Cookie) key() string {
	return string(mustJSON([]any{c.Name, c.Domain, c.Path, c.Partition}))
}

// sentTo reports whether a cookie would be sent to an origin. That of a partition is, if the partition is the site of
// one of the origins.
func (c Cookie) sentTo(origin string, origins []string) bool {
	u, err := url.Parse(origin)
	if err != nil || !hostWithin(hostOf(u), c.Domain) {
		return false
	}
	if c.Secure && u.Scheme != "https" && !isLoopback(u.Hostname()) {
		return false
	}
	return c.Partition == nil || slices.ContainsFunc(origins, func(top string) bool {
		site, err := url.Parse(c.Partition.Site)
		of, _ := url.Parse(top)
		return err == nil && site.Scheme == of.Scheme && hostWithin(hostOf(of), "."+hostOf(site))
	})
}

// hostWithin reports whether a host is that of a cookie's domain, or below one that begins with a dot.
func hostWithin(host, domain string) bool {
	above, wide := strings.CutPrefix(domain, ".")
	return host == above || wide && above != "" && strings.HasSuffix(host, domain)
}

// hostOf returns the host of a URL without its port, an IPv6 address in brackets.
func hostOf(u *url.URL) string { return strings.TrimSuffix(u.Host, ":"+u.Port()) }

// isLoopback reports whether Chrome sends secure cookies to a host also over http.
func isLoopback(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasPrefix(host, "127.") || host == "::1"
}

// param returns the cookie as Storage.setCookies takes it: with a domain it would be for all hosts below, too.
func (c Cookie) param() map[string]any {
	scheme := "http"
	if c.Secure {
		scheme = "https"
	}
	p := map[string]any{
		"name": c.Name, "value": c.Value, "path": c.Path, "secure": c.Secure, "httpOnly": c.HTTPOnly,
		"url": scheme + "://" + strings.TrimPrefix(c.Domain, ".") + c.Path,
	}
	if strings.HasPrefix(c.Domain, ".") {
		p["domain"] = c.Domain
	}
	if c.Expires >= 0 {
		p["expires"] = c.Expires
	}
	for name, value := range map[string]string{"sameSite": c.SameSite, "priority": c.Priority} {
		if value != "" {
			p[name] = value
		}
	}
	if c.Partition != nil {
		p["partitionKey"] = c.Partition
	}
	return p
}

// currentPageOf returns the current page of the caller's session and its origin, if that is one of origins.
func (e *engine) currentPageOf(by Caller, origins []string) (*target, string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.currentOf(by)
	if t == nil || t.session == "" || t.crashed || t.dialog != nil {
		return nil, ""
	}
	for _, origin := range origins {
		if sameOrigin(t.url, origin) {
			return t, origin
		}
	}
	return nil, ""
}

// visitOrigins shows an empty document of each origin in a page of its own, which no session sees, and calls visit.
// Nothing is requested from the sites: the keeper answers each request of that page itself. Chrome may connect to a
// site in advance.
func (tn *tenancy) visitOrigins(ctx context.Context, in cdp.BrowserContextID, origins []string,
	visit func(t *target, origin string) *Error,
) *Error {
	if len(origins) == 0 {
		return nil
	}
	t, err := tn.createPage(ctx, cdptarget.CreateTargetParams{
		URL: tn.hiddenURL, BrowserContextID: in, Background: new(true), // so that it belongs to no session
	}, callOptions{}, nil)
	if err != nil {
		return err
	}
	defer tn.closeHidden(t)
	if err := tn.attach(ctx, t, ""); err != nil {
		return err
	}
	tn.awaitBlank(ctx, t)
	bypass := network.SetBypassServiceWorkerParams{Bypass: true}
	if _, err := execute(ctx, tn.sender, t, network.SetBypassServiceWorker, bypass, callOptions{}); err != nil {
		return err
	}
	if _, err := execute(ctx, tn.sender, t, fetch.Enable, fetch.EnableParams{}, callOptions{}); err != nil {
		return err
	}
	for _, origin := range origins {
		if err := tn.navigate(ctx, t, OpenRequest{URL: origin + "/"}); err != nil {
			return err
		}
		if err := visit(t, origin); err != nil {
			return err
		}
	}
	return nil
}

func (tn *tenancy) closeHidden(t *target) {
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	params := cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.id)}
	execute(ctx, tn.sender, nil, cdptarget.CloseTarget, params, callOptions{})
	tn.wait(ctx, "for a page to close", func() (bool, *Error) { return t.closed, nil })
	tn.mu.Lock()
	tn.events.remove(disowned)
	tn.mu.Unlock()
}

// fulfill answers a request of a hidden page with an empty document. The engine is locked.
func (tr *tracker) fulfill(t *target, params json.RawMessage) {
	var p struct {
		ID fetch.RequestID `json:"requestId"`
	}
	if json.Unmarshal(params, &p) == nil {
		postCommand(tr.mux, t, fetch.FulfillRequest, fetch.FulfillRequestParams{RequestID: p.ID, ResponseCode: 200,
			ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html"}}}, nil)
	}
}
