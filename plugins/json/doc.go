// Command json is a Parley plugin: queries, diffs, patches and conversions of
// JSON. It needs no rights.
package main

import (
	"encoding/json"

	"github.com/itchyny/gojq"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// main prints the manifest. It is never called in wasm.
func main() { sdk.Main() }

// maxOutput is the limit of every result in bytes.
const maxOutput = 4 << 20

// encode writes a value with its keys sorted.
func encode(v any) (json.RawMessage, error) {
	raw, err := gojq.Marshal(v)
	if err == nil && len(raw) > maxOutput {
		err = tooLarge()
	}
	return raw, err
}

func tooLarge() error {
	return sdk.Exit("too_large", "the result is over 4 MiB", nil)
}
