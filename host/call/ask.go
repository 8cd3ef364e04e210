package call

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Functions serves what a provider asks of the host; see [host.Request]. A function that is nil is denied, or not
// found if guests do not know it.
type Functions struct {
	// CallTool serves [host.AskTool].
	CallTool func(ctx context.Context, tool string, params json.RawMessage, o host.Options) (*host.Result, error)
	// HTTP serves [host.AskHTTP].
	HTTP func(ctx context.Context, r *host.HTTPRequest) (*host.HTTPResponse, error)
	// ReadSecret serves [host.AskSecret].
	ReadSecret func(ctx context.Context, name string) (string, error)
	// MayCall serves [host.AskMayCall].
	MayCall func(ctx context.Context, tool string) bool
	// BoundSecret serves [host.AskBoundSecret].
	BoundSecret func(ctx context.Context, name string) (host.BoundSecret, error)
	// Script serves [host.AskScript].
	Script func(name string, withText bool) (host.Script, error)
	// CopySharedFile serves [host.AskSharedFile].
	CopySharedFile func(text, folder string) (path string, err error)
	// Last serves [host.AskLast].
	Last func(record json.RawMessage) bool
	// Denied, if not nil, is called for each right that was denied.
	Denied func(right, why string)
}

// maxNamed is the maximum length of a name from a guest in a message, in bytes.
const maxNamed = 200

// Ask serves one function; it is what [host.Request].Ask requires.
func (f *Functions) Ask(ctx context.Context, function string, argument json.RawMessage) (*host.Result, error) {
	switch {
	case function == host.AskTool:
		return serve(function, `{"tool":"cdp.Page.navigate","params":{},"options":{}}`, argument,
			func(in host.ToolArgument) (any, error) { return f.callTool(ctx, in) })
	case function == host.AskTools:
		type calls struct {
			Pending []pendingCall `json:"pending"`
		}
		return serve(function, `{"pending":[{"id":1,"tool":"cdp.Page.navigate","params":{}}]}`, argument,
			func(in calls) (any, error) { return f.callTools(ctx, in.Pending) })
	case function == host.AskHTTP:
		return f.httpRequest(ctx, argument)
	case function == host.AskSecret:
		return serve(function, `{"name":"SIGNING_KEY"}`, argument, func(in host.NameArgument) (any, error) {
			return f.readSecret(ctx, in.Name)
		})
	case function == host.AskMayCall && f.MayCall != nil:
		return serve(function, `{"tool":"Page.enable"}`, argument, func(in host.ToolArgument) (any, error) {
			return f.MayCall(ctx, in.Tool), nil
		})
	case function == host.AskBoundSecret && f.BoundSecret != nil:
		return serve(function, `{"name":"PASSWORD"}`, argument, func(in host.NameArgument) (any, error) {
			return f.BoundSecret(ctx, in.Name)
		})
	case function == host.AskScript && f.Script != nil:
		return serve(function, `{"name":"page","text":false}`, argument, func(in host.ScriptArgument) (any, error) {
			return f.Script(in.Name, in.Text)
		})
	case function == host.AskSharedFile && f.CopySharedFile != nil:
		return serve(function, `{"text":"handed:..","folder":"/run/.."}`, argument,
			func(in host.SharedFileArgument) (any, error) { return f.CopySharedFile(in.Text, in.Folder) })
	case function == host.AskLast && f.Last != nil:
		return resultOf(f.Last(argument)), nil
	}
	return nil, host.Errorf(host.NotFound, "the host has no function %s", host.Printable(function))
}

// serve decodes the argument of a function and encodes what run makes of it, unless that is a result already.
func serve[T any](
	function, expected string, argument json.RawMessage, run func(T) (any, error),
) (*host.Result, error) {
	var in T
	if err := json.Unmarshal(argument, &in); err != nil {
		return nil, badArgument(function, expected, err)
	}
	value, err := run(in)
	if err != nil {
		return nil, err
	}
	if result, ok := value.(*host.Result); ok {
		return result, nil
	}
	return resultOf(value), nil
}

func resultOf(v any) *host.Result {
	data, _ := manifest.Marshal(v)
	return &host.Result{Data: data}
}

func badArgument(function, expected string, err error) *host.Error {
	return &host.Error{Code: host.InvalidArgs, Cause: err, Message: fmt.Sprintf("%s: invalid request: %s; expected %s",
		function, manifest.Clip(manifest.CleanLine(err.Error()), maxNamed), expected)}
}

// deny records a denial, and returns the error for the guest.
func (f *Functions) deny(right, why string) *host.Error {
	if f.Denied != nil {
		f.Denied(right, why)
	}
	return host.NotGranted(right, why)
}

// callTool runs a tool of another plugin through the host, which consults the policy.
func (f *Functions) callTool(ctx context.Context, in host.ToolArgument) (*host.Result, error) {
	options, err := option.Parse(in.Options)
	if err != nil {
		return nil, err
	}
	name := strings.ReplaceAll(in.Tool, "__", ".")
	right := "tool:" + manifest.Clip(manifest.CleanLine(name), maxNamed)
	if f.CallTool == nil {
		return nil, f.deny(right, "tools cannot be called here")
	}
	if len(in.Params) == 0 {
		in.Params = json.RawMessage("{}")
	}
	result, err := f.CallTool(ctx, name, in.Params, options)
	if e, ok := errors.AsType[*host.Error](err); ok && e.Code == host.Denied {
		// The denied right may also be another one that the tool needs for these parameters.
		if refused := f.deny(right, e.Message); len(e.Denied) == 0 {
			refused.Message = e.Message
			return nil, refused
		}
	}
	return result, err
}

// Bounds of [AskTools].
const (
	maxPending   = 1000     // calls in one request
	maxAtOnce    = 16       // calls that run at once
	maxAnswering = 64 << 20 // bytes of all results
)

type pendingCall struct {
	ID json.RawMessage `json:"id"`
	host.ToolArgument
}

type answeredCall struct {
	ID       json.RawMessage   `json:"id"`
	OK       bool              `json:"ok"`
	Result   json.RawMessage   `json:"result,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	Error    *host.ErrorObject `json:"error,omitempty"`
}

// callTools runs the calls for which a guest waits, some of them at once. Each has an outcome of its own.
func (f *Functions) callTools(ctx context.Context, pending []pendingCall) (any, error) {
	if len(pending) > maxPending {
		return nil, host.Errorf(host.LimitExceeded, "%d calls are pending at once, the limit is %d", len(pending), maxPending)
	}
	answers := make([]answeredCall, len(pending))
	var size atomic.Int64
	var running sync.WaitGroup
	places := make(chan struct{}, maxAtOnce)
	for i, p := range pending {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			answers[i] = f.answer(ctx, p)
			if size.Add(int64(len(answers[i].Result))) > maxAnswering {
				e := host.Errorf(host.LimitExceeded, "the results of calls that were made at once have more than %d bytes; "+
					"make fewer at once", maxAnswering)
				answers[i] = answeredCall{ID: p.ID, Error: e.Object()}
			}
		})
	}
	running.Wait()
	return map[string]any{"answers": answers}, nil
}

func (f *Functions) answer(ctx context.Context, p pendingCall) answeredCall {
	result, err := f.callTool(ctx, p.ToolArgument)
	if err != nil {
		return answeredCall{ID: p.ID, Error: host.AsError(err).Object()}
	}
	return answeredCall{ID: p.ID, OK: true, Result: result.Data, Warnings: result.Warnings}
}

// readSecret returns a secret that the guest may read.
func (f *Functions) readSecret(ctx context.Context, name string) (any, error) {
	right := "secret:read:" + manifest.Clip(manifest.CleanLine(name), maxNamed)
	if f.ReadSecret == nil {
		return nil, f.deny(right, "no secrets can be read here")
	}
	value, err := f.ReadSecret(ctx, name)
	if e, ok := errors.AsType[*host.Error](err); ok && e.Code == host.Denied {
		return nil, f.deny(right, e.Message)
	}
	return value, err
}

// httpRequest makes an HTTP request on behalf of the guest. The host checks the grant; denials are recorded here.
func (f *Functions) httpRequest(ctx context.Context, argument json.RawMessage) (*host.Result, error) {
	in, err := decodeHTTPRequest(argument)
	if err != nil {
		return nil, badArgument(host.AskHTTP,
			`{"method":"GET","url":"https://example.com/","headers":[["accept","text/html"]],"body":".."} or "body_base64"`,
			err)
	}
	if f.HTTP == nil {
		to, err := origin.Of(in.URL)
		if err != nil {
			return nil, host.Errorf(host.InvalidURL, "%v", err)
		}
		return nil, f.deny("http:"+manifest.Clip(manifest.CleanLine(in.Method), 40)+":"+to.String(),
			"plugins have no network access here")
	}
	response, err := f.HTTP(ctx, in)
	if e, ok := errors.AsType[*host.Error](err); ok && e.Code == host.Denied && len(e.Denied) > 0 {
		f.deny(e.Denied[0].Right, e.Denied[0].Why)
	}
	if err != nil {
		return nil, err
	}
	return resultOf(encodeHTTPResponse(response)), nil
}

// decodeHTTPRequest decodes the argument of http_request. Unknown fields are refused, because the author may rely
// on them. A null field counts as absent. The method is returned in upper case.
func decodeHTTPRequest(data []byte) (*host.HTTPRequest, error) {
	value, err := jsontext.Decode(data, jsontext.Limits{Depth: 4, Bytes: host.MaxParams})
	if err != nil {
		return nil, err
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("expected an object")
	}
	request := &host.HTTPRequest{Method: "GET"}
	var bodies int
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := fields[name]
		if field == nil {
			continue
		}
		switch name {
		case "method":
			request.Method, err = stringField(field)
			request.Method = strings.ToUpper(request.Method)
		case "url":
			request.URL, err = stringField(field)
		case "headers":
			request.Headers, err = headersField(field)
		case "body":
			var text string
			text, err = stringField(field)
			request.Body = []byte(text)
			bodies++
		case "body_base64":
			request.Body, err = base64Field(field)
			bodies++
		default:
			err = errors.New("unknown field; known fields are method, url, headers, body and body_base64")
		}
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", manifest.Clip(manifest.CleanLine(name), 100), err)
		}
	}
	switch {
	case request.URL == "":
		return nil, errors.New("url is missing")
	case bodies > 1:
		return nil, errors.New("body and body_base64 exclude each other")
	}
	return request, nil
}

func stringField(field any) (string, error) {
	text, ok := field.(string)
	if !ok {
		return "", errors.New("expected a string")
	}
	return text, nil
}

func base64Field(field any) ([]byte, error) {
	text, err := stringField(field)
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("expected padded base64 of the standard alphabet")
	}
	return data, nil
}

func headersField(field any) ([][2]string, error) {
	list, ok := field.([]any)
	if !ok {
		return nil, errors.New("expected an array")
	}
	var pairs [][2]string
	for i, item := range list {
		pair, _ := item.([]any)
		if len(pair) != 2 {
			return nil, fmt.Errorf("item %d is not a pair of name and value", i)
		}
		name, isName := pair[0].(string)
		value, isValue := pair[1].(string)
		if !isName || !isValue {
			return nil, fmt.Errorf("item %d is not a pair of strings", i)
		}
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs, nil
}

// httpReply is the response as guests read it. The body is text if it is UTF-8.
type httpReply struct {
	Status  int         `json:"status"`
	Headers [][2]string `json:"headers"`
	Text    *string     `json:"body,omitempty"`
	Binary  []byte      `json:"body_base64,omitempty"`
}

// encodeHTTPResponse encodes a response: the body as text if it is UTF-8, else as base64. Bytes of headers that are
// not UTF-8 become U+FFFD.
func encodeHTTPResponse(r *host.HTTPResponse) httpReply {
	out := httpReply{Status: r.Status, Headers: append([][2]string{}, r.Headers...)}
	for i, h := range out.Headers {
		out.Headers[i] = [2]string{strings.ToValidUTF8(h[0], "\ufffd"), strings.ToValidUTF8(h[1], "\ufffd")}
	}
	if utf8.Valid(r.Body) {
		text := string(r.Body)
		out.Text = &text
	} else {
		out.Binary = r.Body
	}
	return out
}
