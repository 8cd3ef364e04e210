// Package config reads the configuration of the service.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet"
	"github.com/parley-tools/parley/cmd/parleyd/internal/oauth"
	"github.com/parley-tools/parley/cmd/parleyd/internal/telemetry"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/mcp/access"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Config has the fields of a configuration file. [Read] returns only valid configurations.
type Config struct {
	// Listen are the addresses of MCP. Sockets that systemd passes replace them.
	Listen []string `toml:"listen"`
	// StatusListen is a separate address for monitoring. "" serves monitoring at the addresses of MCP.
	StatusListen string `toml:"status_listen"`
	// PlainHTTP says why addresses beyond loopback are served without TLS.
	PlainHTTP string `toml:"plain_http"`
	// TrustedProxies are the networks whose X-Forwarded-For is trusted.
	TrustedProxies []string `toml:"trusted_proxies"`
	// Hosts are the names by which clients call the service.
	Hosts     []string `toml:"hosts"`
	TokenFile string   `toml:"token_file"`
	// Docs is the documentation mode of /mcp.
	Docs string `toml:"docs"`
	// Drain is how long calls in flight may go on after SIGTERM.
	Drain string `toml:"drain"`
	// ConfirmWait is how long a call waits for a person's approval.
	ConfirmWait string `toml:"confirm_wait"`
	TLS         TLS    `toml:"tls"`
	Log         Log    `toml:"log"`
	// OAuth says which tokens are accepted besides those of TokenFile. Without an issuer there are none.
	OAuth oauth.Config `toml:"oauth"`
	// Telemetry says where spans go.
	Telemetry telemetry.Config `toml:"telemetry"`
	// Fleet says how to reach the fleet that the process is part of.
	Fleet fleet.Config `toml:"fleet"`
	// Worker says what a worker of the fleet runs.
	Worker fleet.WorkerConfig `toml:"worker"`

	DrainTime   time.Duration  `toml:"-"`
	ConfirmTime time.Duration  `toml:"-"`
	Proxies     []netip.Prefix `toml:"-"`
	Level       slog.Level     `toml:"-"`
}

// TLS names the files of a certificate, in PEM.
type TLS struct {
	Cert string `toml:"cert"`
	Key  string `toml:"key"`
}

// Log says how the service logs.
type Log struct {
	Format string `toml:"format"`
	Level  string `toml:"level"`
}

// Read reads the configuration of a service. The error is config_error. It names each fault by its line, and says
// what is expected.
func Read(path string) (*Config, error) { return read(path, (*Config).check) }

// ReadFleet reads the configuration of a worker, or of a person who operates a fleet. The tables of a service may be
// missing. change, if not nil, changes it before it is checked. Errors are as for [Read].
func ReadFleet(path string, change func(*Config)) (*Config, error) {
	return read(path, func(c *Config, f *faults) {
		if change != nil {
			change(c)
		}
		c.checkCommon(f)
		if c.Fleet.URL == "" {
			f.expected("fleet.url", "nothing", "the address of the fleet's server, such as tls://nats.internal:4222")
		}
		c.Worker.Check(f.expected)
	})
}

func read(path string, check func(*Config, *faults)) (*Config, error) {
	data, err := protect.Read(path, protect.MaxConfig)
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "cannot read the configuration: %s", manifest.CleanLine(err.Error())).
			WithNext("write one, as deploy/parleyd.toml shows, or name another with --config FILE")
	}
	return parse(path, data, check)
}

// parse is [read] for the text of a file.
func parse(path string, data []byte, check func(*Config, *faults)) (*Config, error) {
	c := &Config{Listen: []string{"127.0.0.1:8931"}, Docs: mcp.Progressive, Drain: "30s",
		ConfirmWait: "50s"}
	c.Log.Format, c.Log.Level = "text", "info"
	c.Worker.Pool, c.Worker.Slots = "main", runtime.NumCPU()
	f := &faults{path: path, position: policy.KeyPositions(data)}
	decoder := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	err := decoder.Decode(c)
	if unknown, is := errors.AsType[*toml.StrictMissingError](err); is {
		for _, e := range unknown.Errors {
			f.unknown(e.Key())
		}
	} else if e, is := errors.AsType[*toml.DecodeError](err); is {
		line, column := e.Position()
		text := strings.TrimPrefix(e.Error(), "toml: ")
		if found := wrongType().FindStringSubmatch(text); found != nil {
			expected := cmp.Or(map[string]string{"string": "a string", "bool": "true or false", "int": "a whole number",
				"float64": "a number", "[]string": `a list of strings, such as ["a", "b"]`}[found[2]], "a table")
			text = fmt.Sprintf("expected %s, got a TOML %s", expected, found[1])
		}
		f.add(fmt.Sprintf(":%d:%d", line, column), strings.Join(e.Key(), "."), text)
		return nil, f.err()
	} else if err != nil {
		f.add("", "", strings.TrimPrefix(err.Error(), "toml: "))
	}
	check(c, f)
	return c, f.err()
}

// wrongType matches the error of a value that a field of Config cannot hold.
var wrongType = lazy.Pattern(`^cannot decode TOML (.+) into (?:struct field \S+ of type|a Go value of type) (\S+)$`)

// checkCommon checks what services and workers have in common.
func (c *Config) checkCommon(f *faults) {
	var err error
	if c.DrainTime, err = time.ParseDuration(c.Drain); err != nil || c.DrainTime < 0 {
		f.expected("drain", c.Drain, "a duration such as 30s")
	}
	if err := c.Level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		f.expected("log.level", c.Log.Level, "debug, info, warn or error")
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		f.expected("log.format", c.Log.Format, "text or json")
	}
	c.Fleet.Check(f.expected)
}

// check completes a configuration and reports its faults.
func (c *Config) check(f *faults) {
	c.checkCommon(f)
	var err error
	if c.ConfirmTime, err = time.ParseDuration(c.ConfirmWait); err != nil || c.ConfirmTime <= 0 {
		f.expected("confirm_wait", c.ConfirmWait, "a duration above 0, such as 50s")
	}
	for _, network := range c.TrustedProxies {
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			f.expected("trusted_proxies", network, "a network such as 10.0.0.0/8")
		}
		c.Proxies = append(c.Proxies, prefix)
	}
	if err := mcp.CheckMode(c.Docs); err != nil {
		f.expected("docs", c.Docs, "one of "+strings.Join(mcp.Modes(), ", "))
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		f.expected("tls", cmp.Or(c.TLS.Cert, c.TLS.Key), "both cert and key")
	}
	if len(c.Listen) == 0 {
		f.expected("listen", "[]", "an address such as 127.0.0.1:8931")
	}
	for _, address := range c.Listen {
		f.address("listen", address)
		if !c.MayServe(address) {
			f.expected("listen", address, "tls.cert and tls.key, an address on loopback, or plain_http with the reason "+
				"why nobody can read along, such as plain_http = \"behind a proxy on this machine\"")
		}
	}
	if c.StatusListen != "" {
		f.address("status_listen", c.StatusListen)
	}
	if c.TokenFile == "" && c.OAuth.Issuer == "" {
		f.expected("token_file", "nothing", "a file with a line NAME=TOKEN for each client, or oauth.issuer")
	}
	c.checkOAuth(f)
	c.Telemetry.Check(f.expected)
}

func (c *Config) checkOAuth(f *faults) {
	o := &c.OAuth
	if o.Issuer == "" {
		if o.Audience+o.Resource+o.JWKS != "" || len(o.Callers) > 0 {
			f.expected("oauth.issuer", "nothing", "the URL of the authorization server")
		}
		return
	}
	f.url("oauth.issuer", o.Issuer)
	if o.JWKS != "" {
		f.url("oauth.jwks", o.JWKS)
	}
	if o.Audience == "" {
		f.expected("oauth.audience", "nothing", "what the tokens for this service have in aud, such as its URL")
	} else if o.Resource != "" {
		f.url("oauth.resource", o.Resource)
	} else if _, ok := webURL(o.Audience); !ok {
		f.expected("oauth.resource", "nothing", "the URL of MCP as clients have it, since the audience is not a URL")
	}
	for _, caller := range o.Callers {
		if caller.Claim == "" || caller.Value == "" || !access.IsName(caller.Caller) {
			f.expected("oauth.callers", fmt.Sprintf("%+v", caller),
				"claim, value and caller, a name of letters, digits, -, _ and .")
		}
	}
	if len(o.Callers) == 0 {
		f.expected("oauth.callers", "none", "a table [[oauth.callers]] with claim, value and caller")
	}
}

// webURL parses a URL that uses https, or is on loopback.
func webURL(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, false
	}
	name := u.Hostname()
	return u, u.Scheme == "https" || u.Scheme == "http" && (name == "localhost" || net.ParseIP(name).IsLoopback())
}

// Files returns the paths of the files that the configuration names.
func (c *Config) Files() []string {
	files := []string{c.TokenFile, c.TLS.Cert, c.TLS.Key, c.Telemetry.HeadersFile, c.Fleet.Key, c.Fleet.CA}
	return slices.DeleteFunc(files, func(path string) bool { return path == "" })
}

// MayServe reports whether MCP may be served at an address: with TLS, on loopback, or because plain_http says why.
func (c *Config) MayServe(address string) bool {
	name, _, _ := net.SplitHostPort(address)
	return c.TLS.Cert != "" || c.PlainHTTP != "" || name == "localhost" || net.ParseIP(name).IsLoopback()
}

// Changes returns the keys whose values differ, in order.
func (c *Config) Changes(other *Config) []string {
	ours, theirs := c.values(), other.values()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(ours)), func(key string) bool { return ours[key] == theirs[key] })
}

// values returns the values of all keys, as text.
func (c *Config) values() map[string]string {
	text, _ := toml.Marshal(c)
	var tree map[string]any
	_ = toml.Unmarshal(text, &tree)
	values := map[string]string{}
	flatten("", tree, values)
	return values
}

func flatten(prefix string, tree map[string]any, into map[string]string) {
	for key, value := range tree {
		if table, is := value.(map[string]any); is {
			flatten(prefix+key+".", table, into)
			continue
		}
		into[prefix+key] = fmt.Sprint(value)
	}
}

// faults are the faults of a file.
type faults struct {
	path     string
	position func(key []string) string
	lines    []string
}

// add adds a fault at a position, ":LINE:COLUMN" or "".
func (f *faults) add(position, key, text string) {
	f.lines = append(f.lines, manifest.CleanLine(strings.TrimSuffix(f.path+position+": "+key, ": ")+": "+text))
}

// expected adds the fault of an invalid value.
func (f *faults) expected(key, given, expected string) {
	f.add(f.position(strings.Split(key, ".")), key, fmt.Sprintf("got %q, expected %s", given, expected))
}

// unknown adds the fault of an unknown key.
func (f *faults) unknown(key []string) {
	name, text := strings.Join(key, "."), "unknown key"
	known := slices.Sorted(maps.Keys((&Config{}).values()))
	if near := spelling.Nearest(name, known, 1); len(near) > 0 {
		text += "; did you mean " + near[0].Name + "?"
	}
	f.add(f.position(key), name, text+"; known are "+strings.Join(known, ", "))
}

// address adds a fault unless a value is HOST:PORT.
func (f *faults) address(key, given string) {
	if _, port, err := net.SplitHostPort(given); err != nil || port == "" {
		f.expected(key, given, "an address HOST:PORT, such as 127.0.0.1:8931")
	}
}

// url adds a fault unless a value is a URL that [webURL] accepts.
func (f *faults) url(key, given string) {
	if _, ok := webURL(given); !ok {
		f.expected(key, given, "a URL https://HOST")
	}
}

func (f *faults) err() error {
	if len(f.lines) == 0 {
		return nil
	}
	return host.Errorf(host.ConfigError, "%s", strings.Join(f.lines, "\n")).WithNext("edit " + f.path)
}
