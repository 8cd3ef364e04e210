//go:build linux || darwin

package keeper

import (
	"cmp"
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
)

const supported = true

// detach separates a keeper from the terminal and the signals of its starter.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// prepareChild makes new files private and keeps the inherited descriptors from Chrome.
func prepareChild(fds ...int) {
	syscall.Umask(0o077)
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
	}
}

// control calls a function with the descriptor of a Unix socket.
func control(c net.Conn, run func(fd int) error) error {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = run(int(fd)) })
	return cmp.Or(err, failed)
}

func kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }

func processExists(pid int) bool { return syscall.Kill(pid, 0) == nil }

var endSignals = []os.Signal{syscall.SIGTERM, syscall.SIGINT}

var ignoredSignals = []os.Signal{syscall.SIGHUP, syscall.SIGPIPE}

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

func flock(file *os.File) error {
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}
