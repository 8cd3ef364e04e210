// Package learning has the commands about documentation and what use teaches about it: docs, learn and stats.
package learning

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/docs"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/mcp/envelope"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Commands are the commands that this package has.
var Commands = command.Chapters{
	"Find and run tools": {learnCommand}, "Add plugins": {docsCommand}, "See what happened": {statsCommand},
}

var docsCommand = &command.Group{Use: "docs", Short: "Export documentation, improve it", Of: []command.Maker{
	docsAuditCommand, docsExportCommand, docsSuggestCommand, docsApplyCommand, docsDiffCommand,
	command.Plain("list [NAME]", "List applied edits", "parley docs list\nparley docs list text --json", runDocsList,
		command.CompleteNames),
	docsRevertCommand, docsPhrasesCommand, docsJudgeCommand, docsOptimizeCommand,
	&command.Group{Use: "dataset", Short: "Share what was learned from use, as a file",
		Of: []command.Maker{datasetExportCommand, datasetImportCommand}},
	docsEvalCommand,
}}

var docsAuditCommand = &command.Command[*docsAuditOptions]{
	Use: "audit [NAME...]", Run: runDocsAudit, Words: command.CompleteNames,
	Short: "Show what documentation costs, or what it covers",
	Long: "Tokens are estimated (bytes/4.5). The cost of a mode is the size of its tools/list as sent. The costs of " +
		"a search and of\na description are measured over all tools; each tool is searched for by its first task or its " +
		"brief. NAME is a plugin,\na group or a tool, and shows its tools one by one.",
	Example: "parley docs audit\nparley docs audit text --mode minimal\nparley docs audit --coverage --json",
	Options: map[string]command.Completer{"mode": command.OneOf(mcp.Modes()...)},
}

// runDocsAudit measures what documentation costs in tokens.
func runDocsAudit(ctx context.Context, app *command.App, opts *docsAuditOptions) error {
	if opts.Coverage && (opts.Mode != "" || len(opts.Names) > 0) {
		return host.Errorf(host.InvalidArgs, "--coverage is about all plugins; it takes no --mode and no names").
			WithNext("parley docs audit --coverage")
	}
	if opts.Coverage {
		return docsCoverage(app)
	}
	if opts.Mode != "" && !slices.Contains(mcp.Modes(), opts.Mode) {
		return command.UnknownValue("mode", opts.Mode, mcp.Modes()).WithNext("parley docs audit --mode " + mcp.Minimal)
	}
	source, closeSource, err := docsSource(ctx, app)
	if err != nil {
		return err
	}
	defer closeSource()
	data, err := source.Audit(ctx, opts.Mode, opts.Names)
	if err != nil {
		return err
	}
	next := []string{"parley docs audit --coverage"}
	if len(opts.Names) == 0 {
		next = append(next, "parley docs audit text")
	}
	return app.Print(data, next, func(w io.Writer) { docsAuditText(app, w, data, len(opts.Names) > 0) })
}

// docsAuditText prints the costs of each mode, and the costs of single tools: of all tools if each is set, and
// otherwise of the largest.
func docsAuditText(a *command.App, w io.Writer, d *docs.Audit, each bool) {
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
	a.Wrap(w, "  ", "%s", onTop)
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

// docsCoverage prints how much of the catalog is documented.
func docsCoverage(a *command.App) error {
	catalog, err := a.Catalog()
	if err != nil {
		return err
	}
	data, err := docs.Cover(catalog)
	if err != nil {
		return err
	}
	return a.Print(data, []string{"parley docs audit"}, func(w io.Writer) {
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
			if n := len(p.WithoutTasks); n > 0 {
				a.Wrap(w, "  ", "No tasks: %s of %s: %s", manifest.Plural(n, "tool"), p.Plugin, firstOf(p.WithoutTasks, 5))
			}
		}
	})
}

var docsExportCommand = &command.Command[*docsExportOptions]{
	Use: "export [NAME...]", Run: runDocsExport, Words: command.CompleteNames,
	Short: "Write the catalog in a format of other systems",
	Long: "NAME is a plugin, a group or a tool; without a NAME everything is exported. mcp, openai, openai-strict and\n" +
		`anthropic are {"tools","examples"},` +
		" with examples as calls of that API. markdown is a page and skill an Agent " +
		"Skill for each\nplugin; llms is the skills and llms.txt, their index. agents is a block of AGENTS.md, which " +
		"--out replaces or adds in the\nfile; its other text stays. Tools have the names that MCP lists, which call " +
		"accepts, too.",
	Example: "parley docs export text --format openai\nparley docs export --format skill --out ~/.claude/skills\n" +
		"parley docs export --format agents --out .",
	Options: map[string]command.Completer{"format": command.OneOf(docs.Formats()...)},
}

// runDocsExport converts documentation to a format of other systems, and writes the files with Out.
func runDocsExport(ctx context.Context, app *command.App, opts *docsExportOptions) error {
	if opts.Out == "" && opts.Flags.Changed("out") {
		return host.Errorf(host.InvalidArgs, "--out requires the name of a folder").
			WithNext("parley docs export --format skill --out skills")
	}
	if opts.Format == "" {
		return host.Errorf(host.InvalidArgs, "parley docs export requires --format, one of %s",
			strings.Join(docs.Formats(), ", ")).WithNext("parley docs export --format mcp")
	}
	if !slices.Contains(docs.Formats(), opts.Format) {
		return command.UnknownValue("format", opts.Format, docs.Formats()).WithNext("parley docs export --format mcp")
	}
	source, closeSource, err := docsSource(ctx, app)
	if err != nil {
		return err
	}
	defer closeSource()
	export, err := source.Export(ctx, opts.Format, opts.Names)
	if err != nil {
		return err
	}
	data := struct {
		Format string         `json:"format"`
		Tools  int            `json:"tools"`
		Files  []exportedFile `json:"files"`
	}{Format: opts.Format, Tools: export.Tools}
	for _, f := range export.Files {
		file := exportedFile{Path: f.Path, Raw: f.Content}
		switch {
		case opts.Out != "":
			file.Path, file.Bytes = filepath.Join(opts.Out, filepath.FromSlash(f.Path)), len(f.Content)
			path, content, err := file.Path, f.Content, error(nil)
			if f.Block {
				path, content, err = spliced(ctx, path, content)
			}
			if err == nil {
				err = writeBelow(path, content)
			}
			if err != nil {
				return host.Errorf(host.Unavailable, "cannot write %s: %s", file.Path, manifest.CleanLine(err.Error())).
					WithNext("--out with a folder that you can write to")
			}
		case f.JSON:
			file.Content = f.Content
		default:
			file.Content = jsontext.Marshal(string(f.Content))
		}
		data.Files = append(data.Files, file)
	}
	for _, w := range export.Warnings {
		app.Notice(w)
	}
	return app.Print(data, []string{"parley docs export --help"}, func(w io.Writer) {
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

// docsAuditOptions are the options of an audit of documentation.
type docsAuditOptions struct {
	// "" means all modes of MCP
	Mode     string `flag:"mode" usage:"only minimal, progressive, full or code"`
	Coverage bool   `flag:"coverage" usage:"show how many tools have descriptions, examples, errors and tasks"`
	// plugins, groups or tools whose tools are listed one by one; none means only sums
	Names []string `word:""`
}

// docsExportOptions are the options of an export of documentation.
type docsExportOptions struct {
	Flags  *pflag.FlagSet
	Format string   `flag:"format" usage:"mcp, openai, openai-strict, anthropic,\nmarkdown, skill, agents or llms"`
	Names  []string `word:""` // plugins, groups or tools; empty means everything
	// the folder that takes the files; "" means that the data has their content
	Out string `flag:"out" usage:"write files into this folder"`
}

// exportedFile is a file of an export. It was either written, and has a size, or it has its content.
type exportedFile struct {
	Path    string          `json:"path"`
	Content json.RawMessage `json:"content,omitempty"` // a JSON document, or a text as a string
	Bytes   int             `json:"bytes,omitempty"`
	Raw     []byte          `json:"-"` // the content of the file
}

// writeBelow writes a file and creates its folders. An existing file keeps its mode.
func writeBelow(path string, content []byte) error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return command.WriteFile(path, content, mode)
}

// spliced returns the text of a file after a block was put into it. file is the file itself if path is a link.
func spliced(ctx context.Context, path string, block []byte) (file string, text []byte, err error) {
	if file, err = filepath.EvalSymlinks(path); err != nil {
		file = path
	}
	old, err := command.ReadValue(ctx, file, 1<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file, nil, err
	}
	all, err := docs.Splice(string(old), string(block))
	return file, []byte(all), err
}

// docsSource returns the catalog behind an MCP server of its own. The server records nothing, because looking
// documentation up to measure it is not a use of it. The returned function closes the source.
func docsSource(ctx context.Context, app *command.App) (*docs.Source, func(), error) {
	h, err := app.Host(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, _ := app.Settings() // the host depends on the settings, so they are valid
	quiet, err := call.New(call.Config{Catalog: h.Catalog(), Policy: host.DenyAll{}})
	if err != nil {
		return nil, nil, err
	}
	server, err := mcp.New(mcp.Config{Host: quiet, Version: parley.Version, Mode: s.DocMode, Pinned: s.Pinned})
	if err != nil {
		return nil, nil, err
	}
	clients := map[string]*mcp.Client{}
	request := func(ctx context.Context, mode, method string, params any) (json.RawMessage, error) {
		if clients[mode] == nil {
			c, err := server.Dial(ctx, mode)
			if err != nil {
				return nil, err
			}
			clients[mode] = c
		}
		return clients[mode].Request(ctx, method, params)
	}
	source := &docs.Source{
		Host: quiet, Modes: mcp.Modes(), Full: mcp.Full, Request: request, ListedName: envelope.ListedName,
		Command: app.Command, Instructions: server.Instructions(), Common: mcp.CommonTools(),
	}
	return source, func() {
		for _, c := range clients {
			c.Close()
		}
	}, nil
}
