package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

func init() { manage("do", (*visit).do) }

type doParams struct {
	Steps []step `json:"steps"`
	Diff  bool   `json:"diff"`
}

// step is a step as the host hands it over.
type step struct {
	Tool   string          `json:"tool"`
	Params json.RawMessage `json:"params"`
}

// doneSteps is what the steps gave.
type doneSteps struct {
	Done    int          `json:"done"`
	URL     string       `json:"url,omitempty"` // if it is not the one that was opened
	Results []stepResult `json:"results,omitempty"`
	Diff    string       `json:"diff,omitempty"`
}

// stepResult is the result of a step.
type stepResult struct {
	Step   int `json:"step"` // from 1
	Result any `json:"result"`
}

// do runs steps, and stops at the first that fails.
func (v *visit) do(p doParams) (*doneSteps, *api.Error) {
	if p.Diff && v.findPage() == nil { // otherwise the first step opens a page
		if err := v.script("", nil, "snapshot", object{"max_tokens": 500}); err != nil {
			return nil, err
		}
	}
	r, opened, acted := &doneSteps{}, "", 0
	for i, s := range p.Steps {
		o, known := operations[s.Tool]
		if !known || s.Tool == "do" {
			return nil, api.Errorf(api.CodeInvalidArgs, "step %d: page has no step %s", i+1, clip(s.Tool, 40))
		}
		if s.Tool == "open" {
			var to openParams
			_ = json.Unmarshal(s.Params, &to)
			opened = to.URL
		}
		if acted > 0 {
			r.addLate(acted, v.late(v.ledger()))
		}
		v.inner = i+1 < len(p.Steps)
		result, err := v.run(o, s.Params)
		if err != nil {
			return nil, r.failed(i, s.Tool, err)
		}
		r.Done++
		switch found := result.(type) {
		case *Effects:
			acted = i + 1
			v.dropNote(found)
		case *filled:
			acted = i + 1
			v.dropNote(&found.Effects)
		}
		r.add(i, result)
	}
	if r.URL == opened {
		r.URL = ""
	}
	if p.Diff {
		s, err := v.snapshot(snapshotParams{MaxTokens: 500, Since: true})
		if err != nil {
			return nil, err
		}
		r.Diff = s.Text
	}
	return r, nil
}

// dropNote leaves out that nothing was seen of an act that another step follows: what comes later is in the result.
func (v *visit) dropNote(e *Effects) {
	if v.inner {
		e.Note = strings.Trim(noChange().ReplaceAllString(e.Note, ""), "; ")
	}
}

// addLate keeps what an act caused after its step.
func (r *doneSteps) addLate(step int, late *Before) {
	if late == nil {
		return
	}
	r.URL = cmp.Or(late.URL, r.URL)
	if late.Caused != nil {
		r.Results = append(r.Results, stepResult{step, object{"caused": late.Caused}})
	}
}

// add keeps what a step has to tell: not that it acted on what it was told to act on.
func (r *doneSteps) add(i int, result any) {
	switch found := result.(type) {
	case *opened:
		r.URL = found.URL
		if found.Caused != nil || found.Status >= 400 {
			r.Results = append(r.Results, stepResult{i + 1, found})
		}
	case *Effects:
		r.addEffects(i, filled{Effects: *found})
	case *filled:
		r.addEffects(i, *found)
	case waited:
		if found.Line != "" {
			r.Results = append(r.Results, stepResult{i + 1, object{"line": found.Line}})
		}
	case expected:
	default:
		r.Results = append(r.Results, stepResult{i + 1, result})
	}
}

// addEffects keeps what an act caused besides going to another address.
func (r *doneSteps) addEffects(i int, e filled) {
	if e.URL != "" {
		r.URL = e.URL
	}
	e.On, e.URL, e.Title, e.Act = "", "", "", 0
	if e.Status < 400 {
		e.Status = 0
	}
	if e.Caused != nil || e.Note != "" || e.Status != 0 || e.Value != "" {
		r.Results = append(r.Results, stepResult{i + 1, e})
	}
}

// failed returns the error of a step, with its own exit code, and what was done before.
func (r *doneSteps) failed(i int, tool string, err *api.Error) *api.Error {
	again := *err
	again.Message = fmt.Sprintf("step %d, %s: %s", i+1, tool, err.Message)
	switch {
	case err.Code == api.CodeExit:
		again.Details = object{"step": i + 1, "done": r.Done}
		if len(r.Results) > 0 {
			again.Details["results"] = r.Results
		}
		if err.Details != nil {
			again.Details["details"] = err.Details
		}
	case err.Invalid != nil:
		wrong := *err.Invalid
		wrong.Pointer = fmt.Sprintf("/steps/%d/params%s", i, wrong.Pointer)
		again.Invalid = &wrong
	default:
		again.Message += fmt.Sprintf(" (done before: %d)", r.Done)
	}
	return &again
}
