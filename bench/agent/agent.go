package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// frontend is an interface of Parley: the command line or MCP. An agent that uses it has only the knowledge that
// applies to any program or MCP server, and reads the rest.
type frontend interface {
	// begin reads the start text: help, or the instructions and tools of an MCP server.
	begin(ctx context.Context) (text string, err error)
	search(ctx context.Context, want string) (answer, error)
	describe(ctx context.Context, name string) (answer, error)
	call(ctx context.Context, name string, params json.RawMessage) (answer, error)
	// follow carries out a next step of a reply. done is false for a step that only informs: a search, a list, a
	// description.
	follow(ctx context.Context, step string) (a answer, done bool, err error)
	close() error
}

// answer is the reply to one request of the agent.
type answer struct {
	text   string // as the agent reads it
	failed bool
	data   json.RawMessage // the requested value
	err    failure         // set if the call failed
	next   []string        // as the frontend writes steps: commands, or calls as JSON
}

// failure is the error of a call, as far as an agent can act on it.
type failure struct {
	Code      string          `json:"code"`
	Message   string          `json:"message"`
	Corrected json.RawMessage `json:"corrected"`
	Template  json.RawMessage `json:"template"`
	Details   []struct {
		Parameter, Keyword, Provided, Expected, Suggestion string
	} `json:"details"`
	Docs *docs `json:"docs"`
}

// goal is a task for the agent: a description in words, and the values for it under their everyday names.
type goal struct {
	want  string
	given map[string]any
}

// route records how the agent came to its first result.
type route struct {
	data   json.RawMessage
	calls  int
	tokens int
	story  []string // one line a call
}

// firstCall goes from no knowledge to the first call that succeeds: it searches for the goal, takes the first hit,
// carries out the next steps of the reply, and calls. If the hit has no signature, or the signature has parameters that
// the goal does not give, it reads the description.
func firstCall(ctx context.Context, f frontend, g goal) (r route, err error) {
	record := func(what string, a answer) answer {
		r.calls++
		n := tokens(a.text)
		r.tokens += n
		r.story = append(r.story, fmt.Sprintf("%4d tokens  %s", n, what))
		return a
	}
	text, err := f.begin(ctx)
	if err != nil {
		return r, err
	}
	record("help", answer{text: text})
	found, err := f.search(ctx, g.want)
	if err != nil {
		return r, err
	}
	record("search "+g.want, found)
	hits, err := found.hits()
	if err != nil || len(hits) == 0 {
		return r, fmt.Errorf("nothing found for %q: %v", g.want, err)
	}
	tool := hits[0]
	params, ok := fill(required(tool.Signature), g.given)
	if tool.Signature == "" || !ok {
		described, err := f.describe(ctx, tool.Name)
		if err != nil {
			return r, err
		}
		record("describe "+tool.Name, described)
		if params, err = g.describedParams(described); err != nil {
			return r, err
		}
	}
	for _, step := range found.next {
		a, done, err := f.follow(ctx, g.fillIn(step))
		if err != nil {
			return r, err
		}
		if !done {
			continue
		}
		if record(step, a); a.failed {
			return r, fmt.Errorf("%s: %s", step, a.text)
		}
	}
	for {
		a, err := f.call(ctx, tool.Name, params)
		if err != nil {
			return r, err
		}
		record("call "+tool.Name, a)
		switch {
		case !a.failed:
			r.data = a.data
			return r, nil
		case a.err.Corrected != nil && r.calls < 10:
			params = a.err.Corrected
		default:
			return r, fmt.Errorf("call %s %s: %s", tool.Name, params, a.text)
		}
	}
}

// fillIn gives a step the values of the goal: for the placeholders of a command, such as URL, and for what a call over
// MCP leaves to choose.
func (g goal) fillIn(step string) string {
	var call struct {
		Tool      string         `json:"tool"`
		Arguments map[string]any `json:"arguments"`
		Choose    []string       `json:"choose"`
	}
	if json.Unmarshal([]byte(step), &call) == nil && len(call.Choose) > 0 {
		params := map[string]any{}
		for _, name := range call.Choose {
			if value, ok := g.given[name]; ok {
				params[name] = value
			}
		}
		if call.Arguments["name"] == nil { // a listed tool, which takes them itself
			call.Arguments = params
		} else {
			call.Arguments["arguments"] = params
		}
		filled, _ := json.Marshal(call)
		return string(filled)
	}
	for name, value := range g.given {
		if s, ok := value.(string); ok {
			step = strings.ReplaceAll(step, strings.ToUpper(name), s)
		}
	}
	return step
}

// describedParams builds the parameters that a description requires; values that the goal does not give come from its
// first example.
func (g goal) describedParams(described answer) (json.RawMessage, error) {
	d, err := described.described()
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	if len(d.Examples) > 0 {
		if err := json.Unmarshal(d.Examples[0].Params, &given); err != nil {
			return nil, err
		}
	}
	maps.Copy(given, g.given)
	var names []string
	for _, p := range d.Parameters {
		if p.Required {
			names = append(names, p.Name)
		}
	}
	params, ok := fill(names, given)
	if !ok {
		return nil, fmt.Errorf("%s requires %q; neither the goal nor an example gives them", d.Name, names)
	}
	return params, nil
}

// required returns the names of the required parameters of a signature such as "hash(text: string, algorithm?:
// string)".
func required(signature string) []string {
	return slices.DeleteFunc(parameters(signature), func(name string) bool { return strings.HasSuffix(name, "?") })
}

// parameters returns the names in a signature. Optional ones keep their "?".
func parameters(signature string) (names []string) {
	_, list, _ := strings.Cut(strings.TrimSuffix(signature, ")"), "(")
	for part := range strings.SplitSeq(list, ", ") {
		if name, _, ok := strings.Cut(part, ": "); ok {
			names = append(names, name)
		}
	}
	return names
}

// fill builds parameters from given values. ok is false if a value is missing.
func fill(names []string, given map[string]any) (params json.RawMessage, ok bool) {
	taken := map[string]any{}
	for _, name := range names {
		value, has := given[name]
		if !has {
			return nil, false
		}
		taken[name] = value
	}
	params, err := json.Marshal(taken)
	return params, err == nil
}
