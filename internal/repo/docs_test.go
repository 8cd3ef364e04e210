package repo

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the parts of README.md that come from the binary")

const (
	codesStart = "<!-- exit codes: written by `go test ./internal/repo -update` -->\n"
	codesEnd   = "<!-- /exit codes -->"
)

// parley builds the binary once for all tests of this package and returns the folder that holds it and nothing else.
var parley = sync.OnceValues(func() (folder string, err error) {
	if folder, err = os.MkdirTemp("", "parley-repo-"); err != nil {
		return "", err
	}
	parleyFolder = folder
	out, err := exec.Command("go", "build", "-o", filepath.Join(folder, executable()),
		module+"/cmd/parley").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build parley: %w\n%s", err, out)
	}
	return folder, err
})

// parleyFolder is the folder that parley made, "" if no test needed it.
var parleyFolder string

func executable() string {
	if runtime.GOOS == "windows" {
		return "parley.exe"
	}
	return "parley"
}

func TestMain(m *testing.M) {
	code := m.Run()
	if parleyFolder != "" {
		os.RemoveAll(parleyFolder)
	}
	os.Exit(code)
}

func binaryFolder(t *testing.T) string {
	t.Helper()
	folder, err := parley()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestExitCodes compares the table in README.md with the exit codes of the binary.
func TestExitCodes(t *testing.T) {
	cmd := exec.Command(filepath.Join(binaryFolder(t), executable()), "--help", "--json")
	cmd.Env = append(os.Environ(), "PARLEY_HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var help struct {
		ExitCodes map[string]string `json:"exit_codes"`
	}
	if err := json.Unmarshal(out, &help); err != nil || len(help.ExitCodes) == 0 {
		t.Fatalf("parley --help --json: %v in %s", err, out)
	}
	first := func(code string) int {
		low, _, _ := strings.Cut(code, "-")
		n, err := strconv.Atoi(low)
		if err != nil {
			t.Fatalf("exit code %q", code)
		}
		return n
	}
	codes := slices.SortedFunc(maps.Keys(help.ExitCodes), func(a, b string) int { return first(a) - first(b) })
	table := "| code | meaning |\n|---|---|\n"
	for _, c := range codes {
		table += fmt.Sprintf("| %s | %s |\n", c, help.ExitCodes[c])
	}

	text := readme(t)
	before, rest, ok := strings.Cut(text, codesStart)
	shown, after, ok2 := strings.Cut(rest, codesEnd)
	if !ok || !ok2 {
		t.Fatalf("the markers %s and %s are missing in README.md", strings.TrimSpace(codesStart), codesEnd)
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(before+codesStart+table+codesEnd+after),
			0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != table {
		t.Errorf("README.md has another table of exit codes than the binary:\n%s\nwant\n%s\n"+
			"run go test ./internal/repo -update", shown, table)
	}
}

// TestExamples runs the sh blocks of README.md in order and in one folder, as a reader would. A block marked "sh
// browser" needs Chromium. A go block is the file hello/main.go of the text.
func TestExamples(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("README's examples are for a POSIX shell")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("README's examples need bash: ", err)
	}
	folder, bin := t.TempDir(), binaryFolder(t)
	t.Cleanup(func() { // a failed example may leave a browser
		cmd := exec.Command(filepath.Join(bin, executable()), "cdp", "close")
		cmd.Env = append(os.Environ(), "PARLEY_HOME="+filepath.Join(folder, "home"))
		_ = cmd.Run()
	})
	ran := 0
	for _, block := range blocks(readme(t)) {
		switch block.kind {
		case "go":
			write(t, filepath.Join(folder, "hello", "main.go"), block.text)
		case "sh", "sh browser":
			if block.kind == "sh browser" && !haveBrowser() {
				if os.Getenv("CI") == "true" {
					t.Fatal("no browser was found, and nothing may be skipped here; run make setup")
				}
				t.Log("not run, because there is no Chromium:\n" + block.text)
				continue
			}
			ran++
			runExample(t, bash, bin, folder, block.text)
		}
	}
	if ran == 0 {
		t.Error("README.md has no examples")
	}
}

func runExample(t *testing.T, bash, bin, folder, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "-euo", "pipefail", "-c", text)
	cmd.Dir = folder
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PARLEY_") || strings.HasPrefix(v, "PARLEY_CHROME=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", text, out)
	if err != nil {
		t.Errorf("this example of README.md ended in %v:\n%s\n%s", err, text, out)
	}
}

func haveBrowser() bool {
	for _, name := range []string{os.Getenv("PARLEY_CHROME"), "chromium", "google-chrome", "google-chrome-stable"} {
		if _, err := exec.LookPath(name); name != "" && err == nil {
			return true
		}
	}
	return false
}

type block struct{ kind, text string }

// blocks returns the fenced code blocks of a Markdown text.
func blocks(markdown string) []block {
	var all []block
	for part := range strings.SplitSeq(markdown, "\n```") {
		kind, text, ok := strings.Cut(part, "\n")
		if ok && kind != "" && strings.TrimSpace(text) != "" {
			all = append(all, block{kind, text})
		}
	}
	return all
}

// TestLinks makes sure that the files to which the documents refer exist.
func TestLinks(t *testing.T) {
	for _, name := range []string{"README.md", "RATIONALE.md", "CONTRIBUTING.md"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for part := range strings.SplitSeq(string(data), "](") {
			target, _, ok := strings.Cut(part, ")")
			if !ok || part == string(data) || strings.Contains(target, "://") || strings.HasPrefix(target, "#") ||
				strings.ContainsAny(target, " \n") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s: %v", name, target, err)
			}
		}
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEveryDependencyHasAReason verifies that RATIONALE.md argues for every direct requirement.
func TestEveryDependencyHasAReason(t *testing.T) {
	rationale, err := os.ReadFile(filepath.Join(root, "RATIONALE.md"))
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, spec := range s.ast.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			for dependency := range dependencies {
				if imported == dependency || strings.HasPrefix(imported, dependency+"/") {
					used[dependency] = true
				}
			}
		}
	}
	for _, dependency := range slices.Sorted(maps.Keys(used)) {
		if !strings.Contains(string(rationale), "`"+dependency+"`") {
			t.Errorf("RATIONALE.md does not say why %s is needed", dependency)
		}
	}
}

// TestClientSnippets compares the client configurations in README.md with the output of parley mcp config, and starts a
// server with each. It also loads the block of Parley's own configuration.
func TestClientSnippets(t *testing.T) {
	shown := 0
	binary := filepath.Join(binaryFolder(t), executable())
	for _, block := range blocks(readme(t)) {
		words := strings.Fields(block.kind) // the language, the client and a mode other than the configured one
		if len(words) < 2 || words[0] != "json" && words[0] != "toml" {
			continue
		}
		shown++
		home := t.TempDir()
		if words[1] == "config" {
			write(t, filepath.Join(home, ".config", "parley", "config.toml"), block.text)
			if said := output(t, binary, home, hello, "mcp"); !strings.Contains(said, `"name":"cdp__open"`) {
				t.Errorf("with this config.toml no tool is pinned:\n%s\n%s", block.text, said)
			}
			continue
		}
		args, serve := []string{"mcp", "config", "--client", words[1]}, []string{"mcp"}
		if len(words) > 2 {
			args, serve = append(args, "--docs", words[2]), append(serve, "--docs", words[2])
		}
		printed := output(t, binary, home, "", args...)
		if got := strings.ReplaceAll(printed, strconv.Quote(binary),
			`"/usr/local/bin/parley"`); strings.TrimSpace(got) != strings.TrimSpace(block.text) {
			t.Errorf("parley %s prints\n%s\nREADME.md shows\n%s", strings.Join(args, " "), got, block.text)
		}
		if said := output(t, binary, home, hello, serve...); !strings.Contains(said, `"name":"search_tools"`) {
			t.Errorf("parley %s lists no tools: %s", strings.Join(serve, " "), said)
		}
	}
	if shown != 4 {
		t.Errorf("README.md shows %d snippets, expected those of 3 clients and one of config.toml", shown)
	}
}

// hello is the first message of a client on stdio.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`

// output runs parley without any settings and returns its stdout.
func output(t *testing.T, binary, home, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PARLEY_") && !strings.HasPrefix(v, "XDG_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+home, "USERPROFILE="+home)
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("parley %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
