package mcp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/mcp/envelope"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// listed returns the names in all pages of tools/list.
func listed(t testing.TB, s *sdk.ClientSession) (names []string) {
	t.Helper()
	params := &sdk.ListToolsParams{}
	for {
		page, err := s.ListTools(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if page.NextCursor == "" {
			return names
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
}

// stdioResult returns the bytes of the result of a request over stdio.
func stdioResult(t testing.TB, s *mcp.Server, method string) string {
	t.Helper()
	lines := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"` + method + `"}
`
	var out bytes.Buffer
	if err := s.Stdio(t.Context(), strings.NewReader(lines), &out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var answer struct {
			ID     int
			Result json.RawMessage
		}
		if json.Unmarshal([]byte(line), &answer) == nil && answer.ID == 2 {
			return string(answer.Result)
		}
	}
	t.Fatalf("no answer in %s", out.String())
	return ""
}

// TestGoldenLists compares what each mode lists with a golden file, byte for byte, in two runs.
func TestGoldenLists(t *testing.T) {
	for _, mode := range mcp.Modes() {
		list := func() string {
			return stdioResult(t, newFixture(t, mode, defaultPolicy, "shop.order.cancel", "shop__add", "shop.add").Server,
				"tools/list")
		}
		seen := list()
		if again := list(); again != seen {
			t.Errorf("%s: two runs differ:\n%s\n%s", mode, seen, again)
		}
		path := filepath.Join("testdata", mode+".json")
		if *update {
			if err := os.WriteFile(path, []byte(seen+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if seen+"\n" != string(want) {
			t.Errorf("%s lists\n%s\nexpected\n%s\n(-update rewrites it)", mode, seen, want)
		}
	}
}

// manyTools returns a plugin with n tools.
func manyTools(t testing.TB, name string, n int) *fake {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `{"manifest":1,"name":%q,"version":"1.0.0","kind":"parley/1","docs":{"brief":"Many tools"},"tools":[`,
		name)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b,
			`{"name":"tool%05d","docs":{"brief":"Do the thing of number %d"},"effect":"read","params":{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}}`, i, i)
	}
	b.WriteString("]}")
	f, err := newFake(b.String())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestMinimalIsConstant checks that minimal mode costs the same with 20 and with 3,000 tools (with PARLEY_HAMMER set,
// 10,000), and that full mode has several pages.
func TestMinimalIsConstant(t *testing.T) {
	t.Parallel()
	var sizes []int
	large, paged := 300, 1001
	if os.Getenv("PARLEY_HAMMER") != "" {
		large, paged = 5000, 2500
	}
	for _, n := range []int{10, large} {
		s, err := newServer(mcp.Minimal, hostcall.Config{}, nil, manyTools(t, "many", n), manyTools(t, "more", n))
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(stdioResult(t, s, "tools/list")))
	}
	if sizes[0] != sizes[1] || manifest.Tokens(strings.Repeat("x", sizes[0])) > 450 {
		t.Errorf("minimal mode lists %d bytes", sizes)
	}
	t.Logf("minimal: %d bytes, %d tokens", sizes[0], sizes[0]*2/9)

	s, err := newServer(mcp.Full, hostcall.Config{}, nil, manyTools(t, "many", paged))
	if err != nil {
		t.Fatal(err)
	}
	session := (&fixture{Server: s}).stdio(t, client{})
	page, err := session.ListTools(t.Context(), nil)
	if err != nil || page.NextCursor == "" || len(page.Tools) != 1000 {
		t.Errorf("the first page has %d tools, %v", len(page.Tools), err)
	}
	if _, err := session.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: "no cursor"}); err == nil {
		t.Error("a cursor that no page had is accepted")
	}
	if names := listed(t, session); len(names) != paged+4 || !slices.IsSorted(names) {
		t.Errorf("all pages have %d tools", len(names))
	}
}

// TestLargeResults checks that a list that is written without the SDK is what the SDK writes in a batch.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26",` +
		`"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	const list = `{"jsonrpc":"2.0","id":"a","method":"tools/list"}`
	respond := func(input string) string {
		s, err := newServer(mcp.Full, hostcall.Config{}, nil, manyTools(t, "many", 400))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := s.Stdio(t.Context(), strings.NewReader(hello+input+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(out.String(), "\n") // of initialize
		return strings.TrimSuffix(rest, "\n")
	}
	single, batch := respond(list), respond("["+list+"]")
	if len(single) < 32<<10 || !strings.HasPrefix(single, `{"jsonrpc":"2.0","id":"a","result":{`) {
		t.Errorf("%d bytes: %.100s", len(single), single)
	}
	if batch != "["+single+"]" {
		t.Errorf("in a batch: %.100s", batch)
	}
}

// TestProgressiveBudget checks that 22 pinned tools cost at most 1,200 tokens.
func TestProgressiveBudget(t *testing.T) {
	t.Parallel()
	var pinned []string
	for i := range 22 {
		pinned = append(pinned, fmt.Sprintf("many.tool%05d", i))
	}
	s, err := newServer(mcp.Progressive, hostcall.Config{}, pinned, manyTools(t, "many", 30))
	if err != nil {
		t.Fatal(err)
	}
	list := stdioResult(t, s, "tools/list")
	if got := manifest.Tokens(list); strings.Count(list, `"name":"`) != 26 || got > 1215 {
		t.Errorf("%d tokens: %s", got, list)
	} else {
		t.Logf("%d tokens", got)
	}
}

// TestPinnedSignature checks that a signature has what a call needs: the required parameters, and those of the minimal
// example, since a tool that needs one of several parameters requires none. A large parameter has its description, and
// less of its parts.
func TestPinnedSignature(t *testing.T) {
	t.Parallel()
	f,
		err := newFake(`{"manifest":1,"name":"mouse","version":"1.0.0","kind":"parley/1","docs":{"brief":"Use a mouse"},"tools":[
{"name":"click","docs":{"brief":"Click an element or a point"},"effect":"write","params":{"type":"object","properties":{
"element":{"type":"string","description":"Name"},"at":{"type":"array","items":{"type":"number"}},"button":{"enum":["left","right"]}},
"required":["button"],"anyOf":[{"required":["element"]},{"required":["at"]}]},"examples":[
{"title":"Click a point","kind":"common","params":{"at":[1,2],"button":"left"}},
{"title":"Click a button","kind":"minimal","params":{"element":"Save","button":"left"}}]},
{"name":"draw","docs":{"brief":"Draw lines"},"effect":"write","params":{"type":"object","required":["lines"],"properties":{
"lines":{"type":"array","description":"Points or strokes.","minItems":1,"items":{"anyOf":[
{"type":"array","items":{"anyOf":[{"type":"number"},{"type":"string"},{"type":"array","items":{"type":"number"}}]}},
{"type":"object","required":["to"],"properties":{"to":{"type":"string","description":"Where it ends."},
"via":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}}}}}}]}}}}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(mcp.Progressive, hostcall.Config{}, []string{"mouse.click", "mouse.draw"}, f)
	if err != nil {
		t.Fatal(err)
	}
	list := stdioResult(t, s, "tools/list")
	for _, want := range []string{
		`{"type":"object","properties":{"button":{"enum":["left","right"],"type":"string"},` +
			`"element":{"type":"string"}},"required":["button"]}`,
		`"lines":{"description":"Points or strokes.","items":{"anyOf":[` +
			`{"items":{"anyOf":[{"type":"number"},{"type":"string"}]},"type":"array"},` +
			`{"properties":{"to":{"type":"string"},"via":{"items":{"type":"object"},"type":"array"}},"required":["to"],` +
			`"type":"object"}]},"type":"array"}`,
	} {
		if !strings.Contains(list, want) {
			t.Errorf("got %s, want %s", list, want)
		}
	}
}

func TestInstructions(t *testing.T) {
	t.Parallel()
	var providers []host.Provider
	for i := range 60 {
		providers = append(providers, manyTools(t, fmt.Sprintf("plugin%02d", i), 1))
	}
	s, err := newServer(mcp.Minimal, hostcall.Config{}, nil, providers...)
	if err != nil {
		t.Fatal(err)
	}
	text := (&fixture{Server: s}).stdio(t, client{}).InitializeResult().Instructions
	if manifest.Tokens(text) > 100 || !strings.Contains(text, "plugin00, plugin01") || !strings.Contains(text, " more.") {
		t.Errorf("%d tokens: %s", manifest.Tokens(text), text)
	}
	for _, step := range []string{"search_tools", "describe_tool", "call_tool"} {
		if !strings.Contains(text, step) {
			t.Errorf("%s is not named: %s", step, text)
		}
	}
}

// TestInvalidConfig checks that the error for an unknown mode names all modes, and that pinned names must be tools.
func TestInvalidConfig(t *testing.T) {
	_, err := newServer("tiny", hostcall.Config{}, nil)
	if e := host.AsError(err); e.Code != host.InvalidArgs || !strings.Contains(e.Message, "minimal, progressive, full") {
		t.Errorf("an unknown mode: %v", err)
	}
	for pin, want := range map[string]string{"shop.ad": "shop.add", "shop.order": "", "shop": ""} {
		_, err := newServer(mcp.Minimal, hostcall.Config{}, []string{pin})
		e := host.AsError(err)
		if err == nil || e.Code != host.ConfigError || !strings.Contains(e.Message, "pinned_tools") || want != "" &&
			e.DidYouMean[0].Name != want {
			t.Errorf("pinned %s: %v", pin, err)
		}
	}
}

// TestEveryToolInEveryMode checks that every mode accepts the same calls, by each name of a tool.
func TestEveryToolInEveryMode(t *testing.T) {
	for _, mode := range mcp.Modes() {
		f := newFixture(t, mode, defaultPolicy, "shop.add")
		s := f.stdio(t, client{})
		for _, c := range [][2]string{
			{"shop__add", `{"title":"tea","count":"5"}`},
			{"shop.add", `{"title":"tea","count":"5"}`},
			{"call_tool", `{"name":"shop.add","arguments":{"title":"tea","count":"5"}}`},
			{"call_tool", `{"name":"shop__add","arguments":"{\"title\":\"tea\",\"count\":\"5\"}"}`},
		} {
			r, text := call(t, s, c[0], c[1])
			if r.IsError || text != `{"id":1}` || !strings.Contains(allText(r), "warning: /count: took string") {
				t.Errorf("%s: %s %s returns %s", mode, c[0], c[1], allText(r))
			}
			structured, _ := json.Marshal(r.StructuredContent)
			if string(structured) != `{"id":1}` {
				t.Errorf("%s: structured content %s", mode, structured)
			}
		}
		if got := strings.Count(f.shop.callLog(), ":Test-Client add"); got != 4 {
			t.Errorf("%s: ran %s", mode, f.shop.callLog())
		}
		if e := f.rec.last(); e.Mode != mode || !strings.HasPrefix(e.Session, "mcp-") {
			t.Errorf("%s: recorded as %+v", mode, e)
		}
	}
}

// TestPrefixedNames checks that every name of ours runs with the prefixes that clients and models put before it, and
// that no prefix makes another name one of ours.
func TestPrefixedNames(t *testing.T) {
	t.Parallel()
	prefixes := []string{"mcp__parley__", "mcp__my-tools__", "mcp_parley_", "parley__", "parley_", "parley.", "parley/",
		"parley:", "mcp.parley.", "mcp/parley/", "functions.", "functions/", "function.", "functions.mcp__parley__",
		"Parley."}
	for _, mode := range mcp.Modes() {
		f := newFixture(t, mode, trustNetwork)
		s := f.stdio(t, client{})
		for _, prefix := range prefixes {
			for _, name := range []string{"call_tool", "shop__echo", "shop.echo"} {
				if mode == mcp.Code && name == "call_tool" {
					continue
				}
				arguments := `{"a":"b"}`
				if name == "call_tool" {
					arguments = `{"name":"` + prefix + `shop.echo","arguments":{"a":"b"}}`
				}
				if r, text := call(t, s, prefix+name, arguments); r.IsError || !strings.Contains(text, `{"a":"b"}`) {
					t.Errorf("%s: %s%s returns %s", mode, prefix, name, text)
				}
			}
		}
		for _, name := range []string{"mcp__parley__nothing", "parley.", "other.echo", "parleyshop.echo", "xcall_tool"} {
			if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name}); err == nil {
				t.Errorf("%s returns %s", name, allText(r))
			}
		}
	}
}

func allText(r *sdk.CallToolResult) string {
	var texts []string
	for _, c := range r.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// TestToolsNamedLikeMetaTools checks that a tool can be called even if it is named like a meta-tool.
func TestToolsNamedLikeMetaTools(t *testing.T) {
	names := []string{"call_tool", "search_tools", "describe-tool", "plan_call"}
	var tools []string
	for _, name := range names {
		tools = append(tools, `{"name":"`+name+`","docs":{"brief":"Do it"},"effect":"read","params":{"type":"object"}}`)
	}
	one, err := newFake(`{"manifest":1,"name":"desk","version":"1.0.0","kind":"parley/1","docs":{"brief":"A desk"},"tools":[` +
		strings.Join(tools, ",") + `]}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		one.handlers[name] = func(context.Context, *host.Request) (*job.Result, error) { return jsonData(`"done"`) }
	}
	f := newFixture(t, mcp.Minimal, trustNetwork)
	if f.Server, err = newServer(mcp.Minimal, hostcall.Config{Policy: trustNetwork}, nil, one); err != nil {
		t.Fatal(err)
	}
	s := f.stdio(t, client{revision: revisions[0]})
	for _, name := range names {
		if r, text := call(t, s, "call_tool", `{"name":"desk.`+name+`","arguments":{}}`); r.IsError {
			t.Errorf("desk.%s: %s", name, text)
		}
	}
}

// TestMetaTools searches, describes and calls over every wire, with correct and incorrect arguments.
func TestMetaTools(t *testing.T) {
	forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		s := connect(client{})
		for _, c := range []struct{ name, arguments, want string }{
			{"search_tools", `{"query":"sell something new"}`, `shop.add(title: string, count?: integer, tags?: string[], ` +
				`size?: "small"|"medium"|"large") -> {id: integer}  Add an article (task "sell something new", high, write, ` +
				"unsigned)"},
			{"search_tools", `{"query":"sell something new"}`, "\n  {\"title\":\"<title: string, Name of the article>\"}"},
			{"search_tools", `{"query":"orders","limit":1}`, "shop.order.slow  Wait until it is over (name part, medium, " +
				"unsigned)\n  {}"},
			{"search_tools", `{"query":"shop.add"}`, "\nThe article can be ordered at once.\n  title: string  Name of"},
			{"search_tools", `{"query":"order","limit":1}`, `Next: search_tools {"query":"order","limit":`},
			{"search_tools", `{"query":"zzqqxv"}`, `nothing found for "zzqqxv"`},
			{"search_tools", `{"query":"sell something new","detail":"full","limit":1}`,
				"\nExample: shop.add {\"title\":\"tea\"}\n"},
			{"search_tools", `{"query":"order","max_tokens":40}`, "Left out for max_tokens: signatures"},
			{"describe_tool", `{"name":"shop__add","tier":"2","again":true}`, "shop.add: Add an article [write]\n" +
				"The article can be ordered at once.\n  title: string  Name of the article.\n"},
			{"plan_call", `{"name":"shop.add","arguments":{"title":"tea"},"options":{"target":"T"}}`,
				`"arguments":{"title":"tea"},"options":{"target":"T"}`},
			{"describe_tool", `{"name":"shop.add","max_tokens":45}`, "Left out for max_tokens: exit codes, returns"},
			{"describe_tool", `{"name":"shop.add","tier":3,"format":"json"}`,
				`{"tool":"call_tool","arguments":{"name":"shop.add","arguments":{"title":"tea"}}}`},
		} {
			if r, text := call(t, s, c.name, c.arguments); !strings.Contains(text, c.want) || r.StructuredContent != nil {
				t.Errorf("%s %s returns %s", c.name, c.arguments, text)
			}
		}
		for _, c := range []struct{ name, arguments, code, want string }{
			{"search_tools", `{}`, "invalid_args", "/query Keyword:required Provided:nothing Expected:string"},
			{"search_tools", `{"query":" "}`, "invalid_args", "requires a query"},
			{"search_tools", `{"query":"\u0000\u202e"}`, "invalid_args", "requires a query"},
			{"search_tools", `{"query":"x","detail":"all"}`, "invalid_args", "/detail"},
			{"describe_tool", `{"name":"shop.ad"}`, "not_found", "Name:shop.add"},
			{"describe_tool", `{"name":"shop.add","tier":4}`, "invalid_args", "/tier"},
			{"call_tool", `{"name":"shop.add","params":{}}`, "invalid_args", "/params"},
			{"plan_call", `{"name":"shop.add","options":{"page":"T"}}`, "invalid_args", "page"},
			{"call_tool", `{"name":"nothing.add"}`, "not_found", "no plugin is named nothing"},
			{"call_tool", `{"name":"shop"}`, "invalid_args", "name one of its tools"},
			{"call_tool", `{"name":"shop.add","options":{"timeout":1}}`, "invalid_args", "timeout"},
			{"call_tool", `{"name":"shop.add","options":{"time":"1s"}}`, "invalid_args", "expected timeout"},
		} {
			e := fails(t, s, c.name, c.arguments, c.code)
			if text := fmt.Sprintf("%+v", e); !strings.Contains(text, c.want) || len(e.Next) == 0 && c.name != "search_tools" {
				t.Errorf("%s %s fails with %s, expected %q", c.name, c.arguments, text, c.want)
			}
		}
		for _, c := range []struct{ name, arguments, want string }{
			{"shop__ad", `{}`, `"shop.add"`},
			{"search", `{"query":"add tea"}`, `{"tool":"search_tools","arguments":{"query":"add tea"}}`},
			{"find_tools", `{"q":"tea"}`, `{"tool":"search_tools","arguments":{"query":"tea"}}`},
			{"get_tool", `{"tool_name":"shop.add"}`, `{"tool":"describe_tool","arguments":{"name":"shop.add"}}`},
			{"use_tool", `{"name":"shop.add","arguments":{"title":"tea"}}`,
				`{"tool":"call_tool","arguments":{"name":"shop.add","arguments":{"title":"tea"}}}`},
			{"list_tools", `{}`, "search_tools does that"},
		} {
			_, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: c.name, Arguments: json.RawMessage(c.arguments)})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || !strings.Contains(wire.Message, "unknown tool") ||
				!strings.Contains(wire.Message+string(wire.Data), c.want) {
				t.Errorf("%s %s: %v, expected %s", c.name, c.arguments, err, c.want)
			}
		}
		if e := fails(t, s, "describe_tool", `{"name":"shop.ad"}`, "not_found"); string(e.Next[0]) !=
			`{"tool":"describe_tool","arguments":{"name":"shop.add"}}` {
			t.Errorf("a misspelt name leads to %s", e.Next[0])
		}
		if r, text := call(t, s, "call_tool",
			`{"name":"shop.add","arguments":{"title":"tea"},"options":{"dry_run":true}}`); r.IsError ||
			!strings.Contains(text, `"dry_run":true`) || strings.Contains(f.shop.callLog(), "add") {
			t.Errorf("a dry run: %s, ran %s", text, f.shop.callLog())
		}
	})
}

// TestSessionDocs checks when documentation is added: tier 2 with the first mistake, tier 3 with the second, and
// again with the third that is the same; none with a success. Over the stateless wire, a client that names no session
// is not remembered.
func TestSessionDocs(t *testing.T) {
	forEachWire(t, mcp.Progressive, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		s := connect(client{})
		wrong := `{"name":"shop.add","arguments":{"tags":["a",3],"title":"tea"}}`
		remembered := !strings.HasSuffix(t.Name(), "http_2026-07-28")
		tiers := []int{2, 3, 3, 0}
		if !remembered {
			tiers = []int{2, 2, 2, 2}
		}
		for i, want := range tiers {
			e := fails(t, s, "call_tool", wrong, "invalid_args")
			got := 0
			if e.Docs != "" {
				got = f.rec.last().Tiers[0]
			}
			if got != want ||
				(i > 0 && remembered) != slices.Contains(e.Earlier, "/tags/1: expected string") {
				t.Errorf("failure %d: tier %d of %d, earlier %q", i+1, got, want, e.Earlier)
			}
		}
		elsewhere := `{"name":"shop.add","arguments":{"titel":"tea"},"options":{"browser":"b","target":"t"}}`
		if e := fails(t, s, "call_tool", elsewhere,
			"invalid_args"); string(e.Next[0]) != `{"tool":"call_tool","arguments":{"name":"shop.add","arguments":{"title":"tea"},"options":{"browser":"b","target":"t"}}}` {
			t.Errorf("the correction of a call with another target is %s", e.Next[0])
		}
		if r, _ := call(t, s, "call_tool", `{"name":"shop.echo"}`); strings.Contains(allText(r), "About this tool") {
			t.Errorf("the first use of a tool returns %s", allText(r))
		}
		if e := fails(t, s, "call_tool", `{"name":"shop.ech"}`, "not_found"); e.Docs != "" {
			t.Errorf("another failure has docs: %+v", e.Docs)
		}
	})
}

// TestStatelessSessions checks how the session of a client is identified with the stateless revision: by _meta, for
// each token apart, otherwise not at all.
func TestStatelessSessions(t *testing.T) {
	for _, c := range []struct {
		name   string
		tokens []string
		meta   [2]string
		same   bool
	}{
		{"by nothing", []string{"token-of-a-client"}, [2]string{"", ""}, false},
		{"by _meta", nil, [2]string{"one", "one"}, true},
		{"by two sessions", []string{"token-of-a-client"}, [2]string{"one", "two"}, false},
		{"not at all", nil, [2]string{"", ""}, false},
	} {
		f := newFixture(t, mcp.Minimal, trustNetwork)
		who := client{revision: "2026-07-28"}
		if c.tokens != nil {
			who.token = c.tokens[0]
		}
		s := who.http(t, f.listen(t, mcp.HTTPConfig{Tokens: c.tokens}))
		var tiers []string
		for _, session := range c.meta {
			params := &sdk.CallToolParams{Name: "shop__add", Arguments: json.RawMessage(`{}`)}
			if session != "" {
				params.Meta = sdk.Meta{mcp.SessionKey: session}
			}
			r, err := s.CallTool(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			var e failure
			_ = json.Unmarshal([]byte(firstText(r)), &e)
			if e.Docs != "" {
				tiers = append(tiers, fmt.Sprint(f.rec.last().Tiers[0]))
			}
		}
		want := "2 2"
		if c.same {
			want = "2 3"
		}
		if got := strings.Join(tiers, " "); got != want {
			t.Errorf("identified %s: tiers %s, expected %s", c.name, got, want)
		}
	}
}

// TestClientNames checks which caller a client is by its own name.
func TestClientNames(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork)
	url := f.listen(t, mcp.HTTPConfig{Tokens: []string{token}})
	for name, want := range map[string]string{
		"Claude": "mcp-http:Claude", "a b/c\x1b[2J\n": "mcp-http:a-b-c--2J", "cli": "mcp-http:cli",
		"plugin:x": "mcp-http:plugin-x",
		"":         "mcp-http:unknown", "--": "mcp-http:unknown", "ä": "mcp-http:unknown",
		strings.Repeat("x", 41): "mcp-http:" + strings.Repeat("x", 40),
	} {
		s, err := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, client{}.options()).Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1, HTTPClient: &http.Client{Transport: bearer{token}}},
			&sdk.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
		if err != nil {
			t.Fatal(err)
		}
		call(t, s, "shop__echo", `{}`)
		_ = s.Close()
		e := f.rec.last()
		if e.Caller != want {
			t.Errorf("%q is the caller %q, want %q", name, e.Caller, want)
		}
	}
	if mcp.NameHash("a", "bc") == mcp.NameHash("ab", "c") || mcp.NameHash("a", "") == mcp.NameHash("a") {
		t.Error("two lists of words have the same session name")
	}
}

// TestResults checks the forms of results: text, structured, binary, and truncated with the whole as a resource.
func TestResults(t *testing.T) {
	forEachWire(t, mcp.Full, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		s := connect(client{})
		if r, text := call(t, s, "shop__text", `{}`); text != "one\n\x1b[31mtwo\u202e" || r.StructuredContent != nil {
			t.Errorf("a text: %q %v", text, r.StructuredContent)
		}
		png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 60<<10)...)
		r, _ := call(t, s, "shop__picture", `{"bytes":61440}`)
		if image, ok := r.Content[0].(*sdk.ImageContent); !ok || string(image.Data) != string(png) ||
			image.MIMEType != "image/png" || !strings.Contains(allText(r), `{"width":3}`) {
			t.Errorf("a picture: %T %s", r.Content[0], allText(r))
		}
		r, _ = call(t, s, "shop__picture", `{"kind":"wav"}`)
		if audio, ok := r.Content[0].(*sdk.AudioContent); !ok || audio.MIMEType != "audio/wav" {
			t.Errorf("a sound: %+v", r.Content[0])
		}
		r, _ = call(t, s, "call_tool", `{"name":"shop.picture","arguments":{"kind":"other"}}`)
		if blob, ok := r.Content[0].(*sdk.EmbeddedResource); !ok || blob.Resource.MIMEType != "image/png" &&
			!strings.HasPrefix(string(blob.Resource.Blob), "\x00\x01\x02") {
			if image, ok := r.Content[0].(*sdk.ImageContent); !ok ||
				base64.StdEncoding.EncodeToString(image.Data)[:4] != "AAEC" {
				t.Errorf("other content: %+v", r.Content[0])
			}
		}

		r, text := call(t, s, "shop__large", `{"bytes":100000}`)
		var cut struct {
			Truncated  bool
			TotalBytes int    `json:"total_bytes"`
			ShownBytes int    `json:"shown_bytes"`
			Next       string `json:"next"`
		}
		if err := json.Unmarshal([]byte(text), &cut); err != nil || !cut.Truncated ||
			cut.ShownBytes > mcp.DefaultMaxBytes || cut.TotalBytes != 100011 || r.IsError {
			t.Fatalf("a large result: %.200s", text)
		}
		whole, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: cut.Next})
		if err != nil || len(whole.Contents[0].Text) != 100011 {
			t.Errorf("%s: %v", cut.Next, err)
		}
		if r, text := call(t, s, "call_tool",
			`{"name":"shop.large","arguments":{"bytes":100000},"options":{"max_bytes":200000}}`); r.IsError ||
			len(text) != 100011 {
			t.Errorf("with max_bytes: %d bytes", len(text))
		}
		if r, text := call(t, s, "call_tool",
			`{"name":"shop.large","arguments":{"bytes":100000},"options":{"max_bytes":0}}`); r.IsError || len(text) != 100011 {
			t.Errorf("without a limit: %d bytes", len(text))
		}
		missing := &sdk.ReadResourceParams{URI: "parley://result/c0000000000000000"}
		_, err = s.ReadResource(t.Context(), missing)
		if err == nil || !strings.Contains(err.Error(), "no result is stored") {
			t.Errorf("a result that is not stored: %v", err)
		}
	})
}

// TestContentBlocks checks how each kind of content block arrives over each wire, with and without data. Clients that
// get structured content may show nothing else, so it comes with blocks only where the tool declares an object.
func TestContentBlocks(t *testing.T) {
	t.Parallel()
	f,
		err := newFake(`{"manifest": 1, "name": "blocks", "version": "1.0.0", "kind": "parley/1", "docs": {"brief": "Blocks"},
		"tools": [{"name": "all", "docs": {"brief": "Return all"}, "effect": "read", "params": {"type": "object"}},
		  {"name": "declared", "docs": {"brief": "Return all"}, "effect": "read", "params": {"type": "object"},
		    "returns": {"type": "object"}},
		  {"name": "one", "docs": {"brief": "Return one"}, "effect": "read", "params": {"type": "object"}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	f.handlers["all"] = func(context.Context, *host.Request) (*job.Result, error) {
		return &job.Result{Data: json.RawMessage(`{"n":6}`), Content: []job.Content{
			{Type: job.ContentText, Text: "a\u202eb"},
			{Type: job.ContentImage, Data: "aW1n", MIME: "image/png"},
			{Type: job.ContentAudio, Data: "c25k", MIME: "audio/wav"},
			{Type: job.ContentResource, URI: "file:///a.txt", Text: "inside", MIME: "text/plain"},
			{Type: job.ContentResource, URI: "file:///b.bin", Data: "Ymlu"},
			{Type: job.ContentLink, URI: "https://example.com/", Text: "Example"},
		}}, nil
	}
	f.handlers["declared"] = f.handlers["all"]
	f.handlers["one"] = func(context.Context, *host.Request) (*job.Result, error) {
		alone := []job.Content{{Type: job.ContentText, Text: "alone"}}
		return &job.Result{Data: json.RawMessage("null"), Content: alone}, nil
	}
	want := []string{
		`{"type":"text","text":"{\"n\":6}"}`, "{\"type\":\"text\",\"text\":\"a\u202eb\"}",
		`{"type":"image","mimeType":"image/png","data":"aW1n"}`, `{"type":"audio","mimeType":"audio/wav","data":"c25k"}`,
		`{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"inside"}}`,
		`{"type":"resource","resource":{"uri":"file:///b.bin","blob":"Ymlu"}}`,
		`{"type":"resource_link","uri":"https://example.com/","name":"Example"}`,
	}
	for _, revision := range revisions {
		s, err := newServer(mcp.Full, hostcall.Config{Policy: trustNetwork}, nil, f)
		if err != nil {
			t.Fatal(err)
		}
		fixture := &fixture{Server: s}
		for wire, session := range map[string]*sdk.ClientSession{
			"stdio": fixture.stdio(t, client{revision: revision}),
			"http":  client{revision: revision}.http(t, fixture.listen(t, mcp.HTTPConfig{})),
		} {
			for name, structured := range map[string]string{"blocks__all": "null", "blocks__declared": `{"n":6}`} {
				r, _ := call(t, session, name, `{}`)
				for i, c := range r.Content {
					if raw, err := json.Marshal(c); err != nil || i >= len(want) || string(raw) != want[i] {
						t.Errorf("%s %s: block %d of %s is %s, %v", wire, revision, i, name, raw, err)
					}
				}
				if got, _ := json.Marshal(r.StructuredContent); len(r.Content) != len(want) || string(got) != structured {
					t.Errorf("%s %s: %d blocks of %s, structured %s", wire, revision, len(r.Content), name, got)
				}
			}
			if r, text := call(t, session, "blocks__one", `{}`); len(r.Content) != 1 || text != "alone" {
				t.Errorf("%s %s: %d blocks without data, %q", wire, revision, len(r.Content), text)
			}
		}
	}
}

// TestOutputSchema checks which kinds declare the schema of their results: clients refuse a result that does not match,
// and nobody checked those of foreign tools.
func TestOutputSchema(t *testing.T) {
	t.Parallel()
	const api = `"http": {"base": "https://api.example"}, "capabilities": {"http": [{"url": "https://api.example",
		"methods": ["GET"], "why": "to call the API"}]},`
	for kind, more := range map[string][2]string{"parley/1": {}, "extism": {},
		"http": {api, `, "http": {"method": "GET", "path": "/a"}`}} {
		f, err := newFake(`{"manifest": 1, "name": "shop", "version": "1.0.0", "kind": "` + kind + `",` + more[0] +
			`"docs": {"brief": "Keep a shop"}, "tools": [{"name": "list", "docs": {"brief": "List all"}, "effect": "read",
			"params": {"type": "object"}, "returns": {"type": "object"}` + more[1] + `}]}`)
		if err != nil {
			t.Fatal(kind, err)
		}
		s, err := newServer(mcp.Full, hostcall.Config{Policy: trustNetwork}, nil, f)
		if err != nil {
			t.Fatal(err)
		}
		listed, err := (&fixture{Server: s}).stdio(t, client{}).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(listed.Tools, func(tool *sdk.Tool) bool { return tool.Name == "shop__list" })
		if i < 0 || (listed.Tools[i].OutputSchema != nil) != (kind == "parley/1") {
			t.Errorf("%s: tool %d declares a schema, or does not", kind, i)
		}
	}
}

// TestPolicy checks that the policy sees a client on stdio as local and one over HTTP as remote.
func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions {
		f := newFixture(t, mcp.Minimal, defaultPolicy)
		near := f.stdio(t, client{revision: revision})
		call(t, near, "call_tool", `{"name":"shop.add","arguments":{"title":"tea"}}`)
		far := client{revision: revision}.http(t, f.listen(t, mcp.HTTPConfig{}))
		if e := fails(t, far, "call_tool", `{"name":"shop.add","arguments":{"title":"tea"}}`, "denied"); e.ExitCode != 82 ||
			e.Docs != "" {
			t.Errorf("denied with %+v", e)
		}
		call(t, far, "call_tool", `{"name":"shop.echo"}`)
		got := strings.ReplaceAll(f.shop.callLog(), "mcp-http:", "mcp:")
		if got != "mcp:Test-Client add; mcp:Test-Client echo" {
			t.Errorf("ran %s", got)
		}
	}
}

// TestConfirm checks that a person is asked before a destructive call, and that nothing runs without consent.
func TestConfirm(t *testing.T) {
	forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		const cancel = `{"name":"shop.order.cancel","arguments":{"id":7}}`
		var asked []string
		if r, text := call(t, connect(client{answer: "accept", asked: &asked}), "call_tool", cancel); r.IsError ||
			text != `{"id":7}` {
			t.Errorf("accepted: %s", text)
		}
		if len(asked) != 1 || !strings.Contains(asked[0],
			`:Test-Client wants to call shop.order.cancel {"id":7} (it is destructive)`) {
			t.Errorf("asked %q", asked)
		}
		if got := f.shop.callLog(); !strings.HasSuffix(got, ":Test-Client order.cancel") || strings.Contains(got, ";") {
			t.Errorf("ran %s", got)
		}
	})
	forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		const cancel = `{"name":"shop.order.cancel","arguments":{"id":7}}`
		if e := fails(t, connect(client{answer: "decline"}), "call_tool", cancel, "denied"); e.ExitCode != 82 ||
			!strings.Contains(e.Message, "was not confirmed") {
			t.Errorf("declined: %+v", e)
		}
		if f.shop.callLog() != "" {
			t.Errorf("ran %s", f.shop.callLog())
		}
	})
	forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		const cancel = `{"name":"shop.order.cancel","arguments":{"id":7}}`
		if e := fails(t, connect(client{}), "call_tool", cancel, "denied"); e.ExitCode != 82 ||
			!strings.Contains(e.Message, "this client cannot ask") {
			t.Errorf("a client that cannot ask: %+v", e)
		}
		if f.shop.callLog() != "" {
			t.Errorf("ran %s", f.shop.callLog())
		}
	})
}

// nestedOnly is a policy that requires confirmation of what the tool shop.order.nested calls.
func nestedOnly(a host.Ask) (host.Decision, error) {
	d, err := trustNetwork(a)
	d.Grant.Tools = []string{"shop.*"}
	if a.Tool == "order.nested" {
		d.Verdict = host.Allow
	}
	return d, err
}

// TestConfirmWithinACall checks a plugin's call of a destructive tool: a person is asked half-way, in each revision.
func TestConfirmWithinACall(t *testing.T) {
	for _, revision := range revisions {
		f := newFixture(t, mcp.Minimal, policy(nestedOnly))
		var asked []string
		s := f.stdio(t, client{revision: revision, answer: "accept", asked: &asked})
		r, text := call(t, s, "call_tool", `{"name":"shop.order.nested"}`)
		if r.IsError || len(asked) != 1 || !strings.HasPrefix(asked[0], "Within a call") {
			t.Errorf("%s: %s, asked %q", revision, text, asked)
		}
	}
}

// TestConfirmationHoldsOnce checks that a reply is valid once, for exactly the call of the question.
func TestConfirmationHoldsOnce(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork)
	toServer := client{revision: "2026-07-28", answer: "accept"}
	o := toServer.options()
	o.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
	s, err := sdk.NewClient(&sdk.Implementation{Name: "Test Client", Version: "1"}, o).
		Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: f.listen(t, mcp.HTTPConfig{}), MaxRetries: -1},
			&sdk.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	try := func(id int, state string, answered bool) (*sdk.CallToolResult, error) {
		p := &sdk.CallToolParams{Name: "shop__order__cancel", Arguments: json.RawMessage(fmt.Sprintf(`{"id":%d}`, id)),
			RequestState: state}
		if answered {
			p.InputResponses = sdk.InputResponseMap{"confirm": &sdk.ElicitResult{Action: "accept"}}
		}
		return s.CallTool(t.Context(), p)
	}
	asked, err := try(1, "", false)
	if err != nil || !asked.NeedsInput() || asked.RequestState == "" || f.shop.callLog() != "" {
		t.Fatalf("the question is %+v, ran %s", asked, f.shop.callLog())
	}
	refused := func(name string, id int, state string) {
		t.Helper()
		if r, err := try(id, state, true); err == nil || !strings.Contains(err.Error(), "belongs to another call") {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
	refused("another call", 2, asked.RequestState)
	refused("no ticket", 1, "")
	refused("a forged ticket", 1, "bm9uY2UuOTk5OTk5OTk5OTkuMDA")
	if f.shop.callLog() != "" {
		t.Errorf("ran %s", f.shop.callLog())
	}
	if r, err := try(1, asked.RequestState, true); err != nil || r.IsError ||
		f.shop.callLog() != "mcp-http:Test-Client order.cancel" {
		t.Errorf("the reply: %+v %v", r, err)
	}
	refused("the reply again", 1, asked.RequestState)
}

// TestCancellation checks that a call ends when its client cancels it.
func TestCancellation(t *testing.T) {
	forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		started := make(chan struct{}, 1)
		s := connect(client{progress: func(*sdk.ProgressNotificationParams) { started <- struct{}{} }})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-started
			cancel()
		}()
		p := &sdk.CallToolParams{Name: "shop__order__slow"}
		p.SetProgressToken("p1")
		if _, err := s.CallTool(ctx, p); err == nil {
			t.Error("a cancelled call returned a result")
		}
		select {
		case <-f.shop.ended:
		case <-time.After(10 * time.Second):
			t.Error("the tool was not interrupted")
		}
	})
}

// TestProgress checks that a client that requests progress receives it, that it only increases and has no control
// characters.
func TestProgress(t *testing.T) {
	forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		seen := make(chan string, 10)
		s := connect(client{progress: func(p *sdk.ProgressNotificationParams) {
			seen <- fmt.Sprintf("%v %g/%g %s", p.ProgressToken, p.Progress, p.Total, p.Message)
		}})
		p := &sdk.CallToolParams{Name: "shop__order__steps"}
		p.SetProgressToken("mine")
		if _, err := s.CallTool(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`mine 1/3 one\u001b[2J`, "mine 3/3 done"} {
			select {
			case got := <-seen:
				if got != want {
					t.Errorf("progress %q, expected %q", got, want)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("no progress %q", want)
			}
		}
		call(t, s, "shop__order__steps", `{}`) // without a request for progress
		if len(seen) > 0 {
			t.Errorf("progress without a request: %s", <-seen)
		}
	})
}

// TestDocuments reads resources: plugins, groups, tools, and URIs that do not exist.
func TestDocuments(t *testing.T) {
	forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		s := connect(client{})
		list, err := s.ListResources(t.Context(), nil)
		if err != nil || len(list.Resources) != 1 || list.Resources[0].URI != "parley://docs/shop" {
			t.Errorf("resources: %+v %v", list, err)
		}
		templates, err := s.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 2 {
			t.Errorf("templates: %+v %v", templates, err)
		}
		for uri, want := range map[string]string{
			"parley://docs/shop":                      `"groups":[{"name":"order"`,
			"parley://docs/shop/order":                `"name":"shop.order.cancel"`,
			"parley://docs/shop/add":                  `"tier":2`,
			"parley://docs/shop/order.cancel?tier=1":  `"tier":1`,
			"parley://docs/shop/order__cancel?tier=3": `"params_schema"`,
		} {
			r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			if err != nil || !strings.Contains(r.Contents[0].Text, want) || r.Contents[0].URI != uri {
				t.Errorf("%s: %+v %v", uri, r, err)
			}
		}
		for uri, want := range map[string]string{
			"parley://docs/shop/ad": "no tool", "parley://docs/": "not found", "parley://docs/none/x": "no plugin",
			"parley://docs/shop/add?tier=9": "tier", "parley://docs/shop/add?tier=x": "tier",
			"parley://other/x": "not found", "file:///etc/passwd": "not found", "parley://result/../../x": "not found",
			"parley://result/x": "no result",
		} {
			if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, expected %q", uri, err, want)
			}
		}
	})
}

// TestResultTypes checks that each result of 2026-07-28 says whether it is complete, also of calls that were routed
// to call_tool.
func TestResultTypes(t *testing.T) {
	const about = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}`
	requests := [][2]string{
		{`"method":"server/discover","params":{`, "complete"},
		{`"method":"tools/list","params":{`, "complete"},
		{`"method":"tools/call","params":{"name":"search_tools","arguments":{"query":"tea"},`, "complete"},
		{`"method":"tools/call","params":{"name":"shop__echo",`, "complete"},
		{`"method":"tools/call","params":{"name":"shop__order__cancel","arguments":{"id":1},`, "input_required"},
		{`"method":"tools/call","params":{"name":"call_tool","arguments":{"name":"shop.order.cancel","arguments":{"id":1}},`,
			"input_required"},
		{`"method":"resources/read","params":{"uri":"parley://docs/shop/add",`, "complete"},
		{`"method":"resources/list","params":{`, "complete"},
		{`"method":"prompts/get","params":{"name":"learn_shop",`, "complete"},
	}
	var in, out bytes.Buffer
	for i, r := range requests {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,%s%s}}`+"\n", i, r[0], about)
	}
	if err := newFixture(t, mcp.Minimal, defaultPolicy).Stdio(t.Context(), &in, &out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var answer struct {
			ID     int
			Result struct{ ResultType string }
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatal(err)
		}
		if want := requests[answer.ID][1]; answer.Result.ResultType != want {
			t.Errorf("the response to %s is %s, expected a result of type %s", requests[answer.ID][0], line, want)
		}
	}
	if got := strings.Count(out.String(), "\n"); got != len(requests) {
		t.Errorf("%d answers", got)
	}
}

// TestPromptsAndCompletion checks the prompts made of tutorials, and the completion of names and values.
func TestPromptsAndCompletion(t *testing.T) {
	forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		s := connect(client{})
		list, err := s.ListPrompts(t.Context(), nil)
		if err != nil || len(list.Prompts) != 2 || list.Prompts[0].Name != "learn_shop" {
			t.Fatalf("prompts: %+v %v", list, err)
		}
		text := func(name string, arguments map[string]string) string {
			r, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: arguments})
			if err != nil {
				return err.Error()
			}
			return r.Messages[0].Content.(*sdk.TextContent).Text
		}
		if got := text("learn_shop", nil); !strings.Contains(got,
			`call_tool {"name":"shop.add","arguments":{"count":2,"title":"tea"}}`) ||
			!strings.Contains(got, "It fails with exit code 10") {
			t.Errorf("the tutorial is\n%s", got)
		}
		given := map[string]string{"tool": "shop.add", "parameter": "size", "value": "small"}
		if got := text("use_tool", given); !strings.Contains(got, "shop.add with size = small") ||
			!strings.Contains(got, "title: string") {
			t.Errorf("use_tool returns\n%s", got)
		}
		if got := text("use_tool", map[string]string{"tool": "shop.ad"}); !strings.Contains(got, "no tool or group ad") {
			t.Errorf("use_tool of an unknown tool returns %s", got)
		}
		for _, c := range []struct {
			ref   *sdk.CompleteReference
			name  string
			typed string
			known map[string]string
			want  string
		}{
			{&sdk.CompleteReference{Type: "ref/resource", URI: "parley://docs/{plugin}/{tool}{?tier}"}, "plugin", "s", nil,
				"shop"},
			{&sdk.CompleteReference{Type: "ref/resource", URI: "parley://docs/{plugin}/{tool}{?tier}"}, "tool", "order.c",
				map[string]string{"plugin": "shop"}, "order.cancel"},
			{&sdk.CompleteReference{Type: "ref/resource", URI: "parley://docs/{plugin}/{tool}{?tier}"}, "tier", "", nil,
				"1 2 3"},
			{&sdk.CompleteReference{Type: "ref/prompt", Name: "use_tool"}, "tool", "cancel", nil, "shop.order.cancel"},
			{&sdk.CompleteReference{Type: "ref/prompt", Name: "use_tool"}, "parameter", "",
				map[string]string{"tool": "shop.add"}, "count size tags title"},
			{&sdk.CompleteReference{Type: "ref/prompt", Name: "use_tool"}, "value", "", map[string]string{"tool": "shop.add",
				"parameter": "size"}, "small medium large"},
			{&sdk.CompleteReference{Type: "ref/prompt", Name: "use_tool"}, "value", "",
				map[string]string{"tool": "shop.none", "parameter": "size"}, ""},
		} {
			p := &sdk.CompleteParams{Ref: c.ref, Argument: sdk.CompleteParamsArgument{Name: c.name, Value: c.typed}}
			if c.known != nil {
				p.Context = &sdk.CompleteContext{Arguments: c.known}
			}
			r, err := s.Complete(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.Completion.Values, " "); got != c.want {
				t.Errorf("%s %q completes to %q, expected %q", c.name, c.typed, got, c.want)
			}
		}
	})
}

// TestLongNames checks that listed names fit the limits of model APIs, and that calls by them find their tools.
func TestLongNames(t *testing.T) {
	long := "a" + strings.Repeat("b", 70)
	f,
		err := newFake(`{"manifest":1,"name":"wide","version":"1.0.0","kind":"parley/1","docs":{"brief":"Long names"},"tools":[{"name":"` + long + `","docs":{"brief":"Do it"},"effect":"read","params":{"type":"object"}}]}`)
	if err != nil {
		t.Skip(err) // manifests may be limited to shorter names
	}
	name := envelope.ListedName("wide." + long)
	for _, mode := range []string{mcp.Minimal, mcp.Full} {
		s, err := newServer(mode, hostcall.Config{}, nil, f)
		if err != nil {
			t.Fatal(err)
		}
		session := (&fixture{Server: s}).stdio(t, client{})
		if r, text := call(t, session, name, `{"x":1}`); len(name) != 51 || r.IsError || text != `{"x":1}` {
			t.Errorf("%s: %s returns %s", mode, name, text)
		}
	}
}

// TestClientResults checks that a client in this process receives the same bytes as one over the wire, in each mode,
// and protocol errors as errors.
func TestClientResults(t *testing.T) {
	f := newFixture(t, mcp.Minimal, defaultPolicy, "shop.add")
	for _, mode := range mcp.Modes() {
		c, err := f.Dial(t.Context(), mode)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Request(t.Context(), "tools/list", struct{}{})
		if want := stdioResult(t, newFixture(t, mode, defaultPolicy, "shop.add").Server, "tools/list"); err != nil ||
			string(got) != want {
			t.Errorf("%s: %v\n%s\nthe wire has\n%s", mode, err, got, want)
		}
		if _, err := c.Request(t.Context(), "tools/fly", struct{}{}); err == nil {
			t.Errorf("%s: an unknown method returned a result", mode)
		}
		if got, err = c.Request(t.Context(), "tools/call", map[string]any{"name": "describe_tool",
			"arguments": map[string]any{"name": "shop.add", "again": true}}); err != nil ||
			!strings.Contains(string(got), "shop.add") {
			t.Errorf("%s: %v, %s", mode, err, got)
		}
		c.Close()
	}
	if _, err := f.Dial(t.Context(), "tiny"); host.AsError(err).Code != host.InvalidArgs {
		t.Error(err)
	}
}

// TestSteps renders steps as calls of the server's own tools. Steps that only an operator can take are omitted.
func TestSteps(t *testing.T) {
	s, err := newServer(mcp.Minimal, hostcall.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tea := step.Call("shop.add", json.RawMessage(`{"title": "tea"}`))
	slow := tea
	slow.Options.Timeout = time.Minute
	unfinished := step.Step{Op: step.OpCall, Tool: "shop.add", Choose: []string{"title"}}
	for _, c := range []struct {
		step step.Step
		want string
	}{
		{tea, `{"tool":"call_tool","arguments":{"name":"shop.add","arguments":{"title":"tea"}}}`},
		{tea.At(step.Place{Browser: "b", Target: "a b"}), `{"tool":"call_tool","arguments":{"name":"shop.add",` +
			`"arguments":{"title":"tea"},"options":{"browser":"b","target":"a b"}}}`},
		{slow,
			`{"tool":"call_tool","arguments":{"name":"shop.add","arguments":{"title":"tea"},"options":{"timeout":"1m0s"}}}`},
		{unfinished, `{"tool":"describe_tool","arguments":{"name":"shop.add"}}`},
		{step.Describe("shop.add", 3), `{"tool":"describe_tool","arguments":{"name":"shop.add","tier":3}}`},
		{step.Search("sell tea"), `{"tool":"search_tools","arguments":{"query":"sell tea"}}`},
		{step.List("shop.order"), `{"tool":"describe_tool","arguments":{"name":"shop.order"}}`},
		{step.List(""), ""},
		{step.Step{Op: step.OpListen, Tool: "shop", Query: "order.*"},
			`{"tool":"call_tool","arguments":{"name":"shop.events","arguments":{"match":["order.*"]}}}`},
		{step.Operator(step.OpPolicyGrant, "shop", "clock"), ""},
		{step.Operator(step.OpDoctor), ""},
	} {
		if got, err := s.Next(c.step); err != nil || got != c.want {
			t.Errorf("%s\n got %s, %v\nwant %s", c.step, got, err, c.want)
		}
	}
	if s, err = newServer(mcp.Progressive, hostcall.Config{}, nil); err != nil {
		t.Fatal(err)
	}
	planned := step.Plan("shop.add", nil).At(step.Place{Target: "T"})
	want := `{"tool":"plan_call","arguments":{"name":"shop.add","options":{"target":"T"}}}`
	if got, err := s.Next(planned); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}
