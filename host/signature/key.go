package signature

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"aead.dev/minisign"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/manifest"
)

// Key is a public key as the minisign tool writes it: one word of 56 characters that begins with RW. "" means no key.
type Key string

// ParseKey parses a public key: the word alone, or the text of a file that minisign or Parley wrote.
func ParseKey(text string) (Key, error) {
	var pub minisign.PublicKey
	if len(text) > MaxBytes || pub.UnmarshalText([]byte(strings.TrimSpace(text))) != nil {
		return "", errors.New("expected a minisign public key: a word of 56 characters that begins with RW, or a file " +
			"that holds one")
	}
	return Key(pub.String()), nil
}

// ID returns the short name of the key that the minisign tool shows: 16 hex digits. Two keys can have the same ID.
func (k Key) ID() string { return formatID(k.numericID()) }

// FileText returns the content of the key's file, as the minisign tool writes it.
func (k Key) FileText() []byte {
	return []byte("untrusted comment: minisign public key " + k.ID() + "\n" + string(k) + "\n")
}

func formatID(n uint64) string { return fmt.Sprintf("%016X", n) }

// public converts the key to the library's type. An invalid key becomes one that verifies nothing.
func (k Key) public() minisign.PublicKey {
	var pub minisign.PublicKey
	_ = pub.UnmarshalText([]byte(k))
	return pub
}

func (k Key) numericID() uint64 { return k.public().ID() }

func (k Key) verifies(message, signature []byte) bool {
	pub := k.public()
	return Key(pub.String()) == k && minisign.Verify(pub, message, signature)
}

// SecretKey is the secret half of a key pair.
type SecretKey struct{ key minisign.PrivateKey }

// NewSecretKey generates a key pair.
func NewSecretKey() (SecretKey, error) {
	_, key, err := minisign.GenerateKey(rand.Reader)
	return SecretKey{key}, err
}

// ReadSecretKey parses a secret key that minisign or Parley wrote. It calls password only for an encrypted key. The
// error says what is wrong with the text, or is the error that password returned.
func ReadSecretKey(text []byte, password func() (string, error)) (SecretKey, error) {
	var k SecretKey
	text = bytes.TrimSpace(text)
	switch {
	case len(text) > MaxBytes:
		return k, fmt.Errorf("it has %d bytes; a secret key has fewer than 300", len(text))
	case minisign.IsEncrypted(text):
		secret, err := password()
		if err != nil {
			return k, err
		}
		if k.key, err = minisign.DecryptKey(secret, text); err != nil {
			return k, errors.New("the password is wrong or the file is damaged")
		}
	default:
		if k.key.UnmarshalText(text) != nil {
			return k, errors.New("it is not a minisign secret key: expected the file that parley plugin sign --new-key or " +
				"minisign -G wrote, not the one that ends in .pub")
		}
	}
	if !k.Public().verifies(nil, minisign.Sign(k.key, nil)) {
		return k, errors.New("its public and secret halves do not match")
	}
	return k, nil
}

// Public returns the public half.
func (k SecretKey) Public() Key { return Key(k.key.Public().(minisign.PublicKey).String()) }

// Sign returns the content of the signature file for a build.
func (k SecretKey) Sign(b Build) []byte {
	trusted := fmt.Sprintf("parley name:%s version:%s digest:%s key:%s", b.Name, b.Version, b.Digest, k.Public())
	r := minisign.NewReader(bytes.NewReader(b.Wasm))
	_, _ = io.Copy(io.Discard, r)
	return r.SignWithComments(k.key, trusted, "signature of a Parley plugin with the key "+k.Public().ID())
}

// FileText returns the content of the secret key's file, encrypted unless password is "". Encryption takes a GiB of
// memory and some seconds, as minisign prescribes.
func (k SecretKey) FileText(password string) ([]byte, error) {
	text, err := k.key.MarshalText()
	if password != "" {
		text, err = minisign.EncryptKey(password, k.key)
	}
	return append(text, '\n'), err
}

// WritePair writes the secret key to path (mode 0600) and the public key to path + ".pub". It never overwrites a file
// (already_exists), and removes the first file if it cannot write the second.
func (k SecretKey) WritePair(path, password string) (err error) {
	secret, err := k.FileText(password)
	if err != nil {
		return err
	}
	if err := writeNew(path+".pub", k.Public().FileText(), 0o644); err != nil {
		return err
	}
	if err := writeNew(path, secret, 0o600); err != nil {
		return errors.Join(err, os.Remove(path+".pub"))
	}
	return nil
}

func writeNew(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return host.Errorf(host.AlreadyExists, "%s already exists, and a key is never overwritten; name another path",
			manifest.CleanLine(path)).
			WithSteps(step.Operator(step.OpPluginSign, "--new-key", "PATH"))
	}
	if err != nil {
		return host.Errorf(host.Unavailable, "the key cannot be written: %v", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, durable.Sync(f), f.Close()); err != nil {
		return errors.Join(host.Errorf(host.Unavailable, "the key cannot be written: %v", err), os.Remove(path))
	}
	return nil
}
