//go:build !unix

package browser

import (
	"errors"
	"io"
)

const needsDisplay = false

type child struct {
	pid      int
	done     chan struct{}
	exitCode int
}

func startChild(LaunchConfig, []string, io.Writer) (*child, io.ReadCloser, io.WriteCloser, error) {
	return nil, nil, nil, errors.New("launching a browser is not available on this platform: " +
		"the debugging pipe needs inherited file descriptors")
}

func (c *child) kill() {}

func isRoot() bool { return false }

func smallSharedMemory() bool { return false }
