package keeper

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// peer answers who is at the other end of a unix socket. For a client that is the
// process that made the socket.
func peer(c net.Conn) (uid, pid int, err error) {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Ucred
	var inner error
	if err := raw.Control(func(fd uintptr) {
		cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, 0, err
	}
	if inner != nil {
		return 0, 0, inner
	}
	return int(cred.Uid), int(cred.Pid), nil
}

// killOrphans ends browsers that run on a profile; with only above 0, just that process.
func killOrphans(profile string, only int) {
	flag := []byte("--user-data-dir=" + profile)
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || only > 0 && pid != only {
			continue
		}
		cmdline, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for arg := range bytes.SplitSeq(cmdline, []byte{0}) {
			if bytes.Equal(arg, flag) {
				syscall.Kill(pid, syscall.SIGKILL)
				break
			}
		}
	}
}

// isKeeper reports whether a process was started as a keeper.
func isKeeper(pid int) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if string(entry) == ChildVar+"="+childName {
			return true
		}
	}
	return false
}

// isZombie reports a process that has ended and was not yet reaped by its parent.
func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	end := bytes.LastIndexByte(stat, ')')
	return end >= 0 && len(stat) > end+2 && stat[end+2] == 'Z'
}
