// Package contain starts processes of this program that have only what they need, and takes everything else from
// them. It has two halves: [Command] in the process that starts another, and [Process] in the started one.
package contain

import (
	"os"
	"os/exec"
	"time"
)

// Folder is a folder whose files a process may open.
type Folder struct {
	Path     string
	Writable bool
}

// Rights are what a process keeps, besides its memory, its threads and its open descriptors.
type Rights struct {
	// Folders are the folders whose files it may open. Without any, no system call that takes a path works.
	Folders []Folder
	// Accept lets it accept connections on a socket on which it already listens.
	Accept bool
}

// Bounds bound what a process uses. Zero fields are not bounded; a lower bound that is already set stays in force.
type Bounds struct {
	CPU       time.Duration // in seconds, rounded up
	Memory    uint64        // bytes of data; address space that is only reserved does not count
	OpenFiles uint64
	FileBytes uint64 // bytes of each file that it writes
}

// Command prepares a command that starts this program for a job. The child gets only the variables that it needs to
// start, and none of the user's. Its working folder is not the user's, and it gets neither the terminal nor the
// terminal's signals.
func Command(cmd *exec.Cmd, variable string) *exec.Cmd {
	cmd.Env = append(cmd.Env, variable, "GOTRACEBACK=none")
	for _, needed := range []string{"SYSTEMROOT", "GOCOVERDIR"} {
		if v := os.Getenv(needed); v != "" {
			cmd.Env = append(cmd.Env, needed+"="+v)
		}
	}
	detach(cmd)
	return cmd
}
