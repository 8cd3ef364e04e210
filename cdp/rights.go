package cdp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// The host's policy decides which tools a caller may call. This file checks the parameters of calls from every caller
// but the person at the command line: which addresses a call opens, which files it gives to a page, which program it
// would start.

// clientFor returns this process's connection to the browser of a call, acting for the caller.
func (p *Provider) clientFor(ctx context.Context, r *host.Request) (*keeper.Client, error) {
	c, err := p.client(ctx, r.Options.Browser)
	if err != nil {
		return nil, err
	}
	return onBehalfOf(c, r), nil
}

// onBehalfOf returns the connection acting for the caller of r. It records in r which rights the pages have used.
func onBehalfOf(c *keeper.Client, r *host.Request) *keeper.Client {
	return c.As(callerOf(r)).WithUseRecorder(r.RecordUse)
}

func callerOf(r *host.Request) keeper.Caller {
	by := keeper.Caller{Name: r.Caller}
	if isPlugin(r.Caller) {
		by.Digest, by.HTTP = r.CallerDigest, r.CallerGrant.HTTP
		for _, g := range r.CallerGrant.FS {
			if g.Mode == "rw" {
				by.Folders = append(by.Folders, g.Source)
			}
		}
	}
	return by
}

func isPerson(caller string) bool { return caller == "cli" }

func isPlugin(caller string) bool { return strings.HasPrefix(caller, "plugin:") }

// confine returns the call with parameters that its caller may use, or an error. Calls of the person are not changed.
func (p *Provider) confine(r *host.Request) (*host.Request, error) {
	if isPerson(r.Caller) {
		return r, nil
	}
	params, err := decodeParams(r.Params)
	if err != nil {
		return nil, err
	}
	if err := checkScheme(r.Tool, params); err != nil {
		return nil, err
	}
	if r.Tool == "open" {
		if err := checkOpenParams(r.Caller, params); err != nil {
			return nil, err
		}
	}
	if isPlugin(r.Caller) {
		if err := p.checkKnown(r); err != nil {
			return nil, err
		}
		if err := resolveFiles(r, params); err != nil {
			return nil, err
		}
		if isPaste(r.Tool, params) && !grantedByName(r) {
			return nil, denyUnnamed(r, "pasting reads the clipboard, which is outside the page, and a wildcard never grants "+
				"access outside the page")
		}
	}
	allowed := *r
	if allowed.Params, err = json.Marshal(params); err != nil {
		return nil, err
	}
	return &allowed, nil
}

// decodeParams decodes parameters. Encoding them again leaves one spelling: of a duplicate name, this package and
// Chrome could otherwise read different values.
func decodeParams(raw json.RawMessage) (map[string]any, error) {
	params := map[string]any{}
	if len(raw) == 0 {
		return params, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&params); err != nil || params == nil {
		return nil, host.Errorf(host.InvalidArgs, "parameters must be a JSON object")
	}
	return params, nil
}

// urlReferences are commands whose parameter url refers to something that exists already and opens nothing.
var urlReferences = []string{
	"DOMDebugger.setXHRBreakpoint", "DOMDebugger.removeXHRBreakpoint", "Debugger.setBreakpointByUrl",
	"Network.setCookie", "Network.deleteCookies", "Page.deleteCookie", "Page.getResourceContent", "Page.searchInResource",
	"Page.addCompilationCache",
}

// checkScheme rejects URLs that only the person may open, in any command: file:, chrome:, data: and all other schemes
// but http and https.
func checkScheme(tool string, params map[string]any) error {
	given, ok := params["url"].(string)
	if !ok || slices.Contains(urlReferences, tool) || keeper.MayOpen(given) {
		return nil
	}
	if err := checkURL(marshalOrNil(params)); err != nil {
		return err // not a URL at all; this error suggests what was meant
	}
	scheme, _, _ := strings.Cut(given, ":")
	return deny("", "%s: callers other than the command line can open only http and https pages and about:blank; this "+
		"is a %s: URL",
		tool, manifest.CleanLine(strings.ToLower(strings.TrimSpace(scheme))))
}

func marshalOrNil(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}

// checkOpenParams rejects parameters of open that select more than a page: a program to run, a folder of this machine,
// a user's own browser.
func checkOpenParams(caller string, params map[string]any) error {
	for _, name := range []string{"chrome", "user_data_dir"} {
		if params[name] != nil {
			return deny("", "open: only the command line can set %s, because it selects a program or a folder of this machine",
				name)
		}
	}
	if params["attach"] != nil && isPlugin(caller) {
		return deny("", "open: plugins cannot use a browser that Parley is attached to: it is a user's own")
	}
	return nil
}

// checkKnown rejects a command that the protocol data does not contain, unless the plugin was granted it by name: an
// unknown command may reach outside the page.
func (p *Provider) checkKnown(r *host.Request) error {
	if p.verbHandler(r.Tool) != nil {
		return nil
	}
	if _, ok := p.protocol.Command(r.Tool); ok {
		return nil
	}
	if grantedByName(r) {
		return nil
	}
	return denyUnnamed(r, "a wildcard never grants access outside the page, and this command is unknown, so it may "+
		"have such access")
}

// grantedByName reports whether a plugin was granted the command by its name, without a wildcard.
func grantedByName(r *host.Request) bool {
	return slices.ContainsFunc(r.CallerGrant.Tools, func(g string) bool { return strings.EqualFold(g, Name+"."+r.Tool) })
}

func denyUnnamed(r *host.Request, why string) error {
	right := "tool:" + Name + "." + r.Tool
	return deny(right, "%s", why).WithSteps(grantStep(r, right))
}

// isPaste reports whether a key event pastes the clipboard into the page. All pages of a browser share one clipboard,
// and with visible windows it is the user's. Chrome pastes on Ctrl+V and Shift+Insert, by key code, and on editor
// commands, which any key event can carry.
func isPaste(tool string, params map[string]any) bool {
	if tool != "Input.dispatchKeyEvent" {
		return false
	}
	commands, _ := params["commands"].([]any)
	for _, c := range commands {
		if name, ok := c.(string); !ok || strings.Contains(strings.ToLower(name), "paste") {
			return true
		}
	}
	const ctrl, meta, shift = 2, 4, 8
	const keyV, keyInsert = 'V', 45
	modifiers, code := toInt(params["modifiers"]), toInt(params["windowsVirtualKeyCode"])
	return code == keyV && modifiers&(ctrl|meta) != 0 || code == keyInsert && modifiers&shift != 0
}

// toInt reads an integer like Chrome, which accepts 86.0.
func toInt(v any) int {
	n, _ := v.(json.Number)
	f, _ := n.Float64()
	return int(f)
}

func deny(right, format string, args ...any) *host.Error {
	why := fmt.Sprintf(format, args...)
	e := &host.Error{Code: host.Denied, Message: why + "; nothing was run"}
	if right != "" {
		e.Message = "not granted: " + manifest.CleanLine(right) + ": " + e.Message
		e.Denied = []host.Denial{{Right: manifest.CleanLine(right), Why: why}}
	}
	return e
}

// grantStep returns the operator's step that grants a right to the plugin that made the call.
func grantStep(r *host.Request, right string) host.Step {
	plugin := strings.TrimPrefix(r.Caller, "plugin:")
	return host.OperatorStep(host.OpPolicyGrant, manifest.CleanLine(plugin), manifest.CleanLine(right))
}

// resolveFiles checks the files that a command passes to or from a page against the plugin's grants, and replaces their
// paths with those of this machine.
func resolveFiles(r *host.Request, params map[string]any) error {
	switch r.Tool {
	case "DOM.setFileInputFiles":
		return resolvePaths(r, params, "files")
	case "Input.dispatchDragEvent": // a page can read what is dropped on it
		if data, ok := params["data"].(map[string]any); ok && data["files"] != nil {
			return resolvePaths(r, data, "files")
		}
	case "Page.setDownloadBehavior", "Browser.setDownloadBehavior":
		switch params["behavior"] {
		case "deny":
			delete(params, "downloadPath")
			return nil
		case "allow", "allowAndName":
		default:
			return deny("", "%s: a plugin can only download into a granted folder: behavior must be allow, allowAndName or deny",
				r.Tool)
		}
		folder, _ := params["downloadPath"].(string)
		source, err := resolvePath(r, folder, "rw")
		if err != nil {
			return err
		}
		if info, err := os.Stat(source); err != nil || !info.IsDir() {
			return deny("", "%s: %s is not a folder", r.Tool, manifest.CleanLine(folder))
		}
		params["downloadPath"] = source
	}
	return nil
}

func resolvePaths(r *host.Request, in map[string]any, name string) error {
	given, ok := in[name].([]any)
	if !ok {
		return host.Errorf(host.InvalidArgs, "%s: /%s is a list of paths", r.Tool, name)
	}
	for i, value := range given {
		file, ok := value.(string)
		if !ok {
			return host.Errorf(host.InvalidArgs, "%s: /%s is a list of paths", r.Tool, name)
		}
		source, err := resolvePath(r, file, "ro")
		if err != nil {
			return err
		}
		given[i] = source
	}
	return nil
}

// resolvePath returns the path on this machine of a file or folder that a plugin names by its guest path or by its path
// on this machine. The file must be in a granted folder; symbolic links are followed only inside it.
func resolvePath(r *host.Request, name, mode string) (string, error) {
	right := "fs:" + mode + ":" + name + "=PATH"
	refused := deny(right, "%s requires a grant of the folder that contains the file", r.Tool).
		WithSteps(grantStep(r, "fs:"+mode+":"+path.Dir(name)+"=/files"))
	if path.Clean(name) != name || !path.IsAbs(name) {
		return "", host.Errorf(host.InvalidArgs, "%s: %q is not an absolute path in its shortest form", r.Tool,
			manifest.CleanLine(name))
	}
	for _, pathOf := range []func(host.FSGrant) string{
		func(g host.FSGrant) string { return g.Path },
		func(g host.FSGrant) string { return filepath.ToSlash(g.Source) },
	} {
		for _, g := range r.CallerGrant.FS {
			rest, within := relativeTo(name, pathOf(g))
			if !within || mode == "rw" && g.Mode != "rw" {
				continue
			}
			root, err := filepath.EvalSymlinks(g.Source)
			if err != nil {
				return "", refused
			}
			source, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(rest)))
			if err != nil {
				return "", host.Errorf(host.InvalidArgs, "%s: %s does not exist", r.Tool, manifest.CleanLine(name))
			}
			if _, within := relativeTo(filepath.ToSlash(source), filepath.ToSlash(root)); !within {
				return "", refused
			}
			if info, err := os.Stat(source); err != nil || r.Guard.Denies(info) {
				return "", refused
			}
			return source, nil
		}
	}
	return "", refused
}

// relativeTo returns the path relative to a folder, and whether the folder is or contains it.
func relativeTo(name, folder string) (rest string, within bool) {
	if name == folder {
		return ".", true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(folder, "/")+"/")
}

// closeOwn implements close for a plugin: it closes the plugin's pages. The browser stays open.
func (p *Provider) closeOwn(ctx context.Context, r *host.Request) (*host.Result, error) {
	c, err := p.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	pages, err := c.CloseAll(ctx)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(closeResult{pages}, "the browser stays open, because other callers can use it")
}
