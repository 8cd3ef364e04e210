package history

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record/audit"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

var auditCommand = &command.Group{
	Use: "audit", Short: "Show and verify who called what",
	Of: []command.Maker{auditShowCommand, auditExportCommand, auditVerifyCommand, auditHeadCommand},
	Long: "Each call adds a JSON line that contains the hash of the previous line: caller, tool, rights, their " +
		"use, outcome, and what was acted on. No parameters and no results. show prints the last records, export all, " +
		"verify checks that none was changed, head prints the hash to store elsewhere. A file is closed at " +
		"64 MiB, and ten closed files are kept; the first record of a new file names what was dropped. [operator] " +
		"audit in policy.toml is \"on\", \"required\" (a call that cannot be recorded does not run) or \"off\".",
}

type auditShowOptions struct {
	selectOptions
	pageOptions
}

var auditShowCommand = &command.Command[*auditShowOptions]{
	Use: "show", Run: runAuditShow, Options: filterOptions,
	Short:   "Show the last records",
	Example: "parley audit show --since 24h --code denied\nparley audit show --tool 'cdp.Page.*' --json",
	Long: "Times are in UTC; the time of a call is when it began. A call without an end is still running, or its host " +
		"was killed\n(audit = \"required\" records the beginning, too). A page ends after reading 4 MiB and says how to " +
		"continue.\nCursors stay valid when files are rotated.",
}

// runAuditShow shows a page of records. For a call with a beginning and an end, it shows only the end.
func runAuditShow(_ context.Context, app *command.App, opts *auditShowOptions) error {
	return auditLog(app).show(opts.filter(), &opts.pageOptions, "parley audit show",
		func([]audit.Record) []string { return []string{"parley audit verify"} },
		func(w io.Writer, records []audit.Record) { auditText(app, w, records) })
}

type auditExportOptions struct {
	selectOptions
	exportOptions
}

var auditExportCommand = &command.Command[*auditExportOptions]{
	Use: "export", Run: runAuditExport, Options: filterOptions,
	Short:   "Print all records as JSON lines or CSV",
	Example: "parley audit export --since 7d --format csv --out audit.csv",
	Long: "Beginnings of calls are exported, too. In CSV, lists are JSON, and an apostrophe precedes what a\n" +
		"spreadsheet would take for a formula.",
}

func runAuditExport(_ context.Context, app *command.App, opts *auditExportOptions) error {
	return auditLog(app).export(opts.filter(), &opts.exportOptions)
}

func auditLog(app *command.App) journal[audit.Record] {
	return journal[audit.Record]{
		app, "the audit log", "; parley audit verify names the first", app.Parley().AuditLog().Records,
	}
}

type auditVerifyOptions struct {
	Flags *pflag.FlagSet
	Head  string `flag:"head" usage:"a hash that parley audit head printed earlier"`
}

var auditVerifyCommand = &command.Command[*auditVerifyOptions]{
	Use: "verify", Run: runAuditVerify,
	Short:   "Prove that no record was changed, removed, inserted or moved",
	Example: "parley audit verify\nparley audit verify --head \"$(cat kept-elsewhere)\"",
	Long: "Names the first invalid record and exits with 87. The chain alone cannot show that the end was cut off or\n" +
		"that the whole log was rewritten: only a head that was stored elsewhere proves that.",
}

// runAuditVerify verifies the audit log and, if a head is given, that the log has the record with it. The error is
// integrity for a log that is not intact.
func runAuditVerify(_ context.Context, app *command.App, opts *auditVerifyOptions) error {
	// --head "$(cat missing)" must not look like a verified head.
	if strings.TrimSpace(opts.Head) == "" && opts.Flags.Changed("head") {
		return host.Errorf(host.InvalidArgs, "--head is empty; expected the output of parley audit head").
			WithNext("parley audit head")
	}
	log := app.Parley().AuditLog()
	r, err := log.Verify(opts.Head)
	if err != nil {
		return auditLog(app).unreadable(err)
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
	return app.Print(r, []string{"parley audit head"}, func(w io.Writer) {
		if r.Records == 0 {
			fmt.Fprintln(w, "ok: no records")
			return
		}
		fmt.Fprintf(w, "ok: %s in %s, %s to %s\n",
			manifest.Plural(r.Records, "record"), manifest.Plural(r.Files, "file"), Time(r.First), Time(r.Last))
		command.PrintIf(w, r.Dropped > 0, "    records 1 to %d were dropped by rotation\n", r.Dropped)
		command.PrintIf(w, r.Repairs > 0, "    %s cut off after a host was killed or the disk was full\n",
			manifest.Plural(r.Repairs, "half-written record"))
		command.PrintIf(w, r.Torn > 0, "    a half-written record of %s at the end; the next record replaces it\n",
			manifest.Plural(int(r.Torn), "byte"))
		if r.Anchor != nil {
			fmt.Fprintf(w, "    the given head is record %d of this log\n", r.Anchor.Seq)
		} else {
			fmt.Fprintln(w, "    no head was given: only --head with a stored head proves that the end was not cut off")
		}
		fmt.Fprintln(w, "head "+r.Head.String())
	})
}

var auditHeadCommand = &command.Command[string]{
	Use: "head", Run: runAuditHead,
	Short: "Print the hash, number and time of the last record",
	Long: "Store it where a process that can write the log cannot write. It covers all records up to now, which\n" +
		"verify --head checks against it.",
	Example: "parley audit head",
}

// runAuditHead prints the head of the audit log. The error is not_found if the log has no records.
func runAuditHead(_ context.Context, app *command.App, _ string) error {
	log := app.Parley().AuditLog()
	head, err := log.Head()
	if err != nil {
		return auditLog(app).unreadable(err)
	}
	if head.Seq == 0 {
		return host.Errorf(host.NotFound, "the audit log %s has no records yet", log.Dir()).
			WithSteps(step.Call("text.hash", []byte(`{"text":"hello"}`)))
	}
	next := []string{"parley audit verify --head " + head.Hash}
	return app.Print(head, next, func(w io.Writer) { fmt.Fprintln(w, head) })
}

func auditText(a *command.App, w io.Writer, records []audit.Record) {
	if len(records) == 0 {
		return
	}
	rows := append([][5]string{{"TIME (UTC)", "CALLER", "WHAT", "OUTCOME", "MS"}}, command.Map(records, auditRow)...)
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
			a.Wrap(w, "      ", "    %s", more)
		}
	}
}

// auditRow returns a record on one line: when, who, what and how it ended.
func auditRow(r audit.Record) [5]string {
	row := [5]string{Time(r.Time), manifest.CleanLine(r.Caller), manifest.CleanLine(r.Tool), "", ""}
	switch {
	case r.Op == "call" && r.Outcome != nil:
		row[3] = manifest.CleanLine(r.Code) + command.When(r.DryRun, ", dry run")
		row[4] = strconv.FormatFloat(r.MS, 'f', 1, 64)
	case r.Op == "begin":
		row[3] = "no end"
	default:
		row[2] = manifest.CleanLine(r.Op + " " + r.Subject)
	}
	return row
}

// How much a call must use to get a line about it.
const (
	notableCPU   = 1000 // milliseconds
	notableBytes = 64 << 20
)

// auditMore returns the additional lines of a record.
func auditMore(r audit.Record) (lines []string) {
	list := func(label string, items []string, more int) {
		if more > 0 {
			items = append(slices.Clone(items), fmt.Sprintf("and %d more", more))
		}
		if len(items) > 0 {
			lines = append(lines, manifest.CleanLine(label+" "+strings.Join(items, ", ")))
		}
	}
	if r.Tool != "" && r.Subject != "" {
		list("on", []string{r.Subject}, 0)
	}
	if r.Outcome != nil && (r.CPUMS >= notableCPU || r.PeakBytes >= notableBytes) {
		lines = append(lines, fmt.Sprintf("took %.1f s of CPU time, %d MiB of memory", r.CPUMS/1e3, r.PeakBytes>>20))
	}
	list("granted", r.Rights, r.RightsMore)
	list("used", r.Touched, r.TouchedMore)
	list("refused", r.Denied, r.DeniedMore)
	if _, words, ok := strings.Cut(r.Limit, ": "); ok { // the first part repeats the outcome
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
