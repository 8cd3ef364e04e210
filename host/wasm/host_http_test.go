package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
)

func TestHTTPRequest(t *testing.T) {
	for input, want := range map[string]string{
		`{"url":"https://a.test/"}`:                                               `GET https://a.test/ [] ""`,
		`{"method":"post","url":"https://a.test","body":"text"}`:                  `POST https://a.test [] "text"`,
		`{"method":"PUT","url":"u","body_base64":"/wA="}`:                         `PUT u [] "\xff\x00"`,
		`{"url":"u","headers":[["a","b"],["a","c"],["D",""]]}`:                    `GET u [[a b] [a c] [D ]] ""`,
		`{"method":null,"url":"u","headers":null,"body":null,"body_base64":null}`: `GET u [] ""`,
		`{"url":"u","headers":[],"body":""}`:                                      `GET u [] ""`,

		``:                                       "invalid JSON",
		`null`:                                   "expected an object",
		`[]`:                                     "expected an object",
		`{}`:                                     "url is missing",
		`{"url":""}`:                             "url is missing",
		`{"url":null}`:                           "url is missing",
		`{"url":1}`:                              `field "url": expected a string`,
		`{"url":"u","method":1}`:                 `field "method": expected a string`,
		`{"url":"u","body":{}}`:                  `field "body": expected a string`,
		`{"url":"u","body_base64":1}`:            `field "body_base64": expected a string`,
		`{"url":"u","body_base64":"/w"}`:         "padded base64 of the standard alphabet",
		`{"url":"u","body_base64":"_w=="}`:       "padded base64 of the standard alphabet",
		`{"url":"u","body":"","body_base64":""}`: "exclude each other",
		`{"url":"u","headers":{}}`:               `field "headers": expected an array`,
		`{"url":"u","headers":["a"]}`:            "item 0 is not a pair",
		`{"url":"u","headers":[["a","b"],["a"]]}`: "item 1 is not a pair",
		`{"url":"u","headers":[["a","b","c"]]}`:   "item 0 is not a pair",
		`{"url":"u","headers":[["a",1]]}`:         "item 0 is not a pair of strings",
		`{"url":"u","headers":[[["a"],"b"]]}`:     "item 0 is not a pair of strings",
		`{"url":"u","headers":[[[["a"]],"b"]]}`:   "invalid JSON",
		`{"url":"u","timeout":"1s"}`:              `field "timeout": unknown field; known fields are method, url, headers, body and body_base64`,
		`{"URL":"u"}`:                             `field "URL": unknown field`,
		`{"url":"u","\u001b[31m\nx":1}`:           `field "x": unknown field`,
		`{"url":"u","url":"v"}`:                   "invalid JSON",
		`{"url":"u"} {}`:                          "invalid JSON",
		"{\"url\":\"\xff\"}":                      "invalid JSON",
	} {
		request, err := decodeHTTPRequest([]byte(input))
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", input, err, want)
			}
			continue
		}
		if got := fmt.Sprintf("%s %s %v %q", request.Method, request.URL, request.Headers, request.Body); got != want {
			t.Errorf("%s: %s, want %s", input, got, want)
		}
	}
	big := `{"url":"u","body":"` + strings.Repeat("x", maxHostRequest) + `"}`
	if _, err := decodeHTTPRequest([]byte(big)); err == nil {
		t.Error("a request of any size is accepted")
	}
}

// hostFunctionsFor returns the host functions of a call whose HTTP requests f serves.
func hostFunctionsFor(f func(*host.HTTPRequest) (*host.HTTPResponse, error)) *hostFunctions {
	r := &host.Request{}
	if f != nil {
		r.HTTP = func(_ context.Context, q *host.HTTPRequest) (*host.HTTPResponse, error) { return f(q) }
	}
	return &hostFunctions{r: r}
}

func TestHTTPResponse(t *testing.T) {
	for _, tt := range []struct {
		name     string
		response *host.HTTPResponse
		err      error
		want     string
		denied   string
	}{
		{"text", &host.HTTPResponse{Status: 200, Headers: [][2]string{{"set-cookie", "b=1"}, {"set-cookie", "a=2"}},
			Body: []byte("<ü>")}, nil,
			`{"ok":true,"result":{"status":200,"headers":[["set-cookie","b=1"],["set-cookie","a=2"]],"body":"<ü>"}}`, ""},
		{"bytes", &host.HTTPResponse{Status: 404, Body: []byte{0xff, 0}}, nil,
			`{"ok":true,"result":{"status":404,"headers":[],"body_base64":"/wA="}}`, ""},
		{"nothing", &host.HTTPResponse{Status: 204}, nil, `{"ok":true,"result":{"status":204,"headers":[],"body":""}}`, ""},
		{"a header that is not UTF-8", &host.HTTPResponse{Status: 200, Headers: [][2]string{{"x", "\xe9"}}}, nil,
			`{"ok":true,"result":{"status":200,"headers":[["x","\ufffd"]],"body":""}}`, ""},
		{"denied", nil, &host.Error{Code: host.Denied, Message: "m", Denied: []host.Denial{{Right: "http:GET:http://b.test",
			Why: "http://a.test redirected there"}}},
			`{"ok":false,"error":{"code":"denied","exit_code":82,"message":"not granted: http:GET:http://b.test",` +
				`"denied":[{"right":"http:GET:http://b.test","why":"http://a.test redirected there"}]}}`,
			"http:GET:http://b.test"},
		{"unavailable", nil, host.Errorf(host.Unavailable, "down"),
			`{"ok":false,"error":{"code":"unavailable","exit_code":105,"message":"down"}}`, ""},
		{"an error of another package", nil, io.EOF,
			`{"ok":false,"error":{"code":"internal","exit_code":110,"message":"EOF"}}`, ""},
	} {
		d := hostFunctionsFor(func(*host.HTTPRequest) (*host.HTTPResponse, error) { return tt.response, tt.err })
		if got := d.dispatch(context.Background(), "http_request", []byte(`{"url":"http://a.test/"}`)); !sameJSON(t, got,
			json.RawMessage(tt.want)) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		switch {
		case tt.denied == "" && len(d.denied) > 0, tt.denied != "" && (len(d.denied) != 1 || d.denied[0].Right != tt.denied):
			t.Errorf("%s: recorded %v", tt.name, d.denied)
		}
	}
}

// TestNetworkDenied checks that a host without network denies requests in the grammar of grants, that an invalid
// URL is reported as such, and that secrets in the URL are not repeated.
func TestNetworkDenied(t *testing.T) {
	d := hostFunctionsFor(nil)
	for input, want := range map[string]string{
		`{"url":"https://A.test:443/path?key"}`:           `"message":"not granted: http:GET:https://a.test"`,
		`{"method":"post","url":"http://127.0.0.1:8080"}`: `"message":"not granted: http:POST:http://127.0.0.1:8080"`,
		`{"url":"https://user:key@a.test/"}`:              `"code":"invalid_url"`,
		`{"url":"file:///key"}`:                           `"code":"invalid_url"`,
		`{"url":"http://a.test","x":1}`:                   `"code":"invalid_args"`,
	} {
		got := string(d.dispatch(context.Background(), "http_request", []byte(input)))
		if !strings.Contains(got, want) || strings.Contains(got, "key") {
			t.Errorf("%s: %s", input, got)
		}
	}
	if len(d.denied) != 2 {
		t.Errorf("recorded %v", d.denied)
	}
}

// TestGuestFetch runs a C guest that sends requests to a real server.
func TestGuestFetch(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Given")+".")
		w.Write(body)
	}))
	defer server.Close()
	definition := bytes.ReplaceAll(readFile(t, filepath.Join(guestDir, "fetch.manifest.json")),
		[]byte("http://127.0.0.1"), []byte(server.URL))
	p := testEngine(t).Provider(sourceOf(readFile(t, filepath.Join(guestDir, "fetch.wasm")), loadManifest(t, definition)))
	get := func(params string) (*host.Result, *host.Error) {
		r := requestFor(t, p, "get", params)
		r.HTTP = func(ctx context.Context, q *host.HTTPRequest) (*host.HTTPResponse, error) {
			if !strings.HasPrefix(q.URL, server.URL+"/") {
				return nil, &host.Error{Code: host.Denied, Denied: []host.Denial{{Right: "http:" + q.Method + ":elsewhere",
					Why: "no grant reaches it"}}}
			}
			request, err := http.NewRequestWithContext(ctx, q.Method, q.URL, bytes.NewReader(q.Body))
			if err != nil {
				return nil, err
			}
			for _, h := range q.Headers {
				request.Header.Add(h[0], h[1])
			}
			response, err := server.Client().Do(request)
			if err != nil {
				return nil, err
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			return &host.HTTPResponse{Status: response.StatusCode,
				Headers: [][2]string{{"x-seen", response.Header.Get("X-Seen")}}, Body: body}, err
		}
		return invokeRequest(t, p, r)
	}
	for params, want := range map[string]string{
		`{"url":"` + server.URL + `/a"}`: `{"status":200,"headers":[["x-seen","GET /a ."]],"body":""}`,
		`{"url":"` + server.URL + `/b","method":"POST","headers":[["x-given","y"]],"body":"\"}"}`: `{"status":200,"headers":[["x-seen","POST /b y."]],"body":"\"}"}`,
		`{"url":"` + server.URL + `/c","method":"PUT","body_base64":"/wA="}`:                      `{"status":200,"headers":[["x-seen","PUT /c ."]],"body_base64":"/wA="}`,
	} {
		if result, err := get(params); err != nil || !sameJSON(t, result.Data, json.RawMessage(want)) {
			t.Errorf("%s: %+v, %v", params, result, err)
		}
	}
	_, err := get(`{"url":"http://elsewhere.test/"}`)
	if err == nil || err.Code != "not_answered" || err.ExitCode() != 10 || len(err.Denied) != 1 ||
		err.Denied[0].Right != "http:GET:elsewhere" ||
		!strings.Contains(string(err.Tool.Details), "no grant reaches it") {
		t.Errorf("%+v", err)
	}
}

// FuzzHTTPRequest checks that an accepted request is the same after encoding and decoding.
func FuzzHTTPRequest(f *testing.F) {
	for _, s := range []string{
		`{"method":"get","url":"https://a.test/","headers":[["a","b"]],"body":"c"}`, `{"url":"u","body_base64":"/wA="}`,
		`{"url":"u","headers":[["a"]]}`,
		`{"url":"\ud83d\ude00","x":null}`, `{"url":"u","url":"v"}`, `[[[[`, `{"url":1e400}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		request, err := decodeHTTPRequest(input)
		if err != nil {
			return
		}
		if request.URL == "" || request.Method != strings.ToUpper(request.Method) {
			t.Fatalf("%q became %+v", input, request)
		}
		reread, err := decodeHTTPRequest(marshal(map[string]any{"method": request.Method, "url": request.URL,
			"headers": request.Headers, "body_base64": request.Body}))
		if err != nil || fmt.Sprint(*reread) != fmt.Sprint(*request) {
			t.Fatalf("%q became %+v, and that %+v, %v", input, request, reread, err)
		}
	})
}
