package protocol

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed protocol.bin
var embedded string

// Protocol is one version of the protocol. It never changes, and may be used by many at once.
type Protocol struct{ data string }

// Embedded answers the pinned protocol. It costs nothing: every look-up reads only what it needs.
func Embedded() *Protocol { return embeddedProtocol }

var embeddedProtocol = &Protocol{data: embedded}

// Parse reads the document that a browser answers at /json/protocol. What people wrote about the commands of the pinned protocol (effects,
// tasks, common examples) is taken over for commands of the same name. A document that is not a protocol, is larger than 16 MiB, or
// names things in a way that could not be typed is an error. Descriptions are cleaned as every foreign text is.
func Parse(document []byte) (*Protocol, error) {
	docs, err := decodeAll([][]byte{document})
	if err != nil {
		return nil, err
	}
	return &Protocol{data: write("live", Embedded().notes(), docs)}, nil
}

// Kind says what a member of a domain is.
type Kind string

const (
	KindCommand Kind = "command"
	KindEvent   Kind = "event"
	KindType    Kind = "type"

	kindDomain Kind = "domain"
	kindValue  Kind = "value" // for examples
)

var (
	kinds   = [3]Kind{KindCommand, KindEvent, KindType}
	indexes = []Kind{kindDomain, KindCommand, KindEvent, KindType, kindValue}
)

// Effect says what a command does to the browser and its pages.
type Effect string

const (
	Read        Effect = "read"        // looks, or switches what is reported
	Write       Effect = "write"       // changes the page, the browser or what they pretend to be
	Destructive Effect = "destructive" // loses data, or ends something that runs
)

// Domain is a group of commands, events and types, without them.
type Domain struct {
	Name, Brief, Description string
	Commands, Events, Types  int
	Experimental, Deprecated bool
	Dependencies             []string // names of domains
}

// Line is what a list says about one member.
type Line struct {
	Kind         Kind
	Name         string // bare: "getCookies"
	Brief        string // at most LineSize characters
	Signature    string // "getCookies(urls?: string[])"; a type's is its JSON type
	Short        string // the same for lists: optional parameters are "..." unless one stands alone; no types where that would be long
	Effect       Effect // of commands
	Deprecated   bool
	Experimental bool
}

// Version is the protocol's own version: "1.3".
func (p *Protocol) Version() string { v, _ := p.versions(); return v }

// Revision is the version of the npm package that was pinned, or "live".
func (p *Protocol) Revision() string { _, r := p.versions(); return r }

func (p *Protocol) versions() (version, revision string) {
	r := reader{s: p.data, i: headerSize}
	return r.str(), r.str()
}

// Domains answers all domains, sorted by name, without reading their members.
func (p *Protocol) Domains() []Domain {
	count, _ := p.index(kindDomain)
	list := make([]Domain, count)
	for i := range list {
		list[i] = p.at(kindDomain, i).domain().Domain
	}
	return list
}

// Domain looks a domain up without regard to case; Name is the name as Chrome wants it.
func (p *Protocol) Domain(name string) (Domain, bool) {
	d, ok := p.domain(name)
	return d.Domain, ok
}

func (p *Protocol) domain(name string) (domainRecord, bool) {
	r, ok := p.find(kindDomain, name)
	if !ok {
		return domainRecord{}, false
	}
	return r.domain(), true
}

// Members answers the lines of a domain: commands, then events, then types, each sorted by name; nil for an unknown domain.
func (p *Protocol) Members(domain string) []Line {
	d, ok := p.domain(domain)
	if !ok {
		return nil
	}
	list := make([]Line, 0, d.Commands+d.Events+d.Types)
	for i, k := range kinds {
		for j := range d.count[i] {
			list = append(list, p.line(&d, k, p.at(k, d.first[i]+j)))
		}
	}
	return list
}

func (p *Protocol) line(d *domainRecord, k Kind, r *reader) Line {
	var m memberRecord
	if k == KindType {
		m = r.memberHead()
	} else {
		m = r.member()
	}
	l := Line{Kind: k, Name: m.Name, Deprecated: m.Deprecated || d.Deprecated, Experimental: m.Experimental || d.Experimental}
	l.Brief = briefOf(m.Description, m.Name, LineSize)
	switch k {
	case KindCommand:
		note := r.note()
		l.Effect = note.Effect
		if note.Brief != "" {
			l.Brief = note.Brief
		}
		target, _ := p.resolveRedirect(m)
		l.Signature, l.Short = p.signature(m.Name, target)
	case KindEvent:
		l.Signature, l.Short = p.signature(m.Name, m)
	case KindType:
		l.Signature, l.Short = m.Type, m.Type
	}
	return l
}

// maxShort is the size in bytes over which a short signature leaves the types away.
const maxShort = 60

// signature writes `name(a: string, b?: integer)`, whole and short.
// shortType writes an array as what it holds: "string[]".
func (p *Protocol) shortType(domain string, n *node) string {
	if q := p.param(domain, n); q.Type == "array" && q.Items != "" {
		return q.Items + "[]"
	}
	return p.jsonType(domain, n)
}

func (p *Protocol) signature(name string, m memberRecord) (whole, short string) {
	var required, optional, names []string
	for i := range m.Parameters {
		n := &m.Parameters[i]
		if n.Optional {
			optional = append(optional, n.Name+"?: "+p.shortType(m.domain, n))
		} else {
			required = append(required, n.Name+": "+p.shortType(m.domain, n))
			names = append(names, n.Name)
		}
	}
	render := func(lists ...[]string) string { return name + "(" + strings.Join(slices.Concat(lists...), ", ") + ")" }
	whole = render(required, optional)
	rest := optional
	if len(optional) > 1 || len(optional) == 1 && len(required) > 0 {
		rest = []string{"..."}
	}
	if short = render(required, rest); len(short) > maxShort {
		short = render(names, rest)
	}
	return whole, short
}

// Names answers the qualified names of all commands, sorted without regard to case.
func (p *Protocol) Names() []string {
	count, _ := p.index(KindCommand)
	list := make([]string, count)
	for i := range list {
		list[i] = p.at(KindCommand, i).str()
	}
	return list
}

// notes collects what people wrote down, for another protocol.
func (p *Protocol) notes() Notes {
	n := Notes{Domains: map[string]string{}, Commands: map[string]Note{}}
	for _, d := range p.Domains() {
		n.Domains[d.Name] = d.Brief
	}
	count, _ := p.index(KindCommand)
	for i := range count {
		r := p.at(KindCommand, i)
		m := r.member()
		n.Commands[m.qualified] = r.note()
	}
	return n
}

// Coverage is how much there is, and how much of it is explained. All of it is counted, by Build.
type Coverage struct {
	Domains    int `json:"domains"`
	Commands   int `json:"commands"`
	Events     int `json:"events"`
	Types      int `json:"types"`
	Parameters int `json:"parameters"` // of commands

	// Marks that the protocol sets on the member itself, not on its domain.
	ExperimentalCommands int `json:"experimental_commands"`
	DeprecatedCommands   int `json:"deprecated_commands"`

	// Those that the protocol itself describes; texts of the others are made from their names and types.
	DescribedCommands   int `json:"described_commands"`
	DescribedEvents     int `json:"described_events"`
	DescribedParameters int `json:"described_parameters"`

	// Examples answers at least one for every command; common ones and tasks were written by hand.
	CommandsWithExamples       int `json:"commands_with_examples"`
	CommandsWithCommonExamples int `json:"commands_with_common_examples"`
	CommandsWithTasks          int `json:"commands_with_tasks"`
}

// numbers are the fields that a domain record carries.
func (c *Coverage) numbers() []*int {
	return []*int{&c.Parameters, &c.ExperimentalCommands, &c.DeprecatedCommands, &c.DescribedCommands, &c.DescribedEvents, &c.DescribedParameters,
		&c.CommandsWithExamples, &c.CommandsWithCommonExamples, &c.CommandsWithTasks}
}

func countDomain(d *sourceDomain, notes map[string]Note) Coverage {
	c := Coverage{}
	for _, n := range d.Commands {
		note := notes[d.Domain+"."+n.Name]
		c.CommandsWithExamples++
		c.CommandsWithCommonExamples += btoi(len(note.Examples) > 0)
		c.CommandsWithTasks += btoi(len(note.Tasks) > 0)
		c.Parameters += len(n.Parameters)
		c.ExperimentalCommands += btoi(n.Experimental)
		c.DeprecatedCommands += btoi(n.Deprecated)
		c.DescribedCommands += btoi(n.Description != "")
		for _, q := range n.Parameters {
			c.DescribedParameters += btoi(q.Description != "")
		}
	}
	for _, n := range d.Events {
		c.DescribedEvents += btoi(n.Description != "")
	}
	return c
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Coverage sums up all domains.
func (p *Protocol) Coverage() Coverage {
	total := Coverage{}
	count, _ := p.index(kindDomain)
	for i := range count {
		d := p.at(kindDomain, i).domain()
		total.Domains++
		total.Commands += d.Commands
		total.Events += d.Events
		total.Types += d.Types
		sum := total.numbers()
		for j, n := range d.coverage.numbers() {
			*sum[j] += *n
		}
	}
	return total
}
