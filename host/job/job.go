// Package job has what passes between the host and a provider during one call, as plain data: the job, what the
// provider asks of the host, the events and the result.
package job

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/step"
)

// Job is one call on its way to a provider: validated, with defaults, allowed. It is plain data.
type Job struct {
	Tool    string          // local name, in the spelling of the manifest
	Params  json.RawMessage // an object
	Caller  string          // "cli", "mcp:CLIENT", "mcp-http:CLIENT" or "plugin:NAME"
	Session caller.Session
	CallID  string
	Grant   grant.Grant
	// CallerGrant is the grant of the calling plugin in its own call. It is the zero value if the caller is not a plugin.
	CallerGrant grant.Grant
	Limits      grant.Limits
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
func (j *Job) Inner() bool { return strings.HasPrefix(j.Caller, caller.PluginPrefix) }

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

// Event is something that happens during a call. Its texts are not cleaned of control characters.
type Event struct {
	Kind    string          `json:"kind"`
	Level   int             `json:"level,omitempty"`   // log: 0 debug, 1 info, 2 warn, 3 error
	Message string          `json:"message,omitempty"` // log, progress
	Done    float64         `json:"done,omitempty"`    // progress
	Total   float64         `json:"total,omitempty"`   // progress
	Record  json.RawMessage `json:"record,omitempty"`  // record
	Output  []byte          `json:"output,omitempty"`  // output
	Right   string          `json:"right,omitempty"`   // use: in the form of host.Event.Uses; denied: in the grammar of grants
	Why     string          `json:"why,omitempty"`     // denied
	CPU     time.Duration   `json:"cpu,omitempty"`     // usage: CPU time of the guest's process for the call
	Peak    int64           `json:"peak,omitempty"`    // usage: peak size of the guest's memory in bytes
}

// Kinds of an [Event].
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

// Options are the options of one call, the same for every kind of caller. The zero value is valid.
type Options struct {
	Timeout time.Duration // until the answer; 0: the plugin's, limited by the policy
	// TimeoutConfigured means that Timeout is a default from a configuration. Like the plugin's, it bounds only the run,
	// not what Features.Prepare does before.
	TimeoutConfigured bool

	MaxBytes int // limit of the data in the answer; 0: no limit
	// Unlimited means that the caller gave a MaxBytes of 0, which no default of a front end replaces.
	Unlimited bool

	step.Place
	DryRun bool
	// SendAnyway skips validation, for a browser that is newer than the schemas of the provider.
	SendAnyway bool
	// OnDialog is what to do with a JavaScript dialog: accept, accept=TEXT, which fills a prompt, dismiss or fail. ""
	// means fail.
	OnDialog string
	// Wait is what a call of a browser that navigates its page waits for: load, idle or none. "" leaves it to the tool.
	Wait string
	// JQ is a jq expression that filters the data before it is cut, within the time of the call. "" means none.
	JQ string
	// Isolate is "process" or "call" to isolate the call even if the policy does not require it. "" and "none" leave that
	// to the policy. option.Parse does not set it.
	Isolate string
}

// StepOptions returns the options in the form of a step, which repeats a call that has them.
func (o Options) StepOptions() step.Options {
	return step.Options{
		Timeout: o.Timeout, Place: o.Place, DryRun: o.DryRun, MaxBytes: o.MaxBytes, OnDialog: o.OnDialog,
		Isolate: o.Isolate, SendAnyway: o.SendAnyway, JQ: o.JQ, Wait: o.Wait, Unlimited: o.Unlimited,
	}
}
