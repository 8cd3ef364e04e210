package contain

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Start starts a command without the privileges of this process: it has no capability and cannot get one, not even as
// root or from a file that it executes.
func Start(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		// Capabilities belong to a thread. This thread gives them up, and ends with its goroutine.
		runtime.LockOSThread()
		err := dropCapabilities()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}

// dropCapabilities takes all capabilities from this thread and from programs that it executes.
func dropCapabilities() error {
	for c := uintptr(0); unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) == nil; c++ { // this requires a capability itself
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // empty without inheritable ones
	// With no_new_privs, neither an executed file nor root gets capabilities that this thread does not have.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}
