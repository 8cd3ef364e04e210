package wasm

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/wire"
)

// TestUsage checks what a call is recorded to have used: CPU time in a process of its own, memory everywhere, whether
// the call succeeds or not. The kernel may count a short call as 0. A process that is killed no longer says what memory
// it had.
func TestUsage(t *testing.T) {
	skipWithoutRunners(t)
	p := testGuest(t, runnerEngine(t), "echo", "echo")
	const second, mib = time.Second, 1 << 20
	for _, c := range []struct {
		tool, isolate string
		timeout       time.Duration
		cpu           [2]time.Duration // the least and the most
		peak          [2]int64
	}{
		{"echo", isolateProcess, 0, [2]time.Duration{0, second}, [2]int64{world.PageBytes, 4 * mib}},
		{"echo", isolateCall, 0, [2]time.Duration{0, second}, [2]int64{world.PageBytes, 4 * mib}},
		{"echo", isolateNone, 0, [2]time.Duration{0, 0}, [2]int64{world.PageBytes, 4 * mib}},
		{"spin", isolateProcess, second / 2, [2]time.Duration{second / 1000, 2 * second}, [2]int64{0, 4 * mib}}, // or killed
		{"sleep", isolateProcess, second / 2, [2]time.Duration{0, second / 4}, [2]int64{0, 4 * mib}},            // killed
		{"grow", isolateProcess, 0, [2]time.Duration{1, 10 * second}, [2]int64{15 * mib, 16 * mib}},
		{"grow", isolateNone, 0, [2]time.Duration{0, 0}, [2]int64{15 * mib, 16 * mib}},
	} {
		r := requestFor(t, p, c.tool, "{}")
		if c.tool == "echo" {
			r = requestFor(t, p, c.tool, `{"value":1}`)
		}
		r.Isolate, r.Limits.MemoryMiB, r.Options.Timeout = c.isolate, 16, c.timeout
		var cpu time.Duration
		var peak int64
		on(r, job.EventUsage, func(e job.Event) { cpu, peak = cpu+e.CPU, max(peak, e.Peak) })
		_, _ = invokeRequest(t, p, r)
		if cpu < c.cpu[0] || cpu > c.cpu[1] || peak < c.peak[0] || peak > c.peak[1] {
			t.Errorf("%s, isolated by %s: %v of CPU, %d bytes", c.tool, c.isolate, cpu, peak)
		}
	}
}

// TestForgedUsage checks that the process of a guest cannot claim more memory than it may have. Of CPU time it cannot
// claim more than the kernel has counted, either.
func TestForgedUsage(t *testing.T) {
	var sent bytes.Buffer
	conn := wire.NewConn(nil, &sent)
	must(t, conn.SendHello(wire.Hello{}))
	for _, peak := range []int64{math.MaxInt64, -1} {
		must(t, conn.SendJSON(wire.KindEvent, job.Event{Kind: job.EventUsage, CPU: time.Hour, Peak: peak}))
	}
	must(t, conn.SendJSON(wire.KindDone, wire.Outcome{}))
	a := received(t, sent.Bytes())
	var got []job.Event
	on(a.Request, job.EventUsage, func(e job.Event) { got = append(got, e) })
	if _, err := a.send(terms(a.Job, "y")); err != nil {
		t.Fatal(err)
	}
	limit := int64(a.Limits.Pages) * world.PageBytes
	if len(got) != 2 || got[0].CPU+got[1].CPU != 0 || got[0].Peak != limit || got[1].Peak != 0 {
		t.Errorf("%+v, the limit is %d", got, limit)
	}
}
