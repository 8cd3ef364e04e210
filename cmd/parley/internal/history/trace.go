package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

var traceCommand = &command.Group{
	Use: "trace", Short: "Look at recorded calls, export them",
	Of: []command.Maker{traceListCommand, traceShowCommand, traceTailCommand, traceExportCommand, traceClearCommand},
	Long: "Each call, search and describe adds a JSON line: the tool, the outcome, what was wrong with which " +
		"parameter, and the shapes of the parameters. Values are recorded with traces.values, nothing with traces.off; " +
		"traces.keep_days and traces.max_mib say what is kept.",
}

// traceOptions select traces.
type traceOptions struct {
	selectOptions
	Failed bool   `flag:"failed" usage:"only what failed"`
	Op     string `flag:"op" usage:"only call, search or describe"`
}

// filter returns the filter of the options. It ignores PARLEY_SESSION, which is the session that a command works in,
// and not a session whose records are wanted; --session is.
func (o *traceOptions) filter(app *command.App) Filter {
	f := o.selectOptions.filter()
	f.Failed, f.Op, f.Session = o.Failed, o.Op, app.SessionName
	return f
}

type traceListOptions struct {
	traceOptions
	pageOptions
}

var traceListCommand = &command.Command[*traceListOptions]{
	Use: "list", Run: runTraceList, Options: filterOptions,
	Short:   "List the last calls, searches and describes",
	Example: "parley trace list --failed --since 24h\nparley trace list --tool 'cdp.Page.*' --json",
	Long:    "Times are in UTC.",
}

func runTraceList(_ context.Context, app *command.App, opts *traceListOptions) error {
	if err := noteTracesOff(app); err != nil {
		return err
	}
	return traces(app).show(opts.filter(app), &opts.pageOptions, "parley trace list",
		func(records []trace.Record) []string {
			for _, r := range slices.Backward(records) {
				if r.Call != "" {
					return []string{"parley trace show " + r.Call} // of the latest call
				}
			}
			return nil
		},
		func(w io.Writer, records []trace.Record) { command.WriteLines(w, "", command.Map(records, traceLine)) })
}

// traceLine returns a record on one line: when, who, what, how it ended and what was wrong.
func traceLine(r trace.Record) string {
	what := r.Tool
	switch r.Op {
	case "search":
		what = "search" + command.When(r.Query != "", " "+strconv.Quote(r.Query))
	case "describe":
		what = "describe " + r.Tool
	}
	what += command.When(r.Subject != "", " on "+r.Subject)
	wrong := command.Map(r.Errors, func(e host.Violation) string { return e.Pointer + " " + e.Keyword })
	return strings.TrimRight(fmt.Sprintf("%s  %-17s  %-10s %9.1f ms  %s  %s  %s", Time(r.Time),
		manifest.CleanLine(r.Call), manifest.CleanLine(r.Caller), r.MS, manifest.CleanLine(what),
		manifest.CleanLine(r.Code), manifest.CleanLine(strings.Join(wrong, ", "))), " ")
}

var traceShowCommand = &command.Command[string]{
	Use: "show CALL", Run: runTraceShow,
	Short:   "Show the record of a call",
	Long:    "CALL is the call id, as the envelope and trace list have it, or the beginning of it.",
	Example: "parley trace show c759baa1ac8b498ec",
}

// runTraceShow prints the record of a call. The error is not_found if there is none, or if several ids begin with id.
func runTraceShow(_ context.Context, app *command.App, id string) error {
	var found []trace.Record
	err := ExportTraces(app, Filter{}, func(r trace.Record) error {
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
	case err != nil && !errors.Is(err, errStop):
		return err
	case len(found) == 0:
		return host.Errorf(host.NotFound, "no trace has the call id %q", manifest.CleanValue(id)).
			WithNext("parley trace list")
	case len(found) > 1:
		return host.Errorf(host.NotFound, "%s begin with %q; give more of the call id",
			manifest.Plural(len(found), "call id"), manifest.CleanValue(id)).WithNext("parley trace list")
	}
	record := &found[0]
	var next []string
	if record.Tool != "" && record.Op == "" {
		next = app.Next([]step.Step{step.Describe(record.Tool, 0)}, nil)
	}
	return app.Print(record, next, nil)
}

// errStop ends the reading of traces.
var errStop = errors.New("stop")

var traceTailCommand = &command.Command[*traceOptions]{
	Use: "tail", Run: runTraceTail, Options: filterOptions,
	Short:   "Print records as they are written, by any process",
	Example: "parley trace tail --failed",
	Long:    "Prints one line a record until it is interrupted; with --json, the record itself.",
}

func runTraceTail(ctx context.Context, app *command.App, opts *traceOptions) error {
	if err := noteTracesOff(app); err != nil {
		return err
	}
	err := traces(app).follow(ctx, opts.filter(app), func(r trace.Record) error {
		if app.JSON {
			return command.WriteJSON(app.Out, r, false)
		}
		_, err := fmt.Fprintln(app.Out, traceLine(r))
		return err
	})
	if errors.Is(err, context.Canceled) { // the intended way to end it
		return nil
	}
	return command.WriteError(err)
}

type traceExportOptions struct {
	traceOptions
	exportOptions
}

var traceExportCommand = &command.Command[*traceExportOptions]{
	Use: "export", Run: runTraceExport, Options: filterOptions,
	Short:   "Print all records as JSON lines or CSV",
	Example: "parley trace export --since 7d --out traces.jsonl",
}

func runTraceExport(_ context.Context, app *command.App, opts *traceExportOptions) error {
	if err := noteTracesOff(app); err != nil {
		return err
	}
	return traces(app).export(opts.filter(app), &opts.exportOptions)
}

type traceClearOptions struct {
	traceOptions
	Before string `flag:"before" usage:"only records of days before: 7d, 2026-11-21"`
}

var traceClearCommand = &command.Command[*traceClearOptions]{
	Use: "clear", Run: runTraceClear, Options: filterOptions,
	Short:   "Remove traces; the audit log stays",
	Example: "parley trace clear --before 7d\nparley trace clear --tool page --failed",
}

// runTraceClear removes the traces that match the filter and are older than a time, which may be given as a duration
// before now. Without that time, it removes matching traces of any age. Without a filter, the time is the beginning
// of its day in UTC.
func runTraceClear(_ context.Context, app *command.App, opts *traceClearOptions) error {
	now := time.Now()
	until, err := parseTime("before", opts.Before, now)
	if err != nil {
		return err
	}
	given := opts.filter(app)
	filter, err := given.compile(now)
	if err != nil {
		return err
	}
	if filter.Until = until; given == (Filter{}) {
		filter.Until = until.UTC().Truncate(24 * time.Hour)
	}
	cleared, err := trace.Clear(app.Parley().TraceDir(), filter)
	if err != nil {
		return traces(app).unreadable(err)
	}
	return app.Print(&cleared, nil,
		command.Text("Removed %s, %d bytes\n", manifest.Plural(cleared.Records, "record"), cleared.Bytes))
}

func traces(app *command.App) journal[trace.Record] {
	return journal[trace.Record]{app: app, name: "the traces", records: func(damaged func(string, int),
	) record.Records[trace.Record] {
		return trace.Records(app.Parley().TraceDir(), damaged)
	}}
}

// ExportTraces calls each with every record that matches, the oldest first, and reports if nothing is being recorded.
func ExportTraces(app *command.App, f Filter, each func(trace.Record) error) error {
	if _, err := traces(app).each(f, "", each); err != nil {
		return err
	}
	return noteTracesOff(app)
}

// noteTracesOff reports that nothing is being recorded.
func noteTracesOff(app *command.App) error {
	s, err := app.Settings()
	if err == nil && s.TracesOff {
		app.Notice("traces are off (traces.off); nothing is recorded")
	}
	return err
}
