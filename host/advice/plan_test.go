package advice

import (
	"encoding/json"
	"testing"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// A hole ends at a whole clause of the description.
func TestHolesEndAtAClause(t *testing.T) {
	for about, want := range map[string]string{
		`Column, for example "price".`: "<f: string, Column>",
		"Column, such as price":        "<f: string, Column>",
		"What it is. And more":         "<f: string, What it is>",
		"":                             "<f: string>",
		"The name of the column that is read, which the table must have, and which no other row of it names": "<f: string, " +
			"The name of the column that is read, which the table must have>",
	} {
		if got := holeOf(nil)("/f", "f", "string", about); got != want {
			t.Errorf("%s: %s", about, got)
		}
	}
}

// A hole says in which unit its value is, wherever the description says it.
func TestHolesHaveUnits(t *testing.T) {
	for about, want := range map[string]string{
		"How long to wait, in milliseconds.":  "<f: number, How long to wait in milliseconds>",
		"How long to wait (in seconds), or 0": "<f: number, How long to wait in seconds>",
		"Delay (ms)":                          "<f: number, Delay in ms>",
		"Size: of the file, in bytes":         "<f: number, Size in bytes>",
		"Delay in ms, measured in ms":         "<f: number, Delay in ms>",
		"Name, in which seconds may be":       "<f: number, Name>",
	} {
		params := jsontext.Marshal(map[string]any{"type": "object", "required": []string{"f"},
			"properties": map[string]any{"f": map[string]string{"type": "number", "description": about}}})
		got := CallTemplate(&manifest.Tool{Params: json.RawMessage(params)})["f"]
		if got != want {
			t.Errorf("%s: %s", about, got)
		}
	}
}
