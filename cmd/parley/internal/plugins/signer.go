package plugins

import (
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host/admit"
)

// trustCommands returns the command that trusts the key, if it is not trusted yet.
func trustCommands(s admit.Signer) []string {
	switch {
	case s.KeyID == "" || s.Trusted:
		return nil
	case s.Key == "":
		return []string{"parley plugin trust KEY"}
	}
	return []string{"parley plugin trust " + command.ShellQuote(s.Key)}
}
