package wasm

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
)

// serving returns the functions of the host that serve the requests of a call.
func serving(r *host.Request) *hostcall.Functions {
	f := &hostcall.Functions{Denied: func(right, why string) { r.Deny(right, why) }}
	r.Ask = f.Ask
	return f
}

// on calls receive for each event of a kind, in addition to what was set before.
func on(r *host.Request, kind string, receive func(job.Event)) {
	r.Wants.Log = r.Wants.Log || kind == job.EventLog
	r.Wants.Progress = r.Wants.Progress || kind == job.EventProgress
	before := r.Events
	r.Events = func(e job.Event) error {
		if e.Kind == kind {
			receive(e)
		}
		if before != nil {
			return before(e)
		}
		return nil
	}
}

// denialsOf returns a list that fills with what a call denies, each once.
func denialsOf(r *host.Request) *[]grant.Denial {
	denied := &[]grant.Denial{}
	on(r, job.EventDenied, func(e job.Event) {
		if d := (grant.Denial{Right: e.Right, Why: e.Why}); !slices.Contains(*denied, d) {
			*denied = append(*denied, d)
		}
	})
	return denied
}

// TestGuestFunctions checks that a guest, or a process in its place, cannot ask the host for what guests do not
// import.
func TestGuestFunctions(t *testing.T) {
	r := &host.Request{}
	serving(r).MayCall = func(context.Context, string) bool { return true }
	serving(r).BoundSecret = func(context.Context, string) (job.BoundSecret, error) {
		return job.BoundSecret{Value: "hidden"}, nil
	}
	for _, function := range []string{job.AskMayCall, job.AskBoundSecret, job.AskLast, "", "CALL_TOOL"} {
		reply := guest.ServeGuest(t.Context(), r, function, []byte(`{"name":"KEY","tool":"x"}`))
		if !strings.Contains(string(reply), `"code":"not_found"`) {
			t.Errorf("%q: %s", function, reply)
		}
	}
}
