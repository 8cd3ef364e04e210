package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

const (
	// DefaultTimeout bounds a call for which nobody said otherwise.
	DefaultTimeout = 30 * time.Second
	// MaxParams bounds the parameters of one call as JSON text.
	MaxParams = 16 << 20
	// maxCorrected is the size up to which an error carries the parameters that would have been accepted: it says
	// them several times.
	maxCorrected = 8 << 10
	// maxSuggested bounds how much of them the single violations repeat.
	maxSuggested = 2 << 10
	// maxDepthOfCalls bounds plugins that call plugins.
	maxDepthOfCalls = 8
)

// Call is what a caller wants run.
type Call struct {
	Name    string          // qualified: "cdp.Network.getCookies" or "cdp__Network__getCookies"
	Params  json.RawMessage // as given; empty means {}
	Caller  string
	Remote  bool // the caller came over the network
	Session string
	Options Options

	// Invalid says that the caller could not even put the parameters together; the call is refused with it.
	Invalid *Error
	// Filter changes the data before it is cut to Options.MaxBytes. May be nil.
	Filter func(json.RawMessage) (json.RawMessage, error)
	// Progress, Log, Emit and Started are as in Request. May be nil.
	Progress func(done, total float64, message string)
	Log      func(level int, message string)
	Emit     func(record json.RawMessage) error
	Started  func()

	// outer are the callers in whose name a plugin calls, the first one first: it gains nothing that one of them
	// lacks. held are the tools that it was granted.
	outer []caller
	held  []string
}

type caller struct {
	name   string
	remote bool
}

// Answer is what became of a call: data, or Err.
type Answer struct {
	Tool     string
	CallID   string
	Data     json.RawMessage
	Returns  json.RawMessage // the schema of Data as the tool declares it
	Err      *Error
	Warnings []string
	Next     []string
	Duration time.Duration
	Cut      bool // Data is a part of the result, wrapped
}

// Call is the one way in which anything is run, whoever asks: look up, mend and validate, ask the
// policy, invoke, check the result, record.
func (h *Host) Call(ctx context.Context, c Call) *Answer {
	began := time.Now()
	a := &Answer{Tool: shown(strings.ReplaceAll(c.Name, "__", ".")), CallID: newCallID()}
	run := &run{host: h, call: c, answer: a}
	err := run.do(ctx)
	a.Duration = time.Since(began)
	if err != nil {
		a.Data, a.Err = nil, AsError(overdue(ctx, err))
		a.Next = append(a.Next, a.Err.Next...)
	}
	if run.address.Tool != nil {
		run.remember(a.Err)
	}
	h.record(run.event(began))
	return a
}

// overdue tells an error that only says that the context is over from others, and gives it the context's own reason.
func overdue(ctx context.Context, err error) error {
	var said, cause *Error
	if ctx.Err() == nil || errors.As(err, &said) {
		return err
	}
	if errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	return &Error{Code: Interrupted, Message: "the call was interrupted before it began", Cause: err}
}

// run is one call on its way.
type run struct {
	host    *Host
	call    Call
	answer  *Answer
	address Address
	params  json.RawMessage
	tiers   []int
	retryOf string
	heeded  bool // these are the parameters that the last failure was answered with
}

func (r *run) do(ctx context.Context) error {
	var err error
	find := r.host.Catalog().Find
	if r.call.Options.SendAnyway {
		find = r.host.Catalog().FindAnyway
	}
	if r.address, err = find(r.call.Name); err != nil {
		return err
	}
	if r.address.Tool == nil {
		return notCallable(r.address)
	}
	r.answer.Tool, r.answer.Returns = r.address.Name(), r.address.Tool.Returns

	if r.call.Invalid != nil {
		err = r.refuse(r.call.Invalid)
	} else {
		err = r.validate()
	}
	if err != nil {
		return err
	}
	debug := r.host.cfg.Debug
	info := r.address.Provider.Info()
	debug("call: %s %s (%s), parameters are valid", r.answer.Tool, info.Version, info.Kind)
	decision, err := r.decide(ctx)
	if err != nil {
		return err
	}
	debug("policy: %s may call %s; granted: %s", r.call.Caller, r.answer.Tool, orNothing(decision.Grant.Names()))
	if r.call.Options.DryRun {
		r.answer.Data, err = manifest.Marshal(dryRun{true, r.answer.Tool, r.params, decision.Grant.Names(), decision.Verdict == Confirm})
		return err
	}
	began := time.Now()
	result, err := r.invoke(ctx, decision)
	debug("invoke: ended after %s", time.Since(began).Round(time.Microsecond))
	if err == nil {
		r.answer.Warnings = append(r.answer.Warnings, result.Warnings...)
		err = r.accept(result.Data)
	}
	if err != nil {
		e := AsError(err)
		if e.Tool != nil && isOutcome(e.Code) {
			e.Code = ToolFailed // a plugin's own name for a failure must not read like one of the host's
		}
		if e.Tool != nil && len(e.Next) == 0 {
			e.Next = []string{"parley " + r.address.Plugin + " " + r.address.Tool.Name + " --describe"}
		}
		r.adopt(e)
		return e
	}
	return r.show()
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

type dryRun struct {
	DryRun  bool            `json:"dry_run"`
	Tool    string          `json:"tool"`
	Params  json.RawMessage `json:"params"`
	Grants  []string        `json:"grants"`
	Confirm bool            `json:"confirm"`
}

func notCallable(a Address) *Error {
	if a.Entry != nil {
		return Errorf(InvalidArgs, "%s is a %s and cannot be called", a.Name(), a.Entry.Kind).WithNext("parley " + a.Plugin + " " + a.Entry.Tool.Name + " --describe")
	}
	what := "plugin"
	if a.Group != "" {
		what = "group"
	}
	return Errorf(InvalidArgs, "%s is a %s; name one of its tools", a.Name(), what).WithNext(a.ListCommand())
}

// validate decodes the parameters, mends safe slips, fills in defaults and holds them against the schema.
func (r *run) validate() error {
	raw := r.call.Params
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	value, err := schema.Decode(raw, schema.Limits{Bytes: MaxParams})
	if err != nil {
		return r.refuse(syntaxError(err, raw))
	}
	judge, err := r.address.judge(r.address.Tool.Params, "params")
	if err != nil {
		return err
	}
	if judge == nil || r.call.Options.SendAnyway {
		r.params = raw
		if _, isObject := value.(map[string]any); !isObject {
			return r.refuse(Errorf(InvalidArgs, "parameters are an object: --params '{...}'"))
		}
		return nil
	}
	mended, slips := judge.Mend(value)
	violations, err := judge.Validate(mended)
	var tooCostly *schema.CostError
	switch {
	case errors.As(err, &tooCostly):
		return &Error{Code: LimitExceeded, Message: "holding these parameters against the tool's schema would take too long: " + err.Error(), Cause: err}
	case err != nil:
		return err
	case len(violations) > 0:
		return r.refuse(r.violated(judge, value, mended, violations))
	}
	for _, s := range slips {
		r.answer.Warnings = append(r.answer.Warnings, fmt.Sprintf("%s: took %s as %s", pointerOr(s.Pointer), s.From, s.To))
	}
	r.params = schema.Marshal(mended)
	return nil
}

func (r *run) invoke(ctx context.Context, d Decision) (*Result, error) {
	if p, ok := r.address.Provider.(Preparer); ok {
		if err := p.Prepare(ctx); err != nil && ctx.Err() != nil {
			return nil, r.ended(ctx, 0, err)
		} else if err != nil {
			return nil, err
		}
	}
	timeout := r.timeout(d)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req := &Request{
		Tool: r.address.Tool.Name, Def: r.address.Tool, Params: r.params,
		Caller: r.call.Caller, Session: r.call.Session, CallID: r.answer.CallID,
		Grant: d.Grant, Limits: d.Limits, Options: r.call.Options, Settings: d.Settings,
		Progress: r.call.Progress, Log: r.call.Log, Emit: r.call.Emit, Started: r.call.Started,
	}
	req.CallTool = func(ctx context.Context, tool string, params json.RawMessage, o Options) (*Result, error) {
		return r.callTool(ctx, d.Grant.Tools, tool, params, o)
	}
	invoke := r.address.Provider.Invoke
	if s, ok := r.address.Provider.(Streamer); ok && r.call.Emit != nil {
		invoke = s.Stream
	}
	result, err := invoke(ctx, req)
	if ctx.Err() != nil && (err != nil || errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		return nil, r.ended(ctx, timeout, err)
	}
	if err == nil && result == nil {
		return nil, Errorf(Internal, "%s answered nothing", r.answer.Tool)
	}
	return result, err
}

// ended judges a call whose context is over by the context, never by what the tool claims. A provider
// that says more about a timeout is kept.
func (r *run) ended(ctx context.Context, timeout time.Duration, err error) error {
	var cause, said *Error
	if errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if !errors.As(err, &said) || said.Code != Timeout || said.Tool != nil {
			said = Errorf(Timeout, "%s did not end within %s", r.answer.Tool, timeout)
		}
		if len(said.Next) == 0 {
			said.Next = []string{fmt.Sprintf("give it longer, such as --timeout %s, or ask for less", 4*timeout)}
		}
		return said
	}
	return Errorf(Interrupted, "%s was interrupted", r.answer.Tool)
}

func (r *run) timeout(d Decision) time.Duration {
	timeout := DefaultTimeout
	if m, err := r.address.Provider.Manifest(); err == nil && m.Limits.TimeoutMS > 0 {
		timeout = time.Duration(m.Limits.TimeoutMS) * time.Millisecond
	}
	if d.Limits.Timeout > 0 {
		timeout = min(timeout, d.Limits.Timeout)
	}
	if asked := r.call.Options.Timeout; asked > 0 {
		if d.Limits.Timeout > 0 {
			asked = min(asked, d.Limits.Timeout)
		}
		timeout = asked
	}
	return timeout
}

// callTool is what a plugin may do in its call's name: the whole path again, as that plugin.
func (r *run) callTool(ctx context.Context, held []string, tool string, params json.RawMessage, o Options) (*Result, error) {
	if len(r.call.outer) >= maxDepthOfCalls {
		return nil, Errorf(LimitExceeded, "plugins call each other more than %d deep", maxDepthOfCalls)
	}
	a := r.host.Call(ctx, Call{
		Name: tool, Params: params, Caller: "plugin:" + r.address.Plugin, Session: r.call.Session,
		Options: o, held: held, outer: append(slices.Clone(r.call.outer), caller{r.call.Caller, r.call.Remote}),
	})
	if a.Err != nil {
		return nil, a.Err
	}
	return &Result{Data: a.Data, Warnings: a.Warnings}, nil
}

// accept holds what came back against the tool's own schema. Chrome's may be newer than our data: there it only warns.
func (r *run) accept(data json.RawMessage) error {
	builtin := r.address.Provider.Info().Kind == manifest.KindBuiltin
	limits := schema.Limits{Bytes: max(len(data), 1), ReplaceSurrogates: builtin}
	r.answer.Data = data
	judge, err := r.address.judge(r.address.Tool.Returns, "returns")
	if err != nil {
		return err
	}
	if builtin && (judge == nil || len(data) > MaxParams) {
		return nil
	}
	value, err := schema.Decode(data, limits)
	if err != nil {
		return &Error{Code: InvalidResult, Message: fmt.Sprintf("%s answered with something that is not JSON: %v", r.answer.Tool, err), Cause: err}
	}
	if judge == nil {
		return nil
	}
	violations, err := judge.Validate(value)
	if err != nil && builtin {
		return nil
	}
	if err != nil {
		return &Error{Code: LimitExceeded, Message: fmt.Sprintf("holding the result of %s against its schema would take too long", r.answer.Tool), Cause: err}
	}
	if len(violations) == 0 {
		return nil
	}
	if builtin {
		for _, v := range violations[:min(3, len(violations))] {
			r.answer.Warnings = append(r.answer.Warnings, manifest.CleanLine(fmt.Sprintf("result %s: expected %s, got %s", v.Pointer, v.Expected, v.Provided)))
		}
		return nil
	}
	e := Errorf(InvalidResult, "%s answered with a result that breaks its own schema: %s", r.answer.Tool, plural(len(violations), "violation"))
	for _, v := range violations {
		e.Details = append(e.Details, Detail{
			Parameter: manifest.CleanLine(v.Pointer), Keyword: v.Keyword,
			Provided: manifest.CleanLine(v.Provided), Expected: manifest.CleanLine(v.Expected),
		})
	}
	return e.WithNext("parley " + r.address.Plugin + " " + r.address.Tool.Name + " --describe --tier 3")
}

// show filters the result and cuts it to what the caller can take; the whole is kept for the session.
func (r *run) show() error {
	if r.call.Filter != nil {
		filtered, err := r.call.Filter(r.answer.Data)
		if err != nil {
			return err
		}
		r.answer.Data = filtered
	}
	limit := r.call.Options.MaxBytes
	if limit <= 0 || len(r.answer.Data) <= limit {
		return nil
	}
	whole := r.answer.Data
	text := strings.ToValidUTF8(string(whole[:limit]), "")
	cut := truncated{Truncated: true, TotalBytes: len(whole), ShownBytes: len(text), Text: text}
	if r.host.cfg.Sessions.keepResult(r.call.Session, r.answer.CallID, whole) {
		cut.Next = "parley://result/" + r.answer.CallID
	} else {
		cut.Next = "ask for less, or write the whole with --out FILE"
	}
	var err error
	r.answer.Cut = true
	r.answer.Data, err = manifest.Marshal(cut)
	r.answer.Warnings = append(r.answer.Warnings, fmt.Sprintf("the result was cut: %d of %d bytes are shown", len(text), len(whole)))
	return err
}

type truncated struct {
	Truncated  bool   `json:"truncated"`
	TotalBytes int    `json:"total_bytes"`
	ShownBytes int    `json:"shown_bytes"`
	Text       string `json:"text"`
	Next       string `json:"next"`
}

// remember keeps in the session what the next call of this tool should know: where this one failed, or that it did not.
func (r *run) remember(e *Error) {
	r.host.cfg.Sessions.update(r.call.Session, func(s *session) {
		if last, failed := s.Failed[r.answer.Tool]; failed {
			r.retryOf = last.CallID
			r.heeded = len(last.Corrected) > 0 && sameJSON(last.Corrected, r.call.Params)
		}
		if e == nil {
			if !r.call.Options.DryRun {
				delete(s.Failed, r.answer.Tool)
			}
			return
		}
		if s.Failed == nil {
			s.Failed = map[string]failure{}
		}
		s.Failed[r.answer.Tool] = failure{CallID: r.answer.CallID, Corrected: e.Corrected}
	})
}

func sameJSON(a, b []byte) bool {
	x, err := schema.Decode(a, schema.Limits{Bytes: MaxParams})
	if err != nil {
		return false
	}
	y, err := schema.Decode(b, schema.Limits{Bytes: MaxParams})
	return err == nil && bytes.Equal(schema.Marshal(x), schema.Marshal(y))
}

func (r *run) event(began time.Time) Event {
	e := Event{
		Time: began, Op: "call", CallID: r.answer.CallID, Session: r.call.Session, Caller: r.call.Caller,
		Tool: r.answer.Tool, Mode: r.host.cfg.Mode, Tiers: r.tiers, Params: r.call.Params, Err: r.answer.Err,
		Duration: r.answer.Duration, OutBytes: len(r.answer.Data), RetryOf: r.retryOf, SuggestionUsed: r.heeded, Result: r.answer.Data,
	}
	if r.address.Provider != nil {
		e.Digest = r.address.Provider.Info().Digest
	}
	if r.answer.Err != nil {
		if answered, err := manifest.Marshal(r.answer.Err.Object()); err == nil {
			e.OutBytes = len(answered)
		}
		if r.answer.Err.Docs != nil {
			e.DocsTokens = r.answer.Err.Docs.Tokens()
		}
	}
	return e
}
