package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

func checkFlow(l *linter, at string, t *manifest.Tool) {
	for i, name := range t.Needs {
		l.checkBefore(fmt.Sprintf("%s/needs/%d", at, i), name, "")
	}
	for _, f := range paramsOf(t) {
		sources, given := f.schema["x-from"]
		if !given {
			continue
		}
		pointer := at + f.pointer + "/x-from"
		list, ok := sources.([]any)
		if !ok {
			l.add(pointer, "the sources of %q are not a list; expected one such as [\"plugin.tool/field\"]", f.name)
			continue
		}
		for i, one := range list {
			from, _ := one.(string)
			tool, result, ok := manifest.SplitSource(from)
			if !ok {
				l.add(fmt.Sprintf("%s/%d", pointer, i), "%s is not a source; expected plugin.tool/field", quoted(fmt.Sprint(one)))
				continue
			}
			l.checkBefore(fmt.Sprintf("%s/%d", pointer, i), tool, result)
		}
	}
	for i, e := range t.Examples {
		for j, b := range e.Before {
			l.checkBefore(fmt.Sprintf("%s/examples/%d/before/%d/tool", at, i, j), b.Tool, "")
		}
	}
}

// checkBefore checks that a tool exists, and that its result has the field at a JSON pointer, if that is not "". A
// host has this plugin, the shipped ones, and those that this plugin has a right to call.
func (l *linter) checkBefore(pointer, name, result string) {
	plugin, local, _ := strings.Cut(name, ".")
	tool := l.m.Tool(local)
	if !sameName(plugin, l.m.Name) {
		named := slices.ContainsFunc(l.m.Capabilities.Tools, func(c manifest.NamedCapability) bool {
			asked, _, _ := strings.Cut(c.Name, ".")
			return sameName(asked, plugin)
		})
		other := l.plugin(plugin)
		switch {
		case len(l.others) == 0 || other == nil && named:
			return // the tool may exist on the host
		case !named && (other == nil || !other.Shipped):
			l.add(pointer, "%s is of a plugin that may be missing; name it in capabilities.tools, or leave it out", quoted(name))
			return
		}
		tool = other.tool(local)
	}
	if tool == nil {
		l.add(pointer, "there is no tool %s", quoted(name))
	} else if tokens, ok := jsontext.SplitPointer(result); !ok || !hasField(schemaNode(tool.Returns), tokens) {
		l.add(pointer, "the result of %s has no %s", quoted(name), quoted(result))
	}
}

// hasField reports whether a value that matches a schema can have the field at the tokens of a pointer.
func hasField(root any, tokens []string) bool {
	at, seen := root, []string(nil)
	for _, token := range tokens {
		var s map[string]any
		s, seen = schema.Resolve(root, at, seen)
		properties, _ := s["properties"].(map[string]any)
		next, declared := properties[token]
		if _, err := strconv.Atoi(token); err == nil && s["items"] != nil {
			next, declared = s["items"], true
		}
		if !declared {
			return len(properties) == 0 && s["items"] == nil // the schema does not say
		}
		at = next
	}
	return true
}
