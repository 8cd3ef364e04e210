package cli

import (
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host/wasm"
)

// signatureText is a line about a signature.
func signatureText(s parley.Signer) string {
	switch {
	case s.KeyID == "":
		return "not signed"
	case s.Key == "":
		return "signed with the unknown key " + s.KeyID + ": it counts as unsigned"
	case !s.Trusted:
		return "signed with the key " + s.Key + ", which is not trusted: it counts as unsigned"
	}
	return "signed with the trusted key " + strings.TrimSpace(s.Key+" "+s.Name)
}

// trustCommands is the command that would trust the key, where that is for the operator to decide.
func trustCommands(s parley.Signer) []string {
	switch {
	case s.KeyID == "" || s.Trusted:
		return nil
	case s.Key == "":
		return []string{"parley plugin trust KEY"}
	}
	return []string{"parley plugin trust " + shellQuote(s.Key)}
}

// installedSigner is what the lock file says of a signature.
func (a *App) installedSigner(e wasm.Entry) *parley.Signer {
	signer, err := a.deps.Parley().InstalledSigner(e)
	if err != nil {
		a.notice("no key counts as trusted: " + err.Error())
	}
	return &signer
}
