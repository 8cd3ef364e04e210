package host

import (
	"encoding/json"

	"github.com/parley-tools/parley/manifest"
)

// ErrorObject is the JSON form of an [Error]. Fields that do not apply are absent. Command is set by a front end that
// has commands.
type ErrorObject struct {
	Code       Code               `json:"code"`
	ExitCode   int                `json:"exit_code"`
	Message    string             `json:"message"`
	Details    []Detail           `json:"details,omitempty"`
	Denied     []Denial           `json:"denied,omitempty"`
	Corrected  json.RawMessage    `json:"corrected,omitempty"`
	Template   json.RawMessage    `json:"template,omitempty"`
	Changes    []Change           `json:"changes,omitempty"`
	Command    string             `json:"command,omitempty"`
	DidYouMean []NearName         `json:"did_you_mean,omitempty"`
	Earlier    []string           `json:"earlier,omitempty"`
	Effects    []string           `json:"effects,omitempty"`
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
		Earlier: e.Earlier, Effects: e.Effects, Tool: e.Tool, CDP: e.Protocol,
	}
}
