package sdk

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Exit ends the call with the declared exit code of that name. Details, which
// may be nil, is given to the caller as JSON.
func Exit(name, message string, details any) error {
	return &ExitError{Name: name, Message: message, Details: details}
}

// ExitError is what Exit makes.
type ExitError struct {
	Name    string
	Message string
	Details any
}

func (e *ExitError) Error() string { return e.Name + ": " + e.Message }

// Invalid refuses one parameter that its schema let pass. Pointer is a JSON
// pointer such as "/pattern"; provided and suggestion may be empty. For several
// at once use errors.Join.
func Invalid(pointer, expected, provided, suggestion string) error {
	return &InvalidError{Pointer: pointer, Expected: expected, Provided: provided, Suggestion: suggestion}
}

// InvalidError is what Invalid makes.
type InvalidError struct {
	Pointer    string `json:"pointer"`
	Expected   string `json:"expected"`
	Provided   string `json:"provided,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
}

func (e *InvalidError) Error() string {
	s := e.Pointer + ": expected " + e.Expected
	if e.Provided != "" {
		s += ", provided " + e.Provided
	}
	return s
}

// HostError is the host's refusal of a CallTool, HTTP or ReadSecret.
type HostError struct {
	Code     string          `json:"code"` // such as "denied"
	ExitCode int             `json:"exit_code"`
	Message  string          `json:"message"`
	Details  json.RawMessage `json:"details,omitempty"`
}

func (e *HostError) Error() string { return e.Code + ": " + e.Message }

// violations gathers the InvalidErrors in the tree of err.
func violations(err error) []*InvalidError {
	switch e := err.(type) {
	case *InvalidError:
		return []*InvalidError{e}
	case interface{ Unwrap() error }:
		return violations(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*InvalidError
		for _, one := range e.Unwrap() {
			all = append(all, violations(one)...)
		}
		return all
	}
	return nil
}

// decodeParams decodes what the host has validated. What can still differ is
// Go's own: a number too large for the field, or an integer written as 1.0.
func decodeParams(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	err := json.Unmarshal(raw, into)
	if e, ok := err.(*json.UnmarshalTypeError); ok {
		pointer := ""
		if e.Field != "" {
			pointer = "/" + strings.ReplaceAll(e.Field, ".", "/")
		}
		return Invalid(pointer, "a value that fits "+e.Type.String(), e.Value, "")
	}
	if err != nil {
		return fmt.Errorf("params: %w", err)
	}
	return nil
}
