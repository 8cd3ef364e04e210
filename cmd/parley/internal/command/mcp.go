package command

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"os"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/manifest"
)

// minTokenLength is the length, in bytes, from which a token cannot be guessed.
const minTokenLength = 16

// MCPOptions say how to serve MCP. The zero value serves over stdin and stdout.
type MCPOptions struct {
	// Docs is the documentation mode. "" means the configured one.
	Docs string
	// HTTP is the address to serve Streamable HTTP at: HOST:PORT, :PORT or PORT, without a host on loopback. "" means that
	// stdin and stdout are served.
	HTTP string
	// TokenFile has the accepted tokens, one per line. "" means that a token is generated.
	TokenFile string
	// NoToken accepts every client that can connect. It is refused unless the address is on loopback.
	NoToken bool
	// Hosts are further names by which clients may call the server.
	Hosts []string
}

// MCPServer is a server that is ready to serve.
type MCPServer struct {
	URL   string // "" for stdin and stdout
	Token string // the generated token; "" if there is none

	server   *mcp.Server
	listener net.Listener
	config   mcp.HTTPConfig
}

// MCP prepares a server. Its clients are asked to confirm calls.
func MCP(ctx context.Context, d *Deps, o MCPOptions) (*MCPServer, error) {
	settings, err := d.Settings()
	if err != nil {
		return nil, err
	}
	if o.Docs != "" {
		if err := mcp.CheckMode(o.Docs); err != nil {
			return nil, err
		}
		settings.DocMode = o.Docs
	}
	d.Approver = mcp.Approver{}
	if _, err := d.Host(ctx); err != nil {
		return nil, err
	}
	s := &MCPServer{}
	s.server, err = d.Parley().MCP(mcp.Config{
		Mode: settings.DocMode, Pinned: settings.Pinned, Options: settings.Complete,
	})
	if err != nil || o.HTTP == "" {
		return s, err
	}
	return s, s.listen(d, o)
}

func (s *MCPServer) listen(d *Deps, o MCPOptions) error {
	address, loopback, err := listenAddress(o.HTTP)
	if err != nil {
		return err
	}
	if o.NoToken && !loopback {
		return host.Errorf(host.Denied, "--no-token would accept every client that can reach %s", address).
			WithNext("parley mcp --http " + address + " --token-file FILE")
	}
	tokens, err := o.tokens(d)
	if err != nil {
		return err
	}
	if tokens == nil && !o.NoToken {
		s.Token = rand.Text()
		tokens = []string{s.Token}
	}
	s.config = mcp.HTTPConfig{Tokens: tokens, Hosts: o.Hosts}
	if s.listener, err = net.Listen("tcp", address); err != nil {
		return host.Errorf(host.Unavailable, "cannot listen: %s", manifest.CleanLine(err.Error())).
			WithNext("parley mcp --http 127.0.0.1:0")
	}
	s.URL = "http://" + s.listener.Addr().String() + mcp.Path
	return nil
}

// Serve serves clients until the context or, without HTTP, the input ends. Over HTTP it uses neither in nor out.
func (s *MCPServer) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	if s.listener == nil {
		return s.server.Stdio(ctx, in, out)
	}
	return s.server.HTTP(ctx, s.listener, s.config)
}

// listenAddress completes HOST:PORT, :PORT or PORT. Without a host it is on loopback.
func listenAddress(given string) (address string, loopback bool, err error) {
	if strings.Trim(given, "0123456789") == "" {
		given = ":" + given
	}
	name, port, err := net.SplitHostPort(given)
	if err != nil || port == "" {
		return "", false, host.Errorf(host.InvalidArgs, "--http: %q is not an address; expected HOST:PORT",
			manifest.CleanLine(given)).WithNext("parley mcp --http 127.0.0.1:8931")
	}
	if name == "" {
		name = "127.0.0.1"
	}
	ip := net.ParseIP(name)
	return net.JoinHostPort(name, port), name == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// tokens returns the tokens of the token file, or nil if there is no such file.
func (o MCPOptions) tokens(d *Deps) (tokens []string, err error) {
	if o.TokenFile == "" {
		return nil, nil
	}
	data, err := host.ReadValue(context.Background(), o.TokenFile, host.MaxConfig)
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "--token-file: %s", manifest.CleanLine(err.Error())).
			WithNext("write one token per line into it, and make it readable by you alone")
	}
	if info, err := os.Stat(o.TokenFile); err == nil && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		d.Notice("other users can read " + o.TokenFile + "; chmod 600 it")
	}
	for line := range strings.Lines(string(data)) {
		token := strings.TrimSpace(line)
		if token == "" || strings.HasPrefix(token, "#") {
			continue
		}
		if len(token) < minTokenLength || strings.ContainsAny(token, " \t") {
			return nil, host.Errorf(host.ConfigError,
				"--token-file %s: a token must have at least %d characters and no spaces", o.TokenFile, minTokenLength)
		}
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return nil, host.Errorf(host.ConfigError, "--token-file %s has no tokens", o.TokenFile).
			WithNext("write one token per line into it")
	}
	return tokens, nil
}
