package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// callTimeout limits each call, whatever limit the tool itself has.
const callTimeout = time.Minute

// tool is a program that agents use.
type tool interface {
	name() string
	// seat starts the tool for one agent, with a browser that shows an empty page. Files go to folder.
	seat(ctx context.Context, folder string) (seat, error)
	// lessons returns what an agent reads before its first task.
	lessons(ctx context.Context, folder string) (string, error)
	// stop ends what seats may share.
	stop(ctx context.Context) error
}

// seat is the place of one agent at a tool.
type seat interface {
	// call makes a call as a model writes it. err is only for what keeps the call from being made.
	call(ctx context.Context, text string) (reply, error)
	// reset shows an empty page again.
	reset(ctx context.Context) error
	end(ctx context.Context) error
}

// reply is what a model reads after a call. A tool that fails says so by its exit code or, over MCP, by isError.
type reply struct {
	text   string
	failed bool
}

// commandLine is a tool whose calls are lines of a shell. $SESSION is the name of the agent's session.
type commandLine struct {
	title string
	env   []string
	// Lines that start a browser with an empty page, show an empty page again, close the browser of the session, and
	// close what sessions share.
	start, clear, close, closeAll string
	learn                         []string // lines that print what an agent reads first
}

func (c *commandLine) name() string { return c.title }

func (c *commandLine) seat(ctx context.Context, folder string) (seat, error) {
	s := &shell{c, folder}
	return s, s.must(ctx, c.start)
}

func (c *commandLine) lessons(ctx context.Context, folder string) (string, error) {
	var all []string
	for _, line := range c.learn {
		r, err := (&shell{c, folder}).call(ctx, line)
		if err != nil || r.failed {
			return "", errors.Join(err, fmt.Errorf("%s: %s", line, r.text))
		}
		all = append(all, r.text)
	}
	return strings.Join(all, "\n"), nil
}

func (c *commandLine) stop(ctx context.Context) error {
	if c.closeAll == "" {
		return nil
	}
	return (&shell{c, os.TempDir()}).must(ctx, c.closeAll)
}

// shell is an agent's seat at a command line. Its session has the name of its folder.
type shell struct {
	*commandLine
	folder string
}

// call runs a line. Its output goes to a file, because a daemon that the tool starts would keep a pipe open.
func (s *shell) call(ctx context.Context, line string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := os.CreateTemp("", "peers-output-")
	if err != nil {
		return reply{}, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	session := filepath.Base(s.folder)
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.folder, out, out
	cmd.Env = append(os.Environ(), "SESSION="+session)
	for _, v := range s.env {
		cmd.Env = append(cmd.Env, strings.ReplaceAll(v, "$SESSION", session))
	}
	var exit *exec.ExitError
	err = cmd.Run()
	if err != nil && !errors.As(err, &exit) {
		return reply{}, err
	}
	text, readErr := os.ReadFile(out.Name())
	return reply{string(text), err != nil}, readErr
}

// must runs a line that belongs to no task.
func (s *shell) must(ctx context.Context, line string) error {
	r, err := s.call(ctx, line)
	if err == nil && r.failed {
		err = fmt.Errorf("%s: %s", line, r.text)
	}
	return err
}

func (s *shell) reset(ctx context.Context) error { return s.must(ctx, s.clear) }
func (s *shell) end(ctx context.Context) error   { return s.must(ctx, s.close) }

// server is a tool that speaks MCP on stdio. A call is the name of one of its tools and the arguments as JSON.
type server struct {
	title   string
	command []string
	env     []string
	start   string // the call that shows an empty page
}

func (s *server) name() string { return s.title }

func (s *server) seat(ctx context.Context, folder string) (seat, error) {
	c, err := s.connect(ctx, folder)
	if err != nil {
		return nil, err
	}
	return c, c.reset(ctx)
}

func (s *server) connect(ctx context.Context, folder string) (*client, error) {
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), s.env...)
	agent := mcp.NewClient(&mcp.Implementation{Name: "peers", Version: "1"}, nil)
	//lint:ignore SA1019 servers still ask for it
	agent.AddRoots(&mcp.Root{URI: "file://" + folder})
	session, err := agent.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	return &client{s, session}, err
}

// lessons returns tools/list as a client passes it to a model: names, descriptions and parameters.
func (s *server) lessons(ctx context.Context, folder string) (string, error) {
	c, err := s.connect(ctx, folder)
	if err != nil {
		return "", err
	}
	defer c.session.Close()
	all := []string{c.session.InitializeResult().Instructions}
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(map[string]any{"name": t.Name, "description": t.Description, "input_schema": t.InputSchema})
		if err != nil {
			return "", err
		}
		all = append(all, string(raw))
	}
	return strings.Join(all, "\n"), nil
}

func (s *server) stop(context.Context) error { return nil }

// client is an agent's seat at a server.
type client struct {
	*server
	session *mcp.ClientSession
}

func (c *client) call(ctx context.Context, text string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name, arguments, _ := strings.Cut(text, " ")
	r, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		return reply{err.Error(), true}, nil // a model reads this too
	}
	var texts []string
	for _, content := range r.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return reply{strings.Join(texts, "\n"), r.IsError}, nil
}

func (c *client) reset(ctx context.Context) error {
	r, err := c.call(ctx, c.start)
	if err == nil && r.failed {
		err = fmt.Errorf("%s: %s", c.start, r.text)
	}
	return err
}

func (c *client) end(context.Context) error { return c.session.Close() }
