package cdp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/internal/durable"
)

// Live replaces the embedded protocol with that of a browser for lists, documentation, search and validation. Call it
// before any other method. It uses the open browser of that name, or else the browser that open would start. The error
// is chrome_launch or chrome_connection.
func (p *Provider) Live(ctx context.Context, name string) error {
	if err := p.checkBrowser(name); err != nil {
		return err
	}
	document, product, err := p.browsers.fetchDocument(ctx, name)
	if err != nil {
		return p.hostError(err, nil)
	}
	live, err := protocol.Parse(document)
	if err != nil {
		return host.Errorf(host.ChromeConnection,
			"cannot read the protocol of %s: %v; use the embedded protocol instead",
			product, err).WithSteps(host.ListStep(Name))
	}
	p.catalog = catalogOf(live)
	return nil
}

// fetchDocument returns the protocol document of a browser and the browser's product name. It asks an attached browser
// over its port. A browser without a port cannot be asked, so it starts the same binary once with a port and caches the
// document by product and revision.
func (b *browsers) fetchDocument(ctx context.Context, name string) (document []byte, product string, err error) {
	var open api.Status
	if c, err := b.client(ctx, name); err == nil {
		if open, err = c.Status(ctx, false); err != nil {
			return nil, "", err
		}
	}
	if open.Mode == "attached" {
		document, err = browser.FetchProtocol(ctx, open.Endpoint)
		if err != nil {
			return nil, "", host.Errorf(host.ChromeConnection, "cannot read the protocol of the attached browser: %v; "+
				"use the embedded protocol instead", err).WithSteps(host.ListStep(Name))
		}
		return document, open.Product, nil
	}
	if open.Product != "" {
		document, err := protect.Read(b.cachePath(open.Product, open.Revision), 64<<20)
		if err == nil && json.Valid(document) {
			b.cfg.Debug("live: the protocol of %s comes from the cache", open.Product)
			return document, open.Product, nil
		}
	}
	path := open.Executable
	if path == "" {
		found, err := findChrome("", b.cfg.Env, b.cfg.Chrome)
		if err != nil {
			return nil, "", err
		}
		path = found.Path
	}
	b.cfg.Debug("live: starting %s to read its protocol", path)
	document, version, err := keeper.FetchProtocol(ctx, keeper.Config{RunDir: b.cfg.RunDir, Chrome: path})
	if err != nil {
		return nil, "", err
	}
	b.cacheDocument(b.cachePath(version.Product, version.Revision), document)
	return document, version.Product, nil
}

// cachePath returns the path of a cached protocol.
func (b *browsers) cachePath(product, revision string) string {
	return filepath.Join(b.cfg.CacheDir, "protocol", sanitizeFileName(product+"_"+revision)+".json")
}

// sanitizeFileName replaces characters that are not safe in a file name with underscores.
func sanitizeFileName(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, text)
}

// cacheDocument writes a protocol to the cache. The cache only saves time, so errors go to the debug log.
func (b *browsers) cacheDocument(path string, document []byte) {
	if b.cfg.CacheDir == "" {
		return
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = durable.Write(path, document)
	}
	if err != nil {
		b.cfg.Debug("live: cannot cache the protocol: %v", err)
	}
}
