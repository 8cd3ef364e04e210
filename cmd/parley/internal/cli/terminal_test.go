package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host/search"
)

// TestColours: errors are coloured on a terminal only, and not with NO_COLOR or on a dumb terminal.
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
			s := &command.Streams{ErrTTY: c.tty, OutTTY: c.tty, Width: 80, Env: func(name string) string { return c.env[name] }}
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
	for _, args := range [][]string{
		{"text", "hash", "--describe", "--json"}, {"--list", "--json"}, {"--help", "--json"}, {"version", "--json"},
	} {
		out, _, _ := withStreams(t, &command.Streams{OutTTY: true, Width: 100}, args...)
		if !strings.HasPrefix(out, "{\n  \"") {
			t.Errorf("on a terminal: %.60q", out)
		}
		out, _, _ = inProcess(t, args...)
		if strings.Count(out, "\n") != 1 {
			t.Errorf("in a pipe: %d lines", strings.Count(out, "\n"))
		}
	}
}

// TestPages compares pages for people with golden files, by width, with and without colours: documentation and a
// search. With -update it writes the files.
func TestPages(t *testing.T) {
	for name, args := range map[string][]string{
		"describe": {"json", "query", "--describe", "--tier", "3"},
		"command":  {"cdp", "Page.captureScreenshot", "--describe"},
		"help":     {"--help"},
		"search":   {"search", "text", "--plugin", "text", "--limit", "3", "--detail", "signatures"},
	} {
		for _, width := range []int{80, 120} {
			for mode, noColor := range map[string]string{"color": "", "plain": "1"} {
				file := fmt.Sprintf("%s-%d-%s.txt", name, width, mode)
				t.Run(file, func(t *testing.T) {
					s := &command.Streams{OutTTY: true, Width: width, Env: func(name string) string {
						return map[string]string{"NO_COLOR": noColor}[name]
					}}
					out, errs, code := withStreams(t, s, args...)
					if code != 0 || errs != "" {
						t.Fatalf("exit code %d: %s", code, errs)
					}
					path := filepath.Join("testdata", "page", file)
					if *update {
						if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
							t.Fatal(err)
						}
					}
					want, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					if out != string(want) {
						t.Errorf("%s differs; run with -update and read the diff. The page is\n%s", path, out)
					}
					checkWidth(t, args, out, width)
				})
			}
		}
	}
}

// TestHelpForPeople checks that the help at a terminal has each command once, with the words that follow it.
func TestHelpForPeople(t *testing.T) {
	page, _, _ := withStreams(t, &command.Streams{OutTTY: true, Width: 100, Env: func(name string) string {
		return map[string]string{"NO_COLOR": "1"}[name]
	}}, "--help")
	raw, _, _ := inProcess(t, "--help", "--json")
	var help struct{ Commands []struct{ Name string } }
	if err := json.Unmarshal([]byte(raw), &help); err != nil || len(help.Commands) < 20 {
		t.Fatalf("%d commands, %v", len(help.Commands), err)
	}
	for _, c := range help.Commands[1:] { // after the use of a plugin
		if n := strings.Count(page, "\n  "+c.Name+"  "); n != 1 {
			t.Errorf("%s is there %d times:\n%s", c.Name, n, page)
		}
	}
}

var update = flag.Bool("update", false, "write the golden pages")

// TestPageStreams: stdout has colours only if it is a terminal itself, regardless of stderr. In a pipe and with --json,
// documentation is JSON.
func TestPageStreams(t *testing.T) {
	dumb := func(name string) string { return map[string]string{"TERM": "dumb"}[name] }
	for _, args := range [][]string{
		{"text", "hash", "--describe"}, {"search", "hash"}, {"text", "--list"}, {"text", "--help"},
	} {
		for _, c := range []struct {
			s     *command.Streams
			color bool
		}{
			{&command.Streams{OutTTY: true, Width: 80}, true},
			{&command.Streams{ErrTTY: true}, false},
			{&command.Streams{OutTTY: true, Width: 80, Env: dumb}, false},
		} {
			out, _, _ := withStreams(t, c.s, args...)
			if got := strings.Contains(out, "\x1b["); got != c.color {
				t.Errorf("parley %s: coloured is %v: %q", strings.Join(args, " "), got, out)
			}
		}
	}
	want, _, _ := inProcess(t, "text", "hash", "--describe")
	got, _, _ := withStreams(t, &command.Streams{OutTTY: true, Width: 80}, "text", "hash", "--describe", "--json")
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(got)); err != nil || compact.String() != strings.TrimSpace(want) {
		t.Errorf("%v: with --json on a terminal: %s", err, got)
	}
}

var sequences = regexp.MustCompile("\x1b\\[[0-9]*m")

// checkWidth checks that lines fit the terminal, except commands, which are not wrapped.
func checkWidth(t *testing.T, args []string, out string, width int) {
	t.Helper()
	for _, line := range strings.Split(sequences.ReplaceAllString(out, ""), "\n") {
		command := strings.HasPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "parley ") ||
			strings.Contains(line, ": parley ")
		if n := len([]rune(line)); n > width && !command {
			t.Errorf("parley %s in %d columns: a line of %d: %s", strings.Join(args, " "), width, n, line)
		}
	}
}

// TestNarrowTerminal: text fits the width of the terminal, and uses it.
func TestNarrowTerminal(t *testing.T) {
	for _, args := range [][]string{
		{}, {"--help"}, {"--list"}, {"text", "--list"}, {"json", "--list"}, {"cdp", "--list"}, {"cdp", "Network", "--list"},
		{"search", "cookie"}, {"search", "cookie", "--detail", "full"},
		{"search", "take a picture", "--detail", "signatures"},
		{"cdp", "Page.navigate", "--describe", "--tier", "3"}, {"cdp", "--help"}, {"cdp", "Page.navigate", "--help"},
		{"plugin", "show", "text"},
	} {
		for width, limit := range map[int]int{80: 80, 60: 80, 120: 120} {
			out, _, _ := withStreams(t, &command.Streams{OutTTY: true, Width: width}, args...)
			checkWidth(t, args, out, limit)
		}
	}
	wide, _, _ := withStreams(t, &command.Streams{OutTTY: true, Width: 140}, "cdp", "Network", "--list")
	if strings.Contains(wide, "… [") {
		t.Errorf("a brief is truncated in 140 columns: %s", wide)
	}
}

// TestBriefsInAPipe: in a pipe the brief of a result or a tool is not truncated, however long its line becomes.
func TestBriefsInAPipe(t *testing.T) {
	out, _, _ := inProcess(t, "search", "take a picture", "--json")
	var found struct{ Data search.Data }
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found.Data.Results) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	text, _, _ := inProcess(t, "search", "take a picture")
	for _, r := range found.Data.Results {
		if !strings.Contains(text, "  "+r.Brief+" (") {
			t.Errorf("the brief of %s is truncated: %q", r.Name, r.Brief)
		}
	}
	for _, args := range [][]string{{"--list"}, {"text", "--list"}, {"json", "--list"}} {
		if text, _, _ := inProcess(t, args...); strings.Contains(strings.ReplaceAll(text, ", …)", ""), "… ") {
			t.Errorf("parley %s truncates a brief: %s", strings.Join(args, " "), text)
		}
	}
}

// TestErrorsFit: errors fit 80 columns in a pipe.
func TestErrorsFit(t *testing.T) {
	for _, args := range [][]string{
		{"text", "hash"}, {"text", "hash", "--params", `{"text":"a","algorithm":"x"}`},
		{"cdp", "Network.getCokies"}, {"cdp", "Page.captureScreenshot", "--param", "x=1"},
	} {
		_, errs, _ := inProcess(t, args...)
		for _, line := range strings.Split(errs, "\n") {
			if n := len([]rune(line)); n > 80 && !strings.Contains(line, "parley ") { // a command is not wrapped
				t.Errorf("parley %s: a line of %d: %s", strings.Join(args, " "), n, line)
			}
		}
	}
}
