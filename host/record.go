package host

import (
	"encoding/json"
	"time"
)

// Recorder records events. It cannot fail a call and has to report its errors by other means.
type Recorder interface {
	Record(Event)
}

// Event is a call, search or describe that has ended. Subscribers and recorders receive the same event.
type Event struct {
	Time           time.Time
	Op             string // "call", "search" or "describe"; to subscribers also "catalog" and "session_end"
	CallID         string
	Session        string
	Caller         string
	Tool           string          // qualified name, or the name as given if it is unknown
	Digest         string          // of the plugin
	Mode           string          // documentation mode of the caller; "" if it has none
	Tiers          []int           // tiers that this caller was shown of this tool
	Params         json.RawMessage // as given
	Query          string          // of a search
	Err            *Error          // nil if it succeeded
	Duration       time.Duration
	OutBytes       int
	DocsTokens     int    // tokens of the documentation that was sent, in the form in which it was
	RetryOf        string // id of the preceding failed call of the same tool in the session
	SuggestionUsed bool   // the parameters are those that the failed call suggested
	Result         json.RawMessage

	// Rights are the granted rights, and Uses what they were used for, without duplicates, in the grammar of grants:
	// "fs:read:/srv/data/a.txt", "http:GET:https://api.github.com", "secret:TOKEN", "tool:cdp.Page.navigate".
	Rights      []string
	Uses        []string
	UsesDropped int      // number of uses beyond the limit of Uses
	Refused     []string // rights denied while it ran, in the grammar of grants, also if it succeeded
	Within      string   // id of the call in which a plugin made this one
	DryRun      bool     // the call was a dry run
	Audit       string   // as in Decision; "" if the policy was not consulted

	By       string   // who allowed or denied the call: ByTerminal, ByMCP or ByPolicy; "" if nobody did
	Question string   // id of the question that a person was asked, or was to be asked
	Hits     []string // qualified names of the first ten results of a search
	Changes  []string // kinds of corrections of the parameters, such as "renamed"
}

// Auditor is a [Recorder] for evidence. It can refuse a call that it could not record.
type Auditor interface {
	Recorder
	// Begin is called when the policy has allowed a call, before anything runs. An error refuses the call.
	Begin(Event) error
}
