package call_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
)

// TestResultToWriter checks that the provider can write its output and ask which record is the
// last, and that a written result has no data.
func TestResultToWriter(t *testing.T) {
	var seen *host.Request
	last := false
	f := newFake(t, shop, map[string]handler{"echo": func(_ context.Context, r *host.Request) (*job.Result, error) {
		seen = r
		last = isLast(t.Context(), r, json.RawMessage("1")) && !isLast(t.Context(), r, json.RawMessage("2"))
		n, err := io.WriteString(r.Output(), "written")
		return &job.Result{Written: int64(n), Raw: r.Drain, Warnings: []string{"so"}}, err
	}})
	var out bytes.Buffer
	a, _ := newHost(t, call.Config{}, f.builtin()).Call(t.Context(), host.Call{
		Name: "shop.echo", Principal: cli,
		Sink: host.Sink{Wants: job.Wants{Output: true}, Drain: true,
			Event: func(e job.Event) error { _, err := out.Write(e.Output); return err },
			Last:  func(r json.RawMessage) bool { return string(r) == "1" }},
	})
	if a.Err != nil || a.Written != 7 || !a.Raw || len(a.Data) != 0 || out.String() != "written" || len(a.Warnings) != 1 {
		t.Errorf("answer %+v, out %q", a, out.String())
	}
	if !seen.Wants.Until || !last {
		t.Error("the end of streams is not passed on")
	}
}
