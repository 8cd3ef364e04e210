package step_test

import (
	"encoding/json"
	"fmt"

	"github.com/parley-tools/parley/host/step"
)

// Steps are data, which each front end renders in its own way.
func ExampleStep() {
	steps := []step.Step{
		step.Call("text.hash", json.RawMessage(`{"text":"hello"}`)),
		step.Describe("text.hash", 3),
		step.Operator(step.OpPolicyGrant, "github", "env:LANG"),
	}
	for _, s := range steps {
		fmt.Println(s, s.ForOperator())
	}
	// Output:
	// call text.hash {"text":"hello"} false
	// describe text.hash tier 3 false
	// policy grant github env:LANG true
}
