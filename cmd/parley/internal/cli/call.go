package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type callOptions struct {
	app *App
	command.CallOptions
	describe bool
	tier     int
}

// callOnly are the options that mean nothing without a tool.
var callOnly = []string{"params", "param", "dry-run", "jq", "out", "drain", "all", "send-anyway", "isolate"}

// addCallFlags adds the options of a call.
func addCallFlags(set *pflag.FlagSet, o *command.CallOptions) {
	set.StringVar(&o.Params, "params", "", "JSON, @FILE or -")
	set.Var((*texts)(&o.Set), "param", "KEY=VALUE, a.b=@FILE")
	set.DurationVar(&o.Timeout, "timeout", 0, "end the call after this long, such as 10s")
	set.IntVar(&o.MaxBytes, "max-bytes", 0, "cut a larger result and warn")
	set.StringVar(&o.Browser, "browser", "", "use the browser of this name")
	set.StringVar(&o.Target, "target", "", "use this page: its id, part of its URL, or index")
	set.BoolVar(&o.DryRun, "dry-run", false, "validate and check the policy, run nothing")
	set.StringVar(&o.JQ, "jq", "", "filter")
	set.StringVar(&o.Out, "out", "", "decoded, to FILE")
	set.BoolVar(&o.Drain, "drain", false, "with --out: read the stream that the result names")
	set.BoolVar(&o.All, "all", false, "with cdp status and cdp close: all browsers")
	set.StringVar(&o.OnDialog, "on-dialog", "", "JavaScript dialogs: accept, accept=TEXT, dismiss or fail")
	set.StringVar(&o.Wait, "wait", "", "if the page navigates: wait for load, idle or none")
	set.StringVar(&o.Isolate, "isolate", "", "process: run the plugin in a process; call: in its own")
	set.BoolVar(&o.SendAnyway, "send-anyway", false, "send a command that the protocol data does not have")
}

func newCall(app *App) *cobra.Command {
	opts := &callOptions{app: app}
	cmd := &cobra.Command{
		Use:               "call NAME [WORD...]",
		Short:             "Run",
		Example:           `parley call text.hash --param text=hello`,
		ValidArgsFunction: app.completeQualified,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Tool, opts.Words = args[0], args[1:]
			opts.Unlimited = opts.MaxBytes == 0 && cmd.Flags().Changed("max-bytes")
			if opts.describe {
				for _, name := range callOnly {
					if cmd.Flags().Changed(name) {
						return host.Errorf(host.InvalidArgs, "--%s cannot be combined with --describe", name).
							WithSteps(host.DescribeStep(args[0], 0))
					}
				}
				if err := app.checkMaxTokens(cmd.Flags()); err != nil {
					return err
				}
			} else if name := firstSet(cmd, "tier", "max-tokens"); name != "" {
				return host.Errorf(host.InvalidArgs, "--%s requires --describe", name).
					WithSteps(host.DescribeStep(args[0], opts.tier))
			}
			return runCall(cmd.Context(), opts)
		},
	}
	addCallFlags(cmd.Flags(), &opts.CallOptions)
	cmd.Flags().BoolVar(&opts.describe, "describe", false, "document the tool")
	cmd.Flags().IntVar(&opts.tier, "tier", manifest.Tier2, "with --describe: how much, 1 to 3")
	app.addMaxTokens(cmd.Flags())
	app.completeCall(cmd)
	cmd.Flags().SortFlags = false
	return cmd
}

// missingWord returns the error of a command without a word that it requires.
func missingWord(command, word, example string) *host.Error {
	return host.Errorf(host.InvalidArgs, "parley %s requires %s", command, word).WithNext(example)
}

// runCall calls a tool and prints the answer.
func runCall(ctx context.Context, opts *callOptions) error {
	app := opts.app
	app.deps.LiveBrowser = opts.Browser
	if opts.describe {
		return runDescribe(ctx, app, command.DescribeOptions{Tool: opts.Tool, Tier: opts.tier})
	}
	opts.Progress = app.progress()
	app.signaled.brief = true
	answer, err := command.Call(ctx, app.deps, opts.CallOptions)
	return app.printAnswer(answer, err)
}

// printAnswer prints what a call has returned. The answer is nil if err kept the call from being made.
func (app *App) printAnswer(answer *host.Answer, err error) error {
	switch {
	case answer == nil:
		return err
	case answer.Err != nil:
		return app.failed(answer)
	}
	return app.printEnvelope(app.deps.Envelope(answer), nil)
}

// progress returns a function that prints how far a call is, nil unless people see it: on a terminal, without --json.
func (a *App) progress() func(done, total float64, message string) {
	if !a.ErrTTY || a.json {
		return nil
	}
	return func(done, total float64, message string) {
		if total > 0 {
			fmt.Fprintf(a.Err, "%3.0f%% %s\n", 100*done/total, manifest.CleanLine(message))
		} else {
			fmt.Fprintf(a.Err, "%s\n", manifest.CleanLine(message))
		}
	}
}
