package keeper

import (
	"encoding/json"
	"slices"

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
func (tn *tenancy) confine(by Caller, s *scope, q *CallRequest) *Error {
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
		if err := tn.routeToBrowser(by, q, params); err != nil {
			return err
		}
	}
	tn.mu.Lock()
	defer tn.mu.Unlock()
	if q.Method == cdptarget.CommandCreateTarget {
		for _, name := range []string{"forTab", "hidden"} {
			if given := string(params[name]); given != "" && given != "false" {
				return errf(CodeDenied, "%s with %s is available only to the command line: "+
					"it creates targets that do not count as pages",
					q.Method, name)
			}
		}
		if err := tn.checkPageLimit(by); err != nil {
			return err
		}
	}
	if domain := domainOf(q.Method); domain == "Target" || domain == "Browser" {
		if err := tn.checkIDs(by, params); err != nil {
			return err
		}
	}
	if raw, named := params["browserContextId"]; named {
		var id string
		if json.Unmarshal(raw, &id) != nil || s != nil && id != string(s.context) || s == nil && tn.contextOwners[id] != "" {
			return errf(CodeNotFound, "%s has no browser context with that id", manifest.Clip(by.Name, 80))
		}
	}
	q.Params = mustJSON(params)
	return nil
}

// routeToBrowser sends a plugin's command of a browser domain to the browser itself, because a page's session could
// return more than the plugin's own. Commands about a target get the id of the target that the plugin addressed.
func (tn *tenancy) routeToBrowser(by Caller, q *CallRequest, params map[string]json.RawMessage) *Error {
	about := q.Method == cdptarget.CommandGetTargetInfo || q.Method == cdpbrowser.CommandGetWindowForTarget
	if about && params["targetId"] == nil {
		t, err := tn.resolve(by, q.Target)
		if err != nil {
			return err
		}
		params["targetId"] = quote(t.id)
	}
	q.Target = BrowserTarget
	return nil
}

// filterResult removes from a result what does not belong to the caller.
func (tn *tenancy) filterResult(by Caller, s *scope, method string, result json.RawMessage) json.RawMessage {
	switch method {
	case cdptarget.CommandGetTargets:
		var all struct {
			Infos []json.RawMessage `json:"targetInfos"`
		}
		if json.Unmarshal(result, &all) != nil {
			return json.RawMessage(`{"targetInfos":[]}`)
		}
		tn.mu.Lock()
		defer tn.mu.Unlock()
		all.Infos = slices.DeleteFunc(all.Infos, func(raw json.RawMessage) bool {
			var info targetInfo
			if json.Unmarshal(raw, &info) != nil {
				return true
			}
			if t := tn.targets[info.ID]; t != nil {
				return !tn.canUse(by, t)
			}
			return !by.canSee(tn.contextOwners[info.Context])
		})
		return mustJSON(all)
	case cdptarget.CommandGetBrowserContexts:
		if s != nil {
			return mustJSON(map[string][]string{"browserContextIds": {string(s.context)}})
		}
	}
	return result
}
