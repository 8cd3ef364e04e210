package protect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Folder is a folder in which a host keeps files of its own.
type Folder struct {
	Name string // "config", "data", ...
	Path string // absolute
	// Links means that people write its files, which may be links to where they keep such files.
	Links bool
}

// Files are what a host keeps for itself: its policy, plugins, secrets and records. No granted folder may lie in one
// of Folders or contain one, and in a granted folder no file can be opened that is one of the host's under another
// name. A nil *Files protects nothing but the root and pseudo file systems.
type Files struct {
	Folders []Folder // they may contain each other
	// Secrets returns the paths of further files from which secrets are read, and of programs that print them; nil means
	// none. No plugin may write to a folder that contains one: it could move the file, and read it under a new name. The
	// same holds for the files that this process has opened; see [Register].
	Secrets func() []string
	// Inputs are the paths of further files that the host reads.
	Inputs []string
	// Named is the file that lists the files of [Files.Remember]. "" means that none are remembered.
	Named string
	// Programs are the paths of what the host runs, itself among them. No plugin may write to a folder that contains one.
	Programs []string
}

// inputs returns the files that the host reads outside of its folders: files that were opened, files that options have
// named, files of secrets, and the targets of links in its folders.
func (o *Files) inputs() []string {
	paths, _ := registered(o.Folders)
	paths = append(append(paths, o.named()...), o.Inputs...)
	if o.Secrets != nil {
		paths = append(paths, o.Secrets()...)
	}
	for _, own := range o.Folders {
		if !own.Links {
			continue
		}
		entries, _ := os.ReadDir(own.Path) // there is nothing in a folder that cannot be read
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				paths = append(paths, filepath.Join(own.Path, e.Name()))
			}
		}
	}
	return paths
}

// FileID identifies a file on this machine, whatever its names are. It is zero where the system has no such numbers.
type FileID struct{ Dev, Ino uint64 }

// Identify returns the identity of what is at a path, zero if there is nothing.
func Identify(path string) FileID {
	info, err := os.Stat(path)
	if err != nil {
		return FileID{}
	}
	id, _ := IDOf(info)
	return id
}

// OutOfReachError says why a folder cannot be granted.
type OutOfReachError struct {
	Folder  string
	Because string // in words that follow the name of the folder
	Instead string // a folder that could be granted
}

func (e *OutOfReachError) Error() string {
	return fmt.Sprintf("%s %s; name a folder that holds only what is needed, such as %s", e.Folder, e.Because,
		e.Instead)
}

// Check returns an *[OutOfReachError] if a folder must not be granted, read-only or writable. The folder need not exist
// yet.
func (o *Files) Check(folder string, writable bool) error {
	g := o.Guard()
	folder = filepath.Clean(folder)
	if filepath.Dir(folder) == folder {
		return outOfReach(folder, "is the root of the file system")
	}
	// Spelling decides where nothing exists yet, and where files have no identity.
	spelled := func(path string) string { return path }
	if runtime.GOOS == "windows" {
		spelled = func(path string) string {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				return real
			}
			return path
		}
	}
	for _, own := range g.Own {
		switch {
		case inFolder(spelled(folder), spelled(own.Path)):
			return own.refuse("lies in", folder)
		case inFolder(spelled(own.Path), spelled(folder)):
			return own.refuse("holds", folder)
		}
	}
	if slices.ContainsFunc(pseudoFolders, func(dir string) bool { return inFolder(folder, dir) }) || pseudoFolder(folder) {
		return outOfReach(folder, "is part of a pseudo file system, through which the kernel shows and changes processes "+
			"and devices")
	}
	if err := g.Folder(folder, folderIDs(folder), writable); err != nil {
		return err
	}
	if why := o.mounted(mounts(), folder, writable); why != "" {
		return outOfReach(folder, why)
	}
	return nil
}

const holdsInput = "holds a file that the host reads (such as tokens, a key, a secret, or the target of one of its " +
	"links) or a program that the host runs, so no plugin may write to it"

func outOfReach(folder, because string) error {
	base := UserHome(os.Getenv)
	if base == "" || strings.HasPrefix(because, "holds") {
		base = folder
	}
	return &OutOfReachError{folder, because, filepath.Join(base, "work")}
}

// pseudoFolders are where pseudo file systems are on every Unix.
var pseudoFolders = []string{"/proc", "/sys", "/dev"}

// inFolder reports whether a path is a folder or below it, by their spelling.
func inFolder(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rest)
}

// Holds returns the files that the host reads whose paths lead through a folder, also by a link. A grant of the folder
// gives no access to them.
func (o *Files) Holds(folder string) (files []string) {
	id := Identify(folder)
	if o == nil || id == (FileID{}) {
		return nil
	}
	for _, path := range o.inputs() {
		if Identify(path) != (FileID{}) && slices.ContainsFunc(foldersTo(path), func(to string) bool {
			return Identify(to) == id
		}) {
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// folderIDs returns the identities of a folder and of all folders that contain it. Zero stands for a folder that does
// not exist.
func folderIDs(folder string) []FileID {
	var ids []FileID
	for {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			break
		}
		ids = []FileID{{}}
		parent := filepath.Dir(folder)
		if parent == folder {
			return nil
		}
		folder = parent
	}
	// The kernel resolves "..", so that a symbolic link leads to the folder that contains its target.
	for at := folder; len(ids) < 1000; at += string(filepath.Separator) + ".." {
		id := Identify(at)
		if n := len(ids); id == (FileID{}) || n > 0 && ids[n-1] == id { // the root contains itself
			return ids
		}
		ids = append(ids, id)
	}
	return ids
}

// Guard keeps one call away from the host's own files, by device and inode. It is plain data, because the process
// of an isolated call checks, too. A nil *Guard denies nothing.
type Guard struct {
	Own     []GuardedFolder `json:"own"`
	Above   []GuardedFolder `json:"above"` // folders that contain own ones, with the names of these
	Devices FileID          `json:"devices"`
	Secrets []FileID        `json:"secrets,omitempty"`
	Opened  []openedFile    `json:"opened,omitempty"` // under any name; what is at their paths now is in Secrets
	Ways    []FileID        `json:"ways,omitempty"`   // folders on the way to what the host reads or runs
	Linked  []FileID        `json:"linked,omitempty"` // what [Guard.Load] found

	load func() []FileID
}

// GuardedFolder is an own folder, or one that contains it.
type GuardedFolder struct {
	Folder
	ID FileID `json:"id"`
}

// Guard returns a guard over what the host has now.
func (o *Files) Guard() *Guard {
	g := &Guard{Devices: Identify("/dev")}
	if o == nil {
		return g
	}
	seen := map[FileID]bool{}
	for _, own := range o.Folders {
		ids := folderIDs(own.Path)
		guarded := GuardedFolder{Folder: own}
		if len(ids) > 0 {
			guarded.ID, ids = ids[0], ids[1:]
		}
		g.Own = append(g.Own, guarded)
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				g.Above = append(g.Above, GuardedFolder{own, id})
			}
		}
	}
	inputs := o.inputs()
	_, g.Opened = registered(o.Folders)
	for _, path := range inputs {
		if id := Identify(path); id != (FileID{}) {
			g.Secrets = append(g.Secrets, id)
		}
	}
	ways := append(inputs, o.Programs...)
	for _, own := range o.Folders {
		ways = append(ways, own.Path)
	}
	for _, path := range ways {
		for _, folder := range foldersTo(path) {
			if id := Identify(folder); id != (FileID{}) {
				g.Ways = append(g.Ways, id)
			}
		}
	}
	g.load = sync.OnceValue(o.fileIDs)
	return g
}

// foldersTo returns the folders through which a path leads. If a name in it is a symbolic link, they include the
// folders through which the link's target leads.
func foldersTo(path string) (folders []string) {
	const most = 256
	for at := range walk(path) {
		if len(folders) == most {
			break
		}
		folders = append(folders, filepath.Dir(at))
	}
	return folders
}

// fileIDs returns the identities of the files in own folders that have more than one name.
func (o *Files) fileIDs() []FileID {
	var ids []FileID
	for i, own := range o.Folders {
		if slices.ContainsFunc(o.Folders[:i], func(f Folder) bool { return inFolder(own.Path, f.Path) }) {
			continue // seen
		}
		_ = filepath.WalkDir(own.Path, func(_ string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil
			}
			if info, err := e.Info(); err == nil {
				if id, links := IDOf(info); links > 1 {
					ids = append(ids, id)
				}
			}
			return nil
		})
	}
	return ids
}

// Load reads the identities of the host's own files, for a process that cannot read them.
func (g *Guard) Load() *Guard {
	if g != nil && g.load != nil {
		g.Linked, g.load = g.load(), nil
	}
	return g
}

// Folder returns an *[OutOfReachError] if a folder must not be granted, read-only or writable. ids are its identity,
// followed by the identities of the folders that contain it.
func (g *Guard) Folder(name string, ids []FileID, writable bool) error {
	if g == nil || len(ids) == 0 {
		return nil
	}
	for _, above := range g.Above {
		if ids[0] == above.ID {
			return above.refuse("holds", name)
		}
	}
	for _, own := range g.Own {
		if own.ID != (FileID{}) && slices.Contains(ids, own.ID) {
			return own.refuse("lies in", name)
		}
	}
	if writable && ids[0] != (FileID{}) && slices.Contains(g.Ways, ids[0]) {
		return outOfReach(name, holdsInput)
	}
	if g.Devices != (FileID{}) && slices.Contains(ids, g.Devices) {
		return outOfReach(name, "is part of a pseudo file system, through which the kernel gives access to devices")
	}
	return nil
}

// refuse returns the error of a folder that contains the own folder, or lies in it.
func (own GuardedFolder) refuse(how, name string) error {
	return outOfReach(name, fmt.Sprintf("%s the host's %s folder, %s", how, own.Name, own.Path))
}

// Denies reports whether a file of a granted folder is one of the host's own: a file that holds a secret, or a hard
// link to a file in an own folder.
func (g *Guard) Denies(info fs.FileInfo) bool {
	if g == nil {
		return false
	}
	id, links := IDOf(info)
	if id == (FileID{}) {
		return false
	}
	if slices.Contains(g.Secrets, id) || slices.Contains(g.Opened, openedFile{id, info.ModTime().UnixNano()}) ||
		slices.ContainsFunc(g.Own, func(f GuardedFolder) bool { return f.ID == id }) {
		return true
	}
	if info.IsDir() || links < 2 {
		return false
	}
	if g.load != nil {
		return slices.Contains(g.load(), id)
	}
	return slices.Contains(g.Linked, id)
}

// register has the files that this process has opened with [Open] and [Append], by their absolute paths, with what was
// opened there last. All hosts of a process share it: a file that one of them reads is out of reach of all plugins.
var register = struct {
	sync.Mutex
	files map[string]openedFile
}{files: map[string]openedFile{}}

// openedFile is a file as it was when it was opened. A system may reuse the inode of a deleted file; the time of the
// change tells the two files apart.
type openedFile struct {
	ID       FileID `json:"id"`
	Modified int64  `json:"modified"` // in nanoseconds since 1970
}

// Register records that the host reads a file. No grant lets a plugin write to its folder, and in a folder that a
// plugin may read the file cannot be opened: neither what was opened nor what is at the path later. Only regular files
// are recorded.
func Register(path string, info fs.FileInfo) {
	path, err := filepath.Abs(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	id, _ := IDOf(info)
	register.Lock()
	defer register.Unlock()
	register.files[path] = openedFile{id, info.ModTime().UnixNano()}
}

// registered returns the paths of the register, and what was opened there. What lies in one of the folders is left
// out, because no grant reaches those.
func registered(folders []Folder) (paths []string, opened []openedFile) {
	register.Lock()
	defer register.Unlock()
	for _, path := range slices.Sorted(maps.Keys(register.files)) {
		if !slices.ContainsFunc(folders, func(f Folder) bool { return inFolder(path, f.Path) }) {
			paths, opened = append(paths, path), append(opened, register.files[path])
		}
	}
	return paths, opened
}

// Remember registers a file, which need not exist yet, for all processes of the user that use the same folders, now
// and later. It is for a file that an option named, such as the tokens of a server, because no other process knows of
// it. It counts while there is a regular file at the path.
func (o *Files) Remember(path string) error {
	path, err := filepath.Abs(path)
	if err != nil || o.Named == "" {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() || slices.Contains(o.named(), path) ||
		slices.ContainsFunc(o.Folders, func(f Folder) bool { return inFolder(path, f.Path) }) {
		return nil
	}
	line, _ := json.Marshal(path)
	if err := os.MkdirAll(filepath.Dir(o.Named), 0o700); err != nil {
		return err
	}
	f, _, err := Append(o.Named)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// named returns the remembered files that exist.
func (o *Files) named() (paths []string) {
	const limit = 1 << 20
	if o.Named == "" {
		return nil
	}
	data, _ := Read(o.Named, limit) // without the file there are none
	for line := range strings.Lines(string(data)) {
		var path string
		if json.Unmarshal([]byte(line), &path) != nil {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			paths = append(paths, path)
		}
	}
	return paths
}
