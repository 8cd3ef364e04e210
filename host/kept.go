package host

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

const (
	// MaxResults is how many files are kept for a session.
	MaxResults = 16
	// maxResultBytes bounds the size of each.
	maxResultBytes = 64 << 20
)

// Kept is what a session has kept of a call: a whole result of which only a part was returned, or the content of a
// binary one.
type Kept struct {
	Path string // of the file
	JSON bool   // the file is the result as JSON; otherwise it is the content itself
	Tool string // that returned the JSON, qualified; "" if a filter has changed it
}

// Kept returns what was kept for a call of a session. The error is not_found.
func (s *Sessions) Kept(of Session, callID string) (*Kept, error) {
	notFound := Errorf(NotFound, "no result is stored for call %s", printable(callID))
	if s == nil || s.Dir == "" || !isFileName(callID) {
		return nil, notFound
	}
	var kept *Kept
	for _, path := range s.keptFor(of) {
		rest, isOfCall := strings.CutPrefix(filepath.Base(path), of.fileName()+"."+callID+".")
		if !isOfCall || s.now().Sub(modTime(path)) > sessionTTL {
			continue
		}
		ext := filepath.Ext("." + rest)
		if isJSON := ext == resultExt; isJSON || kept == nil {
			kept = &Kept{Path: path, JSON: isJSON}
			if isJSON {
				kept.Tool = strings.TrimSuffix(strings.TrimSuffix(rest, resultExt[1:]), ".")
			}
		}
	}
	if kept == nil {
		return nil, notFound
	}
	return kept, nil
}

// KeptIDs returns the calls of a session for which something is kept, the last one first.
func (s *Sessions) KeptIDs(of Session) (ids []string) {
	if s == nil || s.Dir == "" {
		return nil
	}
	paths := s.keptFor(of)
	slices.SortFunc(paths, func(a, b string) int { return modTime(b).Compare(modTime(a)) })
	for _, path := range paths {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), of.fileName()+"."), ".")
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

const (
	resultsDir = "results"
	resultExt  = ".json"
)

// Result returns a whole result, as JSON, that was kept for a call of a session. The error is not_found.
func (s *Sessions) Result(of Session, callID string) ([]byte, error) {
	kept, err := s.Kept(of, callID)
	if err == nil && kept.JSON {
		var data []byte
		if data, err = protect.Read(kept.Path, maxResultBytes); err == nil {
			return data, nil
		}
	}
	return nil, Errorf(NotFound, "no result is stored for call %s", printable(callID))
}

// keep stores a file for a call of a session, and returns its path; "" if it could not. ending is what its name has
// after that of the call.
func (s *Sessions) keep(of Session, callID, ending string, data []byte) (path string) {
	if s == nil || s.Dir == "" || len(data) > maxResultBytes {
		return ""
	}
	dir := filepath.Join(s.Dir, resultsDir)
	if os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	s.removeExpired(filesIn(dir, ""))
	if !of.isNamedByFile() { // the file of the session says whose this is
		s.update(of, func(stored *session) (changed bool) { return stored.Of == "" })
	}
	old := s.keptFor(of)
	if len(old) >= MaxResults {
		slices.SortFunc(old, func(a, b string) int { return modTime(a).Compare(modTime(b)) })
		for _, path := range old[:len(old)-MaxResults+1] {
			_ = os.Remove(path)
		}
	}
	path = filepath.Join(dir, of.fileName()+"."+callID+ending)
	if os.WriteFile(path, data, 0o600) != nil {
		return ""
	}
	return path
}

// keptFor returns the paths of what is kept for a session.
func (s *Sessions) keptFor(of Session) (paths []string) {
	for _, path := range filesIn(filepath.Join(s.Dir, resultsDir), "") {
		if strings.HasPrefix(filepath.Base(path), of.fileName()+".") {
			paths = append(paths, path)
		}
	}
	return paths
}

// File names a file that holds a result, or a part of one.
type File struct {
	Out   string `json:"out"` // the path
	Bytes int64  `json:"bytes"`
	MIME  string `json:"mime"`
}

// keepWhole stores the whole of a result that is cut, without secrets, and reports whether it could.
func (r *run) keepWhole(data json.RawMessage) bool {
	ending := resultExt
	if r.call.Options.JQ == "" {
		ending = "." + r.answer.Tool + resultExt
	}
	return r.host.cfg.Sessions.keep(r.call.Session, r.answer.CallID, ending, data) != ""
}

// keepBinary stores the binary parts of the answer, puts a [File] in the place of each, and reports whether there were
// any. What cannot be stored stays as it is.
func (r *run) keepBinary() bool {
	if !r.call.KeepBinary {
		return false
	}
	count := 0
	keep := func(encoded, media string) *File {
		content, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(content) == 0 || r.redactor.redactAll(string(content)) != string(content) {
			return nil
		}
		count++
		media = MediaType(content, media)
		ending := extensionOf(media)
		if count > 1 {
			ending = "-" + strconv.Itoa(count) + ending
		}
		path := r.host.cfg.Sessions.keep(r.call.Session, r.answer.CallID, ending, content)
		if path == "" {
			return nil
		}
		return &File{Out: path, Bytes: int64(len(content)), MIME: media}
	}
	r.answer.Data = manifest.ReplaceBinary(r.answer.Data, r.answer.Returns, func(encoded, media string) any {
		if file := keep(encoded, media); file != nil {
			return file
		}
		return nil
	})
	for i := range r.answer.Content {
		c := &r.answer.Content[i]
		if file := keep(c.Data, c.MIME); c.Data != "" && file != nil {
			c.Data, c.MIME, c.URI = "", file.MIME, file.Out
		}
	}
	return count > 0
}

// MediaType returns the media type of content by its beginning, of which 512 bytes are enough. Where that does not
// tell, it is the declared one, because a caller may have chosen another format than the schema of a tool names. The
// type of unknown content is application/octet-stream.
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

// extensionOf returns the extension of files of a media type, ".bin" for one that is not frequent.
func extensionOf(media string) string {
	switch media {
	case "image/png", "image/webp", "image/gif", "audio/mpeg", "audio/wav", "application/pdf":
		_, name, _ := strings.Cut(media, "/")
		return "." + strings.Replace(name, "mpeg", "mp3", 1)
	case "image/jpeg":
		return ".jpg"
	}
	return ".bin"
}
