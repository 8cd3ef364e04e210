package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
)

// Client is a connection to a keeper. Its methods may be called concurrently. Every error is an *Error.
type Client struct {
	*connection
	by        api.Caller
	recordUse func(right string) // may be nil
	onEnabled func(api.Enabled)  // may be nil
}

// connection is the state shared by all clients of one connection.
type connection struct {
	conn    net.Conn
	wire    *wire.Conn
	hello   hello
	notes   []string
	started bool

	mu       sync.Mutex
	lastID   int64
	waiters  map[int64]*waiter
	closeErr *api.Error
	done     chan struct{}

	browserEnded atomic.Bool // the keeper reported the end of the browser, and exits with it
}

// waiter gets the responses to a request until it stops waiting.
type waiter struct {
	responses chan response
	stopped   chan struct{}
}

// timeoutGrace is how much longer than the keeper a client waits for a timeout, because the keeper's own error says
// more.
const timeoutGrace = target.ProbeTimeout + target.TerminateTimeout + time.Second

// connect dials a keeper and exchanges hellos. It returns an *unusableKeeperError if the keeper is hung or uses
// another wire version.
func connect(ctx context.Context, f files, version string) (*Client, error) {
	if !supported {
		return nil, errors.New("keepers are not available on this platform")
	}
	socket := f.socket()
	if err := checkSocket(socket); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	uid, pid, err := peerCredentials(conn)
	if err != nil || uid != os.Geteuid() {
		conn.Close()
		return nil, errors.New("the socket belongs to another user")
	}
	conn.SetDeadline(time.Now().Add(helloTimeout / 2))
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	w := wire.NewConn(bufio.NewReaderSize(conn, 64<<10), conn)
	err = w.SendJSON(wire.KindHello, hello{Wire: WireVersion, Version: version})
	var peerHello hello
	if err == nil {
		peerHello, err = readHello(w)
	}
	stop()
	if err != nil {
		conn.Close()
		if ctx.Err() == nil && errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, &unusableKeeperError{pid: pid, hung: true}
		}
		if i := f.readInfo(); i.PID == pid && i.Wire != WireVersion { // the keeper does not understand this hello
			return nil, &unusableKeeperError{pid: pid, wire: i.Wire, version: i.Version, silent: true}
		}
		return nil, err
	}
	if peerHello.Wire != WireVersion {
		conn.Close()
		return nil, &unusableKeeperError{pid: pid, wire: peerHello.Wire, version: peerHello.Version}
	}
	conn.SetDeadline(time.Time{})
	c := &Client{&connection{
		conn: conn, wire: w, hello: peerHello, waiters: map[int64]*waiter{}, done: make(chan struct{}),
	}, api.CommandLine, nil, nil}
	go c.read()
	return c, nil
}

// As returns a client on the same connection that calls on behalf of another caller. The default caller is the
// command line.
func (c *Client) As(by api.Caller) *Client {
	return &Client{c.connection, by, c.recordUse, c.onEnabled}
}

// WithUseRecorder returns a client on the same connection that calls record for each right that the pages of a
// plugin have used since the plugin's previous call, once per right. Rights are written as in grants:
// "http:GET:http://example.com", and for tunnels "http:CONNECT:https://example.com" or
// "http:CONNECT:example.com:8443".
func (c *Client) WithUseRecorder(record func(right string)) *Client {
	return &Client{c.connection, c.by, record, c.onEnabled}
}

// OnEnabled returns a client on the same connection that reports which domains the keeper enabled for a successful
// call. It passes them to each before the call returns, and does not call each if none was needed.
func (c *Client) OnEnabled(each func(api.Enabled)) *Client {
	return &Client{c.connection, c.by, c.recordUse, each}
}

// Notes returns what the user should know about how this connection was made.
func (c *Client) Notes() []string { return c.notes }

// Started reports whether Start launched the browser for this client.
func (c *Client) Started() bool { return c.started }

// Ended reports whether the connection is unusable: it has ended, or the browser has.
func (c *Client) Ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return c.browserEnded.Load()
	}
}

// Close ends the connection and abandons its calls. The browser stays open.
func (c *Client) Close() error { return c.conn.Close() }

// Call runs one DevTools command and returns its raw result.
func (c *Client) Call(ctx context.Context, q api.CallRequest) (json.RawMessage, error) {
	result, _, err := c.exchange(ctx, "call", q.Method, q, nil)
	return result, err
}

// CallTo is [Client.Call] for a result of any size. A large result is written to out in pieces; CallTo then returns
// the number of bytes written. A small result is returned, with written 0.
func (c *Client) CallTo(ctx context.Context, q api.CallRequest, out io.Writer) (
	result json.RawMessage, written int64, err error,
) {
	q.Pieces = true
	return c.exchange(ctx, "call", q.Method, q, out)
}

// Script calls a function of a script that a plugin ships. The error is [ErrNoScript] if the request has no text and
// the keeper does not have it.
func (c *Client) Script(ctx context.Context, q api.ScriptRequest) (api.ScriptResult, error) {
	done, err := Ask(ctx, c, api.OpScript, q)
	if failed, ok := errors.AsType[*api.Error](err); ok && failed.Message == api.ErrNoScript.Error() {
		err = api.ErrNoScript
	}
	return done, err
}

// Verb runs a verb that needs nothing of the host, and returns its result.
func (c *Client) Verb(ctx context.Context, name string, q api.VerbRequest[json.RawMessage]) (json.RawMessage, error) {
	result, _, err := c.exchange(ctx, name, name, q, nil)
	return result, err
}

// Page runs a verb of the plugin page.
func (c *Client) Page(ctx context.Context, verb string, q api.PageRequest) (api.PageResult, error) {
	return Ask(ctx, c, api.Operation[api.PageRequest, api.PageResult]("page."+verb), q)
}

// CloseSession closes what the caller's session has opened, or, for a person, another session unless it is "". The
// browser ends if nothing is left in it; an external browser is only disconnected. CloseSession then waits until the
// keeper is gone and its files are removed.
func (c *Client) CloseSession(ctx context.Context, session string) (api.Closed, error) {
	closed, err := Ask(ctx, c, api.OpClose, api.CloseRequest{Session: session})
	if err == nil && closed.Browser != "" {
		err = c.awaitExit(ctx)
	}
	return closed, err
}

// CloseBrowser ends the browser and its keeper, whatever sessions use it, and waits until the process is gone and its
// files are removed. An external browser is only disconnected.
func (c *Client) CloseBrowser(ctx context.Context) error {
	if _, err := Ask(ctx, c, api.OpStop, struct{}{}); err != nil {
		return err
	}
	return c.awaitExit(ctx)
}

// awaitExit waits until the keeper's process is gone.
func (c *Client) awaitExit(ctx context.Context) error {
	// The keeper closes its connections just before it exits.
	select {
	case <-c.done:
	case <-ctx.Done():
		return api.ContextError(ctx, "closing the browser")
	}
	end := time.Now().Add(2 * time.Second)
	for processExists(c.hello.PID) && !isZombie(c.hello.PID) && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Listen streams events. It calls each in this goroutine for every line, an event or a count of dropped events, as
// JSON; an error of each ends the stream and is returned. It calls started, unless nil, once the stream is complete
// from then on.
func (c *Client) Listen(
	ctx context.Context, q api.ListenRequest, started func(), each func(line json.RawMessage) error,
) (api.ListenEnd, error) {
	id, responses, err := c.send(ctx, "listen", q, 1024)
	if err != nil {
		return api.ListenEnd{}, err
	}
	defer c.forget(id)
	first := true
	cancelled, graceOver := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case a := <-responses:
			switch {
			case a.failure != nil:
				return api.ListenEnd{}, a.failure
			case a.result != nil:
				var end api.ListenEnd
				json.Unmarshal(a.result, &end)
				if end.End == "closed" && ctx.Err() != nil {
					return end, api.ContextError(ctx, "listening")
				}
				return end, nil
			case first:
				first = false
				if started != nil {
					started()
				}
			default:
				if err := each(a.item); err != nil {
					c.cancel(id)
					return api.ListenEnd{End: "closed"}, err
				}
			}
		case <-cancelled:
			// Lines sent before the cancellation are still to come. The awaited event may be among them.
			c.cancel(id)
			cancelled, graceOver = nil, time.After(flushTimeout)
		case <-graceOver:
			return api.ListenEnd{End: "closed"}, api.ContextError(ctx, "listening")
		case <-c.done:
			// Deliver what was read before the connection ended.
			if len(responses) > 0 {
				continue
			}
			return api.ListenEnd{End: "closed"}, nil
		}
	}
}

// Ask runs an operation and decodes its result.
func Ask[Q, R any](ctx context.Context, c *Client, op api.Operation[Q, R], q Q) (result R, err error) {
	raw, _, err := c.exchange(ctx, string(op), string(op), q, nil)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, api.Errorf(api.CodeInternal, "the keeper's response to %s cannot be read: %v", op, err)
	}
	return result, nil
}

// exchange sends a request and returns its result, or writes the pieces of the result to out. name is the operation's
// name in errors.
func (c *Client) exchange(ctx context.Context, op, name string, body any, out io.Writer) (
	result json.RawMessage, written int64, err error,
) {
	if ctx.Err() != nil {
		return nil, 0, api.ContextError(ctx, name)
	}
	id, responses, err := c.send(ctx, op, body, 8)
	if err != nil {
		return nil, 0, err
	}
	defer c.forget(id)
	for {
		a, err := c.awaitResponse(ctx, responses, name)
		if err == nil && (a.piece == nil || out == nil) {
			result, err := c.result(a)
			return result, written, err
		}
		if err == nil {
			var n int
			n, err = out.Write(a.piece)
			written += int64(n)
		}
		if err != nil {
			c.cancel(id)
			return nil, written, err
		}
	}
}

// awaitResponse waits for the next response to a request. An error means that none will come.
func (c *Client) awaitResponse(ctx context.Context, responses <-chan response, name string) (response, error) {
	select {
	case a := <-responses:
		return a, nil
	case <-c.done:
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			select {
			case a := <-responses:
				return a, nil
			case <-c.done:
			case <-time.After(timeoutGrace):
				return response{}, api.Errorf(api.CodeTimeout,
					"%s timed out, and the browser's keeper (process %d) does not respond; "+
						"closing the browser ends the keeper", name, c.hello.PID)
			}
		}
	}
	select {
	case a := <-responses:
		return a, nil
	default:
	}
	if ctx.Err() != nil {
		return response{}, api.ContextError(ctx, name)
	}
	return response{}, c.closeErr
}

func (c *Client) result(a response) (json.RawMessage, error) {
	for _, right := range a.usedRights {
		if c.recordUse != nil {
			c.recordUse(right)
		}
	}
	if a.failure != nil {
		return nil, a.failure
	}
	if c.onEnabled != nil && !a.enabled.None() {
		c.onEnabled(a.enabled)
	}
	return a.result, nil
}

// send sends a request with the time that is left for it. The caller calls forget.
func (c *Client) send(ctx context.Context, op string, body any, buffer int) (int64, chan response, error) {
	raw, err := manifest.Marshal(body)
	if err != nil {
		return 0, nil, api.Errorf(api.CodeInvalidArgs, "the parameters are not JSON: %v", err)
	}
	if len(raw) > maxRequest-4096 {
		return 0, nil, api.Errorf(api.CodeLimitExceeded, "the request has %d bytes; the browser accepts at most %d", len(raw),
			browser.MaxRequest)
	}
	head := scan.Marshal(c.by)
	if deadline, ok := ctx.Deadline(); ok {
		head = fmt.Appendf(head, `,"timeout_ms":%d`, max(1, time.Until(deadline).Milliseconds()))
	}
	w := &waiter{make(chan response, buffer), make(chan struct{})}
	c.mu.Lock()
	if c.closeErr != nil {
		c.mu.Unlock()
		return 0, nil, c.closeErr
	}
	c.lastID++
	id := c.lastID
	c.waiters[id] = w
	c.mu.Unlock()
	head = fmt.Appendf(nil, `{"id":%d,"op":"%s","by":%s,"body":`, id, op, head)
	if err := c.wire.Send(wire.KindCall, head, raw, []byte{'}'}); err != nil {
		c.forget(id)
		c.browserEnded.Store(true)
		return 0, nil, api.Errorf(api.CodeChromeConnection, "the connection to the browser's keeper is lost: %v", err)
	}
	return id, w.responses, nil
}

// cancel abandons a request. It does not wait, because a hung keeper may not read the message.
func (c *Client) cancel(id int64) {
	go c.wire.Send(wire.KindCall, fmt.Appendf(nil, `{"id":%d,"op":"cancel"}`, id))
}

func (c *Client) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiters[id]; w != nil {
		close(w.stopped)
		delete(c.waiters, id)
	}
}

// read delivers responses until the connection ends. It waits until the reader of a stream takes the next one.
func (c *Client) read() {
	for {
		a, err := readResponse(c.wire)
		if err != nil {
			break
		}
		if a.failure != nil && a.failure.Code == api.CodeChromeConnection {
			c.browserEnded.Store(true)
		}
		c.mu.Lock()
		w := c.waiters[a.id]
		c.mu.Unlock()
		if w != nil {
			select {
			case w.responses <- a:
			case <-w.stopped:
			}
		}
	}
	c.conn.Close()
	c.mu.Lock()
	c.closeErr = api.Errorf(api.CodeChromeConnection,
		"the browser's keeper has exited: the browser was closed or has crashed")
	c.mu.Unlock()
	close(c.done)
}
