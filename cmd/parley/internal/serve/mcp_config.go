package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

var mcpConfigCommand = &command.Command[*mcpConfigOptions]{
	Use: "config", Run: runMCPConfig,
	Short:   "Print what an MCP client's configuration needs, or write it",
	Example: "parley mcp config --client claude-code\nparley mcp config --client cursor --write",
	Options: map[string]command.Completer{"client": command.OneOf(clientNames()...)},
}

func runMCPConfig(_ context.Context, app *command.App, opts *mcpConfigOptions) error {
	if opts.Client == "" {
		return host.Errorf(host.InvalidArgs, "parley mcp config requires --client, one of %s",
			strings.Join(clientNames(), ", ")).WithNext("parley mcp config --client claude-code")
	}
	data, err := mcpConfig(app, *opts)
	if err != nil {
		return err
	}
	next := command.Either(data.Written, "restart what reads "+data.File,
		"parley mcp config --client "+data.Client+" --write")
	command.PrintIf(app.Err, !app.JSON, "mode %s; parley mcp --help says which suits whom\n", data.Mode)
	return app.Print(data, []string{next}, func(w io.Writer) {
		if !data.Written {
			fmt.Fprint(w, data.Snippet)
			return
		}
		fmt.Fprintf(w, "wrote %s\n", data.File)
		command.PrintIf(w, data.Backup != "", "backup: %s\n", data.Backup)
	})
}

// mcpClient is an MCP client: the file with its servers, and the form of that file.
type mcpClient struct {
	name string
	file string             // relative to the current folder; $NAME and ${NAME:-DEFAULT} are replaced, $HOME everywhere
	key  string             // key of the servers in the file
	kind string             // the type in an entry, "" if entries have none
	mode string             // the mode that suits the client; see modesText
	form func(mcpEntry) any // form of an entry, nil if it is [mcpEntry]
}

// The forms come from the clients' documentation: code.claude.com/docs/en/mcp, code.visualstudio.com (mcp.json),
// github.com/openai/codex (docs/config.md), github.com/google-gemini/gemini-cli (docs/tools/mcp-server.md),
// github.com/anomalyco/opencode (packages/web/src/content/docs/mcp-servers.mdx), github.com/zed-industries/zed
// (docs/src/ai/mcp.md), docs.windsurf.com (Cascade MCP), docs.github.com (Copilot CLI, mcp-config.json).
var mcpClients = []mcpClient{
	{"claude-code", ".mcp.json", "mcpServers", "stdio", "full", nil},
	{"claude-desktop", configFolder + "/Claude/claude_desktop_config.json", "mcpServers", "", "progressive", nil},
	{"cursor", "$HOME/.cursor/mcp.json", "mcpServers", "", "progressive", nil},
	{"vscode", ".vscode/mcp.json", "servers", "stdio", "progressive", nil},
	{"codex", "${CODEX_HOME:-$HOME/.codex}/config.toml", "mcp_servers", "", "code", nil},
	{"gemini", "$HOME/.gemini/settings.json", "mcpServers", "", "code", nil},
	{"opencode", "${XDG_CONFIG_HOME:-$HOME/.config}/opencode/opencode.json", "mcp", "local", "code", opencodeForm},
	{"zed", zedFolder + "/settings.json", "context_servers", "", "progressive", nil},
	{"windsurf", "$HOME/.codeium/windsurf/mcp_config.json", "mcpServers", "", "progressive", nil},
	{"copilot", "${COPILOT_HOME:-$HOME/.copilot}/mcp-config.json", "mcpServers", "local", "code", copilotForm},
	{"project", ".mcp.json", "mcpServers", "stdio", "progressive", nil},
}

// maxConfig bounds a client's file, in bytes.
const maxConfig = 16 << 20

// startTimeout is how long a client waits for the start, in seconds, if its entry can set that.
const startTimeout = 30

// modesText says which mode suits which client. It has the rows of the table in docs/mcp.md.
const modesText = `mode | for a client that | pays
full | searches tools itself, and reads a definition when it needs one | ` +
	`from the first server: 53 turns; 140,845 tokens if the client reads the whole list
progressive | is a chat or an editor, or unknown | from the first server: 70 turns
minimal | has little context, or many servers | ` +
	`from two servers on: 78 turns, and a third fewer tokens than progressive
code | has a model that writes programs | from the first server: 65 turns, and the fewest tokens`

// configFolder is the folder in which Claude Desktop and others have their folders. Zed has its own in .config, even
// on macOS.
var (
	configFolder = cmp.Or(
		map[string]string{"darwin": "$HOME/Library/Application Support", "windows": "$APPDATA"}[runtime.GOOS],
		"$HOME/.config")
	zedFolder = command.Either(runtime.GOOS == "windows", "$APPDATA/Zed", "${XDG_CONFIG_HOME:-$HOME/.config}/zed")
)

// clientNames returns the names of the clients that [mcpConfig] knows.
func clientNames() []string {
	return command.Map(mcpClients, func(c mcpClient) string { return c.name })
}

// path returns the client's file.
func (c mcpClient) path(env func(string) string) string {
	var value func(name string) string
	value = func(name string) string {
		name, otherwise, _ := strings.Cut(name, ":-")
		if name == "HOME" && runtime.GOOS == "windows" {
			name = "USERPROFILE"
		}
		return cmp.Or(env(name), os.Expand(otherwise, value))
	}
	return filepath.Clean(os.Expand(c.file, value))
}

// mcpConfigOptions say which client to configure.
type mcpConfigOptions struct {
	// Client is one of [clientNames].
	Client string `flag:"client" usage:"claude-code, claude-desktop, cursor, vscode, codex,\ngemini, opencode, zed, windsurf, copilot or project"`
	// Docs is the documentation mode of the server. "" means the configured mode, or the one that suits the client.
	Docs string `flag:"docs" usage:"documentation mode; by default the configured one, or\nthe one that suits the client"`
	// Write merges the entry into the client's file, after a backup.
	Write bool `flag:"write" usage:"merge it into the client's file, after a backup"`
}

// mcpConfigData describes the entry of this program in the configuration of an MCP client.
type mcpConfigData struct {
	Client  string `json:"client"`
	File    string `json:"file"`
	Mode    string `json:"mode"`    // of the documentation
	Snippet string `json:"snippet"` // a file with only the entry
	Written bool   `json:"written"`
	Backup  string `json:"backup,omitempty"` // the file that contains the previous text
}

// mcpConfig returns the entry with which an MCP client starts this program as a server, in the session
// [App.SessionName] if that is set.
func mcpConfig(app *command.App, o mcpConfigOptions) (*mcpConfigData, error) {
	at := slices.IndexFunc(mcpClients, func(c mcpClient) bool { return c.name == o.Client })
	if at < 0 {
		return nil, command.UnknownValue("client", o.Client, clientNames())
	}
	client := mcpClients[at]
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	entry := mcpEntry{Command: self, Args: []string{"mcp"}}
	settings, err := app.Settings()
	if err != nil {
		return nil, err
	}
	mode, asked := settings.DocMode, o.Docs
	isDefault := func(v command.SettingValue) bool { return v.Name == "tool_documentation_mode" && v.Source == "default" }
	if asked == "" && mode != client.mode && slices.ContainsFunc(settings.Values, isDefault) {
		asked = client.mode
	}
	if asked != "" {
		if err := mcp.CheckMode(asked); err != nil {
			return nil, err
		}
		mode, entry.Args = asked, append(entry.Args, "--docs", asked)
	}
	if app.SessionName != "" {
		entry.Args = append(entry.Args, "--session", app.SessionName)
	}
	if home := app.Env("PARLEY_HOME"); home != "" { // the client does not pass its environment to the server
		entry.Env = map[string]string{"PARLEY_HOME": home}
	}
	snippet, err := client.merge(nil, entry)
	if err != nil {
		return nil, err
	}
	data := &mcpConfigData{Client: client.name, Mode: mode, File: client.path(app.Env), Snippet: string(snippet)}
	if o.Write {
		data.Backup, err = client.write(data.File, entry)
		data.Written = err == nil
	}
	return data, err
}

// mcpEntry is the entry of a server.
type mcpEntry struct {
	Type    string            `json:"type,omitempty" toml:"-"`
	Command string            `json:"command" toml:"command"`
	Args    []string          `json:"args" toml:"args"`
	Env     map[string]string `json:"env,omitempty" toml:"env,omitempty"`
	Tools   []string          `json:"tools,omitempty" toml:"-"` // for Copilot, which requires it
}

func copilotForm(e mcpEntry) any {
	e.Tools = []string{"*"}
	return e
}

func opencodeForm(e mcpEntry) any {
	return struct {
		Type    string            `json:"type"`
		Command []string          `json:"command"`
		Env     map[string]string `json:"environment,omitempty"`
		Enabled bool              `json:"enabled"`
		Timeout int               `json:"timeout"` // ms
	}{e.Type, append([]string{e.Command}, e.Args...), e.Env, true, startTimeout * 1000}
}

// json returns the entry in the form of a client.
func (c mcpClient) json(entry mcpEntry) []byte {
	var form any = &entry
	if entry.Type = c.kind; c.form != nil {
		form = c.form(entry)
	}
	value, _ := manifest.Marshal(form)
	return value
}

// write merges an entry into a client's file. It writes the previous text to a file next to it.
func (c mcpClient) write(path string, entry mcpEntry) (backup string, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o600)
	before, err := protect.Read(path, maxConfig)
	switch info, statErr := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || statErr != nil:
		return "", host.Errorf(host.ConfigError, "cannot read %s: %v", path, errors.Join(err, statErr))
	case info.Mode()&0o200 == 0: // replacing it would succeed
		return "", host.Errorf(host.ConfigError, "%s is read-only; the file was left unchanged", path).
			WithNext("parley mcp config --client "+c.name, "add the output to "+path+" by hand")
	default:
		mode = info.Mode().Perm()
	}
	after, err := c.merge(before, entry)
	if err != nil {
		return "", host.Errorf(host.ConfigError, "%s: %s; the file was left unchanged",
			path, manifest.CleanLine(err.Error())).
			WithNext("parley mcp config --client "+c.name, "add the output to "+path+" by hand")
	}
	if bytes.Equal(before, after) {
		return "", nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", host.Errorf(host.ConfigError, "cannot write %s: %v", path, err)
	}
	if before != nil {
		backup = path + ".before-parley-" + time.Now().Format("20060102-150405.000")
		if err := os.WriteFile(backup, before, mode); err != nil {
			return "", host.Errorf(host.ConfigError, "cannot write a backup, and %s was left unchanged: %v", path, err)
		}
	}
	if err := command.WriteFile(path, after, mode); err != nil {
		return backup, host.Errorf(host.ConfigError, "cannot write %s: %v", path, err)
	}
	return backup, nil
}

// merge returns the text of a client's file with the entry in it. The rest stays, in its order.
func (c mcpClient) merge(file []byte, entry mcpEntry) ([]byte, error) {
	if strings.HasSuffix(c.file, ".toml") {
		return mergeTOML(file, c.key+".parley", entry)
	}
	if file = bytes.TrimSpace(file); len(file) == 0 {
		file = []byte("{}")
	}
	value, err := jsontext.Decode(file, jsontext.Limits{Bytes: maxConfig}) // no name twice: which one counts, no one knows
	if err != nil {
		return nil, fmt.Errorf("it is not plain JSON, without comments: %w", err)
	}
	root, isObject := value.(map[string]any)
	if !isObject {
		return nil, errors.New("it is not a JSON object")
	}
	if servers, found := root[c.key]; !found {
		file = jsontext.Set(file, nil, c.key, []byte("{}"))
	} else if _, isObject = servers.(map[string]any); !isObject {
		return nil, fmt.Errorf("%s: it is not a JSON object", c.key)
	}
	var b bytes.Buffer
	_ = json.Indent(&b, jsontext.Set(file, []string{c.key}, "parley", c.json(entry)), "", "  ") // it is valid
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// mergeTOML replaces a table and its subtables, or adds the table at the end. Comments stay.
func mergeTOML(file []byte, table string, entry mcpEntry) ([]byte, error) {
	if err := toml.Unmarshal(file, &map[string]any{}); err != nil {
		return nil, fmt.Errorf("it is not valid TOML: %w", err)
	}
	args, env := command.Map(entry.Args, command.QuoteTOML), []string(nil)
	for _, name := range slices.Sorted(maps.Keys(entry.Env)) {
		env = append(env, name+" = "+command.QuoteTOML(entry.Env[name]))
	}
	lines := []string{"command = " + command.QuoteTOML(entry.Command), "args = [" + strings.Join(args, ", ") + "]",
		fmt.Sprintf("startup_timeout_sec = %d", startTimeout)}
	if len(env) > 0 {
		lines = append(lines, "env = { "+strings.Join(env, ", ")+" }")
	}
	text := command.ReplaceTables(file, command.Table{Name: table, Lines: lines})
	var after struct {
		Servers map[string]mcpEntry `toml:"mcp_servers"`
	}
	err := toml.Unmarshal(text, &after)
	if err == nil && after.Servers["parley"].Command != entry.Command {
		err = errors.New("it is written in another form")
	}
	if err != nil {
		return nil, fmt.Errorf("the table %s cannot be replaced: %w", table, err)
	}
	return text, nil
}
