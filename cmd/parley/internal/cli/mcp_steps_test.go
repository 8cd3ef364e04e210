package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/internal/sample"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
)

// wireClient is a client of parley mcp, which runs in this process.
type wireClient struct {
	t    *testing.T
	in   io.Writer
	out  *bufio.Reader
	last int // id of the last request
}

// dialMCP starts a server with the data folder home. It cannot start a browser.
func dialMCP(t *testing.T, home string, args ...string) *wireClient {
	t.Helper()
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	env := func(name string) string {
		return map[string]string{"PARLEY_HOME": home, "PARLEY_CHROME": filepath.Join(home, "no-chrome"),
			"PARLEY_CONFIRM_WAIT": "1s"}[name] // nobody answers
	}
	ended := make(chan int, 1)
	go func() {
		ended <- Main(append([]string{"mcp"}, args...), &command.Streams{In: toServer, Out: fromServer, Err: io.Discard,
			Env: env})
	}()
	t.Cleanup(func() {
		_ = in.Close()
		if code := <-ended; code != 0 {
			t.Errorf("the server ended with exit code %d", code)
		}
	})
	c := &wireClient{t: t, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	c.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *wireClient) send(message string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, message+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// mcpResponse is the response to a request.
type mcpResponse struct {
	ID     int
	Result json.RawMessage
	Error  *struct {
		Message string
		Data    json.RawMessage
	}
}

func (c *wireClient) request(method, params string) mcpResponse {
	c.t.Helper()
	c.last++
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.last, method, params))
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		var r mcpResponse
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			c.t.Fatalf("%v: %s", err, line)
		}
		if r.ID == c.last {
			return r
		}
	}
}

// mcpStep is a step of next: a call of a listed tool.
type mcpStep struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// stepWalk calls tools with mistakes and follows every step that the results name.
type stepWalk struct {
	*wireClient
	meta    []string            // names of the listed tools
	options map[string]bool     // of the command line
	done    map[string]bool     // calls, as JSON
	codes   map[string]int      // of errors
	pending []mcpStep           // steps to follow
	origin  map[string]string   // of a pending step: the call that led to it
	texts   map[string][]string // the calls that returned a text about the command line, by text
}

var (
	shellWord   = regexp.MustCompile(`(?:^|[^\w/.@:-])parley [a-z]`)
	shellOption = regexp.MustCompile("(?:^|[\\s`'\"(\\[])(--[a-z][a-z-]+)")
	// placeholderText is a text that stands for a value, as the usage of commands has them.
	placeholderText = regexp.MustCompile(`^(DIR|FILE|FOLDER|HOST|ID|JSON|KEY|NAME|PATH|PLUGIN|QUERY|TEXT)$|` +
		`^(TOOL|URL|VALUE)$|^<[a-z _-]+>$|^(\.\.\.|…)$|what you want`)
)

// optionNames returns the options that the commands of this program have.
func optionNames() map[string]bool {
	names := map[string]bool{}
	for _, options := range knownByTree(3).commands {
		for _, o := range options {
			names[o] = true
		}
	}
	return names
}

// lineWords returns the parts of a text that are commands or options of the command line.
func (w *stepWalk) lineWords(text string) (found []string) {
	around := func(at []int) string { return text[max(0, at[0]-30):min(len(text), at[1]+30)] }
	for _, at := range shellWord.FindAllStringIndex(text, -1) {
		found = append(found, around(at))
	}
	for _, at := range shellOption.FindAllStringSubmatchIndex(text, -1) {
		if w.options[text[at[2]:at[3]]] {
			found = append(found, around(at))
		}
	}
	return found
}

// call calls a tool and checks what it returns. It reports whether the call succeeded and the steps that it led to.
func (w *stepWalk) call(step mcpStep) (ok bool, next []mcpStep) {
	w.t.Helper()
	raw, err := json.Marshal(map[string]any{"name": step.Tool, "arguments": step.Arguments})
	if err != nil {
		w.t.Fatal(err)
	}
	key := string(raw)
	w.done[key] = true
	r := w.request("tools/call", key)
	var result struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	texts := []string{}
	document := r.Result
	if r.Error != nil {
		texts, document = append(texts, r.Error.Message), r.Error.Data
		result.IsError = true
	} else if err := json.Unmarshal(r.Result, &result); err != nil {
		w.t.Fatalf("%s: %v", key, err)
	}
	for _, c := range result.Content {
		texts = append(texts, c.Text)
	}
	if len(result.Content) > 0 {
		document = json.RawMessage(result.Content[0].Text)
	} else if r.Error != nil {
		texts = append(texts, string(document))
	}
	for _, text := range texts {
		for _, found := range w.lineWords(text) {
			w.texts[found] = append(w.texts[found], key)
		}
	}
	var led struct {
		Code string
		Next json.RawMessage
	}
	if json.Unmarshal(document, &led) != nil {
		next = stepsInText(string(document))
		for _, s := range next {
			w.check(key, s)
		}
		return !result.IsError, next
	}
	if result.IsError {
		w.codes[led.Code]++
	}
	if err := json.Unmarshal(led.Next, &next); err != nil {
		return !result.IsError, nil // the tool's own result has a member of this name
	}
	for _, s := range next {
		w.check(key, s)
	}
	return !result.IsError, next
}

// stepsInText returns the steps that a rendered text names, one a line.
func stepsInText(text string) (next []mcpStep) {
	for line := range strings.Lines(text) {
		if call, ok := strings.CutPrefix(strings.TrimSpace(line), "Next: "); ok {
			tool, arguments, _ := strings.Cut(call, " ")
			arguments, _, _ = strings.Cut(arguments, " (choose ")
			next = append(next, mcpStep{tool, json.RawMessage(arguments)})
		}
	}
	return next
}

// check checks the form of a step, and remembers to follow it.
func (w *stepWalk) check(from string, s mcpStep) {
	w.t.Helper()
	if !slices.Contains(w.meta, s.Tool) || len(s.Arguments) == 0 || s.Arguments[0] != '{' {
		w.t.Errorf("%s leads to %s %s, which is not a call of a listed tool", from, s.Tool, s.Arguments)
		return
	}
	var value any
	if err := json.Unmarshal(s.Arguments, &value); err != nil {
		w.t.Errorf("%s leads to %s: %v", from, s.Arguments, err)
		return
	}
	for _, text := range textsOf(value) {
		if placeholderText.MatchString(text) {
			w.t.Errorf("%s leads to %s %s, in which %q is a placeholder", from, s.Tool, s.Arguments, text)
		}
	}
	s = harmless(s)
	raw, _ := json.Marshal(map[string]any{"name": s.Tool, "arguments": s.Arguments})
	if !w.done[string(raw)] {
		w.done[string(raw)] = true
		w.origin[string(raw)] = from
		w.pending = append(w.pending, s)
	}
}

// textsOf returns the strings among the values of a JSON value, not its keys.
func textsOf(value any) (texts []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			texts = append(texts, textsOf(item)...)
		}
	case map[string]any:
		for _, member := range v {
			texts = append(texts, textsOf(member)...)
		}
	}
	return texts
}

// harmless makes a call of a tool of cdp a dry run.
func harmless(s mcpStep) mcpStep {
	var a map[string]any
	if s.Tool != "call_tool" || json.Unmarshal(s.Arguments, &a) != nil {
		return s
	}
	if name, _ := a["name"].(string); !strings.HasPrefix(name, "cdp") {
		return s
	}
	options, _ := a["options"].(map[string]any)
	if options == nil {
		options = map[string]any{}
	}
	options["dry_run"] = true
	a["options"] = options
	s.Arguments, _ = json.Marshal(a)
	return s
}

// follow follows all pending steps. Each must succeed, or fail and name a further step.
func (w *stepWalk) follow() {
	w.t.Helper()
	for len(w.pending) > 0 {
		step := w.pending[0]
		w.pending = w.pending[1:]
		raw, _ := json.Marshal(map[string]any{"name": step.Tool, "arguments": step.Arguments})
		if ok, next := w.call(step); !ok && len(next) == 0 {
			w.t.Errorf("%s\nleads to %s, which fails and leads nowhere", w.origin[string(raw)], raw)
		}
	}
}

// wrong calls a tool with arguments that are expected to fail. The steps that it names become pending.
func (w *stepWalk) wrong(tool string, arguments any) {
	w.t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		w.t.Fatal(err)
	}
	w.call(mcpStep{tool, raw})
}

// runExamples calls a tool with the parameters of its examples, including those that fail.
func (w *stepWalk) runExamples(name string) {
	w.t.Helper()
	raw := w.request("tools/call", fmt.Sprintf(
		`{"name":"describe_tool","arguments":{"name":%q,"tier":3,"format":"json"}}`, name)).Result
	var result struct{ Content []struct{ Text string } }
	var docs struct {
		Examples []struct{ Params json.RawMessage }
	}
	if json.Unmarshal(raw, &result) != nil || json.Unmarshal([]byte(result.Content[0].Text), &docs) != nil ||
		len(docs.Examples) == 0 {
		w.t.Fatalf("%s has no examples: %s", name, raw)
	}
	for _, e := range docs.Examples {
		w.wrong("call_tool", map[string]any{"name": name, "arguments": e.Params})
	}
}

// listedTool is a tool of tools/list.
type listedTool struct {
	Name        string
	InputSchema json.RawMessage
	Annotations struct{ ReadOnlyHint bool }
}

// listAll returns the tools of all pages of tools/list.
func listAll(c *wireClient) (tools []listedTool) {
	c.t.Helper()
	params := "{}"
	for {
		var page struct {
			Tools      []listedTool
			NextCursor string
		}
		if err := json.Unmarshal(c.request("tools/list", params).Result, &page); err != nil {
			c.t.Fatal(err)
		}
		tools = append(tools, page.Tools...)
		if page.NextCursor == "" {
			return tools
		}
		params = fmt.Sprintf(`{"cursor":%q}`, page.NextCursor)
	}
}

// validParams returns the required parameters of a tool, with values of the declared types.
func validParams(params []manifest.Param) map[string]any {
	valid := map[string]any{}
	for _, p := range params {
		if p.Required {
			valid[p.Name] = validValue(p)
		}
	}
	return valid
}

func validValue(p manifest.Param) any {
	if len(p.Enum) > 0 {
		return p.Enum[0]
	}
	kind, _, _ := strings.Cut(p.Type, "|")
	switch kind {
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "a"
}

// with returns a copy of parameters in which one has the given value.
func with(params map[string]any, name string, value any) map[string]any {
	changed := map[string]any{name: value}
	for k, v := range params {
		if k != name {
			changed[k] = v
		}
	}
	return changed
}

// TestStepsOverMCP calls every shipped tool in wrong ways over MCP, and follows each step that the errors name. Of
// the commands of Chrome's protocol, only every sixteenth is called in every way, and with PARLEY_HAMMER set all are. A
// step is a call of a listed tool that succeeds or leads on. No text of a result speaks of the command line, and no
// step has a placeholder among its values.
func TestStepsOverMCP(t *testing.T) {
	t.Parallel()
	home := testhome.New(t)
	began := time.Now()
	tools := listAll(dialMCP(t, home, "--docs", "full"))
	w := &stepWalk{
		wireClient: dialMCP(t, home, "--docs", "minimal"), done: map[string]bool{}, codes: map[string]int{},
		origin: map[string]string{}, texts: map[string][]string{}, options: optionNames(),
	}
	for _, tool := range listAll(w.wireClient) {
		w.meta = append(w.meta, tool.Name)
	}
	options := map[string]any{"dry_run": true}
	sampled := sample.OneIn(t, 10)
	for _, tool := range tools {
		if slices.Contains(w.meta, tool.Name) || tool.Name == "plan_call" { // which minimal mode does not list
			continue
		}
		name := strings.ReplaceAll(tool.Name, "__", ".")
		if strings.Count(name, ".") == 2 && !sampled() { // a command of Chrome's protocol
			continue
		}
		params := manifest.Params(tool.InputSchema)
		valid := validParams(params)
		callWith := func(arguments any) {
			w.wrong("call_tool", map[string]any{"name": name, "arguments": arguments, "options": options})
		}
		callWith(valid)
		if len(valid) > 0 {
			callWith(map[string]any{})
		}
		callWith(with(valid, "zzqqxv", 1))
		callWith(`{"zzqqxv": [1, `)
		for i, p := range params {
			if i == 0 {
				misspelled := with(valid, p.Name+"x", validValue(p))
				delete(misspelled, p.Name)
				callWith(misspelled)
				callWith(with(valid, p.Name, []any{map[string]any{"a": []any{}}}))
			}
			if len(p.Enum) > 0 {
				callWith(with(valid, p.Name, "zzqqxv"))
				break
			}
		}
		w.wrong("call_tool", map[string]any{"name": name[:len(name)-1] + "q", "arguments": valid, "options": options})
		w.wrong("describe_tool", map[string]any{"name": name[:len(name)-1]})
		if !strings.HasPrefix(name, "cdp.") {
			w.runExamples(name)
		}
		w.follow()
	}
	t.Logf("%d tools after %s", len(tools), time.Since(began))

	for _, name := range []string{"text.hash", "json.query", "cdp.open", "cdp.Page.navigate"} {
		for _, o := range []map[string]any{
			{"timeout": "soon"}, {"timeout": "0s"}, {"bogus": 1}, {"max_bytes": -1}, {"target": 7},
		} {
			w.wrong("call_tool", map[string]any{"name": name, "arguments": map[string]any{}, "options": o})
		}
		w.wrong("describe_tool", map[string]any{"name": name, "tier": 9})
		w.wrong("call_tool", map[string]any{"name": name, "params": map[string]any{}})
	}
	for _, name := range []string{
		"", ".", "cdp", "text", "cdp.Page", "cdp.Page.", "nothing", "nothing.at.all", "navigate", "Page.navigate", "parley",
		"hash",
		"call_tool", "cdp.events", "cdp.Page.loadEventFired", "cdp.Page.Frame", "a b", "json query",
	} {
		w.wrong("call_tool", map[string]any{"name": name})
		w.wrong("describe_tool", map[string]any{"name": name})
	}
	for _, query := range []any{"", "zzqqxv", 7, "a", "take a screenshot", "cdp", strings.Repeat("very long ", 500)} {
		w.wrong("search_tools", map[string]any{"query": query})
		w.wrong("search_tools", map[string]any{"query": query, "limit": 1, "detail": "full"})
	}
	w.wrong("search_tools", map[string]any{"q": "tea"})
	w.wrong("search_tools", map[string]any{"query": "tea", "limit": 0})
	w.wrong("no_such_tool", map[string]any{})
	w.wrong("text__hsh", map[string]any{})
	w.follow()

	// What fails while it runs: no browser can be started, nobody can be asked, and what the shipped examples do.
	for _, c := range []struct{ name, arguments string }{
		{"cdp.open", `{"url":"about:blank"}`}, {"cdp.Page.navigate", `{"url":"about:blank"}`}, {"cdp.Browser.close", `{}`},
		{"cdp.close", `{}`}, {"cdp.evaluate", `{"expression":"1"}`}, {"cdp.Runtime.evaluate", `{"expression":"1"}`},
		{"cdp.events", `{"match":["Page.*"]}`}, {"cdp.Storage.clearCookies", `{}`}, {"cdp.Target.getTargets", `{}`},
	} {
		w.wrong("call_tool", map[string]any{"name": c.name, "arguments": json.RawMessage(c.arguments)})
	}
	w.follow()
	t.Logf("%d calls in %s: %v", w.last, time.Since(began), w.codes)
	for text, calls := range w.texts {
		t.Errorf("the command line in %d results: %q, as of %s", len(calls), text, calls[0])
	}
}
