package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

func newPluginSign(app *command.App) *cobra.Command {
	opts := &pluginSignOptions{app: app}
	cmd := &cobra.Command{
		Use:   "sign [FILE|DIR]",
		Short: "Sign a plugin, or make a key to sign with",
		Long: "Writes FILE.minisig beside the wasm file. The minisign tool verifies it, too; its trusted comment names\n" +
			"the digest of wasm and manifest together. A key that minisign made can be used.",
		Example: "parley plugin sign --new-key my.key\nparley plugin sign ./hello/plugin.wasm --key my.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch opts.Path = command.OneWord(args); {
			case opts.newKey != "" && (opts.Path != "" || opts.Key != ""):
				return host.Errorf(host.InvalidArgs, "--new-key makes a key and signs nothing; leave out FILE and --key").
					WithNext("parley plugin sign --new-key my.key")
			case opts.newKey != "":
			case opts.Path == "" || opts.Key == "":
				return command.MissingWord("plugin sign", "one FILE and --key SECRETKEYFILE",
					"parley plugin sign ./hello/plugin.wasm --key my.key").
					WithNext("parley plugin sign --new-key my.key")
			}
			return runPluginSign(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Key, "key", "", "file of the secret key")
	cmd.Flags().StringVar(&opts.PasswordFile, "password-file", "",
		"file whose first line is the key's password; else the terminal is asked")
	cmd.Flags().StringVar(&opts.newKey, "new-key", "",
		"write a new secret key to this file and its public key to FILE.pub")
	cmd.Flags().BoolVar(&opts.noPassword, "no-password", false, "with --new-key: do not encrypt the secret key")
	return cmd
}

func runPluginSign(ctx context.Context, opts *pluginSignOptions) error {
	app := opts.app
	if opts.newKey != "" {
		return newKey(app, keyOptions{File: opts.newKey, PasswordFile: opts.PasswordFile, NoPassword: opts.noPassword,
			Password: func() (string, error) { return newPassword(ctx, opts.newKey) }})
	}
	sign := *opts
	sign.Password = func() (string, error) {
		return readPassword(ctx, "Password of "+manifest.CleanLine(sign.Key)+": ")
	}
	data, err := signPlugin(app, sign)
	if err != nil {
		return err
	}
	next := []string{"parley plugin verify " + command.ShellQuote(data.Path) + " --key " + command.ShellQuote(data.Signer)}
	return app.Print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "Signed %s %s with the key %s\n  %s\n  %s\nNext: %s\n",
			data.Name, data.Version, data.Signer, data.Digest, data.Signature, next[0])
	})
}

// newPassword asks twice for the password of a new key.
func newPassword(ctx context.Context, file string) (string, error) {
	password, err := readPassword(ctx, "Password of "+manifest.CleanLine(file)+": ")
	if err != nil {
		e := host.AsError(err)
		if e.Code == host.InvalidArgs { // no terminal
			e.Message = "a new key is encrypted, and there is no terminal to ask for its password; expected --password-file " +
				"FILE, or --no-password for a key that is not encrypted"
		}
		return "", e
	}
	again, err := readPassword(ctx, "The same again: ")
	if err == nil && again != password {
		err = host.Errorf(host.InvalidArgs, "the two passwords differ; no key was made")
	}
	return password, err
}

func newKey(a *command.App, o keyOptions) error {
	data, err := createKey(a, o)
	if err != nil {
		return err
	}
	next := []string{"parley plugin sign FILE --key " + command.ShellQuote(data.SecretKey)}
	return a.Print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "Wrote %s, to be kept secret, and %s:\n  %s\nNext: %s\n",
			data.SecretKey, data.PublicKey, data.Key, next[0])
	})
}

// readPassword reads a password at the controlling terminal and does not show what is typed.
func readPassword(ctx context.Context, prompt string) (string, error) {
	tty, err := command.OpenTerminal()
	if err != nil {
		return "", host.Errorf(host.InvalidArgs,
			"the key is encrypted, and there is no terminal to ask for its password; expected --password-file FILE")
	}
	defer tty.Close()
	state, err := term.GetState(int(tty.Fd()))
	if err != nil {
		return "", err
	}
	fmt.Fprint(tty, prompt)
	line, err := command.AwaitOrAbandon(ctx, func() (string, error) {
		typed, _ := term.ReadPassword(int(tty.Fd()))
		return string(typed), nil
	})
	if err != nil {
		_ = term.Restore(int(tty.Fd()), state) // an abandoned read does not do that
	}
	fmt.Fprintln(tty)
	return line, err
}

func newPluginVerify(app *command.App) *cobra.Command {
	opts := &pluginVerifyOptions{app: app}
	cmd := &cobra.Command{
		Use:   "verify [PLUGIN]",
		Short: "Verify who signed a plugin, or what the project pins",
		Long: "With a FILE, DIR or NAME: that a trusted key, or the one of --key, signed it. Without: that what the\n" +
			"project's parley.toml pins is installed, in the pinned build and unchanged. Nothing is fetched.",
		Example: "parley plugin verify ./hello/plugin.wasm --key my.key.pub",
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Plugin = command.OneWord(args); opts.Plugin == "" && (opts.Key != "" || opts.Signature != "") {
				return command.MissingWord("plugin verify", "one FILE, DIR or NAME of an installed plugin",
					"parley plugin verify ./hello/plugin.wasm")
			}
			return runPluginVerify(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Key, "key", "", "public key, or its file, that must have signed")
	cmd.Flags().StringVar(&opts.Signature, "signature", "", "signature file, if it is not beside FILE")
	return cmd
}

func runPluginVerify(_ context.Context, opts *pluginVerifyOptions) error {
	if opts.Plugin == "" {
		data, err := verifyPins(opts.app)
		if err != nil {
			return err
		}
		return printPins(opts.app, data)
	}
	data, err := verifyPlugin(opts.app, *opts)
	if err != nil {
		return err
	}
	next := append(trustCommands(data.Signer), "parley plugin install "+command.ShellQuote(data.Path))
	return opts.app.Print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "The signature of %s %s is valid.\n  %s\n  %s\n",
			data.Name, manifest.CleanLine(data.Version), command.SignatureText(data.Signer), data.Digest)
		if !data.Trusted {
			fmt.Fprintln(w, "Next: "+next[0])
		}
	})
}

// keyOptions say where to write a new key.
type keyOptions struct {
	// File is the file of the secret key. The public key goes to File.pub.
	File string
	// PasswordFile is a file whose first line is the password that encrypts the key. "" means that Password is called.
	PasswordFile string
	// NoPassword leaves the key unencrypted.
	NoPassword bool
	// Password returns the password that encrypts the key.
	Password func() (string, error)
}

// newKeyData is a new pair of keys.
type newKeyData struct {
	SecretKey string `json:"secret_key"` // the file
	PublicKey string `json:"public_key"` // the file
	Key       string `json:"key"`        // the public key
	ID        string `json:"id"`
	Encrypted bool   `json:"encrypted"`
}

// createKey makes a pair of keys to sign plugins with. No existing file is overwritten.
func createKey(app *command.App, o keyOptions) (*newKeyData, error) {
	var password string
	var err error
	switch {
	case o.NoPassword && o.PasswordFile != "":
		return nil, host.Errorf(host.InvalidArgs, "--no-password cannot be combined with --password-file").
			WithNext("leave one of them out")
	case o.NoPassword:
		app.Notice("the secret key is not encrypted: whoever can read the file can sign with it")
	case o.PasswordFile != "":
		password, err = passwordOf(app, o.PasswordFile)
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
	return &newKeyData{o.File, o.File + ".pub", string(key.Public()), key.Public().ID(), password != ""}, nil
}

// pluginSignOptions say what to sign and with which key.
type pluginSignOptions struct {
	app *command.App
	// newKey is the file of a new key. "" means that Path is signed.
	newKey     string
	noPassword bool
	// Path is the wasm file, or a folder with plugin.wasm.
	Path string
	// Key is the file of the secret key.
	Key string
	// PasswordFile is a file whose first line is the password of the key. "" means that Password is called.
	PasswordFile string
	// Password returns the password of an encrypted key.
	Password func() (string, error)
}

// signPluginData is a plugin that was signed.
type signPluginData struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Digest    string `json:"digest"`
	Signer    string `json:"signer"` // the public key
	SignerID  string `json:"signer_id"`
	Signature string `json:"signature"` // the file

	Path string `json:"-"` // of the wasm
}

// signPlugin signs a plugin and writes the signature beside it.
func signPlugin(app *command.App, o pluginSignOptions) (*signPluginData, error) {
	c, err := wasm.ReadCandidate(o.Path, parley.Version)
	if err != nil {
		return nil, err
	}
	text, err := ReadKeyFile(app, command.KeyOption, o.Key)
	if err != nil {
		return nil, err
	}
	key, err := signature.ReadSecretKey(text, func() (string, error) {
		if o.PasswordFile != "" {
			return passwordOf(app, o.PasswordFile)
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
	if err := command.WriteFile(out, key.Sign(admit.BuildOf(c))); err != nil {
		return nil, host.Errorf(host.Unavailable, "cannot write %s: %v", out, err)
	}
	return &signPluginData{
		c.Manifest.Name, c.Manifest.Version, c.Digest, string(key.Public()), key.Public().ID(), out, c.Path,
	}, nil
}

// pluginVerifyOptions say which signature to verify.
type pluginVerifyOptions struct {
	app *command.App
	// Plugin is a wasm file, a folder with plugin.wasm, or the name of an installed plugin.
	Plugin string
	// Key is a public key, or its file, that must have signed. "" means any key that the operator trusts.
	Key string
	// Signature is the file of the signature. "" means FILE.minisig beside the plugin, if there is one.
	Signature string
}

// verifyPluginData is a valid signature.
type verifyPluginData struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
	admit.Signer
	Comment string `json:"comment"` // the trusted comment of the signature, cleaned

	Path string `json:"-"` // of the wasm
}

// verifyPlugin verifies the signature of a plugin. The error is not_found for a plugin that is not signed, and
// integrity for a signature that is invalid, by another key than o.Key, or, without o.Key, by one that is not trusted.
func verifyPlugin(app *command.App, o pluginVerifyOptions) (*verifyPluginData, error) {
	c, err := fileOrInstalled(app, o.Plugin)
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
		wanted, err := readPublicKey(app, o.Key)
		if err != nil {
			return nil, err
		}
		c.Signer = string(wanted)
	}
	signer, err := app.Parley().Admission().Verify(c)
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
	return &verifyPluginData{
		c.Manifest.Name, c.Manifest.Version, c.Digest, signer, sig.Comment(), c.Path,
	}, nil
}

// fileOrInstalled reads a plugin from a file or folder or, if there is none of that name, an installed one.
func fileOrInstalled(app *command.App, word string) (*wasm.Candidate, error) {
	if _, err := os.Stat(word); err == nil {
		return wasm.ReadCandidate(word, parley.Version)
	}
	if entry, err := app.Parley().Store().Find(word); err == nil {
		return app.Parley().Store().Open(entry)
	}
	catalog, err := app.Catalog()
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
func readPublicKey(app *command.App, keyOrFile string) (signature.Key, error) {
	if key, err := signature.ParseKey(keyOrFile); err == nil {
		return key, nil
	}
	text, err := ReadKeyFile(app, command.PublicKeyOption, keyOrFile)
	if err != nil {
		return "", err
	}
	key, err := signature.ParseKey(string(text))
	if err != nil {
		return "", host.Errorf(host.InvalidArgs, "%s: %s", manifest.CleanLine(keyOrFile), err)
	}
	return key, nil
}

func ReadKeyFile(app *command.App, option command.HostFile, path string) ([]byte, error) {
	text, err := command.ReadHostFile(context.Background(), app, option, path, signature.MaxBytes)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "cannot read the key: %s; expected a key or a file with one",
			manifest.CleanLine(err.Error())).WithNext("parley plugin sign --new-key my.key")
	}
	return text, nil
}

// passwordOf returns the first line of a file.
func passwordOf(app *command.App, path string) (string, error) {
	text, err := ReadKeyFile(app, command.PasswordOption, path)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), err
}
