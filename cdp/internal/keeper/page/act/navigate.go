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
	New *bool  `json:"new"` // a page of its own; otherwise that of the session, if it has one
}

// opened is where a page is.
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

// navigateTo sends a navigation, again if the document that is left loads itself again meanwhile, and sets its loader.
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
	seq     int64 // the newest event of it
	none    bool  // the page is new
	commits int   // of the page
	crashed bool
	url     string
}

// leftBy returns the document that the page shows, and ends what would keep Chrome from showing another one: its
// dialogs, as a script may show one after the other, and a script that does not end. Once the other document has
// arrived, Chrome takes no answer to a dialog and ends no script.
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

// maxDialogs bounds the dialogs that a document may show one after the other before it is left, and nextDialog is how
// long the next one may take.
const maxDialogs, nextDialog = 50, 300 * time.Millisecond

// replaced reports whether a navigation to an address was given up for another one, as by a page that loads itself
// again.
func (of left) replaced(v *page.Visit, to string) bool {
	return page.Locked(v, func() bool {
		return v.Page.Commits > of.commits || to == of.url && v.Page.PendingURL == to
	})
}

// reloads reports whether a navigation to an address, by a loader, was given up because the document that is left loads
// itself again. It waits until a document is shown, the navigation has ended, or a dialog is in its way.
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

// lateReloads bounds how often a navigation is made again after which the page shows the address that it had before.
// The document that is left may have loaded itself again so late that Chrome did that after the navigation, or the one
// that opened may have gone back by a script.
const lateReloads = 2

// led reports whether the page shows the address that it had before because a navigation, by a loader, was redirected
// there.
func (of left) led(v *page.Visit, loader string) bool {
	return page.Locked(v, func() bool { return v.Page.URL == of.url && v.Page.IsByLoader(loader) })
}

// navigate moves the page from the document that it leaves, and waits until it can be used.
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
	if len(a.Pending) > 0 && (loaded(v) || !a.AwaitsFrames()) { // its scripts fetch what it shows
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
	if a.Read(v); len(a.Pending) > 0 { // of most that a script has just sent the response is about to come
		v.AwaitRequests(a, time.Now().Add(soonTime))
	}
	if a.Status == http.StatusUnauthorized && a.Login {
		return fail(v.Keeper.CannotOpen(v.Ctx, v.By, v.Page, a.Asks, api.NoLogin))
	}
	r := &opened{URL: cmp.Or(last.URL, v.URL("")), Title: last.Title, Status: a.Status}
	if r.Status == 0 && api.IsWebURL(r.URL) {
		r.Status = v.Keeper.Tracker.DocumentStatus(v.Page) // of a document that came before its navigation was awaited
	}
	if from.none {
		a.Frames = nil // they belong to the document
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

// fetchTime is how long a document that has loaded may wait for responses that its scripts have asked for, soonTime how
// long for those that they ask for when these have come.
const fetchTime, soonTime = 2 * time.Second, 50 * time.Millisecond

// maxNavigations bounds how often a document that opens is replaced by another one.
const maxNavigations = 20

// awaitUsable waits until the newest document of the page can be used: it has loaded, or it has all of its elements and
// shows them, and waits for no script, style or response. For documents of frames it waits a while only. A dialog that
// blocks the page ends the wait, too.
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
	ctx, cancel := context.WithTimeout(v.Ctx, v.Within(time.Hour)) // there is time left to say why it is stuck
	defer cancel()
	var first, parsed time.Time // at which the document had all of its elements, and could be used but for frames
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
			case t.Crashed && !(old && from.crashed): // else the navigation revives it
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

// endsDialog ends the dialog of the page as the caller wants, or as the navigation demands where the document that is
// left shows it. It reports whether it does; the mux is locked.
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

// stuck says why a document has not come, and ends its script if that does not end.
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

// frameTime is how long the documents of frames are waited for, once a document can be used but for them.
const frameTime = time.Second

// paintTime is how long a document that has all of its elements may show nothing.
const paintTime = time.Second

func loaded(v *page.Visit) bool {
	return page.Locked(v, func() bool { return v.Page.Loaded })
}

// loadingError returns the error of a page that could not be loaded, by the reason of the browser.
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
	switch {
	case has("ERR_CONNECTION_REFUSED"):
		return page.Exit("refused", err.Message+"; nothing listens there: check the port and that the server runs", nil)
	case has("ERR_CERT_", "ERR_SSL_", "ERR_BAD_SSL", "ERR_TLS"):
		return page.Exit("tls",
			err.Message+"; the certificate is not valid for this address, or the server does not speak TLS", nil)
	case has(api.NoLogin):
		return page.Exit("login_required",
			err.Message+"; the server requires a login (HTTP 401): page.emulate sends an Authorization header", nil)
	case has(api.NoPage):
		return page.Exit("failed", err.Message+"; the server responded with an error and no page: check the address", nil)
	case has("ERR_ABORTED") && has("cannot open javascript:"):
		return page.Exit("failed", err.Message+"; it shows no page: page.evaluate runs JavaScript", nil)
	case has("ERR_ABORTED"):
		return page.Exit("failed", err.Message+"; a download or an empty response shows no page: page.downloads lists files",
			nil)
	case has("ERR_NAME_NOT_RESOLVED"):
		return page.Exit("failed", err.Message+"; no server has this name: check the spelling of the host", nil)
	}
	return page.Exit("failed", err.Message+"; check the address and that the server runs", nil)
}

type moveParams struct {
	To string `json:"to"`
}

// move goes back, forward, or loads the page again.
func move(v *page.Visit, p moveParams) (*opened, *api.Error) {
	if err := v.FindPage(); err != nil { // its document, which is left, is not asked what came late
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
	// A page that has just opened gets its address in a moment.
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
