package host

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// SharedFilePrefix begins the text that a tool gets for a file that was handed on, "handed:RANDOM/SIZE/NAME".
const SharedFilePrefix = "handed:"

// Job is one call on its way to a provider: validated, with defaults, allowed. It is plain data.
type Job struct {
	Tool    string          // local name, in the spelling of the manifest
	Params  json.RawMessage // an object
	Caller  string          // "cli", "mcp:CLIENT", "mcp-http:CLIENT" or "plugin:NAME"
	Session Session
	CallID  string
	Grant   Grant
	// CallerGrant is the grant of the calling plugin in its own call. It is the zero value if the caller is not a plugin.
	CallerGrant Grant
	Limits      Limits
	Options     Options

	// Settings are the operator's settings for the plugin: a JSON object, or nil.
	Settings json.RawMessage
	// Isolate says where a guest runs: "process", in one that the kernel confines and that may serve several calls;
	// "call", in one for this call alone; "none", in this process. "" leaves it to the provider.
	Isolate string
	// Pool names the workers on other machines that run the guest, where the host has some. "" runs it on this machine.
	Pool string
	// Wants says which optional events the caller reads.
	Wants Wants
	// Drain reads the byte stream that the result refers to, to its end, and sends it as output.
	Drain bool
}

// Inner reports whether a plugin makes the call. Such a call must not wait for a place: the place may be held by the
// call that made it.
func (j *Job) Inner() bool { return strings.HasPrefix(j.Caller, CallerPlugin) }

// Wants says which events of a call its caller reads. Others are dropped.
type Wants struct {
	Log, Progress bool
	// Records means that the result is wanted as a stream of records as they arrive, where the tool can do that.
	Records bool
	// Until means that the caller decides which record is the last one; see [AskLast]. Otherwise any record may be it.
	Until bool
	// Output means that a result that is too large for memory may be sent as output, as JSON text in parts. The Result
	// then has Written and no Data.
	Output bool
	// Trace means that the error of a guest that crashes has a trace.
	Trace bool
}

// Request is a job with the functions by which the provider asks the host for something and reports what happens.
type Request struct {
	Job
	Def *manifest.Tool // the definition of Job.Tool
	// Guard keeps the call away from the host's own files. It is nil where no folder is granted.
	Guard *protect.Guard
	// Ask calls a function of the host, one of the constants below, with its argument as JSON. The Data of the result is
	// JSON. Errors are [*Error]. The host checks the rights of the call and records what it denied. Nil means that the
	// host serves nothing.
	Ask func(ctx context.Context, function string, argument json.RawMessage) (*Result, error)
	// Acted reports whether what the call has done so far may have changed something. Nil means that nobody knows.
	Acted func() bool
	// Events receives what happens during the call. An error means that nobody reads records or output any more. It may
	// be called from several goroutines. Nil drops all.
	Events func(JobEvent) error
}

// Functions of the host that every provider may ask for. A guest's imports of these names take the same arguments.
const (
	// AskTool runs a tool of another plugin through all of call.Host.Call: {"tool","params","options"}.
	AskTool = "call_tool"
	// AskTools runs several tools at once, each as [AskTool] does: {"pending":[{"id","tool","params","options"}]}. The
	// result is {"answers":[{"id","ok","result" or "error"}]}. Guests do not import it: a guest that waits for calls
	// lists them in its response.
	AskTools = "call_tools"
	// AskHTTP sends a request within the grant: {"method","url","headers","body" or "body_base64"}. The response has no
	// secrets that the guest may not read.
	AskHTTP = "http_request"
	// AskSecret returns a secret that the grant lets the guest read: {"name"}.
	AskSecret = "read_secret"
)

// Functions of the host that guests cannot import. The last three are for built-in providers only.
const (
	// AskMayCall returns whether the caller may also call another tool of this plugin without confirmation: {"tool"}, its
	// local name. A provider asks before it does the work of that tool. Everybody on whose behalf the caller calls must
	// be allowed, too.
	AskMayCall = "may_call"
	// AskLast returns whether a record is the last one of the stream. The argument is the record. See [Wants].
	AskLast = "is_last"
	// AskBoundSecret returns a secret that is to be typed into a page, as a [BoundSecret]: {"name"}. The error is denied
	// if the policy binds it to no origin, or if the calling plugin was not granted it.
	AskBoundSecret = "bound_secret"
	// AskScript returns a script for pages that the calling plugin ships, as a [Script]: {"name","text"}. It has its text
	// only if text is true. The error is denied if the caller is not a plugin, and not_found if it ships no such script.
	AskScript = "script"
	// AskSharedFile copies a file that was handed to the calling plugin into a folder, and returns its path there:
	// {"text","folder"}, where text is what the plugin got for the file.
	AskSharedFile = "copy_handed"
)

// Script is a script for pages that a plugin ships.
type Script struct {
	Plugin string `json:"plugin"`
	SHA256 string `json:"sha256"` // hash of the text, in hexadecimal
	Text   string `json:"text,omitempty"`
}

// BoundSecret is the value of a secret and the origins of the pages into which it may be typed.
type BoundSecret struct {
	Value   string   `json:"value"`
	Origins []string `json:"origins"`
}

// JobEvent is something that happens during a call. Its texts are not cleaned of control characters.
type JobEvent struct {
	Kind    string          `json:"kind"`
	Level   int             `json:"level,omitempty"`   // log: 0 debug, 1 info, 2 warn, 3 error
	Message string          `json:"message,omitempty"` // log, progress
	Done    float64         `json:"done,omitempty"`    // progress
	Total   float64         `json:"total,omitempty"`   // progress
	Record  json.RawMessage `json:"record,omitempty"`  // record
	Output  []byte          `json:"output,omitempty"`  // output
	Right   string          `json:"right,omitempty"`   // use: in the form of Event.Uses; denied: in the grammar of grants
	Why     string          `json:"why,omitempty"`     // denied
	CPU     time.Duration   `json:"cpu,omitempty"`     // usage: CPU time of the guest's process for the call
	Peak    int64           `json:"peak,omitempty"`    // usage: peak size of the guest's memory in bytes
}

// Kinds of a [JobEvent].
const (
	EventLog      = "log"
	EventProgress = "progress"
	EventStarted  = "started" // from now on the stream has every record; at most once
	EventRecord   = "record"
	EventOutput   = "output"
	EventUse      = "use"    // a right was used
	EventDenied   = "denied" // a right that the grant does not have
	EventUsage    = "usage"  // what the guest has used; the CPU times of several events add up
)

func (r *Request) send(e JobEvent) error {
	if r.Events == nil {
		return nil
	}
	return r.Events(e)
}

// Log sends a line of the tool's log, if the caller reads it.
func (r *Request) Log(level int, message string) {
	if r.Wants.Log {
		_ = r.send(JobEvent{Kind: EventLog, Level: level, Message: message})
	}
}

// Progress sends a report of progress, if the caller reads it.
func (r *Request) Progress(done, total float64, message string) {
	if r.Wants.Progress {
		_ = r.send(JobEvent{Kind: EventProgress, Done: done, Total: total, Message: message})
	}
}

// Started says that the stream receives every further record.
func (r *Request) Started() { _ = r.send(JobEvent{Kind: EventStarted}) }

// Emit sends a record of a stream. An error means that the reader has gone.
func (r *Request) Emit(record json.RawMessage) error {
	return r.send(JobEvent{Kind: EventRecord, Record: record})
}

// RecordUse adds a use of a right to the record of the call, in the form of Event.Uses.
func (r *Request) RecordUse(what string) { _ = r.send(JobEvent{Kind: EventUse, Right: what}) }

// Deny records a right that the grant does not have, and returns the error for the guest.
func (r *Request) Deny(right, why string) *Error {
	_ = r.send(JobEvent{Kind: EventDenied, Right: right, Why: why})
	return NotGranted(right, why)
}

// NotGranted returns the error of a right that was not granted.
func NotGranted(right, why string) *Error {
	return &Error{Code: Denied, Message: "not granted: " + right, Denied: []Denial{{Right: right, Why: why}}}
}

// Usage adds what a guest has used to the record of the call.
func (r *Request) Usage(cpu time.Duration, peak int64) {
	_ = r.send(JobEvent{Kind: EventUsage, CPU: cpu, Peak: peak})
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
	if err := w.r.send(JobEvent{Kind: EventOutput, Output: p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// AskFor calls a function of the host, such as [AskScript], and decodes its result. If the host serves none, the error
// is unavailable.
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

// ToolArgument is the argument of [AskTool] and, with only the tool, of [AskMayCall].
type ToolArgument struct {
	Tool    string          `json:"tool"`
	Params  json.RawMessage `json:"params,omitempty"`
	Options json.RawMessage `json:"options,omitempty"`
}

// SharedFileArgument is the argument of [AskSharedFile]: the text that stands for a file, and the folder for its copy.
type SharedFileArgument struct {
	Text   string `json:"text"`
	Folder string `json:"folder"`
}

// ScriptArgument is the argument of [AskScript]. Text asks for the text beside the digest.
type ScriptArgument struct {
	Name string `json:"name"`
	Text bool   `json:"text"`
}

// NameArgument is the argument of [AskSecret] and [AskBoundSecret]: the name of a secret.
type NameArgument struct {
	Name string `json:"name"`
}
