// Package openapi writes manifests of kind http from OpenAPI documents.
package openapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Options say what the document does not. The zero value takes all from the document.
type Options struct {
	Name    string            // name of the plugin; "" means the title of the document
	Server  string            // the URL before all paths; "" means the first server of the document
	Tags    []string          // take operations with one of them only; nil means all
	Auth    string            // header:NAME, query:NAME, basic, bearer, oauth:ISSUER or none; "" as the document says
	Effects map[string]string // read, write or destructive, by the name of a tool
	Plugins []string          // names of the installed plugins, which no group gets
}

// Report says what became of the operations of a document.
type Report struct {
	Operations int       `json:"operations"` // in the document, with the requested tags
	Tools      int       `json:"tools"`
	LeftOut    []LeftOut `json:"left_out"`  // operations that no call can make
	Sentences  []string  `json:"sentences"` // left out of texts, because they would mislead an agent
	Unchecked  []string  `json:"unchecked"` // tools whose parameters the API alone checks
	Shortened  []string  `json:"shortened"` // tools with a schema of fewer levels than the document has, or no result
	Renamed    []string  `json:"renamed"`   // tools whose name another operation had
	Unsent     []string  `json:"unsent"`    // security schemes that no call can send, where there is no other
}

// LeftOut is an operation that did not become a tool.
type LeftOut struct {
	Operation string `json:"operation"` // GET /items/{id}
	Reason    string `json:"reason"`
}

// operation is an operation of a document, and what a tool of it needs.
type operation struct {
	method, path string
	fields       object
	item         object // item of its path
}

// deriver derives one manifest.
type deriver struct {
	*document
	opts   Options
	texts  *texts
	names  *names
	keys   map[string]bool   // parameters that hold a credential
	held   map[string]string // names of secrets, by security scheme
	share  int               // the size that each tool may have, in bytes
	report *Report
}

// Sizes of a manifest, in bytes. The manifest of a large document has smaller results.
const (
	maxTools    = 5000
	maxManifest = 15 << 20
	maxToolSize = 120 << 10
)

var methods = []string{"get", "head", "post", "put", "patch", "delete", "options", "trace"}

// Derive writes a manifest of a document: OpenAPI 3.0 or 3.1, or Swagger 2, as JSON or YAML. The document is one file
// of at most 32 MiB. The manifest is one that [manifest.Parse] accepts. The error says what is wrong with the document
// or the options; operations of which no tool can be made are in the report instead.
func Derive(data []byte, opts Options) (*manifest.Manifest, Report, error) {
	report := Report{LeftOut: []LeftOut{}, Sentences: []string{}, Unchecked: []string{}, Shortened: []string{},
		Renamed: []string{}, Unsent: []string{}}
	doc, err := read(data)
	if err != nil {
		return nil, report, err
	}
	d := &deriver{document: doc, opts: opts, texts: &texts{map[string][]string{}, map[string]bool{}, map[string]bool{}},
		keys: doc.keys(), held: map[string]string{}, report: &report}
	all := d.operations(opts.Tags)
	report.Operations = len(all)
	switch {
	case len(all) == 0 && len(opts.Tags) == 0:
		return nil, report, refuse("/paths has no operation; expected at least one, such as {\"/items\": {\"get\": {...}}}")
	case len(all) == 0:
		return nil, report, refuse("no operation has the tag %s; the tags are: %s", strings.Join(opts.Tags, " or "),
			cmp.Or(strings.Join(spelling.AtMost(d.tags(), 40), ", "), "none; leave --tag out"))
	case len(all) > maxTools:
		return nil, report, refuse("the document has %d operations; a plugin has at most %d tools: take a part with --tag, "+
			"such as --tag %q", len(all), maxTools, manifest.CleanValue(cmp.Or(append(d.tags(), "")[0], "NAME")))
	}
	base, err := doc.server(opts)
	if err != nil {
		return nil, report, err
	}
	d.share = min(maxToolSize, maxManifest/len(all))
	d.findTokens(all)
	m := d.manifest(sha256.Sum256(data), base)
	d.names = newNames(slices.DeleteFunc(slices.Clone(opts.Plugins), func(name string) bool { return name == m.Name }))
	if m.Capabilities.Secrets, err = d.secrets(opts, m.Name, originOf(base)); err != nil {
		return nil, report, err
	}
	for _, o := range all {
		d.add(m, o)
	}
	if d.err != nil {
		return nil, report, d.err
	}
	if err := d.finish(m, base); err != nil {
		return nil, report, err
	}
	written, err := manifest.Marshal(m)
	if err == nil {
		m, err = manifest.Parse(written, "999.0.0") // as a host reads it
	}
	if err != nil {
		return nil, report, refuse("the manifest of the document is not valid: %v", err)
	}
	return m, report, nil
}

// operations returns the operations of the document with one of some tags, or all, in the order of their paths.
func (d *deriver) operations(tags []string) (all []*operation) {
	paths := members(d.root["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := d.resolve(paths[path])
		for _, method := range methods {
			fields := members(item[method])
			isAsked := len(tags) == 0 || slices.ContainsFunc(list(fields["tags"]), func(tag any) bool {
				return slices.ContainsFunc(tags, func(t string) bool { return strings.EqualFold(t, text(tag)) })
			})
			if fields != nil && isAsked {
				all = append(all, &operation{strings.ToUpper(method), path, fields, item})
			}
		}
	}
	return all
}

func (d *deriver) tags() (all []string) {
	for _, o := range d.operations(nil) {
		for _, tag := range list(o.fields["tags"]) {
			all = append(all, manifest.CleanValue(text(tag)))
		}
	}
	return sorted(all)
}

// findTokens makes "token" the name of a credential if at least half of the operations have it.
func (d *deriver) findTokens(all []*operation) {
	n := 0
	for _, o := range all {
		given := slices.Concat(list(o.fields["parameters"]), list(o.item["parameters"]))
		if slices.ContainsFunc(given, func(p any) bool { return strings.EqualFold(text(d.resolve(p)["name"]), "token") }) {
			n++
		}
	}
	d.keys["token"] = d.keys["token"] || n > 0 && 2*n >= len(all)
}

var version = lazy.Pattern(`^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}([-+][0-9A-Za-z.+-]{1,30})?$`)

// manifest returns a manifest without tools.
func (d *deriver) manifest(sum [sha256.Size]byte, base string) *manifest.Manifest {
	info := members(d.root["info"])
	title := strings.TrimSpace(manifest.CleanLine(manifest.Strip(text(info["title"]))))
	name := d.opts.Name
	if name == "" {
		name = kebab(slices.DeleteFunc(words(title), func(w string) bool { return w == "api" || w == "rest" || w == "v3" }))
		name = strings.TrimRight(cmp.Or(name, "api")[:min(40, len(cmp.Or(name, "api")))], "-")
	}
	m := &manifest.Manifest{Manifest: manifest.Version, Name: name, Version: "1.0.0", Kind: manifest.KindHTTP,
		HTTP:   &manifest.HTTP{Base: base},
		Source: &manifest.Document{Type: "openapi", Origin: originOf(base), SHA256: hex.EncodeToString(sum[:])},
		Docs:   d.texts.docs(title, text(info["description"]), "Tools of "+name), ExitCodes: manifest.StatusExits}
	if v := scalar(info["version"]); version().MatchString(v) {
		m.Version = v
	}
	return m
}

// add makes a tool of an operation.
func (d *deriver) add(m *manifest.Manifest, o *operation) {
	leave := func(reason string) {
		d.report.LeftOut = append(d.report.LeftOut, LeftOut{manifest.CleanLine(o.method + " " + o.path), reason})
	}
	in, reason := d.inputs(o)
	if reason != "" {
		leave(reason)
		return
	}
	t := manifest.Tool{HTTP: in.binding}
	t.HTTP.Secrets = d.carried(o, len(m.Capabilities.Secrets))
	if own := slices.Concat(list(o.fields["servers"]), list(o.item["servers"])); len(own) > 0 && d.opts.Server == "" {
		base, _ := url.Parse(m.HTTP.Base)
		u, err := base.Parse(serverURL(own[0]))
		if err != nil || !isServer(u) || isLoopback(u) {
			leave("its own server cannot be used: " + manifest.CleanLine(serverURL(own[0])))
			return
		}
		if plainURL(u) != m.HTTP.Base {
			t.HTTP.Base = plainURL(u)
		}
	}
	for _, match := range manifest.PathParameter().FindAllStringSubmatch(in.binding.Path, -1) {
		t.Positional = lists.Add(t.Positional, match[2])
	}
	t.Name, t.Group = d.names.tool(o)
	var compiled *schema.Schema
	room := min(max(d.share, 16<<10), maxSchema)
	for i, depth := range depths {
		raw := in.params(d, depth, room)
		isSmall, checked := fits(raw, room)
		if !isSmall || checked == nil && depth > perLevel {
			continue
		}
		if t.Params, compiled = raw, checked; checked == nil {
			d.report.Unchecked = append(d.report.Unchecked, t.Name)
		}
		if i > 0 {
			d.report.Shortened = append(d.report.Shortened, t.Name)
		}
		break
	}
	if t.Params == nil {
		leave("its parameters take more than " + strconv.Itoa(room) + " bytes of schema")
		return
	}
	t.Effect = effect(o, t.Name)
	t.Idempotent = o.method != "POST" && o.method != "PATCH"
	t.Docs = d.texts.docs(text(o.fields["summary"]), text(o.fields["description"]), fallback(o))
	t.Keywords = keywords(o)
	if isTrue(o.fields["deprecated"]) {
		t.Deprecated = &manifest.Deprecated{Message: "The document of the API marks it as deprecated."}
	}
	for _, status := range slices.Sorted(maps.Keys(members(o.fields["responses"]))) {
		number, _ := strconv.Atoi(strings.ReplaceAll(strings.ToUpper(status), "X", "0")) // 4XX are all of them
		if e := manifest.StatusExit(number); e != nil && !slices.Contains(t.ExitCodes, e.Name) {
			t.ExitCodes = append(t.ExitCodes, e.Name)
		}
	}
	d.addReturns(&t, o)
	if compiled != nil {
		addExample(&t, in.example, compiled)
	}
	m.Tools = append(m.Tools, t)
}

// fallback returns the brief of an operation without texts: the words of its id, or its method and path.
func fallback(o *operation) string {
	all := words(text(o.fields["operationId"]))
	if len(all) == 0 {
		return manifest.CleanLine(o.method + " " + o.path)
	}
	return strings.ToUpper(all[0][:1]) + strings.Join(all, " ")[1:]
}

// keywords returns the words of an operation by which search finds its tool: its id, and the words of its path.
func keywords(o *operation) (all []string) {
	if id := text(o.fields["operationId"]); id != "" {
		if _, isHidden := manifest.FirstHidden(id, false); len(id) <= 100 && !isHidden {
			all = append(all, id)
		}
	}
	for _, word := range pathWords(o.path) {
		if len(word) <= 40 && len(all) < 12 && !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

// addReturns adds the schema of the first response that is a success, if there is room for it.
func (d *deriver) addReturns(t *manifest.Tool, o *operation) {
	responses := members(o.fields["responses"])
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		response := d.resolve(responses[status])
		media, schema := bodyOf(response["content"])
		if d.isSwagger {
			media, schema = "application/json", response["schema"]
		}
		switch {
		case schema != nil && strings.HasPrefix(media, "text/") && !isJSON(media):
			t.Returns = json.RawMessage(`{"type":"string"}`)
			return
		case schema == nil || !isJSON(media):
			return
		}
		room := max(d.share-len(t.Params)-2000, 1000)
		for _, depth := range depths[1:] {
			s := d.schemas(d.texts, false, depth, room)
			raw := s.finish(s.convert(schema, 0, 0))
			if isSmall, compiled := fits(raw, room); isSmall && compiled != nil {
				t.Returns = raw
				break
			}
		}
		if t.Returns == nil {
			d.report.Shortened = append(d.report.Shortened, t.Name)
		}
		return
	}
}

// addExample adds a call with the values that the document gives for parameters, as far as they are valid.
func addExample(t *manifest.Tool, given object, by *schema.Schema) {
	for range 3 {
		violations, err := by.Validate(given)
		if err != nil || len(given) == 0 {
			return
		}
		if len(violations) == 0 {
			if raw := jsontext.Marshal(given); len(raw) < 4000 && !strings.Contains(string(raw), "\\u") {
				t.Examples = []manifest.Example{{Title: "With the values of the document", Kind: "common", Params: raw}}
			}
			return
		}
		for _, v := range violations {
			name, _, _ := strings.Cut(strings.TrimPrefix(v.Pointer, "/"), "/")
			delete(given, jsontext.UnescapeToken(name))
		}
	}
}

// finish adds what all tools have in common, and the report.
func (d *deriver) finish(m *manifest.Manifest, base string) error {
	if len(m.Tools) == 0 {
		return refuse("no operation of the document can be a tool; the first: %s: %s", d.report.LeftOut[0].Operation,
			d.report.LeftOut[0].Reason)
	}
	about := map[string]string{}
	for _, tag := range list(d.root["tags"]) {
		about[text(members(tag)["name"])] = text(members(tag)["description"])
	}
	for _, name := range slices.Sorted(maps.Keys(d.names.groups)) {
		if slices.ContainsFunc(m.Tools, func(t manifest.Tool) bool { return t.Group == name }) {
			docs := d.texts.docs(about[d.names.groups[name]], "", "Tools of "+name)
			m.Groups = append(m.Groups, manifest.Group{Name: name, Docs: manifest.Docs{Brief: docs.Brief}})
		}
	}
	slices.SortStableFunc(m.Tools, func(a, b manifest.Tool) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range slices.Sorted(maps.Keys(d.opts.Effects)) {
		t, effect := m.Tool(name), d.opts.Effects[name]
		if t == nil {
			names := lists.Map(m.Tools, func(t manifest.Tool) string { return t.Name })
			if near := spelling.Nearest(name, names, 3); len(near) > 0 {
				names = lists.Map(near, func(n spelling.Near) string { return n.Name })
			}
			return refuse("--effect: no tool is named %q; expected one such as %s", manifest.CleanValue(name),
				strings.Join(spelling.AtMost(names, 8), ", "))
		}
		if !slices.Contains([]string{manifest.EffectRead, manifest.EffectWrite, manifest.EffectDestructive}, effect) {
			return refuse("--effect %s=%s: expected read, write or destructive", name, manifest.CleanValue(effect))
		}
		t.Effect = effect
	}
	m.Capabilities.HTTP = requests(base, m.Tools)
	d.report.Tools, d.report.Renamed = len(m.Tools), append(d.report.Renamed, d.names.renamed...)
	d.report.Sentences = append(d.report.Sentences, slices.Sorted(maps.Keys(d.texts.left))...)
	d.report.Shortened = sorted(d.report.Shortened)
	return nil
}
