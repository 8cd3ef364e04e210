package event

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// A session keeps a limited number of downloads, and another folder that a caller has chosen has no limit.
func TestDownloadLimits(t *testing.T) {
	withEvents(t, func(ev *Events, f *muxtest.Browser) {
		ev.Downloads.Dir = t.TempDir()
		go ev.KeepDownloads(context.Background(), "")
		q := <-f.Sent
		f.Answer(q, `{}`)
		synctest.Wait()
		if folder := scan.Text(q.Params, "downloadPath"); q.Method != "Browser.setDownloadBehavior" ||
			scan.Text(q.Params, "behavior") != "allowAndName" || filepath.Dir(folder) != ev.Downloads.Dir {
			t.Fatalf("the browser receives %s %s", q.Method, q.Params)
		}
		download := func(id string) {
			f.Messages <- `{"method":"Page.downloadWillBegin","sessionId":"S","params":{"frameId":"T","guid":"` + id + `"}}`
			f.Messages <- `{"method":"Browser.downloadWillBegin","params":{"frameId":"T","guid":"` + id + `"}}`
			synctest.Wait()
		}
		for i := range maxDownloadFiles {
			download(fmt.Sprint("G", i))
		}
		if len(f.Sent) > 0 {
			t.Fatalf("%s after %d downloads", (<-f.Sent).Method, maxDownloadFiles)
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
		ev.ReleaseDownloads(nil)
		download("in a folder of the caller")
		if len(f.Sent) > 0 {
			t.Errorf("%s in a folder of the caller", (<-f.Sent).Method)
		}
		ev.RemoveDownloads("")
		if left, err := os.ReadDir(ev.Downloads.Dir); err != nil || len(left) > 0 {
			t.Errorf("%v are left, %v", left, err)
		}
	})
}
