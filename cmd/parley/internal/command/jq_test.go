package command

import (
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
)

// TestJQSyntax checks that the error of an expression names its fault and suggests a corrected expression.
func TestJQSyntax(t *testing.T) {
	for _, c := range []struct{ expr, says, next string }{
		{"items[0].name", "begins with a dot", `.items[0].name`},
		{"items", "begins with a dot", `.items`},
		{"$.items", "not $", `.items`},
		{".items[0", "not closed", `.items[0]`},
		{".a | select(.b == 'c')", "double quotes", `.a | select(.b == "c")`},
		{".user-id", "in quotes", `."user-id"`},
		{".a |", "; the expression ends too early", ""},
		{".a ==", "; the expression ends too early", ""},
		{".a ]", "column 4", ""},
	} {
		_, err := jqFilter(c.expr, false)
		if err == nil {
			t.Errorf("%s was accepted", c.expr)
			continue
		}
		e := host.AsError(err)
		if e.Code != host.InvalidArgs || !strings.Contains(e.Message, c.says) || meantJQ(e) != c.next {
			t.Errorf("%s: %s, next %q; want %q and %q", c.expr, e.Message, e.Steps, c.says, c.next)
		}
	}
}

// meantJQ returns the expression that an error suggests.
func meantJQ(e *host.Error) string {
	for _, s := range e.Steps {
		if s.Op == host.OpSystem && len(s.Args) == 2 && s.Args[0] == "--jq" {
			return s.Args[1]
		}
	}
	return ""
}
