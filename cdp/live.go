package cdp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
)

// Live makes the plugin speak of the protocol of a browser in the place of the embedded one: lists, documentation, search and
// validation. It is called before anything else is asked. The browser is the open one of that name, or else the one that
// would be started. The error is chrome_launch or chrome_connection.
func (p *Provider) Live(ctx context.Context, name string) error {
	live, _, err := p.fetchLive(ctx, name)
	if err != nil {
		return err
	}
	p.setProtocol(live)
	return nil
}

// Difference is what the protocol of a browser has that the embedded one has not, and the other way round.
type Difference struct {
	Embedded string `json:"embedded"` // version of the npm package
	Browser  string `json:"browser"`  // product and version
	Total    int    `json:"total"`
	protocol.Difference
}

// Changes are the differences of one kind.
type Changes = protocol.Changes

// Diff compares the embedded protocol with that of a browser, chosen as Live does.
func (p *Provider) Diff(ctx context.Context, name string) (*Difference, error) {
	embedded := protocol.Embedded()
	live, product, err := p.fetchLive(ctx, name)
	if err != nil {
		return nil, err
	}
	d := &Difference{Embedded: embedded.Revision(), Browser: product, Difference: protocol.Diff(embedded, live)}
	d.Total = d.Count()
	return d, nil
}

// fetchLive reads the protocol of a browser and says which product it is.
func (p *Provider) fetchLive(ctx context.Context, name string) (*protocol.Protocol, string, error) {
	document, product, err := p.fetchDocument(ctx, name)
	if err != nil {
		return nil, "", p.hostError(err, nil)
	}
	live, err := protocol.Parse(document)
	if err != nil {
		return nil, "", host.Errorf(host.ChromeConnection, "the protocol of %s cannot be read: %v", product, err).WithNext("leave out --live")
	}
	return live, product, nil
}

// fetchDocument is the text of a browser's protocol. One that has a port is asked; of one that has none the same binary is started
// once with a port, and its answer is kept by product and revision.
func (p *Provider) fetchDocument(ctx context.Context, name string) (document []byte, product string, err error) {
	if err := p.checkBrowser(name); err != nil {
		return nil, "", err
	}
	var open keeper.Status
	if c, err := p.client(ctx, name); err == nil {
		if open, err = c.Status(ctx); err != nil {
			return nil, "", err
		}
	}
	if open.Mode == "attached" {
		document, err = browser.FetchProtocol(ctx, open.Endpoint)
		if err != nil {
			return nil, "", host.Errorf(host.ChromeConnection, "the protocol of the attached browser cannot be read: %v", err).WithNext("leave out --live")
		}
		return document, open.Product, nil
	}
	if open.Product != "" {
		if document, err := os.ReadFile(p.cachePath(open.Product, open.Revision)); err == nil && json.Valid(document) {
			p.cfg.Debug("live: the protocol of %s as it was kept", open.Product)
			return document, open.Product, nil
		}
	}
	path := open.Executable
	if path == "" {
		found, err := findChrome("", p.cfg.Env, p.cfg.Chrome)
		if err != nil {
			return nil, "", err
		}
		path = found.Path
	}
	p.cfg.Debug("live: %s is started for its protocol", path)
	document, version, err := keeper.FetchProtocol(ctx, keeper.Config{RunDir: p.cfg.RunDir, Chrome: path})
	if err != nil {
		return nil, "", err
	}
	p.cacheDocument(p.cachePath(version.Product, version.Revision), document)
	return document, version.Product, nil
}

// cachePath is the file of a protocol that was read before.
func (p *Provider) cachePath(product, revision string) string {
	return filepath.Join(p.cfg.CacheDir, "protocol", sanitizeFileName(product+"_"+revision)+".json")
}

// sanitizeFileName leaves of a text what can stand in the name of a file.
func sanitizeFileName(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, text)
}

// cacheDocument keeps a protocol for later. It only saves time, so what fails is only told to those who debug.
func (p *Provider) cacheDocument(path string, document []byte) {
	if p.cfg.CacheDir == "" {
		return
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		temp := path + ".new"
		if err = os.WriteFile(temp, document, 0o600); err == nil {
			err = os.Rename(temp, path)
		}
	}
	if err != nil {
		p.cfg.Debug("live: the protocol is not kept: %v", err)
	}
}
