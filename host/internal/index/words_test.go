package index

import (
	"math/rand/v2"
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

// reference is the textbook algorithm, without the band and the limits of the code.
func reference(a, b string) int {
	far := len(a) + len(b)
	d := make([][]int, len(a)+2)
	for i := range d {
		d[i] = make([]int, len(b)+2)
		d[i][0] = far
		if i > 0 {
			d[i][1] = i - 1
		}
	}
	for j := range d[0] {
		d[0][j] = far
		if j > 0 {
			d[1][j] = j - 1
		}
	}
	var lastRow [256]int
	for i := 1; i <= len(a); i++ {
		lastCol := 0
		for j := 1; j <= len(b); j++ {
			k, l := lastRow[b[j-1]], lastCol
			cost := 1
			if a[i-1] == b[j-1] {
				cost, lastCol = 0, j
			}
			d[i+1][j+1] = min(d[i][j]+cost, d[i+1][j]+1, d[i][j+1]+1, d[k][l]+i-k-1+1+j-l-1)
		}
		lastRow[a[i-1]] = i
	}
	return d[len(a)+1][len(b)+1]
}

func TestDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	word := func() string {
		b := make([]byte, r.IntN(10))
		for i := range b {
			b[i] = byte('a' + r.IntN(3))
		}
		return string(b)
	}
	for range 200_000 {
		a, b := word(), word()
		want := reference(a, b)
		for maxDist := 1; maxDist <= 3; maxDist++ {
			if got := distance([]byte(a), []byte(b), maxDist); got != min(want, maxDist+1) {
				t.Fatalf("%q %q within %d: %d, expected %d", a, b, maxDist, got, min(want, maxDist+1))
			}
			if want <= maxDist && !near(letters([]byte(a)), letters([]byte(b)), maxDist) {
				t.Fatalf("%q %q: the pre-check by letters excludes distance %d", a, b, want)
			}
		}
	}
	if d := distance([]byte("ca"), []byte("abc"), 3); d != 2 {
		t.Errorf("ca, abc: %d, expected 2", d)
	}
	if d := distance([]byte(strings.Repeat("a", 70)), []byte(strings.Repeat("a", 70)), 2); d != 3 {
		t.Errorf("long words: %d, expected 3", d)
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
