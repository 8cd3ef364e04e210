// Package audit keeps the operator's record of what was called and changed: JSON lines in files that rotate. Each line
// holds the hash of the one before. The log contains no parameters, no results and no text of a guest.
package audit

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
)

// Values of Config.Mode.
const (
	On       = "on"       // calls are recorded; a record that cannot be written is only warned about
	Required = "required" // a call is recorded before it runs, and does not run otherwise
	Off      = "off"      // nothing is written
)

const (
	defaultMaxBytes = 64 << 20
	defaultKeep     = 10
)

// Config configures a log. The zero value records with mode On.
type Config struct {
	// Mode returns On, Required or Off; nil means On. It is called for each record whose event does not carry a mode.
	// With Required each record is also flushed to disk (fsync) before its call continues; otherwise a crash of the
	// machine, though not of a host, may lose the last records. If Mode fails, no call begins, and what has happened is
	// recorded as with On.
	Mode func() (string, error)
	// Warn receives the first error of writing in this process; later ones are dropped. It may be nil.
	Warn func(error)
	// MaxBytes is the size of a file that is closed, so that the next one begins; 0 is 64 MiB. Keep is how many closed
	// files are kept, 0 is 10: the oldest beyond that are removed, and the record that begins the new file says so.
	MaxBytes int64
	Keep     int
	// Now is the clock for records without a time; nil is time.Now.
	Now func() time.Time
	// Redact returns a function that removes the values of secrets from the texts of Note; nil leaves them. Events have
	// none.
	Redact func() func(string) string
}

// Log is an audit log in a folder. It is safe for concurrent use, also by several processes: the end of the log is read
// under a lock, unless this process was the last that wrote.
type Log struct {
	cfg     Config
	journal *record.Journal
	last    Head // at the end of the journal; guarded by its lock
	copied  func(Head) error
}

var _ host.Auditor = (*Log)(nil)

// Open returns the log in dir. The folder is made, for this user alone, when the first record is written.
func Open(dir string, cfg Config) *Log {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	if cfg.Keep <= 0 {
		cfg.Keep = defaultKeep
	}
	l := &Log{cfg: cfg}
	l.journal = record.Open(record.Config{
		Dir: dir, Lock: lockName, List: listFiles, MaxBytes: cfg.MaxBytes, Repair: true, MaxLine: maxLine, Hash: sha256.New,
		Drop: func(_ []record.File, closed int) int { return closed - l.cfg.Keep },
		Warn: cfg.Warn,
	})
	return l
}

// RequireCopies makes On count as Required, and has each record wait until copied returns: then it is kept elsewhere,
// too. An error of copied counts as an error of writing the record. Call RequireCopies before the first record.
func (l *Log) RequireCopies(copied func(Head) error) { l.copied = copied }

// Path returns the file that records are appended to.
func (l *Log) Path() string { return filepath.Join(l.journal.Dir, currentName) }

// Dir returns the folder of the log.
func (l *Log) Dir() string { return l.journal.Dir }

// Mode returns On, Required or Off.
func (l *Log) Mode() (string, error) {
	if l.cfg.Mode == nil {
		return l.atLeast(On), nil
	}
	mode, err := l.cfg.Mode()
	return l.atLeast(mode), err
}

func (l *Log) atLeast(mode string) string {
	if mode == On && l.copied != nil {
		return Required
	}
	return mode
}

// modeFor returns the mode that applied when the policy decided about the call, even if it has changed since.
func (l *Log) modeFor(e host.Event) (string, error) {
	if e.Audit != "" {
		return l.atLeast(e.Audit), nil
	}
	return l.Mode()
}

// Record implements [host.Recorder]. Searches and describes are not recorded.
func (l *Log) Record(e host.Event) {
	if e.Op != opCall {
		return
	}
	mode, err := l.modeFor(e)
	if mode == Off && err == nil {
		return
	}
	if err := l.append(recordOf(e), mode == Required); err != nil {
		l.journal.Report(err)
	}
}

// Begin implements [host.Auditor]. With Required it records that a call begins, and refuses a call that it cannot
// record; otherwise it does nothing. A beginning without an end in the log is a call that still runs, or whose host was
// killed.
func (l *Log) Begin(e host.Event) error {
	mode, err := l.modeFor(e)
	if err != nil || mode != Required {
		return err
	}
	r := recordOf(e)
	r.Op, r.Outcome = opBegin, nil
	if err := l.append(r, true); err != nil {
		return &host.Error{Code: host.Unavailable, Cause: err, Steps: []step.Step{step.Operator(step.OpDoctor)},
			Message: fmt.Sprintf("%v, and each call requires a record (audit = %q under [operator], or records = %[2]q under "+
				"[fleet]); nothing was run", err, Required)}
	}
	return nil
}

// Note records an action of the operator, such as "grant" of some rights (details) to a plugin (subject).
func (l *Log) Note(op, subject string, details ...string) error {
	mode, err := l.Mode()
	if mode == Off && err == nil {
		return nil
	}
	if l.cfg.Redact != nil {
		redact := l.cfg.Redact()
		subject, details = redact(subject), lists.Map(details, redact)
	}
	return l.append(operatorRecord(op, subject, details), mode == Required)
}

// append writes a record after the last one.
func (l *Log) append(r Record, flush bool) error {
	if r.Time.IsZero() {
		r.Time = l.cfg.Now()
	}
	var written Head
	err := protect.Dir(l.journal.Dir)
	if err == nil {
		err = l.journal.Append(currentName, flush, func(end record.End) ([]byte, error) {
			lines, err := l.lines(end, r)
			written = l.last
			return lines, err
		})
	}
	if err != nil {
		return fmt.Errorf("the audit log %s cannot be written: %w", l.Path(), err)
	}
	if l.copied == nil {
		return nil
	}
	if err := l.copied(written); err != nil {
		return fmt.Errorf("record %d of the audit log is not copied: %w", written.Seq, err)
	}
	return nil
}

// Records returns the records of the log. Lines that are not records are skipped, and damaged, which may be nil, is
// called for each of them except a half-written one at the end of the log.
func (l *Log) Records(damaged func(file string, line int)) record.Records[Record] {
	return record.Records[Record]{Journal: l.journal, Decode: decode, Damaged: damaged}
}
