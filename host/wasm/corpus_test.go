package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/internal/wasmtest"
)

// attack is an attack on an engine of this package.
type attack struct{ wasmtest.Attack }

func loadAttacks(t testing.TB) (all []attack) {
	for _, a := range wasmtest.Attacks(t) {
		all = append(all, attack{a})
	}
	return all
}

func (a attack) provider(t testing.TB, e *Engine) *Provider { return e.Provider(sourceOf(a.Build(t))) }

// request returns a request for the only tool of an attack.
func (a attack) request(t testing.TB, p *Provider, timeout time.Duration) *host.Request {
	names, err := p.Names()
	if err != nil {
		t.Fatal(err)
	}
	r := requestFor(t, p, names[0], a.Params(t))
	r.Options.Timeout = timeout
	return r
}

// mounts grants a request the folders of its kind of attack. changes returns forbidden changes.
func (a attack) mounts(t testing.TB, r *host.Request) (changes func() string) {
	kind, mode, _ := strings.Cut(a.Kind, " ")
	if kind != "fs" {
		return func() string { return "" }
	}
	inside, outside := tree(t)
	other := filepath.Join(filepath.Dir(inside), "other")
	if mode == "crowd" {
		inside, mode = crowd(), "rw"
	}
	r.Grant.FS = []grant.FS{{Path: "/data", Source: inside, Mode: mode}, {Path: "/other", Source: other, Mode: "rw"}}
	watched := []string{outside}
	if mode == "ro" {
		watched = append(watched, inside)
	}
	before := snapshot(t, watched...)
	return func() string { return changesIn(before, snapshot(t, watched...)) }
}

// crowd is a folder with 20,000 files, shared by all attacks that need one.
var crowd = sync.OnceValue(func() string {
	dir := filepath.Join(testCache, "crowd")
	err := os.MkdirAll(filepath.Join(dir, "dir"), 0o700)
	for i := 0; i < 20_000 && err == nil; i++ {
		err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d", i)), nil, 0o600)
	}
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o600),
		os.Symlink(".", filepath.Join(dir, "self"))); err != nil {
		panic(err)
	}
	return dir
})

// TestCorpus runs attacks of testdata/hostile and compares their outcomes with the table. Meanwhile it calls another
// plugin and measures delays, and it compares what is outside the granted folders before and after. Compiling has a
// small budget. PARLEY_HAMMER=1 runs all attacks instead of a sample, and the slow ones with the real budget.
func TestCorpus(t *testing.T) {
	skipWithRace(t)
	e := testEngine(t)
	c := startCanary(t, e)
	if hammer {
		time.Sleep(5 * time.Second) // without other load
	}
	alone, before := c.since(0)
	var late []time.Duration
	cases := loadAttacks(t)
	if !hammer {
		cases = slices.DeleteFunc(cases, func(a attack) bool { return a.Heavy })
	}
	cases = sample(cases, 10, func(a attack) string { return a.Kind + " " + a.WantEnd })
	for _, a := range cases {
		t.Run(a.String(), func(t *testing.T) {
			if e.budget = compileBudget; !a.Heavy {
				e.budget = func(int) budget { return budget{2 * time.Second, 512 << 20} }
			}
			p := a.provider(t, e)
			// A busy machine can delay a call, but hardly the same one each time.
			const tries = 6
			for try := 1; ; try++ {
				_, answered := c.since(0)
				done := a.runOnce(t, p)
				late = append(late, done)
				answers, _ := c.since(answered)
				worst := slices.Max(append(answers, 0))
				if done > overrunLimit || worst > canaryLimit {
					t.Logf("it ended %v after its deadline, and another plugin returned after %v meanwhile", done, worst)
				}
				if done <= busyFactor*overrunLimit && worst <= busyFactor*canaryLimit {
					return
				}
				if try == tries || t.Failed() {
					t.Error("the attack or the other plugin was late each time")
					return
				}
			}
		})
	}
	c.stop()
	during, _ := c.since(before)
	t.Logf("figures: a well-behaved plugin alone returned after: %s", spread(alone))
	t.Logf("figures: a well-behaved plugin beside %d attacks returned after: %s", len(cases), spread(during))
	t.Logf("figures: guests ended after their deadline: %s",
		spread(slices.DeleteFunc(late, func(d time.Duration) bool { return d == 0 })))
}

// runOnce runs an attack and returns how long after its deadline it ended, or 0 if it ends by itself.
func (a attack) runOnce(t *testing.T, p *Provider) (overrun time.Duration) {
	const timeout = 150 * time.Millisecond
	wait := timeout
	if a.WantEnd != string(host.Timeout) {
		wait = 20 * time.Second // even on a busy machine
	}
	loadErr := p.Prepare(context.Background())
	r := a.request(t, p, wait)
	on(r, job.EventLog, func(e job.Event) { wasmtest.CheckDisplayed(t, "the log", e.Message) })
	on(r, job.EventProgress, func(e job.Event) { wasmtest.CheckDisplayed(t, "progress", e.Message) })
	changes := a.mounts(t, r)
	files := openFiles()
	start := time.Now()
	result, err := invokeRequest(t, p, r)
	elapsed := time.Since(start)

	a.CheckOutcome(t, result, err)
	if changed := changes(); changed != "" {
		t.Errorf("changed outside the writable folders:\n%s", changed)
	}
	if now := openFiles(); now > files+4 { // a disk may still be syncing one
		t.Errorf("%d descriptors were open before and %d after", files, now)
	}
	if loadErr == nil && a.WantEnd == string(host.Timeout) {
		return max(elapsed-timeout, 1)
	}
	return 0
}

// openFiles returns the number of this process's descriptors, if it can be determined.
func openFiles() int {
	files, _ := os.ReadDir("/proc/self/fd")
	return len(files)
}

// TestCorpusSources compiles the sources again, if there is a compiler, and compares the results with the committed
// modules.
func TestCorpusSources(t *testing.T) {
	const hostileDir = "../../testdata/hostile"
	named := string(readFile(t, hostileDir+"/cases.txt"))
	modules, err := filepath.Glob(hostileDir + "/*.wasm")
	if err != nil || len(modules) == 0 {
		t.Fatal(modules, err)
	}
	for _, module := range modules {
		if base := filepath.Base(module); base != "wasi.wasm" && !strings.Contains(named, base) {
			t.Errorf("no case uses %s", module)
		}
		source := strings.TrimSuffix(module, ".wasm") + ".wat"
		out := filepath.Join(t.TempDir(), "out.wasm")
		cmd := exec.Command("wat2wasm", "--enable-all", source, "-o", out)
		if filepath.Base(module) == "wasi.wasm" {
			source = strings.TrimSuffix(source, "wat") + "c"
			if version, _ := exec.Command("clang", "--version").Output(); !bytes.Contains(version, []byte("version 14.")) {
				t.Logf("%s needs clang 14", source)
				continue
			}
			cmd = exec.Command("clang", "--target=wasm32", "-O2", "-Wall", "-Wextra", "-nostdlib", "-fno-builtin",
				"-Wl,--export=_start,--no-entry,-z,stack-size=65536", "-s", "-o", out, source)
		} else if _, err := exec.LookPath("wat2wasm"); err != nil {
			t.Skip("needs wat2wasm")
		}
		if strings.Contains(string(readFile(t, source)), "--debug-names") {
			cmd.Args = append(cmd.Args, "--debug-names")
		}
		if logged, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", source, err, logged)
		} else if !bytes.Equal(readFile(t, out), readFile(t, module)) {
			t.Errorf("%s differs from what its source produces", module)
		}
	}
}
