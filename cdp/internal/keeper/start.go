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
	"github.com/parley-tools/parley/host"
)

const pollTime = 20 * time.Millisecond

// Start answers a connection to the keeper of cfg.Browser, and starts one when there
// is none. Two starts at once make one keeper. What Client.Notes says is to be shown.
func Start(ctx context.Context, cfg Config) (*Client, error) {
	cfg.setDefaults()
	if !supported {
		return nil, errf(CodeUnavailable, "a browser of one's own needs inherited file descriptors and file locks, which are not available on this platform")
	}
	if err := CheckName(cfg.Browser); err != nil {
		return nil, err
	}
	if cfg.RunDir == "" || cfg.Chrome == "" && cfg.Attach == "" {
		return nil, errf(CodeInvalidArgs, "Start needs a run folder, and a browser to launch or to attach to")
	}
	cfg.RunDir = absolute(cfg.RunDir)
	if cfg.UserDataDir != "" {
		cfg.UserDataDir = absolute(cfg.UserDataDir)
	}
	if err := ownDir(cfg.RunDir); err != nil {
		return nil, unusable(err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.LaunchTimeout+15*time.Second)
	defer cancel()
	f := files{cfg.RunDir, cfg.Browser}
	var notes []string
	for {
		c, err := connect(ctx, f, cfg.Version)
		if err == nil {
			c.notes = append(notes, differences(cfg, c.hello)...)
			return c, nil
		}
		var other *otherKeeper
		if errors.As(err, &other) {
			if err := replace(ctx, f, other); err != nil {
				return nil, err
			}
			notes = append(notes, other.note())
			continue
		}
		if err := f.planted(err); err != nil {
			return nil, err
		}
		lock, err := f.tryLock()
		switch {
		case errors.Is(err, errLocked):
			// Somebody starts it, or it is just ending.
			if err := pause(ctx); err != nil {
				return nil, errf(CodeChromeLaunch, "browser %q is being started or ended by process %d, which does not get on with it", cfg.Browser, f.lockPID())
			}
			continue
		case err != nil:
			return nil, unusable(err)
		}
		if err := spawn(ctx, cfg, f, lock); err != nil {
			f.clean()
			f.unlock(lock)
			return nil, err
		}
		lock.Close() // the keeper has it, too
		c, err = connect(ctx, f, cfg.Version)
		if err != nil {
			return nil, errf(CodeChromeConnection, "the keeper has started, but cannot be reached: %v", err)
		}
		c.started, c.notes = true, notes
		return c, nil
	}
}

// spawn starts the keeper and waits until it says ready. On an error no keeper is left.
func spawn(ctx context.Context, cfg Config, f files, lock *os.File) error {
	if err := f.clean(); err != nil {
		return unusable(err)
	}
	Sweep(f.dir) // of other names; what cannot be removed there is nothing to this one
	logFile, err := os.OpenFile(f.log(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return unusable(err)
	}
	defer logFile.Close()
	ready, theirs, err := os.Pipe()
	if err != nil {
		return errf(CodeInternal, "%v", err)
	}
	defer ready.Close()
	// The arguments are for whoever reads a list of processes.
	cmd := host.SelfCommand()
	cmd.Args = append(cmd.Args, childName, cfg.Browser, cfg.RunDir)
	cmd.Env = append(os.Environ(), ChildVar+"="+childName)
	cmd.Stdin = bytes.NewReader(mustJSON(cfg))
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.ExtraFiles = []*os.File{theirs, lock}
	ownSession(cmd)
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return errf(CodeInternal, "cannot start the keeper: %v", err)
	}
	exited := make(chan struct{})
	go func() {
		cmd.Wait()
		close(exited)
	}()
	stop := context.AfterFunc(ctx, func() { ready.SetReadDeadline(time.Now()) })
	defer stop()
	line, err := bufio.NewReader(ready).ReadBytes('\n')
	var said readyLine
	if err == nil {
		err = json.Unmarshal(line, &said)
	}
	if err == nil && said.Ready {
		return nil
	}
	if said.Error == nil {
		if words := lastLines(f.log(), 5); words != "" {
			said.Error = errf(CodeChromeLaunch, "the keeper ended before it was ready; its last words:\n  %s", words)
		} else {
			said.Error = errf(CodeChromeLaunch, "the keeper ended before it was ready")
		}
		if ctx.Err() != nil {
			said.Error = contextError(ctx, "starting the browser")
			said.Error.Code = CodeChromeLaunch
		}
		cmd.Process.Kill()
	}
	select {
	case <-exited:
	case <-time.After(10 * time.Second):
		cmd.Process.Kill()
		<-exited
	}
	return said.Error
}

// Dial answers a connection to a running keeper. When there is none the error's code
// is CodeChromeConnection, and what a dead one left is removed.
func Dial(ctx context.Context, runDir, name, version string) (*Client, error) {
	f := files{absolute(runDir), orDefault(name)}
	if err := CheckName(f.name); err != nil {
		return nil, err
	}
	// A keeper that is just ending, or was just killed, holds its lock a moment longer.
	for patience := time.Now().Add(endingTime); ; {
		c, err := connect(ctx, f, version)
		if err == nil {
			return c, nil
		}
		var other *otherKeeper
		if errors.As(err, &other) {
			return nil, errf(CodeChromeConnection, "%s; opening or closing the browser replaces it", other.Error())
		}
		if err := f.planted(err); err != nil {
			return nil, err
		}
		if swept, _ := f.sweep(); swept {
			return nil, errf(CodeChromeConnection, "browser %q is not open any more: its keeper was ended from outside, and what it left is removed", f.name)
		}
		if !f.held() {
			return nil, errf(CodeChromeConnection, "no browser %q is open", f.name)
		}
		if time.Now().After(patience) || pause(ctx) != nil {
			return nil, errf(CodeChromeConnection, "browser %q is just being started or ended; try again in a moment", f.name)
		}
	}
}

// planted makes the error of a keeper that runs while something else is in its socket's place; what is left of one that is dead is removed instead.
func (f files) planted(err error) error {
	var planted *plantedError
	if errors.As(err, &planted) && f.held() {
		return errf(CodeChromeConnection, "%v, so nothing is said to it; remove it, and close browser %q", planted, f.name)
	}
	return nil
}

const endingTime = 500 * time.Millisecond

// Stop closes a browser whatever state its keeper is in, and waits until nothing of
// it is left. It answers whether there was one.
func Stop(ctx context.Context, runDir, name, version string) (bool, error) {
	f := files{absolute(runDir), orDefault(name)}
	if err := CheckName(f.name); err != nil {
		return false, err
	}
	asking, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	// What does not end when asked is ended, however little time the caller has left.
	force, cancelForce := context.WithTimeout(context.WithoutCancel(ctx), stopPatience+20*time.Second)
	defer cancelForce()
	for {
		c, err := connect(asking, f, version)
		var other *otherKeeper
		switch {
		case err == nil:
			err = c.CloseBrowser(asking)
			c.Close()
			if err == nil {
				Sweep(f.dir)
				return true, nil
			}
			err = replace(force, f, &otherKeeper{pid: c.hello.PID, stuck: true})
			return err == nil, err
		case errors.As(err, &other):
			err := replace(force, f, other)
			return err == nil, err
		case !f.held():
			swept, err := f.sweep()
			Sweep(f.dir) // of other names
			return swept, err
		}
		// It is just being started or ended.
		if pause(asking) != nil {
			err := replace(force, f, &otherKeeper{pid: f.lockPID(), stuck: true})
			return err == nil, err
		}
	}
}

const stopPatience = 8 * time.Second

// otherKeeper is a keeper that cannot be used.
type otherKeeper struct {
	pid     int
	wire    int
	version string
	stuck   bool // it does not say hello
}

func (o *otherKeeper) Error() string {
	if o.stuck {
		return fmt.Sprintf("the browser's keeper (process %d) does not answer", o.pid)
	}
	return fmt.Sprintf("the browser's keeper (process %d, version %s) speaks wire %d and this program %d", o.pid, orUnknown(o.version), o.wire, WireVersion)
}

func (o *otherKeeper) note() string {
	if o.stuck {
		return fmt.Sprintf("a keeper that did not answer (process %d) was replaced; its pages are gone", o.pid)
	}
	return fmt.Sprintf("a keeper of another version (%s, wire %d) was replaced; its pages are gone", orUnknown(o.version), o.wire)
}

func orUnknown(version string) string {
	if version == "" {
		return "unknown"
	}
	return version
}

// replace ends a keeper: it asks, and what does not listen is killed, but only when
// it is certain who it is.
func replace(ctx context.Context, f files, o *otherKeeper) error {
	socket := f.socket()
	asked, pid := false, 0
	if conn, err := net.DialTimeout("unix", socket, time.Second); err == nil {
		_, pid, _ = peer(conn)
		if !o.stuck {
			conn.SetDeadline(time.Now().Add(helloTimeout))
			asked = writeFrame(conn, mustJSON(hello{Wire: WireVersion, Replace: true})) == nil
			readHello(conn)
		}
		conn.Close()
	}
	if asked && f.released(ctx, 6*time.Second) {
		_, err := f.sweep()
		return err
	}
	// The kernel names who made the socket; without one, the process must be a keeper by its environment.
	held := cmp.Or(f.lockPID(), pid, o.pid) // a full disk took no number into the lock
	if held > 0 && f.held() {
		if pid != held && !isKeeper(held) {
			return errf(CodeInternal, "the lock %s names process %d, which is not certainly a keeper; end it by hand", f.lock(), held)
		}
		kill(held)
	}
	if !f.released(ctx, 5*time.Second) {
		return errf(CodeInternal, "keeper process %d cannot be ended; end it by hand", held)
	}
	_, err := f.sweep()
	return err
}

// released waits until nobody holds the lock.
func (f files) released(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for f.held() {
		if pause(ctx) != nil {
			return false
		}
	}
	return true
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(pollTime):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// differences says which wishes a browser that is open already does not meet.
func differences(cfg Config, h hello) (notes []string) {
	var ignored []string
	if cfg.Headed && !h.Headed {
		ignored = append(ignored, "headed")
	}
	if cfg.UserDataDir != "" && filepath.Clean(cfg.UserDataDir) != h.Profile {
		ignored = append(ignored, "user_data_dir")
	}
	if cfg.Attach != "" && cfg.Attach != h.Attach {
		ignored = append(ignored, "attach")
	}
	if cfg.FoundBy == browser.FromFlag && cfg.Attach == "" && cfg.Chrome != h.Chrome {
		ignored = append(ignored, "chrome")
	}
	if len(ignored) > 0 {
		notes = append(notes, fmt.Sprintf("browser %q is open already, so %s had no effect; close it first, or use another browser name", cfg.Browser, strings.Join(ignored, ", ")))
	}
	return notes
}

// Supported reports whether keepers work on this platform.
func Supported() bool { return supported }
