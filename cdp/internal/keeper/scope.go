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

	"github.com/parley-tools/parley/host"
)

// scope is the working area of a plugin: a browser context of its own, which shares cookies and storage with no
// other caller and reaches the network only through a proxy that dials within the plugin's grants. It is created by
// the plugin's first call. It ends after the idle limit, when the plugin closes it, and with the browser.
type scope struct {
	caller        string
	digest        string
	folders       []string
	context       cdp.BrowserContextID
	proxy         *proxy
	lastUsed      time.Time
	activeCalls   int           // number of calls under way
	firstPageLock chan struct{} // holds one while the first page is created
}

// maxScopes limits the plugins that work in one browser at the same time.
const maxScopes = 64

// tenancy confines plugins: each works in a scope, and reaches no more than its call was granted.
type tenancy struct {
	*owners

	egress    host.Egress       // nil: plugins are denied
	chromePID int               // the browser's process
	scopes    map[string]*scope // of plugins, by name
	scopeLock chan struct{}     // holds one while a scope is created
}

func newTenancy(ow *owners) *tenancy {
	return &tenancy{owners: ow, scopes: map[string]*scope{}, scopeLock: make(chan struct{}, 1)}
}

// checkCaller rejects invalid callers, and plugins where their access cannot be limited.
func (tn *tenancy) checkCaller(by Caller) *Error {
	switch {
	case by.validate() != nil:
		return by.validate()
	case !by.isPlugin():
		return nil
	case tn.external:
		return errf(CodeDenied, "plugins cannot use a browser that Parley is attached to, "+
			"because it has its user's own pages; open a browser that Parley starts")
	case tn.egress == nil:
		return errf(CodeDenied, "plugins cannot use this browser: its keeper could not set up the guard "+
			"for their network access; the keeper's log has the reason")
	}
	return nil
}

// enterScope returns a plugin's scope, which it creates if necessary, and applies the call's grants to it. The
// caller calls release when its call ends.
func (tn *tenancy) enterScope(ctx context.Context, by Caller) (s *scope, release func(), err *Error) {
	select { // one at a time, or two first calls of a plugin would create two scopes
	case tn.scopeLock <- struct{}{}:
		defer func() { <-tn.scopeLock }()
	case <-ctx.Done():
		return nil, nil, contextError(ctx, "waiting for the plugin's browser context")
	}
	s, release, err = tn.existingScope(ctx, by)
	if s != nil || err != nil {
		return s, release, err
	}
	tn.mu.Lock()
	full := len(tn.scopes) >= maxScopes
	tn.mu.Unlock()
	if full {
		return nil, nil, errf(CodeLimitExceeded, "%d plugins use this browser, which is the limit: "+
			"try again after one of them has called cdp.close", maxScopes)
	}
	if s, err = tn.newScope(ctx, by); err != nil {
		return nil, nil, err
	}
	return s, tn.releaseFunc(s), nil
}

// updateScope applies the grants of a call that needs no page to the plugin's scope, if it has one.
func (tn *tenancy) updateScope(ctx context.Context, by Caller) *Error {
	select { // as in enterScope
	case tn.scopeLock <- struct{}{}:
		defer func() { <-tn.scopeLock }()
	case <-ctx.Done():
		return contextError(ctx, "waiting for the plugin's browser context")
	}
	s, release, err := tn.existingScope(ctx, by)
	if s != nil {
		release()
	}
	return err
}

// existingScope applies the call's grants to the plugin's scope and returns it, or nil if there is none. A scope of
// another version of the plugin is closed.
func (tn *tenancy) existingScope(ctx context.Context, by Caller) (s *scope, release func(), err *Error) {
	tn.mu.Lock()
	s = tn.scopes[by.Name]
	otherVersion := s != nil && s.digest != by.Digest
	switch {
	case otherVersion:
		tn.disown(s)
	case s != nil:
		s.activeCalls++ // so that it is not idle
	}
	tn.mu.Unlock()
	switch {
	case s == nil:
		return nil, nil, nil
	case otherVersion:
		return nil, nil, tn.dispose(s)
	}
	release = tn.releaseFunc(s)
	s.proxy.allow(by.HTTP)
	if !slices.Equal(s.folders, by.Folders) {
		if err := tn.denyDownloads(ctx, s); err != nil {
			release()
			return nil, nil, err
		}
		s.folders = by.Folders
	}
	return s, release, nil
}

// takeUsedRights returns the rights that a plugin's pages have used since the previous takeUsedRights.
func (tn *tenancy) takeUsedRights(by Caller) []string {
	tn.mu.Lock()
	s := tn.scopes[by.Name]
	tn.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.proxy.takeUsedRights()
}

func (tn *tenancy) releaseFunc(s *scope) func() {
	return func() {
		tn.mu.Lock()
		s.activeCalls--
		s.lastUsed = time.Now()
		tn.mu.Unlock()
	}
}

// disown detaches a scope's targets and events from the plugin's name. The engine is locked.
func (tn *tenancy) disown(s *scope) {
	tn.contextOwners[string(s.context)] = pluginPrefix // not the name of any caller
	for _, t := range tn.order {
		if t.owner == s.caller {
			t.owner = pluginPrefix
		}
	}
	tn.events.reassign(pluginPrefix, func(r *record) bool { return r.owner == s.caller })
	delete(tn.callerCurrent, s.caller)
}

func (tn *tenancy) newScope(ctx context.Context, by Caller) (*scope, *Error) {
	p, failed := newProxy(tn.egress, tn.chromePID)
	if failed != nil {
		return nil, errf(CodeInternal, "the plugin's proxy cannot listen: %v", failed)
	}
	made, err := execute(ctx, tn.tracker, nil, cdptarget.CreateBrowserContext, cdptarget.CreateBrowserContextParams{
		// Without this setting Chrome bypasses the proxy for loopback addresses.
		ProxyServer: "http://" + p.address(), ProxyBypassList: "<-loopback>",
	}, callOptions{})
	if err != nil {
		p.close()
		return nil, err
	}
	p.allow(by.HTTP)
	s := &scope{
		caller: by.Name, digest: by.Digest, folders: by.Folders, context: made.BrowserContextID, proxy: p,
		activeCalls: 1, firstPageLock: make(chan struct{}, 1),
	}
	tn.mu.Lock()
	tn.contextOwners[string(s.context)] = by.Name
	tn.mu.Unlock()
	if err := tn.denyDownloads(ctx, s); err != nil {
		tn.dispose(s)
		return nil, err
	}
	tn.mu.Lock()
	tn.scopes[by.Name] = s
	tn.mu.Unlock()
	return s, nil
}

// denyDownloads denies downloads in a scope until the plugin allows them: a page can start one by itself, and
// Chrome would save it in the user's download folder.
func (tn *tenancy) denyDownloads(ctx context.Context, s *scope) *Error {
	_, err := execute(ctx, tn.tracker, nil, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
		Behavior: cdpbrowser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: s.context,
	}, callOptions{})
	return err
}

// dispose closes a scope with all its pages. The id of its context stays known, so that late events of the browser
// about it stay hidden from other callers.
func (tn *tenancy) dispose(s *scope) *Error {
	tn.mu.Lock()
	if tn.scopes[s.caller] == s {
		delete(tn.scopes, s.caller)
	}
	tn.mu.Unlock()
	s.proxy.close()
	ctx, cancel := context.WithTimeout(context.Background(), disposeTimeout)
	defer cancel()
	params := cdptarget.DisposeBrowserContextParams{BrowserContextID: s.context}
	_, err := execute(ctx, tn.tracker, nil, cdptarget.DisposeBrowserContext, params, callOptions{})
	return err
}

const disposeTimeout = 5 * time.Second

// disposeIdle closes the scopes that had no call for at least limit.
func (tn *tenancy) disposeIdle(limit time.Duration) {
	tn.mu.Lock()
	var idle []*scope
	for _, s := range tn.scopes {
		if s.activeCalls == 0 && time.Since(s.lastUsed) >= limit {
			delete(tn.scopes, s.caller)
			idle = append(idle, s)
		}
	}
	tn.mu.Unlock()
	for _, s := range idle {
		go tn.dispose(s)
	}
}

// closeProxies closes the proxies of all scopes once the browser has ended.
func (tn *tenancy) closeProxies() {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	for _, s := range tn.scopes {
		s.proxy.close()
	}
}

// closeScope closes everything that a plugin has in this browser and returns the ids of its pages.
func (tn *tenancy) closeScope(by Caller) ([]string, *Error) {
	pages := []string{}
	tn.mu.Lock()
	for _, t := range tn.visibleTo(by) {
		if t.kind == "page" {
			pages = append(pages, t.id)
		}
	}
	s := tn.scopes[by.Name]
	tn.mu.Unlock()
	if s == nil {
		return pages, nil
	}
	return pages, tn.dispose(s)
}

// firstPage makes sure that a plugin has a page.
func (tn *tenancy) firstPage(ctx context.Context, by Caller, s *scope) *Error {
	select { // one at a time, as in enterScope
	case s.firstPageLock <- struct{}{}:
		defer func() { <-s.firstPageLock }()
	case <-ctx.Done():
		return contextError(ctx, "waiting for the plugin's first page")
	}
	tn.mu.Lock()
	has := tn.currentOf(by) != nil
	tn.mu.Unlock()
	if has {
		return nil
	}
	t, err := tn.newPage(ctx, by, s.context)
	if err != nil {
		return err
	}
	if err := tn.attach(ctx, t, ""); err != nil {
		return err
	}
	tn.awaitBlank(ctx, t)
	tn.mu.Lock()
	tn.setCurrent(by, t)
	tn.mu.Unlock()
	return nil
}

// dialError returns the reason why a plugin's navigation failed, if its proxy refused to dial.
func (s *scope) dialError(since int, to string) *Error {
	refused := s.proxy.refusalSince(since, dialAddress(to))
	if refused == nil {
		return nil
	}
	e := errf(CodeDenied, "%s", refused.Message)
	e.Denied = slices.Clone(refused.Denied)
	return e
}

// dialAddress returns the address that is dialled for a URL, as "host:port", or "" if the URL is invalid.
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

// navigationFailed reports whether the result of Page.navigate, a success, contains a failure.
func navigationFailed(result json.RawMessage) bool {
	var nav struct {
		ErrorText string `json:"errorText"`
	}
	return json.Unmarshal(result, &nav) == nil && nav.ErrorText != ""
}
