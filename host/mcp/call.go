package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// progressEvery is the least time between two progress notifications of a call.
const progressEvery = 50 * time.Millisecond

// searchArguments are the arguments of search_tools.
type searchArguments struct {
	Query     string `json:"query"`
	Detail    string `json:"detail"`
	Limit     int    `json:"limit"`
	MaxTokens int    `json:"max_tokens"`
}

func (m *modeServer) searchTools(ctx context.Context, r *sdk.CallToolRequest, p searchArguments) (
	*sdk.CallToolResult, error) {
	if manifest.CleanLine(manifest.Strip(p.Query)) == "" {
		return nil, host.Errorf(host.InvalidArgs, "search_tools requires a query, such as \"take a screenshot\"")
	}
	c := callerOf(m.of, r)
	query := search.Query{Text: p.Query, Limit: p.Limit}
	fits := func(found *search.Answer) bool {
		return manifest.Tokens(m.out.foundText(found, m.out.afterSearch(found))) <= p.MaxTokens
	}
	if p.MaxTokens == 0 {
		fits = nil
	}
	ctx = host.WithDocsSize(ctx, func(d *host.Docs, _ bool) int { return len(m.out.docsText(d)) })
	found, warnings, err := m.host.SearchDetailed(ctx, c, query, p.Detail, fits)
	if err != nil {
		return nil, err
	}
	for _, d := range found.Docs {
		m.of.sent.has(c.Session, m.out.docsText(d), true)
	}
	// The warning that nothing matches well comes before the near matches.
	return textResult(warningLines(warnings)+m.out.foundText(found, m.out.afterSearch(found)), nil), nil
}

// moreResults is how many results the next step asks for after a search without a sure result.
const moreResults = 20

// afterSearch returns the calls to take after a search: the documentation of the first result if that is likely and the
// answer does not show how it is called, what it requires before, and more results unless the first is sure.
func (w *renderer) afterSearch(found *search.Answer) (next []nextCall) {
	if best := found.Best(); best != nil {
		if best.Signature == "" && best.Template == nil && len(found.Docs) == 0 {
			next = append(next, describeStep(best.Name, 0))
		}
		if found.Open != nil {
			next = append(next, w.steps([]step.Step{*found.Open})...)
		}
	}
	shown := len(found.Results)
	sure := shown > 0 && found.Results[0].Confidence == "high"
	if found.Total > shown && shown < moreResults && !sure {
		next = append(next, searchStep(found.Query, min(found.Total, moreResults)))
	}
	return next
}

// describeArguments are the arguments of describe_tool.
type describeArguments struct {
	Name      string `json:"name"`
	Format    string `json:"format"`
	Tier      int    `json:"tier"`
	MaxTokens int    `json:"max_tokens"`
	Again     bool   `json:"again"`
}

// describeTool returns documentation or, for a plugin or group, a list. If the session was sent the documentation
// within its last calls, it returns one line instead, because the model still has it.
func (m *modeServer) describeTool(ctx context.Context, r *sdk.CallToolRequest, p describeArguments) (
	*sdk.CallToolResult, error) {
	c := callerOf(m.of, r)
	answer := func(d *host.Docs, sends bool) string {
		text, repeated := m.out.docsText(d), "unchanged; "+wasSent
		if p.Format == "json" {
			text = string(marshalEscaped(m.out.described(d)))
			repeated = string(marshalEscaped(map[string]any{"unchanged": wasSent}))
		}
		if isRepeated := m.of.sent.has(c.Session, text, sends); isRepeated && !p.Again && p.MaxTokens == 0 {
			return repeated
		}
		return text
	}
	name := m.names.Qualified(p.Name)
	if at, err := m.host.Catalog().Find(name); err == nil && at.Tool == nil && at.Entry == nil {
		text, err := advice.ListText(at, p.MaxTokens)
		return textResult(text, nil), err
	}
	ctx = host.WithDocsSize(ctx, func(d *host.Docs, _ bool) int { return len(answer(d, false)) })
	docs, err := m.host.Describe(advice.WithMaxTokens(ctx, p.MaxTokens), c, name, p.Tier)
	if err != nil {
		return nil, err
	}
	return textResult(answer(docs, true), nil), nil
}

// wasSent stands for a description that the session was sent within its last calls.
const wasSent = `"again": true sends it`

// plannedCall is a call of a plan as a client makes it. "${2.nodeId}" in its arguments is a part of the result of call
// 2, which the client fills in.
type plannedCall struct {
	ID int `json:"id"`
	nextCall
	After string `json:"wait_for,omitempty"` // the event of the plugin that has to come before the next call
}

// callArguments are the arguments of call_tool and plan_call.
type callArguments struct {
	Name               string
	Arguments, Options json.RawMessage
}

func (m *modeServer) planCall(ctx context.Context, r *sdk.CallToolRequest, p callArguments) (
	*sdk.CallToolResult, error) {
	options, err := option.Parse(p.Options)
	if err != nil {
		return m.taughtResult(r, &host.Answer{Tool: planCall, Err: host.AsError(err)}), nil
	}
	options, c := m.of.cfg.Options(options), callerOf(m.of, r)
	plan, warnings, err := m.host.Plan(ctx, advice.PlanQuery{
		Tool: m.names.Qualified(p.Name), Params: p.Arguments, Principal: c, Place: options.Place, Estimate: true})
	if err != nil {
		return nil, err
	}
	calls := make([]plannedCall, len(plan.Calls))
	for i, call := range plan.Calls {
		step := step.Call(call.Tool, call.Params)
		if call.Options != nil {
			step.Options.JQ, calls[i].After = call.Options.JQ, call.Options.Until
			step.Options.Place = call.Options.Place
		}
		calls[i].ID, calls[i].nextCall = call.ID, callStep(step)
	}
	return withWarnings(jsonResult(struct {
		Tool     string           `json:"tool"`
		Calls    []plannedCall    `json:"calls"`
		Chosen   []advice.Chosen  `json:"chosen,omitempty"`
		Holes    []string         `json:"holes,omitempty"`
		Estimate *advice.Estimate `json:"estimate,omitempty"`
	}{plan.Tool, calls, plan.Chosen, plan.Holes, plan.Estimate}), warnings), nil
}

func (m *modeServer) callTool(ctx context.Context, r *sdk.CallToolRequest, p callArguments) (
	*sdk.CallToolResult, error) {
	options, err := option.Parse(p.Options)
	if err != nil {
		e := host.AsError(err).WithSteps(step.Describe(p.Name, 0))
		return m.taughtResult(r, &host.Answer{Tool: callTool, Err: e}), nil
	}
	if meta := m.names.MetaTool(p.Name); meta != "" {
		e := host.Errorf(host.InvalidArgs, "call the tool %s directly, not through %s", meta, callTool)
		return m.taughtResult(r, &host.Answer{Tool: callTool, Err: e}), nil
	}
	return m.run(ctx, r, host.Call{Name: m.names.Qualified(p.Name), Params: p.Arguments}, options)
}

// calledByNameKey is the context key of a call by a tool's own name, for a tool that tools/list does not have in this
// mode. Its value is the [host.Call] without options.
type calledByNameKey struct{}

// route directs a request to a tool that the SDK runs: a call by a tool's own name to call_tool, and a call by a
// prefixed name of a meta-tool to that meta-tool. A tool that does not exist is a protocol error.
func (m *modeServer) route(ctx context.Context, r *sdk.CallToolRequest) (context.Context, error) {
	if m.native[r.Params.Name] || m.names.Metas[r.Params.Name] != nil {
		return ctx, nil
	}
	name := m.names.Qualified(r.Params.Name)
	if at, ok := m.names.Find(name); ok {
		r.Params.Name = callTool
		c := host.Call{Name: name, At: at, Params: r.Params.Arguments}
		return context.WithValue(ctx, calledByNameKey{}, c), nil
	}
	if meta := m.names.MetaTool(name); meta != "" {
		r.Params.Name = meta
		return ctx, nil
	}
	trace := caller.TraceOf(ctx)
	trace.ErrorCode = jsonrpc.CodeInvalidParams
	a, _ := m.host.Call(caller.WithTrace(ctx, trace),
		host.Call{Name: name, Params: r.Params.Arguments, Principal: callerOf(m.of, r)})
	if a.Err == nil { // it was installed in the meantime
		a.Err = host.Errorf(host.NotFound, "%s is not a tool", a.Tool)
	}
	m.names.TeachName(r.Params.Name, r.Params.Arguments, a.Err)
	a.Steps = a.Err.Steps
	return nil, m.out.protocolError("unknown tool: ", a)
}

// protocolError makes the JSON-RPC error of an invalid request. Its data is the error object.
func (w *renderer) protocolError(prefix string, a *host.Answer) error {
	return invalidParams(prefix+manifest.CleanLine(a.Err.Message), w.failure(a))
}

func invalidParams(message string, data any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message, Data: marshalEscaped(data)}
}

// run makes a call for the client of a request. It fills in the options and the principal.
func (m *modeServer) run(ctx context.Context, r *sdk.CallToolRequest, c host.Call, options job.Options) (
	*sdk.CallToolResult, error) {
	if m.of.closing.Err() != nil {
		return nil, context.Cause(m.of.closing)
	}
	a := &asker{server: m.of, request: r, caller: callerOf(m.of, r)}
	w, err := m.of.parking.resume(a, c.Name, c.Params)
	if err != nil {
		e := &host.Error{Code: host.Denied, Message: err.Error(), Cause: err}
		return nil, m.out.protocolError("", &host.Answer{Tool: c.Name, Err: e})
	}
	if w == nil {
		if w, err = m.begin(ctx, a, c, options); err != nil {
			return nil, err
		}
	}
	answer, required := m.of.parking.await(ctx, w)
	if required != nil {
		return required.result(), nil
	}
	defer w.ended()
	switch {
	case answer.Err == nil:
		return m.out.successResult(answer), nil
	case errors.As(answer.Err, &required):
		return required.result(), nil
	case errors.Is(answer.Err, errWrongState):
		return nil, m.out.protocolError("", answer)
	}
	if _, isTool := m.names.Find(c.Name); !isTool && answer.Err.Code != host.Denied && r.Params.Name == callTool {
		return m.taughtResult(r, answer), nil
	}
	return m.out.failure(answer).result(), nil
}

// begin admits and starts a call.
func (m *modeServer) begin(ctx context.Context, a *asker, call host.Call, options job.Options) (
	*waitingCall, error) {
	if m.of.draining.Load() {
		return nil, errDraining
	}
	select {
	case m.of.calls <- struct{}{}:
	default:
		return nil, host.Errorf(host.Busy, "%d calls are running; nothing was run, call again when one has ended", maxCalls)
	}
	ended := func() { <-m.of.calls }
	call.Principal, call.Sink = a.caller, sink(ctx, a.request, call.Name)
	call.DocsOnFirstUse = m.of.cfg.DocsOnFirstUse && m.mode != Full
	call.Options, call.Given = m.of.cfg.Options(options), options.StepOptions()
	if call.At.Tool == nil {
		call.At, _ = m.names.Find(call.Name)
	}
	if call.Options.MaxBytes == 0 && !call.Options.Unlimited {
		call.Options.MaxBytes = DefaultMaxBytes
		if t := call.At.Tool; t != nil && isBinary(t.Returns) {
			call.Options.MaxBytes = maxBinary // the client shows it; a model does not read it
		}
	}
	if call.Options.MaxBytes > maxSmall || call.Options.Unlimited {
		free, err := m.of.admitLarge(ctx)
		if err != nil {
			ended()
			return nil, err
		}
		ended = func() { free(); <-m.of.calls }
	}
	return m.start(ctx, a, call, ended), nil
}

// admitLarge waits until a call may begin that can return more than maxSmall: maxLarge of them run at one time, and
// none starts while clients have much left to read. Unless it returns an error, free must be called when the call has
// ended.
func (s *Server) admitLarge(ctx context.Context) (free func(), err error) {
	select {
	case s.largeCalls <- struct{}{}:
	case <-ctx.Done():
		return func() {}, nil // the call itself returns the cause
	}
	if s.unsentBytes.Load() > maxUnsentBytes {
		<-s.largeCalls
		return nil, host.Errorf(host.Busy, "more than %d bytes of results wait for clients to read them; nothing was run, "+
			"call again or ask for less with the option max_bytes", maxUnsentBytes)
	}
	return func() { <-s.largeCalls }, nil
}

// sink sends the progress of a call to a client that asked for it, and a plugin's log to a client that has set a log
// level. Progress that does not increase, or that follows too soon, is left out.
func sink(ctx context.Context, r *sdk.CallToolRequest, name string) host.Sink {
	token := r.Params.GetProgressToken()
	var mu sync.Mutex
	var last float64
	var notified time.Time
	progress := func(e job.Event) {
		mu.Lock()
		defer mu.Unlock()
		final := e.Total > 0 && e.Done >= e.Total
		if !notified.IsZero() && (e.Done <= last || !final && time.Since(notified) < progressEvery) {
			return
		}
		last, notified = e.Done, time.Now()
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Progress: e.Done, Total: e.Total, Message: manifest.CleanLine(e.Message),
		})
	}
	return host.Sink{Wants: job.Wants{Log: true, Progress: token != nil}, Event: func(e job.Event) error {
		switch e.Kind {
		case job.EventProgress:
			progress(e)
		case job.EventLog:
			//lint:ignore SA1019 clients of revisions before 2026-07-28 use it
			_ = r.Session.Log(ctx, &sdk.LoggingMessageParams{
				Level: levels[min(max(e.Level, 0), len(levels)-1)], Logger: name, Data: manifest.CleanLine(e.Message),
			})
		}
		return nil
	}}
}

// levels are MCP's names for the levels of a plugin's log.
//
//lint:ignore SA1019 clients of revisions before 2026-07-28 use it
var levels = []sdk.LoggingLevel{"debug", "info", "warning", "error"}
