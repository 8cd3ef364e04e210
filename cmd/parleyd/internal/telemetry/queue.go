package telemetry

import (
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/parley-tools/parley/host"
)

const (
	maxBatch = 512
	// maxDelay is how long a span waits for more of its batch.
	maxDelay = 2 * time.Second
	// warnEvery is the least time between two warnings about failed exports.
	warnEvery = time.Minute
)

// Reasons for dropping spans, as metrics name them.
const (
	droppedQueue  = "queue_full"
	droppedExport = "export_failed"
)

// queue passes spans on to an exporter in batches. It never blocks the caller that ends a span. Spans that do not fit
// are dropped and counted.
type queue struct {
	exporter  sdktrace.SpanExporter
	telemetry *Telemetry
	spans     chan sdktrace.ReadOnlySpan
	stop      chan struct{}
	ctx       context.Context // for exports
	cancel    context.CancelFunc
	done      chan struct{} // closed when the last export has ended
	warned    time.Time
}

func newQueue(exporter sdktrace.SpanExporter, t *Telemetry) *queue {
	q := &queue{exporter: exporter, telemetry: t, spans: make(chan sdktrace.ReadOnlySpan, t.cfg.Queue),
		stop: make(chan struct{}), done: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

// OnStart implements [sdktrace.SpanProcessor].
func (*queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements [sdktrace.SpanProcessor].
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case q.spans <- s:
	default:
		q.drop(droppedQueue, 1)
	}
}

func (q *queue) drop(reason string, spans int) {
	q.telemetry.metrics.dropped.WithLabelValues(reason).Add(float64(spans))
}

// run exports a batch when it is complete or old enough. When the queue is stopped, it exports the rest.
func (q *queue) run() {
	defer close(q.done)
	batch := make([]sdktrace.ReadOnlySpan, 0, maxBatch)
	timer := time.NewTicker(maxDelay)
	defer timer.Stop()
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) < maxBatch {
				continue
			}
		case <-timer.C:
		case <-q.stop:
			for len(q.spans) > 0 {
				if batch = append(batch, <-q.spans); len(batch) == maxBatch {
					batch = q.export(batch)
				}
			}
			q.export(batch)
			return
		}
		batch = q.export(batch)
	}
}

// export exports a batch and returns it emptied.
func (q *queue) export(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(q.ctx, q.telemetry.timeout)
	defer cancel()
	err := q.ctx.Err()
	if err == nil {
		err = q.exporter.ExportSpans(ctx, batch)
	}
	if err == nil {
		q.telemetry.metrics.exported.Add(float64(len(batch)))
	} else if q.drop(droppedExport, len(batch)); time.Since(q.warned) > warnEvery {
		q.warned = time.Now()
		q.telemetry.cfg.Log.Warn("the collector does not accept spans; calls continue", "endpoint", q.telemetry.cfg.Endpoint,
			"error", err.Error())
	}
	clear(batch)
	return batch[:0]
}

// Shutdown implements [sdktrace.SpanProcessor], which calls it once. When ctx ends, so does the export.
func (q *queue) Shutdown(ctx context.Context) error {
	close(q.stop)
	defer context.AfterFunc(ctx, q.cancel)()
	<-q.done
	q.cancel()
	return q.exporter.Shutdown(ctx)
}

// ForceFlush implements [sdktrace.SpanProcessor]. In a service only [queue.Shutdown] waits for a flush.
func (*queue) ForceFlush(context.Context) error { return nil }

// headers adds the headers in a file to each request.
type headers struct {
	path string
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.path == "" {
		return h.next.RoundTrip(r)
	}
	text, err := os.ReadFile(h.path)
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "telemetry.headers_file: %v", err)
	}
	r = r.Clone(r.Context())
	for i, line := range strings.Split(string(text), "\n") {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case ok:
			r.Header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
		case name != "": // the line may contain a token
			return nil, host.Errorf(host.ConfigError, "telemetry.headers_file: line %d of %s is not NAME: VALUE", i+1, h.path)
		}
	}
	return h.next.RoundTrip(r)
}
