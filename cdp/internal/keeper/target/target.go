package target

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	cdptarget "github.com/chromedp/cdproto/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// Target is a page, frame or worker, a popup among them.
type Target struct {
	mux.Address                      // without a session, the keeper is not attached
	Kind, URL, Title, Opener string  // as Chrome reports them
	Parent                   *Target // the page of a frame or worker
	Attaching                bool    // an attach is under way; only in an external browser
	ready                    bool    // Page events are enabled
	Crashed, Closed          bool
	needsReenable            bool // enabled domains were lost in a crash; cleared by the next page
	Dialog                   *api.Dialog
	stays                    int             // how often its beforeunload dialog was dismissed
	DragData                 json.RawMessage // of the newest drag that the browser began during a call
	Domains                  map[string]*Domain
	Document
	Holding
}

// Document is what a page shows, and the navigation that is under way.
type Document struct {
	PendingURL string          // the URL of a navigation under way
	loaders    []string        // loaders of the main frame, the newest last
	Loaded     bool            // the load event of the newest loader was received
	Idle       bool            // its network is idle; only while lifecycle events are enabled
	IdleWaits  int             // number of calls that wait for Idle
	Commits    int             // number of documents that the main frame has shown
	responses  []mainResponse  // for documents, the newest last
	Asked      string          // the URL of the latest request for a document, after all redirects
	Contexts   []scriptContext // contexts in which scripts run
}

// Holding says to whom a target belongs. The observer sets and uses it.
type Holding struct {
	Context        string     // id of its browser context
	Owner          string     // the session that it belongs to; "" if none
	OwnerTentative bool       // the owner is a guess that later events may correct
	Origin         Origin     // who opened it
	Hidden         bool       // a page of the keeper's own, which no session sees
	Given          bool       // a person gave it to the session: it stays open when the session ends
	EvictErr       *api.Error // why the keeper closes it, if the owner may not have it
	Appeared       int64      // the newest event of its session when it appeared
	Preparing      int        // commands of its session's set-up that are under way
}

// Origin says who opened a page, within the session that it belongs to. The page's popups have the same origin.
type Origin struct {
	Person     bool   // the person at the command line, who may open any URL and any number of pages
	Connection string // the connection over which it was opened, and with which it is closed
}

// At returns the address for commands to a target; t may be nil.
func (t *Target) At() *mux.Address {
	if t == nil {
		return nil
	}
	return &t.Address
}

// receives reports whether commands to an address go to the target.
func (t *Target) receives(to *mux.Address) bool { return to == &t.Address }

// Root returns the page whose dialogs block t: t itself, or the page that t is a frame of.
func (t *Target) Root() *Target {
	for t != nil && t.Kind == "iframe" && t.Parent != nil {
		t = t.Parent
	}
	return t
}

// IsPrivate reports whether only the person may receive events of a target: the target belongs to a page of the
// person that shows what only the person may open. t may be nil.
func (t *Target) IsPrivate() bool {
	top := t.Root()
	return top != nil && top.Origin.Person && top.Kind == "page" && !api.MayShow(top.URL)
}

// Within reports whether t is top or one of its frames or workers.
func (t *Target) Within(top *Target) bool {
	for t != nil && t != top {
		t = t.Parent
	}
	return t != nil
}

// HasPage reports whether targets of a kind have a document.
func HasPage(kind string) bool { return kind == "page" || kind == "iframe" || kind == "webview" }

// MainContext returns the unique id of the context in which a frame's own scripts run, "" if it is unknown. The mux
// is locked.
func (t *Target) MainContext(frame string) (unique string) {
	return scan.Text(t.ContextWhere(func(c json.RawMessage) bool {
		return scan.Text(c, "auxData", "frameId") == frame && string(scan.Field(c, "auxData", "isDefault")) == "true"
	}), "uniqueId")
}

// ContextWhere returns the newest context for which has returns true, nil if there is none.
func (t *Target) ContextWhere(has func(context json.RawMessage) bool) (newest json.RawMessage) {
	for _, c := range t.Contexts {
		if context := scan.Field(c.Created, "context"); has(context) {
			newest = context
		}
	}
	return newest
}

// maxContexts limits the contexts of a target that are remembered.
const maxContexts = 256

// scriptContext is an execution context for scripts, with the event that reported it.
type scriptContext struct {
	id      int
	Created json.RawMessage
}

// maxLoaders is how many loaders of a page, and responses for its documents, are remembered besides the newest.
const maxLoaders = 7

// mainResponse is the response for the document of the main frame.
type mainResponse struct {
	loader string
	status int
}

// followDocument tracks the script contexts of a target, and the response for its document.
func (t *Target) followDocument(method string, params json.RawMessage) {
	switch method {
	case runtime.ExecutionContextCreated.Method:
		t.addContext(params)
	case runtime.ExecutionContextDestroyed.Method:
		id := scan.Number(params, "executionContextId")
		t.Contexts = slices.DeleteFunc(t.Contexts, func(c scriptContext) bool { return c.id == id })
	case runtime.ExecutionContextsCleared.Method:
		t.Contexts = nil
	case network.RequestWillBeSent.Method:
		if scan.Text(params, "type") == string(network.ResourceTypeDocument) && scan.Text(params, "frameId") == t.ID {
			t.Asked = scan.Text(params, "request", "url")
		}
	case network.ResponseReceived.Method:
		if scan.Text(params, "type") == string(network.ResourceTypeDocument) && scan.Text(params, "frameId") == t.ID {
			t.responses = append(t.responses[max(0, len(t.responses)-maxLoaders):],
				mainResponse{scan.Text(params, "loaderId"), scan.Number(params, "response", "status")})
		}
	}
}

func (t *Target) addContext(params json.RawMessage) {
	id := scan.Number(params, "context", "id")
	if id == 0 {
		return
	}
	t.Contexts = slices.DeleteFunc(t.Contexts, func(c scriptContext) bool { return c.id == id })
	if len(t.Contexts) < maxContexts {
		t.Contexts = append(t.Contexts, scriptContext{id, bytes.Clone(params)})
	}
}

// onNavigating tracks whether a page is being left for another URL, and reports whether the navigation is the page's
// own, and not a frame's.
func (t *Target) onNavigating(method string, params json.RawMessage) bool {
	switch {
	case scan.Text(params, "frameId") != t.ID:
		return false
	case method == page.FrameStoppedLoading.Method:
		t.PendingURL = ""
		t.Loaded = true // there may be no load event if its parser was stopped for a download or a response without content
	case !strings.HasSuffix(strings.ToLower(scan.Text(params, "navigationType")), "samedocument"):
		t.PendingURL = scan.Text(params, "url")
	}
	return true
}

// HasLoader reports whether the main frame has shown a loader's document. The page may have moved on since.
func (t *Target) HasLoader(loader string) bool {
	return slices.Contains(t.loaders, loader)
}

// IsByLoader reports whether the document that the target shows was loaded by a loader.
func (t *Target) IsByLoader(loader string) bool {
	return len(t.loaders) > 0 && t.loaders[len(t.loaders)-1] == loader
}

// onLifecycle tracks whether the newest document's network is idle, and reports whether it has become so.
func (t *Target) onLifecycle(params json.RawMessage) bool {
	n := len(t.loaders)
	if n == 0 || scan.Text(params, "name") != "networkIdle" || scan.Text(params, "frameId") != t.ID ||
		scan.Text(params, "loaderId") != t.loaders[n-1] {
		return false
	}
	t.Idle = true
	return true
}

// onNavigated tracks a new document, and reports whether it is the page's own, and not a frame's.
func (tr *Tracker) onNavigated(t *Target, params json.RawMessage) bool {
	frame := scan.Field(params, "frame")
	if frame == nil || scan.Text(frame, "parentId") != "" {
		return false
	}
	url := scan.Text(frame, "url")
	tr.observer.OnURL(t, url)
	if t == tr.SparePage && url != api.BlankURL && !strings.HasPrefix(url, "chrome-error:") {
		tr.SparePage = nil // a caller has navigated it
	}
	t.loaders = append(t.loaders[max(0, len(t.loaders)-maxLoaders):], scan.Text(frame, "loaderId"))
	t.Commits++
	// A page from the back/forward cache is in the state in which it was left: no load event follows.
	restored := scan.Text(params, "type") == string(page.NavigationTypeBackForwardCacheRestore)
	t.Loaded, t.Idle, t.Crashed, t.Dialog, t.PendingURL = restored, restored, false, nil, ""
	if restored { // no event reports its frames
		tr.readFrames(t)
	}
	if t.needsReenable {
		t.needsReenable = false
		tr.Domains.reenableDomains(t)
	}
	return true
}

// AwaitBlank waits until a new page has loaded its blank document, because the end of that navigation would abort the
// next one. The page's title shows that it has; in a browser whose blank page has no title, AwaitBlank times out, and
// nothing else is lost. It also waits for the scripts of the session: Chrome's browser process navigates, its
// renderer process adds scripts, and a script that is added too late does not run at the start of the next document.
func (tr *Tracker) AwaitBlank(ctx context.Context, t *Target) {
	ctx, cancel := context.WithTimeout(ctx, awaitBlankTimeout)
	defer cancel()
	tr.Mux.Wait(ctx, "for the blank page", func() (bool, *api.Error) {
		return t.Title != "" && t.Preparing == 0 || t.Closed || t.Crashed, nil
	})
}

const awaitBlankTimeout = 5 * time.Second

// DocumentStatus returns the HTTP status of the document that a page shows, 0 if it is unknown.
func (tr *Tracker) DocumentStatus(t *Target) int {
	tr.Mux.Lock()
	defer tr.Mux.Unlock()
	for _, r := range slices.Backward(t.responses) {
		if t.IsByLoader(r.loader) { // it may have come back from the back/forward cache
			return r.status
		}
	}
	return 0
}

// ResponseStatus returns the HTTP status of the newest response to a navigation of a page, even if the page shows no
// document for it; 0 if it is unknown. The mux is locked.
func (t *Target) ResponseStatus() (status int) {
	for _, r := range t.responses {
		status = r.status
	}
	return status
}

// PageInfo returns a page's current state. It asks the browser, not the page, so it works even if the page is busy.
func (tr *Tracker) PageInfo(ctx context.Context, t *Target) (api.Page, *api.Error) {
	params := cdptarget.GetTargetInfoParams{TargetID: cdptarget.ID(t.ID)}
	result, err := Execute(ctx, tr.Sender, nil, cdptarget.GetTargetInfo, params)
	if err != nil {
		return api.Page{}, err
	}
	p := api.Page{Browser: tr.Name, Target: t.ID}
	if info := result.TargetInfo; info != nil {
		p.URL, p.Title = info.URL, info.Title
	}
	return p, nil
}

// CreatePage creates a page and waits until it is tracked; it then calls created, unless nil, with the mux locked.
func (tr *Tracker) CreatePage(ctx context.Context, params cdptarget.CreateTargetParams, o CallOptions,
	created func(*Target),
) (t *Target, err *api.Error) {
	made, err := Execute(ctx, tr.Sender, nil, cdptarget.CreateTarget, params, o)
	if err != nil {
		return nil, err
	}
	err = tr.Mux.Wait(ctx, "for the new page", func() (bool, *api.Error) {
		if t = tr.ByID[string(made.TargetID)]; t != nil && created != nil {
			created(t)
		}
		return t != nil, nil
	})
	if err != nil {
		tr.Mux.Lock()
		tr.Sender.PostClose(string(made.TargetID))
		tr.Mux.Unlock()
	}
	return t, err
}
