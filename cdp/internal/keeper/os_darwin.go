package keeper

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerCredentials answers who is at the other end of a unix socket.
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

// killOrphans has nothing to do: Chrome ends when its pipe closes.
func killOrphans(string, int) {}

// isKeeper cannot be known here; the socket's peer is.
func isKeeper(int) bool { return false }

// isZombie cannot be told here.
func isZombie(int) bool { return false }
