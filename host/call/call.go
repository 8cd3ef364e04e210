package call

import (
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
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

const (
	// maxCallDepth bounds the nesting of calls between plugins, maxInnerCalls the number of calls that one call causes.
	maxCallDepth  = 8
	maxInnerCalls = 10_000
	// maxProgramCalls bounds the calls that a program makes as its caller.
	maxProgramCalls = 200
	// maxUses bounds the uses of rights, and also the denials, in the record of one call.
	maxUses = 200
)

// behalf says for whom a plugin makes a call. The zero value is that of a call from outside.
type behalf struct {
	// callers are the callers on whose behalf a plugin makes this call, outermost first. The plugin gains no right that
	// one of them does not have. callerGrant is the grant of that plugin, parentID the id of the call that makes this one.
	callers      []host.Principal
	callerGrant  host.Grant
	callerAsks   manifest.Capabilities // of that plugin's manifest
	callerEffect string                // of the tool that makes this call
	callerPlugin host.Provider         // that plugin; nil if the caller is not one
	// trusted means that the plugin is shipped: the callers on whose behalf it calls only deny tools by name.
	trusted bool
	// program is the plugin that makes this call as its own caller, with the capability caller; "" if none does, also not
	// further out.
	program  string
	parentID string
	// innerCalls counts the calls that plugins made on behalf of the outermost one. redactor holds the secrets that
	// must not occur in their records.
	innerCalls *atomic.Int32
	redactor   *redact.Redactor
	handed     *handed  // files that were opened for the outermost call
	repeats    *repeats // of the call in which a plugin makes this one on its own behalf; nil in any other case
}

// recordUse adds a use of a right to the record of the call.
func (r *run) recordUse(what string) {
	what = manifest.CleanLine(r.redactor.RedactAll(what))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case slices.Contains(r.uses, what):
	case len(r.uses) < maxUses:
		r.uses = append(r.uses, what)
	default:
		r.usesDropped++
	}
}

// effects returns the uses of rights that may have changed something.
func (r *run) effects() (changes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, use := range r.uses {
		kind, of, _ := strings.Cut(use, ":")
		how, _, _ := strings.Cut(of, ":")
		switch {
		case kind == "secret", kind == "fs" && how == "read", kind == "http" && (how == "GET" || how == "HEAD"):
			continue
		case kind == "tool":
			if a, err := r.host.Catalog().Find(of); err == nil && a.Tool != nil && a.Tool.Effect == manifest.EffectRead {
				continue
			}
		}
		changes = append(changes, use)
	}
	return changes
}

// recordDenial adds a denied right to the record of the call.
func (r *run) recordDenial(right string) {
	right = manifest.CleanLine(r.redactor.RedactAll(right))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.denials) < maxUses && !slices.Contains(r.denials, right) {
		r.denials = append(r.denials, right)
	}
}

// invoke runs the tool. The schema of the result of a built-in tool is compiled meanwhile, and check finds it in the
// catalog; that of a plugin is not compiled this way, because it may take long.
func (r *run) invoke(ctx context.Context) error {
	if r.address.Provider.Info().Kind == manifest.KindBuiltin && !r.address.SchemaCompiled("returns") {
		go r.address.SchemaOf(r.address.Tool.Returns, "returns")
	}
	began := time.Now()
	result, err := r.runTool(ctx, r.decision)
	r.host.cfg.Debug("invoke: ended after %s", time.Since(began).Round(time.Microsecond))
	r.result = result
	return err
}

// runTool runs the tool until the first of its ends: its own, that of its time, or that of its rights.
func (r *run) runTool(ctx context.Context, d host.Decision) (*host.Result, error) {
	// A timeout that is given with the call limits the time until the answer. Any other one limits only the run.
	if limit := r.call.Options.Timeout; limit > 0 && !r.call.Options.TimeoutConfigured {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	request := r.request(d)
	if prepare := r.address.Provider.Features().Prepare; prepare != nil {
		if err := prepare(ctx, request); err != nil && ctx.Err() != nil {
			return nil, r.contextError(ctx, d, 0, err) // the step is the call without a timeout
		} else if err != nil {
			return nil, r.causeOf(ctx, err)
		}
	}
	timeout := r.timeout(d)
	ctx, stop := r.watch(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r.deadline, _ = ctx.Deadline()
	result, err := r.address.Provider.Invoke(ctx, request)
	if ctx.Err() != nil && (err != nil || errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		return r.withDenials(nil, r.contextError(ctx, d, timeout, err))
	}
	if err == nil && result == nil {
		return nil, host.Errorf(host.Internal, "%s returned no result", r.answer.Tool)
	}
	err = r.causeOf(ctx, err)
	if errors.Is(err, host.Trapped) {
		host.AsError(err).Effects = r.effects()
	}
	return r.withDenials(result, err)
}

// causeOf returns why a plugin could not run to its end. A runner ends, and a module is gone, with the plugin or its
// rights, which may be seen here before the watch sees the change.
func (r *run) causeOf(ctx context.Context, err error) error {
	if info := r.address.Provider.Info(); info.Kind != manifest.KindBuiltin &&
		(errors.Is(err, host.Unavailable) || errors.Is(err, host.Trapped)) {
		if lost, _ := r.lost(ctx, info); lost != nil {
			return lost
		}
	}
	return err
}

// adoptInnerError gives the error of a plugin that ended with the exit code of an inner call that failed the code of
// that call and what to do next: the host found that failure, and the plugin only passes it on.
func (r *run) adoptInnerError(e *host.Error) {
	r.mu.Lock()
	inner := r.innerError
	r.mu.Unlock()
	switch {
	case e.Tool == nil || inner == nil || e.Tool.Exit != inner.ExitCode():
	case inner.Exit != 0 && strings.Contains(e.Message, inner.Message[:min(len(inner.Message), maxNamed)]):
		r.adoptDeclared(e, inner)
	case inner.Exit == 0 && e.Code == host.ToolFailed && host.IsOutcome(inner.Code):
		e.Code, e.Tool, e.Protocol, e.Steps = inner.Code, nil, inner.Protocol, inner.Steps
	}
}

// adoptDeclared is adoptInnerError for an exit code that the inner tool declares. The numbers of two plugins have
// nothing to do with each other: the code is that of the same name, or 1 if the outer tool declares none.
func (r *run) adoptDeclared(e, inner *host.Error) {
	name := string(inner.Code)
	exit, details := e.Tool.Exit, e.Tool.Details
	e.Code, e.Exit, e.Steps = host.ToolFailed, 0, inner.Steps
	if m, err := r.address.Provider.Manifest(); err == nil {
		if by := m.ExitCode(exit); by != nil { // whose advice the message has
			e.Message = strings.TrimSuffix(e.Message, " ("+manifest.CleanLine(by.Suggestion)+")")
		}
		of := r.address.Tool.ExitCodes
		i := slices.IndexFunc(m.ExitCodes, func(c manifest.ExitCode) bool { return c.Name == name })
		if i >= 0 && (len(of) == 0 || slices.Contains(of, name)) {
			exit = m.ExitCodes[i].Code
			e.Code, e.Exit = inner.Code, exit
		}
	}
	if len(details) == 0 && inner.Tool != nil {
		details = inner.Tool.Details
	}
	e.Tool = &host.ToolError{Exit: exit, Name: name, Details: details}
}

func (r *run) request(d host.Decision) *host.Request {
	params := r.params.Value
	if r.confined != nil {
		params = r.confined
	}
	functions := &Functions{ReadSecret: r.readSecret, MayCall: r.mayCall, Last: r.call.Sink.Last, Denied: r.denyUse}
	functions.CallTool = func(ctx context.Context, tool string, params json.RawMessage, o host.Options) (*host.Result,
		error) {
		return r.callTool(ctx, d.Grant, tool, params, o)
	}
	if r.host.cfg.Egress != nil {
		functions.HTTP = func(ctx context.Context, q *host.HTTPRequest) (*host.HTTPResponse, error) {
			return r.send(ctx, d.Grant, q)
		}
	}
	if r.address.Provider.Info().Kind == manifest.KindBuiltin {
		functions.BoundSecret, functions.Script, functions.CopyHanded = r.boundSecret, r.script, r.copyHanded
	}
	req := &host.Request{
		Job: host.Job{
			Tool: r.address.Tool.Name, Params: params, Caller: r.call.Principal.Name, Session: r.call.Principal.Session,
			CallID: r.answer.CallID, Grant: d.Grant, CallerGrant: r.behalf.callerGrant, Trusted: r.behalf.trusted,
			ForCLI: r.actsForCLI(),
			Limits: d.Limits, Options: r.call.Options, Settings: d.Settings, Isolate: d.Isolate, Drain: r.call.Sink.Drain,
			Wants: r.call.Sink.Wants,
		},
		Def: r.address.Tool, Ask: functions.Ask, Events: r.receive,
	}
	req.Wants.Until = r.call.Sink.Last != nil
	if len(d.Grant.FS)+len(r.behalf.callerGrant.FS) > 0 {
		req.Guard = r.host.cfg.Own.Guard()
	}
	return req
}

// receive serves [host.Request].Events.
func (r *run) receive(e host.JobEvent) error {
	switch {
	case e.Kind == host.EventUse:
		r.recordUse(e.Right)
	case e.Kind == host.EventDenied:
		r.denyUse(e.Right, e.Why)
	case r.call.Sink.Event != nil:
		e.Message = r.redactor.Redact(e.Message)
		return r.call.Sink.Event(e)
	}
	return nil
}

// maxDenied bounds the denials that the answer of one call lists.
const maxDenied = 100

// denyUse adds a denial to the answer of the call, once for each right and reason.
func (r *run) denyUse(right, why string) {
	denial := host.Denial{Right: right, Why: why}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.denied) < maxDenied && !slices.Contains(r.denied, denial) {
		r.denied = append(r.denied, denial)
	}
}

// withDenials adds the denials of a call to its outcome: to the error, or to the result as warnings.
func (r *run) withDenials(result *host.Result, err error) (*host.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.denied) == 0 {
		return result, err
	}
	if err != nil {
		e := host.AsError(err)
		if len(e.Denied) == 0 { // otherwise the failure is itself that of a right
			e.Denied = slices.Clone(r.denied)
		}
		return nil, e
	}
	for _, denial := range r.denied {
		result.Warnings = append(result.Warnings, "denied: "+denial.Right+" ("+denial.Why+")")
	}
	return result, nil
}

// send makes an HTTP request for a plugin. Secrets that the host adds to the request are redacted from the response, so
// that the guest does not see them when a server repeats them.
func (r *run) send(ctx context.Context, g host.Grant, q *host.HTTPRequest) (*host.HTTPResponse, error) {
	if err := r.checkMethod(q); err != nil {
		r.recordDenial(host.AsError(err).Denied[0].Right)
		return nil, err
	}
	response, err := r.host.cfg.Egress.Send(ctx, q, host.Outbound{
		HTTP: g.HTTP, Secrets: g.Secrets,
		Value: func(ctx context.Context, name string) (string, error) {
			r.recordUse("secret:" + name)
			return r.redactor.Value(ctx, name)
		},
		OnRequest: func(method, origin string) { r.recordUse("http:" + method + ":" + origin) },
	})
	if err != nil {
		e := host.AsError(err)
		r.redactor.RedactError(e)
		for _, d := range e.Denied {
			r.recordDenial(d.Right)
		}
		return nil, e
	}
	texts := []string{string(response.Body)}
	for _, h := range response.Headers {
		texts = append(texts, h[0], h[1])
	}
	if err := r.redactor.Reflected("the response", texts...); err != nil {
		for _, d := range host.AsError(err).Denied {
			r.recordDenial(d.Right)
		}
		return nil, err
	}
	response.Body = []byte(r.redactor.RedactUnreadable(string(response.Body)))
	for i, h := range response.Headers {
		response.Headers[i] = [2]string{r.redactor.RedactUnreadable(h[0]), r.redactor.RedactUnreadable(h[1])}
	}
	return response, nil
}

func (r *run) readSecret(ctx context.Context, name string) (string, error) {
	if !r.redactor.Readable(name) {
		r.recordDenial("secret:read:" + host.Printable(name))
		return "", host.Errorf(host.Denied, "secret %s may not be read", host.Printable(name))
	}
	r.recordUse("secret:read:" + name)
	return r.redactor.Value(ctx, name)
}

// boundSecret returns the value of a secret that is to be typed into a page, and the origins to which the policy binds
// it. A plugin must have been granted the secret. From then on this host redacts the value from answers and records.
func (r *run) boundSecret(ctx context.Context, name string) (s host.BoundSecret, err error) {
	right := "secret:" + host.Printable(name)
	if r.call.Principal.IsPlugin() && !r.typesForCaller() &&
		!slices.ContainsFunc(r.behalf.callerGrant.Secrets, func(g host.SecretGrant) bool { return g.Name == name }) {
		asked := slices.ContainsFunc(r.behalf.callerAsks.Secrets,
			func(c manifest.SecretCapability) bool { return c.Name == name })
		r.recordDenial(right)
		return s, r.withGrantStep(r.deny(right, "a plugin can type only secrets that it was granted"), asked, right)
	}
	if binder, ok := r.host.cfg.Secrets.(host.SecretBinder); ok {
		if s.Origins, err = binder.SecretOrigins(name); err != nil {
			return s, err
		}
	}
	if len(s.Origins) == 0 {
		r.recordDenial(right)
		return s, r.deny("", "the policy binds no secret "+host.Printable(name)+" to an origin, by origins in [secrets."+
			host.Printable(name)+"]")
	}
	if s.Value, err = r.host.cfg.Secrets.Secret(ctx, name); err != nil {
		return s, err
	}
	r.host.typed.Add(name, s.Value)
	r.recordUse(right)
	return s, nil
}

// typesForCaller reports whether a shipped plugin types a secret in the browser context of its caller, for a caller
// that could do so itself: no other plugin is behind the call.
func (r *run) typesForCaller() bool {
	return r.actsInSession() && !slices.ContainsFunc(r.behalf.callers, host.Principal.IsPlugin)
}

// script returns a script for pages that the calling plugin ships.
func (r *run) script(name string, withText bool) (s host.Script, err error) {
	p := r.behalf.callerPlugin
	if p == nil {
		return s, r.deny("", "only a plugin can run a script, of those that it ships")
	}
	m, err := p.Manifest()
	if err != nil {
		return s, err
	}
	declared := m.Script(name)
	if declared == nil || p.Features().Script == nil {
		return s, host.Errorf(host.NotFound, "%s ships no script %s", m.Name, host.Printable(name))
	}
	s = host.Script{Plugin: m.Name, SHA256: declared.SHA256}
	if withText {
		text, err := p.Features().Script(name)
		if err != nil {
			return s, err
		}
		s.Text = string(text)
	}
	return s, nil
}

// contextError returns the error of a call whose context has ended. The context decides, not the error of the tool;
// only a provider's own timeout error is kept, because it may have more details.
func (r *run) contextError(ctx context.Context, d host.Decision, timeout time.Duration, err error) error {
	var cause, reported *host.Error
	if errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	if errors.As(err, &reported) && reported.Code == host.Busy {
		return reported // nothing was run: the call waited for its turn until the deadline
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if !errors.As(err, &reported) || reported.Code != host.Timeout || reported.Tool != nil {
			reported = host.Errorf(host.Timeout, "%s did not end within %s", r.answer.Tool, timeout)
		}
		switch {
		// no option exceeds the limit of the policy, so the steps of a provider are dropped
		case d.Limits.Timeout > 0 && timeout >= d.Limits.Timeout:
			reported.Message += "; " + cmp.Or(r.timeoutCut(d), fmt.Sprintf("the policy allows at most %s", timeout))
			reported.Steps = []host.Step{host.OperatorStep(host.OpPolicyExplain, r.address.Plugin)}
		case len(reported.Steps) == 0:
			again := host.CallStep(r.answer.Tool, r.call.Params).At(r.call.Options)
			if again.Options.Timeout = 4 * timeout; d.Limits.Timeout > 0 {
				again.Options.Timeout = min(again.Options.Timeout, d.Limits.Timeout)
			}
			if reported.Steps = host.BoundedSteps([]host.Step{again}); len(reported.Steps) == 0 {
				reported.Message += fmt.Sprintf("; give it more time, such as a timeout of %s, with its parameters (%s) as given",
					again.Options.Timeout, host.SizeOf(len(again.Params)))
			}
		}
		return reported
	}
	return host.Errorf(host.Interrupted, "%s was interrupted", r.answer.Tool)
}

// timeoutCut says that the policy shortens the timeout that the caller gave, and who can change that; "" if not.
func (r *run) timeoutCut(d host.Decision) string {
	o, limit := r.call.Options, d.Limits.Timeout
	if o.TimeoutConfigured || limit <= 0 || o.Timeout <= limit {
		return ""
	}
	return fmt.Sprintf("the policy allows at most %s, so the timeout is not %s; the operator can raise it: timeout "+
		"under [plugin.%s.limits] or [defaults] in policy.toml", limit, o.Timeout, r.address.Plugin)
}

func (r *run) timeout(d host.Decision) time.Duration {
	timeout := host.DefaultTimeout
	if m, err := r.address.Provider.Manifest(); err == nil && m.Limits.TimeoutMS > 0 {
		timeout = time.Duration(m.Limits.TimeoutMS) * time.Millisecond
	}
	if d.Limits.Timeout > 0 {
		timeout = min(timeout, d.Limits.Timeout)
	}
	if requested := r.call.Options.Timeout; requested > 0 {
		if d.Limits.Timeout > 0 {
			requested = min(requested, d.Limits.Timeout)
		}
		timeout = requested
	}
	return timeout
}

// callTool runs a tool for a plugin through all of [Host.Call]. The plugin is the caller, or makes the call as its own
// caller.
func (r *run) callTool(ctx context.Context, callerGrant host.Grant, tool string, params json.RawMessage,
	o host.Options) (*host.Result,
	error) {
	if len(r.behalf.callers) >= maxCallDepth {
		return nil, host.Errorf(host.LimitExceeded, "calls between plugins are nested more than %d deep", maxCallDepth)
	}
	if r.innerCalls.Add(1) > maxInnerCalls {
		return nil, host.Errorf(host.LimitExceeded, "one call caused more than %d calls between plugins", maxInnerCalls)
	}
	o.Isolate = r.call.Options.Isolate // isolation extends to the plugins that an isolated plugin calls
	if callerGrant.Browser && o.Browser == "" {
		o.Browser, o.Target = r.call.Options.Browser, cmp.Or(o.Target, r.call.Options.Target)
		o.OnDialog = cmp.Or(o.OnDialog, r.call.Options.OnDialog)
	}
	inner := host.Call{Name: tool, Params: params, Options: o}
	of := behalf{innerCalls: r.innerCalls, redactor: r.redactor, handed: r.handed, parentID: r.answer.CallID,
		program: r.behalf.program}
	if callerGrant.Caller && r.address.Provider.Info().Identity() == host.OwnerShipped {
		if r.programCalls.Add(1) > maxProgramCalls {
			return nil, host.Errorf(host.LimitExceeded,
				"a program may make %d calls; have each do more, or run several programs",
				maxProgramCalls)
		}
		r.asCaller(&inner, &of)
	} else {
		r.asPlugin(&inner, &of, callerGrant)
	}
	a, err := r.host.call(ctx, inner, of)
	if errors.Is(err, host.Denied) {
		r.recordDenial("tool:" + a.Tool)
	} else {
		r.recordUse("tool:" + a.Tool)
	}
	if err != nil {
		r.mu.Lock()
		r.innerError = a.Err
		r.mu.Unlock()
		return nil, err
	}
	return &host.Result{Data: a.Data, Content: a.Content, Warnings: a.Warnings}, nil
}

// asPlugin makes the plugin the caller of an inner call, on behalf of its own callers.
func (r *run) asPlugin(inner *host.Call, of *behalf, grant host.Grant) {
	if m, err := r.address.Provider.Manifest(); err == nil {
		of.callerAsks = m.Capabilities
	}
	inner.Principal = host.Principal{Name: host.CallerPlugin + r.address.Plugin, Session: r.innerSession(grant),
		Origin: r.call.Principal.Origin, Tools: grant.Tools}
	of.callerGrant, of.callerPlugin, of.callerEffect = grant, r.address.Provider, r.address.Tool.Effect
	of.trusted, of.repeats = r.address.Provider.Info().Identity() == host.OwnerShipped, &r.inner
	of.callers = append(slices.Clone(r.behalf.callers), r.call.Principal)
}

// asCaller gives an inner call the identity, session and rights of the plugin's caller, as if that had made it. The
// call has no right of the plugin. Where it names no browser and no page, it has those of the outer call.
func (r *run) asCaller(inner *host.Call, of *behalf) {
	c := r.call
	inner.Principal = c.Principal
	of.callers, of.callerGrant, of.callerAsks = r.behalf.callers, r.behalf.callerGrant, r.behalf.callerAsks
	of.callerEffect, of.callerPlugin, of.trusted = r.behalf.callerEffect, r.behalf.callerPlugin, r.behalf.trusted
	inner.Filter, of.program = c.Filter, r.address.Plugin
	if o := &inner.Options; o.Browser == "" && o.Target == "" {
		o.Browser, o.Target = c.Options.Browser, c.Options.Target
	}
}

// innerSession returns the session of the calls that the plugin makes: that of its caller if it was granted to act in
// it, else one of its own.
func (r *run) innerSession(g host.Grant) host.Session {
	if g.Browser {
		return r.call.Principal.Session
	}
	return r.call.Principal.Session.OfPlugin(r.address.Plugin,
		&host.SessionPlugin{Digest: r.address.Provider.Info().Digest, Grant: g})
}

// checkResult validates a result. For built-in tools it only adds warnings, because Chrome may be newer than the
// schemas that are compiled in.
func (r *run) checkResult(data json.RawMessage) error {
	builtin := r.address.Provider.Info().Kind == manifest.KindBuiltin
	limits := jsontext.Limits{Bytes: max(len(data), 1), ReplaceSurrogates: builtin}
	returnsSchema, err := r.address.SchemaOf(r.address.Tool.Returns, "returns")
	if err != nil {
		return err
	}
	if builtin && (returnsSchema == nil || len(data) > host.MaxParams) {
		return nil
	}
	value, err := jsontext.Decode(data, limits)
	var malformed *jsontext.SyntaxError
	if errors.As(err, &malformed) && malformed.TooMany() {
		return &host.Error{Code: host.LimitExceeded,
			Message: fmt.Sprintf("%s returned more values than can be validated", r.answer.Tool), Cause: err}
	}
	if err != nil {
		return &host.Error{Code: host.InvalidResult, Message: fmt.Sprintf("%s returned invalid JSON: %v", r.answer.Tool, err),
			Cause: err}
	}
	if returnsSchema == nil {
		return nil
	}
	if builtin {
		doubts, _ := returnsSchema.Validate(value)
		for _, v := range doubts[:min(3, len(doubts))] {
			r.answer.Warnings = append(r.answer.Warnings,
				manifest.CleanLine(fmt.Sprintf("result %s: expected %s, got %s", v.Pointer, v.Expected, v.Provided)))
		}
		return nil
	}
	violations, err := returnsSchema.Validate(value)
	if err != nil {
		return &host.Error{Code: host.LimitExceeded,
			Message: fmt.Sprintf("validating the result of %s would exceed the cost limit", r.answer.Tool), Cause: err}
	}
	if len(violations) == 0 {
		return nil
	}
	e := host.Errorf(host.InvalidResult, "%s returned a result that does not match its schema: %s", r.answer.Tool,
		manifest.Plural(len(violations), "violation"))
	for _, v := range violations {
		e.Details = append(e.Details, advice.DetailOf(v))
	}
	return e.WithSteps(host.DescribeStep(r.address.Name(), manifest.Tier3))
}

func (r *run) filter() host.Filter {
	if r.call.Filter != nil {
		return r.call.Filter
	}
	return r.host.cfg.Filter
}

// checkFilter refuses an expression that is invalid before anything runs.
func (r *run) checkFilter(ctx context.Context) error {
	if r.call.Options.JQ == "" {
		return nil
	}
	if r.filter() == nil {
		return host.Errorf(host.Unavailable, "this host has no filter for results: call without the option jq")
	}
	corrected, err := r.filter().Check(ctx, r.call.Options.JQ)
	if err == nil {
		return nil
	}
	e := host.AsError(err)
	if corrected == "" {
		return e
	}
	again := host.CallStep(r.address.Name(), r.params.Value)
	again.Options = r.call.Given
	again.Options.JQ = corrected
	return e.WithSteps(again)
}

// filterResult applies Options.JQ to the result, until the call's deadline.
func (r *run) filterResult(ctx context.Context) error {
	if r.call.Options.JQ == "" {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, r.deadline)
	defer cancel()
	filtered, err := r.filter().Filter(ctx, r.call.Options.JQ, r.answer.Data)
	if err != nil {
		r.redactor.RedactError(host.AsError(err))
		return err
	}
	r.answer.Data, r.answer.Returns = filtered, nil
	return nil
}

// cutResult cuts the result to Options.MaxBytes. The whole result is stored with the session.
func (r *run) cutResult() error {
	limit := r.call.Options.MaxBytes
	if limit <= 0 || len(r.answer.Data) <= limit {
		return nil
	}
	whole := r.answer.Data
	text := string(jsontext.Cut(whole, limit))
	if text == "" { // the first value alone is longer than that
		text = strings.ToValidUTF8(string(whole[:limit]), "")
	}
	cut := truncated{Truncated: true, TotalBytes: len(whole), ShownBytes: len(text), Text: text}
	if r.keepWhole(r.redactor.RedactAllJSON(whole)) {
		cut.Next = "parley://result/" + r.answer.CallID
		if r.call.Render != nil {
			cut.Next = r.call.Render(host.OperatorStep(host.OpResult, r.answer.CallID))
		}
	}
	var err error
	r.answer.Cut = true
	r.answer.Data, err = manifest.Marshal(cut)
	r.answer.Warnings = append(r.answer.Warnings,
		fmt.Sprintf("the result was cut: %d of %d bytes are shown", len(text), len(whole)))
	return err
}

type truncated struct {
	Truncated  bool   `json:"truncated"`
	TotalBytes int    `json:"total_bytes"`
	ShownBytes int    `json:"shown_bytes"`
	Text       string `json:"text"`
	Next       string `json:"next,omitempty"` // how to read the whole result
}
