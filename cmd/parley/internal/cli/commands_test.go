package cli

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host/commandline"
	"github.com/parley-tools/parley/internal/foreign"
	"github.com/parley-tools/parley/internal/testhome"
)

// noted are options that change nothing in Parley: it always does so.
var noted = []string{"requests --static"}

// TestCommandsOfPeers types the commands of other products. testdata/commands.txt says after "->" what is offered: the
// command line, "own" if it is one of Parley's, or "-" if nothing is. It names every command of the products' help.
func TestCommandsOfPeers(t *testing.T) {
	offer, lines := typist(t), strings.Split(string(readTestdata(t, "commands.txt")), "\n")
	offered := 0
	for i, line := range lines {
		given, want, _ := strings.Cut(line, " -> ")
		words, ok := commandline.Words(given)
		if !ok || len(words) < 2 || words[0] == "#" {
			continue
		}
		got := offer(words[1:]...)
		if lines[i] = given + " -> " + got; got != want {
			t.Errorf("line %d: %s is offered %s, want %s", i+1, given, got, want)
		}
		offered += command.Either(isCall(got), 1, 0)
	}
	if path := os.Getenv("WRITE_PEERS"); path != "" {
		_ = os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600)
	}
	if t.Logf("%d lines, %d offered", len(lines), offered); offered < 250 {
		t.Errorf("only %d calls are offered", offered)
	}
	isNamed := func(command string) bool {
		return slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, command+" ") })
	}
	t.Run("playwright-cli", func(t *testing.T) {
		modules := foreign.ForTest(t, "../../../..")
		raw, err := os.ReadFile(filepath.Join(modules, "playwright-core/lib/tools/cli-client/help.json"))
		var help struct {
			Commands map[string]struct {
				Args  []string
				Flags map[string]string
			}
		}
		if err != nil || json.Unmarshal(raw, &help) != nil || len(help.Commands) < 80 {
			t.Fatal(err, len(help.Commands))
		}
		for name, c := range help.Commands {
			if !isNamed("playwright-cli " + name) {
				t.Errorf("testdata/commands.txt does not name playwright-cli %s", name)
			}
			plain := []string{name}
			for _, arg := range c.Args {
				isNumber := slices.Contains([]string{"x", "y", "w", "h", "dx", "dy", "index"}, arg)
				plain = append(plain, command.Either(isNumber, "37", arg+"-7"))
			}
			for flag, kind := range c.Flags {
				for _, value := range []string{"412", "word7", "true"} {
					typed := append(slices.Clone(plain), "--"+flag)
					if kind == "string" {
						typed = append(typed, value)
					}
					got := offer(typed...)
					isKept := kind == "string" && strings.Contains(got, value) || kind == "boolean" && got != offer(plain...)
					if isCall(got) && !isKept && !slices.Contains(noted, name+" --"+flag) {
						t.Errorf("%q is offered %s", typed, got)
					}
				}
			}
		}
	})
	t.Run("agent-browser", func(t *testing.T) {
		program := "../../../../bench/peers/node_modules/.bin/agent-browser"
		if _, err := os.Stat(program); err != nil {
			t.Skip(err) // 116 MB, which only the benchmark fetches
		}
		help, err := exec.Command(program, "--help").Output()
		commands := commandsIn(string(help))
		if err != nil || len(commands) < 100 {
			t.Fatal(err, commands)
		}
		for _, c := range commands {
			if !isNamed("agent-browser " + c) {
				t.Errorf("testdata/commands.txt does not name agent-browser %s", c)
			}
		}
	})
}

// isCall reports whether what is offered is a call.
func isCall(offered string) bool {
	return offered != "own" && offered != "-" && !strings.HasSuffix(offered, " --describe")
}

// typist returns a function that says what is offered for a command line.
func typist(t *testing.T) func(words ...string) string {
	home := testhome.New(t)
	a := newFront(&command.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard,
		Env: func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }}, nil)
	t.Cleanup(a.Close)
	a.Failing = true
	return func(words ...string) string {
		f := &front{App: a, offered: map[string]*parsedLine{}}
		a.Args, a.Offers = words, f.offers
		if step := f.meant(); step != nil {
			return strings.TrimPrefix(a.Command(*step), "parley ")
		} else if _, ok := f.parse(words); ok {
			return "own"
		}
		return "-"
	}
}

var (
	group   = regexp.MustCompile(`^[A-Z][\w ]*:  agent-browser (\w+) <`)
	entry   = regexp.MustCompile(`^  ([a-z].*?)(?:  |$)`)
	literal = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// commandsIn returns the commands that the help of agent-browser lists: each line is one, and a line after the use of a
// group has several.
func commandsIn(help string) (all []string) {
	help, _, _ = strings.Cut(help, "\nSnapshot Options:")
	_, help, _ = strings.Cut(help, "\n  skills [list]")
	before := ""
	for line := range strings.Lines(help) {
		found := entry.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch in := group.FindStringSubmatch(line); {
		case in != nil:
			before = in[1] + " "
			continue
		case found == nil:
			before = command.Either(strings.TrimSpace(line) == "", "", before)
			continue
		case before == "" && !strings.Contains(found[0][2:], "  ") && !strings.ContainsAny(found[0], "<["):
			continue // a sentence
		case before != "":
			found = append(found[:1], strings.Split(found[1], ", ")...)
		}
		for _, use := range found[1:] {
			names := []string{before}
			for word := range strings.FieldsSeq(use) {
				options := strings.Split(strings.Trim(word, "[]"), "|")
				if isChoice := literal.MatchString(word) || len(options) > 1 && word[0] != '<'; !isChoice {
					break
				}
				var longer []string
				for _, option := range options {
					for _, name := range names {
						if literal.MatchString(option) {
							longer = append(longer, name+option+" ")
						}
					}
				}
				names = longer
			}
			for _, name := range names {
				all = append(all, strings.TrimSpace(name))
			}
		}
	}
	return all
}
