package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/api/openapi"
	"github.com/parley-tools/parley/host/learn/eval"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
)

var pluginCheckCommand = &command.Command[string]{
	Use: "check FILE|DIR|NAME", Run: runPluginCheck, Words: command.CompletePlugins,
	Short: "Check a plugin as an installation would",
	Long: "For a file or a folder (hello.wasm, ./hello): rights, broken rules, and which examples are verified.\n" +
		"Nothing is installed. For an installed plugin it also searches for each task phrase, which must find its own\ntool.",
	Example: "parley plugin check ./hello/plugin.wasm\nparley plugin check text",
}

// runPluginCheck reports on a plugin in a file or a folder. For an installed plugin it searches all plugins for each
// task phrase, and repeats the admission. If a phrase does not find its own tool, the error is invalid_plugin, so
// that an author's CI fails.
func runPluginCheck(ctx context.Context, app *command.App, name string) error {
	if isPluginFile(name) {
		return reportPlugin(ctx, app, name)
	}
	h, err := app.Host(ctx)
	if err != nil {
		return err
	}
	report, err := eval.CheckTasks(h.Catalog(), h.Order(), name)
	if _, missing := os.Stat(name); errors.Is(err, host.NotFound) && missing == nil {
		return reportPlugin(ctx, app, name)
	}
	if err != nil {
		return err
	}
	if len(report.Misses) > 0 {
		const most = 10 // at most so many are named
		misses := command.Strings(report.Misses[:min(most, len(report.Misses))])
		return host.Errorf(host.InvalidPlugin, "%d of %s of %s do not find their own tool among the first five: %s",
			len(report.Misses), manifest.Plural(report.Phrases, "task phrase"), report.Plugin, strings.Join(misses, "; ")).
			WithNext("parley search " + command.QuoteWord(report.Misses[0].Query) + " --explain")
	}
	data := struct {
		*eval.TaskReport
		Admission *admit.Report `json:"admission,omitempty"` // nil for a plugin that is not installed
	}{TaskReport: report}
	entry, err := app.Parley().Store().Find(report.Plugin)
	if err == nil {
		data.Admission, err = app.Parley().Admission().ReportInstalled(ctx, entry)
	}
	if err != nil && !errors.Is(err, host.NotFound) {
		return err
	}
	return app.Print(data, []string{"parley search --eval FILE"}, func(w io.Writer) {
		if data.Phrases == 0 {
			fmt.Fprintf(w, "%s has no task phrases\n", data.Plugin)
		} else {
			fmt.Fprintf(w, "%s: %s of %s, each finds its own tool among the first five\n",
				data.Plugin, manifest.Plural(data.Phrases, "task phrase"), manifest.Plural(data.Tools, "tool"))
		}
		if data.Admission != nil {
			command.WriteAsks(w, data.Admission.Rights, nil, nil)
			command.WriteAdmission(w, data.Admission)
		}
	})
}

// reportPlugin prints the report on a plugin in a file or a folder that an installation would print, without
// installing it. The error is invalid_plugin if an installation would be refused.
func reportPlugin(ctx context.Context, app *command.App, path string) error {
	data, err := app.Parley().Admission().Report(ctx, path, app.Accept)
	if err != nil {
		return err
	}
	return app.PrintNext(data, []string{"parley plugin install " + command.ShellQuote(path)}, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s (%s)\n  %s\n", data.Plugin, data.Version, data.Kind, command.SignatureText(data.Signer))
		command.WriteAsks(w, data.Rights, nil, nil)
		command.WriteAdmission(w, data)
	})
}

type pluginDiffOptions struct {
	Old string `word:""`
	Now string `word:""`
}

var pluginDiffCommand = &command.Command[*pluginDiffOptions]{
	Use: "diff OLD NEW", Run: runPluginDiff,
	Short: "Show what a new version of a plugin breaks",
	Long: "OLD and NEW are each a FILE.wasm, a folder, a manifest (FILE.json), an OpenAPI document (FILE.json or\n" +
		"FILE.yaml), the name of an installed plugin, or the digest (sha256:...) of a build that is or was installed.\n" +
		"Lists what is removed, renamed or narrowed, effects that got worse, and rights that were added; of documents\n" +
		"also how the manifests differ.",
	Example: "parley plugin diff hello ./hello/plugin.wasm",
}

// runPluginDiff compares two versions of a plugin from the point of view of its callers. Each is a wasm file, a
// folder, a manifest (NAME.json), the name of an installed or shipped plugin, or the digest of a build that is or was
// installed.
func runPluginDiff(ctx context.Context, app *command.App, opts *pluginDiffOptions) error {
	before, err := readManifest(ctx, app, opts.Old)
	after, failed := readManifest(ctx, app, opts.Now)
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	changes := app.Parley().Admission().Compare(before, after)
	data := struct {
		Old     comparedPlugin `json:"old"`
		New     comparedPlugin `json:"new"`
		Changes []lint.Change  `json:"changes"`
		Breaks  int            `json:"breaks"`
		// Major reports whether the new version announces that it breaks.
		Major bool `json:"major"`
		// ManifestDiff is as in [Plugin], for a manifest derived from a document.
		ManifestDiff []string `json:"manifest_diff,omitempty"`
	}{
		Old:     comparedPlugin{before.Name, manifest.CleanLine(before.Version)},
		New:     comparedPlugin{after.Name, manifest.CleanLine(after.Version)},
		Changes: append([]lint.Change{}, changes...), Major: lint.IsMajor(before.Version, after.Version),
	}
	data.Breaks = len(lint.Breaking(data.Changes))
	if old, err := manifest.Marshal(before); err == nil && after.Derived() && !reflect.DeepEqual(before, after) {
		now, _ := manifest.Marshal(after)
		data.ManifestDiff = strings.Split(store.ManifestDiff(old, now, maxDiff), "\n")
	}
	next := command.Either(isPluginFile(opts.Now) && !strings.HasSuffix(opts.Now, ".json"),
		[]string{"parley plugin install " + command.ShellQuote(opts.Now)}, []string{})
	return app.Print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s -> %s %s: ", data.Old.Name, data.Old.Version, data.New.Name, data.New.Version)
		switch {
		case len(data.Changes) == 0:
			fmt.Fprintln(w, "nothing changes for callers")
		case data.Breaks == 0:
			fmt.Fprintln(w, "nothing breaks")
		case data.Major:
			fmt.Fprintf(w, "%s, which the major version announces\n", manifest.Plural(data.Breaks, "breaking change"))
		default:
			fmt.Fprintf(w, "%s without a higher major version; an upgrade has to be confirmed\n",
				manifest.Plural(data.Breaks, "breaking change"))
		}
		for _, c := range data.Changes {
			fmt.Fprintln(w, command.Either(c.Breaks, "! ", "  ")+c.String())
		}
		command.WriteManifestDiff(w, data.ManifestDiff)
	})
}

// isPluginFile reports whether a word names a file or a folder with a plugin, not an installed plugin.
func isPluginFile(word string) bool {
	return strings.ContainsAny(word, `/\.`) && word != ""
}

// comparedPlugin is one of the two versions that are compared.
type comparedPlugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func readManifest(ctx context.Context, app *command.App, word string) (*manifest.Manifest, error) {
	if strings.HasPrefix(word, "sha256:") {
		data, ok := app.Parley().Store().Approved(word)
		if !ok {
			return nil, host.Errorf(host.NotFound, "no build %s is known here; expected the whole digest of a build that is or "+
				"was installed", manifest.CleanLine(word)).WithSteps(step.Operator(step.OpPluginList))
		}
		return manifest.Load(data)
	}
	if isDocument(word) {
		data, err := command.ReadValue(ctx, word, openapi.MaxDocument)
		if err != nil {
			return nil, host.Errorf(host.InvalidArgs, "cannot read the manifest: %s", manifest.CleanLine(err.Error()))
		}
		return parseManifest(app, word, data)
	}
	p, err := providerOf(app, word, "compare")
	if err != nil {
		return nil, err
	}
	return host.WholeManifest(p)
}

// providerOf returns the plugin in a file or a folder, or a shipped or installed one by its name. The error is
// invalid_args for a built-in plugin, which has no manifest for what do names.
func providerOf(app *command.App, word, do string) (host.Provider, error) {
	if !isPluginFile(word) {
		at, err := app.Plugin(word)
		if err == nil && at.Provider.Info().Kind == manifest.KindBuiltin {
			return nil, host.Errorf(host.InvalidArgs, "%s is built in and has no manifest to %s", at.Plugin, do)
		}
		if _, missing := os.Stat(word); err == nil || missing != nil {
			return at.Provider, err
		}
	}
	c, err := store.ReadCandidate(word, parley.Version)
	if err != nil {
		return nil, err
	}
	return app.Parley().Engine().Provider(c.Source()), nil
}

var pluginTestCommand = &command.Command[*pluginTestOptions]{
	Use: "test FILE|DIR|NAME", Run: runPluginTest, Words: command.CompletePlugins,
	Short: "Test a plugin by its examples and by generated calls",
	Long: "Runs each runnable example, and calls that are generated by the schema of each tool: valid ones and\n" +
		"hostile strings must neither trap nor break the schema of the result, invalid ones must be refused by the\n" +
		"host, and the same call must have the same outcome. No call has a right. --seed repeats the generated calls.",
	Example: "parley plugin test ./hello\nparley plugin test ./hello --seed 7 --calls 200",
}

// runPluginTest tests a plugin by its examples and by generated calls. The error is invalid_plugin if it fails.
func runPluginTest(ctx context.Context, app *command.App, opts *pluginTestOptions) error {
	if opts.Calls < 0 || opts.Calls > 10_000 {
		return host.Errorf(host.InvalidArgs, "--calls is %d; expected a number from 1 to 10000", opts.Calls)
	}
	provider, err := providerOf(app, opts.Plugin, "test")
	if err != nil {
		return err
	}
	for opts.Seed == 0 {
		opts.Seed = uint64(rand.Uint32())
	}
	report, err := app.Parley().Admission().Test(ctx, provider, admit.TestOptions{Seed: opts.Seed, Calls: opts.Calls})
	if err != nil {
		return err
	}
	if len(report.Failures) > 0 {
		return failedTest(opts, report)
	}
	next := []string{"parley plugin check " + command.ShellQuote(opts.Plugin)}
	return app.PrintNext(report, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s passed %s, with seed %d\n", report.Plugin, report.Version,
			manifest.Plural(report.Calls, "call"), report.Seed)
		for _, t := range report.Tools {
			fmt.Fprintf(w, "  %s: %s, %d valid, %d invalid, %d hostile", t.Tool, manifest.Plural(t.Examples, "example"), t.Valid,
				t.Invalid, t.Hostile)
			command.PrintIf(w, t.Denied > 0, "; %d need rights", t.Denied)
			command.PrintIf(w, t.Failing != "", "; no call succeeded (%s): add an example that runs", t.Failing)
			command.PrintIf(w, len(t.Unreached) > 0, "; no call ended in %s", strings.Join(t.Unreached, ", "))
			fmt.Fprintln(w)
		}
	})
}

// failedTest returns the error of a failed test, with the failures as details.
func failedTest(opts *pluginTestOptions, report *admit.TestReport) error {
	repeat := []string{opts.Plugin, "--seed", strconv.FormatUint(opts.Seed, 10)}
	if opts.Calls > 0 {
		repeat = append(repeat, "--calls", strconv.Itoa(opts.Calls))
	}
	e := host.Errorf(host.InvalidPlugin, "%s in %s of %s (%s), with seed %d",
		manifest.Plural(len(report.Failures), "failure"), manifest.Plural(report.Calls, "call"), report.Plugin,
		strings.Join(report.Kinds(), ", "), opts.Seed).
		WithSteps(step.Operator(step.OpPluginTest, repeat...))
	for _, f := range report.Failures {
		e.Trace = cmp.Or(e.Trace, f.Trace)
		d := host.Detail{
			Parameter: f.Tool, Keyword: f.Kind,
			Expected: fmt.Sprintf("%s %s: %s", f.Kind, manifest.Clip(string(f.Params), 300), f.Reason),
		}
		if !slices.Contains(e.Details, d) { // the host bounds how many are shown
			e.Details = append(e.Details, d)
		}
	}
	return e
}

// pluginTestOptions say which plugin to test, and how.
type pluginTestOptions struct {
	Plugin string `word:""` // a file, a folder, or the name of an installed plugin
	Calls  int    `flag:"calls" usage:"generated calls of each tool and kind; default 20"`
	// Seed repeats the generated calls of an earlier test. 0 means a new one.
	Seed uint64 `flag:"seed" usage:"repeat the generated calls of this seed"`
}
