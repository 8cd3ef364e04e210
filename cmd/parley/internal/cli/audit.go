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
		Long: "Times are in UTC; the time of a call is when it began. A call without an end is still running, or its host " +
			"was killed\n(audit = \"required\" records the beginning, too).",
		Args: noWords,
		RunE: func(*cobra.Command, []string) error { return app.showAudit(f) },
	}
	show.Flags().StringVar(&f.tool, "tool", "", "only this tool, group or plugin, such as cdp.Page.*")
	show.Flags().StringVar(&f.caller, "caller", "", "only this caller, such as mcp:* or plugin:NAME")
	show.Flags().StringVar(&f.code, "code", "", "only this outcome, such as ok or denied")
	show.Flags().StringVar(&f.since, "since", "", "only records since: 24h, 7d, 2026-11-21")
	show.Flags().IntVar(&f.limit, "limit", 50, "show at most this many, the latest")
	show.Flags().SortFlags = false
	_ = show.RegisterFlagCompletionFunc("code", cobra.FixedCompletions(codes(), cobra.ShellCompDirectiveNoFileComp))

	anchor := ""
	verify := &cobra.Command{
		Use:     "verify",
		Short:   "Prove that no record was changed, removed, inserted or moved",
		Example: "parley audit verify\nparley audit verify --head \"$(cat kept-elsewhere)\"",
		Long: "Names the first invalid record and exits with 87. The chain alone cannot show that the end was cut off or\n" +
			"that the whole log was rewritten: only a head that was stored elsewhere proves that.",
		Args: noWords,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.verifyAudit(anchor, cmd.Flags().Changed("head"))
		},
	}
	verify.Flags().StringVar(&anchor, "head", "", "a hash that parley audit head printed earlier")
	head := &cobra.Command{
		Use:     "head",
		Short:   "Print the hash, number and time of the last record",
		Example: "parley audit head",
		Long: "Store it where a process that can write the log cannot write. It covers all records up to now, which\n" +
			"verify --head checks against it.",
		Args: noWords,
		RunE: func(*cobra.Command, []string) error { return app.auditHead() },
	}
	cmd := parent("audit", "Read the audit log", show, verify, head)
	cmd.Long = "Each call adds a JSON line that contains the hash of the previous line: caller, tool, rights, their " +
		"use, outcome. No parameters and no results. show prints records, verify checks that none was changed, head " +
		"prints the hash to store elsewhere. A file is closed at 64 MiB, and ten closed files are kept; the first " +
		"record of a new file names what was dropped. [operator] audit in policy.toml is \"on\", \"required\" (a call " +
		"that cannot be recorded does not run) or \"off\"."
	return cmd
}

func codes() (names []string) {
	for _, o := range host.Outcomes() {
		names = append(names, string(o.Code))
	}
	return names
}

// note records an operator's change. The change has been made by then, so a log that cannot be written is
// only reported.
func (a *App) note(op, subject string, details ...string) {
	if err := a.deps.AuditLog().Note(op, subject, details...); err != nil {
		a.notice(err.Error())
	}
}

func (a *App) auditHead() error {
	head, err := a.deps.AuditLog().Head()
	if err != nil {
		return unreadable(err)
	}
	if head.Seq == 0 {
		return host.Errorf(host.NotFound, "the audit log %s has no records yet", a.deps.AuditLog().Dir()).
			WithNext("parley text hash hello")
	}
	return a.answer(head, []string{"parley audit verify --head " + head.Hash}, func(w io.Writer) { fmt.Fprintln(w, head) })
}

func unreadable(err error) error {
	if e := host.AsError(err); e.Code != host.Internal {
		return e
	}
	return &host.Error{
		Code: host.Unavailable, Message: "the audit log cannot be read: " + err.Error(), Cause: err,
		Next: []string{"parley doctor"},
	}
}

func (a *App) verifyAudit(anchor string, anchored bool) error {
	if anchored && strings.TrimSpace(anchor) == "" { // such as --head "$(cat missing)", which must not look like a proof
		return host.Errorf(host.InvalidArgs, "--head is empty; expected the output of parley audit head").
			WithNext("parley audit head")
	}
	log := a.deps.AuditLog()
	r, err := log.Verify(anchor)
	if err != nil {
		return unreadable(err)
	}
	if f := r.Broken; f != nil {
		where := fmt.Sprintf("%s:%d", filepath.Join(log.Dir(), f.File), f.Line)
		return &host.Error{
			Code: host.Integrity, Message: "the audit log is " + f.Verdict() + ": " + where + " " + f.Message,
			Details: []host.Detail{{Parameter: where, Keyword: f.Kind, Expected: f.Expected, Provided: f.Provided}},
			Next: []string{
				"parley audit show --json", "keep a copy of " + log.Dir() + "; after you move it away, a new log begins",
			},
		}
	}
	next := []string{"parley audit head"}
	return a.answer(r, next, func(w io.Writer) {
		if r.Records == 0 {
			fmt.Fprintln(w, "ok: no records")
			return
		}
		fmt.Fprintf(w, "ok: %s in %s, %s to %s\n",
			plural(r.Records, "record"), plural(r.Files, "file"), auditTime(r.First), auditTime(r.Last))
		if r.Dropped > 0 {
			fmt.Fprintf(w, "    records 1 to %d were dropped by rotation\n", r.Dropped)
		}
		if r.Repairs > 0 {
			fmt.Fprintf(w, "    %s cut off after a host was killed or the disk was full\n",
				plural(r.Repairs, "half-written record"))
		}
		if r.Torn > 0 {
			fmt.Fprintf(w, "    a half-written record of %s at the end; the next record replaces it\n",
				plural(int(r.Torn), "byte"))
		}
		if r.Anchor != nil {
			fmt.Fprintf(w, "    the given head is record %d of this log\n", r.Anchor.Seq)
		} else {
			fmt.Fprintln(w, "    no head was given: only --head with a stored one proves that the end was not cut off")
		}
		fmt.Fprintln(w, "head "+r.Head.String())
	})
}

// showAudit shows the last records that match. Of a call with a beginning and an end, only the end is shown.
func (a *App) showAudit(f *auditFlags) error {
	passes, err := f.filter(time.Now())
	if err != nil {
		return err
	}
	begun := map[string]audit.Record{}
	var records []audit.Record
	total := 0
	damaged, err := a.deps.AuditLog().Read(func(r audit.Record) error {
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

// filter returns the predicate of the records to show.
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
			return nil, host.Errorf(host.InvalidArgs,
				"--%s: %q is not a valid pattern; expected a name, in which * matches any characters",
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
			(f.tool == "" || matchName(f.tool, r.Tool) || matchName(f.tool+".*", r.Tool) ||
				r.Tool == "" && matchName(f.tool, r.Subject))
	}, nil
}

// matchName reports whether a name matches a pattern, ignoring case.
func matchName(glob, name string) bool {
	flat := strings.NewReplacer("/", ":") // path.Match lets * stop at a slash
	ok, _ := path.Match(strings.ToLower(flat.Replace(glob)), strings.ToLower(flat.Replace(name)))
	return ok
}

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
		"such as 2026-11-21 or 2026-11-21T08:00:00Z", manifest.CleanLine(s))
}

func auditTime(t time.Time) string { return t.UTC().Format(time.DateTime) }

func (a *App) auditText(w io.Writer, records []audit.Record, total int) {
	if total == 0 {
		fmt.Fprintln(w, "no records")
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
		line := fmt.Sprintf("%-*s  %-*s  %-*s  %-*s  %*s",
			widths[0], row[0], widths[1], row[1], widths[2], row[2], widths[3], row[3], widths[4], row[4])
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

// auditMore returns the further lines of a record.
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
	if _, words, ok := strings.Cut(r.Limit, ": "); ok { // the part before it repeats the outcome
		lines = append(lines, manifest.CleanLine("limit "+words))
	}
	list("with", r.Details, r.DetailsMore)
	if r.Torn > 0 {
		lines = append(lines, "cut off a half-written record of "+plural(int(r.Torn), "byte"))
	}
	if d := r.Dropped; d != nil {
		lines = append(lines, fmt.Sprintf("dropped %s, up to %s and record %d",
			plural(d.Files, "file"), manifest.CleanLine(d.Last), d.Seq))
	}
	return lines
}
