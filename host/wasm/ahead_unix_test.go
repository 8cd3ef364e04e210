//go:build unix

package wasm

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLowPriority checks that a compiler that is told so lowers its priority before it reads the module.
func TestLowPriority(t *testing.T) {
	before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	must(t, err)
	if before == 10 {
		t.Skip("the priority of this process is that of the compiler already")
	}
	for _, low := range []bool{true, false} {
		argument, err := json.Marshal(compilation{Dir: t.TempDir(), CPU: time.Minute, Memory: 1 << 30, Low: low})
		must(t, err)
		e := New(Config{Child: compiler})
		cmd := e.childCommand(CompileJob, string(argument))
		stdin, err := cmd.StdinPipe()
		must(t, err)
		must(t, cmd.Start())
		for low {
			now, err := unix.Getpriority(unix.PRIO_PROCESS, cmd.Process.Pid)
			must(t, err)
			if now != before {
				break
			}
			runtime.Gosched()
		}
		must(t, stdin.Close())
		_ = cmd.Wait() // nothing is not a module
	}
}
