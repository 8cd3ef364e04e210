package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Sessions remember, one small file each, what an agent has been shown and where it failed.
// A session that was not used for 24 hours is forgotten.
type Sessions struct {
	Dir string // "" keeps nothing
	Now func() time.Time

	mu   sync.Mutex // before the lock among processes, which is taken by trying again and again
	last lastSession
}

// lastSession is the session that this process used last, which need not be read again while its file is the same.
type lastSession struct {
	file    fs.FileInfo
	session session
}

const (
	sessionTTL      = 24 * time.Hour
	sessionLockWait = 2 * time.Second
	// maxResults bounds the whole results that are kept for a session beside what was cut off.
	maxResults     = 16
	maxResultBytes = 64 << 20
	// sessionRefresh is how old a session's file may get before a use that changes nothing is written down.
	sessionRefresh = time.Minute
	// maxErrors bounds what a session remembers of the errors made with one tool, maxTools of how many tools it remembers errors and a failed call.
	maxErrors = 8
	maxTools  = 256
)

// session is the file of one session.
type session struct {
	Tiers  map[string][]int   `json:"tiers,omitempty"`  // tool -> tiers shown
	Failed map[string]failure `json:"failed,omitempty"` // tool -> the last call of it, if it failed
	// Errors are, tool by tool, the errors made so far: what was expected where, never what was given.
	Errors map[string][]string `json:"errors,omitempty"`
}

type failure struct {
	CallID    string          `json:"call"`
	Corrected json.RawMessage `json:"corrected,omitempty"`
}

func (s *session) shown(tool string, tier int) bool { return slices.Contains(s.Tiers[tool], tier) }

// recordShown reports whether it is new that this was shown.
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

// recordFailure remembers the last call of a tool as one that failed.
func (s *session) recordFailure(tool string, f failure) {
	if s.Failed == nil {
		s.Failed = map[string]failure{}
	}
	if _, before := s.Failed[tool]; before || len(s.Failed) < maxTools {
		s.Failed[tool] = f
	}
}

// recordErrors returns the errors made with a tool before, and remembers those of e.
func (s *session) recordErrors(tool string, e *Error) []string {
	before := slices.Clone(s.Errors[tool])
	if s.Errors == nil {
		s.Errors = map[string][]string{}
	}
	list := s.Errors[tool]
	for _, line := range e.summary() {
		if i := slices.Index(list, line); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		list = append(list, line)
	}
	if before != nil || len(s.Errors) < maxTools {
		s.Errors[tool] = list[max(0, len(list)-maxErrors):]
	}
	return before
}

// summary describes an error in lines without values: where what was expected, or its code.
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

// isPlain tells a name that is fit to be a file's: letters, digits, _ and -, at most 64, the first no sign. (A regular
// expression with such a bound costs every process its compilation.)
func isFileName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '_' && r != '-') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// update lets change look at a session and alter it, alone among all processes; what it reports as changed is written back.
// Without a name, and where the state directory cannot be written, change gets a session that nobody keeps.
func (s *Sessions) update(name string, change func(*session) (changed bool)) {
	if s == nil || s.Dir == "" || name == "" || os.MkdirAll(s.Dir, 0o700) != nil {
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

	path := filepath.Join(s.Dir, fileName(name)+".json")
	s.read(path)
	if change(&s.last.session) {
		s.write(path)
	} else if s.last.file != nil && s.now().Sub(s.last.file.ModTime()) > sessionRefresh {
		_ = os.Chtimes(path, time.Time{}, s.now())
		s.last.file = nil
	}
}

// read makes the session in a file the last one. What is too old or damaged is no memory.
func (s *Sessions) read(path string) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.sweep() // a new session is the moment to forget old ones
	}
	if err != nil || s.now().Sub(info.ModTime()) >= sessionTTL {
		s.last = lastSession{}
		return
	}
	if l := s.last.file; l != nil && os.SameFile(l, info) && l.Size() == info.Size() && l.ModTime().Equal(info.ModTime()) {
		return
	}
	s.last = lastSession{file: info}
	if data, err := os.ReadFile(path); err != nil || json.Unmarshal(data, &s.last.session) != nil {
		s.last = lastSession{}
	}
}

// write puts the last session into its file.
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

// saveResult keeps a whole result of which only a part was shown. It reports whether it could.
func (s *Sessions) saveResult(name, callID string, data []byte) bool {
	if s == nil || s.Dir == "" || len(data) > maxResultBytes {
		return false
	}
	dir := filepath.Join(s.Dir, "results")
	if os.MkdirAll(dir, 0o700) != nil {
		return false
	}
	prefix := fileName(name) + "."
	var old []string
	for _, path := range filesIn(dir) {
		if strings.HasPrefix(filepath.Base(path), prefix) {
			old = append(old, path)
		}
	}
	if len(old) >= maxResults {
		slices.SortFunc(old, func(a, b string) int { return modTime(a).Compare(modTime(b)) })
		for _, path := range old[:len(old)-maxResults+1] {
			_ = os.Remove(path)
		}
	}
	return os.WriteFile(filepath.Join(dir, prefix+callID+".json"), data, 0o600) == nil
}

// Result returns a whole result that was kept for a session.
func (s *Sessions) Result(name, callID string) ([]byte, error) {
	if s == nil || s.Dir == "" || !isFileName(callID) {
		return nil, Errorf(NotFound, "no result is kept for call %s", printable(callID))
	}
	path := filepath.Join(s.Dir, "results", fileName(name)+"."+callID+".json")
	data, err := os.ReadFile(path)
	if err != nil || s.now().Sub(modTime(path)) > sessionTTL {
		return nil, Errorf(NotFound, "no result is kept for call %s", printable(callID))
	}
	return data, nil
}

func (s *Sessions) sweep() {
	for _, path := range append(filesIn(s.Dir), filesIn(filepath.Join(s.Dir, "results"))...) {
		if s.now().Sub(modTime(path)) > sessionTTL {
			_ = os.Remove(path)
		}
	}
}

// filesIn lists the JSON files of a folder.
func filesIn(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var paths []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".json") {
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

// fileName keeps what a caller says out of the paths: odd names become their hash.
func fileName(name string) string {
	switch {
	case name == "":
		return "none"
	case isFileName(name):
		return "s-" + name
	}
	sum := sha256.Sum256([]byte(name))
	return "h-" + hex.EncodeToString(sum[:16])
}

func modTime(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
