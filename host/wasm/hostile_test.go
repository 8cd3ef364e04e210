package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/internal/wasmtest"
	"github.com/parley-tools/parley/manifest"
)

// localGuest returns a guest of this package's testdata.
func localGuest(t testing.TB, e *Engine, name string) *Provider {
	t.Helper()
	return e.Provider(sourceOf(readFile(t, filepath.Join("testdata", name+".wasm")), wasmtest.Command(t, name)))
}

// TestHostileCommands checks that loops, recursion and floods end by the deadline, and that arguments to WASI are
// bounded.
func TestHostileCommands(t *testing.T) {
	skipWithRace(t)
	e := testEngine(t)
	timeout := 150 * time.Millisecond
	providers := map[string]*Provider{"unrolled": e.Provider(sourceOf(wasmtest.Unrolled(10_000, 1000),
		wasmtest.Command(t, "unrolled")))}
	tests := []struct {
		guest    string
		args     []string
		code     host.Code
		wantText string
	}{
		{"unrolled", nil, host.Timeout, ""},
		{"random-flood", nil, host.Timeout, ""},
		{"start-loop", nil, host.Timeout, ""},
		{"slow-recursion", nil, host.Timeout, ""},
		{"grow", nil, host.Timeout, ""},
		{"probe", []string{"flood", "2"}, host.Timeout, ""},
		{"probe", []string{"flood", "1"}, host.LimitExceeded, "1048576 bytes"},
		{"recursion", nil, host.Trapped, "stack overflow"},
		{"renumber", nil, "badf", ""},
		{"vectors", nil, "inval", ""},
		{"poll", nil, "inval", ""},
		{"spoof", nil, host.ToolFailed, "4026531839"},
	}
	for _, tt := range tests {
		t.Run(tt.guest+strings.Join(tt.args, "-"), func(t *testing.T) {
			p := providers[tt.guest]
			if p == nil {
				p = localGuest(t, e, tt.guest)
			}
			if err := p.Prepare(context.Background()); err != nil {
				t.Fatal(err)
			}
			r := requestFor(t, p, "run", argParams(tt.args...))
			r.Options.Timeout = timeout
			if tt.code == host.Trapped {
				r.Options.Timeout = 10 * time.Second
			}
			r.Grant.FS = []grant.FS{{Path: "/data", Source: t.TempDir(), Mode: "ro"}}
			var err *host.Error
			var elapsed time.Duration
			// A busy machine can delay a call, but hardly the same one three times.
			for try := 0; try == 0 || try < 3 && elapsed > timeout+busyFactor*overrunLimit; try++ {
				start := time.Now()
				_, err = invokeRequest(t, p, r)
				elapsed = time.Since(start)
			}
			if err == nil || err.Code != tt.code || !strings.Contains(err.Message, tt.wantText) {
				t.Fatalf("%v, want %s and %q", err, tt.code, tt.wantText)
			}
			if tt.code == host.Timeout {
				t.Logf("ended %v after its deadline", elapsed-timeout)
				if elapsed > timeout+busyFactor*overrunLimit {
					t.Errorf("ended %v after its deadline", elapsed-timeout)
				}
			}
		})
	}
}

// TestHostCallFromAlloc tests a parley_alloc that calls the host, whose reply requires parley_alloc again.
func TestHostCallFromAlloc(t *testing.T) {
	e := testEngine(t)
	m := loadManifest(t, readFile(t, filepath.Join(guestDir, "smallest.manifest.json")))
	p := e.Provider(sourceOf(readFile(t, "testdata/host-call-in-alloc.wasm"), m))
	if _, err := invoke(t, p, "call", "{}"); err == nil || err.Code != host.Trapped ||
		!strings.Contains(err.Message, "within parley_alloc") {
		t.Errorf("%v", err)
	}
	if err := module.Check(readFile(t, "testdata/imported-export.wasm"), m); err == nil || !strings.Contains(err.Error(),
		"re-exported import") {
		t.Errorf("%v, want an export that is an import refused", err)
	}
}

// TestGoGuestHostCalls builds a Go guest that calls the host many times. Each reply is written by an export that
// runs while an import does.
func TestGoGuestHostCalls(t *testing.T) {
	skipWithRace(t)
	if testing.Short() {
		t.Skip("builds a Go guest")
	}
	out := filepath.Join(t.TempDir(), "gocall.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o",
		out, ".")
	build.Dir = "testdata/gocall"
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWASM=", "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	m := loadManifest(t,
		[]byte(`{"manifest":1,"name":"gocall","version":"0.1.0","kind":"parley/1","docs":{"brief":"A test"},
		"tools":[{"name":"run","docs":{"brief":"Run it"},"params":{"type":"object"},"effect":"read"}]}`))
	p := testEngine(t).Provider(sourceOf(readFile(t, out), m))
	r := requestFor(t, p, "run", `{"times":200}`)
	r.Grant.Tools = []string{"other.*"}
	asked, logged, progress := 0, 0, 0.0
	serving(r).CallTool = func(context.Context, string, json.RawMessage, job.Options) (*job.Result, error) {
		asked++
		return &job.Result{Data: guest.Marshal(strings.Repeat("y", 5000))}, nil
	}
	on(r, job.EventLog, func(job.Event) { logged++ })
	on(r, job.EventProgress, func(e job.Event) { progress = e.Done / e.Total })
	result, failed := invokeRequest(t, p, r)
	if failed != nil || string(result.Data) != `{"bytes":1000000}` || asked != 200 || logged != 200 || progress != 1 {
		t.Errorf("%v %v: asked %d times, logged %d lines, progress %v", result, failed, asked, logged, progress)
	}

	// A tool that blocks does not extend the call.
	r.Options.Timeout = 50 * time.Millisecond
	serving(r).CallTool = func(ctx context.Context, _ string, _ json.RawMessage, _ job.Options) (*job.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, failed = invokeRequest(t, p, r); failed == nil || failed.Code != host.Timeout {
		t.Errorf("%v, want a timeout", failed)
	}
}

// TestDenialsInError checks that the error of a failed call lists each denial once.
func TestDenialsInError(t *testing.T) {
	e := testEngine(t)
	m := loadManifest(t, readFile(t, filepath.Join(guestDir, "smallest.manifest.json")))
	_, err := invoke(t, e.Provider(sourceOf(readFile(t, "testdata/denied-then-trap.wasm"), m)), "call", "{}")
	if err == nil || err.Code != host.Trapped || len(err.Denied) != 1 ||
		err.Denied[0].Right != "http:POST:http://169.254.169.254" {
		t.Errorf("%+v, denied %v", err, err.Denied)
	}
}

// TestNoLeaks checks that calls leave no memory maps, descriptors or goroutines behind.
func TestNoLeaks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	e := testEngine(t)
	echo, honest := testGuest(t, e, "echo", "echo"), localGuest(t, e, "probe")
	dir := t.TempDir()
	round := func() {
		for range 50 {
			_, _ = invoke(t, echo, "trap", "{}")
			_, _ = invoke(t, echo, "echo", "{}")
			r := requestFor(t, honest, "run", argParams("open-many", "/data"))
			r.Grant.FS = []grant.FS{{Path: "/data", Source: dir, Mode: "ro"}}
			_, _ = invokeRequest(t, honest, r)
		}
	}
	count := func() (maps, files, goroutines int) {
		runtime.GC()
		fds, _ := os.ReadDir("/proc/self/fd")
		return bytes.Count(readFile(t, "/proc/self/maps"), []byte("\n")), len(fds), runtime.NumGoroutine()
	}
	round()
	maps, files, goroutines := count()
	round()
	maps2, files2, goroutines2 := count()
	if maps2 > maps+5 || files2 > files || goroutines2 > goroutines {
		t.Errorf("memory maps %d -> %d, descriptors %d -> %d, goroutines %d -> %d", maps, maps2, files, files2, goroutines,
			goroutines2)
	}
}

func argParams(args ...string) string {
	names := []string{"a", "b", "c"}
	m := map[string]string{}
	for i, arg := range args {
		m[names[i]] = arg
	}
	return string(guest.Marshal(m))
}

// TestGarbageCollectionRuns checks that garbage collection and other calls make progress while guests spin on every
// processor.
func TestGarbageCollectionRuns(t *testing.T) {
	e := testEngine(t)
	spin, honest := testGuest(t, e, "echo", "echo"), testGuest(t, e, "smallest", "smallest")
	if _, err := invoke(t, honest, "call", "{}"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		r := requestFor(t, spin, "spin", "{}")
		wg.Go(func() {
			_, err := spin.Invoke(ctx, r)
			if e := host.AsError(err); e.Code != host.Interrupted {
				t.Errorf("%v, want interrupted", err)
			}
		})
	}
	start := time.Now()
	for range 5 {
		runtime.GC()
		if _, err := invoke(t, honest, "call", "{}"); err != nil {
			t.Error(err)
		}
	}
	elapsed := time.Since(start)
	cancel()
	wg.Wait()
	t.Logf("5 collections and calls beside %d spinning guests: %v", runtime.GOMAXPROCS(0), elapsed)
	if elapsed > busyFactor*time.Second/2 {
		t.Errorf("5 collections and calls took %v", elapsed)
	}
}

// TestConcurrent makes many calls at once, good and bad ones.
func TestConcurrent(t *testing.T) {
	e := testEngine(t)
	echo, rev := testGuest(t, e, "echo", "echo"), testGuest(t, e, "rev", "rev")
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for i := range 40 { // 32 of them call echo, the limit for one plugin
		wg.Go(func() {
			switch i % 5 {
			case 0:
				r := requestFor(t, echo, "spin", "{}")
				r.Options.Timeout = 50 * time.Millisecond
				if _, err := invokeRequest(t, echo, r); err == nil || err.Code != host.Timeout {
					t.Errorf("%v, want a timeout", err)
				}
			case 1:
				if _, err := invoke(t, echo, "trap", "{}"); err == nil || err.Code != host.Trapped {
					t.Errorf("%v, want trapped", err)
				}
			case 2:
				want := fmt.Sprintf(`{"value":%d}`, i)
				if result, err := invoke(t, echo, "echo", want); err != nil || string(result.Data) != want {
					t.Errorf("%v %v, want %s", result, err, want)
				}
			case 3:
				if result, err := invoke(t, rev, "word", `{"text":"abc"}`); err != nil || string(result.Data) != `"cba\n"` {
					t.Errorf("%v %v", result, err)
				}
			case 4:
				if result, err := invoke(t, echo, "count", "{}"); err != nil || string(result.Data) != `{"calls":1}` {
					t.Errorf("%v %v: the instance is not fresh", result, err)
				}
			}
		})
	}
	wg.Wait()
	// Timers that have fired may still be ending.
	for i := 0; runtime.NumGoroutine() > before && i < 1000; i++ {
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// TestTooManyCalls checks that a call beyond a limit waits until its deadline, that one which a plugin makes is refused
// at once, and that the next one is served when a call has ended. The limit of a plugin is one for all processes.
func TestTooManyCalls(t *testing.T) {
	dir := t.TempDir()
	e, other := New(Config{SlotDir: dir}), New(Config{SlotDir: dir})
	defer e.Close(context.Background())
	defer other.Close(context.Background())
	p, elsewhere := testGuest(t, e, "smallest", "smallest"), testGuest(t, other, "smallest", "smallest")
	const limit = 2
	request := func(caller string) *host.Request {
		r := requestFor(t, p, "call", "{}")
		r.Caller, r.Limits.ConcurrentCalls = caller, limit
		return r
	}
	for _, tt := range []struct {
		name  string
		limit int
		take  func() (func(), error)
		at    *Provider
	}{
		{"plugin", limit, func() (func(), error) { return p.acquire(t.Context(), request("cli")) }, p},
		{"plugin, elsewhere", limit, func() (func(), error) { return p.acquire(t.Context(), request("cli")) }, elsewhere},
		{"process", maxConcurrent, func() (func(), error) {
			return e.own.Acquire(t.Context(), callSlots, "cli", maxConcurrent, false)
		}, p},
	} {
		t.Run(tt.name, func(t *testing.T) {
			must(t, tt.at.Prepare(t.Context()))
			var held []func()
			for range tt.limit {
				release, err := tt.take()
				must(t, err)
				held = append(held, release)
			}
			ask := func(ctx context.Context, caller string) error {
				_, err := tt.at.Invoke(ctx, request(caller))
				return err
			}
			if err := ask(t.Context(), "plugin:other"); host.AsError(err).Code != host.Busy {
				t.Errorf("%v, want busy at once", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := ask(ctx, "cli"); host.AsError(err).Code != host.Busy || !strings.Contains(err.Error(), "nothing was run") {
				t.Errorf("%v, want busy at the deadline", err)
			}
			ctx, cancel = context.WithCancel(t.Context())
			cancel()
			if err := ask(ctx, "cli"); host.AsError(err).Code != host.Interrupted {
				t.Errorf("%v, want interrupted", err)
			}
			served := make(chan error, 1)
			go func() { served <- ask(context.Background(), "mcp:client") }()
			for _, release := range held {
				release()
			}
			must(t, <-served)
		})
	}
}

// TestGuestRequest compares the request of a guest of kind parley/1 with sdk/abi.md.
func TestGuestRequest(t *testing.T) {
	p := testGuest(t, testEngine(t), "echo", "echo")
	r := requestFor(t, p, "request", `{"value":1}`)
	r.Settings = json.RawMessage(`{"level":3}`)
	r.Limits.Timeout = 5 * time.Second
	r.Grant = grant.Grant{
		FS:    []grant.FS{{Path: "/data", Source: t.TempDir(), Mode: "ro"}},
		HTTP:  []grant.HTTP{{URL: "https://example.com"}},
		Tools: []string{"cdp.Page.*"}, Secrets: []grant.Secret{{Name: "KEY"}}, Env: map[string]string{"LANG": "C"},
		Browser: true, Clock: true,
	}
	result, failed := invokeRequest(t, p, r)
	if failed != nil {
		t.Fatal(failed)
	}
	var got map[string]any
	if err := json.Unmarshal(result.Data, &got); err != nil {
		t.Fatal(err)
	}
	if ms, ok := got["deadline_ms"].(float64); !ok || ms < 1 || ms > 5000 {
		t.Errorf("deadline_ms is %v", got["deadline_ms"])
	}
	delete(got, "deadline_ms")
	want := `{"call_id":"c1","caller":"cli","granted":{"browser":true,"clock":true,"env":["LANG"],"fs":[{"mode":"ro","path":"/data"}],"http":["https://example.com"],` +
		`"random":false,"secrets":["KEY"],"tools":["cdp.Page.*"]},"host":"0.1.0","params":{"value":1},"session":"` +
		(caller.Session{Name: "s1"}).GuestID("echo") + `","settings":{"level":3},"tool":"request"}`
	if s := string(guest.Marshal(got)); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

// TestHostCalls checks that the host replies to a guest in JSON, denies what is not granted, and reports denials.
func TestHostCalls(t *testing.T) {
	p := testGuest(t, testEngine(t), "echo", "echo")
	var called []string
	run := func(tool, params string, grant ...string) (string, []string) {
		t.Helper()
		r := requestFor(t, p, tool, params)
		r.Grant.Tools = grant
		serving(r).CallTool = func(
			_ context.Context, name string, params json.RawMessage, o job.Options,
		) (*job.Result, error) {
			called = append(called, fmt.Sprintf("%s %s %s %d", name, params, o.Timeout, o.MaxBytes))
			if !slices.Contains(r.Grant.Tools, "*") && !strings.HasPrefix(name, "cdp.Page.") {
				return nil, host.Errorf(host.Denied, "not granted")
			}
			if name == "cdp.Page.crash" {
				return nil, host.Errorf(host.TargetCrashed, "the page crashed")
			}
			return &job.Result{Data: json.RawMessage(`{"frameId":"f"}`)}, nil
		}
		result, err := invokeRequest(t, p, r)
		if err != nil {
			t.Fatal(err)
		}
		return string(result.Data), result.Warnings
	}

	reply, _ := run("call-tool",
		`{"tool":"cdp.Page.navigate","params":{"url":"https://example.com"},"options":{"timeout":"10s","max_bytes":9}}`,
		"cdp.Page.*")
	if reply != `{"ok":true,"result":{"frameId":"f"}}` {
		t.Error(reply)
	}
	if want := `cdp.Page.navigate {"url":"https://example.com"} 10s 9`; len(called) != 1 || called[0] != want {
		t.Errorf("called %q, want %q", called, want)
	}
	if reply, _ = run("call-tool", `{"tool":"cdp.Page.crash"}`, "cdp.Page.*"); !strings.Contains(reply,
		`"code":"target_crashed","exit_code":107`) {
		t.Error(reply)
	}
	if reply, _ = run("call-tool", `{"tool":"cdp.Page.navigate","options":{"timeout":"soon"}}`,
		"*"); !strings.Contains(reply, `"code":"invalid_args"`) {
		t.Error(reply)
	}
	if reply, _ = run("ask-bad-json", `{}`, "*"); !strings.Contains(reply, `"code":"invalid_args"`) {
		t.Error(reply)
	}
	for _, tt := range []struct{ tool, params, right string }{
		{"call-tool", `{"tool":"cdp.Network.getCookies"}`, "tool:cdp.Network.getCookies"},
		{"http-request", `{"method":"get","url":"http://127.0.0.1/"}`, "http:GET:http://127.0.0.1"},
		{"read-secret", `{"name":"ECHO_SECRET"}`, "secret:read:ECHO_SECRET"},
	} {
		reply, warnings := run(tt.tool, tt.params, "cdp.Page.*")
		if !strings.Contains(reply, `"code":"denied","exit_code":82`) || !strings.Contains(reply, tt.right) {
			t.Errorf("%s: %s", tt.tool, reply)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], tt.right) {
			t.Errorf("%s: warnings %q", tt.tool, warnings)
		}
	}
}

// TestLogAndProgress checks that log lines and progress reports arrive with escapes in the place of hidden characters.
func TestLogAndProgress(t *testing.T) {
	p := testGuest(t, testEngine(t), "echo", "echo")
	var lines []string
	r := requestFor(t, p, "log", "{}")
	on(r, job.EventLog, func(e job.Event) { lines = append(lines, fmt.Sprint(e.Level, " ", e.Message)) })
	on(r, job.EventProgress, func(e job.Event) {
		lines = append(lines, fmt.Sprint(e.Done, "/", e.Total, " ", e.Message))
	})
	for _, tool := range []string{"log", "progress", "print"} {
		r.Tool = tool
		if _, err := invokeRequest(t, p, r); err != nil {
			t.Fatal(err)
		}
	}
	want := "0 echo: debug line\n1 echo: info line\n2 echo: warn line\n3 echo: \\u001b[31merror line\n1/2 half\n" +
		"2/2 done\n0 echo: to stderr"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestCheck checks that an invalid plugin is refused at install with the reason and advice.
func TestCheck(t *testing.T) {
	reactor := loadManifest(t, readFile(t, filepath.Join(guestDir, "smallest.manifest.json")))
	command := wasmtest.Command(t, "probe")
	tests := []struct {
		file     string
		m        *manifest.Manifest
		wantText string
	}{
		{"component", reactor, "rebuild it for WASI preview 1"},
		{"no-exports", reactor, "does not export its memory"},
		{"no-call", reactor, "parley_call (i32,i32->i64)"},
		{"no-memory", reactor, "memory"},
		{"wrong-type", reactor, "expected ("},
		{"foreign-import", reactor, "imports"},
		{"imported-memory", reactor, "a memory"},
		{"big-memory", reactor, "memory_mib"},
		{"rev", reactor, "-mexec-model=reactor"},
		{"smallest", command, `"kind": "parley/1"`},
		{"echo", command, "only plugins of kind parley/1"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			err := module.Check(readFile(t, filepath.Join(guestDir, tt.file+".wasm")), tt.m)
			if err == nil {
				t.Fatal("accepted")
			}
			if e := host.AsError(err); e.Code != host.InvalidPlugin || !strings.Contains(e.Message, tt.wantText) {
				t.Errorf("%s %q, want %q in it", e.Code, e.Message, tt.wantText)
			}
		})
	}
	starting := func(names ...string) []byte { // a module of kind parley/1 that exports what a command or a reactor does
		exports := [][]byte{wasmtest.Export("memory", 2)}
		for i, name := range append([]string{"parley_alloc", "parley_call"}, names...) {
			e := wasmtest.Export(name, 0)
			e[len(e)-1] = byte(min(i, 2))
			exports = append(exports, e)
		}
		return testModule([]string{"i32->i32", "i32,i32->i64", "->"}, []int{0, 1, 2}, [][]byte{{0x41, 16}, {0x42, 0}, {}},
			exports...)
	}
	err := module.Check(starting("_start"), reactor)
	if err == nil || !strings.Contains(err.Error(), "_initialize (->); it is a command: build it as a reactor") {
		t.Error(err)
	}
	for _, names := range [][]string{{}, {"_initialize"}, {"_start", "_initialize"}} {
		if err := module.Check(starting(names...), reactor); err != nil {
			t.Errorf("%q: %v", names, err)
		}
	}
	echo := readFile(t, filepath.Join(guestDir, "echo.wasm"))
	for name, wasm := range map[string][]byte{"empty": nil, "text": []byte("hello"), "truncated": echo[:len(echo)/2]} {
		if err := module.Check(wasm, reactor); host.AsError(err).Code != host.InvalidPlugin {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"echo", "smallest", "rev"} {
		m := loadManifest(t, readFile(t, filepath.Join(guestDir, name+".manifest.json")))
		if err := module.Check(readFile(t, filepath.Join(guestDir, name+".wasm")), m); err != nil {
			t.Error(err)
		}
	}
}
