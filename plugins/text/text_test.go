//go:build !wasip1

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	sdk "github.com/parley-tools/parley/sdk/go"
)

func TestExamplesEndAsDeclared(t *testing.T) {
	if err := sdk.Check(); err != nil {
		t.Error(err)
	}
}

func TestManifestIsCommitted(t *testing.T) {
	want, err := sdk.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("manifest.json differs from the code; regenerate it with: go run . >manifest.json")
	}
}

func TestHash(t *testing.T) {
	for _, c := range []struct{ algorithm, want string }{
		{"", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
		{"sha256", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
		{"sha1", "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"},
		{"md5", "5d41402abc4b2a76b9719d911017c592"},
		{"sha512", "9b71d224bd62f3785d96d46ad3ea3d73319bfbc2890caadae2dff72519673ca7" +
			"2323c3d99ba5c11d7c7acc6e14b8c5da0c4663475c2e5c3adef46f73bcdec043"},
	} {
		got, err := Hash(&sdk.Call{}, HashParams{Text: "hello", Algorithm: c.algorithm})
		if err != nil || got.Hex != c.want {
			t.Errorf("%q: %v, %v; want %v", c.algorithm, got.Hex, err, c.want)
		}
	}
}

func TestDecodeReversesEncode(t *testing.T) {
	for _, text := range []string{"", "a", "ab", "abc", "a b&c=d/é?", "<b>\"'</b>", "100 %+\n", "日本"} {
		for _, encoding := range []string{"base64", "base64url", "base32", "hex", "url", "html"} {
			encoded, err := Encode(nil, EncodeParams{text, encoding})
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(nil, DecodeParams{encoded.Text, encoding})
			if err != nil || got.Text == nil || *got.Text != text || got.Bytes != len(text) {
				t.Errorf("%s of %q is %q, decoded: %+v, %v", encoding, text, encoded.Text, got, err)
			}
		}
	}
}

func TestDecodeIsLenientAboutLayoutOnly(t *testing.T) {
	for _, c := range []struct{ from, text, want string }{
		{"base64", "aGVs\n bG8", "hello"},
		{"base64url", "_-8=", ""}, // not UTF-8
		{"base32", "nbsw y3dp", "hello"},
		{"hex", "68 65 6C 6c 6f", "hello"},
		{"url", "a+b%20c", "a b c"},
	} {
		got, err := Decode(nil, DecodeParams{c.text, c.from})
		if err != nil || c.want != "" && (got.Text == nil || *got.Text != c.want) {
			t.Errorf("%s %q: %+v, %v", c.from, c.text, got, err)
		}
	}
	for _, c := range []DecodeParams{{"a", "base64"}, {"!", "base64url"}, {"1", "base32"}, {"0g", "hex"}, {"%zz", "url"}} {
		_, err := Decode(nil, c)
		var exit *sdk.ExitError
		if !errors.As(err, &exit) || exit.Name != "malformed" {
			t.Errorf("%+v: %v, want malformed", c, err)
		}
	}
}

func TestFindPositions(t *testing.T) {
	got, err := Find(&sdk.Call{}, FindParams{Text: "ab\nécb\n\nb", Pattern: "b$"})
	if err != nil {
		t.Fatal(err)
	}
	want := "[{b 1 2 []} {b 2 3 []} {b 4 1 []}]"
	if s := fmt.Sprint(got.Matches); s != want || got.Total != 3 {
		t.Errorf("%s, %d; want %s, 3", s, got.Total, want)
	}
	c := &sdk.Call{}
	got, err = Find(c, FindParams{Text: strings.Repeat("a", 500), Pattern: "a"})
	if err != nil || len(got.Matches) != 100 || got.Total != 500 || len(c.Warnings()) != 1 {
		t.Errorf("%d of %d, %v, %v", len(got.Matches), got.Total, c.Warnings(), err)
	}
	got, err = Find(c, FindParams{Text: "ab", Pattern: "(x)?(b)"})
	if s := fmt.Sprintf("%q", got.Matches[0].Groups); err != nil || s != `["" "b"]` {
		t.Errorf("groups %s, %v", s, err)
	}
}

func TestPatternErrors(t *testing.T) {
	for pattern, want := range map[string]string{"(": "missing closing", "(?<=a)b": "look-behind",
		"a(?!b)": "look-ahead"} {
		_, err := Find(&sdk.Call{}, FindParams{Text: "a", Pattern: pattern})
		var invalid *sdk.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(invalid.Provided+invalid.Suggestion, want) {
			t.Errorf("%s: %+v does not say %q", pattern, invalid, want)
		}
	}
}

func TestReplace(t *testing.T) {
	for _, c := range []struct {
		p     ReplaceParams
		want  string
		count int
	}{
		{ReplaceParams{Text: "a1b22", Pattern: `\d+`, Replacement: "<$0>"}, "a<1>b<22>", 2},
		{ReplaceParams{Text: "a\nb", Pattern: "^", Replacement: "> "}, "> a\n> b", 2},
		{ReplaceParams{Text: "x.y", Pattern: ".", Replacement: "$", Literal: true}, "x$y", 1},
		{ReplaceParams{Text: "5", Pattern: "5", Replacement: "$$5"}, "$5", 1},
		{ReplaceParams{Text: "Ab", Pattern: "aB", Replacement: "", IgnoreCase: true}, "", 1},
	} {
		got, err := Replace(nil, c.p)
		if err != nil || got.Text != c.want || got.Count != c.count {
			t.Errorf("%+v: %+v, %v; want %q, %d", c.p, got, err, c.want, c.count)
		}
	}
}

func TestGrowthIsBounded(t *testing.T) {
	long := strings.Repeat("a", 3000)
	_, err := Replace(nil, ReplaceParams{Text: long, Pattern: "a", Replacement: long})
	checkExit(t, err, "too_large")
	_, err = Replace(nil, ReplaceParams{Text: strings.Repeat("a", 1_000_001), Pattern: "a", Replacement: ""})
	checkExit(t, err, "too_large")
	_, err = Diff(&sdk.Call{}, DiffParams{Before: strings.Repeat("\n", maxLines+1)})
	checkExit(t, err, "too_large")
	c := &sdk.Call{}
	found, err := Find(c, FindParams{Text: strings.Repeat("a", 1_000_001), Pattern: "a"})
	if err != nil || found.Total != 1_000_000 || len(c.Warnings()) != 1 {
		t.Errorf("%d, %v, %v", found.Total, c.Warnings(), err)
	}
	raw, _ := json.Marshal(long)
	_, err = Template(nil, TemplateParams{Template: strings.Repeat("{{a}}", 3000),
		Values: map[string]json.RawMessage{"a": raw}})
	checkExit(t, err, "too_large")
}

func checkExit(t *testing.T, err error, name string) {
	t.Helper()
	var exit *sdk.ExitError
	if !errors.As(err, &exit) || exit.Name != name {
		t.Errorf("error %v, want %s", err, name)
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""},
		{"a", "a", ""},
		{"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
		{"a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\nX\n3\n4\n5\n6\n7\nY\n9\n",
			"@@ -1,9 +1,9 @@\n 1\n-2\n+X\n 3\n 4\n 5\n 6\n 7\n-8\n+Y\n 9\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\na\nb\n", "X\n2\n3\n4\n5\n6\n7\n8\n9\na\nY\n",
			"@@ -1,4 +1,4 @@\n-1\n+X\n 2\n 3\n 4\n@@ -8,4 +8,4 @@\n 8\n 9\n a\n-b\n+Y\n"},
	} {
		got, err := Diff(&sdk.Call{}, DiffParams{Before: c.before, After: c.after})
		if err != nil || got.Diff != c.want {
			t.Errorf("%q to %q:\n%s\nwant\n%s(%v)", c.before, c.after, got.Diff, c.want, err)
		}
	}
}

// TestDiffIsApplicable applies the edits of random texts and compares their number
// with the length of the longest common subsequence.
func TestDiffIsApplicable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []string {
		text := make([]string, r.IntN(12))
		for i := range text {
			text[i] = string(rune('a' + r.IntN(4)))
		}
		return text
	}
	for range 3000 {
		a, b := random(), random()
		edits, minimal := compare(a, b)
		var gotA, gotB []string
		changes := 0
		for _, e := range edits {
			if e.op != '+' {
				gotA = append(gotA, e.line)
			}
			if e.op != '-' {
				gotB = append(gotB, e.line)
			}
			if e.op != ' ' {
				changes++
			}
		}
		if strings.Join(gotA, "") != strings.Join(a, "") || strings.Join(gotB, "") != strings.Join(b, "") {
			t.Fatalf("%v to %v: %v", a, b, edits)
		}
		if want := len(a) + len(b) - 2*common(a, b); !minimal || changes != want {
			t.Fatalf("%v to %v takes %d changes, want %d", a, b, changes, want)
		}
	}
}

func common(a, b []string) int {
	table := make([][]int, len(a)+1)
	table[0] = make([]int, len(b)+1)
	for i := range a {
		table[i+1] = make([]int, len(b)+1)
		for j := range b {
			table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			if a[i] == b[j] {
				table[i+1][j+1] = table[i][j] + 1
			}
		}
	}
	return table[len(a)][len(b)]
}

func TestLargeDiffIsBounded(t *testing.T) {
	var a, b strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&a, "a%d\n", i)
		fmt.Fprintf(&b, "b%d\n", i)
	}
	c := &sdk.Call{}
	got, err := Diff(c, DiffParams{Before: a.String(), After: b.String()})
	if err != nil || got.Added != 10000 || got.Removed != 10000 || len(c.Warnings()) != 1 {
		t.Errorf("+%d -%d, %v, %v", got.Added, got.Removed, c.Warnings(), err)
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]CountResult{
		"":         {},
		"a":        {1, 1, 1, 1, 1},
		"a\n":      {2, 2, 1, 1, 1},
		"é b\n\nc": {7, 6, 3, 3, 2},
	} {
		if got, _ := Count(nil, CountParams{text}); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestTemplate(t *testing.T) {
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(`{"a":"x<y","n":12345678901234567890,"o":{"p":{"q":true}},"d.e":"dot","l":[1,"b"]}`),
		&values); err != nil {
		t.Fatal(err)
	}
	for template, want := range map[string]string{
		"":                  "",
		"plain } text {":    "plain } text {",
		"{{a}}{{ a }}":      "x<yx<y",
		"{{n}}":             "12345678901234567890",
		"{{o.p.q}} {{o.p}}": `true {"q":true}`,
		"{{d.e}}":           "dot",
		"{{l}}":             `[1,"b"]`,
		"open {{a":          "open {{a",
	} {
		got, err := Template(nil, TemplateParams{Template: template, Values: values})
		if err != nil || got.Text != want {
			t.Errorf("%q: %q, %v; want %q", template, got.Text, err, want)
		}
	}
	_, err := Template(nil, TemplateParams{Template: "{{no}} {{o.no}} {{}}", Values: values})
	checkExit(t, err, "missing_value")
	if !strings.Contains(err.Error(), "no, o.no") {
		t.Errorf("%v does not name the missing value", err)
	}
	got, err := Template(nil, TemplateParams{Template: "a{{no}}b", Values: values, Missing: "empty"})
	if err != nil || got.Text != "ab" {
		t.Errorf("%q, %v", got.Text, err)
	}
}
