package keeper

import (
	"context"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/manifest"
)

// uploadFolder returns the folder for files that the pages of the caller's session may get. It is removed with the
// session.
func (e *engine) uploadFolder(ctx context.Context, by api.Caller) (api.UploadFolder, *api.Error) {
	_, release, err := e.tenancy.enter(ctx, by)
	if err != nil {
		return api.UploadFolder{}, err
	}
	defer release()
	e.mux.Lock()
	defer e.mux.Unlock()
	dir, err := e.owners.setups.uploadFolder(by.SessionKey())
	return api.UploadFolder{Path: dir}, err
}

// filesFor returns the paths of the files that a page gets. It may get those in the folder for uploads of the caller's
// session, and what its session has downloaded, under the name that the file had there.
func (e *engine) filesFor(by api.Caller, t *target, files []string) ([]string, *api.Error) {
	e.mux.Lock()
	defer e.mux.Unlock()
	var paths []string
	for _, file := range files {
		info, err := os.Lstat(file)
		downloads := e.events.downloads.folderOf(t)
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

// setFiles gives files to the file input that a script has returned.
func (e *engine) setFiles(ctx context.Context, t *target, object string, files []string) *api.Error {
	_, err := execute(ctx, e.sender, t, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: files,
		ObjectID: runtime.RemoteObjectID(object)}, callOptions{})
	postCommand(e.sender.mux, t, runtime.ReleaseObject, runtime.ReleaseObjectParams{
		ObjectID: runtime.RemoteObjectID(object)}, nil)
	return err
}
