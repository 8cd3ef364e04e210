package call_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
)

// TestUntrusted checks which texts of a result are put inside a boundary, and that no two calls have the same.
func TestUntrusted(t *testing.T) {
	const text = `{"manifest": 1, "name": "web", "version": "1.0.0", "kind": "parley/1", "docs": {"brief": "Read pages"},
		"tools": [{"name": "read", "docs": {"brief": "Read a page"}, "effect": "read", "params": {"type": "object"},
		"returns": {"type": "object", "properties": {"text": {"type": "string", "x-untrusted": true},
		"value": {"x-untrusted": "long"}, "title": {"type": "string"}}}}]}`
	var data string
	h := newHost(t, call.Config{}, newFake(t, text, map[string]handler{
		"read": func(context.Context, *host.Request) (*job.Result, error) {
			return &job.Result{Data: json.RawMessage(data)}, nil
		}}))
	long := strings.Repeat("long ", 30)
	last := ""
	for given, want := range map[string]string{
		`{"text":"short","title":"Title"}`:        `{"text":"<page N>\nshort\n</page N>","title":"Title"}`,
		`{"text":"","value":"short"}`:             `{"text":"","value":"short"}`,
		`{"value":"two\nlines"}`:                  `{"value":"<page N>\ntwo\nlines\n</page N>"}`,
		`{"value":{"a":["` + long + `","b", 1]}}`: `{"value":{"a":["<page N>\n` + long + `\n</page N>","b",1]}}`,
		`{"title":"` + long + `"}`:                `{"title":"` + long + `"}`,
		`{"value":"a\u202eb\u200d"}`:              `{"value":"a\u202eb\u200d"}`,
	} {
		data = given
		a := makeCall(t, h, "web.read", `{}`)
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		raw := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(a.Data))
		number := regexp.MustCompile(`<page ([0-9a-f]{8})>`).FindStringSubmatch(raw)
		if number != nil {
			if number[1] == last {
				t.Errorf("two calls have the boundary %s", last)
			}
			last = number[1]
			raw = strings.ReplaceAll(raw, last, "N")
		}
		if !equalJSON(t, raw, want) {
			t.Errorf("%s: %s, want %s", given, raw, want)
		}
	}
	for _, unreadable := range []string{`{"text":"a`, `{"value":` + strings.Repeat("[", 20_000) + strings.Repeat("]",
		20_000) + `}`} {
		data = unreadable
		if a := makeCall(t, h, "web.read", `{}`); a.Err == nil || a.Data != nil {
			t.Errorf("%.30s: %.100s, %v", unreadable, a.Data, a.Err)
		}
	}
}
