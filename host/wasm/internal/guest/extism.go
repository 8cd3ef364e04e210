package guest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/internal/world"
)

// extismLogs maps functions that log to the levels of [host.Request].Log.
var extismLogs = map[string]int{"log_trace": 0, "log_debug": 0, "log_info": 1, "log_warn": 2, "log_error": 3}

// Bounds of the memory that a guest has outside its own, in one call.
const (
	MaxExtismMemory = 64 << 20
	maxExtismBlocks = 100_000
)

// extismBlock is a block that the guest has allocated.
type extismBlock struct {
	At   uint64
	Data []byte
}

// extismKernel is the state that the host keeps for a call of an Extism plugin. Addresses are not reused, so a stale
// address belongs to no block.
type extismKernel struct {
	c      *Call
	Blocks []extismBlock // by address
	next   uint64
	used   int

	input, output []byte
	failure       string
	vars          map[string][]byte
	status        int
	headers       []byte
}

// NewExtismKernel returns the state of a call that Extism's functions serve, with the input of the call.
func NewExtismKernel(c *Call, input []byte) *extismKernel {
	return &extismKernel{c: c, next: 16, input: input, vars: map[string][]byte{}}
}

// end ends the guest because of something that it did.
func (k *extismKernel) end(code host.Code, format string, args ...any) {
	k.c.Control.End(host.Errorf(code, k.c.ToolName()+" "+format, args...))
}

func (k *extismKernel) alloc(data []byte) uint64 {
	if len(k.Blocks) >= maxExtismBlocks || k.used+len(data) > MaxExtismMemory {
		k.end(host.LimitExceeded, "holds more than %d MiB or %d blocks of the host's memory", MaxExtismMemory>>20,
			maxExtismBlocks)
	}
	b := extismBlock{k.next, data}
	k.Blocks, k.used = append(k.Blocks, b), k.used+len(data)
	k.next += uint64(len(data)+16) &^ 7
	return b.At
}

// index returns the index of the block that contains an address, or of the first block after it.
func (k *extismKernel) index(at uint64) int {
	if last := len(k.Blocks) - 1; last >= 0 && at >= k.Blocks[last].At {
		return last // the usual case
	}
	i, found := slices.BinarySearchFunc(k.Blocks, at, func(b extismBlock, at uint64) int { return cmp.Compare(b.At, at) })
	if !found && i > 0 {
		i--
	}
	return i
}

// beginning returns the block that begins at an address; ok is false if none does.
func (k *extismKernel) beginning(at uint64) (i int, ok bool) {
	i = k.index(at)
	return i, i < len(k.Blocks) && k.Blocks[i].At == at
}

// part returns n bytes at an address. They must belong to one block.
func (k *extismKernel) part(at, n uint64) []byte {
	if i := k.index(at); i < len(k.Blocks) {
		b := k.Blocks[i]
		if from := at - b.At; at >= b.At && from <= uint64(len(b.Data)) && n <= uint64(len(b.Data))-from {
			return b.Data[from : from+n]
		}
	}
	k.end(host.Trapped, "used %d bytes at %d of the host's memory, where it has no block of this size", n, at)
	return nil
}

// block returns the block that begins at an address, or nil for 0.
func (k *extismKernel) block(at uint64) []byte {
	if at == 0 {
		return nil
	}
	i, ok := k.beginning(at)
	if !ok {
		k.end(host.Trapped, "used the address %d of the host's memory, which is not the start of a block", at)
	}
	return k.Blocks[i].Data
}

func (k *extismKernel) free(at uint64) {
	if i, ok := k.beginning(at); ok {
		k.used -= len(k.Blocks[i].Data)
		k.Blocks = slices.Delete(k.Blocks, i, i+1)
	}
}

func (k *extismKernel) length(at uint64) uint64 {
	if i, ok := k.beginning(at); ok {
		return uint64(len(k.Blocks[i].Data))
	}
	return 0
}

// inputPart returns n bytes of the input.
func (k *extismKernel) inputPart(at, n uint64) []byte {
	if at > uint64(len(k.input)) || n > uint64(len(k.input))-at {
		k.end(host.Trapped, "read %d bytes at %d of its input, which has %d", n, at, len(k.input))
	}
	return k.input[at : at+n]
}

// found returns the address of a copy of a value, or 0 if ok is false.
func (k *extismKernel) found(value []byte, ok bool) uint64 {
	if !ok {
		return 0
	}
	return k.alloc(bytes.Clone(value))
}

// setting returns a setting of the plugin: a text as it is, anything else as JSON.
func (k *extismKernel) setting(name string) ([]byte, bool) {
	var settings map[string]json.RawMessage
	_ = json.Unmarshal(k.c.Request.Settings, &settings)
	value, ok := settings[name]
	var text string
	if ok && json.Unmarshal(value, &text) == nil {
		return []byte(text), true
	}
	return value, ok
}

func (k *extismKernel) setVar(name string, at uint64) {
	k.used -= len(k.vars[name])
	delete(k.vars, name)
	if at == 0 {
		return
	}
	value := bytes.Clone(k.block(at))
	if k.used += len(name) + len(value); k.used > MaxExtismMemory || len(k.vars) >= maxExtismBlocks {
		k.end(host.LimitExceeded, "holds more than %d MiB in variables", MaxExtismMemory>>20)
	}
	k.vars[name] = value
}

// request sends an HTTP request, {"url","method","headers":{NAME:VALUE}}, and returns the address of the body of the
// response. The host checks it like the request of any guest. A request that is denied or fails ends the guest, as in
// Extism, whose kits know no other error.
func (k *extismKernel) request(meta, body []byte) uint64 {
	var asked struct {
		URL     string            `json:"url"`
		Method  string            `json:"method"`
		Headers map[string]string `json:"headers"`
	}
	if err := json.Unmarshal(meta, &asked); err != nil {
		k.end(host.InvalidResult, "made an HTTP request that is not JSON: %v", err)
	}
	type header [2]string
	request := struct {
		Method  string   `json:"method"`
		URL     string   `json:"url"`
		Headers []header `json:"headers"`
		Body    []byte   `json:"body_base64,omitempty"`
	}{cmp.Or(asked.Method, "GET"), asked.URL, []header{}, body}
	for _, name := range slices.Sorted(maps.Keys(asked.Headers)) {
		request.Headers = append(request.Headers, header{name, asked.Headers[name]})
	}
	if err := k.c.Control.CountHostCall(); err != nil {
		k.c.Control.End(err)
	}
	reply := k.c.askHost(job.AskHTTP, Marshal(request))
	k.c.Control.Checkpoint()
	var r hostReply[struct {
		Status  int
		Headers []header
		Body    string
		Bytes   []byte `json:"body_base64"`
	}]
	if err := json.Unmarshal(reply, &r); err != nil {
		k.end(host.Internal, "got a reply that is not JSON: %v", err)
	}
	if !r.OK {
		k.end(r.Error.Code, "could not send an HTTP request: %s", r.Error.Message)
	}
	headers := map[string]string{}
	for _, h := range r.Result.Headers {
		name := strings.ToLower(h[0])
		headers[name] = strings.TrimPrefix(headers[name]+", "+h[1], ", ")
	}
	k.status, k.headers = r.Result.Status, Marshal(headers)
	if r.Result.Bytes != nil {
		return k.alloc(r.Result.Bytes)
	}
	return k.alloc([]byte(r.Result.Body))
}

// Serve runs a function of [extismModule]. The stack holds its arguments, and receives its result.
func (k *extismKernel) Serve(name string, stack []uint64) {
	k.c.Control.Checkpoint()
	switch name {
	case "alloc":
		if stack[0] > MaxExtismMemory {
			k.end(host.LimitExceeded, "asked for %d bytes of the host's memory, the limit is %d", stack[0], MaxExtismMemory)
		}
		stack[0] = k.alloc(make([]byte, stack[0]))
	case "free":
		k.free(stack[0])
	case "length", "length_unsafe":
		stack[0] = k.length(stack[0])
	case "load_u8":
		stack[0] = uint64(k.part(stack[0], 1)[0])
	case "load_u64":
		stack[0] = binary.LittleEndian.Uint64(k.part(stack[0], 8))
	case "store_u8":
		k.part(stack[0], 1)[0] = byte(stack[1])
	case "store_u64":
		binary.LittleEndian.PutUint64(k.part(stack[0], 8), stack[1])
	case "input_length":
		stack[0] = uint64(len(k.input))
	case "input_load_u8":
		stack[0] = uint64(k.inputPart(stack[0], 1)[0])
	case "input_load_u64":
		stack[0] = binary.LittleEndian.Uint64(k.inputPart(stack[0], 8))
	case "output_set":
		if stack[1] > uint64(k.c.Limits.Output) {
			k.c.Control.ExceedLimit("%s returned %d bytes, the limit is %d; request less data, or raise output_bytes "+
				"in the plugin's limits", k.c.ToolName(), stack[1], k.c.Limits.Output)
		}
		k.output = nil
		if stack[1] > 0 {
			k.output = bytes.Clone(k.part(stack[0], stack[1]))
		}
	case "error_set":
		k.failure = string(k.block(stack[0]))
	case "config_get":
		stack[0] = k.found(k.setting(string(k.block(stack[0]))))
	case "var_get":
		value, ok := k.vars[string(k.block(stack[0]))]
		stack[0] = k.found(value, ok)
	case "var_set":
		k.setVar(string(k.block(stack[0])), stack[1])
	case "http_request":
		stack[0] = k.request(k.block(stack[0]), k.block(stack[1]))
	case "http_status_code":
		stack[0] = uint64(k.status)
	case "http_headers":
		stack[0] = k.found(k.headers, k.headers != nil)
	case "get_log_level":
		stack[0] = 0 // every level is logged
	default: // log_
		k.c.log.Log(extismLogs[name], k.block(stack[0]))
	}
}

// extismModuleFunctions returns the implementations of [extismFunctions].
func extismModuleFunctions() map[string]api.GoModuleFunc {
	functions := map[string]api.GoModuleFunc{}
	for name := range module.ExtismFunctions {
		functions[name] = func(ctx context.Context, _ api.Module, stack []uint64) { callOf(ctx).kernel.Serve(name, stack) }
	}
	return functions
}

// userFunctions returns functions to replace those that a module imports from the program that embeds Extism. Each of
// them ends the guest that calls it.
func userFunctions(m *instrument.Module) (map[string]instrument.FuncType, map[string]api.GoModuleFunc) {
	types, functions := map[string]instrument.FuncType{}, map[string]api.GoModuleFunc{}
	for _, i := range m.Imports {
		if i.Module == module.ExtismUser {
			types[i.Name] = i.Type
			functions[i.Name] = func(ctx context.Context, _ api.Module, _ []uint64) {
				callOf(ctx).kernel.end(host.Denied, "called %s, a function of another program than Parley",
					world.Line(i.Name, 100))
			}
		}
	}
	return types, functions
}

// runExtism runs a call of kind extism, in a new instance. A call without a tool lists the tools: its data is the list
// as the plugin writes it.
func (c *Call) runExtism() (*job.Result, error) {
	form, _ := module.ExtismForm(c.plugin.Module)
	export, input := module.ExtismExports[form].List, map[string]any{}
	if c.Request.Tool != "" {
		export = module.ExtismExports[form].Call
		call := map[string]any{"name": c.Request.Tool, "arguments": JSONOr(c.Request.Params, "{}")}
		input["params"] = call
		if form == 1 {
			input = map[string]any{"request": call}
		}
	}
	if form == 1 {
		input["context"] = map[string]any{"id": c.Request.CallID, "_meta": struct{}{}}
	}
	c.kernel = NewExtismKernel(c, Marshal(input))
	c.Capture(&world.Capture{Control: c.Control, Name: "stdout"})
	start := "_initialize"
	if c.plugin.Module.Export(start) == nil {
		start = "__wasm_call_ctors"
	}
	err := c.instantiate(wazero.NewModuleConfig().WithArgs(c.Manifest.Name), start)
	if haskell := c.plugin.Module.Export("hs_init"); err == nil && haskell != nil && haskell.Type == "i32,i32->" {
		_, err = c.mod.ExportedFunction("hs_init").Call(c.Control.Ctx, 0, 0)
	}
	var failed []uint64
	if err == nil {
		failed, err = c.mod.ExportedFunction(export).Call(c.Control.Ctx)
	}
	switch {
	case err != nil:
		return nil, c.guestError(err)
	case len(failed) > 0 && uint32(failed[0]) != 0 || c.kernel.failure != "":
		return nil, c.toolError(1, c.kernel.failure, nil)
	case !json.Valid(c.kernel.output):
		return nil, host.Errorf(host.InvalidResult, "%s did not return JSON", c.ToolName())
	case c.Request.Tool == "":
		return &job.Result{Data: c.kernel.output}, nil
	}
	return c.toolResult(c.kernel.output)
}

// toolResult converts a result of MCP's tools/call to a result of the host: its data is the structured content, or
// else the text as one string. Everything else becomes content.
func (c *Call) toolResult(data []byte) (*job.Result, error) {
	var r struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, host.Errorf(host.InvalidResult, "%s did not return an MCP result: %s", c.ToolName(),
			world.Line(err.Error(), 200))
	}
	if len(r.Content) > maxContent {
		return nil, c.CheckContent(make([]job.Content, len(r.Content)))
	}
	var texts []string
	var content []job.Content
	for _, raw := range r.Content {
		block, err := contentOfMCP(raw)
		switch {
		case err != nil:
			return nil, host.Errorf(host.InvalidResult, "%s returned invalid MCP content: %s", c.ToolName(),
				world.Line(err.Error(), 200))
		case block.Type == job.ContentText:
			texts = append(texts, block.Text)
		default:
			content = append(content, block)
		}
	}
	text := strings.Join(texts, "\n")
	if r.IsError {
		return nil, c.toolError(1, text, nil)
	}
	if err := c.CheckContent(content); err != nil {
		return nil, err
	}
	return &job.Result{Data: JSONOr(r.Structured, string(Marshal(text))), Content: content}, nil
}

func contentOfMCP(raw json.RawMessage) (job.Content, error) {
	var b struct {
		Type, Text, Data, URI, Name string
		MIME                        string `json:"mimeType"`
		Resource                    struct {
			URI, Text, Blob string
			MIME            string `json:"mimeType"`
		}
	}
	err := json.Unmarshal(raw, &b)
	switch b.Type {
	case "resource":
		return job.Content{Type: job.ContentResource, Text: b.Resource.Text, Data: b.Resource.Blob, MIME: b.Resource.MIME,
			URI: b.Resource.URI}, err
	case "resource_link":
		return job.Content{Type: job.ContentLink, Text: b.Name, MIME: b.MIME, URI: b.URI}, err
	}
	return job.Content{Type: job.ContentType(b.Type), Text: b.Text, Data: b.Data, MIME: b.MIME}, err
}
