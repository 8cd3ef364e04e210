package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/host/stats/model"
	"github.com/parley-tools/parley/manifest"
)

// Settings are the values of the configuration. Each comes from its most specific source.
type Settings struct {
	DocMode string
	// DocsOnFirstUse adds tier 2 to the first success of a tool over MCP.
	DocsOnFirstUse bool
	Pinned         []string
	Timeout        time.Duration
	MaxBytes       int
	Agent          bool
	Browser        string
	Chrome         string
	BrowserIdle    time.Duration
	Runner         bool
	RunnerIdle     time.Duration
	TracesOff      bool
	TracesValues   bool
	TracesDays     int
	TracesMiB      int
	Model          ModelSettings

	maxBytesSet bool // MaxBytes is not the default

	// Values are all settings with their sources.
	Values []SettingValue
}

// ModelSettings name the model that some commands ask when somebody calls them. Without URL there is none.
type ModelSettings struct {
	URL     string
	Name    string
	Key     string // "env:NAME", "secret:NAME" or "" for none
	Prices  model.Prices
	Timeout time.Duration
}

// SettingValue is one setting: its value and where that comes from.
type SettingValue struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Source      string `json:"source"` // default, a file, or an environment variable
	Env         string `json:"env"`
	Description string `json:"description"`
}

// setting is one row of the table of settings. A project sets only timeouts, bounds and what MCP shows, because its
// file may come from anybody: nothing that concerns rights, records or the browser.
type setting struct {
	name, fallback, description string
	byProject                   bool
	set                         func(*Settings, string) error
}

func (s setting) env() string {
	return "PARLEY_" + strings.ToUpper(strings.ReplaceAll(s.name, ".", "_"))
}

var settingTable = []setting{
	{
		"tool_documentation_mode", "progressive", "tools in MCP: minimal, progressive, full or code", true,
		func(s *Settings, v string) error {
			s.DocMode = v
			return oneOf(v, "minimal", "progressive", "full", "code")
		},
	},
	{
		"docs_on_first_use", "none", "documents a first success over MCP: none, tier2", true,
		func(s *Settings, v string) error { s.DocsOnFirstUse = v == "tier2"; return oneOf(v, "none", "tier2") },
	},
	{
		"pinned_tools", "", "tools that MCP's progressive mode shows; auto: by use", true,
		func(s *Settings, v string) error { s.Pinned = splitList(v); return nil },
	},
	{
		"timeout", "0s", "bound of a call's run by default; 0s: the tool's own", true,
		func(s *Settings, v string) error { return duration(&s.Timeout, v) },
	},
	{
		"max_bytes", "0", "cut larger results; 0: never", true,
		func(s *Settings, v string) error { return count(&s.MaxBytes, v) },
	},
	{
		"agent", "false", "for agents: cut at 32 KiB, keep binary in files", false,
		func(s *Settings, v string) error { return truth(&s.Agent, v) },
	},
	{
		"browser", "default", "name of the browser that calls use", false,
		func(s *Settings, v string) error { s.Browser = v; return nil },
	},
	{
		"chrome", "", "browser to start; empty: the first found", false,
		func(s *Settings, v string) error { s.Chrome = v; return nil },
	},
	{
		"browser_idle", "30m", "end a browser that nobody used for this long", false,
		func(s *Settings, v string) error { return duration(&s.BrowserIdle, v) },
	},
	{
		"runner", "on", "on: isolated calls share processes; off: none do", false,
		func(s *Settings, v string) error { s.Runner = v == "on"; return oneOf(v, "on", "off") },
	},
	{
		"runner_idle", "1m", "end a runner that nobody used for this long", false,
		func(s *Settings, v string) error { return duration(&s.RunnerIdle, v) },
	},
	{
		"traces.off", "false", "write no traces", false,
		func(s *Settings, v string) error { return truth(&s.TracesOff, v) },
	},
	{
		"traces.values", "false", "keep parameter values in traces, not only their shapes", false,
		func(s *Settings, v string) error { return truth(&s.TracesValues, v) },
	},
	{
		"traces.keep_days", strconv.Itoa(trace.DefaultKeepDays), "remove traces that are this many days old", false,
		func(s *Settings, v string) error { return between(&s.TracesDays, v, 1, 36500) },
	},
	{
		"traces.max_mib", strconv.Itoa(trace.DefaultMaxBytes >> 20),
		"remove the oldest traces beyond this many MiB in all", false,
		func(s *Settings, v string) error { return between(&s.TracesMiB, v, 1, 1<<20) },
	},
	{
		"model.url", "", "chat-completions API, as https://HOST/v1; empty: none", false,
		func(s *Settings, v string) error {
			if s.Model.URL = v; v == "" {
				return nil
			}
			return model.CheckURL(v)
		},
	},
	{
		"model.name", "", "name of the model that commands of docs ask", false,
		func(s *Settings, v string) error { s.Model.Name = v; return nil },
	},
	{
		"model.key", "", "its key: env:NAME or secret:NAME; empty: none", false,
		func(s *Settings, v string) error { s.Model.Key = v; return keySource(v) },
	},
	{
		"model.price_in", "0", "price of a million tokens that are sent", false,
		func(s *Settings, v string) error { return price(&s.Model.Prices.In, v) },
	},
	{
		"model.price_out", "0", "price of a million tokens that are answered", false,
		func(s *Settings, v string) error { return price(&s.Model.Prices.Out, v) },
	},
	{
		"model.timeout", "2m", "bound of one request to it", false,
		func(s *Settings, v string) error { return duration(&s.Model.Timeout, v) },
	},
}

// keySource checks that a setting names a key, and is not one.
func keySource(v string) error {
	kind, name, _ := strings.Cut(v, ":")
	if v == "" || (kind == "env" || kind == "secret") && name != "" {
		return nil
	}
	return errors.New("expected env:NAME or secret:NAME; a key itself does not belong into a file of settings")
}

func price(to *float64, v string) error {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= 0 && f < 1e9) {
		return fmt.Errorf("%q is not a price such as 0.25", v)
	}
	*to = f
	return nil
}

func oneOf(v string, allowed ...string) error {
	for _, a := range allowed {
		if v == a {
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %s", v, strings.Join(allowed, ", "))
}

// splitList splits a list at commas and spaces.
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

// Complete returns the options of a call with the configured values in place of those that are zero.
func (s *Settings) Complete(o host.Options) host.Options {
	if o.Timeout == 0 {
		o.Timeout, o.TimeoutConfigured = s.Timeout, s.Timeout > 0
	}
	if o.MaxBytes == 0 && !o.Unlimited {
		o.MaxBytes = s.MaxBytes
	}
	if o.Browser == "" {
		o.Browser = s.Browser
	}
	return o
}

// ForCall is [Settings.Complete] for a call of the command line. For agents it limits a result as MCP does.
func (s *Settings) ForCall(o host.Options) host.Options {
	o = s.Complete(o)
	if s.Agent && !s.maxBytesSet && o.MaxBytes == 0 && !o.Unlimited {
		o.MaxBytes = mcp.DefaultMaxBytes
	}
	return o
}

// loadSettings reads the configuration: PARLEY_* variables override the project's parley.toml, which overrides the
// user's config.toml.
func loadSettings(env func(string) string, configDir string) (*Settings, error) {
	s := &Settings{}
	user, err := ReadConfig(filepath.Join(configDir, "config.toml"), false)
	if err != nil {
		return nil, err
	}
	project, err := projectConfig()
	if err != nil {
		return nil, err
	}
	for _, row := range settingTable {
		value, source, at := row.fallback, "default", "default"
		for _, f := range []*configFile{user, project} {
			if v, ok := f.values[row.name]; ok {
				value, source, at = v, f.path, f.at(row.name)
			}
		}
		if v := env(row.env()); v != "" {
			value, source, at = v, row.env(), row.env()
		}
		if err := row.set(s, value); err != nil {
			return nil, host.Errorf(host.ConfigError, "%s, set by %s: %s", row.name, at, manifest.CleanLine(err.Error())).
				WithNext("correct " + source)
		}
		s.maxBytesSet = s.maxBytesSet || row.name == "max_bytes" && source != "default"
		s.Values = append(s.Values, SettingValue{row.name, value, source, row.env(), row.description})
	}
	return s, nil
}

// projectConfig reads the project's file.
func projectConfig() (*configFile, error) {
	path, err := ProjectFile()
	if err != nil {
		return &configFile{}, nil
	}
	if _, err := os.Lstat(path); err != nil { // a dangling link is a file that cannot be read
		return &configFile{}, nil
	}
	return ReadConfig(path, true)
}

// ProjectFile returns the nearest parley.toml in the working folder or above it. If there is no such
// file, it returns the path for one in the working folder.
func ProjectFile() (string, error) {
	working, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := working; ; {
		path := filepath.Join(dir, "parley.toml")
		if _, err := os.Lstat(path); err == nil {
			return path, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return filepath.Join(working, "parley.toml"), nil
		}
		dir = parent
	}
}

// ReadConfig reads a configuration file; a missing one sets nothing.
func ReadConfig(path string, project bool) (*configFile, error) {
	read := protect.Read
	if project {
		read = protect.ReadProject
	}
	data, err := read(path, host.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) && !project {
		return &configFile{}, nil
	}
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "cannot read the configuration: %s", manifest.CleanLine(err.Error())).
			WithNext("look at "+path, "correct or remove it")
	}
	f, err := parseConfig(path, data)
	if err != nil {
		return nil, err
	}
	if !project {
		for name := range f.values {
			if strings.HasPrefix(name, "plugins.") {
				return nil, host.Errorf(host.ConfigError, "%s: %s is a pin of a project; write it in its parley.toml", f.at(name),
					manifest.CleanLine(name))
			}
		}
		return f, nil
	}
	for _, row := range settingTable {
		if _, set := f.values[row.name]; set && !row.byProject {
			return nil, host.Errorf(host.ConfigError,
				"%s: %s cannot be set by a project; set it in your own config.toml", f.at(row.name), row.name)
		}
	}
	return f, nil
}
