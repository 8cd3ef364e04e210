package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// task is a task that is done with single calls in one mode, and with a program in mode code.
type task struct {
	scenario        // each step's want is also a query in mode code
	program  string // URL is the address of the site
	finds    string // is in the last result
}

// tasks returns the six tasks that single calls and programs are compared in. They are done in one session, in this
// order.
func tasks() []task {
	open := func(path string) step {
		return step{want: "open a web page", tool: "page.open", params: `{"url":"URL` + path + `"}`}
	}
	hash := func(text, algorithm string) step {
		return step{want: "hash a text", tool: "text.hash", params: fmt.Sprintf(`{"text":%q,"algorithm":%q}`, text, algorithm)}
	}
	evaluate := func(expression string) step {
		params, _ := json.Marshal(map[string]string{"expression": expression})
		return step{want: "run JavaScript in the page", tool: "page.evaluate", params: string(params)}
	}
	const sum = `[...document.querySelectorAll(".price")].reduce((sum, e) => sum + Number(e.textContent.slice(1)), 0)`
	return []task{
		{scenario{"hash a text", []step{hash("hello", "md5")}},
			`return await tools.text.hash({text: "hello", algorithm: "md5"})`, "5d41402abc4b2a76b9719d911017c592"},
		{scenario{"open a page and take a picture", []step{
			open("shop"), {want: "take a screenshot of the page", tool: "page.screenshot", params: `{}`},
		}}, `await tools.page.open({url: "URLshop"})
parley.image((await tools.page.screenshot({})).data)`, "image/png"},
		{scenario{"sum the prices", []step{open("shop"), evaluate(sum)}},
			"await tools.page.open({url: \"URLshop\"})\nreturn await tools.page.evaluate({expression: `" + sum + "`})", "60"},
		{scenario{"fill in and submit a form", []step{
			open("form"),
			{want: "fill in a field", tool: "page.fill", params: `{"element":"Name","value":"Ada"}`},
			{want: "fill in a field", tool: "page.fill", params: `{"element":"E-mail","value":"ada@a.test","submit":true}`},
		}}, `await tools.page.open({url: "URLform"})
await tools.page.fill({element: "Name", value: "Ada"})
return await tools.page.fill({element: "E-mail", value: "ada@a.test", submit: true})`, "Thanks, Ada"},
		{scenario{"failed requests and console errors", []step{
			open("broken"),
			{want: "failed requests of the page", tool: "page.requests", params: `{"failed":true}`},
			{want: "console errors of the page", tool: "page.console", params: `{"level":"error"}`},
		}}, `await tools.page.open({url: "URLbroken"})
return [await tools.page.requests({failed: true}), await tools.page.console({level: "error"})]`, "is not a function"},
		{scenario{"JSON of an API to YAML, with hashes", []step{
			open("users"), evaluate("document.body.innerText"), hash("ada@a.test", "sha1"), hash("bob@b.test", "sha1"),
			{want: "convert JSON to YAML", tool: "json.convert", params: `{"json":[` +
				`{"email":"ada@a.test","hash":"a0f5e41e9ef9fa4e0a63b9ef5e1a4e4b3b5e2d51"},` +
				`{"email":"bob@b.test","hash":"b2a1f1d0d9b4a7a4bb4f3fd9a0b6e0c5c2a4e3f7"}]}`},
		}}, `await tools.page.open({url: "URLusers"})
const users = JSON.parse((await tools.page.evaluate({expression: "document.body.innerText"})).value)
const rows = users.map(async ({email}) => ({email, ...(await tools.text.hash({text: email, algorithm: "sha1"}))}))
return await tools.json.convert({json: await Promise.all(rows)})`, "email: bob@b.test"},
	}
}

// site serves the pages of the tasks.
func site() http.Handler {
	mux := http.NewServeMux()
	page := func(path, content string) {
		mux.HandleFunc("GET /"+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<!doctype html><title>Harbour</title><link rel=icon href=data:,>"+content)
		})
	}
	page("{$}", "")
	page("shop", `<ul><li>Rope <b class=price>$12</b><li>Sail <b class=price>$48</b></ul>`)
	page("form", `<form method=post action=thanks><label>Name <input name=name></label>
		<label>E-mail <input name=email></label><button>Send</button></form>`)
	page("broken", `<script src=missing.js></script><script>undefinedThing.call; </script><script>({}).call()</script>`)
	mux.HandleFunc("GET /users", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `[{"id":1,"email":"ada@a.test"},{"id":2,"email":"bob@b.test"}]`)
	})
	mux.HandleFunc("POST /thanks", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html><title>Thanks, %s</title>", r.PostFormValue("name"))
	})
	return mux
}

// taskModes are the modes in which the tasks are done.
var taskModes = []string{"minimal", "progressive", "code"}

// doTasks does the tasks in every mode, each in one session. costs has a row for each task and a column for each mode;
// the first task of a mode bears the cost of its list.
func doTasks(ctx context.Context, binary, home string) (costs [][]cost, err error) {
	url, stop, err := serve()
	if err != nil {
		return nil, err
	}
	defer stop()
	costs = make([][]cost, len(tasks()))
	for _, mode := range taskModes {
		err := doIn(ctx, mode, binary, home, url, func(i int, c cost) { costs[i] = append(costs[i], c) })
		if err = errors.Join(err, tree.CloseBrowser(binary, home)); err != nil {
			return nil, fmt.Errorf("mode %s: %w", mode, err)
		}
	}
	return costs, nil
}

func doIn(ctx context.Context, mode, binary, home, url string, done func(i int, c cost)) error {
	p := &player{client: &client{binary: binary, home: home, mode: mode}, known: map[string][]string{}}
	text, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	start := tokens(text)
	for i, t := range tasks() {
		p.cost = cost{docs: map[string]int{}, tokens: start}
		p.wrote, start = 0, 0
		var last answer
		if mode == "code" {
			last, err = p.program(ctx, t, url)
		} else {
			last, err = p.playTask(ctx, t.scenario, url)
		}
		if err == nil && !strings.Contains(last.text, t.finds) {
			err = fmt.Errorf("%q is not in %s", t.finds, last.text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		p.written = p.wrote
		done(i, p.cost)
	}
	return nil
}

// playTask does a task with single calls and returns the last answer.
func (p *player) playTask(ctx context.Context, s scenario, url string) (last answer, err error) {
	if err := p.prepare(ctx, s); err != nil {
		return last, err
	}
	for _, step := range s.steps {
		if last, err = p.take(ctx, step, url); err != nil {
			return last, err
		}
	}
	return last, nil
}

// program does a task with one search, for what has not been declared yet, and one program.
func (p *player) program(ctx context.Context, t task, url string) (last answer, err error) {
	var queries []string
	for _, s := range t.steps {
		if p.known[s.tool] == nil && !slices.Contains(queries, s.want) {
			queries = append(queries, s.want)
		}
	}
	if len(queries) > 0 {
		a, err := p.use(ctx, "search_tools", map[string]any{"queries": queries})
		if err != nil {
			return a, err
		}
		p.turns++
		p.read(a)
		for tool, names := range declared(a.text) {
			p.known[tool] = names
		}
	}
	for _, s := range t.steps {
		if !p.knows(s) {
			return last, fmt.Errorf("the searches %q declare no %s with %s", queries, s.tool, s.params)
		}
	}
	last, err = p.use(ctx, "run_code", map[string]any{"source": strings.ReplaceAll(t.program, "URL", url)})
	p.turns++
	p.read(last)
	if last.failed {
		p.failures++
		err = errors.Join(err, errors.New(last.text))
	}
	return last, err
}

var declaration = regexp.MustCompile(`(?m)^tools\.([\w.]+)\((?:p: \{(.*?)\})?\): `)

// declared returns the tools that a search of mode code declares, and the names of their parameters.
func declared(text string) map[string][]string {
	all := map[string][]string{}
	for _, m := range declaration.FindAllStringSubmatch(text, -1) {
		names := []string{}
		for _, field := range strings.Split(m[2], ", ") {
			name, _, _ := strings.Cut(field, ":")
			names = append(names, strings.TrimSuffix(name, "?"))
		}
		all[m[1]] = names
	}
	return all
}

// tasksTable returns the comparison of programs with single calls.
func tasksTable(costs [][]cost) string {
	var b strings.Builder
	b.WriteString("| task | mode | calls | failures | turns | tokens read | written |\n|---|---|---|---|---|---|---|\n")
	row := func(name, mode string, c cost) {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d |\n", name, mode, c.calls, c.failures, c.turns, c.tokens,
			c.written)
	}
	for i, t := range tasks() {
		for j, mode := range taskModes {
			row(t.name, mode, costs[i][j])
		}
	}
	for j, mode := range taskModes {
		row("all six", mode, sum(costs, j))
	}
	return b.String()
}

// contentText returns what an agent reads of a result. A picture is its media type.
func contentText(r *mcp.CallToolResult) []string {
	var texts []string
	for _, content := range r.Content {
		switch c := content.(type) {
		case *mcp.TextContent:
			texts = append(texts, c.Text)
		case *mcp.ImageContent:
			texts = append(texts, c.MIMEType)
		}
	}
	return texts
}
