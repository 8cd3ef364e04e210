package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// outcome counts the results of the mistakes of one class.
type outcome struct {
	made     int
	accepted int // the first call corrected it, said so and succeeded

	// Of the others, those that reveal the intended call, the result of the second call, and the mistakes
	// after which the second call was another one.
	recoverable int
	succeeded   int
	meant       int
	lost        []string

	templates int      // errors with holes instead of a call, of the mistakes from which it cannot be seen
	wrong     []string // calls that were suggested, or accepted, with a value that was not given
}

// outcomes maps classes of mistakes to their outcomes.
type outcomes map[string]*outcome

func (o outcomes) of(class string) *outcome {
	if o[class] == nil {
		o[class] = &outcome{}
	}
	return o[class]
}

// sum adds up all classes.
func (o outcomes) sum() (all outcome) {
	for _, r := range o {
		all.made += r.made
		all.accepted += r.accepted
		all.recoverable += r.recoverable
		all.succeeded += r.succeeded
		all.meant += r.meant
		all.templates += r.templates
		all.lost = append(all.lost, r.lost...)
		all.wrong = append(all.wrong, r.wrong...)
	}
	return all
}

// share returns the share of n in the mistakes that reveal the intended call.
func (o outcome) share(n int) float64 { return float64(n) / float64(max(1, o.recoverable)) }

// subject is a tool with which mistakes are made.
type subject struct {
	name   string
	schema json.RawMessage // of its parameters, as it is listed
	whole  json.RawMessage // of its parameters, with all conditions
	right  json.RawMessage // parameters like those of its largest successful example, with other values
}

// subjects returns all tools of a server in full mode.
func (c *client) subjects(ctx context.Context) (all []subject, err error) {
	for _, listed := range slices.Sorted(maps.Keys(c.listed)) {
		if !strings.Contains(listed, "__") {
			continue
		}
		a, err := c.use(ctx, c.describer, map[string]any{"name": listed, "tier": 3, "format": "json"})
		if err != nil {
			return nil, err
		}
		var d docs
		if err := json.Unmarshal(a.data, &d); err != nil {
			return nil, err
		}
		name := d.Name
		s := subject{name: name, whole: d.ParamsSchema}
		for _, e := range d.Examples {
			if e.ExitCode == 0 && len(e.Params) > len(s.right) {
				s.right = e.Params
			}
		}
		if s.schema, err = json.Marshal(c.listed[listed].InputSchema); err != nil || s.right == nil {
			return nil, fmt.Errorf("%s has no example of a call: %v", name, err)
		}
		if s.right, err = own(d.ParamsSchema, s.right); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// attempts are the mistakes to make with one tool.
type attempts struct {
	tool  string
	wrong []mistake
	only  []string // values to which the tool's schema leaves no choice
}

// plan returns every mistake that can be made with the tools.
func plan(all []subject) ([]attempts, error) {
	planned := make([]attempts, 0, len(all))
	for _, s := range all {
		made, err := mistakes(s.schema, s.whole, s.right)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		planned = append(planned, attempts{s.name, made, onlyValues(s.schema)})
	}
	return planned, nil
}

// sample limits each class of mistakes to n tools of each plugin. The tools are spread over the plugin; as long as
// their names do not change, they are the same in every run.
func sample(planned []attempts, n int) []attempts {
	planned = slices.Clone(planned)
	slices.SortFunc(planned, func(a, b attempts) int {
		return cmp.Or(cmp.Compare(spread(a.tool), spread(b.tool)), strings.Compare(a.tool, b.tool))
	})
	taken := map[string]int{} // "PLUGIN CLASS" -> mistakes kept
	var kept []attempts
	for _, p := range planned {
		plugin, _, _ := strings.Cut(p.tool, ".")
		some := attempts{tool: p.tool, only: p.only}
		for _, m := range p.wrong {
			if key := plugin + " " + m.class; taken[key] < n {
				taken[key]++
				some.wrong = append(some.wrong, m)
			}
		}
		if some.wrong != nil {
			kept = append(kept, some)
		}
	}
	return kept
}

// spread is a sort key for names that is independent of the alphabet.
func spread(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// denied is the code of calls that the policy denies, once their parameters are valid.
const denied = "denied"

// makeMistakes makes the mistakes with one tool. After a failure it calls again with the corrected parameters, if the
// error has them, and nothing else.
func makeMistakes(ctx context.Context, f frontend, p attempts, counts outcomes) error {
	for _, m := range p.wrong {
		a, err := f.call(ctx, p.tool, m.params)
		if err != nil {
			return err
		}
		o := counts.of(m.class)
		o.made++
		report := func(what string) string { return fmt.Sprintf("%s: %s %s: %s", m.class, p.tool, m.params, what) }
		if !a.failed || a.err.Code == denied {
			o.accepted++
			if !a.failed && m.meant != nil && !ran(a.data, m.meant) {
				o.wrong = append(o.wrong, report(a.text))
			}
			continue
		}
		for _, suggested := range []json.RawMessage{a.err.Corrected, a.err.Template} {
			if suggested != nil {
				if values := invented(suggested, m, p.only); len(values) > 0 {
					o.wrong = append(o.wrong, report(fmt.Sprintf("invented %q: %s", values, a.text)))
				}
			}
		}
		if m.meant == nil {
			if a.err.Template != nil && a.err.Corrected == nil {
				o.templates++
			}
			continue
		}
		o.recoverable++
		if a.err.Corrected == nil {
			o.lost = append(o.lost, report(a.text))
			continue
		}
		second, err := f.call(ctx, p.tool, a.err.Corrected)
		if err != nil {
			return err
		}
		if !second.failed || second.err.Code == denied {
			o.succeeded++
		}
		if sameJSON(a.err.Corrected, m.meant) {
			o.meant++
		} else {
			o.lost = append(o.lost, report(a.text))
		}
	}
	return nil
}

// ran reports whether the parameters of a dry run are the intended ones, except for defaults.
func ran(dryRun, meant json.RawMessage) bool {
	var run struct {
		Data   struct{ Params map[string]any }
		Params map[string]any
	}
	var want map[string]any
	if json.Unmarshal(dryRun, &run) != nil || json.Unmarshal(meant, &want) != nil {
		return false
	}
	got := run.Params
	if got == nil {
		got = run.Data.Params
	}
	return hasAll(got, want)
}

// hasAll reports whether a value equals another one, except for further members of objects.
func hasAll(got, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for name := range w {
			if !hasAll(g[name], w[name]) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !hasAll(g[i], w[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(got, want)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// suggested returns the parameters for the next call from an error.
func suggested(e failure) (params json.RawMessage, ok bool) { return e.Corrected, e.Corrected != nil }

// dryShell and dryClient are frontends whose calls are validated and not run.
type dryShell struct{ *shell }

func (d dryShell) call(ctx context.Context, name string, params json.RawMessage) (answer, error) {
	return d.run(ctx, "call", name, "--params", string(params), "--dry-run", "--json")
}

type dryClient struct{ *client }

// call passes parameters that are not JSON as a string, as a model would write them.
func (d dryClient) call(ctx context.Context, name string, params json.RawMessage) (answer, error) {
	arguments := any(params)
	if !json.Valid(params) {
		arguments = string(params)
	}
	return d.use(ctx, d.caller, map[string]any{"name": name, "arguments": arguments,
		"options": map[string]any{"dry_run": true}})
}

// perServer limits the tools of one server: the session of an agent knows a few dozen, not all.
const perServer = 40

// planAll returns every mistake that can be made with every tool.
func planAll(ctx context.Context, binary, home string) ([]attempts, error) {
	full := &client{binary: binary, home: home, mode: "full"}
	if _, err := full.begin(ctx); err != nil {
		return nil, err
	}
	defer full.close()
	all, err := full.subjects(ctx)
	if err != nil {
		return nil, err
	}
	return plan(all)
}

// frontendsOf returns the frontends through which mistakes with a tool are made: MCP, and for tools of wasm plugins the
// command line too.
func frontendsOf(tool string) []string {
	if strings.HasPrefix(tool, "cdp.") {
		return []string{"mcp"}
	}
	return []string{"mcp", "cli"}
}

// makeAll makes the planned mistakes.
func makeAll(ctx context.Context, binary, home string, planned []attempts) (outcomes, error) {
	counts := outcomes{}
	for some := range slices.Chunk(planned, perServer) {
		c := &client{binary: binary, home: home}
		if _, err := c.begin(ctx); err != nil {
			return nil, err
		}
		for _, p := range some {
			if err := makeMistakes(ctx, dryClient{c}, p, counts); err != nil {
				return nil, err
			}
		}
		if err := c.close(); err != nil {
			return nil, err
		}
	}
	for _, p := range planned {
		if slices.Contains(frontendsOf(p.tool), "cli") {
			if err := makeMistakes(ctx, dryShell{&shell{binary: binary, home: home}}, p, counts); err != nil {
				return nil, err
			}
		}
	}
	return counts, nil
}
