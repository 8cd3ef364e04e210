// Package cdp is the built-in plugin: the Chrome DevTools Protocol and verbs for the browser itself, behind the same
// interface as any other plugin. Discovery reads the embedded protocol. Calls go through a keeper process that owns
// Chrome.
package cdp

import (
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
)

// Name is the plugin's name.
const Name = "cdp"

// Config holds the paths and settings of the plugin. Calls require only RunDir.
type Config struct {
	RunDir   string              // folder of sockets and locks, mode 0700
	StateDir string              // folder of what cdp.state saves; "": nothing can be saved
	CacheDir string              // folder of the cached protocols of browsers; "": no cache
	Env      func(string) string // default: no environment
	Chrome   string              // configured path of the browser; "" looks in the usual places
	Idle     time.Duration       // an unused keeper ends after this time; 0: 30 minutes
	Version  string              // of this host
	// AttachHosts returns the remote hosts to whose browsers the operator allows attaching; nil: none.
	AttachHosts func() ([]string, error)
	Debug       func(format string, args ...any)
}

// Provider is the plugin. It is safe for concurrent use.
type Provider struct {
	*catalog
	browsers *browsers
}

var _ host.Provider = (*Provider)(nil)

// Features returns what the plugin can do beyond listing and running tools.
func (p *Provider) Features() host.Features {
	return host.Features{
		Events: p.Events, Entry: p.Entry, Coverage: p.Coverage, Describe: p.Describe, Flow: p.Flow, Pass: passTool,
		SearchDocs: p.searchDocs, MissingPage: p.MissingPage, NeedsConfirmation: p.NeedsConfirmation, Effect: effectOf,
	}
}

// New returns the plugin for the embedded protocol. It does no work until the first look-up.
func New(cfg Config) *Provider {
	if cfg.Env == nil {
		cfg.Env = func(string) string { return "" }
	}
	if cfg.Debug == nil {
		cfg.Debug = func(string, ...any) {}
	}
	return &Provider{catalogOf(protocol.Embedded()), &browsers{cfg: cfg, clients: map[string]*keeper.Client{}}}
}
