package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/docs"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/manifest"
)

func newDocs(app *App) *cobra.Command {
	var mode, format, out string
	coverage := false
	audit := &cobra.Command{
		Use:   "audit [NAME...]",
		Short: "Show what documentation costs, or what it covers",
		Long: "Tokens are estimated (bytes/4.5). What a mode costs is its tools/list as it is sent; a search and a description are measured over\n" +
			"all tools, each searched for by its first task or its brief. NAME is a plugin, a group or a tool, to show each tool of it.",
		Example:           "parley docs audit\nparley docs audit text --mode minimal\nparley docs audit --coverage --json",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			if coverage {
				if mode != "" || len(names) > 0 {
					return host.Errorf(host.InvalidArgs, "--coverage is about all plugins; --mode and names mean nothing with it").WithNext("parley docs audit --coverage")
				}
				return app.docsCoverage()
			}
			return app.docsAudit(cmd.Context(), mode, names)
		},
	}
	audit.Flags().StringVar(&mode, "mode", "", "only minimal, progressive or full")
	audit.Flags().BoolVar(&coverage, "coverage", false, "the share that is described, with examples, errors and tasks")
	audit.Flags().SortFlags = false
	_ = audit.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(mcp.Modes(), cobra.ShellCompDirectiveNoFileComp))

	export := &cobra.Command{
		Use:   "export [NAME...]",
		Short: "Write the catalog in a form that others take",
		Long: "NAME is a plugin, a group or a tool; without one it is everything. mcp, openai and anthropic are {\"tools\",\"examples\"} with examples as the\n" +
			"calls of that API, jsonschema is one schema of all calls, markdown a page and skill an Agent Skill for each plugin, and prompt what\n" +
			"MCP tells a client at the start, for an AGENTS.md. Tools have the names that MCP lists, and call takes these, too.",
		Example:           "parley docs export text --format openai\nparley docs export --format skill --out ~/.claude/skills",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			switch {
			case format == "":
				return host.Errorf(host.InvalidArgs, "parley docs export needs --format, one of %s", strings.Join(docs.Formats(), ", ")).WithNext("parley docs export --format mcp")
			case !slices.Contains(docs.Formats(), format):
				return command.UnknownValue("format", format, docs.Formats()).WithNext("parley docs export --format mcp")
			case cmd.Flags().Changed("out") && out == "":
				return host.Errorf(host.InvalidArgs, "--out needs the name of a folder").WithNext("parley docs export --format skill --out skills")
			}
			return app.docsExport(cmd.Context(), format, names, out)
		},
	}
	export.Flags().StringVar(&format, "format", "", strings.Join(docs.Formats()[:4], ", ")+",\n"+strings.Join(docs.Formats()[4:6], ", ")+" or "+docs.Formats()[6])
	export.Flags().StringVar(&out, "out", "", "write files into this folder")
	export.Flags().SortFlags = false
	_ = export.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(docs.Formats(), cobra.ShellCompDirectiveNoFileComp))
	return parent("docs", "Measure or export docs", audit, export)
}

// docsSource is the catalog with an MCP server of its own, that records nothing: what is looked up to be counted was used by nobody. It
// is to be closed.
func (a *App) docsSource(ctx context.Context) (source *docs.Source, closed func(), err error) {
	s, err := a.deps.Settings()
	if err != nil {
		return nil, nil, err
	}
	h, err := a.deps.Host(ctx)
	if err != nil {
		return nil, nil, err
	}
	quiet, err := host.New(host.Config{Version: parley.Version, Catalog: h.Catalog(), Policy: host.DenyAll{}})
	if err != nil {
		return nil, nil, err
	}
	server, err := mcp.New(mcp.Config{Host: quiet, Version: parley.Version, Mode: s.DocMode, Pinned: s.Pinned})
	if err != nil {
		return nil, nil, err
	}
	clients := map[string]*mcp.Client{}
	ask := func(ctx context.Context, mode, method string, params any) (json.RawMessage, error) {
		if clients[mode] == nil {
			c, err := server.Dial(ctx, mode)
			if err != nil {
				return nil, err
			}
			clients[mode] = c
		}
		return clients[mode].Request(ctx, method, params)
	}
	closed = func() {
		for _, c := range clients {
			c.Close()
		}
	}
	return &docs.Source{
		Host: quiet, Modes: mcp.Modes(), Request: ask, ListedName: mcp.ListedName, Command: a.deps.Command,
		Instructions: server.Instructions(),
	}, closed, nil
}

func (a *App) docsAudit(ctx context.Context, mode string, names []string) error {
	if mode != "" && !slices.Contains(mcp.Modes(), mode) {
		return command.UnknownValue("mode", mode, mcp.Modes()).WithNext("parley docs audit --mode " + mcp.Minimal)
	}
	source, closed, err := a.docsSource(ctx)
	if err != nil {
		return err
	}
	defer closed()
	data, err := source.Audit(ctx, mode, names)
	if err != nil {
		return err
	}
	next := []string{"parley docs audit --coverage"}
	if len(names) == 0 {
		next = append(next, "parley docs audit text")
	}
	return a.answer(data, next, func(w io.Writer) { a.auditDocsText(w, data, len(names) > 0) })
}

func (a *App) auditDocsText(w io.Writer, d *docs.Audit, each bool) {
	fmt.Fprintf(w, "%-12s %6s %8s %8s\n", "mode", "tools", "tokens", "saved")
	for _, m := range d.Modes {
		fmt.Fprintf(w, "%-12s %6d %8d %7.1f%%\n", m.Mode, m.Tools, m.Tokens, 100*m.Saved)
	}
	onTop := fmt.Sprintf("On top: %d once for the instructions, %d for a search (at most %d), %d for a description (at most %d).",
		d.Instructions, d.Search.Mean, d.Search.Most, d.Describe.Mean, d.Describe.Most)
	if m := d.Modes[0]; m.BreakEven > 0 {
		onTop += fmt.Sprintf(" With both for each tool, %s costs less up to %s a session.", m.Mode, plural(m.BreakEven, "tool"))
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
		fmt.Fprintf(w, "%-38s %5d %5d %5d %7d %6d %6d\n", t.Name, t.Tier1, t.Tier2, t.Tier3, t.Listed, t.Description, t.Parameters)
	}
}

func (a *App) docsCoverage() error {
	catalog, err := a.deps.Catalog()
	if err != nil {
		return err
	}
	data, err := docs.Cover(catalog)
	if err != nil {
		return err
	}
	next := []string{"parley docs audit"}
	return a.answer(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%-12s %11s %11s %11s %9s %9s %9s\n", "plugin", "groups", "tools", "parameters", "examples", "errors", "tasks")
		for _, p := range append(data.Plugins, data.Total) {
			if p.Plugin == "" {
				p.Plugin = "all"
			}
			fmt.Fprintf(w, "%-12s", p.Plugin)
			for _, s := range []docs.Share{p.Groups, p.Tools, p.Parameters} {
				fmt.Fprintf(w, " %11s", fmt.Sprintf("%d/%d", s.Have, s.Total))
			}
			for _, s := range []docs.Share{p.Examples, p.Errors, p.Tasks} {
				fmt.Fprintf(w, " %8.1f%%", 100*s.Share)
			}
			fmt.Fprintln(w)
		}
		for _, p := range data.Plugins {
			if n := len(p.WithoutTasks); n > 0 {
				more := ""
				if n > 5 {
					more = " …"
				}
				fmt.Fprintln(w, wrapped(fmt.Sprintf("No tasks: %s of %s: %s%s", plural(n, "tool"), p.Plugin, strings.Join(p.WithoutTasks[:min(n, 5)], ", "), more), a.columns(), "  "))
			}
		}
	})
}

// exportedFile is a file in the answer of an export: with its content, or written, with its size.
type exportedFile struct {
	Path    string          `json:"path"`
	Content json.RawMessage `json:"content,omitempty"` // a document, or a text
	Bytes   int             `json:"bytes,omitempty"`
}

func (a *App) docsExport(ctx context.Context, format string, names []string, out string) error {
	source, closed, err := a.docsSource(ctx)
	if err != nil {
		return err
	}
	defer closed()
	export, err := source.Export(ctx, format, names)
	if err != nil {
		return err
	}
	for _, w := range export.Warnings {
		a.notice(w)
	}
	data := struct {
		Format string         `json:"format"`
		Tools  int            `json:"tools"`
		Files  []exportedFile `json:"files"`
	}{Format: format, Tools: export.Tools}
	for _, f := range export.Files {
		file := exportedFile{Path: f.Path}
		switch {
		case out != "":
			file.Path, file.Bytes = filepath.Join(out, filepath.FromSlash(f.Path)), len(f.Content)
			if err := writeBelow(file.Path, f.Content); err != nil {
				return host.Errorf(host.Unavailable, "cannot write %s: %s", file.Path, manifest.CleanLine(err.Error())).WithNext("--out with a folder that you may write to")
			}
		case f.JSON:
			file.Content = f.Content
		default:
			if file.Content, err = manifest.Marshal(string(f.Content)); err != nil {
				return err
			}
		}
		data.Files = append(data.Files, file)
	}
	next := []string{"parley docs export --help"}
	return a.answer(data, next, func(w io.Writer) {
		for i, f := range export.Files {
			switch {
			case out != "":
				fmt.Fprintf(w, "wrote %s (%s)\n", data.Files[i].Path, plural(len(f.Content), "byte"))
			case len(export.Files) > 1:
				fmt.Fprintf(w, "<!-- %s -->\n%s\n", f.Path, f.Content)
			default:
				_, _ = w.Write(f.Content)
			}
		}
	})
}

// writeBelow writes a file, and makes the folders that it is in.
func writeBelow(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return writeFile(path, content)
}
