package host

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parley-tools/parley/host/internal/index"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Catalog is an immutable set of plugins. Names are case-insensitive. To change the set, make a new catalog and
// install it with call.Host.Swap.
type Catalog struct {
	providers []Provider // in listing order: built-in ones first, then by name
	byName    map[string]Provider

	// Documentation, schemas and segments are built on first use and live as long as the catalog.
	docs        sync.Map // tierKey -> *manifest.ToolDocs
	schemas     sync.Map // partKey -> *schema.Schema
	searchIndex searchIndex
	latestNear  atomic.Pointer[nearNames]
}

// nearNames is the result of [Catalog.nearest] for a name: the similar names in one plugin, or in all if plugin is "".
type nearNames struct {
	plugin, typed string
	near          []spelling.Near
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
	type listed struct {
		at   int
		name string
		of   Provider
	}
	list := make([]listed, 0, len(providers)) // an Info is large: with thousands of plugins, sorting these is faster
	c := &Catalog{providers: make([]Provider, 0, len(providers)), byName: make(map[string]Provider, len(providers))}
	for _, p := range providers {
		info := p.Info()
		key := strings.ToLower(info.Name)
		if c.byName[key] != nil {
			return nil, Errorf(AlreadyExists, "two plugins are named %s; names are unique without regard to case", info.Name)
		}
		c.byName[key] = p
		list = append(list, listed{listedAt(info), info.Name, p})
	}
	slices.SortFunc(list, func(a, b listed) int { return cmp.Or(a.at-b.at, strings.Compare(a.name, b.name)) })
	for _, l := range list {
		c.providers = append(c.providers, l.of)
	}
	return c, nil
}

// listedAt returns 0 for plugins that lists show first, and 1 for others.
func listedAt(i Info) int {
	if i.Kind == manifest.KindBuiltin {
		return 0
	}
	return 1
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
func (a Address) ListStep() step.Step {
	if a.Group != "" {
		return step.List(a.Plugin + "." + a.Group)
	}
	return step.List(a.Plugin)
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

// Has reports whether an address comes from this catalog.
func (c *Catalog) Has(a Address) bool { return a.catalog == c }

// Exact returns the address of the tool that has exactly this qualified name. Without such a tool, Tool is nil.
func (c *Catalog) Exact(name string) (at Address) {
	plugin, local := split(name)
	if p, ok := c.Provider(plugin); ok && local != "" {
		if t, err := p.Tool(local); err == nil && t != nil && t.Name == local {
			at = Address{catalog: c, Provider: p, Plugin: p.Info().Name, Tool: t}
		}
	}
	return at
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
	if entry := a.Provider.Features().Entry; entry != nil {
		a.Entry, err = entry(local)
	}
	return a, err
}

// FindAnyway is [Catalog.Find] for Options.SendAnyway: it also accepts tools that the plugin's data does not have, if
// the plugin passes on such calls. A name close to a known one is treated as a typo and remains not_found.
func (c *Catalog) FindAnyway(name string) (Address, error) {
	a, err := c.Find(name)
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != NotFound || len(e.DidYouMean) > 0 && e.DidYouMean[0].Distance <= 2 || a.Provider == nil {
		return a, err
	}
	if pass := a.Provider.Features().Pass; pass != nil {
		_, local := split(name)
		if a.Tool = pass(strings.ReplaceAll(local, "__", ".")); a.Tool != nil {
			return a, nil
		}
	}
	return a, err
}

// UnknownPlugin returns the not_found error of a plugin, with the nearest names.
func (c *Catalog) UnknownPlugin(name string) *Error {
	e := Errorf(NotFound, "no plugin is named %s", Printable(name))
	e.DidYouMean = c.nearestPlugins(name)
	return e.WithSteps(step.List(""), step.Search(Printable(strings.TrimSpace(name))))
}

func (c *Catalog) nearestPlugins(name string) []spelling.Near {
	names := make([]string, 0, len(c.providers))
	for _, p := range c.providers {
		names = append(names, p.Info().Name)
	}
	return spelling.Nearest(name, names, maxNear)
}

// unknownName returns the error of a name whose plugin does not exist. It suggests plugins with similar names and,
// since the plugin may have been left out, tools and groups near to the whole name. A single word suggests only tools
// and groups of exactly this name.
func (c *Catalog) unknownName(plugin, local string) *Error {
	if plugin == "" {
		return Errorf(NotFound, "the name of a tool is missing; expected plugin.tool").WithSteps(step.List(""))
	}
	e := Errorf(NotFound, "no plugin is named %s", Printable(plugin))
	typed := plugin
	if local != "" {
		typed += "." + strings.ReplaceAll(local, "__", ".")
	}
	near := c.nearest("", typed)
	if !strings.Contains(typed, ".") {
		near = slices.DeleteFunc(near, func(n spelling.Near) bool { return n.Distance > 0 })
	}
	if local == "" || len(near) == 0 {
		near = append(near, c.nearestPlugins(plugin)...)
	}
	e.DidYouMean = closestTo(near)
	e.Steps = c.stepsTo(e.DidYouMean)
	return e.WithSteps(step.List(""), step.Search(Printable(strings.TrimSpace(typed))))
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
	e := Errorf(NotFound, "%s has no tool or group %s", plugin, Printable(local))
	switch {
	case known != "":
		e.Message = fmt.Sprintf("%s has no tool %s in group %s", plugin, Printable(local), known)
	case len(groups) == 0:
		e.Message = plugin + " has no tool " + Printable(local)
	}
	e.DidYouMean = c.nearest(plugin, local)
	if e.Steps = c.stepsTo(e.DidYouMean); len(e.DidYouMean) == 0 {
		e.Steps = c.searchSteps(p, local)
	}
	if known != "" {
		return e.WithSteps(step.List(plugin + "." + known))
	}
	if e = e.WithSteps(step.List(plugin)); len(e.DidYouMean) != 1 {
		e = e.WithSteps(step.Search(Printable(strings.TrimSpace(local))))
	}
	return e
}

// stepsTo returns the step to the nearest name. It returns none if another name is as near.
func (c *Catalog) stepsTo(near []spelling.Near) []step.Step {
	if len(near) == 0 || len(near) > 1 && near[1].Distance == near[0].Distance {
		return nil
	}
	if at, _ := c.Find(near[0].Name); at.Tool == nil && at.Entry == nil {
		return []step.Step{step.List(near[0].Name)}
	}
	return []step.Step{step.Describe(near[0].Name, 0)}
}

// searchSteps returns the steps for a name that resembles no name in its plugin. They lead to what a search for the
// name finds by a synonym or a part of a name, not by another spelling. Only hits that score about as high as the
// first count.
func (c *Catalog) searchSteps(p Provider, typed string) (steps []step.Step) {
	const tolerance = 0.05
	hits := index.Search(c.SegmentsOf([]Provider{p}, nil), index.Query{Text: manifest.Strip(typed)}).Hits
	for _, hit := range hits {
		if strings.EqualFold(hit.Group, typed) {
			return []step.Step{step.List(hit.Plugin + "." + hit.Group)}
		}
		sure := hit.Confidence != "low" && !strings.HasPrefix(hit.Why, "typo")
		if sure && hit.Score >= hits[0].Score-tolerance && len(steps) < maxNear {
			steps = append(steps, step.Describe(hit.Plugin+"."+hit.Name, 0))
		}
	}
	return steps
}

// nearest returns the tools and groups of one plugin, or of all for "", that a name resembles. If the name has a
// group, its events are included. The latest result is cached, because reporting an error looks the name up again.
func (c *Catalog) nearest(plugin, typed string) (near []spelling.Near) {
	if latest := c.latestNear.Load(); latest != nil && latest.plugin == plugin && latest.typed == typed {
		return slices.Clone(latest.near)
	}
	group, _, _ := strings.Cut(typed, ".")
	for _, p := range c.providers {
		if plugin != "" && p.Info().Name != plugin {
			continue
		}
		names, _ := p.Names()
		groups, _ := p.Groups()
		eventsOf := p.Features().Events
		for _, g := range groups {
			names = append(names, g.Name)
			if eventsOf != nil && strings.EqualFold(g.Name, group) {
				events, _ := eventsOf(g.Name)
				for _, e := range events {
					names = append(names, e.Name)
				}
			}
		}
		near = append(near, Nearest(p.Info().Name, typed, names)...)
	}
	near = closestTo(near)
	c.latestNear.Store(&nearNames{plugin, typed, near})
	return slices.Clone(near)
}

// Nearest returns the qualified names of a plugin's tools, groups or events that a name resembles, at most three.
func Nearest(plugin, typed string, names []string) (near []spelling.Near) {
	for _, name := range names {
		if d, ok := Resembles(plugin, name, typed); ok {
			near = append(near, spelling.Near{Name: plugin + "." + name, Distance: d})
		}
	}
	return closestTo(near)
}

// closestTo is [Closest] for one name. Names at distance 0, such as the name without its plugin, exclude the others.
func closestTo(near []spelling.Near) []spelling.Near {
	near = Closest(near)
	if i := slices.IndexFunc(near, func(n spelling.Near) bool { return n.Distance > 0 }); i > 0 {
		near = near[:i]
	}
	return near
}

// Resembles returns the distance of what was typed from the nearest spelling of a local name: the bare name, with its
// group, or with its plugin. It reports whether it is small enough for a typo.
func Resembles(plugin, name, typed string) (distance int, ok bool) {
	for _, form := range [3]string{manifest.LocalName(name), name, plugin + "." + name} {
		if d, near := spelling.Resembles(typed, form); near && (!ok || d < distance) {
			distance, ok = d, true
		}
	}
	return distance, ok
}

// maxNear is how many names an error suggests at most.
const maxNear = 3

// Closest sorts names by distance, then by name, and returns the first three.
func Closest(near []spelling.Near) []spelling.Near {
	slices.SortFunc(near, func(a, b spelling.Near) int {
		return cmp.Or(a.Distance-b.Distance, strings.Compare(a.Name, b.Name))
	})
	near = slices.Compact(near)
	return near[:min(len(near), maxNear)]
}

// Printable returns a name from input as messages may show it: clean, on one line, clipped, and quoted if it has spaces
// at its ends.
func Printable(name string) string {
	name = manifest.Clip(manifest.CleanValue(name), 80)
	if name == "" || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}

// Describe returns the documentation of a tool at a tier.
func (a Address) Describe(t *manifest.Tool, tier int) (*Docs, error) {
	key := tierKey{a.Name(), tier}
	built, ok := a.catalog.docs.Load(key)
	if !ok {
		if describe := a.Provider.Features().Describe; describe != nil {
			built = describe(t, tier)
		} else if m, err := a.Provider.Manifest(); err == nil {
			built = manifest.Describe(m, t, tier)
		} else {
			return nil, err
		}
		for i, r := range built.(*manifest.ToolDocs).Related {
			_, err := a.catalog.Find(r.Tool)
			if _, local := a.catalog.Find(a.Plugin + "." + r.Tool); err != nil && local != nil {
				built.(*manifest.ToolDocs).Related[i].Why += " (not installed)"
			}
		}
		a.catalog.docs.Store(key, built)
	}
	d := *built.(*manifest.ToolDocs)
	return &Docs{ToolDocs: &d}, nil
}

// SchemaOf returns the compiled schema of a tool's parameters or results. It returns nil if there is no schema. A
// schema that did not pass the gate is an error, or nil for a tool of kind extism, where it is only shown.
func (a Address) SchemaOf(raw []byte, part string) (*schema.Schema, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	info := a.Provider.Info()
	k := partKey{a.Name(), part}
	if s, ok := a.catalog.schemas.Load(k); ok {
		return s.(*schema.Schema), nil
	}
	compile := schema.CompileUntrusted
	if info.Kind == manifest.KindBuiltin {
		compile = schema.CompileTrusted
	}
	s, err := compile(raw)
	if err != nil && (info.Kind == manifest.KindExtism || info.Kind == manifest.KindHTTP) {
		s, err = nil, nil
	}
	if err != nil {
		return nil, &Error{Code: InvalidPlugin, Message: fmt.Sprintf("the %s schema of %s cannot be used: %v", part, a.Name(),
			err), Cause: err}
	}
	a.catalog.schemas.Store(k, s)
	return s, nil
}

// SchemaCompiled reports whether [Address.SchemaOf] has already compiled the schema.
func (a Address) SchemaCompiled(part string) bool {
	_, ok := a.catalog.schemas.Load(partKey{a.Name(), part})
	return ok
}

// FlowOf returns what comes before a tool, as its provider or its manifest says.
func (a Address) FlowOf() *manifest.Flow {
	if flow := a.Provider.Features().Flow; flow != nil {
		if f := flow(a.Tool.Name); f != nil {
			return f
		}
	}
	return manifest.FlowOf(a.Tool)
}

// Base returns the plugin below an overlay, or the plugin itself.
func Base(p Provider) Provider {
	if o, ok := p.(interface{ Base() Provider }); ok {
		return o.Base()
	}
	return p
}
