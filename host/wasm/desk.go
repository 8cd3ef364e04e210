package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// desk is where a guest of one call asks the host for what lies outside its instance: JSON in, JSON out, so that
// the same code can serve a guest in this process or one behind a pipe. It decides by the grant and notes what it refused.
type desk struct {
	r *host.Request

	mu     sync.Mutex // an answer that nobody waits for any more may still be on its way
	denied []host.Denial
}

// conclude adds to what became of a call what was refused during it.
func (d *desk) conclude(result *host.Result, err error) (*host.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		e := asHostError(err)
		e.Denied = append(e.Denied, d.denied...)
		return nil, e
	}
	for _, denial := range d.denied {
		result.Warnings = append(result.Warnings, "refused: "+denial.Right+" ("+denial.Why+")")
	}
	return result, nil
}

// answer serves one question; it always is {"ok":true,"result":..} or {"ok":false,"error":{..}}.
func (d *desk) answer(ctx context.Context, function string, question []byte) []byte {
	var result *host.Result
	var err error
	switch function {
	case "call_tool":
		result, err = d.callTool(ctx, question)
	case "http_request":
		result, err = d.httpRequest(ctx, question)
	case "read_secret":
		result, err = d.readSecret(ctx, question)
	default:
		err = host.Errorf(host.NotFound, "the host has no function %s", function)
	}
	if err != nil {
		return marshal(struct {
			OK    bool              `json:"ok"`
			Error *host.ErrorObject `json:"error"`
		}{false, asHostError(err).Object()})
	}
	return marshal(struct {
		OK       bool            `json:"ok"`
		Result   json.RawMessage `json:"result"`
		Warnings []string        `json:"warnings,omitempty"`
	}{true, orJSON(result.Data, "null"), result.Warnings})
}

func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"ok":false,"error":{"code":"internal","exit_code":110,"message":"the answer is no JSON"}}`)
	}
	return data
}

// deny notes a refusal once and returns the error that the guest is answered with.
func (d *desk) deny(right, why string) *host.Error {
	denial := host.Denial{Right: right, Why: why}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.denied) < 100 && !slices.Contains(d.denied, denial) {
		d.denied = append(d.denied, denial)
	}
	return &host.Error{Code: host.Denied, Message: "not granted: " + right, Denied: []host.Denial{denial}}
}

// callTool runs a tool of another plugin through the host, which asks the policy; what it refuses is noted here.
func (d *desk) callTool(ctx context.Context, question []byte) (*host.Result, error) {
	var q struct {
		Tool    string          `json:"tool"`
		Params  json.RawMessage `json:"params"`
		Options json.RawMessage `json:"options"`
	}
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, badQuestion("call_tool", `{"tool":"cdp.Page.navigate","params":{},"options":{}}`, err)
	}
	options, err := host.ParseOptions(q.Options)
	if err != nil {
		return nil, err
	}
	name := strings.ReplaceAll(q.Tool, "__", ".")
	if d.r.CallTool == nil {
		return nil, d.deny("tool:"+cut(manifest.CleanLine(name), 200), "no other tools can be called here")
	}
	result, err := d.r.CallTool(ctx, name, orJSON(q.Params, "{}"), options)
	if e := (*host.Error)(nil); errors.As(err, &e) && e.Code == host.Denied {
		refused := d.deny("tool:"+cut(manifest.CleanLine(name), 200), e.Message)
		refused.Message = e.Message // what is not granted may be another right, which the tool needs for these parameters
		return nil, refused
	}
	return result, err
}

// readSecret gives a secret that the guest may see.
func (d *desk) readSecret(ctx context.Context, question []byte) (*host.Result, error) {
	var q struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, badQuestion("read_secret", `{"name":"SIGNING_KEY"}`, err)
	}
	right := "secret:read:" + cut(manifest.CleanLine(q.Name), 100)
	if d.r.ReadSecret == nil {
		return nil, d.deny(right, "no secrets can be read here")
	}
	value, err := d.r.ReadSecret(ctx, q.Name)
	if e := (*host.Error)(nil); errors.As(err, &e) && e.Code == host.Denied {
		return nil, d.deny(right, e.Message)
	}
	if err != nil {
		return nil, err
	}
	return &host.Result{Data: marshal(value)}, nil
}

func badQuestion(function, expected string, err error) *host.Error {
	return &host.Error{Code: host.InvalidArgs, Cause: err,
		Message: fmt.Sprintf("%s was not given a request: %s; expected %s", function, cut(manifest.CleanLine(err.Error()), 200), expected)}
}

func sortedNames[V any](m map[string]V) []string {
	return append([]string{}, slices.Sorted(maps.Keys(m))...)
}
