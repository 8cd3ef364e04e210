//go:build !wasip1

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	sdk "github.com/parley-tools/parley/sdk/go"
)

func TestRepair(t *testing.T) {
	for _, c := range []struct{ format, text, want string }{
		{"json", `{"a": 1,}`, `{"a": 1}`},
		{"json", `{"a" : 1.0}`, `{"a" : 1.0}`},
		{"yaml", "a:\n\tb: 1\n\tc: 2\n", "a:\n  b: 1\n  c: 2\n"},
		{"yaml", "a:\n    b: 1\n\tc: 2\n", "a:\n    b: 1\n    c: 2\n"},
		{"yaml", "title: Foo: the bar\nx: 1\n", "title: \"Foo: the bar\"\nx: 1\n"},
		{"yaml", "- run: echo a: b # c\n- x\n", "- run: \"echo a: b\" # c\n- x\n"},
		{"yaml", "a: @x\nb: `y`\nc: %z\n", "a: \"@x\"\nb: \"`y`\"\nc: \"%z\"\n"},
		{"yaml", "a: 'it's'\n", "a: \"it's\"\n"},
		{"yaml", "a: \"\"x\" y\": z\n", "a: \"\\\"\\\"x\\\" y\\\": z\"\n"},
		{"yaml", "a: \"x\" y\nb: 1\n", "a: \"\\\"x\\\" y\"\nb: 1\n"},
		{"json", `2026-01-02 10:11:12,345 WARN got {"a": 1,}`, `{"a": 1}`},
		{"json", `1, true, {"a": 1}`, `[1, true, {"a": 1}]`},
		{"json", "the words of a sentence, and no data", ""},
		{"yaml", "a: \"x\nb: 1\nc: 2\n", "a: \"x\"\nb: 1\nc: 2\n"},
		{"yaml", "a: 1\n b: 2\nc: 3\n", "a: 1\nb: 2\nc: 3\n"},
		{"yaml", "s:\n  a: 1\n   b: 2\n", "s:\n  a: 1\n  b: 2\n"},
		{"yaml", "s:\n  a: 1\n b: 2\n", "s:\n  a: 1\n  b: 2\n"},
		{"yaml", "a:1\nb: 2\n", "a: 1\nb: 2\n"},
		{"yaml", "l: [a, b\nb: 2\n", "l: [a, b]\nb: 2\n"},
		{"yaml", "a: 1\nb: 2\na: 3\n", "# a: 1\nb: 2\na: 3\n"},
		{"yaml", "```yaml\na: 1\n```\n", "\na: 1\n\n"},
		{"yaml", "a: 1\nb\nc: 2\n", "a: 1\nb:\nc: 2\n"},
		{"yaml", "a: x\x07y\n", "a: xy\n"},
		{"yaml", "a: .inf\n? [b]\n: 1\n", "a: .inf\n? [b]\n: 1\n"},
		{"yaml", "}{", ""},
		{"toml", "a: 1\nb = 2\n", "a = 1\nb = 2\n"},
		{"toml", "name = Ada Lovelace # x\n", "name = \"Ada Lovelace\" # x\n"},
		{"toml", "name: Ada\n", "name = \"Ada\"\n"},
		{"toml", "name = \"Ada\nb = 1\n", "name = \"Ada\"\nb = 1\n"},
		{"toml", "port = 1\nx = 2\nport = 3\n", "# port = 1\nx = 2\nport = 3\n"},
		{"toml", "[a]\nx = 1\n[a\ny = 2\n", ""},
		{"toml", "a = {x = 1, x = 2}\n", ""},
		{"toml", "[a\nx = 1\n", "[a]\nx = 1\n"},
		{"toml", "p = \"C:\\Users\\ada\"\n", "p = 'C:\\Users\\ada'\n"},
		{"toml", "a = True\nb = null\nc = 1,\n", "a = true\n# b = null\nc = 1\n"},
		{"toml", "a = [True, 'no, True', False] # no\non = {x: yes, y: \"b: c\"}\n",
			"a = [true, 'no, True', false] # no\non = {x = true, y = \"b: c\"}\n"},
		{"toml", "a = [\n True,\n 2,,\n]\nb: {c: 1},\n", "a = [\n true,\n 2,\n]\nb = {c = 1}\n"},
		{"toml", "a = [\n 1\n 2,\n]\n", "a = [\n 1,\n 2,\n]\n"},
		{"toml", "a = [1, 2\nb = 1\n", "a = [1, 2]\nb = 1\n"},
		{"toml", "my key = 1\n", "\"my key\" = 1\n"},
		{"toml", "a =\nb = 1\n", "a = \"\"\nb = 1\n"},
		{"toml", "// x\na = “y”\n", "# x\na = \"y\"\n"},
		{"toml", "zip = 01234\n", "zip = \"01234\"\n"},
		{"toml", "day = 2026-13-45\n", "day = \"2026-13-45\"\n"},
		{"toml", "a = {b = 1, c = 2,}\n", "a = {b = 1, c = 2,}\n"},
		{"toml", "a.b = 1\na = 2\r\n", "# a.b = 1\na = 2\r\n"},
	} {
		r, err := Repair(&sdk.Call{}, RepairParams{Text: c.text, Format: c.format})
		if c.want == "" {
			if outcome(err) != "unrepairable" {
				t.Errorf("%q: %+v, %v", c.text, r, err)
			}
			continue
		}
		if err != nil || r.Text != c.want || (len(r.Changes) == 0) != (c.text == c.want) {
			t.Errorf("%q: %v\n got %q %+v\nwant %q", c.text, err, r.Text, r.Changes, c.want)
		}
		for _, change := range r.Changes {
			_, name, _ := strings.Cut(change, " ")
			name, _, _ = strings.Cut(name, ";")
			for _, name := range strings.Split(name, ", ") {
				if lessons()[name] == "" {
					t.Errorf("%q: no lesson for %q", c.text, change)
				}
			}
		}
		checkDiff(t, c.text, r)
	}
}

// checkDiff applies the diff by patch(1), if this machine has it.
func checkDiff(t *testing.T, text string, r RepairResult) {
	t.Helper()
	patch, err := exec.LookPath("patch")
	if err != nil || r.Diff == "" {
		return
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(patch, "--silent", "--binary", file)
	c.Stdin = strings.NewReader("--- f\n+++ f\n" + r.Diff)
	out, err := c.CombinedOutput()
	got, _ := os.ReadFile(file)
	if err != nil || string(got) != r.Text {
		t.Errorf("%q: the diff\n%s makes %q, want %q: %v %s", text, r.Diff, got, r.Text, err, out)
	}
}

// TestRepairSaysWhatItAssumes checks the words of changes whose meaning is not plain.
func TestRepairSaysWhatItAssumes(t *testing.T) {
	for _, c := range [][3]string{
		{"json", `{"p": "C:\new\q"}`, `1:14 escape; assumed: a backslash belongs to the text unless it begins an escape such as \n`},
		{"yaml", `p: "C:\new\q"`, "1:1 special characters in a text; assumed: all of it is one text, without escapes"},
		{"yaml", "a: @x", "1:1 special characters in a text; assumed: all of it is one text, without escapes"},
		{"toml", `p = "C:\new\q"`, "1:1 escape; assumed: a backslash belongs to the text"},
	} {
		r, err := Repair(&sdk.Call{}, RepairParams{Text: c[1], Format: c[0]})
		if err != nil || strings.Join(r.Changes, "\n") != c[2] {
			t.Errorf("%s: %q (%v)\nwant %q", c[1], r.Changes, err, c[2])
		}
	}
}

func TestRepairGuessesTheFormat(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a": 1`, "", "json"}, {"```yaml\na: 1\n```", "", "yaml"}, {"[server]\nport: 1\nhost = 'x'\n", "", "toml"},
		{"a: b: c\n", "", "yaml"}, {"- a\n- b: [\n", "", "yaml"}, {"[1, 2", "", "json"}, {`"a": 1`, "", "json"},
		{"a: 1", "toml: expected =", "toml"}, {"{a: 1", "yaml: line 1: did not find", "yaml"}, {"name = \"x\n", "", "toml"},
	} {
		if got := guessFormat(c[0], c[1]); got != c[2] {
			t.Errorf("%q, %q: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

func TestRepairHoldsTheErrorAgainstItsChanges(t *testing.T) {
	const text = "{\n\"a\": 1,\n}\n"
	for message, warned := range map[string]bool{
		"": false, "trailing comma: line 2 column 8 (char 9)": false, "f.json:3:1: unexpected }": false,
		"Unexpected token } in JSON at position 10": false, "line 17: expected ','": true,
	} {
		c := &sdk.Call{}
		r, err := Repair(c, RepairParams{Text: text, Error: message})
		if err != nil || (len(c.Warnings()) > 0) != warned {
			t.Errorf("%q: %+v, %v, %v", message, r, c.Warnings(), err)
		}
	}
}

func TestUnrepairableSaysWhereAndWhy(t *testing.T) {
	_, err := Repair(&sdk.Call{}, RepairParams{Text: "{\n  \"a\": 1,\n  {{b}}: 2\n}"})
	if outcome(err) != "unrepairable" || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("%v", err)
	}
	_, err = Repair(&sdk.Call{}, RepairParams{Text: "base: &b\n  x: 1\nd:\n  <<: *c\n  y: 2\n", Format: "yaml"})
	if outcome(err) != "unrepairable" || !strings.Contains(err.Error(), "line 4: unknown anchor 'c'") {
		t.Errorf("%v", err)
	}
}

func TestChangesAreBounded(t *testing.T) {
	c := &sdk.Call{}
	r, err := Repair(c, RepairParams{Text: "[" + strings.Repeat("True,", 300) + "1]"})
	if err != nil || len(r.Changes) != 200 || len(c.Warnings()) != 1 || !json.Valid([]byte(r.Text)) {
		t.Error(len(r.Changes), c.Warnings(), err)
	}
}

func FuzzRepair(f *testing.F) {
	for _, text := range []string{`{"a": 1,}`, "a:\n\tb: 1\n", "a: b: c\n- d", "a: 1\nb = [\n", "[a]\nb.c = 1\n[a.b]\n", "a = 1979-05-27 07:32:00Z\n",
		"[[a]]\n[a.b]\n[[a]]\n[a.b]\nc = {d.e = 1, d.f = 01}\n", "a = 0x_1\nb = '''\n'''\n"} {
		for _, format := range []string{"json", "yaml", "toml"} {
			f.Add(text, format)
		}
	}
	f.Fuzz(func(t *testing.T, text, format string) {
		if text == "" || len(text) > 2000 {
			return
		}
		parses := func(text string) error {
			var v any
			switch format {
			case "yaml":
				return yaml.Unmarshal([]byte(text), &yaml.Node{})
			case "toml":
				return toml.Unmarshal([]byte(text), &v)
			}
			return json.Unmarshal([]byte(text), &v)
		}
		if format != "json" && format != "yaml" && format != "toml" {
			return
		}
		r, err := Repair(&sdk.Call{}, RepairParams{Text: text, Format: format})
		if err != nil {
			if parses(text) == nil && format != "yaml" { // what YAML holds after its first document counts, too
				t.Errorf("%s %q parses, but: %v", format, text, err)
			}
			return
		}
		if err := parses(r.Text); err != nil {
			t.Errorf("%s %q became %q: %v", format, text, r.Text, err)
		}
		if parses(text) == nil && r.Text != text && format != "yaml" {
			t.Errorf("%s %q is right, but became %q", format, text, r.Text)
		}
		again, err := Repair(&sdk.Call{}, RepairParams{Text: r.Text, Format: format})
		if err != nil || r.Text != "" && again.Text != r.Text {
			t.Errorf("%s %q became %q, then %q, %v", format, text, r.Text, again.Text, err)
		}
	})
}
