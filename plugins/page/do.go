package main

import (
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// DoParams are steps.
type DoParams struct {
	// Each: ["click", "Sign in"] or {"tool", "params"}.
	Steps []json.RawMessage `json:"steps" minItems:"1" maxItems:"200" aliases:"actions,commands"`
	// Say what changed.
	Diff bool `json:"diff,omitempty"`
}

// DoResult is what the steps gave.
type DoResult struct {
	// Number of steps that were done.
	Done int `json:"done"`
	// Address of the page, if it is not the one that was opened.
	URL string `json:"url,omitempty"`
	// Results of the steps that returned something.
	Results []StepResult `json:"results,omitempty"`
	// What changed, if asked for.
	Diff string `json:"diff,omitempty" untrusted:"true"`
}

// StepResult is the result of a step.
type StepResult struct {
	// Number of the step, from 1.
	Step int `json:"step"`
	// Any JSON: what the tool returned.
	Result any `json:"result"`
}

// step is a step as the host hands it over.
type step struct {
	Tool   string
	Params json.RawMessage
}

// Do runs steps, and stops at the first that fails.
func Do(c *sdk.Call, p DoParams) (*DoResult, error) {
	b := &browser{Call: c, writes: true}
	if p.Diff {
		// The page remembers what it shows.
		_, err := b.script("", &snapshot{}, "snapshot", map[string]any{"max_tokens": 500})
		var host *sdk.HostError
		if err != nil && (!errors.As(err, &host) || host.Code != "chrome_connection") { // the first step opens a page
			return nil, err
		}
	}
	r, opened := &DoResult{}, ""
	for i, raw := range p.Steps {
		var s step
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		if s.Tool == "open" {
			var to OpenParams
			_ = json.Unmarshal(s.Params, &to)
			opened = to.URL
		}
		result, err := c.Run(s.Tool, s.Params)
		if err != nil {
			return nil, r.failed(i, s.Tool, err)
		}
		r.Done++
		r.add(i, result)
	}
	if r.URL == opened {
		r.URL = ""
	}
	if p.Diff {
		s, err := Snapshot(c, SnapshotParams{MaxTokens: 500, Since: true})
		if err != nil {
			return nil, err
		}
		r.Diff = s.Text
	}
	return r, nil
}

// add keeps what a step has to tell: not that it acted on what it was told to act on.
func (r *DoResult) add(i int, result any) {
	switch v := result.(type) {
	case *PageResult:
		r.URL = v.URL
		if v.Caused != nil || v.Status >= 400 {
			r.Results = append(r.Results, StepResult{i + 1, v})
		}
	case *Effects:
		r.addEffects(i, FillResult{Effects: *v})
	case *FillResult:
		r.addEffects(i, *v)
	case WaitResult:
		if v.Line != "" {
			r.Results = append(r.Results, StepResult{i + 1, map[string]any{"line": v.Line}})
		}
	case ExpectResult:
	default:
		r.Results = append(r.Results, StepResult{i + 1, result})
	}
}

// addEffects keeps what an action caused besides going to another address.
func (r *DoResult) addEffects(i int, e FillResult) {
	if e.URL != "" {
		r.URL = e.URL
	}
	e.On, e.URL, e.Title = "", "", ""
	if e.Status < 400 {
		e.Status = 0
	}
	if e.Caused != nil || e.Note != "" || e.Status != 0 || e.Value != "" {
		r.Results = append(r.Results, StepResult{i + 1, e})
	}
}

// failed returns the error of a step, with its own exit code, and what was done before.
func (r *DoResult) failed(i int, tool string, err error) error {
	at := fmt.Sprintf("step %d, %s: ", i+1, tool)
	details := map[string]any{"step": i + 1, "done": r.Done}
	if len(r.Results) > 0 {
		details["results"] = r.Results
	}
	var exit *sdk.ExitError
	var host *sdk.HostError
	var invalid *sdk.InvalidError
	switch {
	case errors.As(err, &exit):
		if exit.Details != nil {
			details["details"] = exit.Details
		}
		return sdk.Exit(exit.Name, at+exit.Message, details)
	case errors.As(err, &host):
		again := *host
		again.Message = fmt.Sprintf("%s%s (done before: %d)", at, host.Message, r.Done)
		return &again
	case errors.As(err, &invalid):
		return sdk.Invalid(fmt.Sprintf("/steps/%d/params%s", i, invalid.Pointer), invalid.Expected, invalid.Provided,
			invalid.Suggestion)
	}
	return fmt.Errorf("%s%w", at, err)
}
