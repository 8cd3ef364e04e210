package manifest

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/document"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

//go:embed schema.json
var schemaJSON []byte

// Schema returns a copy of the schema of manifests of version 1, in draft-07.
func Schema() []byte { return bytes.Clone(schemaJSON) }

var manifestSchema = sync.OnceValue(func() *document.Schema {
	own, _ := document.Compile(schemaJSON) // it is ours
	return own
})

// MaxSize is the maximum size of a manifest in bytes.
const MaxSize = 16 << 20

// Other bounds of a manifest as a document.
const (
	maxTool  = 128 << 10 // bytes of one tool in its source form
	maxDepth = 100
)

// Problem is one reason why a manifest is invalid, and where.
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

// Error says why a manifest is refused: all problems that were found, in the order of their pointers.
type Error struct {
	Problems []Problem
}

func (e *Error) Error() string {
	return "invalid manifest: " + strings.Join(spelling.AtMost(lists.Map(e.Problems, Problem.String), 8), "; ")
}

func refuse(pointer, format string, args ...any) *Error {
	return &Error{Problems: []Problem{{CleanLine(pointer), CleanLine(fmt.Sprintf(format, args...))}}}
}

// Parse reads a manifest strictly and checks everything that does not need the wasm: the document by the embedded
// [Schema], names, references between its parts, the schemas of its tools, and the examples by these schemas. It
// compares hostVersion with the manifest's min_host. The error is a *[Error].
func Parse(data []byte, hostVersion string) (*Manifest, error) {
	doc, err := jsontext.Decode(data, jsontext.Limits{Bytes: MaxSize, Depth: maxDepth})
	if err != nil {
		return nil, refuse("", "%v", err)
	}
	if err := checkVersion(doc, hostVersion); err != nil {
		return nil, err
	}
	violations, err := manifestSchema().Validate(doc)
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
	found := checkSizes(data)
	if len(found) == 0 {
		found = check(m)
	}
	if len(found) > 0 {
		slices.SortStableFunc(found, func(a, b Problem) int { return strings.Compare(a.Pointer, b.Pointer) })
		return nil, &Error{Problems: found}
	}
	return m, nil
}

// Load reads a manifest that [Parse] has accepted before. The error is a *[Error].
func Load(data []byte) (*Manifest, error) {
	var m Manifest
	err := jsontext.UnmarshalValid(data, &m)
	// such as 64.0, which is an integer for the schema, but not in Go
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, refuse("", "%s: expected a number written as digits alone, got %s", mismatch.Field, mismatch.Value)
	}
	if err != nil {
		return nil, refuse("", "%v", strings.TrimPrefix(err.Error(), "json: "))
	}
	m.Kind = CurrentKind(m.Kind)
	return &m, nil
}

// checkVersion gives the kind its current name, and checks manifest and min_host first, so that the error for a newer
// manifest says which host it needs.
func checkVersion(doc any, hostVersion string) error {
	root, ok := doc.(map[string]any)
	if !ok {
		return refuse("", "expected an object")
	}
	if kind, ok := root["kind"].(string); ok {
		root["kind"] = CurrentKind(kind)
	}
	if v, ok := root["min_host"].(string); ok && Newer(v, hostVersion) {
		return refuse("/min_host", "needs host >= %s, and this is %s: update Parley", v, hostVersion)
	}
	if v, ok := root["manifest"].(json.Number); ok && v.String() != strconv.Itoa(Version) {
		needs, _ := root["min_host"].(string)
		return refuse("/manifest", "needs host >= %s: this host, %s, reads manifest version %d and was given %s",
			cmp.Or(needs, "one that reads manifest version "+v.String()), hostVersion, Version, v)
	}
	return nil
}

// foreignFields are what MCP and authors call fields of a manifest.
var foreignFields = map[string]string{"inputSchema": "params", "input_schema": "params", "parameters": "params",
	"outputSchema": "returns", "output_schema": "returns", "description": "docs (brief, standard, full)",
	"permissions": "capabilities"}

// forms show values of fields whose patterns are hard to read.
var forms = map[string]string{"version": "1.2.0", "min_host": "1.2.0", "url": "https://api.example.com",
	"base": "https://api.example.com", "header": `"Authorization: Bearer {secret}"`}

func problems(violations []schema.Violation) []Problem {
	found := make([]Problem, 0, len(violations))
	for _, v := range violations {
		message := fmt.Sprintf("expected %s, got %s", v.Expected, v.Provided)
		if ours := foreignFields[jsontext.LastName(v.Pointer)]; ours != "" && v.Keyword == "additionalProperties" {
			v.DidYouMean = []string{ours}
		}
		if form := forms[jsontext.LastName(v.Pointer)]; form != "" && v.Keyword == "pattern" {
			message += "; write it as " + form
		}
		meant := "; did you mean " + strings.Join(v.DidYouMean, ", ") + "?"
		switch isUnknown := v.Keyword == "additionalProperties"; {
		case isUnknown && len(v.DidYouMean) > 0:
			message = "unknown field" + meant
		case isUnknown:
			message = "unknown field; expected " + v.Expected
		case len(v.DidYouMean) > 0:
			message += meant
		}
		found = append(found, Problem{CleanLine(v.Pointer), CleanLine(message)})
	}
	return found
}

// Newer reports whether version a is later than version b. Pre-release and build suffixes are ignored.
func Newer(a, b string) bool {
	x, y := versionParts(a), versionParts(b)
	return slices.Compare(x[:], y[:]) > 0
}

// Major returns the first number of a version, 0 if it has none.
func Major(v string) int { return versionParts(v)[0] }

func versionParts(v string) (parts [3]int) {
	v, _, _ = strings.Cut(v, "-")
	v, _, _ = strings.Cut(v, "+")
	for i, p := range strings.SplitN(v, ".", 3) {
		parts[i], _ = strconv.Atoi(p)
	}
	return parts
}

// checkSizes returns a problem for each tool that is too large.
func checkSizes(data []byte) (found []Problem) {
	if len(data) <= maxTool {
		return nil
	}
	var m struct{ Tools []json.RawMessage }
	_ = json.Unmarshal(data, &m) // it has been read before
	for i, tool := range m.Tools {
		if len(tool) > maxTool {
			found = append(found, Problem{fmt.Sprintf("/tools/%d", i), fmt.Sprintf("the tool has %d bytes; at most %d are "+
				"accepted: shorten its schemas, or move what they share to their $defs", len(tool), maxTool)})
		}
	}
	return found
}

// check checks what the embedded schema cannot express.
func check(m *Manifest) []Problem {
	c := &checker{m: m}
	c.checkNames()
	c.checkScripts()
	c.checkExitCodes()
	c.checkInstance()
	c.checkHTTP()
	c.checkHidden("/settings", m.Settings)
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

// doubleUnderscore is the problem of a name that could be confused with a name that MCP lists.
const doubleUnderscore = `a name cannot contain "__", which stands for the dot where model APIs refuse dots`

func (c *checker) checkNames() {
	if strings.Contains(c.m.Name, "__") {
		c.add("/name", doubleUnderscore)
	}
	taken := map[string]string{}
	claim := func(pointer, what, name string) {
		key := strings.ToLower(name)
		if other, ok := taken[key]; ok {
			c.add(pointer, "%s %q has the same name as %s; names must differ in more than case", what, name, other)
			return
		}
		taken[key] = pointer
		if strings.Contains(name, "__") {
			c.add(pointer, doubleUnderscore)
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

func (c *checker) checkScripts() {
	names := map[string]bool{}
	for i, s := range c.m.Scripts {
		if names[s.Name] {
			c.add(fmt.Sprintf("/scripts/%d/name", i), "script %q is declared twice", s.Name)
		}
		names[s.Name] = true
	}
}

// checkInstance checks the fields about instances of the plugin.
func (c *checker) checkInstance() {
	if c.m.Warm && c.m.Kind != KindParley {
		c.add("/warm", "only a plugin of kind %s has instances that an example can warm; this one is of kind %s", KindParley,
			c.m.Kind)
	}
	switch script := c.m.Kind == KindScript; {
	case script && c.m.Engine == nil:
		c.add("/engine", "a plugin of kind %s names the plugin that runs it: "+
			`{"name": "js", "version": "1"}`, KindScript)
	case !script && c.m.Engine != nil:
		c.add("/engine", "only a plugin of kind %s has an engine; this one is of kind %s", KindScript, c.m.Kind)
	}
	if c.m.Assets == nil {
		return
	}
	if c.m.Kind == KindScript {
		c.add("/assets", "a plugin of kind %s cannot have assets; put the data into its text", KindScript)
	}
	at := c.m.Assets.Path + "/"
	for i, f := range c.m.Capabilities.FS {
		if folder := path.Clean("/"+f.Path) + "/"; folder != "//" && (strings.HasPrefix(folder, at) ||
			strings.HasPrefix(at, folder)) {
			c.add(fmt.Sprintf("/capabilities/fs/%d/path", i), "%s overlaps the path of the assets, %s", f.Path, c.m.Assets.Path)
		}
	}
	for i := range c.m.Tools {
		if w := c.m.Tools[i].WASI; w != nil && slices.ContainsFunc(w.Files, func(f WASIFile) bool {
			return strings.HasPrefix(path.Clean("/"+f.Path)+"/", at)
		}) {
			c.add(fmt.Sprintf("/tools/%d/wasi/files", i), "a file overlaps the path of the assets, %s", c.m.Assets.Path)
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

// Placeholder matches the {name} of a parameter in the [WASI] part of a tool; the name is the first group.
var Placeholder = lazy.Pattern(`\{([A-Za-z_][A-Za-z0-9_.-]*)\}`)

func (c *checker) checkTool(at string, t *Tool) {
	names := map[string]bool{}
	params := Params(t.Params)
	for _, p := range params {
		names[p.Name] = true
	}
	c.checkHidden(at+"/params", t.Params)
	c.checkHidden(at+"/returns", t.Returns)
	c.checkListing(at+"/params", params)
	c.checkListing(at+"/returns", Params(t.Returns))
	for i, name := range t.Positional {
		if !names[name] {
			c.add(fmt.Sprintf("%s/positional/%d", at, i), "%q is not a parameter of the tool", name)
		}
	}
	if t.Steps != "" && !names[t.Steps] {
		c.add(at+"/steps", "%q is not a parameter of the tool", t.Steps)
	}
	for field, pointers := range map[string][]string{"url": t.URL, "files": t.Files} {
		for i, pointer := range pointers {
			name, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
			if !names[jsontext.UnescapeToken(name)] {
				c.add(fmt.Sprintf("%s/%s/%d", at, field, i), "%q does not point to a parameter of the tool", pointer)
			}
		}
	}
	if len(t.Files) > 0 && t.Reach != "" && t.Reach != ReachMachine {
		c.add(at+"/reach", "a tool whose parameters name files of the host has the reach machine, not %s", t.Reach)
	}
	if t.WASI != nil {
		c.checkWASI(at+"/wasi", t, names)
		if c.m.Kind != KindWASI {
			c.add(at+"/wasi", "only a plugin of kind wasi may have it; this one is of kind %s", c.m.Kind)
		}
	}
	root := readNode(t.Params)
	if kind := root.text("type"); kind != "object" {
		c.add(at+"/params/type", "expected \"object\": parameters are always an object")
		return
	}
	for _, name := range root.at("properties").names() {
		if _, hidden := FirstHidden(name, false); !hidden && CleanLine(name) != name {
			c.add(at+"/params/properties", "the parameter %q cannot be typed as it is shown: it has white space around it, "+
				"or line breaks", name)
		}
	}
	// Schemas of other people's tools are kept unchanged, and are not applied if the host cannot apply them.
	judged := c.m.Kind != KindExtism && !c.m.Derived()
	paramsSchema, err := schema.CompileUntrusted(t.Params)
	if err != nil && judged {
		c.add(at+"/params", "%v", err)
	}
	var returns *schema.Schema
	if err == nil && len(t.Returns) > 0 {
		if returns, err = schema.CompileUntrusted(t.Returns); err != nil && judged {
			c.add(at+"/returns", "%v", err)
		}
	}
	if paramsSchema == nil {
		return
	}
	for i, e := range t.Examples {
		const invalidArgs = 81 // an example with this code shows parameters that the schema or the tool refuses
		pointer := fmt.Sprintf("%s/examples/%d", at, i)
		if e.ExitCode != invalidArgs {
			c.checkExample(pointer+"/params", e.Params, paramsSchema, &e)
		}
		if e.ExitCode == 0 && len(e.Result) > 0 && returns != nil {
			c.checkExample(pointer+"/result", e.Result, returns, &Example{})
		}
	}
}

// checkHidden refuses invisible characters in the parts of a schema that callers repeat: its keys, and the values of
// enum, const and default. Values that look the same must be the same, and the cleaned form that is displayed must
// not differ from what is validated.
func (c *checker) checkHidden(at string, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	doc, err := jsontext.Decode(raw, jsontext.Limits{})
	if err != nil {
		return // compiling the schema reports it
	}
	isRepeated := func(token string) bool { return token == "enum" || token == "const" || token == "default" }
	jsontext.Values(doc, func(tokens []string, value any) {
		object, _ := value.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if r, found := FirstHidden(key, false); found {
				c.add(at+jsontext.Pointer(tokens), "a key has the invisible or control character U+%04X; remove it", r)
			}
		}
		text, _ := value.(string)
		if r, found := FirstHidden(text, false); found && slices.ContainsFunc(tokens, isRepeated) {
			c.add(at+jsontext.Pointer(tokens), "the value has the invisible or control character U+%04X; remove it", r)
		}
	})
}

// maxListing bounds the documentation of a schema, in bytes: a long list of values that many parameters refer to would
// fill an agent's context from a small file.
const maxListing = 64 << 10

func (c *checker) checkListing(at string, params []Param) {
	size := 0
	for _, p := range params {
		if size += len(p.Text()); size > maxListing {
			c.add(at, "its list of %d names takes more than %d bytes of documentation: "+
				"shorten descriptions and lists of values", len(params), maxListing)
			return
		}
	}
}

// checkExample validates the parameters or the result of an example.
func (c *checker) checkExample(at string, data json.RawMessage, against *schema.Schema, e *Example) {
	value, err := jsontext.Decode(data, jsontext.Limits{})
	if err != nil {
		c.add(at, "%v", err)
		return
	}
	violations, err := against.Validate(value)
	if err != nil {
		c.add(at, "%v", err)
	}
	if violations = WithoutReferences(e, violations); len(violations) > 0 {
		v := violations[0]
		c.add(at+v.Pointer, "the example breaks the tool's own schema: expected %s, got %s", v.Expected, v.Provided)
	}
}

func (c *checker) checkWASI(at string, t *Tool, names map[string]bool) {
	w := t.WASI
	if w.Output == "bytes" && readNode(t.Returns).text("contentEncoding") != "base64" {
		c.add(at+"/output", "bytes are a string in base64, and returns does not say so; expected returns "+
			`{"type": "string", "contentEncoding": "base64", "contentMediaType": ".."}`)
	}
	use := func(pointer, text string) {
		for _, match := range Placeholder().FindAllStringSubmatch(text, -1) {
			if !names[match[1]] {
				c.add(pointer, "{%s} is not a parameter of the tool", match[1])
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

// reserved are the present and planned commands of the host. A plugin with such a name could not be called. A test adds
// the name of each command.
//
//go:embed reserved.txt
var reserved string

// builtin are the plugins that are part of the host.
var builtin = []string{"cdp", "page"}

// Builtin reports whether a name belongs to a plugin of [KindBuiltin], ignoring case.
func Builtin(name string) bool { return slices.Contains(builtin, strings.ToLower(name)) }

// Reserved reports whether installed plugins cannot use a name, because a command or a built-in plugin has it,
// ignoring case.
func Reserved(name string) bool {
	return Builtin(name) || slices.Contains(strings.Fields(reserved), strings.ToLower(name))
}

// CompactJSON returns JSON on one line. It returns invalid JSON unchanged.
func CompactJSON(data json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return data
	}
	return b.Bytes()
}
