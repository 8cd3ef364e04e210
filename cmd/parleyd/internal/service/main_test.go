package service

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommandLines checks the exit codes and errors of invalid command lines, and that an error says what to do next.
func TestCommandLines(t *testing.T) {
	faulty := filepath.Join(t.TempDir(), "parleyd.toml")
	if err := os.WriteFile(faulty, []byte("listen = []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"frob":                        "expected serve, check",
		"serve --bogus":               "unknown option --bogus; expected --config",
		"worker --config":             "a value is missing after --config",
		"check x":                     `got "x", expected --config`,
		"check --config /nope":        "Tip: write one, as deploy/parleyd.toml shows",
		"check --config " + faulty:    "Tip: edit " + faulty,
		"worker --config " + faulty:   "Tip: edit " + faulty,
		"fleet explain --slots=1 x.y": "unknown option --slots",
	} {
		var out, errs bytes.Buffer
		code := Main(strings.Fields(line), &out, &errs)
		text := errs.String()
		if code != 81 && code != 88 || !strings.Contains(text, want) || strings.Contains(text, "flag ") || out.Len() > 0 {
			t.Errorf("parleyd %s: %d, %s%s; expected %q", line, code, &out, text, want)
		}
	}
}

// TestHelp checks that each command that the help names has help itself, which names the command.
func TestHelp(t *testing.T) {
	commands := regexp.MustCompile(`(?m)^  (parleyd(?: [a-z]+)+)`).FindAllStringSubmatch(usage+fleetUsage, -1)
	if len(commands) < 9 {
		t.Fatal("the help has only the commands ", commands)
	}
	for _, c := range commands {
		for _, option := range []string{"--help", "-h"} {
			var out, errs bytes.Buffer
			if code := Main(append(strings.Fields(c[1])[1:], option), &out, &errs); code != 0 || errs.Len() > 0 ||
				!strings.Contains(out.String(), c[1]) {
				t.Errorf("%s %s: %d, %s%s", c[1], option, code, &out, &errs)
			}
		}
	}
}
