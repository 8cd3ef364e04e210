package protocol

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// validate validates params by the command's schema and returns the violations.
func validate(t *testing.T, raw, params []byte) []string {
	t.Helper()
	s, err := schema.CompileTrusted(raw)
	if err != nil {
		t.Fatalf("the schema does not compile: %v\n%s", err, raw)
	}
	v, err := jsontext.Decode(params, jsontext.Limits{})
	if err != nil {
		t.Fatalf("the parameters are not JSON: %v\n%s", err, params)
	}
	violations, err := s.Validate(v)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, x := range violations {
		out = append(out, x.String())
	}
	return out
}

func TestExamples(t *testing.T) {
	p := Embedded()
	for _, name := range p.Names() {
		c, _ := p.Command(name)
		e := &exampleBuilder{p: p, onFallback: func(owner, param string) {
			t.Errorf("%s: gen/values.tsv has nothing for %s in %s", name, param, owner)
		}}
		list := e.examples(c)
		if len(list) == 0 || list[0].Kind != "minimal" {
			t.Errorf("%s: the first example is not the smallest call: %v", name, list)
			continue
		}
		raw := p.ParamsSchema(c)
		for _, x := range list {
			if problems := validate(t, raw, x.Params); len(problems) > 0 {
				t.Errorf("%s, %s: %s\n%s", name, x.Title, strings.Join(problems, "; "), x.Params)
			}
			var v any
			if err := json.Unmarshal(x.Params, &v); err != nil {
				t.Errorf("%s, %s: %v", name, x.Title, err)
			}
			visitPlaceholders(v, func(s string) {
				if !intentionallyEmpty[name+": "+x.Title] {
					t.Errorf("%s, %s: %q is a placeholder: %s", name, x.Title, s, x.Params)
				}
			})
		}
	}
}

// intentionallyEmpty lists examples that contain something empty on purpose.
var intentionallyEmpty = map[string]bool{
	"DOMDebugger.setXHRBreakpoint: Pause on every request":           true,
	"IndexedDB.requestData: All parameters":                          true, // a key of the type string
	"Input.dispatchTouchEvent: Lift all fingers":                     true,
	"Network.emulateNetworkConditionsByRule: Slow 3G for everything": true,
}

// visitPlaceholders reports strings that are only placeholders.
func visitPlaceholders(v any, report func(string)) {
	switch v := v.(type) {
	case nil:
		report("null")
	case string:
		switch strings.ToLower(v) {
		case "", "example", "string", "foo", "bar", "value", "name", "text", "test":
			report(v)
		}
	case []any:
		if len(v) == 0 {
			report("[]")
		}
		for _, x := range v {
			visitPlaceholders(x, report)
		}
	case map[string]any:
		for _, x := range v {
			visitPlaceholders(x, report)
		}
	}
}
