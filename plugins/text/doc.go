// Command text is a Parley plugin: hashes, encodings, regular expressions,
// diffs, counts and templates. It needs no rights.
package main

import sdk "github.com/parley-tools/parley/sdk/go"

// main prints the manifest; in wasm it is never called.
func main() { sdk.Main() }
