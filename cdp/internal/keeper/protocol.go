package keeper

import (
	"context"
	"errors"
	"os"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// protocolName names the files of a browser that is launched for its protocol. It is not a valid browser name.
const protocolName = "_protocol"

// FetchProtocol launches the browser cfg.Chrome on a disposable profile, reads its protocol description and kills
// it. If it is itself killed, sweeps remove its files as those of a keeper. Errors of the browser have
// CodeChromeLaunch.
func FetchProtocol(ctx context.Context, cfg Config) ([]byte, browser.Version, error) {
	cfg.setDefaults()
	if !supported {
		return nil, browser.Version{}, api.Errorf(api.CodeUnavailable, "no browser can be started on this platform")
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.LaunchTimeout)
	defer cancel()
	f := files{absolute(cfg.RunDir), protocolName}
	if err := ensurePrivateDir(f.dir); err != nil {
		return nil, browser.Version{}, api.RunDirError(err)
	}
	lock, err := f.tryLock()
	for errors.Is(err, errLocked) {
		if pause(ctx) != nil {
			return nil, browser.Version{}, api.ContextError(ctx, "waiting for another process that reads the protocol")
		}
		lock, err = f.tryLock()
	}
	if err != nil {
		return nil, browser.Version{}, api.RunDirError(err)
	}
	defer f.unlock(lock)
	if err := f.clean(); err != nil {
		return nil, browser.Version{}, api.RunDirError(err)
	}
	defer f.clean()
	if err := os.Mkdir(f.profile(), 0o700); err != nil {
		return nil, browser.Version{}, api.Errorf(api.CodeChromeLaunch, "cannot create the profile: %v", err)
	}
	temp, err := f.makeTemp()
	if err != nil {
		return nil, browser.Version{}, api.Errorf(api.CodeChromeLaunch, "cannot create the browser's temporary folder: %v",
			err)
	}
	document, version, err := browser.LaunchForProtocol(ctx, browser.LaunchConfig{
		Path: cfg.Chrome, Profile: f.profile(), Temp: temp, Timeout: cfg.LaunchTimeout,
	})
	if err != nil {
		return nil, version, api.Errorf(api.CodeChromeLaunch, "%v", err)
	}
	return document, version, nil
}
