package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host/signature"
)

type trustFlags struct {
	name, remove string
	list, yes    bool
}

func newPluginTrust(app *App) *cobra.Command {
	f := &trustFlags{}
	cmd := &cobra.Command{
		Use:   "trust [KEY|FILE.pub]",
		Short: "Trust a key whose signatures count, or list and remove trusted keys",
		Long: "A person at the terminal is asked before anything is written. Trusting a key grants no rights: it says who a plugin is\n" +
			"from. policy.toml can demand a trusted signature of one plugin (signer) or of all (require_signer).",
		Example: "parley plugin trust my.key.pub --name me\nparley plugin trust --list\nparley plugin trust --remove me",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.list && len(args) == 0 && f.remove == "":
				return app.listTrusted()
			case f.remove != "" && len(args) == 0 && !f.list && f.name == "":
				return app.changeTrust(cmd.Context(), func(t *signature.Trust) (signature.Change, error) { return t.Remove(f.remove) }, f.yes)
			case f.list || f.remove != "" || len(args) != 1:
				return missingWord("plugin trust", "one KEY or FILE.pub, or --list, or --remove KEY", "parley plugin trust my.key.pub --name me")
			}
			key, err := readPublicKey(args[0])
			if err != nil {
				return err
			}
			return app.changeTrust(cmd.Context(), func(t *signature.Trust) (signature.Change, error) { return t.Add(key, f.name) }, f.yes)
		},
	}
	cmd.Flags().StringVar(&f.name, "name", "", "what to call the key")
	cmd.Flags().BoolVar(&f.list, "list", false, "list the trusted keys")
	cmd.Flags().StringVar(&f.remove, "remove", "", "trust this key, or the key of this name, no longer")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask; only where the policy says allow_yes")
	return cmd
}

func (a *App) listTrusted() error {
	keys, err := a.deps.Parley().Trust().Keys()
	if err != nil {
		return err
	}
	data := struct {
		File  string                 `json:"file"`
		Keys  []signature.TrustedKey `json:"keys"`
		Total int                    `json:"total"`
	}{a.deps.Parley().Trust().Path, append([]signature.TrustedKey{}, keys...), len(keys)}
	return a.answer(data, []string{"parley plugin trust --help"}, func(w io.Writer) {
		if len(keys) == 0 {
			fmt.Fprintln(w, "No key is trusted.")
		}
		for _, k := range keys {
			fmt.Fprintln(w, k)
		}
	})
}

// changeTrust writes the list of trusted keys after a person at the terminal has seen the change and said yes.
func (a *App) changeTrust(ctx context.Context, prepare func(*signature.Trust) (signature.Change, error), yes bool) error {
	rules, err := a.deps.Policy()
	if err != nil {
		return err
	}
	change, err := prepare(a.deps.Parley().Trust())
	if err != nil {
		return err
	}
	signed, err := a.signedWith(change.Entry.Key)
	if err != nil {
		return err
	}
	text := change.Diff()
	if !change.Removed {
		text += "note: compare the key with what its owner publishes; anybody can make one\n"
	}
	if len(signed) > 0 {
		text += "note: installed plugins that are signed with it: " + strings.Join(signed, ", ") + "\n"
	}
	if err := a.approve(ctx, rules, text, "Write this?", yes); err != nil {
		return err
	}
	if err := a.deps.Parley().Trust().Write(change); err != nil {
		return err
	}
	verb, did := "Trusted", "added"
	if change.Removed {
		verb, did = "No longer trusted", "removed"
	}
	a.note("trust", change.Entry.String(), did)
	data := struct {
		File    string `json:"file"`
		Removed bool   `json:"removed"` // rather than added
		signature.TrustedKey
		Plugins []string `json:"plugins"` // installed ones that are signed with the key
	}{change.Path, change.Removed, change.Entry, append([]string{}, signed...)}
	return a.answer(data, []string{"parley plugin trust --list"}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s\n", verb, change.Entry)
		if len(signed) > 0 {
			fmt.Fprintln(w, "  installed plugins that are signed with it: "+strings.Join(signed, ", "))
		}
	})
}

// signedWith lists the installed plugins that the lock file says are signed with a key.
func (a *App) signedWith(key signature.Key) ([]string, error) {
	entries, err := a.deps.Store().List()
	var names []string
	for _, e := range entries {
		if e.Signer == string(key) {
			names = append(names, e.Name)
		}
	}
	return names, err
}
