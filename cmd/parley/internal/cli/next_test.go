package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host/commandline"
	"github.com/parley-tools/parley/internal/testhome"
)

// discovery matches the words of a command line that runs no tool.
var discovery = regexp.MustCompile(`^(--list|--describe|--help|--version|search|list|help|plugin|config|audit|docs|` +
	`learn|doctor|version|completion)$`)

// TestNextCommandsExist runs the commands that many command lines, valid and invalid, name as next: discovery as it is,
// and calls as dry runs. It skips install and batch, which need a file. A next step that does not work is worse than
// none.
func TestNextCommandsExist(t *testing.T) {
	home := testhome.New(t)
	env := func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }
	run := func(args []string) (out, errs string, code int) {
		var o, e strings.Builder
		code = Main(args, &command.Streams{In: strings.NewReader(""), Out: &o, Err: &e, Env: env})
		return o.String(), e.String(), code
	}
	fixture := filepath.Join("..", "..", "..", "..", "testdata", "wasm")
	broken := filepath.Join(t.TempDir(), "broken.wasm")
	if err := os.WriteFile(broken, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	follow := func(line string, args []string) {
		words, ok := commandline.Words(line)
		if !ok {
			t.Errorf("parley %s: next is not a valid line of a shell: %s", strings.Join(args, " "), line)
			return
		}
		for _, w := range words {
			if placeholder().MatchString(w) {
				return
			}
		}
		if seen[line] || len(words) < 2 || words[0] != "parley" || words[1] == "batch" ||
			slices.Contains(words, "install") {
			return
		}
		seen[line] = true
		words = words[1:]
		if !slices.ContainsFunc(words, discovery.MatchString) {
			words = append(words, "--dry-run")
		}
		if _, errs, code := run(words); code != 0 {
			t.Errorf("parley %s: next is %s, which ends in %d: %s", strings.Join(args, " "), line, code, errs)
		}
	}
	for _, args := range [][]string{
		{}, {"--help"}, {"--list"}, {"cdp", "--list"}, {"text", "--list"}, {"json", "--list"}, {"cdp", "Network", "--list"},
		{"cdp", "Schema", "--list"}, {"cdp", "Inspector", "--list"}, {"plugin", "list"}, {"plugin", "show", "text"},
		{"config", "list"}, {"docs", "audit", "text"}, {"docs", "audit", "--coverage"},
		{"docs", "export", "text", "--format", "skill"}, {"docs", "export", "--format", "mcp"}, {"docs"}, {"docs", "adit"},
		{"docs", "audit", "--mode", "tiny"}, {"docs", "audit", "nope"}, {"docs", "audit", "--coverage", "text"},
		{"docs", "export"}, {"docs", "export", "--format", "mpc"},
		{"docs", "export", "cdp.Network.Cookie", "--format", "mcp"}, {"learn"}, {"learn", "text"}, {"learn", "cdp"},
		{"learn", "nope"}, {"learn", "text", "json"}, {"audit"}, {"audit", "show"}, {"audit", "verify"}, {"doctor"},
		{"version"}, {"search", "cookie"}, {"search", "it's a \"quoted\" $HOME word"}, {"search", "zzqqxv"},
		{"cdp", "--search", "cookie"}, {"cdp", "Network", "--search", "cookie"}, {"text", "hash", "--describe"},
		{"text", "hash", "--describe", "--tier", "1"}, {"text", "hash", "--describe", "--tier", "3"},
		{"cdp", "Network.getCookies", "--describe"}, {"cdp", "Network.Cookie", "--describe"},
		{"cdp", "Network.requestWillBeSent", "--describe"}, {"cdp", "open", "--describe"},
		{"cdp", "Page.navigate", "--describe", "--tier", "3"}, {"serch"}, {"cpd"}, {""}, {"--lits"}, {"it's"},
		{"cdp", "Netwrok"}, {"cdp", "Network.getCokies"}, {"cdp", "getCookies"}, {"text", "hsah"},
		{"cdp", "Network", "getCookies"}, {"call"}, {"call", "text"}, {"call", "hash"}, {"call", "nope.hash"}, {"search"},
		{"batch"}, {"batch", "missing"}, {"plugin"}, {"plugin", "instal"}, {"plugin", "install"},
		{"plugin", "install", "missing.wasm"}, {"plugin", "install", fixture}, {"plugin", "install", broken},
		{"plugin", "remove", "nope"}, {"plugin", "remove", "cdp"}, {"plugin", "remove", "text"}, {"plugin", "show", "nope"},
		{"config"}, {"config", "lst"}, {"completion"}, {"completion", "bsah"}, {"help", "nope"}, {"version", "extra"},
		{"doctor", "extra"}, {"x", "--load", broken}, {"x", "--load", filepath.Join(fixture, "component.wasm")},
		{"x", "--load", "missing.wasm"}, {"x", "--load", fixture}, {"text", "hash"}, {"text", "hash", "a", "b"},
		{"text", "hash", "--params", "{"}, {"text", "hash", "--params", `{"txet":"it's $HOME"}`},
		{"text", "hash", "a", "--param", "algorithm=sha25"}, {"text", "hash", "a", "--timeout", "-1s"},
		{"text", "hash", "a", "--jq", "["}, {"text", "hash", "a", "--max-bytes", "5"}, {"text", "hash", "--list"},
		{"text", "--dry-run"}, {"--params", "{}"}, {"text", "--listen", "x"},
		{"cdp", "Network.requestWillBeSent", "--params", "{}"}, {"cdp", "--describe"},
		{"text", "hash", "--describe", "--tier", "9"}, {"search", "x", "--limit", "0"}, {"search", "x", "--effect", "raed"},
		{"search", "x", "--plugin", "txet"}, {"search", "x", "--plugin", "cdp", "--group", "Netwrok"},
	} {
		out, errs, code := run(append(args, "--json"))
		text := out
		if code != 0 {
			text = errs
		}
		var doc struct {
			Next  []string
			Error *struct {
				Message, Command string
			}
			Examples []struct{ Command string }
		}
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Errorf("parley %s: %v: %.200s", strings.Join(args, " "), err, text)
			continue
		}
		if code == 110 || code != 0 && len(doc.Next) == 0 {
			t.Errorf("parley %s ends in %d without a next step: %s", strings.Join(args, " "), code, text)
		}
		if code != 0 && doc.Error.Command != "" {
			doc.Next = append(doc.Next, doc.Error.Command)
		}
		for _, n := range doc.Next {
			if strings.HasPrefix(n, "parley") {
				follow(n, args)
			}
		}
		for _, e := range doc.Examples {
			if words, ok := commandline.Words(e.Command); !ok || words[0] != "parley" {
				t.Errorf("parley %s: an example is not a valid line of a shell: %s", strings.Join(args, " "), e.Command)
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d commands were followed", len(seen))
	}
}

// TestInstallTips installs foreign and broken modules, and follows each tip of the error, and of the errors after it: a
// command must parse, and end in success or in an error that was not seen before.
func TestInstallTips(t *testing.T) {
	home, work := testhome.New(t), t.TempDir()
	run := func(args ...string) (next []string, message string, code int) {
		var o, e strings.Builder
		env := func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }
		code = Main(append(args, "--json"), &command.Streams{In: strings.NewReader(""), Out: &o, Err: &e, Env: env})
		var doc struct {
			Next  []string
			Error struct{ Message string }
		}
		_ = json.Unmarshal([]byte(e.String()), &doc)
		return doc.Next, doc.Error.Message, code
	}
	fixtures := filepath.Join("..", "..", "..", "..", "testdata", "wasm")
	files, err := filepath.Glob(filepath.Join(fixtures, "*.wasm"))
	if err != nil || len(files) < 15 {
		t.Fatal(files, err)
	}
	described, err := os.ReadFile(filepath.Join(fixtures, "smallest.manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string][]byte{}
	for _, f := range files {
		if cases[filepath.Base(f)], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	for name, start := range map[string]string{"empty": "", "text": "(module)", "script": "#!/bin/sh\n",
		"zip": "PK\x03\x04", "elf": "\x7fELF\x02",
		"bitcode": "BC\xc0\xde", "archive": "!<arch>\n", "cut": "\x00asm", "gzip": "\x1f\x8b\x08",
		"version": "\x00asm\x09\x00\x00\x00", "section": "\x00asm\x01\x00\x00\x00\x01\x7f"} {
		cases[name+".wasm"] = []byte(start)
	}
	followed := 0
	var follow func(t *testing.T, args []string, seen []string)
	follow = func(t *testing.T, args, seen []string) {
		next, message, code := run(args...)
		switch {
		case code == 0:
			return
		case code == 110 || code == 81 && len(seen) > 0 || slices.Contains(seen, message):
			t.Errorf("parley %s ends in %d: %s; before it: %q", strings.Join(args, " "), code, message, seen)
			return
		case len(next) == 0:
			t.Errorf("parley %s ends in %d without a tip: %s", strings.Join(args, " "), code, message)
		}
		for _, line := range next {
			words, ok := commandline.Words(line)
			if ok && len(words) > 1 && words[0] == "parley" && !slices.ContainsFunc(words, placeholder().MatchString) {
				followed++
				follow(t, words[1:], append(slices.Clone(seen), message))
			} else if !ok || words[0] == "parley" {
				t.Errorf("parley %s: the tip %q is not a command", strings.Join(args, " "), line)
			}
		}
	}
	for name, wasm := range cases {
		for _, beside := range []bool{false, true} { // a manifest
			dir := filepath.Join(work, name, strconv.FormatBool(beside))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, wasm, 0o644); err != nil {
				t.Fatal(err)
			}
			if beside {
				if err := os.WriteFile(strings.TrimSuffix(path, ".wasm")+".manifest.json", described, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			follow(t, []string{"plugin", "install", path}, nil)
		}
	}
	if followed < 30 {
		t.Errorf("only %d tips were followed", followed)
	}
}
