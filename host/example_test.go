package host_test

import (
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
