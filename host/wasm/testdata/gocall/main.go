// Command gocall is a Go guest that calls the host repeatedly: another tool, a log line, a progress report. Its replies
// are large enough that garbage is collected between them.
package main

import (
	"fmt"
	"strings"

	sdk "github.com/parley-tools/parley/sdk/go"
)

func main() {}

func init() { sdk.Register(plugin) }

var plugin = sdk.Plugin{
	Name: "gocall", Version: "0.1.0", Brief: "Call other tools from Go",
	Capabilities: sdk.Capabilities{Tools: []sdk.Use{{Name: "*", Why: "to test calls"}}},
	Tools:        []sdk.Definition{sdk.Tool("run", run, sdk.Doc{Brief: "Call a tool many times", Effect: sdk.Read})},
}

// Params of run.
type Params struct {
	Times int `json:"times"` // number of calls
}

// Result of run.
type Result struct {
	Bytes int `json:"bytes"` // length of all replies
}

func run(c *sdk.Call, p Params) (Result, error) {
	var r Result
	for i := range p.Times {
		var answer string
		if err := c.CallTool("other.tool", map[string]any{"text": strings.Repeat("x", i*100)}, sdk.Options{},
			&answer); err != nil {
			return r, err
		}
		c.Log(sdk.Info, fmt.Sprint("answer ", i))
		c.Progress(float64(i+1), float64(p.Times), "calling")
		r.Bytes += len(answer)
	}
	return r, nil
}
