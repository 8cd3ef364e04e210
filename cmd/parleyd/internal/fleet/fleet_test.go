package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/setup"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/internal/testhome"
)

// These variables have the configuration of a test process that is a worker or a front.
const (
	workerVariable = "PARLEYD_TEST_WORKER"
	frontVariable  = "PARLEYD_TEST_FRONT"
)

// workerProcess is what a test process must know to be a worker.
type workerProcess struct {
	Config
	Of WorkerConfig
}

// frontProcess is what a test process must know to be a front. It makes each call again and again.
type frontProcess struct {
	Config
	Home  string
	Calls []frontCall
}

// frontCall is a call, with something new each time in the place of #.
type frontCall struct{ Tool, Params string }

// TestMain shortens what tests wait for, in the processes that they start, too. What bounds a promise stays.
func TestMain(m *testing.M) {
	parley.Child()
	for _, long := range []*time.Duration{&beginPatience, &suspicion, &askEvery, &patience, &serverPing} {
		*long /= 2
	}
	for variable, serve := range map[string]func(string) error{workerVariable: serveWorker, frontVariable: serveFront} {
		if text := os.Getenv(variable); text != "" {
			if err := serve(text); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(host.AsError(err).ExitCode())
			}
			os.Exit(0)
		}
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "6") // most of the time they wait
	os.Exit(m.Run())
}

func serveWorker(text string) error {
	var p workerProcess
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	w, err := p.Config.Worker(p.Of, parley.FindDirs("", os.Getenv), log)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() { <-signals; w.Drain() }()
	return w.Wait(context.Background())
}

// serveFront makes calls until one ends as it must not: in anything but an answer, or trapped with effects.
func serveFront(text string) error {
	var p frontProcess
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	front, err := p.Config.Front(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	w := &world{}
	if w.Parley, err = parley.Open(context.Background(), parley.Config{Home: p.Home,
		Fleet: parley.Fleet{Away: front}}); err != nil {
		return err
	}
	failed := make(chan error)
	for i, c := range p.Calls {
		go func() {
			for n := 0; ; n++ {
				params := strings.ReplaceAll(c.Params, "#", fmt.Sprint(os.Getpid(), "-", i, "-", n))
				o := w.call(context.Background(), c.Tool, params, 60*time.Second)
				if o.err != nil && (o.err.Code != host.Trapped || len(o.err.Effects) == 0) {
					failed <- fmt.Errorf("%s %s: %w", c.Tool, params, o.err)
				}
			}
		}()
	}
	return <-failed
}

// world is what a test of a fleet runs: a server, a front, workers, and a web server that counts what calls do.
type world struct {
	*parley.Parley
	t       testing.TB
	url     string // of the server
	keys    string // folder of the keys of its members; "" where the server asks for none
	home    string // of the front
	front   *Front
	mirror  *catalog.Mirror // that runs if a test has it run
	digest  string
	web     *httptest.Server
	workers []*process

	mu   sync.Mutex
	seen map[string]int // requests, by method and path
}

// process is a worker or a front in a process of its own.
type process struct {
	*exec.Cmd
	name string
	home string
	log  string // its file
	gone chan struct{}
}

// newWorld starts a fleet without workers. policy is added to what sends the plugin work to the pool main.
func newWorld(t testing.TB, url, policy string) *world {
	t.Helper()
	return newWorldWith(t, url, "", policy)
}

// newSecuredWorld is newWorld with TLS, and a key for the front, the operator, and each worker.
func newSecuredWorld(t testing.TB, policy string, workers ...string) (*fleettest.Server, *world) {
	t.Helper()
	dir := t.TempDir()
	args := []string{dir, "--host", "127.0.0.1", "--front", "front"}
	for _, name := range workers {
		args = append(args, "--worker", name)
	}
	if err := setup.Init(args, io.Discard); err != nil {
		t.Fatal(err)
	}
	server := fleettest.Start(t, fleettest.Options{ConfigFile: filepath.Join(dir, "server", "nats-server.conf")})
	return server, newWorldWith(t, server.URL, dir, policy)
}

// config returns the configuration of a member of the fleet.
func (w *world) config(name string) *Config {
	c := &Config{URL: w.url, Name: name}
	if w.keys != "" {
		dir := filepath.Join(w.keys, "parley", name)
		c.Key, c.CA = filepath.Join(dir, name+".nk"), filepath.Join(dir, "ca.pem")
	}
	return c
}

func newWorldWith(t testing.TB, url, keys, policy string) *world {
	t.Helper()
	w := &world{t: t, url: url, keys: keys, seen: map[string]int{}}
	w.web = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.seen[r.Method+" "+r.URL.Path]++
		w.mu.Unlock()
		if wait, err := time.ParseDuration(r.URL.Query().Get("wait")); err == nil {
			time.Sleep(wait)
		}
	}))
	t.Cleanup(w.web.Close)
	w.open(policy)
	return w
}

// copyPlugin copies a plugin of testdata, with the address of the web server in the place of http://127.0.0.1.
func (w *world) copyPlugin(name string) string {
	dir := w.t.TempDir()
	from := filepath.Join("..", "..", "..", "..", "testdata", "wasm")
	for _, suffix := range []string{".wasm", ".manifest.json"} {
		data, err := os.ReadFile(filepath.Join(from, name+suffix))
		if err != nil {
			w.t.Fatal(err)
		}
		if suffix != ".wasm" {
			data = []byte(strings.ReplaceAll(string(data), "http://127.0.0.1", w.web.URL))
		}
		if err := os.WriteFile(filepath.Join(dir, name+suffix), data, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return filepath.Join(dir, name+".wasm")
}

// open opens the host of the front.
func (w *world) open(policy string) {
	t := w.t
	t.Helper()
	w.home = testhome.New(t)
	var err error
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	if w.front, err = w.config("front").Front(log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.front.Close)
	w.mirror = catalog.NewMirror(func(string, ...any) {})
	w.Parley, err = parley.Open(t.Context(), parley.Config{Home: w.home,
		Fleet: parley.Fleet{Away: w.front, Published: w.mirror.Providers}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Parley.Close() })
	w.digest = w.install("work")
	text := fmt.Sprintf("[plugin.work]\ndigest = %q\nrun = \"fleet:main\"\ngrants = [\"http:GET,POST:%s\"]\n%s", w.digest,
		w.web.URL, policy)
	w.writePolicy(text)
}

// install installs a plugin of testdata at the front, publishes it, and returns its digest.
func (w *world) install(name string) string {
	w.t.Helper()
	installed, err := w.Install(w.t.Context(), w.copyPlugin(name))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.operator().PublishInstalled(w.t.Context(), w.Parley, name); err != nil {
		w.t.Fatal(err)
	}
	return installed.Entry.Digest
}

// operator connects the operator, who makes what the account needs.
func (w *world) operator() *Operator {
	w.t.Helper()
	o, err := w.config("operator").Operator()
	if err == nil {
		w.t.Cleanup(o.Close)
		err = o.Provision(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *world) writePolicy(text string) {
	w.t.Helper()
	dir := w.Dirs().Config
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "policy.toml"), []byte(text), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// start starts a worker and waits until the front knows it.
func (w *world) start(name string, slots int) *process {
	w.t.Helper()
	p := w.launch(name, slots)
	w.await("the worker "+name, func() bool { return w.knows(name) })
	return p
}

func (w *world) launch(name string, slots int) *process {
	w.t.Helper()
	p := w.spawn(name, workerVariable, workerProcess{Config: *w.config(name),
		Of: WorkerConfig{Pool: "main", Slots: slots, Trust: []string{w.digest}}})
	w.workers = append(w.workers, p)
	return p
}

// launchFront starts another front, with the home of this one.
func (w *world) launchFront(calls ...frontCall) *process {
	w.t.Helper()
	return w.spawn("other", frontVariable, frontProcess{Config: *w.config("other"), Home: w.home, Calls: calls})
}

// spawn starts a process that finds what it is in a variable.
func (w *world) spawn(name, variable string, what any) *process {
	t := w.t
	t.Helper()
	text, _ := json.Marshal(what)
	p := &process{Cmd: exec.Command("/proc/self/exe"), name: name, home: testhome.New(t),
		log: filepath.Join(t.TempDir(), "log"), gone: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.Env = append(os.Environ(), variable+"="+string(text), "PARLEY_HOME="+p.home)
	p.Stderr = log
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.Wait(); close(p.gone) }()
	t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.signal(syscall.SIGKILL)
		<-p.gone
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(p.log)
			t.Logf("the log of %s:\n%s", name, text)
		}
	})
	return p
}

func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(p.Process.Pid, s) }

// knows reports whether the front knows a worker of a name that takes calls.
func (w *world) knows(name string) bool {
	w.front.mu.Lock()
	defer w.front.mu.Unlock()
	for _, p := range w.front.pool("main").workers {
		if p.Worker == name && !p.Draining {
			return true
		}
	}
	return false
}

// await waits until something holds.
func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	fleettest.Await(w.t, what, holds)
}

// count returns how often a path was requested.
func (w *world) count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[what]
}

// running returns the name of the worker that runs a call, once there is one.
func (w *world) running() (name string) {
	w.t.Helper()
	w.await("a call on a worker", func() bool {
		w.front.mu.Lock()
		defer w.front.mu.Unlock()
		for _, s := range w.front.calls {
			if s.worker != nil {
				name = s.worker.Worker
			}
		}
		return name != ""
	})
	return name
}

func (w *world) worker(name string) *process {
	i := slices.IndexFunc(w.workers, func(p *process) bool { return p.name == name })
	return w.workers[i]
}

// outcome is how a call has ended, and how long it took.
type outcome struct {
	answer *host.Answer
	err    *host.Error
	took   time.Duration
}

func (w *world) call(ctx context.Context, tool, params string, timeout time.Duration) outcome {
	began := time.Now()
	h, err := w.Host()
	if err != nil {
		return outcome{err: host.AsError(err)}
	}
	answer, err := h.Call(ctx, host.Call{Name: tool, Params: json.RawMessage(params),
		Principal: caller.Principal{Name: "cli"}, Options: job.Options{Timeout: timeout}})
	o := outcome{answer: answer, took: time.Since(began)}
	if err != nil {
		o.err = host.AsError(err)
	}
	return o
}

// later makes a call and returns where its outcome arrives.
func (w *world) later(tool, params string, timeout time.Duration) <-chan outcome {
	ended := make(chan outcome, 1)
	go func() { ended <- w.call(context.Background(), tool, params, timeout) }()
	return ended
}

func (w *world) act(path, method string, ms int) string {
	return fmt.Sprintf(`{"url":"%s/%s","method":"%s","ms":%d}`, w.web.URL, path, method, ms)
}

// TestCall makes calls of each kind of outcome on a worker.
func TestCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	w.start("w1", 2)
	for _, c := range []struct{ tool, params, data, code string }{
		{"work.nothing", `{}`, `{}`, ""},
		{"work.rest", `{"ms":10}`, `{}`, ""},
		{"work.act", w.act("acted", "POST", 0), `{}`, ""},
		{"work.act", `{"url":"http://elsewhere.test/","method":"GET","ms":0}`, "", "not_answered"},
		{"work.large", `{"bytes":3000000}`, `{"text":"` + strings.Repeat("x", 3000000) + `"}`, ""},
		{"work.rest", `{"ms":-1}`, "", "invalid_args"},
		{"work.rest", `{"ms":60000}`, "", "timeout"},
		{"work.rest", `{"ms":10}`, `{}`, ""}, // the worker is not to blame
	} {
		timeout := time.Duration(0)
		if c.code == "timeout" {
			timeout = 300 * time.Millisecond
		}
		o := w.call(t.Context(), c.tool, c.params, timeout)
		switch {
		case c.code == "" && (o.err != nil || string(o.answer.Data) != c.data || len(o.answer.Warnings) > 0):
			t.Errorf("%s %s: %.300s, %v, %q", c.tool, c.params, o.answer.Data, o.err, o.answer.Warnings)
		case c.code != "" && (o.err == nil || string(o.err.Code) != c.code):
			t.Errorf("%s %s: %v, expected %s", c.tool, c.params, o.err, c.code)
		case c.tool == "work.rest" && o.took > 2*suspicion: // as if the worker were to blame
			t.Errorf("%s %s: ended after %s", c.tool, c.params, o.took)
		}
	}
	if w.count("POST /acted") != 1 {
		t.Errorf("acted %d times", w.count("POST /acted"))
	}
	w.await("all slots", func() bool { return w.free() == 2 })
}

// free returns the free slots of all workers.
func (w *world) free() (n int) {
	o, err := w.config("operator").Operator()
	if err != nil {
		return -1
	}
	defer o.Close()
	all, _ := o.Workers(w.t.Context())
	for _, s := range all {
		n += s.Free
	}
	return n
}

// TestStays runs what cannot leave the front at the front, and says so.
func TestStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "isolate = \"none\"\n")
	o := w.call(t.Context(), "work.nothing", `{}`, 0)
	if o.err != nil || !strings.Contains(strings.Join(o.answer.Warnings, "\n"), "outside pool main") {
		t.Errorf("%v, %q", o.err, o.answer.Warnings)
	}
}

// TestNoWorker ends calls where no worker is, and where the server is gone.
func TestNoWorker(t *testing.T) {
	t.Parallel()
	server := fleettest.Start(t, fleettest.Options{})
	w := newWorld(t, server.URL, "")
	if o := w.call(t.Context(), "work.nothing", `{}`, 0); o.err == nil || o.err.Code != host.Unavailable ||
		!strings.Contains(o.err.Message, "no worker of the pool main answers") {
		t.Errorf("%v", o.err)
	}
	server.Kill()
	if o := w.call(t.Context(), "work.nothing", `{}`, 0); o.err == nil || o.err.Code != host.Unavailable ||
		!strings.Contains(o.err.Message, "cannot be reached") {
		t.Errorf("%v", o.err)
	}
	// A worker that comes while a call waits serves it.
	late := w.later("work.nothing", `{}`, 30*time.Second)
	server.Restart()
	w.start("w1", 1)
	if o := <-late; o.err != nil {
		t.Error(o.err)
	}
}

// TestLine makes more calls than there are slots: all end, in turn by caller, and one that has no slot at its deadline
// says its place.
func TestLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	w.start("w1", 1)
	w.call(t.Context(), "work.nothing", `{}`, 0) // compiles
	first := w.later("work.rest", `{"ms":700}`, 0)
	w.running()
	var waiting []<-chan outcome
	for range 3 {
		waiting = append(waiting, w.later("work.rest", `{"ms":300}`, 200*time.Millisecond))
	}
	places := map[int]bool{}
	for _, ended := range waiting {
		o := <-ended
		if o.err == nil || o.err.Code != host.Busy || o.err.ExitCode() != 85 {
			t.Fatalf("%v", o.err)
		}
		places[o.err.Place] = true
	}
	if !places[1] {
		t.Errorf("places %v", places)
	}
	if o := <-first; o.err != nil {
		t.Error(o.err)
	}
	var group sync.WaitGroup
	for range 12 {
		group.Go(func() {
			if o := w.call(t.Context(), "work.rest", `{"ms":20}`, 0); o.err != nil {
				t.Error(o.err)
			}
		})
	}
	group.Wait()
}

// TestLost kills and stops workers in the middle of calls. What has not acted runs again elsewhere; what has ends in
// trapped, with its effects.
func TestLost(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
			for _, c := range []struct {
				tool, params, requests string
				lost                   bool
			}{
				{"work.rest", `{"ms":1000}`, "", false},
				{"work.act", w.act(name+"-read", "GET", 1000), "GET /" + name + "-read", false},
				{"work.act", w.act(name+"-written", "POST", 1000), "POST /" + name + "-written", true},
			} {
				a, b := w.start("a", 1), w.start("b", 1)
				ended := w.later(c.tool, c.params, 20*time.Second)
				at := w.running()
				if c.requests != "" {
					w.await("the request", func() bool { return w.count(c.requests) > 0 })
				} else {
					time.Sleep(300 * time.Millisecond) // the guest is running
				}
				w.worker(at).signal(end)
				began := time.Now()
				o := <-ended
				switch {
				case !c.lost && (o.err != nil || string(o.answer.Data) != "{}"):
					t.Errorf("%s %s: %v", c.tool, c.params, o.err)
				case c.lost && (o.err == nil || o.err.Code != host.Trapped || len(o.err.Effects) != 1 ||
					!strings.Contains(o.err.Effects[0], "POST")):
					t.Errorf("%s %s: %+v", c.tool, c.params, o.err)
				}
				limit := 10 * time.Second // ten times the promise
				if end == syscall.SIGSTOP {
					limit *= 3
				}
				if c.lost && time.Since(began) > limit {
					t.Errorf("known after %s", time.Since(began))
				}
				t.Logf("%s: ended %s after its worker", c.params, time.Since(began).Round(time.Millisecond))
				for _, p := range []*process{a, b} {
					p.signal(syscall.SIGCONT)
					p.signal(syscall.SIGKILL)
					<-p.gone
				}
				w.workers = nil
				w.await("workers are forgotten", func() bool { w.forget(); return !w.knows("a") && !w.knows("b") })
			}
			if w.count("POST /"+name+"-written") != 1 {
				t.Errorf("written %d times", w.count("POST /"+name+"-written"))
			}
		})
	}
}

// forget has the front forget its workers, as it does when it connects again.
func (w *world) forget() { w.front.loseAll() }

// TestServerRestarts kills the server in the middle of calls, and stops it for so long that all give it up.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		testServerRestarts(t, func(server *fleettest.Server) {
			server.Kill()
			time.Sleep(200 * time.Millisecond)
		}, (*fleettest.Server).Restart)
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		testServerRestarts(t, func(server *fleettest.Server) {
			server.Pause()
			time.Sleep(patience + signPatience)
		}, (*fleettest.Server).Continue)
	})
}

func testServerRestarts(t *testing.T, end, again func(*fleettest.Server)) {
	server := fleettest.Start(t, fleettest.Options{})
	w := newWorld(t, server.URL, "")
	w.start("a", 2)
	read := w.later("work.rest", `{"ms":500}`, 20*time.Second)
	written := w.later("work.act", w.act("once", "POST", 500), 20*time.Second)
	w.await("the request", func() bool { return w.count("POST /once") > 0 })
	end(server)
	again(server)
	if o := <-read; o.err != nil {
		t.Error(o.err)
	}
	if o := <-written; o.err == nil || o.err.Code != host.Trapped || len(o.err.Effects) != 1 {
		t.Errorf("%+v", o.err)
	}
	if w.count("POST /once") != 1 {
		t.Errorf("%d times", w.count("POST /once"))
	}
	w.await("all slots", func() bool { return w.free() == 2 })
}

// TestDrain drains a worker under load: no call is lost.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	w.start("a", 4)
	w.start("b", 4)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var calls atomic.Int64
	for range 6 {
		group.Go(func() {
			for ctx.Err() == nil {
				if o := w.call(t.Context(), "work.rest", `{"ms":30}`, 0); o.err != nil {
					t.Error(o.err)
				}
				calls.Add(1)
			}
		})
	}
	o := w.operator()
	for round, name := range []string{"a", "b", "c"} {
		before := calls.Load()
		w.await("calls", func() bool { return calls.Load() > before+20 })
		w.start(string(rune('c'+round)), 4)
		if drained, err := o.Drain(t.Context(), name); err != nil || len(drained) != 1 {
			t.Errorf("%s: %v, %v", name, drained, err)
		}
		select {
		case <-w.worker(name).gone:
		case <-time.After(10 * time.Second):
			t.Errorf("%s did not end", name)
		}
	}
	stop()
	group.Wait()
	if _, err := o.Drain(t.Context(), "nobody"); !errors.Is(err, host.NotFound) {
		t.Errorf("%v", err)
	}
	t.Logf("%d calls", calls.Load())
}
