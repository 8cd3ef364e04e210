package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
)

// quotas are counts of calls, all of which are allowed up to a number.
type quotas struct {
	most  int
	taken []string
	ended []int64 // bytes
}

func (q *quotas) Take(of *grant.Quota) (func(int64), error) {
	if q.taken = append(q.taken, of.Account); len(q.taken) > q.most {
		return nil, host.Errorf(host.Busy, "enough")
	}
	return func(bytes int64) { q.ended = append(q.ended, bytes) }, nil
}

// TestQuotas checks which calls count against the quota of a caller, and that one which exceeds it is recorded and not
// run. What inner calls return counts for the outer one.
func TestQuotas(t *testing.T) {
	rec, q := &recorder{}, &quotas{most: 2}
	first := newFake(t, shopNamed("first"), map[string]handler{"echo": callOther("second.echo")})
	long := `{"a":"` + strings.Repeat("x", 1000) + `"}`
	second := newFake(t, shopNamed("second"), map[string]handler{
		"echo": func(context.Context, *host.Request) (*job.Result, error) {
			return &job.Result{Data: json.RawMessage(long)}, nil
		}})
	held := holding(map[string][]string{"first": {"second.echo"}})
	h := newHost(t, call.Config{Recorder: rec, Quotas: q, Policy: policy(func(a host.Ask) (host.Decision, error) {
		d, err := held(a)
		d.Quota = &grant.Quota{Account: a.Principal.Name}
		return d, err
	})}, first, second)
	for _, c := range []struct {
		params string
		dryRun bool
		want   host.Code
	}{{`{}`, false, ""}, {`{}`, true, ""}, {`{"x":`, false, host.InvalidArgs}, {`{}`, false, ""}, {`{}`, false, host.Busy},
		{`{}`, true, ""}} {
		_, err := h.Call(t.Context(), host.Call{Name: "first.echo", Params: json.RawMessage(c.params), Principal: cli,
			Options: job.Options{DryRun: c.dryRun}})
		if c.want == "" && err != nil || c.want != "" && !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if c.want == host.Busy && !reflect.DeepEqual(host.AsError(err).Steps, []step.Step{{Op: step.OpCall,
			Tool: "first.echo", Params: json.RawMessage(c.params)}}) {
			t.Errorf("%+v: the next steps are %+v, expected the same call", c, host.AsError(err).Steps)
		}
	}
	if strings.Join(q.taken, " ") != "cli cli cli" || len(q.ended) != 2 || q.ended[0] < 1000 || q.ended[0] > 2500 ||
		q.ended[1] != q.ended[0] {
		t.Errorf("taken by %q, ended with %d", q.taken, q.ended)
	}
	events := rec.all()
	refused := events[len(events)-2]
	if refused.Err == nil || refused.Err.Code != host.Busy || refused.By != approval.ByPolicy ||
		len(second.requests()) != 2 {
		t.Errorf("%+v, %d calls were run", refused, len(second.requests()))
	}
}
