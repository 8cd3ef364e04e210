package mcp_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host/mcp"
)

// TestEnvelope makes mistakes in the arguments of call_tool. The first step is the complete corrected call, which keeps
// all given values and succeeds.
func TestEnvelope(t *testing.T) {
	forEachWire(t, mcp.Minimal, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		s := connect(client{})
		const tea = `{"tool":"call_tool","arguments":{"arguments":{"title":"oolong"},"name":"shop.add"}}`
		const tea2 = `{"tool":"call_tool","arguments":{"name":"shop.add","arguments":{"title":"oolong"}}}`
		for _, c := range []struct{ name, arguments, next string }{
			{"params", `{"name":"shop.add","params":{"title":"oolong"}}`, tea},
			{"input", `{"name":"shop.add","input":{"title":"oolong"}}`, tea},
			{"args", `{"name":"shop.add","args":{"title":"oolong"}}`, tea},
			{"args as text", `{"name":"shop.add","args":"{\"title\":\"oolong\"}"}`, tea},
			{"flat", `{"name":"shop.add","title":"oolong"}`, tea},
			{"partly flat", `{"name":"shop.add","arguments":{"title":"oolong"},"size":"small"}`,
				`{"tool":"call_tool","arguments":{"arguments":{"size":"small","title":"oolong"},"name":"shop.add"}}`},
			{"flat, with an option", `{"name":"shop.add","title":"oolong","timeout":5000,"target":"x"}`,
				`{"tool":"call_tool","arguments":{"arguments":{"title":"oolong"},"name":"shop.add","options":{"target":"x","timeout":"5000ms"}}}`},
			{"tool", `{"tool":"shop.add","arguments":{"title":"oolong"}}`, tea},
			{"tool and params, misspelt", `{"tool":"shop__add","params":{"titel":"oolong"}}`, tea},
			{"inside a member", `{"call":{"name":"shop.add","arguments":{"title":"oolong"}}}`, tea},
			{"a request", `{"method":"tools/call","params":{"name":"shop.add","arguments":{"title":"oolong"}}}`, tea},
			{"a message",
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shop.add","arguments":{"title":"oolong"}}}`, tea},
			{"the method as the name", `{"name":"tools/call","arguments":{"name":"shop.add","arguments":{"title":"oolong"}}}`,
				tea},
			{"a function", `{"type":"function","function":{"name":"shop.add","arguments":"{\"title\":\"oolong\"}"}}`, tea},
			{"a use of a tool", `{"type":"tool_use","id":"1","name":"shop.add","input":{"title":"oolong"}}`, tea},
			{"a list of calls", `{"tool_calls":[{"name":"shop.add","arguments":{"title":"oolong"}}]}`, tea},
			{"with the server", `{"server":"parley","tool":"shop.add","arguments":{"title":"oolong"}}`, tea},
			{"by way of the plugin", `{"name":"shop.send","arguments":{"method":"add","params":{"title":"oolong"}}}`, tea},
			{"by way of an unknown tool", `{"name":"execute_cmd","arguments":{"cmd":"add","cmd_args":{"title":"oolong"}}}`, tea},
			{"its own name inside", `{"name":"shop.add","arguments":{"method":"add","params":{"title":"oolong"}}}`, tea2},
			{"a list for words", `{"name":"shop.add","arguments":{"args":["oolong"]}}`, tea2},
			{"a name of a parameter", `{"name":"shop.add","input":{"title":"oolong"}}`, tea},
			{"beside arguments", `{"name":"shop.add","arguments":{"title":"oolong"},"args":{"size":"small"}}`,
				`{"tool":"call_tool","arguments":{"arguments":{"size":"small","title":"oolong"},"name":"shop.add"}}`},
			{"a name in a list", `{"name":["shop.add"],"arguments":{"title":"oolong"}}`, tea},
			{"a name misspelt", `{"nmae":"shop.add","arguments":{"titel":"oolong"}}`, tea},
			{"call_tool itself", `{"name":"call_tool","arguments":{"name":"shop.add","arguments":{"title":"oolong"}}}`, tea},
			{"a timeout as a number",
				`{"name":"shop.add","arguments":{"title":"oolong"},"options":{"timeout":5000,"max_bytes":900}}`,
				`{"tool":"call_tool","arguments":{"arguments":{"title":"oolong"},"name":"shop.add","options":{"max_bytes":900,"timeout":"5000ms"}}}`},
			{"a timeout without a unit", `{"name":"shop.add","arguments":{"title":"oolong"},"options":{"timeout":"1500"}}`,
				`{"tool":"call_tool","arguments":{"arguments":{"title":"oolong"},"name":"shop.add","options":{"timeout":"1500ms"}}}`},
			{"a text for prompts",
				`{"name":"shop.add","arguments":{"title":"oolong"},"options":{"timeout":5000,"on_dialog":"accept=Ada"}}`,
				`{"tool":"call_tool","arguments":{"arguments":{"title":"oolong"},"name":"shop.add","options":{"on_dialog":"accept=Ada","timeout":"5000ms"}}}`},
			{"an option misspelt", `{"name":"shop.add","arguments":{"title":"oolong"},"options":{"dryRun":true}}`,
				`{"tool":"call_tool","arguments":{"arguments":{"title":"oolong"},"name":"shop.add","options":{"dry_run":true}}}`},
			{"a word for an option", `{"name":"shop.add","arguments":{"title":"oolong"},"options":{"dry_run":"yes"}}`,
				`{"tool":"call_tool","arguments":{"arguments":{"title":"oolong"},"name":"shop.add","options":{"dry_run":true}}}`},
			{"a name at distance 0", `{"name":"add","arguments":{"title":"oolong"}}`, tea},
			{"a destructive tool", `{"name":"shop.order.cancel","args":{"id":7}}`,
				`{"tool":"call_tool","arguments":{"arguments":{"id":7},"name":"shop.order.cancel","options":{"dry_run":true}}}`},
			{"search_tools", `{"name":"search_tools","arguments":{"query":"sell"}}`,
				`{"tool":"search_tools","arguments":{"query":"sell"}}`},
			{"describe_tool", `{"name":"describe_tool","arguments":{"tool":"shop.add"}}`,
				`{"tool":"describe_tool","arguments":{"name":"shop.add"}}`},
		} {
			r, text := call(t, s, "call_tool", c.arguments)
			var got struct {
				Corrected, Changes json.RawMessage
				Next               []json.RawMessage
			}
			if json.Unmarshal([]byte(text), &got) != nil || !r.IsError || len(got.Next) == 0 || string(got.Next[0]) != c.next {
				t.Errorf("%s: %s\nexpected %s", c.name, text, c.next)
				continue
			}
			if got.Corrected == nil || got.Changes == nil {
				t.Errorf("%s: the error does not say what was corrected: %s", c.name, text)
			}
			var next struct {
				Tool      string
				Arguments json.RawMessage
			}
			_ = json.Unmarshal(got.Next[0], &next)
			if r, text := call(t, s, next.Tool, string(next.Arguments)); r.IsError && c.name != "flat, with an option" {
				t.Errorf("%s: the corrected call fails: %s", c.name, text)
			}
		}
		// Changes lead from what was given to what is offered, each value once.
		for arguments, want := range map[string]string{
			`{"name":"shop.add","params":{"titel":"oolong"}}`: `[{"from":"/params","to":"/arguments","how":"renamed"},` +
				`{"from":"/params/titel","to":"/arguments/title","how":"renamed"}]`,
			`{"name":"shop.add","arguments":{"title":"oolong"},"args":{"size":"small"}}`: `[{"from":"/args/size",` +
				`"to":"/arguments/size","how":"unwrapped"}]`,
			`{"name":"shop.add","arguments":{"title":"oolong"},"reason":"thirst"}`: `[{"from":"/reason","how":"dropped"}]`,
			`{"name":["shop.add"],"arguments":{"title":"oolong"}}`:                 `[{"from":"/name/0","to":"/name","how":"unwrapped"}]`,
		} {
			_, text := call(t, s, "call_tool", arguments)
			var got struct{ Changes json.RawMessage }
			if json.Unmarshal([]byte(text), &got) != nil || string(got.Changes) != want {
				t.Errorf("%s: changes %s, want %s", arguments, got.Changes, want)
			}
		}
		// What is missing of the envelope itself is a hole, too.
		_, text := call(t, s, "call_tool", `{"arguments":{"title":"oolong"}}`)
		if !strings.Contains(text, `"template":{"arguments":{"title":"oolong"},"name":"\u003cname: string`) &&
			!strings.Contains(text, `"template":{"arguments":{"title":"oolong"},"name":"<name: string`) {
			t.Errorf("without a name: %s", text)
		}
		// Without the values no call is suggested.
		for _, arguments := range []string{`{"name":"shop.add","params":{}}`, `{"tool":"shop.add"}`,
			`{"name":"shop.add","arguments":{"title":"oolong"},"options":{"timeout":"soon"}}`} {
			_, text := call(t, s, "call_tool", arguments)
			var got struct {
				Corrected, Template json.RawMessage
				Next                []struct{ Tool string }
			}
			if json.Unmarshal([]byte(text), &got) != nil || got.Corrected != nil || len(got.Next) == 0 ||
				got.Next[0].Tool == "call_tool" {
				t.Errorf("%s: %s", arguments, text)
			}
		}
		// The error has no names of Go types.
		goType := regexp.MustCompile(`Go (struct|value)|json: |unmarshal|float64|\bint\b|interface`)
		for _, arguments := range []string{`{"name":5}`, `{"name":"shop.add","options":{"timeout":1.5}}`,
			`{"name":"shop.add","options":[]}`,
			`{"name":"shop.add","options":{"max_bytes":"many"}}`, `{"name":"shop.add","options":{"dry_run":{}}}`,
			`{"name":"shop.add","options":{"browser":5}}`, `{"name":["shop.add"]}`, `[]`, `{"name":"shop.add","arguments":5}`} {
			r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "call_tool", Arguments: json.RawMessage(arguments)})
			text := ""
			if err != nil {
				text = err.Error()
			} else if text = allText(r); !r.IsError {
				t.Errorf("%s succeeds", arguments)
			}
			if goType.MatchString(text) {
				t.Errorf("%s: %s", arguments, text)
			}
		}
	})
}
