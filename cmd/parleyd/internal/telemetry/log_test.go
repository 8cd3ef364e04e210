package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/mcp"
)

// lines returns the fields of the lines of a log, without the times.
func lines(t *testing.T, log *lockedBuffer) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		all = append(all, fields)
	}
	return all
}

// TestLog checks which operations are logged at which level, and that the lines of a call name its trace.
func TestLog(t *testing.T) {
	for _, tt := range []struct {
		o    host.Operation
		want string // level and message
	}{
		{host.Operation{Op: "call", Tool: "text.hash", Caller: "mcp-http:ada", Code: host.OK}, "INFO call"},
		{host.Operation{Op: "call", Tool: "text.hash", Caller: "mcp-http:ada", Code: host.Internal}, "ERROR call"},
		{host.Operation{Op: "call", Tool: "text.hash", Caller: "plugin:js", Code: host.OK}, "DEBUG call"},
		{host.Operation{Op: "search", Caller: "mcp-http:ada", Code: host.OK}, "DEBUG search"},
		{host.Operation{Op: "request", Method: "GET", Server: "https://example.com", Code: host.OK}, ""},
	} {
		log := &lockedBuffer{}
		telemetry := start(t, Config{Log: slog.New(slog.NewJSONHandler(log,
			&slog.HandlerOptions{Level: slog.LevelDebug}))})
		ctx := caller.WithTrace(t.Context(), caller.Trace{Parent: parent})
		ctx, end := telemetry.Begin(ctx, tt.o)
		telemetry.cfg.Log.With("part", 1).WithGroup("of").InfoContext(ctx, "meanwhile")
		end(tt.o)
		got := lines(t, log)
		for _, line := range got {
			if of, isGroup := line["of"].(map[string]any); isGroup {
				line = of
			}
			if line["trace_id"] != trace1 || line["span_id"] == nil {
				t.Errorf("%v: no trace in %v", tt.o, line)
			}
		}
		text := ""
		if len(got) > 1 {
			text = got[1]["level"].(string) + " " + got[1]["msg"].(string)
		}
		if text != tt.want {
			t.Errorf("%v: %q, want %q", tt.o, text, tt.want)
		}
	}
}

func TestAccess(t *testing.T) {
	log := &lockedBuffer{}
	telemetry := start(t, Config{Log: slog.New(slog.NewJSONHandler(log, nil))})
	telemetry.Access(mcp.Access{From: "192.0.2.1:7", Name: "ada", Method: "POST", Path: "/mcp", Status: 200, Bytes: 12,
		Took: time.Second, Parent: parent})
	telemetry.Access(mcp.Access{Method: "GET", Path: "/mcp", Status: 401, Parent: "nonsense"})
	all := lines(t, log)
	want := map[string]any{"level": "INFO", "msg": "request", "method": "POST", "path": "/mcp", "status": 200.0,
		"bytes": 12.0, "took": 1e9, "caller": "ada", "peer": "192.0.2.1:7", "trace_id": trace1,
		"span_id": "00f067aa0ba902b7"}
	for key, value := range want {
		if all[0][key] != value {
			t.Errorf("%s is %v, want %v", key, all[0][key], value)
		}
	}
	if _, has := all[1]["trace_id"]; has || len(all) != 2 {
		t.Errorf("%v", all)
	}
}

// TestHandler runs the checks of the standard library for handlers.
func TestHandler(t *testing.T) {
	var log bytes.Buffer
	if err := slogtest.TestHandler(traced{slog.NewJSONHandler(&log, nil)}, func() (all []map[string]any) {
		for line := range strings.Lines(log.String()) {
			fields := map[string]any{}
			_ = json.Unmarshal([]byte(line), &fields)
			all = append(all, fields)
		}
		return all
	}); err != nil {
		t.Error(err)
	}
}
