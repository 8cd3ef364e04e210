package fleet

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/wire"
)

// hammer skips a test that takes minutes, unless make hammer runs it.
func hammer(t *testing.T) {
	if os.Getenv("PARLEY_HAMMER") == "" {
		t.Skip("make hammer runs it")
	}
}

// times are how long calls took.
type times struct {
	mu  sync.Mutex
	all []time.Duration
}

func (ts *times) add(d time.Duration) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.all = append(ts.all, d)
}

// at returns a percentile.
func (ts *times) at(percent int) time.Duration {
	slices.Sort(ts.all)
	return ts.all[len(ts.all)*percent/100].Round(10 * time.Microsecond)
}

// load has callers call a tool until a time is over, each its next call after its last one.
func (w *world) load(callers int, length time.Duration, tool, params string) *times {
	ts := &times{}
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
			for end := time.Now().Add(length); time.Now().Before(end); {
				o := w.call(w.t.Context(), tool, params, 60*time.Second)
				if o.err != nil {
					w.t.Error(o.err)
				}
				ts.add(o.took)
			}
		})
	}
	group.Wait()
	return ts
}

// TestThroughput measures calls that sleep half a second, at full load and at four times that.
func TestThroughput(t *testing.T) {
	hammer(t)
	const slots, length = 8, 20 * time.Second
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "[plugin.work.limits]\nconcurrent_calls = 1000\n")
	for n := 1; n <= 3; n++ {
		w.start(fmt.Sprint("w", n), slots)
		w.load(n*slots, time.Second, "work.rest", `{"ms":500}`)
		ts := w.load(n*slots, length, "work.rest", `{"ms":500}`)
		t.Logf("figures: %d workers with %d slots: %.1f calls/s; p50 %s, p99 %s", n, slots,
			float64(len(ts.all))/length.Seconds(), ts.at(50), ts.at(99))
	}
	ts := w.load(4*3*slots, 2*length, "work.rest", `{"ms":500}`)
	t.Logf("figures: at four times the load: p50 %s, p99 %s; an ideal line takes 2 s", ts.at(50), ts.at(99))
}

// TestOverhead compares calls that do nothing, through a worker and in a runner of this machine, one after the other.
func TestOverhead(t *testing.T) {
	hammer(t)
	t.Run("plain", func(t *testing.T) {
		server := fleettest.Start(t, fleettest.Options{})
		measureOverhead(t, server, newWorld(t, server.URL, ""))
	})
	t.Run("TLS and keys", func(t *testing.T) {
		server, w := newSecuredWorld(t, "", "w1")
		measureOverhead(t, server, w)
	})
}

func measureOverhead(t *testing.T, server *fleettest.Server, w *world) {
	worker := w.start("w1", 1)
	here := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	here.writePolicy("")
	var away, local times
	for i := range 2100 {
		for _, of := range []struct {
			*world
			*times
		}{{w, &away}, {here, &local}} {
			o := of.call(t.Context(), "work.nothing", `{}`, 0)
			if o.err != nil {
				t.Fatal(o.err)
			}
			if i >= 100 {
				of.add(o.took)
			}
		}
	}
	t.Logf("figures: a worker p50 %s, p99 %s; a runner here p50 %s, p99 %s; difference of p50 %s", away.at(50),
		away.at(99), local.at(50), local.at(99), away.at(50)-local.at(50))
	const calls = 2000
	before := cpuTimes(os.Getpid(), server.Pid(), worker.Process.Pid)
	for range calls {
		w.call(t.Context(), "work.nothing", `{}`, 0)
	}
	after := cpuTimes(os.Getpid(), server.Pid(), worker.Process.Pid)
	t.Logf("figures: CPU time of a call: front %s, server %s, worker %s", (after[0]-before[0])/calls,
		(after[1]-before[1])/calls, (after[2]-before[2])/calls)
}

// cpuTimes returns the CPU time that processes have used.
func cpuTimes(pids ...int) (all []time.Duration) {
	for _, pid := range pids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		const tick = 10 * time.Millisecond
		all = append(all, time.Duration(user+system)*tick)
	}
	return all
}

// TestKills kills workers, the server, the connection of a front and the process of another at random: ten times, and a
// hundred times with PARLEY_HAMMER. Every call ends, no effect happens twice, no read is lost, and nothing is left.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := 10
	if os.Getenv("PARLEY_HAMMER") != "" {
		kills = 100
	}
	server := fleettest.Start(t, fleettest.Options{})
	w := newWorld(t, server.URL, "[plugin.work.limits]\nconcurrent_calls = 1000\n")
	for i := range 3 {
		w.start(fmt.Sprint("w", i), 8)
	}
	others := make([]frontCall, 8)
	for i := range others {
		others[i] = frontCall{"work.act", w.act("other-#", "POST", 300)}
		if i%2 == 0 {
			others[i] = frontCall{"work.act", w.act("read", "GET", 300)}
		}
	}
	other := w.launchFront(others...)
	kill := func(p *process) {
		t.Helper()
		select {
		case <-p.gone:
			t.Errorf("%s has ended by itself", p.name)
		default:
		}
		p.signal(syscall.SIGKILL)
		<-p.gone
	}
	var stopping atomic.Bool
	var group sync.WaitGroup
	var reads, writes, lost atomic.Int64
	for i := range 24 {
		group.Go(func() {
			for n := 0; !stopping.Load(); n++ {
				if i%2 == 0 {
					if o := w.call(t.Context(), "work.act", w.act("read", "GET", 300), 60*time.Second); o.err != nil {
						t.Errorf("a read is lost: %v", o.err)
					}
					reads.Add(1)
					continue
				}
				path := fmt.Sprintf("effect-%d-%d", i, n)
				o := w.call(t.Context(), "work.act", w.act(path, "POST", 300), 60*time.Second)
				happened := w.count("POST /" + path)
				switch {
				case o.err == nil && happened == 1:
				case o.err != nil && o.err.Code == host.Trapped && len(o.err.Effects) > 0 && happened == 1:
					lost.Add(1)
				default:
					t.Errorf("%s happened %d times: %v", path, happened, o.err)
				}
				writes.Add(1)
			}
		})
	}
	for n := range kills {
		time.Sleep(time.Duration(200+rand.IntN(600)) * time.Millisecond)
		switch n % 10 {
		case 2, 7:
			kill(other)
			other = w.launchFront(others...)
		case 4:
			server.Kill()
			server.Restart()
		case 9:
			w.front.loseAll()
		default:
			i := rand.IntN(3)
			kill(w.workers[i])
			name := w.workers[i].name
			w.workers = slices.Delete(w.workers, i, i+1)
			w.launch(name, 8)
		}
	}
	w.await("the other front", func() bool { return w.total(fmt.Sprint("POST /other-", other.Process.Pid)) > 0 })
	kill(other)
	stopping.Store(true)
	group.Wait()
	t.Logf("figures: %d kills: %d reads, all answered; %d effects, none twice, %d of their calls lost, with effects; "+
		"%d effects of a front that was killed, too", kills, reads.Load(), writes.Load(), lost.Load(),
		w.total("POST /other"))
	w.await("all slots", func() bool { return w.free() == 24 })
	w.await("no guest runs", func() bool { return !slices.ContainsFunc(w.workers, (*process).isBusy) })
	w.checkOnce("POST")
	w.checkEmpty()
}

// TestThousandWorkers has a thousand workers, each with a connection of its own, that only sleep.
func TestThousandWorkers(t *testing.T) {
	hammer(t)
	server := fleettest.Start(t, fleettest.Options{})
	w := newWorld(t, server.URL, "[plugin.work.limits]\nconcurrent_calls = 1000\n")
	const own = 500 * time.Millisecond
	for i := range 1000 {
		simulate(t, w.url, fmt.Sprint("w", i), own)
	}
	w.await("a thousand workers", func() bool {
		w.front.mu.Lock()
		defer w.front.mu.Unlock()
		return len(w.front.pool("main").workers) == 1000
	})
	ts := w.load(200, 20*time.Second, "work.nothing", `{}`)
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", server.Pid()))
	pages := 0
	_, _ = fmt.Sscan(string(text), new(int), &pages)
	t.Logf("figures: 1000 workers: %d calls; p50 %s over their own time, p99 %s; the server has %d MiB", len(ts.all),
		ts.at(50)-own, ts.at(99)-own, pages*os.Getpagesize()>>20)
}

// simulate is a worker with one slot that sleeps instead of running a guest.
func simulate(t *testing.T, url, name string, own time.Duration) {
	simulateWith(t, url, name, func(j *task) error {
		time.Sleep(own)
		return answerNothing(j)
	})
}

// answerNothing answers a call of a tool that returns nothing.
func answerNothing(j *task) error {
	c := wire.NewConn(bufio.NewReader(j), j)
	hello, err := c.ReceiveHello()
	if err == nil {
		err = c.SendHello(hello)
	}
	if err == nil {
		err = c.Send(wire.KindDone, []byte(`{"data":{}}`))
	}
	return err
}

// simulateWith is a worker with one slot that serves calls as it is told.
func simulateWith(t *testing.T, url, name string, serve func(*task) error) *Worker {
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	w := &Worker{conn: conn, calls: map[string]*task{}, refused: map[string]refusal{}, drained: make(chan struct{}),
		serve: serve, shorten: strings.Clone, log: slog.New(slog.DiscardHandler),
		status: Status{Worker: name, Instance: "x", Pool: "main",
			Slots: 1, Free: 1, Wire: wire.Version}}
	if err := w.subscribe(); err != nil {
		t.Fatal(err)
	}
	w.announce(conn)
	_ = conn.Flush()
	return w
}
