package host

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// Request is a job with the functions by which the provider asks the host for something and reports what happens.
type Request struct {
	job.Job
	Def *manifest.Tool // the definition of Job.Tool
	// Guard keeps the call away from the host's own files. It is nil where no folder is granted.
	Guard *protect.Guard
	// Ask calls a function of the host, one of the constants below, with its argument as JSON. The Data of the result is
	// JSON. Errors are [*Error]. The host checks the rights of the call and records what it denied. Nil means that the
	// host serves nothing.
	Ask func(ctx context.Context, function string, argument json.RawMessage) (*job.Result, error)
	// Acted reports whether what the call has done so far may have changed something. Nil means that nobody knows.
	Acted func() bool
	// Events receives what happens during the call. An error means that nobody reads records or output any more. It may
	// be called from several goroutines. Nil drops all.
	Events func(job.Event) error
}

func (r *Request) send(e job.Event) error {
	if r.Events == nil {
		return nil
	}
	return r.Events(e)
}

// Log sends a line of the tool's log, if the caller reads it.
func (r *Request) Log(level int, message string) {
	if r.Wants.Log {
		_ = r.send(job.Event{Kind: job.EventLog, Level: level, Message: message})
	}
}

// Progress sends a report of progress, if the caller reads it.
func (r *Request) Progress(done, total float64, message string) {
	if r.Wants.Progress {
		_ = r.send(job.Event{Kind: job.EventProgress, Done: done, Total: total, Message: message})
	}
}

// Started says that the stream receives every further record.
func (r *Request) Started() { _ = r.send(job.Event{Kind: job.EventStarted}) }

// Emit sends a record of a stream. An error means that the reader has gone.
func (r *Request) Emit(record json.RawMessage) error {
	return r.send(job.Event{Kind: job.EventRecord, Record: record})
}

// RecordUse adds a use of a right to the record of the call, in the form of Event.Uses.
func (r *Request) RecordUse(what string) { _ = r.send(job.Event{Kind: job.EventUse, Right: what}) }

// Deny records a right that the grant does not have, and returns the error for the guest.
func (r *Request) Deny(right, why string) *Error {
	_ = r.send(job.Event{Kind: job.EventDenied, Right: right, Why: why})
	return NotGranted(right, why)
}

// NotGranted returns the error of a right that was not granted.
func NotGranted(right, why string) *Error {
	return &Error{Code: Denied, Message: "not granted: " + right, Denied: []grant.Denial{{Right: right, Why: why}}}
}

// Usage adds what a guest has used to the record of the call.
func (r *Request) Usage(cpu time.Duration, peak int64) {
	_ = r.send(job.Event{Kind: job.EventUsage, CPU: cpu, Peak: peak})
}

// Output returns where a result that is too large for memory goes, or nil if it must be returned as Data.
func (r *Request) Output() io.Writer {
	if !r.Wants.Output {
		return nil
	}
	return outputWriter{r}
}

type outputWriter struct{ r *Request }

func (w outputWriter) Write(p []byte) (int, error) {
	if err := w.r.send(job.Event{Kind: job.EventOutput, Output: p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// AskFor calls a function of the host, such as [job.AskScript], and decodes its result. If the host serves none, the
// error is unavailable.
func AskFor[T any](ctx context.Context, r *Request, function string, argument any) (result T, err error) {
	if r.Ask == nil {
		return result, Errorf(Unavailable, "the host serves no %s here", function)
	}
	raw, err := manifest.Marshal(argument)
	if err != nil {
		return result, err
	}
	answer, err := r.Ask(ctx, function, raw)
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(answer.Data, &result)
}
