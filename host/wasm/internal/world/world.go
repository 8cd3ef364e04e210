// Package world is the environment of a guest: files, memory, a clock, randomness and streams, all within the limits
// of its call.
package world

import (
	"cmp"
	"context"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/internal/deadline"
	"github.com/parley-tools/parley/manifest"
)

// Control holds the guest of one call to its limits. It ends the guest when its time is over, or because of something
// that the guest did.
type Control struct {
	Tool   string // the tool's name in errors
	Limits Limits

	Ctx       context.Context
	Deadline  time.Time
	stops     time.Time   // when the guest has run for as long as it may; waiting postpones it
	Fatal     *host.Error // the error with which the host ended the guest, whatever the guest itself reports
	HostCalls int         // number of requests to the host
}

// Within runs a call within its time. Only the context decides whether it ended in time, never the guest's output.
func (k *Control) Within(ctx context.Context, run func() (*job.Result, error)) (*job.Result, error) {
	limited, cancel := deadline.With(ctx, k.Limits.Timeout)
	defer cancel()
	k.Begin(limited)
	result, err := run()
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		<-ctx.Done() // if two timers are due, the later one may fire first
	}
	if k.Ctx.Err() != nil {
		err = k.ContextError()
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// Begin makes ctx the context of the call. It has a deadline.
func (k *Control) Begin(ctx context.Context) {
	k.Ctx = ctx
	k.Deadline, _ = ctx.Deadline()
	k.stops = time.Now().Add(k.Limits.running)
}

// GuestHalt is the panic value of a host function that ends the guest. wazero returns an error that wraps it.
type GuestHalt struct{ Err *host.Error }

func (h GuestHalt) Error() string { return h.Err.Message }

func (h GuestHalt) Unwrap() error { return h.Err }

// Checkpoint ends the guest if its deadline has passed. Instrumented code calls it, and so does every host function
// that may run long.
func (k *Control) Checkpoint() { k.CheckpointAt(time.Now()) }

// CheckpointAt is [Control.Checkpoint] for a caller that knows the time.
func (k *Control) CheckpointAt(now time.Time) {
	if k.Ctx.Err() == nil {
		if k.Limits.running > 0 && now.After(k.stops) {
			k.End(host.Errorf(host.Timeout, "%s ran for more than %s, without the time that it waited, and was "+
				"stopped; no timeout raises that limit: do less in one call",
				k.Tool, k.Limits.running))
		}
		if now.Before(k.Deadline) {
			return
		}
		<-k.Ctx.Done() // the timer fires late; the deadline has passed
	}
	panic(GuestHalt{k.ContextError()})
}

// Wait waits until done is closed or receives, or the call ends. The waiting time does not count as running. The
// deadline may have moved by then.
func (k *Control) Wait(wait func(ended <-chan struct{})) {
	began := time.Now()
	wait(k.Ctx.Done())
	k.stops = k.stops.Add(time.Since(began))
	k.Deadline, _ = k.Ctx.Deadline()
}

// ExceedLimit ends the guest because it exceeded a limit.
func (k *Control) ExceedLimit(format string, args ...any) {
	k.End(host.Errorf(host.LimitExceeded, format, args...))
}

// End ends the guest with an error.
func (k *Control) End(e *host.Error) { panic(GuestHalt{k.recordFatal(e)}) }

// recordFatal records the error that ends the guest and returns it. The first error wins.
func (k *Control) recordFatal(e *host.Error) *host.Error {
	if k.Fatal == nil {
		k.Fatal = e
	}
	return k.Fatal
}

// CountHostCall counts a request to the host. It returns an error above the limit.
func (k *Control) CountHostCall() *host.Error {
	if k.HostCalls++; k.HostCalls > k.Limits.hostCalls {
		return host.Errorf(host.LimitExceeded, "%s made more than %d requests to the host in one call", k.Tool,
			k.Limits.hostCalls)
	}
	return nil
}

// ContextError returns the error of a call whose context has ended.
func (k *Control) ContextError() *host.Error {
	cause := k.Ctx.Err()
	if deadline.Exceeded(k.Ctx) {
		return Failed(host.Timeout, cause, "%s did not end within %s and was stopped", k.Tool, k.Limits.Timeout)
	}
	return &host.Error{Code: host.Interrupted, Cause: cause, Message: k.Tool + " was interrupted"}
}

// Defaults of a call. A manifest can set the first three, and a policy can set all of them, but the policy can only
// lower what the manifest requests, and the default timeout, which a caller may exceed.
const (
	defaultMemoryMiB       = 256
	defaultTimeout         = 30 * time.Second
	defaultOutput          = 1 << 20
	DefaultLogBytes        = 1 << 20
	defaultHostCalls       = 10_000 // call_tool, http_request and read_secret together
	defaultOpenFiles       = 256
	defaultFilesCreated    = 10_000
	defaultBytesWritten    = 1 << 30
	DefaultConcurrentCalls = 32 // calls of one plugin

	// programTime is how long a guest that makes calls as its caller may run, not counting the time that it waits.
	programTime = 10 * time.Second

	maxOutput       = 16 << 20
	maxUnlimitedMiB = 1 << 10 // maximum memory if the policy sets no limit
	maxLogCalls     = 100_000
	StderrExcerpt   = 4 << 10 // bytes of the beginning and of the end of stderr
)

// Limits holds the bounds of one call.
type Limits struct {
	Pages     uint32 // of 64 KiB each
	Timeout   time.Duration
	running   time.Duration // not counting the time that the guest waits for the host; 0 means the timeout
	Output    int           // bytes
	Log       int           // bytes
	hostCalls int
	OpenFiles int
	created   int // files
	written   int64
}

// RequestedMemoryMiB returns the memory in MiB that the manifest requests, or the default.
func RequestedMemoryMiB(m *manifest.Manifest) uint32 {
	if m.Limits.MemoryMiB > 0 {
		return uint32(min(m.Limits.MemoryMiB, MaxPages/PagesPerMiB))
	}
	return defaultMemoryMiB
}

// LimitsOf combines the manifest's limits, the engine's defaults and the policy's limits. A timeout from the caller
// replaces the plugin's own, as in the host. The policy's timeout bounds both.
func LimitsOf(cfg grant.Limits, m *manifest.Manifest, r *host.Request) Limits {
	memory := RequestedMemoryMiB(m)
	if m.Limits.MemoryMiB == 0 {
		memory = uint32(cmp.Or(r.Limits.MemoryMiB, cfg.MemoryMiB, int(memory)))
	}
	memory = min(memory, uint32(cmp.Or(r.Limits.MemoryMiB, maxUnlimitedMiB)))
	timeout := cmp.Or(max(r.Options.Timeout, 0), time.Duration(m.Limits.TimeoutMS)*time.Millisecond, cfg.Timeout,
		defaultTimeout)
	if r.Limits.Timeout > 0 {
		timeout = min(timeout, r.Limits.Timeout)
	}
	usualOutput := defaultOutput
	if r.Options.JQ != "" { // the result of the filter is what leaves the host, not this result
		usualOutput = maxOutput
	}
	output := min(cmp.Or(m.Limits.OutputBytes, r.Limits.OutputBytes, cfg.OutputBytes, usualOutput), maxOutput)
	if r.Limits.OutputBytes > 0 {
		output = min(output, r.Limits.OutputBytes)
	}
	running := time.Duration(0)
	if r.Grant.Caller {
		running = programTime
	}
	return Limits{running: running,
		Pages: min(memory, MaxPages/PagesPerMiB) * PagesPerMiB, Timeout: timeout, Output: output,
		Log:       cmp.Or(r.Limits.LogBytes, DefaultLogBytes),
		hostCalls: cmp.Or(r.Limits.HostCalls, defaultHostCalls),
		OpenFiles: cmp.Or(r.Limits.OpenFiles, defaultOpenFiles),
		created:   cmp.Or(r.Limits.FilesCreated, defaultFilesCreated),
		written:   int64(cmp.Or(r.Limits.BytesWritten, defaultBytesWritten)),
	}
}
