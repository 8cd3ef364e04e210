package manifest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files of this package")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", path, got)
	}
}

// TestDescribe compares all tiers of all tools with golden files: the text, then the JSON.
func TestDescribe(t *testing.T) {
	data, err := os.ReadFile("../plugins/text/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := Parse(data, hostVersion)
	if err != nil {
		t.Fatal(err)
	}
	hash := *text
	hash.Tools = []Tool{*text.Tool("hash"), *text.Tool("find")}
	for name, m := range map[string]*Manifest{"notes": parsed(t), "text": &hash} {
		var texts, docs bytes.Buffer
		enc := json.NewEncoder(&docs)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		for i := range m.Tools {
			for tier := Tier1; tier <= Tier3; tier++ {
				d := Describe(m, &m.Tools[i], tier)
				texts.WriteString(d.Text() + "\n")
				if err := enc.Encode(d); err != nil {
					t.Fatal(err)
				}
				if again := Describe(m, &m.Tools[i], tier); !reflect.DeepEqual(d, again) {
					t.Errorf("%s: two descriptions of tier %d differ", d.Name, tier)
				}
			}
		}
		golden(t, name+".txt", texts.String())
		golden(t, name+".jsonl", docs.String())
	}
}

// TestDescribeChangesNothing checks that a change of a description does not change the manifest.
func TestDescribeChangesNothing(t *testing.T) {
	m, untouched := parsed(t), parsed(t)
	for i := range m.Tools {
		d := Describe(m, &m.Tools[i], Tier3)
		for j := range d.Related {
			d.Related[j].Why = "changed"
		}
		for j := range d.Positional {
			d.Positional[j] = "changed"
		}
	}
	if !reflect.DeepEqual(m, untouched) {
		t.Error("a description shares memory with its manifest")
	}
}

func TestDescribeCleans(t *testing.T) {
	const bad = "a\x1b[31m\u202eb\u200b\U000e0041"
	m := &Manifest{Name: "p", Kind: KindExtism, ExitCodes: []ExitCode{{10, "x", bad, "", bad}}, Tools: []Tool{{
		Name: "t", Group: bad, Docs: Docs{bad, bad + "\n" + bad, bad}, Since: bad, When: bad, WhenNot: bad,
		Effect: EffectRead,
		Params: json.RawMessage("{\"properties\":{\"" + bad[:1] +
			"\u202e\":{\"type\":\"\\u001b[1mx\",\"description\":\"\\u001b[31m\u202e\",\"enum\":[\"\u202e\"]," +
			"\"default\":\"\u200b\"}}}"),
		Returns:    json.RawMessage("{\"type\":\"string\",\"description\":\"\u202e\",\"title\":\"\\u001b]0;x\\u0007\"}"),
		Positional: []string{bad}, ExitCodes: []string{"x"}, Aliases: []string{bad}, Keywords: []string{bad},
		Tasks: []string{bad}, Limitations: []string{bad},
		Examples: []Example{{Title: bad, Params: json.RawMessage("{\"a\":\"\u202e\\u001b\"}"),
			Result: json.RawMessage("\"\u200b\"")}},
		Related:    []Related{{bad, bad}},
		Deprecated: &Deprecated{Message: bad, Use: bad},
	}}}
	for tier := Tier1; tier <= Tier3; tier++ {
		d := Describe(m, &m.Tools[0], tier)
		if text := d.Text(); Clean(text) != text {
			t.Errorf("tier %d: %q", tier, text)
		}
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range string(raw) {
			if Hidden(r) {
				t.Errorf("tier %d contains %U: %s", tier, r, raw)
				break
			}
		}
		for _, e := range d.Examples {
			if decoded(t, e.Params).(map[string]any)["a"] != "\u202e\x1b" {
				t.Errorf("the example's data has changed: %s", e.Params)
			}
			e.Params, e.Command, e.Result = nil, "", nil
		}
	}
	d := Describe(m, &m.Tools[0], Tier3)
	d.Examples, d.Parameters = nil, nil
	raw, _ := json.Marshal(d)
	if texts := textsOf(decoded(t, raw)); Clean(texts) != texts {
		t.Errorf("texts are not clean: %q", texts)
	}
	if d.Note != "not checked by the host: params" {
		t.Errorf("the note is %q, but its params schema does not pass the gate", d.Note)
	}
	m.Tools[0].Params = json.RawMessage(`{"type":"object"}`)
	if d := Describe(m, &m.Tools[0], Tier3); d.Note != "" {
		t.Errorf("the note is %q, but its schemas pass the gate", d.Note)
	}
}

func TestDescribeWithoutExample(t *testing.T) {
	m := &Manifest{Name: "p"}
	for schema, want := range map[string]string{
		`{"type":"object"}`: `p.t`,
		`{"properties":{"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"a":{"type":"array"},"o":{"type":"object"},"x":{},"e":{"enum":["q","r"]},"d":{"type":"string","default":"w"},"u":{"type":["integer","null"]},"z":{"type":"null"},"opt":{"type":"string"}},"required":["s","i","n","b","a","o","x","e","d","u","z"]}`: `p.t {"s":"text","i":1,"n":1,"b":true,"a":[],"o":{},"x":"text","e":"q","d":"w","u":1,"z":null}`,
	} {
		d := Describe(m, &Tool{Name: "t", Effect: EffectRead, Params: json.RawMessage(schema)}, Tier2)
		if len(d.Examples) != 1 || d.Call(d.Examples[0]) != want || !json.Valid(d.Examples[0].Params) {
			t.Errorf("got %+v, expected %s", d.Examples, want)
		}
	}
	if d := Describe(m, &Tool{Name: "event", Params: json.RawMessage(`{}`)}, Tier2); d.Examples == nil || len(d.Examples) > 0 {
		t.Errorf("a type or event has the examples %+v", d.Examples)
	}
}

func TestTokens(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 4: 1, 5: 2, 9: 2, 10: 3, 45: 10, 450: 100} {
		if got := Tokens(strings.Repeat("x", n)); got != want {
			t.Errorf("%d bytes: %d tokens, expected %d", n, got, want)
		}
	}
}

func ran(r ExampleRun) func() *ExampleRun { return func() *ExampleRun { return &r } }

// TestExampleRuns checks that a declared outcome is shown only if no run contradicts it.
func TestExampleRuns(t *testing.T) {
	m := &Manifest{Name: "p", Tools: []Tool{{Name: "get", Effect: EffectRead, Examples: []Example{
		{Title: "Unknown", Params: json.RawMessage(`{}`), Result: json.RawMessage(`1`)},
		{Title: "True", Params: json.RawMessage(`{}`), Result: json.RawMessage(`2`),
			Run: ran(ExampleRun{Verified: "parley 0.1.0"})},
		{Title: "False", Params: json.RawMessage(`{}`), Result: json.RawMessage(`3`),
			Run: ran(ExampleRun{Differs: "it ended in\x1b[31m exit code 10", ExitCode: 10})},
	}}}}
	docs := Describe(m, &m.Tools[0], Tier3)
	got, err := json.Marshal(docs.Examples)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"title":"Unknown","kind":"common","params":{},"exit_code":0,"result":1},` +
		`{"title":"True","kind":"common","params":{},"exit_code":0,"result":2,"verified":"parley 0.1.0"},` +
		`{"title":"False","kind":"common","params":{},"exit_code":10,"differs":"it ended in\\u001b[31m exit code 10"}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if text := docs.Text(); !strings.Contains(text, "Example (differs: it ended in\\u001b[31m exit code 10): p.get\n") {
		t.Errorf("the text is\n%s", text)
	}
}
