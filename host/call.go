package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	a := &Answer{Tool: strings.ReplaceAll(c.Name, "__", "."), CallID: newCallID()}
	run := &run{host: h, call: c, answer: a}
	err := run.do(ctx)
	a.Duration = time.Since(began)
	if err != nil {
		a.Data, a.Err = nil, AsError(err)
		a.Next = append(a.Next, a.Err.Next...)
	}
	h.record(run.event(began))
	return a
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
		r.remember(AsError(err))
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
		r.answer.Data, err = marshal(dryRun{true, r.answer.Tool, r.params, decision.Grant.Names(), decision.Verdict == Confirm})
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
		r.host.documentToolsOwnRefusal(r, e)
		r.remember(e)
		return e
	}
	r.remember(nil)
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
	return Errorf(InvalidArgs, "%s is a %s; name one of its tools", a.Name(), what).WithNext(listCommand(a))
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
	judge, err := r.host.judge(r.address, r.address.Tool.Params, "params")
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
		return r.refuse(r.violated(judge, mended, violations))
	}
	for _, s := range slips {
		r.answer.Warnings = append(r.answer.Warnings, fmt.Sprintf("%s: took %s as %s", pointerOr(s.Pointer), s.From, s.To))
	}
	r.params = schema.Marshal(mended)
	return nil
}

func syntaxError(err error, raw []byte) *Error {
	e := &Error{Code: InvalidArgs, Message: manifest.CleanLine(err.Error()), Cause: err}
	var at *schema.SyntaxError
	if errors.As(err, &at) {
		e.Details = []Detail{{
			Parameter: at.Pointer, Keyword: "syntax", Provided: excerpt(raw, int(at.Offset)), Expected: "one JSON object",
			Suggestion: fmt.Sprintf("mend line %d, column %d", at.Line, at.Column),
		}}
	}
	return e
}

// excerpt shows what stands around an offset, on one line.
func excerpt(raw []byte, offset int) string {
	offset = max(0, min(offset, len(raw)))
	from, to := max(0, offset-20), min(len(raw), offset+20)
	return manifest.CleanLine(strings.ToValidUTF8(string(raw[from:to]), "\ufffd"))
}

func pointerOr(pointer string) string {
	if pointer == "" {
		return "parameters"
	}
	return pointer
}

// violated makes the error of parameters that break the schema: every violation, and the call as it would be accepted where that is certain.
func (r *run) violated(judge *schema.Schema, value any, violations []schema.Violation) *Error {
	e := &Error{Code: InvalidArgs}
	for _, v := range violations {
		d := Detail{
			Parameter: manifest.CleanLine(v.Pointer), Keyword: v.Keyword,
			Provided: manifest.CleanLine(v.Provided), Expected: manifest.CleanLine(v.Expected),
		}
		d.Suggestion = suggestion(v)
		e.Details = append(e.Details, d)
		for _, name := range v.DidYouMean {
			e.DidYouMean = append(e.DidYouMean, Suggestion{manifest.CleanLine(name), schema.Distance(given(value, v), name)})
		}
	}
	if fixed, ok := r.corrected(judge, value, violations); ok {
		if whole := schema.Marshal(fixed); len(whole) <= maxCorrected {
			e.Corrected = whole
			e.Command = manifest.CommandLine(r.answer.Tool, whole)
		}
	}
	for i := range e.Details {
		if e.Details[i].Suggestion == "" && e.Corrected != nil {
			e.Details[i].Suggestion = "--params " + manifest.ShellQuote(string(e.Corrected))
		}
	}
	e.DidYouMean = closest(e.DidYouMean)
	e.Message = fmt.Sprintf("Tool '%s' failed: %s", r.answer.Tool, plural(len(violations), "violation"))
	return e
}

// corrected mends what can be mended with certainty, and takes from the tool's own examples what is still wrong or
// missing. What it returns would be accepted.
func (r *run) corrected(judge *schema.Schema, value any, violations []schema.Violation) (any, bool) {
	fixed, ok := schema.Correct(value, violations)
	if !ok {
		fixed = value
	}
	left, err := judge.Validate(fixed)
	if err == nil && len(left) == 0 {
		return fixed, ok
	}
	object, isObject := fixed.(map[string]any)
	if err != nil || !isObject {
		return nil, false
	}
	object = maps.Clone(object)
	for _, v := range left {
		name := property(v.Pointer)
		if v.Remove {
			delete(object, name)
		} else if sample, known := r.sample(name); known {
			object[name] = sample
		}
	}
	again, err := judge.Validate(object)
	return object, err == nil && len(again) == 0
}

// sample is a value that an example of the tool gives to a parameter.
func (r *run) sample(name string) (any, bool) {
	for _, e := range r.address.Tool.Examples {
		if e.ExitCode != 0 {
			continue
		}
		if value, err := schema.Decode(e.Params, schema.Limits{}); err == nil {
			if object, ok := value.(map[string]any); ok && object[name] != nil {
				return object[name], true
			}
		}
	}
	return nil, false
}

// property is the parameter that a JSON pointer leads into.
func property(pointer string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	return unescape(name)
}

func unescape(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

// given is the word that a violation is about: the name of an unknown property, or the value itself.
func given(value any, v schema.Violation) string {
	steps := strings.Split(v.Pointer, "/")[1:]
	if v.Keyword == "additionalProperties" && len(steps) > 0 {
		return unescape(steps[len(steps)-1])
	}
	for _, step := range steps {
		switch at := value.(type) {
		case map[string]any:
			value = at[unescape(step)]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return ""
			}
			value = at[i]
		}
	}
	if text, ok := value.(string); ok {
		return text
	}
	return string(schema.Marshal(value))
}

func suggestion(v schema.Violation) string {
	name := v.Pointer[strings.LastIndexByte(v.Pointer, '/')+1:]
	switch {
	case v.Rename != "":
		return fmt.Sprintf("rename %s to %s", manifest.CleanLine(name), manifest.CleanLine(v.Rename))
	case len(v.DidYouMean) > 0:
		return "did you mean " + manifest.CleanLine(strings.Join(v.DidYouMean, ", ")) + "?"
	case v.Remove:
		return "remove " + manifest.CleanLine(name)
	case v.Keyword == "required" && strings.Count(v.Pointer, "/") == 1:
		return "add --param " + manifest.ShellQuote(manifest.CleanLine(name)+"=VALUE")
	}
	return ""
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// refuse adds to a parameter error what helps to mend it: this tool's documentation, one tier deeper
// when the session has been shown the second, and the command that shows it again.
func (r *run) refuse(e *Error) error {
	tool := r.address.Tool
	tier, why := manifest.Tier2, "first parameter error"
	r.host.cfg.Sessions.update(r.call.Session, func(s *session) {
		if s.shown(r.answer.Tool, manifest.Tier2) {
			tier, why = manifest.Tier3, "parameter error after tier 2 was shown"
		}
		s.show(r.answer.Tool, tier)
	})
	if docs, err := r.host.describe(r.address, tool, tier); err == nil {
		e.Docs = docs
		r.tiers = append(r.tiers, tier)
		r.host.cfg.Debug("docs: tier %d of %s, %s", tier, r.answer.Tool, why)
	}
	if e.Command != "" {
		e.Next = append(e.Next, e.Command)
	}
	e.Next = append(e.Next, "parley "+r.address.Plugin+" "+tool.Name+" --describe")
	return e
}

// documentToolsOwnRefusal treats parameters that the tool itself found wrong as if the host had found it.
func (h *Host) documentToolsOwnRefusal(r *run, e *Error) {
	if e.Code == InvalidArgs && e.Docs == nil && len(e.Details) > 0 {
		if e.Message == "" {
			e.Message = fmt.Sprintf("Tool '%s' failed: %s", r.answer.Tool, plural(len(e.Details), "violation"))
		}
		_ = r.refuse(e)
	}
}

func (r *run) decide(ctx context.Context) (Decision, error) {
	info := r.address.Provider.Info()
	ask := Ask{Caller: r.call.Caller, Remote: r.call.Remote, Held: r.call.held, Plugin: info.Name, Tool: r.address.Tool.Name, Effect: r.address.Tool.Effect, Digest: info.Digest}
	if info.Kind != manifest.KindBuiltin {
		m, err := r.address.Provider.Manifest()
		if err != nil {
			return Decision{}, err
		}
		ask.Capabilities = m.Capabilities
	}
	d, err := r.host.cfg.Policy.Decide(ctx, ask)
	if err != nil {
		return d, err
	}
	for _, c := range r.call.outer {
		as, err := r.host.cfg.Policy.Decide(ctx, Ask{Caller: c.name, Remote: c.remote, Plugin: ask.Plugin, Tool: ask.Tool, Effect: ask.Effect})
		if err != nil {
			return d, err
		}
		if as.Verdict == Deny || as.Verdict == Confirm && d.Verdict == Allow {
			d.Verdict, d.Reason, d.Next, ask.Caller = as.Verdict, as.Reason, as.Next, c.name
		}
		if d.Verdict == Deny {
			break
		}
	}
	if d.Verdict == Deny {
		return d, &Error{Code: Denied, Message: fmt.Sprintf("%s may not call %s: %s; nothing was run", ask.Caller, r.answer.Tool, d.Reason), Next: d.Next}
	}
	if len(d.Missing) > 0 {
		rights := make([]string, len(d.Missing))
		for i, m := range d.Missing {
			rights[i] = m.Right
		}
		return d, &Error{Code: Denied, Denied: d.Missing, Next: d.Next,
			Message: fmt.Sprintf("%s needs rights that are not granted: %s; nothing was run", info.Name, strings.Join(rights, ", "))}
	}
	if d.Verdict == Confirm && !r.call.Options.DryRun {
		return d, r.confirm(ctx, ask, d)
	}
	return d, nil
}

func (r *run) confirm(ctx context.Context, ask Ask, d Decision) error {
	if r.host.cfg.Confirm == nil {
		return &Error{Code: Denied, Next: d.Next, Message: fmt.Sprintf("%s must be confirmed (%s) and nobody can be asked; nothing was run", r.answer.Tool, d.Reason)}
	}
	yes, err := r.host.cfg.Confirm(ctx, ask, d.Reason)
	if err == nil && !yes {
		err = Errorf(Denied, "%s was not confirmed; nothing was run", r.answer.Tool)
	}
	return err
}

func (r *run) invoke(ctx context.Context, d Decision) (*Result, error) {
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
		if !errors.As(err, &said) || said.Code != Timeout {
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
	judge, err := r.host.judge(r.address, r.address.Tool.Returns, "returns")
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
	r.answer.Data, err = marshal(cut)
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
			delete(s.Failed, r.answer.Tool)
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
		if answered, err := marshal(r.answer.Err.Object()); err == nil {
			e.OutBytes = len(answered)
		}
		if r.answer.Err.Docs != nil {
			e.DocsTokens = r.answer.Err.Docs.Tokens()
		}
	}
	return e
}

// marshal writes JSON without HTML escapes.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
