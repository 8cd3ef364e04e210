package call

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/deadline"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// invoke runs the tool. The schema of the result of a built-in tool is compiled meanwhile, and check finds it in the
// catalog. A plugin's schema is not compiled ahead, because that may take long.
func (r *run) invoke(ctx context.Context) error {
	if r.isBuiltin() && !r.address.SchemaCompiled("returns") {
		go r.address.SchemaOf(r.address.Tool.Returns, "returns")
	}
	began := time.Now()
	result, err := r.runTool(ctx, r.auth.decision)
	r.host.cfg.Debug("invoke: ended after %s", time.Since(began).Round(time.Microsecond))
	if result != nil && r.isBuiltin() {
		result.Data = jsontext.ReplaceLoneSurrogates(result.Data)
	}
	if failed, ok := errors.AsType[*host.Error](err); ok && failed.Tool != nil {
		failed.Tool.Details = jsontext.ReplaceLoneSurrogates(failed.Tool.Details)
	}
	r.result = result
	if r.address.Tool.HTTP != nil {
		err = r.activity.withEffects(r.host.Catalog(), err)
	}
	return err
}

// isBuiltin reports whether the provider of the tool is part of this program.
func (r *run) isBuiltin() bool { return r.address.Provider.Info().Kind == manifest.KindBuiltin }

// runTool runs the tool until it returns, its time is up, or its rights are revoked.
func (r *run) runTool(ctx context.Context, d host.Decision) (*job.Result, error) {
	// A timeout that is given with the call limits the time until the answer. Any other one limits only the run.
	if limit := r.call.Options.Timeout; limit > 0 && !r.call.Options.TimeoutConfigured {
		var cancel context.CancelFunc
		ctx, cancel = deadline.With(ctx, limit)
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
	ctx, cancel := deadline.With(ctx, timeout)
	defer cancel()
	result, err := r.address.Provider.Invoke(ctx, request)
	r.deadline, _ = ctx.Deadline()
	if ctx.Err() != nil && (err != nil || errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		return r.activity.withDenials(nil, r.contextError(ctx, d, timeout, err))
	}
	if err == nil && result == nil {
		return nil, host.Errorf(host.Internal, "%s returned no result", r.answer.Tool)
	}
	err = r.causeOf(ctx, err)
	if errors.Is(err, host.Trapped) {
		host.AsError(err).Effects = r.activity.effects(r.host.Catalog())
	}
	return r.activity.withDenials(result, err)
}

func (r *run) request(d host.Decision) *host.Request {
	params := r.params.Value
	if r.auth.confined != nil {
		params = r.auth.confined
	}
	v := &services{run: r, grant: d.Grant}
	functions := &Functions{CallTool: v.callTool, ReadSecret: v.readSecret, MayCall: v.mayCall, Last: r.call.Sink.Last,
		Denied: r.activity.denyUse}
	if r.host.cfg.Egress != nil {
		functions.HTTP = v.send
	}
	if r.address.Tool.HTTP != nil {
		functions.CopySharedFile = v.copySharedFile
	}
	if r.isBuiltin() {
		functions.BoundSecret, functions.Script, functions.CopySharedFile = v.boundSecret, v.script, v.copySharedFile
	}
	req := &host.Request{
		Job: job.Job{
			Tool: r.address.Tool.Name, Params: params, Caller: r.call.Principal.Name, Session: r.call.Principal.Session,
			CallID: r.answer.CallID, Grant: d.Grant, CallerGrant: r.behalf.callerGrant,
			Limits: d.Limits, Options: r.call.Options, Settings: d.Settings,
			Isolate: d.Isolate, Pool: d.Pool, Drain: r.call.Sink.Drain, Wants: r.call.Sink.Wants,
		},
		Def: r.address.Tool, Ask: functions.Ask, Events: v.receive,
		Acted: func() bool { return len(r.activity.effects(r.host.Catalog())) > 0 },
	}
	req.Wants.Until = r.call.Sink.Last != nil
	if len(d.Grant.FS)+len(r.behalf.callerGrant.FS) > 0 {
		req.Guard = r.host.cfg.Own.Guard()
	}
	return req
}

// causeOf returns why a plugin could not run to its end. When a plugin is removed or its rights are revoked, its
// runner ends and its module is gone. That may be seen here before the watch sees the change.
func (r *run) causeOf(ctx context.Context, err error) error {
	if !r.isBuiltin() && (errors.Is(err, host.Unavailable) || errors.Is(err, host.Trapped)) {
		if lost, _ := r.lost(ctx, r.address.Provider.Info()); lost != nil {
			return lost
		}
	}
	return err
}

// contextError returns the error of a call whose context has ended. The context decides, not the error of the tool;
// only a provider's own timeout error is kept, because it may have more details.
func (r *run) contextError(ctx context.Context, d host.Decision, timeout time.Duration, err error) error {
	var cause, reported *host.Error
	if errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	if errors.As(err, &reported) && (reported.Code == host.Busy || reported.Place > 0) {
		return reported // the call waited for its turn until the deadline, for the first time or after it was lost
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if !errors.As(err, &reported) || reported.Code != host.Timeout || reported.Tool != nil {
			reported = host.Errorf(host.Timeout, "%s did not end within %s", r.answer.Tool, timeout)
		}
		switch {
		// no option exceeds the limit of the policy, so the steps of a provider are dropped
		case d.Limits.Timeout > 0 && timeout >= d.Limits.Timeout:
			reported.Message += "; " + cmp.Or(r.timeoutCut(d), fmt.Sprintf("the policy allows at most %s", timeout))
			reported.Steps = []step.Step{step.Operator(step.OpPolicyExplain, r.address.Plugin)}
		case len(reported.Steps) == 0:
			again := step.Call(r.answer.Tool, r.call.Params).At(r.call.Options.Place)
			if again.Options.Timeout = 4 * timeout; d.Limits.Timeout > 0 {
				again.Options.Timeout = min(again.Options.Timeout, d.Limits.Timeout)
			}
			if reported.Steps = host.BoundedSteps([]step.Step{again}); len(reported.Steps) == 0 {
				reported.Message += fmt.Sprintf("; call again with the same parameters (%s) and a longer timeout, such as %s",
					host.SizeOf(len(again.Params)), again.Options.Timeout)
			}
		}
		return reported
	}
	return host.Errorf(host.Interrupted, "%s was interrupted", r.answer.Tool)
}

// timeoutCut says that the policy shortens the timeout that the caller gave, and who can change that. "" means that it
// does not.
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
	if requested := r.call.Options.Timeout; requested > 0 {
		timeout = requested
	}
	if d.Limits.Timeout > 0 {
		timeout = min(timeout, d.Limits.Timeout)
	}
	return timeout
}

// ofAll are the host's codes that also hold for the outer call when an inner call ends with them. Any other code says
// that the inner call was refused or failed, which is not true of the outer call.
var ofAll = []host.Code{host.ChromeLaunch, host.ChromeConnection, host.TargetCrashed, host.Unavailable,
	host.Interrupted, host.Terminated}

// adoptInnerError completes the error of a plugin that passes on the error of a call that it made. It recognizes such
// an error by the host's exit code or by the message. The error names the inner tool and what it reported.
func (r *run) adoptInnerError(e *host.Error) {
	if e.Tool == nil {
		return
	}
	r.activity.mu.Lock()
	failed := slices.Clone(r.activity.failed)
	r.activity.mu.Unlock()
	for _, inner := range slices.Backward(failed) {
		passesExit := e.Tool.Exit == inner.ExitCode()
		message := inner.Message[:min(len(inner.Message), maxNamed)]
		if passesExit && inner.Exit == 0 && isOutcome(inner.Code) && inner.Code != host.ToolFailed ||
			message != "" && strings.Contains(e.Message, message) {
			r.adopt(e, inner, passesExit)
			return
		}
	}
}

// adopt completes e with the inner error that it passes on. passesExit means that e has the inner error's exit code.
func (r *run) adopt(e *host.Error, inner innerError, passesExit bool) {
	passed := &host.InnerError{Tool: inner.tool, Code: inner.Code, Message: inner.Message}
	switch {
	case inner.Tool != nil:
		passed.Name, passed.Details = inner.Tool.Name, inner.Tool.Details
	case len(inner.Details) > 0:
		passed.Details, _ = manifest.Marshal(inner.Object().Details)
	}
	if inner.Message != "" && strings.HasPrefix(e.Message, inner.Message) {
		e.Message = inner.tool + ": " + e.Message
	}
	switch {
	case inner.Exit != 0 && (passesExit || e.Exit == 0 && r.declaredExit(string(inner.Code)) != 0):
		r.adoptDeclared(e, inner)
	case passesExit && slices.Contains(ofAll, inner.Code):
		e.Code, e.Protocol, e.Steps = inner.Code, inner.Protocol, inner.Steps
	case inner.Code == host.InvalidArgs:
		for _, d := range inner.Details[:min(len(inner.Details), 1)] {
			e.Message += fmt.Sprintf("; %s: expected %s, got %s", cmp.Or(d.Parameter, "parameters"), d.Expected, d.Provided)
		}
		e.Steps = []step.Step{step.Describe(inner.tool, 0)}
	case inner.Code == host.NotFound:
		meant := ""
		if _, meant = r.host.Names().Meant(inner.tool, map[string]any{}, nil); meant == "" && len(inner.DidYouMean) > 0 {
			meant = inner.DidYouMean[0].Name
		}
		if meant != "" {
			e.Message += "; the nearest is " + meant
			e.Steps = []step.Step{step.Describe(meant, 0)}
		}
	}
	e.Tool.Inner = passed
}

// adoptDeclared is adopt for an exit code that the inner tool declares. The exit codes of two plugins are unrelated
// numbers, so e gets the outer tool's code with the same name, or 1 if it declares none.
func (r *run) adoptDeclared(e *host.Error, inner innerError) {
	name := string(inner.Code)
	exit, details := e.Tool.Exit, e.Tool.Details
	e.Code, e.Exit, e.Steps = host.ToolFailed, 0, inner.Steps
	if m, err := r.address.Provider.Manifest(); err == nil {
		if by := m.ExitCode(exit); by != nil { // the message has this code's suggestion
			e.Message = strings.TrimSuffix(e.Message, " ("+manifest.CleanLine(by.Suggestion)+")")
		}
	}
	if own := r.declaredExit(name); own != 0 {
		exit, e.Code, e.Exit = own, inner.Code, own
	}
	if len(details) == 0 && inner.Tool != nil {
		details = inner.Tool.Details
	}
	e.Tool = &host.ToolError{Exit: exit, Name: name, Details: details}
}

// declaredExit returns the exit code that the tool declares under a name, 0 if it declares none.
func (r *run) declaredExit(name string) int {
	m, err := r.address.Provider.Manifest()
	if of := r.address.Tool.ExitCodes; err != nil || len(of) > 0 && !slices.Contains(of, name) {
		return 0
	}
	i := slices.IndexFunc(m.ExitCodes, func(c manifest.ExitCode) bool { return c.Name == name })
	if i < 0 {
		return 0
	}
	return m.ExitCodes[i].Code
}

// watchInterval is how often a plugin's call under way is checked against the policy and the catalog. A revoked grant
// and a removed plugin have to end it within a second.
const watchInterval = 400 * time.Millisecond

// watch ends a plugin's call with denied when a right that it has is revoked, when its caller may no longer make it, or
// when the plugin is removed. The call has the returned context; stop ends the watch.
func (r *run) watch(ctx context.Context) (watched context.Context, stop func()) {
	info := r.address.Provider.Info()
	if r.isBuiltin() {
		return ctx, func() {}
	}
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		failed := 0
		for {
			select {
			case <-watched.Done():
				return
			case <-tick.C:
			}
			lost, err := r.lost(watched, info)
			switch {
			case err == nil:
				failed = 0
			case host.AsError(err).Code == host.Denied:
				lost = host.AsError(err)
			default: // probably a file that is being written, unless it stays like that
				if failed++; failed > 1 {
					lost = host.AsError(err)
				}
			}
			if lost != nil {
				cancel(lost)
				return
			}
		}
	}()
	return watched, func() { cancel(nil) }
}

// lost returns the error that ends a call whose rights or plugin are gone, or nil.
func (r *run) lost(ctx context.Context, info host.Info) (*host.Error, error) {
	r.host.Refresh()
	now, ok := r.host.Catalog().Provider(info.Name)
	if !ok || now.Info().Identity() != info.Identity() && now.Info().Owner == host.OwnerShipped {
		return host.Errorf(host.Denied, "%s was removed, which ended the call", info.Name), nil
	}
	d, err := r.host.cfg.Policy.Decide(ctx, r.auth.asked)
	if err != nil {
		return nil, err
	}
	if d.Verdict == host.Deny {
		return &host.Error{Code: host.Denied, Steps: d.Steps,
			Message: "the policy has changed, which ended the call: " + d.Reason}, nil
	}
	has := d.Grant.Names()
	for _, right := range r.auth.granted {
		if !slices.Contains(has, right) {
			return &host.Error{Code: host.Denied, Denied: []grant.Denial{{Right: right, Why: "it was revoked"}},
				Message: "not granted any longer: " + right + ", which ended the call",
				Steps:   []step.Step{step.Operator(step.OpPolicyExplain, info.Name)}}, nil
		}
	}
	return nil, nil
}
