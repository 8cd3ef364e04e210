package index

import (
	"strings"
	"testing"
)

func TestChunks(t *testing.T) {
	for text, want := range map[string]string{
		"getCookies":            "get cookies",
		"HTMLElement":           "html element",
		"getDOMStorageItems":    "get dom storage items",
		"printToPDF":            "print to pdf",
		"blocked URLs, PDFs":    "blocked urls pdfs",
		"setBlockedURLsNow":     "set blocked urls now",
		"snake_case-and.dots":   "snake case and dots",
		"don't page's":          "dont pages",
		"base64 sha256Sum":      "base64 sha256 sum",
		"Zürich straße":         "zürich straße",
		"ПечатьСтраницы":        "печать страницы",
		"天気予報":                  "天気 気予 予報",
		"get天気":                 "get 天気",
		"\x00a\xffb":            "a b",
		"🎉 -- ''":               "",
		"":                      "",
		"x'":                    "x",
		strings.Repeat("x", 50): "",
	} {
		var got []string
		for _, c := range chunks(text, 100) {
			got = append(got, c.parts...)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %q, expected %q", text, s, want)
		}
		var short []string
		eachToken([]byte(text), func(w []byte) { short = append(short, string(w)) })
		if s := strings.Join(short, " "); s != want {
			t.Errorf("eachToken %q: %q, expected %q", text, s, want)
		}
	}
	if n := len(chunks(strings.Repeat("a ", 1000), 10)); n != 10 {
		t.Errorf("%d chunks, expected 10", n)
	}
}

func TestStem(t *testing.T) {
	for word, want := range map[string]string{
		"cookies": "cooki", "cookie": "cooki", "navigating": "navig", "navigation": "navig", "queries": "queri",
		"query":     "queri",
		"consigned": "consign", "consistency": "consist", "knightly": "knight", "knives": "knive", "hopping": "hop",
		"hoping": "hope",
		"agreed": "agre", "feed": "feed", "plastered": "plaster", "sing": "sing", "flies": "fli", "dies": "die",
		"ties":       "tie",
		"relational": "relat", "conditional": "condit", "vietnamization": "vietnam", "operator": "oper",
		"hopefulness": "hope",
		"triplicate":  "triplic", "formative": "format", "electrical": "electr", "goodness": "good", "revival": "reviv",
		"adjustment": "adjust", "adoption": "adopt", "rate": "rate", "cease": "ceas", "controlling": "control",
		"rolling":  "roll",
		"generate": "generat", "generic": "generic", "communication": "communic", "skies": "sky", "dying": "die",
		"news":    "news",
		"proceed": "proceed", "gas": "gas", "this": "this", "gaps": "gap", "boy": "boy", "by": "by", "say": "say",
		"cry":         "cri",
		"luxuriating": "luxuri", "accessibility": "access", "go": "go", "größen": "größen", "sha256": "sha256", "": "",
	} {
		if got := stem(word); got != want {
			t.Errorf("%s: %s, expected %s", word, got, want)
		}
	}
}

func TestThesaurus(t *testing.T) {
	for word, want := range map[string]string{"picture": "screenshot", "delete": "remove", "goto": "navigate"} {
		found := false
		for _, s := range synonyms(stem(word)) {
			found = found || s.stem == stem(want)
		}
		if !found {
			t.Errorf("%s is not called %s", word, want)
		}
	}
}
