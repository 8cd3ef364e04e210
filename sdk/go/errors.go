package sdk

import "encoding/json"

// Exit returns an error that ends the call with the declared exit code of that
// name. The caller receives details, which may be nil, as JSON.
func Exit(name, message string, details any) error {
	return &ExitError{Name: name, Message: message, Details: details}
}

// ExitError is the error that [Exit] returns.
type ExitError struct {
	Name    string
	Message string
	Details any
}

func (e *ExitError) Error() string { return e.Name + ": " + e.Message }

// Invalid returns an error that rejects one parameter although it is valid by
// its schema. Pointer is a JSON pointer such as "/pattern"; provided and
// suggestion may be empty. To reject several parameters at once, use
// [errors.Join].
func Invalid(pointer, expected, provided, suggestion string) error {
	return &InvalidError{Pointer: pointer, Expected: expected, Provided: provided, Suggestion: suggestion}
}

// InvalidError is the error that [Invalid] returns.
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

// HostError is the error of [Call.CallTool], [Call.HTTP] and [Call.ReadSecret]
// when the host refuses or fails.
type HostError struct {
	Code     string          `json:"code"` // such as "denied"
	ExitCode int             `json:"exit_code"`
	Message  string          `json:"message"`
	Details  json.RawMessage `json:"details,omitempty"`
}

func (e *HostError) Error() string { return e.Code + ": " + e.Message }

// violations returns the InvalidErrors in the tree of err.
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
