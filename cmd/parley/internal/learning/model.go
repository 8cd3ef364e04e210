package learning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/judge"
	"github.com/parley-tools/parley/host/learn/model"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/manifest"
)

// modelText prints what was used of a model.
func modelText(w io.Writer, m *modelRun) {
	command.PrintIf(w, m.Stopped != "", "ended early: %s\n", manifest.CleanLine(m.Stopped))
	about := command.When(m.Estimated, "about ")
	fmt.Fprintf(w, "%s: %s, %d answered by %s; %s%d tokens sent, %d answered", manifest.CleanLine(m.Model),
		manifest.Plural(m.Calls, "request"), m.Recorded, m.Recording, about, m.In, m.Out)
	command.PrintIf(w, m.Cost > 0, ", cost %.4f", m.Cost)
	fmt.Fprintln(w)
}

// malformedText prints how many answers could not be used.
func malformedText(w io.Writer, malformed, of int) {
	command.PrintIf(w, malformed > 0, "%d of %s malformed, not counted\n", malformed, manifest.Plural(of, "answer"))
}

// modelOptions say how a command uses a model.
type modelOptions struct {
	// Record is the file of exchanges. It answers questions that were asked before. "" means the file in the host's
	// state folder.
	Record string `flag:"record" usage:"keep exchanges in FILE, and reuse its answers"`
	// Replay is a file of exchanges that answers every question, so that no model is asked. "" means none.
	Replay string `flag:"replay" usage:"ask no model; take the answers from FILE"`
	// The budget of the command; 0 means no bound.
	Calls  int     `flag:"max-calls" default:"100" usage:"end at this many requests; 0: no bound"`
	Tokens int     `flag:"max-tokens-spent" default:"500000" usage:"end at this many tokens; 0: no bound"`
	Cost   float64 `flag:"max-cost" usage:"end at this cost, by model.price_in and _out"`
	command.Approval
}

// modelPlan describes what a command is about to ask a model, to get approval for it.
type modelPlan struct {
	what  string // its purpose: "phrases for 12 tools of text"
	sends string // what is sent
	calls int    // maximum number of questions
	// tokens is the estimated maximum of the tokens of these questions and their answers.
	tokens int
}

// modelOf returns a client of the configured model, or of a recording. It sends nothing before the plan is approved.
func modelOf(app *command.App, o modelOptions, plan modelPlan) (*model.Client, error) {
	s, err := app.Settings()
	if err != nil {
		return nil, err
	}
	path := recordingPath(app, o.Record)
	switch {
	case o.Calls < 0 || o.Tokens < 0 || !(o.Cost >= 0):
		return nil, host.Errorf(host.InvalidArgs, "a budget is negative; expected 0, which means no bound, or more")
	case o.Record != "" && o.Replay != "":
		return nil, host.Errorf(host.InvalidArgs, "--record and --replay exclude each other: a replay records nothing")
	case o.Replay != "":
		path = o.Replay
	}
	recording, err := model.OpenRecording(path, o.Replay == "")
	if err != nil {
		return nil, err
	}
	command.Remember(app, command.RecordOption, path)
	if recording.Damaged > 0 {
		app.Notice(manifest.Plural(recording.Damaged, "line") + " of " + path + " cannot be read")
	}
	client := &model.Client{Recording: recording, Replay: o.Replay != "", Prices: s.Model.Prices,
		Budget:   model.Budget{Calls: o.Calls, Tokens: o.Tokens, Cost: o.Cost},
		Endpoint: &model.Endpoint{URL: s.Model.URL, Name: s.Model.Name, Timeout: s.Model.Timeout}}
	if client.Replay {
		return client, replayedModel(client)
	}
	if s.Model.URL == "" || s.Model.Name == "" {
		return nil, host.Errorf(host.ConfigError, "no model is configured; set model.url and model.name").
			WithNext("set PARLEY_MODEL_URL=https://HOST/v1, PARLEY_MODEL_NAME and PARLEY_MODEL_KEY=env:NAME",
				"parley config list")
	}
	if o.Cost > 0 && !s.Model.Prices.Known() {
		return nil, host.Errorf(host.ConfigError, "--max-cost requires the prices of the model; model.price_in and "+
			"model.price_out are not set").WithNext("set PARLEY_MODEL_PRICE_IN and PARLEY_MODEL_PRICE_OUT, for a million tokens")
	}
	client.Approve = func(ctx context.Context) error { return approveModel(ctx, app, client, s.Model.Key, plan, o.Yes) }
	return client, nil
}

// recordingPath returns the path of a file of exchanges. The name "" stands for the file in the host's state folder.
func recordingPath(app *command.App, name string) string {
	return cmp.Or(name, filepath.Join(app.Dirs().State, "model", "exchanges.jsonl"))
}

// replayedModel chooses the model of a recording: the configured one, or else the only one.
func replayedModel(c *model.Client) error {
	models := c.Recording.Models
	switch {
	case slices.Contains(models, c.Endpoint.Name):
	case len(models) == 1:
		c.Endpoint.Name = models[0]
	default:
		return host.Errorf(host.InvalidArgs, "%s has answers from %s; expected one", c.Recording.Path,
			manifest.Plural(len(models), "model")).WithNext("set PARLEY_MODEL_NAME to the one to replay: " +
			strings.Join(models, ", "))
	}
	return nil
}

// approveModel asks for approval of the plan, and then fetches the key that a setting names.
func approveModel(ctx context.Context, app *command.App, c *model.Client, key string, plan modelPlan, yes bool) error {
	base, _ := url.Parse(c.Endpoint.URL) // the settings check it
	cost := command.Either(!c.Prices.Known(), "its price is not configured",
		fmt.Sprintf("a cost of up to %.4f", float64(plan.tokens)*max(c.Prices.In, c.Prices.Out)/1e6))
	text := fmt.Sprintf("Ask %s at %s for %s.\nIt gets %s.\nUp to %s with %d tokens, %s. It ends at %s.\n",
		manifest.CleanLine(c.Endpoint.Name), base.Host, plan.what, plan.sends, manifest.Plural(plan.calls, "question"),
		plan.tokens, cost, budgetText(c.Budget))
	change := command.Change{Diff: text, Sends: true, What: "what is sent to a model"}
	if err := app.Approve(ctx, change, yes); err != nil {
		return err
	}
	kind, name, _ := strings.Cut(key, ":")
	switch kind {
	case "env":
		if c.Endpoint.Key = app.Env(name); c.Endpoint.Key == "" {
			return host.Errorf(host.ConfigError, "model.key is %s, and this variable is not set", key).
				WithNext("parley config list")
		}
	case "secret":
		rules, err := app.Parley().Policy()
		if err == nil {
			c.Endpoint.Key, err = rules.Secret(ctx, name)
		}
		if err != nil {
			return err
		}
		app.Note("secret", name, "sent to "+base.Host)
	}
	return nil
}

// budgetText says at which bounds a run ends.
func budgetText(b model.Budget) string {
	var bounds []string
	add := func(isBound bool, text string) {
		if isBound {
			bounds = append(bounds, text)
		}
	}
	add(b.Calls > 0, manifest.Plural(b.Calls, "request"))
	add(b.Tokens > 0, manifest.Plural(b.Tokens, "token"))
	add(b.Cost > 0, fmt.Sprintf("a cost of %g", b.Cost))
	return cmp.Or(strings.Join(bounds, " or "), "no bound")
}

// modelRun is what a command used of a model.
type modelRun struct {
	model.Usage
	Stopped string `json:"stopped,omitempty"` // why it ended before all questions were asked
}

// stop reports whether an error means that the budget is used up. What was done so far then counts, and the run
// records why it ended.
func (r *modelRun) stop(err error) bool {
	if errors.Is(err, model.ErrBudget) {
		r.Stopped = err.Error()
		return true
	}
	return false
}

// ask asks the configured model questions and passes each answer to use, with the index of its question. about names
// a question, for people who watch the progress. ask completes the plan with the questions.
func ask(ctx context.Context, app *command.App, o modelOptions, plan modelPlan, questions []model.Question,
	about func(i int) string, use func(i int, answer string)) (run modelRun, err error) {
	plan.calls = len(questions)
	for i := range questions {
		plan.tokens += questions[i].Most()
	}
	client, err := modelOf(app, o, plan)
	if err != nil {
		return run, err
	}
	for i, q := range questions {
		told(app, i, len(questions), about(i))
		answer, err := client.Ask(ctx, q)
		if i > 0 && run.stop(err) {
			break
		} else if err != nil {
			return run, err
		}
		use(i, answer)
	}
	run.Usage = client.Usage()
	return run, nil
}

// told shows the progress.
func told(app *command.App, done, total int, message string) {
	if progress := app.Progress(); progress != nil {
		progress(float64(done), float64(total), message)
	}
}

var docsJudgeCommand = &command.Command[*docsJudgeOptions]{
	Use: "judge [SESSION]", Run: runDocsJudge, Words: command.CompleteSessions,
	Short: "Let a model say which sessions did their task",
	Long: "The configured model (model.url) sees the records of each session that has calls, after a question at the " +
		"terminal. An\nanswer that is not a verdict is counted, and otherwise ignored. A session whose last call " +
		"failed has not passed,\nwhatever the model says; the output shows how often both agree.",
	Example: "parley docs judge --since 7d\nparley docs judge work --json\nparley docs judge --replay exchanges.jsonl",
}

// runDocsJudge asks the configured model which sessions achieved their purpose.
func runDocsJudge(ctx context.Context, app *command.App, opts *docsJudgeOptions) error {
	catalog, _, records, err := recorded(app, "", opts.Since)
	if err != nil {
		return err
	}
	var asked []*judge.Session
	var questions []model.Question
	for _, s := range judge.Sessions(records) {
		if opts.Session == "" || s.Name == opts.Session {
			asked, questions = append(asked, s), append(questions, s.Question(catalog))
		}
	}
	if len(asked) == 0 {
		return host.Errorf(host.NotFound, "no session with calls is in the traces").
			WithNext("parley trace list", "parley text hash x --session mine")
	}
	plan := modelPlan{what: "verdicts on " + manifest.Plural(len(asked), "session"), sends: sentOfCalls(app)}
	data := &judgeData{Sessions: len(asked), Results: []judge.Result{}}
	data.Model, err = ask(ctx, app, opts.modelOptions, plan, questions,
		func(i int) string { return "verdict on " + asked[i].Name },
		func(i int, answer string) {
			if v, ok := judge.Parse(answer); ok {
				data.Results = append(data.Results, asked[i].ResultOf(v))
			} else {
				data.Malformed++
			}
		})
	if err != nil {
		return err
	}
	data.Judged, data.Agreement = len(data.Results), judge.AgreementOf(data.Results)
	passed := slices.DeleteFunc(slices.Clone(data.Results), func(r judge.Result) bool { return !r.Passed })
	data.Passed = stats.ShareOf(len(passed), data.Judged)
	return app.Print(data, []string{"parley stats", "parley docs optimize NAME"}, func(w io.Writer) {
		judgeText(app, w, data)
	})
}

func judgeText(app *command.App, w io.Writer, data *judgeData) {
	for _, r := range data.Results {
		verdict := command.Either(r.Passed, "passed", "failed")
		fmt.Fprintf(w, "%-6s %.2f  %s: %s, %d failed\n", verdict, r.Verdict.Score, manifest.CleanLine(r.Session),
			manifest.Plural(r.Calls, "call"), r.Failed)
		text := r.Verdict.Task + " " + r.Verdict.Reasoning
		text += command.When(r.Verdict.Passed && !r.Codes, " (passed by the model; its last call failed)")
		app.Wrap(w, "    ", "    %s", text)
	}
	malformedText(w, data.Malformed, data.Malformed+data.Judged)
	a := data.Agreement
	fmt.Fprintf(w, "model and exit codes: both passed %d, both failed %d, only the model %d, only the exit codes %d\n",
		a.BothPassed, a.BothFailed, a.OnlyModel, a.OnlyCodes)
	command.PrintIf(w, a.Same != nil, "passed %s; the same verdict %s\n", share(app, data.Passed), share(app, a.Same))
	modelText(w, &data.Model)
}

// docsJudgeOptions select the sessions that [runDocsJudge] asks about.
type docsJudgeOptions struct {
	Since string `flag:"since" usage:"only records since: 24h, 7d, 2026-11-21"`
	// only this session; "" means all
	Session string `word:""`
	modelOptions
}

// judgeData has a model's verdicts on sessions.
type judgeData struct {
	Sessions  int             `json:"sessions"`  // number of sessions that have calls
	Judged    int             `json:"judged"`    // number of sessions with a verdict
	Malformed int             `json:"malformed"` // number of sessions without a valid answer; no figure includes them
	Passed    *stats.Share    `json:"passed,omitempty"`
	Agreement judge.Agreement `json:"agreement"`
	Results   []judge.Result  `json:"results"`
	Model     modelRun        `json:"model"`
}

// sentOfCalls says what a model gets about calls.
func sentOfCalls(app *command.App) string {
	if s, err := app.Settings(); err == nil && s.TracesValues {
		return "documentation and records of calls, with the values of parameters and searches (traces.values)"
	}
	return "documentation and records of calls, with the values of parameters only where traces.values was set"
}
