package protocol

import (
	"slices"
	"strconv"
	"strings"
)

// Difference lists the differences between two protocols by kind.
type Difference struct {
	Domains Changes `json:"domains"`
	Methods Changes `json:"methods"`
	Events  Changes `json:"events"`
	Types   Changes `json:"types"`
	// Parameters are those of methods, results and events, and properties of types, whose owner is in both protocols.
	Parameters Changes `json:"parameters"`
}

// Changes are the names of one kind, sorted.
type Changes struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []Change `json:"changed"`
}

// Change is one changed attribute of a member or parameter that is in both protocols.
type Change struct {
	Name      string `json:"name"`
	Attribute string `json:"attribute"` // type, items, enum, optional, experimental, deprecated, redirect or binary
	Was       string `json:"was"`
	Is        string `json:"is"`
}

// Count returns the total number of differences.
func (d *Difference) Count() (n int) {
	for _, c := range d.kinds() {
		n += len(c.Added) + len(c.Removed) + len(c.Changed)
	}
	return n
}

func (d *Difference) kinds() []*Changes {
	return []*Changes{&d.Domains, &d.Methods, &d.Events, &d.Types, &d.Parameters}
}

// Diff returns the changes from one protocol to another. It ignores texts and order.
func Diff(was, is *Protocol) Difference {
	var d Difference
	for i, k := range []Kind{kindDomain, KindCommand, KindEvent, KindType} {
		d.compare(d.kinds()[i], nodesOf(was, k), nodesOf(is, k), k != kindDomain)
	}
	for _, c := range d.kinds() {
		for _, names := range []*[]string{&c.Added, &c.Removed} {
			*names = append([]string{}, *names...)
			slices.Sort(*names)
		}
		c.Changed = append([]Change{}, c.Changed...)
		slices.SortStableFunc(c.Changed, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	}
	return d
}

// nodesOf returns all members of a kind by their qualified names.
func nodesOf(p *Protocol, k Kind) map[string]node {
	all := map[string]node{}
	count, _ := p.index(k)
	for i := range count {
		if k == kindDomain {
			d := p.at(k, i).domain()
			all[d.Name] = node{Experimental: d.Experimental, Deprecated: d.Deprecated}
			continue
		}
		m := p.at(k, i).member()
		all[m.qualified] = m.node
	}
	return all
}

// compare adds the differences between two sets of nodes, and between the fields of nodes in both.
func (d *Difference) compare(into *Changes, was, is map[string]node, within bool) {
	for name, n := range is {
		before, ok := was[name]
		if !ok {
			into.Added = append(into.Added, name)
			continue
		}
		into.Changed = append(into.Changed, changes(name, &before, &n)...)
		if within {
			d.compare(&d.Parameters, fieldsOf(name, &before), fieldsOf(name, &n), true)
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			into.Removed = append(into.Removed, name)
		}
	}
}

// fieldsOf returns the fields of a node by their qualified names, which distinguish results from parameters.
func fieldsOf(owner string, n *node) map[string]node {
	all := map[string]node{}
	for _, list := range [][]node{n.Properties, n.Parameters} {
		for _, field := range list {
			all[owner+"."+field.Name] = field
		}
	}
	for _, field := range n.Returns {
		all[owner+".returns."+field.Name] = field
	}
	return all
}

// changes compares two nodes with the same name.
func changes(name string, was, is *node) (list []Change) {
	_, wasBinary := splitBinaryMark(was)
	_, isBinary := splitBinaryMark(is)
	for _, c := range []Change{
		{Attribute: "type", Was: typeOf(was), Is: typeOf(is)},
		{Attribute: "items", Was: itemsOf(was), Is: itemsOf(is)},
		{Attribute: "enum", Was: enumOf(was), Is: enumOf(is)},
		{Attribute: "optional", Was: strconv.FormatBool(was.Optional), Is: strconv.FormatBool(is.Optional)},
		{Attribute: "experimental", Was: strconv.FormatBool(was.Experimental), Is: strconv.FormatBool(is.Experimental)},
		{Attribute: "deprecated", Was: strconv.FormatBool(was.Deprecated), Is: strconv.FormatBool(is.Deprecated)},
		{Attribute: "redirect", Was: was.Redirect, Is: is.Redirect},
		{Attribute: "binary", Was: strconv.FormatBool(wasBinary), Is: strconv.FormatBool(isBinary)},
	} {
		if c.Was != c.Is {
			c.Name = name
			list = append(list, c)
		}
	}
	return list
}

func typeOf(n *node) string {
	if n.Ref != "" {
		return n.Ref
	}
	return n.Type
}

func itemsOf(n *node) string {
	if n.Items == nil {
		return ""
	}
	return typeOf(n.Items)
}

// enumOf returns the values of an enum, or of the enum of an array's items, in alphabetical order.
func enumOf(n *node) string {
	values := n.Enum
	if n.Items != nil && values == nil {
		values = n.Items.Enum
	}
	return strings.Join(slices.Sorted(slices.Values(values)), "|")
}
