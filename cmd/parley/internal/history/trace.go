package history

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/manifest"
)

func newTrace(app *command.App) *cobra.Command {
	cmd := command.Parent("trace", "Traces", newTraceList(app), newTraceShow(app), newTraceTail(app),
		newTraceExport(app), newTraceClear(app))
	cmd.Long = "Each call, search and describe adds a JSON line: the tool, the outcome, what was wrong with which " +
		"parameter, and the shapes of the parameters. Values are recorded with traces.values, nothing with traces.off; " +
		"traces.keep_days and traces.max_mib say what is kept."
	return cmd
}

// addTraceFilter adds the options that select traces. --session is the one of all commands.
func addTraceFilter(cmd *cobra.Command, f *TraceFilter) {
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
func ofSession(cmd *cobra.Command, f *TraceFilter) {
	if flag := cmd.Flag("session"); flag != nil && flag.Changed {
		f.Session = flag.Value.String()
	}
}

func newTraceList(app *command.App) *cobra.Command {
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
	cmd.Flags().IntVar(&opts.Limit, "limit", traceLimit, "list at most this many, the latest")
	return cmd
}

func runTraceList(_ context.Context, opts *traceListOptions) error {
	data, err := traces(opts.app, *opts)
	if err != nil {
		return err
	}
	var next []string
	for _, r := range data.Records {
		if r.Call != "" {
			next = []string{"parley trace show " + r.Call} // the latest
		}
	}
	return opts.app.Print(data, next, func(w io.Writer) {
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
	return strings.TrimRight(fmt.Sprintf("%s  %-17s  %-10s %9.1f ms  %s  %s  %s", AuditTime(r.Time),
		manifest.CleanLine(r.Call), manifest.CleanLine(r.Caller), r.MS, manifest.CleanLine(what),
		manifest.CleanLine(r.Code), manifest.CleanLine(strings.Join(wrong, ", "))), " ")
}

type traceShowOptions struct {
	app *command.App
	id  string
}

func newTraceShow(app *command.App) *cobra.Command {
	opts := &traceShowOptions{app: app}
	return &cobra.Command{
		Use:     "show CALL",
		Short:   "Show the record of a call",
		Example: "parley trace show c759baa1ac8b498ec",
		Long:    "CALL is the call id, as the envelope and trace list have it, or the beginning of it.",
		RunE:    command.RunWith(runTraceShow, opts, &opts.id),
	}
}

func runTraceShow(_ context.Context, opts *traceShowOptions) error {
	record, err := findTrace(opts.app, opts.id)
	if err != nil {
		return err
	}
	var next []string
	if record.Tool != "" && record.Op == "" {
		next = opts.app.Next([]host.Step{host.DescribeStep(record.Tool, 0)}, nil)
	}
	return opts.app.Print(record, next, nil)
}

type traceTailOptions struct {
	app *command.App
	TraceFilter
}

func newTraceTail(app *command.App) *cobra.Command {
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
	err := followTraces(ctx, app, opts.TraceFilter, func(r trace.Record) error {
		if app.JSON {
			return writeTrace(app.Out, r)
		}
		_, err := fmt.Fprintln(app.Out, traceLine(r))
		return err
	})
	if errors.Is(err, context.Canceled) { // as it is meant to end
		return nil
	}
	return command.WriteError(err)
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
	app *command.App
	TraceFilter
	out string
}

func newTraceExport(app *command.App) *cobra.Command {
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
		return command.WriteError(ExportTraces(app, opts.TraceFilter, func(r trace.Record) error {
			return writeTrace(app.Out, r)
		}))
	}
	var lines bytes.Buffer
	n := 0
	err := ExportTraces(app, opts.TraceFilter, func(r trace.Record) error {
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
	return app.Print(data, nil, func(w io.Writer) { fmt.Fprintf(w, "%s: %s\n", opts.out, manifest.Plural(n, "record")) })
}

type traceClearOptions struct {
	app *command.App
	TraceFilter
	before string
}

func newTraceClear(app *command.App) *cobra.Command {
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
	data, err := clearTraces(opts.app, opts.TraceFilter, opts.before)
	if err != nil {
		return err
	}
	return opts.app.Print(data, nil, func(w io.Writer) {
		fmt.Fprintf(w, "Removed %s, %d bytes\n", manifest.Plural(data.Records, "record"), data.Bytes)
	})
}

// traceLimit is how many records [traces] returns if no limit is set.
const traceLimit = 50

// TraceFilter says which traces to return. The zero value means all.
type TraceFilter struct {
	// Tool is a pattern of the tool, group or plugin, in which * matches any characters.
	Tool string
	// Session is the name of a session, as traces have it.
	Session string
	// Code is the outcome, by name or exit code: invalid_args or 81.
	Code string
	// Op is call, search or describe.
	Op string
	// Failed leaves out what ended in 0.
	Failed bool
	// Since is a duration before now, such as 24h or 7d, or a time, which is in UTC unless it names a zone.
	Since string
}

// traceOps are the values of TraceFilter.Op.
var traceOps = []string{"call", "search", "describe"}

// compile returns the filter of records.
func (f TraceFilter) compile(now time.Time) (record.Filter, error) {
	since, err := parseSince(f.Since, now)
	if err == nil {
		err = checkPattern("tool", f.Tool)
	}
	if err == nil && f.Op != "" && !slices.Contains(traceOps, f.Op) {
		err = host.Errorf(host.InvalidArgs, "--op: %q is none of %s", manifest.CleanLine(f.Op), strings.Join(traceOps, ", "))
	}
	return record.Filter{Since: since, Tool: f.Tool, Session: f.Session, Code: f.Code, Op: f.Op, Failed: f.Failed}, err
}

// traceListOptions say which traces [traces] returns: the latest of those that match.
type traceListOptions struct {
	app *command.App
	TraceFilter
	// Limit is how many records to return at most. 0 means TraceLimit.
	Limit int
}

// traceData are records of calls, searches and describes, in the order in which they were written.
type traceData struct {
	Records []trace.Record `json:"records"`
	Total   int            `json:"total"` // how many match
}

// traces returns the last records that match.
func traces(app *command.App, o traceListOptions) (*traceData, error) {
	limit := cmp.Or(o.Limit, traceLimit)
	if limit < 0 {
		return nil, host.Errorf(host.InvalidArgs, "--limit must be at least 1, not %d", limit)
	}
	data := &traceData{Records: []trace.Record{}}
	err := ExportTraces(app, o.TraceFilter, func(r trace.Record) error {
		data.Total++
		if data.Records = append(data.Records, r); len(data.Records) >= 2*limit {
			data.Records = slices.Clone(data.Records[limit:])
		}
		return nil
	})
	data.Records = data.Records[max(0, len(data.Records)-limit):]
	return data, err
}

// findTrace returns the record of a call. The error is not_found if there is none, or several begin with this id.
func findTrace(app *command.App, id string) (*trace.Record, error) {
	var found []trace.Record
	err := ExportTraces(app, TraceFilter{}, func(r trace.Record) error {
		if r.Call == id {
			found = []trace.Record{r}
			return errStop
		}
		if id != "" && strings.HasPrefix(r.Call, id) {
			found = append(found, r)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, host.Errorf(host.NotFound, "no trace has the call id %q", manifest.CleanLine(id)).
			WithNext("parley trace list")
	case len(found) > 1:
		return nil, host.Errorf(host.NotFound, "%s begin with %q; give more of the call id",
			manifest.Plural(len(found), "call id"), manifest.CleanLine(id)).WithNext("parley trace list")
	}
	return &found[0], nil
}

// errStop ends [exportTraces] without an error.
var errStop = errors.New("stop")

// ExportTraces calls each with every record that matches, the oldest first.
func ExportTraces(app *command.App, f TraceFilter, each func(trace.Record) error) error {
	filter, err := f.compile(time.Now())
	if err != nil {
		return err
	}
	damaged := 0
	for r, err := range Traces(app, func(string, int) { damaged++ }).Read(filter) {
		if err != nil {
			return unreadableTraces(err)
		}
		if err := each(r); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
	if damaged > 0 {
		app.Notice(manifest.Plural(damaged, "line") + " of the traces cannot be read")
	}
	return noteTracesOff(app)
}

// followTraces calls each with every record that matches and is written from now on, by any process, until ctx is done.
func followTraces(ctx context.Context, app *command.App, f TraceFilter, each func(trace.Record) error) error {
	filter, err := f.compile(time.Now())
	if err != nil {
		return err
	}
	if err := noteTracesOff(app); err != nil {
		return err
	}
	all := Traces(app, nil)
	from, err := all.End()
	if err != nil {
		return unreadableTraces(err)
	}
	return all.Follow(ctx, filter, from, func(r trace.Record, _ record.Cursor) error { return each(r) })
}

// Traces returns what reads the traces; damaged, which may be nil, is called for each line that is not a record.
func Traces(app *command.App, damaged func(string, int)) record.Records[trace.Record] {
	return trace.Records(app.Parley().TraceDir(), damaged)
}

// noteTracesOff notes that nothing is being recorded.
func noteTracesOff(app *command.App) error {
	s, err := app.Settings()
	if err == nil && s.TracesOff {
		app.Notice("traces are off (traces.off); nothing is recorded")
	}
	return err
}

func unreadableTraces(err error) error {
	return &host.Error{
		Code: host.Unavailable, Message: "cannot read the traces: " + manifest.CleanLine(err.Error()), Cause: err,
		Steps: []host.Step{host.OperatorStep(host.OpDoctor)},
	}
}

// clearTraces removes the traces that match the filter and are from before a duration before now or a time, or from
// any time if before is empty. Without a filter, before is the beginning of its day in UTC.
func clearTraces(app *command.App, f TraceFilter, before string) (*trace.Cleared, error) {
	now := time.Now()
	until, err := parseSince(before, now)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s", strings.Replace(host.AsError(err).Message, "--since", "--before", 1))
	}
	filter, err := f.compile(now)
	if err != nil {
		return nil, err
	}
	if filter.Until = until; f == (TraceFilter{}) {
		filter.Until = until.UTC().Truncate(24 * time.Hour)
	}
	cleared, err := trace.Clear(app.Parley().TraceDir(), filter)
	if err != nil {
		return nil, unreadableTraces(err)
	}
	return &cleared, nil
}
