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

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/host"
)

// scope is the working area of a session: a browser context of its own, which shares cookies and storage with no other
// session. A plugin's own reaches the network only through a proxy that dials within the plugin's grants. A scope is
// created by the first call of its session. It ends when the session closes it, with the session within which a plugin
// has it, with its connection if it is temporary, and with the browser; that of a plugin or an anonymous client also
// ends when it was not used for a while.
type scope struct {
	session    string
	within     []string // the sessions with which it ends
	connection string   // with which it ends; "" if it stays
	anonymous  bool
	context    cdp.BrowserContextID

	// Of a plugin's own:
	digest  string
	folders []string
	proxy   *proxy

	lastUsed      time.Time
	activeCalls   int           // number of calls under way
	firstPageLock chan struct{} // holds one while the first page is created
}

// maxScopes limits the sessions with a context of their own in one browser.
const maxScopes = 64

// anonymousTTL is how long the context of a client without a session stays after its last call.
const anonymousTTL = 10 * time.Minute

// tenancy gives each session its scope, and confines plugins to what their calls were granted.
type tenancy struct {
	mux     *mux.Mux
	sender  *sender
	tracker *tracker
	events  *events
	owners  *owners

	egress      host.Egress       // nil: plugins are denied contexts of their own
	chromePID   int               // the browser's process
	scopes      map[string]*scope // by session
	calls       int64             // begun so far
	defaultUsed time.Time         // when the last call in the default context began
	scopeLock   chan struct{}     // holds one while a scope is created
}

func newTenancy(ow *owners) *tenancy {
	return &tenancy{mux: ow.mux, sender: ow.sender, tracker: ow.tracker, events: ow.events, owners: ow, scopes: map[string]*scope{},
		scopeLock: make(chan struct{}, 1)}
}

// checkCaller rejects invalid callers, and plugins where their access cannot be limited.
func (tn *tenancy) checkCaller(by api.Caller) *api.Error {
	switch {
	case by.Validate() != nil:
		return by.Validate()
	case !api.OfPlugin(by.SessionKey()):
		return nil
	case tn.tracker.external:
		return api.Errorf(api.CodeDenied, "plugins cannot use a browser that Parley is attached to, "+
			"because it has its user's own pages; open a browser that Parley starts")
	case tn.egress == nil:
		return api.Errorf(api.CodeDenied, "plugins cannot use this browser: its keeper could not set up the guard "+
			"for their network access; the keeper's log has the reason")
	}
	return nil
}

// lockScopes waits until no other call creates or changes a scope: two first calls of a session would create two.
func (tn *tenancy) lockScopes(ctx context.Context) *api.Error {
	select {
	case tn.scopeLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return api.ContextError(ctx, "waiting for the session's browser context")
	}
}

func (tn *tenancy) unlockScopes() { <-tn.scopeLock }

// enter begins a call: it counts it, and returns the scope of the caller's session, nil for the default context. The
// caller calls release when its call ends.
func (tn *tenancy) enter(ctx context.Context, by api.Caller) (s *scope, release func(), err *api.Error) {
	tn.mux.Lock()
	tn.calls++
	if !by.HasContext() {
		tn.defaultUsed = time.Now()
	}
	tn.mux.Unlock()
	if !by.HasContext() {
		return nil, func() {}, nil
	}
	return tn.enterScope(ctx, by)
}

// enterScope returns the scope of a session, which it creates if necessary, and applies the call's grants to it. The
// caller calls release when its call ends.
func (tn *tenancy) enterScope(ctx context.Context, by api.Caller) (s *scope, release func(), err *api.Error) {
	if err := tn.lockScopes(ctx); err != nil {
		return nil, nil, err
	}
	defer tn.unlockScopes()
	s, release, err = tn.existingScope(ctx, by)
	if s != nil || err != nil {
		return s, release, err
	}
	tn.mux.Lock()
	full := len(tn.scopes) >= maxScopes
	tn.mux.Unlock()
	if full {
		return nil, nil, api.Errorf(api.CodeLimitExceeded, "%d sessions use this browser, which is the limit: "+
			"try again after one of them has called cdp.close", maxScopes)
	}
	if s, err = tn.newScope(ctx, by); err != nil {
		return nil, nil, err
	}
	return s, tn.releaseFunc(s), nil
}

// updateScope applies the grants of a call that needs no page to the session's scope, if it has one.
func (tn *tenancy) updateScope(ctx context.Context, by api.Caller) *api.Error {
	if err := tn.lockScopes(ctx); err != nil {
		return err
	}
	defer tn.unlockScopes()
	s, release, err := tn.existingScope(ctx, by)
	if s != nil {
		release()
	}
	return err
}

// existingScope applies the call's grants to the session's scope and returns it, or nil if there is none. A scope of
// another version of the plugin is closed.
func (tn *tenancy) existingScope(ctx context.Context, by api.Caller) (s *scope, release func(), err *api.Error) {
	tn.mux.Lock()
	s = tn.scopes[by.SessionKey()]
	otherVersion := s != nil && s.digest != by.Digest
	if s != nil && !otherVersion {
		s.activeCalls++ // so that it is not idle
	}
	tn.mux.Unlock()
	switch {
	case s == nil:
		return nil, nil, nil
	case otherVersion:
		return nil, nil, tn.dispose(s)
	}
	release = tn.releaseFunc(s)
	if s.proxy == nil {
		return s, release, nil
	}
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
func (tn *tenancy) takeUsedRights(by api.Caller) []string {
	tn.mux.Lock()
	s := tn.scopes[by.SessionKey()]
	tn.mux.Unlock()
	if s == nil || s.proxy == nil {
		return nil
	}
	return s.proxy.takeUsedRights()
}

func (tn *tenancy) releaseFunc(s *scope) func() {
	return func() {
		tn.mux.Lock()
		s.activeCalls--
		s.lastUsed = time.Now()
		tn.mux.Unlock()
	}
}

// disown takes a scope away from its session, with its targets and the contexts that the session has created, and
// forgets the session's events. It does nothing if the session no longer has this scope. The engine is locked.
func (tn *tenancy) disown(s *scope) {
	if tn.scopes[s.session] != s {
		return
	}
	delete(tn.scopes, s.session)
	tn.disposeCreated(func(session string) bool { return session == s.session })
	tn.owners.contextOwners[string(s.context)] = api.Disowned
	for _, t := range tn.tracker.order {
		if t.context == string(s.context) {
			t.owner = api.Disowned
		}
	}
	for id, owner := range tn.events.downloads.owners {
		if owner == s.session {
			tn.events.downloads.owners[id] = api.Disowned
		}
	}
	tn.events.journals.remove(s.session)
	delete(tn.owners.current, s.session)
	tn.owners.setups.end(func(session string) bool { return session == s.session })
}

func (tn *tenancy) newScope(ctx context.Context, by api.Caller) (*scope, *api.Error) {
	s := &scope{
		session: by.SessionKey(), within: by.Within, anonymous: by.Anonymous, digest: by.Digest, folders: by.Folders,
		activeCalls: 1, firstPageLock: make(chan struct{}, 1),
	}
	if by.Temporary {
		s.connection = by.Connection
	}
	var params cdptarget.CreateBrowserContextParams
	if api.OfPlugin(s.session) {
		p, failed := newProxy(tn.egress, tn.chromePID)
		if failed != nil {
			return nil, api.Errorf(api.CodeInternal, "the plugin's proxy cannot listen: %v", failed)
		}
		p.allow(by.HTTP)
		s.proxy = p
		// Without the second setting Chrome bypasses the proxy for loopback addresses.
		params.ProxyServer, params.ProxyBypassList = "http://"+p.address(), "<-loopback>"
	}
	made, err := execute(ctx, tn.sender, nil, cdptarget.CreateBrowserContext, params, callOptions{})
	if err != nil {
		s.close()
		return nil, err
	}
	s.context = made.BrowserContextID
	tn.mux.Lock()
	tn.owners.contextOwners[string(s.context)] = s.session
	tn.mux.Unlock()
	if s.proxy == nil && tn.events.downloads.dir != "" {
		err = tn.events.keepDownloads(ctx, s.context)
	} else {
		err = tn.denyDownloads(ctx, s)
	}
	if err != nil {
		tn.dispose(s)
		return nil, err
	}
	tn.mux.Lock()
	tn.scopes[s.session] = s
	tn.mux.Unlock()
	return s, nil
}

func (s *scope) close() {
	if s.proxy != nil {
		s.proxy.close()
	}
}

// denyDownloads denies downloads in a scope until the session allows them: a page can start one by itself, and Chrome
// would save it in the user's download folder.
func (tn *tenancy) denyDownloads(ctx context.Context, s *scope) *api.Error {
	_, err := execute(ctx, tn.sender, nil, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
		Behavior: cdpbrowser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: s.context,
	}, callOptions{})
	return err
}

// dispose closes a scope with all its pages. The id of its context stays known, so that late events of the browser
// about it stay hidden from other callers.
func (tn *tenancy) dispose(s *scope) *api.Error {
	tn.mux.Lock()
	tn.disown(s)
	tn.mux.Unlock()
	s.close()
	ctx, cancel := context.WithTimeout(context.Background(), disposeTimeout)
	defer cancel()
	params := cdptarget.DisposeBrowserContextParams{BrowserContextID: s.context}
	_, err := execute(ctx, tn.sender, nil, cdptarget.DisposeBrowserContext, params, callOptions{})
	tn.events.removeDownloads(s.context)
	return err
}

const disposeTimeout = 5 * time.Second

// disposeIdle closes the scopes of plugins that had no call for at least limit, and those of anonymous clients after
// anonymousTTL.
func (tn *tenancy) disposeIdle(limit time.Duration) {
	tn.mux.Lock()
	var idle []*scope
	for _, s := range tn.scopes {
		unused := time.Since(s.lastUsed)
		if s.activeCalls == 0 &&
			(s.proxy != nil && limit > 0 && unused >= limit || s.anonymous && unused >= anonymousTTL) {
			tn.disown(s)
			idle = append(idle, s)
		}
	}
	tn.mux.Unlock()
	for _, s := range idle {
		go tn.dispose(s)
	}
}

// closeProxies closes the proxies of all scopes once the browser has ended.
func (tn *tenancy) closeProxies() {
	tn.mux.Lock()
	defer tn.mux.Unlock()
	for _, s := range tn.scopes {
		s.close()
	}
}

// firstPage makes sure that a plugin's own session has a page.
func (tn *tenancy) firstPage(ctx context.Context, by api.Caller, s *scope) *api.Error {
	select { // one at a time, as in enterScope
	case s.firstPageLock <- struct{}{}:
		defer func() { <-s.firstPageLock }()
	case <-ctx.Done():
		return api.ContextError(ctx, "waiting for the plugin's first page")
	}
	tn.mux.Lock()
	has := tn.owners.currentOf(by) != nil
	tn.mux.Unlock()
	if has {
		return nil
	}
	t, err := tn.owners.newPage(ctx, by, s.context)
	if err != nil {
		return err
	}
	if err := tn.tracker.attach(ctx, t, ""); err != nil {
		return err
	}
	tn.tracker.awaitBlank(ctx, t)
	tn.mux.Lock()
	tn.owners.setCurrent(by, t)
	tn.mux.Unlock()
	return nil
}

// browserContext returns the browser context of a scope, "" for the default one.
func (s *scope) browserContext() cdp.BrowserContextID {
	if s == nil {
		return ""
	}
	return s.context
}

// refusalCount returns how many connections of the scope's pages were refused.
func (s *scope) refusalCount() int {
	if s == nil || s.proxy == nil {
		return 0
	}
	return s.proxy.refusalCount()
}

// dialError returns the reason why a plugin's navigation failed, if its proxy refused to dial.
func (s *scope) dialError(since int, to string) *api.Error {
	if s == nil || s.proxy == nil {
		return nil
	}
	refused := s.proxy.refusalSince(since, dialAddress(to))
	if refused == nil {
		return nil
	}
	e := api.Errorf(api.CodeDenied, "%s", refused.Message)
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
