package browser

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// stackSize is how much stack a browser's threads may use. Chrome lays elements out recursively: with the usual 8 MiB,
// some 2,700 elements in each other end the renderer.
const stackSize = 128 << 20

func childAttributes() *syscall.SysProcAttr {
	var limit unix.Rlimit // of this process, which the browser inherits
	if unix.Getrlimit(unix.RLIMIT_STACK, &limit) == nil && limit.Cur < stackSize {
		_ = unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: min(stackSize, limit.Max), Max: limit.Max})
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap waits for the browser to exit, then kills the rest of its process group. It does so before it reaps the
// leader: until then the kernel cannot give the group's id to another process.
func (c *child) reap(cmd *exec.Cmd) {
	for unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	syscall.Kill(-c.pid, syscall.SIGKILL)
	c.mu.Lock()
	defer c.mu.Unlock()
	cmd.Wait()
	c.reaped = true
	c.exitCode = cmd.ProcessState.ExitCode()
}

// smallSharedMemory reports whether /dev/shm is too small for Chrome's renderers, which would crash. Containers
// have 64 MB by default.
func smallSharedMemory() bool {
	var fs unix.Statfs_t
	return unix.Statfs("/dev/shm", &fs) == nil && fs.Bavail*uint64(fs.Bsize) < 512<<20
}
