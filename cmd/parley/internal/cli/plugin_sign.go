package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type pluginSignOptions struct {
	app *App
	// newKey is the file of a new key. "" means that Path is signed.
	newKey string
	command.SignOptions
	noPassword bool
}

func newPluginSign(app *App) *cobra.Command {
	opts := &pluginSignOptions{app: app}
	cmd := &cobra.Command{
		Use:   "sign [FILE|DIR]",
		Short: "Sign a plugin, or make a key to sign with",
		Long: "Writes FILE.minisig beside the wasm file. The minisign tool verifies it, too; its trusted comment names\n" +
			"the digest of wasm and manifest together. A key that minisign made can be used.",
		Example: "parley plugin sign --new-key my.key\nparley plugin sign ./hello/plugin.wasm --key my.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch opts.Path = oneWord(args); {
			case opts.newKey != "" && (opts.Path != "" || opts.Key != ""):
				return host.Errorf(host.InvalidArgs, "--new-key makes a key and signs nothing; leave out FILE and --key").
					WithNext("parley plugin sign --new-key my.key")
			case opts.newKey != "":
			case opts.Path == "" || opts.Key == "":
				return missingWord("plugin sign", "one FILE and --key SECRETKEYFILE",
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
		return app.newKey(command.KeyOptions{File: opts.newKey, PasswordFile: opts.PasswordFile, NoPassword: opts.noPassword,
			Password: func() (string, error) { return newPassword(ctx, opts.newKey) }})
	}
	sign := opts.SignOptions
	sign.Password = func() (string, error) {
		return readPassword(ctx, "Password of "+manifest.CleanLine(sign.Key)+": ")
	}
	data, err := command.SignPlugin(app.deps, sign)
	if err != nil {
		return err
	}
	next := []string{"parley plugin verify " + shellQuote(data.Path) + " --key " + shellQuote(data.Signer)}
	return app.print(data, next, func(w io.Writer) {
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

func (a *App) newKey(o command.KeyOptions) error {
	data, err := command.NewKey(a.deps, o)
	if err != nil {
		return err
	}
	next := []string{"parley plugin sign FILE --key " + shellQuote(data.SecretKey)}
	return a.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "Wrote %s, to be kept secret, and %s:\n  %s\nNext: %s\n",
			data.SecretKey, data.PublicKey, data.Key, next[0])
	})
}

// readPassword reads a password at the controlling terminal and does not show what is typed.
func readPassword(ctx context.Context, prompt string) (string, error) {
	tty, err := openTerminal()
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
	line, err := awaitOrAbandon(ctx, func() (string, error) {
		typed, _ := term.ReadPassword(int(tty.Fd()))
		return string(typed), nil
	})
	if err != nil {
		_ = term.Restore(int(tty.Fd()), state) // an abandoned read does not do that
	}
	fmt.Fprintln(tty)
	return line, err
}

type pluginVerifyOptions struct {
	app *App
	command.VerifyOptions
}

func newPluginVerify(app *App) *cobra.Command {
	opts := &pluginVerifyOptions{app: app}
	cmd := &cobra.Command{
		Use:   "verify [PLUGIN]",
		Short: "Verify who signed a plugin, or what the project pins",
		Long: "With a FILE, DIR or NAME: that a trusted key, or the one of --key, signed it. Without: that what the\n" +
			"project's parley.toml pins is installed, in the pinned build and unchanged. Nothing is fetched.",
		Example: "parley plugin verify ./hello/plugin.wasm --key my.key.pub",
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Plugin = oneWord(args); opts.Plugin == "" && (opts.Key != "" || opts.Signature != "") {
				return missingWord("plugin verify", "one FILE, DIR or NAME of an installed plugin",
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
		data, err := command.VerifyPins(opts.app.deps)
		if err != nil {
			return err
		}
		return opts.app.printPins(data)
	}
	data, err := command.VerifyPlugin(opts.app.deps, opts.VerifyOptions)
	if err != nil {
		return err
	}
	next := append(trustCommands(data.Signer), "parley plugin install "+shellQuote(data.Path))
	return opts.app.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "The signature of %s %s is valid.\n  %s\n  %s\n",
			data.Name, manifest.CleanLine(data.Version), command.SignatureText(data.Signer), data.Digest)
		if !data.Trusted {
			fmt.Fprintln(w, "Next: "+next[0])
		}
	})
}
