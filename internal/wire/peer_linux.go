package wire

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Peer returns the id of the process at the other end of a unix socket. For the side that dialed, this is the
// listener's process. It returns an error if the process belongs to another user.
func Peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	switch {
	case failed != nil:
		return 0, failed
	case int(peer.Uid) != os.Getuid():
		return 0, fmt.Errorf("the process at the other end of the socket belongs to the user %d, not to %d", peer.Uid,
			os.Getuid())
	}
	return int(peer.Pid), nil
}
