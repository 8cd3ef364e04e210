package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
)

type mcpOptions struct {
	app *App
	command.MCPOptions
}

func newMCP(app *App) *cobra.Command {
	opts := &mcpOptions{app: app}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "MCP",
		Long: "Without --http it serves stdin and stdout. Over HTTP a client must send the bearer token that is printed\n" +
			"on stderr at the start, or one of --token-file. " + mcp.Path + "/MODE serves another documentation mode.\n" +
			"An address that is not on loopback requires --tls-cert and --tls-key, or --plain-http.\n" +
			"The setting pinned_tools names tools that progressive mode lists.\n" +
			"Each client has a session of its own. With --session, the client on stdin and stdout shares your session NAME:\n" +
			"its pages, cookies and logins. Over HTTP the line NAME=TOKEN session=NAME of --token-file does that.",
		Example: "parley mcp\nparley mcp --docs minimal\nparley mcp --session research\n" +
			"parley mcp --http 127.0.0.1:8931 --token-file ~/.config/parley/tokens",
		RunE: func(cmd *cobra.Command, _ []string) error {
			name := firstSet(cmd, "token-file", "no-token", "tls-cert", "tls-key", "plain-http", "allow-host")
			if name != "" && opts.HTTP == "" {
				return host.Errorf(host.InvalidArgs, "--%s requires --http", name).WithNext("parley mcp --http 127.0.0.1:8931")
			}
			if opts.NoToken && opts.TokenFile != "" {
				return host.Errorf(host.InvalidArgs, "--no-token cannot be combined with --token-file").
					WithNext("leave one of them out")
			}
			if (opts.TLSCert == "") != (opts.TLSKey == "") || opts.TLSCert != "" && opts.PlainHTTP {
				return host.Errorf(host.InvalidArgs, "expected both --tls-cert and --tls-key, or --plain-http").
					WithNext("parley mcp --http " + opts.HTTP + " --tls-cert FILE --tls-key FILE")
			}
			return runMCP(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Docs, "docs", "", "documentation mode: minimal, progressive, full or code")
	cmd.Flags().StringVar(&opts.HTTP, "http", "", "serve Streamable HTTP at ADDRESS, such as 127.0.0.1:8931")
	cmd.Flags().StringVar(&opts.TokenFile, "token-file", "", "with --http: file of the accepted tokens, one per line")
	cmd.Flags().BoolVar(&opts.NoToken, "no-token", false, "with --http on loopback: accept every client")
	cmd.Flags().StringVar(&opts.TLSCert, "tls-cert", "", "with --http: file of the certificate, in PEM")
	cmd.Flags().StringVar(&opts.TLSKey, "tls-key", "", "with --http: file of its key, in PEM")
	cmd.Flags().BoolVar(&opts.PlainHTTP, "plain-http", false, "with --http beyond loopback: serve without TLS")
	cmd.Flags().Var((*texts)(&opts.Hosts), "allow-host",
		"with --http: a name by which clients may call this server")
	cmd.Flags().SortFlags = false
	cmd.AddCommand(newMCPConfig(app))
	_ = cmd.RegisterFlagCompletionFunc("docs", cobra.FixedCompletions(mcp.Modes(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runMCP(ctx context.Context, opts *mcpOptions) error {
	app := opts.app
	server, err := command.MCP(ctx, app.deps, opts.MCPOptions)
	if err != nil {
		return err
	}
	app.json = false // from now on stdout has messages of the protocol, and stderr has text for people
	notices, _ := app.said()
	for _, text := range notices {
		app.notice(text)
	}
	if server.URL != "" {
		fmt.Fprintf(app.Err, "MCP at %s\n", server.URL)
	}
	if server.Token != "" {
		fmt.Fprintf(app.Err, "Authorization: Bearer %s\n", server.Token)
	}
	return stopped(server.Serve(ctx, app.In, app.Out))
}

// stopped returns how a server ended. A signal is an exit code without a message.
func stopped(err error) error {
	if err == nil {
		return nil
	}
	if e := host.AsError(err); e.Code == host.Interrupted || e.Code == host.Terminated {
		return &exitStatus{e.ExitCode()}
	}
	return err
}
