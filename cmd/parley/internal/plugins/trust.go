package plugins

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host/signature"
)

func newPluginTrust(app *command.App) *cobra.Command {
	opts := &pluginTrustOptions{app: app}
	remove := ""
	cmd := &cobra.Command{
		Use:   "trust [KEY|FILE.pub]",
		Short: "Trust a key whose signatures count, or list and remove trusted keys",
		Long: "A person at the terminal has to approve the change. Trusting a key grants no rights: it says who a plugin\n" +
			"is from. policy.toml can require a trusted signature for one plugin (signer) or for all (require_signer).",
		Example: "parley plugin trust my.key.pub --name me\nparley plugin trust --list\nparley plugin trust --remove me",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case opts.list && len(args) == 0 && remove == "":
			case remove != "" && len(args) == 0 && !opts.list && opts.Name == "":
				opts.remove, opts.Key = true, remove
			case opts.list || remove != "" || len(args) != 1:
				return command.MissingWord("plugin trust", "one KEY or FILE.pub, or --list, or --remove KEY",
					"parley plugin trust my.key.pub --name me")
			default:
				opts.Key = args[0]
			}
			return runPluginTrust(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Name, "name", "", "your name for the key")
	cmd.Flags().BoolVar(&opts.list, "list", false, "list the trusted keys")
	cmd.Flags().StringVar(&remove, "remove", "", "no longer trust this key, or the key of this name")
	command.AddYes(cmd, &opts.Yes)
	return cmd
}

func runPluginTrust(ctx context.Context, opts *pluginTrustOptions) error {
	if opts.list {
		return listTrusted(opts.app)
	}
	change := trust
	if opts.remove {
		change = untrust
	}
	data, err := change(ctx, opts.app, *opts)
	if err != nil {
		return err
	}
	return opts.app.Print(data, []string{"parley plugin trust --list"}, func(w io.Writer) {
		verb := "Trusted"
		if data.Removed {
			verb = "No longer trusted"
		}
		fmt.Fprintf(w, "%s: %s\n", verb, data.trustedKeyData)
		if len(data.Plugins) > 0 {
			fmt.Fprintln(w, "  installed plugins that are signed with it: "+strings.Join(data.Plugins, ", "))
		}
	})
}

func listTrusted(a *command.App) error {
	data, err := trustedKeys(a)
	if err != nil {
		return err
	}
	return a.Print(data, []string{"parley plugin trust --help"}, func(w io.Writer) {
		if data.Total == 0 {
			fmt.Fprintln(w, "No key is trusted.")
		}
		for _, k := range data.Keys {
			fmt.Fprintln(w, k)
		}
	})
}

// trustedKeyData is a key that the operator trusts.
type trustedKeyData struct {
	Key  signature.Key `json:"key"`
	ID   string        `json:"id"`
	Name string        `json:"name,omitempty"` // the operator's name for the key
}

// String returns the key with its name.
func (k trustedKeyData) String() string { return strings.TrimSpace(string(k.Key) + " " + k.Name) }

func trustedKey(k signature.TrustedKey) trustedKeyData { return trustedKeyData{k.Key, k.ID, k.Name} }

// trustedKeysData are the trusted keys.
type trustedKeysData struct {
	File  string           `json:"file"`
	Keys  []trustedKeyData `json:"keys"`
	Total int              `json:"total"`
}

// trustedKeys lists the keys that the operator trusts.
func trustedKeys(app *command.App) (*trustedKeysData, error) {
	trust := app.Parley().Trust()
	keys, err := trust.Keys()
	if err != nil {
		return nil, err
	}
	data := &trustedKeysData{File: trust.Path, Keys: []trustedKeyData{}, Total: len(keys)}
	for _, k := range keys {
		data.Keys = append(data.Keys, trustedKey(k))
	}
	return data, nil
}

// pluginTrustOptions say which key to trust, or no longer to trust.
type pluginTrustOptions struct {
	app    *command.App
	list   bool
	remove bool
	// Key is the public key or its file. For [untrust] it is the key or its name.
	Key string
	// Name is the operator's name for the key; it may be "". [untrust] ignores it.
	Name string
	// Yes approves the change without asking, if the policy allows it.
	Yes bool
}

// trustData is a change of the list of trusted keys.
type trustData struct {
	File    string `json:"file"`
	Removed bool   `json:"removed"` // false: added
	trustedKeyData
	Plugins []string `json:"plugins"` // installed plugins that are signed with the key
}

// trust adds a key to the list of trusted keys, once the operator has approved. The error is denied if the operator has
// not, and then nothing has changed.
func trust(ctx context.Context, app *command.App, o pluginTrustOptions) (*trustData, error) {
	key, err := readPublicKey(app, o.Key)
	if err != nil {
		return nil, err
	}
	return changeTrust(ctx, app, o.Yes, func(t *signature.Trust) (signature.Change, error) { return t.Add(key, o.Name) })
}

// untrust removes a key from the list of trusted keys, once the operator has approved. The errors are those of [trust].
func untrust(ctx context.Context, app *command.App, o pluginTrustOptions) (*trustData, error) {
	return changeTrust(ctx, app, o.Yes, func(t *signature.Trust) (signature.Change, error) { return t.Remove(o.Key) })
}

func changeTrust(
	ctx context.Context, app *command.App, yes bool, prepare func(*signature.Trust) (signature.Change, error),
) (*trustData, error) {
	rules, err := app.Parley().Policy()
	if err != nil {
		return nil, err
	}
	trust := app.Parley().Trust()
	change, err := prepare(trust)
	if err != nil {
		return nil, err
	}
	signed, err := signedWith(app, change.Entry.Key)
	if err != nil {
		return nil, err
	}
	diff := change.Diff()
	if !change.Removed {
		diff += "note: compare the key with the one that its owner publishes; anybody can make a key\n"
	}
	if len(signed) > 0 {
		diff += "note: installed plugins that are signed with it: " + strings.Join(signed, ", ") + "\n"
	}
	if err := app.Approve(ctx, rules, command.Change{Diff: diff}, yes); err != nil {
		return nil, err
	}
	if err := trust.Write(change); err != nil {
		return nil, err
	}
	did := "added"
	if change.Removed {
		did = "removed"
	}
	app.Note("trust", change.Entry.String(), did)
	return &trustData{change.Path, change.Removed, trustedKey(change.Entry), signed}, nil
}

// signedWith returns the installed plugins that, by the lock file, are signed with a key. It is not nil.
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
