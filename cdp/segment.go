package cdp

import (
	_ "embed"

	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// The search segment is generated, because building it costs more than a search. A test compares it with what
// buildSegment returns.
//
//go:generate go generate ./internal/protocol
//go:generate go test -run TestSegment -update .
//go:embed segment.bin
var segment []byte

// Segment returns the search index over verbs, commands, events and types.
func (p *catalog) Segment() ([]byte, error) {
	if p.protocol.Protocol != protocol.Embedded() {
		return p.buildSegment(), nil
	}
	return segment, nil
}

func (p *catalog) buildSegment() []byte {
	return host.BuildSegment(host.SearchPluginOf(p.manifest()), p.searchDocs())
}

// searchDocs returns what is indexed of verbs, commands, events and types.
func (p *catalog) searchDocs() (docs []host.SearchDoc) {
	for _, t := range verbs.All() {
		docs = append(docs, host.SearchDocOf(&t))
	}
	for _, name := range p.protocol.Names() {
		c, ok := p.protocol.Command(name)
		if !ok {
			continue
		}
		docs = append(docs, host.SearchDoc{
			Name: c.Name, Group: c.Domain, Category: category(c), Effect: string(c.Effect), Brief: c.Brief,
			Signature:  p.protocol.signature(c),
			Deprecated: c.Deprecated, Experimental: c.Experimental,
			// Not When: measured on testdata/search, its everyday words give common tools hits that belong to others.
			Text: c.Description, Keywords: c.Keywords, Tasks: c.Tasks,
			Params: searchParams(c.Params),
		})
	}
	for _, d := range p.protocol.Domains() {
		for _, m := range p.protocol.Members(d.Name) {
			find := p.protocol.Event
			if m.Kind == protocol.KindType {
				find = p.protocol.Type
			}
			e, ok := find(d.Name + "." + m.Name)
			if m.Kind == protocol.KindCommand || !ok {
				continue
			}
			docs = append(docs, host.SearchDoc{Name: e.Name, Kind: string(e.Kind), Group: d.Name, Brief: e.Brief,
				Text: e.Description, Deprecated: e.Deprecated, Experimental: e.Experimental, Keywords: e.Enum,
				Params: searchParams(e.Fields)})
		}
	}
	return docs
}

func category(c *protocol.Command) string {
	if c.Effect == protocol.Read {
		return "query"
	}
	return "action"
}

func (t translation) signature(c *protocol.Command) string {
	return manifest.Signature(host.LocalName(c.Name), manifest.Params(t.ParamsSchema(c)))
}

func searchParams(params []protocol.Param) []host.SearchParam {
	list := make([]host.SearchParam, 0, len(params))
	for _, q := range params {
		list = append(list, host.SearchParam{Name: q.Name, Text: q.Description, Enum: q.Enum})
	}
	return list
}
