package wasm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/providertest"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/wasmtest"
	"github.com/parley-tools/parley/manifest"
)

// What builds modules, by short names: such tables are long.
var (
	testModule, wholeModule     = wasmtest.Functions, wasmtest.Module
	section, export, valueTypes = wasmtest.Section, wasmtest.Export, wasmtest.ValueTypes
	vector, unsignedLEB         = wasmtest.Vector, wasmtest.Unsigned
	signedLEB                   = wasmtest.Signed
)

const guestDir = "../../testdata/wasm"

// testCache holds compiled code for all tests of one run.
var testCache string

// TestMain is also the entry point of the child processes that tests start.
func TestMain(m *testing.M) {
	switch os.Getenv("PARLEY_CHILD") {
	case CompileJob:
		if os.Getenv("PARLEY_TEST_CRASH") != "" {
			panic("requested by the test")
		}
		if address := os.Getenv("PARLEY_TEST_HOLD"); address != "" {
			hold(address)
		}
		os.Exit(CompileMain())
	case RunnerJob:
		os.Exit(RunnerMain())
	case "burn": // for [TestRunnersCPU]
		for n := 0; ; n++ {
		}
	case probeJob:
		os.Exit(probeMain())
	}
	dir, err := os.MkdirTemp("", "parley-wasm-test-")
	if err != nil {
		panic(err)
	}
	testCache = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// compiler returns a command that starts this program again; the environment decides what it does.
func compiler() *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return exec.Command(self)
}

// heldCompiler returns a compiler that connects to the listener and begins when that connection is closed.
func heldCompiler(t testing.TB) (func() *exec.Cmd, net.Listener) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return func() *exec.Cmd {
		cmd := compiler()
		cmd.Env = []string{"PARLEY_TEST_HOLD=" + listener.Addr().String()}
		return cmd
	}, listener
}

// hold runs in the compiler that heldCompiler has started.
func hold(address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, conn)
}

func testEngine(t testing.TB) *Engine {
	t.Helper()
	e := New(Config{CacheDir: testCache, HostVersion: "0.1.0", Child: compiler})
	if raceDetector { // compiling takes ten times as long
		e.budget = func(int) budget { return budget{10 * time.Minute, compileMemory} }
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// runnerEngine returns an engine whose isolated calls run in runners. They end with the test.
func runnerEngine(t testing.TB) *Engine {
	t.Helper()
	dir, err := os.MkdirTemp("", "run-") // a path that is short enough for sockets
	must(t, err)
	t.Cleanup(func() {
		StopRunners(dir, func(RunnerInfo) bool { return true })
		_ = os.RemoveAll(dir)
	})
	e := testEngine(t)
	e.cfg.RunDir = dir
	e.cfg.SlotDir = filepath.Join(t.TempDir(), "slots")
	e.shared.Dir = e.cfg.SlotDir
	e.cfg.Debug = func(line string) { t.Log(line) }
	return e
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func loadManifest(t testing.TB, data []byte) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Parse(data, "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func sourceOf(wasm []byte, m *manifest.Manifest) store.Source {
	return store.Source{
		Info: host.Info{Name: m.Name, Version: m.Version, Kind: m.Kind, Brief: m.Docs.Brief, Groups: len(m.Groups),
			Tools: len(m.Tools), Digest: store.Digest(wasm, guest.Marshal(m))},
		Manifest: func() (*manifest.Manifest, error) { return m, nil },
		Wasm:     func() ([]byte, error) { return wasm, nil },
		Segment:  func() ([]byte, error) { return segment.Of(m), nil },
	}
}

// guest returns the fixture name with the manifest manifestName.
func testGuest(t testing.TB, e *Engine, name, manifestName string) *Provider {
	t.Helper()
	wasm := readFile(t, filepath.Join(guestDir, name+".wasm"))
	return e.Provider(sourceOf(wasm, loadManifest(t, readFile(t, filepath.Join(guestDir, manifestName+".manifest.json")))))
}

// shipped returns a plugin that ships with Parley.
func shipped(t testing.TB, e *Engine, name string) *Provider {
	t.Helper()
	dir := filepath.Join("../../plugins", name)
	packed, err := os.ReadFile(filepath.Join(dir, "plugin.wasm.gz"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("plugins/%s/plugin.wasm.gz has not been built", name)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return e.Provider(sourceOf(wasm, loadManifest(t, readFile(t, filepath.Join(dir, "manifest.json")))))
}

func requestFor(t testing.TB, p *Provider, tool, params string) *host.Request {
	t.Helper()
	def, err := p.Tool(tool)
	if err != nil || def == nil {
		t.Fatalf("no tool %s: %v", tool, err)
	}
	r := &host.Request{Def: def, Job: job.Job{Tool: tool, Params: json.RawMessage(params), Caller: "cli", CallID: "c1",
		Session: caller.Session{Name: "s1"}}}
	serving(r)
	return r
}

func invoke(t testing.TB, p *Provider, tool, params string) (*job.Result, *host.Error) {
	t.Helper()
	return invokeRequest(t, p, requestFor(t, p, tool, params))
}

func invokeRequest(t testing.TB, p *Provider, r *host.Request) (*job.Result, *host.Error) {
	t.Helper()
	denied := denialsOf(r)
	result, err := p.Invoke(context.Background(), r)
	if err == nil {
		for _, d := range *denied { // as the host does
			result.Warnings = append(result.Warnings, "denied: "+d.Right+" ("+d.Why+")")
		}
		return result, nil
	}
	var e *host.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: the error is no *host.Error: %v", r.Tool, err)
	}
	for _, bad := range []string{"\x1b", "\u202e", "wasm stack trace", "goroutine"} {
		if strings.Contains(e.Message, bad) {
			t.Errorf("%s: the message contains %q: %q", r.Tool, bad, e.Message)
		}
	}
	e.Denied = append(e.Denied, *denied...)
	return nil, e
}

// TestProvider runs the tests for all providers over plugins of both kinds.
func TestProvider(t *testing.T) {
	e := testEngine(t)
	t.Run("parley/1", func(t *testing.T) {
		providertest.Run(t, testGuest(t, e, "echo", "echo"), providertest.Options{
			Calls: []providertest.Case{
				{Tool: "echo", Params: `{"value":1}`, Want: `{"value":1}`},
				{Tool: "fail", Code: "declared"},
				{Tool: "trap", Code: host.Trapped},
			},
			Slow: &providertest.Case{Tool: "spin"},
		})
	})
	t.Run("wasi", func(t *testing.T) {
		providertest.Run(t, testGuest(t, e, "rev", "rev"), providertest.Options{Calls: []providertest.Case{
			{Tool: "word", Params: `{"text":"abc"}`, Want: `"cba\n"`},
			{Tool: "end", Params: `{"code":3}`, Code: "nothing"},
		}})
	})
}

// TestExamples runs runnable examples and compares their results with the manifest's. PARLEY_HAMMER=1 runs all of
// them instead of the first of each tool, and those of a second shipped plugin.
func TestExamples(t *testing.T) {
	skipWithRace(t)
	e := testEngine(t)
	for _, p := range []*Provider{testGuest(t, e, "echo", "echo"), testGuest(t, e, "rev", "rev"),
		testGuest(t, e, "smallest", "smallest")} {
		runExamples(t, p)
	}
	names := []string{"text"}
	if hammer {
		names = append(names, "json")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { runExamples(t, shipped(t, e, name)) })
	}
}

func runExamples(t *testing.T, p *Provider) {
	m, _ := p.Manifest()
	for i := range m.Tools {
		tool := &m.Tools[i]
		for _, x := range sample(tool.Examples, len(tool.Examples), func(x manifest.Example) string {
			return fmt.Sprint(x.Runnable, x.ExitCode)
		}) {
			if !x.Runnable || x.ExitCode == 81 {
				continue // most of these fail by the schema, which the host validates before it calls a provider
			}
			t.Run(m.Name+"."+tool.Name+"/"+x.Title, func(t *testing.T) {
				params := withDefaults(t, tool.Params, x.Params)
				result, err := invoke(t, p, tool.Name, string(params))
				exit := 0
				if err != nil {
					exit = err.ExitCode()
				}
				if exit != x.ExitCode {
					t.Fatalf("exit code %d, want %d: %v", exit, x.ExitCode, err)
				}
				if x.Result != nil && !sameJSON(t, result.Data, x.Result) {
					t.Errorf("result %s, want %s", result.Data, x.Result)
				}
			})
		}
	}
}

// withDefaults fills in top-level defaults of the schema, as the host does before it calls a provider.
func withDefaults(t *testing.T, schema, params json.RawMessage) json.RawMessage {
	t.Helper()
	var s struct {
		Properties map[string]struct {
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
	}
	values := map[string]json.RawMessage{}
	if json.Unmarshal(schema, &s) != nil || json.Unmarshal(params, &values) != nil {
		return params
	}
	for name, property := range s.Properties {
		if _, given := values[name]; !given && property.Default != nil {
			values[name] = property.Default
		}
	}
	return guest.Marshal(values)
}

func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return bytes.Equal(guest.Marshal(x), guest.Marshal(y))
}

// TestOutcomes calls the tools of echo that misbehave, each in its own way.
func TestOutcomes(t *testing.T) {
	p := testGuest(t, testEngine(t), "echo", "echo")
	tests := []struct {
		tool, params string
		code         host.Code
		exit         int
		wantText     string
	}{
		{"fail", `{}`, "declared", 10, "declared failure"},
		{"fail-undeclared", `{}`, host.ToolFailed, 1, "undeclared failure"},
		{"invalid", `{"value":1}`, host.InvalidArgs, 81, "1 violation"},
		{"trap", `{}`, host.Trapped, 103, "unreachable"},
		{"recurse", `{}`, host.Trapped, 103, "out of bounds"}, // clang keeps the stack in memory
		{"exit", `{"code":3}`, host.ToolFailed, 1, "proc_exit(3)"},
		{"exit", `{"code":0}`, host.InvalidResult, 106, "proc_exit(0)"},
		{"exit", `{"code":-268435457}`, host.ToolFailed, 1, "4026531839"}, // 0xefffffff, which wazero mistakes for a deadline
		{"flood-log", `{}`, host.LimitExceeded, 104, "logged"},
		{"flood-result", `{}`, host.LimitExceeded, 104, "1048576"},
		{"outside", `{}`, host.InvalidResult, 106, "memory ends"},
		{"outside-length", `{}`, host.InvalidResult, 106, "memory ends"},
		{"empty", `{}`, host.InvalidResult, 106, ""},
		{"bad-json", `{}`, host.InvalidResult, 106, ""},
		{"trailing", `{}`, host.InvalidResult, 106, ""},
		{"bad-utf8", `{}`, host.InvalidResult, 106, "UTF-8"},
		{"not-a-response", `{}`, host.InvalidResult, 106, ""},
		{"no-ok", `{}`, host.InvalidResult, 106, `"ok"`},
		{"ansi", `{}`, "declared", 10, `\u001b[31mred\u001b[0m \u202etfel`},
		{"ask-outside", `{}`, host.InvalidResult, 106, "memory ends"},
		{"ask-no-room", `{"tool":"cdp.open"}`, host.LimitExceeded, 104, "parley_alloc returned 0"},
		{"grow", `{}`, "no_memory", 11, ""},
	}
	for _, tt := range tests {
		t.Run(tt.tool, func(t *testing.T) {
			_, err := invoke(t, p, tt.tool, tt.params)
			if err == nil {
				t.Fatal("no error")
			}
			if err.Code != tt.code || err.ExitCode() != tt.exit || !strings.Contains(err.Message, tt.wantText) {
				t.Errorf("%s %d %q, want %s %d and %q in it", err.Code, err.ExitCode(), err.Message, tt.code, tt.exit,
					tt.wantText)
			}
		})
	}
}

// TestDeadline checks that a call ends soon after its deadline, whatever the guest does.
func TestDeadline(t *testing.T) {
	e := testEngine(t)
	const timeout = 100 * time.Millisecond
	tests := []struct{ guest, manifest, tool string }{
		{"echo", "echo", "spin"},
		{"echo", "echo", "sleep"},
		{"fork-bomb", "smallest", "call"},
		{"init-spin", "smallest", "call"},
	}
	for _, tt := range tests {
		t.Run(tt.guest+"."+tt.tool, func(t *testing.T) {
			p := testGuest(t, e, tt.guest, tt.manifest)
			if err := p.Prepare(context.Background()); err != nil {
				t.Fatal(err)
			}
			for try := 1; ; try++ { // what other processes take is late at random, a fault of the host each time
				r := requestFor(t, p, tt.tool, "{}")
				r.Options.Timeout = timeout
				start := time.Now()
				_, err := invokeRequest(t, p, r)
				elapsed := time.Since(start)
				if err == nil || err.Code != host.Timeout {
					t.Fatalf("%v, want a timeout", err)
				}
				t.Logf("ended %v after its deadline: %s", elapsed-timeout, err.Message)
				if elapsed <= timeout+busyFactor*overrunLimit {
					break
				}
				if try == 3 {
					t.Fatalf("ended %v after its deadline, and late before", elapsed-timeout)
				}
			}
		})
	}
}
