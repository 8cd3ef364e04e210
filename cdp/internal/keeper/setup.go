package keeper

import (
	"os"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
)

// setup is what a session has set up for its pages, frames and popups, present and later ones. It ends with the
// session.
type setup struct {
	scripts []api.PageScript // run at the start of each document
	rules   []*routeRule     // for requests
	uploads string           // the folder of files that its pages may get; "" if there is none yet
}

// setups are the set-ups of all sessions. The engine is locked for its methods.
type setups struct {
	mux       *mux.Mux
	bySession map[string]*setup
	dir       string // for the folders of uploads
	folders   int    // so far
}

func newSetups(m *mux.Mux) *setups { return &setups{mux: m, bySession: map[string]*setup{}} }

// end ends the set-ups of sessions.
func (ss *setups) end(ends func(session string) bool) {
	for session, s := range ss.bySession {
		if !ends(session) {
			continue
		}
		delete(ss.bySession, session)
		if s.uploads != "" {
			go os.RemoveAll(s.uploads)
		}
	}
}

// of returns the set-up of a session, which it creates if necessary.
func (ss *setups) of(session string) *setup {
	s := ss.bySession[session]
	if s == nil {
		s = &setup{}
		ss.bySession[session] = s
	}
	return s
}

// applied is what of its session's set-up a target has.
type applied struct {
	worlds  map[string]bool // of scripts
	pending int             // scripts that Chrome has not confirmed yet
	routed  bool
}

// apply applies the set-up of its session to a target. For a target that begins that is before it runs.
func (ss *setups) apply(t *target) {
	s := ss.bySession[t.owner]
	if s == nil || t.Session == "" || !hasPage(t.kind) || t.hidden {
		return
	}
	for _, script := range s.scripts {
		if t.worlds[script.World()] {
			continue
		}
		if t.worlds == nil {
			t.worlds = map[string]bool{}
		}
		t.worlds[script.World()] = true
		t.pending++
		postCommand(ss.mux, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: script.Program(), WorldName: script.World(), RunImmediately: new(true),
		}, func(mux.Reply) {
			t.pending--
			ss.mux.Broadcast()
		})
	}
	switch {
	case len(s.rules) > 0:
		t.routed = true
		postCommand(ss.mux, t, fetch.Enable, fetch.EnableParams{Patterns: patternsOf(s.rules)}, nil)
	case t.routed:
		t.routed = false
		postCommand(ss.mux, t, fetch.Disable, cdp.Empty{}, nil)
	}
}

// applyToAll applies the set-up of a session to all its targets. The engine is locked.
func (ow *owners) applyToAll(session string) {
	for _, t := range ow.tracker.order {
		if t.owner == session {
			ow.setups.apply(t)
		}
	}
}
