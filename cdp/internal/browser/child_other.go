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
	drained  chan struct{}
	exitCode int
}

func startChild(string, string, []string, *tail) (*child, io.ReadCloser, io.WriteCloser, error) {
	return nil, nil, nil, errors.New("launching a browser is not available on this platform: the debugging pipe needs inherited file descriptors")
}

func (c *child) kill() {}

func isRoot() bool { return false }

func smallSharedMemory() bool { return false }

// RemoveSingleton has nothing to do where no browser is launched.
func RemoveSingleton(string) {}

func singleton(string) string { return "" }

func removeSingleton(string) {}
