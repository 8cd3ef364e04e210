package wasm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-tools/parley/manifest"

	"github.com/parley-tools/parley/host"
)

// control holds the guest of one call to its limits, and ends it: because its time is over, or because of what it did.
type control struct {
	tool   string // as errors name it
	limits limits

	ctx       context.Context
	deadline  time.Time
	stops     time.Time   // when the guest has run for as long as it may; waiting moves it
	fatal     *host.Error // the error that the host ended the guest with, however the guest reports its own end
	hostCalls int         // requests to the host
}

// within runs a call within its time. Only the context decides whether it ended in time, never the guest's output.
func (k *control) within(ctx context.Context, run func() (*host.Result, error)) (*host.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, k.limits.timeout)
	defer cancel()
	k.begin(ctx)
	result, err := run()
	if k.ctx.Err() != nil {
		err = k.contextError()
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// begin makes ctx that of the call. It has a deadline.
func (k *control) begin(ctx context.Context) {
	k.ctx = ctx
	k.deadline, _ = ctx.Deadline()
	k.stops = time.Now().Add(k.limits.running)
}

// guestHalt is the panic value with which a host function ends the guest. wazero returns an error that wraps it.
type guestHalt struct{ err *host.Error }

func (h guestHalt) Error() string { return h.err.Message }
func (h guestHalt) Unwrap() error { return h.err }

// checkpoint ends the guest if its deadline has passed. Instrumented code calls it, and so does every host function
// that may run long.
func (k *control) checkpoint() { k.checkpointAt(time.Now()) }

// checkpointAt is checkpoint for a caller that knows what time it is.
func (k *control) checkpointAt(now time.Time) {
	if k.ctx.Err() == nil {
		if k.limits.running > 0 && now.After(k.stops) {
			k.end(host.Errorf(host.Timeout, "%s ran for more than %s, without the time that it waited, and was stopped",
				k.tool, k.limits.running))
		}
		if now.Before(k.deadline) {
			return
		}
		<-k.ctx.Done() // the timer fires late; the deadline has passed
	}
	panic(guestHalt{k.contextError()})
}

// wait waits until done is closed or receives, or the call ends. That time is not counted as running.
func (k *control) wait(wait func(ended <-chan struct{})) {
	began := time.Now()
	wait(k.ctx.Done())
	k.stops = k.stops.Add(time.Since(began))
}

// exceedLimit ends the guest because it exceeded a limit.
func (k *control) exceedLimit(format string, args ...any) {
	k.end(host.Errorf(host.LimitExceeded, format, args...))
}

// end ends the guest with an error.
func (k *control) end(e *host.Error) { panic(guestHalt{k.recordFatal(e)}) }

// recordFatal records the error that ends the guest and returns it. The first error wins.
func (k *control) recordFatal(e *host.Error) *host.Error {
	if k.fatal == nil {
		k.fatal = e
	}
	return k.fatal
}

// countHostCall counts a request to the host. The error says that it is one too many.
func (k *control) countHostCall() *host.Error {
	if k.hostCalls++; k.hostCalls > k.limits.hostCalls {
		return host.Errorf(host.LimitExceeded, "%s made more than %d requests to the host in one call", k.tool,
			k.limits.hostCalls)
	}
	return nil
}

func (k *control) contextError() *host.Error {
	cause := k.ctx.Err()
	if errors.Is(cause, context.DeadlineExceeded) {
		return &host.Error{Code: host.Timeout, Cause: cause,
			Message: fmt.Sprintf("%s did not end within %s and was stopped", k.tool, k.limits.timeout)}
	}
	return &host.Error{Code: host.Interrupted, Cause: cause, Message: k.tool + " was interrupted"}
}

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
