package option_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/step"
)

func TestParseOptions(t *testing.T) {
	for _, c := range []struct {
		in   string
		want job.Options
	}{
		{``, job.Options{}},
		{`{}`, job.Options{}},
		{`{"timeout":"10s","max_bytes":100,"browser":"b","target":"t","dry_run":true,"send_anyway":true,"on_dialog":"accept"}`,
			job.Options{Timeout: 10 * time.Second, MaxBytes: 100, Place: step.Place{Browser: "b", Target: "t"},
				DryRun: true, SendAnyway: true,
				OnDialog: "accept"}},
		{`{"max_bytes":0}`, job.Options{Unlimited: true}},
		{`{"max_bytes":null}`, job.Options{}},
		{`{"jq":".a","wait":"idle"}`, job.Options{JQ: ".a", Wait: "idle"}},
		{`{"on_dialog":"accept=Ada"}`, job.Options{OnDialog: "accept=Ada"}},
		{`{"timeout":"1m30s","on_dialog":"fail"}`, job.Options{Timeout: 90 * time.Second, OnDialog: "fail"}},
	} {
		if got, err := option.Parse(json.RawMessage(c.in)); err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v", c.in, got, err)
		}
	}
	for _, c := range []struct{ in, says string }{
		{`{"time_out":"1s"}`, "time_out"},
		{`{"out":"a.png"}`, "unknown option out; only the command line and batch write a result to a file"},
		{`{"timeout":10}`, "timeout"},
		{`{"timeout":"10"}`, `"10" is not a duration such as 10s`},
		{`{"timeout":"-1s"}`, "negative"},
		{`{"max_bytes":-1}`, "negative"},
		{`{"max_bytes":1.5}`, "max_bytes"},
		{`{"max_bytes":"1"}`, "max_bytes"},
		{`{"dry_run":"yes"}`, "dry_run"},
		{`{"wait":"forever"}`, `wait: "forever" is not one of load, idle, none`},
		{`{"wait":true}`, "wait: expected a text"},
		{`{"session":"a"}`, "session is an option of the command line and of batch only"},
		{`{"jq":1}`, "jq: expected a text"},
		{`{"on_dialog":"ignore"}`, `"ignore" is not one of accept, accept=TEXT, dismiss, fail`},
		{`{"on_dialog":"\u001b[31mx\u202e"}`, `"\\u001b[31mx\\u202e"`},
		{`{"timeout":`, "options"},
		{`[]`, "options"},
		{`"10s"`, "options"},
		{`null`, "options"},
		{`{} {}`, "options"},
		{`{"timeout":"1s","timeout":"2s"}`, "timeout"},
		{`{"Dry_Run":true}`, "Dry_Run"},
		{`nonsense`, "options"},
	} {
		got, err := option.Parse(json.RawMessage(c.in))
		if err == nil || host.AsError(err).Code != host.InvalidArgs || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %+v, %v; expected invalid_args with %q", c.in, got, err, c.says)
		}
	}
}

// TestLocalOptions checks which names of a session a line of a batch may have. Other callers may not choose a session.
func TestLocalOptions(t *testing.T) {
	for _, in := range []string{``, `{"session":null}`, `{"jq":"."}`} {
		if _, local, err := option.ParseLocal(json.RawMessage(in)); err != nil || local != (option.Local{}) {
			t.Errorf("%s: got %+v, %v", in, local, err)
		}
	}
	options, local, err := option.ParseLocal(json.RawMessage(`{"session":"a-1","browser":"b"}`))
	if err != nil || local.Session != "a-1" || options != (job.Options{Place: step.Place{Browser: "b"}}) {
		t.Errorf("got %+v, %+v, %v", options, local, err)
	}
	for in, says := range map[string]string{
		`{"session":""}`: "not the name of a session", `{"session":"a/b"}`: "not the name of a session",
		`{"session":true}`: "expected the name of a session, got true", `{"sesion":"a"}`: "expected timeout,",
	} {
		_, _, err := option.ParseLocal(json.RawMessage(in))
		if err == nil || host.AsError(err).Code != host.InvalidArgs || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v; expected invalid_args with %q", in, err, says)
		}
	}
}
