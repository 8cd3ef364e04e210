package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

func init() {
	manage("open", (*visit).open)
	act("go", (*visit).move)
	manage("tabs", (*visit).tabs)
	act("evaluate", (*visit).evaluate)
}

type openParams struct {
	URL string `json:"url"`
	New *bool  `json:"new"` // a page of its own; otherwise that of the session, if it has one
}

// opened is where a page is.
type opened struct {
	URL    string  `json:"url"`
	Title  string  `json:"title"`
	Status int     `json:"status,omitempty"` // HTTP
	Caused *Caused `json:"caused,omitempty"`
}

// open opens an address and waits until the page can be used.
func (v *visit) open(p openParams) (*opened, *api.Error) {
	if p.New == nil || !*p.New {
		switch err := v.findPage(); {
		case err == nil:
			return v.navigate("open", p.URL, func() *api.Error {
				var done struct{ ErrorText string }
				err := v.send(api.CallRequest{Target: v.page.ID, Method: "Page.navigate",
					Params: scan.Marshal(object{"url": p.URL})}, &done)
				if err == nil && done.ErrorText != "" {
					err = api.Errorf(api.CodeNavigationFailed, "cannot open %s: %s", clip(p.URL, 200), done.ErrorText)
				}
				return err
			})
		case !err.NoPage || v.Target != "":
			return nil, err
		}
	}
	page, err := v.verbs.Open(v.ctx, v.by, v.scope, api.OpenRequest{URL: p.URL, OnDialog: v.OnDialog, Wait: api.WaitNone})
	if err != nil && !isDialog(err) {
		return nil, loadingError(err)
	}
	if err != nil {
		page.Target = err.Target
	}
	v.Target, v.page, v.before = page.Target, nil, nil
	if err := v.findPage(); err != nil {
		return nil, err
	}
	return v.navigate("open", p.URL, func() *api.Error { return nil })
}

// navigate moves the page, and waits until it can be used.
func (v *visit) navigate(name, url string, move func() *api.Error) (*opened, *api.Error) {
	l := v.ledger()
	l.acts++
	start := &begun{seq: v.lastSeq(), verb: strings.TrimSpace(name + " " + clip(url, 100))}
	v.verbs.Mux.Lock()
	commits := v.page.Commits
	v.verbs.Mux.Unlock()
	err := move()
	if err != nil && !isDialog(err) {
		return nil, loadingError(err)
	}
	a, caused := newActivity(v.page.ID, start.seq, l.methods), &Caused{}
	if err == nil {
		if err := v.awaitUsable(a, commits); err != nil {
			return nil, err
		}
	}
	last := &ended{}
	for turn := 0; v.dialog() == nil; turn++ {
		err := v.script("", last, "end", object{"quiet": quiet, "still": quiet, "timeout": quietTime.Milliseconds()})
		if err == nil || isDialog(err) {
			break
		}
		if turn == maxNavigations || !v.canRetry("", err) {
			return nil, err
		}
	}
	a.read(v)
	if login := v.asksLogin(a); login != nil {
		return nil, login
	}
	r := &opened{URL: last.URL, Title: last.Title, Status: a.status}
	a.frames = nil // they belong to the document
	v.causes(l, caused, a, start.seq)
	if caused.Dialog != nil && r.URL == "" {
		r.URL = v.url()
	}
	if !v.loaded() {
		for _, pending := range a.loading {
			caused.Pending = append(caused.Pending, clip(pending, 160))
		}
		slices.Sort(caused.Pending)
		caused.Pending = few(caused.Pending)
	}
	if !caused.none() {
		r.Caused = caused
	}
	v.subject = "document at " + clip(cmp.Or(r.URL, url), 200)
	l.of, l.in, l.seq, l.document, l.url = start.verb, "", a.seq, last.Document, last.URL
	return r, nil
}

// maxNavigations bounds how often a document that opens is replaced by another one.
const maxNavigations = 20

// awaitUsable waits until the newest document of the page can be used: it has loaded, or it has all of its elements and
// shows them, and waits for no script, style or response. A dialog that blocks the page ends the wait, too.
func (v *visit) awaitUsable(a *activity, commits int) *api.Error {
	for {
		var failed *api.Error
		parsed := false
		err := v.verbs.Events.AwaitRecords(v.ctx, func() bool {
			a.read(v)
			v.verbs.Mux.Lock()
			defer v.verbs.Mux.Unlock()
			t := v.page
			switch {
			case t.Closed:
				failed = target.ClosedTarget(t)
			case t.Crashed:
				failed = target.CrashedTarget(t)
			case t.Dialog != nil && !api.AnswersDialogs(v.OnDialog):
				return true
			}
			parsed = a.parsed && len(a.pending) == 0
			moved := t.Commits > commits || t.PendingURL == ""
			return failed != nil || moved && t.PendingURL == "" && (t.Loaded || parsed)
		})
		if err != nil || failed != nil {
			return cmp.Or(failed, err)
		}
		if v.loaded() || v.dialog() != nil {
			return nil
		}
		var painted bool
		if err := v.script("", &painted, "painted"); err != nil && !isDialog(err) && !v.canRetry("", err) {
			return err
		}
		if painted {
			return nil
		}
	}
}

func (v *visit) loaded() bool {
	v.verbs.Mux.Lock()
	defer v.verbs.Mux.Unlock()
	return v.page.Loaded
}

// asksLogin returns the error of a document whose server asks for a login, nil for any other.
func (v *visit) asksLogin(a *activity) *api.Error {
	if a.status != 401 || !a.login {
		return nil
	}
	return exit("login_required", "the server requires a login (HTTP 401): page.emulate sends an Authorization header", nil)
}

// loadingError returns the error of a page that could not be loaded, by the reason of the browser.
func loadingError(err *api.Error) *api.Error {
	if err.Code != api.CodeNavigationFailed {
		return err
	}
	has := func(reasons ...string) bool {
		return slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(err.Message, reason) })
	}
	switch {
	case has("ERR_CONNECTION_REFUSED"):
		return exit("refused", err.Message+"; nothing listens there: check the port and that the server runs", nil)
	case has("ERR_CERT_", "ERR_SSL_", "ERR_BAD_SSL", "ERR_TLS"):
		return exit("tls", err.Message+"; the certificate is not valid for this address, or the server does not speak TLS", nil)
	case has("ERR_INVALID_AUTH_CREDENTIALS"):
		return exit("login_required", err.Message+"; page.emulate sends an Authorization header", nil)
	case has("ERR_ABORTED"):
		return exit("failed", err.Message+"; a download or an empty response shows no page: page.downloads lists files", nil)
	case has("ERR_NAME_NOT_RESOLVED"):
		return exit("failed", err.Message+"; no server has this name: check the spelling of the host", nil)
	}
	return exit("failed", err.Message+"; check the address and that the server runs", nil)
}

type moveParams struct {
	To string `json:"to"`
}

// move goes back, forward, or loads the page again.
func (v *visit) move(p moveParams) (*opened, *api.Error) {
	return v.navigate("go", p.To, func() *api.Error {
		if p.To == "reload" {
			return v.cdp("Page.reload", object{}, nil)
		}
		var history struct {
			CurrentIndex int
			Entries      []struct {
				ID  int
				URL string
			}
		}
		if err := v.cdp("Page.getNavigationHistory", object{}, &history); err != nil {
			return err
		}
		next := history.CurrentIndex + 1
		if p.To == "back" {
			next -= 2
		}
		if next < 0 || next >= len(history.Entries) {
			return exit("no_match", fmt.Sprintf("the history has no page to go %s to", p.To), nil)
		}
		return v.cdp("Page.navigateToHistoryEntry", object{"entryId": history.Entries[next].ID}, nil)
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
func (v *visit) tabs(p tabsParams) (*tabList, *api.Error) {
	switch p.Action {
	case "activate":
		if p.Target == "" {
			return nil, invalid("/target", "the id of a page", "nothing", "page.tabs lists them")
		}
		if _, err := v.verbs.Activate(v.ctx, v.by, p.Target); err != nil {
			return nil, err
		}
	case "close":
		if _, err := v.verbs.CloseTarget(v.ctx, v.by, p.Target, v.OnDialog); err != nil {
			return nil, err
		}
	}
	v.verbs.Tracker.RefreshTargets(v.ctx)
	r := &tabList{Tabs: []tab{}}
	for _, t := range v.verbs.Owners.ListTargets(v.by, false) {
		if t.Type == "page" {
			r.Tabs = append(r.Tabs, tab{t.ID, t.URL, t.Title, t.Current, t.Opener})
		}
	}
	return r, nil
}

type evaluateParams struct {
	Expression string `json:"expression"`
	Element    string `json:"element"`
}

// remote is the value of an expression.
type remote struct {
	Value       json.RawMessage
	Type        string
	Unusable    string `json:"unserializableValue"`
	Description string
}

// evaluate runs JavaScript in the page.
func (v *visit) evaluate(p evaluateParams) (value, *api.Error) {
	r := value{json.RawMessage("null")}
	expression, in := p.Expression, frame("")
	if p.Element != "" {
		f, e, err := v.focus(p.Element)
		if err != nil {
			return r, err
		}
		if e.CSS == "" {
			return r, exit("not_ready", p.Element+" is in a shadow root, where no selector finds it", nil)
		}
		expression = "(" + p.Expression + ")(document.querySelector(" + string(scan.Quote(e.CSS)) + "))"
		in = f
	}
	statements, call := false, ""
	var err *api.Error
	switch {
	case p.Element != "":
	case functionText().MatchString(expression):
		// A program that only begins with a function stays as it is.
		call, err = v.callOf("(", expression, "\n)")
	case strings.Contains(expression, "await"):
		// An expression becomes one that is a promise. Statements stay as they are: the mode of a console, in which they
		// run, awaits what they await, but not a promise that is their result.
		call, err = v.callOf("(async () => (\n", expression, "\n))")
		statements = call == ""
	}
	if err != nil {
		return r, err
	}
	v.subject = "document at " + clip(v.url(), 200)
	found, err := v.evaluateIn(in, object{"expression": cmp.Or(call, expression), "awaitPromise": true, "returnByValue": true,
		"userGesture": true, "replMode": statements})
	switch {
	case err != nil:
		return r, err
	case found.Type == "function":
		v.warn("the value is a function, which was not called: call it in the expression")
	case len(found.Value) > 0:
		r.Value = found.Value
	case found.Unusable != "":
		r.Value = scan.Quote(found.Unusable)
	}
	return r, nil
}

// evaluateIn sends Runtime.evaluate to a frame.
func (v *visit) evaluateIn(in frame, params object) (remote, *api.Error) {
	var done struct {
		Result           remote
		ExceptionDetails json.RawMessage
	}
	err := v.send(api.CallRequest{Target: cmp.Or(string(in), v.page.ID), Method: "Runtime.evaluate",
		Params: scan.Marshal(params)}, &done)
	if err == nil && done.ExceptionDetails != nil {
		err = thrown(done.ExceptionDetails)
	}
	return done.Result, err
}

// thrown returns the error of an exception of the caller's JavaScript.
func thrown(raw json.RawMessage) *api.Error {
	var e struct {
		exceptionText
		Line   int `json:"lineNumber"`
		Column int `json:"columnNumber"`
	}
	_ = json.Unmarshal(raw, &e)
	text := e.String()
	if e.Exception.Description == "" {
		if value := scan.Field(raw, "exception", "value"); value != nil {
			text += " " + clip(string(value), 300)
		}
	}
	return exit("script_error", fmt.Sprintf("the page's script threw: %s (line %d, column %d)", clip(text, 1000), e.Line+1,
		e.Column+1), nil)
}

// functionText matches how the text of a function begins. Callers used to other tools pass a function.
var functionText = pattern(`^\s*(async\b\s*)?(function\b|(\([^()]*\)|[\w$]+)\s*=>)`)

// callOf makes a function of a program and returns a call of it, "" if Chrome cannot compile that.
func (v *visit) callOf(before, program, after string) (string, *api.Error) {
	function := before + strings.TrimRight(program, "; \t\r\n") + after
	var done struct{ ExceptionDetails json.RawMessage }
	err := v.cdp("Runtime.compileScript", object{"expression": function, "sourceURL": "", "persistScript": false}, &done)
	if err != nil || done.ExceptionDetails != nil {
		return "", err
	}
	return function + "()", nil
}
