package tenant

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	cdptarget "github.com/chromedp/cdproto/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/host/outbound"
)

// Scope is the working area of a session: a browser context of its own, which shares cookies and storage with no
// other session. The scope of a plugin's own session reaches the network only through a proxy that dials within the
// plugin's grants. A scope is created by the first call of its session. It ends when the session closes it, with the
// session on whose behalf a plugin has it, with its connection if it is temporary, and with the browser. The scope of
// a plugin or an anonymous client also ends when it was not used for a while.
type Scope struct {
	session    string
	within     []string // the sessions with which it ends
	connection string   // the connection with which it ends; "" if it stays
	anonymous  bool
	Context    cdp.BrowserContextID

	// For the session of a plugin:
	digest  string
	folders []string
	Proxy   *proxy

	lastUsed      time.Time
	activeCalls   int           // number of calls under way
	firstPageLock chan struct{} // holds one element while the first page is created
}

// maxScopes limits the sessions with a context of their own in one browser.
const maxScopes = 64

// anonymousTTL is how long the context of a client without a session stays after its last call.
const anonymousTTL = 10 * time.Minute

// Tenancy gives each session its scope, and confines plugins to what their calls were granted.
type Tenancy struct {
	mux     *mux.Mux
	sender  *target.Sender
	tracker *target.Tracker
	events  *event.Events
	owners  *Owners

	Egress      outbound.Egress   // nil: plugins are denied contexts of their own
	ChromePID   int               // the browser's process
	scopes      map[string]*Scope // by session
	Calls       int64             // number of calls begun so far
	defaultUsed time.Time         // when the last call in the default context began
	scopeLock   chan struct{}     // holds one element while a scope is created, so that a session gets only one
}

// CheckCaller rejects invalid callers, and plugins where their access cannot be limited.
func (tn *Tenancy) CheckCaller(by api.Caller) *api.Error {
	switch {
	case by.Validate() != nil:
		return by.Validate()
	case !api.OfPlugin(by.SessionKey()):
		return nil
	case tn.tracker.External:
		return api.Errorf(api.CodeDenied, "plugins cannot use a browser that Parley is attached to, "+
			"because it has its user's own pages; open a browser that Parley starts")
	case tn.Egress == nil:
		return api.Errorf(api.CodeDenied, "plugins cannot use this browser: its keeper could not set up the guard "+
			"for their network access; the keeper's log has the reason")
	}
	return nil
}

// lock waits until it gets a lock, or ctx ends. what names the wait in the error.
func lock(ctx context.Context, held chan struct{}, what string) (unlock func(), err *api.Error) {
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, api.ContextError(ctx, "waiting for "+what)
	}
}

// Enter begins a call: it counts the call, creates the scope of the caller's session if necessary, and applies the
// call's grants to it. s is nil for the default context. The caller must call release when its call ends.
func (tn *Tenancy) Enter(ctx context.Context, by api.Caller) (s *Scope, release func(), err *api.Error) {
	tn.mux.Lock()
	tn.Calls++
	if !by.HasContext() {
		tn.defaultUsed = time.Now()
	}
	tn.mux.Unlock()
	if err := tn.askOperator(ctx, by.SessionKey()); err != nil {
		return nil, nil, err
	}
	if !by.HasContext() {
		return nil, func() {}, nil
	}
	unlock, err := lock(ctx, tn.scopeLock, "the session's browser context")
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	s, release, err = tn.existingScope(ctx, by)
	if s != nil || err != nil {
		return s, release, err
	}
	if mux.Locked(tn.mux, func() bool { return len(tn.scopes) >= maxScopes }) {
		return nil, nil, api.Errorf(api.CodeLimitExceeded, "%d sessions use this browser, which is the limit: "+
			"try again after one of them has called cdp.close", maxScopes)
	}
	if s, err = tn.newScope(ctx, by); err != nil {
		return nil, nil, err
	}
	return s, tn.releaseFunc(s), nil
}

// UpdateScope applies the grants of a call that needs no page to the session's scope, if it has one.
func (tn *Tenancy) UpdateScope(ctx context.Context, by api.Caller) *api.Error {
	unlock, err := lock(ctx, tn.scopeLock, "the session's browser context")
	if err != nil {
		return err
	}
	defer unlock()
	s, release, err := tn.existingScope(ctx, by)
	if s != nil {
		release()
	}
	return err
}

// existingScope applies the call's grants to the session's scope and returns it, or nil if there is none. A scope of
// another version of the plugin is closed.
func (tn *Tenancy) existingScope(ctx context.Context, by api.Caller) (s *Scope, release func(), err *api.Error) {
	tn.mux.Lock()
	s = tn.scopes[by.SessionKey()]
	otherVersion := s != nil && s.digest != by.Digest
	if s != nil && !otherVersion {
		s.activeCalls++ // keeps it from being idle
	}
	tn.mux.Unlock()
	switch {
	case s == nil:
		return nil, nil, nil
	case otherVersion:
		return nil, nil, tn.Dispose(s)
	}
	release = tn.releaseFunc(s)
	if s.Proxy == nil {
		return s, release, nil
	}
	s.Proxy.allow(by.HTTP)
	if !slices.Equal(s.folders, by.Folders) {
		if err := tn.denyDownloads(ctx, s); err != nil {
			release()
			return nil, nil, err
		}
		s.folders = by.Folders
	}
	return s, release, nil
}

// TakeUsedRights returns the rights that a plugin's pages have used since the previous TakeUsedRights.
func (tn *Tenancy) TakeUsedRights(by api.Caller) []string {
	s := mux.Locked(tn.mux, func() *Scope { return tn.scopes[by.SessionKey()] })
	if s == nil || s.Proxy == nil {
		return nil
	}
	return s.Proxy.takeUsedRights()
}

func (tn *Tenancy) releaseFunc(s *Scope) func() {
	return func() {
		tn.mux.Lock()
		s.activeCalls--
		s.lastUsed = time.Now()
		tn.mux.Unlock()
	}
}

// disown takes a scope away from its session, with its targets and the contexts that the session has created, and
// forgets the session's events. It does nothing if the session no longer has this scope. The mux is locked.
func (tn *Tenancy) disown(s *Scope) {
	if tn.scopes[s.session] != s {
		return
	}
	delete(tn.scopes, s.session)
	tn.disposeCreated(func(session string) bool { return session == s.session })
	tn.owners.contextOwners[string(s.Context)] = api.Disowned
	for _, t := range tn.tracker.All {
		if t.Context == string(s.Context) {
			t.Owner = api.Disowned
		}
	}
	tn.events.Downloads.Disown(s.session)
	tn.events.Journals.Remove(s.session)
	delete(tn.owners.current, s.session)
	tn.owners.Setups.end(func(session string) bool { return session == s.session })
}

// newScope creates the scope of a caller's session.
func (tn *Tenancy) newScope(ctx context.Context, by api.Caller) (*Scope, *api.Error) {
	s := &Scope{
		session: by.SessionKey(), within: by.Within, anonymous: by.Anonymous, digest: by.Digest, folders: by.Folders,
		activeCalls: 1, firstPageLock: make(chan struct{}, 1),
	}
	if by.Temporary {
		s.connection = by.Connection
	}
	var params cdptarget.CreateBrowserContextParams
	if api.OfPlugin(s.session) {
		p, failed := newProxy(tn.Egress, tn.ChromePID)
		if failed != nil {
			return nil, api.Errorf(api.CodeInternal, "the plugin's proxy cannot listen: %v", failed)
		}
		p.allow(by.HTTP)
		s.Proxy = p
		// Without the second setting Chrome bypasses the proxy for loopback addresses.
		params.ProxyServer, params.ProxyBypassList = "http://"+p.address(), "<-loopback>"
	}
	made, err := target.Execute(ctx, tn.sender, nil, cdptarget.CreateBrowserContext, params)
	if err != nil {
		s.close()
		return nil, err
	}
	s.Context = made.BrowserContextID
	tn.mux.Lock()
	tn.owners.contextOwners[string(s.Context)] = s.session
	tn.mux.Unlock()
	if s.Proxy == nil && tn.events.Downloads.Dir != "" {
		err = tn.events.KeepDownloads(ctx, s.Context)
	} else {
		err = tn.denyDownloads(ctx, s)
	}
	if err != nil {
		tn.Dispose(s)
		return nil, err
	}
	tn.mux.Lock()
	tn.scopes[s.session] = s
	tn.mux.Unlock()
	return s, nil
}

func (s *Scope) close() {
	if s.Proxy != nil {
		s.Proxy.close()
	}
}

// denyDownloads denies downloads in a scope until the session allows them: a page can start one by itself, and Chrome
// would save it in the user's download folder.
func (tn *Tenancy) denyDownloads(ctx context.Context, s *Scope) *api.Error {
	_, err := target.Execute(ctx, tn.sender, nil, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
		Behavior: cdpbrowser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: s.Context,
	})
	return err
}

// Dispose closes a scope with all its pages. The id of its context stays known, so that late events of the browser
// about it stay hidden from other callers.
func (tn *Tenancy) Dispose(s *Scope) *api.Error {
	tn.mux.Lock()
	tn.disown(s)
	tn.mux.Unlock()
	s.close()
	ctx, cancel := context.WithTimeout(context.Background(), disposeTimeout)
	defer cancel()
	params := cdptarget.DisposeBrowserContextParams{BrowserContextID: s.Context}
	_, err := target.Execute(ctx, tn.sender, nil, cdptarget.DisposeBrowserContext, params)
	tn.events.RemoveDownloads(s.Context)
	return err
}

const disposeTimeout = 5 * time.Second

// DisposeIdle closes the scopes of plugins that had no call for at least limit, and the scopes of anonymous clients
// after anonymousTTL.
func (tn *Tenancy) DisposeIdle(limit time.Duration) {
	tn.mux.Lock()
	var idle []*Scope
	for _, s := range tn.scopes {
		unused := time.Since(s.lastUsed)
		if s.activeCalls == 0 &&
			(s.Proxy != nil && limit > 0 && unused >= limit || s.anonymous && unused >= anonymousTTL) {
			tn.disown(s)
			idle = append(idle, s)
		}
	}
	tn.mux.Unlock()
	for _, s := range idle {
		go tn.Dispose(s)
	}
}

// CloseProxies closes the proxies of all scopes once the browser has ended.
func (tn *Tenancy) CloseProxies() {
	tn.mux.Lock()
	defer tn.mux.Unlock()
	for _, s := range tn.scopes {
		s.close()
	}
}

// FirstPage makes sure that a plugin's own session has a page.
func (tn *Tenancy) FirstPage(ctx context.Context, by api.Caller, s *Scope) *api.Error {
	unlock, err := lock(ctx, s.firstPageLock, "the plugin's first page")
	if err != nil {
		return err
	}
	defer unlock()
	if mux.Locked(tn.mux, func() bool { return tn.owners.CurrentOf(by) != nil }) {
		return nil
	}
	t, err := tn.owners.NewPage(ctx, by, s.Context)
	if err != nil {
		return err
	}
	if err := tn.tracker.Attach(ctx, t, ""); err != nil {
		return err
	}
	tn.tracker.AwaitBlank(ctx, t)
	tn.owners.SetCurrent(by, t)
	return nil
}

// BrowserContext returns the browser context of a scope, "" for the default one.
func (s *Scope) BrowserContext() cdp.BrowserContextID {
	if s == nil {
		return ""
	}
	return s.Context
}

// Refusals begins to watch what the proxy of the scope's pages refuses to dial. The returned function returns the
// error of a navigation to a URL that has failed because of that, or nil.
func (s *Scope) Refusals() func(to string) *api.Error {
	if s == nil || s.Proxy == nil {
		return func(string) *api.Error { return nil }
	}
	refused := s.Proxy.watchRefusals()
	return func(to string) *api.Error {
		if err := refused(dialAddress(to)); err != nil {
			return &api.Error{Code: api.CodeDenied, Message: err.Message, Denied: slices.Clone(err.Denied)}
		}
		return nil
	}
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

// OpenSessions returns the sessions with a context or a page in the browser, sorted by name. The mux is locked.
func (tn *Tenancy) OpenSessions() []api.SessionInfo {
	pages := map[string]int{}
	for name := range tn.scopes {
		pages[name] = 0
	}
	for _, session := range tn.owners.createdContexts {
		pages[session] = 0
	}
	for _, t := range tn.tracker.All {
		if t.Kind == "page" && t.Owner != "" && t.EvictErr == nil {
			pages[t.Owner]++
		}
	}
	all := make([]api.SessionInfo, 0, len(pages))
	for name, n := range pages {
		if name == api.Disowned {
			continue
		}
		info := api.SessionInfo{Session: name, Pages: n}
		var used time.Time
		s := tn.scopes[name]
		switch {
		case name == api.DefaultSession:
			used = tn.defaultUsed
		case s != nil && s.activeCalls > 0:
			used = time.Now()
		case s != nil:
			used = s.lastUsed
		}
		if !used.IsZero() {
			info.Used = used.UnixMilli()
		}
		if t := tn.owners.current[name]; t != nil {
			info.Current = t.URL
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b api.SessionInfo) int { return strings.Compare(a.Session, b.Session) })
	return all
}

// isAlone reports whether no session except this one, and plugins that work for it, has anything in the browser. The
// mux is locked.
func (tn *Tenancy) isAlone(session string) bool {
	return !slices.ContainsFunc(tn.OpenSessions(), func(other api.SessionInfo) bool {
		return !tn.endsWith(other.Session, session)
	})
}

// endsWith reports whether a session is other, or the session of a plugin that works for other. The mux is locked.
func (tn *Tenancy) endsWith(session, other string) bool {
	s := tn.scopes[session]
	return session == other || s != nil && slices.Contains(s.within, other)
}

// CloseSession closes what a session has opened, and what plugins have opened on its behalf.
func (tn *Tenancy) CloseSession(ctx context.Context, session string) (api.Closed, *api.Error) {
	ends := func(other string) bool { return tn.endsWith(other, session) }
	return tn.closeAll(ctx, ends, func(t *target.Target) bool { return ends(t.Owner) })
}

// CloseOpened closes what all sessions have opened.
func (tn *Tenancy) CloseOpened(ctx context.Context) (api.Closed, *api.Error) {
	return tn.closeAll(ctx, func(string) bool { return true }, func(*target.Target) bool { return true })
}

// CloseConnection closes what was opened over a connection that has ended.
func (tn *Tenancy) CloseConnection(ctx context.Context, id string) (api.Closed, *api.Error) {
	ends := func(session string) bool { return tn.scopes[session] != nil && tn.scopes[session].connection == id }
	return tn.closeAll(ctx, ends, func(t *target.Target) bool { return t.Origin.Connection == id })
}

// closeAll closes the contexts of the sessions that end, and other pages, and waits until these are gone. It calls
// ends and page with the mux locked.
func (tn *Tenancy) closeAll(ctx context.Context, ends func(session string) bool, page func(*target.Target) bool) (
	api.Closed, *api.Error,
) {
	closed := api.Closed{Targets: []string{}, Contexts: []string{}}
	var scopes []*Scope
	var pages []*target.Target
	tn.mux.Lock()
	for name, s := range tn.scopes {
		if ends(name) {
			scopes = append(scopes, s)
		}
	}
	for id, session := range tn.owners.createdContexts {
		if ends(session) {
			closed.Contexts = append(closed.Contexts, id)
		}
	}
	for _, t := range tn.tracker.All {
		inContext := tn.scopes[t.Owner] != nil && ends(t.Owner)
		if t.Kind != "page" || t.Owner == "" || !inContext && !page(t) {
			continue
		}
		if t.Given {
			t.Owner, t.Origin, t.Given = "", target.Origin{}, false
			continue
		}
		closed.Targets = append(closed.Targets, t.ID)
		if !inContext {
			pages = append(pages, t)
			tn.sender.PostClose(t.ID)
		}
	}
	tn.disposeCreated(ends)
	tn.owners.Setups.end(ends)
	tn.mux.Unlock()

	var failed *api.Error
	for _, s := range scopes {
		closed.Contexts = append(closed.Contexts, string(s.Context))
		if err := tn.Dispose(s); err != nil && failed == nil {
			failed = err // close the others nevertheless
		}
	}
	slices.Sort(closed.Contexts)
	err := tn.mux.Wait(ctx, "for the pages to close", func() (bool, *api.Error) {
		left := false
		for _, t := range pages {
			if t.Dialog != nil && t.Dialog.Type == api.BeforeUnload && !t.Closed {
				tn.sender.AnswerDialog(t, api.DialogAccept) // the page asks whether it may be left
			}
			left = left || !t.Closed
		}
		return !left, nil
	})
	return closed, cmp.Or(failed, err)
}

// disposeCreated closes the contexts that sessions have created by their own commands. The mux is locked.
func (tn *Tenancy) disposeCreated(ends func(session string) bool) {
	for id, session := range tn.owners.createdContexts {
		if ends(session) {
			delete(tn.owners.createdContexts, id)
			target.Post(tn.mux, nil, cdptarget.DisposeBrowserContext,
				cdptarget.DisposeBrowserContextParams{BrowserContextID: cdp.BrowserContextID(id)}, nil)
		}
	}
}
