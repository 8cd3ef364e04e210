package wasm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Defaults of a call. A manifest can set the first three, a policy can set all of them; the policy can only lower
// what the manifest asks for.
const (
	defaultMemoryMiB       = 256
	defaultTimeout         = 30 * time.Second
	defaultOutput          = 1 << 20
	defaultLogBytes        = 1 << 20
	defaultHostCalls       = 10_000 // call_tool, http_request and read_secret together
	defaultOpenFiles       = 256
	defaultFilesCreated    = 10_000
	defaultBytesWritten    = 1 << 30
	defaultConcurrentCalls = 32 // of one plugin

	// programTime is how long a guest that makes calls as its caller may run, without the time that it waits.
	programTime = 10 * time.Second

	maxOutput       = 16 << 20
	maxUnlimitedMiB = 1 << 10 // of memory, if the policy names no limit
	maxLogCalls     = 100_000
	stderrExcerpt   = 4 << 10 // bytes of the beginning and of the end of stderr
)

// limits holds the bounds of one call.
type limits struct {
	pages     uint32 // of 64 KiB each
	timeout   time.Duration
	running   time.Duration // without the time that the guest waits for the host; 0 means as long as timeout
	output    int           // bytes
	log       int           // bytes
	hostCalls int
	openFiles int
	created   int // files
	written   int64
}

// requestedMemoryMiB returns the memory in MiB that the manifest asks for, or the default if it names none.
func requestedMemoryMiB(m *manifest.Manifest) uint32 {
	if m.Limits.MemoryMiB > 0 {
		return uint32(min(m.Limits.MemoryMiB, maxPages/pagesPerMiB))
	}
	return defaultMemoryMiB
}

// limitsOf combines the manifest's limits, the engine's defaults and the policy's limits. A timeout that the caller
// asks for replaces the plugin's own, as in the host; the policy's timeout bounds both.
func limitsOf(cfg host.Limits, m *manifest.Manifest, r *host.Request) limits {
	memory := requestedMemoryMiB(m)
	if m.Limits.MemoryMiB == 0 && cfg.MemoryMiB > 0 {
		memory = uint32(cfg.MemoryMiB)
	}
	memory = min(memory, uint32(cmp.Or(r.Limits.MemoryMiB, maxUnlimitedMiB)))
	timeout := firstPositive(r.Options.Timeout, time.Duration(m.Limits.TimeoutMS)*time.Millisecond, cfg.Timeout,
		defaultTimeout)
	if r.Limits.Timeout > 0 {
		timeout = min(timeout, r.Limits.Timeout)
	}
	usualOutput := defaultOutput
	if r.Options.JQ != "" { // the filter's result leaves the host, not this one
		usualOutput = maxOutput
	}
	output := min(firstPositive(m.Limits.OutputBytes, cfg.OutputBytes, usualOutput), maxOutput)
	if r.Limits.OutputBytes > 0 {
		output = min(output, r.Limits.OutputBytes)
	}
	running := time.Duration(0)
	if r.Grant.Caller {
		running = programTime
	}
	return limits{running: running,
		pages: min(memory, maxPages/pagesPerMiB) * pagesPerMiB, timeout: timeout, output: output,
		log:       cmp.Or(r.Limits.LogBytes, defaultLogBytes),
		hostCalls: cmp.Or(r.Limits.HostCalls, defaultHostCalls),
		openFiles: cmp.Or(r.Limits.OpenFiles, defaultOpenFiles),
		created:   cmp.Or(r.Limits.FilesCreated, defaultFilesCreated),
		written:   int64(cmp.Or(r.Limits.BytesWritten, defaultBytesWritten)),
	}
}

func firstPositive[T int | time.Duration](values ...T) T {
	for _, v := range values {
		if v > 0 {
			return v
		}
	}
	return 0
}

// call is one call in one instance. It is not safe for concurrent use.
type call struct {
	engine  *Engine
	plugin  *compiledPlugin
	m       *manifest.Manifest
	r       *host.Request
	text    *manifest.SourceFile // of a plugin of kind script; else nil
	limits  limits
	session string // the id by which the guest knows it

	ctx      context.Context
	deadline time.Time
	gaveWay  time.Time // when yield last called the scheduler
	stops    time.Time // when the guest has run for as long as it may; waiting moves it
	mod      api.Module
	started  time.Time // where the guest's monotonic clock is 0
	prepared bool      // the instance is made and initialized
	taken    *image    // the image that is taken of the instance; else nil
	// initialized is how long that took, by the guest's clock.
	initialized time.Duration

	kernel *extismKernel // of a guest of kind mcp; else nil
	stdin  *bytes.Reader
	stdout *capture
	stderr *capture

	inAlloc      bool // parley_alloc is running
	memory       []*boundedMemory
	imaged       pages // with the image, before the instance has it
	memoryDenied bool
	fatal        *host.Error // the error that the host ended the guest with, however the guest reports its own end
	files        fileTable
	hostCalls    int // requests to the host
	logged       int // bytes
	logCalls     int
	lastLog      []string // the last messages

	// serve serves the functions of the host for the guest, as [serveGuest] does.
	serve func(ctx context.Context, function string, argument []byte) []byte
}

type callKey struct{}

// callOf returns the call that a host function serves.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

func newCall(e *Engine, p *compiledPlugin, m *manifest.Manifest, r *host.Request) *call {
	c := &call{engine: e, plugin: p, m: m, r: r, limits: limitsOf(e.cfg.Limits, m, r), session: r.Session.GuestID(m.Name),
		stdin: bytes.NewReader(nil)}
	c.serve = func(ctx context.Context, function string, argument []byte) []byte {
		return serveGuest(ctx, r, function, argument)
	}
	return c
}

// run creates an instance, runs the call in it and closes it.
func (c *call) run(ctx context.Context) (result *host.Result, err error) {
	defer c.close()
	return c.runOpen(ctx)
}

// runOpen is run without closing the instance.
func (c *call) runOpen(ctx context.Context) (result *host.Result, err error) {
	if pages := c.plugin.startPages(); pages > c.limits.pages {
		return nil, host.Errorf(host.LimitExceeded, "%s starts with %d MiB of memory, the limit is %d MiB", c.m.Name,
			pages/pagesPerMiB, c.limits.pages/pagesPerMiB)
	}
	ctx, cancel := context.WithTimeout(ctx, c.limits.timeout)
	defer cancel()
	c.begin(ctx)
	defer func() {
		if c.stderr != nil {
			c.stderr.flush()
		}
	}()

	switch c.m.Kind {
	case manifest.KindWASI:
		result, err = c.runCommand()
	case manifest.KindMCP:
		result, err = c.runExtism()
	default:
		result, err = c.runReactor()
	}
	if c.ctx.Err() != nil {
		err = c.contextError()
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// begin makes ctx that of the call. It has a deadline.
func (c *call) begin(ctx context.Context) {
	ctx = context.WithValue(ctx, callKey{}, c)
	c.ctx = experimental.WithMemoryAllocator(ctx, c)
	c.deadline, _ = ctx.Deadline()
	c.stops = time.Now().Add(c.limits.running)
}

// instantiate creates the instance and runs the start functions named.
func (c *call) instantiate(config wazero.ModuleConfig, start ...string) error {
	config, err := c.mount(c.configureSystem(config.WithName("").WithStartFunctions(start...)))
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(c.r.Grant.Env) {
		config = config.WithEnv(name, c.r.Grant.Env[name])
	}
	if i := c.plugin.image; i != nil && c.taken == nil {
		if !fitsImage(c.r.Grant) {
			return host.Errorf(host.Internal, "%s has rights for which its manifest does not ask", c.m.Name)
		}
		if c.imaged, err = i.pages(uint64(min(c.plugin.module.MemoryMax, c.limits.pages)) * pageBytes); err != nil {
			return err
		}
		config = config.WithStartFunctions() // they have run
	}
	c.mod, err = c.plugin.runtime.InstantiateModule(c.ctx, c.plugin.compiled, config)
	return err
}

// close frees everything that belongs to the call.
func (c *call) close() {
	if c.mod != nil {
		_ = c.mod.Close(context.WithoutCancel(c.ctx))
	}
	for _, m := range c.memory {
		m.Free()
	}
	if c.imaged != nil {
		c.imaged.free()
	}
	c.files.closeAll()
}

// guestHalt is the panic value with which a host function ends the guest. wazero returns an error that wraps it.
type guestHalt struct{ err *host.Error }

func (h guestHalt) Error() string { return h.err.Message }
func (h guestHalt) Unwrap() error { return h.err }

// checkpoint ends the guest if its deadline has passed. Instrumented code calls it, and so does every host function
// that may run long.
func (c *call) checkpoint() { c.checkpointAt(time.Now()) }

// checkpointAt is checkpoint for a caller that knows what time it is.
func (c *call) checkpointAt(now time.Time) {
	if c.ctx.Err() == nil {
		if c.limits.running > 0 && now.After(c.stops) {
			panic(guestHalt{c.recordFatal(host.Errorf(host.Timeout, "%s ran for more than %s, without the time that it waited, "+
				"and was stopped", c.toolName(), c.limits.running))})
		}
		if now.Before(c.deadline) {
			return
		}
		<-c.ctx.Done() // the timer fires late; the deadline has passed
	}
	panic(guestHalt{c.contextError()})
}

// exceedLimit ends the guest because it exceeded a limit.
func (c *call) exceedLimit(format string, args ...any) {
	c.fatal = host.Errorf(host.LimitExceeded, format, args...)
	panic(guestHalt{c.fatal})
}

func (c *call) contextError() *host.Error {
	cause := c.ctx.Err()
	if errors.Is(cause, context.DeadlineExceeded) {
		return &host.Error{Code: host.Timeout, Cause: cause,
			Message: fmt.Sprintf("%s did not end within %s and was stopped", c.toolName(), c.limits.timeout)}
	}
	return &host.Error{Code: host.Interrupted, Cause: cause, Message: c.toolName() + " was interrupted"}
}

func (c *call) toolName() string { return c.m.Name + "." + c.r.Tool }

// guestError returns the reason why a guest ended without returning. Output of the guest is no evidence. The
// context decides first, then the host's own error, then the engine's.
func (c *call) guestError(err error) error {
	var exit *sys.ExitError
	var h guestHalt
	switch {
	case c.ctx.Err() != nil:
		return c.contextError()
	case c.fatal != nil:
		return c.fatal
	case errors.As(err, &h):
		return h.err
	case errors.As(err, &exit):
		return c.exitError(exit.ExitCode())
	case c.memoryDenied:
		return &host.Error{Code: host.LimitExceeded, Cause: err,
			Message: fmt.Sprintf("%s needs more than its %d MiB of memory", c.toolName(), c.limits.pages/pagesPerMiB)}
	}
	message := c.toolName() + " crashed: " + trapReason(err)
	if logged := c.stderrSummary(); logged != "" {
		message += "; its last output: " + logged
	}
	return &host.Error{Code: host.Trapped, Message: message, Cause: err, Trace: c.trace(err)}
}

// exitError returns the error for a guest that called proc_exit instead of returning a response.
func (c *call) exitError(code uint32) error {
	if c.memoryDenied && code != 0 {
		return host.Errorf(host.LimitExceeded, "%s needs more than its %d MiB of memory", c.toolName(),
			c.limits.pages/pagesPerMiB)
	}
	message := fmt.Sprintf("%s called proc_exit(%d) instead of returning a response", c.toolName(), code)
	if logged := c.stderrSummary(); logged != "" {
		message += "; its last output: " + logged
	}
	if code == 0 {
		return host.Errorf(host.InvalidResult, "%s", message)
	}
	return c.toolError(int64(code), message, nil)
}

// traps maps the engine's reasons to messages for people.
var traps = []struct{ engine, people string }{
	{"stack overflow", "stack overflow (infinite recursion?)"},
	{"unreachable", "it executed an unreachable instruction (an abort, a panic or a failed assertion)"},
	{"out of bounds memory access", "out of bounds memory access"},
	{"integer divide by zero", "integer divide by zero"},
	{"integer overflow", "integer overflow"},
	{"invalid conversion to integer", "invalid conversion to integer"},
	{"invalid table access", "a call through an empty or missing table entry"},
	{"indirect call type mismatch", "an indirect call of a function of another type"},
}

// trapReason describes a trap by the innermost error, which is the engine's own. Names that the guest chose are not
// repeated.
func trapReason(err error) string {
	inner := err
	for errors.Unwrap(inner) != nil {
		inner = errors.Unwrap(inner)
	}
	for _, t := range traps {
		if inner.Error() == t.engine {
			return t.people
		}
	}
	var fault runtime.Error
	if errors.As(err, &fault) {
		return "it called a host function with invalid arguments"
	}
	if strings.Contains(err.Error(), "out of bounds") {
		return "its data or element segments do not fit into its memory or table"
	}
	return "unknown trap"
}

// stderrSummary returns what the guest last wrote to stderr, fit for a message: the line of a Go panic, or the last
// lines.
func (c *call) stderrSummary() string {
	if c.stderr == nil {
		return ""
	}
	head, _ := c.stderr.excerpts()
	for line := range strings.Lines(head) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return truncate(manifest.CleanLine(line), 300)
		}
	}
	lines, before := c.stderr.lastLines(3)
	if before > 0 {
		lines = append([]string{fmt.Sprintf("(%d bytes before)", before)}, lines...)
	}
	return truncate(manifest.CleanLine(strings.Join(lines, " | ")), 400)
}
