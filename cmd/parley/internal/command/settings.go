package command

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/learn/model"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/document"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Settings are the values of the configuration. Each comes from its most specific source.
type Settings struct {
	DocMode string
	// DocsOnFirstUse adds tier 2 to the first success of a tool over MCP.
	DocsOnFirstUse bool
	Pinned         []string
	Prefer         []string
	Timeout        time.Duration
	MaxBytes       int
	ConfirmWait    time.Duration
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
	Model          modelSettings

	maxBytesSet bool // MaxBytes is not the default

	// Values are all settings with their sources.
	Values []SettingValue
}

// modelSettings name the model that some commands use. Without URL there is none.
type modelSettings struct {
	URL     string
	Name    string
	Key     string // "env:NAME", "secret:NAME" or "" for none
	Prices  model.Prices
	Timeout time.Duration
}

// SettingValue is one setting, with its value and the value's source.
type SettingValue struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Source      string `json:"source"` // default, a file, or an environment variable
	Env         string `json:"env"`
	Description string `json:"description"`
}

// setting is one row of the table of settings. A project can set only timeouts, bounds and what MCP shows, because
// its file may come from anybody. It cannot set anything about rights, records or the browser.
type setting struct {
	name, fallback, description string
	byProject                   bool
	set                         func(string) error
}

func (s setting) env() string {
	return "PARLEY_" + strings.ToUpper(strings.ReplaceAll(s.name, ".", "_"))
}

// table returns the settings. Their set functions store values in s.
func (s *Settings) table() []setting {
	modes := []string{"minimal", "progressive", "full", "code"}
	runner, firstUse := text(new(string), "on", "off"), text(new(string), "none", "tier2")
	return []setting{
		{"tool_documentation_mode", modes[1], "tools in MCP: minimal, progressive, full or code", true,
			text(&s.DocMode, modes...)},
		{"docs_on_first_use", "none", "docs sent with a first success over MCP: none, tier2", true,
			func(v string) error { s.DocsOnFirstUse = v == "tier2"; return firstUse(v) }},
		{"pinned_tools", "auto", "tools that MCP's progressive mode shows; auto: by use", true,
			func(v string) error {
				s.Pinned = strings.FieldsFunc(strings.TrimPrefix(v, "auto"), isSeparator)
				return nil
			}},
		{"search.prefer", "", "plugins that come first among equal hits of a search", false,
			func(v string) error { s.Prefer = strings.FieldsFunc(v, isSeparator); return nil }},
		{"timeout", "0s", "default time limit of a call; 0s: the tool's own", true, duration(&s.Timeout)},
		{"max_bytes", "0", "cut larger results; 0: never", true, count(&s.MaxBytes)},
		{"confirm_wait", "50s", "how long a call over MCP waits for a person's approval", false,
			parsed(&s.ConfirmWait, time.ParseDuration, func(d time.Duration) bool { return d > 0 }, "a duration above 0")},
		{"agent", "false", "for agents: cut at 32 KiB, keep binary in files", false, truth(&s.Agent)},
		{"browser", "default", "name of the browser that calls use", false, text(&s.Browser)},
		{"chrome", "", "browser to start; empty: the first found", false, text(&s.Chrome)},
		{"browser_idle", "30m", "end a browser that nobody used for this long", false, duration(&s.BrowserIdle)},
		{"runner", "on", "on: isolated calls share processes; off: none do", false,
			func(v string) error { s.Runner = v == "on"; return runner(v) }},
		{"runner_idle", "1m", "end a runner that nobody used for this long", false, duration(&s.RunnerIdle)},
		{"traces.off", "false", "write no traces", false, truth(&s.TracesOff)},
		{"traces.values", "false", "keep parameter values in traces, not only their shapes", false, truth(&s.TracesValues)},
		{"traces.keep_days", strconv.Itoa(trace.DefaultKeepDays), "remove traces that are this many days old", false,
			between(&s.TracesDays, 1, 36500)},
		{"traces.max_mib", strconv.Itoa(trace.DefaultMaxBytes >> 20),
			"remove the oldest traces beyond this many MiB in all", false, between(&s.TracesMiB, 1, 1<<20)},
		{"model.url", "", "chat-completions API, as https://HOST/v1; empty: none", false,
			checked(&s.Model.URL, model.CheckURL)},
		{"model.name", "", "name of the model that commands of docs ask", false, text(&s.Model.Name)},
		{"model.key", "", "the model's key: env:NAME or secret:NAME; empty: none", false, checked(&s.Model.Key, keySource)},
		{"model.price_in", "0", "price of a million tokens sent", false, price(&s.Model.Prices.In)},
		{"model.price_out", "0", "price of a million tokens received", false, price(&s.Model.Prices.Out)},
		{"model.timeout", "2m", "time limit of one request to the model", false, duration(&s.Model.Timeout)},
	}
}

// text stores a text. If words are given, it must be one of them.
func text(to *string, words ...string) func(string) error {
	return func(v string) error {
		if *to = v; len(words) == 0 || slices.Contains(words, v) {
			return nil
		}
		return fmt.Errorf("%q is not one of %s", v, strings.Join(words, ", "))
	}
}

// checked stores a text that is empty or passes a check.
func checked(to *string, check func(string) error) func(string) error {
	return func(v string) error {
		if *to = v; v == "" {
			return nil
		}
		return check(v)
	}
}

// parsed stores the value that a text represents, if it is valid.
func parsed[T any](to *T, parse func(string) (T, error), valid func(T) bool, what string) func(string) error {
	return func(v string) error {
		value, err := parse(v)
		if err != nil || !valid(value) {
			return fmt.Errorf("%q is not %s", v, what)
		}
		*to = value
		return nil
	}
}

func duration(to *time.Duration) func(string) error {
	return parsed(to, time.ParseDuration, func(d time.Duration) bool { return d >= 0 }, "a duration such as 10s")
}

func count(to *int) func(string) error {
	return parsed(to, strconv.Atoi, func(n int) bool { return n >= 0 }, "a number of bytes")
}

// between stores a whole number between low and high.
func between(to *int, low, high int) func(string) error {
	return parsed(to, strconv.Atoi, func(n int) bool { return n >= low && n <= high },
		fmt.Sprintf("a whole number from %d to %d", low, high))
}

func truth(to *bool) func(string) error {
	return parsed(to, strconv.ParseBool, func(bool) bool { return true }, "true or false")
}

func price(to *float64) func(string) error {
	parse := func(v string) (float64, error) { return strconv.ParseFloat(v, 64) }
	return parsed(to, parse, func(f float64) bool { return f >= 0 && f < 1e9 }, "a price such as 0.25")
}

// keySource checks that a setting names a key and is not itself one.
func keySource(v string) error {
	kind, name, _ := strings.Cut(v, ":")
	if (kind == "env" || kind == "secret") && name != "" {
		return nil
	}
	return errors.New("expected env:NAME or secret:NAME; write no key itself into a settings file")
}

func isSeparator(r rune) bool { return r == ',' || r == ' ' }

// Complete returns the options of a call with the configured values in place of zero values.
func (s *Settings) Complete(o job.Options) job.Options {
	if o.Timeout == 0 {
		o.Timeout, o.TimeoutConfigured = s.Timeout, s.Timeout > 0
	}
	if o.MaxBytes == 0 && !o.Unlimited {
		o.MaxBytes = s.MaxBytes
	}
	o.Browser = cmp.Or(o.Browser, s.Browser)
	return o
}

// ForCall is [Settings.Complete] for a call of the command line. For agents it also limits the result as MCP does.
func (s *Settings) ForCall(o job.Options) job.Options {
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
	user, err := readConfig(filepath.Join(configDir, "config.toml"), false)
	if err != nil {
		return nil, err
	}
	_, project, err := ReadProject()
	if err != nil {
		return nil, err
	}
	for _, row := range s.table() {
		value, source, at := row.fallback, "default", "default"
		for _, f := range []*configFile{user, project} {
			if v, ok := f.Values[row.name]; ok {
				value, source, at = v, f.path, f.at(row.name)
			}
		}
		if v := env(row.env()); v != "" {
			value, source, at = v, row.env(), row.env()
		}
		if err := row.set(value); err != nil {
			return nil, host.Errorf(host.ConfigError, "%s, set by %s: %s", row.name, at, manifest.CleanLine(err.Error())).
				WithNext("correct " + source)
		}
		s.maxBytesSet = s.maxBytesSet || row.name == "max_bytes" && source != "default"
		s.Values = append(s.Values, SettingValue{row.name, value, source, row.env(), row.description})
	}
	return s, nil
}

// ReadProject reads the nearest parley.toml in the working folder or above it. If there is no such file, file sets
// nothing, and path is where it would be in the working folder, or "" without a working folder.
func ReadProject() (path string, file *configFile, err error) {
	working, err := os.Getwd()
	if err != nil {
		return "", &configFile{}, nil
	}
	for dir := working; ; dir = filepath.Dir(dir) {
		path = filepath.Join(dir, "parley.toml")
		if _, err := os.Lstat(path); err == nil { // reading a dangling link must fail
			file, err = readConfig(path, true)
			return path, file, err
		}
		if dir == filepath.Dir(dir) {
			return filepath.Join(working, "parley.toml"), &configFile{}, nil
		}
	}
}

// readConfig reads a configuration file; a missing one sets nothing.
func readConfig(path string, project bool) (*configFile, error) {
	read := Either(project, protect.ReadProject, protect.Read)
	data, err := read(path, protect.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) && !project {
		return &configFile{}, nil
	}
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "cannot read the configuration: %s", manifest.CleanLine(err.Error())).
			WithNext("look at "+path, "correct or remove it")
	}
	f, err := ParseConfig(path, data)
	if err != nil {
		return nil, err
	}
	if !project {
		for _, name := range slices.Sorted(maps.Keys(f.Values)) {
			if strings.HasPrefix(name, "plugins.") {
				return nil, host.Errorf(host.ConfigError, "%s: %s is a pin of a project; write it in its parley.toml", f.at(name),
					manifest.CleanLine(name))
			}
		}
		return f, nil
	}
	for _, row := range (&Settings{}).table() {
		if _, set := f.Values[row.name]; set && !row.byProject {
			return nil, host.Errorf(host.ConfigError,
				"%s: %s cannot be set by a project; set it in your own config.toml", f.at(row.name), row.name)
		}
	}
	return f, nil
}

//go:embed config.schema.json
var configSchemaJSON []byte

// configSchema is compiled only if there is a configuration file.
var configSchema = sync.OnceValues(func() (*document.Schema, error) { return document.Compile(configSchemaJSON) })

// configFile is a valid configuration file.
type configFile struct {
	path   string
	Values map[string]string          // by setting: "traces.off"
	key    func(path []string) string // its position
}

// at returns the position of a setting, as FILE:LINE:COLUMN.
func (f *configFile) at(name string) string { return f.path + f.key(strings.Split(name, ".")) }

// ParseConfig parses a configuration file and validates it by its schema. The error is config_error, with each
// violation as FILE:LINE:COLUMN: KEY.
func ParseConfig(path string, data []byte) (*configFile, error) {
	tree := map[string]any{}
	if err := toml.NewDecoder(bytes.NewReader(data)).Decode(&tree); err != nil {
		where := ""
		if at, is := errors.AsType[*toml.DecodeError](err); is {
			line, column := at.Position()
			where = fmt.Sprintf(":%d:%d", line, column)
		}
		return nil, host.Errorf(host.ConfigError, "%s%s: %s", path, where, manifest.CleanLine(err.Error()))
	}
	f := &configFile{path: path, Values: map[string]string{}, key: policy.KeyPositions(data)}
	compiled, err := configSchema()
	if err != nil {
		return nil, err
	}
	violations, err := compiled.Validate(tree)
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "%s: %s", path, manifest.CleanLine(err.Error()))
	}
	if len(violations) > 0 {
		return nil, f.violationError(violations)
	}
	flatten("", tree, f.Values)
	return f, nil
}

func (f *configFile) violationError(violations []schema.Violation) error {
	const limit = 8
	e := &host.Error{Code: host.ConfigError}
	var lines []string
	for _, v := range violations {
		path, _ := jsontext.SplitPointer(v.Pointer)
		name := strings.Join(path, ".")
		text := fmt.Sprintf("%s: expected %s, got %s", name, v.Expected, v.Provided)
		if v.Keyword == "additionalProperties" {
			text = "unknown key " + name
			if near := Nearest(name, settingNames()); len(near) > 0 {
				text += "; did you mean " + near[0].Name + "?"
			}
		}
		lines = append(lines, f.path+f.key(path)+": "+manifest.CleanLine(text))
	}
	e.Message = strings.Join(spelling.AtMost(lines, limit), "\n")
	return e.WithNext("edit "+f.path, "known are "+strings.Join(settingNames(), ", "))
}

func settingNames() []string {
	return Map((&Settings{}).table(), func(s setting) string { return s.name })
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
		into[prefix+key] = strings.Join(Map(list, func(v any) string { return fmt.Sprint(v) }), ",")
	}
}

// Table is a table of a TOML file: its name, and its lines.
type Table struct {
	Name  string
	Lines []string
}

// ReplaceTables returns a TOML text with tables in place of those of the same names and their subtables, or at its end.
// Everything else stays, with its comments.
func ReplaceTables(text []byte, tables ...Table) []byte {
	isReplaced := func(name string) bool {
		return slices.ContainsFunc(tables, func(t Table) bool {
			return strings.EqualFold(name, t.Name) || strings.HasPrefix(name, t.Name+".")
		})
	}
	var out bytes.Buffer
	dropping := false
	for line := range bytes.Lines(text) {
		if name, begins := tableName(string(line)); begins {
			dropping = isReplaced(name)
		}
		if !dropping {
			out.Write(line)
		}
	}
	kept := bytes.TrimRight(out.Bytes(), "\n")
	for _, t := range tables {
		if len(kept) > 0 {
			kept = append(kept, "\n\n"...)
		}
		kept = fmt.Appendf(kept, "[%s]\n%s", t.Name, strings.Join(t.Lines, "\n"))
	}
	return append(kept, '\n')
}

// tableName returns the name of the table that begins with a line. For an item of an array of tables the name is "".
func tableName(line string) (name string, begins bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "[") || strings.HasPrefix(line, "[[") {
		return "", strings.HasPrefix(line, "[[")
	}
	name, _, ok := strings.Cut(line[1:], "]")
	return strings.ReplaceAll(strings.TrimSpace(name), `"`, ""), ok
}

// QuoteTOML returns a text as a basic string. Strings of JSON are valid TOML.
func QuoteTOML(s string) string { return string(jsontext.AppendString(nil, s)) }
