package mcp

import (
	"encoding/json"

	"github.com/parley-tools/parley/host"
)

// teach adds to the error of a meta-tool's arguments what to do next.
func (m *modeServer) teach(tool string, arguments json.RawMessage, e *host.Error) {
	var given struct{ Name string }
	if e.Corrected == nil && json.Unmarshal(arguments, &given) == nil && given.Name != "" {
		e.Steps = append(e.Steps, host.DescribeStep(m.qualified(given.Name), 0))
	}
}
