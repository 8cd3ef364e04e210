package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
)

var pluginSignCommand = &command.Command[*pluginSignOptions]{
	Use: "sign [FILE|DIR]", Run: runPluginSign,
	Short: "Sign a plugin, or make a key to sign with",
	Long: "Writes FILE.minisig beside the wasm file. The minisign tool verifies it, too; its trusted comment names\n" +
		"the digest of wasm and manifest together. A key that minisign made can be used.",
	Example: "parley plugin sign --new-key my.key\nparley plugin sign ./hello/plugin.wasm --key my.key",
}

// runPluginSign signs a plugin and writes the signature next to it.
func runPluginSign(ctx context.Context, app *command.App, opts *pluginSignOptions) error {
	switch {
	case opts.NewKey != "" && (opts.Path != "" || opts.Key != ""):
		return host.Errorf(host.InvalidArgs, "--new-key makes a key and signs nothing; leave out FILE and --key").
			WithNext("parley plugin sign --new-key my.key")
	case opts.NewKey != "":
		return newKey(ctx, app, opts)
	case opts.Path == "" || opts.Key == "":
		return command.MissingWord("plugin sign", "one FILE and --key SECRETKEYFILE",
			"parley plugin sign ./hello/plugin.wasm --key my.key").WithNext("parley plugin sign --new-key my.key")
	}
	c, err := store.ReadCandidate(opts.Path, parley.Version)
	if err != nil {
		return err
	}
	text, err := readKeyFile(app, command.KeyOption, opts.Key)
	if err != nil {
		return err
	}
	key, err := signature.ReadSecretKey(text, func() (string, error) {
		if opts.PasswordFile != "" {
			return passwordOf(app, opts.PasswordFile)
		}
		return command.ReadPassword(ctx, "Password of "+manifest.CleanLine(opts.Key)+": ")
	})
	if err != nil {
		if known := (*host.Error)(nil); errors.As(err, &known) {
			return err
		}
		return host.Errorf(host.InvalidArgs, "%s: %s", manifest.CleanLine(opts.Key), err).
			WithNext("parley plugin sign --new-key my.key")
	}
	out := store.SignatureName(c.Path)
	if err := command.WriteFile(out, key.Sign(admit.BuildOf(c)), 0o644); err != nil {
		return host.Errorf(host.Unavailable, "cannot write %s: %v", out, err)
	}
	data := struct {
		Name      string `json:"name"`
		Version   string `json:"version"`
		Digest    string `json:"digest"`
		Signer    string `json:"signer"` // the public key
		SignerID  string `json:"signer_id"`
		Signature string `json:"signature"` // the file
	}{c.Manifest.Name, c.Manifest.Version, c.Digest, string(key.Public()), key.Public().ID(), out}
	next := []string{"parley plugin verify " + command.ShellQuote(c.Path) + " --key " + command.ShellQuote(data.Signer)}
	return app.PrintNext(data, next, command.Text("Signed %s %s with the key %s\n  %s\n  %s\n", data.Name, data.Version,
		data.Signer, data.Digest, data.Signature))
}

// newPassword asks twice for the password of a new key.
func newPassword(ctx context.Context, file string) (string, error) {
	password, err := command.ReadPassword(ctx, "Password of "+manifest.CleanLine(file)+": ")
	if err != nil {
		e := host.AsError(err)
		if e.Code == host.InvalidArgs { // there is no terminal
			e.Message = "a new key is encrypted, and there is no terminal to ask for its password; expected --password-file " +
				"FILE, or --no-password for a key that is not encrypted"
		}
		return "", e
	}
	again, err := command.ReadPassword(ctx, "The same again: ")
	if err == nil && again != password {
		err = host.Errorf(host.InvalidArgs, "the two passwords differ; no key was made")
	}
	return password, err
}

// newKey creates a pair of keys to sign plugins with. It overwrites no existing file.
func newKey(ctx context.Context, app *command.App, opts *pluginSignOptions) error {
	var password string
	var err error
	switch {
	case opts.NoPassword && opts.PasswordFile != "":
		return host.Errorf(host.InvalidArgs, "--no-password cannot be combined with --password-file").
			WithNext("leave one of them out")
	case opts.NoPassword:
		app.Notice("the secret key is not encrypted: whoever can read the file can sign with it")
	case opts.PasswordFile != "":
		password, err = passwordOf(app, opts.PasswordFile)
	default:
		password, err = newPassword(ctx, opts.NewKey)
	}
	if err != nil {
		return err
	}
	if password == "" && !opts.NoPassword {
		return host.Errorf(host.InvalidArgs, "the password is empty; --no-password makes a key that is not encrypted")
	}
	key, err := signature.NewSecretKey()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(opts.NewKey); errors.Is(err, fs.ErrNotExist) { // an existing file is not a new key, and stays
		command.Remember(app, command.NewKeyOption, opts.NewKey) // before any plugin could read it
	}
	if err := key.WritePair(opts.NewKey, password); err != nil {
		return err
	}
	data := struct {
		SecretKey string `json:"secret_key"` // the file
		PublicKey string `json:"public_key"` // the file
		Key       string `json:"key"`        // the public key
		ID        string `json:"id"`
		Encrypted bool   `json:"encrypted"`
	}{opts.NewKey, opts.NewKey + ".pub", string(key.Public()), key.Public().ID(), password != ""}
	next := []string{"parley plugin sign FILE --key " + command.ShellQuote(data.SecretKey)}
	return app.PrintNext(data, next, command.Text("Wrote %s, to be kept secret, and %s:\n  %s\n", data.SecretKey,
		data.PublicKey, data.Key))
}

var pluginVerifyCommand = &command.Command[*pluginVerifyOptions]{
	Use: "verify [PLUGIN]", Run: runPluginVerify,
	Short: "Verify who signed a plugin, or what the project pins",
	Long: "With a FILE, DIR or NAME: that a trusted key, or the one of --key, signed it. Without: that what the\n" +
		"project's parley.toml pins is installed, in the pinned build and unchanged. Nothing is fetched.",
	Example: "parley plugin verify ./hello/plugin.wasm --key my.key.pub",
}

// runPluginVerify verifies the signature of a plugin. The error is not_found for an unsigned plugin. It is integrity
// for an invalid signature, and for one by another key than Key or, without Key, by an untrusted key.
func runPluginVerify(_ context.Context, app *command.App, opts *pluginVerifyOptions) error {
	if opts.Plugin == "" && (opts.Key != "" || opts.Signature != "") {
		return command.MissingWord("plugin verify", "one FILE, DIR or NAME of an installed plugin",
			"parley plugin verify ./hello/plugin.wasm")
	}
	if opts.Plugin == "" {
		return verifyPins(app)
	}
	c, err := fileOrInstalled(app, opts.Plugin)
	if err != nil {
		return err
	}
	if opts.Signature != "" {
		if c.Signature, err = store.ReadSignature(opts.Signature); err != nil {
			return err
		}
	}
	if c.Signature == nil {
		return host.Errorf(host.NotFound, "%s %s is not signed: there is no %s beside it",
			c.Manifest.Name, manifest.CleanLine(c.Manifest.Version), store.SignatureName(c.Path)).
			WithSteps(step.Operator(step.OpPluginSign, c.Path, "--key", "SECRETKEYFILE"))
	}
	if opts.Key != "" {
		wanted, err := readPublicKey(app, opts.Key)
		if err != nil {
			return err
		}
		c.Signer = string(wanted)
	}
	signer, err := app.Parley().Admission().Verify(c)
	switch {
	case err != nil:
		return err
	case signer.Key == "":
		return host.Errorf(host.Integrity,
			"%s is signed with the key %s, which is not known here, so the signature cannot be verified",
			c.Manifest.Name, signer.KeyID).WithSteps(step.Operator(step.OpPluginVerify, opts.Plugin, "--key", "KEY"))
	case opts.Key == "" && !signer.Trusted:
		return host.Errorf(host.Integrity, "the signature of %s is valid but proves nothing: its key %s is not "+
			"trusted, and anybody can make a key. Compare it with the one that the author publishes, then trust it",
			c.Manifest.Name, signer.Key).WithSteps(step.Operator(step.OpPluginVerify, opts.Plugin, "--key", signer.Key),
			step.Operator(step.OpPluginTrust, signer.Key))
	case opts.Key != "" && signer.Key != c.Signer:
		return host.Errorf(host.Integrity, "%s is signed with the key %s, not with %s", c.Manifest.Name, signer.Key, c.Signer)
	}
	sig, err := signature.Parse(c.Signature)
	if err != nil {
		return err
	}
	data := struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Digest  string `json:"digest"`
		admit.Signer
		Comment string `json:"comment"` // the trusted comment of the signature, cleaned
	}{c.Manifest.Name, c.Manifest.Version, c.Digest, signer, sig.Comment()}
	next := append(trustCommands(data.Signer), "parley plugin install "+command.ShellQuote(c.Path))
	return app.Print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "The signature of %s %s is valid.\n  %s\n  %s\n",
			data.Name, manifest.CleanLine(data.Version), command.SignatureText(data.Signer), data.Digest)
		command.PrintIf(w, !data.Trusted, "Next: %s\n", next[0])
	})
}

// pluginSignOptions say what to sign, and with which key.
type pluginSignOptions struct {
	// Path is the wasm file, or a folder with plugin.wasm.
	Path string `word:""`
	Key  string `flag:"key" usage:"file of the secret key"`
	// NewKey is the file for a new key. "" means to sign Path.
	NewKey     string `flag:"new-key" usage:"write a new secret key to this file and its public key to FILE.pub"`
	NoPassword bool   `flag:"no-password" usage:"with --new-key: do not encrypt the secret key"`
	// "" means to ask at the terminal.
	PasswordFile string `flag:"password-file" usage:"file whose first line is the key's password; else the terminal is asked"`
}

// pluginVerifyOptions say which signature to verify.
type pluginVerifyOptions struct {
	// Plugin is a wasm file, a folder with plugin.wasm, or the name of an installed plugin.
	Plugin string `word:""`
	// Key is a public key, or its file, that must have signed. "" means any key that the operator trusts.
	Key string `flag:"key" usage:"public key, or its file, that must have signed the plugin"`
	// Signature is the file of the signature. "" means FILE.minisig next to the plugin, if it exists.
	Signature string `flag:"signature" usage:"signature file, if it is not beside FILE"`
}

// fileOrInstalled reads a plugin from a file or folder or, if that does not exist, an installed plugin.
func fileOrInstalled(app *command.App, word string) (*store.Candidate, error) {
	if _, err := os.Stat(word); err == nil {
		return store.ReadCandidate(word, parley.Version)
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
			manifest.CleanLine(word)).WithSteps(step.Operator(step.OpPluginShow, word))
	}
	return store.ReadCandidate(word, parley.Version)
}

// readPublicKey parses a public key, or reads it from a file.
func readPublicKey(app *command.App, keyOrFile string) (signature.Key, error) {
	if key, err := signature.ParseKey(keyOrFile); err == nil {
		return key, nil
	}
	text, err := readKeyFile(app, command.PublicKeyOption, keyOrFile)
	if err != nil {
		return "", err
	}
	key, err := signature.ParseKey(string(text))
	if err != nil {
		return "", host.Errorf(host.InvalidArgs, "%s: %s", manifest.CleanLine(keyOrFile), err)
	}
	return key, nil
}

func readKeyFile(app *command.App, option command.HostFile, path string) ([]byte, error) {
	text, err := command.ReadHostFile(context.Background(), app, option, path, signature.MaxBytes)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "cannot read the key: %s; expected a key or a file with one",
			manifest.CleanLine(err.Error())).WithNext("parley plugin sign --new-key my.key")
	}
	return text, nil
}

// passwordOf returns the first line of a file.
func passwordOf(app *command.App, path string) (string, error) {
	text, err := readKeyFile(app, command.PasswordOption, path)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), err
}

// pluginTrustOptions say which key to trust, or to stop trusting.
type pluginTrustOptions struct {
	// Key is the public key or its file.
	Key  string `word:""`
	List bool   `flag:"list" usage:"list the trusted keys"`
	// Name is the operator's name for the key; it may be "".
	Name string `flag:"name" usage:"your name for the key"`
	// the key or its name
	Remove string `flag:"remove" usage:"no longer trust this key, or the key of this name"`
	command.Approval
}

var pluginTrustCommand = &command.Command[*pluginTrustOptions]{
	Use: "trust [KEY|FILE.pub]", Run: runPluginTrust,
	Short: "Trust a key whose signatures count, or list and remove trusted keys",
	Long: "A person at the terminal has to approve the change. Trusting a key grants no rights: it says who a plugin\n" +
		"is from. policy.toml can require a trusted signature for one plugin (signer) or for all (require_signer).",
	Example: "parley plugin trust my.key.pub --name me\nparley plugin trust --list\nparley plugin trust --remove me",
}

// runPluginTrust adds a key to the list of trusted keys, or removes it, after the operator has approved it. Without
// approval the error is denied, and nothing has changed.
func runPluginTrust(ctx context.Context, app *command.App, opts *pluginTrustOptions) error {
	trust := app.Parley().Trust()
	var change signature.Change
	var err error
	switch {
	case opts.List && opts.Key == "" && opts.Remove == "":
		return listTrusted(app, trust)
	case opts.Remove != "" && opts.Key == "" && !opts.List && opts.Name == "":
		change, err = trust.Remove(opts.Remove)
	case opts.List || opts.Remove != "" || opts.Key == "":
		return command.MissingWord("plugin trust", "one KEY or FILE.pub, or --list, or --remove KEY",
			"parley plugin trust --list")
	default:
		var key signature.Key
		if key, err = readPublicKey(app, opts.Key); err == nil {
			change, err = trust.Add(key, opts.Name)
		}
	}
	if err != nil {
		return err
	}
	signed, err := signedWith(app, change.Entry.Key)
	if err != nil {
		return err
	}
	diff, verb, did := change.Diff(), "No longer trusted", "removed"
	if !change.Removed {
		verb, did = "Trusted", "added"
		diff += "note: compare the key with the one that its owner publishes; anybody can make a key\n"
	}
	diff += command.When(len(signed) > 0,
		"note: installed plugins that are signed with it: "+strings.Join(signed, ", ")+"\n")
	if err := app.Approve(ctx, command.Change{Diff: diff}, opts.Yes); err != nil {
		return err
	}
	if err := trust.Write(change); err != nil {
		return err
	}
	app.Note("trust", change.Entry.String(), did)
	data := struct {
		File    string `json:"file"`
		Removed bool   `json:"removed"` // false: added
		signature.TrustedKey
		Plugins []string `json:"plugins"` // installed plugins that are signed with the key
	}{change.Path, change.Removed, change.Entry, signed}
	return app.Print(data, []string{"parley plugin trust --list"}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s\n", verb, change.Entry)
		command.PrintIf(w, len(signed) > 0, "  installed plugins that are signed with it: %s\n", strings.Join(signed, ", "))
	})
}

func listTrusted(app *command.App, trust *signature.Trust) error {
	keys, err := trust.Keys()
	if err != nil {
		return err
	}
	data := struct {
		File  string                 `json:"file"`
		Keys  []signature.TrustedKey `json:"keys"`
		Total int                    `json:"total"`
	}{trust.Path, append([]signature.TrustedKey{}, keys...), len(keys)}
	return app.Print(data, []string{"parley plugin trust --help"}, func(w io.Writer) {
		command.PrintIf(w, data.Total == 0, "No key is trusted.\n")
		command.WriteLines(w, "", command.Strings(keys))
	})
}

// signedWith returns the installed plugins that are signed with a key, according to the lock file. It is not nil.
func signedWith(app *command.App, key signature.Key) ([]string, error) {
	entries, err := app.Parley().Store().List()
	names := []string{}
	for _, e := range entries {
		if e.Signer == string(key) {
			names = append(names, e.Name)
		}
	}
	return names, err
}

// trustCommands returns the command that makes a key trusted, unless it is trusted already.
func trustCommands(s admit.Signer) []string {
	if s.KeyID == "" || s.Trusted {
		return nil
	}
	return []string{"parley plugin trust " + command.ShellQuote(cmp.Or(s.Key, "KEY"))}
}
