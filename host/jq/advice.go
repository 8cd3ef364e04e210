package jq

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// explain returns the error of an expression that does not compile: where it is wrong and, for the usual mistakes, what
// to write instead.
func explain(text string, err error) (corrected string, e *host.Error) {
	e = (&Expression{text: text}).errorf(host.InvalidArgs, "%s", manifest.CleanLine(err.Error()))
	var syntax *gojq.ParseError
	if errors.As(err, &syntax) {
		e.Message += fmt.Sprintf(" (column %d)", max(1, syntax.Offset-len(syntax.Token)+1))
	}
	advise := func(advice, meant string) (string, *host.Error) {
		e.Message += "; " + advice
		if _, err := compile(meant); meant != "" && err == nil && manifest.CleanLine(meant) == meant {
			return meant, e
		}
		return "", e
	}
	undefined := strings.Contains(err.Error(), "function not defined")
	name, _, _ := strings.Cut(text, "(")
	switch {
	case strings.HasPrefix(text, "$"):
		return advise("write . for the input, not $", "."+strings.TrimPrefix(strings.TrimPrefix(text, "$"), "."))
	case strings.Contains(text, "'"):
		return advise("write strings in double quotes", strings.ReplaceAll(text, "'", `"`))
	case undefined && strings.HasPrefix(text, ".") && strings.Contains(text, "-"):
		return advise("write a key with a dash in quotes", quotedFields(text))
	case undefined && !strings.HasPrefix(text, ".") && name == text:
		return advise("the name of a key begins with a dot", "."+text)
	case syntax != nil && syntax.Token == "":
		if whole := closed(text); whole != text {
			return advise("the expression ends too early: a bracket or a quote is not closed", whole)
		}
		return advise("the expression ends too early", "")
	}
	return "", e
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
