// Package history has the commands that show what happened: audit and trace.
package history

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/record/audit"
	"github.com/parley-tools/parley/manifest"
)

// Commands are the commands that this package has.
var Commands = []command.Entry{
	{Name: "audit", New: newAudit}, {Name: "trace", New: newTrace},
}

func newAudit(app *command.App) *cobra.Command {
	cmd := command.Parent("audit", "Audit",
		newAuditShow(app), newAuditVerify(app), newAuditHead(app))
	cmd.Long = "Each call adds a JSON line that contains the hash of the previous line: caller, tool, rights, their " +
		"use, outcome. No parameters and no results. show prints records, verify checks that none was changed, head " +
		"prints the hash to store elsewhere. A file is closed at 64 MiB, and ten closed files are kept; the first " +
		"record of a new file names what was dropped. [operator] audit in policy.toml is \"on\", \"required\" (a call " +
		"that cannot be recorded does not run) or \"off\"."
	return cmd
}

func newAuditShow(app *command.App) *cobra.Command {
	opts := &auditShowOptions{app: app}
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Show the last records",
		Example: "parley audit show --since 24h --code denied\nparley audit show --tool 'cdp.Page.*' --json",
		Long: "Times are in UTC; the time of a call is when it began. A call without an end is still running, or its host " +
			"was killed\n(audit = \"required\" records the beginning, too).",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Limit < 1 {
				return host.Errorf(host.InvalidArgs, "--limit must be at least 1, not %d", opts.Limit)
			}
			return runAuditShow(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Tool, "tool", "", "only this tool, group or plugin, such as cdp.Page.*")
	cmd.Flags().StringVar(&opts.Caller, "caller", "", "only this caller, such as mcp:* or plugin:NAME")
	cmd.Flags().StringVar(&opts.Code, "code", "", "only this outcome, such as ok or denied")
	cmd.Flags().StringVar(&opts.Since, "since", "", "only records since: 24h, 7d, 2026-11-21")
	cmd.Flags().IntVar(&opts.Limit, "limit", auditLimit, "show at most this many, the latest")
	cmd.Flags().SortFlags = false
	_ = cmd.RegisterFlagCompletionFunc("code", cobra.FixedCompletions(codes(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func codes() (names []string) {
	for _, o := range host.Outcomes() {
		names = append(names, string(o.Code))
	}
	return names
}

func runAuditShow(_ context.Context, opts *auditShowOptions) error {
	app := opts.app
	data, err := auditRecords(app, *opts)
	if err != nil {
		return err
	}
	return app.Print(data, []string{"parley audit verify"}, func(w io.Writer) {
		auditText(app, w, data.Records, data.Total)
	})
}

type auditVerifyOptions struct {
	app  *command.App
	head string // "" if none was given
}

func newAuditVerify(app *command.App) *cobra.Command {
	opts := &auditVerifyOptions{app: app}
	cmd := &cobra.Command{
		Use:     "verify",
		Short:   "Prove that no record was changed, removed, inserted or moved",
		Example: "parley audit verify\nparley audit verify --head \"$(cat kept-elsewhere)\"",
		Long: "Names the first invalid record and exits with 87. The chain alone cannot show that the end was cut off or\n" +
			"that the whole log was rewritten: only a head that was stored elsewhere proves that.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			// --head "$(cat missing)" must not look like a proof.
			if cmd.Flags().Changed("head") && strings.TrimSpace(opts.head) == "" {
				return host.Errorf(host.InvalidArgs, "--head is empty; expected the output of parley audit head").
					WithNext("parley audit head")
			}
			return runAuditVerify(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.head, "head", "", "a hash that parley audit head printed earlier")
	return cmd
}

func runAuditVerify(_ context.Context, opts *auditVerifyOptions) error {
	r, err := verifyAudit(opts.app, opts.head)
	if err != nil {
		return err
	}
	return opts.app.Print(r, []string{"parley audit head"}, func(w io.Writer) {
		if r.Records == 0 {
			fmt.Fprintln(w, "ok: no records")
			return
		}
		fmt.Fprintf(w, "ok: %s in %s, %s to %s\n",
			manifest.Plural(r.Records, "record"), manifest.Plural(r.Files, "file"), AuditTime(r.First), AuditTime(r.Last))
		if r.Dropped > 0 {
			fmt.Fprintf(w, "    records 1 to %d were dropped by rotation\n", r.Dropped)
		}
		if r.Repairs > 0 {
			fmt.Fprintf(w, "    %s cut off after a host was killed or the disk was full\n",
				manifest.Plural(r.Repairs, "half-written record"))
		}
		if r.Torn > 0 {
			fmt.Fprintf(w, "    a half-written record of %s at the end; the next record replaces it\n",
				manifest.Plural(int(r.Torn), "byte"))
		}
		if r.Anchor != nil {
			fmt.Fprintf(w, "    the given head is record %d of this log\n", r.Anchor.Seq)
		} else {
			fmt.Fprintln(w, "    no head was given: only --head with a stored one proves that the end was not cut off")
		}
		fmt.Fprintln(w, "head "+r.Head.String())
	})
}

type auditHeadOptions struct{ app *command.App }

func newAuditHead(app *command.App) *cobra.Command {
	opts := &auditHeadOptions{app: app}
	return &cobra.Command{
		Use:     "head",
		Short:   "Print the hash, number and time of the last record",
		Example: "parley audit head",
		Long: "Store it where a process that can write the log cannot write. It covers all records up to now, which\n" +
			"verify --head checks against it.",
		RunE: command.RunWith(runAuditHead, opts),
	}
}

func runAuditHead(_ context.Context, opts *auditHeadOptions) error {
	head, err := auditHead(opts.app)
	if err != nil {
		return err
	}
	next := []string{"parley audit verify --head " + head.Hash}
	return opts.app.Print(head, next, func(w io.Writer) { fmt.Fprintln(w, head) })
}

func AuditTime(t time.Time) string { return t.UTC().Format(time.DateTime) }

func auditText(a *command.App, w io.Writer, records []audit.Record, total int) {
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
			fmt.Fprintln(w, command.Wrapped("    "+more, a.Columns(), "      "))
		}
	}
	fmt.Fprintf(w, "%d of %s\nNext: parley audit verify\n", len(records), manifest.Plural(total, "record"))
}

// auditRow is a record in one line: when, who, what and how it ended.
func auditRow(r audit.Record) [5]string {
	row := [5]string{AuditTime(r.Time), manifest.CleanLine(r.Caller), manifest.CleanLine(r.Tool), "", ""}
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
		lines = append(lines, "cut off a half-written record of "+manifest.Plural(int(r.Torn), "byte"))
	}
	if d := r.Dropped; d != nil {
		lines = append(lines, fmt.Sprintf("dropped %s, up to %s and record %d",
			manifest.Plural(d.Files, "file"), manifest.CleanLine(d.Last), d.Seq))
	}
	return lines
}

// auditHeadData is the hash, the number and the time of a record.
type auditHeadData = audit.Head

// auditHead returns the head of the audit log. The error is not_found if the log has no records.
func auditHead(app *command.App) (*auditHeadData, error) {
	head, err := app.Parley().AuditLog().Head()
	if err != nil {
		return nil, unreadableLog(err)
	}
	if head.Seq == 0 {
		return nil, host.Errorf(host.NotFound, "the audit log %s has no records yet", app.Parley().AuditLog().Dir()).
			WithSteps(host.CallStep("text.hash", []byte(`{"text":"hello"}`)))
	}
	return &head, nil
}

func unreadableLog(err error) error {
	if e := host.AsError(err); e.Code != host.Internal {
		return e
	}
	return &host.Error{
		Code: host.Unavailable, Message: "cannot read the audit log: " + err.Error(), Cause: err,
		Steps: []host.Step{host.OperatorStep(host.OpDoctor)},
	}
}

// verifyAuditData is what the verification of an intact log found.
type verifyAuditData = audit.Report

// verifyAudit verifies the audit log, and that it has the record whose head is the anchor. Without an anchor, "", it
// cannot show that records at the end are missing. The error is integrity for a log that is not intact.
func verifyAudit(app *command.App, anchor string) (*verifyAuditData, error) {
	log := app.Parley().AuditLog()
	r, err := log.Verify(anchor)
	if err != nil {
		return nil, unreadableLog(err)
	}
	if f := r.Broken; f != nil {
		where := fmt.Sprintf("%s:%d", filepath.Join(log.Dir(), f.File), f.Line)
		return nil, &host.Error{
			Code: host.Integrity, Message: "the audit log is " + f.Verdict() + ": " + where + " " + f.Message,
			Details: []host.Detail{{Parameter: where, Keyword: f.Kind, Expected: f.Expected, Provided: f.Provided}},
			Next: []string{
				"parley audit show --json", "keep a copy of " + log.Dir() + "; after you move it away, a new log begins",
			},
		}
	}
	return &r, nil
}

// auditLimit is how many records [auditRecords] returns if no limit is set.
const auditLimit = 50

// auditShowOptions say which records of the audit log to return. The zero value means the latest ones of all.
type auditShowOptions struct {
	app *command.App
	// Tool is a pattern of the tool, group or plugin, in which * matches any characters.
	Tool string
	// Caller is a pattern of the caller, such as mcp:*.
	Caller string
	// Code is the outcome, such as denied.
	Code string
	// Since is a duration before now, such as 24h or 7d, or a time, which is in UTC unless it names a zone.
	Since string
	// Limit is how many records to return at most, the latest. 0 means AuditLimit.
	Limit int
}

// auditData are records of the audit log.
type auditData struct {
	Records []audit.Record `json:"records"`
	Total   int            `json:"total"` // how many match
}

// auditRecords returns the last records that match. Of a call with a beginning and an end, only the end is returned.
func auditRecords(app *command.App, o auditShowOptions) (*auditData, error) {
	limit := cmp.Or(o.Limit, auditLimit)
	if limit < 0 {
		return nil, host.Errorf(host.InvalidArgs, "--limit must be at least 1, not %d", limit)
	}
	since, err := parseSince(o.Since, time.Now())
	if err == nil {
		err = cmp.Or(checkPattern("tool", o.Tool), checkPattern("caller", o.Caller))
	}
	if err != nil {
		return nil, err
	}
	filter := record.Filter{Since: since, Tool: o.Tool, Caller: o.Caller, Code: o.Code}
	begun := map[string]audit.Record{}
	var records []audit.Record
	total, damaged := 0, 0
	for r, err := range app.Parley().AuditLog().Records(func(string, int) { damaged++ }).Read(filter) {
		if err != nil {
			return nil, unreadableLog(err)
		}
		if r.Op == "begin" {
			begun[r.Call] = r
			continue
		}
		delete(begun, r.Call)
		total++
		if records = append(records, r); len(records) >= 2*limit {
			records = slices.Clone(records[limit:])
		}
	}
	for _, r := range begun {
		records = append(records, r)
		total++
	}
	slices.SortFunc(records, func(x, y audit.Record) int { return cmp.Compare(x.Seq, y.Seq) })
	if damaged > 0 {
		app.Notice(manifest.Plural(damaged, "line") + " of the audit log cannot be read; parley audit verify names the first")
	}
	return &auditData{append([]audit.Record{}, records[max(0, len(records)-limit):]...), total}, nil
}

// checkPattern returns the error of an option that is no pattern.
func checkPattern(option, pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return host.Errorf(host.InvalidArgs,
			"--%s: %q is not a valid pattern; expected a name, in which * matches any characters",
			option, manifest.CleanLine(pattern))
	}
	return nil
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
