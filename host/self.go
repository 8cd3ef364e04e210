package host

import (
	"os"
	"os/exec"
)

// SelfCommand starts this binary again, for a job that its caller names in the environment. Where the system can, it
// is the very binary that runs now: another may stand in its place since.
func SelfCommand() *exec.Cmd {
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
