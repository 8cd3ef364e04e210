package cli

import (
	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/tools"
)

// newRoot returns the whole command tree.
func newRoot(app *command.App, run tools.RunRootFunc) *cobra.Command {
	return newRootFor(app, []string{"help"}, run)
}
