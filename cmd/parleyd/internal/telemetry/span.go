package telemetry

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
)

// opRequest is the [host.Operation].Op of a network request.
const opRequest = "request"

// execute and toolsCall are the names of a call within Parley and of one that a client makes, promptTool that of the
// prompt that describes a tool.
const execute, toolsCall, promptTool = "execute_tool", "tools/call", "use_tool"

// metaTools are the MCP tools for operations other than calls.
var metaTools = map[string]string{"search": "search_tools", "describe": "describe_tool"}

// maxTraceState bounds a trace state, which comes from the caller. A longer one is dropped, as W3C allows.
const maxTraceState = 512

// startSpan starts the span of an operation, and returns the name that it has until its tool is known. Names and
// attributes follow OpenTelemetry's semantic conventions for MCP, for tools of generative AI, and for HTTP clients.
// Operations within this one are no requests of MCP.
func (t *Telemetry) startSpan(ctx context.Context, from caller.Trace, o host.Operation) (
	context.Context, trace.Span, string) {
	name, kind, attributes := operation(from, o)
	options := []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(attributes...)}
	if from.Carrier != from.Parent {
		carrier := trace.SpanContextFromContext(withRemote(ctx, caller.Trace{Parent: from.Carrier}))
		options = append(options, trace.WithLinks(trace.Link{SpanContext: carrier}))
	}
	if from != (caller.Trace{}) {
		ctx = caller.WithTrace(withRemote(ctx, from), caller.Trace{})
	}
	ctx, span := t.tracer.Start(ctx, name, options...)
	return ctx, span, name
}

// operation returns the name, kind and first attributes of a span. Within another operation, a call is only a tool
// call; from outside, it is an MCP request.
func operation(from caller.Trace, o host.Operation) (name string, kind trace.SpanKind, has []attribute.KeyValue) {
	if o.Op == opRequest {
		return method(o.Method), trace.SpanKindClient, requestAttributes(o)
	}
	has = append(make([]attribute.KeyValue, 0, 14), attribute.String("parley.caller", o.Caller),
		attribute.String("parley.call.id", o.CallID))
	if from.Method == "" {
		return execute, trace.SpanKindInternal, append(has, attribute.String("gen_ai.operation.name", execute))
	}
	name = from.Method
	has = append(has, attribute.String("mcp.method.name", name), attribute.String("mcp.protocol.version", from.Revision))
	switch name {
	case toolsCall:
		has = append(has, attribute.String("gen_ai.operation.name", execute))
	case "prompts/get":
		name += " " + promptTool
		has = append(has, attribute.String("gen_ai.prompt.name", promptTool))
	}
	if from.Session != "" {
		has = append(has, attribute.String("mcp.session.id", from.Session))
	}
	if o.Transport == "http" {
		has = append(has, attribute.String("network.transport", "tcp"),
			attribute.String("network.protocol.name", "http"))
	} else {
		has = append(has, attribute.String("network.transport", "pipe"))
	}
	return name, trace.SpanKindServer, append(has, clientAttributes(o.Peer)...)
}

func clientAttributes(peer string) []attribute.KeyValue {
	address, err := netip.ParseAddrPort(peer)
	if err != nil {
		return nil
	}
	return []attribute.KeyValue{attribute.String("client.address", address.Addr().String()),
		attribute.Int("client.port", int(address.Port()))}
}

// endSpan completes a span that began with a name, and ends it.
func endSpan(span trace.Span, name string, from caller.Trace, o host.Operation) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	if o.Op == opRequest {
		endRequest(span, o)
		return
	}
	tool := o.Tool
	if meta := metaTools[o.Op]; meta != "" {
		tool = meta
	}
	if tool != "" && (name == toolsCall || name == execute) {
		span.SetName(name + " " + tool)
		span.SetAttributes(attribute.String("gen_ai.tool.name", tool))
	}
	if o.Code == host.OK {
		return
	}
	kind := "tool_error" // the conventions' name for a result that is an error
	if from.ErrorCode != 0 {
		kind = strconv.FormatInt(from.ErrorCode, 10)
		span.SetAttributes(attribute.String("rpc.response.status_code", kind))
	}
	failed(span, kind)
	span.SetAttributes(attribute.String("parley.code", string(o.Code)))
}

// requestAttributes returns the attributes of a network request. url.full is left out, because it would contain
// values of the caller.
func requestAttributes(o host.Operation) []attribute.KeyValue {
	attributes := append(make([]attribute.KeyValue, 0, 8), attribute.String("http.request.method", method(o.Method)))
	u, err := url.Parse(o.Server)
	if err != nil {
		return attributes
	}
	port, _ := strconv.Atoi(u.Port())
	if port == 0 {
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return append(attributes, attribute.String("server.address", u.Hostname()), attribute.Int("server.port", port),
		attribute.String("url.scheme", u.Scheme))
}

func endRequest(span trace.Span, o host.Operation) {
	if o.Status > 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", o.Status))
	}
	switch {
	case o.Code != host.OK:
		failed(span, string(o.Code))
	case o.Status >= http.StatusBadRequest:
		failed(span, strconv.Itoa(o.Status))
	}
}

func failed(span trace.Span, kind string) {
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, "")
}

// method returns an HTTP method, or "_OTHER" for any other text.
func method(name string) string {
	switch name {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return name
	}
	return "_OTHER"
}

// withRemote returns a context with the trace of a request. An invalid trace is ignored.
func withRemote(ctx context.Context, c caller.Trace) context.Context {
	if c.Parent == "" {
		return ctx
	}
	carrier := propagation.MapCarrier{"traceparent": c.Parent}
	if len(c.State) <= maxTraceState {
		carrier["tracestate"] = c.State
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}

// Handler gives each request that carries MCP messages a span. The calls in the request are within that span, unless
// they name a trace themselves. next gets the span as the header traceparent.
func (t *Telemetry) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(raw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // other methods open long streams, or end sessions
			next.ServeHTTP(raw, r)
			return
		}
		ctx := withRemote(r.Context(), caller.Trace{Parent: r.Header.Get("Traceparent"),
			State: r.Header.Get("Tracestate")})
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		ctx, span := t.tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("http.request.method", r.Method), attribute.String("url.scheme", scheme)))
		defer span.End()
		r = r.Clone(r.Context()) // the context has no span, because not every call gets it from there
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
		w := &statusWriter{ResponseWriter: raw, status: http.StatusOK}
		next.ServeHTTP(w, r)
		span.SetAttributes(attribute.Int("http.response.status_code", w.status))
		span.SetAttributes(clientAttributes(r.RemoteAddr)...) // next may instead take the address from a proxy
		if r.Pattern != "" {                                  // "/mcp" or "POST /mcp": the route without values
			route := r.Pattern[strings.Index(r.Pattern, " ")+1:]
			span.SetName(r.Method + " " + route)
			span.SetAttributes(attribute.String("http.route", route))
		}
		if w.status >= http.StatusInternalServerError {
			failed(span, strconv.Itoa(w.status))
		}
	})
}

// statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap implements the interface that [http.ResponseController] needs.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
