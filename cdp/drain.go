package cdp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

const (
	// readSize is the number of bytes that one IO.read requests.
	readSize = 1 << 20
	// closeTimeout limits the time for closing a stream after its call.
	closeTimeout = 2 * time.Second
)

// drain sends a command and copies the stream that its result or a later event names to the output.
func drain(ctx context.Context, c *keeper.Client, r *host.Request) (*job.Result, error) {
	if !r.Wants.Output {
		return nil, host.Errorf(host.InvalidArgs, "draining a stream requires an output file").
			WithSteps(repeatStep(r, step.Options{Drain: true, Out: true}))
	}
	// A handle is valid only in its own target, and the current target can change meanwhile.
	target, err := resolveTarget(ctx, c, r.Options.Target)
	if err != nil {
		return nil, err
	}
	var stream ioStream
	var warnings []string
	if r.Tool == "Tracing.end" {
		stream, err = endTrace(ctx, c, r, target)
		if stream.Loss {
			warnings = append(warnings, "the trace is incomplete: its buffer was full")
		}
	} else {
		var data json.RawMessage
		if data, _, err = send(ctx, c, r, target); err == nil {
			if err := checkResult(data, r); err != nil {
				return nil, err
			}
			stream, err = findStream(r, data)
		}
	}
	if err != nil {
		return nil, err
	}
	if stream.Handle == "" {
		return nil, noStreamError(r)
	}
	written, err := stream.read(ctx, c, target, r.Output())
	if err != nil {
		return nil, err
	}
	return &job.Result{Written: written, Raw: true, Warnings: warnings}, nil
}

// ioStream is a stream in Chrome, with the chunk of it that was already read.
type ioStream struct {
	Handle string
	Loss   bool // the trace is incomplete
	first  *chunk
}

// chunk is the result of IO.read.
type chunk struct {
	Data   string `json:"data"`
	Base64 bool   `json:"base64Encoded"`
	EOF    bool   `json:"eof"`
}

// findStream returns the stream of a result: its member "stream", at the top level or one level below, or for IO.read
// the handle in its parameters.
func findStream(r *host.Request, data json.RawMessage) (ioStream, error) {
	if r.Tool == "IO.read" {
		n := ioStream{first: &chunk{}}
		return n, cmp.Or(json.Unmarshal(r.Params, &n), json.Unmarshal(data, n.first))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return ioStream{}, err
	}
	for _, within := range slices.AppendSeq([]json.RawMessage{data}, maps.Values(fields)) {
		var one struct {
			Stream string `json:"stream"`
		}
		if json.Unmarshal(within, &one) == nil && one.Stream != "" {
			return ioStream{Handle: one.Stream}, nil
		}
	}
	return ioStream{}, nil
}

// endTrace ends tracing and waits for the event that names the stream of the trace.
func endTrace(ctx context.Context, c *keeper.Client, r *host.Request, target string) (ioStream, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var complete struct {
		Params struct {
			Stream string `json:"stream"`
			Loss   bool   `json:"dataLossOccurred"`
		} `json:"params"`
	}
	q := api.ListenRequest{Patterns: []string{"Tracing.tracingComplete"}, Target: target, Max: 1}
	_, err := c.Listen(ctx, q, func() {
		go func() {
			if _, _, err := send(ctx, c, r, target); err != nil {
				cancel(err)
			}
		}()
	}, func(line json.RawMessage) error { return json.Unmarshal(line, &complete) })
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return ioStream{Handle: complete.Params.Stream, Loss: complete.Params.Loss}, err
}

// checkDrain rejects a PDF that is requested as a stream without draining it: the output file would contain only the
// stream's name.
func checkDrain(r *host.Request) error {
	if r.Tool != "Page.printToPDF" || !r.Wants.Output || r.Drain {
		return nil
	}
	var q struct {
		Mode string `json:"transferMode"`
	}
	if json.Unmarshal(r.Params, &q) != nil || q.Mode != "ReturnAsStream" {
		return nil
	}
	return host.Errorf(host.InvalidArgs, "with transferMode ReturnAsStream, %s returns only the name of a stream; "+
		"drain the stream, or leave out transferMode", r.Tool).
		WithSteps(repeatStep(r, step.Options{Drain: true, Out: true}))
}

// noStreamError returns the error of a call whose result names no stream to drain.
func noStreamError(r *host.Request) *host.Error {
	e := host.Errorf(host.InvalidArgs, "%s returned no stream to drain", r.Tool)
	switch r.Tool {
	case "Tracing.end":
		e.Message += "; start tracing with transferMode ReturnAsStream"
		return e.WithSteps(startTracing.At(r.Options.Place))
	case "Page.printToPDF":
		var params map[string]any
		if json.Unmarshal(r.Params, &params) != nil || params == nil {
			params = map[string]any{}
		}
		params["transferMode"] = "ReturnAsStream"
		return e.WithSteps(repeatStep(r, step.Options{Drain: true, Out: true}).With(params))
	case "HeapProfiler.takeHeapSnapshot":
		e.Message += "; it sends the snapshot as events"
		return e.WithSteps(step.Step{
			Op: step.OpListen, Tool: Name, Query: "HeapProfiler.addHeapSnapshotChunk",
			Options: step.Options{Trigger: r.Tool, Timeout: 30 * time.Second, JQ: ".params.chunk"},
		}.At(r.Options.Place))
	}
	e.Message += "; do not drain it"
	return e.WithSteps(repeatStep(r, step.Options{Out: true}))
}

// read copies a stream to out, closes it, and returns its size in bytes.
func (n *ioStream) read(ctx context.Context, c *keeper.Client, target string, out io.Writer) (written int64,
	err error) {
	call := func(ctx context.Context, method string, params any) (json.RawMessage, error) {
		raw, err := manifest.Marshal(params)
		if err != nil {
			return nil, err
		}
		return c.Call(ctx, api.CallRequest{Target: target, Method: method, Params: raw})
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_, _ = call(closing, "IO.close", map[string]any{"handle": n.Handle}) // otherwise Chrome closes it with the target
	}()
	for next := n.first; ; next = nil {
		if next == nil {
			raw, err := call(ctx, "IO.read", map[string]any{"handle": n.Handle, "size": readSize})
			if err != nil {
				return written, err
			}
			next = &chunk{}
			if err := json.Unmarshal(raw, next); err != nil {
				return written, err
			}
		}
		content := []byte(next.Data)
		if next.Base64 {
			if content, err = base64.StdEncoding.DecodeString(next.Data); err != nil {
				return written, host.Errorf(host.InvalidResult, "IO.read returned invalid base64: %v", err)
			}
		}
		k, err := out.Write(content)
		if written += int64(k); err != nil || next.EOF {
			return written, err
		}
	}
}

// resolveTarget returns the selector, or the id of the current target if it is empty.
func resolveTarget(ctx context.Context, c *keeper.Client, selector string) (string, error) {
	if selector != "" {
		return selector, nil
	}
	list, err := keeper.Ask(ctx, c, api.OpTargets, api.VerbRequest[struct{}]{})
	for _, t := range list.Targets {
		if t.Current {
			selector = t.ID
		}
	}
	return selector, err
}
