// Package telemetry shows operators what a service does: spans for a collector, metrics, and logs. None of them
// contains a value of a caller: no parameter, result, query, path of a network request, or message of a tool.
package telemetry

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
)

// Config configures telemetry. With the zero value no spans are exported; there are still metrics and trace ids.
type Config struct {
	// Version is the version of the service.
	Version string `toml:"-"`
	// Log gets a line for each call, with its trace, and at most once a minute a warning that exports fail. Nil logs
	// nothing.
	Log *slog.Logger `toml:"-"`
	// Instance distinguishes services that report to the same collector. "" means a random text.
	Instance string `toml:"instance"`
	// Endpoint is the URL of a collector that receives traces by OTLP over HTTP, such as "http://localhost:4318".
	// Without a path, the protocol's path /v1/traces is used. "" exports nothing.
	Endpoint string `toml:"endpoint"`
	// HeadersFile is a file with a line "NAME: VALUE" for each header that the collector requires. It is read for each
	// export, so that a token can be replaced. "" means none.
	HeadersFile string `toml:"headers_file"`
	// Timeout bounds one export with its retries, and [Telemetry.Shutdown]. "" means "10s".
	Timeout string `toml:"timeout"`
	// Sample is the fraction of traces to export, above 0 and at most 1, among the traces that begin here; a client
	// decides about its own traces. Zero means 1.
	Sample float64 `toml:"sample"`
	// Queue is the maximum number of spans that wait for the collector. Any further spans are dropped and counted. Zero
	// means 2048.
	Queue int `toml:"queue"`
}

const (
	defaultTimeout = 10 * time.Second
	defaultQueue   = 2048
	maxQueue       = 1 << 16
	// maxAttribute bounds a text in a span.
	maxAttribute = 256
)

// Check reports each invalid value, by its key in the file of the service.
func (c *Config) Check(fault func(key, given, expected string)) {
	if d, err := time.ParseDuration(c.Timeout); c.Timeout != "" && (err != nil || d <= 0) {
		fault("telemetry.timeout", c.Timeout, "a duration such as 10s")
	}
	if c.Sample < 0 || c.Sample > 1 {
		fault("telemetry.sample", fmt.Sprint(c.Sample), "a share above 0 and up to 1, such as 0.1")
	}
	if c.Queue < 0 || c.Queue > maxQueue {
		fault("telemetry.queue", fmt.Sprint(c.Queue), fmt.Sprintf("a number of spans from 1 to %d", maxQueue))
	}
	if _, ok := c.url(); c.Endpoint != "" && !ok { // it may contain a password
		fault("telemetry.endpoint", "another text", "a URL such as http://localhost:4318, without user, query and fragment")
	}
}

// url returns the URL for traces. ok is false if the endpoint is invalid.
func (c *Config) url() (text string, ok bool) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), true
}

// Telemetry observes the operations of a host: it is the tracer of one. It is safe for concurrent use.
type Telemetry struct {
	cfg      Config
	timeout  time.Duration
	metrics  *metrics
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Start starts telemetry. It connects to nothing: a collector may start later. The error is config_error.
func Start(ctx context.Context, cfg Config) (*Telemetry, error) {
	var err error
	cfg.Check(func(key, given, expected string) {
		err = host.Errorf(host.ConfigError, "%s: got %q, expected %s", key, given, expected)
	})
	if err != nil {
		return nil, err
	}
	cfg.Instance, cfg.Sample, cfg.Queue = cmp.Or(cfg.Instance, rand.Text()), cmp.Or(cfg.Sample, 1),
		cmp.Or(cfg.Queue, defaultQueue)
	cfg.Log = slog.New(traced{cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)).Handler()})
	ignoreEnvironment(cfg.Log)
	timeout, _ := time.ParseDuration(cfg.Timeout)
	t := &Telemetry{cfg: cfg, timeout: cmp.Or(timeout, defaultTimeout), metrics: newMetrics(cfg.Version)}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "parleyd"), attribute.String("service.version", cfg.Version),
		attribute.String("service.instance.id", cfg.Instance)))
	if err != nil {
		return nil, host.Errorf(host.Internal, "telemetry: %v", err)
	}
	options := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(about),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{AttributeValueLengthLimit: maxAttribute,
			AttributeCountLimit: 32, LinkCountLimit: 1}),
		sdktrace.WithSampler(sdktrace.NeverSample()),
	}
	if cfg.Endpoint != "" {
		q, err := t.newQueue(ctx)
		if err != nil {
			return nil, err
		}
		options = append(options, sdktrace.WithSpanProcessor(q),
			sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Sample))))
	}
	t.provider = sdktrace.NewTracerProvider(options...)
	t.tracer = t.provider.Tracer("github.com/parley-tools/parley", trace.WithInstrumentationVersion(cfg.Version))
	return t, nil
}

// ignoreEnvironment removes the variables that OpenTelemetry's libraries would read in addition to [Config], such as
// headers for another collector.
func ignoreEnvironment(log *slog.Logger) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "OTEL_") {
			log.Info("a variable is ignored; [telemetry] in the configuration counts", "variable", name)
			_ = os.Unsetenv(name)
		}
	}
}

// newQueue returns a queue of spans for the collector.
func (t *Telemetry) newQueue(ctx context.Context) (*queue, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	client := &http.Client{
		Transport: headers{t.cfg.HeadersFile, transport},
		// A redirect would send the headers to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	endpoint, _ := t.cfg.url()
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint),
		otlptracehttp.WithHTTPClient(client), otlptracehttp.WithTimeout(t.timeout),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second,
			MaxInterval: t.timeout, MaxElapsedTime: t.timeout}))
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "telemetry: %v", err)
	}
	return newQueue(exporter, t), nil
}

// Shutdown exports the waiting spans, as far as ctx and the timeout allow.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// Begin implements [host.Tracer].
func (t *Telemetry) Begin(ctx context.Context, o host.Operation) (context.Context, func(host.Operation)) {
	began := time.Now()
	from := caller.TraceOf(ctx)
	ctx, span, name := t.startSpan(ctx, from, o)
	t.metrics.begin(o)
	return ctx, func(o host.Operation) {
		took := time.Since(began)
		t.metrics.end(o, took)
		endSpan(span, name, from, o)
		if o.Op != opRequest {
			t.logOperation(ctx, o, took)
		}
	}
}
