package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// Names of the files in a store. A plugin's files lie in NAME/DIGEST, and its signature beside its wasm (see signatureSuffix).
const (
	lockName     = "lock.json"
	guardName    = ".guard" // held while the store is changed; says nothing by its content
	wasmName     = "plugin.wasm"
	manifestName = "manifest.json"
	segmentName  = "segment"
	tempSuffix   = ".tmp"
)

// guardWait bounds how long one change of a store waits for another. An install takes well under a second.
const guardWait = 10 * time.Second

// Store keeps the installed plugins in one folder: lock.json says which they are, and NAME/DIGEST/ holds
// the files of each. The lock is replaced whole by a rename, so it is the only thing that commits a change:
// whenever a process dies, the store is in its old or in its new state, and what the lock does not name is
// ignored until the next install removes it.
//
// A version that was replaced stays on disk until the next change of the store, so that a call which began
// before can end on the version it began with.
//
// All errors are *host.Error.
type Store struct {
	dir   string
	debug func(string)
	wait  time.Duration
}

// Entry is one installed plugin as lock.json holds it: all that a list needs, without opening any other file.
type Entry struct {
	Name           string    `json:"name"`
	Version        string    `json:"version"`
	Kind           string    `json:"kind"`
	Brief          string    `json:"brief"`
	Groups         int       `json:"groups"`
	Tools          int       `json:"tools"`
	Digest         string    `json:"digest"` // as Digest returns it
	WasmSize       int64     `json:"wasm_size"`
	ManifestSHA256 string    `json:"manifest_sha256"` // so that a list of tools need not read the wasm to trust the manifest
	Source         string    `json:"source"`          // the path it came from, absolute
	InstalledAt    time.Time `json:"installed_at"`
	Signer         string    `json:"signer,omitempty"` // the key whose signature fitted when it was installed; says nothing of trust
}

// OpenStore returns the store in the folder dir. It touches nothing: a folder that does not exist is an
// empty store, and the first install makes it. debug takes lines for whoever looks for a cause; it may be nil.
func OpenStore(dir string, debug func(string)) *Store {
	return &Store{dir: dir, debug: debug, wait: guardWait}
}

// Digest names the content of a plugin: "sha256:" and the hash, in hex, over both parts, each with its
// length (8 bytes, big endian) before it, the manifest first.
func Digest(wasm, manifestJSON []byte) string {
	h := sha256.New()
	for _, part := range [][]byte{manifestJSON, wasm} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write(part)
	}
	return digestPrefix + hex.EncodeToString(h.Sum(nil))
}

// Info is the entry as a list of plugins shows it.
func (e Entry) Info() host.Info {
	return host.Info{Name: e.Name, Version: e.Version, Kind: e.Kind, Brief: e.Brief,
		Groups: e.Groups, Tools: e.Tools, Digest: e.Digest}
}

// List returns the installed plugins by name. It reads lock.json alone; only with a debug function does it
// look at the folders, to say what it ignores.
func (s *Store) List() ([]Entry, error) {
	entries, err := readLock(s.lockPath())
	if err != nil {
		return nil, err
	}
	if s.debug != nil {
		s.forEachUnlisted(entries, func(path string) { s.logf("%s: ignored, %s does not name it", path, lockName) })
	}
	return entries, nil
}

// Find returns an installed plugin by its name without regard to case: 83 with what may have been meant.
func (s *Store) Find(name string) (Entry, error) {
	entries, err := readLock(s.lockPath())
	if err != nil {
		return Entry{}, err
	}
	at := indexOf(entries, name)
	if at < 0 {
		return Entry{}, notInstalled(name, entries)
	}
	return entries[at], nil
}

// Replaces returns the entry that installing a plugin would replace, nil if there is none. An older version in place of a
// newer one is refused (87) unless downgrade.
func (s *Store) Replaces(c *Candidate, downgrade bool) (*Entry, error) {
	entries, err := readLock(s.lockPath())
	if err != nil {
		return nil, err
	}
	return entryToReplace(entries, c, downgrade)
}

func entryToReplace(entries []Entry, c *Candidate, downgrade bool) (*Entry, error) {
	at := indexOf(entries, c.Manifest.Name)
	if at < 0 {
		return nil, nil
	}
	old := entries[at]
	if old.Digest != c.Digest && !downgrade && older(c.Manifest.Version, old.Version) {
		return nil, host.Errorf(host.Integrity, "%s %s is installed, and %s holds the older version %s: it takes its place only with --downgrade; nothing was changed",
			old.Name, manifest.CleanLine(old.Version), c.Path, manifest.CleanLine(c.Manifest.Version)).
			WithNext("parley plugin install " + manifest.ShellQuote(c.Path) + " --downgrade")
	}
	return &old, nil
}

// Install puts a plugin into the store and returns its entry, together with the entry that it replaced: nil
// if no plugin had the name, the very same entry if nothing had to be done. Names are compared without regard to
// case. What Replaces refuses is refused.
func (s *Store) Install(c *Candidate, downgrade bool) (now Entry, before *Entry, err error) {
	if err := checkName(c.Manifest.Name); err != nil {
		return Entry{}, nil, err
	}
	entry, signature := newEntry(c), c.Signature
	err = s.update(func(entries []Entry) (_ []Entry, err error) {
		if before, err = entryToReplace(entries, c, downgrade); err != nil {
			return nil, err
		}
		if before == nil {
			return append(entries, entry), s.writePlugin(entry, c, signature)
		}
		if before.Digest == entry.Digest {
			if installed, err := s.Signature(*before); err == nil && (signature == nil || entry.Signer == "" && before.Signer != "") {
				entry.Signer, signature = before.Signer, installed // a signature goes only for one that says more
			}
			if s.isIntact(*before, signature) && before.Signer == entry.Signer {
				entry = *before
				return nil, nil
			}
		}
		entries[indexOf(entries, entry.Name)] = entry
		return entries, s.writePlugin(entry, c, signature)
	}, nil)
	if err != nil {
		return Entry{}, nil, err
	}
	return entry, before, nil
}

// Remove takes a plugin out of the store, by its name without regard to case, and returns what it was.
func (s *Store) Remove(name string) (Entry, error) {
	if _, err := s.Find(name); err != nil {
		return Entry{}, err // before anything is written: a store that cannot be written says not_found too
	}
	var removed Entry
	err := s.update(func(entries []Entry) ([]Entry, error) {
		at := indexOf(entries, name)
		if at < 0 {
			return nil, notInstalled(name, entries)
		}
		removed = entries[at]
		return append(entries[:at], entries[at+1:]...), nil
	}, func() { s.discard(removed) })
	if err != nil {
		return Entry{}, err
	}
	return removed, nil
}

// Source returns what runs an installed plugin. Nothing is read before it is asked for. A manifest or a wasm that is not the
// installed one is refused (87), with how the manifest differs; a search segment that does not fit is built anew, and kept if
// the store can be written at that moment.
func (s *Store) Source(e Entry) Source {
	manifestJSON := sync.OnceValues(func() ([]byte, error) { return s.readManifest(e) })
	parsed := sync.OnceValues(func() (*manifest.Manifest, error) {
		data, err := manifestJSON()
		if err != nil {
			return nil, err
		}
		return s.parse(e, data)
	})
	return Source{
		Info:     e.Info(),
		Manifest: parsed,
		Wasm: func() ([]byte, error) {
			data, err := manifestJSON()
			if err != nil {
				return nil, err
			}
			return s.readWasm(e, data)
		},
		Segment: func() ([]byte, error) { return s.segment(e, parsed) },
	}
}

// update runs one change of the store under its guard: edit gets the entries and returns them as they shall
// be, or nil to leave everything as it is; committed, if not nil, runs when that is done. Leftovers of
// changes that were killed are removed first, which also frees the room they take.
func (s *Store) update(edit func([]Entry) ([]Entry, error), committed func()) error {
	if err := makeDir(s.dir); err != nil {
		return s.writeError(err)
	}
	unlock, err := s.lock(s.wait)
	if err != nil {
		return err
	}
	defer unlock()
	entries, err := readLock(s.lockPath())
	if err != nil {
		return err
	}
	s.sweep(entries)
	edited, err := edit(entries)
	if err == nil && edited != nil {
		err = s.writeLock(edited)
	}
	if err != nil {
		if entries, lockErr := readLock(s.lockPath()); lockErr == nil {
			s.sweep(entries) // what was placed in vain takes room that may be short
		}
		return err
	}
	if committed != nil {
		committed()
	}
	if edited != nil {
		s.pruneApproved(edited)
	}
	return nil
}

func (s *Store) writeLock(entries []Entry) error {
	data, err := encodeLock(entries)
	if err != nil {
		return host.Errorf(host.Internal, "%s: %v", s.lockPath(), err)
	}
	if err := writeFile(s.lockPath(), data); err != nil {
		return s.writeError(err)
	}
	return nil
}

// lock takes the guard of the store; it is given back by the function returned, or by the death of the process.
func (s *Store) lock(wait time.Duration) (unlock func(), err error) {
	path := filepath.Join(s.dir, guardName)
	guard := flock.New(path, flock.SetPermissions(0o644))
	taken, err := guard.TryLock()
	if err == nil && !taken && wait > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		if taken, err = guard.TryLockContext(ctx, 20*time.Millisecond); errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
	}
	switch {
	case err != nil:
		return nil, s.writeError(err)
	case !taken:
		return nil, host.Errorf(host.Busy, "another install or remove has held %s for %v; nothing was changed", path, wait).
			WithNext("parley plugin list")
	}
	return func() { _ = guard.Unlock() }, nil
}

// writePlugin writes the files of a plugin and makes them last before the lock may name them.
func (s *Store) writePlugin(e Entry, c *Candidate, signature []byte) error {
	dir := s.pluginDir(e)
	if err := makeDir(dir); err != nil {
		return s.writeError(err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{wasmName, c.Wasm}, {manifestName, c.ManifestJSON}, {segmentName, wrapSegment(e.Digest, buildSegment(c.Manifest))}} {
		if err := writeFile(filepath.Join(dir, f.name), f.data); err != nil {
			return s.writeError(err)
		}
	}
	if err := s.writeSignature(e, signature); err != nil {
		return s.writeError(err)
	}
	if err := s.saveApproved(e, c.ManifestJSON); err != nil {
		return s.writeError(err)
	}
	return nil
}

// isIntact tells whether the files of an installed plugin are still what was installed and the signature is the one given, so
// that installing it again mends a damaged one.
func (s *Store) isIntact(e Entry, signature []byte) bool {
	c, err := s.Open(e)
	return err == nil && bytes.Equal(c.Signature, signature)
}

// discard removes the folder of a plugin that is not installed, and the folder above it if nothing is left in that.
func (s *Store) discard(e Entry) {
	if err := os.RemoveAll(s.pluginDir(e)); err != nil {
		s.logf("%v: left for the next install to remove", err)
	}
	os.Remove(filepath.Join(s.dir, e.Name)) // fails unless empty, which is what is wanted
}

// sweep removes what the lock does not name: what killed installs left, and versions that were replaced.
func (s *Store) sweep(entries []Entry) {
	s.forEachUnlisted(entries, func(path string) {
		s.logf("%s: removed, %s does not name it", path, lockName)
		if err := os.RemoveAll(path); err != nil {
			s.logf("%v", err)
		}
		if parent := filepath.Dir(path); parent != s.dir {
			os.Remove(parent) // fails unless empty
		}
	})
}

// forEachUnlisted calls fn for each path below the store that has a form of ours and is named by no entry. What
// has another form was put there by somebody else and is not touched.
func (s *Store) forEachUnlisted(entries []Entry, fn func(path string)) {
	named := make(map[string]bool, len(entries))
	for _, e := range entries {
		named[strings.ToLower(e.Name)+"/"+hexOf(e.Digest)] = true
	}
	for _, top := range readDir(s.dir) {
		path := filepath.Join(s.dir, top.Name())
		if !top.IsDir() {
			if top.Name() == lockName+tempSuffix {
				fn(path)
			}
			continue
		}
		for _, sub := range readDir(path) {
			if sub.IsDir() && isHash(sub.Name()) && !named[strings.ToLower(top.Name())+"/"+sub.Name()] {
				fn(filepath.Join(path, sub.Name()))
			}
		}
	}
}

func (s *Store) readManifest(e Entry) ([]byte, error) {
	path := filepath.Join(s.pluginDir(e), manifestName)
	data, err := s.readPart(e, "manifest", path, maxManifest)
	if err != nil {
		return nil, err
	}
	if hashOf(data) != e.ManifestSHA256 {
		return nil, s.integrityError(e, "manifest", path, data)
	}
	return data, nil
}

// parse reads the manifest of an installed plugin, which must be the one that lock.json describes.
func (s *Store) parse(e Entry, manifestJSON []byte) (*manifest.Manifest, error) {
	m, err := manifest.Load(manifestJSON)
	if err != nil {
		return nil, &host.Error{Code: host.InvalidPlugin, Cause: err,
			Message: fmt.Sprintf("the manifest of %s cannot be read by this host: %v", e.Name, err)}
	}
	if d := entryFromManifest(m); d.Name != e.Name || d.Version != e.Version || d.Kind != e.Kind || d.Brief != e.Brief || d.Groups != e.Groups || d.Tools != e.Tools {
		return nil, host.Errorf(host.Integrity, "%s describes %s %s otherwise than its manifest does; it was not used. Install the plugin again if you trust where it comes from",
			s.lockPath(), e.Name, manifest.CleanLine(e.Version)).WithNext(reinstall(e))
	}
	return m, nil
}

// readWasm reads the wasm once: what is returned is what was hashed.
func (s *Store) readWasm(e Entry, manifestJSON []byte) ([]byte, error) {
	path := filepath.Join(s.pluginDir(e), wasmName)
	data, err := s.readPart(e, "wasm", path, maxWasm)
	if err != nil {
		return nil, err
	}
	if Digest(data, manifestJSON) != e.Digest {
		return nil, s.integrityError(e, "wasm", path, manifestJSON)
	}
	return data, nil
}

func (s *Store) readPart(e Entry, what, path string, limit int64) ([]byte, error) {
	data, err := readBounded(path, limit)
	var pathErr *fs.PathError
	switch {
	case errors.As(err, &pathErr):
		return nil, s.readError(e, err)
	case err != nil: // no regular file, or too large: nothing that was ever installed
		return nil, s.integrityError(e, what, path, nil)
	}
	return data, nil
}

// segment returns the stored search segment, or builds it from the manifest.
func (s *Store) segment(e Entry, parsed func() (*manifest.Manifest, error)) ([]byte, error) {
	path := filepath.Join(s.pluginDir(e), segmentName)
	stored, loadErr := os.ReadFile(path)
	if loadErr == nil {
		var segment []byte
		if segment, loadErr = unwrapSegment(e.Digest, stored); loadErr == nil {
			return segment, nil
		}
	}
	m, err := parsed()
	if err != nil {
		return nil, err
	}
	built := buildSegment(m)
	s.logf("%s: rebuilt: %v", path, loadErr)
	s.saveSegment(e, path, built)
	return built, nil
}

// saveSegment writes a rebuilt segment back if nobody changes the store just now. It matters to speed alone.
func (s *Store) saveSegment(e Entry, path string, segment []byte) {
	unlock, err := s.lock(0)
	if err != nil {
		s.logf("%s: not kept: %v", path, err)
		return
	}
	defer unlock()
	if err := writeFile(path, wrapSegment(e.Digest, segment)); err != nil {
		s.logf("%s: not kept: %v", path, err)
	}
}

func (s *Store) lockPath() string { return filepath.Join(s.dir, lockName) }

func (s *Store) pluginDir(e Entry) string { return filepath.Join(s.dir, e.Name, hexOf(e.Digest)) }

func (s *Store) logf(format string, args ...any) {
	if s.debug != nil {
		s.debug(fmt.Sprintf(format, args...))
	}
}

func (s *Store) writeError(err error) error {
	return &host.Error{Code: host.Unavailable, Cause: err,
		Message: fmt.Sprintf("cannot write the folder of installed plugins: %v; what was installed before is as it was", err),
		Next:    []string{"parley doctor"}}
}

// readError says why a file of an installed plugin could not be read: gone, replaced meanwhile, or not readable.
func (s *Store) readError(e Entry, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return &host.Error{Code: host.Unavailable, Cause: err, Message: fmt.Sprintf("cannot read plugin %s: %v", e.Name, err),
			Next: []string{"parley doctor"}}
	}
	if now, lockErr := s.Find(e.Name); lockErr != nil || now.Digest != e.Digest {
		return &host.Error{Code: host.Unavailable, Cause: err,
			Message: fmt.Sprintf("plugin %s %s was replaced or removed while it was used; run it again", e.Name, e.Version),
			Next:    []string{"parley plugin list"}}
	}
	if !isDir(s.pluginDir(e)) {
		return &host.Error{Code: host.Integrity, Cause: err, Next: []string{reinstall(e)},
			Message: fmt.Sprintf("%s names a build of %s that is not there: %s; one of them was changed. Install the plugin again", s.lockPath(), e.Name, e.Digest)}
	}
	return &host.Error{Code: host.InvalidPlugin, Cause: err,
		Message: fmt.Sprintf("a file of plugin %s is gone: %v; install it again", e.Name, err), Next: []string{reinstall(e)}}
}

func reinstall(e Entry) string { return "parley plugin install " + manifest.ShellQuote(e.Source) }

func notInstalled(name string, entries []Entry) error {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	err := host.Errorf(host.NotFound, "no plugin %q is installed", manifest.CleanLine(name)).WithNext("parley plugin list")
	for _, n := range schema.Nearest(name, names, 3) {
		err.DidYouMean = append(err.DidYouMean, host.Suggestion(n))
	}
	return err
}

// checkName refuses a name that a plugin cannot have: one that could never be reached, or leads out of the store.
func checkName(name string) error {
	if !isPluginName(name) {
		return host.Errorf(host.InvalidPlugin, "%q is no plugin name: expected a letter, then letters, digits, _ and -", name)
	}
	if manifest.Reserved(name) {
		return host.Errorf(host.AlreadyExists, "a plugin cannot be named %q: the word is one of Parley's own; rename it in its manifest", name).
			WithNext("parley --help")
	}
	return nil
}

func newEntry(c *Candidate) Entry {
	e := entryFromManifest(c.Manifest)
	e.Digest, e.WasmSize, e.ManifestSHA256 = Digest(c.Wasm, c.ManifestJSON), int64(len(c.Wasm)), hashOf(c.ManifestJSON)
	e.Source, e.InstalledAt, e.Signer = c.Path, time.Now().UTC().Truncate(time.Second), c.Signer
	return e
}

// entryFromManifest fills in what an entry says of a manifest.
func entryFromManifest(m *manifest.Manifest) Entry {
	return Entry{Name: m.Name, Version: m.Version, Kind: m.Kind, Brief: manifest.CleanLine(m.Docs.Brief), Groups: len(m.Groups), Tools: len(m.Tools)}
}

func buildSegment(m *manifest.Manifest) []byte { return host.BuildSegment(m.Name, host.SearchDocs(m)) }

func indexOf(entries []Entry, name string) int {
	for i := range entries {
		if strings.EqualFold(entries[i].Name, name) {
			return i
		}
	}
	return -1
}
