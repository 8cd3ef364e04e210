package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/setup"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/providertest"
	"github.com/parley-tools/parley/internal/wire"
)

// pooled is a provider whose calls must run on a worker of the pool main.
type pooled struct {
	host.Provider
	t *testing.T
}

func (p pooled) Invoke(ctx context.Context, r *host.Request) (*job.Result, error) {
	r.Pool = "main"
	result, err := p.Provider.Invoke(ctx, r)
	if err == nil && strings.Contains(strings.Join(result.Warnings, "\n"), "outside pool") {
		p.t.Errorf("%s: %q", r.Tool, result.Warnings)
	}
	return result, err
}

// TestProvider runs the tests for all providers over plugins that run on a worker, with keys and TLS: one of C, which
// is installed, and two that are shipped.
func TestProvider(t *testing.T) {
	t.Parallel()
	_, w := newSecuredWorld(t, "", "w1")
	w.start("w1", 4)
	catalog, err := w.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]providertest.Options{
		"work": {
			Calls: []providertest.Case{
				{Tool: "nothing", Want: `{}`},
				{Tool: "large", Params: `{"bytes":10}`, Want: `{"text":"xxxxxxxxxx"}`},
				{Tool: "act", Params: `{"url":"http://elsewhere.test/","method":"GET","ms":0}`, Code: "not_answered"},
			},
			Slow: &providertest.Case{Tool: "rest", Params: `{"ms":60000}`},
		},
		"js": {
			Calls: []providertest.Case{{Tool: "run", Params: `{"source":"return 1"}`, Want: `1`}},
			Slow:  &providertest.Case{Tool: "run", Params: `{"source":"for (;;) {}"}`},
		},
		"json": {Calls: []providertest.Case{
			{Tool: "query", Params: `{"data":{"a":1},"filter":".a"}`, Want: `{"results":[1]}`},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			of, _ := catalog.Provider(name)
			providertest.Run(t, pooled{of, t}, o)
		})
	}
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

// TestSlowNetwork has a worker with a slow network. Values that take longer than all that waits for a sign of life
// arrive, in both directions, and while they do, other calls run there, too.
func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	server := fleettest.Start(t, fleettest.Options{})
	w := newWorld(t, server.URL, "[plugin.json]\nrun = \"fleet:main\"\n")
	proxy := fleettest.NewProxy(t, server.Address)
	w.url = proxy.URL
	w.start("far", 3)
	for _, tool := range []string{"work.nothing", "json.query"} { // compile
		w.call(t.Context(), tool, map[string]string{"work.nothing": `{}`, "json.query": `{"data":1,"filter":"."}`}[tool], 0)
	}
	const rate, size = 2 << 20, 8 << 20 // four seconds
	proxy.Slow(rate)
	larges := map[string]<-chan outcome{
		"result": w.later("work.large", fmt.Sprintf(`{"bytes":%d}`, size), time.Minute),
		"parameter": w.later("json.query", fmt.Sprintf(`{"data":"%s","filter":"length"}`, strings.Repeat("x", size)),
			time.Minute),
	}
	for len(larges) > 0 {
		if o := w.call(t.Context(), "work.nothing", `{}`, 0); o.err != nil || o.took > 3*time.Second {
			t.Errorf("a call meanwhile: %v after %s", o.err, o.took)
		}
		for name, ended := range larges {
			select {
			case o := <-ended:
				if o.err != nil || len(o.answer.Warnings) > 0 {
					t.Errorf("%s: %v %q", name, o.err, o.answer.Warnings)
				}
				t.Logf("%s: %s", name, o.took)
				delete(larges, name)
			default:
			}
		}
	}
}

// TestLateVerdict has a worker whose reply to an offer is late once: its front asks it again soon.
func TestLateVerdict(t *testing.T) {
	t.Parallel()
	server := fleettest.Start(t, fleettest.Options{})
	w := newWorld(t, server.URL, "")
	proxy := fleettest.NewProxy(t, server.Address)
	far := simulateWith(t, proxy.URL, "far", answerNothing)
	far.mu.Lock()
	far.status.Slots, far.status.Free = 3, 3 // the late replies reserve two of them
	far.mu.Unlock()
	w.await("the worker", func() bool { return w.knows("far") })
	proxy.Hold()
	time.AfterFunc(3*offerPatience, proxy.Release)
	if o := w.call(t.Context(), "work.nothing", `{}`, 0); o.err != nil || o.took > askEvery {
		t.Errorf("%v after %s", o.err, o.took)
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
	o := w.operator()
	if drained, err := o.Drain(t.Context(), "twin"); err != nil || len(drained) != 2 {
		t.Errorf("%v %v", drained, err)
	}
	for _, p := range w.workers {
		<-p.gone
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

// TestUnpublished has no worker that gets the code of a plugin: the front runs it at once, and says why.
func TestUnpublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	installed, err := w.Install(t.Context(), w.copyPlugin("echo"))
	if err != nil {
		t.Fatal(err)
	}
	w.writePolicy(fmt.Sprintf("[plugin.echo]\ndigest = %q\nrun = \"fleet:main\"\n", installed.Entry.Digest))
	for _, name := range []string{"a", "b", "c"} {
		w.start(name, 1)
	}
	for range 2 {
		o := w.call(t.Context(), "echo.echo", `{}`, 0)
		if o.err != nil || !strings.Contains(strings.Join(o.answer.Warnings, "\n"), "parleyd fleet publish") ||
			o.took > suspicion {
			t.Errorf("%v %q after %s", o.err, o.answer.Warnings, o.took)
		}
	}
}

// TestWrongKey starts workers that have the key of another worker, or of a front. They end and say why.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	_, w := newSecuredWorld(t, "", "a", "b")
	for name, key := range map[string]string{"a": "b", "front": "front"} {
		c := w.config(key)
		c.Name = name
		p := w.spawn(name, workerVariable, workerProcess{Config: *c, Of: WorkerConfig{Pool: "main", Slots: 1}})
		select {
		case <-p.gone:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s runs with the key of %s", name, key)
		}
		if text, _ := os.ReadFile(p.log); p.ProcessState.ExitCode() != 88 || !strings.Contains(string(text), "fleet.name") {
			t.Errorf("%s with the key of %s: exit code %d, %s", name, key, p.ProcessState.ExitCode(), text)
		}
	}
}

// TestVerdicts offers calls to a worker. A slot that was reserved and not used is free again after a second.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	url := fleettest.Start(t, fleettest.Options{}).URL
	conn, err := nats.Connect(url, nats.CustomInboxPrefix(frontSubject+"f.reply"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	w := simulateWith(t, url, "a", answerNothing)
	w.mu.Lock()
	w.status.Lacks, w.refused["sha256:refused"] = "seccomp", refusal{"it is refused", time.Now().Add(time.Hour)}
	w.refused["sha256:known"] = refusal{"it was refused", time.Now()}
	w.mu.Unlock()
	ask := func(o offer) verdict {
		t.Helper()
		o.Call, o.Left = rand.Text(), time.Minute
		m, err := conn.Request(offerSubject+"main", encode(o), 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := decode[verdict](m)
		return v
	}
	for _, c := range []struct {
		offer        offer
		verdict, why string
		free         int
	}{
		{offer{Wire: wire.Version + 1}, unfit, "another version of the wire", 1},
		{offer{Wire: wire.Version, Isolate: "all"}, unfit, "seccomp", 1},
		{offer{Wire: wire.Version, Digest: "sha256:refused"}, unfit, "it is refused", 1},
		{offer{Wire: wire.Version, Digest: "sha256:known"}, accepted, "", 0},
		{offer{Wire: wire.Version, Digest: "sha256:other"}, busy, "", 0},
	} {
		if v := ask(c.offer); v.Verdict != c.verdict || !strings.Contains(v.Why, c.why) || v.Free != c.free {
			t.Errorf("%+v: %+v", c.offer, v)
		}
	}
	if took := fleettest.Await(t, "the slot", func() bool { return w.now().Free == 1 }); took > 5*reservation {
		t.Errorf("the slot is free after %s", took)
	}
	w.Drain()
	if _, err := conn.Request(offerSubject+"main", encode(offer{}), time.Second); err == nil {
		t.Error("a worker that drains takes offers")
	}
}

// TestUnavailableBuild has a worker that gets a build from the server at times. Its calls run at another one meanwhile,
// and soon at this one again. One whose time is over before the build is there takes nothing from the others.
func TestUnavailableBuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	var away, asked atomic.Bool
	simulateWith(t, w.url, "a", func(j *task) error {
		asked.Store(true)
		if away.Load() {
			return host.Errorf(host.Unavailable, "the server sends nothing")
		}
		return answerNothing(j)
	})
	simulateWith(t, w.url, "b", answerNothing)
	w.await("both", func() bool { return w.knows("a") && w.knows("b") })
	isAsked := func() bool {
		if o := w.call(t.Context(), "work.nothing", `{}`, 0); o.err != nil || len(o.answer.Warnings) > 0 {
			t.Fatalf("%v %q", o.err, o.answer.Warnings)
		}
		return asked.Load()
	}
	away.Store(true)
	w.await("a call that the worker cannot run", isAsked)
	away.Store(false)
	asked.Store(false)
	if took := fleettest.Await(t, "its next call", isAsked); took > refusalTime/2 {
		t.Errorf("after %s", took)
	}
}

// TestSlowBuild has a build that does not arrive within the time of a call.
func TestSlowBuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	js, err := jetstream.New(w.operator().conn)
	if err != nil {
		t.Fatal(err)
	}
	code, err := js.Stream(t.Context(), "OBJ_"+catalog.Code)
	if err != nil {
		t.Fatal(err)
	}
	var chunks []*jetstream.RawStreamMsg
	for seq := uint64(1); seq <= code.CachedInfo().State.LastSeq; seq++ {
		if m, err := code.GetMsg(t.Context(), seq); err == nil && strings.Contains(m.Subject, ".C.") {
			chunks = append(chunks, m)
			err = code.DeleteMsg(t.Context(), seq)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	w.start("a", 1)
	o := w.call(t.Context(), "work.nothing", `{}`, 3*time.Second)
	if o.err == nil || o.err.Code != host.Timeout && o.err.Code != host.Busy { // busy: an answer to an offer came late
		t.Errorf("without its code: %v", o.err)
	}
	for _, m := range chunks {
		if _, err := js.Publish(t.Context(), m.Subject, m.Data); err != nil {
			t.Fatal(err)
		}
	}
	if o := w.call(t.Context(), "work.nothing", `{}`, 0); o.err != nil || len(o.answer.Warnings) > 0 {
		t.Errorf("with its code: %v %q", o.err, o.answer.Warnings)
	}
}

// TestFullDisk has a server that cannot store anything any more: calls go on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{Config: "jetstream {max_file: 1MB}"}).URL, "")
	w.start("a", 1)
	o := w.operator()
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
