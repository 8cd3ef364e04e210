package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/parley-tools/parley/internal/query"
	sdk "github.com/parley-tools/parley/sdk/go"
)

// QueryParams is a filter and its input.
type QueryParams struct {
	// JSON to query, e.g. {"a":[1,2]}.
	Data json.RawMessage `json:"data"`
	// jq filter, e.g. ".a[] | . + 1".
	Filter string `json:"filter" minLength:"1" maxLength:"10000" aliases:"expression,expr,query,jq"`
	// Results to return at most, e.g. 5.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"10000" default:"1000"`
}

// QueryResult lists the results of a filter.
type QueryResult struct {
	// What the filter gave, in order.
	Results []json.RawMessage `json:"results"`
}

// Query runs a jq filter. It knows no environment, no modules and no further input.
func Query(c *sdk.Call, p QueryParams) (QueryResult, error) {
	var r QueryResult
	code, err := compile(p.Filter)
	if err != nil {
		return r, err
	}
	limit, size := p.Limit, 0
	if limit == 0 {
		limit = 1000
	}
	collectLater(len(p.Data))
	for results := code.RunWithContext(&yielding{Context: context.Background()}, decode(p.Data)); ; {
		v, more := results.Next()
		if !more {
			return r, nil
		}
		if err, failed := v.(error); failed {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				return r, nil // the filter "halt" ends the results, no more
			}
			return r, sdk.Exit("query_failed", err.Error(), map[string]any{"results_before": len(r.Results)})
		}
		if len(r.Results) == limit {
			c.Warn("there are more than %d results; raise limit (at most 10000) or narrow the filter", limit)
			return r, nil
		}
		raw, err := encode(v)
		if err != nil {
			return r, err
		}
		if size += len(raw); size > maxOutput {
			return r, tooLarge()
		}
		r.Results = append(r.Results, raw)
	}
}

// collectLater puts the first garbage collection off until the memory is about twice that of the decoded data. Of what
// decoding allocates nearly nothing is garbage, and while a collection goes on each pointer costs more to store.
func collectLater(size int) {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(min(firstCollection+20*int64(size), 128<<20))
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) {
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
	})
}

// firstCollection is the memory in bytes at which collections begin without data, which is little more than the guest
// has at its start. With much data they begin at half of what a guest has by default.
const firstCollection = 8 << 20

// yielding is the context of a filter. gojq asks for Done before each instruction, which is where the filter yields to
// the garbage collector: a guest has one thread, and in wasm Go preempts no goroutine, so that a collection would begin
// and not end before the filter does.
type yielding struct {
	context.Context
	instructions int
}

func (y *yielding) Done() <-chan struct{} {
	if y.instructions++; y.instructions%4096 == 0 {
		runtime.Gosched()
	}
	return nil
}

func compile(filter string) (*gojq.Code, error) {
	code, err := query.Compile(filter, gojq.WithEnvironLoader(func() []string { return nil }))
	if parse, ok := errors.AsType[*gojq.ParseError](err); ok {
		return nil, sdk.Invalid("/filter", "a jq filter", fmt.Sprintf("%s (at byte %d)", err, parse.Offset),
			adviseSyntax(filter, parse))
	}
	if err != nil {
		advice := ""
		switch {
		case !strings.Contains(err.Error(), "function not defined"):
		case strings.HasPrefix(filter, ".") && strings.Contains(filter, "-"):
			advice = `write a key with a dash in quotes, such as ."the-key"`
		case !strings.ContainsAny(filter, ".( |"):
			advice = "the name of a key begins with a dot: ." + filter
		}
		return nil, sdk.Invalid("/filter", "a jq filter whose functions and variables exist", err.Error(), advice)
	}
	return code, nil
}

// adviseSyntax returns advice about the usual mistakes, "" for any other.
func adviseSyntax(filter string, at *gojq.ParseError) string {
	switch {
	case strings.HasPrefix(filter, "$"):
		return "the document itself is a dot, not $: ." + strings.TrimPrefix(strings.TrimPrefix(filter, "$"), ".")
	case strings.Contains(filter, "'"):
		return "texts are in double quotes"
	case at != nil && at.Token == "":
		return "the filter ends too early"
	case at != nil && strings.HasPrefix(at.Token, "."):
		return `write keys that are not identifiers as .["the key"]`
	}
	return ""
}
