package frame

import (
	"cmp"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// ClientTimeout bounds, by default, how long a client may take to send headers or a body, and to read a piece of a
	// response.
	ClientTimeout = 30 * time.Second
	// MaxConnections bounds the open connections of a listener.
	MaxConnections = 1024

	idleTimeout = 2 * time.Minute // between two requests on a connection
	maxHeader   = 64 << 10
)

// NewServer returns a server with the bounds of a server of MCP on headers and idle connections.
func NewServer(handler http.Handler, clientTimeout time.Duration) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: cmp.Or(clientTimeout, ClientTimeout),
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // invalid requests of strangers are not worth a log
	}
}

// NewListener returns a listener with the bounds of a server of MCP: at most [MaxConnections] connections, and at most
// perClient from one address; 0 means any number. encrypt is the configuration of TLS; nil means no encryption.
func NewListener(listener net.Listener, perClient int, encrypt *tls.Config) net.Listener {
	listener = BoundListener(listener, MaxConnections, cmp.Or(perClient, MaxConnections))
	if encrypt != nil {
		listener = tls.NewListener(listener, encrypt)
	}
	return listener
}

// boundedListener accepts no further connections while as many are open as it has slots. It closes a new connection of
// a client that has perClient already.
type boundedListener struct {
	net.Listener
	slots     chan struct{}
	perClient int
	mu        sync.Mutex
	open      map[string]int // by the address of the client
}

// BoundListener returns a listener with a maximum of open connections, and of open connections of one client. Further
// connections wait, and further ones of such a client are closed.
func BoundListener(l net.Listener, most, perClient int) net.Listener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, most), perClient: perClient, open: map[string]int{}}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		l.slots <- struct{}{}
		conn, err := l.Listener.Accept()
		if err != nil {
			<-l.slots
			return nil, err
		}
		address := conn.RemoteAddr().String()
		client, _, err := net.SplitHostPort(address)
		if err != nil {
			client = address
		}
		if l.count(client, 1) <= l.perClient {
			return &slotConn{Conn: conn, release: sync.OnceFunc(func() { l.count(client, -1); <-l.slots })}, nil
		}
		l.count(client, -1)
		_ = conn.Close()
		<-l.slots
	}
}

// count adds n to the connections of a client and returns their number.
func (l *boundedListener) count(client string, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[client] += n; l.open[client] == 0 {
		delete(l.open, client)
	}
	return l.open[client]
}

type slotConn struct {
	net.Conn
	release func()
}

func (c *slotConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
