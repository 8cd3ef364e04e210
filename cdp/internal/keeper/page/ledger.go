package page

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
)

// Caused is what an act caused, except changes of the page itself.
type Caused struct {
	Failed     []string     `json:"failed,omitempty"`   // requests
	Errors     []string     `json:"errors,omitempty"`   // console errors
	Dialog     *ShownDialog `json:"dialog,omitempty"`   // the open dialog
	Answered   []string     `json:"answered,omitempty"` // dialogs
	Downloads  []string     `json:"downloads,omitempty"`
	NewPages   []newPage    `json:"new_pages,omitempty"`
	Chooser    string       `json:"chooser,omitempty"` // the file chooser: "one file" or "several files"
	Frames     []string     `json:"frames,omitempty"`  // addresses to which frames went
	Pending    []string     `json:"pending,omitempty"`
	NotSettled string       `json:"not_settled,omitempty"` // why the page is still busy
}

// newPage is a page that the act opened. It does not become the current one.
type newPage struct {
	Target string `json:"target"`
	URL    string `json:"url"`
}

// Before is what happened after the result of an act was returned. It is reported with the next result on that
// document.
type Before struct {
	Act     int    `json:"act"`               // the number of the act to which it is attributed
	Of      string `json:"of"`                // a description of that act
	Changed bool   `json:"changed,omitempty"` // the document has changed
	URL     string `json:"url,omitempty"`
	Title   string `json:"title,omitempty"`
	*Caused
}

// none reports whether nothing happened.
func (b *Before) none() bool { return b == nil || !b.Changed && b.URL == "" && b.Caused == nil }

// Ledger records what has been reported about a page. Later effects are attributed to the last act that began.
type Ledger struct {
	turn     chan struct{} // holds one element while an act is under way, so that acts do not overlap
	Acts     int           // number of acts so far
	Of       string        // a description of the last act that began
	Seq      int64         // the newest event that was reported
	In       Frame         // the document of the last act's element
	Document string        // the letters of the document in which the last act ended; URL is that document's
	URL      string
	Frames   []string            // where frames went, as the last act's result reported
	Methods  map[string]string   // methods of the requests under way, by id
	told     map[string]bool     // ids of reported pages that this page opened, and of finished downloads
	begun    map[string]download // reported downloads under way, by id
	Woken    bool                // in the background, the page behaves as if it were in front
	Picture  atomic.Value        // the last picture taken of the page, in the form of screenshot
}

// download is a download whose beginning was reported, but not its end.
type download struct {
	name, of string
	act      int // the number of the act with which it was reported; of describes that act
}

// Begin records the act to which later effects are attributed: its number, where its element is, and the newest event
// before it.
func (l *Ledger) Begin(of string, in Frame, seq int64) {
	l.Acts++
	l.Of, l.In, l.Seq = of, in, seq
}

// actionParams are the parameters of an event that an act can cause.
type actionParams struct {
	EventParams
	RequestID        string                       `json:"requestId"`
	LoaderID         string                       `json:"loaderId"`
	Disposition      string                       `json:"disposition"` // of a navigation
	Canceled         bool                         `json:"canceled"`
	ErrorText        string                       `json:"errorText"`
	Request          struct{ URL, Method string } `json:"request"`
	ExceptionDetails ExceptionText                `json:"exceptionDetails"`
	Entry            LogEntry                     `json:"entry"`
	Response         struct {
		URL     string
		Status  int
		Headers map[string]string
	} `json:"response"`
	Frame struct {
		ID, ParentID, LoaderID, URL string
	} `json:"frame"` // a new document
	Message string `json:"message"` // the text of a dialog
	Mode    string `json:"mode"`    // the mode of a file chooser
	Node    int64  `json:"backendNodeId"`
	GUID    string `json:"guid"`
	State   string `json:"state"`
	File    string `json:"filePath"`
	Name    string `json:"suggestedFilename"`
}

// EventParams are parameters that events of several kinds have.
type EventParams struct {
	Type    string
	FrameID string
	URL     string // of a navigation or a window
	Args    []logged
}

// Activity collects what happened in a page since an event.
type Activity struct {
	page      string // the id of the target
	Seq       int64
	Asked     bool              // a request was sent
	Navigated bool              // the page has a new document
	Parsed    bool              // the document has all of its elements
	dialogs   []string          // dialogs that were opened
	Pending   map[string]string // URLs by id of requests that the page waits for, or by frame of the next document
	Loading   map[string]string // URLs of all requests under way
	methods   map[string]string
	mainRequest
	refused   map[string]string // why servers were not accepted, by origin
	failed    []string
	errors    []string
	Frames    []string // addresses of frames that have a new document
	windows   []string // addresses of windows that scripts or links opened
	chooser   string
	inFrames  map[string]bool     // ids of pending requests that only a frame waits for
	responses map[string]response // responses with documents of the page, by loader
	downloads map[string]string   // by id: the name and state, or the path
	order     []string            // ids of downloads, in order
}

// mainRequest is the last request for a document of the page itself.
type mainRequest struct {
	id, Asks string // Asks is the requested URL
	Fault    string // why it failed
	givenUp  bool   // a request, maybe of a frame, ended without a document, as for a download
	response        // the response of the shown document
	shown    string // the loader of the shown document
}

// response is what a server responded.
type response struct {
	Status int
	Login  bool // the server asked for a login
}

// blockedByRule is the failure reason of requests that a rule of the session blocks. They are not reported.
const blockedByRule = "net::ERR_BLOCKED_BY_CLIENT.Inspector"

// NewActivity returns the activity of a page since an event. methods are the methods of the requests under way, by
// id.
func NewActivity(page string, seq int64, methods map[string]string) *Activity {
	return &Activity{page: page, Seq: seq, Pending: map[string]string{}, Loading: map[string]string{},
		methods: methods, downloads: map[string]string{}, refused: map[string]string{}, inFrames: map[string]bool{},
		responses: map[string]response{}}
}

var actionEvents = []string{"Network.requestWillBeSent", "Network.responseReceived", "Network.loadingFinished",
	"Network.loadingFailed", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded",
	"Page.javascriptDialogOpening", "Page.frameScheduledNavigation", "Page.frameClearedScheduledNavigation",
	"Page.frameNavigated", "Page.windowOpen", "Page.frameRequestedNavigation", "Page.domContentEventFired",
	ChooserOpened, "Browser.downloadWillBegin", "Browser.downloadProgress"}

// frameEvents are the events that also count for an act when they come from a frame in a process of its own.
var frameEvents = []string{"Network.requestWillBeSent", "Network.responseReceived", "Network.loadingFinished",
	"Network.loadingFailed", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.windowOpen",
	"Page.frameNavigated"}

// underWay is appended to the name of a download that has not ended. maxMethods bounds the requests under way whose
// methods are known.
const (
	underWay   = " (under way)"
	maxMethods = 1000
)

// OwnIcon ends the address of the icon that a browser requests by itself.
const OwnIcon = "/favicon.ico"

// awaited are the types of requests whose responses change a document.
var awaited = []string{"Document", "XHR", "Fetch", "Script", "Stylesheet"}

// Read reads the events since the previous Read.
func (a *Activity) Read(v *Visit) {
	var records []event.Recorded
	records, a.Seq = v.Records(a.Seq, actionEvents...)
	for _, e := range records {
		var p actionParams
		_ = json.Unmarshal(e.Params, &p)
		if e.Method == "Network.loadingFailed" && p.Type == "Document" {
			reason := v.Keeper.Owners.Reason(v.owner, e.URL, p.ErrorText)
			p.Canceled, p.ErrorText = p.Canceled && reason == p.ErrorText, reason
		}
		isOurs, isFrame, isOther := relation(v, e.Target)
		switch {
		case e.Target == a.page || strings.HasPrefix(e.Method, "Browser.") && !isOther, e.Method == ChooserOpened && isOurs:
			a.note(e.Method, e.URL, &p)
		case isFrame && slices.Contains(frameEvents, e.Method):
			if a.note(e.Method, e.URL, &p); e.Method == "Network.requestWillBeSent" {
				a.inFrames[p.RequestID] = true
			}
		case e.Method == "Network.loadingFinished" || e.Method == "Network.loadingFailed":
			a.over(p.RequestID) // it may belong to a frame that is gone
		}
	}
}

// relation reports whether a target belongs to the page, whether it is a frame of it that has a process of its own,
// and whether it is a page that this one has not opened. A page that was opened for a download is gone once the
// download has begun.
func relation(v *Visit, id string) (isOurs, isFrame, isOther bool) {
	v.Keeper.Mux.Lock()
	defer v.Keeper.Mux.Unlock()
	t := v.Keeper.Tracker.ByID[id]
	if t == nil {
		return false, false, false
	}
	isOurs = t.Within(v.Page)
	return isOurs, isOurs && t.Kind == "iframe", t.Kind == "page" && t != v.Page && t.Opener != v.Page.ID
}

func (a *Activity) over(request string) {
	delete(a.Pending, request)
	delete(a.Loading, request)
	delete(a.methods, request)
}

func (a *Activity) note(method, url string, p *actionParams) {
	switch method {
	case "Network.requestWillBeSent":
		a.noteRequest(p)
	case "Network.responseReceived":
		if p.Type == "Document" && p.FrameID == a.page {
			r := response{Status: p.Response.Status}
			for name := range p.Response.Headers {
				r.Login = r.Login || strings.EqualFold(name, "WWW-Authenticate")
			}
			if a.responses[p.LoaderID] = r; p.LoaderID == a.shown {
				a.response = r
			}
		}
		if p.Response.Status == http.StatusUnauthorized {
			a.refused[api.OriginOf(p.Response.URL)] = api.NoLogin
		}
		if p.Response.Status >= 400 && !strings.HasSuffix(p.Response.URL, OwnIcon) {
			a.failed = append(a.failed, fmt.Sprintf("%d %s%s", p.Response.Status, a.methods[p.RequestID], p.Response.URL))
		}
	case "Network.loadingFinished":
		a.over(p.RequestID)
	case "Network.loadingFailed":
		if !p.Canceled && p.ErrorText != blockedByRule && !strings.HasSuffix(url, OwnIcon) {
			a.failed = append(a.failed, strings.TrimSpace(p.ErrorText+" "+a.methods[p.RequestID]+url))
			if p.ErrorText != api.NoPage { // otherwise the status says why
				a.refused[api.OriginOf(url)] = p.ErrorText
			}
			if p.RequestID == a.id {
				a.Fault = p.ErrorText
			}
		}
		a.givenUp = a.givenUp || p.Canceled && p.Type == "Document"
		a.over(p.RequestID)
	case "Page.frameScheduledNavigation":
		a.Pending[p.FrameID], a.inFrames[p.FrameID] = p.URL, p.FrameID != a.page
	case "Page.frameClearedScheduledNavigation": // its request was sent, or the navigation was given up
		delete(a.Pending, p.FrameID)
	case "Page.frameNavigated":
		if p.Frame.ID == a.page {
			a.Navigated, a.Parsed, a.Frames = true, false, nil
			a.shown, a.response = p.Frame.LoaderID, a.responses[p.Frame.LoaderID]
			// Chrome gives up the other requests of the previous document, and does not report all of them.
			others := func(request, _ string) bool { return request != p.Frame.LoaderID }
			maps.DeleteFunc(a.Pending, others)
			maps.DeleteFunc(a.Loading, others)
		} else if !a.Navigated && p.Frame.URL != api.BlankURL {
			a.Frames = append(a.Frames, Clip(p.Frame.URL, 160))
		}
	case "Page.domContentEventFired":
		a.Parsed = true
	case ChooserOpened:
		a.chooser = Chooser{Mode: p.Mode, Node: p.Node}.Takes()
	case "Page.windowOpen":
		a.windows = append(a.windows, p.URL)
	case "Page.frameRequestedNavigation": // a click with a modifier or another button, which causes no Page.windowOpen
		if p.Disposition == "newTab" || p.Disposition == "newWindow" {
			a.windows = append(a.windows, p.URL)
		}
	case "Page.javascriptDialogOpening":
		a.dialogs = append(a.dialogs, p.Type+" "+Quote(Clip(p.Message, 160)))
	case "Runtime.exceptionThrown":
		a.errors = append(a.errors, Quote(Clip(p.ExceptionDetails.String(), 160)))
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "assert" {
			a.errors = append(a.errors, Quote(Clip(p.Logged(), 160)))
		}
	case "Log.entryAdded":
		if p.Entry.Level == "error" && p.Entry.Source != "network" {
			a.errors = append(a.errors, Quote(Clip(p.Entry.Text, 160)))
		}
	case "Browser.downloadWillBegin", "Browser.downloadProgress":
		a.noteDownload(p)
	}
}

// noteRequest records that a request was sent.
func (a *Activity) noteRequest(p *actionParams) {
	if strings.HasSuffix(p.Request.URL, OwnIcon) {
		return
	}
	if len(a.methods) >= maxMethods { // the ends of most were missed
		clear(a.methods)
	}
	a.methods[p.RequestID], a.Asked = p.Request.Method+" ", true
	if p.Type == "Document" && p.FrameID == a.page {
		a.Asks, a.id, a.Fault = p.Request.URL, p.RequestID, ""
	}
	if url := p.Request.URL; strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "chrome-extension:") {
		// A data: URL loads nothing, and chrome-extension: URLs belong to Chrome's PDF viewer.
		return
	}
	a.Loading[p.RequestID] = p.Request.URL
	if slices.Contains(awaited, p.Type) {
		a.Pending[p.RequestID], a.inFrames[p.RequestID] = p.Request.URL, p.Type == "Document" && p.FrameID != a.page
	}
}

// noteDownload records that a download begins, which is an event without a state, or ends.
func (a *Activity) noteDownload(p *actionParams) {
	told, known := a.downloads[p.GUID]
	name := strings.TrimSuffix(told, underWay)
	switch p.State {
	case "":
		told = Quote(p.Name) + underWay
	case "completed":
		told = strings.TrimPrefix(name+": "+p.File, ": ")
	case "canceled":
		told = strings.TrimSpace(name + " (cancelled)")
	default:
		return
	}
	if a.downloads[p.GUID] = told; !known { // its beginning may have been read earlier
		a.order = append(a.order, p.GUID)
	}
}

// Seen reports whether anything happened.
func (a *Activity) Seen() bool {
	return a.Asked || a.Navigated || a.chooser != "" ||
		len(a.Pending)+len(a.windows)+len(a.order)+len(a.dialogs)+len(a.errors)+len(a.Frames) > 0
}

// AwaitsFrames reports whether all pending requests are for documents of frames. It returns true if nothing is
// pending.
func (a *Activity) AwaitsFrames() bool {
	for id := range a.Pending {
		if !a.inFrames[id] {
			return false
		}
	}
	return true
}

// AwaitPages waits a moment for the pages of windows that were opened since an event, because Chrome reports them
// later.
func (a *Activity) AwaitPages(v *Visit, since int64) {
	if len(a.windows) == 0 {
		return
	}
	Await(v, pagesTime, func() bool {
		n := 0
		for _, t := range v.Keeper.Tracker.All {
			if t.Kind == "page" && t.Opener == v.Page.ID && t.Appeared >= since {
				n++
			}
		}
		return n >= len(a.windows)
	})
}

// AwaitDownload waits a moment for the download that a navigation without a document may have become. Chrome reports
// the download after the end of the request.
func (a *Activity) AwaitDownload(v *Visit) {
	if !a.givenUp || a.Navigated || len(a.order) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(v.Ctx, pagesTime)
	defer cancel()
	_ = v.Keeper.Events.AwaitRecords(ctx, func() bool { a.Read(v); return len(a.order) > 0 })
}

// pagesTime is how long to wait for the page of a window, or for a download.
const pagesTime = 150 * time.Millisecond

// AwaitRequests waits until no request is pending, or a dialog blocks the page. It returns false if the time is up.
func (v *Visit) AwaitRequests(a *Activity, until time.Time) bool {
	ctx, cancel := context.WithDeadline(v.Ctx, until)
	defer cancel()
	err := v.Keeper.Events.AwaitRecords(ctx, func() bool {
		a.Read(v)
		return len(a.Pending) == 0 || v.Dialog() != nil
	})
	return err == nil && time.Now().Before(until)
}

// Causes adds to caused what the events and the list of targets show, except what was reported before.
func (v *Visit) Causes(l *Ledger, caused *Caused, a *Activity, since int64) {
	v.Keeper.Mux.Lock()
	if open := v.Page.Root().Dialog; open != nil {
		caused.Dialog = &ShownDialog{open.Type, open.Message}
	}
	windows := a.windows
	for _, t := range v.Keeper.Tracker.All {
		if t.Kind != "page" || t.Opener != v.Page.ID || t.Appeared < since || l.told[t.ID] ||
			!v.Keeper.Owners.CanUse(v.By, t) {
			continue
		}
		l.told[t.ID] = true
		url := t.URL
		if url == "" || url == api.BlankURL && len(windows) > 0 {
			url = strings.Join(windows[:min(len(windows), 1)], "")
		}
		windows = windows[min(len(windows), 1):]
		caused.NewPages = append(caused.NewPages, newPage{t.ID, url})
	}
	maps.DeleteFunc(l.told, func(id string, _ bool) bool { return v.Keeper.Tracker.ByID[id] == nil })
	v.Keeper.Mux.Unlock()
	for _, of := range slices.Sorted(maps.Keys(a.refused)) {
		why := a.refused[of]
		if why == api.NoLogin && !v.Keeper.Owners.AsksLogin(v.owner, of) {
			continue // the server takes another kind of login
		}
		if remedy := v.Keeper.Owners.Remedy(v.Ctx, v.By, of, why); remedy != "" {
			line := strings.NewReplacer(":\n", ": ", "\n", " and ").Replace(remedy)
			v.Warn("%s was not accepted (%s): %s", of, why, line)
		}
	}
	caused.Failed, caused.Errors, caused.Frames = few(a.failed), few(a.errors), few(a.Frames)
	if !strings.HasPrefix(l.Of, "upload ") { // an upload gives the chooser its files, or says why not
		caused.Chooser = a.chooser
	}
	if caused.Dialog == nil {
		caused.Answered = few(a.dialogs)
	}
	for _, id := range a.order {
		if v.saves && len(a.order) == 1 {
			break
		}
		text := a.downloads[id]
		earlier := l.begun[id]
		if earlier.name != "" && !strings.HasPrefix(text, `"`) {
			text = earlier.name + ": " + text
		}
		if earlier.act > 0 && earlier.act != l.Acts {
			text = fmt.Sprintf("%s (of act %d, %s)", text, earlier.act, earlier.of)
		}
		if delete(l.begun, id); strings.HasSuffix(text, underWay) {
			l.begun[id] = download{strings.TrimSuffix(text, underWay), l.Of, l.Acts}
		}
		caused.Downloads = append(caused.Downloads, text)
	}
	caused.Downloads = first(caused.Downloads, 10)
}

// AddPending adds the URLs that the page is still loading.
func (c *Caused) AddPending(urls map[string]string) {
	for _, url := range urls {
		c.Pending = append(c.Pending, Clip(url, 160))
	}
	slices.Sort(c.Pending)
	c.Pending = few(c.Pending)
}

// AddFrame adds the address to which a frame went, unless it is in told.
func (c *Caused) AddFrame(url string, told []string) {
	if url = Clip(url, 160); !slices.Contains(told, url) && !slices.Contains(c.Frames, url) {
		c.Frames = append(c.Frames, url)
	}
}

// None reports whether nothing was caused.
func (c *Caused) None() bool {
	lines := slices.Concat(c.Failed, c.Errors, c.Answered, c.Downloads, c.Frames, c.Pending)
	return len(lines)+len(c.NewPages) == 0 && c.Dialog == nil && c.NotSettled == "" && c.Chooser == ""
}

// Ledger returns the ledger of the page.
func (v *Visit) Ledger() *Ledger {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.ledgers[v.Page]
	if l == nil {
		for t := range v.ledgers {
			if t.Closed {
				delete(v.ledgers, t)
			}
		}
		l = &Ledger{turn: make(chan struct{}, 1), Methods: map[string]string{}, told: map[string]bool{},
			begun: map[string]download{}}
		v.ledgers[v.Page] = l
	}
	return l
}

// lateFunction is the function of page.js that returns a lateDocument. It reports a change once.
const lateFunction = "late"

// lateDocument is what a document shows, and whether it has changed since the last report.
type lateDocument struct {
	Changed  bool   `json:"changed"`
	Document string `json:"document"`
	URL      string `json:"url"`
	Title    string `json:"title"`
}

// lookBack reads what has happened since the last answer on the page. The changes of the document itself come with
// the next call of page.js.
func (v *Visit) lookBack(l *Ledger) {
	if l.Of == "" || v.Dialog() != nil || !v.Before.none() { // about another page: effects on this one are reported later
		return
	}
	a, caused := NewActivity(v.Page.ID, l.Seq, l.Methods), &Caused{}
	a.Read(v)
	v.Causes(l, caused, a, l.Seq)
	l.Seq = a.Seq
	v.Before = &Before{Act: l.Acts, Of: l.Of}
	if !caused.None() {
		v.Before.Caused = caused
	}
	if v.reads && l.Document != "" { // a page that is being left, or whose script never ends, is not asked
		v.owed = l
	}
}

// addLate adds the late changes of the document to what happened after the last answer.
func (v *Visit) addLate(l *Ledger, now lateDocument) {
	v.Before.Changed = now.Changed
	if moved := now.Document != l.Document || now.URL != l.URL; moved && l.In == "" {
		v.Before.URL, v.Before.Title = Clip(now.URL, 200), now.Title
	} else if moved {
		caused := cmp.Or(v.Before.Caused, &Caused{})
		if caused.AddFrame(now.URL, l.Frames); !caused.None() {
			v.Before.Caused = caused
		}
	}
	l.Document, l.URL, l.Frames = now.Document, now.URL, nil
}

// AskLate asks the document what it has shown since the last answer, unless a call of page.js has returned that
// already.
func (v *Visit) AskLate() {
	l := v.owed
	v.owed = nil
	var now lateDocument
	if l != nil && Leaving(v) == "" && v.Script(l.In, &now, lateFunction) == nil {
		v.addLate(l, now)
	}
}

// few returns the first three lines of a list, as first does.
func few(all []string) []string { return first(all, 3) }

// first returns the first lines of a list, each once and with its count, and says how many more there are.
func first(all []string, most int) (some []string) {
	counts := map[string]int{}
	for _, line := range all {
		if counts[line]++; counts[line] == 1 {
			some = append(some, line)
		}
	}
	for i, line := range some {
		if counts[line] > 1 {
			some[i] = fmt.Sprintf("%s (%d times)", line, counts[line])
		}
		some[i] = Clip(some[i], 200)
	}
	if len(some) > most {
		some = append(some[:most:most], fmt.Sprintf("and %d more", len(some)-most))
	}
	return some
}
