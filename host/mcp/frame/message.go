// Package frame is the framing of MCP on both wires. It reads the messages of a client from lines ([Stdio]) or HTTP
// bodies ([Serve]), responds to what is not a message, and passes the rest to the SDK.
//
// The SDK reads ids as float64 and ends a connection at an invalid message. So it sees neither: each id, progress token
// and id of a cancelled request is replaced by a text that contains the bytes of the original, and what the SDK writes
// gets the original bytes back.
package frame

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

const (
	// maxBatch bounds the messages of a batch.
	maxBatch = 100
	// lastBatch is the last revision of the protocol that has batches.
	lastBatch = "2025-03-26"
	// firstStateless is the first revision without sessions and initialize.
	firstStateless = "2026-07-28"
	// cancelled is the method of the notification that cancels a request.
	cancelled = "notifications/cancelled"
	// maxErrorMessage bounds the message of an error, in bytes. The SDK quotes whole parameters in some.
	maxErrorMessage = 600
	// maxKeys bounds the keys of an object that are compared with each other.
	maxKeys = 1000
)

// Codes that neither JSON-RPC nor the SDK names.
const (
	CodeCancelled        = -32000
	CodeResourceNotFound = -32002 // in revisions before 2026-07-28; later ones have -32602
)

// Codes returns the codes of all errors that a server sends.
func Codes() []int64 {
	return []int64{
		jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams,
		jsonrpc.CodeInternalError, CodeCancelled, CodeResourceNotFound, -32004, // the server is closing
		sdk.CodeHeaderMismatch, sdk.CodeMissingRequiredClientCapabilities, sdk.CodeUnsupportedProtocolVersion,
		sdk.CodeURLElicitationRequired,
	}
}

// entry is a message of a client, or the error for input that is not a message.
type entry struct {
	id             json.RawMessage // as written; nil if there is none or it is invalid
	method         string          // "" for a response
	version        string          // the revision that the metadata of a request names, or ""
	params, result json.RawMessage
	fault          *jsonrpc.Error // error of a response
	err            *jsonrpc.Error // not nil: this is not a message
}

func invalid(id json.RawMessage, format string, args ...any) entry {
	return entry{id: id, err: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}}
}

// isCall reports whether the entry is a request that gets a response.
func (e *entry) isCall() bool { return e.err == nil && e.method != "" && e.id != nil }

// parse reads one frame: a message, or a batch of messages if the revision has batches.
func parse(data []byte, revision func() string) (entries []entry, isBatch bool) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	if !utf8.Valid(data) || !json.Valid(data) {
		return []entry{notJSON(data)}, false
	}
	if data[0] != '[' {
		return []entry{parseMessage(data)}, false
	}
	if v := revision(); v == "" || v > lastBatch {
		e := invalid(nil, "the protocol has batches only up to revision %s; send one message at a time", lastBatch)
		return []entry{e}, false
	}
	items := jsontext.Scan(data)
	items.Items(func() {
		if item := items.Skip(); len(entries) <= maxBatch {
			entries = append(entries, parseMessage(item))
		}
	})
	if len(entries) == 0 || len(entries) > maxBatch {
		return []entry{invalid(nil, "a batch has 1 to %d messages", maxBatch)}, false
	}
	for i := range entries {
		if entries[i].method == "initialize" {
			entries[i] = invalid(entries[i].id, "initialize cannot be part of a batch")
		}
	}
	return entries, true
}

// notJSON returns the error for a text that is not JSON, or nested more deeply than encoding/json reads.
func notJSON(data []byte) entry {
	var s skimmer
	s.write(data)
	if s.tooDeep {
		return invalid(s.found(), "the message is nested more than %d levels deep", maxDepth)
	}
	e := invalid(nil, "not JSON: expected one JSON value in UTF-8")
	e.err.Code = jsonrpc.CodeParseError
	return e
}

// parseMessage reads a message from valid JSON.
func parseMessage(data []byte) entry {
	values, repeated, isObject := membersOf(data, "jsonrpc", "id", "method", "params", "result", "error")
	if !isObject {
		return invalid(nil, "a message is an object, not %s", jsontext.Kind(data))
	}
	version, given, method, fault := values[0], values[1], values[2], values[5]
	e := entry{id: given, params: values[3], result: values[4]}
	if !isID(given) || repeated == "id" {
		e.id = nil
	}
	meta := member(e.params, "_meta")
	for _, part := range []json.RawMessage{e.params, meta} {
		if repeated == "" {
			_, repeated, _ = membersOf(part)
		}
	}
	v, _ := jsontext.Unquote(version)
	isText := false
	e.method, isText = jsontext.Unquote(method)
	switch {
	case repeated != "":
		return invalid(e.id, "the key %s occurs twice", jsontext.QuoteShort(repeated))
	case v != "2.0":
		return invalid(e.id, `"jsonrpc" must be "2.0"`)
	case method != nil && (!isText || e.method == ""):
		return invalid(e.id, `"method" must be the name of a method`)
	case method != nil && given != nil && e.id == nil:
		return invalid(nil, `"id" must be a string or a number, not %s`, jsontext.Kind(given))
	case method != nil:
		return e.checkParams(meta)
	}
	return e.checkResponse(given, fault)
}

func (e entry) checkParams(meta json.RawMessage) entry {
	switch kind := jsontext.Kind(e.params); kind {
	case "object", "":
		e.version, _ = jsontext.Unquote(member(meta, sdk.MetaKeyProtocolVersion))
		return e
	case "null":
		e.params = nil
		return e
	default:
		return invalid(e.id, `"params" must be an object, not %s`, kind)
	}
}

// checkResponse checks a message without a method. The id of a response is null if the client could not read the id of
// the request.
func (e entry) checkResponse(given, fault json.RawMessage) entry {
	switch {
	case e.result == nil && fault == nil:
		return invalid(e.id, `"method" is missing`)
	case e.result != nil && fault != nil:
		return invalid(e.id, `a response has "result" or "error", not both`)
	case e.id == nil && (given == nil || jsontext.Kind(given) != "null"):
		return invalid(nil, `"id" must be the id of a request`)
	case fault != nil:
		if json.Unmarshal(fault, &e.fault) != nil || e.fault == nil {
			return invalid(e.id, `"error" must be an object with "code" and "message"`)
		}
	}
	return e
}

func isID(value []byte) bool {
	kind := jsontext.Kind(value)
	return kind == "string" || kind == "number"
}

// membersOf returns the values of the names in an object, nil for those that it does not have, and the first key that
// the object has twice, or "". It reports false for what is not an object.
func membersOf(object []byte, names ...string) (values []json.RawMessage, repeated string, isObject bool) {
	values, seen := make([]json.RawMessage, len(names)), map[string]bool{}
	members := jsontext.Scan(object)
	isObject = members.Members(func(key []byte) {
		value := members.Skip()
		name, _ := jsontext.Unquote(key)
		if seen[name] && repeated == "" {
			repeated = name
		}
		if i := slices.Index(names, name); i >= 0 && values[i] == nil {
			values[i] = value
		}
		if len(seen) < maxKeys {
			seen[name] = true
		}
	})
	return values, repeated, isObject
}

// member returns the value of a key of an object, or nil.
func member(object []byte, key string) json.RawMessage {
	values, _, _ := membersOf(object, key)
	return values[0]
}

// message returns the message for the SDK.
func (e *entry) message() jsonrpc.Message {
	if e.method == "" {
		m := &jsonrpc.Response{ID: ownID(e.id), Result: e.result}
		if e.fault != nil { // an error that holds a nil *Error is not nil
			m.Error = e.fault
		}
		return m
	}
	m := &jsonrpc.Request{Method: e.method, Params: e.params}
	if e.id != nil {
		m.ID, _ = jsonrpc.MakeID(innerID(e.id))
	}
	if id := member(e.params, "requestId"); e.method == cancelled && isID(id) {
		m.Params = jsontext.Set(m.Params, nil, "requestId", jsontext.AppendString(nil, innerID(id)))
	}
	if bytes.Contains(e.params, []byte("progressToken")) {
		if token := member(member(e.params, "_meta"), "progressToken"); isID(token) {
			m.Params = jsontext.Set(m.Params, []string{"_meta"}, "progressToken", jsontext.AppendString(nil, innerID(token)))
		}
	}
	return m
}

// ownID returns the id of one of our requests, which are integers, however it is spelled. Any other value is not one of
// our ids.
func ownID(raw json.RawMessage) jsonrpc.ID {
	whole, isWhole := strings.CutSuffix(valueOf(string(raw)), "/1")
	n, err := strconv.ParseInt(whole, 10, 64)
	if !isWhole || err != nil {
		id, _ := jsonrpc.MakeID(innerID(raw))
		return id
	}
	id, _ := jsonrpc.MakeID(float64(n))
	return id
}

// valueOf returns the value of an id, which all its spellings share: "e" and "\u0065", and 100, 1e2 and 100.0. A number
// that is too long, and a text with a lone surrogate, equal only what is spelled the same.
func valueOf(id string) string {
	if text, isText := jsontext.Unquote([]byte(id)); isText && !strings.ContainsRune(text, utf8.RuneError) {
		return `"` + text
	}
	if jsontext.ValidNumber(id) {
		if n, ok := new(big.Rat).SetString(id); ok {
			return n.String()
		}
	}
	return id
}

// spell writes the id of the request that a notification cancels as one of the open requests has it: a client may spell
// it differently, and the SDK compares spellings. A request with the same spelling is preferred.
func (e *entry) spell(open iter.Seq[string]) {
	id := member(e.params, "requestId")
	if !isID(id) {
		return
	}
	spelled, value := "", valueOf(string(id))
	for other := range open {
		if other == string(id) {
			return
		}
		if valueOf(other) == value {
			spelled = other
		}
	}
	if spelled != "" {
		e.params = jsontext.Set(e.params, nil, "requestId", []byte(spelled))
	}
}

// mark begins each id that stands in for a client's. It is random, so that no text of a client or tool contains it.
var mark = sync.OnceValue(rand.Text)

func innerID(raw []byte) string { return mark() + base64.RawURLEncoding.EncodeToString(raw) }

// outerID returns the id, as JSON, that the SDK's id stands for.
func outerID(id jsonrpc.ID) json.RawMessage {
	raw, err := json.Marshal(id.Raw())
	if err != nil {
		return json.RawMessage("null")
	}
	return restore(raw)
}

// restore replaces the ids in JSON that the SDK wrote by those of the client.
func restore(data []byte) []byte {
	quoted := []byte(`"` + mark())
	at := bytes.Index(data, quoted)
	if at < 0 {
		return data
	}
	out := make([]byte, 0, len(data))
	for ; at >= 0; at = bytes.Index(data, quoted) {
		out, data = append(out, data[:at]...), data[at+len(quoted):]
		end := bytes.IndexByte(data, '"')
		raw, err := base64.RawURLEncoding.DecodeString(string(data[:max(end, 0)]))
		if err != nil || end < 0 {
			out = append(out, quoted...)
			continue
		}
		out, data = append(out, raw...), data[end+1:]
	}
	return append(out, data...)
}

// outerError returns an error of the SDK or of a handler with one of [Codes].
func outerError(err error) *jsonrpc.Error {
	out := &jsonrpc.Error{Message: err.Error()}
	if inner, ok := errors.AsType[*jsonrpc.Error](err); ok {
		out.Code, out.Data = inner.Code, inner.Data
	}
	switch {
	case strings.Contains(out.Message, "invalid during session initialization"):
		out.Code, out.Message = jsonrpc.CodeInvalidRequest, "send initialize first: "+out.Message
	case strings.Contains(out.Message, `duplicate "initialize"`):
		out.Code, out.Message = jsonrpc.CodeInvalidRequest, "the session is already initialized: send initialize once, first"
	case unreadable().MatchString(out.Message):
		out.Code, out.Message = jsonrpc.CodeInvalidParams, unreadable().ReplaceAllString(out.Message, "")
	case strings.Contains(out.Message, "invalid ID type"):
		out.Code, out.Message = jsonrpc.CodeInvalidParams, "the id of a request must be a string or a number"
	case strings.Contains(out.Message, "JSON RPC not handled"):
		out.Code = jsonrpc.CodeMethodNotFound
	case out.Code == 0 && (errors.Is(err, context.Canceled) || strings.Contains(out.Message, context.Canceled.Error())):
		out.Code = CodeCancelled
	case !slices.Contains(Codes(), out.Code):
		out.Code = jsonrpc.CodeInternalError
	}
	if at := mistyped().FindStringSubmatchIndex(out.Message); at != nil {
		part := func(i int) string { return out.Message[at[2*i]:at[2*i+1]] }
		given := cmp.Or(jsontext.Kind([]byte(part(2))), part(2))
		out.Message = fmt.Sprintf("%s%q must be a JSON %s, not %s", part(1), part(3), kindOfType(part(4)), given)
	}
	marked := regexp.MustCompile(mark() + `[A-Za-z0-9_-]*`)
	out.Message = marked.ReplaceAllStringFunc(out.Message, func(id string) string {
		raw, _ := base64.RawURLEncoding.DecodeString(id[len(mark()):])
		return string(raw)
	})
	out.Message = manifest.Clip(manifest.CleanLine(out.Message), maxErrorMessage)
	return out
}

// unreadable matches what the SDK writes before the reason why it cannot read parameters: the parameters and their
// type.
var unreadable = lazy.Pattern(`(?s)unmarshaling ".*" into an? \*?mcp\.\w+: `)

// mistyped matches the reason of encoding/json: the given value, its path after types of Go, and the expected type.
var mistyped = lazy.Pattern(`(?s)^(.*)json: cannot unmarshal "?\\?(.*)"? into Go ` +
	`struct field .*(?:[A-Z]\w*|\]\w*)\.(.*) of type (.*)$`)

// kindOfType names the kind of JSON value that a type of Go reads.
func kindOfType(name string) string {
	switch {
	case name == "string":
		return name
	case name == "bool":
		return "boolean"
	case strings.HasPrefix(name, "[]"):
		return "array"
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "float"):
		return "number"
	}
	return "object"
}

// IsStateless reports whether a request is one of a revision without sessions. A session may have another revision than
// its client asked for.
func IsStateless(req sdk.Request) bool {
	v, _ := req.GetParams().GetMeta()[sdk.MetaKeyProtocolVersion].(string)
	return !HasSessions(v)
}

// TraceContext returns the trace that a request belongs to: the values of traceparent and tracestate in its _meta, or
// else in its HTTP headers. carrier is the traceparent of the headers. All are "" without one. The request must have
// parameters.
func TraceContext(r sdk.Request) (parent, state, carrier string) {
	if extra := r.GetExtra(); extra != nil {
		carrier, state = extra.Header.Get("Traceparent"), extra.Header.Get("Tracestate")
	}
	meta := r.GetParams().GetMeta()
	if parent, _ = meta["traceparent"].(string); parent == "" {
		return carrier, state, carrier
	}
	state, _ = meta["tracestate"].(string)
	return parent, state, carrier
}

// Revision returns the revision that a request uses.
func Revision(r sdk.Request) (revision string) {
	if of, ok := r.(interface{ ProtocolVersion() string }); ok {
		revision = of.ProtocolVersion()
	}
	if IsStateless(r) {
		return revision
	}
	return Negotiated(revision)
}

// ErrorCode returns the code of the error that ends a request if its operation fails, or 0 for a call, whose failure is
// a result.
func ErrorCode(r sdk.Request) int64 {
	switch r.(type) {
	case *sdk.CallToolRequest:
		return 0
	case *sdk.ReadResourceRequest:
		if !IsStateless(r) {
			return CodeResourceNotFound
		}
	}
	return jsonrpc.CodeInvalidParams
}

// HasSessions reports whether a revision has sessions; "" counts as one that has.
func HasSessions(revision string) bool { return revision < firstStateless }

// ErrorOfRevision returns an error with the code of the client's revision: the code of an unknown resource has
// changed.
func ErrorOfRevision(err error, req sdk.Request) error {
	switch req.(type) {
	case *sdk.ReadResourceRequest, *sdk.SubscribeRequest:
	default:
		return err
	}
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code != jsonrpc.CodeInvalidParams || IsStateless(req) {
		return err
	}
	old := *e
	old.Code = CodeResourceNotFound
	return &old
}

// errorResponse returns the response to a request that failed, or to what is not a request.
func errorResponse(id json.RawMessage, err *jsonrpc.Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	raw, _ := manifest.Marshal(err)
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"error":`), raw, []byte("}"))
}

// join returns responses as the response to a batch.
func join(responses [][]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(responses, []byte(",")), []byte("]"))
}

// negotiated returns the revision that a session has after an initialize request with these parameters.
func negotiated(params json.RawMessage) string {
	asked, _ := jsontext.Unquote(member(params, "protocolVersion"))
	return Negotiated(asked)
}

// Negotiated returns the revision of a session whose client asked for one.
func Negotiated(asked string) string {
	known := slices.DeleteFunc(sdk.SupportedProtocolVersions(), func(v string) bool { return v >= firstStateless })
	if slices.Contains(known, asked) {
		return asked
	}
	return slices.Max(known)
}
