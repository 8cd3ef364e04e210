package jq

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
)

// TestCheck checks that the error of an expression is about its fault, and that the correction can be used.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ expr, says, corrected string }{
		{"items[0].name", "begins with a dot", `.items[0].name`},
		{"items", "begins with a dot", `.items`},
		{"$.items", "not $", `.items`},
		{".items[0", "not closed", `.items[0]`},
		{".a | select(.b == 'c')", "double quotes", `.a | select(.b == "c")`},
		{".user-id", "in quotes", `."user-id"`},
		{".a |", "; the expression ends too early", ""},
		{".a ==", "; the expression ends too early", ""},
		{".a ]", "column 4", ""},
		{strings.Repeat("1+", MaxSize), "at most 10000", ""},
	} {
		corrected, err := Check(c.expr)
		if !errors.Is(err, host.InvalidArgs) || !strings.Contains(err.Error(), c.says) || corrected != c.corrected {
			t.Errorf("%.40s: %v, corrected %q; want %q and %q", c.expr, err, corrected, c.says, c.corrected)
		}
		if corrected == "" {
			continue
		}
		if _, err := Check(corrected); err != nil {
			t.Errorf("the correction %s: %v", corrected, err)
		}
	}
}

func TestFilter(t *testing.T) {
	for _, c := range []struct{ expr, data, want string }{
		{".", `{"b":1,"a":[true,null]}`, `{"a":[true,null],"b":1}`},
		{".a, .b", `{"a":1,"b":2}`, `[1,2]`},
		{"empty", `{}`, `[]`},
		{".n", `{"n":12345678901234567890.5}`, `12345678901234567890.5`},
		{"1, halt, 2", `{}`, `1`},
	} {
		got, err := InProcess{}.Filter(t.Context(), c.expr, json.RawMessage(c.data))
		if err != nil || string(got) != c.want {
			t.Errorf("%s of %s: %s, %v; want %s", c.expr, c.data, got, err, c.want)
		}
	}
	if _, err := (InProcess{}).Filter(t.Context(), `.a | error("no")`, json.RawMessage(`{}`)); !errors.Is(err,
		host.InvalidArgs) {
		t.Errorf("an expression that fails: %v", err)
	}
}

// TestBounds checks that an expression ends at the deadline, and at the bounds of memory and outputs.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		expr string
		code host.Code
	}{
		{"[range(infinite)] | length", host.LimitExceeded},
		{"range(infinite)", host.LimitExceeded},
		{`reduce range(infinite) as $i (""; . + "0123456789abcdef" * 1048576)`, host.LimitExceeded},
		{"until(false; .)", host.Timeout},
		{"[limit(10; repeat(1))] | until(false; map(. + 1))", host.Timeout},
	} {
		timeout := time.Minute
		if c.code == host.Timeout {
			timeout = 100 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		began := time.Now()
		_, err := InProcess{}.Filter(ctx, c.expr, json.RawMessage(`0`))
		cancel()
		if !errors.Is(err, c.code) {
			t.Errorf("%s: %v; want %s", c.expr, err, c.code)
		}
		if took := time.Since(began); c.code == host.Timeout && took > 10*timeout {
			t.Errorf("%s ended after %s", c.expr, took)
		}
	}
}

// TestInterrupted checks that the cause of the end of the context is the error.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(host.Errorf(host.Denied, "the grant was revoked"))
	if _, err := (InProcess{}).Filter(ctx, "until(false; .)", json.RawMessage(`0`)); !errors.Is(err, host.Denied) {
		t.Errorf("got %v", err)
	}
}

func TestHolds(t *testing.T) {
	for expr, want := range map[string]bool{
		".a == 1": true, ".a == 2": false, ".b": false, "empty": false, "false, .a": true, "null": false,
	} {
		x, err := Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.Holds(t.Context(), map[string]any{"a": 1}); got != want || err != nil {
			t.Errorf("%s: %t, %v", expr, got, err)
		}
	}
}
