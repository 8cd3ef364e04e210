package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/records"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/store"
)

// TestFrontEnds kills and stops the process of a front in the middle of calls. On their worker, one that asks ends with
// its next question, and one that does not after three seconds. Nothing runs on, and a front that goes on later does
// not repeat what a call has done.
func TestFrontEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
			worker := w.start("a", 3)
			front := w.launchFront(frontCall{"work.rest", `{"ms":40000}`},
				frontCall{"work.act", w.act("effect-#", "POST", 40000)},
				frontCall{"work.act", strings.Replace(w.act("read", "GET", 500), "{", `{"times":10000,`, 1)})
			w.await("calls on all slots", func() bool { return w.total("POST /effect") == 1 && w.free() == 0 })
			reads := w.count("GET /read")
			w.await("a question", func() bool { return w.count("GET /read") > reads })
			time.Sleep(200 * time.Millisecond) // it is answered, and the next one has not come
			front.signal(end)
			began := time.Now()
			if end == syscall.SIGKILL {
				w.await("the end of the call that asks", func() bool { return w.free() > 0 })
				if took := time.Since(began); took > signPatience {
					t.Errorf("the call that asks has ended after %s", took)
				}
			}
			w.await("all slots", func() bool { return w.free() == 3 })
			w.await("no guest runs", func() bool { return !worker.isBusy() })
			t.Logf("%s: all calls had ended after %s", name, time.Since(began).Round(time.Millisecond))
			reads = w.count("GET /read")
			if end == syscall.SIGSTOP {
				front.signal(syscall.SIGCONT)
				w.await("its next calls", func() bool {
					return w.total("POST /effect") == 2 && w.count("GET /read") > reads+2
				})
			}
			w.checkOnce("POST /effect")
			w.checkEmpty()
		})
	}
}

// runsAt reports whether a worker runs a call of the front.
func (w *world) runsAt(name string) bool {
	w.front.mu.Lock()
	defer w.front.mu.Unlock()
	for _, s := range w.front.calls {
		if s.worker != nil && s.worker.Worker == name {
			return true
		}
	}
	return false
}

// total returns how many requests there were with this beginning.
func (w *world) total(prefix string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for what, times := range w.seen {
		if strings.HasPrefix(what, prefix) {
			n += times
		}
	}
	return n
}

// checkOnce checks that nothing with this beginning was requested twice.
func (w *world) checkOnce(prefix string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for what, times := range w.seen {
		if strings.HasPrefix(what, prefix) && times > 1 {
			w.t.Errorf("%s: %d times", what, times)
		}
	}
}

// checkEmpty checks that the front has no calls and nothing in its line.
func (w *world) checkEmpty() {
	w.t.Helper()
	w.front.mu.Lock()
	defer w.front.mu.Unlock()
	if n := w.front.pool("main").queue.Len(); len(w.front.calls) > 0 || n > 0 {
		w.t.Errorf("%d calls and %d in the line are left", len(w.front.calls), n)
	}
}

// partition is how long a network passes nothing, so that everybody gives everybody up: longer than each limit of a
// fleet, and two minutes with PARLEY_HAMMER.
func partition() time.Duration {
	if os.Getenv("PARLEY_HAMMER") != "" {
		return 2 * time.Minute
	}
	return max(patience, suspicion, askEvery, 4*serverPing) + 2*time.Second
}

// TestShortPartition holds the network between a worker and the server for two seconds, which a call survives. It runs
// alone, because half a second more would be too long.
func TestShortPartition(t *testing.T) {
	server := fleettest.Start(t, fleettest.Options{})
	w := newWorld(t, server.URL, "")
	proxy := fleettest.NewProxy(t, server.Address)
	w.url = proxy.URL
	w.start("far", 1)
	short := w.later("work.act", w.act("short", "POST", 2500), 20*time.Second)
	w.await("the request", func() bool { return w.count("POST /short") > 0 })
	proxy.Hold()
	time.Sleep(2 * time.Second)
	proxy.Release()
	if o := <-short; o.err != nil {
		t.Error(o.err)
	}
	w.checkOnce("POST")
}

// networks are what becomes of what is under way when a network passes nothing: it comes later, or it never does.
var networks = map[string]func(*fleettest.Proxy){"held": (*fleettest.Proxy).Hold, "dropped": (*fleettest.Proxy).Drop}

// TestPartitionOfWorker holds the network of a worker until all have given it up. Calls go on at another one. What
// comes out of the network afterwards does not count, and the worker takes calls again.
func TestPartitionOfWorker(t *testing.T) {
	t.Parallel()
	for name, part := range networks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testPartitionOfWorker(t, part)
		})
	}
}

func testPartitionOfWorker(t *testing.T, part func(*fleettest.Proxy)) {
	server := fleettest.Start(t, fleettest.Options{})
	w := newWorld(t, server.URL, "")
	proxy := fleettest.NewProxy(t, server.Address)
	w.url = proxy.URL
	w.start("far", 2)
	w.url = server.URL
	read := w.later("work.act", w.act("read", "GET", 500), 20*time.Second)
	written := w.later("work.act", w.act("written", "POST", 500), 20*time.Second)
	w.await("the requests", func() bool { return w.count("GET /read") == 1 && w.count("POST /written") == 1 })
	part(proxy)
	held := time.Now()
	w.start("near", 2)
	if o := <-written; o.err == nil || o.err.Code != host.Trapped || len(o.err.Effects) != 1 {
		t.Errorf("%+v", o.err)
	}
	if o := <-read; o.err != nil {
		t.Error(o.err)
	}
	calls := w.load(4, max(partition()-time.Since(held), time.Second), "work.rest", `{"ms":50}`)
	t.Logf("%d calls meanwhile; p50 %s, p99 %s", len(calls.all), calls.at(50), calls.at(99))
	proxy.Release()
	w.await("all slots", func() bool { return w.free() == 4 })
	w.await("the worker takes calls again", func() bool {
		var calls []<-chan outcome
		for range 3 { // one more than the other worker can have
			calls = append(calls, w.later("work.rest", `{"ms":300}`, 0))
		}
		time.Sleep(150 * time.Millisecond)
		isUsed := w.runsAt("far")
		for _, ended := range calls {
			if o := <-ended; o.err != nil {
				t.Error(o.err)
			}
		}
		return isUsed
	})
	w.checkOnce("POST")
	w.checkEmpty()
}

// TestPartitionOfFront holds the network of a front. It lists what it knows, and says that it reaches nobody, also to
// what waits in its line; what it has lost runs again afterwards, and its records are copied. Its calls end on the
// worker, and count once.
func TestPartitionOfFront(t *testing.T) {
	t.Parallel()
	for name, part := range networks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testPartitionOfFront(t, part)
		})
	}
}

func testPartitionOfFront(t *testing.T, part func(*fleettest.Proxy)) {
	server := fleettest.Start(t, fleettest.Options{})
	proxy := fleettest.NewProxy(t, server.Address)
	w := newWorld(t, proxy.URL, "")
	w.url = server.URL
	o := w.operator()
	copier, err := records.New(w.front.Conn(), "front", w.AuditLog(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go copier.Run(ctx)
	go func() { _ = w.mirror.Run(ctx, w.front.Conn(), w.Parley) }()
	publish := func(name string) {
		t.Helper()
		build, err := store.ReadCandidate(w.copyPlugin(name), parley.Version)
		if err == nil {
			_, err = o.Publish(t.Context(), build)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	publish("echo")
	w.await("the catalog", func() bool { return w.lists("echo") })
	w.start("a", 3)
	long := w.later("work.rest", `{"ms":1000}`, 3*partition())
	short := w.later("work.rest", `{"ms":1000}`, partition()-time.Second)
	written := w.later("work.act", w.act("written", "POST", 1000), 3*partition())
	w.await("the calls", func() bool { return w.count("POST /written") == 1 && w.free() == 0 })
	var line []<-chan outcome
	for range 20 {
		line = append(line, w.later("work.act", w.act("line", "POST", 0), 3*partition()))
	}
	part(proxy)
	held := time.Now()
	publish("smallest")
	if o := <-written; o.err == nil || o.err.Code != host.Trapped || len(o.err.Effects) != 1 {
		t.Errorf("%+v", o.err)
	}
	w.await("the slots of a silent front", func() bool { return w.free() == 3 })
	if began := time.Now(); !w.lists("echo") || w.lists("smallest") || time.Since(began) > 4*time.Second {
		t.Errorf("lists: echo %v, smallest %v, after %s", w.lists("echo"), w.lists("smallest"), time.Since(began))
	}
	for _, ended := range line {
		if o := <-ended; o.err == nil || o.err.Code != host.Unavailable || o.took > patience+askEvery+5*time.Second {
			t.Errorf("in the line: %v after %s", o.err, o.took)
		}
	}
	if o := <-short; o.err == nil || o.err.Code != host.Trapped || len(o.err.Effects) > 0 {
		t.Errorf("lost, and past its deadline: %+v", o.err)
	}
	if o := w.call(t.Context(), "work.nothing", `{}`, time.Second); o.err == nil || o.err.Code != host.Unavailable {
		t.Errorf("begun without a network: %v", o.err)
	}
	if copier.Behind() == 0 {
		t.Error("records went through a network that passes nothing")
	}
	time.Sleep(partition() - time.Since(held))
	proxy.Release()
	released := time.Now()
	if o := <-long; o.err != nil {
		t.Error(o.err)
	}
	t.Logf("a call that was lost had ended %s after the partition", time.Since(released).Round(time.Millisecond))
	w.await("the catalog", func() bool { return w.lists("smallest") })
	w.await("the records", func() bool { return copier.Behind() == 0 })
	w.await("all slots", func() bool { return w.free() == 3 })
	stop()
	w.checkOnce("POST")
	w.checkEmpty()
	log, err := os.ReadFile(filepath.Join(w.Dirs().State, "audit", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if copied := streamed(t, o); copied != string(log) {
		t.Errorf("the stream has\n%s\nthe log\n%s", copied, log)
	}
}

// streamed returns what is in the stream of records, a line each.
func streamed(t *testing.T, o *Operator) string {
	t.Helper()
	js, err := jetstream.New(o.conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), catalog.Records)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, "%s\n", m.Data)
	}
	return lines.String()
}

// lists reports whether the front lists a plugin.
func (w *world) lists(name string) bool {
	infos, err := w.List()
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.ContainsFunc(infos, func(i host.Info) bool { return i.Name == name })
}
