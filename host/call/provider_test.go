package call_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/providertest"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/manifest"
)

func contract() providertest.Options {
	return providertest.Options{
		Calls: []providertest.Case{
			{Tool: "add", Params: `{"title":"tea"}`, Want: `{"id":1}`},
			{Tool: "echo", Params: `{"b":1,"a":[2.0]}`, Want: `{"a":[2.0],"b":1}`},
			{Tool: "order.cancel", Params: `{"id":3}`, Code: host.NotFound},
		},
		Slow: &providertest.Case{Tool: "order.slow"},
	}
}

func contractFake(t testing.TB) *fake {
	return newFake(t, shop, map[string]handler{
		"order.cancel": func(context.Context, *host.Request) (*job.Result, error) {
			return nil, host.Errorf(host.NotFound, "no order 3")
		},
	})
}

func TestProvider(t *testing.T) {
	t.Run("plugin", func(t *testing.T) { providertest.Run(t, contractFake(t), contract()) })
	t.Run("builtin", func(t *testing.T) { providertest.Run(t, contractFake(t).builtin(), contract()) })
}

// broken are providers that each break one rule, with the expected report of providertest; | separates alternatives.
var broken = map[string]struct {
	says string
	make func(f *fake) host.Provider
}{
	"name": {"cannot be typed on a command line",
		func(f *fake) host.Provider { f.info.Name, f.manifest.Name = "a.b", "a.b"; return f }},
	"name with __": {"cannot be typed on a command line",
		func(f *fake) host.Provider { f.info.Name, f.manifest.Name = "a__b", "a__b"; return f }},
	"no version": {"must not be empty",
		func(f *fake) host.Provider { f.info.Version, f.manifest.Version = "", ""; return f }},
	"no brief": {"must not be empty", func(f *fake) host.Provider { f.info.Brief = ""; return f }},
	"no digest": {"providers must have a digest unless they are built in",
		func(f *fake) host.Provider { f.info.Digest = ""; return f }},
	"builtin with digest": {"providers must have a digest unless they are built in",
		func(f *fake) host.Provider { f.info.Kind = manifest.KindBuiltin; return f }},
	"count of groups": {"info counts 7 groups", func(f *fake) host.Provider { f.info.Groups = 7; return f }},
	"count of tools":  {"info counts 7 tools", func(f *fake) host.Provider { f.info.Tools = 7; return f }},
	"other manifest": {"the manifest is that of shop 2.0.0",
		func(f *fake) host.Provider { f.manifest.Version = "2.0.0"; return f }},
	"unsorted names":   {"names are not sorted", func(f *fake) host.Provider { return unsorted{f} }},
	"an extra name":    {"names and lists differ", func(f *fake) host.Provider { return oneMore{f} }},
	"count in a group": {"counts 9 tools but lists 3", func(f *fake) host.Provider { return miscounted{f} }},
	"unstable list":    {"changes between two calls", func(f *fake) host.Provider { return &unstable{fake: f} }},
	"signature": {"the signature must begin with the bare name",
		func(f *fake) host.Provider { return unsigned{f} }},
	"case":         {"is not found without regard to case", func(f *fake) host.Provider { return exact{f} }},
	"unknown tool": {"expected nothing and no error", func(f *fake) host.Provider { return inventive{f} }},
	"effect": {`effect "harmless"`,
		func(f *fake) host.Provider { f.manifest.Tools[0].Effect = "harmless"; return f }},
	"long brief": {"is not one line of 1 to 64 characters",
		func(f *fake) host.Provider { f.manifest.Tools[0].Docs.Brief = strings.Repeat("x", 65); return f }},
	"undeclared exit": {"exit code gone is not declared",
		func(f *fake) host.Provider { f.manifest.Tools[0].ExitCodes = []string{"gone"}; return f }},
	"params schema": {"add: parameters:",
		func(f *fake) host.Provider { f.manifest.Tools[0].Params = []byte(`{"type":"nothing"}`); return f }},
	"returns schema": {"add: returns:",
		func(f *fake) host.Provider { f.manifest.Tools[0].Returns = []byte(`{"type":"nothing"}`); return f }},
	"example": {`example "One" breaks the tool's own schema`,
		func(f *fake) host.Provider { f.manifest.Tools[0].Examples[0].Params = []byte(`{}`); return f }},
	"group and tool": {"is a group and a tool",
		func(f *fake) host.Provider { f.manifest.Tools[0].Name = "Order"; return f }},
	"no segment":        {"search", func(f *fake) host.Provider { return unindexed{f} }},
	"another's segment": {"searching for", func(f *fake) host.Provider { return misindexed{f} }},
	"wrong result": {"expected {\"id\":1}",
		func(f *fake) host.Provider { f.handlers["add"] = answers(`{"id":2}`); return f }},
	"no JSON": {"the result is not valid JSON",
		func(f *fake) host.Provider { f.handlers["add"] = answers(`{"id":`); return f }},
	"no result": {"panic|nil|no result", func(f *fake) host.Provider { f.handlers["add"] = nothing; return f }},
	"wrong error": {"expected not_found",
		func(f *fake) host.Provider { f.handlers["order.cancel"] = plainError; return f }},
	"ignores cancellation": {"the call succeeded although its context had ended",
		func(f *fake) host.Provider { return deaf{f} }},
	"ignores the deadline": {"the call continues although its context has ended",
		func(f *fake) host.Provider { f.handlers["order.slow"] = forever; return f }},
	"race": {"DATA RACE", func(f *fake) host.Provider { return &racy{fake: f} }},
}

type (
	unsorted   struct{ *fake }
	oneMore    struct{ *fake }
	miscounted struct{ *fake }
	unsigned   struct{ *fake }
	exact      struct{ *fake }
	inventive  struct{ *fake }
	unindexed  struct{ *fake }
	misindexed struct{ *fake }
	deaf       struct{ *fake }
	unstable   struct {
		*fake
		turn int
	}
	racy struct {
		*fake
		n int
	}
)

func (p unsorted) Names() ([]string, error) {
	names, err := p.fake.Names()
	slices.Reverse(names)
	return names, err
}

func (p oneMore) Names() ([]string, error) {
	names, err := p.fake.Names()
	return append(names, "zzz"), err
}

func (p oneMore) Info() host.Info { i := p.fake.Info(); i.Tools++; return i }

func (p miscounted) Groups() ([]host.GroupLine, error) {
	groups, err := p.fake.Groups()
	groups[0].Tools = 9
	return groups, err
}

func (p *unstable) Lines(group string) ([]host.Line, error) {
	lines, err := p.fake.Lines(group)
	if p.turn++; p.turn%2 == 0 {
		slices.Reverse(lines)
	}
	return lines, err
}

func (p unsigned) Lines(group string) ([]host.Line, error) {
	lines, err := p.fake.Lines(group)
	for i := range lines {
		lines[i].Signature = "shop." + lines[i].Signature
	}
	return lines, err
}

func (p exact) Tool(name string) (*manifest.Tool, error) {
	t := p.manifest.Tool(name)
	if t != nil && t.Name != name {
		return nil, nil
	}
	return t, nil
}

func (p inventive) Tool(name string) (*manifest.Tool, error) {
	if t := p.manifest.Tool(name); t != nil {
		return t, nil
	}
	return &manifest.Tool{Name: name}, nil
}

func (p unindexed) Segment() ([]byte, error) { return []byte("nothing"), nil }

func (p misindexed) Segment() ([]byte, error) {
	return segment.Build(segment.Plugin{Name: "other"}, segment.DocsOf(p.manifest)), nil
}

func (p deaf) Invoke(_ context.Context, r *host.Request) (*job.Result, error) {
	return p.fake.Invoke(context.Background(), r)
}

func (p *racy) Segment() ([]byte, error) {
	p.n++
	return p.fake.Segment()
}

func answers(data string) handler {
	return func(context.Context, *host.Request) (*job.Result, error) {
		return &job.Result{Data: []byte(data)}, nil
	}
}

func nothing(context.Context, *host.Request) (*job.Result, error) { return nil, nil }

func plainError(context.Context, *host.Request) (*job.Result, error) {
	return nil, errors.New("no such order")
}

func forever(context.Context, *host.Request) (*job.Result, error) { select {} }

// brokenProvider names the provider that TestBrokenProvider runs, in a process of its own, and which must fail.
const brokenProvider = "PARLEY_TEST_BROKEN_PROVIDER"

func TestBrokenProvider(t *testing.T) {
	name := os.Getenv(brokenProvider)
	if name == "" {
		t.Skip("runs in a process of its own")
	}
	providertest.Run(t, broken[name].make(contractFake(t)), contract())
}

// TestProvidertestCatches checks that each broken provider fails, for the expected reason.
func TestProvidertestCatches(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range broken {
		if name == "race" && !raceDetector {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestBrokenProvider$", "-test.v")
			cmd.Env = append(os.Environ(), brokenProvider+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("the broken provider passed:\n%s", out)
			}
			if !slices.ContainsFunc(strings.Split(b.says, "|"),
				func(s string) bool { return strings.Contains(string(out), s) }) {
				t.Errorf("the report does not contain %q:\n%s", b.says, out)
			}
		})
	}
}
