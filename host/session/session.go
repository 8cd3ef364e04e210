// Package session stores what the calls of one session share, in files that processes share: what failed, what was
// shown, and stored results.
package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// CheckName rejects what cannot be the name of a session. The error is invalid_args.
func CheckName(name string) error {
	if !isFileName(name) {
		return host.Errorf(host.InvalidArgs, "%q is not the name of a session: expected at most 64 letters, digits, "+
			"\"-\" and \"_\", beginning with a letter or digit", manifest.Clip(manifest.CleanValue(name), 80))
	}
	return nil
}

// isFileName reports whether a name can be used in a file name: at most 64 letters, digits, _ and -, beginning with a
// letter or digit. It is not a regular expression because every process would have to compile that.
func isFileName(name string) bool {
	const first = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	return name != "" && len(name) <= 64 && strings.Trim(name, first+"_-") == "" && strings.Contains(first, name[:1])
}

// Store stores, in one small file per session, which documentation an agent has been shown and which calls failed. A
// session expires when it has not been used for 24 hours. A nil *Store stores nothing.
type Store struct {
	Dir string           // "": nothing is stored
	Now func() time.Time // nil: time.Now
	// Redact returns a function that removes the values of secrets from texts; nil leaves them. Nothing is stored for a
	// session whose name contains such a value. Results are stored as they are.
	Redact func() func(string) string

	mu   sync.Mutex // taken before the lock between processes, which is polled
	last lastSession
}

// lastSession is the session that this process used last. It is not read again while its file has not changed.
type lastSession struct {
	file    fs.FileInfo
	session State
}

const (
	sessionTTL      = 24 * time.Hour
	sessionLockWait = 2 * time.Second
	// sessionRefresh is the age from which a use without a change updates the time of a session's file.
	sessionRefresh = time.Minute
	// maxErrors bounds the stored errors of one tool, maxTools the number of tools with stored errors or a failed call.
	maxErrors = 8
	maxTools  = 256
	// SameMistake is from which occurrence on the error of a mistake counts them. At each multiple of it the error has
	// all documentation again.
	SameMistake = 3
)

// State is the file of one session.
type State struct {
	// Of is the key of the session. For a plugin's session, Within has the keys of the sessions that it serves. Both are
	// empty if the name of the file identifies the session.
	Of     string             `json:"of,omitempty"`
	Within []string           `json:"within,omitempty"`
	Tiers  map[string][]int   `json:"tiers,omitempty"`  // tool -> tiers shown
	Failed map[string]Failure `json:"failed,omitempty"` // tool -> the last call of it, if it failed
	// Errors are the errors of each tool: what was expected where, never what was given.
	Errors map[string][]string `json:"errors,omitempty"`
	// Times is how often each of Errors occurred, if more than once.
	Times map[string]map[string]int `json:"times,omitempty"`
}

// Failure is the last call of a tool in a session, if that failed, and the parameters that its error proposed.
type Failure struct {
	CallID    string          `json:"call"`
	Corrected json.RawMessage `json:"corrected,omitempty"`
}

// Shown reports whether a tier of a tool was shown in the session.
func (s *State) Shown(tool string, tier int) bool { return slices.Contains(s.Tiers[tool], tier) }

// RecordShown records that a tier was shown, and reports whether that is new.
func (s *State) RecordShown(tool string, tier int) bool {
	if s.Shown(tool, tier) {
		return false
	}
	if s.Tiers == nil {
		s.Tiers = map[string][]int{}
	}
	s.Tiers[tool] = append(s.Tiers[tool], tier)
	slices.Sort(s.Tiers[tool])
	return true
}

// RecordFailure stores the last call of a tool as failed.
func (s *State) RecordFailure(tool string, f Failure) {
	if s.Failed == nil {
		s.Failed = map[string]Failure{}
	}
	if _, before := s.Failed[tool]; before || len(s.Failed) < maxTools {
		s.Failed[tool] = f
	}
}

// RecordErrors adds the errors of e to the errors of a tool, and returns the earlier ones.
func (s *State) RecordErrors(tool string, e *host.Error) []string {
	before := slices.Clone(s.Errors[tool])
	if s.Errors == nil {
		s.Errors = map[string][]string{}
	}
	list := s.Errors[tool]
	for _, line := range summary(e) {
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

func (s *State) countAgain(tool, line string) {
	if s.Times == nil {
		s.Times = map[string]map[string]int{}
	}
	if s.Times[tool] == nil {
		s.Times[tool] = map[string]int{}
	}
	s.Times[tool][line] = max(s.Times[tool][line], 1) + 1
}

// Repeated returns how often the most frequent part of an error has occurred with a tool. It returns 0 for failures
// without a name, such as those of programs, because they may be different ones.
func (s *State) Repeated(tool string, e *host.Error) (times int) {
	if e.Code == host.ToolFailed && (e.Tool == nil || e.Tool.Name == "") {
		return 0
	}
	for _, line := range summary(e) {
		n := s.Times[tool][line]
		if n == 0 && slices.Contains(s.Errors[tool], line) {
			n = 1
		}
		times = max(times, n)
	}
	return times
}

// Ordinal returns a number as in "the 3rd time".
func Ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		suffix = map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10]
	}
	return strconv.Itoa(n) + cmp.Or(suffix, "th")
}

// summary returns lines that describe an error without values: a parameter and what was expected, or the code.
func summary(e *host.Error) []string {
	if e.Code != host.InvalidArgs || len(e.Details) == 0 {
		line := string(e.Code)
		if e.Tool != nil && e.Tool.Name != "" && e.Tool.Name != line {
			line += ": " + e.Tool.Name
		}
		return []string{host.Printable(line)}
	}
	var lines []string
	for _, d := range e.Details[:min(len(e.Details), maxErrors)] {
		lines = append(lines, host.Printable(cmp.Or(d.Parameter, "parameters")+": expected "+d.Expected))
	}
	return lines
}

// Update calls change with a session, under a lock between processes, and writes the session back if change returns
// true. Without a name, or if the folder cannot be written, change gets an empty session that is not stored.
func (s *Store) Update(of caller.Session, change func(*State) (changed bool)) {
	if s == nil || s.Dir == "" || of.Name == "" || s.hides(of) || os.MkdirAll(s.Dir, 0o700) != nil {
		change(&State{})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), sessionLockWait)
	defer cancel()
	lock := protect.NewLock(filepath.Join(s.Dir, "lock"))
	if ok, _ := lock.TryLockContext(ctx, 5*time.Millisecond); !ok {
		change(&State{})
		return
	}
	defer lock.Unlock()

	path := filepath.Join(s.Dir, fileName(of)+".json")
	s.read(path)
	if change(&s.last.session) {
		if !isNamedByFile(of) {
			s.last.session.Of, s.last.session.Within = of.Key(), of.Within
		}
		s.write(path)
	} else if s.last.file != nil && s.now().Sub(s.last.file.ModTime()) > sessionRefresh {
		_ = os.Chtimes(path, time.Time{}, s.now())
		s.last.file = nil
	}
}

// hides reports whether the name of a session contains the value of a secret. It returns false for a temporary
// session, because its client does not choose the name.
func (s *Store) hides(of caller.Session) bool {
	return s.Redact != nil && !of.Temporary && len(of.Name) >= host.MinHeldSecret && s.Redact()(of.Name) != of.Name
}

// read loads the session of a file as the last one. An expired or damaged file is an empty session.
func (s *Store) read(path string) {
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
func (s *Store) write(path string) {
	data, _ := json.Marshal(s.last.session)
	if s.Redact != nil {
		data = manifest.MapJSON(data, s.Redact())
	}
	temp := path + ".new"
	if os.WriteFile(temp, data, 0o600) != nil || os.Rename(temp, path) != nil {
		s.last = lastSession{}
		return
	}
	s.last.file, _ = os.Stat(path)
}

// Delete removes what was remembered of a session and its results, also for the plugins' sessions that serve it.
func (s *Store) Delete(of caller.Session) {
	if s == nil || s.Dir == "" {
		return
	}
	names := []string{fileName(of)}
	for _, path := range filesIn(s.Dir, ".json") {
		if data, err := protect.Read(path, maxResultBytes); err == nil && strings.Contains(string(data), `"within"`) {
			var stored State
			if json.Unmarshal(data, &stored) == nil && slices.Contains(stored.Within, of.Key()) {
				names = append(names, strings.TrimSuffix(filepath.Base(path), ".json"))
			}
		}
	}
	for _, name := range names {
		_ = os.Remove(filepath.Join(s.Dir, name+".json"))
		for _, f := range s.resultFiles(name) {
			_ = os.Remove(f.path)
		}
	}
}

func (s *Store) sweep() {
	s.removeExpired(filesIn(s.Dir, ".json"))
	s.removeExpired(filesIn(filepath.Join(s.Dir, resultsDir), ""))
}

func (s *Store) removeExpired(paths []string) {
	for _, path := range paths {
		if s.now().Sub(protect.ModTime(path)) > sessionTTL {
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

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// fileName returns the file name of a session. Sessions that are not the user's have a hash, so that no caller can
// choose a path.
func fileName(s caller.Session) string {
	switch {
	case s.Owner == "" && s.Name == "":
		return "none"
	case isNamedByFile(s):
		return "s-" + s.Name
	}
	sum := sha256.Sum256([]byte(s.Key()))
	return "h-" + hex.EncodeToString(sum[:16])
}

// isNamedByFile reports whether the name of the session's file says which session it is.
func isNamedByFile(s caller.Session) bool {
	return s.Owner == "" && (s.Name == "" || isFileName(s.Name))
}

// StoredSession is what is stored of a session.
type StoredSession struct {
	Session caller.Session // Owner, Name and Within
	Used    time.Time
	Shown   []ShownTool
	Results []StoredResult // the latest one first
}

// ShownTool is a tool, and the tiers of its documentation that a session has been shown.
type ShownTool struct {
	Tool  string `json:"tool"`
	Tiers []int  `json:"tiers"`
}

// StoredResult is what is stored of the result of a call; see [ResultFile].
type StoredResult struct {
	CallID string    `json:"call_id"`
	Bytes  int64     `json:"bytes"` // size of all its files
	Time   time.Time `json:"time"`
}

// List returns the stored sessions, the last used one first. Results of calls without a session belong to the zero
// [Session].
func (s *Store) List() []StoredSession {
	if s == nil || s.Dir == "" {
		return nil
	}
	found := map[string]*StoredSession{} // by file name
	at := func(file string) *StoredSession {
		if found[file] == nil {
			found[file] = &StoredSession{}
		}
		return found[file]
	}
	for _, path := range filesIn(s.Dir, ".json") {
		file := strings.TrimSuffix(filepath.Base(path), ".json")
		var stored State
		data, err := protect.Read(path, maxResultBytes)
		if err != nil || json.Unmarshal(data, &stored) != nil || s.now().Sub(protect.ModTime(path)) >= sessionTTL {
			continue
		}
		of := caller.SessionOf(stored.Of)
		if name, named := strings.CutPrefix(file, "s-"); named {
			of = caller.Session{Name: name}
		} else if stored.Of == "" {
			continue // written by a version that did not record its owner
		}
		of.Within = stored.Within
		entry := at(file)
		entry.Session, entry.Used = of, protect.ModTime(path)
		for _, tool := range slices.Sorted(maps.Keys(stored.Tiers)) {
			entry.Shown = append(entry.Shown, ShownTool{tool, stored.Tiers[tool]})
		}
	}
	for _, f := range s.resultFiles("") {
		name, named := strings.CutPrefix(f.session, "s-")
		info, err := os.Lstat(f.path)
		if err != nil || s.now().Sub(info.ModTime()) >= sessionTTL ||
			!named && f.session != "none" && found[f.session] == nil {
			continue
		}
		entry := at(f.session)
		if named {
			entry.Session.Name = name
		}
		if info.ModTime().After(entry.Used) {
			entry.Used = info.ModTime()
		}
		i := slices.IndexFunc(entry.Results, func(r StoredResult) bool { return r.CallID == f.callID })
		if i >= 0 { // another file of the same call
			entry.Results[i].Bytes += info.Size()
			continue
		}
		entry.Results = append(entry.Results, StoredResult{f.callID, info.Size(), info.ModTime().UTC()})
	}
	all := []StoredSession{}
	for _, entry := range found {
		slices.SortFunc(entry.Results, func(a, b StoredResult) int { return b.Time.Compare(a.Time) })
		all = append(all, *entry)
	}
	slices.SortFunc(all, func(a, b StoredSession) int {
		return cmp.Or(b.Used.Compare(a.Used), strings.Compare(a.Session.Key(), b.Session.Key()))
	})
	return all
}
