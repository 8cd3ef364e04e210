// Package serve has the command that serves MCP, and the command that configures MCP clients.
package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/mcp/access"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// Commands are the commands that this package has.
var Commands = command.Chapters{"Connect agents": {mcpCommand}}

var mcpCommand = &command.Command[*mcpOptions]{
	Use: "mcp", Run: runMCP,
	Short: "Serve the tools to MCP clients",
	Long: "Without --http it serves stdin and stdout. Over HTTP a client must send the bearer token that is printed\n" +
		"on stderr at the start, or one of --token-file. " + mcp.Path + "/MODE serves another documentation mode.\n" +
		"An address that is not on loopback requires --tls-cert and --tls-key, or --plain-http.\n" +
		"The setting pinned_tools names tools that progressive mode lists. Each client has a session of its own.\n" +
		"With --session, the client on stdin and stdout shares your session NAME: its pages, cookies and logins.\n" +
		"Over HTTP the line NAME=TOKEN session=NAME of --token-file does that. Which mode (--docs) suits, and its turns " +
		"for 19 tasks:\n\n" + modesText,
	Example: "parley mcp\nparley mcp --docs minimal\nparley mcp --session research\n" +
		"parley mcp --http 127.0.0.1:8931 --token-file ~/.config/parley/tokens",
	Options: map[string]command.Completer{"docs": command.OneOf(mcp.Modes()...)},
	Finish:  func(app *command.App, cmd *cobra.Command) { cmd.AddCommand(mcpConfigCommand.New(app)) },
}

func runMCP(ctx context.Context, app *command.App, opts *mcpOptions) error {
	name := command.FirstSet(opts.Flags, "token-file", "no-token", "tls-cert", "tls-key", "plain-http", "allow-host")
	switch {
	case name != "" && opts.HTTP == "":
		return host.Errorf(host.InvalidArgs, "--%s requires --http", name).WithNext("parley mcp --http 127.0.0.1:8931")
	case opts.NoToken && opts.TokenFile != "":
		return host.Errorf(host.InvalidArgs, "--no-token cannot be combined with --token-file").
			WithNext("leave one of them out")
	case (opts.TLSCert == "") != (opts.TLSKey == "") || opts.TLSCert != "" && opts.PlainHTTP:
		return host.Errorf(host.InvalidArgs, "expected both --tls-cert and --tls-key, or --plain-http")
	}
	server, err := newServer(ctx, app, *opts)
	if err != nil {
		return err
	}
	app.ToText() // from now on stdout carries protocol messages, and stderr carries text for people
	ctx.Done()   // starts to handle signals, because a reader of the address may end the server at once
	command.PrintIf(app.Err, server.URL != "", "MCP at %s\n", server.URL)
	command.PrintIf(app.Err, server.Token != "", "Authorization: Bearer %s\n", server.Token)
	if server.listener == nil {
		return stopped(server.Stdio(ctx, app.In, app.Out))
	}
	return stopped(server.HTTP(ctx, server.listener, server.config))
}

// stopped returns the error with which a server ended. For a signal, it is an exit code without a message.
func stopped(err error) error {
	if err == nil {
		return nil
	}
	if e := host.AsError(err); e.Code == host.Interrupted || e.Code == host.Terminated {
		return &command.ExitStatus{Code: e.ExitCode()}
	}
	return err
}

// mcpOptions say how to serve MCP. The zero value serves over stdin and stdout.
type mcpOptions struct {
	Flags *pflag.FlagSet
	// Docs is the documentation mode. "" means the configured one.
	Docs string `flag:"docs" usage:"documentation mode: minimal, progressive, full or code"`
	// HTTP is the address: HOST:PORT, :PORT or PORT. Without a host it is on loopback. "" means to serve stdin and
	// stdout.
	HTTP string `flag:"http" usage:"serve Streamable HTTP at ADDRESS, such as 127.0.0.1:8931"`
	// TokenFile has the accepted tokens, one per line: TOKEN, or NAME=TOKEN for the client NAME, and after a space
	// session=SESSION for clients that work in that session of the user. The file is read again when it changes. ""
	// means to generate a token.
	TokenFile string `flag:"token-file" usage:"with --http: file of the accepted tokens, one per line"`
	NoToken   bool   `flag:"no-token" usage:"with --http on loopback: accept every client"`
	// TLSCert and TLSKey are files. "" means plain HTTP, which is refused unless the address is on loopback or PlainHTTP
	// is set.
	TLSCert   string   `flag:"tls-cert" usage:"with --http: file of the certificate, in PEM"`
	TLSKey    string   `flag:"tls-key" usage:"with --http: file of its key, in PEM"`
	PlainHTTP bool     `flag:"plain-http" usage:"with --http beyond loopback: serve without TLS"`
	Hosts     []string `flag:"allow-host" usage:"with --http: a name by which clients may call this server"`
}

// mcpServer is a server that is ready to serve.
type mcpServer struct {
	URL   string // "" for stdin and stdout
	Token string // the generated token; "" if there is none

	*mcp.Server
	listener net.Listener
	config   mcp.HTTPConfig
}

// newServer prepares a server. Its clients are asked to confirm calls. The client on stdin and stdout works in the
// user's session [App.SessionName]. Without that, each connection has a session of its own.
func newServer(ctx context.Context, app *command.App, o mcpOptions) (*mcpServer, error) {
	if app.SessionName != "" && o.HTTP != "" {
		return nil, host.Errorf(host.InvalidArgs, "--session is for the one client on stdin and stdout; over HTTP the line "+
			"\"NAME=TOKEN session=%s\" in a file of tokens lets the clients with that token work in it: "+
			"parley mcp --http %s --token-file FILE", app.SessionName, o.HTTP)
	}
	settings, err := app.Settings()
	if err != nil {
		return nil, err
	}
	if o.Docs != "" {
		if err := mcp.CheckMode(o.Docs); err != nil {
			return nil, err
		}
		settings.DocMode = o.Docs
	}
	approver := parley.Approvals(app.Parley())
	approver.AtHand, approver.Patience = mcp.Approver{}, mcp.Patience(settings.ConfirmWait)
	if _, err := app.Host(ctx); err != nil {
		return nil, err
	}
	s := &mcpServer{}
	s.Server, err = app.Parley().MCP(mcp.Config{
		Mode: settings.DocMode, Pinned: settings.Pinned, DocsOnFirstUse: settings.DocsOnFirstUse,
		Options: settings.Complete, Session: app.SessionName,
	})
	if err != nil {
		return nil, err
	}
	if at := app.Parley().Chrome().AttachedTo(settings.Browser); at != "" {
		app.Notice("clients use your own Chrome at " + at + ", browser " + cmp.Or(settings.Browser, "default") +
			": each sees the tabs that it opens, and those that you give its session (parley cdp activate ID --session NAME)")
	}
	if o.HTTP != "" {
		return s, s.listen(ctx, app, o)
	}
	if app.SessionName != "" {
		app.Notice("the client works in your session " + app.SessionName + ": it shares its pages, cookies and logins")
	}
	return s, nil
}

func (s *mcpServer) listen(ctx context.Context, app *command.App, o mcpOptions) error {
	address, loopback, err := listenAddress(o.HTTP)
	if err != nil {
		return err
	}
	if o.NoToken && !loopback {
		return host.Errorf(host.Denied, "--no-token would accept every client that can reach %s; "+
			"name the accepted tokens with --token-file FILE", address)
	}
	if o.TLSCert == "" && !o.PlainHTTP && !loopback {
		return host.Errorf(host.Denied, "plain HTTP on %s would show tokens and results to the network; "+
			"give --tls-cert FILE --tls-key FILE; --plain-http is for a proxy in front of it that has TLS", address)
	}
	s.config = mcp.HTTPConfig{Hosts: o.Hosts, Access: accessLog(app)}
	scheme := "http://"
	if o.TLSCert != "" {
		scheme = "https://"
		if s.config.TLS, err = certificate(ctx, app, o); err != nil {
			return err
		}
	}
	switch {
	case o.TokenFile != "":
		file := &access.File{Path: o.TokenFile, Notice: app.Notice, ReadFirst: func() ([]byte, error) {
			return command.ReadHostFile(ctx, app, command.TokenFileOption, o.TokenFile, protect.MaxConfig)
		}}
		if _, err := file.Tokens(); err != nil {
			return err
		}
		s.config.Verify = file.Verify
	case !o.NoToken:
		s.Token = rand.Text()
		s.config.Tokens = []string{s.Token}
	}
	if s.listener, err = net.Listen("tcp", address); err != nil {
		return host.Errorf(host.Unavailable, "cannot listen: %s", manifest.CleanLine(err.Error())).
			WithNext("parley mcp --http 127.0.0.1:0")
	}
	s.URL = scheme + s.listener.Addr().String() + mcp.Path
	return nil
}

// certificate reads a certificate and its key. The error is config_error.
func certificate(ctx context.Context, app *command.App, o mcpOptions) (*tls.Config, error) {
	c := &access.Certificate{Cert: o.TLSCert, Key: o.TLSKey, ReadFirst: func(path string) ([]byte, error) {
		option := command.Either(path == o.TLSKey, command.TLSKeyOption, command.CertificateOption)
		return command.ReadHostFile(ctx, app, option, path, protect.MaxConfig)
	}, Changed: func(_ *x509.Certificate, err error) {
		if err != nil {
			app.Notice("the certificate stays as it was: " + manifest.CleanLine(err.Error()))
		}
	}}
	_, err := c.Current()
	if e, ok := errors.AsType[*host.Error](err); ok {
		e.Message = "--tls-cert, --tls-key: " + e.Message
	}
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.Current() }}, err
}

// listenAddress completes HOST:PORT, :PORT or PORT to an address. Without a host it is on loopback.
func listenAddress(given string) (address string, loopback bool, err error) {
	if strings.Trim(given, "0123456789") == "" {
		given = ":" + given
	}
	name, port, err := net.SplitHostPort(given)
	if err != nil || port == "" {
		return "", false, host.Errorf(host.InvalidArgs, "--http: %q is not an address; expected HOST:PORT",
			manifest.CleanValue(given)).WithNext("parley mcp --http 127.0.0.1:8931")
	}
	name = cmp.Or(name, "127.0.0.1")
	return net.JoinHostPort(name, port), name == "localhost" || net.ParseIP(name).IsLoopback(), nil
}

// maxAccessLog is the size of an access log, in bytes, above which the log is renamed and a new one begins.
const maxAccessLog = 16 << 20

// accessLog returns a function that appends requests to access.jsonl in the state folder, one JSON object per line.
func accessLog(app *command.App) func(mcp.Access) {
	var mu sync.Mutex
	path, warned := filepath.Join(app.Dirs().State, "access.jsonl"), false
	return func(a mcp.Access) {
		mu.Lock()
		defer mu.Unlock()
		if err := appendLine(path, a); err != nil && !warned {
			warned = true
			app.Notice("the access log cannot be written: " + manifest.CleanLine(err.Error()))
		}
	}
}

func appendLine(path string, record mcp.Access) error {
	line, _ := manifest.Marshal(record)
	if info, err := os.Stat(path); err == nil && info.Size() > maxAccessLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, _, err := protect.Append(path)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
