package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/internal/sample"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
)

// Bounds of what a failed call prints, in bytes without documentation.
const (
	mostOfOneFault = 900
	mostOfError    = 2048
)

// longCalls returns calls with a long value in each parameter of each tool that ships: of the parameter's own type or
// of another one, in a list, as a name, and under a name that no parameter has.
func longCalls(t *testing.T) (lines []string) {
	t.Helper()
	megabyte := strings.Repeat("x", 1_000_000)
	long, list := megabyte[:20_000], strings.Repeat("7,", 10_000)+"7"
	tools, sampled := shippedParams(t), sample.OneIn(t, 10)
	maps.Copy(tools, map[string][]string{"cdp.open": {"url"}, "cdp.Runtime.evaluate": {"expression", "contextId"},
		"cdp.Network.setCookies": {"cookies"}, "cdp.input": {"events"}, "cdp.route": {"rules"}, "cdp.type": {"secret"},
		"cdp.DOM.querySelector": {"nodeId", "selector"}, "nope.tool": {"x"}, long[:3000]: {"x"}})
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		names := tools[tool]
		slices.Sort(names)
		for i, name := range names {
			forms := []string{
				fmt.Sprintf(`{%q:%q}`, name, long), fmt.Sprintf(`{%q:[%s]}`, name, list),
				fmt.Sprintf(`{%q:{%q:1}}`, name, long), fmt.Sprintf(`{%q:%q}`, name+"x", long),
				fmt.Sprintf(`{%q:1,%q:true}`, name, long), fmt.Sprintf(`{%q:[%q,{"a":[%s]}]}`, name, long, list),
			}
			if i > 0 { // of the others, less is enough
				forms = forms[:2]
			}
			forms = append(forms, fmt.Sprintf(`{%q:{"x":%q}}`, name, megabyte))
			for _, params := range forms {
				if !sampled() {
					continue
				}
				lines = append(lines, fmt.Sprintf(`{"tool":%q,"params":%s,"options":{"dry_run":true}}`, tool, params))
			}
		}
	}
	return lines
}

// shippedParams returns the parameters of each tool of the plugins that ship.
func shippedParams(t *testing.T) map[string][]string {
	t.Helper()
	tools := map[string][]string{}
	for _, provider := range shippedHost(t).Catalog().Providers() {
		names, err := provider.Names()
		if provider.Info().Name == "cdp" || err != nil {
			continue
		}
		for _, name := range names {
			tool, err := provider.Tool(name)
			if err != nil {
				t.Fatal(name, err)
			}
			params := []string{}
			for _, p := range manifest.Params(tool.Params) {
				params = append(params, p.Name)
			}
			tools[provider.Info().Name+"."+name] = params
		}
	}
	return tools
}

// checkBound checks the size of an error that was printed as JSON, in an envelope or on its own.
func checkBound(t *testing.T, door string, printed []byte) {
	t.Helper()
	var document map[string]json.RawMessage
	if err := json.Unmarshal(printed, &document); err != nil {
		t.Errorf("%s: %v: %.300s", door, err, printed)
		return
	}
	of := document
	if inner := map[string]json.RawMessage{}; json.Unmarshal(document["error"], &inner) == nil && len(inner) > 0 {
		of = inner
	}
	var details []json.RawMessage
	_ = json.Unmarshal(of["details"], &details)
	docs := of["docs"]
	size := len(printed) - len(docs)
	if size > mostOfError || len(details) == 1 && size > mostOfOneFault {
		delete(of, "docs")
		rest, _ := json.Marshal(of)
		t.Errorf("%s: %d bytes for %d violations: %s\n%s", door, size, len(details), rest, document["next"])
	}
	if _, repeated := of["marked"]; repeated {
		t.Errorf("%s repeats the parameters: %.300s", door, printed)
	}
	if near := string(of["did_you_mean"]); near != "" && strings.Contains(string(of["details"]), "did you mean") {
		t.Errorf("%s says twice: %s %s", door, of["details"], near)
	}
}

// TestErrorsAreBounded makes calls with long values at every door. Whatever fails prints an error within its bounds.
func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	home, lines, file := testhome.New(t), longCalls(t), filepath.Join(t.TempDir(), "params.json")
	t.Run("batch", func(t *testing.T) {
		in := filepath.Join(t.TempDir(), "calls")
		if err := os.WriteFile(in, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, _ := runIn(home, "batch", in, "--continue-on-error")
		answers := strings.Split(strings.TrimSpace(out), "\n")
		if len(answers) != len(lines) {
			t.Fatalf("%d answers of %d: %.500s", len(answers), len(lines), errs)
		}
		failed := 0
		for i, a := range answers {
			if strings.Contains(a[:min(60, len(a))], `"ok":false`) {
				failed++
				checkBound(t, "batch: "+lines[i][:min(len(lines[i]), 90)], []byte(a))
			}
		}
		if failed < len(lines)/3 {
			t.Errorf("only %d of %d calls fail", failed, len(lines))
		}
	})
	t.Run("mcp", func(t *testing.T) {
		var in strings.Builder
		in.WriteString(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25",` +
			`"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
		for i, line := range lines {
			if i%3 != 0 { // the error is the same as of batch
				continue
			}
			call := strings.Replace(strings.Replace(line, `{"tool":`, `{"name":`, 1), `,"params":`, `,"arguments":`, 1)
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"call_tool","arguments":%s}}`+"\n",
				i, call)
		}
		var out, errs bytes.Buffer
		env := func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }
		streams := &command.Streams{In: strings.NewReader(in.String()), Out: &out, Err: &errs, Env: env}
		if code := Main([]string{"mcp"}, streams); code != 0 {
			t.Fatalf("%d %.500s", code, errs.String())
		}
		failed := 0
		for _, answer := range strings.Split(strings.TrimSpace(out.String()), "\n") {
			var a struct {
				ID     any
				Result struct {
					IsError bool
					Content []struct{ Text string }
				}
			}
			if json.Unmarshal([]byte(answer), &a) == nil && a.Result.IsError {
				failed++
				at, _ := a.ID.(float64)
				checkBound(t, "mcp: "+lines[int(at)][:min(len(lines[int(at)]), 90)], []byte(a.Result.Content[0].Text))
			}
		}
		if failed < len(lines)/9 {
			t.Errorf("only %d of %d calls fail", failed, len(lines)/3)
		}
	})
	t.Run("command line", func(t *testing.T) {
		for i, line := range lines {
			if i%20 != 0 {
				continue
			}
			var call struct {
				Tool   string
				Params json.RawMessage
			}
			if json.Unmarshal([]byte(line), &call) != nil || os.WriteFile(file, call.Params, 0o600) != nil {
				t.Fatal(line[:100])
			}
			args := []string{"call", call.Tool, "--params", "@" + file, "--dry-run"}
			door := "parley " + call.Tool[:min(len(call.Tool), 60)]
			if _, errs, code := runIn(home, append(args, "--json")...); code != 0 {
				checkBound(t, door+" --json", []byte(errs))
			}
			_, errs, code := runIn(home, args...)
			before, docs, _ := strings.Cut(errs, "Detailed parameter documentation:")
			_, tips, _ := strings.Cut(docs, "\nTip:")
			size, isOne := len(before)+len(tips), strings.Count(before, "\n  /") == 1
			if code != 0 && (size > mostOfError || isOne && size > mostOfOneFault) {
				t.Errorf("%s: %d bytes: %.600s", door, size, errs)
			}
		}
	})
	t.Run("named files", func(t *testing.T) {
		if err := os.WriteFile(file, []byte("short text"), 0o600); err != nil {
			t.Fatal(err)
		}
		offered, sampled, tools := 0, sample.OneIn(t, 10), shippedParams(t)
		for _, tool := range slices.Sorted(maps.Keys(tools)) {
			for _, name := range slices.Sorted(slices.Values(tools[tool])) {
				if !sampled() {
					continue
				}
				_, errs, _ := runIn(home, "call", tool, "--param", name+"x=@"+file, "--dry-run", "--json")
				var failed struct{ Error struct{ Command string } }
				_ = json.Unmarshal([]byte(errs), &failed)
				if failed.Error.Command == "" {
					continue
				}
				offered++
				if strings.Contains(failed.Error.Command, "short") {
					t.Errorf("%s %s: the file is not named in %s", tool, name, failed.Error.Command)
				}
			}
		}
		if offered == 0 {
			t.Error("no call was corrected")
		}
	})
}
