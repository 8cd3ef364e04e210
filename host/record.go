package host

import (
	"encoding/json"
	"time"
)

// Recorder keeps what happened. It must not fail a call: what it cannot write it reports by its own means.
type Recorder interface {
	Record(Event)
}

// Event is one call, search or describe that has ended. Subscribers and traces get the same one.
type Event struct {
	Time           time.Time
	Op             string // "call", "search" or "describe"; to subscribers also "catalog"
	CallID         string
	Session        string
	Caller         string
	Tool           string          // qualified name, as far as it is known
	Digest         string          // of the plugin
	Mode           string          // documentation mode of the caller, where it has one
	Tiers          []int           // tiers that this caller was shown of this tool
	Params         json.RawMessage // as given; a recorder that keeps values says so
	Query          string          // of a search
	Err            *Error          // nil when it went well
	Duration       time.Duration
	OutBytes       int
	DocsTokens     int
	RetryOf        string // call id of the failed call of the same tool before, in the same session
	SuggestionUsed bool   // the parameters are those that the failed call was answered with
	Result         json.RawMessage

	// Rights are what the call was granted, and Uses what it did with them, each once, in the words of grants:
	// "fs:read:/srv/data/a.txt", "http:GET:https://api.github.com", "secret:TOKEN", "tool:cdp.Page.navigate".
	Rights      []string
	Uses        []string
	UsesDropped int      // what Uses had no room for
	Refused     []string // what it asked for while it ran and was not given, in the same words, whether it went well or not
	Within      string   // call id of the call in which a plugin made this one
	DryRun      bool     // nothing was to run
	Audit       string   // what the policy said of the call's record, as in Decision; "" where it was not asked

	By      string   // who decided a confirmation: "terminal", "mcp" or "policy"; "" where none was needed
	Hits    []string // qualified names of the first ten results of a search
	Changes []string // how the parameters were corrected before the call, a word for each kind, such as "renamed"
}

// Auditor is a recorder that evidence rests on: it may hold a call back that it could not write about.
type Auditor interface {
	Recorder
	// Begin is asked when the policy has allowed a call and nothing of it has run. An error refuses the call.
	Begin(Event) error
}
