package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
)

// unnamed is the plugin of the tools in a list whose names have no plugin.
const unnamed = "tools"

// ToolList returns a catalog of the tools in a list of MCP, {"tools":[{"name","description","inputSchema"}]}, to
// measure with. Its tools cannot be called. A name such as text__hash means the tool hash of the plugin text; a name
// without a plugin means a tool of "tools".
func ToolList(raw []byte) (*host.Catalog, error) {
	var list struct {
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("it is not a list of tools: %s", manifest.CleanLine(err.Error()))
	}
	if len(list.Tools) == 0 {
		return nil, errors.New(`it has no tools; expected {"tools":[{"name":"..","description":"..","inputSchema":{}}]}`)
	}
	plugins := map[string]*manifest.Manifest{}
	var providers []host.Provider
	for _, t := range list.Tools {
		plugin, name := splitName(t.Name)
		if name == "" {
			return nil, fmt.Errorf("%q is not the name of a tool", manifest.CleanValue(manifest.Clip(t.Name, 60)))
		}
		m := plugins[plugin]
		if m == nil {
			m = &manifest.Manifest{Name: plugin, Kind: manifest.KindExtism}
			plugins[plugin] = m
			providers = append(providers, &listed{m})
		}
		if m.Tool(name) != nil {
			return nil, fmt.Errorf("%s is listed twice", manifest.CleanLine(t.Name))
		}
		brief, rest, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
		tool := manifest.Tool{Name: name, Params: t.InputSchema, Effect: manifest.EffectWrite}
		tool.Docs.Brief, tool.Docs.Standard = brief, strings.TrimSpace(rest)
		m.Tools = append(m.Tools, tool)
	}
	return host.NewCatalog(providers...)
}

var notInName = lazy.Pattern(`[^A-Za-z0-9_-]+`)

// splitName returns the names of a plugin and a tool. Characters that names in Parley cannot have become "_".
func splitName(listed string) (plugin, tool string) {
	parts := strings.SplitN(strings.ReplaceAll(listed, ".", "__"), "__", 3)
	for i := range parts {
		parts[i] = strings.Trim(notInName().ReplaceAllString(strings.ReplaceAll(parts[i], "__", "_"), "_"), "_-")
		if parts[i] == "" || parts[i][0] >= '0' && parts[i][0] <= '9' {
			return "", ""
		}
	}
	if len(parts) == 1 {
		return unnamed, parts[0]
	}
	return parts[0], strings.Join(parts[1:], ".")
}

// listed is a plugin of a list: it has only documentation.
type listed struct{ m *manifest.Manifest }

func (p *listed) Info() host.Info {
	return host.Info{Name: p.m.Name, Kind: p.m.Kind, Tools: len(p.m.Tools)}
}
func (p *listed) Manifest() (*manifest.Manifest, error)    { return p.m, nil }
func (p *listed) Lines(group string) ([]host.Line, error)  { return host.LinesOf(p.m, group), nil }
func (p *listed) Groups() ([]host.GroupLine, error)        { return host.GroupsOf(p.m), nil }
func (p *listed) Names() ([]string, error)                 { return host.NamesOf(p.m), nil }
func (p *listed) Tool(name string) (*manifest.Tool, error) { return p.m.Tool(name), nil }
func (p *listed) Segment() ([]byte, error)                 { return segment.Of(p.m), nil }
func (p *listed) Features() host.Features                  { return host.Features{} }
func (p *listed) Invoke(context.Context, *host.Request) (*job.Result, error) {
	return nil, host.Errorf(host.Unavailable, "tools of a list cannot be called")
}
