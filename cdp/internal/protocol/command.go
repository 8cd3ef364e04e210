package protocol

import (
	"cmp"
	"strings"
)

// Command is one command with its documentation. Redirects are resolved: a command that Chrome forwards to another
// domain has the parameters of the command that handles it.
type Command struct {
	Name   string // qualified: "Network.getCookies"
	Domain string
	Brief  string
	Rights
	Params   []Param
	Returns  []Param
	Redirect string // the command that handles this one, if Chrome forwards it: "Overlay.highlightNode"

	Description  string
	Experimental bool // or its domain is
	Deprecated   bool // or its domain is

	DeprecationMessage string // the alternative, or the reason
	Use                string // qualified name of the replacement, if there is one

	Tasks    []string // phrases that a user of the command would say
	Keywords []string
	When     string // when to use it; may be empty
	WhenNot  string // when to use another command, which it names; may be empty
	Related  []Related

	source   memberRecord // the command that handles this one
	examples []Example    // hand-written
	runs     map[string]Run
}

// Related is another command, or a verb of the plugin, and how it relates to a command.
type Related struct{ Tool, Why string }

// Entry is an event or a named type.
type Entry struct {
	Kind                     Kind   // KindEvent or KindType
	Name, Domain, Brief      string // the name is qualified
	Description              string
	Enum                     []string // of a type
	Fields                   []Param  // the parameters of an event, the properties of a type
	Experimental, Deprecated bool

	source memberRecord
}

// Param is one parameter, one field of a result, or one property of a type.
type Param struct {
	Name        string
	Ref         string   // qualified name of the type, or of the type of an array's items
	Enum        []string // of the parameter or of an array's items
	Description string   // never empty: derived from type and name if the protocol has none
	Binary      bool     // a string that contains base64
	Properties  []Param

	Optional, Deprecated bool
}

// Command returns a command by its qualified name, without regard to case. Its Name has the case that Chrome expects.
func (p *Protocol) Command(name string) (*Command, bool) {
	r, ok := p.find(KindCommand, name)
	if !ok {
		return nil, false
	}
	m := r.member()
	note := r.note()
	d, _ := p.domain(m.domain)
	c := &Command{
		Name: m.qualified, Domain: m.domain, Rights: note.Rights, Description: m.Description,
		Experimental: m.Experimental || d.Experimental, Deprecated: m.Deprecated || d.Deprecated,
		Tasks: note.Tasks, Keywords: note.Keywords, When: note.When, WhenNot: note.WhenNot, Related: note.Related,
		examples: note.Examples, runs: note.Runs,
	}
	c.Brief = cmp.Or(note.Brief, briefOf(m.Description, m.Name, BriefSize))
	c.Description = cmp.Or(c.Description, words(m.Name)+".")
	c.source, c.Redirect = p.resolveRedirect(m)
	c.Params = p.params(c.source.domain, c.source.Parameters)
	c.Returns = p.params(c.source.domain, c.source.Returns)
	if c.Deprecated {
		c.DeprecationMessage, c.Use = note.Deprecation, note.Use
		if c.DeprecationMessage == "" {
			c.DeprecationMessage, c.Use = p.deprecation(m, d)
		}
	}
	return c, true
}

// Event returns an event by its qualified name, without regard to case.
func (p *Protocol) Event(name string) (*Entry, bool) { return p.entry(KindEvent, name) }

// Type returns a type by its qualified name, without regard to case.
func (p *Protocol) Type(name string) (*Entry, bool) { return p.entry(KindType, name) }

func (p *Protocol) entry(k Kind, name string) (*Entry, bool) {
	r, ok := p.find(k, name)
	if !ok {
		return nil, false
	}
	m := r.member()
	d, _ := p.domain(m.domain)
	e := &Entry{
		Kind: k, Name: m.qualified, Domain: m.domain, Brief: briefOf(m.Description, m.Name, BriefSize),
		Description: m.Description, Fields: p.params(m.domain, m.Parameters),
		Experimental: m.Experimental || d.Experimental, Deprecated: m.Deprecated || d.Deprecated, source: m,
	}
	e.Description = cmp.Or(e.Description, words(m.Name)+".")
	if k == KindType {
		e.Enum, e.Fields = p.param(m.domain, &m.node).Enum, p.params(m.domain, m.Properties)
	}
	return e, true
}

// typeHead returns a type without its properties.
func (p *Protocol) typeHead(name string) (m memberRecord, ok bool) {
	r, ok := p.find(KindType, name)
	if ok {
		m = r.memberHead()
	}
	return m, ok
}

func (p *Protocol) typeRecord(name string) (m memberRecord, ok bool) {
	r, ok := p.find(KindType, name)
	if ok {
		m = r.member()
	}
	return m, ok
}

// resolveRedirect returns the command that a redirect leads to, and its name. It returns m itself if there is no
// redirect or its target does not exist.
func (p *Protocol) resolveRedirect(m memberRecord) (target memberRecord, name string) {
	if m.Redirect == "" {
		return m, ""
	}
	r, ok := p.find(KindCommand, m.Redirect+"."+m.Name)
	if !ok {
		return m, ""
	}
	target = r.member()
	return target, target.qualified
}

func (p *Protocol) params(domain string, nodes []node) []Param {
	if len(nodes) == 0 {
		return nil
	}
	list := make([]Param, len(nodes))
	for i := range nodes {
		list[i] = p.param(domain, &nodes[i])
	}
	return list
}

const binaryMark = "(Encoded as a base64 string when passed over JSON)"

func (p *Protocol) param(domain string, n *node) Param {
	q := Param{Name: n.Name, Enum: n.Enum, Properties: p.params(domain, n.Properties), Optional: n.Optional,
		Deprecated: n.Deprecated}
	q.Description, q.Binary = splitBinaryMark(n)
	ref := n.Ref
	if n.Items != nil {
		q.Enum, ref = n.Items.Enum, n.Items.Ref
	}
	if ref != "" {
		q.Ref = qualify(domain, ref)
		if t, ok := p.typeHead(q.Ref); ok {
			if q.Ref, q.Enum = t.qualified, t.Enum; q.Description == "" && t.Description != "" {
				q.Description = sentence(t.Description) + "."
			}
		}
	}
	q.Description = cmp.Or(q.Description, words(n.Name)+".")
	return q
}

// splitBinaryMark returns a description without the mark of binary values, and whether it had the mark.
func splitBinaryMark(n *node) (description string, binary bool) {
	if n.Type == "string" && strings.Contains(n.Description, binaryMark) {
		return strings.TrimSpace(strings.Replace(n.Description, binaryMark, "", 1)), true
	}
	return n.Description, false
}

// jsonType returns the JSON type of a node, which may be a reference.
func (p *Protocol) jsonType(domain string, n *node) string {
	t := n.Type
	if n.Ref != "" {
		if r, ok := p.typeHead(qualify(domain, n.Ref)); ok {
			t = r.Type
		}
	}
	if t == "" {
		return "any"
	}
	return t
}

func qualify(domain, ref string) string {
	if strings.Contains(ref, ".") {
		return ref
	}
	return domain + "." + ref
}

// unreviewed returns the rights of a command that no reviewed table has, as in a live protocol. Such a command may
// reach anything.
func unreviewed(name string) Rights { return Rights{Effect: guessEffect(name), Reach: Machine} }

// guessEffect returns the effect of a command without a reviewed one, as in a live protocol. It never returns Read,
// because policies are lenient about reads.
func guessEffect(name string) Effect {
	for _, start := range []string{"clear", "close", "crash", "delete", "dispose", "discard", "kill", "purge", "remove",
		"reset", "terminate", "uninstall", "unregister"} {
		if strings.HasPrefix(strings.ToLower(name), start) {
			return Destructive
		}
	}
	return Write
}

// deprecation derives the message and the replacement of a deprecated command from the protocol's own text.
func (p *Protocol) deprecation(m memberRecord, d domainRecord) (message, use string) {
	if !m.Deprecated {
		return "The domain " + d.Name + " is deprecated. " + oneLine(d.Description), ""
	}
	if _, target := p.resolveRedirect(m); target != "" {
		return "Use " + target + " instead.", target
	}
	text := oneLine(m.Description)
	if rest, ok := cutFold(text, "use "); ok {
		word, _, _ := strings.Cut(rest, " ")
		word = strings.Trim(word, "`.,;:()")
		if r, ok := p.find(KindCommand, qualify(m.domain, word)); ok {
			use = r.str()
			return "Use " + use + " instead.", use
		}
	}
	if rest, ok := cutFold(text, "deprecated"); ok {
		if s := sentence(strings.TrimLeft(rest, ".,:; ")); s != "" {
			return "Deprecated: " + s + ".", ""
		}
	}
	return "Deprecated; the protocol names no replacement.", ""
}

func cutFold(s, sep string) (after string, ok bool) {
	if i := strings.Index(strings.ToLower(s), sep); i >= 0 && i+len(sep) <= len(s) {
		return s[i+len(sep):], true
	}
	return "", false
}
