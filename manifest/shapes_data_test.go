package manifest_test

import (
	"encoding/json"
	"strings"
)

// shape is a schema of parameters of one form that authors write. Each of its facts is in every text that shows it
// whole, and nothing in wrong is. In a fact, INT is an integer as the text spells it.
type shape struct {
	name         string
	params       json.RawMessage
	facts, wrong []string
}

// defs are types that shapes refer to.
const defs = `"$defs":{"Base":{"type":"object","properties":{"zb":{"type":"string","description":"Of base."}},"required":["zb"]},
"Rec":{"oneOf":[{"type":"number"},{"type":"array","prefixItems":[{"enum":["zplus"]},{"$ref":"#/$defs/Rec"}]}]},
"Tree":{"type":"object","properties":{"zlabel":{"type":"string"},"zkids":{"type":"array","items":{"$ref":"#/$defs/Tree"}}}}}`

// shapes returns forms of schemas that are not among those of [schemafacts.Random], for tests of every text that shows
// schemas.
func shapes() []shape {
	prop := func(name, of string, facts, wrong []string) shape {
		schema := `{"type":"object","properties":{"zp":` + of + `},"required":["zp"],"additionalProperties":false,` + defs + `}`
		return shape{name, json.RawMessage(strings.ReplaceAll(schema, "\n", "")), append(facts, "zp"), wrong}
	}
	root := func(name, of string, facts, wrong []string) shape {
		return shape{name, json.RawMessage(strings.ReplaceAll(`{"type":"object",`+of+`,`+defs+`}`, "\n", "")), facts, wrong}
	}
	return []shape{
		root("cases of all parameters", `"oneOf":[{"properties":{"zurl":{"type":"string","format":"uri","description":"Where."}},
			"required":["zurl"]},{"properties":{"zpath":{"type":"string"},"zmode":{"enum":["zr","zw"]}},"required":["zpath"]}]`,
			[]string{"zurl", "uri", "zpath", "zmode", "zr", "zw"}, nil),
		root("parameters with cases", `"properties":{"zt":{"type":"string"}},"anyOf":[{"properties":{"za":{"type":"integer"}}},
			{"$ref":"#/$defs/Base"}]`, []string{"zt", "za", "zb"}, nil),
		root("cases with one name", `"oneOf":[{"properties":{"zkind":{"const":"zone"}}},{"properties":{"zkind":{"const":"ztwo"}}}]`,
			[]string{"zkind", "zone", "ztwo"}, nil),
		root("a map of parameters", `"additionalProperties":{"type":"integer","description":"Count."}`,
			[]string{"string", "INT"}, []string{"result: R", `"result","type":"o`}),
		root("parameters and a map", `"properties":{"zid":{"type":"string"}},"additionalProperties":{"enum":["zv"]}`,
			[]string{"zid", "zv"}, nil),
		root("parameters of a reference with more", `"$ref":"#/$defs/Base","properties":{"zown":{"type":"integer"}},"required":["zown"]`,
			[]string{"zown", "zb"}, nil),
		prop("an object with cases", `{"type":"object","properties":{"zt":{"type":"string"}},"oneOf":[{"properties":{"za":{"type":"integer"}},
			"required":["za"]},{"properties":{"zc":{"format":"date","type":"string"}},"required":["zc"]}]}`,
			[]string{"zt", "za", "zc", "date"}, nil),
		prop("an object and a map", `{"type":"object","properties":{"zid":{"type":"string"}},"additionalProperties":{"enum":["zv"]}}`,
			[]string{"zid", "zv"}, nil),
		prop("a reference with more", `{"$ref":"#/$defs/Base","properties":{"zown":{"type":"integer"}}}`, []string{"zown", "zb"}, nil),
		prop("a format or null", `{"anyOf":[{"type":"string","format":"date"},{"type":"null"}]}`, []string{"date", "null"}, nil),
		prop("base64 or null", `{"anyOf":[{"type":"string","contentEncoding":"base64"},{"type":"null"}]}`,
			[]string{"base64", "null"}, nil),
		prop("a union of one type", `{"type":"string","anyOf":[{"enum":["zv"]},{"pattern":"^z"}]}`, []string{"zv", "string"},
			[]string{"any", "unknown"}),
		prop("a tuple with more", `{"type":"array","prefixItems":[{"enum":["zv"]}],"items":{"enum":["zmore"]}}`,
			[]string{"zv", "zmore"}, nil),
		prop("a type in itself", `{"$ref":"#/$defs/Rec"}`, []string{"number", "zplus", "…"}, []string{`"|"number"`, "any", "unknown"}),
		prop("a map of a type in itself", `{"type":"object","additionalProperties":{"$ref":"#/$defs/Tree"}}`,
			[]string{"zlabel", "zkids"}, nil),
		prop("lists of lists of lists", `{"type":"array","items":{"type":"array","items":{"type":"array","items":
			{"enum":["zv","zw"]}}}}`, []string{"zv", "zw"}, []string{"((", "[])["}),
		prop("values of several types", `{"enum":["zv",7,2.5,true,null,{"zk":[1]}]}`,
			[]string{"zv", "7", "2.5", "true", "null", "zk"}, nil),
	}
}
