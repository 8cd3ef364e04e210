package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/internal/testhome"
)

// revisions are those of the protocol that clients speak: with sessions, and without.
var revisions = []string{"2025-11-25", "2026-07-28"}

// bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// agent is a client of parley mcp that cannot ask anybody.
type agent struct {
	*sdk.ClientSession
	t       *testing.T
	session string // named in each request; "" where the connection is the session
}

func newAgent(t *testing.T, revision, session string, transport sdk.Transport) *agent {
	t.Helper()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"},
		&sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}}).
		Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &agent{s, t, session}
}

// stdioAgent starts a server of its own for the data folder home.
func stdioAgent(t *testing.T, home, revision string) *agent {
	t.Helper()
	cmd := exec.Command("parley", "mcp")
	cmd.Env = append(os.Environ(), "PARLEY_HOME="+home, "HOME="+home)
	return newAgent(t, revision, "", &sdk.CommandTransport{Command: cmd})
}

// httpAgent connects to a server. In the revision without sessions, each request names one.
func httpAgent(t *testing.T, url, revision, token, session string) *agent {
	t.Helper()
	if revision == revisions[0] {
		session = ""
	}
	return newAgent(t, revision, session, &sdk.StreamableClientTransport{
		Endpoint: url, MaxRetries: -1, HTTPClient: &http.Client{Transport: bearer(token)},
	})
}

// call calls a tool and returns its data or error.
func (a *agent) call(tool string, params, options map[string]any) (data any, failed bool) {
	a.t.Helper()
	arguments := map[string]any{"name": tool}
	if params != nil {
		arguments["arguments"] = params
	}
	if options != nil {
		arguments["options"] = options
	}
	p := &sdk.CallToolParams{Name: "call_tool", Arguments: arguments}
	if a.session != "" {
		p.Meta = sdk.Meta{mcp.SessionKey: a.session}
	}
	ctx, cancel := context.WithTimeout(a.t.Context(), 2*time.Minute)
	defer cancel()
	r, err := a.CallTool(ctx, p)
	if err != nil {
		a.t.Errorf("%s: %v", tool, err)
		return nil, true
	}
	text := ""
	if first, ok := r.Content[0].(*sdk.TextContent); ok { // documentation may follow
		text = first.Text
	}
	if json.Unmarshal([]byte(text), &data) != nil {
		data = text
	}
	return data, r.IsError
}

var agentTokens = []string{"first-token-of-two", "second-token-of-two"}

// serveAgents serves clients over HTTP, which may call what clients over stdio may.
func serveAgents(t *testing.T, home string) *served {
	t.Helper()
	tokens, config := filepath.Join(home, "tokens"), filepath.Join(home, "config")
	const policy = "[callers.\"mcp-http:*\"]\nallow = [\"*\"]\nconfirm = [\"effect:destructive\"]\n"
	const settings = "confirm_wait = \"1s\"\n" // nobody answers
	err := os.WriteFile(tokens, []byte(strings.Join(agentTokens, "\n")), 0o600)
	if err := errors.Join(err, os.MkdirAll(config, 0o700),
		os.WriteFile(filepath.Join(config, "policy.toml"), []byte(policy), 0o600),
		os.WriteFile(filepath.Join(config, "config.toml"), []byte(settings), 0o600)); err != nil {
		t.Fatal(err)
	}
	return serveHTTP(t, home, 1, "--token-file", tokens)
}

// TestAgentsCloseWhatTheyOpened runs ten clients at once that cannot be asked to confirm anything: each opens a page,
// works there and closes it, although calls that destroy something are confirmed.
func TestAgentsCloseWhatTheyOpened(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	home := shortHome(t)
	server := serveAgents(t, home)
	var wg sync.WaitGroup
	for i := range 10 {
		revision := revisions[i/2%2]
		var a *agent
		if i%2 == 0 {
			a = stdioAgent(t, home, revision)
		} else {
			a = httpAgent(t, server.url, revision, agentTokens[i/4%2], fmt.Sprint(i))
		}
		wg.Go(func() {
			opened, failed := a.call("cdp.open", map[string]any{"url": "about:blank"}, map[string]any{"timeout": "120s"})
			page, _ := opened.(map[string]any)
			if failed || page["target"] == nil {
				t.Errorf("open: %v", opened)
				return
			}
			product := map[string]any{"expression": fmt.Sprint("6*", i), "returnByValue": true}
			got, failed := a.call("cdp.Runtime.evaluate", product, nil)
			if failed || !strings.Contains(fmt.Sprint(got), fmt.Sprint("value:", 6*i)) {
				t.Errorf("evaluate: %v", got)
			}
			if refused, failed := a.call("cdp.Storage.clearCookies", nil, nil); !failed {
				t.Errorf("a destructive call needs no confirmation: %v", refused)
			}
			closed, failed := a.call("cdp.close", nil, nil)
			if failed || !strings.Contains(fmt.Sprint(closed), fmt.Sprint("targets:[", page["target"], "]")) {
				t.Errorf("close of %v: %v", page["target"], closed)
			}
		})
	}
	wg.Wait()
	waitForEmpty(t, home)
}

// TestTutorialCloses follows the tutorial, as parley learn shows it, and the prompt made of it: the last call closes
// what the first has opened.
func TestTutorialCloses(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	home := shortHome(t)
	a := stdioAgent(t, home, revisions[0])
	prompt, err := a.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "learn_cdp"})
	if err != nil || len(prompt.Messages) != 1 {
		t.Fatal(prompt, err)
	}
	text := prompt.Messages[0].Content.(*sdk.TextContent).Text
	steps := regexp.MustCompile(`(?m)^ +(\w+) (\{.*\})`).FindAllStringSubmatch(text, -1)
	if len(steps) == 0 || !strings.Contains(steps[len(steps)-1][2], "cdp.close") {
		t.Fatalf("the last step does not close: %s", text)
	}
	for _, step := range steps {
		var arguments map[string]any
		if err := json.Unmarshal([]byte(step[2]), &arguments); err != nil {
			t.Fatalf("%s: %v", step[2], err)
		}
		r, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: step[1], Arguments: arguments})
		if err != nil || r.IsError {
			t.Errorf("%s: %v, %+v", step[0], err, r)
		}
	}
	waitForEmpty(t, home)
	if ran := followTutorial(t, home); len(ran) < len(steps) || !strings.Contains(ran[len(ran)-1], "close") {
		t.Errorf("the tutorial runs %q", ran)
	}
	waitForEmpty(t, home)
}

// followTutorial runs what parley learn cdp shows, until the tutorial is complete, and returns the commands.
func followTutorial(t *testing.T, home string) (ran []string) {
	t.Helper()
	files := t.TempDir()
	for range 20 {
		out, err := homeCommand(home, "learn", "cdp", "--json").Output()
		var shown struct {
			Data struct{ Finished bool }
			Next []string
		}
		if err = errors.Join(err, json.Unmarshal(out, &shown)); err != nil {
			t.Fatalf("learn: %v: %s", err, out)
		}
		if shown.Data.Finished {
			return ran
		}
		for _, command := range shown.Next {
			if strings.HasPrefix(command, "parley learn ") {
				continue
			}
			ran = append(ran, command)
			shell := homeCommand(home)
			shell.Dir = files
			shell.Args, shell.Path = []string{"sh", "-c", command}, "/bin/sh"
			if out, err := shell.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", command, err, out)
			}
		}
	}
	t.Errorf("the tutorial is not complete after %q", ran)
	return ran
}

// shortHome returns a data folder whose path is short enough for sockets. All browsers in it are closed at the end.
func shortHome(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = homeCommand(home, "cdp", "close", "--all").Run()
		_ = os.RemoveAll(home)
	})
	if err := testhome.Fill(home); err != nil {
		t.Fatal(err)
	}
	return home
}

func homeCommand(home string, args ...string) *exec.Cmd {
	cmd := exec.Command("parley", args...)
	cmd.Env = append(os.Environ(), "PARLEY_HOME="+home, "HOME="+home)
	return cmd
}

// waitForEmpty waits until no browser is open.
func waitForEmpty(t *testing.T, home string) {
	t.Helper()
	var out []byte
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		out, _ = homeCommand(home, "cdp", "status", "--all", "--json").Output()
		if strings.Contains(string(out), `"browsers":[]`) {
			return
		}
	}
	t.Errorf("still open: %s", out)
}

// task returns the steps of a task. NAME stands for the agent's name, which all that it leaves behind has.
func task(url string) []map[string]any {
	step := func(tool string, params, options map[string]any) map[string]any {
		line := map[string]any{"tool": "cdp." + tool}
		if params != nil {
			line["params"] = params
		}
		if options != nil {
			line["options"] = options
		}
		return line
	}
	jq := func(expression string) map[string]any { return map[string]any{"jq": expression} }
	script := func(expression string) map[string]any {
		return map[string]any{"expression": expression, "returnByValue": true}
	}
	return []map[string]any{
		step("open", map[string]any{"url": url + "/form?NAME"}, jq("{url,title,status}")),
		step("Page.navigate", map[string]any{"url": url + "/second?NAME"},
			map[string]any{"wait": "load", "jq": ".errorText"}),
		step("Page.navigate", map[string]any{"url": url + "/form?NAME"}, map[string]any{"wait": "load", "jq": ".errorText"}),
		step("Runtime.evaluate", script("document.querySelector('input').focus(), document.hasFocus(), 1"), nil),
		step("Input.insertText", map[string]any{"text": "typed by NAME"}, nil),
		step("Runtime.evaluate", script("document.querySelector('input').value"), nil),
		step("Network.setCookie", map[string]any{"url": url, "name": "who", "value": "NAME"}, nil),
		step("Network.getCookies", nil, jq("[.cookies[]|{name,value}]")),
		step("Runtime.evaluate", script("localStorage.who = (localStorage.who || '') + 'NAME'"), nil),
		step("Runtime.evaluate", script("document.cookie + ' ' + confirm('NAME?')"), map[string]any{"on_dialog": "accept"}),
		step("events", map[string]any{"match": []string{"Network.requestWillBeSent"}, "since": 0},
			jq("[.events[].params.request.url]")),
		step("Page.captureScreenshot", nil, jq(".data|length>100")),
		step("Runtime.evaluate", map[string]any{"awaitPromise": true, "returnByValue": true, "expression": `
			Object.assign(document.createElement('a'), {href: '/file?NAME', download: ''}).click();
			fetch('/downloaded?NAME').then(r => r.text())`}, nil),
		step("events", map[string]any{"match": []string{"Browser.downloadWillBegin"}, "since": 0},
			jq("[.events[].params|.url,.suggestedFilename]")),
		step("targets", nil, jq("[.targets[]|{type,url,current}]")),
		step("close", nil, jq(".closed|[(.targets|length),(.contexts|length)]")),
	}
}

// awaitDownload waits until a file in the run folder of a home has a text, and returns that.
func awaitDownload(ctx context.Context, home, text string) string {
	for {
		found := false
		_ = filepath.WalkDir(filepath.Join(home, "run"), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return nil
			}
			if info, err := entry.Info(); err == nil && info.Size() == int64(len(text)) {
				if content, err := os.ReadFile(path); err == nil && string(content) == text {
					found = true
				}
			}
			return nil
		})
		if found {
			return text
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// answersAs returns the answers to a task by an agent of a name, without what differs between agents.
func answersAs(name string, steps []map[string]any, do func(lines []map[string]any) []any) string {
	raw, _ := json.Marshal(steps)
	var lines []map[string]any
	_ = json.Unmarshal(bytes.ReplaceAll(raw, []byte("NAME"), []byte(name)), &lines)
	var text strings.Builder
	for i, answer := range do(lines) {
		data, _ := json.Marshal(answer)
		fmt.Fprintf(&text, "%v %s\n", steps[i]["tool"], strings.ReplaceAll(string(data), name, "NAME"))
	}
	return text.String()
}

// TestTwoAgentsAtOnce runs a task in two sessions of one browser at once, on every way that agents take. Their answers
// are those of an agent that is alone.
func TestTwoAgentsAtOnce(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	home := shortHome(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/file":
			w.Header().Set("Content-Disposition", "attachment; filename=report.txt")
			fmt.Fprintf(w, "for %s alone", r.URL.RawQuery)
			return
		case "/downloaded":
			fmt.Fprint(w, awaitDownload(r.Context(), home, fmt.Sprintf("for %s alone", r.URL.RawQuery)))
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>%s</title><link rel=icon href=data:><input>", r.URL.Path)
	}))
	defer site.Close()
	server := serveAgents(t, home)
	// Opened by the person, the browser stays.
	if out, err := homeCommand(home, "cdp", "open").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	steps := task(site.URL)
	byMCP := func(connect func(i int) *agent) func(i int, lines []map[string]any) []any {
		return func(i int, lines []map[string]any) (answers []any) {
			a := connect(i)
			defer func() { _ = a.Close() }()
			for _, line := range lines {
				params, _ := line["params"].(map[string]any)
				options, _ := line["options"].(map[string]any)
				data, failed := a.call(line["tool"].(string), params, options)
				if failed {
					t.Errorf("%v: %v", line, data)
				}
				answers = append(answers, data)
			}
			return answers
		}
	}
	ways := map[string]func(i int, lines []map[string]any) []any{
		"batch": func(i int, lines []map[string]any) (answers []any) {
			var input bytes.Buffer
			for _, line := range lines {
				raw, _ := json.Marshal(line)
				input.Write(append(raw, '\n'))
			}
			cmd := homeCommand(home, "batch", "-", "--session", fmt.Sprint("agent", i))
			cmd.Stdin = &input
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("batch: %v: %s", err, out)
			}
			for line := range strings.Lines(string(out)) {
				var answer struct{ Data any }
				if err := json.Unmarshal([]byte(line), &answer); err != nil {
					t.Errorf("%s: %v", line, err)
				}
				answers = append(answers, answer.Data)
			}
			return answers
		},
	}
	for _, revision := range revisions {
		ways["stdio "+revision] = byMCP(func(int) *agent { return stdioAgent(t, home, revision) })
		ways["http "+revision] = byMCP(func(i int) *agent {
			return httpAgent(t, server.url, revision, agentTokens[i], "same name")
		})
	}
	rounds := 1
	if os.Getenv("PARLEY_HAMMER") != "" {
		rounds = 20
	}
	for way, do := range ways {
		t.Run(way, func(t *testing.T) {
			run := func(i int) string {
				return answersAs(fmt.Sprint("agent", i), steps, func(lines []map[string]any) []any { return do(i, lines) })
			}
			alone := run(0)
			if strings.Count(alone, "\n") != len(steps) {
				t.Fatalf("alone: %s", alone)
			}
			for range rounds {
				var wg sync.WaitGroup
				for i := range 2 {
					wg.Go(func() {
						if got := run(i); got != alone {
							t.Errorf("agent %d answers\n%s, alone\n%s", i, got, alone)
						}
					})
				}
				wg.Wait()
			}
		})
	}
}
