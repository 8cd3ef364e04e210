package host_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-tools/parley/host"
)

// Codes are errors, for errors.Is.
func ExampleCode() {
	err := fmt.Errorf("reading the list: %w", host.Errorf(host.NotFound, "no plugin is named shpo"))
	fmt.Println(errors.Is(err, host.NotFound), errors.Is(err, host.Denied))
	fmt.Println(host.AsError(err).ExitCode())
	// Output:
	// true false
	// 83
}

// Steps are data, which each front end renders in its own way.
func ExampleStep() {
	steps := []host.Step{
		host.CallStep("text.hash", json.RawMessage(`{"text":"hello"}`)),
		host.DescribeStep("text.hash", 3),
		host.OperatorStep(host.OpPolicyGrant, "github", "env:LANG"),
	}
	for _, s := range steps {
		fmt.Println(s, s.ForOperator())
	}
	// Output:
	// call text.hash {"text":"hello"} false
	// describe text.hash tier 3 false
	// policy grant github env:LANG true
}

func ExampleOutcomes() {
	for _, o := range host.Outcomes()[:4] {
		fmt.Println(o.Exit, o.Meaning())
	}
	// Output:
	// 0 ok
	// 1 tool_failed: no declared code
	// 80 invalid_url
	// 81 invalid_args: options too
}
