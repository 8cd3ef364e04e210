package manifest_test

import (
	"fmt"

	"github.com/parley-tools/parley/manifest"
)

func ExampleDescribe() {
	m, err := manifest.Parse([]byte(`{
		"manifest": 1, "name": "hello", "version": "0.1.0", "kind": "parley/1",
		"docs": {"brief": "Greet people"},
		"tools": [{
			"name": "greet", "effect": "read", "docs": {"brief": "Greet one person"},
			"params": {"type": "object", "properties": {"name": {"type": "string", "description": "Who is greeted."}},
				"required": ["name"], "additionalProperties": false},
			"examples": [{"title": "Ada", "params": {"name": "Ada"}}]
		}]
	}`), "0.1.0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(manifest.Describe(m, &m.Tools[0], manifest.Tier2).Text())
	// Output:
	// hello.greet: Greet one person [read]
	//   name: string  Who is greeted.
	// Example: hello.greet {"name":"Ada"}
}

func ExampleClean() {
	fmt.Printf("%q\n", manifest.Clean("plain\x1b[31m red\u202e hidden\u200b"))
	// Output: "plain\\u001b[31m red\\u202e hidden\\u200b"
}

func ExampleTokens() {
	fmt.Println(manifest.Tokens("Compute a digest of text: SHA-2, SHA-1 or MD5"))
	// Output: 10
}
