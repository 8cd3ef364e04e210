// Package trace writes one JSON line for each call, search and describe, and reads the lines back. It keeps
// the shapes of parameters, and their values only where the operator asked for them.
package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/internal/private"
	"github.com/parley-tools/parley/manifest"
)

// Bounds of a line. What is longer is cut: a trace is evidence, not a backup.
const (
	maxName   = 256      // bytes of a tool, a caller, a session, an expectation
	maxQuery  = 1 << 10  // bytes of a query
	maxErrors = 32       // violations of one call
	maxNames  = 10       // hits of a search, changes of parameters
	maxValues = 16 << 10 // bytes of parameters that are kept as they are; of larger ones the shape is kept
)

const (
	version    = 1
	dayFormat  = "2006-01-02"
	timeFormat = "2006-01-02T15:04:05.000Z"
	suffix     = ".jsonl"
)

// Config says what is kept. The zero value keeps shapes.
type Config struct {
	Off    bool // keep nothing
	Values bool // keep parameters and queries as they were given
	// Now is the clock for events that carry no time; nil is time.Now.
	Now func() time.Time
	// Warn takes the first error of writing; those after it are not told. It may be nil.
	Warn func(error)
}

// Record is one line. Fields that do not apply are absent.
type Record struct {
	V       int             `json:"v"`
	Time    time.Time       `json:"t"`
	Op      string          `json:"op,omitempty"` // "" is a call; else "search" or "describe"
	Call    string          `json:"call,omitempty"`
	Session string          `json:"session,omitempty"`
	Caller  string          `json:"caller,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Query   string          `json:"query,omitempty"`
	Digest  string          `json:"manifest,omitempty"`
	Mode    string          `json:"mode,omitempty"`
	Tiers   []int           `json:"tiers,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"` // shape of each parameter by its name, or the values
	Errors  []Violation     `json:"errors,omitempty"`

	Code           string  `json:"code"`
	ExitCode       int     `json:"exit_code"`
	MS             float64 `json:"ms"`
	OutBytes       int     `json:"out_bytes,omitempty"`
	DocsTokens     int     `json:"docs_tokens,omitempty"`
	RetryOf        string  `json:"retry_of,omitempty"`
	SuggestionUsed bool    `json:"suggestion_used,omitempty"`

	By      string   `json:"by,omitempty"`      // who decided the confirmation: "terminal", "mcp" or "policy"
	Hits    []string `json:"hits,omitempty"`    // names of the first ten results of a search
	Changes []string `json:"changes,omitempty"` // how the parameters were corrected
}

// Violation is what was wrong with one parameter, without what was given.
type Violation struct {
	Pointer  string `json:"pointer"`
	Keyword  string `json:"keyword"`
	Expected string `json:"expected"`
}

// Open returns a recorder that appends to DIR/YYYY-MM-DD.jsonl, by the day (UTC) on which an event happened.
// The folder and the files are made when they are needed, for the user alone. Processes may share the
// folder: a line is one write. The recorder is safe for concurrent use, and never fails a call.
func Open(dir string, cfg Config) host.Recorder {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &recorder{dir: dir, cfg: cfg}
}

type recorder struct {
	dir    string
	cfg    Config
	warned sync.Once

	mu     sync.Mutex
	file   *os.File    // of the last line, open for the next one; nil where there is none
	opened os.FileInfo // file as it was opened
	size   int64       // of the last line in file
}

// Record implements host.Recorder.
func (r *recorder) Record(e host.Event) {
	if r.cfg.Off {
		return
	}
	if e.Time.IsZero() {
		e.Time = r.cfg.Now()
	}
	line, err := encode(recordOf(e, r.cfg.Values))
	if err == nil {
		err = r.write(e.Time, line)
	}
	if err != nil && r.cfg.Warn != nil {
		r.warned.Do(func() { r.cfg.Warn(err) })
	}
}

func (r *recorder) write(at time.Time, line []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	size, err := r.open(filepath.Join(r.dir, at.UTC().Format(dayFormat)+suffix))
	if err != nil {
		return err
	}
	if size != r.size && r.endsMidLine(size) {
		line = append([]byte{'\n'}, line...)
	}
	_, err = r.file.Write(line)
	if r.size = size + int64(len(line)); err != nil || runtime.GOOS == "windows" { // which removes no file that is open
		err = errors.Join(err, r.close())
	}
	return err
}

// open makes file the one at a path, if it is not that already, and returns its size.
func (r *recorder) open(path string) (size int64, err error) {
	if r.file != nil {
		if there, same := private.Still(path, r.opened); same {
			return there.Size(), nil
		}
		_ = r.close()
	}
	const how = os.O_RDWR | os.O_APPEND | os.O_CREATE
	f, err := os.OpenFile(path, how, 0o600)
	if os.IsNotExist(err) {
		if err = os.MkdirAll(r.dir, 0o700); err == nil {
			f, err = os.OpenFile(path, how, 0o600)
		}
	}
	if err != nil {
		return 0, err
	}
	r.file, r.size = f, 0
	if r.opened, err = f.Stat(); err != nil {
		return 0, errors.Join(err, r.close())
	}
	if !private.Alone(r.opened) {
		_ = f.Chmod(0o600) // it was made by something else; nobody else needs to read it
	}
	return r.opened.Size(), nil
}

func (r *recorder) close() error {
	f := r.file
	r.file = nil
	return f.Close()
}

// endsMidLine tells that the last line lacks its break, which a write left out when the disk was full: one damaged line must
// not take the next one with it.
func (r *recorder) endsMidLine(size int64) bool {
	var last [1]byte
	_, err := r.file.ReadAt(last[:], size-1)
	return err == nil && last[0] != '\n'
}

// encode writes a record as a line with its end: the time in UTC to the millisecond, <, > and & as they are.
func encode(r Record) ([]byte, error) {
	type fields Record
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		V    int    `json:"v"`
		Time string `json:"t"`
		fields
	}{r.V, r.Time.UTC().Format(timeFormat), fields(r)})
	return b.Bytes(), err
}

// recordOf is the line of an event.
func recordOf(e host.Event, values bool) Record {
	r := Record{
		V: version, Time: e.Time,
		Call: clip(e.CallID), Session: clip(e.Session), Caller: clip(e.Caller), Tool: clip(e.Tool),
		Digest: e.Digest, Mode: e.Mode, Tiers: e.Tiers,
		Code: string(host.OK), MS: milliseconds(e.Duration),
		OutBytes: e.OutBytes, DocsTokens: e.DocsTokens, RetryOf: clip(e.RetryOf), SuggestionUsed: e.SuggestionUsed,
		By: clip(e.By), Hits: clipAll(e.Hits), Changes: clipAll(e.Changes),
	}
	if e.Op != "call" {
		r.Op = e.Op
	}
	if values {
		r.Query = manifest.Clip(manifest.CleanLine(e.Query), maxQuery)
	}
	r.Params = paramsOf(e.Params, values)
	if e.Err == nil {
		return r
	}
	r.Code, r.ExitCode = string(e.Err.Code), e.Err.ExitCode()
	for _, d := range e.Err.Details[:min(len(e.Err.Details), maxErrors)] {
		r.Errors = append(r.Errors, Violation{clip(d.Parameter), clip(d.Keyword), clip(d.Expected)})
	}
	return r
}

func paramsOf(given json.RawMessage, values bool) json.RawMessage {
	if len(bytes.TrimSpace(given)) == 0 {
		return nil
	}
	if values && len(given) <= maxValues && json.Valid(given) {
		return given
	}
	return Shapes(given)
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

// Prune removes the files of days that are keep days or more before today (UTC), and returns how many. Other
// files are not touched. A folder that does not exist holds none.
func Prune(dir string, keepDays int, now time.Time) (removed int, err error) {
	oldest := now.UTC().AddDate(0, 0, -keepDays).Format(dayFormat)
	days, err := listDays(dir)
	for _, day := range days {
		if day > oldest {
			continue
		}
		if removeErr := os.Remove(filepath.Join(dir, day+suffix)); removeErr != nil {
			err = removeErr
			continue
		}
		removed++
	}
	return removed, err
}

// listDays lists the days of which there is a file, oldest first.
func listDays(dir string) ([]string, error) {
	files, err := os.ReadDir(dir) // sorted by name, which is by day
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var days []string
	for _, f := range files {
		day, ok := strings.CutSuffix(f.Name(), suffix)
		if _, err := time.Parse(dayFormat, day); ok && err == nil {
			days = append(days, day)
		}
	}
	return days, nil
}
