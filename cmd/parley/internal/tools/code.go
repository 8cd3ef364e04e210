package tools

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

func newCode(app *command.App) *cobra.Command {
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
	flags.Var((*command.Texts)(&opts.Set), "param", "an input: KEY=VALUE, KEY=@FILE, a.b=1")
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
	app.LiveBrowser = opts.Browser
	opts.Progress = app.Progress()
	answer, err := code(ctx, app, *opts)
	return printAnswer(app, answer, err)
}

// codeOptions say which program to run. Params and Set are its inputs.
type codeOptions struct {
	app *command.App
	CallOptions
	// Path is the file with the program, - for [App.Input].
	Path string
}

// code runs a JavaScript program: it calls js.run. The answer and the error are those of [callTool].
func code(ctx context.Context, app *command.App, o codeOptions) (*host.Answer, error) {
	source, err := readProgram(ctx, app, o)
	if err != nil {
		return nil, err
	}
	params, err := manifest.Marshal(map[string]string{"source": string(source)})
	if err != nil {
		return nil, err
	}
	inputs, err := readParams(ctx, app, o.Params, o.Timeout)
	if err != nil {
		return nil, err
	}
	if len(inputs) > 0 {
		params = append(append(append(params[:len(params)-1], `,"inputs":`...), inputs...), '}')
	}
	call := o.CallOptions
	call.Tool, call.Params, call.Set = "js.run", string(params), nil
	for _, input := range o.Set {
		call.Set = append(call.Set, "inputs."+input)
	}
	return callTool(ctx, app, call)
}

func readProgram(ctx context.Context, app *command.App, o codeOptions) ([]byte, error) {
	if o.Path == "-" {
		if o.Params == "-" {
			return nil, host.Errorf(host.InvalidArgs, "the program and its inputs cannot both come from the standard input").
				WithNext("parley code program.js --params -")
		}
		return readParams(ctx, app, "-", o.Timeout)
	}
	const limit = 1 << 20 // js.run says what is too long
	source, err := host.ReadValue(ctx, o.Path, limit)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "cannot read the program: %s; expected a file with JavaScript, or - for "+
			"the standard input", manifest.CleanLine(err.Error())).WithSteps(host.OperatorStep(host.OpHelp, "code"))
	}
	return source, nil
}
