package mcp

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
)

const (
	// lostAfter is how long a client over HTTP whose stream broke off may take to send another request.
	lostAfter = 2 * time.Second
	// silentAfter is the same for a client without a stream. It may only be thinking, so it has as long as a client
	// without a session.
	silentAfter = 10 * time.Minute
)

// connection is a connection over which requests have come. The host is told when it ends. A connection of a stateful
// revision over HTTP ends with its session, any other with the server.
type connection struct {
	session caller.Session
	user    string // user of the token that began it; "" without a token

	begun    int  // HTTP requests so far
	requests int  // requests under way
	streams  int  // requests under way that are streams for messages
	streamed bool // the client sends no request without a stream, so it is lost when that breaks off
	silence  *time.Timer

	used map[string]func() []string // caller -> the tools that it had used most when it first asked for the list
}

// connections are the connections of all clients. It is safe for concurrent use.
type connections struct {
	host  *hostcall.Host
	id    string // id of this process, which is the session of a client on stdio
	named string // the session of the user in which the client on stdio works, "" for one of its own

	lostAfter   time.Duration
	silentAfter time.Duration

	mu          sync.Mutex
	connections map[string]*connection
}

// follow remembers the connection of a request, and waits for its end.
func (s *connections) follow(req sdk.Request) {
	client, ok := req.GetSession().(*sdk.ServerSession)
	if !ok {
		return
	}
	extra := req.GetExtra()
	of := s.sessionOf(client, extra, "")
	if of.Name == "" { // one of many clients that have no connection of their own
		of = caller.Session{Connection: of.Connection}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connections[of.Connection] != nil {
		return
	}
	c := &connection{session: of, used: map[string]func() []string{}}
	if extra != nil && extra.TokenInfo != nil {
		c.user = extra.TokenInfo.UserID
	}
	s.connections[of.Connection] = c
	if of.Connection != s.id {
		go func() {
			_ = client.Wait()
			s.endConnection(of.Connection)
		}()
	}
}

// usedBy returns the tools that a caller has used most. They stay the same while its connection lasts, so that what it
// was sent first can be cached. Other connections do not wait while they are looked up.
func (s *connections) usedBy(caller caller.Principal, ask func(caller string) []string) []string {
	used := sync.OnceValue(func() []string { return ask(caller.Name) })
	s.mu.Lock()
	if c := s.connections[caller.Session.Connection]; c != nil && c.used[caller.Name] != nil {
		used = c.used[caller.Name]
	} else if c != nil {
		c.used[caller.Name] = used
	}
	s.mu.Unlock()
	return used()
}

// endConnection tells the host that a connection has ended, unless it has been told.
func (s *connections) endConnection(id string) {
	s.mu.Lock()
	c := s.connections[id]
	delete(s.connections, id)
	s.mu.Unlock()
	if c != nil {
		s.host.EndConnection(c.session)
	}
}

// endAll ends all connections, because the server ends.
func (s *connections) endAll() {
	s.mu.Lock()
	ids := slices.Collect(maps.Keys(s.connections))
	s.mu.Unlock()
	for _, id := range ids {
		s.endConnection(id)
	}
}

// hold counts a request over HTTP until release is called. A client whose stream broke off and that has had no request
// under way for lostAfter is lost: it was probably killed. A client without a stream is lost after silentAfter. What a
// lost client opened is closed as if it had ended its session, but the session stays, in case only the stream broke
// off.
func (s *connections) hold(r *http.Request) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.connections[connectionID(r.Header.Get("Mcp-Session-Id"))]
	if c == nil || c.user != userOf(r) {
		return func() {}
	}
	if c.silence != nil {
		c.silence.Stop()
	}
	streams := 0
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		streams = 1
	}
	c.begun++
	c.requests++
	c.streams += streams
	c.streamed = c.streams > 0
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.requests--
		c.streams -= streams
		if c.requests > 0 {
			return
		}
		after := s.silentAfter
		if c.streamed {
			after = s.lostAfter
		}
		begun := c.begun
		c.silence = time.AfterFunc(after, func() { s.lose(c, begun) })
	}
}

// userOf returns whose token a request has, "" without one.
func userOf(r *http.Request) string {
	if token := auth.TokenInfoFromContext(r.Context()); token != nil {
		return token.UserID
	}
	return ""
}

// lose tells the host that a connection is lost, unless it has ended or had more requests than these.
func (s *connections) lose(c *connection, begun int) {
	s.mu.Lock()
	isLost := s.connections[c.session.Connection] == c && c.begun == begun
	s.mu.Unlock()
	if isLost {
		s.host.EndConnection(caller.Session{Connection: c.session.Connection})
	}
}

// sessionOf returns the session of the requests of a client. Over stdio, and in revisions with sessions, the
// connection is the session; in stateless revisions the request names it. Without a name, requests cannot be related
// to each other.
func (s *connections) sessionOf(client *sdk.ServerSession, extra *sdk.RequestExtra, named string) caller.Session {
	if extra == nil || extra.Header == nil {
		if s.named != "" {
			return caller.Session{Name: s.named, Connection: s.id}
		}
		return caller.Session{Name: s.id, Connection: s.id, Temporary: true}
	}
	of := caller.Session{Owner: "token:none", Connection: s.id, Temporary: true}
	shared := ""
	if token := extra.TokenInfo; token != nil {
		of.Owner = "token:" + token.UserID
		shared, _ = token.Extra[boundSession].(string)
	}
	switch {
	case client.ID() != "":
		of.Name = connectionID(client.ID())
		of.Connection = of.Name
	case named != "":
		of.Name = nameHash("meta", named)
	}
	if shared != "" {
		return caller.Session{Name: shared, Connection: of.Connection}
	}
	return of
}

// connectionID returns the id of the connection that belongs to a session of the protocol.
func connectionID(session string) string { return nameHash("connection", session) }

const (
	// recentCalls is for how many calls after a description it is not sent to the session again.
	recentCalls = 20
	// maxSent bounds what is remembered. At the bound all is forgotten, which costs some repetition.
	maxSent = 10_000
)

// sentDocs remembers the descriptions that each session was sent. It is safe for concurrent use.
type sentDocs struct {
	mu    sync.Mutex
	calls map[string]int // calls of each session so far
	sent  map[string]int // by session and text: the call that sent it
}

// count counts a call of a session.
func (s *sentDocs) count(of caller.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls)+len(s.sent) >= maxSent {
		clear(s.calls)
		clear(s.sent)
	}
	s.calls[nameHash(of.Key(), of.Connection)]++
}

// has reports whether a session was sent a text within its last calls. If not, and if sends is set, it notes that the
// text is sent now. It returns false for calls that cannot be related to each other.
func (s *sentDocs) has(of caller.Session, text string, sends bool) bool {
	session, both := nameHash(of.Key(), of.Connection), nameHash(of.Key(), of.Connection, text)
	s.mu.Lock()
	defer s.mu.Unlock()
	call, sent := s.sent[both]
	has := of.Name != "" && sent && s.calls[session]-call <= recentCalls
	if sends && !has {
		s.sent[both] = s.calls[session]
	}
	return has
}
