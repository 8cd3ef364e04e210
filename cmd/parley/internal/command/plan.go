package command

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// PlanOptions are the options of a plan.
type PlanOptions struct {
	Tool   string   // qualified, or words to search for
	Params string   // a JSON object, @FILE or - for [Deps.Input]; "" means none
	Set    []string // parameters as KEY=VALUE, in addition to Params

	Browser, Target string // of all calls; "" for the default
}

// Plan returns the calls that lead to a call of a tool, and warnings. If no tool has the name, it plans the first hit
// of a search for it. The error is not_found if there is none.
func Plan(ctx context.Context, d *Deps, o PlanOptions) (*host.Plan, []string, error) {
	h, err := d.Host(ctx)
	if err != nil {
		return nil, nil, err
	}
	session, err := d.Session()
	if err != nil {
		return nil, nil, err
	}
	tool := &manifest.Tool{Params: []byte("{}")}
	if at, err := h.Catalog().Find(o.Tool); err == nil && at.Tool != nil {
		tool = at.Tool
	}
	params, err := d.buildParams(ctx, tool, &CallOptions{Params: o.Params, Set: o.Set})
	if err != nil {
		return nil, nil, err
	}
	return h.PlanFor(ctx, host.PlanQuery{Tool: o.Tool, Params: params, Caller: Caller, Session: session,
		Browser: o.Browser, Target: o.Target})
}

// RunPlan makes the calls of a plan as [Batch] does. The error is invalid_args for a plan with holes, and for one that
// destroys what nobody named.
func RunPlan(ctx context.Context, d *Deps, plan *host.Plan,
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
	lines, err := PlanLines(plan)
	if err != nil {
		return nil, err
	}
	return Batch(ctx, d, BatchOptions{Lines: bytes.NewReader(lines)}, reply)
}

// ChosenWarning says which values a plan chose and how to give others; "" if it chose none.
func ChosenWarning(plan *host.Plan) string {
	if len(plan.Chosen) == 0 {
		return ""
	}
	return "nobody gave " + chosenText(plan) + "; to use another value: --param " +
		strings.Join(chosenNames(plan), "=VALUE --param ") + "=VALUE"
}

func chosenText(plan *host.Plan) string {
	texts := make([]string, len(plan.Chosen))
	for i, c := range plan.Chosen {
		texts[i] = manifest.Clip(c.String(), 120)
	}
	return strings.Join(texts, ", ")
}

func chosenNames(plan *host.Plan) (names []string) {
	for _, c := range plan.Chosen {
		if !slices.Contains(names, c.Parameter) {
			names = append(names, c.Parameter)
		}
	}
	return names
}

// PlanLines returns the calls of a plan as the lines of a batch.
func PlanLines(plan *host.Plan) ([]byte, error) {
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
