//go:build unix && !linux

package browser

import (
	"os/exec"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reap waits for the browser to exit, then kills the rest of its process group.
func (c *child) reap(cmd *exec.Cmd) {
	cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	syscall.Kill(-c.pid, syscall.SIGKILL)
	c.reaped = true
	c.exitCode = cmd.ProcessState.ExitCode()
}

func smallSharedMemory() bool { return false }
