// Package mcp serves a host over the Model Context Protocol: stdio and Streamable HTTP, in three documentation modes. It has no
// logic of its own: what is found, described, allowed and run is the host's.
package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Documentation modes: what tools/list shows. The same calls are accepted in each.
const (
	Minimal     = "minimal"     // search_tools, describe_tool, call_tool
	Progressive = "progressive" // and the signatures of pinned tools
	Full        = "full"        // every tool with its whole schema
)

// Modes are all documentation modes.
func Modes() []string { return []string{Minimal, Progressive, Full} }

const (
	// DefaultMaxBytes is what a call shows of its result where it does not say otherwise, maxBinary what it shows of a binary one.
	DefaultMaxBytes = 32 << 10
	maxBinary       = 8 << 20
	// maxCalls bounds the calls under way in one server; more are answered busy.
	maxCalls = 256
	// pageSize bounds the items of one list.
	pageSize = 1000
	// listTTL is for how long a client may keep a list: it depends on what the server was started with alone.
	listTTL = time.Hour
	// maxInstructions bounds the instructions, in bytes: 120 tokens.
	maxInstructions = 540
)

// Config is what a server is made of.
type Config struct {
	Host     *host.Host
	Version  string
	Mode     string
	Pinned   []string // qualified names that progressive mode shows
	Sessions *host.Sessions
	// Options completes the options of a call by what is configured. May be nil.
	Options func(host.Options) host.Options
}

// Server answers MCP clients. It is safe for concurrent use.
type Server struct {
	cfg   Config
	id    string // of this process: the session of a client on stdio
	key   []byte // signs what a client carries between two rounds of a call
	calls chan struct{}
	large chan struct{} // calls among them that may answer with more than maxSmall

	unsentBytes atomic.Int64 // bytes of answers that are on their way to clients over HTTP

	closing   context.Context // done when the server ends, with the outcome as its cause
	closeWith context.CancelCauseFunc

	disconnected context.Context // done when the client on stdio can answer no more
	disconnect   context.CancelFunc

	mu       sync.Mutex
	modes    map[string]*modeServer
	redeemed map[string]time.Time // answers to confirmations that were used, until they would expire
}

// modeServer is the server in one mode.
type modeServer struct {
	*Server
	mode   string
	server *sdk.Server
	listed map[string]string // names in tools/list -> qualified names; "" for the three of MCP's own

	resources map[string]bool // URIs in resources/list
}

// New makes a server. The error is invalid_args for an unknown mode, or config_error for a pinned tool that does not exist.
func New(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, id: newID(), key: make([]byte, 32), calls: make(chan struct{}, maxCalls), large: make(chan struct{}, maxLarge), modes: map[string]*modeServer{}, redeemed: map[string]time.Time{}}
	_, _ = rand.Read(s.key)
	s.closing, s.closeWith = context.WithCancelCause(context.Background())
	s.disconnected, s.disconnect = context.WithCancel(context.Background())
	if cfg.Options == nil {
		s.cfg.Options = func(o host.Options) host.Options { return o }
	}
	if _, err := s.pinnedTools(); err != nil {
		return nil, err
	}
	_, err := s.modeServer(cfg.Mode)
	return s, err
}

func newID() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return "mcp-" + hex.EncodeToString(b[:])
}

// CheckMode refuses what is no mode, and names the three.
func CheckMode(mode string) error {
	if slices.Contains(Modes(), mode) {
		return nil
	}
	return host.Errorf(host.InvalidArgs, "unknown documentation mode %q; expected one of %s",
		manifest.CleanLine(mode), strings.Join(Modes(), ", "))
}

// modeServer returns the server of a mode, made when it is first asked for.
func (s *Server) modeServer(mode string) (*modeServer, error) {
	if err := CheckMode(mode); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.modes[mode]; m != nil {
		return m, nil
	}
	m := &modeServer{Server: s, mode: mode, listed: map[string]string{}, resources: map[string]bool{}}
	m.server = sdk.NewServer(&sdk.Implementation{Name: "parley", Version: s.cfg.Version}, &sdk.ServerOptions{
		Instructions:      s.Instructions(),
		PageSize:          pageSize,
		CompletionHandler: m.complete,
		SetCacheable:      cacheable,
		Logger:            slog.New(slog.DiscardHandler),
		Capabilities: &sdk.ServerCapabilities{ // nothing that is listed changes while the server runs
			Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}, Prompts: &sdk.PromptCapabilities{},
			//lint:ignore SA1019 revisions before 2026-07-28 have it, and their clients ask for it
			Logging: &sdk.LoggingCapabilities{},
		},
		SubscribeHandler:   m.subscribe,
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	if err := m.addTools(); err != nil {
		return nil, err
	}
	m.addResources()
	if err := m.addPrompts(); err != nil {
		return nil, err
	}
	m.server.AddReceivingMiddleware(m.receive)
	s.modes[mode] = m
	return m, nil
}

// cacheable says that a list stays what it is, for this user alone. What is read may change.
func cacheable(_ context.Context, req sdk.Request, c *sdk.Cacheable) {
	c.CacheScope = "private"
	if _, reads := req.(*sdk.ReadResourceRequest); !reads {
		c.TTLMs = int(listTTL.Milliseconds())
	}
}

// receive takes tools/call before the SDK looks for what is listed: every tool can be called in every mode.
func (m *modeServer) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		ctx = host.WithMode(ctx, m.mode)
		if r, ok := req.(*sdk.CallToolRequest); ok && !m.isListed(r.Params.Name) {
			var err error
			if ctx, err = m.routeToCallTool(ctx, r); err != nil {
				return nil, err
			}
		}
		result, err := next(ctx, method, req)
		if list, ok := result.(*sdk.ListToolsResult); ok && err == nil {
			return &toolList{list}, nil
		}
		return result, err
	}
}

func (m *modeServer) isListed(name string) bool {
	_, ok := m.listed[name]
	return ok
}

// toolList is tools/list without the hints that say what is so by default.
type toolList struct{ *sdk.ListToolsResult }

// MarshalJSON leaves out what the SDK writes into the annotations of each tool.
func (l *toolList) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(l.ListToolsResult)
	raw = bytes.ReplaceAll(raw, []byte(`"idempotentHint":false,`), nil)
	return bytes.ReplaceAll(raw, []byte(`,"readOnlyHint":false}`), []byte("}")), err
}

// Instructions name the steps and the plugins, in at most 120 tokens.
func (s *Server) Instructions() string {
	const steps = "Sandboxed tools, described when needed. search_tools finds tools by what you want to do; describe_tool shows parameters and examples " +
		"(skip it when a search result has a signature); call_tool runs one. Errors say what to correct: apply it and call again. Plugins: "
	return steps + joinWithin(s.plugins(), maxInstructions-len(steps)) + "."
}

// joinWithin joins words by commas within a number of bytes, and counts those that had no limit.
func joinWithin(words []string, limit int) string {
	text := strings.Join(words, ", ")
	for n := len(words) - 1; n >= 0 && len(text)+1 > limit; n-- {
		text = fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
	}
	return text
}

func (s *Server) plugins() []string {
	var names []string
	for _, p := range s.cfg.Host.Catalog().Providers() {
		names = append(names, p.Info().Name)
	}
	return names
}

// caller is who makes a request, and in which session.
type caller struct {
	name    string // "mcp:CLIENT"
	remote  bool
	session string // "": nobody can tell one request of this client from another
}

// SessionKey is the key of a request's _meta by which a client on the stateless wire names its session.
const SessionKey = "parley/session"

// callerOf finds out who asks. On the stateless wire a session is what the client says in _meta, else its token.
func callerOf[P sdk.Params](s *Server, r *sdk.ServerRequest[P]) caller {
	c := caller{name: "mcp:" + clientName(r.ClientInfo()), session: s.id}
	if r.Extra == nil || r.Extra.Header == nil {
		return c
	}
	c.remote, c.session = true, ""
	user := ""
	if r.Extra.TokenInfo != nil {
		user = r.Extra.TokenInfo.UserID
	}
	given, _ := r.Params.GetMeta()[SessionKey].(string)
	switch {
	case r.Session.ID() != "":
		c.session = sessionHash("connection", r.Session.ID())
	case given != "":
		c.session = sessionHash("meta", user, given)
	case user != "":
		c.session = sessionHash("token", user, c.name)
	}
	return c
}

func sessionHash(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return "mcp-" + hex.EncodeToString(sum[:12])
}

// clientName makes a plain identifier of what a client calls itself: letters, digits, ".", "_" and "-", at most 40.
func clientName(info *sdk.Implementation) string {
	if info == nil {
		return "unknown"
	}
	var b strings.Builder
	for _, r := range info.Name {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
		if !plain {
			r = '-'
		}
		if b.Len() == 40 {
			break
		}
		b.WriteRune(r)
	}
	if name := strings.Trim(b.String(), "-._"); name != "" {
		return name
	}
	return "unknown"
}

// Shutdown stops taking calls and ends those under way with cause; it waits for them until ctx ends.
func (s *Server) Shutdown(ctx context.Context, cause error) {
	s.closeWith(cause)
	for range maxCalls { // each that has ended gives its slot, and no other gets it
		select {
		case s.calls <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}
