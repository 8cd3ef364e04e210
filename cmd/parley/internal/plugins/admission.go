package plugins

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
)

func reportPlugin(ctx context.Context, opts *pluginCheckOptions) error {
	data, err := admitPlugin(ctx, opts.app, opts.name)
	if err != nil {
		return err
	}
	next := []string{"parley plugin install " + command.ShellQuote(opts.name)}
	return opts.app.Print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s (%s)\n  %s\n", data.Plugin, data.Version, data.Kind,
			command.SignatureText(data.Signer))
		command.WriteAsks(w, data.Rights, nil, nil)
		command.WriteAdmission(w, data)
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

type pluginDiffOptions struct {
	app      *command.App
	old, now string
}

func newPluginDiff(app *command.App) *cobra.Command {
	opts := &pluginDiffOptions{app: app}
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what a new version of a plugin breaks",
		Long: "OLD and NEW are each a FILE.wasm, a folder, a manifest (FILE.json), the name of an installed plugin, or\n" +
			"the digest (sha256:...) of a build that is or was installed. Lists what is removed, renamed or narrowed,\n" +
			"effects that got worse, and rights that were added.",
		Example: "parley plugin diff hello ./hello/plugin.wasm",
		RunE:    command.RunWith(runPluginDiff, opts, &opts.old, &opts.now),
	}
}

func runPluginDiff(ctx context.Context, opts *pluginDiffOptions) error {
	data, err := comparePlugins(ctx, opts.app, opts.old, opts.now)
	if err != nil {
		return err
	}
	next := []string{}
	if IsPluginFile(opts.now) && !strings.HasSuffix(opts.now, ".json") {
		next = append(next, "parley plugin install "+command.ShellQuote(opts.now))
	}
	return opts.app.Print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s -> %s %s: ", data.Old.Name, data.Old.Version, data.New.Name, data.New.Version)
		switch {
		case len(data.Changes) == 0:
			fmt.Fprintln(w, "nothing changes for callers")
		case data.Breaks == 0:
			fmt.Fprintln(w, "nothing breaks")
		case data.Major:
			fmt.Fprintf(w, "%s, which the major version announces\n", manifest.Plural(data.Breaks, "breaking change"))
		default:
			fmt.Fprintf(w, "%s without a higher major version; an upgrade has to be confirmed\n",
				manifest.Plural(data.Breaks, "breaking change"))
		}
		for _, c := range data.Changes {
			mark := "  "
			if c.Breaks {
				mark = "! "
			}
			fmt.Fprintln(w, mark+c.String())
		}
	})
}

// IsPluginFile reports whether a word names a file or a folder with a plugin, not an installed plugin.
func IsPluginFile(word string) bool {
	return strings.ContainsAny(word, `/\.`) && word != ""
}

// admitPlugin returns the report on a plugin in a file or a folder, as an installation makes it. Nothing is installed.
// The error is invalid_plugin if an installation would be refused.
func admitPlugin(ctx context.Context, app *command.App, path string) (*admit.Report, error) {
	return app.Parley().Admission().Report(ctx, path, app.Accept)
}

// comparedPlugin is one of two versions that are compared.
type comparedPlugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// comparePluginsData are the changes from one version of a plugin to another, what breaks first.
type comparePluginsData struct {
	Old     comparedPlugin `json:"old"`
	New     comparedPlugin `json:"new"`
	Changes []lint.Change  `json:"changes"`
	Breaks  int            `json:"breaks"`
	// Major reports whether the new version announces that it breaks.
	Major bool `json:"major"`
}

// comparePlugins compares two versions of a plugin for those who call its tools. Each is a wasm file, a folder, a
// manifest (NAME.json), the name of an installed or shipped plugin, or the digest of a build that is or was installed.
func comparePlugins(ctx context.Context, app *command.App, old, now string) (*comparePluginsData, error) {
	before, err := readManifest(ctx, app, old)
	if err != nil {
		return nil, err
	}
	after, err := readManifest(ctx, app, now)
	if err != nil {
		return nil, err
	}
	data := &comparePluginsData{
		Old:     comparedPlugin{before.Name, manifest.CleanLine(before.Version)},
		New:     comparedPlugin{after.Name, manifest.CleanLine(after.Version)},
		Changes: append([]lint.Change{}, lint.Compare(before, after)...), Major: lint.IsMajor(before.Version, after.Version),
	}
	data.Breaks = len(lint.Breaking(data.Changes))
	return data, nil
}

func readManifest(ctx context.Context, app *command.App, word string) (*manifest.Manifest, error) {
	if strings.HasPrefix(word, "sha256:") {
		data, ok := app.Parley().Store().Approved(word)
		if !ok {
			return nil, host.Errorf(host.NotFound, "no build %s is known here; expected the whole digest of a build that is or "+
				"was installed", manifest.CleanLine(word)).WithSteps(host.OperatorStep(host.OpPluginList))
		}
		return manifest.Load(data)
	}
	if strings.HasSuffix(word, ".json") {
		const limit = 4 << 20
		data, err := host.ReadValue(ctx, word, limit)
		if err != nil {
			return nil, host.Errorf(host.InvalidArgs, "cannot read the manifest: %s", manifest.CleanLine(err.Error()))
		}
		m, err := manifest.Parse(data, parley.Version)
		if err != nil {
			return nil, &host.Error{Code: host.InvalidPlugin, Message: manifest.CleanLine(word) + ": " + err.Error(), Cause: err}
		}
		return m, nil
	}
	catalog, err := app.Catalog()
	if err != nil {
		return nil, err
	}
	at, err := catalog.FindIn(word, "")
	if _, missing := os.Stat(word); IsPluginFile(word) || err != nil && missing == nil {
		c, err := wasm.ReadCandidate(word, parley.Version)
		if err != nil {
			return nil, err
		}
		return c.Manifest, nil
	}
	if err != nil {
		return nil, err
	}
	if at.Provider.Info().Kind == manifest.KindBuiltin {
		return nil, host.Errorf(host.InvalidArgs, "%s is built in and has no manifest to compare", at.Plugin)
	}
	return at.Provider.Manifest()
}
