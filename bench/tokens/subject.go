package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// subject is a server on stdio.
type subject struct {
	name    string
	command []string
	env     []string
}

// list starts the server and requests its tools, page by page. What the server writes to its home folder goes to home.
func (s subject) list(ctx context.Context, home string) (list, error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	cmd.Env = append(append(os.Environ(), "HOME="+home, "PARLEY_HOME="+home), s.env...)
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

func (w *wire) tools() (list, error) {
	start := object{"protocolVersion": "2025-11-25", "capabilities": object{},
		"clientInfo": object{"name": "tokens", "version": "1"}}
	if err := w.request("initialize", start, &struct{}{}); err != nil {
		return nil, err
	}
	if err := w.to.Encode(object{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		return nil, err
	}
	var all list
	for params := (object{}); ; {
		var page struct {
			Tools      list   `json:"tools"`
			NextCursor string `json:"nextCursor"`
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
