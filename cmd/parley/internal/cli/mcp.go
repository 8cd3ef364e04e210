package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/manifest"
)

// shortestToken is the length from which a token cannot be guessed.
const shortestToken = 16

type mcpFlags struct {
	http, docs, tokenFile string
	hosts                 []string
	noToken               bool
}

func newMCP(app *App) *cobra.Command {
	f := &mcpFlags{}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve MCP",
		Long: "Without --http it speaks on stdin and stdout. Over HTTP a client must send the bearer token that is printed on stderr at the start,\n" +
			"or one of --token-file. " + mcp.Path + "/MODE is another documentation mode. pinned_tools in the configuration are what progressive mode shows.",
		Example: "parley mcp\nparley mcp --docs minimal\nparley mcp --http 127.0.0.1:8931 --token-file ~/.config/parley/tokens",
		Args:    noWords,
		RunE:    func(cmd *cobra.Command, _ []string) error { return app.mcp(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.docs, "docs", "", "what tools/list shows: minimal, progressive or full")
	cmd.Flags().StringVar(&f.http, "http", "", "serve Streamable HTTP at ADDRESS, such as 127.0.0.1:8931")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "with --http: the tokens that are let in, one a line")
	cmd.Flags().BoolVar(&f.noToken, "no-token", false, "with --http on loopback: let in whoever can connect")
	cmd.Flags().StringArrayVar(&f.hosts, "allow-host", nil, "with --http: a name by which clients may call this server")
	cmd.Flags().SortFlags = false
	cmd.AddCommand(newMCPConfig(app))
	_ = cmd.RegisterFlagCompletionFunc("docs", cobra.FixedCompletions(mcp.Modes(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *App) mcp(ctx context.Context, f *mcpFlags) error {
	for _, only := range [][2]string{{"token-file", f.tokenFile}, {"no-token", flagText(f.noToken)}, {"allow-host", strings.Join(f.hosts, ",")}} {
		if only[1] != "" && f.http == "" {
			return host.Errorf(host.InvalidArgs, "--%s requires --http", only[0]).WithNext("parley mcp --http 127.0.0.1:8931")
		}
	}
	server, err := a.newMCPServer(ctx, f)
	if err != nil {
		return err
	}
	a.json = false // from here on stdout is the protocol's, and what is said on stderr is for people
	if f.http == "" {
		return stopped(server.Stdio(ctx, a.In, a.Out))
	}
	return a.serveMCP(ctx, server, f)
}

func flagText(set bool) string {
	if set {
		return "true"
	}
	return ""
}

// newMCPServer makes a server over the same host as every command has, which asks the client to confirm calls.
func (a *App) newMCPServer(ctx context.Context, f *mcpFlags) (*mcp.Server, error) {
	s, err := a.deps.Settings()
	if err != nil {
		return nil, err
	}
	if f.docs != "" {
		if err := mcp.CheckMode(f.docs); err != nil {
			return nil, err
		}
		s.DocMode = f.docs
	}
	a.deps.Approver = mcp.Approver{}
	if _, err := a.deps.Host(ctx); err != nil {
		return nil, err
	}
	return a.deps.Parley().MCP(mcp.Config{Mode: s.DocMode, Pinned: s.Pinned, Options: s.Complete})
}

// stopped returns how a server ended: a signal ends it, which nothing else has reported.
func stopped(err error) error {
	if err == nil {
		return nil
	}
	if e := host.AsError(err); e.Code == host.Interrupted || e.Code == host.Terminated {
		return &exitStatus{e.ExitCode()}
	}
	return err
}

func (a *App) serveMCP(ctx context.Context, server *mcp.Server, f *mcpFlags) error {
	address, loopback, err := listenAddress(f.http)
	if err != nil {
		return err
	}
	if f.noToken && !loopback {
		return host.Errorf(host.Denied, "--no-token would accept every client that can reach %s", address).WithNext("parley mcp --http " + address + " --token-file FILE")
	}
	tokens, made, err := a.tokens(f)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return host.Errorf(host.Unavailable, "cannot listen: %s", manifest.CleanLine(err.Error())).WithNext("parley mcp --http 127.0.0.1:0")
	}
	fmt.Fprintf(a.Err, "MCP at http://%s%s\n", listener.Addr(), mcp.Path)
	if made != "" {
		fmt.Fprintf(a.Err, "Authorization: Bearer %s\n", made)
	}
	return stopped(server.HTTP(ctx, listener, mcp.HTTPConfig{Tokens: tokens, Hosts: f.hosts}))
}

// listenAddress completes HOST:PORT, :PORT or PORT: without a host it is this machine's own.
func listenAddress(given string) (address string, loopback bool, err error) {
	if strings.Trim(given, "0123456789") == "" {
		given = ":" + given
	}
	name, port, err := net.SplitHostPort(given)
	if err != nil || port == "" {
		return "", false, host.Errorf(host.InvalidArgs, "--http: %q is not an address; expected HOST:PORT", manifest.CleanLine(given)).WithNext("parley mcp --http 127.0.0.1:8931")
	}
	if name == "" {
		name = "127.0.0.1"
	}
	ip := net.ParseIP(name)
	return net.JoinHostPort(name, port), name == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// tokens returns the accepted tokens, and the one that was generated, if any.
func (a *App) tokens(f *mcpFlags) (tokens []string, made string, err error) {
	switch {
	case f.noToken && f.tokenFile != "":
		return nil, "", host.Errorf(host.InvalidArgs, "--no-token cannot be combined with --token-file").WithNext("leave one of them out")
	case f.noToken:
		return nil, "", nil
	case f.tokenFile == "":
		made = rand.Text()
		return []string{made}, made, nil
	}
	data, err := os.ReadFile(f.tokenFile)
	if err != nil {
		return nil, "", host.Errorf(host.ConfigError, "--token-file: %s", manifest.CleanLine(err.Error())).WithNext("write a token a line into it, readable by you alone")
	}
	if info, err := os.Stat(f.tokenFile); err == nil && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		a.notice("others can read " + f.tokenFile + "; chmod 600 it")
	}
	for line := range strings.Lines(string(data)) {
		token := strings.TrimSpace(line)
		if token == "" || strings.HasPrefix(token, "#") {
			continue
		}
		if len(token) < shortestToken || strings.ContainsAny(token, " \t") {
			return nil, "", host.Errorf(host.ConfigError, "--token-file %s: a token has at least %d characters and no spaces", f.tokenFile, shortestToken)
		}
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return nil, "", host.Errorf(host.ConfigError, "--token-file %s holds no token", f.tokenFile).WithNext("write a token a line into it")
	}
	return tokens, "", nil
}
