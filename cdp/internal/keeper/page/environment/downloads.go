package environment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

type downloadsParams struct {
	Wait int64  `json:"wait"` // milliseconds
	Save string `json:"save"` // FOLDER//REST: the host lets the caller make REST in FOLDER
	Name string `json:"name"` // of the download to save; "" for the newest
}

// downloadsResult are the files that the session has downloaded, the newest last.
type downloadsResult struct {
	Downloads []page.Download `json:"downloads"`
	Saved     *savedFile      `json:"saved,omitempty"`
}

// Step implements [page.Step]. The caller of a step that saves a download knows its name, and the file unless it
// named a folder.
func (r *downloadsResult) Step() (string, any) {
	if r.Saved == nil {
		return "", r
	}
	saved := page.Object{"sha256": r.Saved.SHA256}
	if r.Saved.inFolder {
		saved["path"] = r.Saved.Path
	}
	return "", page.Object{"saved": saved}
}

type savedFile struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
	inFolder bool   // save was given a folder
}

// maxWait bounds the wait for a file that is to be saved. The call may end before.
const maxWait = 10 * time.Minute

// downloads lists the downloads of the session, and saves one.
func downloads(v *page.Visit, p downloadsParams) (*downloadsResult, *api.Error) {
	wait := time.Duration(p.Wait) * time.Millisecond
	if p.Save != "" && wait == 0 {
		wait = v.Within(maxWait)
	}
	ctx, cancel := context.WithTimeout(v.Ctx, wait)
	defer cancel()
	r := &downloadsResult{}
	_ = v.Keeper.Events.AwaitRecords(ctx, func() (done bool) {
		r.Downloads, done = v.DownloadList()
		return done
	})
	if p.Save == "" {
		return r, nil
	}
	d, failed := page.NamedDownload(r.Downloads, p.Name)
	if failed != nil {
		return nil, failed
	}
	var err error
	r.Saved, err = save(d, p.Save)
	switch exists := (*fs.PathError)(nil); {
	case errors.Is(err, fs.ErrExist) && errors.As(err, &exists):
		folder, _, _ := strings.Cut(p.Save, "//")
		return nil, page.Invalid("/save", "the path of a new file", filepath.Join(folder, exists.Path)+", which exists", "")
	case err != nil:
		return nil, api.Errorf(api.CodeUnavailable, "the download cannot be saved: %v", err)
	}
	return r, nil
}

// isNumbered reports whether name is the name given with a number added, as for a second file of the same name.
func isNumbered(name, given string) bool {
	ext := filepath.Ext(given)
	number, ok := strings.CutPrefix(name, strings.TrimSuffix(given, ext)+" (")
	number, isExt := strings.CutSuffix(number, ")"+ext)
	_, err := strconv.Atoi(number)
	return ok && isExt && err == nil
}

// save copies a download to the new file FOLDER//REST, or, if that is a folder, into it under the download's name.
// Links cannot lead out of FOLDER.
func save(d page.Download, to string) (*savedFile, error) {
	at := strings.LastIndex(to, "//")
	if at < 0 {
		return nil, errors.New("the host has not said where")
	}
	folder, rest := to[:at], to[at+len("//"):]
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(rest)
	inFolder := err == nil && info.IsDir()
	if inFolder {
		name := filepath.Base(d.Path)
		_, err := root.Stat(filepath.Join(rest, d.Name))
		if isNumbered(name, d.Name) && errors.Is(err, fs.ErrNotExist) {
			name = d.Name
		}
		rest = filepath.Join(rest, name)
	}
	from, err := os.Open(d.Path)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	into, err := root.OpenFile(rest, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(into, hash), from)
	if err = errors.Join(err, into.Close()); err != nil {
		_ = root.Remove(rest)
		return nil, err
	}
	return &savedFile{filepath.Join(folder, rest), size, hex.EncodeToString(hash.Sum(nil)), inFolder}, nil
}
