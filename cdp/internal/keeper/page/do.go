package page

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

type doParams struct {
	Steps []api.PageStep `json:"steps"`
	Diff  bool           `json:"diff"`
	Done  api.StepsDone  `json:"done"` // what was done before these steps
}

// doneSteps is the result of do.
type doneSteps struct{ api.StepsDone }

func (r *doneSteps) add(step int, result any) {
	r.Results = append(r.Results, api.StepResult{Step: step, Result: scan.Marshal(result)})
}

// do runs steps, and stops at the first that fails.
func do(v *Visit, p doParams) (*doneSteps, *api.Error) {
	if p.Diff && v.FindPage() == nil { // otherwise the first step opens a page
		if err := v.Script("", nil, "snapshot", Object{"max_tokens": 500}); err != nil {
			return nil, err
		}
	}
	r, opened, acted := &doneSteps{p.Done}, "", 0
	for i, s := range p.Steps {
		step := p.Done.Done + i + 1
		o, known := v.table[s.Tool]
		if !known || s.Tool == "do" {
			return nil, api.Errorf(api.CodeInvalidArgs, "step %d: page has no step %s", step, Clip(s.Tool, 40))
		}
		if s.Tool == "open" {
			var to struct{ URL string }
			_ = json.Unmarshal(s.Params, &to)
			opened = to.URL
		}
		if acted > 0 && v.Page != nil { // otherwise an act on pages has left the previous page
			earlier := v.Before
			v.Before = nil
			v.lookBack(v.Ledger())
			v.AskLate()
			r.addLate(acted, v.Before)
			v.Before = earlier
		}
		v.Inner = i+1 < len(p.Steps)
		v.saves = slices.ContainsFunc(p.Steps[i+1:], savesDownload)
		result, err := v.run(o, s.Params)
		if err != nil {
			return nil, r.FailedStep(step, s.Tool, err)
		}
		r.Done++
		if o.writes {
			acted = step
		}
		if of, is := result.(Step); is {
			var url string
			url, result = of.Step()
			r.URL = cmp.Or(url, r.URL)
		}
		if result != nil {
			r.add(step, result)
		}
	}
	if r.URL == opened {
		r.URL = ""
	}
	if p.Diff {
		shown, err := v.run(v.table["snapshot"], json.RawMessage(`{"max_tokens":500,"since":true}`))
		if err != nil {
			return nil, err
		}
		r.Diff = strings.TrimSpace(r.Diff + "\n" + scan.Text(scan.Marshal(shown), "text"))
	}
	return r, nil
}

// savesDownload reports whether a step saves a download.
func savesDownload(s api.PageStep) bool {
	return s.Tool == "downloads" && scan.Text(s.Params, "save") != ""
}

// Step is a result that is shorter within the result of do than as the result of the verb alone.
type Step interface {
	// Step returns the address to which the page went, or "" if it stayed, and what else a step reports, or nil for
	// nothing. It leaves out that the step acted on the element that it was given.
	Step() (url string, rest any)
}

// addLate adds to a step what its act caused after the step had ended.
func (r *doneSteps) addLate(step int, late *Before) {
	if late.none() {
		return
	}
	r.URL = cmp.Or(late.URL, r.URL)
	if late.Caused != nil {
		r.add(step, Object{"caused": late.Caused})
	}
}
