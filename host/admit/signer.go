package admit

import (
	"errors"
	"slices"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/lists"
)

// Signer is what is known about a plugin's signature. It is zero for a plugin without one.
type Signer struct {
	// Key is the public key that made the signature, if it is known and the signature is valid.
	Key string `json:"signer,omitempty"`
	// KeyID is the short name of the key that the signature claims: 16 hex digits.
	KeyID string `json:"signer_id,omitempty"`
	// Name is what the operator calls a trusted key.
	Name string `json:"signer_name,omitempty"`
	// Trusted reports whether the operator trusts the key, for all plugins or, in policy.toml, for this one.
	Trusted bool `json:"trusted"`
}

// signers tells the policy who signed a build. It checks the signature and the operator's list of keys each time, so
// that withdrawn trust takes effect at once. Only the verification of the same bytes with the same keys is cached.
type signers struct {
	builds    sync.Map // by digest, the *store.Candidate of builds in memory that are not in the store
	published sync.Map // by digest, the signature.Key that signed a published build
	verified  sync.Map // by what was verified, the signature.Key that verified it; "" means no key
}

// build returns the build in memory with a digest, or nil.
func (s *signers) build(digest string) *store.Candidate {
	c, _ := s.builds.Load(digest)
	found, _ := c.(*store.Candidate)
	return found
}

// Vouch tells the policy which key signed a published build, as [Installer.AdmitPublished] found.
func (in *Installer) Vouch(digest, key string) {
	in.signers.published.Store(digest, signature.Key(key))
}

// AdmitPublished decides whether a plugin that another machine published may be listed, and sets its signer. It refuses
// what an installation refuses: an invalid signature, or texts that could mislead an agent.
func (in *Installer) AdmitPublished(c *store.Candidate) error {
	signer, err := in.Verify(c)
	if err != nil {
		return err
	}
	c.Signer = string(signer.Key)
	report, err := in.inspect(c, signer, nil)
	if err == nil {
		err = in.refuse(report)
	}
	if err == nil && c.Signer != "" {
		in.Vouch(c.Digest, c.Signer)
	}
	return err
}

// BuildSigner returns for the policy who signed a build. The error says why the list of trusted keys cannot be read.
func (in *Installer) BuildSigner(plugin, digest string) (policy.Signer, error) {
	trusted, err := in.cfg.Trust.Keys()
	if err != nil {
		return policy.Signer{}, err
	}
	if in.isShipped(plugin, digest) {
		return policy.Signer{Shipped: true}, nil
	}
	keys := keysOf(trusted)
	key, err := in.key(plugin, digest, keys)
	return policy.Signer{Key: string(key), Trusted: key != "" && slices.Contains(keys, key)}, err
}

func keysOf(trusted []signature.TrustedKey) []signature.Key {
	return lists.Map(trusted, func(t signature.TrustedKey) signature.Key { return t.Key })
}

// key returns the key that signed a build: one of keys, or the key that verified it at installation.
func (in *Installer) key(plugin, digest string, keys []signature.Key) (signature.Key, error) {
	if c := in.signers.build(digest); c != nil {
		key, err := in.signers.verify(c, c.Signature, keys, func() (*store.Candidate, error) { return c, nil })
		if err != nil || key != "" {
			return key, err
		} // the same build may be installed with a signature
	}
	if key, _ := in.signers.published.Load(digest); key != nil && key != signature.Key("") {
		return key.(signature.Key), nil
	}
	entry, err := in.cfg.Store.Find(plugin)
	if err != nil || entry.Digest != digest {
		if errors.Is(err, host.NotFound) {
			err = nil
		}
		return "", err
	}
	text, err := in.cfg.Store.Signature(entry)
	if err != nil || text == nil {
		return "", err
	}
	open := func() (*store.Candidate, error) { return in.cfg.Store.Open(entry) }
	return in.signers.verify(&store.Candidate{Digest: digest, Signer: entry.Signer}, text, keys, open)
}

// verify checks a signature, unless the same was checked before. Only then does it read the build.
func (s *signers) verify(
	c *store.Candidate, text []byte, keys []signature.Key, read func() (*store.Candidate, error),
) (signature.Key, error) {
	keys = append(slices.Clone(keys), signature.Key(c.Signer))
	checked := c.Digest + "\n" + string(text)
	for _, k := range keys {
		checked += "\n" + string(k)
	}
	if key, known := s.verified.Load(checked); known {
		return key.(signature.Key), nil
	}
	sig, err := signature.Parse(text)
	if err != nil {
		return "", nil // nobody's: the text is not a signature
	}
	if c, err = read(); err != nil {
		return "", err
	}
	key, _ := sig.Verify(BuildOf(c), keys...)
	s.verified.Store(checked, key)
	return key, nil
}

// Difference returns how a build differs from an approved one of its name, for the policy.
func (in *Installer) Difference(_, approved, found string) string {
	if c := in.signers.build(found); c != nil {
		return in.cfg.Store.Difference(approved, found, c.ManifestJSON)
	}
	return in.cfg.Store.Difference(approved, found, nil)
}

// BuildOf returns what a signature of a candidate covers.
func BuildOf(c *store.Candidate) signature.Build {
	return signature.Build{
		Name: c.Manifest.Name, Version: c.Manifest.Version, Digest: c.Digest, Wasm: c.Wasm,
		ManifestEmbedded: c.ManifestEmbedded(),
	}
}

// Verify verifies the signature of a candidate with the keys that the operator trusts. The error is integrity
// for an invalid signature. A signature with an unknown key cannot be verified and proves nothing.
func (in *Installer) Verify(c *store.Candidate) (Signer, error) {
	if c.Signature == nil {
		return Signer{}, nil
	}
	trusted, err := in.cfg.Trust.Keys()
	if err != nil {
		return Signer{}, err
	}
	rules, err := in.cfg.Rules()
	if err != nil {
		return Signer{}, err
	}
	pinned, err := rules.Signer(c.Manifest.Name)
	if err != nil {
		return Signer{}, err
	}
	keys := append(keysOf(trusted), signature.Key(pinned), signature.Key(c.Signer))
	sig, err := signature.Parse(c.Signature)
	if err != nil {
		return Signer{}, host.Errorf(host.Integrity, "invalid signature for %s: %s", c.Manifest.Name, err)
	}
	key, err := sig.Verify(BuildOf(c), keys...)
	if errors.Is(err, signature.ErrUnknownKey) {
		return Signer{KeyID: sig.ID()}, nil
	}
	if err != nil {
		return Signer{}, err
	}
	return signerOf(key, trusted, pinned), nil
}

// SignerOf returns what the lock file says about the signature of an installed plugin, and whether its key is trusted
// now.
func (in *Installer) SignerOf(e store.Entry) (Signer, error) {
	if e.Signer == "" {
		return Signer{}, nil
	}
	trusted, err := in.cfg.Trust.Keys()
	if err != nil {
		return signerOf(signature.Key(e.Signer), nil, ""), err
	}
	pinned := ""
	if rules, err := in.cfg.Rules(); err == nil {
		pinned, _ = rules.Signer(e.Name)
	}
	return signerOf(signature.Key(e.Signer), trusted, pinned), nil
}

// Trusts reports whether a key that the lock file names for a plugin is trusted now.
func (in *Installer) Trusts(plugin, key string) bool {
	signer, err := in.SignerOf(store.Entry{Name: plugin, Signer: key})
	return err == nil && signer.Trusted
}

func signerOf(key signature.Key, trusted []signature.TrustedKey, pinned string) Signer {
	s := Signer{Key: string(key), KeyID: key.ID(), Trusted: string(key) == pinned}
	if i := slices.IndexFunc(trusted, func(t signature.TrustedKey) bool { return t.Key == key }); i >= 0 {
		s.Trusted, s.Name = true, trusted[i].Name
	}
	return s
}
