package lint

import (
	"reflect"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

func TestCompare(t *testing.T) {
	property := func(schema string) string { return `{"tools": [{"params": {"properties": {"x": ` + schema + `}}}]}` }
	for _, c := range []struct {
		before, after string // fragments; see example
		kind          string // "" for no change
		breaks        bool
		message       string
	}{
		{`{}`, `{}`, "", false, ""},
		{`{}`, `{"docs": {"brief": "Other words"}, "version": "1.3.0"}`, "", false, ""},
		// Tools.
		{`{"tools": [{}, {"name": "list_places", "params": {"properties": {"q": {"type": "string"}}}}]}`, `{}`, kindRemoved, true,
			"list_places: the tool is removed"},
		{`{}`, `{"tools": [{}, {"name": "list_places"}]}`, kindAdded, false, "the tool is new"},
		{`{}`, `{"tools": [{"name": "predict"}]}`, kindRenamed, true, "get_forecast: the tool is renamed to predict"},
		{`{"tools": [{"deprecated": {"use": "weather.predict"}}]}`, `{"tools": [{"name": "predict"}]}`,
			kindRenamed, true, "predict"},
		{`{}`, `{"tools": [{"effect": "write"}]}`, kindEffect, true, "from read to write"},
		{`{"tools": [{"effect": "destructive"}]}`, `{}`, kindEffect, false, "from destructive to read"},
		{`{"tools": [{"idempotent": true}]}`, `{}`, kindEffect, true, "idempotent"},
		{`{"tools": [{"positional": ["city"]}]}`, `{}`, kindNarrowed, true, "words after its name"},
		{`{"tools": [{"positional": ["city"]}]}`, `{"tools": [{"positional": ["city", "days"]}]}`, "", false, ""},
		{`{}`, `{"tools": [{"deprecated": {"use": "text.hash"}}]}`, kindDeprecated, false, "use text.hash"},
		// Parameters.
		{property(`{"type": "string"}`), `{}`, kindRemoved, true, "the parameter x is removed"},
		{`{}`, property(`{"type": "string"}`), kindAdded, false, "the parameter x is new"},
		{property(`{"type": "string", "maxLength": 9}`),
			`{"tools": [{"params": {"properties": {"y": {"type": "string", "maxLength": 9, "description": "New."}}}}]}`,
			kindRenamed, true, "the parameter x is renamed to y"},
		{property(`{"type": "string"}`),
			`{"tools": [{"params": {"properties": {"y": {"type": "integer", "x-aliases": ["x"]}}}}]}`,
			kindRenamed, true, "to y"},
		{`{}`, `{"tools": [{"params": {"required": ["city", "days"]}, "examples": []}]}`,
			kindNarrowed, true, "the parameter days is required now"},
		{`{"tools": [{"params": {"required": ["city", "days"]}, "examples": []}]}`, `{"tools": [{"examples": []}]}`, "", false, ""},
		{property(`{"type": "number"}`), property(`{"type": "integer"}`), kindNarrowed, true, "no longer accepts a number"},
		{property(`{"type": "integer"}`), property(`{"type": "number"}`), "", false, ""},
		{property(`{"type": ["string", "null"]}`), property(`{"type": "string"}`),
			kindNarrowed, true, "no longer accepts null"},
		{property(`{"enum": ["a", "b"]}`), property(`{"enum": ["a"]}`), kindNarrowed, true, `no longer accepts "b"`},
		{property(`{"enum": ["a"]}`), property(`{"enum": ["a", "b"]}`), "", false, ""},
		{property(`{"type": "string"}`), property(`{"type": "string", "enum": ["a"]}`),
			kindNarrowed, true, `accepts only "a"`},
		{property(`{"type": "integer", "minimum": 1}`), property(`{"type": "integer", "minimum": 2}`), kindNarrowed, true,
			"minimum changes from 1 to 2"},
		{property(`{"type": "integer", "minimum": 2}`), property(`{"type": "integer", "minimum": 1}`), "", false, ""},
		{property(`{"type": "number"}`), property(`{"type": "number", "maximum": 3.4028235e+38}`), "", false, ""},
		{property(`{"type": "number", "maximum": 3.4028235e+38}`), property(`{"type": "number", "maximum": 9}`),
			kindNarrowed, true, "maximum is now 9"},
		{property(`{"type": "string"}`), property(`{"type": "string", "maxLength": 5}`),
			kindNarrowed, true, "maxLength is now 5"},
		{property(`{"type": "string"}`), property(`{"type": "string", "pattern": "^a"}`), kindNarrowed, true, "pattern"},
		{property(`{"type": "array", "items": {"type": "string"}}`), property(`{"type": "array", "items": {"type": "integer"}}`),
			kindNarrowed, true, "the parameter x[] no longer accepts a string"},
		{property(`{"type": "object", "properties": {"a": {"type": "string"}}}`),
			property(`{"type": "object", "properties": {"a": {"type": "boolean"}}}`),
			kindNarrowed, true, "x.a no longer accepts a string"},
		{property(`{"$ref": "#/properties/city"}`), property(`{"type": "boolean"}`),
			kindNarrowed, true, "no longer accepts a string"},
		{property(`{"anyOf": [{"type": "string"}, {"type": "integer"}]}`), property(`{"anyOf": [{"type": "string"}]}`), kindNarrowed,
			true, "alternatives"},
		{`{"tools": [{"params": {"additionalProperties": true}}]}`, `{}`, kindNarrowed, true, "further properties"},
		{property(`{"type": "integer", "default": 1}`), property(`{"type": "integer", "default": 2}`),
			kindDefault, false, "from 1 to 2"},
		// Results.
		{`{}`, `{"tools": [{"returns": null}]}`, kindResult, true, "no longer declares"},
		{`{}`, `{"tools": [{"returns": {"properties": null, "required": null}}]}`,
			kindRemoved, true, "the field days of the result"},
		{`{}`, `{"tools": [{"returns": {"required": null}}]}`,
			kindResult, true, "the field days of the result can be missing"},
		{`{}`, `{"tools": [{"returns": {"properties": {"days": {"type": "string", "items": null}}}}]}`, kindResult, true,
			"the field days of the result can be a string"},
		{`{}`, `{"tools": [{"returns": {"properties": {"more": {"type": "string"}}}}]}`, kindAdded, false, "more"},
		// Exit codes, rights, settings.
		{`{"exit_codes": [{"code": 10, "name": "no_city", "meaning": "x"}], "tools": [{"exit_codes": ["no_city"]}]}`,
			`{"exit_codes": [{"code": 11, "name": "no_city", "meaning": "x"}], "tools": [{"exit_codes": ["no_city"]}]}`,
			kindExitCode, true, "from 10 to 11"},
		{`{"exit_codes": [{"code": 10, "name": "no_city", "meaning": "x"}], "tools": [{"exit_codes": ["no_city"]}]}`, `{}`,
			kindExitCode, true, "no longer ends in exit code 10"},
		{`{}`, `{"capabilities": {"browser": {"context": "session"}}}`,
			kindRights, true, "a further right: browser:session"},
		{`{}`, `{"capabilities": {"clock": {}}}`, kindRights, true, "a further right: clock"},
		{`{}`, `{"capabilities": {"clock": {"optional": true}}}`, kindRights, false, "optional: clock"},
		{`{"capabilities": {"clock": {"optional": true}}}`, `{"capabilities": {"clock": {}}}`,
			kindRights, true, "was optional: clock"},
		{`{"capabilities": {"clock": {}}}`, `{}`, kindRights, false, "no longer asks for clock"},
		{`{}`, `{"capabilities": {"http": [{"url": "https://api.weather.test", "methods": ["GET", "POST"]}]}}`, kindRights, true,
			"http:POST:https://api.weather.test"},
		{`{"capabilities": {"fs": [{"path": "/d", "mode": "rw"}]}}`, `{"capabilities": {"fs": [{"path": "/d", "mode": "ro"}]}}`,
			kindRights, false, "no longer asks for fs:rw:PATH=/d"},
		{`{"capabilities": {"fs": [{"path": "/d", "mode": "ro"}]}}`, `{"capabilities": {"fs": [{"path": "/d", "mode": "rw"}]}}`,
			kindRights, true, "fs:rw:PATH=/d"},
		{`{}`, `{"settings": {"properties": {"unit": {"type": "string"}}, "required": ["unit"]}}`, kindNarrowed, true,
			"the setting unit is required now"},
	} {
		changes := Compare(example(t, c.before), example(t, c.after))
		if c.kind == "" {
			if len(changes) > 0 {
				t.Errorf("%s to %s: got %v", c.before, c.after, changes)
			}
			continue
		}
		if len(changes) != 1 {
			t.Errorf("%s to %s: expected one change, got %v", c.before, c.after, changes)
			continue
		}
		if got := changes[0]; got.Kind != c.kind || got.Breaks != c.breaks || !strings.Contains(got.String(), c.message) {
			t.Errorf("%s to %s: expected %s %v %q, got %s %v %q", c.before, c.after, c.kind, c.breaks, c.message, got.Kind,
				got.Breaks, got)
		}
		if len(Breaking(changes)) > 0 != c.breaks {
			t.Errorf("%s to %s: breaking are %v", c.before, c.after, Breaking(changes))
		}
	}
}

func TestIsMajor(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          bool
	}{
		{"1.9.9", "2.0.0", true}, {"1.0.0", "1.9.0", false}, {"2.0.0", "1.0.0", false}, {"0.9.0", "1.0.0-rc.1", true},
		{"0.1.0", "0.2.0", false}, {"9.0.0", "10.0.0", true}, {"1.0.0", "99999999999999999999999.0.0", true}, {"", "", false},
	} {
		if got := IsMajor(c.before, c.after); got != c.want {
			t.Errorf("IsMajor(%q, %q) = %v", c.before, c.after, got)
		}
	}
}

// TestEveryCapabilityIsARight fills each field of the capabilities, so that an upgrade cannot request a new one
// without being noticed.
func TestEveryCapabilityIsARight(t *testing.T) {
	fields := reflect.TypeFor[manifest.Capabilities]()
	for i := range fields.NumField() {
		var c manifest.Capabilities
		f := reflect.ValueOf(&c).Elem().Field(i)
		switch f.Kind() {
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		}
		name := fields.Field(i).Name
		if list := c.Rights(); len(list) != 1 {
			t.Errorf("%s requests the rights %v", name, list)
		}
		if found := Breaking(Compare(&manifest.Manifest{}, &manifest.Manifest{Capabilities: c})); len(found) == 0 {
			t.Errorf("adding %s is not a breaking change", name)
		}
	}
}
