package command

import (
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// PluginsData is the first level of the catalog: all plugins.
type PluginsData struct {
	Plugins []host.Info `json:"plugins"`
	Total   int         `json:"total"`
}

// PluginData is the second level: the groups of a plugin, and its tools that are in no group.
type PluginData struct {
	Plugin   string           `json:"plugin"`
	Groups   []host.GroupLine `json:"groups"`
	Tools    []host.Line      `json:"tools"`
	Total    int              `json:"total"` // of groups, or of tools if there are no groups
	Coverage any              `json:"coverage,omitempty"`
}

// GroupData is the third level: the tools and events of a group.
type GroupData struct {
	Plugin string           `json:"plugin"`
	Group  string           `json:"group"`
	Tools  []host.Line      `json:"tools"`
	Events []host.EventLine `json:"events"`
	Total  int              `json:"total"` // of tools
}

// ListOptions are the options of a list.
type ListOptions struct {
	Plugin   string
	Group    string // of [ListGroup]
	Coverage bool   // add how much of the plugin's protocol is documented; it takes longer
}

// ListPlugins returns all plugins.
func ListPlugins(d *Deps) (*PluginsData, error) {
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	data := &PluginsData{Plugins: []host.Info{}}
	for _, p := range catalog.Providers() {
		info := p.Info()
		info.Brief = manifest.CleanLine(info.Brief)
		data.Plugins = append(data.Plugins, info)
	}
	data.Total = len(data.Plugins)
	return data, nil
}

// ListPlugin returns the groups and tools of a plugin. The error is not_found for an unknown one.
func ListPlugin(d *Deps, o ListOptions) (*PluginData, error) {
	at, err := d.find(o.Plugin, "")
	if err != nil {
		return nil, err
	}
	groups, err := at.Provider.Groups()
	if err != nil {
		return nil, err
	}
	tools, err := at.Provider.Lines("")
	if err != nil {
		return nil, err
	}
	data := &PluginData{
		Plugin: at.Plugin, Groups: append([]host.GroupLine{}, groups...), Tools: qualified(at.Plugin, tools),
		Total: len(groups),
	}
	if len(groups) == 0 {
		data.Total = len(tools)
	}
	if coverage := at.Provider.Features().Coverage; coverage != nil && o.Coverage {
		if data.Coverage, err = coverage(); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// ListGroup returns the tools and events of a group. The error is not_found for an unknown one.
func ListGroup(d *Deps, o ListOptions) (*GroupData, error) {
	at, err := d.find(o.Plugin, o.Group)
	if err != nil {
		return nil, err
	}
	tools, err := at.Provider.Lines(at.Group)
	if err != nil {
		return nil, err
	}
	data := &GroupData{
		Plugin: at.Plugin, Group: at.Group, Tools: qualified(at.Plugin, tools), Events: []host.EventLine{},
		Total: len(tools),
	}
	if eventsOf := at.Provider.Features().Events; eventsOf != nil {
		events, err := eventsOf(at.Group)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			data.Events = append(data.Events,
				host.EventLine{Name: at.Plugin + "." + e.Name, Brief: manifest.CleanLine(e.Brief)})
		}
	}
	return data, nil
}

// find returns what a local name, which may be empty, stands for in a plugin.
func (d *Deps) find(plugin, local string) (host.Address, error) {
	catalog, err := d.Catalog()
	if err != nil {
		return host.Address{}, err
	}
	return catalog.FindIn(plugin, local)
}

func qualified(plugin string, lines []host.Line) []host.Line {
	out := make([]host.Line, 0, len(lines))
	for _, l := range lines {
		l.Name = plugin + "." + l.Name
		l.Brief = manifest.CleanLine(l.Brief)
		out = append(out, l)
	}
	return out
}
