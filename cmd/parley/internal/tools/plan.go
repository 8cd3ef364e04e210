package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/manifest"
)

func newPlan(app *command.App) *cobra.Command {
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
		ValidArgsFunction: app.Complete().Names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Tool = strings.Join(args, " "); opts.Tool == "" {
				return command.MissingWord("plan", "a TOOL, or words that say what to do", "parley plan cdp.DOM.getBoxModel")
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
	plan, warnings, err := plan(ctx, app, *opts)
	if err != nil {
		return err
	}
	if chosen := chosenWarning(plan); chosen != "" {
		warnings = append(warnings, chosen)
	}
	if opts.run {
		failed, err := executePlan(ctx, app, plan, func(id json.RawMessage, answer *host.Answer) error {
			answer.Warnings, warnings = append(answer.Warnings, warnings...), nil // the first reply has them
			return printReply(app, id, answer)
		})
		switch {
		case err != nil:
			return err
		case failed != nil:
			return &command.ExitStatus{Code: failed.ExitCode()}
		}
		return nil
	}
	lines, err := planLines(plan)
	if err != nil {
		return err
	}
	env := &command.Envelope{OK: true, Warnings: warnings, Next: []string{}}
	switch {
	case plan.Guesses():
	case len(plan.Holes) == 0:
		env.Next = append(env.Next, app.Command(host.PlanStep(plan.Tool, plan.Given)))
	default:
		env.Warnings = append(env.Warnings, "values that only you can choose: "+strings.Join(plan.Holes, ", "))
	}
	if env.Data, err = manifest.Marshal(plan); err != nil {
		return err
	}
	return app.PrintEnvelope(env, func(w io.Writer) { _, _ = w.Write(lines) })
}

// planOptions are the options of a plan.
type planOptions struct {
	app    *command.App
	run    bool     // make the calls instead of printing them
	Tool   string   // qualified, or words to search for
	Params string   // a JSON object, @FILE or - for [App.Input]; "" means none
	Set    []string // parameters as KEY=VALUE, in addition to Params

	Browser, Target string // of all calls; "" for the default
}

// plan returns the calls that lead to a call of a tool, and warnings. If no tool has the name, it plans the first hit
// of a search for it. The error is not_found if there is none.
func plan(ctx context.Context, app *command.App, o planOptions) (*call.Plan, []string, error) {
	h, err := app.Host(ctx)
	if err != nil {
		return nil, nil, err
	}
	session, err := app.Session()
	if err != nil {
		return nil, nil, err
	}
	tool := &manifest.Tool{Params: []byte("{}")}
	if at, err := h.Catalog().Find(o.Tool); err == nil && at.Tool != nil {
		tool = at.Tool
	}
	params, err := buildParams(ctx, app, tool, &CallOptions{Params: o.Params, Set: o.Set})
	if err != nil {
		return nil, nil, err
	}
	return h.PlanFor(ctx, call.PlanQuery{Tool: o.Tool, Params: params, Caller: command.Caller, Session: session,
		Browser: o.Browser, Target: o.Target})
}

// executePlan makes the calls of a plan as [callLines] does. The error is invalid_args for a plan with holes, and for
// one that destroys what nobody named.
func executePlan(ctx context.Context, app *command.App, plan *call.Plan,
	reply func(id json.RawMessage, answer *host.Answer) error) (failed *host.Error, err error) {
	if plan.Guesses() {
		step := host.PlanStep(plan.Tool, plan.Given)
		step.Options.DryRun = true
		return nil, host.Errorf(host.InvalidArgs, "%s is destructive, and nobody gave what it is called with: the plan "+
			"takes the first that there is. Give it as a parameter, or read the calls and pass them to parley batch", plan.Tool).
			WithSteps(step)
	}
	if len(plan.Holes) > 0 {
		return nil, host.Errorf(host.InvalidArgs, "%s requires values that only you can choose: %s",
			plan.Tool, strings.Join(plan.Holes, ", ")).
			WithSteps(host.DescribeStep(plan.Tool, 0))
	}
	lines, err := planLines(plan)
	if err != nil {
		return nil, err
	}
	return callLines(ctx, app, BatchOptions{Lines: bytes.NewReader(lines)}, reply)
}

// chosenWarning says which values a plan chose and how to give others; "" if it chose none.
func chosenWarning(plan *call.Plan) string {
	if len(plan.Chosen) == 0 {
		return ""
	}
	return "nobody gave " + chosenText(plan) + "; to use another value: --param " +
		strings.Join(chosenNames(plan), "=VALUE --param ") + "=VALUE"
}

func chosenText(plan *call.Plan) string {
	texts := make([]string, len(plan.Chosen))
	for i, c := range plan.Chosen {
		texts[i] = manifest.Clip(c.String(), 120)
	}
	return strings.Join(texts, ", ")
}

func chosenNames(plan *call.Plan) (names []string) {
	for _, c := range plan.Chosen {
		if !slices.Contains(names, c.Parameter) {
			names = append(names, c.Parameter)
		}
	}
	return names
}

// planLines returns the calls of a plan as the lines of a batch.
func planLines(plan *call.Plan) ([]byte, error) {
	var b bytes.Buffer
	for _, call := range plan.Calls {
		raw, err := manifest.Marshal(call)
		if err != nil {
			return nil, err
		}
		b.Write(append(manifest.EscapeJSON(raw), '\n'))
	}
	return b.Bytes(), nil
}
