package command

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/manifest"
)

// TraceLimit is how many records [Traces] returns if no limit is set.
const TraceLimit = 50

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

// TraceOptions say which traces [Traces] returns: the latest of those that match.
type TraceOptions struct {
	TraceFilter
	// Limit is how many records to return at most. 0 means TraceLimit.
	Limit int
}

// TraceData are records of calls, searches and describes, in the order in which they were written.
type TraceData struct {
	Records []trace.Record `json:"records"`
	Total   int            `json:"total"` // how many match
}

// Traces returns the last records that match.
func Traces(d *Deps, o TraceOptions) (*TraceData, error) {
	limit := cmp.Or(o.Limit, TraceLimit)
	if limit < 0 {
		return nil, host.Errorf(host.InvalidArgs, "--limit must be at least 1, not %d", limit)
	}
	data := &TraceData{Records: []trace.Record{}}
	err := ExportTraces(d, o.TraceFilter, func(r trace.Record) error {
		data.Total++
		if data.Records = append(data.Records, r); len(data.Records) >= 2*limit {
			data.Records = slices.Clone(data.Records[limit:])
		}
		return nil
	})
	data.Records = data.Records[max(0, len(data.Records)-limit):]
	return data, err
}

// Trace returns the record of a call. The error is not_found if there is none, or several begin with this id.
func Trace(d *Deps, id string) (*trace.Record, error) {
	var found []trace.Record
	err := ExportTraces(d, TraceFilter{}, func(r trace.Record) error {
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

// errStop ends [ExportTraces] without an error.
var errStop = errors.New("stop")

// ExportTraces calls each with every record that matches, the oldest first.
func ExportTraces(d *Deps, f TraceFilter, each func(trace.Record) error) error {
	filter, err := f.compile(time.Now())
	if err != nil {
		return err
	}
	damaged := 0
	for r, err := range d.traces(func(string, int) { damaged++ }).Read(filter) {
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
		d.Notice(manifest.Plural(damaged, "line") + " of the traces cannot be read")
	}
	return d.noteTracesOff()
}

// FollowTraces calls each with every record that matches and is written from now on, by any process, until ctx is done.
func FollowTraces(ctx context.Context, d *Deps, f TraceFilter, each func(trace.Record) error) error {
	filter, err := f.compile(time.Now())
	if err != nil {
		return err
	}
	if err := d.noteTracesOff(); err != nil {
		return err
	}
	traces := d.traces(nil)
	from, err := traces.End()
	if err != nil {
		return unreadableTraces(err)
	}
	return traces.Follow(ctx, filter, from, func(r trace.Record, _ record.Cursor) error { return each(r) })
}

// traces returns what reads the traces; damaged, which may be nil, is called for each line that is not a record.
func (d *Deps) traces(damaged func(string, int)) record.Records[trace.Record] {
	return trace.Records(d.Parley().TraceDir(), damaged)
}

// noteTracesOff notes that nothing is being recorded.
func (d *Deps) noteTracesOff() error {
	s, err := d.Settings()
	if err == nil && s.TracesOff {
		d.Notice("traces are off (traces.off); nothing is recorded")
	}
	return err
}

func unreadableTraces(err error) error {
	return &host.Error{
		Code: host.Unavailable, Message: "cannot read the traces: " + manifest.CleanLine(err.Error()), Cause: err,
		Steps: []host.Step{host.OperatorStep(host.OpDoctor)},
	}
}

// ClearTraces removes the traces that match the filter and are from before a duration before now or a time, or from
// any time if before is empty. Without a filter, before is the beginning of its day in UTC.
func ClearTraces(d *Deps, f TraceFilter, before string) (*trace.Cleared, error) {
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
	cleared, err := trace.Clear(d.Parley().TraceDir(), filter)
	if err != nil {
		return nil, unreadableTraces(err)
	}
	return &cleared, nil
}
