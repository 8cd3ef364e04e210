package wasmtest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

// Attack is a line of testdata/hostile/cases.txt.
type Attack struct {
	Line                            int
	Kind, Source, WantEnd, WantText string
	Heavy                           bool
}

func (a Attack) String() string { return fmt.Sprintf("%s:%d:%.40s", a.Kind, a.Line, a.Source) }

// Attacks reads the table.
func Attacks(t testing.TB) []Attack {
	t.Helper()
	var all []Attack
	for _, l := range Lines(t, "cases.txt") {
		a := Attack{Line: l.Number, Kind: l.Section, Source: l.Fields[0], WantEnd: l.Fields[1], WantText: l.Fields[2]}
		a.Source, a.Heavy = strings.CutPrefix(a.Source, "! ")
		all = append(all, a)
	}
	return all
}

// NeverRuns reports whether an attack is refused before it runs, or takes too long to compile.
func (a Attack) NeverRuns() bool {
	return a.Heavy || strings.HasPrefix(a.Kind, "decoder") || strings.HasPrefix(a.Kind, "compile")
}

// Build returns the plugin of an attack. It is of kind parley/1 if it exports that interface, and otherwise a
// command.
func (a Attack) Build(t testing.TB) (wasm []byte, m *manifest.Manifest) {
	t.Helper()
	m = Command(t, "hostile")
	if strings.HasPrefix(a.Source, scripted) {
		wasm, m = Hostile(t, "wasi.wasm"), Scripted(t)
	} else if wasm = Hostile(t, a.Source); bytes.Contains(wasm, []byte("parley_call")) &&
		bytes.Contains(wasm, []byte("parley_alloc")) {
		m = parse(t, read(t, "wasm/smallest.manifest.json"))
	}
	switch a.Kind {
	case "arguments":
		m.Tools[0].WASI.Argv = append(m.Tools[0].WASI.Argv, manifest.Arg{Word: strings.Repeat("x", 5<<19)})
		m.Tools[0].WASI.Env = map[string]string{"X": strings.Repeat("x", 1<<20)}
	case "large":
		m.Limits.OutputBytes = 64 << 20
	}
	return wasm, m
}

// scripted is the prefix of the source of an attack that is a script for wasi.wasm.
const scripted = "wasi: "

// Params returns the parameters for the only tool of an attack.
func (a Attack) Params(t testing.TB) string {
	script, ok := strings.CutPrefix(a.Source, scripted)
	if !ok {
		return "{}"
	}
	params, err := manifest.Marshal(map[string]string{"script": string(Expand(t, script))})
	if err != nil {
		t.Fatal(err)
	}
	return string(params)
}

// CheckOutcome compares the outcome of an attack with the table.
func (a Attack) CheckOutcome(t testing.TB, result *job.Result, err *host.Error) {
	t.Helper()
	end, text := "ok", ""
	if err != nil {
		end, text = string(err.Code), err.Message
		CheckAllDisplayed(t, "the error", err.Object())
		if len(text) > 4<<10 {
			t.Errorf("the message has %d bytes: %.300q", len(text), text)
		}
	} else {
		text = string(result.Data)
		for _, w := range result.Warnings {
			CheckDisplayed(t, "a warning", w)
		}
	}
	if end != a.WantEnd || !strings.Contains(text, a.WantText) {
		t.Errorf("ended in %s %.300q, want %s and %q", end, text, a.WantEnd, a.WantText)
	}
}

// CheckDisplayed checks that a text has no terminal control or hidden characters.
func CheckDisplayed(t testing.TB, what, text string) {
	t.Helper()
	if clean := manifest.Clean(text); clean != text {
		t.Errorf("%s has hidden characters: %.300q", what, text)
	}
	if !utf8.ValidString(text) {
		t.Errorf("%s is not UTF-8: %.300q", what, text)
	}
}

// CheckAllDisplayed calls [CheckDisplayed] for all strings in the JSON of a value.
func CheckAllDisplayed(t testing.TB, what string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	var decoded any
	if err == nil {
		err = json.Unmarshal(data, &decoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			CheckDisplayed(t, what, v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for k, x := range v {
				CheckDisplayed(t, what, k)
				walk(x)
			}
		}
	}
	walk(decoded)
}

// Line is a line of a table in testdata/hostile: two to four fields separated by bars. Missing fields are "".
type Line struct {
	Number  int
	Section string // the last heading, up to a colon
	Fields  [4]string
}

// Lines reads a table of testdata/hostile.
func Lines(t testing.TB, name string) []Line {
	t.Helper()
	var all []Line
	heading := ""
	for i, line := range strings.Split(string(read(t, "hostile/"+name)), "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			heading, _, _ = strings.Cut(title, ":")
		}
		if line == "" || line[0] == '#' {
			continue
		}
		l := Line{Number: i + 1, Section: heading}
		parts := strings.SplitN(line, " | ", len(l.Fields))
		if len(parts) < 2 {
			t.Fatalf("%s:%d: %s", name, i+1, line)
		}
		for j, part := range parts {
			l.Fields[j] = strings.TrimSpace(part)
		}
		all = append(all, l)
	}
	return all
}

// Command returns a manifest of kind wasi with one tool, "run", whose arguments are the parameters a, b and c.
func Command(t testing.TB, name string) *manifest.Manifest {
	t.Helper()
	return parse(t, fmt.Appendf(nil,
		`{"manifest":1,"name":%q,"version":"1.0.0","kind":"wasi","docs":{"brief":"A test"},
		"exit_codes":[{"code":28,"name":"inval","meaning":"EINVAL"},{"code":8,"name":"badf","meaning":"EBADF"}],
		"tools":[{"name":"run","docs":{"brief":"Run it"},"effect":"write",
		"params":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}}},
		"wasi":{"argv":[["{a}"],["{b}"],["{c}"]]}}]}`, name))
}

// Scripted returns the manifest of testdata/hostile/wasi.c, which reads statements from stdin.
func Scripted(t testing.TB) *manifest.Manifest {
	t.Helper()
	return parse(t,
		[]byte(`{"manifest":1,"name":"hostile","version":"1.0.0","kind":"wasi","docs":{"brief":"A test"},
		"tools":[{"name":"run","docs":{"brief":"Run it"},"effect":"write","params":{"type":"object","properties":{"script":{"type":"string"}}},
		"wasi":{"stdin":"{script}"}}]}`))
}

func parse(t testing.TB, data []byte) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Parse(data, "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// read reads a file of testdata of the repository.
func read(t testing.TB, path string) []byte {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	data, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", "testdata", path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Hostile returns the module for the source of an attack. The source is a file, RULE(NUMBER), hex:BYTES,
// packed:NUMBER, or answer:TEXT in Go syntax with {{N*TEXT}} for repetitions.
func Hostile(t testing.TB, source string) []byte {
	t.Helper()
	if digits, ok := strings.CutPrefix(source, "hex:"); ok {
		data, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		return append([]byte("\x00asm\x01\x00\x00\x00"), data...)
	}
	if text, ok := strings.CutPrefix(source, "answer:"); ok {
		return Responding(Expand(t, text), 1000)
	}
	if text, ok := strings.CutPrefix(source, "packed:"); ok {
		n, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		return returnPacked(n)
	}
	if name, rest, ok := strings.Cut(source, "("); ok {
		n, err := strconv.Atoi(strings.TrimSuffix(rest, ")"))
		if rules[name] == nil || err != nil {
			t.Fatalf("%s: no such rule", source)
		}
		return rules[name](n)
	}
	return read(t, "hostile/"+source)
}

// Expand decodes a text of a table.
func Expand(t testing.TB, text string) []byte {
	t.Helper()
	out, err := strconv.Unquote(`"` + Repeat(t, text) + `"`)
	if err != nil {
		t.Fatalf("%.100s: %v", text, err)
	}
	return []byte(out)
}

// Repeat expands {{N*TEXT}}, innermost first.
func Repeat(t testing.TB, text string) string {
	t.Helper()
	for {
		start := strings.LastIndex(text, "{{")
		if start < 0 {
			return text
		}
		inner, after, ok := strings.Cut(text[start+2:], "}}")
		count, what, _ := strings.Cut(inner, "*")
		n, err := strconv.Atoi(count)
		if err != nil || !ok {
			t.Fatalf("%.100s: %v", text[start:], err)
		}
		text = text[:start] + strings.Repeat(what, n) + after
	}
}
