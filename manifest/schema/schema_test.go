package schema

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/manifest/jsontext"
)

type compileFunc func([]byte) (*Schema, error)

var compilers = map[string]compileFunc{"trusted": CompileTrusted, "untrusted": CompileUntrusted}

func decode(t testing.TB, text string) any {
	t.Helper()
	v, err := jsontext.Decode([]byte(text), jsontext.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func compile(t testing.TB, f compileFunc, schema string) *Schema {
	t.Helper()
	s, err := f([]byte(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

// line formats a violation on one line: pointer, keyword, provided, expected, and the proposals.
func line(v Violation) string {
	s := fmt.Sprintf("%s | %s | %s | %s", v.Pointer, v.Keyword, v.Provided, v.Expected)
	if v.DidYouMean != nil {
		s += fmt.Sprintf(" | near %v", v.DidYouMean)
	}
	return s
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name, schema, value string
		want                []string
		only                string // the compiler that accepts the schema, if not both
	}{
		{"valid", `{"type":"object"}`, `{}`, nil, ""},
		{"true", `true`, `[1]`, nil, ""},
		{"false", `false`, `1`, []string{` | false | number 1 | nothing here`}, ""},
		{"type", `{"type":"string"}`, `3`, []string{` | type | number 3 | string`}, ""},
		{"type null", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":null}`, []string{`/a | type | null | string`}, ""},
		{"type null required", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":null}`, []string{`/a | type | null | string`}, ""},
		{"type integer", `{"type":"integer"}`, `3.5`, []string{` | type | number 3.5 | integer`}, ""},
		{"type integer as float", `{"type":"integer"}`, `3.0`, nil, ""},
		{"type with a coercion", `{"type":"integer","minimum":1}`, `"5"`, []string{` | type | string "5" | integer >= 1`}, ""},
		{"type list", `{"type":["string","null"]}`, `[1]`, []string{` | type | array[1] | string or null`}, ""},
		{"type array of", `{"type":"array","items":{"type":"string"}}`, `{}`, []string{` | type | object | array of string`}, ""},
		{"long string", `{"type":"integer"}`, `"` + strings.Repeat("é", 100) + `"`, []string{` | type | string "` + strings.Repeat("é", 60) + `…" | integer`}, ""},
		{"enum", `{"enum":["png","jpeg","webp"]}`, `"jpg"`, []string{` | enum | string "jpg" | one of "png", "jpeg", "webp" | near [jpeg]`}, ""},
		{"enum between two", `{"enum":["left","lift"]}`, `"lxft"`, []string{` | enum | string "lxft" | one of "left", "lift" | near [left lift]`}, ""},
		{"enum case", `{"enum":["png","jpeg"]}`, `"PNG"`, []string{` | enum | string "PNG" | one of "png", "jpeg" | near [png]`}, ""},
		{"enum far", `{"enum":["png","jpeg"]}`, `"tiff"`, []string{` | enum | string "tiff" | one of "png", "jpeg"`}, ""},
		{"enum other type", `{"enum":[1,2]}`, `"2"`, []string{` | enum | string "2" | one of 1, 2 | near [2]`}, ""},
		{"enum by value", `{"enum":[1,{"a":2}]}`, `{"a":2.0}`, nil, ""},
		{"const", `{"const":{"a":1}}`, `{}`, []string{` | const | object | exactly {"a":1}`}, ""},
		{"const null", `{"const":null}`, `0`, []string{` | const | number 0 | exactly null`}, ""},
		{"minimum", `{"type":"number","minimum":1.5}`, `1`, []string{` | minimum | number 1 | number >= 1.5`}, ""},
		{"maximum", `{"type":"integer","minimum":1,"maximum":10}`, `11`, []string{` | maximum | number 11 | integer >= 1 and <= 10`}, ""},
		{"the end of a type, shown to those who break it", `{"type":"integer","minimum":1,"maximum":9223372036854775807}`, `9223372036854775808`,
			[]string{` | maximum | number 9223372036854775808 | integer >= 1 and <= 9223372036854775807`}, ""},
		{"the end of a type, not shown to others", `{"type":"integer","minimum":1,"maximum":9223372036854775807}`, `0`,
			[]string{` | minimum | number 0 | integer >= 1`}, ""},
		{"format", `{"type":"string","format":"date-time"}`, `"a"`, nil, ""},
		{"format asserted", `{"type":"string","format":"date-time","x-assert":true}`, `"2026-02-29T00:00:00Z"`,
			[]string{` | format | string "2026-02-29T00:00:00Z" | string (date-time)`}, ""},
		{"format asserted, valid", `{"type":"string","format":"date-time","x-assert":true}`, `"2028-02-29T23:59:59.5+23:59"`, nil, ""},
		{"contentEncoding", `{"type":"string","contentEncoding":"base64"}`, `"a"`, nil, ""},
		{"contentEncoding asserted", `{"type":["string","null"],"contentEncoding":"base64","x-assert":true}`, `"AA="`,
			[]string{` | format | string "AA=" | string or null`}, ""},
		{"contentEncoding not asserted", `{"type":"string","contentEncoding":"base64","x-assert":false}`, `"a"`, nil, ""},
		{"exclusiveMinimum", `{"type":"integer","exclusiveMinimum":0}`, `0`, []string{` | exclusiveMinimum | number 0 | integer > 0`}, ""},
		{"exclusiveMaximum", `{"type":"number","exclusiveMaximum":1}`, `1`, []string{` | exclusiveMaximum | number 1 | number < 1`}, ""},
		{"multipleOf", `{"type":"number","multipleOf":0.1}`, `0.25`, []string{` | multipleOf | number 0.25 | number, a multiple of 0.1`}, ""},
		{"multipleOf exact", `{"multipleOf":0.1}`, `0.3`, nil, ""},
		{"minLength", `{"type":"string","minLength":1}`, `""`, []string{` | minLength | string "" | string of at least 1 character`}, ""},
		{"maxLength", `{"type":"string","maxLength":2}`, `"éèà"`, []string{` | maxLength | string "éèà" | string of at most 2 characters`}, ""},
		{"length as float", `{"maxLength":2.0}`, `"abc"`, []string{` | maxLength | string "abc" | string of at most 2 characters`}, ""},
		{"pattern", `{"type":"string","pattern":"^[a-z]+$"}`, `"A"`, []string{` | pattern | string "A" | string matching ^[a-z]+$`}, ""},
		{"format is an annotation", `{"type":"string","format":"email"}`, `"x"`, nil, ""},
		{"content is an annotation", `{"type":"string","contentEncoding":"base64","contentMediaType":"application/json"}`, `"%"`, nil, ""},
		{"required", `{"properties":{"a":{"type":"string"},"b/~":{}},"required":["b/~","a","c"]}`, `{}`,
			[]string{`/a | required | nothing | string`, `/b~1~0 | required | nothing | any value`, `/c | required | nothing | a value`}, ""},
		{"required with one value", `{"properties":{"a":{"const":"x"},"b":{"default":5}},"required":["a","b"]}`, `{}`,
			[]string{`/a | required | nothing | exactly "x"`, `/b | required | nothing | any value`}, ""},
		{"additionalProperties", `{"properties":{"urls":{},"name":{}},"additionalProperties":false}`, `{"url":1,"zzz":2}`,
			[]string{`/url | additionalProperties | number 1 | one of "name", "urls" | near [urls]`,
				`/zzz | additionalProperties | number 2 | one of "name", "urls"`}, ""},
		{"additionalProperties, the intended one is given", `{"properties":{"urls":{}},"additionalProperties":false}`, `{"url":1,"urls":2}`,
			[]string{`/url | additionalProperties | number 1 | one of "urls"`}, ""},
		{"additionalProperties schema", `{"additionalProperties":{"type":"integer"}}`, `{"a.b":"x"}`, []string{`/a.b | type | string "x" | integer`}, ""},
		{"additionalProperties none", `{"additionalProperties":false}`, `{"a":1}`, []string{`/a | additionalProperties | number 1 | no property here`}, ""},
		{"dots and slashes in names", `{"properties":{"a.b":{"properties":{"c":{"type":"null"}}},"a":{"properties":{"b.c":{"type":"null"}}}}}`,
			`{"a.b":{"c":1},"a":{"b.c":2}}`, []string{`/a/b.c | type | number 2 | null`, `/a.b/c | type | number 1 | null`}, ""},
		{"patternProperties", `{"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`, `{"x-a":1}`, []string{`/x-a | type | number 1 | string`}, ""},
		{"propertyNames", `{"propertyNames":{"enum":["alpha","beta"]}}`, `{"alpah":1}`,
			[]string{`/alpah | propertyNames | the name "alpah" | a property whose name is one of "alpha", "beta" | near [alpha]`}, ""},
		{"minProperties", `{"type":"object","minProperties":2}`, `{"a":1}`, []string{` | minProperties | object | object with at least 2 properties`}, ""},
		{"maxProperties", `{"type":"object","maxProperties":1}`, `{"a":1,"b":2}`, []string{` | maxProperties | object | object with at most 1 property`}, ""},
		{"dependencies", `{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"a":1,"c":1}`,
			[]string{`/b | dependentRequired | nothing | a value because "a" is given`, `/d | required | nothing | a value`}, ""},
		{"dependentRequired", `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"a":{"maxProperties":0}}}`, `{"a":1}`,
			[]string{` | maxProperties | object | object with at most 0 properties`, `/b | dependentRequired | nothing | a value because "a" is given`}, ""},
		{"items", `{"items":{"type":"string"}}`, `["a",1,null]`, []string{`/1 | type | number 1 | string`, `/2 | type | null | string`}, ""},
		{"items sorted by number", `{"items":{"type":"null"}}`, `[null,null,1,0,0,0,0,0,0,0,0]`, []string{`/2 | type | number 1 | null`,
			`/3 | type | number 0 | null`, `/4 | type | number 0 | null`, `/5 | type | number 0 | null`, `/6 | type | number 0 | null`,
			`/7 | type | number 0 | null`, `/8 | type | number 0 | null`, `/9 | type | number 0 | null`, `/10 | type | number 0 | null`}, ""},
		{"tuple", `{"items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}`, `[1,"x",null]`,
			[]string{`/0 | type | number 1 | string`, `/1 | type | string "x" | integer`, `/2 | false | null | nothing here`}, ""},
		{"prefixItems", `{"prefixItems":[{"type":"string"}],"items":{"type":"null"}}`, `[1,1]`,
			[]string{`/0 | type | number 1 | string`, `/1 | type | number 1 | null`}, ""},
		{"minItems", `{"type":"array","minItems":1,"items":{"type":"string"}}`, `[]`, []string{` | minItems | array[0] | array of string with at least 1 item`}, ""},
		{"maxItems", `{"type":"array","maxItems":2.0}`, `[1,2,3]`, []string{` | maxItems | array[3] | array with at most 2 items`}, ""},
		{"uniqueItems", `{"uniqueItems":true}`, `[1,1.0,{"a":1,"b":2},{"b":2,"a":1}]`,
			[]string{` | uniqueItems | array[4] | array without duplicates`}, ""},
		{"contains", `{"contains":{"type":"string"}}`, `[1]`, []string{` | contains | array[1] | array with at least 1 item that is string`}, ""},
		{"minContains", `{"contains":{"type":"string"},"minContains":2}`, `["a"]`, []string{` | contains | array[1] | array with at least 2 items that are string`}, "untrusted"},
		{"maxContains", `{"contains":{"type":"string"},"maxContains":1}`, `["a","b"]`, []string{` | maxContains | array[2] | array with at most 1 item that is string`}, "untrusted"},
		{"allOf", `{"allOf":[{"required":["a"]},{"properties":{"a":{"type":"string"}}}]}`, `{}`, []string{`/a | required | nothing | string`}, ""},
		{"allOf twice the same", `{"allOf":[{"type":"string"},{"type":"string"}]}`, `1`, []string{` | type | number 1 | string`}, ""},
		{"anyOf types", `{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`, `3`, []string{` | type | number 3 | string or array of string`}, ""},
		{"anyOf consts", `{"anyOf":[{"const":"on"},{"enum":["off","auto"]}]}`, `"of"`, []string{` | enum | string "of" | one of "on", "off", "auto" | near [off]`}, ""},
		{"anyOf, one alternative of the type", `{"anyOf":[{"type":"string"},{"type":"object","required":["a"]}]}`, `{}`, []string{`/a | required | nothing | a value`}, ""},
		{"anyOf tie", `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, []string{` | anyOf | object | object with "a" or "b"`}, ""},
		{"oneOf tag", `{"oneOf":[{"properties":{"kind":{"const":"a"},"x":{"type":"string"}},"required":["kind","x"]},{"properties":{"kind":{"const":"b"}},"required":["kind"]}]}`,
			`{"kind":"a","x":1}`, []string{`/x | type | number 1 | string`}, ""},
		{"oneOf unknown tag", `{"oneOf":[{"properties":{"kind":{"const":"left"}},"required":["kind"]},{"properties":{"kind":{"const":"right"}},"required":["kind"]}]}`,
			`{"kind":"rihgt"}`, []string{`/kind | enum | string "rihgt" | one of "left", "right" | near [right]`}, ""},
		{"oneOf unknown tag beside a property of one branch", `{"oneOf":[{"properties":{"kind":{"const":"left"},"l":{}},"required":["kind","l"]},{"properties":{"kind":{"const":"right"},"r":{}},"required":["kind","r"]}]}`,
			`{"kind":"up","l":1}`, []string{`/kind | enum | string "up" | one of "left", "right"`}, ""},
		{"anyOf, the branch with the property that was given", steps, `{"ride":"car"}`,
			[]string{`/line | required | nothing | string`, `/ride | enum | string "car" | one of "bus", "tram"`}, ""},
		{"anyOf, the branch with the most properties", steps, `{"walk":900,"pace":"run"}`,
			[]string{`/pace | enum | string "run" | one of "slow", "fast"`, `/walk | maximum | number 900 | integer <= 500`}, ""},
		{"anyOf, a name that resembles", steps, `{"wlak":9}`, []string{`/walk | required | nothing | integer <= 500`}, ""},
		{"anyOf, nothing of any branch", steps, `{}`, []string{` | anyOf | object | object with "walk" or object with "ride", "line"`}, ""},
		{"anyOf, something of each", steps, `{"walk":900,"ride":"car","line":1}`,
			[]string{`/line | type | number 1 | string`, `/ride | enum | string "car" | one of "bus", "tram"`}, ""},
		{"anyOf, as much of each", steps, `{"walk":900,"ride":"car"}`, []string{`/walk | maximum | number 900 | integer <= 500`}, ""},
		{"anyOf, as much and as wrong of each", `{"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"null"}}}]}`, `{"a":1,"b":1}`,
			[]string{` | anyOf | object | in /a string or in /b null`}, ""},
		{"oneOf, two match", `{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `3`,
			[]string{` | oneOf | number 3 | a value that matches exactly one of the alternatives, this one matches 2: integer or number >= 2`}, ""},
		{"not", `{"not":{"type":"string"}}`, `"x"`, []string{` | not | string "x" | anything but string`}, ""},
		{"if then", `{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, []string{`/b | required | nothing | a value`}, ""},
		{"if else", `{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{}`, []string{`/c | required | nothing | a value`}, ""},
		{"unevaluatedProperties", `{"allOf":[{"properties":{"name":{}}}],"unevaluatedProperties":false}`, `{"name":1,"nmae2":1}`,
			[]string{`/nmae2 | unevaluatedProperties | number 1 | one of "name"`}, "untrusted"},
		{"unevaluatedItems", `{"prefixItems":[{}],"unevaluatedItems":false}`, `[1,2]`, []string{`/1 | false | number 2 | nothing here`}, "untrusted"},
		{"$ref", `{"$ref":"#/definitions/a","definitions":{"a":{"type":"object","properties":{"next":{"$ref":"#/definitions/a"},"v":{"type":"null"}}}}}`,
			`{"next":{"next":{"v":1}}}`, []string{`/next/next/v | type | number 1 | null`}, ""},
		{"$ref to the root", `{"items":{"$ref":"#"},"type":"array"}`, `[[[1]]]`, []string{`/0/0/0 | type | number 1 | array of array of array`}, ""},
		{"$ref escaped", `{"$ref":"#/definitions/a~1b%25","definitions":{"a/b%":{"type":"null"}}}`, `1`, []string{` | type | number 1 | null`}, ""},
		{"$ref into a tuple", `{"items":[{"type":"null"}],"additionalItems":{"$ref":"#/items/0"}}`, `[null,1]`, []string{`/1 | type | number 1 | null`}, ""},
		{"$id anchor", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#x"}},"definitions":{"x":{"$id":"#x","type":"null"}}}`, `{"a":1}`,
			[]string{`/a | type | number 1 | null`}, ""},
		{"$anchor", `{"$ref":"#x","$defs":{"x":{"$anchor":"x","type":"null"}}}`, `1`, []string{` | type | number 1 | null`}, ""},
		{"$ref ignores its siblings in draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/x","type":"null"}},"definitions":{"x":{}}}`, `{"a":1}`, nil, ""},
		{"$ref beside others in 2020-12", `{"properties":{"a":{"$ref":"#/$defs/x","minimum":2}},"$defs":{"x":{"type":"integer"}}}`, `{"a":1}`,
			[]string{`/a | minimum | number 1 | integer >= 2`}, "untrusted"},
		{"$ref by the root's own name", `{"$id":"https://example.com/s","$ref":"https://example.com/s#/$defs/x","$defs":{"x":{"type":"null"}}}`, `1`,
			[]string{` | type | number 1 | null`}, "untrusted"},
		{"keywords as property names", `{"properties":{"$ref":{"type":"string"},"enum":{"type":"null"},"const":{}},"default":{"$ref":"#/nowhere"},"enum":[{"$ref":"x","enum":1}]}`,
			`{"$ref":"x","enum":1}`, []string{`/enum | type | number 1 | null`}, ""},
		{"big numbers", `{"type":"integer","maximum":9007199254740993}`, `9007199254740994`,
			[]string{` | maximum | number 9007199254740994 | integer <= 9007199254740993`}, ""},
		{"several at once", `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"array","items":{"minimum":5}}},"required":["c"]}`, `{"b":1,"a":[1,9,2]}`,
			[]string{`/a/0 | minimum | number 1 | number >= 5`, `/a/2 | minimum | number 2 | number >= 5`, `/b | type | number 1 | string`, `/c | required | nothing | a value`}, ""},
	}
	for _, tt := range tests {
		for name, f := range compilers {
			if tt.only != "" && tt.only != name {
				continue
			}
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				s := compile(t, f, tt.schema)
				vs, err := s.Validate(decode(t, tt.value))
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, v := range vs {
					got = append(got, line(v))
				}
				if !reflect.DeepEqual(got, tt.want) {
					t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
				}
			})
		}
	}
}

// steps is a union of two objects and a text.
const steps = `{"anyOf":[
	{"type":"object","properties":{"walk":{"type":"integer","maximum":500},"pace":{"enum":["slow","fast"]}},"required":["walk"]},
	{"type":"object","properties":{"ride":{"enum":["bus","tram"]},"line":{"type":"string"}},"required":["ride","line"]},
	{"type":"string"}]}`

func TestKnownNamesAreCut(t *testing.T) {
	props := map[string]any{}
	for i := range 20 {
		props[fmt.Sprintf("p%02d", i)] = true
	}
	s := compile(t, CompileTrusted, string(jsontext.Marshal(map[string]any{"properties": props,
		"additionalProperties": false})))
	vs, _ := s.Validate(map[string]any{"zzzzzz": 1})
	if len(vs) != 1 || !strings.HasSuffix(vs[0].Expected, `"p11" and 8 more`) {
		t.Errorf("got %v", vs)
	}
}

func TestValidateTakesGoValues(t *testing.T) {
	s := compile(t, CompileTrusted, `{"properties":{"a":{"type":"integer"},"b":{"type":"array"},"c":{"type":"number"}}}`)
	vs, err := s.Validate(map[string]any{"a": 1, "b": []string{"x"}, "c": 1.5})
	if err != nil || vs != nil {
		t.Errorf("got %v, %v", vs, err)
	}
	if _, err := s.Validate(make(chan int)); err == nil {
		t.Error("a channel was accepted as JSON")
	}
}

func TestManyFaultsAreCapped(t *testing.T) {
	for name, f := range compilers {
		s := compile(t, f, `{"items":{"type":"string"}}`)
		v := make([]any, 100_000)
		vs, err := s.Validate(v)
		if err != nil || len(vs) != MaxViolations || vs[0].Pointer != "/0" {
			t.Errorf("%s: %d violations, %v", name, len(vs), err)
		}
	}
}

// TestUntrustedRefuses checks schemas that made a validator hang, crash or accept everything.
func TestUntrustedRefuses(t *testing.T) {
	doubling := `{"$defs":{"a0":{}`
	for i := 1; i <= 16; i++ {
		doubling += fmt.Sprintf(`,"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i-1, i-1)
	}
	doubling += `},"$ref":"#/$defs/a16"}`
	targets := `{"allOf":[{}`
	for i := range 501 {
		targets += fmt.Sprintf(`,{"$ref":"#/$defs/a%d"}`, i)
	}
	targets += `],"$defs":{"z":{}`
	for i := range 501 {
		targets += fmt.Sprintf(`,"a%d":{}`, i)
	}
	targets += `}}`
	patterns := `{"properties":{"p":true`
	for i := range 200 {
		patterns += fmt.Sprintf(`,"p%d":{"pattern":"\\w{999}"}`, i)
	}
	patterns += `}}`
	tests := []struct{ name, schema, pointer, reason string }{
		{"itself", `{"$ref":"#"}`, "", "never end"},
		{"a format that is not asserted", `{"format":"date","x-assert":true}`, "/format", `not "date"`},
		{"mutual", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "/$defs/a", "never end"},
		{"allOf itself", `{"type":"object","allOf":[{"$ref":"#"}]}`, "", "never end"},
		{"through not and if", `{"not":{"if":{"$ref":"#"}}}`, "", "never end"},
		{"through dependentSchemas", `{"dependentSchemas":{"a":{"$ref":"#"}}}`, "", "never end"},
		{"doubling chain", doubling, "", "more than 2000 schemas"},
		{"many targets", targets, "", "different targets"},
		{"10,000 levels", strings.Repeat(`{"not":`, 10_000) + "{}" + strings.Repeat("}", 10_000), "", "nested"},
		{"5,000 nots", strings.Repeat(`{"not":`, 5_000) + "{}" + strings.Repeat("}", 5_000), "", "nested"},
		{"1 MiB pattern", `{"pattern":"` + strings.Repeat("a", 1<<20) + `"}`, "", "bytes of JSON"},
		{"long pattern", `{"pattern":"` + strings.Repeat("a", 1025) + `"}`, "/pattern", "at most 1024"},
		{"big program", `{"pattern":"(\\w{90}\\d{90}){10}(\\w{90}\\d{90}){10}(\\w{90}\\d{90}){10}"}`, "/pattern", "instructions"},
		{"big program of a name", `{"patternProperties":{"(\\w{90}\\d{90}){10}(\\w{90}\\d{90}){10}(\\w{90}\\d{90}){10}":{}}}`, "/patternProperties/(\\w{90}\\d{90}){10}(\\w{90}\\d{90}){10}(\\w{90}\\d{90}){10}", "instructions"},
		{"many patterns", patterns, "/properties/", "together"},
		{"repeat of repeats", `{"pattern":"((a{0,100}){0,100}){0,100}"}`, "/pattern", "RE2"},
		{"look-ahead", `{"properties":{"a":{"pattern":"^(?!x)"}}}`, "/properties/a/pattern", "look-ahead"},
		{"back-reference", `{"pattern":"(a)\\1"}`, "/pattern", "RE2"},
		{"2,001 values", `{"enum":[` + strings.Repeat("1,", 2000) + `1]}`, "/enum", "2001"},
		{"2,001 names", `{"required":[` + strings.Repeat(`"a",`, 2000) + `"a"]}`, "/required", "2001"},
		{"empty enum", `{"enum":[]}`, "/enum", "empty"},
		{"empty types", `{"type":[]}`, "/type", "empty"},
		{"empty anyOf", `{"anyOf":[]}`, "/anyOf", "at least one"},
		{"20,001 values", `{"default":[` + strings.Repeat("1,", 20_000) + `1]}`, "", "20000"},
		{"unknown type", `{"properties":{"a":{"type":"strin"}}}`, "/properties/a/type", `"strin"`},
		{"remote ref", `{"items":{"$ref":"https://example.com/s.json"}}`, "/items/$ref", "outside"},
		{"file ref", `{"$ref":"file:///etc/passwd"}`, "/$ref", "outside"},
		{"dangling ref", `{"$ref":"#/$defs/nosuch"}`, "/$ref", "nothing"},
		{"dangling anchor", `{"$ref":"#nosuch"}`, "/$ref", "anchor"},
		{"bad ref", `{"$ref":"#/%zz"}`, "/$ref", "valid"},
		{"ref to a number", `{"$ref":"#/maxLength","maxLength":1}`, "/maxLength", "object or a boolean"},
		{"nested $id", `{"$defs":{"a":{"$id":"b"}}}`, "/$defs/a/$id", "nested"},
		{"$dynamicRef", `{"$dynamicRef":"#x"}`, "/$dynamicRef", "$ref"},
		{"$recursiveRef", `{"items":{"$recursiveRef":"#"}}`, "/items/$recursiveRef", "$ref"},
		{"anchor twice", `{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, "/$defs/b/$anchor", "already"},
		{"draft-04", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, "/$schema", "dialect"},
		{"draft-06", `{"$schema":"http://json-schema.org/draft-06/schema#"}`, "/$schema", "only draft-07 and 2020-12"},
		{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema"}`, "/$schema", "only draft-07 and 2020-12"},
		{"2019-09, nested", `{"not":{"$schema":"https://json-schema.org/draft/2019-09/schema"}}`, "/not/$schema",
			"only draft-07 and 2020-12"},
		{"draft-04 bound", `{"minimum":1,"exclusiveMinimum":true}`, "/exclusiveMinimum", "draft-04"},
		{"draft-04 required", `{"properties":{"a":{"required":true}}}`, "/properties/a/required", "array"},
		{"zero multipleOf", `{"multipleOf":0}`, "/multipleOf", "greater"},
		{"negative length", `{"minLength":-1}`, "/minLength", "whole"},
		{"not a schema", `{"properties":{"a":3}}`, "/properties/a", "object or a boolean"},
		{"not a schema at all", `"x"`, "", "object or a boolean"},
		{"items twice", `{"prefixItems":[{}],"items":[{}]}`, "/items", "prefixItems"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			_, err := CompileUntrusted([]byte(tt.schema))
			var gate *GateError
			if !errors.As(err, &gate) {
				t.Fatalf("got %v, want a *GateError", err)
			}
			if !strings.HasPrefix(gate.Pointer, tt.pointer) || !strings.Contains(gate.Reason, tt.reason) {
				t.Errorf("got %v, want %q at %q", gate, tt.reason, tt.pointer)
			}
			if d := time.Since(start); d > time.Minute {
				t.Errorf("took %v", d)
			}
		})
	}
	var syn *jsontext.SyntaxError
	if _, err := CompileUntrusted([]byte(`{"a":1,"a":2}`)); !errors.As(err, &syn) {
		t.Errorf("a schema with a duplicate key: %v", err)
	}
}

func TestUntrustedAccepts(t *testing.T) {
	for _, schema := range []string{
		`{"required":[]}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/a","$defs":{"a":{"$dynamicAnchor":"x"}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema","definitions":{}}`,
		strings.Repeat(`{"items":`, 98) + "{}" + strings.Repeat("}", 98),
		`{"pattern":"^[^@\\s]+@[^@\\s]+\\.[a-z]{2,63}$","x-anything":[{"$ref":"#/nowhere"}]}`,
	} {
		if _, err := CompileUntrusted([]byte(schema)); err != nil {
			t.Errorf("%.80s: %v", schema, err)
		}
	}
}

func TestTrustedRefuses(t *testing.T) {
	for _, schema := range []string{
		`{"$ref":"#"}`,
		`{"$ref":"#nosuch"}`,
		`{"$ref":"http://json-schema.org/draft-07/schema#"}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`,
		`{"enum":[]}`,
		`{"type":"strin"}`,
		`{`,
	} {
		if _, err := CompileTrusted([]byte(schema)); err == nil {
			t.Errorf("%s was accepted", schema)
		}
	}
}

func TestCostError(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct{ name, schema, value string }{
		// 69 bytes of schema that look at each level of the value twice: 2^60 steps.
		{"recursion that doubles", `{"items":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}`, nested(60)},
		{"anyOf that doubles", `{"anyOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`, nested(60)},
		{"pattern on a long text", `{"pattern":"(x{1,30}){30}y"}`, `"` + strings.Repeat("x", 1<<20) + `"`},
		{"many schemas on many items", `{"items":{"allOf":[` + strings.Repeat("{},", 500) + `{}]}}`, `[` + strings.Repeat("1,", 10_000) + `1]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := compile(t, CompileUntrusted, tt.schema)
			v := decode(t, tt.value)
			start := time.Now()
			_, err := s.Validate(v)
			var cost *CostError
			if !errors.As(err, &cost) {
				t.Errorf("got %v, want a *CostError", err)
			}
			if out, coercions := s.coerce(v); !equal(out, v) || coercions != nil {
				t.Error("Coerce changed a value that is too costly to validate")
			}
			if d := time.Since(start); d > time.Minute {
				t.Errorf("took %v", d)
			}
		})
	}
	// Recursion that does not double is validated at any depth that Decode accepts.
	s := compile(t, CompileUntrusted, `{"type":"array","items":{"$ref":"#"}}`)
	if vs, err := s.Validate(decode(t, nested(200))); vs != nil || err != nil {
		t.Errorf("got %v, %v", vs, err)
	}
}

// TestConcurrentUse uses one schema in many goroutines, for the race detector.
func TestConcurrentUse(t *testing.T) {
	for name, f := range compilers {
		s := compile(t, f, `{"type":"object","patternProperties":{"^a":{"pattern":"^x"}},"additionalProperties":{"pattern":"^y"},
			"properties":{"n":{"type":"integer","default":1},"o":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					v := map[string]any{"a": "z", "b": "z", "n": "5", "o": map[string]any{"a": "x"}}
					if vs, err := s.Validate(v); err != nil || len(vs) != 3 {
						t.Errorf("%s: %v %v", name, vs, err)
						return
					}
					s.coerce(v)
				}
			})
		}
		wg.Wait()
	}
}

func TestDeterministic(t *testing.T) {
	s := compile(t, CompileTrusted, `{"properties":{"a":{"type":"string"},"b":{"anyOf":[{"required":["x"]},{"minProperties":5}]}},"required":["c","d"],"additionalProperties":false}`)
	v := decode(t, `{"a":1,"b":{},"e":1,"f":2,"g":3}`)
	want := ""
	for i := range 50 {
		vs, err := s.Validate(v)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(vs)
		if i == 0 {
			want = got
		} else if got != want {
			t.Fatalf("got %s\nthen %s", want, got)
		}
	}
}

func TestRootIsTheDocument(t *testing.T) {
	s := compile(t, CompileUntrusted, `{"title":"T","items":[{"description":"d"}]}`)
	if got := string(jsontext.Marshal(s.Root())); got != `{"items":[{"description":"d"}],"title":"T"}` {
		t.Error(got)
	}
}

// TestNoFileIsRead checks that a reference to a file is not followed.
func TestNoFileIsRead(t *testing.T) {
	file := t.TempDir() + "/s.json"
	if err := os.WriteFile(file, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, f := range compilers {
		if _, err := f([]byte(`{"$ref":"file://` + file + `"}`)); err == nil {
			t.Errorf("%s: a reference to a file was followed", name)
		}
	}
}

// TestGateAtItsBounds checks that a schema of exactly the size of a limit is accepted, and one more is refused.
func TestGateAtItsBounds(t *testing.T) {
	list := func(n int) string { return strings.TrimSuffix(strings.Repeat("1,", n), ",") }
	for name, build := range map[string]func(more int) string{
		"bytes": func(more int) string {
			const around = len(`{"description":""}`)
			return `{"description":"` + strings.Repeat("x", gateBytes-around+more) + `"}`
		},
		"levels": func(more int) string {
			return strings.Repeat(`{"items":`, gateDepth-1+more) + "{}" + strings.Repeat("}", gateDepth-1+more)
		},
		"values in lists":   func(more int) string { return `{"default":[` + list(gateNodes-2+more) + `]}` },
		"values in objects": func(more int) string { return `{"default":` + object(gateNodes-2+more, "1") + `}` },
		"values of enum":    func(more int) string { return `{"enum":[` + list(gateValues+more) + `]}` },
		"required names": func(more int) string {
			return `{"required":[` + strings.ReplaceAll(list(gateValues+more), "1", `"a"`) + `]}`
		},
		"bytes of a pattern": func(more int) string {
			return `{"pattern":"` + strings.Repeat("a", gatePatternLen+more) + `"}`
		},
		"targets of $ref": func(more int) string {
			refs := ""
			for i := range gateRefTargets + more {
				refs += fmt.Sprintf(`,{"$ref":"#/$defs/k%d"}`, i)
			}
			return `{"allOf":[{}` + refs + `],"$defs":` + object(gateRefTargets+more, "{}") + `}`
		},
		// The root and each of the alternatives apply to one value.
		"schemas in place: allOf": func(more int) string {
			return `{"allOf":[` + strings.ReplaceAll(list(gateInPlace-1+more), "1", "{}") + `]}`
		},
		"schemas in place: oneOf": func(more int) string {
			return `{"oneOf":[` + strings.ReplaceAll(list(gateInPlace-1+more), "1", "{}") + `]}`
		},
		"schemas in place: not": func(more int) string {
			return `{"not":{"anyOf":[` + strings.ReplaceAll(list(gateInPlace-2+more), "1", "{}") + `]}}`
		},
		"schemas in place: dependentSchemas": func(more int) string {
			return `{"dependentSchemas":` + object(gateInPlace-1+more, "{}") + `}`
		},
	} {
		if _, err := CompileUntrusted([]byte(build(0))); err != nil {
			t.Errorf("%s: at the limit: %.200v", name, err)
		}
		var gate *GateError
		if _, err := CompileUntrusted([]byte(build(1))); !errors.As(err, &gate) {
			t.Errorf("%s: over the limit: %v", name, err)
		}
	}
}

// object returns an object with n keys that have one value.
func object(n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":%s`, i, value)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// TestEachCost checks that everything that takes time counts. Each row is a value with two schemas, of which the second
// requires more work at one point.
func TestEachCost(t *testing.T) {
	words := `["` + strings.Repeat("x", 6400) + `"]`
	numbers := "[" + strings.TrimSuffix(strings.Repeat("7,", 100), ",") + "]"
	names := object(100, "7")
	dear := `{"enum":["` + strings.Join(strings.Split(fmt.Sprint(numberRange(400)), " "), `","`) + `"]}`
	for _, tt := range []struct{ name, value, cheap, dear string }{
		{"enum", `7`, `{}`, dear},
		{"schemas in place", `7`, `{}`, `{"allOf":[` + dear + `]}`},
		{"a long text", words, `{}`, `{"items":{"minLength":1}}`},
		{"a pattern", `"` + strings.Repeat("x", 640) + `"`, `{}`, `{"pattern":"x"}`},
		{"a larger pattern", `"` + strings.Repeat("x", 640) + `"`, `{"pattern":"x"}`, `{"pattern":"x{50}"}`},
		{"a pattern on a longer text", `{"a":"` + strings.Repeat("x", 640) + `"}`,
			`{"properties":{"a":{}}}`, `{"properties":{"a":{"pattern":"x"}}}`},
		{"bounds of numbers", numbers, `{"items":{}}`, `{"items":{"minimum":1}}`},
		{"items", numbers, `{}`, `{"items":{}}`},
		{"costly items", numbers, `{"items":{}}`, `{"items":` + dear + `}`},
		{"the first items", numbers, `{}`, `{"prefixItems":[` + dear + `]}`},
		{"contains", numbers, `{}`, `{"contains":` + dear + `}`},
		{"unevaluated items", numbers, `{}`, `{"unevaluatedItems":` + dear + `}`},
		{"properties", names, `{}`, `{"properties":{"k1":` + dear + `}}`},
		{"missing properties", `{}`, `{}`, `{"properties":` + strings.ReplaceAll(names, "7", "true") + `}`},
		{"patterns of names", names, `{}`, `{"patternProperties":{"^x":{}}}`},
		{"costly values by patterns of names", names, `{"patternProperties":{"^x":{}}}`, `{"patternProperties":{"^x":` + dear + `}}`},
		{"patterns of names without properties", `{}`, `{}`, `{"patternProperties":{"^x{50}":{}}}`},
		{"additional properties", names, `{}`, `{"additionalProperties":` + dear + `}`},
		{"names", names, `{}`, `{"propertyNames":` + dear + `}`},
		{"unevaluated properties", names, `{}`, `{"unevaluatedProperties":` + dear + `}`},
	} {
		cost := func(text string) int {
			m := meter{left: budget}
			m.visit(compile(t, CompileUntrusted, text).root, decode(t, tt.value), 0)
			return budget - m.left
		}
		if cheap, dear := cost(tt.cheap), cost(tt.dear); dear <= cheap+1 {
			t.Errorf("%s: %d steps, without it %d", tt.name, dear, cheap)
		}
	}
	// The size of a value also counts.
	for _, tt := range [][3]string{
		{`[]`, numbers, `{}`}, {`{}`, names, `{}`}, {`""`, `"` + strings.Repeat("x", 6400) + `"`, `{}`},
		{`{"y":7}`, `{"` + strings.Repeat("y", 6400) + `":7}`, `{"patternProperties":{"x":true}}`},
	} {
		cost := func(value string) int {
			m := meter{left: budget}
			m.visit(compile(t, CompileUntrusted, tt[2]).root, decode(t, value), 0)
			return budget - m.left
		}
		if small, large := cost(tt[0]), cost(tt[1]); large <= small+10 {
			t.Errorf("%.20s: %d steps, %d for a small value", tt[1], large, small)
		}
	}
}

func numberRange(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
