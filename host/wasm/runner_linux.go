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
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/contain"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
)

// A shared runner has two files in the run folder, NAME.use and NAME.runner. The process that holds the lock on the
// first may use the runner, or start it if nothing listens on the socket. A runner that ends cannot remove its files,
// because it may make no system call with a path; the process that starts the next runner does. A runner for one call
// has no files: only the process that started it is connected to it.
const (
	runnerPrefix = "r-"
	lockSuffix   = ".use"
	socketSuffix = ".runner" // sockets of browsers have another suffix

	maxSocketPath = 107
	runnerTries   = 10 // tries of a call whose runners ended before it had begun
	sweepTries    = 1000
)

// runnerPool finds and starts the runners for the calls of one engine.
type runnerPool struct {
	e   *Engine
	dir string // the folder of shared runners' files; "" if there can be none

	mu     sync.Mutex
	idle   map[string][]*lease // connections to runners that this process is not using
	closed bool
}

// runnerChild is the process of a runner that this process has started.
type runnerChild struct {
	cmd    *exec.Cmd
	stderr *prefixWriter
	exited chan struct{} // closed when it has ended
}

// runners returns the pool.
func (e *Engine) runners() *runnerPool {
	e.poolOnce.Do(func() {
		e.pool = &runnerPool{e: e, idle: map[string][]*lease{}}
		longest := filepath.Join(e.cfg.RunDir, runnerPrefix+strings.Repeat("0", runnerIDBytes*2)+"-00"+socketSuffix)
		switch {
		case e.cfg.RunDir == "" || e.cfg.RunnerIdle < 0:
			return
		case len(longest) > maxSocketPath:
			e.cfg.Debug("no shared runners: the path of a socket in " + e.cfg.RunDir + " would be too long")
			return
		}
		if err := protect.Dir(e.cfg.RunDir); err != nil {
			e.cfg.Debug("no shared runners: " + err.Error())
			return
		}
		e.pool.dir = e.cfg.RunDir
	})
	return e.pool
}

// close closes the connections. The runners end by themselves.
func (p *runnerPool) close() {
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

// runnerSpec identifies the calls that a runner may serve. Calls with different specs never share a runner.
type runnerSpec struct {
	start
	Plugin  string           // digest of the plugin
	Caller  string           // the caller, as for Session
	Session string           //
	Program string           // identity of this binary
	Folders []protect.FileID // the granted folders as they are now
	Wire    int              //
	code    *Provider        // to load the code
}

// programID identifies the running binary.
var programID = sync.OnceValue(func() string {
	var s unix.Stat_t
	if unix.Stat("/proc/self/exe", &s) != nil {
		return ""
	}
	return fmt.Sprint(s.Ino, s.Ctim.Nano(), s.Size)
})

// id returns the name of the runners of a spec. The manifest and the text are left out, because Plugin and Host
// identify them.
func (s runnerSpec) id() string {
	s.Manifest, s.Text, s.CPU = nil, nil, 0
	text, _ := manifest.Marshal(s) // it is plain data
	sum := sha256.Sum256(text)
	return runnerPrefix + hex.EncodeToString(sum[:runnerIDBytes])
}

// lease is the right to use a runner for one call at a time.
type lease struct {
	pool   *runnerPool
	id     string // the spec's id
	terms  wire.Terms
	name   string // "" for a runner that serves only this call, which has no files
	lock   *os.File
	endUse func() // releases the slot of the call

	child *runnerChild // nil if another process has started the runner
	pid   int
	conn  *wire.Conn
	over  atomic.Bool  // it was killed because it used too much CPU time
	used  atomic.Int64 // CPU time in nanoseconds when it was last read

	mu     sync.Mutex // guards the following fields against a late kill
	socket *net.UnixConn
	handle int // handle of the process, -1 for the child
}

// drop gives up the lease for good.
func (l *lease) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disconnect()
	if l.lock != nil {
		_ = l.lock.Close()
	}
}

func (l *lease) disconnect() {
	if l.socket != nil {
		_ = l.socket.Close()
		_ = unix.Close(l.handle)
		l.socket = nil
	}
}

// dropEnded drops the lease if the runner has ended, and reports whether it has.
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
	switch {
	case l.child != nil:
		_ = l.child.cmd.Process.Kill()
	case l.socket != nil: // otherwise the handle is closed
		_ = unix.PidfdSendSignal(l.handle, unix.SIGKILL, nil, 0)
	}
}

// acquire returns a runner that nobody else uses. At most [Config].Runners are in use on this machine. Outer calls
// wait for one. Inner calls do not, because the call that made them may hold it.
func (p *runnerPool) acquire(ctx context.Context, id string, spec *runnerSpec, inner bool) (*lease, error) {
	release, err := p.e.shared.Acquire(ctx, runnerSlots, spec.Caller, p.e.cfg.Runners, !inner)
	if err != nil {
		if inner {
			return nil, errNotShared
		}
		return nil, spec.code.busyError(ctx, fmt.Sprintf("%d runners in use", p.e.cfg.Runners))
	}
	l, err := p.find(ctx, id, spec)
	if err != nil {
		release()
		return nil, err
	}
	l.endUse = release
	return l, nil
}

// release gives a runner back. The runner is kept for the next call, unless it serves only one call or the call has
// ended it.
func (l *lease) release(reusable bool) {
	p := l.pool
	if l.name == "" {
		l.kill()
		<-l.child.exited
		l.drop()
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
	p.idle[l.id] = append(p.idle[l.id], l)
}

func (p *runnerPool) path(name, suffix string) string { return filepath.Join(p.dir, name+suffix) }

// find looks for a runner that is not in use, and otherwise starts one. There is always an unlocked name among the
// first ones, because every process that locks a name for more than a moment has a slot.
func (p *runnerPool) find(ctx context.Context, id string, spec *runnerSpec) (*lease, error) {
	if l := p.kept(id); l != nil {
		return l, nil
	}
	for i := 0; ; i++ {
		l, err := p.lock(fmt.Sprintf("%s-%d", id, i))
		switch {
		case err != nil:
			return nil, errors.Join(errNotShared, err)
		case l == nil:
			continue
		case l.dial() == nil:
			return l, nil
		}
		p.sweep(l.name)
		if err := p.start(ctx, l, spec); err != nil {
			l.drop()
			return nil, err
		}
		return l, nil
	}
}

// kept returns a runner that this process is connected to, or nil.
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

// lock returns a lease for the runner with a name, whether it runs or not. It returns nil if another process has it.
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
	l.connect(socket)
	// The process lives as long as the connection holds, so the handle refers to the runner.
	if !l.isConnected() {
		l.disconnect()
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (l *lease) connect(socket *net.UnixConn) {
	l.socket, l.conn = socket, wire.NewConn(bufio.NewReader(socket), socket)
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

// start starts the runner of a lease and connects to it. The error is errNotShared if a shared runner is impossible,
// for example because the kernel has no more watches.
func (p *runnerPool) start(ctx context.Context, l *lease, spec *runnerSpec) error {
	if err := spec.code.ensureCompiled(ctx, waiter{}); err != nil {
		return err
	}
	failure, err := p.startProcess(ctx, l, spec)
	if failure != nil && failure.Code == host.Unavailable {
		// The compiled code is missing or damaged. Loading it here repairs it.
		if err := spec.code.loadKept(ctx, waiter{}); err != nil {
			return err
		}
		failure, err = p.startProcess(ctx, l, spec)
	}
	if failure != nil {
		err = failure
	}
	if err != nil && l.name != "" {
		err = errors.Join(errNotShared, err)
	}
	return err
}

// startProcess starts a process with one end of a socket pair as its stdin. failure says why the process cannot run
// guests.
func (p *runnerPool) startProcess(ctx context.Context, l *lease, spec *runnerSpec) (failure *host.Error, err error) {
	s, args := spec.start, []string{spec.Manifest.Name}
	if l.name != "" {
		path := p.path(l.name, socketSuffix)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		info := guest.Marshal(RunnerInfo{Name: l.name, Plugin: spec.Manifest.Name, Caller: spec.Caller,
			Session: caller.SessionOf(spec.Session).String(), Started: time.Now()})
		if redact := p.e.cfg.Redact; redact != nil {
			info = manifest.MapJSON(info, redact())
		}
		if _, err := l.lock.WriteAt(info, 0); err != nil {
			return nil, err
		}
		if err := l.lock.Truncate(int64(len(info))); err != nil {
			return nil, err
		}
		s.Resident = &resident{Socket: path, Lock: p.path(l.name, lockSuffix), Watch: p.e.cfg.Watch,
			Idle: cmp.Or(p.e.cfg.RunnerIdle, runnerIdle)}
		args = append(args, path)
	}
	socket, child, err := p.e.startRunner(args...)
	if err != nil {
		return nil, world.Failed(host.Unavailable, err, "cannot start the process of %s: %v; nothing was run",
			spec.Manifest.Name, err).WithSteps(step.Operator(step.OpDoctor))
	}
	l.child, l.pid, l.handle = child, child.cmd.Process.Pid, -1
	l.connect(socket)
	stop := context.AfterFunc(ctx, l.kill)
	defer stop()
	err = l.conn.QueueHello(wire.Hello{Host: s.Host})
	if err == nil {
		err = l.conn.Send(wire.KindStart, guest.Marshal(s))
	}
	var kind wire.Kind
	var body []byte
	if err == nil {
		kind, body, err = l.conn.Receive(1 << 20)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && kind == wire.KindHello:
		l.conn.Greeted = true
		return nil, nil
	case err == nil && kind == wire.KindDone:
		var o wire.Outcome
		if json.Unmarshal(body, &o) == nil {
			if failure, _ = o.Failure(); failure != nil {
				return failure, nil
			}
		}
	}
	l.kill()
	<-child.exited
	return nil, fmt.Errorf("the runner did not start: %v: %s", child.cmd.ProcessState,
		world.Line(child.stderr.String(), 300))
}

// startRunner starts the process of a runner, and returns the socket that is connected to it.
func (e *Engine) startRunner(args ...string) (*net.UnixConn, *runnerChild, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	own, other := os.NewFile(uintptr(pair[0]), "runner"), os.NewFile(uintptr(pair[1]), "runner")
	defer own.Close()
	defer other.Close()
	conn, err := net.FileConn(own)
	if err != nil {
		return nil, nil, err
	}
	child := &runnerChild{cmd: e.childCommand(RunnerJob, args...), stderr: &prefixWriter{limit: 4 << 10},
		exited: make(chan struct{})}
	child.cmd.Stdin, child.cmd.Stderr = other, child.stderr
	if err := contain.Start(child.cmd); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	go func() {
		_ = child.cmd.Wait()
		close(child.exited)
	}()
	return conn.(*net.UnixConn), child, nil
}

// sweep removes the files of runners that have ended, and ends the least recently used runners that are not in use,
// so that fewer than [Config].Runners remain. Fewer than that many are in use, since every user has a slot. If all
// seem to be in use, another sweep is holding some of them for a moment, and sweep tries again.
func (p *runnerPool) sweep(except string) {
	for range sweepTries {
		if p.sweepOnce(except) < p.e.cfg.Runners {
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
		if running >= p.e.cfg.Runners {
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

// errNotShared means that there is no shared runner, so that the call gets a runner of its own.
var errNotShared = errors.New("no shared runner")

// run runs a job in a runner. If alone is set, or there is no shared runner, the runner serves only this job.
func (p *runnerPool) run(ctx context.Context, j *guest.Job, code *Provider, alone bool) (*job.Result, error) {
	spec, err := code.runnerSpec(j)
	if err != nil {
		return nil, err
	}
	id := spec.id()
	return runAtPlace(ctx, j, func(ctx context.Context, try int) (place, error) {
		l, err := p.lease(ctx, id, spec, alone || try == runnerTries, j.Request.Inner())
		if err != nil {
			return nil, err
		}
		l.id, l.terms = id, spec.Terms
		return l, nil
	})
}

// runnerSpec returns the spec of a job's runner.
func (p *Provider) runnerSpec(j *guest.Job) (*runnerSpec, error) {
	e, r := p.engine, j.Request
	key, err := p.moduleKey()
	if err != nil {
		return nil, err
	}
	spec := &runnerSpec{
		start: start{Terms: terms(j, key), Slot: filepath.Join(e.cfg.CacheDir, key), Host: j.Host,
			Defaults: e.cfg.Limits, Manifest: j.Manifest, Text: j.Text, Grant: r.Grant, Guard: r.Guard.Load(),
			CPU: j.Limits.Timeout},
		Plugin: p.identity(j.Manifest), Caller: r.Caller, Session: r.Session.Key(), Program: programID(), Wire: wire.Version,
		Folders: lists.Map(r.Grant.FS, func(g grant.FS) protect.FileID { return protect.Identify(g.Source) }), code: p,
	}
	return spec, nil
}

// lease returns a runner for a call. If alone is set, or there is no shared runner, the runner serves only this call.
func (p *runnerPool) lease(ctx context.Context, id string, spec *runnerSpec, alone, inner bool) (*lease, error) {
	if !alone && p.dir != "" {
		l, err := p.acquire(ctx, id, spec, inner)
		if !errors.Is(err, errNotShared) {
			return l, err
		}
		p.e.cfg.Debug("no shared runner for " + spec.Manifest.Name + ": " + world.Line(err.Error(), 300))
	}
	l := &lease{pool: p}
	if err := p.start(ctx, l, spec); err != nil {
		l.drop()
		return nil, err
	}
	return l, nil
}

// run runs a call on the runner. It kills the runner unless that sends an outcome in time and nothing unexpected.
func (l *lease) run(a *remoteCall) (*job.Result, error) {
	a.conn = l.conn
	stop := context.AfterFunc(a.control.Ctx, l.kill)
	stopWatch := l.watchCPU(a.Limits.Timeout)
	before := l.cpuTime()
	result, err := a.send(l.terms)
	used := l.cpuTime() - before // this may include the end of the previous call
	switch {
	case used == 0: // the process has ended already
		used = a.cpu
	case a.cpu > 0:
		used = min(used, a.cpu)
	}
	if a.begun {
		a.Request.Usage(used, 0)
	}
	stopWatch()
	if ended := !stop(); ended || !a.done {
		l.kill()
	}
	return result, err
}

// cpuSlack is the CPU time that the process of a call may use in addition to the guest's, for garbage collection.
const cpuSlack = time.Second

// watchCPU kills the runner when the call uses more CPU time than its deadline allows on one processor. The kernel's
// bound cannot be used, because it would count all calls of the runner. The caller must call stop when the call has
// ended.
func (l *lease) watchCPU(limit time.Duration) (stop func()) {
	before := l.cpuTime()
	every := max(limit/time.Duration(2*runtime.NumCPU()), 100*time.Millisecond)
	ended := make(chan struct{})
	timer := time.AfterFunc(every, func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			if l.cpuTime()-before > limit+cpuSlack {
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

// cpuTime returns the CPU time that the runner has used. For a runner that has ended it returns the last known value.
func (l *lease) cpuTime() time.Duration {
	if used, ok := cpuTimeOf(l.pid); ok {
		l.used.Store(int64(used))
	}
	return time.Duration(l.used.Load())
}

// cpuTimeOf returns the CPU time that a process has used. pid 0 is this process.
func cpuTimeOf(pid int) (time.Duration, bool) {
	const schedClock = 2
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|schedClock), &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}

// again reports whether a call may run again. A call that has begun may run once more, because somebody may have
// killed the runner. If the guest itself was the cause, it will end the second runner, too.
func (l *lease) again(a *remoteCall, begun int) bool {
	return l.name != "" && (!a.begun || begun == 1 && a.repeatable())
}

// lost returns the reason why a runner ended during a call.
func (l *lease) lost(a *remoteCall) error {
	if a.control.Ctx.Err() == nil { // otherwise the runner was killed because the time is over
		l.pool.e.lostRunners.Add(1)
	}
	tooLong := host.Errorf(host.LimitExceeded, "%s used more than %v of CPU time", a.ToolName(), a.Limits.Timeout)
	switch {
	case l.over.Load():
		return tooLong
	case l.child == nil:
		return host.Errorf(host.Trapped, "the runner of %s ended during the call", a.ToolName())
	}
	<-l.child.exited
	state, output := l.child.cmd.ProcessState, l.child.stderr.String()
	l.pool.e.cfg.Debug(fmt.Sprintf("the runner of %s: %v: %s", a.Manifest.Name, state, world.Line(output, 1000)))
	switch {
	case isOutOfMemory(output):
		return host.Errorf(host.LimitExceeded, "%s and its process need more memory than the limit", a.ToolName())
	case l.name == "" && state.UserTime()+state.SystemTime() > a.Limits.Timeout: // the kernel's bound
		return tooLong
	}
	return host.Errorf(host.Trapped, "the runner of %s ended during the call: %v", a.ToolName(), state)
}

// runnerFiles returns the runners according to their files, the least recently used first.
func runnerFiles(dir string) []RunnerInfo {
	entries, _ := os.ReadDir(dir)
	var all []RunnerInfo
	for _, entry := range entries {
		name, isLock := strings.CutSuffix(entry.Name(), lockSuffix)
		if !isLock || !strings.HasPrefix(name, runnerPrefix) {
			continue
		}
		info := RunnerInfo{}
		if data, err := protect.ReadProject(filepath.Join(dir, entry.Name()), 64<<10); err == nil {
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

// Runners returns the runners of a run folder, the least recently used first. It includes those that have ended but
// left files.
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

// StopRunners ends the runners of a run folder that match, even in the middle of a call, and returns them. It removes
// their files, and the files of runners that have ended by themselves.
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
