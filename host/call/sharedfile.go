package call

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// A tool whose schema marks a parameter as handed does not get the path of a file that its caller names: the host opens
// the file, and the tool gets a text with its size and its name. It can pass the text to a tool of a built-in plugin,
// for which the host copies the content to where that needs it. So a plugin that gives files to a page reads none.

// sharedMark is the member of a schema of a parameter that names files to hand on.
const sharedMark = "x-handed"

// maxSharedFile limits the size of a file that is handed on.
const maxSharedFile = 512 << 20

// sharedFiles are the files that were opened for a call and for those that it causes.
type sharedFiles struct {
	mu    sync.Mutex
	files map[string]*os.File
}

// sharesFiles reports whether the files that a tool declares are handed on.
func sharesFiles(t *manifest.Tool) bool {
	return len(t.Files) > 0 && bytes.Contains(t.Params, []byte(sharedMark))
}

// add opens a file that the caller of a tool may name, and returns the text that stands for it. Path is where it is.
func (h *sharedFiles) add(tool, name, path string, open func(path string) (*os.File, error)) (string, error) {
	refused := func(why string) (string, error) {
		return "", host.Errorf(host.InvalidArgs, "%s: %s %s; nothing was run", tool, host.Printable(name), why)
	}
	before, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return refused("does not exist")
	case err != nil:
		return refused("cannot be read")
	case !before.Mode().IsRegular(): // to open a pipe or a device could take for ever
		return refused("is not a regular file")
	case before.Size() > maxSharedFile:
		return refused(fmt.Sprintf("has %d bytes; the limit is %d", before.Size(), maxSharedFile))
	}
	f, err := open(path)
	if err != nil {
		return refused("cannot be read")
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(before, opened) {
		_ = f.Close()
		return refused("has changed meanwhile")
	}
	var random [8]byte
	_, _ = rand.Read(random[:])
	text := fmt.Sprintf("%s%x/%d/%s", host.SharedFilePrefix, random, before.Size(), filepath.Base(path))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.files == nil {
		h.files = map[string]*os.File{}
	}
	h.files[text] = f
	return text, nil
}

// openRead are the flags with which a file is opened: a pipe that has replaced it meanwhile is not waited for.
const openRead = os.O_RDONLY | protect.Nonblock

func openAnywhere(path string) (*os.File, error) { return os.OpenFile(path, openRead, 0) }

// openWithin opens a file in a folder. No symbolic link leads out of it, also none that was put there meanwhile.
func openWithin(folder, path string) (*os.File, error) {
	rest, err := filepath.Rel(folder, path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(rest, openRead, 0)
}

func (h *sharedFiles) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		_ = f.Close()
	}
	clear(h.files)
}

// copy copies the file that a text stands for into a folder, and returns its path there.
func (h *sharedFiles) copy(text, folder string) (string, error) {
	h.mu.Lock()
	f := h.files[text]
	h.mu.Unlock()
	if f == nil {
		return "", host.Errorf(host.InvalidArgs, "%s is not a file that was handed to this call", host.Printable(text))
	}
	info, err := f.Stat()
	if err != nil {
		return "", &host.Error{Code: host.Internal, Cause: err, Message: "a file that was handed on cannot be read"}
	}
	failed := func(err error) (string, error) {
		return "", &host.Error{Code: host.ConfigError, Cause: err, Message: "a file cannot be handed on: " + err.Error()}
	}
	own, err := os.MkdirTemp(folder, "")
	if err != nil {
		return failed(err)
	}
	_, rest, _ := strings.Cut(text, "/")
	_, name, _ := strings.Cut(rest, "/")
	path := filepath.Join(own, name)
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = io.Copy(to, io.NewSectionReader(f, 0, min(info.Size(), maxSharedFile)))
		err = errors.Join(err, to.Close())
	}
	if err != nil {
		_ = os.RemoveAll(own)
		return failed(err)
	}
	return path, nil
}
