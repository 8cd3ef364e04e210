package keeper

import (
	"context"
	"encoding/json"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/manifest"
)

// scope is where a plugin works: a browser context of its own, whose cookies and storage are shared with nobody, and whose only way to the
// network is a proxy that dials within the plugin's grants. It is made at the plugin's first call and ends when it was idle for long, when the
// plugin closes it, and with the browser.
type scope struct {
	caller        string
	digest        string
	folders       []string
	context       cdp.BrowserContextID
	proxy         *proxy
	lastUsed      time.Time
	activeCalls   int           // calls under way
	firstPageLock chan struct{} // held while its first page is made
}

// maxScopes bounds the plugins that work in one browser.
const maxScopes = 64

// checkCaller refuses who is no caller, and plugins where they cannot be held to what is theirs.
func (e *engine) checkCaller(by Caller) *Error {
	switch {
	case by.validate() != nil:
		return by.validate()
	case !by.isPlugin():
		return nil
	case e.external:
		return errf(CodeDenied, "plugins do not work in a browser that Parley is attached to: it is somebody's own; open one that Parley starts")
	case e.egress == nil:
		return errf(CodeDenied, "this keeper has no guard for what pages dial, so plugins do not work in its browser; its log says why")
	}
	return nil
}

// enterScope answers the scope of a plugin, which is made when it is missing, and holds its pages to what this call brings. leave ends the call.
func (e *engine) enterScope(ctx context.Context, by Caller) (s *scope, release func(), err *Error) {
	select { // one at a time: two first calls of one plugin must not make two
	case e.scopeLock <- struct{}{}:
		defer func() { <-e.scopeLock }()
	case <-ctx.Done():
		return nil, nil, contextError(ctx, "waiting for the plugin's browser context")
	}
	s, release, err = e.existingScope(ctx, by)
	if s != nil || err != nil {
		return s, release, err
	}
	e.mu.Lock()
	full := len(e.scopes) >= maxScopes
	e.mu.Unlock()
	if full {
		return nil, nil, errf(CodeLimitExceeded, "%d plugins work in this browser already", maxScopes)
	}
	if s, err = e.newScope(ctx, by); err != nil {
		return nil, nil, err
	}
	return s, e.releaseFunc(s), nil
}

// updateScope holds what a plugin has in the browser, if anything, to what a call brings that needs no page.
func (e *engine) updateScope(ctx context.Context, by Caller) *Error {
	select { // as in enter
	case e.scopeLock <- struct{}{}:
		defer func() { <-e.scopeLock }()
	case <-ctx.Done():
		return contextError(ctx, "waiting for the plugin's browser context")
	}
	s, release, err := e.existingScope(ctx, by)
	if s != nil {
		release()
	}
	return err
}

// existingScope answers the scope of a plugin as this call holds it, nil if it has none: that of another version is ended.
func (e *engine) existingScope(ctx context.Context, by Caller) (s *scope, release func(), err *Error) {
	e.mu.Lock()
	s = e.scopes[by.Name]
	otherVersion := s != nil && s.digest != by.Digest
	switch {
	case otherVersion:
		e.disown(s)
	case s != nil:
		s.activeCalls++ // from now on it is not idle
	}
	e.mu.Unlock()
	switch {
	case s == nil:
		return nil, nil, nil
	case otherVersion:
		return nil, nil, e.dispose(s)
	}
	release = e.releaseFunc(s)
	s.proxy.allow(by.HTTP)
	if !slices.Equal(s.folders, by.Folders) {
		if err := e.denyDownloads(ctx, s); err != nil {
			release()
			return nil, nil, err
		}
		s.folders = by.Folders
	}
	return s, release, nil
}

// takeUsedRights answers what a plugin's pages have dialled since that was told before.
func (e *engine) takeUsedRights(by Caller) []string {
	e.mu.Lock()
	s := e.scopes[by.Name]
	e.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.proxy.takeUsedRights()
}

func (e *engine) releaseFunc(s *scope) func() {
	return func() {
		e.mu.Lock()
		s.activeCalls--
		s.lastUsed = time.Now()
		e.mu.Unlock()
	}
}

// disown takes from a plugin's name what the browser tells of a scope. The engine is locked.
func (e *engine) disown(s *scope) {
	e.contextOwners[string(s.context)] = pluginPrefix // nobody's name
	for _, t := range e.order {
		if t.owner == s.caller {
			t.owner = pluginPrefix
		}
	}
	e.events.reassign(pluginPrefix, func(r *record) bool { return r.owner == s.caller })
	delete(e.callerCurrent, s.caller)
}

func (e *engine) newScope(ctx context.Context, by Caller) (*scope, *Error) {
	p, failed := newProxy(e.egress, e.chromePID)
	if failed != nil {
		return nil, errf(CodeInternal, "the plugin's proxy cannot listen: %v", failed)
	}
	made, err := execute(ctx, e, nil, cdptarget.CreateBrowserContext, cdptarget.CreateBrowserContextParams{
		// Chrome goes past a proxy to loopback, unless this says otherwise.
		ProxyServer: "http://" + p.address(), ProxyBypassList: "<-loopback>",
	}, callOptions{})
	if err != nil {
		p.close()
		return nil, err
	}
	p.allow(by.HTTP)
	s := &scope{caller: by.Name, digest: by.Digest, folders: by.Folders, context: made.BrowserContextID, proxy: p, activeCalls: 1, firstPageLock: make(chan struct{}, 1)}
	e.mu.Lock()
	e.contextOwners[string(s.context)] = by.Name
	e.mu.Unlock()
	if err := e.denyDownloads(ctx, s); err != nil {
		e.dispose(s)
		return nil, err
	}
	e.mu.Lock()
	e.scopes[by.Name] = s
	e.mu.Unlock()
	return s, nil
}

// denyDownloads is how a scope begins: a page can start a download by itself, and Chrome would put it among the person's.
func (e *engine) denyDownloads(ctx context.Context, s *scope) *Error {
	_, err := execute(ctx, e, nil, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
		Behavior: cdpbrowser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: s.context,
	}, callOptions{})
	return err
}

// dispose ends a scope with all its pages. That its context's id stays known keeps what the browser still tells of it from others.
func (e *engine) dispose(s *scope) *Error {
	e.mu.Lock()
	if e.scopes[s.caller] == s {
		delete(e.scopes, s.caller)
	}
	e.mu.Unlock()
	s.proxy.close()
	ctx, cancel := context.WithTimeout(context.Background(), disposeTimeout)
	defer cancel()
	_, err := execute(ctx, e, nil, cdptarget.DisposeBrowserContext, cdptarget.DisposeBrowserContextParams{BrowserContextID: s.context}, callOptions{})
	return err
}

const disposeTimeout = 5 * time.Second

// disposeIdle ends the scopes that no call has used for so long.
func (e *engine) disposeIdle(limit time.Duration) {
	e.mu.Lock()
	var idle []*scope
	for _, s := range e.scopes {
		if s.activeCalls == 0 && time.Since(s.lastUsed) >= limit {
			delete(e.scopes, s.caller)
			idle = append(idle, s)
		}
	}
	e.mu.Unlock()
	for _, s := range idle {
		go e.dispose(s)
	}
}

// closeProxies ends the ways out of all scopes, when there is no browser any more.
func (e *engine) closeProxies() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.scopes {
		s.proxy.close()
	}
}

// closeScope ends what a plugin has in this browser, and answers the pages that it closed.
func (e *engine) closeScope(by Caller) ([]string, *Error) {
	pages := []string{}
	e.mu.Lock()
	for _, t := range e.visibleTo(by) {
		if t.kind == "page" {
			pages = append(pages, t.id)
		}
	}
	s := e.scopes[by.Name]
	e.mu.Unlock()
	if s == nil {
		return pages, nil
	}
	return pages, e.dispose(s)
}

// firstPage sees to it that a plugin has a page to work in.
func (e *engine) firstPage(ctx context.Context, by Caller, s *scope) *Error {
	select { // one at a time, as in enter
	case s.firstPageLock <- struct{}{}:
		defer func() { <-s.firstPageLock }()
	case <-ctx.Done():
		return contextError(ctx, "waiting for the plugin's first page")
	}
	e.mu.Lock()
	has := e.currentOf(by) != nil
	e.mu.Unlock()
	if has {
		return nil
	}
	t, err := e.newPage(ctx, by, s.context)
	if err != nil {
		return err
	}
	if err := e.attach(ctx, t, ""); err != nil {
		return err
	}
	e.awaitBlank(ctx, t)
	e.mu.Lock()
	e.setCurrent(by, t)
	e.mu.Unlock()
	return nil
}

// enforceURL closes a page of anybody but the person that shows what only the person may open. No parameter leads there, and Chrome itself
// does not let a page go there; this holds should a way be found. The engine is locked.
func (e *engine) enforceURL(t *target, url string) {
	if t.owner == "" || t.owner == commandLine.Name || t.kind != "page" || t.evictErr != nil || mayShow(url) {
		return
	}
	e.evict(t, errf(CodeDenied, "the page went to %s and was closed: only http and https pages are open to %s", manifest.Clip(url, 100), manifest.Clip(t.owner, 80)))
}

// dialError explains a navigation of a plugin that failed because its proxy did not dial.
func (s *scope) dialError(since int, to string) *Error {
	refused := s.proxy.refusalSince(since, dialAddress(to))
	if refused == nil {
		return nil
	}
	e := errf(CodeDenied, "%s", refused.Message)
	e.Denied = slices.Clone(refused.Denied)
	return e
}

// dialAddress is what is dialled for a URL, as "host:port"; "" for what is none.
func dialAddress(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// navigationFailed reads the failure in what Page.navigate answers as a success.
func navigationFailed(result json.RawMessage) bool {
	var nav struct {
		ErrorText string `json:"errorText"`
	}
	return json.Unmarshal(result, &nav) == nil && nav.ErrorText != ""
}
