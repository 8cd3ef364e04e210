package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/foreign"
	"github.com/parley-tools/parley/internal/sample"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/generate"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/peers"
	"github.com/parley-tools/parley/manifest/schema"
)

// TestPeers checks each rule of a shipped manifest: its tools exist, and the parameters that it makes are ones of the
// tool. Of one name in ten it asks for the documentation.
func TestPeers(t *testing.T) {
	h, few := shippedHost(t), sample.OneIn(t, 10)
	catalog, tried := h.Catalog(), 0
	check := func(plugin, tool, at string, rules []peers.Rule, byName bool) {
		for _, r := range rules {
			for _, pattern := range r.From {
				if text, ok := strings.CutPrefix(fmt.Sprint(pattern), "~"); ok {
					regexp.MustCompile(text)
				}
			}
			if r.See == "" && r.Tool == "" && byName { // no tool does the like
				continue
			}
			if r.See != "" {
				if _, err := catalog.FindIn(plugin, r.See); err != nil && !strings.HasPrefix(r.See, "cdp.") {
					t.Errorf("%s: see %s: %v", at, r.See, err)
				}
				continue
			}
			if byName {
				tool = r.Tool
			}
			address, err := catalog.FindIn(plugin, tool)
			if err != nil {
				address, err = catalog.Find(tool)
			}
			if err != nil || address.Tool == nil {
				t.Errorf("%s: no tool %q", at, tool)
				continue
			}
			for name, form := range r.To {
				own, _ := manifest.TypeAt(address.Tool.Params, name)
				if own == "" && form != nil && !(tool == "scroll" && name == "amount") && name != "--out" {
					t.Errorf("%s: %s has no parameter %s", at, tool, name)
				}
			}
			tried++
		}
	}
	for _, provider := range catalog.Providers() {
		m, err := provider.Manifest()
		if err != nil || len(m.Peers) == 0 {
			continue
		}
		table := peers.Read(m.Peers)
		for key, rules := range table.Names {
			for name := range strings.SplitSeq(key, "|") {
				if name != "" && name != "*" && !h.Names().Knows("mcp__server__browser_"+name) {
					t.Errorf("%s is not found with a prefix", name)
				}
				if !few() {
					continue
				}
				_, err := h.Describe(t.Context(), caller.Principal{}, "mcp__server__browser_"+name, manifest.Tier2)
				_, see := h.Names().Meant("mcp__server__browser_"+name, map[string]any{}, nil)
				if e := host.AsError(err); see != "" && err != nil && e.Steps[0].Tool != see {
					t.Errorf("the documentation of %s is not offered: %v", name, e.Steps)
				}
			}
			if key != "*" {
				check(m.Name, "", key, rules, true)
			}
		}
		for tool, rules := range table.Forms {
			if tool != "*" {
				check(m.Name, tool, "forms of "+tool, rules, false)
			}
		}
		names, err := provider.Names()
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range table.Forms["*"] { // of parameters that several tools have
			var having []string
			for _, name := range names {
				tool, err := provider.Tool(name)
				isMissing := func(param string) bool {
					own, _ := manifest.TypeAt(tool.Params, param)
					return own == ""
				}
				if err == nil && !slices.ContainsFunc(slices.Collect(maps.Keys(rule.From)), isMissing) {
					having = append(having, name)
				}
			}
			if len(having) < 2 {
				t.Errorf("a form of all tools is of %q only", having)
			}
			for _, tool := range having {
				check(m.Name, tool, "forms of all tools", []peers.Rule{rule}, false)
			}
		}
	}
	if tried < 150 {
		t.Errorf("only %d rules", tried)
	}
}

// notes are parameters of other products that say again what a ref says: the description of its element, the label of
// a field, and the page.
var (
	notes = []string{"element", "name", "startElement", "endElement", "pageId"}
	refs  = []string{"target", "startTarget", "uid", "from_uid"}
)

// TestPeerCalls makes calls of every tool of several other products, with every parameter and every value of an enum,
// and checks that what is offered has each value that was given. testdata/peers.txt says which tool is meant: after
// "=>" the tool, "see TOOL" for the nearest one, or "-" if there is none. It has every tool and parameter that the
// servers list.
func TestPeerCalls(t *testing.T) {
	h := shippedHost(t)
	tools, calls, offered := 0, 0, 0
	var lines []string
	for i, line := range strings.Split(string(readTestdata(t, "peers.txt")), "\n") {
		signature, want, _ := strings.Cut(line, " => ")
		words := strings.Fields(signature)
		if len(words) < 2 || words[0] == "#" {
			lines = append(lines, line)
			continue
		}
		tools++
		required := map[string]any{}
		for _, word := range words[2:] {
			if name, kind, _ := strings.Cut(word, ":"); !strings.HasSuffix(name, "?") {
				required[name] = samples(name, kind)[0]
			}
		}
		got := ""
		try := func(given map[string]any) {
			calls++
			tool, params := offer(h, words[1], given)
			if got == "" {
				got = tool
			}
			if params == nil {
				return
			}
			offered++
			if missing := kept(h, words[1], given, params); len(missing) > 0 {
				t.Errorf("line %d: %s %s: %s %s lacks %q", i+1, words[1], jsontext.Marshal(given), tool, params, missing)
			}
		}
		try(required)
		for _, word := range words[2:] {
			name, kind, _ := strings.Cut(word, ":")
			name = strings.TrimSuffix(name, "?")
			for _, value := range samples(name, kind) {
				given := maps.Clone(required)
				given[name] = value
				try(given)
			}
		}
		lines = append(lines, signature+" => "+got)
		if got != want {
			t.Errorf("line %d: %s means %s, want %s", i+1, words[1], got, want)
		}
	}
	if path := os.Getenv("WRITE_PEERS"); path != "" {
		_ = os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600)
	}
	t.Logf("%d tools, %d calls, %d offered", tools, calls, offered)
	if tools < 280 || offered < 750 {
		t.Errorf("only %d tools and %d calls that are offered", tools, offered)
	}
	for product, args := range map[string][]string{
		"playwright": {"@playwright/mcp/cli.js", "--caps=vision,pdf,testing,tracing,storage,network,devtools,config"},
		"devtools": {"chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", "--usage-statistics=false",
			"--category-extensions"},
		"filesystem": {"@modelcontextprotocol/server-filesystem/dist/index.js", os.TempDir()},
	} {
		t.Run(product, func(t *testing.T) {
			for _, tool := range toolsOf(t, args...) {
				at := slices.IndexFunc(lines, func(line string) bool {
					return strings.HasPrefix(line, product+" "+tool.Name+" ")
				})
				if at < 0 {
					t.Errorf("testdata/peers.txt has no %s", tool.Name)
					continue
				}
				var schema struct{ Properties map[string]any }
				if err := json.Unmarshal(jsontext.Marshal(tool.InputSchema), &schema); err != nil {
					t.Fatal(err)
				}
				for name := range schema.Properties {
					if !strings.Contains(lines[at], " "+name+":") && !strings.Contains(lines[at], " "+name+"?:") {
						t.Errorf("testdata/peers.txt has no parameter %s of %s", name, tool.Name)
					}
				}
			}
		})
	}
}

// toolsOf lists the tools of a server of testdata/programs.
func toolsOf(t *testing.T, args ...string) []*mcp.Tool {
	modules, node := foreign.NodeForTest(t, "../../../..")
	args[0] = filepath.Join(modules, args[0])
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command(node, args...)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var all []*mcp.Tool
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tool)
	}
	return all
}

// samples returns values of a parameter in the table: all of an enum.
func samples(name, kind string) (all []any) {
	item, isList := strings.CutPrefix(kind, "[")
	switch {
	case isList && strings.Contains(item, ":"): // of objects
		object := map[string]any{}
		for member := range strings.SplitSeq(strings.TrimSuffix(item, "]"), ",") {
			key, kind, _ := strings.Cut(member, ":")
			object[key] = samples(key, kind)[0]
		}
		return []any{[]any{object}}
	case isList:
		one := samples(name, strings.TrimSuffix(item, "]"))[0]
		return []any{[]any{one}, []any{one, one.(string) + "2"}}
	case strings.Contains(kind, "|"):
		for value := range strings.SplitSeq(kind, "|") {
			all = append(all, strings.ReplaceAll(value, "_", " "))
		}
		return all
	}
	switch kind {
	case "number", "integer":
		return []any{json.Number("37"), json.Number("4123"), "41"}
	case "boolean":
		return []any{true, false, "true"}
	case "object":
		return []any{map[string]any{"k1": "v1"}}
	}
	switch name {
	case "url":
		return []any{"https://one.example/", "two.example"}
	case "geolocation":
		return []any{"59.5,10.5"}
	case "viewport":
		return []any{"390x844", "390x844x3,mobile,touch"}
	case "extraHttpHeaders":
		return []any{`{"x-one":"1"}`}
	}
	return []any{name + "-value", `{"a":1}`, "5"}
}

// offer returns the call that is offered for one of another product: the tool, and the parameters if they are complete.
func offer(h *call.Host, name string, given map[string]any) (tool string, params json.RawMessage) {
	all, see := h.Names().Meant(name, given, nil)
	switch {
	case len(all) == 0 && see == "":
		return "-", nil
	case len(all) == 0:
		return "see " + see, nil
	}
	meant := all[0]
	params = jsontext.Marshal(meant.Params)
	if e := advice.CheckCall(h.Names(), host.Call{Name: meant.Tool, Params: params}); e != nil {
		if params = e.Corrected; e.Retry != nil && e.Retry.Options.Timeout > 0 { // which was among the parameters
			params = append(slices.Clone(params), fmt.Sprint(e.Retry.Options.Timeout.Milliseconds())...)
		}
	}
	if params != nil {
		params = append(slices.Clone(params), strconv.Quote(meant.File)...)
	}
	return meant.Tool, params
}

// kept returns the values that were given and that a call does not have, without notes and the values that a rule of
// the manifest replaces.
func kept(h *call.Host, name string, given map[string]any, params json.RawMessage) (missing []string) {
	constants := map[string]bool{}
	for _, provider := range h.Catalog().Providers() {
		m, err := provider.Manifest()
		if err != nil {
			continue
		}
		table := peers.Read(m.Peers)
		for _, rules := range append(slices.Collect(maps.Values(table.Names)), slices.Collect(maps.Values(table.Forms))...) {
			for _, r := range append(rules, table.Names["*"]...) {
				for from, want := range r.From {
					if text := fmt.Sprint(want); !strings.HasPrefix(text, "$") {
						constants[from+"="+text] = true
					}
				}
			}
		}
	}
	var walk func(name string, value any)
	walk = func(name string, value any) {
		switch value := value.(type) {
		case map[string]any:
			isField := value["value"] != nil
			for member, inner := range value {
				if !(isField && slices.Contains(notes, member)) {
					walk(member, inner)
				}
			}
			return
		case []any:
			for _, inner := range value {
				walk(name, inner)
			}
			return
		}
		text := fmt.Sprint(value)
		isRef := func(name string) bool { return given[name] != nil }
		isNote := slices.Contains(notes, name) && slices.ContainsFunc(refs, isRef)
		escaped, _ := json.Marshal(text)
		inText := strings.Contains(string(params), strings.Trim(string(escaped), `"`)) ||
			strings.Contains(string(params), text) // JSON in a text
		replaced := slices.ContainsFunc(slices.Collect(maps.Keys(constants)), func(c string) bool {
			from, want, _ := strings.Cut(c, "=")
			pattern, isPattern := strings.CutPrefix(want, "~")
			return from == name && (want == text || isPattern && regexp.MustCompile(pattern).MatchString(text))
		})
		if !isNote && !inText && !replaced && name != "networkConditions" {
			missing = append(missing, name+"="+text)
		}
	}
	walk("", given)
	return missing
}

func shippedHost(t *testing.T) *call.Host {
	t.Helper()
	p, err := parley.Open(t.Context(), parley.Config{Home: testhome.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	h, err := p.Host()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func readTestdata(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestFormsKeepMeaning gives a parameter that a tool knows in another form each of its values, alone and beside each
// value of the tool's own parameters: two of them are never offered as the same call.
func TestFormsKeepMeaning(t *testing.T) {
	h, tried := shippedHost(t), 0
	for _, provider := range h.Catalog().Providers() {
		m, err := provider.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		table := peers.Read(m.Peers)
		for name, rules := range table.Forms {
			values := map[string][]any{}
			for _, r := range rules {
				for from, value := range r.From {
					if text, isText := value.(string); isText && text != "" && !strings.ContainsAny(text[:1], "$~") {
						values[from] = append(values[from], text)
					} else if _, isSwitch := value.(bool); isSwitch {
						values[from] = []any{true, false}
					}
				}
			}
			delete(values, "slowly") // page.type is always slow
			delete(values, "static") // page.requests always has what is static
			at, _ := h.Catalog().FindIn(m.Name, name)
			if at.Tool == nil {
				continue
			}
			beside := []map[string]any{{}}
			for _, p := range manifest.Params(at.Tool.Params) {
				for _, value := range append(slices.Clone(p.Enum), json.RawMessage("true"), json.RawMessage("false")) {
					if len(p.Enum) > 0 && len(value) > 5 || p.Type == "boolean" {
						beside = append(beside, map[string]any{p.Name: value})
					}
				}
			}
			for _, example := range at.Tool.Examples {
				for _, more := range beside {
					for from, all := range values {
						calls := map[string]any{}
						for _, value := range all {
							given := map[string]any{}
							_ = json.Unmarshal(example.Params, &given)
							maps.Copy(given, more)
							given[from] = value
							tried++
							e := advice.CheckCall(h.Names(), host.Call{Name: at.Name(), Params: jsontext.Marshal(given)})
							if e == nil || e.Retry == nil {
								continue
							}
							call := string(e.Retry.Params)
							if other, same := calls[call]; same && other != value {
								t.Errorf("%s %s: %v and %v are both offered as %s", at.Name(), jsontext.Marshal(given), other, value, call)
							}
							calls[call] = value
						}
					}
				}
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d calls", tried)
	}
}

// TestFormsReadJSON gives texts of JSON in each form of each tool's parameters: where any value may be, what is offered
// has the JSON, not the text.
func TestFormsReadJSON(t *testing.T) {
	h, tried := shippedHost(t), 0
	var fill func(form any) any
	fill = func(form any) any {
		switch form := form.(type) {
		case []any:
			return command.Map(form, fill)
		case string:
			if strings.HasPrefix(form, "$") {
				return `{"a":1}`
			}
		}
		return form
	}
	for _, provider := range h.Catalog().Providers() {
		m, err := provider.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		table := peers.Read(m.Peers)
		for tool, rules := range table.Forms {
			for _, r := range rules {
				given := map[string]any{}
				for name, form := range r.From {
					given[name] = fill(form)
				}
				at, _ := h.Catalog().FindIn(m.Name, tool)
				e := advice.CheckCall(h.Names(), host.Call{Name: m.Name + "." + tool, Params: jsontext.Marshal(given)})
				var offered map[string]any
				if at.Tool == nil || e == nil || json.Unmarshal(append(e.Corrected, e.Template...), &offered) != nil {
					continue
				}
				for name := range r.To {
					kind, _ := manifest.TypeAt(at.Tool.Params, name)
					if text, isText := offered[name].(string); kind == "any" && isText && text[0] == '{' {
						t.Errorf("%s of %s: %s", jsontext.Marshal(given), tool, jsontext.Marshal(offered))
					}
					tried += command.Either(kind == "any", 1, 0)
				}
			}
		}
	}
	if tried < 5 {
		t.Errorf("only %d forms", tried)
	}
}

// TestWordsMeanThemselves checks that each tool takes words that are neither numbers nor names of calls elsewhere.
func TestWordsMeanThemselves(t *testing.T) {
	h := shippedHost(t)
	words := []string{"", " ", "ms", "codes", "second", "No 5", "5 stars"}
	for letter := 'a'; letter <= 'z'; letter++ {
		words = append(words, string(letter))
	}
	for _, provider := range h.Catalog().Providers() {
		names, _ := provider.Names()
		for _, name := range names {
			at, _ := h.Catalog().FindIn(provider.Info().Name, name)
			for _, word := range words {
				if at.Tool != nil && h.Names().Conflicts(at, []any{word, "Lima"}) {
					t.Errorf("%s %q is refused", name, word)
				}
			}
		}
	}
}

// TestCorrectionsKeepValues checks that a call that is offered holds as many values as were given, whatever is wrong
// with those, and none in a parameter that means something else.
func TestCorrectionsKeepValues(t *testing.T) {
	h := shippedHost(t)
	offered, few, half := 0, sample.OneIn(t, 20), sample.OneIn(t, 2)
	for _, provider := range h.Catalog().Providers() {
		names, _ := provider.Names()
		for n, name := range names {
			if len(names) > 100 && !few() || len(names) <= 100 && !half() {
				continue
			}
			tool, err := provider.Tool(name)
			if err != nil || tool == nil {
				t.Fatal(name, err)
			}
			g, err := generate.New(tool.Params, uint64(n))
			if err != nil {
				continue
			}
			value := g.Value()
			given := append(g.Mutants(value, 20), renamedParams(value)...)
			for _, v := range given {
				raw := jsontext.Marshal(v)
				e := advice.CheckCall(h.Names(), host.Call{Name: provider.Info().Name + "." + name, Params: raw})
				if e == nil || e.Corrected == nil {
					continue
				}
				offered++
				var before, after any
				_ = json.Unmarshal(raw, &before)
				_ = json.Unmarshal(e.Corrected, &after)
				moved := 0
				for _, c := range e.Changes {
					if c.How == schema.Renamed && changesMeaning(tool, c.From[1:], c.To[1:]) {
						t.Errorf("%s %s: offers %s, where %s is %s", name, clip(raw), clip(e.Corrected), c.From, c.To)
					}
					if strings.HasPrefix(c.To, "options.") {
						moved++
					}
				}
				if values(after)+moved < values(before) && !strings.Contains(string(raw), `"regex":true`) { // see the rules
					t.Errorf("%s %s: offers %s", name, clip(raw), clip(e.Corrected))
				}
			}
		}
	}
	if offered < 100 {
		t.Errorf("only %d calls were offered", offered)
	}
}

// renamedParams returns parameters under other names, one at a time.
func renamedParams(value any) (all []any) {
	object, _ := value.(map[string]any)
	for name := range object {
		others := append(slices.Collect(maps.Keys(elsewhere)), name+"s", "the_"+name, name+"_path", "width", "value")
		for _, other := range others {
			changed := map[string]any{}
			for k, v := range object {
				changed[k] = v
			}
			delete(changed, name)
			changed[other] = object[name]
			all = append(all, changed)
		}
	}
	return all
}

// elsewhere are common names of parameters, and words of one of which a name has that means the same.
var elsewhere = map[string][]string{
	"path": {"path", "file", "location", "query", "selector", "filter"}, "file": {"path", "file", "filename", "location"},
	"regex": {"regex", "pattern", "expression", "match", "search", "find", "filter"}, "time": {"time"},
	"url":      {"url", "uri", "link", "href", "address", "page", "location", "origin", "site"},
	"selector": {"selector", "css", "query", "element", "path", "filter"},
}

// changesMeaning reports whether a value got a name that means something else, and that no author called the same.
func changesMeaning(t *manifest.Tool, from, to string) bool {
	if i := strings.LastIndexByte(from, '_'); i >= 0 && elsewhere[from[i+1:]] != nil {
		from = from[i+1:]
	}
	known, _, _ := manifest.ParamNamed(t.Params, from)
	hasValues := slices.ContainsFunc(manifest.Params(t.Params), func(p manifest.Param) bool {
		return p.Name == to && len(p.Values()) > 0 // one of which says what is meant
	})
	isSame := func(word string) bool { return strings.Contains(strings.ToLower(to), word) }
	return elsewhere[from] != nil && known != to && !hasValues && !slices.ContainsFunc(elsewhere[from], isSame)
}

// values counts the scalars that are not null.
func values(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			n += values(inner)
		}
		return n
	case []any:
		for _, inner := range v {
			n += values(inner)
		}
		return n
	case nil:
		return 0
	}
	return 1
}

func clip(raw []byte) string { return manifest.Clip(string(raw), 300) }

// meantBy returns the step that is offered for a command line that is refused, nil if none is.
func meantBy(t *testing.T, home string, args ...string) *step.Step {
	t.Helper()
	a := command.NewApp(&command.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard,
		Env: func(name string) string {
			return map[string]string{"PARLEY_HOME": home}[name]
		}}, args)
	defer a.Close()
	a.Failing = true
	f := &front{App: a, offered: map[string]*parsedLine{}}
	a.Offers = f.offers
	if _, ok := f.parse(args); ok {
		return nil
	}
	return f.meant()
}

// TestWordsKeepTheirPlace checks of every tool with words that they stay in their parameters, and that no value is
// lost, in the call that is offered for a line on which something else is wrong.
func TestWordsKeepTheirPlace(t *testing.T) {
	home, offered := testhome.New(t), 0
	for _, provider := range shippedHost(t).Catalog().Providers() {
		names, _ := provider.Names()
		for _, name := range names {
			tool, err := provider.Tool(name)
			if err != nil || len(tool.Positional) == 0 {
				continue
			}
			line := []string{provider.Info().Name, name}
			words := map[string]string{}
			for i, p := range tool.Positional {
				word := fmt.Sprintf("Word%d", i)
				for _, param := range manifest.Params(tool.Params) {
					if param.Name == p && len(param.Enum) > 0 {
						word, _ = jsontext.Unquote(param.Enum[0])
					}
				}
				words[p], line = word, append(line, word)
				for _, wrong := range [][]string{{"--timeout", "5000"}, {"--load", "Other"}, {"--filename", "Other.x"}, {"Other"},
					{"--zzz", "Other"}, {"--path", "Other"}} {
					next := meantBy(t, home, append(slices.Clone(line), wrong...)...)
					if next == nil || next.Op != step.OpCall {
						continue
					}
					offered++
					var params map[string]any
					_ = json.Unmarshal(next.Params, &params)
					all := string(next.Params) + next.Options.File + fmt.Sprint(next.Options.Timeout.Milliseconds())
					for p, word := range words {
						if got := string(jsontext.Marshal(params[p])); next.Tool == provider.Info().Name+"."+name &&
							!strings.Contains(got, word) || !strings.Contains(all, word) {
							t.Errorf("%q %q: %s %s has no %s at %s", line, wrong, next.Tool, next.Params, word, p)
						}
					}
					if last := wrong[len(wrong)-1]; !strings.Contains(all, last) {
						t.Errorf("%q: %s %s has no %s", line, next.Tool, all, last)
					}
				}
			}
		}
	}
	t.Logf("%d lines, for which a call is offered", offered)
	if offered < 60 {
		t.Errorf("only %d calls were offered", offered)
	}
}

// TestRulesKeepWords checks of every name with words in the shipped manifests that the call that is offered for it as a
// command line has them all.
func TestRulesKeepWords(t *testing.T) {
	home, offered := testhome.New(t), 0
	examples := []string{"7", "page.png", "https://one.test", "one.test", "r5", "text", "click", "uncheck", "hover",
		"check", "fill", "type", "offline", "on", "off", "kqz1", "{}", "name=Ada"}
	for _, provider := range shippedHost(t).Catalog().Providers() {
		m, err := provider.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		table := peers.Read(m.Peers)
		for key, rules := range table.Names {
			for _, r := range rules {
				line, words := strings.Split(strings.Split(key, "|")[0], "_"), []string{}
				for i, name := range r.Words {
					word := fmt.Sprintf("Word%d", i)
					form, _ := r.From[strings.TrimRight(name, "?.")].(string)
					if pattern, is := strings.CutPrefix(form, "~"); is {
						word = examples[max(0, slices.IndexFunc(examples, regexp.MustCompile(pattern).MatchString))]
					} else if form != "" && form[0] != '$' {
						word = form
					} else {
						words = append(words, word)
					}
					line = append(line, word)
				}
				next := meantBy(t, home, line...)
				if len(words) == 0 || next == nil || next.Op != step.OpCall {
					continue
				}
				offered++
				for _, word := range words {
					if !strings.Contains(string(next.Params)+next.Options.File, word) {
						t.Errorf("%q: %s %s has no %s", line, next.Tool, next.Params, word)
					}
				}
			}
		}
	}
	t.Logf("%d names, for which a call is offered", offered)
	if offered < 40 {
		t.Errorf("only %d calls were offered", offered)
	}
}
