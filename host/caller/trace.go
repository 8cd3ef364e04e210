package caller

import "context"

// Trace is what the trace of a request shows of it. The zero value is no request of MCP, and belongs to no trace.
type Trace struct {
	Parent, State string // values of traceparent and tracestate, as W3C defines them; not checked
	Carrier       string // traceparent of the HTTP request that carried this request; "" without one
	Method        string // of MCP, such as "tools/call"
	Revision      string // revision of MCP, such as "2025-11-25"
	Session       string // id of the session of MCP; "" in revisions without sessions
	ErrorCode     int64  // JSON-RPC code of the error that a failure becomes; 0 if a failure is a result
}

type traceKey struct{}

// WithTrace returns a context for the operations of a request.
func WithTrace(ctx context.Context, c Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, c)
}

// TraceOf returns the trace of the request of a context, or the zero value.
func TraceOf(ctx context.Context) Trace {
	c, _ := ctx.Value(traceKey{}).(Trace)
	return c
}
