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

// metaTools are the MCP tools for operations other than calls.
var metaTools = map[string]string{"search": "search_tools", "describe": "describe_tool"}

// maxTraceState bounds a trace state, which comes from the caller. A longer one is dropped, as W3C allows.
const maxTraceState = 512

// startSpan starts the span of an operation, and returns the name that it has until its tool is known. Names and
// attributes follow OpenTelemetry's semantic conventions for MCP, for tools of generative AI, and for HTTP clients.
func (t *Telemetry) startSpan(ctx context.Context, o host.Operation) (context.Context, trace.Span, string) {
	name, kind, attributes := operation(ctx, o)
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = withRemote(ctx, caller.TraceOf(ctx))
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	return ctx, span, name
}

// operation returns the name, kind and first attributes of a span. Within another operation, a call is only a tool
// call; from outside, it is an MCP request.
func operation(ctx context.Context, o host.Operation) (name string, kind trace.SpanKind, has []attribute.KeyValue) {
	if o.Op == opRequest {
		return method(o.Method), trace.SpanKindClient, requestAttributes(o)
	}
	has = append(make([]attribute.KeyValue, 0, 12), attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("parley.caller", o.Caller), attribute.String("parley.call.id", o.CallID))
	if trace.SpanContextFromContext(ctx).IsValid() || o.Transport == "" {
		return "execute_tool", trace.SpanKindInternal, has
	}
	has = append(has, attribute.String("mcp.method.name", "tools/call"))
	if o.Transport == "http" {
		has = append(has, attribute.String("network.transport", "tcp"),
			attribute.String("network.protocol.name", "http"))
	} else {
		has = append(has, attribute.String("network.transport", "pipe"))
	}
	return "tools/call", trace.SpanKindServer, append(has, clientAttributes(o.Peer)...)
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
func endSpan(span trace.Span, name string, o host.Operation) {
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
	if tool != "" {
		span.SetName(name + " " + tool)
		span.SetAttributes(attribute.String("gen_ai.tool.name", tool))
	}
	if o.Code != host.OK {
		failed(span, "tool_error") // the conventions' name for a result that is an error
		span.SetAttributes(attribute.String("parley.code", string(o.Code)))
	}
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
