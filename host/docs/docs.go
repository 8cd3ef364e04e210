// Package docs measures and exports the documentation of a catalog: what it costs an agent in tokens ([Source.Audit]),
// how much of the catalog it covers ([Cover]), and how it reads in the formats of other systems ([Source.Export]).
package docs

import (
	"context"
	"encoding/json"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
)

// Source is a catalog and the MCP server in front of it. All fields are required.
type Source struct {
	// Host describes each tool and searches for it. It should have no recorder, because these are measurements.
	Host  *call.Host
	Modes []string // the documentation modes; the first lists least
	Full  string   // the mode that lists every tool with its whole schema
	// Request sends a request to the server in the given mode and returns the raw result.
	Request func(ctx context.Context, mode, method string, params any) (json.RawMessage, error)
	// ListedName converts a qualified name to the one in tools/list, which model APIs accept.
	ListedName func(qualified string) string
	// Common are the tools that an export for a tool search loads at once, by their names in tools/list.
	Common []string
	// Command renders a step as a command of the command line.
	Command func(step.Step) string
	// Instructions is the text that the server sends to each client in initialize.
	Instructions string
}

// listed is a tool as tools/list shows it.
type listed struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`

	raw json.RawMessage // the whole entry, as sent
}

// list returns the tools on all pages of tools/list in a mode, by their names there.
func (s *Source) list(ctx context.Context, mode string) (map[string]listed, error) {
	all := map[string]listed{}
	for cursor := ""; ; {
		raw, err := s.Request(ctx, mode, "tools/list", struct {
			Cursor string `json:"cursor,omitempty"`
		}{cursor})
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools      []json.RawMessage
			NextCursor string
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, err
		}
		for _, raw := range page.Tools {
			tool := listed{raw: raw}
			if err := json.Unmarshal(raw, &tool); err != nil {
				return nil, err
			}
			all[tool.Name] = tool
		}
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
}

// tools returns the tools of the named plugins and groups and the named tools, each once and in the order of lists;
// without names, all tools of the catalog. It fails with not_found for an unknown name and with invalid_args for the
// name of an event or a type.
func (s *Source) tools(names []string) ([]host.Address, error) {
	catalog := s.Host.Catalog()
	if len(names) == 0 {
		names = lists.Map(catalog.Providers(), func(p host.Provider) string { return p.Info().Name })
	}
	var found []host.Address
	seen := map[string]bool{}
	add := func(at host.Address) {
		if !seen[at.Name()] {
			seen[at.Name()] = true
			found = append(found, at)
		}
	}
	for _, name := range names {
		at, err := catalog.Find(name)
		switch {
		case err != nil:
			return nil, err
		case at.Entry != nil:
			return nil, host.Errorf(host.InvalidArgs, "%s is of kind %s; expected a plugin, a group or a tool",
				at.Name(), at.Entry.Kind).WithSteps(at.ListStep())
		case at.Tool != nil:
			add(at)
			continue
		}
		groups := []string{at.Group}
		if at.Group == "" {
			all, err := at.Provider.Groups()
			if err != nil {
				return nil, err
			}
			groups = append(groups, lists.Map(all, func(g host.GroupLine) string { return g.Name })...)
		}
		for _, group := range groups {
			lines, err := at.Provider.Lines(group)
			if err != nil {
				return nil, err
			}
			for _, l := range lines {
				tool, err := catalog.FindIn(at.Plugin, l.Name)
				if err != nil {
					return nil, err
				}
				add(tool)
			}
		}
	}
	return found, nil
}

// describe returns the documentation of a tool at a tier.
func (s *Source) describe(ctx context.Context, at host.Address, tier int) (*host.Docs, error) {
	return s.Host.Describe(ctx, caller.Principal{Name: "cli"}, at.Name(), tier)
}
