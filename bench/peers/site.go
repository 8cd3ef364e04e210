package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed testdata
var embedded embed.FS

// Folders of pages: of this command, of the plugin page, and of npm packages, which `make programs` installs. The root
// of the tree has to be the current folder for the last two.
var (
	own, _   = fs.Sub(embedded, "testdata")
	plugin   = os.DirFS(filepath.Join("cdp", "page", "testdata"))
	packages = os.DirFS(filepath.Join("testdata", "programs", "node_modules"))
)

// pluginPages and packagePages are the paths of the pages of the plugin and of the packages.
const (
	pluginPages  = "plugin/"
	packagePages = "package/"
)

// pageNames returns the names of all pages, as [site.page] takes them.
func pageNames() (names []string, err error) {
	names, err = fs.Glob(own, "*.html")
	if err != nil {
		return nil, err
	}
	others, err := fs.Glob(plugin, "*.html")
	for _, name := range others {
		names = append(names, pluginPages+name)
	}
	return names, err
}

// site serves the pages of testdata to one agent for one task, and records what the pages report. Its ports are new,
// so that nothing a browser stored for an earlier task applies.
type site struct {
	main, other *httptest.Server
	nonce       int // a number in the pages, so that no earlier answer is right
	sum         int // of the amounts of all invoices

	mu     sync.Mutex
	told   url.Values
	priced time.Time // when the price was first asked for
}

const (
	invoicePages = 9
	perPage      = 10
	// renderDelay is how long the server takes for a page of invoices.
	renderDelay = 25 * time.Millisecond
)

func newSite() *site {
	s := &site{nonce: 1000 + rand.IntN(9000), told: url.Values{}}
	for i := range invoicePages * perPage {
		s.sum += s.amount(i)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{file}", func(w http.ResponseWriter, r *http.Request) { s.file(w, r, own) })
	mux.HandleFunc("GET /"+pluginPages+"{file}", func(w http.ResponseWriter, r *http.Request) { s.file(w, r, plugin) })
	mux.Handle("GET /"+packagePages, http.StripPrefix("/"+packagePages, http.FileServerFS(packages)))
	mux.HandleFunc("GET /did", s.did)
	mux.HandleFunc("GET /card", s.did)
	mux.HandleFunc("GET /login", s.login)
	mux.HandleFunc("GET /invoices", s.invoices)
	mux.HandleFunc("GET /report.csv", s.report)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc(fmt.Sprintf("GET /rates-%d", s.nonce), func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	})
	s.handleJobs(mux)
	s.main, s.other = httptest.NewServer(mux), httptest.NewServer(mux)
	return s
}

func (s *site) close() {
	s.main.CloseClientConnections()
	s.other.CloseClientConnections()
	s.main.Close()
	s.other.Close()
}

// page returns the address of a page of testdata.
func (s *site) page(name string) string { return s.main.URL + "/" + name }

// otherOrigin is also another site for the browser, so that it gives a frame its own process.
func (s *site) otherOrigin() string { return strings.Replace(s.other.URL, "127.0.0.1", "localhost", 1) }

func (s *site) file(w http.ResponseWriter, r *http.Request, folder fs.FS) {
	name := r.PathValue("file")
	data, err := fs.ReadFile(folder, name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	types := map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript"}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprint(w, strings.NewReplacer("NONCE", fmt.Sprint(s.nonce), "OTHER", s.otherOrigin()).Replace(string(data)))
}

// did records what a page reports in its query.
func (s *site) did(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, values := range r.URL.Query() {
		s.told[key] = append(s.told[key], values...)
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprint(w, "<!doctype html><title>Done</title><p>Done")
}

func (s *site) login(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("user") != "ada" || r.FormValue("password") != "secret" {
		fmt.Fprint(w, "Wrong user or password")
		return
	}
	fmt.Fprintf(w, "Welcome, Ada. You have %d letters", s.nonce)
}

func (s *site) invoices(w http.ResponseWriter, r *http.Request) {
	page, err := strconv.Atoi(r.FormValue("page"))
	per, perErr := strconv.Atoi(r.FormValue("per"))
	if err != nil || perErr != nil || page < 1 || page > invoicePages {
		http.NotFound(w, r)
		return
	}
	time.Sleep(renderDelay)
	var rows []invoice
	for i := (page - 1) * per; i < page*per; i++ {
		rows = append(rows, s.invoice(i))
	}
	_ = json.NewEncoder(w).Encode(rows)
}

var customers = []string{"Ada", "Bob", "Carl"}

type invoice struct {
	Number   string `json:"number"`
	Customer string `json:"customer"`
	Amount   int    `json:"amount"`
}

func (s *site) invoice(i int) invoice {
	return invoice{fmt.Sprintf("I-%03d", i+1), customers[i%len(customers)], s.amount(i)}
}

// amount returns the amount of an invoice.
func (s *site) amount(i int) int { return 100 + (s.nonce*(i+7))%883 }

func (s *site) report(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/csv")
	w.Header().Set("Content-Disposition", `attachment; filename="report.csv"`)
	fmt.Fprint(w, s.reportText())
}

func (s *site) reportText() string { return fmt.Sprintf("day,letters\n1,%d\n", s.nonce) }

// reportDelay is how long a report of a page may take after the tool has replied.
const reportDelay = 300 * time.Millisecond

// was reports whether the pages reported exactly these values under a key.
func (s *site) was(key string, want ...string) bool {
	for end := time.Now().Add(reportDelay); ; time.Sleep(10 * time.Millisecond) {
		if got := s.values(key); slices.Equal(got, want) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// ended reports whether the last value that the pages reported under a key is this one.
func (s *site) ended(key, want string) bool {
	for end := time.Now().Add(reportDelay); ; time.Sleep(10 * time.Millisecond) {
		if got := s.values(key); len(got) > 0 && got[len(got)-1] == want {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

func (s *site) values(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told[key])
}
