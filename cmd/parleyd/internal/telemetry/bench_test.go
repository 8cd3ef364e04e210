package telemetry

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/internal/testhome"
)

// BenchmarkOperation measures what a call costs in telemetry alone.
func BenchmarkOperation(b *testing.B) {
	for name, endpoint := range map[string]string{"exported": sink(b), "not exported": ""} {
		b.Run(name, func(b *testing.B) {
			t := start(b, Config{Endpoint: endpoint})
			o := host.Operation{Op: "call", Tool: "text.hash", Caller: "mcp-http:ada", Code: host.OK,
				Origin: caller.Origin{Transport: "http", Peer: "192.0.2.1:7"}}
			b.ReportAllocs()
			for b.Loop() {
				ended(t, o)
			}
		})
	}
}

// BenchmarkCall makes calls with and without telemetry in pairs, and reports the medians.
func BenchmarkCall(b *testing.B) {
	var hosts [2]*parley.Parley
	for i, tracer := range []host.Tracer{nil, start(b, Config{Endpoint: sink(b)})} {
		p, err := parley.Open(b.Context(), parley.Config{Home: testhome.New(b), Tracer: tracer})
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close()
		hosts[i] = p
	}
	for _, tool := range []string{"text.hash", "cdp.status"} {
		b.Run(tool, func(b *testing.B) {
			var times [2][]time.Duration
			var more []time.Duration // that the call with telemetry of a pair took
			for round := 0; b.Loop(); round++ {
				var pair [2]time.Duration
				for i := range hosts {
					i = (i + round) % len(hosts) // each is first in half of the pairs
					began := time.Now()
					if _, err := hosts[i].Call(b.Context(), tool, params[tool]); err != nil {
						b.Fatal(err)
					}
					pair[i] = time.Since(began)
					times[i] = append(times[i], pair[i])
				}
				more = append(more, pair[1]-pair[0])
			}
			b.ReportMetric(median(times[0]), "off-µs")
			b.ReportMetric(median(times[1]), "on-µs")
			b.ReportMetric(median(more), "more-µs")
		})
	}
}

func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Nanoseconds()) / 1e3
}

var params = map[string]any{"text.hash": map[string]any{"text": "tea"}}

// sink returns the address of a collector that drops what it gets.
func sink(b *testing.B) string {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.Cleanup(s.Close)
	return s.URL
}
