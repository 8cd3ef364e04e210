package command

import (
	"context"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/stats"
	"github.com/parley-tools/parley/host/stats/judge"
	"github.com/parley-tools/parley/host/stats/model"
	"github.com/parley-tools/parley/manifest"
)

// JudgeOptions say which sessions [DocsJudge] asks about.
type JudgeOptions struct {
	Since   string // as in TraceFilter
	Session string // only this one; "" means all
}

// JudgeData are the verdicts of a model on sessions.
type JudgeData struct {
	Sessions  int             `json:"sessions"`  // that have calls
	Judged    int             `json:"judged"`    // with a verdict
	Malformed int             `json:"malformed"` // whose answer is not a verdict; they are in no figure
	Passed    *stats.Share    `json:"passed,omitempty"`
	Agreement judge.Agreement `json:"agreement"`
	Results   []judge.Result  `json:"results"`
	Model     ModelRun        `json:"model"`
}

// DocsJudge asks the configured model which sessions did what they were for.
func DocsJudge(ctx context.Context, d *Deps, o JudgeOptions, m ModelOptions) (*JudgeData, error) {
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	records, err := d.records(o.Since)
	if err != nil {
		return nil, err
	}
	sessions := judge.Sessions(records)
	plan := modelPlan{sends: d.sentOfCalls()}
	var asked []*judge.Session
	var questions []model.Question
	for _, s := range sessions {
		if o.Session == "" || s.Name == o.Session {
			q := s.Question(catalog)
			asked, questions = append(asked, s), append(questions, q)
			plan.calls, plan.tokens = plan.calls+1, plan.tokens+q.Most()
		}
	}
	if len(asked) == 0 {
		return nil, host.Errorf(host.NotFound, "no session with calls is in the traces").
			WithNext("parley trace list", "parley text hash x --session NAME")
	}
	plan.what = "verdicts on " + manifest.Plural(len(asked), "session")
	client, err := d.model(m, plan)
	if err != nil {
		return nil, err
	}
	data := &JudgeData{Sessions: len(asked), Results: []judge.Result{}}
	for i, s := range asked {
		m.told(i, len(asked), "verdict on "+s.Name)
		answer, err := client.Ask(ctx, questions[i])
		if i > 0 && data.Model.stop(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		if v, err := judge.Parse(answer); err == nil {
			data.Results = append(data.Results, s.ResultOf(v))
		} else {
			data.Malformed++
		}
	}
	data.Model.Usage = client.Usage()
	data.Judged, data.Agreement = len(data.Results), judge.AgreementOf(data.Results)
	passed := 0
	for _, r := range data.Results {
		if r.Passed {
			passed++
		}
	}
	data.Passed = stats.ShareOf(passed, data.Judged)
	return data, nil
}

// sentOfCalls says what a model gets of calls.
func (d *Deps) sentOfCalls() string {
	if s, err := d.Settings(); err == nil && s.TracesValues {
		return "documentation and records of calls, with the values of parameters and searches (traces.values)"
	}
	return "documentation and records of calls, with the values of parameters only where traces.values was set"
}
