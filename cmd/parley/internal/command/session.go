package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
)

// SessionData is a session of an agent. A session without a name is the one of calls that name none.
type SessionData struct {
	Name    string             `json:"name"`            // preceded by the owner, unless that is the user
	Used    time.Time          `json:"used,omitzero"`   // last time that it was stored, looked up, or used in a browser
	Shown   int                `json:"shown"`           // number of tools whose documentation it was shown
	Results int                `json:"results"`         // number of whole results that are stored for it
	Pages   []SessionPagesData `json:"pages,omitempty"` // in the browsers that it uses

	Stored session.StoredSession `json:"-"`
}

// PageCount returns the number of the session's pages in all browsers.
func (s *SessionData) PageCount() (n int) {
	for _, p := range s.Pages {
		n += p.Pages
	}
	return n
}

// SessionPagesData are the pages of a session in one browser.
type SessionPagesData struct {
	Browser string `json:"browser"`
	Pages   int    `json:"pages"`
	Current string `json:"current,omitempty"` // URL of the current page
}

// Named reports whether the user has named the session. The sessions of connections, tokens and plugins are not.
func (s *SessionData) Named() bool {
	of := s.Stored.Session
	rest, is := strings.CutPrefix(of.Name, "mcp-") // package mcp names connections in this form
	return of.Owner == "" && !(is && len(rest) == 24 && strings.Trim(rest, "0123456789abcdef") == "")
}

// AllSessions returns the sessions that were used in the last 24 hours or have pages open, the last used first. If a
// browser cannot be asked, there is a notice, and its pages are missing.
func AllSessions(ctx context.Context, a *App) []*SessionData {
	all := []*SessionData{}
	byKey := map[string]*SessionData{}
	for _, s := range a.Parley().Sessions().List() {
		data := &SessionData{Name: s.Session.String(), Used: s.Used.UTC().Truncate(time.Second), Shown: len(s.Shown),
			Results: len(s.Results), Stored: s}
		all, byKey[s.Session.Key()] = append(all, data), data
	}
	open, err := a.Parley().Chrome().Sessions(ctx)
	if err != nil {
		a.Notice("not all pages of sessions are known: " + manifest.CleanLine(err.Error()))
	}
	for _, o := range open {
		data := byKey[o.Session]
		if data == nil {
			of := caller.SessionOf(o.Session)
			data = &SessionData{Name: of.String(), Stored: session.StoredSession{Session: of}}
			all, byKey[o.Session] = append(all, data), data
		}
		if used := o.Used.UTC().Truncate(time.Second); used.After(data.Used) {
			data.Used = used
		}
		data.Pages = append(data.Pages, SessionPagesData{o.Browser, o.Pages, manifest.CleanLine(o.Current)})
	}
	slices.SortStableFunc(all, func(s, t *SessionData) int { return t.Used.Compare(s.Used) })
	return all
}
