package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

const (
	examplePath = "../sdk/example.manifest.json"
	wasiPath    = "../sdk/wasi.md"
	scriptPath  = "../sdk/script.md"
	httpPath    = "../sdk/http.md"
)

// TestReference compares sdk/manifest.md with what the schema and three manifests, which have every field, make of it.
func TestReference(t *testing.T) {
	const path = "../sdk/manifest.md"
	r := reference{t: t, root: readNode(schemaJSON)}
	for _, data := range [][]byte{exampleManifest(t), manifestIn(t, wasiPath), manifestIn(t, scriptPath),
		manifestIn(t, httpPath)} {
		if _, err := Parse(data, hostVersion); err != nil {
			t.Fatal(err)
		}
		r.examples = append(r.examples, readNode(data))
	}
	r.WriteString(referenceHead)
	r.object("", r.root, nil)
	if *update {
		if err := os.WriteFile(path, []byte(r.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(shown) != r.String() {
		t.Errorf("%s is not what the schema says; run go test -run TestReference ./manifest -update", path)
	}
}

func exampleManifest(t *testing.T) []byte {
	data, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// manifestIn returns the manifest that a page shows.
func manifestIn(t *testing.T, path string) []byte {
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), ".manifest.json\n")
	data, _, _ := strings.Cut(rest, "\n```")
	return []byte(data)
}

const referenceHead = `# The manifest

<!-- written by go test -run TestReference ./manifest -update -->
A manifest is one JSON object in UTF-8, of at most 16 MiB. It is in the custom section ` + "`parley.manifest`" + ` of the
module, right after the header, or beside ` + "`x.wasm` as `x.manifest.json`" + `.

    parley plugin schema > manifest.schema.json          # the same fields for an editor
    parley plugin pack x.wasm --manifest x.manifest.json # put the manifest into the module
    parley plugin check x.wasm                           # what an installation says about it

An unknown field is an error, except fields that begin with ` + "`x-`" + `. A field marked **!** is required in its object.
The examples are from manifests that install as they are: [one of kind parley/1](example.manifest.json),
[one of kind wasi](wasi.md#a-whole-example), [one of kind script](script.md#a-whole-example), and
[one of kind http](http.md#a-whole-example). [RULES.md](../manifest/RULES.md) says how to write the texts.

Schemas of tools are validated within bounds: local references that resolve, no reference that leads to itself without
consuming a value, patterns of RE2, at most 256 KiB and 100 levels.
`

// reference writes a table for each object of the schema.
type reference struct {
	strings.Builder
	t        *testing.T
	root     *node
	examples []*node
}

func (r *reference) object(pointer string, n *node, path []string) {
	title := "The manifest itself"
	if pointer != "" {
		title = "`" + strings.TrimPrefix(pointer, ".") + "`"
	}
	fmt.Fprintf(r, "\n## %s\n\n| field | value | default | meaning | example |\n|---|---|---|---|---|\n", title)
	required := map[string]bool{}
	for _, name := range n.strings("required") {
		required[name] = true
	}
	properties := n.at("properties")
	for _, name := range properties.names() {
		field, _ := properties.at(name).resolve(r.root)
		meaning := properties.at(name).text("description")
		if meaning == "" {
			r.t.Errorf("%s.%s has no description", pointer, name)
		}
		mark := ""
		if required[name] {
			mark = " **!**"
		}
		defaults := "–"
		if v := properties.at(name).at("default"); v != nil {
			defaults = code(v.raw)
		}
		fmt.Fprintf(r, "| `%s`%s | %s | %s | %s | %s |\n",
			name, mark, bounds(field), defaults, meaning, r.example(append(path, name)))
	}
	for _, name := range properties.names() {
		field, ref := properties.at(name).resolve(r.root)
		inner, at := field, pointer+"."+name
		if field.text("type") == "array" {
			inner, _ = field.at("items").resolve(r.root)
			at += "[]"
		}
		if ref == "docs" && len(path) > 0 { // the same for groups and tools
			continue
		}
		if len(inner.at("properties").names()) > 0 {
			r.object(at, inner, append(path[:len(path):len(path)], name))
		}
	}
}

// example returns the first value at a path in the example manifests. Within lists, it is that of the first element
// that has it.
func (r *reference) example(path []string) string {
	for _, n := range r.examples {
		if v := valueAt(n, path); v != nil {
			return code(v)
		}
	}
	r.t.Errorf("no example of %s", strings.Join(path, "."))
	return ""
}

func valueAt(n *node, path []string) json.RawMessage {
	if n == nil || len(path) == 0 {
		if n == nil {
			return nil
		}
		return n.raw
	}
	var list []json.RawMessage
	if json.Unmarshal(n.raw, &list) == nil {
		for _, element := range list {
			if v := valueAt(readNode(element), path); v != nil {
				return v
			}
		}
		return nil
	}
	return valueAt(n.at(path[0]), path[1:])
}

// code shows a value as JSON in a table, shortened.
func code(raw json.RawMessage) string {
	const most = 70
	return "`" + strings.ReplaceAll(Clip(string(CompactJSON(raw)), most), "|", `\|`) + "`"
}

var escaped = regexp.MustCompile(`[|]`)

// bounds says what a field accepts.
func bounds(n *node) string {
	if values := n.list("enum"); len(values) > 0 {
		var all []string
		for _, v := range values {
			all = append(all, "`"+string(v)+"`")
		}
		return strings.Join(all, ", ")
	}
	text := n.text("type")
	if text == "" {
		if text = strings.Join(n.strings("type"), " or "); text == "" {
			text = "any value"
		}
	}
	number := func(key string) string {
		if v := n.at(key); v != nil {
			return string(v.raw)
		}
		return ""
	}
	if low, high := number("minimum"), number("maximum"); low != "" {
		text += " from " + low + " to " + high
	}
	switch least, most := number("minLength"), number("maxLength"); {
	case least != "" && most != "":
		text += " of " + least + " to " + most + " characters"
	case most != "":
		text += " of at most " + most + " characters"
	}
	if most := number("maxItems"); most != "" {
		text += " of at most " + most
		if number("minItems") != "" {
			text += " and at least " + number("minItems")
		}
	}
	if pattern := n.text("pattern"); pattern != "" {
		text += ", `" + escaped.ReplaceAllString(pattern, `\$0`) + "`"
	}
	return text
}
