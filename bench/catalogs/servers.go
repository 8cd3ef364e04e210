package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-tools/parley/internal/foreign"
	"github.com/parley-tools/parley/manifest"

	"github.com/parley-tools/parley/bench/internal/npm"
	"github.com/parley-tools/parley/bench/internal/server"
)

// closed is an address at which nothing answers.
const closed = "http://127.0.0.1:9"

// servers are the servers, each with what it needs to start: a program of a package, arguments and environment. The
// values are dummies: a server only lists its tools.
var servers = []server.Server{
	{Name: "chart", Command: []string{"@antv/mcp-server-chart/build/index.js"}},
	{Name: "paperless", Command: []string{"@baruchiro/paperless-mcp/build/index.js", closed, "x"},
		Env: []string{"PAPERLESS_URL=" + closed, "PAPERLESS_API_KEY=x"}},
	{Name: "maps", Command: []string{"@cablate/mcp-google-map/dist/cli.js", "--stdio"},
		Env: []string{"GOOGLE_MAPS_API_KEY=x"}},
	{Name: "email", Command: []string{"@codefuturist/email-mcp/dist/main.js", "stdio"},
		Env: []string{"MCP_EMAIL_ADDRESS=a@example.test", "MCP_EMAIL_PASSWORD=x", "MCP_EMAIL_IMAP_HOST=127.0.0.1",
			"MCP_EMAIL_SMTP_HOST=127.0.0.1"}},
	{Name: "calc", Command: []string{"@coo-quack/calc-mcp/dist/index.js"}},
	{Name: "git", Command: []string{"@cyanheads/git-mcp-server/dist/index.js"},
		Env: []string{"MCP_TRANSPORT_TYPE=stdio", "MCP_LOG_LEVEL=error"}},
	{Name: "weather", Command: []string{"@dangahagan/weather-mcp/dist/index.js"}},
	{Name: "playwright", Command: []string{"@executeautomation/playwright-mcp-server/dist/index.js"}},
	{Name: "ccxt", Command: []string{"@mcpfun/mcp-server-ccxt/bin/cli.js"}},
	{Name: "filesystem", Command: []string{"@modelcontextprotocol/server-filesystem/dist/index.js", "."}},
	{Name: "memory", Command: []string{"@modelcontextprotocol/server-memory/dist/index.js"}},
	{Name: "airbnb", Command: []string{"@openbnb/mcp-server-airbnb/dist/index.js"}},
	{Name: "xero", Command: []string{"@xeroapi/xero-mcp-server/dist/index.js"},
		Env: []string{"XERO_CLIENT_ID=x", "XERO_CLIENT_SECRET=x"}},
	{Name: "slack", Command: []string{"@zencoderai/slack-mcp-server/dist/index.js"},
		Env: []string{"SLACK_BOT_TOKEN=x", "SLACK_TEAM_ID=x"}},
	{Name: "ableton", Command: []string{"ableton-cookbook-mcp/dist/index.js"}},
	{Name: "airtable", Command: []string{"airtable-mcp-server/dist/main.js"}, Env: []string{"AIRTABLE_API_KEY=x"}},
	{Name: "argocd", Command: []string{"argocd-mcp/dist/index.js", "stdio"},
		Env: []string{"ARGOCD_BASE_URL=" + closed, "ARGOCD_API_TOKEN=x"}},
	{Name: "bitbucket", Command: []string{"bitbucket-mcp/dist/index.js"},
		Env: []string{"BITBUCKET_URL=" + closed, "BITBUCKET_TOKEN=x", "BITBUCKET_WORKSPACE=x"}},
	{Name: "deepl", Command: []string{"deepl-mcp-server/src/index.mjs"}, Env: []string{"DEEPL_API_KEY=x"}},
	{Name: "hevy", Command: []string{"hevy-mcp/dist/cli.mjs"}, Env: []string{"HEVY_API_KEY=x"}},
	{Name: "linear", Command: []string{"linear-mcp/build/index.js"}, Env: []string{"LINEAR_ACCESS_TOKEN=x"}},
	{Name: "images", Command: []string{"mcp-image/dist/index.js"}, Env: []string{"GEMINI_API_KEY=xxxxxxxxxxxxxxxxxxxx"}},
	{Name: "postgres", Command: []string{"mcp-postgres-server/build/index.js"},
		Env: []string{"PG_HOST=127.0.0.1", "PG_PORT=9", "PG_USER=x", "PG_PASSWORD=x", "PG_DATABASE=x"}},
	{Name: "kubernetes", Command: []string{"mcp-server-kubernetes/dist/index.js"}},
	{Name: "mongodb", Command: []string{"mongodb-mcp-server/dist/esm/index.js"},
		Env: []string{"MDB_MCP_TELEMETRY=disabled"}},
	{Name: "recipe", Command: []string{"recipe-mcp/src/mcp/server.js"}},
	{Name: "reddit", Command: []string{"reddit-mcp-buddy/dist/cli.js"}},
	{Name: "tavily", Command: []string{"tavily-mcp/build/index.js"}, Env: []string{"TAVILY_API_KEY=x"}},
	{Name: "time", Command: []string{"time-mcp/dist/index.js"}},
	{Name: "todoist", Command: []string{"todoist-mcp/dist/index.js"}, Env: []string{"API_KEY=x"}},
}

// digest is a line of lists.jsonl: the names of the tools of a server, and the SHA-256 of its canonical list, in which
// objects have their keys in order.
type digest struct {
	Server string   `json:"server"`
	SHA256 string   `json:"sha256"`
	Tools  []string `json:"tools"`
}

// lists returns the tools of each server, which are read from the servers once and then kept beside the packages. They
// have to be those of lists.jsonl, which is written if accept is true.
func lists(ctx context.Context, accept bool) (map[string][]json.RawMessage, error) {
	modules, err := npm.Fetch(ctx, "catalogs")
	if err != nil {
		return nil, err
	}
	all, kept := map[string][]json.RawMessage{}, filepath.Join(modules, ".lists.json")
	if data, err := os.ReadFile(kept); err == nil && !accept {
		err = json.Unmarshal(data, &all)
		return all, errors.Join(err, check(all))
	}
	programs, err := foreign.Fetch(".")
	if err != nil {
		return nil, err
	}
	node, err := foreign.Node(programs)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		if all[s.Name], err = list(ctx, s, node, modules); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	if accept {
		var lines bytes.Buffer
		for _, s := range servers {
			d, err := digestOf(s.Name, all[s.Name])
			if err == nil {
				err = json.NewEncoder(&lines).Encode(d)
			}
			if err != nil {
				return nil, err
			}
		}
		if err := os.WriteFile("bench/catalogs/lists.jsonl", lines.Bytes(), 0o644); err != nil {
			return nil, err
		}
	}
	if err := check(all); err != nil {
		return nil, err
	}
	data, err := json.Marshal(all)
	return all, errors.Join(err, os.WriteFile(kept, data, 0o644))
}

// list starts a server in an empty folder, with a home of its own.
func list(ctx context.Context, s server.Server, node, modules string) ([]json.RawMessage, error) {
	work, err := os.MkdirTemp("", "catalogs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	home := filepath.Join(work, "home")
	s.Alone, s.Folder = true, filepath.Join(work, "empty")
	s.Command = append([]string{node, filepath.Join(modules, s.Command[0])}, s.Command[1:]...)
	if err := errors.Join(os.Mkdir(home, 0o700), os.Mkdir(s.Folder, 0o700)); err != nil {
		return nil, err
	}
	return s.List(ctx, home)
}

func digestOf(name string, tools []json.RawMessage) (digest, error) {
	d := digest{Server: name}
	var values []any
	for _, raw := range tools {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		var tool map[string]any
		if err := decoder.Decode(&tool); err != nil {
			return d, err
		}
		values = append(values, tool)
		d.Tools = append(d.Tools, fmt.Sprint(tool["name"]))
	}
	canonical, err := json.Marshal(values)
	d.SHA256 = fmt.Sprintf("%x", sha256.Sum256(canonical))
	return d, err
}

// check compares lists with lists.jsonl.
func check(all map[string][]json.RawMessage) error {
	digests, err := read[digest]("lists.jsonl")
	if err != nil {
		return err
	}
	for _, want := range digests {
		got, err := digestOf(want.Server, all[want.Server])
		if err != nil {
			return err
		}
		if got.SHA256 != want.SHA256 {
			return fmt.Errorf("the tools of %s are not those of bench/catalogs/lists.jsonl: got %d with digest %s, expected "+
				"%d with %s", want.Server, len(got.Tools), got.SHA256, len(want.Tools), want.SHA256)
		}
	}
	return nil
}

// read reads a file of this folder that has an object in each line. The current folder is the root of the tree.
func read[T any](name string) (list []T, err error) {
	data, err := os.ReadFile("bench/catalogs/" + name)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var of T
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&of); err != nil {
			return nil, fmt.Errorf("bench/catalogs/%s: %w in %s", name, err, line)
		}
		list = append(list, of)
	}
	return list, nil
}

// imported returns a server as a plugin.
func imported(name string, tools []json.RawMessage) (*manifest.Manifest, error) {
	m := &manifest.Manifest{Name: name, Version: "1.0.0", Kind: manifest.KindExtism,
		Docs: manifest.Docs{Brief: "Tools of " + name}}
	for _, raw := range tools {
		tool, err := importedTool(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m.Tools = append(m.Tools, tool)
	}
	return m, nil
}
