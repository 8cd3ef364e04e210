package page

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// Answer is a value that a caller asked for, or null.
type Answer struct {
	Value json.RawMessage `json:"value"`
}

// Remote is the value of an expression.
type Remote struct {
	Value       json.RawMessage `json:"value"`
	Type        string          `json:"type"`
	Unusable    string          `json:"unserializableValue"`
	Description string          `json:"description"`
}

// EvaluateIn sends Runtime.evaluate to a frame.
func (v *Visit) EvaluateIn(in Frame, params Object) (Remote, *api.Error) {
	var done struct {
		Result           Remote
		ExceptionDetails json.RawMessage
	}
	err := v.Send(api.CallRequest{Target: cmp.Or(string(in), v.Page.ID), Method: "Runtime.evaluate",
		Params: scan.Marshal(params)}, &done)
	if err == nil && done.ExceptionDetails != nil {
		err = thrown(done.ExceptionDetails)
	}
	return done.Result, err
}

// thrown returns the error of an exception of the caller's JavaScript.
func thrown(raw json.RawMessage) *api.Error {
	var e api.Exception
	_ = json.Unmarshal(raw, &e)
	return Exit("script_error", fmt.Sprintf("the page's script threw: %s (line %d, column %d)", Clip(e.String(), 1000),
		e.Line+1, e.Column+1), nil)
}
