package call

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/manifest"
)

// Functions serves what a provider asks of the host; see [host.Request]. A function that is nil is denied, or not
// found if guests do not know it.
type Functions struct {
	// CallTool serves [job.AskTool].
	CallTool func(ctx context.Context, tool string, params json.RawMessage, o job.Options) (*job.Result, error)
	// HTTP serves [job.AskHTTP].
	HTTP func(ctx context.Context, r *outbound.Request) (*outbound.Response, error)
	// ReadSecret serves [job.AskSecret].
	ReadSecret func(ctx context.Context, name string) (string, error)
	// MayCall serves [job.AskMayCall].
	MayCall func(ctx context.Context, tool string) bool
	// BoundSecret serves [job.AskBoundSecret].
	BoundSecret func(ctx context.Context, name string) (job.BoundSecret, error)
	// Script serves [job.AskScript].
	Script func(name string, withText bool) (job.Script, error)
	// CopySharedFile serves [job.AskSharedFile].
	CopySharedFile func(text, folder string) (path string, err error)
	// Last serves [job.AskLast].
	Last func(record json.RawMessage) bool
	// Denied, if not nil, is called for each right that was denied.
	Denied func(right, why string)
}

// maxNamed is the maximum length of a name from a guest in a message, in bytes.
const maxNamed = 200

// Ask serves one function; it is what [host.Request].Ask requires.
func (f *Functions) Ask(ctx context.Context, function string, argument json.RawMessage) (*job.Result, error) {
	switch {
	case function == job.AskTool:
		return serve(function, `{"tool":"cdp.Page.navigate","params":{},"options":{}}`, argument,
			func(in job.ToolArgument) (any, error) { return f.callTool(ctx, in) })
	case function == job.AskTools:
		type calls struct{ Pending []pendingCall }
		return serve(function, `{"pending":[{"id":1,"tool":"cdp.Page.navigate","params":{}}]}`, argument,
			func(in calls) (any, error) { return f.callTools(ctx, in.Pending) })
	case function == job.AskHTTP:
		return f.httpRequest(ctx, argument)
	case function == job.AskSecret:
		return serve(function, `{"name":"SIGNING_KEY"}`, argument, func(in job.NameArgument) (any, error) {
			return f.readSecret(ctx, in.Name)
		})
	case function == job.AskMayCall && f.MayCall != nil:
		return serve(function, `{"tool":"Page.enable"}`, argument, func(in job.ToolArgument) (any, error) {
			return f.MayCall(ctx, in.Tool), nil
		})
	case function == job.AskBoundSecret && f.BoundSecret != nil:
		return serve(function, `{"name":"PASSWORD"}`, argument, func(in job.NameArgument) (any, error) {
			return f.BoundSecret(ctx, in.Name)
		})
	case function == job.AskScript && f.Script != nil:
		return serve(function, `{"name":"page","text":false}`, argument, func(in job.ScriptArgument) (any, error) {
			return f.Script(in.Name, in.Text)
		})
	case function == job.AskSharedFile && f.CopySharedFile != nil:
		return serve(function, `{"text":"handed:..","folder":"/run/.."}`, argument,
			func(in job.SharedFileArgument) (any, error) { return f.CopySharedFile(in.Text, in.Folder) })
	case function == job.AskLast && f.Last != nil:
		return resultOf(f.Last(argument)), nil
	}
	return nil, host.Errorf(host.NotFound, "the host has no function %s", host.Printable(function))
}

// serve decodes the argument of a function and encodes what run makes of it, unless that is a result already.
func serve[T any](
	function, expected string, argument json.RawMessage, run func(T) (any, error),
) (*job.Result, error) {
	var in T
	decoder := json.NewDecoder(bytes.NewReader(argument))
	decoder.DisallowUnknownFields() // misspelt params would otherwise be missing ones
	if err := decoder.Decode(&in); err != nil {
		return nil, badArgument(function, expected, err)
	} else if rest := argument[decoder.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return nil, badArgument(function, expected, errors.New("a second value follows"))
	}
	value, err := run(in)
	if err != nil {
		return nil, err
	}
	if result, ok := value.(*job.Result); ok {
		return result, nil
	}
	return resultOf(value), nil
}

func resultOf(v any) *job.Result {
	data, _ := manifest.Marshal(v)
	return &job.Result{Data: data}
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
func (f *Functions) callTool(ctx context.Context, in job.ToolArgument) (*job.Result, error) {
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
	job.ToolArgument
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
func (f *Functions) httpRequest(ctx context.Context, argument json.RawMessage) (*job.Result, error) {
	in, err := outbound.DecodeRequest(argument, host.MaxParams)
	if err != nil {
		return nil, badArgument(job.AskHTTP,
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
	return resultOf(response.Reply()), nil
}
