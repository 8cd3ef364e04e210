package telemetry

import (
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
)

// TestConfig checks that a wrong value is refused by the key that it has in the file, and never shows a password.
func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{Endpoint: "localhost:4318"}, `telemetry.endpoint: got "another text", expected a URL`},
		{Config{Endpoint: "ftp://a"}, "telemetry.endpoint: "},
		{Config{Endpoint: "http://u:hunter2@a"}, "telemetry.endpoint: "},
		{Config{Endpoint: "http://u:hunter2@a\x7f"}, "telemetry.endpoint: "},
		{Config{Endpoint: "http://a?b"}, "telemetry.endpoint: "},
		{Config{Timeout: "10"}, `telemetry.timeout: got "10", expected a duration`},
		{Config{Timeout: "-1s"}, `telemetry.timeout: got "-1s"`},
		{Config{Sample: 1.5}, `telemetry.sample: got "1.5", expected a share`},
		{Config{Sample: -1}, `telemetry.sample: got "-1"`},
		{Config{Queue: 1 << 20}, `telemetry.queue: got "1048576", expected a number of spans from 1 to 65536`},
	} {
		_, err := Start(t.Context(), tt.cfg)
		if err == nil || host.AsError(err).Code != host.ConfigError || !strings.Contains(err.Error(), tt.want) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v", tt.cfg, err)
		}
	}
	for given, want := range map[string]string{"http://a": "http://a/v1/traces", "https://a:1/": "https://a:1/v1/traces",
		"http://a/x/v1/traces": "http://a/x/v1/traces"} {
		if got, ok := (&Config{Endpoint: given}).url(); got != want || !ok {
			t.Errorf("%s: %s", given, got)
		}
	}
}

// TestHeaders checks that headers come from a file that can be replaced, and that its text is in no log.
func TestHeaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headers")
	for _, tt := range []struct{ text, want, log string }{
		{"\nAuthorization: Bearer hunter2\nX-Tenant:a:b\n", "Bearer hunter2 a:b", ""},
		{"Authorization Bearer hunter2", "", "line 1 of " + path + " is not NAME: VALUE"},
		{"", " ", ""},
		{"-", "", "no such file"},
	} {
		_ = os.Remove(path)
		if tt.text != "-" {
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, log := newCollector(t), &lockedBuffer{}
		telemetry := start(t, Config{Endpoint: c.URL, HeadersFile: path,
			Timeout: "1s", Log: slog.New(slog.NewTextHandler(log, nil))})
		ended(telemetry, host.Operation{Op: "call", Code: host.OK})
		_ = telemetry.Shutdown(t.Context())
		got := ""
		if c.header != nil {
			got = c.header.Get("Authorization") + " " + c.header.Get("X-Tenant")
		}
		if got != tt.want || !strings.Contains(log.String(), tt.log) || strings.Contains(log.String(), "hunter2") {
			t.Errorf("%q: %q, log %s", tt.text, got, log)
		}
	}
}

// TestEnvironment checks that only the configuration counts: no variable of OpenTelemetry changes what is exported, to
// whom, or whether the service starts.
func TestEnvironment(t *testing.T) {
	c, others := newCollector(t), httptest.NewTLSServer(http.NotFoundHandler())
	defer others.Close()
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: others.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": others.URL, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": others.URL,
		"OTEL_EXPORTER_OTLP_HEADERS": "x-variable=" + canary, "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "y-variable=" + canary,
		"OTEL_EXPORTER_OTLP_CERTIFICATE": certificate, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
		"OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_TRACES_SAMPLER": "always_off",
		"OTEL_RESOURCE_ATTRIBUTES": "variable=" + canary, "OTEL_SERVICE_NAME": canary,
		"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "0", "OTEL_GO_X_OBSERVABILITY": "true",
	} {
		t.Setenv(name, value)
	}
	log := &lockedBuffer{}
	telemetry := start(t, Config{Endpoint: c.URL, Log: slog.New(slog.NewTextHandler(log, nil))})
	ended(telemetry, host.Operation{Op: "call", Tool: "text.hash", Code: host.OK})
	_ = telemetry.Shutdown(t.Context())
	if c.header == nil || strings.Contains(c.text.String(), canary) || c.header.Get("Content-Encoding") != "gzip" ||
		len(c.spans) != 1 || len(c.spans[0].Attributes) == 0 {
		t.Errorf("the collector got %s", &c.text)
	}
	if !strings.Contains(log.String(), "variable=OTEL_EXPORTER_OTLP_HEADERS") || strings.Contains(log.String(), canary) {
		t.Errorf("the log: %s", log)
	}
}

// TestSample checks that a share of the traces is exported, and that a client decides about its own.
func TestSample(t *testing.T) {
	c := newCollector(t)
	telemetry := start(t, Config{Endpoint: c.URL, Sample: 1e-9})
	for flags, want := range map[string]int{"": 0, "00": 0, "01": 1} {
		c.spans = nil
		ctx := t.Context()
		if flags != "" {
			ctx = caller.WithTrace(ctx, caller.Trace{Parent: strings.TrimSuffix(parent, "01") + flags})
		}
		_, end := telemetry.Begin(ctx, host.Operation{Op: "call"})
		end(host.Operation{Op: "call", Code: host.OK})
		waitFor(t, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.spans) == want
		})
	}
}

// waitFor waits for a condition.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it did not become so within 10 s")
}

// TestCollectorsThatFail checks that a collector that is slow, hangs, refuses or is gone delays no call, that what
// waits for it is bounded and the rest is counted, and that the end is bounded, too.
func TestCollectorsThatFail(t *testing.T) {
	const (
		calls   = 20_000
		size    = 256
		timeout = 300 * time.Millisecond
	)
	release := make(chan struct{})
	defer close(release)
	wait := func(r *http.Request, most time.Duration) {
		select {
		case <-release:
		case <-r.Context().Done():
		case <-time.After(most):
		}
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never reads
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	serve := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.CloseClientConnections)
		return s.URL
	}
	quiet := p50(start(t, Config{}))
	for name, endpoint := range map[string]string{
		"slow":     serve(func(_ http.ResponseWriter, r *http.Request) { wait(r, 200*time.Millisecond) }),
		"hanging":  serve(func(_ http.ResponseWriter, r *http.Request) { wait(r, time.Hour) }),
		"silent":   "http://" + silent.Addr().String(),
		"refusing": serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }),
		"busy": serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		}),
		"redirecting": serve(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}),
		"gone": "http://" + gone.Addr().String(),
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{telemetry: start(t, Config{Endpoint: endpoint, Queue: size, Timeout: timeout.String()})}
			for i := range calls {
				ended(s.telemetry, host.Operation{Op: "call", Tool: fmt.Sprint("p.", i%9), Code: host.OK})
			}
			if loaded := p50(s.telemetry); loaded > 10*max(quiet, 2*time.Microsecond) {
				t.Errorf("the median of an operation is %s, and %s without a collector", loaded, quiet)
			}
			within(t, 2*timeout+time.Second, func() { _ = s.telemetry.Shutdown(t.Context()) })
			families := parsed(t, s.metrics(t))
			sum := families["parley_spans_exported_total"].Metric[0].Counter.GetValue()
			for _, m := range families["parley_spans_dropped_total"].Metric {
				sum += m.Counter.GetValue()
			}
			if want := float64(calls + p50Rounds); sum != want {
				t.Errorf("%v spans are accounted for, of %v", sum, want)
			}
		})
	}
}

const p50Rounds = 1000

// p50 returns the median of the time that an operation takes.
func p50(t *Telemetry) time.Duration {
	times := make([]time.Duration, p50Rounds)
	for i := range times {
		began := time.Now()
		ended(t, host.Operation{Op: "call", Tool: "p.t", Code: host.OK})
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	return times[len(times)/2]
}
