package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// repeated returns n parts with a comma between them, in which I is the number of the part.
func repeated(n int, part string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(part, "I", fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

// TestWhatIsLeftOutIsCounted checks that a type in one line shows or counts each of its parts, however many there are.
func TestWhatIsLeftOutIsCounted(t *testing.T) {
	cut := regexp.MustCompile(`… (\d+) more`)
	for _, tt := range []struct{ name, before, part, after string }{
		{"a union", `{"anyOf":[`, `{"type":"string","format":"kIx"}`, `]}`},
		{"types", `{"type":[`, `"kIx"`, `]}`},
		{"an enum", `{"enum":[`, `"kIx"`, `]}`},
		{"a tuple", `{"type":"array","prefixItems":[`, `{"const":"kIx"}`, `]}`},
		{"optional fields", `{"type":"object","properties":{`, `"kIx":{"type":"string"}`, `}}`},
	} {
		for n := 1; n < 60; n++ {
			for _, bytes := range []int{listBytes, nestedBytes, paramBytes, maxListing} {
				root := readNode([]byte(tt.before + repeated(n, tt.part) + tt.after))
				text, more := fit(root, root, bytes, false)
				counted := 0
				for _, found := range cut.FindAllStringSubmatch(text, -1) {
					n, _ := strconv.Atoi(found[1])
					counted += n
				}
				if shown := len(regexp.MustCompile(`k\d+x`).FindAllString(text, -1)); shown+counted != n || more != counted {
					t.Fatalf("%s of %d parts in %d bytes shows %d and counts %d: %s", tt.name, n, bytes, shown, more, text)
				}
				if bytes == maxListing && more > 0 {
					t.Errorf("%s of %d parts is not whole: %s", tt.name, n, text)
				}
			}
		}
	}
}

// TestTypes checks the type of each kind of schema in one line, and how much it counts as left out.
func TestTypes(t *testing.T) {
	for _, tt := range []struct {
		schema, want string
		more         int
	}{
		{`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, `[string, ...integer[]]`, 0},
		{`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":["integer","null"]}}`,
			`[string, ...(integer|null)[]]`, 0},
		{`{"type":"array","items":[{"type":"string"},{"type":"integer"}]}`, `[string, integer]`, 0},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"integer"}}`,
			`{a?: string, [key: string]: integer}`, 0},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{a?: string}`, 0},
		{`{"type":"object","properties":{"a":{"default":5}}}`, `{a?: any = 5}`, 0},
		{`{"type":"object","properties":{"a":{"default":{}},"b":{"default":[]},"c":{"default":null}}}`,
			`{a?: any, b?: any, c?: any}`, 0},
		{`{"type":"object","properties":{"a":{"default":"` + strings.Repeat("x", maxValue-2) + `"}}}`,
			`{a?: any = "` + strings.Repeat("x", maxValue-2) + `"}`, 0},
		{`{"type":"object","properties":{"a":{"default":"` + strings.Repeat("x", maxValue-1) + `"}}}`, `{a?: any}`, 1},
		{`{"type":"object","properties":{"a b":{"description":"D."}}}`, `{"a b"?: any}`, 1},
	} {
		root := readNode([]byte(tt.schema))
		if text, more := fit(root, root, paramBytes, false); text != tt.want || more != tt.more {
			t.Errorf("%s: %s and %d more, expected %s and %d more", tt.schema, text, more, tt.want, tt.more)
		}
	}
}

// TestSignatureNames checks that the names in a signature are those of the parameters, whatever their types contain.
func TestSignatureNames(t *testing.T) {
	const types = `{"type":"string"} {"enum":["a,b:c","(","\""]} {"type":["string","null"]} {"type":"array","items":{"type":"object"}}
		{"type":"object","properties":{"x":{"type":"object","properties":{"y":{},"z":{"enum":["}"]}}},"w":{"type":"integer"}}}
		{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]} {"type":"string","format":"date"}
		{"type":"object","additionalProperties":{"anyOf":[{"type":"string"},{"properties":{"x":{},"y":{}}}]}}`
	names := []string{"a", "b-c", "list[0,1]", "f(x,y)", "_"}
	for i, kind := range strings.Fields(types) {
		var properties []string
		for _, name := range names {
			properties = append(properties, fmt.Sprintf("%q:%s", name, kind))
		}
		tool := &Tool{Params: json.RawMessage(`{"type":"object","required":["a"],"properties":{` + strings.Join(properties, ",") + `}}`)}
		signature := TypedSignature("t", tool)
		if got := SignatureNames(signature); strings.Join(got, " ") != "a "+strings.Join(names[1:], "? ")+"?" {
			t.Errorf("type %d: the signature %s has the names %q, expected %q", i, signature, got, names)
		}
	}
}

// TestSignatureHasTheResult checks that a signature ends with the type of the result.
func TestSignatureHasTheResult(t *testing.T) {
	for _, tt := range []struct{ params, returns, want string }{
		{`{}`, ``, `t()`},
		{`{}`, `{"type":"object"}`, `t()`},
		{`{}`, `{"type":"string"}`, `t() -> string`},
		{`{"properties":{"a":{"enum":["x","y"]}},"required":["a"]}`,
			`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, `t(a: "x"|"y") -> {n: integer}`},
		{`{}`, `{"type":"object","properties":{` + repeated(9, `"kI":{"type":"string"}`) + `}}`, `t() -> {… 9 more}`},
	} {
		tool := &Tool{Params: json.RawMessage(tt.params), Returns: json.RawMessage(tt.returns)}
		if got := TypedSignature("t", tool); got != tt.want {
			t.Errorf("%s returns %s: %s, expected %s", tt.params, tt.returns, got, tt.want)
		}
	}
}
