package world

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Files are the open files of a call, and the resources that it has used, over all its mounts.
type Files struct {
	Control *Control
	Request *host.Request
	Scratch *memFS // for kind wasi: input and output files in memory; may be nil
	Roots   []*os.Root
	Open    map[*rootFile]bool // wazero closes them only if the instance was created
	Opened  int
	created int
	written int64
}

// CloseAll closes all files and folders of the call.
func (t *Files) CloseAll() {
	for f := range t.Open {
		_ = f.Close()
	}
	for _, r := range t.Roots {
		_ = r.Close()
	}
}

// Mount gives the guest its assets and its granted folders. Each folder gets a file system that cannot leave it.
func (t *Files) Mount(config wazero.ModuleConfig, m *manifest.Manifest, assets *MemNode) (wazero.ModuleConfig, error) {
	fsConfig := wazero.NewFSConfig()
	mountAt := func(f experimentalsys.FS, at string) { fsConfig = fsConfig.(sysfs.FSConfig).WithSysFSMount(f, at) }
	if t.Scratch != nil {
		mountAt(t.Scratch, "/")
	}
	if m.Assets != nil { // all calls share one tree
		mountAt(&memFS{files: t, tree: memTree{root: assets}}, m.Assets.Path)
	}
	for _, g := range t.Request.Grant.FS {
		root, err := protect.OpenFolder(g.Source)
		if err != nil {
			return nil, t.Control.recordFatal(&host.Error{Code: host.ConfigError, Cause: err,
				Steps: []step.Step{step.Operator(step.OpPolicyExplain, m.Name)},
				Message: "the folder " + manifest.CleanLine(g.Source) + " granted to " + m.Name + " cannot be opened: " +
					host.WithoutPath(err).Error() + "; nothing was run"})
		}
		t.Roots = append(t.Roots, root)
		device, err := t.checkReach(root, g)
		if err != nil {
			return nil, t.Control.recordFatal(&host.Error{Code: host.Denied, Cause: err,
				Steps:   []step.Step{step.Operator(step.OpPolicyExplain, m.Name)},
				Denied:  []grant.Denial{{Right: "fs:" + g.Mode + ":" + g.Source + "=" + g.Path, Why: err.Error()}},
				Message: manifest.CleanLine(err.Error()) + "; nothing was run"})
		}
		mountAt(&RootFS{Control: t.Control, Files: t, Root: root, Grant: g, device: device, Writable: g.Mode == "rw"},
			path.Clean("/"+g.Path))
	}
	return config.WithFSConfig(fsConfig), nil
}

// checkOpen ends the guest if it has reached its limit of open files.
func (t *Files) checkOpen() {
	if t.Opened >= t.Control.Limits.OpenFiles {
		t.Control.ExceedLimit("%s has more than %d files open", t.Control.Tool, t.Control.Limits.OpenFiles)
	}
}

// checkReach checks the opened folder, because its name may by now lead to one of the host's own folders. It returns
// the folder's device.
func (t *Files) checkReach(root *os.Root, g grant.FS) (device uint64, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	if protect.PseudoFile(dir) {
		return 0, errors.New(g.Source + " is part of a pseudo file system")
	}
	ids := parentsOf(dir)
	if len(ids) > 0 {
		device = ids[0].Dev
	}
	return device, t.Request.Guard.Folder(g.Source, ids, g.Mode == "rw")
}

// RootFS is a granted folder as the guest sees it. Symbolic links are only followed within the folder; os.Root
// ensures that even while they change. A guest cannot create symbolic links, which could mislead other programs
// later. Pipes, devices and sockets cannot be opened. Nothing can be changed unless writable is set.
type RootFS struct {
	experimentalsys.UnimplementedFS
	Control  *Control
	Files    *Files
	Root     *os.Root
	Grant    grant.FS
	device   uint64 // of the folder; 0 if not known
	Writable bool
}

// denyOwn refuses a file that belongs to the host.
func (f *RootFS) denyOwn(name string) experimentalsys.Errno {
	f.Files.Request.Deny("fs:"+f.Grant.Mode+":"+filepath.Join(f.Grant.Source, name),
		"it is a file of the host itself, or part of a pseudo file system, and no grant reaches those")
	return experimentalsys.EPERM
}

// recordUse records how a file of this machine was used.
func (f *RootFS) recordUse(how, name string) {
	f.Files.Request.RecordUse("fs:" + how + ":" + filepath.Join(f.Grant.Source, name))
}

// denyWrite records a denied change.
func (f *RootFS) denyWrite() experimentalsys.Errno {
	why := "the folder is granted read-only"
	if def := f.Files.Request.Def; def != nil && def.Effect == manifest.EffectRead {
		why = f.Control.Tool + " has the effect read, which has folders read-only; declare the effect write"
	}
	f.Files.Request.Deny("fs:rw:"+f.Grant.Source+"="+f.Grant.Path, why)
	return experimentalsys.EROFS
}

// errnoOf converts an error of package os. An attempt to leave the folder is EPERM.
func errnoOf(err error) experimentalsys.Errno {
	if err == nil {
		return 0
	}
	errno := experimentalsys.UnwrapOSError(err)
	if errno == experimentalsys.EIO && strings.HasSuffix(err.Error(), "path escapes from parent") {
		return experimentalsys.EPERM
	}
	return errno
}

// local returns the path of a file relative to the mount, and whether it must be a folder because it ends in a slash.
// wazero has already refused absolute paths: a slash at the start only means that the path is relative to a folder that
// the guest opened as ".".
func local(name string) (string, bool) {
	name = strings.TrimLeft(name, "/")
	trimmed := strings.TrimRight(name, "/")
	if trimmed == "" {
		return ".", true
	}
	return trimmed, trimmed != name
}

const writeFlags = experimentalsys.O_RDWR | experimentalsys.O_WRONLY |
	experimentalsys.O_CREAT | experimentalsys.O_TRUNC | experimentalsys.O_APPEND

// OpenFile opens a file or a folder. It refuses devices, pipes and sockets.
func (f *RootFS) OpenFile(name string, flag experimentalsys.Oflag, perm fs.FileMode) (experimentalsys.File,
	experimentalsys.Errno) {
	f.Control.Checkpoint()
	name, folder := local(name)
	folder = folder || flag&experimentalsys.O_DIRECTORY != 0
	write := flag&(experimentalsys.O_RDWR|experimentalsys.O_WRONLY) != 0
	if folder {
		flag &^= writeFlags // nothing is created or truncated
	}
	if flag&writeFlags != 0 && !f.Writable {
		return nil, f.denyWrite()
	}
	// Only files and folders are opened: opening a device can do harm, and opening a pipe can block forever.
	info, err := f.Root.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if flag&experimentalsys.O_NOFOLLOW != 0 {
			return nil, experimentalsys.ELOOP
		}
		info, err = f.Root.Stat(name)
	}
	switch {
	case err == nil && !isRegularOrDir(info):
		return nil, experimentalsys.EPERM
	case err == nil && f.Files.Request.Guard.Denies(info):
		return nil, f.denyOwn(name)
	case err == nil && info.IsDir() && write:
		return nil, experimentalsys.EISDIR
	case err != nil && flag&experimentalsys.O_CREAT == 0:
		return nil, errnoOf(err)
	case err != nil:
		f.Files.countCreated()
	}
	f.Files.checkOpen()
	// Truncate the file only once it is certain which file it is.
	toOpen, truncate := flag&^experimentalsys.O_TRUNC, flag&experimentalsys.O_TRUNC != 0
	if truncate && !write {
		toOpen |= experimentalsys.O_RDWR
	}
	// Do not wait for a pipe that has replaced the file meanwhile.
	file, err := f.Root.OpenFile(name, osFlags(toOpen)|protect.Nonblock, perm.Perm())
	if err != nil {
		return nil, errnoOf(err)
	}
	info, errno := f.CheckOpened(file, name, folder)
	if errno != 0 {
		_ = file.Close()
		return nil, errno
	}
	if truncate && info.Size() > 0 {
		if err := file.Truncate(0); err != nil {
			_ = file.Close()
			return nil, errnoOf(err)
		}
	}
	f.Files.Opened++
	if flag&writeFlags != 0 {
		f.recordUse("write", name)
	} else {
		f.recordUse("read", name)
	}
	opened := &rootFile{fs: f, name: name, file: file, dir: info.IsDir(), flag: flag,
		openedToAppend: flag&experimentalsys.O_APPEND != 0}
	if f.Files.Open == nil {
		f.Files.Open = map[*rootFile]bool{}
	}
	f.Files.Open[opened] = true
	return opened, 0
}

// CheckOpened returns the opened file's info, or why a guest may not have it, because the name may by now refer to
// another file.
func (f *RootFS) CheckOpened(file *os.File, name string, folder bool) (fs.FileInfo, experimentalsys.Errno) {
	info, err := file.Stat()
	if err != nil {
		return nil, errnoOf(err)
	}
	id, _ := protect.IDOf(info)
	switch {
	case !isRegularOrDir(info):
		return nil, experimentalsys.EPERM
	case f.Files.Request.Guard.Denies(info) || f.device != 0 && id.Dev != f.device && protect.PseudoFile(file):
		return nil, f.denyOwn(name)
	case folder && !info.IsDir():
		return nil, experimentalsys.ENOTDIR
	}
	return info, 0
}

func isRegularOrDir(info fs.FileInfo) bool { return info.Mode().IsRegular() || info.IsDir() }

func osFlags(flag experimentalsys.Oflag) int {
	out := os.O_RDONLY
	switch {
	case flag&experimentalsys.O_RDWR != 0:
		out = os.O_RDWR
	case flag&experimentalsys.O_WRONLY != 0:
		out = os.O_WRONLY
	}
	for _, f := range []struct {
		guest experimentalsys.Oflag
		os    int
	}{{experimentalsys.O_APPEND, os.O_APPEND}, {experimentalsys.O_CREAT, os.O_CREATE}, {experimentalsys.O_EXCL,
		os.O_EXCL}, {experimentalsys.O_TRUNC, os.O_TRUNC}, {experimentalsys.O_SYNC, os.O_SYNC}} {
		if flag&f.guest != 0 {
			out |= f.os
		}
	}
	return out
}

func (t *Files) countCreated() {
	if t.created++; t.created > t.Control.Limits.created {
		t.Control.ExceedLimit("%s created more than %d files", t.Control.Tool, t.Control.Limits.created)
	}
}

func (t *Files) countWritten(n int64) {
	if n > t.Control.Limits.written-t.written {
		t.Control.ExceedLimit("%s wrote more than %d bytes to files", t.Control.Tool, t.Control.Limits.written)
	}
	t.written += n
}

// Lstat describes a file, and a link itself.
func (f *RootFS) Lstat(name string) (sys.Stat_t, experimentalsys.Errno) {
	f.Control.Checkpoint()
	at, folder := local(name)
	if folder {
		return f.Stat(name)
	}
	info, err := f.Root.Lstat(at)
	if err != nil {
		return sys.Stat_t{}, errnoOf(err)
	}
	return sys.NewStat_t(info), 0
}

// Stat describes a file, and the target of a link.
func (f *RootFS) Stat(name string) (sys.Stat_t, experimentalsys.Errno) {
	f.Control.Checkpoint()
	name, folder := local(name)
	info, err := f.Root.Stat(name)
	switch {
	case err != nil:
		return sys.Stat_t{}, errnoOf(err)
	case folder && !info.IsDir():
		return sys.Stat_t{}, experimentalsys.ENOTDIR
	}
	return sys.NewStat_t(info), 0
}

// modify runs an operation that changes the file with a name.
func (f *RootFS) modify(name string, op func() error) experimentalsys.Errno {
	f.Control.Checkpoint()
	if !f.Writable {
		return f.denyWrite()
	}
	f.recordUse("write", name)
	return errnoOf(op())
}

// Mkdir makes a folder.
func (f *RootFS) Mkdir(name string, perm fs.FileMode) experimentalsys.Errno {
	name, _ = local(name)
	return f.modify(name, func() error {
		f.Files.countCreated()
		return f.Root.Mkdir(name, perm.Perm())
	})
}

// Rename renames within the folder that was granted.
func (f *RootFS) Rename(from, to string) experimentalsys.Errno {
	from, fromFolder := local(from)
	to, toFolder := local(to)
	return f.modify(to, func() error {
		f.recordUse("write", from)
		if fromFolder || toFolder {
			if info, err := f.Root.Lstat(from); err != nil {
				return err
			} else if !info.IsDir() {
				return experimentalsys.ENOTDIR
			}
		}
		err := f.Root.Rename(from, to)
		if errors.Is(err, fs.ErrExist) {
			return RenameOver(f.Root, from, to)
		}
		return err
	})
}

// Rmdir removes an empty folder.
func (f *RootFS) Rmdir(name string) experimentalsys.Errno { return f.remove(name, true) }

// Unlink removes a file or a link.
func (f *RootFS) Unlink(name string) experimentalsys.Errno { return f.remove(name, false) }

func (f *RootFS) remove(name string, dir bool) experimentalsys.Errno {
	name, folder := local(name)
	return f.modify(name, func() error {
		info, err := f.Root.Lstat(name)
		switch {
		case err != nil:
			return err
		case info.IsDir() && !dir:
			return experimentalsys.EISDIR
		case !info.IsDir() && (dir || folder):
			return experimentalsys.ENOTDIR
		}
		return f.Root.Remove(name)
	})
}

// Link makes a hard link.
func (f *RootFS) Link(from, to string) experimentalsys.Errno {
	from, _ = local(from)
	to, folder := local(to)
	return f.modify(to, func() error {
		info, err := f.Root.Lstat(from)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return experimentalsys.EPERM
		}
		if folder { // nothing but a folder can have this name
			if _, err := f.Root.Lstat(to); err != nil {
				return err
			}
			return experimentalsys.EEXIST
		}
		f.Files.countCreated()
		return f.Root.Link(from, to)
	})
}

// Symlink refuses every symbolic link, because a link could lead out of the folder later.
func (f *RootFS) Symlink(_, _ string) experimentalsys.Errno {
	if !f.Writable {
		return f.denyWrite()
	}
	return experimentalsys.EPERM
}

// Readlink returns the target of a link. It returns EPERM for a link that leads out of the folder, because the target
// would reveal where the folder is, or what else exists on this machine.
func (f *RootFS) Readlink(name string) (string, experimentalsys.Errno) {
	f.Control.Checkpoint()
	name, _ = local(name)
	target, err := f.Root.Readlink(name)
	if err != nil {
		return "", errnoOf(err)
	}
	if filepath.IsAbs(target) {
		return "", experimentalsys.EPERM
	}
	_, err = f.Root.Stat(name)
	switch {
	case err == nil:
		return filepath.ToSlash(target), 0
	case errnoOf(err) == experimentalsys.EPERM || !filepath.IsLocal(filepath.Join(filepath.Dir(name), target)):
		return "", experimentalsys.EPERM
	}
	return filepath.ToSlash(target), 0
}

// Utimens sets the times of a file, in nanoseconds.
func (f *RootFS) Utimens(name string, atim, mtim int64) experimentalsys.Errno {
	name, _ = local(name)
	return f.modify(name, func() error { return f.Root.Chtimes(name, timeOf(atim), timeOf(mtim)) })
}

// timeOf converts nanoseconds. The zero time leaves the file's time as it is.
func timeOf(ns int64) time.Time {
	if ns == experimentalsys.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// fileOffset keeps go vet from mistaking wazero's Seek, which returns an Errno, for a misspelt io.Seeker.
type fileOffset = int64

// rootFile is an open file or folder of a rootFS.
type rootFile struct {
	experimentalsys.UnimplementedFile
	fs           *RootFS
	name         string
	file         *os.File
	dir          bool
	flag         experimentalsys.Oflag
	mayBePastEnd bool // the offset may be beyond the end of the file
	closed       bool

	openedToAppend bool // the file was opened for appending, whatever the current flag
}

func (f *rootFile) canWrite() bool {
	return f.fs.Writable && !f.dir && f.flag&(experimentalsys.O_RDWR|experimentalsys.O_WRONLY) != 0
}

func (f *rootFile) Stat() (sys.Stat_t, experimentalsys.Errno) {
	info, err := f.file.Stat()
	if err != nil {
		return sys.Stat_t{}, errnoOf(err)
	}
	return sys.NewStat_t(info), 0
}

func (f *rootFile) Dev() (uint64, experimentalsys.Errno) {
	st, errno := f.Stat()
	return st.Dev, errno
}

func (f *rootFile) Ino() (sys.Inode, experimentalsys.Errno) {
	st, errno := f.Stat()
	return st.Ino, errno
}

func (f *rootFile) IsDir() (bool, experimentalsys.Errno) { return f.dir, 0 }

func (f *rootFile) IsAppend() bool { return f.flag&experimentalsys.O_APPEND != 0 }

func (f *rootFile) SetAppend(on bool) experimentalsys.Errno {
	switch {
	case f.dir:
		return experimentalsys.EISDIR
	case on == f.IsAppend():
		return 0
	}
	if err := setAppend(f.file, on); err != nil {
		return errnoOf(err)
	}
	f.flag ^= experimentalsys.O_APPEND
	return 0
}

func (f *rootFile) Read(p []byte) (int, experimentalsys.Errno) {
	if f.dir {
		return 0, experimentalsys.EISDIR
	}
	return f.inChunks(p, func(p []byte, _ int) (int, error) { return f.file.Read(p) })
}

func (f *rootFile) Pread(p []byte, off int64) (int, experimentalsys.Errno) {
	switch {
	case f.dir:
		return 0, experimentalsys.EISDIR
	case off < 0:
		return 0, experimentalsys.EINVAL
	}
	return f.inChunks(p, func(p []byte, done int) (int, error) { return f.file.ReadAt(p, off+int64(done)) })
}

func (f *rootFile) Write(p []byte) (int, experimentalsys.Errno) {
	if !f.canWrite() {
		return 0, f.writeErrno()
	}
	if f.mayBePastEnd && !f.IsAppend() {
		if at, err := f.file.Seek(0, io.SeekCurrent); err == nil {
			f.countGap(at)
		}
	}
	f.fs.Files.countWritten(int64(len(p)))
	return f.inChunks(p, func(p []byte, _ int) (int, error) { return f.file.Write(p) })
}

func (f *rootFile) Pwrite(p []byte, off int64) (int, experimentalsys.Errno) {
	switch {
	case !f.canWrite():
		return 0, f.writeErrno()
	case off < 0:
		return 0, experimentalsys.EINVAL
	}
	if !f.IsAppend() {
		f.countGap(off)
	}
	f.fs.Files.countWritten(int64(len(p)))
	return f.inChunks(p, func(p []byte, done int) (int, error) { return f.writeAt(p, off+int64(done)) })
}

// writeAt writes at an offset, or at the end in append mode, as Linux does. Package os refuses the offset for a file
// that was opened for appending, even if it no longer appends.
func (f *rootFile) writeAt(p []byte, off int64) (int, error) {
	if !f.openedToAppend {
		return f.file.WriteAt(p, off)
	}
	current, err := f.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	if _, err = f.file.Seek(off, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := f.file.Write(p)
	if _, back := f.file.Seek(current, io.SeekStart); err == nil {
		err = back
	}
	return n, err
}

// countGap counts the gap that a write beyond the end of a file creates, because a copy of the file takes that much
// space.
func (f *rootFile) countGap(at int64) {
	if info, err := f.file.Stat(); err == nil && at > info.Size() {
		f.fs.Files.countWritten(at - info.Size())
	}
}

func (f *rootFile) writeErrno() experimentalsys.Errno {
	if f.dir {
		return experimentalsys.EISDIR
	}
	return experimentalsys.EBADF
}

// inChunks processes p in chunks with checkpoints between them. It processes all of p unless the file ends, because
// wazero v1.12.0 continues with the next vector after a short write.
func (f *rootFile) inChunks(p []byte, step func(p []byte, done int) (int, error)) (int, experimentalsys.Errno) {
	f.fs.Control.Checkpoint()
	done := 0
	for {
		piece := p[done:min(len(p), done+chunkBytes)]
		n, err := step(piece, done)
		done += n
		if err != nil && !errors.Is(err, io.EOF) {
			return done, errnoOf(err)
		}
		if err != nil || n < len(piece) || done == len(p) {
			return done, 0
		}
		f.fs.Control.Checkpoint()
	}
}

func (f *rootFile) Seek(offset fileOffset, whence int) (int64, experimentalsys.Errno) {
	if f.dir && (offset != 0 || whence != io.SeekStart) {
		return 0, experimentalsys.EISDIR
	}
	f.mayBePastEnd = f.mayBePastEnd || offset != 0
	at, err := f.file.Seek(offset, whence)
	return at, errnoOf(err)
}

// Readdir returns names, types and inode numbers.
func (f *rootFile) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	if !f.dir {
		return nil, experimentalsys.ENOTDIR
	}
	var out []experimentalsys.Dirent
	for n <= 0 || len(out) < n {
		f.fs.Control.Checkpoint()
		want := 1024
		if n > 0 {
			want = min(want, n-len(out))
		}
		entries, err := f.file.ReadDir(want)
		for _, e := range entries {
			out = append(out, experimentalsys.Dirent{Name: e.Name(), Type: e.Type(), Ino: inodeOf(f.file, e.Name())})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, errnoOf(err)
		}
	}
	return out, 0
}

func (f *rootFile) Truncate(size int64) experimentalsys.Errno {
	switch {
	case !f.canWrite():
		return f.writeErrno()
	case size < 0:
		return experimentalsys.EINVAL
	}
	f.countGap(size)
	return errnoOf(f.file.Truncate(size))
}

func (f *rootFile) Sync() experimentalsys.Errno {
	if !f.fs.Writable {
		return 0
	}
	f.fs.Control.Checkpoint()
	// A sync may take seconds. If the call ends first, the sync continues in the background until the file is closed.
	done := make(chan error, 1)
	go func() { done <- f.file.Sync() }()
	select {
	case err := <-done:
		return errnoOf(err)
	case <-f.fs.Control.Ctx.Done():
		f.fs.Control.Checkpoint()
		return experimentalsys.EINTR
	}
}

func (f *rootFile) Datasync() experimentalsys.Errno { return f.Sync() }

func (f *rootFile) Utimens(atim, mtim int64) experimentalsys.Errno {
	return f.fs.Utimens(f.name, atim, mtim)
}

func (f *rootFile) Close() experimentalsys.Errno {
	if f.closed {
		return 0
	}
	f.closed = true
	f.fs.Files.Opened--
	delete(f.fs.Files.Open, f)
	return errnoOf(f.file.Close())
}
