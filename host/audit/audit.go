// Package audit keeps the operator's evidence of what was called and what was changed: JSON lines, each chained to the one before it
// by hash, in files that rotate. It holds no parameters, no results and nothing that a guest said.
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

// What Config.Mode may say.
const (
	On       = "on"       // calls are recorded; one that cannot be is warned about
	Required = "required" // a call is recorded before it runs, and does not run where it cannot be
	Off      = "off"      // nothing is written
)

const (
	defaultMaxBytes = 64 << 20
	defaultKeep     = 10
)

// Config says how a log is kept. The zero value keeps one as with On.
type Config struct {
	// Mode is asked for each record of which its event says nothing: On, Required or Off; nil is On. With Required each record is also made to last (fsync) before its
	// call goes on, which costs what the disk takes; otherwise a crash of the machine, though not of a host, may lose the last ones.
	// Where Mode fails no call begins, and what happened is recorded as with On.
	Mode func() (string, error)
	// Warn takes the first error of writing in this process; those after it are not told. It may be nil.
	Warn func(error)
	// MaxBytes is the size from which a file is closed and another begun; 0 is 64 MiB. Keep is how many closed ones stay, 0 is 10: when
	// there are more, the oldest are removed, and the record that begins the new file says so.
	MaxBytes int64
	Keep     int
	// Now is the clock for what carries no time; nil is time.Now.
	Now func() time.Time
}

// Log is an audit log in a folder. It is safe for concurrent use, and so is the folder among processes: what a record is chained to is
// read from the file under a lock, or known because nobody else has written since.
type Log struct {
	dir         string
	cfg         Config
	lockTimeout time.Duration // for the lock
	warned      sync.Once

	writing  chan struct{} // one of this process writes at a time; the rest is of who has it
	fileLock lock          // one process writes at a time
	file     *os.File      // what was written to last, open for the next record; nil where there is none
	opened   fs.FileInfo   // file as it was opened
	end      fileEnd       // of file
}

var _ host.Auditor = (*Log)(nil)

// Open returns the log in dir, which is made for the user alone when something is written. It opens nothing yet.
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

// Dir is the folder of the log.
func (l *Log) Dir() string { return l.dir }

// Mode is On, Required or Off.
func (l *Log) Mode() (string, error) {
	if l.cfg.Mode == nil {
		return On, nil
	}
	return l.cfg.Mode()
}

// modeFor is what the policy said when it was asked about a call, whatever it says meanwhile.
func (l *Log) modeFor(e host.Event) (string, error) {
	if e.Audit != "" {
		return e.Audit, nil
	}
	return l.Mode()
}

// Record implements host.Recorder. Searches and describes are not recorded.
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

// Begin implements host.Auditor. Only with Required it does something: it records that a call begins, and refuses one that it cannot
// record. A beginning without an end in the log is a call that still runs, or whose host was killed.
func (l *Log) Begin(e host.Event) error {
	mode, err := l.modeFor(e)
	if err != nil || mode != Required {
		return err
	}
	r := recordOf(e)
	r.Op, r.Outcome = opBegin, nil
	if err := l.append(r, true); err != nil {
		return &host.Error{Code: host.Unavailable, Cause: err, Next: []string{"parley doctor"},
			Message: fmt.Sprintf("%v, and the policy lets nothing run without it ([operator] audit = %q); nothing was run", err, Required)}
	}
	return nil
}

// Note records what an operator did, such as "grant" of some rights (details) to a plugin (subject).
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
