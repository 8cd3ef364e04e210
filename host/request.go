package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Docs is the documentation of one tool, event or type at a tier, with the steps to take next.
type Docs struct {
	*manifest.ToolDocs
	Next []step.Step `json:"-"`
}

const (
	// DefaultTimeout bounds a call when neither the caller, the plugin nor the policy sets a timeout.
	DefaultTimeout = 30 * time.Second
	// MaxParams is the maximum size of the parameters of one call as JSON text, in bytes.
	MaxParams = 16 << 20
)

// Call is a request to run one tool. Only Name is required.
type Call struct {
	Name      string          // qualified: "cdp.Network.getCookies" or "cdp__Network__getCookies"
	At        Address         // address of Name, if the caller has looked it up already
	Params    json.RawMessage // as given; empty means {}
	Principal caller.Principal
	Options   job.Options
	// Given are the options that the caller gave itself, without the defaults of a front end. The corrected call of an
	// error keeps them. The zero value means none.
	Given step.Options

	// DocsOnFirstUse adds tier 2 of the tool's documentation to its first successful call in a session.
	DocsOnFirstUse bool

	// Invalid is the error of a caller that could not build the parameters. The call is refused with it. Nil means
	// that Params are to be validated.
	Invalid *Error
	// BeforeRecord is called with the answer before it is recorded, so that a caller can send its response without
	// waiting for the record. It may be nil.
	BeforeRecord func(*Answer)
	// KeepBinary replaces each binary part of the result by a [File], and keeps its content for the session.
	KeepBinary bool
	// Render returns the text of the step that reads the whole of a cut result. Nil means that the answer has its URI,
	// parley://result/CALL_ID.
	Render func(step.Step) string
	// Filter runs Options.JQ. Nil means the host's filter.
	Filter Filter
	// Sink takes what the tool reports before the answer.
	Sink Sink
}

// Sink takes what a tool reports before it returns. The zero value takes nothing: the result must then be in the data
// of the answer.
type Sink struct {
	Wants job.Wants // which events are read; Wants.Until follows from Last
	// Event takes each event. An error means that nobody reads records or output any more.
	Event func(job.Event) error
	// Last reports whether a record that can be the last one of a stream is the last one. Nil means that it is.
	Last func(record json.RawMessage) bool
	// Drain sends the byte stream that the result refers to as output.
	Drain bool
}

// Answer is the outcome of a call: either a result or Err, which may have warnings and steps beside it.
type Answer struct {
	job.Result
	Tool     string
	CallID   string
	Approval string          // id of the approval that the call used; "" if none
	Returns  json.RawMessage // the schema of Data as the tool declares it
	Err      *Error
	Duration time.Duration
	Docs     *Docs // with Call.DocsOnFirstUse, unless this session has been shown them
	Cut      bool  // Data wraps a part of the result
	// Whole is the data before binary parts were replaced and before it was cut. It is nil if Data is the whole.
	Whole json.RawMessage
}

// Filter runs jq expressions on results.
type Filter interface {
	// Check prepares an expression. For an invalid one it returns the error and what was probably meant, "" if that is
	// unknown.
	Check(ctx context.Context, expression string) (corrected string, err error)
	// Filter returns data as the expression transforms it: its only output, or an array of its outputs. The error is
	// the cause of the end of ctx, or limit_exceeded, or invalid_args if the expression fails on the data.
	Filter(ctx context.Context, expression string, data json.RawMessage) (json.RawMessage, error)
}

type docsSizeKey struct{}

// WithDocsSize returns a context for a front end that sends documentation in a form of its own. size returns the
// number of bytes in that form; records of calls and descriptions use it. inError means that the documentation comes
// with the error of a call. Without size, records count [manifest.ToolDocs.Text].
func WithDocsSize(ctx context.Context, size func(d *Docs, inError bool) int) context.Context {
	return context.WithValue(ctx, docsSizeKey{}, size)
}

// DocsTokens estimates the tokens of documentation as the front end sends it; 0 for nil.
func DocsTokens(ctx context.Context, d *Docs, inError bool) int {
	if d == nil {
		return 0
	}
	if size, ok := ctx.Value(docsSizeKey{}).(func(*Docs, bool) int); ok {
		return manifest.TokensOf(size(d, inError))
	}
	return d.Tokens()
}
