package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// learned is the first call of an agent that knows another tool from its documentation, or that has read the list of
// tools carelessly. The files in testdata were written from such documentation only, without a look at what corrects.
// The corrections were then tuned on fresh and on third to eighth. Of the first two most are the calls that
// were not understood before. Of fourth, 20 of 30 were, and with the rest corrected 23 of the other 29; of fifth, 22 of
// 30 and 21 of 30; of sixth, 21 of 29 and 21 of 30; of seventh, 22 of 30 and 21 of 30; of
// eighth, which was not divided, 81 of 100. Of ninth 91 of 98 were, and nothing was corrected after it.
type learned struct {
	ID, Door string          // Door is "mcp" or "cli"
	Given    json.RawMessage // over MCP the parameters of tools/call, on the command line the arguments
	Meant    *planned        // the one call that it means; nil if no tool does the same, and none may be offered
	Or       []planned       // calls that do the same
	Has      string          // what else is in the command or the step that is offered
}

// planned is a call as a dry run reports it.
type planned struct {
	Tool   string
	Params map[string]any
}

var shownRef = regexp.MustCompile(`^@[a-z]{3}\d+$`)

// door validates calls and does not run them.
type door interface {
	call(ctx context.Context, name string, params json.RawMessage) (answer, error)
	send(ctx context.Context, given json.RawMessage) (answer, error)
	// offered returns the call that a next step makes; ok is false for a step that only informs, and for a template.
	offered(ctx context.Context, step string) (given json.RawMessage, ok bool)
	close() error
}

// makeLearned makes the calls of a file and returns how many are what they mean, at once or as the first call that the
// error offers. name is open, closed, or a path. report gets the outcome of each call.
func makeLearned(ctx context.Context, binary, home, name string, report func(id, outcome string)) (string, error) {
	if !strings.ContainsRune(name, filepath.Separator) {
		name = filepath.Join("bench", "agent", "testdata", "mistakes-"+name+".jsonl")
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	defer tree.CloseBrowser(binary, home)
	counts, all := map[string]int{}, 0
	for line := range bytes.Lines(raw) {
		var l learned
		if err := json.Unmarshal(line, &l); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		outcome, err := l.make(ctx, binary, home)
		if err != nil {
			return "", fmt.Errorf("%s: %w", l.ID, err)
		}
		report(l.ID, outcome)
		kind, _, _ := strings.Cut(outcome, ":")
		counts[kind]++
		all++
	}
	right := counts["right"]
	return fmt.Sprintf("%d calls: %d right (%.1f %%). Accepted as another call: %d at once, %d as the error corrects it.",
		all, right, 100*float64(right)/float64(max(1, all)), counts["changed"], counts["misled"]), nil
}

// make makes a call, with a server of its own, and returns the outcome with its reason: right; changed if the call was
// accepted as another one than what it means; misled if the call that the error offers was; else wrong.
func (l learned) make(ctx context.Context, binary, home string) (outcome string, err error) {
	var d door = learnedShell{dryShell{&shell{binary: binary, home: home}}}
	if l.Door == "mcp" {
		c := &client{binary: binary, home: home}
		if _, err := c.begin(ctx); err != nil {
			return "", err
		}
		d = learnedClient{dryClient{c}}
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if l.Meant != nil {
		l.Or = append(l.Or, *l.Meant)
	}
	var meant []planned
	for _, w := range l.Or {
		params, _ := json.Marshal(w.Params)
		a, err := d.call(ctx, w.Tool, params)
		p, ok := a.planned()
		if err != nil || !ok {
			return "", fmt.Errorf("what is meant is refused: %w: %s", err, a.text)
		}
		meant = append(meant, p)
	}
	a, err := d.send(ctx, l.Given)
	if err != nil {
		return "", err
	}
	kind := "changed"
	if a.failed {
		next := a.next
		kind, a = "misled", answer{failed: true, text: fmt.Sprintf("no call is offered: %s %s", a.err.Message, next)}
		for _, step := range next {
			if given, ok := d.offered(ctx, step); ok && strings.Contains(step, l.Has) {
				if a, err = d.send(ctx, given); err != nil {
					return "", err
				}
				break
			}
		}
	}
	p, ok := a.planned()
	switch {
	case !ok && l.Meant == nil:
		return "right: " + cmp.Or(a.err.Message, a.text), nil
	case !ok:
		return "wrong: " + cmp.Or(a.err.Message, a.text), nil
	case slices.ContainsFunc(meant, func(m planned) bool { return reflect.DeepEqual(m, p) }):
		kind = "right"
	}
	params, err := json.Marshal(p.Params)
	return fmt.Sprintf("%s: %s %s", kind, p.Tool, params), err
}

// planned returns the call that a dry run has reported.
func (a answer) planned() (p planned, ok bool) {
	ok = !a.failed && json.Unmarshal(a.data, &p) == nil && p.Tool != "" && p.Params != nil
	for name, value := range p.Params { // page takes a ref with the sign of agent-browser, too
		if text, isText := value.(string); isText && shownRef.MatchString(text) {
			p.Params[name] = text[1:]
		}
	}
	return p, ok
}

type learnedShell struct{ dryShell }

func (d learnedShell) send(ctx context.Context, given json.RawMessage) (answer, error) {
	var words []string
	if err := json.Unmarshal(given, &words); err != nil {
		return answer{}, err
	}
	return d.run(ctx, append(words, "--dry-run", "--json")...)
}

// offered lets a shell split the command into its words.
func (d learnedShell) offered(ctx context.Context, step string) (json.RawMessage, bool) {
	words := strings.Fields(step)
	if len(words) < 2 || words[0] != "parley" || strings.Contains(step, " --describe") ||
		strings.Contains(step, " --list") || slices.Contains([]string{"search", "help", "list", "--help"}, words[1]) {
		return nil, false
	}
	out, err := exec.CommandContext(ctx, "sh", "-c", `parley() { printf '%s\0' "$@"; }; `+step).Output()
	if err != nil {
		return nil, false
	}
	given, err := json.Marshal(strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"))
	return given, err == nil
}

type learnedClient struct{ dryClient }

// send calls listed tools of plugins through call_tool, because only that has dry runs. A name that the server does not
// list is called as it is.
func (d learnedClient) send(ctx context.Context, given json.RawMessage) (answer, error) {
	var call struct {
		Name      string
		Arguments map[string]any
	}
	if err := json.Unmarshal(given, &call); err != nil {
		return answer{}, err
	}
	if d.listed[call.Name] != nil && strings.Contains(call.Name, "__") {
		call.Arguments = map[string]any{"name": call.Name, "arguments": call.Arguments}
		call.Name = d.caller
	}
	if call.Name == d.caller {
		dry := map[string]any{"dry_run": true}
		options, _ := call.Arguments["options"].(map[string]any)
		maps.Copy(dry, options)
		call.Arguments["options"] = dry
	}
	a, err := d.use(ctx, call.Name, call.Arguments)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		var data struct{ Next []json.RawMessage }
		err = json.Unmarshal(refused.Data, &data)
		a.failed, a.err.Message = true, refused.Message
		for _, step := range data.Next {
			a.next = append(a.next, string(step))
		}
	}
	return a, err
}

func (d learnedClient) offered(_ context.Context, step string) (json.RawMessage, bool) {
	var next struct {
		Name      string          `json:"name"`
		Tool      string          `json:"tool,omitempty"`
		Arguments json.RawMessage `json:"arguments"`
		Choose    []string        `json:"choose,omitempty"`
	}
	if json.Unmarshal([]byte(step), &next) != nil || len(next.Choose) > 0 ||
		next.Tool != d.caller && !strings.Contains(next.Tool, "__") {
		return nil, false
	}
	next.Name = next.Tool
	given, err := json.Marshal(next)
	return given, err == nil
}
