package parley_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/internal/sample"
	"github.com/parley-tools/parley/manifest"
)

// exampleSite serves the pages of the examples of the plugin page and of the verbs of cdp.
func exampleSite() *httptest.Server {
	folder := filepath.Join("cdp", "page", "testdata", "examples")
	cards := ""
	for i := range 200 {
		cards += fmt.Sprintf("<article><h2>Card %d</h2><a href=/card/%[1]d>More</a></article>", i)
	}
	documents := map[string]string{
		"Home": "<p>Welcome back", "Results": "", "Terms": "", "Cards": cards,
		"Tall": `<style>body { margin: 0 }</style><div style="height: 20000px">`,
		"Long": "<h1>Tea</h1>" + strings.Repeat("<p>Tea is a leaf that grows on hills", 40),
		"B":    "<label>Size <select><option disabled>S<option selected>M</select></label>",
		"App":  "<script>x.y()</script>",
		"Article": "<nav><a href=/>Shop</a></nav><main><h1>Tea</h1><p>Tea is a <em>leaf</em>.</p></main>" +
			"<footer>Imprint</footer>",
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.Trim(r.URL.Path, "/")
		title := strings.ToUpper(path[:min(1, len(path))]) + path[min(1, len(path)):]
		document, known := documents[title]
		switch {
		case path == "":
			http.SetCookie(w, &http.Cookie{Name: "lang", Value: "en"})
			http.ServeFile(w, r, filepath.Join(folder, "shop.html"))
		case path == "shop.js" || path == "chart.svg":
			http.ServeFile(w, r, filepath.Join(folder, path))
		case strings.HasPrefix(path, "api"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"name":"Ada"}`)
		case path == "report.csv":
			w.Header().Set("Content-Type", "text/csv")
			w.Header().Set("Content-Disposition", "attachment")
			fmt.Fprint(w, "a,b")
		case known:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, "<!doctype html><title>%s</title>%s", title, document)
		default:
			http.NotFound(w, r)
		}
	}))
}

// examples runs examples of native tools, in which example.com stands for the site and /srv for a folder.
type examples struct {
	*call.Host
	site, files string
}

// session sends the calls of one example.
type session struct {
	*examples
	name  string
	names []string // pairs of a name in the examples and its replacement, for strings.NewReplacer
}

// call makes a call of an example. It returns the result, or the exit code, as the example has it.
func (s *session) call(t *testing.T, tool string, params json.RawMessage) string {
	t.Helper()
	own := strings.NewReplacer(append(s.names, "https://example.com", s.site, `"/srv/`, `"`+s.files+"/")...)
	a, err := s.Call(t.Context(), host.Call{Name: tool, Params: json.RawMessage(own.Replace(string(params))),
		Principal: caller.Principal{Name: "cli", Session: caller.Session{Name: s.name}}})
	if err != nil {
		return fmt.Sprintf("%d %v", host.AsError(err).ExitCode(), err)
	}
	text := strings.NewReplacer(s.site, "https://example.com", `"127.0.0.1/"`, `"example.com/"`, `"`+s.files+"/",
		`"/srv/`).Replace(string(a.Data))
	return regexp.MustCompile(`<page \d+>\\n|\\n</page \d+>`).ReplaceAllString(text, "")
}

// learn has a name that an example has as the beginning of a value stand for what a pattern finds in a result.
func (s *session) learn(name, pattern, result string) {
	if found := regexp.MustCompile(pattern).FindStringSubmatch(result); found != nil {
		s.names = append(s.names, `"`+name, `"`+found[1])
	}
}

// volatile are the fields whose values differ from run to run.
var volatile = regexp.MustCompile(`^(ms|bytes|data|expires|path|boxes|percent|pixels|recorded|busy|longest_task|ttfb|fcp|` +
	`lcp|cls|load|har|long_tasks|sent|received|target|opener)$`)

// optional are the fields that a result may or may not have: it takes long on a slow machine, and a page that was kept
// has no status.
var optional = regexp.MustCompile(`^(act|load|long_tasks|longest_task|busy|fcp|lcp|lcp_element|status)$`)

// differs says how a result differs from that of an example. Numbers of acts are left out of examples.
func differs(at string, want, got any) string {
	wanted, isObject := want.(map[string]any)
	has, _ := got.(map[string]any)
	if !isObject {
		list, isList := want.([]any)
		all, _ := got.([]any)
		if !isList || len(list) != len(all) {
			return compare(at, want, got)
		}
		for i := range list {
			if d := differs(fmt.Sprintf("%s/%d", at, i), list[i], all[i]); d != "" {
				return d
			}
		}
		return ""
	}
	for name := range has {
		if _, known := wanted[name]; !known && !optional.MatchString(name) {
			return fmt.Sprintf("%s/%s is not in the example: %v", at, name, has[name])
		}
	}
	for name, value := range wanted {
		is, known := has[name]
		switch {
		case name == "text" && wanted["recorded"] != nil: // of what was busy in that time, if anything was
		case !known && !optional.MatchString(name):
			return fmt.Sprintf("%s/%s is missing", at, name)
		case !known || volatile.MatchString(name) || name == "title" && wanted["opener"] != nil: // it still loads
		default:
			if d := differs(at+"/"+name, value, is); d != "" {
				return d
			}
		}
	}
	return ""
}

// compare says how a value differs from that of an example.
func compare(at string, want, got any) string {
	if !reflect.DeepEqual(want, got) && anyRun(want) != anyRun(got) {
		return fmt.Sprintf("%s: %q, expected %q", at, got, want)
	}
	return ""
}

// anyRun returns a text without what differs from run to run: refs of documents, numbers of requests, times and sizes.
func anyRun(v any) string {
	text := regexp.MustCompile(`\b[a-z]{3}(\d+)\b`).ReplaceAllString(fmt.Sprint(v), "kqz$1")
	return regexp.MustCompile(`\br\d+ | \d+ ms| \d+ B`).ReplaceAllString(text, "")
}

// TestNativeExamples runs runnable examples of the plugin page and of the verbs of cdp on the prepared page, each in a
// session of its own: the first of each tool and a few others, with PARLEY_HAMMER=1 all.
func TestNativeExamples(t *testing.T) {
	site := exampleSite()
	defer site.Close()
	home, err := os.MkdirTemp("", "") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	if err := errors.Join(os.Mkdir(filepath.Join(home, "config"), 0o700), os.WriteFile(filepath.Join(home, "config",
		"policy.toml"), []byte("[secrets.PASSWORD]\nfrom = \"store\"\norigins = [\""+site.URL+"\"]\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p, err := parley.Open(t.Context(), parley.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	h, err := p.Host()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Secrets().Set("PASSWORD", "the password"); err != nil {
		t.Fatal(err)
	}
	all := &examples{h, site.URL, t.TempDir()}
	all.prepare(t)
	defer (&session{examples: all, name: "prepare"}).call(t, "cdp.close", json.RawMessage(`{"all":true}`))
	catalog, err := p.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("all", func(t *testing.T) {
		for _, plugin := range []string{"page", "cdp"} {
			provider, _ := catalog.Provider(plugin)
			names, err := provider.Names()
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				tool, err := provider.Tool(name)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(name, ".") {
					t.Run(plugin+"."+name, func(t *testing.T) {
						t.Parallel()
						all.tryAll(t, plugin, tool)
					})
				}
			}
		}
	})
}

// tryAll runs examples of a tool. Of one that only reads, and of those of the plugin page, the first is runnable.
func (x *examples) tryAll(t *testing.T, plugin string, tool *manifest.Tool) {
	other := sample.OneIn(t, 8)
	for i, e := range tool.Examples {
		mustRun := i == 0 && (plugin == "page" || tool.Effect == manifest.EffectRead)
		if e.IsVerified() != e.Runnable || mustRun && !e.Runnable {
			t.Errorf("%s: runnable %t, verified %t", e.Title, e.Runnable, e.IsVerified())
		}
		if isOther := other(); !e.Runnable || i > 0 && !isOther {
			continue
		}
		s := &session{examples: x, name: fmt.Sprint(plugin, tool.Name, i)}
		if d := s.try(t, plugin+"."+tool.Name, &e); d != "" {
			t.Errorf("%s: %s", e.Title, d)
		}
		s.call(t, "cdp.close", json.RawMessage("{}"))
	}
}

// prepare makes the files that examples name.
func (x *examples) prepare(t *testing.T) {
	s := &session{examples: x, name: "prepare"}
	opened := s.call(t, "page.open", json.RawMessage(`{"url":"https://example.com/"}`))
	if isNone := strings.HasPrefix(opened, fmt.Sprint((&host.Error{Code: host.ChromeLaunch}).ExitCode(), " ")); isNone &&
		os.Getenv("CI") != "true" {
		t.Skip("needs a browser: ", opened)
	}
	var picture struct{ Data []byte }
	if err := json.Unmarshal([]byte(s.call(t, "page.screenshot", json.RawMessage("{}"))), &picture); err != nil {
		t.Fatal(opened, err)
	}
	files := map[string][]byte{"cv.pdf": make([]byte, 5120), "home.png": picture.Data,
		"home.json": []byte(s.call(t, "page.snapshot", json.RawMessage("{}")))}
	for _, name := range []string{"a.png", "b.png"} {
		drawn, encoded := image.NewGray(image.Rect(0, 0, 96, 96)), bytes.Buffer{}
		if name == "b.png" {
			drawn.Set(3, 3, color.White)
		}
		if err := png.Encode(&encoded, drawn); err != nil {
			t.Fatal(err)
		}
		files[name] = encoded.Bytes()
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(x.files, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(x.files, "reports"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// try runs an example after the calls before it. It says how the outcome differs from the declared one.
func (s *session) try(t *testing.T, tool string, e *manifest.Example) string {
	s.call(t, "page.open", json.RawMessage(`{"url":"https://example.com/"}`))
	s.learn("kqz", `\b([a-z]{3})1\b`, s.call(t, "page.snapshot", json.RawMessage("{}")))
	for _, b := range e.Before {
		result := s.call(t, b.Tool, b.Params)
		if !strings.HasPrefix(result, "{") {
			return "before: " + result
		}
		s.learn("r9", `\b(r\d+) 200 GET https://example.com/api/stock`, result)
	}
	if tool == "page.tabs" {
		listed := s.call(t, tool, json.RawMessage("{}"))
		s.learn("A1B2", `"target":"(\w+)"`, listed)
		s.learn("C3D4", `,{"target":"(\w+)"`, listed)
	}
	for began := time.Now(); tool == "page.downloads" && e.ExitCode == 0; { // which shows one that has ended
		listed := s.call(t, tool, json.RawMessage(`{"wait":1000}`))
		if strings.Contains(listed, `"state":"done"`) || time.Since(began) > time.Minute {
			break
		}
	}
	outcome := s.call(t, tool, e.Params)
	if e.ExitCode != 0 {
		if !strings.HasPrefix(outcome, fmt.Sprint(e.ExitCode, " ")) {
			return fmt.Sprintf("%.300s, expected exit code %d", outcome, e.ExitCode)
		}
		return ""
	}
	var want, got any
	if strings.HasPrefix(outcome, "{") && len(e.Result) == 0 {
		return ""
	}
	if json.Unmarshal([]byte(outcome), &got) != nil || json.Unmarshal(e.Result, &want) != nil {
		return outcome
	}
	return differs("", want, got)
}
