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

// hostFunctions serves the functions that a guest of one call imports to reach beyond its instance. Requests and
// replies are JSON, so that the same code serves a guest in this process and one behind a pipe. It enforces the
// grant and records what it denied.
type hostFunctions struct {
	r *host.Request

	mu     sync.Mutex // a reply that was abandoned may still be under way
	denied []host.Denial
}

// withDenials adds the denials of a call to its outcome: to the error, or to the result as warnings.
func (h *hostFunctions) withDenials(result *host.Result, err error) (*host.Result, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		e := asHostError(err)
		e.Denied = append(e.Denied, h.denied...)
		return nil, e
	}
	for _, denial := range h.denied {
		result.Warnings = append(result.Warnings, "denied: "+denial.Right+" ("+denial.Why+")")
	}
	return result, nil
}

// dispatch serves one request. The reply is {"ok":true,"result":..} or {"ok":false,"error":{..}}.
func (h *hostFunctions) dispatch(ctx context.Context, function string, request []byte) []byte {
	var result *host.Result
	var err error
	switch function {
	case "call_tool":
		result, err = h.callTool(ctx, request)
	case "http_request":
		result, err = h.httpRequest(ctx, request)
	case "read_secret":
		result, err = h.readSecret(ctx, request)
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
	}{true, jsonOr(result.Data, "null"), result.Warnings})
}

func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"ok":false,"error":{"code":"internal","exit_code":110,"message":"the reply cannot be encoded as JSON"}}`)
	}
	return data
}

// deny records a denial once per right and reason, and returns the error that the guest gets.
func (h *hostFunctions) deny(right, why string) *host.Error {
	denial := host.Denial{Right: right, Why: why}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.denied) < 100 && !slices.Contains(h.denied, denial) {
		h.denied = append(h.denied, denial)
	}
	return &host.Error{Code: host.Denied, Message: "not granted: " + right, Denied: []host.Denial{denial}}
}

// callTool runs a tool of another plugin through the host, which consults the policy. Denials are recorded here.
func (h *hostFunctions) callTool(ctx context.Context, request []byte) (*host.Result, error) {
	var in struct {
		Tool    string          `json:"tool"`
		Params  json.RawMessage `json:"params"`
		Options json.RawMessage `json:"options"`
	}
	if err := json.Unmarshal(request, &in); err != nil {
		return nil, badRequest("call_tool", `{"tool":"cdp.Page.navigate","params":{},"options":{}}`, err)
	}
	options, err := host.ParseOptions(in.Options)
	if err != nil {
		return nil, err
	}
	name := strings.ReplaceAll(in.Tool, "__", ".")
	if h.r.CallTool == nil {
		return nil, h.deny("tool:"+truncate(manifest.CleanLine(name), 200), "tools cannot be called here")
	}
	result, err := h.r.CallTool(ctx, name, jsonOr(in.Params, "{}"), options)
	if e := (*host.Error)(nil); errors.As(err, &e) && e.Code == host.Denied {
		refused := h.deny("tool:"+truncate(manifest.CleanLine(name), 200), e.Message)
		refused.Message = e.Message // the denied right may be another one that the tool needs for these parameters
		return nil, refused
	}
	return result, err
}

// readSecret returns a secret that the guest may read.
func (h *hostFunctions) readSecret(ctx context.Context, request []byte) (*host.Result, error) {
	var in struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(request, &in); err != nil {
		return nil, badRequest("read_secret", `{"name":"SIGNING_KEY"}`, err)
	}
	right := "secret:read:" + truncate(manifest.CleanLine(in.Name), 100)
	if h.r.ReadSecret == nil {
		return nil, h.deny(right, "no secrets can be read here")
	}
	value, err := h.r.ReadSecret(ctx, in.Name)
	if e := (*host.Error)(nil); errors.As(err, &e) && e.Code == host.Denied {
		return nil, h.deny(right, e.Message)
	}
	if err != nil {
		return nil, err
	}
	return &host.Result{Data: marshal(value)}, nil
}

func badRequest(function, expected string, err error) *host.Error {
	return &host.Error{Code: host.InvalidArgs, Cause: err,
		Message: fmt.Sprintf("%s: invalid request: %s; expected %s", function, truncate(manifest.CleanLine(err.Error()),
			200), expected)}
}

func sortedKeys[V any](m map[string]V) []string {
	return append([]string{}, slices.Sorted(maps.Keys(m))...)
}
