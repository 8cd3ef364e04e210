package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// A world is of one script of one plugin.
func TestWorlds(t *testing.T) {
	t.Parallel()
	script := PageScript{Plugin: "p", Name: "s", SHA256: strings.Repeat("a", 64)}
	for _, other := range []PageScript{
		{Plugin: "q", Name: script.Name, SHA256: script.SHA256},
		{Plugin: script.Plugin, Name: "t", SHA256: script.SHA256},
		{Plugin: script.Plugin, Name: script.Name, SHA256: strings.Repeat("b", 64)},
	} {
		if other.World() == script.World() {
			t.Errorf("%+v has the world of %+v", other, script)
		}
	}
}

// TestCookiesOf checks which cookies belong to an origin: those that Chrome would send to it.
func TestCookiesOf(t *testing.T) {
	partition := func(site string) Cookie {
		return Cookie{Domain: "a.test", Partition: &PartitionKey{Site: site}}
	}
	for _, c := range []struct {
		cookie  Cookie
		origins string
		want    bool
	}{
		{Cookie{Domain: "a.test"}, "https://a.test", true},
		{Cookie{Domain: "a.test"}, "http://a.test:8080", true}, // cookies know no ports
		{Cookie{Domain: "a.test"}, "https://b.a.test", false},
		{Cookie{Domain: ".a.test"}, "https://b.a.test", true},
		{Cookie{Domain: ".a.test"}, "https://a.test", true},
		{Cookie{Domain: ".a.test"}, "https://ba.test", false},
		{Cookie{Domain: "b.a.test"}, "https://a.test", false},
		{Cookie{Domain: "."}, "https://a.test", false},
		{Cookie{Domain: "[::1]"}, "http://[::1]:80", true},
		{Cookie{Domain: "a.test"}, "https://b.test https://a.test", true},
		{Cookie{Domain: "c.test"}, "https://b.test https://a.test", false},
		{Cookie{Domain: "a.test", Secure: true}, "http://a.test", false},
		{Cookie{Domain: "a.test", Secure: true}, "https://a.test", true},
		{Cookie{Domain: "127.0.0.1", Secure: true}, "http://127.0.0.1:80", true},
		{Cookie{Domain: "localhost", Secure: true}, "http://localhost", true},
		{Cookie{Domain: "x.localhost", Secure: true}, "http://x.localhost", true},
		{partition("https://a.test"), "https://a.test", true},
		{partition("http://a.test"), "https://a.test", false},
		{partition("https://other.test"), "https://a.test", false},
		{partition("https://other.test"), "https://a.test https://www.other.test", true},
	} {
		if got := len(CookiesOf([]Cookie{c.cookie}, strings.Fields(c.origins))) == 1; got != c.want {
			t.Errorf("%+v is one of %s: %v", c.cookie, c.origins, got)
		}
	}
}

func TestChromeErrors(t *testing.T) {
	for raw, want := range map[string]ChromeError{
		`{"code":-32602,"message":"Invalid parameters","data":"url: string value expected"}`: {
			Code: -32602, Message: "Invalid parameters", Data: "url: string value expected"},
		`{"code":-32000,"message":"x","data":{"a":1}}`: {Code: -32000, Message: "x", Data: `{"a":1}`},
	} {
		if e := FromChrome("A.b", json.RawMessage(raw)); e.Chrome == nil || *e.Chrome != want ||
			e.Code != CodeProtocolError {
			t.Errorf("%s: %+v", raw, e)
		}
	}
	if e := FromChrome("A.b", json.RawMessage(`7`)); e.Code != CodeProtocolError {
		t.Errorf("%+v", e)
	}
}

func TestIsFromWeb(t *testing.T) {
	for url, want := range map[string]bool{
		"":                              false,
		"http://a/":                     true,
		"https://a/w.js":                true,
		"about:blank":                   true,
		"about:srcdoc":                  true,
		"data:text/html,x":              true,
		"blob:http://a/1":               true,
		"blob:null/1":                   true,
		"chrome-error://chromewebdata/": true,
		"chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html": false,
		"blob:chrome-extension://a/1":                                    false,
		"chrome://settings/":                                             false,
		"chrome-untrusted://x/":                                          false,
		"devtools://x/":                                                  false,
		"file:///etc":                                                    false,
	} {
		if IsFromWeb(url) != want {
			t.Errorf("%q is from the web: %v", url, IsFromWeb(url))
		}
	}
}

func TestSameOrigin(t *testing.T) {
	for url, want := range map[string]bool{
		"http://127.0.0.1:9000":                 true,
		"http://127.0.0.1:9000/x?y":             true,
		"HTTP://127.0.0.1:9000/":                true,
		"http://user@127.0.0.1:9000/":           true,
		"blob:http://127.0.0.1:9000/1":          true,
		"view-source:http://127.0.0.1:9000/":    true,
		"filesystem:http://127.0.0.1:9000/t":    true,
		"":                                      false,
		"about:blank":                           false,
		"http://127.0.0.1:90001/":               false,
		"http://127.0.0.1/":                     false,
		"https://127.0.0.1:9000/":               false,
		"http://127.0.0.1:9000.example/":        false,
		"http://127.0.0.1:9000@example/":        false,
		"http://example/http://127.0.0.1:9000/": false,
	} {
		if SameOrigin(url, "http://127.0.0.1:9000") != want {
			t.Errorf("%q is of the origin: %v", url, !want)
		}
	}
}

func TestNamesOfCallers(t *testing.T) {
	for name, valid := range map[string]bool{
		"cli": true, "mcp:some": true, "mcp-http:some": true, "mcp-http:": false, "plugin:one": true,
		"": false, "cli:x": false, "client": false, "mcp": false, "mcp:": false, "plugin:": false, "root:x": false,
	} {
		if err := (Caller{Name: name}).Validate(); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
		if (Caller{Name: name}).CanSee("another") {
			t.Errorf("%q sees what belongs to another session", name)
		}
	}
	for _, name := range []string{"mcp:some", "mcp:other"} {
		err := (Caller{Name: name, Session: DefaultSession}).Validate()
		if err == nil || err.Code != CodeInvalidArgs || !strings.Contains(err.Message, "no session") {
			t.Errorf("%s in the person's session: %v", name, err)
		}
	}
}

// What a caller sees depends on the session, whoever calls in it. What belongs to no session is the person's.
func TestCallersSeeTheirSession(t *testing.T) {
	for _, c := range []struct {
		by   Caller
		sees []string
	}{
		{CommandLine, []string{DefaultSession, ""}},
		{Caller{Name: "cli", Session: "user/work"}, []string{"user/work"}},
		{Caller{Name: "mcp:some", Session: "user/work"}, []string{"user/work"}},
		{Caller{Name: "plugin:one", Session: "user/work"}, []string{"user/work"}},
		{Caller{Name: "plugin:one", Session: DefaultSession}, []string{DefaultSession}},
		{Caller{Name: "mcp:some"}, []string{"mcp:some"}},
		{Caller{Name: "plugin:one"}, []string{"plugin:one"}},
	} {
		for _, session := range []string{DefaultSession, "", "user/work", "user/", "mcp:some", "plugin:one",
			PluginPrefix} {
			if got := c.by.CanSee(session); got != slices.Contains(c.sees, session) {
				t.Errorf("%s in %q sees what belongs to %q: %v", c.by.Name, c.by.Session, session, got)
			}
		}
	}
}
