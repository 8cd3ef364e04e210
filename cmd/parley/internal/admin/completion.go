package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

type completionOptions struct {
	Cmd   *cobra.Command
	Shell string `word:""`
}

var completionCommand = &command.Command[*completionOptions]{
	Use: "completion SHELL", Run: runCompletion,
	Short:   "Complete with Tab in a shell",
	Example: "parley completion bash",
	Finish:  func(_ *command.App, cmd *cobra.Command) { cmd.ValidArgs = shells },
}

func runCompletion(_ context.Context, app *command.App, opts *completionOptions) error {
	var err error
	switch root, out := opts.Cmd.Root(), app.Out; opts.Shell {
	case "bash":
		err = root.GenBashCompletionV2(out, true)
	case "zsh":
		err = root.GenZshCompletion(out)
	case "fish":
		err = root.GenFishCompletion(out, true)
	case "powershell":
		err = root.GenPowerShellCompletionWithDesc(out)
	default:
		err = command.UnknownValue("SHELL", opts.Shell, shells)
	}
	return command.WriteError(err)
}
