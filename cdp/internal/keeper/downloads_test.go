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

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
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
			w.Header().Set("Content-Length", fmt.Sprint(512<<20+1))
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
