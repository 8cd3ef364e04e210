package slots_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-tools/parley/internal/slots"
)

// TestMain turns the program into a process that takes a slot and holds it until its stdin ends, or that waits for one.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SLOTS_TEST_DIR"); dir != "" {
		fmt.Println("waits")
		release, err := (&slots.Pool{Dir: dir}).Acquire(context.Background(), "plugin", "cli", 1, true)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("holds")
		bufio.NewReader(os.Stdin).ReadByte()
		release()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is a process that takes the only slot.
type process struct {
	cmd   *exec.Cmd
	stdin interface{ Close() error }
	out   *bufio.Reader
}

func start(t *testing.T, dir string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "SLOTS_TEST_DIR="+dir)
	stdin, _ := cmd.StdinPipe()
	stdout, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		t.Fatal("cannot start a process", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p := &process{cmd, stdin, bufio.NewReader(stdout)}
	p.expect(t, "waits")
	return p
}

func (p *process) expect(t *testing.T, want string) {
	t.Helper()
	if line, err := p.out.ReadString('\n'); strings.TrimSpace(line) != want {
		t.Fatalf("%q, %v, want %q", line, err, want)
	}
}

// await waits until n processes have drawn a ticket.
func await(t *testing.T, dir string, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if tickets, _ := filepath.Glob(filepath.Join(dir, "plugin", "ticket-*")); len(tickets) == n {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%d tickets, want %d", len(tickets), n)
		}
	}
}

// TestLimit checks that there are never more than the limit, with and without a folder, and that all are served in the
// order of arrival.
func TestLimit(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		p := &slots.Pool{Dir: dir}
		const limit = 3
		var running, most atomic.Int32
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 20 {
					release, err := p.Acquire(t.Context(), "plugin", "cli", limit, true)
					if err != nil {
						t.Error(err)
						return
					}
					if n := running.Add(1); n > most.Load() {
						most.Store(n)
					}
					running.Add(-1)
					release()
				}
			})
		}
		all.Wait()
		if most.Load() > limit {
			t.Errorf("%q: %d at a time", dir, most.Load())
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "plugin", "[td]*")); dir != "" && len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
}

func TestOrder(t *testing.T) {
	p := &slots.Pool{Dir: t.TempDir()}
	release, err := p.Acquire(t.Context(), "plugin", "cli", 1, true)
	if err != nil {
		t.Fatal(err)
	}
	var served []int
	var all sync.WaitGroup
	for i := range 5 {
		arrived := p.Waiting("plugin")
		all.Go(func() {
			release, err := p.Acquire(t.Context(), "plugin", "cli", 1, true)
			if err != nil {
				t.Error(err)
				return
			}
			served = append(served, i)
			release()
		})
		for p.Waiting("plugin") == arrived {
			time.Sleep(time.Millisecond)
		}
	}
	release()
	all.Wait()
	if fmt.Sprint(served) != "[0 1 2 3 4]" {
		t.Errorf("served in the order %v", served)
	}
}

// TestBusy checks that whoever waits gives up when its context ends, and that what runs within a call does not wait,
// but may come before those that do.
func TestBusy(t *testing.T) {
	p := &slots.Pool{Dir: t.TempDir()}
	release, err := p.Acquire(t.Context(), "plugin", "cli", 1, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Acquire(t.Context(), "plugin", "cli", 1, false); !errors.Is(err, slots.ErrBusy) {
		t.Errorf("without waiting: %v", err)
	}
	if free, err := p.Acquire(t.Context(), "other", "cli", 1, false); err != nil {
		t.Errorf("another name: %v", err)
	} else {
		free()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.Acquire(ctx, "plugin", "cli", 1, true); !errors.Is(err, slots.ErrBusy) {
		t.Errorf("after the deadline: %v", err)
	}
	if second, err := p.Acquire(t.Context(), "plugin", "cli", 2, false); err != nil {
		t.Errorf("a higher limit: %v", err)
	} else {
		second()
	}
	release()
	release() // has no effect
	if again, err := p.Acquire(t.Context(), "plugin", "cli", 1, false); err != nil {
		t.Errorf("after the release: %v", err)
	} else {
		again()
	}
}

// TestProcesses checks the order between processes, and that killed ones hold nothing and stop nobody.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	p := &slots.Pool{Dir: dir}
	holder := start(t, dir)
	holder.expect(t, "holds")
	if _, err := p.Acquire(t.Context(), "plugin", "cli", 1, false); !errors.Is(err, slots.ErrBusy) {
		t.Fatalf("a second holder: %v", err)
	}
	first := start(t, dir)
	await(t, dir, 1)
	killed := start(t, dir)
	await(t, dir, 2)
	last := start(t, dir)
	await(t, dir, 3)
	_ = killed.cmd.Process.Kill()
	_ = killed.cmd.Wait()
	_ = holder.cmd.Process.Kill() // releases nothing itself
	first.expect(t, "holds")
	_ = first.stdin.Close()
	last.expect(t, "holds")
	_ = last.stdin.Close()
	release, err := p.Acquire(t.Context(), "plugin", "cli", 1, true)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// TestDrawBesideSweeps checks that whoever draws a ticket gets one, although others may remove the file before it is
// locked.
func TestDrawBesideSweeps(t *testing.T) {
	dir := t.TempDir()
	done := make(chan struct{})
	var sweeps sync.WaitGroup
	for range 4 {
		other := &slots.Pool{Dir: dir}
		sweeps.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					other.Sweep("plugin")
				}
			}
		})
	}
	p := &slots.Pool{Dir: dir}
	missing := 0
	for range 2000 {
		if !p.Draws("plugin") {
			missing++
		}
	}
	close(done)
	sweeps.Wait()
	if missing > 0 {
		t.Errorf("%d of 2000 had no ticket", missing)
	}
}

// TestWithoutFolder checks that a folder that cannot be made bounds this process alone.
func TestWithoutFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &slots.Pool{Dir: file}
	release, err := p.Acquire(t.Context(), "plugin", "cli", 1, true)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := p.Acquire(t.Context(), "plugin", "cli", 1, false); !errors.Is(err, slots.ErrBusy) {
		t.Error(err)
	}
}

func BenchmarkAcquire(b *testing.B) {
	for name, dir := range map[string]string{"process": "", "machine": b.TempDir()} {
		b.Run(name, func(b *testing.B) {
			p := &slots.Pool{Dir: dir}
			for b.Loop() {
				release, err := p.Acquire(b.Context(), "plugin", "cli", 32, true)
				if err != nil {
					b.Fatal(err)
				}
				release()
			}
		})
	}
}

// TestTurns checks that callers which wait are served in turn, whatever the number of those that each has, and each in
// the order of arrival.
func TestTurns(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		p := &slots.Pool{Dir: dir}
		release, err := p.Acquire(t.Context(), "plugin", "a", 1, true)
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		var all sync.WaitGroup
		for _, caller := range strings.Fields("a1 a2 a3 a4 a5 b1 b2 c1") {
			waiting := p.Waiting("plugin")
			all.Go(func() {
				release, err := p.Acquire(t.Context(), "plugin", caller[:1], 1, true)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, caller)
				release()
			})
			for p.Waiting("plugin") == waiting {
				time.Sleep(time.Millisecond)
			}
		}
		release()
		all.Wait()
		if got := strings.Join(order, " "); got != "a1 b1 c1 a2 b2 a3 a4 a5" {
			t.Errorf("%q: %s", dir, got)
		}
	}
}

// TestTurnsOfProcesses checks that a process with one that waits comes next after one of a process with many.
func TestTurnsOfProcesses(t *testing.T) {
	dir := t.TempDir()
	p := &slots.Pool{Dir: dir}
	release, err := p.Acquire(t.Context(), "plugin", "a", 1, true)
	if err != nil {
		t.Fatal(err)
	}
	var served atomic.Int32
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if release, err := p.Acquire(t.Context(), "plugin", "a", 1, true); err != nil {
				t.Error(err)
			} else {
				served.Add(1)
				release()
			}
		})
	}
	await(t, dir, 1)
	other := start(t, dir)
	await(t, dir, 2)
	release()
	other.expect(t, "holds")
	if n := served.Load(); n != 1 {
		t.Errorf("%d came before the other process", n)
	}
	_ = other.stdin.Close()
	all.Wait()
}

// TestWake wakes the first turn of a queue, and all of them.
func TestWake(t *testing.T) {
	var q slots.Queue
	turns := []*slots.Turn{q.Join("a"), q.Join("b"), q.Join("a")}
	woken := func() (all string) {
		for _, turn := range turns {
			select {
			case <-turn.Woken:
				all += "1"
			default:
				all += "0"
			}
		}
		return all
	}
	for want, wake := range map[string]func(){"100": q.Wake, "111": q.WakeAll, "000": func() {}} {
		woken()
		if wake(); woken() != want {
			t.Errorf("not %s are woken", want)
		}
	}
	q.Leave(turns[0])
	if got := woken(); got != "010" {
		t.Errorf("%s are woken after the first one has left", got)
	}
}
