package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

type codeOptions struct {
	app *App
	command.CodeOptions
}

func newCode(app *App) *cobra.Command {
	opts := &codeOptions{app: app}
	cmd := &cobra.Command{
		Use:   "code FILE|-",
		Short: "JavaScript",
		Long: "The program is JavaScript, the body of an async function. It calls tools as you would, in the sandbox:\n" +
			"await tools.text.hash({text: inputs.text}). What it returns is the result.",
		Example: "parley code program.js",
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Path = args[0]
			opts.Unlimited = opts.MaxBytes == 0 && cmd.Flags().Changed("max-bytes")
			return runCode(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Params, "params", "", "inputs: JSON, @FILE or - (stdin)")
	flags.Var((*texts)(&opts.Set), "param", "an input: KEY=VALUE, KEY=@FILE, a.b=1")
	flags.DurationVar(&opts.Timeout, "timeout", 0, "end the program after this long, such as 10s")
	flags.IntVar(&opts.MaxBytes, "max-bytes", 0, "cut a larger result and warn")
	flags.StringVar(&opts.Browser, "browser", "", "use the browser of this name")
	flags.StringVar(&opts.Target, "target", "", "use this page: its id, part of its URL, or index")
	flags.StringVar(&opts.JQ, "jq", "", "filter")
	flags.StringVar(&opts.Out, "out", "", "decoded, to FILE")
	flags.SortFlags = false
	return cmd
}

// runCode runs a program and prints what it returned.
func runCode(ctx context.Context, opts *codeOptions) error {
	app := opts.app
	app.deps.LiveBrowser = opts.Browser
	opts.Progress = app.progress()
	answer, err := command.Code(ctx, app.deps, opts.CodeOptions)
	return app.printAnswer(answer, err)
}
