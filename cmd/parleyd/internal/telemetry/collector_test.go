package telemetry

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// collector receives traces as the protocol says: protobuf in POST requests.
type collector struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	spans    []*tracepb.Span
	resource []*commonpb.KeyValue
	text     strings.Builder // all that came, and its headers
	header   http.Header     // of the last request
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		var unzip *gzip.Reader
		if unzip, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(unzip)
		}
	}
	var request collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" ||
		r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("the collector got %s %s %s: %v", r.Method, r.URL, r.Header, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = r.Header
	fmt.Fprintln(&c.text, r.URL, r.Header, prototext.Format(&request))
	for _, of := range request.ResourceSpans {
		c.resource = of.Resource.Attributes
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	answer, _ := proto.Marshal(&collectorpb.ExportTraceServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

// shown returns a span as one line: its kind, name, attributes and status.
func shown(s *tracepb.Span) string {
	kind := strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_"))
	text := kind + " " + s.Name + " {" + attributesOf(s.Attributes) + "}"
	if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		text += " error " + s.Status.Message
	}
	return strings.TrimSpace(text)
}

// changing are the attributes that have another value in each run.
var changing = []string{"parley.call.id", "client.port", "server.port", "service.instance.id"}

func attributesOf(list []*commonpb.KeyValue) string {
	words := map[string]string{}
	for _, a := range list {
		if words[a.Key] = a.Value.GetStringValue(); a.Value.GetStringValue() == "" {
			words[a.Key] = fmt.Sprint(a.Value.GetIntValue())
		}
		if slices.Contains(changing, a.Key) {
			words[a.Key] = "*"
		}
	}
	var text []string
	for _, key := range slices.Sorted(maps.Keys(words)) {
		text = append(text, key+"="+words[key])
	}
	return strings.Join(text, " ")
}

// tree returns the spans of a trace, each below its parent, in the order of their ends.
func (c *collector) tree() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	var add func(parent []byte, depth string)
	add = func(parent []byte, depth string) {
		for _, s := range c.spans {
			if bytes.Equal(s.ParentSpanId, parent) {
				lines = append(lines, depth+shown(s))
				add(s.SpanId, depth+"  ")
			}
		}
	}
	known := map[string]bool{}
	for _, s := range c.spans {
		known[string(s.SpanId)] = true
	}
	for _, s := range c.spans {
		if !known[string(s.ParentSpanId)] { // of a trace that begins elsewhere, or here
			lines = append(lines, shown(s))
			add(s.SpanId, "  ")
		}
	}
	return lines
}

// start starts telemetry that ends with the test.
func start(t testing.TB, cfg Config) *Telemetry {
	t.Helper()
	cfg.Version = "1.2.3"
	telemetry, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = telemetry.Shutdown(t.Context()) })
	return telemetry
}

// within fails the test unless f ends within a time.
func within(t *testing.T, most time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > most {
		t.Errorf("it took %s, at most %s", took, most)
	}
}
