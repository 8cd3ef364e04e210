package cli

import (
	"strings"
	"testing"
)

// TestColours: errors are coloured on a terminal only, and not where NO_COLOR or a dumb terminal asks for none.
func TestColours(t *testing.T) {
	for _, c := range []struct {
		name  string
		tty   bool
		env   map[string]string
		color bool
	}{
		{"pipe", false, nil, false},
		{"terminal", true, nil, true},
		{"NO_COLOR", true, map[string]string{"NO_COLOR": "1"}, false},
		{"empty NO_COLOR", true, map[string]string{"NO_COLOR": ""}, true},
		{"dumb terminal", true, map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Streams{ErrTTY: c.tty, OutTTY: c.tty, Width: 80, Env: func(name string) string { return c.env[name] }}
			for _, args := range [][]string{{"serch"}, {"text", "hash"}} {
				_, errs, _ := withStreams(t, s, args...)
				if got := strings.Contains(errs, "\x1b["); got != c.color {
					t.Errorf("parley %s: coloured is %v: %q", strings.Join(args, " "), got, errs)
				}
			}
		})
	}
}

// TestDocumentsOnATerminal: JSON is indented on a terminal and one line in a pipe.
func TestDocumentsOnATerminal(t *testing.T) {
	for _, args := range [][]string{{"text", "hash", "--describe"}, {"--list", "--json"}, {"--help", "--json"}, {"version", "--json"}} {
		out, _, _ := withStreams(t, &Streams{OutTTY: true, Width: 100}, args...)
		if !strings.HasPrefix(out, "{\n  \"") {
			t.Errorf("on a terminal: %.60q", out)
		}
		out, _, _ = inProcess(t, args...)
		if strings.Count(out, "\n") != 1 {
			t.Errorf("in a pipe: %d lines", strings.Count(out, "\n"))
		}
	}
}

// TestNarrowTerminal: text fits the terminal that it is written to.
func TestNarrowTerminal(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"--list"}, {"text", "--list"}, {"json", "--list"}, {"cdp", "--list"}, {"search", "cookie"}, {"plugin", "show", "text"}} {
		for width, limit := range map[int]int{0: 80, 80: 80, 60: 80, 120: 120} {
			out, _, _ := withStreams(t, &Streams{OutTTY: width > 0, Width: width}, args...)
			for _, line := range strings.Split(out, "\n") {
				if n := len([]rune(line)); n > limit {
					t.Errorf("parley %s in %d columns: a line of %d: %s", strings.Join(args, " "), width, n, line)
				}
			}
		}
	}
	for _, args := range [][]string{{"text", "hash"}, {"text", "hash", "--params", `{"text":"a","algorithm":"x"}`}, {"cdp", "Network.getCokies"}, {"cdp", "Page.captureScreenshot", "--param", "x=1"}} {
		_, errs, _ := inProcess(t, args...)
		for _, line := range strings.Split(errs, "\n") {
			if n := len([]rune(line)); n > 80 && !strings.Contains(line, "parley ") { // a command is not broken
				t.Errorf("parley %s: a line of %d: %s", strings.Join(args, " "), n, line)
			}
		}
	}
}
