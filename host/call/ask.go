package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/manifest"
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
		return f.callTool(ctx, argument)
	case function == host.AskTools:
		return f.callTools(ctx, argument)
	case function == host.AskHTTP:
		return f.httpRequest(ctx, argument)
	case function == host.AskSecret:
		return f.readSecret(ctx, argument)
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
		return resultOf(f.Last(argument))
	}
	return nil, host.Errorf(host.NotFound, "the host has no function %s", host.Printable(function))
}

// serve decodes the argument of a function and encodes what run makes of it.
func serve[T any](
	function, expected string, argument json.RawMessage, run func(T) (any, error),
) (*host.Result, error) {
	in, err := decodeArgument[T](function, expected, argument)
	if err != nil {
		return nil, err
	}
	value, err := run(in)
	if err != nil {
		return nil, err
	}
	return resultOf(value)
}

func resultOf(v any) (*host.Result, error) {
	data, err := manifest.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &host.Result{Data: data}, nil
}

func decodeArgument[T any](function, expected string, argument json.RawMessage) (in T, err error) {
	if err = json.Unmarshal(argument, &in); err != nil {
		return in, badArgument(function, expected, err)
	}
	return in, nil
}

func badArgument(function, expected string, err error) *host.Error {
	return &host.Error{Code: host.InvalidArgs, Cause: err, Message: fmt.Sprintf("%s: invalid request: %s; expected %s",
		function,
		manifest.Clip(manifest.CleanLine(err.Error()), maxNamed), expected)}
}

// deny records a denial, and returns the error for the guest.
func (f *Functions) deny(right, why string) *host.Error {
	if f.Denied != nil {
		f.Denied(right, why)
	}
	return host.NotGranted(right, why)
}

// callTool runs a tool of another plugin through the host, which consults the policy.
func (f *Functions) callTool(ctx context.Context, argument json.RawMessage) (*host.Result, error) {
	in, err := decodeArgument[host.ToolArgument](host.AskTool, `{"tool":"cdp.Page.navigate","params":{},"options":{}}`,
		argument)
	if err != nil {
		return nil, err
	}
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
	if e := (*host.Error)(nil); errors.As(err, &e) && e.Code == host.Denied {
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
	maxAtOnce    = 16       // of them
	maxAnswering = 64 << 20 // bytes of all results
)

type pendingCall struct {
	ID      json.RawMessage `json:"id"`
	Tool    string          `json:"tool"`
	Params  json.RawMessage `json:"params"`
	Options json.RawMessage `json:"options,omitempty"`
}

type answeredCall struct {
	ID       json.RawMessage   `json:"id"`
	OK       bool              `json:"ok"`
	Result   json.RawMessage   `json:"result,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	Error    *host.ErrorObject `json:"error,omitempty"`
}

// callTools runs the calls for which a guest waits, some of them at once. Each has an outcome of its own.
func (f *Functions) callTools(ctx context.Context, argument json.RawMessage) (*host.Result, error) {
	in, err := decodeArgument[struct {
		Pending []pendingCall `json:"pending"`
	}](host.AskTools, `{"pending":[{"id":1,"tool":"cdp.Page.navigate","params":{}}]}`, argument)
	if err != nil {
		return nil, err
	}
	if len(in.Pending) > maxPending {
		return nil, host.Errorf(host.LimitExceeded, "%d calls are pending at once, the limit is %d", len(in.Pending),
			maxPending)
	}
	answers := make([]answeredCall, len(in.Pending))
	var size atomic.Int64
	var running sync.WaitGroup
	places := make(chan struct{}, maxAtOnce)
	for i, p := range in.Pending {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			answers[i] = f.answer(ctx, p)
			if size.Add(int64(len(answers[i].Result))) > maxAnswering {
				e := host.Errorf(host.LimitExceeded,
					"the results of calls that were made at once have more than %d bytes; make fewer "+
						"at once", maxAnswering)
				answers[i] = answeredCall{ID: p.ID, Error: e.Object()}
			}
		})
	}
	running.Wait()
	return resultOf(map[string]any{"answers": answers})
}

func (f *Functions) answer(ctx context.Context, p pendingCall) answeredCall {
	argument, err := manifest.Marshal(host.ToolArgument{Tool: p.Tool, Params: p.Params, Options: p.Options})
	var result *host.Result
	if err == nil {
		result, err = f.callTool(ctx, argument)
	}
	if err != nil {
		return answeredCall{ID: p.ID, Error: host.AsError(err).Object()}
	}
	return answeredCall{ID: p.ID, OK: true, Result: result.Data, Warnings: result.Warnings}
}

// readSecret returns a secret that the guest may read.
func (f *Functions) readSecret(ctx context.Context, argument json.RawMessage) (*host.Result, error) {
	in, err := decodeArgument[host.NameArgument](host.AskSecret, `{"name":"SIGNING_KEY"}`, argument)
	if err != nil {
		return nil, err
	}
	right := "secret:read:" + manifest.Clip(manifest.CleanLine(in.Name), maxNamed)
	if f.ReadSecret == nil {
		return nil, f.deny(right, "no secrets can be read here")
	}
	value, err := f.ReadSecret(ctx, in.Name)
	if e := (*host.Error)(nil); errors.As(err, &e) && e.Code == host.Denied {
		return nil, f.deny(right, e.Message)
	}
	if err != nil {
		return nil, err
	}
	return resultOf(value)
}
