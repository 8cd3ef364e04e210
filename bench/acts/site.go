package main

import (
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// site serves the pages of this command, and those of npm packages, which `make programs` installs.
type site struct{ *httptest.Server }

// packages are the pages of others. The root of the tree has to be the current folder.
var packages = filepath.Join("testdata", "programs", "node_modules")

func newSite() *site {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /elements/{n}", elements)
	mux.HandleFunc("GET /effect", effectPage)
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, r *http.Request) {
		wait(r)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{}")
	})
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="effect.bin"`)
		fmt.Fprint(w, "x")
	})
	mux.HandleFunc("GET /next", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>next</title><p>next")
	})
	mux.Handle("GET /package/", http.StripPrefix("/package/", http.FileServerFS(os.DirFS(packages))))
	mux.HandleFunc("GET /package/uikit/tests/js/test.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, uikitLoader)
	})
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	return &site{httptest.NewServer(mux)}
}

// uikitLoader is what UIkit's test pages load first. Its package has the source of it only.
const uikitLoader = `document.writeln('<link rel="stylesheet" href="../dist/css/uikit.css">' +
	'<script src="../dist/js/uikit.js"><\/script><script src="../dist/js/uikit-icons.js"><\/script>')`

func wait(r *http.Request) {
	ms, _ := strconv.Atoi(r.FormValue("d"))
	time.Sleep(time.Duration(ms) * time.Millisecond)
}

// subjects are the sizes of the pages on which verbs are timed, in elements.
var subjects = []int{40, 1000, 5000}

func (s *site) page(elements int) string { return fmt.Sprintf("%s/elements/%d", s.URL, elements) }

// elements shows a page of about n elements, a button and a field first.
func elements(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.PathValue("n"))
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprint(w, `<!doctype html><title>Items</title><h1>Items</h1><button id=go `+
		`onclick="o.textContent=++clicks">Go</button><label for=name>Name</label><input id=name><p id=o>0</p>`+
		`<script>var clicks=0</script><ul>`)
	for i := range (n - 10) / 5 {
		fmt.Fprintf(w, "<li><h2>Item %d</h2><p>It costs %d.</p><a href='#%d'>Details %d</a><button>Add %d</button></li>",
			i, 3*i, i, i, i)
	}
}

// effectPage shows a button whose click has one effect after a time.
func effectPage(w http.ResponseWriter, r *http.Request) {
	script := effectScripts[r.FormValue("kind")]
	after := r.FormValue("after")
	if r.FormValue("kind") == "slow" {
		script = strings.ReplaceAll(script, "AFTER", after)
	} else if after != "0" && script != "" {
		script = "setTimeout(() => { " + script + " }, " + after + ")"
	}
	if r.FormValue("busy") != "" {
		script = "this.className = 'on'; " + script
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, `<!doctype html><title>effect</title><script>
function done() { o.textContent = "done"; window.doneAt = performance.timeOrigin + performance.now() }
</script><button onclick="%s">Go</button><p id=o></p>`, template.HTMLEscapeString(script))
}
