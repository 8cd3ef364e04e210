package parley

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/lint"
	"github.com/parley-tools/parley/plugins"
)

// Admission is the report on a plugin that is about to be installed or loaded, or was built: what it asks for, what it
// does, who made it, and whether its claims are true. Texts of the plugin in it are cleaned.
type Admission struct {
	Plugin  string `json:"plugin"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Digest  string `json:"digest"`
	// Owner is who the name belongs to, as in the lock file: [host.OwnerShipped], [host.OwnerUnsigned], or the public key
	// of the signer, trusted or not.
	Owner     string `json:"owner"`
	Signer    Signer `json:"signature"`
	Bytes     int    `json:"bytes"`      // of the wasm
	CompileMS int64  `json:"compile_ms"` // how long compiling took; zero if it was not compiled
	// Rights are the rights that it asks for, with its own words why.
	Rights []host.Denial `json:"rights"`
	// Effects are the names of its tools by their effect.
	Effects  map[string][]string `json:"effects"`
	Findings []lint.Finding      `json:"findings"`
	Accepted []string            `json:"accepted,omitempty"` // rules that were broken and accepted
	Examples []ExampleRun        `json:"examples"`
	Verified int                 `json:"verified"` // how many of the examples
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

// exampleBudget bounds the time in which all examples of a plugin run.
const exampleBudget = 2 * time.Second

// Errors returns the findings that refuse the plugin: errors of a plugin that is neither shipped nor signed with a
// trusted key, in rules that were not accepted.
func (a *Admission) Errors() []lint.Finding {
	var found []lint.Finding
	for _, f := range a.Findings {
		stranger := a.Owner != host.OwnerShipped && !a.Signer.Trusted
		if f.Severity == lint.Error && stranger && !slices.Contains(a.Accepted, f.Rule) {
			found = append(found, f)
		}
	}
	return found
}

// refuse returns the error that refuses the plugin, nil if nothing does. Config.Admitted then gets the report.
func (p *Parley) refuse(a *Admission, steps ...host.Step) error {
	found := a.Errors()
	if len(found) == 0 {
		return nil
	}
	if p.cfg.Admitted != nil {
		p.cfg.Admitted(a)
	}
	var rules []string
	e := &host.Error{Code: host.InvalidPlugin, Steps: steps}
	for _, f := range found {
		if !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
		}
		e.Details = append(e.Details, host.Detail{
			Parameter: cmp.Or(f.Pointer, "/"), Keyword: f.Rule, Expected: f.Rule + ": " + f.Message})
	}
	e.Message = fmt.Sprintf("%s is refused: it is neither shipped nor signed with a trusted key, and its texts could "+
		"mislead an agent. If you trust its author, accept what breaks a rule: --accept %s",
		a.Plugin, strings.Join(rules, " --accept "))
	return e
}

// checkAccepted returns an error for a name in a list of accepted rules that no rule has.
func checkAccepted(names []string) error {
	for _, name := range names {
		if _, ok := lint.Find(name); ok {
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
// run without rights, isolated where the system can, and within two seconds in all. Accept are rules to accept. A
// plugin that breaks a rule of severity error, or that cannot be compiled, has no runs; the error is then in
// [Admission.Errors], or returned.
func (p *Parley) Admit(ctx context.Context, c *wasm.Candidate, signer Signer, accept []string) (*Admission, error) {
	a, err := p.inspect(c, signer, accept)
	if err != nil || len(a.Errors()) > 0 {
		return a, err
	}
	provider := p.Engine().Provider(c.Source())
	began := time.Now()
	if err := provider.Prepare(ctx); err != nil {
		if errors.Is(err, host.InvalidPlugin) || errors.Is(err, host.LimitExceeded) {
			p.saveAdmission(a) // it will be so the next time
		}
		return a, err
	}
	a.CompileMS = time.Since(began).Milliseconds()
	if err := provider.CheckScript(ctx); err != nil {
		return a, err
	}
	if before := p.keptAdmission(a.Digest); before != nil && before.Host == Version {
		a.CompileMS = max(a.CompileMS, before.CompileMS) // its code was in the cache
	}
	if err := p.runExamples(ctx, provider, c.Manifest, a); err != nil {
		return a, err
	}
	if err := p.checkWarm(ctx, c.Source()); err != nil {
		return a, err
	}
	p.saveAdmission(a)
	return a, nil
}

// inspect reports what can be found out about a plugin without running it.
func (p *Parley) inspect(c *wasm.Candidate, signer Signer, accept []string) (*Admission, error) {
	if err := checkAccepted(accept); err != nil {
		return nil, err
	}
	if _, err := ownShipped(c); err != nil {
		return nil, err
	}
	m := c.Manifest
	a := &Admission{
		Plugin: m.Name, Version: manifest.CleanLine(m.Version), Kind: m.Kind, Digest: c.Digest, Signer: signer,
		Owner: c.Source().Info.Owner, Bytes: len(c.Wasm), Rights: []host.Denial{}, Effects: map[string][]string{},
		Findings: []lint.Finding{}, Examples: []ExampleRun{}, Host: Version,
	}
	a.Rights = append(a.Rights, host.Asked(m.Capabilities)...)
	for _, t := range m.Tools {
		a.Effects[t.Effect] = append(a.Effects[t.Effect], t.Name)
	}
	beside, err := p.neighbors(c)
	if err != nil {
		return nil, err
	}
	a.Findings = append(a.Findings, lint.Check(m, beside)...)
	for _, f := range a.Findings {
		if f.Severity == lint.Error && slices.Contains(accept, f.Rule) && !slices.Contains(a.Accepted, f.Rule) {
			a.Accepted = append(a.Accepted, f.Rule)
		}
	}
	return a, nil
}

// neighbors are the plugins beside a candidate, and a search with and without it.
func (p *Parley) neighbors(c *wasm.Candidate) (lint.Neighbors, error) {
	others, err := p.providersWithout(c.Manifest.Name)
	if err != nil {
		return lint.Neighbors{}, err
	}
	without, err := searcher(others)
	if err != nil {
		return lint.Neighbors{}, err
	}
	with, err := searcher(append(slices.Clone(others), p.Engine().Provider(c.Source())))
	if err != nil {
		return lint.Neighbors{}, err
	}
	beside := lint.Neighbors{Search: func(phrase string, all bool) []lint.Hit {
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
		plugin := lint.Plugin{Name: o.Info().Name, Shipped: o.Info().Identity() == host.OwnerShipped}
		for _, name := range names {
			if t, err := o.Tool(name); err == nil && t != nil {
				plugin.Tools = append(plugin.Tools, lint.Tool{Name: t.Name, Aliases: t.Aliases, Tasks: t.Tasks,
					Returns: t.Returns})
			}
		}
		beside.Plugins = append(beside.Plugins, plugin)
	}
	return beside, nil
}

// providersWithout returns the built-in, shipped and installed plugins, without the one of a name.
func (p *Parley) providersWithout(name string) ([]host.Provider, error) {
	engine, store := p.Engine(), p.Store()
	entries, err := store.List()
	if err != nil {
		return nil, err
	}
	files, err := plugins.Shipped()
	if err != nil {
		return nil, err
	}
	list := &providerList{index: map[string]int{}}
	list.add(p.Chrome())
	for _, f := range files {
		list.add(engine.Provider(shippedSource(f)))
	}
	for _, e := range entries {
		list.add(engine.Installed(store, e))
	}
	return slices.DeleteFunc(list.providers, func(o host.Provider) bool {
		return strings.EqualFold(o.Info().Name, name)
	}), nil
}

// searcher returns a search over plugins that records nothing.
func searcher(providers []host.Provider) (func(phrase string) []lint.Hit, error) {
	catalog, err := host.NewCatalog(providers...)
	if err != nil {
		return nil, err
	}
	h, err := call.New(call.Config{Version: Version, Catalog: catalog, Policy: host.DenyAll{}})
	if err != nil {
		return nil, err
	}
	return func(phrase string) []lint.Hit {
		const depth = 5
		data, _, err := h.Search(context.Background(), "", host.Session{}, host.SearchQuery{Text: phrase, Limit: depth})
		if err != nil {
			return nil
		}
		var hits []lint.Hit
		for _, r := range data.Results {
			hits = append(hits, lint.Hit{Name: r.Name, Sure: r.Confidence == "high"})
		}
		return hits
	}, nil
}

// withoutRights allows every call without any right.
type withoutRights struct{}

func (withoutRights) Decide(context.Context, host.Ask) (host.Decision, error) {
	return host.Decision{Verdict: host.Allow}, nil
}

// TryExample runs a tool of the catalog as an example of its documentation: without rights, and without a record.
func (p *Parley) TryExample(ctx context.Context, tool string, params json.RawMessage) error {
	catalog, err := p.Catalog()
	if err != nil {
		return err
	}
	at, err := catalog.Find(tool)
	if err != nil {
		return err
	}
	h, err := hostWithoutRights(at.Provider)
	if err != nil {
		return err
	}
	_, err = h.Call(ctx, host.Call{Name: tool, Params: params, Caller: "cli"})
	return err
}

// hostWithoutRights returns a host with one plugin, which has no right.
func hostWithoutRights(provider host.Provider) (*call.Host, error) {
	catalog, err := host.NewCatalog(provider)
	if err != nil {
		return nil, err
	}
	return call.New(call.Config{Version: Version, Catalog: catalog, Policy: withoutRights{}})
}

// runExamples runs the examples of a plugin: first one of each tool, then the others, until the time is up.
func (p *Parley) runExamples(ctx context.Context, provider host.Provider, m *manifest.Manifest, a *Admission) error {
	h, err := hostWithoutRights(provider)
	if err != nil {
		return err
	}
	for i := range m.Tools {
		for j, e := range m.Tools[i].Examples {
			a.Examples = append(a.Examples, ExampleRun{Tool: m.Tools[i].Name, Index: j, Title: manifest.CleanLine(e.Title)})
		}
	}
	slices.SortStableFunc(a.Examples, func(x, y ExampleRun) int { return cmp.Compare(x.Index, y.Index) })
	deadline := time.Now().Add(exampleBudget)
	endless := map[string]bool{} // tools of which an example did not end
	for i := range a.Examples {
		r := &a.Examples[i]
		r.Status = ExampleNotRun
		left := time.Until(deadline)
		switch {
		case left <= 0:
			r.Reason = "the time for examples was up"
		case endless[r.Tool]:
			r.Reason = "another example of the tool did not end in time"
		default: // one that does not end leaves half of the time to the others
			budget, cancel := context.WithTimeout(ctx, left/2)
			e := m.Tool(r.Tool).Examples[r.Index]
			params, reason := afterBefore(budget, h, m.Name, &e)
			var answer *host.Answer
			if reason == "" {
				answer, _ = h.Call(budget, host.Call{Name: m.Name + "." + r.Tool, Params: params, Caller: "cli"})
			}
			switch endless[r.Tool] = budget.Err() != nil; {
			case endless[r.Tool]:
				r.Reason = "it did not end in time"
			case reason != "":
				r.Reason = reason
			default:
				r.compare(&e, answer, len(a.Rights) > 0)
			}
			cancel()
		}
		if r.Status == ExampleVerified {
			a.Verified++
		}
	}
	if err := ctx.Err(); err != nil {
		return host.AsError(context.Cause(ctx))
	}
	return nil
}

// afterBefore makes the calls before an example and returns its parameters with the values that they returned, or why
// they could not be made: a check of a plugin calls no other plugin.
func afterBefore(ctx context.Context, h *call.Host, plugin string, e *manifest.Example) (
	params json.RawMessage, reason string,
) {
	results := host.Results{}
	for i, b := range e.Before {
		if owner, _, _ := strings.Cut(b.Tool, "."); !strings.EqualFold(owner, plugin) {
			return nil, fmt.Sprintf("it runs after a call of another plugin, %s", manifest.CleanLine(b.Tool))
		}
		params, err := results.Substitute(b.Params)
		if err != nil {
			return nil, oneLine(err.Error())
		}
		options, _, err := host.ParseLocalOptions(b.Options)
		if err != nil {
			return nil, oneLine(err.Error())
		}
		answer, _ := h.Call(ctx, host.Call{Name: b.Tool, Params: params, Caller: "cli", Options: options})
		if answer.Err != nil {
			return nil, fmt.Sprintf("call %d before it failed: %s", i+1, oneLine(answer.Err.Message))
		}
		results[strconv.Itoa(i+1)] = answer.Data
	}
	params, err := results.Substitute(e.Params)
	if err != nil {
		return nil, oneLine(err.Error())
	}
	return params, ""
}

// warmBudget bounds the time in which all examples of a plugin run twice.
const warmBudget = time.Minute

// checkWarm refuses a plugin whose manifest says that an example may run in an instance before its call, if that
// changes the outcome of any example. Where there are no runners, the check is not made, and no instance is ever warm.
func (p *Parley) checkWarm(ctx context.Context, src wasm.Source) error {
	m, err := src.Manifest()
	if err != nil || !m.Warm || len(wasm.MissingIsolation(false)) > 0 {
		return err
	}
	work, err := os.MkdirTemp("", "parley-fresh-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	cfg := p.engineConfig(warmIdle) // with runners, also where the configuration has none
	warmEngine := wasm.New(cfg)
	defer func() { _ = warmEngine.Close(context.WithoutCancel(ctx)) }()
	cfg.CacheDir, cfg.Fresh, cfg.Notice = work, true, nil
	freshEngine := wasm.New(cfg)
	defer func() { _ = freshEngine.Close(context.WithoutCancel(ctx)) }()
	warm, err := hostWithoutRights(warmEngine.Provider(src))
	if err != nil {
		return err
	}
	fresh, err := hostWithoutRights(freshEngine.Provider(src))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, warmBudget)
	defer cancel()
	for i := range m.Tools {
		for _, e := range m.Tools[i].Examples {
			params, reason := afterBefore(ctx, fresh, m.Name, &e)
			if reason != "" {
				continue
			}
			run := func(h *call.Host, isolate string) *host.Answer {
				a, _ := h.Call(ctx, host.Call{Name: m.Name + "." + m.Tools[i].Name, Params: params, Caller: "cli",
					Options: host.Options{Isolate: isolate}})
				return a
			}
			cold, after := run(fresh, "call"), run(warm, "process")
			if err := ctx.Err(); err != nil {
				return host.Errorf(host.InvalidPlugin, "%s is refused: its examples did not end within %s, so that they could not "+
					"be compared with and without \"warm\"; remove warm from the manifest", m.Name, warmBudget)
			}
			if difference := differFrom(cold, after); difference != "" {
				return host.Errorf(host.InvalidPlugin, "%s is refused: its manifest has \"warm\", and the example %q of %s has "+
					"another outcome after another example has run in the instance: %s; remove warm, or let no call depend on what "+
					"the instance did before", m.Name, manifest.CleanLine(e.Title), m.Tools[i].Name, oneLine(difference))
			}
		}
	}
	return nil
}

// differFrom returns how the outcome of a call differs from that of another, or "" if it does not.
func differFrom(a, b *host.Answer) string {
	switch {
	case a.Err == nil && b.Err == nil:
		return differ(a.Data, b.Data)
	case a.Err == nil || b.Err == nil || a.Err.ExitCode() != b.Err.ExitCode() ||
		a.Err.Tool != nil && a.Err.Message != b.Err.Message:
		return fmt.Sprintf("%v instead of %v", outcomeOf(b), outcomeOf(a))
	}
	return ""
}

func outcomeOf(a *host.Answer) any {
	if a.Err == nil {
		return "a result"
	}
	return a.Err
}

// warmIdle is how long a runner stays that compared examples.
const warmIdle = time.Second

// compare sets what a run of an example shows. asks says that the plugin asks for rights, which it did not have.
func (r *ExampleRun) compare(e *manifest.Example, answer *host.Answer, asks bool) {
	r.Reason, r.ExitCode = "", 0
	if answer.Err != nil {
		r.ExitCode = answer.Err.ExitCode()
	}
	switch failed := answer.Err; {
	case failed != nil && len(failed.Denied) > 0:
		var rights []string
		for _, d := range failed.Denied {
			rights = append(rights, d.Right)
		}
		r.Reason = "it needs rights: " + strings.Join(rights, ", ")
	case r.ExitCode == e.ExitCode && (failed != nil || len(e.Result) == 0):
		r.Status = ExampleVerified
	case r.ExitCode == e.ExitCode:
		r.Status = ExampleVerified
		if difference := differ(e.Result, answer.Data); difference != "" {
			r.Status, r.Reason = ExampleDiffers, difference
		}
	case failed != nil && asks && failed.Code != host.InvalidArgs && failed.Code != host.InvalidResult:
		r.Reason = "it may need the rights that the plugin asks for: " + oneLine(failed.Message)
	case failed != nil && (failed.Code == host.Unavailable || failed.Code == host.Busy || failed.Code == host.Denied):
		r.Reason = oneLine(failed.Message)
	case failed != nil:
		r.Status = ExampleDiffers
		r.Reason = fmt.Sprintf("it ended in exit code %d (%s), declared is %d", r.ExitCode, oneLine(failed.Message),
			e.ExitCode)
	default:
		r.Status, r.Reason = ExampleDiffers, fmt.Sprintf("it succeeded, declared is exit code %d", e.ExitCode)
	}
}

func oneLine(s string) string { return manifest.Clip(manifest.CleanLine(s), 120) }

// differ returns where two results differ first, or "" if they are equal.
func differ(declared, got json.RawMessage) string {
	a, errA := jsontext.Decode(declared, jsontext.Limits{})
	b, errB := jsontext.Decode(got, jsontext.Limits{})
	if errA != nil || errB != nil {
		return "the result is not JSON"
	}
	return differAt("", a, b)
}

func differAt(pointer string, a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		keys := map[string]bool{}
		for k := range x {
			keys[k] = true
		}
		for k := range y {
			keys[k] = true
		}
		for _, k := range sortedNames(keys) {
			at := pointer + "/" + jsontext.EscapeToken(k)
			before, has := x[k]
			now, gives := y[k]
			switch {
			case !has:
				return fmt.Sprintf("%s is not declared; it was %s", at, jsontext.QuoteShort(shortJSON(now)))
			case !gives:
				return fmt.Sprintf("%s is declared as %s; it was missing", at, shortJSON(before))
			}
			if d := differAt(at, before, now); d != "" {
				return d
			}
		}
		return ""
	case []any:
		y, ok := b.([]any)
		if !ok {
			break
		}
		for i := range min(len(x), len(y)) {
			if d := differAt(fmt.Sprintf("%s/%d", pointer, i), x[i], y[i]); d != "" {
				return d
			}
		}
		if len(x) != len(y) {
			return fmt.Sprintf("%s is declared with %d items; it had %d", cmp.Or(pointer, "the result"), len(x), len(y))
		}
		return ""
	}
	if string(jsontext.Marshal(a)) == string(jsontext.Marshal(b)) {
		return ""
	}
	return fmt.Sprintf("%s is declared as %s; it was %s", cmp.Or(pointer, "the result"), shortJSON(a), shortJSON(b))
}

func sortedNames(set map[string]bool) []string {
	names := make([]string, 0, len(set))
	for n := range set {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func shortJSON(v any) string {
	return manifest.Clip(string(manifest.EscapeJSON(jsontext.Marshal(v))), 60)
}

// maxAdmissions bounds the reports that are kept; the oldest go first. Each is of one build.
const maxAdmissions = 500

func (p *Parley) admissionPath(digest string) string {
	return filepath.Join(p.dirs.Data, "admissions", strings.TrimPrefix(digest, "sha256:")+".json")
}

// saveAdmission keeps the report of a build, from which describe knows the runs of its examples.
func (p *Parley) saveAdmission(a *Admission) {
	path := p.admissionPath(a.Digest)
	data, err := json.Marshal(a)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = writeWhole(path, data)
	}
	if err != nil {
		p.cfg.Debug("the report on %s is not kept: %v", a.Plugin, err)
		return
	}
	p.pruneAdmissions(filepath.Dir(path))
}

// writeWhole replaces a file in one step.
func writeWhole(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}

// pruneAdmissions removes the oldest reports of builds that are not installed.
func (p *Parley) pruneAdmissions(dir string) {
	files, err := os.ReadDir(dir)
	if err != nil || len(files) <= maxAdmissions {
		return
	}
	entries, err := p.Store().List()
	if err != nil {
		return
	}
	var old []os.FileInfo
	for _, f := range files {
		installed := slices.ContainsFunc(entries, func(e wasm.Entry) bool {
			return filepath.Base(p.admissionPath(e.Digest)) == f.Name()
		})
		if info, err := f.Info(); err == nil && !installed {
			old = append(old, info)
		}
	}
	slices.SortFunc(old, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range old[min(len(old), maxAdmissions):] {
		_ = os.Remove(filepath.Join(dir, info.Name()))
	}
}

// keptAdmission returns the report of a build, or nil.
func (p *Parley) keptAdmission(digest string) *Admission {
	a := &Admission{}
	if !p.readAdmission(digest, a) || a.Digest != digest {
		return nil
	}
	return a
}

// readAdmission decodes the report of a build, and reports whether there is one.
func (p *Parley) readAdmission(digest string, into any) bool {
	const limit = 4 << 20
	path := p.admissionPath(digest)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return false
	}
	data, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(data, into) == nil
}

// isShipped reports whether a digest is that of a plugin that is part of this binary.
func isShipped(digest string) bool {
	files, err := plugins.Shipped()
	return err == nil && slices.ContainsFunc(files, func(f plugins.File) bool { return f.Digest == digest })
}

// annotate adds the runs of examples to the manifest of a build. Shipped plugins were admitted when the binary was
// built: its tests hold their examples to what they declare. The report of another build is read when somebody asks for
// a run, which calls do not.
func (p *Parley) annotate(digest string, m *manifest.Manifest) {
	if digest == "" {
		return
	}
	shipped := isShipped(digest)
	runs := sync.OnceValue(func() map[exampleKey]*manifest.ExampleRun { return p.exampleRuns(digest) })
	for i := range m.Tools {
		for j := range m.Tools[i].Examples {
			e, key := &m.Tools[i].Examples[j], exampleKey{m.Tools[i].Name, j}
			switch {
			case !shipped:
				e.Run = func() *manifest.ExampleRun { return runs()[key] }
			case e.Runnable: // TestShippedExamples runs these
				run := &manifest.ExampleRun{Verified: "parley " + Version, ExitCode: e.ExitCode}
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

// exampleRuns returns what the report of a build says of its examples.
func (p *Parley) exampleRuns(digest string) map[exampleKey]*manifest.ExampleRun {
	var a struct {
		Host, Digest string
		Examples     []ExampleRun
	}
	if !p.readAdmission(digest, &a) || a.Digest != digest {
		return nil
	}
	runs := map[exampleKey]*manifest.ExampleRun{}
	for _, r := range a.Examples {
		key := exampleKey{r.Tool, r.Index}
		switch r.Status {
		case ExampleVerified:
			runs[key] = &manifest.ExampleRun{Verified: "parley " + a.Host, ExitCode: r.ExitCode}
		case ExampleDiffers:
			runs[key] = &manifest.ExampleRun{Differs: r.Reason, ExitCode: r.ExitCode}
		case ExampleNotRun:
			runs[key] = &manifest.ExampleRun{NotRun: r.Reason}
		}
	}
	return runs
}

// admitLoaded admits a file of Config.Plugins. A build that was admitted by this version before is only inspected if
// its report is not kept: its examples do not run again.
func (p *Parley) admitLoaded(c *wasm.Candidate) error {
	signer, err := p.VerifySignature(c)
	if err != nil {
		return err
	}
	a := p.keptAdmission(c.Digest)
	fresh := a == nil || a.Host != Version
	if fresh {
		a, err = p.Admit(context.Background(), c, signer, p.cfg.Accept)
		if a == nil {
			return err
		}
		// A plugin that cannot be compiled can still be listed and described; its calls say what is wrong.
	} else {
		if err := checkAccepted(p.cfg.Accept); err != nil {
			return err
		}
		a.Owner, a.Signer, a.Accepted = c.Source().Info.Owner, signer, p.cfg.Accept
	}
	if err := p.refuse(a, host.OperatorStep(host.OpPluginCheck, c.Path)); err != nil {
		return err
	}
	if fresh && p.cfg.Admitted != nil {
		p.cfg.Admitted(a)
	}
	return nil
}
