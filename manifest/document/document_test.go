package document

import (
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest/jsontext"
)

func compiled(t *testing.T, raw string) *Schema {
	t.Helper()
	s, err := Compile([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	v, err := jsontext.Decode([]byte(text), jsontext.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestValidate(t *testing.T) {
	s := compiled(t, `{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],
		"additionalProperties":false}`)
	if violations, err := s.Validate(decoded(t, `{"n":1}`)); violations != nil || err != nil {
		t.Errorf("got %v, %v", violations, err)
	}
	violations, err := s.Validate(decoded(t, `{"n":0,"m":1}`))
	if err != nil || len(violations) != 2 || violations[0].Pointer != "/m" ||
		violations[1].String() != "/n: expected integer >= 1, got number 0" {
		t.Errorf("got %v, %v", violations, err)
	}
}

// TestBothMustAgree uses "format", which gojsonschema enforces and the walker treats as an annotation.
func TestBothMustAgree(t *testing.T) {
	s := compiled(t, `{"properties":{"a":{"type":"string","format":"ipv4"},"b":{"type":"string","format":"ipv4"}}}`)
	violations, err := s.Validate(decoded(t, `{"b":"x","a":"y"}`))
	want := "gojsonschema: a: Does not match format 'ipv4'; b: Does not match format 'ipv4'"
	if violations != nil || err == nil || err.Error() != want {
		t.Errorf("got %v, %v, want %s", violations, err, want)
	}
}

func TestCompileRefuses(t *testing.T) {
	for raw, reason := range map[string]string{
		`{"$ref":"#"}`: "never end",
		`{"properties":{"a":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`: "outside",
		`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`:              "draft-07",
		`{"maxItems":2.0}`: "gojsonschema",
		`{`:                "invalid JSON",
	} {
		if _, err := Compile([]byte(raw)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: got %v, want %q", raw, err, reason)
		}
	}
}
