package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// prompts are the sizes of system prompts with which the modes are compared, in tokens: those of a small agent, of a
// chat client and of a coding agent.
var prompts = []int{500, 2000, 8000}

// start is what a client sends to a model with each request, beside its own system prompt.
type start struct {
	name   string
	tokens int // of the instructions and of tools/list
}

// startAll counts what each mode begins with, full first, and of full also the part with the tools that progressive
// lists: a client that could leave out the others would send that.
func startAll(ctx context.Context, binary, home string) ([]start, error) {
	clients, all := map[string]*client{}, []start{{name: "full"}, {name: "full, of the tools of progressive"}}
	for _, mode := range append(modes, "code") {
		c := &client{binary: binary, home: home, mode: mode}
		text, err := c.begin(ctx)
		if err != nil {
			return nil, err
		}
		if err := c.close(); err != nil {
			return nil, err
		}
		if clients[mode] = c; mode == "full" {
			all[0].tokens = tokens(text)
			continue
		}
		all = append(all, start{mode, tokens(text)})
	}
	text := clients["full"].session.InitializeResult().Instructions
	for _, name := range slices.Sorted(maps.Keys(clients["progressive"].listed)) {
		if tool := clients["full"].listed[name]; tool != nil {
			raw, err := json.Marshal(tool)
			if err != nil {
				return nil, err
			}
			text += "\n" + string(raw)
		}
	}
	all[1].tokens = tokens(text)
	return all, nil
}

// saved returns the share that a mode with the smallest prompt saves against the tools of progressive in full with the
// largest one.
func saved(all []start, mode int) float64 {
	return 1 - float64(prompts[0]+all[mode].tokens)/float64(prompts[len(prompts)-1]+all[1].tokens)
}

// promptsTable returns what a request begins with, by the size of the system prompt.
func promptsTable(all []start) string {
	var b strings.Builder
	b.WriteString("| mode | list and instructions")
	for _, n := range prompts {
		fmt.Fprintf(&b, " | with a prompt of %d", n)
	}
	b.WriteString(" | saved |\n|---|---|" + strings.Repeat("---|", len(prompts)+1) + "\n")
	for i, s := range all {
		fmt.Fprintf(&b, "| %s | %d", s.name, s.tokens)
		for _, n := range prompts {
			fmt.Fprintf(&b, " | %d", n+s.tokens)
		}
		share := "-"
		if i > 1 {
			share = fmt.Sprintf("%.0f %%", 100*saved(all, i))
		}
		fmt.Fprintf(&b, " | %s |\n", share)
	}
	return b.String()
}
