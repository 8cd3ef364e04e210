package tenant

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// isFromBrowser reports whether the other end of a loopback connection is a process of the group that the browser
// leads. If the kernel does not let this process inspect the browser's processes, the other end must at least belong
// to this user.
func isFromBrowser(conn net.Conn, chromePID int) bool {
	from, okFrom := conn.RemoteAddr().(*net.TCPAddr)
	to, okTo := conn.LocalAddr().(*net.TCPAddr)
	if !okFrom || !okTo {
		return false
	}
	uid, inode := lookupSocket(from, to)
	if inode == "" || uid != os.Geteuid() {
		return false
	}
	unreadable := false
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		if group, err := syscall.Getpgid(pid); err != nil || group != chromePID {
			continue
		}
		holds, err := holdsSocket(folder, inode)
		if holds {
			return true
		}
		unreadable = unreadable || err != nil
	}
	return unreadable
}

func holdsSocket(process, inode string) (bool, error) {
	folder, err := os.Open(process + "/fd")
	if err != nil {
		return false, err
	}
	defer folder.Close()
	fds, err := folder.Readdirnames(-1)
	for _, fd := range slices.Backward(fds) { // a new connection has a high number
		if link, err := os.Readlink(process + "/fd/" + fd); err == nil && link == "socket:["+inode+"]" {
			return true, nil
		}
	}
	return false, err
}

// lookupSocket finds the remote end of a connection in the kernel's table. It returns its user and inode; the inode
// is "" if the table does not have it.
func lookupSocket(from, to *net.TCPAddr) (uid int, inode string) {
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		return 0, ""
	}
	defer table.Close()
	ends := procNetAddress(from) + " " + procNetAddress(to)
	for lines := bufio.NewScanner(table); lines.Scan(); {
		// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
		if !strings.Contains(lines.Text(), ends) {
			continue
		}
		if f := strings.Fields(lines.Text()); len(f) > 9 && f[1]+" "+f[2] == ends {
			uid, err := strconv.Atoi(f[7])
			if err != nil || f[9] == "0" {
				return 0, "" // already closed
			}
			return uid, f[9]
		}
	}
	return 0, ""
}

// procNetAddress formats an address as in that table: the number in memory order, then the port.
func procNetAddress(a *net.TCPAddr) string {
	ip := a.IP.To4()
	if ip == nil {
		return ""
	}
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip), a.Port)
}
