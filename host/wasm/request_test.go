package wasm

import "github.com/parley-tools/parley/host"

// serving returns the functions of the host that serve the requests of a call.
func serving(r *host.Request) *host.Functions {
	f := &host.Functions{Denied: func(right, why string) { r.Deny(right, why) }}
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

// denialsOf returns a list that fills with what a call denies.
func denialsOf(r *host.Request) *[]host.Denial {
	denied := &[]host.Denial{}
	on(r, host.EventDenied, func(e host.JobEvent) { *denied = append(*denied, host.Denial{Right: e.Right, Why: e.Why}) })
	return denied
}
