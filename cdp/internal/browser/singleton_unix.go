//go:build unix

package browser

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// RemoveSingleton removes the folder that a killed Chrome leaves in the temporary
// directory: the socket on which it would take over a second start. Profile links to it.
// A folder of a browser that lives, or of another user, is left alone.
func RemoveSingleton(profile string) { removeSingleton(singleton(profile)) }

// singleton answers where the socket of the browser on a profile is, "" if nowhere.
func singleton(profile string) string {
	socket, err := os.Readlink(filepath.Join(profile, "SingletonSocket"))
	if err != nil || !filepath.IsAbs(socket) {
		return ""
	}
	return socket
}

// removeSingleton removes a socket, its cookie and the folder, when that is then empty.
func removeSingleton(socket string) {
	if socket == "" {
		return
	}
	dir := filepath.Dir(socket)
	st, err := os.Lstat(dir)
	if err != nil || !st.IsDir() {
		return
	}
	base := strings.TrimPrefix(filepath.Base(dir), ".")
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || int(sys.Uid) != os.Geteuid() || !strings.HasPrefix(base, "org.") && !strings.HasPrefix(base, "com.") {
		return
	}
	if listens(socket) {
		return
	}
	os.Remove(socket)
	os.Remove(filepath.Join(dir, "SingletonCookie"))
	os.Remove(dir)
}

// listens reports whether a browser lives behind a socket. One that is just dying may
// still take a connection, but then closes it at once.
func listens(socket string) bool {
	for end := time.Now().Add(dyingTime); time.Now().Before(end); {
		conn, err := net.DialTimeout("unix", socket, dyingTime)
		if err != nil {
			return false
		}
		conn.SetReadDeadline(end)
		conn.Read(make([]byte, 1))
		conn.Close()
	}
	return true
}

const dyingTime = time.Second
