package wasm

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/internal/contain"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
)

// A shared runner has two files in the run folder, NAME.use and NAME.runner. Who holds the lock on the first may use
// the runner, or start it if nothing listens on the socket. A runner that ends cannot remove its files, because it has
// no call that takes a path; who starts the next one does. A runner for one call has no files: only the process that
// started it is connected to it.
const (
	runnerPrefix = "r-"
	lockSuffix   = ".use"
	socketSuffix = ".runner" // the sockets of browsers have another one

	maxSocketPath = 107
	runnerTries   = 10 // of a call that had not begun when its runner ended
	sweepTries    = 1000
)

// runnerPool finds and starts the shared runners for the calls of one engine.
type runnerPool struct {
	e   *Engine
	dir string

	mu       sync.Mutex
	idle     map[string][]*lease // connections to runners that this process does not use now
	children map[int]*runnerChild
	closed   bool
}

// runnerChild is a runner that this process has started.
type runnerChild struct {
	cmd           *exec.Cmd
	stdin, stdout io.Closer
	stderr        *prefixWriter
	exited        chan struct{} // closed when it has ended, if it is shared
}

// runners returns the pool, or nil if this engine has no shared runners.
func (e *Engine) runners() *runnerPool {
	e.poolOnce.Do(func() {
		longest := filepath.Join(e.cfg.RunDir, runnerPrefix+strings.Repeat("0", runnerIDBytes*2)+"-00"+socketSuffix)
		switch {
		case e.cfg.RunDir == "" || e.cfg.Child == nil || e.cfg.CacheDir == "" || e.cfg.RunnerIdle < 0:
			return
		case len(longest) > maxSocketPath:
			e.cfg.Debug("no shared runners: the path of a socket in " + e.cfg.RunDir + " would be too long")
			return
		}
		if err := protect.Dir(e.cfg.RunDir); err != nil {
			e.cfg.Debug("no shared runners: " + err.Error())
			return
		}
		e.pool = &runnerPool{e: e, dir: e.cfg.RunDir, idle: map[string][]*lease{}, children: map[int]*runnerChild{}}
	})
	return e.pool
}

// close closes the connections. Runners end by themselves.
func (p *runnerPool) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, leases := range p.idle {
		for _, l := range leases {
			l.drop()
		}
	}
	clear(p.idle)
	p.closed = true
}

const runnerIDBytes = 10

// runnerSpec is what one runner is for. Calls of different specs never share one.
type runnerSpec struct {
	start
	Plugin  string    // digest of the plugin
	Caller  string    // who calls, and in which session
	Session string    //
	Program string    // identity of this binary
	Folders []fsID    // the granted folders as they are now
	Wire    int       //
	folder  *Provider // to load the code
}

// fsID identifies a file.
type fsID struct{ Device, Inode uint64 }

func fileID(path string) fsID {
	var s unix.Stat_t
	if unix.Stat(path, &s) != nil {
		return fsID{}
	}
	return fsID{uint64(s.Dev), s.Ino}
}

// programID identifies the running binary.
var programID = sync.OnceValue(func() string {
	info, err := os.Stat("/proc/self/exe")
	if err != nil {
		return ""
	}
	inode, changed := stamp(info)
	return fmt.Sprint(inode, changed.UnixNano(), info.Size())
})

// id names the runners of a spec. Plugin and Host identify the manifest and the text.
func (s runnerSpec) id() string {
	s.Manifest, s.Text, s.CPU = nil, nil, 0
	text, _ := manifest.Marshal(s) // it is plain data
	sum := sha256.Sum256(text)
	return runnerPrefix + hex.EncodeToString(sum[:runnerIDBytes])
}

// lease is the use of a runner by one call at a time.
type lease struct {
	pool    *runnerPool
	name    string
	lock    *os.File
	endUse  func() // releases the slot of the call
	socket  *net.UnixConn
	conn    *wire.Conn
	pid     int
	handle  int          // of the process
	greeted bool         // hellos were exchanged
	over    atomic.Bool  // it was killed because it used too much CPU time
	alone   *runnerChild // the runner, if it is for this call alone: it has no files
	mu      sync.Mutex   // guards socket and handle against a late kill
}

// drop ends the use for good.
func (l *lease) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.socket != nil {
		_ = l.socket.Close()
		_ = unix.Close(l.handle)
		l.socket = nil
	}
	if l.lock != nil {
		_ = l.lock.Close()
	}
}

// dropEnded drops the use if the runner has ended, and reports whether it has.
func (l *lease) dropEnded() bool {
	if l.isConnected() {
		return false
	}
	l.drop()
	return true
}

// kill kills the runner.
func (l *lease) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alone != nil {
		_ = l.alone.cmd.Process.Kill()
		return
	}
	if l.socket == nil {
		return // the handle is closed
	}
	_ = unix.PidfdSendSignal(l.handle, unix.SIGKILL, nil, 0)
}

// acquire returns a runner that nobody else uses, one of at most [maxRunners] in use on this machine. Outer calls wait
// for one, inner calls do not: the call that they would wait for may be the one that made them.
func (p *runnerPool) acquire(ctx context.Context, id string, spec *runnerSpec, inner bool) (*lease, error) {
	release, err := p.e.shared.Acquire(ctx, runnerSlots, maxRunners, !inner)
	if err != nil {
		if inner {
			return nil, errNoRunner
		}
		return nil, spec.folder.busyError(ctx, fmt.Sprintf("%d runners in use", maxRunners))
	}
	l, err := p.find(ctx, id, spec)
	if err != nil {
		release()
		return nil, err
	}
	l.endUse = release
	return l, nil
}

// release gives a runner back. It is kept for the next call unless it is for one call, or the call ended it.
func (l *lease) release(id string, reusable bool) {
	p := l.pool
	if l.alone != nil {
		l.kill()
		_ = l.alone.cmd.Wait()
		return
	}
	if reusable {
		now := time.Now()
		_ = os.Chtimes(p.path(l.name, lockSuffix), now, now)
		reusable = unix.Flock(int(l.lock.Fd()), unix.LOCK_UN) == nil
	}
	l.endUse()
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, leases := range p.idle {
		if p.idle[id] = slices.DeleteFunc(leases, (*lease).dropEnded); len(p.idle[id]) == 0 {
			delete(p.idle, id)
		}
	}
	if !reusable || p.closed {
		l.drop()
		return
	}
	p.idle[id] = append(p.idle[id], l)
}

func (p *runnerPool) path(name, suffix string) string { return filepath.Join(p.dir, name+suffix) }

// find looks for a runner that is not in use, and starts one otherwise. One of the first names is not locked, because
// whoever locks one for longer than a glance has a slot.
func (p *runnerPool) find(ctx context.Context, id string, spec *runnerSpec) (*lease, error) {
	if l := p.kept(id); l != nil {
		return l, nil
	}
	for i := 0; ; i++ {
		l, err := p.lock(fmt.Sprintf("%s-%d", id, i))
		switch {
		case err != nil:
			return nil, errors.Join(errNoRunner, err)
		case l == nil:
			continue
		case l.dial() == nil:
			return l, nil
		}
		if err := p.start(ctx, l, spec); err != nil {
			l.drop()
			return nil, err
		}
		return l, nil
	}
}

// kept returns a runner to which this process is connected, or nil.
func (p *runnerPool) kept(id string) *lease {
	for {
		p.mu.Lock()
		n := len(p.idle[id])
		if n == 0 {
			p.mu.Unlock()
			return nil
		}
		l := p.idle[id][n-1]
		p.idle[id] = p.idle[id][:n-1]
		p.mu.Unlock()
		var s unix.Stat_t
		if unix.Flock(int(l.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && unix.Fstat(int(l.lock.Fd()), &s) == nil &&
			s.Nlink > 0 && l.isConnected() {
			return l
		}
		l.drop()
	}
}

// lock returns the use of the runner of a name, whether it runs or not, or nil if somebody else has it.
func (p *runnerPool) lock(name string) (*lease, error) {
	path := p.path(name, lockSuffix)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			_ = f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, nil
			}
			return nil, err
		}
		// The file may have been removed between opening and locking.
		opened, err := f.Stat()
		if there, errThere := os.Lstat(path); err == nil && errThere == nil && os.SameFile(opened, there) {
			return &lease{pool: p, name: name, lock: f}, nil
		}
		_ = f.Close()
	}
}

// dial connects to the runner. The process at the other end must belong to this user.
func (l *lease) dial() error {
	socket, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: l.pool.path(l.name, socketSuffix), Net: "unix"})
	if err != nil {
		return err
	}
	if l.pid, err = wire.Peer(socket); err == nil {
		l.handle, err = unix.PidfdOpen(l.pid, 0)
	}
	if err != nil {
		_ = socket.Close()
		return err
	}
	l.socket = socket
	// As long as the connection holds, the process lives, so the handle is that of the runner.
	if !l.isConnected() {
		_ = socket.Close()
		_ = unix.Close(l.handle)
		l.socket = nil
		return io.ErrUnexpectedEOF
	}
	l.conn, l.greeted = wire.NewConn(bufio.NewReader(socket), socket), false
	return nil
}

// isConnected reports whether the runner has not closed the connection.
func (l *lease) isConnected() bool {
	raw, err := l.socket.SyscallConn()
	if err != nil {
		return false
	}
	connected := false
	_ = raw.Control(func(fd uintptr) {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(polled, 0)
		connected = err == nil && n == 0
	})
	return connected
}

// start starts the runner and connects to it.
func (p *runnerPool) start(ctx context.Context, l *lease, spec *runnerSpec) error {
	p.sweep(l.name)
	if err := spec.folder.ensureCompiled(ctx); err != nil {
		return err
	}
	err := p.startProcess(ctx, l, spec)
	if known := (*host.Error)(nil); errors.As(err, &known) && known.Code == host.Unavailable && known.Exit == 0 {
		// The compiled code is missing or damaged. Loading it here compiles it again.
		if _, err := spec.folder.load(ctx); err != nil {
			return err
		}
		err = p.startProcess(ctx, l, spec)
	}
	if err == nil {
		err = l.dial()
	}
	if err != nil {
		return errors.Join(errNoRunner, err) // such as too many watches of the kernel
	}
	return nil
}

func (p *runnerPool) startProcess(ctx context.Context, l *lease, spec *runnerSpec) error {
	path := p.path(l.name, socketSuffix)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(errNoRunner, err)
	}
	info := marshal(RunnerInfo{Name: l.name, Plugin: spec.Manifest.Name, Caller: spec.Caller,
		Session: host.SessionOf(spec.Session).String(), Started: time.Now()})
	if err := errors.Join(l.lock.Truncate(0), writeAt(l.lock, info)); err != nil {
		return errors.Join(errNoRunner, err)
	}
	child, conn, err := p.e.startRunner(spec.Manifest.Name, path)
	if err != nil {
		return errors.Join(errNoRunner, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = child.cmd.Process.Kill() })
	defer stop()
	s := spec.start
	s.Resident = &resident{Socket: path, Lock: p.path(l.name, lockSuffix), Watch: p.e.cfg.Watch,
		Idle: cmp.Or(p.e.cfg.RunnerIdle, runnerIdle)}
	err = conn.Send(wire.KindStart, marshal(s))
	_ = child.stdin.Close()
	var kind wire.Kind
	var body []byte
	if err == nil {
		kind, body, err = conn.Receive(1 << 20)
	}
	_ = child.stdout.Close()
	go p.reap(child)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && kind == wire.KindHello:
		p.mu.Lock()
		p.children[child.cmd.Process.Pid] = child
		p.mu.Unlock()
		return nil
	case err == nil && kind == wire.KindDone:
		var o wire.Outcome
		if json.Unmarshal(body, &o) == nil {
			if e, _ := o.Failure(); e != nil {
				return e
			}
		}
	}
	<-child.exited
	return fmt.Errorf("%w: the runner did not start: %v: %s", errNoRunner, child.cmd.ProcessState,
		truncate(manifest.CleanLine(child.stderr.String()), 300))
}

// startRunner starts the process of a runner, and returns it with a connection over its pipes.
func (e *Engine) startRunner(args ...string) (*runnerChild, *wire.Conn, error) {
	child := &runnerChild{cmd: e.childCommand(RunnerJob, args...), stderr: &prefixWriter{limit: 4 << 10},
		exited: make(chan struct{})}
	child.cmd.Stderr = child.stderr
	stdin, err := child.cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := child.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	child.stdin, child.stdout = stdin, stdout
	return child, wire.NewConn(bufio.NewReader(stdout), stdin), contain.Start(child.cmd)
}

// startAlone starts a runner for one call. That needs no file, no slot and nothing that only newer kernels have.
func (e *Engine) startAlone(spec *runnerSpec) (*lease, error) {
	name := spec.Manifest.Name
	child, conn, err := e.startRunner(name)
	if err != nil {
		return nil, &host.Error{Code: host.Unavailable, Cause: err, Steps: []host.Step{host.OperatorStep(host.OpDoctor)},
			Message: fmt.Sprintf("cannot start the process of %s: %v; nothing was run", name, err)}
	}
	return &lease{alone: child, conn: conn, pid: child.cmd.Process.Pid}, conn.Queue(wire.KindStart, marshal(spec.start))
}

func writeAt(f *os.File, data []byte) error {
	_, err := f.WriteAt(data, 0)
	return err
}

// reap waits for a runner, so that it leaves no zombie while this process runs.
func (p *runnerPool) reap(child *runnerChild) {
	_ = child.cmd.Wait()
	close(child.exited)
	// Whoever used the runner may ask why it ended, for a short time.
	time.Sleep(10 * time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.children, child.cmd.Process.Pid)
}

// sweep removes the files of runners that have ended, and ends the least recently used runners that are not in use, so
// that there are less than [maxRunners]. Less than that many are in use, since whoever uses one has a slot; where all
// seem to be, another sweep holds some of them for a moment, and sweep looks again.
func (p *runnerPool) sweep(except string) {
	for range sweepTries {
		if p.sweepOnce(except) < maxRunners {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// sweepOnce returns how many runners remain.
func (p *runnerPool) sweepOnce(except string) int {
	var unused []*lease
	running := 0
	for _, info := range runnerFiles(p.dir) {
		if info.Name == except {
			continue
		}
		l, err := p.lock(info.Name)
		switch {
		case err != nil:
		case l == nil: // in use
			running++
		case l.dial() != nil:
			l.removeFiles()
		default:
			running++
			unused = append(unused, l)
		}
	}
	for _, l := range unused { // the least recently used first
		if running >= maxRunners {
			l.kill()
			l.removeFiles()
			running--
			continue
		}
		l.drop()
	}
	return running
}

// removeFiles removes the files of a runner that has ended and drops the lease.
func (l *lease) removeFiles() {
	_ = os.Remove(l.pool.path(l.name, socketSuffix))
	_ = os.Remove(l.pool.path(l.name, lockSuffix))
	l.drop()
}

// runInRunner runs the call in a runner: in one for it alone if alone is set or there is no shared one. The error is
// errNoRunner if the compiled code is in no folder: nothing was run then.
func (c *call) runInRunner(ctx context.Context, p *Provider, alone bool) (*host.Result, error) {
	spec, err := c.runnerSpec(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.limits.timeout)
	defer cancel()
	c.ctx = ctx
	c.deadline, _ = ctx.Deadline()
	id := spec.id()
	repeated := false
	for try := 0; ; try++ {
		l, err := c.lease(id, spec, alone || try == runnerTries)
		switch {
		case err != nil && ctx.Err() != nil && !errors.Is(err, host.Busy):
			return nil, c.contextError()
		case err != nil:
			return nil, err
		}
		a := &remoteCall{c: c, conn: l.conn, greeted: l.greeted}
		result, err := a.runOn(l, spec.Terms)
		if isGone(err) {
			err = l.crashError(a)
			// What has not begun can run again. Once that has: somebody may have killed the runner. If it was the guest,
			// it is so again.
			again := !a.begun || !repeated && a.repeatable() && errors.Is(err, host.Trapped)
			if again && l.alone == nil && ctx.Err() == nil {
				l.release(id, false)
				repeated, c.hostCalls = repeated || a.begun, 0
				continue
			}
		}
		l.release(id, a.done && !endsRunner(err) && ctx.Err() == nil)
		return c.remoteOutcome(result, err)
	}
}

// runnerSpec returns what a runner of the call is for.
func (c *call) runnerSpec(p *Provider) (*runnerSpec, error) {
	e, m, r := c.engine, c.m, c.r
	key, err := p.moduleKey()
	if err != nil {
		return nil, err
	}
	spec := &runnerSpec{
		start: start{Terms: c.terms(key), Slot: filepath.Join(e.cfg.CacheDir, key), Host: e.cfg.HostVersion,
			Defaults: e.cfg.Limits, Manifest: m, Text: c.text, Grant: r.Grant, Guard: r.Guard.Load(),
			CPU: c.limits.timeout},
		Plugin: p.identity(m), Caller: r.Caller, Session: r.Session.Key(), Program: programID(), Wire: wire.Version,
		folder: p,
	}
	for _, g := range r.Grant.FS {
		spec.Folders = append(spec.Folders, fileID(g.Source))
	}
	return spec, nil
}

// lease returns a runner for the call: one for it alone if alone is set or there is no shared one.
func (c *call) lease(id string, spec *runnerSpec, alone bool) (*lease, error) {
	if alone {
		return c.engine.startAlone(spec)
	}
	l, err := c.engine.runners().acquire(c.ctx, id, spec, c.r.Inner())
	if !errors.Is(err, errNoRunner) {
		return l, err
	}
	c.engine.cfg.Debug("no shared runner for " + c.m.Name + ": " + truncate(manifest.CleanLine(err.Error()), 300))
	if err := spec.folder.loadKept(c.ctx); err != nil {
		return nil, err
	}
	return c.engine.startAlone(spec)
}

// runOn runs the call on a runner. The runner is killed if it does anything but send an outcome in time.
func (a *remoteCall) runOn(l *lease, terms wire.Terms) (*host.Result, error) {
	stop := context.AfterFunc(a.c.ctx, l.kill)
	stopWatch := l.watchCPU(a.c.limits.timeout)
	result, err := a.send(terms)
	stopWatch()
	l.greeted = a.greeted
	if ended := !stop(); ended || !a.done {
		l.kill()
	}
	return result, err
}

// cpuSlack is how much CPU time the process of a call may use in addition to the guest's, for the collector of garbage.
const cpuSlack = time.Second

// watchCPU kills the runner when the call uses more CPU time than its deadline allows on one processor. The kernel's
// bound would count all calls of the runner. The caller must call stop when the call has ended.
func (l *lease) watchCPU(limit time.Duration) (stop func()) {
	before, _ := cpuTimeOf(l.pid)
	every := max(limit/time.Duration(2*runtime.NumCPU()), 100*time.Millisecond)
	ended := make(chan struct{})
	timer := time.AfterFunc(every, func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			if used, ok := cpuTimeOf(l.pid); ok && used-before > limit+cpuSlack {
				l.over.Store(true)
				l.kill()
			}
			select {
			case <-ticks.C:
			case <-ended:
				return
			}
		}
	})
	return func() {
		timer.Stop()
		close(ended)
	}
}

// cpuTimeOf returns the CPU time that a process has used.
func cpuTimeOf(pid int) (time.Duration, bool) {
	const schedClock = 2
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|schedClock), &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}

// crashError returns the reason why a runner ended during a call.
func (l *lease) crashError(a *remoteCall) error {
	child := l.alone
	if child == nil {
		l.pool.mu.Lock()
		child = l.pool.children[l.pid]
		l.pool.mu.Unlock()
	}
	tooLong := host.Errorf(host.LimitExceeded, "%s used more than %v of CPU time", a.c.toolName(), a.c.limits.timeout)
	switch {
	case l.over.Load():
		return tooLong
	case child == nil:
		return host.Errorf(host.Trapped, "the runner of %s ended during the call", a.c.toolName())
	}
	if l.alone != nil {
		_ = child.cmd.Wait()
	} else {
		<-child.exited
	}
	state := child.cmd.ProcessState
	a.c.engine.cfg.Debug(fmt.Sprintf("the runner of %s: %v: %s", a.c.m.Name, state,
		truncate(manifest.CleanLine(child.stderr.String()), 1000)))
	switch {
	case isOutOfMemory(child.stderr.String()):
		return host.Errorf(host.LimitExceeded, "%s and its process need more memory than the limit", a.c.toolName())
	case l.alone != nil && state.UserTime()+state.SystemTime() > a.c.limits.timeout: // the kernel's bound
		return tooLong
	}
	return host.Errorf(host.Trapped, "the runner of %s ended during the call: %v", a.c.toolName(), state)
}

// runnerFiles returns what the files of runners say, the least recently used first.
func runnerFiles(dir string) []RunnerInfo {
	entries, _ := os.ReadDir(dir)
	var all []RunnerInfo
	for _, entry := range entries {
		name, isLock := strings.CutSuffix(entry.Name(), lockSuffix)
		if !isLock || !strings.HasPrefix(name, runnerPrefix) {
			continue
		}
		info := RunnerInfo{}
		if data, err := readBounded(filepath.Join(dir, entry.Name()), 64<<10); err == nil {
			_ = json.Unmarshal(data, &info)
		}
		info.Name = name
		if stat, err := entry.Info(); err == nil {
			info.Used = stat.ModTime()
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b RunnerInfo) int { return a.Used.Compare(b.Used) })
	return all
}

// Runners returns the runners of a run folder, the least recently used first, and those that have ended but left files.
func Runners(dir string) []RunnerInfo {
	p := &runnerPool{dir: dir}
	all := runnerFiles(dir)
	for i := range all {
		info := &all[i]
		info.PID = 0 // only the kernel knows
		l, err := p.lock(info.Name)
		if info.Busy = err == nil && l == nil; l == nil {
			l = &lease{pool: p, name: info.Name}
		}
		if l.dial() == nil {
			info.PID = l.pid
		}
		l.drop()
	}
	return all
}

// StopRunners ends the runners of a run folder that match, also in the middle of a call, removes the files of those and
// of runners that have ended, and returns those that it has ended.
func StopRunners(dir string, match func(RunnerInfo) bool) (stopped []RunnerInfo) {
	p := &runnerPool{dir: dir}
	for _, info := range Runners(dir) {
		if info.PID != 0 && !match(info) {
			continue
		}
		l := &lease{pool: p, name: info.Name}
		if l.dial() == nil {
			l.kill()
			info.PID = l.pid
			stopped = append(stopped, info)
		}
		l.removeFiles()
	}
	return stopped
}
