package keeper

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerCredentials returns the user and process at the other end of a Unix socket.
func peerCredentials(c net.Conn) (uid, pid int, err error) {
	err = control(c, func(fd int) error {
		cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err == nil {
			uid = int(cred.Uid)
			pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		}
		return err
	})
	return uid, pid, err
}

// killOrphans does nothing: on this system Chrome exits when its pipe closes.
func killOrphans(string, int) {}

// isKeeper returns false, because this system does not show a process's environment. replace then uses the socket's
// peer.
func isKeeper(int) bool { return false }

// isZombie returns false, because this system does not report it.
func isZombie(int) bool { return false }
