// Package trace writes one JSON line for each call, search and describe, and reads them back. It records the shapes of
// parameters, and their values only if the operator asked for them.
package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// Limits of a line. Longer values are cut: a trace is evidence, not a backup.
const (
	maxQuery  = 1 << 10  // bytes of a query
	maxErrors = 32       // violations of one call
	maxNames  = 10       // hits of a search, changes of parameters
	maxValues = 16 << 10 // bytes of parameter values; of larger ones the shape is recorded
	maxLine   = 1 << 20  // bytes that are read as one line; what is written stays far below
)

const (
	version    = 1
	dayFormat  = "2006-01-02"
	timeFormat = "2006-01-02T15:04:05.000Z"
	suffix     = ".jsonl"
	lockName   = "trace.lock"
)

// Limits of a folder of traces, unless [Config] sets others.
const (
	DefaultKeepDays = 30
	DefaultMaxBytes = 64 << 20
)

// Config configures a recorder. The zero value records shapes, and keeps them for [DefaultKeepDays] days and up to
// [DefaultMaxBytes].
type Config struct {
	Off    bool // write nothing
	Values bool // record parameters and queries as given

	// KeepDays is how many days are kept, today included; MaxBytes is the size limit of all files together; 0 is the
	// default. When the first record of a day is written, the oldest files are removed until both limits hold. Today's
	// file is never removed.
	KeepDays int
	MaxBytes int64

	// Warn receives the first error of writing or pruning; later ones are dropped. It may be nil.
	Warn func(error)
}

// Record is one line of a trace; see [host.Record].
type Record = host.Record

// Open returns a recorder that appends to DIR/YYYY-MM-DD.jsonl, by the UTC day of the event. The folder and the files
// are made when needed, for this user alone. Several processes may share the folder. The recorder is safe for
// concurrent use, and never fails a call.
func Open(dir string, cfg Config) host.Recorder {
	if cfg.KeepDays <= 0 {
		cfg.KeepDays = DefaultKeepDays
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	return &recorder{journal: journal(dir, cfg), cfg: cfg, origins: newOrigins()}
}

// PathOf returns the file of a folder that has the traces of a day.
func PathOf(dir string, at time.Time) string { return filepath.Join(dir, nameOf(at)) }

func nameOf(at time.Time) string { return at.UTC().Format(dayFormat) + suffix }

// Records returns the records in a folder of traces. Lines that are not records of this version are skipped, and
// damaged, which may be nil, is called for each of them that is not blank.
func Records(dir string, damaged func(path string, line int)) record.Records[Record] {
	return record.Records[Record]{Journal: journal(dir, Config{}), Decode: decode, Damaged: damaged}
}

func journal(dir string, cfg Config) *record.Journal {
	return record.Open(record.Config{
		Dir: dir, Lock: lockName, List: listDays, Drop: cfg.prune, MaxLine: maxLine, Warn: cfg.Warn,
	})
}

// listDays returns the files that have the name of a day.
func listDays(names []string) (files []record.File) {
	for _, name := range names { // in the order of the days
		day, ok := strings.CutSuffix(name, suffix)
		if begin, err := time.Parse(dayFormat, day); ok && err == nil {
			files = append(files, record.File{ID: day, Path: name, Since: begin, Until: begin.AddDate(0, 0, 1)})
		}
	}
	return files
}

type recorder struct {
	journal *record.Journal
	cfg     Config
	origins *origins
}

// Record implements [host.Recorder].
func (r *recorder) Record(e host.Event) {
	if r.cfg.Off {
		return
	}
	traced := recordOf(e, r.cfg.Values)
	traced.From = r.origins.note(&e)
	line, err := encode(traced)
	if err == nil {
		err = r.journal.Append(nameOf(e.Time), false, func(end record.End) ([]byte, error) {
			if end.Torn > 0 { // a damaged line must not damage the next one
				line = append([]byte{'\n'}, line...)
			}
			return line, nil
		})
	}
	if err != nil {
		r.journal.Report(err)
	}
}

// encode returns a record as a line: the time in UTC to the millisecond, and <, > and & unescaped.
func encode(r Record) ([]byte, error) {
	type fields Record
	line, err := manifest.Marshal(struct {
		V    int    `json:"v"`
		Time string `json:"t"`
		fields
	}{r.V, r.Time.UTC().Format(timeFormat), fields(r)})
	return append(line, '\n'), err
}

func decode(line record.Line) (r Record, keys record.Keys, err error) {
	if len(line.Text) == 0 {
		return r, keys, record.ErrNone
	}
	if line.Long || json.Unmarshal(line.Text, &r) != nil || r.V != version || r.Time.IsZero() {
		return Record{}, keys, errors.New("no record of this version")
	}
	if string(r.Params) == "null" {
		r.Params = nil
	}
	keys = record.Keys{
		Time: r.Time, Op: r.Op, Tool: r.Tool, Caller: r.Caller, Session: r.Session, Code: r.Code, ExitCode: r.ExitCode,
	}
	if keys.Op == "" {
		keys.Op = opCall
	}
	return r, keys, nil
}

const opCall = "call" // records leave this operation out

// recordOf returns the record of an event.
func recordOf(e host.Event, values bool) Record {
	e = record.Named(e)
	r := Record{
		V: version, Time: e.Time, Call: e.CallID, Session: e.Session, Caller: e.Caller, Origin: e.Origin, Tool: e.Tool,
		Manifest: e.Digest, Mode: e.Mode, Tiers: e.Tiers, Params: paramsOf(e.Params, e.Members, values),
		Code: string(host.OK), MS: record.Milliseconds(e.Duration), Usage: record.UsageOf(e), Count: e.Count,
		OutBytes: e.OutBytes, DocsTokens: e.DocsTokens, RetryOf: e.RetryOf, SuggestionUsed: e.SuggestionUsed,
		Subject: e.Subject, By: e.By, Approval: e.Approval, Hits: namesOf(e.Hits), Changes: namesOf(e.Changes),
	}
	if e.Op != opCall {
		r.Op = e.Op
	}
	if values {
		r.Query = record.Text(e.Query, maxQuery)
	}
	if e.Err == nil {
		return r
	}
	r.Code, r.ExitCode = string(e.Err.Code), e.Err.ExitCode()
	for _, d := range e.Err.Details[:min(len(e.Err.Details), maxErrors)] {
		r.Errors = append(r.Errors, host.Violation{
			Pointer: record.Name(d.Parameter), Keyword: record.Name(d.Keyword), Expected: record.Name(d.Expected),
		})
	}
	return r
}

func paramsOf(given json.RawMessage, members map[string][]string, values bool) json.RawMessage {
	if len(bytes.TrimSpace(given)) == 0 {
		return nil
	}
	if values && len(given) <= maxValues && json.Valid(given) {
		return given
	}
	return Shapes(given, members)
}

func namesOf(list []string) []string {
	return lists.Map(list[:min(len(list), maxNames)], record.Name)
}
