package keeper

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host/protect"
)

// files locates the files of one keeper; see the package documentation.
type files struct{ dir, name string }

func (f files) lock() string    { return filepath.Join(f.dir, f.name+".lock") }
func (f files) info() string    { return filepath.Join(f.dir, f.name+".json") }
func (f files) newInfo() string { return f.info() + ".new" } // renamed to info once it is written
func (f files) log() string     { return filepath.Join(f.dir, f.name+".log") }
func (f files) profile() string { return filepath.Join(f.dir, f.name+".profile") }

// socket is the path that the keeper listens at. temp is Chrome's temporary folder, where Chrome creates sockets of
// its own.
func (f files) socket() string { return f.shortPath(".sock", maxSocketPath) }
func (f files) temp() string   { return f.shortPath(".tmp", browser.MaxTemp) }

// The path of a Unix socket has at most 108 bytes on Linux and 104 elsewhere, including a NUL.
const maxSocketPath = 100

// socketError reports that something other than a private socket is at the path of a keeper's socket.
type socketError struct{ path, problem string }

func (e *socketError) Error() string { return e.path + " " + e.problem }

// checkSocket rejects everything but a socket that only this user can reach: a planted link, another user's socket,
// a socket open to others, or one in a folder where others can replace it. The peer's credentials are checked again
// after connecting.
func checkSocket(path string) error {
	for _, one := range []struct {
		path     string
		kind     fs.FileMode
		name     string
		isClosed func(fs.FileInfo) bool // reports whether others have no access
	}{
		{filepath.Dir(path), fs.ModeDir, "folder", protect.TrustedFile}, {path, fs.ModeSocket, "socket", protect.OwnerOnly},
	} {
		info, err := os.Lstat(one.path)
		switch {
		case err != nil:
			return err
		case info.Mode().Type() != one.kind || !protect.OwnedByUser(info):
			return &socketError{one.path, "is not a " + one.name + " of this user"}
		case !one.isClosed(info):
			return &socketError{one.path, "is open to other users"}
		}
	}
	return nil
}

// shortPath returns a path of at most limit bytes. It is NAME.ext in the folder; if the name is too long, a hash of
// the name, which is not a valid browser name; if the folder is too long, a hash of both in the user's own folder
// under the system's temporary one.
func (f files) shortPath(ext string, limit int) string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "_" + hex.EncodeToString(sum[:8]) + ext
	}
	shared := filepath.Join("parley-"+strconv.Itoa(os.Geteuid()), hash(f.dir+"\x00"+f.name))
	for _, path := range []string{
		filepath.Join(f.dir, f.name+ext), filepath.Join(f.dir, hash(f.name)), filepath.Join(os.TempDir(), shared),
	} {
		if len(path) <= limit {
			return path
		}
	}
	return filepath.Join("/tmp", shared)
}

// ensureDirOf creates the folder of a path that shortPath returned.
func (f files) ensureDirOf(path string) error {
	if dir := filepath.Dir(path); dir != f.dir {
		return protect.Dir(dir)
	}
	return nil
}

// makeTemp creates Chrome's temporary folder.
func (f files) makeTemp() (string, error) {
	path := f.temp()
	return path, errors.Join(f.ensureDirOf(path), protect.Dir(path))
}

// SocketPath returns the path that the keeper of a browser listens at.
func SocketPath(runDir, name string) string {
	return files{absolute(runDir), cmp.Or(name, DefaultBrowser)}.socket()
}

// info is the content of NAME.json.
type info struct {
	PID       int       `json:"pid,omitempty"`
	Wire      int       `json:"wire,omitempty"`
	Version   string    `json:"version,omitempty"`
	ChromePID int       `json:"chrome_pid,omitempty"`
	Product   string    `json:"product,omitempty"`
	Profile   string    `json:"profile,omitempty"`
	Temporary bool      `json:"temporary_profile,omitempty"`
	Attach    string    `json:"attach,omitempty"`
	Started   time.Time `json:"started,omitzero"`
}

func (f files) readInfo() (i info) {
	if data, err := protect.Read(f.info(), protect.MaxConfig); err == nil {
		json.Unmarshal(data, &i)
	}
	return i
}

// lockPID returns the pid in the lock file, or 0.
func (f files) lockPID() int {
	data, err := protect.Read(f.lock(), protect.MaxConfig)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return pid
}

var errLocked = errors.New("locked by another process")

// tryLock takes the keeper's lock. It returns errLocked if another process holds it.
func (f files) tryLock() (*os.File, error) {
	for range 100 {
		file, err := openLock(f.lock())
		if err != nil {
			return nil, err
		}
		if err := flock(file); err != nil {
			file.Close()
			return nil, err
		}
		// The previous holder may have removed the file between our open and our lock.
		if sameFile(file, f.lock()) {
			return file, nil
		}
		file.Close()
	}
	return nil, fmt.Errorf("%s keeps being replaced", f.lock())
}

func sameFile(file *os.File, path string) bool {
	a, errA := file.Stat()
	b, errB := os.Lstat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// isLocked reports whether a process holds the lock. It does not create the file.
func (f files) isLocked() bool {
	if _, err := os.Lstat(f.lock()); err != nil {
		return false
	}
	file, err := f.tryLock()
	if err != nil {
		return errors.Is(err, errLocked)
	}
	// The lock was taken only to test it. The file stays: a sweep removes it.
	file.Close()
	return false
}

// hasLeftovers reports whether any file of the keeper exists.
func (f files) hasLeftovers() bool {
	for _, path := range []string{f.lock(), f.info(), f.log(), f.profile(), f.temp(), f.socket()} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// clean removes a keeper's files and kills the browser that it may have left. The caller holds the lock; unlock
// removes the lock file itself.
func (f files) clean() error {
	i := f.readInfo()
	killOrphans(f.profile(), 0)
	if i.ChromePID > 0 && i.Profile != "" && !i.Temporary {
		killOrphans(i.Profile, i.ChromePID)
	}
	err := errors.Join(removeTree(f.profile()), removeTree(f.temp()))
	for _, path := range []string{f.socket(), f.newInfo(), f.info(), f.log()} {
		if e := os.Remove(path); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// unlock removes the lock file and releases the lock.
func (f files) unlock(lock *os.File) {
	os.Remove(f.lock())
	lock.Close()
}

// sweep cleans up after a dead keeper. It reports whether there was anything to clean.
func (f files) sweep() (bool, error) {
	if !f.hasLeftovers() {
		return false, nil
	}
	lock, err := f.tryLock()
	if err != nil {
		if errors.Is(err, errLocked) {
			err = nil
		}
		return false, err
	}
	defer f.unlock(lock)
	return true, f.clean()
}

// removeTree removes a folder into which dying processes may still write.
func removeTree(dir string) (err error) {
	for range 40 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// Entry describes one browser name that has files in the run folder.
type Entry struct {
	Browser string `json:"browser"`
	// Alive is set if a keeper holds the lock. Otherwise the files are stale.
	Alive bool `json:"alive"`
	info
}

// List returns the browsers of a run folder, including stale ones, sorted by name. A folder that does not exist has
// none.
func List(runDir string) ([]Entry, error) {
	all, err := filesIn(runDir)
	if err != nil {
		return nil, err
	}
	entries := []Entry{}
	for _, f := range all {
		if f.name == protocolName {
			continue
		}
		e := Entry{f.name, f.isLocked(), f.readInfo()}
		e.Temporary = false // it is not listed
		if e.Alive && e.PID == 0 {
			e.PID = f.lockPID()
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// maxBrowsers is the number of open browsers above which only the command line opens another one.
const maxBrowsers = 8

// CheckBrowserLimit returns an error if maxBrowsers are open already, unless name is one of them.
func CheckBrowserLimit(runDir, name string) error {
	all, err := List(runDir)
	if err != nil {
		return err
	}
	open := 0
	for _, e := range all {
		if e.Alive && e.Browser == cmp.Or(name, DefaultBrowser) {
			return nil
		}
		if e.Alive {
			open++
		}
	}
	if open >= maxBrowsers {
		return api.Errorf(api.CodeLimitExceeded, "%d browsers are open, and only the command line opens more than %d: "+
			"use one of them, or close one on the command line", open, maxBrowsers)
	}
	return nil
}

// filesIn returns the keepers that have files in a run folder, sorted by name.
func filesIn(runDir string) (all []files, err error) {
	dir := absolute(runDir)
	found, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, api.Errorf(api.CodeInternal, "cannot list %s: %v", dir, err)
	}
	names := map[string]bool{}
	for _, entry := range found {
		ext := filepath.Ext(entry.Name())
		switch ext {
		case ".lock", ".json", ".sock", ".log", ".profile", ".tmp":
			if name := strings.TrimSuffix(entry.Name(), ext); name == protocolName || CheckName(name) == nil {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, files{dir, name})
	}
	return all, nil
}

// Sweep removes what dead keepers left in a run folder. It returns their browser names.
func Sweep(runDir string) (cleaned []string, err error) {
	all, err := filesIn(runDir)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		swept, e := f.sweep()
		if swept {
			cleaned = append(cleaned, f.name)
		}
		err = errors.Join(err, e)
	}
	return cleaned, err
}

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// lastLines returns the last lines of a log, for an error message.
func lastLines(path string, n int) string {
	data, _ := os.ReadFile(path)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}
