package service

import (
	"context"
	"crypto/x509"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cmd/parleyd/internal/config"
	"github.com/parley-tools/parley/cmd/parleyd/internal/oauth"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp/access"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/signature"
)

// loaded is a configuration with the content of its files. A reload replaces it as a whole.
type loaded struct {
	*config.Config
	tokens      []access.Token
	oauth       *oauth.Verifier     // nil without OAuth
	certificate *access.Certificate // nil without TLS
	routes      http.Handler
	stamps      map[string]protect.Stamp // stamps of all files that a reload reads
}

// load reads the files of a configuration. If old has the same issuer, load keeps what is known about it. old may be
// nil.
func load(cfg *config.Config, old *loaded, notice func(string),
	changed func(*x509.Certificate, error)) (*loaded, error) {
	l := &loaded{Config: cfg}
	var err error
	if cfg.TokenFile != "" {
		if l.tokens, err = (&access.File{Path: cfg.TokenFile, Notice: notice}).Tokens(); err != nil {
			return nil, err
		}
	}
	if old != nil && reflect.DeepEqual(old.OAuth, cfg.OAuth) {
		l.oauth = old.oauth
	} else if cfg.OAuth.Issuer != "" {
		l.oauth = oauth.New(cfg.OAuth)
	}
	if cfg.TLS.Cert != "" {
		l.certificate = &access.Certificate{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key, Changed: changed}
		_, err = l.certificate.Current()
	}
	return l, err
}

// verify looks a token up in the file, or else verifies it by OAuth.
func (l *loaded) verify(ctx context.Context, text string) (access.Token, error) {
	token, err := access.Find(l.tokens, text)
	if err != nil && l.oauth != nil {
		return l.oauth.Verify(ctx, text)
	}
	return token, err
}

// stamps returns the stamps of the files that a reload reads: the configuration's and the policy's.
func (s *Service) stamps(cfg *config.Config) map[string]protect.Stamp {
	stamps := map[string]protect.Stamp{}
	for _, path := range cfg.Files() {
		stamps[path] = protect.StampOf(path)
	}
	for _, name := range []string{policy.PolicyFile, policy.GrantsFile, signature.TrustFile} {
		path := filepath.Join(s.parley.Dirs().Config, name)
		stamps[path] = protect.StampOf(path)
	}
	return stamps
}

// atStart are the keys that take effect only at a start, in addition to those of telemetry and fleet.
var atStart = []string{"confirm_wait", "docs", "listen", "log.format", "status_listen"}

// reload reads the configuration and its files again, and logs what has changed. If there is a fault, nothing
// changes. Each call reads the policy itself, so a fault in the policy, with which every call fails, is only logged.
func (s *Service) reload() {
	old := s.loaded.Load()
	cfg, err := config.Read(s.path)
	if err == nil && (cfg.TLS.Cert == "") != (old.TLS.Cert == "") {
		err = host.Errorf(host.ConfigError, "%s: TLS can only be turned on or off by a restart of the service", s.path)
	}
	var next *loaded
	if err == nil {
		next, err = load(cfg, old, s.notice, s.changed)
	}
	if err == nil {
		err = s.remember(cfg)
	}
	if err == nil {
		next.stamps = s.stamps(cfg)
		err = s.use(next)
	}
	if err != nil {
		s.log.Error("nothing was reloaded", "error", err)
		return
	}
	keys := next.Changes(old.Config)
	var files []string
	for path, stamp := range next.stamps {
		if !stamp.Same(old.stamps[path]) {
			files = append(files, path)
		}
	}
	slices.Sort(files)
	s.log.Info("reloaded", "keys", keys, "files", files)
	for _, key := range keys {
		table, _, _ := strings.Cut(key, ".")
		if slices.Contains(atStart, key) || table == "telemetry" || table == "fleet" {
			s.log.Warn("a change takes effect at the next start", "key", key)
		}
	}
	if err := s.checkPolicy(); err != nil {
		s.log.Error("the policy cannot be read, so no call runs", "error", err)
	}
}
