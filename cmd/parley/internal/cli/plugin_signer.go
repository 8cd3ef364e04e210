package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/plugins"
)

// signers tells the policy who signed a build. It looks at the signature and at the operator's list of keys each time anew, so
// that trust that was withdrawn counts at once; only what a key and the same bytes gave before is not computed again.
type signers struct {
	trust *signature.Trust
	store *wasm.Store

	mu sync.Mutex
	// atHand are builds in memory that are not those of the store, by digest.
	atHand map[string]*wasm.Candidate
	// found are keys that were found to have made a signature; "" is nobody.
	found map[string]signature.Key
}

// signers depends on dirs.
func (r *rooms) signers() *signers {
	if r.signers_ == nil {
		path := filepath.Join(r.dirs().config, signature.TrustFile)
		r.signers_ = &signers{
			trust: &signature.Trust{Path: path, File: policy.OperatorFile{Path: path}}, store: r.store(),
			atHand: map[string]*wasm.Candidate{}, found: map[string]signature.Key{},
		}
	}
	return r.signers_
}

// hold makes a build known that --load names or that is about to be installed.
func (s *signers) hold(c *wasm.Candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atHand[c.Digest] = c
}

func (s *signers) held(digest string) *wasm.Candidate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.atHand[digest]
}

// signer answers policy.Env.Signer.
func (s *signers) signer(plugin, digest string) (policy.Signer, error) {
	trusted, err := s.trust.Keys()
	if err != nil {
		return policy.Signer{}, err
	}
	shipped, err := plugins.Shipped()
	if err != nil {
		return policy.Signer{}, err
	}
	if slices.ContainsFunc(shipped, func(f plugins.File) bool { return f.Digest == digest }) {
		return policy.Signer{Shipped: true}, nil
	}
	keys := make([]signature.Key, len(trusted))
	for i, t := range trusted {
		keys[i] = t.Key
	}
	key, err := s.key(plugin, digest, keys)
	return policy.Signer{Key: string(key), Trusted: key != "" && slices.Contains(keys, key)}, err
}

// key returns who signed a build: one of keys, or whoever was found when it was installed.
func (s *signers) key(plugin, digest string, keys []signature.Key) (signature.Key, error) {
	if c := s.held(digest); c != nil {
		return s.verified(c, c.Signature, keys, func() (*wasm.Candidate, error) { return c, nil })
	}
	entry, err := s.store.Find(plugin)
	if err != nil || entry.Digest != digest {
		return "", ignoring(err, host.NotFound)
	}
	text, err := s.store.Signature(entry)
	if err != nil || text == nil {
		return "", err
	}
	return s.verified(&wasm.Candidate{Digest: digest, Signer: entry.Signer}, text, keys, func() (*wasm.Candidate, error) { return s.store.Open(entry) })
}

// verified checks a signature, unless the same was checked before. Only then is the build read.
func (s *signers) verified(c *wasm.Candidate, text []byte, keys []signature.Key, read func() (*wasm.Candidate, error)) (signature.Key, error) {
	keys = append(slices.Clone(keys), signature.Key(c.Signer))
	question := c.Digest + "\n" + string(text)
	for _, k := range keys {
		question += "\n" + string(k)
	}
	s.mu.Lock()
	key, known := s.found[question]
	s.mu.Unlock()
	if known {
		return key, nil
	}
	sig, err := signature.Parse(text)
	if err != nil {
		return "", nil // what is no signature is nobody's
	}
	if c, err = read(); err != nil {
		return "", err
	}
	key, _ = sig.Verify(buildOf(c), keys...)
	s.mu.Lock()
	s.found[question] = key
	s.mu.Unlock()
	return key, nil
}

// ignoring returns an error unless it has a code.
func ignoring(err error, code host.Code) error {
	if err != nil && host.AsError(err).Code == code {
		return nil
	}
	return err
}

// difference answers policy.Env.Difference.
func (s *signers) difference(_, approved, found string) string {
	if c := s.held(found); c != nil {
		return s.store.Difference(approved, found, c.ManifestJSON)
	}
	return s.store.Difference(approved, found, nil)
}

func buildOf(c *wasm.Candidate) signature.Build {
	return signature.Build{Name: c.Manifest.Name, Version: c.Manifest.Version, Digest: c.Digest, Wasm: c.Wasm, ManifestEmbedded: c.ManifestEmbedded}
}

// signed is what commands say of a plugin's signature. Without one all is empty.
type signed struct {
	// Signer is the public key that made the signature, where it is known and the signature fits.
	Signer string `json:"signer,omitempty"`
	// SignerID is the short name of the key, which the signature says of itself: 16 hex digits.
	SignerID string `json:"signer_id,omitempty"`
	// SignerName is what the operator calls a trusted key.
	SignerName string `json:"signer_name,omitempty"`
	// Trusted tells whether the operator trusts the key, by "parley plugin trust" or by naming it for the plugin in policy.toml.
	Trusted bool `json:"trusted"`
}

// judge checks the signature of a candidate with the keys that the operator trusts, for all plugins or in policy.toml for this
// one. An error says that it does not fit. A signature with a key that nobody knows cannot be checked and proves nothing.
func (a *App) judge(c *wasm.Candidate) (signed, error) {
	if c.Signature == nil {
		return signed{}, nil
	}
	trusted, err := a.signers().trust.Keys()
	if err != nil {
		return signed{}, err
	}
	rules, err := a.policy()
	if err != nil {
		return signed{}, err
	}
	pinned, err := rules.Signer(c.Manifest.Name)
	if err != nil {
		return signed{}, err
	}
	keys := []signature.Key{signature.Key(pinned), signature.Key(c.Signer)}
	for _, t := range trusted {
		keys = append(keys, t.Key)
	}
	sig, err := signature.Parse(c.Signature)
	if err != nil {
		return signed{}, host.Errorf(host.Integrity, "the signature of %s is none: %s", c.Manifest.Name, err)
	}
	key, err := sig.Verify(buildOf(c), keys...)
	if errors.Is(err, signature.ErrUnknownKey) {
		return signed{SignerID: sig.ID()}, nil
	}
	if err != nil {
		return signed{}, err
	}
	who := signed{Signer: string(key), SignerID: key.ID(), Trusted: string(key) == pinned}
	if at := slices.IndexFunc(trusted, func(t signature.TrustedKey) bool { return t.Key == key }); at >= 0 {
		who.Trusted, who.SignerName = true, trusted[at].Name
	}
	return who, nil
}

// said is a line about a signature.
func (s signed) said() string {
	switch {
	case s.SignerID == "":
		return "not signed"
	case s.Signer == "":
		return "signed with the key " + s.SignerID + ", which is not known here: it counts as unsigned"
	case !s.Trusted:
		return "signed with the key " + s.Signer + ", which is not trusted: it counts as unsigned"
	}
	return "signed with the trusted key " + strings.TrimSpace(s.Signer+" "+s.SignerName)
}

// next is the command that would trust the key, where that is for the operator to decide.
func (s signed) next() []string {
	switch {
	case s.SignerID == "" || s.Trusted:
		return nil
	case s.Signer == "":
		return []string{"parley plugin trust KEY"}
	}
	return []string{"parley plugin trust " + manifest.ShellQuote(s.Signer)}
}

// recorded is what the lock file says of a signature.
func (a *App) recorded(e wasm.Entry) *signed {
	if e.Signer == "" {
		return &signed{}
	}
	who := &signed{Signer: e.Signer, SignerID: signature.Key(e.Signer).ID()}
	trusted, err := a.signers().trust.Keys()
	if err != nil {
		a.notice("no key counts as trusted: " + err.Error())
	}
	if at := slices.IndexFunc(trusted, func(t signature.TrustedKey) bool { return string(t.Key) == e.Signer }); at >= 0 {
		who.Trusted, who.SignerName = true, trusted[at].Name
	} else if rules, err := a.policy(); err == nil {
		pinned, err := rules.Signer(e.Name)
		who.Trusted = err == nil && pinned == e.Signer
	}
	return who
}
