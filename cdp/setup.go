package cdp

import (
	"errors"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/host"
)

// FindChrome returns the path of the browser that open would start, and a sentence that says why it is that one. The
// error is chrome_launch; it lists what was searched, and its first next step installs a browser.
func FindChrome(env func(string) string, configured string) (path, why string, err error) {
	found, err := findChrome("", env, configured)
	if err != nil {
		return "", "", err
	}
	return found.Path, found.Why(), nil
}

func findChrome(wanted string, env func(string) string, configured string) (browser.Found, error) {
	found, err := browser.Find(wanted, env(browser.EnvVar), configured)
	if err == nil {
		return found, nil
	}
	e := &host.Error{Code: host.ChromeLaunch, Message: err.Error(), Cause: err}
	var missing *browser.NotFoundError
	if errors.As(err, &missing) {
		e.Steps = []host.Step{host.OperatorStep(host.OpSystem, missing.Install), host.OperatorStep(host.OpDoctor)}
	}
	return browser.Found{}, e
}

// SocketPath returns the path of the socket on which the keeper of the default browser listens.
func SocketPath(runDir string) string { return keeper.SocketPath(runDir, "") }

// Keepers returns the names of the open browsers, and of those whose keeper died and left files.
func Keepers(runDir string) (open, stale []string, err error) {
	entries, err := keeper.List(runDir)
	for _, e := range entries {
		if e.Alive {
			open = append(open, e.Browser)
		} else {
			stale = append(stale, e.Browser)
		}
	}
	return open, stale, err
}

// Supported reports whether browsers can be opened on this platform.
func Supported() bool { return keeper.Supported() }
