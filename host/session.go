package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// Session identifies a session: what a caller has been shown, its results, and what it has opened in browsers. Sessions
// of different owners share nothing, whatever their names. The zero value is the user without a session: nothing is
// remembered, and calls use the browser's default context.
type Session struct {
	// Owner is "" for the user, at the command line and over stdio; "token:ID" for a token over HTTP; "plugin:NAME" for
	// what a plugin has of its own.
	Owner string
	// Name is the name under its owner. "" means that the calls of the owner cannot be related to each other.
	Name string
	// Connection is the id of the connection over which the call came: when it ends, what was opened over it is closed.
	// "" means none.
	Connection string
	// Temporary sessions end with their connection.
	Temporary bool
	// Within are the keys of the sessions on whose behalf a plugin has this one of its own, the nearest first. It ends
	// with each of them.
	Within []string
	// Plugin is the plugin that owns the session; nil for sessions of others.
	Plugin *SessionPlugin
}

// SessionPlugin says what a plugin's own session may do, whichever plugin is called in it.
type SessionPlugin struct {
	Digest string // as in [Info]
	Grant  Grant
}

// Key identifies the session among all sessions, as "user/NAME" or "OWNER/NAME".
func (s Session) Key() string { return cmp.Or(s.Owner, "user") + "/" + s.Name }

// SessionOf returns the session with a key.
func SessionOf(key string) Session {
	owner, name, _ := strings.Cut(key, "/")
	if owner == "user" {
		owner = ""
	}
	return Session{Owner: owner, Name: name}
}

// String returns the session as records and lists show it: NAME for the user's, OWNER/NAME for others, "" for none.
func (s Session) String() string {
	if s.Owner == "" {
		return s.Name
	}
	return s.Key()
}

// GuestID returns the id under which a plugin knows the session: opaque, and different for each plugin. It is "" for a
// session without a name.
func (s Session) GuestID(plugin string) string {
	if s.Name == "" {
		return ""
	}
	return s.idFor(plugin)
}

func (s Session) idFor(plugin string) string {
	sum := sha256.Sum256([]byte(plugin + "\x00" + s.Key()))
	return hex.EncodeToString(sum[:8])
}

// ofPlugin returns the session that a plugin has of its own for calls on behalf of this one.
func (s Session) ofPlugin(plugin string, as *SessionPlugin) Session {
	own := Session{
		Owner: "plugin:" + plugin, Connection: s.Connection, Temporary: s.Temporary, Plugin: as,
		Within: append([]string{s.Key()}, s.Within...),
	}
	if s.Owner != "" || s.Name != "" {
		own.Name = s.idFor(plugin)
	}
	return own
}

// CheckSessionName rejects what cannot be the name of a session. The error is invalid_args.
func CheckSessionName(name string) error {
	if !isFileName(name) {
		return Errorf(InvalidArgs, "%q is not the name of a session: expected at most 64 letters, digits, \"-\" and \"_\", "+
			"beginning with a letter or digit", manifest.Clip(manifest.CleanLine(name), 80))
	}
	return nil
}

// Sessions stores, in one small file per session, which documentation an agent has been shown and which calls failed. A
// session expires when it has not been used for 24 hours. A nil *Sessions stores nothing.
type Sessions struct {
	Dir string           // "": nothing is stored
	Now func() time.Time // nil: time.Now

	mu   sync.Mutex // taken before the lock between processes, which is polled
	last lastSession
}

// lastSession is the session that this process used last. It is not read again while its file has not changed.
type lastSession struct {
	file    fs.FileInfo
	session session
}

const (
	sessionTTL      = 24 * time.Hour
	sessionLockWait = 2 * time.Second
	// sessionRefresh is the age of a session's file from which a use without a change updates its time.
	sessionRefresh = time.Minute
	// maxErrors bounds the stored errors of one tool, maxTools the number of tools with stored errors or a failed call.
	maxErrors = 8
	maxTools  = 256
	// sameMistake is how often a mistake occurs until the error says so. Each such time it has all documentation again.
	sameMistake = 3
)

// session is the file of one session.
type session struct {
	// Of is the key of the session, and Within are those of the sessions on whose behalf a plugin has it. They are empty
	// if the name of the file says whose it is.
	Of     string             `json:"of,omitempty"`
	Within []string           `json:"within,omitempty"`
	Tiers  map[string][]int   `json:"tiers,omitempty"`  // tool -> tiers shown
	Failed map[string]failure `json:"failed,omitempty"` // tool -> the last call of it, if it failed
	// Errors are the errors of each tool: what was expected where, never what was given.
	Errors map[string][]string `json:"errors,omitempty"`
	// Times is how often each of Errors occurred, if more than once.
	Times map[string]map[string]int `json:"times,omitempty"`
}

type failure struct {
	CallID    string          `json:"call"`
	Corrected json.RawMessage `json:"corrected,omitempty"`
}

func (s *session) shown(tool string, tier int) bool { return slices.Contains(s.Tiers[tool], tier) }

// recordShown records that a tier was shown, and reports whether that is new.
func (s *session) recordShown(tool string, tier int) bool {
	if s.shown(tool, tier) {
		return false
	}
	if s.Tiers == nil {
		s.Tiers = map[string][]int{}
	}
	s.Tiers[tool] = append(s.Tiers[tool], tier)
	slices.Sort(s.Tiers[tool])
	return true
}

// recordFailure stores the last call of a tool as failed.
func (s *session) recordFailure(tool string, f failure) {
	if s.Failed == nil {
		s.Failed = map[string]failure{}
	}
	if _, before := s.Failed[tool]; before || len(s.Failed) < maxTools {
		s.Failed[tool] = f
	}
}

// recordErrors adds the errors of e to those of a tool, and returns the earlier ones.
func (s *session) recordErrors(tool string, e *Error) []string {
	before := slices.Clone(s.Errors[tool])
	if s.Errors == nil {
		s.Errors = map[string][]string{}
	}
	list := s.Errors[tool]
	for _, line := range e.summary() {
		if i := slices.Index(list, line); i >= 0 {
			list = slices.Delete(list, i, i+1)
			s.countAgain(tool, line)
		}
		list = append(list, line)
	}
	if before != nil || len(s.Errors) < maxTools {
		dropped := max(0, len(list)-maxErrors)
		for _, line := range list[:dropped] {
			delete(s.Times[tool], line)
		}
		s.Errors[tool] = list[dropped:]
	}
	return before
}

func (s *session) countAgain(tool, line string) {
	if s.Times == nil {
		s.Times = map[string]map[string]int{}
	}
	if s.Times[tool] == nil {
		s.Times[tool] = map[string]int{}
	}
	s.Times[tool][line] = max(s.Times[tool][line], 1) + 1
}

// repeated returns how often the most frequent part of an error has occurred with a tool. Failures for which a tool has
// no name may be different ones, such as those of programs.
func (s *session) repeated(tool string, e *Error) (times int) {
	if e.Code == ToolFailed && (e.Tool == nil || e.Tool.Name == "") {
		return 0
	}
	for _, line := range e.summary() {
		n := s.Times[tool][line]
		if n == 0 && slices.Contains(s.Errors[tool], line) {
			n = 1
		}
		times = max(times, n)
	}
	return times
}

// ordinal returns a number as in "the 3rd time".
func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		suffix = map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10]
	}
	return strconv.Itoa(n) + cmp.Or(suffix, "th")
}

// summary returns lines that describe an error without values: a parameter and what was expected, or the code.
func (e *Error) summary() []string {
	if e.Code != InvalidArgs || len(e.Details) == 0 {
		line := string(e.Code)
		if e.Tool != nil && e.Tool.Name != "" && e.Tool.Name != line {
			line += ": " + e.Tool.Name
		}
		return []string{printable(line)}
	}
	var lines []string
	for _, d := range e.Details[:min(len(e.Details), maxErrors)] {
		lines = append(lines, printable(pointerOr(d.Parameter)+": expected "+d.Expected))
	}
	return lines
}

// isFileName reports whether a name can be used in a file name: at most 64 letters, digits, _ and -, beginning with a
// letter or digit. It is not a regular expression because every process would have to compile that.
func isFileName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '_' && r != '-') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// update calls change with a session, under a lock between processes, and writes the session back if change returns
// true. Without a name, or if the folder cannot be written, change gets an empty session that is not stored.
func (s *Sessions) update(of Session, change func(*session) (changed bool)) {
	if s == nil || s.Dir == "" || of.Name == "" || os.MkdirAll(s.Dir, 0o700) != nil {
		change(&session{})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), sessionLockWait)
	defer cancel()
	lock := flock.New(filepath.Join(s.Dir, "lock"), flock.SetPermissions(0o600))
	if ok, _ := lock.TryLockContext(ctx, 5*time.Millisecond); !ok {
		change(&session{})
		return
	}
	defer lock.Unlock()

	path := filepath.Join(s.Dir, of.fileName()+".json")
	s.read(path)
	if change(&s.last.session) {
		if !of.isNamedByFile() {
			s.last.session.Of, s.last.session.Within = of.Key(), of.Within
		}
		s.write(path)
	} else if s.last.file != nil && s.now().Sub(s.last.file.ModTime()) > sessionRefresh {
		_ = os.Chtimes(path, time.Time{}, s.now())
		s.last.file = nil
	}
}

// read loads the session of a file as the last one. An expired or damaged file is an empty session.
func (s *Sessions) read(path string) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.sweep() // expired files are removed when a session is new
	}
	if err != nil || s.now().Sub(info.ModTime()) >= sessionTTL {
		s.last = lastSession{}
		return
	}
	if l := s.last.file; l != nil && os.SameFile(l, info) && l.Size() == info.Size() && l.ModTime().Equal(info.ModTime()) {
		return
	}
	s.last = lastSession{file: info}
	if data, err := protect.Read(path, maxResultBytes); err != nil || json.Unmarshal(data, &s.last.session) != nil {
		s.last = lastSession{}
	}
}

// write writes the last session to its file.
func (s *Sessions) write(path string) {
	data, err := json.Marshal(s.last.session)
	if err != nil {
		return
	}
	temp := path + ".new"
	if os.WriteFile(temp, data, 0o600) != nil || os.Rename(temp, path) != nil {
		s.last = lastSession{}
		return
	}
	s.last.file, _ = os.Stat(path)
}

// delete removes what was remembered of a session and its results, and those of the sessions that plugins have on its
// behalf.
func (s *Sessions) delete(of Session) {
	if s == nil || s.Dir == "" {
		return
	}
	names := []string{of.fileName()}
	for _, path := range filesIn(s.Dir, ".json") {
		if data, err := protect.Read(path, maxResultBytes); err == nil && strings.Contains(string(data), `"within"`) {
			var stored session
			if json.Unmarshal(data, &stored) == nil && slices.Contains(stored.Within, of.Key()) {
				names = append(names, strings.TrimSuffix(filepath.Base(path), ".json"))
			}
		}
	}
	for _, name := range names {
		_ = os.Remove(filepath.Join(s.Dir, name+".json"))
		for _, path := range filesIn(filepath.Join(s.Dir, resultsDir), "") {
			if strings.HasPrefix(filepath.Base(path), name+".") {
				_ = os.Remove(path)
			}
		}
	}
}

func (s *Sessions) sweep() {
	s.removeExpired(filesIn(s.Dir, ".json"))
	s.removeExpired(filesIn(filepath.Join(s.Dir, resultsDir), ""))
}

func (s *Sessions) removeExpired(paths []string) {
	for _, path := range paths {
		if s.now().Sub(modTime(path)) > sessionTTL {
			_ = os.Remove(path)
		}
	}
}

// filesIn returns the paths of the files in a folder whose names have a suffix.
func filesIn(dir, suffix string) []string {
	entries, _ := os.ReadDir(dir)
	var paths []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

func (s *Sessions) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// fileName returns the file name of a session. Other sessions than the user's have a hash, so that no caller can choose
// a path.
func (s Session) fileName() string {
	switch {
	case s.Owner == "" && s.Name == "":
		return "none"
	case s.isNamedByFile():
		return "s-" + s.Name
	}
	sum := sha256.Sum256([]byte(s.Key()))
	return "h-" + hex.EncodeToString(sum[:16])
}

// isNamedByFile reports whether the name of the session's file says which session it is.
func (s Session) isNamedByFile() bool { return s.Owner == "" && (s.Name == "" || isFileName(s.Name)) }

func modTime(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
