package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/mcp"
)

// traced adds the trace and the span of a context to a line.
type traced struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", c.TraceID().String()), slog.String("span_id", c.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h traced) WithAttrs(a []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(a)} }

// WithGroup implements [slog.Handler].
func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }

// logOperation logs an operation that has ended.
func (t *Telemetry) logOperation(ctx context.Context, o host.Operation, took time.Duration) {
	level := slog.LevelInfo
	switch {
	case o.Code == host.Internal:
		level = slog.LevelError
	case o.Op != "call" || strings.HasPrefix(o.Caller, caller.PluginPrefix):
		level = slog.LevelDebug
	}
	t.cfg.Log.LogAttrs(ctx, level, o.Op, slog.String("tool", o.Tool), slog.String("caller", o.Caller),
		slog.String("peer", o.Peer), slog.String("code", string(o.Code)), slog.Duration("took", took),
		slog.String("call", o.CallID))
}

// Access logs a request to the service. The line has the path without the query.
func (t *Telemetry) Access(a mcp.Access) {
	ctx := withRemote(context.Background(), caller.Trace{Parent: a.Parent})
	t.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "request", slog.String("method", a.Method), slog.String("path", a.Path),
		slog.Int("status", a.Status), slog.Int64("bytes", a.Bytes), slog.Duration("took", a.Took),
		slog.String("caller", a.Name), slog.String("peer", a.From))
}
