package plugins

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/oci"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
)

var pluginPushCommand = &command.Command[*pluginPushOptions]{
	Use: "push PLUGIN URL", Run: runPluginPush,
	Short: "Publish a plugin in an OCI registry, with its signature",
	Long: "PLUGIN is a FILE.wasm, a folder or an installed plugin. The tag is the version unless one is given.\n" +
		"Credentials come from Docker's config.json. Plain HTTP is used only for a registry on this machine. The\n" +
		"same plugin always has the same digest.",
	Example: "parley plugin push ./hello oci://registry.example/tools/hello:1.0.0",
}

// runPluginPush pushes a plugin to a registry, with its signature if it is signed. The manifest must be in the module.
func runPluginPush(ctx context.Context, app *command.App, opts *pluginPushOptions) error {
	c, err := fileOrInstalled(app, opts.Plugin)
	if err != nil {
		return err
	}
	if !c.ManifestEmbedded() {
		if installed, err := app.Parley().Store().Find(opts.Plugin); err == nil {
			c.Path = installed.Source
		}
		return host.Errorf(host.InvalidPlugin, "the manifest of %s is a separate file, which a registry cannot hold; "+
			"put it into the module first", c.Manifest.Name).WithSteps(step.Operator(step.OpPluginPack, c.Path))
	}
	if _, err := app.Parley().Admission().Verify(c); err != nil {
		return err
	}
	ref, err := oci.ParseReference(opts.To)
	if err != nil {
		return err
	}
	if name := opts.To[strings.LastIndex(opts.To, "/")+1:]; !strings.ContainsAny(name, ":@") {
		if ref, err = oci.ParseReference(opts.To + ":" + strings.ReplaceAll(c.Manifest.Version, "+", "_")); err != nil {
			return err
		}
	}
	digest, err := registry(app).Push(ctx, ref, oci.Plugin{
		Name: c.Manifest.Name, Version: c.Manifest.Version, Brief: manifest.CleanLine(c.Manifest.Docs.Brief),
		Wasm: c.Wasm, Signature: c.Signature,
	})
	if err != nil {
		return err
	}
	data := struct {
		Name      string `json:"name"`
		Version   string `json:"version"`
		Reference string `json:"reference"` // with the digest
		Digest    string `json:"digest"`    // of the artifact
		Signed    bool   `json:"signed"`
	}{c.Manifest.Name, c.Manifest.Version, ref.String() + "@" + digest, digest, c.Signature != nil}
	return app.PrintNext(data, []string{"parley plugin install " + ref.String()}, command.Text("Pushed %s %s, %s\n  %s\n",
		data.Name, manifest.CleanLine(data.Version), command.Either(data.Signed, "with its signature", "not signed"),
		data.Reference))
}

var pluginPullCommand = &command.Command[*pluginPullOptions]{
	Use: "pull URL", Run: runPluginPull,
	Short:   "Fetch a plugin into a file, without installing it",
	Example: "parley plugin pull oci://registry.example/tools/hello:1.0.0",
}

// runPluginPull fetches a plugin into a file, without installing it.
func runPluginPull(ctx context.Context, app *command.App, opts *pluginPullOptions) error {
	if !oci.IsRemote(opts.From) {
		return host.Errorf(host.InvalidURL, "%s is not remote; expected oci://HOST/NAME:TAG or https://..",
			manifest.CleanLine(opts.From))
	}
	fetched, c, err := fetch(ctx, app, opts.From)
	if err != nil {
		return err
	}
	data := struct {
		Name      string `json:"name"`
		Version   string `json:"version"`
		Reference string `json:"reference"` // with the digest
		Out       string `json:"out"`
		Signature string `json:"signature,omitempty"` // the file
	}{Name: c.Manifest.Name, Version: c.Manifest.Version, Reference: fetched.Source,
		Out: cmp.Or(opts.Out, c.Manifest.Name+".wasm")}
	if _, err := os.Lstat(data.Out); !errors.Is(err, fs.ErrNotExist) {
		return host.Errorf(host.AlreadyExists, "%s exists already; nothing was written", manifest.CleanLine(data.Out)).
			WithSteps(step.Operator(step.OpPluginPull, opts.From, "--out", "FILE"))
	}
	err = command.WriteFile(data.Out, c.Wasm, 0o644)
	if err == nil && fetched.Signature != nil {
		data.Signature = store.SignatureName(data.Out)
		err = command.WriteFile(data.Signature, fetched.Signature, 0o644)
	}
	if err != nil {
		return host.Errorf(host.Unavailable, "cannot write the plugin: %v", err)
	}
	next := []string{"parley plugin check " + command.ShellQuote(data.Out),
		"parley plugin install " + command.ShellQuote(data.Out)}
	return app.PrintNext(data, next, command.Text("Fetched %s %s into %s\n  %s\n", data.Name,
		manifest.CleanLine(data.Version), data.Out, data.Reference))
}

var pluginUpdateCommand = &command.Command[*pluginUpdateOptions]{
	Use: "update [NAME]", Run: runPluginUpdate, Words: command.CompletePlugins,
	Short: "Install what a plugin's registry or server has now",
	Long: "Looks at the tag or the URL that the plugin was installed from. Shows what a new build changes, and asks\n" +
		"before it is installed. It keeps the rights of the old build for which it also asks, and gains none. A build of\n" +
		"another signer is refused. --scripts is for plugins in JavaScript whose engine was replaced: it checks each on\n" +
		"the engine that is installed now, and binds it to that build.",
	Example: "parley plugin update hello\nparley plugin update --scripts",
}

// runPluginUpdate installs the build to which a plugin's tag or URL now refers, after the operator has approved it.
// The new build keeps the old build's rights that it requests, too, and gets no others. A build of another signer is
// refused.
func runPluginUpdate(ctx context.Context, app *command.App, opts *pluginUpdateOptions) error {
	if opts.Scripts != (opts.Name == "") {
		return command.MissingWord("plugin update", "one NAME, or --scripts", "parley plugin list")
	}
	if opts.Scripts {
		return updateScripts(ctx, app)
	}
	entry, err := app.Parley().Store().Find(opts.Name)
	if err != nil {
		return err
	}
	from := entry.Source
	if ref, err := oci.ParseReference(from); err == nil && ref.Tag() != "" {
		from = ref.Tag()
	} else if url, _, ok := strings.Cut(from, "#"); ok && oci.IsRemote(from) {
		from = url
	}
	if !oci.IsRemote(from) {
		return host.Errorf(host.InvalidArgs, "%s was installed from the file %s, which cannot be asked for updates; "+
			"install the new file", entry.Name, manifest.CleanLine(entry.Source)).
			WithSteps(step.Operator(step.OpPluginShow, entry.Name))
	}
	rules, err := app.Parley().Policy()
	if err != nil {
		return err
	}
	fetched, c, err := fetch(ctx, app, from)
	if err != nil {
		return err
	}
	if !strings.EqualFold(c.Manifest.Name, entry.Name) {
		return host.Errorf(host.Integrity, "%s now has the plugin %s, not %s; nothing was changed", from,
			c.Manifest.Name, entry.Name)
	}
	options := pluginInstallOptions{Path: fetched.Source, Yes: opts.Yes}
	if c.Digest != entry.Digest {
		old, err := app.Parley().Store().Open(entry)
		if err != nil {
			return err
		}
		for _, text := range applyingRights(rules, old) {
			if g, err := policy.ParseGrant(text); err == nil && g.RequestedBy(c.Manifest.Capabilities) {
				options.Grants = append(options.Grants, text)
			}
		}
	}
	return runPluginInstall(ctx, app, &options)
}

// updateScripts finds installed scripts that are bound to another build of their engine than the installed one. It
// checks them and binds them to the installed build. It stops at the first script that this engine cannot run.
func updateScripts(ctx context.Context, app *command.App) error {
	stale, err := staleScripts(app)
	if err != nil {
		return err
	}
	data := struct {
		Updated []string `json:"updated"` // scripts that are now bound to the installed engine
	}{Updated: []string{}}
	for _, entry := range stale {
		if err := app.Parley().Admission().BindScript(ctx, entry); err != nil {
			return err
		}
		data.Updated = append(data.Updated, entry.Name)
	}
	said := command.Either(len(data.Updated) == 0, "All installed scripts run on the engines that are installed.",
		"Bound to the engine that is installed now: "+strings.Join(data.Updated, ", "))
	return app.Print(data, []string{"parley plugin list"}, command.Text("%s\n", said))
}

// registry returns the client for registries and servers. It uses Docker's credentials.
func registry(app *command.App) *oci.Client {
	return &oci.Client{
		Config: protect.DockerFolder(app.Env), Dir: filepath.Join(app.Dirs().Cache, "downloads"),
		Progress: command.Transfer(app),
	}
}

// fetch fetches a remote plugin and reads it.
func fetch(ctx context.Context, app *command.App, from string) (*oci.Fetched, *store.Candidate, error) {
	fetched, err := registry(app).Fetch(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	c, err := store.ReadCandidate(fetched.Path, parley.Version)
	if err != nil {
		return nil, nil, ofRemote(err, fetched.Path, from)
	}
	return fetched, c, nil
}

// ofRemote returns an error about a downloaded file as one about where the file is from.
func ofRemote(err error, file, from string) error {
	e := host.AsError(err)
	e.Message = strings.ReplaceAll(e.Message, file, from)
	return e
}

// tagMoved returns a text if the tag that a build came from now refers to another artifact, and otherwise "". before
// and now are sources from the lock file.
func tagMoved(before, now string) string {
	was, err := oci.ParseReference(before)
	is, failed := oci.ParseReference(now)
	if err != nil || failed != nil || was.Tag() == "" || was.Tag() != is.Tag() || before == now {
		return ""
	}
	return "The tag " + was.Tag() + " has moved, from " + was.Digest() + " to " + is.Digest() + "."
}

// pluginPushOptions say what to push, and where.
type pluginPushOptions struct {
	// Plugin is a wasm file, a folder with plugin.wasm, or the name of an installed plugin.
	Plugin string `word:""`
	// To is the reference: oci://HOST/NAME:TAG. Without a tag, the tag is the version.
	To string `word:""`
}

// pluginPullOptions say what to fetch into a file.
type pluginPullOptions struct {
	// oci://.. or https://..
	From string `word:""`
	// Out is the file; "" means NAME.wasm. It must not exist. A signature is written next to it.
	Out string `flag:"out" usage:"default NAME.wasm"`
}

// pluginUpdateOptions say which plugin to update.
type pluginUpdateOptions struct {
	Scripts bool   `flag:"scripts" usage:"bind all installed scripts to the engines installed now"`
	Name    string `word:""`
	command.Approval
}

// staleScripts returns the installed scripts that are bound to another build of their engine.
func staleScripts(app *command.App) ([]store.Entry, error) {
	entries, err := app.Parley().Store().List()
	if err != nil {
		return nil, err
	}
	var stale []store.Entry
	for _, entry := range entries {
		if entry.Kind != manifest.KindScript {
			continue
		}
		source := app.Parley().Store().Source(entry)
		source.Engine = "" // match any build
		if engine, err := app.Parley().Engine().Provider(source).EngineDigest(); err != nil || engine != entry.Engine {
			stale = append(stale, entry) // the update reports a missing engine
		}
	}
	return stale, nil
}

// noticeScripts reports that installed scripts are bound to a replaced build of an engine.
func noticeScripts(app *command.App) {
	stale, err := staleScripts(app)
	if err != nil || len(stale) == 0 {
		return
	}
	names := command.Map(stale, func(e store.Entry) string { return e.Name })
	app.Notice("these scripts were installed for another build of their engine and do not run until parley plugin " +
		"update --scripts binds them to this one: " + strings.Join(names, ", "))
}
