package protocol

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"sort"
	"strings"
)

// The flat form. All numbers are little-endian. A string is its length as uvarint, followed by its bytes.
//
//	header   "parleyCDP5", then for domains, commands, events, types, values, sources: u32 count, u32 offset of the
//	         index; then version, revision
//	index    one u32 per member: the offset of its record; sorted by qualified name in lower case
//	records  the qualified name, which the binary search compares, then what writer.domain, node and note write
//
// The members of a domain are adjacent in an index, so a domain record refers to them by first index and count.
const magic = "parleyCDP5"

const headerSize = len(magic) + 6*8

// The fields that a node has, as bits at the beginning of its record.
const (
	hasDescription = 1 << iota
	hasType
	isOptional
	isExperimental
	isDeprecated
	hasRef
	hasItems
	hasEnum
	hasProperties
	hasParameters
	hasReturns
	hasRedirect
)

// Notes are hand-written additions to the protocol.
type Notes struct {
	Domains  map[string]string   // brief by domain name
	Enables  map[string]Enabling // by domain name
	Commands map[string]Note     // by qualified command name
	// Values are example values: JSON by "Domain.command.parameter", "Domain.Type" or "type name".
	Values map[string]string
	// Descriptions are texts for commands and parameters that the protocol does not describe, or describes only by
	// repeating their name. Keys are "Domain.command", "Domain.command.parameter", or "Domain.*.parameter" for all
	// commands of a domain.
	Descriptions map[string]string
	// Order has the parameters that come first, by the qualified name of the command.
	Order map[string][]string
	// Sources are the calls that return values, by the name of a type or of a kind of value.
	Sources map[string][]SourceRow
}

// describe sets the descriptions of a command and its parameters that are missing.
func (n Notes) describe(domain string, command *node) {
	set := func(m *node, keys ...string) {
		own, binary := splitBinaryMark(m)
		if !repeats(own, m.Name) {
			return
		}
		for _, key := range keys {
			if text, ok := n.Descriptions[key]; ok {
				if m.Description = text; binary {
					m.Description += " " + binaryMark
				}
				return
			}
		}
	}
	name := domain + "." + command.Name
	set(command, name)
	for i := range command.Parameters {
		q := &command.Parameters[i]
		set(q, name+"."+q.Name, domain+".*."+q.Name)
	}
}

// order moves the parameters of a command that callers need most to the front.
func (n Notes) order(domain string, command *node) {
	first := n.Order[domain+"."+command.Name]
	slices.SortStableFunc(command.Parameters, func(a, b node) int {
		at, bt := slices.Index(first, a.Name), slices.Index(first, b.Name)
		return cmp.Compare(uint(at), uint(bt)) // -1, for any other parameter, sorts last
	})
}

// repeats reports whether a description says no more than the name.
func repeats(description, name string) bool {
	letters := func(s string) string { return strings.ToLower(strings.Join(strings.Fields(strings.Trim(s, ". ")), "")) }
	return description == "" || letters(description) == letters(name)
}

// Note is the hand-written documentation of one command.
type Note struct {
	Rights
	Brief       string   // replaces the protocol's first sentence; empty: keep it
	Tasks       []string // phrases that a user of the command would say
	Keywords    []string
	When        string // when to use it; empty: the documentation does not say
	WhenNot     string // when to use another command, which it names; may be empty
	Related     []Related
	Deprecation string // the reason and the alternative, in one sentence
	Use         string // qualified name of the command that replaces a deprecated one
	Examples    []Example
	Needs       string         // calls that come before it, as [ParseCalls] reads them
	Values      []Value        // the parameters whose values other calls return
	Runs        map[string]Run // by the title of the example
}

// RanOn is where the examples of the embedded protocol were run: "Chrome 148.0.7778.167 on https://example.com/".
func (p *Protocol) RanOn() string {
	r, ok := p.find(kindValue, ranOn)
	if !ok {
		return ""
	}
	r.str()
	return r.str()
}

// ranOn is the key of the text that [Protocol.RanOn] returns.
const ranOn = "ran on"

// Encoded returns the flat form, which the generator writes to protocol.bin.
func (p *Protocol) Encoded() string { return p.data }

// Build builds a Protocol from the documents, in their order. The result is deterministic. A domain must not occur in
// two documents.
func Build(revision string, notes Notes, documents ...[]byte) (*Protocol, error) {
	docs, err := decodeAll(documents)
	if err != nil {
		return nil, err
	}
	return &Protocol{data: write(revision, notes, docs)}, nil
}

type entry struct {
	fold   string // sort key
	record []byte
}

func byName(a, b entry) int { return cmp.Compare(a.fold, b.fold) }

func write(revision string, notes Notes, docs []*document) string {
	lists := map[Kind][]entry{}
	for _, doc := range docs {
		for i := range doc.Domains {
			d := &doc.Domains[i]
			for j := range d.Commands {
				notes.describe(d.Domain, &d.Commands[j])
				notes.order(d.Domain, &d.Commands[j])
			}
			for _, k := range kinds {
				for j := range d.members(k) {
					n := &d.members(k)[j]
					name := d.Domain + "." + n.Name
					w := &codec{}
					w.str(&name)
					w.uint(&j)
					w.node(n)
					if k == KindCommand {
						note := notes.Commands[name]
						if note.Effect == "" {
							note.Rights = unreviewed(n.Name)
						}
						w.note(&note)
					}
					lists[k] = append(lists[k], entry{strings.ToLower(name), w.b})
				}
			}
		}
	}
	first := map[string]map[Kind]int{}
	for _, k := range kinds {
		slices.SortFunc(lists[k], byName)
		for i, e := range lists[k] {
			domain, _, _ := strings.Cut(e.fold, ".")
			if first[domain] == nil {
				first[domain] = map[Kind]int{}
			}
			if _, ok := first[domain][k]; !ok {
				first[domain][k] = i
			}
		}
	}
	for f, doc := range docs {
		for i := range doc.Domains {
			r := recordOf(&doc.Domains[i], notes, first[strings.ToLower(doc.Domains[i].Domain)])
			r.file, r.ordinal = f, i
			w := &codec{}
			w.domain(&r)
			lists[kindDomain] = append(lists[kindDomain], entry{strings.ToLower(r.Name), w.b})
		}
	}
	for key, value := range notes.Values {
		w := &codec{}
		w.str(&key)
		w.str(&value)
		lists[kindValue] = append(lists[kindValue], entry{strings.ToLower(key), w.b})
	}
	for name, rows := range notes.Sources {
		w := &codec{}
		w.str(&name)
		w.sources(&rows)
		lists[kindSource] = append(lists[kindSource], entry{strings.ToLower(name), w.b})
	}
	w := &codec{b: make([]byte, headerSize)}
	copy(w.b, magic)
	version := ""
	if len(docs) > 0 {
		version = docs[0].Version.Major + "." + docs[0].Version.Minor
	}
	w.str(&version)
	w.str(&revision)
	for _, k := range indexes {
		at := len(magic) + 8*slices.Index(indexes, k)
		binary.LittleEndian.PutUint32(w.b[at:], uint32(len(lists[k])))
		binary.LittleEndian.PutUint32(w.b[at+4:], uint32(len(w.b)))
		w.b = append(w.b, make([]byte, 4*len(lists[k]))...)
	}
	for _, k := range indexes {
		at := int(binary.LittleEndian.Uint32(w.b[len(magic)+8*slices.Index(indexes, k)+4:]))
		slices.SortFunc(lists[k], byName)
		for i, e := range lists[k] {
			binary.LittleEndian.PutUint32(w.b[at+4*i:], uint32(len(w.b)))
			w.b = append(w.b, e.record...)
		}
	}
	return string(w.b)
}

// recordOf returns the record of a domain. first has the positions of the domain's first members in the indexes.
func recordOf(d *sourceDomain, notes Notes, first map[Kind]int) domainRecord {
	r := domainRecord{Domain: Domain{Name: d.Domain, Brief: notes.Domains[d.Domain], Description: d.Description,
		Experimental: d.Experimental, Deprecated: d.Deprecated, Dependencies: d.Dependencies,
		Enabling: notes.Enables[d.Domain]}}
	for i, k := range kinds {
		r.first[i], r.count[i] = first[k], len(d.members(k))
	}
	return r
}

// codec writes or reads a record. Each of its methods defines once what a record has, and in which order. It reads
// only what it has written, never untrusted bytes.
type codec struct {
	b       []byte // the record written so far
	*reader        // nil: it writes
}

func (c *codec) uint(n *int) {
	if c.reader != nil {
		*n = c.reader.uint()
		return
	}
	c.b = binary.AppendUvarint(c.b, uint64(*n))
}

func (c *codec) str(s *string) { text(c, s) }

func text[S ~string | ~[]byte](c *codec, s *S) {
	if c.reader != nil {
		if read := c.reader.str(); read != "" {
			*s = S(read)
		}
		return
	}
	c.b = append(binary.AppendUvarint(c.b, uint64(len(*s))), *s...)
}

func (c *codec) strs(list *[]string) { each(c, list, c.str) }

func each[T any](c *codec, list *[]T, one func(*T)) {
	n := len(*list)
	c.uint(&n)
	if c.reader != nil && n > 0 {
		*list = make([]T, n)
	}
	for i := range *list {
		one(&(*list)[i])
	}
}

func (c *codec) node(n *node) {
	bits := c.head(n)
	for i, list := range []*[]node{&n.Properties, &n.Parameters, &n.Returns} {
		if bits&(hasProperties<<i) == 0 {
			continue
		}
		each(c, list, func(m *node) {
			c.str(&m.Name)
			c.node(m)
		})
		if *list == nil {
			*list = []node{}
		}
	}
}

// head encodes a node without the properties, parameters and returns.
func (c *codec) head(n *node) (bits int) {
	for i, present := range []bool{n.Description != "", n.Type != "", n.Optional, n.Experimental, n.Deprecated,
		n.Ref != "", n.Items != nil,
		n.Enum != nil, n.Properties != nil, n.Parameters != nil, n.Returns != nil, n.Redirect != ""} {
		if present {
			bits |= 1 << i
		}
	}
	c.uint(&bits)
	n.Optional, n.Experimental, n.Deprecated = bits&isOptional != 0, bits&isExperimental != 0, bits&isDeprecated != 0
	for _, s := range []struct {
		bit  int
		text *string
	}{{hasDescription, &n.Description}, {hasType, &n.Type}, {hasRef, &n.Ref}, {hasRedirect, &n.Redirect}} {
		if bits&s.bit != 0 {
			c.str(s.text)
		}
	}
	if bits&hasEnum != 0 {
		c.strs(&n.Enum)
	}
	if bits&hasItems != 0 {
		if n.Items == nil {
			n.Items = &node{}
		}
		c.node(n.Items)
	}
	return bits
}

// before encodes the part of a note that says what comes before a command, and what the command may do.
func (c *codec) before(n *Note) {
	c.rights(&n.Rights)
	c.str(&n.Needs)
	each(c, &n.Values, func(v *Value) {
		c.str(&v.Pointer)
		required := btoi(v.Required)
		c.uint(&required)
		v.Required = required == 1
		c.strs(&v.Instead)
		c.str(&v.Source)
	})
}

func (c *codec) rights(r *Rights) {
	text(c, &r.Effect)
	text(c, &r.Reach)
	c.strs(&r.URL)
	c.strs(&r.Files)
	c.str(&r.Callers)
}

func (c *codec) note(n *Note) {
	c.before(n)
	c.str(&n.Brief)
	c.strs(&n.Tasks)
	c.strs(&n.Keywords)
	c.str(&n.When)
	c.str(&n.WhenNot)
	each(c, &n.Related, func(r *Related) {
		c.str(&r.Tool)
		c.str(&r.Why)
	})
	c.str(&n.Deprecation)
	c.str(&n.Use)
	each(c, &n.Examples, func(e *Example) {
		e.Kind = "common"
		c.str(&e.Title)
		text(c, &e.Params)
		c.str(&e.Needs)
		c.str(&e.From)
	})
	titles := slices.Sorted(maps.Keys(n.Runs))
	each(c, &titles, func(title *string) {
		c.str(title)
		run := n.Runs[*title]
		c.str(&run.Outcome)
		text(c, &run.Before)
		text(c, &run.Params)
		c.str(&run.Text)
		if n.Runs == nil {
			n.Runs = map[string]Run{}
		}
		n.Runs[*title] = run
	})
}

func (c *codec) sources(rows *[]SourceRow) {
	each(c, rows, func(s *SourceRow) {
		for _, text := range []*string{&s.Tool, &s.Result, &s.Params, &s.Before, &s.Ends, &s.Filter} {
			c.str(text)
		}
	})
}

// domainRecord is a domain with the positions of its members in the indexes.
type domainRecord struct {
	Domain
	file, ordinal int
	first, count  [3]int // by kind
}

func (c *codec) domain(d *domainRecord) {
	c.str(&d.Name)
	c.uint(&d.file)
	c.uint(&d.ordinal)
	bits := btoi(d.Experimental)*isExperimental | btoi(d.Deprecated)*isDeprecated
	c.uint(&bits)
	d.Experimental, d.Deprecated = bits&isExperimental != 0, bits&isDeprecated != 0
	c.str(&d.Brief)
	c.str(&d.Enabling.For)
	c.strs(&d.Enabling.Needs)
	c.strs(&d.Enabling.Keeps)
	c.str(&d.Description)
	c.strs(&d.Dependencies)
	for i := range kinds {
		c.uint(&d.first[i])
		c.uint(&d.count[i])
	}
}

// reader reads numbers and texts at an offset of the flat form.
type reader struct {
	s string
	i int
}

func (r *reader) uint() int {
	n, size := binary.Uvarint([]byte(r.s[r.i:min(r.i+binary.MaxVarintLen32, len(r.s))]))
	r.i += size
	return int(n)
}

func (r *reader) str() string {
	n := r.uint()
	r.i += n
	return r.s[r.i-n : r.i]
}

// read reads what a method of codec writes.
func read[T any](r *reader, one func(*codec, *T)) (v T) {
	one(&codec{reader: r}, &v)
	return v
}

func (r *reader) note() Note { return read(r, (*codec).note) }

func (r *reader) rights() Rights { return read(r, (*codec).rights) }

func (r *reader) domain() domainRecord {
	d := read(r, (*codec).domain)
	d.Commands, d.Events, d.Types = d.count[0], d.count[1], d.count[2]
	if d.Brief == "" {
		d.Brief = briefOf(d.Description, d.Name, BriefSize)
	}
	return d
}

// memberRecord is a command, an event or a type of the protocol.
type memberRecord struct {
	qualified, domain string
	ordinal           int
	node
}

func (r *reader) member() memberRecord {
	m := r.memberName()
	(&codec{reader: r}).node(&m.node)
	return m
}

// memberHead reads a member without its parameters, returns and properties. The reader cannot be used afterwards.
func (r *reader) memberHead() memberRecord {
	m := r.memberName()
	(&codec{reader: r}).head(&m.node)
	return m
}

func (r *reader) memberName() (m memberRecord) {
	m.qualified = r.str()
	m.domain, m.Name, _ = strings.Cut(m.qualified, ".")
	m.ordinal = r.uint()
	return m
}

// index returns the number of members of kind k and the offset of their index.
func (p *Protocol) index(k Kind) (count, offset int) {
	at := len(magic) + 8*slices.Index(indexes, k)
	return p.u32(at), p.u32(at + 4)
}

func (p *Protocol) u32(at int) int {
	return int(binary.LittleEndian.Uint32([]byte(p.data[at : at+4])))
}

// at returns a reader of the i-th record of kind k.
func (p *Protocol) at(k Kind, i int) *reader {
	_, offset := p.index(k)
	return &reader{s: p.data, i: p.u32(offset + 4*i)}
}

// find returns a reader of the record of that name, without regard to case.
func (p *Protocol) find(k Kind, name string) (*reader, bool) {
	count, _ := p.index(k)
	i, ok := sort.Find(count, func(i int) int { return compareFold(name, p.at(k, i).str()) })
	if !ok {
		return nil, false
	}
	return p.at(k, i), true
}

// compareFold compares ASCII strings by their lower-case form. (Names in the flat form are ASCII.)
func compareFold(a, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := lower(a[i]), lower(b[i]); x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
