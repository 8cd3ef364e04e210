package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/manifest"
)

func newTrace(app *App) *cobra.Command {
	cmd := parent("trace", "Traces", newTraceList(app), newTraceShow(app), newTraceTail(app),
		newTraceExport(app), newTraceClear(app))
	cmd.Long = "Each call, search and describe adds a JSON line: the tool, the outcome, what was wrong with which " +
		"parameter, and the shapes of the parameters. Values are recorded with traces.values, nothing with traces.off; " +
		"traces.keep_days and traces.max_mib say what is kept."
	return cmd
}

// addTraceFilter adds the options that select traces. --session is the one of all commands.
func addTraceFilter(cmd *cobra.Command, f *command.TraceFilter) {
	flags := cmd.Flags()
	flags.StringVar(&f.Tool, "tool", "", "only this tool, group or plugin, such as cdp.Page.*")
	flags.StringVar(&f.Code, "code", "", "only this outcome, such as invalid_args or 81")
	flags.BoolVar(&f.Failed, "failed", false, "only what failed")
	flags.StringVar(&f.Op, "op", "", "only call, search or describe")
	flags.StringVar(&f.Since, "since", "", "only records since: 24h, 7d, 2026-11-21")
	flags.SortFlags = false
	_ = cmd.RegisterFlagCompletionFunc("code", cobra.FixedCompletions(codes(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("op", cobra.FixedCompletions([]string{"call", "search", "describe"},
		cobra.ShellCompDirectiveNoFileComp))
}

// ofSession sets the session that --session names. PARLEY_SESSION is the session in which a command works, not one
// whose traces are wanted.
func ofSession(cmd *cobra.Command, f *command.TraceFilter) {
	if flag := cmd.Flag("session"); flag != nil && flag.Changed {
		f.Session = flag.Value.String()
	}
}

type traceListOptions struct {
	app *App
	command.TraceOptions
}

func newTraceList(app *App) *cobra.Command {
	opts := &traceListOptions{app: app}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the last calls, searches and describes",
		Example: "parley trace list --failed --since 24h\nparley trace list --tool 'cdp.Page.*' --json",
		Long:    "Times are in UTC.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Limit < 1 {
				return host.Errorf(host.InvalidArgs, "--limit must be at least 1, not %d", opts.Limit)
			}
			ofSession(cmd, &opts.TraceFilter)
			return runTraceList(cmd.Context(), opts)
		},
	}
	addTraceFilter(cmd, &opts.TraceFilter)
	cmd.Flags().IntVar(&opts.Limit, "limit", command.TraceLimit, "list at most this many, the latest")
	return cmd
}

func runTraceList(_ context.Context, opts *traceListOptions) error {
	data, err := command.Traces(opts.app.deps, opts.TraceOptions)
	if err != nil {
		return err
	}
	var next []string
	for _, r := range data.Records {
		if r.Call != "" {
			next = []string{"parley trace show " + r.Call} // the latest
		}
	}
	return opts.app.print(data, next, func(w io.Writer) {
		if data.Total == 0 {
			fmt.Fprintln(w, "no records")
			return
		}
		for _, r := range data.Records {
			fmt.Fprintln(w, traceLine(r))
		}
		fmt.Fprintf(w, "%d of %s\n", len(data.Records), manifest.Plural(data.Total, "record"))
		for _, n := range next {
			fmt.Fprintln(w, "Next: "+n)
		}
	})
}

// traceLine is a record in one line: when, who, what, how it ended and what was wrong.
func traceLine(r trace.Record) string {
	what := r.Tool
	switch r.Op {
	case "search":
		what = "search"
		if r.Query != "" {
			what += " " + strconv.Quote(r.Query)
		}
	case "describe":
		what = "describe " + r.Tool
	}
	var wrong []string
	for _, e := range r.Errors {
		wrong = append(wrong, e.Pointer+" "+e.Keyword)
	}
	return strings.TrimRight(fmt.Sprintf("%s  %-17s  %-10s %9.1f ms  %s  %s  %s", auditTime(r.Time),
		manifest.CleanLine(r.Call), manifest.CleanLine(r.Caller), r.MS, manifest.CleanLine(what),
		manifest.CleanLine(r.Code), manifest.CleanLine(strings.Join(wrong, ", "))), " ")
}

type traceShowOptions struct {
	app *App
	id  string
}

func newTraceShow(app *App) *cobra.Command {
	opts := &traceShowOptions{app: app}
	return &cobra.Command{
		Use:     "show CALL",
		Short:   "Show the record of a call",
		Example: "parley trace show c759baa1ac8b498ec",
		Long:    "CALL is the call id, as the envelope and trace list have it, or the beginning of it.",
		RunE:    runWith(runTraceShow, opts, &opts.id),
	}
}

func runTraceShow(_ context.Context, opts *traceShowOptions) error {
	record, err := command.Trace(opts.app.deps, opts.id)
	if err != nil {
		return err
	}
	var next []string
	if record.Tool != "" && record.Op == "" {
		next = opts.app.deps.Next([]host.Step{host.DescribeStep(record.Tool, 0)}, nil)
	}
	return opts.app.print(record, next, nil)
}

type traceTailOptions struct {
	app *App
	command.TraceFilter
}

func newTraceTail(app *App) *cobra.Command {
	opts := &traceTailOptions{app: app}
	cmd := &cobra.Command{
		Use:     "tail",
		Short:   "Print records as they are written, by any process",
		Example: "parley trace tail --failed",
		Long:    "Prints one line a record until it is interrupted; with --json, the record itself.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ofSession(cmd, &opts.TraceFilter)
			return runTraceTail(cmd.Context(), opts)
		},
	}
	addTraceFilter(cmd, &opts.TraceFilter)
	return cmd
}

func runTraceTail(ctx context.Context, opts *traceTailOptions) error {
	app := opts.app
	err := command.FollowTraces(ctx, app.deps, opts.TraceFilter, func(r trace.Record) error {
		if app.json {
			return writeTrace(app.Out, r)
		}
		_, err := fmt.Fprintln(app.Out, traceLine(r))
		return err
	})
	if errors.Is(err, context.Canceled) { // as it is meant to end
		return nil
	}
	return writeError(err)
}

// writeTrace writes a record as one JSON line.
func writeTrace(w io.Writer, r trace.Record) error {
	line, err := manifest.Marshal(r)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

type traceExportOptions struct {
	app *App
	command.TraceFilter
	out string
}

func newTraceExport(app *App) *cobra.Command {
	opts := &traceExportOptions{app: app}
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Print all records as JSON lines",
		Example: "parley trace export --since 7d --out traces.jsonl",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ofSession(cmd, &opts.TraceFilter)
			return runTraceExport(cmd.Context(), opts)
		},
	}
	addTraceFilter(cmd, &opts.TraceFilter)
	cmd.Flags().StringVar(&opts.out, "out", "", "write to FILE")
	return cmd
}

func runTraceExport(_ context.Context, opts *traceExportOptions) error {
	app := opts.app
	if opts.out == "" {
		return writeError(command.ExportTraces(app.deps, opts.TraceFilter, func(r trace.Record) error {
			return writeTrace(app.Out, r)
		}))
	}
	var lines bytes.Buffer
	n := 0
	err := command.ExportTraces(app.deps, opts.TraceFilter, func(r trace.Record) error {
		n++
		return writeTrace(&lines, r)
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(opts.out, lines.Bytes(), 0o600); err != nil {
		return host.Errorf(host.InvalidArgs, "--out: %v", err)
	}
	data := struct {
		Out     string `json:"out"`
		Records int    `json:"records"`
	}{opts.out, n}
	return app.print(data, nil, func(w io.Writer) { fmt.Fprintf(w, "%s: %s\n", opts.out, manifest.Plural(n, "record")) })
}

type traceClearOptions struct {
	app *App
	command.TraceFilter
	before string
}

func newTraceClear(app *App) *cobra.Command {
	opts := &traceClearOptions{app: app}
	cmd := &cobra.Command{
		Use:     "clear",
		Short:   "Remove traces; the audit log stays",
		Example: "parley trace clear --before 7d\nparley trace clear --tool page --failed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ofSession(cmd, &opts.TraceFilter)
			return runTraceClear(cmd.Context(), opts)
		},
	}
	addTraceFilter(cmd, &opts.TraceFilter)
	cmd.Flags().StringVar(&opts.before, "before", "", "only records of days before: 7d, 2026-11-21")
	return cmd
}

func runTraceClear(_ context.Context, opts *traceClearOptions) error {
	data, err := command.ClearTraces(opts.app.deps, opts.TraceFilter, opts.before)
	if err != nil {
		return err
	}
	return opts.app.print(data, nil, func(w io.Writer) {
		fmt.Fprintf(w, "Removed %s, %d bytes\n", manifest.Plural(data.Records, "record"), data.Bytes)
	})
}
