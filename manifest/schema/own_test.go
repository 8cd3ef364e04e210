package schema

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/xeipuuv/gojsonschema"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// ownDocuments are the schemas of Parley's own formats, each with a valid document.
var ownDocuments = []struct {
	schema   string
	document string // "" is the manifest of ../testdata
}{
	{"../schema.json", ""},
	{"../../host/policy/schema.json", `{
		"operator": {"audit": "required", "allow_yes": true},
		"callers": {"cli": {"allow": ["*"], "deny": ["cdp.Browser.*"]}},
		"secrets": {"TOKEN": {"from": "env:TOKEN"}},
		"plugin": {"notes": {"limits": {"memory_mib": 64}, "settings": {"a": 1}}}
	}`},
	{"../../cmd/parley/internal/command/config.schema.json",
		`{"timeout": "30s", "pinned_tools": ["a.b"], "max_bytes": 3, "traces": {"off": true, "keep_days": 3}}`,
	},
}

// TestOwnDocuments compares the walker's verdicts on documents in Parley's own formats with those of gojsonschema: on
// valid ones, and on each document that differs from one of them in one place.
func TestOwnDocuments(t *testing.T) {
	t.Parallel()
	small, err := os.ReadFile("../testdata/small.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range ownDocuments {
		raw, err := os.ReadFile(c.schema)
		if err != nil {
			t.Fatal(err)
		}
		s, err := CompileTrusted(raw)
		if err != nil {
			t.Fatal(err)
		}
		loader := gojsonschema.NewSchemaLoader()
		loader.AutoDetect, loader.Draft = false, gojsonschema.Draft7
		second, err := loader.Compile(gojsonschema.NewRawLoader(s.Root()))
		if err != nil {
			t.Fatal(err)
		}
		text := cmp.Or(c.document, string(small))
		verdicts := map[bool]int{}
		compare := func(doc any, at string) bool {
			violations, err := s.Validate(doc)
			if err != nil {
				t.Fatal(err)
			}
			result, err := second.Validate(gojsonschema.NewRawLoader(doc))
			if err != nil {
				t.Fatal(err)
			}
			valid := len(violations) == 0
			if valid != result.Valid() {
				t.Errorf("%s, changed at %s to\n%s\nthe walker: %v\ngojsonschema: %v", filepath.Base(c.schema), at,
					jsontext.Marshal(doc), violations, result.Errors())
			}
			verdicts[valid]++
			return valid
		}
		doc, err := jsontext.Decode([]byte(text), jsontext.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if !compare(doc, "no place") {
			t.Errorf("%s refuses %s", c.schema, text)
		}
		changes(doc, "", func(at string) { compare(doc, at) })
		if verdicts[true] < 5 || verdicts[false] < 20 {
			t.Errorf("%s: %d valid and %d invalid documents prove little", c.schema, verdicts[true], verdicts[false])
		}
	}
}

// otherValues replace a value.
var otherValues = []any{true, "", "a b/..", json.Number("-1.5"), []any{"x", "x"}, map[string]any{}}

// changes calls a function with each change below v in force, one at a time.
func changes(v any, at string, changed func(at string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			place, old := at+"/"+name, v[name]
			delete(v, name)
			changed(place)
			for _, other := range otherValues {
				v[name] = other
				changed(place)
			}
			v[name] = old
			changes(old, place, changed)
		}
		const unknown = "surprise"
		v[unknown] = "x"
		changed(at + "/" + unknown)
		delete(v, unknown)
	case []any:
		for i, old := range v {
			place := at + "/" + strconv.Itoa(i)
			for _, other := range otherValues {
				v[i] = other
				changed(place)
			}
			v[i] = old
			changes(old, place, changed)
		}
	}
}
