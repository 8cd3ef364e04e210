package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp/access"
	"github.com/parley-tools/parley/host/mcp/frame"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// Path is where [Server.HTTP] serves MCP. Path + "/" + mode serves another documentation mode.
const Path = "/mcp"

const (
	sessionTimeout = 30 * time.Minute // between two requests of a session
	// maxSmall is the size above which a body, or the result that a call may return, counts as large. At most maxLarge
	// of each are in memory at one time.
	maxSmall = 1 << 20
	maxLarge = 4
	// maxRequests bounds the requests that are not answered completely, including those whose client does not read. It
	// exceeds maxCalls, so that a client can still cancel a call while maxCalls are running.
	maxRequests = 2 * maxCalls
	// maxUnsentBytes bounds the bytes that wait for clients to read them. Above it, no further large call starts.
	maxUnsentBytes = 32 << 20
	// maxClientConnections bounds the connections from one address.
	maxClientConnections = frame.MaxConnections / 4
	// maxSkimmed is how much is read of a body that is refused, within the time for sending one.
	maxSkimmed  = 3 * maxMessage
	maxSessions = 512
)

// HTTPConfig configures access to a server over HTTP. The zero value accepts every client that calls the server by
// localhost or an IP address, without a token.
type HTTPConfig struct {
	// Tokens are the accepted bearer tokens, one per client. Empty means that no token is required.
	Tokens []string
	// Verify checks the token of a request instead of Tokens, such as [access.File.Verify]. With an error the request is
	// refused: with 403 if the code is denied, and else with 401.
	Verify func(ctx context.Context, text string) (access.Token, error)
	// Metadata is the URL of the metadata of RFC 9728, from which clients learn the authorization server. "" means that
	// there is none.
	Metadata string
	// Access takes each request after its response, for an access log. It may be nil.
	Access func(Access)
	// Hosts are the names by which clients may call the server, in addition to localhost and IP addresses. Requests with
	// another Host header are refused: this stops pages whose name was made to resolve to this machine (DNS rebinding).
	Hosts []string
	// TLS encrypts connections of [Server.HTTP]. Nil serves plain HTTP.
	TLS *tls.Config
	// ClientTimeout bounds how long a client may take to send a body, and to read a piece of a response. With
	// [Server.HTTP] it also bounds the headers. Zero means 30 s.
	ClientTimeout time.Duration
}

// Access is one request in an access log. It has no token and no body.
type Access struct {
	Time   time.Time     `json:"t"`
	From   string        `json:"from"`           // address of the client
	Name   string        `json:"name,omitempty"` // name that its token is bound to
	Method string        `json:"method"`
	Path   string        `json:"path"`
	Status int           `json:"status"`
	Bytes  int64         `json:"bytes"` // bytes of the response
	Took   time.Duration `json:"took_ns"`
	Parent string        `json:"-"` // as in caller.Trace
}

// HealthPath is the path at which [Server.HTTP] reports its health, without a token.
const HealthPath = "/health"

// Handler returns a handler that serves MCP over Streamable HTTP in one documentation mode or, for the mode "", every
// mode at its path, [Path] and below it. For one mode it can be mounted at any path of any mux, beside other routes:
//
//	handler, err := server.Handler(mcp.Progressive, mcp.HTTPConfig{Tokens: tokens})
//	mux.Handle("/tools", handler)
//
// The handler checks the token, Host and Origin headers of each request, and bounds bodies, sessions and the requests
// under way; these bounds are shared by all handlers of the server. Timeouts of headers and idle connections belong to
// the [http.Server] that serves the mux. Call [Server.Shutdown] before that server's own Shutdown.
//
// The error is invalid_args for an unknown mode.
func (s *Server) Handler(mode string, cfg HTTPConfig) (http.Handler, error) {
	if mode == "" {
		return s.guard(cfg, http.HandlerFunc(s.serveModes)), nil
	}
	m, err := s.modeServer(mode)
	if err != nil {
		return nil, err
	}
	return s.guard(cfg, m), nil
}

// HTTP serves MCP to the clients that connect to a listener, at [Path] and below it, until ctx ends. It then accepts no
// further requests, ends the calls under way and returns the cause.
func (s *Server) HTTP(ctx context.Context, listener net.Listener, cfg HTTPConfig) error {
	server := frame.NewServer(s.withHealth(cfg, s.guard(cfg, http.HandlerFunc(s.serveModes))), cfg.ClientTimeout)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(frame.NewListener(listener, maxClientConnections, cfg.TLS)) }()
	select {
	case err := <-ended:
		return host.Errorf(host.Unavailable, "cannot serve: %v", err)
	case <-ctx.Done():
	}
	_ = listener.Close()
	s.shutdown(context.Cause(ctx))
	last, cancel := context.WithTimeout(context.Background(), s.shutdownGrace)
	defer cancel()
	if server.Shutdown(last) != nil {
		_ = server.Close()
	}
	return context.Cause(ctx)
}

// withHealth serves [HealthPath]. The rest is left to next.
func (s *Server) withHealth(cfg HTTPConfig, next http.Handler) http.Handler {
	health := cfg.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if s.closing.Err() != nil {
			writeHTTPError(w, http.StatusServiceUnavailable, host.Errorf(host.Unavailable, "the server is shutting down"))
			return
		}
		w.Header().Set("Content-Type", jsonType)
		_, _ = io.WriteString(w, "{\"ok\":true}\n")
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == HealthPath {
			health.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveModes serves each documentation mode at its path. A mode is set up when it is first requested.
func (s *Server) serveModes(w http.ResponseWriter, r *http.Request) {
	mode, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/"), Path)
	if !ok || mode != "" && mode[0] != '/' {
		writeHTTPError(w, http.StatusNotFound, host.Errorf(host.NotFound, "nothing is served at %s; the endpoint is %s",
			manifest.CleanLine(r.URL.Path), Path))
		return
	}
	m, err := s.modeServer(cmp.Or(strings.TrimPrefix(mode, "/"), s.cfg.Mode))
	if err != nil {
		writeHTTPError(w, http.StatusNotFound, host.AsError(err))
		return
	}
	m.ServeHTTP(w, r)
}

// connectHTTP makes the handlers of both wires: later revisions have no sessions.
func (m *modeServer) connectHTTP() {
	get := func(*http.Request) *sdk.Server { return m.server }
	m.stateless = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // the guard checks Host and Origin
		MaxRequestBodyBytes:        maxMessage,
	})
	m.stateful = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		SessionTimeout: sessionTimeout, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxMessage,
		EventStore: &m.of.replay,
	})
}

// peerHeader tells the address of a client to the handlers of its requests, which see headers only.
const peerHeader = "Parley-Peer"

// ServeHTTP serves a request that the guard has let in.
func (m *modeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header.Set(peerHeader, r.RemoteAddr)
	frame.Serve(w, r, func() string { return m.revision(r) }, http.HandlerFunc(m.serveFramed))
}

// revision returns the revision of a request: the session's, or else the one in the header.
func (m *modeServer) revision(r *http.Request) string {
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		for session := range m.server.Sessions() {
			if p := session.InitializeParams(); session.ID() == id && p != nil {
				return frame.Negotiated(p.ProtocolVersion)
			}
		}
	}
	return cmp.Or(r.Header.Get("Mcp-Protocol-Version"), "2025-03-26") // as the protocol says
}

// serveFramed passes a message to the SDK.
func (m *modeServer) serveFramed(w http.ResponseWriter, r *http.Request) {
	if !frame.HasSessions(r.Header.Get("Mcp-Protocol-Version")) {
		m.stateless.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" &&
		len(slices.Collect(m.server.Sessions())) >= maxSessions {
		writeHTTPError(w, http.StatusServiceUnavailable,
			host.Errorf(host.Busy, "%d sessions are open already; end one with DELETE", maxSessions))
		return
	}
	defer m.of.connections.hold(r)()
	if r.Method == http.MethodGet { // the stream of messages that the server sends unprompted
		defer m.of.watch()()
	}
	r, served := m.of.replay.Take(r, userOf(r))
	defer served()
	m.stateful.ServeHTTP(w, r)
}

// guard checks and bounds each request before it passes it on.
type guard struct {
	HTTPConfig // with Verify for the Tokens; nil if no token is required
	server     *Server
	next       http.Handler
}

// guard wraps a handler with the checks of a configuration.
func (s *Server) guard(cfg HTTPConfig, next http.Handler) http.Handler {
	cfg.ClientTimeout = cmp.Or(cfg.ClientTimeout, frame.ClientTimeout)
	if cfg.Verify == nil && len(cfg.Tokens) > 0 {
		tokens := lists.Map(cfg.Tokens, func(t string) access.Token { return access.Token{Token: t} })
		cfg.Verify = func(_ context.Context, text string) (access.Token, error) { return access.Find(tokens, text) }
	}
	g := &guard{cfg, s, next}
	bounded := access.WhileAccepted(http.HandlerFunc(g.serveBounded), cfg.Verify)
	challenge := `Bearer realm="parley"`
	if cfg.Metadata != "" {
		challenge += fmt.Sprintf(", resource_metadata=%q", cfg.Metadata)
	}
	if g.Verify != nil {
		bounded = auth.RequireBearerToken(g.verifyToken, &auth.RequireBearerTokenOptions{
			AllowMissingExpiration: true,
		})(bounded)
	}
	allowed := cfg.Guard(bounded)
	return http.HandlerFunc(func(raw http.ResponseWriter, r *http.Request) {
		w := &frame.Writer{ResponseWriter: raw, ClientTimeout: g.ClientTimeout, Unsent: &s.unsentBytes,
			Challenge: challenge}
		if r.Header.Get("Authorization") != "" {
			w.Challenge += `, error="invalid_token"`
		}
		if cfg.Access != nil {
			began := time.Now()
			defer func() {
				cfg.Access(Access{
					Time: began, From: r.RemoteAddr, Name: w.Name, Method: r.Method,
					Path: manifest.CleanLine(manifest.Clip(r.URL.Path, maxLoggedPath)), Status: cmp.Or(w.Status, http.StatusOK),
					Bytes: w.Written, Took: time.Since(began), Parent: r.Header.Get("Traceparent"),
				})
			}()
		}
		defer w.Extend() // net/http sends what is buffered after the handler returns
		body := io.LimitReader(r.Body, maxSkimmed)
		r.Body = io.NopCloser(body) // net/http closes its own
		if r.Header.Get("Expect") == "" {
			// A client may only read the response after it has sent all: before that, a closed connection loses it. One
			// that sends Expect reads first, unless it has been told to go on.
			defer func() { _, _ = io.Copy(io.Discard, body) }()
		}
		if r.ContentLength != 0 {
			_ = http.NewResponseController(raw).SetReadDeadline(time.Now().Add(g.ClientTimeout))
		}
		allowed.ServeHTTP(w, r)
	})
}

// retryAfter is after how many seconds a client may repeat a request that came while the server shuts down.
const retryAfter = "2"

// maxLoggedPath bounds the path in an access log, in bytes.
const maxLoggedPath = 200

// serveBounded bounds the requests under way and their bodies.
func (g *guard) serveBounded(w http.ResponseWriter, r *http.Request) {
	if !isAdmitted(w, r) {
		return
	}
	draining := g.server.draining.Load()
	if draining {
		w.Header().Set("Connection", "close") // the next request is for the next server
	}
	if g.server.closing.Err() != nil || draining && r.Header.Get("Mcp-Session-Id") == "" {
		w.Header().Set("Retry-After", retryAfter)
		writeHTTPError(w, http.StatusServiceUnavailable, host.Errorf(host.Unavailable, "the server is shutting down"))
		return
	}
	if r.Method != http.MethodPost {
		g.next.ServeHTTP(w, r)
		return
	}
	select {
	case g.server.requests <- struct{}{}:
		defer func() { <-g.server.requests }()
	default:
		writeHTTPError(w, http.StatusServiceUnavailable,
			host.Errorf(host.Busy, "%d requests are running already; send it again later", maxRequests))
		return
	}
	done, ok := g.readBody(w, r)
	if !ok {
		return
	}
	defer done()
	g.next.ServeHTTP(w, r)
}

// Guard serves a handler beside MCP. Requests from pages of another site, and requests by a name that is not the
// server's, are refused as they are for MCP. No token is required.
func (c HTTPConfig) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused := c.checkOrigin(r); refused != nil {
			writeHTTPError(w, http.StatusForbidden, refused)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkOrigin refuses requests that a browser sends for a page of another origin, and Host headers that are not names
// of this server.
func (c HTTPConfig) checkOrigin(r *http.Request) *host.Error {
	if !c.isKnownHost(hostName(r.Host)) {
		return host.Errorf(host.Denied, "unexpected Host header %q; use the address of the server, "+
			"or start it with this name in --allow-host or, for parleyd, in hosts", manifest.CleanLine(r.Host))
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
			return host.Errorf(host.Denied, "requests from pages of other sites are refused")
		}
		return nil
	}
	from, err := url.Parse(origin)
	if err != nil || from.Host == "" || !strings.EqualFold(from.Host, r.Host) {
		return host.Errorf(host.Denied, "requests from the origin %q are refused", manifest.CleanLine(origin))
	}
	return nil
}

func (c HTTPConfig) isKnownHost(name string) bool {
	return strings.EqualFold(name, "localhost") || net.ParseIP(name) != nil ||
		slices.ContainsFunc(c.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// hostName returns a Host header without its port.
func hostName(header string) string {
	if name, _, err := net.SplitHostPort(header); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
}

// verifyToken checks a token, and returns who the client is.
func (g *guard) verifyToken(ctx context.Context, text string, _ *http.Request) (*auth.TokenInfo, error) {
	of, err := g.Verify(ctx, text)
	info := &auth.TokenInfo{Extra: map[string]any{boundName: of.Name, boundSession: of.Session}}
	switch {
	case errors.Is(err, host.Denied):
		info.Extra[refusal] = host.AsError(err)
	case err != nil:
		return nil, auth.ErrInvalidToken
	}
	sum := sha256.Sum256([]byte(cmp.Or(of.User, text)))
	info.UserID = hex.EncodeToString(sum[:16])
	return info, nil
}

// Keys of [auth.TokenInfo].Extra: the client and the session that a token is bound to, "" for none, and the error of a
// valid token that has no access.
const (
	boundName    = "name"
	boundSession = "session"
	refusal      = "refusal"
)

// isAdmitted reports whether the client of a request may go on, and otherwise responds.
func isAdmitted(w http.ResponseWriter, r *http.Request) bool {
	info := auth.TokenInfoFromContext(r.Context())
	if info == nil {
		return true
	}
	if to, is := w.(*frame.Writer); is {
		to.Name, _ = info.Extra[boundName].(string)
	}
	denied, is := info.Extra[refusal].(*host.Error)
	if is {
		writeHTTPError(w, http.StatusForbidden, denied)
	}
	return !is
}

// readBody reads the whole body within the time and the size that are allowed, so that no later code waits for a slow
// client. Unless it reports false, done must be called when the request has been served.
func (g *guard) readBody(w http.ResponseWriter, r *http.Request) (done func(), ok bool) {
	if r.ContentLength > maxMessage {
		frame.RefuseLong(w, r.Body, maxMessage)
		return nil, false
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxSmall))
	done = func() {}
	if err == nil && len(body) == maxSmall {
		select {
		case g.server.largeBodies <- struct{}{}:
			done = sync.OnceFunc(func() { <-g.server.largeBodies })
		default:
			writeHTTPError(w, http.StatusServiceUnavailable,
				host.Errorf(host.Busy, "%d large requests are running already; send it again later", maxLarge))
			return nil, false
		}
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(r.Body, maxMessage+1-maxSmall))
		body = append(body, rest...)
	}
	switch {
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		done()
		frame.RefuseIncomplete(w, err)
		return nil, false
	case err != nil:
		done()
		writeHTTPError(w, http.StatusRequestTimeout,
			host.Errorf(host.Timeout, "the body did not arrive within %s", g.ClientTimeout))
		return nil, false
	case len(body) > maxMessage:
		frame.RefuseLong(w, io.MultiReader(bytes.NewReader(body), r.Body), maxMessage)
		done()
		return nil, false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return done, true
}

// writeHTTPError responds with the error object.
func writeHTTPError(w http.ResponseWriter, status int, e *host.Error) {
	raw := marshalEscaped(struct {
		OK    bool              `json:"ok"`
		Error *host.ErrorObject `json:"error"`
		Next  []nextCall        `json:"next"`
	}{false, e.Object(), []nextCall{}})
	frame.WriteBody(w, status, append(raw, '\n'))
}
