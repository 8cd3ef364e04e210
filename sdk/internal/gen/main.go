// Command gen writes the manifest types of sdk/go. The package manifest defines them; sdk/go cannot import it, because
// plugins are built from sdk/go and the standard library alone. Run it with `go generate ./sdk`.
//
// Fields come from manifest/manifest.go, the values of enums from manifest/schema.json. A field whose type this command
// cannot map is an error: add it to the tables below.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// enum is a string type of sdk/go whose constants are the values that the manifest's schema allows.
type enum struct {
	name string
	doc  string
	path []string // of its schema in schema.json
}

var enums = []enum{
	{"Retry", "Retry says whether the same call can succeed later.",
		[]string{"properties", "exit_codes", "items", "properties", "retry"}},
	{"Effect", "Effect says what a tool does to the world.",
		[]string{"definitions", "tool", "properties", "effect"}},
	{"Reach", "Reach says how far a tool that drives a browser reaches.",
		[]string{"definitions", "tool", "properties", "reach"}},
	{"Category", "Category says what a tool is for.",
		[]string{"definitions", "tool", "properties", "category"}},
	{"Kind", "Kind says what an example shows.",
		[]string{"definitions", "tool", "properties", "examples", "items", "properties", "kind"}},
}

// copied is a type of sdk/go that has the fields of a type of package manifest.
type copied struct {
	name string // in sdk/go
	from string // in package manifest
	doc  string
	omit []string          // fields that only the host's own or other kinds of plugin use
	with map[string]string // types of fields that differ
	full []string          // fields that are written even when they are zero
}

// public types are part of what plugin authors use.
var public = []copied{
	{name: "ExitCode", from: "ExitCode", with: map[string]string{"Retry": "Retry"},
		doc: "ExitCode declares one code between 2 and 79 that a tool can end with. [Exit] refers to it by its name."},
	{name: "Capabilities", from: "Capabilities", omit: []string{"Caller"},
		doc: "Capabilities are the rights that a plugin asks for. The operator grants them."},
	{name: "FS", from: "FSCapability", doc: "FS asks for a folder. Path is its path in the guest."},
	{name: "HTTP", from: "HTTPCapability",
		doc: "HTTP asks for an origin or a URL prefix."},
	{name: "Secret", from: "SecretCapability",
		doc: "Secret asks for a secret. Either the host puts it into requests to URL, as Header, such as " +
			"\"Authorization: Bearer {secret}\", or as the parameter Query; or, with Read, [Call.ReadSecret] returns it."},
	{name: "OAuth", from: "OAuth", doc: "OAuth says where a person logs in to get a secret, with parley login."},
	{name: "Before", from: "BatchLine",
		doc: "Before is a call that an example requires before it. \"${1.id}\" in Params, which are JSON, is a part of " +
			"the result of the first such call."},
	{name: "Env", from: "NamedCapability", doc: "Env asks for an environment variable."},
	{name: "Use", from: "NamedCapability",
		doc: "Use asks for tools of other plugins by name or glob, such as \"cdp.Page.*\"."},
	{name: "BrowserContext", from: "BrowserCapability",
		doc: "BrowserContext asks to act in the browser context of the caller's session; Context is \"session\". Without " +
			"it, the tools of cdp that the plugin calls act in a context of the plugin's own."},
	{name: "Why", from: "PlainCapability",
		doc: "Why asks for a capability without a name: the wall clock or randomness."},
	{name: "Assets", from: "Assets",
		doc: "Assets are the files of the folder assets beside the source of the plugin, which parley plugin build packs " +
			"into it. It can read them below Path, such as \"/lib\", without a right."},
	{name: "Limits", from: "Limits",
		doc: "Limits are what the plugin needs. Zero means the host's default. The host and the operator may set " +
			"lower limits."},
	{name: "Step", from: "Step",
		doc: "Step is one step of a tutorial. Run is a command line that begins with \"parley\"."},
	{name: "Expect", from: "Expect", full: []string{"ExitCode"},
		doc: "Expect is the expected outcome of a step's command."},
	{name: "Related", from: "Related", full: []string{"Why"},
		doc: "Related names another tool and says why it is worth a look."},
	{name: "Deprecated", from: "Deprecated",
		doc: "Deprecated says since when a tool should no longer be used and what to use instead."},
}

// private types are the JSON form of a manifest.
var private = []copied{
	{name: "manifestForm", from: "Manifest", omit: []string{"Engine", "HTTP", "Source"},
		with: map[string]string{"Settings": "*schema"}},
	{name: "docsForm", from: "Docs"},
	{name: "groupForm", from: "Group"},
	{name: "scriptForm", from: "Script"},
	{name: "toolForm", from: "Tool", omit: []string{"WASI", "HTTP"},
		with: map[string]string{"Category": "Category", "Effect": "Effect", "Reach": "Reach",
			"Params": "*schema", "Returns": "*schema"}},
	{name: "exampleForm", from: "Example", omit: []string{"Run"}, with: map[string]string{"Kind": "Kind"},
		full: []string{"ExitCode", "Runnable"}},
}

// fieldTypes overrides the mapping from package manifest for fields whose type depends on the field.
var fieldTypes = map[string]string{"Capabilities.Env": "[]Env", "Capabilities.Tools": "[]Use"}

func main() {
	if err := run("../manifest", "go"); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run reads the folder of package manifest and writes into the folder of sdk/go. Both are relative to the folder sdk.
func run(manifest, sdk string) error {
	files, err := generate(manifest)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(sdk, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the generated files by name.
func generate(manifest string) (map[string][]byte, error) {
	g := generator{structs: map[string]*ast.TypeSpec{}}
	if err := g.read(manifest); err != nil {
		return nil, err
	}
	types, errTypes := g.types()
	forms, errForms := g.forms()
	if err := errors.Join(errTypes, errForms); err != nil {
		return nil, err
	}
	return map[string][]byte{"types.go": types, "forms.go": forms}, nil
}

type generator struct {
	structs map[string]*ast.TypeSpec // of package manifest, by name
	schema  any
}

func (g *generator) read(folder string) error {
	raw, err := os.ReadFile(filepath.Join(folder, "schema.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &g.schema); err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, "manifest.go"), nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, decl := range f.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.TYPE {
			continue
		}
		for _, spec := range d.Specs {
			t := spec.(*ast.TypeSpec)
			g.structs[t.Name.Name] = t
		}
	}
	return nil
}

const header = "// Code generated by sdk/internal/gen from package manifest; DO NOT EDIT.\n\n"

func (g *generator) types() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(header + "package sdk\n\nimport \"encoding/json\"\n\n")
	for _, e := range enums {
		values, err := g.values(e.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		fmt.Fprintf(&out, "%stype %s string\n\nconst (\n", comment(e.doc), e.name)
		for _, v := range values {
			fmt.Fprintf(&out, "%s %s = %q\n", camel(v), e.name, v)
		}
		out.WriteString(")\n\n")
	}
	return g.write(&out, public)
}

func (g *generator) forms() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(header + "//go:build !wasip1\n\npackage sdk\n\nimport \"encoding/json\"\n\n")
	return g.write(&out, private)
}

// values returns the enum at a path of the manifest's schema.
func (g *generator) values(path []string) ([]string, error) {
	list, _ := jsontext.Lookup(g.schema, append(slices.Clip(path), "enum"))
	values := jsontext.Texts(list)
	if values == nil {
		return nil, fmt.Errorf("schema.json has no enum at /%s", strings.Join(path, "/"))
	}
	return values, nil
}

func (g *generator) write(out *bytes.Buffer, list []copied) ([]byte, error) {
	for _, c := range list {
		if err := g.writeStruct(out, c); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return format.Source(out.Bytes())
}

func (g *generator) writeStruct(out *bytes.Buffer, c copied) error {
	t, ok := g.structs[c.from]
	if !ok {
		return fmt.Errorf("package manifest has no type %s", c.from)
	}
	fields, ok := t.Type.(*ast.StructType)
	if !ok {
		return fmt.Errorf("manifest.%s is not a struct", c.from)
	}
	doc := c.doc
	if doc == "" {
		doc = c.name + " is the JSON form of manifest." + c.from + "."
	}
	fmt.Fprintf(out, "%stype %s struct {\n", comment(doc), c.name)
	known := slices.Concat(c.omit, c.full)
	for name := range c.with {
		known = append(known, name)
	}
	for _, f := range fields.Fields.List {
		if len(f.Names) != 1 || f.Tag == nil {
			return errors.New("a field without a name and a tag of its own cannot be copied")
		}
		name := f.Names[0].Name
		known = slices.DeleteFunc(known, func(k string) bool { return k == name })
		if slices.Contains(c.omit, name) {
			continue
		}
		typed, err := g.typeOf(c, name, f.Type)
		if err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
		tag := f.Tag.Value
		if slices.Contains(c.full, name) {
			value := reflect.StructTag(strings.Trim(tag, "`")).Get("json")
			tag = strings.Replace(tag, value, strings.TrimSuffix(value, ",omitempty"), 1)
		}
		fmt.Fprintf(out, "%s %s %s", name, typed, tag)
		if text := strings.TrimSpace(f.Comment.Text()); text != "" {
			out.WriteString(" // " + text)
		}
		out.WriteByte('\n')
	}
	if len(known) > 0 {
		return fmt.Errorf("manifest.%s has no field %s", c.from, strings.Join(known, ", "))
	}
	out.WriteString("}\n\n")
	return nil
}

// typeOf returns the type of a field in sdk/go.
func (g *generator) typeOf(c copied, field string, t ast.Expr) (string, error) {
	if typed := c.with[field]; typed != "" {
		return typed, nil
	}
	if typed := fieldTypes[c.name+"."+field]; typed != "" {
		return typed, nil
	}
	switch t := t.(type) {
	case *ast.Ident:
		if _, ours := g.structs[t.Name]; !ours {
			return t.Name, nil
		}
		for _, other := range slices.Concat(public, private) {
			if other.from == t.Name {
				return other.name, nil
			}
		}
		return "", fmt.Errorf("it is a manifest.%s, which has no row in the tables of sdk/internal/gen", t.Name)
	case *ast.StarExpr:
		inner, err := g.typeOf(c, "", t.X)
		return "*" + inner, err
	case *ast.ArrayType:
		inner, err := g.typeOf(c, "", t.Elt)
		return "[]" + inner, err
	case *ast.SelectorExpr:
		if pkg, ok := t.X.(*ast.Ident); ok && pkg.Name == "json" {
			return "json." + t.Sel.Name, nil
		}
	}
	return "", fmt.Errorf("a type of the form %T cannot be copied", t)
}

// comment writes text as a comment of lines of at most 80 columns.
func comment(text string) string {
	var out strings.Builder
	line := "//"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 80 {
			out.WriteString(line + "\n")
			line = "//"
		}
		line += " " + word
	}
	return out.String() + line + "\n"
}

// camel makes an identifier of an enum value: fix_input is FixInput.
func camel(value string) string {
	var out strings.Builder
	for _, word := range strings.Split(value, "_") {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}
