package keeper

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strconv"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/manifest"
)

// maxUploads limits the files that a session uploads: Chrome reads one when it is sent, so that it has to stay.
const maxUploads = 200

// uploadFolder returns the folder for files that the pages of the caller's session may get. It is removed with the
// session.
func (e *engine) uploadFolder(ctx context.Context, by api.Caller) (api.UploadFolder, *api.Error) {
	if by.HasContext() {
		_, release, err := e.tenancy.enterScope(ctx, by)
		if err != nil {
			return api.UploadFolder{}, err
		}
		defer release()
	}
	e.mux.Lock()
	defer e.mux.Unlock()
	e.countCall(by)
	dir, err := e.owners.setups.uploadFolder(by.SessionKey())
	return api.UploadFolder{Path: dir}, err
}

// uploadFolder returns the folder for uploads of a session, which it creates if necessary.
func (ss *setups) uploadFolder(session string) (string, *api.Error) {
	set := ss.of(session)
	if set.uploads == "" {
		ss.folders++
		dir := filepath.Join(ss.dir, strconv.Itoa(ss.folders))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", api.RunDirError(err)
		}
		set.uploads = dir
	}
	files, err := os.ReadDir(set.uploads)
	if err != nil {
		return "", api.RunDirError(err)
	}
	if len(files) >= maxUploads {
		return "", api.Errorf(api.CodeLimitExceeded, "a session uploads at most %d files; close it, and open it again",
			maxUploads)
	}
	return set.uploads, nil
}

// filesFor returns the paths of the files that a page gets. It may get those in the folder for uploads of the caller's
// session, and what its session has downloaded, under the name that the file had there.
func (e *engine) filesFor(by api.Caller, t *target, files []string) ([]string, *api.Error) {
	e.mux.Lock()
	defer e.mux.Unlock()
	var paths []string
	for _, file := range files {
		info, err := os.Lstat(file)
		downloads := e.tracker.downloads.folderOf(t)
		switch set := e.owners.setups.bySession[by.SessionKey()]; {
		case err != nil || !info.Mode().IsRegular() || filepath.Clean(file) != file:
		case set != nil && set.uploads != "" && filepath.Dir(filepath.Dir(file)) == set.uploads:
			paths = append(paths, file)
			continue
		case downloads != nil && t.owner == by.SessionKey() && filepath.Dir(file) == downloads.dir:
			path, failed := e.owners.setups.link(by.SessionKey(), file, downloads.names[filepath.Base(file)])
			if failed != nil {
				return nil, failed
			}
			paths = append(paths, path)
			continue
		}
		return nil, api.Errorf(api.CodeDenied, "%s is neither a file that was handed on nor a download of this session",
			manifest.CleanLine(file))
	}
	return paths, nil
}

// link gives a download the name that the page had given it, in the folder for uploads.
func (ss *setups) link(session, file, name string) (string, *api.Error) {
	dir, failed := ss.uploadFolder(session)
	if failed != nil {
		return "", failed
	}
	own, err := os.MkdirTemp(dir, "")
	if err != nil {
		return "", api.RunDirError(err)
	}
	path := filepath.Join(own, cmp.Or(name, filepath.Base(file)))
	if err := os.Link(file, path); err != nil {
		return "", api.RunDirError(err)
	}
	return path, nil
}

// setFiles gives files to the file input that a script has returned.
func (e *engine) setFiles(ctx context.Context, t *target, object string, files []string) *api.Error {
	_, err := execute(ctx, e.sender, t, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: files,
		ObjectID: runtime.RemoteObjectID(object)}, callOptions{})
	postCommand(e.sender.mux, t, runtime.ReleaseObject, runtime.ReleaseObjectParams{
		ObjectID: runtime.RemoteObjectID(object)}, nil)
	return err
}
