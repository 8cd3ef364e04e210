package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
)

type docsJudgeOptions struct {
	app *App
	command.JudgeOptions
	model command.ModelOptions
}

func newDocsJudge(app *App) *cobra.Command {
	opts := &docsJudgeOptions{app: app}
	cmd := &cobra.Command{
		Use:   "judge [SESSION]",
		Short: "Let a model say which sessions did their task",
		Long: "The configured model (model.url) sees the records of each session that has calls, after a question at the " +
			"terminal. An\nanswer that is not a verdict is counted and is in no other figure. A session whose last call " +
			"failed has not passed,\nwhatever the model says; how often both agree is shown.",
		Example: "parley docs judge --since 7d\nparley docs judge work --json\nparley docs judge --replay exchanges.jsonl",
		RunE:    runWith(runDocsJudge, opts, &opts.Session),
	}
	cmd.Flags().StringVar(&opts.Since, "since", "", "only records since: 24h, 7d, 2026-11-21")
	app.addModel(cmd, &opts.model)
	cmd.Flags().SortFlags = false
	return cmd
}

func runDocsJudge(ctx context.Context, opts *docsJudgeOptions) error {
	app := opts.app
	opts.model.Progress = app.progress()
	data, err := command.DocsJudge(ctx, app.deps, opts.JudgeOptions, opts.model)
	if err != nil {
		return err
	}
	return app.print(data, []string{"parley stats", "parley docs optimize NAME"}, func(w io.Writer) {
		for _, r := range data.Results {
			fmt.Fprintf(w, "%-6s %.2f  %s: %s, %d failed\n", map[bool]string{true: "passed", false: "failed"}[r.Passed],
				r.Verdict.Score, manifest.CleanLine(r.Session), manifest.Plural(r.Calls, "call"), r.Failed)
			text := r.Verdict.Task + " " + r.Verdict.Reasoning
			if r.Verdict.Passed && !r.Codes {
				text += " (passed by the model; its last call failed)"
			}
			fmt.Fprintln(w, wrapped("    "+text, app.columns(), "    "))
		}
		malformedText(w, data.Malformed, data.Malformed+data.Judged)
		a := data.Agreement
		fmt.Fprintf(w, "model and exit codes: both passed %d, both failed %d, only the model %d, only the exit codes %d\n",
			a.BothPassed, a.BothFailed, a.OnlyModel, a.OnlyCodes)
		if a.Same != nil {
			fmt.Fprintf(w, "passed %s; the same verdict %s\n", app.share(data.Passed), app.share(a.Same))
		}
		modelText(w, &data.Model)
	})
}
