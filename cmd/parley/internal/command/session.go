package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// SessionData is a session of an agent. Without a name it is that of calls that name none.
type SessionData struct {
	Name    string             `json:"name"`            // with the owner before it, unless that is the user
	Used    *time.Time         `json:"used,omitempty"`  // last time that it was stored, looked up or used in a browser
	Shown   int                `json:"shown"`           // tools whose documentation it has been shown
	Results int                `json:"results"`         // whole results that are stored for it
	Pages   []SessionPagesData `json:"pages,omitempty"` // in the browsers that it uses

	stored host.StoredSession
}

// SessionPagesData are the pages of a session in one browser.
type SessionPagesData struct {
	Browser string `json:"browser"`
	Pages   int    `json:"pages"`
	Current string `json:"current,omitempty"` // URL of the current page
}

// SessionsData are the sessions that were used in the last 24 hours or have pages open.
type SessionsData struct {
	Sessions []*SessionData `json:"sessions"`
	Total    int            `json:"total"`
}

// SessionOptions say which sessions to list. The zero value lists those that the user has named.
type SessionOptions struct {
	// All adds the sessions of connections, tokens and plugins.
	All bool
}

// Sessions lists sessions, the one that was used last first. If a browser cannot be asked, that is a notice, and its
// pages are missing.
func Sessions(ctx context.Context, d *Deps, o SessionOptions) *SessionsData {
	all := d.sessions(ctx)
	if !o.All {
		all = slices.DeleteFunc(all, func(s *SessionData) bool {
			of := s.stored.Session
			return of.Owner != "" || isConnection(of.Name)
		})
	}
	return &SessionsData{all, len(all)}
}

// isConnection reports whether a session has the name that package mcp gives to a connection.
func isConnection(name string) bool {
	rest, is := strings.CutPrefix(name, "mcp-")
	return is && len(rest) == 24 && strings.Trim(rest, "0123456789abcdef") == ""
}

// sessions returns all sessions.
func (d *Deps) sessions(ctx context.Context) []*SessionData {
	all := []*SessionData{}
	byKey := map[string]*SessionData{}
	for _, s := range d.Parley().Sessions().List() {
		used := s.Used.UTC().Truncate(time.Second)
		data := &SessionData{
			Name: s.Session.String(), Used: &used, Shown: len(s.Shown), Results: len(s.Results), stored: s,
		}
		all, byKey[s.Session.Key()] = append(all, data), data
	}
	open, err := d.Parley().Chrome().Sessions(ctx)
	if err != nil {
		d.Notice("not all pages of sessions are known: " + manifest.CleanLine(err.Error()))
	}
	for _, o := range open {
		data := byKey[o.Session]
		if data == nil {
			of := host.SessionOf(o.Session)
			data = &SessionData{Name: of.String(), stored: host.StoredSession{Session: of}}
			all, byKey[o.Session] = append(all, data), data
		}
		if used := o.Used.UTC().Truncate(time.Second); !o.Used.IsZero() && (data.Used == nil || used.After(*data.Used)) {
			data.Used = &used
		}
		data.Pages = append(data.Pages, SessionPagesData{o.Browser, o.Pages, manifest.CleanLine(o.Current)})
	}
	slices.SortStableFunc(all, func(a, b *SessionData) int { return lastUse(b).Compare(lastUse(a)) })
	return all
}

// lastUse returns when a session was used, the zero time if that is unknown.
func lastUse(s *SessionData) (used time.Time) {
	if s.Used != nil {
		used = *s.Used
	}
	return used
}

// ShownSession is a session with everything that is known of it.
type ShownSession struct {
	Name    string              `json:"name"`
	Used    *time.Time          `json:"used,omitempty"`
	Shown   []host.ShownTool    `json:"shown"`
	Results []host.StoredResult `json:"results"`
	Pages   []SessionPagesData  `json:"pages"`
}

// ShowSession returns what a session was shown, the results that are stored for it, and its pages. The error is
// not_found for a name that no session has.
func ShowSession(ctx context.Context, d *Deps, name string) (*ShownSession, error) {
	s, err := d.findSession(ctx, name)
	if err != nil {
		return nil, err
	}
	return &ShownSession{
		Name: s.Name, Used: s.Used, Shown: append([]host.ShownTool{}, s.stored.Shown...),
		Results: append([]host.StoredResult{}, s.stored.Results...), Pages: append([]SessionPagesData{}, s.Pages...),
	}, nil
}

// EndedSession is a session that has been ended.
type EndedSession struct {
	Name    string `json:"name"`
	Pages   int    `json:"pages"`   // that it had open
	Results int    `json:"results"` // that were stored for it
}

// EndSession closes the pages of a session and deletes what is stored of it. The error is not_found for a name that no
// session has.
func EndSession(ctx context.Context, d *Deps, name string) (*EndedSession, error) {
	s, err := d.findSession(ctx, name)
	if err != nil {
		return nil, err
	}
	h, err := d.Host(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.EndSession(ctx, s.stored.Session); err != nil {
		var e *host.Error
		if errors.As(err, &e) {
			return nil, e
		}
		return nil, err
	}
	ended := &EndedSession{Name: s.Name, Results: s.Results}
	for _, p := range s.Pages {
		ended.Pages += p.Pages
	}
	return ended, nil
}

// findSession returns the session of a name.
func (d *Deps) findSession(ctx context.Context, name string) (*SessionData, error) {
	var names []string
	for _, s := range d.sessions(ctx) {
		if s.Name == name && name != "" {
			return s, nil
		}
		if s.Name != "" {
			names = append(names, s.Name)
		}
	}
	e := host.Errorf(host.NotFound, "no session is named %q", manifest.CleanLine(manifest.Clip(name, 80))).
		WithNext("parley session list", "parley session list --all")
	for _, n := range schema.Nearest(name, names, 3) {
		e.DidYouMean = append(e.DidYouMean, host.NearName(n))
	}
	return nil, e
}
