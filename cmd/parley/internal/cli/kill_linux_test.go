package cli

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// kills returns how often each victim is killed: four times. PARLEY_HAMMER=N repeats the test N times and makes a
// hundred kills in all.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("PARLEY_HAMMER")); err == nil && n > 0 {
		return (100 + n - 1) / n
	}
	return 4
}

// home is the machine of one user: a data folder, a temporary folder, and the processes that use them.
type home struct {
	*testing.T
	dir, temp string
	random    *rand.Rand
}

// killPatience is how long to wait for a process. It is long enough for a busy machine.
const killPatience = 2 * time.Minute

func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.Command("parley", args...)
	cmd.Dir = h.temp
	cmd.Env = append(os.Environ(), "PARLEY_HOME="+h.dir, "TMPDIR="+h.temp)
	return cmd
}

// must runs a command, which has to succeed, and returns its output.
func (h *home) must(args ...string) string {
	h.Helper()
	cmd := h.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	if err := h.ended(cmd); err != nil {
		h.Fatalf("parley %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

// ended waits until a command has ended.
func (h *home) ended(cmd *exec.Cmd) error {
	h.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(killPatience):
		_ = cmd.Process.Kill()
		h.Fatalf("%s hangs", strings.Join(cmd.Args, " "))
		return nil
	}
}

// find returns the keepers or the browsers of this home.
func (h *home) find(kind string) (pids []int) {
	for _, p := range processesOf(h.dir) {
		isKeeper := strings.Contains(p.command, "parley keeper ")
		isChrome := strings.Contains(p.command, "--remote-debugging-pipe") && !strings.Contains(p.command, "--type=")
		if kind == "keeper" && isKeeper || kind == "chrome" && isChrome {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

func (h *home) eventually(what string, ok func() bool) {
	h.Helper()
	for end := time.Now().Add(killPatience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.Errorf("%s; running: %v", what, processesOf(h.dir))
			return
		}
	}
}

// actions are the commands during which a process is killed. before is run first, to set each up.
var actions = []struct{ before, line []string }{
	{[]string{"close"}, []string{"open"}},
	{[]string{"open"}, []string{"open"}},
	{[]string{"open"}, []string{"close"}},
	{[]string{"open"}, []string{"Runtime.evaluate", "--timeout", "5s",
		"--params", `{"expression":"new Promise(() => 0)","awaitPromise":true}`}},
	{[]string{"open"}, []string{"Runtime.evaluate", "--out", "reply",
		"--params", `{"expression":"'x'.repeat(2e7)","returnByValue":true}`}},
	{[]string{"open"}, []string{"--listen", "Page.*", "--trigger", "Page.reload", "--timeout", "2s"}},
	{[]string{"close"}, []string{"--list", "--live"}},
}

// killOnce starts an action and kills the victim at a random moment.
func (h *home) killOnce(victim string) (doing string) {
	action := actions[h.random.IntN(len(actions))]
	doing = "cdp " + strings.Join(action.line, " ")
	h.must(append([]string{"cdp"}, action.before...)...)
	if action.line[0] == "--list" {
		_ = os.RemoveAll(filepath.Join(h.dir, "cache", "protocol")) // so that a browser is started for it
	}
	cmd := h.command(append([]string{"cdp"}, action.line...)...)
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	time.Sleep(time.Duration(h.random.IntN(250)) * time.Millisecond) // at a random moment
	if victim == "cli" {
		_ = cmd.Process.Kill()
	} else {
		for _, pid := range h.find(victim) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	select {
	case <-done:
	case <-time.After(killPatience):
		_ = cmd.Process.Kill()
		h.Fatalf("%s hangs after its %s was killed", doing, victim)
	}
	return doing
}

// newHome returns a home that ends with the test, with all of its processes.
func newHome(t *testing.T) *home {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dir, err := os.MkdirTemp("", "kill-") // a path that is short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	h := &home{t, filepath.Join(dir, "home"), filepath.Join(dir, "temp"), rand.New(rand.NewPCG(seed, 1))}
	t.Cleanup(func() {
		for _, p := range processesOf(h.dir) {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		_ = os.RemoveAll(dir)
	})
	if err := os.Mkdir(h.temp, 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

// requireNothingLeft waits until no process of the home runs, and fails if files remain.
func (h *home) requireNothingLeft() {
	h.Helper()
	h.eventually("processes remain", func() bool { return len(processesOf(h.dir)) == 0 })
	if left := remainingIn(h.temp, filepath.Join(h.dir, "run")); len(left) > 0 {
		h.Errorf("remaining: %s", strings.Join(left, ", "))
	}
}

// TestHammerKillsLeaveNothing kills the command, the keeper or the browser at a random time. The next command works,
// one keeper and one browser run then, and nothing runs after a close.
func TestHammerKillsLeaveNothing(t *testing.T) {
	t.Parallel()
	if ok, err := scriptCondition("chromium"); !ok {
		t.Skip("needs a browser: ", err)
	}
	for _, victim := range []string{"cli", "keeper", "chrome"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			for range kills() {
				doing := h.killOnce(victim)
				h.must("cdp", "open")
				got := h.must("cdp", "Runtime.evaluate", "--param", "expression=6*7", "--jq", ".result.value")
				if got != "42\n" {
					t.Errorf("after a kill during %s: %q", doing, got)
				}
				h.eventually("after a kill during "+doing+" one keeper and one browser must run", func() bool {
					return len(h.find("keeper")) == 1 && len(h.find("chrome")) == 1
				})
				if t.Failed() {
					return
				}
			}
			h.must("cdp", "close", "--all")
			h.requireNothingLeft()
		})
	}
}

// remainingIn returns the names of the files in folders, without the results that a killed command was writing.
func remainingIn(dirs ...string) (left []string) {
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.Name() != "reply" && !strings.HasPrefix(e.Name(), ".parley-out-") {
				left = append(left, fmt.Sprint(filepath.Base(dir), "/", e.Name()))
			}
		}
	}
	return left
}
