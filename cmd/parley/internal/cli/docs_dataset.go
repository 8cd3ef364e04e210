package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/stats/dataset"
	"github.com/parley-tools/parley/manifest"
)

func newDocsDataset(app *App) *cobra.Command {
	return parent("dataset", "Share what was learned from use, as a file", newDatasetExport(app),
		newDatasetImport(app))
}

type datasetExportOptions struct {
	app *App
	command.DatasetOptions
}

func newDatasetExport(app *App) *cobra.Command {
	opts := &datasetExportOptions{app: app}
	cmd := &cobra.Command{
		Use:   "export [NAME]",
		Short: "Write sessions, queries and edits as JSONL",
		Long: "The first line is a card that counts the others and says how they are redacted. A line is a session with " +
			"its calls and\noutcomes, a query with the tools that serve it, or an edit with its scores. Verdicts of docs " +
			"judge are added from its\nrecording. NAME is a plugin, a group or a tool; without one the file has everything.",
		Example: "parley docs dataset export --out use.jsonl\nparley docs dataset export text --since 7d --out use.jsonl\n" +
			"parley docs dataset export --values --out use.jsonl",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = oneWord(args)
			if opts.Out == "" {
				return host.Errorf(host.InvalidArgs, "--out is missing; expected the file to write").
					WithNext("parley docs dataset export --out FILE")
			}
			return runDatasetExport(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Out, "out", "", "write FILE")
	cmd.Flags().StringVar(&opts.Since, "since", "", "only records since: 24h, 7d, 2026-11-21")
	cmd.Flags().BoolVar(&opts.Values, "values", false, "keep callers' values and searches, as far as traces have them")
	cmd.Flags().StringVar(&opts.Record, "record", "", "add the verdicts that the recording FILE has")
	cmd.Flags().SortFlags = false
	return cmd
}

func runDatasetExport(ctx context.Context, opts *datasetExportOptions) error {
	app := opts.app
	data, err := command.ExportDataset(ctx, app.deps, opts.DatasetOptions)
	if err != nil {
		return err
	}
	next := []string{"parley docs eval --dataset " + shellQuote(data.File)}
	return app.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s: ", data.File)
		cardText(w, &data.Card)
	})
}

// cardText prints what a dataset has.
func cardText(w io.Writer, c *dataset.Card) {
	fmt.Fprintf(w, "%s with %s, %s, %s\n", manifest.Plural(c.Sessions, "session"), manifest.Plural(c.Calls, "call"),
		manifest.Plural(c.Queries, "query"), manifest.Plural(c.Edits, "edit"))
	fmt.Fprintln(w, "redaction: "+manifest.CleanLine(c.Redaction))
}

type datasetImportOptions struct {
	app  *App
	file string
	command.EditOptions
}

func newDatasetImport(app *App) *cobra.Command {
	opts := &datasetImportOptions{app: app}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Apply the edits of a dataset that are for installed builds",
		Long: "Each edit passes the gate of docs apply. The sessions and queries of a dataset change nothing: they are " +
			"evidence of\nothers, which cannot be verified here. docs eval measures with them.",
		Example: "parley docs dataset import use.jsonl --dry-run\nparley docs dataset import use.jsonl",
		RunE:    runWith(runDatasetImport, opts, &opts.file),
	}
	addEditing(cmd, &opts.EditOptions)
	return cmd
}

func runDatasetImport(ctx context.Context, opts *datasetImportOptions) error {
	app := opts.app
	opts.Progress = app.progress()
	data, err := command.ImportDataset(ctx, app.deps, opts.file, opts.EditOptions)
	if err != nil {
		return err
	}
	return app.print(data, []string{"parley docs list", "parley docs diff"}, func(w io.Writer) {
		cardText(w, &data.Card)
		app.applyText(w, data.ApplyData)
		if data.Skipped > 0 {
			fmt.Fprintf(w, "%s left out: of a build that is not installed, or applied already\n", manifest.Plural(data.Skipped, "edit"))
		}
	})
}

type docsEvalOptions struct {
	app *App
	command.EvalOptions
	model command.ModelOptions
}

func newDocsEval(app *App) *cobra.Command {
	opts := &docsEvalOptions{app: app}
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Score the documentation of plugins, or of a list of MCP tools, by a dataset",
		Long: "Search is scored by the queries of the dataset, schemas by its calls that have values. The same file and " +
			"the same tools\nhave the same figures. With --model the configured model (model.url) also chooses a tool for " +
			"each query, after a question\nat the terminal.",
		Example: "parley docs eval --dataset use.jsonl\nparley docs eval --dataset use.jsonl --tools tools.json --json\n" +
			"parley docs eval --dataset use.jsonl --model --max-calls 20",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Dataset == "" {
				return host.Errorf(host.InvalidArgs, "--dataset is missing; expected a file of parley docs dataset export").
					WithNext("parley docs eval --dataset FILE")
			}
			return runDocsEval(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Dataset, "dataset", "", "measure by FILE")
	cmd.Flags().StringVar(&opts.Tools, "tools", "", "measure the tools/list result in FILE, not the installed plugins")
	cmd.Flags().BoolVar(&opts.Model, "model", false, "let a model choose a tool for each query")
	app.addModel(cmd, &opts.model)
	cmd.Flags().SortFlags = false
	return cmd
}

func runDocsEval(ctx context.Context, opts *docsEvalOptions) error {
	app := opts.app
	opts.model.Progress = app.progress()
	data, err := command.DocsEval(ctx, app.deps, opts.EvalOptions, opts.model)
	if err != nil {
		return err
	}
	return app.print(data, []string{"parley docs optimize NAME"}, func(w io.Writer) {
		if data.Search != nil {
			searchScores(w, data.Search)
		}
		c := data.Calls
		fmt.Fprintf(w, "%s: %d of tools that are unknown, %d with values\n", manifest.Plural(c.Calls, "call"), c.Unknown, c.Values)
		fmt.Fprintf(w, "valid, of those that succeeded: %d of %d %s\n", c.Accepted, c.Succeeded, app.share(c.AcceptedShare))
		fmt.Fprintf(w, "not valid, of those that failed by arguments: %d of %d %s\n", c.Refused, c.Failed,
			app.share(c.RefusedShare))
		if m := data.Choices; m != nil {
			fmt.Fprintf(w, "the model chose right for %d of %s %s\n", m.Right, manifest.Plural(m.Queries, "query"), app.share(m.Share))
			malformedText(w, m.Malformed, m.Queries+m.Malformed)
			modelText(w, data.Model)
		}
	})
}
