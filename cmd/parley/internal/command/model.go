package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/stats/model"
	"github.com/parley-tools/parley/manifest"
)

// ModelOptions say how a command asks a model.
type ModelOptions struct {
	// Record is the file of exchanges, which answers what was asked before. "" is the one in the host's state folder.
	Record string
	// Replay is a file of exchanges that answers everything: no model is asked. "" means that one is.
	Replay string
	Budget model.Budget
	Yes    bool // do not ask, if the policy allows that
	// Progress is told how much is done. It may be nil.
	Progress func(done, total float64, message string)
}

// Budget of a run whose options have none.
const (
	DefaultModelCalls  = 100
	DefaultModelTokens = 500_000
)

// modelPlan is what a command is about to ask, for the question whether it may.
type modelPlan struct {
	what  string // what it is for: "phrases for 12 tools of text"
	sends string // what is sent
	calls int    // the most questions
	// tokens are the most that these questions and their answers have, as estimated.
	tokens int
}

// model returns a client of the configured model, or of a recording. Nothing is sent before the plan is approved.
func (d *Deps) model(o ModelOptions, plan modelPlan) (*model.Client, error) {
	s, err := d.Settings()
	if err != nil {
		return nil, err
	}
	path := d.recordingPath(o.Record)
	switch {
	case o.Budget.Calls < 0 || o.Budget.Tokens < 0 || !(o.Budget.Cost >= 0):
		return nil, host.Errorf(host.InvalidArgs, "a budget is negative; expected 0, which is no bound, or more")
	case o.Record != "" && o.Replay != "":
		return nil, host.Errorf(host.InvalidArgs, "--record and --replay exclude each other: a replay records nothing")
	case o.Replay != "":
		path = o.Replay
	}
	recording, err := model.OpenRecording(path, o.Replay == "")
	if err != nil {
		return nil, err
	}
	d.remember(recordOption, path)
	if recording.Damaged > 0 {
		d.Notice(manifest.Plural(recording.Damaged, "line") + " of " + path + " cannot be read")
	}
	client := &model.Client{Recording: recording, Replay: o.Replay != "", Budget: o.Budget, Prices: s.Model.Prices,
		Endpoint: &model.Endpoint{URL: s.Model.URL, Name: s.Model.Name, Timeout: s.Model.Timeout}}
	if client.Replay {
		return client, replayedModel(client)
	}
	if s.Model.URL == "" || s.Model.Name == "" {
		return nil, host.Errorf(host.ConfigError, "no model is configured; it takes model.url and model.name").
			WithNext("set PARLEY_MODEL_URL=https://HOST/v1, PARLEY_MODEL_NAME and PARLEY_MODEL_KEY=env:NAME",
				"parley config list")
	}
	if o.Budget.Cost > 0 && !s.Model.Prices.Known() {
		return nil, host.Errorf(host.ConfigError, "--max-cost takes the prices of the model; model.price_in and "+
			"model.price_out are not set").WithNext("set PARLEY_MODEL_PRICE_IN and PARLEY_MODEL_PRICE_OUT, for a million tokens")
	}
	client.Approve = func(ctx context.Context) error { return d.approveModel(ctx, client, s.Model.Key, o, plan) }
	return client, nil
}

// recordingPath returns the file of exchanges that a name stands for; "" is the one in the host's state folder.
func (d *Deps) recordingPath(name string) string {
	return cmp.Or(name, filepath.Join(d.Dirs().State, "model", "exchanges.jsonl"))
}

// replayedModel chooses the model of a recording: the configured one, or the only one.
func replayedModel(c *model.Client) error {
	models := c.Recording.Models()
	switch {
	case slices.Contains(models, c.Endpoint.Name):
	case len(models) == 1:
		c.Endpoint.Name = models[0]
	default:
		return host.Errorf(host.InvalidArgs, "%s has answers of %s; expected one", c.Recording.Path,
			manifest.Plural(len(models), "model")).WithNext("set PARLEY_MODEL_NAME to the one to replay: " +
			strings.Join(models, ", "))
	}
	return nil
}

// approveModel asks whether the plan may be carried out, and then fetches the key that a setting names.
func (d *Deps) approveModel(
	ctx context.Context, c *model.Client, key string, o ModelOptions, plan modelPlan,
) error {
	rules, err := d.Policy()
	if err != nil {
		return err
	}
	base, err := url.Parse(c.Endpoint.URL)
	if err != nil {
		return err
	}
	cost := "its price is not configured"
	if c.Prices.Known() {
		cost = fmt.Sprintf("a cost of up to %.4f", float64(plan.tokens)*max(c.Prices.In, c.Prices.Out)/1e6)
	}
	text := fmt.Sprintf("Ask %s at %s for %s.\nIt gets %s.\nUp to %s with %d tokens, %s. It ends at %s.\n",
		manifest.CleanLine(c.Endpoint.Name), base.Host, plan.what, plan.sends, manifest.Plural(plan.calls, "question"),
		plan.tokens, cost, budgetText(o.Budget))
	if err := d.approve(ctx, rules, Change{Diff: text, Sends: true, What: "what is sent to a model"}, o.Yes); err != nil {
		return err
	}
	kind, name, _ := strings.Cut(key, ":")
	switch kind {
	case "env":
		if c.Endpoint.Key = d.Env(name); c.Endpoint.Key == "" {
			return host.Errorf(host.ConfigError, "model.key is %s, and this variable is not set", key).
				WithNext("parley config list")
		}
	case "secret":
		if c.Endpoint.Key, err = rules.Secret(ctx, name); err != nil {
			return err
		}
		d.note("secret", name, "sent to "+base.Host)
	}
	return nil
}

// budgetText says at which of its bounds a run ends.
func budgetText(b model.Budget) string {
	var bounds []string
	if b.Calls > 0 {
		bounds = append(bounds, manifest.Plural(b.Calls, "request"))
	}
	if b.Tokens > 0 {
		bounds = append(bounds, manifest.Plural(b.Tokens, "token"))
	}
	if b.Cost > 0 {
		bounds = append(bounds, fmt.Sprintf("a cost of %g", b.Cost))
	}
	if len(bounds) == 0 {
		return "no bound"
	}
	return strings.Join(bounds, " or ")
}

// ModelRun is what a command spent on a model.
type ModelRun struct {
	model.Usage
	Stopped string `json:"stopped,omitempty"` // why it ended before everything was asked
}

// stop reports whether an error is that of a used-up budget, after which what was done so far counts. It is then noted
// in the run.
func (r *ModelRun) stop(err error) bool {
	if errors.Is(err, model.ErrBudget) {
		r.Stopped = err.Error()
		return true
	}
	return false
}

// edits returns the options of applying what the model proposed.
func (o *ModelOptions) edits(dryRun bool) EditOptions {
	return EditOptions{DryRun: dryRun, Yes: o.Yes, Progress: o.Progress}
}

// told tells how much is done.
func (o *ModelOptions) told(done, total int, message string) {
	if o.Progress != nil {
		o.Progress(float64(done), float64(total), message)
	}
}
