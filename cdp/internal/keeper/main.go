package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
	"github.com/parley-tools/parley/host/outbound"
)

const (
	// ChildVar is the environment variable that makes this program run as a child process of itself.
	ChildVar  = "PARLEY_CHILD"
	childName = "keeper"

	readyFD = 3
	lockFD  = 4

	maxLog = 4 << 20
	// memoryLimit is above the sum of the ring and the queues of streams.
	memoryLimit = 64 << 20
)

// writeReady writes the one line that a new keeper sends to the process that started it: why it cannot serve, or null.
func writeReady(ready *os.File, failed *api.Error) error {
	_, err := ready.Write(append(scan.Marshal(failed), '\n'))
	return err
}

// Main runs the keeper process and returns its exit code. The program calls it when PARLEY_CHILD is "keeper",
// before it does anything else. The configuration comes as JSON on stdin. Descriptor 3 receives one line that says
// whether the keeper is ready, and descriptor 4 is the locked lock file.
func Main(egress func() (outbound.Egress, error)) int {
	os.Unsetenv(ChildVar)
	prepareChild(readyFD, lockFD)
	ready := os.NewFile(readyFD, "ready")
	lock := os.NewFile(lockFD, "lock")
	if ready == nil || lock == nil || !supported {
		fmt.Fprintln(os.Stderr, "a keeper is started by parley itself, not by hand")
		return 2
	}
	var cfg Config
	if err := json.NewDecoder(io.LimitReader(os.Stdin, 1<<20)).Decode(&cfg); err != nil {
		writeReady(ready, api.Errorf(api.CodeInternal, "the keeper's configuration: %v", err))
		return 2
	}
	k := &keeper{
		egress: egress, cfg: cfg, files: files{cfg.RunDir, cfg.Browser}, lock: lock,
		started: time.Now(), stopReasons: make(chan string, 1),
	}
	k.cfg.setDefaults()
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	log.SetOutput(&cappedWriter{w: os.Stderr, remaining: maxLog})
	// The keeper mostly waits, for the browser and its clients in turn. On one processor the next goroutine runs at
	// once; on two, another thread would have to be woken first.
	runtime.GOMAXPROCS(1)
	// Return the memory of a large reply to the system soon, not at some later collection.
	debug.SetMemoryLimit(memoryLimit)
	// Most of the memory holds events, which stay. Letting garbage grow to half of that costs less time than it saves
	// memory.
	debug.SetGCPercent(50)

	ctx, stop := signal.NotifyContext(context.Background(), endSignals...)
	defer stop()
	signal.Ignore(ignoredSignals...)

	if err := k.start(ctx); err != nil {
		log.Print("start failed: ", err.Message)
		k.shutDown()
		writeReady(ready, err)
		return 1
	}
	go k.server.serve(k.listener)
	// If the starter has exited, it no longer wants a browser, or cannot say so.
	if writeReady(ready, nil) != nil {
		log.Print("the process that started this keeper has exited")
		k.shutDown()
		return 1
	}
	ready.Close()
	k.run(ctx)
	k.shutDown()
	return 0
}

// keeper is the state of the process: a browser, its rooms, a server and their files.
type keeper struct {
	egress  func() (outbound.Egress, error)
	cfg     Config
	files   files
	lock    *os.File
	started time.Time

	proc      *browser.Process // nil in attached mode
	version   browser.Version
	endpoint  string
	profile   string
	temporary bool
	notes     []string

	verbs       *verb.Verbs
	server      *server
	listener    net.Listener
	stopOnce    sync.Once
	stopReasons chan string
}

func (k *keeper) start(ctx context.Context) *api.Error {
	ctx, cancel := context.WithTimeout(ctx, k.cfg.LaunchTimeout)
	defer cancel()
	if err := os.Chdir(k.cfg.RunDir); err != nil {
		return api.Errorf(api.CodeInternal, "cannot enter %s: %v", k.cfg.RunDir, err)
	}
	k.lock.Truncate(0)
	k.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)

	conn, err := k.connect(ctx)
	if err != nil {
		return err
	}
	k.verbs = verb.New(conn, k.cfg.rooms(k.proc == nil))
	k.verbs.Owners.Setups.Dir, k.verbs.Owners.Setups.Logins = filepath.Join(k.files.temp(), "uploads"), true
	k.setEgress()
	err = k.verbs.Tracker.Start(ctx)
	if err == nil && k.proc != nil {
		k.verbs.Events.Downloads.Dir = filepath.Join(k.files.temp(), "downloads")
		err = k.verbs.Events.KeepDownloads(ctx, "")
	}
	if err != nil {
		err.Message = "the browser started, but: " + err.Message
		err.Code = api.CodeChromeLaunch
		return err
	}
	if err := k.listen(); err != nil {
		return api.Errorf(api.CodeInternal, "cannot listen for clients: %v", err)
	}
	k.writeInfo()
	return nil
}

// setEgress gives the keeper the guard that plugins' pages dial through, and the settings for origins from the
// operator's files. Without a guard the keeper serves all callers except plugins.
func (k *keeper) setEgress() {
	if k.egress == nil {
		return
	}
	egress, err := k.egress()
	if err != nil {
		log.Print("plugins are denied, because their pages cannot be guarded: ", err)
		return
	}
	k.verbs.Owners.Setups.Operator, _ = egress.(tenant.OriginRules)
	if k.proc == nil {
		return
	}
	k.verbs.Tenancy.Egress, k.verbs.Tenancy.ChromePID = egress, k.proc.PID
}

// connect launches the browser, or attaches to the configured one.
func (k *keeper) connect(ctx context.Context) (browser.Conn, *api.Error) {
	if k.cfg.Attach != "" {
		conn, endpoint, err := browser.Attach(ctx, browser.AttachConfig{Endpoint: k.cfg.Attach, Hosts: k.cfg.AttachHosts,
			MaxMessage: k.cfg.MaxMessage, Timeout: k.cfg.LaunchTimeout})
		if err != nil {
			return nil, api.Errorf(attachErrorCode(err), "%v", err)
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		k.version, err = browser.FetchVersion(conn)
		if err != nil || !stop() {
			conn.Close()
			return nil, api.Errorf(api.CodeChromeConnection, "%s accepted the connection but did not respond", endpoint)
		}
		k.endpoint = endpoint
		k.notes = []string{"attached to a running Chrome: a session sees only the tabs that it opens, or that a person " +
			"gives it (cdp activate); calls at the command line without a session see all"}
		return conn, nil
	}
	k.profile = k.cfg.UserDataDir
	if k.profile == "" {
		k.profile, k.temporary = k.files.profile(), true
		if err := os.Mkdir(k.profile, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, api.Errorf(api.CodeChromeLaunch, "cannot create the profile: %v", err)
		}
	}
	temp, err := k.files.makeTemp()
	if err != nil {
		return nil, api.Errorf(api.CodeChromeLaunch, "cannot create the browser's temporary folder: %v", err)
	}
	// Write it before Chrome starts, so that a sweep can clean up if the keeper is killed in between.
	k.writeInfo()
	cfg := browser.LaunchConfig{Path: k.cfg.Chrome, Profile: k.profile, Temp: temp, Headed: k.cfg.Headed, Args: k.cfg.Args,
		Timeout: k.cfg.LaunchTimeout, MaxMessage: k.cfg.MaxMessage, Log: log.Writer()}
	proc, err := browser.Launch(ctx, cfg)
	for range 2 {
		failed, ok := errors.AsType[*browser.LaunchError](err)
		if !ok || !failed.Transient {
			break
		}
		log.Print("trying again, because: ", failed)
		proc, err = browser.Launch(ctx, cfg)
	}
	if err != nil {
		return nil, api.Errorf(api.CodeChromeLaunch, "%v", err)
	}
	k.proc, k.version, k.notes = proc, proc.Version, proc.Notes
	return proc.Conn, nil
}

// attachErrorCode returns the code for a failed attach.
func attachErrorCode(err error) string {
	if _, invalid := errors.AsType[*browser.AddressError](err); invalid {
		return api.CodeInvalidArgs
	}
	if _, foreign := errors.AsType[*browser.RemoteHostError](err); foreign {
		return api.CodeDenied
	}
	return api.CodeChromeConnection
}

func (k *keeper) listen() error {
	path := k.files.socket()
	if err := k.files.ensureDirOf(path); err != nil {
		return err
	}
	if !sameFile(k.lock, k.files.lock()) {
		return errors.New("its files were removed while it started")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false) // clean checks that the socket is still this keeper's
	k.listener = l
	h := hello{Wire: WireVersion, Version: k.cfg.Version, PID: os.Getpid(), Headed: k.cfg.Headed,
		Attach: k.cfg.Attach, Profile: k.profile, Chrome: k.cfg.Chrome}
	if k.temporary {
		h.Profile = ""
	}
	k.server = newServer(k.verbs, h, k.cfg.Grace)
	k.server.status = k.status
	k.server.requestStop = k.requestStop
	return nil
}

func (k *keeper) writeInfo() {
	i := info{PID: os.Getpid(), Wire: WireVersion, Version: k.cfg.Version, Product: k.version.Product, Profile: k.profile,
		Temporary: k.temporary, Attach: k.endpoint, Started: k.started}
	if k.proc != nil {
		i.ChromePID = k.proc.PID
	}
	if err := os.WriteFile(k.files.newInfo(), append(scan.Marshal(i), '\n'), 0o600); err == nil {
		os.Rename(k.files.newInfo(), k.files.info())
	}
}

// requestStop makes run return. The first reason counts.
func (k *keeper) requestStop(reason string) {
	k.stopOnce.Do(func() { k.stopReasons <- reason })
}

// run waits for a reason to stop.
func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(k.tickInterval())
	defer tick.Stop()
	var exited <-chan struct{}
	if k.proc != nil {
		exited = k.proc.Done()
	}
	for {
		select {
		case reason := <-k.stopReasons:
			log.Print("stops: ", reason)
			return
		case <-ctx.Done():
			log.Print("stops: received a signal")
			return
		case <-k.verbs.Mux.Done:
			log.Print("stops: the connection to the browser has ended")
			return
		case <-exited:
			log.Print("stops: the browser has exited with ", k.proc.ExitCode())
			return
		case <-tick.C:
			if k.cfg.Idle > 0 && k.server.idleFor() >= k.cfg.Idle {
				log.Print("stops: idle for ", k.cfg.Idle)
				return
			}
			k.verbs.Tenancy.DisposeIdle(k.cfg.Idle)
			// Without its folder no client can find this keeper.
			if !sameFile(k.lock, k.files.lock()) {
				log.Print("stops: its files were removed")
				return
			}
		}
	}
}

func (k *keeper) tickInterval() time.Duration {
	interval := 2 * time.Second
	if k.cfg.Idle > 0 && k.cfg.Idle/4 < interval {
		interval = max(k.cfg.Idle/4, 10*time.Millisecond)
	}
	return interval
}

const (
	closeTimeout = 3 * time.Second // for Chrome to exit by itself
	flushTimeout = time.Second     // for clients to read their responses
)

// shutDown closes everything in the order that leaves nothing behind: the listener, the browser, the files, the
// clients, the lock.
func (k *keeper) shutDown() {
	if k.listener != nil {
		k.listener.Close()
	}
	if k.proc != nil {
		orderly := k.verbs != nil && !k.temporary // only a permanent profile must be saved
		if orderly {
			k.verbs.Mux.Lock()
			target.Post(k.verbs.Mux, nil, cdpbrowser.Close, cdp.Empty{}, nil)
			k.verbs.Mux.Unlock()
		}
		if k.verbs != nil {
			k.verbs.Mux.FailAll(api.Errorf(api.CodeChromeConnection, "the browser was closed"))
		}
		if orderly {
			select {
			case <-k.proc.Done():
			case <-time.After(closeTimeout):
			}
		}
		k.proc.Kill()
	}
	if k.verbs != nil {
		k.verbs.Mux.Close()
		k.verbs.Tenancy.CloseProxies()
	}
	unlock := k.clean()
	if k.server != nil {
		close(k.server.stopped)
		k.server.closeClients(flushTimeout)
	}
	unlock()
}

// clean removes the keeper's files and returns a function that releases its lock. If the folder was removed,
// another keeper may have its files there in the meantime; those are kept.
func (k *keeper) clean() (unlock func()) {
	lock := k.lock
	if !sameFile(lock, k.files.lock()) {
		lock.Close()
		var err error
		if lock, err = k.files.tryLock(); errors.Is(err, errLocked) {
			return func() {}
		}
	}
	if err := k.files.clean(); err != nil {
		log.Print("cleaning up: ", err)
	}
	if lock == nil { // the folder does not exist
		return func() {}
	}
	return func() { k.files.unlock(lock) }
}

func (k *keeper) status(by api.Caller, all bool) api.Status {
	s := api.Status{Browser: k.cfg.Browser, Mode: "attached",
		Product: k.version.Product, Revision: k.version.Revision, Protocol: k.version.Protocol,
		Executable: k.cfg.Chrome, FoundBy: k.cfg.FoundBy, Why: k.cfg.Why, Endpoint: k.endpoint, Headed: k.cfg.Headed,
		Profile: k.profile, Temporary: k.temporary, KeeperPID: os.Getpid(), Version: k.cfg.Version, Wire: WireVersion,
		UptimeMS: time.Since(k.started).Milliseconds(), IdleLimit: max(0, k.cfg.Idle).Milliseconds(),
		Clients: k.server.clientCount(), Log: k.files.log(), Notes: k.notes,
		Targets: k.verbs.Owners.ListTargets(by, all && by.IsCommandLine())}
	if k.proc != nil {
		s.Mode, s.ChromePID = "launched", k.proc.PID
	}
	if !by.IsCommandLine() {
		return s.Public()
	}
	e := k.verbs
	e.Mux.Lock()
	for _, session := range e.Tenancy.OpenSessions() {
		own := session.Session == by.SessionKey()
		if !all && !own && !by.IsPerson() {
			continue
		}
		if !all && !own {
			session.Current = ""
		}
		if session.Session = strings.TrimPrefix(session.Session, "user/"); session.Session == api.DefaultSession {
			session.Session = "" // as in the list of sessions
		}
		s.Sessions = append(s.Sessions, session)
	}
	s.Calls = e.Tenancy.Calls
	s.Events = e.Events.Journals.Info()
	e.Mux.Unlock()
	return s
}

// cappedWriter copies the first remaining bytes to w and discards the rest.
type cappedWriter struct {
	mu        sync.Mutex
	w         io.Writer
	remaining int
}

func (c *cappedWriter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := min(len(b), c.remaining); n > 0 {
		c.w.Write(b[:n])
		c.remaining -= n
	}
	return len(b), nil
}
