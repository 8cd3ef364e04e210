package host

import (
	"context"
	"errors"
	"time"
)

// SessionEnder is a [Provider] that holds something open for sessions, such as pages of a browser.
type SessionEnder interface {
	// EndSession closes what a session has opened, and what plugins have opened on its behalf.
	EndSession(ctx context.Context, of Session) error
	// EndConnection is called when a connection has ended, by the id in [Session.Connection]. It does not wait.
	EndConnection(id string)
}

// EndSession ends a session: each provider closes what the session has opened, then what was remembered and stored for
// it is deleted, and subscribers get an event with the op "session_end".
func (h *Host) EndSession(ctx context.Context, of Session) error {
	var failures []error
	for _, e := range h.sessionEnders() {
		failures = append(failures, e.EndSession(ctx, of))
	}
	h.cfg.Sessions.delete(of)
	h.notify(Event{Time: time.Now(), Op: "session_end", Session: of.String()})
	return errors.Join(failures...)
}

// EndConnection tells the providers that a connection has ended. What was opened over it is closed after a grace, and a
// temporary session ends with it.
func (h *Host) EndConnection(of Session) {
	for _, e := range h.sessionEnders() {
		e.EndConnection(of.Connection)
	}
	if of.Temporary {
		h.cfg.Sessions.delete(of)
		h.notify(Event{Time: time.Now(), Op: "session_end", Session: of.String()})
	}
}

func (h *Host) sessionEnders() (all []SessionEnder) {
	for _, p := range h.Catalog().Providers() {
		if e, ok := Base(p).(SessionEnder); ok {
			all = append(all, e)
		}
	}
	return all
}
