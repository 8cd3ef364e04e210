package wasm

import (
	"bytes"
	"context"
	"encoding/json"
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
	"unicode/utf8"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/manifest"
)

const hostileDir = "../../testdata/hostile"

// attack is a line of testdata/hostile/cases.txt.
type attack struct {
	line                            int
	kind, source, wantEnd, wantText string
	heavy                           bool
}

func (a attack) String() string { return fmt.Sprintf("%s:%d:%.40s", a.kind, a.line, a.source) }

// loadAttacks reads the table.
func loadAttacks(t testing.TB) []attack {
	t.Helper()
	var all []attack
	for _, l := range tableLines(t, "cases.txt") {
		a := attack{line: l.number, kind: l.section, source: l.fields[0], wantEnd: l.fields[1], wantText: l.fields[2]}
		a.source, a.heavy = strings.CutPrefix(a.source, "! ")
		all = append(all, a)
	}
	return all
}

// tableLine is a line of a table in testdata/hostile: two to four fields separated by bars. Missing fields are "".
type tableLine struct {
	number  int
	section string // the last heading, up to a colon
	fields  [4]string
}

func tableLines(t testing.TB, name string) []tableLine {
	t.Helper()
	var all []tableLine
	section := ""
	for i, line := range strings.Split(string(readFile(t, hostileDir+"/"+name)), "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section, _, _ = strings.Cut(title, ":")
		}
		if line == "" || line[0] == '#' {
			continue
		}
		l := tableLine{number: i + 1, section: section}
		parts := strings.SplitN(line, " | ", len(l.fields))
		if len(parts) < 2 {
			t.Fatalf("%s:%d: %s", name, i+1, line)
		}
		for j, part := range parts {
			l.fields[j] = strings.TrimSpace(part)
		}
		all = append(all, l)
	}
	return all
}

// provider returns the plugin of an attack: one of kind parley/1 if it exports that interface, else a command.
func (a attack) provider(t testing.TB, e *Engine) *Provider {
	m := commandManifest(t, "hostile")
	var wasm []byte
	if strings.HasPrefix(a.source, "wasi: ") {
		wasm, m = readFile(t, hostileDir+"/wasi.wasm"), scriptManifest(t)
	} else if wasm = hostileModule(t, a.source); bytes.Contains(wasm, []byte("parley_call")) &&
		bytes.Contains(wasm, []byte("parley_alloc")) {
		m = loadManifest(t, readFile(t, filepath.Join(guestDir, "smallest.manifest.json")))
	}
	switch a.kind {
	case "arguments":
		m.Tools[0].WASI.Argv = append(m.Tools[0].WASI.Argv, manifest.Arg{Word: strings.Repeat("x", 5<<19)})
		m.Tools[0].WASI.Env = map[string]string{"X": strings.Repeat("x", 1<<20)}
	case "large":
		m.Limits.OutputBytes = 64 << 20
	}
	return e.Provider(sourceOf(wasm, m))
}

// scriptManifest returns the manifest of testdata/hostile/wasi.c, which reads its statements from stdin.
func scriptManifest(t testing.TB) *manifest.Manifest {
	return loadManifest(t,
		[]byte(`{"manifest":1,"name":"hostile","version":"1.0.0","kind":"wasi","docs":{"brief":"A test"},
		"tools":[{"name":"run","docs":{"brief":"Run it"},"effect":"write","params":{"type":"object","properties":{"script":{"type":"string"}}},
		"wasi":{"stdin":"{script}"}}]}`))
}

// request returns a request for the only tool of an attack.
func (a attack) request(t testing.TB, p *Provider, timeout time.Duration) *host.Request {
	names, err := p.Names()
	if err != nil {
		t.Fatal(err)
	}
	params := "{}"
	if script, ok := strings.CutPrefix(a.source, "wasi: "); ok {
		params = string(guest.Marshal(map[string]string{"script": string(expand(t, script))}))
	}
	r := requestFor(t, p, names[0], params)
	r.Options.Timeout = timeout
	return r
}

// mounts grants a request the folders of its kind of attack. changes returns forbidden changes.
func (a attack) mounts(t testing.TB, r *host.Request) (changes func() string) {
	kind, mode, _ := strings.Cut(a.kind, " ")
	if kind != "fs" {
		return func() string { return "" }
	}
	inside, outside := tree(t)
	other := filepath.Join(filepath.Dir(inside), "other")
	if mode == "crowd" {
		inside, mode = crowd(), "rw"
	}
	r.Grant.FS = []host.FSGrant{{Path: "/data", Source: inside, Mode: mode}, {Path: "/other", Source: other, Mode: "rw"}}
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
		cases = slices.DeleteFunc(cases, func(a attack) bool { return a.heavy })
	}
	cases = sample(cases, 10, func(a attack) string { return a.kind + " " + a.wantEnd })
	for _, a := range cases {
		t.Run(a.String(), func(t *testing.T) {
			if e.budget = compileBudget; !a.heavy {
				e.budget = func(int) budget { return budget{2 * time.Second, 512 << 20} }
			}
			p := a.provider(t, e)
			// A busy machine can delay a call, but hardly the same one three times.
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
				if try == 3 || t.Failed() {
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
	if a.wantEnd != string(host.Timeout) {
		wait = 20 * time.Second // even on a busy machine
	}
	loadErr := p.Prepare(context.Background())
	r := a.request(t, p, wait)
	on(r, host.EventLog, func(e host.JobEvent) { checkDisplayed(t, "the log", e.Message) })
	on(r, host.EventProgress, func(e host.JobEvent) { checkDisplayed(t, "progress", e.Message) })
	changes := a.mounts(t, r)
	files := openFiles()
	start := time.Now()
	result, err := invokeRequest(t, p, r)
	elapsed := time.Since(start)

	a.checkOutcome(t, result, err)
	if changed := changes(); changed != "" {
		t.Errorf("changed outside the writable folders:\n%s", changed)
	}
	if now := openFiles(); now > files+4 { // a disk may still be syncing one
		t.Errorf("%d descriptors were open before and %d after", files, now)
	}
	if loadErr == nil && a.wantEnd == string(host.Timeout) {
		return max(elapsed-timeout, 1)
	}
	return 0
}

// neverRuns reports whether an attack is refused before it runs, or takes too long to be compiled.
func (a attack) neverRuns() bool {
	return a.heavy || strings.HasPrefix(a.kind, "decoder") || strings.HasPrefix(a.kind, "compile")
}

// openFiles returns the number of this process's descriptors, if it can be determined.
func openFiles() int {
	files, _ := os.ReadDir("/proc/self/fd")
	return len(files)
}

// checkOutcome compares the outcome of an attack with the table.
func (a attack) checkOutcome(t *testing.T, result *host.Result, err *host.Error) {
	t.Helper()
	end, text := "ok", ""
	if err != nil {
		end, text = string(err.Code), err.Message
		checkAllDisplayed(t, "the error", err.Object())
		if len(text) > 4<<10 {
			t.Errorf("the message has %d bytes: %.300q", len(text), text)
		}
	} else {
		text = string(result.Data)
		for _, w := range result.Warnings {
			checkDisplayed(t, "a warning", w)
		}
	}
	if end != a.wantEnd || !strings.Contains(text, a.wantText) {
		t.Errorf("ended in %s %.300q, want %s and %q", end, text, a.wantEnd, a.wantText)
	}
}

// checkDisplayed checks that a text has no terminal control or hidden characters.
func checkDisplayed(t testing.TB, what, text string) {
	t.Helper()
	if clean := manifest.Clean(text); clean != text {
		t.Errorf("%s has hidden characters: %.300q", what, text)
	}
	if !utf8.ValidString(text) {
		t.Errorf("%s is not UTF-8: %.300q", what, text)
	}
}

// checkAllDisplayed calls checkDisplayed for all strings in the JSON of a value.
func checkAllDisplayed(t testing.TB, what string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	var decoded any
	if err == nil {
		err = json.Unmarshal(data, &decoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			checkDisplayed(t, what, v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for k, x := range v {
				checkDisplayed(t, what, k)
				walk(x)
			}
		}
	}
	walk(decoded)
}

// TestCorpusSources compiles the sources again, if there is a compiler, and compares the results with the committed
// modules.
func TestCorpusSources(t *testing.T) {
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
