//go:build !linux

package contain

import "os/exec"

// Start starts a command. Only Linux has capabilities that it takes away.
func Start(cmd *exec.Cmd) error { return cmd.Start() }
