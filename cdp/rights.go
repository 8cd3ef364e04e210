package cdp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// The host decides which tools a caller may call, which URLs it opens and which files it names. This file checks what
// only Chrome's meaning of a parameter shows: which program a call would start, whether it downloads or pastes.

// onBehalfOf returns the connection acting for the caller of r. It records in r which rights the pages have used.
func onBehalfOf(c *keeper.Client, r *host.Request) *keeper.Client {
	return c.As(callerOf(r)).WithUseRecorder(r.RecordUse)
}

func callerOf(r *host.Request) api.Caller {
	by := api.Caller{
		Name: r.Caller, Session: sessionKey(r.Session.Key()), Connection: r.Session.Connection,
		Temporary: r.Session.Temporary,
		Anonymous: r.Session.Owner != "" && r.Session.Name == "" && r.Session.Plugin == nil,
	}
	for _, key := range r.Session.Within {
		by.Within = append(by.Within, sessionKey(key))
	}
	if by.Session == api.DefaultSession && !isPerson(r.Caller) && !isPlugin(r.Caller) {
		by.Session = "" // without a named session, a program uses the session of its own name, not the person's
	}
	if name := r.Options.Context; name != "" { // the keeper treats it as another session, which ends with this one
		of := by.SessionKey()
		by.Within = append([]string{of}, by.Within...)
		if of == api.DefaultSession {
			of = (caller.Session{}).Key()
		}
		by.Session = of + contextMark + name
	}
	if p := r.Session.Plugin; p != nil {
		by.Digest, by.HTTP = p.Digest, p.Grant.HTTP
		for _, g := range p.Grant.FS {
			if g.Mode == "rw" {
				by.Folders = append(by.Folders, g.Source)
			}
		}
	}
	return by
}

// contextMark separates the key of a session from the name of a further browser context. No name contains it.
const contextMark = "#"

// sessionKey returns the keeper's key of a session.
func sessionKey(key string) string {
	if key == (caller.Session{}).Key() {
		return api.DefaultSession
	}
	return key
}

func isPerson(caller string) bool { return caller == "cli" }

func isPlugin(caller string) bool { return strings.HasPrefix(caller, "plugin:") }

// confine rejects a call whose parameters its caller may not use. The host has checked what the tool declares: the URLs
// that it opens and the files that it names.
func confine(r *host.Request) error {
	if isPerson(r.Caller) {
		return nil
	}
	if why := protocol.Embedded().Rights(r.Tool).Refusal(false); why != "" { // also where no browser is open
		return deny("%s is never available to %s: %s", r.Tool, manifest.Clip(r.Caller, 80), why)
	}
	var params map[string]any
	if err := json.Unmarshal(r.Params, &params); err != nil && len(r.Params) > 0 {
		return host.Errorf(host.InvalidArgs, "parameters must be a JSON object")
	}
	if r.Tool == "open" {
		if err := checkOpenParams(r.Caller, params); err != nil {
			return err
		}
	}
	if !isPlugin(r.Caller) {
		return nil
	}
	if err := checkDownloads(r.Tool, params); err != nil || !pastes(r.Tool, params) {
		return err
	}
	return CheckPaste(r, Name+"."+r.Tool)
}

// checkOpenParams rejects parameters of open that select more than a page: a program to run, a folder of this machine,
// a user's own browser.
func checkOpenParams(caller string, params map[string]any) error {
	for _, name := range []string{"chrome", "user_data_dir"} {
		if params[name] != nil {
			return deny("open: only the command line can set %s, because it selects a program or a folder of this machine", name)
		}
	}
	to, _ := params["attach"].(string)
	if _, isFolder, _ := browser.Endpoint(to); isFolder {
		return deny("open: only the command line can attach to a folder; give the port or the address of the browser")
	}
	if params["attach"] != nil && isPlugin(caller) {
		return deny("open: plugins cannot use a browser that Parley is attached to: it is a user's own")
	}
	return nil
}

// grantedByName reports whether the calling plugin was granted a tool by its name, without a wildcard.
func grantedByName(r *host.Request, tool string) bool {
	return slices.ContainsFunc(r.CallerGrant.Tools, func(g string) bool { return strings.EqualFold(g, tool) })
}

// pastes reports whether a call sends a key event that pastes.
func pastes(tool string, params map[string]any) bool {
	switch tool {
	case "Input.dispatchKeyEvent":
		return isPaste(params)
	case "input":
		events, _ := params["events"].([]any)
		return slices.ContainsFunc(events, func(event any) bool {
			fields, _ := event.(map[string]any)
			return isPaste(fields)
		})
	}
	return false
}

// isPaste reports whether a key event pastes the clipboard into the page. All pages of a browser share one clipboard,
// and with visible windows it is the user's. Chrome pastes on Ctrl+V and Shift+Insert, by key code, and on editor
// commands, which any key event can carry.
func isPaste(params map[string]any) bool {
	commands, _ := params["commands"].([]any)
	for _, c := range commands {
		if name, ok := c.(string); !ok || strings.Contains(strings.ToLower(name), "paste") {
			return true
		}
	}
	const ctrl, meta, shift = 2, 4, 8
	const keyV, keyInsert = 'V', 45
	number := func(name string) int { // Chrome accepts 86.0 as an integer
		f, _ := params[name].(float64)
		return int(f)
	}
	modifiers, code := number("modifiers"), number("windowsVirtualKeyCode")
	return code == keyV && modifiers&(ctrl|meta) != 0 || code == keyInsert && modifiers&shift != 0
}

func deny(format string, args ...any) *host.Error {
	return host.Errorf(host.Denied, format+"; nothing was run", args...)
}

// grantStep returns the operator's step that grants a right to the plugin that made the call.
func grantStep(r *host.Request, right string) step.Step {
	plugin := strings.TrimPrefix(r.Caller, "plugin:")
	return step.Operator(step.OpPolicyGrant, manifest.CleanLine(plugin), manifest.CleanLine(right))
}

// checkDownloads rejects downloads of a plugin to a folder that it does not name.
func checkDownloads(tool string, params map[string]any) error {
	if _, method, _ := strings.Cut(tool, "."); method != "setDownloadBehavior" || params["behavior"] == "deny" {
		return nil
	}
	folder, _ := params["downloadPath"].(string)
	if behavior := params["behavior"]; folder == "" || behavior != "allow" && behavior != "allowAndName" {
		return deny("%s: a plugin can only download into a granted folder: behavior must be allow, allowAndName or "+
			"deny, with the folder as downloadPath", tool)
	}
	return nil
}
