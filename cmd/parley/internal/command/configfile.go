package command

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/document"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

//go:embed config.schema.json
var configSchemaJSON []byte

// configSchema is compiled only where there is a configuration file.
var configSchema = sync.OnceValues(compileConfigSchema)

func compileConfigSchema() (*document.Schema, error) { return document.Compile(configSchemaJSON) }

// configFile is a valid configuration file.
type configFile struct {
	path   string
	values map[string]string // by setting: "traces.off"
	lines  map[string]string // where each setting is: "3:7", line and column
}

// at returns the position of a setting, as FILE:LINE:COLUMN.
func (f *configFile) at(name string) string {
	if line, ok := f.lines[name]; ok {
		return f.path + ":" + line
	}
	return f.path
}

// parseConfig parses a configuration file and validates it by its schema. The error is config_error, with each
// violation as FILE:LINE:COLUMN: KEY.
func parseConfig(path string, data []byte) (*configFile, error) {
	tree := map[string]any{}
	if err := toml.NewDecoder(bytes.NewReader(data)).Decode(&tree); err != nil {
		where := ""
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, column := at.Position()
			where = fmt.Sprintf(":%d:%d", line, column)
		}
		return nil, host.Errorf(host.ConfigError, "%s%s: %s", path, where, manifest.CleanLine(err.Error()))
	}
	f := &configFile{path: path, values: map[string]string{}, lines: keyLines(data)}
	compiled, err := configSchema()
	if err != nil {
		return nil, err
	}
	violations, err := compiled.Validate(tree)
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "%s: %s", path, manifest.CleanLine(err.Error()))
	}
	if len(violations) > 0 {
		return nil, f.violationError(violations)
	}
	flatten("", tree, f.values)
	return f, nil
}

func (f *configFile) violationError(violations []schema.Violation) error {
	const limit = 8
	e := &host.Error{Code: host.ConfigError}
	var lines []string
	for i, v := range violations {
		if i == limit {
			lines = append(lines, fmt.Sprintf("and %d more", len(violations)-limit))
			break
		}
		name := settingAt(v.Pointer)
		text := fmt.Sprintf("%s: expected %s, got %s", name, v.Expected, v.Provided)
		if v.Keyword == "additionalProperties" {
			text = "unknown key " + name
			if near := schema.Nearest(name, settingNames(), 3); len(near) > 0 {
				text += "; did you mean " + near[0].Name + "?"
			}
		}
		lines = append(lines, f.at(name)+": "+manifest.CleanLine(text))
	}
	e.Message = strings.Join(lines, "\n")
	return e.WithNext("edit "+f.path, "known are "+strings.Join(settingNames(), ", "))
}

// settingAt returns the dotted name of the setting at a JSON pointer.
func settingAt(pointer string) string {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range parts {
		parts[i] = jsontext.UnescapeToken(parts[i])
	}
	return strings.Join(parts, ".")
}

func settingNames() []string {
	names := make([]string, 0, len(settingTable))
	for _, row := range settingTable {
		names = append(names, row.name)
	}
	return names
}

// keyLines returns the position of each key in a valid TOML text, as LINE:COLUMN by its dotted name.
func keyLines(data []byte) map[string]string {
	lines := map[string]string{}
	key := func(prefix string, parts unstable.Iterator) string {
		for parts.Next() {
			node := parts.Node()
			prefix = strings.TrimPrefix(prefix+"."+string(node.Data), ".")
			before := data[:node.Raw.Offset]
			if _, seen := lines[prefix]; !seen {
				lines[prefix] = fmt.Sprintf("%d:%d", bytes.Count(before, []byte("\n"))+1,
					len(before)-bytes.LastIndexByte(before, '\n'))
			}
		}
		return prefix
	}
	var p unstable.Parser
	p.Reset(data)
	table := ""
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = key("", e.Key())
		case unstable.KeyValue:
			name := key(table, e.Key())
			if value := e.Value(); value.Kind == unstable.InlineTable {
				for member := value.Children(); member.Next(); {
					key(name, member.Node().Key())
				}
			}
		}
	}
	return lines
}

func flatten(prefix string, tree map[string]any, into map[string]string) {
	for key, value := range tree {
		if sub, ok := value.(map[string]any); ok {
			flatten(prefix+key+".", sub, into)
			continue
		}
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		var values []string
		for _, v := range list {
			values = append(values, fmt.Sprint(v))
		}
		into[prefix+key] = strings.Join(values, ",")
	}
}
