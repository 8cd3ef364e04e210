package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
)

const (
	// MaxResults is how many files are kept for a session.
	MaxResults = 16
	// maxResultBytes bounds the size of each.
	maxResultBytes = 64 << 20
)

// Kept is what a session has stored of a call: the whole of a result that was cut, or the content of a binary one.
type Kept struct {
	Path string // of the file
	JSON bool   // the file is the result as JSON; otherwise it is the content itself
	Tool string // that returned the JSON, qualified; "" if a filter has changed it
}

// Kept returns what was kept for a call of a session. The error is not_found.
func (s *Store) Kept(of host.Session, callID string) (*Kept, error) {
	notFound := host.Errorf(host.NotFound, "no result is stored for call %s", host.Printable(callID))
	if s == nil || s.Dir == "" || !host.IsFileName(callID) {
		return nil, notFound
	}
	var kept *Kept
	for _, path := range s.keptFor(of) {
		rest, isOfCall := strings.CutPrefix(filepath.Base(path), fileName(of)+"."+callID+".")
		if !isOfCall || s.now().Sub(host.ModTime(path)) > sessionTTL {
			continue
		}
		ext := filepath.Ext("." + rest)
		if isJSON := ext == ResultExt; isJSON || kept == nil {
			kept = &Kept{Path: path, JSON: isJSON}
			if isJSON {
				kept.Tool = strings.TrimSuffix(strings.TrimSuffix(rest, ResultExt[1:]), ".")
			}
		}
	}
	if kept == nil {
		return nil, notFound
	}
	return kept, nil
}

// KeptIDs returns the calls of a session that something is stored of, the last one first.
func (s *Store) KeptIDs(of host.Session) (ids []string) {
	if s == nil || s.Dir == "" {
		return nil
	}
	paths := s.keptFor(of)
	slices.SortFunc(paths, func(a, b string) int { return host.ModTime(b).Compare(host.ModTime(a)) })
	for _, path := range paths {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), fileName(of)+"."), ".")
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

const (
	resultsDir = "results"
	ResultExt  = ".json"
)

// Result returns a whole result, as JSON, that was kept for a call of a session. The error is not_found.
func (s *Store) Result(of host.Session, callID string) ([]byte, error) {
	kept, err := s.Kept(of, callID)
	if err == nil && kept.JSON {
		var data []byte
		if data, err = protect.Read(kept.Path, maxResultBytes); err == nil {
			return data, nil
		}
	}
	return nil, host.Errorf(host.NotFound, "no result is stored for call %s", host.Printable(callID))
}

// Keep stores a file for a call of a session, and returns its path; "" if it could not. ending follows the call's id in
// the name of the file.
func (s *Store) Keep(of host.Session, callID, ending string, data []byte) (path string) {
	if s == nil || s.Dir == "" || len(data) > maxResultBytes {
		return ""
	}
	dir := filepath.Join(s.Dir, resultsDir)
	if os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	s.removeExpired(filesIn(dir, ""))
	if !isNamedByFile(of) { // the file of the session says whose this is
		s.Update(of, func(stored *State) (changed bool) { return stored.Of == "" })
	}
	old := s.keptFor(of)
	if len(old) >= MaxResults {
		slices.SortFunc(old, func(a, b string) int { return host.ModTime(a).Compare(host.ModTime(b)) })
		for _, path := range old[:len(old)-MaxResults+1] {
			_ = os.Remove(path)
		}
	}
	path = filepath.Join(dir, fileName(of)+"."+callID+ending)
	if os.WriteFile(path, data, 0o600) != nil {
		return ""
	}
	return path
}

// keptFor returns the paths of what is kept for a session.
func (s *Store) keptFor(of host.Session) (paths []string) {
	for _, path := range filesIn(filepath.Join(s.Dir, resultsDir), "") {
		if strings.HasPrefix(filepath.Base(path), fileName(of)+".") {
			paths = append(paths, path)
		}
	}
	return paths
}
