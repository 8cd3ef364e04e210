package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/manifest"
)

// maxCalls is the number of commands within which the agent is to reach a result.
const maxCalls = 4

// visit is what became of an agent that called a command without parameters and then did only what replies say.
type visit struct {
	example
	calls []string // the commands
	done  bool     // the command has succeeded
}

func (v *visit) String() string {
	return fmt.Sprintf("%s: %s\n\t%s", v.command.Name, manifest.Clip(v.message, 200), strings.Join(v.calls, "\n\t"))
}

// readable returns the commands that only read and that the browser of the table knows.
func readable(o options) ([]*visit, error) {
	all, err := commands()
	if err != nil {
		return nil, err
	}
	ran, err := readTable(tableFile)
	if err != nil {
		return nil, err
	}
	var visits []*visit
	for _, c := range all {
		isUnknown := func(x cdp.Example) bool { return ran.outcome(&example{command: c, Example: x}) == unknown }
		if c.Effect != manifest.EffectRead || skipReason(c) != "" || !o.only.MatchString(c.Name) ||
			slices.ContainsFunc(provider.Examples(c.Name), isUnknown) {
			continue
		}
		visits = append(visits, &visit{example: example{command: c}})
	}
	return inPart(visits, o.part), nil
}

// runAgent visits commands and prints the calls of those that were not reached, and the sums.
func runAgent(ctx context.Context, o options, out io.Writer) error {
	visits, err := readable(o)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, o.binary)
	if err != nil {
		return err
	}
	defer l.close()
	byCalls := l.visitAll(ctx, visits)
	for _, v := range visits {
		if o.verbose || !v.done {
			fmt.Fprintln(out, v)
		}
	}
	fmt.Fprintf(out, "of %d read-only commands, reached with 1 to %d calls: %v\n", len(visits), maxCalls, byCalls)
	return nil
}

// visitAll visits commands and returns how many were reached with 1, 2, .. calls.
func (l *lab) visitAll(ctx context.Context, visits []*visit) []int {
	byCalls := make([]int, maxCalls)
	for _, v := range visits {
		l.visit(ctx, v)
		if v.done {
			byCalls[len(v.calls)-1]++
		}
	}
	return byCalls
}

// printed is an error as the command line prints it with --json.
type printed struct {
	OK    bool
	Data  json.RawMessage
	Next  []string
	Error struct {
		Code, Message string
		Corrected     json.RawMessage
		Template      json.RawMessage
		Docs          *manifest.ToolDocs
	}
}

// visit lets the agent call a command, in a session with the prepared page.
func (l *lab) visit(ctx context.Context, v *visit) {
	l.mu.Lock()
	l.session++
	session := fmt.Sprintf("agent%d", l.session)
	l.mu.Unlock()
	l.visitIn(ctx, v, "--session", session)
	_, _ = l.parley(ctx, 20*time.Second, nil, "cdp", "close", "--session", session)
	if strings.Contains(v.message, "the pages of others") { // sessions do not reach the whole browser
		const browser = "alone"
		v.calls = nil
		_, _ = l.parley(ctx, time.Minute, nil, "cdp", "open", "--params", l.params, "--browser", browser)
		l.visitIn(ctx, v, "--browser", browser)
		_, _ = l.parley(ctx, 20*time.Second, nil, "cdp", "close", "--browser", browser)
	}
}

// visitIn lets the agent call a command in a session or a browser.
func (l *lab) visitIn(ctx context.Context, v *visit, option, name string) {
	if option == "--session" {
		_ = l.batch(ctx, openPage(""), option, name)
	} else {
		_ = l.batch(ctx, openPage(name))
	}
	own := "parley cdp " + v.command.Name + " " + option + " " + name
	next := []string{own + " --params '{}'"}
	done := map[string]bool{}
	var docs *manifest.ToolDocs
	for len(v.calls) < maxCalls && len(next) > 0 {
		command := next[0]
		next, done[command] = next[1:], true
		v.calls = append(v.calls, command)
		f := l.shell(ctx, command)
		v.message = f.Error.Code + ": " + f.Error.Message
		isOwn := strings.HasPrefix(command, "parley cdp "+v.command.Name+" ") || strings.HasPrefix(command,
			"parley plan "+cdp.Name+"."+v.command.Name+" ")
		if f.OK && isOwn {
			v.result = f.Data
			v.message = disappoints(&v.example)
			v.done = v.message == ""
			return
		}
		if f.OK { // what had to come before; then the command again
			next = append([]string{v.calls[0]}, next...)
			continue
		}
		if f.Error.Docs != nil {
			docs = f.Error.Docs
		}
		var follow []string
		if f.Error.Corrected != nil {
			follow = append(follow, own+" --params '"+string(f.Error.Corrected)+"'")
		}
		for _, step := range f.Next {
			if words := strings.Fields(step); len(words) > 2 && (words[1] == "plan" || words[1] == cdp.Name) &&
				!slices.Contains(words, "--describe") && !slices.Contains(words, "--list") {
				if filled := fillIn(step, docs); !done[filled] {
					follow = append(follow, filled)
				}
			}
		}
		if f.Error.Template != nil && len(follow) == 0 {
			if filled, ok := fillTemplate(f.Error.Template, docs); ok {
				follow = append(follow, own+" --params '"+filled+"'")
			}
		}
		next = append(follow, next...)
	}
}

// shell runs a command that a reply suggests.
func (l *lab) shell(ctx context.Context, command string) (f printed) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", strings.Replace(command, "parley", filepath.Clean(l.binary), 1)+" --json")
	cmd.Env = append(os.Environ(), "PARLEY_HOME="+l.home)
	var out, problem strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problem
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	text := problem.String()
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); lines[0] != "" { // of a plan, the last one
		text = lines[len(lines)-1]
	}
	if e := json.Unmarshal([]byte(text), &f); e != nil {
		f.Error.Message = fmt.Sprintf("%v, %v: %s", err, e, text)
	}
	return f
}

// placeholder is a value that a suggested command leaves open.
var placeholder = regexp.MustCompile(`--param ([A-Za-z.]+)=([A-Z.]+)\b`)

// fillIn fills the placeholders of a command from a tool's documentation.
func fillIn(command string, docs *manifest.ToolDocs) string {
	return placeholder.ReplaceAllStringFunc(command, func(match string) string {
		name := placeholder.FindStringSubmatch(match)[1]
		value, ok := documented(name, docs)
		if !ok {
			return match
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		return "--param " + name + "='" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	})
}

// fillTemplate fills the holes of a template's parameters from a tool's documentation.
func fillTemplate(template json.RawMessage, docs *manifest.ToolDocs) (string, bool) {
	var params map[string]json.RawMessage
	if json.Unmarshal(template, &params) != nil {
		return "", false
	}
	for name, value := range params {
		if strings.Contains(string(value), `"<`) {
			filled, ok := documented(name, docs)
			if !ok {
				return "", false
			}
			params[name] = filled
		}
	}
	raw, err := manifest.Marshal(params)
	return strings.ReplaceAll(string(raw), "'", `'\''`), err == nil
}

// documented returns the value that documentation shows for a parameter: that of an example, or else a value of its
// type. An id that another call returns is not one.
func documented(name string, docs *manifest.ToolDocs) (json.RawMessage, bool) {
	if docs == nil {
		return nil, false
	}
	for _, e := range docs.Examples {
		value := e.Params
		for _, step := range strings.Split(name, ".") {
			var object map[string]json.RawMessage
			_ = json.Unmarshal(value, &object)
			value = object[step]
		}
		if value != nil && !strings.Contains(string(value), "${") {
			return value, true
		}
	}
	for _, p := range docs.Parameters {
		switch {
		case p.Name != name:
		case p.Default != nil:
			return p.Default, true
		case len(p.Enum) > 0:
			return p.Enum[0], true
		default:
			value, ok := map[string]string{"string": `"a"`, "integer": "1", "number": "1", "boolean": "true", "array": "[]",
				"object": "{}"}[p.Type]
			return json.RawMessage(value), ok
		}
	}
	return nil, false
}
