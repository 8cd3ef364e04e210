package keeper

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
)

const pollInterval = 20 * time.Millisecond

// Start connects to the keeper of cfg.Browser, and starts one if there is none. Concurrent starts share one keeper.
// The caller should show [Client.Notes] to the user.
func Start(ctx context.Context, cfg Config) (*Client, error) {
	cfg.setDefaults()
	if !supported {
		return nil, api.Errorf(api.CodeUnavailable, "opening a browser needs inherited file descriptors and file locks, "+
			"which are not available on this platform")
	}
	if err := CheckName(cfg.Browser); err != nil {
		return nil, err
	}
	if cfg.RunDir == "" || cfg.Chrome == "" && cfg.Attach == "" {
		return nil, api.Errorf(api.CodeInvalidArgs, "Start requires a run folder, and a browser to launch or to attach to")
	}
	cfg.RunDir = absolute(cfg.RunDir)
	if cfg.UserDataDir != "" {
		cfg.UserDataDir = absolute(cfg.UserDataDir)
	}
	if err := protect.Dir(cfg.RunDir); err != nil {
		return nil, api.RunDirError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.LaunchTimeout+15*time.Second)
	defer cancel()
	f := files{cfg.RunDir, cfg.Browser}
	var notes []string
	for {
		c, err := connect(ctx, f, cfg.Version)
		if err == nil {
			if cfg.Attach != "" && cfg.Attach != c.hello.Attach { // otherwise calls would open pages in the wrong browser
				c.Close()
				return nil, host.Errorf(host.AlreadyExists, "browser %q is open already, and is not that at %s: close it first, "+
					"or use another browser name", cfg.Browser, manifest.Clip(cfg.Attach, 200))
			}
			c.notes = append(notes, differences(cfg, c.hello)...)
			return c, nil
		}
		if unusable, ok := errors.AsType[*unusableKeeperError](err); ok {
			if err := replace(ctx, f, unusable); err != nil {
				return nil, err
			}
			notes = append(notes, unusable.note())
			continue
		}
		if err := f.foreignSocketError(err); err != nil {
			return nil, err
		}
		lock, err := f.tryLock()
		switch {
		case errors.Is(err, errLocked):
			// Another process starts the keeper, or it is just exiting.
			if err := pause(ctx); err != nil {
				return nil, api.Errorf(api.CodeChromeLaunch, "process %d is starting or closing browser %q and does not finish; "+
					"close the browser, which kills that process", f.lockPID(), cfg.Browser)
			}
			continue
		case err != nil:
			return nil, api.RunDirError(err)
		}
		if err := spawn(ctx, cfg, f, lock); err != nil {
			f.clean()
			f.unlock(lock)
			return nil, err
		}
		lock.Close() // the keeper has inherited it
		c, err = connect(ctx, f, cfg.Version)
		if err != nil {
			return nil, api.Errorf(api.CodeChromeConnection, "the keeper has started but cannot be reached: %v", err)
		}
		c.started, c.notes = true, notes
		return c, nil
	}
}

// spawn starts the keeper and waits until it is ready. If it fails, no keeper is left.
func spawn(ctx context.Context, cfg Config, f files, lock *os.File) error {
	if err := f.clean(); err != nil {
		return api.RunDirError(err)
	}
	Sweep(f.dir) // of other names; failures there do not concern this browser
	logFile, _, err := protect.Append(f.log())
	if err != nil {
		return api.RunDirError(err)
	}
	defer logFile.Close()
	if err := logFile.Truncate(0); err != nil {
		return api.RunDirError(err)
	}
	ready, childEnd, err := os.Pipe()
	if err != nil {
		return api.Errorf(api.CodeInternal, "%v", err)
	}
	defer ready.Close()
	// The keeper ignores its arguments. They are for people who read a list of processes.
	cmd := wire.Self()
	cmd.Args = append(cmd.Args, childName, cfg.Browser, cfg.RunDir)
	cmd.Env = append(os.Environ(), ChildVar+"="+childName)
	cmd.Stdin = bytes.NewReader(scan.Marshal(cfg))
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.ExtraFiles = []*os.File{childEnd, lock}
	detach(cmd)
	err = cmd.Start()
	childEnd.Close()
	if err != nil {
		return api.Errorf(api.CodeInternal, "cannot start the keeper: %v", err)
	}
	exited := make(chan struct{})
	go func() {
		cmd.Wait()
		close(exited)
	}()
	stop := context.AfterFunc(ctx, func() { ready.SetReadDeadline(time.Now()) })
	defer stop()
	line, err := bufio.NewReader(ready).ReadBytes('\n')
	var failed *api.Error
	if err == nil {
		err = json.Unmarshal(line, &failed)
	}
	if err == nil && failed == nil {
		return nil
	}
	if err != nil {
		failed = api.Errorf(api.CodeChromeLaunch, "the keeper exited before it was ready")
		if words := lastLines(f.log(), 5); words != "" {
			failed.Message += "; its last output:\n  " + words
		}
		if ctx.Err() != nil {
			failed = api.ContextError(ctx, "starting the browser")
			failed.Code = api.CodeChromeLaunch
		}
		cmd.Process.Kill()
	}
	select {
	case <-exited:
	case <-time.After(10 * time.Second):
		cmd.Process.Kill()
		<-exited
	}
	return failed
}

// Dial connects to a running keeper. If there is none, it removes the files of a dead one, and the error has
// CodeChromeConnection.
func Dial(ctx context.Context, runDir, name, version string) (*Client, error) {
	f := files{absolute(runDir), cmp.Or(name, DefaultBrowser)}
	if err := CheckName(f.name); err != nil {
		return nil, err
	}
	// A keeper that is just exiting, or was just killed, holds its lock a moment longer.
	for patience := time.Now().Add(endingTimeout); ; {
		c, err := connect(ctx, f, version)
		if err == nil {
			return c, nil
		}
		if unusable, ok := errors.AsType[*unusableKeeperError](err); ok {
			return nil, api.Errorf(api.CodeChromeConnection, "%s; opening or closing the browser replaces it", unusable.Error())
		}
		if err := f.foreignSocketError(err); err != nil {
			return nil, err
		}
		if swept, _ := f.sweep(); swept {
			return nil, api.Errorf(api.CodeChromeConnection,
				"browser %q is no longer open: its keeper was killed; its files were removed",
				f.name)
		}
		if !f.isLocked() {
			return nil, api.Errorf(api.CodeChromeConnection, "no browser %q is open", f.name)
		}
		if time.Now().After(patience) || pause(ctx) != nil {
			return nil, api.Errorf(api.CodeChromeConnection, "browser %q is just being opened or closed; try again in a moment",
				f.name)
		}
	}
}

// foreignSocketError returns an error if err reports a foreign file at the socket's path and the keeper is running.
// The files of a dead keeper are removed instead.
func (f files) foreignSocketError(err error) error {
	if planted, ok := errors.AsType[*socketError](err); ok && f.isLocked() {
		return api.Errorf(api.CodeChromeConnection, "%v, so it is not used; remove it and close browser %q", planted, f.name)
	}
	return nil
}

const endingTimeout = 500 * time.Millisecond

// Stop closes a browser, whatever state its keeper is in, and waits until its processes and files are gone. It
// reports whether there was a browser.
func Stop(ctx context.Context, runDir, name, version string) (bool, error) {
	f := files{absolute(runDir), cmp.Or(name, DefaultBrowser)}
	if err := CheckName(f.name); err != nil {
		return false, err
	}
	asking, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	// A keeper that does not exit on request is killed, however little time the caller has left.
	force, cancelForce := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout+20*time.Second)
	defer cancelForce()
	for {
		c, err := connect(asking, f, version)
		var unusable *unusableKeeperError
		switch {
		case err == nil:
			err = c.CloseBrowser(asking)
			c.Close()
			if err == nil {
				Sweep(f.dir)
				return true, nil
			}
			unusable = &unusableKeeperError{pid: c.hello.PID, hung: true}
		case errors.As(err, &unusable):
		case !f.isLocked():
			swept, err := f.sweep()
			Sweep(f.dir) // of other names
			return swept, err
		case pause(asking) == nil:
			continue // the keeper is just starting or exiting
		default:
			unusable = &unusableKeeperError{pid: f.lockPID(), hung: true}
		}
		err = replace(force, f, unusable)
		return err == nil, err
	}
}

const stopTimeout = 8 * time.Second

// unusableKeeperError reports a running keeper that this program cannot use.
type unusableKeeperError struct {
	pid     int
	wire    int
	version string
	hung    bool // it does not send its hello
	silent  bool // it does not understand a hello of this version
}

func (o *unusableKeeperError) Error() string {
	if o.hung {
		return fmt.Sprintf("the browser's keeper (process %d) does not respond", o.pid)
	}
	return fmt.Sprintf("the browser's keeper (process %d, version %s) uses wire version %d, this program version %d",
		o.pid, cmp.Or(o.version, "unknown"), o.wire, WireVersion)
}

func (o *unusableKeeperError) note() string {
	if o.hung {
		return fmt.Sprintf("a keeper that did not respond (process %d) was replaced; its pages are closed", o.pid)
	}
	return fmt.Sprintf("a keeper of another version (%s, wire version %d) was replaced; its pages are closed",
		cmp.Or(o.version, "unknown"), o.wire)
}

// replace ends a keeper. It first asks the keeper to exit. It kills a keeper that does not comply only if its process
// is known for certain.
func replace(ctx context.Context, f files, o *unusableKeeperError) error {
	socket := f.socket()
	asked, pid := false, 0
	if conn, err := net.DialTimeout("unix", socket, time.Second); err == nil {
		_, pid, _ = peerCredentials(conn)
		if !o.hung && !o.silent {
			conn.SetDeadline(time.Now().Add(helloTimeout))
			w := wire.NewConn(conn, conn)
			asked = w.SendJSON(wire.KindHello, hello{Wire: WireVersion, Replace: true}) == nil
			readHello(w)
		}
		conn.Close()
	}
	if asked && f.awaitRelease(ctx, 6*time.Second) {
		_, err := f.sweep()
		return err
	}
	// The kernel reports the process that created the socket. Without it, the process's environment must show a
	// keeper.
	owner := cmp.Or(f.lockPID(), pid, o.pid) // the lock file is empty if the disk was full
	if owner > 0 && f.isLocked() {
		if pid != owner && !isKeeper(owner) {
			return api.Errorf(api.CodeInternal, "the lock %s names process %d, which may not be a keeper; kill it if it is one",
				f.lock(), owner)
		}
		kill(owner)
	}
	if !f.awaitRelease(ctx, 5*time.Second) {
		return api.Errorf(api.CodeInternal, "keeper process %d could not be killed; end it by hand", owner)
	}
	_, err := f.sweep()
	return err
}

// awaitRelease waits until no process holds the lock. It reports whether that happened in time.
func (f files) awaitRelease(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for f.isLocked() {
		if pause(ctx) != nil {
			return false
		}
	}
	return true
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(pollInterval):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// differences returns a note about the options that an already open browser does not have.
func differences(cfg Config, h hello) (notes []string) {
	var ignored []string
	if cfg.Headed && !h.Headed {
		ignored = append(ignored, "headed")
	}
	if cfg.UserDataDir != "" && filepath.Clean(cfg.UserDataDir) != h.Profile {
		ignored = append(ignored, "user_data_dir")
	}
	if cfg.FoundBy == browser.FromFlag && cfg.Attach == "" && cfg.Chrome != h.Chrome {
		ignored = append(ignored, "chrome")
	}
	if len(ignored) > 0 {
		notes = append(notes, fmt.Sprintf("browser %q is open already, so %s had no effect; "+
			"close it first, or use another browser name", cfg.Browser, strings.Join(ignored, ", ")))
	}
	return notes
}

// Supported reports whether keepers are available on this platform.
func Supported() bool { return supported }

// protocolName is the base name of the files of a browser that is launched for its protocol. It is not a valid
// browser name.
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
	if err := protect.Dir(f.dir); err != nil {
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

// Config selects a browser and how to open it. RunDir and either Chrome or Attach must be set.
type Config struct {
	// RunDir is the folder of all keepers' files. It is created with mode 0700.
	RunDir string `json:"run_dir"`
	// Browser is the name, [A-Za-z0-9][A-Za-z0-9_-]{0,63}. Empty means "default".
	Browser string `json:"browser"`
	// Version is the program's version, shown to other versions.
	Version string `json:"version,omitempty"`

	// Chrome is the executable. FoundBy is browser.Found.From, and Why explains it in a sentence.
	Chrome  string `json:"chrome,omitempty"`
	FoundBy string `json:"found_by,omitempty"`
	Why     string `json:"why,omitempty"`
	// Headed shows windows.
	Headed bool `json:"headed,omitempty"`
	// UserDataDir is the profile to use and keep. Empty means a temporary one.
	UserDataDir string `json:"user_data_dir,omitempty"`
	// Args are further flags for Chrome.
	Args []string `json:"args,omitempty"`
	// LaunchTimeout bounds launch and attach. Zero means 30 s.
	LaunchTimeout time.Duration `json:"launch_timeout,omitempty"`

	// Attach is a port, or the http:// or ws:// address of a running browser to use instead.
	Attach string `json:"attach,omitempty"`
	// AttachHosts are the remote host names, in lower case, that Attach may name.
	AttachHosts []string `json:"attach_hosts,omitempty"`

	// Idle is how long a keeper without requests stays. Zero means 30 minutes, a negative value no limit.
	Idle time.Duration `json:"idle,omitempty"`
	// Grace is how long what was opened over a connection stays open after the connection has ended. Zero means 30 s.
	Grace time.Duration `json:"grace,omitempty"`
	// MaxMessage is the largest reply read from the browser, in bytes. Zero means 128 MiB.
	MaxMessage int `json:"max_message,omitempty"`
	// RingEvents and RingBytes limit the stored events of all sessions together. Zero means 50,000 and 12 MiB.
	RingEvents int `json:"ring_events,omitempty"`
	RingBytes  int `json:"ring_bytes,omitempty"`
}

// DefaultBrowser is the browser name that is used when none is given.
const DefaultBrowser = step.DefaultBrowser

func (c *Config) setDefaults() {
	c.Browser = cmp.Or(c.Browser, DefaultBrowser)
	c.LaunchTimeout = cmp.Or(c.LaunchTimeout, 30*time.Second)
	c.Idle = cmp.Or(c.Idle, 30*time.Minute)
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	c.MaxMessage = cmp.Or(c.MaxMessage, 128<<20)
	c.RingEvents = cmp.Or(c.RingEvents, 50_000)
	c.RingBytes = cmp.Or(c.RingBytes, 12<<20)
}

// rooms returns the options for the packages below this one.
func (c *Config) rooms(external bool) verb.Options {
	return verb.Options{Name: c.Browser, External: external, MaxMessage: c.MaxMessage, RingEvents: c.RingEvents,
		RingBytes: c.RingBytes}
}

// CheckName returns an error for a browser name that is not portable as a file name. A name must start with a letter
// or digit, continue with letters, digits, _ and -, and have at most 64 characters.
func CheckName(name string) *api.Error {
	ok := name != "" && len(name) <= 64 && name[0] != '_' && name[0] != '-'
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return api.Errorf(api.CodeInvalidArgs, "%q is not a valid browser name: use at most 64 letters, digits, _ and -, "+
			"and begin with a letter or digit", manifest.Clip(name, 80))
	}
	return nil
}
