package wasm

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
)

const (
	readOnly  = experimentalsys.O_RDONLY
	writeOnly = experimentalsys.O_WRONLY
	readWrite = experimentalsys.O_RDWR
	create    = experimentalsys.O_CREAT
)

// mounted returns a folder as the guest of this request sees it.
func mounted(t *testing.T, dir, mode string, r *host.Request) *world.RootFS {
	t.Helper()
	c := guest.New(nil, guest.NewJob("", grant.Limits{}, &manifest.Manifest{Name: "guest"}, nil, r))
	c.Control.Ctx, c.Control.Deadline = t.Context(), time.Now().Add(time.Hour)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	c.Files.Roots = append(c.Files.Roots, root)
	t.Cleanup(c.Files.CloseAll)
	return &world.RootFS{Control: c.Control, Files: c.Files, Root: root, Writable: mode == "rw",
		Grant: grant.FS{Path: "/data", Source: dir, Mode: mode}}
}

// stopped returns the error with which op ended the guest, or nil.
func stopped(op func()) (err *host.Error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case world.GuestHalt:
			err = v.Err
		default:
			panic(v)
		}
	}()
	op()
	return nil
}

// TestFileLimits: each limit on files allows as much as it says, and ends the guest before it does more.
func TestFileLimits(t *testing.T) {
	const limit = 3
	open := func(f *world.RootFS, name string, flag experimentalsys.Oflag) experimentalsys.File {
		file, errno := f.OpenFile(name, flag, 0o600)
		if errno != 0 {
			t.Errorf("%s: %v", name, errno)
		}
		return file
	}
	names := []string{"a", "b", "c", "d"}
	size := func(f *world.RootFS) int {
		info, err := f.Root.Stat("file")
		if err != nil {
			t.Fatal(err)
		}
		return int(info.Size())
	}
	entries := func(f *world.RootFS) int { return len(store.ReadDir(f.Grant.Source)) - 1 }
	for _, tt := range []struct {
		name, text string
		limits     grant.Limits
		step       func(f *world.RootFS, i int)
		done       func(f *world.RootFS) int
	}{
		{"open", "more than 3 files open", grant.Limits{OpenFiles: limit},
			func(f *world.RootFS, _ int) { open(f, "file", readOnly) },
			func(f *world.RootFS) int { return len(f.Files.Open) }},
		{"created by opening", "created more than 3 files", grant.Limits{FilesCreated: limit},
			func(f *world.RootFS, i int) { open(f, names[i], writeOnly|create).Close() }, entries},
		{"created folders", "created more than 3 files", grant.Limits{FilesCreated: limit},
			func(f *world.RootFS, i int) { f.Mkdir(names[i], 0o700) }, entries},
		{"created links", "created more than 3 files", grant.Limits{FilesCreated: limit},
			func(f *world.RootFS, i int) { f.Link("file", names[i]) }, entries},
		{"written", "wrote more than 3 bytes", grant.Limits{BytesWritten: limit},
			func(f *world.RootFS, i int) {
				file := open(f, "file", writeOnly|experimentalsys.O_APPEND)
				defer file.Close()
				file.Write([]byte{'x'})
			}, size},
		{"written at an offset", "wrote more than 3 bytes", grant.Limits{BytesWritten: limit},
			func(f *world.RootFS, i int) {
				file := open(f, "file", readWrite)
				defer file.Close()
				file.Pwrite([]byte{'x'}, int64(i))
			}, size},
		{"extended", "wrote more than 3 bytes", grant.Limits{BytesWritten: limit},
			func(f *world.RootFS, i int) {
				file := open(f, "file", readWrite)
				defer file.Close()
				file.Truncate(int64(i + 1))
			}, size},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, filepath.Join(dir, "file"), nil)
			f := mounted(t, dir, "rw", &host.Request{Job: job.Job{Tool: "tool", Limits: tt.limits}})
			for i := range limit {
				if err := stopped(func() { tt.step(f, i) }); err != nil {
					t.Fatalf("step %d: %v", i+1, err)
				}
			}
			err := stopped(func() { tt.step(f, limit) })
			if err == nil || err.Code != host.LimitExceeded || !strings.Contains(err.Message, tt.text) {
				t.Errorf("one more: %v, want %q", err, tt.text)
			}
			if n := tt.done(f); n != limit {
				t.Errorf("%d were done, the limit is %d", n, limit)
			}
		})
	}
}

// TestLargeWrite: a write that is larger than what remains writes nothing.
func TestLargeWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	put(t, path, nil)
	f := mounted(t, dir, "rw", &host.Request{Job: job.Job{Limits: grant.Limits{BytesWritten: 100}}})
	file, errno := f.OpenFile("file", writeOnly, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	for _, tt := range []struct {
		n, size int
		fits    bool
	}{{101, 0, false}, {99, 99, true}, {2, 99, false}, {1, 100, true}, {1, 100, false}} {
		err := stopped(func() { file.Write(make([]byte, tt.n)) })
		if size := len(readFile(t, path)); (err == nil) != tt.fits || size != tt.size {
			t.Errorf("%d bytes: %v, the file has %d bytes, want %d", tt.n, err, size, tt.size)
		}
	}
}

// TestRecordedUse: opening a file to read it is recorded as reading, everything that can change files as writing.
func TestRecordedUse(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), []byte("content"))
	must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	var uses []string
	r := &host.Request{}
	on(r, job.EventUse, func(e job.Event) { uses = append(uses, e.Right) })
	f := mounted(t, dir, "rw", r)
	at := func(how, name string) string { return "fs:" + how + ":" + filepath.Join(dir, name) }
	for _, tt := range []struct {
		name string
		op   func(f *world.RootFS) experimentalsys.Errno
		want []string
	}{
		{"read", opening("file", readOnly), []string{at("read", "file")}},
		{"list", opening("dir", readOnly|experimentalsys.O_DIRECTORY), []string{at("read", "dir")}},
		{"write", opening("file", writeOnly), []string{at("write", "file")}},
		{"read and write", opening("file", readWrite), []string{at("write", "file")}},
		{"append", opening("file", writeOnly|experimentalsys.O_APPEND), []string{at("write", "file")}},
		{"create", opening("new", writeOnly|create), []string{at("write", "new")}},
		{"truncate", opening("file", experimentalsys.O_TRUNC), []string{at("write", "file")}},
		{"stat", func(f *world.RootFS) experimentalsys.Errno { _, errno := f.Stat("file"); return errno }, nil},
		{"mkdir", func(f *world.RootFS) experimentalsys.Errno { return f.Mkdir("made", 0o700) },
			[]string{at("write", "made")}},
		{"rename", func(f *world.RootFS) experimentalsys.Errno { return f.Rename("new", "old") },
			[]string{at("write", "old"), at("write", "new")}},
		{"unlink", func(f *world.RootFS) experimentalsys.Errno { return f.Unlink("old") }, []string{at("write", "old")}},
	} {
		uses = nil
		if errno := tt.op(f); errno != 0 || !slices.Equal(uses, tt.want) {
			t.Errorf("%s: %v, recorded %q, want %q", tt.name, errno, uses, tt.want)
		}
	}
}

// TestReadOnlyFolder tries every change in a folder that is granted read-only.
func TestReadOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), []byte("content"))
	must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	before := snapshot(t, dir)
	for name, op := range map[string]func(f *world.RootFS) experimentalsys.Errno{
		"mkdir":   func(f *world.RootFS) experimentalsys.Errno { return f.Mkdir("new", 0o700) },
		"rmdir":   func(f *world.RootFS) experimentalsys.Errno { return f.Rmdir("dir") },
		"unlink":  func(f *world.RootFS) experimentalsys.Errno { return f.Unlink("file") },
		"rename":  func(f *world.RootFS) experimentalsys.Errno { return f.Rename("file", "new") },
		"link":    func(f *world.RootFS) experimentalsys.Errno { return f.Link("file", "new") },
		"symlink": func(f *world.RootFS) experimentalsys.Errno { return f.Symlink("file", "new") },
		"utimes":  func(f *world.RootFS) experimentalsys.Errno { return f.Utimens("file", 0, 0) },
		"write":   opening("file", writeOnly), "read and write": opening("file", readWrite),
		"append": opening("file", writeOnly|experimentalsys.O_APPEND), "truncate": opening("file", experimentalsys.O_TRUNC),
		"create": opening("new", writeOnly|create), "create and read": opening("new", readOnly|create),
	} {
		r := &host.Request{}
		denied := denialsOf(r)
		f := mounted(t, dir, "ro", r)
		if errno := op(f); errno != experimentalsys.EROFS || len(*denied) != 1 {
			t.Errorf("%s: %v, denied %v", name, errno, *denied)
		}
	}
	if changes := changesIn(before, snapshot(t, dir)); changes != "" {
		t.Errorf("the folder has changed:\n%s", changes)
	}
}

// opening opens a file and closes it.
func opening(name string, flag experimentalsys.Oflag) func(f *world.RootFS) experimentalsys.Errno {
	return func(f *world.RootFS) experimentalsys.Errno {
		file, errno := f.OpenFile(name, flag, 0o600)
		if errno != 0 {
			return errno
		}
		return file.Close()
	}
}

// TestRefusedFiles opens what a guest must not open, in every way: pipes and sockets, links that leave the folder,
// links where the guest wants none, and the host's own files.
func TestRefusedFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no pipes, and files have no identity")
	}
	inside, outside := tree(t)
	must(t, os.Link(filepath.Join(outside, "secret"), filepath.Join(inside, "own")))
	own := &protect.Files{Folders: []protect.Folder{{Name: "config", Path: outside}}}
	f := mounted(t, inside, "rw", &host.Request{Guard: own.Guard()})
	for _, tt := range []struct {
		name  string
		flag  experimentalsys.Oflag
		errno experimentalsys.Errno
	}{
		{"file", 0, 0}, {"in-file", 0, 0},
		// Opening a pipe that nobody reads, or a socket, would fail with ENXIO: with EPERM it was not tried.
		{"pipe", 0, experimentalsys.EPERM}, {"socket", 0, experimentalsys.EPERM},
		{"out-file", 0, experimentalsys.EPERM}, {"up-file", 0, experimentalsys.EPERM}, {"own", 0, experimentalsys.EPERM},
		{"in-file", experimentalsys.O_NOFOLLOW, experimentalsys.ELOOP}, {"loop", 0, experimentalsys.ELOOP},
	} {
		for _, flag := range []experimentalsys.Oflag{readOnly, writeOnly, readWrite} {
			if errno := opening(tt.name, flag|tt.flag)(f); errno != tt.errno {
				t.Errorf("%s, flags %#x: %v, want %v", tt.name, flag|tt.flag, errno, tt.errno)
			}
		}
	}
}

// TestReplacedFiles opens files under names that have passed all checks before, as if they had been replaced since.
func TestReplacedFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no pipes, and files have no identity")
	}
	inside, outside := tree(t)
	must(t, os.Link(filepath.Join(outside, "secret"), filepath.Join(inside, "own")))
	guard := (&protect.Files{Folders: []protect.Folder{{Name: "config", Path: outside}}}).Guard()
	for _, tt := range []struct {
		name   string
		folder bool // it was one
		errno  experimentalsys.Errno
		denied int
	}{
		{"file", false, 0, 0}, {"dir", true, 0, 0},
		{"file", true, experimentalsys.ENOTDIR, 0},
		{"pipe", false, experimentalsys.EPERM, 0},
		{"own", false, experimentalsys.EPERM, 1},
	} {
		r := &host.Request{Guard: guard}
		denied := denialsOf(r)
		f := mounted(t, inside, "rw", r)
		file, err := f.Root.OpenFile(tt.name, os.O_RDONLY|protect.Nonblock, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		info, errno := f.CheckOpened(file, tt.name, tt.folder)
		if errno != tt.errno || (errno == 0) != (info != nil) || len(*denied) != tt.denied {
			t.Errorf("%s: %v, %v, denied %v, want %v", tt.name, info, errno, *denied, tt.errno)
		}
	}
}
