package cli

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type planOptions struct {
	app *App
	command.PlanOptions
	run bool // make the calls instead of printing them
}

func newPlan(app *App) *cobra.Command {
	opts := &planOptions{app: app}
	cmd := &cobra.Command{
		Use:   "plan TOOL",
		Args:  cobra.ArbitraryArgs,
		Short: "Plan",
		Long: `Prints the shortest chain of calls that ends with a call of TOOL, as lines for parley batch. "${2.nodeId}"` +
			"\nis a part of the result of call 2, and \"<name: type, meaning>\" a value that you have to choose. What it\n" +
			"chooses itself, such as the element, it says: give --param selector=CSS for another one. With words instead of\n" +
			"a tool, it plans the first hit of a search.",
		Example: "parley plan cdp.DOM.getBoxModel --run\n" +
			"parley plan cdp.DOM.getBoxModel --param selector=h1 --run",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Tool = strings.Join(args, " "); opts.Tool == "" {
				return missingWord("plan", "a TOOL, or words that say what to do", "parley plan cdp.DOM.getBoxModel")
			}
			return runPlan(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Params, "params", "", "JSON, @FILE or -")
	cmd.Flags().StringArrayVar(&opts.Set, "param", nil, "KEY=VALUE, repeatable")
	cmd.Flags().StringVar(&opts.Browser, "browser", "", "use the browser of this name")
	cmd.Flags().StringVar(&opts.Target, "target", "", "use this page: its id, part of its URL, or index")
	cmd.Flags().BoolVar(&opts.run, "run", false, "make the calls")
	return cmd
}

// runPlan prints the calls of a plan, or makes them.
func runPlan(ctx context.Context, opts *planOptions) error {
	app := opts.app
	plan, warnings, err := command.Plan(ctx, app.deps, opts.PlanOptions)
	if err != nil {
		return err
	}
	if chosen := command.ChosenWarning(plan); chosen != "" {
		warnings = append(warnings, chosen)
	}
	if opts.run {
		failed, err := command.RunPlan(ctx, app.deps, plan, func(id json.RawMessage, answer *host.Answer) error {
			answer.Warnings, warnings = append(answer.Warnings, warnings...), nil // the first reply has them
			return app.printReply(id, answer)
		})
		switch {
		case err != nil:
			return err
		case failed != nil:
			return &exitStatus{failed.ExitCode()}
		}
		return nil
	}
	lines, err := command.PlanLines(plan)
	if err != nil {
		return err
	}
	env := &command.Envelope{OK: true, Warnings: warnings, Next: []string{}}
	switch {
	case plan.Guesses():
	case len(plan.Holes) == 0:
		env.Next = append(env.Next, app.command(host.PlanStep(plan.Tool, plan.Given)))
	default:
		env.Warnings = append(env.Warnings, "values that only you can choose: "+strings.Join(plan.Holes, ", "))
	}
	if env.Data, err = manifest.Marshal(plan); err != nil {
		return err
	}
	return app.printEnvelope(env, func(w io.Writer) { _, _ = w.Write(lines) })
}
