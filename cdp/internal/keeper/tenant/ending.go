package tenant

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// OpenSessions returns the sessions with a context or a page in the browser, sorted by name. The mux is locked.
func (tn *Tenancy) OpenSessions() []api.SessionInfo {
	pages := map[string]int{}
	for name := range tn.scopes {
		pages[name] = 0
	}
	for _, session := range tn.owners.createdContexts {
		pages[session] = 0
	}
	for _, t := range tn.tracker.All {
		if t.Kind == "page" && t.Owner != "" && t.EvictErr == nil {
			pages[t.Owner]++
		}
	}
	all := make([]api.SessionInfo, 0, len(pages))
	for name, n := range pages {
		if name == api.Disowned {
			continue
		}
		info := api.SessionInfo{Session: name, Pages: n}
		var used time.Time
		s := tn.scopes[name]
		switch {
		case name == api.DefaultSession:
			used = tn.defaultUsed
		case s != nil && s.activeCalls > 0:
			used = time.Now()
		case s != nil:
			used = s.lastUsed
		}
		if !used.IsZero() {
			info.Used = used.UnixMilli()
		}
		if t := tn.owners.current[name]; t != nil {
			info.Current = t.URL
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b api.SessionInfo) int { return strings.Compare(a.Session, b.Session) })
	return all
}

// isAlone reports whether no other session than this one, and the plugins that work for it, has anything in the
// browser. The mux is locked.
func (tn *Tenancy) isAlone(session string) bool {
	return !slices.ContainsFunc(tn.OpenSessions(), func(other api.SessionInfo) bool {
		return !tn.endsWith(other.Session, session)
	})
}

// endsWith reports whether a session is another one, or that of a plugin working for it. The mux is locked.
func (tn *Tenancy) endsWith(session, other string) bool {
	s := tn.scopes[session]
	return session == other || s != nil && slices.Contains(s.within, other)
}

// CloseSession closes what a session has opened, and what plugins have opened on its behalf.
func (tn *Tenancy) CloseSession(ctx context.Context, session string) (api.Closed, *api.Error) {
	ends := func(other string) bool { return tn.endsWith(other, session) }
	return tn.closeAll(ctx, ends, func(t *target.Target) bool { return ends(t.Owner) })
}

// CloseConnection closes what was opened over a connection that has ended.
func (tn *Tenancy) CloseConnection(ctx context.Context, id string) (api.Closed, *api.Error) {
	ends := func(session string) bool { return tn.scopes[session] != nil && tn.scopes[session].connection == id }
	return tn.closeAll(ctx, ends, func(t *target.Target) bool { return t.Origin.Connection == id })
}

// closeAll closes the contexts of the sessions that end, and other pages, and waits until these are gone. It
// calls the functions with the mux locked.
func (tn *Tenancy) closeAll(ctx context.Context, ends func(session string) bool, page func(*target.Target) bool) (
	api.Closed, *api.Error,
) {
	closed := api.Closed{Targets: []string{}, Contexts: []string{}}
	var scopes []*Scope
	var pages []*target.Target
	tn.mux.Lock()
	for name, s := range tn.scopes {
		if ends(name) {
			scopes = append(scopes, s)
		}
	}
	for id, session := range tn.owners.createdContexts {
		if ends(session) {
			closed.Contexts = append(closed.Contexts, id)
		}
	}
	for _, t := range tn.tracker.All {
		inContext := tn.scopes[t.Owner] != nil && ends(t.Owner)
		if t.Kind != "page" || t.Owner == "" || !inContext && !page(t) {
			continue
		}
		closed.Targets = append(closed.Targets, t.ID)
		if !inContext {
			pages = append(pages, t)
			tn.sender.PostClose(t.ID)
		}
	}
	tn.disposeCreated(ends)
	tn.owners.Setups.end(ends)
	tn.mux.Unlock()

	var failed *api.Error
	for _, s := range scopes {
		closed.Contexts = append(closed.Contexts, string(s.Context))
		if err := tn.Dispose(s); err != nil && failed == nil {
			failed = err // close the others nevertheless
		}
	}
	slices.Sort(closed.Contexts)
	err := tn.mux.Wait(ctx, "for the pages to close", func() (bool, *api.Error) {
		left := false
		for _, t := range pages {
			if t.Dialog != nil && t.Dialog.Type == api.BeforeUnload && !t.Closed {
				tn.sender.AnswerDialog(t, api.DialogAccept) // the page asks whether it may be left
			}
			left = left || !t.Closed
		}
		return !left, nil
	})
	return closed, cmp.Or(failed, err)
}

// disposeCreated closes the contexts that sessions have created by commands of their own. The mux is locked.
func (tn *Tenancy) disposeCreated(ends func(session string) bool) {
	for id, session := range tn.owners.createdContexts {
		if ends(session) {
			delete(tn.owners.createdContexts, id)
			target.Post(tn.mux, nil, cdptarget.DisposeBrowserContext,
				cdptarget.DisposeBrowserContextParams{BrowserContextID: cdp.BrowserContextID(id)}, nil)
		}
	}
}
