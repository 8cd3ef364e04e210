//go:build linux

package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
)

// endOf returns the record of the end of the download of a URL.
func endOf(t *testing.T, c *Client, url string) (l storedLine, path, state string) {
	t.Helper()
	found := eventsOf(t, c, api.EventsRequest{URL: url, Patterns: []string{"Browser.downloadProgress"}}, some)
	var p struct{ FilePath, State string }
	if err := json.Unmarshal(found[0].Params, &p); err != nil {
		t.Fatal(err)
	}
	return found[0], p.FilePath, p.State
}

// A download of a page, or of a frame in it, is kept in a folder and recorded with the file's path.
func testDownloadsAreKept(t *testing.T, c *Client) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/file"):
			w.Header().Set("Content-Disposition", `attachment; filename="../../report.pdf"`)
			fmt.Fprint(w, "content of ", r.URL.Path)
		case r.URL.Path == "/endless":
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", fmt.Sprint(event.MaxDownloadBytes+1))
			w.Write(make([]byte, 1<<20))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<title>x</title><iframe src="/in"></iframe>`)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	var folders []string
	for _, by := range []api.Caller{api.CommandLine, someClient} {
		mine := c.As(by)
		p, err := mine.Open(testContext(t), api.OpenRequest{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		for name, script := range map[string]string{
			"/file1": "location = '/file1'", "/file2": "frames[0].location = '/file2'",
		} {
			if _, err := evaluate(t, mine, "", script+"; 0"); err != nil {
				t.Fatal(err)
			}
			end, path, state := endOf(t, mine, name)
			content, err := os.ReadFile(path)
			if state != "completed" || string(content) != "content of "+name || err != nil {
				t.Errorf("%s ends %s with %q, %v", name, state, content, err)
			}
			if end.Target != p.Target || !strings.HasSuffix(end.URL, name) {
				t.Errorf("the record is %s", end.raw)
			}
			if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the folder %s: %v, %v", filepath.Dir(path), info, err)
			}
			began := eventsOf(t, mine, api.EventsRequest{URL: name, Patterns: []string{"Browser.downloadWillBegin"}}, some)
			if len(began) != 1 || !strings.Contains(began[0].raw, `report.pdf"`) {
				t.Errorf("the beginning is %+v", began)
			}
			folders = append(folders, filepath.Dir(path))
		}
		// What is too large is cancelled once its size is known.
		evaluate(t, mine, "", "location = '/endless'; 0")
		if end, _, state := endOf(t, mine, "/endless"); state != "canceled" || !strings.Contains(end.Note, "512 MiB") {
			t.Errorf("the endless download: %s", end.raw)
		}
		failed := eventsOf(t, mine, api.EventsRequest{URL: "/endless", Status: "failed", Patterns: []string{"Browser.*"}},
			some)
		if len(failed) != 1 {
			t.Errorf("%d failures", len(failed))
		}
	}
	if folders[0] != folders[1] || folders[2] != folders[3] || folders[0] == folders[2] {
		t.Errorf("the folders of two sessions are %q", folders)
	}
	if _, err := c.As(someClient).CloseSession(testContext(t), ""); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the folder of the second session to be removed", func() bool {
		_, err := os.Stat(folders[2])
		return errors.Is(err, os.ErrNotExist)
	})
	if _, err := os.Stat(folders[0]); err != nil {
		t.Errorf("after the end of the second session: %v", err)
	}
}

// A session keeps a limited number of downloads, and another folder that a caller has chosen has no limit.
func TestDownloadLimits(t *testing.T) {
	withPage(t, func(t *testing.T, e *verb.Verbs, f *muxtest.Browser) {
		e.Events.Downloads.Dir = t.TempDir()
		go e.Events.KeepDownloads(t.Context(), "")
		q := <-f.Sent
		f.Answer(q, `{}`)
		synctest.Wait()
		if folder := scan.Text(q.Params, "downloadPath"); q.Method != "Browser.setDownloadBehavior" ||
			scan.Text(q.Params, "behavior") != "allowAndName" || filepath.Dir(folder) != e.Events.Downloads.Dir {
			t.Fatalf("the browser receives %s %s", q.Method, q.Params)
		}
		e.Owners.TakeOver(api.CommandLine, e.Tracker.ByID["T"])
		download := func(id string) {
			f.Messages <- `{"method":"Page.downloadWillBegin","sessionId":"S","params":{"frameId":"T","guid":"` + id + `"}}`
			f.Messages <- `{"method":"Browser.downloadWillBegin","params":{"frameId":"T","guid":"` + id + `"}}`
			synctest.Wait()
		}
		for i := range event.MaxDownloadFiles {
			download(fmt.Sprint("G", i))
		}
		if len(f.Sent) > 0 {
			t.Fatalf("%s after %d downloads", (<-f.Sent).Method, event.MaxDownloadFiles)
		}
		download("one more")
		if q := <-f.Sent; q.Method != "Browser.cancelDownload" || scan.Text(q.Params, "guid") != "one more" {
			t.Errorf("the browser receives %s %s", q.Method, q.Params)
		}
		f.Messages <- `{"method":"Browser.downloadProgress","params":{"guid":"one more","state":"canceled"}}`
		f.Messages <- `{"method":"Browser.downloadProgress","params":{"guid":"G0","state":"canceled"}}`
		download("in its place")
		synctest.Wait()
		if len(f.Sent) > 0 {
			t.Errorf("%s although a download has ended", (<-f.Sent).Method)
		}
		e.Events.Downloads.ReleaseDownloads(nil)
		download("in a folder of the caller")
		if len(f.Sent) > 0 {
			t.Errorf("%s in a folder of the caller", (<-f.Sent).Method)
		}
		e.Events.RemoveDownloads("")
		if left, err := os.ReadDir(e.Events.Downloads.Dir); err != nil || len(left) > 0 {
			t.Errorf("%v are left, %v", left, err)
		}
	})
}
