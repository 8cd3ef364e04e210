package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/trace"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// settings are the values of this command line's configuration, each from where it was said most specifically.
type settings struct {
	DocMode      string
	Pinned       []string
	Timeout      time.Duration
	MaxBytes     int
	Browser      string
	Chrome       string
	BrowserIdle  time.Duration
	TracesOff    bool
	TracesValues bool
	TracesDays   int
	TracesMiB    int

	sources []settingValue
}

// settingValue is one row of `config list`.
type settingValue struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Source      string `json:"source"` // default, a file, or an environment variable
	Env         string `json:"env"`
	Description string `json:"description"`
}

// setting is one thing that can be configured. What a project file may not set concerns rights or records.
type setting struct {
	name, fallback, description string
	project                     bool
	set                         func(*settings, string) error
}

func (s setting) env() string {
	return "PARLEY_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.name))
}

var settingTable = []setting{
	{"tool_documentation_mode", "progressive", "tools that MCP shows: minimal, progressive or full", true, func(s *settings, v string) error {
		s.DocMode = v
		return oneOf(v, "minimal", "progressive", "full")
	}},
	{"pinned_tools", "", "tools that MCP's progressive mode shows at once", true, func(s *settings, v string) error { s.Pinned = splitList(v); return nil }},
	{"timeout", "0s", "bound of a call that sets none; 0s: the tool's own", true, func(s *settings, v string) error { return duration(&s.Timeout, v) }},
	{"max_bytes", "0", "cut larger results; 0: never", true, func(s *settings, v string) error { return count(&s.MaxBytes, v) }},
	{"browser", "default", "name of the browser that calls use", true, func(s *settings, v string) error { s.Browser = v; return nil }},
	{"chrome", "", "browser to start; empty: the first found", false, func(s *settings, v string) error { s.Chrome = v; return nil }},
	{"browser_idle", "30m", "end a browser that nobody used for this long", true, func(s *settings, v string) error { return duration(&s.BrowserIdle, v) }},
	{"traces.off", "false", "write no traces", false, func(s *settings, v string) error { return truth(&s.TracesOff, v) }},
	{"traces.values", "false", "keep parameter values in traces, not only their shapes", false, func(s *settings, v string) error { return truth(&s.TracesValues, v) }},
	{"traces.keep_days", strconv.Itoa(trace.DefaultKeepDays), "remove traces that are this many days old", false,
		func(s *settings, v string) error { return between(&s.TracesDays, v, 1, 36500) }},
	{"traces.max_mib", strconv.Itoa(trace.DefaultMaxBytes >> 20), "remove the oldest traces beyond this many MiB in all", false,
		func(s *settings, v string) error { return between(&s.TracesMiB, v, 1, 1<<20) }},
}

func oneOf(v string, allowed ...string) error {
	for _, a := range allowed {
		if v == a {
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %s", v, strings.Join(allowed, ", "))
}

// splitList splits a list that is written with commas or spaces.
func splitList(v string) []string {
	return strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
}

func duration(to *time.Duration, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a duration such as 10s", v)
	}
	*to = d
	return nil
}

func count(to *int, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of bytes", v)
	}
	*to = n
	return nil
}

// between reads a whole number from low to high.
func between(to *int, v string, low, high int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < low || n > high {
		return fmt.Errorf("%q is not a whole number from %d to %d", v, low, high)
	}
	*to = n
	return nil
}

func truth(to *bool, v string) error {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return fmt.Errorf("%q is not true or false", v)
	}
	*to = b
	return nil
}

// complete fills in what a call left open.
func (s *settings) complete(o host.Options) host.Options {
	if o.Timeout == 0 {
		o.Timeout = s.Timeout
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = s.MaxBytes
	}
	if o.Browser == "" {
		o.Browser = s.Browser
	}
	return o
}

// loadSettings reads the configuration: PARLEY_* before the project's parley.toml before the user's config.toml.
func loadSettings(env func(string) string, configDir string) (*settings, error) {
	s := &settings{}
	user, err := readConfig(filepath.Join(configDir, "config.toml"), false)
	if err != nil {
		return nil, err
	}
	project, projectPath, err := projectConfig()
	if err != nil {
		return nil, err
	}
	for _, row := range settingTable {
		value, source := row.fallback, "default"
		if v, ok := user[row.name]; ok {
			value, source = v, filepath.Join(configDir, "config.toml")
		}
		if v, ok := project[row.name]; ok {
			value, source = v, projectPath
		}
		if v := env(row.env()); v != "" {
			value, source = v, row.env()
		}
		if err := row.set(s, value); err != nil {
			return nil, host.Errorf(host.ConfigError, "%s, set by %s: %s", row.name, source, manifest.CleanLine(err.Error())).WithNext("correct " + source)
		}
		s.sources = append(s.sources, settingValue{row.name, value, source, row.env(), row.description})
	}
	return s, nil
}

// projectConfig finds parley.toml in this folder or one above it.
func projectConfig() (map[string]string, string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, "", nil
	}
	for {
		path := filepath.Join(dir, "parley.toml")
		if _, err := os.Stat(path); err == nil {
			values, err := readConfig(path, true)
			return values, path, err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil, "", nil
		}
		dir = parent
	}
}

// readConfig reads a flat view of a configuration file. An unknown key is an error: it is a typo, or a promise
// that would not be kept.
func readConfig(path string, project bool) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "cannot read the configuration: %v", err)
	}
	tree := map[string]any{}
	if err := toml.NewDecoder(bytes.NewReader(data)).Decode(&tree); err != nil {
		where := ""
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, column := at.Position()
			where = fmt.Sprintf(":%d:%d", line, column)
		}
		return nil, host.Errorf(host.ConfigError, "%s%s: %s", path, where, manifest.CleanLine(err.Error()))
	}
	values := map[string]string{}
	flatten("", tree, values)
	for name := range values {
		known := false
		for _, row := range settingTable {
			if row.name != name {
				continue
			}
			known = true
			if project && !row.project {
				return nil, host.Errorf(host.ConfigError, "%s: %s cannot be set by a project; set it in your own config.toml", path, name)
			}
		}
		if !known {
			return nil, unknownKey(path, name)
		}
	}
	return values, nil
}

func unknownKey(path, name string) *host.Error {
	e := host.Errorf(host.ConfigError, "%s: unknown key %s", path, manifest.CleanLine(name))
	known := make([]string, 0, len(settingTable))
	for _, row := range settingTable {
		known = append(known, row.name)
	}
	for _, n := range schema.Nearest(name, known, 3) {
		e.DidYouMean = append(e.DidYouMean, host.NearName(n))
	}
	return e.WithNext("edit "+path, "known are "+strings.Join(known, ", "))
}

func flatten(prefix string, tree map[string]any, into map[string]string) {
	for key, value := range tree {
		if sub, ok := value.(map[string]any); ok {
			flatten(prefix+key+".", sub, into)
			continue
		}
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		var values []string
		for _, v := range list {
			values = append(values, fmt.Sprint(v))
		}
		into[prefix+key] = strings.Join(values, ",")
	}
}

func newConfig(app *App) *cobra.Command {
	list := &cobra.Command{
		Use:     "list",
		Short:   "Show each setting, its value and where it comes from",
		Example: "parley config list --json",
		Args:    noWords,
		RunE:    func(*cobra.Command, []string) error { return app.listConfig() },
	}
	return parent("config", "Show settings", list)
}

func (a *App) listConfig() error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	data := struct {
		Settings []settingValue `json:"settings"`
		Paths    []namedPath    `json:"paths"`
	}{s.sources, a.namedDirs()}
	return a.answer(data, []string{"edit " + filepath.Join(a.dirs().Config, "config.toml")}, func(w io.Writer) {
		for _, v := range s.sources {
			fmt.Fprintf(w, "%-24s %-12s %s\n%24s %s\n", v.Name, shownValue(v.Value), v.Source, "", v.Description)
		}
		for _, p := range data.Paths {
			fmt.Fprintf(w, "%-24s %s\n", p.Name, p.Path)
		}
	})
}

func shownValue(v string) string {
	if v == "" {
		return `""`
	}
	return manifest.CleanLine(v)
}

// noWords refuses words after a command that takes none.
func noWords(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return host.Errorf(host.InvalidArgs, "%s takes no words, and got %q", cmd.CommandPath(), manifest.CleanLine(args[0])).
		WithNext("parley help " + strings.TrimPrefix(cmd.CommandPath(), "parley "))
}

// parent makes a command that only holds others.
func parent(name, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: children[0].Example,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, c.Name())
			}
			if len(args) == 0 {
				return host.Errorf(host.InvalidArgs, "parley %s needs one of %s", name, strings.Join(names, ", ")).WithNext(strings.Split(children[0].Example, "\n")...)
			}
			e := unknownValue(strings.ToUpper(name)+" COMMAND", args[0], names)
			e.Code, e.Details = host.NotFound, nil
			e.Message = fmt.Sprintf("parley %s has no command %s", name, manifest.CleanLine(args[0]))
			return e.WithNext("parley help " + name)
		},
	}
	cmd.AddCommand(children...)
	return cmd
}
