package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

type completionOptions struct {
	root  *cobra.Command
	shell string
}

func newCompletion(app *command.App) *cobra.Command {
	opts := &completionOptions{}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Shell",
		Example:   "parley completion bash",
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(shells, args[0]) {
				return command.UnknownValue("SHELL", args[0], shells)
			}
			opts.root, opts.shell = cmd.Root(), args[0]
			return runCompletion(cmd.Context(), app, opts)
		},
	}
}

func runCompletion(_ context.Context, app *command.App, opts *completionOptions) error {
	out := app.Out
	switch opts.shell {
	case "zsh":
		return opts.root.GenZshCompletion(out)
	case "fish":
		return opts.root.GenFishCompletion(out, true)
	case "powershell":
		return opts.root.GenPowerShellCompletionWithDesc(out)
	}
	return opts.root.GenBashCompletionV2(out, true)
}
