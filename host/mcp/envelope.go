package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// Other names of the members of a call.
var (
	nameAliases      = []string{"tool", "tool_name", "toolName", "function", "method", "command"}
	argumentsAliases = []string{"params", "parameters", "input", "args", "argument", "param", "inputs", "kwargs",
		"payload", "body"}
	optionsAliases = []string{"option", "opts", "call_options"}
)

// envelope is a call of call_tool as it was probably meant.
type envelope struct {
	tool      string         // qualified, or the name of a meta-tool
	arguments map[string]any // of the tool
	options   map[string]any
	changes   []host.Change
	template  bool // something is missing
	destroys  bool
}

// value returns the arguments of call_tool.
func (e *envelope) value(dryRun bool) map[string]any {
	v := map[string]any{"name": e.tool, "arguments": e.arguments}
	options := maps.Clone(e.options)
	if dryRun {
		if options == nil {
			options = map[string]any{}
		}
		options["dry_run"] = true
	}
	if len(options) > 0 {
		v["options"] = options
	}
	return v
}

// teach adds to the error of a meta-tool's arguments what they were meant to be and what to do next. It returns the
// whole corrected call, or nil.
func (m *modeServer) teach(tool string, arguments json.RawMessage, e *host.Error) *nextCall {
	var given struct{ Name string }
	_ = json.Unmarshal(arguments, &given)
	if tool != callTool {
		if e.Corrected != nil {
			return &nextCall{Tool: tool, Arguments: e.Corrected}
		}
		if given.Name != "" {
			e.Steps = append(e.Steps, host.DescribeStep(m.qualified(given.Name), 0))
		}
		return nil
	}
	e.Corrected, e.Template, e.Changes, e.Retry = nil, nil, nil, nil
	value, err := jsontext.Decode(arguments, jsontext.Limits{Bytes: host.MaxParams})
	object, isObject := value.(map[string]any)
	if err != nil || !isObject {
		return nil
	}
	c, ok := m.correctEnvelope(object)
	if !ok || len(c.changes) == 0 {
		return nil
	}
	e.Changes = c.changes
	for i, d := range e.Details {
		if s := c.suggestion(d.Parameter); s != "" {
			e.Details[i].Suggestion = host.TextSuggestion(s)
		}
	}
	if isMetaTool(c.tool) {
		e.Corrected = jsontext.Marshal(c.arguments)
		return &nextCall{Tool: c.tool, Arguments: e.Corrected}
	}
	if c.template {
		e.Template = jsontext.Marshal(c.value(false))
		e.Steps = append(e.Steps, host.DescribeStep(c.tool, 0))
		return nil
	}
	e.Corrected = jsontext.Marshal(c.value(false))
	return &nextCall{Tool: callTool, Arguments: json.RawMessage(jsontext.Marshal(c.value(c.destroys)))}
}

func (e *envelope) suggestion(pointer string) string {
	for _, c := range e.changes {
		name, to := manifest.CleanLine(strings.TrimPrefix(c.From, "/")), manifest.CleanLine(strings.TrimPrefix(c.To, "/"))
		switch {
		case c.From != pointer:
		case c.How == schema.Renamed:
			return "rename " + name + " to " + to
		case c.How == schema.Moved:
			return "move " + name + " to " + to
		}
	}
	return ""
}

func isMetaTool(name string) bool {
	return slices.ContainsFunc(metaTools(), func(t metaTool) bool { return t.name == name })
}

// metaToolNamed returns the meta-tool that a name means, "" if it means none.
func metaToolNamed(name string) string {
	name = strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "parley."), "-", "_"))
	if isMetaTool(name) {
		return name
	}
	return ""
}

// correctEnvelope returns a call of call_tool as it was probably meant: nothing is dropped. It reports false where it
// does not know which tool is meant.
func (m *modeServer) correctEnvelope(given map[string]any) (*envelope, bool) {
	e := &envelope{arguments: map[string]any{}}
	left := maps.Clone(given)
	name, _ := left["name"].(string)
	nameKey := "name"
	if name == "" {
		nameKey, name = takeText(left, nameAliases)
	}
	if name == "" {
		// The whole call is inside one of its members.
		for key, inner := range left {
			if inner, ok := inner.(map[string]any); ok && len(left) == 1 {
				e, ok := m.correctEnvelope(inner)
				if ok {
					for i := range e.changes {
						if e.changes[i].How != schema.OnlyValue {
							e.changes[i].From = "/" + key + e.changes[i].From
						}
					}
					e.changes = append(e.changes, host.Change{From: "/" + key, To: "", How: schema.Unwrapped})
				}
				return e, ok
			}
		}
		return nil, false
	}
	delete(left, nameKey)
	if nameKey != "name" {
		e.changes = append(e.changes, host.Change{From: "/" + nameKey, To: "/name", How: schema.Renamed})
	}
	if e.tool = metaToolNamed(name); e.tool == "" {
		tool, ok := m.nearestCallable(name)
		if !ok {
			return nil, false
		}
		if e.tool = tool; m.qualified(name) != tool && !strings.EqualFold(strings.ReplaceAll(name, "__", "."), tool) {
			e.changes = append(e.changes, host.Change{From: "/" + nameKey, To: "/name", How: schema.Coerced})
		}
	}
	known := m.paramsOf(e.tool)
	e.takeArguments(left, known)
	e.takeOptions(left, known)
	// What is left are arguments beside the name.
	for _, key := range slices.Sorted(maps.Keys(left)) {
		token := "/" + jsontext.EscapeToken(key)
		if _, taken := e.arguments[key]; taken {
			e.changes = append(e.changes, host.Change{From: token, How: schema.Dropped})
			e.template = true
			continue
		}
		e.arguments[key] = left[key]
		e.changes = append(e.changes, host.Change{From: token, To: "/arguments" + token, How: schema.Moved})
	}
	return m.correctInner(e)
}

// correctInner corrects the arguments for the tool itself.
func (m *modeServer) correctInner(e *envelope) (*envelope, bool) {
	if e.tool == callTool {
		inner, ok := m.correctEnvelope(e.arguments)
		if ok {
			inner.changes = append(inner.changes, host.Change{From: "/arguments", To: "", How: schema.Unwrapped})
		}
		return inner, ok
	}
	var invalid *host.Error
	within := "/arguments" // where the arguments of the tool are
	raw := json.RawMessage(jsontext.Marshal(e.arguments))
	if i := slices.IndexFunc(metaTools(), func(t metaTool) bool { return t.name == e.tool }); i >= 0 {
		if s, err := metaTools()[i].validatedSchema(); err == nil {
			_, _, invalid = host.CheckParams(e.tool, s, raw)
		}
		if invalid != nil && invalid.Corrected == nil {
			return nil, false
		}
		within = ""
		e.changes = append(e.changes, host.Change{From: "/arguments", To: "", How: schema.Unwrapped})
	} else {
		at, err := m.cfg.Host.Catalog().Find(e.tool)
		e.destroys = err == nil && at.Tool != nil && at.Tool.Effect == manifest.EffectDestructive
		invalid = m.cfg.Host.CheckCall(host.Call{Name: e.tool, Params: raw})
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
		if c.How != schema.OnlyValue {
			c.From = "/arguments" + c.From
		}
		if c.How != schema.Dropped {
			c.To = within + c.To
		}
		e.changes = append(e.changes, c)
	}
	if value, err := jsontext.Decode(meant, jsontext.Limits{}); err == nil {
		if object, ok := value.(map[string]any); ok {
			e.arguments = object
		}
	}
	return e, true
}

// takeText removes and returns the text of the only of some names that is given.
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

// takeArguments takes the arguments of the tool, whatever they are called. Names that the tool itself has are arguments
// beside the name, unless they hold an object.
func (e *envelope) takeArguments(left map[string]any, known []string) {
	for _, key := range append([]string{"arguments"}, argumentsAliases...) {
		value, given := left[key]
		object, isObject := value.(map[string]any)
		how := schema.Renamed
		if text, ok := value.(string); ok && strings.HasPrefix(strings.TrimSpace(text), "{") {
			if parsed, err := jsontext.Decode([]byte(text), jsontext.Limits{}); err == nil {
				object, isObject = parsed.(map[string]any)
				how = schema.Parsed
			}
		}
		if list, ok := value.([]any); ok && len(list) == 1 {
			if object, isObject = list[0].(map[string]any); isObject {
				how = schema.Unwrapped
			}
		}
		if !given || !isObject && (key != "arguments" || value != nil) || key != "arguments" && slices.Contains(known, key) {
			continue
		}
		delete(left, key)
		if key != "arguments" || how != schema.Renamed && isObject {
			e.changes = append(e.changes, host.Change{From: "/" + key, To: "/arguments", How: how})
		}
		for name, v := range object {
			if _, taken := e.arguments[name]; !taken {
				e.arguments[name] = v
			}
		}
		return
	}
}

// takeOptions takes the options, and those that are beside the name, unless the tool has a parameter of that name.
func (e *envelope) takeOptions(left map[string]any, known []string) {
	for _, key := range append([]string{"options"}, optionsAliases...) {
		options, ok := left[key].(map[string]any)
		if value, given := left[key]; given && value == nil && key == "options" {
			delete(left, key)
		}
		if !ok || key != "options" && slices.Contains(known, key) {
			continue
		}
		delete(left, key)
		if key != "options" {
			e.changes = append(e.changes, host.Change{From: "/" + key, To: "/options", How: schema.Renamed})
		}
		e.setOptions(options, "/"+key)
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		if host.IsOption(key) && !slices.Contains(known, key) {
			e.setOptions(map[string]any{key: left[key]}, "")
			delete(left, key)
		}
	}
}

// setOptions adds options that were given as members of the object at a pointer.
func (e *envelope) setOptions(given map[string]any, at string) {
	c := host.CorrectOptions(given)
	e.template = e.template || !c.Complete
	moved := at != "/options"
	for name := range given {
		if _, same := c.Value.(map[string]any)[name]; same && moved {
			token := "/" + jsontext.EscapeToken(name)
			e.changes = append(e.changes, host.Change{From: at + token, To: "/options" + token, How: schema.Moved})
		}
	}
	for _, change := range c.Changes {
		if change.How != schema.OnlyValue {
			change.From = at + change.From
		}
		if change.How != schema.Dropped {
			change.To = "/options" + change.To
		}
		e.changes = append(e.changes, change)
	}
	if e.options == nil {
		e.options = map[string]any{}
	}
	if object, ok := c.Value.(map[string]any); ok {
		maps.Copy(e.options, object)
	}
}

// nearestCallable returns the qualified name of a tool by a name of it: its own, or one at distance 0.
func (m *modeServer) nearestCallable(name string) (string, bool) {
	catalog := m.cfg.Host.Catalog()
	at, err := catalog.Find(m.qualified(name))
	if err != nil {
		near := host.AsError(err).DidYouMean
		if len(near) == 0 || near[0].Distance != 0 || len(near) > 1 && near[1].Distance == 0 {
			return "", false
		}
		at, err = catalog.Find(near[0].Name)
	}
	if err != nil || at.Tool == nil {
		return "", false
	}
	return at.Name(), true
}

// paramsOf returns the names of a tool's parameters.
func (m *modeServer) paramsOf(name string) (names []string) {
	at, err := m.cfg.Host.Catalog().Find(name)
	if err != nil || at.Tool == nil {
		return nil
	}
	for _, p := range manifest.Params(at.Tool.Params) {
		names = append(names, p.Name)
	}
	return names
}
