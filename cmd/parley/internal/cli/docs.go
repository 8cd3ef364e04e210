package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/docs"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/manifest"
)

func newDocs(app *App) *cobra.Command {
	return parent("docs", "Docs", newDocsAudit(app), newDocsExport(app), newDocsSuggest(app),
		newDocsApply(app), newDocsDiff(app), newDocsList(app), newDocsRevert(app),
		newDocsPhrases(app), newDocsJudge(app), newDocsOptimize(app),
		newDocsDataset(app), newDocsEval(app))
}

type docsAuditOptions struct {
	app *App
	command.DocsAuditOptions
	coverage bool
}

func newDocsAudit(app *App) *cobra.Command {
	opts := &docsAuditOptions{app: app}
	cmd := &cobra.Command{
		Use:   "audit [NAME...]",
		Short: "Show what documentation costs, or what it covers",
		Long: "Tokens are estimated (bytes/4.5). The cost of a mode is that of its tools/list as it is sent. A search and " +
			"a description are\nmeasured over all tools, each searched for by its first task or its brief. NAME is a plugin, " +
			"a group or a tool whose\ntools are shown one by one.",
		Example:           "parley docs audit\nparley docs audit text --mode minimal\nparley docs audit --coverage --json",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			opts.Names = names
			if opts.coverage && (opts.Mode != "" || len(names) > 0) {
				return host.Errorf(host.InvalidArgs, "--coverage is about all plugins; it takes no --mode and no names").
					WithNext("parley docs audit --coverage")
			}
			return runDocsAudit(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Mode, "mode", "", "only minimal, progressive, full or code")
	cmd.Flags().BoolVar(&opts.coverage, "coverage", false, "how much has descriptions, examples, errors and tasks")
	cmd.Flags().SortFlags = false
	completeWords(cmd, "mode", mcp.Modes()...)
	return cmd
}

func runDocsAudit(ctx context.Context, opts *docsAuditOptions) error {
	app := opts.app
	if opts.coverage {
		return app.docsCoverage()
	}
	data, err := command.DocsAudit(ctx, app.deps, opts.DocsAuditOptions)
	if err != nil {
		return err
	}
	next := []string{"parley docs audit --coverage"}
	if len(opts.Names) == 0 {
		next = append(next, "parley docs audit text")
	}
	return app.print(data, next, func(w io.Writer) { app.docsAuditText(w, data, len(opts.Names) > 0) })
}

// docsAuditText prints the costs of each mode, and those of single tools: all if each is set, else the largest.
func (a *App) docsAuditText(w io.Writer, d *docs.Audit, each bool) {
	fmt.Fprintf(w, "%-12s %6s %8s %8s\n", "mode", "tools", "tokens", "saved")
	for _, m := range d.Modes {
		fmt.Fprintf(w, "%-12s %6d %8d %7.1f%%\n", m.Mode, m.Tools, m.Tokens, 100*m.Saved)
	}
	onTop := fmt.Sprintf("On top: %d once for the instructions, %d for a search (at most %d), %d for a description "+
		"(at most %d).", d.Instructions, d.Search.Mean, d.Search.Most, d.Describe.Mean, d.Describe.Most)
	if m := d.Modes[0]; m.BreakEven > 0 {
		onTop += fmt.Sprintf(" With both for each tool, %s costs less up to %s a session.",
			m.Mode, manifest.Plural(m.BreakEven, "tool"))
	}
	fmt.Fprintln(w, wrapped(onTop, a.columns(), "  "))
	rows, title := d.Fattest, "Fattest in "+d.ListedMode
	if each {
		rows, title = d.Tools, "Tokens of each tool"
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-38s %5s %5s %5s %7s %6s %6s\n", title, "tier1", "tier2", "tier3", "listed", "text", "params")
	for _, t := range rows {
		fmt.Fprintf(w, "%-38s %5d %5d %5d %7d %6d %6d\n",
			t.Name, t.Tier1, t.Tier2, t.Tier3, t.Listed, t.Description, t.Parameters)
	}
}

// docsCoverage prints which share of the catalog is documented.
func (a *App) docsCoverage() error {
	data, err := command.DocsCoverage(a.deps)
	if err != nil {
		return err
	}
	return a.print(data, []string{"parley docs audit"}, func(w io.Writer) {
		fmt.Fprintf(w, "%-8s %6s %8s %10s %9s %8s %8s %7s %7s\n",
			"plugin", "groups", "tools", "parameters", "shown", "examples", "verified", "errors", "tasks")
		for _, p := range append(data.Plugins, data.Total) {
			fmt.Fprintf(w, "%-8s", cmp.Or(p.Plugin, "all"))
			for i, s := range []docs.Share{p.Groups, p.Tools, p.Parameters, p.Shown} {
				fmt.Fprintf(w, " %*s", []int{6, 8, 10, 9}[i], fmt.Sprintf("%d/%d", s.Have, s.Total))
			}
			for i, s := range []docs.Share{p.Examples, p.Verified, p.Errors, p.Tasks} {
				fmt.Fprintf(w, " %*.1f%%", []int{7, 7, 6, 6}[i], 100*s.Share)
			}
			fmt.Fprintln(w)
		}
		for _, p := range data.Plugins {
			n := len(p.WithoutTasks)
			if n == 0 {
				continue
			}
			text := fmt.Sprintf("No tasks: %s of %s: %s",
				manifest.Plural(n, "tool"), p.Plugin, strings.Join(p.WithoutTasks[:min(n, 5)], ", "))
			if n > 5 {
				text += " …"
			}
			fmt.Fprintln(w, wrapped(text, a.columns(), "  "))
		}
	})
}

type docsExportOptions struct {
	app *App
	command.DocsExportOptions
}

func newDocsExport(app *App) *cobra.Command {
	opts := &docsExportOptions{app: app}
	cmd := &cobra.Command{
		Use:   "export [NAME...]",
		Short: "Write the catalog in a format of other systems",
		Long: "NAME is a plugin, a group or a tool; without a NAME everything is exported. mcp, openai, openai-strict and\n" +
			`anthropic are {"tools","examples"},` +
			" with examples as calls of that API. markdown is a page and skill an Agent " +
			"Skill for each\nplugin. Tools have the names that MCP lists, which call accepts, too.",
		Example: "parley docs export text --format openai\n" +
			"parley docs export --format skill --out ~/.claude/skills",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			opts.Names = names
			if cmd.Flags().Changed("out") && opts.Out == "" {
				return host.Errorf(host.InvalidArgs, "--out requires the name of a folder").
					WithNext("parley docs export --format skill --out skills")
			}
			return runDocsExport(cmd.Context(), opts)
		},
	}
	formats := docs.Formats()
	usage := strings.Join(formats[:4], ", ") + ",\n" + strings.Join(formats[4:], " or ")
	cmd.Flags().StringVar(&opts.Format, "format", "", usage)
	cmd.Flags().StringVar(&opts.Out, "out", "", "write files into this folder")
	cmd.Flags().SortFlags = false
	completeWords(cmd, "format", formats...)
	return cmd
}

func runDocsExport(ctx context.Context, opts *docsExportOptions) error {
	app := opts.app
	data, err := command.DocsExport(ctx, app.deps, opts.DocsExportOptions)
	if err != nil {
		return err
	}
	for _, w := range data.Warnings {
		app.notice(w)
	}
	return app.print(data, []string{"parley docs export --help"}, func(w io.Writer) {
		for _, f := range data.Files {
			switch {
			case opts.Out != "":
				fmt.Fprintf(w, "wrote %s (%s)\n", f.Path, manifest.Plural(f.Bytes, "byte"))
			case len(data.Files) > 1:
				fmt.Fprintf(w, "<!-- %s -->\n%s\n", f.Path, f.Raw)
			default:
				_, _ = w.Write(f.Raw)
			}
		}
	})
}
