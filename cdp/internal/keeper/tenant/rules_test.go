package tenant

import (
	"strings"
	"testing"
)

func TestMatchesURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, url string
		want         bool
	}{
		{"*", "", true}, {"*", "http://a.test/", true}, {"http://a.test/", "http://a.test/", true},
		{"http://a.test/", "http://a.test/b", false}, {"*/b", "http://a.test/b", true}, {"*/b", "http://a.test/b/c", false},
		{"*/b*", "http://a.test/b/c", true}, {"*a*b*c*", "xxaxxbxxcxx", true}, {"*a*b*c*", "xxaxxcxxbxx", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"a??", "ab", false}, {`a\?c`, "a?c", true}, {`a\?c`, "abc", false},
		{`a\*`, "a*", true}, {`a\*`, "ab", false}, {`a\\b`, `a\b`, true}, {"", "", true}, {"", "a", false},
		{"*ab", "aab", true}, {strings.Repeat("*a", 50) + "b", strings.Repeat("a", 5000), false},
	} {
		if got := matchesURL(c.pattern, c.url); got != c.want {
			t.Errorf("%q matches %q: %t", c.pattern, c.url[:min(len(c.url), 60)], got)
		}
	}
}

// A pattern without "?" matches whatever query a URL has.
func TestMatchesRule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, url string
		want         bool
	}{
		{"*.png", "http://a.test/b.png", true}, {"*.png", "http://a.test/b.png?1", true},
		{"*.png", "http://a.test/b.svg?c.png", true}, {"*.png", "http://a.test/b.png/c?1", false},
		{"*/b*", "http://a.test/c?d=/b", true}, {"*.png?1", "http://a.test/b.png?1", true},
		{"*.png?1", "http://a.test/b.png?2", false}, {"*/b?.png", "http://a.test/b1.png?1", false},
		{`*.png\?`, "http://a.test/b.png?1", false}, {"http://a.test/", "http://a.test/?", true},
	} {
		if got := matchesRule(c.pattern, c.url); got != c.want {
			t.Errorf("%q matches %q: %t", c.pattern, c.url, got)
		}
	}
}
