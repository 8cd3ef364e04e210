package record

import (
	"path"
	"strconv"
	"strings"
	"time"
)

// Filter selects records; an empty field matches all.
type Filter struct {
	Since   time.Time // from this moment on
	Until   time.Time // before this moment
	Op      string    // "call", "search", "describe", or another operation
	Tool    string    // pattern of a tool, group or plugin, or of what an operator changed; * matches any characters
	Caller  string    // pattern of the caller, such as mcp:*
	Session string
	Code    string // name or exit code of the outcome: invalid_args or 81
	Failed  bool   // only what did not end in 0
}

// Keys are the parts of a record that a [Filter] reads.
type Keys struct {
	Time     time.Time
	Op       string
	Tool     string
	Subject  string // what an operator changed, where Tool is ""
	Caller   string
	Session  string
	Code     string // "" where nothing has ended
	ExitCode int

	// For pages, beside whether the record matches:
	Over   time.Time // when the call that began at Time ended, if it was recorded then
	Begins string    // the call whose beginning is recorded
	Ends   string    // the call whose end is recorded
	Prev   []byte    // hash of the line before, as recorded
}

// Matches reports whether a record with these keys is selected.
func (f Filter) Matches(k Keys) bool {
	return (f.Since.IsZero() || !k.Time.Before(f.Since)) &&
		(f.Until.IsZero() || k.Time.Before(f.Until)) &&
		(f.Op == "" || f.Op == k.Op) &&
		(f.Session == "" || f.Session == k.Session) &&
		(!f.Failed || k.ExitCode != 0) &&
		(f.Code == "" || strings.EqualFold(f.Code, k.Code) || k.Code != "" && f.Code == strconv.Itoa(k.ExitCode)) &&
		(f.Caller == "" || matchName(f.Caller, k.Caller)) &&
		(f.Tool == "" || matchName(f.Tool, k.Tool) || matchName(f.Tool+".*", k.Tool) ||
			k.Tool == "" && matchName(f.Tool, k.Subject))
}

// Covers reports whether a file may have records that match.
func (f Filter) Covers(file File) bool {
	return (f.Since.IsZero() || file.Until.IsZero() || f.Since.Before(file.Until)) &&
		(f.Until.IsZero() || f.Until.After(file.Since))
}

// CoversAll reports whether all records of a file match, which is known only for a file with bounds.
func (f Filter) CoversAll(file File) bool {
	return f == (Filter{Since: f.Since, Until: f.Until}) && !f.Since.After(file.Since) &&
		(f.Until.IsZero() || !file.Until.IsZero() && !f.Until.Before(file.Until))
}

// matchName reports whether a name matches a pattern, ignoring case.
func matchName(pattern, name string) bool {
	flat := strings.NewReplacer("/", ":") // path.Match lets * stop at a slash
	ok, _ := path.Match(strings.ToLower(flat.Replace(pattern)), strings.ToLower(flat.Replace(name)))
	return ok
}
