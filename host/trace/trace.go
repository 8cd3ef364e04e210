// Package trace writes one JSON line for each call, search and describe, and reads them back. It records the shapes of
// parameters, and their values only if the operator asked for them.
package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// Limits of a line. Longer values are cut: a trace is evidence, not a backup.
const (
	maxName   = 256      // bytes of a tool, a caller, a session, an expectation
	maxQuery  = 1 << 10  // bytes of a query
	maxErrors = 32       // violations of one call
	maxNames  = 10       // hits of a search, changes of parameters
	maxValues = 16 << 10 // bytes of parameter values; of larger ones the shape is recorded
)

const (
	version    = 1
	dayFormat  = "2006-01-02"
	timeFormat = "2006-01-02T15:04:05.000Z"
	suffix     = ".jsonl"
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

	// Now is the clock for events that carry no time; nil is time.Now.
	Now func() time.Time
	// Warn receives the first error of writing or pruning; later ones are dropped. It may be nil.
	Warn func(error)
}

// Record is one line of a trace; see [host.Record].
type Record = host.Record

// Violation is what was wrong with one parameter; see [host.Violation].
type Violation = host.Violation

// Open returns a recorder that appends to DIR/YYYY-MM-DD.jsonl, by the UTC day of the event. The folder and the files
// are made when needed, for this user alone. Several processes may share the folder: a line is one write. The recorder
// is safe for concurrent use, and never fails a call.
func Open(dir string, cfg Config) host.Recorder {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.KeepDays <= 0 {
		cfg.KeepDays = DefaultKeepDays
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	return &recorder{dir: dir, cfg: cfg, origins: newOrigins()}
}

// PathOf returns the file of a folder that has the traces of a day.
func PathOf(dir string, at time.Time) string {
	return filepath.Join(dir, at.UTC().Format(dayFormat)+suffix)
}

type recorder struct {
	dir     string
	cfg     Config
	warned  sync.Once
	origins *origins

	mu     sync.Mutex
	file   *os.File    // of the last line, open for the next one; may be nil
	opened os.FileInfo // file when it was opened
	size   int64       // of file after the last line
}

// Record implements [host.Recorder].
func (r *recorder) Record(e host.Event) {
	if r.cfg.Off {
		return
	}
	if e.Time.IsZero() {
		e.Time = r.cfg.Now()
	}
	record := recordOf(e, r.cfg.Values)
	record.From = r.origins.note(&e)
	line, err := encode(record)
	if err == nil {
		err = r.write(e.Time.UTC().Format(dayFormat), line)
	}
	if err != nil {
		r.warn(err)
	}
}

func (r *recorder) warn(err error) {
	if r.cfg.Warn != nil {
		r.warned.Do(func() { r.cfg.Warn(err) })
	}
}

func (r *recorder) write(day string, line []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	size, err := r.open(day)
	if err != nil {
		return err
	}
	if size != r.size && r.endsMidLine(size) {
		line = append([]byte{'\n'}, line...)
	}
	_, err = r.file.Write(line)
	if r.size = size + int64(len(line)); err != nil || runtime.GOOS == "windows" { // Windows does not remove open files
		err = errors.Join(err, r.close())
	}
	return err
}

// open opens the file of a day unless it is open, and returns its size.
func (r *recorder) open(day string) (size int64, err error) {
	path := filepath.Join(r.dir, day+suffix)
	if r.file != nil {
		if there, same := protect.Unchanged(path, r.opened); same {
			return there.Size(), nil
		}
		_ = r.close()
	}
	_, missing := os.Lstat(path)
	if missing != nil {
		if err := os.MkdirAll(r.dir, 0o700); err != nil {
			return 0, err
		}
	}
	f, info, err := protect.Append(path)
	if err != nil {
		return 0, err
	}
	if missing != nil { // processes that find this at the same time prune at the same time
		if err := prune(r.dir, day, r.cfg.KeepDays, r.cfg.MaxBytes); err != nil {
			r.warn(fmt.Errorf("old traces cannot be removed: %w", err))
		}
	}
	if r.file, r.opened, r.size = f, info, 0; !protect.OwnerOnly(info) {
		_ = f.Chmod(0o600) // another program made it
	}
	return info.Size(), nil
}

func (r *recorder) close() error {
	f := r.file
	r.file = nil
	return f.Close()
}

// endsMidLine reports whether the last line has no line break, because the disk was full: a damaged line must not
// damage the next one.
func (r *recorder) endsMidLine(size int64) bool {
	var last [1]byte
	_, err := r.file.ReadAt(last[:], size-1)
	return err == nil && last[0] != '\n'
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

// recordOf returns the record of an event.
func recordOf(e host.Event, values bool) Record {
	r := Record{
		V: version, Time: e.Time,
		Call: clip(e.CallID), Session: clip(e.Session), Caller: clip(e.Caller), Tool: clip(e.Tool),
		Origin:   host.Origin{Transport: e.Transport, Peer: clip(e.Peer), Token: clip(e.Token)},
		Manifest: e.Digest, Mode: e.Mode, Tiers: e.Tiers,
		Code: string(host.OK), MS: milliseconds(e.Duration), Count: e.Count,
		OutBytes: e.OutBytes, DocsTokens: e.DocsTokens, RetryOf: clip(e.RetryOf), SuggestionUsed: e.SuggestionUsed,
		By: clip(e.By), Question: clip(e.Question), Hits: clipAll(e.Hits), Changes: clipAll(e.Changes),
	}
	if e.Op != "call" {
		r.Op = e.Op
	}
	if values {
		r.Query = manifest.Clip(manifest.CleanLine(e.Query), maxQuery)
	}
	r.Params = paramsOf(e.Params, e.Members, values)
	if e.Err == nil {
		return r
	}
	r.Code, r.ExitCode = string(e.Err.Code), e.Err.ExitCode()
	for _, d := range e.Err.Details[:min(len(e.Err.Details), maxErrors)] {
		r.Errors = append(r.Errors,
			Violation{Pointer: clip(d.Parameter), Keyword: clip(d.Keyword), Expected: clip(d.Expected)})
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

func milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }

func clipAll(list []string) []string {
	var clipped []string
	for _, s := range list[:min(len(list), maxNames)] {
		clipped = append(clipped, clip(s))
	}
	return clipped
}

func clip(s string) string { return manifest.Clip(manifest.CleanLine(s), maxName) }
