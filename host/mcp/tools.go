package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// maxName is the length of a tool's name that model APIs take.
const maxName = 64

// ListedName is a tool's name in tools/list: model APIs refuse dots, so each is "__", and what is too long ends in a hash.
func ListedName(qualified string) string {
	name := strings.ReplaceAll(qualified, ".", "__")
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(qualified))
	return name[:maxName-9] + "_" + hex.EncodeToString(sum[:4])
}

// callTool is the name of the tool that calls others.
const callTool = "call_tool"

// compactSchema leaves out of a schema what a model does not need to be told.
var compactSchema = strings.NewReplacer(`,"additionalProperties":false`, "", `,"minimum":1`, "", `,"maximum":100`, "", `,"maximum":3`, "", `"type":"string","enum"`, `"enum"`)

// untypedArguments leaves the arguments of a call to the tool that they are for: it knows what is wrong with them.
var untypedArguments = strings.NewReplacer(`"arguments":{"type":"object"}`, `"arguments":{}`)

// maxLimit is the most hits that search_tools gives at once, as its schema says.
const maxLimit = 100

// metaTools are the tools that each mode has.
var metaTools = []struct {
	name, description, schema string
	reads                     bool
	run                       func(*modeServer, context.Context, *sdk.CallToolRequest, json.RawMessage) (*sdk.CallToolResult, error)
}{
	{callTool, "Run a tool",
		`{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"},"options":{"type":"object","description":"timeout, max_bytes, browser, target, dry_run"}},"required":["name"],"additionalProperties":false}`,
		false, (*modeServer).callTool},
	{"describe_tool", "Show how a tool is used",
		`{"type":"object","properties":{"name":{"type":"string"},"tier":{"type":"integer","minimum":1,"maximum":3,"default":2}},"required":["name"],"additionalProperties":false}`,
		true, (*modeServer).describeTool},
	{"search_tools", "Find tools by what you want to do",
		`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":100,"default":5},"detail":{"type":"string","enum":["names","signatures","full"],"default":"names"}},"required":["query"],"additionalProperties":false}`,
		true, (*modeServer).searchTools},
}

func (m *modeServer) addTools() error {
	for _, tool := range metaTools {
		paramsSchema, err := schema.CompileTrusted([]byte(untypedArguments.Replace(tool.schema)))
		if err != nil {
			return err
		}
		t := &sdk.Tool{Name: tool.name, Description: tool.description, InputSchema: json.RawMessage(compactSchema.Replace(tool.schema))}
		if tool.reads {
			t.Annotations = &sdk.ToolAnnotations{ReadOnlyHint: true}
		}
		m.listed[tool.name] = ""
		m.server.AddTool(t, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if name, ok := ctx.Value(calledByNameKey{}).(string); ok {
				return m.run(ctx, r, name, r.Params.Arguments, host.Options{})
			}
			params, warnings, refused := host.CheckParams(tool.name, paramsSchema, r.Params.Arguments)
			if refused != nil {
				return m.errorResult(&host.Answer{Tool: tool.name, Err: refused})
			}
			result, err := tool.run(m, ctx, r, params)
			return withWarnings(result, warnings), err
		})
	}
	switch m.mode {
	case Progressive:
		return m.addPinned()
	case Full:
		return m.addAll()
	}
	return nil
}

// pinnedTools finds the tools that progressive mode shows, sorted, each once.
func (s *Server) pinnedTools() ([]host.Address, error) {
	var found []host.Address
	for _, name := range s.cfg.Pinned {
		a, err := s.cfg.Host.Catalog().Find(name)
		if err != nil {
			e := *host.AsError(err)
			e.Code, e.Message = host.ConfigError, "pinned_tools: "+e.Message
			return nil, &e
		}
		if a.Tool == nil {
			return nil, host.Errorf(host.ConfigError, "pinned_tools: %s is not a tool; name one of its tools", a.Name()).
				WithSteps(a.ListStep())
		}
		found = append(found, a)
	}
	slices.SortFunc(found, func(a, b host.Address) int { return cmp.Compare(a.Name(), b.Name()) })
	return slices.CompactFunc(found, func(a, b host.Address) bool { return a.Name() == b.Name() }), nil
}

func (m *modeServer) addPinned() error {
	pinned, err := m.pinnedTools()
	if err != nil {
		return err
	}
	pins := make([]*pin, len(pinned))
	for i, a := range pinned {
		s := signatureSchema(a.Tool.Params)
		schema, _ := manifest.Marshal(s)
		pins[i] = &pin{a, &sdk.Tool{Description: manifest.CleanLine(a.Tool.Docs.Brief), InputSchema: schema, Annotations: annotations(a.Tool)}, s.Required}
	}
	shortenPins(pins, pinnedBytes*max(len(pins), manyPins))
	for _, p := range pins {
		m.add(p.address, p.tool)
	}
	return nil
}

// manyPins tools, whichever they are, and the three meta-tools stay within 1,200 tokens: their signatures may take pinnedBytes each on average.
const (
	manyPins    = 22
	pinnedBytes = 155
)

// pin is a pinned tool as it is shown.
type pin struct {
	address  host.Address
	tool     *sdk.Tool
	required []string // parameters
}

// bytes is about what the tool takes in tools/list.
func (p *pin) bytes() int {
	annotations, _ := manifest.Marshal(p.tool.Annotations)
	return len(p.address.Name()) + len(p.tool.Description) + len(p.tool.InputSchema.(json.RawMessage)) + len(annotations)
}

// shortenPins shortens signatures until all have room, the longest first: they name what they require without saying more of it, and if that is
// not enough they say nothing of parameters. A call that leaves them out is answered with them.
func shortenPins(pins []*pin, room int) {
	total := 0
	for _, p := range pins {
		total += p.bytes()
	}
	for _, named := range []bool{true, false} {
		longest := slices.Clone(pins)
		slices.SortStableFunc(longest, func(a, b *pin) int { return cmp.Compare(b.bytes(), a.bytes()) })
		for _, p := range longest {
			if total <= room {
				return
			}
			total -= p.bytes()
			p.tool.InputSchema = json.RawMessage(`{"type":"object"}`)
			p.tool.Description = manifest.CleanLine(p.address.Tool.Docs.Brief)
			if named && len(p.required) > 0 {
				p.tool.Description += " (needs " + strings.Join(p.required, ", ") + ")"
			}
			total += p.bytes()
		}
	}
}

func (m *modeServer) addAll() error {
	for _, p := range m.cfg.Host.Catalog().Providers() {
		names, err := p.Names()
		if err != nil {
			return err
		}
		for _, name := range names {
			a, err := m.cfg.Host.Catalog().FindIn(p.Info().Name, name)
			if err != nil || a.Tool == nil {
				continue
			}
			m.add(a, fullTool(a))
		}
	}
	return nil
}

func (m *modeServer) add(a host.Address, t *sdk.Tool) {
	name := a.Name()
	t.Name = ListedName(name)
	m.listed[t.Name] = name
	m.server.AddTool(t, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return m.run(ctx, r, name, r.Params.Arguments, host.Options{})
	})
}

// objectSchema is a schema of what a tool requires.
type objectSchema struct {
	Type       string              `json:"type"`
	Properties map[string]property `json:"properties,omitempty"`
	Required   []string            `json:"required,omitempty"`
}

type property struct {
	Type any               `json:"type,omitempty"`
	Enum []json.RawMessage `json:"enum,omitempty"`
}

// signatureSchema is a tool's first tier as a schema: what it requires, by type. It is open to every further parameter.
func signatureSchema(params json.RawMessage) objectSchema {
	s := objectSchema{Type: "object", Properties: map[string]property{}}
	for _, p := range manifest.Params(params) {
		if !p.Required {
			continue
		}
		types := slices.DeleteFunc(strings.Split(p.Type, "|"), func(t string) bool { return !slices.Contains(schemaTypes, t) })
		declared := property{Enum: p.Enum}
		switch {
		case len(types) == 1:
			declared.Type = types[0]
		case len(types) > 1:
			declared.Type = types
		}
		s.Properties[p.Name] = declared
		s.Required = append(s.Required, p.Name)
	}
	return s
}

var schemaTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// fullTool is a tool with everything that MCP has a place for.
func fullTool(a host.Address) *sdk.Tool {
	t := a.Tool
	description := manifest.CleanLine(t.Docs.Brief)
	for _, more := range []string{manifest.Clean(t.Docs.Standard), prefixed("Use it when ", t.When), prefixed("Not when ", t.WhenNot)} {
		switch {
		case strings.HasPrefix(more, description): // nothing is said twice
			description = more
		case more != "":
			description += "\n" + more
		}
	}
	hints := annotations(t)
	hints.IdempotentHint, hints.OpenWorldHint = t.Idempotent, &t.OpenWorld
	return &sdk.Tool{Description: description, InputSchema: inputSchema(t.Params), OutputSchema: outputSchema(a), Annotations: hints}
}

// annotations say a tool's effect.
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

// inputSchema is a tool's schema of parameters as MCP takes it: an object at its root, and nothing in it that makes a client put a
// parameter into an HTTP header.
func inputSchema(params json.RawMessage) any {
	value, err := jsontext.Decode(params, jsontext.Limits{})
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return json.RawMessage(`{"type":"object"}`)
	}
	if object["type"] == "object" && !bytes.Contains(params, []byte("x-mcp-header")) {
		return manifest.CleanJSON(params)
	}
	object["type"] = "object"
	removeKey(object, "x-mcp-header")
	return manifest.CleanJSON(jsontext.Marshal(object))
}

func removeKey(value any, key string) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, key)
		for _, inner := range v {
			removeKey(inner, key)
		}
	case []any:
		for _, inner := range v {
			removeKey(inner, key)
		}
	}
}

// outputSchema is the schema that a result is held against by the host, for tools whose result is an object without binary content. A
// result that is too large comes as a part of it, in the form that the second branch has. Chrome's results may be newer than the
// protocol's data, and those of kind mcp are not checked: they promise nothing.
func outputSchema(a host.Address) any {
	kind := a.Provider.Info().Kind
	if kind == manifest.KindBuiltin || kind == manifest.KindMCP || !describesObject(a.Tool.Returns) {
		return nil
	}
	value, err := jsontext.Decode(a.Tool.Returns, jsontext.Limits{})
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	root := map[string]any{"type": "object"}
	for _, key := range []string{"$schema", "$defs", "definitions"} { // what is referred to from the root stays there
		if v, has := object[key]; has {
			root[key] = v
			delete(object, key)
		}
	}
	part := map[string]any{"type": "object", "required": []any{"truncated"}, "properties": map[string]any{"truncated": map[string]any{"const": true}}}
	root["anyOf"] = []any{object, part}
	return manifest.CleanJSON(jsontext.Marshal(root))
}

// describesObject tells whether a schema of results is one of objects that can be put below another root.
func describesObject(returns json.RawMessage) bool {
	kind, _ := manifest.TypeAt(returns)
	return kind == "object" && !isBinary(returns) && !bytes.Contains(returns, []byte(`"$id"`)) && !bytes.Contains(returns, []byte(`"$anchor"`)) &&
		!bytes.Contains(returns, []byte(`"#"`)) && !bytes.Contains(returns, []byte(`"#/properties`)) && !bytes.Contains(returns, []byte(`"#/items`))
}

func isBinary(returns json.RawMessage) bool {
	return bytes.Contains(returns, []byte("contentEncoding"))
}
