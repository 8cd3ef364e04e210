package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// conformanceCase is a call of sdk/abi.md that each SDK must serve alike.
type conformanceCase struct {
	tool, params string
	exit         int
	data         string   // "": not compared
	warnings     []string // how each begins
	message      string   // a part of the error
}

func conformanceCases() []conformanceCase {
	var all []conformanceCase
	// The same JSON value comes back: numbers as they are written, texts in any spelling.
	for _, value := range []string{
		`null`, `true`, `false`, `0`, `-1`, `9007199254740993`, `-9223372036854775808`, `1.5`, `-0.25`, `1e21`, `1.5E-7`,
		`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"\u0000"`, `"\u001f\u007f"`, `"é日😀"`, `"\u00e9\u65e5\ud83d\ude00"`,
		`"\ufeff\u202e"`,
		`"{\"a\":[1]}"`, `"]},:"`, `[]`, `{}`, `[[],{},[[]]]`, `[1,"a",null,true,{"b":[]}]`,
		`{"a":{"b":{"c":[1,2,{"d":"e"}]}}}`,
		`{"":1,"\"":2,"\\":3,"é":4,"value":5}`, `[ 1 , 2 ]`, `"` + strings.Repeat("a", 100_000) + `"`,
		strings.Repeat("[", 50) + strings.Repeat("]", 50), `{"a b":" c "}`,
	} {
		all = append(all, conformanceCase{tool: "echo", params: `{"value":` + value + `}`, data: `{"value":` + value + `}`})
	}
	// A text that the SDK has decoded and encoded again is the same.
	for _, text := range []string{
		`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"a\u0000b"`, `"\u0001\u001f\u007f\u0080"`, `"é日😀"`, `"\u00e9\u65E5\uD83D\uDE00"`,
		`"\u07ff\u0800\uffff"`, `"{\"text\":\"x\"}"`, `"` + strings.Repeat(`\n`, 10_000) + `"`,
	} {
		all = append(all, conformanceCase{tool: "text", params: `{"text":` + text + `}`, data: `{"text":` + text + `}`})
	}
	denied := `{"text":"denied"}`
	return append(all,
		conformanceCase{tool: "fail", params: `{"code":10}`, exit: 10, message: `declared "failure"`},
		conformanceCase{tool: "fail", params: `{"code":42}`, exit: 1, message: "no such code"},
		conformanceCase{tool: "invalid", params: `{"text":"a"}`, exit: 81, message: "1 violation"},
		conformanceCase{tool: "warn", params: `{}`, warnings: []string{`first "warning"`, "second"}},
		conformanceCase{tool: "about", params: `{}`, data: `{"text":"about cli"}`},
		conformanceCase{tool: "call", params: `{}`, data: denied, warnings: []string{"denied: tool:text.hash"}},
		conformanceCase{tool: "fetch", params: `{}`, data: denied,
			warnings: []string{"denied: http:GET:https://example.com"}},
		conformanceCase{tool: "secret", params: `{}`, data: denied, warnings: []string{"denied: secret:read:KEY"}},
		conformanceCase{tool: "notes", params: `{}`},
		conformanceCase{tool: "text", params: `{}`, exit: 81},
		conformanceCase{tool: "text", params: `{"text":[]}`, exit: 81},
	)
}

// TestSDKConformance builds one plugin with each SDK and compares what its calls return.
func TestSDKConformance(t *testing.T) {
	t.Parallel()
	cases := conformanceCases()
	if len(cases) < 40 {
		t.Fatalf("%d cases", len(cases))
	}
	var input strings.Builder
	for i, c := range cases {
		fmt.Fprintf(&input, `{"id":%d,"tool":"conform.%s","params":%s}`+"\n", i, c.tool, c.params)
	}
	for _, lang := range []struct{ name, condition, sdk string }{
		{"go", "golang", ""}, {"c", "clang", "c/parley.h"}, {"rust", "rust", "rust/parley.rs"}, {"js", "", "js/parley.d.ts"},
	} {
		t.Run(lang.name, func(t *testing.T) {
			t.Parallel()
			if ok, err := scriptCondition(lang.condition); lang.condition == "" {
				// The engine is in the binary.
			} else if err != nil {
				t.Fatal(err)
			} else if !ok {
				t.Skip("no compiler")
			}
			dir := filepath.Join(t.TempDir(), "conform")
			copyFiles(t, filepath.Join("testdata", "conformance", lang.name), dir)
			if lang.sdk != "" {
				copyFiles(t, filepath.Join("testdata", "conformance", "manifest.json"), dir)
				copyFiles(t, filepath.Join("..", "..", "..", "..", "sdk", lang.sdk), dir)
			}
			isScript := lang.name == "js"
			if isScript {
				replaceInFile(t, filepath.Join(dir, "manifest.json"), `"kind": "parley/1"`,
					`"kind": "script", "engine": {"name": "js", "version": "1"}`)
			}
			home := testhome.New(t)
			run := func(stdin string, args ...string) string {
				cmd := exec.Command("parley", args...)
				cmd.Env = append(os.Environ(), "PARLEY_HOME="+home, "PARLEY_RUNNER_IDLE=1s", "PARLEY_AGENT=")
				cmd.Stdin = strings.NewReader(stdin)
				var stderr strings.Builder
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if len(out) == 0 {
					t.Fatalf("parley %v: %v\n%s", args, err, stderr.String())
				}
				return string(out)
			}
			run("", "plugin", "build", dir)
			replies := json.NewDecoder(strings.NewReader(
				run(input.String(), "batch", "-", "--continue-on-error", "--load", filepath.Join(dir, "plugin.wasm"))))
			for _, c := range cases {
				c.check(t, replies, isScript)
			}
			checkEdges(t, lang.name, func(lines string) *json.Decoder {
				return json.NewDecoder(strings.NewReader(
					run(lines, "batch", "-", "--continue-on-error", "--load", filepath.Join(dir, "plugin.wasm"))))
			})
		})
	}
}

// edge is a value of a parameter of the tool "sized" at the end of what its type holds.
type edge struct {
	field, value string
	valid        bool
}

// deepValue has a value that SDKs with types of 8 bits refuse.
const deepValue = `{"~":[1],"a/b":[0,256]}`

// edges returns values of each type that SDKs read, on both sides of what it holds. A field whose name begins with
// "loose_", and any, have a schema that accepts more than the type does.
func edges(lang string) (all []edge) {
	add := func(valid bool, field string, values ...string) {
		for _, v := range values {
			all = append(all, edge{field, v, valid})
		}
	}
	integer := func(field, least, below, most, above string) {
		add(true, field, least, most, "0", "-0", "1.0", "1e2", "null", `"7"`)
		add(false, field, below, above, "1e20", "1e399", "-1e399", "0.5", `"x"`, "true")
	}
	integer("i8", "-128", "-129", "127", "128")
	integer("u8", "0", "-1", "255", "256")
	integer("i16", "-32768", "-32769", "32767", "32768")
	integer("u16", "0", "-1", "65535", "65536")
	integer("i32", "-2147483648", "-2147483649", "2147483647", "2147483648")
	integer("u32", "0", "-1", "4294967295", "4294967296")
	integer("i64", "-9223372036854775808", "-9223372036854775809", "9223372036854775807", "9223372036854775808")
	integer("u64", "0", "-1", "18446744073709551615", "18446744073709551616")
	for field, most := range map[string]string{"f32": "3.4028235e38", "f64": "1.7976931348623157e308"} {
		add(true, field, "-0", "0.1", "1e-400", "-"+most, most, "null", "1"+strings.Repeat("0", 57)+"e-99")
		add(false, field, "1e399", "-1e399", "1e309", `"x"`, "true")
	}
	add(false, "f32", "3.4028236e38", "-1e39")
	add(true, "flag", "true", "false", "null", `"true"`)
	add(false, "flag", "1", `"yes"`, "[]")
	add(true, "text", `""`, `"\u0001é😀"`, "null", `"`+strings.Repeat("a", 10_000)+`"`)
	add(false, "text", "1", "[]")
	add(true, "three", "[1,2,3]", "[-128,127.0,-0]", "null")
	add(false, "three", "[]", "[1,2]", "[1,2,3,4]", "[1,2,128]", "[1,2,null]", "[1,2,1e399]", "7")
	add(true, "map", `{}`, `{"a":0,"b":255}`, `{"a":null}`, "null")
	add(false, "map", `{"a":256}`, `{"a/b":-1}`, "[]")
	add(true, "data", `""`, `"AA=="`, `"AAA="`, `"AAAA"`, `"AAAA\r\nAA==\n"`, "null")
	add(false, "data", `"A"`, `"AA"`, `"AAA"`, `"A==="`, `"AA=A"`, `"AA==AAAA"`, `"-_A="`, `"AA AA"`, "[1]")
	add(true, "at", `"2026-02-28T23:59:59Z"`, `"2024-02-29T00:00:00.123456789+23:59"`, `"0000-01-01T00:00:00-00:00"`, "null")
	add(false, "at", `""`, `"2026-02-29T00:00:00Z"`, `"2026-01-01"`, `"2026-01-01T00:00:00"`, `"2026-01-01t00:00:00z"`,
		`"2026-01-01T00:00:60Z"`, `"2026-01-01T24:00:00Z"`, `"2026-01-01T1:00:00Z"`, `"2026-01-01T00:00:00,5Z"`,
		`"2026-01-01T00:00:00+24:00"`, `"2026-01-01T00:00:00+00:60"`, "0")
	add(true, "any", "null", "1e399", "[1,{\"a\":-1e399}]", "9007199254740993", `"\u0000"`)
	if lang != "go" {
		add(true, "loose_i8", "127", "128", "-129", "1e399")
		add(true, "loose_text", `"a"`, `"a\u0000b"`)
		add(true, "loose_map", `{"a/b":[1e399,255]}`, deepValue)
		return all
	}
	integer("int", "-9223372036854775808", "-9223372036854775809", "9223372036854775807", "9223372036854775808")
	integer("uint", "0", "-1", "18446744073709551615", "18446744073709551616")
	add(true, "number", "1e300", "0.10", "-0", "null")
	add(false, "number", "1e399", `"x"`)
	add(true, "list", "[]", `[{"N":127}]`, "null")
	add(false, "list", `[{"N":1},{"N":128}]`, `[null]`, `[{"n":1}]`)
	add(true, "raw", "1e399", "null", `{"a":[1]}`)
	add(true, "loose_addr", `"1.2.3.4"`, `"1.2.3"`, `""`)
	return all
}

// checkEdges checks that a plugin reads each value that a dry run accepts, and the value that was given. What only its
// decoder can refuse is refused as the host does, with the position of the value.
func checkEdges(t *testing.T, lang string, batch func(lines string) *json.Decoder) {
	var lines strings.Builder
	all := edges(lang)
	for i, e := range all {
		for id, isDry := range []bool{true, false} {
			fmt.Fprintf(&lines, `{"id":%d,"tool":"conform.sized","params":{%q:%s},"options":{"dry_run":%v}}`+"\n", 2*i+id, e.field,
				e.value, isDry)
		}
	}
	replies := batch(lines.String())
	for _, e := range all {
		var dry, call struct {
			OK    bool
			Data  map[string]json.RawMessage
			Error struct {
				ExitCode int `json:"exit_code"`
				Message  string
				Details  []struct{ Parameter, Expected, Provided string }
			}
		}
		if err := errors.Join(replies.Decode(&dry), replies.Decode(&call)); err != nil {
			t.Fatalf("%v: %v", e, err)
		}
		if e.value == deepValue && !call.OK && call.Error.Details[0].Parameter != "/loose_map/a~1b/1" {
			t.Errorf("%s: %+v", e.value, call.Error)
		}
		isNamed := len(call.Error.Details) > 0 && strings.HasPrefix(call.Error.Details[0].Parameter, "/"+e.field)
		isLoose := strings.HasPrefix(e.field, "loose_") || e.field == "any"
		switch {
		case dry.OK != e.valid, !call.OK && (call.Error.ExitCode != 81 || !isNamed), call.OK != dry.OK && !isLoose:
			t.Errorf("%s %.60s: dry run %v %+v, call %v %+v", e.field, e.value, dry.OK, dry.Error, call.OK, call.Error)
		case dry.OK && !call.OK && call.Error.Details[0].Provided == "":
			t.Errorf("%s %.60s: what was given is missing: %+v", e.field, e.value, call.Error)
		}
		isExact := strings.ContainsAny(e.field[:1], "iu") || e.field == "any" && lang != "go" // whose any has float64s
		if got, isNumber := jsontext.Integer(string(call.Data[e.field])); isExact && isNumber {
			if want, ok := jsontext.Integer(e.value); ok && got != want {
				t.Errorf("%s %s was read as %s", e.field, e.value, got)
			}
		} else if _, ok := jsontext.Integer(e.value); isExact && ok && call.OK && lang != "c" {
			t.Errorf("%s %s was read as %s", e.field, e.value, call.Data[e.field])
		}
	}
}

// check compares the next reply with the case. Numbers of JavaScript are of 64 bits; others are as they are written.
func (c *conformanceCase) check(t *testing.T, replies *json.Decoder, float64s bool) {
	t.Helper()
	var reply struct {
		Data     json.RawMessage `json:"data"`
		Warnings []string        `json:"warnings"`
		Error    struct {
			ExitCode int    `json:"exit_code"`
			Message  string `json:"message"`
		} `json:"error"`
	}
	if err := replies.Decode(&reply); err != nil {
		t.Fatalf("%s %.60s: %v", c.tool, c.params, err)
	}
	if reply.Error.ExitCode != c.exit || !strings.Contains(reply.Error.Message, c.message) ||
		!slices.EqualFunc(reply.Warnings, c.warnings, strings.HasPrefix) {
		t.Errorf("%s %.60s: %+v", c.tool, c.params, reply)
	}
	if c.data != "" && !sameJSON(t, reply.Data, c.data, float64s) {
		t.Errorf("%s %.60s: got %.200s", c.tool, c.params, reply.Data)
	}
}

// sameJSON compares two documents.
func sameJSON(t *testing.T, got json.RawMessage, want string, float64s bool) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{string(got), want} {
		d := json.NewDecoder(strings.NewReader(text))
		if !float64s {
			d.UseNumber()
		}
		if err := d.Decode(&values[i]); err != nil {
			t.Errorf("%.60s: %v", text, err)
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

func replaceInFile(t *testing.T, path, old, new string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// copyFiles copies a file, or the files of a folder, into dir. Names lose a last ".txt", which hides Go source from go.
func copyFiles(t *testing.T, from, dir string) {
	t.Helper()
	files := []string{from}
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		files, _ = filepath.Glob(filepath.Join(from, "*"))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".txt")), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
