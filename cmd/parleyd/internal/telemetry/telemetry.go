// Package telemetry shows operators what a service does: spans that go to a collector, metrics, and logs. None of them
// has a value of a caller: no parameter, result, query, path of a request to the network, or message of a tool.
package telemetry

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-tools/parley/host"
)

// Config configures telemetry. The zero value exports no spans, and has metrics and trace ids.
type Config struct {
	// Version is the version of the service.
	Version string
	// Instance distinguishes services that report to the same collector. "" means a random text.
	Instance string
	// Endpoint is the URL of a collector that receives traces by OTLP over HTTP, such as "http://localhost:4318". Without
	// a path it is that of the protocol, /v1/traces. "" exports nothing.
	Endpoint string
	// HeadersFile is a file with a line "NAME: VALUE" for each header that the collector requires. It is read for each
	// export, so that a token can be replaced. "" means none.
	HeadersFile string
	// Timeout bounds one export with its retries, and [Telemetry.Shutdown]. Zero means 10 s.
	Timeout time.Duration
	// Sample is the share of traces that is exported, above 0 and at most 1, of those that begin here; a client decides
	// about its own. Zero means 1.
	Sample float64
	// Queue is how many spans wait for the collector. Further ones are dropped and counted. Zero means 2048.
	Queue int
	// Log takes a line for each call, and says once a minute at most that exports fail. Nil logs nothing.
	Log *slog.Logger
}

const (
	defaultTimeout = 10 * time.Second
	defaultQueue   = 2048
	maxQueue       = 1 << 16
	// maxAttribute bounds a text in a span.
	maxAttribute = 256
)

// check completes a configuration. Its errors name the keys of the service's own configuration.
func (c *Config) check() error {
	c.Instance, c.Timeout = cmp.Or(c.Instance, rand.Text()), cmp.Or(c.Timeout, defaultTimeout)
	c.Sample, c.Queue = cmp.Or(c.Sample, 1), cmp.Or(c.Queue, defaultQueue)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	invalid := func(key string, given any, expected string) error {
		return host.Errorf(host.ConfigError, "telemetry.%s: %v is not %s", key, given, expected)
	}
	switch {
	case c.Timeout < 0:
		return invalid("timeout", c.Timeout, "a time above 0, such as 10s")
	case c.Sample < 0 || c.Sample > 1:
		return invalid("sample", c.Sample, "a share above 0 and up to 1, such as 0.1")
	case c.Queue < 0 || c.Queue > maxQueue:
		return invalid("queue", c.Queue, fmt.Sprintf("a number of spans from 1 to %d", maxQueue))
	case c.Endpoint == "":
		return nil
	}
	const form = "a URL such as http://localhost:4318, without user, query and fragment"
	u, err := url.Parse(c.Endpoint)
	if err != nil { // whose text has the URL, which may have a password
		return host.Errorf(host.ConfigError, "telemetry.endpoint is not %s", form)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return invalid("endpoint", u.Redacted(), form)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	c.Endpoint = u.String()
	return nil
}

// Telemetry observes the operations of a host. It is safe for concurrent use.
type Telemetry struct {
	cfg      Config
	metrics  *metrics
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Start starts telemetry. It connects to nothing: a collector may start later. The error is config_error.
func Start(ctx context.Context, cfg Config) (*Telemetry, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	t := &Telemetry{cfg: cfg, metrics: newMetrics(cfg.Version)}
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

// newQueue returns a queue of spans for the collector.
func (t *Telemetry) newQueue(ctx context.Context) (*queue, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	client := &http.Client{
		Transport: headers{t.cfg.HeadersFile, transport},
		// A redirect would take the headers to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(t.cfg.Endpoint),
		otlptracehttp.WithHTTPClient(client), otlptracehttp.WithTimeout(t.cfg.Timeout),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second,
			MaxInterval: t.cfg.Timeout, MaxElapsedTime: t.cfg.Timeout}))
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "telemetry: %v", err)
	}
	return newQueue(exporter, t), nil
}

// Tracer returns what observes the operations of a host.
func (t *Telemetry) Tracer() host.Tracer { return t }

// Shutdown exports the spans that wait, as long as ctx and the timeout allow.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// Begin implements [host.Tracer].
func (t *Telemetry) Begin(ctx context.Context, o host.Operation) (context.Context, func(host.Operation)) {
	began := time.Now()
	ctx, span, name := t.startSpan(ctx, o)
	t.metrics.begin(o)
	return ctx, func(o host.Operation) {
		took := time.Since(began)
		t.metrics.end(o, took)
		endSpan(span, name, o)
		if o.Op != opRequest {
			t.logOperation(ctx, o, took)
		}
	}
}
