// Package history has the commands that show what happened: audit and trace.
package history

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/manifest"
)

// Commands are the commands that this package has.
var Commands = []command.Maker{auditCommand, traceCommand}

// Filter says which records of the audit log or of the traces are meant. The zero value means all.
type Filter struct {
	record.Filter
	// Since is a duration before now, such as 24h or 7d, or a time, which is in UTC unless it names a zone.
	Since string
}

// ops are the values of Filter.Op.
var ops = []string{"call", "search", "describe"}

// compile returns the filter by which records are read.
func (f *Filter) compile(now time.Time) (record.Filter, error) {
	filter := f.Filter
	since, err := parseSince(f.Since, now)
	for _, option := range [][2]string{{"tool", f.Tool}, {"caller", f.Caller}} {
		if _, invalid := path.Match(option[1], ""); err == nil && invalid != nil {
			err = host.Errorf(host.InvalidArgs,
				"--%s: %q is not a valid pattern; expected a name, in which * matches any characters",
				option[0], manifest.CleanValue(option[1]))
		}
	}
	if err == nil && f.Op != "" && !slices.Contains(ops, f.Op) {
		err = host.Errorf(host.InvalidArgs, "--op: %q is none of %s", manifest.CleanValue(f.Op), strings.Join(ops, ", "))
	}
	filter.Since = since
	return filter, err
}

// filterOptions complete the options that select records.
var filterOptions = map[string]command.Completer{
	"op":   command.OneOf(ops...),
	"code": command.OneOf(command.Map(host.Outcomes(), func(o host.Outcome) string { return string(o.Code) })...),
}

// list is the latest of the records that match, in the order in which they were written.
type list[R any] struct {
	Records []R `json:"records"`
	Total   int `json:"total"` // how many match
	limit   int
}

func newList[R any](limit int) (*list[R], error) {
	if limit < 1 {
		return nil, host.Errorf(host.InvalidArgs, "--limit must be at least 1, not %d", limit)
	}
	return &list[R]{Records: []R{}, limit: limit}, nil
}

func (l *list[R]) add(r R) {
	l.Total++
	if l.Records = append(l.Records, r); len(l.Records) > l.limit {
		l.Records = l.Records[1:]
	}
}

// journal is the audit log, or the traces.
type journal[R any] struct {
	app     *command.App
	name    string // in messages
	hint    string // what follows the message on damaged lines
	records func(damaged func(string, int)) record.Records[R]
}

// each calls do with every record that matches, the oldest first.
func (j journal[R]) each(f Filter, do func(R) error) error {
	filter, err := f.compile(time.Now())
	if err != nil {
		return err
	}
	damaged := 0
	for r, err := range j.records(func(string, int) { damaged++ }).Read(filter) {
		if err != nil {
			return j.unreadable(err)
		}
		if err := do(r); err != nil {
			return err
		}
	}
	if damaged > 0 {
		j.app.Notice(manifest.Plural(damaged, "line") + " of " + j.name + " cannot be read" + j.hint)
	}
	return nil
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
		Steps: []host.Step{host.OperatorStep(host.OpDoctor)},
	}
}

// Time returns a time as records are listed with.
func Time(t time.Time) string { return t.UTC().Format(time.DateTime) }

// parseSince parses a duration before now, or a time, which is in UTC unless it names a zone.
func parseSince(s string, now time.Time) (time.Time, error) {
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
	return time.Time{}, host.Errorf(host.InvalidArgs, "--since: %q is neither a duration such as 24h or 7d nor a time "+
		"such as 2026-11-21 or 2026-11-21T08:00:00Z", manifest.CleanValue(s))
}
