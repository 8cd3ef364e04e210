package cli

import (
	"bytes"
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
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/manifest"
)

// mcpClient is where a client keeps its servers, and how.
type mcpClient struct {
	name  string
	file  func(env func(string) string) string
	key   string // of the servers in the file
	typed bool   // a server says that it speaks on stdio
	toml  bool
}

var mcpClients = []mcpClient{
	{"claude-code", inFolder(".mcp.json"), "mcpServers", true, false},
	{"claude-desktop", claudeDesktop, "mcpServers", false, false},
	{"cursor", inHome(".cursor", "mcp.json"), "mcpServers", false, false},
	{"vscode", inFolder(".vscode", "mcp.json"), "servers", true, false},
	{"codex", inHome(".codex", "config.toml"), "mcp_servers", false, true},
	{"gemini", inHome(".gemini", "settings.json"), "mcpServers", false, false},
}

func inHome(path ...string) func(func(string) string) string {
	return func(env func(string) string) string {
		return filepath.Join(append([]string{userHome(env)}, path...)...)
	}
}

// inFolder is a file of the folder that one works in.
func inFolder(path ...string) func(func(string) string) string {
	return func(func(string) string) string { return filepath.Join(path...) }
}

func claudeDesktop(env func(string) string) string {
	dir := filepath.Join(userHome(env), ".config")
	switch runtime.GOOS {
	case "darwin":
		dir = filepath.Join(userHome(env), "Library", "Application Support")
	case "windows":
		dir = env("APPDATA")
	}
	return filepath.Join(dir, "Claude", "claude_desktop_config.json")
}

func userHome(env func(string) string) string {
	if runtime.GOOS == "windows" {
		return env("USERPROFILE")
	}
	return env("HOME")
}

func newMCPConfig(app *App) *cobra.Command {
	var client, docs string
	write := false
	var names []string
	for _, c := range mcpClients {
		names = append(names, c.name)
	}
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Print what an MCP client's configuration needs, or write it",
		Example: "parley mcp config --client claude-code\nparley mcp config --client cursor --write",
		Args:    noWords,
		RunE: func(*cobra.Command, []string) error {
			i := slices.IndexFunc(mcpClients, func(c mcpClient) bool { return c.name == client })
			switch {
			case client == "":
				return host.Errorf(host.InvalidArgs, "parley mcp config needs --client, one of %s", strings.Join(names, ", ")).WithNext("parley mcp config --client claude-code")
			case i < 0:
				return command.UnknownValue("client", client, names)
			}
			if docs != "" {
				if err := mcp.CheckMode(docs); err != nil {
					return err
				}
			}
			return app.mcpConfig(mcpClients[i], docs, write)
		},
	}
	cmd.Flags().StringVar(&client, "client", "", strings.Join(names[:3], ", ")+",\n"+strings.Join(names[3:len(names)-1], ", ")+" or "+names[len(names)-1])
	cmd.Flags().StringVar(&docs, "docs", "", "the documentation mode, where it is not to be the configured one")
	cmd.Flags().BoolVar(&write, "write", false, "merge it into the client's file, after a backup")
	cmd.Flags().SortFlags = false
	_ = cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// mcpEntry is one server in a client's configuration.
type mcpEntry struct {
	Type    string            `json:"type,omitempty" toml:"-"`
	Command string            `json:"command" toml:"command"`
	Args    []string          `json:"args" toml:"args"`
	Env     map[string]string `json:"env,omitempty" toml:"env,omitempty"`
}

func (a *App) mcpConfig(c mcpClient, docs string, write bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	entry := mcpEntry{Command: self, Args: []string{"mcp"}}
	if c.typed {
		entry.Type = "stdio"
	}
	if docs != "" {
		entry.Args = append(entry.Args, "--docs", docs)
	}
	if home := a.Env("PARLEY_HOME"); home != "" { // or the client would start one that knows nothing of it
		entry.Env = map[string]string{"PARLEY_HOME": home}
	}
	snippet, err := c.merge(nil, entry)
	if err != nil {
		return err
	}
	data := struct {
		Client  string `json:"client"`
		File    string `json:"file"`
		Snippet string `json:"snippet"`
		Written bool   `json:"written"`
		Backup  string `json:"backup,omitempty"`
	}{Client: c.name, File: c.file(a.Env), Snippet: string(snippet)}
	next := []string{"parley mcp config --client " + c.name + " --write"}
	if write {
		if data.Backup, err = c.write(data.File, entry); err != nil {
			return err
		}
		data.Written, next = true, []string{"restart " + c.name}
	}
	return a.answer(data, next, func(w io.Writer) {
		if !data.Written {
			fmt.Fprint(w, data.Snippet)
			return
		}
		fmt.Fprintf(w, "wrote %s\n", data.File)
		if data.Backup != "" {
			fmt.Fprintf(w, "as it was before: %s\n", data.Backup)
		}
	})
}

// write merges an entry into a client's file; what was there before is kept beside it.
func (c mcpClient) write(path string, entry mcpEntry) (backup string, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o600)
	before, err := os.ReadFile(path)
	switch info, statErr := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || statErr != nil:
		return "", host.Errorf(host.ConfigError, "cannot read %s: %v", path, errors.Join(err, statErr))
	default:
		mode = info.Mode().Perm()
	}
	after, err := c.merge(before, entry)
	if err != nil {
		return "", host.Errorf(host.ConfigError, "%s was left as it is: %s", path, manifest.CleanLine(err.Error())).
			WithNext("parley mcp config --client "+c.name, "put what it prints into "+path+" by hand")
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
			return "", host.Errorf(host.ConfigError, "cannot keep a backup, and %s was left as it is: %v", path, err)
		}
	}
	temp := path + ".parley-new"
	err = os.WriteFile(temp, after, mode)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return backup, host.Errorf(host.ConfigError, "cannot write %s: %v", path, err)
	}
	return backup, nil
}

// merge returns a client's file with the entry in it; everything else stays, in its order.
func (c mcpClient) merge(file []byte, entry mcpEntry) ([]byte, error) {
	if c.toml {
		return c.mergeTOML(file, entry)
	}
	value, err := manifest.Marshal(entry)
	if err != nil {
		return nil, err
	}
	top, err := members(file)
	if err != nil {
		return nil, err
	}
	servers, err := members(top.get(c.key))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.key, err)
	}
	top.set(c.key, servers.set("parley", value).json())
	var b bytes.Buffer
	if err := json.Indent(&b, top.json(), "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// object is a JSON object with its members in their order.
type object struct {
	names  []string
	values []json.RawMessage
}

// members reads an object; nothing is an empty one.
func members(raw []byte) (*object, error) {
	o := &object{}
	if len(bytes.TrimSpace(raw)) == 0 {
		return o, nil
	}
	if !json.Valid(raw) {
		return nil, errors.New("it is not plain JSON (are there comments in it?)")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is not an object")
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		o.names, o.values = append(o.names, t.(string)), append(o.values, value)
	}
	return o, nil
}

func (o *object) get(name string) json.RawMessage {
	if i := slices.Index(o.names, name); i >= 0 {
		return o.values[i]
	}
	return nil
}

func (o *object) set(name string, value json.RawMessage) *object {
	if i := slices.Index(o.names, name); i >= 0 {
		o.values[i] = value
	} else {
		o.names, o.values = append(o.names, name), append(o.values, value)
	}
	return o
}

func (o *object) json() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range o.names {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := manifest.Marshal(name)
		b.Write(key)
		b.WriteByte(':')
		b.Write(o.values[i])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// mergeTOML puts the entry's table into the place of one that is there, or at the end. Comments stay.
func (c mcpClient) mergeTOML(file []byte, entry mcpEntry) ([]byte, error) {
	var before map[string]any
	if err := toml.Unmarshal(file, &before); err != nil {
		return nil, fmt.Errorf("it is not TOML: %w", err)
	}
	table := c.key + ".parley"
	var kept []string
	ours := false
	for line := range strings.Lines(string(file)) {
		if name, is := tableName(line); is {
			ours = name == table || strings.HasPrefix(name, table+".")
		}
		if !ours {
			kept = append(kept, line)
		}
	}
	text := strings.TrimRight(strings.Join(kept, ""), "\n")
	if text != "" {
		text += "\n\n"
	}
	text += fmt.Sprintf("[%s]\ncommand = %s\nargs = [", table, strconv.Quote(entry.Command))
	for i, arg := range entry.Args {
		if i > 0 {
			text += ", "
		}
		text += strconv.Quote(arg)
	}
	text += "]\n"
	for _, name := range slices.Sorted(maps.Keys(entry.Env)) {
		text += fmt.Sprintf("env = { %s = %s }\n", name, strconv.Quote(entry.Env[name]))
	}
	var after struct {
		Servers map[string]mcpEntry `toml:"mcp_servers"`
	}
	if err := toml.Unmarshal([]byte(text), &after); err != nil || after.Servers["parley"].Command != entry.Command {
		return nil, fmt.Errorf("its table %s is written in a way that cannot be replaced: %w", table, err)
	}
	return []byte(text), nil
}

// tableName is the name of the table that a line begins.
func tableName(line string) (string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "[") || strings.HasPrefix(line, "[[") {
		return "", strings.HasPrefix(line, "[[")
	}
	name, _, ok := strings.Cut(line[1:], "]")
	return strings.ReplaceAll(strings.TrimSpace(name), `"`, ""), ok
}
