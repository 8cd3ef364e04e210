package admit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/reference"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// exampleBudget bounds the time of all examples of a plugin.
const exampleBudget = 2 * time.Second

// withoutRights allows every call without any right.
type withoutRights struct{}

func (withoutRights) Decide(context.Context, host.Ask) (host.Decision, error) {
	return host.Decision{Verdict: host.Allow}, nil
}

// trial is a host with one plugin, which has no right. It records nothing.
type trial struct {
	host   *call.Host
	plugin string
}

func (in *Installer) newTrial(provider host.Provider) (trial, error) {
	catalog, err := host.NewCatalog(provider)
	if err != nil {
		return trial{}, err
	}
	h, err := call.New(call.Config{Catalog: catalog, Policy: withoutRights{}})
	return trial{h, provider.Info().Name}, err
}

// call runs a tool of the plugin.
func (t trial) call(ctx context.Context, tool string, params json.RawMessage, o job.Options) *host.Answer {
	answer, _ := t.host.Call(ctx, host.Call{Name: t.plugin + "." + tool, Params: params,
		Principal: caller.Principal{Name: "cli"}, Options: o,
		Sink: host.Sink{Wants: job.Wants{Trace: true}}})
	return answer
}

// TryExample runs a tool as an example of its documentation: without rights, and without a record.
func (in *Installer) TryExample(
	ctx context.Context, provider host.Provider, tool string, params json.RawMessage,
) error {
	t, err := in.newTrial(provider)
	if err != nil {
		return err
	}
	if e := t.call(ctx, tool, params, job.Options{}).Err; e != nil {
		return e
	}
	return nil
}

// runExamples runs the examples of a plugin: first one of each tool, then the others, until the time is up.
func (in *Installer) runExamples(ctx context.Context, p host.Provider, m *manifest.Manifest, report *Report) error {
	t, err := in.newTrial(p)
	if err != nil {
		return err
	}
	for i := range m.Tools {
		for j, e := range m.Tools[i].Examples {
			report.Examples = append(report.Examples,
				ExampleRun{Tool: m.Tools[i].Name, Index: j, Title: manifest.CleanLine(e.Title)})
		}
	}
	slices.SortStableFunc(report.Examples, func(x, y ExampleRun) int { return cmp.Compare(x.Index, y.Index) })
	deadline := time.Now().Add(exampleBudget)
	endless := map[string]bool{} // tools with an example that did not end
	for i := range report.Examples {
		r := &report.Examples[i]
		r.Status = ExampleNotRun
		left := time.Until(deadline)
		switch {
		case left <= 0:
			r.Reason = "the time limit for all examples was reached"
		case endless[r.Tool]:
			r.Reason = "another example of the tool did not end in time"
		default: // one that does not end leaves half of the time to the others
			budget, cancel := context.WithTimeout(ctx, left/2)
			e := m.Tool(r.Tool).Examples[r.Index]
			params, reason := t.before(budget, &e)
			var answer *host.Answer
			if reason == "" {
				answer = t.call(budget, r.Tool, params, job.Options{})
			}
			switch endless[r.Tool] = budget.Err() != nil; {
			case endless[r.Tool]:
				r.Reason = "it did not end in time"
			case reason != "":
				r.Reason = reason
			default:
				r.compare(&e, answer, len(report.Rights) > 0)
			}
			cancel()
		}
		if r.Status == ExampleVerified {
			report.Verified++
		}
	}
	if err := ctx.Err(); err != nil {
		return host.AsError(context.Cause(ctx))
	}
	return nil
}

// before makes the calls before an example and returns its parameters with the values that they returned, or why they
// could not be made: a check of a plugin calls no other plugin.
func (t trial) before(ctx context.Context, e *manifest.Example) (params json.RawMessage, reason string) {
	results := reference.Results{}
	for i, b := range e.Before {
		owner, tool, _ := strings.Cut(b.Tool, ".")
		if !strings.EqualFold(owner, t.plugin) {
			return nil, fmt.Sprintf("it runs after a call of another plugin, %s", manifest.CleanLine(b.Tool))
		}
		params, err := results.Substitute(b.Params)
		if err != nil {
			return nil, oneLine(err.Error())
		}
		options, _, err := option.ParseLocal(b.Options)
		if err != nil {
			return nil, oneLine(err.Error())
		}
		answer := t.call(ctx, tool, params, options)
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

// warmBudget bounds the time of running all examples of a plugin twice.
const warmBudget = time.Minute

// checkWarm refuses a plugin with "warm" in its manifest if running an example in an instance before its call changes
// the outcome of any example. Without runners no instance is ever warm, so nothing is checked.
func (in *Installer) checkWarm(ctx context.Context, src store.Source) error {
	m, err := src.Manifest()
	if err != nil || !m.Warm || len(wasm.MissingIsolation(false)) > 0 {
		return err
	}
	work, err := os.MkdirTemp("", "parley-fresh-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	cfg := in.cfg.EngineConfig()
	cfg.RunnerIdle = warmIdle // with runners, also where the configuration has none
	warmEngine := wasm.New(cfg)
	defer func() { _ = warmEngine.Close(context.WithoutCancel(ctx)) }()
	cfg.CacheDir, cfg.Fresh, cfg.Notice = work, true, nil
	freshEngine := wasm.New(cfg)
	defer func() { _ = freshEngine.Close(context.WithoutCancel(ctx)) }()
	warm, err := in.newTrial(warmEngine.Provider(src))
	if err != nil {
		return err
	}
	fresh, err := in.newTrial(freshEngine.Provider(src))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, warmBudget)
	defer cancel()
	for i := range m.Tools {
		for _, e := range m.Tools[i].Examples {
			params, reason := fresh.before(ctx, &e)
			if reason != "" {
				continue
			}
			cold := fresh.call(ctx, m.Tools[i].Name, params, job.Options{Isolate: "call"})
			after := warm.call(ctx, m.Tools[i].Name, params, job.Options{Isolate: "process"})
			if err := ctx.Err(); err != nil {
				return host.Errorf(host.InvalidPlugin, "%s is refused: its examples did not end within %s, so they could not be "+
					"compared with and without \"warm\"; remove warm from the manifest", m.Name, warmBudget)
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

// differFrom returns how the outcomes of two calls differ, or "" if they do not.
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

// warmIdle is how long a runner stays after it has compared examples.
const warmIdle = time.Second

// compare sets the outcome of a run of an example. asks means that the plugin asks for rights, which it did not have.
func (r *ExampleRun) compare(e *manifest.Example, answer *host.Answer, asks bool) {
	r.Reason, r.ExitCode = "", 0
	if answer.Err != nil {
		r.ExitCode = answer.Err.ExitCode()
	}
	switch failed := answer.Err; {
	case failed != nil && len(failed.Denied) > 0:
		r.Reason = "it needs rights: " + strings.Join(grant.Named(failed.Denied), ", ")
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
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
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

func shortJSON(v any) string {
	return manifest.Clip(string(manifest.EscapeJSON(jsontext.Marshal(v))), 60)
}
