package page_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// pdfOf returns a PDF with a page for each text.
func pdfOf(texts ...string) string {
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"}
	var kids strings.Builder
	for _, text := range texts {
		drawn := "BT /F1 18 Tf 50 200 Td (" + text + ") Tj ET"
		if text == "" {
			drawn = "10 10 100 100 re f"
		}
		at := len(objects) + 1
		fmt.Fprintf(&kids, " %d 0 R", at)
		objects = append(objects, fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 300]/Contents %d 0 R/Resources"+
			"<</Font<</F1 3 0 R>>>>>>", at+1), fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(drawn), drawn))
	}
	objects[1] = fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", kids.String(), len(texts))
	out, table := "%PDF-1.4\n", fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, object := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", len(out))
		out += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	return out + table + fmt.Sprintf("trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF", len(objects)+1, len(out))
}

var refInLine = regexp.MustCompile(` [a-z]{3}\d+\]`)

// TestPDF reads PDFs that Chrome shows: as a page, and in one.
func TestPDF(t *testing.T) {
	c := startChrome(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, isPDF := map[string]string{"/two.pdf": pdfOf("Invoice 4711", `Total \(net\) "99"`), "/picture.pdf": pdfOf(""),
			"/long.pdf": pdfOf(strings.Split(strings.Repeat("some words,", 60), ",")...)}[r.URL.Path]
		if isPDF {
			w.Header().Set("Content-Type", "application/pdf")
			_, _ = io.WriteString(w, content)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	const two, lines = "Invoice 4711\nTotal (net) \"99\"", "\"Invoice 4711\"\n\"Total (net) \\\"99\\\"\""
	for _, test := range []struct {
		path           string
		tokens         int
		text, snapshot string // "…": how it begins
		leftOut        string // part of
	}{
		{"two.pdf", 2000, two, lines, ""},
		{"two.pdf#page=2", 2000, two, lines, ""},
		{"picture.pdf", 2000, "", "", "the PDF, which has no text for Chrome (page.screenshot shows it; "},
		{"long.pdf", 100, "some words\nsome words\n…", "\"some words\"\n\"some words\"\n…", " lines"},
		{`<iframe title=F src="two.pdf" width=300 height=200>`, 2000, "Page\n\n[Iframe \"F\" REF]\n\n" + two,
			"\"Page\"\nIframe \"F\" REF\n  " + strings.ReplaceAll(lines, "\n", "\n  "), ""},
		{`<embed src="two.pdf" width=300 height=200>`, 2000, "Page\n\n[Iframe \"\" REF]\n\n" + two,
			"\"Page\"\nIframe REF\n  " + strings.ReplaceAll(lines, "\n", "\n  "), ""},
		{`<object type="application/pdf" data="two.pdf" width=300 height=200>`, 2000, "Page\n\n[Iframe \"\" REF]\n\n" + two,
			"\"Page\"\nIframe REF\n  " + strings.ReplaceAll(lines, "\n", "\n  "), ""},
		{`<object data="none">Instead</object>`, 2000, "Page\n\nInstead", `"Page Instead"`, ""},
		{`<iframe title=F src="picture.pdf">`, 2000, "Page", "\"Page\"\nIframe \"F\" REF", "the PDF, which has no text"},
		{`<iframe hidden src="two.pdf">`, 2000, "Page", `"Page"`, ""},
	} {
		path := test.path
		if strings.HasPrefix(path, "<") {
			c.open(t, "<title>T</title><base href="+s.URL+"><p>Page</p>"+path)
		} else if r, err := run(t, c, Open, OpenParams{URL: s.URL + "/" + path}); err != nil || r.Caused != nil {
			t.Fatal(effects(r), exit(err)) // what Chrome's viewer loads is not of the page
		}
		if _, err := run(t, c, Wait, WaitParams{Idle: true, Timeout: 5000}); err != nil {
			t.Fatal(exit(err))
		}
		plain := func(got string) string { return refInLine.ReplaceAllString(withoutRefs(got), " REF]") }
		check := func(what, got, want, leftOut string, err error) {
			got = plain(got)
			begins, isPart := strings.CutSuffix(want, "…")
			fits := got == want || isPart && strings.HasPrefix(got, begins)
			if err != nil || !fits || !strings.Contains(leftOut, test.leftOut) {
				t.Errorf("%s of %s: %s\n%s\nwant\n%s\nleft out: %s", what, path, exit(err), got, want, leftOut)
			}
		}
		r, err := run(t, c, Text, TextParams{MaxTokens: test.tokens})
		// Chrome begins to load the PDF of an element when it draws the page, which may be idle before.
		for range 20 {
			if err != nil || !strings.HasPrefix(path, "<") || plain(r.Text) == test.text {
				break
			}
			if _, err = run(t, c, Wait, WaitParams{Idle: true, Timeout: 5000}); err == nil {
				r, err = run(t, c, Text, TextParams{MaxTokens: test.tokens})
			}
		}
		if r.Cut > 0 {
			r.LeftOut += fmt.Sprintf("%d lines", 1)
		}
		check("text", r.Text, test.text, r.LeftOut, err)
		_, err = run(t, c, Find, FindParams{Element: "Invoice"})
		if isPDF := !strings.HasPrefix(path, "<"); strings.Contains(exit(err), "page.text reads it") != isPDF {
			t.Errorf("find in %s: %s", path, exit(err))
		}
		sent, err := run(t, c, Requests, RequestsParams{All: true, Limit: 50})
		if err != nil || strings.Contains(sent.Text, "chrome") {
			t.Errorf("requests of %s: %s\n%s", path, exit(err), sent.Text)
		}
		shown, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: test.tokens})
		check("snapshot", shown.Text, test.snapshot, shown.LeftOut, err)
	}
}
