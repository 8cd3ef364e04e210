//go:build !linux && !darwin

package keeper

import (
	"errors"
	"net"
	"os"
	"os/exec"
)

const supported = false

var errUnsupported = errors.New("not available on this platform")

func peerCredentials(net.Conn) (uid, pid int, err error) { return 0, 0, errUnsupported }

func killOrphans(string, int) {}

func isKeeper(int) bool { return false }

func detach(*exec.Cmd) {}

func prepareChild(...int) {}

func kill(int) error { return errUnsupported }

func processExists(int) bool { return false }

var endSignals = []os.Signal{os.Interrupt}

var ignoredSignals []os.Signal

func isZombie(int) bool { return false }

func openLock(string) (*os.File, error) { return nil, errUnsupported }

func flock(*os.File) error { return errUnsupported }
