package act

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

type openParams struct {
	URL string `json:"url"`
	New *bool  `json:"new"` // use a new page; otherwise the session's current page, if there is one
}

// opened is the document that a page has opened.
type opened struct {
	URL    string       `json:"url"`
	Title  string       `json:"title"`
	Status int          `json:"status,omitempty"` // HTTP
	Caused *page.Caused `json:"caused,omitempty"`
}

// Step implements [page.Step].
func (o *opened) Step() (string, any) {
	rest := page.Object{}
	if o.Caused != nil {
		rest["caused"] = o.Caused
	}
	if o.Status >= 400 {
		rest["status"] = o.Status
	}
	if len(rest) == 0 {
		return o.URL, nil
	}
	return o.URL, rest
}

// open opens an address and waits until the page can be used.
func open(v *page.Visit, p openParams) (*opened, *api.Error) {
	if p.New == nil || !*p.New {
		switch err := v.FindPage(); {
		case err == nil:
			for turn := 0; ; turn++ {
				from, loader := leftBy(v, true), ""
				o, err := navigate(v, "open", p.URL, from, func(from left) *api.Error {
					return from.navigateTo(v, p.URL, &loader)
				})
				if err != nil || turn == lateReloads || p.URL == from.url || o.URL != from.url || from.led(v, loader) {
					return o, err
				}
			}
		case !err.NoPage || v.Target != "":
			return nil, err
		}
	}
	made, err := v.Keeper.Open(v.Ctx, v.By, v.Scope, api.OpenRequest{URL: p.URL, OnDialog: v.OnDialog, Wait: api.WaitNone})
	if err != nil && !page.IsDialog(err) {
		return nil, loadingError(err)
	}
	if err != nil {
		made.Target = err.Target
	}
	page.Follow(v, made.Target)
	if err := v.FindPage(); err != nil {
		return nil, err
	}
	since := page.Locked(v, func() int64 { return min(v.Page.Appeared, v.Keeper.Events.Journals.LastSeqOf(v.Page.Owner)) })
	return navigate(v, "open", p.URL, left{seq: since, none: true}, func(left) *api.Error { return nil })
}

// navigateTo sends a navigation, and sets loader to its loader. It sends the navigation again if the document that is
// left reloads itself meanwhile.
func (of left) navigateTo(v *page.Visit, to string, loader *string) *api.Error {
	for turn := 0; ; turn++ {
		var done struct{ ErrorText, LoaderID string }
		err := v.Send(api.CallRequest{Target: v.Page.ID, Method: "Page.navigate",
			Params: scan.Marshal(page.Object{"url": to})}, &done)
		*loader = done.LoaderID
		switch {
		case err == nil && done.LoaderID != "" && turn < maxNavigations && of.reloads(v, to, done.LoaderID):
			continue
		case err == nil && done.ErrorText != "" && !of.replaced(v, to):
			err = v.Keeper.CannotOpen(v.Ctx, v.By, v.Page, to, done.ErrorText)
		}
		return err
	}
}

// left is the document that a navigation leaves.
type left struct {
	seq     int64 // its newest event
	none    bool  // the page is new
	commits int   // number of documents that the page has shown so far
	crashed bool
	url     string
}

// leftBy returns the document that the page shows. It first ends what would keep Chrome from showing another
// document: dialogs (a script may open one after the other) and a script that does not end. Once the other document
// has arrived, Chrome accepts no answer to a dialog and ends no script.
func leftBy(v *page.Visit, dialogs bool) left {
	t := v.Page
	for turn := 0; turn <= maxDialogs; turn++ {
		open := page.Locked(v, func() *api.Dialog {
			d := t.Dialog
			if !dialogs || d == nil || d.Type == api.BeforeUnload {
				return nil
			}
			isOther := func(f *target.Target) bool { return f.Kind == "iframe" && f.URL == d.URL && f.Within(t) }
			force := turn == maxDialogs && !slices.ContainsFunc(v.Keeper.Tracker.All, isOther) // another process ends by itself
			v.Keeper.Tracker.Sender.EndDialog(t, force)
			return d
		})
		if open == nil {
			break
		}
		page.Await(v, time.Second, func() bool { return t.Dialog != open })
		page.Await(v, nextDialog, func() bool { return t.Dialog != nil || t.Crashed })
	}
	if page.Leaving(v) == "" {
		v.Keeper.Tracker.Sender.Unstick(t, nil)
	}
	seq := lastSeq(v)
	return page.Locked(v, func() left { return left{seq: seq, commits: t.Commits, crashed: t.Crashed, url: t.URL} })
}

// maxDialogs bounds the dialogs that a document may open one after the other before it is left. nextDialog is how
// long the next one may take to open.
const maxDialogs, nextDialog = 50, 300 * time.Millisecond

// replaced reports whether another navigation replaced the one to an address, for example because a page reloads
// itself.
func (of left) replaced(v *page.Visit, to string) bool {
	return page.Locked(v, func() bool {
		return v.Page.Commits > of.commits || to == of.url && v.Page.PendingURL == to
	})
}

// reloads reports whether a navigation with a loader was given up because the document that is left reloads itself.
// It waits until a document is shown, the navigation has ended, or a dialog blocks it.
func (of left) reloads(v *page.Visit, to, loader string) (is bool) {
	t := v.Page
	wait := func(most time.Duration, ended func() bool) {
		page.Await(v, most, func() bool {
			shown := t.Commits > of.commits
			is = to != of.url && !t.HasLoader(loader) && (shown && t.URL == of.url || t.PendingURL == of.url)
			return is || shown || t.Closed || t.Crashed || t.Dialog != nil || ended()
		})
	}
	wait(beginTime, func() bool { return t.PendingURL != "" })
	wait(v.Within(time.Hour), func() bool { return t.PendingURL == "" })
	return is
}

// lateReloads bounds how often a navigation is repeated if the page shows its previous address afterwards. The
// document that is left may have reloaded itself so late that Chrome did so after the navigation, or a script of the
// new document may have gone back.
const lateReloads = 2

// led reports whether the page shows its previous address because the navigation with a loader was redirected there.
func (of left) led(v *page.Visit, loader string) bool {
	return page.Locked(v, func() bool { return v.Page.URL == of.url && v.Page.IsByLoader(loader) })
}

// navigate moves the page away from its document, and waits until the new document can be used.
func navigate(v *page.Visit, name, url string, from left, move func(left) *api.Error) (*opened, *api.Error) {
	l := v.Ledger()
	start := &begun{seq: from.seq, verb: strings.TrimSpace(name + " " + page.Clip(url, 100))}
	l.Begin(start.verb, "", start.seq)
	a, caused := page.NewActivity(v.Page.ID, start.seq, l.Methods), &page.Caused{}
	fail := func(err *api.Error) (*opened, *api.Error) {
		if err = loadingError(err); err.Code == api.CodeExit { // otherwise the next answer tells what it caused
			a.Read(v)
			v.Causes(l, caused, a, start.seq)
			if l.Seq, caused.Failed = a.Seq, nil; !caused.None() {
				err.Details = page.Object{"caused": caused}
			}
		}
		return nil, err
	}
	err := move(from)
	if page.IsDialog(err) && err.Dialog.Type != api.BeforeUnload && !from.none && !from.replaced(v, url) {
		err = nil // a dialog of the document that is left
	}
	if err == nil && name == "go" {
		page.Await(v, beginTime, func() bool {
			t := v.Page
			return t.PendingURL != "" || t.Commits > from.commits || t.Closed || t.Dialog != nil
		})
	}
	if err != nil && (!page.IsDialog(err) || err.Dialog.Type == api.BeforeUnload) {
		return fail(err)
	}
	if err == nil {
		if err := awaitUsable(v, a, from, url); err != nil {
			return fail(err)
		}
	}
	last := &ended{}
	rest := quiet
	if len(a.Pending) > 0 && (loaded(v) || !a.AwaitsFrames()) { // its scripts fetch its content
		v.AwaitRequests(a, time.Now().Add(fetchTime))
	} else if loaded(v) {
		rest = 0
	}
	for turn := 0; v.Dialog() == nil; turn++ {
		err := v.Script("", last, "end", page.Object{"quiet": rest, "still": rest, "timeout": quietTime.Milliseconds()})
		if err == nil || page.IsDialog(err) {
			break
		}
		if turn == maxNavigations || !v.CanRetry("", err) {
			return fail(err)
		}
	}
	if a.Read(v); len(a.Pending) > 0 { // a script has just sent these; most responses arrive soon
		v.AwaitRequests(a, time.Now().Add(soonTime))
	}
	if a.Status == http.StatusUnauthorized && a.Login {
		return fail(v.Keeper.CannotOpen(v.Ctx, v.By, v.Page, a.Asks, api.NoLogin))
	}
	r := &opened{URL: cmp.Or(last.URL, v.URL("")), Title: last.Title, Status: a.Status}
	if r.Status == 0 && api.IsWebURL(r.URL) {
		r.Status = v.Keeper.Tracker.DocumentStatus(v.Page) // the document came before its navigation was awaited
	}
	if from.none {
		a.Frames = nil // frames belong to the new document
	}
	v.Causes(l, caused, a, start.seq)
	if loaded(v) {
		caused.AddPending(a.Pending)
	} else {
		caused.AddPending(a.Loading)
	}
	if !caused.None() {
		r.Caused = caused
	}
	v.Subject = "document at " + page.Clip(cmp.Or(r.URL, url), 200)
	l.Seq, l.Document, l.URL = a.Seq, last.Document, last.URL
	return r, nil
}

// beginTime is how long a navigation may take to begin after its command has returned.
const beginTime = 150 * time.Millisecond

// fetchTime is how long a loaded document may wait for responses that its scripts requested. soonTime is how long it
// may wait for requests that follow from these responses.
const fetchTime, soonTime = 2 * time.Second, 50 * time.Millisecond

// maxNavigations bounds how often a document that opens is replaced by another one.
const maxNavigations = 20

// awaitUsable waits until the newest document of the page can be used: it has loaded, or it has all of its elements
// and shows them, and waits for no script, style or response. It waits at most frameTime for documents of frames. A
// dialog that blocks the page ends the wait, too.
func awaitUsable(v *page.Visit, a *page.Activity, from left, url string) *api.Error {
	err := awaitDocument(v, a, from)
	switch {
	case err != nil && err.Code == api.CodeTimeout:
		err.Message += fmt.Sprintf(" to open %s: %s (it stays open; new opens another page)", page.Clip(url, 200),
			stuck(v, a))
	case err == nil && a.Fault != "":
		err = v.Keeper.CannotOpen(v.Ctx, v.By, v.Page, a.Asks, a.Fault)
	}
	return err
}

func awaitDocument(v *page.Visit, a *page.Activity, from left) *api.Error {
	ctx, cancel := context.WithTimeout(v.Ctx, v.Within(time.Hour)) // leave time to find out why the page is stuck
	defer cancel()
	var first, parsed time.Time // when the document had all its elements; when only frames were missing
	var answered *api.Dialog
	for {
		var failed *api.Error
		turn, cancel := context.WithTimeout(ctx, frameTime)
		err := v.Keeper.Events.AwaitRecords(turn, func() bool {
			a.Read(v)
			v.Keeper.Mux.Lock()
			defer v.Keeper.Mux.Unlock()
			t := v.Page
			old := t.Commits == from.commits && !from.none
			switch {
			case t.Closed:
				failed = target.ClosedTarget(t)
			case t.Crashed && !(old && from.crashed): // otherwise the navigation revives the page
				failed = target.CrashedTarget(t)
			case t.Dialog != nil && old && t.Dialog.Type == api.BeforeUnload && !api.AnswersDialogs(v.OnDialog):
				failed = target.BlockedTarget(t, t.Dialog)
			case t.Dialog != nil && t.Dialog != answered && endsDialog(v, old):
				answered = t.Dialog
			}
			if failed != nil || t.Crashed || t.Dialog != nil {
				return failed != nil || t.Dialog != nil && t.Dialog != answered
			}
			if parsed = cmp.Or(parsed, time.Now()); !a.Parsed || !a.AwaitsFrames() {
				parsed = time.Time{}
			}
			usable := a.Parsed && (len(a.Pending) == 0 || !parsed.IsZero() && time.Since(parsed) >= frameTime)
			return t.PendingURL == "" && (t.Loaded || usable)
		})
		cancel()
		if err != nil && failed == nil && ctx.Err() == nil {
			continue
		}
		if err != nil || failed != nil {
			return cmp.Or(failed, err)
		}
		if loaded(v) || v.Dialog() != nil {
			return nil
		}
		var painted bool
		if err := v.Script("", &painted, "painted"); err != nil && !page.IsDialog(err) && !v.CanRetry("", err) {
			return err
		}
		if first = cmp.Or(first, time.Now()); painted || time.Since(first) > paintTime {
			return nil
		}
	}
}

// endsDialog ends the dialog of the page as the caller asked, or else as the navigation requires if the dialog
// belongs to the document that is left. It reports whether it did. The mux is locked.
func endsDialog(v *page.Visit, old bool) bool {
	switch sender := v.Keeper.Tracker.Sender; {
	case api.AnswersDialogs(v.OnDialog):
		sender.AnswerDialog(v.Page, v.OnDialog)
	case old:
		sender.EndDialog(v.Page, false)
	default:
		return false
	}
	return true
}

// stuck says why a document has not come. It ends a script that does not end by itself.
func stuck(v *page.Visit, a *page.Activity) string {
	diagnosis := v.Keeper.Tracker.Sender.Unstick(v.Page, nil)
	switch {
	case diagnosis != "":
		return diagnosis
	case v.Dialog() != nil:
		return "a dialog of the page before it is open"
	case len(a.Pending) > 0:
		return busy(a)
	}
	return "it has not loaded"
}

// frameTime is how long to wait for the documents of frames, once the rest of a document can be used.
const frameTime = time.Second

// paintTime is how long a document that has all of its elements may show nothing.
const paintTime = time.Second

func loaded(v *page.Visit) bool {
	return page.Locked(v, func() bool { return v.Page.Loaded })
}

// loadingError returns the error of a page that could not be loaded, by the browser's reason.
func loadingError(err *api.Error) *api.Error {
	if err.Code != api.CodeNavigationFailed {
		return err
	}
	failed := declaredError(err)
	if err.Remedy != "" {
		failed.Message += "; " + err.Remedy
	}
	return failed
}

func declaredError(err *api.Error) *api.Error {
	has := func(reasons ...string) bool {
		return slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(err.Message, reason) })
	}
	advice := "; " + api.AdviseLoading(err.Message).Text
	switch {
	case has("ERR_CONNECTION_REFUSED"):
		return page.Exit("refused", err.Message+advice, nil)
	case has("ERR_CERT_", "ERR_SSL_", "ERR_BAD_SSL", "ERR_TLS"):
		return page.Exit("tls", err.Message+advice, nil)
	case has(api.NoLogin):
		return page.Exit("login_required",
			err.Message+"; the server requires a login (HTTP 401): page.emulate sends an Authorization header", nil)
	case has("ERR_INTERNET_DISCONNECTED"):
		return page.Exit("failed", err.Message+advice+": page.emulate with network online ends the emulation", nil)
	case has("ERR_ABORTED") && has("cannot open javascript:"):
		return page.Exit("failed", err.Message+"; it shows no page: page.evaluate runs JavaScript", nil)
	case has("ERR_ABORTED"):
		return page.Exit("failed", err.Message+"; a download or an empty response shows no page: page.downloads lists files",
			nil)
	}
	return page.Exit("failed", err.Message+advice, nil)
}

type moveParams struct {
	To string `json:"to"`
}

// move goes back, forward, or loads the page again.
func move(v *page.Visit, p moveParams) (*opened, *api.Error) {
	if err := v.FindPage(); err != nil { // the document is left, so it is not asked about late effects
		return nil, err
	}
	return navigate(v, "go", p.To, leftBy(v, p.To == "reload"), func(left) *api.Error {
		if p.To == "reload" {
			return v.Command("Page.reload", page.Object{}, nil)
		}
		var history struct {
			CurrentIndex int
			Entries      []struct {
				ID  int
				URL string
			}
		}
		if err := v.Command("Page.getNavigationHistory", page.Object{}, &history); err != nil {
			return err
		}
		next := history.CurrentIndex + 1
		if p.To == "back" {
			next -= 2
		}
		if next < 0 || next >= len(history.Entries) {
			return page.Exit("no_match", fmt.Sprintf("the history has no page to go %s to", p.To), nil)
		}
		return v.Command("Page.navigateToHistoryEntry", page.Object{"entryId": history.Entries[next].ID}, nil)
	})
}

type tabsParams struct {
	Action string `json:"action"` // activate, close, or "" to list
	Target string `json:"target"`
}

// tabList are the pages of the session, the oldest first.
type tabList struct {
	Tabs []tab `json:"tabs"`
}

type tab struct {
	Target  string `json:"target"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Current bool   `json:"current,omitempty"`
	Opener  string `json:"opener,omitempty"`
}

// tabs lists the pages of the session, makes one the current one, or closes one.
func tabs(v *page.Visit, p tabsParams) (*tabList, *api.Error) {
	switch p.Action {
	case "activate":
		if p.Target == "" {
			return nil, page.Invalid("/target", "the id of a page", "nothing", "page.tabs lists them")
		}
		now, err := v.Keeper.Activate(v.Ctx, v.By, p.Target)
		if err != nil {
			return nil, err
		}
		page.Follow(v, now.Target)
	case "close":
		closed, err := v.Keeper.CloseTarget(v.Ctx, v.By, cmp.Or(p.Target, v.Target), v.OnDialog)
		if err != nil {
			return nil, err
		}
		if v.Page == nil || v.Page.ID == closed.Target {
			page.Follow(v, "")
		}
	}
	v.Keeper.Tracker.RefreshTargets(v.Ctx)
	// A page that has just opened gets its address a moment later.
	isOpening := func(t *target.Target) bool { return t.Kind == "page" && t.URL == "" && t.Owner == v.By.SessionKey() }
	page.Await(v, v.Within(500*time.Millisecond), func() bool {
		return !slices.ContainsFunc(v.Keeper.Tracker.All, isOpening)
	})
	r := &tabList{Tabs: []tab{}}
	for _, t := range v.Keeper.Owners.ListTargets(v.By, false) {
		if t.Type == "page" {
			r.Tabs = append(r.Tabs, tab{t.ID, t.URL, page.Clip(t.Title, 100), t.Current, t.Opener})
		}
	}
	return r, nil
}
