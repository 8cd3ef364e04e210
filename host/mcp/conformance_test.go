//lint:file-ignore SA1019 the suite requires what revisions before 2026-07-28 have: sampling, roots and logging

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/foreign"
	"github.com/parley-tools/parley/manifest"
)

// TestConformance runs the conformance suite of MCP against the server over HTTP: each scenario that a revision
// requires of servers. The suite calls the tools of a guest, testdata/wasm/conformance.c, through the host. What
// plugins cannot have (sampling, roots, forms, more resources and prompts) extend adds to the SDK's server.
func TestConformance(t *testing.T) {
	t.Parallel()
	modules, node := foreign.NodeForTest(t, "../..")
	f := newFixture(t, mcp.Full, trustNetwork)
	s, err := newServer(mcp.Full, hostcall.Config{Policy: trustNetwork, Sessions: &session.Store{Dir: t.TempDir()},
		Approver: f.approver}, nil, f.shop, conformanceGuest(t))
	if err != nil {
		t.Fatal(err)
	}
	f.Server = s
	extend(t, s)
	url := f.listen(t, mcp.HTTPConfig{})
	suite := func(t *testing.T, args ...string) map[string][]check {
		t.Helper()
		results := t.TempDir()
		args = append([]string{filepath.Join(modules, "@modelcontextprotocol/conformance/dist/index.js"), "server",
			"--url", url, "--output-dir", results}, args...)
		out, err := exec.CommandContext(t.Context(), node, args...).CombinedOutput()
		if ended := (&exec.ExitError{}); err != nil && !errors.As(err, &ended) {
			t.Fatalf("%v\n%s", err, out)
		}
		return readChecks(t, results)
	}
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			checks := suite(t, "--requirements", revision)
			for _, scenario := range required(t, modules, revision) {
				faults := faultsOf(checks[scenario])
				// The suite waits half a second for some responses, which a busy machine may miss. A real fault occurs again.
				for again := 0; len(faults) > 0 && again < 2; again++ {
					t.Logf("%s, again: %q", scenario, faults)
					faults = faultsOf(suite(t, "--scenario", scenario, "--spec-version", revision)[scenario])
				}
				if len(faults) > 0 {
					t.Errorf("%s: %q", scenario, faults)
				}
			}
		})
	}
}

// faultsOf returns the failed checks of a scenario.
func faultsOf(checks []check) (faults []string) {
	passed := 0
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "FAILURE", "WARNING":
			faults = append(faults, c.ID+": "+c.ErrorMessage)
		}
	}
	if passed == 0 {
		faults = append(faults, "nothing passed")
	}
	return faults
}

// required returns the scenarios for servers that a revision requires.
func required(t *testing.T, modules, revision string) (scenarios []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(modules, "@modelcontextprotocol/conformance/requirements", revision+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\nserver:\n")
	list, _, _ = strings.Cut(list, "\nclient:\n")
	for line := range strings.Lines(list) {
		if name, ok := strings.CutPrefix(line, "  - "); ok {
			scenarios = append(scenarios, strings.TrimSpace(name))
		}
	}
	if len(scenarios) < 30 {
		t.Fatalf("%s requires %q; expected at least 30 scenarios", revision, scenarios)
	}
	return scenarios
}

// check is one finding of a scenario.
type check struct{ ID, Status, ErrorMessage string }

var resultDir = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT`)

// readChecks reads the findings of the suite, by scenario.
func readChecks(t *testing.T, results string) map[string][]check {
	t.Helper()
	dirs, err := os.ReadDir(results)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]check{}
	for _, d := range dirs {
		m := resultDir.FindStringSubmatch(d.Name())
		if m == nil {
			t.Fatalf("the suite wrote %s; expected server-SCENARIO-TIME", d.Name())
		}
		raw, err := os.ReadFile(filepath.Join(results, d.Name(), "checks.json"))
		var checks []check
		if err != nil || json.Unmarshal(raw, &checks) != nil {
			t.Fatalf("%s: %v %s", d.Name(), err, raw)
		}
		all[m[1]] = append(all[m[1]], checks...)
	}
	return all
}

// conformanceGuest is the plugin whose tools the suite calls.
func conformanceGuest(t *testing.T) host.Provider {
	t.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("../../testdata/wasm", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	code := read("conformance.wasm")
	m, err := manifest.Parse(read("conformance.manifest.json"), "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	engine := wasm.New(wasm.Config{HostVersion: "0.1.0"})
	t.Cleanup(func() { _ = engine.Close(context.Background()) })
	return engine.Provider(store.Source{
		Info: host.Info{Name: m.Name, Version: m.Version, Kind: m.Kind, Brief: m.Docs.Brief, Tools: len(m.Tools),
			Digest: "sha256:" + m.Name},
		Manifest: func() (*manifest.Manifest, error) { return m, nil },
		Wasm:     func() ([]byte, error) { return code, nil },
		Segment:  func() ([]byte, error) { return segment.Of(m), nil },
	})
}

const (
	anything = `{"type":"object"}`
	askName  = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	onePixel = "\x89PNG\r\n\x1a\n"

	// askDefaults and askChoices are forms with every kind of default and choice.
	askDefaults = `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},
	  "score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},
	  "verified":{"type":"boolean","default":true}}}`
	askChoices = `{"type":"object","properties":{
	  "untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
	  "titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"}]},
	  "legacyEnum":{"type":"string","enum":["opt1","opt2"],"enumNames":["One","Two"]},
	  "untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
	  "titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"}]}}}}`
)

// extend adds what the suite requires and plugins cannot have.
func extend(t *testing.T, s *mcp.Server) {
	t.Helper()
	e, err := s.Extend(mcp.Full)
	if err != nil {
		t.Fatal(err)
	}
	addResources(e)
	addPrompts(e.Server())
	for name, run := range conformanceTools {
		e.AddTool(&sdk.Tool{Name: name, Description: "A tool of the conformance suite",
			InputSchema: json.RawMessage(anything)}, run)
	}
	// The suite expects a notification after each of these calls.
	trigger := func(name string, change func()) {
		e.AddTool(&sdk.Tool{Name: name, Description: "Change a list", InputSchema: json.RawMessage(anything)},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				change()
				return said("changed")
			})
	}
	trigger("test_trigger_tool_change", func() {
		added := &sdk.Tool{Name: "test_added", Description: "Added later", InputSchema: json.RawMessage(anything)}
		e.Server().AddTool(added, conformanceTools["test_sampling"])
	})
	trigger("test_trigger_prompt_change", func() {
		e.Server().AddPrompt(&sdk.Prompt{Name: "test_added", Description: "Added later"}, nil)
	})
	// The suite knows the guest's tools by their bare names.
	e.Server().AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if call, ok := r.(*sdk.CallToolRequest); ok && strings.HasPrefix(call.Params.Name, "test_") &&
				!strings.HasPrefix(call.Params.Name, "test_trigger_") && conformanceTools[call.Params.Name] == nil {
				call.Params.Name = "conformance." + call.Params.Name
			}
			return next(ctx, method, r)
		}
	})
}

func said(format string, words ...any) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, words...)}}}, nil
}

func form(schema string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Mode: "form", Message: "Please answer", RequestedSchema: json.RawMessage(schema)}
}

func sample(prompt string) *sdk.CreateMessageParams {
	return &sdk.CreateMessageParams{MaxTokens: 100, Messages: []*sdk.SamplingMessage{{Role: "user",
		Content: &sdk.TextContent{Text: prompt}}}}
}

// asks returns a tool that asks while it runs, as in revisions before 2026-07-28.
func asks(schema string) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, err := r.Session.Elicit(ctx, form(schema))
		if err != nil {
			return nil, err
		}
		return said("%s %v", answer.Action, answer.Content)
	}
}

// returns returns a tool that returns its questions, and its result once each is answered.
func returns(state string, questions sdk.InputRequestMap) sdk.ToolHandler {
	return func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for key := range questions {
			if _, ok := r.Params.InputResponses[key]; !ok {
				return &sdk.CallToolResult{InputRequests: questions, RequestState: state}, nil
			}
		}
		return said("thank you")
	}
}

var conformanceTools = map[string]sdk.ToolHandler{
	"test_elicitation_sep1034_defaults": asks(askDefaults),
	"test_elicitation_sep1330_enums":    asks(askChoices),
	"test_sampling": func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, err := r.Session.CreateMessage(ctx, sample("Say something"))
		if err != nil {
			return nil, err
		}
		return said("%s answered", answer.Model)
	},
	"test_missing_capability": func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if c := r.ClientCapabilities(); c != nil && c.Sampling != nil {
			return said("it can sample")
		}
		return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "the client cannot sample",
			Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}
	},
	"test_input_required_result_elicitation": returns("", sdk.InputRequestMap{"user_name": form(askName)}),
	"test_input_required_result_sampling": returns("",
		sdk.InputRequestMap{"capital_question": sample("What is the capital of France?")}),
	"test_input_required_result_list_roots": returns("", sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}}),
	"test_input_required_result_multiple_inputs": returns("all", sdk.InputRequestMap{
		"user_name": form(askName), "greeting": sample("Greet"), "client_roots": &sdk.ListRootsParams{},
	}),
	"test_input_required_result_multi_round": func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult,
		error) {
		if r.Params.RequestState == "" {
			return returns("round 1", sdk.InputRequestMap{"step1": form(askName)})(ctx, r)
		}
		return returns("round 2", sdk.InputRequestMap{"step2": form(askName)})(ctx, r)
	},
	"test_input_required_result_capabilities": func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult,
		error) {
		questions := sdk.InputRequestMap{}
		if c := r.ClientCapabilities(); c != nil && c.Sampling != nil {
			questions["greeting"] = sample("Greet")
		} else if c != nil && c.Elicitation != nil {
			questions["user_name"] = form(askName)
		}
		return returns("", questions)(ctx, r)
	},
}

func addResources(e *mcp.Extension) {
	read := func(content sdk.ResourceContents) sdk.ResourceHandler {
		return func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			content := content
			content.URI = r.Params.URI
			if content.Blob == nil {
				content.Text = "What stands at " + r.Params.URI
			}
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&content}}, nil
		}
	}
	plain := read(sdk.ResourceContents{MIMEType: "text/plain"})
	for _, name := range []string{"static-text", "watched-resource"} {
		e.AddResource(&sdk.Resource{URI: "test://" + name, Name: name, MIMEType: "text/plain"}, plain)
	}
	e.AddResource(&sdk.Resource{URI: "test://static-binary", Name: "static-binary", MIMEType: "image/png"},
		read(sdk.ResourceContents{MIMEType: "image/png", Blob: []byte(onePixel)}))
	e.Server().AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template"},
		plain)
}

func addPrompts(s *sdk.Server) {
	answer := func(contents ...sdk.Content) *sdk.GetPromptResult {
		result := &sdk.GetPromptResult{}
		for _, c := range contents {
			result.Messages = append(result.Messages, &sdk.PromptMessage{Role: "user", Content: c})
		}
		return result
	}
	add := func(name string, run func(map[string]string) *sdk.GetPromptResult, arguments ...string) {
		p := &sdk.Prompt{Name: name, Description: "A prompt of the conformance suite"}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: a, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return run(r.Params.Arguments), nil
		})
	}
	add("test_simple_prompt", func(map[string]string) *sdk.GetPromptResult {
		return answer(&sdk.TextContent{Text: "A simple prompt"})
	})
	add("test_prompt_with_arguments", func(given map[string]string) *sdk.GetPromptResult {
		return answer(&sdk.TextContent{Text: given["arg1"] + " and " + given["arg2"]})
	}, "arg1", "arg2")
	add("test_prompt_with_embedded_resource", func(given map[string]string) *sdk.GetPromptResult {
		return answer(&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: given["resourceUri"],
			MIMEType: "text/plain", Text: "A text"}})
	}, "resourceUri")
	add("test_prompt_with_image", func(map[string]string) *sdk.GetPromptResult {
		return answer(&sdk.ImageContent{Data: []byte(onePixel), MIMEType: "image/png"})
	})
	s.AddPrompt(&sdk.Prompt{Name: "test_input_required_result_prompt", Description: "A prompt that asks"},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			if _, ok := r.Params.InputResponses["user_context"]; !ok {
				return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": form(askName)}}, nil
			}
			return answer(&sdk.TextContent{Text: "A prompt in its context"}), nil
		})
}
