package session

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// File names a file that holds a result, or a part of one.
type File struct {
	Out   string `json:"out"` // the path
	Bytes int64  `json:"bytes"`
	MIME  string `json:"mime"`
}

// MediaType returns the media type of content. Its first 512 bytes decide, because a caller may have chosen another
// format than the schema of a tool names. If they do not tell, the declared type is returned. The type of unknown
// content is application/octet-stream.
func MediaType(content []byte, declared string) string {
	found, _, _ := strings.Cut(http.DetectContentType(content), ";")
	switch {
	case found == "audio/wave":
		return "audio/wav"
	case found == "application/x-gzip":
		return "application/gzip"
	case strings.HasPrefix(found, "image/"), strings.HasPrefix(found, "audio/"), found == "application/pdf":
		return found
	case strings.HasPrefix(string(content), `{"`): // such as a trace of the browser, which declares nothing
		return "application/json"
	}
	if declared = manifest.CleanLine(declared); declared != "" {
		return declared
	}
	return "application/octet-stream"
}

const (
	// MaxResults is how many files a session stores.
	MaxResults = 16
	// maxResultBytes bounds the size of each file.
	maxResultBytes = 64 << 20
)

// ResultFile is a file that a session has stored for a call: the whole of a result that was cut, or the content of a
// binary one.
type ResultFile struct {
	Path string // path of the file
	JSON bool   // the file is the result as JSON; otherwise it is the content itself
	Tool string // qualified name of the tool that returned the JSON; "" if a filter has changed it
}

// FindResult returns the file of a call of a session, the one with JSON if there are several. The error is not_found.
func (s *Store) FindResult(of caller.Session, callID string) (*ResultFile, error) {
	notFound := host.Errorf(host.NotFound, "no result is stored for call %s", host.Printable(callID))
	if s == nil || s.Dir == "" || !isFileName(callID) {
		return nil, notFound
	}
	var found *ResultFile
	for _, f := range s.resultFiles(fileName(of)) {
		if f.callID != callID || s.now().Sub(protect.ModTime(f.path)) > sessionTTL {
			continue
		}
		tool, isJSON := strings.CutSuffix(f.ending, ResultExt)
		if isJSON {
			found = &ResultFile{Path: f.path, JSON: true, Tool: strings.TrimPrefix(tool, ".")}
		} else if found == nil {
			found = &ResultFile{Path: f.path}
		}
	}
	if found == nil {
		return nil, notFound
	}
	return found, nil
}

// ResultIDs returns the ids of the calls of a session that have stored files, the last one first.
func (s *Store) ResultIDs(of caller.Session) (ids []string) {
	if s == nil || s.Dir == "" {
		return nil
	}
	files := s.resultFiles(fileName(of))
	slices.SortFunc(files, oldestFirst)
	for _, f := range slices.Backward(files) {
		if !slices.Contains(ids, f.callID) {
			ids = append(ids, f.callID)
		}
	}
	return ids
}

const (
	resultsDir = "results"
	// ResultExt ends the names of files with results as JSON.
	ResultExt = ".json"
)

// Result returns a whole result, as JSON, that was stored for a call of a session. The error is not_found.
func (s *Store) Result(of caller.Session, callID string) ([]byte, error) {
	file, err := s.FindResult(of, callID)
	if err == nil && file.JSON {
		var data []byte
		if data, err = protect.Read(file.Path, maxResultBytes); err == nil {
			return data, nil
		}
	}
	return nil, host.Errorf(host.NotFound, "no result is stored for call %s", host.Printable(callID))
}

// StoreResult stores a file for a call of a session, and returns its path; "" if it could not. ending follows the
// call's id in the name of the file.
func (s *Store) StoreResult(of caller.Session, callID, ending string, data []byte) (path string) {
	if s == nil || s.Dir == "" || len(data) > maxResultBytes || s.hides(of) {
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
	old := s.resultFiles(fileName(of))
	slices.SortFunc(old, oldestFirst)
	for _, f := range old[:max(0, len(old)-MaxResults+1)] {
		_ = os.Remove(f.path)
	}
	path = filepath.Join(dir, fileName(of)+"."+callID+ending)
	if os.WriteFile(path, data, 0o600) != nil {
		return ""
	}
	return path
}

// resultFile is a stored file. Its name is SESSION.CALL, where SESSION is the name of the session's file, and an
// ending from the next dot on.
type resultFile struct{ path, session, callID, ending string }

// resultFiles returns the stored files of a session, or of all for "".
func (s *Store) resultFiles(session string) (files []resultFile) {
	for _, path := range filesIn(filepath.Join(s.Dir, resultsDir), "") {
		of, rest, _ := strings.Cut(filepath.Base(path), ".")
		callID, _, _ := strings.Cut(rest, ".")
		if session == "" || session == of {
			files = append(files, resultFile{path, of, callID, rest[len(callID):]})
		}
	}
	return files
}

func oldestFirst(a, b resultFile) int {
	return protect.ModTime(a.path).Compare(protect.ModTime(b.path))
}
