package page_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDownloadsAreNamedAndSaved downloads files with names of all kinds: each has its own in the answer, where it is
// saved and where it is uploaded. A file that exists is not replaced, and no link leads out of the folder.
func TestDownloadsAreNamedAndSaved(t *testing.T) {
	c := startChrome(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape(r.URL.Query().Get("name")))
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Del("Content-Disposition")
		}
		_, _ = io.WriteString(w, *c.given.Load())
	}))
	t.Cleanup(s.Close)
	c.show(t, s.URL+"/", `<title>Names</title><a id=a>Get</a><input type=file id=f onchange="out.textContent = this.files[0].name">
		<p id=out></p>`)
	dir := t.TempDir()
	for i, test := range []struct{ given, want string }{
		{"plan.pdf", "plan.pdf"}, {"two words.txt", "two words.txt"}, {"Übersicht № 3.csv", "Übersicht № 3.csv"},
		{"plan.pdf", "plan (1).pdf"}, {"plan.pdf", "plan (2).pdf"}, {"no-extension", "no-extension"},
		{"archive.tar.gz", "archive.tar.gz"}, {"../../up.txt", ""}, {"a/b.txt", ""}, {`say "hi".txt`, ""}, {".hidden", ""},
	} {
		content := fmt.Sprint("content ", i)
		c.given.Store(&content)
		c.evaluate(t, fmt.Sprintf("a.href = '/file?name=' + encodeURIComponent(%q) + '&i=%d'", test.given, i))
		if _, err := run(t, c, Click, ClickParams{Element: "Get"}); err != nil {
			t.Fatal(exit(err))
		}
		r, err := run(t, c, Downloads, DownloadsParams{Save: dir + "//."})
		if err != nil {
			t.Fatalf("%s: %s", test.given, exit(err))
		}
		d := r.Downloads[len(r.Downloads)-1]
		data, err := os.ReadFile(r.Saved.Path)
		if err != nil || string(data) != content || filepath.Dir(r.Saved.Path) != dir || r.Saved.Bytes != int64(len(data)) ||
			r.Saved.SHA256 != fmt.Sprintf("%x", sha256.Sum256(data)) || filepath.Base(d.Path) != filepath.Base(r.Saved.Path) {
			t.Errorf("%s: %q, %+v, %+v, %v", test.given, data, d, r.Saved, err)
		}
		if test.want == "" {
			test.want = d.Name // as the browser has cleaned it
		}
		if filepath.Base(d.Path) != test.want || strings.ContainsAny(test.want, "/\\") {
			t.Errorf("%s is at %s, want %s", test.given, d.Path, test.want)
		}
		if _, err := run(t, c, Upload, UploadParams{Element: "css=#f", Downloads: []string{d.Path}}); err != nil ||
			c.evaluate(t, "out.textContent === "+string(must(json.Marshal(d.Name)))) != "true" {
			t.Errorf("%s is uploaded as %s, %s", test.given, c.evaluate(t, "out.textContent"), exit(err))
		}
	}
	const exists = "Tool 'page.downloads' failed: 1 violation: /save is to be the path of a new file"
	must(0, os.Symlink(t.TempDir(), filepath.Join(dir, "out")))
	for _, test := range []struct{ save, name, want string }{
		{dir + "//named.pdf", "plan.pdf", filepath.Join(dir, "named.pdf")},
		{dir + "//named.pdf", "plan.pdf", exists}, {dir + "//.", "plan.pdf", exists},
		{dir + "//out/x", "plan.pdf", "unavailable"}, {dir + "//none/x", "plan.pdf", "unavailable"},
		{dir + "//../x", "plan.pdf", "unavailable"}, {dir, "plan.pdf", "unavailable"}, {dir + "//y", "none", "no_match"},
	} {
		r, err := run(t, c, Downloads, DownloadsParams{Save: test.save, Name: test.name})
		if err != nil && !strings.HasPrefix(exit(err), test.want) || err == nil && r.Saved.Path != test.want {
			t.Errorf("%+v: %+v, %s", test, r, exit(err))
		}
	}
}
