package host

import (
	"encoding/json"
	"math"
)

// Envelope is the one shape in which answers leave the host, whoever asked.
type Envelope struct {
	OK       bool            `json:"ok"`
	Data     json.RawMessage `json:"data,omitempty"`
	Error    *ErrorObject    `json:"error,omitempty"`
	Warnings []string        `json:"warnings"`
	Next     []string        `json:"next"`
	Meta     *Meta           `json:"meta,omitempty"`
	Debug    []string        `json:"debug,omitempty"`
}

// Meta says which call an envelope answers.
type Meta struct {
	Tool   string  `json:"tool,omitempty"`
	CallID string  `json:"call_id,omitempty"`
	MS     float64 `json:"ms"`
}

// ErrorObject is an Error as it leaves the host. Fields that do not apply are absent.
type ErrorObject struct {
	Code       Code            `json:"code"`
	ExitCode   int             `json:"exit_code"`
	Message    string          `json:"message"`
	Details    []Detail        `json:"details,omitempty"`
	Denied     []Denial        `json:"denied,omitempty"`
	Corrected  json.RawMessage `json:"corrected,omitempty"`
	Command    string          `json:"command,omitempty"`
	DidYouMean []Suggestion    `json:"did_you_mean,omitempty"`
	Marked     string          `json:"marked,omitempty"`
	Earlier    []string        `json:"earlier,omitempty"`
	Docs       *Docs           `json:"docs,omitempty"`
	Tool       *ToolError      `json:"tool,omitempty"`
	CDP        *ProtocolError  `json:"cdp,omitempty"`
}

// Object returns the error's public form.
func (e *Error) Object() *ErrorObject {
	return &ErrorObject{
		Code: e.Code, ExitCode: e.ExitCode(), Message: e.Message, Details: e.Details, Denied: e.Denied, Corrected: e.Corrected,
		Command: e.Command, DidYouMean: e.DidYouMean, Marked: e.Marked, Earlier: e.Earlier, Docs: e.Docs, Tool: e.Tool, CDP: e.Protocol,
	}
}

// Envelope returns the answer's public form.
func (a *Answer) Envelope() *Envelope {
	env := &Envelope{
		OK: a.Err == nil, Data: a.Data, Warnings: append([]string{}, a.Warnings...), Next: append([]string{}, a.Next...),
		Meta: &Meta{Tool: a.Tool, CallID: a.CallID, MS: math.Round(float64(a.Duration.Microseconds())/10) / 100},
	}
	if a.Err != nil {
		env.Error = a.Err.Object()
	}
	return env
}
