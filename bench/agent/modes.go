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

// step is one thing that has to be done, with the tool that does it.
type step struct {
	want   string // what is wanted, as one would search for it
	tool   string // what a reader of a list would choose; a search has to find it
	params string
	wrong  string // what is tried first; "" where nothing goes wrong
}

// scenario is a task of several steps, in a session of its own.
type scenario struct {
	name  string
	steps []step
}

// pinned is what progressive mode shows in these scenarios: some of what they use.
var pinned = []string{"cdp.Runtime.evaluate", "cdp.open", "json.query", "text.encode", "text.hash"}

// scenarios are the four in which the modes are compared. URL stands for the address of a page whose title is Harbour.
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
			{want: "open a web page", tool: "cdp.open", params: `{"url":"URL"}`},
			{want: "evaluate JavaScript in the page", tool: "cdp.Runtime.evaluate",
				params: `{"expression":"document.title","returnByValue":true}`},
			{want: "compute a checksum of a text", tool: "text.hash", params: `{"text":"Harbour","algorithm":"md5"}`},
			encode,
			{want: "compare two JSON documents", tool: "json.diff", params: `{"before":{"a":1},"after":{"a":2}}`},
		}},
		{"error recovery", []step{
			wrong(hash, `{"txt":"hello"}`),
			wrong(encode, `{"text":"a b","to":"base46"}`),
			wrong(query, `{"data":{"a":[1,2]},"filter":[".a[1]"]}`),
			wrong(count, `{"params":{"text":"one two"}}`),
			wrong(step{want: "replace matches of a regex in a text", tool: "text.replace",
				params: `{"text":"aab","pattern":"a+","replacement":"c"}`},
				`{"text":"aab","pattern":"a+","replace":"c"}`),
		}},
		long,
	}
}

// cost is what a scenario took.
type cost struct {
	calls, failures int
	turns           int            // rounds of calls that could be made at once
	tokens          int            // of all that was read: instructions, tools/list and every answer
	docs            map[string]int // "text.hash tier 2" -> how often it was read
}

// player plays a scenario. It knows of a tool what it has read: it calls by no name and with no parameter that stood
// nowhere.
type player struct {
	*client
	cost
	known map[string][]string // tool -> names of parameters that were read
}

// pin writes the configuration of the scenarios.
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

// play plays a scenario in a mode. A server of its own is a session of its own.
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
		if err := p.take(ctx, step, url); err != nil {
			return p.cost, fmt.Errorf("%s, %s: %w", s.name, mode, err)
		}
	}
	return p.cost, nil
}

// prepare learns what the steps need. In one turn it searches for the tools that the list does not show, and reads up
// those of which it does not show enough; in the next it reads up those of which a search did not.
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

// find searches for the tool of a step, which has to be the first result.
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
	var d docs
	if err := json.Unmarshal(a.data, &d); err != nil {
		return err
	}
	p.docs[fmt.Sprintf("%s tier %d", d.Name, d.Tier)]++
	for _, param := range d.Parameters {
		p.known[tool] = append(p.known[tool], param.Name)
	}
	return nil
}

// knows tells whether all parameters of a step have been read somewhere.
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

// take makes the call of a step; where it fails it makes the one that the error says.
func (p *player) take(ctx context.Context, s step, url string) error {
	params := json.RawMessage(strings.ReplaceAll(s.params, "URL", url))
	if s.wrong != "" {
		a, err := p.try(ctx, s.tool, json.RawMessage(s.wrong))
		if err != nil {
			return err
		}
		if !a.failed {
			return fmt.Errorf("%s took %s", s.tool, s.wrong)
		}
		var ok bool
		if params, ok = suggested(a.err); !ok {
			return fmt.Errorf("%s says nothing that helps: %s", s.tool, a.text)
		}
	}
	a, err := p.try(ctx, s.tool, params)
	if err == nil && a.failed {
		err = fmt.Errorf("%s %s: %s", s.tool, params, a.text)
	}
	return err
}

// teachingNote is how documentation begins that comes with the first use of a tool.
const teachingNote = "About this tool, said once:"

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
			p.docs[fmt.Sprintf("%s tier %d", d.Name, d.Tier)]++
		}
	}
	if strings.Contains(a.text, teachingNote) {
		p.docs[tool+" tier 2"]++
	}
	return a, nil
}

func (p *player) read(a answer) {
	p.calls++
	p.tokens += tokens(a.text)
}
