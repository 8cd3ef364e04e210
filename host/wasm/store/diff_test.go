package store

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-tools/parley/manifest"
)

func TestManifestDiff(t *testing.T) {
	long := strings.Repeat("word ", 100)
	for _, c := range []struct{ name, a, b, want string }{
		{"nothing", `{"a":1}`, `{"a":1}`, "the manifests are equal"},
		{"white space", `{"a":1}`, `{ "a": 1 }`, "the manifests are equal except for white space or the order of items"},
		{"the order of keys", `{"a":1,"b":2}`, `{"b":2,"a":1}`,
			"the manifests are equal except for white space or the order of items"},
		{"a value", `{"a":{"b":1}}`, `{"a":{"b":2}}`, "- /a/b: 1\n+ /a/b: 2"},
		{"a value's spelling", `{"a":64}`, `{"a":64.0}`, "- /a: 64\n+ /a: 64.0"},
		{"another type", `{"a":"1"}`, `{"a":[1]}`, "- /a: \"1\"\n+ /a: [1]"},
		{"an empty object", `{"a":{}}`, `{"a":{"b":{}}}`, "- /a: {}\n+ /a/b: {}"},
		{"a new right", `{"capabilities":{"http":[{"url":"https://a.example"}]}}`,
			`{"capabilities":{"http":[{"url":"https://b.example"},{"url":"https://a.example"}],"clock":{}}}`,
			"+ /capabilities/clock: {}\n+ /capabilities/http: {\"url\":\"https://b.example\"}"},
		{"a removed right", `{"env":[{"name":"A"},{"name":"B","why":"x"}]}`, `{"env":[{"name":"A"}]}`,
			"- /env/B/name: \"B\"\n- /env/B/why: \"x\""},
		{"tools by name, in another order", `{"tools":[{"name":"x","effect":"read"},{"name":"y"}]}`,
			`{"tools":[{"name":"y"},{"name":"x","effect":"write"}]}`,
			"- /tools/x/effect: \"read\"\n+ /tools/x/effect: \"write\""},
		{"within a tool", `{"tools":[{"name":"x","docs":{"brief":"a"}}]}`, `{"tools":[{"name":"x","docs":{"brief":"b"}}]}`,
			"- /tools/x/docs/brief: \"a\"\n+ /tools/x/docs/brief: \"b\""},
		{"two of the same name", `{"tools":[{"name":"x"}]}`, `{"tools":[{"name":"x"},{"name":"x"}]}`,
			"+ /tools: {\"name\":\"x\"}\n+ /tools: {\"name\":\"x\"}\n- /tools/x/name: \"x\""},
		{"one more of an equal item", `{"a":[{"b":1}]}`, `{"a":[{"b":1},{"b":1}]}`, "+ /a: {\"b\":1}"},
		{"arguments in another order", `{"argv":["a","b"]}`, `{"argv":["b","a"]}`,
			"- /argv: [\"a\",\"b\"]\n+ /argv: [\"b\",\"a\"]"},
		{"keys with slashes", `{"a/b":{"~":1}}`, `{"a/b":{"~":2}}`, "- /a~1b/~0: 1\n+ /a~1b/~0: 2"},
		{"terminal control characters", `{"a":"x"}`, "{\"a\":\"x\u202e\x7f\\u001b[2J\"}",
			"- /a: \"x\"\n+ /a: \"x\\u202e\\u007f\\u001b[2J\""},
		{"the end of a long text", `{"a":"` + long + `x"}`, `{"a":"` + long + `y"}`,
			"- /a: …" + long[len(long)-40:] + "x\"\n+ /a: …" + long[len(long)-40:] + "y\""},
		{"invalid JSON after", `{"a":1}`, `{"a":`, "+ the second manifest is not valid JSON: "},
		{"invalid JSON before", `x`, `{}`, "- the first manifest is not valid JSON: "},
	} {
		got := ManifestDiff([]byte(c.a), []byte(c.b), 40)
		if got != c.want && !(strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`"%s%d":%q`, strings.Repeat("k", 300), i, long))
	}
	got := ManifestDiff([]byte(`{}`), []byte("{"+strings.Join(many, ",")+"}"), 10)
	if lines := strings.Split(got, "\n"); len(lines) != 10 || lines[9] != "… and 992 more lines" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
	for _, line := range strings.Split(got, "\n") {
		if len(line) > diffWidth+10 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// FuzzManifestDiff checks that the difference of any two files is bounded and can be displayed, and that it is only
// empty for equal manifests.
func FuzzManifestDiff(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"x"},1]}`), []byte(`{"tools":[{"name":"y"}]}`), uint8(5))
	f.Add([]byte(`[[],{}]`), []byte(`[{},[[]]]`), uint8(40))
	f.Add([]byte("{\"a\":\"\xff\u202e\"}"), []byte(`{"a":"`+strings.Repeat("ä", 200)+`"}`), uint8(2))
	f.Fuzz(func(t *testing.T, a, b []byte, most uint8) {
		most = max(most, 2)
		got := ManifestDiff(a, b, int(most))
		if n := strings.Count(got, "\n") + 1; n > int(most) {
			t.Errorf("%d lines of %d", n, most)
		}
		if !utf8.ValidString(got) || manifest.Clean(got) != got {
			t.Errorf("%q has control or hidden characters", got)
		}
		if got == "" {
			t.Error("the difference is empty")
		}
	})
}
