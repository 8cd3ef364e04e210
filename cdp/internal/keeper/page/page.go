package page

import (
	"context"
	"crypto/sha256"
	_ "embed" // page.js
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
)

// Prefix begins the names of the verbs as operations of the keeper.
const Prefix = "page."

//go:embed page.js
var scriptText string

// script is page.js. It is parsed once in each document.
var script = sync.OnceValue(func() api.PageScript {
	sum := sha256.Sum256([]byte(scriptText))
	return api.PageScript{Plugin: "page", Name: "page", SHA256: hex.EncodeToString(sum[:]), Text: scriptText}
})

// Pages runs the verbs of the plugin page in one browser.
type Pages struct {
	verbs   *verb.Verbs
	mu      sync.Mutex
	ledgers map[*target.Target]*ledger
}

// New returns the verbs of the plugin page.
func New(verbs *verb.Verbs) *Pages {
	return &Pages{verbs: verbs, ledgers: map[*target.Target]*ledger{}}
}

// visit is a call of a verb: for whom, on which page.
type visit struct {
	*Pages
	ctx   context.Context
	by    api.Caller
	scope *tenant.Scope
	api.VerbOptions
	page     *target.Target // nil before findPage
	kind                    // of the verb
	inner    bool           // it is a step of do that another one follows
	turn     *ledger        // of the page whose turn the visit has
	unseen   int            // frames that the last call of frames left out
	secrets  map[string]api.PageSecret
	warnings []string
	subject  string
	before   *Before // what came after the last answer, until it is told
}

// operation runs a verb with its parameters.
type operation struct {
	kind
	run func(v *visit, params json.RawMessage) (any, *api.Error)
}

// kind says how a verb uses a page.
type kind struct {
	writes bool // it may change something: the page has page.js from the start of each document
	paged  bool // the page must exist
	reads  bool // its document is looked at
}

// operations are the verbs by name. Each file adds its own.
var operations = map[string]operation{}

// look adds a verb that looks at a document, act one that may change it, list one that looks at what was recorded of
// the page, and manage one that finds its page itself.
func look[P, R any](name string, run func(*visit, P) (R, *api.Error)) {
	operations[name] = operation{kind{paged: true, reads: true}, decoded(run)}
}

func act[P, R any](name string, run func(*visit, P) (R, *api.Error)) {
	operations[name] = operation{kind{paged: true, writes: true, reads: true}, decoded(run)}
}

func list[P, R any](name string, run func(*visit, P) (R, *api.Error)) {
	operations[name] = operation{kind{paged: true}, decoded(run)}
}

func manage[P, R any](name string, run func(*visit, P) (R, *api.Error)) {
	operations[name] = operation{kind{writes: true}, decoded(run)}
}

func decoded[P, R any](run func(*visit, P) (R, *api.Error)) func(*visit, json.RawMessage) (any, *api.Error) {
	return func(v *visit, params json.RawMessage) (any, *api.Error) {
		var p P
		if err := api.Decode(params, &p); err != nil {
			return nil, err
		}
		return run(v, p)
	}
}

// Run runs a verb by its name, with Prefix. The body is an [api.PageRequest], the result an [api.PageResult].
func (p *Pages) Run(ctx context.Context, by api.Caller, name string, body []byte) ([]byte, *api.Error) {
	o, known := operations[strings.TrimPrefix(name, Prefix)]
	if !known {
		return nil, api.Errorf(api.CodeInvalidArgs, "the keeper has no operation %q", clip(name, 40))
	}
	var q api.PageRequest
	if err := api.Decode(body, &q); err != nil {
		return nil, err
	}
	if err := api.CheckOnDialog(q.OnDialog); err != nil {
		return nil, err
	}
	scope, release, err := p.verbs.Tenancy.Enter(ctx, by)
	if err != nil {
		return nil, err
	}
	defer release()
	v := &visit{Pages: p, ctx: ctx, by: by, scope: scope, VerbOptions: q.VerbOptions, secrets: q.Secrets}
	defer v.leave()
	done, err := v.run(o, q.Params)
	if err != nil {
		return nil, err
	}
	data := scan.Marshal(done)
	if v.before != nil {
		data = slices.Concat([]byte(`{"before":`), scan.Marshal(v.before), []byte(","), data[1:])
		if string(data[len(data)-2:]) == ",}" {
			data = append(data[:len(data)-2], '}')
		}
	}
	return scan.Marshal(api.PageResult{Data: data, Subject: v.subject, Warnings: v.warnings}), nil
}

// run runs a verb on the page of the visit.
func (v *visit) run(o operation, params json.RawMessage) (any, *api.Error) {
	v.kind = o.kind
	if o.writes {
		if err := v.verbs.RegisterScript(v.by, script()); err != nil {
			return nil, err
		}
	}
	if o.paged && v.page == nil {
		if err := v.findPage(); err != nil {
			return nil, err
		}
	}
	return o.run(v, params)
}

// findPage finds the page that the call is about: the current one, or what the option target names. It reads what came
// after the last answer on its document.
func (v *visit) findPage() *api.Error {
	t, err := v.verbs.Owners.Resolve(v.by, v.Target)
	if err != nil {
		return err
	}
	return v.use(t)
}

// use makes a page that of the visit.
func (v *visit) use(t *target.Target) *api.Error {
	if err := v.verbs.Claim(v.by, t, "has no document"); err != nil {
		return err
	}
	v.page = t
	if err := v.verbs.Tracker.Attach(v.ctx, t, ""); err != nil {
		return err
	}
	l := v.ledger()
	if v.turn == l || !v.writes && !v.reads {
		return nil
	}
	if !v.writes { // an act under way tells what it caused itself
		select {
		case l.turn <- struct{}{}:
			v.before = v.late(l)
			<-l.turn
		default:
		}
		return nil
	}
	v.leave()
	select {
	case l.turn <- struct{}{}:
		v.turn = l
	case <-v.ctx.Done():
		return api.ContextError(v.ctx, "waiting for another act on the page")
	}
	if late := v.late(l); late != nil {
		v.before = late
	}
	return nil
}

// leave ends the turn of the visit.
func (v *visit) leave() {
	if v.turn != nil {
		<-v.turn.turn
		v.turn = nil
	}
}

// frame is a document: the id of its frame, "" for that of the page.
type frame string

// at returns the target of a frame, and the id of the frame in it.
func (v *visit) at(in frame) (*target.Target, string, *api.Error) {
	if in == "" {
		return v.page, v.page.ID, nil
	}
	t, id, err := v.verbs.Owners.Locate(v.by, string(in))
	if err == nil && t != v.page {
		err = v.verbs.Tracker.Attach(v.ctx, t, "")
	}
	return t, id, err
}

// call calls a function of page.js in a frame.
func (v *visit) call(in frame, q verb.ScriptCall, args ...any) (json.RawMessage, *api.Error) {
	t, id, err := v.at(in)
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		q.Args = append(q.Args, scan.Marshal(arg))
	}
	q.OnDialog = v.OnDialog
	value, exception, err := v.verbs.CallScript(v.ctx, t, id, script(), q)
	if err == nil && exception != nil {
		return nil, api.Errorf(api.CodeInternal, "%s of page.js threw: %s", q.Function,
			clip(scan.Text(exception, "exception", "description"), 300))
	}
	return value, err
}

// script calls a function of page.js in a frame and decodes what it returned.
func (v *visit) script(in frame, result any, function string, args ...any) *api.Error {
	value, err := v.call(in, verb.ScriptCall{Function: function}, args...)
	if err != nil || len(value) == 0 || result == nil {
		return err
	}
	if err := json.Unmarshal(value, result); err != nil {
		return api.Errorf(api.CodeInternal, "what %s of page.js returned cannot be read: %v", function, err)
	}
	return nil
}

// openClosedRoots lets page.js look into closed shadow roots of a frame, and reports whether it found any: of custom
// elements or, if thorough, of all that may have one.
func (v *visit) openClosedRoots(in frame, thorough bool) bool {
	t, id, err := v.at(in)
	if err != nil {
		return false
	}
	adopted, err := v.call(in, verb.ScriptCall{Function: "hosts", Class: "Array",
		Use: v.verbs.AdoptRoots(v.ctx, t, id, script())}, thorough)
	return err == nil && len(adopted) > 0 && string(adopted) != "0"
}

// maxClosedDepth limits how deep closed shadow roots in each other are looked into.
const maxClosedDepth = 5

// cdp sends a command of the protocol to the page, with the rights of the caller, and decodes its result.
func (v *visit) cdp(method string, params, result any) *api.Error {
	return v.send(api.CallRequest{Target: v.page.ID, Method: method, Params: scan.Marshal(params)}, result)
}

func (v *visit) send(q api.CallRequest, result any) *api.Error {
	if string(q.Params) == "null" {
		q.Params = nil
	}
	q.OnDialog = v.OnDialog
	r := v.verbs.Call(v.ctx, v.by, v.scope, q)
	if r.Err != nil || result == nil {
		return r.Err
	}
	if err := json.Unmarshal(r.Result, result); err != nil {
		return api.Errorf(api.CodeProtocolError, "the result of %s cannot be read: %v", q.Method, err)
	}
	return nil
}

// input sends input events to the page.
func (v *visit) input(events ...object) *api.Error {
	_, err := v.sendInput(events)
	return err
}

func (v *visit) sendInput(events []object) (api.InputSent, *api.Error) {
	q := api.InputRequest{}
	for _, event := range events {
		q.Events = append(q.Events, scan.Marshal(event))
	}
	return v.verbs.SendInput(v.ctx, v.by, api.VerbOptions{Target: v.page.ID, OnDialog: v.OnDialog}, q)
}

type object = map[string]any

// pauseTime is how long a call waits before it tries again what has failed.
const pauseTime = 30 * time.Millisecond

// canRetry reports whether a call of page.js in a frame failed because its document was replaced. It then pauses, since
// its caller tries again.
func (v *visit) canRetry(in frame, err *api.Error) bool {
	// Without a page there is nothing to wait for. A frame may be back soon.
	if err == nil || err.Code != api.CodeProtocolError && (err.Code != api.CodeNotFound || in == "") {
		return false
	}
	for _, sign := range []string{"ontext", "navigated", "ollected", "No target", "no frame", "not found"} {
		if err.Code == api.CodeNotFound || strings.Contains(err.Message, sign) {
			return v.pause(pauseTime)
		}
	}
	return false
}

// pause waits, and reports whether there is time left.
func (v *visit) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-v.ctx.Done():
		return false
	}
}

// patience is how long an act waits for its element. Of a call that may last less, there is time left to say why.
func (v *visit) patience() time.Duration {
	const most = 5 * time.Second
	if deadline, ok := v.ctx.Deadline(); ok {
		return min(most, time.Until(deadline)*3/4)
	}
	return most
}

// time is how long page.js may look, in milliseconds: there is time left to say what it has seen.
func (v *visit) time() int64 {
	deadline, ok := v.ctx.Deadline()
	if !ok {
		return time.Minute.Milliseconds()
	}
	return max(time.Until(deadline).Milliseconds()*2/3, 1)
}

func (v *visit) warn(format string, args ...any) {
	v.warnings = append(v.warnings, fmt.Sprintf(format, args...))
}

// url returns the address of the page.
func (v *visit) url() string {
	v.verbs.Mux.Lock()
	defer v.verbs.Mux.Unlock()
	return v.page.URL
}

// dialog returns the dialog that blocks the page, nil if none does.
func (v *visit) dialog() *api.Dialog {
	v.verbs.Mux.Lock()
	defer v.verbs.Mux.Unlock()
	return v.page.Root().Dialog
}

// isDialog reports whether a call failed because a dialog is open.
func isDialog(err *api.Error) bool {
	return err != nil && err.Code == api.CodeBusy && err.Dialog != nil
}

// exit returns the error of an exit code that the plugin declares.
func exit(name, message string, details object) *api.Error {
	return &api.Error{Code: api.CodeExit, Exit: name, Message: message, Details: details}
}

// invalid returns the error of a parameter.
func invalid(pointer, expected, provided, suggestion string) *api.Error {
	e := api.Errorf(api.CodeInvalidArgs, "%s: expected %s, got %s", pointer, expected, provided)
	e.Invalid = &api.Invalid{Pointer: pointer, Expected: expected, Provided: provided, Suggestion: suggestion}
	return e
}

func clip(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return strings.ToValidUTF8(s[:size], "") + "…"
}
