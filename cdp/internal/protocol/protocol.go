package protocol

import (
	"cmp"
	_ "embed"
	"path"
	"slices"
	"strings"
)

//go:embed protocol.bin
var embedded string

// Protocol is one version of the protocol. It is immutable and safe for concurrent use.
type Protocol struct{ data string }

// Embedded returns the pinned protocol. It does no work: every look-up reads only what it needs.
func Embedded() *Protocol { return embeddedProtocol }

var embeddedProtocol = &Protocol{data: embedded}

// Parse reads the document that a browser serves at /json/protocol. Commands get the hand-written notes (effects,
// tasks, common examples) of the pinned protocol's commands of the same name. A document that is not a protocol, is
// larger than 16 MiB, or contains names that are not plain identifiers is an error. Parse cleans descriptions like all
// untrusted text.
func Parse(document []byte) (*Protocol, error) {
	docs, err := decodeAll([][]byte{document})
	if err != nil {
		return nil, err
	}
	return &Protocol{data: write("live", Embedded().notes(), docs)}, nil
}

// Kind is the kind of a member of a domain.
type Kind string

const (
	KindCommand Kind = "command"
	KindEvent   Kind = "event"
	KindType    Kind = "type"

	kindDomain Kind = "domain"
	kindValue  Kind = "value"  // a value for examples
	kindSource Kind = "source" // a source of values
)

var (
	kinds   = [3]Kind{KindCommand, KindEvent, KindType}
	indexes = []Kind{kindDomain, KindCommand, KindEvent, KindType, kindValue, kindSource}
)

// Effect is the effect of a command on the browser and its pages.
type Effect string

const (
	Read        Effect = "read"        // only reads, or changes what is reported
	Write       Effect = "write"       // changes the page, the browser, or what they emulate
	Destructive Effect = "destructive" // loses data, or ends something that runs
)

// Reach is how far a command reaches.
type Reach string

const (
	Page    Reach = "page"    // the page itself, with its frames and workers
	Context Reach = "context" // the browser context: its cookies, its storage of any site, its other pages
	Browser Reach = "browser" // the browser as a whole, or the pages of all callers
	Machine Reach = "machine" // files, devices, ports or processes of this machine
)

// Rights say what a command may do, as reviewed.
type Rights struct {
	Effect Effect
	Reach  Reach
	URL    []string // JSON pointers to parameters whose URL the browser loads
	Files  []string // JSON pointers to parameters that name files of this machine
	// Callers says which callers can be granted the command: "" for all; "context" for all, but plugins use it in their
	// own browser context; "plugin: REASON" for all but plugins; "person: REASON" for the command line alone.
	Callers string
}

// InContext reports whether a plugin's command goes to the browser with the plugin's own browser context.
func (r Rights) InContext() bool { return r.Callers == callersContext }

const (
	callersContext = "context"
	callersPlugin  = "plugin: "
	callersPerson  = "person: "
)

// Refusal returns why the command cannot be granted to a plugin or, with plugin false, to any other caller than the
// command line. It returns "" if it can be granted.
func (r Rights) Refusal(plugin bool) string {
	if why, ok := strings.CutPrefix(r.Callers, callersPerson); ok {
		return why
	}
	if why, ok := strings.CutPrefix(r.Callers, callersPlugin); ok && plugin {
		return why
	}
	return ""
}

// Rights returns what a command may do, by its qualified name. A command that was not reviewed may reach anything; it
// cannot be granted to a plugin if its domain has commands that plugins never get.
func (p *Protocol) Rights(name string) Rights {
	if r, ok := p.find(KindCommand, name); ok {
		r.member()
		return r.rights()
	}
	domain, bare, _ := strings.Cut(name, ".")
	rights := unreviewed(bare)
	if d, ok := p.domain(domain); ok {
		for i := range d.Commands {
			r := p.at(KindCommand, d.first[0]+i)
			r.member()
			if r.rights().Refusal(true) != "" {
				rights.Callers = callersPlugin + "its domain has commands that plugins never get, and it was not reviewed"
			}
		}
	}
	return rights
}

// Domain describes a group of commands, events and types without its members.
type Domain struct {
	Name, Brief, Description string
	Commands, Events, Types  int
	Experimental, Deprecated bool
	Dependencies             []string // names of domains
	Enabling                 Enabling
}

// Enabling says, as reviewed, whether a domain may be enabled for a call of another command that requires it. The
// zero value does not allow it; it stands for domains that were not reviewed or have no command enable.
type Enabling struct {
	For   string   // EnableForAll, EnableForRead or EnableForNone; "" means none
	Needs []string // names of the domains that have to be enabled before it
	Keeps []string // patterns of commands after which it stays enabled, because their ids or settings end with it
}

// Values of Enabling.For: the effects that a command must have for the domain to be enabled.
const (
	EnableForAll  = "all"
	EnableForRead = "read"
	EnableForNone = "none"
)

// Allows reports whether the domain may be enabled for a command with an effect.
func (e Enabling) Allows(effect Effect) bool {
	return e.For == EnableForAll || e.For == EnableForRead && effect == Read
}

// KeptBy reports whether the domain stays enabled after a command, by its qualified name.
func (e Enabling) KeptBy(command string) bool {
	return slices.ContainsFunc(e.Keeps, func(pattern string) bool {
		ok, _ := path.Match(pattern, command)
		return ok
	})
}

// Line is a member in a list.
type Line struct {
	Kind  Kind
	Name  string // bare: "getCookies"
	Brief string // at most LineSize characters
}

// Version returns the protocol's own version: "1.3".
func (p *Protocol) Version() string { v, _ := p.versions(); return v }

// Revision returns the version of the pinned npm package, or "live".
func (p *Protocol) Revision() string { _, r := p.versions(); return r }

func (p *Protocol) versions() (version, revision string) {
	r := reader{s: p.data, i: headerSize}
	return r.str(), r.str()
}

// Domains returns all domains, sorted by name, without reading their members.
func (p *Protocol) Domains() []Domain {
	count, _ := p.index(kindDomain)
	list := make([]Domain, count)
	for i := range list {
		list[i] = p.at(kindDomain, i).domain().Domain
	}
	return list
}

// Domain returns a domain by its name, without regard to case. Its Name has the case that Chrome expects.
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

// Members returns the members of a domain: commands, then events, then types, each sorted by name; nil for an unknown
// domain.
func (p *Protocol) Members(domain string) []Line {
	d, ok := p.domain(domain)
	if !ok {
		return nil
	}
	list := make([]Line, 0, d.Commands+d.Events+d.Types)
	for i, k := range kinds {
		for j := range d.count[i] {
			list = append(list, lineOf(k, p.at(k, d.first[i]+j)))
		}
	}
	return list
}

func lineOf(k Kind, r *reader) Line {
	if k != KindCommand {
		m := r.memberHead()
		return Line{Kind: k, Name: m.Name, Brief: briefOf(m.Description, m.Name, LineSize)}
	}
	m, note := r.member(), r.note()
	return Line{k, m.Name, cmp.Or(note.Brief, briefOf(m.Description, m.Name, LineSize))}
}

// Names returns the qualified names of all commands, sorted without regard to case.
func (p *Protocol) Names() []string {
	count, _ := p.index(KindCommand)
	list := make([]string, count)
	for i := range list {
		list[i] = p.at(KindCommand, i).str()
	}
	return list
}

// notes returns the hand-written notes, which another protocol can use.
func (p *Protocol) notes() Notes {
	n := Notes{Domains: map[string]string{}, Enables: map[string]Enabling{}, Commands: map[string]Note{},
		Descriptions: map[string]string{}, Order: map[string][]string{}}
	for _, d := range p.Domains() {
		n.Domains[d.Name], n.Enables[d.Name] = d.Brief, d.Enabling
	}
	count, _ := p.index(KindCommand)
	for i := range count {
		r := p.at(KindCommand, i)
		m := r.member()
		n.Commands[m.qualified] = r.note()
		n.Descriptions[m.qualified] = m.Description
		for _, q := range m.Parameters {
			n.Order[m.qualified] = append(n.Order[m.qualified], q.Name)
			n.Descriptions[m.qualified+"."+q.Name], _ = splitBinaryMark(&q)
		}
	}
	return n
}

// Undescribed returns the commands and parameters that lack a useful description: it is missing or repeats the name,
// and the type has no description that says more.
func (p *Protocol) Undescribed() (names []string) {
	for _, name := range p.Names() {
		c, ok := p.Command(name)
		if !ok {
			continue
		}
		if repeats(strings.ToLower(c.Description), strings.ToLower(words(bareName(name)))) {
			names = append(names, name)
		}
		for _, q := range c.Params {
			if repeats(strings.ToLower(q.Description), strings.ToLower(words(q.Name))) {
				names = append(names, name+"."+q.Name)
			}
		}
	}
	return names
}

func bareName(name string) string { return name[strings.IndexByte(name, '.')+1:] }

// Coverage counts the members of a protocol and how many are documented. Its JSON has the terms of the command line.
type Coverage struct {
	Domains    int `json:"domains"`
	Commands   int `json:"methods"`
	Events     int `json:"events"`
	Types      int `json:"types"`
	Parameters int `json:"parameters"` // parameters of commands

	// Commands that the protocol itself marks, not only their domain.
	ExperimentalCommands int `json:"experimental_methods"`
	DeprecatedCommands   int `json:"deprecated_methods"`

	// Members that the protocol or a reviewed table describes. Other texts are derived from names and types.
	DescribedCommands   int `json:"-"`
	DescribedEvents     int `json:"-"`
	DescribedParameters int `json:"-"`
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Coverage counts the members, and how many are documented.
func (p *Protocol) Coverage() (c Coverage) {
	for k, n := range map[Kind]*int{kindDomain: &c.Domains, KindCommand: &c.Commands, KindEvent: &c.Events,
		KindType: &c.Types} {
		*n, _ = p.index(k)
	}
	for i := range c.Commands {
		r := p.at(KindCommand, i)
		m := r.member()
		c.Parameters += len(m.Parameters)
		c.ExperimentalCommands += btoi(m.Experimental)
		c.DeprecatedCommands += btoi(m.Deprecated)
		c.DescribedCommands += btoi(m.Description != "")
		for _, q := range m.Parameters {
			c.DescribedParameters += btoi(q.Description != "")
		}
	}
	for i := range c.Events {
		c.DescribedEvents += btoi(p.at(KindEvent, i).memberHead().Description != "")
	}
	return c
}
