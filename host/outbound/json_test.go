package outbound

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const limit = 1 << 20

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
		`{"url":"u","\u001b[31m\nx":1}`:           `field "\\u001b[31m x": unknown field`,
		`{"url":"u","url":"v"}`:                   "invalid JSON",
		`{"url":"u"} {}`:                          "invalid JSON",
		"{\"url\":\"\xff\"}":                      "invalid JSON",
	} {
		request, err := DecodeRequest([]byte(input), limit)
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
	big := `{"url":"u","body":"` + strings.Repeat("x", limit) + `"}`
	if _, err := DecodeRequest([]byte(big), limit); err == nil {
		t.Error("a request of any size is accepted")
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
		request, err := DecodeRequest(input, limit)
		if err != nil {
			return
		}
		if request.URL == "" || request.Method != strings.ToUpper(request.Method) {
			t.Fatalf("%q became %+v", input, request)
		}
		encoded, err := json.Marshal(map[string]any{"method": request.Method, "url": request.URL,
			"headers": request.Headers, "body_base64": request.Body})
		if err != nil {
			t.Fatal(err)
		}
		reread, err := DecodeRequest(encoded, limit)
		if err != nil || fmt.Sprint(*reread) != fmt.Sprint(*request) {
			t.Fatalf("%q became %+v, and that %+v, %v", input, request, reread, err)
		}
	})
}
