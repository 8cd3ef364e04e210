package page

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
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
	Keeper  *verb.Verbs
	mu      sync.Mutex
	table   Verbs
	ledgers map[*target.Target]*Ledger
}

// New returns the verbs of the plugin page: do, and the verbs of the tables.
func New(verbs *verb.Verbs, tables ...Verbs) *Pages {
	p := &Pages{Keeper: verbs, table: Verbs{"do": Manage(do)}, ledgers: map[*target.Target]*Ledger{}}
	for _, table := range tables {
		maps.Copy(p.table, table)
	}
	return p
}

// Visit is a call of a verb: its caller, its page and its options.
type Visit struct {
	*Pages
	Ctx   context.Context
	By    api.Caller
	Scope *tenant.Scope
	api.VerbOptions
	Page     *target.Target // nil before FindPage
	owner    string         // the session that the page belongs to
	kind                    // of the verb
	Inner    bool           // it is a step of do that is not the last
	saves    bool           // a later step of do saves the files that this one downloads
	common                  // of the verb's parameters
	turn     *Ledger        // ledger of the page on which this visit has the turn to act
	owed     *Ledger        // ledger of a page whose document has not reported its late changes yet
	Unseen   int            // number of frames that the last search or listing left out
	Secrets  map[string]api.PageSecret
	warnings []string
	Subject  string
	Before   *Before // what happened after the last answer, until it is reported
}

// common are the parameters that mean the same in every verb that has them.
type common struct {
	Settle *int   // how long an act waits for quiet, in milliseconds; nil: the act decides
	In     string // the locator of an element that contains the element; "": anywhere
}

// Locate returns the locator of the element that a call is about. Without a word it is the element that the parameter
// in names.
func (v *Visit) Locate(word string) Locator {
	l := Locator{}
	if word != "" {
		l = parseLocator(word)
	}
	if v.In != "" && l["ref"] == nil {
		l["in"] = parseLocator(v.In)
	}
	return l
}

// Verbs are verbs by name.
type Verbs map[string]Operation

// Operation runs a verb with its parameters.
type Operation struct {
	kind
	run func(v *Visit, params json.RawMessage) (any, *api.Error)
}

// kind says how a verb uses a page.
type kind struct {
	writes bool // it may change something: page.js runs from the start of each document
	paged  bool // the page must exist
	reads  bool // it reads the page's document
	waits  bool // it waits for what a page is left for
}

// Look returns a verb that reads a document.
func Look[P, R any](run func(*Visit, P) (R, *api.Error)) Operation {
	return Operation{kind{paged: true, reads: true}, decoded(run)}
}

// Wait returns a verb that reads documents until one is as it is awaited.
func Wait[P, R any](run func(*Visit, P) (R, *api.Error)) Operation {
	return Operation{kind{paged: true, reads: true, waits: true}, decoded(run)}
}

// Act returns a verb that may change a document.
func Act[P, R any](run func(*Visit, P) (R, *api.Error)) Operation {
	return Operation{kind{paged: true, writes: true, reads: true}, decoded(run)}
}

// List returns a verb that shows what was recorded about a page.
func List[P, R any](run func(*Visit, P) (R, *api.Error)) Operation {
	return Operation{kind{paged: true}, decoded(run)}
}

// Manage returns a verb that finds its page itself.
func Manage[P, R any](run func(*Visit, P) (R, *api.Error)) Operation {
	return Operation{kind{writes: true}, decoded(run)}
}

func decoded[P, R any](run func(*Visit, P) (R, *api.Error)) func(*Visit, json.RawMessage) (any, *api.Error) {
	return func(v *Visit, params json.RawMessage) (any, *api.Error) {
		var p P
		if err := api.Decode(params, &p); err != nil {
			return nil, err
		}
		return run(v, p)
	}
}

// Run runs a verb by its name, with Prefix. The body is an [api.PageRequest], the result an [api.PageResult].
func (p *Pages) Run(ctx context.Context, by api.Caller, name string, body []byte) ([]byte, *api.Error) {
	o, known := p.table[strings.TrimPrefix(name, Prefix)]
	if !known {
		return nil, api.Errorf(api.CodeInvalidArgs, "the keeper has no operation %q", Clip(name, 40))
	}
	var q api.PageRequest
	if err := api.Decode(body, &q); err != nil {
		return nil, err
	}
	if err := api.CheckOnDialog(q.OnDialog); err != nil {
		return nil, err
	}
	scope, release, err := p.Keeper.Tenancy.Enter(ctx, by)
	if err != nil {
		return nil, err
	}
	defer release()
	v := &Visit{Pages: p, Ctx: ctx, By: by, Scope: scope, VerbOptions: q.VerbOptions, Secrets: q.Secrets}
	defer v.leave()
	done, err := v.run(o, q.Params)
	if err != nil {
		failed := *err // others may share the error
		failed.Subject = v.Subject
		if !v.Before.none() { // no later answer reports it
			failed.Details = Object{"before": v.Before}
			maps.Copy(failed.Details, err.Details)
		}
		return nil, &failed
	}
	v.AskLate()
	r := api.PageResult{Data: scan.Marshal(done), Subject: v.Subject, Warnings: v.warnings}
	if !v.Before.none() {
		r.Before = scan.Marshal(v.Before)
	}
	return scan.Marshal(r), nil
}

// run runs a verb on the page of the visit.
func (v *Visit) run(o Operation, params json.RawMessage) (done any, err *api.Error) {
	v.kind, v.common = o.kind, common{}
	err = api.Decode(params, &v.common)
	if err == nil && o.writes {
		err = v.Keeper.RegisterScript(v.By, script())
	}
	switch {
	case err != nil, v.Page != nil:
	case o.paged:
		err = v.FindPage()
	case v.Target != "": // a verb that needs no page refuses a wrong target, too
		_, err = v.Keeper.Owners.Resolve(v.By, v.Target)
	}
	if err == nil {
		stop := func() {}
		if o.reads && !o.writes && !o.waits {
			stop = StayUntil(v, time.Now().Add(v.Patience()))
		}
		done, err = o.run(v, params)
		stop()
	}
	if err != nil && err.Code == api.CodeTimeout && v.Page != nil && v.Ctx.Err() == nil && Leaving(v) != "" {
		return nil, api.Errorf(api.CodeBusy, "a navigation to %s is under way, and its server has not responded: page.wait "+
			"waits for it, page.open leaves it", Clip(Leaving(v), 160))
	}
	if err == nil || err.Code != api.CodeNotFound || v.Page == nil {
		return done, err
	}
	v.Keeper.Mux.Lock()
	defer v.Keeper.Mux.Unlock()
	if v.Page.Closed { // maybe while the call waited for its turn
		return nil, target.ClosedTarget(v.Page)
	}
	return nil, err
}

// Follow leaves the visit's page. The next step of do finds another page: the one that target names, or the current
// one for "".
func Follow(v *Visit, target string) {
	v.AskLate()
	v.leave()
	v.Target, v.Page = target, nil
}

// FindPage finds the page that the call is about: the page that the option target names, or the current one. It reads
// what happened after the last answer on its document.
func (v *Visit) FindPage() *api.Error {
	t, err := v.Keeper.Owners.Resolve(v.By, v.Target)
	if err != nil {
		return err
	}
	if v.Target == "" { // a page that this one opens does not become the current one
		v.Keeper.Owners.SetCurrent(v.By, t)
	}
	return v.use(t)
}

// use makes t the page of the visit.
func (v *Visit) use(t *target.Target) *api.Error {
	if err := v.Keeper.Claim(v.By, t, "has no document"); err != nil {
		return err
	}
	v.Page, v.owner = t, Locked(v, func() string { return t.Owner })
	v.About(Element{}, "")
	if err := v.Keeper.Tracker.Attach(v.Ctx, t, ""); err != nil {
		return err
	}
	l := v.Ledger()
	if v.turn == l || !v.writes && !v.reads {
		return nil
	}
	if !v.writes { // an act under way reports its effects itself
		select {
		case l.turn <- struct{}{}:
			v.lookBack(l)
			<-l.turn
		default:
		}
		return nil
	}
	v.leave()
	select {
	case l.turn <- struct{}{}:
		v.turn = l
	case <-v.Ctx.Done():
		return api.ContextError(v.Ctx, "waiting for another act on the page")
	}
	v.lookBack(l)
	return nil
}

// leave ends the turn of the visit.
func (v *Visit) leave() {
	if v.turn != nil {
		<-v.turn.turn
		v.turn = nil
	}
}

// Frame is a document, named by the id of its frame; "" for the page's own document.
type Frame string

// At returns the target of a frame, and the id of the frame in it.
func (v *Visit) At(in Frame) (*target.Target, string, *api.Error) {
	if in == "" {
		return v.Page, v.Page.ID, nil
	}
	t, id, err := v.Keeper.Owners.Locate(v.By, string(in))
	if err == nil && t != v.Page {
		err = v.Keeper.Tracker.Attach(v.Ctx, t, "")
	}
	return t, id, err
}

// Call calls a function of page.js in a frame.
func (v *Visit) Call(in Frame, q verb.ScriptCall, args ...any) (json.RawMessage, *api.Error) {
	t, id, err := v.At(in)
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		q.Args = append(q.Args, scan.Marshal(arg))
	}
	q.OnDialog = v.OnDialog
	value, exception, err := v.Keeper.CallScript(v.Ctx, t, id, script(), q)
	for turn := 0; turn < 10 && !v.writes && Interrupted(err) && v.Pause(pauseTime); turn++ { // a read can be repeated
		value, exception, err = v.Keeper.CallScript(v.Ctx, t, id, script(), q)
	}
	if Interrupted(err) {
		err = api.RestlessPage()
	}
	if err == nil && exception != nil {
		return nil, api.Errorf(api.CodeInternal, "%s of page.js threw: %s", q.Function,
			Clip(scan.Text(exception, "exception", "description"), 300))
	}
	return value, err
}

// Script calls a function of page.js in a frame and decodes what it returned.
func (v *Visit) Script(in Frame, result any, function string, args ...any) *api.Error {
	if l := v.owed; l != nil && in == l.In && function != lateFunction {
		var both struct {
			Late  lateDocument
			Value json.RawMessage
		}
		v.owed = nil
		err := v.Script(in, &both, "also", append([]any{function}, args...)...)
		if err != nil {
			v.owed = l
			return err
		}
		v.addLate(l, both.Late)
		return decodeValue(both.Value, result, function)
	}
	value, err := v.Call(in, verb.ScriptCall{Function: function}, args...)
	if err != nil {
		return err
	}
	return decodeValue(value, result, function)
}

func decodeValue(value json.RawMessage, result any, function string) *api.Error {
	if len(value) == 0 || result == nil {
		return nil
	}
	if err := json.Unmarshal(value, result); err != nil {
		return api.Errorf(api.CodeInternal, "what %s of page.js returned cannot be read: %v", function, err)
	}
	return nil
}

// OpenClosedRoots lets page.js look into closed shadow roots of a frame, and reports whether it found any. It looks
// at custom elements, or with thorough at all elements that may have a shadow root.
func (v *Visit) OpenClosedRoots(in Frame, thorough bool) bool {
	t, id, err := v.At(in)
	if err != nil {
		return false
	}
	adopted, err := v.Call(in, verb.ScriptCall{Function: "hosts", Class: "Array",
		Use: v.Keeper.AdoptRoots(v.Ctx, t, id, script())}, thorough)
	return err == nil && len(adopted) > 0 && string(adopted) != "0"
}

// MaxClosedDepth limits how deeply nested closed shadow roots are searched.
const MaxClosedDepth = 5

// Command sends a command of the protocol to the page, with the rights of the caller, and decodes its result.
func (v *Visit) Command(method string, params, result any) *api.Error {
	return v.Send(api.CallRequest{Target: v.Page.ID, Method: method, Params: scan.Marshal(params)}, result)
}

func (v *Visit) Send(q api.CallRequest, result any) *api.Error {
	if string(q.Params) == "null" {
		q.Params = nil
	}
	q.OnDialog = v.OnDialog
	r := v.Keeper.Call(v.Ctx, v.By, v.Scope, q)
	if r.Err != nil || result == nil {
		return r.Err
	}
	if err := json.Unmarshal(r.Result, result); err != nil {
		return api.Errorf(api.CodeProtocolError, "the result of %s cannot be read: %v", q.Method, err)
	}
	return nil
}

// Input sends input events to the page.
func (v *Visit) Input(events ...Object) *api.Error {
	_, err := v.SendInput(events, nil)
	return err
}

// SendInput sends input events to the page. aim is as in [api.InputRequest].
func (v *Visit) SendInput(events []Object, aim func(api.Drag) api.Drag) (api.InputSent, *api.Error) {
	q := api.InputRequest{Aim: aim}
	for _, event := range events {
		q.Events = append(q.Events, scan.Marshal(event))
	}
	return v.Keeper.SendInput(v.Ctx, v.By, api.VerbOptions{Target: v.Page.ID, OnDialog: v.OnDialog}, q)
}

type Object = map[string]any

// pauseTime is how long a call waits before it repeats something that has failed.
const pauseTime = 30 * time.Millisecond

// CanRetry reports whether a call of page.js in a frame failed because its document was replaced. If so, it pauses
// first, since its caller then tries again.
func (v *Visit) CanRetry(in Frame, err *api.Error) bool {
	// Without a page there is nothing to wait for. A frame may come back soon.
	gone := func(sign string) bool { return strings.Contains(err.Message, sign) }
	isGone := err != nil && (err.Code == api.CodeNotFound && in != "" || err.Code == api.CodeProtocolError &&
		slices.ContainsFunc([]string{"ontext", "ollected", "No target", "o frame", "not found"}, gone))
	return (isGone || Interrupted(err)) && v.Pause(pauseTime)
}

// Interrupted reports whether a call of page.js failed because its document was replaced while it ran, or because
// documents were replaced repeatedly before it ran.
func Interrupted(err *api.Error) bool {
	return err != nil && (err.Code == api.CodeProtocolError && strings.Contains(err.Message, "navigated") ||
		err.Restless)
}

// Pause waits, and reports whether there is time left.
func (v *Visit) Pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-v.Ctx.Done():
		return false
	}
}

// Patience is how long an act waits for its element.
func (v *Visit) Patience() time.Duration { return v.Within(5 * time.Second) }

// Within returns how long a call may wait: most, or less, so that before the call's deadline there is time left to
// say why it has waited in vain.
func (v *Visit) Within(most time.Duration) time.Duration {
	const reserve = 3 * time.Second
	if deadline, ok := v.Ctx.Deadline(); ok {
		left := time.Until(deadline)
		return min(most, left-min(left/4, reserve))
	}
	return most
}

// TimeLeft returns how long page.js may search, in milliseconds. It leaves time to report the result.
func (v *Visit) TimeLeft() int64 {
	deadline, ok := v.Ctx.Deadline()
	if !ok {
		return time.Minute.Milliseconds()
	}
	return max(time.Until(deadline).Milliseconds()/2, 1)
}

func (v *Visit) Warn(format string, args ...any) {
	v.warnings = append(v.warnings, fmt.Sprintf(format, args...))
}

// About sets for records what the verb acts on: an element and its document, or without an element only the document.
func (v *Visit) About(e Element, in Frame) {
	url := cmp.Or(v.URL(in), v.URL(""))
	v.Subject = "document at " + Clip(url, 200)
	if e.Ref != "" {
		v.Subject = fmt.Sprintf("%s %s at %s", e.Role, Quote(Clip(e.Name, 80)), Clip(url, 200))
	}
}

// URL returns the address of a frame, "" if it is gone or has no document yet.
func (v *Visit) URL(in Frame) string {
	v.Keeper.Mux.Lock()
	defer v.Keeper.Mux.Unlock()
	if in == "" {
		return v.Page.URL
	}
	if t := v.Keeper.Tracker.ByID[string(in)]; t != nil {
		return t.URL
	}
	if f := v.Keeper.Tracker.Frames[string(in)]; f != nil {
		return f.URL
	}
	return ""
}

// Records returns the stored events of the page's session after a number, and the number of the newest one.
func (v *Visit) Records(since int64, methods ...string) ([]event.Recorded, int64) {
	return v.Keeper.Events.Records(v.By, v.owner, since, methods)
}

// historyLimit bounds the records that a call reads.
const historyLimit = 4000

// History returns the newest records of the page and its frames, the oldest first.
func History(v *Visit, methods ...string) []event.Recorded {
	records, _ := v.Records(0, methods...)
	records = slices.DeleteFunc(records, func(r event.Recorded) bool {
		isOurs, _, _ := relation(v, r.Target)
		return !isOurs
	})
	return records[max(0, len(records)-historyLimit):]
}

// Dialog returns the dialog that blocks the page, nil if none does.
func (v *Visit) Dialog() *api.Dialog {
	return Locked(v, func() *api.Dialog { return v.Page.Root().Dialog })
}

// Locked returns the result of read, which it calls with the mux locked.
func Locked[R any](v *Visit, read func() R) R {
	v.Keeper.Mux.Lock()
	defer v.Keeper.Mux.Unlock()
	return read()
}

// Await waits until changed returns true, but at most most. changed is called after changes in the browser.
func Await(v *Visit, most time.Duration, changed func() bool) {
	ctx, cancel := context.WithTimeout(v.Ctx, most)
	defer cancel()
	_ = v.Keeper.Mux.Wait(ctx, "for a change", func() (bool, *api.Error) { return changed(), nil })
}

// IsDialog reports whether a call failed because a dialog is open.
func IsDialog(err *api.Error) bool {
	return err != nil && err.Code == api.CodeBusy && err.Dialog != nil
}

// Exit returns the error of an exit code that the plugin declares.
func Exit(name, message string, details Object) *api.Error {
	return &api.Error{Code: api.CodeExit, Exit: name, Message: message, Details: details}
}

// Invalid returns the error for an invalid parameter.
func Invalid(pointer, expected, provided, suggestion string) *api.Error {
	e := api.Errorf(api.CodeInvalidArgs, "%s: expected %s, got %s", pointer, expected, provided)
	e.Invalid = &api.Invalid{Pointer: pointer, Expected: expected, Provided: provided, Suggestion: suggestion}
	return e
}

func Clip(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return strings.ToValidUTF8(s[:size], "") + "…"
}
