package host

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host/internal/index"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// Catalog is an immutable set of plugins. Names are case-insensitive. To change the set, make a new catalog and
// [Host.Swap] it.
type Catalog struct {
	providers []Provider // in listing order: built-in ones first, then by name
	byName    map[string]Provider

	// Documentation, schemas and segments are built on first use and live as long as the catalog.
	docs        sync.Map // tierKey -> *manifest.ToolDocs
	schemas     sync.Map // partKey -> *schema.Schema
	searchIndex searchIndex
}

// tierKey identifies the documentation of a tool at a tier, partKey a schema of a tool.
type (
	tierKey struct {
		tool string
		tier int
	}
	partKey struct{ tool, part string }
)

// NewCatalog makes a catalog of plugins. The error is already_exists if two have the same name, ignoring case.
func NewCatalog(providers ...Provider) (*Catalog, error) {
	type named struct {
		Provider
		name    string
		builtin bool
	}
	sorted := make([]named, len(providers))
	for i, p := range providers {
		info := p.Info()
		sorted[i] = named{p, info.Name, info.Kind == manifest.KindBuiltin}
	}
	slices.SortStableFunc(sorted, func(a, b named) int {
		if a.builtin != b.builtin {
			if a.builtin {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	c := &Catalog{providers: make([]Provider, len(sorted)), byName: make(map[string]Provider, len(sorted))}
	for i, p := range sorted {
		key := strings.ToLower(p.name)
		if c.byName[key] != nil {
			return nil, Errorf(AlreadyExists, "two plugins are named %s; names are unique without regard to case", p.name)
		}
		c.byName[key], c.providers[i] = p.Provider, p.Provider
	}
	return c, nil
}

// Providers returns the plugins in listing order.
func (c *Catalog) Providers() []Provider { return slices.Clone(c.providers) }

// Provider returns the plugin of a name, and reports whether there is one.
func (c *Catalog) Provider(name string) (Provider, bool) {
	p, ok := c.byName[strings.ToLower(name)]
	return p, ok
}

// Address is what a name refers to: a plugin, or a group, a tool or an entry (an event or a type) of a plugin. At most
// one of Group, Tool and Entry is set; none is set for the plugin itself.
type Address struct {
	Provider Provider
	Plugin   string
	Group    string
	Tool     *manifest.Tool
	Entry    *Entry

	catalog *Catalog
}

// Name returns the qualified name.
func (a Address) Name() string {
	switch {
	case a.Tool != nil:
		return a.Plugin + "." + a.Tool.Name
	case a.Entry != nil:
		return a.Plugin + "." + a.Entry.Tool.Name
	case a.Group != "":
		return a.Plugin + "." + a.Group
	}
	return a.Plugin
}

// ListStep returns the step that lists the group, or the plugin if there is no group.
func (a Address) ListStep() Step {
	if a.Group != "" {
		return ListStep(a.Plugin + "." + a.Group)
	}
	return ListStep(a.Plugin)
}

// Find resolves a name: "cdp", "cdp.Network", "cdp.Network.getCookies", or with "__" for each dot.
// Case is ignored. The error is not_found with the nearest names.
func (c *Catalog) Find(name string) (Address, error) {
	plugin, local := split(name)
	return c.FindIn(plugin, local)
}

// split splits a qualified name into the plugin and the rest.
func split(name string) (plugin, local string) {
	name = strings.TrimSpace(name)
	plugin, local, dotted := strings.Cut(name, ".")
	if !dotted {
		plugin, local, _ = strings.Cut(name, "__")
	}
	return plugin, local
}

// FindIn resolves a name within a plugin, as [Catalog.Find] does; "" is the plugin itself.
func (c *Catalog) FindIn(plugin, local string) (Address, error) {
	p, ok := c.Provider(plugin)
	if !ok {
		return Address{}, c.unknownName(plugin, local)
	}
	a := Address{Provider: p, Plugin: p.Info().Name, catalog: c}
	if local == "" {
		return a, nil
	}
	for _, form := range forms(a.Plugin, local) {
		found, err := a.lookUp(form)
		if err != nil || found.Tool != nil || found.Entry != nil || found.Group != "" {
			return found, err
		}
	}
	groups, err := p.Groups()
	if err != nil {
		return a, err
	}
	return a, c.unknownTool(p, strings.ReplaceAll(local, "__", "."), groups)
}

// forms returns the spellings of a local name: the name itself, with a dot for each "__", and without the name of the
// plugin ("parley cdp cdp.Network.getCookies").
func forms(plugin, local string) []string {
	list := []string{local}
	if dotted := strings.ReplaceAll(local, "__", "."); dotted != local {
		list = append(list, dotted)
		local = dotted
	}
	if len(local) > len(plugin) && local[len(plugin)] == '.' && strings.EqualFold(local[:len(plugin)], plugin) {
		list = append(list, local[len(plugin)+1:])
	}
	return list
}

// lookUp finds a tool, a group or an entry by its name, ignoring case.
func (a Address) lookUp(local string) (Address, error) {
	var err error
	if a.Tool, err = a.Provider.Tool(local); a.Tool != nil || err != nil {
		return a, err
	}
	groups, err := a.Provider.Groups()
	if err != nil {
		return a, err
	}
	for _, g := range groups {
		if strings.EqualFold(g.Name, local) {
			a.Group = g.Name
			return a, nil
		}
	}
	if g, ok := a.Provider.(Glossary); ok {
		a.Entry, err = g.Entry(local)
	}
	return a, err
}

// FindAnyway is [Catalog.Find] for Options.SendAnyway: it also accepts tools that the plugin's data does not have, if
// the plugin is a [Passer]. A name close to a known one is treated as a typo and remains not_found.
func (c *Catalog) FindAnyway(name string) (Address, error) {
	a, err := c.Find(name)
	var e *Error
	if !errors.As(err, &e) || e.Code != NotFound || len(e.DidYouMean) > 0 && e.DidYouMean[0].Distance <= 2 {
		return a, err
	}
	if p, ok := a.Provider.(Passer); ok {
		_, local := split(name)
		if a.Tool = p.Pass(strings.ReplaceAll(local, "__", ".")); a.Tool != nil {
			return a, nil
		}
	}
	return a, err
}

func (c *Catalog) unknownPlugin(name string) *Error {
	names := make([]string, 0, len(c.providers))
	for _, p := range c.providers {
		names = append(names, p.Info().Name)
	}
	e := Errorf(NotFound, "no plugin is named %s", printable(name))
	for _, n := range schema.Nearest(name, names, 3) {
		e.DidYouMean = append(e.DidYouMean, NearName(n))
	}
	return e.WithSteps(ListStep(""), SearchStep(printable(name)))
}

// unknownName returns the error of a name whose plugin does not exist. The name may be that of a tool without its
// plugin, so suggestions come from all plugins.
func (c *Catalog) unknownName(plugin, local string) *Error {
	e := c.unknownPlugin(plugin)
	typed := plugin
	if local != "" {
		typed += "." + local
		e.Steps[len(e.Steps)-1] = SearchStep(printable(typed))
		for _, s := range e.DidYouMean {
			if p, ok := c.Provider(s.Name); ok {
				names, _ := p.Names()
				e.DidYouMean = append(e.DidYouMean, nearestTools(s.Name, typed, names)...)
			}
		}
		e.DidYouMean = Closest(e.DidYouMean)
	}
	if len(e.DidYouMean) == 0 {
		e.DidYouMean = c.searchNames(c.providers, typed)
	}
	return e
}

func (c *Catalog) unknownTool(p Provider, local string, groups []GroupLine) *Error {
	plugin := p.Info().Name
	group, _, dotted := strings.Cut(local, ".")
	known := ""
	for _, g := range groups {
		if dotted && strings.EqualFold(g.Name, group) {
			known = g.Name
		}
	}
	names, _ := p.Names()
	if known != "" {
		e := Errorf(NotFound, "%s has no tool %s in group %s", plugin, printable(local), known)
		if e.DidYouMean = nearestTools(plugin, local, names); len(e.DidYouMean) == 0 {
			e.DidYouMean = c.searchNames([]Provider{p}, local)
		}
		return e.WithSteps(ListStep(plugin + "." + known))
	}
	e := Errorf(NotFound, "%s has no tool or group %s", plugin, printable(local))
	if len(groups) == 0 {
		e.Message = plugin + " has no tool " + printable(local)
	}
	e.DidYouMean = nearestTools(plugin, local, names)
	for _, g := range groups {
		if d := schema.Distance(strings.ToLower(local), strings.ToLower(g.Name)); d <= limitFor(local) {
			e.DidYouMean = append(e.DidYouMean, NearName{plugin + "." + g.Name, d})
		}
	}
	if e.DidYouMean = Closest(e.DidYouMean); len(e.DidYouMean) == 0 {
		e.DidYouMean = c.searchNames([]Provider{p}, local)
	}
	return e.WithSteps(ListStep(plugin), SearchStep(printable(local)))
}

// searchNames suggests names by search for a name that is not close to any: it may be a synonym or a part of a name.
// Only hits that score about as high as the first are returned.
func (c *Catalog) searchNames(providers []Provider, typed string) []NearName {
	const tolerance = 0.05
	var near []NearName
	hits := index.Search(c.segmentsOf(providers, nil), index.Query{Text: manifest.CleanLine(typed)}).Hits
	for _, hit := range hits {
		if strings.EqualFold(hit.Group, typed) {
			return []NearName{{hit.Plugin + "." + hit.Group, 0}}
		}
		if hit.Confidence != "low" && hit.Score >= hits[0].Score-tolerance && len(near) < 3 {
			near = append(near, NearName{hit.Plugin + "." + hit.Name, nearestForm(hit.Plugin, hit.Name, typed)})
		}
	}
	return near
}

// nearestTools returns the tools whose bare or qualified names are nearest to a name.
func nearestTools(plugin, typed string, names []string) []NearName {
	typed = strings.ToLower(typed)
	limit := limitFor(typed)
	var near []NearName
	for _, name := range names {
		d := limit + 1
		for _, form := range nameForms(plugin, name) {
			if gap := len(form) - len(typed); gap <= limit && gap >= -limit {
				d = min(d, schema.Distance(typed, form))
			}
		}
		if d <= limit {
			near = append(near, NearName{plugin + "." + name, d})
		}
	}
	return Closest(near)
}

// nameForms returns the spellings of a tool's name: the bare name, with its group, with its plugin.
func nameForms(plugin, name string) [3]string {
	lower := strings.ToLower(name)
	return [3]string{lower[strings.LastIndexByte(lower, '.')+1:], lower, strings.ToLower(plugin) + "." + lower}
}

// nearestForm returns the distance to the nearest spelling.
func nearestForm(plugin, name, typed string) int {
	typed = strings.ToLower(typed)
	forms := nameForms(plugin, name)
	return min(schema.Distance(typed, forms[0]), schema.Distance(typed, forms[1]), schema.Distance(typed, forms[2]))
}

// Closest sorts names by distance, then by name, and returns the first three.
func Closest(near []NearName) []NearName {
	slices.SortFunc(near, func(a, b NearName) int {
		if a.Distance != b.Distance {
			return a.Distance - b.Distance
		}
		return strings.Compare(a.Name, b.Name)
	})
	return near[:min(len(near), 3)]
}

// limitFor returns the maximum distance of a suggestion. It is small for short words, which are close to many names.
func limitFor(word string) int { return max(1, min(3, len(word)/3)) }

// printable returns a name from input as messages may show it: on one line, without control characters, and clipped.
func printable(name string) string {
	name = manifest.Clip(manifest.CleanLine(name), 80)
	if name == "" {
		return `""`
	}
	return name
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func joinMethods(words []string) string {
	if len(words) == 0 {
		return "GET"
	}
	return strings.Join(words, ",")
}
