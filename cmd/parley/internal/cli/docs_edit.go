package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type docsSuggestOptions struct {
	app *App
	command.SuggestOptions
	batch string
}

func newDocsSuggest(app *App) *cobra.Command {
	opts := &docsSuggestOptions{app: app}
	cmd := &cobra.Command{
		Use:   "suggest [NAME]",
		Short: "Propose better documentation, by what failed",
		Long: "By rules over traces, without a model. Each suggestion has its evidence: how many calls, in how many " +
			"sessions, and some of\ntheir ids. Nothing is changed. NAME is a plugin, a group or a tool. Only calls in " +
			"sessions count. Calls that many\nsessions make in the same order are offered as a file for parley batch.",
		Example: "parley docs suggest\nparley docs suggest text.hash --since 7d --json\n" +
			"parley docs suggest --batch s1a2b3c4d >login.ndjson",
		ValidArgsFunction: app.completeNames,
		RunE:              runWith(runDocsSuggest, opts, &opts.Name),
	}
	cmd.Flags().StringVar(&opts.Since, "since", "", "only records since: 24h, 7d, 2026-11-21")
	cmd.Flags().StringVar(&opts.batch, "batch", "", "print the calls of this sequence as lines for parley batch")
	return cmd
}

func runDocsSuggest(ctx context.Context, opts *docsSuggestOptions) error {
	app := opts.app
	data, err := command.DocsSuggest(ctx, app.deps, opts.SuggestOptions)
	if err != nil {
		return err
	}
	if opts.batch != "" {
		return app.printBatch(data, opts.batch)
	}
	next := []string{"parley stats"}
	if len(data.Suggestions) > 0 {
		next = []string{"parley docs apply " + data.Suggestions[0].ID, "parley docs apply --dry-run"}
	}
	for i := range data.Composites {
		next = append(next, "parley docs suggest --batch "+data.Composites[i].ID)
	}
	return app.print(data, next, func(w io.Writer) {
		for _, s := range data.Suggestions {
			app.editText(w, s.ID, s.Plugin, &s.Edit, "")
			why := fmt.Sprintf("%s: %s (%s)", s.Rule, s.Why, manifest.Plural(s.Sessions, "session"))
			fmt.Fprintln(w, wrapped("    "+manifest.CleanLine(why), app.columns(), "    "))
		}
		for _, c := range data.Composites {
			fmt.Fprintf(w, "%s  batch %s\n", c.ID, strings.Join(c.Tools, ", "))
			fmt.Fprintln(w, wrapped("    sequence: "+c.Why, app.columns(), "    "))
			fmt.Fprintln(w, "    parley docs suggest --batch "+c.ID)
		}
		fmt.Fprintf(w, "%s from %s in %s\n", manifest.Plural(len(data.Suggestions), "suggestion"), manifest.Plural(data.Calls, "call"),
			manifest.Plural(data.Sessions, "session"))
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

// printBatch prints the calls of a composite, and on the error output how to run them.
func (a *App) printBatch(data *command.SuggestData, id string) error {
	c, err := data.Composite(id)
	if err != nil {
		return err
	}
	for _, line := range c.Lines {
		if _, err := a.Out.Write(append(manifest.EscapeJSON(line), '\n')); err != nil {
			return err
		}
	}
	run := "parley batch FILE"
	for _, p := range c.Parameters {
		fmt.Fprintf(a.Err, "%s: %s %s\n", p.Name, p.Type, manifest.CleanLine(p.Description))
		run += fmt.Sprintf(" --param %s=%s", p.Name, strings.ToUpper(p.Name))
	}
	fmt.Fprintln(a.Err, "Run: "+run)
	if c.Test != nil {
		fmt.Fprintln(a.Err, "Test: parley batch FILE --params "+shellQuote(string(manifest.EscapeJSON(c.Test))))
	}
	return nil
}

// editText prints an edit: what it changes, the text before if it replaces one, and the new one.
func (a *App) editText(w io.Writer, id, plugin string, e *host.Edit, before string) {
	where := plugin + "." + e.Tool + " " + e.Field
	if e.Param != "" {
		where += " " + e.Param
	}
	value := command.EditValue(e)
	fmt.Fprintf(w, "%s  %s\n", id, manifest.CleanLine(where))
	if before != "" {
		fmt.Fprintln(w, wrapped("  - "+manifest.CleanLine(before), a.columns(), "    "))
	}
	if value != "" {
		fmt.Fprintln(w, wrapped("  + "+manifest.CleanLine(value), a.columns(), "    "))
	}
}

type docsApplyOptions struct {
	app *App
	command.ApplyOptions
}

func newDocsApply(app *App) *cobra.Command {
	opts := &docsApplyOptions{app: app}
	cmd := &cobra.Command{
		Use:   "apply [NAME...]",
		Short: "Apply suggestions, or a file of edits",
		Long: "NAME is the id of a suggestion, or a plugin, a group or a tool; without a NAME all suggestions are applied. " +
			"Edits are kept\nbeside the plugin, for this build of it: no byte of it changes, and with another build they are " +
			"dropped, with a notice.\nEach passes a gate: no rule of the linter is broken that was not, every tool is still " +
			"found by its own tasks, examples run,\nand no text promises more than the tool does or is that of another tool. " +
			"Then a person approves the changes at the\nterminal. All are written, or none.",
		Example:           "parley docs apply --dry-run\nparley docs apply text.hash\nparley docs apply --from edits.json",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			if opts.Names = names; opts.From != "" && len(names) > 0 {
				return host.Errorf(host.InvalidArgs, "--from applies the edits of a file; it takes no names").
					WithNext("parley docs apply --from " + shellQuote(opts.From))
			}
			return runDocsApply(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.From, "from", "", "apply the edits of FILE, which are for this build of a plugin")
	cmd.Flags().StringVar(&opts.Since, "since", "", "suggest only by records since: 24h, 7d, 2026-11-21")
	addEditing(cmd, &opts.EditOptions)
	cmd.Flags().SortFlags = false
	return cmd
}

// addEditing adds the options of applying edits.
func addEditing(cmd *cobra.Command, o *command.EditOptions) {
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would be applied")
	addYes(cmd, &o.Yes)
}

func runDocsApply(ctx context.Context, opts *docsApplyOptions) error {
	app := opts.app
	opts.Progress = app.progress()
	data, err := command.DocsApply(ctx, app.deps, opts.ApplyOptions)
	if err != nil {
		return err
	}
	next := []string{"parley docs diff"}
	if opts.DryRun || len(data.Applied) == 0 {
		next = []string{"parley docs suggest"}
	}
	return app.print(data, next, func(w io.Writer) { app.applyText(w, data) })
}

// applyText prints what was applied, and what the gate refused.
func (a *App) applyText(w io.Writer, data *command.ApplyData) {
	for _, e := range data.Applied {
		a.editText(w, e.ID, e.Plugin, &e.Edit, "")
	}
	for _, r := range data.Refused {
		what := strings.TrimSpace(r.Edit.Tool + " " + r.Edit.Field + " " + r.Edit.Param)
		fmt.Fprintln(w, wrapped(manifest.CleanLine("refused: "+what+": "+r.Why), a.columns(), "  "))
	}
	verb := "applied"
	if data.DryRun {
		verb = "would be applied"
	}
	fmt.Fprintf(w, "%s %s, %d refused\n", manifest.Plural(len(data.Applied), "edit"), verb, len(data.Refused))
}

type docsDiffOptions struct {
	app   *App
	name  string
	patch bool
}

func newDocsDiff(app *App) *cobra.Command {
	opts := &docsDiffOptions{app: app}
	cmd := &cobra.Command{
		Use:   "diff [NAME]",
		Short: "Show what applied edits change",
		Long: "NAME is a plugin, a group or a tool. --patch prints a JSON Patch (RFC 6902) of the manifest of a plugin, " +
			"for its author.",
		Example:           "parley docs diff\nparley docs diff text --patch",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.name = oneWord(args)
			if opts.patch && opts.name == "" {
				return host.Errorf(host.InvalidArgs, "--patch is of the manifest of one plugin; name it").
					WithNext("parley docs diff text --patch")
			}
			return runDocsDiff(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.patch, "patch", false, "print a JSON Patch of the plugin's manifest")
	return cmd
}

func runDocsDiff(_ context.Context, opts *docsDiffOptions) error {
	app := opts.app
	if opts.patch {
		ops, err := command.DocsPatch(app.deps, opts.name)
		if err != nil {
			return err
		}
		return app.printDocument(ops)
	}
	data, err := command.DocsDiff(app.deps, opts.name)
	if err != nil {
		return err
	}
	return app.print(data, []string{"parley docs list"}, func(w io.Writer) {
		for _, e := range data.Edits {
			app.editText(w, e.ID, e.Plugin, &e.Edit, e.Before)
		}
		fmt.Fprintln(w, manifest.Plural(len(data.Edits), "edit"))
	})
}

type docsListOptions struct {
	app  *App
	name string
}

func newDocsList(app *App) *cobra.Command {
	opts := &docsListOptions{app: app}
	return &cobra.Command{
		Use:               "list [NAME]",
		Short:             "List applied edits",
		Example:           "parley docs list\nparley docs list text --json",
		ValidArgsFunction: app.completeNames,
		RunE:              runWith(runDocsList, opts, &opts.name),
	}
}

func runDocsList(_ context.Context, opts *docsListOptions) error {
	app := opts.app
	data, err := command.DocsList(app.deps, opts.name)
	if err != nil {
		return err
	}
	next := []string{"parley docs suggest"}
	if len(data.Overlays) > 0 {
		next = []string{"parley docs diff", "parley docs revert --all"}
	}
	return app.print(data, next, func(w io.Writer) {
		for _, of := range data.Overlays {
			fmt.Fprintf(w, "%s, build %s\n", of.Plugin, manifest.Clip(of.Manifest, 24))
			for _, e := range of.Edits {
				fmt.Fprintf(w, "  %s  %s  %-28s %s\n", e.ID, e.Applied.Format("2006-01-02"),
					manifest.CleanLine(e.Tool+" "+e.Field), manifest.CleanLine(e.Origin)+scoresText(e.Scores))
			}
		}
		for _, path := range data.Dropped {
			fmt.Fprintf(w, "dropped, for a build that is gone: %s\n", path)
		}
		if len(data.Overlays)+len(data.Dropped) == 0 {
			fmt.Fprintln(w, "no edits")
		}
	})
}

// scoresText is what was measured of an edit, "" if nothing was.
func scoresText(s *host.EditScores) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf(", score %.3f, before %.3f", s.After, s.Before)
}

type docsRevertOptions struct {
	app   *App
	names []string
	all   bool
}

func newDocsRevert(app *App) *cobra.Command {
	opts := &docsRevertOptions{app: app}
	cmd := &cobra.Command{
		Use:               "revert NAME...",
		Args:              cobra.ArbitraryArgs,
		Short:             "Remove applied edits",
		Long:              "NAME is the id of an edit, or a plugin, a group or a tool.",
		Example:           "parley docs revert text\nparley docs revert --all",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			if opts.names = names; opts.all == (len(names) > 0) {
				return host.Errorf(host.InvalidArgs, "parley docs revert takes either names or --all").
					WithNext("parley docs list")
			}
			return runDocsRevert(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.all, "all", false, "all edits, and files of those that were dropped")
	return cmd
}

func runDocsRevert(_ context.Context, opts *docsRevertOptions) error {
	app := opts.app
	data, err := command.DocsRevert(app.deps, opts.names, opts.all)
	if err != nil {
		return err
	}
	return app.print(data, []string{"parley docs list"}, func(w io.Writer) {
		for _, e := range data.Reverted {
			app.editText(w, e.ID, e.Plugin, &e.Edit, "")
		}
		fmt.Fprintf(w, "%s removed\n", manifest.Plural(len(data.Reverted), "edit"))
	})
}
