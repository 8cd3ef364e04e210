package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Path is where MCP is served; Path + "/" + mode is another documentation mode.
const Path = "/mcp"

const (
	clientTimeout  = 30 * time.Second // default of HTTPConfig.ClientTimeout
	idleTimeout    = 2 * time.Minute  // between two requests on a connection
	sessionTimeout = 30 * time.Minute // between two requests of a session
	maxHeader      = 64 << 10
	// maxSmall is the size from which a body, or what a call may answer, is large; at most maxLarge of each are held at one time.
	maxSmall = 1 << 20
	maxLarge = 4
	// maxRequests bounds the requests that are not yet answered to the end, those included whose client does not read; beside all calls
	// that may be under way there is room for what ends one.
	maxRequests = 2 * maxCalls
	// maxUnsentBytes is how many bytes of answers may wait for clients to take them before no further large one is made.
	maxUnsentBytes = 32 << 20
	maxConnections = 1024
	maxSessions    = 512
)

// HTTPConfig says who may speak to a server over HTTP.
type HTTPConfig struct {
	// Tokens are the bearer tokens that are let in, one a client. None: no token is asked for.
	Tokens []string
	// Hosts are names beside localhost and IP addresses by which clients may call this server. A page of another name that resolves to
	// this machine is not let in.
	Hosts []string
	// ClientTimeout is how long a client may take to send its headers, to send its body and to take a piece of an answer. 0: 30 s.
	ClientTimeout time.Duration
}

// HTTP serves clients that connect to a listener until ctx ends; then it takes no more, ends the calls under way and returns the cause.
func (s *Server) HTTP(ctx context.Context, listener net.Listener, cfg HTTPConfig) error {
	cfg.ClientTimeout = cmp.Or(cfg.ClientTimeout, clientTimeout)
	g := s.guard(cfg)
	server := &http.Server{
		Handler:           g.handler(),
		ReadHeaderTimeout: cfg.ClientTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // what a stranger sends is no news
	}
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(&boundedListener{Listener: listener, slots: make(chan struct{}, maxConnections)})
	}()
	select {
	case err := <-ended:
		return host.Errorf(host.Unavailable, "cannot serve: %v", err)
	case <-ctx.Done():
	}
	_ = listener.Close()
	s.shutdown(context.Cause(ctx))
	drainCtx, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	g.drain(drainCtx)
	s.closeSessions()
	if server.Shutdown(drainCtx) != nil {
		_ = server.Close()
	}
	return context.Cause(ctx)
}

// closeSessions ends what keeps connections open.
func (s *Server) closeSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.modes {
		for session := range m.server.Sessions() {
			go session.Close()
		}
	}
}

// guard lets requests in, and bounds them.
type guard struct {
	server        *Server
	tokens        [][32]byte
	hosts         []string
	clientTimeout time.Duration
	large         chan struct{}
	requests      chan struct{}

	mu       sync.Mutex
	handlers map[string]*protocolHandlers
}

func (s *Server) guard(cfg HTTPConfig) *guard {
	g := &guard{server: s, hosts: cfg.Hosts, clientTimeout: cmp.Or(cfg.ClientTimeout, clientTimeout), large: make(chan struct{}, maxLarge),
		requests: make(chan struct{}, maxRequests), handlers: map[string]*protocolHandlers{}}
	for _, t := range cfg.Tokens {
		g.tokens = append(g.tokens, sha256.Sum256([]byte(t)))
	}
	return g
}

// handler serves Path and the modes below it.
func (g *guard) handler() http.Handler {
	inner := http.Handler(http.HandlerFunc(g.serve))
	if len(g.tokens) > 0 {
		inner = auth.RequireBearerToken(g.verifyToken, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(inner)
	}
	return http.HandlerFunc(func(raw http.ResponseWriter, r *http.Request) {
		w := &deadlineWriter{raw, g.clientTimeout, &g.server.unsentBytes}
		defer w.extend() // what is sent last is sent after this
		if r.ContentLength != 0 {
			_ = http.NewResponseController(raw).SetReadDeadline(time.Now().Add(g.clientTimeout))
		}
		if err := g.checkOrigin(r); err != nil {
			writeHTTPError(w, http.StatusForbidden, err)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// drain waits until what was asked is answered, or ctx ends; the server takes no more then.
func (g *guard) drain(ctx context.Context) {
	for range maxRequests { // each that has ended gives its slot
		select {
		case g.requests <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// protocolHandlers are the two handlers of one mode: revisions from 2026-07-28 on know no sessions.
type protocolHandlers struct {
	modeServer          *modeServer
	stateless, stateful http.Handler
}

// checkOrigin refuses what a browser sends in a foreign page's name: by a name that was made to lead here, or from another origin.
func (g *guard) checkOrigin(r *http.Request) *host.Error {
	name := hostName(r.Host)
	if !g.isKnownHost(name) {
		return host.Errorf(host.Denied, "unexpected Host header %q; use the address of the server, or a name that it was started to allow", manifest.CleanLine(r.Host))
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
			return host.Errorf(host.Denied, "requests of other sites are not taken")
		}
		return nil
	}
	from, err := url.Parse(origin)
	if err != nil || from.Host == "" || !strings.EqualFold(from.Host, r.Host) {
		return host.Errorf(host.Denied, "requests of the origin %q are not taken", manifest.CleanLine(origin))
	}
	return nil
}

func (g *guard) isKnownHost(name string) bool {
	return strings.EqualFold(name, "localhost") || net.ParseIP(name) != nil ||
		slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// hostName is a Host header without its port.
func hostName(header string) string {
	if name, _, err := net.SplitHostPort(header); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
}

// verifyToken knows a token in constant time.
func (g *guard) verifyToken(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	sum, known := sha256.Sum256([]byte(token)), 0
	for _, t := range g.tokens {
		known |= subtle.ConstantTimeCompare(sum[:], t[:])
	}
	if known == 0 {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: hex.EncodeToString(sum[:16])}, nil
}

func (g *guard) serve(w http.ResponseWriter, r *http.Request) {
	wire, err := g.wire(r.URL.Path)
	if err != nil {
		writeHTTPError(w, http.StatusNotFound, err)
		return
	}
	if g.server.closing.Err() != nil {
		writeHTTPError(w, http.StatusServiceUnavailable, host.Errorf(host.Unavailable, "the server ends"))
		return
	}
	if r.Method == http.MethodPost {
		select {
		case g.requests <- struct{}{}:
			defer func() { <-g.requests }()
		default:
			writeHTTPError(w, http.StatusServiceUnavailable, host.Errorf(host.Busy, "%d requests are running already; send it again later", maxRequests))
			return
		}
	}
	done, ok := g.readBody(w, r)
	if !ok {
		return
	}
	defer done()
	if r.Header.Get("Mcp-Protocol-Version") >= firstStateless {
		wire.stateless.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && wire.modeServer.sessionsFull() {
		writeHTTPError(w, http.StatusServiceUnavailable, host.Errorf(host.Busy, "%d sessions are open already; end one with DELETE", maxSessions))
		return
	}
	wire.stateful.ServeHTTP(w, r)
}

func (m *modeServer) sessionsFull() bool {
	n := 0
	for range m.server.Sessions() {
		n++
	}
	return n >= maxSessions
}

// wire finds the handlers of a path.
func (g *guard) wire(path string) (*protocolHandlers, *host.Error) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(path, "/"), Path)
	if !ok || rest != "" && rest[0] != '/' {
		return nil, host.Errorf(host.NotFound, "nothing is served at %s; the endpoint is %s", manifest.CleanLine(path), Path)
	}
	mode := g.server.cfg.Mode
	if rest != "" {
		mode = rest[1:]
	}
	m, err := g.server.modeServer(mode)
	if err != nil {
		return nil, host.AsError(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.handlers[mode] == nil {
		// Host and Origin were checked before.
		get := func(*http.Request) *sdk.Server { return m.server }
		g.handlers[mode] = &protocolHandlers{
			modeServer: m,
			stateless: sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
				Stateless: true, PropagateRequestCancellation: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxMessage,
			}),
			stateful: sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
				SessionTimeout: sessionTimeout, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxMessage,
			}),
		}
	}
	return g.handlers[mode], nil
}

// readBody reads the whole of a request within its time and its bounds, so that nothing behind it waits for a client that is slow. What it
// returns must be called when the request is answered.
func (g *guard) readBody(w http.ResponseWriter, r *http.Request) (done func(), ok bool) {
	if r.Method != http.MethodPost {
		return func() {}, true
	}
	if r.ContentLength > maxMessage {
		tooLarge(w)
		return nil, false
	}
	source := http.MaxBytesReader(w, r.Body, maxMessage)
	body, err := io.ReadAll(io.LimitReader(source, maxSmall))
	done = func() {}
	if err == nil && len(body) == maxSmall {
		select {
		case g.large <- struct{}{}:
			done = sync.OnceFunc(func() { <-g.large })
		default:
			writeHTTPError(w, http.StatusServiceUnavailable, host.Errorf(host.Busy, "%d large requests are running already; send it again later", maxLarge))
			return nil, false
		}
		var rest []byte
		rest, err = io.ReadAll(source)
		body = append(body, rest...)
	}
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		done()
		tooLarge(w)
		return nil, false
	case err != nil:
		done()
		writeHTTPError(w, http.StatusRequestTimeout, host.Errorf(host.Timeout, "the body did not arrive within %s", g.clientTimeout))
		return nil, false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return done, true
}

func tooLarge(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	writeHTTPError(w, http.StatusRequestEntityTooLarge, host.Errorf(host.LimitExceeded, "a request has at most %d bytes", maxMessage))
}

// writeHTTPError answers with the error object.
func writeHTTPError(w http.ResponseWriter, status int, e *host.Error) {
	raw, err := manifest.Marshal(struct {
		OK    bool              `json:"ok"`
		Error *host.ErrorObject `json:"error"`
		Next  []nextCall        `json:"next"`
	}{false, e.Object(), []nextCall{}})
	if err != nil {
		raw = json.RawMessage("{}")
	}
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "%s\n", manifest.EscapeJSON(raw))
}

// deadlineWriter gives a client a while to take each piece, and not for ever.
type deadlineWriter struct {
	http.ResponseWriter
	clientTimeout time.Duration
	unsentBytes   *atomic.Int64
}

func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *deadlineWriter) Write(p []byte) (int, error) {
	w.extend()
	w.unsentBytes.Add(int64(len(p)))
	defer w.unsentBytes.Add(-int64(len(p)))
	return w.ResponseWriter.Write(p)
}

// FlushError and Flush are what http.ResponseController and older code call.
func (w *deadlineWriter) FlushError() error {
	w.extend()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *deadlineWriter) Flush() { _ = w.FlushError() }

func (w *deadlineWriter) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.clientTimeout))
}

// boundedListener holds back connections beyond a number until others have ended.
type boundedListener struct {
	net.Listener
	slots chan struct{}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotConn{Conn: conn, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

type slotConn struct {
	net.Conn
	release func()
}

func (c *slotConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
