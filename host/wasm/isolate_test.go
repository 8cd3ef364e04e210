package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/internal/deadline"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
)

// invokeIsolated is like invokeRequest but isolates the call.
func invokeIsolated(t testing.TB, p *Provider, r *host.Request) (*job.Result, *host.Error) {
	t.Helper()
	r.Isolate = isolateProcess
	return invokeRequest(t, p, r)
}

// running returns the ids of the runners that run, the one that was used last at the end.
func running(e *Engine) (pids []int) {
	for _, info := range Runners(e.cfg.RunDir) {
		if info.PID != 0 {
			pids = append(pids, info.PID)
		}
	}
	return pids
}

func skipWithoutRunners(t testing.TB) {
	t.Helper()
	if missing := MissingIsolation(true); len(missing) > 0 {
		t.Skip(missing)
	}
}

// TestIsolatedCallsMatchLocalCalls makes each call in this process, in a process for it alone, in a runner and on
// another machine, and compares the outcomes.
func TestIsolatedCallsMatchLocalCalls(t *testing.T) {
	skipWithRace(t)
	e := runnerEngine(t)
	tests := []struct {
		p            *Provider
		tool, params string
	}{
		{testGuest(t, e, "echo", "echo"), "echo", `{"value":[1,"zwei",{"x":null}]}`},
		{testGuest(t, e, "echo", "echo"), "fail", `{}`},
		{testGuest(t, e, "echo", "echo"), "invalid", `{"value":1}`},
		{testGuest(t, e, "echo", "echo"), "trap", `{}`},
		{testGuest(t, e, "echo", "echo"), "exit", `{"code":3}`},
		{testGuest(t, e, "echo", "echo"), "exit", `{"code":-268435457}`},
		{testGuest(t, e, "echo", "echo"), "flood-log", `{}`},
		{testGuest(t, e, "echo", "echo"), "flood-result", `{}`},
		{testGuest(t, e, "echo", "echo"), "outside", `{}`},
		{testGuest(t, e, "echo", "echo"), "bad-json", `{}`},
		{testGuest(t, e, "echo", "echo"), "ansi", `{}`},
		{testGuest(t, e, "echo", "echo"), "grow", `{}`},
		{testGuest(t, e, "echo", "echo"), "call-tool", `{"tool":"cdp.open"}`},
		{testGuest(t, e, "echo", "echo"), "log", `{}`},
		{testGuest(t, e, "echo", "echo"), "progress", `{}`},
		{testGuest(t, e, "echo", "echo"), "warn", `{}`},
		{testGuest(t, e, "echo", "echo"), "print", `{}`},
		{testGuest(t, e, "echo", "echo"), "ask-no-room", `{"tool":"cdp.open"}`},
		{testGuest(t, e, "rev", "rev"), "word", `{"text":"abc"}`},
		{testGuest(t, e, "rev", "rev"), "end", `{"code":3}`},
		{shipped(t, e, "text"), "hash", `{"text":"abc","algorithm":"sha256"}`},
	}
	for _, tt := range tests {
		t.Run(tt.tool, func(t *testing.T) {
			type ending struct {
				Result *job.Result
				Err    *wire.Error
				Denied []grant.Denial
				Said   []string
			}
			end := func(isolate string) ending {
				var out ending
				r := requestFor(t, tt.p, tt.tool, tt.params)
				on(r, job.EventLog, func(e job.Event) { out.Said = append(out.Said, e.Message) })
				on(r, job.EventProgress, func(e job.Event) { out.Said = append(out.Said, e.Message) })
				serving(r).CallTool = func(
					_ context.Context, tool string, _ json.RawMessage, _ job.Options,
				) (*job.Result, error) {
					return nil, host.Errorf(host.Denied, "%s is not for you", tool)
				}
				var err *host.Error
				if r.Isolate = isolate; isolate == "away" {
					r.Isolate, r.Pool = "", "pool"
				}
				out.Result, err = invokeRequest(t, tt.p, r)
				if err != nil {
					out.Err, out.Denied = wire.ErrorOf(err), err.Denied
				}
				// How much of flooding output arrives depends on buffering.
				out.Said = out.Said[:min(len(out.Said), 3)]
				return out
			}
			local := guest.Marshal(end(""))
			goAway(t, tt.p)
			for _, isolate := range []string{isolateCall, isolateProcess, "away"} {
				if got := guest.Marshal(end(isolate)); !bytes.Equal(got, local) {
					t.Errorf("local %.1000s\n%s %.1000s", local, isolate, got)
				}
			}
		})
	}
}

// TestSuspendedDeadline checks that the time of a call does not run while a service of the host suspends it, wherever
// the guest runs, and that it runs afterwards.
func TestSuspendedDeadline(t *testing.T) {
	const timeout = 500 * time.Millisecond
	p := testGuest(t, testEngine(t), "echo", "echo")
	must(t, p.Prepare(t.Context()))
	for _, isolate := range []string{"", isolateCall, isolateProcess} {
		for _, suspended := range []bool{true, false} {
			r := requestFor(t, p, "call-tool", `{"tool":"cdp.open"}`)
			r.Options.Timeout, r.Isolate = timeout, isolate
			serving(r).CallTool = func(ctx context.Context, _ string, _ json.RawMessage, _ job.Options) (*job.Result, error) {
				resume := func() {}
				if suspended {
					resume = deadline.Suspend(ctx)
				}
				select {
				case <-time.After(2 * timeout):
				case <-ctx.Done():
				}
				resume()
				return &job.Result{Data: json.RawMessage(`{}`)}, ctx.Err()
			}
			ctx, cancel := deadline.With(t.Context(), timeout)
			result, err := p.Invoke(ctx, r)
			cancel()
			if suspended && err != nil || !suspended && !errors.Is(err, host.Timeout) {
				t.Errorf("isolated %q, suspended %t: %v %v", isolate, suspended, result, err)
			}
		}
	}
}

// TestIsolatedFiles checks that granted files can be used, that uses are recorded, and that nothing else is
// visible.
func TestIsolatedFiles(t *testing.T) {
	p := localGuest(t, testEngine(t), "probe")
	inside, outside := tree(t)
	before := snapshot(t, outside)
	for _, tt := range []struct {
		mode    string
		args    []string
		want    string // in the output
		wantUse string // the recorded use or denial
	}{
		{"ro", []string{"read", "/data/file"}, "content", "fs:read:" + inside + "/file"},
		{"ro", []string{"write", "/data/file", "x"}, "errno", "fs:rw:" + inside + "=/data"},
		{"rw", []string{"write", "/data/new", "x"}, "ok", "fs:write:" + inside + "/new"},
		{"rw", []string{"rename", "/data/new", "/data/dir/new"}, "ok", "fs:write:" + inside + "/dir/new"},
		{"rw", []string{"read", "/data/out-file"}, "errno", ""},
		{"rw", []string{"write", "/data/up/x", "y"}, "errno", ""},
		{"rw", []string{"read", "/etc/passwd"}, "errno", ""},
	} {
		r := requestFor(t, p, "run", argParams(tt.args...))
		r.Grant.FS = []grant.FS{{Source: inside, Path: "/data", Mode: tt.mode}}
		var uses []string
		on(r, job.EventUse, func(e job.Event) { uses = append(uses, e.Right) })
		result, err := invokeIsolated(t, p, r)
		if err != nil {
			t.Fatalf("%v: %v", tt.args, err)
		}
		uses = append(uses, result.Warnings...)
		if !strings.Contains(string(result.Data), tt.want) || !strings.Contains(strings.Join(uses, "\n"), tt.wantUse) {
			t.Errorf("%v: %s, recorded %q", tt.args, result.Data, uses)
		}
	}
	if after := snapshot(t, outside); after != before {
		t.Errorf("outside changed from\n%s\nto\n%s", before, after)
	}
}

// TestIsolatedDeadline checks that the child is killed at the deadline, whatever it does.
func TestIsolatedDeadline(t *testing.T) {
	e := testEngine(t)
	const timeout = 300 * time.Millisecond
	for _, tool := range []string{"spin", "sleep"} {
		p := testGuest(t, e, "echo", "echo")
		must(t, p.Prepare(context.Background()))
		r := requestFor(t, p, tool, "{}")
		r.Options.Timeout = timeout
		start := time.Now()
		_, err := invokeIsolated(t, p, r)
		if elapsed := time.Since(start); err == nil || err.Code != host.Timeout ||
			elapsed > timeout+busyFactor*10*overrunLimit {
			t.Errorf("%s: %v after %v", tool, err, elapsed)
		}
	}
}

// TestIsolationRequirements checks that an isolated call is refused if it cannot be isolated.
func TestIsolationRequirements(t *testing.T) {
	for name, cfg := range map[string]Config{"no child": {CacheDir: testCache}, "no cache": {Child: compiler}} {
		e := New(cfg)
		p := testGuest(t, e, "echo", "echo")
		if _, err := invokeIsolated(t, p, requestFor(t, p, "echo", `{}`)); err == nil || err.Code != host.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
		must(t, e.Close(context.Background()))
	}
}

// TestIsolationByDefault checks where calls run for which nothing is said: in a runner if the engine isolates by
// default, and else, or where the code cannot be kept, in this process, which the result says.
func TestIsolationByDefault(t *testing.T) {
	skipWithoutRunners(t)
	must(t, testGuest(t, testEngine(t), "echo", "echo").Prepare(t.Context())) // so that no engine below compiles it
	for name, tt := range map[string]struct {
		isolate, nowhere bool
		written          string
		runners          int
		warned           bool
	}{
		"by default":       {isolate: true, runners: 1},
		"none is written":  {isolate: true, written: isolateNone},
		"call is written":  {isolate: true, written: isolateCall},
		"no default":       {},
		"nowhere to keep":  {isolate: true, nowhere: true, warned: true},
		"no default, none": {nowhere: true, written: isolateNone},
	} {
		t.Run(name, func(t *testing.T) {
			e := runnerEngine(t)
			e.cfg.Isolate = tt.isolate
			if tt.nowhere {
				e.cfg.CacheDir = "/dev/null/cache"
			}
			p := testGuest(t, e, "echo", "echo")
			r := requestFor(t, p, "echo", `{"value":1}`)
			r.Isolate = tt.written
			must(t, p.Features().Prepare(t.Context(), r))
			result, err := invokeRequest(t, p, r)
			if err != nil {
				t.Fatal(err)
			}
			if got := running(e); len(got) != tt.runners {
				t.Errorf("%d runners, want %d", len(got), tt.runners)
			}
			if tt.runners > 0 && len(e.plugins) > 0 {
				t.Error("the compiled code was opened by the host too")
			}
			if warned := strings.Contains(strings.Join(result.Warnings, ""), "was not isolated"); warned != tt.warned {
				t.Errorf("warnings %q", result.Warnings)
			}
		})
	}
}

// TestIsolatedCorpus runs attacks in isolated calls. The outcomes are those of local calls. PARLEY_HAMMER=1 runs all
// instead of a sample.
func TestIsolatedCorpus(t *testing.T) {
	skipWithRace(t)
	testCorpus(t, testEngine(t), isolateCall)
}

// testCorpus runs attacks in isolated calls.
func testCorpus(t *testing.T, e *Engine, isolate string) {
	cases := slices.DeleteFunc(loadAttacks(t), attack.NeverRuns)
	for _, a := range sample(cases, 48, func(a attack) string { return a.Kind }) {
		t.Run(a.String(), func(t *testing.T) {
			p := a.provider(t, e)
			if p.Prepare(context.Background()) != nil {
				t.Skip("refused before it runs")
			}
			wait := 500 * time.Millisecond
			if a.WantEnd != string(host.Timeout) {
				wait = 20 * time.Second
			}
			r := a.request(t, p, wait)
			changes := a.mounts(t, r)
			if r.Isolate = isolate; isolate == "away" {
				r.Isolate, r.Pool = "", "pool"
				goAway(t, p)
			}
			result, err := invokeRequest(t, p, r)
			a.CheckOutcome(t, result, err)
			if changed := changes(); changed != "" {
				t.Errorf("changed outside the writable folders:\n%s", changed)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// received returns a call whose process has sent data.
func received(t testing.TB, data []byte) *remoteCall {
	t.Helper()
	m := loadManifest(t, readFile(t, filepath.Join(guestDir, "smallest.manifest.json")))
	r := &host.Request{Job: job.Job{Tool: "call", Params: json.RawMessage("{}"), Wants: job.Wants{Log: true}}}
	j := guest.NewJob("", grant.Limits{}, m, nil, r)
	k := j.Control()
	k.Begin(context.Background())
	return &remoteCall{Job: j, control: k, conn: wire.NewConn(bytes.NewReader(data), io.Discard)}
}

// TestCallsNameNothingOfThisMachine checks that neither a folder nor a value of a variable is in the frame of a call.
func TestCallsNameNothingOfThisMachine(t *testing.T) {
	a := received(t, nil)
	var sent bytes.Buffer
	a.conn = wire.NewConn(strings.NewReader(""), &sent)
	a.Request.Grant = grant.Grant{Env: map[string]string{"LANG": "value-of-lang"},
		FS: []grant.FS{{Path: "/data", Source: "/folder/of/data", Mode: "ro"}}}
	if _, err := a.send(terms(a.Job, "y")); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for _, secret := range []string{"/folder", "value-of-lang"} {
		if strings.Contains(sent.String(), secret) {
			t.Errorf("%q is in %s", secret, sent.String())
		}
	}
	if !strings.Contains(sent.String(), `"env:LANG","fs:ro:/data"`) {
		t.Errorf("no rights in %s", sent.String())
	}
}

// TestOtherTerms checks that a process runs no call for which it was not started.
func TestOtherTerms(t *testing.T) {
	r := &runner{start: start{Terms: wire.Terms{Code: "a", Rights: []string{}}, Manifest: &manifest.Manifest{Name: "p"}}}
	h := r.connection(wire.NewConn(nil, io.Discard))
	for _, terms := range []wire.Terms{{Code: "b", Rights: []string{}}, {Code: "a", Rights: []string{"random"}},
		{Code: "a", Rights: []string{}, Limits: grant.Limits{HostCalls: 1}}} {
		if _, _, err := h.runCall(guest.Marshal(wire.Call{Terms: terms})); !errors.Is(err, host.Internal) {
			t.Errorf("%+v: %v", terms, err)
		}
	}
}

// FuzzRemoteCall checks that any output of a compromised child becomes a result or an error.
func FuzzRemoteCall(f *testing.F) {
	var whole bytes.Buffer
	conn := wire.NewConn(nil, &whole)
	must(f, conn.SendHello(wire.Hello{}))
	must(f, conn.Send(wire.KindBegun))
	must(f, conn.Send(wire.KindAsk, []byte("call_tool\n{}")))
	for _, e := range []job.Event{{Kind: job.EventDenied, Right: "fs:rw:/x=/y", Why: "no"},
		{Kind: job.EventUse, Right: "fs:read:/x"}, {Kind: job.EventLog, Level: 1, Message: "m"},
		{Kind: job.EventProgress, Done: 1}, {Kind: job.EventUsage, CPU: time.Hour, Peak: math.MaxInt64}} {
		must(f, conn.SendJSON(wire.KindEvent, e))
	}
	failed := wire.Failed(&host.Error{Details: []host.Detail{{}}, Tool: &host.ToolError{}, Steps: []step.Step{{}}})
	failed.Data = json.RawMessage("1")
	must(f, conn.SendJSON(wire.KindDone, failed))
	f.Add(whole.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		a := received(t, data)
		result, err := a.send(terms(a.Job, "y"))
		var known *host.Error
		if err != nil && !errors.As(err, &known) && !isGone(err) || err == nil && result == nil {
			t.Errorf("%v, %v", result, err)
		}
	})
}

// TestIsolationHolds: a level that somebody has written holds or is refused; the default is what the system can do.
func TestIsolationHolds(t *testing.T) {
	e := New(Config{Isolate: true, Child: compiler})
	for _, can := range []bool{true, false} {
		e.missing = func(bool) []string {
			if can {
				return nil
			}
			return []string{"seccomp"}
		}
		for written, want := range map[string]string{"": isolateProcess, isolateNone: isolateNone,
			isolateProcess: isolateProcess, isolateCall: isolateCall} {
			if !can && written == "" {
				want = isolateNone
			}
			r := &host.Request{Job: job.Job{Isolate: written}}
			level, err := e.isolation("p", r)
			if refused := !can && want != isolateNone; refused != errors.Is(err, host.ConfigError) || !refused && level != want {
				t.Errorf("possible %v, %q: %q, %v", can, written, level, err)
			}
		}
	}
}
