package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
)

type mcpConfigOptions struct {
	app *App
	command.MCPConfigOptions
}

func newMCPConfig(app *App) *cobra.Command {
	opts := &mcpConfigOptions{app: app}
	names := command.MCPClients()
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Print what an MCP client's configuration needs, or write it",
		Example: "parley mcp config --client claude-code\nparley mcp config --client cursor --write",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Client == "" {
				return host.Errorf(host.InvalidArgs, "parley mcp config requires --client, one of %s",
					strings.Join(names, ", ")).WithNext("parley mcp config --client claude-code")
			}
			return runMCPConfig(cmd.Context(), opts)
		},
	}
	last := len(names) - 1
	cmd.Flags().StringVar(&opts.Client, "client", "",
		strings.Join(names[:3], ", ")+",\n"+strings.Join(names[3:last], ", ")+" or "+names[last])
	cmd.Flags().StringVar(&opts.Docs, "docs", "", "documentation mode, if it is not the configured one")
	cmd.Flags().BoolVar(&opts.Write, "write", false, "merge it into the client's file, after a backup")
	cmd.Flags().SortFlags = false
	_ = cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runMCPConfig(_ context.Context, opts *mcpConfigOptions) error {
	data, err := command.MCPConfig(opts.app.deps, opts.MCPConfigOptions)
	if err != nil {
		return err
	}
	next := []string{"parley mcp config --client " + data.Client + " --write"}
	if data.Written {
		next = []string{"restart " + data.Client}
	}
	return opts.app.print(data, next, func(w io.Writer) {
		if !data.Written {
			fmt.Fprint(w, data.Snippet)
			return
		}
		fmt.Fprintf(w, "wrote %s\n", data.File)
		if data.Backup != "" {
			fmt.Fprintf(w, "backup: %s\n", data.Backup)
		}
	})
}
