package browser

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap waits for the browser's end and ends what it left of its process group:
// before the leader is reaped, for until then the group cannot be anybody else's.
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

// smallSharedMemory reports a /dev/shm in which Chrome's renderers crash, as in
// containers with the default of 64 MB.
func smallSharedMemory() bool {
	var fs unix.Statfs_t
	return unix.Statfs("/dev/shm", &fs) == nil && fs.Bavail*uint64(fs.Bsize) < 512<<20
}
