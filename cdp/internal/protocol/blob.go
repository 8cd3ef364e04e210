package protocol

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// The flat form. All numbers are little-endian. A string is its length as uvarint, followed by its bytes.
//
//	header   "parleyCDP4", then for domains, commands, events, types, values, sources: u32 count, u32 offset of the
//	         index; then version, revision
//	index    one u32 per member: the offset of its record; sorted by qualified name in lower case
//	records  the qualified name, which the binary search compares, then what writer.domain, node and note write
//
// The members of a domain are adjacent in an index, so a domain record refers to them by first index and count.
const magic = "parleyCDP4"

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
	// Descriptions are texts for commands and parameters that the protocol does not describe, or only by their name: by
	// "Domain.command", "Domain.command.parameter", or "Domain.*.parameter" for all commands of a domain.
	Descriptions map[string]string
	// Order has the parameters of a command that come first, by its qualified name.
	Order map[string][]string
	// Sources are the calls that return values, by the name of a type or of a kind of value.
	Sources map[string][]SourceRow
}

// describe sets the descriptions that a command and its parameters do not have.
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

// order puts the parameters of a command that callers need most before the others.
func (n Notes) order(domain string, command *node) {
	first := n.Order[domain+"."+command.Name]
	slices.SortStableFunc(command.Parameters, func(a, b node) int {
		at, bt := slices.Index(first, a.Name), slices.Index(first, b.Name)
		return cmp.Compare(uint(at), uint(bt)) // -1, for another parameter, comes last
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

// ranOn is the key of what [Protocol.RanOn] returns.
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

func write(revision string, notes Notes, docs []*document) string {
	lists := map[Kind][]entry{}
	counts := map[string]map[Kind]int{}
	for _, doc := range docs {
		for i := range doc.Domains {
			d := &doc.Domains[i]
			for j := range d.Commands {
				notes.describe(d.Domain, &d.Commands[j])
				notes.order(d.Domain, &d.Commands[j])
			}
			counts[d.Domain] = map[Kind]int{}
			for _, k := range kinds {
				counts[d.Domain][k] = len(d.members(k))
				for j := range d.members(k) {
					n := &d.members(k)[j]
					name := d.Domain + "." + n.Name
					w := &writer{}
					w.str(name)
					w.uint(j)
					w.node(n)
					if k == KindCommand {
						note := notes.Commands[name]
						if note.Effect == "" {
							note.Rights = unreviewed(n.Name)
						}
						w.note(note)
					}
					lists[k] = append(lists[k], entry{strings.ToLower(name), w.b})
				}
			}
		}
	}
	first := map[string]map[Kind]int{}
	for _, k := range kinds {
		slices.SortFunc(lists[k], func(a, b entry) int { return cmp.Compare(a.fold, b.fold) })
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
			d := &doc.Domains[i]
			w := &writer{}
			w.str(d.Domain)
			w.uint(f)
			w.uint(i)
			w.domain(d, notes, first[strings.ToLower(d.Domain)])
			lists[kindDomain] = append(lists[kindDomain], entry{strings.ToLower(d.Domain), w.b})
		}
	}
	for key, value := range notes.Values {
		w := &writer{}
		w.str(key)
		w.str(value)
		lists[kindValue] = append(lists[kindValue], entry{strings.ToLower(key), w.b})
	}
	for name, rows := range notes.Sources {
		w := &writer{}
		w.str(name)
		w.sources(rows)
		lists[kindSource] = append(lists[kindSource], entry{strings.ToLower(name), w.b})
	}
	slices.SortFunc(lists[kindSource], func(a, b entry) int { return cmp.Compare(a.fold, b.fold) })
	slices.SortFunc(lists[kindValue], func(a, b entry) int { return cmp.Compare(a.fold, b.fold) })
	slices.SortFunc(lists[kindDomain], func(a, b entry) int { return cmp.Compare(a.fold, b.fold) })

	w := &writer{b: make([]byte, headerSize)}
	copy(w.b, magic)
	version := ""
	if len(docs) > 0 {
		version = docs[0].Version.Major + "." + docs[0].Version.Minor
	}
	w.str(version)
	w.str(revision)
	for _, k := range indexes {
		at := len(magic) + 8*slices.Index(indexes, k)
		binary.LittleEndian.PutUint32(w.b[at:], uint32(len(lists[k])))
		binary.LittleEndian.PutUint32(w.b[at+4:], uint32(len(w.b)))
		w.b = append(w.b, make([]byte, 4*len(lists[k]))...)
	}
	for _, k := range indexes {
		at := int(binary.LittleEndian.Uint32(w.b[len(magic)+8*slices.Index(indexes, k)+4:]))
		for i, e := range lists[k] {
			binary.LittleEndian.PutUint32(w.b[at+4*i:], uint32(len(w.b)))
			w.b = append(w.b, e.record...)
		}
	}
	return string(w.b)
}

type writer struct{ b []byte }

func (w *writer) uint(n int) { w.b = binary.AppendUvarint(w.b, uint64(n)) }

func (w *writer) str(s string) {
	w.uint(len(s))
	w.b = append(w.b, s...)
}

func (w *writer) strs(list []string) {
	w.uint(len(list))
	for _, s := range list {
		w.str(s)
	}
}

func (w *writer) node(n *node) {
	bits := 0
	for i, present := range []bool{n.Description != "", n.Type != "", n.Optional, n.Experimental, n.Deprecated,
		n.Ref != "", n.Items != nil,
		n.Enum != nil, n.Properties != nil, n.Parameters != nil, n.Returns != nil, n.Redirect != ""} {
		if present {
			bits |= 1 << i
		}
	}
	w.uint(bits)
	for _, s := range []string{n.Description, n.Type, n.Ref, n.Redirect} {
		if s != "" {
			w.str(s)
		}
	}
	if n.Enum != nil {
		w.strs(n.Enum)
	}
	if n.Items != nil {
		w.node(n.Items)
	}
	for _, list := range [][]node{n.Properties, n.Parameters, n.Returns} {
		if list == nil {
			continue
		}
		w.uint(len(list))
		for i := range list {
			w.str(list[i].Name)
			w.node(&list[i])
		}
	}
}

func (w *writer) note(n Note) {
	w.str(string(n.Effect))
	w.str(string(n.Reach))
	w.strs(n.URL)
	w.strs(n.Files)
	w.str(n.Callers)
	w.flow(n.Needs, n.Values)
	w.str(n.Brief)
	w.strs(n.Tasks)
	w.strs(n.Keywords)
	w.str(n.When)
	w.str(n.WhenNot)
	w.uint(len(n.Related))
	for _, r := range n.Related {
		w.str(r.Tool)
		w.str(r.Why)
	}
	w.str(n.Deprecation)
	w.str(n.Use)
	w.uint(len(n.Examples))
	for _, e := range n.Examples {
		for _, text := range []string{e.Title, string(e.Params), e.Needs, e.From} {
			w.str(text)
		}
	}
	titles := slices.Sorted(maps.Keys(n.Runs))
	w.uint(len(titles))
	for _, title := range titles {
		run := n.Runs[title]
		for _, text := range []string{title, run.Outcome, string(run.Before), string(run.Params), run.Text} {
			w.str(text)
		}
	}
}

func (w *writer) domain(d *sourceDomain, notes Notes, first map[Kind]int) {
	bits := 0
	if d.Experimental {
		bits |= isExperimental
	}
	if d.Deprecated {
		bits |= isDeprecated
	}
	w.uint(bits)
	w.str(notes.Domains[d.Domain])
	enabling := notes.Enables[d.Domain]
	w.str(enabling.For)
	w.strs(enabling.Needs)
	w.strs(enabling.Keeps)
	w.str(d.Description)
	w.strs(d.Dependencies)
	for _, k := range kinds {
		w.uint(first[k])
		w.uint(len(d.members(k)))
	}
	c := countDomain(d, notes.Commands)
	for _, n := range c.numbers() {
		w.uint(*n)
	}
}

// reader reads one record. It expects the output of write, never untrusted bytes.
type reader struct {
	s string
	i int
}

func (r *reader) uint() int {
	n, shift := 0, 0
	for {
		c := r.s[r.i]
		r.i++
		n |= int(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
		shift += 7
	}
}

func (r *reader) str() string {
	n := r.uint()
	r.i += n
	return r.s[r.i-n : r.i]
}

func (r *reader) strs() []string {
	n := r.uint()
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.str()
	}
	return list
}

func (r *reader) node(name string) node {
	n, bits := r.head(name)
	if bits&hasProperties != 0 {
		n.Properties = r.nodes()
	}
	if bits&hasParameters != 0 {
		n.Parameters = r.nodes()
	}
	if bits&hasReturns != 0 {
		n.Returns = r.nodes()
	}
	return n
}

// head reads a node without its properties, parameters and returns.
func (r *reader) head(name string) (node, int) {
	bits := r.uint()
	n := node{Name: name, Optional: bits&isOptional != 0, Experimental: bits&isExperimental != 0,
		Deprecated: bits&isDeprecated != 0}
	if bits&hasDescription != 0 {
		n.Description = r.str()
	}
	if bits&hasType != 0 {
		n.Type = r.str()
	}
	if bits&hasRef != 0 {
		n.Ref = r.str()
	}
	if bits&hasRedirect != 0 {
		n.Redirect = r.str()
	}
	if bits&hasEnum != 0 {
		n.Enum = r.strs()
	}
	if bits&hasItems != 0 {
		items := r.node("")
		n.Items = &items
	}
	return n, bits
}

func (r *reader) nodes() []node {
	list := make([]node, r.uint())
	for i := range list {
		name := r.str()
		list[i] = r.node(name)
	}
	return list
}

func (r *reader) rights() Rights {
	return Rights{Effect: Effect(r.str()), Reach: Reach(r.str()), URL: r.strs(), Files: r.strs(), Callers: r.str()}
}

func (r *reader) related() []Related {
	count := r.uint()
	if count == 0 {
		return nil
	}
	list := make([]Related, count)
	for i := range list {
		list[i] = Related{Tool: r.str(), Why: r.str()}
	}
	return list
}

func (r *reader) note() Note {
	rights, needs, values := r.rights(), r.str(), r.values()
	n := Note{Rights: rights, Needs: needs, Values: values, Brief: r.str(), Tasks: r.strs(), Keywords: r.strs(),
		When: r.str(), WhenNot: r.str(), Related: r.related(), Deprecation: r.str(), Use: r.str()}
	if count := r.uint(); count > 0 {
		n.Examples = make([]Example, count)
		for i := range n.Examples {
			n.Examples[i] = Example{Title: r.str(), Kind: "common", Params: []byte(r.str()), Needs: r.str(), From: r.str()}
		}
	}
	if count := r.uint(); count > 0 {
		n.Runs = make(map[string]Run, count)
		for range count {
			title := r.str()
			run := Run{Outcome: r.str()}
			if before := r.str(); before != "" {
				run.Before = []byte(before)
			}
			run.Params, run.Text = []byte(r.str()), r.str()
			n.Runs[title] = run
		}
	}
	return n
}

// domainRecord is a domain with the positions of its members in the indexes.
type domainRecord struct {
	Domain
	file, ordinal int
	first, count  [3]int // by kind
	coverage      Coverage
}

func (r *reader) domain() domainRecord {
	d := domainRecord{}
	d.Name = r.str()
	d.file = r.uint()
	d.ordinal = r.uint()
	bits := r.uint()
	d.Experimental, d.Deprecated = bits&isExperimental != 0, bits&isDeprecated != 0
	d.Brief = r.str()
	d.Enabling = Enabling{For: r.str(), Needs: r.strs(), Keeps: r.strs()}
	d.Description = r.str()
	d.Dependencies = r.strs()
	for i := range kinds {
		d.first[i] = r.uint()
		d.count[i] = r.uint()
	}
	d.Commands, d.Events, d.Types = d.count[0], d.count[1], d.count[2]
	for _, n := range d.coverage.numbers() {
		*n = r.uint()
	}
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
	m, name := r.memberName()
	m.node = r.node(name)
	return m
}

// memberHead reads a member without its parameters, returns and properties. The reader cannot be used afterwards.
func (r *reader) memberHead() memberRecord {
	m, name := r.memberName()
	m.node, _ = r.head(name)
	return m
}

func (r *reader) memberName() (m memberRecord, name string) {
	m.qualified = r.str()
	m.domain, name, _ = strings.Cut(m.qualified, ".")
	m.ordinal = r.uint()
	return m, name
}

// index returns the number of members of kind k and the offset of their index.
func (p *Protocol) index(k Kind) (count, offset int) {
	at := len(magic)
	for _, other := range indexes {
		if other == k {
			break
		}
		at += 8
	}
	return p.u32(at), p.u32(at + 4)
}

func (p *Protocol) u32(at int) int {
	s := p.data[at : at+4]
	return int(s[0]) | int(s[1])<<8 | int(s[2])<<16 | int(s[3])<<24
}

// at returns a reader of the i-th record of kind k.
func (p *Protocol) at(k Kind, i int) *reader {
	_, offset := p.index(k)
	return &reader{s: p.data, i: p.u32(offset + 4*i)}
}

// find returns a reader of the record of that name, without regard to case.
func (p *Protocol) find(k Kind, name string) (*reader, bool) {
	count, offset := p.index(k)
	low, high := 0, count
	for low < high {
		mid := int(uint(low+high) >> 1)
		r := reader{s: p.data, i: p.u32(offset + 4*mid)}
		switch c := compareFold(r.str(), name); {
		case c == 0:
			return &reader{s: p.data, i: p.u32(offset + 4*mid)}, true
		case c < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return nil, false
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
