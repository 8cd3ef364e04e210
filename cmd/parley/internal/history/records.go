// Package history has the commands that show what happened: audit and trace.
package history

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Commands are the commands that this package has.
var Commands = command.Chapters{
	"Decide what they may do": {auditCommand},
	"See what happened":       {traceCommand},
}

// Filter selects records of the audit log or of the traces. The zero value selects all.
type Filter struct {
	record.Filter
	// Since and Until are durations before now, such as 24h or 7d, or times. Times are in UTC unless they name a zone.
	Since, Until string
}

// ops are the values of Filter.Op.
var ops = []string{"call", "search", "describe"}

// compile returns the filter in the form for reading records.
func (f *Filter) compile(now time.Time) (record.Filter, error) {
	filter := f.Filter
	since, err := parseTime("since", f.Since, now)
	until, errUntil := parseTime("until", f.Until, now)
	err = cmp.Or(err, errUntil)
	for _, option := range [][2]string{{"tool", f.Tool}, {"caller", f.Caller}} {
		if _, invalid := path.Match(option[1], ""); err == nil && invalid != nil {
			err = host.Errorf(host.InvalidArgs,
				"--%s: %q is not a valid pattern; expected a name, in which * matches any characters",
				option[0], manifest.CleanValue(option[1]))
		}
	}
	if err == nil && !until.IsZero() && since.After(until) {
		err = host.Errorf(host.InvalidArgs, "--since %s is after --until %s; exchange them", f.Since, f.Until)
	}
	if err == nil && f.Op != "" && !slices.Contains(ops, f.Op) {
		err = host.Errorf(host.InvalidArgs, "--op: %q is not one of %s", manifest.CleanValue(f.Op), strings.Join(ops, ", "))
	}
	filter.Since, filter.Until = since, until
	return filter, err
}

// selectOptions select records.
type selectOptions struct {
	Tool   string `flag:"tool" usage:"only this tool, group or plugin, such as cdp.Page.*"`
	Caller string `flag:"caller" usage:"only this caller, such as mcp:* or plugin:NAME"`
	Code   string `flag:"code" usage:"only this outcome, such as ok, denied or 81"`
	Since  string `flag:"since" usage:"only records since: 24h, 7d, 2026-11-21"`
}

func (o *selectOptions) filter() Filter {
	return Filter{Filter: record.Filter{Tool: o.Tool, Caller: o.Caller, Code: o.Code}, Since: o.Since}
}

// filterOptions complete the options that select records.
var filterOptions = map[string]command.Completer{
	"op":   command.OneOf(ops...),
	"code": command.OneOf(command.Map(host.Outcomes(), func(o host.Outcome) string { return string(o.Code) })...),
}

// pageOptions select a page of records.
type pageOptions struct {
	Flags  *pflag.FlagSet
	Until  string `flag:"until" usage:"only records before: 1h, 2026-11-22"`
	Limit  int    `flag:"limit" default:"50" usage:"show at most this many, the latest"`
	Cursor string `flag:"cursor" usage:"continue with records older than the page that printed CURSOR"`
}

// exportOptions select the records to export, and say how and where to.
type exportOptions struct {
	Until  string `flag:"until" usage:"only records before: 1h, 2026-11-22"`
	Cursor string `flag:"cursor" usage:"only records written after the export that printed CURSOR"`
	Format string `flag:"format" default:"jsonl" usage:"jsonl or csv"`
	Out    string `flag:"out" usage:"write to FILE"`
}

// journal is the audit log, or the traces.
type journal[R any] struct {
	app     *command.App
	name    string // its name in messages
	hint    string // added to the message about damaged lines
	records func(damaged func(string, int)) record.Records[R]
}

// show prints a page of the records that match, written by text for people. Its next commands are the one for the
// next page, and those that then returns. It notes what the page leaves out.
func (j journal[R]) show(f Filter, opts *pageOptions, line string, then func([]R) []string, text func(io.Writer, []R),
) error {
	f.Until = opts.Until
	filter, err := f.compile(time.Now())
	if opts.Limit < 1 {
		err = host.Errorf(host.InvalidArgs, "--limit must be at least 1, not %d", opts.Limit)
	}
	if err != nil {
		return err
	}
	page, err := j.records(nil).Page(filter, opts.Cursor, opts.Limit)
	if err != nil {
		return j.unreadable(err)
	}
	j.note(page.Reading)
	var next []string
	if page.Cursor != "" {
		next = []string{again(line, opts.Flags, page.Cursor)}
	} else if len(page.Records) == 0 && j.widen(filter, opts.Flags) {
		next = []string{again(line, opts.Flags, "")}
	}
	next = append(next, then(page.Records)...)
	return j.app.Print(page, next, func(w io.Writer) {
		text(w, page.Records)
		foot(w, page, next)
	})
}

// widen replaces the names in a filter by patterns that match them as parts of names. It reports whether there are
// records of these.
func (j journal[R]) widen(filter record.Filter, flags *pflag.FlagSet) bool {
	widened := false
	for option, name := range map[string]*string{"tool": &filter.Tool, "caller": &filter.Caller} {
		if *name != "" && !strings.Contains(*name, "*") {
			widened, *name = true, "*"+*name+"*"
			_ = flags.Set(option, *name)
		}
	}
	if !widened {
		return false
	}
	page, err := j.records(nil).Page(filter, "", 1)
	return err == nil && len(page.Records) > 0
}

// again returns a command with its options, and with a cursor unless it is empty.
func again(line string, flags *pflag.FlagSet, cursor string) string {
	flags.Visit(func(flag *pflag.Flag) {
		if flag.Name != "cursor" && flag.Name != "json" {
			line += " --" + flag.Name + command.When(flag.Value.Type() != "bool", " "+command.QuoteWord(flag.Value.String()))
		}
	})
	return line + command.When(cursor != "", " --cursor "+cursor)
}

// foot ends a page for people: how many records it has, and how far it has read.
func foot[R any](w io.Writer, p record.Page[R], next []string) {
	switch {
	case len(p.Records) > 0 || p.Cursor != "":
		fmt.Fprint(w, manifest.Plural(len(p.Records), "record"))
		command.PrintIf(w, p.Partial > 0, ", %d with values that were redacted or too long", p.Partial)
		command.PrintIf(w, p.Cursor != "", "; read %s, back to %s, and there are more", manifest.Plural(p.Lines, "line"),
			Time(p.Since))
		fmt.Fprintln(w)
	default:
		fmt.Fprintln(w, "no records")
	}
	command.WriteLines(w, "Next: ", next)
}

// note reports which lines a reading left out.
func (j journal[R]) note(done record.Reading) {
	if n := done.Unreadable; n > 0 {
		j.app.Notice(manifest.Plural(n, "line") + " of " + j.name + " cannot be read" + j.hint)
	}
	if n := done.Unchained; n > 0 {
		j.app.Notice(manifest.Plural(n, "line") + " of " + j.name + " differ from what was chained" + j.hint)
	}
}

// each calls do with every record that matches after a cursor, the oldest first, and reports what it leaves out.
func (j journal[R]) each(f Filter, cursor string, do func(R) error) (record.Reading, error) {
	filter, err := f.compile(time.Now())
	if err != nil {
		return record.Reading{}, err
	}
	failed := false
	done, err := j.records(nil).Each(filter, cursor, func(r R) error {
		err := do(r)
		failed = err != nil
		return err
	})
	if err != nil && !failed {
		return done, j.unreadable(err)
	}
	j.note(done)
	return done, err
}

// export writes every record that matches to stdout or a file, and says where the next export begins.
func (j journal[R]) export(f Filter, opts *exportOptions) (err error) {
	if opts.Format != "jsonl" && opts.Format != "csv" {
		return host.Errorf(host.InvalidArgs, "--format: %q is neither jsonl nor csv", manifest.CleanValue(opts.Format))
	}
	f.Until = opts.Until
	to := j.app.Out
	if opts.Out != "" {
		file, err := os.OpenFile(opts.Out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return host.Errorf(host.InvalidArgs, "--out: %v", err)
		}
		defer file.Close()
		to = file
	}
	buffered := bufio.NewWriterSize(to, 64<<10)
	write, n := func(r R) error { return command.WriteJSON(buffered, r, false) }, 0
	if opts.Format == "csv" {
		write = csvOf[R](buffered)
	}
	done, err := j.each(f, opts.Cursor, func(r R) error {
		n++
		return write(r)
	})
	if err == nil {
		err = buffered.Flush()
	}
	switch {
	case err != nil && opts.Out != "" && host.AsError(err).Code == host.Internal:
		return host.Errorf(host.InvalidArgs, "--out: %v", err)
	case err != nil:
		return command.WriteError(err)
	case opts.Out == "":
		j.app.ToText()
		j.app.Notice(manifest.Plural(n, "record") + command.When(done.Cursor != "", "; --cursor "+done.Cursor+
			" exports what is written from now on"))
		return nil
	}
	data := struct {
		Out     string `json:"out"`
		Records int    `json:"records"`
		record.Reading
	}{opts.Out, n, done}
	return j.app.Print(data, nil, command.Text("%s: %s\n", opts.Out, manifest.Plural(n, "record")))
}

// follow calls do with every record that matches and is written from now on, by any process, until ctx is done.
func (j journal[R]) follow(ctx context.Context, f Filter, do func(R) error) error {
	filter, err := f.compile(time.Now())
	if err != nil {
		return err
	}
	all := j.records(nil)
	from, err := all.End()
	if err != nil {
		return j.unreadable(err)
	}
	return all.Follow(ctx, filter, from, func(r R, _ record.Cursor) error { return do(r) })
}

func (j journal[R]) unreadable(err error) error {
	if e := host.AsError(err); e.Code != host.Internal {
		return e
	}
	return &host.Error{
		Code: host.Unavailable, Message: "cannot read " + j.name + ": " + manifest.CleanLine(err.Error()), Cause: err,
		Steps: []step.Step{step.Operator(step.OpDoctor)},
	}
}

// Time returns a time in the format of lists of records.
func Time(t time.Time) string { return t.UTC().Format(time.DateTime) }

// parseTime parses a duration before now, or a time. A time is in UTC unless it names a zone.
func parseTime(option, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, host.Errorf(host.InvalidArgs, "--%s: %q is neither a duration such as 24h or 7d nor a time "+
		"such as 2026-11-21 or 2026-11-21T08:00:00Z", option, manifest.CleanValue(s))
}
