package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// step is a task of a scenario and the tool for it.
type step struct {
	want   string // the query with which the agent would search for it
	tool   string // the tool that a reader of the list would choose; the search must find it first
	params string
	wrong  string // the parameters of a first call that fails; "" if there is none
}

// scenario is a task of several steps, in a session of its own.
type scenario struct {
	name  string
	steps []step
}

// pinned are the tools that progressive mode lists in these scenarios: some of those that they use.
var pinned = []string{"cdp.Runtime.evaluate", "cdp.open", "json.query", "text.encode", "text.hash"}

// scenarios returns the four scenarios in which the modes are compared. URL in parameters is replaced by the address of
// a page with the title Harbour.
func scenarios() []scenario {
	hash := step{want: "compute a checksum of a text", tool: "text.hash", params: `{"text":"hello"}`}
	encode := step{want: "encode text as base64", tool: "text.encode", params: `{"text":"a b","to":"base64"}`}
	count := step{want: "count the words of a text", tool: "text.count", params: `{"text":"one two"}`}
	query := step{want: "query JSON", tool: "json.query", params: `{"data":{"a":[1,2]},"filter":".a[1]"}`}
	wrong := func(s step, params string) step {
		s.wrong = params
		return s
	}
	long := scenario{name: "long session"}
	for range 8 {
		long.steps = append(long.steps, hash, encode, count, query)
	}
	long.steps = append(long.steps, wrong(hash, `{"txt":"hello"}`), wrong(hash, `{"text":"hello","algorithm":"sha25"}`),
		hash)
	return []scenario{
		{"simple", []step{hash}},
		{"several tools", []step{
			{want: "open a web page", tool: "page.open", params: `{"url":"URL"}`},
			{want: "evaluate JavaScript in the page", tool: "page.evaluate", params: `{"expression":"document.title"}`},
			{want: "compute a checksum of a text", tool: "text.hash", params: `{"text":"Harbour","algorithm":"md5"}`},
			encode,
			{want: "compare two JSON documents", tool: "json.diff", params: `{"before":{"a":1},"after":{"a":2}}`},
		}},
		{"error recovery", []step{
			wrong(hash, `{"txt":"hello"}`),
			wrong(encode, `{"text":"a b","to":"baes64"}`),
			wrong(query, `{"data":{"a":[1,2]},"filter":[".a[1]"]}`),
			wrong(count, `{"params":{"text":"one two"}}`),
			wrong(step{want: "replace matches of a regex in a text", tool: "text.replace",
				params: `{"text":"aab","pattern":"a+","replacement":"c"}`},
				`{"text":"aab","pattern":"a+","replace":"c"}`),
		}},
		long,
	}
}

// cost is the cost of a scenario.
type cost struct {
	calls, failures int
	turns           int            // rounds of calls that can be made at the same time
	tokens          int            // of everything read: instructions, tools/list and every reply
	written         int            // tokens of the calls; counted in tasks only
	docs            map[string]int // "text.hash tier 2" -> how many times it was read
}

// player plays a scenario. It knows only what it has read: it uses no tool name and no parameter that it has not seen.
type player struct {
	*client
	cost
	known map[string][]string // tool -> names of parameters that were read
}

// pin writes the configuration that the scenarios need.
func pin(home string) error {
	config := filepath.Join(home, "config", "config.toml")
	list, err := json.Marshal(pinned)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		return err
	}
	return os.WriteFile(config, []byte("pinned_tools = "+string(list)+"\n"), 0o600)
}

// play plays a scenario in a mode. Each has a server of its own, and so a session of its own.
func play(ctx context.Context, binary, home, mode, url string, s scenario) (cost, error) {
	p := &player{client: &client{binary: binary, home: home, mode: mode}, cost: cost{docs: map[string]int{}},
		known: map[string][]string{}}
	text, err := p.begin(ctx)
	if err != nil {
		return p.cost, err
	}
	defer p.close()
	p.tokens = tokens(text)
	if err := p.prepare(ctx, s); err != nil {
		return p.cost, err
	}
	for _, step := range s.steps {
		if _, err := p.take(ctx, step, url); err != nil {
			return p.cost, fmt.Errorf("%s, %s: %w", s.name, mode, err)
		}
	}
	return p.cost, nil
}

// prepare reads what the steps need. In one turn it searches for the tools that are not listed and reads the
// descriptions of those of which the list shows too little. In the next turn it reads those of which a search showed
// too little.
func (p *player) prepare(ctx context.Context, s scenario) error {
	asked := map[string]bool{}
	for _, step := range s.steps {
		if listed := p.listed[listedName(step.tool)]; listed != nil && p.known[step.tool] == nil {
			p.known[step.tool], _ = shape(listed.InputSchema)
		}
		var err error
		switch {
		case asked[step.tool]:
			continue
		case p.known[step.tool] == nil:
			err = p.find(ctx, step)
		case !p.knows(step):
			err = p.readDocs(ctx, step.tool)
		default:
			continue
		}
		if err != nil {
			return err
		}
		asked[step.tool] = true
	}
	if len(asked) > 0 {
		p.turns++
	}
	more := false
	for _, step := range s.steps {
		if p.knows(step) {
			continue
		}
		if err := p.readDocs(ctx, step.tool); err != nil {
			return err
		}
		more = true
	}
	if more {
		p.turns++
	}
	return nil
}

// find searches for the tool of a step, which must be the first hit.
func (p *player) find(ctx context.Context, s step) error {
	a, err := p.client.search(ctx, s.want)
	if err != nil {
		return err
	}
	p.read(a)
	hits, err := a.hits()
	if err != nil {
		return err
	}
	if len(hits) == 0 || hits[0].Name != s.tool {
		return fmt.Errorf("a search for %q does not find %s first: %s", s.want, s.tool, a.text)
	}
	p.known[s.tool] = []string{}
	for _, name := range parameters(hits[0].Signature) {
		p.known[s.tool] = append(p.known[s.tool], strings.TrimSuffix(name, "?"))
	}
	return nil
}

// readDocs reads the description of a tool.
func (p *player) readDocs(ctx context.Context, tool string) error {
	a, err := p.client.describe(ctx, tool)
	if err != nil {
		return err
	}
	p.read(a)
	d, err := a.described()
	if err != nil {
		return err
	}
	p.docs[d.key()]++
	for _, param := range d.Parameters {
		p.known[tool] = append(p.known[tool], param.Name)
	}
	return nil
}

// knows reports whether the agent has read all parameters of a step.
func (p *player) knows(s step) bool {
	var params map[string]json.RawMessage
	if json.Unmarshal([]byte(s.params), &params) != nil {
		return false
	}
	for name := range params {
		if !slices.Contains(p.known[s.tool], name) {
			return false
		}
	}
	return true
}

// take makes the call of a step. If it fails, take makes the call that the error suggests.
func (p *player) take(ctx context.Context, s step, url string) (a answer, err error) {
	params := json.RawMessage(strings.ReplaceAll(s.params, "URL", url))
	if s.wrong != "" {
		a, err = p.try(ctx, s.tool, json.RawMessage(s.wrong))
		if err != nil {
			return a, err
		}
		if !a.failed {
			return a, fmt.Errorf("%s accepted %s", s.tool, s.wrong)
		}
		var ok bool
		if params, ok = suggested(a.err); !ok {
			return a, fmt.Errorf("the error of %s suggests no call: %s", s.tool, a.text)
		}
	}
	a, err = p.try(ctx, s.tool, params)
	if err == nil && a.failed {
		err = fmt.Errorf("%s %s: %s", s.tool, params, a.text)
	}
	return a, err
}

func (p *player) try(ctx context.Context, tool string, params json.RawMessage) (answer, error) {
	a, err := p.client.call(ctx, tool, params)
	if err != nil {
		return a, err
	}
	p.read(a)
	p.turns++
	if a.failed {
		p.failures++
		if d := a.err.Docs; d != nil {
			p.docs[d.key()]++
		}
	}
	return a, nil
}

func (p *player) read(a answer) {
	p.calls++
	p.tokens += tokens(a.text)
}
