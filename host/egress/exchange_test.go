package egress

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/outbound"
)

// echo responds with what it received: method, body and headers.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	json.NewEncoder(w).Encode(received{r.Method, r.URL.String(), string(body), r.Header})
}

type received struct {
	Method, URL, Body string
	Header            http.Header
}

func receivedOf(t *testing.T, answer *outbound.Response, err error) received {
	t.Helper()
	var a received
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer.Body, &a); err != nil {
		t.Fatalf("%s: %v", answer.Body, err)
	}
	return a
}

// redirectHandler redirects with the status and to the target of the query: /?302=http://...
func redirectHandler(w http.ResponseWriter, r *http.Request) {
	for key, to := range r.URL.Query() {
		if status, err := strconv.Atoi(key); err == nil {
			w.Header().Set("Location", strings.ReplaceAll(to[0], "LONG", "/"+strings.Repeat("x", maxURL)))
			w.WriteHeader(status)
			return
		}
	}
	echo(w, r)
}

func redirectTo(server, status, to string) string {
	return server + "/?" + url.Values{status: {to}}.Encode()
}

func TestRedirectedMethods(t *testing.T) {
	second := serve(t, "127.0.0.2", echo)
	first := serve(t, "127.0.0.1", redirectHandler)
	w := newTestClient(t, Config{})
	for _, tt := range []struct {
		status, method, want string
		body                 bool
	}{
		{"301", "GET", "GET", false}, {"301", "POST", "GET", false}, {"301", "PUT", "PUT", true}, {"301", "HEAD", "HEAD",
			false},
		{"302", "GET", "GET", false}, {"302", "POST", "GET", false}, {"302", "DELETE", "DELETE", true}, {"302", "HEAD",
			"HEAD", false},
		{"303", "GET", "GET", false}, {"303", "POST", "GET", false}, {"303", "PUT", "GET", false}, {"303", "HEAD", "HEAD",
			false},
		{"307", "GET", "GET", false}, {"307", "POST", "POST", true}, {"307", "PUT", "PUT", true}, {"307", "HEAD", "HEAD",
			false},
		{"308", "GET", "GET", false}, {"308", "POST", "POST", true}, {"308", "PATCH", "PATCH", true}, {"308", "HEAD", "HEAD",
			false},
	} {
		request := outbound.Request{Method: tt.method, URL: redirectTo(first.URL, tt.status, second.URL+"/there"),
			Headers: [][2]string{{"content-type", "text/x"}}}
		if tt.method != "GET" && tt.method != "HEAD" {
			request.Body = []byte("payload")
		}
		methods := "GET,HEAD,POST,PUT,PATCH,DELETE "
		w.touched = nil
		answer, err := w.send(request, methods+first.URL, methods+second.URL)
		if err != nil {
			t.Errorf("%s %s: %v", tt.status, tt.method, err)
			continue
		}
		if want := []string{tt.method + " " + first.URL, tt.want + " " + second.URL}; !slices.Equal(w.touched, want) {
			t.Errorf("%s %s: %q, want %q", tt.status, tt.method, w.touched, want)
		}
		if tt.want == "HEAD" {
			continue
		}
		a := receivedOf(t, answer, nil)
		wantBody, wantType := "", ""
		if tt.body {
			wantBody = "payload"
		}
		if tt.body || tt.method == "GET" {
			wantType = "text/x"
		}
		if a.Method != tt.want || a.Body != wantBody || a.Header.Get("Content-Type") != wantType || a.URL != "/there" {
			t.Errorf("%s %s: arrived %+v", tt.status, tt.method, a)
		}
	}
}

// TestRedirectTargets checks where a redirect may lead, and the error of a hop that is not allowed.
func TestRedirectTargets(t *testing.T) {
	other := serve(t, "127.0.0.2", func(http.ResponseWriter,
		*http.Request) {
		t.Error("a server without a grant got a request")
	})
	post := serve(t, "127.0.0.3", echo)
	s := serve(t, "127.0.0.1", redirectHandler)
	w := newTestClient(t, Config{})
	w.names["inner.test"] = []string{"10.0.0.1"}
	w.names["localhost"] = []string{"127.0.0.1"}
	grants := []string{"GET,POST " + s.URL, "POST " + post.URL, "GET http://inner.test"}
	otherPort := ":" + portOf(other)
	for _, tt := range []struct {
		method, status, to string
		code               host.Code
		words              []string // in the error, or in the URL of the request
	}{
		{"GET", "302", s.URL + "/x", host.OK, []string{"/x"}},
		{"GET", "302", "/x?y=1#z", host.OK, []string{"/x?y=1"}},
		{"GET", "302", "x", host.OK, []string{"/x"}},
		{"GET", "302", "?y", host.OK, []string{"/?y"}},
		{"GET", "302", "//127.0.0.1:" + portOf(s) + "/x", host.OK, []string{"/x"}},
		{"GET", "302", "/\\" + "127.0.0.2" + otherPort + "/", host.OK, []string{"/%5C127.0.0.2"}}, // a path, for this client
		{"GET", "302", "/a b", host.OK, []string{"/a%20b"}},
		{"GET", "302", "/ü", host.OK, []string{"/%C3%BC"}},

		{"GET", "302", other.URL + "/?token=hunter2", host.Denied, []string{"http:GET:" + other.URL,
			s.URL + " redirected there", "no grant reaches"}},
		{"GET", "302", "//127.0.0.2" + otherPort, host.Denied, []string{"http:GET:" + other.URL}},
		{"GET", "302", "http://localhost:" + portOf(s), host.Denied, []string{"http:GET:http://localhost"}},
		{"GET", "302", "https://127.0.0.1:" + portOf(s), host.Denied, []string{"http:GET:https://127.0.0.1"}},
		{"GET", "302", "http://127.0.0.1/", host.Denied, []string{"http:GET:http://127.0.0.1"}},
		{"GET", "302", "http://169.254.169.254/latest/meta-data/", host.Denied, []string{"http:GET:http://169.254.169.254"}},
		{"GET", "302", "http://inner.test/", host.Denied, []string{"10.0.0.1 (private)"}},
		// The method is checked at each hop.
		{"GET", "302", post.URL, host.Denied, []string{"http:GET:" + post.URL, "granted there: POST"}},
		{"POST", "302", post.URL, host.Denied, []string{"http:GET:" + post.URL}},
		{"POST", "307", post.URL, host.OK, []string{"/"}},
		{"POST", "303", s.URL + "/x", host.OK, []string{"/x"}},

		{"GET", "302", "http://0x7f.1/", host.InvalidURL, []string{s.URL + " redirected", "odd spelling"}},
		{"GET", "302", "http://127.0.0.1.:80/", host.InvalidURL, nil},
		{"GET", "302", "http://hunter2:hunter2@127.0.0.1:" + portOf(s), host.InvalidURL, []string{"user name"}},
		{"GET", "302", "http://[::ffff:127.0.0.1]/", host.InvalidURL, nil},
		{"GET", "302", "http://%31%32%37.0.0.1/hunter2", host.InvalidURL, nil},
		{"GET", "302", "http://bücher.test/", host.InvalidURL, nil},
		{"GET", "302", "http://127.0.0.1:" + portOf(s) + "/%zz", host.InvalidURL, nil},
		{"GET", "302", "http:\\\\127.0.0.2" + otherPort, host.InvalidURL, nil},
		{"GET", "302", "http:///x", host.InvalidURL, nil},
		{"GET", "302", "https:x", host.InvalidURL, nil},
		{"GET", "302", "file:///etc/passwd", host.InvalidURL, []string{"begin with http"}},
		{"GET", "302", "javascript:hunter2()", host.InvalidURL, []string{"begin with http"}},
		{"GET", "302", "data:text/plain,x", host.InvalidURL, nil},
		{"GET", "302", "LONG", host.InvalidURL, []string{s.URL + " redirected", "at most 8192"}},
	} {
		answer, err := w.send(outbound.Request{Method: tt.method, URL: redirectTo(s.URL, tt.status, tt.to)}, grants...)
		if tt.code == host.OK {
			if a := receivedOf(t, answer, err); !strings.HasPrefix(a.URL, tt.words[0]) {
				t.Errorf("%s: requested %s", tt.to, a.URL)
			}
			continue
		}
		wantError(t, err, tt.code, tt.words...)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", tt.to, err)
		}
	}
}

// A response that is not a redirect is returned as it is.
func TestStatusesThatAreNotFollowed(t *testing.T) {
	s := serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/without" {
			w.WriteHeader(302)
			return
		}
		redirectHandler(w, r)
	})
	w := newTestClient(t, Config{})
	for url, want := range map[string]int{
		redirectTo(s.URL, "300", "/x"): 300, redirectTo(s.URL, "201", "/x"): 201, s.URL + "/without": 302,
	} {
		answer, err := w.send(outbound.Request{URL: url}, "GET "+s.URL)
		if err != nil || answer.Status != want {
			t.Errorf("%s: %+v, %v", url, answer, err)
		}
	}
}

func TestTooManyRedirects(t *testing.T) {
	hops := 0
	s := serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		hops++
		if r.URL.Path == "/"+strings.Repeat("x", maxRedirects) {
			return
		}
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	})
	w := newTestClient(t, Config{})
	if _, err := w.send(outbound.Request{URL: s.URL}, "GET "+s.URL); err != nil || hops != 1+maxRedirects {
		t.Errorf("%d hops, %v", hops, err)
	}
	hops = 0
	_, err := w.send(outbound.Request{URL: s.URL + "/y"}, "GET "+s.URL)
	wantError(t, err, host.LimitExceeded, s.URL+" redirected more than 10 times")
	if hops != 1+maxRedirects {
		t.Errorf("%d hops", hops)
	}
}

// Headers for one origin are not sent to another, nor to the first again after another.
func TestHeadersAcrossRedirects(t *testing.T) {
	first, second := serve(t, "127.0.0.1", redirectHandler), serve(t, "127.0.0.2", redirectHandler)
	w := newTestClient(t, Config{})
	all := [][2]string{
		{"authorization", "Bearer hunter2"}, {"Cookie", "a=hunter2"}, {"X-Api-Key", "hunter2"}, {"Referer",
			"http://hunter2/"}, {"If-None-Match", "x"},
		{"Accept", "text/html"}, {"Accept-Language", "de"}, {"User-Agent", "guest"}, {"Content-Type", "text/plain"},
	}
	harmless := []string{"Accept", "Accept-Language", "Content-Type", "User-Agent"}
	back := redirectTo(second.URL, "302", first.URL+"/back")
	for _, tt := range []struct {
		name, url string
		want      []string
	}{
		{"same origin", redirectTo(first.URL, "307", "/x"), []string{
			"Accept", "Accept-Language", "Authorization", "Content-Type", "Cookie", "If-None-Match", "Referer", "User-Agent",
			"X-Api-Key"}},
		{"other host", redirectTo(first.URL, "307", second.URL), harmless},
		{"other port", redirectTo(first.URL, "307", "http://127.0.0.1:"+portOf(serve(t, "127.0.0.1", echo))), harmless},
		{"another host and back", redirectTo(first.URL, "307", back), harmless},
	} {
		var grants []string
		for _, u := range []string{tt.url, mustQuery(t, tt.url, "307"), first.URL, second.URL} {
			if o, err := origin.Of(u); err == nil {
				grants = append(grants, "GET "+o.String())
			}
		}
		answer, err := w.send(outbound.Request{URL: tt.url, Headers: all}, grants...)
		a := receivedOf(t, answer, err)
		a.Header.Del("Accept-Encoding")
		a.Header.Del("Connection")
		var got []string
		for name := range a.Header {
			got = append(got, name)
		}
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func mustQuery(t *testing.T, rawURL, key string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get(key)
}

// https and http are different origins, even of the same host.
func TestSchemeChanges(t *testing.T) {
	plain := serve(t, "127.0.0.1", echo)
	secure := serveTLS(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL, http.StatusTemporaryRedirect)
	})
	w := newTestClient(t, Config{RootCAs: rootsOf(secure)})
	request := outbound.Request{URL: secure.URL, Headers: [][2]string{{"Authorization", "hunter2"}}}
	_, err := w.send(request, "GET "+secure.URL)
	wantError(t, err, host.Denied, "http:GET:"+plain.URL, secure.URL+" redirected there")
	answer, err := w.send(request, "GET "+secure.URL, "GET "+plain.URL)
	if a := receivedOf(t, answer, err); a.Header.Get("Authorization") != "" {
		t.Errorf("got %v", a.Header)
	}
}

// A redirect is followed exactly or fails, and errors contain no path or query.
func FuzzRedirect(f *testing.F) {
	for _, s := range []string{"/x", "//b.test", "http://b.test:80/x", "\\\\b.test", "http://b@c", "?", "#", "http:x",
		"https://[::1]:1/", "%", "/\x00", "http://a.test:80"} {
		f.Add(302, s)
	}
	f.Fuzz(func(t *testing.T, status int, location string) {
		tr := &exchange{method: "POST", body: []byte("x"), header: http.Header{"Cookie": {"a"}, "Accept": {"b"}}}
		if err := tr.setURL("https://a.test/path?query"); err != nil {
			t.Fatal(err)
		}
		before := tr.target
		if err := tr.follow(status, location); err != nil {
			if tr.target != before || host.AsError(err).Code != host.InvalidURL {
				t.Fatalf("%q: %v, now at %s", location, err, tr.target)
			}
			return
		}
		again, err := origin.Of(tr.url.String())
		if err != nil || again != tr.target || tr.url.User != nil {
			t.Fatalf("%q: the grants were checked for %s, but %s is requested: %v", location, tr.target, tr.url, err)
		}
		if tr.header.Get("Cookie") != "" && tr.target != before {
			t.Fatalf("%q: the cookie goes to %s", location, tr.target)
		}
	})
}
