package call

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/search"
)

// Plan is [advice.PlanOf] for the tool with a name. If there is none, words without a dot are searched, and the plan
// is for the first hit, which a warning names. If asked to, it estimates what the calls take. The error is that of
// a call that cannot run: it is not valid, the policy denies it, or a plugin lacks a right for it that nobody is asked
// for.
func (h *Host) Plan(ctx context.Context, q advice.PlanQuery) (plan *advice.Plan, warnings []string, err error) {
	plan, err = advice.PlanOf(ctx, h.Catalog(), q)
	if err != nil && host.AsError(err).Code == host.NotFound && !strings.Contains(q.Tool, ".") {
		found, weak, searchErr := h.Search(ctx, q.Principal, search.Query{Text: q.Tool, Limit: 1})
		if searchErr == nil && !weak && len(found.Results) > 0 {
			q.Tool = found.Results[0].Name
			warnings = append(warnings, q.Tool+" is the first hit of a search for these words")
			plan, err = advice.PlanOf(ctx, h.Catalog(), q)
		}
	}
	if err == nil {
		err = h.checkPlan(ctx, plan, q.Principal)
	}
	if err != nil {
		return nil, nil, err
	}
	if q.Estimate && h.cfg.Costs != nil {
		plan.SetEstimate(h.cfg.Costs)
	}
	return plan, warnings, nil
}

// checkPlan returns the error of the first call of a plan that would be denied.
func (h *Host) checkPlan(ctx context.Context, plan *advice.Plan, principal caller.Principal) error {
	for _, line := range plan.Calls {
		call := host.Call{Name: line.Tool, Params: line.Params, Principal: principal, Options: job.Options{DryRun: true}}
		params, err := advice.Find(h.Names(), &call)
		if err != nil {
			return err
		}
		auth := &authorization{host: h, call: &call, behalf: &behalf{}, params: params}
		_, decision, err := auth.consult(ctx, nil)
		if isWhole := !bytes.ContainsAny(line.Params, "<$"); err == nil && isWhole { // without holes and references
			if e := params.Check(); e != nil {
				err = e
			}
		}
		if err == nil && len(decision.Missing) > 0 && !decision.Allowable {
			err = auth.missingError(decision)
		}
		if err != nil {
			e := *host.AsError(err)
			e.Message = fmt.Sprintf("the plan for %s cannot run: call %d, %s: %s", plan.Tool, line.ID, line.Tool, e.Message)
			return &e
		}
	}
	return nil
}
