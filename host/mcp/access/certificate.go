package access

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// Certificate is a certificate with its key, read again when the files change. It is safe for concurrent use.
type Certificate struct {
	Cert, Key string // files, in PEM
	// ReadFirst reads a file the first time, for example from a pipe. Nil reads it as every later time.
	ReadFirst func(path string) ([]byte, error)
	// Changed is called with the certificate that has replaced another one, or with the error of a changed pair that
	// was not used.
	Changed func(*x509.Certificate, error)

	mu     sync.Mutex
	stamps [2]protect.Stamp
	pair   *tls.Certificate
}

// Current returns the pair. If a changed pair is not valid, the previous one stays. The error is config_error if there
// is no previous pair.
func (c *Certificate) Current() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := [2]protect.Stamp{protect.StampOf(c.Cert), protect.StampOf(c.Key)}
	if c.pair != nil && now[0].Same(c.stamps[0]) && now[1].Same(c.stamps[1]) {
		return c.pair, nil
	}
	c.stamps = now
	pair, err := c.read()
	switch {
	case c.pair == nil:
		c.pair = pair
		return pair, err
	case err != nil:
		c.Changed(nil, err)
	default:
		c.pair = pair
		c.Changed(pair.Leaf, nil)
	}
	return c.pair, nil
}

func (c *Certificate) read() (*tls.Certificate, error) {
	read := c.ReadFirst
	if read == nil || c.pair != nil {
		read = func(path string) ([]byte, error) { return protect.Read(path, protect.MaxConfig) }
	}
	cert, err := read(c.Cert)
	key, keyErr := read(c.Key)
	pair, pairErr := tls.X509KeyPair(cert, key)
	if err = cmp.Or(err, keyErr, pairErr); err != nil {
		return nil, host.Errorf(host.ConfigError, "the certificate or its key: %s (in %s and %s)",
			manifest.CleanLine(err.Error()), c.Cert, c.Key).
			WithNext("name a certificate and its unencrypted key, both in PEM")
	}
	return &pair, nil
}
