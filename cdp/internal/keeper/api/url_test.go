package api

import "testing"

func TestMayOpenAndMayShow(t *testing.T) {
	for _, c := range []struct {
		url         string
		open, shown bool
	}{
		{"", true, true}, {"about:blank", true, true}, {"http://a/", true, true}, {"HTTPS://a/", true, true},
		{"https://a/?file:///etc", true, true},
		{"about:blank#blocked", false, true}, {"about:blank?x", false, true}, {"chrome-error://chromewebdata/", false, true},
		{"file:///etc/passwd", false, false}, {"FILE:/etc", false, false}, {" http://a/", false, false},
		{"view-source:http://a/", false, false}, {"data:text/html,x", false, false},
		{"javascript:1", false, false}, {"chrome://version/", false, false}, {"chrome-error://other/", false, false},
		{"blob:http://a/x", false, false},
		{"filesystem:http://a/t/x", false, false}, {"about:srcdoc", false, false}, {"about:version", false, false},
		{"http:a", false, false}, {"ftp://a/", false, false},
		{"devtools://devtools/x", false, false}, {"ht\ntp://a/", false, false},
	} {
		if mayOpen(c.url) != c.open || MayShow(c.url) != c.shown {
			t.Errorf("%q: may be opened %v, may be shown %v", c.url, mayOpen(c.url), MayShow(c.url))
		}
	}
}
