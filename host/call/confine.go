package call

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// confineAll confines the parameters of the call and of its steps.
func (a *authorization) confineAll(context.Context) error {
	err := a.confine(a.decision)
	if err == nil {
		a.confineSteps()
	}
	return err
}

// confine checks the parameters that the tool declares as URLs and files. The command line may name any of them. Other
// callers may name http and https URLs, and a plugin only URLs of the origins that it was granted. Plugins may name
// files in the folders that they were granted, MCP clients files in the folders that the policy lists for them.
// a.confined then has the paths on this machine, or, if the tool gets no paths, the texts that stand for the files. A
// file to be made is FOLDER//REST: no link may lead out of FOLDER when it is made.
func (a *authorization) confine(d host.Decision) error {
	tool := a.params.At.Tool
	anything := a.call.Principal.Name == caller.CLI
	shares, saves := hasMark(tool, sharedMark), hasMark(tool, savedMark)
	if len(tool.URL)+len(tool.Files) == 0 || anything && !shares && !saves {
		return nil
	}
	params, err := jsontext.Decode(a.params.Value, jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		return err
	}
	for _, pointer := range tool.URL {
		if anything {
			break
		}
		if _, err := origin.VisitTexts(a.params.Tool, params, pointer, a.checkURL); err != nil {
			return err
		}
	}
	resolve := func(name string) (string, error) {
		switch {
		case saves:
			return a.resolveNew(d, name, anything)
		case anything:
			return a.behalf.shared.add(a.params.Tool, name, name, openAnywhere)
		}
		root, path, err := a.resolveFile(d, name, false)
		if err != nil || !shares {
			return path, err
		}
		return a.behalf.shared.add(a.params.Tool, name, path,
			func(path string) (*os.File, error) { return openWithin(root, path) })
	}
	for _, pointer := range tool.Files {
		if _, err := origin.VisitTexts(a.params.Tool, params, pointer, resolve); err != nil {
			return err
		}
	}
	a.confined = jsontext.Marshal(params)
	return nil
}

// checkURL checks a URL that the call opens.
func (a *authorization) checkURL(given string) (string, error) {
	if given == "" || given == "about:blank" {
		return given, nil
	}
	if scheme, _, ok := strings.Cut(given, "://"); !ok || !strings.EqualFold(scheme, "http") &&
		!strings.EqualFold(scheme, "https") {
		scheme, _, _ = strings.Cut(given, ":")
		return "", denied(a.params.Tool, "", "callers other than the command line can open only http and https pages and "+
			"about:blank; this is a "+host.Printable(strings.ToLower(strings.TrimSpace(scheme)))+": URL")
	}
	if !a.call.Principal.IsPlugin() {
		return given, nil
	}
	to, err := origin.Of(given)
	if err != nil {
		return "", denied(a.params.Tool, "", err.Error())
	}
	for _, g := range a.behalf.callerGrant.HTTP {
		if granted, err := origin.Parse(g.URL); err == nil && granted.Covers(to) {
			return given, nil
		}
	}
	asked := slices.ContainsFunc(a.behalf.callerAsks.HTTP, func(c manifest.HTTPCapability) bool {
		asks, err := origin.Parse(c.URL)
		return err == nil && asks.Covers(to) && (len(c.Methods) == 0 || slices.Contains(c.Methods, "GET"))
	})
	e := denied(a.params.Tool, "http:GET:"+to.String(), "a plugin can open only pages of origins that it was granted")
	return "", withGrantStep(a.call.Principal.Name, e, asked, "http:GET:"+to.String())
}

// resolveNew returns FOLDER//REST for a file that the caller wants to be made, or for the folder to make it in. The
// command line may name any path.
func (a *authorization) resolveNew(d host.Decision, name string, anything bool) (string, error) {
	if anything {
		path, err := filepath.Abs(name)
		return filepath.Dir(path) + "//" + filepath.Base(path), err
	}
	name = path.Clean(name)
	base := "."
	root, folder, err := a.resolveFile(d, name, true)
	if err != nil {
		base = path.Base(name)
		root, folder, err = a.resolveFile(d, path.Dir(name), true)
	}
	if err != nil {
		return "", err
	}
	rest, err := filepath.Rel(root, filepath.Join(folder, base))
	return root + "//" + rest, err
}

// resolveFile returns two paths on this machine: of the file or folder that the caller names, and of the folder that
// gives the right to it. The caller names it by its guest path or by its path on this machine. It must be in a granted
// folder, which must be writable if a folder is named; symbolic links are followed only inside it. A client may name a
// folder only to save a file.
func (a *authorization) resolveFile(d host.Decision, name string, saves bool) (root, file string, err error) {
	folders, plugin, relative := a.behalf.callerGrant.FS, a.call.Principal.IsPlugin(), ""
	byRoots := !plugin && d.Files == nil && !saves
	if !plugin {
		if name = path.Clean(name); !filepath.IsAbs(name) {
			name, relative = a.inRoots(name), "; a relative path needs a root of the client"
		}
		folders = nil
		for _, folder := range a.clientFolders(d, saves) {
			folders = append(folders, grant.FS{Path: filepath.ToSlash(folder), Source: folder, Mode: modes[saves]})
		}
	}
	if path.Clean(name) != name || !path.IsAbs(name) {
		return "", "", host.Errorf(host.InvalidArgs, "%s: %q is not an absolute path in its shortest form%s", a.params.Tool,
			manifest.CleanLine(name), relative)
	}
	refused := func(mode string) error {
		if plugin {
			return a.denyPluginFile(name, mode)
		}
		return a.denyClientFile(d, name, mode, saves)
	}
	mode := modes[saves]
	for _, pathOf := range []func(grant.FS) string{
		func(g grant.FS) string { return g.Path },
		func(g grant.FS) string { return filepath.ToSlash(g.Source) },
	} {
		for _, g := range folders {
			rest, within := relativeTo(name, pathOf(g))
			if !within {
				continue
			}
			root, err := filepath.EvalSymlinks(g.Source)
			source := ""
			if err == nil {
				source, err = filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(rest)))
			}
			if err != nil {
				return "", "", host.Errorf(host.InvalidArgs, "%s: %s does not exist", a.params.Tool, manifest.CleanLine(name))
			}
			info, err := os.Stat(source)
			own, folder := a.host.cfg.Own, filepath.Dir(source)
			if saves {
				folder = source
			}
			isOwn := err == nil && own.Guard().Denies(info)
			why := ""
			switch {
			case isOwn && info.Mode().IsRegular():
				why = "is not a file in a folder that can be granted: it is a file that Parley reads or writes itself; name " +
					"another file"
			case !isWithin(source, root):
				why = "is not a file in a folder that was granted: it is a link out of that folder; name the link's target"
			case byRoots && err == nil && !info.IsDir() && own.Check(source, false) != nil:
				why = "is in a folder of Parley or of a pseudo file system, whose files no call can name; name another file"
			case isOwn || !byRoots && own.Check(folder, saves) != nil:
				return "", "", refused(mode)
			case err == nil && (info.Mode().IsRegular() && !saves || info.IsDir() && g.Mode == "rw"):
				return root, source, nil
			case err != nil || !info.IsDir():
				why = "is not a regular file or a folder"
			}
			if why != "" {
				return "", "", denied(a.params.Tool, "", manifest.CleanLine(name)+" "+why)
			}
			mode = "rw"
		}
	}
	return "", "", refused(mode)
}

// clientFolders returns the folders whose files the calling client may name: the folders that the policy lists for it.
// If the policy has no list, it returns the client's roots, for reading only.
func (a *authorization) clientFolders(d host.Decision, saves bool) []string {
	if d.Files != nil || saves {
		return d.Files
	}
	return a.roots()
}

// roots returns the roots of the client without "/", which does not say where the client works.
func (a *authorization) roots() (roots []string) {
	if a.call.Principal.Roots != nil {
		roots, _ = a.call.Principal.Roots()
	}
	return slices.DeleteFunc(slices.Clone(roots), func(root string) bool { return filepath.Dir(root) == root })
}

// inRoots returns the path of a file that a client names relative to its roots, in the first root that has the file.
// It does not reveal whether a file outside the roots exists.
func (a *authorization) inRoots(name string) string {
	roots := a.roots()
	if len(roots) == 0 {
		return name
	}
	has := slices.IndexFunc(roots, func(root string) bool {
		file := filepath.Join(root, name)
		_, err := os.Stat(file)
		return err == nil && slices.ContainsFunc(roots, func(root string) bool { return isWithin(file, root) })
	})
	return filepath.Join(roots[max(has, 0)], name)
}

// modes maps whether a folder is written to the mode of its grant.
var modes = map[bool]string{false: "ro", true: "rw"}

// denyClientFile returns the error of a client that may not name a file, or a folder to save to. It says what the
// operator can do about it.
func (a *authorization) denyClientFile(d host.Decision, name, mode string, saves bool) error {
	client, folder, what := host.Printable(a.call.Principal.Name), path.Dir(name), "a file in"
	if saves {
		folder, what = name, "in"
	}
	e := denied(a.params.Tool, "", fmt.Sprintf("%s is not %s a folder that the policy lists under files for %s%s",
		host.Printable(name), what, client, a.explainRoots(name, d.Files != nil || saves)))
	switch err := a.host.cfg.Own.Check(folder, saves); {
	case mode == "rw" && !saves:
		e.Message += "; clients can name files, not folders"
	case err != nil: // err names folders of the user
		e.Message += "; the policy cannot list its folder, because that is /, in a pseudo file system, or around or in a " +
			"folder of Parley"
	default:
		e.Message += fmt.Sprintf("; the operator can add %q to files in [callers.%q] of policy.toml",
			host.Printable(folder), client)
		counting := slices.DeleteFunc(slices.Clone(a.clientFolders(d, false)), func(other string) bool {
			return filepath.ToSlash(other) == folder || a.host.cfg.Own.Check(other, false) != nil
		})
		if len(counting) > 0 {
			e.Message += fmt.Sprintf(`; that list replaces the current one, so also list "%s"`,
				manifest.Clip(manifest.CleanLine(strings.Join(counting, `", "`)), 200))
		}
	}
	return e
}

// explainRoots returns why the roots of a client give no right to a file, "" for a client without roots. byList means
// that only the list of the policy counts.
func (a *authorization) explainRoots(name string, byList bool) string {
	if a.call.Principal.Roots == nil {
		return ""
	}
	of, none := "the server's working folder", ", which is / or holds the home folder"
	if _, listed := a.call.Principal.Roots(); listed {
		of, none = "a root of the client", ", which lists none, or only /"
	}
	switch roots := a.roots(); {
	case byList && slices.ContainsFunc(roots, func(root string) bool { return isWithin(name, root) }):
		return "; it is in " + of + ", which allows only reading, and only if the policy has no files for the client"
	case byList:
		return ""
	case len(roots) == 0:
		return ", nor in " + of + none
	}
	return ", nor in " + of
}

// denyPluginFile returns the error of a plugin that may not name a file or, with the mode "rw", a folder.
func (a *authorization) denyPluginFile(name, mode string) error {
	e := denied(a.params.Tool, "fs:"+mode+":"+name+"=PATH", "it requires a grant of the folder that contains the file")
	folder := path.Dir(name)
	if mode == "rw" {
		folder = name
	}
	if a.host.cfg.Own.Check(folder, mode == "rw") != nil {
		// To say which of these it is would tell a plugin where the host's folders are.
		e.Message += "; it cannot be granted: the root, the host's folders, folders that contain those, and pseudo file " +
			"systems are out of reach"
		return e.WithSteps(step.Operator(step.OpPolicyExplain, host.Printable(strings.TrimPrefix(a.call.Principal.Name,
			caller.PluginPrefix))))
	}
	guest, asked := "/files", false
	for _, c := range a.behalf.callerAsks.FS {
		if !asked && (c.Mode == mode || c.Mode == "rw") {
			guest, asked = c.Path, true
		}
	}
	return withGrantStep(a.call.Principal.Name, e, asked, "fs:"+mode+":"+folder+"="+guest)
}

// relativeTo returns the path relative to a folder, and whether the folder is or contains it.
func relativeTo(name, folder string) (rest string, within bool) {
	if name == folder {
		return ".", true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(folder, "/")+"/")
}

// isWithin reports whether a file is in a folder of this machine, or is that folder.
func isWithin(file, folder string) bool {
	_, within := relativeTo(filepath.ToSlash(file), filepath.ToSlash(folder))
	return within
}

// denied returns the error of parameters that the caller may not use. right is the right that a grant could give, or
// "". With a right, the function that calls denied adds the step.
func denied(tool, right, why string) *host.Error {
	e := &host.Error{Code: host.Denied, Message: tool + ": " + why + "; nothing was run"}
	if right == "" {
		return e.WithSteps(step.Operator(step.OpPolicyExplain, tool))
	}
	right = manifest.CleanLine(right)
	e.Message = "not granted: " + right + ": " + e.Message
	e.Denied = []grant.Denial{{Right: right, Why: why}}
	return e
}

// withGrantStep adds the step that grants a right to the calling plugin. Where its manifest does not ask for the right,
// a grant would have no effect: the step then explains which rights it has.
func withGrantStep(who string, e *host.Error, asked bool, grant string) *host.Error {
	plugin := host.Printable(strings.TrimPrefix(who, caller.PluginPrefix))
	if !asked {
		e.Message += "; the manifest of " + plugin + " does not ask for it"
		return e.WithSteps(step.Operator(step.OpPolicyExplain, plugin))
	}
	return e.WithSteps(step.Operator(step.OpPolicyGrant, plugin, manifest.CleanLine(grant)))
}
