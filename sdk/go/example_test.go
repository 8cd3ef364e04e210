//go:build !wasip1

package sdk_test

import (
	"encoding/json"
	"fmt"

	"github.com/parley-tools/parley/sdk/go"
)

// Greeting holds the parameters of greet.
type Greeting struct {
	// Name of the person, for example "Ada".
	Name string `json:"name" minLength:"1"`
}

// Greeted is the result of greet.
type Greeted struct {
	// The greeting.
	Text string `json:"text"`
}

// Greet greets one person.
func Greet(c *sdk.Call, p Greeting) (Greeted, error) {
	if p.Name == "nobody" {
		return Greeted{}, sdk.Exit("unknown", "there is no such person", nil)
	}
	return Greeted{Text: "Hello, " + p.Name}, nil
}

// A plugin registers its tools in init, and its main calls [sdk.Main]. Its manifest follows from the code.
func Example() {
	sdk.Register(sdk.Plugin{
		Name: "hello", Version: "0.1.0", Brief: "Greet people",
		ExitCodes: []sdk.ExitCode{{Code: 10, Name: "unknown", Meaning: "There is no such person"}},
		Tools: []sdk.Definition{
			sdk.Tool("greet", Greet, sdk.Doc{
				Brief: "Greet one person", Effect: sdk.Read, ExitCodes: []string{"unknown"},
				Examples: []sdk.Example{
					{Title: "Ada", Kind: sdk.Minimal, Params: Greeting{Name: "Ada"}, Runnable: true},
					{Title: "Unknown", Kind: sdk.Error, Params: Greeting{Name: "nobody"}, ExitCode: 10, Runnable: true},
				},
			}),
		},
	})

	raw, err := sdk.Manifest()
	if err != nil {
		fmt.Println(err)
		return
	}
	var manifest struct {
		Tools []struct {
			Name   string
			Params struct {
				Properties map[string]struct{ Type, Description string }
				Required   []string
			}
		}
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		fmt.Println(err)
	}
	tool := manifest.Tools[0]
	fmt.Println(tool.Name, tool.Params.Properties["name"], tool.Params.Required)
	fmt.Println(sdk.Check()) // runs the examples
	// Output:
	// greet {string Name of the person, for example "Ada".} [name]
	// <nil>
}

// A tool is a function, so a test calls it directly.
func ExampleTool() {
	result, err := Greet(&sdk.Call{}, Greeting{Name: "Ada"})
	fmt.Println(result.Text, err)
	// Output: Hello, Ada <nil>
}

// Exit ends a call with a code that the plugin declares.
func ExampleExit() {
	_, err := Greet(&sdk.Call{}, Greeting{Name: "nobody"})
	fmt.Println(err)
	// Output: unknown: there is no such person
}

// Invalid rejects a parameter that is valid by its schema.
func ExampleInvalid() {
	fmt.Println(sdk.Invalid("/pattern", "an RE2 pattern", "missing closing )", `escape special characters with \`))
	// Output: /pattern: expected an RE2 pattern, provided missing closing )
}

// Show adds what a client displays beside the result, here a picture.
func ExampleCall_Show() {
	draw := func(c *sdk.Call, p Greeting) (Greeted, error) {
		c.Show(
			sdk.Content{Type: sdk.ContentImage, Data: []byte("\x89PNG"), MIME: "image/png"},
			sdk.Content{Type: sdk.ContentLink, URI: "https://example.com/" + p.Name, Text: "More about " + p.Name},
		)
		return Greeted{Text: "Hello, " + p.Name}, nil
	}
	var c sdk.Call
	result, err := draw(&c, Greeting{Name: "Ada"})
	fmt.Println(result.Text, err)
	for _, block := range c.Shown() {
		fmt.Println(block.Type, len(block.Data))
	}
	// Output:
	// Hello, Ada <nil>
	// image 4
	// link 0
}

// Without a host, a call has no rights: a test sets Call.Host to replace it.
func ExampleCall_CallTool() {
	err := new(sdk.Call).CallTool("text.hash", map[string]string{"text": "hello"}, sdk.Options{}, nil)
	fmt.Println(err)
	// Output: denied: call_tool: this call has no host; set Call.Host in a test
}
