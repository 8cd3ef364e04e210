package command

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

// KeyOptions say where to write a new key.
type KeyOptions struct {
	// File is the file of the secret key. The public key goes to File.pub.
	File string
	// PasswordFile is a file whose first line is the password that encrypts the key. "" means that Password is called.
	PasswordFile string
	// NoPassword leaves the key unencrypted.
	NoPassword bool
	// Password returns the password that encrypts the key.
	Password func() (string, error)
}

// NewKeyData is a new pair of keys.
type NewKeyData struct {
	SecretKey string `json:"secret_key"` // the file
	PublicKey string `json:"public_key"` // the file
	Key       string `json:"key"`        // the public key
	ID        string `json:"id"`
	Encrypted bool   `json:"encrypted"`
}

// NewKey makes a pair of keys to sign plugins with. No existing file is overwritten.
func NewKey(d *Deps, o KeyOptions) (*NewKeyData, error) {
	var password string
	var err error
	switch {
	case o.NoPassword && o.PasswordFile != "":
		return nil, host.Errorf(host.InvalidArgs, "--no-password cannot be combined with --password-file").
			WithNext("leave one of them out")
	case o.NoPassword:
		d.Notice("the secret key is not encrypted: whoever can read the file can sign with it")
	case o.PasswordFile != "":
		password, err = d.readPassword(o.PasswordFile)
	default:
		password, err = o.Password()
	}
	if err != nil {
		return nil, err
	}
	if password == "" && !o.NoPassword {
		return nil, host.Errorf(host.InvalidArgs, "the password is empty; --no-password makes a key that is not encrypted")
	}
	key, err := signature.NewSecretKey()
	if err != nil {
		return nil, err
	}
	if err := key.WritePair(o.File, password); err != nil {
		return nil, err
	}
	return &NewKeyData{o.File, o.File + ".pub", string(key.Public()), key.Public().ID(), password != ""}, nil
}

// SignOptions say what to sign and with which key.
type SignOptions struct {
	// Path is the wasm file, or a folder with plugin.wasm.
	Path string
	// Key is the file of the secret key.
	Key string
	// PasswordFile is a file whose first line is the password of the key. "" means that Password is called.
	PasswordFile string
	// Password returns the password of an encrypted key.
	Password func() (string, error)
}

// SignPluginData is a plugin that was signed.
type SignPluginData struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Digest    string `json:"digest"`
	Signer    string `json:"signer"` // the public key
	SignerID  string `json:"signer_id"`
	Signature string `json:"signature"` // the file

	Path string `json:"-"` // of the wasm
}

// SignPlugin signs a plugin and writes the signature beside it.
func SignPlugin(d *Deps, o SignOptions) (*SignPluginData, error) {
	c, err := wasm.ReadCandidate(o.Path, parley.Version)
	if err != nil {
		return nil, err
	}
	text, err := d.readKeyFile(keyOption, o.Key)
	if err != nil {
		return nil, err
	}
	key, err := signature.ReadSecretKey(text, func() (string, error) {
		if o.PasswordFile != "" {
			return d.readPassword(o.PasswordFile)
		}
		return o.Password()
	})
	if err != nil {
		if known := (*host.Error)(nil); errors.As(err, &known) {
			return nil, err
		}
		return nil, host.Errorf(host.InvalidArgs, "%s: %s", manifest.CleanLine(o.Key), err).
			WithNext("parley plugin sign --new-key my.key")
	}
	out := wasm.SignatureName(c.Path)
	if err := writeFile(out, key.Sign(parley.BuildOf(c))); err != nil {
		return nil, host.Errorf(host.Unavailable, "cannot write %s: %v", out, err)
	}
	return &SignPluginData{
		c.Manifest.Name, c.Manifest.Version, c.Digest, string(key.Public()), key.Public().ID(), out, c.Path,
	}, nil
}

// VerifyOptions say which signature to verify.
type VerifyOptions struct {
	// Plugin is a wasm file, a folder with plugin.wasm, or the name of an installed plugin.
	Plugin string
	// Key is a public key, or its file, that must have signed. "" means any key that the operator trusts.
	Key string
	// Signature is the file of the signature. "" means FILE.minisig beside the plugin, if there is one.
	Signature string
}

// VerifyPluginData is a valid signature.
type VerifyPluginData struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
	parley.Signer
	Comment string `json:"comment"` // the trusted comment of the signature, cleaned

	Path string `json:"-"` // of the wasm
}

// VerifyPlugin verifies the signature of a plugin. The error is not_found for a plugin that is not signed, and
// integrity for a signature that is invalid, by another key than o.Key, or, without o.Key, by one that is not trusted.
func VerifyPlugin(d *Deps, o VerifyOptions) (*VerifyPluginData, error) {
	c, err := d.fileOrInstalled(o.Plugin)
	if err != nil {
		return nil, err
	}
	if o.Signature != "" {
		if c.Signature, err = wasm.ReadSignature(o.Signature); err != nil {
			return nil, err
		}
	}
	if c.Signature == nil {
		return nil, host.Errorf(host.NotFound, "%s %s is not signed: there is no %s beside it",
			c.Manifest.Name, manifest.CleanLine(c.Manifest.Version), wasm.SignatureName(c.Path)).
			WithSteps(host.OperatorStep(host.OpPluginSign, c.Path, "--key", "SECRETKEYFILE"))
	}
	if o.Key != "" {
		wanted, err := d.readPublicKey(o.Key)
		if err != nil {
			return nil, err
		}
		c.Signer = string(wanted)
	}
	signer, err := d.Parley().VerifySignature(c)
	switch {
	case err != nil:
		return nil, err
	case signer.Key == "":
		return nil, host.Errorf(host.Integrity,
			"%s is signed with the key %s, which is not known here, so the signature cannot be verified",
			c.Manifest.Name, signer.KeyID).WithSteps(host.OperatorStep(host.OpPluginVerify, o.Plugin, "--key", "KEY"))
	case o.Key == "" && !signer.Trusted:
		return nil, host.Errorf(host.Integrity, "the signature of %s is valid but proves nothing: its key %s is not "+
			"trusted, and anybody can make a key. Compare it with the one that the author publishes, then trust it",
			c.Manifest.Name, signer.Key).WithSteps(host.OperatorStep(host.OpPluginVerify, o.Plugin, "--key", signer.Key),
			host.OperatorStep(host.OpPluginTrust, signer.Key))
	case o.Key != "" && signer.Key != c.Signer:
		return nil, host.Errorf(host.Integrity, "%s is signed with the key %s, not with %s",
			c.Manifest.Name, signer.Key, c.Signer)
	}
	sig, err := signature.Parse(c.Signature)
	if err != nil {
		return nil, err
	}
	return &VerifyPluginData{
		c.Manifest.Name, c.Manifest.Version, c.Digest, signer, sig.Comment(), c.Path,
	}, nil
}

// fileOrInstalled reads a plugin from a file or folder or, if there is none of that name, an installed one.
func (d *Deps) fileOrInstalled(word string) (*wasm.Candidate, error) {
	if _, err := os.Stat(word); err == nil {
		return wasm.ReadCandidate(word, parley.Version)
	}
	if entry, err := d.Store().Find(word); err == nil {
		return d.Store().Open(entry)
	}
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	if _, part := catalog.Provider(word); part {
		return nil, host.Errorf(host.NotFound, "%s is part of this binary and has no signature of its own",
			manifest.CleanLine(word)).WithSteps(host.OperatorStep(host.OpPluginShow, word))
	}
	return wasm.ReadCandidate(word, parley.Version)
}

// readPublicKey parses a public key, or reads it from a file.
func (d *Deps) readPublicKey(keyOrFile string) (signature.Key, error) {
	if key, err := signature.ParseKey(keyOrFile); err == nil {
		return key, nil
	}
	text, err := d.readKeyFile(publicKeyOption, keyOrFile)
	if err != nil {
		return "", err
	}
	key, err := signature.ParseKey(string(text))
	if err != nil {
		return "", host.Errorf(host.InvalidArgs, "%s: %s", manifest.CleanLine(keyOrFile), err)
	}
	return key, nil
}

func (d *Deps) readKeyFile(option hostFile, path string) ([]byte, error) {
	text, err := d.readHostFile(context.Background(), option, path, signature.MaxBytes)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "cannot read the key: %s; expected a key or a file with one",
			manifest.CleanLine(err.Error())).WithNext("parley plugin sign --new-key my.key")
	}
	return text, nil
}

// readPassword returns the first line of a file.
func (d *Deps) readPassword(path string) (string, error) {
	text, err := d.readKeyFile(passwordOption, path)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), err
}
