// Package jq filters JSON by jq expressions, within bounds of time, memory and the number of outputs.
package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/query"
	"github.com/parley-tools/parley/manifest"
)

const (
	// MaxValues is the maximum number of outputs of an expression.
	MaxValues = 1_000_000
	// MaxSize is the maximum size of an expression in bytes. The parser's work grows with it.
	MaxSize = 10_000
	// maxMemory is how much the heap may grow while an expression runs, in bytes.
	maxMemory = 512 << 20
	// memoryInterval is how often the heap is measured. One operation can allocate more in between: gojq limits a text to
	// 2 GiB.
	memoryInterval = 10 * time.Millisecond
)

// Expression is a compiled expression. It can be used concurrently.
type Expression struct {
	text string
	code *gojq.Code
}

// Compile compiles an expression. It has no environment, no modules and no further input. The error is as for [Check].
func Compile(text string) (*Expression, error) {
	code, err := compile(text)
	if err != nil {
		_, e := explain(text, err)
		return nil, e
	}
	return &Expression{text, code}, nil
}

// Check returns the error of an expression that does not compile: a [*host.Error] with the code invalid_args, which
// says where it is wrong. corrected is what was probably meant, "" if that is unknown.
func Check(text string) (corrected string, err error) {
	if _, err := compile(text); err != nil {
		return explain(text, err)
	}
	return "", nil
}

// InProcess implements [host.Filter] in this process, for callers whose expressions may use its processor and memory.
type InProcess struct{}

// Check is [Check].
func (InProcess) Check(_ context.Context, text string) (corrected string, err error) {
	return Check(text)
}

// Filter is [Expression.Filter].
func (InProcess) Filter(ctx context.Context, text string, data json.RawMessage) (json.RawMessage, error) {
	x, err := Compile(text)
	if err != nil {
		return nil, err
	}
	return x.Filter(ctx, data)
}

func compile(text string) (*gojq.Code, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("it has %d bytes, at most %d", len(text), MaxSize)
	}
	return query.Compile(text)
}

// Filter returns data as the expression transforms it: its outputs, as [Join] joins them. Numbers keep their digits.
// The error is a [*host.Error]: invalid_args if the expression fails on the data, limit_exceeded beyond [MaxValues] or
// the memory, or the cause of the end of ctx.
func (x *Expression) Filter(ctx context.Context, data json.RawMessage) (json.RawMessage, error) {
	outputs, err := x.Outputs(ctx, data)
	if err != nil {
		return nil, err
	}
	return Join(outputs)
}

// Join returns the only output, or an array of the outputs if there are none or several.
func Join(outputs []any) (json.RawMessage, error) {
	if len(outputs) == 1 {
		return gojq.Marshal(outputs[0])
	}
	return gojq.Marshal(outputs)
}

// Outputs returns the outputs of the expression on data. Errors are as for [Expression.Filter].
func (x *Expression) Outputs(ctx context.Context, data json.RawMessage) ([]any, error) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var input any
	if err := dec.Decode(&input); err != nil {
		return nil, err
	}
	ctx, stop := limitMemory(ctx)
	defer stop()
	outputs := []any{}
	for iter := x.run(ctx, input); ; {
		v, ok := iter.Next()
		if !ok {
			return outputs, nil
		}
		if err, failed := v.(error); failed {
			var halt *gojq.HaltError
			switch {
			case errors.As(err, &halt) && halt.Value() == nil:
				return outputs, nil
			case ctx.Err() != nil:
				return nil, x.interrupted(ctx)
			}
			return nil, x.errorf(host.InvalidArgs, "%s", manifest.CleanLine(err.Error()))
		}
		if len(outputs) == MaxValues {
			return nil, x.errorf(host.LimitExceeded, "there are more than %d outputs", MaxValues)
		}
		outputs = append(outputs, v)
	}
}

// run returns the outputs of the expression on a value. A panic of gojq is an error.
func (x *Expression) run(ctx context.Context, value any) gojq.Iter {
	return safely{x.code.RunWithContext(ctx, value)}
}

type safely struct{ gojq.Iter }

// Next implements [gojq.Iter]. gojq 0.12.20 can panic, because it has a fault in how it keeps variables of nested
// functions.
func (s safely) Next() (v any, more bool) {
	defer func() {
		if fault := recover(); fault != nil {
			v, more = fmt.Errorf("%v", fault), true
		}
	}()
	return s.Iter.Next()
}

// Holds reports whether an output of the expression on a value is neither null nor false. The value has a type that
// encoding/json decodes to.
func (x *Expression) Holds(ctx context.Context, value any) (bool, error) {
	for outputs := x.run(ctx, value); ; {
		v, more := outputs.Next()
		switch v := v.(type) {
		case error:
			return false, v
		case bool:
			if v {
				return true, nil
			}
		default:
			if !more || v != nil {
				return more, nil
			}
		}
	}
}

func (x *Expression) errorf(code host.Code, format string, args ...any) *host.Error {
	return host.Errorf(code, "jq: %s: %s", manifest.Clip(manifest.CleanLine(x.text), 200), fmt.Sprintf(format, args...))
}

// errMemory is the cause of the end of a context whose expression takes too much memory.
var errMemory = errors.New("it takes too much memory")

// interrupted returns the error of an expression whose context has ended.
func (x *Expression) interrupted(ctx context.Context) *host.Error {
	var e *host.Error
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errMemory):
		return x.errorf(host.LimitExceeded, "it takes more than %d MiB of memory", maxMemory>>20)
	case errors.As(cause, &e):
		return e
	case errors.Is(cause, context.DeadlineExceeded):
		return x.errorf(host.Timeout, "the call had run, and the filter did not end before its deadline")
	}
	return x.errorf(host.Interrupted, "it was interrupted")
}

// limitMemory ends a context when the heap has grown by more than maxMemory. The caller calls stop.
func limitMemory(ctx context.Context) (limited context.Context, stop func()) {
	limited, cancel := context.WithCancelCause(ctx)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	before := memory.HeapAlloc
	go func() {
		tick := time.NewTicker(memoryInterval)
		defer tick.Stop()
		for {
			select {
			case <-limited.Done():
				return
			case <-tick.C:
			}
			if runtime.ReadMemStats(&memory); memory.HeapAlloc > before+maxMemory {
				cancel(errMemory)
				return
			}
		}
	}()
	return limited, func() { cancel(nil) }
}
