// Package admit decides which plugins a host has: it tries a plugin out before it is installed or loaded, knows who
// owns a name and who signed a build, and installs and removes plugins.
package admit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
)

// Config is what an [Installer] needs of its host. All but Admitted is required.
type Config struct {
	Version string // version of the host
	Dir     string // folder of the reports on builds
	Store   *store.Store
	Trust   *signature.Trust
	Engine  func() *wasm.Engine
	// EngineConfig returns the configuration of Engine.
	EngineConfig func() wasm.Config
	// Rules returns the operator's policy.
	Rules func() (*policy.Policy, error)
	// Providers returns the built-in, shipped and installed plugins.
	Providers func() ([]host.Provider, error)
	// Shipped returns the digest of the shipped plugin of a name, "" if there is none.
	Shipped func(name string) (digest string, err error)
	// Uses returns who called the tools of a plugin within a week, by their local names.
	Uses func(plugin string) map[string]string
	// Admitted takes the report on each plugin that is loaded for the first time or refused. It may be nil.
	Admitted func(*Report)
	Audit    func(op, subject string, details ...string) error
	Notice   func(text string)
	Debug    func(format string, args ...any)
}

// Installer admits, installs and removes plugins. It is safe for concurrent use.
type Installer struct {
	cfg     Config
	signers signers
}

// New returns an installer.
func New(cfg Config) *Installer {
	return &Installer{cfg: cfg}
}

// Compare returns what a new version of a plugin changes, and who called what it removes.
func (in *Installer) Compare(before, after *manifest.Manifest) []lint.Change {
	return lint.WithUses(lint.Compare(before, after), in.cfg.Uses(before.Name))
}

// refuse returns the error that refuses the plugin, nil if nothing does. [Config].Admitted then gets the report.
func (in *Installer) refuse(report *Report, steps ...step.Step) error {
	found := report.Errors()
	if len(found) == 0 {
		return nil
	}
	if in.cfg.Admitted != nil {
		in.cfg.Admitted(report)
	}
	var rules []string
	e := &host.Error{Code: host.InvalidPlugin, Steps: steps}
	for _, f := range found {
		rules = lists.Add(rules, f.Rule)
		e.Details = append(e.Details, host.Detail{
			Parameter: cmp.Or(f.Pointer, "/"), Keyword: f.Rule, Expected: f.Rule + ": " + f.Message})
	}
	e.Message = fmt.Sprintf("%s is refused: it is neither shipped nor signed with a trusted key, and its texts could "+
		"mislead an agent. If you trust its author, accept what breaks a rule: --accept %s",
		report.Plugin, strings.Join(rules, " --accept "))
	return e
}

// checkAccepted returns an error for a name in a list of accepted rules that no rule has.
func checkAccepted(names []string) error {
	for _, name := range names {
		if slices.ContainsFunc(lint.Rules(), func(r lint.Rule) bool { return r.Name == name }) {
			continue
		}
		var known []string
		for _, r := range lint.Rules() {
			if r.Severity == lint.Error {
				known = append(known, r.Name)
			}
		}
		return host.Errorf(host.InvalidArgs, "there is no rule %q to accept; rules that refuse a plugin are %s",
			manifest.CleanLine(name), strings.Join(known, ", "))
	}
	return nil
}

// Admit checks a plugin and returns the report. Nothing is installed, and the plugin is granted nothing: its examples
// run without rights, isolated where the system can, and within two seconds in all. accept has the rules that it may
// break. If it breaks a rule of severity error, or cannot be compiled, no example runs; the error is then in
// [Report.Errors], or returned.
func (in *Installer) Admit(ctx context.Context, c *store.Candidate, signer Signer, accept []string) (*Report, error) {
	report, err := in.inspect(c, signer, accept)
	if err != nil || len(report.Errors()) > 0 {
		return report, err
	}
	provider := in.cfg.Engine().Provider(c.Source())
	began := time.Now()
	if err := provider.Prepare(ctx); err != nil {
		if errors.Is(err, host.InvalidPlugin) || errors.Is(err, host.LimitExceeded) {
			in.saveReport(report) // it will be so the next time
		}
		return report, err
	}
	report.CompileMS = time.Since(began).Milliseconds()
	if err := provider.CheckScript(ctx); err != nil {
		return report, err
	}
	if before := in.storedReport(report.Digest); before.Host == in.cfg.Version {
		report.CompileMS = max(report.CompileMS, before.CompileMS) // its code was in the cache
	}
	if err := in.runExamples(ctx, provider, c.Manifest, report); err != nil {
		return report, err
	}
	if err := in.checkWarm(ctx, c.Source()); err != nil {
		return report, err
	}
	in.saveReport(report)
	return report, nil
}

// inspect reports what can be found out about a plugin without running it.
func (in *Installer) inspect(c *store.Candidate, signer Signer, accept []string) (*Report, error) {
	if err := checkAccepted(accept); err != nil {
		return nil, err
	}
	if _, err := in.ownShipped(c); err != nil {
		return nil, err
	}
	m := c.Manifest
	report := &Report{
		Plugin: m.Name, Version: manifest.CleanLine(m.Version), Kind: m.Kind, Digest: c.Digest, Signer: signer,
		Owner: c.Source().Info.Owner, Bytes: len(c.Wasm), Rights: []grant.Denial{}, Effects: map[string][]string{},
		Findings: []lint.Finding{}, Examples: []ExampleRun{}, Host: in.cfg.Version,
	}
	report.Rights = append(report.Rights, grant.Requested(m.Capabilities)...)
	for _, t := range m.Tools {
		report.Effects[t.Effect] = append(report.Effects[t.Effect], t.Name)
	}
	beside, err := in.neighbors(c)
	if err != nil {
		return nil, err
	}
	report.Findings = append(report.Findings, lint.Check(m, beside)...)
	for _, f := range report.Findings {
		if f.Severity == lint.Error && slices.Contains(accept, f.Rule) {
			report.Accepted = lists.Add(report.Accepted, f.Rule)
		}
	}
	return report, nil
}

// neighbors returns the plugins beside a candidate, and a search with and without it.
func (in *Installer) neighbors(c *store.Candidate) (lint.Neighbors, error) {
	others, err := in.cfg.Providers()
	if err != nil {
		return lint.Neighbors{}, err
	}
	others = slices.DeleteFunc(slices.Clone(others), func(o host.Provider) bool {
		return strings.EqualFold(o.Info().Name, c.Manifest.Name)
	})
	without, err := in.searcher(others)
	if err != nil {
		return lint.Neighbors{}, err
	}
	with, err := in.searcher(append(slices.Clone(others), in.cfg.Engine().Provider(c.Source())))
	if err != nil {
		return lint.Neighbors{}, err
	}
	beside := lint.Neighbors{Owner: c.Source().Info.Owner, Search: func(phrase string, all bool) []lint.Hit {
		if all {
			return with(phrase)
		}
		return without(phrase)
	}}
	for _, o := range others {
		names, err := o.Names()
		if err != nil {
			continue // a damaged plugin; lists say so
		}
		info := o.Info()
		plugin := lint.Plugin{Name: info.Name, Owner: info.Owner, Shipped: info.Identity() == host.OwnerShipped,
			Owned: !info.Unsigned()}
		for _, name := range names {
			if t, err := o.Tool(name); err == nil && t != nil {
				plugin.Tools = append(plugin.Tools, t)
			}
		}
		beside.Plugins = append(beside.Plugins, plugin)
	}
	return beside, nil
}

// searcher returns a search over plugins that records nothing.
func (in *Installer) searcher(providers []host.Provider) (func(phrase string) []lint.Hit, error) {
	catalog, err := host.NewCatalog(providers...)
	if err != nil {
		return nil, err
	}
	return func(phrase string) []lint.Hit {
		const depth = 5
		data, _, err := search.Rank(catalog, search.Query{Text: phrase, Limit: depth}, search.Order{Exact: true}, nil)
		if err != nil {
			return nil
		}
		return lists.Map(data.Results, func(r search.Result) lint.Hit {
			return lint.Hit{Name: r.Name, Sure: r.Confidence == "high"}
		})
	}, nil
}

// Load decides whether a plugin may be loaded from its file under its name, with accept as the rules that it may
// break. If it takes the name from another owner, which is "shipped" or the key of a signer, replace is called, and
// the plugin may be loaded if that returns nil; a nil replace refuses. A build that this version has admitted before
// is inspected only if its report is not stored, and its examples do not run again.
func (in *Installer) Load(c *store.Candidate, accept []string, replace func(plugin, owner string) error) error {
	signer, err := in.Verify(c)
	if err != nil {
		return err
	}
	c.Signer = signer.Key
	if err := in.ownLoaded(c, replace); err != nil {
		return err
	}
	report := in.storedReport(c.Digest)
	fresh := report.Host != in.cfg.Version
	if fresh {
		report, err = in.Admit(context.Background(), c, signer, accept)
		if report == nil {
			return err
		}
		// A plugin that cannot be compiled can still be listed and described; its calls say what is wrong.
	} else {
		if err := checkAccepted(accept); err != nil {
			return err
		}
		report.Owner, report.Signer, report.Accepted = c.Source().Info.Owner, signer, accept
	}
	if err := in.refuse(report, step.Operator(step.OpPluginCheck, c.Path)); err != nil {
		return err
	}
	if fresh && in.cfg.Admitted != nil {
		in.cfg.Admitted(report)
	}
	in.signers.builds.Store(c.Digest, c)
	return nil
}

// Report is the report on a plugin that is about to be installed or loaded, or was built: what it asks for, what it
// does, who made it, and whether its claims are true. Texts of the plugin in it are cleaned.
type Report struct {
	Plugin  string `json:"plugin"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Digest  string `json:"digest"`
	// Owner is who the name belongs to, as in the lock file: [host.OwnerShipped], [host.OwnerUnsigned], or the public key
	// of the signer, trusted or not.
	Owner     string `json:"owner"`
	Signer    Signer `json:"signature"`
	Bytes     int    `json:"bytes"`      // size of the wasm
	CompileMS int64  `json:"compile_ms"` // how long compiling took; zero if it was not compiled
	// Rights are the rights that it asks for, with its own words why.
	Rights []grant.Denial `json:"rights"`
	// Effects are the names of its tools by their effect.
	Effects  map[string][]string `json:"effects"`
	Findings []lint.Finding      `json:"findings"`
	Accepted []string            `json:"accepted,omitempty"` // rules that were broken and accepted
	Examples []ExampleRun        `json:"examples"`
	Verified int                 `json:"verified"` // number of the verified examples
	Host     string              `json:"host"`     // the version of the host that made the report
}

// ExampleRun is the outcome of one example.
type ExampleRun struct {
	Tool     string `json:"tool"`
	Index    int    `json:"index"` // in the examples of the tool
	Title    string `json:"title"`
	Status   string `json:"status"`           // ExampleVerified, ExampleDiffers or ExampleNotRun
	Reason   string `json:"reason,omitempty"` // the difference, or why it did not run
	ExitCode int    `json:"exit_code"`
}

// The states of an example. Without rights an example that needs some cannot be checked.
const (
	ExampleVerified = "verified"
	ExampleDiffers  = "differs"
	ExampleNotRun   = "not_run"
)

// Errors returns the findings that refuse the plugin: errors of a plugin that is neither shipped nor signed with a
// trusted key, in rules that were not accepted.
func (r *Report) Errors() []lint.Finding {
	if r.Owner == host.OwnerShipped || r.Signer.Trusted {
		return nil
	}
	return lists.Filter(r.Findings, func(f lint.Finding) bool {
		return f.Severity == lint.Error && !slices.Contains(r.Accepted, f.Rule)
	})
}

// maxReports bounds the stored reports, one of each build. The oldest are removed first.
const maxReports = 500

func (in *Installer) reportPath(digest string) string {
	return filepath.Join(in.cfg.Dir, strings.TrimPrefix(digest, "sha256:")+".json")
}

// saveReport stores the report of a build. Descriptions read the runs of its examples from it.
func (in *Installer) saveReport(report *Report) {
	path := in.reportPath(report.Digest)
	data, err := json.Marshal(report)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = durable.Write(path, data)
	}
	if err != nil {
		in.cfg.Debug("the report on %s is not stored: %v", report.Plugin, err)
		return
	}
	in.pruneReports(filepath.Dir(path))
}

// pruneReports removes the oldest reports of builds that are not installed.
func (in *Installer) pruneReports(dir string) {
	files, err := os.ReadDir(dir)
	if err != nil || len(files) <= maxReports {
		return
	}
	entries, err := in.cfg.Store.List()
	if err != nil {
		return
	}
	var old []os.FileInfo
	for _, f := range files {
		installed := slices.ContainsFunc(entries, func(e store.Entry) bool {
			return filepath.Base(in.reportPath(e.Digest)) == f.Name()
		})
		if info, err := f.Info(); err == nil && !installed {
			old = append(old, info)
		}
	}
	slices.SortFunc(old, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range old[min(len(old), maxReports):] {
		_ = os.Remove(filepath.Join(dir, info.Name()))
	}
}

// storedReport returns the report of a build. Without one, it is empty.
func (in *Installer) storedReport(digest string) *Report {
	const limit = 4 << 20
	report := &Report{}
	data, err := protect.Read(in.reportPath(digest), limit)
	if err != nil || json.Unmarshal(data, report) != nil || report.Digest != digest {
		return &Report{}
	}
	return report
}

// Annotate adds the runs of examples to the manifest of a build. Shipped plugins were admitted when the binary was
// built: tests check that their examples do what they declare. The report of another build is read when somebody asks
// for a run, which calls do not.
func (in *Installer) Annotate(digest string, m *manifest.Manifest) {
	if digest == "" {
		return
	}
	shipped := in.isShipped(m.Name, digest)
	runs := sync.OnceValue(func() map[exampleKey]*manifest.ExampleRun { return in.exampleRuns(digest) })
	for i := range m.Tools {
		for j := range m.Tools[i].Examples {
			e, key := &m.Tools[i].Examples[j], exampleKey{m.Tools[i].Name, j}
			switch {
			case !shipped:
				e.Run = func() *manifest.ExampleRun { return runs()[key] }
			case e.Runnable: // TestShippedExamples runs these
				run := &manifest.ExampleRun{Verified: "parley " + in.cfg.Version, ExitCode: e.ExitCode}
				e.Run = func() *manifest.ExampleRun { return run }
			}
		}
	}
}

// exampleKey identifies an example of a plugin: the one at an index of a tool.
type exampleKey struct {
	tool  string
	index int
}

// exampleRuns returns what the report of a build says about its examples.
func (in *Installer) exampleRuns(digest string) map[exampleKey]*manifest.ExampleRun {
	report := in.storedReport(digest)
	runs := map[exampleKey]*manifest.ExampleRun{}
	for _, r := range report.Examples {
		key := exampleKey{r.Tool, r.Index}
		switch r.Status {
		case ExampleVerified:
			runs[key] = &manifest.ExampleRun{Verified: "parley " + report.Host, ExitCode: r.ExitCode}
		case ExampleDiffers:
			runs[key] = &manifest.ExampleRun{Differs: r.Reason, ExitCode: r.ExitCode}
		case ExampleNotRun:
			runs[key] = &manifest.ExampleRun{NotRun: r.Reason}
		}
	}
	return runs
}
