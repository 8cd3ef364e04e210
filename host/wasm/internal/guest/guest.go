// Package guest runs calls in instances of compiled modules, for each kind of plugin by its own protocol.
package guest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
)

// Job is one call of a guest: what to call, with which rights and limits, and where its requests to the host and its
// events go. The wire brings it to a runner unchanged. [Call.Run] runs it there as it does in this process.
type Job struct {
	Request  *host.Request
	Manifest *manifest.Manifest
	Text     *sections.SourceFile // for a plugin of kind script; otherwise nil
	Session  string               // the session's id as the guest sees it
	Host     string               // the host's version
	Limits   world.Limits
	// Serve serves the functions of the host for the guest, as [ServeGuest] does.
	Serve func(ctx context.Context, function string, argument []byte) []byte
}

// NewJob returns the job of a request.
func NewJob(version string, defaults grant.Limits, m *manifest.Manifest, text *sections.SourceFile, r *host.Request,
) *Job {
	return &Job{Request: r, Manifest: m, Text: text, Session: r.Session.GuestID(m.Name), Host: version,
		Limits: world.LimitsOf(defaults, m, r),
		Serve: func(ctx context.Context, function string, argument []byte) []byte {
			return ServeGuest(ctx, r, function, argument)
		}}
}

// ToolName returns the name of the tool in errors.
func (j *Job) ToolName() string { return j.Manifest.Name + "." + j.Request.Tool }

// Control returns the control that enforces the call's limits.
func (j *Job) Control() *world.Control { return &world.Control{Tool: j.ToolName(), Limits: j.Limits} }

// Code is a compiled module in a runtime of its own, so that no plugin can reach anything of another.
type Code struct {
	Module   *instrument.Module // without its wasm bytes
	Runtime  wazero.Runtime
	Compiled wazero.CompiledModule
	Assets   *world.MemNode // nil if it has none
	Image    *Image         // nil if its instances begin with _initialize
	Cache    wazero.CompilationCache
}

// Close frees the code. No instance of it may exist any more.
func (c *Code) Close(ctx context.Context) error {
	err := errors.Join(c.Runtime.Close(ctx), c.Cache.Close(ctx))
	if c.Image != nil {
		err = errors.Join(err, c.Image.file.Close())
	}
	return err
}

// StartPages returns the number of memory pages that an instance begins with.
func (c *Code) StartPages() uint32 {
	if c.Image != nil {
		return c.Image.Pages
	}
	return c.Module.MemoryMin
}

// Call is one call in one instance. It is not safe for concurrent use.
type Call struct {
	*Job
	plugin  *Code
	Control *world.Control
	memory  *world.Memory
	Files   *world.Files
	Clock   *world.Clock
	log     *world.Messages
	Streams world.Streams

	gaveWay  time.Time // when yield last called the scheduler
	mod      api.Module
	Prepared bool   // the instance is created and initialized
	image    *Image // the image that is being taken of the instance; otherwise nil
	// Initialized is how long that took, by the guest's clock.
	Initialized time.Duration
	kernel      *extismKernel // for a guest of kind extism; otherwise nil
	inAlloc     bool          // parley_alloc is running
}

type callKey struct{}

// callOf returns the call that a host function serves.
func callOf(ctx context.Context) *Call { return ctx.Value(callKey{}).(*Call) }

// New returns a call of a plugin that has not begun.
func New(p *Code, j *Job) *Call {
	k := j.Control()
	return &Call{
		Job: j, plugin: p, Control: k, memory: &world.Memory{Control: k}, Files: &world.Files{Control: k, Request: j.Request},
		Clock: &world.Clock{Control: k, Request: j.Request},
		log:   &world.Messages{Control: k, Request: j.Request, Plugin: j.Manifest.Name},
	}
}

// Take assigns a job to a prepared call. The instance keeps the environment in which it was prepared.
func (c *Call) Take(j *Job) {
	*c.Request = *j.Request
	j.Request = c.Request
	c.Job, c.Control.Tool, c.Control.Limits = j, j.ToolName(), j.Limits
	c.Clock.Started = time.Now().Add(-c.Initialized)
	c.log.StderrTo(c.Streams.Stderr)
}

// Run runs the call in an instance, which the caller must close.
func (c *Call) Run(ctx context.Context) (*job.Result, error) {
	if pages := c.plugin.StartPages(); pages > c.Limits.Pages {
		return nil, host.Errorf(host.LimitExceeded, "%s starts with %d MiB of memory, the limit is %d MiB",
			c.Manifest.Name, pages/world.PagesPerMiB, c.Limits.Pages/world.PagesPerMiB)
	}
	return c.Control.Within(ctx, func() (*job.Result, error) {
		c.Enter()
		defer func() {
			if c.Streams.Stderr != nil {
				c.Streams.Stderr.Flush()
			}
			c.Request.Usage(0, int64(c.memory.Peak))
		}()
		switch c.Manifest.Kind {
		case manifest.KindWASI:
			return c.runCommand()
		case manifest.KindExtism:
			return c.runExtism()
		}
		return c.RunReactor()
	})
}

// Enter makes host functions serve the call.
func (c *Call) Enter() {
	k := c.Control
	k.Ctx = experimental.WithMemoryAllocator(context.WithValue(k.Ctx, callKey{}, c), c.memory)
}

// instantiate creates the instance and runs the named start functions.
func (c *Call) instantiate(config wazero.ModuleConfig, start ...string) error {
	begins := c.plugin.Image
	if c.image != nil {
		begins = nil
	}
	if begins != nil {
		c.Clock.Begin(begins.Clock, begins.Random)
	} else {
		c.Clock.Begin(0, 0)
	}
	config = c.Streams.Configure(c.Clock.Configure(config.WithName("").WithStartFunctions(start...)))
	config, err := c.Files.Mount(config, c.Manifest, c.plugin.Assets)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Request.Grant.Env)) {
		config = config.WithEnv(name, c.Request.Grant.Env[name])
	}
	if begins != nil {
		if !fitsImage(c.Request.Grant) {
			return host.Errorf(host.Internal, "%s has rights that its manifest does not request", c.Manifest.Name)
		}
		limit := uint64(min(c.plugin.Module.MemoryMax, c.Limits.Pages)) * world.PageBytes
		if err := begins.load(c.memory, limit); err != nil {
			return err
		}
		config = config.WithStartFunctions() // they have run already
	}
	c.mod, err = c.plugin.Runtime.InstantiateModule(c.Control.Ctx, c.plugin.Compiled, config)
	return err
}

// Capture sets up stdout and stderr of the guest. Lines of stderr go to the log.
func (c *Call) Capture(stdout *world.Capture) {
	c.Streams.Stdout = stdout
	c.Streams.Stderr = &world.Capture{Control: c.Control, Limit: world.StderrExcerpt, Name: "stderr"}
	c.log.StderrTo(c.Streams.Stderr)
}

// Close frees everything that belongs to the call.
func (c *Call) Close() {
	if c.mod != nil {
		_ = c.mod.Close(context.WithoutCancel(c.Control.Ctx))
	}
	c.memory.Free()
	c.Files.CloseAll()
}

// guestError returns the reason why a guest ended without returning. The guest's output proves nothing. The reason
// comes from the context, or else from the host's own error, or else from the engine.
func (c *Call) guestError(err error) error {
	var exit *sys.ExitError
	var h world.GuestHalt
	switch {
	case c.Control.Ctx.Err() != nil:
		return c.Control.ContextError()
	case c.Control.Fatal != nil:
		return c.Control.Fatal
	case errors.As(err, &h):
		return h.Err
	case errors.As(err, &exit):
		return c.exitError(exit.ExitCode())
	case c.memory.Denied:
		return c.outOfMemory(err)
	}
	return &host.Error{Code: host.Trapped, Message: c.withOutput(c.ToolName() + " crashed: " + trapReason(err)),
		Cause: err, Trace: c.trace(err)}
}

func (c *Call) outOfMemory(cause error) error {
	return world.Failed(host.LimitExceeded, cause, "%s needs more than its %d MiB of memory", c.ToolName(),
		c.Limits.Pages/world.PagesPerMiB)
}

// withOutput returns a message with the last lines that the guest wrote to stderr added.
func (c *Call) withOutput(message string) string {
	if output := c.Streams.Summary(); output != "" {
		message += "; its last output: " + output
	}
	return message
}

// exitError returns the error for a guest that called proc_exit instead of returning a response.
func (c *Call) exitError(code uint32) error {
	if c.memory.Denied && code != 0 {
		return c.outOfMemory(nil)
	}
	message := c.withOutput(fmt.Sprintf("%s called proc_exit(%d) instead of returning a response", c.ToolName(), code))
	if code == 0 {
		return host.Errorf(host.InvalidResult, "%s", message)
	}
	return c.toolError(int64(code), message, nil)
}

// traps maps the engine's reasons to messages for people.
var traps = map[string]string{
	"stack overflow":                "stack overflow (infinite recursion?)",
	"unreachable":                   "it executed an unreachable instruction (an abort, a panic or a failed assertion)",
	"out of bounds memory access":   "out of bounds memory access",
	"integer divide by zero":        "integer divide by zero",
	"integer overflow":              "integer overflow",
	"invalid conversion to integer": "invalid conversion to integer",
	"invalid table access":          "a call through an empty or missing table entry",
	"indirect call type mismatch":   "an indirect call of a function of another type",
}

// trapReason describes a trap by the innermost error, which comes from the engine itself. It does not repeat names
// that the guest chose.
func trapReason(err error) string {
	inner := err
	for errors.Unwrap(inner) != nil {
		inner = errors.Unwrap(inner)
	}
	if people, ok := traps[inner.Error()]; ok {
		return people
	}
	if _, isFault := errors.AsType[runtime.Error](err); isFault {
		return "it called a host function with invalid arguments"
	}
	if strings.Contains(err.Error(), "out of bounds") {
		return "its data or element segments do not fit into its memory or table"
	}
	return "unknown trap"
}
