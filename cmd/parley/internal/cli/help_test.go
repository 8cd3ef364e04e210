package cli

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/tools"
	"github.com/parley-tools/parley/host"
)

// inProcess runs one command line in this process, with its own home.
func inProcess(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return withStreams(t, &command.Streams{}, args...)
}

// withStreams is inProcess with streams that may be declared a terminal.
func withStreams(t *testing.T, s *command.Streams, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	home := t.TempDir()
	env := s.Env
	s.Env = func(name string) string {
		if env != nil && env(name) != "" {
			return env(name)
		}
		return map[string]string{"PARLEY_HOME": home}[name]
	}
	var out, errs strings.Builder
	s.In, s.Out, s.Err = strings.NewReader(""), &out, &errs
	code = Main(args, s)
	return out.String(), errs.String(), code
}

// known is the content of a form of help: the options of each command, and the exit codes.
type known struct {
	commands map[string][]string
	exits    []string
}

// knownByTree returns what exists: the commands and options that the program accepts, and the exit codes of the host.
func knownByTree(depth int) known {
	k := known{commands: map[string][]string{}, exits: []string{"2-79"}}
	var walk func(cmd *cobra.Command, depth int)
	walk = func(cmd *cobra.Command, depth int) {
		options := []string{}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				options = append(options, "--"+f.Name)
			}
		})
		slices.Sort(options)
		k.commands[strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "parley"), " ")] = options
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && depth > 0 {
				walk(c, depth-1)
			}
		}
	}
	walk(newRoot(newFront(&command.Streams{Env: func(string) string { return "" }}, nil), nil), depth)
	for _, o := range host.Outcomes() {
		k.exits = append(k.exits, strconv.Itoa(o.Exit))
	}
	return k
}

func knownByJSON(t *testing.T, text string) known {
	t.Helper()
	var doc tools.HelpData
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	k := known{commands: map[string][]string{}, exits: slices.Collect(maps.Keys(doc.ExitCodes))}
	for _, c := range doc.Commands {
		options := []string{}
		for _, o := range c.Options {
			if strings.HasPrefix(o.Name, "--") {
				options = append(options, o.Name)
			}
		}
		options = append(options, c.More...)
		slices.Sort(options)
		k.commands[words(c.Name)] = options
	}
	return k
}

var (
	heading  = regexp.MustCompile(`^(?:  )?parley ([A-Za-z].*)$`)
	option   = regexp.MustCompile(`--[a-z][a-z-]*`)
	exitLine = regexp.MustCompile(`^  (\d+(?:-\d+)?) +\S`)
)

// knownByText parses help for people: a heading for each command with its options below, and the exit codes.
func knownByText(text string) known {
	k := known{commands: map[string][]string{}}
	text, rest, _ := strings.Cut(text, "\nExit codes:\n")
	_, text, _ = strings.Cut(text, "\n\n") // the first lines describe parley
	name, at := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := heading.FindStringSubmatch(line); m != nil {
			name, at = words(m[1]), true
			k.commands[name] = []string{}
		} else if at && strings.HasPrefix(line, "    ") {
			found := option.FindAllString(line, -1)
			if !strings.HasPrefix(strings.TrimSpace(line), "also:") && !strings.HasPrefix(line, "          ") {
				found = found[:min(1, len(found))] // the others are in its description
				if !strings.HasPrefix(strings.TrimSpace(line), "--") {
					found = nil
				}
			}
			k.commands[name] = append(k.commands[name], found...)
		}
	}
	for _, options := range k.commands {
		slices.Sort(options)
	}
	for line := range strings.Lines(rest) {
		if m := exitLine.FindStringSubmatch(line); m != nil {
			k.exits = append(k.exits, m[1])
		}
	}
	return k
}

// words returns the command that a usage line is about: "plugin install" for "plugin install FILE|DIR".
func words(usage string) string {
	usage, _, _ = strings.Cut(usage, "  ")
	var kept []string
	for _, w := range strings.Fields(usage) {
		if w != strings.ToLower(w) || strings.HasPrefix(w, "[") {
			break
		}
		kept = append(kept, w)
	}
	return strings.Join(kept, " ")
}

// TestHelpIsComplete compares the four forms of help with the commands, options and exit codes that exist, both ways.
func TestHelpIsComplete(t *testing.T) {
	for _, c := range []struct {
		form  string
		args  []string
		depth int
	}{
		{"compact JSON", []string{"--help", "--json"}, 1},
		{"full JSON", []string{"--help", "--json", "--full"}, 2},
		{"compact text", []string{"--help"}, 1},
		{"full text", []string{"--help", "--full"}, 2},
	} {
		t.Run(c.form, func(t *testing.T) {
			out, errs, code := inProcess(t, c.args...)
			if code != 0 || errs != "" {
				t.Fatal(code, errs)
			}
			got := knownByText
			if strings.Contains(c.form, "JSON") {
				got = func(s string) known { return knownByJSON(t, s) }
			}
			want := knownByTree(c.depth)
			if strings.HasPrefix(c.form, "compact") { // the root has the options that others share with it
				for name, options := range want.commands {
					if name != "" {
						want.commands[name] = slices.DeleteFunc(options, func(o string) bool {
							return slices.Contains(want.commands[""], o)
						})
					}
				}
			}
			compareKnown(t, got(out), want)
		})
	}
}

func compareKnown(t *testing.T, got, want known) {
	t.Helper()
	for name, options := range want.commands {
		have, ok := got.commands[name]
		if !ok {
			t.Errorf("the command %q is missing", name)
			continue
		}
		// The full help has those that persons use.
		if len(have) == 0 && slices.Contains([]string{"doctor", "login", "logout", "mcp", "stats"}, name) {
			continue
		}
		if !slices.Equal(slices.Compact(slices.Clone(have)), options) {
			t.Errorf("%q: the help has\n  %v, want\n  %v", name, have, options)
		}
	}
	for name := range got.commands {
		if _, ok := want.commands[name]; !ok {
			t.Errorf("the help has a command %q that does not exist", name)
		}
	}
	slices.Sort(got.exits)
	slices.Sort(want.exits)
	if !slices.Equal(got.exits, want.exits) {
		t.Errorf("the help has the exit codes\n  %v, want\n  %v", got.exits, want.exits)
	}
}

// TestHelpOfEachCommand compares --help of each command, as text and as JSON, with its options.
func TestHelpOfEachCommand(t *testing.T) {
	for name, options := range knownByTree(2).commands {
		if name == "" {
			continue
		}
		args := append(strings.Fields(name), "--help")
		text, _, code := inProcess(t, args...)
		document, _, code2 := inProcess(t, append(args, "--json")...)
		if code != 0 || code2 != 0 {
			t.Errorf("parley %s exits with %d and %d", strings.Join(args, " "), code, code2)
			continue
		}
		for _, o := range options {
			if !strings.Contains(text, o+" ") || !strings.Contains(document, `"`+o+`"`) {
				t.Errorf("parley %s does not have %s", strings.Join(args, " "), o)
			}
		}
		var c tools.CommandHelp
		if err := json.Unmarshal([]byte(document), &c); err != nil || c.Description == "" || len(c.Examples) == 0 {
			t.Errorf("parley %s: %v, description %q, %d examples", strings.Join(args, " "), err, c.Description, len(c.Examples))
		}
	}
}

// TestCommandsAreReserved checks that no plugin can have the name of a command. With -update it reserves them; a name
// stays reserved without its command.
func TestCommandsAreReserved(t *testing.T) {
	const file = "../../../../manifest/reserved.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reserved := strings.Fields(string(text))
	for _, c := range commandTable().All() {
		if !slices.Contains(reserved, c.Name()) {
			reserved = append(reserved, c.Name())
		}
	}
	slices.Sort(reserved)
	want := strings.Join(reserved, "\n") + "\n"
	if *update {
		err = os.WriteFile(file, []byte(want), 0o644)
	} else if string(text) != want {
		t.Errorf("%s lacks commands, so a plugin could have their names: run the test with -update", file)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPartOfTheTree checks that the part of the command tree that is made for a line finds the command that the whole
// tree finds.
func TestPartOfTheTree(t *testing.T) {
	app := newFront(&command.Streams{Env: func(string) string { return "" }}, nil)
	whole := newRoot(app, nil)
	lines := []string{"", "--json", "--list --json", "-h", "--list trace", "--json plugin list", "--session a trace show",
		"text hash a", "text --help", "plgin list", "__complete plugin ''", "-x", "--", "-- plugin list", "help plugin build"}
	for _, c := range commandTable().All() {
		if made := c.New(app).Name(); made != c.Name() {
			t.Errorf("the entry %s makes the command %s", c.Name(), made)
		}
		lines = append(lines, c.Name(), c.Name()+" --help", "--debug "+c.Name())
	}
	for _, child := range whole.Commands() {
		for _, grandchild := range child.Commands() {
			lines = append(lines, strings.TrimPrefix(grandchild.CommandPath(), "parley "))
		}
	}
	for _, line := range lines {
		words := strings.Fields(line)
		want, wantRest, wantErr := whole.Find(words)
		got, rest, err := newRootFor(app, words, nil).Find(words)
		if got.CommandPath() != want.CommandPath() || !slices.Equal(rest, wantRest) || (err == nil) != (wantErr == nil) {
			t.Errorf("%q: %s %q %v, expected %s %q %v", line, got.CommandPath(), rest, err, want.CommandPath(), wantRest,
				wantErr)
		}
	}
}
