package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// File is one file of an [Export].
type File struct {
	Path    string // slash-separated, relative to the folder of the export
	Content []byte
	JSON    bool
	Block   bool // a marked block of a file that may have other text; see [Splice]
}

// Export is a catalog, or a part of it, in one format.
type Export struct {
	Tools int
	Files []File
	// Warnings say what the system that reads this format will refuse.
	Warnings []string
}

// form is a format that other systems read.
type form struct {
	name  string
	write func(*exporter) ([]File, error)
}

var forms = []form{
	{"mcp", (*exporter).mcp},
	{"openai", func(x *exporter) ([]File, error) { return x.openai("openai.json", false) }},
	{"openai-strict", func(x *exporter) ([]File, error) { return x.openai("openai-strict.json", true) }},
	{"anthropic", (*exporter).anthropic},
	{"markdown", (*exporter).markdown},
	{"skill", (*exporter).skills},
	{"agents", (*exporter).agents},
	{"llms", (*exporter).llms},
}

// Formats returns the names of all formats that [Source.Export] accepts.
func Formats() []string { return lists.Map(forms, func(f form) string { return f.name }) }

const (
	// Limits of OpenAI: the characters of a description, and the tools of one request.
	openAIDescription = 1024
	openAITools       = 128
	// maxCommand is the length up to which a skill shows the command of an example.
	maxCommand = 160
)

// exporter holds what the formats are made of.
type exporter struct {
	*Source
	tools    []exported
	describe func(at host.Address, tier int) (*host.Docs, error) // as the command line shows it
	warnings []string
	// skillNames maps the name of each skill that was named to its plugin.
	skillNames map[string]string
}

// exported is one tool with its documentation of tier 3.
type exported struct {
	at     host.Address
	docs   *host.Docs
	listed listed // its entry in tools/list of the full mode
}

// Export converts the named plugins, groups and tools, or the whole catalog if names is empty, to a format. It fails
// with invalid_args for an unknown format.
func (s *Source) Export(ctx context.Context, format string, names []string) (*Export, error) {
	f := lists.Find(forms, func(f *form) bool { return f.name == format })
	if f == nil {
		return nil, host.Errorf(host.InvalidArgs, "unknown format %q; expected one of %s",
			manifest.CleanValue(format), strings.Join(Formats(), ", ")).
			WithSteps(step.Operator(step.OpDocsExport, "--format", "mcp"))
	}
	found, err := s.tools(names)
	if err != nil {
		return nil, err
	}
	list, err := s.list(ctx, s.Full)
	if err != nil {
		return nil, err
	}
	x := &exporter{Source: s, skillNames: map[string]string{}}
	x.describe = func(at host.Address, tier int) (*host.Docs, error) {
		d, err := s.describe(ctx, at, tier)
		if err != nil {
			return nil, err
		}
		for i, e := range d.Examples {
			d.Examples[i].Command = s.Command(step.Call(d.Name, e.Params))
		}
		return d, nil
	}
	for _, at := range found {
		d, err := x.describe(at, manifest.Tier3)
		if err != nil {
			return nil, err
		}
		x.tools = append(x.tools, exported{at, d, list[s.ListedName(at.Name())]})
	}
	files, err := f.write(x)
	if err != nil {
		return nil, err
	}
	return &Export{Tools: len(x.tools), Files: files, Warnings: x.warnings}, nil
}

// examples returns the examples that succeed and are calls by themselves: without references to the results of others.
func (e exported) examples() []manifest.ExampleDoc {
	return lists.Filter(e.docs.Examples, func(d manifest.ExampleDoc) bool { return d.ExitCode == 0 && !d.Refers() })
}

// toolSet is a list of tool definitions, with examples in the form of the calls that a model would make.
type toolSet struct {
	Tools    []any         `json:"tools"`
	Examples []exampleCall `json:"examples"`
}

type exampleCall struct {
	Title  string          `json:"title"`
	Call   any             `json:"call"`
	Result json.RawMessage `json:"result,omitempty"`
}

// toolSet writes the single file of such a format. The n that call receives numbers the examples from 1.
func (x *exporter) toolSet(
	name string, define func(listed) any, call func(n int, name string, params json.RawMessage) any,
) ([]File, error) {
	set := toolSet{Tools: []any{}, Examples: []exampleCall{}}
	for _, t := range x.tools {
		set.Tools = append(set.Tools, define(t.listed))
		for _, e := range t.examples() {
			example := exampleCall{e.Title, call(len(set.Examples)+1, t.listed.Name, e.Params), e.Result}
			set.Examples = append(set.Examples, example)
		}
	}
	return jsonFile(name, set)
}

func jsonFile(name string, v any) ([]File, error) {
	raw, err := manifest.Marshal(v)
	return []File{{Path: name, Content: append(manifest.EscapeJSON(raw), '\n'), JSON: true}}, err
}

// namedArguments is a call in the form of MCP.
type namedArguments struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// mcp writes tools/list as the full mode sends it, without the server's own three tools.
func (x *exporter) mcp() ([]File, error) {
	type request struct {
		Method string         `json:"method"`
		Params namedArguments `json:"params"`
	}
	return x.toolSet("mcp.json",
		func(t listed) any { return t.raw },
		func(_ int, name string, params json.RawMessage) any {
			return request{"tools/call", namedArguments{name, params}}
		})
}

// openai writes "tools" as the chat completions of OpenAI accept it. In strict mode, the model's arguments always fit
// the schema.
func (x *exporter) openai(file string, strict bool) ([]File, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict,omitempty"`
	}
	type tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	type called struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // a JSON text
	}
	type call struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function called `json:"function"`
	}
	if len(x.tools) > openAITools {
		x.warnings = append(x.warnings, fmt.Sprintf(
			"a request to OpenAI accepts at most %d tools, and this export has %d; name plugins, groups or tools",
			openAITools, len(x.tools)))
	}
	return x.toolSet(file,
		func(t listed) any {
			description := truncate(t.Description, openAIDescription)
			parameters := plainObject(t.InputSchema)
			if strict {
				parameters = strictSchema(parameters)
			}
			return tool{"function", function{t.Name, description, parameters, strict}}
		},
		func(n int, name string, params json.RawMessage) any {
			id := fmt.Sprintf("call_%d", n)
			return call{id, "function", called{name, string(manifest.CompactJSON(params))}}
		})
}

// maxInputExamples bounds the examples of one tool for Anthropic, which count as tokens of the prompt.
const maxInputExamples = 3

// anthropic writes "tools" as the messages API of Anthropic accepts it, with examples of the input. In a large export,
// all tools but those that progressive mode lists are loaded when Anthropic's tool search finds them.
func (x *exporter) anthropic() ([]File, error) {
	type tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
		// Examples and Deferred belong to the beta advanced-tool-use.
		Examples []json.RawMessage `json:"input_examples,omitempty"`
		Deferred bool              `json:"defer_loading,omitempty"`
	}
	type call struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	examples := map[string][]json.RawMessage{}
	for _, t := range x.tools {
		for _, e := range t.examples() {
			if len(examples[t.listed.Name]) < maxInputExamples {
				examples[t.listed.Name] = append(examples[t.listed.Name], manifest.CompactJSON(e.Params))
			}
		}
	}
	return x.toolSet("anthropic.json",
		func(t listed) any {
			return tool{t.Name, t.Description, plainObject(t.InputSchema), examples[t.Name], x.deferred(t.Name)}
		},
		func(n int, name string, params json.RawMessage) any {
			return call{"tool_use", fmt.Sprintf("toolu_%d", n), name, params}
		})
}

// manyTools is the number of tools from which an export defers loading.
const manyTools = 30

// deferred reports whether a tool is left to a tool search.
func (x *exporter) deferred(listedName string) bool {
	return len(x.tools) >= manyTools && !slices.Contains(x.Common, listedName)
}

// plainObject returns a schema of parameters without the keywords that model APIs refuse at the root. The host still
// validates calls against the whole schema. A schema that has none of them keeps its order.
func plainObject(params json.RawMessage) json.RawMessage {
	params = manifest.CompactJSON(params)
	value, err := jsontext.Decode(params, jsontext.Limits{})
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return json.RawMessage(`{"type":"object"}`)
	}
	before := len(object)
	for _, k := range []string{"allOf", "anyOf", "enum", "not", "oneOf"} {
		delete(object, k)
	}
	if len(object) == before {
		return params
	}
	return jsontext.Marshal(object)
}

// truncate shortens a text to at most n characters, at a space if there is one in its second half.
func truncate(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	short := string([]rune(text)[:n-1])
	if space := strings.LastIndexAny(short, " \n"); space > len(short)/2 {
		short = short[:space]
	}
	return strings.TrimRight(short, " \n,.;:") + "…"
}
