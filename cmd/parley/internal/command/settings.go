package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/trace"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// Settings are the values of the configuration. Each comes from its most specific source.
type Settings struct {
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

	// Values are all settings with their sources.
	Values []SettingValue
}

// SettingValue is one setting: its value and where that comes from.
type SettingValue struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Source      string `json:"source"` // default, a file, or an environment variable
	Env         string `json:"env"`
	Description string `json:"description"`
}

// setting is one row of the table of settings. A setting that concerns rights or records cannot be set by a project.
type setting struct {
	name, fallback, description string
	byProject                   bool
	set                         func(*Settings, string) error
}

func (s setting) env() string {
	return "PARLEY_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.name))
}

var settingTable = []setting{
	{
		"tool_documentation_mode", "progressive", "tools that MCP shows: minimal, progressive or full", true,
		func(s *Settings, v string) error { s.DocMode = v; return oneOf(v, "minimal", "progressive", "full") },
	},
	{
		"pinned_tools", "", "tools that MCP's progressive mode shows at once", true,
		func(s *Settings, v string) error { s.Pinned = splitList(v); return nil },
	},
	{
		"timeout", "0s", "bound of a call that sets none; 0s: the tool's own", true,
		func(s *Settings, v string) error { return duration(&s.Timeout, v) },
	},
	{
		"max_bytes", "0", "cut larger results; 0: never", true,
		func(s *Settings, v string) error { return count(&s.MaxBytes, v) },
	},
	{
		"browser", "default", "name of the browser that calls use", true,
		func(s *Settings, v string) error { s.Browser = v; return nil },
	},
	{
		"chrome", "", "browser to start; empty: the first found", false,
		func(s *Settings, v string) error { s.Chrome = v; return nil },
	},
	{
		"browser_idle", "30m", "end a browser that nobody used for this long", true,
		func(s *Settings, v string) error { return duration(&s.BrowserIdle, v) },
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

// loadSettings reads the configuration: PARLEY_* variables override the project's parley.toml, which overrides the
// user's config.toml.
func loadSettings(env func(string) string, configDir string) (*Settings, error) {
	s := &Settings{}
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
			return nil, host.Errorf(host.ConfigError, "%s, set by %s: %s", row.name, source, manifest.CleanLine(err.Error())).
				WithNext("correct " + source)
		}
		s.Values = append(s.Values, SettingValue{row.name, value, source, row.env(), row.description})
	}
	return s, nil
}

// projectConfig reads the nearest parley.toml in the working folder or above it, and returns its path, "" if none.
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

// readConfig reads a configuration file into a flat map; a missing file gives none. An unknown key is an error: it is a
// typo, or a setting that would have no effect.
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
			if project && !row.byProject {
				return nil, host.Errorf(host.ConfigError,
					"%s: %s cannot be set by a project; set it in your own config.toml", path, name)
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
