package cdp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/providertest"
	"github.com/parley-tools/parley/manifest"
)

func TestContract(t *testing.T) {
	providertest.Run(t, New(Config{RunDir: t.TempDir()}), providertest.Options{
		Calls: []providertest.Case{
			{Tool: "status", Want: `{"browsers":[]}`},
			{Tool: "close", Want: `{"closed":{"contexts":[],"targets":[]}}`},
			{Tool: "targets", Code: host.ChromeConnection},
			{Tool: "Runtime.evaluate", Params: `{"expression":"1"}`, Code: host.ChromeConnection},
		},
	})
}

// TestTier2Fits checks that the second tier of every command has at most 400 tokens.
func TestTier2Fits(t *testing.T) {
	p := New(Config{})
	names, err := p.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		tool, err := p.Tool(name)
		if err != nil {
			t.Fatal(err)
		}
		d := p.Describe(tool, manifest.Tier2)
		// The command line adds the command of the example and the next steps.
		d.Examples[0].Command = "parley cdp " + name + " --params '" + string(d.Examples[0].Params) + "'"
		next := []string{"parley cdp " + name + " --describe --tier 3"}
		if len(d.Examples[0].Params) <= 140 {
			next = append(next, d.Examples[0].Command)
		}
		raw, err := json.Marshal(struct {
			*manifest.ToolDocs
			Next []string `json:"next"`
		}{d, next})
		if err != nil {
			t.Fatal(err)
		}
		if n := manifest.Tokens(string(raw)); n > 500 {
			t.Errorf("%s: %d tokens of JSON", name, n)
		}
		if n := d.Tokens(); n > 400 {
			t.Errorf("%s: %d tokens of text", name, n)
		}
		for _, q := range manifest.Params(tool.Params) {
			for _, shown := range d.Parameters {
				if shown.Name == q.Name && len(shown.Enum)+shown.More < len(q.Enum) {
					t.Errorf("%s: %s shows %d of %d values and counts %d", name, q.Name, len(shown.Enum), len(q.Enum), shown.More)
				}
			}
			if q.Required && !strings.Contains(string(raw), `"name":"`+q.Name+`"`) {
				t.Errorf("%s: the required parameter %s is not shown", name, q.Name)
			}
		}
	}
}

// TestFirstParameters checks that the second tier describes what callers need most of commands with many parameters.
func TestFirstParameters(t *testing.T) {
	p := New(Config{})
	for name, needed := range map[string][]string{
		"Runtime.evaluate":              {"expression", "returnByValue", "awaitPromise"},
		"Runtime.callFunctionOn":        {"functionDeclaration"},
		"Page.printToPDF":               {"printBackground", "landscape", "pageRanges"},
		"Page.captureScreenshot":        {"format", "clip", "captureBeyondViewport"},
		"Network.setCookie":             {"name", "value", "url", "domain", "path", "secure", "httpOnly"},
		"Input.dispatchKeyEvent":        {"type", "key", "code", "text"},
		"Input.dispatchMouseEvent":      {"type", "x", "y", "button", "clickCount"},
		"Target.createTarget":           {"url", "newWindow", "background"},
		"Fetch.continueRequest":         {"requestId", "url", "method", "headers"},
		"Input.synthesizeScrollGesture": {"x", "y", "yDistance"},
	} {
		tool, err := p.Tool(name)
		if err != nil {
			t.Fatal(err)
		}
		d := p.Describe(tool, manifest.Tier2)
		for i, want := range needed {
			if i >= len(d.Parameters) || d.Parameters[i].Name != want || d.Parameters[i].Description == "" {
				t.Errorf("%s: parameter %d is not %s with a description:\n%s", name, i, want, d.Text())
				break
			}
		}
	}
}

func TestURLs(t *testing.T) {
	for _, c := range []struct{ url, fixed string }{
		{"https://example.com/", ""}, {"http://127.0.0.1:8080/a?b#c", ""}, {"about:blank", ""}, {"data:text/html,hi", ""},
		{"file:///tmp/x.html", ""}, {"chrome://version", ""},
		{"example.com", "https://example.com"}, {"example.com:8080/x", "https://example.com:8080/x"},
		{"htp:/x", "http://x"}, {"htp://a.test/b", "http://a.test/b"}, {"htps://a.test", "https://a.test"},
		{"//a.test/b", "https://a.test/b"}, {"localhost:3000/x", "http://localhost:3000/x"}, {"ftp://a.test/", "-"},
		{"http:/a.test", "http://a.test"}, {"javascript:1", ""}, {"view-source:https://a.test", ""}, {"HTTPS://a.test", ""},
		{"not a url", "-"}, {"://x", "-"}, {"http://", "-"}, {"/path", "-"}, {"https:", "-"}, {"mailto:a@a.test", "-"},
	} {
		params, _ := json.Marshal(map[string]string{"url": c.url})
		err := origin.CheckURLs(params, []string{"/url"})
		if c.fixed == "" {
			if err != nil {
				t.Errorf("%s: %v", c.url, err)
			}
			continue
		}
		e := host.AsError(err)
		if err == nil || e.Code != host.InvalidURL || e.ExitCode() != 80 {
			t.Errorf("%s: got %v, expected invalid_url", c.url, err)
			continue
		}
		isFixed := e.Corrected != nil
		if isFixed != (c.fixed != "-") || isFixed && !strings.Contains(string(e.Corrected), c.fixed) {
			t.Errorf("%s: corrected to %s, expected %s", c.url, e.Corrected, c.fixed)
		}
	}
}

// TestEachVerbHasAFile checks that the file of each verb is for its own tool, and that one thing runs it.
func TestEachVerbHasAFile(t *testing.T) {
	p := New(Config{})
	for _, name := range verbs.Names() {
		t.Run(name, func(t *testing.T) {
			if file := verbs.Tool(name); file.Name != name {
				t.Errorf("its file is for %q", file.Name)
			}
			if p.verbHandler(name) != nil == verb.HasNative(name) {
				t.Error("nothing runs it, or two things do")
			}
		})
	}
}
