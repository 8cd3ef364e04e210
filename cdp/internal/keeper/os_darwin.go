package keeper

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerCredentials returns the user and process at the other end of a Unix socket.
func peerCredentials(c net.Conn) (uid, pid int, err error) {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Xucred
	var inner error
	if err := raw.Control(func(fd uintptr) {
		if cred, inner = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED); inner == nil {
			pid, inner = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		}
	}); err != nil {
		return 0, 0, err
	}
	if inner != nil {
		return 0, 0, inner
	}
	return int(cred.Uid), pid, nil
}

// killOrphans does nothing: on this system Chrome exits when its pipe closes.
func killOrphans(string, int) {}

// isKeeper returns false, because this system does not show a process's environment. replace then uses the socket's
// peer.
func isKeeper(int) bool { return false }

// isZombie returns false, because this system does not report it.
func isZombie(int) bool { return false }
