package wasm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/manifest"
)

// parleyFunctions maps the functions that a guest of kind parley/1 may import to their types.
var parleyFunctions = map[string]instrument.FuncType{
	"call_tool":    "i32,i32->i64",
	"http_request": "i32,i32->i64",
	"read_secret":  "i32,i32->i64",
	"log":          "i32,i32,i32->",
	"progress":     "f64,f64,i32,i32->",
}

const (
	maxHostRequest   = 16 << 20 // of call_tool and http_request
	maxSecretRequest = 4 << 10
	maxResponsePart  = 1 << 20  // of each part of a response other than its result
	maxMessage       = 2 << 10  // of an error, a log line or a progress report
	maxDetails       = 64 << 10 // of a tool's own error details
	maxWarnings      = 50
	maxViolations    = 100
)

// callRequest is the argument of parley_call.
type callRequest struct {
	Tool       string          `json:"tool"`
	Params     json.RawMessage `json:"params"`
	CallID     string          `json:"call_id"`
	Session    string          `json:"session"`
	Caller     string          `json:"caller"`
	Host       string          `json:"host"`
	DeadlineMS int64           `json:"deadline_ms"`
	Settings   json.RawMessage `json:"settings"`
	Granted    grantSummary    `json:"granted"`
	// Script is the text that an engine runs.
	Script *manifest.SourceFile `json:"script,omitempty"`
}

type grantSummary struct {
	FS      []grantedFolder `json:"fs"`
	HTTP    []string        `json:"http"`
	Tools   []string        `json:"tools"`
	Secrets []string        `json:"secrets"`
	Env     []string        `json:"env"`
	Browser bool            `json:"browser"`
	Clock   bool            `json:"clock"`
	Random  bool            `json:"random"`
}

type grantedFolder struct {
	Path string `json:"path"`
	Mode string `json:"mode"`
}

func summarizeGrant(g host.Grant) grantSummary {
	out := grantSummary{FS: []grantedFolder{}, HTTP: []string{}, Tools: append([]string{}, g.Tools...),
		Secrets: []string{}, Env: sortedKeys(g.Env), Browser: g.Browser, Clock: g.Clock, Random: g.Random}
	for _, f := range g.FS {
		out.FS = append(out.FS, grantedFolder{f.Path, f.Mode})
	}
	for _, h := range g.HTTP {
		out.HTTP = append(out.HTTP, h.URL)
	}
	for _, s := range g.Secrets {
		if !slices.Contains(out.Secrets, s.Name) {
			out.Secrets = append(out.Secrets, s.Name)
		}
	}
	return out
}

// callResponse is the result of parley_call.
type callResponse struct {
	OK       *bool
	Result   json.RawMessage
	Content  []host.Content
	Warnings []string
	Exit     *int64
	Message  string
	Details  json.RawMessage
	Invalid  []violation
}

type violation struct {
	Pointer    string `json:"pointer"`
	Expected   string `json:"expected"`
	Provided   string `json:"provided"`
	Suggestion string `json:"suggestion"`
}

// runReactor runs a call of kind parley/1: it initializes the guest, writes the request into its memory, calls it
// and reads the response.
func (c *call) runReactor() (*host.Result, error) {
	if !c.prepared {
		if err := c.initialize(); err != nil {
			return nil, c.guestError(err)
		}
	}
	body, err := manifest.Marshal(callRequest{
		Tool: c.request.Tool, Params: jsonOr(c.request.Params, "{}"), CallID: c.request.CallID,
		Session: c.session, Caller: c.request.Caller,
		Host: c.host, DeadlineMS: max(time.Until(c.control.deadline).Milliseconds(), 1),
		Settings: jsonOr(c.request.Settings, "{}"), Granted: summarizeGrant(c.request.Grant),
		Script: c.text,
	})
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "the parameters are not valid JSON: %v", err)
	}
	data, err := c.callGuest("parley_call", body)
	for err == nil && isPending(data) {
		var answers []byte
		if answers, err = c.answerPending(data); err == nil {
			data, err = c.callGuest("parley_resume", answers)
		}
	}
	if err != nil {
		return nil, err
	}
	return c.interpretResponse(data)
}

// callGuest hands a message to an export of the guest and returns what it returns.
func (c *call) callGuest(export string, message []byte) ([]byte, error) {
	addr, err := c.copyToGuest(message)
	if err != nil {
		return nil, err
	}
	results, err := c.mod.ExportedFunction(export).Call(c.control.ctx, uint64(addr), uint64(len(message)))
	if err != nil {
		return nil, c.guestError(err)
	}
	return c.copyFromGuest(results[0])
}

// isPending reports whether a response says that the guest waits for calls.
func isPending(data []byte) bool {
	var r struct {
		Pending json.RawMessage `json:"pending"`
	}
	return bytes.Contains(data, []byte(`"pending"`)) && json.Unmarshal(data, &r) == nil && r.Pending != nil
}

// answerPending makes the calls for which the guest waits, and returns the answers for parley_resume.
func (c *call) answerPending(data []byte) ([]byte, error) {
	if c.mod.ExportedFunction("parley_resume") == nil {
		return nil, host.Errorf(host.InvalidResult, "%s waits for calls, but it does not export parley_resume", c.toolName())
	}
	if err := c.control.countHostCall(); err != nil {
		return nil, err
	}
	reply := c.askHost(host.AskTools, data)
	if c.control.ctx.Err() != nil {
		return nil, c.control.contextError()
	}
	var r struct {
		OK     bool
		Result json.RawMessage
		Error  *host.ErrorObject
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return nil, host.Errorf(host.Internal, "the host's answers cannot be read")
	}
	if !r.OK {
		return nil, host.Errorf(host.InvalidResult, "%s waits for calls that the host cannot make: %s", c.toolName(),
			r.Error.Message)
	}
	return r.Result, nil
}

// askHost asks the host for a function. Decoding a large request takes time, and so may a browser: a reply that arrives
// after the deadline is dropped. Waiting is not counted as running.
func (c *call) askHost(function string, request []byte) (reply []byte) {
	replied := make(chan []byte, 1)
	go func() { replied <- c.serve(c.control.ctx, function, request) }()
	c.control.wait(func(ended <-chan struct{}) {
		select {
		case reply = <-replied:
		case <-ended:
		}
	})
	return reply
}

// initialize creates the instance of a guest of kind parley/1.
func (c *call) initialize() error {
	c.capture(&capture{control: c.control, name: "stdout"})
	return c.instantiate(wazero.NewModuleConfig().WithArgs(c.manifest.Name), "_initialize")
}

func jsonOr(data json.RawMessage, fallback string) json.RawMessage {
	if len(bytes.TrimSpace(data)) == 0 {
		return json.RawMessage(fallback)
	}
	return data
}

// copyToGuest copies data into memory that the guest's parley_alloc returns.
func (c *call) copyToGuest(data []byte) (uint32, error) {
	c.inAlloc = true
	defer func() { c.inAlloc = false }()
	results, err := c.mod.ExportedFunction("parley_alloc").Call(c.control.ctx, uint64(len(data)))
	if err != nil {
		return 0, c.guestError(err)
	}
	addr := uint32(results[0])
	if addr == 0 {
		return 0, host.Errorf(host.LimitExceeded, "%s cannot receive a message of %d bytes: parley_alloc returned 0",
			c.toolName(), len(data))
	}
	if !c.mod.Memory().Write(addr, data) {
		return 0, host.Errorf(host.InvalidResult, "%s: parley_alloc returned address %d for %d bytes, but the guest's "+
			"memory ends at %d", c.toolName(), addr, len(data), c.mod.Memory().Size())
	}
	return addr, nil
}

// copyFromGuest copies a response out of the guest's memory.
func (c *call) copyFromGuest(packed uint64) ([]byte, error) {
	addr, n := uint32(packed>>32), uint32(packed)
	view, ok := c.mod.Memory().Read(addr, n)
	switch {
	case !ok:
		return nil, host.Errorf(host.InvalidResult, "%s returned %d bytes at address %d, but its memory ends at %d",
			c.toolName(), n, addr, c.mod.Memory().Size())
	case int64(n) > int64(c.limits.output):
		return nil, host.Errorf(host.LimitExceeded, "%s returned %d bytes, the limit is %d; request less data, or raise "+
			"output_bytes in the plugin's limits", c.toolName(), n, c.limits.output)
	}
	return bytes.Clone(view), nil
}

// interpretResponse turns a response into a result or an error.
func (c *call) interpretResponse(data []byte) (*host.Result, error) {
	if !utf8.Valid(data) {
		return nil, host.Errorf(host.InvalidResult, "%s returned bytes that are not UTF-8", c.toolName())
	}
	r, err := readResponse(data)
	var tooLarge *host.Error
	switch {
	case errors.As(err, &tooLarge):
		return nil, tooLarge
	case err != nil:
		return nil, &host.Error{Code: host.InvalidResult, Cause: err, Message: c.toolName() +
			" did not return a parley/1 response: " + truncate(manifest.CleanLine(err.Error()), 200)}
	case r.OK == nil:
		return nil, host.Errorf(host.InvalidResult, "%s returned a response without \"ok\"; expected "+
			"{\"ok\":true,\"result\":..} or {\"ok\":false,..}", c.toolName())
	case *r.OK && (r.Exit != nil || r.Invalid != nil):
		return nil, host.Errorf(host.InvalidResult, "%s returned \"ok\":true together with \"exit\" or \"invalid\"",
			c.toolName())
	case *r.OK:
		if err := c.checkContent(r.Content); err != nil {
			return nil, err
		}
		return &host.Result{
			Data: jsonOr(r.Result, "null"), Content: r.Content, Warnings: cleanWarnings(r.Warnings),
		}, nil
	case len(r.Invalid) > 0:
		return nil, c.paramsError(r)
	case r.Exit == nil:
		return nil, host.Errorf(host.InvalidResult, "%s returned \"ok\":false without \"exit\" or \"invalid\"", c.toolName())
	}
	return nil, c.toolError(*r.Exit, r.Message, r.Details)
}

// maxContent bounds the blocks of one result.
const maxContent = 64

// checkContent refuses content that no client could show.
func (c *call) checkContent(content []host.Content) error {
	if len(content) > maxContent {
		return host.Errorf(host.LimitExceeded, "%s returned %d blocks of content, the limit is %d",
			c.toolName(), len(content), maxContent)
	}
	for i, block := range content {
		if err := block.Check(); err != nil {
			return host.Errorf(host.InvalidResult, "%s returned invalid content /content/%d: %s", c.toolName(), i, err)
		}
	}
	return nil
}

// readResponse decodes a response. Only the result and its content may be large, because they are kept as raw JSON. The
// other parts are bounded before they are decoded: a million empty violations fit into a few megabytes of JSON but take
// gigabytes of memory.
func readResponse(data []byte) (callResponse, error) {
	var parts struct {
		Warnings json.RawMessage `json:"warnings"`
		Message  json.RawMessage `json:"message"`
		Details  json.RawMessage `json:"details"`
		Invalid  json.RawMessage `json:"invalid"`
		OK       *bool           `json:"ok"`
		Result   json.RawMessage `json:"result"`
		Content  json.RawMessage `json:"content"`
		Exit     *int64          `json:"exit"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return callResponse{}, err
	}
	r := callResponse{OK: parts.OK, Result: parts.Result, Exit: parts.Exit, Details: parts.Details}
	if err := readContent(parts.Content, &r.Content); err != nil {
		return r, err
	}
	for _, p := range []struct {
		name string
		raw  json.RawMessage
		into any
	}{{"warnings", parts.Warnings, &r.Warnings}, {"message", parts.Message, &r.Message}, {"details", parts.Details, nil},
		{"invalid", parts.Invalid, &r.Invalid}} {
		if len(p.raw) > maxResponsePart {
			return r, host.Errorf(host.LimitExceeded, "the response has %d bytes of %s, the limit is %d", len(p.raw), p.name,
				maxResponsePart)
		}
		if p.into != nil && len(p.raw) > 0 {
			if err := json.Unmarshal(p.raw, p.into); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

func cleanWarnings(warnings []string) []string {
	var out []string
	for i, w := range warnings {
		if i == maxWarnings {
			return append(out, fmt.Sprintf("%d more warnings were omitted", len(warnings)-i))
		}
		out = append(out, truncate(manifest.CleanLine(w), 500))
	}
	return out
}

// paramsError returns the error that the host itself would return for these violations.
func (c *call) paramsError(r callResponse) *host.Error {
	e := &host.Error{Code: host.InvalidArgs}
	n := len(r.Invalid)
	for _, v := range r.Invalid[:min(n, maxViolations)] {
		e.Details = append(e.Details, host.Detail{
			Parameter: truncate(manifest.CleanLine(v.Pointer), 200), Keyword: "tool",
			Provided:   truncate(manifest.CleanLine(v.Provided), 300),
			Expected:   truncate(manifest.CleanLine(v.Expected), 300),
			Suggestion: host.TextSuggestion(truncate(manifest.CleanLine(v.Suggestion), 300)),
		})
	}
	e.Message = fmt.Sprintf("Tool '%s' failed: %d violations", c.toolName(), n)
	if n == 1 {
		e.Message = fmt.Sprintf("Tool '%s' failed: 1 violation", c.toolName())
	}
	return e
}

// toolError returns the error for a tool that ended with an exit code of its own.
func (c *call) toolError(exit int64, message string, details json.RawMessage) *host.Error {
	e := &host.Error{Code: host.ToolFailed, Tool: &host.ToolError{Exit: int(exit)}}
	message = truncate(strings.TrimSpace(manifest.Clean(message)), maxMessage)
	if len(details) > 0 && string(details) != "null" {
		if len(details) <= maxDetails {
			e.Tool.Details = manifest.CleanJSON(details)
		} else {
			e.Tool.Details = json.RawMessage(fmt.Sprintf(`{"omitted_bytes":%d}`, len(details)))
		}
	}
	if declared := c.declaredExit(exit); declared != nil {
		e.Exit, e.Code, e.Tool.Name = declared.Code, host.Code(declared.Name), declared.Name
		message = cmp.Or(message, manifest.CleanLine(declared.Meaning))
		if advice := manifest.CleanLine(declared.Suggestion); advice != "" {
			message += " (" + advice + ")"
		}
	}
	if e.Exit == 0 {
		e.Trace = c.trace(nil)
	}
	e.Message = cmp.Or(message, fmt.Sprintf("%s failed with exit code %d and no message", c.toolName(), exit))
	return e
}

// declaredExit returns the manifest's entry for an exit code, or nil if the code may not be passed on: it must be
// declared in the manifest and, if the tool lists its own exit codes, by the tool.
func (c *call) declaredExit(exit int64) *manifest.ExitCode {
	if exit < 2 || exit > 79 {
		return nil
	}
	code := c.manifest.ExitCode(int(exit))
	def := c.request.Def
	if code != nil && def != nil && len(def.ExitCodes) > 0 && !slices.Contains(def.ExitCodes, code.Name) {
		return nil
	}
	return code
}

// parleyModuleFunctions are what [parleyFunctions] do.
func parleyModuleFunctions() map[string]api.GoModuleFunc {
	functions := map[string]api.GoModuleFunc{
		"log": func(ctx context.Context, mod api.Module, stack []uint64) {
			c := callOf(ctx)
			c.log.log(int(min(uint32(stack[0]), 3)), c.messageAt(mod, uint32(stack[1]), uint32(stack[2])))
		},
		"progress": func(ctx context.Context, mod api.Module, stack []uint64) {
			c := callOf(ctx)
			done, total := api.DecodeF64(stack[0]), api.DecodeF64(stack[1])
			text := c.log.text(c.messageAt(mod, uint32(stack[2]), uint32(stack[3])))
			if isFinite(done) && isFinite(total) {
				c.request.Progress(done, total, text)
			}
		},
	}
	for _, name := range guestFunctions {
		functions[name] = func(ctx context.Context, mod api.Module, stack []uint64) {
			stack[0] = callOf(ctx).serveHostCall(name, mod, uint32(stack[0]), uint32(stack[1]))
		}
	}
	return functions
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// serveHostCall serves one request of the guest and writes the reply into the guest's memory. It returns the
// reply's address in the upper 32 bits and its length in the lower.
func (c *call) serveHostCall(function string, mod api.Module, addr, n uint32) uint64 {
	k := c.control
	k.checkpoint()
	if c.mod == nil {
		// The call comes from a start function: there is no instance yet whose parley_alloc could be called.
		c.mod = mod
		defer func() { c.mod = nil }()
	}
	if c.inAlloc {
		// The reply would need parley_alloc again, which would recurse.
		k.end(host.Errorf(host.Trapped, "%s called %s from within parley_alloc", c.toolName(), function))
	}
	if err := k.countHostCall(); err != nil {
		k.end(err)
	}
	request, ok := mod.Memory().Read(addr, n)
	if !ok {
		k.end(host.Errorf(host.InvalidResult, "%s called %s with %d bytes at %d, and its memory ends at %d", c.toolName(),
			function, n, addr, mod.Memory().Size()))
	}
	limit := uint32(maxHostRequest)
	if function == host.AskSecret {
		limit = maxSecretRequest
	}
	if n > limit {
		k.exceedLimit("%s called %s with %d bytes, the limit is %d", c.toolName(), function, n, limit)
	}
	reply := c.askHost(function, bytes.Clone(request))
	k.checkpoint()
	replyAddr, err := c.copyToGuest(reply)
	if err != nil {
		k.end(host.AsError(err))
	}
	return uint64(replyAddr)<<32 | uint64(uint32(len(reply)))
}

// messageAt returns the bytes of a message of the guest.
func (c *call) messageAt(mod api.Module, addr, n uint32) []byte {
	c.control.checkpoint()
	view, ok := mod.Memory().Read(addr, n)
	if !ok {
		c.control.end(host.Errorf(host.InvalidResult, "%s logged %d bytes at %d, and its memory ends at %d", c.toolName(), n,
			addr, mod.Memory().Size()))
	}
	return view
}

// readContent decodes the content of a response. It stops at the first block too many: a million empty blocks fit into
// a few megabytes of JSON but take far more memory.
func readContent(raw json.RawMessage, into *[]host.Content) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return errors.New("content is not an array")
	}
	for dec.More() && len(*into) <= maxContent {
		var block host.Content
		if err := dec.Decode(&block); err != nil {
			return err
		}
		*into = append(*into, block)
	}
	return nil
}

// guestFunctions are the functions of the host that a guest may import.
var guestFunctions = []string{host.AskTool, host.AskHTTP, host.AskSecret}

// serveGuest asks the host for a function on behalf of a guest, which serves it through [call].serve. The reply is
// {"ok":true,"result":..,"warnings":[..]} or {"ok":false,"error":{..}}.
func serveGuest(ctx context.Context, r *host.Request, function string, argument []byte) []byte {
	var result *host.Result
	err := error(host.Errorf(host.NotFound, "the host has no function %s", truncate(function, maxMessage)))
	if r.Ask != nil && (function == host.AskTools || slices.Contains(guestFunctions, function)) {
		result, err = r.Ask(ctx, function, argument)
	}
	if err != nil {
		return marshal(struct {
			OK    bool              `json:"ok"`
			Error *host.ErrorObject `json:"error"`
		}{false, host.AsError(err).Object()})
	}
	return marshal(struct {
		OK       bool            `json:"ok"`
		Result   json.RawMessage `json:"result"`
		Warnings []string        `json:"warnings,omitempty"`
	}{true, jsonOr(result.Data, "null"), result.Warnings})
}

func marshal(v any) []byte {
	data, err := manifest.Marshal(v)
	if err != nil {
		return []byte(`{"ok":false,"error":{"code":"internal","exit_code":110,"message":"the reply cannot be encoded as JSON"}}`)
	}
	return data
}

func sortedKeys[V any](m map[string]V) []string {
	return append([]string{}, slices.Sorted(maps.Keys(m))...)
}
