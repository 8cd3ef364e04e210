// Package audit keeps the operator's record of what was called and changed: JSON lines, each of which holds the hash of
// the line before it, in files that rotate. The log contains no parameters, no results and no text of a guest.
package audit

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
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
	// MaxBytes is the size at which a file is closed and the next one begun; 0 is 64 MiB. Keep is how many closed files
	// are kept, 0 is 10: the oldest beyond that are removed, and the record that begins the new file says so.
	MaxBytes int64
	Keep     int
	// Now is the clock for records without a time; nil is time.Now.
	Now func() time.Time
}

// Log is an audit log in a folder. It is safe for concurrent use, also by several processes: the end of the log is read
// under a lock, unless this process was the last that wrote.
type Log struct {
	dir         string
	cfg         Config
	lockTimeout time.Duration // how long to wait for the lock
	warned      sync.Once

	writing  chan struct{} // held by the goroutine that writes; guards the fields below
	fileLock lock          // held by the process that writes
	file     *os.File      // the last file written to, open for the next record; may be nil
	opened   fs.FileInfo   // file when it was opened
	end      fileEnd       // of file
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
	return &Log{
		dir: dir, cfg: cfg, lockTimeout: defaultLockTimeout,
		writing: make(chan struct{}, 1), fileLock: lock{path: filepath.Join(dir, lockName)},
	}
}

// Path returns the file to which records are appended.
func (l *Log) Path() string { return filepath.Join(l.dir, currentName) }

// Dir returns the folder of the log.
func (l *Log) Dir() string { return l.dir }

// Mode returns On, Required or Off.
func (l *Log) Mode() (string, error) {
	if l.cfg.Mode == nil {
		return On, nil
	}
	return l.cfg.Mode()
}

// modeFor returns the mode that applied when the policy decided about the call, even if it has changed since.
func (l *Log) modeFor(e host.Event) (string, error) {
	if e.Audit != "" {
		return e.Audit, nil
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
		l.warn(err)
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
		return &host.Error{Code: host.Unavailable, Cause: err, Steps: []host.Step{host.OperatorStep(host.OpDoctor)},
			Message: fmt.Sprintf("%v, and the policy requires a record of each call ([operator] audit = %q); nothing was run",
				err, Required)}
	}
	return nil
}

// Note records an action of the operator, such as "grant" of some rights (details) to a plugin (subject).
func (l *Log) Note(op, subject string, details ...string) error {
	mode, err := l.Mode()
	if mode == Off && err == nil {
		return nil
	}
	return l.append(operatorRecord(op, subject, details), mode == Required)
}

func (l *Log) warn(err error) {
	if l.cfg.Warn != nil {
		l.warned.Do(func() { l.cfg.Warn(err) })
	}
}
