package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cdp/page"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// tool is a tool as it is before any damage: what its documentation says is true.
type tool struct {
	plugin string
	doc    manifest.Tool
	// isShipped means that it comes with Parley; its documentation is not completed.
	isShipped bool
	tasks     []string // what people say who want it, in words of other authors; without any, nobody wants it
	params    []param
	usual     []string // the parameters of most calls, sorted: those of the first example

	hidden bool // a search does not find it without its tasks and keywords

	sibling *tool         // shares parameters with it, and is taken for it; nil if none
	needs   *tool         // has to succeed before it in a session; nil if none
	from    *tool         // returns the value of its first parameter; nil if none
	takes   time.Duration // of a usual call
}

func (t *tool) name() string { return t.plugin + "." + t.doc.Name }

// isSlow reports whether the documentation has to say how long a call takes.
func (t *tool) isSlow() bool { return t.takes > 5*time.Second }

// param is a parameter of a tool.
type param struct {
	manifest.Param
	// good are values that the tool accepts, bad what somebody writes who does not know those. If there are bad ones,
	// the choice or the form of the value is a fact that documentation has to state.
	good, bad []json.RawMessage
	accepts   func(value any) bool
	keywords  struct { // of its schema
		Pattern          string
		Minimum, Maximum *json.Number
	}
}

// catalog are the tools of all plugins. Their order does not change.
type catalog struct {
	plugins []string
	tools   []*tool
}

// wanted returns the tools that tasks are about.
func (c *catalog) wanted() []*tool {
	return slices.DeleteFunc(slices.Clone(c.tools), func(t *tool) bool { return len(t.tasks) == 0 })
}

// Sources, from the root of the tree.
var (
	// shipped are plugins with tasks, examples and complete schemas.
	shipped = []string{"json", page.Name, "text"}
	// others are tools as servers of third parties describe them: names, descriptions, names of parameters. Queries are
	// by people who look for one of them. Both were written to evaluate search.
	others  = "testdata/search/others_tools.jsonl"
	queries = []string{"testdata/search/others.jsonl", "testdata/search/others_later.jsonl"}
)

// shippedManifest returns the manifest of a plugin with its tools.
func shippedManifest(root, name string) (*manifest.Manifest, error) {
	if name != page.Name {
		data, err := os.ReadFile(filepath.Join(root, "plugins", name, "manifest.json"))
		if err != nil {
			return nil, err
		}
		return manifest.Load(data)
	}
	p := page.New(cdp.New(cdp.Config{}))
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	all := *m
	names, err := p.Names()
	for _, name := range names {
		t, err := p.Tool(name)
		if err != nil {
			return nil, err
		}
		all.Tools = append(all.Tools, *t)
	}
	return &all, err
}

// loadCatalog reads the tools below the root of the tree, and completes those whose documentation lacks what other
// tools have: see complete and relate. It takes each stride-th plugin of the third parties.
func loadCatalog(root string, stride, first int) (*catalog, error) {
	c := &catalog{}
	for _, name := range shipped {
		m, err := shippedManifest(root, name)
		if err != nil {
			return nil, err
		}
		c.plugins = append(c.plugins, m.Name)
		for _, t := range m.Tools {
			// Only documentation and parameters: these calls have no rights, and results of no interest.
			made := &tool{plugin: m.Name, isShipped: true, tasks: t.Tasks}
			made.doc = manifest.Tool{Name: t.Name, Docs: t.Docs, Params: t.Params,
				Effect: t.Effect, Aliases: t.Aliases, Keywords: t.Keywords, Tasks: t.Tasks, When: t.When,
				WhenNot: t.WhenNot}
			for _, e := range t.Examples {
				if e.ExitCode == 0 && len(e.Before) == 0 {
					made.doc.Examples = append(made.doc.Examples,
						manifest.Example{Title: e.Title, Kind: e.Kind, Params: e.Params})
				}
			}
			c.tools = append(c.tools, made)
		}
	}
	if err := c.loadOthers(root, stride, first); err != nil {
		return nil, err
	}
	for _, t := range c.tools {
		if err := t.readParams(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name(), err)
		}
	}
	c.relate()
	for _, t := range c.tools {
		t.dropUnstated()
	}
	return c, c.trySearch()
}

// dropUnstated removes the bad values of parameters whose form the documentation does not state: of what nobody says,
// nothing can be lost, so agents are taken to know it.
func (t *tool) dropUnstated() {
	for i := range t.params {
		if p := &t.params[i]; p.hasForm() && !states(t.describe(&t.doc), t, fact{classForm, p, p.Name}) {
			p.bad = nil
		}
	}
}

// trySearch finds out what depends on search: which tools are hidden without their tasks and keywords, and which of two
// similar tools come up together, as only such a pair is confused.
func (c *catalog) trySearch() error {
	finds := func(h *call.Host, t, other *tool) bool {
		return slices.ContainsFunc(t.tasks, func(phrase string) bool {
			return isFound(context.Background(), h, phrase, other)
		})
	}
	h, err := newHost(services(c, nil, &state{}))
	if err != nil {
		return err
	}
	for _, t := range c.wanted() {
		if s := t.sibling; s != nil && !finds(h, t, s) && !finds(h, s, t) {
			t.sibling, s.sibling, t.doc.WhenNot, s.doc.WhenNot = nil, nil, "", ""
		}
		d := damage{tool: t, fact: fact{class: classSearch}}
		without, err := newHost(services(c, map[*tool]*damage{t: &d}, &state{}))
		if err != nil {
			return err
		}
		t.hidden = !finds(without, t, t)
	}
	return nil
}

// loadOthers adds the tools of third parties: of each plugin whose number is first, first + stride, and so on.
func (c *catalog) loadOthers(root string, stride, first int) error {
	asked := map[string][]string{}
	for _, path := range queries {
		err := readLines(filepath.Join(root, path), func(line []byte) error {
			var q struct {
				Query    string
				Relevant map[string]int
			}
			err := json.Unmarshal(line, &q)
			for name := range q.Relevant {
				asked[name] = append(asked[name], q.Query)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	var seen []string
	return readLines(filepath.Join(root, others), func(line []byte) error {
		var t struct {
			Plugin, Name, Description string
			Params                    []struct{ Name, Description string }
		}
		if err := json.Unmarshal(line, &t); err != nil {
			return err
		}
		if !slices.Contains(seen, t.Plugin) {
			if seen = append(seen, t.Plugin); (len(seen)-1)%stride == first {
				c.plugins = append(c.plugins, t.Plugin)
			}
		}
		if !slices.Contains(c.plugins, t.Plugin) {
			return nil
		}
		made := &tool{plugin: t.Plugin, tasks: asked[t.Plugin+"."+t.Name]}
		brief, rest, _ := strings.Cut(t.Description, ". ")
		made.doc = manifest.Tool{Name: t.Name, Effect: effectOf(t.Name), Tasks: made.tasks,
			Docs: manifest.Docs{Brief: strings.TrimSuffix(brief, "."), Standard: rest}}
		properties, required := []string{}, []string{}
		for i, p := range t.Params {
			property := kindOf(p.Name).property(p.Name, p.Description)
			properties = append(properties, string(jsontext.Marshal(p.Name))+":"+string(property))
			if i == 0 || i == 1 && len(t.Params) > 2 {
				required = append(required, p.Name)
			}
		}
		made.doc.Params = json.RawMessage(fmt.Sprintf(
			`{"type":"object","additionalProperties":false,"properties":{%s},"required":%s}`,
			strings.Join(properties, ","), mustMarshal(required)))
		c.tools = append(c.tools, made)
		return nil
	})
}

func readLines(path string, each func(line []byte) error) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := each(lines.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return lines.Err()
}

func mustMarshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// readParams finds values for the parameters, from the schema, the examples and the kinds, and makes the examples of a
// tool that has none: the common call, with the required parameters and the first other one, and one with all.
func (t *tool) readParams() error {
	var root struct {
		Properties map[string]json.RawMessage
	}
	if err := json.Unmarshal(t.doc.Params, &root); err != nil {
		return err
	}
	t.params = nil
	for _, p := range manifest.Params(t.doc.Params) {
		made, err := readParam(p, root.Properties[p.Name], t.doc.Examples)
		if err != nil {
			return err
		}
		if len(made.good) > 0 {
			t.params = append(t.params, made)
		} else if p.Required {
			return fmt.Errorf("no value for %s", p.Name)
		} else { // nobody could use it
			t.doc.Params = jsontext.Prune(t.doc.Params, func(pointer string, _ []byte) bool {
				return pointer == "/properties/"+jsontext.EscapeToken(p.Name)
			})
		}
	}
	if len(t.doc.Examples) > 0 {
		t.usual = membersOf(t.doc.Examples[0].Params)
		return nil
	}
	if len(t.params) == 0 {
		return nil
	}
	common, full := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	others := 0
	for i := range t.params {
		p := &t.params[i]
		full[p.Name] = p.good[0]
		if !p.Required {
			others++
		}
		if p.Required || others == 1 {
			common[p.Name] = p.good[0]
		}
	}
	t.usual = membersOf(mustMarshal(common))
	t.doc.Examples = []manifest.Example{{Title: "As usual", Kind: "common", Params: mustMarshal(common)}}
	if len(full) > len(common) {
		t.doc.Examples = append(t.doc.Examples,
			manifest.Example{Title: "With everything", Kind: "full", Params: mustMarshal(full)})
	}
	return nil
}

func readParam(p manifest.Param, property json.RawMessage, examples []manifest.Example) (made param, err error) {
	made.Param = p
	if err := json.Unmarshal(property, &made.keywords); err != nil {
		return made, err
	}
	compiled, err := schema.CompileUntrusted(property)
	if err != nil {
		return made, err
	}
	made.accepts = func(value any) bool {
		normal, err := jsontext.Normalize(value)
		if err != nil {
			return false
		}
		violations, err := compiled.Validate(normal)
		return err == nil && len(violations) == 0
	}
	k := kindOf(p.Name)
	good := append([]any{}, k.good...)
	bad := append([]any{}, k.bad...)
	for _, e := range examples {
		var given map[string]any
		if json.Unmarshal(e.Params, &given) == nil && given[p.Name] != nil {
			good = append([]any{given[p.Name]}, good...)
		}
	}
	for _, v := range p.Enum {
		good = append(good, v)
		if text := strings.Trim(string(v), `"`); len(p.Enum) > 1 {
			bad = append(bad, words(text)+" one", p.Name)
		}
	}
	good = append(good, true, 5, 50, 500, "tea", []any{"tea"})
	if made.keywords.Pattern != "" {
		bad = append(bad, "#1", "the first")
	}
	if made.keywords.Minimum != nil && made.keywords.Maximum != nil {
		bad = append(bad, -1, 10_000_000)
	}
	isFact := len(p.Enum) > 1 || made.hasForm()
	for _, v := range good {
		if raw := mustMarshal(v); len(made.good) < 4 && made.accepts(v) && !containsRaw(made.good, raw) {
			made.good = append(made.good, raw)
		}
	}
	for _, v := range bad {
		if raw := mustMarshal(v); isFact && len(made.bad) < 4 && !made.accepts(v) && !containsRaw(made.bad, raw) {
			made.bad = append(made.bad, raw)
		}
	}
	return made, nil
}

// hasForm reports whether values have a pattern or a range.
func (p *param) hasForm() bool {
	k := &p.keywords
	return k.Pattern != "" || k.Minimum != nil && k.Maximum != nil
}

func containsRaw(list []json.RawMessage, raw json.RawMessage) bool {
	return slices.ContainsFunc(list, func(r json.RawMessage) bool { return bytes.Equal(r, raw) })
}

// Names by which tools are related.
var (
	slowName = regexp.MustCompile(`run|build|train|scan|convert|render|plan|apply|export|backup|restore|generate|` +
		`analy|upload|download|install|trim|extract|slice|estimate|load|compare|crawl|screenshot`)
	openName = regexp.MustCompile(
		`(^|_|-)(connect|login|open|launch|navigate|init|plan|resolve|start|select|checkout)(_|-|$)`)
	sourceName = regexp.MustCompile(`list|search|find|query|create|post|send`)
	idName     = regexp.MustCompile(`^(.*?)(_id|Id|ID|_key|_number)$`)
)

// relate completes the tools of third parties by what lies between tools, and says it in their documentation: where a
// value comes from, what has to be called before, which sibling another task is for, and how long a call takes.
func (c *catalog) relate() {
	for i, t := range c.tools {
		if t.isShipped {
			continue
		}
		t.takes = time.Duration(20+37*i%400) * time.Millisecond
		if slowName.MatchString(t.doc.Name) {
			t.takes = time.Duration(12+5*i%30) * time.Second
			t.doc.Docs.Standard = sentences(t.doc.Docs.Standard, fmt.Sprintf("Takes about %.0f s.", t.takes.Seconds()))
		}
		within := slices.DeleteFunc(slices.Clone(c.tools), func(o *tool) bool { return o.plugin != t.plugin || o == t })
		if len(t.params) > 0 && t.params[0].Required && t.from == nil {
			if id := idName.FindStringSubmatch(t.params[0].Name); id != nil && id[1] != "" {
				t.from = firstTool(within, func(o *tool) bool {
					return sourceName.MatchString(o.doc.Name) && strings.Contains(words(o.doc.Name), words(id[1])) &&
						!o.has(t.params[0].Name) && o.from == nil && o.needs == nil
				})
			}
		}
		if t.from == nil && !openName.MatchString(t.doc.Name) {
			t.needs = firstTool(within, func(o *tool) bool {
				return openName.MatchString(o.doc.Name) && o.from == nil && o.needs == nil
			})
		}
	}
	for _, t := range c.tools {
		within := slices.DeleteFunc(slices.Clone(c.tools), func(o *tool) bool { return o.plugin != t.plugin || o == t })
		if t.from != nil {
			t.doc.Params = jsontext.Set(t.doc.Params, []string{"properties", t.params[0].Name}, "x-from",
				mustMarshal([]string{t.from.name() + "/id"}))
		}
		if t.needs != nil {
			t.doc.Needs = []string{t.needs.name()}
		}
		if t.sibling != nil || t.from != nil || t.needs != nil || len(t.tasks) == 0 || t.doc.WhenNot != "" {
			continue
		}
		if o := firstTool(within, t.isLike); o != nil {
			t.sibling, o.sibling = o, t
			t.doc.WhenNot, o.doc.WhenNot = o.tasks[0]+": "+o.doc.Name, t.tasks[0]+": "+t.doc.Name
		}
	}
}

func firstTool(tools []*tool, is func(*tool) bool) *tool {
	if i := slices.IndexFunc(tools, is); i >= 0 {
		return tools[i]
	}
	return nil
}

// isLike reports whether two tools are taken for each other: half of their parameters have the same names.
func (t *tool) isLike(o *tool) bool {
	if o.sibling != nil || o.from != nil || o.needs != nil || len(o.tasks) == 0 {
		return false
	}
	both := 0
	for _, p := range t.params {
		if o.has(p.Name) {
			both++
		}
	}
	return both > 0 && 2*both >= max(len(t.params), len(o.params))
}

func (t *tool) has(name string) bool {
	return slices.ContainsFunc(t.params, func(p param) bool { return p.Name == name })
}

func sentences(a, b string) string {
	if a == "" {
		return b
	}
	return strings.TrimSuffix(a, ".") + ". " + b
}
