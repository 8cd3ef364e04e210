package tenant

import (
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/outbound"
)

// proxy is the only route to the network from a plugin's browser context. It listens for HTTP/1.1 on a loopback
// port, forwards plain requests and tunnels all others. It dials only through the host's guard. A request that the
// guard denies gets no response at all, so that for the page the server does not exist.
//
// Every process of the machine can connect to the port. On Linux the kernel's table of connections shows whether the
// other end belongs to a process of our browser. On other systems there is no such check, and another process could
// use the port to reach everything that the plugin may reach.
type proxy struct {
	listener net.Listener
	server   *http.Server
	egress   outbound.Egress
	ctx      context.Context // for all dialled connections
	cancel   context.CancelFunc

	mu           sync.Mutex
	grants       []grant.HTTP
	generation   int                   // incremented when the grants change
	conns        map[*trackedConn]bool // dialled connections, and the browser's ends of tunnels
	refusals     []refusal             // the newest ones
	refusalTotal int                   // of all refusals so far
	usedRights   []string              // rights used since takeUsedRights, each once, written as in grants
}

const (
	maxConnections  = 512              // per context; Chrome opens at most 32 for requests and 255 for WebSockets
	idleConnTimeout = 10 * time.Minute // a connection without traffic is closed after this time
	headerTimeout   = 30 * time.Second // for the browser to send its request
	maxRefusals     = 16
	maxUsedRights   = 100
)

// newProxy listens on a port of its own for the browser whose process is ChromePID.
func newProxy(egress outbound.Egress, chromePID int) (*proxy, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{egress: egress, conns: map[*trackedConn]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.listener = &browserListener{Listener: l, chromePID: chromePID, slots: make(chan struct{}, maxConnections)}
	discard := log.New(io.Discard, "", 0) // pages control what fails here, and how often
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery // unchanged, without Go's cleaning
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				method, _ := ctx.Value(methodKey{}).(string)
				return p.dial(ctx, method, "http://"+strings.TrimSuffix(address, ":80"), address)
			},
			// Dial for each request, so that no request uses a connection that an earlier grant allowed.
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 1 << 20,
		},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { closeUnanswered(w) },
		ErrorLog:      discard,
	}
	p.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodConnect:
				p.tunnel(w, r)
			case r.URL.Scheme == "http" && r.URL.Host != "":
				// Go's server would add these headers to a response without them.
				w.Header()["Content-Type"], w.Header()["Date"] = nil, nil
				forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), methodKey{}, r.Method)))
			default: // not a proxy request, for example of a page that has found the port
				closeUnanswered(w)
			}
		}),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleConnTimeout, MaxHeaderBytes: 1 << 20,
		ErrorLog: discard, DisableGeneralOptionsHandler: true,
	}
	go p.server.Serve(p.listener)
	return p, nil
}

// methodKey is the context key of a request's method, for DialContext.
type methodKey struct{}

// address is where the proxy listens.
func (p *proxy) address() string { return p.listener.Addr().String() }

// allow sets the grants for new connections. If they differ from the previous ones, open connections are closed.
func (p *proxy) allow(grants []grant.HTTP) {
	p.mu.Lock()
	same := len(p.grants)+len(grants) == 0 || reflect.DeepEqual(p.grants, grants)
	p.grants = grants
	if !same {
		p.generation++
	}
	p.mu.Unlock()
	if !same {
		p.closeConns()
	}
}

// close closes the listener and all connections at once.
func (p *proxy) close() {
	p.cancel()
	p.server.Close()
	p.closeConns()
}

// closeConns closes all dialled connections.
func (p *proxy) closeConns() {
	p.mu.Lock()
	conns := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// dial dials through the guard. It records the use of the right to the origin. For a tunnel the port shows whether
// the origin is https.
func (p *proxy) dial(ctx context.Context, method, origin, address string) (*trackedConn, error) {
	p.mu.Lock()
	grants, generation := p.grants, p.generation
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	conn, err := p.egress.Dial(ctx, address, grants)
	if err != nil {
		p.recordRefusal(address, err)
		return nil, err
	}
	p.recordUse("http:" + method + ":" + origin)
	return p.track(conn, generation)
}

// recordUse records that a right was used.
func (p *proxy) recordUse(right string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.usedRights) < maxUsedRights && !slices.Contains(p.usedRights, right) {
		p.usedRights = append(p.usedRights, right)
	}
}

// takeUsedRights returns the rights used since the previous takeUsedRights.
func (p *proxy) takeUsedRights() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	rights := p.usedRights
	p.usedRights = nil
	return rights
}

// track registers a connection until it is closed. A connection dialled under an earlier generation is closed at
// once, because it would outlive the grant that allowed it.
func (p *proxy) track(conn net.Conn, generation int) (*trackedConn, error) {
	c := &trackedConn{conn, generation, p}
	c.extendDeadline()
	p.mu.Lock()
	p.conns[c] = true
	late := generation != p.generation
	p.mu.Unlock()
	if late || p.ctx.Err() != nil {
		c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// tunnel connects the browser with an address, for https and for WebSockets.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	origin := r.Host
	if name, isTLS := strings.CutSuffix(r.Host, ":443"); isTLS {
		origin = "https://" + name
	}
	upstream, err := p.dial(r.Context(), r.Method, origin, r.Host)
	if err != nil {
		closeUnanswered(w)
		return
	}
	defer upstream.Close()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	downstream, err := p.track(conn, upstream.generation)
	if err != nil {
		conn.Close()
		return
	}
	defer downstream.Close()
	if _, err := io.WriteString(downstream, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// The browser may have sent data already.
	if _, err := io.CopyN(upstream, buffered, int64(buffered.Reader.Buffered())); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(upstream, downstream)
		upstream.closeWrite()
	}()
	io.Copy(downstream, upstream)
	downstream.closeWrite()
	<-done
}

// recordRefusal stores what the guard denied or rejected as an address, for the error of the navigation that fails
// because of it.
func (p *proxy) recordRefusal(address string, err error) {
	refused, ok := errors.AsType[*host.Error](err)
	if !ok || refused.Code != host.Denied && refused.Code != host.InvalidURL {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refusals) == maxRefusals {
		p.refusals = append(p.refusals[:0], p.refusals[1:]...)
	}
	p.refusals = append(p.refusals, refusal{address, refused})
	p.refusalTotal++
}

// watchRefusals returns a function that returns the newest refusal since: the one for an address if there is one, else
// any, because a redirect may have led there. It returns nil if there is none.
func (p *proxy) watchRefusals() func(address string) *host.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.refusalTotal
	return func(address string) (found *host.Error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, one := range p.refusals[max(0, len(p.refusals)-(p.refusalTotal-before)):] {
			if found = one.err; one.address == address {
				break
			}
		}
		return found
	}
}

// refusal is a refused address, as "host:port", and the reason.
type refusal struct {
	address string
	err     *host.Error
}

// closeUnanswered closes the browser's connection without a response. A response of the proxy would appear as a
// page of the requested server.
func closeUnanswered(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
		return
	}
	panic(http.ErrAbortHandler) // the response has already begun
}

// trackedConn is a connection that closes after a long time without traffic.
type trackedConn struct {
	net.Conn
	generation int // of the grants that it was dialled under
	proxy      *proxy
}

func (c *trackedConn) extendDeadline() { c.SetDeadline(time.Now().Add(idleConnTimeout)) }

func (c *trackedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.extendDeadline()
	}
	return n, err
}

func (c *trackedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.extendDeadline()
	}
	return n, err
}

func (c *trackedConn) Close() error {
	c.proxy.mu.Lock()
	delete(c.proxy.conns, c)
	c.proxy.mu.Unlock()
	return c.Conn.Close()
}

// closeWrite closes the writing direction, or the connection if it has no such half.
func (c *trackedConn) closeWrite() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	c.Close()
}

// browserListener accepts connections only from our browser, up to the capacity of slots.
type browserListener struct {
	net.Listener
	chromePID int
	slots     chan struct{}
}

func (g *browserListener) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !isFromBrowser(conn, g.chromePID) {
			conn.Close()
			continue
		}
		select {
		case g.slots <- struct{}{}:
			return &slotConn{Conn: conn, release: sync.OnceFunc(func() { <-g.slots })}, nil
		default:
			conn.Close()
		}
	}
}

type slotConn struct {
	net.Conn
	release func()
}

func (c *slotConn) Close() error {
	c.release()
	return c.Conn.Close()
}

func (c *slotConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }
