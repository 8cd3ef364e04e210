// Command page is a Parley plugin: what agents do with web pages. It looks at a page in few tokens, acts on what it has
// found, and says what an action caused. It works through tools of the plugin cdp and through a script of its own in
// the page, page.js; it has no file and no network.
package main

import sdk "github.com/parley-tools/parley/sdk/go"

// main prints the manifest. It is never called in wasm.
func main() { sdk.Main() }
