package fleet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/setup"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/providertest"
)

// pooled is a provider whose calls go to the pool main.
type pooled struct{ host.Provider }

func (p pooled) Invoke(ctx context.Context, r *host.Request) (*host.Result, error) {
	r.Pool = "main"
	return p.Provider.Invoke(ctx, r)
}

// TestProvider runs the tests for all providers over a plugin that runs on a worker, with keys and TLS.
func TestProvider(t *testing.T) {
	t.Parallel()
	_, w := newSecuredWorld(t, "", "w1")
	w.start("w1", 4)
	catalog, err := w.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	of, _ := catalog.Provider("work")
	providertest.Run(t, pooled{of}, providertest.Options{
		Calls: []providertest.Case{
			{Tool: "nothing", Want: `{}`},
			{Tool: "large", Params: `{"bytes":10}`, Want: `{"text":"xxxxxxxxxx"}`},
			{Tool: "act", Params: `{"url":"http://elsewhere.test/","method":"GET","ms":0}`, Code: "not_answered"},
		},
		Slow: &providertest.Case{Tool: "rest", Params: `{"ms":60000}`},
	})
	w.await("all slots", func() bool { return w.free() == 4 })
}

// TestRevokedWorker takes the key of a worker away: its calls run elsewhere, and it ends and says why.
func TestRevokedWorker(t *testing.T) {
	t.Parallel()
	server, w := newSecuredWorld(t, "", "a", "b")
	a := w.start("a", 1)
	slow := w.later("work.rest", `{"ms":1000}`, 20*time.Second)
	w.running()
	w.start("b", 1)
	if err := setup.Init([]string{w.keys, "--revoke", "a"}, t.Output()); err != nil {
		t.Fatal(err)
	}
	server.Reload()
	select {
	case <-a.gone:
	case <-time.After(20 * time.Second):
		t.Fatal("the worker goes on without its key")
	}
	if code := a.ProcessState.ExitCode(); code != 88 {
		t.Errorf("exit code %d", code)
	}
	if o := <-slow; o.err != nil {
		t.Error(o.err)
	}
}

// TestSmallPayload has a server that takes small messages only.
func TestSmallPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{Config: "max_payload: 4096"}).URL, "")
	w.start("w1", 1)
	o := w.call(t.Context(), "work.large", `{"bytes":1000000}`, 0)
	if o.err != nil || len(o.answer.Data) != 1000000+len(`{"text":""}`) {
		t.Errorf("%v", o.err)
	}
}

// TestSameName has two workers of one name, which both run calls, and both drain.
func TestSameName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	w.start("twin", 1)
	w.launch("twin", 1)
	w.await("both", func() bool { return w.free() == 2 })
	first, second := w.later("work.rest", `{"ms":1000}`, 0), w.later("work.rest", `{"ms":1000}`, 0)
	w.await("calls on both", func() bool { return w.free() == 0 })
	for _, ended := range []<-chan outcome{first, second} {
		if o := <-ended; o.err != nil {
			t.Error(o.err)
		}
	}
	o, err := w.config("operator").Operator()
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if drained, err := o.Drain(t.Context(), "twin"); err != nil || len(drained) != 2 {
		t.Errorf("%v %v", drained, err)
	}
	for _, p := range w.workers {
		<-p.gone
	}
}

// TestPartitions holds the network between a worker and the server: for two seconds, which a call survives, and until
// the front has given the worker up. What the worker then still sends does not count.
func TestPartitions(t *testing.T) {
	t.Parallel()
	server := fleettest.Start(t, fleettest.Options{})
	w := newWorld(t, server.URL, "")
	proxy := fleettest.NewProxy(t, server.Address)
	w.url = proxy.URL
	w.start("far", 1)
	w.url = server.URL
	short := w.later("work.act", w.act("short", "POST", 2500), 20*time.Second)
	w.await("the request", func() bool { return w.count("POST /short") > 0 })
	proxy.Hold()
	time.Sleep(2 * time.Second)
	proxy.Release()
	if o := <-short; o.err != nil {
		t.Error(o.err)
	}
	long := w.later("work.act", w.act("long", "POST", 500), 20*time.Second)
	w.await("the request", func() bool { return w.count("POST /long") > 0 })
	proxy.Hold()
	if o := <-long; o.err == nil || o.err.Code != host.Trapped || len(o.err.Effects) != 1 {
		t.Errorf("%+v", o.err)
	}
	proxy.Release()
	w.await("the slot", func() bool { return w.free() == 1 })
	w.await("the worker takes calls again", func() bool {
		return w.call(t.Context(), "work.nothing", `{}`, 10*time.Second).err == nil
	})
	if w.count("POST /long") != 1 {
		t.Errorf("%d times", w.count("POST /long"))
	}
}

// TestUntrusted has workers that do not run what nobody whom they trust has signed: the front runs it, and says why.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	digest := w.digest
	w.digest = "sha256:" + strings.Repeat("0", 64)
	w.start("a", 1)
	o := w.call(t.Context(), "work.nothing", `{}`, 0)
	if o.err != nil || !strings.Contains(strings.Join(o.answer.Warnings, "\n"), "does not trust work") {
		t.Errorf("%v %q", o.err, o.answer.Warnings)
	}
	w.digest = digest
	w.start("b", 1)
	if o := w.call(t.Context(), "work.nothing", `{}`, 0); o.err != nil || len(o.answer.Warnings) > 0 {
		t.Errorf("%v %q", o.err, o.answer.Warnings)
	}
}

// TestFrontDies kills a front in the middle of a call, which then ends on its worker.
func TestFrontDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	w.start("a", 1)
	slow := w.later("work.rest", `{"ms":20000}`, 30*time.Second)
	w.running()
	w.front.conn.Close() // as the system does when the process is gone
	w.await("the slot", func() bool { return w.free() == 1 })
	if o := <-slow; o.err == nil {
		t.Error("the call has ended without an error")
	}
}

// TestFullDisk has a server that cannot store anything any more: calls go on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{Config: "jetstream {max_file: 1MB}"}).URL, "")
	w.start("a", 1)
	o, err := w.config("operator").Operator()
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := o.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(o.conn)
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.ObjectStore(t.Context(), catalog.Code)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutBytes(t.Context(), "large", make([]byte, 2<<20)); err == nil {
		t.Fatal("the disk is not full")
	}
	if _, err := o.PublishInstalled(t.Context(), w.Parley, "work"); err != nil && !errors.Is(err, host.Unavailable) {
		t.Error(err)
	}
	if o := w.call(t.Context(), "work.nothing", `{}`, 0); o.err != nil {
		t.Error(o.err)
	}
}
