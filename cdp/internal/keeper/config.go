package keeper

import (
	"cmp"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Config selects a browser and how to open it. RunDir and either Chrome or Attach must be set.
type Config struct {
	// RunDir is the folder of all keepers' files. It is created with mode 0700.
	RunDir string `json:"run_dir"`
	// Browser is the name, [A-Za-z0-9][A-Za-z0-9_-]{0,63}. Empty means "default".
	Browser string `json:"browser"`
	// Version is the program's version, shown to other versions.
	Version string `json:"version,omitempty"`

	// Chrome is the executable. FoundBy is browser.Found.From, and Why explains it in a sentence.
	Chrome  string `json:"chrome,omitempty"`
	FoundBy string `json:"found_by,omitempty"`
	Why     string `json:"why,omitempty"`
	// Headed shows windows.
	Headed bool `json:"headed,omitempty"`
	// UserDataDir is the profile to use and keep. Empty means a temporary one.
	UserDataDir string `json:"user_data_dir,omitempty"`
	// Args are further flags for Chrome.
	Args []string `json:"args,omitempty"`
	// LaunchTimeout bounds launch and attach. Zero means 30 s.
	LaunchTimeout time.Duration `json:"launch_timeout,omitempty"`

	// Attach is a port, or the http:// or ws:// address of a running browser to use instead.
	Attach string `json:"attach,omitempty"`
	// AttachHosts are the remote host names, in lower case, that Attach may name.
	AttachHosts []string `json:"attach_hosts,omitempty"`

	// Idle is how long a keeper without requests stays. Zero means 30 minutes, a negative value no limit.
	Idle time.Duration `json:"idle,omitempty"`
	// Grace is how long what was opened over a connection stays open after the connection has ended. Zero means 30 s.
	Grace time.Duration `json:"grace,omitempty"`
	// Forbidden are origins that no session may list, attach to, navigate to or send input to.
	Forbidden []string `json:"forbidden,omitempty"`
	// MaxMessage is the largest reply read from the browser, in bytes. Zero means 128 MiB.
	MaxMessage int `json:"max_message,omitempty"`
	// RingEvents and RingBytes limit the stored events of all sessions together. Zero means 50,000 and 12 MiB.
	RingEvents int `json:"ring_events,omitempty"`
	RingBytes  int `json:"ring_bytes,omitempty"`
}

// DefaultBrowser is the browser name used when none is given.
const DefaultBrowser = host.DefaultBrowser

func (c *Config) setDefaults() {
	c.Browser = cmp.Or(c.Browser, DefaultBrowser)
	c.LaunchTimeout = cmp.Or(c.LaunchTimeout, 30*time.Second)
	c.Idle = cmp.Or(c.Idle, 30*time.Minute)
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	c.MaxMessage = cmp.Or(c.MaxMessage, 128<<20)
	c.RingEvents = cmp.Or(c.RingEvents, 50_000)
	c.RingBytes = cmp.Or(c.RingBytes, 12<<20)
}

// rooms returns what the rooms of the keeper need to know.
func (c *Config) rooms(external bool) verb.Options {
	return verb.Options{Name: c.Browser, External: external, MaxMessage: c.MaxMessage, RingEvents: c.RingEvents,
		RingBytes: c.RingBytes, Forbidden: c.Forbidden}
}

// CheckName reports a browser name that is not portable as a file name: it must start with a letter or digit,
// continue with letters, digits, _ and -, and have at most 64 characters.
func CheckName(name string) *api.Error {
	ok := name != "" && len(name) <= 64 && name[0] != '_' && name[0] != '-'
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return api.Errorf(api.CodeInvalidArgs, "%q is not a valid browser name: use at most 64 letters, digits, _ and -, "+
			"and begin with a letter or digit", manifest.Clip(name, 80))
	}
	return nil
}
