// Package envelope finds out what a client of MCP means by a call: names with the prefixes of clients, and calls in
// the envelopes of other protocols. The call that it offers instead keeps every value that was given.
package envelope

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// Other names of the members of a call.
var (
	nameAliases      = []string{"tool", "tool_name", "toolName", "function", "method", "command", "cmd"}
	argumentsAliases = []string{"params", "parameters", "input", "args", "argument", "param", "inputs", "kwargs",
		"payload", "body", "cmd_args"}
	optionsAliases = []string{"option", "opts", "call_options"}
)

// The meta-tools, and the tool that runs programs.
const (
	CallTool     = "call_tool" // calls other tools
	DescribeTool = "describe_tool"
	SearchTools  = "search_tools"
	CodeTool     = "js.run"
)

// Reader reads the calls of clients of one catalog. It is safe for concurrent use.
type Reader struct {
	Host *call.Host
	// Metas are the schemas of the arguments of the tools that the server itself runs, by name.
	Metas map[string]*schema.Schema
}

// Qualified returns the name that the catalog has for a tool, also if it is given with a client's prefix.
func (r *Reader) Qualified(name string) string {
	listed := CatalogName(r.Host.Catalog(), name)
	if rest, ok := withoutPrefix(name); ok && !r.exists(name) && r.exists(CatalogName(r.Host.Catalog(), rest)) {
		listed = CatalogName(r.Host.Catalog(), rest)
	}
	return listed
}

// Find returns a tool of the catalog by its qualified name.
func (r *Reader) Find(name string) (host.Address, bool) {
	at, err := r.Host.Catalog().Find(name)
	return at, err == nil && at.Tool != nil
}

func (r *Reader) exists(name string) bool {
	_, ok := r.Find(name)
	return ok
}

// meant is a call of call_tool as it was probably meant.
type meant struct {
	tool      string         // qualified, or the name of a meta-tool
	arguments map[string]any // arguments of the tool
	options   map[string]any
	changes   []schema.Change
	template  bool   // something is missing
	see       string // the nearest tool, if none does what was meant
	destroys  bool
}

// value returns the arguments of call_tool.
func (e *meant) value(dryRun bool) json.RawMessage {
	options := map[string]any{}
	maps.Copy(options, e.options)
	if dryRun {
		options["dry_run"] = true
	}
	v := map[string]any{"name": e.tool, "arguments": e.arguments}
	if len(options) > 0 {
		v["options"] = options
	}
	return jsontext.Marshal(v)
}

// Teach adds to the error of a meta-tool's arguments what they were meant to be and what to do next. It returns the
// whole corrected call: the meta-tool, "" if there is none, and its arguments.
func (r *Reader) Teach(tool string, arguments json.RawMessage, e *host.Error) (string, json.RawMessage) {
	if tool != CallTool {
		if e.Corrected != nil {
			return tool, e.Corrected
		}
		var given struct{ Name string }
		if _ = json.Unmarshal(arguments, &given); given.Name != "" {
			e.Steps = append(e.Steps, step.Describe(r.Qualified(given.Name), 0))
		}
		return "", nil
	}
	corrected, changes := e.Corrected, e.Changes
	if corrected != nil || e.Code != host.InvalidArgs {
		e.Template, e.Changes = nil, nil
	}
	e.Corrected, e.Retry = nil, nil
	c, ok := r.correctArguments(arguments)
	if !ok && c != nil && c.see != "" {
		e.Steps = append([]step.Step{step.Describe(c.see, 0)}, e.Steps...)
	}
	if !ok && corrected != nil { // not only the places of the values are wrong
		if c, ok = r.correctArguments(corrected); ok {
			made := c.changes
			c.changes = changes
			for _, change := range made {
				c.change(change)
			}
		}
	}
	if !ok || len(c.changes) == 0 {
		return "", nil
	}
	e.Template, e.Changes = nil, c.changes
	for i, d := range e.Details {
		if s := c.suggestion(d.Parameter); s != "" {
			e.Details[i].Suggestion = step.TextSuggestion(s)
		}
	}
	switch {
	case r.isMeta(c.tool):
		e.Corrected = jsontext.Marshal(c.arguments)
		return c.tool, e.Corrected
	case c.template:
		e.Template = c.value(false)
		e.Steps = append(e.Steps, step.Describe(c.tool, 0))
		return "", nil
	}
	e.Corrected = c.value(false)
	return CallTool, c.value(c.destroys)
}

// correctArguments is correctEnvelope for arguments as they were given.
func (r *Reader) correctArguments(raw json.RawMessage) (*meant, bool) {
	value, err := jsontext.Decode(raw, jsontext.Limits{Bytes: host.MaxParams})
	object, isObject := value.(map[string]any)
	if err != nil || !isObject {
		return nil, false
	}
	return r.correctEnvelope(object)
}

// change adds a change of the result of earlier changes, as a change of what was given.
func (e *meant) change(c schema.Change) {
	if c.How != schema.OnlyValue {
		for i := len(e.changes) - 1; i >= 0; i-- {
			earlier := e.changes[i]
			if earlier.How == schema.Dropped || earlier.How == schema.OnlyValue || !jsontext.IsWithin(c.From, earlier.To) {
				continue
			}
			left := c.How == schema.Dropped || !jsontext.IsWithin(c.To, earlier.To)
			if c.From = earlier.From + c.From[len(earlier.To):]; left && c.How != schema.Coerced && c.How != schema.Parsed {
				e.changes = slices.Delete(e.changes, i, i+1) // the value is no longer there
			}
			break
		}
	}
	e.changes = append(e.changes, c)
}

// shifted returns a change within a value with pointers into the whole call: from is the pointer to the value in the
// call that was given, and to in the call that was meant.
func shifted(c schema.Change, from, to string) schema.Change {
	if c.How != schema.OnlyValue {
		c.From = from + c.From
	}
	if c.How != schema.Dropped {
		c.To = to + c.To
	}
	return c
}

func (e *meant) suggestion(pointer string) string {
	for _, c := range e.changes {
		name, to := manifest.CleanLine(strings.TrimPrefix(c.From, "/")), manifest.CleanLine(strings.TrimPrefix(c.To, "/"))
		switch {
		case c.How == schema.Unwrapped && strings.HasPrefix(c.From, pointer+"/"):
			return "move what is in " + manifest.CleanLine(pointer[1:]) + " to arguments"
		case c.From != pointer:
		case c.How == schema.Renamed:
			return "rename " + name + " to " + to
		case c.How == schema.Moved:
			return "move " + name + " to " + to
		}
	}
	return ""
}

func (r *Reader) isMeta(name string) bool {
	_, ok := r.Metas[name]
	return ok
}

// separators stand between a client's prefix of a name and the name: mcp__parley__call_tool, parley/call_tool.
const separators = "_./: "

// MetaTool returns the meta-tool that a name means, with any prefix of a client, "" if it means none or is the name of
// a tool.
func (r *Reader) MetaTool(name string) string {
	if _, isTool := r.Find(r.Qualified(name)); isTool {
		return ""
	}
	if name == "tools/call" { // the method
		return CallTool
	}
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for meta := range r.Metas {
		prefix, ok := strings.CutSuffix(name, meta)
		if ok && (prefix == "" || strings.Contains(separators, prefix[len(prefix)-1:])) {
			return meta
		}
	}
	return ""
}

// clientPrefix is what clients and models put before the name of a tool of this server.
var clientPrefix = lazy.Pattern(`(?i)^(functions?[./:]+)?(mcp__[a-z0-9-]+__|(mcp[_./:]+)?parley[_./:]+|functions?[./:]+)`)

// withoutPrefix returns the name of a tool without a client's prefix, and whether there was one.
func withoutPrefix(name string) (string, bool) {
	prefix := clientPrefix().FindString(name)
	return strings.ReplaceAll(name[len(prefix):], "/", "."), prefix != "" && len(prefix) < len(name)
}

// protocols are the members that name the protocol of a call, with their values. An id may be beside them.
var protocols = map[string][]string{"jsonrpc": {"2.0"}, "server": {"parley"}, "server_name": {"parley"},
	"type": {"function", "function_call", "tool_use", "tool_call"}}

// correctEnvelope returns a call of call_tool as it was probably meant: nothing is dropped. It reports false if it
// does not know which tool is meant.
func (r *Reader) correctEnvelope(given map[string]any) (*meant, bool) {
	e := &meant{arguments: map[string]any{}}
	left := maps.Clone(given)
	for key, values := range protocols {
		if text, _ := left[key].(string); slices.Contains(values, text) {
			delete(left, key)
			delete(left, "id")
		}
	}
	name, _ := left["name"].(string)
	nameKey := "name"
	if name == "" {
		nameKey, name = takeText(left, nameAliases)
	}
	if name == "" {
		// The whole call is inside one of its members.
		options, _ := left["options"].(map[string]any)
		delete(left, "options")
		for key, inner := range left {
			if list, ok := inner.([]any); ok && len(list) == 1 {
				key, inner = key+"/0", list[0]
			}
			if inner, ok := inner.(map[string]any); ok && len(left) == 1 {
				e, ok := r.correctEnvelope(inner)
				if ok {
					e.setOptions(options, "/options")
					for i := range e.changes {
						if e.changes[i].How != schema.OnlyValue {
							e.changes[i].From = "/" + key + e.changes[i].From
						}
					}
					e.changes = append(e.changes, schema.Change{From: "/" + key, To: "", How: schema.Unwrapped})
				}
				return e, ok
			}
		}
		return nil, false
	}
	delete(left, nameKey)
	if nameKey != "name" {
		e.changes = append(e.changes, schema.Change{From: "/" + nameKey, To: "/name", How: schema.Renamed})
	}
	var known []manifest.Param
	isPeer, isSent := false, false
	if e.tool = r.MetaTool(name); e.tool == "" {
		at, ok := r.Find(r.Qualified(name))
		if isPeer = !ok; ok {
			e.tool, known = at.Name(), manifest.Params(at.Tool.Params)
		} else {
			isSent = !r.Host.Names().Knows(name)
		}
		same := r.Qualified(name) == e.tool || strings.EqualFold(strings.ReplaceAll(name, "__", "."), e.tool)
		switch {
		case isPeer:
			e.changes = append(e.changes, schema.Change{From: "/" + nameKey, To: "/name", How: schema.Renamed})
		case !same:
			e.changes = append(e.changes, schema.Change{From: "/" + nameKey, To: "/name", How: schema.Coerced})
		}
	}
	e.takeArguments(left, known)
	e.takeOptions(left, known)
	// What is left are arguments beside the name.
	for _, key := range slices.Sorted(maps.Keys(left)) {
		token := "/" + jsontext.EscapeToken(key)
		if _, taken := e.arguments[key]; taken {
			e.changes = append(e.changes, schema.Change{From: token, How: schema.Dropped})
			e.template = true
			continue
		}
		e.arguments[key] = left[key]
		e.changes = append(e.changes, schema.Change{From: token, To: "/arguments" + token, How: schema.Moved})
	}
	if isSent {
		return r.correctSent(name, e)
	} else if isPeer {
		all, see := r.Host.Names().Meant(name, e.arguments, nil)
		if e.see = see; len(all) == 0 || all[0].File != "" {
			return e, false
		}
		e.tool, e.arguments = all[0].Tool, all[0].Params
		for _, c := range all[0].Changes {
			e.change(shifted(c, "/arguments", "/arguments"))
		}
	}
	return r.correctInner(e)
}

// correctSent is correctEnvelope for a call of a plugin, or of an unknown tool, that has the call of a tool among its
// arguments: {"name": "cdp.send", "arguments": {"method": "Page.navigate", "params": {}}}.
func (r *Reader) correctSent(name string, e *meant) (*meant, bool) {
	plugin, _, _ := strings.Cut(r.Qualified(name), ".")
	key, tool := takeText(e.arguments, append([]string{"name"}, nameAliases...))
	if _, isPlugin := r.Host.Catalog().Provider(plugin); !isPlugin { // the only plugin with that tool
		plugin = ""
		for _, p := range r.Host.Catalog().Providers() {
			if own := p.Info().Name; r.exists(own + "." + strings.TrimPrefix(tool, own+".")) {
				if plugin != "" {
					return nil, false
				}
				plugin = own
			}
		}
	}
	if plugin == "" || key == "" {
		return nil, false
	}
	e.arguments[key] = plugin + "." + strings.TrimPrefix(tool, plugin+".")
	inner, ok := r.correctEnvelope(e.arguments)
	if ok {
		inner.options = e.options
		inner.changes = append(inner.changes, schema.Change{From: "/arguments", To: "", How: schema.Unwrapped})
	}
	return inner, ok
}

// otherMetas are names of other servers and modes for what the meta-tools and js.run do.
var otherMetas = map[string]string{
	"find_tools": SearchTools, "list_tools": SearchTools, "tool_search": SearchTools, "search": SearchTools,
	"search_tool": SearchTools, "tools/list": SearchTools,
	"get_tool": DescribeTool, "get_tool_schema": DescribeTool, "describe": DescribeTool,
	"code": CodeTool, "execute": CodeTool, "execute_code": CodeTool, "run_javascript": CodeTool, "run_code": CodeTool,
	"execute_tool": CallTool, "invoke_tool": CallTool, "use_tool": CallTool, "call": CallTool, "run_tool": CallTool,
}

// TeachName adds to the error of a tool that does not exist the call that its name and arguments mean.
func (r *Reader) TeachName(name string, arguments json.RawMessage, e *host.Error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	if other := otherMetas[strings.ToLower(name)]; r.isMeta(other) || r.exists(other) {
		e.DidYouMean, e.Steps, name = nil, nil, other
		e.Message += "; the tool " + other + " does that"
	}
	raw, _ := manifest.Marshal(map[string]any{"name": name, "arguments": arguments})
	c, ok := r.correctArguments(raw)
	switch {
	case ok && c.tool == DescribeTool:
		e.Steps = []step.Step{step.Describe(r.Qualified(fmt.Sprint(c.arguments["name"])), 0)}
	case ok && c.tool == SearchTools:
		queries, _ := c.arguments["queries"].([]any)
		for _, query := range append(queries, c.arguments["query"]) {
			if text, isText := query.(string); isText {
				e.Steps = append(e.Steps, step.Search(text))
			}
		}
	case c == nil || !ok && c.see == "" || r.isMeta(c.tool):
	case !ok || c.template:
		e.Steps = append([]step.Step{step.Describe(cmp.Or(c.see, c.tool), 0)}, e.Steps...)
	default:
		next := step.Call(c.tool, jsontext.Marshal(c.arguments))
		next.Options.DryRun = c.destroys
		e.Retry, e.Steps = &next, append([]step.Step{next}, e.Steps...)
	}
}

// correctInner corrects the arguments for the tool itself.
func (r *Reader) correctInner(e *meant) (*meant, bool) {
	if e.tool == CallTool {
		inner, ok := r.correctEnvelope(e.arguments)
		if ok {
			inner.changes = append(inner.changes, schema.Change{From: "/arguments", To: "", How: schema.Unwrapped})
		}
		return inner, ok
	}
	var invalid *host.Error
	within := "/arguments" // where the arguments of the tool are
	raw := json.RawMessage(jsontext.Marshal(e.arguments))
	if s, isMeta := r.Metas[e.tool]; isMeta {
		_, _, invalid = advice.CheckValues(e.tool, s, raw)
		if invalid != nil && invalid.Corrected == nil {
			return nil, false
		}
		within = ""
		e.changes = append(e.changes, schema.Change{From: "/arguments", To: "", How: schema.Unwrapped})
	} else {
		at, ok := r.Find(e.tool)
		e.destroys = ok && at.Tool.Effect == manifest.EffectDestructive
		invalid = advice.CheckCall(r.Host.Names(), host.Call{Name: e.tool, Params: raw})
	}
	if invalid == nil {
		return e, true
	}
	meant := invalid.Corrected
	if meant == nil {
		meant, e.template = invalid.Template, true
	}
	for _, c := range invalid.Changes {
		if option, moved := strings.CutPrefix(c.To, "options."); moved {
			c.To = "/options/" + option
			if value, ok := e.arguments[strings.TrimPrefix(c.From, "/")]; ok {
				e.setOptions(map[string]any{strings.TrimPrefix(c.From, "/"): value}, "/arguments")
			}
			continue
		}
		e.change(shifted(c, "/arguments", within))
	}
	if value, err := jsontext.Decode(meant, jsontext.Limits{}); err == nil {
		if object, ok := value.(map[string]any); ok {
			e.arguments = object
		}
	}
	return e, true
}

// takeText removes the text of the only one of some names that is given, and returns both.
func takeText(given map[string]any, names []string) (key, text string) {
	for _, name := range names {
		if value, ok := given[name].(string); ok && value != "" {
			if key != "" {
				return "", ""
			}
			key, text = name, value
		}
	}
	return key, text
}

// takeArguments takes the arguments of the tool, whatever they are called. A name that the tool itself has is an
// argument beside the name, unless it holds an object of arguments where the tool requires something else.
func (e *meant) takeArguments(left map[string]any, known []manifest.Param) {
	for _, key := range append([]string{"arguments"}, argumentsAliases...) {
		value, given := left[key]
		object, isObject := value.(map[string]any)
		how := schema.Renamed
		if text, ok := value.(string); ok && jsontext.LooksLikeJSON(text) {
			if raw, ok := jsontext.Repair(text); ok {
				isObject = json.Unmarshal(raw, &object) == nil
				how = schema.Parsed
			}
		}
		if list, ok := value.([]any); ok && len(list) == 1 {
			if object, isObject = list[0].(map[string]any); isObject {
				how = schema.Unwrapped
			}
		}
		if !given || !isObject && (key != "arguments" || value != nil) ||
			key != "arguments" && has(known, key) && !holdsArguments(known, key, object) {
			continue
		}
		delete(left, key)
		if key != "arguments" || how != schema.Renamed && isObject {
			e.changes = append(e.changes, schema.Change{From: "/" + key, To: "/arguments", How: how})
		}
		for name, v := range object {
			if _, taken := e.arguments[name]; !taken {
				e.arguments[name] = v
			}
		}
		return
	}
}

// takeOptions takes the options, also those beside the name unless the tool has a parameter of that name.
func (e *meant) takeOptions(left map[string]any, known []manifest.Param) {
	for _, key := range append([]string{"options"}, optionsAliases...) {
		options, ok := left[key].(map[string]any)
		if value, given := left[key]; given && value == nil && key == "options" {
			delete(left, key)
		}
		if !ok || key != "options" && has(known, key) {
			continue
		}
		delete(left, key)
		if key != "options" {
			e.changes = append(e.changes, schema.Change{From: "/" + key, To: "/options", How: schema.Renamed})
		}
		options = maps.Clone(options)
		for _, name := range slices.Sorted(maps.Keys(options)) { // a parameter of the tool
			if _, taken := e.arguments[name]; option.Named(name) == "" && has(known, name) && !taken {
				token := "/" + jsontext.EscapeToken(name)
				e.arguments[name] = options[name]
				e.changes = append(e.changes, schema.Change{From: "/" + key + token, To: "/arguments" + token, How: schema.Moved})
				delete(options, name)
			}
		}
		e.setOptions(options, "/"+key)
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		if option.Is(key) && !has(known, key) {
			e.setOptions(map[string]any{key: left[key]}, "")
			delete(left, key)
		}
	}
}

// setOptions adds options that were given as members of the object at a pointer.
func (e *meant) setOptions(given map[string]any, at string) {
	c := advice.CorrectOptions(given)
	e.template = e.template || !c.Complete
	moved := at != "/options"
	for name := range given {
		if _, same := c.Value.(map[string]any)[name]; same && moved {
			token := "/" + jsontext.EscapeToken(name)
			e.changes = append(e.changes, schema.Change{From: at + token, To: "/options" + token, How: schema.Moved})
		}
	}
	for _, change := range c.Changes {
		e.changes = append(e.changes, shifted(change, at, "/options"))
	}
	if e.options == nil {
		e.options = map[string]any{}
	}
	if object, ok := c.Value.(map[string]any); ok {
		maps.Copy(e.options, object)
	}
}

// has reports whether a tool has a parameter.
func has(params []manifest.Param, name string) bool {
	return slices.ContainsFunc(params, func(p manifest.Param) bool { return p.Name == name })
}

// holdsArguments reports whether the object in the place of a parameter holds parameters of the tool.
func holdsArguments(params []manifest.Param, name string, object map[string]any) bool {
	for _, p := range params {
		if p.Name == name && (strings.Contains(p.Type, "object") || p.Type == "any") {
			return false
		}
	}
	return slices.ContainsFunc(params, func(p manifest.Param) bool { return object[p.Name] != nil })
}

// maxName bounds the name of a tool, in bytes. Model APIs refuse names of more than 64, and clients use some of these
// for a prefix such as mcp__parley__.
const maxName = 64 - len("mcp__parley__")

// ListedName returns the name that tools/list has for a tool. Model APIs refuse dots, so each becomes "__". A name that
// is too long is cut and ends in a hash.
func ListedName(qualified string) string {
	name := strings.ReplaceAll(qualified, ".", "__")
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(qualified))
	return name[:maxName-9] + "_" + hex.EncodeToString(sum[:4])
}

// CatalogName returns the name that the catalog has for a tool of tools/list. The catalog itself accepts "__" for dots,
// so only names that [ListedName] had to cut need a search.
func CatalogName(catalog *host.Catalog, name string) string {
	if len(name) != maxName {
		return name
	}
	for _, p := range catalog.Providers() {
		if !strings.HasPrefix(strings.ToLower(name), strings.ToLower(p.Info().Name)+"__") {
			continue
		}
		names, _ := p.Names()
		for _, n := range names {
			if q := p.Info().Name + "." + n; ListedName(q) == name {
				return q
			}
		}
	}
	return name
}
