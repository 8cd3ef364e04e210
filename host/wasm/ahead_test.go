package wasm

import (
	"encoding/json"
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/internal/slots"
)

// TestCompileAhead checks that plugins are compiled without a call, one after the other, with low priority and without
// a notice, and that a call of one that is being compiled joins in and gets progress. A compilation for a call has the
// usual priority.
func TestCompileAhead(t *testing.T) {
	held, listener := heldCompiler(t)
	var mu sync.Mutex
	var compilers []*exec.Cmd
	child := func() *exec.Cmd {
		cmd := held()
		mu.Lock()
		defer mu.Unlock()
		compilers = append(compilers, cmd)
		return cmd
	}
	dir := t.TempDir()
	e, lines := cacheEngine(t, Config{CacheDir: dir, Child: child})
	if raceDetector {
		e.budget = func(int) budget { return budget{10 * time.Minute, compileMemory} }
	}
	notices := 0
	e.cfg.Notice = func(string) { notices++ }
	e.report = time.Millisecond
	begin := func() {
		conn, err := listener.Accept()
		must(t, err)
		must(t, conn.Close())
	}
	rev, smallest := testGuest(t, e, "rev", "rev"), testGuest(t, e, "smallest", "smallest")
	e.CompileAhead(0, []*Provider{rev, smallest})
	for loading := (*loading)(nil); loading == nil || !loading.compiling.Load(); runtime.Gosched() {
		rev.mu.Lock()
		loading = rev.loading
		rev.mu.Unlock()
	}
	if _, err := e.shared.Acquire(t.Context(), aheadSlots, "cli", 1, false); !errors.Is(err, slots.ErrBusy) {
		t.Errorf("%v: another one could be compiled ahead", err)
	}

	events := make(chan job.Event, 1000)
	r := requestFor(t, rev, "word", `{"text":"abc"}`)
	r.Wants.Progress, r.Events = true, func(ev job.Event) error { events <- ev; return nil }
	prepared := make(chan error, 1)
	go func() { prepared <- rev.Features().Prepare(t.Context(), r) }()
	last := 0.0
	for range 3 {
		ev := <-events
		if ev.Kind != job.EventProgress || ev.Done <= last || ev.Done >= 0.001 || ev.Total != 0 ||
			!strings.HasPrefix(ev.Message, "compiling rev, ") {
			t.Errorf("%+v", ev)
		}
		last = ev.Done
	}
	begin()
	must(t, <-prepared)
	if data, err := invoke(t, rev, "word", `{"text":"abc"}`); err != nil || string(data.Data) != `"cba\n"` {
		t.Errorf("%+v, %v", data, err)
	}
	for len(events) > 0 {
		<-events
	}
	must(t, rev.Features().Prepare(t.Context(), r))
	if len(events) > 0 {
		t.Errorf("a call of a compiled plugin got %+v", <-events)
	}

	begin()
	must(t, smallest.Prepare(t.Context()))
	e.CompileAhead(0, []*Provider{testGuest(t, e, "rev", "rev")}) // it is compiled
	e.loads.Wait()
	echo := testGuest(t, e, "echo", "echo")
	go func() { prepared <- echo.Prepare(t.Context()) }()
	begin()
	must(t, <-prepared)
	if n := len(slotNames(t, dir)); n != 3 || notices != 1 || len(compilers) != 3 {
		t.Fatalf("%d plugins are compiled by %d compilers, with %d notices: %q", n, len(compilers), notices, *lines)
	}
	for i, low := range []bool{true, true, false} {
		var job compilation
		if err := json.Unmarshal([]byte(compilers[i].Args[1]), &job); err != nil || job.Low != low {
			t.Errorf("compilation %d: low priority is %v, %v", i, job.Low, err)
		}
	}
}

// TestCompileAheadEnds checks that an engine that is closed compiles nothing ahead and leaves nothing waiting, and that
// one without a compiler process does not begin.
func TestCompileAheadEnds(t *testing.T) {
	e, lines := cacheEngine(t, Config{CacheDir: t.TempDir(), Child: compiler})
	e.CompileAhead(time.Hour, []*Provider{testGuest(t, e, "rev", "rev")})
	must(t, e.Close(t.Context()))
	e.loads.Wait()
	e.CompileAhead(0, []*Provider{testGuest(t, e, "rev", "rev")})
	e.loads.Wait()
	within, more := cacheEngine(t, Config{CacheDir: t.TempDir()})
	within.CompileAhead(0, []*Provider{testGuest(t, within, "rev", "rev")})
	within.loads.Wait()
	if all := slices.Concat(*lines, *more); len(all) > 0 {
		t.Errorf("%q", all)
	}
}
