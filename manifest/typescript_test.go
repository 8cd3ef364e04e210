package manifest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestTypeScript(t *testing.T) {
	for _, tt := range []struct{ name, params, returns, want string }{
		{"text.hash", `{"type":"object","properties":{"algorithm":{"enum":["md5","sha256"],"default":"sha256"},
			"text":{"type":"string"}},"required":["text"]}`, `{"type":"object","properties":{"hex":{"type":"string"}},"required":["hex"]}`,
			`tools.text.hash(p: {text: string, algorithm?: "md5"|"sha256" = "sha256"}): {hex: string}  // Brief`},
		{"a.none", `{"type":"object"}`, ``, `tools.a.none(): unknown  // Brief`},
		{"my-tool.a-b", `{"type":"object","properties":{"a b":{"type":["string","null"]},"n":{"type":"integer","default":5}}}`,
			`{"type":"array","items":{"enum":[1,2]}}`,
			`tools["my-tool"]["a-b"](p: {"a b"?: string|null, n?: number = 5}): (1|2)[]  // Brief`},
		// A cycle ends.
		{"a.refs", `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"$defs":{
			"A":{"type":"object","properties":{"b":{"$ref":"#/$defs/B"}}},
			"B":{"type":"object","properties":{"c":{"$ref":"#/$defs/C"},"e":{"$ref":"#/$defs/E"}}},
			"C":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}}},"E":{"type":"string","enum":["x"]}}}`, `true`,
			`tools.a.refs(p: {a: {b?: {c?: {a?: {…}}, e?: "x"}}}): unknown  // Brief`},
		{"a.many", `{"type":"object","properties":{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},"h":{},"i":{},"j":{}},"required":["j"]}`,
			`{"contentEncoding":"base64","type":"string"}`, `tools.a.many(p: {j: unknown, a?: unknown, b?: unknown, c?: unknown, ` +
				`d?: unknown, e?: unknown, f?: unknown, g?: unknown, h?: unknown, … 1 more}): string /*base64*/  // Brief`},
		{"a.union", `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}}}`,
			`{"type":"object","additionalProperties":{"type":"boolean"}}`,
			`tools.a.union(p: {a?: string|string[]}): Record<string, boolean>  // Brief`},
	} {
		tool := &Tool{Params: json.RawMessage(tt.params), Returns: json.RawMessage(tt.returns), Docs: Docs{Brief: "Brief"}}
		if got := TypeScript(tt.name, tool); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
	tool := &Tool{Effect: EffectDestructive, Params: json.RawMessage(`{}`), Docs: Docs{Brief: "Delete\nit"}}
	if got := TypeScript("a.delete", tool); got != "tools.a.delete(): unknown  // DESTRUCTIVE: Delete it" {
		t.Error(got)
	}
}

// TestTypeScriptIsBounded prints a schema whose types would be many when each reference is replaced.
func TestTypeScriptIsBounded(t *testing.T) {
	var fields []string
	for i := range 12 {
		fields = append(fields, fmt.Sprintf(`"f%d":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"array","items":{"$ref":"#/$defs/a"}}]}`, i))
	}
	wide := `{"type":"object","properties":{` + strings.Join(fields, ",") + `}`
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 400) + `{}` + strings.Repeat(`}}`, 400)
	for _, schema := range []string{wide + `,"$defs":{"a":` + wide + `}}}`, deep, strings.Repeat(`{"anyOf":[`, 200) + "{}" +
		strings.Repeat(`]}`, 200)} {
		tool := &Tool{Params: json.RawMessage(schema), Returns: json.RawMessage(schema)}
		if got := TypeScript("a.b", tool); len(got) > 4*tsBytes {
			t.Errorf("%d bytes", len(got))
		}
	}
}

func TestTypeScriptDocs(t *testing.T) {
	m := &Manifest{Name: "text", ExitCodes: []ExitCode{{Code: 10, Name: "no_match", Meaning: "Nothing */ matches"}}}
	tool := &Tool{Name: "find", Effect: EffectRead, Docs: Docs{Brief: "Find", Standard: "Find a text."},
		Params:    json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"Where."}},"required":["text"]}`),
		Returns:   json.RawMessage(`{"type":"object","properties":{"at":{"type":"integer","description":"The offset."}},"required":["at"]}`),
		ExitCodes: []string{"no_match"}, WhenNot: "the text is a page",
		Examples: []Example{{Title: "One", Params: json.RawMessage(`{"text": "a"}`)}}}
	const want = `/**
 * Find a text.
 * @param p.text Where.
 * @returns at: The offset.
 * @throws no_match: Nothing * / matches
 * Not when the text is a page
 * @example await tools.text.find({"text":"a"})
 */
tools.text.find(p: {text: string}): {at: number}`
	if got := Describe(m, tool, Tier2).TypeScript(tool); got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestCasesAreAsRequired checks that the cases of a parameter that may be left out are not shown as required.
func TestCasesAreAsRequired(t *testing.T) {
	tool := &Tool{Name: "t", Params: json.RawMessage(`{"type":"object","properties":{
		"y":{"anyOf":[{"type":"string","description":"A name."},{"type":"array","items":{"type":"string"},"description":"Names."}]},
		"z":{"oneOf":[{"type":"object","description":"A.","properties":{"a":{}}},{"type":"object","description":"B.","properties":{"b":{}}}]}
	}}`)}
	for _, p := range WithFields(Describe(&Manifest{Name: "p"}, tool, Tier3).Parameters) {
		if p.Required {
			t.Errorf("%s is shown as required", p.Text())
		}
	}
}

// TestPortableSaysWhatIsTooDeep checks that the words say the type where the nesting of a listed schema ends.
func TestPortableSaysWhatIsTooDeep(t *testing.T) {
	schema := `{"type":"object","properties":{"op":{"enum":["eq","lt"],"description":"How to compare."}},"required":["op"]}`
	for range 14 {
		schema = `{"type":"object","properties":{"in":` + schema + `},"required":["in"]}`
	}
	got := string(Portable(json.RawMessage(schema)))
	if !strings.Contains(got, `{op: \"eq\"|\"lt\"}`) || !strings.Contains(got, "in.in.in.op: How to compare.") {
		t.Error(got)
	}
}
