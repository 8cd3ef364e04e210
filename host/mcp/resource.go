package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

const (
	docsURI   = "parley://docs/"
	resultURI = "parley://result/"

	docsTemplate   = docsURI + "{plugin}/{tool}{?tier}"
	resultTemplate = resultURI + "{call_id}"
	jsonType       = "application/json"
)

// addResources lists one document a plugin, and the forms of all others. What is read is answered by read.
func (m *modeServer) addResources() {
	for _, p := range m.cfg.Host.Catalog().Providers() {
		info := p.Info()
		m.addResource(&sdk.Resource{
			URI: docsURI + info.Name, Name: info.Name, Description: manifest.CleanLine(info.Brief), MIMEType: jsonType,
		}, m.read)
	}
	m.server.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: docsTemplate, Name: "docs", Description: "A tool's documentation at tier 1, 2 or 3; a group's tools", MIMEType: jsonType,
	}, m.read)
	m.server.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: resultTemplate, Name: "result", Description: "The whole of a result that was cut", MIMEType: jsonType,
	}, m.read)
}

func (m *modeServer) addResource(r *sdk.Resource, read sdk.ResourceHandler) {
	m.resources[r.URI] = true
	m.server.AddResource(r, read)
}

// subscribe lets a client wait for changes of what is listed, of which there are none while the server runs. Other documents are too many
// to be kept watch over.
func (m *modeServer) subscribe(_ context.Context, r *sdk.SubscribeRequest) error {
	if !m.resources[r.Params.URI] {
		return sdk.ResourceNotFoundError(r.Params.URI)
	}
	return nil
}

func (m *modeServer) read(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := r.Params.URI
	c := callerOf(m.Server, r)
	var raw json.RawMessage
	var err error
	if id, ok := strings.CutPrefix(uri, resultURI); ok {
		raw, err = m.cfg.Sessions.Result(c.session, id)
		raw = manifest.EscapeJSON(raw)
	} else if path, ok := strings.CutPrefix(uri, docsURI); ok {
		raw, err = m.docsDocument(ctx, c, path)
	} else {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, m.readError(uri, host.AsError(err))
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: jsonType, Text: string(raw)}}}, nil
}

// readError is the error of a resource that cannot be read, with the error object as its data.
func (m *modeServer) readError(uri string, e *host.Error) error {
	object := struct {
		URI string `json:"uri"`
		failure
	}{uri, m.failure(&host.Answer{Err: e})}
	data, _ := manifest.Marshal(object)
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Resource not found: " + manifest.CleanLine(e.Message), Data: manifest.EscapeJSON(data)}
}

// docsDocument is what stands under parley://docs/: PLUGIN, PLUGIN/GROUP or PLUGIN/TOOL?tier=N.
func (m *modeServer) docsDocument(ctx context.Context, c caller, path string) (json.RawMessage, error) {
	path, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s is no query; expected ?tier=1, 2 or 3", manifest.CleanLine(query))
	}
	plugin, local, _ := strings.Cut(path, "/")
	if local, err = url.PathUnescape(local); err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s cannot be read as a path", manifest.CleanLine(path))
	}
	at, err := m.cfg.Host.Catalog().FindIn(plugin, local)
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
	docs, err := m.cfg.Host.Describe(ctx, c.name, c.session, at.Name(), tier)
	if err != nil {
		return nil, err
	}
	return marshalEscaped(describedTool{docs.ToolDocs, m.renderSteps(docs.Next)})
}

// overview is what a plugin or a group holds, one line each.
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
	return marshalEscaped(data)
}

func marshalEscaped(v any) (json.RawMessage, error) {
	raw, err := manifest.Marshal(v)
	return manifest.EscapeJSON(raw), err
}
