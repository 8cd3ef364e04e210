package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn"
	"github.com/parley-tools/parley/manifest"
)

type learnOptions struct {
	app    *App
	plugin string
}

func newLearn(app *App) *cobra.Command {
	opts := &learnOptions{app: app}
	return &cobra.Command{
		Use:   "learn [PLUGIN]",
		Short: "Tutorial",
		Long: "Shows what to run, finds in the traces of the last 24 hours that you ran it, and continues with the next.\n" +
			"Run this command again after each step. Each session (--session NAME) has its own progress; a new name starts\n" +
			"from scratch. Without PLUGIN, lists the tutorials.",
		Example:           "parley learn text\nparley learn cdp --session first --json",
		ValidArgsFunction: app.completeNames,
		RunE:              runWith(runLearn, opts, &opts.plugin),
	}
}

func runLearn(ctx context.Context, opts *learnOptions) error {
	app := opts.app
	if opts.plugin == "" {
		return app.listTutorials(ctx)
	}
	data, err := command.Learn(ctx, app.deps, opts.plugin)
	if err != nil {
		return err
	}
	next := []string{}
	for _, s := range data.Due() {
		if strings.HasPrefix(s.Run, "parley ") {
			next = append(next, s.Run)
		}
	}
	if data.Finished {
		next = append(next, app.command(host.ListStep(data.Plugin)), "parley learn")
	} else {
		next = append(next, "parley learn "+data.Plugin)
	}
	return app.print(data, next, func(w io.Writer) { learnText(w, data, next) })
}

func (a *App) listTutorials(ctx context.Context) error {
	data, err := command.Tutorials(ctx, a.deps)
	if err != nil {
		return err
	}
	next := []string{}
	for _, t := range data.Tutorials {
		if !t.Finished {
			next = append(next, "parley learn "+t.Plugin)
		}
	}
	if len(next) == 0 {
		next = append(next, "parley --list")
	}
	return a.print(data, next, func(w io.Writer) {
		for _, t := range data.Tutorials {
			fmt.Fprintf(w, "%s  %s (%d of %s done)\n",
				t.Plugin, fit(t.Brief, a.columns()-len(t.Plugin)-24), t.Done, manifest.Plural(t.Steps, "step"))
		}
		fmt.Fprintln(w, "Next: "+strings.Join(next, "  |  "))
	})
}

func learnText(w io.Writer, p *command.LearnData, next []string) {
	fmt.Fprintf(w, "%s: %d of %s done\n", p.Plugin, p.Done, manifest.Plural(len(p.Steps), "step"))
	for _, s := range p.Steps {
		if s.State == learn.Later {
			break
		}
		fmt.Fprintf(w, "  %-4s  %d. %s\n", s.State, s.Step, s.Say)
		if s.State == learn.Now && s.Run != "" {
			fmt.Fprintf(w, "        $ %s\n", s.Run)
		}
		if s.State == learn.Now && s.ExitCode != 0 {
			fmt.Fprintf(w, "        It is meant to exit with %d.\n", s.ExitCode)
		}
	}
	if p.LastTry != nil {
		fmt.Fprintf(w, "The last try exited with %d (%s): read its message, and run the step as it is shown here.\n",
			p.LastTry.ExitCode, manifest.CleanLine(p.LastTry.Code))
	}
	if p.Finished {
		fmt.Fprintf(w, "The tutorial is complete. Next: %s\n", next[len(next)-2])
		return
	}
	fmt.Fprintf(w, "Then: %s\n", next[len(next)-1])
}
