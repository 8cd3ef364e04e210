// Package mcp serves a host over the Model Context Protocol, on stdio and Streamable HTTP, in four documentation
// modes. It only translates: the host finds, describes, allows and runs tools.
//
// [Server.Stdio] and [Server.HTTP] are whole servers. [Server.Handler] is a handler for a mux of your own.
package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/mcp/envelope"
	"github.com/parley-tools/parley/host/mcp/frame"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Documentation modes: what tools/list shows. Every mode accepts the same calls.
const (
	Minimal     = "minimal"     // search_tools, describe_tool, call_tool
	Progressive = "progressive" // also the signatures of pinned tools
	Full        = "full"        // every tool with its whole schema
	Code        = "code"        // search_tools in TypeScript, and run_code
)

// Modes returns all documentation modes.
func Modes() []string { return []string{Minimal, Progressive, Full, Code} }

const (
	// DefaultMaxBytes is how much of a result a call shows without the option max_bytes. maxBinary applies to results
	// with binary content.
	DefaultMaxBytes = 32 << 10
	maxBinary       = 8 << 20
	// maxCalls bounds the calls under way in one server. Further calls fail with busy.
	maxCalls = 256
	// pageSize bounds the items in one page of a list.
	pageSize = 1000
	// listTTL is how long a client may use a list before it asks again. A client that listens for changes is notified
	// earlier.
	listTTL = 10 * time.Second
	// maxInstructions bounds the instructions, in bytes. It corresponds to 100 tokens.
	maxInstructions = 400
)

// Config configures a [Server]. Host and Mode are required.
type Config struct {
	Host    *hostcall.Host
	Version string // version of the server, as clients see it
	Mode    string // mode on stdio, and at Path over HTTP
	// Pinned are the qualified names of the tools that progressive mode lists. If it is empty, the mode lists the tools
	// that the caller uses most, and the common ones.
	Pinned []string
	// Used returns the qualified names of the tools that a caller uses most, the most used first. It is called once for
	// each connection. Nil means that there are none.
	Used func(caller string) []string
	// DocsOnFirstUse adds tier 2 to the first success of a tool that the session has not read about. Full mode, whose list
	// has the documentation, never does.
	DocsOnFirstUse bool
	Sessions       *session.Store // nil: results that were cut cannot be read whole
	// Session is the name of the user's session that the client on stdio works in. "" means that each connection has a
	// session of its own.
	Session string
	// Private has prefixes of paths that clients over HTTP must not see, such as the folders of the host.
	Private []string
	// Options completes the options of a call, for example from a configuration file. Nil means that they stay as they
	// are.
	Options func(job.Options) job.Options
}

// Server serves MCP clients. It is safe for concurrent use.
type Server struct {
	cfg         Config
	private     func(text string) string // shortens paths for clients over HTTP
	parking     parking
	asked       sync.Map // the ids of the approvals that clients are asked about
	connections connections
	sent        sentDocs
	replay      frame.Replay

	// Each holds a value for each call, request or body that is under way.
	calls       chan struct{}
	largeCalls  chan struct{} // calls that may return more than maxSmall
	requests    chan struct{} // requests without a complete response
	largeBodies chan struct{}

	unsentBytes atomic.Int64 // bytes of responses that HTTP clients have yet to read

	draining  atomic.Bool     // no new call begins
	closing   context.Context // done when the server shuts down, with the reason as its cause
	closeWith context.CancelCauseFunc

	refreshInterval time.Duration
	shutdownGrace   time.Duration

	mu    sync.Mutex
	modes map[string]*modeServer
}

// modeServer is the server in one documentation mode.
type modeServer struct {
	of                  *Server // the server whose mode this is
	mode                string
	host                *hostcall.Host
	metas               []metaTool
	names               envelope.Reader
	out                 renderer
	server              *sdk.Server
	stateless, stateful http.Handler // handlers of the two kinds of revisions over HTTP

	native map[string]bool // tools beside the meta-tools that the SDK runs; tests add some

	updating sync.Mutex                   // held while lists follow a catalog
	catalog  atomic.Pointer[host.Catalog] // catalog that lists was made from
	lists    atomic.Pointer[listing]
}

// New makes a server. The error is invalid_args for an unknown mode, or config_error for a pinned tool that does not
// exist.
func New(cfg Config) (*Server, error) {
	if cfg.Options == nil {
		cfg.Options = func(o job.Options) job.Options { return o }
	}
	closing, closeWith := context.WithCancelCause(context.Background())
	s := &Server{
		cfg: cfg, private: protect.PathShortener(cfg.Private), closing: closing, closeWith: closeWith,
		parking: parking{closing: closing, parked: map[string]*parkedCall{}},
		sent:    sentDocs{calls: map[string]int{}, sent: map[string]int{}},
		connections: connections{host: cfg.Host, id: nameHash(rand.Text()), named: cfg.Session, lostAfter: lostAfter,
			silentAfter: silentAfter, connections: map[string]*connection{}},
		calls: make(chan struct{}, maxCalls), largeCalls: make(chan struct{}, maxLarge),
		requests: make(chan struct{}, maxRequests), largeBodies: make(chan struct{}, maxLarge),
		refreshInterval: refreshInterval, shutdownGrace: shutdownGrace, modes: map[string]*modeServer{},
	}
	if err := s.checkPinned(); err != nil {
		return nil, err
	}
	_, err := s.modeServer(cfg.Mode)
	return s, err
}

// CheckMode returns invalid_args, which names the modes, unless mode is one of them.
func CheckMode(mode string) error {
	if slices.Contains(Modes(), mode) {
		return nil
	}
	e := host.Errorf(host.InvalidArgs, "unknown documentation mode %q; expected one of %s",
		manifest.CleanLine(mode), strings.Join(Modes(), ", "))
	e.DidYouMean = spelling.Nearest(mode, Modes(), 3)
	return e
}

// modeServer returns the server of a mode. It is set up when it is first needed.
func (s *Server) modeServer(mode string) (*modeServer, error) {
	if err := CheckMode(mode); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.modes[mode]; m != nil {
		return m, nil
	}
	m := &modeServer{of: s, mode: mode, host: s.cfg.Host, out: renderer{s.cfg.Host, mode}}
	m.lists.Store(&listing{})
	if err := m.setMetaTools(); err != nil {
		return nil, err
	}
	m.server = sdk.NewServer(&sdk.Implementation{Name: "parley", Version: s.cfg.Version}, &sdk.ServerOptions{
		Instructions: s.instructions(mode), PageSize: pageSize, CompletionHandler: m.complete,
		SetCacheable: cacheable,
		Logger:       slog.New(slog.DiscardHandler),
		Capabilities: &sdk.ServerCapabilities{
			Tools:     &sdk.ToolCapabilities{ListChanged: true},
			Resources: &sdk.ResourceCapabilities{ListChanged: true},
			Prompts:   &sdk.PromptCapabilities{ListChanged: true},
			//lint:ignore SA1019 clients of revisions before 2026-07-28 use it
			Logging: &sdk.LoggingCapabilities{},
		},
		SubscribeHandler:   m.subscribe,
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	m.addMetaTools()
	m.addResourceTemplates()
	m.addPrompts()
	if err := m.update(); err != nil {
		return nil, err
	}
	m.server.AddReceivingMiddleware(m.receive)
	m.connectHTTP()
	s.modes[mode] = m
	return m, nil
}

// cacheable allows a client to cache lists for its own user. A resource may change with each read.
func cacheable(_ context.Context, req sdk.Request, c *sdk.Cacheable) {
	c.CacheScope = "private"
	if _, reads := req.(*sdk.ReadResourceRequest); !reads {
		c.TTLMs = int(listTTL.Milliseconds())
	}
}

// receive handles each request before the SDK does. The lists follow the catalog first. A call of a tool that is not
// listed becomes a call of call_tool: every tool can be called in every mode.
func (m *modeServer) receive(next sdk.MethodHandler) sdk.MethodHandler {
	handle := m.handle(next)
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := handle(ctx, method, req)
		if originOf(req.GetExtra()).Transport == transportHTTP {
			return frame.ShortenPaths(m.of.private, result, err)
		}
		return result, err
	}
}

func (m *modeServer) handle(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		if method != "ping" {
			m.of.refresh()
		}
		m.of.connections.follow(req)
		ctx = host.WithDocsSize(hostcall.WithMode(ctx, m.mode), docsSizeInCall)
		switch method {
		case "tools/call", "resources/read", "prompts/get": // the requests with operations of the host
			parent, state, carrier := frame.TraceContext(req)
			ctx = caller.WithTrace(ctx, caller.Trace{Parent: parent, State: state, Carrier: carrier, Method: method,
				Revision: frame.Revision(req), Session: req.GetSession().ID(), ErrorCode: frame.ErrorCode(req)})
		}
		switch r := req.(type) {
		case *sdk.CallToolRequest:
			growStack(false)
			m.of.sent.count(callerOf(m.of, r).Session)
			if ctx, err = m.route(ctx, r); err != nil {
				return nil, err
			}
		case *sdk.ListToolsRequest:
			return m.listTools(ctx, r, next)
		case *sdk.SubscriptionsListenRequest:
			defer m.of.watch()()
			var stop context.CancelFunc
			ctx, stop = m.of.untilEnd(ctx)
			defer stop()
		}
		result, err = next(ctx, method, req)
		if err != nil {
			return nil, frame.ErrorOfRevision(err, req)
		}
		switch r := result.(type) {
		case *sdk.InitializeResult:
			r.Instructions = m.of.instructions(m.mode) // the SDK's are from the time when the mode was set up
		case *sdk.DiscoverResult:
			r.Instructions = m.of.instructions(m.mode)
		}
		return result, nil
	}
}

// growStack makes the stack of a call's goroutine as large as most calls need it at once. While the stack is still
// shallow this takes less than copying it each time that it doubles. The frame has to have the size; nothing is used.
//
//go:noinline
func growStack(used bool) {
	if used {
		var frame [24 << 10]byte
		runtime.KeepAlive(&frame)
	}
}

// untilEnd returns a context that also ends when the server shuts down or the client hangs up, for requests that do not
// end otherwise.
func (s *Server) untilEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	closed := context.AfterFunc(s.closing, cancel)
	left := context.AfterFunc(hungUp(ctx), cancel)
	return ctx, func() {
		closed()
		left()
		cancel()
	}
}

// Instructions returns the instructions for models: the steps and the plugins, in at most 100 tokens.
func (s *Server) Instructions() string { return s.instructions(Progressive) }

// instructions returns the instructions of a mode.
func (s *Server) instructions(mode string) string {
	steps := "Sandboxed tools, described when needed. search_tools finds tools by what you want to do; " +
		"describe_tool shows parameters and examples (skip it when a search result has a signature); " +
		"call_tool runs one. Errors say what to correct: apply it and call again. Plugins: "
	if mode == Code {
		steps = codeInstructions
	}
	return steps + joinWithin(s.plugins(), maxInstructions-len(steps)) + "."
}

// joinWithin joins words by commas within limit bytes. It replaces those that do not fit by their number.
func joinWithin(words []string, limit int) string {
	text := strings.Join(words, ", ")
	for n := len(words) - 1; n >= 0 && len(text)+1 > limit; n-- {
		text = fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
	}
	return text
}

func (s *Server) plugins() []string {
	return lists.Map(s.cfg.Host.Catalog().Providers(), func(p host.Provider) string { return p.Info().Name })
}

// SessionCount returns how many sessions are open.
func (s *Server) SessionCount() int { return len(s.openSessions()) }

func (s *Server) openSessions() (all []*sdk.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.modes {
		all = slices.AppendSeq(all, m.server.Sessions())
	}
	return all
}

// SessionKey is the key in _meta of a request under which a client of a stateless revision names its session.
const SessionKey = "parley/session"

// callerOf identifies the client of a request and its session.
func callerOf[P sdk.Params](s *Server, r *sdk.ServerRequest[P]) caller.Principal {
	named, _ := r.Params.GetMeta()[SessionKey].(string)
	p := caller.Principal{Name: "mcp:" + clientName(r.ClientInfo()), Origin: originOf(r.Extra),
		Session: s.connections.sessionOf(r.Session, r.Extra, named)}
	switch {
	case p.Origin.Token != "":
		p.Name, p.Bound = "mcp-http:"+p.Origin.Token, true
	case p.Origin.Transport == transportHTTP:
		p.Name = "mcp-http:" + clientName(r.ClientInfo())
	default:
		stateless := frame.IsStateless(r)
		p.Roots = sync.OnceValues(func() ([]string, bool) { return rootsOf(r.Session, stateless) })
	}
	return p
}

// rootsTime is how long a client may take to list its roots.
const rootsTime = 5 * time.Second

// rootsOf returns the folders that a client on this machine works in: the roots that it lists, which may be none. For
// a client without roots, or whose revision does not let the server ask for them, it returns the working folder. It
// leaves that out if it holds the home folder, because then it does not say where the client works.
//
// Roots are asked for in each request, because they change.
func rootsOf(client *sdk.ServerSession, stateless bool) (folders []string, listed bool) {
	init := client.InitializeParams()
	//lint:ignore SA1019 clients of revisions before 2026-07-28 have roots
	if stateless || init == nil || init.Capabilities == nil || init.Capabilities.RootsV2 == nil {
		if folder, err := os.Getwd(); err == nil && !protect.HoldsHome(folder, os.Getenv) {
			folders = append(folders, folder)
		}
		return folders, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), rootsTime)
	defer cancel()
	//lint:ignore SA1019 as above
	answer, err := client.ListRoots(ctx, nil)
	if err != nil {
		return nil, true
	}
	for _, root := range answer.Roots {
		u, err := url.Parse(root.URI)
		if err == nil && u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && path.IsAbs(u.Path) {
			folders = append(folders, path.Clean(u.Path))
		}
	}
	return folders, true
}

// The transports of [caller.Origin].
const transportStdio, transportHTTP = "stdio", "http"

// originOf returns how a request came.
func originOf(extra *sdk.RequestExtra) caller.Origin {
	if extra == nil || extra.Header == nil {
		return caller.Origin{Transport: transportStdio}
	}
	o := caller.Origin{Transport: transportHTTP, Peer: extra.Header.Get(peerHeader)}
	if extra.TokenInfo != nil {
		o.Token, _ = extra.TokenInfo.Extra[boundName].(string)
	}
	return o
}

func nameHash(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return "mcp-" + hex.EncodeToString(sum[:12])
}

// clientName makes a plain identifier of a client's own name: at most 40 letters, digits, ".", "_" and "-".
func clientName(info *sdk.Implementation) string {
	name := ""
	if info != nil {
		name = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
				return r
			}
			return '-'
		}, info.Name)
	}
	return cmp.Or(strings.Trim(name[:min(len(name), 40)], "-._"), "unknown")
}

// Drain lets no new call begin, and waits until none is under way, or ctx ends. Clients in a session get busy for a new
// call, and those that want logs are told; other requests get status 503. [Server.Shutdown] should follow.
func (s *Server) Drain(ctx context.Context) {
	s.draining.Store(true)
	for _, session := range s.openSessions() {
		//lint:ignore SA1019 clients of revisions before 2026-07-28 use it
		go session.Log(ctx, &sdk.LoggingMessageParams{Level: "notice", Logger: "parley", Data: errDraining.Error()})
	}
	awaitAll(ctx, s.calls)
}

// errDraining ends a call that is made while the server drains.
var errDraining = host.Errorf(host.Busy, "the server is shutting down; nothing was run, connect and call again")

// Shutdown ends the calls under way with a cause and accepts no further ones. It waits until their results are sent, or
// ctx ends; then it closes the sessions and tells the host that their connections have ended.
func (s *Server) Shutdown(ctx context.Context, cause error) {
	s.closeWith(cause)
	awaitAll(ctx, s.calls)
	awaitAll(ctx, s.requests)
	for _, session := range s.openSessions() {
		go session.Close() // this ends the streams that keep connections open
	}
	s.connections.endAll()
}

// awaitAll waits until all slots are free at one time, or ctx ends.
func awaitAll(ctx context.Context, slots chan struct{}) {
	for range cap(slots) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return
		}
	}
}
