// Package signature makes and verifies minisign signatures of plugins, and keeps the list of keys that the operator
// trusts.
//
// The signature of a wasm file X.wasm is in X.wasm.minisig beside it. The minisign tool verifies it too: it signs the
// bytes of that file. Those bytes need not include the manifest. Therefore the trusted comment, which a minisign
// signature also covers, names the build by Parley's digest over wasm and manifest, and the key that signed:
//
//	parley name:hello version:1.2.0 digest:sha256:9f86... key:RWQ...
//
// A signature without such a comment, as the minisign tool makes it, is accepted only for a plugin that carries its
// manifest within its wasm: for any other plugin the signed bytes do not cover everything.
package signature

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"aead.dev/minisign"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// MaxBytes is the size limit of a signature file or key file. The largest that the minisign tool writes has less than
// 10 KiB.
const MaxBytes = 16 << 10

// Build is one build of a plugin, which a signature covers.
type Build struct {
	Name, Version    string
	Digest           string // "sha256:..." over wasm and manifest
	Wasm             []byte
	ManifestEmbedded bool // Wasm includes the manifest
}

// Signature is the content of a signature file. Nothing in it may be trusted before [Signature.Verify] has succeeded.
type Signature struct {
	text  []byte
	raw   minisign.Signature
	claim claim
}

// claim is what a trusted comment in the form of [SecretKey.Sign] states.
type claim struct {
	digest string // "" if the comment has another form
	key    Key
}

// Parse parses a signature file. The error says what is wrong with its form.
func Parse(text []byte) (*Signature, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes; a signature has at most %d", len(text), MaxBytes)
	}
	s := &Signature{text: slices.Clone(text)}
	if err := s.raw.UnmarshalText(text); err != nil {
		return nil, errors.New("it is not a minisign signature: expected four lines: a comment, the signature, a trusted " +
			"comment and its signature")
	}
	var err error
	s.claim, err = parseClaim(s.raw.TrustedComment, s.raw.KeyID)
	return s, err
}

// parseClaim parses a trusted comment. A comment that does not begin as Parley's do claims nothing.
func parseClaim(comment string, id uint64) (claim, error) {
	var c claim
	rest, isOurs := strings.CutPrefix(comment, "parley name:")
	if !isOurs {
		return c, nil
	}
	words := strings.Split(rest, " ")
	for _, word := range words[1:] { // unknown words are left to later versions
		if digest, ok := strings.CutPrefix(word, "digest:"); ok {
			c.digest = digest
		}
		if text, ok := strings.CutPrefix(word, "key:"); ok {
			key, err := ParseKey(text)
			if err != nil || key.numericID() != id {
				return c, errors.New("its trusted comment names a different key")
			}
			c.key = key
		}
	}
	if c.digest == "" {
		return c, errors.New(`its trusted comment has no digest: ` +
			`expected "parley name:NAME version:VERSION digest:sha256:..."`)
	}
	return c, nil
}

// ID returns the ID of the key that made the signature: 16 hex digits. It is only a hint, because anybody can write
// one.
func (s *Signature) ID() string { return formatID(s.raw.KeyID) }

// Comment returns the trusted comment, cleaned, on one line.
func (s *Signature) Comment() string { return manifest.CleanLine(s.raw.TrustedComment) }

// ErrUnknownKey is the cause of the error that [Signature.Verify] returns when it has no key to verify a signature
// with.
var ErrUnknownKey = errors.New("the key is not known")

// Verify returns the key that made the signature of a build. It tries the given keys that have the signature's ID. If
// there are none, it tries the key that the signature itself names: success then proves which key signed, not that the
// key can be trusted.
//
// The error is a *host.Error of code integrity: the signature does not match, it does not cover the whole build, or
// (with the cause [ErrUnknownKey]) no key is known to verify it with.
func (s *Signature) Verify(b Build, keys ...Key) (Key, error) {
	if err := s.checkCoverage(b); err != nil {
		return "", err
	}
	candidates := slices.DeleteFunc(slices.Clone(keys), func(k Key) bool {
		return k == "" || k.numericID() != s.raw.KeyID
	})
	if len(candidates) == 0 && s.claim.key != "" {
		candidates = []Key{s.claim.key}
	}
	if len(candidates) == 0 {
		return "", &host.Error{Code: host.Integrity, Cause: ErrUnknownKey,
			Message: fmt.Sprintf("%s is signed with the key %s, which is not known here, so the signature cannot be verified",
				b.nameVersion(), s.ID())}
	}
	for _, k := range candidates {
		if k.verifies(b.Wasm, s.text) {
			return k, nil
		}
	}
	return "", host.Errorf(host.Integrity, "invalid signature for %s: it was not made over these bytes with the key %s",
		b.nameVersion(), candidates[0])
}

// checkCoverage returns an error unless the signature covers all of a build. It does not check the signer.
func (s *Signature) checkCoverage(b Build) error {
	switch {
	case s.claim.digest == "" && !b.ManifestEmbedded:
		return host.Errorf(host.Integrity, "the signature of %s covers only its wasm, and its manifest is a separate file; "+
			"expected a signature made by parley plugin sign, or a manifest within the wasm", b.nameVersion())
	case s.claim.digest != "" && s.claim.digest != b.Digest:
		return host.Errorf(host.Integrity, "invalid signature for %s: it was made for %s, and this build is %s; its wasm "+
			"or its manifest differs", b.nameVersion(), manifest.CleanLine(s.claim.digest), b.Digest)
	}
	return nil
}

func (b Build) nameVersion() string { return b.Name + " " + manifest.CleanLine(b.Version) }
