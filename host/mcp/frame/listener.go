package frame

import (
	"net"
	"sync"
)

// boundedListener accepts no further connections while as many are open as it has slots, and closes those of a client
// that has perClient already.
type boundedListener struct {
	net.Listener
	slots     chan struct{}
	perClient int
	mu        sync.Mutex
	open      map[string]int // by the address of the client
}

// BoundListener returns a listener with at most so many connections open, and at most so many of one client. Further
// ones wait, and those of such a client are closed.
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
