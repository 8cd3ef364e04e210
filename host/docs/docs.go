// Package docs works on the documentation of a catalog as a whole: what it costs an agent, what it covers, and how it reads in the
// forms that others take.
package docs

import (
	"context"
	"encoding/json"

	"github.com/parley-tools/parley/host"
)

// Source is a catalog, and what an MCP server over it shows. All fields are needed.
type Source struct {
	// Host should have no recorder: each tool is described, and searched for, to find out what that costs.
	Host *host.Host
	// Modes are the documentation modes, from the least to the one that lists every tool whole.
	Modes []string
	// Request makes a request to the server in a mode, and returns the result as it is sent.
	Request func(ctx context.Context, mode, method string, params any) (json.RawMessage, error)
	// ListedName is the name of a tool in tools/list, which model APIs take.
	ListedName func(qualified string) string
	// Instructions are what the server tells a client at the start.
	Instructions string
}

// fullMode is the mode that lists every tool whole.
func (s *Source) fullMode() string { return s.Modes[len(s.Modes)-1] }

// listed is a tool in tools/list.
type listed struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`

	raw json.RawMessage // all of it, as it is sent
}

// list is tools/list in a mode, all its pages.
func (s *Source) list(ctx context.Context, mode string) ([]listed, error) {
	var all []listed
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
			all = append(all, tool)
		}
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
}

// tools finds what plugins, groups and tools of these names hold, each tool once; without a name, all there are. The error is
// not_found, or invalid_args for what is an event or a type.
func (s *Source) tools(names []string) ([]host.Address, error) {
	catalog := s.Host.Catalog()
	if len(names) == 0 {
		for _, p := range catalog.Providers() {
			names = append(names, p.Info().Name)
		}
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
			return nil, host.Errorf(host.InvalidArgs, "%s is of kind %s; expected a plugin, a group or a tool", at.Name(), at.Entry.Kind).WithNext(at.ListCommand())
		case at.Tool != nil:
			add(at)
			continue
		}
		within, err := at.Provider.Names()
		if err != nil {
			return nil, err
		}
		for _, name := range within {
			tool, err := catalog.FindIn(at.Plugin, name)
			if err != nil {
				return nil, err
			}
			if tool.Tool != nil && (at.Group == "" || tool.Tool.Group == at.Group) {
				add(tool)
			}
		}
	}
	return found, nil
}

// describe is a tool's documentation at a tier.
func (s *Source) describe(ctx context.Context, at host.Address, tier int) (*host.Docs, error) {
	return s.Host.Describe(ctx, "cli", "", at.Name(), tier)
}
