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

// What a caller may call is the host's to say, by policy. What is within a call is looked at here, for anybody but the person at the command line: which
// addresses it opens, which files it gives to a page, which program it would start.

// clientFor answers this process's connection to the browser of a call, in the name of who makes it.
func (p *Provider) clientFor(ctx context.Context, r *host.Request) (*keeper.Client, error) {
	c, err := p.client(ctx, r.Options.Browser)
	if err != nil {
		return nil, err
	}
	return onBehalfOf(c, r), nil
}

// onBehalfOf is a connection in the name of who makes a call, which tells the call what pages have dialled.
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

// confine answers a call as it may be made, the same for the person.
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
			return nil, denyUnnamed(r, "a key that pastes reads what others have copied, and what reaches outside a page is never granted by a wildcard")
		}
	}
	allowed := *r
	if allowed.Params, err = json.Marshal(params); err != nil {
		return nil, err
	}
	return &allowed, nil
}

// decodeParams reads parameters and with that leaves one spelling of them: a name that stands twice could be read in one way here and in another by Chrome.
func decodeParams(raw json.RawMessage) (map[string]any, error) {
	params := map[string]any{}
	if len(raw) == 0 {
		return params, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&params); err != nil || params == nil {
		return nil, host.Errorf(host.InvalidArgs, "parameters are an object: --params '{...}'")
	}
	return params, nil
}

// urlReferences are commands whose parameter url names something that is there already and opens nothing.
var urlReferences = []string{
	"DOMDebugger.setXHRBreakpoint", "DOMDebugger.removeXHRBreakpoint", "Debugger.setBreakpointByUrl",
	"Network.setCookie", "Network.deleteCookies", "Page.deleteCookie", "Page.getResourceContent", "Page.searchInResource", "Page.addCompilationCache",
}

// checkScheme refuses URLs that only the person may open, in whatever command: file:, chrome:, data: and all others but those of the web.
func checkScheme(tool string, params map[string]any) error {
	given, ok := params["url"].(string)
	if !ok || slices.Contains(urlReferences, tool) || keeper.MayOpen(given) {
		return nil
	}
	if err := checkURL(marshalOrNil(params)); err != nil {
		return err // is no URL at all, and this says what was meant
	}
	scheme, _, _ := strings.Cut(given, ":")
	return deny("", "%s: only http and https pages, and about:blank, are open to anybody but the command line; this is a %s: URL",
		tool, manifest.CleanLine(strings.ToLower(strings.TrimSpace(scheme))))
}

func marshalOrNil(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}

// checkOpenParams refuses what of open chooses more than a page: a program to run, a folder of this machine, somebody's own browser.
func checkOpenParams(caller string, params map[string]any) error {
	for _, name := range []string{"chrome", "user_data_dir"} {
		if params[name] != nil {
			return deny("", "open: %s names what of this machine is run or used, which is for the command line alone", name)
		}
	}
	if params["attach"] != nil && isPlugin(caller) {
		return deny("", "open: plugins do not work in a browser that Parley is attached to: it is somebody's own")
	}
	return nil
}

// checkKnown refuses a command that the protocol data does not know, unless the plugin was granted it by name: whether it reaches outside of a page cannot be told.
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
	return denyUnnamed(r, "what reaches outside a page is never granted by a wildcard, and of a command that is not known that cannot be told")
}

// grantedByName reports whether a plugin was granted a command by its name.
func grantedByName(r *host.Request) bool {
	return slices.ContainsFunc(r.CallerGrant.Tools, func(g string) bool { return strings.EqualFold(g, Name+"."+r.Tool) })
}

func denyUnnamed(r *host.Request, why string) error {
	right := "tool:" + Name + "." + r.Tool
	return deny(right, "%s", why).WithNext(grantCommand(r, right))
}

// isPaste reports whether a key would put the clipboard into the page: all pages of a browser have one, and where it shows windows it is the person's. Chrome
// takes Ctrl+V and Shift+Insert so, by the number of the key; commands of the editor can come with any.
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

// toInt reads an integer as Chrome does, which takes 86.0 for one.
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

func grantCommand(r *host.Request, right string) string {
	return "parley policy grant " + manifest.CleanLine(strings.TrimPrefix(r.Caller, "plugin:")) + " " + manifest.ShellQuote(manifest.CleanLine(right))
}

// resolveFiles holds the files that a command gives to a page, or takes from it, against the plugin's grants, and names them as this machine does.
func resolveFiles(r *host.Request, params map[string]any) error {
	switch r.Tool {
	case "DOM.setFileInputFiles":
		return resolvePaths(r, params, "files")
	case "Input.dispatchDragEvent": // what is dropped on a page is read by it
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
			return deny("", "%s: downloads of a plugin go to a folder that it was granted, or nowhere: behavior is allow, allowAndName or deny", r.Tool)
		}
		folder, _ := params["downloadPath"].(string)
		source, err := resolvePath(r, folder, "rw")
		if err != nil {
			return err
		}
		if info, err := os.Stat(source); err != nil || !info.IsDir() {
			return deny("", "%s: %s is no folder", r.Tool, manifest.CleanLine(folder))
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

// resolvePath finds a file or folder that a plugin names, as it sees it or as this machine does, within what it was granted. Links within are followed here, as
// far as they stay there.
func resolvePath(r *host.Request, name, mode string) (string, error) {
	right := "fs:" + mode + ":" + name + "=PATH"
	refused := deny(right, "%s reaches files only for a grant of the folder that they are in", r.Tool).
		WithNext(grantCommand(r, "fs:"+mode+":"+path.Dir(name)+"=/files"))
	if path.Clean(name) != name || !path.IsAbs(name) {
		return "", host.Errorf(host.InvalidArgs, "%s: %q is not an absolute and plain path", r.Tool, manifest.CleanLine(name))
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
				return "", host.Errorf(host.InvalidArgs, "%s: there is no %s", r.Tool, manifest.CleanLine(name))
			}
			if _, within := relativeTo(filepath.ToSlash(source), filepath.ToSlash(root)); !within {
				return "", refused
			}
			return source, nil
		}
	}
	return "", refused
}

// relativeTo answers what of a path follows a folder, if it is that folder or in it.
func relativeTo(name, folder string) (rest string, within bool) {
	if name == folder {
		return ".", true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(folder, "/")+"/")
}

// closeOwn is close for a plugin: it ends what the plugin has in the browser, which stays.
func (p *Provider) closeOwn(ctx context.Context, r *host.Request) (*host.Result, error) {
	c, err := p.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	pages, err := c.CloseAll(ctx)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(closeResult{pages}, "the browser stays open: it is not this plugin's alone")
}
