package command

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

// TestOptions say which plugin to test, and how.
type TestOptions struct {
	// Plugin is a file, a folder, or the name of an installed plugin.
	Plugin string
	// Seed repeats the generated calls of an earlier test. 0 means a new one.
	Seed uint64
	// Calls is how many calls of each kind are generated for each tool. 0 means 20.
	Calls int
}

// TestPlugin tests a plugin by its examples and by generated calls. The error is invalid_plugin if it fails; it has the
// failures as details, and the report is returned as well.
func TestPlugin(ctx context.Context, d *Deps, o TestOptions) (*parley.TestReport, error) {
	if o.Calls < 0 || o.Calls > 10_000 {
		return nil, host.Errorf(host.InvalidArgs, "--calls is %d; expected a number from 1 to 10000", o.Calls)
	}
	provider, err := d.testedProvider(o.Plugin)
	if err != nil {
		return nil, err
	}
	for o.Seed == 0 {
		o.Seed = uint64(rand.Uint32())
	}
	report, err := d.Parley().Test(ctx, provider, parley.TestOptions{Seed: o.Seed, Calls: o.Calls})
	if err != nil || len(report.Failures) == 0 {
		return report, err
	}
	repeat := []string{o.Plugin, "--seed", strconv.FormatUint(o.Seed, 10)}
	if o.Calls > 0 {
		repeat = append(repeat, "--calls", strconv.Itoa(o.Calls))
	}
	e := host.Errorf(host.InvalidPlugin, "%d of %s of %s failed (%s), with seed %d", len(report.Failures),
		manifest.Plural(report.Calls, "call"), report.Plugin, strings.Join(report.Kinds(), ", "), o.Seed).
		WithSteps(host.OperatorStep(host.OpPluginTest, repeat...))
	for _, f := range report.Failures {
		if e.Trace == nil {
			e.Trace = f.Trace
		}
	}
	for _, f := range report.Failures {
		d := host.Detail{
			Parameter: f.Tool, Keyword: f.Kind,
			Expected: fmt.Sprintf("%s %s: %s", f.Kind, manifest.Clip(string(f.Params), 300), f.Reason),
		}
		if !slices.Contains(e.Details, d) { // the host shows as many as its bound allows
			e.Details = append(e.Details, d)
		}
	}
	return report, e
}

// testedProvider returns the plugin in a file or a folder, or a shipped or installed one by its name.
func (d *Deps) testedProvider(word string) (host.Provider, error) {
	if !IsPluginFile(word) {
		catalog, err := d.Catalog()
		if err != nil {
			return nil, err
		}
		at, err := catalog.FindIn(word, "")
		if err == nil && at.Provider.Info().Kind == manifest.KindBuiltin {
			return nil, host.Errorf(host.InvalidArgs, "%s is built in and has no manifest to test", at.Plugin)
		}
		if err == nil {
			return at.Provider, nil
		}
		if _, missing := os.Stat(word); missing != nil {
			return nil, err
		}
	}
	c, err := wasm.ReadCandidate(word, parley.Version)
	if err != nil {
		return nil, err
	}
	return d.Parley().Engine().Provider(c.Source()), nil
}
