package index

import (
	"testing"

	"github.com/parley-tools/parley/host/internal/index/language"
)

// TestWordsAreNotNames checks that a word with an inner capital or a hyphen is taken for the name of a tool only if the
// tool's name has several parts.
func TestWordsAreNotNames(t *testing.T) {
	segs := append(corpus(t),
		open(t, "code", []Doc{
			tool("javascript | Highlight source text"), tool("email | Check an address"), tool("re_open | Open a ticket again"),
		}),
		open(t, "git", []Doc{tool("hub | Mirror a server"), tool("repo.clone | Copy a repository")}))
	for query, want := range map[string]string{
		"evaluate JavaScript inside the page":    "cdp.Runtime.evaluate",
		"run a JavaScript function":              "cdp.Runtime.callFunctionOn",
		"say an e-mail aloud":                    "flite.speak",
		"JavaScript":                             "code.javascript", // the whole query
		"e-mail":                                 "code.email",
		"call getCookies for a page":             "cdp.Network.getCookies",
		"how do I use issue.list here":           "github.issue.list",
		"what does git.hub do with a connection": "git.hub",
		"please re-open the closed ticket":       "code.re_open",
	} {
		if r := Search(segs, Query{Text: query}); len(r.Hits) == 0 || full(r.Hits[0]) != want {
			t.Errorf("%q: expected %s, got %+v", query, want, r.Hits[:min(2, len(r.Hits))])
		}
	}
	for _, query := range []string{"tell me about JavaScript on mars", "send an e-mail to the moon"} {
		for _, h := range Search(segs, Query{Text: query}).Hits {
			if h.Confidence == "high" {
				t.Errorf("%q: %s is sure because of %s", query, full(h), h.Why)
			}
		}
	}
}

// TestPluginDocs checks that the documentation and the keywords of a plugin lead to its tools.
func TestPluginDocs(t *testing.T) {
	about := func(p Plugin) *Segment {
		seg, err := Open(Build(p, []Doc{tool("list | List all items"), tool("add | Add an item")}))
		if err != nil {
			t.Fatal(err)
		}
		return seg
	}
	a := about(Plugin{Name: "alpha", Text: "A ledger for invoices of customers", Keywords: []string{"bookkeeping"}})
	b := about(Plugin{Name: "beta", Text: "Recipes and shopping"})
	merged, err := Open(Merge([]*Segment{a, b}, func(string) string { return "" }))
	if err != nil {
		t.Fatal(err)
	}
	for name, segs := range map[string][]*Segment{"separate": {a, b}, "merged": {merged}} {
		for query, want := range map[string]string{
			"list invoices": "alpha.list", "add a recipe": "beta.add", "bookkeeping list": "alpha.list",
			"list shopping": "beta.list",
		} {
			r := Search(segs, Query{Text: query})
			if len(r.Hits) < 2 || full(r.Hits[0]) != want || r.Hits[0].Score <= r.Hits[1].Score {
				t.Errorf("%s, %q: %+v", name, query, r.Hits)
			}
		}
		r := Search(segs, Query{Text: "invoices"})
		if len(r.Hits) != 2 || r.Hits[0].Plugin != "alpha" || r.Hits[0].Why != "plugin" || r.Hits[0].Confidence == "high" {
			t.Errorf("%s: %+v", name, r.Hits)
		}
	}
}

// TestEachPhraseAlone checks that words of different phrases do not match together, and that the best phrase counts.
func TestEachPhraseAlone(t *testing.T) {
	seg := open(t, "shop", []Doc{
		tool("log | Entries of the journal", "task:read warnings", "task:messages of a page", "task:read errors"),
		tool("text | What a visitor sees", "task:read the page"),
	})
	r := Search([]*Segment{seg}, Query{Text: "read page"})
	if len(r.Hits) != 2 || r.Hits[0].Name != "text" || r.Hits[0].Why != `task "read the page"` {
		t.Fatalf("%+v", r.Hits)
	}
	if both, parts := r.Hits[0].Score, r.Hits[1].Score; both-parts < 0.1 {
		t.Errorf("one phrase scores %.2f, words of several %.2f", both, parts)
	}
}

// TestExcludedWords checks that words that a query negates do not count.
func TestExcludedWords(t *testing.T) {
	segs := corpus(t)
	for query, want := range map[string]string{
		"take a screenshot without cookies":                     "cdp.Page.captureScreenshot",
		"capture the page, not the cookies":                     "cdp.Page.captureScreenshot",
		"reload the page instead of clearing the browser cache": "cdp.Page.reload",
		"without cookies, print the page as PDF":                "cdp.Page.printToPDF",
		"get cookies but not from Storage.getCookies":           "cdp.Network.getCookies",
		"don't delete, only get the cookies":                    "cdp.Network.getCookies",
	} {
		if r := Search(segs, Query{Text: query}); len(r.Hits) == 0 || full(r.Hits[0]) != want {
			t.Errorf("%q: expected %s, got %+v", query, want, r.Hits[:min(2, len(r.Hits))])
		}
	}
	// A phrase that excludes the same is meant, and a query that excludes everything asks for what prevents it.
	seg := open(t, "web", []Doc{tool("load | Load a page"), tool("fresh | Load again", "task:load a page without cache"),
		tool("cache.disable | Switch the cache off", "task:do not cache")})
	for query, want := range map[string]string{"load a page without cache": "fresh", "do not cache": "cache.disable"} {
		if r := Search([]*Segment{seg}, Query{Text: query}); r.Hits[0].Name != want {
			t.Errorf("%q: %+v", query, r.Hits)
		}
	}
}

func TestWithoutExcluded(t *testing.T) {
	for text, want := range map[string]string{
		"screenshot without cookies":                   "screenshot",
		"list files but not folders":                   "list files",
		"list files, not the folders, by size":         "list files, by size",
		"do not cache":                                 "do not cache",
		"copy without the images from a page":          "copy from a page",
		"a page other than the first":                  "a page",
		"element not found":                            "element not found",
		"without":                                      "without",
		"open it without images or scripts, then save": "open it then save",
	} {
		if got := withoutExcluded(text); got != want {
			t.Errorf("%q: %q, expected %q", text, got, want)
		}
	}
}

func TestForeign(t *testing.T) {
	segs := corpus(t)
	for query, want := range map[string]bool{
		"сделать скриншот":                      true,
		"截图":                                    true,
		"mache ein Bild von der Seite":          true,
		"prendre une capture de la page":        true,
		"guardar la página como pdf":            true,
		"Bildschirmfoto erstellen":              true,
		"take a picture of the page":            false,
		"get the café cookies":                  false,
		"cookies":                               false,
		"how far behind are my consumers":       false,
		"getCookies":                            false,
		"die on an e-mail":                      false,
		"convert ü to ue in the text of a file": false,
		`click "Über uns"`:                      false,
		`fill in „mit der Straße“`:              false,
		`klicke auf den Knopf "Save"`:           true,
		`"mache ein Bild von der Seite"`:        true,
	} {
		if got := Search(segs, Query{Text: query}).Foreign; got != want {
			t.Errorf("%q: foreign %v", query, got)
		}
	}
}

// TestAddresses checks that an address without a scheme counts as one.
func TestAddresses(t *testing.T) {
	for field, want := range map[string]bool{
		"example.com": true, "example.com/cart?x=1": true, "localhost:8080": true, "www.parley.dev,": true, "https://x": true,
		"response.text": false, "Page.navigate": false, "1.5": false, ".com": false, "issue.IO": false, "index.html": false,
	} {
		if (language.WithoutAddresses(field) == "url") != want {
			t.Errorf("%q: address %v", field, !want)
		}
	}
	if r := Search(corpus(t), Query{Text: "open website example.com"}); full(r.Hits[0]) != "cdp.Page.navigate" {
		t.Errorf("%+v", r.Hits[0])
	}
}
