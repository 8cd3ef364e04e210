package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// plugin is a provider that can only be looked up.
type plugin struct {
	host.Provider
	m *manifest.Manifest
}

func (p plugin) Info() host.Info { return host.Info{Name: p.m.Name, Kind: p.m.Kind} }

func (p plugin) Manifest() (*manifest.Manifest, error) { return p.m, nil }

func (p plugin) Tool(name string) (*manifest.Tool, error) { return p.m.Tool(name), nil }

func (p plugin) Features() host.Features { return host.Features{} }

func (p plugin) Segment() ([]byte, error) {
	return segment.Of(p.m), nil
}

func (p plugin) Names() (names []string, err error) {
	for _, t := range p.m.Tools {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names, nil
}

func (p plugin) Lines(group string) (lines []host.Line, err error) {
	for _, t := range p.m.Tools {
		if t.Group == group {
			lines = append(lines, host.Line{Name: t.Name})
		}
	}
	return lines, nil
}

func (p plugin) Groups() (lines []host.GroupLine, err error) {
	for _, g := range p.m.Groups {
		lines = append(lines, host.GroupLine{Name: g.Name, Brief: g.Docs.Brief})
	}
	return lines, nil
}

// hostile is a plugin whose texts try to break out of the format.
var hostile = &manifest.Manifest{
	Name: "a_b", Kind: manifest.KindParley,
	Docs: manifest.Docs{Brief: "Say \"x\": y <b>", Standard: "One\n# two\n```\nthree\x1b[2J",
		Full: strings.Repeat("word ", 1000)},
	ExitCodes: []manifest.ExitCode{{Code: 10, Name: "gone", Meaning: "a | b", Suggestion: "c"}},
	Groups:    []manifest.Group{{Name: "g", Docs: manifest.Docs{Brief: "A group"}}, {Name: "empty"}},
	Tools: []manifest.Tool{
		{Name: "one", Docs: manifest.Docs{Brief: "Do | it"}, Effect: "read", Tasks: []string{"do it"},
			ExitCodes: []string{"gone"},
			Params: json.RawMessage(`{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}],
				"properties":{"a":{"type":"string","description":"x | <y>"},"b":{"$ref":"#/$defs/b"}},
				"$defs":{"b":{"type":"integer"}}}`),
			Examples: []manifest.Example{
				{Title: "Fence", Params: json.RawMessage(`{"a":"` + "````" + `"}`)},
				{Title: "Wrong", Params: json.RawMessage(`{"a":1}`), ExitCode: 81},
			}},
		{Name: "g.two", Group: "g", Docs: manifest.Docs{Brief: "Do more"}, Effect: "write",
			Params: json.RawMessage(`{"type":"object"}`)},
	},
}

// list is tools/list as a server would answer it, two tools a page.
func list(catalog *host.Catalog) func(context.Context, string, string, any) (json.RawMessage, error) {
	return func(_ context.Context, mode, method string, params any) (json.RawMessage, error) {
		if method != "tools/list" {
			return json.RawMessage(`{"content":[{"type":"text","text":"123456789"}]}`), nil
		}
		var tools []any
		for _, p := range catalog.Providers() {
			names, _ := p.Names()
			for _, n := range names {
				t, _ := p.Tool(n)
				tools = append(tools, map[string]any{"name": underscored(p.Info().Name + "." + n), "description": t.Docs.Brief,
					"inputSchema": t.Params})
			}
		}
		if mode != "full" {
			tools = tools[:1]
		}
		raw, _ := json.Marshal(params)
		var asked struct {
			Cursor int `json:",string"`
		}
		_ = json.Unmarshal(raw, &asked)
		page := map[string]any{"tools": tools[asked.Cursor:min(len(tools), asked.Cursor+2)]}
		if asked.Cursor+2 < len(tools) {
			page["nextCursor"] = fmt.Sprint(asked.Cursor + 2)
		}
		return json.Marshal(page)
	}
}

func underscored(name string) string { return strings.ReplaceAll(name, ".", "__") }

func newSource(t *testing.T, manifests ...*manifest.Manifest) *Source {
	t.Helper()
	var providers []host.Provider
	for _, m := range manifests {
		providers = append(providers, plugin{m: m})
	}
	catalog, err := host.NewCatalog(providers...)
	if err != nil {
		t.Fatal(err)
	}
	h, err := call.New(call.Config{Catalog: catalog, Policy: host.DenyAll{}})
	if err != nil {
		t.Fatal(err)
	}
	return &Source{
		Host: h, Modes: []string{"minimal", "full", "code"}, Full: "full", Request: list(catalog),
		ListedName: underscored, Command: step.Step.String, Instructions: "Ask first.",
	}
}

func TestAudit(t *testing.T) {
	many := &manifest.Manifest{Name: "many", Kind: manifest.KindParley}
	for i := range 12 {
		many.Tools = append(many.Tools, manifest.Tool{Name: fmt.Sprintf("t%02d", i),
			Docs: manifest.Docs{Brief: strings.Repeat("x", 100-i%3)}, Params: json.RawMessage(`{}`)})
	}
	a, err := newSource(t, hostile, many).Audit(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	full := a.Modes[1]
	if len(a.Tools) != 14 || full.Tools != 14 || a.Modes[0].Tools != 1 || full.Saved != 0 || a.Modes[0].Saved <= 0.8 {
		t.Errorf("%+v", a.Modes)
	}
	if a.Search != (ReplyCost{2, 2}) || a.Modes[0].BreakEven != (full.Tokens-a.Modes[0].Tokens)/4 {
		t.Errorf("search %+v, even after %d", a.Search, a.Modes[0].BreakEven)
	}
	if len(a.Fattest) != fattest || a.Fattest[0].Name != "a_b.one" || a.Fattest[1].Name != "many.t00" ||
		a.Fattest[2].Name != "many.t03" {
		t.Errorf("fattest are %+v", a.Fattest)
	}
	a, err = newSource(t, hostile, many).Audit(t.Context(), "minimal", []string{"many.t01", "a_b.g", "a_b.g.two"})
	if err != nil || len(a.Modes) != 1 || len(a.Tools) != 2 || a.Tools[0].Name != "many.t01" || a.Tools[0].Listed != 0 ||
		len(a.Fattest) != 1 {
		t.Errorf("%v, %+v", err, a)
	}
}

func TestCover(t *testing.T) {
	c, err := Cover(newSource(t, hostile).Host.Catalog())
	if err != nil {
		t.Fatal(err)
	}
	p := c.Plugins[0]
	half := Share{2, 1, 0.5}
	if p.Groups != half || p.Tools != (Share{2, 2, 1}) || p.Parameters != half || p.Examples != half ||
		p.Errors != half || p.Tasks != half {
		t.Errorf("%+v", p)
	}
	if !slices.Equal(p.WithoutTasks, []string{"a_b.g.two"}) || c.Total.Tasks != half {
		t.Errorf("without tasks: %v, in all %+v", p.WithoutTasks, c.Total)
	}
}

// document is a form of tools and examples, as its taker reads it.
func document(t *testing.T, s *Source, format string) (tools, examples []map[string]any) {
	t.Helper()
	x, err := s.Export(t.Context(), format, nil)
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Tools, Examples []map[string]any }
	if err := json.Unmarshal(x.Files[0].Content, &d); err != nil || !x.Files[0].JSON || x.Tools != len(d.Tools) {
		t.Fatal(err, x)
	}
	return d.Tools, d.Examples
}

// TestAPIsAreGivenWhatTheyTake: no combination of schemas at the root, no failing call as an example, no text that is
// too long.
func TestAPIsAreGivenWhatTheyTake(t *testing.T) {
	long := &manifest.Manifest{Name: "long", Kind: manifest.KindParley, Tools: []manifest.Tool{
		{Name: "t", Effect: "read", Docs: manifest.Docs{Brief: strings.Repeat("häufig ", 300)},
			Params: json.RawMessage(`{"type":"object"}`)}}}
	s := newSource(t, hostile, long)
	tools, examples := document(t, s, "mcp")
	if tools[0]["inputSchema"].(map[string]any)["anyOf"] == nil {
		t.Error("mcp: the schema is not as it is listed")
	}
	if len(examples) != 3 || examples[0]["title"] != "Fence" { // each without one has the least call
		t.Errorf("mcp: examples are %v", examples)
	}
	tools, _ = document(t, s, "anthropic")
	if root := tools[0]["input_schema"].(map[string]any); root["anyOf"] != nil || root["properties"] == nil {
		t.Errorf("anthropic: %v", root)
	}
	tools, examples = document(t, s, "openai")
	f := tools[0]["function"].(map[string]any)
	if root := f["parameters"].(map[string]any); root["anyOf"] != nil || root["properties"] == nil {
		t.Errorf("openai: %v", root)
	}
	d := tools[2]["function"].(map[string]any)["description"].(string)
	if utf8.RuneCountInString(d) > openAIDescription || !strings.HasSuffix(d, "häufig…") {
		t.Errorf("openai: a description of %d characters ends in %q", utf8.RuneCountInString(d), d[len(d)-20:])
	}
	call := examples[0]["call"].(map[string]any)["function"].(map[string]any)
	if call["arguments"] != `{"a":"`+"````"+`"}` {
		t.Errorf("openai: the arguments are %v", call["arguments"])
	}
}

// skillHead reads the head of a SKILL.md.
var skillHead = regexp.MustCompile(`(?s)^---\nname: ([a-z0-9]+(?:-[a-z0-9]+)*)\ndescription: (".*?")\n` +
	`compatibility: [A-Za-z ]{1,500}\nmetadata:\n  plugin: ".*?"\n  version: ".*?"\n---\n\n`)

// TestSkillsKeepTheLimits: whatever a plugin says, a skill has a name of its folder, a description and a page within
// the limits, and links to its references alone.
func TestSkillsKeepTheLimits(t *testing.T) {
	huge := &manifest.Manifest{Name: "Huge", Version: "1.0.0", Kind: manifest.KindParley,
		Docs: manifest.Docs{Brief: "Much", Full: strings.Repeat("line\n\n", 400)}}
	for i := range 700 {
		huge.Tools = append(huge.Tools, manifest.Tool{Name: fmt.Sprintf("t%d", i),
			Docs:  manifest.Docs{Brief: "Do", Standard: strings.Repeat("again ", 40)},
			Tasks: []string{"do what has a long name"}, Params: json.RawMessage(`{}`)})
	}
	same := &manifest.Manifest{Name: "a-b", Kind: manifest.KindParley, Tools: hostile.Tools}
	grouped := &manifest.Manifest{Name: "grouped", Kind: manifest.KindParley, Docs: manifest.Docs{Brief: "In groups"},
		Groups: []manifest.Group{{Name: "g", Docs: manifest.Docs{Brief: "A group"}}}}
	for i := range 70 {
		grouped.Tools = append(grouped.Tools, manifest.Tool{Name: fmt.Sprintf("g.t%d", i), Group: "g"})
	}
	x, err := newSource(t, hostile, same, huge, grouped).Export(t.Context(), "skill", nil)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range x.Files {
		paths = append(paths, f.Path)
		folder, page, _ := strings.Cut(f.Path, "/")
		if page != "SKILL.md" {
			if n := manifest.TokensOf(len(f.Content)); n > 4*referenceTokens {
				t.Errorf("%s has %d tokens", f.Path, n)
			}
			continue
		}
		m := skillHead.FindStringSubmatch(string(f.Content))
		if m == nil || folder != m[1] || len(m[1]) > 64 {
			t.Fatalf("%s: %.200s", f.Path, f.Content)
		}
		var about string
		if err := json.Unmarshal([]byte(m[2]), &about); err != nil || about == "" ||
			utf8.RuneCountInString(about) > skillDescription {
			t.Errorf("%s: the description has %d characters, %v", f.Path, utf8.RuneCountInString(about), err)
		}
		if n := manifest.TokensOf(len(f.Content)); n > skillTokens*11/10 {
			t.Errorf("%s has %d tokens: %s", f.Path, n, f.Content)
		}
		for _, link := range regexp.MustCompile(`\]\((.*?)\)`).FindAllStringSubmatch(string(f.Content), -1) {
			if !slices.ContainsFunc(x.Files, func(f File) bool { return f.Path == folder+"/"+link[1] }) {
				t.Errorf("%s links to %s", f.Path, link[1])
			}
		}
	}
	if want := []string{"parley-a-b/SKILL.md", "parley-a-b/references/tools.md", "parley-a-b-2/SKILL.md",
		"parley-a-b-2/references/tools.md", "parley-huge/SKILL.md", "parley-huge/references/tools.md",
		"parley-grouped/SKILL.md", "parley-grouped/references/tools.md",
	}; !slices.Equal(slices.Sorted(slices.Values(paths)), slices.Sorted(slices.Values(want))) {
		t.Errorf("files are %q", paths)
	}
}

// TestIndexesKeepTheLimits: with many plugins, llms.txt and the block of AGENTS.md describe some and name others.
func TestIndexesKeepTheLimits(t *testing.T) {
	var many []*manifest.Manifest
	for i := range 70 {
		many = append(many, &manifest.Manifest{Name: fmt.Sprintf("p%d", i), Kind: manifest.KindParley, Tools: hostile.Tools,
			Docs: manifest.Docs{Brief: strings.Repeat("Do what has a long name ", 3)}})
	}
	s := newSource(t, many...)
	for format, most := range map[string]int{"agents": agentsTokens, "llms": llmsTokens} {
		x, err := s.Export(t.Context(), format, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := string(x.Files[0].Content)
		if n := manifest.Tokens(text); n > most*5/4 || !regexp.MustCompile(`, (p\d+ and \d+ more|\[p9\]\(.*\))\n`).MatchString(text) {
			t.Errorf("%s has %d tokens:\n%s", x.Files[0].Path, n, text)
		}
	}
}

// TestExportOfNothing: a group may have no tools.
func TestExportOfNothing(t *testing.T) {
	for _, format := range Formats() {
		x, err := newSource(t, hostile).Export(t.Context(), format, []string{"a_b.empty"})
		if err != nil || x.Tools != 0 {
			t.Errorf("%s: %v, %+v", format, err, x)
		}
	}
}

// TestSplice: a block takes the place of the one before; all other text of the file stays.
func TestSplice(t *testing.T) {
	const block = "<!-- parley:begin, new -->\nnew\n<!-- parley:end -->\n"
	const old = "<!-- parley:begin, old -->\nold\n<!-- parley:end -->"
	for _, c := range []struct{ text, want string }{
		{"", block},
		{"# Mine\n", "# Mine\n\n" + block},
		{"# Mine", "# Mine\n\n" + block},
		{"# Mine\n\n", "# Mine\n\n" + block},
		{"a\r\n" + old + "\r\nb", "a\r\n" + strings.TrimSuffix(block, "\n") + "\r\nb"},
		{block, block},
		{"x <!-- parley:end -->", ""},
		{"x <!-- parley:begin", ""},
		{"<!-- parley:end --> <!-- parley:begin -->", ""},
		{old + "\n" + old, ""},
		{"<!-- parley:begin " + old, ""},
	} {
		got, err := Splice(c.text, block)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q becomes %q, %v", c.text, got, err)
		}
	}
}

// TestTextsStayTexts: what a plugin says can neither end a block of code, nor begin a heading, a row or a tag.
func TestTextsStayTexts(t *testing.T) {
	for _, format := range []string{"markdown", "skill", "agents", "llms"} {
		x, err := newSource(t, hostile).Export(t.Context(), format, nil)
		if err != nil {
			t.Fatal(err)
		}
		page := string(x.Files[0].Content)
		if format == "skill" { // what describe prints is in a block that no text in it ends
			blocks := regexp.MustCompile("(?s)\n`````text\n.*?\n`````\n|\n````text\n.*?\n````\n|\n```text\n.*?\n```\n")
			page += blocks.ReplaceAllString(string(x.Files[1].Content), "\n")
		}
		for _, never := range []string{"\n# two", "<b>", "\n```\nthree", "\x1b", "a | b", "x | <y>"} {
			if strings.Contains(page, never) {
				t.Errorf("%s contains %q", format, never)
			}
		}
		if format == "markdown" && !strings.Contains(page,
			"`````json\n{\"name\":\"a_b__one\",\"arguments\":{\"a\":\"````\"}}\n`````\n") {
			t.Errorf("a text closes the code fence:\n%s", page)
		}
	}
}

func TestExportRefuses(t *testing.T) {
	s := newSource(t, hostile)
	for _, c := range []struct {
		format string
		names  []string
		code   host.Code
		says   string
	}{
		{"yaml", nil, host.InvalidArgs, strings.Join(Formats(), ", ")},
		{"mcp", []string{"nope"}, host.NotFound, "nope"},
	} {
		_, err := s.Export(t.Context(), c.format, c.names)
		if e := host.AsError(err); err == nil || e.Code != c.code || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s %v: %v", c.format, c.names, err)
		}
	}
}
