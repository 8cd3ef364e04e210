package cli

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host/commandline"
	"github.com/parley-tools/parley/internal/testhome"
)

//go:generate go test -run TestShippedSkills|TestCommandsAreReserved -update .

// shippedSkills is the folder with the skills, llms.txt and AGENTS.md of the shipped plugins.
var shippedSkills = filepath.Join("..", "..", "..", "..", "docs", "skills")

// TestShippedSkills compares docs/skills with what parley docs export writes. With -update it writes the folder.
func TestShippedSkills(t *testing.T) {
	out := t.TempDir()
	if *update {
		if err := os.RemoveAll(shippedSkills); err != nil {
			t.Fatal(err)
		}
		out = shippedSkills
	}
	run := inHome(testhome.New(t))
	for _, format := range []string{"llms", "agents"} {
		if _, errs, code := run("docs", "export", "--format", format, "--out", out); code != 0 {
			t.Fatal(format, code, errs)
		}
	}
	want, got := textsBelow(t, out), textsBelow(t, shippedSkills)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("docs/skills/%s is not what the manifests make; run make generate", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("docs/skills/%s is not exported any more; run make generate", name)
	}
}

// skillLink matches the target of a link in a skill or in llms.txt.
var skillLink = regexp.MustCompile(`\]\(([^)]+)\)`)

// skillCommand matches a command of an exported text: a line of a code block, or an example.
var skillCommand = regexp.MustCompile(`(?m)^(?:Example: )?(parley .*)$`)

// TestSkillsWork follows the links of docs/skills, and runs its commands: searches and descriptions as they are,
// and calls as dry runs. The search that begins a walk finds the tool of its next command first.
func TestSkillsWork(t *testing.T) {
	run := inHome(testhome.New(t))
	texts := textsBelow(t, shippedSkills)
	uploaded := filepath.Join(t.TempDir(), "cv.pdf")
	if err := os.WriteFile(uploaded, []byte("%PDF"), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := map[string]string{} // what a command has printed
	for name, text := range texts {
		for _, m := range skillLink.FindAllStringSubmatch(text, -1) {
			if texts[path.Join(path.Dir(name), m[1])] == "" {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			}
		}
		searched := ""
		for _, m := range skillCommand.FindAllStringSubmatch(text, -1) {
			words, ok := commandline.Words(strings.ReplaceAll(m[1], "/srv/cv.pdf", filepath.ToSlash(uploaded)))
			if !ok {
				t.Errorf("%s: not a line of a shell: %s", name, m[1])
				continue
			}
			if searched != "" && !strings.HasPrefix(ran[searched], strings.Join(words[1:3], ".")) {
				t.Errorf("%s: %s does not find %v first: %s", name, searched, words[1:3], ran[searched])
			}
			if searched = ""; strings.Contains(m[1], "search ") {
				searched = m[1]
			}
			if _, seen := ran[m[1]]; seen {
				continue
			}
			if words = words[1:]; searched == "" && !slices.ContainsFunc(words, discovery.MatchString) {
				words = append(words, "--dry-run")
			}
			printed, errs, code := run(words...)
			if ran[m[1]] = printed; code != 0 {
				t.Errorf("%s: %s ends in %d: %s", name, m[1], code, errs)
			}
		}
	}
	if len(ran) < 60 {
		t.Errorf("only %d commands were found", len(ran))
	}
}

// inHome returns a function that runs command lines in a data folder.
func inHome(home string) func(args ...string) (out, errs string, code int) {
	env := func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }
	return func(args ...string) (out, errs string, code int) {
		var o, e strings.Builder
		code = Main(args, &command.Streams{In: strings.NewReader(""), Out: &o, Err: &e, Env: env})
		return o.String(), e.String(), code
	}
}

// textsBelow returns the files below a folder by their paths with slashes.
func textsBelow(t *testing.T, folder string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	root := os.DirFS(folder)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		texts[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}
