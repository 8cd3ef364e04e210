package origin

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// TestParse parses spellings of origins that an operator might write. An empty want means an error.
func TestParse(t *testing.T) {
	tests := []struct{ in, want, complaint string }{
		{"https://api.github.com", "https://api.github.com", ""},
		{"http://api.github.com", "http://api.github.com", ""},
		{"https://api.github.com:443", "https://api.github.com", ""},
		{"http://api.github.com:443", "http://api.github.com:443", ""},
		{"https://api.github.com:8443", "https://api.github.com:8443", ""},
		{"HTTPS://API.GitHub.com", "https://api.github.com", ""},
		{"https://*.example.com", "https://*.example.com", ""},
		{"https://*.example.com:8443", "https://*.example.com:8443", ""},
		{"http://localhost:3000", "http://localhost:3000", ""},
		{"http://my_service:80", "http://my_service", ""},
		{"https://xn--bcher-kva.example", "https://xn--bcher-kva.example", ""},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080", ""},
		{"http://[::1]:8080", "http://[::1]:8080", ""},
		{"https://[2001:DB8::1]", "https://[2001:db8::1]", ""},
		{"https://a1.2b.example", "https://a1.2b.example", ""},

		{"", "", "does not begin with http"},
		{"api.github.com", "", "does not begin with http"},
		{"//api.github.com", "", "does not begin with http"},
		{"ftp://api.github.com", "", "does not begin with http"},
		{"https:api.github.com", "", "does not begin with http"},
		{"https:/api.github.com", "", "does not begin with http"},
		{"https:///api.github.com", "", "empty"},
		{"https://", "", "empty"},
		{"https://api.github.com/", "", "has a path"},
		{"https://api.github.com/v3", "", "write https://api.github.com"},
		{"https://api.github.com?x", "", "has a path"},
		{"https://api.github.com#x", "", "has a path"},
		{"https://api.github.com.", "", "ends in a dot"},
		{"https://api..github.com", "", "empty"},
		{"https://.github.com", "", "empty"},
		{"https://-a.github.com", "", "hyphen"},
		{"https://a-.github.com", "", "hyphen"},
		{"https://" + strings.Repeat("a", 64) + ".com", "", "too long"},
		{"https://" + strings.Repeat("a.", 127) + "com", "", "253"},
		{"https://user@api.github.com", "", "user name"},
		{"https://user:pass@api.github.com", "", "user name"},
		{"https://api.github.com@evil.test", "", "user name"},
		{"https://api%2egithub.com", "", "percent"},
		{"https://api.github.com%00.evil.test", "", "percent"},
		{"https://bücher.example", "", "xn--"},
		{"https://api。github.com", "", "xn--"},
		{"https://аpi.github.com", "", "xn--"}, // Cyrillic а
		{"https://xn--", "", "empty"},
		{"https://api.github.com:", "", "port"},
		{"https://api.github.com:0", "", "port"},
		{"https://api.github.com:0443", "", "port"},
		{"https://api.github.com:65536", "", "port"},
		{"https://api.github.com:+443", "", "port"},
		{"https://api.github.com:443:443", "", "port"},
		{"https://api.github.com:*", "", "port"},
		{"https://2130706433", "", "odd spelling"},
		{"https://127.1", "", "odd spelling"},
		{"https://0177.0.0.1", "", "odd spelling"},
		{"https://0x7f.0.0.1", "", "odd spelling"},
		{"https://0x7f000001", "", "odd spelling"},
		{"https://127.0.0.0x1", "", "odd spelling"},
		{"https://127.0.0.1.", "", "ends in a dot"},
		{"https://127.000.000.001", "", "odd spelling"},
		{"https://256.0.0.1", "", "odd spelling"},
		{"https://1.2.3.4.5", "", "odd spelling"},
		{"https://evil.0x", "", "odd spelling"},
		{"https://[::ffff:127.0.0.1]", "", "write 127.0.0.1"},
		{"https://[::ffff:7f00:1]", "", "write 127.0.0.1"},
		{"https://[0:0:0:0:0:0:0:1]", "", "write [::1]"},
		{"https://[fe80::1%25eth0]", "", "zone"},
		{"https://[fe80::1%eth0]", "", "zone"},
		{"https://[127.0.0.1]", "", "not an IPv6"},
		{"https://[::1", "", "no ]"},
		{"https://[::1]x", "", "between"},
		{"https://::1", "", "port"},
		{"https://*", "", "only at the beginning"},
		{"https://*.com", "", "too wide"},
		{"https://*.", "", "empty"},
		{"https://*.127.0.0.1", "", "too wide"},
		{"https://*.[::1]", "", "port"},
		{"https://*.*.com", "", "only at the beginning"},
		{"https://a.*.com", "", "only at the beginning"},
		{"https://*example.com", "", "only at the beginning"},
		{"https://exa mple.com", "", "white space"},
		{" https://example.com", "", "white space"},
		{"https://example.com\n", "", "white space"},
		{"https://example.com\x00", "", "control"},
		{"https://example.com\\evil.test", "", "backslash"},
		{"https://exa!mple.com", "", "characters"},
	}
	for _, tt := range tests {
		o, err := Parse(tt.in)
		switch {
		case err != nil && tt.want != "":
			t.Errorf("%q: %v, want %s", tt.in, err, tt.want)
		case err == nil && o.String() != tt.want:
			t.Errorf("%q: got %s, want %q", tt.in, o, tt.want)
		case err != nil && !strings.Contains(err.Error(), tt.complaint):
			t.Errorf("%q: got %v, want ...%s...", tt.in, err, tt.complaint)
		case err != nil && strings.ContainsAny(err.Error(), "\n\x00"):
			t.Errorf("%q: not clean: %q", tt.in, err)
		}
	}
}

// TestOf checks whether a granted origin covers the URLs that a guest may write.
func TestOf(t *testing.T) {
	tests := []struct {
		origin, url string
		want        bool
	}{
		{"https://api.github.com", "https://api.github.com", true},
		{"https://api.github.com", "https://api.github.com/", true},
		{"https://api.github.com", "https://api.github.com/repos?x=1#y", true},
		{"https://api.github.com", "https://api.github.com?x=@evil.test", true},
		{"https://api.github.com", "https://api.github.com/@evil.test", true},
		{"https://api.github.com", "https://api.github.com/ü", true},
		{"https://api.github.com", "https://api.github.com:443/", true},
		{"https://api.github.com", "HTTPS://API.GITHUB.COM/", true},
		{"https://api.github.com", "http://api.github.com/", false},
		{"https://api.github.com", "https://api.github.com:8443/", false},
		{"https://api.github.com", "https://github.com/", false},
		{"https://api.github.com", "https://x.api.github.com/", false},
		{"https://api.github.com", "https://xapi.github.com/", false},
		{"https://api.github.com", "https://api.github.com.evil.test/", false},
		{"https://api.github.com", "https://api.github.com./", false},
		{"https://api.github.com", "https://api.github.com@evil.test/", false},
		{"https://api.github.com", "https://evil.test@api.github.com/", false},
		{"https://api.github.com", "https://:@api.github.com/", false},
		{"https://api.github.com", "https://api.github.com\\@evil.test/", false},
		{"https://api.github.com", "https://evil.test\\.api.github.com/", false},
		{"https://api.github.com", "https://api%2Egithub.com/", false},
		{"https://api.github.com", "https://%61pi.github.com/", false},
		{"https://api.github.com", "https://api.github.com%2f.evil.test/", false},
		{"https://api.github.com", "https://evil.test#@api.github.com/", false},
		{"https://api.github.com", "https://evil.test/https://api.github.com/", false},
		{"https://api.github.com", "https:///api.github.com/", false},
		{"https://api.github.com", "https:api.github.com/", false},
		{"https://api.github.com", "//api.github.com/", false},
		{"https://api.github.com", " https://api.github.com/", false},
		{"https://api.github.com", "https://api.github.com/\r\nHost: evil.test", false},
		{"https://api.github.com", "https://api.gith\tub.com/", false},
		{"https://api.github.com", "https://api.github.com:/", false},
		{"https://api.github.com", "https://api.github.com:00443/", false},
		{"https://api.github.com", "https://ａpi.github.com/", false}, // full width
		{"https://api.github.com", "https://api.github.com/%zz", false},
		{"https://*.example.com", "https://a.example.com/", true},
		{"https://*.example.com", "https://a.b.example.com/", true},
		{"https://*.example.com", "https://example.com/", false},
		{"https://*.example.com", "https://aexample.com/", false},
		{"https://*.example.com", "https://.example.com/", false},
		{"https://*.example.com", "https://*.example.com/", false},
		{"https://*.example.com", "https://a.example.com.evil.test/", false},
		{"https://*.example.com", "http://a.example.com/", false},
		{"http://127.0.0.1", "http://127.0.0.1/", true},
		{"http://127.0.0.1", "http://2130706433/", false},
		{"http://127.0.0.1", "http://0177.0.0.1/", false},
		{"http://127.0.0.1", "http://0x7f.1/", false},
		{"http://127.0.0.1", "http://[::ffff:127.0.0.1]/", false},
		{"http://127.0.0.1", "http://127.0.0.1.:80/", false},
		{"http://127.0.0.1", "http://localhost/", false},
		{"http://[::1]:8080", "http://[::1]:8080/x", true},
		{"http://[::1]:8080", "http://[0::1]:8080/x", false},
		{"http://[::1]:8080", "http://[::1%25lo]:8080/x", false},
		{"https://xn--bcher-kva.example", "https://xn--bcher-kva.example/", true},
		{"https://xn--bcher-kva.example", "https://XN--BCHER-KVA.example/", true},
		{"https://xn--bcher-kva.example", "https://bücher.example/", false},
	}
	for _, tt := range tests {
		granted, err := Parse(tt.origin)
		if err != nil {
			t.Fatal(err)
		}
		if to, err := Of(tt.url); (err == nil && granted.Covers(to)) != tt.want {
			t.Errorf("%s, %q: got %s, %v, want %v", tt.origin, tt.url, to, err, tt.want)
		}
	}
}

func TestCovers(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"https://a.test", "https://a.test:443", true},
		{"https://*.a.test", "https://*.a.test", true},
		{"https://*.a.test", "https://*.b.a.test", true},
		{"https://*.b.a.test", "https://*.a.test", false},
		{"https://x.a.test", "https://*.a.test", false},
		{"https://*.a.test", "https://a.test", false},
		{"https://*.a.test", "https://b.a.test:1", false},
		{"http://a.test", "https://a.test", false},
		{"http://a.test:443", "https://a.test", false},
		{"https://*.a.test", "http://b.a.test:443", false},
		{"https://a.test", "https://*.a.test", false},
		{"https://a.test", "https://b.a.test", false},
	}
	for _, tt := range tests {
		a, err := Parse(tt.a)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Parse(tt.b)
		if err != nil {
			t.Fatal(err)
		}
		if a.Covers(b) != tt.want {
			t.Errorf("%s covers %s: want %v", a, b, tt.want)
		}
	}
}

// A URL must name one host, and errors quote only a short part of it.
func TestOfRefuses(t *testing.T) {
	if o, err := Of("https://*.example.com/"); err == nil || !strings.Contains(err.Error(), "does not name a host") {
		t.Errorf("a wildcard was accepted as the host %s, %v", o, err)
	}
	if _, err := Of("https://" + strings.Repeat("a", 10_000) + "%/"); err == nil || len(err.Error()) > 1000 {
		t.Errorf("%.2000v", err)
	}
}

// Errors go to logs and agents, and must not hold secrets.
func TestErrorsShowNoSecrets(t *testing.T) {
	for _, s := range []string{
		"https://user:hunter2@api.test/", "https:user:hunter2@api.test", "https://hunter2@api.test:x",
		"https://api.test./hunter2", "https://api%2etest/hunter2?hunter2#hunter2",
		"https://api.test:x?hunter2", "https://127.1#hunter2", "ftp://hunter2@a.test/hunter2", "//hunter2@api.test/hunter2",
		"https://api.test./\nhunter2", "javascript:hunter2()", "mailto:hunter2@api.test", "file:///hunter2", "/hunter2",
		"https://api.test\\hunter2",
		"https://*.api.test/hunter2", "https://api.test/%zzhunter2",
	} {
		if _, err := Of(s); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", s, err)
		}
	}
	for in, want := range map[string]string{
		"https://api.test./v3/x": `"https://api.test./..."`,
		"https://a:b@api.test":   `"https://...@api.test"`,
		"https://api.test:":      `"https://api.test:"`,
		"api.test/v3":            `"api.test/..."`,
	} {
		if got := quoteRedacted(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func FuzzOrigin(f *testing.F) {
	for _, s := range []string{"https://api.github.com", "https://*.example.com:8443", "http://[::1]:80/x?y#z",
		"http://0x7f.1", "https://a@b", "https://a%2eb", "https://bücher.example/", "https://a.test\\b",
		"http://[::ffff:1.2.3.4]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if o, err := Parse(s); err == nil {
			again, err := Parse(o.String())
			if err != nil || again != o || !o.Covers(o) {
				t.Fatalf("%q became %s, which is read as %v, %v", s, o, again, err)
			}
		}
		o, err := Of(s)
		if err != nil {
			return
		}
		// The HTTP client must dial the host that this package parsed.
		u, err := url.Parse(s)
		if err != nil || u.User != nil || strings.ToLower(u.Scheme) != o.Scheme || strings.ToLower(u.Hostname()) != o.Host {
			t.Fatalf("%q: we read %+v, net/url reads %+v, %v", s, o, u, err)
		}
		if port := u.Port(); port != "" && port != strconv.Itoa(o.Port) {
			t.Fatalf("%q: port %d, net/url reads %s", s, o.Port, port)
		}
		if a, err := netip.ParseAddr(o.Host); err == nil && a.String() != o.Host {
			t.Fatalf("%q: address %s is not canonical", s, o.Host)
		}
		if again, err := Parse(o.String()); err != nil || !again.Covers(o) {
			t.Fatalf("%q is not covered by its own origin %s", s, o)
		}
	})
}
