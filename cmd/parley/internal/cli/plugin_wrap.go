package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
)

type pluginWrapOptions struct {
	app *App
	command.WrapOptions
}

func newPluginWrap(app *App) *cobra.Command {
	opts := &pluginWrapOptions{app: app}
	cmd := &cobra.Command{
		Use:   "wrap FILE [WORD...]",
		Short: "Write a manifest for a WASI command or an Extism plugin",
		Long: "The words after -- are the command line: {name} is a parameter, {name?} an optional one, {count?:integer}\n" +
			"has a type; an option before an optional parameter is left out with it. Without words, the options that --help\n" +
			"lists become optional parameters. The command runs with --help in the sandbox, and what it prints drafts the\n" +
			"texts. Output that is not UTF-8 is refused when the tool runs, unless --output is bytes. An Extism plugin lists\n" +
			"its tools as MCP does, and the manifest has what it lists.",
		Example: "parley plugin wrap rev.wasm --output lines -- -n '{lines?:integer}' '{text}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && cmd.ArgsLenAtDash() != 1 {
				return missingWord("plugin wrap", "one FILE, and the command line after --",
					"parley plugin wrap rev.wasm -- '{text}'")
			}
			opts.Path, opts.Words = args[0], args[1:]
			return runPluginWrap(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Name, "name", "", "of the plugin; default that of FILE")
	flags.StringVar(&opts.Tool, "tool", "", "name of the tool; default run")
	flags.StringVar(&opts.Brief, "brief", "", "what the tool does, in at most 64 characters")
	flags.StringVar(&opts.Stdin, "stdin", "", "the standard input, such as {text}")
	flags.Var((*texts)(&opts.Files), "file", "/PATH={name}: a file with the value of a parameter; repeatable")
	flags.Var((*texts)(&opts.Env), "env", "NAME=VALUE, such as LANG={lang?}; repeatable")
	flags.StringVar(&opts.Output, "output", "", "text (default), json, lines, bytes or file:/PATH")
	flags.StringVar(&opts.MIME, "mime", "", "media type of bytes, such as audio/wav")
	flags.StringVar(&opts.Effect, "effect", "", "read (default), write or destructive")
	flags.StringVar(&opts.Out, "out", "", "default FILE.manifest.json")
	return cmd
}

func runPluginWrap(ctx context.Context, opts *pluginWrapOptions) error {
	data, err := command.WrapPlugin(ctx, opts.app.deps, opts.WrapOptions)
	if err != nil {
		return err
	}
	next := []string{"parley plugin install " + shellQuote(opts.Path), "parley plugin check " + shellQuote(opts.Path)}
	if opts.Out != "" {
		next = []string{"parley plugin pack " + shellQuote(opts.Path) + " --manifest " + shellQuote(opts.Out)}
	}
	return opts.app.print(data, next, func(w io.Writer) {
		switch {
		case data.Admission.Kind == manifest.KindMCP:
			fmt.Fprintf(w, "Wrote %s: %s with the tools %s\n", data.Manifest, data.Plugin, strings.Join(data.Tools, ", "))
			fmt.Fprintln(w, "  it asks for no right and has no setting; add what the plugin needs")
		default:
			fmt.Fprintf(w, "Wrote %s: %s.%s(%s)\n", data.Manifest, data.Plugin, data.Tool, strings.Join(data.Parameters, ", "))
			if !data.Help {
				fmt.Fprintln(w, "  the command printed no help, so the texts say little; edit them")
			}
		}
		command.WriteAdmission(w, data.Admission)
		fmt.Fprintln(w, "Next: "+next[0])
	})
}
