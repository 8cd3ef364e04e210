package history

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// csvOf returns a function that writes records as CSV: a header, then a row for each record, with a cell for each of
// its JSON fields. Lists and objects are JSON.
func csvOf[R any](to io.Writer) func(R) error {
	w := csv.NewWriter(to)
	w.UseCRLF = true
	names := fieldNames(reflect.TypeFor[R]())
	_ = w.Write(names)
	w.Flush() // the writer keeps the error
	return func(r R) error {
		var fields map[string]json.RawMessage
		data, err := manifest.Marshal(r)
		if err == nil {
			err = json.Unmarshal(data, &fields)
		}
		if err != nil {
			return err
		}
		row := make([]string, len(names))
		for i, name := range names {
			row[i] = cell(fields[name])
		}
		_ = w.Write(row)
		w.Flush()
		return w.Error()
	}
}

// cell returns a value as a cell that no spreadsheet interprets as a formula.
func cell(value json.RawMessage) string {
	text := string(value)
	if strings.HasPrefix(text, `"`) {
		_ = json.Unmarshal(value, &text)
	}
	if text != "" && strings.Contains("=+-@\t\r", text[:1]) {
		return "'" + text
	}
	return text
}

// fieldNames returns the names of the JSON fields of a struct and of its embedded structs, in their order.
func fieldNames(t reflect.Type) (names []string) {
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
