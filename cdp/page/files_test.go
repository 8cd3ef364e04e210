package page_test

import (
	"cmp"
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
	c.show(t, s.URL+"/", `<title>Names</title><a id=a>Get</a><p id=out></p>
		<input type=file id=f onchange="out.textContent = this.files[0].name">`)
	dir := t.TempDir()
	for i, test := range []struct{ given, want string }{
		{"plan.pdf", "plan.pdf"}, {"two words.txt", "two words.txt"}, {"Übersicht № 3.csv", "Übersicht № 3.csv"},
		{"plan.pdf", "plan (1).pdf"}, {"plan.pdf", "plan (2).pdf"}, {"no-extension", "no-extension"},
		{"archive.tar.gz", "archive.tar.gz"}, {strings.Repeat("long", 60) + ".txt", strings.Repeat("long", 59) + ".txt"}, {"../../up.txt", ""}, {"a/b.txt", ""}, {`say "hi".txt`, ""}, {".hidden", ""},
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
			c.evaluate(t, "out.textContent === "+string(must(json.Marshal(d.Name[:min(len(d.Name), 236)])))+
				`.concat(out.textContent.length == 240 ? ".txt" : "")`) != "true" {
			t.Errorf("%s is uploaded as %s, %s", test.given, c.evaluate(t, "out.textContent"), exit(err))
		}
	}
	into := t.TempDir()
	for _, name := range []string{"plan (1).pdf", "plan (2).pdf"} {
		want := map[string]string{"plan (1).pdf": "plan.pdf"}[name]
		r, err := run(t, c, Downloads, DownloadsParams{Save: into + "//.", Name: name})
		if err != nil || filepath.Base(r.Saved.Path) != cmp.Or(want, name) {
			t.Errorf("%s is saved as %+v, %s", name, r, exit(err))
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

// TestHeadersOfOrigins sends headers to the origins that get them, by default that of the page, and to no other, also
// not when a server redirects there. They are for later pages and frames, too, and end with a reset.
func TestHeadersOfOrigins(t *testing.T) {
	c := startChrome(t)
	var servers [2]*httptest.Server
	for i := range servers {
		servers[i] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("Access-Control-Allow-Headers", "*")
			if to := r.URL.Query().Get("to"); to != "" {
				http.Redirect(w, r, to, http.StatusFound)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			got := r.Header
			_, _ = fmt.Fprintf(w, "<title>x</title>%s|%s|%s", got.Get("X-Token"), got.Get("X-Own"), got.Get("Cookie"))
		}))
		t.Cleanup(servers[i].Close)
	}
	one, two := servers[0].URL, servers[1].URL
	if _, err := run(t, c, Open, OpenParams{URL: one}); err != nil {
		t.Fatal(exit(err))
	}
	c.evaluate(t, "document.cookie = 'a=1'")
	sent := func(path string) string {
		return strings.Trim(c.evaluate(t, fmt.Sprintf("fetch(%q, {headers: {'x-own': 'o'}}).then(r => r.text()).then("+
			"t => t.replace(/.*>/, ''), () => 'failed')", path)), `"`)
	}
	token, other := map[string]string{"X-Token": "t", "X-OWN": "p"}, map[string]string{"X-Token": "u"}
	for _, test := range []struct {
		p         EmulateParams
		one, two  string
		redirects string // from one to two
	}{
		{EmulateParams{Headers: token}, "t|p|a=1", "|o|", "|o|"},
		{EmulateParams{Headers: token, Origins: []string{two + "/any/path"}}, "t|p|a=1", "t|p|", "t|p|"},
		{EmulateParams{Reset: true, Headers: other, Origins: []string{one}}, "u|o|a=1", "|o|", "|o|"},
		{EmulateParams{Reset: true}, "|o|a=1", "|o|", "|o|"},
	} {
		if _, err := run(t, c, Emulate, test.p); err != nil {
			t.Fatalf("%+v: %s", test.p, exit(err))
		}
		for path, want := range map[string]string{"/": test.one, two + "/": test.two, "/?to=" + two: test.redirects} {
			if got := sent(path); got != want {
				t.Errorf("%+v: %s got %s, want %s", test.p, path, got, want)
			}
		}
	}
	if _, err := run(t, c, Emulate, EmulateParams{Headers: token, Origins: []string{two}}); err != nil {
		t.Fatal(exit(err))
	}
	_, err := run(t, c, Open, OpenParams{URL: two, New: true})
	if got := c.evaluate(t, "document.body.innerText"); err != nil || got != `"t|p|a=1"` {
		t.Errorf("in a later page: %s, %s", got, exit(err))
	}
	if _, err := c.send(t.Context(), c.pages, "emulate", `{"headers":{}}`); err != nil || sent("/") != "|o|a=1" {
		t.Errorf("without headers: %s, %s", sent("/"), exit(err))
	}
	for _, origins := range [][]string{{"a.test"}, {"file:///x"}, {""}} {
		_, err := run(t, c, Emulate, EmulateParams{Headers: token, Origins: origins})
		if !strings.Contains(exit(err), "/origins") {
			t.Errorf("%q: %s", origins, exit(err))
		}
	}
	if _, err := run(t, c, Emulate, EmulateParams{Reset: true}); err != nil {
		t.Fatal(exit(err))
	}
	c.evaluate(t, "document.cookie = 'a=; max-age=0'")
}
