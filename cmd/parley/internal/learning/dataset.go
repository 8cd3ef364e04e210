package learning

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/tools"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/dataset"
	"github.com/parley-tools/parley/host/learn/judge"
	"github.com/parley-tools/parley/host/learn/model"
	"github.com/parley-tools/parley/host/learn/suggest"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

var datasetExportCommand = &command.Command[*datasetExportOptions]{
	Use: "export [NAME]", Run: runDatasetExport, Words: command.CompleteNames,
	Short: "Write sessions, queries and edits as JSONL",
	Long: "The first line is a card that counts the others and says how they are redacted. A line is a session with " +
		"its calls and\noutcomes, a query with the tools that serve it, or an edit with its scores. Verdicts of docs " +
		"judge are added from its\nrecording. NAME is a plugin, a group or a tool; without one the file has everything.",
	Example: "parley docs dataset export --out use.jsonl\nparley docs dataset export text --since 7d --out use.jsonl\n" +
		"parley docs dataset export --values --out use.jsonl",
}

// runDatasetExport writes sessions, queries and edits to a file.
func runDatasetExport(ctx context.Context, app *command.App, opts *datasetExportOptions) error {
	if opts.Out == "" {
		return host.Errorf(host.InvalidArgs, "--out is missing: parley docs dataset export --out FILE")
	}
	catalog, scope, records, err := recorded(app, opts.Name, opts.Since)
	if err != nil {
		return err
	}
	verdict, err := verdicts(app, opts.Replay, catalog)
	if err != nil {
		return err
	}
	list, err := docsList(app, "")
	if err != nil {
		return err
	}
	var edits []dataset.Edit
	for _, of := range list.Overlays {
		for _, e := range of.Edits {
			edits = append(edits, dataset.Edit{Plugin: of.Plugin, Manifest: of.Manifest, Edit: e.Edit})
		}
	}
	set := dataset.New(dataset.Options{Records: records, Catalog: catalog, Scope: scope, Values: opts.Values,
		Shapes:  func(params json.RawMessage) json.RawMessage { return trace.Shapes(params, nil) },
		Verdict: verdict, Edits: edits, Created: time.Now().UTC().Truncate(time.Second)})
	var b bytes.Buffer
	if err := set.Write(&b); err != nil {
		return err
	}
	if err := writeBelow(opts.Out, b.Bytes()); err != nil {
		return host.Errorf(host.Unavailable, "cannot write %s: %s", opts.Out, manifest.CleanLine(err.Error())).
			WithNext("--out with a file that you can write")
	}
	data := struct {
		File string       `json:"file"`
		Card dataset.Card `json:"card"`
	}{opts.Out, set.Card}
	return app.Print(data, []string{"parley docs eval --dataset " + command.ShellQuote(data.File)}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: ", data.File)
		cardText(w, &data.Card)
	})
}

// cardText prints the content of a dataset.
func cardText(w io.Writer, c *dataset.Card) {
	fmt.Fprintf(w, "%s with %s, %s, %s\n", manifest.Plural(c.Sessions, "session"), manifest.Plural(c.Calls, "call"),
		manifest.Plural(c.Queries, "query"), manifest.Plural(c.Edits, "edit"))
	fmt.Fprintln(w, "redaction: "+manifest.CleanLine(c.Redaction))
}

type datasetImportOptions struct {
	File string `word:""`
	editOptions
}

var datasetImportCommand = &command.Command[*datasetImportOptions]{
	Use: "import FILE", Run: runDatasetImport,
	Short: "Apply the edits of a dataset that are for installed builds",
	Long: "Each edit passes the gate of docs apply. The sessions and queries of a dataset change nothing, because " +
		"they cannot\nbe verified here; docs eval measures with them.",
	Example: "parley docs dataset import use.jsonl --dry-run\nparley docs dataset import use.jsonl",
}

// runDatasetImport applies the edits of a dataset that are for installed builds and pass the gate. The dataset's
// sessions and queries change nothing, because they are somebody else's evidence, which cannot be verified here.
func runDatasetImport(ctx context.Context, app *command.App, opts *datasetImportOptions) error {
	set, err := readDataset(ctx, opts.File)
	present, failed := docsList(app, "")
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	data := struct {
		*applyData
		Card    dataset.Card `json:"card"`
		Skipped int          `json:"skipped"` // edits of plugins or builds that are not installed, and applied ones
	}{Card: set.Card}
	var all proposed
	for _, e := range set.Edits {
		of := build{e.Plugin, e.Manifest}
		if of.find(app, "") != nil || present.has(of.Plugin, e.ID()) {
			data.Skipped++
			continue
		}
		e.Origin, e.Applied, e.Scores = "dataset", time.Time{}, nil // they were not measured here
		all.add(of.Plugin, suggest.Proposal{Edit: e.Edit})
	}
	data.applyData, err = applyEdits(ctx, app, all, opts.editOptions)
	if err != nil {
		return err
	}
	return app.Print(data, []string{"parley docs list", "parley docs diff"}, func(w io.Writer) {
		cardText(w, &data.Card)
		applyText(app, w, data.applyData)
		command.PrintIf(w, data.Skipped > 0, "%s left out: for a build that is not installed, or already applied\n",
			manifest.Plural(data.Skipped, "edit"))
	})
}

var docsEvalCommand = &command.Command[*docsEvalOptions]{
	Use: "eval", Run: runDocsEval,
	Short: "Score the documentation of plugins, or of a list of MCP tools, by a dataset",
	Long: "Search is scored by the queries of the dataset, schemas by its calls that have values. The same file and " +
		"the same tools\nhave the same figures. With --model the configured model (model.url) also chooses a tool for " +
		"each query, after a question\nat the terminal.",
	Example: "parley docs eval --dataset use.jsonl\nparley docs eval --dataset use.jsonl --tools tools.json --json\n" +
		"parley docs eval --dataset use.jsonl --model --max-calls 20",
}

// runDocsEval scores a catalog by a dataset.
func runDocsEval(ctx context.Context, app *command.App, opts *docsEvalOptions) error {
	if opts.Dataset == "" {
		return host.Errorf(host.InvalidArgs, "--dataset is missing; expected a file of parley docs dataset export: "+
			"parley docs eval --dataset FILE")
	}
	set, err := readDataset(ctx, opts.Dataset)
	if err != nil {
		return err
	}
	catalog, err := tools.Measured(ctx, app, opts.Tools)
	if err != nil {
		return err
	}
	data := struct {
		*dataset.Report
		Choices *dataset.Choices `json:"choices,omitempty"`
		Model   *modelRun        `json:"model,omitempty"`
	}{Report: set.Evaluate(catalog)}
	if opts.Model {
		questions := set.Questions(catalog)
		if len(questions) == 0 {
			return host.Errorf(host.InvalidArgs, "%s has no queries for a model to choose tools for", opts.Dataset).
				WithNext("leave out --model")
		}
		plan := modelPlan{what: "the choice of tools for " + manifest.Plural(len(set.Queries), "query"),
			sends: "the queries of the dataset and lines of documentation"}
		data.Choices = &dataset.Choices{}
		run, err := ask(ctx, app, opts.modelOptions, plan, questions, func(int) string { return "choices of the model" },
			func(i int, answer string) { set.Count(data.Choices, i, answer) })
		if err != nil {
			return err
		}
		data.Model = &run
	}
	return app.Print(data, []string{"parley docs optimize NAME"}, func(w io.Writer) {
		if data.Search != nil {
			tools.SearchScores(w, data.Search)
		}
		c := data.Calls
		fmt.Fprintf(w, "%s: %d to unknown tools, %d with values\n", manifest.Plural(c.Calls, "call"), c.Unknown, c.Values)
		fmt.Fprintf(w, "valid, of those that succeeded: %d of %d %s\n", c.Accepted, c.Succeeded, share(app, c.AcceptedShare))
		fmt.Fprintf(w, "invalid, of those that failed by arguments: %d of %d %s\n", c.Refused, c.Failed,
			share(app, c.RefusedShare))
		if m := data.Choices; m != nil {
			fmt.Fprintf(w, "the model chose the right tool for %d of %s %s\n", m.Right, manifest.Plural(m.Queries, "query"),
				share(app, m.Share))
			malformedText(w, m.Malformed, m.Queries+m.Malformed)
			modelText(w, data.Model)
		}
	})
}

// datasetExportOptions say what [runDatasetExport] writes. Name is a plugin, a group or a tool; "" means all.
type datasetExportOptions struct {
	Name  string `word:""`
	Out   string `flag:"out" usage:"write FILE"`
	Since string `flag:"since" usage:"only records since: 24h, 7d, 2026-11-21"`
	// keep values and searches of callers
	Values bool `flag:"values" usage:"keep callers' values and searches, as far as traces have them"`
	// the recording with verdicts on sessions; "" is the one in the host's state folder
	Replay string `flag:"replay" usage:"add the verdicts in the recording FILE"`
}

// verdicts returns a function that looks verdicts up in a recording. It asks no model.
func verdicts(app *command.App, record string, catalog *host.Catalog) (func(*judge.Session) *judge.Verdict, error) {
	path := recordingPath(app, record)
	recording, err := model.OpenRecording(path, record == "")
	if err != nil {
		return nil, err
	}
	command.Remember(app, command.RecordOption, path)
	s, _ := app.Settings() // the catalog depends on the settings, so they are valid
	client := &model.Client{Recording: recording, Replay: true, Endpoint: &model.Endpoint{Name: s.Model.Name}}
	if replayedModel(client) != nil { // verdicts of several models, or none
		client.Recording = &model.Recording{}
	}
	return func(s *judge.Session) *judge.Verdict { return recordedVerdict(client, s, catalog) }, nil
}

// recordedVerdict returns the verdict on a session in a recording, or nil if there is none.
func recordedVerdict(client *model.Client, s *judge.Session, catalog *host.Catalog) *judge.Verdict {
	answer, _ := client.Recorded(s.Question(catalog))
	v, _ := judge.Parse(answer) // "" is no verdict
	return v
}

// maxDataset bounds a dataset, in bytes.
const maxDataset = 256 << 20

// readDataset reads a dataset.
func readDataset(ctx context.Context, path string) (*dataset.Dataset, error) {
	raw, err := command.ReadValue(ctx, path, maxDataset)
	var set *dataset.Dataset
	if err == nil {
		set, err = dataset.Read(bytes.NewReader(raw))
	}
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s is not a dataset: %s", path, manifest.CleanLine(err.Error())).
			WithSteps(step.Operator(step.OpHelp, "docs dataset export"))
	}
	return set, nil
}

// docsEvalOptions say what [runDocsEval] measures.
type docsEvalOptions struct {
	Dataset string `flag:"dataset" usage:"measure by FILE"`
	// a list of MCP in place of the installed plugins; "" means these
	Tools string `flag:"tools" usage:"measure the tools/list result in FILE, not the installed plugins"`
	// let the configured model choose tools for the queries
	Model bool `flag:"model" usage:"let a model choose a tool for each query"`
	modelOptions
}
