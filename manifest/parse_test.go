package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest/document"
	"github.com/parley-tools/parley/manifest/jsontext"
)

const hostVersion = "0.1.0"

func small(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/small.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parsed(t testing.TB) *Manifest {
	t.Helper()
	m, err := Parse(small(t), hostVersion)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// edited returns a document with values set at JSON pointers, or removed for "".
func edited(t testing.TB, data []byte, edits ...string) []byte {
	t.Helper()
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(edits); i += 2 {
		doc = edit(t, doc, strings.Split(edits[i], "/")[1:], edits[i+1])
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func edit(t testing.TB, doc any, path []string, value string) any {
	t.Helper()
	if len(path) == 0 {
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		return v
	}
	switch doc := doc.(type) {
	case map[string]any:
		if len(path) == 1 && value == "" {
			delete(doc, path[0])
			return doc
		}
		doc[path[0]] = edit(t, doc[path[0]], path[1:], value)
		return doc
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i > len(doc) {
			t.Fatalf("%v does not exist", path)
		}
		if i == len(doc) {
			doc = append(doc, nil)
		}
		doc[i] = edit(t, doc[i], path[1:], value)
		return doc
	}
	return edit(t, map[string]any{}, path, value)
}

func TestParse(t *testing.T) {
	data := small(t)
	m, err := Parse(data, hostVersion)
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "notes" || len(m.Tools) != 3 || m.Capabilities.HTTP[0].Methods[1] != "PUT" || m.Limits.MemoryMiB != 64 ||
		m.Tools[1].Deprecated.Use != "notes.tag.all" {
		t.Errorf("read %+v", m)
	}
	again, err := Load(data)
	if err != nil || !reflect.DeepEqual(m, again) {
		t.Errorf("Load and Parse read different manifests: %v", err)
	}
	written, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := Parse(written, hostVersion); err != nil || !reflect.DeepEqual(canonical(t, back), canonical(t, m)) {
		t.Errorf("the written manifest cannot be read again: %v", err)
	}
	if m.Tool("TAG.list") != &m.Tools[1] || m.Tool("tag") != nil || m.ExitCode(11) != &m.ExitCodes[1] ||
		m.ExitCode(12) != nil {
		t.Error("a tool in another case, or an exit code by number, is not found")
	}
}

func canonical(t *testing.T, m *Manifest) string {
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsontext.Decode(raw, jsontext.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return string(jsontext.Marshal(v))
}

func TestParseAccepts(t *testing.T) {
	data := small(t)
	wasi := edited(t, data, "/kind", `"wasi"`, "/tools/0/wasi", `{"argv":["add","{text}",["--colour","{colour}"],["{tags}"]],"stdin":"{text}","env":{"TZ":"UTC","D":"{due}"},
		"files":[{"path":"/in.json","from":"{text}","x-a":1}],"output":"file:/out.wav","x-b":2}`)
	for name, doc := range map[string][]byte{
		"only required fields":          []byte(`{"manifest":1,"name":"a","version":"0.0.1","kind":"wasi","docs":{"brief":"b"},"tools":[{"name":"t","docs":{"brief":"b"},"params":{"type":"object"},"effect":"read"}]}`),
		"wasi":                          wasi,
		"no min_host":                   edited(t, data, "/min_host", ""),
		"warm":                          edited(t, data, "/warm", `true`),
		"assets":                        edited(t, data, "/assets", `{"path":"/usr/lib/python3.11","x-a":1}`),
		"an older min_host":             edited(t, data, "/min_host", `"0.0.9"`),
		"a pre-release of this host":    edited(t, data, "/min_host", `"0.1.0-rc.1"`),
		"a brief of 64 characters":      edited(t, data, "/docs/brief", strconv.Quote(strings.Repeat("ü", 64))),
		"a name of one part":            edited(t, data, "/tools/0/name", `"A-b_c1"`),
		"a schema that accepts nothing": edited(t, data, "/tools/1/returns", `false`),
		"draft-07":                      edited(t, data, "/tools/1/params", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/x"}},"definitions":{"x":{"type":"string"}}}`),
		"2020-12":                       edited(t, data, "/tools/1/params", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","dependentRequired":{"a":["b"]}}`),
		"emoji in enum":                 edited(t, data, "/tools/1/params", `{"type":"object","properties":{"a":{"enum":["\u2714\ufe0f","1\ufe0f\u20e3","\u2714"]}}}`),
		"bytes": edited(t, data, "/kind", `"wasi"`, "/tools/0/wasi", `{"output":"bytes"}`, "/tools/0/returns",
			`{"type":"string","contentEncoding":"base64"}`, "/tools/0/examples", `[]`),
		"an example refused by the tool": edited(t, data, "/tools/0/examples/2/params", `{"text":"fine"}`),
		"an example that fails":          edited(t, data, "/tools/0/examples/0/exit_code", `11`, "/tools/0/examples/0/result", `"whatever"`),
	} {
		if _, err := Parse(doc, hostVersion); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestParseKeepsSchemasOfOthers parses a schema that the host cannot judge. In kind extism it is kept, and the docs say
// that it is not checked.
func TestParseKeepsSchemasOfOthers(t *testing.T) {
	data := edited(t, small(t), "/tools/1/params", `{"type":"object","properties":{"a":{"type":"string","pattern":"(?=x)"}}}`,
		"/tools/1/examples", `[{"title":"One","kind":"minimal","params":{"a":"b"},"exit_code":0}]`)
	if _, err := Parse(data, hostVersion); err == nil || !strings.Contains(err.Error(), "/tools/1/params") {
		t.Errorf("kind parley/1: %v", err)
	}
	m, err := Parse(edited(t, data, "/kind", `"mcp"`), hostVersion)
	if err != nil {
		t.Fatal(err)
	}
	if note := Describe(m, &m.Tools[1], Tier3).Note; note != "not checked by the host: params" {
		t.Errorf("the note is %q", note)
	}
}

func TestParseRefuses(t *testing.T) {
	data := small(t)
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	for _, c := range []struct {
		name  string
		edits []string
		at    string // "pointer: the message's beginning", problems divided by newlines
	}{
		// The document.
		{"unknown field", []string{"/nmae", `1`}, "/nmae: unknown field; expected "},
		{"unknown field, near", []string{"/license", "", "/licence", `"MIT"`}, "/licence: unknown field; did you mean license?"},
		{"unknown field in docs", []string{"/docs/long", `"x"`}, "/docs/long: unknown field"},
		{"unknown field in a group", []string{"/groups/0/brief", `"x"`}, "/groups/0/brief: unknown field"},
		{"unknown field in a tool", []string{"/tools/1/efect", `"read"`, "/tools/1/effect", ""}, "/tools/1/efect: unknown field; did you mean effect?\n/tools/1/effect: expected |got nothing"},
		{"unknown field in an example", []string{"/tools/0/examples/0/result", "", "/tools/0/examples/0/reslut", `1`}, "/tools/0/examples/0/reslut: unknown field; did you mean result?"},
		{"unknown capability", []string{"/capabilities/net", `[]`}, "/capabilities/net: unknown field"},
		{"unknown field in a capability", []string{"/capabilities/fs/0/from", `"/"`}, "/capabilities/fs/0/from: unknown field"},
		{"unknown limit", []string{"/limits/cpu", `1`}, "/limits/cpu: unknown field"},
		{"a field of MCP", []string{"/tools/0/inputSchema", `{}`}, "/tools/0/inputSchema: unknown field; did you mean params?"},
		{"a version with a letter", []string{"/version", `"v1.0.0"`}, "/version: expected |; write it as 1.2.0"},
		{"a field in another case", []string{"/License", `"x"`, "/license", ""}, "/License: unknown field; did you mean license?"},
		{"a field in another case beside it", []string{"/Name", `"x"`}, "/Name: unknown field; expected one of"},
		{"several problems, in order", []string{"/docs/brief", "", "/kind", `"exe"`, "/tools/1/effect", ""},
			"/docs/brief: expected |got nothing\n/kind: expected one of \"parley/1\", \"wasi\"|got string \"exe\"\n" +
				"/tools/1/effect: expected |got nothing"},
		{"no name", []string{"/name", ""}, "/name: expected |got nothing"},
		{"no version", []string{"/version", ""}, "/version: expected |got nothing"},
		{"no kind", []string{"/kind", ""}, "/kind: expected |got nothing"},
		{"no docs", []string{"/docs", ""}, "/docs: expected |got nothing"},
		{"no tools", []string{"/tools", ""}, "/tools: expected |got nothing"},
		{"no manifest version", []string{"/manifest", ""}, "/manifest: expected |got nothing"},
		{"an empty list of tools", []string{"/tools", `[]`}, "/tools: expected |got array[0]"},
		{"no params", []string{"/tools/1/params", ""}, "/tools/1/params: expected |got nothing"},
		{"no brief", []string{"/tools/1/docs", `{}`}, "/tools/1/docs/brief: expected |got nothing"},
		{"kind builtin in a file", []string{"/kind", `"builtin"`}, "/kind: expected one of"},
		{"a brief of 65 characters", []string{"/docs/brief", strconv.Quote(strings.Repeat("x", 65))},
			"/docs/brief: expected |64"},
		{"an empty brief", []string{"/docs/brief", `""`}, "/docs/brief: expected"},
		{"a brief of two lines", []string{"/tools/0/docs/brief", `"a\nb"`}, "/tools/0/docs/brief: expected"},
		{"an invalid version", []string{"/version", `"1.2"`}, "/version: expected"},
		{"an invalid effect", []string{"/tools/1/effect", `"reads"`}, "/tools/1/effect: expected one of |did you mean read?"},
		{"an invalid category", []string{"/tools/0/category", `"misc"`}, "/tools/0/category: expected one of"},
		{"an exit code of the host", []string{"/exit_codes/0/code", `81`}, "/exit_codes/0/code: expected |79"},
		{"exit code 1", []string{"/exit_codes/0/code", `1`}, "/exit_codes/0/code: expected |2"},
		{"an exit code with a space", []string{"/exit_codes/0/name", `"no note"`}, "/exit_codes/0/name: expected"},
		{"a relative folder", []string{"/capabilities/fs/0/path", `"notes"`}, "/capabilities/fs/0/path: expected"},
		{"a header without a secret", []string{"/capabilities/secrets/0/header", `"Authorization: x"`}, "/capabilities/secrets/0/header: expected"},
		{"warm programs", []string{"/kind", `"wasi"`, "/warm", `true`}, "/warm: only a plugin of kind parley/1"},
		{"assets without a path", []string{"/assets", `{}`}, "/assets/path: expected"},
		{"assets at the root", []string{"/assets", `{"path":"/"}`}, "/assets/path: expected"},
		{"assets at a relative path", []string{"/assets", `{"path":"lib"}`}, "/assets/path: expected"},
		{"assets that lead elsewhere", []string{"/assets", `{"path":"/lib/../etc"}`}, "/assets/path: expected"},
		{"assets in a folder", []string{"/assets", `{"path":"/data/lib"}`, "/capabilities", `{"fs":[{"path":"/data","mode":"ro"}]}`},
			"/capabilities/fs/0/path: /data overlaps the path of the assets, /data/lib"},
		{"a folder in assets", []string{"/assets", `{"path":"/lib"}`, "/capabilities", `{"fs":[{"path":"/lib/x/../y","mode":"ro"}]}`},
			"/capabilities/fs/0/path: /lib/x/../y overlaps"},
		{"a file in assets", []string{"/assets", `{"path":"/lib"}`, "/kind", `"wasi"`, "/tools/0/wasi",
			`{"files":[{"path":"/lib/a","from":"text"}]}`}, "/tools/0/wasi/files: a file overlaps"},
		{"output to a relative file", []string{"/kind", `"wasi"`, "/tools/0/wasi", `{"output":"file:x"}`}, "/tools/0/wasi/output: expected"},
		{"a plugin's name with a dot", []string{"/name", `"a.b"`}, "/name: expected"},
		{"a plugin's name that begins with a digit", []string{"/name", `"1a"`}, "/name: expected"},
		{"a tool's name of three parts", []string{"/tools/0/name", `"a.b.c"`}, "/tools/0/name: expected"},
		{"a tool's name with a space", []string{"/tools/0/name", `"a b"`}, "/tools/0/name: expected"},
		{"a tool's name that ends in a dot", []string{"/tools/0/name", `"a."`}, "/tools/0/name: expected"},
		{"a name with a newline at its end", []string{"/name", `"notes\n"`}, "/name: expected"},
		{"too many keywords", []string{"/keywords", list(101, `"x"`)}, "/keywords: expected |100"},
		{"an array as a tool", []string{"/tools/2", `[]`}, "/tools/2: expected "},

		// Versions are checked first.
		{"a newer manifest", []string{"/manifest", `2`, "/min_host", `"3.0.0"`, "/name", "", "/new", `1`}, "/min_host: needs host >= 3.0.0, and this is 0.1.0"},
		{"a newer manifest of this host", []string{"/manifest", `2`, "/new", `1`}, "/manifest: needs host >= 0.1.0: this host, 0.1.0, reads manifest version 1 and was given 2"},
		{"a newer manifest without min_host", []string{"/manifest", `2`, "/min_host", ""}, "/manifest: needs host >= one that reads manifest version 2"},
		{"a newer host", []string{"/min_host", `"0.2.0"`, "/new", `1`}, "/min_host: needs host >= 0.2.0, and this is 0.1.0"},
		{"an invalid min_host", []string{"/min_host", `"soon"`}, "/min_host: expected"},
		{"an invalid manifest version", []string{"/manifest", `"1"`}, "/manifest: expected"},

		// Names.
		{"__ in the plugin's name", []string{"/name", `"a__b"`}, `/name: a name cannot contain "__"`},
		{"__ in a tool's name", []string{"/tools/0/name", `"a__b"`}, `/tools/0/name: a name cannot contain "__"`},
		{"__ in a group's name", []string{"/groups/1", `{"name":"a__b","docs":{"brief":"b"}}`}, `/groups/1/name: a name cannot contain "__"`},
		{"two tools with the same name", []string{"/tools/1/name", `"ADD"`}, `/tools/1/name: tool "ADD" has the same name as /tools/0/name; names must differ in more than case`},
		{"two groups with the same name", []string{"/groups/1", `{"name":"Tag","docs":{"brief":"b"}}`}, `/groups/1/name: group "Tag" has the same name as /groups/0/name`},
		{"a tool and a group with the same name", []string{"/tools/0/name", `"Tag"`}, `/tools/0/name: tool "Tag" has the same name as /groups/0/name`},
		{"an undeclared group", []string{"/tools/1/group", `"tags"`}, `/tools/1/group: no group "tags" is declared in groups`},

		// References.
		{"an undeclared exit code", []string{"/tools/0/exit_codes/1", `"no_room"`}, `/tools/0/exit_codes/1: no exit code "no_room" is declared in exit_codes`},
		{"an exit code twice", []string{"/exit_codes/1/code", `10`}, `/exit_codes/1: code 10 or name "full" is declared twice`},
		{"an exit code's name twice", []string{"/exit_codes/1/name", `"no_note"`, "/tools/0/exit_codes", `[]`, "/tools/2/exit_codes", `[]`}, `/exit_codes/1: code 11 or name "no_note" is declared twice`},
		{"an undeclared positional", []string{"/tools/0/positional/1", `"txt"`}, `/tools/0/positional/1: "txt" is not a parameter of the tool`},
		{"bytes that are no string in base64", []string{"/kind", `"wasi"`, "/tools/0/wasi", `{"output":"bytes"}`}, "/tools/0/wasi/output: bytes are"},
		{"a kind that no file has", []string{"/kind", `"builtin"`}, "/kind: expected one of \"parley/1\", \"wasi\""},
		{"wasi in another kind", []string{"/tools/1/wasi", `{}`}, "/tools/1/wasi: only a plugin of kind wasi may have it; this one is of kind parley/1"},
		{"undeclared placeholders", []string{"/kind", `"wasi"`, "/tools/0/wasi", `{"argv":["{txt}",["-c","{color}"]],"stdin":"{a}","env":{"A":"{b}"},"files":[{"path":"/f","from":"{c}"}]}`},
			"/tools/0/wasi/argv/0: {txt} is not a parameter of the tool\n/tools/0/wasi/argv/1: {color} is\n" +
				"/tools/0/wasi/env/A: {b} is\n/tools/0/wasi/files/0/from: {c} is\n/tools/0/wasi/stdin: {a} is"},
		{"an environment variable that must be escaped", []string{"/kind", `"wasi"`, "/tools/0/wasi/env", `{"A/B~":"{b}"}`}, "/tools/0/wasi/env/A~1B~0: {b} is"},

		// Schemas.
		{"parameters without a type", []string{"/tools/1/params", `{}`}, `/tools/1/params/type: expected "object": parameters are always an object`},
		{"parameters that are a string", []string{"/tools/1/params", `{"type":"string"}`}, `/tools/1/params/type: expected "object"`},
		{"parameters of two types", []string{"/tools/1/params", `{"type":["object","null"]}`}, `/tools/1/params/type: expected "object"`},
		{"parameters that are true", []string{"/tools/1/params", `true`}, `/tools/1/params: expected |got boolean true`},
		{"a reference to nothing", []string{"/tools/1/params", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`}, "/tools/1/params: |/properties/a/$ref|points to nothing"},
		{"a reference elsewhere", []string{"/tools/1/params", `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`}, "/tools/1/params: |only local references"},
		{"a cycle through anyOf", []string{"/tools/1/params", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`}, "/tools/1/params: "},
		{"a cycle at the root", []string{"/tools/1/params", `{"type":"object","allOf":[{"$ref":"#"}]}`}, "/tools/1/params: "},
		{"a pattern that RE2 does not support", []string{"/tools/1/params", `{"type":"object","properties":{"a":{"pattern":"(?=x)"}}}`}, "/tools/1/params: |pattern"},
		{"an unknown dialect", []string{"/tools/1/params", `{"type":"object","$schema":"http://json-schema.org/draft-04/schema#"}`}, "/tools/1/params: |dialect"},
		{"a schema that is too large", []string{"/tools/1/params", `{"type":"object","description":"` + strings.Repeat("x", 300<<10) + `"}`}, "/tools/1: |bytes"},
		{"an invalid type", []string{"/tools/1/params", `{"type":"object","properties":{"a":{"type":"text"}}}`}, "/tools/1/params: |/properties/a/type"},
		{"a schema that is a number", []string{"/tools/1/params", `{"type":"object","properties":{"a":1}}`}, "/tools/1/params: |a schema is an object or a boolean"},
		{"returns", []string{"/tools/0/returns", `{"type":"nothing"}`}, "/tools/0/returns: |/type"},
		{"settings", []string{"/settings", `{"type":"nothing"}`}, "/settings: |/type"},
		{"an invisible character in enum", []string{"/tools/1/params", `{"type":"object","properties":{"a":{"enum":["x","x\u200b"]}}}`}, `/tools/1/params/properties/a/enum/1: the value has the invisible or control character U+200B`},
		{"a variation selector in enum", []string{"/tools/1/params", `{"type":"object","properties":{"a":{"enum":["x","x\ufe0f"]}}}`}, `/tools/1/params/properties/a/enum/1: the value has the invisible or control character U+FE0F`},
		{"two variation selectors in enum", []string{"/tools/1/params", `{"type":"object","properties":{"a":{"enum":["\u2714\ufe0f\ufe0f"]}}}`}, `/tools/1/params/properties/a/enum/0: the value has`},
		{"a blank of Braille in a key", []string{"/tools/1/params", `{"type":"object","properties":{"b\u2800":{}}}`}, `/tools/1/params/properties: a key has the invisible or control character U+2800`},
		{"a bidi control in const", []string{"/tools/1/params", `{"type":"object","properties":{"a":{"const":{"b":["\u202ex"]}}}}`}, `/tools/1/params/properties/a/const/b/0: the value has`},
		{"an escape in default", []string{"/tools/1/params", `{"type":"object","properties":{"a":{"type":"string","default":"\u001b[31m"}}}`}, `/tools/1/params/properties/a/default: the value has`},
		{"an invisible character in a nested key", []string{"/tools/1/params", `{"type":"object","properties":{"a":{"type":"object","properties":{"b\ufeff":{"type":"string"}}}}}`}, `/tools/1/params/properties/a/properties: a key has the invisible or control character U+FEFF`},
		{"an invisible character in a key of returns", []string{"/tools/1/returns", `{"type":"object","properties":{"b\u2060":{"type":"string"}}}`}, `/tools/1/returns/properties: a key has the invisible or control character U+2060`},
		{"an invisible character in settings", []string{"/settings", `{"type":"object","properties":{"a":{"enum":["\u00ad"]}}}`}, `/settings/properties/a/enum/0: the value has`},
		{"a parameter with a space", []string{"/tools/1/params", `{"type":"object","properties":{" a":{}}}`},
			`/tools/1/params/properties: the parameter " a" cannot be typed as it is shown`},
		{"a hidden parameter", []string{"/tools/1/params", `{"type":"object","properties":{"a\u200b":{}}}`}, `/tools/1/params/properties: a key has the invisible or control character U+200B`},

		{"large documentation of a small schema", []string{"/tools/1/params", `{"type":"object","properties":{` + strings.Join(numbered(200, `"p%d":{"$ref":"#/$defs/e"}`), ",") + `},"$defs":{"e":{"enum":[` + strings.Join(numbered(100, `"v%d"`), ",") + `]}}}`},
			"/tools/1/params: its list of 200 names takes more than 65536 bytes of documentation"},

		// Examples.
		{"an example with a wrong type", []string{"/tools/0/examples/0/params", `{"text":3}`}, "/tools/0/examples/0/params/text: the example breaks the tool's own schema: expected |got number 3"},
		{"an example without a parameter", []string{"/tools/0/examples/1/params", `{}`}, "/tools/0/examples/1/params/text: the example breaks |got nothing"},
		{"an example with an unknown parameter", []string{"/tools/0/examples/1/params", `{"text":"a","txt":"b"}`}, "/tools/0/examples/1/params/txt: the example breaks"},
		{"a result that breaks returns", []string{"/tools/0/examples/0/result", `{"id":"1"}`}, "/tools/0/examples/0/result/id: the example breaks the tool's own schema: expected |got string \"1\""},
		{"several findings, in order", []string{"/tools/0/positional/0", `"txt"`, "/tools/1/group", `"x"`, "/exit_codes/1/code", `10`},
			"/exit_codes/1: code 10\n/tools/0/positional/0: \"txt\"\n/tools/1/group: no group"},
	} {
		m, err := Parse(edited(t, data, c.edits...), hostVersion)
		var e *Error
		if m != nil || !errors.As(err, &e) {
			t.Errorf("%s: got %v, %v; expected an error", c.name, m, err)
			continue
		}
		if !strings.HasPrefix(err.Error(), "invalid manifest: ") {
			t.Errorf("%s: %v", c.name, err)
		}
		want := strings.Split(c.at, "\n")
		if len(want) != len(e.Problems) {
			t.Errorf("%s: got %d problems, expected %d: %v", c.name, len(e.Problems), len(want), err)
			continue
		}
		for i, p := range e.Problems {
			parts := strings.Split(want[i], "|")
			ok := strings.HasPrefix(p.String(), parts[0])
			for _, part := range parts[1:] {
				ok = ok && strings.Contains(p.String(), part)
			}
			if !ok || CleanLine(p.Message) != p.Message {
				t.Errorf("%s: got %s\nexpected %s", c.name, p, want[i])
			}
		}
	}
}

func numbered(n int, format string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return list
}

// TestParseText tests texts that are refused before the document is validated.
func TestParseText(t *testing.T) {
	data := string(small(t))
	for _, c := range []struct{ name, text, says string }{
		{"empty", "", "invalid JSON at line 1, column 1: the input is empty"},
		{"not JSON", "name: notes", "invalid JSON at line 1, column 1"},
		{"not an object", "[1]", "expected an object"},
		{"null", "null", "expected an object"},
		{"cut off", data[:len(data)/2], "invalid JSON at line "},
		{"trailing data", data + "{}", `after the end of the value`},
		{"a byte order mark", "\ufeff" + data, "byte order mark"},
		{"a comment", "{ // me\n" + data[1:], "invalid JSON at line 1"},
		{"a trailing comma", `{"manifest":1,}`, "invalid JSON at line 1, column 15"},
		{"a duplicate key", strings.Replace(data, `"license"`, `"name"`, 1), "/name"},
		{"a nested duplicate key", strings.Replace(data, `"minLength": 1`, `"type": "string"`, 1), "/tools/0/params/properties/text/type"},
		{"a duplicate key, escaped", strings.Replace(data, `"license"`, `"nam\u0065"`, 1), "/name"},
		{"bad UTF-8", strings.Replace(data, "short notes", "short \xff notes", 1), "UTF-8"},
		{"half a surrogate pair", strings.Replace(data, "short notes", `short \ud800 notes`, 1), "/docs/brief"},
		{"a NUL byte", strings.Replace(data, "short notes", "short \x00 notes", 1), "/docs/brief"},
		{"too deep", strings.Replace(data, `{"owner": "us"}`, strings.Repeat("[", 101)+strings.Repeat("]", 101), 1), "100"},
		{"too large", `{"x-a":"` + strings.Repeat("x", 16<<20) + `"}`, "at most 16777216 are accepted"},
		{"a number too large for its field", strings.Replace(data, `"memory_mib": 64`, `"memory_mib": 1e300`, 1), "/limits/memory_mib: expected"},
		{"a number too large for a float", strings.Replace(data, `"memory_mib": 64`, `"memory_mib": 1e999`, 1), "/limits/memory_mib"},
		{"a whole number with a fraction", strings.Replace(data, `"memory_mib": 64`, `"memory_mib": 64.0`, 1), "limits.memory_mib: expected a number written as digits alone, got number 64.0"},
		{"a parameter with terminal escapes", strings.Replace(data, `"properties": {`,
			`"properties": {"a\u001b[31mb\u202e": {"type": "strin"},`, 1), "strin"},
		{"a name with terminal escapes", strings.Replace(data, `"x-team"`, `"\u001b[31mteam"`, 1), "team: unknown field"},
	} {
		m, err := Parse([]byte(c.text), hostVersion)
		var e *Error
		if m != nil || !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v; expected %q", c.name, err, c.says)
			continue
		}
		if CleanLine(err.Error()) != err.Error() {
			t.Errorf("%s: %q is not one clean line", c.name, err)
		}
	}
	deep := strings.Repeat(`[`, 5_000_000)
	if _, err := Parse([]byte(deep[:4<<20]), hostVersion); err == nil {
		t.Error("four million brackets were accepted")
	}
}

func TestErrorIsBounded(t *testing.T) {
	e := &Error{}
	for i := range 100 {
		e.Problems = append(e.Problems, Problem{fmt.Sprintf("/tools/%d", i), "wrong"})
	}
	if got := e.Error(); !strings.HasSuffix(got, "/tools/7: wrong; and 92 more") {
		t.Error(got)
	}
	if got := (Problem{"", "wrong"}).String(); got != "wrong" {
		t.Error(got)
	}
}

func TestShippedManifests(t *testing.T) {
	files, err := filepath.Glob("../plugins/*/manifest.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %q, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(data, hostVersion); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"0.1.0", "0.1.0", false}, {"0.1.1", "0.1.0", true}, {"0.2.0", "0.1.9", true}, {"1.0.0", "0.99.99", true},
		{"0.1.0", "0.1.1", false}, {"0.9.0", "0.10.0", false}, {"0.10.0", "0.9.0", true}, {"0.1.0-rc.1", "0.1.0", false},
		{"0.1.0", "0.1.0-rc.1", false}, {"0.1.1-rc.1", "0.1.0", true}, {"0.1.0+build-7", "0.1.0", false},
		{"2", "1.9.9", true}, {"1.2", "1.2.0", false},
		{"99999999999999999999.0.0", "1.0.0", true}, {"x", "0.0.0", false}, {"", "", false},
	} {
		if got := Newer(c.a, c.b); got != c.want {
			t.Errorf("Newer(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

func TestReserved(t *testing.T) {
	for _, name := range append(strings.Fields(reserved), "cdp", "page", "console", "fleet", "mount") {
		if !Reserved(name) || !Reserved(strings.ToUpper(name)) {
			t.Errorf("%s is not reserved", name)
		}
	}
	for _, name := range []string{"text", "json", "pages", "", "calls"} {
		if Reserved(name) {
			t.Errorf("%q is reserved", name)
		}
	}
}

// TestSchemaIsOurs checks that the embedded schema compiles, and that callers get a copy of it.
func TestSchemaIsOurs(t *testing.T) {
	a := Schema()
	if _, err := document.Compile(a); err != nil {
		t.Fatal(err)
	}
	a[0] = 'x'
	if bytes.Equal(a, Schema()) {
		t.Error("a change of the returned schema changes the embedded one")
	}
}

func FuzzParse(f *testing.F) {
	data := small(f)
	f.Add(data)
	f.Add(edited(f, data, "/kind", `"wasi"`, "/tools/0/wasi", `{"argv":["{text}",["{a}"]]}`))
	f.Add([]byte(`{"manifest":2,"min_host":"9.9.9"}`))
	f.Add([]byte(`{"manifest":1,"name":"a","version":"0.0.1","kind":"mcp","docs":{"brief":"b"},"tools":[{"name":"t","docs":{"brief":"b"},"params":{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/properties/a"}]}}},"effect":"read"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data, hostVersion)
		if err != nil {
			var e *Error
			if m != nil || !errors.As(err, &e) || len(e.Problems) == 0 || CleanLine(err.Error()) != err.Error() {
				t.Fatalf("%q: got %v, %q", data, m, err)
			}
			return
		}
		again, err := Load(data)
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%q: Load reads another manifest: %v", data, err)
		}
		for i := range m.Tools {
			if m.Tool(m.Tools[i].Name) != &m.Tools[i] {
				t.Errorf("%q: tool %q is not found by its name", data, m.Tools[i].Name)
			}
			for tier := Tier1; tier <= Tier3; tier++ {
				d := Describe(m, &m.Tools[i], tier)
				if text := d.Text(); Clean(text) != text {
					t.Errorf("%q: tier %d is not clean: %q", data, tier, text)
				}
				if _, err := json.Marshal(d); err != nil {
					t.Errorf("%q: tier %d: %v", data, tier, err)
				}
			}
		}
	})
}
