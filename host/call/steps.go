package call

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/manifest"
)

// decideSteps asks the policy about each step, as about a call of its tool by each caller. A step that is denied denies
// the call; one that requires confirmation makes the whole call require it.
func (a *authorization) decideSteps(ctx context.Context, d *host.Decision) error {
	for i, step := range a.steps {
		err := step.checkEffect()
		own := host.Decision{}
		if err == nil {
			_, own, err = step.consult(ctx, nil)
		}
		if err == nil && severity(step.effect()) > severity(a.effect()) {
			err = host.Errorf(host.Denied, "%s has the effect %s, and %s only %s; nothing was run", step.params.Tool,
				step.effect(), a.params.Tool, a.effect())
		}
		if err == nil {
			err = step.confine(own)
		}
		if err != nil {
			e := *host.AsError(err)
			e.Message = fmt.Sprintf("step %d: %s", i+1, e.Message)
			return &e
		}
		if own.Verdict == host.Confirm && d.Verdict == host.Allow {
			d.Verdict, d.Steps = host.Confirm, own.Steps
			d.Reason = fmt.Sprintf("step %d, %s: %s", i+1, step.params.Tool, own.Reason)
		}
	}
	return nil
}

// confineSteps puts the parameters of the steps, as their tools may use them, into those of the call.
func (a *authorization) confineSteps() {
	if len(a.steps) == 0 {
		return
	}
	params := map[string]json.RawMessage{}
	_ = json.Unmarshal(a.params.Value, &params) // an object, by its validation
	forms := make([]advice.StepForm, len(a.steps))
	for i, step := range a.steps {
		forms[i] = advice.StepForm{Tool: step.params.At.Tool.Name, Params: step.params.Value}
		if step.confined != nil {
			forms[i].Params = step.confined
		}
	}
	params[a.params.At.Tool.Steps], _ = manifest.Marshal(forms)
	a.confined, _ = manifest.Marshal(params)
}
