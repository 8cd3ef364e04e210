package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley/host/wasm"
)

// runnerKills returns how often processes of isolated calls are killed: PARLEY_HAMMER=1 does it 310 times.
func runnerKills() int {
	if os.Getenv("PARLEY_HAMMER") != "" {
		return 310
	}
	return 6
}

// TestHammerRunnerKills kills the command, the runner or the compiler of isolated calls at random moments. No command
// hangs, the next one works, and nothing is left in the end.
func TestHammerRunnerKills(t *testing.T) {
	if missing := wasm.MissingIsolation(false); len(missing) > 0 {
		t.Skip(missing)
	}
	t.Parallel()
	h := newHome(t)
	guest, err := filepath.Abs("../../../../testdata/wasm/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	h.must("plugin", "install", guest)
	call := []string{"echo", "echo", "--params", `{"value":42}`, "--isolate", "process"}
	for i := range runnerKills() {
		victim := []string{"command", "runner", "compiler"}[i%3]
		if victim == "compiler" {
			_ = os.RemoveAll(filepath.Join(h.dir, "cache", "wasm"))
		}
		cmd := h.command(call...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(h.random.IntN(60)) * time.Millisecond) // at a random moment
		for _, p := range processesOf(h.dir) {
			isRunner := strings.Contains(p.command, filepath.Join(h.dir, "run"))
			isCompiler := strings.Contains(p.command, filepath.Join(h.dir, "cache", "wasm"))
			if victim == "command" && p.pid == cmd.Process.Pid || victim == "runner" && isRunner ||
				victim == "compiler" && isCompiler {
				_ = syscall.Kill(p.pid, syscall.SIGKILL)
			}
		}
		_ = h.ended(cmd)
		if got := h.must(call...); got != "{\"value\":42}\n" {
			t.Fatalf("after a kill of the %s: %q", victim, got)
		}
	}
	h.must("runner", "stop")
	h.requireNothingLeft()
}
