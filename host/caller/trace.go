package caller

import "context"

// Trace is the trace that a request belongs to: the values of traceparent and tracestate, as W3C defines them.
// They are not checked.
type Trace struct{ Parent, State string }

type traceKey struct{}

// WithTrace returns a context for the operations of a request that came with a trace, or with the zero value.
func WithTrace(ctx context.Context, c Trace) context.Context {
	if c.Parent == "" {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, c)
}

// TraceOf returns the trace that the request of a context came with, or the zero value.
func TraceOf(ctx context.Context) Trace {
	c, _ := ctx.Value(traceKey{}).(Trace)
	return c
}
