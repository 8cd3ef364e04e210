package config

import (
	"slices"
	"strings"
	"testing"
)

// TestParse reads files with faults. Each fault names its line, and what is expected there.
func TestParse(t *testing.T) {
	const tokens = "token_file = \"/t\"\n"
	const oauth = "[oauth]\nissuer = \"https://login.example\"\n"
	const callers = "\n[[oauth.callers]]\nclaim = \"groups\"\nvalue = \"ops\"\ncaller = \"ops\""
	for _, c := range []struct {
		text string
		want []string // parts of the error; none: the file is valid
	}{
		{tokens, nil},
		{tokens + "listen = [\"[::1]:1\", \"localhost:2\", \"127.0.0.9:3\"]\n[log]\nlevel = \"DEBUG\"\nformat = \"json\"",
			nil},
		{tokens + "listen = [\"0.0.0.0:1\"]\nplain_http = \"behind a proxy\"\ntrusted_proxies = [\"10.0.0.0/8\"]", nil},
		{tokens + "listen = [\"0.0.0.0:1\"]\n[tls]\ncert = \"c\"\nkey = \"k\"", nil},
		{oauth + "audience = \"https://t.example/mcp\"" + callers, nil},
		{oauth + "audience = \"tools\"\nresource = \"https://t.example/mcp\"" + callers, nil},
		{oauth + "audience = \"tools\"" + callers, []string{"oauth.resource: got \"nothing\""}},
		{oauth, []string{"oauth.audience: got", "oauth.callers: got \"none\""}},
		{oauth + "audience = \"https://t.example\"" + strings.ReplaceAll(callers, "ops", "o p"),
			[]string{"a name of letters"}},
		{tokens + "[oauth]\naudience = \"a\"", []string{"oauth.issuer: got"}},
		{strings.ReplaceAll(oauth, "https", "http"), []string{"p.toml:2:1: oauth.issuer: got \"http://login.example\""}},
		{"", []string{`p.toml: token_file: got "nothing", expected a file`}},
		{tokens + "listen = [\"0.0.0.0:1\"]", []string{`p.toml:2:1: listen: got "0.0.0.0:1", expected tls.cert and`}},
		{tokens + "listen = [\":1\"]", []string{`p.toml:2:1: listen: got ":1", expected tls.cert`}},
		{tokens + "listen = [\"here\"]", []string{`listen: got "here", expected an address HOST:PORT`}},
		{tokens + "[fleet]\nurl = \"tls://n:1\"\npolicy = \"shared\"", []string{`fleet.policy: got "shared", expected the public key`}},
		{tokens + "listen = []", []string{`expected an address such as 127.0.0.1:8931`}},
		{tokens + "lisen = 1\nlog.levle = \"x\"", []string{
			"p.toml:2:1: lisen: unknown key; did you mean listen?",
			"p.toml:3:5: log.levle: unknown key; did you mean log.level?"}},
		{tokens + "drain = \"soon\"\ndocs = \"all\"\n[tls]\ncert = \"c\"", []string{
			`p.toml:2:1: drain: got "soon", expected a duration such as 30s`,
			`p.toml:3:1: docs: got "all", expected one of minimal, progressive, full, code`,
			`p.toml:4:2: tls: got "c", expected both cert and key`}},
		{tokens + "trusted_proxies = [\"10.0.0.0/8\", \"10.0.0.1\"]", []string{`got "10.0.0.1", expected a network`}},
		{tokens + "drain = 30", []string{"p.toml:2:9: drain: "}},
		{tokens + "drain = ", []string{"p.toml:2:"}},
		{tokens + "[log]\nlevel = \"loud\"\nformat = \"xml\"", []string{`p.toml:3:1: log.level: got "loud"`, `"xml"`}},
	} {
		_, err := parse("p.toml", []byte(c.text), (*Config).check)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, want %q", c.text, err, part)
			}
		}
	}
}

// TestWrongTypes gives each key a value of another type. The error says what is expected, and names no type of Go.
func TestWrongTypes(t *testing.T) {
	for key := range (&Config{}).values() {
		for _, value := range []string{"[[1]]", "{a = 1}", "1979-05-27"} {
			_, err := parse("p.toml", []byte(key+" = "+value), (*Config).check)
			if err == nil || !strings.Contains(err.Error(), key+": expected ") || strings.Contains(err.Error(), "onfig.") {
				t.Errorf("%s = %s: %v", key, value, err)
			}
		}
	}
}

// TestChanges names the keys that differ.
func TestChanges(t *testing.T) {
	read := func(text string) *Config {
		c, err := parse("p.toml", []byte("token_file = \"/t\"\n"+text), (*Config).check)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old := read("docs = \"code\"\n[log]\nlevel = \"warn\"")
	if got := old.Changes(read("hosts = [\"a\"]\ndocs = \"code\"")); !slices.Equal(got, []string{"hosts", "log.level"}) {
		t.Error(got)
	}
	if got := old.Changes(old); len(got) > 0 {
		t.Error(got)
	}
}
