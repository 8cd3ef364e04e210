// Package plugins has the command plugin, with subcommands for users and for authors of plugins.
package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/tools"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/oci"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Commands are the commands that this package has.
var Commands = command.Chapters{"Add plugins": {&command.Group{
	Use: "plugin", Short: "Build and install plugins", Of: []command.Maker{
		pluginInstallCommand,
		command.Plain("list", "List installed and shipped plugins", "parley plugin list --json", runPluginList),
		command.Plain("show NAME", "Show a plugin: version, digest, rights it asks for", "parley plugin show text",
			runPluginShow, command.CompletePlugins),
		command.Plain("remove NAME", "Remove an installed plugin", "parley plugin remove hello", runPluginRemove,
			command.FirstWord(installed)),
		pluginNewCommand, pluginSchemaCommand, pluginBuildCommand, pluginPackCommand, pluginRunCommand, pluginDevCommand,
		pluginWrapCommand, pluginPushCommand, pluginPullCommand, pluginUpdateCommand, pluginLockCommand, pluginSyncCommand,
		pluginCheckCommand, pluginTestCommand, pluginDiffCommand, pluginSignCommand, pluginVerifyCommand, pluginTrustCommand,
	}}}}

// runPluginList lists the plugins, each with its source and signer, but without the rights that it requests.
func runPluginList(_ context.Context, app *command.App, _ string) error {
	catalog, err := app.Catalog()
	entries, failed := app.Parley().Store().List()
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	data := struct {
		Plugins []Plugin `json:"plugins"`
		Total   int      `json:"total"`
	}{Plugins: []Plugin{}}
	for _, p := range catalog.Providers() {
		data.Plugins = append(data.Plugins, *plugin(app, p.Info(), entries, nil))
		data.Total++
	}
	return app.PrintNext(data, []string{"parley plugin install FILE", "parley plugin show text"}, func(w io.Writer) {
		for _, p := range data.Plugins {
			from := p.From
			if p.Signer != nil && p.KeyID != "" {
				from += "; " + command.SignatureText(*p.Signer)
			}
			fmt.Fprintf(w, "%-12s %-14s %-9s %s\n", p.Name, p.Version, p.Kind, from)
		}
	})
}

// runPluginShow prints a plugin and the rights that it requests. The error is not_found for an unknown plugin.
func runPluginShow(_ context.Context, app *command.App, name string) error {
	at, err := app.Plugin(name)
	if err != nil {
		return err
	}
	m, err := at.Provider.Manifest()
	entries, failed := app.Parley().Store().List()
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	data := struct {
		Plugin
		Description string              `json:"description"`
		License     string              `json:"license,omitempty"`
		Homepage    string              `json:"homepage,omitempty"`
		ExitCodes   []manifest.ExitCode `json:"exit_codes"`
	}{
		*plugin(app, at.Provider.Info(), entries, m), manifest.Clean(m.Docs.Standard), manifest.CleanLine(m.License),
		manifest.CleanLine(m.Homepage), append([]manifest.ExitCode{}, m.ExitCodes...),
	}
	return app.PrintNext(data, []string{"parley " + data.Name + " --list"}, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s (%s, %s), %s\n  %s\n",
			data.Name, data.Version, data.Kind, manifest.Plural(data.Tools, "tool"), data.From, data.Brief)
		command.PrintIf(w, data.Description != "", "%s\n", command.Wrapped("  "+data.Description, app.Columns(), "  "))
		command.PrintIf(w, data.Digest != "", "  %s\n", data.Digest)
		if data.Signer != nil {
			fmt.Fprintln(w, "  "+command.SignatureText(*data.Signer))
		}
		command.WriteAsks(w, data.Asks, nil, nil)
		for _, c := range data.ExitCodes {
			fmt.Fprintf(w, "  exit %d %s: %s\n", c.Code, manifest.CleanLine(c.Name), manifest.CleanLine(c.Meaning))
		}
	})
}

// installed returns the names of installed plugins, for completion.
func installed(app *command.App, _ *cobra.Command) []string {
	entries, _ := app.Parley().Store().List()
	return command.Map(entries, func(e store.Entry) string { return e.Name + "\t" + manifest.CleanLine(e.Brief) })
}

// runPluginRemove removes an installed plugin and revokes its grants.
func runPluginRemove(_ context.Context, app *command.App, name string) error {
	removed, err := app.Parley().Admission().Remove(name)
	if err != nil {
		return err
	}
	if len(removed.Revoked) > 0 {
		app.Notice("its grants were revoked: " + strings.Join(removed.Revoked, ", "))
	}
	data := describedPlugin(removed.Info(), removed.Source, nil)
	data.Revoked = removed.Revoked
	return app.Print(data, []string{"parley plugin list"}, command.Text("Removed %s %s\n", data.Name, data.Version))
}

// Plugin is an installed, shipped or built-in plugin, or one that was just installed or removed.
type Plugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Brief   string `json:"brief"`
	Groups  int    `json:"groups"`
	Tools   int    `json:"tools"`
	Digest  string `json:"digest,omitempty"`
	From    string `json:"from"` // a path, "shipped" or "builtin"
	replacement
	*admit.Signer // nil for a plugin that is not installed
	// Asks are the rights that the plugin requests, each with the reason from its manifest. A request grants nothing.
	Asks []grant.Denial `json:"asks"`
	// Granted are the rights that were granted to this build. Revoked are the rights that were granted to a build that
	// is gone.
	Granted []string `json:"granted,omitempty"`
	Revoked []string `json:"revoked,omitempty"`
	// Admission is the report on a plugin that was just installed.
	Admission *admit.Report `json:"admission,omitempty"`
	// Applies are the grants that give this build a right that it requests.
	Applies []string `json:"applies,omitempty"`
}

// replacement says how a newly installed plugin differs from the build that it replaces.
type replacement struct {
	Replaced string `json:"replaced,omitempty"` // its version
	// Rebuilt says that the replaced plugin was another build of the same version.
	Rebuilt bool `json:"rebuilt,omitempty"`
	// Unchanged says that the same build was already installed.
	Unchanged bool `json:"unchanged,omitempty"`
	// NewRights are the rights that only this build requests. DroppedRights are those that only the replaced build
	// requested.
	NewRights     []string `json:"new_rights,omitempty"`
	DroppedRights []string `json:"dropped_rights,omitempty"`
	// ManifestDiff is the difference of the manifest from that of the replaced build, in at most 20 lines that begin
	// with "-" or "+".
	ManifestDiff []string `json:"manifest_diff,omitempty"`
	// Changes are the differences from the replaced build for callers. Breaks are the changes that the operator had to
	// confirm.
	Changes []lint.Change `json:"changes,omitempty"`
	Breaks  []lint.Change `json:"breaks,omitempty"`
	// Moved says that the registry tag of the replaced build now refers to another artifact; "" if it does not.
	Moved string `json:"moved,omitempty"`
}

func describedPlugin(info host.Info, from string, m *manifest.Manifest) *Plugin {
	p := &Plugin{
		Name: info.Name, Version: info.Version, Kind: info.Kind, Brief: manifest.CleanLine(info.Brief),
		Groups: info.Groups, Tools: info.Tools, Digest: info.Digest, From: from, Asks: []grant.Denial{},
	}
	if m != nil {
		p.Asks = append(p.Asks, grant.Requested(m.Capabilities)...)
	}
	return p
}

// plugin returns a plugin with its data from the lock file. It checks again whether the plugin's key is trusted.
func plugin(app *command.App, info host.Info, entries []store.Entry, m *manifest.Manifest) *Plugin {
	at := slices.IndexFunc(entries, func(e store.Entry) bool { return e.Digest == info.Digest })
	switch {
	case info.Kind == manifest.KindBuiltin:
		return describedPlugin(info, "builtin", m)
	case at < 0:
		return describedPlugin(info, "shipped", m)
	}
	p := describedPlugin(info, entries[at].Source, m)
	signer, err := app.Parley().Admission().SignerOf(entries[at])
	if err != nil {
		app.Notice("no key counts as trusted: " + err.Error())
	}
	p.Signer = &signer
	return p
}

// pluginInstallOptions say what to install, and which rights to grant it.
type pluginInstallOptions struct {
	// Path is the wasm file, a folder with plugin.wasm, or a remote plugin: oci://HOST/NAME:TAG or https://..
	Path string `word:""`
	// Digest, if not "", is the only digest that the plugin may have.
	Digest    string
	Downgrade bool `flag:"downgrade" usage:"let an older version replace a newer one"`
	// Grants are rights for this build, in the grammar of grants. The operator has to approve them.
	Grants []string `flag:"grant" usage:"grant this right to this build, as policy grant does; repeatable"`
	// Signature is the file of the signature. "" means FILE.minisig next to the plugin, if there is one.
	Signature string `flag:"signature" usage:"signature file, if it is not beside FILE"`
	// Yes approves the grants without asking, if the policy allows it.
	Yes bool `flag:"yes" usage:"do not ask about grants and breaking changes; only if the policy sets allow_yes"`
}

// installPlugin installs a plugin and writes its grants, after the operator has approved them. It revokes grants of
// other builds of the plugin. If it fails, nothing was installed, unless its message says otherwise.
func installPlugin(ctx context.Context, app *command.App, o pluginInstallOptions) (*Plugin, error) {
	options := admit.Options{Signature: o.Signature, Digest: o.Digest, Downgrade: o.Downgrade, Accept: app.Accept,
		Replace: app.Replace}
	path := o.Path
	if oci.IsRemote(path) {
		fetched, err := registry(app).Fetch(ctx, path)
		if err != nil {
			return nil, err
		}
		path, options.Origin, options.SignatureText = fetched.Path, fetched.Source, fetched.Signature
	}
	prepared, err := app.Parley().Admission().Prepare(ctx, path, options)
	if err != nil {
		return nil, ofRemote(err, path, o.Path)
	}
	c := prepared.Candidate
	data := describedPlugin(c.Source().Info, c.Path, c.Manifest)
	data.Signer = &prepared.Signer
	compare(app, data, prepared.Replaces, c)
	if before := prepared.Replaces; before != nil {
		data.Moved = tagMoved(before.Source, c.Path)
	}
	data.Admission, data.Changes, data.Breaks = prepared.Report, prepared.Changes, prepared.BreakingChanges()
	rules, err := app.Parley().Policy()
	if err != nil {
		return nil, err
	}
	data.Applies = applyingRights(rules, c)
	edit, err := approveInstall(ctx, app, rules, prepared, data, o)
	if err != nil {
		return nil, err
	}
	prepared.Confirm()
	done, err := prepared.Commit(edit)
	if err != nil {
		return nil, err
	}
	data.From, data.Granted, data.Revoked = done.Source, done.Granted, done.Revoked
	data.Applies = applyingRights(rules, c)
	for _, note := range rules.Explain(c.Source().Info, c.Manifest, "").Notes {
		app.Notice(note)
	}
	if c.Manifest.Kind == manifest.KindParley {
		noticeScripts(app)
	}
	return data, nil
}

// maxDiff is the size limit of [Plugin].ManifestDiff, in lines.
const maxDiff = 20

// compare sets the fields of data that compare a build with the installed one.
func compare(app *command.App, data *Plugin, before *store.Entry, c *store.Candidate) {
	if data.Unchanged = before != nil && before.Digest == c.Digest; before == nil || data.Unchanged {
		return
	}
	data.Replaced, data.Rebuilt = before.Version, before.Version == c.Manifest.Version
	old, ok := app.Parley().Store().Approved(before.Digest)
	if !ok {
		return
	}
	data.ManifestDiff = strings.Split(store.ManifestDiff(old, c.ManifestJSON, maxDiff), "\n")
	m, err := manifest.Load(old)
	if err != nil {
		return
	}
	was, is := grant.Named(grant.Requested(m.Capabilities)), grant.Named(data.Asks)
	data.NewRights = slices.DeleteFunc(slices.Clone(is), func(r string) bool { return slices.Contains(was, r) })
	data.DroppedRights = slices.DeleteFunc(was, func(r string) bool { return slices.Contains(is, r) })
}

// approveInstall prepares the grants of an installation. The operator has to approve these, and also breaking
// changes, an older version, a name of another owner and a moved tag. If there is none of these, there is no
// question. The edit is zero if there are no grants.
func approveInstall(ctx context.Context, app *command.App, rules *policy.Policy, prepared *admit.Installation,
	data *Plugin, o pluginInstallOptions) (policy.Edit, error) {
	edit, err := prepareGrants(rules, prepared.Candidate, data, o)
	takes, older := prepared.TakesFrom != "", prepared.Older != nil
	if err != nil || len(o.Grants) == 0 && len(data.Breaks) == 0 && !takes && !older && data.Moved == "" {
		return edit, err
	}
	var about strings.Builder
	writeInstalled(&about, data, "To be installed:")
	command.PrintIf(&about, older, "  it is older than %s, which is installed\n", manifest.CleanLine(data.Replaced))
	change := command.Change{Installs: about.String()}
	if len(o.Grants) > 0 {
		change.Diff = edit.Diff()
	}
	change.Diff += command.When(takes, command.TakesText(data.Name, prepared.TakesFrom))
	change.Diff += command.When(data.Moved != "", data.Moved+"\n")
	change.ByPolicy = len(o.Grants)+len(data.Breaks) == 0 && !older // there is only a name or a tag to approve
	switch err = app.Approve(ctx, change, o.Yes); {
	case err == nil:
	case older && len(data.Breaks) == 0 && !o.Yes && !errors.Is(err, command.ErrDeclined):
		return edit, prepared.Older // nobody can be asked: this error says how to allow it
	case len(data.Breaks) > 0:
		e := host.AsError(err)
		e.Message = breaksText(data) + "\n" + e.Message
		e.Next = []string{"as its author: keep what callers use, or raise the major version"}
		e.Steps = []step.Step{step.Operator(step.OpPluginShow, data.Name)}
		return edit, e
	}
	return edit, err
}

// breaksText returns what an installation breaks, one change per line.
func breaksText(p *Plugin) string {
	const most = 12
	lines := []string{fmt.Sprintf("%s %s breaks callers of %s and %s:", p.Name, manifest.CleanLine(p.Version),
		manifest.CleanLine(p.Replaced), admit.WhyConfirm(p.Replaced, p.Version))}
	return strings.Join(append(lines, spelling.AtMost(command.Strings(p.Breaks), most)...), "\n    ")
}

// prepareGrants prepares the grants of an installation. The edit is zero if there are none. It refuses a right that
// the manifest does not request.
func prepareGrants(rules *policy.Policy, c *store.Candidate, data *Plugin, o pluginInstallOptions) (policy.Edit,
	error) {
	if len(o.Grants) == 0 {
		return policy.Edit{}, nil
	}
	grants := make([]policy.Grant, len(o.Grants))
	for i, text := range o.Grants {
		g, err := policy.ParseGrant(text)
		if err != nil {
			return policy.Edit{}, host.Errorf(host.InvalidArgs, "%s; nothing was installed", manifest.CleanLine(err.Error())).
				WithSteps(step.Operator(step.OpHelp, "plugin install"))
		}
		if !g.RequestedBy(c.Manifest.Capabilities) {
			requested := command.Either(len(data.Asks) > 0, strings.Join(grant.Named(data.Asks), ", "), "no rights")
			return policy.Edit{}, host.Errorf(host.InvalidArgs, "%s does not ask for %s: it asks for %s; nothing was installed",
				data.Name, g, requested).WithSteps(step.Operator(step.OpPluginInstall, data.From))
		}
		grants[i] = g
	}
	return rules.Grant(data.Name, data.Digest, grants...)
}

// applyingRights returns the grants that give a build a right that it requests.
func applyingRights(rules *policy.Policy, c *store.Candidate) (rights []string) {
	for _, r := range rules.Explain(c.Source().Info, c.Manifest, "").Rights {
		for _, g := range r.Grants {
			if !slices.Contains(rights, g) {
				rights = append(rights, g)
			}
		}
	}
	return rights
}

type pluginRunOptions struct {
	Path string   `word:""`
	Name string   `word:""`
	Rest []string `word:""`
	tools.CallOptions
}

var pluginRunCommand = &command.Command[*pluginRunOptions]{
	Use: "run FILE|DIR TOOL ...", Run: runPluginRun,
	Short: "Run a tool of a plugin that is not installed",
	Long: "TOOL is named without the plugin. Where the plugin crashes, its functions are named and the last lines of\n" +
		"its stderr and log are shown.",
	Example: "parley plugin run ./hello greet Ada",
}

func runPluginRun(ctx context.Context, app *command.App, opts *pluginRunOptions) error {
	c, err := store.ReadCandidate(opts.Path, parley.Version)
	if err != nil {
		return err
	}
	app.Plugins = append(app.Plugins, c.Path)
	opts.Tool, opts.Words, opts.Trace = c.Manifest.Name+"."+opts.Name, opts.Rest, true
	return tools.RunCall(ctx, app, &opts.CallOptions)
}

var pluginInstallCommand = &command.Command[*pluginInstallOptions]{
	Use: "install FILE|DIR|URL", Run: runPluginInstall,
	Short: "Install a plugin; it is granted nothing",
	Long: "Shows which rights the plugin requests and why, in its own words, which rules for manifests it breaks, and\n" +
		"which of its examples are verified. --grant fs:ro:./data=/data and the like grant rights, after a question at\n" +
		"the terminal; parley policy grant does so later. A signature beside the file (FILE.minisig) must be valid. A\n" +
		"plugin whose texts could mislead an agent is refused unless it is signed with a trusted key or --accept RULE\n" +
		"accepts each rule that it breaks. A version that breaks callers and is not a higher major one has to be\n" +
		"confirmed at the terminal. A plugin at a URL, oci://HOST/NAME:TAG or https://HOST/FILE.wasm, is fetched with\n" +
		"its signature; the lock file pins its digest, and a tag that has moved has to be confirmed.",
	Example: "parley plugin install ./hello/plugin.wasm",
}

// runPluginInstall installs a plugin and prints what was installed.
func runPluginInstall(ctx context.Context, a *command.App, o *pluginInstallOptions) error {
	data, err := installPlugin(ctx, a, *o)
	if err != nil {
		return err
	}
	trust := trustCommands(*data.Signer)
	next := append([]string{"parley " + data.Name + " --list"}, trust...)
	if len(data.Asks) > 0 {
		next = append(next, "parley policy explain "+data.Name)
	}
	return a.Print(data, next, func(w io.Writer) {
		verb := command.Either(data.Unchanged, "Already installed:", "Installed")
		writeInstalled(w, data, verb)
		command.PrintIf(w, len(data.Granted) > 0, "  granted: %s\n", strings.Join(data.Granted, ", "))
		command.PrintIf(w, len(data.Revoked) > 0, "  revoked, because it was granted to the previous build: %s\n",
			strings.Join(data.Revoked, ", "))
		command.WriteLabelled(w, "Next:", next[:1+len(trust)])
	})
}

// writeInstalled describes a plugin that is or will be installed.
func writeInstalled(w io.Writer, p *Plugin, verb string) {
	fmt.Fprintf(w, "%s %s %s (%s, %s)\n  %s\n  %s\n", verb, p.Name, manifest.CleanLine(p.Version), p.Kind,
		manifest.Plural(p.Tools, "tool"), p.Digest, command.SignatureText(*p.Signer))
	carried := command.Either(len(p.Applies) > 0, "these grants apply to it: "+strings.Join(p.Applies, ", "),
		"no grants carry over")
	switch {
	case p.Rebuilt:
		fmt.Fprintf(w, "  replaces another build of the same version %s; %s\n", manifest.CleanLine(p.Replaced), carried)
	case p.Replaced != "":
		fmt.Fprintf(w, "  replaces %s; %s\n", manifest.CleanLine(p.Replaced), carried)
	case len(p.Applies) > 0:
		fmt.Fprintln(w, "  "+carried)
	}
	command.WriteAsks(w, p.Asks, p.NewRights, p.Applies)
	command.PrintIf(w, len(p.DroppedRights) > 0, "  no longer asks for %s\n", strings.Join(p.DroppedRights, ", "))
	command.PrintIf(w, p.Moved != "", "  %s\n", p.Moved)
	if len(p.Breaks) > 0 {
		fmt.Fprintln(w, "  "+breaksText(p))
	}
	if p.Admission != nil {
		command.WriteAdmission(w, p.Admission)
	}
	command.WriteManifestDiff(w, p.ManifestDiff)
}
