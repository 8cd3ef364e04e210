package service

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestMetricsBesideMCP checks who may read the metrics without an address of their own: whoever calls the service by
// one of its names.
func TestMetricsBesideMCP(t *testing.T) {
	f := start(t, "")
	defer f.stop(t)
	for name, want := range map[string]int{"": 200, "evil.test": 403} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = name
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != want || strings.Contains(string(text), "parley_build_info") != (want == 200) {
			t.Errorf("%q: %d %.200s", name, answer.StatusCode, text)
		}
	}
}

// TestTelemetry checks that calls are in the metrics, in the traces that a collector gets, and in the log, and that
// clients of MCP cannot read the metrics where these have an address of their own.
func TestTelemetry(t *testing.T) {
	var exports atomic.Int32
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/traces" && r.Header.Get("X-Tenant") == "team" {
			exports.Add(1)
		}
	}))
	defer collector.Close()
	f := start(t, "status_listen = \"127.0.0.1:0\"\n[telemetry]\nendpoint = \""+collector.URL+
		"\"\nheaders_file = \"DIR/headers\"\n", "headers", "X-Tenant: team\n")
	s, err := connect(f.url+"/mcp", client{token: token})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(s, "text.hash", `{"text":"a"}`, `{}`); err != nil {
		t.Error(err)
	}
	get := func(url string) (int, string) {
		answer, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	status, text := get("http://" + f.status[0].Addr().String() + "/metrics")
	for _, want := range []string{`parley_calls_total{caller="mcp-http:alice",code="ok",tool="text.hash"} 1`,
		"\nparley_sessions ", "\nparley_runners "} {
		if status != 200 || !strings.Contains(text, want) {
			t.Errorf("%d, no %s in %s", status, want, text)
		}
	}
	if status, text := get(f.url + "/metrics"); status == 200 {
		t.Errorf("metrics are served to clients: %s", text)
	}
	_ = s.Close()
	f.log.await(t, "msg=call tool=text.hash caller=mcp-http:alice")
	f.log.await(t, "trace_id=")
	f.stop(t)
	if exports.Load() == 0 {
		t.Error("the collector got nothing")
	}
}
