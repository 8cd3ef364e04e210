package host

import (
	"context"
	"encoding/json"
	"io"
	"time"
)

const (
	// DefaultTimeout bounds a call when neither the caller, the plugin nor the policy sets a timeout.
	DefaultTimeout = 30 * time.Second
	// MaxParams is the maximum size of the parameters of one call as JSON text, in bytes.
	MaxParams = 16 << 20
)

// Call is a request to run one tool. Only Name is required.
type Call struct {
	Name    string          // qualified: "cdp.Network.getCookies" or "cdp__Network__getCookies"
	Params  json.RawMessage // as given; empty means {}
	Caller  string          // "cli", "mcp:CLIENT", "mcp-http:CLIENT" or "plugin:NAME"
	Bound   bool            // of an mcp-http caller: it has proved that it is the client that Caller names
	Session Session
	Options Options
	// Given are the options that the caller gave itself, without the defaults of a front end. The corrected call of an
	// error keeps them. The zero value means none.
	Given StepOptions

	// DocsOnFirstUse adds tier 2 of the tool's documentation to its first successful call in a session.
	DocsOnFirstUse bool

	// Invalid is the error of a caller that could not build the parameters. The call is refused with it. Nil means
	// that Params are to be validated.
	Invalid *Error
	// BeforeRecord is called with the answer before it is recorded, so that a caller can send its response without
	// waiting for the record. It may be nil.
	BeforeRecord func(*Answer)
	// KeepBinary puts a [File] in the place of each binary part of the result, whose content is kept for the session.
	KeepBinary bool
	// Render renders the step that reads the whole of a result that is cut. Nil means that the answer has its URI,
	// parley://result/CALL_ID.
	Render func(Step) string
	// Filter runs Options.JQ. Nil means that of the host.
	Filter Filter
	// Progress and Log receive what the tool reports, with levels from 0, debug, to 3, error. Their messages are not
	// cleaned of control characters. They may be nil.
	Progress func(done, total float64, message string)
	Log      func(level int, message string)
	// Trace asks for [Error].Trace of a guest that crashes.
	Trace bool
	// Emit receives each record of a stream; its error means that nobody reads any more. Nil means that no stream is
	// wanted. Started is called once, when the stream receives every further record. Until is called for each record that
	// could be the last one; the first for which it returns true is. Both may be nil.
	Emit    func(record json.RawMessage) error
	Started func()
	Until   func(record json.RawMessage) bool
	// Out receives a result that is too large for memory as JSON text, in parts. With Drain it receives the byte stream
	// that the result refers to. Nil means that the result must be data of the answer.
	Out   io.Writer
	Drain bool
}

// Answer is the outcome of a call: either data or Err.
type Answer struct {
	Tool     string
	CallID   string
	Question string // id of the question that a person was asked about the call; "" if none was
	Data     json.RawMessage
	Content  []Content
	Returns  json.RawMessage // the schema of Data as the tool declares it
	Err      *Error
	Warnings []string
	Steps    []Step
	Duration time.Duration
	Docs     *Docs // with Call.DocsOnFirstUse, unless this session has been shown them
	Cut      bool  // Data wraps a part of the result
	// Whole is the data before binary parts of it were kept and before it was cut. It is nil if Data is that.
	Whole   json.RawMessage
	Written int64 // as in Result: the result went to Call.Out, and Data is empty
	Raw     bool
}

// Filter runs jq expressions on results.
type Filter interface {
	// Check prepares for an expression. It returns the error of one that is invalid, and what was probably meant, ""
	// if that is unknown.
	Check(ctx context.Context, expression string) (corrected string, err error)
	// Filter returns data as the expression transforms it: its only output, or an array of its outputs. The error is
	// the cause of the end of ctx, or limit_exceeded, or invalid_args if the expression fails on the data.
	Filter(ctx context.Context, expression string, data json.RawMessage) (json.RawMessage, error)
}
