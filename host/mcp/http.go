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
	patience    = 30 * time.Second // default of HTTPConfig.Patience
	idleWithin  = 2 * time.Minute  // between two requests on a connection
	sessionIdle = 30 * time.Minute // between two requests of a session
	maxHeader   = 64 << 10
	// maxSmall is the size from which a body, or what a call may answer, is large; at most maxLarge of each are held at one time.
	maxSmall = 1 << 20
	maxLarge = 4
	// maxRequests bounds the requests that are not yet answered to the end, those included whose client does not read; beside all calls
	// that may be under way there is room for what ends one.
	maxRequests = 2 * maxCalls
	// maxUntaken is how many bytes of answers may wait for clients to take them before no further large one is made.
	maxUntaken     = 32 << 20
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
	// Patience is how long a client may take to send its headers, to send its body and to take a piece of an answer. 0: 30 s.
	Patience time.Duration
}

// HTTP serves clients that connect to a listener until ctx ends; then it takes no more, ends the calls under way and returns the cause.
func (s *Server) HTTP(ctx context.Context, listener net.Listener, cfg HTTPConfig) error {
	cfg.Patience = cmp.Or(cfg.Patience, patience)
	g := s.gate(cfg)
	server := &http.Server{
		Handler:           g.handler(),
		ReadHeaderTimeout: cfg.Patience,
		IdleTimeout:       idleWithin,
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
	last, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	g.drain(last)
	s.closeSessions()
	if server.Shutdown(last) != nil {
		_ = server.Close()
	}
	return context.Cause(ctx)
}

// closeSessions ends what keeps connections open.
func (s *Server) closeSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faces {
		for session := range f.server.Sessions() {
			go session.Close()
		}
	}
}

// gate lets requests in, and bounds them.
type gate struct {
	server   *Server
	tokens   [][32]byte
	hosts    []string
	patience time.Duration
	large    chan struct{}
	requests chan struct{}

	mu    sync.Mutex
	wires map[string]*wires
}

func (s *Server) gate(cfg HTTPConfig) *gate {
	g := &gate{server: s, hosts: cfg.Hosts, patience: cmp.Or(cfg.Patience, patience), large: make(chan struct{}, maxLarge),
		requests: make(chan struct{}, maxRequests), wires: map[string]*wires{}}
	for _, t := range cfg.Tokens {
		g.tokens = append(g.tokens, sha256.Sum256([]byte(t)))
	}
	return g
}

// handler serves Path and the modes below it.
func (g *gate) handler() http.Handler {
	inner := http.Handler(http.HandlerFunc(g.serve))
	if len(g.tokens) > 0 {
		inner = auth.RequireBearerToken(g.verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(inner)
	}
	return http.HandlerFunc(func(raw http.ResponseWriter, r *http.Request) {
		w := &patientWriter{raw, g.patience, &g.server.untaken}
		defer w.extend() // what is sent last is sent after this
		if r.ContentLength != 0 {
			_ = http.NewResponseController(raw).SetReadDeadline(time.Now().Add(g.patience))
		}
		if err := g.check(r); err != nil {
			refuseHTTP(w, http.StatusForbidden, err)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// drain waits until what was asked is answered, or ctx ends; the server takes no more then.
func (g *gate) drain(ctx context.Context) {
	for range maxRequests { // each that has ended gives its slot
		select {
		case g.requests <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// wires are the two handlers of one mode: revisions from 2026-07-28 on know no sessions.
type wires struct {
	face                *face
	stateless, stateful http.Handler
}

// check refuses what a browser sends in a foreign page's name: by a name that was made to lead here, or from another origin.
func (g *gate) check(r *http.Request) *host.Error {
	name := hostName(r.Host)
	if !g.known(name) {
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

func (g *gate) known(name string) bool {
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

// verify knows a token in constant time.
func (g *gate) verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	sum, known := sha256.Sum256([]byte(token)), 0
	for _, t := range g.tokens {
		known |= subtle.ConstantTimeCompare(sum[:], t[:])
	}
	if known == 0 {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: hex.EncodeToString(sum[:16])}, nil
}

func (g *gate) serve(w http.ResponseWriter, r *http.Request) {
	wire, err := g.wire(r.URL.Path)
	if err != nil {
		refuseHTTP(w, http.StatusNotFound, err)
		return
	}
	if g.server.ending.Err() != nil {
		refuseHTTP(w, http.StatusServiceUnavailable, host.Errorf(host.Unavailable, "the server ends"))
		return
	}
	if r.Method == http.MethodPost {
		select {
		case g.requests <- struct{}{}:
			defer func() { <-g.requests }()
		default:
			refuseHTTP(w, http.StatusServiceUnavailable, host.Errorf(host.Busy, "%d requests are running already; send it again later", maxRequests))
			return
		}
	}
	done, ok := g.body(w, r)
	if !ok {
		return
	}
	defer done()
	if r.Header.Get("Mcp-Protocol-Version") >= firstReturning {
		wire.stateless.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && wire.face.crowded() {
		refuseHTTP(w, http.StatusServiceUnavailable, host.Errorf(host.Busy, "%d sessions are open already; end one with DELETE", maxSessions))
		return
	}
	wire.stateful.ServeHTTP(w, r)
}

func (f *face) crowded() bool {
	n := 0
	for range f.server.Sessions() {
		n++
	}
	return n >= maxSessions
}

// wire finds the handlers of a path.
func (g *gate) wire(path string) (*wires, *host.Error) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(path, "/"), Path)
	if !ok || rest != "" && rest[0] != '/' {
		return nil, host.Errorf(host.NotFound, "nothing is served at %s; the endpoint is %s", manifest.CleanLine(path), Path)
	}
	mode := g.server.cfg.Mode
	if rest != "" {
		mode = rest[1:]
	}
	f, err := g.server.face(mode)
	if err != nil {
		return nil, host.AsError(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wires[mode] == nil {
		// Host and Origin were checked before.
		get := func(*http.Request) *sdk.Server { return f.server }
		g.wires[mode] = &wires{
			face: f,
			stateless: sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
				Stateless: true, PropagateRequestCancellation: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxMessage,
			}),
			stateful: sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
				SessionTimeout: sessionIdle, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxMessage,
			}),
		}
	}
	return g.wires[mode], nil
}

// body reads the whole of a request within its time and its bounds, so that nothing behind it waits for a client that is slow. What it
// returns must be called when the request is answered.
func (g *gate) body(w http.ResponseWriter, r *http.Request) (done func(), ok bool) {
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
			refuseHTTP(w, http.StatusServiceUnavailable, host.Errorf(host.Busy, "%d large requests are running already; send it again later", maxLarge))
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
		refuseHTTP(w, http.StatusRequestTimeout, host.Errorf(host.Timeout, "the body did not arrive within %s", g.patience))
		return nil, false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return done, true
}

func tooLarge(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	refuseHTTP(w, http.StatusRequestEntityTooLarge, host.Errorf(host.LimitExceeded, "a request has at most %d bytes", maxMessage))
}

// refuseHTTP answers with the error object.
func refuseHTTP(w http.ResponseWriter, status int, e *host.Error) {
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

// patientWriter gives a client a while to take each piece, and not for ever.
type patientWriter struct {
	http.ResponseWriter
	patience time.Duration
	untaken  *atomic.Int64
}

func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *patientWriter) Write(p []byte) (int, error) {
	w.extend()
	w.untaken.Add(int64(len(p)))
	defer w.untaken.Add(-int64(len(p)))
	return w.ResponseWriter.Write(p)
}

// FlushError and Flush are what http.ResponseController and older code call.
func (w *patientWriter) FlushError() error {
	w.extend()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *patientWriter) Flush() { _ = w.FlushError() }

func (w *patientWriter) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.patience))
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
	return &boundedNetConn{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

type boundedNetConn struct {
	net.Conn
	free func()
}

func (c *boundedNetConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
