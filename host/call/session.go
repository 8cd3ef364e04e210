package call

import (
	"context"
	"errors"
	"time"

	"github.com/parley-tools/parley/host"
)

// EndSession ends a session: each provider closes what the session has opened, then what was remembered and stored for
// it is deleted, and subscribers get an event with the op "session_end".
func (h *Host) EndSession(ctx context.Context, of host.Session) error {
	var failures []error
	for _, e := range h.sessionEnders() {
		failures = append(failures, e.EndSession(ctx, of))
	}
	h.cfg.Sessions.Delete(of)
	h.notify(host.Event{Time: time.Now(), Op: "session_end", Session: of.String()})
	return errors.Join(failures...)
}

// EndConnection tells the providers that a connection has ended. What was opened over it is closed after a grace, and a
// temporary session ends with it.
func (h *Host) EndConnection(of host.Session) {
	for _, e := range h.sessionEnders() {
		e.EndConnection(of.Connection)
	}
	if of.Temporary {
		h.cfg.Sessions.Delete(of)
		h.notify(host.Event{Time: time.Now(), Op: "session_end", Session: of.String()})
	}
}

func (h *Host) sessionEnders() (all []host.SessionEnder) {
	for _, p := range h.Catalog().Providers() {
		if e, ok := host.Base(p).(host.SessionEnder); ok {
			all = append(all, e)
		}
	}
	return all
}
