package keeper

import (
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Config says which browser to open and how. RunDir and one of Chrome and Attach
// must be set.
type Config struct {
	// RunDir is the folder of all keepers' files. It is made, 0700.
	RunDir string `json:"run_dir"`
	// Browser is the name, [A-Za-z0-9][A-Za-z0-9_-]{0,63}. Default "default".
	Browser string `json:"browser"`
	// Version is the program's, shown to others.
	Version string `json:"version,omitempty"`

	// Chrome is the executable, FoundBy what named it, as in browser.Found, and Why that in a sentence.
	Chrome  string `json:"chrome,omitempty"`
	FoundBy string `json:"found_by,omitempty"`
	Why     string `json:"why,omitempty"`
	// Headed shows windows.
	Headed bool `json:"headed,omitempty"`
	// UserDataDir is the profile to use and keep. Default: a temporary one.
	UserDataDir string `json:"user_data_dir,omitempty"`
	// Args are further flags for Chrome.
	Args []string `json:"args,omitempty"`
	// LaunchTimeout bounds launch and attach. Default 30 s.
	LaunchTimeout time.Duration `json:"launch_timeout,omitempty"`

	// Attach is a port, http:// or ws:// address of a running browser to use instead.
	Attach string `json:"attach,omitempty"`
	// AttachHosts are those outside of this machine that Attach may name, in lower case.
	AttachHosts []string `json:"attach_hosts,omitempty"`

	// Idle is how long a keeper lives that is not asked anything. Default 30 min, below 0 for ever.
	Idle time.Duration `json:"idle,omitempty"`
	// MaxMessage is the largest reply read. Default 128 MiB.
	MaxMessage int `json:"max_message,omitempty"`
	// RingEvents and RingBytes bound the kept events. Default 10,000 and 16 MiB.
	RingEvents int `json:"ring_events,omitempty"`
	RingBytes  int `json:"ring_bytes,omitempty"`
}

// DefaultBrowser is the name of the browser that nobody named.
const DefaultBrowser = host.DefaultBrowser

func (c *Config) setDefaults() {
	c.Browser = orDefault(c.Browser)
	if c.LaunchTimeout <= 0 {
		c.LaunchTimeout = 30 * time.Second
	}
	if c.Idle == 0 {
		c.Idle = 30 * time.Minute
	}
	if c.MaxMessage <= 0 {
		c.MaxMessage = 128 << 20
	}
	if c.RingEvents <= 0 {
		c.RingEvents = 10_000
	}
	if c.RingBytes <= 0 {
		c.RingBytes = 16 << 20
	}
}

func orDefault(name string) string {
	if name == "" {
		return DefaultBrowser
	}
	return name
}

// CheckName holds a browser's name to what a file's name can be everywhere: a letter or digit, then also _ and -, at most 64 in all.
func CheckName(name string) *Error {
	ok := name != "" && len(name) <= 64 && name[0] != '_' && name[0] != '-'
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return errf(CodeInvalidArgs, "%q is not a browser's name: letters, digits, _ and -, at most 64", manifest.Clip(name, 80))
	}
	return nil
}
