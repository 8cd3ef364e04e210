package build

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

func newPluginPack(app *command.App) *cobra.Command {
	opts := &pluginPackOptions{app: app}
	cmd := &cobra.Command{
		Use:   "pack FILE",
		Short: "Put a manifest into a wasm module, of any language",
		Long: "Writes the manifest into the custom section parley.manifest of the module, in place of the one that it\n" +
			"has, and the scripts (NAME.js) and assets (the folder assets) that it declares, from the folder of FILE.\n" +
			"Prints the report that an installation prints. A module or a manifest that no installation accepts is\n" +
			"refused, and nothing is written.",
		Example: "parley plugin pack hello.wasm --manifest hello.manifest.json",
		RunE:    command.RunWith(runPluginPack, opts, &opts.Path),
	}
	cmd.Flags().StringVar(&opts.Manifest, "manifest", "", "JSON file; default FILE without .wasm, with .manifest.json")
	cmd.Flags().StringVar(&opts.Out, "out", "", "default FILE itself; .gz compresses")
	return cmd
}

func runPluginPack(ctx context.Context, opts *pluginPackOptions) error {
	data, err := packPlugin(ctx, opts.app, *opts)
	if err != nil {
		return err
	}
	again := "parley plugin pack " + command.ShellQuote(opts.Path)
	if opts.Manifest != "" {
		again += " --manifest " + command.ShellQuote(opts.Manifest)
	}
	return printBuilt(opts.app, data, "Packed", again)
}

func newPluginSchema(app *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of manifests",
		Long:    "The schema says what each field means, its default and its bounds. With --json it is in an envelope.",
		Example: "parley plugin schema > manifest.schema.json",
		RunE:    command.RunWith(runPluginSchema, app),
	}
}

func runPluginSchema(_ context.Context, app *command.App) error {
	return app.Print(pluginSchema(), []string{"parley plugin pack FILE --manifest FILE"}, nil)
}

// pluginPackOptions say which module and manifest to join.
type pluginPackOptions struct {
	app *command.App
	// Path is the wasm file.
	Path string
	// Manifest is the file with the manifest. "" means the one beside Path.
	Manifest string
	// Out is the file to write, compressed if its name ends in .gz. "" means Path.
	Out string
}

// packPlugin puts a manifest, and the scripts and assets that it declares, into a module, after the checks of an
// installation. With an error nothing is written.
func packPlugin(ctx context.Context, app *command.App, o pluginPackOptions) (*buildPluginData, error) {
	code, err := wasm.ReadModule(o.Path)
	if err != nil {
		return nil, err
	}
	from := o.Manifest
	if from == "" {
		from = wasm.ManifestBeside(o.Path)
	}
	if from == "" {
		return nil, host.Errorf(host.InvalidArgs, "there is no manifest beside %s; expected --manifest FILE, a JSON file "+
			"as parley plugin schema describes it", manifest.CleanLine(o.Path)).
			WithSteps(host.OperatorStep(host.OpPluginSchema))
	}
	const limit = 4 << 20
	described, err := host.ReadValue(ctx, from, limit)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "cannot read the manifest: %s", manifest.CleanLine(err.Error()))
	}
	if code, err = embedFiles(code, described, filepath.Dir(o.Path)); err != nil {
		return nil, err
	}
	c, err := wasm.Pack(o.Path, code, described, from, parley.Version)
	if err != nil {
		return nil, err
	}
	out := o.Out
	if out == "" {
		out = o.Path
	}
	return writePlugin(ctx, app, c, out)
}

// pluginSchema returns the JSON Schema of manifests.
func pluginSchema() json.RawMessage { return manifest.Schema() }
