package api

import (
	"strings"

	"github.com/parley-tools/parley/internal/lazy"
)

// comments matches comments of JavaScript.
const comments = `//[^\n]*(?:\n|$)|/\*(?s:.*?)\*/`

var (
	// functionWords matches how the text of a function or class begins.
	functionWords = lazy.Pattern(`^(?:[\s(]|` + comments + `)*(async\b)?\s*(?:(class)\b|function\s*(\*)?)?`)
	// declaration matches a program that begins with a declaration, and may end with it.
	declaration = lazy.Pattern(`^(?:\s|` + comments + `)*(?:async\s+)?(?:class\s+|function\s*\*?\s*)` +
		`([\p{L}\p{N}_$]{1,99})[\s({/](?s:.*)\}(?:[\s;]|` + comments + `)*$`)
)

// Call returns the JavaScript that calls a function, creates an object of a class, or collects what a generator
// yields. The beginning of the function's text decides which. name is an expression for the function.
func Call(text, name string) string {
	at := functionWords().FindStringSubmatch(text)
	isAsync, isClass, isGenerator := at[1] != "", at[2] != "", at[3] != ""
	switch {
	case isClass:
		return "new " + name + "()"
	case isGenerator && isAsync:
		return "Array.fromAsync(" + name + "())"
	case isGenerator:
		return "[..." + name + "()]"
	}
	return name + "()"
}

// Uncalled returns a warning if a program whose result has the type kind has called no function, and the program that
// calls it. Both are "" if there is nothing to report.
func Uncalled(program, kind string) (warning, calls string) {
	switch at := declaration().FindStringSubmatch(program); {
	case kind == "function":
		text := strings.TrimRight(strings.TrimSpace(program), ";")
		if strings.Contains(text, "//") {
			text += "\n"
		}
		return "the result is a function that was not called; write " + Call(program, "(EXPRESSION)"),
			Call(program, "("+text+")")
	case kind == "undefined" && at != nil:
		call := Call(program, at[1])
		return "the result is undefined: a declaration calls nothing; to call " + at[1] + ", add " + call + " at the end",
			program + "\n" + call
	}
	return "", ""
}
