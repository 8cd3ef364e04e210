package command

import (
	"context"
	"slices"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/stats"
	"github.com/parley-tools/parley/host/trace"
	"github.com/parley-tools/parley/manifest"
)

// StatsOptions say which calls [Stats] counts.
type StatsOptions struct {
	Name  string // a plugin, a group or a tool; "" means all
	Since string // as in TraceFilter
}

// Stats returns statistics of use, from traces.
func Stats(ctx context.Context, d *Deps, o StatsOptions) (*stats.Report, error) {
	h, err := d.Host(ctx)
	if err != nil {
		return nil, err
	}
	if o.Name != "" {
		at, err := h.Catalog().Find(o.Name)
		if err != nil {
			return nil, err
		}
		o.Name = at.Name()
	}
	records, err := d.records(o.Since)
	if err != nil {
		return nil, err
	}
	return stats.Compute(slices.Values(records), h.Catalog(), o.Name), nil
}

// records returns what traces have since a duration before now or a time, "" for everything that is kept.
func (d *Deps) records(since string) ([]host.Record, error) {
	from, err := parseSince(since, time.Now())
	if err != nil {
		return nil, err
	}
	var records []host.Record
	damaged := 0
	filter := trace.Filter{Since: from, Damaged: func(string, int) { damaged++ }}
	for r, err := range trace.Read(d.Parley().TraceDir(), filter) {
		if err != nil {
			return nil, unreadableTraces(err)
		}
		records = append(records, r)
	}
	if damaged > 0 {
		d.Notice(manifest.Plural(damaged, "line") + " of the traces cannot be read")
	}
	return records, d.noteTracesOff()
}
