package wasm

import (
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

// job is one call of a guest: what to call, with which rights and limits, and where its questions and events go. It is
// the same in this process and in a runner, to which the wire brings it, and [call.run] runs it in both.
type job struct {
	request  *host.Request
	manifest *manifest.Manifest
	text     *manifest.SourceFile // of a plugin of kind script; else nil
	session  string               // the id by which the guest knows it
	host     string               // version
	limits   limits
	// serve serves the functions of the host for the guest, as [serveGuest] does.
	serve func(ctx context.Context, function string, argument []byte) []byte
}

// newJob returns the job of a request.
func newJob(cfg *Config, m *manifest.Manifest, text *manifest.SourceFile, r *host.Request) *job {
	return &job{request: r, manifest: m, text: text, session: r.Session.GuestID(m.Name), host: cfg.HostVersion,
		limits: limitsOf(cfg.Limits, m, r),
		serve: func(ctx context.Context, function string, argument []byte) []byte {
			return serveGuest(ctx, r, function, argument)
		}}
}

// toolName returns the name of the tool in errors.
func (j *job) toolName() string { return j.manifest.Name + "." + j.request.Tool }

// control returns what holds the call to its limits.
func (j *job) control() *control { return &control{tool: j.toolName(), limits: j.limits} }

// call is one call in one instance. It is not safe for concurrent use.
type call struct {
	*job
	plugin  *compiledPlugin
	control *control
	memory  *memory
	files   *files
	clock   *clock
	log     *messages
	streams streams

	gaveWay  time.Time // when yield last called the scheduler
	mod      api.Module
	prepared bool   // the instance is made and initialized
	image    *image // the image that is taken of the instance; else nil
	// initialized is how long that took, by the guest's clock.
	initialized time.Duration
	kernel      *extismKernel // of a guest of kind mcp; else nil
	inAlloc     bool          // parley_alloc is running
}

type callKey struct{}

// callOf returns the call that a host function serves.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

func newCall(p *compiledPlugin, j *job) *call {
	k := j.control()
	return &call{
		job: j, plugin: p, control: k, memory: &memory{control: k}, files: &files{control: k, request: j.request},
		clock: &clock{control: k, request: j.request},
		log:   &messages{control: k, request: j.request, plugin: j.manifest.Name},
	}
}

// take makes a prepared call the call of a job. What the instance has found around it stays.
func (c *call) take(j *job) {
	*c.request = *j.request
	j.request = c.request
	c.job, c.control.tool, c.control.limits = j, j.toolName(), j.limits
	c.clock.started = time.Now().Add(-c.initialized)
	c.log.stderrTo(c.streams.stderr)
}

// run runs the call in an instance, which the caller must close.
func (c *call) run(ctx context.Context) (*host.Result, error) {
	if pages := c.plugin.startPages(); pages > c.limits.pages {
		return nil, host.Errorf(host.LimitExceeded, "%s starts with %d MiB of memory, the limit is %d MiB",
			c.manifest.Name, pages/pagesPerMiB, c.limits.pages/pagesPerMiB)
	}
	return c.control.within(ctx, func() (*host.Result, error) {
		c.enter()
		defer func() {
			if c.streams.stderr != nil {
				c.streams.stderr.flush()
			}
		}()
		switch c.manifest.Kind {
		case manifest.KindWASI:
			return c.runCommand()
		case manifest.KindMCP:
			return c.runExtism()
		}
		return c.runReactor()
	})
}

// enter makes the call the one that host functions serve.
func (c *call) enter() {
	k := c.control
	k.ctx = experimental.WithMemoryAllocator(context.WithValue(k.ctx, callKey{}, c), c.memory)
}

// instantiate creates the instance and runs the start functions named.
func (c *call) instantiate(config wazero.ModuleConfig, start ...string) error {
	begins := c.plugin.image
	if c.image != nil {
		begins = nil
	}
	if begins != nil {
		c.clock.begin(begins.Clock, begins.Random)
	} else {
		c.clock.begin(0, 0)
	}
	config = c.streams.configure(c.clock.configure(config.WithName("").WithStartFunctions(start...)))
	config, err := c.files.mount(config, c.manifest, c.plugin.assets)
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(c.request.Grant.Env) {
		config = config.WithEnv(name, c.request.Grant.Env[name])
	}
	if begins != nil {
		if !fitsImage(c.request.Grant) {
			return host.Errorf(host.Internal, "%s has rights for which its manifest does not ask", c.manifest.Name)
		}
		limit := uint64(min(c.plugin.module.MemoryMax, c.limits.pages)) * pageBytes
		if c.memory.imaged, err = begins.pages(limit); err != nil {
			return err
		}
		config = config.WithStartFunctions() // they have run
	}
	c.mod, err = c.plugin.runtime.InstantiateModule(c.control.ctx, c.plugin.compiled, config)
	return err
}

// capture sets up stdout and stderr of the guest. Lines of stderr go to the log.
func (c *call) capture(stdout *capture) {
	c.streams.stdout = stdout
	c.streams.stderr = &capture{control: c.control, limit: stderrExcerpt, name: "stderr"}
	c.log.stderrTo(c.streams.stderr)
}

// close frees everything that belongs to the call.
func (c *call) close() {
	if c.mod != nil {
		_ = c.mod.Close(context.WithoutCancel(c.control.ctx))
	}
	c.memory.free()
	c.files.closeAll()
}

// guestError returns the reason why a guest ended without returning. Output of the guest is no evidence. The
// context decides first, then the host's own error, then the engine's.
func (c *call) guestError(err error) error {
	var exit *sys.ExitError
	var h guestHalt
	switch {
	case c.control.ctx.Err() != nil:
		return c.control.contextError()
	case c.control.fatal != nil:
		return c.control.fatal
	case errors.As(err, &h):
		return h.err
	case errors.As(err, &exit):
		return c.exitError(exit.ExitCode())
	case c.memory.denied:
		return c.outOfMemory(err)
	}
	return &host.Error{Code: host.Trapped, Message: c.withOutput(c.toolName() + " crashed: " + trapReason(err)),
		Cause: err, Trace: c.trace(err)}
}

func (c *call) outOfMemory(cause error) error {
	return &host.Error{Code: host.LimitExceeded, Cause: cause,
		Message: fmt.Sprintf("%s needs more than its %d MiB of memory", c.toolName(), c.limits.pages/pagesPerMiB)}
}

// withOutput returns a message with what the guest last wrote to stderr.
func (c *call) withOutput(message string) string {
	if output := c.streams.summary(); output != "" {
		message += "; its last output: " + output
	}
	return message
}

// exitError returns the error for a guest that called proc_exit instead of returning a response.
func (c *call) exitError(code uint32) error {
	if c.memory.denied && code != 0 {
		return c.outOfMemory(nil)
	}
	message := c.withOutput(fmt.Sprintf("%s called proc_exit(%d) instead of returning a response", c.toolName(), code))
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
