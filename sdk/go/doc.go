// Package sdk makes a Go package into a Parley plugin.
//
// An author writes a struct for the parameters, a struct for the result and a
// function, and registers them:
//
//	// Greeting says whom to greet.
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
// The same package is built twice. Built for the machine it stands on, the
// program prints its manifest: parameters and results become JSON Schema, doc
// comments become descriptions. Built for wasip1 it is the plugin, and holds
// neither reflection over types nor the parser of its own source. "parley
// plugin build" does both. Plain "go test" tests the functions: &sdk.Call{} is
// usable as it is.
//
// # Fields
//
// A field is optional when it is a pointer, is tagged omitempty or has a
// default, and required otherwise. Its doc comment is its description. Tags:
//
//	json                        the name; "-" leaves the field out
//	enum:"a,b"                  the values allowed
//	default:"a"                 the value when none is given
//	example:"a"                 a plausible value
//	minimum, maximum            bounds of a number
//	minLength, maxLength        bounds of a string's length in characters
//	pattern, format             form of a string (RE2)
//	minItems, maxItems          bounds of an array's length
//
// On a slice or a map all but default, example, minItems and maxItems speak of
// the elements. Values of types other than string are written as JSON.
package sdk
