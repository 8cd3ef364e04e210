package wasm

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
	checksumsName = "checksums.json"
	installedName = "installed.json"
	stubName      = "stub.wasm"
)

const (
	defaultCacheSize = 1 << 30
	maxChecksums     = 1 << 20
	markUsedEvery    = time.Hour   // a slot that is used is marked at most this often
	staleTemp        = time.Hour   // an unfinished folder of this age was abandoned
	settleTime       = time.Second // a file that changed this shortly before it was hashed may have changed again unseen
)

// slot is a folder of the cache. It holds one module compiled for one kind of machine: the native code, the stub
// module that it belongs to, the assets of its plugin, an image, and a file with the checksums of all. A slot is
// filled under a temporary name and renamed when it is complete. Trust in a slot rests on file permissions (0700,
// owned by this user; the system checks the folders above). The checksums only detect damage, so a file that has not
// changed since it was hashed is not hashed again.
type slot struct{ dir, key string }

// checksums describes a slot. It is written last.
type checksums struct {
	Key     string            `json:"key"` // the slot's own key; a file copied from another slot is not used
	Module  instrument.Module `json:"module"`
	Stub    hashedFile        `json:"stub"`
	Code    hashedFile        `json:"code"`
	Assets  hashedFile        `json:"assets,omitzero"` // without a name if the plugin has none
	Image   *guest.Image      `json:"image,omitempty"` // nil if there is none
	Memory  hashedFile        `json:"memory,omitzero"` // of the image
	Checked time.Time         `json:"checked"`         // when the files were last hashed
}

// files returns the files of the slot.
func (c *checksums) files() []*hashedFile {
	all := []*hashedFile{&c.Stub, &c.Code}
	if c.Assets.Name != "" {
		all = append(all, &c.Assets)
	}
	if c.Image != nil {
		all = append(all, &c.Memory)
	}
	return all
}

// hashedFile describes a file as it was when it was hashed.
type hashedFile struct {
	Name    string    `json:"name"`
	SHA256  string    `json:"sha256,omitempty"`
	Size    int64     `json:"size"`
	Changed time.Time `json:"changed"`
	Inode   uint64    `json:"inode,omitempty"`
}

func (f hashedFile) matches(info fs.FileInfo) bool {
	inode, changed := stamp(info)
	return info.Mode().IsRegular() && info.Size() == f.Size && inode == f.Inode && changed.Equal(f.Changed)
}

// slotPattern matches the names in the cache folder that Parley may remove.
var slotPattern = lazy.Pattern(`^[0-9a-f]{32}-[0-9]+(-[0-9a-f]{8})?$`)

// isUnfinished reports whether a slot of this name is not complete yet.
func isUnfinished(name string) bool {
	return strings.HasPrefix(name, "filling-") && strings.HasSuffix(name, ".tmp")
}

// cacheKey returns the slot name of a module: it covers the module's bytes and all else that native code depends
// on.
func cacheKey(form string, data []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d\n", form, len(data))
	h.Write(data)
	return fmt.Sprintf("%s-%d-%s", hex.EncodeToString(h.Sum(nil)[:16]), instrument.Version, machineID())
}

// machineID covers what wazero v1.12.0 puts into the names of its own cache entries, besides the module.
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

// cacheDir returns the cache folder, or "" if there is none that only this user can write to.
func (e *Engine) cacheDir() string {
	if e.cfg.CacheDir == "" {
		return ""
	}
	if err := protect.Dir(e.cfg.CacheDir); err != nil {
		e.cfg.Debug("no compile cache: " + err.Error())
		return ""
	}
	return e.cfg.CacheDir
}

// writeChecksums describes a slot that has just been filled. The result has the stub as the module's wasm.
func (s slot) writeChecksums(built *instrument.Module, assets bool) (*checksums, error) {
	stub, image := instrument.Stub(built.Wasm), guest.ReadImage(s.dir)
	if image != nil {
		stub = instrument.Imaged(stub, image.Globals, image.Pages)
	}
	if err := os.WriteFile(filepath.Join(s.dir, stubName), stub, 0o600); err != nil {
		return nil, err
	}
	code, err := onlyEntry(s.dir)
	if err != nil {
		return nil, err
	}
	sums := &checksums{Key: s.key, Module: *built, Stub: hashedFile{Name: stubName}, Code: hashedFile{Name: code},
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
	return sums, s.write(checksumsName, sums)
}

// verify hashes the files of a slot, compares them with sums and updates sums.
func (s slot) verify(sums *checksums) error {
	sums.Checked = time.Now()
	for _, f := range sums.files() {
		file, err := os.Open(filepath.Join(s.dir, f.Name))
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

// write writes a value as JSON, atomically.
func (s slot) write(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(data) > maxChecksums {
		return fmt.Errorf("%s would have %d bytes", name, len(data))
	}
	return durable.Write(filepath.Join(s.dir, name), data)
}

// read checks a slot and returns its checksums with the stub as the module's wasm. fs.ErrNotExist means that there
// is no such slot, any other error that it must not be used.
func (s slot) read() (*checksums, error) {
	info, err := os.Lstat(s.dir)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir(), !protect.TrustedFile(info):
		return nil, errors.New("other users may write to it")
	}
	data, err := protect.ReadProject(filepath.Join(s.dir, checksumsName), maxChecksums)
	if err != nil {
		return nil, fmt.Errorf("its checksum file: %v", err)
	}
	var sums checksums
	if err := json.Unmarshal(data, &sums); err != nil {
		return nil, fmt.Errorf("its checksum file: %v", err)
	}
	if sums.Key != s.key || sums.Stub.Name != stubName || !filepath.IsLocal(sums.Code.Name) ||
		sums.Assets.Name != "" && sums.Assets.Name != world.AssetsName ||
		sums.Image != nil && sums.Memory.Name != guest.ImageName ||
		slices.ContainsFunc(sums.files(), func(f *hashedFile) bool { return f.SHA256 == "" }) {
		return nil, errors.New("its checksum file belongs to another slot")
	}
	fresh := true
	for _, f := range sums.files() {
		info, err := os.Lstat(filepath.Join(s.dir, f.Name))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%v", err)
		case !info.Mode().IsRegular(), !protect.OwnedByUser(info):
			return nil, fmt.Errorf("%s is not a regular file owned by this user", f.Name)
		case info.Size() != f.Size:
			return nil, fmt.Errorf("%s is damaged", f.Name)
		}
		fresh = fresh && f.matches(info) && sums.Checked.Sub(f.Changed) > settleTime
	}
	if !fresh {
		if err := s.verify(&sums); err != nil {
			return nil, err
		}
		_ = s.write(checksumsName, &sums) // failing to save it only means hashing again
	}
	if sums.Module.Wasm, err = os.ReadFile(filepath.Join(s.dir, stubName)); err != nil {
		return nil, fmt.Errorf("%v", err)
	}
	if now := time.Now(); now.Sub(info.ModTime()) > markUsedEvery {
		_ = os.Chtimes(s.dir, now, now)
	}
	return &sums, nil
}

// installed says which file had the digest of the slot's plugin when it was last read. It is not read again, and its
// digest not computed, while nothing has changed it.
type installed struct {
	hashedFile
	Checked time.Time `json:"checked"`
}

func (s slot) isInstalled(file string) bool {
	data, err := protect.ReadProject(filepath.Join(s.dir, installedName), maxChecksums)
	var f installed
	if err != nil || jsontext.Unmarshal(data, &f) != nil || f.Name != file || f.Checked.Sub(f.Changed) <= settleTime {
		return false
	}
	info, err := os.Lstat(file)
	return err == nil && f.Inode != 0 && f.matches(info)
}

// setInstalled records a file that had the digest; info is of the time before it was read.
func (s slot) setInstalled(file string, info fs.FileInfo) {
	f := installed{hashedFile{Name: file, Size: info.Size()}, time.Now()}
	f.Inode, f.Changed = stamp(info)
	_ = s.write(installedName, f) // failing to write it only means reading the file again
}

// isUnchanged reports whether the native code is still what was checked; a file whose metadata alone changed is
// hashed again. Had the code been missing when wazero looked for it, wazero would have compiled the stub in its
// stead.
func (s slot) isUnchanged(sums *checksums) bool {
	info, err := os.Lstat(filepath.Join(s.dir, sums.Code.Name))
	return err == nil && (sums.Code.matches(info) || s.verify(sums) == nil)
}

// remove removes a slot. The rename comes first, so that nobody opens a slot that is half removed.
func (s slot) remove() error {
	discarded := filepath.Join(filepath.Dir(s.dir), fmt.Sprintf("filling-%d-%d%s", os.Getpid(), time.Now().UnixNano(),
		store.TempSuffix))
	if err := os.Rename(s.dir, discarded); err != nil {
		return err
	}
	return os.RemoveAll(discarded)
}

// evict removes the least recently used slots until the cache is within its size. It spares the slot named except.
func (e *Engine) evict(dir, except string) {
	type candidate struct {
		name string
		size int64
		used time.Time
	}
	var all []candidate
	total := int64(0)
	for _, d := range store.ReadDir(dir) {
		info, err := d.Info()
		if err == nil && strings.HasSuffix(d.Name(), refusedSuffix) && time.Since(info.ModTime()) > staleRefusal {
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
	limit := cmp.Or(max(e.cfg.CacheSize, 0), defaultCacheSize)
	slices.SortFunc(all, func(a, b candidate) int { return a.used.Compare(b.used) })
	for _, c := range all {
		if total <= limit {
			return
		}
		if err := (slot{dir: filepath.Join(dir, c.name)}).remove(); err == nil {
			e.cfg.Debug(fmt.Sprintf("the compile cache is full: removed %s, last used %s", c.name,
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
