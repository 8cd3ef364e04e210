package command

import (
	"context"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/host/stats"
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
	scope, err := scopeOf(h.Catalog(), o.Name)
	if err != nil {
		return nil, err
	}
	records, err := d.records(o.Since)
	if err != nil {
		return nil, err
	}
	return stats.Compute(slices.Values(records), h.Catalog(), scope), nil
}

// scopeOf returns the qualified name of a plugin, a group or a tool; "" stays "", which means all.
func scopeOf(catalog *host.Catalog, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	at, err := catalog.Find(name)
	if err != nil {
		return "", err
	}
	return at.Name(), nil
}

// autoPins is the value of pinned_tools for the tools that are used most.
const autoPins = "auto"

const (
	// maxAutoPins is how many tools are pinned by use: as many as without configuration.
	maxAutoPins = 8
	// minAutoCalls are the successful calls from which a tool is pinned.
	minAutoCalls = 3
)

// pinned returns the tools that progressive mode lists. With "auto" they are those that succeeded most, once a server
// starts; without such calls they are the default.
func (d *Deps) pinned(ctx context.Context) ([]string, error) {
	s, err := d.Settings()
	if err != nil {
		return nil, err
	}
	if !slices.Equal(s.Pinned, []string{autoPins}) {
		return s.Pinned, nil
	}
	report, err := Stats(ctx, d, StatsOptions{})
	if err != nil {
		return nil, err
	}
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	tools := slices.DeleteFunc(report.Tools, func(t stats.Tool) bool {
		at, err := catalog.Find(t.Name)
		return err != nil || at.Tool == nil || t.Calls-t.Failed < minAutoCalls
	})
	slices.SortStableFunc(tools, func(a, b stats.Tool) int { return (b.Calls - b.Failed) - (a.Calls - a.Failed) })
	var names []string
	for _, t := range tools[:min(len(tools), maxAutoPins)] {
		names = append(names, t.Name)
	}
	return names, nil
}

// records returns what traces have since a duration before now or a time, "" for everything that is kept.
func (d *Deps) records(since string) ([]host.Record, error) {
	var records []host.Record
	err := ExportTraces(d, TraceFilter{Since: since}, func(r trace.Record) error {
		records = append(records, r)
		return nil
	})
	return records, err
}
