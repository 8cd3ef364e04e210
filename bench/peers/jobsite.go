package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// What the site serves for jobs.
const (
	stockItems  = 25_000
	archiveSize = 100_000
	// priceChange is how long after its first request the price changes.
	priceChange = 2500 * time.Millisecond
	soughtPrice = 900 // of an item in stock at least
)

// handleJobs adds what the pages of jobs need.
func (s *site) handleJobs(mux *http.ServeMux) {
	mux.HandleFunc("GET /archive.bin", func(w http.ResponseWriter, _ *http.Request) {
		s.tell("archive", "sent")
		w.Header().Set("Content-Disposition", `attachment; filename="archive.bin"`)
		w.Write(s.archive())
	})
	mux.HandleFunc("GET /stock.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"updated": "2026-11-27", "items": s.stock()})
	})
	mux.HandleFunc("GET /price", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.price()) })
	mux.HandleFunc(fmt.Sprintf("POST /pay-%d", s.nonce), func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "try later", http.StatusServiceUnavailable)
	})
	mux.HandleFunc("GET /shop.html", func(w http.ResponseWriter, r *http.Request) {
		s.tell("request", "page")
		r.SetPathValue("file", "shop.html")
		s.file(w, r, own)
	})
	mux.HandleFunc("GET /chart.png", func(http.ResponseWriter, *http.Request) { s.tell("request", "image") })
	mux.HandleFunc("GET /api/left", func(w http.ResponseWriter, _ *http.Request) {
		s.tell("request", "api")
		fmt.Fprintf(w, `{"left": %d}`, s.nonce)
	})
	mux.HandleFunc("GET /listed", func(w http.ResponseWriter, _ *http.Request) {
		raw, _ := json.Marshal(s.listed())
		fmt.Fprintf(w, `<!doctype html><meta charset="utf-8"><title>Listed</title><h1>Listed</h1><pre>%s</pre>`, raw)
	})
	mux.HandleFunc("GET /board", s.board)
	mux.HandleFunc("POST /board", s.post)
}

// tell records what a page or a request reports.
func (s *site) tell(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[key] = append(s.told[key], value)
}

// archive returns bytes that are not text.
func (s *site) archive() []byte {
	return bytes.Repeat([]byte{0, 255, byte(s.nonce), byte(s.nonce >> 8)}, archiveSize/4)
}

// item is a line of the stock, about 200 bytes of JSON.
type item struct {
	SKU    string `json:"sku"`
	Title  string `json:"title"`
	Price  int    `json:"price"`
	Left   int    `json:"left"`
	Remark string `json:"remark"`
}

// stock has a few items that are sought: sold out, and not cheap.
func (s *site) stock() []item {
	var all []item
	for i := range stockItems {
		one := item{fmt.Sprintf("S-%05d", i), fmt.Sprintf("Lamp %d", i), 100 + i%1000, 1 + i%7, strings.Repeat("brass, ", 15)}
		if i%11 == 3 {
			one.Left, one.Price = 0, i%soughtPrice
		}
		if i%6007 == s.nonce%6007 {
			one.Left, one.Price = 0, soughtPrice+50
		}
		all = append(all, one)
	}
	return all
}

func (s *site) sought() (skus []string) {
	for _, one := range s.stock() {
		if one.Left == 0 && one.Price > soughtPrice {
			skus = append(skus, one.SKU)
		}
	}
	return skus
}

func (s *site) price() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.priced.IsZero() {
		s.priced = time.Now()
	}
	if time.Since(s.priced) < priceChange {
		return 10_000 + s.nonce
	}
	return s.nonce
}

// listed are the invoices that the page listed shows as JSON.
func (s *site) listed() (all []invoice) {
	for i := range 40 {
		all = append(all, s.invoice(i))
	}
	return all
}

// sums is the line whose hash a job asks for.
func (s *site) sums() string {
	of := map[string]int{}
	for _, one := range s.listed() {
		of[one.Customer] += one.Amount
	}
	return fmt.Sprintf("Ada=%d Bob=%d Carl=%d", of["Ada"], of["Bob"], of["Carl"])
}

const (
	signIn = `<h1>Sign in</h1><form method="post"><label>User <input name="user"></label>
<label>Password <input name="password" type="password"></label><button>Sign in</button></form>`
	signedIn = `<h1>Board</h1><p>Signed in as %s<form method="post"><label>Note <input name="note"></label>
<button>Post</button></form><script>
fetch("/did?visit=%[1]s:" + (name || "new")); // a restart of the browser loses the name of the window
name = "old";
</script>`
)

// reader returns who has signed in on the board, or "".
func (s *site) reader(r *http.Request) string {
	c, err := r.Cookie(fmt.Sprintf("reader-%d", s.nonce))
	if err != nil {
		return ""
	}
	return c.Value
}

func (s *site) board(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, `<!doctype html><meta charset="utf-8"><title>Board</title>`)
	if user := s.reader(r); user != "" {
		fmt.Fprintf(w, signedIn, user)
		return
	}
	fmt.Fprint(w, signIn)
}

// post signs in, or takes a note.
func (s *site) post(w http.ResponseWriter, r *http.Request) {
	if user := r.FormValue("user"); (user == "ada" || user == "bob") && r.FormValue("password") == "secret" {
		s.tell("login", user)
		http.SetCookie(w, &http.Cookie{Name: fmt.Sprintf("reader-%d", s.nonce), Value: user, MaxAge: 86400, HttpOnly: true})
	} else if user := s.reader(r); user != "" {
		s.tell("note", user+": "+r.FormValue("note"))
	}
	http.Redirect(w, r, "/board", http.StatusSeeOther)
}
