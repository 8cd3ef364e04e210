package act

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
)

// Effects are what an act caused. Fields of effects that did not happen are absent.
type Effects struct {
	On     string       `json:"on,omitempty"`     // the element that was acted on
	URL    string       `json:"url,omitempty"`    // the page's URL, if it has changed
	Title  string       `json:"title,omitempty"`  // the title of the page at that URL
	Status int          `json:"status,omitempty"` // HTTP, if a new document was loaded
	Caused *page.Caused `json:"caused,omitempty"`
	Note   string       `json:"note,omitempty"` // such as: no change seen
	Act    int          `json:"act,omitempty"`  // the number of the act, if its effects may continue
}

// ended is the result of the function end of page.js.
type ended struct {
	Received, Changed, Settled bool
	Around                     bool          // something other than the element has changed
	Unclicked                  string        // why no click followed the press
	Missed, Now                *page.Element // Now: the element, if its name has changed
	URL, Title, Document       string
	Value                      *string
	Open                       bool  // the element shows a list
	Checked                    *bool // nil: it does not say
}

// settleTime bounds how long an act waits for its effects. quietTime bounds how long it waits for a document that
// changes without a request.
const settleTime, quietTime = 5 * time.Second, 600 * time.Millisecond

// An act returns when its document has been quiet for quiet milliseconds after an effect, or for still milliseconds
// if nothing was seen except what the element itself shows.
const quiet, still = 35, 150

// pace returns both times for an act. A step of do does not wait for late effects: the steps after it do.
func pace(v *page.Visit) (afterEffect, unchanged int) {
	switch {
	case v.Settle != nil:
		return *v.Settle, *v.Settle
	case v.Inner:
		return quiet, quiet
	}
	return quiet, still
}

// begun is the result of the function begin of page.js.
type begun struct {
	page.Element
	X, Y float64
	way
	field
	Checked                 *bool  // nil: it does not say
	Hovers                  bool   // the element reacts to the pointer being over it before the click
	Opener                  string // how an element that is not a file input takes files: [pressed], or dropped on it
	Proxy                   bool   // an editor draws elsewhere what is typed into the field
	Accept                  string // the types that a file input asks for
	Hidden                  bool   // the page is in the background
	Resolved, Document, URL string
	Failure                 *page.Failure
	in                      page.Frame
	around                  []page.Frame // the documents around it, which swallow pointer events
	seq                     int64
	verb                    string
	expected                bool // only the element is expected to change
}

// way describes a drag.
type way struct {
	Spot spot // where the element is
	To   struct {
		page.Element
		X, Y, Width, Height float64
		Spot                spot
		Far                 bool // the target is in the view only when the element is not
	}
	Steps int    // the number of items that the element moves by
	Sorts bool   // the items belong to a sortable list
	Grip  string // the reference of the part by which the element is dragged; "" if there is none
	Keys  string // what the element says about keys
}

// end ends the act in page.js, unless it has ended.
func (start *begun) end(v *page.Visit, in page.Frame, rest page.Object) (now ended, err *api.Error) {
	if start.Ended != nil {
		now, start.Ended = *start.Ended, nil
		return now, nil
	}
	return now, v.Script(in, &now, "end", rest)
}

// on returns the element that is acted on, "" for an act on the page.
func (s *begun) on() string {
	if s.Ref == "" {
		return ""
	}
	return s.Element.String()
}

// lastSeq returns the number of the newest event of the page's session.
func lastSeq(v *page.Visit) int64 {
	return page.Locked(v, func() int64 { return v.Keeper.Events.Journals.LastSeqOf(v.Page.Owner) })
}

// finish waits until the effects of an act are over, and returns them. start is the begun act, fault the error of its
// input.
func finish(v *page.Visit, start *begun, fault *api.Error) (*Effects, *ended, *api.Error) {
	v.Ledger().Begin(strings.TrimSpace(start.verb+" "+start.on()), start.in, start.seq)
	e, caused := &Effects{Note: start.Resolved, On: start.on()}, &page.Caused{}
	a, last := page.NewActivity(v.Page.ID, start.seq, v.Ledger().Methods), &ended{Document: start.Document, URL: start.URL}
	afterEffect, unchanged := pace(v)
	longer := 2 * time.Duration(afterEffect-quiet) * time.Millisecond // an effect may arrive at the end of the first wait
	began, in := time.Now(), start.in
	until := began.Add(v.Within(settleTime + longer))
	defer page.StayUntil(v, until)()
	rest := page.Object{"quiet": afterEffect, "still": unchanged}
	if page.Interrupted(fault) { // the input itself may have caused it
		fault = nil
	}
	err := fault
	if err == nil && unchanged > 0 {
		defer hasten(v, in, start.seq)()
	}
	for turn := 0; err == nil; turn++ {
		var now ended
		rest["timeout"] = max(min(time.Until(until), quietTime+longer).Milliseconds(), 50)
		if now, err = start.end(v, in, rest); err != nil {
			if !v.CanRetry(in, err) || time.Now().After(until) {
				break
			}
			in, err = present(v, in), nil
			continue
		}
		now.Now, now.Unclicked = cmp.Or(now.Now, last.Now), cmp.Or(now.Unclicked, last.Unclicked)
		now.Received, now.Around = now.Received || last.Received, now.Around || last.Around
		now.Changed = now.Changed || last.Changed || now.Document != start.Document
		if last = &now; now.Missed != nil {
			return e, last, nil
		}
		if a.Read(v); unchanged == 0 {
			break
		}
		rest["still"] = rest["quiet"]
		if a.Navigated && now.Document == start.Document && in == "" && time.Now().Before(until) {
			continue // it was replaced after the script ended
		}
		if len(a.Pending) == 0 && (now.Settled || time.Since(began) > quietTime+longer) {
			if !now.Settled {
				caused.NotSettled = why(v, a)
			}
			break
		}
		if !v.AwaitRequests(a, until) {
			caused.NotSettled = why(v, a)
			break
		}
	}
	if in != start.in && !a.Navigated { // the frame is gone, but the page stayed
		last.Document, last.URL, last.Changed = start.Document, start.URL, true
	}
	switch url := page.Leaving(v); {
	case err == nil:
	case isClosed(v, err):
		e.addNote("the page was closed; page.tabs lists those that are left")
		return e, &ended{Received: true, Changed: true}, nil
	case page.IsDialog(err):
		last.Changed = true
		a.Read(v)
	case url != "" && err.Code == api.CodeTimeout: // StayUntil has ended the wait
		caused.NotSettled = why(v, a)
		a.Read(v)
	case fault == nil: // tell the caller not to send it again
		sent := *err
		sent.Message += "; the " + start.verb + " was sent before"
		return e, last, &sent
	default:
		return e, last, err
	}
	describe(v, e, caused, start, a, last)
	return e, last, nil
}

// hasten tells page.js about the first effect that its document does not show, such as a request or a new page. It
// does so until the returned function is called.
func hasten(v *page.Visit, in page.Frame, since int64) (stop func()) {
	ctx, cancel := context.WithCancel(v.Ctx)
	done := make(chan struct{})
	a := page.NewActivity(v.Page.ID, since, map[string]string{})
	own := *v // the caller keeps using v
	own.Ctx = ctx
	go func() {
		defer close(done)
		if v.Keeper.Events.AwaitRecords(ctx, func() bool { a.Read(v); return a.Seen() }) == nil && v.Dialog() == nil {
			_, _ = own.Call(in, verb.ScriptCall{Function: "effect"})
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// present returns a frame, or the page if the frame is gone with its document.
func present(v *page.Visit, in page.Frame) page.Frame {
	if _, _, gone := v.At(in); gone != nil {
		return ""
	}
	return in
}

// why says why a page has not settled.
func why(v *page.Visit, a *page.Activity) string {
	if url := page.Leaving(v); url != "" {
		return "a navigation to " + page.Clip(url, 160) + " is under way, and its server has not responded"
	}
	return busy(a)
}

// busy says what a page is still doing.
func busy(a *page.Activity) string {
	for _, url := range a.Pending {
		if len(a.Pending) > 1 {
			return fmt.Sprintf("%d requests are under way, one to %s", len(a.Pending), page.Clip(url, 120))
		}
		return "a request is under way: " + page.Clip(url, 120)
	}
	return "the document keeps changing"
}

// describe adds to the effects what the events and the list of targets show, and records in the ledger what was
// reported.
func describe(v *page.Visit, e *Effects, caused *page.Caused, start *begun, a *page.Activity, last *ended) {
	l := v.Ledger()
	a.AwaitPages(v, start.seq)
	a.AwaitDownload(v)
	v.Causes(l, caused, a, start.seq)
	if moved := last.Document != start.Document || last.URL != start.URL; moved && start.in != "" && !a.Navigated {
		caused.AddFrame(last.URL, nil)
	} else if moved {
		e.URL, e.Title = page.Clip(last.URL, 200), last.Title
		if last.Document != start.Document {
			e.Status = a.Status
		}
	}
	if !caused.None() {
		e.Caused = caused
	}
	if !last.Changed && !a.Asked && e.quiet() && !v.Inner && !start.expected { // the result of do reports what comes later
		note := "no change seen"
		if _, unchanged := pace(v); unchanged > 0 {
			note += fmt.Sprintf(" in %d ms; what comes later is in the next answer", unchanged)
		}
		e.addNote(note)
	}
	for _, opened := range caused.NewPages {
		e.addNote("page.tabs activate " + opened.Target[:min(len(opened.Target), 8)] + " follows the new page")
	}
	if caused.Chooser != "" && caused.Chooser != page.ByPerson {
		e.addNote("page.upload gives files to the chooser that was closed")
	}
	if last.Now != nil {
		e.addNote("it is now " + last.Now.String())
	}
	l.Seq, l.Document, l.URL, l.Frames = a.Seq, last.Document, last.URL, caused.Frames
	e.Act = l.Acts
}

// quiet reports whether nothing happened except what the document shows.
func (e *Effects) quiet() bool { return e.URL == "" && e.Caused == nil }

func (e *Effects) addNote(note string) { e.Note = strings.Trim(e.Note+"; "+note, "; ") }

// Step implements [page.Step].
func (e *Effects) Step() (string, any) {
	rest := e.told()
	if rest.Caused == nil && rest.Note == "" && rest.Status == 0 {
		return e.URL, nil
	}
	return e.URL, rest
}

// told returns what an act caused, without the change of address.
func (e *Effects) told() Effects {
	rest := Effects{Caused: e.Caused, Note: e.Note}
	if e.Status >= 400 {
		rest.Status = e.Status
	}
	return rest
}
