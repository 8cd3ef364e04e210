package keeper

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// origin says who opened a page, within the session that it belongs to. Its popups have the same.
type origin struct {
	person     bool   // the person at the command line, who may open any URL and any number of pages
	connection string // over which it was opened; it is closed with that
}

type target struct {
	mux.Address
	kind, url, title string
	opener           string
	appeared         int64   // the newest event of its session at that time
	context          string  // id of its browser context
	owner            string  // the session that it belongs to; "" if there is none
	origin           origin  // who opened it there
	ownerTentative   bool    // the owner is a guess that later events may correct
	parent           *target // the page of a frame or worker
	attaching        bool    // an attach is under way; only in an external browser
	ready            bool    // Page events are enabled
	crashed, closed  bool
	needsReenable    bool       // enabled domains were lost in a crash; cleared by the next page
	hidden           bool       // a page of the engine's own, which no session sees
	evictErr         *api.Error // why the engine closes it: the owner may not have it
	dialog           *api.Dialog
	pendingURL       string          // of a navigation under way
	loaders          []string        // of the main frame, the newest last
	loaded           bool            // the load event of the newest loader was received
	idle             bool            // its network is idle; only while lifecycle events are enabled
	idleWaits        int             // calls that wait for that
	dragData         json.RawMessage // of the newest drag that the browser began during a call; see engine.drag
	commits          int             // documents that the main frame has shown
	domains          map[string]*domain
	contexts         []scriptContext // for scripts
	document         mainResponse
	preparing        int // commands of its session's set-up that are under way
}

// at returns where the commands to a target go; t may be nil.
func (t *target) at() *mux.Address {
	if t == nil {
		return nil
	}
	return &t.Address
}

// receives reports whether commands to an address go to the target.
func (t *target) receives(to *mux.Address) bool { return to == &t.Address }

// root returns the page whose dialogs block t: t itself, or the page of a frame.
func (t *target) root() *target {
	for t != nil && t.kind == "iframe" && t.parent != nil {
		t = t.parent
	}
	return t
}

// within reports whether t is top or one of its frames or workers.
func (t *target) within(top *target) bool {
	for t != nil && t != top {
		t = t.parent
	}
	return t != nil
}

// targetInfo has only the fields that the engine needs, so that no other field of a later browser can break the
// decoding.
type targetInfo struct {
	ID      string `json:"targetId"`
	Type    string `json:"type"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Opener  string `json:"openerId"`
	Parent  string `json:"parentId"`
	Context string `json:"browserContextId"`
}

func hasPage(kind string) bool { return kind == "page" || kind == "iframe" || kind == "webview" }

// mainContext returns the unique id of the context in which the scripts of a frame run, "" if it is not known. The
// engine is locked.
func (t *target) mainContext(frame string) (unique string) {
	return scan.Text(t.contextWhere(func(c json.RawMessage) bool {
		return scan.Text(c, "auxData", "frameId") == frame && string(scan.Field(c, "auxData", "isDefault")) == "true"
	}), "uniqueId")
}

// contextWhere returns the newest context that has a property, nil if none is known.
func (t *target) contextWhere(has func(context json.RawMessage) bool) (newest json.RawMessage) {
	for _, c := range t.contexts {
		if context := scan.Field(c.created, "context"); has(context) {
			newest = context
		}
	}
	return newest
}

// maxContexts limits the contexts that are known of a target.
const maxContexts = 256

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

// followDocument follows the contexts for scripts in a target, and the response for its document.
func (t *target) followDocument(method string, params json.RawMessage) {
	switch method {
	case runtime.ExecutionContextCreated.Method:
		t.addContext(params)
	case runtime.ExecutionContextDestroyed.Method:
		id, _ := strconv.ParseInt(string(scan.Field(params, "executionContextId")), 10, 64)
		t.contexts = slices.DeleteFunc(t.contexts, func(c scriptContext) bool { return c.id == id })
	case runtime.ExecutionContextsCleared.Method:
		t.contexts = nil
	case network.ResponseReceived.Method:
		if scan.Text(params, "type") == string(network.ResourceTypeDocument) && scan.Text(params, "frameId") == t.ID {
			t.document = mainResponse{scan.Text(params, "loaderId"), scan.Number(params, "response", "status")}
		}
	}
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

// onNavigating tracks whether a page is being left for another URL.
func (t *target) onNavigating(method string, params json.RawMessage) {
	var p struct {
		Frame string `json:"frameId"`
		URL   string `json:"url"`
		Type  string `json:"navigationType"`
	}
	switch {
	case json.Unmarshal(params, &p) != nil || p.Frame != t.ID:
	case method == page.FrameStoppedLoading.Method:
		t.pendingURL = ""
	case !strings.HasSuffix(strings.ToLower(p.Type), "samedocument"):
		t.pendingURL = p.URL
	}
}

// hasLoader reports whether the main frame has shown a loader's document. The page may have moved on since.
func (t *target) hasLoader(loader string) bool {
	for _, l := range t.loaders {
		if l == loader {
			return true
		}
	}
	return false
}
