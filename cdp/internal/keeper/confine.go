package keeper

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/manifest"
)

// A command that names a target in CallRequest.Target goes to that target, which must belong to the caller. But
// some commands name targets, sessions and contexts in their parameters, or concern the browser as a whole. For all
// callers except the command line, the functions below limit those commands to what belongs to the caller.

// denyReason returns why a caller never gets a command, whatever was granted, or "" if it can. The reviewed table of
// the protocol says so.
func denyReason(by Caller, method string) string {
	return protocol.Embedded().Rights(method).Refusal(by.isPlugin())
}

// takesContext reports whether a plugin's command goes to the browser, with the plugin's context filled in: without one
// Chrome uses the default context, for Storage.getCookies even in the session of a page elsewhere.
func takesContext(method string) bool { return protocol.Embedded().Rights(method).InContext() }

// confine limits a call to what belongs to the caller and fills in the parameters that the keeper knows. s is the
// plugin's scope, nil for other callers.
func (e *engine) confine(by Caller, s *scope, q *CallRequest) *Error {
	if why := denyReason(by, q.Method); why != "" {
		return errf(CodeDenied, "%s is never available to %s: %s", q.Method, manifest.Clip(by.Name, 80), why)
	}
	if s != nil && q.Target == BrowserTarget {
		return errf(CodeDenied, "a plugin cannot send %s to the browser itself: name one of its targets, or no target",
			q.Method)
	}
	if q.Target == BrowserTarget && domainOf(q.Method) == "Fetch" {
		return errf(CodeDenied, "%s sent to the browser itself would pause the requests of all callers: send it to a target",
			q.Method)
	}
	params := map[string]json.RawMessage{}
	if len(q.Params) > 0 {
		if err := json.Unmarshal(q.Params, &params); err != nil {
			return errf(CodeInvalidArgs, "the parameters of %s: %v", q.Method, err)
		}
	}
	if s != nil && takesContext(q.Method) && params["browserContextId"] == nil {
		params["browserContextId"] = quote(string(s.context))
	}
	if s != nil && (isBrowserDomain(domainOf(q.Method)) || takesContext(q.Method)) {
		if err := e.routeToBrowser(by, q, params); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if q.Method == cdptarget.CommandCreateTarget {
		for _, name := range []string{"forTab", "hidden"} {
			if given := string(params[name]); given != "" && given != "false" {
				return errf(CodeDenied, "%s with %s is available only to the command line: "+
					"it creates targets that do not count as pages",
					q.Method, name)
			}
		}
		if err := e.checkPageLimit(by); err != nil {
			return err
		}
	}
	if domain := domainOf(q.Method); domain == "Target" || domain == "Browser" {
		if err := e.checkIDs(by, params); err != nil {
			return err
		}
	}
	if raw, named := params["browserContextId"]; named {
		var id string
		if json.Unmarshal(raw, &id) != nil || s != nil && id != string(s.context) || s == nil && e.contextOwners[id] != "" {
			return errf(CodeNotFound, "%s has no browser context with that id", manifest.Clip(by.Name, 80))
		}
	}
	q.Params = mustJSON(params)
	return nil
}

// routeToBrowser sends a plugin's command of a browser domain to the browser itself, because a page's session could
// return more than the plugin's own. Commands about a target get the id of the target that the plugin addressed.
func (e *engine) routeToBrowser(by Caller, q *CallRequest, params map[string]json.RawMessage) *Error {
	about := q.Method == cdptarget.CommandGetTargetInfo || q.Method == cdpbrowser.CommandGetWindowForTarget
	if about && params["targetId"] == nil {
		t, err := e.resolve(by, q.Target)
		if err != nil {
			return err
		}
		params["targetId"] = quote(t.id)
	}
	q.Target = BrowserTarget
	return nil
}

// checkIDs rejects target and session ids that do not belong to the caller, with the same error whether they exist
// or not. The engine is locked.
func (e *engine) checkIDs(by Caller, params map[string]json.RawMessage) *Error {
	for _, kind := range []struct {
		name string
		find func(id string) *target
	}{
		{"targetId", func(id string) *target { return e.targets[id] }},
		{"sessionId", func(id string) *target { return e.sessionOf(id) }},
	} {
		raw, named := params[kind.name]
		if !named {
			continue
		}
		var id string
		if err := json.Unmarshal(raw, &id); err != nil {
			return errf(CodeInvalidArgs, "/%s is not a string", kind.name)
		}
		t := kind.find(id)
		if t == nil && !by.isPlugin() {
			continue // for example a tab, which the keeper does not track
		}
		if t == nil || !e.canUse(by, t) {
			return errf(CodeNotFound, "%s has no target with the %s %q",
				manifest.Clip(by.Name, 80), kind.name, manifest.Clip(id, 80))
		}
	}
	return nil
}

// sessionOf returns the target of a session, including the extra sessions that callers created.
func (e *engine) sessionOf(id string) *target {
	if t := e.sessions[id]; t != nil {
		return t
	}
	return e.extraSessions[id]
}

func domainOf(method string) string {
	domain, _, _ := strings.Cut(method, ".")
	return domain
}

// filterResult removes from a result what does not belong to the caller.
func (e *engine) filterResult(by Caller, s *scope, method string, result json.RawMessage) json.RawMessage {
	switch method {
	case cdptarget.CommandGetTargets:
		var all struct {
			Infos []json.RawMessage `json:"targetInfos"`
		}
		if json.Unmarshal(result, &all) != nil {
			return json.RawMessage(`{"targetInfos":[]}`)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		all.Infos = slices.DeleteFunc(all.Infos, func(raw json.RawMessage) bool {
			var info targetInfo
			if json.Unmarshal(raw, &info) != nil {
				return true
			}
			if t := e.targets[info.ID]; t != nil {
				return !e.canUse(by, t)
			}
			return !by.canSee(e.contextOwners[info.Context])
		})
		return mustJSON(all)
	case cdptarget.CommandGetBrowserContexts:
		if s != nil {
			return mustJSON(map[string][]string{"browserContextIds": {string(s.context)}})
		}
	}
	return result
}

// callConfined is call for all callers except the command line.
func (e *engine) callConfined(ctx context.Context, by Caller, q CallRequest) reply {
	var s *scope
	if by.isPlugin() {
		entered, release, err := e.enterScope(ctx, by)
		if err != nil {
			return reply{err: err}
		}
		defer release()
		s = entered
	}
	if err := e.confine(by, s, &q); err != nil {
		return reply{err: err}
	}
	switch {
	case s != nil && q.Method == cdptarget.CommandDisposeBrowserContext:
		return reply{result: json.RawMessage("{}"), err: e.dispose(s)}
	case s != nil && q.Target == "":
		if err := e.firstPage(ctx, by, s); err != nil {
			return reply{err: err}
		}
	}
	since := 0
	if s != nil {
		since = s.proxy.refusalCount()
	}
	r := e.dispatch(ctx, by, q)
	switch {
	case r.err != nil || r.spool != nil:
	case s != nil && navigationFailed(r.result):
		var asked struct {
			URL string `json:"url"`
		}
		json.Unmarshal(q.Params, &asked)
		if refused := s.dialError(since, asked.URL); refused != nil {
			return reply{err: refused}
		}
	default:
		r.result = e.filterResult(by, s, q.Method, r.result)
	}
	return r
}

// assignCreated makes the caller the owner of the target that its command created.
func (e *engine) assignCreated(by Caller, result json.RawMessage) {
	var made struct {
		ID string `json:"targetId"`
	}
	if json.Unmarshal(result, &made) != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.targets[made.ID]; t != nil {
		e.assign(t, by)
	}
}
