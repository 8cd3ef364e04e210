package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/api"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/internal/foreign"
	"github.com/parley-tools/parley/manifest"
)

// tool calls a tool with a binding, which sends its requests to a server without any check.
type tool struct {
	base    string
	headers map[string]string
	binding string // JSON
	schema  string // of the parameters; "" for any
	returns string
	files   map[string]string // content by the text of a handed file
}

func (c tool) run(t *testing.T, params string) (*job.Result, *host.Error) {
	t.Helper()
	def := &manifest.Tool{Name: "do", Params: json.RawMessage(c.schema), Returns: json.RawMessage(c.returns)}
	if err := json.Unmarshal([]byte(c.binding), &def.HTTP); err != nil {
		t.Fatal(err)
	}
	r := &host.Request{Job: job.Job{Tool: "do", Params: json.RawMessage(params)}, Def: def}
	r.Ask = (&call.Functions{HTTP: send, CopySharedFile: func(text, folder string) (string, error) {
		path := filepath.Join(folder, filepath.Base(text))
		return path, os.WriteFile(path, []byte(c.files[text]), 0o600)
	}}).Ask
	m := &manifest.Manifest{Name: "api", HTTP: &manifest.HTTP{Base: c.base, Headers: c.headers}}
	result, err := api.Run(t.Context(), m, r)
	if err != nil {
		return nil, host.AsError(err)
	}
	return result, nil
}

// send follows no redirect, as the egress of a host does not where no grant covers it.
func send(ctx context.Context, q *outbound.Request) (*outbound.Response, error) {
	request, err := http.NewRequestWithContext(ctx, q.Method, q.URL, bytes.NewReader(q.Body))
	if err != nil {
		return nil, err
	}
	for _, h := range q.Headers {
		request.Header.Add(h[0], h[1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer := &outbound.Response{Status: response.StatusCode}
	for name, values := range response.Header {
		for _, v := range values {
			answer.Headers = append(answer.Headers, [2]string{strings.ToLower(name), v})
		}
	}
	answer.Body, err = io.ReadAll(response.Body)
	return answer, err
}

// seen is what a server gets: all that a client decides.
type seen struct{ Method, Path, Query, Type, Header, Cookie, Body string }

// recorder is a server that keeps the requests that it gets, by the first segment of their paths.
type recorder struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string]seen
}

var boundary = regexp.MustCompile(`boundary=\S+`)

func newRecorder(t *testing.T) *recorder {
	s := &recorder{got: map[string]seen{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		key, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
		media, text := r.Header.Get("Content-Type"), string(body)
		if mark := boundary.FindString(media); mark != "" {
			text = strings.ReplaceAll(text, strings.TrimPrefix(mark, "boundary="), "BOUNDARY")
			media = boundary.ReplaceAllString(media, "boundary=BOUNDARY")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got[key] = seen{r.Method, rest, r.URL.RawQuery, media, r.Header.Get("X-Given"), r.Header.Get("Cookie"), text}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestRequestsAsFetch sends requests in all styles, and compares them byte for byte with those of fetch in Node.
func TestRequestsAsFetch(t *testing.T) {
	_, node := foreign.NodeForTest(t, "../..")
	const text = "a b&c=d/é~*'()!%+#;,?@[]\"\\😀"
	const handed = job.SharedFilePrefix + "x/5/plan.txt"
	encoded := string(must(manifest.Marshal(text)))
	type row struct{ name, binding, schema, params, js string }
	rows := []row{
		{"get", `{"method":"GET","path":"/a"}`, "", `{}`, `["/a"]`},
		{"segment", `{"method":"GET","path":"/a/{id}/b"}`, "", `{"id":` + encoded + `}`, "[`/a/${enc(text)}/b`]"},
		{"segment number", `{"method":"GET","path":"/a/{id}"}`, "", `{"id":12345678901234567890}`, `["/a/12345678901234567890"]`},
		{"segment list", `{"method":"GET","path":"/a/{ids}"}`, "", `{"ids":["x y",2]}`, `["/a/x%20y,2"]`},
		{"in the path's query", `{"method":"GET","path":"/a?b={c}","query":["d"]}`, "", `{"c":"x/y&z","d":1}`, `["/a?b=x%2Fy%26z&d=1"]`},
		{"segments of lists", `{"method":"GET","path":"/a/{l}/{l*}/{.l}/{.l*}/{;l}/{;l*}","as":{"l":"w"}}`, "", `{"l":["x;","y"]}`,
			`["/a/x%3B,y/x%3B,y/.x%3B,y/.x%3B.y/;w=x%3B,y/;w=x%3B;w=y"]`},
		{"segments of objects", `{"method":"GET","path":"/a/{o}/{o*}/{.o}/{.o*}/{;o}/{;o*}"}`, "", `{"o":{"R":1,"G":"a/b"}}`,
			`["/a/R,1,G,a%2Fb/R=1,G=a%2Fb/.R,1,G,a%2Fb/.R=1.G=a%2Fb/;o=R,1,G,a%2Fb/;R=1;G=a%2Fb"]`},
		{"segments of texts", `{"method":"GET","path":"/a/{.t}/{;t}/{;t*}"}`, "", `{"t":"x y"}`, `["/a/.x%20y/;t=x%20y/;t=x%20y"]`},
		{"segment with as", `{"method":"GET","path":"/a/{user-id}","as":{"user-id":"userId"}}`, "", `{"user-id":7}`, `["/a/7"]`},
		{"two segments", `{"method":"DELETE","path":"/a/{x}/{y}"}`, "", `{"x":"1","y":"b"}`, `["/a/1/b", {method: "DELETE"}]`},
		{"segment twice", `{"method":"GET","path":"/a/{id}/b/{id}"}`, "", `{"id":"x y"}`, `["/a/x%20y/b/x%20y"]`},
		{"query", `{"method":"GET","path":"/a","query":["q"]}`, "", `{"q":` + encoded + `}`, "[`/a?q=${enc(text)}`]"},
		{"query in order", `{"method":"GET","path":"/a","query":["b","a"]}`, "", `{"a":1,"b":true}`, `["/a?b=true&a=1"]`},
		{"query exact number", `{"method":"GET","path":"/a","query":["n"]}`, "", `{"n":1e21}`, `["/a?n=1e21"]`},
		{"query null", `{"method":"GET","path":"/a","query":["n"]}`, "", `{"n":null}`, `["/a?n="]`},
		{"query empty", `{"method":"GET","path":"/a","query":["n"]}`, "", `{"n":""}`, `["/a?n="]`},
		{"query empty list", `{"method":"GET","path":"/a","query":["n"]}`, "", `{"n":[]}`, `["/a"]`},
		{"query name", `{"method":"GET","path":"/a","query":["n"],"as":{"n":"filter[x y]"}}`, "", `{"n":1}`, "[`/a?${enc('filter[x y]')}=1`]"},
		{"query beside the path's", `{"method":"GET","path":"/a?v=2","query":["n"]}`, "", `{"n":1}`, `["/a?v=2&n=1"]`},
		{"repeat", `{"method":"GET","path":"/a","query":["n"]}`, "", `{"n":[1,"x,y"]}`, `["/a?n=1&n=x%2Cy"]`},
		{"repeat object", `{"method":"GET","path":"/a","query":["n"]}`, "", `{"n":{"from":1,"to":2}}`, `["/a?from=1&to=2"]`},
		{"comma", `{"method":"GET","path":"/a","query":[{"name":"n","style":"comma"}]}`, "", `{"n":[1,"x,y"]}`, `["/a?n=1,x%2Cy"]`},
		{"comma object", `{"method":"GET","path":"/a","query":[{"name":"n","style":"comma"}]}`, "", `{"n":{"from":1,"to":2}}`,
			`["/a?n=from,1,to,2"]`},
		{"comma one", `{"method":"GET","path":"/a","query":[{"name":"n","style":"comma"}]}`, "", `{"n":"x"}`, `["/a?n=x"]`},
		{"space", `{"method":"GET","path":"/a","query":[{"name":"n","style":"space"}]}`, "", `{"n":[1,2]}`, `["/a?n=1%202"]`},
		{"pipe", `{"method":"GET","path":"/a","query":[{"name":"n","style":"pipe"}]}`, "", `{"n":[1,2]}`, `["/a?n=1%7C2"]`},
		{"deep", `{"method":"GET","path":"/a","query":[{"name":"n","style":"deep"}]}`, "", `{"n":{"gt":1,"lt":{"x":2}}}`,
			"[`/a?${enc('n[gt]')}=1&${enc('n[lt][x]')}=2`]"},
		{"deep list", `{"method":"GET","path":"/a","query":[{"name":"n","style":"deep"}]}`, "", `{"n":["a","b"]}`,
			"[`/a?${enc('n[]')}=a&${enc('n[]')}=b`]"},
		{"header", `{"method":"GET","path":"/a","header":["g"],"as":{"g":"X-Given"}}`, "", `{"g":"v 1"}`, `["/a", {headers: {"x-given": "v 1"}}]`},
		{"reserved", `{"method":"GET","path":"/a","query":[{"name":"q","reserved":true}]}`, "", `{"q":` + encoded + `}`,
			"[`/a?q=${text.replace(/[^\\w.~:/?@!$()*,;=-]/gu, encodeURIComponent).replaceAll(\"'\", '%27')}`]"},
		{"header object", `{"method":"GET","path":"/a","header":["g"],"as":{"g":"X-Given"}}`, "", `{"g":{"R":1,"G":2}}`,
			`["/a", {headers: {"x-given": "R,1,G,2"}}]`},
		{"header object, exploded", `{"method":"GET","path":"/a","header":[{"name":"g","style":"repeat"}],"as":{"g":"X-Given"}}`, "",
			`{"g":{"R":1,"G":2}}`, `["/a", {headers: {"x-given": "R=1,G=2"}}]`},
		{"cookies", `{"method":"GET","path":"/a","cookie":["s",{"name":"l","style":"comma"},"o"],"as":{"s":"session id"}}`, "",
			`{"s":"a b;","l":[1,2],"o":{"R":1,"G":[2,3]}}`,
			`["/a", {headers: {cookie: "session%20id=a%20b%3B; l=1,2; R=1; G=2; G=3"}}]`},
		{"header list", `{"method":"GET","path":"/a","header":["g"],"as":{"g":"X-Given"}}`, "", `{"g":["a","b"]}`,
			`["/a", {headers: {"x-given": "a,b"}}]`},
		{"json", `{"method":"POST","path":"/a","body":"json"}`, "", `{"t":` + encoded + `,"n":[1,{"x":null}]}`,
			`["/a", {method: "POST", headers: json, body: JSON.stringify({t: text, n: [1, {x: null}]})}]`},
		{"json exact", `{"method":"POST","path":"/a","body":"json"}`, "", `{"b":1.0,"a":12345678901234567890}`,
			`["/a", {method: "POST", headers: json, body: '{"b":1.0,"a":12345678901234567890}'}]`},
		{"json empty", `{"method":"POST","path":"/a","body":"json"}`, "", `{}`, `["/a", {method: "POST", headers: json, body: "{}"}]`},
		{"json whole list", `{"method":"PUT","path":"/a","body":"json","whole":"items"}`, "", `{"items":[1,2]}`,
			`["/a", {method: "PUT", headers: json, body: "[1,2]"}]`},
		{"json without its whole", `{"method":"POST","path":"/a","body":"json","whole":"items"}`, "", `{}`, `["/a", {method: "POST"}]`},
		{"json beside all", `{"method":"PATCH","path":"/a/{id}","query":["q"],"header":["g"],"body":"json","as":{"g":"X-Given","n":"the_n"}}`, "",
			`{"id":1,"q":2,"g":"h","n":3}`, `["/a/1?q=2", {method: "PATCH", headers: {...json, "x-given": "h"}, body: '{"the_n":3}'}]`},
		{"delete with a body", `{"method":"DELETE","path":"/a","body":"json"}`, "", `{"n":1}`,
			`["/a", {method: "DELETE", headers: json, body: '{"n":1}'}]`},
		{"delete without", `{"method":"DELETE","path":"/a","body":"json"}`, "", `{}`, `["/a", {method: "DELETE"}]`},
		{"form", `{"method":"POST","path":"/a","body":"form"}`, "", `{"t":` + encoded + `,"n":1}`,
			`["/a", {method: "POST", headers: form, body: new URLSearchParams({t: text, n: 1}).toString()}]`},
		{"form of objects", `{"method":"POST","path":"/a","body":"form"}`, "", `{"m":{"k":"v w"},"l":[1,2],"o":[{"p":1},{"p":2}]}`,
			`["/a", {method: "POST", headers: form, body: new URLSearchParams([["m[k]", "v w"], ["l", 1], ["l", 2], ` +
				`["o[0][p]", 1], ["o[1][p]", 2]]).toString()}]`},
		{"form in brackets", `{"method":"POST","path":"/a","body":"form","as":{"l":"l[]","o":"o[]","n":"n[]"}}`, "",
			`{"l":[1,2],"o":[{"p":[3]}],"n":""}`, `["/a", {method: "POST", headers: form, body: new URLSearchParams([["l[]", 1], ` +
				`["l[]", 2], ["o[0][p][]", 3], ["n", ""]]).toString()}]`},
		{"form as JSON", `{"method":"POST","path":"/a","body":"form"}`,
			`{"properties":{"j":{"type":"object","contentMediaType":"application/json"}}}`, `{"j":{"a":[1,"x"]},"k":2}`,
			`["/a", {method: "POST", headers: form, body: new URLSearchParams({j: '{"a":[1,"x"]}', k: 2}).toString()}]`},
		{"form whole", `{"method":"POST","path":"/a","body":"form","whole":"f"}`, "", `{"f":{"x":true,"y":""}}`,
			`["/a", {method: "POST", headers: form, body: "x=true&y="}]`},
		{"multipart", `{"method":"POST","path":"/a","body":"multipart"}`, "", `{"t":` + encoded + `,"n":1.50}`,
			`["/a", {method: "POST", body: parts(["t", text], ["n", "1.50"])}]`},
		{"multipart lines", `{"method":"POST","path":"/a","body":"multipart"}`, "", `{"t":"a\nb\r\nc"}`,
			`["/a", {method: "POST", body: parts(["t", "a\nb\r\nc"])}]`},
		{"multipart name", `{"method":"POST","path":"/a","body":"multipart","as":{"t":"a \"b\"\n"}}`, "", `{"t":"x"}`,
			"[`/a`, {method: `POST`, body: parts([`a \"b\"\\n`, `x`])}]"},
		{"multipart list", `{"method":"POST","path":"/a","body":"multipart"}`, "", `{"l":["a","b"]}`,
			`["/a", {method: "POST", body: parts(["l", "a"], ["l", "b"])}]`},
		{"multipart in brackets", `{"method":"POST","path":"/a","body":"multipart","as":{"o":"o[]","l":"l[]","t":"t[]"}}`, "",
			`{"o":{"a":1,"b":{"c":["x","y"]}},"l":[1,2]}`, `["/a", {method: "POST", body: parts(["o[a]", "1"], ["o[b][c][]", "x"], ` +
				`["o[b][c][]", "y"], ["l[]", "1"], ["l[]", "2"])}]`},
		{"multipart bytes", `{"method":"POST","path":"/a","body":"multipart"}`,
			`{"properties":{"f":{"type":"string","contentEncoding":"base64","contentMediaType":"image/png"}}}`, `{"f":"AP+A"}`,
			`["/a", {method: "POST", body: parts(["f", new Blob([new Uint8Array([0, 255, 128])], {type: "image/png"}), "f"])}]`},
		{"multipart file", `{"method":"POST","path":"/a","body":"multipart"}`, `{"properties":{"f":{"type":"string","x-handed":true}}}`,
			`{"f":"` + handed + `"}`,
			`["/a", {method: "POST", body: parts(["f", new Blob(["hello"], {type: "text/plain; charset=utf-8"}), "plan.txt"])}]`},
		{"multipart as JSON", `{"method":"POST","path":"/a","body":"multipart"}`,
			`{"properties":{"l":{"type":"array","contentMediaType":"application/json","items":{"type":"integer"}}}}`, `{"l":[1,2]}`,
			`["/a", {method: "POST", headers: {"content-type": "multipart/form-data; boundary=BOUNDARY"}, body: ["--BOUNDARY",
				'Content-Disposition: form-data; name="l"', "Content-Type: application/json", "", "[1,2]", "--BOUNDARY--",
				""].join("\r\n")}]`},
		{"raw", `{"method":"PUT","path":"/a","body":"raw:text/csv","whole":"t"}`, "", `{"t":"a;b\n"}`,
			`["/a", {method: "PUT", headers: {"content-type": "text/csv"}, body: "a;b\n"}]`},
		{"raw bytes", `{"method":"PUT","path":"/a","body":"raw:image/png","whole":"t"}`,
			`{"properties":{"t":{"type":"string","contentEncoding":"base64"}}}`, `{"t":"AP+A"}`,
			`["/a", {method: "PUT", headers: {"content-type": "image/png"}, body: new Uint8Array([0, 255, 128])}]`},
		{"raw file", `{"method":"PUT","path":"/a","body":"raw:text/plain","whole":"f"}`, `{"properties":{"f":{"type":"string","x-handed":true}}}`,
			`{"f":"` + handed + `"}`, `["/a", {method: "PUT", headers: {"content-type": "text/plain"}, body: "hello"}]`},
	}
	ours, theirs := newRecorder(t), newRecorder(t)
	script := &strings.Builder{}
	fmt.Fprintf(script, `const text = %s, base = %q, json = {"content-type": "application/json"};
const form = {"content-type": "application/x-www-form-urlencoded"};
const enc = (s) => encodeURIComponent(s).replace(/[!'()*]/g, (c) => "%%" + c.charCodeAt(0).toString(16).toUpperCase());
const parts = (...all) => { const f = new FormData(); for (const part of all) f.append(...part); return f };
`, encoded, theirs.URL)
	for i, row := range rows {
		fmt.Fprintf(script, "{ const [path, init] = %s; await fetch(`${base}/%d${path}`, init) }\n", row.js, i)
	}
	file := filepath.Join(t.TempDir(), "fetch.mjs")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(node, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i, row := range rows {
		key := fmt.Sprint(i)
		c := tool{base: ours.URL + "/" + key, binding: row.binding, schema: row.schema,
			files: map[string]string{handed: "hello"}}
		if _, err := c.run(t, row.params); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if got, want := ours.got[key], theirs.got[key]; got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", row.name, got, want)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func toolDetails(e *host.ToolError) json.RawMessage {
	if e == nil {
		return nil
	}
	return e.Details
}
