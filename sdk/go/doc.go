// Package sdk turns a Go package into a Parley plugin.
//
// A plugin author writes a struct for the parameters, a struct for the result
// and a function, and registers them:
//
//	// Greeting holds the parameters of greet.
//	type Greeting struct {
//		// Name of the person, for example "Ada".
//		Name string `json:"name" minLength:"1"`
//	}
//
//	type Greeted struct {
//		// The greeting.
//		Text string `json:"text"`
//	}
//
//	func Greet(c *sdk.Call, p Greeting) (Greeted, error) {
//		return Greeted{Text: "Hello, " + p.Name}, nil
//	}
//
//	func init() {
//		sdk.Register(sdk.Plugin{
//			Name: "hello", Version: "0.1.0", Brief: "Greet people",
//			Tools: []sdk.Definition{
//				sdk.Tool("greet", Greet, sdk.Doc{Brief: "Greet one person", Effect: sdk.Read}),
//			},
//		})
//	}
//
//	func main() { sdk.Main() }
//
// The package is built twice, and "parley plugin build" does both. Built for the
// local machine, the program prints its manifest: parameters and results become
// JSON Schema, doc comments become descriptions. Built for wasip1, it is the
// plugin; that build leaves out the code that derives schemas and reads source.
// Plain "go test" tests the functions: the zero [Call] is ready to use.
//
// # Fields
//
// A field is optional when it is a pointer or its json tag has omitempty, which a
// default requires, and required otherwise. Its doc comment is its description. Tags:
//
//	json                        the name; "-" leaves the field out
//	enum:"a,b"                  the allowed values
//	default:"a"                 the value when none is given
//	example:"a"                 a plausible value
//	minimum, maximum            bounds of a number
//	minLength, maxLength        bounds of a string's length in characters
//	pattern, format             pattern (RE2) and format of a string
//	minItems, maxItems          bounds of an array's length
//	from:"shop.list/items/0/id" the tools whose results have the value, and where
//	aliases:"a,b"               other names that callers use for a parameter
//	media:"image/png"           what a string of base64 in a result contains
//	untrusted:"true"            a text of a result that was written by others
//
// The type of a parameter bounds its values, and tags only narrow them: an int8 is
// an integer from -128 to 127, a [3]int has 3 items, []byte is base64 and
// [time.Time] a time of RFC 3339. The host refuses anything else before the plugin
// runs. What only the plugin can refuse, such as a text by an UnmarshalText, ends
// the call in the same exit code (81) and names the value.
//
// On a slice or a map, the tags apply to the elements, except default, example,
// minItems, maxItems and from. Values of types other than string are written as
// JSON.
package sdk
