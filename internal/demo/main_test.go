package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestTranscript runs the demo and compares its output with the copy in README.md, except for figures.
func TestTranscript(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	binary, remove, err := build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	needBrowser(t, binary)

	var transcript bytes.Buffer
	d := demo{binary: binary, out: &transcript}
	if err := d.show(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(transcript.Bytes(), []byte("\n")); n > 40 {
		t.Errorf("the demo prints %d lines, at most 40", n)
	}
	_, rest, _ := strings.Cut(string(readme), startMark+"\n```text\n")
	shown, _, ok := strings.Cut(rest, "```\n"+endMark)
	if !ok {
		t.Fatal("README.md has no transcript between its markers")
	}
	if got, want := normalised(transcript.String()), normalised(shown); got != want {
		t.Errorf("the demo prints\n%s\nREADME.md shows\n%s\nrun go run ./internal/demo -update README.md", got, want)
	}
}

// TestFailures checks that the demo fails if a step does.
func TestFailures(t *testing.T) {
	binary, remove, err := build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	d := demo{binary: binary, out: &bytes.Buffer{}, home: t.TempDir()}
	for _, c := range []struct {
		step step
		want string
	}{
		{step{[]string{"text", "nosuch"}, 1, ""}, "exit status 83"},
		{step{[]string{"text", "hash", "hello"}, 1, "not in the answer"}, "want"},
	} {
		if _, err := d.play(t.Context(), c.step); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want an error with %q", c.step.args, err, c.want)
		}
	}
}

// needBrowser skips the test if there is no Chrome. With CI=true that is a failure.
func needBrowser(t *testing.T, binary string) {
	t.Helper()
	cmd := exec.Command(binary, "doctor", "--json")
	cmd.Env = append(os.Environ(), "PARLEY_HOME="+t.TempDir())
	out, _ := cmd.Output() // doctor exits with another code than 0 if it finds a problem
	var answer struct {
		Data struct {
			Checks []struct{ Name, Status, Detail string }
		}
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("parley doctor --json: %v in %s", err, out)
	}
	for _, c := range answer.Data.Checks {
		if c.Name == "chrome" && c.Status == "ok" {
			return
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no browser was found, and nothing may be skipped here; run make setup")
	}
	t.Skip("needs Chromium; run make setup")
}

var figures = []struct {
	find *regexp.Regexp
	say  string
}{
	{regexp.MustCompile(`[0-9A-F]{32}`), "ID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(` *\d+ tokens`), "N tokens"},
	{regexp.MustCompile(` *\d+ ms`), " N ms"},
}

// normalised replaces what differs from run to run.
func normalised(s string) string {
	for _, f := range figures {
		s = f.find.ReplaceAllString(s, f.say)
	}
	return strings.TrimSpace(s)
}
