package telemetry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/parley-tools/parley/host"
)

// ended is an operation that begins and ends at once.
func ended(t *Telemetry, o host.Operation) {
	_, end := t.Begin(context.Background(), host.Operation{Op: o.Op, Caller: o.Caller})
	end(o)
}

// parsed reads metrics as Prometheus does.
func parsed(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// TestMetrics checks the metrics of each kind of operation, by the linter and the parser of Prometheus.
func TestMetrics(t *testing.T) {
	s := &service{telemetry: start(t, Config{})}
	for _, o := range []host.Operation{
		{Op: "call", Tool: "text.hash", Caller: "mcp-http:ada", Code: host.OK},
		{Op: "call", Tool: "text.hash", Caller: "mcp-http:ada", Code: host.OK},
		{Op: "call", Tool: "text.hash", Caller: "plugin:js", Code: host.Denied},
		{Op: "call", Caller: "mcp-http:ada", Code: host.NotFound},
		{Op: "search", Caller: "mcp-http:ada", Code: host.OK},
		{Op: "describe", Tool: "text.hash", Caller: "mcp-http:ada", Code: host.OK},
		{Op: "request", Method: "GET", Server: "https://example.com", Status: 204, Code: host.OK},
		{Op: "request", Method: "GET", Server: "https://example.com", Code: host.Unavailable},
	} {
		ended(s.telemetry, o)
	}
	s.telemetry.Begin(t.Context(), host.Operation{Op: "call"})
	text := s.metrics(t)
	for _, want := range []string{
		`parley_calls_total{caller="mcp-http:ada",code="ok",tool="text.hash"} 2`,
		`parley_calls_total{caller="plugin:js",code="denied",tool="text.hash"} 1`,
		`parley_calls_total{caller="mcp-http:ada",code="not_found",tool="other"} 1`,
		`parley_call_duration_seconds_count{tool="text.hash"} 3`,
		`parley_calls_in_flight 1`,
		`parley_lookups_total{code="ok",operation="search"} 1`,
		`parley_lookups_total{code="ok",operation="describe"} 1`,
		`parley_network_requests_total{code="ok",status="2xx"} 1`,
		`parley_network_requests_total{code="unavailable",status="none"} 1`,
		`parley_spans_dropped_total{reason="queue_full"} 0`,
		`version="1.2.3"} 1`, `go_goroutines `, `process_start_time_seconds `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	parsed(t, text)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestMetricsAreBounded checks that callers cannot make series without end, whatever they call themselves.
func TestMetricsAreBounded(t *testing.T) {
	s := &service{telemetry: start(t, Config{})}
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := range 5000 {
				ended(s.telemetry, host.Operation{Op: "call", Tool: fmt.Sprintf("p.t%d", i%600),
					Caller: fmt.Sprintf("mcp-http:c%d-%d", part, i), Code: host.OK})
			}
		})
	}
	all.Wait()
	families := parsed(t, s.metrics(t))
	calls, durations := families["parley_calls_total"].Metric, families["parley_call_duration_seconds"].Metric
	total := 0.0
	tools, callers := map[string]bool{}, map[string]bool{}
	for _, m := range calls {
		total += m.Counter.GetValue()
		for _, l := range m.Label {
			switch l.GetName() {
			case "tool":
				tools[l.GetValue()] = true
			case "caller":
				callers[l.GetValue()] = true
			}
		}
	}
	if total != 40_000 || len(calls) > maxSeries+1 || len(tools) > maxTools+1 || len(callers) > maxCallers+1 ||
		len(durations) > maxTools+1 {
		t.Errorf("%v calls in %d series of %d tools and %d callers, %d durations", total, len(calls), len(tools),
			len(callers), len(durations))
	}
	b := bounded[string]{most: 1}
	if got := b.known("", other) + b.known("a", other) + b.known("b", other) + b.known("a", other); got != "otheraothera" {
		t.Error(got)
	}
}
