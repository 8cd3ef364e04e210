package repo

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-tools/parley/internal/testhome"
)

var update = flag.Bool("update", false, "write the parts of docs/files.md that come from the binary")

// parley copies the binary once for all tests of this package and returns the folder that contains only it.
var parley = sync.OnceValues(func() (folder string, err error) {
	if folder, err = os.MkdirTemp("", "parley-repo-"); err != nil {
		return "", err
	}
	parleyFolder = folder
	return folder, testhome.CopyProgram(filepath.Join(folder, executable()))
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

// document is a Markdown file of the tree.
type document struct {
	path string // from the root, with slashes
	text string
}

// manual returns README.md and the files of docs, whose examples are run.
func manual(t *testing.T) []document {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal("docs has no pages: ", err)
	}
	all := []document{read(t, "README.md")}
	for _, page := range pages {
		all = append(all, read(t, "docs/"+filepath.Base(page)))
	}
	return all
}

// references returns the pages of sdk that people write, whose examples are run, too. A test compares sdk/manifest.md
// with its source.
func references(t *testing.T) (all []document) {
	for _, name := range []string{"README", "abi", "extism", "http", "script", "wasi"} {
		all = append(all, read(t, "sdk/"+name+".md"))
	}
	return all
}

func read(t *testing.T, path string) document {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return document{path, string(data)}
}

// isGenerated compares a section of docs/files.md with the output of the binary. With -update it writes the section.
func isGenerated(t *testing.T, section, want string) {
	t.Helper()
	const path = "docs/files.md"
	start := "<!-- " + section + ": written by `go test ./internal/repo -update` -->\n"
	end := "<!-- /" + section + " -->"
	before, rest, ok := strings.Cut(read(t, path).text, start)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("the markers %s and %s are missing in %s", strings.TrimSpace(start), end, path)
	}
	if *update {
		write(t, filepath.Join(root, filepath.FromSlash(path)), before+start+want+end+after)
		return
	}
	if shown != want {
		t.Errorf("%s shows\n%s\nthe binary has\n%s\nrun go test ./internal/repo -update", path, shown, want)
	}
}

// TestExitCodes compares the table of exit codes with those of the binary.
func TestExitCodes(t *testing.T) {
	out := output(t, filepath.Join(binaryFolder(t), executable()), t.TempDir(), "", "--help", "--json", "--full")
	var help struct {
		ExitCodes map[string]string `json:"exit_codes"`
	}
	if err := json.Unmarshal([]byte(out), &help); err != nil || len(help.ExitCodes) == 0 {
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
	isGenerated(t, "exit codes", table)
}

// TestSettings compares the table of settings with those of the binary.
func TestSettings(t *testing.T) {
	out := output(t, filepath.Join(binaryFolder(t), executable()), t.TempDir(), "", "config", "list", "--json")
	var list struct {
		Data struct {
			Settings []struct{ Name, Value, Env, Description string }
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Data.Settings) == 0 {
		t.Fatalf("parley config list --json: %v in %s", err, out)
	}
	table := "| setting | variable | default | meaning |\n|---|---|---|---|\n"
	for _, s := range list.Data.Settings {
		value := s.Value
		if value == "" {
			value = `""`
		}
		table += fmt.Sprintf("| `%s` | `%s` | `%s` | %s |\n", s.Name, s.Env, value, s.Description)
	}
	isGenerated(t, "settings", table)
}

// TestExamples runs the sh blocks of each page in order and in a folder of its own, as a reader would. A block marked
// "sh browser" needs Chromium, one marked "sh clang" a clang for wasm32-wasi. A go block is the file hello/main.go of
// the page, and a block marked with the name of a file, as in "c hello.c", that file. A block marked "toml policy" is a
// policy that parley policy check accepts.
func TestExamples(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the examples are for a POSIX shell")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("the examples need bash: ", err)
	}
	bin := binaryFolder(t)
	found := map[string]bool{}
	for _, page := range append(manual(t), references(t)...) {
		for _, block := range blocks(page.text) {
			found[block.kind] = true
		}
		t.Run(page.path, func(t *testing.T) {
			folder := t.TempDir()
			if err := testhome.Fill(filepath.Join(folder, "home")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { // a failed example may leave a browser
				cmd := exec.Command(filepath.Join(bin, executable()), "cdp", "close")
				cmd.Env = append(os.Environ(), "PARLEY_HOME="+filepath.Join(folder, "home"))
				_ = cmd.Run()
			})
			for _, block := range blocks(page.text) {
				if _, file, ok := strings.Cut(block.kind, " "); ok && strings.Contains(file, ".") {
					write(t, filepath.Join(folder, file), block.text)
				}
				switch block.kind {
				case "go":
					write(t, filepath.Join(folder, "hello", "main.go"), block.text)
				case "toml policy":
					write(t, filepath.Join(folder, "policy", "config", "policy.toml"), block.text)
					runExample(t, bash, bin, folder, "PARLEY_HOME=$PWD/policy parley policy check")
				case "sh", "sh browser", "sh clang":
					what := lacks(block.kind)
					if what != "" && os.Getenv("CI") == "true" {
						t.Fatal("no " + what + " was found, and nothing may be skipped here; run make setup")
					}
					if what != "" {
						t.Log("not run, because there is no " + what + ":\n" + block.text)
						continue
					}
					runExample(t, bash, bin, folder, block.text)
				}
			}
		})
	}
	for _, kind := range []string{"sh", "sh browser", "sh clang", "go", "toml policy"} {
		if !found[kind] {
			t.Errorf("no page has a block marked %q", kind)
		}
	}
}

// runExample runs an example in a folder, with the home that the examples export.
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
	cmd.Env = append(cmd.Env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"PARLEY_HOME="+filepath.Join(folder, "home"))
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", text, out)
	if err != nil {
		t.Errorf("this example failed: %v:\n%s\n%s", err, text, out)
	}
}

// lacks returns what a block needs and this machine does not have, or "".
func lacks(kind string) string {
	switch kind {
	case "sh browser":
		if !haveBrowser() {
			return "Chromium"
		}
	case "sh clang":
		_, err := os.Stat("/usr/include/wasm32-wasi")
		for _, tool := range []string{"clang", "wasm-ld"} {
			if err == nil {
				_, err = exec.LookPath(tool)
			}
		}
		if err != nil {
			return "clang for wasm32-wasi"
		}
	}
	return ""
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

// TestLinks makes sure that the files and headings to which the documents link exist.
func TestLinks(t *testing.T) {
	for _, d := range documents(t) {
		for part := range strings.SplitSeq(withoutCode(d.text), "](") {
			target, _, ok := strings.Cut(part, ")")
			if !ok || strings.HasPrefix(d.text, part) || strings.Contains(target, "://") ||
				strings.ContainsAny(target, " \n") {
				continue
			}
			file, heading, _ := strings.Cut(target, "#")
			linked := d
			if file != "" {
				linked.path = path.Join(path.Dir(d.path), file)
				info, err := os.Stat(filepath.Join(root, filepath.FromSlash(linked.path)))
				if err != nil {
					t.Errorf("%s links to %s: %v", d.path, target, err)
					continue
				}
				if info.IsDir() || heading == "" {
					continue
				}
				linked = read(t, linked.path)
			}
			if !slices.Contains(anchors(linked.text), heading) {
				t.Errorf("%s links to %s: %s has no such heading", d.path, target, linked.path)
			}
		}
	}
}

// prose returns the pages that are written for people: the manual and what accompanies it.
func prose(t *testing.T) []document {
	t.Helper()
	all := append(manual(t), references(t)...)
	for _, name := range []string{"CONTRIBUTING.md", "RATIONALE.md", "SECURITY.md", "manifest/RULES.md"} {
		all = append(all, read(t, name))
	}
	return all
}

// documents returns all Markdown files of the tree.
func documents(t *testing.T) []document {
	t.Helper()
	var all []document
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".md"):
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		all = append(all, read(t, filepath.ToSlash(relative)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// withoutCode removes fenced code blocks from a Markdown text.
func withoutCode(markdown string) string {
	var prose strings.Builder
	for i, part := range strings.Split(markdown, "\n```") {
		if i%2 == 0 {
			prose.WriteString(part + "\n")
		}
	}
	return prose.String()
}

// anchors returns the fragments by which links reach the headings of a Markdown text.
func anchors(markdown string) (all []string) {
	for line := range strings.Lines(withoutCode(markdown)) {
		heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading)))
	}
	return all
}

// codeSpan matches `code` in a line of prose.
var codeSpan = regexp.MustCompile("`[^`\n]+`")

// TestPaths makes sure that the files that the documents name as code exist.
func TestPaths(t *testing.T) {
	for _, page := range prose(t) {
		for _, span := range codeSpan.FindAllString(withoutCode(page.text), -1) {
			name := strings.Trim(span, "`")
			first, _, ok := strings.Cut(name, "/")
			if !ok || first == "" || strings.ContainsAny(name, " *") || strings.ContainsAny(name, upper) {
				continue // no path, or one with a placeholder such as NAME
			}
			if _, err := os.Stat(filepath.Join(root, first)); err != nil {
				continue // not a path of the tree
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
				t.Errorf("%s names %s: %v", page.path, name, err)
			}
		}
	}
}

// upper are the letters of placeholders.
const upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// makeTarget matches the targets that prose names, such as `make test`.
var makeTarget = regexp.MustCompile("`make ([a-z-]+)`")

// TestMakeTargets checks that the make targets that the documents name exist.
func TestMakeTargets(t *testing.T) {
	rules := "\n" + read(t, "Makefile").text
	for _, page := range prose(t) {
		for _, match := range makeTarget.FindAllStringSubmatch(page.text, -1) {
			if !strings.Contains(rules, "\n"+match[1]+":") {
				t.Errorf("%s names make %s, which the Makefile does not have", page.path, match[1])
			}
		}
	}
}

// TestReadmeIsShort limits README.md, which is for newcomers. The reference is in docs.
func TestReadmeIsShort(t *testing.T) {
	const most = 150
	if lines := strings.Count(read(t, "README.md").text, "\n"); lines > most {
		t.Errorf("README.md has %d lines, at most %d: move reference material to docs", lines, most)
	}
}

// TestChangelogIsShort limits what CHANGELOG.md says of a version that is not released: one line a change that a reader
// must know of.
func TestChangelogIsShort(t *testing.T) {
	const most = 40
	_, unreleased, found := strings.Cut(read(t, "CHANGELOG.md").text, "## [Unreleased]\n")
	unreleased, _, ended := strings.Cut(unreleased, "\n## [")
	if lines := strings.Count(unreleased, "\n") + 1; !found || !ended || lines > most {
		t.Errorf("CHANGELOG.md has %d lines on what is not released, at most %d", lines, most)
	}
}

// TestWayOfClick checks that the files of docs/architecture.md have the functions that a click goes through.
func TestWayOfClick(t *testing.T) {
	_, way, found := strings.Cut(read(t, "docs/architecture.md").text, "## The way of a click\n")
	way, _, ended := strings.Cut(way, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+\\.go)` \\| ([^|]+) \\|").FindAllStringSubmatch(way, -1)
	if !found || !ended || len(rows) == 0 {
		t.Fatal("docs/architecture.md does not say how a click goes")
	}
	for _, row := range rows {
		source := read(t, row[1]).text
		for _, name := range strings.Split(strings.Trim(row[2], "` "), "`, `") {
			if !regexp.MustCompile(`(?m)^func (\(\w+ \*?\w+\) )?` + name + `\(`).MatchString(source) {
				t.Errorf("%s has no function %s", row[1], name)
			}
		}
	}
}

// TestDocumentsAreShort limits documents in words, so that what is added replaces something.
func TestDocumentsAreShort(t *testing.T) {
	for name, most := range map[string]int{"RATIONALE.md": 6000, "docs/architecture.md": 1200} {
		if words := len(strings.Fields(read(t, name).text)); words > most {
			t.Errorf("%s has %d words, at most %d: remove what only retells code, or what no longer holds", name, words, most)
		}
	}
}

// TestProseIsNarrow limits lines of the manual to the width of code. Tables, code and comments may be wider.
func TestProseIsNarrow(t *testing.T) {
	for _, page := range prose(t) {
		for line := range strings.Lines(withoutCode(page.text)) {
			if columns := utf8.RuneCountInString(strings.TrimRight(line, "\n")); columns > maxColumns &&
				!strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "<!--") {
				t.Errorf("%s: this line has %d columns, at most %d:\n%s", page.path, columns, maxColumns, line)
			}
		}
	}
}

// TestPolicyIsDocumented checks that docs/policy.md has every key of a policy.
func TestPolicyIsDocumented(t *testing.T) {
	type object struct {
		Properties           map[string]json.RawMessage
		AdditionalProperties json.RawMessage
	}
	var schema object
	if err := json.Unmarshal([]byte(read(t, "host/policy/schema.json").text), &schema); err != nil {
		t.Fatal(err)
	}
	page := read(t, "docs/policy.md").text
	keys := 0
	var walk func(object)
	walk = func(o object) {
		for key, raw := range o.Properties {
			keys++
			if !regexp.MustCompile("[`.[\n]" + key + "([`\\].]| =)").MatchString(page) {
				t.Errorf("docs/policy.md does not have the key %s of host/policy/schema.json", key)
			}
			var below object
			if json.Unmarshal(raw, &below) == nil {
				walk(below)
			}
		}
		var below object // of a table whose keys are names
		if json.Unmarshal(o.AdditionalProperties, &below) == nil {
			walk(below)
		}
	}
	walk(schema)
	if keys < 20 {
		t.Errorf("only %d keys were found in the schema", keys)
	}
}

// TestApprovalsAreDocumented checks that docs/policy.md has a row for each kind of approval.
func TestApprovalsAreDocumented(t *testing.T) {
	page := read(t, "docs/policy.md").text
	kinds := regexp.MustCompile(`Kind = "(\w+)"`).FindAllStringSubmatch(read(t, "host/approval/approval.go").text, -1)
	if len(kinds) < 3 {
		t.Fatalf("host/approval has the kinds %v", kinds)
	}
	for _, kind := range kinds {
		if !strings.Contains(page, "\n| `"+kind[1]+"` |") {
			t.Errorf("docs/policy.md has no row for approvals of the kind %s", kind[1])
		}
	}
}

// TestServiceKeysAreDocumented checks that deploy/parleyd.toml or docs/fleet.md has each key of the configuration of
// parleyd.
func TestServiceKeysAreDocumented(t *testing.T) {
	shown := read(t, "deploy/parleyd.toml").text + read(t, "docs/fleet.md").text
	found := 0
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.dir, "cmd/parleyd/internal/") || s.test {
			continue
		}
		for _, tag := range regexp.MustCompile(`toml:"([a-z_]+)`).FindAllStringSubmatch(string(s.text), -1) {
			found++
			if !regexp.MustCompile(`(?m)^ *(# )?(\[+(\w+\.)*` + tag[1] + `\]|` + tag[1] + ` =)`).MatchString(shown) {
				t.Errorf("neither deploy/parleyd.toml nor docs/fleet.md has the key %s of %s", tag[1], s.path)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d keys were found", found)
	}
}

// commandWords matches the words of a command before its arguments.
var commandWords = regexp.MustCompile(`^[a-z]+( [a-z]+)*`)

// TestCommandsAreDocumented checks that the documents name each command: as `parley GROUP NAME`, or by its last word in
// a paragraph about its group.
func TestCommandsAreDocumented(t *testing.T) {
	out := output(t, filepath.Join(binaryFolder(t), executable()), t.TempDir(), "", "--help", "--json", "--full")
	var help struct{ Commands []struct{ Name string } }
	if err := json.Unmarshal([]byte(out), &help); err != nil || len(help.Commands) < 50 {
		t.Fatalf("parley --help --json --full: %v, %d commands", err, len(help.Commands))
	}
	var paragraphs []string
	for _, page := range manual(t) {
		paragraphs = append(paragraphs, strings.Split(page.text, "\n\n")...)
	}
	for _, command := range help.Commands {
		words := commandWords.FindString(command.Name)
		group, name, _ := strings.Cut(words, " ")
		whole := regexp.MustCompile(`\b` + words + `\b`)
		if !slices.ContainsFunc(paragraphs, func(p string) bool {
			return whole.MatchString(strings.ReplaceAll(p, "\n", " ")) ||
				name != "" && strings.Contains(p, group) && strings.Contains(p, "`"+name)
		}) {
			t.Errorf("neither README.md nor docs names the command %s", command.Name)
		}
	}
}

// environment matches the variables that code reads by name.
var environment = regexp.MustCompile(`(?:Getenv|LookupEnv|\.Env)\("([A-Z_]+)"\)`)

// TestVariablesAreDocumented checks that docs/files.md names the variables that Parley reads, except those of the Go
// runtime.
func TestVariablesAreDocumented(t *testing.T) {
	page := read(t, "docs/files.md").text
	parts := regexp.MustCompile(`^(cdp|cmd/parley|host|manifest)(/|$)`)
	found := 0
	for _, s := range sources(t) {
		if s.test || !parts.MatchString(s.dir) {
			continue
		}
		for _, match := range environment.FindAllStringSubmatch(string(s.text), -1) {
			found++
			if match[1] != "GOGC" && !strings.Contains(page, match[1]) {
				t.Errorf("%s reads %s, which docs/files.md does not name", s.path, match[1])
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d variables were found", found)
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

// TestEveryDependencyHasAReason checks that RATIONALE.md argues for every direct requirement.
func TestEveryDependencyHasAReason(t *testing.T) {
	rationale := read(t, "RATIONALE.md").text
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
		if !strings.Contains(rationale, "`"+dependency+"`") {
			t.Errorf("RATIONALE.md does not say why %s is required", dependency)
		}
	}
}

// TestClientSnippets compares the client configurations of docs/mcp.md with the output of parley mcp config, and starts
// a server with each. It also loads the block of Parley's own configuration.
func TestClientSnippets(t *testing.T) {
	shown := 0
	binary := filepath.Join(binaryFolder(t), executable())
	for _, block := range blocks(read(t, "docs/mcp.md").text) {
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
			t.Errorf("parley %s prints\n%s\ndocs/mcp.md shows\n%s", strings.Join(args, " "), got, block.text)
		}
		if said := output(t, binary, home, hello, serve...); !strings.Contains(said, `"name":"search_tools"`) {
			t.Errorf("parley %s lists no tools: %s", strings.Join(serve, " "), said)
		}
	}
	if shown != 4 {
		t.Errorf("docs/mcp.md shows %d snippets, expected those of 3 clients and one of config.toml", shown)
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
