package command

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host/step"
)

var awkwardWords = []string{
	"", "plain", "a b", "it's", `"double"`, `back\slash`, "$HOME `id` $(id) ${x}", "a;b|c&d>e<f", "*?[a]~#!",
	"new\nline", "tab\t", "-n", "--", "%s%d", "ünï", "'", "''", `'\''`,
	`{"a":"it's \"x\"","b":[1,2]}`, "=", "a=b", "\\", "\x01\x7f",
}

func TestShellQuote(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no POSIX shell here")
	}
	for _, word := range awkwardWords {
		out, err := exec.Command(sh, "-c", "printf '%s.' "+ShellQuote(word)).Output()
		if err != nil || string(out) != word+"." {
			t.Errorf("%q, quoted as %s, became %q, %v", word, ShellQuote(word), out, err)
		}
	}
	for _, word := range []string{"plain", "/a/b-c_d.e", "a=b", "user@host:x,y+z%"} {
		if got := ShellQuote(word); got != word {
			t.Errorf("%q is quoted without need: %s", word, got)
		}
	}
}

// TestCommand renders steps as commands, and parses the parameters with a shell.
func TestCommand(t *testing.T) {
	a := NewApp(&Streams{Env: func(string) string { return "" }}, nil)
	call := step.Call("text.hash", json.RawMessage("{\n \"text\": \"a b\"\n}"))
	slow := call
	slow.Options = step.Options{Timeout: time.Minute, Place: step.Place{Browser: "b", Target: "a b"}, DryRun: true}
	for _, c := range []struct {
		step step.Step
		want string
	}{
		{step.Call("cdp.Network.getCookies", json.RawMessage("{}")), "parley cdp Network.getCookies"},
		{step.Call("text.hash", nil), "parley text hash"},
		{step.Call("text.hash", json.RawMessage(" null ")), "parley text hash"},
		{call, `parley text hash 'a b'`},
		{step.Call("text.encode", json.RawMessage(`{"to":"hex","text":"a"}`)), "parley text encode a hex"},
		{step.Call("text.encode", json.RawMessage(`{"to":"hex"}`)), `parley text encode --params '{"to":"hex"}'`},
		{step.Call("text.encode", json.RawMessage(`{"text":"-a","to":"hex"}`)),
			`parley text encode --params '{"text":"-a","to":"hex"}'`},
		{step.Call("text.encode", json.RawMessage(`{"text":5,"to":"hex"}`)),
			`parley text encode --params '{"text":5,"to":"hex"}'`},
		{step.Call("text.hash", json.RawMessage(`{"text":""}`)), `parley text hash --params '{"text":""}'`},
		{step.Call("text.hash", json.RawMessage(`{"text":"a","algorithm":"md5"}`)),
			`parley text hash a --params '{"algorithm":"md5"}'`},
		{step.Step{Op: step.OpCall, Tool: "text.encode", Params: json.RawMessage(`{"text":"a"}`), Choose: []string{"to"}},
			"parley text encode a TO"},
		{step.Step{Op: step.OpCall, Tool: "text.encode", Params: json.RawMessage(`{"to":"hex"}`), Choose: []string{"text"}},
			"parley text encode TEXT hex"},
		{step.Step{Op: step.OpPlan, Tool: "text.hash", Params: json.RawMessage(`{"text":"a"}`)},
			`parley plan text.hash --params '{"text":"a"}' --run`},
		{step.Call("text.hash", json.RawMessage("{\"text\":\"\u202e\x7f\"}")),
			`parley text hash --params '{"text":"\u202e\u007f"}'`},
		{slow, `parley text hash 'a b' --browser b --target 'a b' --timeout 1m0s --dry-run`},
		{step.Call("cdp.status", json.RawMessage(`{"all":true}`)), "parley cdp status --all"},
		{step.Step{Op: step.OpCall, Tool: "cdp.open", Choose: []string{"url"}}, "parley cdp open URL"},
		{step.Step{Op: step.OpCall, Tool: "cdp.Page.navigate", Choose: []string{"url"}},
			"parley cdp Page.navigate --param url=URL"},
		{step.Call("plan.make", json.RawMessage(`{"a":1}`)), `parley call plan.make --params '{"a":1}'`},
		{step.Describe("result.get", 3), "parley call result.get --describe --tier 3"},
		{step.List("plan"), "parley list plan"},
		{step.Describe("cdp.Network.getCookies", 0), "parley cdp Network.getCookies --describe"},
		{step.Describe("cdp.Network.getCookies", 3), "parley cdp Network.getCookies --describe --tier 3"},
		{step.List(""), "parley --list"},
		{step.List("cdp"), "parley cdp --list"},
		{step.List("cdp.Network"), "parley cdp Network --list"},
		{step.Search("take a picture"), "parley search 'take a picture'"},
		{step.Step{Op: step.OpSearch, Tool: "cdp", Query: "cookie"}, "parley cdp --search cookie"},
		{step.Step{Op: step.OpListen, Tool: "cdp", Query: "Network.*"}, "parley cdp --listen 'Network.*'"},
		{step.Operator(step.OpDoctor), "parley doctor"},
		{step.Operator(step.OpPolicyGrant, "x", "fs:ro:/srv/a b=/data"), "parley policy grant x 'fs:ro:/srv/a b=/data'"},
		{step.Operator(step.OpHelp, "plugin build"), "parley help plugin build"},
		{step.Operator(step.OpSystem, "apt-get install chromium"), "apt-get install chromium"},
		{step.Operator(step.OpSystem, "mv", "/srv/a b", "/srv/c"), "mv '/srv/a b' /srv/c"},
	} {
		if got := a.Command(c.step); got != c.want {
			t.Errorf("%s: got %s, want %s", c.step, got, c.want)
		}
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no POSIX shell here")
	}
	for _, word := range awkwardWords {
		params, _ := json.Marshal(map[string]string{"text": word})
		line := a.Command(step.Call("text.hash", params))
		out, err := exec.Command(sh, "-c", "parley() { printf '%s.' \"$3\" \"$4\"; }\n"+line).Output()
		if err == nil && string(out) == word+".." {
			continue
		}
		raw, isParams := strings.CutPrefix(strings.TrimSuffix(string(out), "."), "--params.")
		var back map[string]string
		if err != nil || !isParams || json.Unmarshal([]byte(raw), &back) != nil || back["text"] != word {
			t.Errorf("%q became %s, %v", word, out, err)
		}
	}
}
