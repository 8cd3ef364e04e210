package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/manifest"
)

const (
	docsURI   = "parley://docs/"
	resultURI = "parley://result/"
	jsonType  = "application/json"
)

// addResourceTemplates lists the forms of the URIs that read accepts.
func (m *modeServer) addResourceTemplates() {
	for _, t := range []sdk.ResourceTemplate{
		{URITemplate: docsURI + "{plugin}/{tool}{?tier}", Name: "docs",
			Description: "A tool's documentation at tier 1, 2 or 3; a group's tools"},
		{URITemplate: resultURI + "{call_id}", Name: "result", Description: "The whole of a result that was cut"},
	} {
		t.MIMEType = jsonType
		m.server.AddResourceTemplate(&t, m.read)
	}
}

// addResource lists the document of a plugin.
func (l *listing) addResource(plugin host.Info) {
	uri := docsURI + plugin.Name
	l.digests[uri] = plugin.Digest
	l.resources[uri] = &sdk.Resource{
		URI: uri, Name: plugin.Name, Description: manifest.CleanLine(plugin.Brief), MIMEType: jsonType,
	}
}

// subscribe lets a client wait for changes of a listed document. The document of a plugin changes when the plugin is
// replaced. The other documents are too many to watch.
func (m *modeServer) subscribe(_ context.Context, r *sdk.SubscribeRequest) error {
	if m.lists.Load().resources[r.Params.URI] == nil {
		return notFound(r.Params.URI)
	}
	return nil
}

// notFound returns the error of a document that does not exist.
func notFound(uri string) error { return sdk.ResourceNotFoundError(manifest.Clip(uri, 400)) }

func (m *modeServer) read(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := r.Params.URI
	c := callerOf(m.of, r)
	var raw json.RawMessage
	var err error
	if id, ok := strings.CutPrefix(uri, resultURI); ok {
		raw, err = m.of.cfg.Sessions.Result(c.Session, id)
	} else if path, ok := strings.CutPrefix(uri, docsURI); ok {
		raw, err = m.docsDocument(ctx, c, path)
	} else {
		return nil, notFound(uri)
	}
	if err != nil {
		return nil, m.out.readError(uri, host.AsError(err))
	}
	return &sdk.ReadResourceResult{
		Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: jsonType, Text: string(raw)}},
	}, nil
}

// readError makes the error of a resource that cannot be read. Its data is the error object.
func (w *renderer) readError(uri string, e *host.Error) error {
	return invalidParams("Resource not found: "+manifest.CleanLine(e.Message), struct {
		URI string `json:"uri"`
		failure
	}{uri, w.failure(&host.Answer{Err: e})})
}

// docsDocument returns the document of a path below parley://docs/: PLUGIN, PLUGIN/GROUP or PLUGIN/TOOL?tier=N.
func (m *modeServer) docsDocument(ctx context.Context, c caller.Principal, path string) (json.RawMessage, error) {
	path, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s is not a query; expected ?tier=1, 2 or 3", manifest.CleanLine(query))
	}
	plugin, local, _ := strings.Cut(path, "/")
	if local, err = url.PathUnescape(local); err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s is not a valid path", manifest.CleanLine(path))
	}
	at, err := m.host.Catalog().FindIn(plugin, local)
	if err != nil {
		return nil, err
	}
	if at.Tool == nil && at.Entry == nil {
		return overview(at)
	}
	tier := manifest.Tier2
	if asked := values.Get("tier"); asked != "" {
		if tier, err = strconv.Atoi(asked); err != nil {
			return nil, host.Errorf(host.InvalidArgs, "tier=%s; expected 1, 2 or 3", manifest.CleanLine(asked))
		}
	}
	ctx = host.WithDocsSize(ctx, func(d *host.Docs, _ bool) int { return len(marshalEscaped(m.out.described(d))) })
	docs, err := m.host.Describe(ctx, c, at.Name(), tier)
	if err != nil {
		return nil, err
	}
	return marshalEscaped(m.out.described(docs)), nil
}

// overview returns the groups and tools of a plugin or a group, each with one line.
func overview(at host.Address) (json.RawMessage, error) {
	data := struct {
		Plugin string           `json:"plugin"`
		Group  string           `json:"group,omitempty"`
		Groups []host.GroupLine `json:"groups,omitempty"`
		Tools  []host.Line      `json:"tools"`
	}{Plugin: at.Plugin, Group: at.Group, Tools: []host.Line{}}
	lines, err := at.Provider.Lines(at.Group)
	if err == nil && at.Group == "" {
		data.Groups, err = at.Provider.Groups()
	}
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		l.Name = at.Plugin + "." + l.Name
		data.Tools = append(data.Tools, l)
	}
	return marshalEscaped(data), nil
}

func marshalEscaped(v any) json.RawMessage {
	raw, _ := manifest.Marshal(v)
	return manifest.EscapeJSON(raw)
}
