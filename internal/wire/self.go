package wire

import (
	"os"
	"os/exec"
)

// Self returns a command that starts this binary again; the caller selects its job in the environment. On Linux
// it is the binary of the running process, even if the file has been replaced since.
func Self() *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		cmd := exec.Command("/proc/self/exe")
		cmd.Args[0] = self
		return cmd
	}
	return exec.Command(self)
}
