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
	// maxResults bounds the number of whole results that are stored for a session, maxResultBytes the size of each.
	maxResults     = 16
	maxResultBytes = 64 << 20
	// sessionRefresh is the age of a session's file from which a use without a change updates its time.
	sessionRefresh = time.Minute
	// maxErrors bounds the stored errors of one tool, maxTools the number of tools with stored errors or a failed call.
	maxErrors = 8
	maxTools  = 256
)

// session is the file of one session.
type session struct {
	Tiers  map[string][]int   `json:"tiers,omitempty"`  // tool -> tiers shown
	Failed map[string]failure `json:"failed,omitempty"` // tool -> the last call of it, if it failed
	// Errors are the errors of each tool: what was expected where, never what was given.
	Errors map[string][]string `json:"errors,omitempty"`
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
		}
		list = append(list, line)
	}
	if before != nil || len(s.Errors) < maxTools {
		s.Errors[tool] = list[max(0, len(list)-maxErrors):]
	}
	return before
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
	if data, err := ReadOwn(path, maxResultBytes); err != nil || json.Unmarshal(data, &s.last.session) != nil {
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

// saveResult stores a whole result of which only a part was returned, and reports whether it could.
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

// Result returns a whole result that was stored for a call of a session. The error is not_found.
func (s *Sessions) Result(name, callID string) ([]byte, error) {
	if s == nil || s.Dir == "" || !isFileName(callID) {
		return nil, Errorf(NotFound, "no result is stored for call %s", printable(callID))
	}
	path := filepath.Join(s.Dir, "results", fileName(name)+"."+callID+".json")
	data, err := ReadOwn(path, maxResultBytes)
	if err != nil || s.now().Sub(modTime(path)) > sessionTTL {
		return nil, Errorf(NotFound, "no result is stored for call %s", printable(callID))
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

// filesIn returns the paths of the JSON files in a folder.
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

// fileName returns the file name of a session. Names with other characters become their hash, so that a caller cannot
// choose a path.
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
