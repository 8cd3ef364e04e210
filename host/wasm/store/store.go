// Package store stores the installed plugins of a host, and reads plugins that are to be installed.
package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Names of the files in a store. The files of a plugin are in NAME/DIGEST, with its signature next to its wasm (see
// signatureSuffix).
const (
	lockName     = "lock.json"
	guardName    = ".guard" // locked while the store is changed; its content has no meaning
	wasmName     = "plugin.wasm"
	manifestName = "manifest.json"
	segmentName  = "segment"
	TempSuffix   = ".tmp"
)

// guardWait bounds how long one change of a store waits for another. An install takes well under a second.
const guardWait = 10 * time.Second

// Store keeps the installed plugins in one folder. lock.json lists them, and NAME/DIGEST/ holds the files of each.
// The lock file is replaced atomically by a rename, and only that commits a change: if a process dies at any moment,
// the store is in its old or in its new state. Everything that the lock file does not list is ignored until the next
// change removes it.
//
// A version that was replaced stays on disk until the next change of the store, so that a call in progress can end
// on the version with which it began.
//
// All errors are *host.Error.
type Store struct {
	Dir   string
	debug func(string)
	Wait  time.Duration
}

// Entry is one installed plugin in lock.json. It has everything that a list needs, so that no other file has to be
// opened.
type Entry struct {
	Name           string    `json:"name"`
	Version        string    `json:"version"`
	Kind           string    `json:"kind"`
	Brief          string    `json:"brief"`
	Groups         int       `json:"groups"`
	Tools          int       `json:"tools"`
	Digest         string    `json:"digest"` // see Digest
	WasmSize       int64     `json:"wasm_size"`
	ManifestSHA256 string    `json:"manifest_sha256"` // lets a list of tools trust the manifest without reading the wasm
	Source         string    `json:"source"`          // the path it was installed from, absolute
	InstalledAt    time.Time `json:"installed_at"`
	// the key of the valid signature at install time; does not imply trust
	Signer string `json:"signer,omitempty"`
	// Owner is the owner of the name, as in [host.Info]. It is "" in old lock files, where the signer owns the name.
	Owner string `json:"owner,omitempty"`
	// ReplacedOwner is the identity of the previous plugin of that name, as in [host.Info].
	ReplacedOwner string `json:"displaced,omitempty"`
	// Engine is the digest of the engine that a plugin of kind script runs on.
	Engine string `json:"engine,omitempty"`
	// ToolsSHA256 is the hash of the index of its tools; "" in old lock files.
	ToolsSHA256 string `json:"tools_sha256,omitempty"`
}

// owner returns the owner of the name.
func (e Entry) owner() string { return cmp.Or(e.Owner, e.Signer, host.OwnerUnsigned) }

// Open returns the store in the folder dir. It does not access the folder: one that does not exist is an empty
// store, and the first install creates it. debug, if not nil, gets diagnostic lines.
func Open(dir string, debug func(string)) *Store {
	return &Store{Dir: dir, debug: debug, Wait: guardWait}
}

// Digest returns the identity of a plugin's content: "sha256:" and the hex hash of the manifest and the wasm, in
// this order, each preceded by its length (8 bytes, big endian).
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

// Info returns the entry as plugins are listed.
func (e Entry) Info() host.Info {
	return host.Info{Name: e.Name, Version: e.Version, Kind: e.Kind, Brief: e.Brief,
		Groups: e.Groups, Tools: e.Tools, Digest: e.Digest, Owner: e.owner(), ReplacedOwner: e.ReplacedOwner}
}

// List returns the installed plugins by name. It reads only lock.json. With a debug function it also reports what
// it ignores in the folders.
func (s *Store) List() ([]Entry, error) {
	entries, err := readLock(s.LockPath())
	if err != nil {
		return nil, err
	}
	if s.debug != nil {
		s.forEachUnlisted(entries, func(path string) { s.logf("%s: ignored, %s does not list it", path, lockName) })
	}
	return entries, nil
}

// Find returns an installed plugin by its name, ignoring case. If there is none, the error is not_found (83) with
// suggestions.
func (s *Store) Find(name string) (Entry, error) {
	entries, err := readLock(s.LockPath())
	if err != nil {
		return Entry{}, err
	}
	at := indexOf(entries, name)
	if at < 0 {
		return Entry{}, notInstalled(name, entries)
	}
	return entries[at], nil
}

// Replaces returns the entry that installing a plugin would replace, or nil if there is none. Replacing a newer
// version by an older one is refused (87) unless downgrade is set.
func (s *Store) Replaces(c *Candidate, downgrade bool) (*Entry, error) {
	entries, err := readLock(s.LockPath())
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
	if owner := NewEntry(c).owner(); old.Digest != c.Digest &&
		old.owner() != host.OwnerUnsigned && old.owner() != owner && !c.TakesName {
		return nil, NameTaken(c, old.owner())
	}
	if old.Digest != c.Digest && !downgrade && Older(c.Manifest.Version, old.Version) {
		return nil, host.Errorf(host.Integrity, "%s %s is installed and %s is the older version %s; use --downgrade to "+
			"replace it. Nothing was changed",
			old.Name, manifest.CleanLine(old.Version), c.Path, manifest.CleanLine(c.Manifest.Version)).
			WithSteps(step.Operator(step.OpPluginShow, old.Name))
	}
	return &old, nil
}

// NameTaken returns the error (84) for a plugin whose name belongs to another owner.
func NameTaken(c *Candidate, owner string) *host.Error {
	whose := "belongs to the signer " + owner
	if owner == host.OwnerShipped {
		whose = "belongs to a plugin that Parley ships"
	}
	name := c.Manifest.Name
	return host.Errorf(host.AlreadyExists, "the name %s %s, and %s has another owner; give the plugin another name, or "+
		"let it take the name with --replace %s. Nothing was changed", name, whose, c.Path, name).
		WithSteps(step.Operator(step.OpPluginShow, name))
}

// Install installs a plugin and returns its entry, and the entry that it replaced: nil if no plugin had the name, the
// same entry if nothing had to be done. Names are compared without regard to case. Errors are also those of
// [Store.Replaces].
func (s *Store) Install(c *Candidate, downgrade bool) (now Entry, before *Entry, err error) {
	if err := checkName(c.Manifest.Name); err != nil {
		return Entry{}, nil, err
	}
	entry, signature := NewEntry(c), c.Signature
	tools, err := encodeTools(c.Manifest, c.ManifestJSON)
	if err != nil {
		return Entry{}, nil, host.Errorf(host.Internal, "cannot index the tools of %s: %v", entry.Name, err)
	}
	entry.ToolsSHA256 = hashOf(tools)
	err = s.update(func(entries []Entry) (_ []Entry, err error) {
		if before, err = entryToReplace(entries, c, downgrade); err != nil {
			return nil, err
		}
		if before == nil {
			return append(entries, entry), s.writePlugin(entry, c, tools, signature)
		}
		if entry.ReplacedOwner = before.ReplacedOwner; before.Info().Identity() != entry.Info().Identity() {
			entry.ReplacedOwner = before.Info().Identity()
		}
		if before.Digest == entry.Digest {
			if before.owner() != host.OwnerUnsigned {
				entry.Owner = before.owner() // another signature of the same build does not change the owner of the name
			}
			if installed, err := s.Signature(*before); err == nil && (signature == nil || entry.Signer == "" &&
				before.Signer != "") {
				entry.Signer, signature = before.Signer, installed // a signature is only replaced by a better one
				entry.Owner = before.owner()
			}
			if s.isIntact(*before, signature) && before.Signer == entry.Signer &&
				before.Engine == entry.Engine && before.ToolsSHA256 == entry.ToolsSHA256 {
				entry = *before
				return nil, nil
			}
		}
		entries[indexOf(entries, entry.Name)] = entry
		return entries, s.writePlugin(entry, c, tools, signature)
	}, nil)
	if err != nil {
		return Entry{}, nil, err
	}
	return entry, before, nil
}

// Remove removes a plugin by its name, ignoring case, and returns its entry.
func (s *Store) Remove(name string) (Entry, error) {
	if _, err := s.Find(name); err != nil {
		return Entry{}, err // checked before anything is written, so that a read-only store reports not_found, too
	}
	var removed Entry
	err := s.update(func(entries []Entry) ([]Entry, error) {
		at := indexOf(entries, name)
		if at < 0 {
			return nil, notInstalled(name, entries)
		}
		removed = entries[at]
		return append(entries[:at], entries[at+1:]...), nil
	}, func() { s.Discard(removed) })
	if err != nil {
		return Entry{}, err
	}
	return removed, nil
}

// Source returns the parts of an installed plugin, which are read on demand. If a manifest or a wasm differs from the
// installed one, the error is integrity (87), with the difference of the manifests. A search segment that does not
// match is rebuilt, and saved if the store can be written at that moment.
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
		Discover: func(annotate func(*manifest.Manifest)) (*Discovery, error) { return s.discover(e, parsed, annotate) },
		Wasm: func() ([]byte, error) {
			data, err := manifestJSON()
			if err != nil {
				return nil, err
			}
			return s.readWasm(e, data)
		},
		Segment: func() ([]byte, error) { return s.segment(e, parsed) },
		File:    filepath.Join(s.pluginDir(e), wasmName),
		Engine:  e.Engine,
	}
}

// update makes one change to the store under its guard. edit gets the entries and returns the new ones, or nil to
// change nothing. committed, if not nil, runs after the commit. Leftovers of killed processes are removed first,
// which also frees disk space.
func (s *Store) update(edit func([]Entry) ([]Entry, error), committed func()) error {
	if err := makeDir(s.Dir); err != nil {
		return s.writeError(err)
	}
	unlock, err := s.Lock(s.Wait)
	if err != nil {
		return err
	}
	defer unlock()
	entries, err := readLock(s.LockPath())
	if err != nil {
		return err
	}
	s.Sweep(entries)
	edited, err := edit(entries)
	if err == nil && edited != nil {
		err = s.writeLock(edited)
	}
	if err != nil {
		if entries, lockErr := readLock(s.LockPath()); lockErr == nil {
			s.Sweep(entries) // the files just written are useless and occupy disk space, which may be scarce
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
	data, err := EncodeEntries(entries)
	if err != nil {
		return host.Errorf(host.Internal, "%s: %v", s.LockPath(), err)
	}
	if err := writeFile(s.LockPath(), data); err != nil {
		return s.writeError(err)
	}
	return nil
}

// Lock acquires the guard of the store. The guard is released by the returned function, or when the process ends.
func (s *Store) Lock(wait time.Duration) (unlock func(), err error) {
	path := filepath.Join(s.Dir, guardName)
	guard := protect.NewLock(path)
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
			WithSteps(step.Operator(step.OpPluginList))
	}
	return func() { _ = guard.Unlock() }, nil
}

// writePlugin writes and syncs the files of a plugin, before the lock file may list them.
func (s *Store) writePlugin(e Entry, c *Candidate, tools, signature []byte) error {
	dir := s.pluginDir(e)
	if err := makeDir(dir); err != nil {
		return s.writeError(err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{wasmName, c.Wasm}, {manifestName, c.ManifestJSON},
		{segmentName, wrapSegment(e.Digest, segment.Of(c.Manifest))}, {toolsName, tools}} {
		if err := writeFile(filepath.Join(dir, f.name), f.data); err != nil {
			return s.writeError(err)
		}
	}
	err := s.writeSignature(e, signature)
	if err == nil {
		err = s.saveApproved(e, c.ManifestJSON)
	}
	if err != nil {
		return s.writeError(err)
	}
	return nil
}

// isIntact reports whether the files of an installed plugin are unchanged and its signature equals the given one.
// If not, installing it again repairs it.
func (s *Store) isIntact(e Entry, signature []byte) bool {
	c, err := s.Open(e)
	return err == nil && bytes.Equal(c.Signature, signature) && s.index(e) != nil
}

// Discard removes the folder of a plugin that is no longer installed, and the folder above if it is empty.
func (s *Store) Discard(e Entry) {
	if err := os.RemoveAll(s.pluginDir(e)); err != nil {
		s.logf("%v: the next install removes it", err)
	}
	os.Remove(filepath.Join(s.Dir, e.Name)) // fails unless empty, as intended
}

// Sweep removes everything that entries do not list: leftovers of killed installs and replaced versions.
func (s *Store) Sweep(entries []Entry) {
	s.forEachUnlisted(entries, func(path string) {
		s.logf("%s: removed, %s does not list it", path, lockName)
		if err := os.RemoveAll(path); err != nil {
			s.logf("%v", err)
		}
		if parent := filepath.Dir(path); parent != s.Dir {
			os.Remove(parent) // fails unless empty
		}
	})
}

// forEachUnlisted calls fn for each path in the store that has the form of Parley's files but is in no entry. Other
// files do not belong to Parley and stay.
func (s *Store) forEachUnlisted(entries []Entry, fn func(path string)) {
	named := make(map[string]bool, len(entries))
	for _, e := range entries {
		named[strings.ToLower(e.Name)+"/"+hexOf(e.Digest)] = true
	}
	for _, top := range ReadDir(s.Dir) {
		path := filepath.Join(s.Dir, top.Name())
		if !top.IsDir() {
			if top.Name() == lockName+TempSuffix {
				fn(path)
			}
			continue
		}
		for _, sub := range ReadDir(path) {
			partial := top.Name() == approvedDir && strings.HasSuffix(sub.Name(), TempSuffix)
			unlisted := sub.IsDir() && isHash(sub.Name()) && !named[strings.ToLower(top.Name())+"/"+sub.Name()]
			if partial || unlisted {
				fn(filepath.Join(path, sub.Name()))
			}
		}
	}
}

func (s *Store) readManifest(e Entry) ([]byte, error) {
	path := filepath.Join(s.pluginDir(e), manifestName)
	data, err := s.readPart(e, "manifest", path, manifest.MaxSize)
	if err != nil {
		return nil, err
	}
	if hashOf(data) != e.ManifestSHA256 {
		return nil, s.integrityError(e, "manifest", path, data)
	}
	return data, nil
}

// parse parses the manifest of an installed plugin, which must match its entry in lock.json.
func (s *Store) parse(e Entry, manifestJSON []byte) (*manifest.Manifest, error) {
	m, err := manifest.Load(manifestJSON)
	if err != nil {
		return nil, world.Failed(host.InvalidPlugin, err, "this host cannot read the manifest of %s: %v", e.Name, err)
	}
	if !e.Describes(m) {
		return nil, host.Errorf(host.Integrity, "the entry of %[2]s %[3]s in %[1]s does not match its manifest; the "+
			"plugin was not used. Install it again if you trust its source",
			s.LockPath(), e.Name, manifest.CleanLine(e.Version)).WithSteps(reinstall(e))
	}
	return m, nil
}

// readWasm reads the wasm only once, so that the returned bytes are the hashed ones.
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
	data, err := protect.Read(path, limit)
	var pathErr *fs.PathError
	switch {
	case errors.As(err, &pathErr):
		return nil, s.readError(e, err)
	case err != nil: // not a regular file or too large, so it was never installed
		return nil, s.integrityError(e, what, path, nil)
	}
	return data, nil
}

// segment returns the stored search segment, or rebuilds it from the manifest.
func (s *Store) segment(e Entry, parsed func() (*manifest.Manifest, error)) ([]byte, error) {
	path := filepath.Join(s.pluginDir(e), segmentName)
	stored, loadErr := protect.Read(path, maxLock)
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
	built := segment.Of(m)
	s.logf("%s: rebuilt: %v", path, loadErr)
	s.saveSegment(e, path, built)
	return built, nil
}

// saveSegment saves a rebuilt segment, unless the store is being changed. A segment that is not saved only costs
// time.
func (s *Store) saveSegment(e Entry, path string, segment []byte) {
	unlock, err := s.Lock(0)
	if err != nil {
		s.logf("%s: not saved: %v", path, err)
		return
	}
	defer unlock()
	if err := writeFile(path, wrapSegment(e.Digest, segment)); err != nil {
		s.logf("%s: not saved: %v", path, err)
	}
}

// LockPath returns the path of lock.json, which changes with every change of the store.
func (s *Store) LockPath() string { return filepath.Join(s.Dir, lockName) }

func (s *Store) pluginDir(e Entry) string { return filepath.Join(s.Dir, e.Name, hexOf(e.Digest)) }

func (s *Store) logf(format string, args ...any) {
	if s.debug != nil {
		s.debug(fmt.Sprintf(format, args...))
	}
}

func (s *Store) writeError(err error) error {
	return world.Failed(host.Unavailable, err, "cannot write the folder of installed plugins: %v; installed plugins "+
		"are unchanged", err).WithSteps(step.Operator(step.OpDoctor))
}

// readError returns the error for a file of an installed plugin that is missing, was replaced meanwhile, or is not
// readable.
func (s *Store) readError(e Entry, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return world.Failed(host.Unavailable, err, "cannot read plugin %s: %v", e.Name, err).
			WithSteps(step.Operator(step.OpDoctor))
	}
	if now, lockErr := s.Find(e.Name); lockErr != nil || now.Digest != e.Digest {
		return world.Failed(host.Unavailable, err, "plugin %s %s was replaced or removed while it was used; run it again",
			e.Name, e.Version).WithSteps(step.Operator(step.OpPluginList))
	}
	if !isDir(s.pluginDir(e)) {
		return world.Failed(host.Integrity, err, "%s lists a build of %s that does not exist: %s; one of them was "+
			"changed. Install the plugin again", s.LockPath(), e.Name, e.Digest).WithSteps(reinstall(e))
	}
	return world.Failed(host.InvalidPlugin, err, "a file of plugin %s is missing: %v; install it again", e.Name, err).
		WithSteps(reinstall(e))
}

func reinstall(e Entry) step.Step { return step.Operator(step.OpPluginInstall, e.Source) }

func notInstalled(name string, entries []Entry) error {
	names := lists.Map(entries, func(e Entry) string { return e.Name })
	err := host.Errorf(host.NotFound, "no plugin %q is installed",
		manifest.CleanValue(name)).WithSteps(step.Operator(step.OpPluginList))
	err.DidYouMean = spelling.Nearest(name, names, 3)
	return err
}

// checkName refuses names that could not be called, or that would lead out of the store.
func checkName(name string) error {
	if !isPluginName(name) {
		return host.Errorf(host.InvalidPlugin, "%q is not a valid plugin name; expected a letter followed by letters, "+
			"digits, _ or -", name)
	}
	if manifest.Reserved(name) {
		return host.Errorf(host.AlreadyExists, "a plugin cannot be named %q: the name is reserved by Parley; rename the "+
			"plugin in its manifest", name).
			WithSteps(step.Operator(step.OpHelp))
	}
	return nil
}

// NewEntry returns the entry for a candidate that is installed now. [Store.Install] adds the hash of its index.
func NewEntry(c *Candidate) Entry {
	e := entryFromManifest(c.Manifest)
	e.Digest, e.WasmSize, e.ManifestSHA256 = Digest(c.Wasm, c.ManifestJSON), int64(len(c.Wasm)), hashOf(c.ManifestJSON)
	e.Source, e.InstalledAt, e.Signer = c.Path, time.Now().UTC().Truncate(time.Second), c.Signer
	e.Owner, e.ReplacedOwner, e.Engine = cmp.Or(c.Owner, c.Signer, host.OwnerUnsigned), c.ReplacedOwner, c.Engine
	return e
}

// Describes reports whether the entry of a plugin agrees with the plugin's manifest.
func (e Entry) Describes(m *manifest.Manifest) bool {
	d := entryFromManifest(m)
	return d.Name == e.Name && d.Version == e.Version && d.Kind == e.Kind && d.Brief == e.Brief &&
		d.Groups == e.Groups && d.Tools == e.Tools
}

// entryFromManifest returns an entry with the fields that are taken from the manifest.
func entryFromManifest(m *manifest.Manifest) Entry {
	return Entry{Name: m.Name, Version: m.Version, Kind: m.Kind, Brief: manifest.CleanLine(m.Docs.Brief),
		Groups: len(m.Groups), Tools: len(m.Tools)}
}

func indexOf(entries []Entry, name string) int {
	return slices.IndexFunc(entries, func(e Entry) bool { return strings.EqualFold(e.Name, name) })
}
