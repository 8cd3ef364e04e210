package fleettest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is the network between a client and a server: it passes bytes until it is told not to. It is safe for
// concurrent use.
type Proxy struct {
	// Address is HOST:PORT, and URL the same as nats://HOST:PORT.
	Address, URL string

	target   string
	listener net.Listener

	mu    sync.Mutex
	open  chan struct{} // closed while bytes pass
	rate  int           // bytes a second in each direction of a connection; 0 for no limit
	cut   bool
	conns map[net.Conn]bool // false for connections that pass nothing any more
}

// NewProxy starts a proxy before an address HOST:PORT. It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Address: listener.Addr().String(), target: target, listener: listener, open: make(chan struct{}),
		conns: map[net.Conn]bool{}}
	p.URL = "nats://" + p.Address
	close(p.open)
	t.Cleanup(func() {
		listener.Close()
		p.Cut()
		p.Release()
	})
	go p.accept()
	return p
}

// Hold keeps all bytes, in both directions, until [Proxy.Release]: a partition in which no packet arrives and no
// connection ends.
func (p *Proxy) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.passes() {
		p.open = make(chan struct{})
	}
}

// Drop is [Proxy.Hold] for a network that loses packets: present connections never hear from the other side again.
func (p *Proxy) Drop() {
	p.Hold()
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		p.conns[conn] = false
	}
}

// Slow lets a number of bytes a second pass, in each direction of each connection.
func (p *Proxy) Slow(rate int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = rate
}

// Release passes what [Proxy.Hold] kept, in order, and then all that follows.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.passes() {
		close(p.open)
	}
}

func (p *Proxy) passes() bool {
	select {
	case <-p.open:
		return true
	default:
		return false
	}
}

// Cut ends all connections, and each new one at once, until [Proxy.Restore].
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for conn := range p.conns {
		conn.Close()
	}
}

// Restore lets clients connect again after [Proxy.Cut].
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(client)
	}
}

// serve passes the bytes of a connection until one side ends it.
func (p *Proxy) serve(client net.Conn) {
	defer p.forget(client)
	if !p.keep(client) || !p.wait() {
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer p.forget(server)
	if !p.keep(server) {
		return
	}
	go func() {
		p.pass(client, server)
		client.Close()
	}()
	p.pass(server, client)
}

// pass passes bytes in one direction.
func (p *Proxy) pass(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !p.wait() {
				return
			}
			passes, takes := p.passesOf(from, n)
			if !passes {
				continue
			}
			time.Sleep(takes)
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait waits until bytes pass, and reports whether connections stay.
func (p *Proxy) wait() bool {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	<-open
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.cut
}

// passesOf reports whether bytes of a connection pass, and how long that takes.
func (p *Proxy) passesOf(conn net.Conn, n int) (passes bool, takes time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate > 0 {
		takes = time.Duration(n) * time.Second / time.Duration(p.rate)
	}
	return p.conns[conn], takes
}

// keep remembers a connection, unless they are cut.
func (p *Proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn] = true
	return !p.cut
}

func (p *Proxy) forget(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
	conn.Close()
}
