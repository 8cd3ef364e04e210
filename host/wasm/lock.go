package wasm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/internal/durable"
	"github.com/parley-tools/parley/manifest"
)

const (
	lockVersion  = 1
	digestPrefix = "sha256:"
)

// lockFile is the form of lock.json.
type lockFile struct {
	Version int     `json:"version"`
	Plugins []Entry `json:"plugins"`
}

// readLock reads lock.json; one that does not exist holds nothing. A damaged one is refused rather than
// taken for an empty one: the next install would throw away everything that it named.
func readLock(path string) ([]Entry, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &host.Error{Code: host.Unavailable, Cause: err,
			Message: fmt.Sprintf("cannot read the list of installed plugins: %v", err), Next: []string{"parley doctor"}}
	}
	entries, err := decodeLock(string(data))
	if err == nil {
		return entries, nil
	}
	dir := filepath.Dir(path)
	return nil, &host.Error{Code: host.ConfigError, Cause: err,
		Message: fmt.Sprintf("the list of installed plugins is damaged: %s: %v; move the folder away, then install each plugin again from NAME/DIGEST in it", path, err),
		Next: []string{
			"mv " + manifest.ShellQuote(dir) + " " + manifest.ShellQuote(dir+".damaged"),
			"parley plugin install " + manifest.ShellQuote(dir+".damaged") + "/NAME/DIGEST",
		}}
}

func decodeLock(data string) ([]Entry, error) {
	entries, ok := decodeLines(data)
	if !ok {
		var l lockFile
		if err := json.Unmarshal([]byte(data), &l); err != nil {
			return nil, err
		}
		if l.Version != lockVersion {
			return nil, fmt.Errorf("it has version %d, expected %d", l.Version, lockVersion)
		}
		entries = l.Plugins
	}
	seen := make(map[string]bool, len(entries))
	for i := range entries {
		e := &entries[i]
		key := strings.ToLower(e.Name)
		switch {
		case !isPluginName(e.Name): // names and digests become paths
			return nil, fmt.Errorf("%q is no plugin name", e.Name)
		case !strings.HasPrefix(e.Digest, digestPrefix) || !isHash(hexOf(e.Digest)):
			return nil, fmt.Errorf("%q is no digest", e.Digest)
		case seen[key]:
			return nil, fmt.Errorf("it names %q twice", e.Name)
		}
		seen[key] = true
	}
	return entries, nil
}

// The frame of a lock that encodeLock wrote.
const (
	lockHead = `{"version":1,"plugins":[` + "\n"
	lockTail = "\n]}\n"
)

// decodeLines reads a lock in the very form in which encodeLock writes it; anything else is left to
// encoding/json, which takes many times as long: 4.6 ms for 1,000 plugins, at every start of the host.
func decodeLines(data string) (entries []Entry, ok bool) {
	rest, ok := strings.CutPrefix(data, lockHead)
	if !ok {
		return nil, false
	}
	if rest, ok = strings.CutSuffix(rest, lockTail); !ok {
		return nil, false
	}
	entries = make([]Entry, 0, strings.Count(rest, "\n")+1)
	for more := true; more; {
		var line string
		line, rest, more = strings.Cut(rest, ",\n")
		e, ok := decodeLine(line)
		if !ok {
			e = Entry{}
			if json.Unmarshal([]byte(line), &e) != nil {
				return nil, false
			}
		}
		entries = append(entries, e)
	}
	return entries, true
}

func decodeLine(line string) (Entry, bool) {
	f := lineFields{rest: line}
	e := Entry{
		Name: f.text(`{"name":`), Version: f.text(`,"version":`), Kind: f.text(`,"kind":`), Brief: f.text(`,"brief":`),
		Groups: int(f.number(`,"groups":`)), Tools: int(f.number(`,"tools":`)),
		Digest: f.text(`,"digest":`), WasmSize: f.number(`,"wasm_size":`),
		ManifestSHA256: f.text(`,"manifest_sha256":`), Source: f.text(`,"source":`),
	}
	installed, err := time.Parse(time.RFC3339, f.text(`,"installed_at":`))
	e.InstalledAt = installed
	if strings.HasPrefix(f.rest, `,"signer":`) {
		e.Signer = f.text(`,"signer":`)
	}
	return e, err == nil && !f.failed && f.rest == "}"
}

// lineFields takes plain members off a line of JSON: strings without escapes, and numbers of at most 15 digits.
type lineFields struct {
	rest   string
	failed bool
}

func (f *lineFields) skipKey(key string) string {
	rest, ok := strings.CutPrefix(f.rest, key)
	f.failed = f.failed || !ok || rest == ""
	if f.failed {
		return " "
	}
	return rest
}

func (f *lineFields) text(key string) string {
	s := f.skipKey(key)
	for i := 1; s[0] == '"' && i < len(s) && s[i] != '\\' && s[i] >= ' '; i++ {
		if s[i] == '"' {
			f.rest = s[i+1:]
			f.failed = f.failed || !utf8.ValidString(s[1:i])
			return s[1:i]
		}
	}
	f.failed = true
	return ""
}

func (f *lineFields) number(key string) int64 {
	s := f.skipKey(key)
	var n int64
	i := 0
	for ; i < len(s) && i < 15 && s[i] >= '0' && s[i] <= '9'; i++ {
		n = n*10 + int64(s[i]-'0')
	}
	if i == 0 || s[0] == '0' && i > 1 {
		f.failed = true
	}
	f.rest = s[i:]
	return n
}

// encodeLock writes one plugin a line, by name, so that two states of a store can be compared with diff.
func encodeLock(entries []Entry) ([]byte, error) {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.Name, b.Name))
	})
	var b bytes.Buffer
	b.WriteString(lockHead)
	for i, e := range entries {
		if i > 0 {
			b.WriteString(",\n")
		}
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1) // its line break
	}
	b.WriteString(lockTail)
	return b.Bytes(), nil
}

// wrapSegment makes the content of a segment file: a line with the digest of the plugin that it was made for, then the
// segment, which has a version and a checksum of its own.
func wrapSegment(digest string, segment []byte) []byte {
	return append([]byte(digest+"\n"), segment...)
}

func unwrapSegment(digest string, file []byte) ([]byte, error) {
	segment, ok := bytes.CutPrefix(file, []byte(digest+"\n"))
	if !ok {
		return nil, errors.New("not made for this version of the plugin")
	}
	return segment, host.SegmentUsable(segment)
}

// writeFile puts a file in place whole or not at all, and makes it last. Its writers are serialised by the
// guard of the store, so that one name for the unfinished file is enough.
func writeFile(path string, data []byte) (err error) {
	temp := path + tempSuffix
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(temp)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// makeDir makes a folder with all those above it, and makes each new one last.
func makeDir(path string) error {
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return nil
		}
		return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil && !isDir(path) { // another process may have been first
		return err
	}
	return durable.SyncDir(parent)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readDir lists a folder, as empty if it cannot be read: nothing in it is used then.
func readDir(path string) []fs.DirEntry {
	entries, _ := os.ReadDir(path)
	return entries
}

// isPluginName tells whether a name has the form of a plugin's, which no path but a plain file name has.
func isPluginName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '_' && c != '-') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

func hexOf(digest string) string { return strings.TrimPrefix(digest, digestPrefix) }
