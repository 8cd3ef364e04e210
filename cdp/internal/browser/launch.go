package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
)

// LaunchConfig says how to launch a browser. Path and Profile must be set.
type LaunchConfig struct {
	// Path is the executable; see [Find].
	Path string
	// Profile is the user data directory. Chrome creates it if it is missing.
	Profile string
	// Temp is the browser's temporary directory, an absolute path of at most MaxTemp bytes. A killed browser leaves
	// files there, such as the socket of its profile. Empty means the system's directory.
	Temp string
	// Headed shows windows. The default is headless.
	Headed bool
	// Args are further command-line flags, passed after Parley's own.
	Args []string
	// Timeout bounds the time until Chrome responds. Zero means 30 s.
	Timeout time.Duration
	// MaxMessage is the largest message read whole, in bytes. Zero means DefaultMaxMessage.
	MaxMessage int
	// Log receives what Chrome writes to its stderr. Nil discards it.
	Log io.Writer
}

// MaxTemp leaves room for the names that Chrome appends to its temporary directory: the path of a Unix socket has
// at most 108 bytes.
const MaxTemp = 56

// Version is the result of Browser.getVersion.
type Version struct {
	Product  string `json:"product"`
	Protocol string `json:"protocolVersion"`
	Revision string `json:"revision"`
}

// Process is a launched browser.
type Process struct {
	Conn    Conn
	Version Version
	PID     int
	// Notes are the decisions that the user should know about, such as --no-sandbox for root.
	Notes []string

	child *child
}

// LaunchError reports why a browser did not start.
type LaunchError struct {
	// Reason is one sentence.
	Reason string
	// ExitCode is Chrome's exit code, or -1 if it did not exit by itself.
	ExitCode int
	// Transient is set if the browser ended before it responded and the cause may not last: a crash, a signal, or an
	// exit code that says nothing. On a machine under heavy load that happens now and then.
	Transient bool
	// Stderr holds the last lines that Chrome wrote to its stderr.
	Stderr []string
}

func (e *LaunchError) Error() string {
	if len(e.Stderr) == 0 {
		return e.Reason
	}
	return e.Reason + "; its last output:\n  " + strings.Join(e.Stderr, "\n  ")
}

// Launch starts a browser and waits until it responds. Every failure is a *LaunchError and leaves no process.
func Launch(ctx context.Context, cfg LaunchConfig) (*Process, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()

	args, notes := arguments(cfg, isRoot(), smallSharedMemory())
	stderr := &tail{}
	child, from, to, err := startChild(cfg, args, io.MultiWriter(stderr, cmp.Or(cfg.Log, io.Discard)))
	if err != nil {
		return nil, &LaunchError{Reason: fmt.Sprintf("cannot start %s: %v", cfg.Path, err), ExitCode: -1}
	}
	p := &Process{
		Conn: NewPipe(from, to, cfg.MaxMessage), PID: child.pid, Notes: notes, child: child,
	}

	versionErr := make(chan error, 1)
	go func() {
		var err error
		p.Version, err = FetchVersion(p.Conn)
		versionErr <- err
		close(versionErr)
	}()
	select {
	case err = <-versionErr:
		if err == nil {
			return p, nil
		}
		// The pipe closes just before the process exits, and its exit code says more.
		if errors.Is(err, ErrClosed) {
			select {
			case <-child.done:
			case <-ctx.Done():
			}
		}
	case <-child.done:
	case <-ctx.Done():
	}
	exited := false
	select {
	case <-child.done:
		exited = true
	default:
	}
	p.Kill()
	<-versionErr
	failure := &LaunchError{ExitCode: -1, Stderr: stderr.lines()}
	switch {
	case exited:
		failure.ExitCode = child.exitCode
		failure.Reason, failure.Transient = exitReason(cfg, child.exitCode)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		failure.Reason = fmt.Sprintf("%s did not respond within %s and was killed", cfg.Path, cfg.Timeout)
	case ctx.Err() != nil:
		failure.Reason = "the launch was cancelled"
	default:
		failure.Reason = fmt.Sprintf("%s does not speak the DevTools protocol: %v", cfg.Path, err)
	}
	return nil, failure
}

// FetchVersion sends Browser.getVersion as the first message of a connection, with id 1, and returns the result.
func FetchVersion(c Conn) (Version, error) {
	if err := c.Send([]byte(`{"id":1,"method":"` + cdpbrowser.CommandGetVersion + `"}`)); err != nil {
		return Version{}, err
	}
	for {
		m, err := c.Receive()
		if err != nil {
			return Version{}, err
		}
		var reply struct {
			ID     int64           `json:"id"`
			Result Version         `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(m.Data, &reply); err != nil {
			return Version{}, fmt.Errorf("the first message is not JSON: %w", err)
		}
		if reply.ID != 1 {
			continue
		}
		if len(reply.Error) > 0 {
			return Version{}, fmt.Errorf("%s failed: %s", cdpbrowser.CommandGetVersion, reply.Error)
		}
		return reply.Result, nil
	}
}

// Done is closed once the browser's process has exited and was reaped.
func (p *Process) Done() <-chan struct{} { return p.child.done }

// ExitCode is the browser's exit code, or -1 if it was killed. It is valid once Done is closed.
func (p *Process) ExitCode() int { return p.child.exitCode }

// Kill kills the browser with all its processes and waits until they are gone.
func (p *Process) Kill() {
	p.Conn.Close()
	p.child.kill()
	<-p.child.done
}

// arguments builds the command line: no requests of Chrome's own, nothing of the user's profile, one blank page.
func arguments(cfg LaunchConfig, root, smallShm bool) (args, notes []string) {
	args = []string{
		"--remote-debugging-pipe",
		"--user-data-dir=" + cfg.Profile,
		"--no-first-run", "--no-default-browser-check", "--no-pings", "--no-service-autorun",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
		"--disable-default-apps", "--disable-domain-reliability", "--disable-client-side-phishing-detection",
		"--disable-breakpad", "--disable-crash-reporter", "--metrics-recording-only", "--disable-field-trial-config",
		"--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider," +
			"CertificateTransparencyComponentUpdater", "--password-store=basic", "--use-mock-keychain",
		// No --disable-crashpad-for-testing: with it Chromium 156 aborts every first navigation.
		// A page must run the same in the foreground and in the background.
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
		"--disable-renderer-backgrounding",
		"--disable-hang-monitor", "--disable-prompt-on-repost", "--disable-search-engine-choice-screen",
		// Without this flag WebRTC sends UDP around any proxy. Chromium 156 ignores the --force- spelling.
		"--webrtc-ip-handling-policy=disable_non_proxied_udp",
	}
	if !cfg.Headed {
		args = append(args, "--headless", "--disable-gpu", "--hide-scrollbars", "--mute-audio", "--window-size=1280,800")
	}
	if root {
		args = append(args, "--no-sandbox")
		notes = append(notes,
			"as root, Chrome runs without its own sandbox (--no-sandbox)")
	}
	if smallShm {
		args = append(args, "--disable-dev-shm-usage")
		notes = append(notes, "/dev/shm is small, so Chrome uses its temporary directory instead (--disable-dev-shm-usage)")
	}
	args = append(args, cfg.Args...)
	return append(args, "about:blank"), notes
}

// exitReason returns why a browser exited with a code before it responded, and whether another attempt may succeed.
func exitReason(cfg LaunchConfig, code int) (reason string, transient bool) {
	name := filepath.Base(cfg.Path)
	switch code {
	case 21:
		return fmt.Sprintf("the profile %s is in use by another browser (%s exited with 21): "+
			"close that browser, or use another user_data_dir", cfg.Profile, name), false
	case 0:
		return fmt.Sprintf("%s exited at once: a browser that already runs on the profile %s has probably taken over; "+
			"close that browser, or use another user_data_dir", name, cfg.Profile), false
	case -1:
		return name + " was killed before it responded", true
	}
	if cfg.Headed && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" && needsDisplay {
		return fmt.Sprintf("%s exited with %d before it responded: "+
			"there is no display to show a window on; leave out headed", name, code), false
	}
	return fmt.Sprintf("%s exited with %d before it responded", name, code), true
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail, maxLastLines, maxLineBytes = 16 << 10, 12, 400

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(b), nil
}

// lines returns the last lines that are not blank.
func (t *tail) lines() (last []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.Lines(string(t.text)) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			last = append(last, line[:min(len(line), maxLineBytes)])
		}
	}
	return last[max(0, len(last)-maxLastLines):]
}
