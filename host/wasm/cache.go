package wasm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/cpu"

	"github.com/parley-tools/parley/host/internal/private"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

// Names of the files in a slot of the cache.
const (
	checksumsName = "seal.json"
	stubName      = "husk.wasm"
)

const (
	defaultCacheSize = 1 << 30
	maxChecksums     = 1 << 20
	markUsedEvery    = time.Hour   // an entry that is used is marked so, this often at most
	staleTemp        = time.Hour   // a folder that is being filled for so long was left behind
	settleTime       = time.Second // a file that changed so shortly before it was hashed may have changed again unseen
)

// slot is a folder of the cache, which holds one module compiled for one kind of machine: the native code, the husk of the
// module that it belongs to, and a seal that says what the two are. It is filled under another name and renamed when it
// is whole. Whether it can be trusted is a matter of who may write it (0700, owned by this user, all above it checked by
// the system); the digests guard against damage, so a file that has not changed since it was hashed is not hashed again.
type slot struct{ dir, key string }

// checksums is written last.
type checksums struct {
	Key     string            `json:"key"` // the slot's: one under another's name is not used
	Module  instrument.Module `json:"module"`
	Stub    hashedFile        `json:"husk"`
	Code    hashedFile        `json:"code"`
	Checked time.Time         `json:"checked"` // when both were hashed last
}

// hashedFile is a file as it was when it was hashed.
type hashedFile struct {
	Name    string    `json:"name"`
	SHA256  string    `json:"sha256"`
	Size    int64     `json:"size"`
	Changed time.Time `json:"changed"`
	Inode   uint64    `json:"inode,omitempty"`
}

func (f hashedFile) matches(info fs.FileInfo) bool {
	inode, changed := stamp(info)
	return info.Mode().IsRegular() && info.Size() == f.Size && inode == f.Inode && changed.Equal(f.Changed)
}

// slotPattern is the form of the names in the cache folder that are ours to remove.
var slotPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{32}-[0-9]+(-[0-9a-f]{8})?$`) })

// isUnfinished tells the name of a slot that is not filled yet.
func isUnfinished(name string) bool {
	return strings.HasPrefix(name, "filling-") && strings.HasSuffix(name, ".tmp")
}

// cacheKey names the slot of a module by the bytes that it comes from, and by all that its native code depends on besides.
func cacheKey(form string, data []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d\n", form, len(data))
	h.Write(data)
	return fmt.Sprintf("%s-%d-%s", hex.EncodeToString(h.Sum(nil)[:16]), instrument.Version, machineID())
}

// machineID stands for what wazero v1.12.0 names its own entries by, besides the module.
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

// cacheDir returns the cache folder, or "" where there is none that only this user can write to.
func (e *Engine) cacheDir() string {
	if e.cfg.CacheDir == "" {
		return ""
	}
	if err := private.Dir(e.cfg.CacheDir); err != nil {
		e.cfg.Debug("no compile cache: " + err.Error())
		return ""
	}
	return e.cfg.CacheDir
}

// checksums describes a slot that has just been filled, and returns the description with the husk as the module's wasm.
func (s slot) writeChecksums(module *instrument.Module) (*checksums, error) {
	stub := instrument.Stub(module.Wasm)
	if err := os.WriteFile(filepath.Join(s.dir, stubName), stub, 0o600); err != nil {
		return nil, err
	}
	code, err := onlyEntry(s.dir)
	if err != nil {
		return nil, err
	}
	if code, err = filepath.Rel(s.dir, code); err != nil {
		return nil, err
	}
	sums := &checksums{Key: s.key, Module: *module, Stub: hashedFile{Name: stubName}, Code: hashedFile{Name: code}}
	sums.Module.Exports, sums.Module.Wasm = neededExports(module), stub
	if err := s.verify(sums); err != nil {
		return nil, err
	}
	return sums, s.save(sums)
}

// verify hashes the files that a seal names, and brings it up to date with them.
func (s slot) verify(sums *checksums) error {
	sums.Checked = time.Now()
	for _, f := range []*hashedFile{&sums.Stub, &sums.Code} {
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

// save writes the seal, whole or not at all.
func (s slot) save(sums *checksums) error {
	data, err := json.Marshal(sums)
	if err != nil {
		return err
	}
	if len(data) > maxChecksums {
		return fmt.Errorf("its seal would have %d bytes", len(data))
	}
	temp, err := os.CreateTemp(s.dir, checksumsName+".*"+tempSuffix)
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), filepath.Join(s.dir, checksumsName))
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}

// read checks a slot and returns its seal, with the husk as the module's wasm. fs.ErrNotExist says that there is no such
// slot; any other error, that it must not be used.
func (s slot) read() (*checksums, error) {
	info, err := os.Lstat(s.dir)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir(), !private.Trusted(info):
		return nil, errors.New("others may write to it")
	}
	data, err := readBounded(filepath.Join(s.dir, checksumsName), maxChecksums)
	if err != nil {
		return nil, fmt.Errorf("its seal: %v", err)
	}
	var sums checksums
	if err := json.Unmarshal(data, &sums); err != nil {
		return nil, fmt.Errorf("its seal: %v", err)
	}
	if sums.Key != s.key || sums.Stub.Name != stubName || !filepath.IsLocal(sums.Code.Name) || sums.Stub.SHA256 == "" || sums.Code.SHA256 == "" {
		return nil, errors.New("its seal is another's")
	}
	fresh := true
	for _, f := range []hashedFile{sums.Stub, sums.Code} {
		info, err := os.Lstat(filepath.Join(s.dir, f.Name))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%v", err)
		case !info.Mode().IsRegular(), !private.Owned(info):
			return nil, fmt.Errorf("%s is not a file of this user", f.Name)
		case info.Size() != f.Size:
			return nil, fmt.Errorf("%s is damaged", f.Name)
		}
		fresh = fresh && f.matches(info) && sums.Checked.Sub(f.Changed) > settleTime
	}
	if !fresh {
		if err := s.verify(&sums); err != nil {
			return nil, err
		}
		_ = s.save(&sums) // it only spares hashing again
	}
	if sums.Module.Wasm, err = os.ReadFile(filepath.Join(s.dir, stubName)); err != nil {
		return nil, fmt.Errorf("%v", err)
	}
	if now := time.Now(); now.Sub(info.ModTime()) > markUsedEvery {
		_ = os.Chtimes(s.dir, now, now)
	}
	return &sums, nil
}

// isUnchanged tells whether the native code is still what was checked; a file that was only touched or linked is hashed once
// more. Had it been missing when wazero looked for it, wazero would have compiled the husk and put another in its place.
func (s slot) isUnchanged(sums *checksums) bool {
	info, err := os.Lstat(filepath.Join(s.dir, sums.Code.Name))
	return err == nil && (sums.Code.matches(info) || s.verify(sums) == nil)
}

// remove takes a slot away at once, whoever is about to use it.
func (s slot) remove() error {
	discarded := filepath.Join(filepath.Dir(s.dir), fmt.Sprintf("filling-%d-%d%s", os.Getpid(), time.Now().UnixNano(), tempSuffix))
	if err := os.Rename(s.dir, discarded); err != nil {
		return err
	}
	return os.RemoveAll(discarded)
}

// evict removes what was used least recently until the cache is within its size, but not the slot named keep.
func (e *Engine) evict(dir, except string) {
	type candidate struct {
		name string
		size int64
		used time.Time
	}
	var all []candidate
	total := int64(0)
	for _, d := range readDir(dir) {
		info, err := d.Info()
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
	limit := e.cfg.CacheSize
	if limit <= 0 {
		limit = defaultCacheSize
	}
	slices.SortFunc(all, func(a, b candidate) int { return a.used.Compare(b.used) })
	for _, c := range all {
		if total <= limit {
			return
		}
		if err := (slot{dir: filepath.Join(dir, c.name)}).remove(); err == nil {
			e.cfg.Debug(fmt.Sprintf("the compile cache is full: removed %s, last used %s", c.name, c.used.Format(time.DateTime)))
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
