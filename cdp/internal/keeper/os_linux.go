package keeper

import (
	"bytes"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// peerCredentials returns the user and process at the other end of a Unix socket. For a client that is the process
// that created the socket.
func peerCredentials(c net.Conn) (uid, pid int, err error) {
	err = control(c, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			uid, pid = int(cred.Uid), int(cred.Pid)
		}
		return err
	})
	return uid, pid, err
}

// killOrphans kills the processes of browsers that use a profile, and waits until they are gone, because they may
// still write to it. A group above 0 limits it to that process group. Chrome's helpers also name the profile on
// their command line, some with spaces between arguments; the crash handler runs in a session of its own and names
// the profile's crash folder.
func killOrphans(profile string, group int) {
	flags := [][]byte{[]byte("--user-data-dir=" + profile), []byte("--database=" + profile + "/Crash Reports")}
	killed := map[int]bool{}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		// A process that ends loses its command line first.
		maps.DeleteFunc(killed, func(pid int, _ bool) bool { return isZombie(pid) })
		paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range paths {
			cmdline, err := os.ReadFile(path)
			if err != nil || !slices.ContainsFunc(flags, func(flag []byte) bool {
				_, after, ok := bytes.Cut(cmdline, flag)
				return ok && (len(after) == 0 || after[0] == 0 || after[0] == ' ')
			}) {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				continue
			}
			if group > 0 {
				if leads, err := syscall.Getpgid(pid); err != nil || leads != group {
					continue
				}
			}
			killed[pid] = true
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(killed) == 0 {
			return
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

// isZombie reports whether a process has exited and was not yet reaped by its parent. A process that does not exist
// counts as one.
func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	end := bytes.LastIndexByte(stat, ')')
	return end >= 0 && len(stat) > end+2 && stat[end+2] == 'Z'
}
