package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Effects are what an action caused. What did not happen is absent.
type Effects struct {
	// The element that was acted on.
	On string `json:"on,omitempty"`
	// Address of the page, if that has changed.
	URL string `json:"url,omitempty"`
	// Title of the page at that address.
	Title string `json:"title,omitempty"`
	// HTTP status, if a new document was loaded.
	Status int `json:"status,omitempty"`
	// What else happened, if anything did.
	Caused *Caused `json:"caused,omitempty"`
	// A remark, such as: no change seen, neither in the document nor by a request.
	Note string `json:"note,omitempty"`
}

// Caused is what happened besides a change of the page.
type Caused struct {
	// Requests that failed.
	Failed []string `json:"failed,omitempty"`
	// New errors of the console.
	Errors []string `json:"errors,omitempty"`
	// A dialog that is open now and blocks the page.
	Dialog *Dialog `json:"dialog,omitempty"`
	// Dialogs that were answered by the option on-dialog, or closed.
	Answered []string `json:"answered,omitempty"`
	// Files that were downloaded, with their paths.
	Downloads []string `json:"downloads,omitempty"`
	// Pages that were opened.
	NewPages []NewPage `json:"new_pages,omitempty"`
	// Why the page is still busy.
	NotSettled string `json:"not_settled,omitempty"`
}

// Dialog is a JavaScript dialog.
type Dialog struct {
	// Kind: alert, confirm, prompt or beforeunload.
	Type string `json:"type"`
	// Text of the page.
	Message string `json:"message"`
}

// NewPage is a page that the action opened. It is not the current one: name it by the option target.
type NewPage struct {
	// Id for the option target.
	Target string `json:"target"`
	// Its address.
	URL string `json:"url"`
}

// ended is what the function end of page.js returns.
type ended struct {
	Received, Pressed, Changed, Settled, Checked bool     // Pressed: the press arrived, whatever followed
	Missed, Now                                  *element // Now: the element, if it has another name now
	URL, Title, Document                         string
	Value                                        *string
}

// event is a record of cdp.events, as far as it matters here.
type event struct {
	Seq    int64
	Target string
	Method string
	URL    string
}

// actionEvent is a record of what an action can cause.
type actionEvent struct {
	event
	Params struct {
		eventParams
		RequestID        string
		Canceled         bool
		ErrorText        string
		Request          struct{ URL, Method string }
		ExceptionDetails exceptionText
		Entry            logEntry
		Response         struct {
			URL    string
			Status int
		}
		Frame   struct{ ID string } // of a new document
		Message string              // of a dialog
		GUID    string
		State   string
		File    string `json:"filePath"`
		Name    string `json:"suggestedFilename"`
	}
}

// eventParams are what events of several kinds have.
type eventParams struct {
	Type    string
	FrameID string
	URL     string // of a navigation
	Args    []logged
}

// logged is a value in a message of the console.
type logged struct {
	Value       any
	Description string
}

type exceptionText struct {
	Text      string
	Exception struct{ Description string }
}

// String returns the first line of an exception.
func (e exceptionText) String() string {
	text, _, _ := strings.Cut(e.Exception.Description, "\n")
	return cmp.Or(text, e.Text)
}

type logEntry struct{ Source, Level, Text, URL string }

// activity collects what happened since an event.
type activity struct {
	seq       int64
	asked     bool              // a request was sent
	navigated bool              // the page has a new document
	dialogs   []string          // that were opened
	pending   map[string]string // URLs of requests that the page waits for, by id, or of the next document, by frame
	methods   map[string]string
	status    int // of the last document of the page itself
	failed    []string
	errors    []string
	downloads map[string]string // by id: the state, or the path
	order     []string          // of downloads
}

func newActivity(seq int64) *activity {
	return &activity{seq: seq, pending: map[string]string{}, methods: map[string]string{}, downloads: map[string]string{}}
}

var actionEvents = []string{"Network.requestWillBeSent", "Network.responseReceived", "Network.loadingFinished",
	"Network.loadingFailed", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded",
	"Page.javascriptDialogOpening", "Page.frameScheduledNavigation", "Page.frameClearedScheduledNavigation",
	"Page.frameNavigated", "Browser.downloadWillBegin", "Browser.downloadProgress"}

// awaited are the types of requests whose responses change a document.
var awaited = []string{"Document", "XHR", "Fetch", "Script", "Stylesheet"}

// read reads the events since the last time.
func (a *activity) read(b *browser) error {
	var list struct {
		Events  []actionEvent
		LastSeq int64 `json:"last_seq"`
	}
	if err := b.cdpAll("events", map[string]any{"match": actionEvents, "since": a.seq, "limit": 1000}, &list); err != nil {
		return err
	}
	a.seq = list.LastSeq
	for _, e := range list.Events {
		switch {
		case e.Target == b.target || strings.HasPrefix(e.Method, "Browser."):
			a.note(b, e)
		case e.Method == "Network.loadingFinished" || e.Method == "Network.loadingFailed":
			delete(a.pending, e.Params.RequestID) // the document of a frame in a process of its own
		}
	}
	return nil
}

func (a *activity) note(b *browser, e actionEvent) {
	p := &e.Params
	switch e.Method {
	case "Network.requestWillBeSent":
		a.methods[p.RequestID], a.asked = p.Request.Method, true
		if slices.Contains(awaited, p.Type) && !strings.HasPrefix(p.Request.URL, "data:") { // nothing is loaded for it
			a.pending[p.RequestID] = p.Request.URL
		}
	case "Network.responseReceived":
		if p.Type == "Document" && p.FrameID == b.target {
			a.status = p.Response.Status
		}
		if p.Response.Status >= 400 && !isOwnIcon(p.Response.URL) {
			a.failed = append(a.failed, fmt.Sprintf("%d %s %s", p.Response.Status, a.methods[p.RequestID], p.Response.URL))
		}
	case "Network.loadingFinished":
		delete(a.pending, p.RequestID)
	case "Network.loadingFailed":
		delete(a.pending, p.RequestID)
		if !p.Canceled {
			a.failed = append(a.failed, strings.TrimSpace(p.ErrorText+" "+a.methods[p.RequestID]+" "+e.URL))
		}
	case "Page.frameScheduledNavigation":
		a.pending[p.FrameID] = p.URL
	case "Page.frameClearedScheduledNavigation": // its request was sent, or it is given up
		delete(a.pending, p.FrameID)
	case "Page.frameNavigated":
		a.navigated = a.navigated || p.Frame.ID == b.target
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
		if a.downloads[p.GUID] != "" && p.State == "completed" {
			a.downloads[p.GUID] = strings.TrimSuffix(a.downloads[p.GUID], " (under way)") + ": " + p.File
		}
	}
}

func isOwnIcon(url string) bool { return strings.HasSuffix(url, "/favicon.ico") }

// consoleText returns what was logged.
func consoleText(args []logged) string {
	var words []string
	for _, arg := range args {
		text, _, _ := strings.Cut(arg.Description, "\n")
		if arg.Value != nil {
			text = fmt.Sprint(arg.Value)
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

func clip(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return strings.ToValidUTF8(s[:size], "") + "…"
}

// settleTime bounds how long an action waits for what it caused, quietTime how long for a document that changes without
// a request.
const settleTime, quietTime = 5 * time.Second, 600 * time.Millisecond

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
}

// finish waits until what an action caused is over, and returns it. Start is what began it, fault the error of its
// input.
func (b *browser) finish(start *begun, fault error) (*Effects, *ended, error) {
	e := &Effects{Note: start.Resolved}
	if start.Ref != "" {
		e.On = start.element.String()
	}
	caused := &Caused{}
	a, last := newActivity(start.seq), &ended{Document: start.Document, URL: start.URL}
	began := time.Now()
	until, in := began.Add(settleTime), start.in
	err := fault
	for turn := 0; err == nil; turn++ {
		now := ended{}
		limit := min(time.Until(until), time.Second)
		if _, err = b.script(in, &now, "end", map[string]any{"timeout": max(limit.Milliseconds(), 50),
			"quiet": min(20+40*turn, 120)}); err != nil {
			if !canRetry(in, err) || time.Now().After(until) {
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
		if err = a.read(b); err != nil {
			break
		}
		if a.navigated && now.Document == start.Document && time.Now().Before(until) {
			continue // it was replaced after the script ended
		}
		if now.Settled && len(a.pending) == 0 {
			break
		}
		if time.Now().After(until) || len(a.pending) == 0 && time.Since(began) > quietTime {
			caused.NotSettled = a.why()
			break
		}
	}
	if err != nil && !isDialog(err) {
		return e, last, err
	}
	if err != nil {
		last.Changed = true
		if readErr := a.read(b); readErr != nil {
			return e, last, readErr
		}
	}
	return e, last, b.describe(e, caused, start, a, last)
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

// describe adds to the effects what the events and the list of targets say.
func (b *browser) describe(e *Effects, caused *Caused, start *begun, a *activity, last *ended) error {
	for turn := 0; ; turn++ {
		targets, err := b.targets()
		if err != nil {
			return err
		}
		caused.NewPages = nil
		blank := false
		for _, t := range targets {
			switch {
			case t.ID == b.target:
				caused.Dialog = t.Dialog
			case t.Type == "page" && t.Opener == b.target && t.Since >= start.seq:
				caused.NewPages = append(caused.NewPages, NewPage{t.ID, t.URL})
				blank = blank || t.URL == ""
			}
		}
		if !blank || turn == 10 || caused.Dialog != nil {
			break
		}
		if err := b.pause(); err != nil { // its address follows
			return err
		}
	}
	if last.Document != start.Document || last.URL != start.URL {
		e.URL, e.Title = clip(last.URL, 200), last.Title
		if last.Document != start.Document {
			e.Status = a.status
		}
	}
	caused.Failed, caused.Errors = few(a.failed), few(a.errors)
	if caused.Dialog == nil {
		caused.Answered = few(a.dialogs)
	}
	for _, id := range a.order {
		caused.Downloads = append(caused.Downloads, a.downloads[id])
	}
	if len(caused.Failed)+len(caused.Errors)+len(caused.Answered)+len(caused.Downloads)+len(caused.NewPages) > 0 ||
		caused.Dialog != nil || caused.NotSettled != "" {
		e.Caused = caused
	}
	if !last.Changed && !a.asked && e.quiet() {
		e.addNote("no change seen")
	}
	if last.Now != nil {
		e.addNote("it is now " + last.Now.String())
	}
	return nil
}

// quiet reports whether nothing happened besides what the document shows.
func (e *Effects) quiet() bool { return e.URL == "" && e.Caused == nil }

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
