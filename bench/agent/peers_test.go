package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/internal/testhome"
)

// unlike are tools of other servers that no call of ours equals: they do something else, or need what their required
// parameters do not tell.
var unlike = strings.Fields(`browser_annotate browser_cookie_delete browser_file_upload browser_find browser_drop
	browser_generate_locator browser_get_config browser_highlight browser_localstorage_clear
	browser_localstorage_delete browser_sessionstorage_clear browser_sessionstorage_delete browser_mouse_down browser_mouse_drag_xy
	browser_mouse_up browser_network_request browser_hide_highlight browser_resume browser_run_code_unsafe
	browser_set_storage_state browser_start_recording browser_start_tracing browser_start_video browser_stop_recording
	browser_stop_tracing browser_storage_state browser_verify_list_visible browser_video_chapter
	browser_video_hide_actions browser_video_show_actions
	close_page evaluate_script get_console_message get_css_styles get_network_request lighthouse_audit navigate_page
	performance_analyze_insight performance_start_trace performance_stop_trace reload_extension screencast_start select_page
	take_heapsnapshot trigger_extension_action`)

// alone are tools to which none of ours is near.
var alone = strings.Fields(`browser_get_config browser_hide_highlight browser_resume browser_start_recording
	browser_stop_recording browser_video_chapter browser_video_hide_actions browser_video_show_actions`)

// TestToolsOfPeers calls every tool of other servers, as their newest locked versions list them, with each of their
// parameters. The answer offers a call of ours that a dry run accepts, or names the nearest tool. A version that adds a
// tool, or a parameter that every call has, is found here.
func TestToolsOfPeers(t *testing.T) {
	c := learnedClient{dryClient{&client{binary: binary(t), home: testhome.New(t)}}}
	if _, err := c.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.close() })
	isOffered := func(name string, params map[string]any) (offered, led bool) {
		given, _ := json.Marshal(map[string]any{"name": name, "arguments": params})
		a, err := c.send(t.Context(), given)
		if err != nil && !a.failed {
			t.Fatalf("%s: %v", given, err)
		}
		for _, step := range a.next {
			led = led || !strings.Contains(step, `"search_tools"`)
			if call, ok := c.offered(t.Context(), step); ok {
				done, err := c.send(t.Context(), call)
				if err != nil || done.failed && done.err.Code != "denied" { // no policy allows files here
					t.Errorf("%s: the call that it offers fails: %s: %v, %s", given, call, err, done.text)
				}
				return true, true
			}
		}
		return !a.failed, led
	}
	with, all := 0, 0
	for _, tool := range toolsOfPeers(t) {
		schema := readShape(t, tool.InputSchema)
		params := map[string]any{}
		for _, name := range schema.Required {
			params[name] = schema.Properties[name].sample(name)
		}
		offered, led := isOffered(tool.Name, params)
		if isUnlike := slices.Contains(unlike, tool.Name); offered == isUnlike {
			t.Errorf("%s %v: a call is offered: %v, and it is listed as unlike ours: %v", tool.Name, params, offered, isUnlike)
		}
		if !led && !slices.Contains(alone, tool.Name) {
			t.Errorf("%s: the answer leads to no tool", tool.Name)
		}
		for name, p := range schema.Properties {
			if _, isRequired := params[name]; isRequired || !offered {
				continue
			}
			more := map[string]any{name: p.sample(name)}
			for name, value := range params {
				more[name] = value
			}
			all++
			if offered, _ := isOffered(tool.Name, more); offered {
				with++
			} else {
				t.Logf("no call for %s %v", tool.Name, more)
			}
		}
	}
	if t.Logf("%d of %d optional parameters are understood", with, all); with*100 < all*60 {
		t.Errorf("%d of %d optional parameters are understood", with, all)
	}
}

// toolsOfPeers lists the tools of the servers in testdata/programs that drive a browser.
func toolsOfPeers(t *testing.T) (all []*mcp.Tool) {
	t.Helper()
	for _, args := range [][]string{
		{"@playwright/mcp/cli.js", "--caps=vision,pdf,testing,tracing,storage,network,devtools,config"},
		{"chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", "--usage-statistics=false", "--category-extensions"},
	} {
		args[0] = filepath.Join("..", "..", "testdata", "programs", "node_modules", args[0])
		if _, err := os.Stat(args[0]); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
			Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command("node", args...)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for tool, err := range session.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, tool)
		}
		_ = session.Close()
	}
	return all
}

// shapeOf is what a sample of a parameter is made from.
type shapeOf struct {
	Type       any
	Enum       []any
	AnyOf      []*shapeOf
	Minimum    float64
	Items      *shapeOf
	Properties map[string]*shapeOf
	Required   []string
}

func readShape(t *testing.T, schema any) (p shapeOf) {
	t.Helper()
	raw, err := json.Marshal(schema)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sample returns a value of a parameter, as its name suggests.
func (p *shapeOf) sample(name string) any {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(strings.ToLower(name), part) })
	}
	switch {
	case p == nil:
		return "word"
	case len(p.AnyOf) > 0:
		return p.AnyOf[0].sample(name)
	case len(p.Enum) > 0:
		return p.Enum[0]
	case p.Type == "boolean":
		return true
	case p.Type == "integer", p.Type == "number":
		return max(p.Minimum, 1)
	case p.Type == "array":
		return []any{p.Items.sample(name)}
	case p.Type == "object":
		all := map[string]any{}
		for member, of := range p.Properties {
			if len(p.Required) == 0 || slices.Contains(p.Required, member) {
				all[member] = of.sample(member)
			}
		}
		return all
	case has("url"):
		return "https://a.test/"
	case has("uid", "ref", "target"):
		return "kqz4"
	case has("file", "path"):
		return "/tmp/a.png"
	case has("function", "expression"):
		return "() => 1"
	case has("key"):
		return "Enter"
	case has("geo"):
		return "52.5,13.4"
	case has("viewport"):
		return "800x600"
	case has("header"):
		return `{"Accept-Language":"de"}`
	}
	return "word"
}
