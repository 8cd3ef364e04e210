package keeper

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

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
	applied   map[*target]*applied
	dir       string // for the folders of uploads
	folders   int    // so far
}

func newSetups(m *mux.Mux) *setups {
	return &setups{mux: m, bySession: map[string]*setup{}, applied: map[*target]*applied{}}
}

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
	worlds map[string]bool // of scripts
	routed bool
}

// apply applies the set-up of its session to a target. For a target that begins that is before it runs.
func (ss *setups) apply(t *target) {
	s := ss.bySession[t.owner]
	if s == nil || t.Session == "" || !hasPage(t.kind) || t.hidden {
		return
	}
	a := ss.applied[t]
	if a == nil {
		a = &applied{worlds: map[string]bool{}}
		ss.applied[t] = a
	}
	for _, script := range s.scripts {
		if a.worlds[script.World()] {
			continue
		}
		a.worlds[script.World()] = true
		t.preparing++
		postCommand(ss.mux, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: script.Program(), WorldName: script.World(), RunImmediately: new(true),
		}, func(mux.Reply) {
			t.preparing--
			ss.mux.Broadcast()
		})
	}
	switch {
	case len(s.rules) > 0:
		a.routed = true
		postCommand(ss.mux, t, fetch.Enable, fetch.EnableParams{Patterns: patternsOf(s.rules)}, nil)
	case a.routed:
		a.routed = false
		postCommand(ss.mux, t, fetch.Disable, cdp.Empty{}, nil)
	}
}

// forget forgets what a target had, because its session has ended.
func (ss *setups) forget(t *target) { delete(ss.applied, t) }

// routes reports whether the requests of a target are paused for rules.
func (ss *setups) routes(t *target) bool { return ss.applied[t] != nil && ss.applied[t].routed }

// fulfillEmpty answers a paused request with an empty document.
func (ss *setups) fulfillEmpty(t *target, params json.RawMessage) {
	var p struct {
		ID fetch.RequestID `json:"requestId"`
	}
	if json.Unmarshal(params, &p) == nil {
		postCommand(ss.mux, t, fetch.FulfillRequest, fetch.FulfillRequestParams{RequestID: p.ID, ResponseCode: 200,
			ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html"}}}, nil)
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

// maxUploads limits the files that a session uploads: Chrome reads one when it is sent, so that it has to stay.
const maxUploads = 200

// uploadFolder returns the folder for uploads of a session, which it creates if necessary.
func (ss *setups) uploadFolder(session string) (string, *api.Error) {
	set := ss.of(session)
	if set.uploads == "" {
		ss.folders++
		dir := filepath.Join(ss.dir, strconv.Itoa(ss.folders))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", api.RunDirError(err)
		}
		set.uploads = dir
	}
	files, err := os.ReadDir(set.uploads)
	if err != nil {
		return "", api.RunDirError(err)
	}
	if len(files) >= maxUploads {
		return "", api.Errorf(api.CodeLimitExceeded, "a session uploads at most %d files; close it, and open it again",
			maxUploads)
	}
	return set.uploads, nil
}

// link gives a download the name that the page had given it, in the folder for uploads.
func (ss *setups) link(session, file, name string) (string, *api.Error) {
	dir, failed := ss.uploadFolder(session)
	if failed != nil {
		return "", failed
	}
	own, err := os.MkdirTemp(dir, "")
	if err != nil {
		return "", api.RunDirError(err)
	}
	path := filepath.Join(own, cmp.Or(name, filepath.Base(file)))
	if err := os.Link(file, path); err != nil {
		return "", api.RunDirError(err)
	}
	return path, nil
}
