package build

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// extismTool is a tool as an Extism plugin lists it.
type extismTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  struct {
		ReadOnly    bool  `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
	} `json:"annotations"`
}

// extismManifest returns the manifest of an Extism plugin, as JSON: what it lists. It asks for no right, since the
// plugin does not say which it needs.
func extismManifest(ctx context.Context, app *command.App, o pluginWrapOptions, code []byte, name string) ([]byte,
	error) {
	if o.Tool != "" || o.Stdin != "" || o.Output != "" || o.MIME != "" || len(o.Words)+len(o.Files)+len(o.Env) > 0 {
		return nil, host.Errorf(host.InvalidArgs, "%s is an Extism plugin, which lists its tools itself; expected no option "+
			"but --name, --effect, --brief and --out", manifest.CleanLine(o.Path)).
			WithSteps(host.OperatorStep(host.OpHelp, "plugin wrap"))
	}
	listed, err := extismTools(ctx, app, o.Path, code, name)
	if err != nil {
		return nil, err
	}
	tools, groups := []any{}, []any{}
	named := map[string]bool{}
	for _, t := range listed {
		brief, rest := splitBrief(strings.TrimSpace(t.Description))
		docs := map[string]any{"brief": cmp.Or(brief, "Call "+t.Name)}
		if rest != "" {
			docs["standard"] = rest
		}
		if group, _, ok := strings.Cut(t.Name, "."); ok && !named[group] {
			named[group] = true
			groups = append(groups, map[string]any{"name": group, "docs": map[string]any{"brief": "Tools of " + group}})
		}
		params := t.InputSchema
		if len(params) == 0 {
			params = json.RawMessage(`{"type":"object"}`)
		}
		returns := json.RawMessage("{}")
		if len(t.OutputSchema) > 0 {
			returns = t.OutputSchema
		}
		tools = append(tools, map[string]any{"name": t.Name, "docs": docs, "params": params, "returns": returns,
			"effect": cmp.Or(o.Effect, t.effect())})
	}
	return json.MarshalIndent(map[string]any{
		"manifest": 1, "name": name, "version": "0.1.0", "kind": manifest.KindMCP,
		"docs": map[string]any{"brief": cmp.Or(o.Brief, "Tools of "+name)}, "groups": groups, "tools": tools,
	}, "", " ")
}

// effect is what the plugin says of the tool. What says nothing may write, as in MCP.
func (t *extismTool) effect() string {
	switch {
	case t.Annotations.ReadOnly:
		return manifest.EffectRead
	case t.Annotations.Destructive != nil && *t.Annotations.Destructive:
		return manifest.EffectDestructive
	}
	return manifest.EffectWrite
}

// extismTools asks the plugin for its tools, in the sandbox, without rights.
func extismTools(ctx context.Context, app *command.App, path string, code []byte, name string) ([]extismTool, error) {
	probe := jsontext.Marshal(map[string]any{
		"manifest": 1, "name": name, "version": "0.0.0", "kind": manifest.KindMCP, "docs": map[string]any{"brief": "List"},
		"tools": []any{map[string]any{"name": "list", "docs": map[string]any{"brief": "List"}, "effect": "read",
			"params": map[string]any{"type": "object"}}},
	})
	c, err := wasm.Pack(path, code, probe, path, parley.Version)
	if err != nil {
		return nil, err
	}
	provider := app.Parley().Engine().Provider(c.Source())
	if err := provider.Prepare(ctx); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, helpTimeout)
	defer cancel()
	result, err := provider.Invoke(limited, &host.Request{Job: host.Job{Params: json.RawMessage("{}"),
		Caller: command.Caller}})
	if err != nil {
		return nil, err
	}
	var list struct {
		Tools []extismTool `json:"tools"`
	}
	if err := json.Unmarshal(result.Data, &list); err != nil || len(list.Tools) == 0 {
		return nil, host.Errorf(host.InvalidPlugin, "%s: it lists no tools; expected {\"tools\":[..]}%s", name,
			strings.TrimSuffix(fmt.Sprintf(": %v", err), ": <nil>"))
	}
	return list.Tools, nil
}

// splitBrief splits a description after its first sentence, without the period of that. A sentence that is too long is
// cut for the brief, and the rest is all of the description.
func splitBrief(text string) (brief, rest string) {
	end := len(text)
	for _, mark := range []string{". ", ".\n", "\n"} {
		if at := strings.Index(text, mark); at >= 0 {
			end = min(end, at)
		}
	}
	sentence := strings.TrimRight(text[:end], ". ")
	if brief = clipWords(sentence, maxBrief); brief != sentence {
		return brief, text
	}
	return brief, strings.TrimLeft(text[end:], ".\n ")
}

// clipWords returns the first words of a text, as far as they fit.
func clipWords(text string, size int) string {
	for len(text) > size {
		at := strings.LastIndexFunc(text[:size], unicode.IsSpace)
		if at < 0 {
			return manifest.Clip(text, size)
		}
		text = strings.TrimRightFunc(text[:at], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	return text
}
