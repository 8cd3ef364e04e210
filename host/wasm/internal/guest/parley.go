package guest

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
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
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
	Script *sections.SourceFile `json:"script,omitempty"`
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

func summarizeGrant(g grant.Grant) grantSummary {
	secrets := lists.Map(g.Secrets, func(s grant.Secret) string { return s.Name })
	urls := lists.Map(g.HTTP, func(h grant.HTTP) string { return h.URL })
	out := grantSummary{FS: []grantedFolder{}, HTTP: append([]string{}, urls...), Tools: append([]string{}, g.Tools...),
		Secrets: lists.Add([]string{}, secrets...), Env: append([]string{}, slices.Sorted(maps.Keys(g.Env))...),
		Browser: g.Browser, Clock: g.Clock, Random: g.Random}
	for _, f := range g.FS {
		out.FS = append(out.FS, grantedFolder{f.Path, f.Mode})
	}
	return out
}

// callResponse is the result of parley_call.
type callResponse struct {
	OK       *bool
	Result   json.RawMessage
	Content  []job.Content
	Warnings []string
	Exit     *int64
	Message  string
	Details  json.RawMessage
	Invalid  []violation
}

type violation struct{ Pointer, Expected, Provided, Suggestion string }

// RunReactor runs a call of kind parley/1: it initializes the guest, writes the request into its memory, calls it
// and reads the response.
func (c *Call) RunReactor() (*job.Result, error) {
	if !c.Prepared {
		if err := c.Initialize(); err != nil {
			return nil, c.guestError(err)
		}
	}
	body, err := manifest.Marshal(callRequest{
		Tool: c.Request.Tool, Params: JSONOr(c.Request.Params, "{}"), CallID: c.Request.CallID,
		Session: c.Session, Caller: c.Request.Caller,
		Host: c.Host, DeadlineMS: max(time.Until(c.Control.Deadline).Milliseconds(), 1),
		Settings: JSONOr(c.Request.Settings, "{}"), Granted: summarizeGrant(c.Request.Grant),
		Script: c.Text,
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
	return c.InterpretResponse(data)
}

// callGuest passes a message to an export of the guest and returns the export's response.
func (c *Call) callGuest(export string, message []byte) ([]byte, error) {
	addr, err := c.copyToGuest(message)
	if err != nil {
		return nil, err
	}
	results, err := c.mod.ExportedFunction(export).Call(c.Control.Ctx, uint64(addr), uint64(len(message)))
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

// answerPending makes the calls that the guest waits for, and returns their results for parley_resume.
func (c *Call) answerPending(data []byte) ([]byte, error) {
	if c.mod.ExportedFunction("parley_resume") == nil {
		return nil, host.Errorf(host.InvalidResult, "%s returned pending calls but exports no parley_resume", c.ToolName())
	}
	if err := c.Control.CountHostCall(); err != nil {
		return nil, err
	}
	reply := c.askHost(job.AskTools, data)
	if c.Control.Ctx.Err() != nil {
		return nil, c.Control.ContextError()
	}
	var r hostReply[json.RawMessage]
	if err := json.Unmarshal(reply, &r); err != nil {
		return nil, host.Errorf(host.Internal, "the host's answers cannot be read")
	}
	if !r.OK {
		return nil, host.Errorf(host.InvalidResult, "%s returned pending calls that the host cannot make: %s", c.ToolName(),
			r.Error.Message)
	}
	return r.Result, nil
}

// askHost runs a function of the host and returns the reply. Decoding a large request takes time, and a browser may,
// too, so a reply after the deadline is dropped. Waiting does not count as running.
func (c *Call) askHost(function string, request []byte) (reply []byte) {
	replied := make(chan []byte, 1)
	go func() { replied <- c.Serve(c.Control.Ctx, function, request) }()
	c.Control.Wait(func(ended <-chan struct{}) {
		select {
		case reply = <-replied:
		case <-ended:
		}
	})
	return reply
}

// Initialize creates the instance of a guest of kind parley/1.
func (c *Call) Initialize() error {
	c.Capture(&world.Capture{Control: c.Control, Name: "stdout"})
	return c.instantiate(wazero.NewModuleConfig().WithArgs(c.Manifest.Name), "_initialize")
}

// JSONOr returns JSON, or the fallback if it is empty.
func JSONOr(data json.RawMessage, fallback string) json.RawMessage {
	if len(bytes.TrimSpace(data)) == 0 {
		return json.RawMessage(fallback)
	}
	return data
}

// copyToGuest copies data into memory that the guest's parley_alloc returns.
func (c *Call) copyToGuest(data []byte) (uint32, error) {
	c.inAlloc = true
	defer func() { c.inAlloc = false }()
	results, err := c.mod.ExportedFunction("parley_alloc").Call(c.Control.Ctx, uint64(len(data)))
	if err != nil {
		return 0, c.guestError(err)
	}
	addr := uint32(results[0])
	if addr == 0 {
		return 0, host.Errorf(host.LimitExceeded, "%s cannot receive a message of %d bytes: parley_alloc returned 0",
			c.ToolName(), len(data))
	}
	if !c.mod.Memory().Write(addr, data) {
		return 0, host.Errorf(host.InvalidResult, "%s: parley_alloc returned address %d for %d bytes, but the guest's "+
			"memory ends at %d", c.ToolName(), addr, len(data), c.mod.Memory().Size())
	}
	return addr, nil
}

// copyFromGuest copies a response out of the guest's memory.
func (c *Call) copyFromGuest(packed uint64) ([]byte, error) {
	addr, n := uint32(packed>>32), uint32(packed)
	view, ok := c.mod.Memory().Read(addr, n)
	switch {
	case !ok:
		return nil, host.Errorf(host.InvalidResult, "%s returned %d bytes at address %d, but its memory ends at %d",
			c.ToolName(), n, addr, c.mod.Memory().Size())
	case int64(n) > int64(c.Limits.Output):
		return nil, host.Errorf(host.LimitExceeded, "%s returned %d bytes, the limit is %d; request less data, or raise "+
			"output_bytes in the plugin's limits", c.ToolName(), n, c.Limits.Output)
	}
	return bytes.Clone(view), nil
}

// InterpretResponse converts a response to a result or an error.
func (c *Call) InterpretResponse(data []byte) (*job.Result, error) {
	if !utf8.Valid(data) {
		return nil, host.Errorf(host.InvalidResult, "%s returned bytes that are not UTF-8", c.ToolName())
	}
	r, err := readResponse(data)
	switch {
	case errors.Is(err, host.LimitExceeded):
		return nil, err
	case err != nil:
		return nil, &host.Error{Code: host.InvalidResult, Cause: err, Message: c.ToolName() +
			" did not return a parley/1 response: " + world.Line(err.Error(), 300)}
	case r.OK == nil:
		return nil, host.Errorf(host.InvalidResult, "%s returned a response without \"ok\"; expected "+
			"{\"ok\":true,\"result\":..} or {\"ok\":false,..}", c.ToolName())
	case *r.OK && (r.Exit != nil || r.Invalid != nil):
		return nil, host.Errorf(host.InvalidResult, "%s returned \"ok\":true together with \"exit\" or \"invalid\"",
			c.ToolName())
	case *r.OK:
		if err := c.CheckContent(r.Content); err != nil {
			return nil, err
		}
		return &job.Result{
			Data: JSONOr(r.Result, "null"), Content: r.Content, Warnings: world.CleanWarnings(r.Warnings),
		}, nil
	case len(r.Invalid) > 0:
		return nil, c.paramsError(r)
	case r.Exit == nil:
		return nil, host.Errorf(host.InvalidResult, "%s returned \"ok\":false without \"exit\" or \"invalid\"", c.ToolName())
	}
	return nil, c.toolError(*r.Exit, r.Message, r.Details)
}

// maxContent bounds the blocks of one result.
const maxContent = 64

// CheckContent refuses content that no client could show.
func (j *Job) CheckContent(content []job.Content) error {
	if len(content) > maxContent {
		return host.Errorf(host.LimitExceeded, "%s returned %d blocks of content, the limit is %d",
			j.ToolName(), len(content), maxContent)
	}
	for i, block := range content {
		if err := block.Check(); err != nil {
			return host.Errorf(host.InvalidResult, "%s returned invalid content /content/%d: %s", j.ToolName(), i, err)
		}
	}
	return nil
}

// readResponse decodes a response. Only the result and its content may be large, because they are kept as raw JSON. The
// other parts are bounded before they are decoded: a million empty violations fit into a few megabytes of JSON but take
// gigabytes of memory.
func readResponse(data []byte) (callResponse, error) {
	var parts struct {
		callResponse
		// These hide the fields of the response. Neither have tags, so their names in JSON are the same.
		Warnings, Message, Invalid, Content json.RawMessage
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields() // a misspelt result would otherwise be null without a word
	err := dec.Decode(&parts)
	if rest := bytes.TrimSpace(data[dec.InputOffset():]); err == nil && len(rest) > 0 {
		err = fmt.Errorf("the JSON value is followed by %.60q", rest)
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		err = fmt.Errorf("%w; it begins with %.60q", err, data)
	}
	if err != nil {
		return callResponse{}, typed("", err)
	}
	r := parts.callResponse
	if err := readContent(parts.Content, &r.Content); err != nil {
		return r, typed("content", err)
	}
	for _, p := range []struct {
		name string
		raw  json.RawMessage
		into any
	}{{"warnings", parts.Warnings, &r.Warnings}, {"message", parts.Message, &r.Message}, {"details", parts.Details, nil},
		{"invalid", parts.Invalid, &r.Invalid}} {
		if len(p.raw) > world.MaxResponsePart {
			return r, host.Errorf(host.LimitExceeded, "the response has %d bytes of %s, the limit is %d", len(p.raw), p.name,
				world.MaxResponsePart)
		}
		if p.into != nil && len(p.raw) > 0 {
			if err := json.Unmarshal(p.raw, p.into); err != nil {
				return r, typed(p.name, err)
			}
		}
	}
	return r, nil
}

// typed says in words of the ABI which part of a response has the wrong type. "" stands for the whole.
func typed(part string, err error) error {
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("%s is not a field of a response; expected ok, result, content, warnings, exit, message, details "+
			"or invalid", field)
	}
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	field := strings.ToLower(wrong.Field[strings.LastIndex(wrong.Field, ".")+1:])
	return fmt.Errorf("%s has the type %s; sdk/abi.md has the form", cmp.Or(part, field, "it"), wrong.Value)
}

// paramsError returns the error that the host itself would return for these violations.
func (c *Call) paramsError(r callResponse) *host.Error {
	n := len(r.Invalid)
	e := host.Errorf(host.InvalidArgs, "Tool '%s' failed: %s", c.ToolName(), manifest.Plural(n, "violation"))
	for _, v := range r.Invalid[:min(n, world.MaxViolations)] {
		e.Details = append(e.Details, host.Detail{
			Parameter: world.Line(v.Pointer, 200), Keyword: "tool",
			Provided:   world.Line(v.Provided, 300),
			Expected:   world.Line(v.Expected, 300),
			Suggestion: step.TextSuggestion(world.Line(v.Suggestion, 300)),
		})
	}
	return e
}

// toolError returns the error for a tool that ended with an exit code of its own.
func (c *Call) toolError(exit int64, message string, details json.RawMessage) *host.Error {
	e := &host.Error{Code: host.ToolFailed, Tool: &host.ToolError{Exit: int(exit)}}
	message = world.Truncate(strings.TrimSpace(manifest.Clean(message)), world.MaxMessage)
	if len(details) > 0 && string(details) != "null" {
		if len(details) <= world.MaxDetails {
			e.Tool.Details = manifest.CleanJSON(details)
		} else {
			e.Tool.Details = json.RawMessage(fmt.Sprintf(`{"omitted_bytes":%d}`, len(details)))
		}
	}
	if declared := c.declaredExit(exit); declared != nil {
		e.Exit, e.Code, e.Tool.Name = declared.Code, host.Code(declared.Name), declared.Name
		message = cmp.Or(message, manifest.CleanLine(declared.Meaning))
		if advice := manifest.CleanLine(declared.Suggestion); advice != "" {
			message += "; " + advice
		}
	}
	if e.Exit == 0 {
		e.Trace = c.trace(nil)
		if advice := c.sandboxAdvice(message); advice != "" {
			message += " (" + advice + ")"
		}
	}
	e.Message = cmp.Or(message, fmt.Sprintf("%s failed with exit code %d and no message", c.ToolName(), exit))
	return e
}

var notInScripts = lazy.Pattern(`^ReferenceError: (fetch|XMLHttpRequest|require|process|Buffer) is not defined`)

// sandboxAdvice explains the words in which the libraries of guests report what the sandbox lacks.
func (c *Call) sandboxAdvice(message string) string {
	says := func(text string) bool { return strings.Contains(message, text) }
	switch {
	case slices.ContainsFunc([]string{"Bad file number", "Capabilities insufficient", "pre-opened file descriptor"}, says):
		return "a plugin has only the folders that its manifest requests under fs and the operator grants"
	case slices.ContainsFunc([]string{"not supported on this platform", "dial tcp"}, says):
		return "a plugin has no sockets, threads or processes; the host makes its HTTP requests (http_request)"
	case c.Manifest.Kind == manifest.KindScript && notInScripts().MatchString(message):
		return "a script has parley.http for fetch, context.settings for process.env, and imports that esbuild bundles for " +
			"require"
	}
	return ""
}

// declaredExit returns the manifest's entry for an exit code, or nil if the code must not be passed on. The manifest
// must declare it, and also the tool, if the tool lists exit codes of its own.
func (c *Call) declaredExit(exit int64) *manifest.ExitCode {
	if exit < 2 || exit > 79 {
		return nil
	}
	code := c.Manifest.ExitCode(int(exit))
	def := c.Request.Def
	if code != nil && def != nil && len(def.ExitCodes) > 0 && !slices.Contains(def.ExitCodes, code.Name) {
		return nil
	}
	return code
}

// parleyModuleFunctions returns the implementations of [parleyFunctions].
func parleyModuleFunctions() map[string]api.GoModuleFunc {
	functions := map[string]api.GoModuleFunc{
		"log": func(ctx context.Context, mod api.Module, stack []uint64) {
			c := callOf(ctx)
			c.log.Log(int(min(uint32(stack[0]), 3)), c.messageAt(mod, uint32(stack[1]), uint32(stack[2])))
		},
		"progress": func(ctx context.Context, mod api.Module, stack []uint64) {
			c := callOf(ctx)
			done, total := api.DecodeF64(stack[0]), api.DecodeF64(stack[1])
			text := c.log.Text(c.messageAt(mod, uint32(stack[2]), uint32(stack[3])))
			if isFinite(done) && isFinite(total) {
				c.Request.Progress(done, total, text)
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
func (c *Call) serveHostCall(function string, mod api.Module, addr, n uint32) uint64 {
	k := c.Control
	k.Checkpoint()
	if c.mod == nil {
		// The call comes from a start function: no instance exists yet whose parley_alloc could be called.
		c.mod = mod
		defer func() { c.mod = nil }()
	}
	if c.inAlloc {
		// The reply would need parley_alloc again, which would recurse.
		k.End(host.Errorf(host.Trapped, "%s called %s from within parley_alloc", c.ToolName(), function))
	}
	if err := k.CountHostCall(); err != nil {
		k.End(err)
	}
	request, ok := mod.Memory().Read(addr, n)
	if !ok {
		k.End(host.Errorf(host.InvalidResult, "%s called %s with %d bytes at %d, and its memory ends at %d", c.ToolName(),
			function, n, addr, mod.Memory().Size()))
	}
	limit := uint32(world.MaxHostRequest)
	if function == job.AskSecret {
		limit = world.MaxSecretRequest
	}
	if n > limit {
		k.ExceedLimit("%s called %s with %d bytes, the limit is %d", c.ToolName(), function, n, limit)
	}
	reply := c.askHost(function, bytes.Clone(request))
	k.Checkpoint()
	replyAddr, err := c.copyToGuest(reply)
	if err != nil {
		k.End(host.AsError(err))
	}
	return uint64(replyAddr)<<32 | uint64(uint32(len(reply)))
}

// messageAt returns the bytes of a message of the guest.
func (c *Call) messageAt(mod api.Module, addr, n uint32) []byte {
	c.Control.Checkpoint()
	view, ok := mod.Memory().Read(addr, n)
	if !ok {
		c.Control.End(host.Errorf(host.InvalidResult, "%s logged %d bytes at %d, and its memory ends at %d", c.ToolName(), n,
			addr, mod.Memory().Size()))
	}
	return view
}

// readContent decodes the content of a response. It stops at the first block above maxContent: a million empty blocks
// fit into a few megabytes of JSON but take far more memory.
func readContent(raw json.RawMessage, into *[]job.Content) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return errors.New("content is not an array")
	}
	for dec.More() && len(*into) <= maxContent {
		var block job.Content
		if err := dec.Decode(&block); err != nil {
			return err
		}
		*into = append(*into, block)
	}
	return nil
}

// guestFunctions are the functions of the host that a guest may import.
var guestFunctions = []string{job.AskTool, job.AskHTTP, job.AskSecret}

// hostReply is the reply of a function of the host: {"ok":true,"result":..,"warnings":[..]} or
// {"ok":false,"error":{..}}.
type hostReply[T any] struct {
	OK       bool              `json:"ok"`
	Result   T                 `json:"result,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	Error    *host.ErrorObject `json:"error,omitempty"`
}

// ServeGuest runs a function of the host for a guest, and returns the reply. A guest reaches it through the Serve of
// its [Job].
func ServeGuest(ctx context.Context, r *host.Request, function string, argument []byte) []byte {
	var result *job.Result
	err := error(host.Errorf(host.NotFound, "the host has no function %s", world.Truncate(function, world.MaxMessage)))
	if r.Ask != nil && (function == job.AskTools || slices.Contains(guestFunctions, function)) {
		result, err = r.Ask(ctx, function, argument)
	}
	if err != nil {
		return Marshal(hostReply[json.RawMessage]{Error: host.AsError(err).Object()})
	}
	return Marshal(hostReply[json.RawMessage]{OK: true, Result: JSONOr(result.Data, "null"), Warnings: result.Warnings})
}

// Marshal encodes a reply for a guest. If it cannot, it returns a reply that says so.
func Marshal(v any) []byte {
	data, err := manifest.Marshal(v)
	if err != nil {
		return []byte(`{"ok":false,"error":{"code":"internal","exit_code":110,"message":"the reply cannot be encoded as JSON"}}`)
	}
	return data
}
