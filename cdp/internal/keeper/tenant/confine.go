package tenant

import (
	"encoding/json"
	"slices"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	cdptarget "github.com/chromedp/cdproto/target"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/manifest"
)

// A command that names a target in CallRequest.Target goes to that target, which must belong to the caller. But
// some commands name targets, sessions and contexts in their parameters, or concern the browser as a whole. The
// functions below limit those commands to what belongs to the caller's session.

// denyReason returns why the caller cannot get a command, whatever was granted, or "" if it can. It follows the
// reviewed table of the protocol.
func denyReason(by api.Caller, method string) string {
	if by.IsCommandLine() {
		return ""
	}
	return protocol.Embedded().Rights(method).Refusal(by.IsPlugin())
}

// checkShared denies a session a command that reaches pages of others, if there are such pages: pages of other
// sessions, and the user's pages in a browser that Parley did not start. These commands are the ones that the
// reviewed table denies to plugins. The mux is locked.
func (tn *Tenancy) checkShared(by api.Caller, method string) *api.Error {
	if by.IsPerson() || followsTargets(method) {
		return nil
	}
	rights := protocol.Embedded().Rights(method)
	// A command for the command line only needs no check: its caller is trusted with all pages.
	if rights.Refusal(true) == "" || rights.Refusal(false) != "" && by.IsCommandLine() ||
		!tn.tracker.External && tn.isAlone(by.SessionKey()) {
		return nil
	}
	return api.Errorf(api.CodeDenied, "%s reaches the pages of others in this browser: open a browser of your own, "+
		"with the option browser", method)
}

// followsTargets reports whether a command only follows targets, of which each session is told only its own, or
// creates a context, which belongs to the session.
func followsTargets(method string) bool {
	return slices.Contains([]string{cdptarget.CommandAutoAttachRelated, cdptarget.CommandSetAutoAttach,
		cdptarget.CommandSetDiscoverTargets, cdptarget.CommandCreateBrowserContext}, method)
}

// DisposedBy reports whether a command disposes of a scope's context. s may be nil.
func (s *Scope) DisposedBy(q api.CallRequest) bool {
	return s != nil && q.Method == cdptarget.CommandDisposeBrowserContext &&
		scan.Text(q.Params, "browserContextId") == string(s.Context)
}

// takesContext reports whether a session's command goes to the browser with the session's context filled in. Without
// a context Chrome uses the default one, for Storage.getCookies even in the session of a page in another context.
func takesContext(method string) bool { return protocol.Embedded().Rights(method).InContext() }

// Confine limits a call to what belongs to the caller's session and fills in the parameters that the keeper knows. s
// is the session's scope, nil for the default context.
func (tn *Tenancy) Confine(by api.Caller, s *Scope, q *api.CallRequest) *api.Error {
	if why := denyReason(by, q.Method); why != "" {
		return api.Errorf(api.CodeDenied, "%s is never available to %s: %s", q.Method, manifest.Clip(by.Name, 80), why)
	}
	ofBrowser := api.IsBrowserDomain(api.DomainOf(q.Method)) || takesContext(q.Method)
	if q.Target == api.BrowserTarget && (by.IsPlugin() || s != nil && !ofBrowser) {
		return api.Errorf(api.CodeDenied, "%s cannot send %s to the browser itself: name a target of its own, or no target",
			api.DisplayName(by.SessionKey()), q.Method)
	}
	if q.Target == api.BrowserTarget && api.DomainOf(q.Method) == "Storage" && !ofBrowser {
		// Chrome 148 crashes on some of these commands, with the pages of all sessions.
		return api.Errorf(api.CodeDenied, "%s cannot be sent to the browser itself: name a target, or none", q.Method)
	}
	if by.IsPerson() && !ofBrowser {
		return nil
	}
	params := map[string]json.RawMessage{}
	if len(q.Params) > 0 {
		if err := json.Unmarshal(q.Params, &params); err != nil {
			return api.Errorf(api.CodeInvalidArgs, "the parameters of %s: %v", q.Method, err)
		}
	}
	if s != nil && takesContext(q.Method) && params["browserContextId"] == nil {
		params["browserContextId"] = scan.Quote(string(s.Context))
	}
	if (s != nil || by.IsPlugin()) && ofBrowser {
		if err := tn.routeToBrowser(by, q, params); err != nil {
			return err
		}
	}
	tn.mux.Lock()
	defer tn.mux.Unlock()
	if err := tn.checkShared(by, q.Method); err != nil {
		return err
	}
	if q.Method == cdptarget.CommandCreateTarget && !by.IsCommandLine() {
		for _, name := range []string{"forTab", "hidden"} {
			if given := string(params[name]); given != "" && given != "false" {
				return api.Errorf(api.CodeDenied, "%s with %s is available only to the command line: "+
					"it creates targets that do not count as pages",
					q.Method, name)
			}
		}
		if err := tn.owners.checkPageLimit(by); err != nil {
			return err
		}
	}
	if domain := api.DomainOf(q.Method); domain == "Target" || domain == "Browser" {
		if err := tn.owners.checkIDs(by, params); err != nil {
			return err
		}
	}
	if raw, named := params["browserContextId"]; named {
		var id string
		if json.Unmarshal(raw, &id) != nil || !tn.owners.ownsContext(by, id) {
			return api.Errorf(api.CodeNotFound, "%s has no browser context with that id", manifest.Clip(by.Name, 80))
		}
	}
	if !by.IsPerson() {
		q.Params = scan.Marshal(params)
	}
	return nil
}

// routeToBrowser sends a session's command of a browser domain to the browser itself, because a page's session could
// return more than the session's own. Commands about a target get the id of the target that the plugin addressed.
func (tn *Tenancy) routeToBrowser(by api.Caller, q *api.CallRequest, params map[string]json.RawMessage) *api.Error {
	about := q.Method == cdptarget.CommandGetTargetInfo || q.Method == cdpbrowser.CommandGetWindowForTarget
	if about && params["targetId"] == nil {
		t, err := tn.owners.Resolve(by, q.Target)
		if err != nil {
			return err
		}
		params["targetId"] = scan.Quote(t.ID)
	}
	q.Target = api.BrowserTarget
	return nil
}

// FilterResult removes from a result what does not belong to the caller.
func (tn *Tenancy) FilterResult(by api.Caller, s *Scope, method string, result json.RawMessage) json.RawMessage {
	var list string
	var mayHave func(element []byte) bool
	switch method {
	case cdptarget.CommandGetTargets:
		list, mayHave = "targetInfos", func(info []byte) bool {
			id := scan.Text(info, "targetId")
			if t := tn.tracker.ByID[id]; t != nil {
				return tn.owners.CanUse(by, t)
			}
			return id != "" && tn.owners.ownsContext(by, scan.Text(info, "browserContextId"))
		}
	case cdptarget.CommandGetBrowserContexts:
		list, mayHave = "browserContextIds", func(element []byte) bool {
			id, err := scan.String(element)
			return err == nil && tn.owners.ownsContext(by, id)
		}
	default:
		return result
	}
	own := []json.RawMessage{}
	tn.mux.Lock()
	defer tn.mux.Unlock()
	scan.EachElement(scan.Field(result, list), func(element []byte) {
		if mayHave(element) {
			own = append(own, element)
		}
	})
	return scan.Marshal(map[string][]json.RawMessage{list: own})
}
