package store

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
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/manifest"
)

const (
	lockVersion  = 1
	digestPrefix = "sha256:"
	maxLock      = 64 << 20 // bytes
)

// lockFile is the content of lock.json.
type lockFile struct {
	Version int     `json:"version"`
	Plugins []Entry `json:"plugins"`
}

// readLock reads lock.json. A missing file has no entries. A damaged file is an error, because the next install would
// drop all entries if it counted as empty.
func readLock(path string) ([]Entry, error) {
	for _, dir := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path)} { // the data folder, plugins
		if err := protect.CheckFolder(dir); err != nil {
			return nil, host.Errorf(host.ConfigError, "installed plugins are not read: %v", err)
		}
	}
	data, err := protect.Read(path, maxLock)
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil && !errors.As(err, &pathErr):
		return nil, host.Errorf(host.ConfigError, "installed plugins are not read: %v", err)
	case err != nil:
		return nil, world.Failed(host.Unavailable, err, "cannot read the list of installed plugins: %v", err).
			WithSteps(step.Operator(step.OpDoctor))
	}
	entries, err := DecodeEntries(string(data))
	if err == nil {
		return entries, nil
	}
	dir := filepath.Dir(path)
	return nil, &host.Error{Code: host.ConfigError, Cause: err,
		Message: fmt.Sprintf("the list of installed plugins is damaged: %s: %v; move the folder away, then install each "+
			"plugin again from its NAME/DIGEST folder", path, err),
		Steps: []step.Step{
			step.Operator(step.OpSystem, "mv", dir, dir+".damaged"),
			step.Operator(step.OpPluginInstall, filepath.Join(dir+".damaged", "NAME", "DIGEST")),
		}}
}

// DecodeEntries reads a lock file as [EncodeEntries] writes it, or any other form of the same JSON.
func DecodeEntries(data string) ([]Entry, error) {
	entries, ok := decodeLines(data)
	if !ok {
		var l lockFile
		if err := json.Unmarshal([]byte(data), &l); err != nil {
			return nil, err
		}
		if l.Version != lockVersion {
			return nil, fmt.Errorf("version %d, expected %d", l.Version, lockVersion)
		}
		entries = l.Plugins
	}
	seen := make(map[string]bool, len(entries))
	for i := range entries {
		e := &entries[i]
		e.Kind = manifest.CurrentKind(e.Kind)
		key := strings.ToLower(e.Name)
		if err := e.check(); err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, fmt.Errorf("%q is listed twice", e.Name)
		}
		seen[key] = true
	}
	return entries, nil
}

// check returns an error if the name or a digest is invalid, because they become paths.
func (e *Entry) check() error {
	switch {
	case !isPluginName(e.Name):
		return fmt.Errorf("%q is not a valid plugin name", e.Name)
	case !strings.HasPrefix(e.Digest, digestPrefix) || !isHash(hexOf(e.Digest)):
		return fmt.Errorf("%q is not a valid digest", e.Digest)
	}
	return nil
}

// DecodeEntry reads a plugin's line of a lock file from [EncodeEntries].
func DecodeEntry(line []byte) (Entry, error) {
	e, ok := decodeLine(string(line))
	if !ok {
		e = Entry{}
		if err := json.Unmarshal(line, &e); err != nil {
			return e, err
		}
	}
	e.Kind = manifest.CurrentKind(e.Kind)
	return e, e.check()
}

// Beginning and end of a lock file from EncodeEntries.
const (
	lockHead = `{"version":1,"plugins":[` + "\n"
	lockTail = "\n]}\n"
)

// decodeLines reads a lock file in exactly the form that EncodeEntries writes. ok is false for any other form, which
// is left to encoding/json. That is many times slower: 4.6 ms for 1,000 plugins, at every start of the host.
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
	for _, optional := range []struct {
		key  string
		into *string
	}{{`,"signer":`, &e.Signer}, {`,"owner":`, &e.Owner}, {`,"displaced":`, &e.ReplacedOwner}, {`,"engine":`, &e.Engine},
		{`,"tools_sha256":`, &e.ToolsSHA256}} {
		if strings.HasPrefix(f.rest, optional.key) {
			*optional.into = f.text(optional.key)
		}
	}
	return e, err == nil && !f.failed && f.rest == "}"
}

// lineFields reads plain members from a line of JSON: strings without escapes, and numbers of at most 15 digits.
// The first error sets failed.
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

// EncodeEntries writes one line per plugin, sorted by name, so that two states of a store can be compared with diff.
func EncodeEntries(entries []Entry) ([]byte, error) {
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
		line, err := manifest.Marshal(e)
		if err != nil {
			return nil, err
		}
		b.Write(line)
	}
	b.WriteString(lockTail)
	return b.Bytes(), nil
}

// wrapSegment returns the content of a segment file: a line with the digest of the plugin, then the segment, which
// has its own version and checksum.
func wrapSegment(digest string, segment []byte) []byte {
	return append([]byte(digest+"\n"), segment...)
}

func unwrapSegment(digest string, file []byte) ([]byte, error) {
	seg, ok := bytes.CutPrefix(file, []byte(digest+"\n"))
	if !ok {
		return nil, errors.New("not made for this version of the plugin")
	}
	return seg, segment.Check(seg)
}

// writeFile writes a file atomically and durably. The store's guard serializes writers, so one name for the
// temporary file is enough.
func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path+TempSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return durable.Rename(f, path, data)
}

// makeDir creates a folder and its parents durably.
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
	if err := os.Mkdir(path, 0o755); err != nil && !isDir(path) { // another process may have created it
		return err
	}
	return durable.SyncDir(parent)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// ReadDir lists a folder. If the folder cannot be read, the list is empty.
func ReadDir(path string) []fs.DirEntry {
	entries, _ := os.ReadDir(path)
	return entries
}

// isPluginName reports whether s is a valid plugin name. Every valid name is a plain file name.
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
