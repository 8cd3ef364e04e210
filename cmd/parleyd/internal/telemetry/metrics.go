package telemetry

import (
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/wasm"
)

const (
	// maxTools and maxCallers bound the tools and callers that metrics name, and maxSeries their combinations with
	// codes. Any further ones count as other.
	maxTools   = 300
	maxCallers = 100
	maxSeries  = 10_000
	other      = "other"
	// maxScrapes bounds the concurrent readers of metrics.
	maxScrapes = 4
)

// metrics are the metrics of a service, on a registry of their own.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	lookups  *prometheus.CounterVec
	requests *prometheus.CounterVec
	dropped  *prometheus.CounterVec
	exported prometheus.Counter

	tools   bounded[string]
	callers bounded[string]
	series  bounded[series]
}

type series struct{ tool, caller, code string }

func newMetrics(version string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), tools: bounded[string]{most: maxTools},
		callers: bounded[string]{most: maxCallers}, series: bounded[series]{most: maxSeries}}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m.calls = counter("parley_calls_total", "Calls of tools that have ended.", "tool", "caller", "code")
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "parley_call_duration_seconds", Help: "How long calls of tools took.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"tool"})
	m.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{Name: "parley_calls_in_flight",
		Help: "Calls of tools that have begun and not ended."})
	m.lookups = counter("parley_lookups_total", "Searches and descriptions of tools.", "operation", "code")
	m.requests = counter("parley_network_requests_total",
		"Requests that tools sent to the network, by class of the status.", "status", "code")
	m.dropped = counter("parley_spans_dropped_total", "Spans that did not reach the collector.", "reason")
	m.exported = prometheus.NewCounter(prometheus.CounterOpts{Name: "parley_spans_exported_total",
		Help: "Spans that the collector took."})
	for _, reason := range []string{droppedQueue, droppedExport} {
		m.dropped.WithLabelValues(reason) // shows zero, too
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "parley_build_info",
		Help: "Always 1, with the version of the service and of Go."}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	m.registry.MustRegister(m.calls, m.duration, m.inFlight, m.lookups, m.requests, m.dropped, m.exported, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Metrics serves the metrics in the format of Prometheus.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.metrics.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes})
}

// Observe adds the metrics of a host and its server, which are opened after telemetry was started. It is called once.
func (t *Telemetry) Observe(p *parley.Parley, s *mcp.Server) {
	t.Gauge("parley_sessions", "Sessions of MCP that are open.", s.SessionCount)
	t.Gauge("parley_runners", "Processes that run guests or wait for them.",
		func() int { return len(wasm.Runners(p.Dirs().Run)) })
	t.Gauge("parley_approvals_open", "Approvals that wait for an answer.", parley.Approvals(p).Store.CountOpen)
	t.metrics.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "parley_runner_restarts_total", Help: "Runners that ended while a call used them, and were replaced."},
		func() float64 { return float64(p.Engine().LostRunners()) }))
}

// Gauge adds a metric of another part of the service.
func (t *Telemetry) Gauge(name, help string, read func() int) {
	t.metrics.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(read()) }))
}

func (m *metrics) begin(o host.Operation) {
	if o.Op == "call" {
		m.inFlight.Inc()
	}
}

func (m *metrics) end(o host.Operation, took time.Duration) {
	switch o.Op {
	case opRequest:
		status := "none"
		if o.Status > 0 {
			status = strconv.Itoa(o.Status/100) + "xx"
		}
		m.requests.WithLabelValues(status, string(o.Code)).Inc()
	case "call":
		m.inFlight.Dec()
		s := series{m.tools.known(o.Tool, other), m.callers.known(o.Caller, other), string(o.Code)}
		s = m.series.known(s, series{other, other, s.code})
		m.calls.WithLabelValues(s.tool, s.caller, s.code).Inc()
		m.duration.WithLabelValues(s.tool).Observe(took.Seconds())
	default:
		m.lookups.WithLabelValues(o.Op, string(o.Code)).Inc()
	}
}

// bounded is a set that accepts the first values that it gets.
type bounded[T comparable] struct {
	most   int
	mu     sync.Mutex
	values map[T]bool
}

// known returns the value if the set has it or accepts it, and otherwise others. It never accepts the zero value.
func (b *bounded[T]) known(value, others T) T {
	var zero T
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.values[value]:
		return value
	case value == zero || len(b.values) >= b.most:
		return others
	case b.values == nil:
		b.values = map[T]bool{}
	}
	b.values[value] = true
	return value
}
