//go:build unix

package browser

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const needsDisplay = runtime.GOOS != "darwin"

// child is a browser process that leads its own process group.
type child struct {
	pid      int
	done     chan struct{}
	exitCode int // valid once done is closed

	mu     sync.Mutex
	reaped bool
}

// startChild starts the browser with the debugging pipe on its descriptors 3 and 4. It returns our ends of the pipe:
// from carries the browser's messages, to carries ours.
func startChild(cfg LaunchConfig, args []string, stderr io.Writer) (
	c *child, from io.ReadCloser, to io.WriteCloser, err error,
) {
	var pipes [2][2]*os.File // the browser's descriptors 3 (it reads) and 4 (it writes), each as its read and write end
	for i := range pipes {
		if pipes[i][0], pipes[i][1], err = os.Pipe(); err != nil {
			closeAll(pipes[:i])
			return nil, nil, nil, err
		}
	}
	cmd := exec.Command(cfg.Path, args...)
	// Without this variable Chrome keeps its crash reports in the user's own folder.
	cmd.Env = append(os.Environ(), "BREAKPAD_DUMP_LOCATION="+filepath.Join(cfg.Profile, "Crash Reports"))
	if cfg.Temp != "" {
		cmd.Env = append(cmd.Env, "TMPDIR="+cfg.Temp)
	}
	// A helper process that outlives the browser may hold its stderr open.
	cmd.Stderr, cmd.WaitDelay = stderr, stderrTimeout
	cmd.ExtraFiles = []*os.File{pipes[0][0], pipes[1][1]}
	cmd.SysProcAttr = childAttributes()

	c = &child{done: make(chan struct{}), exitCode: -1}
	started := make(chan error, 1)
	go func() {
		// PR_SET_PDEATHSIG refers to the parent thread. So the thread that starts the browser must live as long as
		// this process.
		runtime.LockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		c.pid = cmd.Process.Pid
		started <- nil
		c.reap(cmd)
		close(c.done)
	}()
	if err := <-started; err != nil {
		closeAll(pipes[:])
		return nil, nil, nil, err
	}
	pipes[0][0].Close()
	pipes[1][1].Close()
	return c, pipes[1][0], pipes[0][1], nil
}

// stderrTimeout bounds the wait for the end of a browser's stderr after its exit.
const stderrTimeout = 500 * time.Millisecond

func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		syscall.Kill(-c.pid, syscall.SIGKILL)
	}
}

func isRoot() bool { return os.Geteuid() == 0 }

func closeAll(ends [][2]*os.File) {
	for _, e := range ends {
		e[0].Close()
		e[1].Close()
	}
}
