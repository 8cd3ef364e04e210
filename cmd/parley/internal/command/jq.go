package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
		return nil, jqSyntaxError(expr, err)
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

// jqSyntaxError returns where an expression is invalid and, for common mistakes, what to write instead.
func jqSyntaxError(expr string, err error) *host.Error {
	e := jqError("--jq", expr, err)
	var syntax *gojq.ParseError
	if errors.As(err, &syntax) {
		e.Message += fmt.Sprintf(" (column %d)", max(1, syntax.Offset-len(syntax.Token)+1))
	}
	advise := func(advice, meant string) *host.Error {
		e.Message += "; " + advice
		if _, err := compileJQ(meant); meant != "" && err == nil && manifest.CleanLine(meant) == meant {
			return e.WithSteps(host.OperatorStep(host.OpSystem, "--jq", meant))
		}
		return e
	}
	undefined := strings.Contains(err.Error(), "function not defined")
	name, _, _ := strings.Cut(expr, "(")
	switch {
	case strings.HasPrefix(expr, "$"):
		return advise("the document itself is a dot, not $", "."+strings.TrimPrefix(strings.TrimPrefix(expr, "$"), "."))
	case strings.Contains(expr, "'"):
		return advise("texts are in double quotes", strings.ReplaceAll(expr, "'", `"`))
	case undefined && strings.HasPrefix(expr, ".") && strings.Contains(expr, "-"):
		return advise(`a name with a dash is in quotes`, quotedFields(expr))
	case undefined && !strings.HasPrefix(expr, ".") && name == expr:
		return advise("the name of a member begins with a dot", "."+expr)
	case syntax != nil && syntax.Token == "":
		if whole := closed(expr); whole != expr {
			return advise("the expression ends too early: a bracket or a quote is not closed", whole)
		}
		return advise("the expression ends too early", "")
	}
	return e
}

// quotedFields puts the names of a path in quotes: .a-b.c becomes ."a-b"."c".
func quotedFields(path string) string {
	names := strings.Split(strings.TrimPrefix(path, "."), ".")
	for i, name := range names {
		names[i] = `."` + strings.TrimSpace(name) + `"`
	}
	return strings.Join(names, "")
}

// closed closes the brackets of an expression that are open at its end.
func closed(expr string) string {
	var open []rune
	inText := false
	for _, c := range expr {
		switch {
		case c == '"':
			inText = !inText
		case inText:
		case c == '(':
			open = append(open, ')')
		case c == '[':
			open = append(open, ']')
		case c == '{':
			open = append(open, '}')
		case len(open) > 0 && c == open[len(open)-1]:
			open = open[:len(open)-1]
		}
	}
	if inText {
		expr += `"`
	}
	slices.Reverse(open)
	return expr + string(open)
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
