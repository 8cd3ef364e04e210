package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest/jsontext"
)

const (
	partsSchema = `{"type":"object","additionalProperties":false,"properties":{
		"kinds":{"type":"string","description":"Kinds, separated by commas."},"source":{"type":"string","description":"The program."},
		"key":{"type":"string","description":"Key or combination."},"headers":{"type":"object"},"body":{"type":"string","description":"Body to send."},
		"pairs":{"type":"array","items":{"type":"object","required":["name","value"],"properties":{"name":{"type":"string"},"value":{"type":"string"}}}},
		"ignore_case":{"type":"boolean"}}}`
	hashSchema = `{"type":"object","additionalProperties":false,"required":["text"],"properties":{
		"text":{"type":"string","description":"What to hash."},"algorithm":{"enum":["sha256","sha1","sha512","md5"],"default":"sha256"},
		"input":{"enum":["utf8","base64","hex"],"default":"utf8"}}}`
	findSchema = `{"type":"object","additionalProperties":false,"required":["text","pattern"],"properties":{
		"text":{"type":"string"},"pattern":{"type":"string"},"ignore_case":{"type":"boolean"},"limit":{"type":"integer","minimum":1,"maximum":50}}}`
	programSchema = `{"type":"object","additionalProperties":false,"required":["source"],"properties":{
		"source":{"type":"string"},"inputs":{"type":"object","default":{}}}}`
	pdfSchema = `{"type":"object","additionalProperties":false,"required":["vars"],"properties":{
		"marginTop":{"type":"number","description":"In inches."},"margin_bottom":{"type":"number"},
		"vars":{"type":"object","x-aliases":["names"]},"sheet_name":{"type":"string","x-aliases":["sheet"]}}}`
	shotSchema = `{"type":"object","additionalProperties":false,"properties":{"format":{"enum":["png","jpeg"]},
		"clip":{"type":"object","additionalProperties":false,"required":["x","y"],"properties":{"x":{"type":"number"},"y":{"type":"number"}}},
		"urls":{"type":"array","items":{"type":"string","description":"A page"}},"fast":{"type":"boolean"}}}`
	evalSchema = `{"type":"object","additionalProperties":false,"required":["expression"],"properties":{
		"expression":{"type":"string","x-aliases":["formula"]},"mode":{"const":"fast"},"returnByValue":{"type":"boolean"},
		"to":{"type":"object","additionalProperties":false,"required":["kind","name","tags"],"properties":{"kind":{"const":"k"},
			"name":{"type":"string","description":"who"},"tags":{"type":"array","items":{"type":"integer"}}}}}}`
)

func TestCorrect(t *testing.T) {
	for _, c := range []struct{ name, schema, given, want, changes string }{
		// Names.
		{"misspelt where any name is accepted", `{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"mode":{}}}`,
			`{"pth":"a","other":1}`, `{"other":1,"path":"a"}`, `/pth>/path renamed`},
		{"misspelt below, where any name is accepted",
			`{"properties":{"at":{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}}}}`,
			`{"at":{"Path":"a"}}`, `{"at":{"path":"a"}}`, `/at/Path>/at/path renamed`},
		{"a file for what resembles its name", `{"additionalProperties":false,"required":["patch"],"properties":{"patch":{}}}`,
			`{"path":"a"}`, `{"patch":"<hole patch: any value, >"}`, `/path dropped`},
		{"another name where any is accepted", `{"required":["path"],"properties":{"path":{"type":"string"}}}`, `{"other":"a"}`,
			`{"other":"a","path":"<hole path: string, >"}`, ``},
		{"misspelt", hashSchema, `{"txet":"a"}`, `{"text":"a"}`, `/txet>/text renamed`},
		{"in another case", findSchema, `{"text":"a","pattern":"b","ignoreCase":true}`,
			`{"ignore_case":true,"pattern":"b","text":"a"}`, `/ignoreCase>/ignore_case renamed`},
		{"an alias", evalSchema, `{"formula":"1"}`, `{"expression":"1"}`, `/formula>/expression renamed`},
		{"a number in a text, for several types", `{"properties":{"a":{"type":["integer","null"]}}}`, `{"a":"-10"}`, `{"a":-10}`,
			`/a>/a parsed`},
		{"a number in a text, for alternatives", `{"properties":{"a":{"anyOf":[{"type":"integer"},{"type":"object"}]}}}`,
			`{"a":"7"}`, `{"a":7}`, `/a>/a parsed`},
		{"an object in a text, for alternatives", `{"properties":{"a":{"anyOf":[{"type":"object","required":["b"]},{"const":""}]}}}`,
			`{"a":"{\"b\":1}"}`, `{"a":{"b":1}}`, `/a>/a parsed`},
		{"a text in a list, for alternatives", `{"properties":{"a":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}`,
			`{"a":["x"]}`, `{"a":"x"}`, `/a/0>/a unwrapped`},
		{"a value for a list of any", `{"properties":{"a":{"type":"array","items":{}}}}`, `{"a":{"b":[1]}}`,
			`{"a":[{"b":[1]}]}`, `/a>/a coerced`},
		{"JSON in a text for a list of any", `{"properties":{"a":{"type":"array","items":{}}}}`, `{"a":"{\"b\":1}"}`,
			`{"a":[{"b":1}]}`, `/a>/a coerced`},
		{"a list of any under its name twice", `{"properties":{"a":{"type":"array","items":{}}}}`, `{"a":{"a":[1]}}`,
			`{"a":[1]}`, `/a/a>/a unwrapped`},
		{"null in a text", `{"properties":{"a":{"type":["integer","null"]}}}`, `{"a":"null"}`,
			`{"a":"<hole a: integer or null, >"}`, `/a dropped`},
		{"data", hashSchema, `{"data":"a"}`, `{"text":"a"}`, `/data>/text renamed`},
		{"regex", findSchema, `{"text":"a","regex":"b"}`, `{"pattern":"b","text":"a"}`, `/regex>/pattern renamed`},
		{"algo", hashSchema, `{"text":"a","algo":"md5"}`, `{"algorithm":"md5","text":"a"}`, `/algo>/algorithm renamed`},
		{"script", evalSchema, `{"script":"1"}`, `{"expression":"1"}`, `/script>/expression renamed`},
		{"query", `{"additionalProperties":false,"required":["json","filter"],"properties":{"json":{},"filter":{"type":"string"}}}`,
			`{"json":1,"query":".a"}`, `{"filter":".a","json":1}`, `/query>/filter renamed`},
		{"two renames", findSchema, `{"data":"a","regex":"b"}`, `{"pattern":"b","text":"a"}`,
			`/data>/text renamed, /regex>/pattern renamed`},
		{"by type", hashSchema, `{"zzz":"a"}`, `{"text":"a"}`, `/zzz>/text renamed`},
		{"by type, of another type", findSchema, `{"text":"a","zzz":["b"]}`,
			`{"pattern":"<hole pattern: string, >","text":"a"}`, `/zzz dropped`},
		{"the only place, in a list", pdfSchema, `{"settings":[{"a":1}],"marginTop":1}`, `{"marginTop":1,"vars":{"a":1}}`,
			`/settings>/vars renamed, /settings/0>/vars unwrapped`},
		{"the only place, and perhaps a switch", hashSchema, `{"u":"a"}`, `{"text":"<hole text: string, What to hash.>"}`,
			`/u dropped`},
		{"two words in an object", pdfSchema, `{"margin":{"top":"0.5in","bottom":1},"vars":{}}`,
			`{"marginTop":0.5,"margin_bottom":1,"vars":{}}`,
			`/margin/bottom>/margin_bottom moved, /margin/top>/marginTop moved, /margin/top>/marginTop coerced`},
		{"two words, one unknown", pdfSchema, `{"margin":{"top":1,"left":1},"vars":{}}`,
			`{"marginTop":"<hole marginTop: number, In inches.>","vars":{}}`, `/margin dropped`},
		{"an alias with an object of parameters", pdfSchema, `{"sheet":{"margin_bottom":2,"MarginTop":1},"vars":{}}`,
			`{"marginTop":1,"margin_bottom":2,"vars":{}}`,
			`/sheet/MarginTop>/marginTop renamed, /sheet/margin_bottom>/margin_bottom unwrapped`},
		{"JSON in a text under another name", `{"additionalProperties":false,"required":["data"],"properties":{
			"data":{"description":"Any JSON."},"n":{}}}`, `{"json":"{\"a\":1}","n":1}`, `{"data":{"a":1},"n":1}`,
			`/json>/data renamed, /json>/data parsed`},
		{"by type, two candidates", findSchema, `{"zzz":"a"}`,
			`{"pattern":"<hole pattern: string, >","text":"<hole text: string, >"}`, `/zzz dropped`},
		{"by type, two values", hashSchema, `{"zzz":"a","yyy":"b"}`, `{"text":"<hole text: string, What to hash.>"}`,
			`/yyy dropped, /zzz dropped`},
		{"by value", hashSchema, `{"text":"a","with":"md5"}`, `{"algorithm":"md5","text":"a"}`, `/with>/algorithm renamed`},
		{"by value, and another parameter is missing", hashSchema, `{"with":"md5"}`,
			`{"algorithm":"md5","text":"<hole text: string, What to hash.>"}`, `/with>/algorithm renamed`},
		{"unknown", hashSchema, `{"text":"a","colour":"red"}`, `{"text":"a"}?`, `/colour dropped`},
		{"renamed and coerced", findSchema, `{"text":"a","pattern":"b","lmit":"5"}`, `{"limit":5,"pattern":"b","text":"a"}`,
			`/lmit>/limit renamed, /lmit>/limit coerced`},
		{"renamed into a list", shotSchema, `{"url":"https://a.test"}`, `{"urls":["https://a.test"]}`, `/url>/urls/0 renamed`},
		{"names that differ in a digit", `{"additionalProperties":false,"properties":{"param1":{},"param3":{}}}`,
			`{"param2":1}`, `{}?`, `/param2 dropped`},

		{"JSON that became a name", hashSchema, `{"\"text\": \"a\"":""}`, `{"text":"<hole text: string, What to hash.>"}`,
			`/"text": "a" dropped`},

		// Levels.
		{"in the place of an enum", hashSchema, `{"algorithm":{"text":"a"}}`, `{"text":"a"}`,
			`/algorithm/text>/text unwrapped`},
		{"in the place of an enum, and of another type", hashSchema, `{"algorithm":{"text":["a","b"]}}`,
			`{"algorithm":"<hole algorithm: one of \"sha256\", \"sha1\", \"sha512\", \"md5\", >","text":"<hole text: string, What to hash.>"}`,
			`/algorithm dropped`},
		{"one level too deep", hashSchema, `{"params":{"text":"a","algorithm":"md5"}}`, `{"algorithm":"md5","text":"a"}`,
			`/params/algorithm>/algorithm unwrapped, /params/text>/text unwrapped`},
		{"one level too deep, with a mistake", hashSchema, `{"params":{"txet":"a"}}`, `{"text":"a"}`, `/params/txet>/text renamed`},
		{"one level too deep, beside others", findSchema, `{"text":"a","options":{"pattern":"b","limit":2}}`,
			`{"limit":2,"pattern":"b","text":"a"}`, `/options/limit>/limit unwrapped, /options/pattern>/pattern unwrapped`},
		{"one level too deep, by an alias, in a list of one",
			`{"additionalProperties":false,"properties":{"a":{},"count":{"x-aliases":["times"]},"unit":{}}}`,
			`{"a":1,"more":[{"times":2,"unit":"x"}]}`, `{"a":1,"count":2,"unit":"x"}`,
			`/more/0/times>/count renamed, /more/0/unit>/unit unwrapped`},
		{"the only one of a list, by a name that means the same", hashSchema, `{"contents":["a"]}`, `{"text":"a"}`,
			`/contents>/text renamed, /contents/0>/text unwrapped`},
		{"several of a list, by a name that means the same", hashSchema, `{"contents":["a","b"]}`,
			`{"text":"<hole text: string, What to hash.>"}`, `/contents dropped`},
		{"a length in the unit of its schema",
			`{"additionalProperties":false,"properties":{"width":{"type":"number","description":"Width in inches"}}}`,
			`{"width":"8.5in"}`, `{"width":8.5}`, `/width>/width coerced`},
		{"a length in another unit",
			`{"additionalProperties":false,"properties":{"width":{"type":"number","description":"Width in inches"}}}`,
			`{"width":"210mm"}`, `{"width":"<hole width: number, Width in inches>"}`, `/width dropped`},
		{"text of JSON one level too deep", hashSchema, `{"arguments":"{\"text\":\"a\"}"}`, `{"text":"a"}`, `/arguments>/text parsed`},
		{"one level too shallow", shotSchema, `{"x":1,"y":2}`, `{"clip":{"x":1,"y":2}}`, `/x>/clip/x moved, /y>/clip/y moved`},
		{"partly one level too shallow", shotSchema, `{"clip":{"x":1},"y":2}`, `{"clip":{"x":1,"y":2}}`, `/y>/clip/y moved`},
		{"a value one level too deep", hashSchema, `{"text":{"value":"a"}}`, `{"text":"a"}`, `/text/value>/text unwrapped`},
		{"a value in a list", hashSchema, `{"text":["a"]}`, `{"text":"a"}`, `/text/0>/text unwrapped`},
		{"all parameters within one", hashSchema, `{"text":{"text":"a","algorithm":"md5"}}`, `{"algorithm":"md5","text":"a"}`,
			`/text/algorithm>/algorithm unwrapped, /text/text>/text unwrapped`},
		{"in a list", hashSchema, `[{"text":"a"}]`, `{"text":"a"}`, `/0/text>/text unwrapped`},
		{"text of JSON", hashSchema, `"{\"text\":\"a\",\"algo\":\"md5\"}"`, `{"algorithm":"md5","text":"a"}`, `> parsed, /algo>/algorithm renamed`},
		{"a value instead of an object", hashSchema, `"a"`, `{"text":"a"}`, `>/text moved`},
		{"not an object", findSchema, `5`, `{"pattern":"<hole pattern: string, >","text":"<hole text: string, >"}`, ` dropped`},

		// Values.
		{"a number for a text", hashSchema, `{"text":5}`, `{"text":"5"}`, `/text>/text coerced`},
		{"word for a boolean", shotSchema, `{"fast":"yes"}`, `{"fast":true}`, `/fast>/fast coerced`},
		{"word for a boolean, other case", shotSchema, `{"fast":"No"}`, `{"fast":false}`, `/fast>/fast coerced`},
		{"word for a number", findSchema, `{"text":"a","pattern":"b","limit":"many"}`,
			`{"limit":"<hole limit: integer >= 1 and <= 50, >","pattern":"b","text":"a"}`, `/limit dropped`},
		{"a fraction", findSchema, `{"text":"a","pattern":"b","limit":2.5}`,
			`{"limit":"<hole limit: integer >= 1 and <= 50, >","pattern":"b","text":"a"}`, `/limit dropped`},
		{"out of range", findSchema, `{"text":"a","pattern":"b","limit":51}`,
			`{"limit":"<hole limit: integer >= 1 and <= 50, >","pattern":"b","text":"a"}`, `/limit dropped`},
		{"a choice misspelt", hashSchema, `{"text":"a","algorithm":"sha25"}`, `{"algorithm":"sha256","text":"a"}`, `/algorithm>/algorithm coerced`},
		{"a choice with transposed letters", hashSchema, `{"text":"a","algorithm":"sh2a56"}`,
			`{"algorithm":"sha256","text":"a"}`, `/algorithm>/algorithm coerced`},
		{"a choice in another case", shotSchema, `{"format":"PNG"}`, `{"format":"png"}`, `/format>/format coerced`},
		{"a short form of a choice", shotSchema, `{"format":"jpg"}`, `{"format":"jpeg"}`, `/format>/format coerced`},
		{"another choice, not a typo", hashSchema, `{"text":"a","algorithm":"sha224"}`,
			`{"algorithm":"<hole algorithm: one of \"sha256\", \"sha1\", \"sha512\", \"md5\", >","text":"a"}`, `/algorithm dropped`},
		{"a choice with another digit", hashSchema, `{"text":"a","algorithm":"md4"}`,
			`{"algorithm":"<hole algorithm: one of \"sha256\", \"sha1\", \"sha512\", \"md5\", >","text":"a"}`, `/algorithm dropped`},
		{"the only value", evalSchema, `{"expression":"1","mode":"slow"}`, `{"expression":"1","mode":"fast"}?`, `>/mode only, /mode dropped`},
		{"a number in a list of texts", shotSchema, `{"urls":[3]}`, `{"urls":["3"]}`, `/urls/0>/urls/0 coerced`},
		{"an object in a list of texts", shotSchema, `{"urls":["a",{"x":1,"y":2}]}`, `{"urls":["a","<hole url: string, A page>"]}`, `/urls/1 dropped`},
		{"duplicates", `{"properties":{"tags":{"uniqueItems":true}}}`, `{"tags":["a","a","b"]}`, `{"tags":"<hole tags: array without duplicates, >"}`,
			`/tags dropped`},
		{"null for a required parameter", hashSchema, `{"text":null}`, `{"text":"<hole text: string, What to hash.>"}`, `/text dropped`},
		{"null for an optional parameter", hashSchema, `{"txet":"a","algorithm":null}`, `{"text":"a"}`, `/algorithm dropped, /txet>/text renamed`},

		// Lists, and what is in them.
		{"a list for a text with commas", partsSchema, `{"kinds":["a","b"]}`, `{"kinds":"a,b"}`, `/kinds>/kinds coerced`},
		{"a list of lines", partsSchema, `{"source":["a","b"]}`, `{"source":"a\nb"}`, `/source>/source coerced`},
		{"keys that are held together", partsSchema, `{"key":["Control","a"]}`, `{"key":"Control+a"}`, `/key>/key coerced`},
		{"a list for a text that does not say how", hashSchema, `{"text":["a","b"]}`, `{"text":"<hole text: string, What to hash.>"}`,
			`/text dropped`},
		{"names and values for an object", partsSchema, `{"headers":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}`,
			`{"headers":{"A":"1","B":"2"}}`, `/headers>/headers coerced`},
		{"lists of two", partsSchema, `{"headers":[["A","1"]]}`, `{"headers":{"A":"1"}}`, `/headers>/headers coerced`},
		{"lines for an object", partsSchema, `{"headers":"A: 1\nB: 2"}`, `{"headers":{"A":"1","B":"2"}}`, `/headers>/headers coerced`},
		{"a name twice", partsSchema, `{"headers":["A: 1","A: 2"]}`, `{"headers":"<hole headers: object, >"}`, `/headers dropped`},
		{"an object for names and values", partsSchema, `{"pairs":{"B":"2","A":"1"}}`,
			`{"pairs":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}`, `/pairs>/pairs coerced`},
		{"an object for a text of JSON", partsSchema, `{"body":{"a":1}}`, `{"body":"{\"a\":1}"}`, `/body>/body coerced`},

		// Places.
		{"the letter of a switch", partsSchema, `{"i":true}`, `{"ignore_case":true}`, `/i>/ignore_case renamed`},
		{"a letter with a value", partsSchema, `{"i":"a"}`, `{}?`, `/i dropped`},
		{"a text in the place of a choice", hashSchema, `{"algorithm":"hello"}`, `{"text":"hello"}`, `/algorithm>/text moved`},
		{"a text in the place of a choice, and two are missing", `{"required":["a","b"],"properties":{"a":{"type":"string"},
			"b":{"type":"string"},"c":{"enum":["x","y"]}}}`, `{"c":"hello"}`,
			`{"a":"<hole a: string, >","b":"<hole b: string, >","c":"<hole c: one of \"x\", \"y\", >"}`, `/c dropped`},

		{"what a program names as an input", programSchema, `{"source":"let a = inputs.a\nreturn a","a":5}`,
			`{"inputs":{"a":5},"source":"let a = inputs.a\nreturn a"}`, `/a>/inputs/a moved`},
		{"what a program does not name", programSchema, `{"source":"return inputs.ab","a":5}`, `{"source":"return inputs.ab"}?`,
			`/a dropped`},
		{"more than a program names", programSchema, `{"source":"return inputs.a","a":5,"b":6}`,
			`{"source":"return inputs.a"}?`, `/a dropped, /b dropped`},

		// Placeholders.
		{"nothing given", hashSchema, `{}`, `{"text":"<hole text: string, What to hash.>"}`, ``},
		{"a missing choice", `{"required":["n"],"properties":{"n":{"type":"integer","enum":[1,2]}}}`, `{}`,
			`{"n":"<hole n: one of 1, 2, >"}`, ``},
		{"within an object", evalSchema, `{"expression":"1","to":{"kind":"x"}}`,
			`{"expression":"1","to":{"kind":"k","name":"<hole name: string, who>","tags":["<hole tag: integer, >"]}}`,
			`>/to/kind only, /to/kind dropped`},
	} {
		for kind, f := range compilers {
			s := compile(t, f, c.schema)
			v := decode(t, c.given)
			got := s.Correct(v, hole)
			var changes []string
			for _, x := range got.Changes {
				text := x.From
				if x.How != Dropped {
					text += ">" + x.To
				}
				changes = append(changes, text+" "+x.How)
			}
			want, unsure := strings.CutSuffix(c.want, "?")
			complete := !unsure && !strings.Contains(want, "<hole ")
			if text := string(jsontext.Marshal(got.Value)); text != want || got.Complete != complete {
				t.Errorf("%s, %s: got %s %v\nwant %s %v", c.name, kind, text, got.Complete, want, complete)
			}
			if text := strings.Join(changes, ", "); text != c.changes {
				t.Errorf("%s, %s: changes %s\nwant %s", c.name, kind, text, c.changes)
			}
			if !equal(v, decode(t, c.given)) {
				t.Errorf("%s: the given value was changed", c.name)
			}
			checkCorrection(t, s, v)
		}
	}
}

func TestChangeAsJSON(t *testing.T) {
	raw, err := json.Marshal([]Change{{"/url", "/urls/0", Renamed}, {From: "/x", How: Dropped}, {To: "/y", How: OnlyValue},
		{"", "/text", Moved}})
	want := `[{"from":"/url","to":"/urls/0","how":"renamed"},{"from":"/x","how":"dropped"},{"to":"/y","how":"only"},` +
		`{"from":"","to":"/text","how":"moved"}]`
	if err != nil || string(raw) != want {
		t.Errorf("got %s, %v", raw, err)
	}
}

// A correction adds no property of a branch that nothing of the value is of.
func TestCorrectStaysInTheBranchThatWasMeant(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var branches []any
		for b := range 2 + rnd.IntN(3) {
			properties, required := map[string]any{}, []any{}
			for p := range 1 + rnd.IntN(3) {
				name := fmt.Sprintf("%c%cx%d", 'a'+b, 'k'+5*b, p)
				properties[name] = []any{map[string]any{"type": "integer", "maximum": 5}, map[string]any{"type": "string"},
					map[string]any{"enum": []any{"on", "off"}}}[rnd.IntN(3)]
				if rnd.IntN(2) == 0 {
					required = append(required, name)
				}
			}
			branch := map[string]any{"type": "object", "properties": properties, "required": required}
			if rnd.IntN(2) == 0 {
				branch["additionalProperties"] = false
			}
			branches = append(branches, branch)
		}
		union := map[string]any{[]string{"anyOf", "oneOf"}[rnd.IntN(2)]: branches}
		properties := branches[rnd.IntN(len(branches))].(map[string]any)["properties"].(map[string]any)
		name := slices.Sorted(maps.Keys(properties))[0]
		value := []any{map[string]any{name: []any{9, "none", true, nil}[rnd.IntN(4)]}}
		s := compile(t, CompileTrusted, string(jsontext.Marshal(map[string]any{"items": union})))
		c := s.Correct(value, func(_, name, _, _ string) string { return "<" + name + ">" })
		list, _ := c.Value.([]any)
		object, _ := list[0].(map[string]any)
		for added := range object {
			if properties[added] == nil {
				t.Fatalf("%s of %s became %s", jsontext.Marshal(value), jsontext.Marshal(union), jsontext.Marshal(c.Value))
			}
		}
	}
}
