// Package contain starts processes of this program that have only what they need, and takes the rest from them. It has
// two halves: [Command] in the process that starts another, and [Process] in the started one.
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

// Rights are what a process keeps besides its memory, its threads and the descriptors that it has.
type Rights struct {
	// Folders are the folders whose files it may open. Without any, no system call that takes a path works.
	Folders []Folder
	// Accept lets it accept connections on a socket on which it listens already.
	Accept bool
}

// Bounds bound what a process uses. Zero fields are not bounded; a lower bound that is already set stays in force.
type Bounds struct {
	CPU       time.Duration // in seconds, rounded up
	Memory    uint64        // bytes of data, which address space that is merely reserved is not
	OpenFiles uint64
	FileBytes uint64 // of each file that it writes
}

// Command prepares a command that starts this program for a job: the child gets no variable of the user, only what it
// needs to start, a working folder that is not the user's, and neither the terminal nor its signals.
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
