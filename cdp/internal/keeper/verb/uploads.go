package verb

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/tenant"
	"github.com/parley-tools/parley/manifest"
)

// UploadFolder returns the folder for files that the pages of the caller's session may get. It is removed with the
// session.
func (e *Verbs) UploadFolder(_ context.Context, by api.Caller, _ *tenant.Scope, _ struct{}) (
	api.UploadFolder, *api.Error,
) {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	dir, err := e.Owners.Setups.UploadFolder(by.SessionKey())
	return api.UploadFolder{Path: dir}, err
}

// filesFor returns the paths of the files that a page gets. It may get those in the folder for uploads of the caller's
// session, and what its session has downloaded, under the name that the file had there.
func (e *Verbs) filesFor(by api.Caller, t *target.Target, files []string) ([]string, *api.Error) {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	var paths []string
	for _, file := range files {
		info, err := os.Lstat(file)
		downloads := e.Events.Downloads.FolderOf(t)
		switch set := e.Owners.Setups.BySession[by.SessionKey()]; {
		case err != nil || !info.Mode().IsRegular() || filepath.Clean(file) != file:
		case set != nil && set.Uploads != "" && filepath.Dir(filepath.Dir(file)) == set.Uploads:
			paths = append(paths, file)
			continue
		case downloads != nil && t.Owner == by.SessionKey() && filepath.Dir(file) == downloads.Dir:
			path, failed := e.Owners.Setups.Link(by.SessionKey(), file, downloads.Names[filepath.Base(file)])
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

// GiveFiles returns what uses a file input: it gives files to it, as far as the caller may use them in the target.
func (e *Verbs) GiveFiles(ctx context.Context, by api.Caller, t *target.Target, files []string) func(string) (
	json.RawMessage, *api.Error,
) {
	return func(object string) (json.RawMessage, *api.Error) {
		paths, err := e.filesFor(by, t, files)
		if err == nil {
			_, err = target.Execute(ctx, e.sender, t, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths,
				ObjectID: runtime.RemoteObjectID(object)})
		}
		return nil, err
	}
}

// post is [target.Post] for a caller that has not locked the mux.
func post[P, R any](s *target.Sender, t *target.Target, c cdp.Command[P, R], params P) {
	s.Mux.Lock()
	defer s.Mux.Unlock()
	target.Post(s.Mux, t, c, params, nil)
}
