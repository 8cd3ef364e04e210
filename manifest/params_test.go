package manifest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParams(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"none", ``, `null`},
		{"true", `true`, `null`},
		{"false", `false`, `null`},
		{"an object without keywords", `{"type":"object"}`, `null`},
		{"no properties", `{"type":"object","properties":{}}`, `null`},
		{"invalid JSON", `{"type":`, `null`},
		{"order of the schema", `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"},"m":{"type":"number"}},"required":["m","z"]}`,
			`[{"name":"z","type":"string","required":true,"description":""},{"name":"a","type":"integer","required":false,"description":""},{"name":"m","type":"number","required":true,"description":""}]`},
		{"enum and default", `{"properties":{"a":{"enum":["x","y"],"default":"x","description":"One."}}}`,
			`[{"name":"a","type":"string","required":false,"enum":["x","y"],"default":"x","description":"One."}]`},
		{"a mixed enum", `{"properties":{"a":{"enum":["x",1,null]}}}`, `[{"name":"a","type":"any","required":false,"enum":["x",1,null],"description":""}]`},
		{"const", `{"properties":{"a":{"const":3}}}`, `[{"name":"a","type":"integer","required":false,"enum":[3],"description":""}]`},
		{"const null", `{"properties":{"a":{"const":null}}}`, `[{"name":"a","type":"null","required":false,"enum":[null],"description":""}]`},
		{"default null and false", `{"properties":{"a":{"type":"string","default":null},"b":{"type":"boolean","default":false}}}`,
			`[{"name":"a","type":"string","required":false,"default":null,"description":""},{"name":"b","type":"boolean","required":false,"default":false,"description":""}]`},
		{"type lists", `{"properties":{"a":{"type":["string","null"]}}}`, `[{"name":"a","type":"string|null","required":false,"description":""}]`},
		{"anyOf", `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"string"}]}}}`,
			`[{"name":"a","type":"string|array","required":false,"fields":"string|string[]","description":""}]`},
		{"oneOf of unions", `{"properties":{"a":{"oneOf":[{"type":["string","null"]},{"anyOf":[{"type":"null"},{"const":1}]}]}}}`,
			`[{"name":"a","type":"string|null|integer","required":false,"fields":"string|null|1","description":""}]`},
		{"boolean schemas", `{"properties":{"a":true,"b":false}}`,
			`[{"name":"a","type":"any","required":false,"description":""},{"name":"b","type":"any","required":false,"description":""}]`},
		{"implied types", `{"properties":{"a":{"properties":{"x":{}}},"b":{"items":{"type":"string"}}}}`,
			`[{"name":"a","type":"object","required":false,"fields":"{x?: any}","description":""},{"name":"b","type":"array","required":false,"items":{"type":"string"},"description":""}]`},
		{"$defs", `{"properties":{"a":{"$ref":"#/$defs/id"}},"$defs":{"id":{"type":"integer","description":"An id.","default":7}}}`,
			`[{"name":"a","type":"integer","required":false,"ref":"id","default":7,"description":"An id."}]`},
		{"definitions, with keywords beside a reference", `{"properties":{"a":{"$ref":"#/definitions/id","description":"Mine.","default":1}},"definitions":{"id":{"type":"integer","description":"An id.","default":7}}}`,
			`[{"name":"a","type":"integer","required":false,"ref":"id","default":1,"description":"Mine."}]`},
		{"a chain of references", `{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"$ref":"#/$defs/c"},"c":{"type":"boolean"}}}`,
			`[{"name":"a","type":"boolean","required":false,"ref":"c","description":""}]`},
		{"escaped references", `{"properties":{"a":{"$ref":"#/$defs/x~1y~0z%20w"}},"$defs":{"x/y~z w":{"type":"boolean"}}}`,
			`[{"name":"a","type":"boolean","required":false,"ref":"x~1y~0z w","description":""}]`},
		{"an array of references", `{"properties":{"a":{"type":"array","items":{"$ref":"#/$defs/node"}}},"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}`,
			`[{"name":"a","type":"array","required":false,"items":{"type":"object","ref":"node"},"fields":"{next?: {…}}[]","description":""}]`},
		{"fields, required ones first, at most twelve", `{"properties":{"a":{"type":"object","required":["z","y"],"properties":{"x":{"type":"array","items":{"type":"string"}},"y":{"enum":[1]},"z":{"type":"string"}}},"b":{"items":{"properties":{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},"h":{},"i":{},"j":{},"k":{},"l":{},"m":{}}}}}}`,
			`[{"name":"a","type":"object","required":false,"fields":"{y: 1, z: string, x?: string[]}","description":""},{"name":"b","type":"array","required":false,"items":{"type":"object"},"fields":"{a?: any, b?: any, c?: any, d?: any, e?: any, f?: any, g?: any, h?: any, i?: any, j?: any, k?: any, l?: any, … 1 more}[]","description":"","more":1}]`},
		{"an array of an enum", `{"properties":{"a":{"type":"array","items":{"type":"string","enum":["x","y"]}}}}`,
			`[{"name":"a","type":"array","required":false,"items":{"type":"string","enum":["x","y"]},"description":""}]`},
		{"a recursive reference", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, `[{"name":"next","type":"object","required":false,"fields":"{next?: {…}}","description":""}]`},
		{"a reference to itself", `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/a"}}}`, `[{"name":"a","type":"any","required":false,"ref":"a","description":""}]`},
		{"a union of itself", `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"string"},{"oneOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}]}}}`,
			`[{"name":"a","type":"string|null","required":false,"ref":"a","description":""}]`},
		{"a missing reference", `{"properties":{"a":{"$ref":"#/$defs/nothing"}}}`, `[{"name":"a","type":"any","required":false,"ref":"nothing","description":""}]`},
		{"a reference elsewhere", `{"properties":{"a":{"$ref":"https://example.com/properties"}}}`, `[{"name":"a","type":"any","required":false,"description":""}]`},
		{"a reference into a list", `{"properties":{"a":{"$ref":"#/allOf/0"}},"allOf":[{"type":"string"}]}`, `[{"name":"a","type":"any","required":false,"ref":"0","description":""}]`},
		{"an anchor", `{"properties":{"a":{"$ref":"#node"}},"$defs":{"x":{"$anchor":"node","type":"string"}}}`, `[{"name":"a","type":"any","required":false,"ref":"node","description":""}]`},
		{"a root that is a reference", `{"$ref":"#/$defs/p","$defs":{"p":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`,
			`[{"name":"a","type":"string","required":true,"description":""}]`},
		{"a string", `{"type":"string","description":"The text."}`, `[{"name":"result","type":"string","required":true,"description":"The text."}]`},
		{"an array", `{"type":"array","items":{"type":"number"}}`, `[{"name":"result","type":"array","required":true,"items":{"type":"number"},"description":""}]`},
		{"any value with a description", `{"description":"Whatever it finds."}`, `[{"name":"result","type":"any","required":true,"description":"Whatever it finds."}]`},
		{"texts are cleaned, values escaped",
			"{\"properties\":{\"a\\u001b[31m\\u202e\":{\"type\":\"string\",\"description\":\"x\\u001b[2Jy\\nz\"," +
				"\"enum\":[\"\u202e\"],\"default\":\"\u202e\"}}}",
			`[{"name":"a\\u001b[31m\\u202e","type":"string","required":false,"enum":["\u202e"],"default":"\u202e","description":"x\\u001b[2Jy z"}]`},
		{"an invalid type", `{"properties":{"a":{"type":"\u001b[31mred"},"b":{"type":3},"c":{"type":"?"}}}`,
			`[{"name":"a","type":"\\u001b[31mred","required":false,"description":""},{"name":"b","type":"any","required":false,"description":""},{"name":"c","type":"?","required":false,"description":""}]`},
		{"values on one line", "{\"properties\":{\"a\":{\"default\":{\n \"x\": [ 1,\n2 ] }}}}", `[{"name":"a","type":"any","required":false,"default":{"x":[1,2]},"description":""}]`},
	} {
		got, err := marshalPlain(Params(json.RawMessage(c.schema)))
		if err != nil || got != c.want {
			t.Errorf("%s:\n got %s %v\nwant %s", c.name, got, err, c.want)
		}
	}
}

func marshalPlain(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// TestParamsOfHostileSchemas checks that reading a schema that did not pass the gate takes time linear in its size.
func TestParamsOfHostileSchemas(t *testing.T) {
	many := func(n int, sep, format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = strings.ReplaceAll(strings.ReplaceAll(format, "NEXT", fmt.Sprint(i+1)), "I", fmt.Sprint(i))
		}
		return strings.Join(parts, sep)
	}
	for name, schema := range map[string]string{
		"references into a large part": `{"properties":{` + many(4000, ",", `"pI":{"$ref":"#/$defs/dI"}`) + `},"$defs":{` + many(4000, ",", `"dI":{"type":"string"}`) + `}}`,
		"one large union":              `{"properties":{` + many(4000, ",", `"pI":{"$ref":"#/$defs/u"}`) + `},"$defs":{"u":{"anyOf":[` + many(2000, ",", `{"type":"string"}`) + `]}}}`,
		"a deep chain of unions":       `{"properties":{"p":{"$ref":"#/$defs/d0"}},"$defs":{` + many(20000, ",", `"dI":{"anyOf":[{"$ref":"#/$defs/dNEXT"},{"$ref":"#/$defs/dNEXT"}]}`) + `}}`,
		"all unions of all":            `{"properties":{` + many(200, ",", `"pI":{"$ref":"#/$defs/dI"}`) + `},"$defs":{` + many(200, ",", `"dI":{"anyOf":[`+many(200, ",", `{"$ref":"#/$defs/dI"}`)+`]}`) + `}}`,
		"many cases":                   `{"type":"object","oneOf":[` + many(20000, ",", `{"properties":{"pI":{}}}`) + `]}`,
		"one name in many cases":       `{"type":"object","oneOf":[` + many(20000, ",", `{"properties":{"k":{"const":I}},"required":["k"]}`) + `]}`,
		"one large enum":               `{"properties":{` + many(4000, ",", `"pI":{"$ref":"#/$defs/e"}`) + `},"$defs":{"e":{"enum":[` + many(2000, ",", `"I"`) + `]}}}`,
	} {
		began := time.Now()
		Params(json.RawMessage(schema))
		Describe(&Manifest{}, &Tool{Params: json.RawMessage(schema)}, Tier3)
		if d := time.Since(began); d > 50*time.Second { // the longest takes two
			t.Errorf("%s: %d bytes took %v", name, len(schema), d)
		}
	}
}

func TestSignature(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{}`, `y()`},
		{`{"properties":{"b":{"type":"integer"},"a":{"type":"string"}},"required":["a"]}`, `y(a: string, b?: integer)`},
		{`{"properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":"array"},"c":{"type":["string","null"]},"d":{"enum":["x"]},"e":{}}}`,
			`y(a?: string[], b?: any[], c?: string|null, d?: "x", e?: any)`},
		{`{"properties":{"a":{"type":"array","items":{"$ref":"#/$defs/n"}}},"$defs":{"n":{"type":"object"}}}`, `y(a?: object[])`},
		{`{"properties":{"a":{"type":"array","items":{"type":["string","null"]}}}}`, `y(a?: (string|null)[])`},
	} {
		if got := Signature("y", Params(json.RawMessage(c.schema))); got != c.want {
			t.Errorf("%s: got %s, expected %s", c.schema, got, c.want)
		}
	}
}

func TestTypeAt(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"s":{"type":"string"},"list":{"type":"array","items":{"type":"integer"}},"any":{},"refs":{"type":"array","items":{"$ref":"#/$defs/n"}},
		"deep":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}},"u":{"type":["string","null"]}},
		"$defs":{"n":{"type":"object","properties":{"self":{"$ref":"#/$defs/n"},"ok":{"type":"boolean"}}}}}`)
	for _, c := range []struct{ path, kind, items string }{
		{"s", "string", ""}, {"list", "array", "integer"}, {"any", "any", ""}, {"refs", "array", "object"},
		{"u", "string|null", ""},
		{"deep", "object", ""}, {"deep/n/ok", "boolean", ""}, {"deep/n/self/self/ok", "boolean", ""},
		{"nothing", "", ""}, {"s/x", "", ""}, {"deep/nothing", "", ""}, {"", "object", ""},
	} {
		var path []string
		if c.path != "" {
			path = strings.Split(c.path, "/")
		}
		if kind, items := TypeAt(schema, path...); kind != c.kind || items != c.items {
			t.Errorf("%q: got %q of %q, expected %q of %q", c.path, kind, items, c.kind, c.items)
		}
	}
	if kind, _ := TypeAt(json.RawMessage(`true`), "a"); kind != "" {
		t.Errorf("true: got %q", kind)
	}
}

// TestTypeAtIndices checks the types of the items of an array.
func TestTypeAtIndices(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"list":{"type":"array","items":{"type":"integer"}},
		"tuple":{"type":"array","prefixItems":[{"type":"string"},{"$ref":"#/$defs/n"}],"items":{"type":"number"}},
		"numbered":{"type":"object","properties":{"7":{"type":"boolean"}}},
		"others":{"type":"object","additionalProperties":{"type":"null"}}},"$defs":{"n":{"type":"object"}}}`)
	for path, want := range map[string]string{
		"list/0": "integer", "list/9": "integer", "list/x": "", "list/0/0": "",
		"tuple/0": "string", "tuple/1": "object", "tuple/2": "number", "tuple/-1": "string",
		"list/-1": "integer", "-1": "", "1": "",
		"numbered/7": "boolean", "numbered/8": "", "others/7": "null", "others/x": "null",
	} {
		if kind, _ := TypeAt(schema, strings.Split(path, "/")...); kind != want {
			t.Errorf("%s: got %q, expected %q", path, kind, want)
		}
	}
}

func TestBase64At(t *testing.T) {
	const text = `{"type":"string","contentEncoding":"base64"}`
	schema := json.RawMessage(`{"type":"object","properties":{"text":` + text + `,"list":{"type":"array","items":` + text + `},
		"refs":{"type":"array","items":{"$ref":"#/$defs/b"}},"union":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/b"}]},
		"unions":{"type":"array","items":{"oneOf":[{"type":"integer"},` + text + `]}},
		"plain":{"type":"string"},"plains":{"type":"array","items":{"type":"string"}}},"$defs":{"b":` + text + `}}`)
	for name, want := range map[string]bool{
		"text": true, "list": true, "refs": true, "union": true, "unions": true, "plain": false, "plains": false,
		"none": false,
	} {
		if got := Base64At(schema, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAllOf checks that a schema has what the schemas of its allOf say.
func TestAllOf(t *testing.T) {
	const defs = `"$defs":{"p":{"properties":{"d":{"type":"boolean"}},"required":["d"],"allOf":[{"properties":{"e":{}}}]}}`
	for _, tt := range []struct{ schema, want string }{
		{`{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]}]}`, `t(a: string)`},
		{`{"properties":{"b":{"type":"integer"}},"required":["b"],"allOf":[
			{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]}]}`, `t(b: integer, a: string)`},
		{`{"properties":{"a":{},"b":{}},"required":["a"],"allOf":[{"required":["b"]},{"required":["c"]}]}`,
			`t(a: any, b: any)`},
		{`{"properties":{"a":{}},"allOf":[{"$ref":"#/$defs/p"},{"properties":{"c":{"enum":[1]}}}],` + defs + `}`,
			`t(d: boolean, a?: any, e?: any, c?: 1)`},
		{`{"properties":{"a":{}},"allOf":[{"$ref":"#"}]}`, `t(a?: any)`},
	} {
		if got := Signature("t", Params(json.RawMessage(tt.schema))); got != tt.want {
			t.Errorf("%s: got %s, expected %s", tt.schema, got, tt.want)
		}
	}
}

// TestCutValues checks that a parameter shows or counts each value of its enum, or of that of its items.
func TestCutValues(t *testing.T) {
	for _, form := range []string{`{"enum":[%s]}`, `{"type":"array","items":{"enum":[%s]}}`} {
		for total := 1; total < 20; total++ {
			for n := 1; n < 20; n++ {
				schema := `{"properties":{"a":` + fmt.Sprintf(form, repeated(total, `"kIx"`)) + `}}`
				p, before := Params(json.RawMessage(schema))[0], Params(json.RawMessage(schema))[0]
				other := p
				other.CutValues(n)
				if shown := len(other.Values()); shown != min(n, total) || shown+other.More != total {
					t.Errorf("%d of %d values: %d and %d more", n, total, shown, other.More)
				}
				if text := other.TypeText(); strings.Count(text, `x"`) != min(n, total) || strings.Contains(text, "… ") != (n < total) {
					t.Errorf("%d of %d values: %s", n, total, text)
				}
				if len(p.Values()) != len(before.Values()) {
					t.Errorf("a copy is cut, too: %d of %d values", len(p.Values()), total)
				}
			}
		}
	}
}

func TestBinary(t *testing.T) {
	const text = `{"type":"string","contentEncoding":"base64","contentMediaType":"image/png"}`
	for _, c := range []struct {
		name, data, returns string
		base64, media       string
		ok                  bool
	}{
		{"at the root", `"aGk="`, text, "aGk=", "image/png", true},
		{"in a property", `{"n":1,"data":"aGk="}`, `{"properties":{"n":{"type":"integer"},"data":` + text + `}}`, "aGk=", "image/png", true},
		{"behind a reference", `{"data":"aGk="}`, `{"properties":{"data":{"$ref":"#/$defs/b"}},"$defs":{"b":` + text + `}}`, "aGk=", "image/png", true},
		{"empty", `""`, text, "", "image/png", true},
		{"without a media type", `"aGk="`, `{"contentEncoding":"base64"}`, "aGk=", "", true},
		{"only the second of two is present", `{"b":"aGk="}`, `{"properties":{"a":` + text + `,"b":` + text + `}}`, "aGk=", "image/png", true},
		{"absent", `{}`, `{"properties":{"data":` + text + `}}`, "", "", false},
		{"not a string", `{"data":3}`, `{"properties":{"data":` + text + `}}`, "", "", false},
		{"null", `{"data":null}`, `{"properties":{"data":` + text + `}}`, "", "", false},
		{"null at the root", `null`, text, "", "", false},
		{"another encoding", `"aGk="`, `{"contentEncoding":"base32"}`, "", "", false},
		{"plain text", `"aGk="`, `{"type":"string"}`, "", "", false},
		{"no schema", `"aGk="`, ``, "", "", false},
		{"true", `"aGk="`, `true`, "", "", false},
	} {
		base64, media, ok := Binary(json.RawMessage(c.data), json.RawMessage(c.returns))
		if base64 != c.base64 || media != c.media || ok != c.ok {
			t.Errorf("%s: got %q, %q, %v", c.name, base64, media, ok)
		}
	}
}

func TestReplaceBinary(t *testing.T) {
	const text = `{"type":"string","contentEncoding":"base64","contentMediaType":"image/png"}`
	for _, c := range []struct{ name, data, returns, want string }{
		{"at the root", `"aGk="`, text, `{"was":"aGk= image/png"}`},
		{"beside others", `{"n":1,"data":"aGk="}`, `{"properties":{"n":{"type":"integer"},"data":` + text + `}}`,
			`{"data":{"was":"aGk= image/png"},"n":1}`},
		{"two", `{"a":"aGk=","b":"aG8="}`, `{"properties":{"a":` + text + `,"b":` + text + `}}`,
			`{"a":{"was":"aGk= image/png"},"b":{"was":"aG8= image/png"}}`},
		{"one is left", `{"a":"","b":"aG8="}`, `{"properties":{"a":` + text + `,"b":` + text + `}}`,
			`{"a":"","b":{"was":"aG8= image/png"}}`},
		{"none", `{"b": 1,"a": ""}`, `{"properties":{"a":` + text + `}}`, `{"b": 1,"a": ""}`},
		{"not an object", `["aGk="]`, `{"properties":{"a":` + text + `}}`, `["aGk="]`},
		{"plain text", `"aGk="`, `{"type":"string"}`, `"aGk="`},
		{"no schema", `"aGk="`, ``, `"aGk="`},
	} {
		got := ReplaceBinary(json.RawMessage(c.data), json.RawMessage(c.returns), func(base64, media string) any {
			if base64 == "" {
				return nil
			}
			return map[string]string{"was": base64 + " " + media}
		})
		if string(got) != c.want {
			t.Errorf("%s: got %s", c.name, got)
		}
	}
}

func FuzzParams(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`), "a")
	f.Add([]byte(`{"$ref":"#"}`), "")
	f.Add([]byte(`{"properties":{"a":{"type":"array","items":{"enum":[1,2]}},"b":true}}`), "b")
	f.Add([]byte("{\"properties\":{\"\\u202e\":{\"default\":\"\u202e\",\"type\":[\"\u202e\"]}},"+
		"\"required\":[\"\u202e\"]}"), "\u202e")
	f.Fuzz(func(t *testing.T, schema []byte, path string) {
		params := Params(schema)
		shown := Signature("t", params)
		for _, p := range params {
			shown += p.Text()
		}
		for _, r := range shown {
			if Hidden(r) || r == '\n' || r == '\t' {
				t.Fatalf("%q: %q leaves %U", schema, shown, r)
			}
		}
		if json.Valid(schema) {
			if _, err := json.Marshal(params); err != nil {
				t.Errorf("%q: %v", schema, err)
			}
		}
		TypeAt(schema, strings.Split(path, "/")...)
		Binary(schema, schema)
		readNode(minimalParams(params)).membersOf()
	})
}

// TestAbout checks which phrase stands for a value in a signature and in the hole of a template.
func TestAbout(t *testing.T) {
	for description, want := range map[string]string{
		"The page to open. It must be https.":   "The page to open",
		"The size (in pixels), e.g. 12":         "The size",
		`Default: "fast". The speed.`:           "",
		"Default: fast":                         "",
		"Example: a.b":                          "",
		"Optional. The name of a person.":       "The name of a person",
		"Required: The name, for example Ada":   "The name",
		"Optional.":                             "",
		"Default mode of the search: fast":      "Default mode of the search",
		strings.Repeat("Optional. ", 1e5) + "A": "A",
	} {
		if got := About(description); got != want {
			t.Errorf("%.60q: %q, expected %q", description, got, want)
		}
	}
}
