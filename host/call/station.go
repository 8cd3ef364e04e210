// Package call runs calls. Each call goes along the same stations, whoever makes it. The package also serves searches,
// plans and documentation.
package call

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/host/rights"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// station is one step on the way of a call.
type station struct {
	name string
	does string
	run  func(*run, context.Context) error
	// advise adds what comes next to an error of the station: suggest before the tool has run, explain after it. Nil
	// means that the station's own errors say it already.
	advise func(*run, error) error
}

// stations are the way of a call, in order. An error ends it, and so does a station that has nothing left to do; the
// last one runs whatever the others did. docs/architecture.md has this table.
// It is a function because a variable would have an initialization cycle: a tool that runs makes calls.
func stations() []station {
	return []station{
		{"find", "look the tool up by its name", (*run).find, nil},
		{"validate", "decode the parameters, coerce and complete them, and check them against the schema",
			(*run).validate, nil},
		{"decide", "ask the policy, for the caller and for each one on whose behalf it calls",
			permission((*authorization).decide), (*run).suggest},
		{"count", "count the call against the caller's quota", countCall, nil},
		{"confine", "check the URLs and files that the parameters name", permission((*authorization).confineAll),
			(*run).suggest},
		{"permit", "have a person approve where the policy says so; complete settings and isolation",
			permission((*authorization).permit), (*run).suggest},
		{"begin", "end a dry run; write the beginning of the call to the audit", (*run).begin, nil},
		{"invoke", "run the tool within its limits, until it ends or its rights do", (*run).invoke, (*run).explain},
		{"redact", "replace the values of secrets in what the tool returned", (*run).redact, (*run).explain},
		{"check", "check the result against its schema, and mark untrusted texts", (*run).check, (*run).explain},
		{"shape", "filter the result, keep its binary parts apart, and cut it to the limit", (*run).shape, nil},
		{"record", "update the session, send the answer, and record the call", (*run).record, nil},
	}
}

// permission makes a station from a function that decides about a call.
func permission(decide func(*authorization, context.Context) error) func(*run, context.Context) error {
	return func(r *run, ctx context.Context) error {
		err := decide(r.auth, ctx)
		r.answer.Approval = r.auth.approval
		return err
	}
}

// Call runs a tool. It is the only path by which any caller runs one, along the stations of this file.
//
// The error is Answer.Err, an [*host.Error], which errors.Is compares with codes. The answer is never nil: for a
// failed call it has the call's id, warnings and next steps.
func (h *Host) Call(ctx context.Context, c host.Call) (*host.Answer, error) {
	return h.call(ctx, c, behalf{})
}

// call is [Host.Call] for calls from outside and for calls by plugins.
func (h *Host) call(ctx context.Context, c host.Call, of behalf) (*host.Answer, error) {
	if len(of.callers) == 0 {
		h.Refresh()
	}
	a := &host.Answer{Tool: host.Printable(strings.ReplaceAll(c.Name, "__", ".")), CallID: newCallID()}
	ctx, end := h.begin(ctx, "call", a.CallID, c.Principal)
	redactor := &redact.Redactor{Source: h.cfg.Secrets, Outer: of.redactor, Typed: h.typed}
	if of.innerCalls == nil { // the outermost call
		of.innerCalls, of.returned, of.shared = new(atomic.Int32), new(atomic.Int64), &sharedFiles{}
		defer of.shared.close()
	}
	run := &run{host: h, began: time.Now(), mode: h.mode(ctx), call: c, behalf: of, answer: a, redactor: redactor,
		activity: &activity{redactor: redactor}}
	all := stations()
	for i, s := range all {
		if last := i == len(all)-1; !last && (run.ended || run.err != nil) {
			continue
		}
		if err := s.run(run, ctx); err != nil && s.advise != nil {
			run.err = s.advise(run, err)
		} else if err != nil {
			run.err = err
		}
	}
	var err error // as an error, a nil a.Err would not be nil
	if a.Err != nil {
		err = a.Err
	}
	end(run.address, err)
	return a, err
}

// run is the state of one call.
type run struct {
	host     *Host
	call     host.Call
	behalf   behalf
	mode     string // documentation mode, for the record
	began    time.Time
	redactor *redact.Redactor

	answer   *host.Answer
	activity *activity
	ended    bool  // without an error and before the last station
	err      error // why the call ended

	// Set by find; without an error, the address has a tool.

	params  *advice.Params // validate sets its Value
	address host.Address   // address of the tool
	auth    *authorization // decide, confine and permit fill it in

	// Set by invoke.

	counted  func(bytes int64) // ends what countCall began; nil if there is no quota
	deadline time.Time         // for the tool, and for the filter after it
	result   *job.Result       // as the tool returned it

	// For the record.

	tiers          []int // tiers of the documentation that the answer has
	retryOf        string
	suggestionUsed bool // the parameters are what the last failure suggested
}

// find looks the tool up.
func (r *run) find(context.Context) (err error) {
	r.params, err = advice.Find(r.host.Names(), &r.call)
	r.auth = &authorization{host: r.host, call: &r.call, behalf: &r.behalf, params: r.params}
	if r.address = r.params.At; err != nil {
		return err
	}
	r.answer.Tool, r.answer.Returns = r.params.Tool, r.address.Tool.Returns
	if d := r.address.Tool.Deprecated; d != nil {
		r.answer.Warnings = append(r.answer.Warnings, r.answer.Tool+": "+d.Text())
	}
	return nil
}

// validate checks all that can be checked before the policy is asked.
func (r *run) validate(ctx context.Context) error {
	e := r.call.Invalid
	if e == nil {
		e = r.params.Check()
		r.answer.Warnings = append(r.answer.Warnings, r.params.Warnings...)
	}
	switch {
	case e == nil:
	case e == r.call.Invalid, e.Code == host.InvalidArgs:
		return r.refuse(e)
	default:
		return e
	}
	r.auth.steps = lists.Map(r.params.Steps, r.auth.of)
	return r.checkFilter(ctx)
}

// countCall counts a call that its caller makes itself, and that runs something.
func countCall(r *run, _ context.Context) (err error) {
	q := r.auth.decision.Quota
	if q != nil && r.behalf.parentID == "" && !r.call.Options.DryRun && r.host.cfg.Quotas != nil {
		r.counted, err = r.host.cfg.Quotas.Take(q)
	}
	return err
}

// begin ends a dry run, and writes the beginning of the call to the audit: an error of the audit ends the call before
// anything runs.
func (r *run) begin(context.Context) error {
	d, info := &r.auth.decision, r.address.Provider.Info()
	if text := r.timeoutCut(*d); text != "" {
		r.answer.Warnings = append(r.answer.Warnings, text)
	}
	r.auth.granted = d.Grant.Names()
	d.Grant = rights.RestrictTo(d.Grant, r.auth.effect())
	granted := d.Grant.Names()
	r.host.cfg.Debug("call: %s may call %s %s (%s); granted: %s", r.call.Principal.Name, r.answer.Tool, info.Version,
		info.Kind, cmp.Or(strings.Join(granted, ", "), "nothing"))
	if r.call.Options.DryRun {
		r.ended = true
		r.answer.Data, _ = manifest.Marshal(dryRun{true, r.answer.Tool, r.params.Value, granted,
			d.Verdict == host.Confirm})
		return nil
	}
	r.auth.rights = granted
	r.redactor.Grants = d.Grant.Secrets
	if r.host.cfg.Audit == nil || r.behalf.repeats.begun(r.repeatKey()) {
		return nil
	}
	return r.host.cfg.Audit.Begin(r.host.held.RedactEvent(r.event("begin", time.Now())))
}

type dryRun struct {
	DryRun  bool            `json:"dry_run"`
	Tool    string          `json:"tool"`
	Params  json.RawMessage `json:"params"`
	Grants  []string        `json:"grants"`
	Confirm bool            `json:"confirm"`
}

// redact replaces the values of secrets in what the tool returned. A result that was sent as output is not data, so
// there is nothing left to do with it.
func (r *run) redact(context.Context) error {
	result := r.result
	if result.Written > 0 || result.Raw {
		r.ended = true
		r.answer.Written, r.answer.Raw = result.Written, result.Raw
		r.answer.Warnings = append(r.answer.Warnings, result.Warnings...)
		return nil
	}
	texts := append([]string{string(result.Data)}, result.Warnings...)
	for _, c := range result.Content {
		texts = append(texts, c.Text, c.Data, c.URI)
	}
	if err := r.redactor.Reflected("the answer", texts...); err != nil {
		return err
	}
	r.answer.Warnings = append(r.answer.Warnings, lists.Map(result.Warnings, r.redactor.Redact)...)
	for _, s := range result.Steps {
		if s.Op == step.OpCall && s.Tool == r.address.Name() && s.Options == (step.Options{}) {
			s.Options = r.call.Given // such as the next page, which is read in the same way
			s.Options.File = ""
		}
		r.answer.Steps = append(r.answer.Steps, s.Redact(r.redactor.Redact, r.redactor.RedactJSON))
	}
	for _, c := range result.Content {
		r.answer.Content = append(r.answer.Content, redact.Clean(c, r.redactor.Redact))
	}
	r.answer.Data = r.redactor.RedactJSON(result.Data)
	return nil
}

// check checks the result, and marks the texts in it that neither the tool nor its caller wrote.
func (r *run) check(context.Context) error {
	if err := r.checkResult(r.result.Data); err != nil {
		return err
	}
	return r.markUntrusted()
}

// suggest adds what comes next to the error of a call that was not made. Parameters that only these stations can
// check, such as the path of a file, are refused like parameters that do not match the schema.
func (r *run) suggest(err error) error {
	e := host.AsError(err)
	r.params.AddSuggestions(e)
	if e.Code == host.InvalidArgs && e.Docs == nil && len(e.Steps) == 0 {
		return r.refuse(e)
	}
	return err
}

// isOutcome reports whether a code is one of the host's own.
func isOutcome(code host.Code) bool {
	return slices.ContainsFunc(host.Outcomes(), func(o host.Outcome) bool { return o.Code == code })
}

// explain completes the error of a tool that ran: with the tool that it comes from, and with what comes next.
func (r *run) explain(err error) error {
	e := host.AsError(err)
	r.redactor.RedactError(e)
	r.params.AddSuggestions(e)
	// A plugin must not report one of the host's codes, but may report not_found with an exit code of its own.
	if isOwn := e.Code == host.NotFound && e.Exit != 0; e.Tool != nil && isOutcome(e.Code) && !isOwn {
		e.Code = host.ToolFailed
	}
	r.adoptInnerError(e)
	switch {
	case len(e.Steps) > 0:
	case len(e.Denied) > 0:
		e.Steps = []step.Step{step.Operator(step.OpPolicyExplain, r.address.Plugin)}
	case e.Tool != nil:
		e.Steps = []step.Step{step.Describe(r.address.Name(), 0)}
	}
	if !r.behalf.forOperator(r.call.Principal) {
		e.Message += askOperator(e.Steps)
	}
	if approval := r.activity.approval(); approval != "" && e.Approval == "" {
		addApproval(e, approval, r.answer.Tool, &r.call)
	}
	r.auth.askAfterwards(e)
	r.answer.Approval = r.auth.approval
	r.refuseByTool(e)
	return e
}

// askOperator returns what the operator has to do about a credential, for callers who cannot do it; "" if nothing.
func askOperator(steps []step.Step) string {
	for _, s := range steps {
		switch {
		case s.Op == step.OpLogin:
			return "; ask the operator to log in for " + s.Args[0]
		case s.Op == step.OpSecretSet:
			return "; ask the operator to set the secret " + s.Args[0]
		case s.Op == step.OpPolicyGrant && len(s.Args) == 2 && strings.HasPrefix(s.Args[1], "secret:"):
			return "; ask the operator to grant " + s.Args[1] + " to " + s.Args[0]
		}
	}
	return ""
}

// shape gives the result the form that the caller asked for.
func (r *run) shape(ctx context.Context) error {
	if err := r.filterResult(ctx); err != nil {
		return err
	}
	whole := r.answer.Data
	kept := r.keepBinary()
	r.cutResult()
	if kept || r.answer.Cut {
		r.answer.Whole = whole
	}
	return nil
}

// record completes the answer, which has an error or data, and records the call.
func (r *run) record(ctx context.Context) error {
	a, c := r.answer, &r.call
	a.Duration = time.Since(r.began)
	if r.err != nil {
		own := *host.AsError(contextCause(ctx, r.err)) // a cause may end several calls, and each adds its own advice
		a.Data, a.Whole, a.Content, a.Err = nil, nil, nil, &own
		r.dropRefused(a.Err)
		a.Steps = host.BoundedSteps(append(a.Steps, a.Err.Steps...))
	}
	if r.address.Tool != nil && r.behalf.repeats == nil {
		r.updateSession(a.Err)
	}
	if c.BeforeRecord != nil {
		c.BeforeRecord(a)
	}
	e := r.event("call", r.began)
	switch {
	case r.behalf.parentID != "": // the response to a plugin is not sent to a client
	case a.Err != nil:
		e.DocsTokens = host.DocsTokens(ctx, a.Err.Docs, true)
	default:
		e.DocsTokens = host.DocsTokens(ctx, a.Docs, false)
	}
	returned := r.behalf.returned.Add(int64(e.OutBytes))
	if r.counted != nil {
		r.counted(returned)
	}
	r.activity.inner.record(r.host)
	if !r.behalf.repeats.hold(r.repeatKey(), e) {
		r.host.record(e)
	}
	return nil
}

// dropRefused removes the call that failed from what to do next, unless it is only to be made again later.
func (r *run) dropRefused(e *host.Error) {
	orNone := func(params json.RawMessage) []byte { return []byte(cmp.Or(string(params), "{}")) }
	isRefused := func(s step.Step) bool {
		return s.Op == step.OpCall && s.Tool == r.answer.Tool && s.Options == r.call.Given && len(s.Choose) == 0 &&
			advice.SameJSON(orNone(s.Params), orNone(r.call.Params))
	}
	if e.Approval != "" {
		return // the same call is to be made again, once a person has allowed it
	}
	isForOthers := !slices.ContainsFunc(e.Steps, func(s step.Step) bool { return !s.ForOperator() })
	if e.Code == host.Busy && isForOthers && r.behalf.parentID == "" { // the message says when
		again := step.Step{Op: step.OpCall, Tool: r.answer.Tool, Params: r.call.Params, Options: r.call.Given}
		e.Steps = append(slices.Clone(e.Steps), again)
		return
	}
	e.Steps = slices.DeleteFunc(slices.Clone(e.Steps), isRefused)
	if e.Retry != nil && isRefused(*e.Retry) {
		e.Retry = nil
	}
}

// contextCause replaces an error that only reports the end of the context by the cause of that end. It returns any
// other error as it is.
func contextCause(ctx context.Context, err error) error {
	if _, reported := errors.AsType[*host.Error](err); ctx.Err() == nil || reported {
		return err
	}
	if cause, ok := errors.AsType[*host.Error](context.Cause(ctx)); ok {
		return cause
	}
	return &host.Error{Code: host.Interrupted, Message: "the call was interrupted before it began", Cause: err}
}

// updateSession stores in the session whether the call failed, and how, for the next call of the same tool.
func (r *run) updateSession(e *host.Error) {
	r.host.cfg.Sessions.Update(r.call.Principal.Session, func(s *session.State) (changed bool) {
		last, failed := s.Failed[r.answer.Tool]
		if failed {
			r.retryOf = last.CallID
			r.suggestionUsed = len(last.Corrected) > 0 && advice.SameJSON(last.Corrected, r.call.Params)
		}
		if e == nil {
			if failed && !r.call.Options.DryRun {
				delete(s.Failed, r.answer.Tool)
				changed = true
			}
			if r.call.DocsOnFirstUse && r.call.Principal.Session.Name != "" && !s.Shown(r.answer.Tool, manifest.Tier2) &&
				!s.Shown(r.answer.Tool, manifest.Tier3) {
				changed = r.attachDocs(s) || changed
			}
			return changed
		}
		redacted := r.redactor.RedactAllError(e)
		e.Earlier = s.RecordErrors(r.answer.Tool, redacted)
		if n := s.Repeated(r.answer.Tool, redacted); n >= session.SameMistake &&
			r.behalf.parentID == "" { // the outer call says it
			e.Message += fmt.Sprintf("; the same error for the %s time in this session", session.Ordinal(n))
		}
		s.RecordFailure(r.answer.Tool, session.Failure{CallID: r.answer.CallID, Corrected: bytes.Clone(redacted.Corrected)})
		return true
	})
}

// attachDocs adds tier 2 of the tool's documentation to the answer. It reports whether it did.
func (r *run) attachDocs(s *session.State) (attached bool) {
	docs, err := r.address.Describe(r.address.Tool, manifest.Tier2)
	if err != nil {
		return false
	}
	s.RecordShown(r.answer.Tool, manifest.Tier2)
	r.answer.Docs = docs
	r.tiers = append(r.tiers, manifest.Tier2)
	r.host.cfg.Debug("docs: tier 2 of %s, first use", r.answer.Tool)
	return true
}

// correctionsOf returns the kinds of changes that turn the given parameters into the corrected ones of an error.
func correctionsOf(e *host.Error) (kinds []string) {
	if e == nil || e.Corrected == nil {
		return nil
	}
	for _, c := range e.Changes {
		kinds = lists.Add(kinds, c.How)
	}
	return kinds
}

func (r *run) event(op string, began time.Time) host.Event {
	r.activity.mu.Lock()
	defer r.activity.mu.Unlock()
	a, c := r.answer, &r.call
	e := host.Event{
		Time: began, Op: op, CallID: a.CallID, Session: c.Principal.Session.String(), Caller: c.Principal.Name,
		Origin: c.Principal.Origin, Tool: r.redactor.RedactAll(a.Tool), Mode: r.mode, Tiers: r.tiers,
		Params: r.redactor.RedactAllJSON(c.Params), Members: r.redactor.WithoutSecrets(r.params.Members),
		Err: r.redactor.RedactAllError(a.Err), Result: r.redactor.RedactAllJSON(a.Data), Duration: a.Duration,
		OutBytes: len(a.Data) + int(a.Written), RetryOf: r.retryOf, SuggestionUsed: r.suggestionUsed,
		Rights: r.auth.rights, Uses: r.activity.uses, UsesDropped: r.activity.dropped, Refused: r.activity.denials,
		Within: r.behalf.parentID, DryRun: c.Options.DryRun, Audit: r.auth.decision.Audit, By: r.auth.by,
		Approval: a.Approval, CPU: r.activity.cpu, PeakBytes: r.activity.peak,
	}
	if r.params.Coerced {
		e.Changes = []string{"coerced"}
	}
	if r.result != nil {
		e.Subject = r.redactor.RedactAll(r.result.Subject)
	}
	if e.Err != nil {
		e.Subject = cmp.Or(e.Subject, e.Err.Subject)
	}
	e.Changes = append(e.Changes, correctionsOf(r.answer.Err)...)
	if r.address.Provider != nil {
		e.Digest = r.address.Provider.Info().Build()
	}
	if r.answer.Err != nil {
		if encoded, err := manifest.Marshal(r.answer.Err.Object()); err == nil {
			e.OutBytes = len(encoded)
		}
	}
	return e
}
