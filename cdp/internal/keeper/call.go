package keeper

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/manifest"
)

// engine runs the requests of callers in one browser.
type engine struct {
	mux     *mux.Mux
	sender  *sender
	domains *enabler
	tracker *tracker
	events  *events
	owners  *owners
	tenancy *tenancy

	documents documentNumbers   // of documents in which scripts run
	scripts   map[string]string // texts of scripts that plugins ship
}

// browserOptions say what the browser is, and how much of it is stored.
type browserOptions struct {
	name                  string
	external              bool     // Parley did not start it
	maxMessage            int      // of a reply, in bytes
	ringEvents, ringBytes int      // of the stored events
	forbidden             []string // origins that no session may use
}

// newEngine returns the verbs of a browser, and the rooms below them. The caller runs the mux.
func newEngine(conn browser.Conn, o browserOptions) *engine {
	m := mux.New(conn, o.maxMessage)
	tr := newTracker(m, o.name, o.external)
	ev := newEvents(tr, newJournals(o.ringEvents, o.ringBytes))
	ow := newOwners(ev, o.forbidden)
	return &engine{
		mux: m, sender: tr.sender, domains: tr.domains, tracker: tr, events: ev, owners: ow, tenancy: newTenancy(ow),
		documents: newDocumentNumbers(), scripts: map[string]string{},
	}
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
	s, release, err := e.tenancy.enter(ctx, by)
	if err != nil {
		return mux.Reply{Err: err}
	}
	defer release()
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
	since := s.refusalCount()
	r := e.dispatch(ctx, by, q)
	switch {
	case r.Err != nil || r.Spool != nil:
	case s != nil && navigationFailed(r.Result):
		if refused := s.dialError(since, scan.Text(q.Params, "url")); refused != nil {
			return mux.Reply{Err: refused}
		}
	default:
		r.Result = e.tenancy.filterResult(by, s, q.Method, r.Result)
	}
	return r
}

// dispatch sends a command to the browser or to the target that it names.
func (e *engine) dispatch(ctx context.Context, by api.Caller, q api.CallRequest) mux.Reply {
	o := callOptions{by: by, maxBytes: q.MaxBytes, onDialog: q.OnDialog, pieces: q.Pieces}
	if q.Target == api.BrowserTarget ||
		q.Target == "" && api.IsBrowserDomain(api.DomainOf(q.Method)) && q.Method != api.GetWindowForTarget {
		r := e.exchange(ctx, nil, q, o)
		if r.Err == nil {
			e.owners.onBrowserCommand(by, q, r.Result)
		}
		return r
	}
	t, frame, err := e.owners.locate(by, q.Target)
	if err == nil && frame != t.ID {
		err = e.aimAtFrame(&q, t, frame)
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
	w := e.newPageWait(t, q.Wait, q.OnDialog)
	defer w.close()
	r := e.exchange(ctx, t, q, o)
	r.Enabled = e.domains.release(t, held)
	if r.Err == nil {
		if err := w.after(ctx, q.Method, r.Result); err != nil {
			r.Spool.Close()
			return mux.Reply{Err: err}
		}
	}
	return r
}

// exchange sends a caller's own command.
func (e *engine) exchange(ctx context.Context, t *target, q api.CallRequest, o callOptions) mux.Reply {
	r := e.tracker.exchangeForCaller(ctx, t, q, o)
	if r.Err == nil && q.Method == cdpbrowser.CommandSetDownloadBehavior {
		e.mux.Lock()
		e.events.downloads.releaseDownloads(q.Params)
		e.mux.Unlock()
	}
	return r
}
