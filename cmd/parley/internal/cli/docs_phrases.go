package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
)

type docsPhrasesOptions struct {
	app    *App
	Name   string
	Prompt bool
	Import string
	DryRun bool
	model  command.ModelOptions
}

func newDocsPhrases(app *App) *cobra.Command {
	opts := &docsPhrasesOptions{app: app}
	cmd := &cobra.Command{
		Use:   "phrases [NAME]",
		Short: "Let a model phrase how people ask for tools",
		Long: "NAME is a plugin, a group or a tool. The configured model is asked (model.url), after a question at the " +
			"terminal. --prompt\nprints the text for any other model or agent, and --import applies what that returns. " +
			"Search finds a tool by these phrases,\ntoo, and gives them less weight than the author's words. Each passes the " +
			"gate of docs apply: it finds its tool among the\nfirst five, and no other tool loses a search by it.",
		Example: "parley docs phrases text --dry-run\nparley docs phrases text --prompt >prompt.txt\n" +
			"parley docs phrases --import answer.json",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = oneWord(args)
			switch {
			case opts.Prompt && opts.Import != "", (opts.Name == "") == (opts.Import == ""):
				return host.Errorf(host.InvalidArgs, "expected NAME, NAME with --prompt, or --import FILE").
					WithNext("parley docs phrases text --prompt", "parley docs phrases --import answer.json")
			}
			return runDocsPhrases(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Prompt, "prompt", false, "print the text that asks for phrases")
	cmd.Flags().StringVar(&opts.Import, "import", "", "apply the phrases in FILE; - is stdin")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only say what would be applied")
	app.addModel(cmd, &opts.model)
	cmd.Flags().SortFlags = false
	return cmd
}

func runDocsPhrases(ctx context.Context, opts *docsPhrasesOptions) error {
	app := opts.app
	if opts.Prompt {
		prompt, err := command.PhrasesPrompt(app.deps, opts.Name)
		if err != nil {
			return err
		}
		next := []string{"parley docs phrases --import FILE"}
		return app.print(map[string]string{"prompt": prompt}, next, func(w io.Writer) { fmt.Fprint(w, prompt) })
	}
	if opts.Name != "" {
		opts.model.Progress = app.progress()
		data, err := command.AskPhrases(ctx, app.deps, opts.Name, opts.DryRun, opts.model)
		if err != nil {
			return err
		}
		return app.print(data, []string{"parley docs list"}, func(w io.Writer) {
			app.applyText(w, data.ApplyData)
			malformedText(w, data.Malformed, data.Questions)
			modelText(w, &data.Model)
		})
	}
	edits := command.EditOptions{DryRun: opts.DryRun, Yes: opts.model.Yes, Progress: app.progress()}
	data, err := command.ImportPhrases(ctx, app.deps, opts.Import, edits)
	if err != nil {
		return err
	}
	return app.print(data, []string{"parley docs list"}, func(w io.Writer) { app.applyText(w, data) })
}
