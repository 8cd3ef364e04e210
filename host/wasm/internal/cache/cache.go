// Package cache keeps compiled modules in a folder between processes, and notices when they were damaged.
package cache

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/cpu"

	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Names of the files in a slot of the cache.
const (
	ChecksumsName = "checksums.json"
	InstalledName = "installed.json"
	StubName      = "stub.wasm"
)

const (
	defaultSize   = 1 << 30
	MaxChecksums  = 1 << 20
	markUsedEvery = time.Hour // a slot that is used is marked at most this often
	staleTemp     = time.Hour // an unfinished folder of this age was abandoned
	staleAside    = 30 * 24 * time.Hour
	SettleTime    = time.Second // a file that changed less than this before it was hashed may have changed again unnoticed
)

// Slot is a folder of the cache. It holds one module compiled for one kind of machine: the native code, its stub
// module, the assets of its plugin, an image, and a file with the checksums of all these. A slot is filled under a
// temporary name and renamed when it is complete. Trust in a slot rests on file permissions (0700, owned by this
// user; the system checks the folders above). The checksums only detect damage, so a file that has not changed since
// it was hashed is not hashed again.
type Slot struct{ Dir, Key string }

// Checksums describes a slot. It is written last.
type Checksums struct {
	Key     string            `json:"key"` // the slot's own key; a file copied from another slot is not used
	Module  instrument.Module `json:"module"`
	Stub    File              `json:"stub"`
	Code    File              `json:"code"`
	Assets  File              `json:"assets,omitzero"` // its name is empty if the plugin has none
	Image   *guest.Image      `json:"image,omitempty"` // nil if there is none
	Memory  File              `json:"memory,omitzero"` // the memory of the image
	Checked time.Time         `json:"checked"`         // when the files were last hashed
}

// files returns the files of the slot.
func (c *Checksums) files() []*File {
	all := []*File{&c.Stub, &c.Code}
	if c.Assets.Name != "" {
		all = append(all, &c.Assets)
	}
	if c.Image != nil {
		all = append(all, &c.Memory)
	}
	return all
}

// File describes a file as it was when it was hashed.
type File struct {
	Name    string    `json:"name"`
	SHA256  string    `json:"sha256,omitempty"`
	Size    int64     `json:"size"`
	Changed time.Time `json:"changed"`
	Inode   uint64    `json:"inode,omitempty"`
}

func (f File) matches(info fs.FileInfo) bool {
	inode, changed := stamp(info)
	return info.Mode().IsRegular() && info.Size() == f.Size && inode == f.Inode && changed.Equal(f.Changed)
}

// slotPattern matches the names in the cache folder that Parley may remove.
var slotPattern = lazy.Pattern(`^[0-9a-f]{32}-[0-9]+(-[0-9a-f]{8})?$`)

// isUnfinished reports whether a slot of this name is not complete yet.
func isUnfinished(name string) bool {
	return strings.HasPrefix(name, "filling-") && strings.HasSuffix(name, ".tmp")
}

// Key returns the slot name of a module. It covers the module's bytes and everything else that native code depends
// on.
func Key(form string, data []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d\n", form, len(data))
	h.Write(data)
	return fmt.Sprintf("%s-%d-%s", hex.EncodeToString(h.Sum(nil)[:16]), instrument.Version, machineID())
}

// machineID covers everything besides the module that wazero v1.12.0 puts into the names of its own cache entries.
var machineID = sync.OnceValue(func() string {
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/tetratelabs/wazero" {
				version = m.Version
			}
		}
	}
	sum := sha256.Sum256(fmt.Append(nil, version, runtime.GOOS, runtime.GOARCH,
		cpu.X86.HasSSE41, cpu.X86.HasBMI1, cpu.X86.HasBMI2, cpu.X86.HasPOPCNT, cpu.ARM64.HasATOMICS))
	return hex.EncodeToString(sum[:4])
})

// WriteChecksums describes a slot that has just been filled. The result has the stub as the module's wasm.
func (s Slot) WriteChecksums(built *instrument.Module, assets bool) (*Checksums, error) {
	stub, image := instrument.Stub(built.Wasm), guest.ReadImage(s.Dir)
	if image != nil {
		stub = instrument.Imaged(stub, image.Globals, image.Pages)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, StubName), stub, 0o600); err != nil {
		return nil, err
	}
	code, err := OnlyEntry(s.Dir)
	if err != nil {
		return nil, err
	}
	sums := &Checksums{Key: s.Key, Module: *built, Stub: File{Name: StubName}, Code: File{Name: code},
		Image: image}
	if image != nil {
		sums.Memory.Name = guest.ImageName
	}
	if assets {
		sums.Assets.Name = world.AssetsName
	}
	sums.Module.Wasm = stub
	if err := s.verify(sums); err != nil {
		return nil, err
	}
	return sums, s.Write(ChecksumsName, sums)
}

// verify hashes the files of a slot, compares them with sums and updates sums.
func (s Slot) verify(sums *Checksums) error {
	sums.Checked = time.Now()
	for _, f := range sums.files() {
		file, err := os.Open(filepath.Join(s.Dir, f.Name))
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		h := sha256.New()
		if _, err := io.Copy(h, file); err != nil {
			return err
		}
		sum := hex.EncodeToString(h.Sum(nil))
		if f.SHA256 != "" && f.SHA256 != sum {
			return fmt.Errorf("%s is damaged", f.Name)
		}
		f.SHA256, f.Size = sum, info.Size()
		f.Inode, f.Changed = stamp(info)
	}
	return nil
}

// Write writes a value as JSON, atomically.
func (s Slot) Write(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(data) > MaxChecksums {
		return fmt.Errorf("%s would have %d bytes", name, len(data))
	}
	return durable.Write(filepath.Join(s.Dir, name), data)
}

// Read checks a slot and returns its checksums, with the stub as the module's wasm. The error fs.ErrNotExist means
// that there is no such slot, any other error that the slot must not be used.
func (s Slot) Read() (*Checksums, error) {
	info, err := os.Lstat(s.Dir)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir(), !protect.TrustedFile(info):
		return nil, errors.New("other users may write to it")
	}
	data, err := protect.ReadProject(filepath.Join(s.Dir, ChecksumsName), MaxChecksums)
	if err != nil {
		return nil, fmt.Errorf("its checksum file: %v", err)
	}
	var sums Checksums
	if err := json.Unmarshal(data, &sums); err != nil {
		return nil, fmt.Errorf("its checksum file: %v", err)
	}
	if sums.Key != s.Key || sums.Stub.Name != StubName || !filepath.IsLocal(sums.Code.Name) ||
		sums.Assets.Name != "" && sums.Assets.Name != world.AssetsName ||
		sums.Image != nil && sums.Memory.Name != guest.ImageName ||
		slices.ContainsFunc(sums.files(), func(f *File) bool { return f.SHA256 == "" }) {
		return nil, errors.New("its checksum file belongs to another slot")
	}
	fresh := true
	for _, f := range sums.files() {
		info, err := os.Lstat(filepath.Join(s.Dir, f.Name))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%v", err)
		case !info.Mode().IsRegular(), !protect.OwnedByUser(info):
			return nil, fmt.Errorf("%s is not a regular file owned by this user", f.Name)
		case info.Size() != f.Size:
			return nil, fmt.Errorf("%s is damaged", f.Name)
		}
		fresh = fresh && f.matches(info) && sums.Checked.Sub(f.Changed) > SettleTime
	}
	if !fresh {
		if err := s.verify(&sums); err != nil {
			return nil, err
		}
		_ = s.Write(ChecksumsName, &sums) // failing to save it only means hashing again
	}
	if sums.Module.Wasm, err = os.ReadFile(filepath.Join(s.Dir, StubName)); err != nil {
		return nil, fmt.Errorf("%v", err)
	}
	if now := time.Now(); now.Sub(info.ModTime()) > markUsedEvery {
		_ = os.Chtimes(s.Dir, now, now)
	}
	return &sums, nil
}

// Installed records the file that had the digest of the slot's plugin when it was last read. As long as nothing has
// changed that file, it is not read again to compute its digest.
type Installed struct {
	File
	Checked time.Time `json:"checked"`
}

func (s Slot) IsInstalled(file string) bool {
	data, err := protect.ReadProject(filepath.Join(s.Dir, InstalledName), MaxChecksums)
	var f Installed
	if err != nil || jsontext.Unmarshal(data, &f) != nil || f.Name != file || f.Checked.Sub(f.Changed) <= SettleTime {
		return false
	}
	info, err := os.Lstat(file)
	return err == nil && f.Inode != 0 && f.matches(info)
}

// SetInstalled records a file that had the digest. info must have been read before the file.
func (s Slot) SetInstalled(file string, info fs.FileInfo) {
	f := Installed{File{Name: file, Size: info.Size()}, time.Now()}
	f.Inode, f.Changed = stamp(info)
	_ = s.Write(InstalledName, f) // failing to write it only means reading the file again
}

// IsUnchanged reports whether the native code is still the code that was checked. It hashes a file again if only its
// metadata changed. If the code had been missing when wazero looked for it, wazero would have compiled the stub
// instead.
func (s Slot) IsUnchanged(sums *Checksums) bool {
	info, err := os.Lstat(filepath.Join(s.Dir, sums.Code.Name))
	return err == nil && (sums.Code.matches(info) || s.verify(sums) == nil)
}

// Remove removes a slot. The rename comes first, so that nobody opens a slot that is half removed.
func (s Slot) Remove() error {
	discarded := filepath.Join(filepath.Dir(s.Dir), fmt.Sprintf("filling-%d-%d%s", os.Getpid(), time.Now().UnixNano(),
		store.TempSuffix))
	if err := os.Rename(s.Dir, discarded); err != nil {
		return err
	}
	return os.RemoveAll(discarded)
}

// Evict removes the least recently used slots of a cache folder until the folder is within limit bytes, or 1 GiB if
// limit is 0. It spares the slot named except. It also removes other files whose names end in aside when they are 30
// days old.
func Evict(dir, except, aside string, limit int64, debug func(string)) {
	type candidate struct {
		name string
		size int64
		used time.Time
	}
	var all []candidate
	total := int64(0)
	for _, d := range store.ReadDir(dir) {
		info, err := d.Info()
		if err == nil && strings.HasSuffix(d.Name(), aside) && time.Since(info.ModTime()) > staleAside {
			_ = os.Remove(filepath.Join(dir, d.Name()))
		}
		if err != nil || !d.IsDir() {
			continue
		}
		if isUnfinished(d.Name()) && time.Since(info.ModTime()) > staleTemp {
			_ = os.RemoveAll(filepath.Join(dir, d.Name()))
		}
		if !slotPattern().MatchString(d.Name()) {
			continue
		}
		c := candidate{name: d.Name(), used: info.ModTime(), size: dirSize(filepath.Join(dir, d.Name()))}
		total += c.size
		if c.name != except {
			all = append(all, c)
		}
	}
	limit = cmp.Or(max(limit, 0), defaultSize)
	slices.SortFunc(all, func(a, b candidate) int { return a.used.Compare(b.used) })
	for _, c := range all {
		if total <= limit {
			return
		}
		if err := (Slot{Dir: filepath.Join(dir, c.name)}).Remove(); err == nil {
			debug(fmt.Sprintf("the compile cache is full: removed %s, last used %s", c.name,
				c.used.Format(time.DateTime)))
			total -= c.size
		}
	}
}

func dirSize(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// OnlyEntry returns the path, relative to a cache folder, of the one file that wazero has left there.
func OnlyEntry(dir string) (string, error) {
	found, err := fs.Glob(os.DirFS(dir), "wazero-*/*")
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", &fs.PathError{Op: "compile", Path: dir, Err: fmt.Errorf("expected one file of compiled code, found %d",
			len(found))}
	}
	return found[0], nil
}
