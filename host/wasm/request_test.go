package wasm

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
)

// serving returns the functions of the host that serve the requests of a call.
func serving(r *host.Request) *hostcall.Functions {
	f := &hostcall.Functions{Denied: func(right, why string) { r.Deny(right, why) }}
	r.Ask = f.Ask
	return f
}

// on calls receive for each event of a kind, in addition to what was set before.
func on(r *host.Request, kind string, receive func(host.JobEvent)) {
	r.Wants.Log = r.Wants.Log || kind == host.EventLog
	r.Wants.Progress = r.Wants.Progress || kind == host.EventProgress
	before := r.Events
	r.Events = func(e host.JobEvent) error {
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
func denialsOf(r *host.Request) *[]host.Denial {
	denied := &[]host.Denial{}
	on(r, host.EventDenied, func(e host.JobEvent) {
		if d := (host.Denial{Right: e.Right, Why: e.Why}); !slices.Contains(*denied, d) {
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
	serving(r).BoundSecret = func(context.Context, string) (host.BoundSecret, error) {
		return host.BoundSecret{Value: "hidden"}, nil
	}
	for _, function := range []string{host.AskMayCall, host.AskBoundSecret, host.AskLast, "", "CALL_TOOL"} {
		reply := guest.ServeGuest(t.Context(), r, function, []byte(`{"name":"KEY","tool":"x"}`))
		if !strings.Contains(string(reply), `"code":"not_found"`) {
			t.Errorf("%q: %s", function, reply)
		}
	}
}
