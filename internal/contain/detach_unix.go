//go:build unix

package contain

import (
	"os/exec"
	"syscall"
)

func detach(cmd *exec.Cmd) {
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}
