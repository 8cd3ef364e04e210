package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Code is the name of an outcome. Agents branch on it; each maps to one exit code. It is an error, so that
// errors.Is(err, host.NotFound) tells what went wrong.
type Code string

// Error is the name of the outcome.
func (c Code) Error() string { return string(c) }

// The outcomes of a call.
const (
	OK               Code = "ok"
	ToolFailed       Code = "tool_failed"
	InvalidURL       Code = "invalid_url"
	InvalidArgs      Code = "invalid_args"
	Denied           Code = "denied"
	NotFound         Code = "not_found"
	AlreadyExists    Code = "already_exists"
	Busy             Code = "busy"
	InvalidPlugin    Code = "invalid_plugin"
	Integrity        Code = "integrity"
	ConfigError      Code = "config_error"
	ChromeLaunch     Code = "chrome_launch"
	ChromeConnection Code = "chrome_connection"
	Timeout          Code = "timeout"
	Trapped          Code = "trapped"
	LimitExceeded    Code = "limit_exceeded"
	Unavailable      Code = "unavailable"
	InvalidResult    Code = "invalid_result"
	TargetCrashed    Code = "target_crashed"
	Internal         Code = "internal"
	Interrupted      Code = "interrupted"
	Terminated       Code = "terminated"
)

// Outcome is a row of the table of exit codes. Note says what the name leaves open; it may be empty.
type Outcome struct {
	Exit int
	Code Code
	Note string
}

// Meaning is the code's name, as errors carry it, and the note.
func (o Outcome) Meaning() string {
	if o.Note == "" {
		return string(o.Code)
	}
	return string(o.Code) + ": " + o.Note
}

// Outcomes is the one table of codes: `--help`, docs and error handling are all made from it.
// 2 to 79 are not in it: they belong to the tools that declare them.
func Outcomes() []Outcome { return slices.Clone(outcomes[:]) }

var outcomes = [...]Outcome{
	{0, OK, ""},
	{1, ToolFailed, "no declared code"},
	{80, InvalidURL, ""},
	{81, InvalidArgs, "options too"},
	{82, Denied, ""},
	{83, NotFound, ""},
	{84, AlreadyExists, ""},
	{85, Busy, ""},
	{86, InvalidPlugin, ""},
	{87, Integrity, "not as approved"},
	{88, ConfigError, "policy too"},
	{100, ChromeLaunch, ""},
	{101, ChromeConnection, "no browser"},
	{102, Timeout, ""},
	{103, Trapped, "plugin crashed"},
	{104, LimitExceeded, ""},
	{105, Unavailable, ""},
	{106, InvalidResult, "breaks its schema"},
	{107, TargetCrashed, ""},
	{110, Internal, ""},
	{130, Interrupted, ""},
	{143, Terminated, ""},
}

// Error is how everything fails: what was wrong, what was expected, what to do next.
type Error struct {
	Code     Code
	Exit     int // 0: the exit code of Code; a tool's declared code otherwise
	Message  string
	Details  []Detail
	Denied   []Denial
	Tool     *ToolError
	Protocol *ProtocolError
	// Corrected are parameters that would have been accepted, and Retry is the call with them. Both are nil where there
	// are none.
	Corrected  json.RawMessage
	Retry      *Step
	DidYouMean []NearName
	// Marked is the caller's JSON with a mark at each fault; see Mark.
	Marked string
	// Earlier are the errors that this session already made with the tool, the last one last.
	Earlier []string
	Docs    *Docs
	// Steps are what to do next, the best one first.
	Steps []Step
	// Next are commands of the front end that made the error, in its own language. No other package sets them.
	Next  []string
	Cause error // never shown, only unwrapped
}

// WithoutPath is an error without the path that it begins with, for a message that names the path itself.
func WithoutPath(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// Detail is one violation, found by the host or told by the tool.
type Detail struct {
	Parameter  string      `json:"parameter"` // JSON pointer
	Keyword    string      `json:"keyword"`
	Provided   string      `json:"provided"`
	Expected   string      `json:"expected"`
	Suggestion *Suggestion `json:"suggestion,omitempty"`
}

// Denial is a right that was refused.
type Denial struct {
	Right string `json:"right"` // in the grammar of grants: "http:GET:https://api.github.com"
	Why   string `json:"why,omitempty"`
}

// ToolError is what the tool itself said when it failed.
type ToolError struct {
	Exit    int             `json:"exit"`
	Name    string          `json:"name,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

// ProtocolError is Chrome's own error.
type ProtocolError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

// NearName is a name that may have been meant. Distance is the true Damerau-Levenshtein distance.
type NearName struct {
	Name     string `json:"name"`
	Distance int    `json:"distance"`
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is the code of e.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// ExitCode is the exit code of the process that ends with e.
func (e *Error) ExitCode() int {
	if e.Exit != 0 {
		return e.Exit
	}
	for _, o := range outcomes {
		if o.Code == e.Code {
			return o.Exit
		}
	}
	return 110
}

func isOutcome(code Code) bool {
	return slices.ContainsFunc(outcomes[:], func(o Outcome) bool { return o.Code == code })
}

// Errorf makes an error of a code.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithNext adds commands of the front end that makes the error; see Error.Next.
func (e *Error) WithNext(next ...string) *Error {
	e.Next = append(e.Next, next...)
	return e
}

// WithSteps adds steps to take next.
func (e *Error) WithSteps(steps ...Step) *Error {
	e.Steps = append(e.Steps, steps...)
	return e
}

// AsError returns err as *Error; anything that is none becomes internal.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Internal, Message: err.Error(), Cause: err}
}
