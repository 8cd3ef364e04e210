// Package server starts MCP servers and reads what they list.
package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Timeout limits the time in which a server replies to all requests.
const Timeout = 2 * time.Minute

// Server is an MCP server on stdio.
type Server struct {
	Name    string
	Command []string
	Env     []string // more than the variables of this process
	Folder  string   // in which it runs; "": the current one
	Alone   bool     // it gets none of the variables of this process but PATH
}

// List starts the server and requests its tools, page by page. What the server writes to its home folder goes to home.
// The tools are as it sent them.
func (s Server) List(ctx context.Context, home string) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	cmd.Dir, cmd.Env = s.Folder, os.Environ()
	if s.Alone {
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	cmd.Env = append(append(cmd.Env, "HOME="+home, "PARLEY_HOME="+home), s.Env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	tools, err := (&wire{json.NewEncoder(in), bufio.NewReader(out), 0}).tools()
	_ = in.Close()
	cancel() // not every server exits when its input ends
	_ = cmd.Wait()
	if err != nil {
		return nil, fmt.Errorf("%w; stderr: %s", err, &stderr)
	}
	return tools, nil
}

// wire speaks JSON-RPC, one message per line.
type wire struct {
	to   *json.Encoder
	from *bufio.Reader
	id   int
}

type object map[string]any

func (w *wire) tools() ([]json.RawMessage, error) {
	start := object{"protocolVersion": "2025-11-25", "capabilities": object{},
		"clientInfo": object{"name": "bench", "version": "1"}}
	if err := w.request("initialize", start, &struct{}{}); err != nil {
		return nil, err
	}
	if err := w.to.Encode(object{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		return nil, err
	}
	var all []json.RawMessage
	for params := (object{}); ; {
		var page struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := w.request("tools/list", params, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Tools...)
		if page.NextCursor == "" {
			return all, nil
		}
		params = object{"cursor": page.NextCursor}
	}
}

// request sends a request and reads its response, skipping what the server sends on its own.
func (w *wire) request(method string, params object, result any) error {
	w.id++
	if err := w.to.Encode(object{"jsonrpc": "2.0", "id": w.id, "method": method, "params": params}); err != nil {
		return err
	}
	for {
		line, err := w.from.ReadBytes('\n')
		if err == io.EOF {
			return fmt.Errorf("the server exited before it replied to %s", method)
		}
		if err != nil {
			return err
		}
		var answer struct {
			ID     any
			Method string
			Result json.RawMessage
			Error  json.RawMessage
		}
		if json.Unmarshal(line, &answer) != nil || answer.Method != "" || answer.ID != float64(w.id) {
			continue
		}
		if answer.Error != nil {
			return fmt.Errorf("%s: %s", method, answer.Error)
		}
		return json.Unmarshal(answer.Result, result)
	}
}
