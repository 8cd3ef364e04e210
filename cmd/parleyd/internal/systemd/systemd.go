// Package systemd communicates with the service manager: it takes the sockets that the manager passes, and tells it
// the state of the service. Without systemd it does nothing.
package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Manager is the service manager. The zero value stands for no service manager.
type Manager struct {
	address *net.UnixAddr
	// Watchdog is the interval at which the manager expects a notification. Zero means never.
	Watchdog time.Duration
}

// Find returns the manager that started this process. Processes that this one starts have none.
func Find() Manager {
	var m Manager
	if path := os.Getenv("NOTIFY_SOCKET"); path != "" {
		m.address = &net.UnixAddr{Name: path, Net: "unixgram"}
	}
	pid := os.Getenv("WATCHDOG_PID")
	if microseconds, err := strconv.Atoi(os.Getenv("WATCHDOG_USEC")); err == nil &&
		(pid == "" || pid == strconv.Itoa(os.Getpid())) {
		m.Watchdog = time.Duration(microseconds) * time.Microsecond
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"} {
		_ = os.Unsetenv(name)
	}
	return m
}

// notifyTime is how long the service waits for a manager that does not read.
const notifyTime = time.Second

// Notify tells the manager a state, such as "READY=1".
func (m Manager) Notify(state ...string) {
	if m.address == nil {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, m.address)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(notifyTime))
	_, _ = conn.Write([]byte(strings.Join(state, "\n")))
}

// Reloading tells the manager that the service begins to reload now. "READY=1" ends that.
func (m Manager) Reloading() {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	m.Notify("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/int64(time.Microsecond)))
}

// firstSocket is the number of the first descriptor that systemd passes.
const firstSocket = 3

// Sockets returns the listeners that systemd passes, by the FileDescriptorName of their socket unit. Child processes
// do not get them.
func (m Manager) Sockets() (map[string][]net.Listener, error) {
	count, _ := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	names := strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		defer os.Unsetenv(name)
	}
	listeners := map[string][]net.Listener{}
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return listeners, nil
	}
	for i := range count {
		name := ""
		if i < len(names) {
			name = names[i]
		}
		file := os.NewFile(uintptr(firstSocket+i), name)
		listener, err := net.FileListener(file)
		_ = file.Close() // the listener has a copy, which children do not inherit
		if err != nil {
			return nil, fmt.Errorf("socket %d of systemd, %q: %w", i+1, name, err)
		}
		listeners[name] = append(listeners[name], listener)
	}
	return listeners, nil
}
