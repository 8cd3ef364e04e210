package keeper

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
)

// proxy is the only way to the network out of a plugin's browser context. It speaks HTTP/1.1 on a loopback port, forwards plain requests, tunnels
// the rest, and dials through the host's guard and nothing else: what the guard refuses gets no answer at all, so that a page sees what it sees
// of a server that is not there.
//
// A port can be tried by every process of the machine. On Linux it is held against the kernel's table of connections that the other end belongs to
// a process of our browser; elsewhere that cannot be told, and another process could reach through the port what the plugin may reach.
type proxy struct {
	listener net.Listener
	server   *http.Server
	egress   host.Egress
	ctx      context.Context // of all that is dialled
	cancel   context.CancelFunc

	mu           sync.Mutex
	grants       []host.HTTPGrant
	generation   int                   // how often the grants have changed
	conns        map[*trackedConn]bool // what was dialled, and the browser's ends of tunnels
	refusals     []refusal             // the newest of them
	refusalTotal int                   // of all that was refused
	usedRights   []string              // what was dialled since that was told, each once, in the words of grants
}

const (
	maxConnections  = 512              // at once, of one context; Chrome itself opens 32 for requests and 255 for WebSockets
	idleConnTimeout = 10 * time.Minute // after which a connection on which nothing moves is closed
	headerTimeout   = 30 * time.Second // for the browser to say what it wants
	maxRefusals     = 16
	maxUsedRights   = 100
)

// newProxy listens on a port of its own for the browser whose process is chrome.
func newProxy(egress host.Egress, chromePID int) (*proxy, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{egress: egress, conns: map[*trackedConn]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.listener = &browserListener{Listener: l, chromePID: chromePID, slots: make(chan struct{}, maxConnections)}
	discard := log.New(io.Discard, "", 0) // pages decide what goes wrong here, and how often
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery // as it is, not as Go would read it
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				method, _ := ctx.Value(methodKey{}).(string)
				return p.dial(ctx, method, "http://"+strings.TrimSuffix(address, ":80"), address)
			},
			// Each request dials anew, so that none goes over a connection that an earlier grant allowed.
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
				// Go's server would add these where the answer does not say them.
				w.Header()["Content-Type"], w.Header()["Date"] = nil, nil
				forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), methodKey{}, r.Method)))
			default: // not asked as a proxy, as by a page that has found the port
				closeUnanswered(w)
			}
		}),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleConnTimeout, MaxHeaderBytes: 1 << 20, ErrorLog: discard, DisableGeneralOptionsHandler: true,
	}
	go p.server.Serve(p.listener)
	return p, nil
}

// methodKey is the key of a request's method, for who dials for it.
type methodKey struct{}

func (p *proxy) address() string { return p.listener.Addr().String() }

// allow sets what may be dialled from now on. Where something else was allowed before, what it led to is closed.
func (p *proxy) allow(grants []host.HTTPGrant) {
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

// close ends everything at once.
func (p *proxy) close() {
	p.cancel()
	p.server.Close()
	p.closeConns()
}

// closeConns closes all that was dialled.
func (p *proxy) closeConns() {
	p.mu.Lock()
	conns := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// dial asks the guard. What is dialled is told by its origin, of a tunnel as far as its port tells one.
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

// recordUse notes what a grant was used for.
func (p *proxy) recordUse(right string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.usedRights) < maxUsedRights && !slices.Contains(p.usedRights, right) {
		p.usedRights = append(p.usedRights, right)
	}
}

// takeUsedRights answers what was dialled since it was asked before.
func (p *proxy) takeUsedRights() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	rights := p.usedRights
	p.usedRights = nil
	return rights
}

// track follows a connection, until it is closed. One that was begun before a cut would outlive the grant that it was dialled by.
func (p *proxy) track(conn net.Conn, generation int) (*trackedConn, error) {
	c := &trackedConn{Conn: conn, generation: generation, forget: func(c *trackedConn) {
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
	}}
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
	// The browser may have spoken on already.
	early := make([]byte, buffered.Reader.Buffered())
	if _, err := io.ReadFull(buffered, early); err != nil {
		return
	}
	if _, err := upstream.Write(early); err != nil {
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

// recordRefusal keeps what the guard refused, or did not take for an address, to be told to the plugin whose navigation fails by it.
func (p *proxy) recordRefusal(address string, err error) {
	var refused *host.Error
	if !errors.As(err, &refused) || refused.Code != host.Denied && refused.Code != host.InvalidURL {
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

// refusalCount is how often the guard has refused.
func (p *proxy) refusalCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusalTotal
}

// refusalSince is the newest refusal after so many: of an address, if it was refused, else of any, for a redirect may have led there. nil if there is none.
func (p *proxy) refusalSince(count int, address string) (found *host.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.refusals[max(0, len(p.refusals)-(p.refusalTotal-count)):]
	for _, one := range since {
		if found = one.err; one.address == address {
			break
		}
	}
	return found
}

// refusal is what was refused, as "host:port", and why.
type refusal struct {
	address string
	err     *host.Error
}

// closeUnanswered ends the browser's connection without an answer: one from here would be a page of the server that was asked for.
func closeUnanswered(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
		return
	}
	panic(http.ErrAbortHandler) // the answer has begun
}

// trackedConn is a connection that ends when nothing moves on it for long.
type trackedConn struct {
	net.Conn
	generation int // that were before it was dialled
	forget     func(*trackedConn)
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
	c.forget(c)
	return c.Conn.Close()
}

// closeWrite says that nothing more comes, to who can be told.
func (c *trackedConn) closeWrite() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	c.Close()
}

// browserListener takes connections of our browser alone, and so many at once.
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
