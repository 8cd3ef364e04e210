package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Code is the name of an outcome. Agents branch on it; each maps to one exit code. It is an error, so that
// errors.Is(err, host.NotFound) works.
type Code string

// Error returns the name of the outcome.
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

// Outcome is a row of the table of exit codes. Note explains the name; it may be empty.
type Outcome struct {
	Exit int
	Code Code
	Note string
}

// Meaning returns the name of the code, followed by the note if there is one.
func (o Outcome) Meaning() string {
	if o.Note == "" {
		return string(o.Code)
	}
	return string(o.Code) + ": " + o.Note
}

// Outcomes returns the table of exit codes, from which help and documentation are generated. It does not have 2 to 79,
// which tools may declare.
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

// Error is the error of every operation of a host: what was wrong, what was expected, and what to do next. Only Code
// and Message are always set.
type Error struct {
	Code     Code
	Exit     int // the code that the tool declared; 0 means the exit code of Code
	Message  string
	Details  []Detail
	Denied   []grant.Denial
	Tool     *ToolError
	Protocol *ProtocolError
	// Corrected are parameters that would be accepted, and Retry is the call with them. They hold only the caller's own
	// values and values that the schema leaves no choice about. Otherwise Template may have the caller's valid values,
	// and texts such as "<url: string, the page to open>" for missing ones. Changes says how either differs from what was
	// given, including every value that was left out.
	Corrected  json.RawMessage
	Retry      *step.Step
	Template   json.RawMessage
	Changes    []schema.Change
	DidYouMean []spelling.Near
	// Earlier are the previous errors of this session with the tool, the latest one last.
	Earlier []string
	// Effects are what a call may have changed before it crashed or lost its response, in the form of [Event].Uses.
	Effects []string
	Subject string // as [job.Result].Subject
	// Approval is the id of the approval that the call waits for.
	Approval string
	// Place is the call's place in the line for a slot when its deadline passed, counted from 1.
	Place int
	// Trace is where a guest crashed. It is set only for calls with [job.Wants].Trace.
	Trace *job.Trace
	Docs  *Docs
	// Steps are what to do next, best first.
	Steps []step.Step
	// Next are commands of the front end that made the error. Other packages leave it empty and set Steps.
	Next  []string
	Cause error // never shown, only unwrapped
}

// WithoutPath returns the cause of an [fs.PathError], for a message that has the path already, and any other error as
// it is.
func WithoutPath(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return of.Err
	}
	return err
}

// Detail is one violation, found by the host or reported by the tool.
type Detail struct {
	Parameter  string           `json:"parameter"` // JSON pointer
	Keyword    string           `json:"keyword"`
	Provided   string           `json:"provided"`
	Expected   string           `json:"expected"`
	Suggestion *step.Suggestion `json:"suggestion,omitempty"`
}

// ToolError is the failure that the tool itself reported.
type ToolError struct {
	Exit    int             `json:"exit"`
	Name    string          `json:"name,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
	Inner   *InnerError     `json:"inner,omitempty"`
}

// InnerError is the failure of a call that a tool made and passed on as its own.
type InnerError struct {
	Tool    string          `json:"tool"`
	Code    Code            `json:"code"`
	Name    string          `json:"name,omitempty"` // name of the exit code that the inner tool declares
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"` // details of the inner error, or the violations of its parameters
}

// ProtocolError is an error of the Chrome DevTools Protocol.
type ProtocolError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is the [Code] of e.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// ExitCode returns the exit code of a process that fails with e.
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

// Errorf returns an error with a code and a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithNext adds commands to Error.Next and returns e.
func (e *Error) WithNext(next ...string) *Error {
	e.Next = append(e.Next, next...)
	return e
}

// WithSteps adds steps to Error.Steps and returns e.
func (e *Error) WithSteps(steps ...step.Step) *Error {
	e.Steps = append(e.Steps, steps...)
	return e
}

// AsError returns the [*Error] in the chain of err. Any other error becomes one with the code internal. It panics on
// nil.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Internal, Message: err.Error(), Cause: err}
}

// ErrorObject is the JSON form of an [Error]. Fields that do not apply are absent. Command is set by a front end that
// has commands.
type ErrorObject struct {
	Code       Code               `json:"code"`
	ExitCode   int                `json:"exit_code"`
	Message    string             `json:"message"`
	Details    []Detail           `json:"details,omitempty"`
	Denied     []grant.Denial     `json:"denied,omitempty"`
	Corrected  json.RawMessage    `json:"corrected,omitempty"`
	Template   json.RawMessage    `json:"template,omitempty"`
	Changes    []schema.Change    `json:"changes,omitempty"`
	Command    string             `json:"command,omitempty"`
	DidYouMean []spelling.Near    `json:"did_you_mean,omitempty"`
	Earlier    []string           `json:"earlier,omitempty"`
	Effects    []string           `json:"effects,omitempty"`
	Approval   string             `json:"approval,omitempty"`
	Place      int                `json:"place,omitempty"`
	Docs       *manifest.ToolDocs `json:"docs,omitempty"`
	Tool       *ToolError         `json:"tool,omitempty"`
	CDP        *ProtocolError     `json:"cdp,omitempty"`
}

// Object returns the JSON form of the error, within its bounds.
func (e *Error) Object() *ErrorObject {
	e = e.Bounded()
	o := e.object()
	if e.Docs != nil {
		o.Docs = e.Docs.ToolDocs
	}
	return o
}

// object is Object without bounds and documentation.
func (e *Error) object() *ErrorObject {
	return &ErrorObject{
		Code: e.Code, ExitCode: e.ExitCode(), Message: e.Message, Details: e.Details, Denied: e.Denied,
		Corrected: e.Corrected, Template: e.Template, Changes: e.Changes, DidYouMean: e.DidYouMean,
		Earlier: e.Earlier, Effects: e.Effects, Approval: e.Approval, Place: e.Place, Tool: e.Tool, CDP: e.Protocol,
	}
}
