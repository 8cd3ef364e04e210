package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/contain"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
)

// all matches every runner.
func all(RunnerInfo) bool { return true }

// inRunner makes a call in a runner, which must succeed, and returns its result.
func inRunner(t testing.TB, p *Provider, r *host.Request) string {
	t.Helper()
	r.Isolate = isolateProcess
	result, err := invokeRequest(t, p, r)
	if err != nil {
		t.Fatalf("%s: %v", r.Tool, err)
	}
	return string(result.Data)
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestRunnersServeCalls checks which calls share a runner: those of one build, grant, set of limits, caller and
// session.
func TestRunnersServeCalls(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	p := testGuest(t, e, "echo", "echo")
	request := func() *host.Request { return requestFor(t, p, "echo", `{"value":1}`) }
	inRunner(t, p, request())
	first := running(e)
	if len(first) != 1 {
		t.Fatalf("runners after one call: %v", first)
	}
	// A host of its own has the same runner.
	other := New(e.cfg)
	t.Cleanup(func() { must(t, other.Close(context.Background())) })
	for range 3 {
		inRunner(t, p, request())
		inRunner(t, testGuest(t, other, "echo", "echo"), request())
	}
	if got := running(e); !slices.Equal(got, first) {
		t.Errorf("the runners of the same calls are %v, then %v", first, got)
	}
	if p.loading != nil && p.loading.plugin != nil && len(e.plugins) > 1 {
		t.Error("compiled code was opened by the host")
	}
	seen := map[int]bool{first[0]: true}
	for what, change := range map[string]func(*host.Request){
		"caller":  func(r *host.Request) { r.Caller = "mcp:x" },
		"session": func(r *host.Request) { r.Session.Name = "other" },
		"owner":   func(r *host.Request) { r.Session.Owner = "token:1" },
		"grant":   func(r *host.Request) { r.Grant.Random = true },
		"value":   func(r *host.Request) { r.Grant.Env = map[string]string{"LANG": "C"} },
		"limits":  func(r *host.Request) { r.Limits.HostCalls = 5 },
	} {
		r := request()
		change(r)
		inRunner(t, p, r)
		got := running(e)
		newest := got[len(got)-1]
		if seen[newest] {
			t.Errorf("a call with another %s has the runner of an earlier call", what)
		}
		seen[newest] = true
	}
	info := Runners(e.cfg.RunDir)[0]
	if info.Plugin != "echo" || info.Busy || info.Started.IsZero() || info.Used.IsZero() {
		t.Errorf("%+v", info)
	}
	if stopped := StopRunners(e.cfg.RunDir, func(i RunnerInfo) bool { return i.Caller == "mcp:x" }); len(stopped) != 1 {
		t.Errorf("stopped %+v", stopped)
	}
	StopRunners(e.cfg.RunDir, all)
	if left, _ := os.ReadDir(e.cfg.RunDir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestRunnersAreBounded checks that the least recently used runner ends first.
func TestRunnersAreBounded(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	p := testGuest(t, e, "echo", "echo")
	var first int
	for i := range maxRunners + 2 {
		r := requestFor(t, p, "echo", `{"value":1}`)
		r.Session.Name = strconv.Itoa(i)
		inRunner(t, p, r)
		if i == 0 {
			first = running(e)[0]
		}
	}
	eventually(t, "too many runners", func() bool {
		got := running(e)
		return len(got) <= maxRunners && !slices.Contains(got, first)
	})
}

// TestRunnersHeldByASweep checks the bound while somebody else holds all runners that are not in use for a moment, as a
// sweep does.
func TestRunnersHeldByASweep(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	p := testGuest(t, e, "echo", "echo")
	call := func(session string) {
		r := requestFor(t, p, "echo", `{"value":1}`)
		r.Session.Name = session
		inRunner(t, p, r)
	}
	for i := range maxRunners {
		call(strconv.Itoa(i))
	}
	other := &runnerPool{dir: e.cfg.RunDir}
	var held []*lease
	for _, info := range Runners(e.cfg.RunDir) {
		if l, err := other.lock(info.Name); err == nil && l != nil {
			held = append(held, l)
		}
	}
	if len(held) != maxRunners {
		t.Fatalf("%d of %d runners are held", len(held), maxRunners)
	}
	time.AfterFunc(50*time.Millisecond, func() {
		for _, l := range held {
			l.drop()
		}
	})
	call("one more")
	if got := len(running(e)); got != maxRunners {
		t.Errorf("%d runners, expected %d", got, maxRunners)
	}
}

// TestRunnersEnd checks what ends a runner, and that the next call has another one.
func TestRunnersEnd(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	watched := filepath.Join(t.TempDir(), "config", "policy.toml")
	e.cfg.Watch = []string{watched}
	p := testGuest(t, e, "echo", "echo")
	for _, c := range []struct {
		name string
		end  func(t *testing.T, pid int)
	}{
		{"a trap", func(t *testing.T, _ int) {
			if _, err := invokeIsolated(t, p, requestFor(t, p, "trap", `{}`)); err == nil || err.Code != host.Trapped {
				t.Errorf("%v", err)
			}
		}},
		{"a timeout", func(t *testing.T, _ int) {
			r := requestFor(t, p, "spin", `{}`)
			r.Options.Timeout = 50 * time.Millisecond
			if _, err := invokeIsolated(t, p, r); err == nil || err.Code != host.Timeout {
				t.Errorf("%v", err)
			}
		}},
		{"an interruption", func(t *testing.T, _ int) {
			ctx, cancel := context.WithCancel(context.Background())
			r := requestFor(t, p, "log", `{}`)
			r.Isolate = isolateProcess
			r.Wants.Log = true
			r.Events = func(job.Event) error { cancel(); return nil }
			if _, err := p.Invoke(ctx, r); !errors.Is(err, host.Interrupted) {
				t.Errorf("%v", err)
			}
		}},
		{"a kill", func(t *testing.T, pid int) { must(t, unix.Kill(pid, unix.SIGKILL)) }},
		{"a new folder of policies", func(t *testing.T, _ int) { must(t, os.Mkdir(filepath.Dir(watched), 0o700)) }},
		{"a new policy", func(t *testing.T, _ int) { must(t, os.WriteFile(watched, nil, 0o600)) }},
		{"a changed policy", func(t *testing.T, _ int) { must(t, os.WriteFile(watched, []byte("#"), 0o600)) }},
		{"a replaced policy", func(t *testing.T, _ int) {
			must(t, os.WriteFile(watched+".new", nil, 0o600))
			must(t, os.Rename(watched+".new", watched))
		}},
		{"the end of the run folder", func(t *testing.T, _ int) { must(t, os.RemoveAll(e.cfg.RunDir)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			must(t, os.MkdirAll(e.cfg.RunDir, 0o700))
			inRunner(t, p, requestFor(t, p, "echo", `{"value":1}`))
			pids := running(e)
			if len(pids) != 1 {
				t.Fatalf("runners: %v", pids)
			}
			c.end(t, pids[0])
			eventually(t, "the runner does not end", func() bool { return unix.Kill(pids[0], 0) != nil })
			must(t, os.MkdirAll(e.cfg.RunDir, 0o700))
			inRunner(t, p, requestFor(t, p, "echo", `{"value":1}`))
		})
	}
}

// TestIdleRunnersEnd checks that a runner ends when nobody uses it, and that a call which arrives then is not lost.
func TestIdleRunnersEnd(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	e.cfg.RunnerIdle = time.Millisecond
	p := testGuest(t, e, "echo", "echo")
	for i := range 20 {
		inRunner(t, p, requestFor(t, p, "echo", `{"value":1}`))
		time.Sleep(time.Duration(rand.IntN(3*(i%2)+1)) * time.Millisecond) // at a random moment
	}
	eventually(t, "an idle runner does not end", func() bool { return len(running(e)) == 0 })
}

// TestManyStartersOneRunner makes the first calls of many hosts at once. All succeed, and no more runners than calls at
// one time are started.
func TestManyStartersOneRunner(t *testing.T) {
	skipWithRace(t)
	skipWithoutRunners(t)
	e := runnerEngine(t)
	must(t, testGuest(t, e, "echo", "echo").Prepare(context.Background()))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			other := New(e.cfg)
			defer func() { _ = other.Close(context.Background()) }()
			p := testGuest(t, other, "echo", "echo")
			for i := range 3 {
				r := requestFor(t, p, "echo", fmt.Sprintf(`{"value":%d}`, i))
				r.Isolate = isolateProcess
				if result, err := p.Invoke(context.Background(), r); err != nil ||
					string(result.Data) != fmt.Sprintf(`{"value":%d}`, i) {
					t.Errorf("%v, %v", result, err)
				}
			}
		})
	}
	all.Wait()
	if got := running(e); len(got) == 0 || len(got) > maxRunners {
		t.Errorf("%d runners", len(got))
	}
}

// TestKilledRunners kills runners at random moments. A call that had begun may end in trapped; no other is lost, and
// none hangs. PARLEY_HAMMER=1 kills 310 times.
func TestKilledRunners(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	p := testGuest(t, e, "echo", "echo")
	kills := 12
	if hammer {
		kills = 310
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	inRunner(t, p, requestFor(t, p, "echo", `{"value":1}`))
	for range kills {
		pids := running(e)
		wait := time.Duration(random.IntN(3000)) * time.Microsecond
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			time.Sleep(wait) // a random moment
			for _, pid := range pids {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}()
		begun := 0
		for range 10 {
			r := requestFor(t, p, "echo", `{"value":1}`)
			r.Isolate = isolateProcess
			result, err := p.Invoke(context.Background(), r)
			switch {
			case errors.Is(err, host.Trapped):
				begun++
			case err != nil || string(result.Data) != `{"value":1}`:
				t.Errorf("%v, %v", result, err)
			}
		}
		<-killed
		if begun > 1 {
			t.Errorf("one kill cost %d calls", begun)
		}
	}
	// Nothing remains but what runs.
	StopRunners(e.cfg.RunDir, all)
	if left, _ := os.ReadDir(e.cfg.RunDir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestLostCalls kills the runner of a call that has asked the host for something. The call is run again, once, if its
// tool says that this does no harm.
func TestLostCalls(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	p := testGuest(t, e, "echo", "echo")
	for _, c := range []struct {
		name  string
		def   func(*manifest.Tool)
		kills int
		asked int
		ends  bool
	}{
		{"read", func(def *manifest.Tool) { def.Effect = manifest.EffectRead }, 1, 2, true},
		{"read, killed twice", func(def *manifest.Tool) { def.Effect = manifest.EffectRead }, 2, 2, false},
		{"write", func(def *manifest.Tool) { def.Effect = manifest.EffectWrite }, 1, 1, false},
		{"idempotent", func(def *manifest.Tool) { def.Effect, def.Idempotent = manifest.EffectWrite, true }, 1, 2, true},
	} {
		r := requestFor(t, p, "call-tool", `{"tool":"other.tool"}`)
		def := *r.Def
		c.def(&def)
		r.Def, r.Isolate = &def, isolateProcess
		asked := 0
		r.Ask = func(context.Context, string, json.RawMessage) (*job.Result, error) {
			if asked++; asked <= c.kills {
				for _, pid := range running(e) {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
			return &job.Result{Data: json.RawMessage(`{}`)}, nil
		}
		_, err := invokeRequest(t, p, r)
		if asked != c.asked || (err == nil) != c.ends || err != nil && err.Code != host.Trapped {
			t.Errorf("%s: asked %d times, %v", c.name, asked, err)
		}
	}
}

// TestRunnerFiles checks that a granted folder that was replaced is the new one in the next call.
func TestRunnerFiles(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	p := localGuest(t, e, "probe")
	dir := filepath.Join(t.TempDir(), "granted")
	for _, content := range []string{"first", "second"} {
		must(t, os.RemoveAll(dir))
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "file"), []byte(content), 0o600))
		for range 2 {
			r := requestFor(t, p, "run", argParams("read", "/data/file"))
			r.Grant.FS = []grant.FS{{Source: dir, Path: "/data", Mode: "ro"}}
			if got := inRunner(t, p, r); !strings.Contains(got, content) {
				t.Errorf("%s, want %s", got, content)
			}
		}
	}
}

// TestNothingOfEarlierSessions looks for a parameter of one session in the memory of the runner of another.
func TestNothingOfEarlierSessions(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	p := testGuest(t, e, "echo", "echo")
	const marker = "5f0d8e1c-marker-of-the-first-session"
	for _, session := range []string{"first", "second"} {
		value := "nothing"
		if session == "first" {
			value = marker
		}
		for range 2 {
			r := requestFor(t, p, "echo", `{"value":"`+value+`"}`)
			r.Session.Name = session
			inRunner(t, p, r)
		}
		pids := running(e)
		found, err := inMemory(pids[len(pids)-1], marker)
		if err != nil {
			t.Skipf("the memory of a runner cannot be read, which is right: %v", err)
		}
		if found != (session == "first") {
			t.Errorf("in the runner of the %s session: %v", session, found)
		}
	}
}

// inMemory reports whether the memory of a process holds a text. Only root may look.
func inMemory(pid int, text string) (found bool, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return false, err
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return false, err
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode)
		if n != 3 || !strings.HasPrefix(mode, "rw") || to-from > 1<<28 {
			continue
		}
		data := make([]byte, to-from)
		n, _ = memory.ReadAt(data, from)
		found = found || bytes.Contains(data[:n], []byte(text))
	}
	return found, nil
}

// TestPreparedInstances checks which guests have an instance ready before their call, and that it behaves as a fresh
// one.
func TestPreparedInstances(t *testing.T) {
	e := testEngine(t)
	for _, c := range []struct {
		p        *Provider
		tool     string
		prepared bool
	}{
		{testGuest(t, e, "echo", "echo"), "echo", true},
		{testGuest(t, e, "rev", "rev"), "word", false},            // a program
		{testGuest(t, e, "init-spin", "smallest"), "call", false}, // its initialization does not end
	} {
		plugin, err := c.p.load(t.Context(), waiter{})
		must(t, err)
		m, err := c.p.Manifest()
		must(t, err)
		r := &runner{start: start{Manifest: m}, plugin: plugin,
			limits: world.LimitsOf(grant.Limits{}, m, &host.Request{})}
		r.prepare()
		if (r.ready != nil) != c.prepared {
			t.Errorf("%s: prepared: %v", m.Name, r.ready != nil)
		}
		if r.ready == nil {
			continue
		}
		request := requestFor(t, c.p, c.tool, `{"value":1}`)
		r.ready.Take(guest.NewJob(e.cfg.HostVersion, e.cfg.Limits, m, nil, request))
		result, err := r.ready.Run(t.Context())
		r.ready.Close()
		if err != nil || string(result.Data) != `{"value":1}` {
			t.Errorf("%v, %v", result, err)
		}
	}
}

// TestWarmInstances checks in which instances an example has run before the call, by a guest that counts its calls:
// where the manifest says so, and where the example does nothing that a call would miss.
func TestWarmInstances(t *testing.T) {
	e := testEngine(t)
	p := testGuest(t, e, "echo", "echo")
	plugin, err := p.load(t.Context(), waiter{})
	must(t, err)
	for _, tt := range []struct {
		name, tool string
		warm       bool
		calls      int
	}{
		{"warm", "echo", true, 2}, {"not warm", "echo", false, 1}, {"the example asks the host", "call-tool", true, 1},
		{"it logs", "log", true, 1}, {"it prints", "print", true, 1}, {"it fails", "fail", true, 1},
		{"it crashes", "trap", true, 1}, {"it does not end", "spin", true, 1},
	} {
		m := loadManifest(t, readFile(t, filepath.Join(guestDir, "echo.manifest.json")))
		for i := range m.Tools {
			m.Tools[i].Examples = nil
		}
		def := m.Tool(tt.tool)
		m.Warm, def.Effect = tt.warm, manifest.EffectRead
		def.Examples = []manifest.Example{{ExitCode: 10}, {Params: json.RawMessage(`{"value":1,"tool":"a.b"}`)}}
		r := &runner{start: start{Manifest: m}, plugin: plugin,
			limits: world.LimitsOf(grant.Limits{}, m, &host.Request{})}
		r.prepare()
		if r.ready == nil {
			t.Errorf("%s: no instance is ready", tt.name)
			continue
		}
		r.ready.Take(guest.NewJob(e.cfg.HostVersion, e.cfg.Limits, m, nil, requestFor(t, p, "count", `{}`)))
		result, err := r.ready.Run(t.Context())
		r.ready.Close()
		if want := fmt.Sprintf(`{"calls":%d}`, tt.calls); err != nil || string(result.Data) != want {
			t.Errorf("%s: %v, %v; want %s", tt.name, result, err, want)
		}
	}
}

// TestCallsDoNotWaitForExamples checks that an example that does not end is given up soon when a call arrives.
func TestCallsDoNotWaitForExamples(t *testing.T) {
	e := testEngine(t)
	plugin, err := testGuest(t, e, "echo", "echo").load(t.Context(), waiter{})
	must(t, err)
	m := loadManifest(t, readFile(t, filepath.Join(guestDir, "echo.manifest.json")))
	for i := range m.Tools {
		m.Tools[i].Examples = nil
	}
	m.Warm, m.Tool("spin").Effect = true, manifest.EffectRead
	m.Tool("spin").Examples = []manifest.Example{{Params: json.RawMessage(`{}`)}}
	r := &runner{start: start{Manifest: m}, plugin: plugin, calls: make(chan receivedCall, 1),
		limits: world.LimitsOf(grant.Limits{}, m, &host.Request{})}
	prepared := make(chan time.Duration)
	go func() {
		began := time.Now()
		r.prepare()
		prepared <- time.Since(began)
	}()
	eventually(t, "no example runs", func() bool { return r.warming.Load() != nil })
	from, to := io.Pipe() // stays open: the process would end with it
	go r.connection(wire.NewConn(from, io.Discard)).read()
	must(t, wire.NewConn(nil, to).Send(wire.KindCall, []byte("{}")))
	if took := <-prepared; took > prepareTimeout-100*time.Millisecond || !r.unwarmable || r.ready == nil {
		t.Errorf("prepared after %v, another example: %v, an instance: %v", took, !r.unwarmable, r.ready != nil)
	}
}

// TestRunnersCPU checks that a runner is killed when a call uses more CPU time than its deadline allows.
func TestRunnersCPU(t *testing.T) {
	skipWithoutRunners(t)
	cmd := contain.Command(compiler(), "PARLEY_CHILD=burn")
	must(t, cmd.Start())
	handle, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	must(t, err)
	defer unix.Close(handle)
	l := &lease{pid: cmd.Process.Pid, handle: handle, socket: &net.UnixConn{}}
	stop := l.watchCPU(time.Millisecond)
	defer stop()
	if err := cmd.Wait(); err == nil || !l.over.Load() {
		t.Errorf("%v", err)
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if used > 10*cpuSlack {
		t.Errorf("it used %v", used)
	}
}

// TestRunnerCorpus runs attacks in runners. The outcomes are those of local calls. PARLEY_HAMMER=1 runs all instead of
// a sample.
func TestRunnerCorpus(t *testing.T) {
	skipWithRace(t)
	skipWithoutRunners(t)
	e := runnerEngine(t)
	e.cfg.Debug = func(string) {}
	testCorpus(t, e, isolateProcess)
}

// TestAwayCorpus runs attacks on another machine. The outcomes are those of local calls. PARLEY_HAMMER=1 runs all
// instead of a sample.
func TestAwayCorpus(t *testing.T) {
	skipWithRace(t)
	skipWithoutRunners(t)
	e := runnerEngine(t)
	e.cfg.Debug = func(string) {}
	testCorpus(t, e, "away")
}

// TestRunnerFallsBack checks that a call runs in a process of its own where no runner can be had.
func TestRunnerFallsBack(t *testing.T) {
	e := runnerEngine(t)
	e.cfg.RunDir = filepath.Join(e.cfg.RunDir, strings.Repeat("long", 30))
	p := testGuest(t, e, "echo", "echo")
	if result, err := invokeIsolated(t, p, requestFor(t, p, "echo", `{"value":1}`)); err != nil ||
		string(result.Data) != `{"value":1}` {
		t.Errorf("%v, %v", result, err)
	}
	if got := Runners(e.cfg.RunDir); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// TestRunnersThatCannotStart checks that a call runs in a process of its own if its runner ends before it is ready.
func TestRunnersThatCannotStart(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	e.cfg.Watch = []string{filepath.Join(t.TempDir(), strings.Repeat("long", 100), "policy.toml")}
	p := testGuest(t, e, "echo", "echo")
	inRunner(t, p, requestFor(t, p, "echo", `{"value":1}`))
	if got := running(e); len(got) > 0 {
		t.Errorf("runners: %v", got)
	}
}

// TestInnerCallsDoNotWait checks that a call of a plugin runs although all runners are in use, by calls that may wait
// for it.
func TestInnerCallsDoNotWait(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	p := testGuest(t, e, "echo", "echo")
	var release func()
	for range maxRunners {
		var err error
		release, err = e.shared.Acquire(t.Context(), runnerSlots, "cli", maxRunners, false)
		must(t, err)
	}
	r := requestFor(t, p, "echo", `{"value":1}`)
	r.Caller = "plugin:other"
	inRunner(t, p, r)
	outer := requestFor(t, p, "echo", `{"value":1}`)
	outer.Isolate, outer.Options.Timeout = isolateProcess, 50*time.Millisecond
	if _, err := p.Invoke(t.Context(), outer); !errors.Is(err, host.Busy) {
		t.Errorf("an outer call: %v", err)
	}
	release()
	outer = requestFor(t, p, "echo", `{"value":1}`)
	inRunner(t, p, outer)
}

// TestRunnersForOneCall checks every way in which a call gets a runner for it alone: each call has another process,
// which ends with it, and leaves neither a file nor a shared runner.
func TestRunnersForOneCall(t *testing.T) {
	skipWithoutRunners(t)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for name, tt := range map[string]struct {
		isolate, caller string
		set             func(e *Engine)
	}{
		"call":                  {isolate: isolateCall},
		"runners are off":       {isolate: isolateProcess, set: func(e *Engine) { e.cfg.RunnerIdle = -1 }},
		"no run folder":         {isolate: isolateProcess, set: func(e *Engine) { e.cfg.RunDir = "" }},
		"a file for a folder":   {isolate: isolateProcess, set: func(e *Engine) { e.cfg.RunDir = file }},
		"too long for a socket": {isolate: isolateProcess, set: func(e *Engine) { e.cfg.RunDir += strings.Repeat("/d", 60) }},
		"a folder that is gone": {isolate: isolateProcess, set: func(e *Engine) { e.runners().dir += "/gone" }},
		"by default":            {set: func(e *Engine) { e.cfg.Isolate, e.cfg.RunnerIdle = true, -1 }},
		"an inner call, all in use": {isolate: isolateProcess, caller: "plugin:other", set: func(e *Engine) {
			for range maxRunners {
				_, err := e.shared.Acquire(t.Context(), runnerSlots, "cli", maxRunners, false)
				must(t, err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := runnerEngine(t)
			p := testGuest(t, e, "echo", "echo")
			must(t, p.Prepare(t.Context()))
			if tt.set != nil {
				tt.set(e)
			}
			before := children(t)
			added := func() []int {
				return slices.DeleteFunc(children(t), func(pid int) bool { return slices.Contains(before, pid) })
			}
			var used []int
			for range 3 {
				r := requestFor(t, p, "call-tool", `{"tool":"cdp.open"}`)
				r.Isolate, r.Caller = tt.isolate, tt.caller
				serving(r).CallTool = func(context.Context, string, json.RawMessage, job.Options) (*job.Result, error) {
					used = append(used, added()...)
					return &job.Result{Data: json.RawMessage(`{}`)}, nil
				}
				if _, err := invokeRequest(t, p, r); err != nil {
					t.Fatal(err)
				}
				if left := added(); len(left) > 0 {
					t.Errorf("processes are left: %v", left)
				}
			}
			slices.Sort(used)
			if len(slices.Compact(used)) != 3 || len(used) != 3 {
				t.Errorf("three calls ran in the processes %v", used)
			}
			if files, _ := os.ReadDir(e.cfg.RunDir); tt.isolate == isolateCall && len(files) > 0 {
				t.Errorf("files are left: %v", files)
			}
		})
	}
}

// TestNestedRunners makes a call from within a call of the same plugin, caller and session.
func TestNestedRunners(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	p := testGuest(t, e, "echo", "echo")
	r := requestFor(t, p, "call-tool", `{"tool":"echo.echo"}`)
	r.Ask = func(context.Context, string, json.RawMessage) (*job.Result, error) {
		return &job.Result{Data: json.RawMessage(inRunner(t, p, requestFor(t, p, "echo", `{"value":7}`)))}, nil
	}
	if got := inRunner(t, p, r); !strings.Contains(got, `{"value":7}`) {
		t.Error(got)
	}
}
