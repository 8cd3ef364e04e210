// Package providertest tests any [host.Provider] against the contract of all providers.
package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// Case is one call of the provider under test.
type Case struct {
	Tool   string
	Params string // JSON; "" is {}
	Want   string // expected result as JSON; "" accepts any
	Code   host.Code
}

// Options describe what [Run] cannot find out by itself.
type Options struct {
	// Calls are made one after another. Without any, Invoke is not tested.
	Calls []Case
	// Slow is a call that does not end by itself. It must end soon after its context.
	Slow *Case
}

// endLimit is how long a call may go on after its context has ended: ten times what callers are promised.
const endLimit = 2 * time.Second

var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)?$`)

// Run tests one provider. Run the tests with the race detector, too.
func Run(t *testing.T, p host.Provider, o Options) {
	t.Run("info", func(t *testing.T) { checkInfo(t, p) })
	t.Run("names", func(t *testing.T) { checkNames(t, p) })
	t.Run("tools", func(t *testing.T) { checkTools(t, p) })
	t.Run("unknown", func(t *testing.T) { checkUnknown(t, p) })
	t.Run("search", func(t *testing.T) { checkSearch(t, p) })
	t.Run("concurrent", func(t *testing.T) { checkConcurrent(t, p) })
	for _, c := range o.Calls {
		t.Run("call "+c.Tool, func(t *testing.T) { checkCall(t, p, c) })
	}
	if len(o.Calls) > 0 {
		t.Run("cancelled", func(t *testing.T) { checkCancelled(t, p, o.Calls[0]) })
	}
	if o.Slow != nil {
		t.Run("slow", func(t *testing.T) { checkSlow(t, p, *o.Slow) })
	}
}

func checkInfo(t *testing.T, p host.Provider) {
	i := p.Info()
	if !namePattern.MatchString(i.Name) || strings.Contains(i.Name, ".") || strings.Contains(i.Name, "__") {
		t.Errorf("the name %q cannot be typed on a command line", i.Name)
	}
	if i.Version == "" || i.Kind == "" || i.Brief == "" {
		t.Errorf("version %q, kind %q and brief %q must not be empty", i.Version, i.Kind, i.Brief)
	}
	if (i.Digest == "") != (i.Kind == manifest.KindBuiltin) {
		t.Errorf("digest %q with kind %s: providers must have a digest unless they are built in", i.Digest, i.Kind)
	}
	groups := must(p.Groups())
	if i.Groups != len(groups) {
		t.Errorf("info counts %d groups, expected %d", i.Groups, len(groups))
	}
	all := must(p.Names())
	if i.Tools != len(all) {
		t.Errorf("info counts %d tools, expected %d", i.Tools, len(all))
	}
	m := must(p.Manifest())
	if m.Name != i.Name || m.Version != i.Version {
		t.Errorf("the manifest is that of %s %s, the info that of %s %s", m.Name, m.Version, i.Name, i.Version)
	}
}

// checkNames compares lists, names and groups: each tool must be in exactly one list. A group and a tool of a built-in
// provider may differ by case alone, if the spelling of the group is not taken for the tool.
func checkNames(t *testing.T, p host.Provider) {
	all := must(p.Names())
	if !slices.IsSorted(all) {
		t.Error("names are not sorted")
	}
	taken := map[string]bool{}
	for _, n := range all {
		if !namePattern.MatchString(n) || taken[strings.ToLower(n)] {
			t.Errorf("%q is not a name, or names two tools", n)
		}
		taken[strings.ToLower(n)] = true
	}
	groups := append([]host.GroupLine{{}}, must(p.Groups())...)
	listed := []string{}
	for _, g := range groups {
		if g.Name != "" && taken[strings.ToLower(g.Name)] && must(p.Tool(g.Name)) != nil {
			t.Errorf("%q is a group and a tool", g.Name)
		}
		lines := must(p.Lines(g.Name))
		if g.Name != "" && len(lines) != g.Tools {
			t.Errorf("group %s counts %d tools but lists %d", g.Name, g.Tools, len(lines))
		}
		for _, l := range lines {
			listed = append(listed, l.Name)
			if !strings.HasPrefix(l.Signature, manifest.LocalName(l.Name)+"(") || l.Brief == "" || !isEffect(l.Effect) {
				t.Errorf("line %+v: the signature must begin with the bare name, and brief and effect must be set", l)
			}
		}
		if again := must(p.Lines(g.Name)); !reflect.DeepEqual(lines, again) {
			t.Errorf("the list of %q changes between two calls", g.Name)
		}
	}
	slices.Sort(listed)
	if !slices.Equal(all, listed) {
		t.Errorf("names and lists differ: %d and %d", len(all), len(listed))
	}
}

func isEffect(e string) bool {
	return e == manifest.EffectRead || e == manifest.EffectWrite || e == manifest.EffectDestructive
}

func checkTools(t *testing.T, p host.Provider) {
	m := must(p.Manifest())
	compile := schema.CompileUntrusted
	if p.Info().Kind == manifest.KindBuiltin {
		compile = schema.CompileTrusted
	}
	declared := map[string]bool{}
	for _, e := range m.ExitCodes {
		declared[e.Name] = true
	}
	for _, name := range must(p.Names()) {
		tool := must(p.Tool(strings.ToUpper(name)))
		if tool == nil || tool.Name != name {
			t.Errorf("%s is not found without regard to case", name)
			continue
		}
		if tool.Docs.Brief == "" || len([]rune(tool.Docs.Brief)) > 64 || strings.ContainsAny(tool.Docs.Brief, "\r\n") {
			t.Errorf("%s: brief %q is not one line of 1 to 64 characters", name, tool.Docs.Brief)
		}
		if !isEffect(tool.Effect) {
			t.Errorf("%s: effect %q", name, tool.Effect)
		}
		for _, e := range tool.ExitCodes {
			if !declared[e] {
				t.Errorf("%s: exit code %s is not declared", name, e)
			}
		}
		for tier := manifest.Tier1; tier <= manifest.Tier3; tier++ {
			if d := manifest.Describe(m, tool, tier); d.Name != p.Info().Name+"."+name || d.Tier != tier {
				t.Errorf("%s: tier %d describes %s at %d", name, tier, d.Name, d.Tier)
			}
		}
		if p.Info().Kind == manifest.KindExtism {
			continue
		}
		params, err := compile(tool.Params)
		if err != nil {
			t.Errorf("%s: parameters: %v", name, err)
			continue
		}
		if len(tool.Returns) > 0 {
			if _, err := compile(tool.Returns); err != nil {
				t.Errorf("%s: returns: %v", name, err)
			}
		}
		for _, e := range tool.Examples {
			checkExample(t, name, e, params)
		}
	}
}

func checkExample(t *testing.T, name string, e manifest.Example, params *schema.Schema) {
	value, err := jsontext.Decode(e.Params, jsontext.Limits{})
	if err != nil {
		t.Errorf("%s: example %q: %v", name, e.Title, err)
		return
	}
	violations, err := params.Validate(value)
	violations = manifest.WithoutReferences(&e, violations)
	if err != nil || len(violations) > 0 && e.ExitCode != host.Errorf(host.InvalidArgs, "").ExitCode() {
		t.Errorf("%s: example %q breaks the tool's own schema: %v %v", name, e.Title, violations, err)
	}
}

func checkUnknown(t *testing.T, p host.Provider) {
	for _, name := range []string{"no-such-tool", "", "no.such.tool.at.all", "\x00", strings.Repeat("x", 10000)} {
		if tool, err := p.Tool(name); tool != nil || err != nil {
			t.Errorf("%.20q: got %v, %v; expected nothing and no error", name, tool, err)
		}
	}
	if lines, err := p.Lines("no-such-group"); len(lines) > 0 || err != nil {
		t.Errorf("an unknown group lists %d tools, %v", len(lines), err)
	}
}

// checkSearch checks that a search for a tool's name finds that tool first.
func checkSearch(t *testing.T, p host.Provider) {
	seg := must(p.Segment())
	if err := segment.Check(seg); err != nil {
		t.Fatal(err)
	}
	catalog := must(host.NewCatalog(p))
	h := must(call.New(call.Config{Catalog: catalog, Policy: host.DenyAll{}}))
	for _, name := range must(p.Names()) {
		data, _, err := h.Search(t.Context(), caller.Principal{Name: "test"}, search.Query{Text: name, Limit: 1})
		if err != nil || len(data.Results) == 0 || data.Results[0].Name != p.Info().Name+"."+name {
			t.Errorf("searching for %s finds %+v, %v", name, data, err)
		}
	}
}

// checkConcurrent calls each method from several goroutines, first each method alone and then all together. Alone,
// because a lock that one method takes may hide a race in the next.
func checkConcurrent(t *testing.T, p host.Provider) {
	all := must(p.Names())
	methods := []func(i int) error{
		func(int) error { p.Info(); return nil },
		func(int) error { _, err := p.Groups(); return err },
		func(int) error { _, err := p.Manifest(); return err },
		func(int) error { _, err := p.Lines(""); return err },
		func(i int) error { _, err := p.Tool(all[i%len(all)]); return err },
		func(int) error { _, err := p.Segment(); return err },
	}
	for turn := range len(methods) + 1 {
		subset := methods
		if turn < len(methods) {
			subset = methods[turn : turn+1]
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for _, method := range subset {
					if err := method(i); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
}

func newRequest(t *testing.T, p host.Provider, c Case) *host.Request {
	tool := must(p.Tool(c.Tool))
	if tool == nil {
		t.Fatalf("tool %s does not exist", c.Tool)
	}
	params := c.Params
	if params == "" {
		params = "{}"
	}
	return &host.Request{Def: tool,
		Job: job.Job{Tool: tool.Name, Params: json.RawMessage(params), Caller: "cli", CallID: "c0"}}
}

func checkCall(t *testing.T, p host.Provider, c Case) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := p.Invoke(ctx, newRequest(t, p, c))
	if c.Code != "" {
		var e *host.Error
		if !errors.As(err, &e) || e.Code != c.Code {
			t.Fatalf("got %v, expected %s", err, c.Code)
		}
		return
	}
	if err != nil || result == nil {
		t.Fatalf("got %v, %v; expected a result", result, err)
	}
	got, err := jsontext.Decode(result.Data, jsontext.Limits{Bytes: max(1, len(result.Data))})
	if err != nil {
		t.Fatalf("the result is not valid JSON: %v", err)
	}
	if c.Want == "" {
		return
	}
	want := must(jsontext.Decode([]byte(c.Want), jsontext.Limits{}))
	if string(jsontext.Marshal(got)) != string(jsontext.Marshal(want)) {
		t.Errorf("got %s, expected %s", jsontext.Marshal(got), jsontext.Marshal(want))
	}
}

func checkCancelled(t *testing.T, p host.Provider, c Case) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checkEnds(t, func() error { _, err := p.Invoke(ctx, newRequest(t, p, c)); return err })
}

func checkSlow(t *testing.T, p host.Provider, c Case) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	checkEnds(t, func() error { _, err := p.Invoke(ctx, newRequest(t, p, c)); return err })
}

// checkEnds fails unless the call returns an error soon after its context has ended.
func checkEnds(t *testing.T, invoke func() error) {
	done := make(chan error, 1)
	go func() { done <- invoke() }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("the call succeeded although its context had ended")
		}
	case <-time.After(endLimit + 200*time.Millisecond):
		t.Fatal("the call continues although its context has ended")
	}
}

// must panics on an error, because nothing can be tested if discovery fails.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
