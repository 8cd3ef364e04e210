package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// client is the frontend of MCP. It knows initialize and tools/list in advance, and recognizes the tools that search,
// describe and call by their schemas.
type client struct {
	binary string
	home   string // PARLEY_HOME
	mode   string // "": the configured one

	session *mcp.ClientSession
	listed  map[string]*mcp.Tool
	// The three tools that lead to all others.
	searcher, describer, caller string
	wrote                       int // tokens of the calls
}

func (c *client) begin(ctx context.Context) (string, error) {
	args := []string{"mcp"}
	if c.mode != "" {
		args = append(args, "--docs", c.mode)
	}
	cmd := exec.Command(c.binary, args...)
	cmd.Env, cmd.Stderr = tree.Environment(c.home), os.Stderr
	var err error
	c.session, err = mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).
		Connect(ctx, &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return "", err
	}
	text := c.session.InitializeResult().Instructions
	c.listed = map[string]*mcp.Tool{}
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(t)
		if err != nil {
			return "", err
		}
		text += "\n" + string(raw)
		c.listed[t.Name] = t
		switch properties, required := shape(t.InputSchema); {
		case slices.Contains(required, "query"):
			c.searcher = t.Name
		case slices.Contains(required, "name") && slices.Contains(properties, "arguments") &&
			(t.Annotations == nil || !t.Annotations.ReadOnlyHint): // plan_call only reads
			c.caller = t.Name
		case slices.Contains(required, "name") && slices.Contains(properties, "tier"):
			c.describer = t.Name
		}
	}
	if c.mode != "code" && (c.searcher == "" || c.describer == "" || c.caller == "") {
		return "", fmt.Errorf("no tool of %q searches, describes and calls others", slices.Collect(maps.Keys(c.listed)))
	}
	return text, nil
}

// shape returns the parameters of a schema and those among them that it requires.
func shape(inputSchema any) (properties, required []string) {
	raw, err := json.Marshal(inputSchema)
	var s struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return nil, nil
	}
	return slices.Sorted(maps.Keys(s.Properties)), s.Required
}

func (c *client) search(ctx context.Context, want string) (answer, error) {
	return c.use(ctx, c.searcher, map[string]any{"query": want})
}

func (c *client) describe(ctx context.Context, name string) (answer, error) {
	return c.use(ctx, c.describer, map[string]any{"name": name})
}

// call calls a listed tool under its own name, and any other tool through the one that calls others.
func (c *client) call(ctx context.Context, name string, params json.RawMessage) (answer, error) {
	if own := listedName(name); c.listed[own] != nil {
		return c.use(ctx, own, params)
	}
	return c.use(ctx, c.caller, map[string]any{"name": name, "arguments": params})
}

// listedName returns the name of a tool in tools/list.
func listedName(name string) string { return strings.ReplaceAll(name, ".", "__") }

func (c *client) follow(ctx context.Context, step string) (answer, bool, error) {
	var call struct {
		Tool      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal([]byte(step), &call); err != nil {
		return answer{}, false, fmt.Errorf("the next step %s: %w", step, err)
	}
	if call.Tool == c.searcher || call.Tool == c.describer || c.listed[call.Tool] == nil {
		return answer{}, false, nil
	}
	a, err := c.use(ctx, call.Tool, call.Arguments)
	return a, true, err
}

func (c *client) close() error {
	if c.session == nil {
		return nil
	}
	return c.session.Close()
}

// stepOf returns a step that a text names, "call_tool {..} (choose url)", in the form that it has in an error.
func stepOf(text string) string {
	tool, arguments, _ := strings.Cut(text, " ")
	arguments, choose, _ := strings.Cut(strings.TrimSuffix(arguments, ")"), " (choose ")
	step := map[string]any{"tool": tool, "arguments": json.RawMessage(arguments)}
	if choose != "" {
		step["choose"] = strings.Split(choose, ", ")
	}
	raw, _ := json.Marshal(step)
	return string(raw)
}

// use calls a listed tool. The agent reads all texts of the result.
func (c *client) use(ctx context.Context, tool string, arguments any) (a answer, err error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return a, err
	}
	c.wrote += tokens(tool + " " + string(raw))
	r, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(raw)})
	if err != nil {
		return a, fmt.Errorf("%s: %w", tool, err)
	}
	texts := contentText(r)
	a.text, a.failed = strings.Join(texts, "\n"), r.IsError
	if len(texts) == 0 {
		return a, nil
	}
	a.data = json.RawMessage(texts[0])
	for line := range strings.Lines(texts[0]) {
		if call, ok := strings.CutPrefix(strings.TrimSpace(line), "Next: "); ok {
			a.next = append(a.next, stepOf(call))
		}
	}
	var reply struct{ Next []json.RawMessage }
	if json.Unmarshal(a.data, &reply) == nil {
		for _, step := range reply.Next {
			a.next = append(a.next, string(step))
		}
	}
	if a.failed {
		err = json.Unmarshal(a.data, &a.err)
	}
	return a, err
}
