package cli

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
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

type signFlags struct {
	key, passwordFile, newKey string
}

func newPluginSign(app *App) *cobra.Command {
	f := &signFlags{}
	cmd := &cobra.Command{
		Use:   "sign [FILE|DIR]",
		Short: "Sign a plugin, or make a key to sign with",
		Long: "Writes FILE.minisig beside the wasm file. The minisign tool verifies it too; its trusted comment names the digest over\n" +
			"wasm and manifest together. A key of minisign is taken as it is.",
		Example: "parley plugin sign --new-key my.key\nparley plugin sign ./hello/plugin.wasm --key my.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.newKey != "" && (len(args) > 0 || f.key != ""):
				return host.Errorf(host.InvalidArgs, "--new-key makes a key and signs nothing; expected it alone").WithNext("parley plugin sign --new-key my.key")
			case f.newKey != "":
				return app.newKey(cmd.Context(), f)
			case len(args) != 1 || f.key == "":
				return missingWord("plugin sign", "one FILE and --key SECRETKEYFILE", "parley plugin sign ./hello/plugin.wasm --key my.key").
					WithNext("parley plugin sign --new-key my.key")
			}
			return app.sign(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.key, "key", "", "file of the secret key")
	cmd.Flags().StringVar(&f.passwordFile, "password-file", "", "file whose first line is the key's password; else the terminal is asked")
	cmd.Flags().StringVar(&f.newKey, "new-key", "", "write a new secret key to this file and its public key to FILE.pub")
	return cmd
}

func newPluginVerify(app *App) *cobra.Command {
	key, sigFile := "", ""
	cmd := &cobra.Command{
		Use:     "verify FILE|DIR|NAME",
		Short:   "Say who signed a plugin and whether that key is trusted",
		Example: "parley plugin verify ./hello/plugin.wasm --key my.key.pub",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("plugin verify", "one FILE, DIR or NAME of an installed plugin", "parley plugin verify ./hello/plugin.wasm")
			}
			return app.verify(args[0], key, sigFile)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "public key, or its file, that must have signed")
	cmd.Flags().StringVar(&sigFile, "signature", "", "signature file, if it is not beside FILE")
	return cmd
}

func (a *App) newKey(ctx context.Context, f *signFlags) error {
	password := ""
	if f.passwordFile != "" {
		var err error
		if password, err = a.password(ctx, f.passwordFile, ""); err != nil {
			return err
		}
		if password == "" {
			return host.Errorf(host.InvalidArgs, "the first line of %s is empty; expected a password", manifest.CleanLine(f.passwordFile))
		}
	}
	key, err := signature.NewSecretKey()
	if err != nil {
		return err
	}
	if err := key.WritePair(f.newKey, password); err != nil {
		return err
	}
	if password == "" {
		a.notice("the secret key is not encrypted; --password-file encrypts it")
	}
	data := struct {
		SecretKey string `json:"secret_key"` // the file
		PublicKey string `json:"public_key"` // the file
		Key       string `json:"key"`        // the public key
		ID        string `json:"id"`
		Encrypted bool   `json:"encrypted"`
	}{f.newKey, f.newKey + ".pub", string(key.Public()), key.Public().ID(), password != ""}
	next := []string{"parley plugin sign FILE --key " + shellQuote(f.newKey)}
	return a.answer(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "Wrote %s, to be kept secret, and %s:\n  %s\nNext: %s\n", data.SecretKey, data.PublicKey, data.Key, next[0])
	})
}

func (a *App) sign(ctx context.Context, path string, f *signFlags) error {
	c, err := wasm.ReadCandidate(path, parley.Version)
	if err != nil {
		return err
	}
	text, err := readKeyFile(f.key)
	if err != nil {
		return err
	}
	key, err := signature.ReadSecretKey(text, func() (string, error) {
		return a.password(ctx, f.passwordFile, "Password of "+manifest.CleanLine(f.key)+": ")
	})
	if err != nil {
		if known := (*host.Error)(nil); errors.As(err, &known) {
			return err
		}
		return host.Errorf(host.InvalidArgs, "%s: %s", manifest.CleanLine(f.key), err).WithNext("parley plugin sign --new-key my.key")
	}
	out := wasm.SignatureName(c.Path)
	if err := command.WriteFile(out, key.Sign(parley.BuildOf(c))); err != nil {
		return host.Errorf(host.Unavailable, "cannot write %s: %v", out, err)
	}
	data := struct {
		Name      string `json:"name"`
		Version   string `json:"version"`
		Digest    string `json:"digest"`
		Signer    string `json:"signer"`
		SignerID  string `json:"signer_id"`
		Signature string `json:"signature"` // the file
	}{c.Manifest.Name, c.Manifest.Version, c.Digest, string(key.Public()), key.Public().ID(), out}
	next := []string{"parley plugin verify " + shellQuote(c.Path) + " --key " + shellQuote(data.Signer)}
	return a.answer(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "Signed %s %s with the key %s\n  %s\n  %s\nNext: %s\n", data.Name, data.Version, data.Signer, data.Digest, out, next[0])
	})
}

func (a *App) verify(word, key, sigFile string) error {
	c, err := a.fileOrInstalled(word)
	if err != nil {
		return err
	}
	if sigFile != "" {
		if c.Signature, err = wasm.ReadSignature(sigFile); err != nil {
			return err
		}
	}
	if c.Signature == nil {
		return host.Errorf(host.NotFound, "%s %s is not signed: there is no %s beside it", c.Manifest.Name, manifest.CleanLine(c.Manifest.Version), wasm.SignatureName(c.Path)).
			WithNext("parley plugin sign " + shellQuote(c.Path) + " --key SECRETKEYFILE")
	}
	if key != "" {
		wanted, err := readPublicKey(key)
		if err != nil {
			return err
		}
		c.Signer = string(wanted)
	}
	signer, err := a.deps.Parley().VerifySignature(c)
	switch {
	case err != nil:
		return err
	case signer.Key == "":
		return host.Errorf(host.Integrity, "%s is signed with the key %s, which is not known here, so the signature cannot be checked", c.Manifest.Name, signer.KeyID).
			WithNext("parley plugin verify " + shellQuote(word) + " --key KEY")
	case key != "" && signer.Key != c.Signer:
		return host.Errorf(host.Integrity, "%s is signed with the key %s, and not with %s", c.Manifest.Name, signer.Key, c.Signer)
	}
	sig, err := signature.Parse(c.Signature)
	if err != nil {
		return err
	}
	data := struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Digest  string `json:"digest"`
		parley.Signer
		Comment string `json:"comment"` // the trusted comment of the signature, cleaned
	}{c.Manifest.Name, c.Manifest.Version, c.Digest, signer, sig.Comment()}
	next := append(trustCommands(signer), "parley plugin install "+shellQuote(c.Path))
	return a.answer(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "The signature of %s %s is valid.\n  %s\n  %s\n", data.Name, manifest.CleanLine(data.Version), signatureText(signer), data.Digest)
		if !signer.Trusted {
			fmt.Fprintln(w, "Next: "+next[0])
		}
	})
}

// fileOrInstalled reads the plugin that a word names: a file or folder, or else an installed one by its name.
func (a *App) fileOrInstalled(word string) (*wasm.Candidate, error) {
	if _, err := os.Stat(word); err == nil {
		return wasm.ReadCandidate(word, parley.Version)
	}
	if entry, err := a.deps.Store().Find(word); err == nil {
		return a.deps.Store().Open(entry)
	}
	catalog, err := a.deps.Catalog()
	if err != nil {
		return nil, err
	}
	if _, part := catalog.Provider(word); part {
		return nil, host.Errorf(host.NotFound, "%s is a part of this binary, and has no signature of its own", manifest.CleanLine(word)).
			WithNext("parley plugin show " + shellQuote(word))
	}
	return wasm.ReadCandidate(word, parley.Version)
}

// readPublicKey reads a public key, or the file that holds one.
func readPublicKey(word string) (signature.Key, error) {
	if key, err := signature.ParseKey(word); err == nil {
		return key, nil
	}
	text, err := readKeyFile(word)
	if err != nil {
		return "", err
	}
	key, err := signature.ParseKey(string(text))
	if err != nil {
		return "", host.Errorf(host.InvalidArgs, "%s: %s", manifest.CleanLine(word), err)
	}
	return key, nil
}

func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "cannot read the key: %v; expected a key or the file that holds one", err).WithNext("parley plugin sign --new-key my.key")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, signature.MaxBytes+1))
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "cannot read the key: %v", err)
	}
	return text, nil
}

// password returns the first line of a file or, where none is named, what is typed at the controlling terminal.
func (a *App) password(ctx context.Context, file, prompt string) (string, error) {
	if file != "" {
		text, err := readKeyFile(file)
		line, _, _ := strings.Cut(string(text), "\n")
		return strings.TrimSuffix(line, "\r"), err
	}
	tty, err := openTerminal()
	if err != nil {
		return "", host.Errorf(host.InvalidArgs, "the key is encrypted, and there is no terminal to ask for its password; expected --password-file FILE")
	}
	defer tty.Close()
	state, err := term.GetState(int(tty.Fd()))
	if err != nil {
		return "", err
	}
	fmt.Fprint(tty, prompt)
	typed := make(chan string, 1)
	go func() {
		line, _ := term.ReadPassword(int(tty.Fd()))
		typed <- string(line)
	}()
	select {
	case line := <-typed:
		fmt.Fprintln(tty)
		return line, nil
	case <-ctx.Done(): // what is typed must be seen again
		_ = term.Restore(int(tty.Fd()), state)
		fmt.Fprintln(tty)
		return "", context.Cause(ctx)
	}
}
