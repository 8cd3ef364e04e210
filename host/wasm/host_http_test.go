package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
)

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
	get := func(params string) (*job.Result, *host.Error) {
		r := requestFor(t, p, "get", params)
		serving(r).HTTP = func(ctx context.Context, q *outbound.Request) (*outbound.Response, error) {
			if !strings.HasPrefix(q.URL, server.URL+"/") {
				return nil, &host.Error{Code: host.Denied, Denied: []grant.Denial{{Right: "http:" + q.Method + ":elsewhere",
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
			return &outbound.Response{Status: response.StatusCode,
				Headers: [][2]string{{"x-seen", response.Header.Get("X-Seen")}}, Body: body}, err
		}
		return invokeRequest(t, p, r)
	}
	for params, want := range map[string]string{
		`{"url":"` + server.URL + `/a"}`: `{"status":200,"headers":[["x-seen","GET /a ."]],"body":""}`,
		`{"url":"` + server.URL +
			`/b","method":"POST","headers":[["x-given","y"]],"body":"\"}"}`: `{"status":200,"headers":[["x-seen","POST /b y."]],"body":"\"}"}`,
		`{"url":"` + server.URL +
			`/c","method":"PUT","body_base64":"/wA="}`: `{"status":200,"headers":[["x-seen","PUT /c ."]],"body_base64":"/wA="}`,
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
