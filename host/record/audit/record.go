package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

const version = 1

// maxSeq is the largest integer that every JSON reader represents exactly.
const maxSeq = 1<<53 - 1

// Limits of a record. Longer values are cut, and the cut is visible.
const (
	maxLine = 16 << 10 // bytes of a line with its line break
	maxText = 1 << 10  // bytes of a right, a subject, a limit
)

// Operations that the log itself records. The operations of Note are the operator's.
const (
	opBegin  = "begin"  // a call is about to run
	opCall   = "call"   // a call has ended, or was refused
	opRotate = "rotate" // the file before this one was closed
	opRepair = "repair" // a half-written record was cut off the end
)

// Record is one line of the log. Absent fields do not apply.
type Record struct {
	V    int       `json:"v"`
	Seq  uint64    `json:"seq"`  // 1, 2, 3 and so on, over all files
	Time time.Time `json:"t"`    // UTC; of a call, when it began
	Prev string    `json:"prev"` // "sha256:" and the hash of the previous line, line break included
	Op   string    `json:"op"`   // call, begin, rotate, repair, or an action such as install, grant or revoke

	Call   string `json:"call,omitempty"`
	Within string `json:"within,omitempty"` // the call in which a plugin made this one
	Caller string `json:"caller,omitempty"`
	caller.Origin
	Session string   `json:"session,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	Digest  string   `json:"digest,omitempty"`  // digest of the plugin
	Rights  []string `json:"rights,omitempty"`  // what the call was granted
	Touched []string `json:"touched,omitempty"` // which rights it used: "http:GET:https://api.github.com"
	Denied  []string `json:"denied,omitempty"`  // rights that it asked for and was denied, whether it failed or not
	Limit   string   `json:"limit,omitempty"`   // the limit that ended it, as the host describes it
	DryRun  bool     `json:"dry_run,omitempty"` // the call was not meant to run
	Count   int      `json:"count,omitempty"`   // number of equal calls by a plugin, if several
	By      string   `json:"by,omitempty"`      // who allowed or denied it: terminal, mcp or policy

	// Approval is the id of the approval that the call used or waits for. Calls that belong to one approval have the
	// same.
	Approval string `json:"approval,omitempty"`

	*Outcome // set for a call

	// Subject is what a call acted on, what an operator changed, or the file that a rotation closed.
	Subject string   `json:"subject,omitempty"`
	Details []string `json:"details,omitempty"`
	Torn    int64    `json:"torn,omitempty"`    // bytes that a repair cut off
	Dropped *Dropped `json:"dropped,omitempty"` // what a rotation removed

	// How many more values did not fit into the line.
	RightsMore  int `json:"rights_more,omitempty"`
	TouchedMore int `json:"touched_more,omitempty"`
	DeniedMore  int `json:"denied_more,omitempty"`
	DetailsMore int `json:"details_more,omitempty"`
}

// Outcome is how a call ended.
type Outcome struct {
	Code     string  `json:"code"`
	ExitCode int     `json:"exit_code"`
	MS       float64 `json:"ms"`
	host.Usage
}

// Dropped says what a rotation removed. It distinguishes a log that was rotated from one that was cut.
type Dropped struct {
	Files int    `json:"files"`
	Last  string `json:"last"` // name of the newest of these files
	Seq   uint64 `json:"seq"`  // number of the last record in it
	Hash  string `json:"hash"` // hash of the last line in it
}

// recordOf returns the record of an event: names and rights, and the error as far as the host itself wrote it. The
// message of a tool that failed is the guest's.
func recordOf(e host.Event) Record {
	e = record.Named(e)
	r := Record{
		Time: e.Time, Op: opCall, Call: e.CallID, Within: e.Within, Caller: e.Caller, Origin: e.Origin, Session: e.Session,
		Tool: e.Tool, Digest: e.Digest, DryRun: e.DryRun, Count: e.Count, By: e.By, Approval: e.Approval,
		Rights: clipTexts(e.Rights), Touched: clipTexts(e.Uses), TouchedMore: e.UsesDropped, Denied: clipTexts(e.Refused),
		Subject: e.Subject,
		Outcome: &Outcome{Code: string(host.OK), MS: record.Milliseconds(e.Duration), Usage: record.UsageOf(e)},
	}
	if e.Err == nil {
		return r
	}
	r.Outcome.Code, r.Outcome.ExitCode = record.Name(string(e.Err.Code)), e.Err.ExitCode()
	for _, d := range e.Err.Denied {
		r.Denied = lists.Add(r.Denied, clipText(d.Right))
	}
	if (e.Err.Tool == nil || e.Err.Tool.Name == string(e.Err.Code)) && e.Err.Exit == 0 &&
		(e.Err.Code == host.Timeout || e.Err.Code == host.LimitExceeded) {
		r.Limit = clipText(string(e.Err.Code) + ": " + e.Err.Message)
	}
	return r
}

func operatorRecord(op, subject string, details []string) Record {
	return Record{Op: record.Name(op), Caller: "cli", Subject: clipText(subject), Details: clipTexts(details)}
}

func clipText(s string) string { return record.Text(s, maxText) }

func clipTexts(list []string) []string { return lists.Map(list, clipText) }

// encode returns a record as a line. It halves the longest list until the line is short enough.
func encode(r Record) ([]byte, error) {
	for {
		data, err := manifest.Marshal(r)
		if err != nil || len(data) < maxLine {
			return append(data, '\n'), err
		}
		if !r.shorten() {
			return nil, fmt.Errorf("the record has %d bytes", len(data))
		}
	}
}

func (r *Record) shorten() bool {
	all := []struct {
		items *[]string
		more  *int
	}{{&r.Rights, &r.RightsMore}, {&r.Touched, &r.TouchedMore}, {&r.Denied, &r.DeniedMore}, {&r.Details, &r.DetailsMore}}
	longest, most := all[0], 0
	for _, l := range all {
		if n := len(strings.Join(*l.items, "")); n > most {
			longest, most = l, n
		}
	}
	keep := len(*longest.items) / 2
	*longest.more += len(*longest.items) - keep
	*longest.items = (*longest.items)[:keep:keep]
	return most > 0
}

// decode returns the record of a line. The error says what the line is instead of a record.
func decode(line record.Line) (r Record, keys record.Keys, err error) {
	switch {
	case line.Tail:
		return r, keys, record.ErrNone // it may be half-written
	case line.Long:
		return r, keys, fmt.Errorf("a line of %d bytes; a record has at most %d", line.Size, maxLine)
	case line.Broken:
		return r, keys, errors.New("a line that does not end in a line break")
	}
	if err := jsontext.Unmarshal(line.Text, &r); err != nil {
		return Record{}, keys, fmt.Errorf("invalid JSON: %w", err)
	}
	switch {
	case r.V != version:
		return r, keys, fmt.Errorf("version %d of the format; this parley reads version %d", r.V, version)
	case r.Seq == 0 || r.Seq > maxSeq || r.Op == "" || r.Time.IsZero() || !isHash(r.Prev):
		return r, keys, errors.New("an object whose seq, t, op or prev is missing or invalid")
	}
	keys = record.Keys{Time: r.Time, Op: r.Op, Tool: r.Tool, Subject: r.Subject, Caller: r.Caller, Session: r.Session}
	keys.Prev, _ = hex.DecodeString(strings.TrimPrefix(r.Prev, hashPrefix))
	ms := 0.0
	if r.Op == opBegin {
		keys.Begins = r.Call
	}
	if r.Outcome != nil {
		keys.Code, keys.ExitCode, keys.Ends, ms = r.Code, r.ExitCode, r.Call, r.MS
	}
	if r.Within == "" { // calls of a plugin may be recorded when its own call ends
		keys.Over = r.Time.Add(time.Duration(ms * float64(time.Millisecond)))
	}
	return r, keys, nil
}

const hashPrefix = "sha256:"

// genesis takes the place of the previous hash in the first record.
var genesis = hashPrefix + strings.Repeat("0", 2*sha256.Size)

func hashOf(sum []byte) string { return hashPrefix + hex.EncodeToString(sum) }

func hashLine(line []byte) string {
	sum := sha256.Sum256(line)
	return hashOf(sum[:])
}

func isHash(s string) bool {
	digits, ok := strings.CutPrefix(s, hashPrefix)
	return ok && len(digits) == 2*sha256.Size && strings.Trim(digits, "0123456789abcdef") == ""
}
