package telemetry

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/sdk"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/internal/testhome"
)

func TestMain(m *testing.M) {
	parley.Child()
	os.Exit(m.Run())
}

// canary is in whatever a caller, a tool or a server can write in this test.
const canary = "canary9c41"

// service is a host with telemetry, served over HTTP as the service does, with a plugin that calls tools and servers.
type service struct {
	*httptest.Server
	telemetry *Telemetry
	log       *lockedBuffer
	site      *httptest.Server
	runners   string // their folder
	meanwhile func() // is called by the server that the plugin calls
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// newService returns a service whose guests run in runners.
func newService(t *testing.T, cfg Config) *service {
	s := &service{log: &lockedBuffer{}}
	s.site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Canary", canary)
		isBusy := func(r wasm.RunnerInfo) bool { return r.Busy }
		if runtime.GOOS == "linux" && !slices.ContainsFunc(wasm.Runners(s.runners), isBusy) {
			t.Errorf("the guest runs in the process of the service: %+v", wasm.Runners(s.runners))
		}
		if s.meanwhile != nil {
			s.meanwhile()
		}
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, canary)
	}))
	t.Cleanup(s.site.Close)
	home, err := os.MkdirTemp("", "t") // shorter than that of a test: sockets have short names
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(home) })
		err = testhome.Fill(home)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg.Log = slog.New(slog.NewJSONHandler(s.log, nil))
	s.telemetry = start(t, cfg)

	hostConfig := parley.Config{Home: home, Plugins: []string{echoFor(t, s.site.URL)}}
	t.Setenv("ECHO_SECRET", canary+"secret")
	p := open(t, hostConfig)
	infos, err := p.List()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(infos, func(i host.Info) bool { return i.Name == "echo" })
	policy := fmt.Sprintf("[plugin.echo]\ndigest = %q\nisolate = \"process\"\n"+
		"grants = [\"tool:*\", \"http:GET,POST:%s\", \"secret:read:ECHO_SECRET\"]\n"+
		"[callers.\"mcp-http:*\"]\nallow = [\"*\"]\n[secrets.ECHO_SECRET]\nfrom = \"env:ECHO_SECRET\"\n",
		infos[at].Digest, s.site.URL)
	if err := os.MkdirAll(p.Dirs().Config, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Dirs().Config, "policy.toml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	hostConfig.Tracer = s.telemetry
	p = open(t, hostConfig) // so that no runner ends because the policy changes
	s.runners = p.Dirs().Run
	server, err := p.MCP(mcp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.telemetry.Observe(p, server)
	open := &approval.Approval{ID: approval.NewID(), Kind: approval.ForCall, Principal: "cli", Tool: "text.hash"}
	if reply, err := parley.Approvals(p).Approve(t.Context(), open); err != nil || reply.Answer != "" {
		t.Fatal(reply, err)
	}
	handler, err := server.Handler(mcp.Progressive, mcp.HTTPConfig{Access: s.telemetry.Access})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	s.Server = httptest.NewServer(s.telemetry.Handler(mux))
	t.Cleanup(s.Close)
	return s
}

func open(t *testing.T, cfg parley.Config) *parley.Parley {
	t.Helper()
	p, err := parley.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// echoFor copies the plugin that behaves and misbehaves, for a server.
func echoFor(t *testing.T, site string) string {
	const from = "../../../../testdata/wasm/echo"
	to := filepath.Join(t.TempDir(), "echo")
	for _, suffix := range []string{".wasm", ".manifest.json"} {
		data, err := os.ReadFile(from + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if suffix != ".wasm" {
			data = bytes.ReplaceAll(data, []byte("http://127.0.0.1"), []byte(site))
		}
		if err := os.WriteFile(to+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to + ".wasm"
}

// tool calls a tool of MCP in a revision without sessions, and returns the response.
func (s *service) tool(t *testing.T, name string, arguments any, meta map[string]any, headers ...string) string {
	t.Helper()
	whole := map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "tester", "version": "1"}}
	for key, value := range meta {
		whole[key] = value
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": canary, "method": "tools/call",
		"params": map[string]any{"name": name, "arguments": arguments, "_meta": whole}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/mcp?q="+canary, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
		"Mcp-Name": name, "X-Canary": canary} {
		r.Header.Set(name, value)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

const (
	parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	trace1 = "4bf92f3577b34da6a3ce929d0e0e4736"
)

// TestSpans checks the spans of each kind of operation: their names and attributes, and which is within which.
func TestSpans(t *testing.T) {
	const mcpCall = "server tools/call"
	of := func(tool, failed string) string {
		text := "{client.address=127.0.0.1 client.port=* "
		failed, status, _ := strings.Cut(failed, " ") // of JSON-RPC
		if failed != "" {
			text += "error.type=" + cmp.Or(status, "tool_error") + " "
		}
		text += "gen_ai.operation.name=execute_tool "
		if tool != "" {
			text += "gen_ai.tool.name=" + tool + " "
		}
		text += "mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http " +
			"network.transport=tcp parley.call.id=* parley.caller=mcp-http:tester"
		if failed != "" {
			text += " parley.code=" + failed
		}
		if status != "" {
			text += " rpc.response.status_code=" + status
		}
		if failed != "" {
			return text + "} error"
		}
		return text + "}"
	}
	inner := func(tool string) string {
		return "internal execute_tool " + tool + " {gen_ai.operation.name=execute_tool gen_ai.tool.name=" + tool +
			" parley.call.id=* parley.caller=plugin:echo}"
	}
	const get = "client GET {%shttp.request.method=GET %sserver.address=127.0.0.1 server.port=* url.scheme=http}"
	found := fmt.Sprintf(get, "", "http.response.status_code=200 ")
	gone := fmt.Sprintf(get, "error.type=404 ", "http.response.status_code=404 ") + " error"
	request := func(path string) map[string]any {
		return map[string]any{"method": "GET", "url": "SITE" + path, "headers": [][]string{{"X-Canary", canary}}}
	}
	for _, tt := range []struct {
		name, tool string
		arguments  map[string]any
		want       []string // below the span of the request over HTTP
	}{
		{"tool that calls a tool that sends a request", "echo__call-tool",
			map[string]any{"tool": "echo.http-request", "params": request("/" + canary + "?" + canary)}, []string{
				mcpCall + " echo.call-tool " + of("echo.call-tool", ""), "  " + inner("echo.http-request"), "    " + found}},
		{"request that fails", "echo__http-request", request("/gone?" + canary),
			[]string{mcpCall + " echo.http-request " + of("echo.http-request", ""), "  " + gone}},
		{"request that is not granted", "echo__http-request",
			map[string]any{"method": "GET", "url": "http://" + canary + ".test"},
			[]string{mcpCall + " echo.http-request " + of("echo.http-request", "")}},
		{"secret", "echo__read-secret", map[string]any{"name": "ECHO_SECRET"},
			[]string{mcpCall + " echo.read-secret " + of("echo.read-secret", "")}},
		{"by call_tool", "call_tool", map[string]any{"name": "echo.echo", "arguments": map[string]any{"value": canary}},
			[]string{mcpCall + " echo.echo " + of("echo.echo", "")}},
		{"failure of a tool", "echo__fail", nil, []string{mcpCall + " echo.fail " + of("echo.fail", "tool_failed")}},
		{"refusal by a tool", "echo__invalid", map[string]any{"value": canary},
			[]string{mcpCall + " echo.invalid " + of("echo.invalid", "invalid_args")}},
		{"invalid parameters", "echo__read-secret", map[string]any{canary: canary},
			[]string{mcpCall + " echo.read-secret " + of("echo.read-secret", "invalid_args")}},
		{"unknown tool by call_tool", "call_tool", map[string]any{"name": "echo." + canary},
			[]string{mcpCall + " " + of("", "not_found")}},
		{"unknown tool", canary, nil, []string{mcpCall + " " + of("", "not_found -32602")}},
		{"search", "search_tools", map[string]any{"query": canary},
			[]string{mcpCall + " search_tools " + of("search_tools", "")}},
		{"describe", "describe_tool", map[string]any{"name": "echo.echo"},
			[]string{mcpCall + " describe_tool " + of("describe_tool", "")}},
		{"describe what does not exist", "describe_tool", map[string]any{"name": canary},
			[]string{mcpCall + " describe_tool " + of("describe_tool", "not_found")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCollector(t)
			s := newService(t, Config{Endpoint: c.URL})
			arguments, _ := json.Marshal(tt.arguments)
			response := s.tool(t, tt.tool, json.RawMessage(strings.ReplaceAll(string(arguments), "SITE", s.site.URL)), nil)
			s.end(t)
			got := c.tree()
			status := "200"
			if strings.Contains(response, `"error":{"code":-32602`) { // of the protocol
				status = "400"
			}
			want := []string{"server POST /mcp {client.address=127.0.0.1 client.port=* http.request.method=POST " +
				"http.response.status_code=" + status + " http.route=/mcp url.scheme=http}"}
			for _, line := range tt.want {
				want = append(want, "  "+line)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s\nresponse %s", strings.Join(got, "\n"), strings.Join(want, "\n"), response)
			}
			if about := attributesOf(c.resource); about != "service.instance.id=* service.name=parleyd "+
				"service.version=1.2.3 telemetry.sdk.language=go telemetry.sdk.name=opentelemetry "+
				"telemetry.sdk.version="+sdk.Version() {
				t.Errorf("the resource is %s", about)
			}
			all := c.text.String() + s.log.String() + s.metrics(t)
			if at := strings.Index(all, canary); at >= 0 {
				t.Errorf("telemetry has a value: ..%s", all[max(0, at-100):at+len(canary)])
			}
			for line := range strings.Lines(s.log.String()) {
				if isCall := strings.Contains(line, `"caller"`); isCall && !strings.Contains(line, `"trace_id":"`) {
					t.Errorf("no trace in the line %s", line)
				}
			}
		})
	}
}

// end shuts telemetry down, so that the collector has all spans.
func (s *service) end(t *testing.T) {
	t.Helper()
	s.Close() // once all responses are complete
	if err := s.telemetry.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func (s *service) metrics(t testing.TB) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.telemetry.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Errorf("metrics: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestTraceContext checks which trace a call belongs to.
func TestTraceContext(t *testing.T) {
	const parent2 = "00-11111111111111111111111111111111-2222222222222222-01"
	for _, tt := range []struct {
		name        string
		meta        map[string]any
		headers     []string
		trace       string // of the call; "" for any
		state       string
		withRequest bool // the trace of the call is that of the request over HTTP
	}{
		{"none", nil, nil, "", "", true},
		{"in _meta", map[string]any{"traceparent": parent, "tracestate": "a=1"}, nil, trace1, "a=1", false},
		{"in the headers", nil, []string{"Traceparent", parent, "Tracestate", "a=1"}, trace1, "a=1", true},
		{"in both", map[string]any{"traceparent": parent}, []string{"Traceparent", parent2}, trace1, "", false},
		{"not valid", map[string]any{"traceparent": canary}, nil, "", "", false},
		{"of another type", map[string]any{"traceparent": 7}, nil, "", "", true},
		{"long state", map[string]any{"traceparent": parent, "tracestate": "a=" + strings.Repeat("b", 600)}, nil, trace1,
			"", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCollector(t)
			s := newService(t, Config{Endpoint: c.URL})
			s.tool(t, "echo__echo", map[string]any{}, tt.meta, tt.headers...)
			s.end(t)
			spans := map[string]*tracepb.Span{}
			for _, span := range c.spans {
				spans[span.Name] = span
			}
			call, request := spans["tools/call echo.echo"], spans["POST /mcp"]
			if call == nil || request == nil {
				t.Fatal(c.tree())
			}
			if got := hex.EncodeToString(call.TraceId); tt.trace != "" && got != tt.trace || call.TraceState != tt.state {
				t.Errorf("trace %s, state %q", got, call.TraceState)
			}
			if same := bytes.Equal(call.TraceId, request.TraceId); same != tt.withRequest {
				t.Errorf("trace %x, that of the request %x", call.TraceId, request.TraceId)
			}
			linked := len(call.Links) == 1 && bytes.Equal(call.Links[0].SpanId, request.SpanId)
			if linked == tt.withRequest {
				t.Errorf("the call is linked to the request: %v", call.Links)
			}
			if id := hex.EncodeToString(call.TraceId); !strings.Contains(s.log.String(), `"trace_id":"`+id+`"`) {
				t.Errorf("no line of the call has the trace %s:\n%s", id, s.log)
			}
		})
	}
}

// TestRunners checks the metrics of the parts of a host, while a call runs and after its runner was killed.
func TestRunners(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("runners need Linux")
	}
	s := newService(t, Config{})
	s.meanwhile = func() {
		families := parsed(t, s.metrics(t))
		for _, name := range []string{"parley_runners", "parley_calls_in_flight", "parley_approvals_open"} {
			if value := families[name].Metric[0].Gauge.GetValue(); value < 1 {
				t.Errorf("%s is %v", name, value)
			}
		}
		for _, r := range wasm.Runners(s.runners) {
			if process, err := os.FindProcess(r.PID); r.Busy && (err != nil || process.Kill() != nil) {
				t.Errorf("%+v has ended already", r)
			}
		}
	}
	request := map[string]any{"method": "POST", "url": s.site.URL, "body": canary}
	if response := s.tool(t, "echo__http-request", request, nil); !strings.Contains(response, "trapped") {
		t.Error(response)
	}
	text := s.metrics(t)
	for _, want := range []string{"\nparley_runner_restarts_total 1\n", "\nparley_calls_in_flight 0\n",
		"\nparley_sessions 0\n",
		`parley_calls_total{caller="mcp-http:tester",code="trapped",tool="echo.http-request"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

// TestRequests checks the spans of requests of a session, by their names, revisions and codes of JSON-RPC.
func TestRequests(t *testing.T) {
	c := newCollector(t)
	s := newService(t, Config{Endpoint: c.URL})
	client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "tester", Version: "1"}, nil)
	session, err := client.Connect(t.Context(),
		&mcpsdk.StreamableClientTransport{Endpoint: s.URL + "/mcp", MaxRetries: -1},
		&mcpsdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	id := session.ID()
	for _, name := range []string{"echo.echo", canary} {
		_, _ = session.CallTool(t.Context(), &mcpsdk.CallToolParams{Name: name, Arguments: map[string]any{}})
		_, _ = session.GetPrompt(t.Context(), &mcpsdk.GetPromptParams{Name: "use_tool",
			Arguments: map[string]string{"tool": name}})
		_, _ = session.ReadResource(t.Context(), &mcpsdk.ReadResourceParams{URI: "parley://docs/" +
			strings.ReplaceAll(name, ".", "/")})
	}
	_ = session.Close()
	s.end(t)
	var got []string
	for _, line := range c.tree() {
		if name, has, _ := strings.Cut(line, " {"); !strings.Contains(name, "POST") {
			version, code := "none", "none"
			for field := range strings.FieldsSeq(strings.ReplaceAll(has, "}", "")) {
				key, value, _ := strings.Cut(field, "=")
				switch key {
				case "mcp.protocol.version":
					version = value
				case "rpc.response.status_code":
					code = value
				}
			}
			got = append(got, strings.TrimSpace(name)+" "+version+" "+code)
			if !strings.Contains(line, "mcp.session.id="+id) {
				t.Errorf("no session %s in %s", id, line)
			}
		}
	}
	want := []string{"server prompts/get use_tool 2025-11-25 -32602", "server prompts/get use_tool 2025-11-25 none",
		"server resources/read 2025-11-25 none", "server tools/call 2025-11-25 -32602",
		"server tools/call echo.echo 2025-11-25 none"}
	if slices.Sort(got); !slices.Equal(got, want) || id == "" {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if at := strings.Index(c.text.String(), canary); at >= 0 {
		t.Errorf("telemetry has a value: ..%s", c.text.String()[max(0, at-100):at+len(canary)])
	}
}
