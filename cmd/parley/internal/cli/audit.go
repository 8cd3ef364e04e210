package cli

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/audit"
	"github.com/parley-tools/parley/manifest"
)

// auditFlags say which records to show.
type auditFlags struct {
	tool, caller, code, since string
	limit                     int
}

func newAudit(app *App) *cobra.Command {
	f := &auditFlags{}
	show := &cobra.Command{
		Use:     "show",
		Short:   "Show the last records",
		Example: "parley audit show --since 24h --code denied\nparley audit show --tool 'cdp.Page.*' --json",
		Long: "Times are in UTC, of a call when it began. A call without an end still runs, or its host was killed " +
			"(audit = \"required\" records the beginning, too).",
		Args: noWords,
		RunE: func(*cobra.Command, []string) error { return app.showAudit(f) },
	}
	show.Flags().StringVar(&f.tool, "tool", "", "only this tool, group or plugin, as cdp.Page.*")
	show.Flags().StringVar(&f.caller, "caller", "", "only this caller, such as mcp:* or plugin:NAME")
	show.Flags().StringVar(&f.code, "code", "", "only this outcome, such as ok or denied")
	show.Flags().StringVar(&f.since, "since", "", "only from then on: 24h, 7d, 2026-11-21")
	show.Flags().IntVar(&f.limit, "limit", 50, "how many at most, the last ones")
	show.Flags().SortFlags = false
	_ = show.RegisterFlagCompletionFunc("code", cobra.FixedCompletions(codes(), cobra.ShellCompDirectiveNoFileComp))

	anchor := ""
	verify := &cobra.Command{
		Use:     "verify",
		Short:   "Prove that no record was changed, removed, inserted or moved",
		Example: "parley audit verify\nparley audit verify --head \"$(cat kept-elsewhere)\"",
		Long: "The first record that is wrong is named, and the exit code is 87. The chain alone cannot tell that the end was cut off, or that all " +
			"of it was written anew: only a head that was kept elsewhere proves that.",
		Args: noWords,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.verifyAudit(anchor, cmd.Flags().Changed("head"))
		},
	}
	verify.Flags().StringVar(&anchor, "head", "", "what parley audit head printed at some time")
	head := &cobra.Command{
		Use:     "head",
		Short:   "Print the hash, number and time of the last record",
		Example: "parley audit head",
		Long:    "Keep it where nobody who can write the log can write: it stands for all records up to now, and verify --head proves them with it.",
		Args:    noWords,
		RunE:    func(*cobra.Command, []string) error { return app.auditHead() },
	}
	cmd := parent("audit", "Read the audit log", show, verify, head)
	cmd.Long = "Each call leaves a JSON line that holds the hash of the line before: who called what, rights, what they were used for, outcome. " +
		"No parameters, no results. show shows them, verify proves that none was changed, head prints what to keep elsewhere for that. " +
		"A file of 64 MiB is closed, and ten closed ones are kept; the record that begins a new file says what was dropped. " +
		"[operator] audit in policy.toml is \"on\", \"required\" (a call that cannot be recorded does not run) or \"off\"."
	return cmd
}

func codes() (names []string) {
	for _, o := range host.Outcomes() {
		names = append(names, string(o.Code))
	}
	return names
}

// note records what an operator did. It is done by then, so that a log that cannot be written is told and no more.
func (a *App) note(op, subject string, details ...string) {
	if err := a.audit().Note(op, subject, details...); err != nil {
		a.notice(err.Error())
	}
}

func (a *App) auditHead() error {
	head, err := a.audit().Head()
	if err != nil {
		return unreadable(err)
	}
	if head.Seq == 0 {
		return host.Errorf(host.NotFound, "the audit log %s holds no record yet", a.audit().Dir()).WithNext("parley text hash hello")
	}
	return a.answer(head, []string{"parley audit verify --head " + head.Hash}, func(w io.Writer) { fmt.Fprintln(w, head) })
}

func unreadable(err error) error {
	if e := host.AsError(err); e.Code != host.Internal {
		return e
	}
	return &host.Error{Code: host.Unavailable, Message: "the audit log cannot be read: " + err.Error(), Cause: err, Next: []string{"parley doctor"}}
}

func (a *App) verifyAudit(anchor string, anchored bool) error {
	if anchored && strings.TrimSpace(anchor) == "" { // such as --head "$(cat missing)": nothing must look proved
		return host.Errorf(host.InvalidArgs, "--head is empty; expected what parley audit head printed").WithNext("parley audit head")
	}
	log := a.audit()
	r, err := log.Verify(anchor)
	if err != nil {
		return unreadable(err)
	}
	if f := r.Broken; f != nil {
		where := fmt.Sprintf("%s:%d", filepath.Join(log.Dir(), f.File), f.Line)
		return &host.Error{
			Code: host.Integrity, Message: "the audit log is " + f.Verdict() + ": " + where + " " + f.Message,
			Details: []host.Detail{{Parameter: where, Keyword: f.Kind, Expected: f.Expected, Provided: f.Provided}},
			Next:    []string{"parley audit show --json", "keep a copy of " + log.Dir() + "; once it is moved away, a new log begins"},
		}
	}
	next := []string{"parley audit head"}
	return a.answer(r, next, func(w io.Writer) {
		if r.Records == 0 {
			fmt.Fprintln(w, "ok: there is no record")
			return
		}
		fmt.Fprintf(w, "ok: %s in %s, %s to %s\n", plural(r.Records, "record"), plural(r.Files, "file"), auditTime(r.First), auditTime(r.Last))
		if r.Dropped > 0 {
			fmt.Fprintf(w, "    records 1 to %d were dropped by rotation\n", r.Dropped)
		}
		if r.Repairs > 0 {
			fmt.Fprintf(w, "    %s cut off where a host was killed or the disk was full\n", plural(r.Repairs, "half-written record"))
		}
		if r.Torn > 0 {
			fmt.Fprintf(w, "    a half-written record of %s at the end, in whose place the next one will come\n", plural(int(r.Torn), "byte"))
		}
		if r.Anchor != nil {
			fmt.Fprintf(w, "    the given head, record %d, is part of it\n", r.Anchor.Seq)
		} else {
			fmt.Fprintln(w, "    no head was given: only --head with one kept elsewhere proves that the end was not cut off")
		}
		fmt.Fprintln(w, "head "+r.Head.String())
	})
}

// showAudit shows the last records that pass. Of a call with a beginning and an end only the end is shown.
func (a *App) showAudit(f *auditFlags) error {
	passes, err := f.filter(time.Now())
	if err != nil {
		return err
	}
	begun := map[string]audit.Record{}
	var records []audit.Record
	total := 0
	damaged, err := a.audit().Read(func(r audit.Record) error {
		if r.Op == "call" {
			delete(begun, r.Call)
		}
		switch {
		case !passes(r):
		case r.Op == "begin":
			begun[r.Call] = r
		default:
			total++
			if records = append(records, r); len(records) >= 2*f.limit {
				records = slices.Clone(records[f.limit:])
			}
		}
		return nil
	})
	if err != nil {
		return unreadable(err)
	}
	for _, r := range begun {
		records = append(records, r)
		total++
	}
	slices.SortFunc(records, func(x, y audit.Record) int { return cmp.Compare(x.Seq, y.Seq) })
	records = append([]audit.Record{}, records[max(0, len(records)-f.limit):]...)
	if damaged > 0 {
		a.notice(plural(damaged, "line") + " of the audit log cannot be read; parley audit verify names the first")
	}
	data := struct {
		Records []audit.Record `json:"records"`
		Total   int            `json:"total"`
	}{records, total}
	return a.answer(data, []string{"parley audit verify"}, func(w io.Writer) { a.auditText(w, records, total) })
}

// filter makes of the options what tells which records to show.
func (f *auditFlags) filter(now time.Time) (func(audit.Record) bool, error) {
	if f.limit < 1 {
		return nil, host.Errorf(host.InvalidArgs, "--limit must be at least 1, not %d", f.limit)
	}
	since, err := parseSince(f.since, now)
	if err != nil {
		return nil, err
	}
	for name, glob := range map[string]string{"tool": f.tool, "caller": f.caller} {
		if _, err := path.Match(glob, ""); err != nil {
			return nil, host.Errorf(host.InvalidArgs, "--%s: %q is no pattern; expected a name in which * stands for any letters",
				name, manifest.CleanLine(glob))
		}
	}
	return func(r audit.Record) bool {
		code := ""
		if r.Outcome != nil {
			code = r.Code
		}
		return !r.Time.Before(since) && (f.code == "" || strings.EqualFold(f.code, code)) &&
			(f.caller == "" || matchName(f.caller, r.Caller)) &&
			(f.tool == "" || matchName(f.tool, r.Tool) || matchName(f.tool+".*", r.Tool) || r.Tool == "" && matchName(f.tool, r.Subject))
	}, nil
}

// matchName holds a name against a pattern, without regard to case.
func matchName(glob, name string) bool {
	flat := strings.NewReplacer("/", ":") // in a path * would stop there
	ok, _ := path.Match(strings.ToLower(flat.Replace(glob)), strings.ToLower(flat.Replace(name)))
	return ok
}

// parseSince takes a duration back from now, or a time; without a zone it is UTC, as times are shown.
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
	return time.Time{}, host.Errorf(host.InvalidArgs, "--since: %q is neither a duration such as 24h or 7d nor a time such as 2026-11-21 "+
		"or 2026-11-21T08:00:00Z", manifest.CleanLine(s))
}

func auditTime(t time.Time) string { return t.UTC().Format(time.DateTime) }

func (a *App) auditText(w io.Writer, records []audit.Record, total int) {
	if total == 0 {
		fmt.Fprintln(w, "no record")
		return
	}
	rows := [][5]string{{"TIME (UTC)", "CALLER", "WHAT", "OUTCOME", "MS"}}
	for _, r := range records {
		rows = append(rows, auditRow(r))
	}
	var widths [5]int
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], min(len(cell), 40))
		}
	}
	for i, row := range rows {
		line := fmt.Sprintf("%-*s  %-*s  %-*s  %-*s  %*s", widths[0], row[0], widths[1], row[1], widths[2], row[2], widths[3], row[3], widths[4], row[4])
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		if i == 0 {
			continue
		}
		for _, more := range auditMore(records[i-1]) {
			fmt.Fprintln(w, wrapped("    "+more, a.columns(), "      "))
		}
	}
	fmt.Fprintf(w, "%d of %s\nNext: parley audit verify\n", len(records), plural(total, "record"))
}

// auditRow is a record in one line: when, who, what and how it ended.
func auditRow(r audit.Record) [5]string {
	row := [5]string{auditTime(r.Time), manifest.CleanLine(r.Caller), manifest.CleanLine(r.Tool), "", ""}
	switch {
	case r.Op == "call" && r.Outcome != nil:
		row[3], row[4] = manifest.CleanLine(r.Code), strconv.FormatFloat(r.MS, 'f', 1, 64)
		if r.DryRun {
			row[3] += ", dry run"
		}
	case r.Op == "begin":
		row[3] = "no end"
	default:
		row[2] = manifest.CleanLine(r.Op + " " + r.Subject)
	}
	return row
}

// auditMore is what a record says besides, a line each.
func auditMore(r audit.Record) (lines []string) {
	list := func(label string, items []string, more int) {
		if more > 0 {
			items = append(slices.Clone(items), fmt.Sprintf("and %d more", more))
		}
		if len(items) > 0 {
			lines = append(lines, manifest.CleanLine(label+" "+strings.Join(items, ", ")))
		}
	}
	list("granted", r.Rights, r.RightsMore)
	list("used", r.Touched, r.TouchedMore)
	list("refused", r.Denied, r.DeniedMore)
	if _, words, ok := strings.Cut(r.Limit, ": "); ok { // before it stands the outcome once more
		lines = append(lines, manifest.CleanLine("limit "+words))
	}
	list("with", r.Details, r.DetailsMore)
	if r.Torn > 0 {
		lines = append(lines, "cut off a half-written record of "+plural(int(r.Torn), "byte"))
	}
	if d := r.Dropped; d != nil {
		lines = append(lines, fmt.Sprintf("dropped %s, up to %s and record %d", plural(d.Files, "file"), manifest.CleanLine(d.Last), d.Seq))
	}
	return lines
}
