package page

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
)

// Effects are what an act caused. What did not happen is absent.
type Effects struct {
	On     string  `json:"on,omitempty"`     // the element that was acted on
	URL    string  `json:"url,omitempty"`    // of the page, if it has changed
	Title  string  `json:"title,omitempty"`  // of the page at that URL
	Status int     `json:"status,omitempty"` // HTTP, if a new document was loaded
	Caused *Caused `json:"caused,omitempty"`
	Note   string  `json:"note,omitempty"` // such as: no change seen
	Act    int     `json:"act,omitempty"`  // the number of the act, if anything was seen that may go on
}

// Caused is what happened besides a change of the page.
type Caused struct {
	Failed     []string     `json:"failed,omitempty"`   // requests
	Errors     []string     `json:"errors,omitempty"`   // of the console
	Dialog     *shownDialog `json:"dialog,omitempty"`   // that is open now
	Answered   []string     `json:"answered,omitempty"` // dialogs
	Downloads  []string     `json:"downloads,omitempty"`
	NewPages   []NewPage    `json:"new_pages,omitempty"`
	Frames     []string     `json:"frames,omitempty"` // addresses to which frames went
	Pending    []string     `json:"pending,omitempty"`
	NotSettled string       `json:"not_settled,omitempty"` // why the page is still busy
}

// NewPage is a page that the act opened. It is not the current one.
type NewPage struct {
	Target string `json:"target"`
	URL    string `json:"url"`
}

// Before is what came after the answer of an act: it is told with the next answer on that document.
type Before struct {
	Act     int    `json:"act"`               // the number of the act that it is attributed to
	Of      string `json:"of"`                // that act
	Changed bool   `json:"changed,omitempty"` // the document
	URL     string `json:"url,omitempty"`
	Title   string `json:"title,omitempty"`
	*Caused
}

// ledger has what was told of a page. The last act that began is the one to which later effects are attributed.
type ledger struct {
	turn     chan struct{} // holds one while an act is under way: one comes after the other
	acts     int           // so far
	of       string        // the last one
	seq      int64         // the newest event that was told
	in       frame         // where its element was
	document string        // the letters of the document that it ended in, and its URL
	url      string
	methods  map[string]string // of requests under way, by id
	told     map[string]bool   // ids of pages that it opened, and of finished downloads
	names    map[string]string
}

// ended is what the function end of page.js returns.
type ended struct {
	Received, Pressed, Changed, Settled, Checked bool     // Pressed: the press arrived, whatever followed
	Missed, Now                                  *element // Now: the element, if it has another name now
	URL, Title, Document                         string
	Value                                        *string
}

// actionParams are the parameters of an event that an act can cause.
type actionParams struct {
	eventParams
	RequestID        string
	Canceled         bool
	ErrorText        string
	Request          struct{ URL, Method string }
	ExceptionDetails exceptionText
	Entry            logEntry
	Response         struct {
		URL     string
		Status  int
		Headers map[string]string
	}
	Frame struct {
		ID, ParentID, URL string
	} // of a new document
	Message string // of a dialog
	GUID    string
	State   string
	File    string `json:"filePath"`
	Name    string `json:"suggestedFilename"`
}

// eventParams are what events of several kinds have.
type eventParams struct {
	Type    string
	FrameID string
	URL     string // of a navigation or a window
	Args    []logged
}

// activity collects what happened since an event.
type activity struct {
	page      string // the id of the target
	seq       int64
	asked     bool              // a request was sent
	navigated bool              // the page has a new document
	parsed    bool              // it has all of its elements
	dialogs   []string          // that were opened
	pending   map[string]string // URLs of requests that the page waits for, by id, or of the next document, by frame
	loading   map[string]string // URLs of all requests under way
	methods   map[string]string
	status    int  // of the last document of the page itself
	login     bool // its server asked for one
	failed    []string
	errors    []string
	frames    []string          // addresses of frames that have a new document
	windows   []string          // addresses of windows that scripts or links opened
	downloads map[string]string // by id: the name and state, or the path
	order     []string          // of downloads
}

// newActivity returns that of a page since an event. methods are those of the requests that were under way.
func newActivity(page string, seq int64, methods map[string]string) *activity {
	return &activity{page: page, seq: seq, pending: map[string]string{}, loading: map[string]string{},
		methods: methods, downloads: map[string]string{}}
}

var actionEvents = []string{"Network.requestWillBeSent", "Network.responseReceived", "Network.loadingFinished",
	"Network.loadingFailed", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded",
	"Page.javascriptDialogOpening", "Page.frameScheduledNavigation", "Page.frameClearedScheduledNavigation",
	"Page.frameNavigated", "Page.windowOpen", "Page.domContentEventFired", "Browser.downloadWillBegin",
	"Browser.downloadProgress"}

// awaited are the types of requests whose responses change a document.
var awaited = []string{"Document", "XHR", "Fetch", "Script", "Stylesheet"}

// read reads the events since the last time.
func (a *activity) read(v *visit) {
	var records []event.Recorded
	records, a.seq = v.verbs.Events.Records(v.by, v.page.Owner, a.seq, actionEvents)
	for _, e := range records {
		var p actionParams
		_ = json.Unmarshal(e.Params, &p)
		switch {
		case e.Target == a.page || strings.HasPrefix(e.Method, "Browser."):
			a.note(e.Method, e.URL, &p)
		case e.Method == "Network.loadingFinished" || e.Method == "Network.loadingFailed":
			a.over(p.RequestID) // the document of a frame in a process of its own
		}
	}
}

func (a *activity) over(request string) {
	delete(a.pending, request)
	delete(a.loading, request)
	delete(a.methods, request)
}

func (a *activity) note(method, url string, p *actionParams) {
	switch method {
	case "Network.requestWillBeSent":
		a.methods[p.RequestID], a.asked = p.Request.Method, true
		if strings.HasPrefix(p.Request.URL, "data:") { // nothing is loaded for it
			break
		}
		a.loading[p.RequestID] = p.Request.URL
		if slices.Contains(awaited, p.Type) {
			a.pending[p.RequestID] = p.Request.URL
		}
	case "Network.responseReceived":
		if p.Type == "Document" && p.FrameID == a.page {
			a.status, a.login = p.Response.Status, false
			for name := range p.Response.Headers {
				a.login = a.login || strings.EqualFold(name, "WWW-Authenticate")
			}
		}
		if p.Response.Status >= 400 && !isOwnIcon(p.Response.URL) {
			a.failed = append(a.failed, fmt.Sprintf("%d %s %s", p.Response.Status, a.methods[p.RequestID], p.Response.URL))
		}
	case "Network.loadingFinished":
		a.over(p.RequestID)
	case "Network.loadingFailed":
		if !p.Canceled {
			a.failed = append(a.failed, strings.TrimSpace(p.ErrorText+" "+a.methods[p.RequestID]+" "+url))
		}
		a.over(p.RequestID)
	case "Page.frameScheduledNavigation":
		a.pending[p.FrameID] = p.URL
	case "Page.frameClearedScheduledNavigation": // its request was sent, or it is given up
		delete(a.pending, p.FrameID)
	case "Page.frameNavigated":
		if p.Frame.ID == a.page {
			a.navigated, a.parsed, a.frames = true, false, nil
		} else if !a.navigated && p.Frame.URL != api.BlankURL {
			a.frames = append(a.frames, clip(p.Frame.URL, 160))
		}
	case "Page.domContentEventFired":
		a.parsed = true
	case "Page.windowOpen":
		a.windows = append(a.windows, p.URL)
	case "Page.javascriptDialogOpening":
		a.dialogs = append(a.dialogs, p.Type+" "+quote(clip(p.Message, 160)))
	case "Runtime.exceptionThrown":
		a.errors = append(a.errors, quote(clip(p.ExceptionDetails.String(), 160)))
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "assert" {
			a.errors = append(a.errors, quote(clip(consoleText(p.Args), 160)))
		}
	case "Log.entryAdded":
		if p.Entry.Level == "error" && p.Entry.Source != "network" {
			a.errors = append(a.errors, quote(clip(p.Entry.Text, 160)))
		}
	case "Browser.downloadWillBegin":
		a.order = append(a.order, p.GUID)
		a.downloads[p.GUID] = quote(p.Name) + " (under way)"
	case "Browser.downloadProgress":
		if p.State == "completed" && a.downloads[p.GUID] == "" { // it began before
			a.order = append(a.order, p.GUID)
		}
		if p.State == "completed" {
			a.downloads[p.GUID] = strings.TrimPrefix(strings.TrimSuffix(a.downloads[p.GUID], " (under way)")+": "+p.File, ": ")
		}
	}
}

func isOwnIcon(url string) bool { return strings.HasSuffix(url, "/favicon.ico") }

// settleTime bounds how long an act waits for what it caused, quietTime how long for a document that changes without a
// request.
const settleTime, quietTime = 5 * time.Second, 600 * time.Millisecond

// An act returns when its document has been quiet for quiet milliseconds after an effect, and for still ones while
// nothing was seen but what the element itself shows.
const quiet, still = 35, 150

// begun is what the function begin of page.js returns.
type begun struct {
	element
	X, Y float64
	To   struct {
		element
		X, Y float64
	} // of a drag
	Picker, Select, Editable, Checked bool
	Resolved, Document, URL           string
	Failure                           *failure
	in                                frame
	around                            []frame // the documents around it, which swallow pointer events
	seq                               int64
	verb                              string
	settle                            *int // milliseconds; nil: quiet and still
}

// lastSeq returns the number of the newest event of the page's session.
func (v *visit) lastSeq() int64 {
	v.verbs.Mux.Lock()
	defer v.verbs.Mux.Unlock()
	return v.verbs.Events.Journals.LastSeqOf(v.page.Owner)
}

// finish waits until what an act caused is over, and returns it. Start is what began it, fault the error of its input.
func (v *visit) finish(start *begun, fault *api.Error) (*Effects, *ended, *api.Error) {
	e := &Effects{Note: start.Resolved}
	if start.Ref != "" {
		e.On = start.element.String()
		v.subject = fmt.Sprintf("%s %s at %s", start.Role, quote(clip(start.Name, 80)), clip(start.URL, 200))
	}
	caused := &Caused{}
	a, last := newActivity(v.page.ID, start.seq, v.ledger().methods), &ended{Document: start.Document, URL: start.URL}
	began := time.Now()
	until, in := began.Add(settleTime), start.in
	rest := map[string]any{"quiet": quiet, "still": still}
	switch {
	case start.settle != nil:
		rest = map[string]any{"quiet": *start.settle, "still": *start.settle}
	case v.inner:
		rest["still"] = quiet
	}
	err := fault
	if err == nil && !(start.settle != nil && *start.settle == 0) {
		defer v.hasten(in, start.seq)()
	}
	for turn := 0; err == nil; turn++ {
		now := ended{}
		rest["timeout"] = max(min(time.Until(until), quietTime).Milliseconds(), 50)
		if err = v.script(in, &now, "end", rest); err != nil {
			if !v.canRetry(in, err) || time.Now().After(until) {
				break
			}
			in, err = "", nil // the frame may be gone, too
			continue
		}
		now.Now = cmp.Or(now.Now, last.Now)
		now.Received, now.Pressed = now.Received || last.Received, now.Pressed || last.Pressed
		now.Changed = now.Changed || last.Changed || now.Document != start.Document
		if last = &now; now.Missed != nil {
			return e, last, nil
		}
		if a.read(v); start.settle != nil && *start.settle == 0 {
			break
		}
		rest["still"] = rest["quiet"]
		if a.navigated && now.Document == start.Document && in == "" && time.Now().Before(until) {
			continue // it was replaced after the script ended
		}
		if len(a.pending) == 0 && (now.Settled || time.Since(began) > quietTime) {
			if !now.Settled {
				caused.NotSettled = a.why()
			}
			break
		}
		if !v.awaitRequests(a, until) {
			caused.NotSettled = a.why()
			break
		}
	}
	if err != nil && !isDialog(err) {
		return e, last, err
	}
	if err != nil {
		last.Changed = true
		a.read(v)
	}
	v.describe(e, caused, start, a, last)
	return e, last, nil
}

// hasten lets page.js know of the first effect that its document does not show, such as a request or a new page, until
// the function that it returns is called.
func (v *visit) hasten(in frame, since int64) (stop func()) {
	ctx, cancel := context.WithCancel(v.ctx)
	done := make(chan struct{})
	a := newActivity(v.page.ID, since, map[string]string{})
	go func() {
		defer close(done)
		if v.verbs.Events.AwaitRecords(ctx, func() bool { a.read(v); return a.seen() }) == nil && v.dialog() == nil {
			_ = v.script(in, nil, "effect")
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// seen reports whether anything happened.
func (a *activity) seen() bool {
	return a.asked || a.navigated || len(a.pending)+len(a.windows)+len(a.order)+len(a.dialogs)+len(a.errors)+len(a.frames) > 0
}

// awaitRequests waits until no request is pending, or a dialog blocks the page. It returns false if the time is up.
func (v *visit) awaitRequests(a *activity, until time.Time) bool {
	ctx, cancel := context.WithDeadline(v.ctx, until)
	defer cancel()
	err := v.verbs.Events.AwaitRecords(ctx, func() bool {
		a.read(v)
		return len(a.pending) == 0 || v.dialog() != nil
	})
	return err == nil && time.Now().Before(until)
}

// why says what a page still does.
func (a *activity) why() string {
	for _, url := range a.pending {
		if len(a.pending) > 1 {
			return fmt.Sprintf("%d requests are under way, one to %s", len(a.pending), clip(url, 120))
		}
		return "a request is under way: " + clip(url, 120)
	}
	return "the document changes all the time"
}

// describe adds to the effects what the events and the list of targets say, and notes in the ledger what was told.
func (v *visit) describe(e *Effects, caused *Caused, start *begun, a *activity, last *ended) {
	l := v.ledger()
	v.causes(l, caused, a, start.seq)
	if last.Document != start.Document || last.URL != start.URL {
		e.URL, e.Title = clip(last.URL, 200), last.Title
		if last.Document != start.Document {
			e.Status = a.status
		}
	}
	if !caused.none() {
		e.Caused = caused
	}
	if !last.Changed && !a.asked && e.quiet() {
		note := "no change seen"
		if start.settle == nil || *start.settle > 0 {
			waited := still
			if start.settle != nil {
				waited = *start.settle
			} else if v.inner {
				waited = quiet
			}
			note = fmt.Sprintf("no change seen in %d ms; what comes later is in the next answer", waited)
		}
		e.addNote(note)
	}
	for _, page := range caused.NewPages {
		e.addNote("page.tabs activate " + page.Target[:min(len(page.Target), 8)] + " follows the new page")
	}
	if last.Now != nil {
		e.addNote("it is now " + last.Now.String())
	}
	l.of, l.in, l.seq = strings.TrimSpace(start.verb+" "+e.On), start.in, a.seq
	l.document, l.url = last.Document, last.URL
	e.Act = l.acts
}

// causes collects what the events and the list of targets say, but for what was told.
func (v *visit) causes(l *ledger, caused *Caused, a *activity, since int64) {
	v.verbs.Mux.Lock()
	if open := v.page.Root().Dialog; open != nil {
		caused.Dialog = &shownDialog{open.Type, open.Message}
	}
	windows := a.windows
	for _, t := range v.verbs.Tracker.All {
		if t.Kind != "page" || t.Opener != v.page.ID || t.Appeared < since || l.told[t.ID] || !v.verbs.Owners.CanUse(v.by, t) {
			continue
		}
		l.told[t.ID] = true
		url := t.URL
		if url == "" || url == api.BlankURL && len(windows) > 0 {
			url = strings.Join(windows[:min(len(windows), 1)], "")
		}
		windows = windows[min(len(windows), 1):]
		caused.NewPages = append(caused.NewPages, NewPage{t.ID, url})
	}
	v.verbs.Mux.Unlock()
	caused.Failed, caused.Errors, caused.Frames = few(a.failed), few(a.errors), few(a.frames)
	if caused.Dialog == nil {
		caused.Answered = few(a.dialogs)
	}
	for _, id := range a.order {
		text := a.downloads[id]
		if name := l.names[id]; name != "" && !strings.HasPrefix(text, `"`) {
			text = name + ": " + text
		}
		l.names[id], _, _ = strings.Cut(text, " (under way)")
		caused.Downloads = append(caused.Downloads, text)
	}
}

func (c *Caused) none() bool {
	return len(c.Failed)+len(c.Errors)+len(c.Answered)+len(c.Downloads)+len(c.NewPages)+len(c.Frames)+len(c.Pending) == 0 &&
		c.Dialog == nil && c.NotSettled == ""
}

// ledger returns that of the page.
func (v *visit) ledger() *ledger {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.ledgers[v.page]
	if l == nil {
		for t := range v.ledgers {
			if t.Closed {
				delete(v.ledgers, t)
			}
		}
		l = &ledger{turn: make(chan struct{}, 1), methods: map[string]string{}, told: map[string]bool{}, names: map[string]string{}}
		v.ledgers[v.page] = l
	}
	return l
}

// late returns what came after the last answer on the page, nil if nothing did. It is told once.
func (v *visit) late(l *ledger) *Before {
	if l.of == "" || v.dialog() != nil {
		return nil
	}
	a := newActivity(v.page.ID, l.seq, l.methods)
	a.read(v)
	b := &Before{Act: l.acts, Of: l.of, Caused: &Caused{}}
	v.causes(l, b.Caused, a, l.seq)
	l.seq = a.seq
	var now struct {
		Changed              bool
		Document, URL, Title string
	}
	// A page that is left, or whose script never ends, is not asked.
	if v.reads && l.document != "" && v.script(l.in, &now, "late") == nil {
		b.Changed = now.Changed
		if now.Document != l.document || now.URL != l.url {
			b.URL, b.Title, l.document, l.url = clip(now.URL, 200), now.Title, now.Document, now.URL
		}
	}
	if b.none() {
		b.Caused = nil
		if !b.Changed && b.URL == "" {
			return nil
		}
	}
	return b
}

// quiet reports whether nothing happened besides what the document shows.
func (e *Effects) quiet() bool { return e.URL == "" && e.Caused == nil }

// noChange matches the note of an act that nothing was seen of.
var noChange = pattern(`no change seen( in \d+ ms; what comes later is in the next answer)?`)

func (e *Effects) addNote(note string) { e.Note = strings.Trim(e.Note+"; "+note, "; ") }

// few returns the first lines of a list, each once, with its count.
func few(all []string) (some []string) {
	const most = 3
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
		some[i] = clip(some[i], 200)
	}
	if len(some) > most {
		some = append(some[:most:most], fmt.Sprintf("and %d more", len(some)-most))
	}
	return some
}
