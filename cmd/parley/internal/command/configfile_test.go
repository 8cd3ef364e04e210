package command

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest/document"
)

// load reads the settings of a config.toml.
func load(t testing.TB, text string) (*Settings, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	return loadSettings(func(string) string { return "" }, dir)
}

// TestConfiguredTimeout checks that a configured timeout applies to calls without one, and is marked as configured.
func TestConfiguredTimeout(t *testing.T) {
	s, err := load(t, "timeout = \"5s\"\n")
	if err != nil {
		t.Fatal(err)
	}
	if o := s.Complete(job.Options{}); o.Timeout != 5*time.Second || !o.TimeoutConfigured {
		t.Errorf("without a timeout: %+v", o)
	}
	if o := s.Complete(job.Options{Timeout: time.Second}); o.Timeout != time.Second || o.TimeoutConfigured {
		t.Errorf("with a timeout: %+v", o)
	}
}

// TestConfigIsValidated checks that each mistake in config.toml is named with its key and position.
func TestConfigIsValidated(t *testing.T) {
	for _, tc := range []struct{ text, want, near string }{
		{"max_byte = 1\n", "config.toml:1:1: unknown key max_byte", "max_bytes"},
		{"\n[traces]\n  of = true\n", "config.toml:3:3: unknown key traces.of", "traces.off"},
		{"[trace]\noff = true\n", "config.toml:1:2: unknown key trace", ""},
		{"traces = {off = true, on = 1}\n", "config.toml:1:23: unknown key traces.on", ""},
		{"max_bytes = -1\n", "config.toml:1:1: max_bytes: expected integer >= 0", ""},
		{"max_bytes = 1.5\n", "config.toml:1:1: max_bytes: expected", ""},
		{"max_bytes = true\n", "config.toml:1:1: max_bytes: expected", ""},
		{"browser = [\"a\"]\n", "config.toml:1:1: browser: expected", ""},
		{"timeout = 10\n", "config.toml:1:1: timeout: expected", ""},
		{"timeout = 2026-01-02\n", "config.toml:1:1, ", ""},
		{"timeout = \"soon\"\n", `timeout, set by `, ""},
		{"browser_idle = \"soon\"\n", `config.toml:1:1: "soon" is not a duration`, ""},
		{"pinned_tools = [1]\n", "pinned_tools.0: expected", ""},
		{"tool_documentation_mode = \"ful\"\n", "tool_documentation_mode: expected one of", ""},
		{"[traces]\nkeep_days = 0\n", "config.toml:2:1: traces.keep_days: expected", ""},
		{"[traces]\nmax_mib = 1048577\n", "config.toml:2:1: traces.max_mib: expected", ""},
		{"traces = 1\n", "config.toml:1:1: traces: expected", ""},
		{"max_bytes = \nx", "config.toml:1:", ""},
		{"\"a/b~\" = 1\n", "config.toml:1:1: unknown key a/b~", ""},
		{"a = 1\nb = 1\n", "config.toml:2:1: unknown key b", ""},
		{"max_bytes = inf\n", "config.toml: ", ""},
	} {
		_, err := load(t, tc.text)
		if err == nil {
			t.Errorf("%q was accepted", tc.text)
			continue
		}
		e := host.AsError(err)
		if e.Code != host.ConfigError || !strings.Contains(e.Message, strings.TrimSuffix(tc.want, ", ")) {
			t.Errorf("%q: got %s %q, expected %q", tc.text, e.Code, e.Message, tc.want)
		}
		if tc.near != "" && !strings.Contains(e.Message, "; did you mean "+tc.near+"?") {
			t.Errorf("%q: %s, expected %s to be suggested", tc.text, e.Message, tc.near)
		}
	}
}

// TestConfigForms checks the forms in which values may be written.
func TestConfigForms(t *testing.T) {
	for _, text := range []string{`
max_bytes = 40
pinned_tools = ["text.hash", "cdp.open"]
timeout = "5s"
[traces]
off = true
keep_days = 3
`, `
max_bytes = "40"
pinned_tools = "text.hash, cdp.open"
timeout = "5s"
traces = {off = "true", keep_days = "3"}
`, `
max_bytes = 0x28
pinned_tools = ["text.hash", "cdp.open"]
timeout = "5s"
traces.off = true
traces.keep_days = 3
`} {
		s, err := load(t, text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		pinned := strings.Join(s.Pinned, " ")
		if s.MaxBytes != 40 || pinned != "text.hash cdp.open" || !s.TracesOff || s.TracesDays != 3 ||
			s.Timeout.String() != "5s" {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

// TestConfigSchemaHasEverySetting checks that the schema of the configuration and the table of settings name the same
// keys.
func TestConfigSchemaHasEverySetting(t *testing.T) {
	type object struct{ Properties map[string]json.RawMessage }
	var names []string
	var collect func(prefix string, raw []byte)
	collect = func(prefix string, raw []byte) {
		var o object
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(o.Properties)) {
			if inner := o.Properties[name]; strings.Contains(string(inner), `"properties"`) {
				collect(prefix+name+".", inner)
			} else {
				names = append(names, prefix+name)
			}
		}
	}
	collect("", configSchemaJSON)
	want := settingNames()
	slices.Sort(want)
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("the schema has %v, the table %v", names, want)
	}
}

func BenchmarkConfigSchema(b *testing.B) {
	for b.Loop() {
		if _, err := document.Compile(configSchemaJSON); err != nil {
			b.Fatal(err)
		}
	}
}
