package command

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/record/audit"
	"github.com/parley-tools/parley/manifest"
)

// note records an operator's change. The change has been made by then, so a log that cannot be written is only
// reported.
func (d *Deps) note(op, subject string, details ...string) {
	if err := d.AuditLog().Note(op, subject, details...); err != nil {
		d.Notice(err.Error())
	}
}

// AuditHeadData is the hash, the number and the time of a record.
type AuditHeadData = audit.Head

// AuditHead returns the head of the audit log. The error is not_found if the log has no records.
func AuditHead(d *Deps) (*AuditHeadData, error) {
	head, err := d.AuditLog().Head()
	if err != nil {
		return nil, unreadableLog(err)
	}
	if head.Seq == 0 {
		return nil, host.Errorf(host.NotFound, "the audit log %s has no records yet", d.AuditLog().Dir()).
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

// VerifyAuditData is what the verification of an intact log found.
type VerifyAuditData = audit.Report

// VerifyAudit verifies the audit log, and that it has the record whose head is the anchor. Without an anchor, "", it
// cannot show that records at the end are missing. The error is integrity for a log that is not intact.
func VerifyAudit(d *Deps, anchor string) (*VerifyAuditData, error) {
	log := d.AuditLog()
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

// AuditLimit is how many records [Audit] returns if no limit is set.
const AuditLimit = 50

// AuditOptions say which records of the audit log to return. The zero value means the latest ones of all.
type AuditOptions struct {
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

// AuditData are records of the audit log.
type AuditData struct {
	Records []audit.Record `json:"records"`
	Total   int            `json:"total"` // how many match
}

// Audit returns the last records that match. Of a call with a beginning and an end, only the end is returned.
func Audit(d *Deps, o AuditOptions) (*AuditData, error) {
	limit := cmp.Or(o.Limit, AuditLimit)
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
	for r, err := range d.AuditLog().Records(func(string, int) { damaged++ }).Read(filter) {
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
		d.Notice(manifest.Plural(damaged, "line") + " of the audit log cannot be read; parley audit verify names the first")
	}
	return &AuditData{append([]audit.Record{}, records[max(0, len(records)-limit):]...), total}, nil
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
