package keeper

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/manifest"
)

// engine runs the requests of callers in one browser. Its state is in the types it embeds, each of which knows only the
// ones before it: [mux] exchanges messages, [sender] sends commands to targets, [enabler] enables their domains,
// [tracker] knows the targets, [owners] knows whose they are, and [tenancy] confines plugins. All state is guarded by
// the mux's lock, and nothing blocks while holding it.
type engine struct {
	mux       *mux.Mux
	sender    *sender
	domains   *enabler
	tracker   *tracker
	owners    *owners
	tenancy   *tenancy
	callCount int64
	documents documentNumbers // of documents in which scripts run
}

func newEngine(conn browser.Conn, name string, external bool, cfg *Config) *engine {
	m := mux.New(conn, cfg.MaxMessage)
	tr := newTracker(m, name, external, newJournals(cfg.RingEvents, cfg.RingBytes))
	ow := newOwners(tr)
	ow.forbidden = cfg.Forbidden
	return &engine{mux: m, sender: tr.sender, domains: tr.domains, tracker: tr, owners: ow, tenancy: newTenancy(ow),
		documents: newDocumentNumbers()}
}

// open creates a page, or uses the initial blank one, and waits for its load event.
func (e *engine) open(ctx context.Context, by api.Caller, q api.OpenRequest) (api.Page, *api.Error) {
	if q.URL == "" {
		q.URL = api.BlankURL
	}
	if err := cmp.Or(api.CheckOnDialog(q.OnDialog), api.CheckWait(q.Wait), e.tenancy.checkURL("open", q.URL)); err != nil {
		return api.Page{}, err
	}
	if by.HasContext() {
		return e.openInScope(ctx, by, q)
	}
	e.mux.Lock()
	e.countCall(by)
	t := e.tracker.sparePage
	e.tracker.sparePage = nil
	usable := t != nil && !t.closed && !t.crashed && t.dialog == nil && (t.owner == "" || by.CanSee(t.owner))
	if usable {
		e.owners.takeOver(by, t)
	}
	e.mux.Unlock()
	if !usable {
		var err *api.Error
		if t, err = e.owners.newPage(ctx, by, ""); err != nil {
			return api.Page{}, err
		}
	}
	return e.loadPage(ctx, by, t, q, usable)
}

// countCall counts a call of a session, and records when it began. The engine is locked.
func (e *engine) countCall(by api.Caller) {
	e.callCount++
	if !by.HasContext() {
		e.tenancy.defaultUsed = time.Now()
	}
}

// openInScope is open for a session with a context of its own.
func (e *engine) openInScope(ctx context.Context, by api.Caller, q api.OpenRequest) (api.Page, *api.Error) {
	s, release, err := e.tenancy.enterScope(ctx, by)
	if err != nil {
		return api.Page{}, err
	}
	defer release()
	e.mux.Lock()
	e.countCall(by)
	e.mux.Unlock()
	t, err := e.owners.newPage(ctx, by, s.context)
	if err != nil {
		return api.Page{}, err
	}
	since := s.refusalCount()
	p, err := e.loadPage(ctx, by, t, q, false)
	if err != nil && err.Code == api.CodeNavigationFailed {
		if refused := s.dialError(since, q.URL); refused != nil {
			return api.Page{}, refused
		}
	}
	return p, err
}

// loadPage navigates a new page to a URL and makes it the current one. first is set for the browser's initial page.
func (e *engine) loadPage(ctx context.Context, by api.Caller, t *target, q api.OpenRequest, first bool) (
	api.Page, *api.Error,
) {
	err := e.tracker.attach(ctx, t, "")
	if err == nil {
		e.tracker.awaitBlank(ctx, t)
		err = e.tracker.navigate(ctx, t, q)
	}
	if err != nil {
		e.discardFailed(by, t, err, first, ctx.Err() == context.Canceled)
		return api.Page{}, err
	}
	e.mux.Lock()
	e.owners.setCurrent(by, t)
	e.mux.Unlock()
	p, err := e.tracker.pageInfo(ctx, t)
	if err == nil && api.IsWebURL(p.URL) {
		p.Status = e.tracker.documentStatus(t)
	}
	return p, err
}

// discardFailed closes a page that never had content, or whose caller has cancelled the call. A page that is only
// slow, or shows a dialog, stays and becomes the current target, so that it can be inspected.
func (e *engine) discardFailed(by api.Caller, t *target, err *api.Error, first, givenUp bool) {
	switch {
	case !givenUp && err.Code != api.CodeNavigationFailed && err.Code != api.CodeProtocolError:
		e.mux.Lock()
		e.owners.setCurrent(by, t)
		e.mux.Unlock()
	case first && e.blank(t):
		e.mux.Lock()
		e.tracker.sparePage, t.owner, t.origin = t, "", origin{}
		e.mux.Unlock()
	default:
		ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
		defer cancel()
		params := cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.ID)}
		execute(ctx, e.sender, nil, cdptarget.CloseTarget, params, callOptions{})
	}
}

// blank navigates a page to the blank page, and reports whether it got there. It waits for the end of that navigation,
// whose commit would abort the next one.
func (e *engine) blank(t *target) bool {
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	return e.tracker.navigate(ctx, t, api.OpenRequest{URL: api.BlankURL}) == nil
}

const discardTimeout = 2 * time.Second

// activate brings a page to the front and makes it the current target.
func (e *engine) activate(ctx context.Context, by api.Caller, selector string) (api.Page, *api.Error) {
	t, err := e.owners.resolve(by, selector)
	if err != nil {
		return api.Page{}, err
	}
	if t.kind == "page" {
		params := cdptarget.ActivateTargetParams{TargetID: cdptarget.ID(t.ID)}
		if _, err := execute(ctx, e.sender, nil, cdptarget.ActivateTarget, params, callOptions{}); err != nil {
			return api.Page{}, err
		}
	}
	e.mux.Lock()
	if t.owner == "" && e.tracker.external {
		e.owners.takeOver(by, t) // a person gives the page to the session
	}
	if t.owner == by.SessionKey() {
		e.owners.setCurrent(by, t)
	}
	e.mux.Unlock()
	return e.tracker.pageInfo(ctx, t)
}

// closeTarget closes a page and waits until it is gone.
func (e *engine) closeTarget(ctx context.Context, by api.Caller, selector, onDialog string) (api.Page, *api.Error) {
	t, err := e.owners.resolve(by, selector)
	if err != nil {
		return api.Page{}, err
	}
	e.mux.Lock()
	closed := api.Page{Browser: e.tracker.name, Target: t.ID, URL: t.url, Title: t.title}
	before := t.dialog // this one closes with the page
	e.mux.Unlock()
	params := cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.ID)}
	if _, err := execute(ctx, e.sender, nil, cdptarget.CloseTarget, params, callOptions{}); err != nil {
		return api.Page{}, err
	}
	err = e.mux.Wait(ctx, "for the page to close", func() (bool, *api.Error) {
		if d := t.dialog; d != nil && d != before && d.Type == api.BeforeUnload && !t.closed {
			if api.AcceptsDialogs(onDialog) {
				e.sender.answerDialog(t, onDialog)
				return false, nil
			}
			return false, blockedTarget(t, d)
		}
		return t.closed, nil
	})
	return closed, err
}

// call runs a caller's command.
func (e *engine) call(ctx context.Context, by api.Caller, q api.CallRequest) mux.Reply {
	domain, command, ok := strings.Cut(q.Method, ".")
	if !ok || domain == "" || command == "" {
		return mux.Reply{Err: api.Errorf(api.CodeInvalidArgs,
			"%q is not the name of a command; expected a name such as Page.navigate",
			manifest.Clip(q.Method, 80))}
	}
	if len(q.Params) > 0 && !scan.IsObject(q.Params) {
		return mux.Reply{Err: api.Errorf(api.CodeInvalidArgs, "the parameters of %s are not a JSON object", q.Method)}
	}
	if err := cmp.Or(api.CheckOnDialog(q.OnDialog), api.CheckWait(q.Wait)); err != nil {
		return mux.Reply{Err: err}
	}
	e.mux.Lock()
	e.countCall(by)
	e.mux.Unlock()
	return e.callConfined(ctx, by, q)
}

// dispatch sends a command to the browser or to the target that it names.
func (e *engine) dispatch(ctx context.Context, by api.Caller, q api.CallRequest) mux.Reply {
	o := callOptions{by: by, maxBytes: q.MaxBytes, onDialog: q.OnDialog, pieces: q.Pieces}
	if q.Target == api.BrowserTarget ||
		q.Target == "" && api.IsBrowserDomain(api.DomainOf(q.Method)) && q.Method != api.GetWindowForTarget {
		r := e.tracker.exchangeForCaller(ctx, nil, q, o)
		if r.Err == nil {
			e.owners.onBrowserCommand(by, q, r.Result)
		}
		return r
	}
	t, frame, err := e.locate(by, q.Target)
	if err == nil && frame != t.ID {
		err = e.tracker.aimAtFrame(&q, t, frame)
	}
	if err == nil && q.Method == fetch.CommandEnable {
		err = e.checkUnrouted(t)
	}
	if err != nil {
		return mux.Reply{Err: err}
	}
	e.mux.Lock()
	e.owners.claim(by, t)
	if q.Method == page.CommandHandleJavaScriptDialog {
		t = t.root() // a page handles the dialogs of its frames
	}
	e.mux.Unlock()
	if err := e.tracker.attach(ctx, t, q.Method); err != nil {
		return mux.Reply{Err: err}
	}
	if err := e.domains.awaitCalls(ctx, t, q.Method); err != nil {
		return mux.Reply{Err: err}
	}
	held, err := e.domains.enableFor(ctx, t, q)
	if err != nil {
		return mux.Reply{Err: err}
	}
	w := e.tracker.newPageWait(t, q.Wait, q.OnDialog)
	defer w.close()
	r := e.tracker.exchangeForCaller(ctx, t, q, o)
	r.Enabled = e.domains.release(t, held)
	if r.Err == nil {
		if err := w.after(ctx, q.Method, r.Result); err != nil {
			r.Spool.Close()
			return mux.Reply{Err: err}
		}
	}
	return r
}

// callConfined runs a command within what belongs to the caller's session.
func (e *engine) callConfined(ctx context.Context, by api.Caller, q api.CallRequest) mux.Reply {
	var s *scope
	if by.HasContext() {
		entered, release, err := e.tenancy.enterScope(ctx, by)
		if err != nil {
			return mux.Reply{Err: err}
		}
		defer release()
		s = entered
	}
	if err := e.tenancy.confine(by, s, &q); err != nil {
		return mux.Reply{Err: err}
	}
	switch {
	case s != nil && disposes(q, s):
		return mux.Reply{Result: json.RawMessage("{}"), Err: e.tenancy.dispose(s)}
	case s != nil && s.proxy != nil && q.Target == "":
		if err := e.tenancy.firstPage(ctx, by, s); err != nil {
			return mux.Reply{Err: err}
		}
	}
	since := 0
	if s != nil {
		since = s.refusalCount()
	}
	r := e.dispatch(ctx, by, q)
	switch {
	case r.Err != nil || r.Spool != nil:
	case s != nil && navigationFailed(r.Result):
		var asked struct {
			URL string `json:"url"`
		}
		json.Unmarshal(q.Params, &asked)
		if refused := s.dialError(since, asked.URL); refused != nil {
			return mux.Reply{Err: refused}
		}
	default:
		r.Result = e.tenancy.filterResult(by, s, q.Method, r.Result)
	}
	return r
}
