package learning

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/stats"
	"github.com/parley-tools/parley/host/stats/judge"
	"github.com/parley-tools/parley/host/stats/model"
	"github.com/parley-tools/parley/manifest"
)

func newDocsJudge(app *command.App) *cobra.Command {
	opts := &docsJudgeOptions{app: app}
	cmd := &cobra.Command{
		Use:   "judge [SESSION]",
		Short: "Let a model say which sessions did their task",
		Long: "The configured model (model.url) sees the records of each session that has calls, after a question at the " +
			"terminal. An\nanswer that is not a verdict is counted and is in no other figure. A session whose last call " +
			"failed has not passed,\nwhatever the model says; how often both agree is shown.",
		Example: "parley docs judge --since 7d\nparley docs judge work --json\nparley docs judge --replay exchanges.jsonl",
		RunE:    command.RunWith(runDocsJudge, opts, &opts.Session),
	}
	cmd.Flags().StringVar(&opts.Since, "since", "", "only records since: 24h, 7d, 2026-11-21")
	addModel(app, cmd, &opts.model)
	cmd.Flags().SortFlags = false
	return cmd
}

func runDocsJudge(ctx context.Context, opts *docsJudgeOptions) error {
	app := opts.app
	opts.model.Progress = app.Progress()
	data, err := docsJudge(ctx, app, *opts, opts.model)
	if err != nil {
		return err
	}
	return app.Print(data, []string{"parley stats", "parley docs optimize NAME"}, func(w io.Writer) {
		for _, r := range data.Results {
			fmt.Fprintf(w, "%-6s %.2f  %s: %s, %d failed\n", map[bool]string{true: "passed", false: "failed"}[r.Passed],
				r.Verdict.Score, manifest.CleanLine(r.Session), manifest.Plural(r.Calls, "call"), r.Failed)
			text := r.Verdict.Task + " " + r.Verdict.Reasoning
			if r.Verdict.Passed && !r.Codes {
				text += " (passed by the model; its last call failed)"
			}
			fmt.Fprintln(w, command.Wrapped("    "+text, app.Columns(), "    "))
		}
		malformedText(w, data.Malformed, data.Malformed+data.Judged)
		a := data.Agreement
		fmt.Fprintf(w, "model and exit codes: both passed %d, both failed %d, only the model %d, only the exit codes %d\n",
			a.BothPassed, a.BothFailed, a.OnlyModel, a.OnlyCodes)
		if a.Same != nil {
			fmt.Fprintf(w, "passed %s; the same verdict %s\n", share(app, data.Passed), share(app, a.Same))
		}
		modelText(w, &data.Model)
	})
}

// docsJudgeOptions say which sessions [docsJudge] asks about.
type docsJudgeOptions struct {
	app     *command.App
	model   modelOptions
	Since   string // as in history.Filter
	Session string // only this one; "" means all
}

// judgeData are the verdicts of a model on sessions.
type judgeData struct {
	Sessions  int             `json:"sessions"`  // that have calls
	Judged    int             `json:"judged"`    // with a verdict
	Malformed int             `json:"malformed"` // whose answer is not a verdict; they are in no figure
	Passed    *stats.Share    `json:"passed,omitempty"`
	Agreement judge.Agreement `json:"agreement"`
	Results   []judge.Result  `json:"results"`
	Model     modelRun        `json:"model"`
}

// docsJudge asks the configured model which sessions did what they were for.
func docsJudge(ctx context.Context, app *command.App, o docsJudgeOptions, m modelOptions) (*judgeData, error) {
	catalog, err := app.Catalog()
	if err != nil {
		return nil, err
	}
	records, err := traceRecords(app, o.Since)
	if err != nil {
		return nil, err
	}
	sessions := judge.Sessions(records)
	plan := modelPlan{sends: sentOfCalls(app)}
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
	client, err := modelOf(app, m, plan)
	if err != nil {
		return nil, err
	}
	data := &judgeData{Sessions: len(asked), Results: []judge.Result{}}
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
func sentOfCalls(app *command.App) string {
	if s, err := app.Settings(); err == nil && s.TracesValues {
		return "documentation and records of calls, with the values of parameters and searches (traces.values)"
	}
	return "documentation and records of calls, with the values of parameters only where traces.values was set"
}
