// Package signature makes and checks minisign signatures over plugins, and keeps the list of the keys that the operator trusts.
//
// A signature lies beside the wasm file X.wasm as X.wasm.minisig, and the minisign tool verifies it too: it signs the bytes of
// that file. Those need not hold the manifest, so the trusted comment, which a minisign signature covers as well, names the
// build by Parley's digest over wasm and manifest together, and the key that signed:
//
//	parley name:hello version:1.2.0 digest:sha256:9f86... key:RWQ...
//
// A signature without such a comment, as the minisign tool makes it, counts only for a plugin that carries its manifest
// within its wasm: for no other do the signed bytes cover all.
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

// Suffix is what the name of a wasm file has after it as the name of its signature.
const Suffix = ".minisig"

// MaxBytes bounds the file of a signature or a key. The minisign tool's own largest has less than 10 KiB.
const MaxBytes = 16 << 10

// Build is what a signature is about: one plugin as it was built.
type Build struct {
	Name, Version    string
	Digest           string // "sha256:..." over wasm and manifest
	Wasm             []byte
	ManifestEmbedded bool // the manifest is a part of Wasm
}

// Signature is the content of a signature file. Nothing of it is to be believed before By has returned.
type Signature struct {
	text  []byte
	raw   minisign.Signature
	claim claim
}

// claim is what a trusted comment in the form of Sign says.
type claim struct {
	digest string // "" where the comment has another form
	key    Key
}

// Parse reads a signature file. The error says what is wrong with its form.
func Parse(text []byte) (*Signature, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes; a signature has at most %d", len(text), MaxBytes)
	}
	s := &Signature{text: slices.Clone(text)}
	if err := s.raw.UnmarshalText(text); err != nil {
		return nil, errors.New("it is no minisign signature: expected four lines, a comment, the signature, a trusted comment and its signature")
	}
	var err error
	s.claim, err = parseClaim(s.raw.TrustedComment, s.raw.KeyID)
	return s, err
}

// parseClaim reads a trusted comment. One that does not begin as ours claims nothing.
func parseClaim(comment string, id uint64) (claim, error) {
	var c claim
	rest, isOurs := strings.CutPrefix(comment, "parley name:")
	if !isOurs {
		return c, nil
	}
	for _, word := range strings.Split(rest, " ")[1:] { // what is not known is left to later versions
		if digest, ok := strings.CutPrefix(word, "digest:"); ok {
			c.digest = digest
		}
		if text, ok := strings.CutPrefix(word, "key:"); ok {
			key, err := ParseKey(text)
			if err != nil || key.numericID() != id {
				return c, errors.New("its trusted comment names a key that is not the one it was made with")
			}
			c.key = key
		}
	}
	if c.digest == "" {
		return c, errors.New(`its trusted comment lacks the digest: expected "parley name:NAME version:VERSION digest:sha256:..."`)
	}
	return c, nil
}

// ID names the key that made the signature, as the minisign tool does: 16 hex digits. It is a hint, which anybody can write.
func (s *Signature) ID() string { return formatID(s.raw.KeyID) }

// Key is the key that the signature itself says it was made with, or "".
func (s *Signature) Key() Key { return s.claim.key }

// Comment is the trusted comment on one line, cleaned.
func (s *Signature) Comment() string { return manifest.CleanLine(s.raw.TrustedComment) }

// ErrUnknownKey is the cause of an error that says: the key that made a signature is not at hand, so that it cannot be checked.
var ErrUnknownKey = errors.New("the key is not known")

// Verify returns the key that made the signature over a build. It is one of keys or, where none of them has the signature's ID,
// the one that the signature itself names: then the signature proves who made it, and nothing about whether to trust him.
//
// The errors are *host.Error of code integrity: the signature does not fit, it does not cover the whole build, or (with the
// cause ErrUnknownKey) there is no key to check it with.
func (s *Signature) Verify(b Build, keys ...Key) (Key, error) {
	if err := s.checkCoverage(b); err != nil {
		return "", err
	}
	candidates := slices.DeleteFunc(slices.Clone(keys), func(k Key) bool { return k == "" || k.numericID() != s.raw.KeyID })
	if len(candidates) == 0 && s.claim.key != "" {
		candidates = []Key{s.claim.key}
	}
	if len(candidates) == 0 {
		return "", &host.Error{Code: host.Integrity, Cause: ErrUnknownKey,
			Message: fmt.Sprintf("%s is signed with the key %s, which is not known here, so the signature cannot be checked", b.nameVersion(), s.ID())}
	}
	for _, k := range candidates {
		if k.verifies(b.Wasm, s.text) {
			return k, nil
		}
	}
	return "", host.Errorf(host.Integrity, "the signature of %s does not fit: it was not made over these bytes with the key %s", b.nameVersion(), candidates[0])
}

// checkCoverage tells whether the signature is about all of a build, whoever made it.
func (s *Signature) checkCoverage(b Build) error {
	switch {
	case s.claim.digest == "" && !b.ManifestEmbedded:
		return host.Errorf(host.Integrity, "the signature of %s covers its wasm alone, and its manifest lies beside that; expected one that parley plugin sign made, or a manifest within the wasm", b.nameVersion())
	case s.claim.digest != "" && s.claim.digest != b.Digest:
		return host.Errorf(host.Integrity, "the signature of %s does not fit: it was made for %s, and this build is %s; its wasm or its manifest is another", b.nameVersion(), manifest.CleanLine(s.claim.digest), b.Digest)
	}
	return nil
}

func (b Build) nameVersion() string { return b.Name + " " + manifest.CleanLine(b.Version) }
