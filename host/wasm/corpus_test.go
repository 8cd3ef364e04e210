package wasm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
)

const hostileDir = "../../testdata/hostile"

// attack is a line of testdata/hostile/cases.txt.
type attack struct {
	line                    int
	kind, source, end, says string
	heavy                   bool
}

func (a attack) String() string { return fmt.Sprintf("%s:%d:%.40s", a.kind, a.line, a.source) }

// attacks reads the table.
func attacks(t testing.TB) []attack {
	t.Helper()
	var all []attack
	kind := ""
	for i, line := range strings.Split(string(readFile(t, hostileDir+"/cases.txt")), "\n") {
		if strings.HasPrefix(line, "## ") {
			kind = strings.TrimPrefix(line, "## ")
		}
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.SplitN(line, " | ", 3)
		if len(parts) < 2 {
			t.Fatalf("line %d: %s", i+1, line)
		}
		a := attack{line: i + 1, kind: kind, source: strings.TrimSpace(parts[0]), end: strings.TrimSpace(parts[1])}
		a.source, a.heavy = strings.CutPrefix(a.source, "! ")
		if len(parts) == 3 {
			a.says = strings.TrimSpace(parts[2])
		}
		all = append(all, a)
	}
	return all
}

// provider makes the plugin of an attack: one of kind parley/1 where it speaks that, else a command.
func (a attack) provider(t testing.TB, e *Engine) *Provider {
	wasm := hostileModule(t, a.source)
	m := commandManifest(t, "hostile")
	if bytes.Contains(wasm, []byte("parley_call")) && bytes.Contains(wasm, []byte("parley_alloc")) {
		m = loadManifest(t, readFile(t, filepath.Join(guestDir, "smallest.manifest.json")))
	}
	return e.Provider(sourceOf(wasm, m))
}

// request asks for the one tool of an attack.
func (a attack) request(t testing.TB, p *Provider, timeout time.Duration) *host.Request {
	names, err := p.Names()
	if err != nil {
		t.Fatal(err)
	}
	r := requestFor(t, p, names[0], "{}")
	r.Options.Timeout = timeout
	return r
}

// canary calls an honest plugin again and again, beside whatever else goes on.
type canary struct {
	slowest atomic.Int64
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// Ten times and more what is promised, for machines that do other things meanwhile.
const (
	canaryLimit = time.Second
	lateLimit   = time.Second
)

func startCanary(t testing.TB, e *Engine) *canary {
	p := guest(t, e, "smallest", "smallest")
	if err := p.Prepare(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := requestFor(t, p, "call", "{}")
	ctx, stop := context.WithCancel(context.Background())
	c := &canary{stop: stop}
	c.done.Go(func() {
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			began := time.Now()
			if _, err := p.Invoke(context.Background(), r); err != nil {
				t.Errorf("the canary: %v", err)
				return
			}
			c.slowest.Store(max(c.slowest.Load(), int64(time.Since(began))))
		}
	})
	return c
}

// TestCorpus runs every attack of testdata/hostile against an engine and holds how it ends against the table; beside it
// another plugin is called all the time. Compiling has a small
// budget. PARLEY_HAMMER=1 adds what takes long, with the real one.
func TestCorpus(t *testing.T) {
	if raceDetector {
		t.Skip("its budgets are those of code that runs at full speed; TestConcurrent looks for races")
	}
	e := testEngine(t)
	hammer := os.Getenv("PARLEY_HAMMER") != ""
	small := func(int) budget { return budget{2 * time.Second, 512 << 20} }
	timeout := 150 * time.Millisecond
	c := startCanary(t, e)
	defer c.done.Wait()
	defer c.stop()
	var slowest []time.Duration // answers of the canary, one of each attack
	defer func() {
		if slices.Sort(slowest); len(slowest) > 0 {
			t.Logf("the slowest answer beside %d attacks: median %v, most %v", len(slowest), slowest[len(slowest)/2], slowest[len(slowest)-1])
		}
	}()
	for _, a := range attacks(t) {
		t.Run(a.String(), func(t *testing.T) {
			if a.heavy && !hammer {
				t.Skip("takes long; PARLEY_HAMMER=1 runs it")
			}
			if e.budget = small; a.heavy {
				e.budget = compileBudget
			}
			p := a.provider(t, e)
			wait := timeout
			if a.end != string(host.Timeout) {
				wait = 20 * time.Second // it ends by itself, however busy the machine is
			}
			c.slowest.Store(0)
			defer func() { slowest = append(slowest, time.Duration(c.slowest.Load())) }()
			loadErr := p.Prepare(context.Background())
			began := time.Now()
			result, err := invokeRequest(t, p, a.request(t, p, wait))
			took := time.Since(began)
			end := "ok"
			if err != nil {
				end = string(err.Code)
			}
			text := ""
			if err != nil {
				text = err.Message
			} else {
				text = string(result.Data)
			}
			if end != a.end || !strings.Contains(text, a.says) {
				t.Errorf("ended in %s %.300q, want %s and %q", end, text, a.end, a.says)
			}
			if err != nil && len(text) > 4<<10 || strings.ContainsAny(text, "\x1b\u202e\u200b\x00") {
				t.Errorf("the message has %d bytes: %.300q", len(text), text)
			}
			if loadErr == nil && a.end == string(host.Timeout) {
				late := took - timeout
				t.Logf("ended %v after its deadline", late)
				if late > lateLimit {
					t.Errorf("it ended %v after its deadline", late)
				}
			}
			if answer := time.Duration(c.slowest.Load()); answer > canaryLimit {
				t.Errorf("meanwhile another plugin answered after %v", answer)
			}
		})
	}
}

// TestCorpusSources compiles the sources anew where there is a compiler, so that what is run is what can be read.
func TestCorpusSources(t *testing.T) {
	compiler, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("there is no wat2wasm")
	}
	sources, err := filepath.Glob(hostileDir + "/*.wat")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	named := string(readFile(t, hostileDir+"/cases.txt"))
	for _, source := range sources {
		name := strings.TrimSuffix(source, ".wat") + ".wasm"
		args := []string{"--enable-all", source, "-o", filepath.Join(t.TempDir(), "out.wasm")}
		if strings.Contains(string(readFile(t, source)), "--debug-names") {
			args = append(args, "--debug-names")
		}
		if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", source, err, out)
			continue
		}
		if !bytes.Equal(readFile(t, args[3]), readFile(t, name)) {
			t.Errorf("%s is not what its source gives", name)
		}
		if !strings.Contains(named, filepath.Base(name)) {
			t.Errorf("%s is in no case", name)
		}
	}
}

// TestHammer makes 2,000 calls of hostile and honest plugins, some at once: afterwards the process is what it was.
func TestHammer(t *testing.T) {
	if os.Getenv("PARLEY_HAMMER") == "" {
		t.Skip("PARLEY_HAMMER=1 runs it")
	}
	e := testEngine(t)
	type pair struct {
		attack
		p *Provider
	}
	var pairs []pair
	for _, a := range attacks(t) {
		if a.heavy || strings.HasPrefix(a.kind, "decoder") || strings.HasPrefix(a.kind, "compile") {
			continue
		}
		p := a.provider(t, e)
		_ = p.Prepare(context.Background())
		pairs = append(pairs, pair{a, p})
	}
	honest := guest(t, e, "echo", "echo")
	work := func(calls int) {
		next := atomic.Int64{}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := int(next.Add(1)); i <= calls; i = int(next.Add(1)) {
					if i%4 == 0 {
						want := fmt.Sprintf(`{"value":%d}`, i)
						if result, err := honest.Invoke(context.Background(), requestFor(t, honest, "echo", want)); err != nil || string(result.Data) != want {
							t.Errorf("%v %v", result, err)
						}
						continue
					}
					x := pairs[i%len(pairs)]
					_, _ = x.p.Invoke(context.Background(), x.request(t, x.p, 20*time.Millisecond))
				}
			})
		}
		wg.Wait()
	}
	work(300)
	before := measure(t)
	work(2000)
	after := measure(t)
	t.Logf("before %+v, after %+v", before, after)
	if after.goroutines > before.goroutines+2 || after.files > before.files || after.maps > before.maps+20 || after.rss > before.rss+64<<20 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

type measured struct{ goroutines, files, maps, rss int }

// measure counts what calls might leave behind.
func measure(t testing.TB) measured {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("counts in /proc")
	}
	debug.FreeOSMemory()
	debug.FreeOSMemory() // what finalizers let go of
	m := measured{goroutines: runtime.NumGoroutine()}
	files, _ := os.ReadDir("/proc/self/fd")
	m.files = len(files)
	m.maps = bytes.Count(readFile(t, "/proc/self/maps"), []byte("\n"))
	var size, resident int
	if _, err := fmt.Sscan(string(readFile(t, "/proc/self/statm")), &size, &resident); err != nil {
		t.Fatal(err)
	}
	m.rss = resident * os.Getpagesize()
	return m
}
