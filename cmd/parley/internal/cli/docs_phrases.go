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
}

func newDocsPhrases(app *App, run runFunc[docsPhrasesOptions]) *cobra.Command {
	opts, run := &docsPhrasesOptions{app: app}, run.or(runDocsPhrases)
	cmd := &cobra.Command{
		Use:   "phrases [NAME]",
		Short: "Let a model phrase how people ask for tools",
		Long: "--prompt prints a text for any model or agent, about a plugin, a group or a tool. --import applies what it " +
			"returns: search\nfinds a tool by these phrases, too, and gives them less weight than the author's words. Each " +
			"passes the gate of docs apply:\nit finds its tool among the first five, and no other tool loses a search by it.",
		Example: "parley docs phrases text --prompt >prompt.txt\nparley docs phrases --import answer.json --dry-run\n" +
			"parley docs phrases --import -",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if opts.Name, err = oneName(args, "docs phrases"); err != nil {
				return err
			}
			switch {
			case opts.Prompt == (opts.Import != ""), opts.Prompt && opts.Name == "", opts.Import != "" && opts.Name != "":
				return host.Errorf(host.InvalidArgs, "expected NAME with --prompt, or --import FILE").
					WithNext("parley docs phrases text --prompt", "parley docs phrases --import answer.json")
			}
			return run(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Prompt, "prompt", false, "print the text that asks for phrases")
	cmd.Flags().StringVar(&opts.Import, "import", "", "apply the phrases in FILE; - is stdin")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only say what would be applied")
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
	data, err := command.ImportPhrases(ctx, app.deps, opts.Import, opts.DryRun)
	if err != nil {
		return err
	}
	return app.print(data, []string{"parley docs list"}, func(w io.Writer) { app.applyText(w, data) })
}
