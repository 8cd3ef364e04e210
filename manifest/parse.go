package manifest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/parley-tools/parley/manifest/document"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

//go:embed schema.json
var schemaJSON []byte

// Schema returns the draft-07 schema that manifests of version 1 are checked against.
func Schema() []byte { return bytes.Clone(schemaJSON) }

var manifestSchema = sync.OnceValues(func() (*document.Schema, error) { return document.Compile(schemaJSON) })

// Bounds of a manifest as a document.
const (
	maxBytes = 4 << 20
	maxDepth = 100
)

// Problem is one thing that is wrong with a manifest, and where.
type Problem struct {
	Pointer string // JSON pointer into the manifest
	Message string
}

func (p Problem) String() string {
	if p.Pointer == "" {
		return p.Message
	}
	return p.Pointer + ": " + p.Message
}

// Error is why a manifest is refused: all problems that were found, in the order of their pointers.
type Error struct {
	Problems []Problem
}

func (e *Error) Error() string {
	texts := make([]string, 0, len(e.Problems))
	for i, p := range e.Problems {
		if i == 8 {
			texts = append(texts, fmt.Sprintf("and %d more", len(e.Problems)-i))
			break
		}
		texts = append(texts, p.String())
	}
	return "invalid manifest: " + strings.Join(texts, "; ")
}

func refuse(pointer, format string, args ...any) *Error {
	return &Error{Problems: []Problem{{CleanLine(pointer), CleanLine(fmt.Sprintf(format, args...))}}}
}

// Parse reads a manifest strictly and checks everything that can be checked without its wasm: the
// document against the embedded schema, names, references between its parts, the schemas of its tools
// and its examples against them. hostVersion is what min_host is held against. The error is *Error.
func Parse(data []byte, hostVersion string) (*Manifest, error) {
	doc, err := jsontext.Decode(data, jsontext.Limits{Bytes: maxBytes, Depth: maxDepth})
	if err != nil {
		return nil, refuse("", "%v", err)
	}
	if err := checkVersion(doc, hostVersion); err != nil {
		return nil, err
	}
	own, err := manifestSchema()
	if err != nil {
		return nil, refuse("", "the schema of manifests does not compile: %v", err)
	}
	violations, err := own.Validate(doc)
	if err != nil {
		return nil, refuse("", "%v", err)
	}
	if len(violations) > 0 {
		return nil, &Error{Problems: problems(violations)}
	}
	m, err := Load(data)
	if err != nil {
		return nil, err
	}
	if found := check(m); len(found) > 0 {
		slices.SortStableFunc(found, func(a, b Problem) int { return strings.Compare(a.Pointer, b.Pointer) })
		return nil, &Error{Problems: found}
	}
	return m, nil
}

// Load reads a manifest that Parse has accepted before.
func Load(data []byte) (*Manifest, error) {
	var m Manifest
	err := json.Unmarshal(data, &m)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) { // what a schema takes for an integer and Go does not: 64.0
		return nil, refuse("", "%s: expected a number written as digits alone, got %s", mismatch.Field, mismatch.Value)
	}
	if err != nil {
		return nil, refuse("", "%v", strings.TrimPrefix(err.Error(), "json: "))
	}
	return &m, nil
}

// checkVersion looks at manifest and min_host before anything else, so that a newer manifest fails with what it needs.
func checkVersion(doc any, hostVersion string) error {
	root, ok := doc.(map[string]any)
	if !ok {
		return refuse("", "expected an object")
	}
	if v, ok := root["min_host"].(string); ok && Newer(v, hostVersion) {
		return refuse("/min_host", "needs host >= %s, and this is %s", v, hostVersion)
	}
	if v, ok := root["manifest"].(json.Number); ok && v.String() != strconv.Itoa(Version) {
		needs, ok := root["min_host"].(string)
		if !ok {
			needs = "one that reads manifest version " + v.String()
		}
		return refuse("/manifest", "needs host >= %s: this host, %s, reads manifest version %d and was given %s", needs, hostVersion, Version, v)
	}
	return nil
}

func problems(violations []schema.Violation) []Problem {
	found := make([]Problem, 0, len(violations))
	for _, v := range violations {
		message := fmt.Sprintf("expected %s, got %s", v.Expected, v.Provided)
		if v.Keyword == "additionalProperties" {
			message = "unknown field; expected " + v.Expected
		}
		if len(v.DidYouMean) > 0 {
			message += "; did you mean " + strings.Join(v.DidYouMean, ", ") + "?"
		}
		found = append(found, Problem{CleanLine(v.Pointer), CleanLine(message)})
	}
	return found
}

// Newer tells whether version a comes after version b; what follows a hyphen or a plus does not count.
func Newer(a, b string) bool {
	x, y := versionParts(a), versionParts(b)
	return slices.Compare(x[:], y[:]) > 0
}

func versionParts(v string) (parts [3]int) {
	v, _, _ = strings.Cut(v, "-")
	v, _, _ = strings.Cut(v, "+")
	for i, p := range strings.SplitN(v, ".", 3) {
		parts[i], _ = strconv.Atoi(p)
	}
	return parts
}

// check finds what the document's schema cannot say.
func check(m *Manifest) []Problem {
	c := &checker{m: m}
	c.checkNames()
	c.checkExitCodes()
	if len(m.Settings) > 0 {
		if _, err := schema.CompileUntrusted(m.Settings); err != nil {
			c.add("/settings", "%v", err)
		}
	}
	for i := range m.Tools {
		c.checkTool(fmt.Sprintf("/tools/%d", i), &m.Tools[i])
	}
	return c.found
}

type checker struct {
	m     *Manifest
	found []Problem
}

func (c *checker) add(pointer, format string, args ...any) {
	c.found = append(c.found, Problem{CleanLine(pointer), CleanLine(fmt.Sprintf(format, args...))})
}

func (c *checker) checkNames() {
	if strings.Contains(c.m.Name, "__") {
		c.add("/name", "a name cannot hold \"__\", which stands for a dot where model APIs refuse one")
	}
	taken := map[string]string{}
	claim := func(pointer, what, name string) {
		key := strings.ToLower(name)
		if other, ok := taken[key]; ok {
			c.add(pointer, "%s %q has the name of %s; names are unique without regard to case", what, name, other)
			return
		}
		taken[key] = pointer
		if strings.Contains(name, "__") {
			c.add(pointer, "a name cannot hold \"__\", which stands for a dot where model APIs refuse one")
		}
	}
	for i, g := range c.m.Groups {
		claim(fmt.Sprintf("/groups/%d/name", i), "group", g.Name)
	}
	for i, t := range c.m.Tools {
		claim(fmt.Sprintf("/tools/%d/name", i), "tool", t.Name)
		if t.Group != "" && !slices.ContainsFunc(c.m.Groups, func(g Group) bool { return g.Name == t.Group }) {
			c.add(fmt.Sprintf("/tools/%d/group", i), "no group %q is declared in groups", t.Group)
		}
	}
}

func (c *checker) checkExitCodes() {
	codes, names := map[int]bool{}, map[string]bool{}
	for i, e := range c.m.ExitCodes {
		if codes[e.Code] || names[e.Name] {
			c.add(fmt.Sprintf("/exit_codes/%d", i), "code %d or name %q is declared twice", e.Code, e.Name)
		}
		codes[e.Code], names[e.Name] = true, true
	}
	for i, t := range c.m.Tools {
		for j, name := range t.ExitCodes {
			if !names[name] {
				c.add(fmt.Sprintf("/tools/%d/exit_codes/%d", i, j), "no exit code %q is declared in exit_codes", name)
			}
		}
	}
}

// Placeholder matches a {name} of a parameter in what a tool of kind wasi says of its command; the name is the first group.
// It is compiled at need, like all that most commands never use: what is compiled before main delays each of them.
var Placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_.-]*)\}`) })

func (c *checker) checkTool(at string, t *Tool) {
	names := map[string]bool{}
	params := Params(t.Params)
	for _, p := range params {
		names[p.Name] = true
	}
	c.checkListing(at+"/params", params)
	c.checkListing(at+"/returns", Params(t.Returns))
	for i, name := range t.Positional {
		if !names[name] {
			c.add(fmt.Sprintf("%s/positional/%d", at, i), "%q is no parameter of the tool", name)
		}
	}
	if t.WASI != nil {
		c.checkWASI(at+"/wasi", t.WASI, names)
		if c.m.Kind != KindWASI {
			c.add(at+"/wasi", "only a plugin of kind wasi has it; this one is %s", c.m.Kind)
		}
	}
	if c.m.Kind == KindMCP {
		return // its schemas are for display
	}
	root := readNode(t.Params)
	if kind := root.text("type"); kind != "object" {
		c.add(at+"/params/type", "expected \"object\": parameters are always an object")
		return
	}
	for _, name := range root.at("properties").names() {
		if CleanLine(name) != name {
			c.add(at+"/params/properties", "the parameter %q cannot be typed as it is shown: it holds hidden characters or white space around it", name)
		}
	}
	paramsSchema, err := schema.CompileUntrusted(t.Params)
	if err != nil {
		c.add(at+"/params", "%v", err)
		return
	}
	var returns *schema.Schema
	if len(t.Returns) > 0 {
		if returns, err = schema.CompileUntrusted(t.Returns); err != nil {
			c.add(at+"/returns", "%v", err)
		}
	}
	for i, e := range t.Examples {
		const invalidArgs = 81 // shows how parameters are refused, by the schema or by the tool
		pointer := fmt.Sprintf("%s/examples/%d", at, i)
		if e.ExitCode != invalidArgs {
			c.checkExample(pointer+"/params", e.Params, paramsSchema)
		}
		if e.ExitCode == 0 && len(e.Result) > 0 && returns != nil {
			c.checkExample(pointer+"/result", e.Result, returns)
		}
	}
}

// maxListing bounds the text that documentation makes of a schema: one list of values, referred to by each of many
// parameters, would fill an agent's context from a small file.
const maxListing = 64 << 10

func (c *checker) checkListing(at string, params []Param) {
	size := 0
	for _, p := range params {
		if size += len(p.Text()) + len(p.Fields); size > maxListing {
			c.add(at, "its list of %d names takes more than %d bytes of documentation: shorten descriptions and lists of values", len(params), maxListing)
			return
		}
	}
}

// checkExample holds a value of an example against the schema of its place.
func (c *checker) checkExample(at string, data json.RawMessage, against *schema.Schema) {
	value, err := jsontext.Decode(data, jsontext.Limits{})
	if err != nil {
		c.add(at, "%v", err)
		return
	}
	violations, err := against.Validate(value)
	if err != nil {
		c.add(at, "%v", err)
	}
	if len(violations) > 0 {
		v := violations[0]
		c.add(at+v.Pointer, "the example breaks the tool's own schema: expected %s, got %s", v.Expected, v.Provided)
	}
}

func (c *checker) checkWASI(at string, w *WASI, names map[string]bool) {
	use := func(pointer, text string) {
		for _, match := range Placeholder().FindAllStringSubmatch(text, -1) {
			if !names[match[1]] {
				c.add(pointer, "{%s} is no parameter of the tool", match[1])
			}
		}
	}
	for i, a := range w.Argv {
		pointer := fmt.Sprintf("%s/argv/%d", at, i)
		use(pointer, a.Word)
		for _, word := range a.List {
			use(pointer, word)
		}
	}
	use(at+"/stdin", w.Stdin)
	for name, value := range w.Env {
		use(at+"/env/"+jsontext.EscapeToken(name), value)
	}
	for i, f := range w.Files {
		use(fmt.Sprintf("%s/files/%d/from", at, i), f.From)
	}
}

// reserved are the host's own words, present and planned: a plugin of such a name could never be reached.
var reserved = []string{
	"call", "search", "batch", "plugin", "policy", "secret", "config", "mcp", "docs", "learn", "stats", "trace",
	"audit", "doctor", "completion", "help", "version", "list", "cdp", "serve", "console", "fleet", "page-tools",
}

// Reserved tells whether a name cannot be a plugin's.
func Reserved(name string) bool {
	return slices.Contains(reserved, strings.ToLower(name))
}

// CompactJSON returns JSON on one line, as it is if it does not parse.
func CompactJSON(data json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return data
	}
	return b.Bytes()
}
