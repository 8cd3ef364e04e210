package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// tools is what the model can call.
type tools interface {
	// intro is what the model reads at the start: instructions and declarations.
	intro() string
	// call makes a call. outcome is [succeeded], the code of the error, or the exit code of a command.
	call(ctx context.Context, name string, arguments json.RawMessage) (text, outcome string, err error)
	close() error
}

const succeeded = "ok"

func (b *bench) open(ctx context.Context, mode string) (tools, error) {
	if mode == prompt {
		return b.openShell(ctx)
	}
	return b.openServer(ctx, mode)
}

// server is an MCP server of Parley.
type server struct {
	session *mcp.ClientSession
	text    string
	names   map[string]bool
}

func (b *bench) openServer(ctx context.Context, mode string) (*server, error) {
	cmd := exec.Command(b.binary, "mcp", "--docs", mode)
	cmd.Env, cmd.Stderr = tree.Environment(b.home), os.Stderr
	session, err := mcp.NewClient(&mcp.Implementation{Name: "scenarios", Version: "1"}, nil).
		Connect(ctx, &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return nil, err
	}
	s := &server{session: session, names: map[string]bool{}}
	s.text = session.InitializeResult().Instructions + "\n\nTools:\n"
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, errors.Join(err, session.Close())
		}
		raw, err := json.Marshal(t)
		if err != nil {
			return nil, errors.Join(err, session.Close())
		}
		s.text += string(raw) + "\n"
		s.names[t.Name] = true
	}
	return s, nil
}

func (s *server) intro() string { return s.text }

func (s *server) close() error { return s.session.Close() }

func (s *server) call(ctx context.Context, name string, arguments json.RawMessage) (text, outcome string, err error) {
	if !s.names[name] {
		return "there is no such tool in the list", "not listed", nil // as clients with a model do
	}
	params := &mcp.CallToolParams{Name: name}
	if len(arguments) > 0 {
		params.Arguments = arguments
	}
	r, err := s.session.CallTool(ctx, params)
	if err != nil {
		return "", "", err
	}
	var texts []string
	for _, content := range r.Content {
		switch c := content.(type) {
		case *mcp.TextContent:
			texts = append(texts, c.Text)
		case *mcp.ImageContent:
			texts = append(texts, "(a picture, "+c.MIMEType+")")
		}
	}
	text = strings.Join(texts, "\n")
	if !r.IsError {
		return text, succeeded, nil
	}
	var failure struct{ Code string }
	if json.Unmarshal([]byte(texts[0]), &failure) != nil || failure.Code == "" {
		return "", "", fmt.Errorf("%s failed without a code: %s", name, text)
	}
	return text, failure.Code, nil
}

// shell runs commands of Parley, each in a process of its own.
type shell struct {
	bench *bench
	text  string
}

const shellSteps = "\n\nIn a shell the same steps are `parley search \"what you want\"`, " +
	"`parley PLUGIN TOOL --describe` and\n`parley PLUGIN TOOL --params '{...}'`, with `--timeout 2s` to limit the time.\n"

const shellTool = `You have a shell, not the tools themselves. Tools:
{"name": "run", "description": "Run a command, without pipes and redirections; its output ends with the exit code if ` +
	`that is not 0",
"inputSchema": {"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"},
"description": "the program, which is parley, and its arguments"}, "stdin": {"type": "string"}}, "required": ["command"]}}
`

func (b *bench) openShell(ctx context.Context) (*shell, error) {
	server, err := b.openServer(ctx, "minimal")
	if err != nil {
		return nil, err
	}
	text := server.session.InitializeResult().Instructions + shellSteps + "\n" + shellTool
	return &shell{bench: b, text: text}, server.close()
}

func (s *shell) intro() string { return s.text }

func (s *shell) close() error { return nil }

func (s *shell) call(ctx context.Context, name string, arguments json.RawMessage) (text, outcome string, err error) {
	var a struct {
		Command []string
		Stdin   string
	}
	switch err := json.Unmarshal(arguments, &a); {
	case name != "run":
		return "the only tool is run", "not listed", nil
	case err != nil || len(a.Command) == 0:
		return `expected {"command": ["parley", ..]}`, "not listed", nil
	case a.Command[0] != "parley":
		return "the only program is parley", "not listed", nil
	}
	cmd := exec.CommandContext(ctx, s.bench.binary, a.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = s.bench.home, tree.Environment(s.bench.home), strings.NewReader(a.Stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.String(), succeeded, nil
	case errors.As(err, &exit):
		code := strconv.Itoa(exit.ExitCode())
		return out.String() + "exit code " + code, code, nil
	}
	return "", "", err
}
