package cli

import (
	"strings"

	"github.com/parley-tools/parley"
)

// signatureText describes a signature in one line.
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

// trustCommands returns the command that trusts the key, if it is not trusted yet.
func trustCommands(s parley.Signer) []string {
	switch {
	case s.KeyID == "" || s.Trusted:
		return nil
	case s.Key == "":
		return []string{"parley plugin trust KEY"}
	}
	return []string{"parley plugin trust " + shellQuote(s.Key)}
}
