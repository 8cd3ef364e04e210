// Package verb runs what callers ask for: commands, opening and closing pages, scripts, input, secrets, rules for
// requests, uploads and states.
package verb

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/manifest"
)

// Verbs runs the requests of callers in one browser. The caller's scope must be entered before its methods are
// called.
type Verbs struct {
	Mux     *mux.Mux
	sender  *target.Sender
	domains *target.Domains
	Tracker *target.Tracker
	Events  *event.Events
	Owners  *tenant.Owners
	Tenancy *tenant.Tenancy

	documents documentNumbers   // numbers of documents in which scripts run
	scripts   map[string]string // texts of scripts that plugins ship
}

// Options say what the browser is, and how much of it is stored.
type Options struct {
	Name                  string
	External              bool // Parley did not start the browser
	MaxMessage            int  // largest reply, in bytes
	RingEvents, RingBytes int  // limits of the stored events
}

// New returns the verbs of a browser, and the packages that they use. The caller runs the mux.
func New(conn browser.Conn, o Options) *Verbs {
	m := mux.New(conn, o.MaxMessage)
	tr := target.NewTracker(m, o.Name, o.External)
	ev := event.New(tr, o.RingEvents, o.RingBytes)
	ow, tn := tenant.New(ev)
	return &Verbs{
		Mux: m, sender: tr.Sender, domains: tr.Domains, Tracker: tr, Events: ev, Owners: ow, Tenancy: tn,
		documents: newDocumentNumbers(), scripts: map[string]string{},
	}
}

// Call runs a caller's command.
func (e *Verbs) Call(ctx context.Context, by api.Caller, s *tenant.Scope, q api.CallRequest) mux.Reply {
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
	if err := e.Tenancy.Confine(by, s, &q); err != nil {
		return mux.Reply{Err: err}
	}
	switch {
	case s.DisposedBy(q):
		return mux.Reply{Result: json.RawMessage("{}"), Err: e.Tenancy.Dispose(s)}
	case s != nil && s.Proxy != nil && q.Target == "":
		if err := e.Tenancy.FirstPage(ctx, by, s); err != nil {
			return mux.Reply{Err: err}
		}
	}
	refusals := s.Refusals()
	r := e.dispatch(ctx, by, q)
	switch {
	case r.Err != nil || r.Spool != nil:
	case s != nil && scan.Text(r.Result, "errorText") != "": // Page.navigate reports a failure in a successful reply
		if refused := refusals(scan.Text(q.Params, "url")); refused != nil {
			return mux.Reply{Err: refused}
		}
	default:
		r.Result = e.Tenancy.FilterResult(by, s, q.Method, r.Result)
	}
	return r
}

// dispatch sends a command to the browser or to the target that it names.
func (e *Verbs) dispatch(ctx context.Context, by api.Caller, q api.CallRequest) mux.Reply {
	o := target.CallOptions{By: by, MaxBytes: q.MaxBytes, OnDialog: q.OnDialog, Pieces: q.Pieces}
	if q.Target == api.BrowserTarget ||
		q.Target == "" && !api.RequiresPage(q.Method) {
		r := e.exchange(ctx, nil, q, o)
		if r.Err == nil {
			e.Owners.OnBrowserCommand(by, q, r.Result)
		}
		return r
	}
	t, frame, err := e.Owners.Locate(by, q.Target)
	if err == nil && frame != t.ID {
		err = e.aimAtFrame(&q, t, frame)
	}
	if err == nil && q.Method == fetch.CommandEnable {
		err = e.checkUnrouted(t)
	}
	if err != nil {
		return mux.Reply{Err: err}
	}
	e.Mux.Lock()
	e.Owners.Claim(by, t)
	if q.Method == page.CommandHandleJavaScriptDialog {
		t = t.Root() // a page handles the dialogs of its frames
	}
	e.Mux.Unlock()
	if err := e.Tracker.Attach(ctx, t, q.Method); err != nil {
		return mux.Reply{Err: err}
	}
	if q.Method == fetch.CommandDisable {
		defer e.Owners.Reapply(t)
	}
	if err := e.domains.AwaitCalls(ctx, t, q.Method); err != nil {
		return mux.Reply{Err: err}
	}
	held, err := e.domains.EnableFor(ctx, t, q)
	if err != nil {
		return mux.Reply{Err: err}
	}
	w := e.newPageWait(t, q.Wait, q.OnDialog)
	defer w.close()
	r := e.exchange(ctx, t, q, o)
	r.Enabled = e.domains.Release(t, held)
	if r.Err == nil {
		if err := w.after(ctx, q.Method, r.Result); err != nil {
			r.Spool.Close()
			return mux.Reply{Err: err}
		}
	}
	return r
}

// Claim gives a page without an owner to the caller's session. For a target that has no document it returns an error,
// in which lacks says what is missing.
func (e *Verbs) Claim(by api.Caller, t *target.Target, lacks string) *api.Error {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	e.Owners.Claim(by, t)
	if !target.HasPage(t.Kind) {
		return api.Errorf(api.CodeInvalidArgs, "target %s is a %s, which %s", t.ID, t.Kind, lacks)
	}
	return nil
}

// exchange sends a caller's own command.
func (e *Verbs) exchange(ctx context.Context, t *target.Target, q api.CallRequest, o target.CallOptions) mux.Reply {
	r := e.Tracker.ExchangeForCaller(ctx, t, q, o)
	if r.Err == nil && q.Method == cdpbrowser.CommandSetDownloadBehavior {
		e.Events.ReleaseDownloads(q.Params)
	}
	return r
}

// aimAtFrame fills in the parameter of a command that names the frame, or the context of its scripts. It rejects
// commands that act on a whole page.
func (e *Verbs) aimAtFrame(q *api.CallRequest, t *target.Target, frame string) *api.Error {
	params := map[string]json.RawMessage{}
	if len(q.Params) > 0 {
		if err := json.Unmarshal(q.Params, &params); err != nil {
			return api.Errorf(api.CodeInvalidArgs, "the parameters of %s: %v", q.Method, err)
		}
	}
	given := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return params[name] != nil })
	}
	command, _ := protocol.Embedded().Command(q.Method)
	takesFrame := command != nil && slices.ContainsFunc(command.Params, func(p protocol.Param) bool {
		return p.Name == "frameId"
	})
	switch {
	case q.Method == runtime.CommandEvaluate || q.Method == runtime.CommandCallFunctionOn:
		if given("contextId", "uniqueContextId", "executionContextId", "objectId") {
			return nil
		}
		unique := mux.Locked(e.Mux, func() string { return t.MainContext(frame) })
		if unique == "" {
			return api.Errorf(api.CodeNotFound, "frame %s has no document yet, or a new one; try again",
				manifest.Clip(frame, 80))
		}
		params["uniqueContextId"] = scan.Quote(unique)
	case !takesFrame:
		return api.Errorf(api.CodeInvalidArgs,
			"%s acts on a whole page, and %s is a frame inside one: name the page %s as target",
			manifest.Clip(q.Method, 80), manifest.Clip(frame, 80), t.ID)
	case given("frameId"):
		return nil
	default:
		params["frameId"] = scan.Quote(frame)
	}
	q.Params = scan.Marshal(params)
	return nil
}
