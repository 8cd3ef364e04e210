package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

type pluginPackOptions struct {
	app *App
	command.PackOptions
}

func newPluginPack(app *App) *cobra.Command {
	opts := &pluginPackOptions{app: app}
	cmd := &cobra.Command{
		Use:   "pack FILE",
		Short: "Put a manifest into a wasm module, of any language",
		Long: "Writes the manifest into the custom section parley.manifest of the module, in place of the one that it\n" +
			"has, and the scripts (NAME.js) and assets (the folder assets) that it declares, from the folder of FILE.\n" +
			"Prints the report that an installation prints. A module or a manifest that no installation accepts is\n" +
			"refused, and nothing is written.",
		Example: "parley plugin pack hello.wasm --manifest hello.manifest.json",
		RunE:    runWith(runPluginPack, opts, &opts.Path),
	}
	cmd.Flags().StringVar(&opts.Manifest, "manifest", "", "JSON file; default FILE without .wasm, with .manifest.json")
	cmd.Flags().StringVar(&opts.Out, "out", "", "default FILE itself; .gz compresses")
	return cmd
}

func runPluginPack(ctx context.Context, opts *pluginPackOptions) error {
	data, err := command.PackPlugin(ctx, opts.app.deps, opts.PackOptions)
	if err != nil {
		return err
	}
	again := "parley plugin pack " + shellQuote(opts.Path)
	if opts.Manifest != "" {
		again += " --manifest " + shellQuote(opts.Manifest)
	}
	return opts.app.printBuilt(data, "Packed", again)
}

type pluginSchemaOptions struct{ app *App }

func newPluginSchema(app *App) *cobra.Command {
	opts := &pluginSchemaOptions{app: app}
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of manifests",
		Long:    "The schema says what each field means, its default and its bounds. With --json it is in an envelope.",
		Example: "parley plugin schema > manifest.schema.json",
		RunE:    runWith(runPluginSchema, opts),
	}
}

func runPluginSchema(_ context.Context, opts *pluginSchemaOptions) error {
	return opts.app.print(command.PluginSchema(), []string{"parley plugin pack FILE --manifest FILE"}, nil)
}
