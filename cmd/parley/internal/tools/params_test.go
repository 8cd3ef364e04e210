package tools

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

func TestSetParam(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	picture, utf16 := file("picture.png", "\x89PNG\r\n\xff\x00"), file("utf16.txt", "\xff\xfea\x00")
	text := file("text.txt", "\ufeffa\u200d<b>\r\n")
	tool := &manifest.Tool{Params: []byte(`{"type":"object","properties":{
		"text":{"type":"string"},"maybe":{"type":["string","null"]},"n":{"type":"integer"},"number":{"type":["null","integer"]},
		"any":{},"flag":{"type":"boolean"},"list":{"type":"array","items":{"type":"string"}},
		"picture":{"type":"string","contentEncoding":"base64"},"either":{"anyOf":[{"$ref":"#/$defs/picture"},{"type":"null"}]},
		"pictures":{"type":"array","items":{"$ref":"#/$defs/picture"}},
		"o":{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"},"picture":{"$ref":"#/$defs/picture"}},
			"additionalProperties":{"$ref":"#/$defs/picture"}}},
		"$defs":{"picture":{"type":"string","contentEncoding":"base64"}}}`)}
	encoded := "iVBORw0K/wA="
	for _, c := range []struct {
		given []string
		want  string
	}{
		{[]string{"text=null"}, `{"text":"null"}`},
		{[]string{"maybe=null", "number=null", "any=null", "other=null"},
			`{"any":null,"maybe":null,"number":null,"other":null}`},
		{[]string{"n=null", "flag=null", "list=null"}, `{}`},
		{[]string{"n=1", "n=null"}, `{}`},
		{[]string{"o.n=null"}, `{}`},
		{[]string{"o.text=null", "o.n=1", "o.n=null"}, `{"o":{"text":"null"}}`},
		{[]string{"maybe=NULL", "text=1"}, `{"maybe":"NULL","text":"1"}`},
		{[]string{"picture=@" + picture, "either=@" + picture, "pictures=@" + picture, "o.picture=@" + picture,
			"o.x=@" + picture},
			`{"either":"` + encoded + `","o":{"picture":"` + encoded + `","x":"` + encoded + `"},"picture":"` + encoded +
				`","pictures":["` + encoded + `"]}`},
		{[]string{"picture=aGk="}, `{"picture":"aGk="}`},
		{[]string{"text=@" + text}, `{"text":"` + "\ufeffa\u200d<b>" + `\r\n"}`},
	} {
		params := map[string]any{}
		for _, given := range c.given {
			if err := setParam(t.Context(), &command.App{}, params, &givers{}, tool, given, 0); err != nil {
				t.Errorf("%s: %v", given, err)
			}
		}
		if got := string(jsontext.Marshal(params)); got != c.want {
			t.Errorf("%q:\ngot  %s\nwant %s", c.given, got, c.want)
		}
	}
	for given, hint := range map[string]string{"text=@" + picture: "base64", "o.text=@" + utf16: "UTF-16",
		"any=@" + utf16: "UTF-16"} {
		err := setParam(t.Context(), &command.App{}, map[string]any{}, &givers{}, tool, given, 0)
		if !errors.Is(err, host.InvalidArgs) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v", given, err)
		}
	}
}

// TestGivenTwice gives a parameter twice, in each pair of ways: one value never replaces another one, but that of
// the file of --params. A list has both.
func TestGivenTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "value")
	common := filepath.Join(t.TempDir(), "params")
	if err := cmp.Or(os.WriteFile(file, []byte(`["a"]`), 0o600),
		os.WriteFile(common, []byte(`{"all":["c"]}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(o *CallOptions){
		"-":      func(o *CallOptions) { o.Words = append(o.Words, "-") },
		"word":   func(o *CallOptions) { o.Words = append(o.Words, "a") },
		"@":      func(o *CallOptions) { o.Words = append(o.Words, "@"+file) },
		"value":  func(o *CallOptions) { o.Set = append(o.Set, "all=a") },
		"file":   func(o *CallOptions) { o.Set = append(o.Set, "all=@"+file) },
		"empty":  func(o *CallOptions) { o.Set = append(o.Set, "all=") },
		"null":   func(o *CallOptions) { o.Set = append(o.Set, "all=null") },
		"--all":  func(o *CallOptions) { o.All = true },
		"inside": func(o *CallOptions) { o.Set = append(o.Set, "all.0.a=a") },
	}
	for _, kind := range []string{"string", "integer", "boolean", "object", "array", "null"} {
		tool := &manifest.Tool{Name: "t", Positional: []string{"all"}, Params: []byte(`{"type":"object","properties":{"all":
			{"type":"` + kind + `","items":{"type":"string"}}}}`)}
		for first, give := range ways {
			for second, giveAgain := range ways {
				o := CallOptions{}
				give(&o)
				giveAgain(&o)
				app := &command.App{Streams: &command.Streams{In: strings.NewReader(`["b"]`)}, Signaled: command.NewApp(
					&command.Streams{}, nil).Signaled}
				params, err := buildParams(t.Context(), app, tool, &o)
				if err == nil && !(kind == "array" && len(params) > len(`{"all":["a"]}`)) && first+second != "--all--all" {
					t.Errorf("%s: %s and %s: %s", kind, first, second, params)
				}
				o.Params, app.In = `{"all":["c"]}`, strings.NewReader(`["b"]`)
				if params, err = buildParams(t.Context(), app, tool, &o); err == nil && !strings.Contains(string(params), `"c"`) {
					t.Errorf("%s: %s and %s beside --params: %s", kind, first, second, params)
				}
				o.Params, app.In = "", strings.NewReader(`["b"]`)
				_, err = buildParams(t.Context(), app, tool, &o)
				o.Params, app.In = "@"+common, strings.NewReader(`["b"]`)
				if _, again := buildParams(t.Context(), app, tool, &o); (err == nil) != (again == nil) &&
					first != "inside" {
					t.Errorf("%s: %s and %s: %v, but beside --params %v", kind, first, second, err, again)
				}
			}
		}
	}
}

// TestOutOfText writes results of one text to a file: each as its bytes, unless its schema says base64.
func TestOutOfText(t *testing.T) {
	const document = `{"type":"object","properties":{"text":{"type":"string","contentMediaType":"text/markdown"},
		"cut":{"type":"integer"}}}`
	for _, c := range []struct{ data, returns, want, media string }{
		{`"a\u200d<b>\n\u2028"`, `{"type":"string"}`, "a\u200d<b>\n\u2028", "text/plain"},
		{` "" `, ``, "", "text/plain"},
		{`"aGk="`, `{"type":"string","contentEncoding":"base64","contentMediaType":"text/css"}`, "hi", "text/css"},
		{`{"a":"b"}`, `{"type":"object"}`, `{"a":"b"}` + "\n", "application/json"},
		{`null`, `{"type":["string","null"]}`, "null\n", "application/json"},
		{`{"text":"<page 12345678>\n# A\n</page 12345678>","cut":7}`, document, "# A", `"mime":"text/markdown","cut":7}`},
		{`{"text":"<page 12345678>\n\n</page 12345678>"}`, document, "", `"bytes":0,"mime":"text/markdown"}`},
		{`{"text":"<page 12345678>\n<page 1>\n</page 12345679>"}`, document, "<page 12345678>\n<page 1>\n</page 12345679>",
			"text/markdown"},
		{`{"text":"a\u200d\n\n"}`, document, "a\u200d\n\n", "text/markdown"},
		{`{"data":"aGk=","left_out":"b"}`, `{"properties":{"data":{"contentEncoding":"base64","contentMediaType":"text/css"}}}`,
			"hi", `"mime":"text/css","left_out":"b"}`},
		{`{"text":7}`, document, "{\"text\":7}\n", "application/json"},
	} {
		path := filepath.Join(t.TempDir(), "out")
		file := &command.OutFile{Path: path, Returns: []byte(c.returns)}
		said, err := file.Whole([]byte(c.data))
		if got, readErr := os.ReadFile(path); err != nil || readErr != nil || string(got) != c.want ||
			!strings.Contains(string(said), c.media) {
			t.Errorf("%s: got %q, %s, %v %v; want %q", c.data, got, said, err, readErr, c.want)
		}
	}
}
