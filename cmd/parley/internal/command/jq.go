package command

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// jqFilter compiles a jq expression into a function from a result to its filtered form. One output is the new data;
// none or several become an array, except in a stream, where no output drops the record: the function returns nil.
func jqFilter(expr string, inStream bool) (func(json.RawMessage) (json.RawMessage, error), error) {
	code, err := compileJQ(expr)
	if err != nil {
		return nil, jqError("--jq", expr, err).WithNext(`a jq expression, such as --jq '.items[0].name'`)
	}
	return func(data json.RawMessage) (json.RawMessage, error) {
		outputs, err := runJQ(code, expr, data)
		switch {
		case err != nil:
			return nil, err
		case len(outputs) == 1:
			return gojq.Marshal(outputs[0])
		case len(outputs) == 0 && inStream:
			return nil, nil
		}
		return gojq.Marshal(outputs)
	}, nil
}

func compileJQ(expr string) (*gojq.Code, error) {
	query, err := gojq.Parse(expr)
	if err != nil {
		return nil, err
	}
	return gojq.Compile(query)
}

func jqError(option, expr string, err error) *host.Error {
	return host.Errorf(host.InvalidArgs, "%s: %q: %s", option, manifest.CleanLine(expr), manifest.CleanLine(err.Error()))
}

// runJQ returns all outputs of an expression. Numbers keep their digits.
func runJQ(code *gojq.Code, expr string, data json.RawMessage) ([]any, error) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var input any
	if err := dec.Decode(&input); err != nil {
		return nil, err
	}
	outputs := []any{}
	for iter := code.Run(input); ; {
		v, ok := iter.Next()
		if !ok {
			break
		}
		if err, failed := v.(error); failed {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				break
			}
			return nil, jqError("--jq", expr, err)
		}
		outputs = append(outputs, v)
	}
	return outputs, nil
}
