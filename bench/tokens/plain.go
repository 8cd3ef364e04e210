package main

import (
	"bytes"
	"encoding/json"
)

// plainJSON encodes without HTML escapes, as servers do.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
