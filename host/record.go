package host

import (
	"encoding/json"

	"github.com/parley-tools/parley/host/caller"
	"time"
)

// Recorder records events. It cannot fail a call and has to report its errors by other means.
type Recorder interface {
	Record(Event)
}

// Event is a call, search or describe that has ended. Subscribers and recorders receive the same event.
type Event struct {
	Time    time.Time
	Op      string // "call", "search" or "describe"; to subscribers also "catalog" and "session_end"
	CallID  string
	Session string
	Caller  string
	caller.Origin
	Tool   string          // qualified name, or the name as given if it is unknown
	Digest string          // digest of the plugin, or the version of a built-in one
	Mode   string          // documentation mode of the caller; "" if it has none
	Tiers  []int           // tiers that this caller was shown of this tool
	Params json.RawMessage // as given
	// Members are the values of parameters that the schema lists in an enum, by parameter.
	Members        map[string][]string
	Query          string // set for a search
	Err            *Error // nil if it succeeded
	Duration       time.Duration
	CPU            time.Duration // CPU time of the guest's process for the call; 0 if unknown
	PeakBytes      int64         // peak size of the guest's memory; 0 if there was no guest
	OutBytes       int
	DocsTokens     int    // tokens of the documentation, in the form in which it was sent
	RetryOf        string // id of the preceding failed call of the same tool in the session
	SuggestionUsed bool   // the parameters are what the failed call suggested
	Result         json.RawMessage
	Subject        string // as job.Result.Subject

	// Rights are the granted rights, and Uses what they were used for, without duplicates, in the grammar of grants:
	// "fs:read:/srv/data/a.txt", "http:GET:https://api.github.com", "secret:TOKEN", "tool:cdp.Page.navigate".
	Rights      []string
	Uses        []string
	UsesDropped int      // number of uses beyond the limit of Uses
	Refused     []string // rights denied while it ran, in the grammar of grants, also if it succeeded
	Within      string   // id of the call in which a plugin made this one
	DryRun      bool     // the call was a dry run
	Count       int      // number of equal calls by a plugin within one call that it stands for; 0 for one
	Audit       string   // as in Decision; "" if the policy was not consulted

	By       string   // who allowed or denied the call: ByTerminal, ByMCP or ByPolicy; "" if nobody did
	Approval string   // id of the approval that the call used or waits for
	Hits     []string // qualified names of the first ten results of a search
	Changes  []string // kinds of corrections of the parameters, such as "renamed"
}

// Record is the stored form of an event, one line of a trace. Absent fields do not apply.
type Record struct {
	V       int       `json:"v"`
	Time    time.Time `json:"t"`
	Op      string    `json:"op,omitempty"` // "" is a call; else "search" or "describe"
	Call    string    `json:"call,omitempty"`
	Session string    `json:"session,omitempty"`
	Caller  string    `json:"caller,omitempty"`
	caller.Origin
	Tool     string          `json:"tool,omitempty"`
	Query    string          `json:"query,omitempty"`
	Manifest string          `json:"manifest,omitempty"` // as Event.Digest
	Mode     string          `json:"mode,omitempty"`
	Tiers    []int           `json:"tiers,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"` // the shapes of the parameters, or their values
	Errors   []Violation     `json:"errors,omitempty"`

	Code           string  `json:"code"`
	ExitCode       int     `json:"exit_code"`
	MS             float64 `json:"ms"`
	Count          int     `json:"count,omitempty"` // number of equal calls by a plugin, if several; MS is of all
	OutBytes       int     `json:"out_bytes,omitempty"`
	DocsTokens     int     `json:"docs_tokens,omitempty"`
	RetryOf        string  `json:"retry_of,omitempty"`
	SuggestionUsed bool    `json:"suggestion_used,omitempty"`
	Subject        string  `json:"subject,omitempty"` // what the tool acted on

	By       string   `json:"by,omitempty"`       // who allowed or denied the call: "terminal", "mcp" or "policy"
	Approval string   `json:"approval,omitempty"` // id of the approval that the call used
	Hits     []string `json:"hits,omitempty"`     // names of the first ten results of a search
	Changes  []string `json:"changes,omitempty"`  // how the parameters were corrected

	// From names, by parameter, the earlier result of the session that had its value, as "TOOL/POINTER" with 0 for each
	// index. It is known only for calls that one process serves.
	From map[string]string `json:"from,omitempty"`

	Usage
}

// Usage is what the guest of a call used. Calls that it made have their own.
type Usage struct {
	CPUMS     float64 `json:"cpu_ms,omitempty"`     // CPU time of its process; absent for a guest without one
	PeakBytes int64   `json:"peak_bytes,omitempty"` // peak size of its memory; absent if it was killed
}

// Violation is what was wrong with one parameter, without the value.
type Violation struct {
	Pointer  string `json:"pointer"`
	Keyword  string `json:"keyword"`
	Expected string `json:"expected"`
}

// Auditor is a [Recorder] for evidence. It can refuse a call that it could not record.
type Auditor interface {
	Recorder
	// Begin is called when the policy has allowed a call, before anything runs. An error refuses the call.
	Begin(Event) error
}

// Cost is what successful calls of a tool took, as medians.
type Cost struct {
	Calls  int // number of recorded calls
	MS     float64
	Tokens int // tokens of the result
}
