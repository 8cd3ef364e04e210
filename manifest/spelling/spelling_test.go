package spelling

import (
	"fmt"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"ABC", "abc", 0}, {"kitten", "sitting", 3},
		{"ab", "ba", 1},
		{"ca", "abc", 2}, // "optimal string alignment" gives 3
		{"a cat", "an abct", 3},
		{"Network.getCokies", "Network.getCookies", 1},
		{"größe", "GRÖßE", 0}, {"größe", "grösse", 2},
		{"abcdef", "badcfe", 3},
	} {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := Distance(tt.b, tt.a); got != tt.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, tt := range []struct {
		word       string
		candidates []string
		max        int
		want       string
	}{
		{"url", []string{"urls", "name", "curl"}, 3, "[{curl 1} {urls 1}]"},
		{"lsit", []string{"list", "last", "test"}, 3, "[{list 1}]"},
		{"lsit", []string{"list", "last", "test"}, 1, "[{list 1}]"},
		{"ab", []string{"cd", "ac", "a"}, 3, "[]"},
		{"of", []string{"on", "off"}, 3, "[{off 1}]"},
		{"ad", []string{"add", "as", "or"}, 3, "[{add 1}]"},
		{"opp", []string{"op", "a"}, 3, "[{op 1}]"},
		{"x", []string{"y"}, 3, "[]"},
		{"captre", []string{"capture"}, 3, "[{capture 1}]"},
		{"takeScreenshot", []string{"captureScreenshot", "printToPDF"}, 3, "[{captureScreenshot 5}]"},
		{"screenshot", []string{"captureScreenshot"}, 3, "[]"},
		{"Page.goto", []string{"Page.stop", "Page.got"}, 3, "[{Page.got 1}]"},
		{"Pageget", []string{"Page.get", "cdp.Page.get"}, 3, "[{Page.get 1}]"},
		{"Image.getAllThings", []string{"cdp.Page.getAllThings", "Page.getAllThings"}, 3, "[]"},
		{"Pgae.gett", []string{"Page.get", "Page.set"}, 3, "[{Page.get 2}]"},
		{"NAME", []string{"name", "name"}, 3, "[{name 0}]"},
		{"getCokies", []string{"Network.getCookies", "getCookies"}, 3, "[{getCookies 1}]"},
		{long, []string{"x", long}, 3, "[]"},
		{"", []string{"", "a"}, 3, "[{ 0}]"},
	} {
		if got := fmt.Sprint(Nearest(tt.word, tt.candidates, tt.max)); got != tt.want {
			t.Errorf("Nearest(%.20q) = %s, want %s", tt.word, got, tt.want)
		}
	}
}
