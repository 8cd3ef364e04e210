package telemetry

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
)

// collectorVariable names a binary of testdata/collector. Building it takes a minute or two.
const collectorVariable = "PARLEY_OTEL_COLLECTOR"

// TestRealCollector exports spans to OpenTelemetry's own collector, which prints them.
func TestRealCollector(t *testing.T) {
	program := os.Getenv(collectorVariable)
	if program == "" {
		if os.Getenv("CI") != "true" {
			t.Skip(collectorVariable + " names no collector: go -C testdata/collector build -o FILE")
		}
		program = filepath.Join(t.TempDir(), "collector")
		build := exec.CommandContext(t.Context(), "go", "-C", "testdata/collector", "build", "-o", program)
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf(`receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [debug]}}
`, address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := &lockedBuffer{}
	cmd := exec.CommandContext(t.Context(), program, "--config", config)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()

	s := &service{telemetry: start(t, Config{Endpoint: "http://" + address, Instance: "one"})}
	waitFor(t, func() bool {
		ended(s.telemetry, host.Operation{Op: "call", Tool: "text.hash", Caller: "mcp-http:ada", Code: host.Denied})
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if err := s.telemetry.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"service.name: Str(parleyd)", "service.instance.id: Str(one)",
		"execute_tool text.hash", "gen_ai.operation.name: Str(execute_tool)", "gen_ai.tool.name: Str(text.hash)",
		"error.type: Str(tool_error)", "parley.code: Str(denied)", "Status code    : Error"} {
		waitFor(t, func() bool { return strings.Contains(out.String(), want) })
	}
	if families := parsed(t, s.metrics(t)); families["parley_spans_exported_total"].Metric[0].Counter.GetValue() == 0 {
		t.Error("no span was exported")
	}
}
