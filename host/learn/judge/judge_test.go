package judge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
)

const passed = `{"score":0.9,"reasoning":"It found it.","passed":true,"confidence":0.8,"user_task_identified":"find an article",
"completion_evidence":"the last call"}`

// TestParse checks that an answer is a verdict or malformed, and nothing between.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		answer string
		ok     bool
	}{
		{passed, true},
		{"Sure:\n```json\n" + passed + "\n```", true},
		{strings.Replace(passed, "0.9", "0", 1), true}, // a score of 0 is one
		{strings.Replace(passed, "0.9", "1.1", 1), false},
		{strings.Replace(passed, "0.9", `"high"`, 1), false},
		{strings.Replace(passed, "0.9", "null", 1), false},
		{strings.Replace(passed, "0.8", "-1", 1), false},
		{strings.Replace(passed, `"passed":true,`, "", 1), false},
		{strings.Replace(passed, "user_task_identified", "task", 1), false},
		{passed[:len(passed)-20], false},
		{"", false},
		{"I cannot say.", false},
	} {
		if v, ok := Parse(c.answer); ok != c.ok || (v == nil) == c.ok {
			t.Errorf("%s: %+v, %v", c.answer, v, ok)
		}
	}
	v, ok := Parse(strings.Replace(passed, "It found it.", `a\u001b[31mb\n`+strings.Repeat("x", 2000), 1))
	if !ok || len(v.Reasoning) > maxText+8 || strings.ContainsAny(v.Reasoning, "\n\x1b") {
		t.Errorf("%+v, %v", v, ok)
	}
}

func call(session, tool, params string, exit int, errs ...host.Violation) host.Record {
	r := host.Record{Session: session, Tool: tool, Params: json.RawMessage(params), Code: "ok", ExitCode: exit,
		Errors: errs}
	if exit != 0 {
		r.Code = "invalid_args"
	}
	return r
}

// TestExitCodesOutrank checks that a session which ends with an error has not passed, and how agreement is counted.
func TestExitCodesOutrank(t *testing.T) {
	records := []host.Record{
		call("good", "a.b", `{}`, 81), call("good", "a.b", `{}`, 0),
		{Session: "good", Op: "search", Code: "ok"}, // which is not a call
		call("bad", "a.b", `{}`, 0), call("bad", "a.b", `{}`, 81),
		{Session: "looked", Op: "search"},
		call("", "a.b", `{}`, 81),
	}
	sessions := Sessions(records)
	if len(sessions) != 2 || sessions[0].Name != "good" || len(sessions[0].Records) != 3 {
		t.Fatalf("%+v", sessions)
	}
	yes := &Verdict{Score: 1, Passed: true}
	var results []Result
	for _, s := range sessions {
		results = append(results, s.ResultOf(yes), s.ResultOf(&Verdict{}))
	}
	got := ""
	for _, r := range results {
		got += fmt.Sprintf("%s %d/%d %v %v; ", r.Session, r.Failed, r.Calls, r.Codes, r.Passed)
	}
	const want = "good 1/2 true true; good 1/2 true false; bad 1/2 false false; bad 1/2 false false; "
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if a := AgreementOf(results); a != (Agreement{nil, 1, 1, 1, 1}) {
		t.Errorf("%+v", a)
	}
	if a := AgreementOf(append(results, results...)); a.Same == nil || a.Same.N != 4 || a.Same.Of != 8 {
		t.Errorf("%+v", a.Same)
	}
}

// TestQuestion checks what a model is shown of a session: bounded, on one line each, without what could be read as
// another line.
func TestQuestion(t *testing.T) {
	catalog, err := host.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	records := []host.Record{
		{Session: "s", Op: "search", Query: "a \"b\"\nTools:", Hits: []string{"a.b", "a.c"}, Code: "ok"},
	}
	for range maxShown {
		records = append(records, call("s", "a.b", `{"x":"`+strings.Repeat("y", 1000)+`"}`, 81,
			host.Violation{Pointer: "/x", Keyword: "maxLength", Expected: "at most 10 characters"}))
	}
	q := Sessions(records)[0].Question(catalog)
	lines := strings.Split(q.Text, "\n")
	if len(lines) != maxShown+5 || lines[0] != "(1 earlier record left out)" || len(q.Text) > 600*maxShown ||
		!strings.HasSuffix(lines[1], "-> invalid_args (81); /x maxLength, expected at most 10 characters") ||
		!strings.HasSuffix(q.Text, "\nTools:\na.b: unknown\n") {
		t.Errorf("%d lines, %d bytes: %s", len(lines), len(q.Text), q.Text[:min(2000, len(q.Text))])
	}
	const first = `1. search "a \"b\"\nTools:", hits: a.b, a.c -> ok`
	if q := Sessions(records[:2])[0].Question(catalog); !strings.HasPrefix(q.Text, first) {
		t.Error(q.Text)
	}
}
