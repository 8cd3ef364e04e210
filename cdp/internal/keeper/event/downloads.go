package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// downloads are the files that pages download, in a folder for each session. Chrome names the files by the ids of the
// downloads, because a page chooses the other name; a complete file is renamed to it. They are removed with the
// session, or with the browser.
type downloads struct {
	Dir      string                                   // for the folders; "" keeps no downloads, as in an external browser
	folders  map[cdp.BrowserContextID]*downloadFolder // by session; "" is the default context
	underWay map[string]*download                     // by id
	made     int                                      // folders so far
}

// downloadFolder has the downloads of a session.
type downloadFolder struct {
	Dir     string
	context cdp.BrowserContextID // "": the default one
	files   int
	bytes   int64             // received, or expected
	Names   map[string]string // the names that pages gave the files, by file name where a number was added
	unused  bool              // a caller has chosen another folder
}

// download is a download under way.
type download struct {
	owner     string // the session of its page
	page      string // the id of the target
	url       string
	name      string          // as the page named the file
	folder    *downloadFolder // nil if it goes elsewhere
	bytes     int64           // received, or expected
	cancelled string          // the reason, if it was cancelled
}

// Limits of a session's folder. What exceeds them is cancelled.
const (
	maxDownloadFiles = 100
	maxDownloadBytes = 512 << 20
)

// KeepDownloads lets the pages of a session's browser context download files into a folder. An empty context means
// the default one.
func (ev *Events) KeepDownloads(ctx context.Context, in cdp.BrowserContextID) *api.Error {
	d := &ev.Downloads
	if d.Dir == "" {
		return nil
	}
	ev.mux.Lock()
	d.made++
	f := &downloadFolder{Dir: filepath.Join(d.Dir, strconv.Itoa(d.made)), context: in}
	ev.mux.Unlock()
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return api.Errorf(api.CodeInternal, "the folder for downloads cannot be created: %v", err)
	}
	_, err := target.Execute(ctx, ev.sender, nil, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
		Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllowAndName, BrowserContextID: in, DownloadPath: f.Dir,
		EventsEnabled: new(true),
	})
	if err != nil {
		os.RemoveAll(f.Dir)
		return err
	}
	ev.mux.Lock()
	defer ev.mux.Unlock()
	d.folders[in] = f
	return nil
}

// RemoveDownloads removes the files of a context that was disposed of.
func (ev *Events) RemoveDownloads(in cdp.BrowserContextID) {
	ev.mux.Lock()
	f := ev.Downloads.folders[in]
	delete(ev.Downloads.folders, in)
	maps.DeleteFunc(ev.Downloads.underWay, func(_ string, d *download) bool { return f != nil && d.folder == f })
	ev.mux.Unlock()
	if f != nil {
		os.RemoveAll(f.Dir)
		time.AfterFunc(removeAgain, func() { os.RemoveAll(f.Dir) })
	}
}

// removeAgain is after how long a folder is removed again: Chrome writes files after it has reported their end.
const removeAgain = 2 * time.Second

// FolderOf returns the folder for the downloads of a target, or nil if they go elsewhere or are denied.
func (d *downloads) FolderOf(t *target.Target) *downloadFolder {
	if t.Owner == api.DefaultSession {
		return d.folders[""]
	}
	return d.folders[cdp.BrowserContextID(t.Context)]
}

// pageDownloadBegins is a deprecated event. It says whose page a download belongs to, which the browser's own event
// does not.
const pageDownloadBegins = "Page.downloadWillBegin"

// trackDownload follows a download by its events and adds to the records what they lack. Each download is reported
// twice, first by its page and then by the browser. t is the target in whose session the event arrived. passing is set
// for events that only streams need. The mux is locked.
func (ev *Events) trackDownload(r *Record, t *target.Target) (passing bool) {
	var p struct {
		ID       string                           `json:"guid"`
		Name     string                           `json:"suggestedFilename"`
		URL      string                           `json:"url"`
		State    cdpbrowser.DownloadProgressState `json:"state"`
		Total    float64                          `json:"totalBytes"`
		Received float64                          `json:"receivedBytes"`
		Path     string                           `json:"filePath"`
	}
	if json.Unmarshal(r.Params, &p) != nil || p.ID == "" {
		return false
	}
	d := ev.Downloads.underWay[p.ID]
	if p.State != "" && p.State != cdpbrowser.DownloadProgressStateInProgress {
		delete(ev.Downloads.underWay, p.ID)
	}
	switch {
	case r.Method == pageDownloadBegins:
		if t != nil {
			d := ev.Downloads.begin(p.ID)
			*d = download{owner: t.Owner, page: t.ID, url: clipURL(p.URL), folder: ev.Downloads.FolderOf(t)}
		}
		return false
	case d == nil || d.folder == nil:
		return p.State == cdpbrowser.DownloadProgressStateInProgress
	}
	r.Target, r.url = d.page, d.url
	switch p.State {
	case "":
		d.folder.files++
		d.name = p.Name
		ev.limitDownload(p.ID, d)
		return false
	case cdpbrowser.DownloadProgressStateInProgress:
		grown := int64(max(p.Total, p.Received)) - d.bytes
		d.bytes += grown
		d.folder.bytes += grown
		ev.limitDownload(p.ID, d)
		return true
	}
	r.ofURL, r.note = true, d.cancelled
	switch {
	case p.State != cdpbrowser.DownloadProgressStateCompleted:
		r.status = noResponse
	case d.cancelled != "": // too late
		go os.Remove(p.Path)
	default:
		fields := map[string]json.RawMessage{}
		_ = json.Unmarshal(r.Params, &fields)
		fields["filePath"] = scan.Quote(d.rename(p.Path))
		r.Params = scan.Marshal(fields)
		return false
	}
	d.folder.files--
	d.folder.bytes -= d.bytes
	return false
}

// maxDownloads limits the downloads that are known at a time. A download that is forgotten counts as the person's.
const maxDownloads = 1024

// begin returns the entry of a download, which it creates if necessary.
func (d *downloads) begin(id string) *download {
	if len(d.underWay) >= maxDownloads || d.underWay == nil {
		d.underWay = map[string]*download{}
	}
	if d.underWay[id] == nil {
		d.underWay[id] = &download{}
	}
	return d.underWay[id]
}

// Disown takes the downloads under way away from a session. The mux is locked.
func (d *downloads) Disown(session string) {
	for _, one := range d.underWay {
		if one.owner == session {
			one.owner = api.Disowned
		}
	}
}

// ReleaseDownloads is called when a caller has chosen what happens to the downloads of a context. Its own folder has no
// limits.
func (ev *Events) ReleaseDownloads(params json.RawMessage) {
	ev.mux.Lock()
	defer ev.mux.Unlock()
	if f := ev.Downloads.folders[cdp.BrowserContextID(scan.Text(params, "browserContextId"))]; f != nil {
		f.unused = true
	}
}

// maxName is the length of a file's name, in bytes, with room for a number.
const maxName = 240

// rename gives a complete file the name that its page gave it, with a number if another file has that name. It
// returns the path of the file.
func (d *download) rename(file string) string {
	name := filepath.Base(d.name)
	if filepath.Dir(file) != d.folder.Dir || strings.Trim(name, "./") == "" {
		return file
	}
	ext := filepath.Ext(name)
	if len(name) > maxName {
		ext = strings.ToValidUTF8(ext[:min(len(ext), maxName/4)], "")
		name = strings.ToValidUTF8(name[:maxName-len(ext)], "") + ext
	}
	for i, try := 1, name; i <= maxDownloadFiles; i++ {
		path := filepath.Join(d.folder.Dir, try)
		err := os.Link(file, path)
		if err == nil {
			_ = os.Remove(file)
			if i > 1 {
				d.folder.name(try, name)
			}
			return path
		}
		if !errors.Is(err, fs.ErrExist) {
			break // such as a name that is too long
		}
		try = fmt.Sprintf("%s (%d)%s", strings.TrimSuffix(name, ext), i, ext)
	}
	return file
}

// name records the name that a page gave a file.
func (f *downloadFolder) name(file, given string) {
	if f.Names == nil {
		f.Names = map[string]string{}
	}
	if len(f.Names) < maxDownloads {
		f.Names[file] = given
	}
}

// limitDownload cancels a download if the folder is full.
func (ev *Events) limitDownload(id string, d *download) {
	switch {
	case d.cancelled != "" || d.folder.unused:
		return
	case d.folder.files > maxDownloadFiles:
		d.cancelled = fmt.Sprintf("cancelled: a session keeps at most %d downloads", maxDownloadFiles)
	case d.folder.bytes > maxDownloadBytes:
		d.cancelled = fmt.Sprintf("cancelled: the downloads of a session have at most %d MiB", maxDownloadBytes>>20)
	default:
		return
	}
	params := cdpbrowser.CancelDownloadParams{GUID: id, BrowserContextID: d.folder.context}
	target.Post(ev.mux, nil, cdpbrowser.CancelDownload, params, nil)
}

// OwnerOfDownload returns the owner of the page that began a download, or the person if that is unknown. The
// mux is locked.
func (ev *Events) OwnerOfDownload(params json.RawMessage) string {
	if ev.Tracker.External {
		return ""
	}
	id := scan.Text(params, "guid")
	if t := ev.Tracker.ByID[scan.Text(params, "frameId")]; t != nil {
		ev.Downloads.begin(id).owner = t.Owner
	}
	if d := ev.Downloads.underWay[id]; d != nil {
		return d.owner
	}
	return api.DefaultSession
}
