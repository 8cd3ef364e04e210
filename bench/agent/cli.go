package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// shell is the frontend of the command line. It only knows in advance that a program has --help, and --json if help
// says so.
type shell struct {
	binary string
	home   string // PARLEY_HOME
	help   help
}

// help is the part of --help --json that the agent uses.
type help struct {
	Commands []struct {
		Name    string
		Options []struct{ Name string }
		More    []string `json:"more_options"`
	}
}

func (s *shell) begin(ctx context.Context) (string, error) {
	a, err := s.run(ctx, "--help", "--json")
	if err != nil || a.failed {
		return "", errors.Join(err, fmt.Errorf("parley --help: %s", a.text))
	}
	if err := json.Unmarshal([]byte(a.text), &s.help); err != nil {
		return "", err
	}
	for _, word := range []string{"search", "call", "--params", "--describe", "--json", "--limit"} {
		if !s.help.names(word) {
			return "", fmt.Errorf("parley --help does not name %s", word)
		}
	}
	return a.text, nil
}

// names reports whether help names a command or an option.
func (h help) names(word string) bool {
	for _, c := range h.Commands {
		if c.Name == word || strings.HasPrefix(c.Name, word+" ") {
			return true
		}
		for _, o := range c.Options {
			c.More = append(c.More, o.Name)
		}
		for _, o := range c.More {
			if o == word {
				return true
			}
		}
	}
	return false
}

// search limits the results to those that the agent will look at, because each costs tokens.
func (s *shell) search(ctx context.Context, want string) (answer, error) {
	return s.run(ctx, "search", want, "--limit", "5", "--json")
}

func (s *shell) describe(ctx context.Context, name string) (answer, error) {
	a, err := s.run(ctx, "call", name, "--describe")
	a.data = json.RawMessage(a.text)
	return a, err
}

func (s *shell) call(ctx context.Context, name string, params json.RawMessage) (answer, error) {
	return s.run(ctx, "call", name, "--params", string(params), "--json")
}

func (s *shell) follow(ctx context.Context, step string) (answer, bool, error) {
	words := strings.Fields(step) // only searches have quoted words
	if len(words) < 2 || words[0] != "parley" || words[1] == "search" || strings.Contains(step, " --describe") ||
		strings.Contains(step, " --list") {
		return answer{}, false, nil
	}
	a, err := s.run(ctx, append(words[1:], "--json")...)
	return a, true, err
}

func (s *shell) close() error { return nil }

// run runs one command. The agent reads its reply on stdout, or on stderr if it failed.
func (s *shell) run(ctx context.Context, args ...string) (a answer, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = tree.Environment(s.home), &stdout, &stderr
	var exit *exec.ExitError
	if err = cmd.Run(); err != nil && !errors.As(err, &exit) {
		return a, err
	}
	a.text, a.failed = stdout.String(), err != nil
	if a.failed {
		a.text = stderr.String()
	}
	var envelope struct {
		Data  json.RawMessage
		Error failure
		Next  []string
	}
	if json.Unmarshal([]byte(a.text), &envelope) == nil {
		a.data, a.err, a.next = envelope.Data, envelope.Error, envelope.Next
	}
	return a, nil
}
