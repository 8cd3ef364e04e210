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
	end      context.CancelFunc

	mu      sync.Mutex
	grants  []host.HTTPGrant
	cuts    int              // how often the grants have changed
	open    map[*lively]bool // what was dialled, and the browser's ends of tunnels
	refused []refusal        // the newest of them
	count   int              // of all that was refused
	touched []string         // what was dialled since that was told, each once, in the words of grants
}

const (
	maxConnections = 512              // at once, of one context; Chrome itself opens 32 for requests and 255 for WebSockets
	quietTime      = 10 * time.Minute // after which a connection on which nothing moves is closed
	headTime       = 30 * time.Second // for the browser to say what it wants
	keptRefusals   = 16
	keptTouched    = 100
)

// newProxy listens on a port of its own for the browser whose process is chrome.
func newProxy(egress host.Egress, chrome int) (*proxy, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{egress: egress, open: map[*lively]bool{}}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.listener = &guarded{Listener: l, chrome: chrome, room: make(chan struct{}, maxConnections)}
	quiet := log.New(io.Discard, "", 0) // pages decide what goes wrong here, and how often
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery // as it is, not as Go would read it
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				method, _ := ctx.Value(methodOf{}).(string)
				return p.dial(ctx, method, "http://"+strings.TrimSuffix(address, ":80"), address)
			},
			// Each request dials anew, so that none goes over a connection that an earlier grant allowed.
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 1 << 20,
		},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { hangUp(w) },
		ErrorLog:      quiet,
	}
	p.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodConnect:
				p.tunnel(w, r)
			case r.URL.Scheme == "http" && r.URL.Host != "":
				// Go's server would add these where the answer does not say them.
				w.Header()["Content-Type"], w.Header()["Date"] = nil, nil
				forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), methodOf{}, r.Method)))
			default: // not asked as a proxy, as by a page that has found the port
				hangUp(w)
			}
		}),
		ReadHeaderTimeout: headTime, IdleTimeout: quietTime, MaxHeaderBytes: 1 << 20, ErrorLog: quiet, DisableGeneralOptionsHandler: true,
	}
	go p.server.Serve(p.listener)
	return p, nil
}

// methodOf is the key of a request's method, for who dials for it.
type methodOf struct{}

func (p *proxy) address() string { return p.listener.Addr().String() }

// allow sets what may be dialled from now on. Where something else was allowed before, what it led to is closed.
func (p *proxy) allow(grants []host.HTTPGrant) {
	p.mu.Lock()
	same := len(p.grants)+len(grants) == 0 || reflect.DeepEqual(p.grants, grants)
	p.grants = grants
	if !same {
		p.cuts++
	}
	p.mu.Unlock()
	if !same {
		p.cut()
	}
}

// close ends everything at once.
func (p *proxy) close() {
	p.end()
	p.server.Close()
	p.cut()
}

// cut closes all that was dialled.
func (p *proxy) cut() {
	p.mu.Lock()
	open := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

// dial asks the guard. What is dialled is told by its origin, of a tunnel as far as its port tells one.
func (p *proxy) dial(ctx context.Context, method, origin, address string) (*lively, error) {
	p.mu.Lock()
	grants, cuts := p.grants, p.cuts
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	conn, err := p.egress.Dial(ctx, address, grants)
	if err != nil {
		p.note(address, err)
		return nil, err
	}
	p.touch("http:" + method + ":" + origin)
	return p.lively(conn, cuts)
}

// touch notes what a grant was used for.
func (p *proxy) touch(right string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.touched) < keptTouched && !slices.Contains(p.touched, right) {
		p.touched = append(p.touched, right)
	}
}

// tell answers what was dialled since it was asked before.
func (p *proxy) tell() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	touched := p.touched
	p.touched = nil
	return touched
}

// lively follows a connection, until it is closed. One that was begun before a cut would outlive the grant that it was dialled by.
func (p *proxy) lively(conn net.Conn, cuts int) (*lively, error) {
	c := &lively{Conn: conn, cuts: cuts, forget: func(c *lively) {
		p.mu.Lock()
		delete(p.open, c)
		p.mu.Unlock()
	}}
	c.stir()
	p.mu.Lock()
	p.open[c] = true
	late := cuts != p.cuts
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
	there, err := p.dial(r.Context(), r.Method, origin, r.Host)
	if err != nil {
		hangUp(w)
		return
	}
	defer there.Close()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	here, err := p.lively(conn, there.cuts)
	if err != nil {
		conn.Close()
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// The browser may have spoken on already.
	early := make([]byte, buffered.Reader.Buffered())
	if _, err := io.ReadFull(buffered, early); err != nil {
		return
	}
	if _, err := there.Write(early); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(there, here)
		there.closeWrite()
	}()
	io.Copy(here, there)
	here.closeWrite()
	<-done
}

// note keeps what the guard refused, or did not take for an address, to be told to the plugin whose navigation fails by it.
func (p *proxy) note(address string, err error) {
	var refused *host.Error
	if !errors.As(err, &refused) || refused.Code != host.Denied && refused.Code != host.InvalidURL {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) == keptRefusals {
		p.refused = append(p.refused[:0], p.refused[1:]...)
	}
	p.refused = append(p.refused, refusal{address, refused})
	p.count++
}

// refusals is how often the guard has refused.
func (p *proxy) refusals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// refusedSince is the newest refusal after so many: of an address, if it was refused, else of any, for a redirect may have led there. nil if there is none.
func (p *proxy) refusedSince(count int, address string) (found *host.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.refused[max(0, len(p.refused)-(p.count-count)):]
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

// hangUp ends the browser's connection without an answer: one from here would be a page of the server that was asked for.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
		return
	}
	panic(http.ErrAbortHandler) // the answer has begun
}

// lively is a connection that ends when nothing moves on it for long.
type lively struct {
	net.Conn
	cuts   int // that were before it was dialled
	forget func(*lively)
}

func (c *lively) stir() { c.SetDeadline(time.Now().Add(quietTime)) }

func (c *lively) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.stir()
	}
	return n, err
}

func (c *lively) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.stir()
	}
	return n, err
}

func (c *lively) Close() error {
	c.forget(c)
	return c.Conn.Close()
}

// closeWrite says that nothing more comes, to who can be told.
func (c *lively) closeWrite() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	c.Close()
}

// guarded takes connections of our browser alone, and so many at once.
type guarded struct {
	net.Listener
	chrome int
	room   chan struct{}
}

func (g *guarded) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !fromBrowser(conn, g.chrome) {
			conn.Close()
			continue
		}
		select {
		case g.room <- struct{}{}:
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { <-g.room })}, nil
		default:
			conn.Close()
		}
	}
}

type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}

func (c *counted) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }
