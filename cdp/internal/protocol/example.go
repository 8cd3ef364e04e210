package protocol

import "encoding/json"

// Example is one way to call a command.
type Example struct {
	Title  string
	Kind   string          // minimal, common or full
	Params json.RawMessage // an object in the protocol's order
}

// Examples stub
func (p *Protocol) Examples(c *Command) []Example { return nil }
