package serve

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestMCPConfigOfClients merges the entry into a file of each client that has other entries.
// Merging it again changes nothing.
func TestMCPConfigOfClients(t *testing.T) {
	for _, c := range mcpClients {
		t.Run(c.name, func(t *testing.T) {
			before, err := os.ReadFile(filepath.Join("testdata", "mcp_config", c.name+".before"))
			if err != nil {
				t.Fatal(err)
			}
			entry := mcpEntry{
				Command: `C:\Program Files\parley "1".exe`, Args: []string{"mcp", "--docs", "minimal"},
				Env: map[string]string{"PARLEY_HOME": "/home/ada/parley"},
			}
			after, err := c.merge(before, entry)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "mcp_config", c.name+".after")
			if *update {
				if err := os.WriteFile(golden, after, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || string(after) != string(want) {
				t.Errorf("%v\n%s\nwant\n%s", err, after, want)
			}
			if again, err := c.merge(after, entry); err != nil || string(again) != string(after) {
				t.Errorf("merged again: %v\n%s", err, again)
			}
		})
	}
}

// TestWhichMode compares the rows of the help with the table of docs/mcp.md, and checks that each client has a mode.
func TestWhichMode(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- which: ")
	table, _, _ = strings.Cut(table, "<!-- /which")
	for row := range strings.Lines(modesText) {
		row = strings.TrimSpace(row)
		if !strings.Contains(strings.ReplaceAll(table, "`", ""), "\n| "+row+" |\n") {
			t.Errorf("docs/mcp.md does not have the row %s", row)
		}
	}
	if rows := strings.Count(table, "\n| "); rows != strings.Count(modesText, "\n")+1 {
		t.Errorf("docs/mcp.md has %d rows", rows)
	}
	for _, c := range mcpClients {
		if err := mcp.CheckMode(c.mode); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestMCPConfigFollowsVariables checks that the entry goes where a variable of the client moves its file.
func TestMCPConfigFollowsVariables(t *testing.T) {
	for client, variable := range map[string]string{"codex": "CODEX_HOME", "copilot": "COPILOT_HOME",
		"opencode": "XDG_CONFIG_HOME"} {
		at := slices.IndexFunc(mcpClients, func(c mcpClient) bool { return c.name == client })
		home := map[string]string{"HOME": "/home/ann", "USERPROFILE": "/home/ann"}
		path := func() string {
			return filepath.ToSlash(mcpClients[at].path(func(name string) string { return home[name] }))
		}
		if got := path(); !strings.HasPrefix(got, "/home/ann/.co") {
			t.Errorf("%s: %s", client, got)
		}
		home[variable] = "/srv/config"
		if got := path(); !strings.HasPrefix(got, "/srv/config/") {
			t.Errorf("%s with %s: %s", client, variable, got)
		}
	}
}

// TestMCPConfigRefuses checks that files into which the entry cannot be merged are unchanged.
func TestMCPConfigRefuses(t *testing.T) {
	for _, c := range []struct{ client, file, want string }{
		{"cursor", "{\n// mine\n}", "not plain JSON, without comments: invalid JSON at line 2, column 1"},
		{"cursor", `{"mcpServers":{}`, "not plain JSON, without comments: invalid JSON at line 1, column 17"},
		{"cursor", `{"mcpServers":{},"mcpServers":{"other":{}}}`, "duplicate"},
		{"cursor", `{}`, "is read-only"},
		{"codex", "", "is read-only"},
		{"cursor", `[]`, "not a JSON object"},
		{"cursor", `{"mcpServers":[]}`, "mcpServers: it is not a JSON object"},
		{"cursor", `{"mcpServers":null}`, "mcpServers: it is not a JSON object"},
		{"codex", "model = ", "not valid TOML"},
		{"codex", `mcp_servers = { docs = { command = "npx" } }`, "cannot be replaced"},
		{"codex", "[mcp_servers]\nparley = { command = \"/old/parley\" }\n", "cannot be replaced"},
	} {
		home := t.TempDir()
		d := command.NewApp(&command.Streams{Env: func(name string) string {
			return map[string]string{"HOME": home, "USERPROFILE": home}[name]
		}}, nil)
		printed, err := mcpConfig(d, mcpConfigOptions{Client: c.client})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(printed.File), 0o700); err != nil {
			t.Fatal(err)
		}
		mode := command.Either(strings.HasPrefix(c.want, "is read"), fs.FileMode(0o400), 0o600)
		if err := os.WriteFile(printed.File, []byte(c.file), mode); err != nil {
			t.Fatal(err)
		}
		_, err = mcpConfig(d, mcpConfigOptions{Client: c.client, Write: true})
		if err == nil || host.AsError(err).Code != host.ConfigError || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want config_error with %q", c.file, err, c.want)
		}
		files, _ := os.ReadDir(filepath.Dir(printed.File))
		if left, _ := os.ReadFile(printed.File); string(left) != c.file || len(files) != 1 {
			t.Errorf("%s became %s, beside %d other files", c.file, left, len(files)-1)
		}
	}
}
