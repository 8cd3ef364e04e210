package guest

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/manifest"
)

// TestReadContent checks that a response's content is decoded, and that decoding ends at the limit of blocks.
func TestReadContent(t *testing.T) {
	r,
		err := readResponse([]byte(`{"ok":true,"result":{},"content":[{"type":"text","text":"a"},{"type":"link","uri":"b"}]}`))
	if err != nil || len(r.Content) != 2 || r.Content[1].URI != "b" {
		t.Errorf("got %+v, %v", r.Content, err)
	}
	many := `{"ok":true,"content":[` + strings.Repeat(`{},`, 1_000_000) + `{}]}`
	if r, err := readResponse([]byte(many)); err != nil || len(r.Content) != maxContent+1 {
		t.Errorf("a million blocks: %d decoded, %v", len(r.Content), err)
	}
	for _, wrong := range []string{`{"ok":true,"content":{}}`, `{"ok":true,"content":[1]}`, `{"ok":true,"content":"a"}`} {
		if _, err := readResponse([]byte(wrong)); err == nil {
			t.Errorf("%s was accepted", wrong)
		}
	}
	for _, empty := range []string{`{"ok":true}`, `{"ok":true,"content":null}`, `{"ok":true,"content":[]}`} {
		if r, err := readResponse([]byte(empty)); err != nil || len(r.Content) != 0 {
			t.Errorf("%s: %+v, %v", empty, r.Content, err)
		}
	}
}

// TestPartsOfResponsesAreBounded checks that no part but the result and its content is decoded if it is large.
func TestPartsOfResponsesAreBounded(t *testing.T) {
	large := strings.Repeat(`{},`, world.MaxResponsePart/3) + `{}`
	for _, part := range []string{"warnings", "message", "details", "invalid"} {
		r, err := readResponse([]byte(`{"ok":false,"` + part + `":[` + large + `]}`))
		if !errors.Is(err, host.LimitExceeded) || len(r.Invalid)+len(r.Warnings)+len(r.Message) > 0 {
			t.Errorf("%s: %v, and %d violations", part, err, len(r.Invalid))
		}
	}
}

// TestWrongTypes checks that a response with a part of the wrong type is refused in words of the ABI, not of Go.
func TestWrongTypes(t *testing.T) {
	for response, want := range map[string]string{
		`"text"`:                                   "it has the type string",
		`[1]`:                                      "it has the type array",
		`{"ok":"true"}`:                            "ok has the type string",
		`{"ok":false,"exit":"10"}`:                 "exit has the type string",
		`{"ok":false,"exit":1.5}`:                  "exit has the type number 1.5",
		`{"ok":false,"exit":1,"message":{}}`:       "message has the type object",
		`{"ok":true,"warnings":"w"}`:               "warnings has the type string",
		`{"ok":false,"invalid":[{"pointer":1}]}`:   "invalid has the type number",
		`{"ok":true,"content":"a"}`:                "content is not an array",
		`{"ok":true,"content":[1]}`:                "content has the type number",
		`{"ok":true,"content":[{"type":{}}]}`:      "content has the type object",
		`{"ok":true,"result":1} and more`:          `the JSON value is followed by "and more"`,
		`{"ok":false,"exit":99999999999999999999}`: "exit has the type number 99999999999999999999",
	} {
		_, err := readResponse([]byte(response))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %q", response, err, want)
		}
	}
}

// TestUnknownFields checks that each field of a response is refused when it is misspelt, by an error that names it and
// the fields that are known.
func TestUnknownFields(t *testing.T) {
	for form, fields := range map[string]string{
		`{"ok":true,%s:null}`:           "result content warnings message details invalid",
		`{"ok":false,"exit":2,%s:null}`: "result content warnings message details invalid",
	} {
		for _, field := range strings.Fields(fields) {
			for _, wrong := range []string{field[:1] + field[2:3] + field[1:2] + field[3:], field + "s", field[1:]} {
				_, err := readResponse([]byte(strings.Replace(form, "%s", `"`+wrong+`"`, 1)))
				if err == nil || !strings.HasPrefix(err.Error(), `"`+wrong+`" is not a field of `) ||
					!strings.Contains(err.Error(), field) {
					t.Errorf("%s in %s: %v", wrong, form, err)
				}
			}
			if _, err := readResponse([]byte(strings.Replace(form, "%s", `"`+field+`"`, 1))); err != nil {
				t.Errorf("%s in %s: %v", field, form, err)
			}
		}
	}
	_, err := readResponse([]byte("Hello"))
	if err == nil || !strings.HasSuffix(err.Error(), `it begins with "Hello"`) {
		t.Errorf("a text: %v", err)
	}
}

// TestSandboxWords checks that the words in which the libraries of guests report what the sandbox lacks are explained,
// and that other messages stay as they are.
func TestSandboxWords(t *testing.T) {
	for message, want := range map[string]string{
		"open /data/x: Bad file number":                                                       "under fs",     // Go
		"Error opening file x: Capabilities insufficient":                                     "under fs",     // wasi-libc
		`failed to find a pre-opened file descriptor through which "/x" could be opened`:      "under fs",     // Rust
		"operation not supported on this platform":                                            "http_request", // Rust
		`Get "https://a.test": dial tcp: lookup a.test on [::1]:53: Connection reset by peer`: "http_request", // Go
		"ReferenceError: fetch is not defined (plugin.js:1:1)":                                "parley.http",
		"ReferenceError: process is not defined (plugin.js:1:1)":                              "context.settings",
		"ReferenceError: total is not defined (plugin.js:1:1)":                                "",
		"no such issue": "",
	} {
		c := &Call{Job: &Job{Manifest: &manifest.Manifest{Kind: manifest.KindScript}}}
		got := c.sandboxAdvice(message)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
	module := &Call{Job: &Job{Manifest: &manifest.Manifest{}}}
	if got := module.sandboxAdvice("ReferenceError: fetch is not defined"); got != "" {
		t.Errorf("not a script: %q", got)
	}
}
