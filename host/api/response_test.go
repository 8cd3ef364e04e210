package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/api"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/manifest"
)

// TestResponses checks what becomes of responses, also of those that do not keep what they say.
func TestResponses(t *testing.T) {
	var answer func(http.ResponseWriter, *http.Request)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer server.Close()
	const get, head = `{"method":"GET","path":"/"}`, `{"method":"HEAD","path":"/"}`
	notJSON := []string{"says application/json, but is not JSON"}
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for _, test := range []struct {
		name, binding string
		status        int
		header        string // NAME: VALUE
		body          string
		data          string // or content type and MIME type
		exit          int
		says          []string
	}{
		{"JSON", get, 200, "Content-Type: application/json", `{"n":12345678901234567890}`, `{"n":12345678901234567890}`, 0, nil},
		{"a problem type", get, 201, "Content-Type: application/vnd.x+json; charset=utf-8", `[1]`, `[1]`, 0, nil},
		{"JSON with a mark", get, 200, "Content-Type: application/json", "\ufeff{}", `{}`, 0, nil},
		{"JSON without a type", get, 200, "Content-Type: ", `{"a":1}`, `{"a":1}`, 0, nil},
		{"blank JSON", get, 200, "Content-Type: application/json", " \n", `null`, 0, nil},
		{"text", get, 200, "Content-Type: text/plain", "a\nb", `"a\nb"`, 0, nil},
		{"a page", get, 200, "Content-Type: text/html", "<p>x", `"<p>x"`, 0, nil},
		{"latin1", get, 200, "Content-Type: text/plain; charset=iso-8859-1", "caf\xe9", `"café"`, 0, nil},
		{"bytes", get, 200, "Content-Type: image/png", "\x00\xff", `image image/png`, 0, nil},
		{"other bytes", get, 200, "Content-Type: application/zip", "PK\xff", `resource application/zip`, 0, nil},
		{"text that is not", get, 200, "Content-Type: text/plain", "\xff\xfe\x00", `resource text/plain`, 0, nil},
		{"nothing", get, 200, "", "", `null`, 0, nil},
		{"204", get, 204, "", "", `null`, 0, nil},
		{"the head", head, 200, "Content-Type: application/json", "", `null`, 0, nil},
		{"HTML for JSON", get, 200, "Content-Type: application/json", "<b>Down</b>", `"<b>Down</b>"`, 0, notJSON},
		{"cut JSON", get, 200, "Content-Type: application/json", `{"a":`, `"{\"a\":"`, 0, notJSON},
		{"a key twice", get, 200, "Content-Type: application/json", `{"a":1,"a":2}`, `"{\"a\":1,\"a\":2}"`, 0, notJSON},
		{"a word", get, 200, "Content-Type: application/json", `OK`, `"OK"`, 0, notJSON},
		{"another place", get, 302, "Location: http://other.test/", "", "", 1, []string{"302", "not followed"}},
		{"not modified", get, 304, "", "", "", 1, []string{"304 Not Modified"}},
		{"401", get, 401, "", "", "", 10, []string{"401 Unauthorized"}},
		{"403", get, 403, "Content-Type: application/json", `{"message":"No access"}`, "", 11, []string{`"No access"`}},
		{"404", get, 404, "Content-Type: application/json", `{"error":{"message":"No note"}}`, "", 12, []string{"No note"}},
		{"410", get, 410, "", "", "", 12, nil},
		{"409", get, 409, "", "", "", 13, nil},
		{"412", get, 412, "", "", "", 13, nil},
		{"423", get, 423, "", "", "", 13, nil},
		{"422", get, 422, "Content-Type: application/problem+json", `{"title":"T","detail":"D"}`, "", 14, []string{`"D"`}},
		{"errors", get, 400, "Content-Type: application/json", `{"errors":[{"message":"M"}]}`, "", 14, []string{`"M"`}},
		{"429", get, 429, "Retry-After: 7", "", "", 15, []string{"retry after 7 s"}},
		{"429 with a date", get, 429, "Retry-After: " + date, "", "", 15, []string{"retry after 3"}},
		{"429 with nonsense", get, 429, "Retry-After: soon", "", "", 15, []string{"429"}},
		{"500", get, 500, "Content-Type: text/html", "<style>x{}</style><h1>Oops</h1>", "", 16, []string{`"Oops"`}},
		{"503", get, 503, "", "", "", 16, nil},
		{"a text to fool", get, 500, "Content-Type: text/plain", "a\nError: b\x1b[2J", "", 16, []string{`"a Error: b`}},
	} {
		answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Set-Cookie", "session=sess-cookie")
			if name, value, ok := strings.Cut(test.header, ": "); ok {
				w.Header()[name] = []string{value}
			} else if strings.HasPrefix(test.header, "Content-Type") {
				w.Header()["Content-Type"] = nil
			}
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.body))
		}
		result, err := tool{base: server.URL, binding: test.binding}.run(t, "{}")
		exit, got := 0, ""
		switch {
		case err != nil:
			exit, got = err.ExitCode(), err.Error()+string(toolDetails(err.Tool))
		case len(result.Content) > 0:
			got = fmt.Sprint(result.Content[0].Type, " ", result.Content[0].MIME)
		default:
			got = string(result.Data)
		}
		if exit != test.exit || exit == 0 && got != test.data {
			t.Errorf("%s: exit %d, %s", test.name, exit, got)
		}
		if err == nil {
			got += strings.Join(result.Warnings, "; ")
		}
		for _, part := range test.says {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %s, want %s", test.name, got, part)
			}
		}
		if strings.Contains(got, "sess-cookie") || strings.ContainsAny(got, "\x1b\n") {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// TestNextPages checks that the next page is the next step, if the tool can request it.
func TestNextPages(t *testing.T) {
	var link, body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if link != "" {
			w.Header().Set("Link", strings.ReplaceAll(link, "HOST", "http://"+r.Host))
		}
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	c := tool{base: server.URL, binding: `{"method":"GET","path":"/items/{id}","query":["page","cursor","starting_after","q"]}`,
		schema: `{"properties":{"id":{"type":"string"},"q":{"type":"string"},"page":{"type":"integer"},` +
			`"cursor":{"type":"string"},"starting_after":{"type":"string"}}}`}
	for _, test := range []struct{ link, body, want string }{
		{`<HOST/items/a?q=x&page=2>; rel="next", <HOST/items/a?page=9>; rel="last"`, `[]`, `{"id":"a","q":"x","page":2}`},
		{`</items/a?q=x&page=2>; rel=next`, `[]`, `{"id":"a","q":"x","page":2}`},
		{`<?q=x&page=2>; title="a, b"; rel="prev next"`, `[]`, `{"id":"a","q":"x","page":2}`},
		{`<HOST/items/a?q=x&page=2>; rel="last"`, `[]`, ``},
		{`<HOST/items/a?q=x&unknown=2>; rel="next"`, `[]`, ``},
		{`<HOST/items/a?q=x&page=two>; rel="next"`, `[]`, ``},
		{`<http://other.test/items/a?page=2>; rel="next"`, `[]`, ``},
		{`<HOST/items/a?q=y&page=2&unknown=1>; rel="next"`, `{"next_cursor":"c2"}`, `{"id":"a","q":"x","cursor":"c2"}`},
		{``, `{"next_cursor":"c2"}`, `{"id":"a","q":"x","cursor":"c2"}`},
		{``, `{"next_cursor":"c-[secret KEY]"}`, ``},
		{``, `{"response_metadata":{"next_cursor":"c2"}}`, `{"id":"a","q":"x","cursor":"c2"}`},
		{``, `{"response_metadata":{"next_cursor":""}}`, ``},
		{``, `{"next":"` + server.URL + `/items/a?q=x&page=3"}`, `{"id":"a","q":"x","page":3}`},
		{``, `{"has_more":true,"data":[{"id":"i1"},{"id":"i2"}]}`, `{"id":"a","q":"x","starting_after":"i2"}`},
		{``, `{"has_more":false,"data":[{"id":"i1"}]}`, ``},
		{``, `{"has_more":true,"data":[]}`, ``},
	} {
		link, body = test.link, test.body
		result, err := c.run(t, `{"id":"a","q":"x"}`)
		if err != nil {
			t.Errorf("%s%s: %v", test.link, test.body, err)
			continue
		}
		got := ""
		if len(result.Steps) == 1 {
			got = string(result.Steps[0].Params)
		}
		if got != test.want || got != "" && result.Steps[0].Tool != "api.do" {
			t.Errorf("%s%s: %s, want %s", test.link, test.body, got, test.want)
		}
	}
}

// TestNextOfDestructive checks that a server does not say what a destructive tool is called with next.
func TestNextOfDestructive(t *testing.T) {
	m := &manifest.Manifest{Name: "api", HTTP: &manifest.HTTP{Base: "https://a.test"}}
	for effect, steps := range map[string]int{
		manifest.EffectRead: 1, manifest.EffectWrite: 1, manifest.EffectDestructive: 0,
	} {
		def := &manifest.Tool{Name: "do", Effect: effect, Params: []byte(`{"properties":{"cursor":{"type":"string"}}}`),
			HTTP: &manifest.Binding{Method: "DELETE", Path: "/a", Query: []manifest.Placed{{Name: "cursor"}}}}
		r := &host.Request{Job: job.Job{Tool: "do"}, Def: def}
		r.Ask = (&call.Functions{HTTP: func(context.Context, *outbound.Request) (*outbound.Response, error) {
			return &outbound.Response{Status: 200, Body: []byte(`{"next_cursor":"c2"}`)}, nil
		}}).Ask
		result, err := api.Run(t.Context(), m, r)
		if err != nil || len(result.Steps) != steps {
			t.Errorf("%s: %+v, %v", effect, result, err)
		}
	}
}

// escapes are values that try to leave the path or the host of a tool.
var escapes = []string{"", ".", "..", "../..", "a/../../b", "..\\x", "%2e%2e", "%2E%2e/x", "%252e%252e", "..;x",
	"//evil.test/", "@evil.test",
	"\\\\evil.test", "a\x00b", "a\r\nHost: evil.test", "a?x=1", "a#x", "\u2025", "．．", " ", "/", "http://evil.test"}

// TestPathsStay checks that no parameter changes the host, the path around its segment, or the headers.
func TestPathsStay(t *testing.T) {
	s := newRecorder(t)
	for _, value := range escapes {
		checkStays(t, s, value)
	}
	for _, value := range []string{"%zz/%2e%2e", "%zz%5C.%2e%3bx", "..%00", "%2e.%3Fx", "a%2525zz%2F..%2523"} {
		if _, err := (tool{base: s.URL, binding: `{"method":"GET","path":"/a/{id}"}`}).run(t,
			string(must(manifest.Marshal(map[string]string{"id": value})))); err == nil {
			t.Errorf("%q was sent, from which a server that decodes it twice gets another path", value)
		}
	}
}

// TestRefusedRequest checks that the error of a request which the host refuses to send leads to the parameters.
func TestRefusedRequest(t *testing.T) {
	m := &manifest.Manifest{Name: "api", HTTP: &manifest.HTTP{Base: "https://a.test"}}
	def := &manifest.Tool{Name: "do", HTTP: &manifest.Binding{Method: "GET", Path: "/"}}
	r := &host.Request{Job: job.Job{Tool: "do"}, Def: def}
	r.Ask = (&call.Functions{HTTP: func(context.Context, *outbound.Request) (*outbound.Response, error) {
		return nil, host.Errorf(host.InvalidArgs, "a header contains a line break")
	}}).Ask
	_, err := api.Run(t.Context(), m, r)
	if e := host.AsError(err); e.Code != host.InvalidArgs || len(e.Steps) != 1 || e.Subject != "GET https://a.test" {
		t.Errorf("%+v", e)
	}
}

func FuzzPath(f *testing.F) {
	for _, value := range escapes {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) { checkStays(t, newRecorder(t), value) })
}

func checkStays(t *testing.T, s *recorder, value string) {
	t.Helper()
	clear(s.got)
	c := tool{base: s.URL + "/base", binding: `{"method":"POST","path":"/a/{id}/b","query":["q"],"body":"form"}`}
	_, err := c.run(t, fmt.Sprintf(`{"id":%s,"q":%[1]s}`, must(manifest.Marshal(value))))
	if err != nil {
		if len(s.got) > 0 || err.ExitCode() != 81 && err.ExitCode() != 2 {
			t.Errorf("%q: %v, sent %v", value, err, s.got)
		}
		return
	}
	got := s.got["base"]
	segment, found := strings.CutPrefix(got.Path, "a/")
	segment, ends := strings.CutSuffix(segment, "/b")
	plain, wrong := url.PathUnescape(segment)
	if !found || !ends || strings.Contains(segment, "/") || wrong != nil || strings.Count(got.Query, "&") > 0 ||
		len(s.got) != 1 || plain == "" || plain == "." || plain == ".." {
		t.Errorf("%q: %+v", value, s.got)
	}
}
