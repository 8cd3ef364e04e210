package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/mcp/envelope"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// The names of the meta-tools that other code names.
const (
	callTool    = envelope.CallTool
	planCall    = "plan_call" // mode minimal does not list it
	searchTools = envelope.SearchTools
	codeTool    = envelope.CodeTool // runs a program; runCode calls it
	runCode     = "run_code"
)

// metaTool is a tool that searches, describes or calls others.
type metaTool struct {
	name, description, schema string
	readOnly                  bool
	run                       metaHandler
}

// metaHandler runs a meta-tool with valid arguments.
type metaHandler func(*modeServer, context.Context, *sdk.CallToolRequest, json.RawMessage) (*sdk.CallToolResult, error)

// taking makes a handler of a method that takes decoded arguments.
func taking[P any](run func(*modeServer, context.Context, *sdk.CallToolRequest, P) (*sdk.CallToolResult, error),
) metaHandler {
	return func(m *modeServer, ctx context.Context, r *sdk.CallToolRequest, raw json.RawMessage) (
		*sdk.CallToolResult, error) {
		var p P
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, err
		}
		return run(m, ctx, r, p)
	}
}

func metaTools() []metaTool {
	return []metaTool{
		{callTool, "Run a tool", `{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"},` +
			`"options":{"type":"object","description":"timeout, max_bytes, browser, context, target, dry_run, jq, wait"}},` +
			`"required":["name"],"additionalProperties":false}`, false, taking((*modeServer).callTool)},
		{envelope.DescribeTool, "Describe a tool, list a group", `{"type":"object","properties":{` +
			`"name":{"type":"string","x-aliases":["tool","tool_name","function"]},` +
			`"tier":{"type":"integer","minimum":1,"maximum":3,"default":2},` +
			`"format":{"type":"string","enum":["text","json"],"default":"text"},` +
			`"max_tokens":{"type":"integer","minimum":1},"again":{"type":"boolean"}},` +
			`"required":["name"],"additionalProperties":false}`, true, taking((*modeServer).describeTool)},
		{planCall, "List the calls that come before a call",
			`{"type":"object","properties":{"name":{"type":"string","x-aliases":["tool","tool_name"]},` +
				`"arguments":{"type":"object","x-aliases":["params"]},` +
				`"options":{"type":"object","description":"browser, target"}},` +
				`"required":["name"],"additionalProperties":false}`, true, taking((*modeServer).planCall)},
		{searchTools, "Find tools for a task", `{"type":"object","properties":{"query":{"type":"string",` +
			`"x-aliases":["q","text","search","keywords","task"]},` +
			`"limit":{"type":"integer","minimum":1,"maximum":100,"default":5},` +
			`"detail":{"type":"string","enum":["names","signatures","full"],"default":"names"},` +
			`"max_tokens":{"type":"integer","minimum":1}},` +
			`"required":["query"],"additionalProperties":false}`, true, taking((*modeServer).searchTools)},
	}
}

// listedSchema returns a meta-tool's schema without what a model need not read. An answer to which the argument
// "again" applies names it, and programs know format and detail from the documents.
func (t metaTool) listedSchema() json.RawMessage {
	unlisted := []string{"additionalProperties", "again", "default", "detail", "format", "max_tokens", "maximum",
		"maxItems", "minimum", "minItems", "minLength", "x-aliases"}
	return jsontext.Prune([]byte(t.schema), func(pointer string, _ []byte) bool {
		return slices.Contains(unlisted, path.Base(pointer))
	})
}

// setMetaTools makes the meta-tools of the mode, and the reader of calls that knows them. Their schemas do not
// describe the arguments for the called tool, because the tool explains better what is wrong with them.
func (m *modeServer) setMetaTools() error {
	m.metas = metaTools()
	if m.mode == Code {
		m.metas = append(codeTools(), slices.DeleteFunc(m.metas, func(t metaTool) bool { return t.name == searchTools })...)
	}
	m.names = envelope.Reader{Host: m.host, Metas: map[string]*schema.Schema{}}
	for _, tool := range m.metas {
		compiled, err := schema.CompileTrusted(jsontext.Prune([]byte(tool.schema), func(pointer string, _ []byte) bool {
			return pointer == "/properties/arguments/type"
		}))
		if err != nil {
			return err
		}
		m.names.Metas[tool.name] = compiled
	}
	return nil
}

// addMetaTools passes the meta-tools to the SDK.
func (m *modeServer) addMetaTools() {
	for _, tool := range m.metas {
		t := &sdk.Tool{Name: tool.name, Description: tool.description, InputSchema: tool.listedSchema()}
		if tool.readOnly {
			t.Annotations = &sdk.ToolAnnotations{ReadOnlyHint: true}
		}
		m.server.AddTool(t, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			result, warnings, err := m.runMeta(ctx, tool, r)
			if _, isWire := errors.AsType[*jsonrpc.Error](err); err != nil && !isWire {
				result, err = m.out.failure(&host.Answer{Err: host.AsError(err)}).result(), nil
			}
			return withWarnings(result, warnings), err
		})
	}
}

// runMeta runs a meta-tool, or a call by the tool's own name.
func (m *modeServer) runMeta(ctx context.Context, tool metaTool, r *sdk.CallToolRequest) (
	result *sdk.CallToolResult, warnings []string, err error) {
	if c, ok := ctx.Value(calledByNameKey{}).(host.Call); ok {
		result, err = m.run(ctx, r, c, job.Options{})
		return result, nil, err
	}
	params, warnings, invalid := advice.CheckValues(tool.name, m.names.Metas[tool.name], r.Params.Arguments)
	if invalid != nil {
		return m.taughtResult(r, &host.Answer{Tool: tool.name, Err: invalid}), nil, nil
	}
	result, err = tool.run(m, ctx, r, params)
	return result, warnings, err
}

// listsMeta reports whether tools/list has a meta-tool. Clients can call all of them.
func (m *modeServer) listsMeta(name string) bool {
	switch m.mode {
	case Code:
		return name == runCode || name == searchTools
	case Minimal:
		return name != planCall
	}
	return true
}

// checkPinned returns config_error unless each pinned tool is one of the catalog.
func (s *Server) checkPinned() error {
	for _, name := range s.cfg.Pinned {
		a, err := s.cfg.Host.Catalog().Find(name)
		if err != nil {
			e := *host.AsError(err)
			e.Code, e.Message = host.ConfigError, "pinned_tools: "+e.Message
			return &e
		}
		if a.Tool == nil {
			return host.Errorf(host.ConfigError, "pinned_tools: %s is not a tool; name one of its tools", a.Name()).
				WithSteps(a.ListStep())
		}
	}
	return nil
}

// pinnedTools returns the tools of those names, sorted, each once. It leaves out those that the catalog no longer has.
func pinnedTools(catalog *host.Catalog, names []string) []host.Address {
	var found []host.Address
	for _, name := range names {
		if a, err := catalog.Find(name); err == nil && a.Tool != nil {
			found = append(found, a)
		}
	}
	slices.SortFunc(found, func(a, b host.Address) int { return cmp.Compare(a.Name(), b.Name()) })
	return slices.CompactFunc(found, func(a, b host.Address) bool { return a.Name() == b.Name() })
}

// addPinned lists tools by their signatures.
func (l *listing) addPinned(pinned []host.Address) {
	pins := make([]*pin, len(pinned))
	for i, a := range pinned {
		s := signatureSchema(a.Tool)
		raw, _ := manifest.Marshal(s)
		pins[i] = &pin{a, &sdk.Tool{
			Description: manifest.CleanLine(a.Tool.Docs.Brief), InputSchema: json.RawMessage(raw),
			Annotations: annotations(a.Tool),
		}, s.Required}
		if others := advice.OtherParams(a.Tool, s.Properties, false); others != "" {
			pins[i].tool.Description += "; also " + others
		}
	}
	shortenPins(pins, pinnedBytes*max(len(pins), manyPins))
	for _, p := range pins {
		l.addTool(p.address, p.tool)
	}
}

// Up to manyPins tools and the meta-tools stay within 1,200 tokens: the average signature may have pinnedBytes bytes.
const (
	manyPins    = 22
	pinnedBytes = 122
	maxProperty = 200 // bytes; a larger property has its description, and less of its parts
)

// pin is a pinned tool as it is listed.
type pin struct {
	address  host.Address
	tool     *sdk.Tool
	required []string // required parameters
}

// bytes estimates the size of the tool in tools/list.
func (p *pin) bytes() int {
	annotations, _ := manifest.Marshal(p.tool.Annotations)
	return len(p.address.Name()) + len(p.tool.Description) + len(p.tool.InputSchema.(json.RawMessage)) + len(annotations)
}

// shortenPins shortens what is listed of tools, the longest first, until all fit into limit bytes: first without the
// parameters that are not in the signature, then without the signature, but with the names of required parameters, and
// at last without these: a call without a required parameter fails with an error that names it.
func shortenPins(pins []*pin, limit int) {
	total := 0
	for _, p := range pins {
		total += p.bytes()
	}
	for _, left := range []string{"signature", "names", ""} {
		longest := slices.Clone(pins)
		slices.SortStableFunc(longest, func(a, b *pin) int { return cmp.Compare(b.bytes(), a.bytes()) })
		for _, p := range longest {
			if total <= limit {
				return
			}
			total -= p.bytes()
			p.tool.Description = manifest.CleanLine(p.address.Tool.Docs.Brief)
			if left != "signature" {
				p.tool.InputSchema = json.RawMessage(`{"type":"object"}`)
			}
			if left == "names" && len(p.required) > 0 {
				p.tool.Description += " (needs " + strings.Join(p.required, ", ") + ")"
			}
			total += p.bytes()
		}
	}
}

// addAll lists every tool of a catalog.
func (l *listing) addAll(catalog *host.Catalog) error {
	var faults []error
	for _, p := range catalog.Providers() {
		if lines := preparedTools(p); lines != nil {
			l.addPrepared(lines)
		} else {
			faults = append(faults, l.addTools(catalog, p))
		}
	}
	return errors.Join(faults...)
}

// addTools lists the tools of a provider.
func (l *listing) addTools(catalog *host.Catalog, p host.Provider) error {
	names, err := p.Names()
	for _, name := range names {
		if a, err := catalog.FindIn(p.Info().Name, name); err == nil && a.Tool != nil {
			l.addTool(a, fullTool(a))
		}
	}
	return err
}

func (l *listing) addTool(a host.Address, t *sdk.Tool) {
	t.Name = envelope.ListedName(a.Name())
	l.tools = append(l.tools, listedTool{t.Name, toolJSON(t)})
}

func (l *listing) addPrepared(lines []byte) {
	l.tools = slices.Grow(l.tools, bytes.Count(lines, []byte{'\n'}))
	for line := range bytes.Lines(lines) {
		name, json, _ := bytes.Cut(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\t'})
		l.tools = append(l.tools, listedTool{name: string(name), json: json})
	}
}

// toolJSON returns a tool without the hints that equal their defaults, which the SDK writes for every tool.
func toolJSON(t *sdk.Tool) []byte {
	raw, _ := json.Marshal(t)
	return jsontext.Prune(raw, func(pointer string, value []byte) bool {
		return string(value) == "false" &&
			(pointer == "/annotations/idempotentHint" || pointer == "/annotations/readOnlyHint")
	})
}

// listTools returns a page of the tools that the SDK knows and those of the catalog, sorted by name.
func (m *modeServer) listTools(
	ctx context.Context, r *sdk.ListToolsRequest, next sdk.MethodHandler,
) (sdk.Result, error) {
	cursor := ""
	if r.Params != nil {
		cursor, r.Params.Cursor = r.Params.Cursor, ""
	}
	result, err := next(ctx, "tools/list", r)
	native, ok := result.(*sdk.ListToolsResult)
	if err != nil || !ok {
		return result, err
	}
	all := slices.Clone(m.toolsFor(r))
	for _, t := range native.Tools {
		if m.names.Metas[t.Name] != nil && !m.listsMeta(t.Name) {
			continue
		}
		own := listedTool{name: t.Name, json: toolJSON(t)}
		at, _ := slices.BinarySearchFunc(all, own, compareTools)
		all = slices.Insert(all, at, own)
	}
	from := 0
	if cursor != "" {
		after, err := base64.RawURLEncoding.DecodeString(cursor)
		at, found := slices.BinarySearchFunc(all, listedTool{name: string(after)}, compareTools)
		if err != nil || !found {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown cursor; list the first page again"}
		}
		from = at + 1
	}
	page := all[from:]
	if len(page) > pageSize {
		page = page[:pageSize]
		native.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(page[pageSize-1].name))
	}
	native.Tools = []*sdk.Tool{}
	return &toolList{native, page}, nil
}

// toolsFor returns the tools of the catalog that the client of a request is shown. In progressive mode without a
// configuration, the tools that it uses often come first.
func (m *modeServer) toolsFor(r *sdk.ListToolsRequest) []listedTool {
	if m.mode != Progressive || len(m.of.cfg.Pinned) > 0 || m.of.cfg.Used == nil {
		return m.lists.Load().tools
	}
	often := m.of.connections.usedBy(callerOf(m.of, r), m.of.cfg.Used)
	often = often[:min(len(often), manyPins-len(defaultPinned))]
	var l listing
	l.addPinned(pinnedTools(m.host.Catalog(), slices.Concat(often, defaultPinned)))
	slices.SortFunc(l.tools, compareTools)
	return l.tools
}

func compareTools(a, b listedTool) int { return strings.Compare(a.name, b.name) }

// toolList is a result of tools/list whose tools are JSON already.
type toolList struct {
	*sdk.ListToolsResult
	tools []listedTool
}

// MarshalJSON writes the tools where the result has an empty list.
func (l *toolList) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(l.ListToolsResult)
	if err != nil {
		return nil, err
	}
	const list = `"tools":[`
	at := bytes.Index(raw, []byte(list+"]"))
	if at < 0 {
		return nil, errors.New("mcp: a list of tools without tools")
	}
	at += len(list)
	size := len(raw)
	for _, t := range l.tools {
		size += len(t.json) + 1
	}
	out := append(make([]byte, 0, size), raw[:at]...)
	for i, t := range l.tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, t.json...)
	}
	return append(out, raw[at:]...), nil
}

// objectSchema is the schema of a tool's required parameters.
type objectSchema struct {
	Type       string                     `json:"type"`
	Properties map[string]json.RawMessage `json:"properties,omitempty"`
	Required   []string                   `json:"required,omitempty"`
}

// signatureSchema returns the first tier of a tool's documentation as a schema: the required parameters and their
// types. It allows further parameters. It also has the parameters of the minimal example, because no parameter is
// required if one of several is needed.
func signatureSchema(t *manifest.Tool) objectSchema {
	var whole objectSchema
	_ = json.Unmarshal(manifest.Portable(t.Params), &whole)
	var example map[string]json.RawMessage
	if i := slices.IndexFunc(t.Examples, func(e manifest.Example) bool { return e.Kind == "minimal" }); i >= 0 {
		_ = json.Unmarshal(t.Examples[i].Params, &example)
	}
	s := objectSchema{Type: "object", Properties: map[string]json.RawMessage{}, Required: whole.Required}
	for name, property := range whole.Properties {
		if _, ok := example[name]; !ok && !slices.Contains(whole.Required, name) {
			continue
		}
		s.Properties[name] = jsontext.Prune(property, func(pointer string, _ []byte) bool {
			return !slices.ContainsFunc(signatureKeywords, func(k string) bool { return strings.HasPrefix(pointer, k) })
		})
		if len(s.Properties[name]) > maxProperty {
			s.Properties[name] = jsontext.Prune(property, isDetail)
		}
	}
	return s
}

var signatureKeywords = []string{"/type", "/enum", "/items", "/anyOf", "/properties", "/required"}

// isDetail reports whether the signature of a large property leaves a part out. It leaves out all descriptions except
// the property's own, and the types after the first two of lists within a list.
func isDetail(pointer string, _ []byte) bool {
	tokens := strings.Split(pointer, "/")
	last, within := tokens[len(tokens)-1], tokens[len(tokens)-2]
	isDeep := strings.Count(pointer, "/items") > 1
	switch {
	case within == "properties", last == "properties", last == "required":
		return isDeep
	case within == "anyOf":
		return isDeep && last > "1"
	case within == "enum" || within == "required" || pointer == "/description":
		return false
	}
	return !slices.Contains(signatureKeywords, "/"+last)
}

// fullTool returns a tool with all that MCP can say about it.
func fullTool(a host.Address) *sdk.Tool {
	t := a.Tool
	description := manifest.CleanLine(t.Docs.Brief)
	for _, more := range []string{
		manifest.Clean(t.Docs.Standard), prefixed("Use it when ", t.When), prefixed("Not when ", t.WhenNot),
	} {
		switch {
		case strings.HasPrefix(more, description): // do not repeat it
			description = more
		case more != "":
			description += "\n" + more
		}
	}
	hints := annotations(t)
	hints.IdempotentHint, hints.OpenWorldHint = t.Idempotent, &t.OpenWorld
	return &sdk.Tool{
		Description: description, InputSchema: manifest.Portable(t.Params), OutputSchema: outputSchema(a), Annotations: hints,
	}
}

// annotations returns the hints that correspond to a tool's effect.
func annotations(t *manifest.Tool) *sdk.ToolAnnotations {
	if t.Effect == manifest.EffectRead {
		return &sdk.ToolAnnotations{ReadOnlyHint: true}
	}
	destroys := t.Effect != manifest.EffectWrite
	return &sdk.ToolAnnotations{DestructiveHint: &destroys}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + manifest.CleanLine(text)
}

// outputSchema returns the schema of a tool's results if they are objects without binary content, or else nil. A
// result that is too large is cut to the form that the second branch describes. The results of Chrome may be newer
// than the protocol's description, the schemas of kind extism may not have passed the gate, and an API may answer with
// something else than its document says. Clients refuse what does not match, so none of them has a schema here.
func outputSchema(a host.Address) any {
	without := []string{manifest.KindBuiltin, manifest.KindExtism, manifest.KindHTTP}
	if slices.Contains(without, a.Provider.Info().Kind) || !describesObject(a.Tool.Returns) {
		return nil
	}
	value, _ := jsontext.Decode(a.Tool.Returns, jsontext.Limits{})
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	root := map[string]any{"type": "object"}
	for _, key := range []string{"$schema", "$defs", "definitions"} { // references to them begin at the root
		if v, has := object[key]; has {
			root[key] = v
			delete(object, key)
		}
	}
	part := map[string]any{
		"type": "object", "required": []any{"truncated"},
		"properties": map[string]any{"truncated": map[string]any{"const": true}},
	}
	root["anyOf"] = []any{object, part}
	return manifest.CleanJSON(jsontext.Marshal(root))
}

// describesObject reports whether a schema describes objects without binary content and can be moved below another
// root: none of its references depends on where it stands.
func describesObject(returns json.RawMessage) bool {
	kind, _ := manifest.TypeAt(returns)
	return kind == "object" && !isBinary(returns) &&
		!slices.ContainsFunc([]string{`"$id"`, `"$anchor"`, `"#"`, `"#/properties`, `"#/items`}, func(part string) bool {
			return bytes.Contains(returns, []byte(part))
		})
}

func isBinary(returns json.RawMessage) bool {
	return bytes.Contains(returns, []byte("contentEncoding"))
}
