package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/testhome"
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
		})
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
