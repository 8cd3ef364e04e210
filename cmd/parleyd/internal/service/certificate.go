package service

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-tools/parley/cmd/parleyd/internal/config"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// expiresSoon is the time before a certificate's end when warnings start.
const expiresSoon = 14 * 24 * time.Hour

// certificate is a pair of files, read again when they change. It is safe for concurrent use.
type certificate struct {
	files config.TLS

	mu     sync.Mutex
	stamps [2]protect.Stamp
	pair   *tls.Certificate
}

// readCertificate reads a pair. The error is config_error.
func readCertificate(files config.TLS) (*certificate, error) {
	c := &certificate{files: files}
	c.stamps = c.stampsNow()
	var err error
	c.pair, err = c.read()
	return c, err
}

func (c *certificate) stampsNow() [2]protect.Stamp {
	return [2]protect.Stamp{protect.StampOf(c.files.Cert), protect.StampOf(c.files.Key)}
}

func (c *certificate) read() (*tls.Certificate, error) {
	cert, err := protect.Read(c.files.Cert, protect.MaxConfig)
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "tls.cert: %s", manifest.CleanLine(err.Error()))
	}
	key, err := protect.Read(c.files.Key, protect.MaxConfig)
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "tls.key: %s", manifest.CleanLine(err.Error()))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "tls.cert %s and tls.key %s: %s; expected a certificate and its "+
			"unencrypted key, both in PEM", c.files.Cert, c.files.Key, manifest.CleanLine(err.Error()))
	}
	return &pair, nil
}

// current returns the certificate. An invalid pair does not replace the previous one; it is logged once.
func (c *certificate) current(log *slog.Logger) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.stampsNow()
	if now[0].Same(c.stamps[0]) && now[1].Same(c.stamps[1]) {
		return c.pair
	}
	c.stamps = now
	pair, err := c.read()
	if err != nil {
		log.Error("the certificate stays as it was", "error", err)
		return c.pair
	}
	c.pair = pair
	log.Info("the certificate was read again", "expires", pair.Leaf.NotAfter)
	return pair
}

// warning says that the certificate ends soon or has ended, "" otherwise.
func (c *certificate) warning(log *slog.Logger) string {
	if c == nil {
		return ""
	}
	end := c.current(log).Leaf.NotAfter
	switch left := time.Until(end); {
	case left < 0:
		return fmt.Sprintf("the certificate expired on %s", end.Format(time.DateOnly))
	case left < expiresSoon:
		return fmt.Sprintf("the certificate expires on %s", end.Format(time.DateOnly))
	}
	return ""
}
