package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host/commandline"
	"github.com/parley-tools/parley/internal/testhome"
)

// TestOtherWords types, in each group of commands, every word by which people know one of its commands. The error names
// this command, and offers its help or a line that runs it.
func TestOtherWords(t *testing.T) {
	home, known := testhome.New(t), 0
	options := map[string][]string{"mcp": {"--client", "cursor"}} // which mcp alone does not have
	for line := range strings.Lines(everyday) {
		name, words, _ := strings.Cut(strings.TrimSpace(line), ":")
		group, _, isIn := strings.Cut(name, " ")
		if !isIn || group == "cdp" {
			continue
		}
		for _, word := range strings.Fields(strings.Replace(words, "|", "", 1)) {
			if !slices.Equal(leadsTo(group, word), []string{name}) {
				t.Errorf("%s %s does not lead to %s", group, word, name)
			}
			known++
		}
		word := strings.Fields(strings.Replace(words, "|", "", 1))[0]
		said, code := fail(home, append([]string{group, word}, options[group]...)...)
		if code != 83 && code != 81 || !strings.Contains(said, "Did you mean:  "+name+"\n") ||
			!slices.ContainsFunc(nextIn([]byte(said)), func(next string) bool { return strings.Contains(next, name) }) {
			t.Errorf("%s %s ends in %d: %s", group, word, code, said)
		}
	}
	if known < 50 {
		t.Errorf("only %d words are known", known)
	}
}

// TestOtherOptions gives each command every option of other programs that means one of its options. The line that is
// offered first has this option, and it parses.
func TestOtherOptions(t *testing.T) {
	home := testhome.New(t)
	root := newRoot(newFront(&command.Streams{Env: envOf(home)}, nil), nil)
	values := map[string]string{"limit": "5", "since": "1h", "docs": "full", "out": "result.txt"}
	for line := range strings.Lines(otherOptions) {
		name, others, _ := strings.Cut(strings.TrimSpace(line), ":")
		for _, lead := range []string{"text hash hello", "search cookie", "trace list", "audit show", "mcp"} {
			at, _, err := root.Find(strings.Fields(lead))
			if err != nil || name != "-" && at.Flag(name) == nil {
				continue
			}
			for _, other := range strings.Fields(others) {
				option, value, _ := strings.Cut(other, "=")
				option = strings.Repeat("-", min(len(option), 2)) + option
				if at.Flag(strings.TrimLeft(option, "-")) != nil {
					continue
				}
				args := append(strings.Fields(lead), option)
				if value = values[name] + value; value != "" {
					args = append(args, value)
				}
				said, code := fail(home, args...)
				next := append(nextIn([]byte(said)), "")[0]
				words, _ := commandline.Words(next)
				isOwn := name == "-" && slices.Equal(words, append([]string{"parley"}, strings.Fields(lead)...))
				if code != 81 || !isOwn && !slices.Contains(words, "--"+name) {
					t.Errorf("%q ends in %d: %s", args, code, said)
				}
			}
		}
	}
}

// fail runs a command line and returns what it said on the standard error, and its exit code.
func fail(home string, args ...string) (said string, code int) {
	var out, errs bytes.Buffer
	code = Main(args, &command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Env: envOf(home)})
	return errs.String(), code
}

func envOf(home string) func(string) string {
	return func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }
}
