package verb

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/manifest"
)

// SaveState returns what the session's context stores for origins, which are in canonical spelling.
func (e *Verbs) SaveState(ctx context.Context, by api.Caller, s *tenant.Scope, q api.StateRequest) (
	api.State, *api.Error,
) {
	in, origins := s.BrowserContext(), q.Origins
	if err := checkOrigins(origins); err != nil {
		return api.State{}, err
	}
	saved := api.State{Local: map[string]json.RawMessage{}, Session: map[string]json.RawMessage{}}
	read := func(t *target.Target, origin, storage string, into map[string]json.RawMessage) *api.Error {
		text, err := callInFrame[string](ctx, e.sender, t, t.ID, ReadStorage(), origin, storage)
		if err == nil && text != "" && text != "[]" {
			into[origin] = json.RawMessage(text)
		}
		return err
	}
	err := e.visitOrigins(ctx, in, origins, func(t *target.Target, origin string) *api.Error {
		return read(t, origin, "localStorage", saved.Local)
	})
	if err != nil {
		return api.State{}, err
	}
	all, err := e.cookies(ctx, in)
	if err != nil {
		return api.State{}, err
	}
	saved.Cookies = api.CookiesOf(all, origins)
	if t, origin := e.currentPageOf(by, origins); t != nil {
		if err := read(t, origin, "sessionStorage", saved.Session); err != nil {
			return api.State{}, err
		}
	}
	return saved, saved.CheckSize()
}

// LoadState replaces what the session's context stores for origins by what a state has for them, because a mixture of
// two users' logins would be neither. It loads sessionStorage into the current page. If the state has no
// sessionStorage, the page's stays: the state may have been saved without that page.
func (e *Verbs) LoadState(ctx context.Context, by api.Caller, s *tenant.Scope, q api.StateRequest) (
	done api.StateLoaded, err *api.Error,
) {
	in, origins, state := s.BrowserContext(), q.Origins, cmp.Or(q.State, &api.State{})
	if err := checkOrigins(origins); err != nil {
		return done, err
	}
	present, err := e.cookies(ctx, in)
	if err != nil {
		return done, err
	}
	now := time.Now()
	var cookies []map[string]any
	set := map[string]bool{}
	for _, c := range api.CookiesOf(state.Cookies, origins) {
		if !c.Expired(now) { // setting an expired cookie deletes one
			cookies = append(cookies, c.Param())
			set[c.Key()] = true
		}
	}
	done.Cookies = len(cookies)
	for _, c := range api.CookiesOf(present, origins) {
		if !set[c.Key()] {
			c.Value, c.Expires = "", 1
			cookies = append(cookies, c.Param())
		}
	}
	if len(cookies) > 0 {
		if _, err := inContext(ctx, e.sender, in, "Storage.setCookies", map[string]any{"cookies": cookies}); err != nil {
			return done, err
		}
	}
	write := func(t *target.Target, origin, storage string, items json.RawMessage) (bool, *api.Error) {
		if items == nil {
			items = json.RawMessage("[]")
		}
		n, err := callInFrame[int](ctx, e.sender, t, t.ID, WriteStorage(), origin, storage, string(items))
		done.Items += max(0, n)
		return n >= 0, err
	}
	err = e.visitOrigins(ctx, in, origins, func(t *target.Target, origin string) *api.Error {
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

// ReadStorage returns the JavaScript function that returns the entries of a storage. Like WriteStorage, it compares
// the origin in the same turn in which it reads or writes, because the page may have moved on. A page can replace
// nothing that these functions use before that. Chrome stores a cookie that a script has set some time later; reading
// document.cookie waits for that.
func ReadStorage() string {
	return `function(origin, storage) {
	if (location.origin !== origin) return "";
	const from = window[storage], all = [], {cookie} = document;
	for (let i = 0; i < from.length; i++) all.push([from.key(i), from.getItem(from.key(i))]);
	return JSON.stringify(all);
}`
}

// WriteStorage returns the JavaScript function that replaces the entries of a storage.
func WriteStorage() string {
	return `function(origin, storage, items) {
	if (location.origin !== origin) return -1;
	const all = JSON.parse(items);
	window[storage].clear();
	for (const [key, value] of all) window[storage].setItem(key, value);
	return all.length;
}`
}

// checkOrigins returns an error for a text that is not an origin.
func checkOrigins(origins []string) *api.Error {
	for _, origin := range origins {
		if u, failed := url.Parse(origin); failed != nil || !api.IsWebURL(origin) || u.Scheme+"://"+u.Host != origin {
			return api.Errorf(api.CodeInvalidArgs, "%q is not an origin", manifest.Clip(origin, 100))
		}
	}
	return nil
}

// cookies returns all cookies of a browser context.
func (e *Verbs) cookies(ctx context.Context, in cdp.BrowserContextID) ([]api.Cookie, *api.Error) {
	raw, err := inContext(ctx, e.sender, in, "Storage.getCookies", map[string]any{})
	if err != nil {
		return nil, err
	}
	var all struct {
		Cookies []api.Cookie `json:"cookies"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, api.Errorf(api.CodeProtocolError, "the cookies cannot be read: %v", err)
	}
	return all.Cookies, nil
}

// inContext sends a command about a browser context.
func inContext(ctx context.Context, s *target.Sender, in cdp.BrowserContextID, method string, params map[string]any) (
	json.RawMessage, *api.Error,
) {
	if in != "" {
		params["browserContextId"] = in
	}
	return s.Do(ctx, nil, method, scan.Marshal(params))
}

// currentPageOf returns the current page of the caller's session and its origin, if that is one of origins.
func (e *Verbs) currentPageOf(by api.Caller, origins []string) (*target.Target, string) {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	t := e.Owners.CurrentOf(by)
	if t == nil || t.Session == "" || t.Crashed || t.Dialog != nil {
		return nil, ""
	}
	for _, origin := range origins {
		if api.SameOrigin(t.URL, origin) {
			return t, origin
		}
	}
	return nil, ""
}

// visitOrigins shows an empty document of each origin in a page of its own, which no session sees, and calls visit.
// It requests nothing from the sites: the keeper answers each request of that page itself. Chrome may connect to a
// site in advance.
func (e *Verbs) visitOrigins(ctx context.Context, in cdp.BrowserContextID, origins []string,
	visit func(t *target.Target, origin string) *api.Error,
) *api.Error {
	if len(origins) == 0 {
		return nil
	}
	t, err := e.Tracker.CreatePage(ctx, cdptarget.CreateTargetParams{
		URL: e.Owners.HiddenURL, BrowserContextID: in, Background: new(true), // the URL shows that it belongs to no session
	}, target.CallOptions{}, nil)
	if err != nil {
		return err
	}
	defer e.closeHidden(t)
	if err := e.Tracker.Attach(ctx, t, ""); err != nil {
		return err
	}
	e.Tracker.AwaitBlank(ctx, t)
	bypass := network.SetBypassServiceWorkerParams{Bypass: true}
	if _, err := target.Execute(ctx, e.sender, t, network.SetBypassServiceWorker, bypass); err != nil {
		return err
	}
	if _, err := target.Execute(ctx, e.sender, t, fetch.Enable, fetch.EnableParams{}); err != nil {
		return err
	}
	for _, origin := range origins {
		if err := e.navigate(ctx, api.Caller{}, t, api.OpenRequest{URL: origin + "/"}); err != nil {
			return err
		}
		if err := visit(t, origin); err != nil {
			return err
		}
	}
	return nil
}

// closeHidden closes one of the keeper's own pages and forgets its events.
func (e *Verbs) closeHidden(t *target.Target) {
	e.discard(t)
	e.Mux.Lock()
	e.Events.Journals.Remove(api.Disowned)
	e.Mux.Unlock()
}
