package learning

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/history"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/manifest"
)

var statsCommand = &command.Command[*statsOptions]{
	Use: "stats [NAME]", Run: runStats, Words: command.CompleteNames,
	Short: "Count calls, and how they fail",
	Long: "Computed from traces. NAME is a plugin, a group or a tool. Each figure has the number of cases behind it " +
		"and a 95 % interval;\nfigures from too few cases are left out. How calls follow each other is known only within " +
		"sessions. --json has\nall of it.",
	Example: "parley stats\nparley stats text.hash --since 7d --json",
}

func runStats(_ context.Context, app *command.App, opts *statsOptions) error {
	_, r, err := computeStats(app, *opts)
	if err != nil {
		return err
	}
	next := []string{"parley trace list --failed"}
	if len(r.Worst) > 0 {
		next = append([]string{"parley docs suggest"}, next...)
	}
	return app.Print(r, next, func(w io.Writer) { statsText(app, w, r, opts.Name != "") })
}

// statsRows is how many rows a table of statistics has.
const statsRows = 15

// statsText prints what is most worth fixing, and the tables behind it. details are the tables of single tools.
func statsText(a *command.App, w io.Writer, r *stats.Report, details bool) {
	if r.Calls+r.Searches+r.Describes == 0 {
		fmt.Fprintln(w, "no records; calls, searches and describes leave them")
		return
	}
	fmt.Fprintf(w, "%s, %s and %s in %s, %s to %s\n", manifest.Plural(r.Calls, "call"), searches(r.Searches),
		manifest.Plural(r.Describes, "describe"), manifest.Plural(r.Sessions, "session"), history.Time(r.Since),
		history.Time(r.Until))
	if len(r.Worst) > 0 {
		fmt.Fprintln(w, "\nMost worth fixing:")
		for i, m := range r.Worst {
			a.Wrap(w, "   ", "%d. %s", i+1, manifest.CleanLine(m.Text))
		}
	}
	fmt.Fprintf(w, "\n%-34s %6s %-26s %-26s %9s %9s\n", "tool", "calls", "failed", "first try", "p50 ms", "p95 ms")
	rows := r.Tools[:min(len(r.Tools), statsRows)]
	if len(r.Tools) != 1 {
		all := r.All
		all.Name = "all"
		rows = append([]stats.Tool{all}, rows...)
	}
	for _, t := range rows {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-34s %6d %-26s %-26s %9s %9s",
			command.Fit(manifest.CleanLine(t.Name), 34), t.Calls, share(a, t.Failures), share(a, t.FirstTry), quantile(t.P50),
			quantile(t.P95)), " "))
	}
	if more := len(r.Tools) - statsRows; more > 0 {
		fmt.Fprintf(w, "(%d more with --json)\n", more)
	}
	fmt.Fprintln(w)
	line := func(name string, of *stats.Share) {
		command.PrintIf(w, of != nil, "%-34s %s\n", name, share(a, of))
	}
	line("errors followed by a success", r.All.Recovered)
	line("corrections used as proposed", r.All.Kept)
	line("success after an error with docs", r.WithDocs)
	line("success after an error without", r.WithoutDocs)
	line("sessions abandoned", r.Abandoned)
	line("tool called was the first hit", r.Search.First)
	line("or among the first five", r.Search.Five)
	command.PrintIf(w, r.Turns != nil, "%-34s %s turns, %s s, %s tokens of documentation\n", "to the first success",
		quantile(r.Turns), quantile(r.Seconds), quantile(r.Tokens))
	for _, of := range r.CPU[:min(len(r.CPU), 3)] {
		fmt.Fprintf(w, "%-34s %.1f s\n", command.Fit("CPU time of "+manifest.CleanLine(of.Caller), 34), of.MS/1e3)
	}
	if details {
		for i := range r.Tools {
			toolStats(a, w, &r.Tools[i])
		}
	}
	for _, c := range r.Confusions[:min(len(r.Confusions), 5)] {
		fmt.Fprintf(w, "confused: %s, meant %s (%d)\n", manifest.CleanLine(c.Called), manifest.CleanLine(c.Meant), c.N)
	}
	for _, m := range r.Search.Misses[:min(len(r.Search.Misses), 5)] {
		fmt.Fprintf(w, "not found: %s (%s)\n", manifest.CleanLine(m.Tool), searches(m.N))
	}
	for _, c := range r.Deprecated {
		fmt.Fprintf(w, "deprecated, in use: %s (%s)\n", manifest.CleanLine(c.Name), manifest.Plural(c.N, "call"))
	}
	if n := len(r.Unused); n > 0 {
		a.Wrap(w, "  ", "never used: %s: %s", manifest.Plural(n, "tool"), firstOf(r.Unused, 8))
	}
}

// toolStats prints the problems of calls of a tool.
func toolStats(a *command.App, w io.Writer, t *stats.Tool) {
	if len(t.Fields)+len(t.Codes)+len(t.Unused)+len(t.Contrasts) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", manifest.CleanLine(t.Name))
	for _, c := range t.Codes {
		fmt.Fprintf(w, "  %6d %s\n", c.N, manifest.CleanLine(c.Name))
	}
	for _, f := range t.Fields {
		text := fmt.Sprintf("  %6d %s %s: expected %s (%s)", f.N, f.Pointer, f.Keyword, f.Expected,
			manifest.Plural(f.Sessions, "session"))
		a.Wrap(w, "         ", "%s", manifest.CleanLine(text))
	}
	for _, c := range t.Contrasts {
		a.Wrap(w, "         ", "         %s", c)
	}
	command.PrintIf(w, len(t.Unused) > 0, "  never used: %s\n", firstOf(t.Unused, 8))
}

// firstOf joins the first names of a list.
func firstOf(names []string, n int) string {
	if len(names) <= n {
		return manifest.CleanLine(strings.Join(names, ", "))
	}
	return manifest.CleanLine(strings.Join(names[:n], ", ")) + " …"
}

func searches(n int) string {
	return fmt.Sprintf("%d %s", n, command.Either(n == 1, "search", "searches"))
}

// share returns a share with its interval, on a terminal after a small bar: "▍ 31% (26-37) of 263".
func share(a *command.App, s *stats.Share) string {
	if s == nil {
		return "-"
	}
	text := fmt.Sprintf("%3.0f%% (%.0f-%.0f) of %d", 100*s.Share, 100*s.Low, 100*s.High, s.Of)
	if a.OutTTY {
		text = bar(s.Share) + text
	}
	return text
}

// barEighths are bars of one to eight eighths of a column.
var barEighths = []rune("▏▎▍▌▋▊▉█")

// bar returns a bar of four columns.
func bar(share float64) string {
	const width = 4
	eighths := int(share*8*width + 0.5)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string(barEighths[rest-1])
	}
	return fmt.Sprintf("%-*s ", width, text)
}

func quantile(q *stats.Quantile) string {
	if q == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", q.Value)
}

// statsOptions select the calls that [computeStats] counts.
type statsOptions struct {
	// a plugin, a group or a tool; "" means all
	Name  string `word:""`
	Since string `flag:"since" usage:"only records since: 24h, 7d, 2026-11-21"`
}

// computeStats returns the catalog, and statistics of its use from traces.
func computeStats(app *command.App, o statsOptions) (*host.Catalog, *stats.Report, error) {
	catalog, scope, records, err := recorded(app, o.Name, o.Since)
	if err != nil {
		return nil, nil, err
	}
	return catalog, stats.Compute(records, catalog, scope), nil
}

// recorded returns the catalog, the qualified name of a plugin, group or tool, and the traces since a duration before
// now or a time. The name "" stays "" and means all. since "" means all that is stored.
func recorded(app *command.App, name, since string) (catalog *host.Catalog, scope string, all []host.Record,
	err error) {
	if catalog, err = app.Catalog(); err == nil {
		scope, err = scopeOf(catalog, name)
	}
	if err != nil {
		return nil, "", nil, err
	}
	err = history.ExportTraces(app, history.Filter{Since: since}, func(r trace.Record) error {
		all = append(all, r)
		return nil
	})
	return catalog, scope, all, err
}

// scopeOf returns the qualified name of a plugin, group or tool. "" stays "" and means all.
func scopeOf(catalog *host.Catalog, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	at, err := catalog.Find(name)
	return at.Name(), err
}
